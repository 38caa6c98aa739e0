"""Tensors between tasks by UCX, over TCP and through shared memory: their values, loops, steps that fail, tasks that are killed, and
clusters of which not all tasks have it."""
import ctypes
import json
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import clusters

tf1 = tf.compat.v1
PS, WORKER = '/job:ps/task:0', '/job:worker/task:%d'
COUNT = 1 << 20  # floats: 4 MiB
TENSORFLOW_WORKER = '''
import json, sys
import tensorflow as tf
server = tf.distribute.Server(json.loads(sys.argv[1]), job_name='worker', task_index=1)
print('ready', flush=True)
sys.stdin.read()
'''
TCP, SHARED = {'UCX_TLS': 'tcp,self'}, {'UCX_TLS': 'posix,sysv,cma,self'}
UCX = {'WEIR_TRANSPORT': 'ucx', 'WEIR_SAME_HOST': '0', 'TF_CPP_MIN_LOG_LEVEL': '0'}
if clusters.IS_SANITIZED:  # which UCX is not to pull the C library's code from under
    UCX['UCX_MEM_MMAP_HOOK_MODE'] = 'none'


def has_ucx():
    try:
        return bool(ctypes.CDLL('libucp.so.0'))
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_ucx(), reason='libucp.so.0 is not there (Debian: libucx0)')


def start(cluster, job, i, environment):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        cluster.start(job, i)


def cluster_of(*environments, options=()):
    """Tasks ps:0, worker:0, worker:1, each with its own environment."""
    cluster = clusters.Cluster.__new__(clusters.Cluster)
    cluster.options = options
    addresses = [f'127.0.0.1:{port}' for port in clusters.free_ports(3)]
    cluster.spec = f'ps|{addresses[0]},worker|{addresses[1]};{addresses[2]}'
    cluster.tasks = {}
    for (job, i), environment in zip([('ps', 0), ('worker', 0), ('worker', 1)], environments):
        start(cluster, job, i, environment)
    cluster.target = cluster.tasks['worker', 0].target
    return cluster


def metric(task, name):
    return int(float(task.metrics()[name]))


def tensors(task):
    return metric(task, 'weir_tensors_ucx_total')


def is_idle(task):
    return metric(task, 'weir_tensors_ucx_sending') == 0


def secret(number):
    """The number, as a tensor that nobody can fold into a constant, which would not cross to another task."""
    return tf.floor(tf1.random_uniform([], number + .25, number + .75))


def run_train(target, worker, steps):
    """A variable on the parameter server goes to a worker and comes back as an update, a few times."""
    with clusters.session(target) as s:
        with tf.device(PS):
            v = tf1.get_variable(clusters.unique(), initializer=np.arange(COUNT, dtype=np.float32), use_resource=True)
        with tf.device(worker):
            update = v.read_value() * 2.
        with tf.device(PS):
            step = tf1.assign_add(v, update).op
        s.run(v.initializer)
        for _ in range(steps):
            s.run(step)
        np.testing.assert_array_equal(s.run(v), np.arange(COUNT, dtype=np.float32) * 3. ** steps)


def connect(cluster):
    """The first tensors between two tasks go as bytes, while they learn each other's addresses."""
    for worker in (0, 1):
        pair = cluster.tasks['ps', 0], cluster.tasks['worker', worker]

        def has_both():
            before = [tensors(task) for task in pair]
            run_train(cluster.target, WORKER % worker, 1)
            return all(tensors(task) > count for task, count in zip(pair, before))

        clusters.wait_until(has_both)


@pytest.fixture(scope='module', params=[TCP, SHARED], ids=['tcp', 'shared'])
def three(request):
    environment = {**UCX, **request.param}
    cluster = cluster_of(environment, environment, environment)
    cluster.environment = environment
    connect(cluster)
    yield cluster
    cluster.stop()


def test_large_tensors_go_by_ucx(three):
    ps, worker = three.tasks['ps', 0], three.tasks['worker', 1]
    before = [metric(task, 'weir_tensor_ucx_bytes_total') for task in (ps, worker)]
    run_train(three.target, WORKER % 1, 3)
    assert metric(worker, 'weir_tensor_ucx_bytes_total') - before[1] == 3 * COUNT * 4
    assert metric(ps, 'weir_tensor_ucx_bytes_total') - before[0] == 3 * COUNT * 4
    assert metric(worker, 'weir_tensor_received_bytes_total') >= 3 * COUNT * 4
    assert metric(ps, 'weir_tensor_sent_bytes_total') >= 3 * COUNT * 4
    assert is_idle(ps) and is_idle(worker)


@pytest.mark.parametrize('dtype', [tf.uint8, tf.bool, tf.float16, tf.int64, tf.complex128])
@pytest.mark.parametrize('shape', [[3, 0, 5], [], [1 << 20], [7, 100003], [1, 65536, 9]])
def test_values(three, dtype, shape):
    value = np.random.RandomState(0).randint(0, 256, shape, np.int32)
    with clusters.session(three.target) as s:
        with tf.device(PS):
            fed = tf1.placeholder(tf.int32, shape)
            sent = tf.cast(fed, dtype)
        with tf.device(WORKER % 1):
            came = tf.identity(sent)
        result = s.run(came, {fed: value})
    np.testing.assert_array_equal(result, value.astype(dtype.as_numpy_dtype))
    assert list(result.shape) == shape


def test_strings_and_small_ones_go_as_bytes(three):
    before = tensors(three.tasks['worker', 1])
    with clusters.session(three.target) as s:
        with tf.device(PS):
            small = tf1.random_uniform([1000])
            strings = tf.fill([1 << 16], tf.constant('a string of some length'))
        with tf.device(WORKER % 1):
            fetches = tf.reduce_max(small), strings[-2:]
        top, last = s.run(fetches)
    assert 0 < top < 1 and list(last) == [b'a string of some length'] * 2
    assert tensors(three.tasks['worker', 1]) == before


def test_very_large(three):
    size = 160 << 20
    with clusters.session(three.target) as s:
        with tf.device(PS):
            sent = tf.cast(tf.range(size) % 251, tf.uint8)
        with tf.device(WORKER % 1):
            came = tf.bitcast(tf.reshape(sent, [-1, 4]), tf.int32)
            total = tf.reduce_sum(tf.cast(came, tf.int64))
        with tf.device(PS):
            expected = tf.reduce_sum(tf.cast(tf.bitcast(tf.reshape(sent, [-1, 4]), tf.int32), tf.int64))
        before = tensors(three.tasks['worker', 1])
        came, expected = s.run((total, expected))
        assert came == expected
        assert tensors(three.tasks['worker', 1]) == before + 1


def test_loop_over_tasks(three):
    with clusters.session(three.target) as s:
        def body(i, x):
            with tf.device(PS):
                x = x + 1.
            with tf.device(WORKER % 1):
                return i + 1, x * 2.

        with tf.device(WORKER % 0):
            _, x = tf1.while_loop(lambda i, x: i < 10, body, (0, tf.zeros([COUNT])))
        before = tensors(three.tasks['worker', 1])
        np.testing.assert_array_equal(s.run(x), np.full(COUNT, 2. ** 11 - 2, np.float32))
        assert tensors(three.tasks['worker', 1]) >= before + 10


def test_many_at_once(three):
    with clusters.session(three.target) as s:
        parts = []
        for i in range(24):
            with tf.device(PS if i % 2 else WORKER % 0):
                part = tf.fill([COUNT // 4], secret(i))
            with tf.device(WORKER % 1):
                parts.append(tf.reduce_max(part) - tf.reduce_min(part) + tf.reduce_mean(part[:100]))
        for _ in range(5):
            np.testing.assert_allclose(s.run(parts), np.arange(24))


def failing_step(worker):
    """A step whose large tensors are on their way when another of its parts fails."""
    with tf.device(PS):
        parts = [tf.fill([COUNT * 2], secret(i)) for i in range(8)]
        wrong = tf.debugging.Assert(tf1.placeholder_with_default(False, []), ['it is wrong'])
    with tf.device(worker):
        return [tf.reduce_max(part) for part in parts], wrong


def test_steps_that_fail(three):
    ps, worker = three.tasks['ps', 0], three.tasks['worker', 1]
    with clusters.session(three.target) as s:
        tops, wrong = failing_step(WORKER % 1)
        for _ in range(10):
            with pytest.raises(tf.errors.InvalidArgumentError, match='it is wrong'):
                s.run([tops, wrong])
        assert s.run(tops) == list(range(8))
    clusters.wait_until(lambda: is_idle(ps) and is_idle(worker))
    three.wait_until_idle()


def test_steps_that_are_cancelled(three):
    """The deadline comes while the tensors do, or shortly before or after."""
    ps, worker = three.tasks['ps', 0], three.tasks['worker', 1]
    with clusters.session(three.target) as s:
        tops, _ = failing_step(WORKER % 1)
        with tf.device(PS):
            stuck = tf1.FIFOQueue(1, [tf.float32], [[]], shared_name=clusters.unique()).dequeue()
        with pytest.raises(tf.errors.DeadlineExceededError):  # which makes all tasks ready
            s.run([tops, stuck], options=tf1.RunOptions(timeout_in_ms=5000))
        for timeout_ms in (1, 5, 10, 20, 40, 80):
            with pytest.raises(tf.errors.DeadlineExceededError):
                s.run([tops, stuck], options=tf1.RunOptions(timeout_in_ms=timeout_ms))
    with clusters.session(three.target) as s:
        tops, _ = failing_step(WORKER % 1)
        assert s.run(tops) == list(range(8))
    clusters.wait_until(lambda: is_idle(ps) and is_idle(worker))
    three.wait_until_idle()


def kill_midway(cluster, victim, steps):
    """Runs steps until |victim| is killed in one of them, which fails."""
    caught = []
    with clusters.session(cluster.target) as s:
        with tf.device(PS):
            parts = [tf.fill([COUNT * 8], tf1.random_uniform([])) for _ in range(4)]
        with tf.device(WORKER % 1):
            tops = [part * 2. for part in parts]
        with tf.device(PS):
            fetches = [tf.reduce_max(top) for top in tops]

        def run():
            try:
                for _ in range(steps):
                    s.run(fetches)
            except tf.errors.OpError as e:
                caught.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        task = cluster.tasks[victim]
        before = tensors(cluster.tasks['ps', 0])
        clusters.wait_until(lambda: tensors(cluster.tasks['ps', 0]) > before + 6)
        task.process.kill()
        thread.join(60)
        assert not thread.is_alive() and isinstance(caught[0], (tf.errors.UnavailableError, tf.errors.AbortedError)), caught
    task.process.wait()


@pytest.mark.parametrize('victim', [('worker', 1), ('ps', 0)])
@pytest.mark.parametrize('environment', [TCP, SHARED], ids=['tcp', 'shared'])
def test_killed_midway(environment, victim):
    """The others end the step, let go of what was on its way, and meet the task that comes in its place."""
    environment = {**UCX, **environment}
    cluster = cluster_of(environment, environment, environment)
    connect(cluster)
    for _ in range(2):
        kill_midway(cluster, victim, steps=10000)
        others = [task for name, task in cluster.tasks.items() if name != victim]
        clusters.wait_until(lambda: sum(task.open_steps() for task in others) == 0)
        if environment['UCX_TLS'] == TCP['UCX_TLS']:  # through shared memory nobody learns that it is not read any more
            clusters.wait_until(lambda: all(is_idle(task) for task in others))
        start(cluster, *victim, environment)
        connect(cluster)
    cluster.stop()


@pytest.mark.parametrize('without', [0, 1, 2])
def test_one_task_has_none(without):
    environments = [{**UCX, **TCP} for _ in range(3)]
    environments[without] = {'WEIR_SAME_HOST': '0'}
    cluster = cluster_of(*environments)
    tasks = list(cluster.tasks.values())
    for _ in range(4):
        run_train(cluster.target, WORKER % 0, 1)
        run_train(cluster.target, WORKER % 1, 1)
    if without:  # the other two meet
        clusters.wait_until(lambda: (run_train(cluster.target, WORKER % (2 - without), 1), tensors(tasks[0]) > 0)[1])
    assert tensors(tasks[without]) == 0
    cluster.stop()


def test_same_host_where_there_is_no_ucx():
    both = {'WEIR_TRANSPORT': 'ucx', **TCP}
    cluster = cluster_of(both, both, {})
    run_train(cluster.target, WORKER % 1, 3)
    assert tensors(cluster.tasks['worker', 1]) == 0
    assert metric(cluster.tasks['worker', 1], 'weir_tensor_same_host_bytes_total') == 3 * COUNT * 4
    cluster.stop()


def test_tensorflow_gets_and_sends_bytes():
    addresses = [f'127.0.0.1:{port}' for port in clusters.free_ports(3)]
    spec = f'ps|{addresses[0]},worker|{addresses[1]};{addresses[2]}'
    foreign = subprocess.Popen([sys.executable, '-c', TENSORFLOW_WORKER, json.dumps({'ps': addresses[:1], 'worker': addresses[1:]})],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**UCX, **TCP}.items():
            patch.setenv(name, value)
        tasks = [clusters.Task(f'--cluster={spec}', f'--job={job}', '--task=0') for job in ('ps', 'worker')]
    try:
        assert clusters.read_line(foreign.stdout, 120) == 'ready\n'
        run_train(f'grpc://{addresses[2]}', WORKER % 1, 3)
        run_train(tasks[1].target, WORKER % 1, 3)
        clusters.wait_until(lambda: (run_train(tasks[1].target, WORKER % 0, 1), all(tensors(task) > 0 for task in tasks))[1])
    finally:
        foreign.kill()
        foreign.wait()
    for task in tasks:
        task.stop()


def test_no_way_for_ucx():
    """What UCX cannot do here is said, and costs nothing else."""
    environment = {**UCX, 'UCX_TLS': 'rc'}
    cluster = cluster_of(environment, environment, environment)
    run_train(cluster.target, WORKER % 1, 3)
    task = cluster.tasks['worker', 1]
    assert 'tensors do not go by UCX: ' in task.errors()
    assert tensors(task) == 0
    cluster.stop()


def test_stdout_is_quiet(three):
    """UCX would write there."""
    assert clusters.read_line(three.tasks['ps', 0].process.stdout, 0.1) == ''


def run_server(*args):
    server = subprocess.run([clusters.WEIR, 'server', *args], capture_output=True, text=True, timeout=60)
    return server.returncode, server.stderr


def test_flag(tmp_path):
    assert run_server('--transport=pigeons') == (2, 'weir: INVALID_ARGUMENT: transport \'pigeons\' is none of auto, ucx, ucx:plain\n')
    code, text = run_server('--transport=ucx', '--tls-cert=cert.pem', '--tls-key=key.pem')
    assert code == 2 and 'unencrypted' in text
    code, text = run_server('--transport=ucx:plain', '--tls-cert=cert.pem', '--tls-key=key.pem')
    assert 'cert.pem' in text and 'unencrypted' not in text
