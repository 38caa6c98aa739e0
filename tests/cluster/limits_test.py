"""What clients may ask of a server: graphs, messages, connections, steps and calls have limits, each a flag. Who asks for more is told
so by its name, and a second client is served all the while."""
import contextlib
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

import clusters

tf, tf1 = clusters.tf, clusters.tf1


class Other:
    """A client that runs one step after the other until it is told to end; every one must succeed, and soon."""

    def __init__(self, task):
        self.count, self.longest, self.error = 0, 0.0, None
        self.is_ending = threading.Event()
        graph = tf1.Graph()
        with graph.as_default():
            x = tf1.placeholder(tf.float32, [None])
            self.step = lambda session, i: session.run(y, {x: [i, 1.0]})
            y = tf1.reduce_sum(x) + 1.0
        self.session = tf1.Session(task.target, graph=graph)
        assert self.step(self.session, 1.0) == 3.0
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self.is_ending.is_set():
                start = time.monotonic()
                assert self.step(self.session, float(self.count % 100)) == self.count % 100 + 2.0
                self.longest = max(self.longest, time.monotonic() - start)
                self.count += 1
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        before = self.count
        deadline = time.monotonic() + 30
        while self.count < before + 3 and not self.error and time.monotonic() < deadline:
            time.sleep(0.01)
        self.is_ending.set()
        self.thread.join()
        self.session.close()
        assert self.error is None, self.error
        assert self.count >= before + 3 and self.longest < 30


@contextlib.contextmanager
def serving(*flags):
    task = clusters.Task('--port=0', *flags)
    with Other(task):
        yield task
    assert task.is_alive()
    task.stop()


def refused(flag):
    return pytest.raises(tf.errors.ResourceExhaustedError, match=f'--{flag}')


def test_graphs():
    with serving('--max-graph-size=64K') as task:
        for _ in range(3):
            with tf1.Graph().as_default(), refused('max-graph-size'):
                tf1.constant(np.arange(20000, dtype=np.float32))
                with tf1.Session(task.target) as session:
                    session.run(tf1.constant(1))
        # A graph that grows by little and little has the same limit.
        with tf1.Graph().as_default(), tf1.Session(task.target) as session:
            assert session.run(tf1.constant(1)) == 1
            with refused('max-graph-size'):
                for i in range(20):
                    session.run(tf1.constant(np.full(2000, i, np.float32))[0])


def test_messages():
    with serving('--max-message-size=1M') as task, tf1.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None])
        y = tf1.reduce_sum(x)
        with tf1.Session(task.target) as session:
            for _ in range(3):
                assert session.run(y, {x: np.ones(200000)}) == 200000
                with refused('max-message-size'):
                    session.run(y, {x: np.ones(1000000)})


def test_tensors_between_tasks():
    """What a peer sends counts like what a client does. On the network, so that it is a message."""
    ports = clusters.free_ports(2)
    spec = f'--cluster=ps|127.0.0.1:{ports[0]},worker|127.0.0.1:{ports[1]}'
    ps = clusters.Task(spec, '--job=ps')
    worker = clusters.Task(spec, '--job=worker', '--max-message-size=100K')
    with tf1.Graph().as_default():
        count = tf1.placeholder(tf.int32, [])
        with tf1.device('/job:ps/task:0'):
            large = tf1.ones([count])
        with tf1.device('/job:worker/task:0'):
            total = tf1.reduce_sum(large * 2)
        with tf1.Session(worker.target) as session:
            assert session.run(total, {count: 1000}) == 2000
            with refused('max-message-size'):
                session.run(total, {count: 50000})
            assert session.run(total, {count: 1000}) == 2000
    for task in (ps, worker):
        task.stop()


def test_connections():
    with serving('--max-connections=10') as task, contextlib.ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(socket.create_connection(('127.0.0.1', task.port), 30))
        assert task.descriptors() < 400
        with tf1.Graph().as_default():
            answer = tf1.constant(1)
        # Connections that are refused are told so, as long as there are not too many.
        clusters.wait_until(lambda: int(task.metrics()['weir_rpc_connections']) <= 11)
        done = subprocess.run([clusters.WEIR, 'server', f'--shut-down={task.address}'], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and '--max-connections' in done.stderr, done.stderr
        stack.close()
        clusters.wait_until(lambda: int(task.metrics()['weir_rpc_connections']) < 10)
        config = tf1.ConfigProto()
        with tf1.Session(task.target, graph=answer.graph, config=config) as session:
            assert session.run(answer) == 1


def test_steps():
    with tf1.Graph().as_default():
        queue = tf1.FIFOQueue(10, tf.float32, [[]])
        taken, put = queue.dequeue(), queue.enqueue(1.0)
    task = clusters.Task('--port=0', '--max-steps=4')
    first, second = (tf1.Session(task.target, graph=taken.graph) for _ in range(2))
    second.run(put)
    assert first.run(taken) == 1.0
    outcomes = []

    def wait():
        try:
            first.run(taken, options=tf1.RunOptions(timeout_in_ms=5000))
        except tf.errors.OpError as error:
            outcomes.append(type(error))
    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    clusters.wait_until(lambda: task.open_steps() == 4)
    with refused('max-steps'):
        second.run(put)
    for thread in threads:
        thread.join()
    assert outcomes == [tf.errors.DeadlineExceededError] * 4
    clusters.wait_until(lambda: task.open_steps() == 0)  # a step is told to have ended a moment before it has
    second.run(put)
    assert first.run(taken) == 1.0
    for session in (first, second):
        session.close()
    task.stop()


def test_slow_readers(tmp_path):
    """Clients that stop in the midst of large answers hold those, and nobody else; when they are gone, nothing is left of them."""
    with tf1.Graph().as_default() as graph:
        tf1.identity(tf1.ones([50000000]), name='large')
    (tmp_path / 'large.pb').write_bytes(graph.as_graph_def().SerializeToString())
    command = [clusters.WEIR, 'run', tmp_path / 'large.pb', '--fetch=large:0']
    answered = 'weir_rpc_calls_total{method="/tensorflow.MasterService/RunStep",code="OK"}'
    task = clusters.Task('--port=0')
    with contextlib.ExitStack() as stack:
        for i in range(3):
            reader = stack.enter_context(subprocess.Popen([*command, f'--target={task.target}'], stdout=subprocess.DEVNULL))
            stack.callback(reader.kill)
            clusters.wait_until(lambda n=i: int(task.metrics().get(answered, 0)) > n)
            reader.send_signal(signal.SIGSTOP)
        with Other(task):
            time.sleep(0.5)
    clusters.wait_until(lambda: int(task.metrics()['weir_rpc_connections']) == 0)
    clusters.wait_until(lambda: int(task.metrics()['weir_tensor_memory_bytes']) < 1 << 20)
    task.stop()


@pytest.mark.parametrize('flag', ['--max-steps=0', '--max-calls=-1', '--max-connections=x', '--max-graph-size=0', '--max-message-size=1T',
                                  '--max-message-size=99999999999999999999', '--max-message-size=', '--max-graph-size=1KK'])
def test_bad_flags(flag):
    done = subprocess.run([clusters.WEIR, 'server', '--port=0', flag], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and flag in done.stderr, done.stderr
