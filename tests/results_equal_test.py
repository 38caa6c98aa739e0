"""Small graphs made by TensorFlow's client give the same results with all passes, with none, and in TensorFlow itself."""
import os
import subprocess

import numpy as np
import pytest

import conftest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
tf = pytest.importorskip('tensorflow')
tf1 = tf.compat.v1

RNG = np.random.default_rng(7)
GRAPHS = {}


def graph(control_flow_v2=False):
    """Registers a function that builds a graph and returns (feeds, fetches, init op or None, step op or None)."""
    def register(build):
        GRAPHS[build.__name__] = (build, control_flow_v2)
        return build
    return register


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@graph()
def mlp_with_gradients():
    x = tf1.placeholder(tf.float32, [None, 8], 'x')
    labels = tf.constant([0, 3, 1, 2])
    w1 = tf1.get_variable('w1', initializer=array(8, 16), use_resource=True)
    b1 = tf1.get_variable('b1', initializer=np.zeros(16, np.float32), use_resource=True)
    w2 = tf1.get_variable('w2', initializer=array(16, 4), use_resource=False)
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    grads = tf1.gradients(loss, [w1, b1, w2])
    with tf1.control_dependencies([loss, *grads]):  # what is fetched does not race with the update
        train = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return {x: array(4, 8)}, [loss, *grads], tf1.global_variables_initializer(), train


@graph()
def convolution_with_gradients():
    x = tf1.placeholder(tf.float32, [2, 8, 8, 3], 'x')
    kernel = tf1.get_variable('kernel', initializer=array(3, 3, 3, 4))
    y = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, 'SAME')), 2, 2, 'VALID')
    loss = tf.reduce_sum(tf.square(y)) / 100
    return {x: array(2, 8, 8, 3)}, [loss, y, *tf1.gradients(loss, [kernel, x])], tf1.global_variables_initializer(), None


def branches(x, pred):
    return tf1.cond(pred, lambda: tf.nn.relu(x) * 2, lambda: tf.exp(x) - 1)


def cond_graph(with_gradient):
    x = tf1.placeholder(tf.float32, [3], 'x')
    pred = tf1.placeholder(tf.bool, [], 'pred')
    y = branches(x, pred)
    return {x: array(3), pred: np.array(False)}, [y, *(tf1.gradients(y, x) if with_gradient else [])], None, None


def loop_graph():
    x = tf1.placeholder(tf.float32, [3], 'x')
    _, y = tf1.while_loop(lambda i, v: i < 6, lambda i, v: (i + 1, v * 1.5 + tf.sin(v)), [0, x])
    return {x: array(3)}, [y, *tf1.gradients(y, x)], None, None


@graph()
def cond_v1():
    return cond_graph(with_gradient=True)


@graph(control_flow_v2=True)
def cond_v2():
    return cond_graph(with_gradient=False)  # the client's gradient needs Optional ops, which Weir does not have


@graph()
def while_v1():
    return loop_graph()


@graph(control_flow_v2=True)
def while_v2():
    return loop_graph()


@graph()
def nested_while_v1():
    n = tf1.placeholder(tf.int32, [], 'n')

    def inner(i, total):
        return tf1.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + j), [0, total])[1]
    _, total = tf1.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, inner(i, t)), [0, 0])
    return {n: np.int32(9)}, [total], None, None


@graph()
def functions():
    x = tf1.placeholder(tf.float32, [4], 'x')

    @tf.function
    def power(v, n):
        return v if n == 0 else v * power(v, n - 1)
    y = power(x, 3)
    return {x: array(4)}, [y, *tf1.gradients(y, x)], None, None


@graph(control_flow_v2=True)
def function_with_control_flow():
    x = tf1.placeholder(tf.float32, [], 'x')

    @tf.function
    def steps(v):
        count = 0
        while v < 100.0:
            if tf.equal(count % 2, 0):
                v = v * 2
            else:
                v = v + 5
            count += 1
        return v, count
    return {x: np.float32(3)}, list(steps(x)), None, None


@graph()
def queues():
    queue = tf1.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []])
    fill = queue.enqueue_many((tf.constant(array(4, 2)), tf.range(4)))
    with tf1.control_dependencies([fill]):
        values, numbers = queue.dequeue_many(3)
    with tf1.control_dependencies([values]):
        size = queue.size()
    return {}, [values, numbers, size], None, None


@graph()
def random_numbers():
    tf1.set_random_seed(5)
    return {}, [tf.random.uniform([3, 4]), tf.random.normal([5], seed=3), tf.random.truncated_normal([7], dtype=tf.float64),
                tf.random.uniform([6], 0, 100, tf.int32), tf.random.shuffle(tf.range(10))], None, None


@graph()
def arrays():
    x = tf1.placeholder(tf.float32, [2, 3, 4], 'x')
    parts = tf.split(x, 2, 2)
    fetches = [tf.concat(parts[::-1], 1), tf.transpose(x, [2, 0, 1]), x[:, ::-1, 1:3], tf.gather(x, [2, 0, 0], axis=1),
               tf.reduce_sum(x, [0, 2], keepdims=True), tf.stack(tf.unstack(x)), tf.pad(x, [[0, 1], [1, 0], [0, 0]]),
               tf.tile(x, [1, 2, 1]), tf.where(x > 0, x, -x), tf.argmax(x, 2), tf.one_hot([1, 3], 4), tf.shape(x),
               tf.cumsum(x, 1), tf.nn.top_k(x, 2).values, tf.cast(x * 10, tf.int32), tf.reshape(x, [-1, 2])]
    return {x: array(2, 3, 4)}, fetches, None, None


@graph()
def folding_and_sharing():
    x = tf1.placeholder(tf.float32, [2, 2], 'x')
    two = tf.constant(1.0) + tf.constant(1.0)
    y = x * two + x * two - tf.zeros([2, 2]) + tf.ones([2, 2]) * 0.0
    z = tf.identity(tf.negative(tf.negative(y))) / 1.0
    return {x: array(2, 2)}, [y, z, tf.reshape(z, tf.shape(x)), tf.size(x) + 1], None, None


@graph()
def values_only_awaited():
    """Nobody reads what the products give, but who awaits them must not run before, nor where their branch is dead."""
    x = tf1.placeholder(tf.float32, [2, 2], 'x')
    count = tf1.get_variable('count', initializer=np.float32(1), use_resource=True)
    with tf1.control_dependencies([count.assign_add(2.0)]):
        unread = tf.reduce_sum(tf.matmul(x, x) * 3)
    with tf1.control_dependencies([unread]):
        after = count.read_value()

    def add_after(value, amount):
        with tf1.control_dependencies([tf.reduce_sum(tf.matmul(value, value)), after]):
            return count.assign_add(amount)
    chosen = tf1.cond(tf.reduce_sum(x) > 1e9, lambda: add_after(x, 100.0), lambda: add_after(x * 2, 10.0))

    def body(i, total):
        with tf1.control_dependencies([tf.exp(total) + tf.cast(i, tf.float32), chosen]):
            added = count.assign_add(1.0)
        with tf1.control_dependencies([added]):
            return i + 1, total + 0.5
    _, total = tf1.while_loop(lambda i, t: i < 4, body, [0, 0.0])
    with tf1.control_dependencies([total]):
        last = count.read_value()
    return {x: array(2, 2)}, [after, chosen, total, last], tf1.global_variables_initializer(), None


@graph()
def embedding():
    table = tf1.get_variable('table', initializer=array(10, 4), use_resource=True)
    ids = tf1.placeholder(tf.int64, [None], 'ids')
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
    train = tf1.train.AdagradOptimizer(0.5).minimize(loss)
    with tf1.control_dependencies([train]):
        table_after = table.read_value()
    return {ids: np.array([1, 1, 7])}, [loss, table_after], tf1.global_variables_initializer(), train


@graph()
def recurrent():
    x = tf1.placeholder(tf.float32, [2, 5, 3], 'x')
    w = tf1.get_variable('w', initializer=array(7, 4))
    inputs = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))

    def step(t, h, outputs):
        h = tf.tanh(tf.matmul(tf.concat([inputs.read(t), h], 1), w))
        return t + 1, h, outputs.write(t, h)
    _, last, outputs = tf1.while_loop(lambda t, h, o: t < 5, step, [0, tf.zeros([2, 4]), tf.TensorArray(tf.float32, 5)])
    loss = tf.reduce_mean(last)
    return {x: array(2, 5, 3)}, [loss, outputs.stack(), *tf1.gradients(loss, w)], tf1.global_variables_initializer(), None


def in_tensorflow(g, feeds, fetches, init, step):
    with tf1.Session(graph=g) as session:
        if init is not None:
            session.run(init)
        return session.run(fetches if step is None else [*fetches, step], feeds)[:len(fetches)]


def in_weir(path, tmp_path, feeds, fetches, init, step, passes_off):
    args = [conftest.BUILD / 'cli' / 'weir', 'run', path, f'--save={tmp_path}/out', *(f'--fetch={t.name}' for t in fetches)]
    for i, (tensor, value) in enumerate(feeds.items()):
        np.save(tmp_path / f'feed{i}.npy', value)
        args.append(f'--feed={tensor.name}=@{tmp_path}/feed{i}.npy')
    if init is not None:
        args.append(f'--init={init.name}')
    if step is not None:
        args.append(f'--target={step.name}')
    env = dict(os.environ, **({'WEIR_DISABLE_PASSES': 'all'} if passes_off else {}))
    done = subprocess.run(args, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [np.load(tmp_path / f'out{i}.npy') for i in range(len(fetches))]


@pytest.mark.parametrize('passes_off', [False, True], ids=['passes', 'no_passes'])
@pytest.mark.parametrize('name', sorted(GRAPHS))
def test_results(name, passes_off, tmp_path):
    build, control_flow_v2 = GRAPHS[name]
    (tf1.enable_control_flow_v2 if control_flow_v2 else tf1.disable_control_flow_v2)()
    g = tf1.Graph()
    with g.as_default():
        feeds, fetches, init, step = build()
        fetches = [tf.convert_to_tensor(t) for t in fetches]
    path = tmp_path / 'graph.pb'
    path.write_bytes(g.as_graph_def().SerializeToString())
    expected = in_tensorflow(g, feeds, fetches, init, step)
    got = in_weir(path, tmp_path, feeds, fetches, init, step, passes_off)
    for mine, theirs, fetch in zip(got, expected, fetches):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, fetch.name
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6, err_msg=fetch.name)


@pytest.mark.parametrize('guard', [lambda x: tf.debugging.check_numerics(x, 'bad'), lambda x: tf.ensure_shape(x, [3]),
                                   lambda x: tf.debugging.assert_positive(x, message='bad')], ids=['numerics', 'shape', 'positive'])
def test_guards_that_are_only_awaited_still_fail(guard, tmp_path):
    g = tf1.Graph()
    with g.as_default():
        x = tf1.placeholder(tf.float32, None, 'x')
        with tf1.control_dependencies([guard(x)]):
            tf.constant(1.0, name='y')
    path = tmp_path / 'graph.pb'
    path.write_bytes(g.as_graph_def().SerializeToString())
    command = [conftest.BUILD / 'cli' / 'weir', 'run', path, '--fetch=y:0']
    good = subprocess.run([*command, '--feed=x=1,2,3'], capture_output=True, text=True)
    assert good.returncode == 0, good.stderr
    bad = subprocess.run([*command, '--feed=x=nan,-1'], capture_output=True, text=True)
    assert bad.returncode == 1 and ('bad' in bad.stderr or 'shape' in bad.stderr), bad.stderr
