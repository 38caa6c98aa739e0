"""The functions of the public headers: their names, results and parameters, and how ctypes passes those."""
import ctypes
import re

from conftest import BUILD, ROOT

HEADERS = sorted((ROOT / 'include' / 'weir').glob('*.h')) + [BUILD / 'include' / 'weir' / 'ops.h']
DECLARATION = re.compile(r'WEIR_API\s+(?:WEIR_MUST_USE\s+)?([\w\s]+?[\s*]+)(weir_\w+)\(([^;{]*?)\)\s*(?:WEIR_PRINTF\([^)]*\)|__attribute__\S+)?;', re.S)
COMMENT = re.compile(r'//[^\n]*')
LEFT_OUT = {'weir_abort_null'}  # aborts whatever it is given


class Edge(ctypes.Structure):
    _fields_ = [('node', ctypes.c_void_p), ('index', ctypes.c_int)]


class Rate(ctypes.Structure):
    _fields_ = [('value', ctypes.c_float), ('edge', Edge)]


class Gradient(ctypes.Structure):
    _fields_ = [('values', Edge), ('indices', Edge), ('dense_shape', Edge)]


class Pair(ctypes.Structure):
    """An array and its length."""
    _fields_ = [('items', ctypes.c_void_p), ('count', ctypes.c_int), ('is_set', ctypes.c_bool)]


class Done(ctypes.Structure):
    """A callback and what it gets."""
    _fields_ = [('fn', ctypes.c_void_p), ('arg', ctypes.c_void_p)]


class Note(ctypes.Structure):
    _fields_ = [('key', ctypes.c_void_p), ('value', ctypes.c_void_p)]


class Words(ctypes.Structure):
    """Any other structure: larger than two words, it goes by memory, whatever it holds; so `WORDS` must all be larger."""
    _fields_ = [('words', ctypes.c_uint64 * 64)]


BY_VALUE = {'int': ctypes.c_int, 'bool': ctypes.c_bool, 'float': ctypes.c_float, 'double': ctypes.c_double,
            'int64_t': ctypes.c_int64, 'uint64_t': ctypes.c_uint64, 'size_t': ctypes.c_size_t, 'void': None, 'weir_edge_t': Edge,
            'weir_rate_t': Rate, 'weir_gradient_t': Gradient, 'weir_done_t': Done, 'weir_safetensors_note_t': Note}
BY_VALUE |= dict.fromkeys((f'weir_{kind}_t' for kind in ('dtype', 'code', 'server_end', 'fan', 'distribution', 'partition')), ctypes.c_int)
BY_VALUE |= dict.fromkeys((f'weir_{kind}_t' for kind in ('ints', 'floats', 'types', 'strings', 'dims', 'shapes', 'tables')), Pair)
NOTHING = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p)  # a callback: takes anything, returns zero


def c_type(text):
    text = text.replace('const', '').strip()
    if '*' in text or '[' in text or text.endswith('_fn_t'):
        return ctypes.c_void_p
    return BY_VALUE.get(text, Words)


def parameters(text):
    """(type, name) of each; functions as parameters are pointers."""
    text = re.sub(r'\w+\s*\(\*(\w+)\)\([^)]*\)', r'void* \1', text)
    for part in filter(None, (part.strip() for part in text.split(','))):
        if part not in ('void', '...'):
            kind, name = re.fullmatch(r'(.*?)(\w+)(?:\[\d*\])?', part, re.S).groups()
            yield (kind.strip() + ('*' if '[' in part else ''), name)


def functions():
    for header in HEADERS:
        for result, name, arguments in DECLARATION.findall(COMMENT.sub('', header.read_text())):
            if name not in LEFT_OUT:
                yield name, result.strip(), list(parameters(arguments))


FUNCTIONS = {name: (result, arguments) for name, result, arguments in functions()}
WORDS = sorted({kind for result, arguments in FUNCTIONS.values() for kind in (result, *(kind for kind, _ in arguments)) if c_type(kind) is Words})
