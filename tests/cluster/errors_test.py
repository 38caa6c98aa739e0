"""What goes wrong in steps, as TensorFlow's client sees it: classes of errors, the node, timeouts, cancelled steps."""
import threading
import time

import numpy as np
import pytest

from clusters import error_of, session, tf, tf1, unique, wait_until

ELSEWHERE = '/job:ps/task:1'


def place(servers):
    return tf.device(ELSEWHERE if hasattr(servers, 'tasks') else None)


def test_kernel_errors_name_the_node(any_server):
    with session(any_server) as s, place(any_server):
        x = tf1.placeholder(tf.float32)
        cases = [
            (tf.debugging.check_numerics(x, 'look here', name='checked'), [np.nan], tf.errors.InvalidArgumentError, 'look here'),
            (tf.gather(tf.constant([1, 2]), tf.cast(x, tf.int32), name='picked'), [7], tf.errors.InvalidArgumentError, '7'),
            (tf.reshape(x, [5], name='shaped'), [1, 2], tf.errors.InvalidArgumentError, 'with 2 values'),
            (tf.io.read_file(tf.strings.as_string(x[0]), name='file'), [1], tf.errors.NotFoundError, 'No such file'),
        ]
        for node, value, kind, text in cases:
            error = error_of(s.run, node, {x: value})
            assert type(error) is kind, error
            assert text in error.message
            assert error.op is node.op, (node.name, error.message)


def test_errors_on_another_task_are_as_on_this_one(cluster):
    messages = []
    for where in ('/job:worker/task:0', '/job:ps/task:0'):
        with session(cluster) as s:
            x = tf1.placeholder(tf.float32)
            with tf.device(where):
                y = tf.reshape(x, [5], name='shaped')
            with tf.device('/job:ps/task:1'):
                z = y + 1
            error = error_of(s.run, z, {x: [1, 2]})
            assert type(error) is tf.errors.InvalidArgumentError
            assert error.op is y.op
            messages.append(error.message)
            assert s.run(z, {x: np.ones(5)}).shape == (5,)  # the next step is well
    assert all('with 2 values' in m for m in messages)


def test_uninitialized_variables(any_server):
    with session(any_server) as s, place(any_server):
        for use_resource in (True, False):
            v = tf1.get_variable(f'never_set_{use_resource}', [2], use_resource=use_resource)
            error = error_of(s.run, v)
            assert type(error) is tf.errors.FailedPreconditionError
            assert f'never_set_{use_resource}' in error.message


def test_placeholder_not_fed(any_server):
    with session(any_server) as s, place(any_server):
        x = tf1.placeholder(tf.float32, [2], name='must_be_fed')
        error = error_of(s.run, x + 1)
        assert type(error) is tf.errors.InvalidArgumentError
        assert 'must_be_fed' in error.message and 'You must feed a value' in error.message


def test_dequeue_from_a_closed_queue(any_server):
    with session(any_server) as s, place(any_server):
        queue = tf.queue.FIFOQueue(3, tf.float32, shared_name=unique())
        s.run(queue.close())
        assert type(error_of(s.run, queue.dequeue())) is tf.errors.OutOfRangeError
        assert type(error_of(s.run, queue.enqueue(1.0))) is tf.errors.CancelledError


def test_unknown_ops_are_named(any_server):
    """An op that Weir lacks: the graph is taken, the rest of it runs, its own node is refused by name."""
    from tensorflow.python.framework import test_ops  # noqa: F401  ops of TensorFlow's own tests
    with session(any_server) as s, place(any_server):
        fine = tf.constant(1) + 1
        odd = test_ops.none()
        wrapped = tf.identity(test_ops.int_output())
        assert s.run(fine) == 2
        for fetch, op in [(odd, 'None'), (wrapped, 'IntOutput'), (test_ops.int_output(), 'IntOutput')]:
            error = error_of(s.run, fetch)
            assert isinstance(error, (tf.errors.NotFoundError, tf.errors.UnimplementedError)), error
            assert f"Op type not registered '{op}'" in error.message, error.message
        assert s.run(fine) == 2


def test_fetches_nobody_knows(any_server):
    from messages import Client, code_of
    target = any_server.target.removeprefix('grpc://')
    client = Client(target)
    graph = tf.Graph()
    with graph.as_default():
        tf.constant(1.0, name='known')
        tf1.placeholder(tf.float32, name='fed')
    handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
    code, message = code_of(client.RunStep, session_handle=handle, fetch=['unknown:0'])
    assert code == 'NOT_FOUND' and 'unknown' in message
    code, message = code_of(client.RunStep, session_handle=handle, target=['unknown'])
    assert code == 'NOT_FOUND' and 'unknown' in message
    code, message = code_of(client.RunStep, session_handle=handle, fetch=['known:3'])
    assert code in ('INVALID_ARGUMENT', 'NOT_FOUND') and 'known' in message
    tensor = tf.make_tensor_proto(1.0)
    code, message = code_of(client.RunStep, session_handle=handle, fetch=['known:0'], feed=[{'name': b'gone:0', 'tensor': tensor}])
    assert code in ('INVALID_ARGUMENT', 'NOT_FOUND') and 'gone' in message
    twice = [{'name': b'fed:0', 'tensor': tensor}] * 2
    code, message = code_of(client.RunStep, session_handle=handle, fetch=['fed:0'], feed=twice)
    assert code == 'INVALID_ARGUMENT' and 'fed' in message
    client.CloseSession(session_handle=handle)
    client.close()


def test_wrong_type_fed(any_server):
    from messages import Client
    client = Client(any_server.target.removeprefix('grpc://'))
    graph = tf.Graph()
    with graph.as_default(), place(any_server):
        tf.identity(tf1.placeholder(tf.float32, [2], name='x'), name='y')
    handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto([1, 2])}]
    response = client.RunStep(session_handle=handle, fetch=['y:0'], feed=feed, store_errors_in_response_body=True)
    assert response.status_code == 3 and b'x' in response.status_error_message
    client.CloseSession(session_handle=handle)
    client.close()


# ---- time ----

@pytest.mark.parametrize('where', [None, '/job:worker/task:0', '/job:ps/task:0'])
def test_run_times_out(cluster, where):
    with session(cluster) as s, tf.device(where):
        queue = tf.queue.FIFOQueue(3, tf.float32, shared_name=unique())
        item = queue.dequeue() * 2
        s.run(queue.size())
        start = time.monotonic()
        error = error_of(s.run, item, options=tf1.RunOptions(timeout_in_ms=200))
        assert type(error) is tf.errors.DeadlineExceededError
        assert time.monotonic() - start < 20
        s.run(queue.enqueue(2.0))  # the step is gone and takes nothing
        assert s.run(item) == 4


def test_session_times_out(any_server):
    with session(any_server, operation_timeout_in_ms=3000) as s, place(any_server):
        queue = tf.queue.FIFOQueue(3, tf.float32, shared_name=unique())
        item = queue.dequeue()
        s.run(queue.size())
        assert type(error_of(s.run, item)) is tf.errors.DeadlineExceededError
        assert s.run(queue.size()) == 0


def test_endless_loop_times_out(any_server):
    with session(any_server) as s, place(any_server):
        x = tf1.placeholder(tf.float32, [])
        turn = tf.while_loop(lambda i: i < x, lambda i: i + 1e-30, [0.0])[0]
        error = error_of(s.run, turn, {x: 1}, options=tf1.RunOptions(timeout_in_ms=300))
        assert type(error) is tf.errors.DeadlineExceededError
        assert s.run(turn, {x: -1}) == 0


def test_many_cancelled_steps_leave_nothing(any_server):
    with session(any_server) as s, place(any_server):
        queue = tf.queue.FIFOQueue(3, tf.float32, shared_name=unique())
        x = tf1.placeholder(tf.float32, [1 << 16])
        item = queue.dequeue() * tf.reduce_sum(x)
        s.run(queue.size())
        data = np.ones(1 << 16)

        def cancel(count):
            errors = []

            def work():
                errors.append(type(error_of(s.run, item, {x: data}, options=tf1.RunOptions(timeout_in_ms=100))))
            threads = [threading.Thread(target=work) for _ in range(count)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(60)
            assert errors == [tf.errors.DeadlineExceededError] * count
        cancel(8)
        before = any_server.memory()
        for _ in range(6):
            cancel(8)
        wait_until(lambda: any_server.memory() - before < 16 << 20)
        s.run(queue.enqueue(3.0))
        assert s.run(item, {x: data}) == 3 * (1 << 16)


def test_client_that_vanishes_ends_its_step(any_server):
    """The connection of a raw client breaks while its step waits: the step lets go of what it waits for."""
    from messages import Client
    graph = tf.Graph()
    with graph.as_default(), place(any_server):
        queue = tf.queue.FIFOQueue(3, tf.float32, shared_name=unique())
        item = queue.dequeue(name='item')
        put = queue.enqueue(1.0)
        size = queue.size()
    client = Client(any_server.target.removeprefix('grpc://'))
    handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
    call = client.start('RunStep', session_handle=handle, fetch=[item.name])
    wait_until(lambda: any_server.open_steps() == (2 if hasattr(any_server, 'tasks') else 1))  # the master's, and where the queue is
    assert not call.done()
    client.close()
    wait_until(lambda: any_server.open_steps() == 0)
    with session(any_server, graph) as s:
        s.run(put)
        assert s.run(size) == 1
        assert s.run(item) == 1
    closer = Client(any_server.target.removeprefix('grpc://'))  # a session outlives its client's connection
    closer.CloseSession(session_handle=handle)
    closer.close()


def test_failed_signatures_do_not_stay(any_server):
    """The same failing signature again and again: nothing is kept of it, here or on other tasks."""
    from tensorflow.python.framework import test_ops
    with session(any_server) as s:
        with place(any_server):
            a = tf.identity(tf.constant(np.ones(1 << 16, np.float32)) * tf1.placeholder_with_default(1.0, []))
        bad = tf.identity(test_ops.int_output())
        both = tf.group(a, bad)

        def churn(count):
            for _ in range(count):
                error_of(s.run, both)
        churn(20)
        before = any_server.memory()
        churn(60)
        wait_until(lambda: any_server.memory() - before < 8 << 20)
