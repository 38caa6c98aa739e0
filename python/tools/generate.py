"""Writes the modules of the package that follow from the C API: _c.py, what layers and their kin are, and the stubs of ops."""
import argparse
import pathlib
import re

import headers

SIMPLE = {'void': 'None', 'bool': 'c_bool', 'int': 'c_int', 'float': 'c_float', 'double': 'c_double', 'int64_t': 'c_int64',
          'uint64_t': 'c_uint64', 'int32_t': 'c_int32', 'uint32_t': 'c_uint32', 'uint8_t': 'c_uint8', 'size_t': 'c_size_t'}


class CTypes:
    """How ctypes says a type of C."""

    def __init__(self, api):
        self.api = api

    def callback(self, result, parameters):
        return f'CFUNCTYPE({", ".join([self.of(result, result=True)] + [self.parameter(p) for p in parameters])})'

    def parameter(self, p):
        if p.callback:
            return self.callback(*p.callback)
        base = self.of(p.type)
        return f'{base} * {p.count}' if p.count else base

    def of(self, text, result=False):
        text = re.sub(r'\bconst\b|\bstruct\b', '', text)
        stars, name = text.count('*'), text.replace('*', '').strip()
        if stars == 0:
            if name in self.api.enum_types:
                return 'c_int'
            return SIMPLE.get(name, name)
        if name == 'char':
            return 'c_char_p' if stars == 1 else 'POINTER(c_char_p)' if 'const' in text else 'POINTER(c_void_p)'
        if name == 'void' or name in self.api.opaque or name.startswith('DLManaged') or name not in {**self.api.structs, **SIMPLE} and \
                name not in self.api.enum_types:
            return 'c_void_p' if stars == 1 else 'POINTER(c_void_p)'
        base = 'c_int' if name in self.api.enum_types else SIMPLE.get(name, name)
        for _ in range(stars):
            base = f'POINTER({base})'
        return base


def char_pointers(p):
    """`const char* const*` are strings that are read, `char**` one that is written and freed by its address."""
    text = p.type.replace(' ', '')
    if text == 'char**':
        return 'POINTER(c_void_p)'
    return 'POINTER(c_char_p)' if text.startswith('constchar*') and text.count('*') == 2 else None


def ordered(api):
    """Structs and callbacks, each behind those it needs by value."""
    done, out = set(), []

    def visit(name):
        if name in done:
            return
        done.add(name)
        parts = api.structs[name] if name in api.structs else api.callbacks[name][1] if name in api.callbacks else []
        for p in parts:
            for q in (p.callback[1] if p.callback else [p]):
                base = re.sub(r'\bconst\b|\bstruct\b|\*', '', q.type).strip()
                if base != name and (base in api.structs or base in api.callbacks):
                    visit(base)
        out.append(name)

    for name in list(api.structs) + list(api.callbacks):
        visit(name)
    return out


def write_c(api, out):
    """_c.py: structs as classes, signatures as text that is evaluated when a function is first used."""
    types = CTypes(api)
    lines = ['"""Weir\'s C API for ctypes. Generated from include/weir: do not edit."""',
             '# pylint: disable=all', '# mypy: ignore-errors',
             'from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t,',
             '                    c_uint8, c_uint32, c_uint64, c_void_p)', '']
    for name, value in api.enums.items():
        lines.append(f'{name} = {value}')
    forward = [n for n in ordered(api) if n in api.structs]
    lines += [''] + [f'class {n}(Structure): pass' for n in forward] + ['']
    for name in ordered(api):
        if name in api.callbacks:
            lines.append(f'{name} = {types.callback(*api.callbacks[name])}')
        else:
            parts = ', '.join(f'({p.name!r}, {char_pointers(p) or types.parameter(p)})' for p in api.structs[name])
            lines.append(f'{name}._fields_ = [{parts}]')
    lines += ['', 'FUNCTIONS = {']
    for f in api.functions.values():
        arguments = ', '.join(char_pointers(p) or types.parameter(p) for p in f.parameters)
        result = 'c_void_p' if f.result.replace(' ', '') == 'char*' else types.of(f.result)
        lines.append(f'    {f.name!r}: {f"({result}, [{arguments}])"!r},')
    lines.append('}')
    out.write_text('\n'.join(lines) + '\n')


# ---- layers and their kin: one Python function each ----

def doc(comment, options):
    text = re.sub(r'\|(\w+)\|', r'`\1`', re.sub(r'\bweir_(?:layer_|loss_|metric_)?', '', comment)).replace('\\', '')
    known = [f'    {o.name}: {re.sub(r"weir_", "", o.comment)}' for o in options if o.comment]
    return text + ('\n\n' + '\n'.join(known) + '\n    ' if known else '')


def annotation(p):
    plain = {'bool': 'bool', 'int': 'int', 'int64_t': 'int', 'float': 'float', 'double': 'float', 'const char*': 'str | None',
             'weir_edge_t': 'EdgeLike', 'weir_init_t': 'Initializer | None', 'weir_opt_float_t': 'float | None',
             'weir_opt_int_t': 'int | None', 'weir_opt_bool_t': 'bool | None', 'weir_activation_fn_t': 'Activation',
             'weir_rate_t': 'EdgeLike', 'weir_dtype_t': 'DTypeLike', 'weir_dims_t': 'Sequence[int | None]'}
    return 'Sequence[int] | None' if p.count else plain.get(p.type, 'Any')


def default(p):
    if p.count or p.type not in ('bool', 'int', 'int64_t', 'float', 'double'):
        return 'None'
    return 'False' if p.type == 'bool' else '0'


OPTIONS = re.compile(r'^const weir_\w+_options_t\*$')
RESERVED = {'lambda', 'in', 'is', 'from', 'not', 'and', 'or', 'if', 'else', 'for', 'while', 'def', 'class', 'with', 'as', 'pass', 'None'}


def python_function(f, name, options):
    """A function that gives its arguments to weir.library.call, which turns them into C's."""
    has_scope = bool(f.parameters) and f.parameters[0].type == 'weir_scope_t*'
    inputs = [p for p in f.parameters[1 if has_scope else 0:] if not OPTIONS.match(p.type)]
    chosen = [o for o in options if o.name not in ('reserved', 'graph_seed')]
    signature = [f'{p.name}: {annotation(p)}' + (' = 0' if p.name == 'seed' and not has_scope else '') for p in inputs]
    if chosen:
        signature += ['*'] + [f'{o.name}: {annotation(o)} = {default(o)}' for o in chosen]
    struct = next((re.search(r'weir_\w+', p.type)[0] for p in f.parameters if OPTIONS.match(p.type)), None)
    given = ', '.join(f'{o.name}={o.name}' for o in chosen)
    arguments = ', '.join(p.name for p in inputs)
    return (f'def {name}({", ".join(signature)}) -> Any:\n    """{doc(f.comment, chosen)}"""\n'
            f'    return _call({f.name!r}, {has_scope}, [{arguments}], {struct!r}' + (f', {given}' if given else '') + ')\n')


MODULES = {  # module: (what the functions' names begin with, what it is)
    'layers': (r'weir_(layer_\w+?|gelu|silu)(_with)?$', 'Layers: functions that add variables and nodes, and return their output.'),
    'losses': (r'weir_(loss_\w+?)(_with)?$', 'Losses. Labels come first, predictions second.'),
    'metrics': (r'weir_(metric_\w+?)(_with)?$', 'Metrics that are accumulated over many steps.'),
    'initializers': (r'weir_(init_\w+?)$', 'What variables start with.'),
    'schedules': (r'weir_(\w+_decay|cosine_decay_restarts)(_with)?$',
                  'Learning rates that depend on the step.'),
    'summaries': (r'weir_(summary_\w+?)(_with)?$', 'Nodes that say what TensorBoard shall show.'),
}
LEFT_OUT = {'weir_init_edge', 'weir_init_value'}


def write_library(api, folder):
    for module, (pattern, what) in MODULES.items():
        lines = [f'"""{what} Generated from Weir\'s headers: do not edit."""', 'from __future__ import annotations', '',
                 'from typing import Any, Sequence', '', 'from .library import Activation, DTypeLike, EdgeLike, Initializer',
                 'from .library import call as _call', '', '']
        names = []
        for f in api.functions.values():
            match = re.match(pattern, f.name)
            if not match or f.name in LEFT_OUT:
                continue
            name = re.sub(r'^(layer|loss|metric|init|summary)_', '', match[1])
            struct = next((re.search(r'weir_\w+', p.type)[0] for p in f.parameters if OPTIONS.match(p.type)), None)
            names.append(name)
            lines += [python_function(f, name, api.structs[struct] if struct else []), '']
        lines += [f'__all__ = {names!r}']
        (folder / f'{module}.py').write_text('\n'.join(lines) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('headers', type=pathlib.Path, help='include/weir')
    parser.add_argument('folder', type=pathlib.Path, help='of the package that is put together')
    args = parser.parse_args()
    api = headers.load(args.headers)
    write_c(api, args.folder / '_c.py')
    write_library(api, args.folder)


if __name__ == '__main__':
    main()
