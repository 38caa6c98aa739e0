"""Layers, initialisers, losses and metrics give TensorFlow's values and gradients on the same weights. Needs tensorflow.

layers/cases.c, compiled as a user's program would be, writes one graph a case; each is run here beside TensorFlow's function.
"""
import ctypes
import os
import pathlib
import subprocess
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest
import tensorflow as tf

from conftest import BUILD, ROOT

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / 'oracle'))
import libweir  # noqa: E402

v1 = tf.compat.v1
rng = np.random.default_rng(1)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Where the graphs are."""
    path = tmp_path_factory.mktemp('layers')
    includes = [f'-I{ROOT}/include', f'-I{BUILD}/include']
    subprocess.run(['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', *includes, ROOT / 'tests' / 'layers' / 'cases.c', '-o',
                    path / 'cases', f'-L{BUILD}', '-lweir', f'-Wl,-rpath,{BUILD}'], check=True)
    subprocess.run([path / 'cases', path], check=True)
    return path


class Case:
    """A graph of Weir's, its variables initialised."""

    def __init__(self, folder, name):
        graph_def = v1.GraphDef.FromString((folder / f'{name}.pb').read_bytes())
        self.graph = libweir.Graph(libweir.Library(str(BUILD / 'libweir.so')), graph_def)
        self.names = [node.name for node in graph_def.node if node.op == 'VarHandleOp']
        self.graph.run_node('start')
        self.weights = {name: self.value(name) for name in self.names}

    def value(self, name):
        return self.graph.run([self.graph.edge(f'{name}/Read')])[0]

    def run(self, name, feeds):
        return self.graph.run([self.graph.edge(name)], feeds)[0]

    def gradients(self, output, inputs, dy, feeds):
        """Gradients by |inputs| and all trained variables, dense, by name; missing where there is none."""
        dy_edge = self.graph.edge('dy')
        names = inputs + self.names
        edges = self.graph.gradients([self.graph.edge(output)], [self.graph.edge(n) for n in names], [dy_edge])
        found = [(n, e) for n, e in zip(names, edges) if e is not None]
        return dict(zip([n for n, _ in found], self.graph.run([e for _, e in found], {**feeds, 'dy': dy})))


@pytest.fixture
def case(folder):
    """Opens a case by name."""
    opened = []

    def open_case(name):
        opened.append(Case(folder, name))
        return opened[-1]
    yield open_case
    for one in opened:
        one.graph.close()


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def expect(case, function, feeds, inputs=('x',), output='y', rtol=2e-5, atol=2e-5):
    """function(feeds as tensors, weights as tensors) in TensorFlow against |output|, and the gradients of both."""
    feed_tensors = {n: tf.constant(a) for n, a in feeds.items()}
    weights = {n: tf.Variable(a) for n, a in case.weights.items()}
    with tf.GradientTape() as tape:
        for n in inputs:
            tape.watch(feed_tensors[n])
        expected = function(feed_tensors, weights)
    dy = rng.normal(size=expected.shape).astype(np.float32)
    names = list(inputs) + list(weights)
    grads = tape.gradient(expected, [feed_tensors[n] for n in inputs] + list(weights.values()), output_gradients=tf.constant(dy))
    np.testing.assert_allclose(case.run(output, feeds), expected, rtol, atol)
    got = case.gradients(output, list(inputs), dy, feeds)
    for n, g in zip(names, grads):
        if g is None:
            assert n not in got, n
        else:
            np.testing.assert_allclose(got[n], tf.convert_to_tensor(g), rtol, atol, err_msg=n)


# ---- initialisers ----

INITIALIZERS = {
    'zeros': lambda d: v1.zeros_initializer(dtype=d), 'ones': lambda d: v1.ones_initializer(dtype=d),
    'constant': lambda d: v1.constant_initializer(1.5, dtype=d), 'uniform': lambda d: v1.random_uniform_initializer(-2, 3, 11, d),
    'normal': lambda d: v1.random_normal_initializer(0.5, 2, 12, d),
    'truncated_normal': lambda d: v1.truncated_normal_initializer(-1, 0.5, 13, d),
    'glorot_uniform': lambda d: v1.glorot_uniform_initializer(14, d), 'glorot_normal': lambda d: v1.glorot_normal_initializer(15, d),
    'he_uniform': lambda d: v1.initializers.variance_scaling(2, 'fan_in', 'uniform', 16, d),
    'he_normal': lambda d: v1.initializers.variance_scaling(2, 'fan_in', 'truncated_normal', 17, d),
    'lecun_uniform': lambda d: v1.initializers.lecun_uniform(18), 'lecun_normal': lambda d: v1.initializers.lecun_normal(19),
    'scaled_out': lambda d: v1.initializers.variance_scaling(3, 'fan_out', 'untruncated_normal', 20, d),
    'identity': lambda d: v1.initializers.identity(2.5, d)}


@pytest.mark.parametrize('name', INITIALIZERS)
def test_initializer(case, name):
    weir = case('initializers')
    with tf.Graph().as_default(), v1.Session() as session:
        for suffix, shape, dtype in ('', (6, 4), tf.float32), ('_4d', (3, 2, 5, 4), tf.float32), ('_double', (7,), tf.float64):
            if name == 'identity' and suffix:
                continue
            expected = session.run(INITIALIZERS[name](dtype)(shape, dtype=dtype))
            got = weir.run(name + suffix, {})
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, 3e-7 if dtype == tf.float32 else 1e-15, 0)


@pytest.mark.parametrize('suffix, shape, dtype', [('', (6, 4), tf.float32), ('_wide', (3, 8), tf.float32),
                                                  ('_4d', (3, 2, 5, 4), tf.float64)])
def test_orthogonal_initializer(case, suffix, shape, dtype):
    got = case('initializers').run('orthogonal' + suffix, {})
    with tf.Graph().as_default(), v1.Session() as session:
        expected = session.run(v1.orthogonal_initializer(1.5, 21, dtype)(shape))
    np.testing.assert_allclose(got, expected, 0, 1e-5 if dtype == tf.float32 else 1e-13)
    flat = got.reshape(-1, shape[-1])
    flat = flat.T if flat.shape[0] < flat.shape[1] else flat
    np.testing.assert_allclose(flat.T @ flat, 1.5**2 * np.eye(flat.shape[1]), 0, 1e-5)


def test_initializer_with_graph_seed(case):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(99)
        np.testing.assert_array_equal(case('initializers').run('graph_seeded', {}), session.run(v1.random_normal([6], seed=5)))


# ---- layers ----

def conv(kind, **options):
    """conv(x, kernel) of tf.nn plus a bias where there is one."""
    def apply(feeds, weights):
        (kernel,) = [w for n, w in weights.items() if n.endswith('kernel')]
        y = kind(feeds['x'], kernel, **options)
        bias = [w for n, w in weights.items() if n.endswith('bias')]
        return tf.nn.bias_add(y, bias[0]) if bias else y
    return apply


def dense_deep(f, w):
    hidden = tf.nn.gelu(tf.tensordot(f['x'], w['hidden/kernel'], 1) + w['hidden/bias'])
    return tf.nn.silu(tf.tensordot(hidden, w['dense/kernel'], 1))


def conv2d_options(f, w):
    kernel = w['conv2d/kernel']  # TensorFlow has no gradient of a dilated convolution on CPUs: put zeros between its rows
    kernel = tf.reshape(tf.stack([kernel, tf.zeros_like(kernel)], 1), [6, 2, 3, 4])[:5]
    x = tf.nn.conv2d(f['x'], kernel, 1, 'SAME')
    return tf.nn.bias_add(tf.nn.conv2d(x, w['conv2d_1/kernel'], [2, 1], 'SAME'), w['conv2d_1/bias'])


def regularized(f, w):
    x = f['x'] @ w['dense/kernel'] + w['dense/bias']
    x = x @ w['dense_1/kernel'] + w['dense_1/bias']
    return (tf.reduce_mean(x ** 2) + tf.keras.regularizers.L2(0.25)(w['dense/kernel'])
            + tf.keras.regularizers.L1L2(0.5, 0.125)(w['dense_1/kernel']))


def separable(f, w):
    y = tf.nn.separable_conv2d(f['x'], w['separable_conv2d/depthwise_kernel'], w['separable_conv2d/pointwise_kernel'],
                               [1, 1, 1, 1], 'SAME')
    return tf.nn.bias_add(y, w['separable_conv2d/bias'])


def transpose(f, w):
    return tf.nn.bias_add(tf.nn.conv2d_transpose(f['x'], w['conv2d_transpose/kernel'], [3, 9, 11, 2], 2, 'VALID'),
                          w['conv2d_transpose/bias'])


def transpose_same(f, w):
    return tf.nn.bias_add(tf.nn.conv2d_transpose(f['x'], w['conv2d_transpose/kernel'], [3, 8, 15, 2], [2, 3], 'SAME'),
                          w['conv2d_transpose/bias'])


def layer_norm(f, w):
    layer = tf.keras.layers.LayerNormalization()
    layer.build(f['x'].shape)
    layer.gamma, layer.beta = w['layer_normalization/gamma'], w['layer_normalization/beta']
    return layer(f['x'])


def batch_norm_inference(f, w):
    p = 'batch_normalization/'
    return tf.nn.batch_normalization(f['x'], tf.stop_gradient(w[p + 'moving_mean']), tf.stop_gradient(w[p + 'moving_variance']),
                                     w[p + 'beta'], w[p + 'gamma'], 1e-3)


def pool(function, *args):
    return lambda f, w: function(f['x'], *args)


LAYERS = {
    'dense': (lambda f, w: tf.tanh(f['x'] @ w['dense/kernel'] + w['dense/bias']), (7, 5)),
    'dense_deep': (dense_deep, (2, 3, 5)),
    'dense_shared': (lambda f, w: f['x'] @ w['w'] @ w['w'] + w['dense_1/bias'], (4, 5)),
    'regularized': (regularized, (6, 5)),
    'conv1d': (conv(tf.nn.conv1d, stride=2, padding='SAME'), (3, 11, 3)),
    'conv2d': (lambda f, w: tf.nn.relu(conv(tf.nn.conv2d, strides=1, padding='VALID')(f, w)), (3, 9, 8, 3)),
    'conv2d_options': (conv2d_options, (3, 9, 8, 3)),
    'conv3d': (conv(tf.nn.conv3d, strides=[1, 1, 2, 1, 1], padding='SAME'), (2, 5, 6, 4, 2)),
    'conv2d_transpose': (transpose, (3, 4, 5, 3)),
    'conv2d_transpose_same': (transpose_same, (3, 4, 5, 3)),
    'depthwise_conv2d': (conv(tf.nn.depthwise_conv2d, strides=[1, 1, 1, 1], padding='VALID'), (3, 7, 6, 3)),
    'separable_conv2d': (separable, (3, 7, 6, 3)),
    'max_pool2d': (pool(tf.nn.max_pool2d, 2, 2, 'VALID'), (3, 9, 8, 3)),
    'average_pool2d': (pool(tf.nn.avg_pool2d, [3, 2], 2, 'SAME'), (3, 9, 8, 3)),
    'max_pool1d': (pool(tf.nn.max_pool1d, 3, 2, 'VALID'), (3, 9, 3)),
    'average_pool1d': (pool(tf.nn.avg_pool1d, 2, 2, 'VALID'), (3, 9, 3)),
    'global_average_pool': (pool(tf.reduce_mean, [1, 2]), (3, 5, 4, 3)),
    'global_max_pool': (pool(tf.reduce_max, [1]), (3, 5, 3)),
    'batch_norm_inference': (batch_norm_inference, (3, 5, 4, 3)),
    'layer_norm': (layer_norm, (4, 3, 6))}


@pytest.mark.parametrize('name', LAYERS)
def test_layer(case, name):
    function, shape = LAYERS[name]
    expect(case(name), function, {'x': normal(*shape)}, rtol=1e-4, atol=1e-4)


def test_flatten(case):
    weir, x = case('flatten'), normal(2, 3, 2, 4)
    np.testing.assert_array_equal(weir.run('y', {'x': x}), x.reshape(2, 24))
    np.testing.assert_array_equal(weir.run('y_any', {'any': x}), x.reshape(2, 24))
    np.testing.assert_array_equal(weir.run('y_partly', {'partly': x[0]}), x[0].reshape(3, 8))
    assert weir.run('y', {'x': x[:0]}).shape == (0, 24)
    assert weir.run('y_any', {'any': x[:0]}).shape == (0, 24)


# ---- batch normalisation and dropout ----

def batch_norm(fused, momentum=0.99, epsilon=1e-3):
    """TensorFlow's training step: output, and the moving averages afterwards."""
    def apply(f, w):
        w = {n.split('/')[1]: v for n, v in w.items()}
        x = f['x']
        size = x.shape[-1]
        gamma, beta = w.get('gamma', tf.ones(size)), w.get('beta', tf.zeros(size))
        if fused:
            y, mean, variance = v1.nn.fused_batch_norm(x, gamma, beta, epsilon=epsilon, is_training=True)
        else:
            mean, variance = tf.nn.moments(x, [0])
            y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)
        apply.averages = {n: w[n] * momentum + now * (1 - momentum)
                          for n, now in (('moving_mean', mean), ('moving_variance', variance))}
        return y
    return apply


def check_averages(weir, function, feeds):
    run_target(weir.graph, 'all_updates', feeds)
    for name, expected in function.averages.items():
        np.testing.assert_allclose(weir.value(f'batch_normalization/{name}'), expected, 1e-5, 1e-6)


def run_target(graph, name, feeds):
    """Runs a node with feeds."""
    node = graph.c.weir_graph_find_node(graph.graph, name.encode())
    tensors = [graph.lib.to_tensor(a) for a in feeds.values()]
    items = (libweir.Feed * len(feeds))(*[libweir.Feed(graph.edge(n), t) for n, t in zip(feeds, tensors)])
    targets = (ctypes.c_void_p * 1)(node)
    spec = libweir.StepSpec(feeds=items, feed_count=len(feeds), targets=targets, target_count=1)
    graph.lib.check(graph.c.weir_session_run(graph.session, ctypes.byref(spec), None))
    for t in tensors:
        graph.c.weir_tensor_release(t)


def test_batch_norm_training(case):
    weir, function, feeds = case('batch_norm_training'), batch_norm(True), {'x': normal(3, 5, 4, 3)}
    expect(weir, function, feeds, atol=1e-4)
    check_averages(weir, function, feeds)


def test_batch_norm_bare(case):
    weir, function, feeds = case('batch_norm_bare'), batch_norm(False), {'x': normal(9, 6)}
    assert weir.names == ['batch_normalization/moving_mean', 'batch_normalization/moving_variance']
    expect(weir, function, feeds, atol=1e-4)
    check_averages(weir, function, feeds)


def test_batch_norm_of_halves(case):
    weir, function, feeds = case('batch_norm_half'), batch_norm(True), {'x': normal(3, 5, 4, 3).astype(np.float16)}
    expect(weir, lambda f, w: tf.cast(function(f, w), tf.float32), feeds, rtol=2e-3, atol=2e-3)
    check_averages(weir, function, feeds)


@pytest.mark.parametrize('name', ['batch_norm_fed', 'batch_norm_vectors'])
def test_batch_norm_with_a_fed_choice(case, name):
    weir = case(name)
    is_fused = name == 'batch_norm_fed'
    momentum, epsilon = (0.75, 0.01) if is_fused else (0.99, 1e-3)
    feeds = {'x': normal(3, 5, 4, 3) if is_fused else normal(9, 6)}
    before = dict(weir.weights)
    still = {**feeds, 'training': np.array(False)}

    def inference(f, w):
        p = 'batch_normalization/'
        frozen = [tf.constant(before[p + n]) for n in ('moving_mean', 'moving_variance')]
        return tf.nn.batch_normalization(f['x'], *frozen, w[p + 'beta'], w[p + 'gamma'], epsilon)
    weir.names = [n for n in weir.names if 'moving' not in n]  # TensorFlow's statistics are no part of the function here
    weights, weir.weights = weir.weights, {n: weir.weights[n] for n in weir.names}
    expect(weir, inference, still, atol=1e-4)
    run_target(weir.graph, 'all_updates', still)
    for n in before:
        np.testing.assert_array_equal(weir.value(n), before[n])
    function = batch_norm(is_fused, momentum, epsilon)
    fixed = {n: tf.constant(a) for n, a in weights.items() if 'moving' in n}
    train = {**feeds, 'training': np.array(True)}
    expect(weir, lambda f, w: function(f, {**fixed, **w}), train, atol=1e-4)
    check_averages(weir, function, train)


def test_dropout(case):
    x = normal(6, 40)
    with tf.Graph().as_default(), v1.Session() as session:
        y = v1.nn.dropout(tf.constant(x), rate=0.25, seed=7)
        steps = [session.run(y) for _ in range(3)]
    weir = case('dropout')
    for expected in steps:
        np.testing.assert_allclose(weir.run('y', {'x': x}), expected, 1e-6)
    y, dy = weir.graph.edge('y'), normal(6, 40)
    grads = weir.graph.gradients([y], [weir.graph.edge('x')], [weir.graph.edge('dy')])
    value, grad = weir.graph.run([y, grads[0]], {'x': x, 'dy': dy})
    np.testing.assert_allclose(grad, np.where(value != 0, dy / 0.75, 0), 1e-6)


def test_dropout_with_a_fed_choice(case):
    weir, x, dy = case('dropout_fed'), normal(6, 40), normal(6, 40)
    np.testing.assert_array_equal(weir.run('y', {'x': x, 'training': np.array(False)}), x)
    with tf.Graph().as_default(), v1.Session() as session:
        expected = session.run(v1.nn.dropout(tf.constant(x), rate=0.25, seed=7))
    np.testing.assert_allclose(weir.run('y', {'x': x, 'training': np.array(True)}), expected, 1e-6)
    y = weir.graph.edge('y')
    grads = weir.graph.gradients([y], [weir.graph.edge('x')], [weir.graph.edge('dy')])
    for is_training in False, True:
        value, grad = weir.graph.run([y, grads[0]], {'x': x, 'dy': dy, 'training': np.array(is_training)})
        np.testing.assert_allclose(grad, np.where(value != 0, dy / 0.75, 0) if is_training else dy, 1e-6)


# ---- embeddings ----

def tables(weights, letter='t'):
    return [w for n, w in sorted(weights.items()) if n.startswith(letter)]


def lookup(**options):
    return lambda f, w: v1.nn.embedding_lookup(tables(w), f['ids'], **options)


EMBEDDINGS = {
    'embedding': lambda f, w: tf.nn.embedding_lookup(w['embedding/embeddings'], f['ids']),
    'embedding_max_norm': lambda f, w: tf.nn.embedding_lookup(w['t0'], f['ids'], max_norm=1.5),
    'embedding_mod': lookup(partition_strategy='mod'),
    'embedding_div': lookup(partition_strategy='div', max_norm=1.75)}


def check_sparse(weir, feeds, dy):
    """Gradients by all tables name rows, and no others than were used."""
    edges = [weir.graph.edge(n) for n in weir.names]
    grads = weir.graph.gradients_sparse([weir.graph.edge('y')], edges, [weir.graph.edge('dy')])
    dense = weir.gradients('y', [], dy, feeds)
    for name, grad in zip(weir.names, grads):
        assert grad.indices.node, f'{name}: dense'
        values, indices = weir.graph.run([grad.values, grad.indices], {**feeds, 'dy': dy})
        total = np.zeros_like(weir.weights[name])
        np.add.at(total, indices, values.reshape(len(indices), *total.shape[1:]))
        np.testing.assert_allclose(total, dense[name], 1e-5, 1e-6)


@pytest.mark.parametrize('name', EMBEDDINGS)
def test_embedding(case, name):
    weir = case(name)
    ids = np.array([[3, 9, 0], [3, 5, 7]], np.int64 if name == 'embedding_mod' else np.int32)
    expect(weir, EMBEDDINGS[name], {'ids': ids}, inputs=())
    check_sparse(weir, {'ids': ids}, normal(2, 3, 4))


def test_embedding_starts_as_keras_does(case):
    with tf.Graph().as_default(), v1.Session() as session:
        expected = session.run(v1.random_uniform([10, 4], -0.05, 0.05, seed=1))
    np.testing.assert_allclose(case('embedding').weights['embedding/embeddings'], expected, 1e-6)


@pytest.mark.parametrize('weighted', ['', '_weighted'])
@pytest.mark.parametrize('combiner', ['mean', 'sum', 'sqrtn'])
def test_embedding_lookup_sparse(case, combiner, weighted):
    weir = case(f'sparse_{combiner}{weighted}')
    feeds = {'indices': np.array([[0, 0], [0, 1], [1, 0], [2, 1], [2, 3], [2, 4]]), 'ids': np.array([1, 9, 4, 1, 1, 6])}
    if weighted:
        feeds['weights'] = np.array([1, 0.5, 0, 2, -1, 3], np.float32)

    def function(f, w):
        sparse = tf.SparseTensor(f['indices'], f['ids'], [3, 5])
        weights = tf.SparseTensor(f['indices'], f['weights'], [3, 5]) if weighted else None
        return v1.nn.embedding_lookup_sparse(tables(w), sparse, weights, partition_strategy='mod', combiner=combiner)
    expect(weir, function, feeds, inputs=('weights',) if weighted else ())
    check_sparse(weir, feeds, normal(3, 4))


# ---- losses ----

NONE, SUM, MEAN, BATCH = (getattr(v1.losses.Reduction, n) for n in ('NONE', 'SUM', 'MEAN', 'SUM_OVER_BATCH_SIZE'))
L = v1.losses
LOSSES = {
    'softmax': lambda f: L.softmax_cross_entropy(f['labels'], f['x']),
    'softmax_weighted': lambda f: L.softmax_cross_entropy(f['labels'], f['x'], f['each']),
    'softmax_smooth': lambda f: L.softmax_cross_entropy(f['labels'], f['x'], label_smoothing=0.125),
    'softmax_deep': lambda f: L.softmax_cross_entropy(f['deep_labels'], f['deep']),
    'sparse': lambda f: L.sparse_softmax_cross_entropy(f['classes'], f['x']),
    'sparse_column': lambda f: L.sparse_softmax_cross_entropy(f['column'], f['x'], f['weights']),
    'sparse_deep': lambda f: L.sparse_softmax_cross_entropy(f['places'], f['deep']),
    'sigmoid': lambda f: L.sigmoid_cross_entropy(f['labels'], f['x']),
    'sigmoid_weighted': lambda f: L.sigmoid_cross_entropy(f['labels'], f['x'], f['weights'], 0.25),
    'sigmoid_positive': lambda f: tf.nn.weighted_cross_entropy_with_logits(f['labels'], f['x'], 0.5),
    'squared': lambda f: L.mean_squared_error(f['labels'], f['x'], f['weights']),
    'squared_none': lambda f: L.mean_squared_error(f['labels'], f['x'], f['weights'], reduction=NONE),
    'squared_sum': lambda f: L.mean_squared_error(f['labels'], f['x'], f['weights'], reduction=SUM),
    'squared_mean': lambda f: L.mean_squared_error(f['labels'], f['x'], f['weights'], reduction=MEAN),
    'squared_batch': lambda f: L.mean_squared_error(f['labels'], f['x'], f['weights'], reduction=BATCH),
    'squared_scalar': lambda f: L.mean_squared_error(f['labels'], f['x'], 0.5),
    'squared_nothing': lambda f: L.mean_squared_error(f['labels'], f['x'], 0.0),
    'absolute': lambda f: L.absolute_difference(f['labels'], f['x']),
    'huber': lambda f: L.huber_loss(f['labels'], f['x']),
    'huber_delta': lambda f: L.huber_loss(f['labels'], f['x'], delta=0.25),
    'hinge': lambda f: L.hinge_loss(f['labels'], f['x']),
    'log': lambda f: L.log_loss(f['labels'], tf.sigmoid(f['x']), f['weights']),
    'log_epsilon': lambda f: L.log_loss(f['labels'], tf.sigmoid(f['x']), epsilon=0.01),
    'cosine': lambda f: L.cosine_distance(f['labels'], f['x'], axis=-1)}


@pytest.mark.parametrize('name', LOSSES)
def test_loss(case, name):
    is_deep = name.endswith('deep')
    every = {'x': normal(4, 5) * 3, 'labels': np.eye(5, dtype=np.float32)[[0, 4, 2, 2]], 'classes': np.array([0, 4, 2, 2], np.int32),
             'column': np.array([[0], [4], [2], [2]]), 'weights': np.array([[1], [0], [2.5], [0.5]], np.float32),
             'each': np.array([1, 0, 2.5, 0.5], np.float32), 'deep': normal(2, 3, 5), 'places': np.array([[0, 1, 2], [4, 3, 1]]),
             'deep_labels': np.eye(5, dtype=np.float32)[[[0, 1, 2], [4, 3, 1]]]}
    every['x'][0, 0] = 0  # where halves meet
    every['labels'][1, 1] = 0.25
    expect(case('losses'), lambda f, w: LOSSES[name](f), every, inputs=('deep',) if is_deep else ('x',), output=name)


def sampled(function, num_true, **options):
    def apply(f, w):
        sample = tf.random.log_uniform_candidate_sampler(f['labels'], num_true, 6, True, 20, seed=9)
        return function(tables(w), tables(w, 'b'), f['labels'], f['x'], 6, 20, num_true=num_true, sampled_values=sample, **options)
    return apply


SAMPLED = {
    'sampled_softmax': sampled(v1.nn.sampled_softmax_loss, 1, partition_strategy='div'),
    'sampled_softmax_split': sampled(v1.nn.sampled_softmax_loss, 2, partition_strategy='div', remove_accidental_hits=False),
    'nce': sampled(v1.nn.nce_loss, 1), 'nce_split': sampled(v1.nn.nce_loss, 2, remove_accidental_hits=True)}


@pytest.mark.parametrize('name', SAMPLED)
def test_sampled_loss(case, name):
    """In a graph: TensorFlow's samplers draw from their seeds there as they do in Weir."""
    weir, num_true = case(name), 2 if 'split' in name else 1
    feeds = {'x': normal(5, 4), 'labels': rng.integers(0, 8, (5, num_true))}
    dy = normal(5)
    with tf.Graph().as_default(), v1.Session() as session:
        f = {n: tf.constant(a) for n, a in feeds.items()}
        w = {n: v1.get_variable(n, initializer=a, use_resource=True) for n, a in weir.weights.items()}
        y = SAMPLED[name](f, w)
        grads = tf.gradients(y, [f['x'], *w.values()], tf.constant(dy))
        session.run(v1.global_variables_initializer())
        expected, *grads = session.run([y, *[tf.convert_to_tensor(g) for g in grads]])
    fetches = [weir.graph.edge('y'), *weir.graph.gradients([weir.graph.edge('y')], [weir.graph.edge(n) for n in ['x', *weir.names]],
                                                           [weir.graph.edge('dy')])]
    got, *got_grads = weir.graph.run(fetches, {**feeds, 'dy': dy})  # in one step: one sample
    np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
    for n, g, e in zip(['x', *weir.names], got_grads, grads):
        np.testing.assert_allclose(g, e, 1e-5, 1e-5, err_msg=n)


# ---- metrics ----

M = v1.metrics
METRICS = {
    'mean': lambda f: M.mean(f['p']), 'mean_weighted': lambda f: M.mean(f['p'], f['w']),
    'accuracy': lambda f: M.accuracy(f['labels'], f['guesses']),
    'accuracy_weighted': lambda f: M.accuracy(f['labels'], f['guesses'], f['w']),
    'top_3': lambda f: M.mean(tf.nn.in_top_k(f['classes'], f['scores'], 3)),
    'squared': lambda f: M.mean_squared_error(f['q'], f['p'], f['w']), 'root': lambda f: M.root_mean_squared_error(f['q'], f['p']),
    'absolute': lambda f: M.mean_absolute_error(f['q'], f['p']),
    'precision': lambda f: M.precision(f['labels'], f['guesses']),
    'precision_weighted': lambda f: M.precision(f['labels'], f['guesses'], f['w']),
    'recall': lambda f: M.recall(f['labels'], f['guesses']),
    'recall_weighted': lambda f: M.recall(f['labels'], f['guesses'], f['w']),
    'auc': lambda f: M.auc(f['labels'], f['p']), 'auc_weighted': lambda f: M.auc(f['labels'], f['p'], f['w'], 33),
    'auc_pr': lambda f: M.auc(f['labels'], f['p'], curve='PR'),
    'auc_pr_careful': lambda f: M.auc(f['labels'], f['p'], curve='PR', summation_method='careful_interpolation'),
    'auc_minoring': lambda f: M.auc(f['labels'], f['p'], summation_method='minoring'),
    'auc_majoring': lambda f: M.auc(f['labels'], f['p'], summation_method='majoring')}


def metric_batch(count):
    return {'p': rng.uniform(size=count).astype(np.float32), 'q': normal(count), 'labels': rng.integers(0, 2, count).astype(np.int32),
            'guesses': rng.integers(0, 2, count).astype(np.int32), 'classes': rng.integers(0, 6, count).astype(np.int32),
            'scores': normal(count, 6), 'w': rng.uniform(0, 2, count).astype(np.float32)}


@pytest.mark.parametrize('name', METRICS)
def test_metric(case, name):
    weir, batches = case('metrics'), [metric_batch(7), metric_batch(1), metric_batch(20)]
    with tf.Graph().as_default(), v1.Session() as session:
        f = {n: v1.placeholder(a.dtype, [None, *a.shape[1:]]) for n, a in batches[0].items()}
        value, update = METRICS[name](f)
        session.run(v1.local_variables_initializer())
        assert weir.run(f'{name}_value', {}) == session.run(value)
        for _ in range(2):
            for batch in batches:
                expected = session.run(update, {f[n]: a for n, a in batch.items()})
                np.testing.assert_allclose(weir.run(f'{name}_updated', batch), expected, 2e-6)
                np.testing.assert_allclose(weir.run(f'{name}_value', {}), session.run(value), 2e-6)
            weir.graph.run_node(f'{name}_reset')
            session.run(v1.local_variables_initializer())
            assert weir.run(f'{name}_value', {}) == session.run(value)


def test_auc_refuses_predictions_out_of_range(case):
    batch = metric_batch(3)
    batch['p'][1] = 1.5
    with pytest.raises(libweir.Error, match=r'predictions must be in \[0, 1\]'):
        case('metrics').run('auc_updated', batch)
