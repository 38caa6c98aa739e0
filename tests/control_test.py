"""Loops and conditionals built by weir_while_loop and weir_cond equal tf.while_loop and tf.cond: values and gradients."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
tf = pytest.importorskip('tensorflow')
v1 = tf.compat.v1

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests'))
from rnn_test import POINTER, Edge, KeepDims, Model, check, placeholders_only, random_values  # noqa: E402

BODY = ctypes.CFUNCTYPE(None, POINTER, ctypes.POINTER(Edge), POINTER)
COND = ctypes.CFUNCTYPE(None, POINTER, ctypes.POINTER(Edge), ctypes.POINTER(Edge))

# Callbacks of ctypes cannot return structs, which weir_loop_cond_fn_t does: |user| is a function that gives it by a pointer.
SHIM = """
#include <weir/control.h>
weir_edge_t call_cond(weir_scope_t* scope, const weir_edge_t* state, void* user);
weir_edge_t call_cond(weir_scope_t* scope, const weir_edge_t* state, void* user) {
  weir_edge_t out = {0};
  (*(void (**)(weir_scope_t*, const weir_edge_t*, weir_edge_t*))user)(scope, state, &out);
  return out;
}
"""


def load_shim():
    compiler = shutil.which('cc')
    if not compiler:
        pytest.skip('no C compiler', allow_module_level=True)
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder, 'shim.c'), pathlib.Path(folder, 'shim.so')
        source.write_text(SHIM)
        subprocess.run([compiler, '-std=c11', '-shared', '-fPIC', f'-I{ROOT / "include"}', '-o', library, source], check=True)
        return ctypes.CDLL(str(library))


SHIM_LIBRARY = load_shim()


class Dims(ctypes.Structure):
    _fields_ = [('dims', ctypes.POINTER(ctypes.c_int64)), ('rank', ctypes.c_int), ('is_set', ctypes.c_bool)]


class Shapes(ctypes.Structure):
    _fields_ = [('items', ctypes.POINTER(Dims)), ('count', ctypes.c_int)]


class LoopOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('parallel_iterations', ctypes.c_int64), ('maximum_iterations', ctypes.c_int64),
                ('name', ctypes.c_char_p), ('shapes', Shapes)]


class CondOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('name', ctypes.c_char_p)]


# The same few operations in Weir and in TensorFlow, so that one program can be written for both.

class Weir:
    def __init__(self, model, scope=None):
        self.model, self.scope = model, scope or model.scope

    def call(self, name, *inputs, options=None):
        function = getattr(self.model.c, 'weir_op_' + name)
        function.restype = Edge
        return function(self.scope, *inputs, *([ctypes.byref(options)] if options else []))

    def number(self, value):
        make = self.model.c.weir_const_float if isinstance(value, float) else self.model.c.weir_const_int
        make.restype = Edge
        return make(self.scope, ctypes.c_float(value) if isinstance(value, float) else value)

    def total(self, x):
        axes = self.call('range', self.number(0), self.call('rank', x), self.number(1))
        return self.call('sum', x, axes, options=KeepDims())

    def matmul(self, a, b):
        class Options(ctypes.Structure):
            _fields_ = [('reserved', ctypes.c_int), ('a', ctypes.c_bool), ('b', ctypes.c_bool)]
        return self.call('mat_mul', a, b, options=Options())

    def loop(self, cond, body, state, **options):
        def decide(scope, edges, out):
            out[0] = cond(Weir(self.model, POINTER(scope)), *[Edge(e.node, e.index) for e in edges[:len(state)]])

        def step(scope, edges, user):
            after = body(Weir(self.model, POINTER(scope)), *[Edge(e.node, e.index) for e in edges[:len(state)]])
            for i, edge in enumerate(after):
                edges[i] = edge
        # The body needs no user: it is a closure. What the condition's shim calls is behind one.
        callback = COND(decide)
        user = POINTER(ctypes.cast(callback, POINTER).value)
        out = (Edge * len(state))()
        self.model.c.weir_while_loop_with(self.scope, (Edge * len(state))(*state), len(state),
                                          SHIM_LIBRARY.call_cond, BODY(step), ctypes.byref(user), out,
                                          ctypes.byref(LoopOptions(**options)))
        return list(self.model.ok(out))

    def cond(self, pred, then, otherwise):
        def branch(function):
            def run(scope, outs, user):
                outs[0] = function(Weir(self.model, POINTER(scope)))
            return BODY(run)
        out = (Edge * 1)()
        self.model.c.weir_cond_with(self.scope, pred, branch(then), branch(otherwise), None, out, 1,
                                    ctypes.byref(CondOptions()))
        return self.model.ok(out[0])

    def __getattr__(self, name):
        return lambda *inputs: self.call({'add': 'add_v2'}.get(name, name), *inputs)


class TensorFlow:
    number, total, matmul, tanh, sin, mul = tf.constant, tf.reduce_sum, tf.matmul, tf.tanh, tf.sin, tf.multiply
    add, less, greater, square, neg, floor_mod = tf.add, tf.less, tf.greater, tf.square, tf.negative, tf.math.floormod

    @classmethod
    def loop(cls, cond, body, state, **options):
        return v1.while_loop(lambda *s: cond(cls, *s), lambda *s: body(cls, *s), state, return_same_structure=True, **options)

    @classmethod
    def cond(cls, pred, then, otherwise):
        return v1.cond(pred, lambda: then(cls), lambda: otherwise(cls))


# ---- programs: of a matrix x and a matrix w, a matrix ----

def powers(m, x, w):
    """x = tanh(x w), five times; w is captured."""
    return m.loop(lambda m, i, a: m.less(i, m.number(5)),
                  lambda m, i, a: [m.add(i, m.number(1)), m.tanh(m.matmul(a, w))], [m.number(0), x])[1]


def until_large(m, x, w):
    """How often depends on the data."""
    return m.loop(lambda m, a: m.less(m.total(m.square(a)), m.number(40.0)),
                  lambda m, a: [m.add(m.mul(a, m.number(1.5)), m.mul(w, w))], [x], parallel_iterations=1)[0]


def nested(m, x, w):
    def inner(m, a):
        return m.loop(lambda m, k, b: m.less(k, m.number(3)),
                      lambda m, k, b: [m.add(k, m.number(1)), m.sin(m.add(m.matmul(b, w), x))], [m.number(0), a])[1]
    return m.loop(lambda m, i, a: m.less(i, m.number(2)),
                  lambda m, i, a: [m.add(i, m.number(1)), m.mul(inner(m, a), x)], [m.number(0), x])[1]


def alternate(m, x, w):
    """A conditional in a loop: each branch uses other things from outside."""
    def body(m, i, a):
        is_even = m.less(m.floor_mod(i, m.number(2)), m.number(1))
        b = m.cond(is_even, lambda m: m.matmul(a, w), lambda m: m.mul(m.sin(a), x))
        return [m.add(i, m.number(1)), m.add(a, b)]
    return m.loop(lambda m, i, a: m.less(i, m.number(5)), body, [m.number(0), x])[1]


def choose(m, x, w):
    """A loop in one branch of a conditional, a constant factor in the other."""
    pred = m.greater(m.total(x), m.number(0.0))
    return m.cond(pred, lambda m: powers(m, x, w), lambda m: m.mul(m.square(w), m.number(3.0)))


@pytest.mark.parametrize('threads', [1, 3])
@pytest.mark.parametrize('sign', [1, -1])
@pytest.mark.parametrize('program', [powers, until_large, nested, alternate, choose], ids=lambda p: p.__name__)
def test_program(program, sign, threads):
    feeds = {'x:0': sign * (random_values([3, 3], np.float32, 1) + 0.2), 'w:0': random_values([3, 3], np.float32, 2)}
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.disable_control_flow_v2()
        x, w = v1.placeholder(tf.float32, [3, 3], 'x'), v1.placeholder(tf.float32, [3, 3], 'w')
        definition = placeholders_only(graph)
        y = program(TensorFlow, x, w)
        grads = v1.gradients(tf.square(y), [x, w])
        expected = session.run([y] + grads, feeds)
    model = Model(definition, threads=threads)
    try:
        x, w = model.edge('x:0'), model.edge('w:0')
        y = program(Weir(model), x, w)
        grads = model.gradients([model.op('square', y)], [x, w])
        check(model.run([y] + grads, feeds), expected, 3e-5)
    finally:
        model.close()


# ---- TensorFlow runs what Weir has built ----

def exported(model):
    """The GraphDef of a Weir graph."""
    data, size = ctypes.c_char_p(), ctypes.c_size_t()
    model.lib.check(model.c.weir_graph_to_def(model.graph, ctypes.byref(data), ctypes.byref(size)))
    definition = v1.GraphDef.FromString(ctypes.string_at(data, size.value))
    model.c.weir_buffer_free(data)
    return definition


def named(model, edge):
    return f'{model.c.weir_node_name(POINTER(edge.node)).decode()}:{edge.index}'


@pytest.mark.parametrize('program', [powers, until_large, nested, alternate, choose], ids=lambda p: p.__name__)
def test_tensorflow_runs_the_exported_graph(program):
    """With gradients: their loops have constants, too."""
    feeds = {'x:0': random_values([3, 3], np.float32, 1) + 0.2, 'w:0': random_values([3, 3], np.float32, 2)}
    with tf.Graph().as_default() as graph:
        v1.placeholder(tf.float32, [3, 3], 'x'), v1.placeholder(tf.float32, [3, 3], 'w')
    model = Model(placeholders_only(graph))
    try:
        x, w = model.edge('x:0'), model.edge('w:0')
        y = program(Weir(model), x, w)
        fetches = [y] + model.gradients([model.op('square', y)], [x, w])
        expected = model.run(fetches, feeds)
        definition, names = exported(model), [named(model, edge) for edge in fetches]
    finally:
        model.close()
    config = v1.ConfigProto()
    if program is nested:  # with TensorFlow's loop optimizer a pop of the nested gradient finds its stack empty
        config.graph_options.rewrite_options.loop_optimization = 2  # off
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        v1.import_graph_def(definition, name='')
        check(session.run(names, feeds), expected, 3e-5)
    again = Model(definition)  # and Weir itself
    try:
        check(again.run([again.edge(name) for name in names], feeds), expected, 1e-6)
    finally:
        again.close()
