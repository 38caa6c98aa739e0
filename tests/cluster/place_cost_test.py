"""Masters that place by cost: graphs that ask for no device are spread over the tasks, with the same results as on one."""
import subprocess

import clusters
import numpy as np
import pytest
import tensorflow as tf
from clusters import error_of, tf1

TASKS = [f'/job:worker/replica:0/task:{i}' for i in range(2)]
USE_RESOURCE = pytest.mark.parametrize('use_resource', [False, True], ids=['ref', 'resource'])
SIZE = 32


def write_rates(path, tasks):
    """CPUs that take long, and transfers that cost next to nothing."""
    numbers = 'flops=1e6 bytes=1e7 node_ns=1000 copy_bytes=1e12 copy_ns=10 message_ns=1'
    path.write_text(''.join(f'{task}/device:CPU:0 {numbers}\n' for task in tasks))
    return path


@pytest.fixture(scope='module', params=['cost', 'measured', 'random'])
def spread(request, tmp_path_factory):
    """A cluster whose masters spread nodes that nobody placed; by measured rates they may find that not worth while."""
    rates = write_rates(tmp_path_factory.mktemp('rates') / 'rates', TASKS)
    options = {'cost': ['--place=cost', f'--rates={rates}'], 'measured': ['--place=cost'], 'random': ['--place=random:3']}
    cluster = clusters.Cluster({'worker': 2}, *options[request.param])
    cluster.is_spread = request.param != 'measured'
    yield cluster
    assert cluster.is_alive(), [task.errors() for task in cluster.tasks.values()]
    cluster.wait_until_idle()
    cluster.stop()


class Towers:
    """Two towers side by side, trained together; nothing says where they are to be."""

    def __init__(self, use_resource):
        init = tf1.random_uniform_initializer(-0.3, 0.3, seed=5)
        self.x = tf1.placeholder(tf.float32, [SIZE, SIZE], 'x')
        self.weights = [tf1.get_variable(f'w{i}', [SIZE, SIZE], initializer=init, use_resource=use_resource) for i in range(4)]
        ends = [tf.matmul(tf.tanh(tf.matmul(self.x, self.weights[2 * i])), self.weights[2 * i + 1]) for i in range(2)]
        self.loss = tf.add_n([tf.reduce_mean(tf.square(end - i - 0.5)) for i, end in enumerate(ends)])
        self.train = tf1.train.MomentumOptimizer(0.5, 0.9).minimize(self.loss)
        self.init = tf1.global_variables_initializer()
        self.saver = tf1.train.Saver()

    def feeds(self, step):
        return {self.x: np.random.RandomState(step).randn(SIZE, SIZE).astype(np.float32)}


def traced(s, fetches, **kwargs):
    """What a run gives, and the device of each node that was part of it."""
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    value = s.run(fetches, options=options, run_metadata=metadata, **kwargs)
    return value, {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}


def train(target, use_resource, path):
    """Losses of a training that is saved and restored on the way, and where the nodes of each signature were."""
    with clusters.session(target, isolate_session_state=True) as s:
        towers, seen = Towers(use_resource), []

        def run(fetches, step=None):
            value, placed = traced(s, fetches, feed_dict=None if step is None else towers.feeds(step))
            seen.append(placed)
            return value
        run(towers.init)
        losses = [run([towers.loss, towers.train], step)[0] for step in range(3)]
        towers.saver.save(s, str(path / 'model'))
        losses += [run([towers.loss, towers.train], step)[0] for step in range(3, 6)]
        run(towers.init)
        towers.saver.restore(s, str(path / 'model'))
        losses += [run([towers.loss, towers.train], step)[0] for step in range(3, 6)]
        losses.append(run(towers.loss, 9))
        return losses, seen, [w.op.name for w in tf1.global_variables()]


@USE_RESOURCE
def test_training(server, spread, use_resource, tmp_path):
    alone, _, _ = train(server, use_resource, tmp_path)
    losses, seen, names = train(spread, use_resource, tmp_path)
    assert losses == alone and losses[3:6] == losses[6:9]
    homes = {name: {placed[name] for placed in seen if name in placed} for name in names}
    assert all(len(devices) == 1 for devices in homes.values()), homes
    if spread.is_spread:
        assert {device.rsplit('/', 1)[0] for device in seen[1].values()} == set(TASKS)
        assert len(set.union(*homes.values())) == 2


@USE_RESOURCE
def test_sessions_share_variables(spread, use_resource):
    """Another graph, with one of the variables alone, finds it where the first one put it."""
    scope, size = clusters.unique(), [SIZE]

    def variables(count):
        with tf1.variable_scope(scope):
            return [tf1.get_variable(f'v{i}', size, initializer=tf1.constant_initializer(i), use_resource=use_resource)
                    for i in range(count)]
    with clusters.session(spread) as s:
        heavy = [tf.linalg.matmul(tf.tile(v[None, :], [SIZE, 1]), tf.ones([SIZE, SIZE])) for v in variables(6)]
        loss = tf.add_n([tf.reduce_sum(h) for h in heavy], name='loss')
        s.run(tf1.global_variables_initializer())
        s.run(loss)
    for i in range(6):
        with clusters.session(spread) as s:
            np.testing.assert_array_equal(s.run(variables(i + 1)[i]), np.full(size, i))


def test_by_cost_the_towers_part(spread):
    """Each product of a tower is on the task of the others of it."""
    with clusters.session(spread, isolate_session_state=True) as s:
        towers = Towers(True)
        s.run(towers.init)
        _, placed = traced(s, [towers.loss, towers.train], feed_dict=towers.feeds(0))
    where = [{placed['MatMul'], placed['MatMul_1']}, {placed['MatMul_2'], placed['MatMul_3']}]
    if '--place=cost' in spread.options and spread.is_spread:
        assert [len(tower) for tower in where] == [1, 1] and where[0] != where[1]


def test_what_is_asked_for_and_files(spread, tmp_path):
    """Who asks for a device gets it; what reads a file that nobody placed reads it on the master's task."""
    (tmp_path / 'file').write_text('text')
    with clusters.session(spread) as s:
        with tf1.device('/job:worker/task:1'):
            there = tf.square(tf.ones([4]) * tf1.random_uniform([]), name='there')
        text = tf.io.read_file(tf1.strings.join([str(tmp_path), '/file'], name='path'), name='text')
        (_, read), placed = traced(s, [there, text])
    assert read == b'text' and placed['there'].startswith(TASKS[1])
    if '--place=cost' in spread.options:
        assert placed['text'].startswith(TASKS[0])


def test_a_loop(spread):
    with clusters.session(spread) as s:
        x = tf1.placeholder(tf.float32, [SIZE])
        _, end = tf1.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, tf.tanh(v * 2) + tf.sin(v)), [0, x])
        fed = {x: np.linspace(-1, 1, SIZE)}
        with tf1.Session() as local:
            np.testing.assert_allclose(s.run(end, fed), local.run(end, fed), rtol=1e-5)


def test_other_devices_are_for_those_who_ask(tmp_path):
    rates = write_rates(tmp_path / 'rates', TASKS)
    cluster = clusters.Cluster({'worker': 2}, '--devices=cpu:2,guard:1', '--place=cost', f'--rates={rates}')
    with clusters.session(cluster) as s:
        towers = Towers(True)
        with tf1.device('/device:GUARD:0'):
            asked = tf.negative(towers.loss, name='asked')
        s.run(towers.init)
        _, placed = traced(s, [asked, towers.train], feed_dict=towers.feeds(0))
    assert placed['asked'].endswith('/device:GUARD:0')
    cpus = {f'{task}/device:CPU:0' for task in TASKS}
    assert {device for name, device in placed.items() if name.startswith('MatMul')} == cpus
    assert {device for device in placed.values() if device != placed['asked']} == cpus
    cluster.stop()


@pytest.mark.parametrize('tasks, error, text', [
    (None, tf.errors.NotFoundError, 'rates'), (TASKS[:1], tf.errors.NotFoundError, f'nothing is said of {TASKS[1]}'),
    (['nonsense'], tf.errors.InvalidArgumentError, 'line 1')])
def test_rates_that_will_not_do(tmp_path, tasks, error, text):
    path = tmp_path / 'rates'
    if tasks:
        write_rates(path, tasks)
    cluster = clusters.Cluster({'worker': 2}, '--place=cost', f'--rates={path}')
    with clusters.session(cluster) as s:
        found = error_of(s.run, tf.constant(1.0))
    assert isinstance(found, error) and text in found.message and str(path) in found.message
    cluster.stop()


def test_no_such_placement():
    done = subprocess.run([str(clusters.WEIR), 'server', '--place=nonsense'], capture_output=True, text=True)
    assert done.returncode == 2 and "'nonsense' is no placement" in done.stderr


def test_rates_that_cannot_be_measured():
    """A task that does not take the messages by which its rate is measured is named."""
    cluster = clusters.Cluster({'worker': 2}, '--place=cost', '--max-message-size=200000')
    with tf.Graph().as_default(), tf1.Session(cluster.target) as s:
        error = error_of(s.run, tf1.placeholder_with_default(1.0, []) + 1)
    assert isinstance(error, tf.errors.ResourceExhaustedError) and TASKS[1] in error.message, error
    cluster.stop()
