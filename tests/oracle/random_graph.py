"""A random program: nodes, functions and runs, as GraphDef bytes for both sides and as a short script for the reader.

A script is Python that calls what a Program offers:

    node('a', 'Const', dtype=type_(FLOAT), value=tensor('float32', [2], [1, 2]))
    node('b', 'Neg', 'a', '^c', T=type_(FLOAT))
    function('f', [('x', FLOAT)], [('y', FLOAT, 'b:y:0')], ['^b'], [node lines...])
    run(fetches=['b:0'], targets=[], feeds={})

`random_programs.py --script FILE` runs it again.
"""
import functools
import struct

import numpy as np

from values import field, varint, write_tensor

FLOAT, DOUBLE, INT32, STRING, INT64, BOOL, RESOURCE, VARIANT = 1, 2, 3, 7, 9, 10, 20, 21
NAMES = {FLOAT: 'FLOAT', DOUBLE: 'DOUBLE', INT32: 'INT32', STRING: 'STRING', INT64: 'INT64', BOOL: 'BOOL',
         RESOURCE: 'RESOURCE', VARIANT: 'VARIANT'}
PRODUCER = 1882  # of graphs: a version that neither side finds too old


# ---- attributes: pairs of a kind and a value ----

def type_(dtype):
    return 'type_', dtype


def types(*dtypes):
    return 'types', dtypes


def int_(value):
    return 'int_', int(value)


def bool_(value):
    return 'bool_', bool(value)


def float_(value):
    return 'float_', float(value)


def text(value):
    return 'text', value


def texts(*values):
    return 'texts', values


def shape(dims):
    """None: unknown."""
    return 'shape', dims


def shapes(*all_dims):
    return 'shapes', all_dims


def ints(*values):
    return 'ints', values


def func(name):
    return 'func', name


def funcs(*names):
    return 'funcs', names


def bytes_(data):
    """An attribute that the program does not look into, as it is on the wire."""
    return 'bytes_', data


def tensor(dtype, dims, values):
    if dtype == 'object':
        flat = np.empty(len(values), object)
        flat[:] = [v if isinstance(v, bytes) else v.encode() for v in values]
        return 'array', flat.reshape(dims)
    return 'array', np.array(values, dtype).reshape(dims)


def array(value):
    """A tensor from a numpy array."""
    return 'array', value


def encode_shape(dims):
    if dims is None:
        return b'\x18\x01'
    return b''.join(field(2, b'\x08' + varint(d)) for d in dims)


def encode_attr(kind, value):
    """An AttrValue."""
    return encode_any(kind, value) if kind in ('array', 'shape', 'shapes') else encode_known(kind, value)


@functools.lru_cache(4096)
def encode_known(kind, value):
    return encode_any(kind, value)


def encode_any(kind, value):
    if kind == 'type_':
        return b'\x30' + varint(value)
    if kind == 'int_':
        return b'\x18' + varint(value)
    if kind == 'bool_':
        return b'\x28' + varint(value)
    if kind == 'float_':
        return b'\x25' + struct.pack('<f', value)
    if kind == 'text':
        return field(2, value.encode())
    if kind == 'shape':
        return field(7, encode_shape(value))
    if kind == 'array':
        return field(8, write_tensor(value))
    if kind == 'func':
        return field(10, field(1, value.encode()))
    if kind == 'bytes_':
        return value
    lists = {'types': lambda: field(6, b''.join(map(varint, value))), 'ints': lambda: field(3, b''.join(map(varint, value))),
             'shapes': lambda: b''.join(field(7, encode_shape(v)) for v in value),
             'texts': lambda: b''.join(field(2, v.encode()) for v in value),
             'funcs': lambda: b''.join(field(9, field(1, v.encode())) for v in value)}
    return field(1, lists[kind]() if value else b'')


def show_attr(kind, value):
    if kind == 'array':
        if value.dtype == object:
            return f"tensor('object', {list(value.shape)}, {value.ravel().tolist()})"
        return f"tensor('{value.dtype.name}', {list(value.shape)}, {value.ravel().tolist()})".replace('nan', "'nan'").replace(
            'inf', "'inf'")
    if kind == 'type_':
        return f'type_({NAMES.get(value, value)})'
    if kind in ('types', 'shapes', 'ints', 'texts', 'funcs'):
        return f'{kind}({", ".join(NAMES.get(v, repr(v)) if kind == "types" else repr(v) for v in value)})'
    return f'{kind}({value!r})'


# ---- nodes ----

# A ConfigProto with disable_meta_optimizer: a call within a function does not heed the session's.
UNOPTIMIZED = field(10, field(10, b'\x98\x01\x01'))


class Node:
    __slots__ = ('name', 'op', 'inputs', 'attrs', 'device')

    def __init__(self, name, op, inputs, attrs, device=''):
        self.name, self.op, self.inputs, self.attrs, self.device = name, op, list(inputs), dict(attrs), device

    def copy(self):
        return Node(self.name, self.op, self.inputs, self.attrs, self.device)

    def encode(self):
        """A NodeDef."""
        parts = [field(1, self.name.encode()), field(2, self.op.encode())]
        data = [i for i in self.inputs if i[0] != '^']
        parts += [field(3, i.encode()) for i in data + [i for i in self.inputs if i[0] == '^']]
        if self.device:
            parts.append(field(4, self.device.encode()))
        parts += [field(5, field(1, k.encode()) + field(2, encode_attr(*v))) for k, v in self.attrs.items()]
        if self.op.endswith('PartitionedCall'):
            parts.append(field(5, field(1, b'config_proto') + field(2, field(2, UNOPTIMIZED))))
        return b''.join(parts)

    def show(self):
        words = [repr(self.name), repr(self.op)] + [repr(i) for i in self.inputs]
        if self.device:
            words.append(f'device={self.device!r}')
        words += [f'{k}={show_attr(*v)}' if k.isidentifier() and k not in ('f', 'class') else f'**{{{k!r}: {show_attr(*v)}}}'
                  for k, v in self.attrs.items()]
        return f'node({", ".join(words)})'


class Function:
    """A FunctionDef: nodes name their inputs as functions do ('node:output:index')."""

    def __init__(self, name, args, results, controls, nodes):
        self.name, self.args, self.results, self.controls, self.nodes = name, args, results, controls, nodes
        # args: (name, type); results: (name, type, input); controls: names of nodes that must run

    def copy(self):
        return Function(self.name, list(self.args), list(self.results), list(self.controls), [n.copy() for n in self.nodes])

    def encode(self):
        def argument(name, dtype):
            return field(1, name.encode()) + b'\x18' + varint(dtype)

        def pair(key, value):
            return field(1, key.encode()) + field(2, value.encode())
        signature = [field(1, self.name.encode())] + [field(2, argument(n, t)) for n, t in self.args]
        signature += [field(3, argument(n, t)) for n, t, _ in self.results]
        signature += [b'\x88\x01\x01'] if self.controls else []  # is_stateful
        signature += [field(20, c.encode()) for c in self.controls]
        parts = [field(1, b''.join(signature))] + [field(3, n.encode()) for n in self.nodes]
        parts += [field(4, pair(n, v)) for n, _, v in self.results] + [field(6, pair(c, c)) for c in self.controls]
        return b''.join(parts)

    def show(self):
        inner = ''.join(f'    {n.show()},\n' for n in self.nodes)
        return f'function({self.name!r}, {self.args!r}, {self.results!r}, {self.controls!r}, [\n{inner}])'


class RawFunction:
    """A FunctionDef that the program does not look into."""

    def __init__(self, name, data):
        self.name, self.data = name, data
        self.args, self.results, self.controls, self.nodes = [], [], [], []

    def copy(self):
        return self

    def encode(self):
        return self.data

    def show(self):
        return f'raw_function({self.name!r}, {self.data!r})'


class Run:
    def __init__(self, fetches=(), targets=(), feeds=None, is_state=False):
        self.fetches, self.targets, self.feeds = list(fetches), list(targets), dict(feeds or {})
        self.is_state = is_state  # reads every variable; not to be shrunk away before the others

    def copy(self):
        return Run(self.fetches, self.targets, self.feeds, self.is_state)

    def show(self):
        feeds = ', '.join(f'{k!r}: {show_attr("array", v)}' for k, v in self.feeds.items())
        return f'run(fetches={self.fetches!r}, targets={self.targets!r}, feeds={{{feeds}}})'


class Program:
    def __init__(self):
        self.nodes, self.functions, self.runs = [], [], []
        self.threads, self.disabled = 1, ''  # how Weir runs it
        self.producer = PRODUCER
        self.features = ()

    def copy(self):
        other = Program()
        other.nodes, other.functions = [n.copy() for n in self.nodes], [f.copy() for f in self.functions]
        other.runs = [r.copy() for r in self.runs]
        other.threads, other.disabled, other.features, other.producer = self.threads, self.disabled, self.features, self.producer
        return other

    def encode(self, order=None, devices=True):
        """A GraphDef; |order|: a permutation of its nodes."""
        nodes = self.nodes if order is None else [self.nodes[i] for i in order]
        if not devices:
            nodes = [Node(n.name, n.op, n.inputs, n.attrs) for n in nodes]
        parts = [field(1, n.encode()) for n in nodes]
        if self.functions:
            parts.append(field(2, b''.join(field(1, f.encode()) for f in self.functions)))
        parts.append(field(4, b'\x08' + varint(self.producer)))
        return b''.join(parts)

    def show(self):
        producer = f', producer={self.producer}' if self.producer != PRODUCER else ''
        lines = [f'session(threads={self.threads}, disabled={self.disabled!r}{producer})']
        lines += [f.show() for f in self.functions] + [n.show() for n in self.nodes] + [r.show() for r in self.runs]
        return '\n'.join(lines) + '\n'


def read_script(source):
    """The program that a script describes."""
    program = Program()

    def node(name, op, *inputs, device='', **attrs):
        made = Node(name, op, inputs, attrs, device)
        program.nodes.append(made)
        return made

    def function(name, args, results, controls, nodes):
        del program.nodes[len(program.nodes) - len(nodes):]
        program.functions.append(Function(name, args, results, controls, nodes))

    def raw_function(name, data):
        program.functions.append(RawFunction(name, data))

    def run(fetches=(), targets=(), feeds=None):
        program.runs.append(Run(fetches, targets, {k: v[1] for k, v in (feeds or {}).items()}))

    def session(threads=1, disabled='', producer=PRODUCER):
        program.threads, program.disabled, program.producer = threads, disabled, producer
    exec(source, {**globals(), 'node': node, 'function': function, 'raw_function': raw_function, 'run': run, 'session': session})  # pylint: disable=exec-used
    return program
