"""Sessions: structures, threads, time, cancellation, Ctrl-C, use after close; servers, of steps and of models."""
import collections
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest

import weir as w

FOREVER = '''
import weir as w
queue = w.fifo_queue_v2([w.float32])
item = w.queue_dequeue_v2(queue, [w.float32])
'''


def forever():
    return w.queue_dequeue_v2(w.fifo_queue_v2([w.float32]), [w.float32])


def test_structures():
    Pair = collections.namedtuple('Pair', 'a b')
    x = w.constant([1, 2], name='x')
    with w.Session() as session:
        got = session.run({'pair': Pair(x, w.no_op()), 'list': [x + 1, (x,)], 'name': 'x:0', 'node': 'x', 'none': None})
    assert got['pair'].b is None and got['none'] is None
    for value in (got['pair'].a, got['list'][1][0], got['name'], got['node']):
        assert value.tolist() == [1, 2]
    with w.Session() as session, pytest.raises(w.NotFoundError, match='nope'):
        session.run('nope')
    with w.Session() as session, pytest.raises(TypeError, match='neither an edge'):
        session.run(3)


def test_variables_and_initial_values():
    v = w.Variable(w.initializers.constant(3), shape=[2, 2], name='v')
    u = w.Variable([1, 2], name='u', trainable=False)
    assert v.variable_name == 'v' and u.dtype == w.int32 and not u.trainable
    with w.Session() as session:
        with pytest.raises(w.FailedPreconditionError, match='v'):
            session.run(v)
        session.init()
        session.run([v.assign_add(np.ones((2, 2))), u.assign([3, 4])])
        assert session.run([v, u])[0].tolist() == [[4, 4], [4, 4]] and session.run(u).tolist() == [3, 4]


def test_threads_share_a_session():
    x = w.placeholder(w.float32, shape=[None])
    y, wrong = w.sum(x * 2), []
    with w.Session() as session:
        step = session.callable(y, [x])

        def work(n):
            for _ in range(50):
                if session.run(y, {x: np.full(2000, n)}) != 4000 * n or step(np.full(10, n)) != 20 * n:
                    wrong.append(n)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_threads_build_one_graph(graph):
    def work():
        with graph:
            for _ in range(50):
                with w.scope('s'):
                    w.identity(1.0)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sum(n.type == 'Identity' for n in graph.nodes) == 200


def test_timeout_and_cancel():
    item = forever()
    with w.Session() as session:
        with pytest.raises(w.DeadlineExceededError):
            session.run(item, timeout=0.05)
        threading.Timer(0.1, session.cancel).start()
        with pytest.raises(w.CancelledError):
            session.run(item)


def test_close_ends_steps_and_later_calls_are_errors():
    item = forever()
    session, caught = w.Session(), []
    step = session.callable(w.constant(1))

    def work():
        try:
            session.run(item)
        except w.Error as error:
            caught.append(error.code)
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.1)
    session.close()
    thread.join()
    assert caught == ['CANCELLED'] or caught == ['FAILED_PRECONDITION']
    for call in (lambda: session.run(item), session.init, session.cancel, step, lambda: session.save('x'), lambda: session.callable(item)):
        with pytest.raises(w.FailedPreconditionError, match='closed'):
            w.Variable(1.0)
            call()
    session.close()


def test_ctrl_c_cancels_a_step():
    item = forever()
    with w.Session() as session:
        for run in (lambda: session.run(item), session.callable(item)):
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                run()
        assert session.run(w.constant(2)) == 2


def test_ctrl_c_ends_a_script():
    code = 'import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n' + FOREVER + 'print("waiting", flush=True)\nw.Session().run(item)\n'
    with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b'waiting\n'
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert b'KeyboardInterrupt' in process.communicate(timeout=60)[1]


def test_a_process_ends_with_everything_open():
    code = FOREVER + '''
import threading, numpy as np, time
session = w.Session()
v = w.Variable(np.zeros(10000, np.float32))
x = w.placeholder(w.float32, shape=[10000])
session.init()
session.run(v.assign(x), {x: np.ones(10000, np.float32)})
server = w.Server()
def work():
    try:
        session.run(item)
    except w.Error:
        pass
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
'''
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_server_runs_a_session():
    try:
        server = w.Server()
    except w.UnimplementedError:
        pytest.skip('built without the cluster')
    x = w.placeholder(w.float32, shape=[None])
    v = w.Variable(np.ones(3, np.float32))
    with server, w.Session(target=server.target) as session:
        session.init()
        assert session.run(w.sum(x) + w.sum(v), {x: [1, 2]}) == 6
        assert server.port > 0 and not server.wait(0.01)
    with pytest.raises(w.FailedPreconditionError, match='closed'):
        server.port  # pylint: disable=pointless-statement


def test_models_are_served(tmp_path):
    x = w.placeholder(w.float32, shape=[None], name='x')
    with w.Session() as session:
        w.save_model(session, str(tmp_path / 'doubler'), {'x': x}, {'y': x * 2})
    try:
        serving = w.serve({'twice': tmp_path / 'doubler'}, labels=['twice/stable=1'], port=-1, rest_port=-1, poll_ms=-1)
    except w.UnimplementedError:
        pytest.skip('built without the cluster')
    with serving:
        assert serving.port > 0 and serving.rest_port != serving.port
        url = f'http://127.0.0.1:{serving.rest_port}/v1/models/twice/labels/stable:predict'
        with urllib.request.urlopen(urllib.request.Request(url, b'{"instances": [1, 2.5]}'), timeout=60) as answer:
            assert json.load(answer) == {'predictions': [2, 5]}
        serving.wait(0.01)
    with pytest.raises(w.FailedPreconditionError, match='closed'):
        serving.port  # pylint: disable=pointless-statement
    with pytest.raises(w.NotFoundError):
        w.serve(tmp_path / 'nothing', port=-1, rest_port=-1)


def test_traces():
    x = w.constant(np.ones((50, 50), np.float32))
    with w.Session() as session:
        value, trace = session.trace(w.sum(w.matmul(x, x)))
    assert value == 125000 and '"traceEvents"' in trace


def test_imports_without_numpy():
    code = 'import sys, weir as w\nw.constant\nassert "numpy" not in sys.modules and "tensorflow" not in sys.modules'
    subprocess.run([sys.executable, '-c', code], check=True)
