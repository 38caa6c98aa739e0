"""Every function of the public headers, called with NULL: it returns, or it ends the program with a message that names it.

A crash says neither what was wrong nor where. Calls are made in children of their own, all arguments zero at first, then one pointer
after the other among arguments that are there.
"""
import ctypes
import faulthandler
import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest

from api_headers import COMMENT, FUNCTIONS, HEADERS, LEFT_OUT, NOTHING, WORDS, Edge, c_type
from conftest import BUILD, ROOT

# And a context of zeros has no pool to run on, no cancellation, and nobody to tell.
OPTIONAL = {('weir_plugin_parallel_for', 'arg'), ('weir_plugin_submit', 'arg'), ('weir_plugin_on_cancel', 'arg')}


def test_headers_are_understood():
    count = sum(len(re.findall(r'\bWEIR_API\b', COMMENT.sub('', header.read_text()))) for header in HEADERS)
    assert len(FUNCTIONS) == count - 1 - len(LEFT_OUT)  # the macro itself


def test_structures_are_large(tmp_path):
    """Smaller ones are returned in registers: a call that takes them for larger ones shifts every argument, on x86-64."""
    source = tmp_path / 'sizes.c'
    source.write_text('\n'.join(f'#include "weir/{header.name}"' for header in HEADERS) + '\n' + '\n'.join(
        f'_Static_assert(sizeof({kind.replace("const", "")}) > 2 * sizeof(void*), "{kind}");' for kind in WORDS))
    subprocess.run(['cc', '-std=c11', '-fsyntax-only', f'-I{ROOT}/include', f'-I{BUILD}/include', source], check=True)


@pytest.fixture(scope='module')
def library():
    return ctypes.CDLL(str(BUILD / 'libweir.so'))


class World:
    """Arguments that are there: a graph with a variable, a scope, a session, and room for results."""

    def __init__(self, library):
        self.library = library
        self.kept = []
        self.objects = {}
        for kind in ('graph', 'coordinator', 'cancellation', 'example'):
            self.objects[f'weir_{kind}_t*'] = self.create(f'weir_{kind}_create')
        graph = self.objects['weir_graph_t*']
        self.objects['weir_scope_t*'] = scope = self.pointer('weir_scope_create', graph)
        library.weir_const_float.restype = library.weir_variable.restype = Edge
        value = library.weir_const_float(scope, ctypes.c_float(1))
        self.edge = library.weir_variable(scope, b'v', value)
        self.objects['weir_node_t*'] = ctypes.c_void_p(self.edge.node)
        self.objects['weir_node_builder_t*'] = self.pointer('weir_node_begin', scope, b'NoOp')
        self.objects['weir_session_t*'] = self.create('weir_session_create', graph, None)
        self.objects['weir_tensor_t*'] = tensor = self.create('weir_tensor_create', 1, 0, None)
        tensors = ctypes.cast(ctypes.pointer(tensor), ctypes.c_void_p)
        self.kept.append(tensor)
        self.objects['weir_tensor_t**'] = tensors

    def pointer(self, name, *arguments):
        function = getattr(self.library, name)
        function.restype = ctypes.c_void_p
        return ctypes.c_void_p(function(*arguments))

    def create(self, name, *arguments):
        made = ctypes.c_void_p()
        assert not self.pointer(name, *arguments, ctypes.byref(made)).value, name
        return made

    def room(self):
        memory = ctypes.create_string_buffer(4096)
        self.kept.append(memory)
        return ctypes.cast(memory, ctypes.c_void_p)

    def argument(self, kind, name):
        kind = kind.replace('const', '').replace(' ', '')
        if kind.endswith('_fn_t') or name in ('fn', 'feed'):
            return NOTHING
        if kind in self.objects and not name.startswith('out_'):
            return self.objects[kind]
        if kind == 'weir_edge_t':
            return self.edge
        if kind == 'char*' and not name.startswith('out_'):
            return ctypes.cast(ctypes.c_char_p(b'there'), ctypes.c_void_p)
        made = c_type(kind)
        return self.room() if made is ctypes.c_void_p else made(1) if made in (ctypes.c_int, ctypes.c_int64, ctypes.c_size_t) else made()


def call(library, name, missing):
    """Calls |name| with zeros, or with arguments that are there but for number |missing|."""
    result, arguments = FUNCTIONS[name]
    world = World(library) if missing is not None else None
    values = [c_type(kind)() if missing in (None, i) else world.argument(kind, argument)
              for i, (kind, argument) in enumerate(arguments)]
    function = getattr(library, name)
    function.restype = c_type(result)
    function.argtypes = [c_type(kind) for kind, _ in arguments]
    function(*values)


def outcome(library, name, missing):
    """What became of a child that makes the call: None when all is well."""
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            faulthandler.disable()  # it would say the same at length, to where pytest's errors go
            signal.alarm(20)
            call(library, name, missing)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        errors.seek(0)
        text = errors.read().decode(errors='replace')
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return None
    message = ' '.join(line for line in text.splitlines() if '[0x' not in line)  # the rest is where it was called
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT and f'{name}:' in message and 'NULL' in message:
        return None
    return f'{signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "error"}: {message[-300:]}'


def is_pointer(kind):
    return c_type(kind) is ctypes.c_void_p


@pytest.mark.parametrize('name', FUNCTIONS)
def test_null(library, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of the calls write files
    _, arguments = FUNCTIONS[name]
    bad = {}
    cases = [None]
    for i, (kind, argument) in enumerate(arguments):
        is_like_others = name.startswith('weir_op_') and argument != 'options'  # they are generated
        if is_pointer(kind) and not is_like_others and (name, argument) not in OPTIONAL:
            cases.append(i)
    for missing in cases:
        text = outcome(library, name, missing)
        if text:
            bad['all' if missing is None else arguments[missing][1]] = text
    assert not bad


def test_random_sequences():
    """Right calls and wrong ones, mixed by chance: see random_misuse.py."""
    done = subprocess.run([sys.executable, ROOT / 'tests' / 'random_misuse.py', '--lib', BUILD / 'libweir.so', '--count', '250'],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
