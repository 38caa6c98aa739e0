"""Gradients through control flow equal TensorFlow's: the same GraphDef, differentiated by Weir and by tf.gradients.

Weir is called through its C API. Where TensorFlow has no gradient (second derivatives of loops), the numbers are checked
against differences.
"""
import ctypes
import os
import pathlib

import numpy as np
import pytest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
tf = pytest.importorskip('tensorflow')
v1 = tf.compat.v1

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev'))


# ---- Weir through ctypes ----

class Edge(ctypes.Structure):
    _fields_ = [('node', ctypes.c_void_p), ('index', ctypes.c_int)]


class Feed(ctypes.Structure):
    _fields_ = [('edge', Edge), ('tensor', ctypes.c_void_p)]


class Step(ctypes.Structure):
    _fields_ = [('feeds', ctypes.POINTER(Feed)), ('feed_count', ctypes.c_int), ('fetches', ctypes.POINTER(Edge)),
                ('fetch_count', ctypes.c_int), ('targets', ctypes.POINTER(ctypes.c_void_p)), ('target_count', ctypes.c_int)]


class Options(ctypes.Structure):
    _fields_ = [('target', ctypes.c_char_p), ('device_filters', ctypes.c_char_p), ('threads', ctypes.c_int),
                ('disabled_passes', ctypes.c_char_p), ('devices', ctypes.c_char_p),
                ('place', ctypes.c_char_p), ('rates', ctypes.c_char_p),
                ('mixed_precision', ctypes.c_char_p), ('allow_soft_placement', ctypes.c_bool), ('isolate_state', ctypes.c_bool),
                ('tls_ca', ctypes.c_char_p), ('tls_cert', ctypes.c_char_p), ('tls_key', ctypes.c_char_p),
                ('token_file', ctypes.c_char_p)]


class WeirError(Exception):
    def __init__(self, code, message):
        super().__init__(f'{code}: {message}')
        self.code = code


def load():
    lib = ctypes.CDLL(str(BUILD / 'libweir.so'))
    pointers = ['weir_graph_create', 'weir_graph_import_def', 'weir_graph_find_output', 'weir_scope_create',
                'weir_scope_finish', 'weir_gradients', 'weir_session_create', 'weir_session_run', 'weir_tensor_create_from',
                'weir_tensor_data', 'weir_graph_find_node']
    for name in pointers:
        getattr(lib, name).restype = ctypes.c_void_p
    lib.weir_status_message.restype = ctypes.c_char_p
    lib.weir_tensor_dim.restype = ctypes.c_int64
    return lib


LIB = load()


def check(status):
    if not status:
        return
    status = ctypes.c_void_p(status)
    error = WeirError(LIB.weir_status_code(status), LIB.weir_status_message(status).decode())
    LIB.weir_status_destroy(status)
    raise error


class Weir:
    """A graph, differentiated and run."""

    def __init__(self, graph_def):
        data = graph_def.SerializeToString()
        self.graph = ctypes.c_void_p()
        self.session = ctypes.c_void_p()
        check(LIB.weir_graph_create(ctypes.byref(self.graph)))
        check(LIB.weir_graph_import_def(self.graph, data, ctypes.c_size_t(len(data)), None))

    def __del__(self):
        LIB.weir_session_destroy(self.session)
        LIB.weir_graph_release(self.graph)

    def edge(self, name):
        edge = Edge()
        check(LIB.weir_graph_find_output(self.graph, name.encode(), ctypes.byref(edge)))
        return edge

    def gradients(self, ys, xs):
        """Edges, None where the ys do not depend on an x."""
        ys = (Edge * len(ys))(*ys)
        xs = (Edge * len(xs))(*xs)
        out = (Edge * len(xs))()
        scope = ctypes.c_void_p(LIB.weir_scope_create(self.graph))
        status = LIB.weir_gradients(scope, ys, len(ys), xs, len(xs), None, out)
        try:
            check(status)
        finally:
            check(LIB.weir_scope_finish(scope))
        return [Edge(e.node, e.index) if e.node else None for e in out]

    def run(self, fetches, feeds, targets=(), threads=2):
        if not self.session:
            options = Options(threads=threads)
            check(LIB.weir_session_create(self.graph, ctypes.byref(options), ctypes.byref(self.session)))
        feeds = [Feed(self.edge(name), to_tensor(value)) for name, value in feeds.items()]
        step = Step((Feed * len(feeds))(*feeds), len(feeds), (Edge * len(fetches))(*fetches), len(fetches),
                    (ctypes.c_void_p * len(targets))(*[LIB.weir_graph_find_node(self.graph, t.encode()) for t in targets]),
                    len(targets))
        results = (ctypes.c_void_p * len(fetches))()
        status = LIB.weir_session_run(self.session, ctypes.byref(step), results)
        for feed in feeds:
            LIB.weir_tensor_release(ctypes.c_void_p(feed.tensor))
        check(status)
        return [from_tensor(r) for r in results]


def to_tensor(value):
    value = np.array(value, order='C')
    tensor = ctypes.c_void_p()
    dims = (ctypes.c_int64 * max(value.ndim, 1))(*value.shape)
    check(LIB.weir_tensor_create_from(tf.as_dtype(value.dtype).as_datatype_enum, value.ndim, dims,
                                      value.ctypes.data_as(ctypes.c_void_p), ctypes.byref(tensor)))
    return tensor.value


def from_tensor(pointer):
    tensor = ctypes.c_void_p(pointer)
    dtype = tf.as_dtype(LIB.weir_tensor_dtype(tensor)).as_numpy_dtype
    shape = [LIB.weir_tensor_dim(tensor, i) for i in range(LIB.weir_tensor_rank(tensor))]
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    data = ctypes.string_at(LIB.weir_tensor_data(tensor), size) if size else b''
    LIB.weir_tensor_release(tensor)
    return np.frombuffer(data, dtype).reshape(shape).copy()


# ---- comparing ----

def build(model, functional=False):
    """model() returns (y, xs, feeds): tensors, and values by placeholder. Gives the graph as it was before gradients."""
    graph = tf.Graph()
    RNG.seed(7)
    (v1.enable_control_flow_v2 if functional else v1.disable_control_flow_v2)()
    try:
        with graph.as_default():
            y, xs, feeds = model()
            graph_def = graph.as_graph_def()
    finally:
        v1.disable_control_flow_v2()
    return graph, graph_def, y, xs, feeds


def tensorflow_gradients(graph, y, xs, feeds, order=1, init=None):
    with graph.as_default():
        for _ in range(order):
            grads = v1.gradients(y, xs)
            y = [g for g in grads if g is not None]
        grads = [tf.convert_to_tensor(g) if g is not None else None for g in grads]
        with v1.Session(graph=graph) as session:
            if init:
                session.run(init)
            return [None if g is None else session.run(g, feeds) for g in grads]


def by_name(feeds):
    return {t.name: np.asarray(v, t.dtype.as_numpy_dtype) for t, v in feeds.items()}


def compare(model, functional=False, order=1, init=None, rtol=1e-5):
    graph, graph_def, y, xs, feeds = build(model, functional)
    names = by_name(feeds)
    w = Weir(graph_def)
    ys = [w.edge(y.name)]
    for _ in range(order):
        grads = w.gradients(ys, [w.edge(x.name) for x in xs])
        ys = [g for g in grads if g is not None]
    if init:
        w.run([], {}, targets=[init])
    got = iter(w.run(ys + [w.edge(y.name)], names))
    got = [None if g is None else next(got) for g in grads] + [next(got)]
    with v1.Session(graph=graph) as session:
        if init:
            session.run(init)
        np.testing.assert_allclose(got[-1], session.run(y, feeds), rtol=rtol, atol=1e-6)
    want = tensorflow_gradients(graph, y, xs, feeds, order, init)
    for i, (a, b) in enumerate(zip(got, want)):
        assert (a is None) == (b is None), f'x {i}: Weir {a}, TensorFlow {b}'
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6, err_msg=f'x {i}')
    return w


def differences(w, ys, name, feeds, eps=1e-5):
    """The gradient of the sum of |ys| by central differences."""
    out = np.zeros(np.shape(feeds[name]))
    for index in np.ndindex(*out.shape):
        sides = []
        for sign in (1, -1):
            moved = dict(feeds)
            moved[name] = np.array(feeds[name])
            moved[name][index] += sign * eps
            sides.append(sum(np.sum(v, dtype=np.float64) for v in w.run(ys, moved)))
        out[index] = (sides[0] - sides[1]) / (2 * eps)
    return out


def compare_with_differences(model, functional=False, order=1, rtol=1e-4):
    """For what TensorFlow gets wrong or refuses. The values themselves are still compared with it."""
    graph, graph_def, y, xs, feeds = build(model, functional)
    names = by_name(feeds)
    w = Weir(graph_def)
    ys = [w.edge(y.name)]
    with v1.Session(graph=graph) as session:
        try:
            want = session.run(y, feeds)
        except tf.errors.InvalidArgumentError:
            pytest.skip("TensorFlow does not run this one")
        np.testing.assert_allclose(w.run(ys, names)[0], want, rtol=1e-9)
    for _ in range(order):
        before = ys
        grads = w.gradients(ys, [w.edge(x.name) for x in xs])
        ys = [g for g in grads if g is not None]
    for x, grad in zip(xs, grads):
        got = w.run([grad], names)[0] if grad else np.zeros(np.shape(names[x.name]))
        np.testing.assert_allclose(got, differences(w, before, x.name, names), rtol=rtol, atol=1e-6)


RNG = np.random.RandomState(7)


def arg(*shape, dtype=np.float32, scale=1.0, unknown=False):
    value = np.asarray(RNG.standard_normal(shape) * scale, dtype)
    return v1.placeholder(dtype, None if unknown else shape), value


BOTH = pytest.mark.parametrize('functional', [False, True], ids=['v1', 'v2'])


# ---- conditionals ----

@BOTH
@pytest.mark.parametrize('taken', [True, False])
def test_cond(functional, taken):
    def model():
        (x, xv), (z, zv) = arg(3), arg(3)
        p = v1.placeholder(tf.bool, [])
        y = v1.cond(p, lambda: x * x * z, lambda: tf.sin(x))
        return tf.reduce_sum(y * x), [x, z], {x: xv, z: zv, p: taken}
    compare(model, functional)


@BOTH
@pytest.mark.parametrize('value', [-1.0, 0.5, 3.0])
def test_cond_nested(functional, value):
    def model():
        x = v1.placeholder(tf.float32, [])
        y = v1.cond(x > 0, lambda: v1.cond(x > 1, lambda: x * x, lambda: tf.exp(x)) * x, lambda: 3 * x)
        return y, [x], {x: value}
    compare(model, functional)


@BOTH
@pytest.mark.parametrize('taken', [True, False])
def test_cond_branch_without_gradient(functional, taken):
    def model():
        x, xv = arg(2, 2)
        p = v1.placeholder(tf.bool, [])
        y = v1.cond(p, lambda: tf.matmul(x, x), lambda: tf.ones([2, 2]))
        return y + x, [x], {x: xv, p: taken}
    compare(model, functional)


@pytest.mark.parametrize('index', [0, 1, 2, 7])
def test_case(index):
    def model():
        x, xv = arg(4)
        i = v1.placeholder(tf.int32, [])
        y = tf.switch_case(i, [lambda: x * x, lambda: tf.sin(x), lambda: 2 * x])
        return y, [x], {x: xv, i: index}
    compare(model, functional=True)


@BOTH
@pytest.mark.parametrize('taken', [True, False])
def test_cond_second_derivative(functional, taken):
    def model():
        x, xv = arg(3, scale=0.5)
        p = v1.placeholder(tf.bool, [])
        y = v1.cond(p, lambda: x * x * x, lambda: tf.exp(x) * x)
        return tf.reduce_sum(y), [x], {x: xv, p: taken}
    compare(model, functional, order=2)


# ---- plain graphs and functions ----

def test_second_and_third_derivatives():
    def model():
        (x, xv), (a, av) = arg(3, 3, scale=0.3), arg(3)
        y = tf.reduce_sum(tf.sin(tf.matmul(x, x)) * a + tf.tanh(x) ** 3 + tf.nn.softmax(x))
        return y, [x, a], {x: xv, a: av}
    compare(model, order=2, rtol=1e-4)
    compare(model, order=3, rtol=1e-4)


@pytest.mark.parametrize('op', ['Assign', 'ScatterAdd', 'LookupTableFindV2', 'ParameterizedTruncatedNormal'])
def test_op_that_ends_gradients(op):
    """What TensorFlow says is not differentiable is none, and no error."""
    def model():
        x = v1.placeholder(tf.float32, [2], name='x')
        v = tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32)
        table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.float32)
        ended = {'Assign': lambda: tf.raw_ops.Assign(ref=v, value=x),
                 'ScatterAdd': lambda: tf.raw_ops.ScatterAdd(ref=tf.raw_ops.Assign(ref=v, value=tf.ones(2)), indices=[0, 1], updates=x),
                 'LookupTableFindV2': lambda: tf.raw_ops.LookupTableFindV2(table_handle=table, keys=np.int64([1, 2]),
                                                                           default_value=x[0]),
                 'ParameterizedTruncatedNormal': lambda: tf.raw_ops.ParameterizedTruncatedNormal(
                     shape=[2], means=x[0], stdevs=1.0, minvals=-5.0, maxvals=5.0, seed=1, seed2=2)}[op]()
        return tf.reduce_sum(ended * x), [x], {x: np.array([1.0, 2.0], np.float32)}
    compare(model)


def test_x_of_an_op_without_gradient():
    def model():
        x = tf.bitcast(v1.placeholder(tf.int32, [2], name='bits'), tf.float32)
        return x * x, [x], {x.graph.get_tensor_by_name('bits:0'): np.array([1 << 29, 1 << 30], np.int32)}
    compare(model)


@BOTH
def test_partitioned_call(functional):
    def model():
        (x, xv), (z, zv) = arg(2, 3), arg(3, 2)

        @tf.function
        def inner(a):
            return tf.sin(a) * a

        @tf.function
        def f(a, b):
            return inner(tf.matmul(a, b)), a * 2

        u, v = f(x, z)
        return tf.reduce_sum(u) + tf.reduce_sum(v * v), [x, z], {x: xv, z: zv}
    compare(model, functional)


def test_call_second_derivative():
    def model():
        x, xv = arg(3)

        @tf.function
        def f(a):
            return tf.exp(a) * a

        return f(x), [x], {x: xv}
    compare(model, order=2)


def test_stateful_call_runs_once():
    def model():
        x, xv = arg()
        v = v1.get_variable('v', initializer=np.float32(1), use_resource=True)

        @tf.function
        def f(a):
            v.assign_add(1.0)
            return a * a * v.read_value()

        with tf.control_dependencies(None):
            v1.global_variables_initializer()
        return f(x), [x, v.handle], {x: xv}
    graph, graph_def, y, xs, feeds = build(model, functional=True)
    w = Weir(graph_def)
    names = by_name(feeds)
    grads = w.gradients([w.edge(y.name)], [w.edge(x.name) for x in xs])
    w.run([], {}, targets=['init'])
    value, dx, dv = w.run([w.edge(y.name)] + grads, names)
    x = float(list(feeds.values())[0])
    np.testing.assert_allclose([value, dx, dv], [2 * x * x, 4 * x, x * x], rtol=1e-5)


# ---- loops ----

@BOTH
@pytest.mark.parametrize('n', [0, 1, 4])
def test_power_loop(functional, n):
    def model():
        x, xv = arg(3)
        k = v1.placeholder(tf.int32, [])
        y = v1.while_loop(lambda i, v: i < k, lambda i, v: (i + 1, v * v), [0, x])[1]
        return y, [x], {x: xv, k: n}
    compare(model, functional)


@BOTH
def test_loop_with_invariant(functional):
    def model():
        (x, xv), (w, wv), (b, bv) = arg(2, 3), arg(3, 3, scale=0.5), arg(3)
        y = v1.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + b)), [0, x])[1]
        return tf.reduce_sum(y * y), [x, w, b], {x: xv, w: wv, b: bv}
    compare(model, functional)


@BOTH
def test_loop_of_unknown_shapes(functional):
    def model():
        (x, xv), (b, bv) = arg(2, 3, unknown=True), arg(3, unknown=True)
        body = lambda i, h: (i + 1, tf.sin(h) * b + h)
        y = v1.while_loop(lambda i, h: i < 3, body, [0, x], [tf.TensorShape([]), tf.TensorShape(None)])[1]
        return tf.reduce_sum(y), [x, b], {x: xv, b: bv}
    compare(model, functional)


@BOTH
def test_loop_variables_exchanged(functional):
    """TensorFlow's functional loops get this one wrong."""
    def model():
        (a, av), (b, bv) = arg(2, dtype=np.float64), arg(2, dtype=np.float64)
        _, p, q, r = v1.while_loop(lambda i, a, b, c: i < 6, lambda i, a, b, c: (i + 1, b, a * b * 0.5, c + a),
                                   [0, a, b, tf.zeros([2], tf.float64)])
        return tf.reduce_sum(p + 2 * q + 3 * r), [a, b], {a: av, b: bv}
    compare_with_differences(model, functional)


@BOTH
def test_loop_condition_by_value(functional):
    def model():
        x, xv = arg()
        y = v1.while_loop(lambda v: v < 100.0, lambda v: v * (x + 2), [tf.abs(x) + 1.0])
        y = y[0] if isinstance(y, (list, tuple)) else y
        return y, [x], {x: np.abs(xv)}
    compare(model, functional)


@BOTH
def test_loop_variable_reset(functional):
    def model():
        x, xv = arg(2)
        y = v1.while_loop(lambda i, a, s: i < 4, lambda i, a, s: (i + 1, tf.sin(x) * tf.cast(i, tf.float32), s + a * a),
                          [0, x, tf.zeros([2])])
        return tf.reduce_sum(y[2]) + tf.reduce_sum(y[1]), [x], {x: xv}
    compare(model, functional)


@BOTH
def test_nested_loops(functional):
    def model():
        (x, xv), (w, wv) = arg(2, scale=0.5), arg(2)

        def outer(i, h):
            inner = v1.while_loop(lambda j, g: j < i + 2, lambda j, g: (j + 1, tf.sin(g) * w + h), [0, h])[1]
            return i + 1, inner * h

        y = v1.while_loop(lambda i, h: i < 3, outer, [0, x])[1]
        return y, [x, w], {x: xv, w: wv}
    compare(model, functional)


@BOTH
def test_three_nested_loops(functional):
    def model():
        x, xv = arg(scale=0.5)

        def innermost(k, v):
            return k + 1, tf.sin(v) + x

        def inner(j, v):
            return j + 1, v1.while_loop(lambda k, v: k < j + 1, innermost, [0, v])[1] * v

        def outer(i, v):
            return i + 1, v1.while_loop(lambda j, v: j < 2, inner, [0, v])[1]

        return v1.while_loop(lambda i, v: i < 2, outer, [0, x])[1], [x], {x: xv}
    compare(model, functional)


@BOTH
def test_cond_in_loop(functional):
    def model():
        (x, xv), (w, wv) = arg(3, scale=0.5), arg(3)

        def body(i, v):
            u = v1.cond(tf.equal(i % 2, 0), lambda: tf.sin(v) * w, lambda: v * v + v1.cond(i > 2, lambda: w * v, lambda: v))
            return i + 1, u + 1.0

        y = v1.while_loop(lambda i, v: i < 5, body, [0, x])[1]
        return y, [x, w], {x: xv, w: wv}
    compare(model, functional)


@BOTH
@pytest.mark.parametrize('taken', [True, False])
def test_loop_in_cond(functional, taken):
    def model():
        x, xv = arg(3)
        p = v1.placeholder(tf.bool, [])
        loop = lambda: v1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), [0, x])[1]
        return v1.cond(p, loop, lambda: 2 * x), [x], {x: xv, p: taken}
    compare(model, functional)


@BOTH
def test_loop_in_cond_in_loop(functional):
    def model():
        x, xv = arg(2, scale=0.7)

        def body(i, v):
            inner = lambda: v1.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, tf.sin(u) * x), [0, v])[1]
            return i + 1, v1.cond(tf.equal(i % 2, 1), inner, lambda: v * v + x)

        return v1.while_loop(lambda i, v: i < 5, body, [0, x])[1], [x], {x: xv}
    compare(model, functional)


@BOTH
def test_gather_in_loop(functional):
    def model():
        (x, xv), (table, tv) = arg(3), arg(5, 3)
        y = v1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * tf.gather(table, [i])[0]), [0, x])[1]
        return y, [x, table], {x: xv, table: tv}
    compare(model, functional)


@pytest.mark.parametrize('indices', [[[0, 1]], [[0], [2]], [[0, 1], [2, 0]], [[[1, 1]]]], ids=str)
@pytest.mark.parametrize('op', ['ResourceGather', 'ResourceGatherNd'])
def test_gather_of_a_variable(op, indices):
    def model():
        w = v1.get_variable('w', initializer=np.float32(RNG.standard_normal([3, 2])), use_resource=True)
        v1.global_variables_initializer()
        y = getattr(tf.raw_ops, op)(resource=w.handle, indices=indices, dtype=tf.float32)
        return tf.reduce_sum(y * y), [w.handle], {}
    compare(model, init='init')


@BOTH
def test_variable_in_loop(functional):
    def model():
        x, xv = arg(2, 3)
        w = v1.get_variable('w', initializer=np.float32(RNG.standard_normal([3, 3])), use_resource=True)
        v1.global_variables_initializer()
        y = v1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.sigmoid(tf.matmul(v, w))), [0, x])[1]
        return tf.reduce_sum(y * y), [x, w.handle], {x: xv}
    graph, graph_def, y, xs, feeds = build(model, functional)
    w = Weir(graph_def)
    names = by_name(feeds)
    grads = w.gradients([w.edge(y.name)], [w.edge(x.name) for x in xs])
    w.run([], {}, targets=['init'])
    got = w.run(grads, names)
    with graph.as_default():
        want = v1.gradients(y, xs)
        with v1.Session(graph=graph) as session:
            session.run('init')
            want = session.run(want, feeds)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class Program:
    """A random program over vectors: arithmetic, conditionals and loops within each other."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def value(self, depth, env, i):
        kinds = ['unary', 'binary', 'binary', 'cond', 'loop', 'loop', 'array'] if depth > 0 else ['leaf']
        return getattr(self, self.rng.choice(kinds))(depth, env, i)

    def leaf(self, depth, env, i):
        return env[self.rng.randint(len(env))]

    def unary(self, depth, env, i):
        return [tf.sin, tf.tanh, tf.sigmoid, tf.identity][self.rng.randint(4)](self.value(depth - 1, env, i))

    def binary(self, depth, env, i):
        op = [tf.multiply, tf.add, tf.subtract][self.rng.randint(3)]
        return op(self.value(depth - 1, env, i), self.value(depth - 1, env, i))

    def cond(self, depth, env, i):
        pred = [lambda: tf.equal(i % 2, 0), lambda: tf.reduce_sum(env[0]) > 0][self.rng.randint(2)]()
        return v1.cond(pred, lambda: self.value(depth - 1, env, i), lambda: self.value(depth - 1, env, i))

    def loop(self, depth, env, i):
        limit = self.rng.randint(4)

        def body(j, a, b):
            inner = env + [a, b]
            return j + 1, tf.tanh(self.value(depth - 1, inner, j)), tf.sin(self.value(depth - 1, inner, j)) + 0.1 * b

        start = [0, self.value(depth - 1, env, i), self.value(depth - 1, env, i)]
        return v1.while_loop(lambda j, a, b: j < limit, body, start)[1 + self.rng.randint(2)]

    def array(self, depth, env, i):
        array = tf.TensorArray(tf.float64, 3, element_shape=env[0].shape)

        def body(j, out):
            return j + 1, out.write(j, self.value(depth - 1, env, j))

        return tf.reduce_sum(v1.while_loop(lambda j, out: j < 3, body, [0, array])[1].stack(), 0)


@BOTH
@pytest.mark.parametrize('seed', range(int(os.environ.get('WEIR_SEEDS', 12))))
def test_random_programs(functional, seed):
    def model():
        program = Program(seed)
        (x, xv), (z, zv) = arg(2, dtype=np.float64), arg(2, dtype=np.float64)
        i = v1.placeholder(tf.int32, [])
        y = program.value(3, [x, z], i) + 0.5 * program.value(2, [z, x], i)
        return tf.reduce_sum(y), [x, z], {x: xv, z: zv, i: seed % 3}
    compare_with_differences(model, functional)


# ---- arrays and lists ----

@BOTH
def test_rnn_with_arrays(functional):
    def model():
        (x, xv), (w, wv), (u, uv) = arg(5, 2, 3), arg(4, 4, scale=0.5), arg(3, 4, scale=0.5)
        steps = 5
        inputs = tf.TensorArray(tf.float32, steps).unstack(x)
        outputs = tf.TensorArray(tf.float32, steps)

        def body(t, h, out):
            h = tf.tanh(tf.matmul(h, w) + tf.matmul(inputs.read(t), u))
            return t + 1, h, out.write(t, h)

        _, h, outputs = v1.while_loop(lambda t, h, o: t < steps, body, [0, tf.zeros([2, 4]), outputs])
        return tf.reduce_sum(outputs.stack() ** 2) + tf.reduce_sum(h), [x, w, u], {x: xv, w: wv, u: uv}
    compare(model, functional)


@BOTH
def test_array_outside_loop(functional):
    def model():
        (x, xv), (z, zv) = arg(3), arg(3)
        array = tf.TensorArray(tf.float32, 2).write(0, x * z).write(1, tf.sin(x))
        return tf.reduce_sum(array.stack() * z), [x, z], {x: xv, z: zv}
    compare(model, functional)


def test_two_gradients_in_one_step():
    """Each construction has its own gradient arrays: they do not add to each other's."""
    def model():
        x, xv = arg(4, 2)
        array = tf.TensorArray(tf.float32, 4).unstack(x)
        out = tf.TensorArray(tf.float32, 4)
        out = v1.while_loop(lambda t, o: t < 4, lambda t, o: (t + 1, o.write(t, array.read(t) ** 2)), [0, out])[1]
        return tf.reduce_sum(out.stack()), [x], {x: xv}
    graph, graph_def, y, xs, feeds = build(model)
    w = Weir(graph_def)
    names = by_name(feeds)
    first = w.gradients([w.edge(y.name)], [w.edge(x.name) for x in xs])
    second = w.gradients([w.edge(y.name)], [w.edge(x.name) for x in xs])
    a, b = w.run(first + second, names)
    x = list(feeds.values())[0]
    np.testing.assert_allclose(a, 2 * x, rtol=1e-5)
    np.testing.assert_allclose(b, 2 * x, rtol=1e-5)


def test_scan():
    def model():
        (x, xv), (w, wv) = arg(6, 3), arg(3)
        y = tf.scan(lambda a, e: tf.sin(a) * w + e, x)
        return tf.reduce_sum(y * y), [x, w], {x: xv, w: wv}
    compare(model)
    compare(model, functional=True)


# ---- second derivatives of loops: TensorFlow's V1 loops have none ----

@BOTH
def test_second_derivative_of_loop(functional):
    def model():
        x, xv = arg(2, dtype=np.float64, scale=0.5)
        w, wv = arg(2, dtype=np.float64)
        y = v1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, tf.sin(v) * w + v * v), [0, x])[1]
        return tf.reduce_sum(y), [x, w], {x: xv, w: wv}
    compare_with_differences(model, functional, order=2)


@BOTH
def test_second_derivative_of_loop_with_cond(functional):
    def model():
        x, xv = arg(2, dtype=np.float64, scale=0.5)

        def body(i, v):
            return i + 1, v1.cond(tf.equal(i % 2, 0), lambda: tf.sin(v) * x, lambda: v * v * v + x)

        y = v1.while_loop(lambda i, v: i < 4, body, [0, x])[1]
        return tf.reduce_sum(y), [x], {x: xv}
    compare_with_differences(model, functional, order=2)


def rnn_of_arrays():
    (x, xv), (w, wv) = arg(3, 2, dtype=np.float64), arg(2, dtype=np.float64)
    inputs = tf.TensorArray(tf.float64, 3).unstack(x)
    outputs = tf.TensorArray(tf.float64, 3)

    def body(t, h, out):
        h = tf.tanh(h * w + inputs.read(t))
        return t + 1, h, out.write(t, h)

    start = [0, tf.zeros([2], tf.float64), outputs]
    outputs = v1.while_loop(lambda t, h, o: t < 3, body, start)[2]
    return tf.reduce_sum(outputs.stack() ** 2), [x, w], {x: xv, w: wv}


def test_second_derivative_of_lists():
    compare_with_differences(rnn_of_arrays, functional=True, order=2)


def test_second_derivative_of_arrays_is_refused():
    with pytest.raises(WeirError) as error:
        compare_with_differences(rnn_of_arrays, order=2)
    assert error.value.code == 12 and 'TensorArray' in str(error.value)


def test_second_derivative_of_nested_loops_is_refused():
    def model():
        x, xv = arg(2)

        def outer(i, h):
            return i + 1, v1.while_loop(lambda j, g: j < 2, lambda j, g: (j + 1, tf.sin(g) * h), [0, h])[1]

        return v1.while_loop(lambda i, h: i < 2, outer, [0, x])[1], [x], {x: xv}
    _, graph_def, y, xs, _ = build(model)
    w = Weir(graph_def)
    first = w.gradients([w.edge(y.name)], [w.edge(x.name) for x in xs])
    with pytest.raises(WeirError) as error:
        w.gradients(first, [w.edge(x.name) for x in xs])
    assert error.value.code == 12  # UNIMPLEMENTED


# ---- errors ----

def test_x_inside_a_loop_is_refused():
    def model():
        x, xv = arg(2)
        inside = []

        def body(i, v):
            inside.append(v * v)
            return i + 1, inside[-1]

        y = v1.while_loop(lambda i, v: i < 2, body, [0, x])[1]
        return y, [inside[-1]], {x: xv}
    _, graph_def, y, xs, _ = build(model)
    w = Weir(graph_def)
    with pytest.raises(WeirError) as error:
        w.gradients([w.edge(y.name)], [w.edge(x.name) for x in xs])
    assert error.value.code == 3 and 'inside a loop' in str(error.value)


def test_custom_gradient_is_refused():
    def model():
        @tf.custom_gradient
        def f(a):
            return a * a, lambda dy: dy * 100

        x, xv = arg(2)
        return f(x), [x], {x: xv}
    _, graph_def, y, xs, _ = build(model)
    w = Weir(graph_def)
    with pytest.raises(WeirError) as error:
        w.gradients([w.edge(y.name)], [w.edge(x.name) for x in xs])
    assert error.value.code == 3 and 'No gradient defined' in str(error.value)


if __name__ == '__main__':
    raise SystemExit(pytest.main([__file__, '-q']))
