"""Servers with several devices a task: CPUs, and guards, whose memory the host cannot touch without dying."""
import concurrent.futures
import contextlib
import itertools

import grpc
import numpy as np
import pytest
import tensorflow as tf

import clusters
import messages
from clusters import error_of
from ports import free_ports

tf1 = tf.compat.v1
TASKS = [f'/job:worker/replica:0/task:{i}' for i in (0, 1)]
KINDS = ['CPU:0', 'CPU:1', 'GUARD:0', 'GUARD:1']
DEVICES = [f'{task}/device:{kind}' for task in TASKS for kind in KINDS]
CPU = DEVICES[0]
USE_RESOURCE = pytest.mark.parametrize('use_resource', [True, False], ids=['resource', 'ref'])
STEPS = 6


def device(task, kind):
    return f'{TASKS[task]}/device:{kind}'


@pytest.fixture(scope='module')
def two_servers():
    cluster = clusters.Cluster({'worker': 2}, '--devices=cpu:2,guard:2')
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(two_servers):
    yield two_servers
    assert two_servers.is_alive(), [task.errors() for task in two_servers.tasks.values()]
    two_servers.wait_until_idle()


def traced(s, fetches, **kwargs):
    """What a run gives, and which nodes ran on each device."""
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    value = s.run(fetches, options=options, run_metadata=metadata, **kwargs)
    ran = {d.device: [n.node_name for n in d.node_stats] for d in metadata.step_stats.dev_stats}
    assert len(ran) == len(metadata.step_stats.dev_stats)  # each device once
    return value, ran, metadata


# ---- what there is ----

@pytest.mark.parametrize('task', [0, 1])
def test_list_devices(cluster, task):
    with clusters.session(cluster.tasks['worker', task]) as s:
        devices = s.list_devices()
    assert sorted(d.name for d in devices) == sorted(DEVICES)
    assert all(d.device_type == d.name.split(':')[-2] for d in devices)
    assert all(d.memory_limit_bytes > 0 for d in devices)
    assert len({d.incarnation for d in devices}) == len(DEVICES)


def test_device_count_of_a_client(cluster):
    """What a server has, its own options say, as in TensorFlow."""
    with clusters.session(cluster, device_count={'CPU': 7, 'GUARD': 9}) as s:
        assert len(s.list_devices()) == len(DEVICES)


@USE_RESOURCE
def test_memory_of_devices(cluster, use_resource):
    """A variable is in the memory of its device, as long as there is one; others have nothing of it."""
    size, guard = 4 << 20, [device(1, f'GUARD:{i}') for i in (0, 1)]

    def memory(name):
        values = cluster.tasks['worker', 1].metrics()
        return [int(values[f'weir_device_memory_{name}{{device="{d}"}}']) for d in guard]
    before = memory('bytes')
    with clusters.session(cluster, isolate_session_state=True) as s:
        with tf1.device(guard[1]):
            v = tf1.get_variable('v', [size // 4], initializer=tf1.random_uniform_initializer(), use_resource=use_resource)
        s.run(v.initializer)
        during = memory('bytes')
        assert during[0] == before[0] and size <= during[1] - before[1] < size + 1000
        assert all(p >= b for p, b in zip(memory('peak_bytes'), during))
        assert not any('CPU' in name for name in cluster.tasks['worker', 1].metrics() if 'weir_device_memory' in name)
    clusters.wait_until(lambda: memory('bytes') == before, what=lambda: f'{memory("bytes")}, not {before}')


def test_memory_of_nodes(cluster):
    """What a node and a copy took, and of whose memory."""
    size = 4000
    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32, [size // 4])
        with tf1.device(device(1, 'GUARD:1')):
            y = tf.negative(x, name='y')
        _, _, metadata = traced(s, y, feed_dict={x: [1.0] * (size // 4)})
    stats = {n.node_name: n for d in metadata.step_stats.dev_stats for n in d.node_stats if d.device == device(1, 'GUARD:1')}
    used = {m.allocator_name: (m.total_bytes, m.peak_bytes, m.live_bytes) for m in stats['y'].memory}
    assert used['GUARD'] == (size,) * 3
    assert [(m.allocator_name, m.total_bytes) for m in stats['y/copy'].memory] == [('cpu', size)]


@pytest.mark.parametrize('asked, got', [
    ('/device:GUARD:1', device(0, 'GUARD:1')), ('/job:worker/task:1', device(1, 'CPU:0')),
    ('/task:1/device:GUARD:*', device(1, 'GUARD:0')), ('/job:worker/task:1/cpu:1', device(1, 'CPU:1')), (None, CPU)])
def test_names_whole_and_partial(cluster, asked, got):
    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32)
        with tf1.device(asked):
            y = tf.square(x, name='y')
        value, ran, _ = traced(s, y, feed_dict={x: 3.0})
    assert value == 9 and [d for d, nodes in ran.items() if 'y' in nodes] == [got]


@pytest.mark.parametrize('asked', [device(1, 'GUARD:2'), device(0, 'GPU:0'), '/job:worker/task:2/device:GUARD:0'])
def test_no_such_device(cluster, asked):
    with clusters.session(cluster) as s, tf1.device(asked):
        error = error_of(s.run, tf.square(tf1.random_uniform([]), name='y'))
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert 'Cannot assign a device for operation' in error.message and asked in error.message
    assert device(1, 'GUARD:1') in error.message  # among what there is


def test_what_a_guard_cannot_run(cluster):
    """A queue's ops wait, which nothing does in the queue of a device."""
    with clusters.session(cluster) as s, tf1.device(device(1, 'GUARD:0')):
        queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32], shared_name=clusters.unique())
        error = error_of(s.run, tf.raw_ops.QueueEnqueueV2(handle=queue, components=[1.0]))
    assert isinstance(error, tf.errors.InvalidArgumentError) and 'GUARD:0' in error.message


def test_soft_placement(monkeypatch):
    """What is not there, or cannot run it, becomes the task's CPU; the log says so in one line."""
    monkeypatch.setenv('TF_CPP_MIN_LOG_LEVEL', '1')
    cluster = clusters.Cluster({'worker': 2}, '--devices=guard:1')
    with clusters.session(cluster, allow_soft_placement=True) as s:
        x = tf1.placeholder(tf.float32)
        with tf1.device(device(1, 'GUARD:7')):
            y = tf.square(x, name='y')
        with tf1.device(device(0, 'GPU:0')):
            z = tf.negative(y, name='z')
        value, ran, _ = traced(s, z, feed_dict={x: 3.0})
    assert value == -9 and 'y' in ran[device(1, 'CPU:0')] and 'z' in ran[CPU]
    assert cluster.tasks['worker', 0].errors().count('which is not there or cannot run it') == 1
    cluster.stop()


def test_colocation(cluster):
    with clusters.session(cluster) as s:
        with tf1.device(device(1, 'GUARD:1')):
            x = tf.reduce_sum(tf1.placeholder_with_default([4.0, 5.0], [2]), name='x')  # which is not fused with what follows
        with tf1.colocate_with(x.op, ignore_existing=True):
            y = tf.negative(x, name='y')
        value, ran, _ = traced(s, y)
    assert value == -9 and {'x', 'y'} <= set(ran[device(1, 'GUARD:1')])


# ---- what crosses ----

def test_a_value_crosses_once(cluster):
    """One Send to the host's memory, one transfer, one copy to each guard that reads it."""
    with clusters.session(cluster) as s:
        with tf1.device(device(0, 'GUARD:0')):
            x = tf.square(tf1.placeholder_with_default(np.arange(6, dtype=np.float32), [6]), name='x')
        read = []
        for kind in KINDS[2:] * 2:
            with tf1.device(device(1, kind)):
                read.append(tf.negative(x) + float(len(read)))
        with tf1.device(device(1, 'CPU:1')):
            total = tf.add_n(read)
        value, ran, metadata = traced(s, total)
    np.testing.assert_array_equal(value, -4 * np.square(np.arange(6, dtype=np.float32)) + 6)
    nodes = [node for of_device in ran.values() for node in of_device]
    assert sum(n.endswith('/_send') for n in nodes) == sum(n.endswith('/_recv') for n in nodes) == 2  # x there, total back
    assert nodes.count('x/copy') == 1 and sum('_recv/copy' in n for n in nodes) == 2
    assert len(metadata.partition_graphs) == 2


@pytest.mark.parametrize('dtype', [tf.float32, tf.int32, tf.bool, tf.complex64, tf.half, tf.string])
@pytest.mark.parametrize('path', list(itertools.permutations(['GUARD:0', 'CPU:1'])) + [('GUARD:0', 'GUARD:1')], ids='-'.join)
def test_types(cluster, dtype, path):
    values = np.array([0, 1, 5, 7]).astype(dtype.as_numpy_dtype) if dtype != tf.string else np.array([b'a', b'', b'bc', b'd'])
    with clusters.session(cluster) as s:
        x = tf1.placeholder(dtype)
        with tf1.device(device(0, path[0])):
            y = tf.reshape(x, [2, 2])
        with tf1.device(device(1, path[1])):
            z = tf.concat([y, y], 0)
        np.testing.assert_array_equal(s.run(z, {x: values}), np.concatenate([values.reshape(2, 2)] * 2))


def test_large_tensors(cluster):
    """Beyond the size from which tasks of one machine read each other's memory."""
    with clusters.session(cluster) as s:
        with tf1.device(device(1, 'GUARD:0')):
            x = tf1.placeholder_with_default(np.arange(300000, dtype=np.float32), [300000]) * 3
        with tf1.device(device(0, 'GUARD:1')):
            y = x + 1
        for _ in range(3):
            np.testing.assert_array_equal(s.run(y), np.arange(300000, dtype=np.float32) * 3 + 1)


def test_control_edges(cluster):
    """In order from guard to guard, over both tasks."""
    with clusters.session(cluster, isolate_session_state=True) as s:
        with tf1.device(device(1, 'GUARD:1')):
            v = tf1.get_variable('v', initializer=1.0, use_resource=True)
        s.run(v.initializer)
        last = []
        for i, place in enumerate([device(1, 'GUARD:0'), device(0, 'GUARD:1'), device(0, 'GUARD:0'), device(1, 'CPU:1')]):
            with tf1.control_dependencies(last), tf1.device(place):
                x = tf.identity(float(i))
            with tf1.control_dependencies([x]):
                last = [v.assign(v.read_value() * 2 + x)]
        with tf1.control_dependencies(last):
            result = v.read_value()
        assert [s.run(result) for _ in range(2)] == [27, 443]


def test_partial_run(cluster):
    with clusters.session(cluster) as s:
        a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
        with tf1.device(device(1, 'GUARD:0')):
            y = a * 2
        with tf1.device(device(0, 'GUARD:1')):
            z = y + b
        handle = s.partial_run_setup([y, z], [a, b])
        assert s.partial_run(handle, y, {a: 3.0}) == 6
        assert s.partial_run(handle, z, {b: 1.0}) == 7


def test_callables(cluster):
    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32, [None])
        with tf1.device(device(1, 'GUARD:1')):
            y = tf.reduce_sum(tf.square(x))
        run = s.make_callable(y, [x])
        assert [run(np.arange(n)) for n in (2, 3, 4)] == [1, 5, 14]


# ---- state ----

@USE_RESOURCE
def test_state_is_of_a_device(cluster, use_resource):
    """Variables of one name on eight devices are eight variables."""
    name = clusters.unique()
    with clusters.session(cluster) as s:
        kept = []
        for i, place in enumerate(DEVICES):
            with tf1.device(place):
                v = tf1.Variable(float(i), use_resource=use_resource, name=f'v{i}', collections=[])
                attr = tf1.AttrValue(s=name.encode())
                v.op._set_attr('shared_name', attr)
                kept.append(v)
        s.run([v.initializer for v in kept])
        s.run([tf1.assign_add(v, float(i)).op for i, v in enumerate(kept)])
        assert s.run(kept) == [2 * i for i in range(len(DEVICES))]


def network(use_resource, place):
    """A network with a queue, a loop and a condition. |place| gives the device of its i-th piece."""
    rng = np.random.RandomState(5)

    def variable(name, *shape):
        return tf1.get_variable(name, initializer=rng.randn(*shape).astype(np.float32) / 3, use_resource=use_resource)

    with tf1.device(place(0)):
        queue = tf1.FIFOQueue(4, tf.float32, [[16, 8]], name='queue')
        data = tf1.placeholder(tf.float32, [16, 8])
        fill = queue.enqueue(data)
        x = queue.dequeue()
    with tf1.device(place(2)):
        hidden = tf.nn.relu(tf.matmul(x, variable('w1', 8, 12)) + variable('b1', 12))
    with tf1.device(place(6)):
        recurrent = variable('r', 12, 12)

        def turn(i, h):
            return i + 1, tf.tanh(tf.matmul(h, recurrent) + h)
        _, state = tf1.while_loop(lambda i, h: i < 3, turn, [0, hidden])
    with tf1.device(place(3)):
        out = tf.matmul(state, variable('w2', 12, 1))
    is_large = tf.reduce_mean(tf.square(out)) > 0.5

    def scaled():
        with tf1.device(place(7)):
            return out * 0.5
    with tf1.device(place(1)):
        out = tf1.cond(is_large, scaled, lambda: tf.identity(out))
        loss = tf.reduce_mean(tf.square(out - tf.reduce_sum(x, 1, keepdims=True)))
    with tf1.device(place(5)):
        step = tf1.get_variable('step', initializer=0, use_resource=use_resource, trainable=False)
    return loss, step, lambda s, value: s.run(fill, {data: value})


def train(target, use_resource, place, **config):
    """The losses of some steps, bit by bit, and the variables after them."""
    rng = np.random.RandomState(6)
    with clusters.session(target, isolate_session_state=True, **config) as s:
        loss, step, fill = network(use_resource, place)
        optimizer = tf1.train.AdamOptimizer(0.05)
        update = optimizer.minimize(loss, global_step=step)
        s.run(tf1.global_variables_initializer())
        losses = []
        for _ in range(STEPS):
            fill(s, rng.randn(16, 8).astype(np.float32))
            losses.append(s.run([loss, update])[0])
        return losses, s.run(tf1.global_variables())


def same(got, want):
    np.testing.assert_array_equal(got[0], want[0])
    for a, b in zip(got[1], want[1]):
        np.testing.assert_array_equal(a, b)


@USE_RESOURCE
def test_training(cluster, use_resource):
    """On eight devices as on one CPU."""
    want = train(cluster, use_resource, lambda i: CPU)
    assert want[0][-1] < want[0][0] and want[1][-1].size
    same(train(cluster, use_resource, lambda i: DEVICES[i]), want)
    same(train(cluster, use_resource, lambda i: DEVICES[(i + 4) % 8]), want)


@USE_RESOURCE
@pytest.mark.parametrize('seed', range(4))
def test_training_anywhere(cluster, use_resource, seed):
    """Every node where it falls, as far as its like can run there and is not bound to others."""
    rng = np.random.RandomState(seed)
    want = train(cluster, use_resource, lambda i: CPU)
    got = train(cluster, use_resource, lambda i: lambda op: DEVICES[rng.randint(8)], allow_soft_placement=True)
    same(got, want)


@USE_RESOURCE
@pytest.mark.parametrize('sharded', [False, True], ids=['whole', 'sharded'])
def test_saver(cluster, tmp_path, use_resource, sharded):
    """Variables of all devices are written, read by TensorFlow, and read back."""
    values = [np.full([3, 2], i, np.float32) for i in range(8)]
    with clusters.session(cluster, isolate_session_state=True) as s:
        kept = []
        for i, place in enumerate(DEVICES):
            with tf1.device(place):
                kept.append(tf1.get_variable(f'v{i}', initializer=values[i], use_resource=use_resource))
        saver = tf1.train.Saver(sharded=sharded)
        s.run(tf1.global_variables_initializer())
        path = saver.save(s, str(tmp_path / 'model'))
        reader = tf1.train.load_checkpoint(path)
        for i, value in enumerate(values):
            np.testing.assert_array_equal(reader.get_tensor(f'v{i}'), value)
        s.run([tf1.assign(v, -v).op for v in kept])
        saver.restore(s, path)
        np.testing.assert_array_equal(s.run(kept), values)


# ---- functions ----

def test_functions(cluster):
    """With a body that asks for a device: called from a guard, and by a loop that is not lowered."""
    @tf.function
    def add_one(x):
        with tf1.device('/device:GUARD:1'):
            return x + 1

    with clusters.session(cluster) as s:
        with tf1.device(device(1, 'GUARD:0')):
            y = add_one(tf1.placeholder_with_default(3.0, []))
        with tf1.device(device(1, 'CPU:1')):
            z = tf.raw_ops.StatelessWhile(
                input=[y], cond=tf.function(lambda a: a < 100).get_concrete_function(tf.TensorSpec([], tf.float32)),
                body=tf.function(lambda a: add_one(a * 2)).get_concrete_function(tf.TensorSpec([], tf.float32)))[0]
        assert s.run([y, z]) == [4, 159]


# ---- what other tasks say ----

@contextlib.contextmanager
def liar(names):
    """A server of Weir's whose peer, task 1, says that it has devices of these names; and a client of raw calls."""
    answer = messages.CLASSES['GetStatusResponse'](device_attributes=[{'name': name} for name in names]).SerializeToString()
    answers = {'/tensorflow.WorkerService/GetStatus': answer, '/tensorflow.WorkerService/CreateWorkerSession': b'',
               '/tensorflow.WorkerService/DeleteWorkerSession': b''}

    class Handler(grpc.GenericRpcHandler):
        def service(self, call):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: answers[call.method])

    peer = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[Handler()])
    port = peer.add_insecure_port('127.0.0.1:0')
    peer.start()
    own, = free_ports(1)
    task = clusters.Task(f'--cluster=worker|127.0.0.1:{own};127.0.0.1:{port}', '--job=worker', '--task=0')
    client = messages.Client(task.address)
    yield client
    client.close()
    task.stop()
    peer.stop(None)


def test_devices_of_others():
    """A task has the devices that it says it has under its own name, whatever name it says."""
    with liar([device(0, 'CPU:0'), device(1, 'GUARD:3'), '/job:x/task:9/device:tpu:1']) as client:
        devices = client.ListDevices(session_handle=client.CreateSession().session_handle)
    assert [d.name for d in devices.remote_device] == [device(1, 'CPU:0'), device(1, 'GUARD:3'), device(1, 'TPU:1')]


@pytest.mark.parametrize('names, says', [
    (['nonsense'], 'nonsense'), (['/job:worker/task:1'], 'not the full name'), ([device(1, 'CPU:0')] * 1025, 'more than 1024')])
def test_devices_that_cannot_be(names, says):
    with liar(names) as client:
        code, message = messages.code_of(client.CreateSession)
    assert code == 'INVALID_ARGUMENT' and says in message
