"""Collectives between tasks: one session over all of them, or a session of its own on each, as in training where every worker has
its client; results, errors, timeouts, and tasks that die."""
import contextlib
import threading
import time

import numpy as np
import pytest

import clusters
from clusters import tf, tf1

raw = tf.raw_ops
COUNT = 3


class Workers(clusters.Cluster):
    def kill(self, i):
        task = self.tasks['worker', i]
        task.process.kill()
        task.process.wait()

    def restart(self, i):
        self.kill(i)
        self.start('worker', i)


@pytest.fixture(scope='module')
def three():
    cluster = Workers({'worker': COUNT})
    yield cluster
    cluster.stop()


@pytest.fixture
def workers(three):
    yield three
    assert three.is_alive()
    three.wait_until_idle()


def on(i):
    return tf.device(f'/job:worker/task:{i}')


def keys(instance=1, group=1, size=COUNT):
    return {'group_size': size, 'group_key': group, 'instance_key': instance}


def reduce(x, merge='Add', final='Id', timeout=0., **kwargs):
    return raw.CollectiveReduce(input=x, merge_op=merge, final_op=final, subdiv_offsets=[0], timeout_seconds=timeout, **keys(**kwargs))


def values_of(shape, dtype=np.float32):
    rng = np.random.default_rng(1)
    return [(rng.standard_normal(shape) * 8).astype(dtype) for _ in range(COUNT)]


@pytest.mark.parametrize('dtype', [np.float32, np.int64, np.float16])
@pytest.mark.parametrize('shape', [(), (0,), (5, 2), (100, 1001)])
def test_reduces_across_tasks(workers, shape, dtype):
    """The largest shape is one that all tasks do a part of."""
    values = values_of(shape, dtype)
    with clusters.session(workers) as s:
        results = []
        for i, x in enumerate(values):
            with on(i):
                x = tf1.placeholder_with_default(x, shape)
                results.append([reduce(x), reduce(x, 'Max', instance=2), reduce(x, final='Div', instance=3)])
        for _ in range(3):
            got = s.run(results)
            for other in got[1:]:
                assert all(a.tobytes() == b.tobytes() for a, b in zip(got[0], other, strict=True))
        total = values[0] + values[1] + values[2]
        np.testing.assert_array_equal(got[0][0], total)
        np.testing.assert_array_equal(got[0][1], np.maximum(np.maximum(*values[:2]), values[2]))
        mean = total / dtype(COUNT) if dtype != np.int64 else np.trunc(total / COUNT)
        np.testing.assert_array_equal(got[0][2], np.asarray(mean, dtype))


def test_gathers_broadcasts_and_exchanges(workers):
    values = values_of((3, 2))
    same = {'group_size': COUNT, 'group_key': 5}
    with clusters.session(workers) as s:
        gathered, sent, exchanged, parts, called = [], [], [], [], []
        for i, x in enumerate(values):
            with on(i):
                gathered.append(raw.CollectiveGatherV2(input=x, instance_key=1, ordering_token=[], **same))
                sent.append(raw.CollectiveBcastSendV2(input=x, instance_key=2, **same) if i == 1 else
                            raw.CollectiveBcastRecvV2(T=tf.float32, shape=[3, 2], instance_key=2, **same))
                exchanged.append(raw.CollectiveAllToAllV2(input=x, instance_key=3, ordering_token=[], **same))
                parts.append(raw.CollectiveReduceScatterV2(input=x, instance_key=4, ordering_token=[], merge_op='Add', final_op='Id', **same))
                group = raw.CollectiveInitializeCommunicator(group_key=6, rank=COUNT - 1 - i, group_size=COUNT)
                none = tf.zeros([0, 0], tf.int32)
                first = raw.CollectiveReduceV3(input=x, communicator=group, group_assignment=none, reduction='Min')
                with tf.control_dependencies([first]):
                    called.append([first, raw.CollectiveAllToAllV3(input=x, communicator=group, group_assignment=none)])
        for _ in range(2):
            for i, (a, b, c, d, e) in enumerate(zip(*s.run([gathered, sent, exchanged, parts, called]), strict=True)):
                np.testing.assert_array_equal(a, np.concatenate(values))
                np.testing.assert_array_equal(b, values[1])
                np.testing.assert_array_equal(c, [x[i] for x in values])
                np.testing.assert_array_equal(d, (values[0] + values[1] + values[2])[i:i + 1])
                np.testing.assert_array_equal(e[0], np.minimum.reduce(values))
                np.testing.assert_array_equal(e[1], [x[COUNT - 1 - i] for x in reversed(values)])


class Client(threading.Thread):
    """A worker's own client: it runs what |build| makes on its task, |steps| times, and keeps the results or the error."""

    def __init__(self, cluster, i, build, steps=1):
        super().__init__()
        self.task, self.i, self.build, self.steps = cluster.tasks['worker', i], i, build, steps
        self.results, self.error, self.ended = [], None, None
        self.start()

    def run(self):
        config = {'device_filters': [f'/job:worker/task:{self.i}']}
        with contextlib.suppress(tf.errors.OpError), clusters.session(self.task, **config) as s:
            with on(self.i):
                result = self.build(self.i)
            try:
                for _ in range(self.steps):
                    self.results.append(s.run(result))
            except tf.errors.OpError as error:
                self.error = error
            self.ended = time.monotonic()


def clients(cluster, build, steps=1, indices=range(COUNT)):
    return [Client(cluster, i, build, steps) for i in indices]


def join(threads):
    for thread in threads:
        thread.join(clusters.PATIENCE_MS / 1000 + 30)
        assert not thread.is_alive()
    return threads


@pytest.mark.parametrize('size', [3, 200_000])
def test_sessions_of_their_own(workers, size):
    """Each step of a worker meets the same step of the others."""
    def build(i):
        step = tf1.Variable(np.float32(0), name=clusters.unique(), use_resource=True)
        s = tf1.get_default_session()
        s.run(step.initializer)
        return reduce(step.assign_add(1.) * np.full(size, 10. ** i, np.float32), group=11)

    for client in join(clients(workers, build, 20)):
        assert client.error is None, client.error
        for step, result in enumerate(client.results):
            np.testing.assert_array_equal(result, np.full(size, 111. * (step + 1), np.float32))


def test_many_instances_at_once(workers):
    def build(i):
        return [reduce(np.float32([i, k]), instance=k, group=12) for k in range(60)]

    for client in join(clients(workers, build, 3)):
        assert client.error is None, client.error
        np.testing.assert_array_equal(client.results[-1], [[3, 3 * k] for k in range(60)])


@pytest.mark.parametrize('large', [False, True])
def test_disagreement_is_an_error_on_all(workers, large):
    size = 100_000 if large else 2

    def shapes(i):
        return reduce(np.zeros(size + (i == 1), np.float32), group=13)

    def types(i):
        return reduce(np.zeros(size, np.float32 if i else np.float64), group=13)

    def sizes(i):
        return reduce(np.zeros(size, np.float32), group=14 + large, size=COUNT + (i == 2))

    for build, kind, text in ((shapes, tf.errors.InvalidArgumentError, 'Shape mismatch in the collective instance 1'),
                              (types, tf.errors.InternalError, 'Collective instance 1 expected type 0')):
        for client in join(clients(workers, build)):
            assert isinstance(client.error, kind) and text in str(client.error), client.error
    errors = [client.error for client in join(clients(workers, lambda i: reduce(np.zeros(size, np.float32), group=13)))]
    assert errors == [None] * COUNT
    for client in join(clients(workers, sizes)):
        assert isinstance(client.error, tf.errors.InternalError) and 'is joining a group with size' in str(client.error), client.error


def test_timeouts(workers):
    threads = join(clients(workers, lambda i: reduce(np.float32(1), group=16, timeout=0.5), indices=(0, 1)))
    for client in threads:
        assert isinstance(client.error, tf.errors.DeadlineExceededError), client.error
        assert 'Collective has timed out waiting for other workers.' in str(client.error)


def wait_for_members(cluster):
    """The members of other tasks have come to the leader, task 0, and wait."""
    time.sleep(0.5)
    assert cluster.is_alive()


@pytest.mark.parametrize('victim', [0, 1, 2])
@pytest.mark.parametrize('large', [False, True])
def test_a_task_that_dies(three, victim, large):
    """Task 0 leads. The others learn within seconds, and all work again when it is back."""
    three.wait_until_idle()
    size = 100_000 if large else 3
    group = 20 + victim + 10 * large

    def build(i):
        return reduce(np.full(size, i, np.float32), group=group)

    others = [i for i in range(COUNT) if i != victim]
    for client in join(clients(three, build)):
        assert client.error is None, client.error
    waiting = clients(three, build, indices=others)
    wait_for_members(three)
    killed = time.monotonic()
    three.kill(victim)
    for client in join(waiting):
        assert isinstance(client.error, tf.errors.UnavailableError), client.error
        assert client.ended - killed < 10
    three.start('worker', victim)
    # A connection to the task that died may be found dead by the first call over it.
    for _ in range(5):
        again = join(clients(three, build))
        if not any(isinstance(client.error, tf.errors.UnavailableError) for client in again):
            break
    for client in again:
        assert client.error is None, client.error
        np.testing.assert_array_equal(client.results[0], np.full(size, 3, np.float32))
    three.wait_until_idle()


def test_a_task_that_dies_within_a_step(three):
    """One session over all tasks: its step ends, and so do the next ones until the task is back."""
    with tf.Graph().as_default():
        s = tf1.Session(three.target, config=tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS))
        results, gates = [], []
        for i in range(COUNT):
            with on(i):
                queue = tf1.FIFOQueue(1, tf.float32, [[]], shared_name=clusters.unique())
                gates.append(queue.enqueue(1.))
                results.append(reduce(queue.dequeue(), group=40))
        s.run(gates)
        np.testing.assert_array_equal(s.run(results), [3, 3, 3])
        s.run(gates[:2])
        outcome = []

        def step():
            try:
                s.run(results)
            except tf.errors.OpError as error:
                outcome.append(error)

        thread = threading.Thread(target=step)
        thread.start()
        wait_for_members(three)
        three.kill(2)
        thread.join(clusters.PATIENCE_MS / 1000)
        assert isinstance(outcome[0], (tf.errors.UnavailableError, tf.errors.AbortedError)), outcome
        with contextlib.suppress(tf.errors.OpError):
            s.close()
    three.start('worker', 2)
    for client in join(clients(three, lambda i: reduce(np.float32(1), group=40))):
        assert client.error is None and client.results == [3.], client.error
    three.wait_until_idle()


def test_devices_of_tasks():
    """Two tasks of two CPUs each, one group over all four, and one within a task."""
    cluster = clusters.Cluster({'worker': 2}, '--devices=cpu:2')
    with clusters.session(cluster) as s:
        everywhere, within = [], []
        for i in range(4):
            with tf.device(f'/job:worker/task:{i // 2}/cpu:{i % 2}'):
                everywhere.append(raw.CollectiveGather(input=np.float32([i]), shape=[4], **keys(size=4)))
                large = np.full(200_000, i, np.float32)
                within.append([reduce(large, group=2 + i // 2, size=2), reduce(large, group=4, size=4)])
        a, b = s.run([everywhere, within])
        np.testing.assert_array_equal(a, [[0, 1, 2, 3]] * 4)
        for i, (pair, four) in enumerate(b):
            assert np.all(pair == (1 if i < 2 else 5)) and np.all(four == 6)
    cluster.wait_until_idle()
    cluster.stop()
