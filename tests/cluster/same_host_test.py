"""Tensors between tasks of one machine, read from memory: when they are, when not, and that a receiver's death frees them."""
import json
import signal
import subprocess
import sys
import threading
import urllib.request

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


def metric(task, name):
    with urllib.request.urlopen(f'http://127.0.0.1:{task.metrics_port}/metrics', timeout=30) as page:
        lines = page.read().decode().splitlines()
    return int(next(line for line in lines if line.startswith(name + ' ')).split()[1])


def bytes_read(task):
    return metric(task, 'weir_tensor_same_host_bytes_total')


def held(task):
    return metric(task, 'weir_tensors_held')


def train(target, worker, steps=3):
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


def cluster_of(*environments):
    """Tasks ps:0, worker:0, worker:1, each with its own WEIR_SAME_HOST."""
    cluster = clusters.Cluster.__new__(clusters.Cluster)
    addresses = [f'127.0.0.1:{port}' for port in clusters.free_ports(3)]
    cluster.spec = f'ps|{addresses[0]},worker|{addresses[1]};{addresses[2]}'
    cluster.tasks = {}
    for (job, i), value in zip([('ps', 0), ('worker', 0), ('worker', 1)], environments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv('WEIR_SAME_HOST', value)
            cluster.start(job, i)
    cluster.target = cluster.tasks['worker', 0].target
    return cluster


@pytest.fixture(scope='module')
def three():
    cluster = cluster_of('1', '1', '1')
    yield cluster
    cluster.stop()


def test_large_tensors_are_read(three):
    ps, worker = three.tasks['ps', 0], three.tasks['worker', 1]
    before = bytes_read(ps), bytes_read(worker)
    train(three.target, WORKER % 1)
    assert bytes_read(worker) - before[1] == 3 * COUNT * 4
    assert bytes_read(ps) - before[0] == 3 * COUNT * 4
    clusters.wait_until(lambda: held(ps) + held(worker) == 0)
    assert metric(worker, 'weir_tensor_received_bytes_total') >= 3 * COUNT * 4
    assert metric(ps, 'weir_tensor_sent_bytes_total') >= 3 * COUNT * 4


def test_small_ones_and_strings_are_sent(three):
    before = bytes_read(three.tasks['worker', 1])
    with clusters.session(three.target) as s:
        with tf.device(PS):
            small = tf1.random_uniform([1000])
            strings = tf.fill([1 << 16], tf.constant('a string of some length'))
        with tf.device(WORKER % 1):
            fetches = tf.reduce_max(small), strings[-2:]
        top, last = s.run(fetches)
    assert 0 < top < 1 and list(last) == [b'a string of some length'] * 2
    assert bytes_read(three.tasks['worker', 1]) == before


@pytest.mark.parametrize('environments', [('0', '1', '1'), ('1', '1', '0'), ('0', '0', '0')])
def test_off(environments):
    cluster = cluster_of(*environments)
    train(cluster.target, WORKER % 1)
    assert bytes_read(cluster.tasks['ps', 0]) == bytes_read(cluster.tasks['worker', 1]) == 0
    cluster.stop()


def test_tensorflow_gets_and_sends_bytes():
    addresses = [f'127.0.0.1:{port}' for port in clusters.free_ports(3)]
    spec = f'ps|{addresses[0]},worker|{addresses[1]};{addresses[2]}'
    foreign = subprocess.Popen([sys.executable, '-c', TENSORFLOW_WORKER, json.dumps({'ps': addresses[:1], 'worker': addresses[1:]})],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    tasks = [clusters.Task(f'--cluster={spec}', f'--job={job}', '--task=0') for job in ('ps', 'worker')]
    try:
        assert clusters.read_line(foreign.stdout, 120) == 'ready\n'
        train(f'grpc://{addresses[2]}', WORKER % 1)
        assert [bytes_read(task) for task in tasks] == [0, 0]
        train(tasks[1].target, WORKER % 1)  # what the client fetches comes to its master, of the same kind
        assert [bytes_read(task) for task in tasks] == [0, COUNT * 4]
        train(tasks[1].target, WORKER % 0)
        assert [bytes_read(task) for task in tasks] == [3 * COUNT * 4, 5 * COUNT * 4]
    finally:
        foreign.kill()
        foreign.wait()
    for task in tasks:
        task.stop()


def test_receiver_killed_before_it_reads(three):
    """The tensor is promised to a worker that sleeps, and never wakes up."""
    ps, victim = three.tasks['ps', 0], three.tasks['worker', 1]
    caught = []
    with clusters.session(three.target) as s:
        with tf.device(PS):
            gate = tf1.FIFOQueue(1, [tf.float32], [[]], shared_name=clusters.unique())
            value = tf.fill([COUNT], gate.dequeue())
        with tf.device(WORKER % 1):
            top = tf.reduce_max(value)
        opened = gate.enqueue([1.])
        size = gate.size()

        def receive():
            try:
                s.run(top)
            except tf.errors.OpError as e:
                caught.append(e)

        s.run(size)
        for task in (ps, victim):  # what cleans up after that step comes after its answer
            clusters.wait_until(lambda: not any(task.held()[name] for name in ('weir_steps_open', 'weir_rpc_calls_running')))
        thread = threading.Thread(target=receive)
        thread.start()
        clusters.wait_until(lambda: metric(ps, 'weir_tensors_awaited') == 1)
        victim.process.send_signal(signal.SIGSTOP)
        s.run(opened)
        clusters.wait_until(lambda: held(ps) == 1)
        victim.process.kill()
        clusters.wait_until(lambda: held(ps) == 0)
        thread.join(60)
        assert not thread.is_alive() and isinstance(caught[0], (tf.errors.UnavailableError, tf.errors.AbortedError)), caught
    victim.process.wait()
    clusters.wait_until(lambda: ps.held()['weir_steps_open'] == 0)
    three.start('worker', 1)
    train(three.target, WORKER % 1)
