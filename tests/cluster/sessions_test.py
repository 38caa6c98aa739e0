"""Sessions of TensorFlow's client: made, extended, listed, shared, isolated, reset and closed."""
import random
import threading
import time

import numpy as np
import pytest

from clusters import error_of, session, tf, tf1, unique, wait_until
from messages import Client, code_of


def test_session_is_made_at_the_first_call(server):
    with tf.Graph().as_default():
        # Nobody is there, and the session does not mind until something is asked of it.
        s = tf1.Session('grpc://127.0.0.1:1', config=tf1.ConfigProto(operation_timeout_in_ms=1000))
        c = tf.constant(1)
        error = error_of(s.run, c)
        assert isinstance(error, (tf.errors.UnavailableError, tf.errors.DeadlineExceededError))


def test_list_devices(any_server):
    with session(any_server) as s:
        devices = s.list_devices()
        names = [d.name for d in devices]
        assert all(d.device_type == 'CPU' and d.memory_limit_bytes > 0 and d.incarnation for d in devices)
        if len(names) == 1:
            assert names == ['/job:localhost/replica:0/task:0/device:CPU:0']
        else:
            assert sorted(names) == [f'/job:{job}/replica:0/task:{i}/device:CPU:0' for job in ('ps', 'worker') for i in (0, 1)]
        assert len({d.incarnation for d in devices}) == len(devices)
    with session(any_server) as s:
        assert {(d.name, d.incarnation) for d in s.list_devices()} == {(d.name, d.incarnation) for d in devices}


def test_graph_grows(any_server):
    with session(any_server) as s:
        a = tf.constant(2.0, name='a')
        assert s.run(a) == 2
        b = a * 3
        assert s.run(b) == 6
        for i in range(20):
            b = b + i
            s.run(b)
        assert s.run(b) == 6 + sum(range(20))
        assert s.run(a) == 2


def test_function_library_comes_again_with_every_extension(any_server):
    with session(any_server) as s:
        @tf.function
        def double(x):
            return x * 2

        @tf.function
        def quadruple(x):
            return double(double(x))

        a = double(tf.constant(1.5))
        assert s.run(a) == 3
        b = quadruple(a)
        assert s.run(b) == 12
        c = tf.cond(b > 1, lambda: double(b), lambda: b)
        d = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, quadruple(x)), [0, c])
        assert s.run([c, d[1]]) == [24, 24 * 64]


def test_variables_live_between_runs_and_sessions(any_server):
    graph = tf.Graph()
    with graph.as_default():
        shared = tf1.get_variable('between_sessions', [2], initializer=tf1.ones_initializer(), use_resource=True)
        ref = tf1.get_variable('between_sessions_ref', [2], initializer=tf1.ones_initializer(), use_resource=False)
        add, add_ref = shared.assign_add([1, 2]), tf1.assign_add(ref, [3, 4])
    with session(any_server, graph) as s:
        s.run([shared.initializer, ref.initializer])
        s.run([add, add_ref])
    with session(any_server, graph) as s:
        np.testing.assert_array_equal(s.run(shared), [2, 3])
        np.testing.assert_array_equal(s.run(ref), [4, 5])
        with session(any_server, graph) as other:
            other.run([add, add_ref])
        np.testing.assert_array_equal(s.run(shared), [3, 5])
        np.testing.assert_array_equal(s.run(ref), [7, 9])


def test_isolated_sessions_have_state_of_their_own(any_server):
    graph = tf.Graph()
    with graph.as_default():
        v = tf1.get_variable('isolated', [], initializer=tf1.zeros_initializer(), use_resource=True)
        add = v.assign_add(1)
    with session(any_server, graph, isolate_session_state=True) as a, session(any_server, graph, isolate_session_state=True) as b:
        a.run(v.initializer)
        a.run(add)
        error = error_of(b.run, v)
        assert isinstance(error, tf.errors.FailedPreconditionError)
        b.run(v.initializer)
        assert (a.run(v), b.run(v)) == (1, 0)
        with session(any_server, graph) as open_one:
            assert isinstance(error_of(open_one.run, v), tf.errors.FailedPreconditionError)


def test_isolated_state_on_other_tasks(cluster):
    graph = tf.Graph()
    with graph.as_default(), tf.device('/job:ps/task:1'):
        v = tf1.get_variable('isolated_on_ps', [], initializer=tf1.zeros_initializer(), use_resource=True)
    with session(cluster, graph, isolate_session_state=True) as a, session(cluster, graph, isolate_session_state=True) as b:
        a.run(v.initializer)
        assert a.run(v) == 0
        assert isinstance(error_of(b.run, v), tf.errors.FailedPreconditionError)


def test_reset_empties_containers(any_server):
    def build():
        with tf.Graph().as_default() as graph:
            variables = []
            for container in ('kept', 'dropped'):
                with tf1.container(container):
                    variables.append(tf1.get_variable('in_' + container, [], initializer=tf1.ones_initializer(), use_resource=True))
            return graph, variables
    graph, variables = build()
    with session(any_server, graph) as s:
        s.run([v.initializer for v in variables])
        assert s.run(variables) == [1, 1]
    tf1.Session.reset(any_server.target, ['dropped'])
    with session(any_server, graph) as s:
        assert s.run(variables[0]) == 1
        assert isinstance(error_of(s.run, variables[1]), tf.errors.FailedPreconditionError)


def test_reset_reaches_all_tasks(cluster):
    graph = tf.Graph()
    with graph.as_default(), tf1.container('everywhere'):
        variables = []
        for task in ('ps/task:0', 'ps/task:1', 'worker/task:1'):
            with tf.device('/job:' + task):
                variables.append(tf1.get_variable('v_' + task.replace(':', '_'), [], initializer=tf1.ones_initializer(),
                                                  use_resource=True))
    with session(cluster, graph) as s:
        s.run([v.initializer for v in variables])
        assert s.run(variables) == [1, 1, 1]
    tf1.Session.reset(cluster.target, ['everywhere'])
    with session(cluster, graph) as s:
        for v in variables:
            assert isinstance(error_of(s.run, v), tf.errors.FailedPreconditionError)


def test_reset_closes_sessions(any_server):
    s = tf1.Session(any_server.target, graph=tf.Graph())
    with s.graph.as_default():
        c = tf.constant(1)
    s.run(c)
    tf1.Session.reset(any_server.target, ['whatever'])
    assert isinstance(error_of(s.run, c), tf.errors.AbortedError)


def test_reset_without_containers(server):
    """What is in named containers and what is not: the same as with TensorFlow's server."""
    graph = tf.Graph()
    with graph.as_default():
        plain = tf1.get_variable('of_no_container', [], initializer=tf1.ones_initializer(), use_resource=True)
    with session(server, graph) as s:
        s.run(plain.initializer)
    tf1.Session.reset(server.target)
    with session(server, graph) as s:
        assert isinstance(error_of(s.run, plain), tf.errors.FailedPreconditionError)


def test_device_filters_hide_tasks(cluster):
    with session(cluster, device_filters=['/job:ps/task:1']) as s:
        names = sorted(d.name for d in s.list_devices())
        assert names == ['/job:ps/replica:0/task:1/device:CPU:0', '/job:worker/replica:0/task:0/device:CPU:0']
        with tf.device('/job:ps/task:1'):
            assert s.run(tf.constant(1) + 1) == 2
        with tf.device('/job:ps/task:0'):
            error = error_of(s.run, tf.constant(1) + 1)
        assert isinstance(error, tf.errors.InvalidArgumentError)
        assert 'ps/task:0' in error.message or '/job:ps/task:0' in error.message
    with session(cluster, device_filters=['/job:ps', '/job:worker/task:0']) as s:
        assert len(s.list_devices()) == 3


@pytest.mark.parametrize('where', ['/job:worker/task:0', '/job:ps/task:0', '/job:worker/task:1'])
def test_close_ends_a_blocked_run(cluster, where):
    graph = tf.Graph()
    with graph.as_default(), tf.device(where):
        queue = tf.queue.FIFOQueue(1, tf.float32, shared_name=unique())
        item = queue.dequeue() + 1
        size = queue.size()
    s = tf1.Session(cluster.target, graph=graph)
    s.run(size)
    wait_until(lambda: cluster.open_steps() == 0)
    errors = []
    thread = threading.Thread(target=lambda: errors.append(error_of(s.run, item)))
    thread.start()
    job, index = where.removeprefix('/job:').split('/task:')
    wait_until(cluster.tasks[job, int(index)].open_steps)
    time.sleep(0.1)
    assert not errors
    s.close()
    thread.join(60)
    assert len(errors) == 1 and isinstance(errors[0], tf.errors.CancelledError)
    with graph.as_default():
        put = queue.enqueue(5.0)
    with session(cluster, graph) as after:  # nothing of it is left to take the item
        after.run(put)
        assert after.run(item) == 6


def test_closed_session_is_unknown(server):
    client = Client(server.address)
    handle = client.CreateSession().session_handle
    client.CloseSession(session_handle=handle)
    assert code_of(client.CloseSession, session_handle=handle)[0] == 'ABORTED'
    assert code_of(client.RunStep, session_handle=handle, fetch=['a:0'])[0] == 'ABORTED'
    client.close()


def test_partial_run_that_starts_as_its_session_closes(server):
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [], name='x')
        y = x
        for _ in range(30):  # takes a moment to set up
            y = tf.math.sin(y) + 1
    client = Client(server.address)
    for _ in range(100):
        handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
        setup = client.start('PartialRunSetup', session_handle=handle, feed=['x:0'], fetch=[y.name])
        client.CloseSession(session_handle=handle)
        assert setup.code().name in ('OK', 'CANCELLED', 'ABORTED')
    client.close()
    server.wait_until_idle()


def test_worker_session_whose_master_gave_up(server):
    """It cancels the call that makes it and says that it is to go: which may overtake the call."""
    tasks = {i: f'10.0.0.1:{i + 1}' for i in range(4000)}  # takes a moment to read
    cluster = tf.train.ClusterSpec({'worker': tasks}).as_cluster_def()
    server_def = tf.train.ServerDef(cluster=cluster, job_name='worker', task_index=0)
    client = Client(server.address)
    for _ in range(10):
        handle = unique()
        create = client.start('CreateWorkerSession', session_handle=handle, server_def=server_def)
        time.sleep(random.random() * 0.01)
        create.cancel()
        client.DeleteWorkerSession(session_handle=handle)
    server.wait_until_idle()
    client.close()


def test_many_sessions_leave_nothing(any_server):
    """Sessions that come, run and go do not make the servers grow."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [1000])
        y = tf.reduce_sum(x * 2)

    def churn(count):
        for _ in range(count):
            with session(any_server, graph) as s:
                assert s.run(y, {x: np.ones(1000)}) == 2000
    churn(15)
    before = any_server.memory()
    churn(40)
    wait_until(lambda: any_server.memory() - before < 8 << 20)


def test_sessions_of_many_threads(any_server):
    failures = []

    def work(seed):
        try:
            with session(any_server) as s:
                x = tf1.placeholder(tf.float32, [None])
                y = tf.reduce_sum(x) + seed
                for i in range(20):
                    assert s.run(y, {x: np.full(i, 1.0)}) == i + seed
        except Exception as e:  # reported by the test's own thread
            failures.append(e)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failures


def test_one_session_of_many_threads(any_server):
    failures = []
    with session(any_server) as s:
        x = tf1.placeholder(tf.float32, [None])
        outs = [tf.reduce_sum(x) * i for i in range(6)]
        v = tf1.get_variable('counter', [], initializer=tf1.zeros_initializer(), use_resource=True)
        add = v.assign_add(1, read_value=False)
        s.run(v.initializer)

        def work(k):
            try:
                for i in range(20):
                    assert s.run([outs[k], add], {x: np.full(i, 1.0)})[0] == i * k
            except Exception as e:
                failures.append(e)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert not failures
        assert s.run(v) == 120
