"""Kernels that take long or wait: other steps and sessions go on, and a step that is cancelled ends at once.

No test measures time: one that would have to wait for the kernel ends by the limit of its calls instead.
"""
import contextlib
import os
import threading

import pytest

import clusters
from clusters import error_of, session, tf, tf1, wait_until

LONG = 12000  # rows and columns of a product that takes minutes


@pytest.fixture(scope='module', params=[1, 2])
def task(request):
    task = clusters.Task('--port=0', f'--threads={request.param}')
    yield task
    task.stop()


@pytest.fixture
def busy(task):
    """The server, whose threads are to be kept busy by the test; nothing is left of it afterwards."""
    yield task
    assert task.is_alive(), task.errors()
    task.wait_until_idle()


class Step(threading.Thread):
    """A step that runs in a session of its own until the session is closed."""

    def __init__(self, task, build, feeds=None):
        super().__init__(daemon=True)
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.fetch = build()
        self.session = tf1.Session(task.target, graph=self.graph)
        self.feeds = feeds
        self.error = None
        self.result = None

    def run(self):
        try:
            self.result = self.session.run(self.fetch, self.feeds)
        except tf.errors.OpError as e:
            self.error = e

    def is_running(self):
        return self.is_alive()


@contextlib.contextmanager
def running(task, build):
    """Runs a step in the background; in the end it is cancelled, and must end."""
    step = Step(task, build)
    step.start()
    wait_until(lambda: task.held()['weir_steps_open'] > 0)
    try:
        yield step
        assert step.is_running(), f'the step ended too early: {step.result!r} {step.error!r}'
    finally:
        step.session.close()
    step.join(clusters.PATIENCE_MS / 1000)
    assert not step.is_running(), 'the step goes on after its session was closed'
    assert isinstance(step.error, tf.errors.CancelledError), step.error


def long_product():
    x = tf1.random_uniform([1])  # not folded
    matrix = tf.fill([LONG, LONG], x[0])
    return tf.reduce_sum(tf.matmul(matrix, matrix))


def expect_prompt(task):
    """A new session, two signatures, an extended graph, a loop: all while the other step runs."""
    with session(task) as s:
        x = tf1.placeholder(tf.float32, [3])
        assert list(s.run(x + 1, {x: [1, 2, 3]})) == [2, 3, 4]
        assert s.run(tf.reduce_sum(x), {x: [1, 2, 3]}) == 6
        loop = tf.while_loop(lambda i: i < 20, lambda i: i + 1, [tf.size(x)])
        assert s.run(loop, {x: [1, 2, 3]}) == [20]


def test_others_go_on(busy):
    with running(busy, long_product):
        expect_prompt(busy)


def test_many_long_kernels_at_once(busy):
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(running(busy, long_product))
        expect_prompt(busy)


def test_a_step_known_to_be_short_becomes_long(busy):
    """What was short with small feeds is no work for the thread that serves connections once they are large."""
    graph = tf.Graph()
    with graph.as_default():
        n = tf1.placeholder(tf.int32)
        matrix = tf.fill([n, n], 1.5)
        product = tf.reduce_sum(tf.matmul(matrix, matrix))
        count = tf.while_loop(lambda i: i < n, lambda i: i + 1, [0])
    for fetch, large in [(product, LONG), (count, 10**9)]:
        with session(busy, graph) as warm:
            for _ in range(20):
                warm.run(fetch, {n: 2})
            done = []
            thread = threading.Thread(target=lambda: done.append(error_of(warm.run, fetch, {n: large})))
            thread.start()
            wait_until(lambda: busy.held()['weir_steps_open'] > 0)
            expect_prompt(busy)
            assert not done
        thread.join(clusters.PATIENCE_MS / 1000)
        assert isinstance(done[0], tf.errors.CancelledError)


def test_a_deadline_ends_a_long_kernel(busy):
    with session(busy, operation_timeout_in_ms=500) as s:
        fetch = long_product()
        assert isinstance(error_of(s.run, fetch), tf.errors.DeadlineExceededError)
    busy.wait_until_idle()


# ---- kernels other than a product ----

def strings(count):
    return tf.strings.as_string(tf.range(tf.cast(count * tf1.random_uniform([], 1, 1.1), tf.int64)))


LONG_STEPS = {
    'elementwise': lambda: tf.reduce_sum(tf.sin(tf.sin(tf.sin(tf1.random_uniform([10**9]))))),
    'strings': lambda: tf.size(tf.strings.regex_full_match(strings(2 * 10**7), '.*9+')),
    'unique': lambda: tf.size(tf.unique(tf.range(tf.cast(5e7 * tf1.random_uniform([], 1, 1.1), tf.int64)))[0]),
    'cholesky': lambda: tf.linalg.cholesky(tf1.random_uniform([], 1, 2) * tf.eye(9000)),
    'double product': lambda: tf.reduce_sum(tf.matmul(*[tf1.random_uniform([9000, 9000], dtype=tf.float64)] * 2)),
    'loop': lambda: tf.while_loop(lambda i: i < 10**9, lambda i: i + 1, [tf1.random_uniform([], 0, 1)]),
}


@pytest.mark.parametrize('name', LONG_STEPS)
def test_a_long_step_ends_when_it_is_cancelled(busy, name):
    with session(busy, operation_timeout_in_ms=1500) as s:
        fetch = LONG_STEPS[name]()
        assert isinstance(error_of(s.run, fetch), tf.errors.DeadlineExceededError)
    busy.wait_until_idle()


# ---- files that never end ----

@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / 'fifo')
    return str(tmp_path / 'fifo')


def read_by_reader(path):
    """By a reader of its own: one that others began a file with would go on with that."""
    name = os.path.basename(path)
    queue = tf1.FIFOQueue(1, [tf.string], name=f'{name}_queue')
    with tf.control_dependencies([queue.enqueue([path])]):
        return tf1.TextLineReader(name=f'{name}_reader').read(queue)[1]


def test_a_line_without_end(busy, tmp_path):
    with open(tmp_path / 'zeros', 'wb') as f:
        f.truncate(1 << 42)
    with session(busy, operation_timeout_in_ms=150) as s:
        fetch = read_by_reader(str(tmp_path / 'zeros'))
        assert isinstance(error_of(s.run, fetch), tf.errors.DeadlineExceededError)
    wait_until(lambda: busy.open_steps() == 0)
    assert busy.memory() < 1 << 30


def test_a_fifo_is_refused_and_holds_no_thread(busy, fifo):
    with session(busy) as s:
        for fetch in [tf.io.read_file(fifo), tf.io.write_file(fifo, 'x'), read_by_reader(fifo),
                      tf1.raw_ops.RestoreV2(prefix=fifo, tensor_names=['a'], shape_and_slices=[''], dtypes=[tf.float32])]:
            error = error_of(s.run, fetch)
            assert isinstance(error, tf.errors.OpError) and not isinstance(error, tf.errors.DeadlineExceededError), error
        expect_prompt(busy)


def test_a_device_is_as_long_as_its_size_says(busy):
    with session(busy) as s:
        assert s.run(tf.io.read_file('/dev/zero')) == b''


def test_a_file_larger_than_memory(busy, tmp_path):
    with open(tmp_path / 'large', 'wb') as f:
        f.truncate(1 << 42)
    with session(busy) as s:
        error = error_of(s.run, tf.io.read_file(str(tmp_path / 'large')))
        assert isinstance(error, tf.errors.ResourceExhaustedError)
        assert 'large' in str(error)


# ---- sizes that cannot be ----

LARGE = 1 << 38
NO_MEMORY = {
    'Fill': lambda: tf.fill([LARGE], tf1.random_uniform([])),
    'Tile': lambda: tf.tile(tf1.random_uniform([1]), [LARGE]),
    'Range': lambda: tf.range(tf.cast(LARGE * tf1.random_uniform([], 1, 1.1), tf.int64)),
    'OneHot': lambda: tf.one_hot(tf1.random_uniform([1024], maxval=9, dtype=tf.int32), 1 << 30),
    'Pad': lambda: tf.pad(tf1.random_uniform([1]), tf.constant([[0, LARGE]], tf.int64)),
    'BroadcastTo': lambda: tf.broadcast_to(tf1.random_uniform([1]), tf.constant([LARGE], tf.int64)),
    'RandomUniform': lambda: tf1.random_uniform(tf.constant([LARGE], tf.int64)),
    'SparseToDense': lambda: tf1.sparse_to_dense(tf.constant([[0]], tf.int64), tf.constant([LARGE], tf.int64), tf1.random_uniform([])),
    'ScatterNd': lambda: tf.scatter_nd(tf.constant([[0]], tf.int64), tf1.random_uniform([1]), tf.constant([LARGE], tf.int64)),
    'AsString': lambda: tf.strings.as_string(tf1.random_uniform([64]), width=2**31 - 1),
    'Fill of strings': lambda: tf.fill([LARGE], tf.strings.as_string(tf1.random_uniform([]))),
    'Fill of a long string': lambda: tf.fill([1 << 16], tf.strings.as_string(tf1.random_uniform([]), width=1 << 24)),
    'Tile of a long string': lambda: tf.tile([tf.strings.as_string(tf1.random_uniform([]), width=1 << 24)], [1 << 16]),
    'Gather of a long string': lambda: tf.gather([tf.strings.as_string(tf1.random_uniform([]), width=1 << 24)], tf.zeros([1 << 16], tf.int32)),
    'StringJoin': lambda: tf.strings.join([tf.fill([1 << 16], 'a'), tf.strings.as_string(tf1.random_uniform([]), width=1 << 24)]),
    'BatchMatMul': lambda: tf.matmul(tf.ones([1, 1 << 20, 1]) * tf1.random_uniform([]), tf.ones([1, 1, 1 << 20])),
}


@pytest.mark.parametrize('name', NO_MEMORY)
def test_a_size_that_cannot_be(busy, name):
    with session(busy) as s:
        fetch = NO_MEMORY[name]()
        error = error_of(s.run, fetch.op)
        assert isinstance(error, (tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)), error
    assert busy.memory() < 8 << 30
