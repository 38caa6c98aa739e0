"""Servers with GPUs, and parameter servers without: on a driver that is a fake (tests/testing/cuda_fake.h). Its kernels compute
nothing, but its memory dies of a host's touch and it copies from and to pinned memory only; so these tests are of what is around
kernels: devices, memory, transfers, traces."""
import glob
import json
import os
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.client import timeline

import clusters
import messages
from clusters import error_of

tf1 = tf.compat.v1
PS = '/job:ps/replica:0/task:0/device:CPU:0'
WORKERS = [f'/job:worker/replica:0/task:{i}' for i in (0, 1)]
GPUS = [[f'{task}/device:GPU:{i}' for i in (0, 1)] for task in WORKERS]
GPU = GPUS[0][0]
MEMORY = 64 << 20  # that each has
NVRTC = [path for folder in sys.path for path in glob.glob(os.path.join(folder, 'nvidia', '*', 'lib', 'libnvrtc.so.1[0-9]'))]
COMPILES = pytest.mark.skipif(not NVRTC, reason='no NVRTC, which kernels are compiled by')


class GpuCluster(clusters.Cluster):
    """A parameter server, and two workers with two GPUs each."""

    def __init__(self, cache, **environment):
        self.environment = {'LD_LIBRARY_PATH': str(clusters.BUILD / 'tests' / 'fake'), 'WEIR_CACHE_DIR': str(cache),
                            'WEIR_NVRTC': NVRTC[0] if NVRTC else '', **environment}
        super().__init__({'ps': 1, 'worker': 2})

    def start(self, job, i):
        self.options = [f'--devices=cpu,cuda:2@memory={MEMORY}'] if job == 'worker' else []
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            super().start(job, i)


@pytest.fixture(scope='module')
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp('cache')


@pytest.fixture(scope='module')
def servers(cache):
    cluster = GpuCluster(cache)
    yield cluster
    cluster.stop()


@pytest.fixture(scope='module')
def servers_by_socket(cache):
    cluster = GpuCluster(cache, WEIR_SAME_HOST='0')
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(servers):
    yield servers
    assert servers.is_alive(), [task.errors() for task in servers.tasks.values()]
    servers.wait_until_idle()


def traced(s, fetches, **kwargs):
    metadata = tf1.RunMetadata()
    value = s.run(fetches, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata, **kwargs)
    return value, {d.device: {n.node_name: n for n in d.node_stats} for d in metadata.step_stats.dev_stats}, metadata


# ---- what there is ----

def test_list_devices(cluster):
    with clusters.session(cluster) as s:
        devices = {d.name: d for d in s.list_devices()}
    assert set(devices) == {PS, *(f'{task}/device:CPU:0' for task in WORKERS), *GPUS[0], *GPUS[1]}
    for name in GPUS[0] + GPUS[1]:
        assert devices[name].device_type == 'GPU' and devices[name].memory_limit_bytes == MEMORY
    assert len({d.incarnation for d in devices.values()}) == len(devices)


@pytest.mark.parametrize('task', [('ps', 0), ('worker', 0), ('worker', 1)], ids=lambda task: f'{task[0]}{task[1]}')
def test_what_a_gpu_is(cluster, task):
    """Whichever task is asked."""
    client = messages.Client(cluster.tasks[task].address)
    session = client.CreateSession().session_handle
    answer = client.ListDevices(session_handle=session)
    words = {d.name: d.physical_device_desc for d in [*answer.local_device, *answer.remote_device]}
    client.CloseSession(session_handle=session)
    client.close()
    for i, names in enumerate(zip(*GPUS)):
        for name in names:
            assert words[name] == (f'device: {i}, name: fake, pci bus id: 0000:0{i}:00.0, '
                                   f'compute capability: {["8.0", "9.0"][i]}')
    assert words[PS] == ''


@pytest.mark.parametrize('asked, got', [('/gpu:1', GPUS[0][1]), ('/job:worker/task:1/device:GPU:0', GPUS[1][0]),
                                        ('/job:worker/task:1', GPUS[1][0]), (None, GPU), ('/job:ps', PS)])
def test_names_whole_and_partial(cluster, asked, got):
    """A task's own GPU is preferred where the graph does not say."""
    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32, [4])
        with tf1.device(asked):
            y = tf.reshape(x, [2, 2], name='y')
        value, ran, _ = traced(s, y, feed_dict={x: range(4)})
    assert value.tolist() == [[0, 1], [2, 3]] and [d for d, nodes in ran.items() if 'y' in nodes] == [got]


def test_what_a_gpu_cannot_run(cluster):
    with clusters.session(cluster) as s, tf1.device(GPU):
        error = error_of(s.run, tf.strings.length(tf1.placeholder_with_default('abc', [])))
    assert isinstance(error, tf.errors.InvalidArgumentError) and 'GPU:0' in error.message
    with clusters.session(cluster, allow_soft_placement=True) as s, tf1.device(GPU):
        assert s.run(tf.strings.length(tf1.placeholder_with_default('abc', []))) == 3


# ---- memory ----

@pytest.mark.parametrize('use_resource', [True, False], ids=['resource', 'ref'])
def test_memory(cluster, use_resource):
    size, task = 4 << 20, cluster.tasks['worker', 1]

    def memory(name, gpu=GPUS[1][1]):
        return float(task.metrics()[f'weir_device_{name}{{device="{gpu}"}}'])
    before = memory('memory_bytes')
    with clusters.session(cluster, isolate_session_state=True) as s:
        x = tf1.placeholder(tf.float32, [size // 4])
        with tf1.device(GPUS[1][1]):
            v = tf1.Variable(x, use_resource=use_resource)
        s.run(v.initializer, {x: np.ones(size // 4)})
        during = memory('memory_bytes')
        assert size <= during - before < size + 4096
        assert during <= memory('memory_peak_bytes') <= memory('memory_limit_bytes') == MEMORY
        assert memory('memory_bytes', GPUS[1][0]) == 0
    clusters.wait_until(lambda: memory('memory_bytes') == before, what=lambda: f'{memory("memory_bytes")}, not {before}')
    assert memory('busy_ratio') == 0.37  # as the fake of NVML says


def test_out_of_memory(cluster):
    """It is the step's error, not the server's end."""
    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32, [None])
        with tf1.device(GPU):
            y = tf.reshape(x, [2, -1])
        error = error_of(s.run, y, {x: np.zeros(MEMORY // 4 + 2)})
        assert s.run(y, {x: [1, 2]}).tolist() == [[1], [2]]
    assert isinstance(error, tf.errors.ResourceExhaustedError) and 'GPU:0' in error.message


# ---- what crosses ----

PATHS = {'fed': [GPU], 'ps-gpu': [PS, GPU], 'gpu-ps': [GPU, PS], 'gpu-gpu': GPUS[0], 'there-and-back': [PS, GPU, PS],
         'over-the-network': [GPUS[0][1], GPUS[1][0]], 'everywhere': [PS, GPUS[1][1], GPUS[1][0], GPUS[0][1], GPU, PS]}


@pytest.mark.parametrize('path', PATHS, ids=str)
@pytest.mark.parametrize('by', ['servers', 'servers_by_socket'])
@pytest.mark.parametrize('dtype, count', [(tf.float32, 12), (tf.int32, 12), (tf.complex64, 12), (tf.float32, 1500000)])
def test_values_cross(request, by, path, dtype, count):
    """The network, the pinned buffers and the copies between GPUs: bytes stay what they are, whichever way they go."""
    cluster = request.getfixturevalue(by)
    value = np.arange(count).astype(dtype.as_numpy_dtype)
    with clusters.session(cluster) as s:
        x = y = tf1.placeholder(dtype, [count])
        for i, place in enumerate(PATHS[path]):
            with tf1.device(place):
                y = tf.reshape(y, [3, -1] if i % 2 else [-1, 2])
        for _ in range(2):
            np.testing.assert_array_equal(s.run(y, {x: value}).reshape(-1), value)
    cluster.wait_until_idle()


def test_saver(cluster, tmp_path):
    """What is in a GPU's memory is written, read by TensorFlow, and read back."""
    values = [np.full([3, 2], i, np.float32) for i in range(4)]
    with clusters.session(cluster, isolate_session_state=True) as s:
        kept = []
        for value, place in zip(values, GPUS[0] + GPUS[1]):
            with tf1.device(place):
                kept.append(tf1.get_variable(f'v{len(kept)}', initializer=value))
        saver = tf1.train.Saver()
        s.run(tf1.global_variables_initializer())
        path = saver.save(s, str(tmp_path / 'model'))
        for i, value in enumerate(values):
            np.testing.assert_array_equal(tf1.train.load_checkpoint(path).get_tensor(f'v{i}'), value)
        s.run([v.assign(np.zeros([3, 2])).op for v in kept])
        saver.restore(s, path)
        np.testing.assert_array_equal(s.run(kept), values)


def test_loop(cluster):
    """Its counter is on the host, so it ends as it should, though no kernel computes."""
    with clusters.session(cluster) as s, tf1.device(GPU):
        x = tf1.placeholder(tf.float32, [4])
        turns, y = tf1.while_loop(lambda i, _: i < 7, lambda i, a: (i + 1, tf.reshape(a, [4])), [0, x])
        got = s.run([turns, y], {x: range(4)})
    assert got[0] == 7 and got[1].tolist() == [0, 1, 2, 3]


def test_partial_run(cluster):
    with clusters.session(cluster) as s:
        a, b = (tf1.placeholder(tf.float32, [4]) for _ in range(2))
        with tf1.device(GPUS[1][0]):
            y = tf.reshape(a, [2, 2])
        with tf1.device(GPU):
            z = [tf.reshape(y, [4]), tf.reshape(b, [1, 4])]
        handle = s.partial_run_setup([y, *z], [a, b])
        assert s.partial_run(handle, y, {a: range(4)}).tolist() == [[0, 1], [2, 3]]
        assert [v.tolist() for v in s.partial_run(handle, z, {b: range(4)})] == [[0, 1, 2, 3], [[0, 1, 2, 3]]]


def test_callables(cluster):
    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32, [None])
        with tf1.device(GPUS[1][1]):
            run = s.make_callable(tf.reshape(x, [2, -1]), [x])
        assert [run(np.arange(n)).tolist() for n in (2, 4)] == [[[0], [1]], [[0, 1], [2, 3]]]


def test_functions(cluster):
    """With a body that asks for another GPU of the task."""
    @tf.function
    def turned(x):
        with tf1.device('/device:GPU:1'):
            return tf.reshape(x, [2, -1])

    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32, [4])
        with tf1.device(GPUS[1][0]):
            y = turned(x)
        assert s.run(y, {x: range(4)}).tolist() == [[0, 1], [2, 3]]


def test_queue(cluster):
    """Its elements are on the host, between GPUs of two tasks."""
    with clusters.session(cluster) as s:
        x = tf1.placeholder(tf.float32, [4])
        with tf1.device('/job:ps'):
            queue = tf1.FIFOQueue(3, tf.float32, [[2, 2]], shared_name=clusters.unique())
        with tf1.device(GPU):
            y = tf.reshape(x, [2, 2])
        fill = queue.enqueue(y)
        got = queue.dequeue()
        with tf1.device(GPUS[1][1]):
            z = tf.reshape(got, [4])
        for i in range(3):
            s.run(fill, {x: np.arange(4) + i})
        assert [s.run(z).tolist() for _ in range(3)] == [[i, i + 1, i + 2, i + 3] for i in range(3)]


def test_a_step_that_waits_is_cancelled(cluster):
    """A GPU waits for nobody who does not come."""
    with clusters.session(cluster, operation_timeout_in_ms=300) as s:
        with tf1.device('/job:ps'):
            queue = tf1.FIFOQueue(3, tf.float32, [[4]], shared_name=clusters.unique())
            got = queue.dequeue()
        with tf1.device(GPU):
            y = tf.reshape(got, [2, 2])
        assert isinstance(error_of(s.run, y), tf.errors.DeadlineExceededError)


def test_options_of_a_client(cluster):
    """What a server has, its own options say, as in TensorFlow."""
    options = tf1.GPUOptions(allow_growth=True, per_process_gpu_memory_fraction=0.1, visible_device_list='1')
    with clusters.session(cluster, device_count={'GPU': 0}, gpu_options=options, log_device_placement=True) as s:
        assert sum(d.device_type == 'GPU' for d in s.list_devices()) == 4
        x = tf1.placeholder(tf.float32, [4])
        with tf1.device(GPU):
            y = tf.reshape(x, [2, 2])
        assert s.run(y, {x: range(4)}).tolist() == [[0, 1], [2, 3]]


# ---- training ----

def model():
    """Variables on the parameter server, everything else on a worker's GPU; no products, which need a library and a GPU."""
    with tf1.device(tf1.train.replica_device_setter(ps_device='/job:ps/cpu:0', worker_device=GPU, ps_tasks=1)):
        x = tf1.placeholder(tf.float32, [16, 8])
        w = tf1.get_variable('w', initializer=np.ones([16, 8], np.float32), use_resource=True)
        step = tf1.train.get_or_create_global_step()
        loss = tf.reduce_sum(x * w, name='loss')
        return x, loss, tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step), step


@COMPILES
@pytest.mark.parametrize('master', [('worker', 0), ('ps', 0)], ids=lambda task: task[0])
def test_training(cluster, master):
    with clusters.session(cluster.tasks[master], isolate_session_state=True) as s:
        x, loss, train, step = model()
        s.run(tf1.global_variables_initializer())
        for _ in range(3):
            s.run([loss, train], {x: np.ones([16, 8])})
        assert s.run(step) == 3
        _, ran, metadata = traced(s, [loss, train], feed_dict={x: np.ones([16, 8])})
    assert any('ResourceApplyMomentum' in n.timeline_label for n in ran[PS].values())
    assert not any('Apply' in n.timeline_label for n in ran[GPU].values())
    check_trace(ran, metadata, master[0] == 'worker')


def check_trace(ran, metadata, is_master):
    """What the GPU did has rows of its own, by the host's clock, and TensorFlow's timeline reads them."""
    kernels, copies, host = ran[f'{GPU}/stream:all'], ran[f'{GPU}/memcpy'], ran[GPU]
    kinds = {name.split(':')[-1] for name in copies}
    assert kinds == {'MEMCPYHtoD', 'MEMCPYDtoH'} and 'loss:Sum' in kernels
    assert not is_master or any(name.endswith(':_Retval') for name in kernels)  # the loss, on its way to the client
    start = min(n.all_start_nanos for n in host.values())
    for name, row in [*kernels.items(), *copies.items()]:
        launch = host[name.rsplit(':', 1)[0]]
        assert start <= launch.all_start_nanos <= row.all_start_nanos, name
        assert row.all_start_nanos + row.all_end_rel_nanos < start + 10e9
    shown = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(op_time='gpu'))
    names = {event['args']['name'] for event in shown['traceEvents'] if event['name'] == 'process_name'}
    assert {f'{GPU}/stream:all Compute', f'{GPU}/memcpy Compute'} <= names
    assert any(event.get('args', {}).get('op') == 'MEMCPYDtoH' for event in shown['traceEvents'])
