"""Requests that TensorFlow's client does not send: malformed, repeated, out of order, too large, of worker methods by hand."""
import random
import socket
import time

import grpc
import numpy as np
import pytest

import messages
from clusters import tf, tf1, wait_until
from messages import Client, code_of

METHODS = messages.MASTER + messages.WORKER
DEVICE = '/job:localhost/replica:0/task:0/device:CPU:0'


@pytest.fixture
def client(server):
    client = Client(server.address)
    yield client
    client.Reset(container=['of nobody'])  # closes the sessions that the test left
    client.DeleteWorkerSession(session_handle='')
    client.close()


def graph_of(fn):
    with tf.Graph().as_default() as graph:
        fn()
    return graph.as_graph_def()


def small_graph():
    return graph_of(lambda: tf.square(tf1.placeholder(tf.float32, name='x'), name='y'))


# ---- the master's methods ----

def test_unknown_methods_are_unimplemented(client):
    for path in ['/tensorflow.MasterService/Nothing', '/tensorflow.WorkerService/', '/nobody.Service/RunStep', '/', '/a/b/c']:
        code, _ = code_of(client.raw, path, b'')
        assert code == 'UNIMPLEMENTED', path


@pytest.mark.parametrize('method', [m for m in METHODS if m not in ('GetStatus', 'Tracing')])
@pytest.mark.parametrize('data', [b'\xff', b'\x0a\xff\xff\xff\xff\x0f', b'\x0a\x05ab', b'\x08', b'\x0b', b'\x00\x00',
                                  b'\xff' * 40, b'\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01'], ids=lambda d: d[:6].hex())
def test_malformed_messages_are_refused(client, method, data):
    code, message = code_of(client.raw, messages.path_of(method), data)
    assert code in ('INVALID_ARGUMENT', 'DATA_LOSS', 'INTERNAL'), (code, message)
    assert message


def test_random_bytes(server, client):
    """Garbage and damaged requests: an answer each time, whatever it says."""
    rng = random.Random(5)
    graph = small_graph()
    handle = client.CreateSession(graph_def=graph).session_handle
    good = {
        'CreateSession': {'graph_def': graph},
        'ExtendSession': {'session_handle': handle, 'graph_def': graph},
        'RunStep': {'session_handle': handle, 'fetch': ['y:0'], 'feed': [{'name': b'x:0', 'tensor': tf.make_tensor_proto([1.0, 2.0])}]},
        'RegisterGraph': {'graph_def': graph},
        'PartialRunSetup': {'session_handle': handle, 'fetch': ['y:0'], 'feed': ['x:0']},
    }
    answers = 0
    for i in range(400):
        method = rng.choice(list(good))
        data = bytearray(messages.encoded(method + 'Request', good[method]).SerializeToString())
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            data = data[:rng.randrange(len(data))]
        try:
            client.raw(messages.path_of(method), bytes(data))
        except grpc.RpcError as e:
            assert e.code().name not in ('UNAVAILABLE', 'DEADLINE_EXCEEDED'), (method, data, e)
        answers += 1
    assert answers == 400 and server.is_alive()
    response = client.RunStep(session_handle=handle, fetch=['y:0'], feed=good['RunStep']['feed'])
    np.testing.assert_array_equal(tf.make_ndarray(response.tensor[0].tensor), [1, 4])


def test_handles_nobody_gave(client):
    for method, fields in [('RunStep', {'fetch': ['x:0']}), ('ExtendSession', {}), ('CloseSession', {}), ('PartialRunSetup', {}),
                           ('MakeCallable', {}), ('RunCallable', {}), ('ReleaseCallable', {})]:
        for handle in ('', 'nobody', 'x' * 5000, '\0', '%s%n'):
            code, message = code_of(getattr(client, method), session_handle=handle, **fields)
            assert code == 'ABORTED', (method, message)
    code, message = code_of(client.ListDevices, session_handle='nobody')
    assert code == 'INVALID_ARGUMENT' and 'nobody' in message


def test_graph_versions(client):
    handle = client.CreateSession(graph_def=small_graph()).session_handle
    more = graph_of(lambda: tf.constant(1.0, name='more'))
    code, _ = code_of(client.ExtendSession, session_handle=handle, graph_def=more, current_graph_version=5)
    assert code == 'ABORTED'
    version = client.ExtendSession(session_handle=handle, graph_def=more, current_graph_version=0).new_graph_version
    assert version > 0
    code, message = code_of(client.ExtendSession, session_handle=handle, graph_def=more, current_graph_version=version)
    assert code == 'INVALID_ARGUMENT' and 'more' in message
    code, _ = code_of(client.ExtendSession, session_handle=handle, graph_def=more, current_graph_version=0)
    assert code == 'ABORTED'
    # A failed extension leaves version and graph as they were.
    assert tf.make_ndarray(client.RunStep(session_handle=handle, fetch=['more:0']).tensor[0].tensor) == 1
    even_more = graph_of(lambda: tf.constant(2.0, name='even_more'))
    assert client.ExtendSession(session_handle=handle, graph_def=even_more, current_graph_version=version).new_graph_version > version
    client.CloseSession(session_handle=handle)


def test_graphs_that_are_wrong(client):
    dangling = small_graph()
    dangling.node[1].input[0] = 'nowhere'
    code, message = code_of(client.CreateSession, graph_def=dangling)
    assert code in ('INVALID_ARGUMENT', 'NOT_FOUND') and 'nowhere' in message
    twice = small_graph()
    twice.node.add().CopyFrom(twice.node[1])
    code, message = code_of(client.CreateSession, graph_def=twice)
    assert code == 'INVALID_ARGUMENT' and 'y' in message
    circle = small_graph()
    circle.node[1].input[0] = 'y'
    code, _ = code_of(client.CreateSession, graph_def=circle)
    assert code == 'INVALID_ARGUMENT'
    future = small_graph()
    future.versions.min_consumer = 1 << 30
    code, _ = code_of(client.CreateSession, graph_def=future)
    assert code == 'INVALID_ARGUMENT'


def test_requests_are_answered_once(client):
    handle = client.CreateSession(graph_def=small_graph()).session_handle
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto(3.0)}]
    fields = {'session_handle': handle, 'fetch': ['y:0'], 'feed': feed}
    assert tf.make_ndarray(client.RunStep(request_id=77001, **fields).tensor[0].tensor) == 9
    code, message = code_of(client.RunStep, request_id=77001, **fields)
    assert code == 'ABORTED' and '77001' in message
    for _ in range(2):  # 0: not numbered
        client.RunStep(request_id=0, **fields)
    callable_options = messages.config_pb2.CallableOptions(feed=['x:0'], fetch=['y:0'])
    number = client.MakeCallable(session_handle=handle, options=callable_options, request_id=77002).handle
    fields = {'session_handle': handle, 'handle': number, 'feed': [tf.make_tensor_proto(4.0)]}
    assert tf.make_ndarray(client.RunCallable(request_id=77003, **fields).fetch[0]) == 16
    assert code_of(client.RunCallable, request_id=77003, **fields)[0] == 'ABORTED'
    for count in (0, 2):
        code, message = code_of(client.RunCallable, **{**fields, 'feed': fields['feed'] * count})
        assert code == 'INVALID_ARGUMENT' and f'{count} tensors are fed where 1 are expected' in message
    assert code_of(client.MakeCallable, session_handle=handle, options=callable_options, request_id=77002)[0] == 'ABORTED'
    partial = {'session_handle': handle, 'feed': ['x:0'], 'fetch': ['y:0']}
    client.PartialRunSetup(request_id=77004, **partial)
    assert code_of(client.PartialRunSetup, request_id=77004, **partial)[0] == 'ABORTED'
    client.ReleaseCallable(session_handle=handle, handle=number)
    client.ReleaseCallable(session_handle=handle, handle=number)  # once more is no mistake
    assert code_of(client.RunCallable, session_handle=handle, handle=number)[0] == 'INVALID_ARGUMENT'
    client.CloseSession(session_handle=handle)


def test_errors_in_the_body_only_when_asked(client):
    graph = graph_of(lambda: tf.debugging.check_numerics(tf1.placeholder(tf.float32, name='x'), 'odd', name='bad'))
    handle = client.CreateSession(graph_def=graph).session_handle
    fields = {'session_handle': handle, 'fetch': ['bad:0'], 'feed': [{'name': b'x:0', 'tensor': tf.make_tensor_proto(np.float32(np.nan))}]}
    code, message = code_of(client.RunStep, **fields)
    assert code == 'INVALID_ARGUMENT' and '{{node bad}}' in message
    response = client.RunStep(store_errors_in_response_body=True, **fields)
    assert response.status_code == 3 and b'{{node bad}}' in response.status_error_message and not response.tensor
    client.CloseSession(session_handle=handle)


def test_tensors_that_lie(client):
    handle = client.CreateSession(graph_def=small_graph()).session_handle
    huge = tf.make_tensor_proto(1.0)
    huge.ClearField('float_val')
    huge.tensor_content = b'\0' * 16
    for size in (1 << 40, 1 << 62, -5):
        bad = type(huge)()
        bad.CopyFrom(huge)
        bad.tensor_shape.dim.add(size=size)
        bad.tensor_shape.dim.add(size=4)
        code, _ = code_of(client.RunStep, session_handle=handle, fetch=['y:0'], feed=[{'name': b'x:0', 'tensor': bad}])
        assert code in ('INVALID_ARGUMENT', 'RESOURCE_EXHAUSTED'), size
    splat = type(huge)(dtype=1, float_val=[1])  # 4 TB from one value
    splat.tensor_shape.dim.add(size=1 << 40)
    code, _ = code_of(client.RunStep, session_handle=handle, fetch=['y:0'], feed=[{'name': b'x:0', 'tensor': splat}])
    assert code in ('INVALID_ARGUMENT', 'RESOURCE_EXHAUSTED')
    unknown = type(huge)(dtype=77)
    code, _ = code_of(client.RunStep, session_handle=handle, fetch=['y:0'], feed=[{'name': b'x:0', 'tensor': unknown}])
    assert code in ('INVALID_ARGUMENT', 'UNIMPLEMENTED')
    client.CloseSession(session_handle=handle)


def test_compressed_messages_are_refused(client):
    data = messages.encoded('CreateSessionRequest', {'graph_def': small_graph(), 'target': 'x' * 5000}).SerializeToString()
    call = client.channel.unary_unary(messages.path_of('CreateSession'))
    code, message = code_of(call, data, compression=grpc.Compression.Gzip, timeout=30)
    assert code == 'UNIMPLEMENTED' and 'compressed' in message


def test_bytes_that_are_no_http2(server):
    for data in [b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', b'\0' * 100, b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\xff' * 50]:
        with socket.create_connection(('127.0.0.1', server.port), timeout=30) as s:
            s.sendall(data)
            try:
                while s.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    client = Client(server.address)
    assert client.GetStatus().device_attributes[0].device_type == 'CPU'
    client.close()


def test_large_garbage_does_not_stay(server, client):
    blob = b'\x0a\x80\x80\x80\x20' + b'x' * (32 << 20)  # half of what it promises
    code_of(client.raw, messages.path_of('CreateSession'), blob)
    before = server.memory()
    for method in ('CreateSession', 'RunStep', 'RegisterGraph', 'RecvTensor') * 2:
        code_of(client.raw, messages.path_of(method), blob)
    wait_until(lambda: server.memory() - before < 48 << 20)


# ---- the worker's methods ----

def incarnation_of(client):
    return client.GetStatus().device_attributes[0].incarnation


def run_graph(client, value=1.5, name=None):
    """A graph as a master cuts it: what it computes leaves by a _Send. With a name it is the value itself that does."""
    graph = graph_of(lambda: tf.constant(value, name='y') if name else tf.square(tf.constant(value), name='y'))
    add_send(client, graph, name or 'out')
    return graph


def partial_graph(client, graph, key):
    """|graph| with a _Recv in place of its placeholder."""
    node = graph.node[0]
    source, _, destination, name, _ = key.split(';')
    node.op = '_Recv'
    node.attr.clear()
    node.attr['tensor_type'].type = 1
    for attribute, value in {'tensor_name': name, 'send_device': source, 'recv_device': destination}.items():
        node.attr[attribute].s = value.encode()
    node.attr['send_device_incarnation'].i = np.uint64(incarnation_of(client)).astype(np.int64)
    add_send(client, graph, 'out')
    return graph


def add_send(client, graph, name):
    node = graph.node.add(name='send', op='_Send', input=['y'], device=DEVICE)
    node.attr['T'].type = 1
    node.attr['tensor_name'].s = name.encode()
    node.attr['send_device'].s = DEVICE.encode()
    node.attr['send_device_incarnation'].i = np.uint64(incarnation_of(client)).astype(np.int64)
    node.attr['recv_device'].s = b'/job:other/replica:0/task:0/device:CPU:0'


def key_of(incarnation):
    return f'{DEVICE};{incarnation:016x};/job:other/replica:0/task:0/device:CPU:0;out;0:0'


KEY = key_of(7)  # whatever the incarnation


def test_worker_step_by_hand(client):
    key = key_of(incarnation_of(client))
    status = client.GetStatus()
    assert status.device_attributes[0].name == DEVICE
    incarnation = status.device_attributes[0].incarnation
    client.CreateWorkerSession(session_handle='by hand')
    graph = client.RegisterGraph(session_handle='by hand', graph_def=run_graph(client), create_worker_session_called=True).graph_handle
    fields = {'session_handle': 'by hand', 'graph_handle': graph, 'create_worker_session_called': True}
    for step in (101, 102):
        response = client.RunGraph(step_id=step, request_id=88000 + step, exec_opts={'record_timeline': True}, **fields)
        assert 'y' in {n.node_name for d in response.step_stats.dev_stats for n in d.node_stats} or response.step_stats.dev_stats
        tensor = client.RecvTensor(step_id=step, rendezvous_key=key, request_id=88500 + step)
        assert tf.make_ndarray(tensor.tensor) == 2.25 and not tensor.is_dead
        client.CleanupGraph(step_id=step)
    assert code_of(client.RunGraph, step_id=101, request_id=88101, **fields)[0] == 'ABORTED'
    code, message = code_of(client.RecvTensor, step_id=101, rendezvous_key=key, request_id=88601)
    assert code == 'ABORTED' and 'RecvTensor' in message and '88601' in message
    again = {'type_url': 'weir/same_host', 'value': b'\x11' + (88501).to_bytes(8, 'little')}  # one that was not read from memory
    code, message = code_of(client.RecvTensor, step_id=101, rendezvous_key=key, request_id=88702, transport_options=again)
    assert code == 'ABORTED' and 'request 88501 is not held any more' in message
    client.Logging(enable_rpc_logging=True)
    client.Logging(fetch_step_id=[101, 102])
    client.Logging(disable_rpc_logging=True, clear=True)
    client.Tracing()
    client.DeregisterGraph(graph_handle=graph, session_handle='by hand', create_worker_session_called=True)
    code, message = code_of(client.RunGraph, step_id=103, request_id=88103, **fields)
    assert code == 'ABORTED' and 'Graph handle is not found' in message
    code, _ = code_of(client.DeregisterGraph, graph_handle=graph, session_handle='by hand', create_worker_session_called=True)
    assert code == 'ABORTED'
    client.DeleteWorkerSession(session_handle='by hand')
    code, message = code_of(client.RegisterGraph, session_handle='by hand', graph_def=run_graph(client), create_worker_session_called=True)
    assert code == 'ABORTED' and 'Session handle is not found' in message
    assert client.GetStatus().device_attributes[0].incarnation == incarnation


def test_worker_without_a_session(client):
    """Masters that make no worker session use the task's own."""
    key = key_of(incarnation_of(client))
    graph = client.RegisterGraph(graph_def=run_graph(client, 3.0)).graph_handle
    client.RunGraph(graph_handle=graph, step_id=201)
    assert tf.make_ndarray(client.RecvTensor(step_id=201, rendezvous_key=key).tensor) == 9
    client.CleanupGraph(step_id=201)
    client.DeregisterGraph(graph_handle=graph)


def test_receiver_may_come_first(client):
    key = key_of(incarnation_of(client))
    graph = client.RegisterGraph(graph_def=run_graph(client, 2.0)).graph_handle
    waiting = client.start('RecvTensor', step_id=202, rendezvous_key=key)
    time.sleep(0.1)
    assert not waiting.done()
    client.RunGraph(graph_handle=graph, step_id=202)
    assert tf.make_ndarray(waiting.result().tensor) == 4
    client.CleanupGraph(step_id=202)
    client.DeregisterGraph(graph_handle=graph)


def test_step_that_never_comes(server, client):
    key = key_of(incarnation_of(client))
    call = client.start('RecvTensor', step_id=301, rendezvous_key=key)
    time.sleep(0.1)
    call.cancel()
    code, _ = code_of(client.RecvTensor, step_id=301, rendezvous_key=key, timeout=0.2)
    assert code == 'DEADLINE_EXCEEDED'
    before = server.memory()
    abandoned = [client.start('RecvTensor', step_id=1000 + i, rendezvous_key=key, timeout=0.05) for i in range(300)]
    assert {code_of(call.result)[0] for call in abandoned} == {'DEADLINE_EXCEEDED'}
    wait_until(lambda: server.open_steps() == 0)  # they leave nothing
    calls = [client.start('RecvTensor', step_id=2000 + i, rendezvous_key=key) for i in range(50)]
    wait_until(lambda: server.open_steps() == 50)
    for i in range(50):
        client.CleanupGraph(step_id=2000 + i)
    codes = [code_of(call.result)[0] for call in calls]
    assert set(codes) <= {'ABORTED', 'CANCELLED'}, codes
    wait_until(lambda: server.memory() - before < 8 << 20)


@pytest.mark.parametrize('key', ['', ';', 'nonsense', ';;;;', KEY + ';more', KEY.replace('/job:localhost', 'nowhere'), '\xff', 'x' * 10000],
                         ids=lambda key: key[:12])
def test_keys_that_are_none(client, key):
    code, message = code_of(client.RecvTensor, step_id=302, rendezvous_key=key)
    assert code == 'INVALID_ARGUMENT' and 'Invalid rendezvous key' in message


def test_key_of_an_earlier_process(client, tensorflow_server):
    """The receiver learns at once that what it waits for will not come."""
    theirs = Client(tensorflow_server.target.removeprefix('grpc://'))
    for of in (client, theirs):
        code, message = code_of(of.RecvTensor, step_id=304, rendezvous_key=key_of(incarnation_of(of) ^ 1))
        assert code == 'ABORTED' and 'RecvTensor expects a different device incarnation' in message
        assert 'Your worker job ("/job:localhost/replica:0/task:0") was probably restarted' in message
    theirs.close()


def test_calls_that_wait_hold_up_nobody(server, client):
    """Hundreds of steps and receivers that wait for ever, on one connection: others are served."""
    key = key_of(incarnation_of(client))
    graph = graph_of(lambda: tf.queue.FIFOQueue(1, tf.float32, [], shared_name='of nobody').dequeue(name='item'))
    handle = client.CreateSession(graph_def=graph).session_handle
    waiting = [client.start('RecvTensor', step_id=5000 + i, rendezvous_key=key, timeout=300) for i in range(200)]
    waiting += [client.start('RunStep', session_handle=handle, fetch=['item:0'], timeout=300) for _ in range(200)]
    wait_until(lambda: server.open_steps() == 400)
    more = client.CreateSession(graph_def=small_graph()).session_handle
    feed = [{'name': b'x:0', 'tensor': tf.make_tensor_proto(3.0)}]
    for _ in range(20):
        assert tf.make_ndarray(client.RunStep(session_handle=more, fetch=['y:0'], feed=feed).tensor[0].tensor) == 9
        assert client.GetStatus().device_attributes
    assert not any(call.done() for call in waiting)
    client.CloseSession(session_handle=more)
    client.CloseSession(session_handle=handle)
    for i in range(200):
        client.CleanupGraph(step_id=5000 + i)
    assert {code_of(call.result)[0] for call in waiting} <= {'CANCELLED', 'ABORTED'}


def test_graph_with_an_op_we_lack(client):
    graph = run_graph(client)
    graph.node[1].op = 'NoSuchOp'
    code, message = code_of(client.RegisterGraph, graph_def=graph)
    assert code in ('NOT_FOUND', 'UNIMPLEMENTED') and 'NoSuchOp' in message


def test_tensors_in_run_graph_are_refused(client):
    graph = client.RegisterGraph(graph_def=run_graph(client)).graph_handle
    one = tf.make_tensor_proto(1.0)
    for fields in ({'recv_key': ['a']}, {'send': [{'name': b'a', 'tensor': one}]}):
        code, message = code_of(client.RunGraph, graph_handle=graph, step_id=303, **fields)
        assert code == 'UNIMPLEMENTED' and 'tensors in the request' in message
    client.DeregisterGraph(graph_handle=graph)


def test_partial_runs_of_a_worker(client):
    """As TensorFlow's master asks for them: the first call starts the step, the last waits for it."""
    key = key_of(incarnation_of(client))
    feed = key.replace('out', 'in')
    graph = graph_of(lambda: tf.square(tf1.placeholder(tf.float32, [], name='x'), name='y'))
    fields = {'graph_handle': client.RegisterGraph(graph_def=partial_graph(client, graph, feed)).graph_handle, 'is_partial': True}
    sender = client.RegisterGraph(graph_def=run_graph(client, 3.0, 'in')).graph_handle
    for step in (601, 602, 603):
        assert not client.RunGraph(step_id=step, **fields).ListFields()  # it waits for its input
        if step == 602:  # given up
            client.CleanupGraph(step_id=step)
            continue
        last = client.start('RunGraph', step_id=step, is_last_partial_run=True, **fields)
        time.sleep(0.05)
        assert not last.done()
        if step == 603:  # the master's call is cancelled
            last.cancel()
            client.CleanupGraph(step_id=step)
            continue
        client.RunGraph(graph_handle=sender, step_id=step)
        last.result()
        assert tf.make_ndarray(client.RecvTensor(step_id=step, rendezvous_key=key).tensor) == 9
        client.CleanupGraph(step_id=step)
    code, _ = code_of(client.RunGraph, graph_handle='nobody', step_id=604, is_partial=True)
    assert code == 'ABORTED'
    client.CleanupGraph(step_id=604)
    response = client.RunGraph(graph_handle='nobody', step_id=605, is_partial=True, is_last_partial_run=True, store_errors_in_response_body=True)
    assert response.status_code == 10 and b'Graph handle is not found' in response.status_error_message
    for graph in (fields['graph_handle'], sender):
        client.DeregisterGraph(graph_handle=graph)


def test_cleanup_all_empties_containers(client):
    graph = graph_of(lambda: tf1.get_variable('cleaned', [], initializer=tf1.ones_initializer(), use_resource=True))
    handle = client.CreateSession(graph_def=graph).session_handle
    client.RunStep(session_handle=handle, target=['cleaned/Assign'])
    client.RunStep(session_handle=handle, fetch=['cleaned/Read/ReadVariableOp:0'])
    client.CleanupAll()
    assert code_of(client.RunStep, session_handle=handle, fetch=['cleaned/Read/ReadVariableOp:0'])[0] == 'FAILED_PRECONDITION'
    client.CloseSession(session_handle=handle)


def test_nothing_piles_up(server, client):
    """Sessions, graphs and steps by hand, made and dropped."""
    graph = run_graph(client)

    def churn(count):
        for i in range(count):
            name = f'churn {i}'
            client.CreateWorkerSession(session_handle=name, isolate_session_state=bool(i % 2))
            handle = client.RegisterGraph(session_handle=name, graph_def=graph, create_worker_session_called=True).graph_handle
            client.RunGraph(session_handle=name, graph_handle=handle, step_id=i + 1, create_worker_session_called=True)
            client.CleanupGraph(step_id=i + 1)
            if i % 3:
                client.DeregisterGraph(session_handle=name, graph_handle=handle, create_worker_session_called=True)
            client.DeleteWorkerSession(session_handle=name)
    churn(60)
    before, threads = server.memory(), server.threads()
    churn(300)
    wait_until(lambda: server.memory() - before < 8 << 20)
    wait_until(lambda: server.threads() <= threads + 2)  # a pool that grew for a while shrinks again


def test_connections_come_and_go(server):
    def churn(count):
        for _ in range(count):
            client = Client(server.address, options=[('grpc.use_local_subchannel_pool', 1)])
            client.GetStatus()
            client.close()
    churn(5)
    before = server.descriptors()
    churn(30)
    wait_until(lambda: server.descriptors() <= before + 2)


# ---- the same codes as TensorFlow's servers ----

def damaged(change):
    graph = small_graph()
    change(graph.node[1])
    return graph


def bad_calls(client):
    """Name and function of calls that fail, or must not, on a session of their own."""
    handle = {'session_handle': client.CreateSession(graph_def=small_graph()).session_handle}
    nobody = {'session_handle': 'nobody'}
    one = tf.make_tensor_proto(1.0)
    feed = [{'name': b'x:0', 'tensor': one}]
    callable_options = messages.config_pb2.CallableOptions(feed=['x:0'], fetch=['y:0'])
    unknown_fetch = messages.config_pb2.CallableOptions(fetch=['nobody:0'])
    client.RunStep(fetch=['y:0'], feed=feed, request_id=991, **handle)
    client.MakeCallable(options=callable_options, request_id=992, **handle)
    client.PartialRunSetup(feed=['x:0'], fetch=['y:0'], request_id=993, **handle)
    more = graph_of(lambda: tf.constant(1.0, name='more'))
    made = {'create_worker_session_called': True}
    return {
        'run in no session': lambda: client.RunStep(fetch=['y:0'], **nobody),
        'extend no session': lambda: client.ExtendSession(**nobody),
        'close no session': lambda: client.CloseSession(**nobody),
        'devices of no session': lambda: client.ListDevices(**nobody),
        'partial run in no session': lambda: client.PartialRunSetup(**nobody),
        'callable in no session': lambda: client.MakeCallable(**nobody),
        'run callable in no session': lambda: client.RunCallable(**nobody),
        'release callable in no session': lambda: client.ReleaseCallable(**nobody),
        'run no callable': lambda: client.RunCallable(handle=55, **handle),
        'release no callable': lambda: client.ReleaseCallable(handle=55, **handle),
        'callable with unknown fetch': lambda: client.MakeCallable(options=unknown_fetch, **handle),
        'unknown fetch': lambda: client.RunStep(fetch=['nobody:0'], **handle),
        'unknown target': lambda: client.RunStep(target=['nobody'], **handle),
        'unknown feed': lambda: client.RunStep(fetch=['y:0'], feed=[{'name': b'nobody:0', 'tensor': one}], **handle),
        'fetch of no output': lambda: client.RunStep(fetch=['y:4'], feed=feed, **handle),
        'feed of no output': lambda: client.RunStep(fetch=['y:0'], feed=[{'name': b'x:4', 'tensor': one}], **handle),
        'fed twice': lambda: client.RunStep(fetch=['y:0'], feed=feed * 2, **handle),
        'fetched twice': lambda: client.RunStep(fetch=['y:0', 'y:0'], feed=feed, **handle),
        'nothing to do': lambda: client.RunStep(**handle),
        'not fed': lambda: client.RunStep(fetch=['y:0'], **handle),
        'wrong version': lambda: client.ExtendSession(graph_def=more, current_graph_version=7, **handle),
        'nodes again': lambda: client.ExtendSession(graph_def=small_graph(), current_graph_version=0, **handle),
        'run again': lambda: client.RunStep(fetch=['y:0'], feed=feed, request_id=991, **handle),
        'make callable again': lambda: client.MakeCallable(options=callable_options, request_id=992, **handle),
        'partial run again': lambda: client.PartialRunSetup(feed=['x:0'], fetch=['y:0'], request_id=993, **handle),
        'no partial run': lambda: client.RunStep(fetch=['y:0'], partial_run_handle='nothing', **handle),
        'unknown input': lambda: client.CreateSession(graph_def=damaged(lambda n: n.input.__setitem__(0, 'nowhere'))),
        'cycle': lambda: client.CreateSession(graph_def=damaged(lambda n: n.input.__setitem__(0, 'y'))),
        'one input too many': lambda: client.CreateSession(graph_def=damaged(lambda n: n.input.append('x'))),
        'type not allowed': lambda: client.CreateSession(graph_def=damaged(lambda n: n.attr['T'].__setattr__('type', 7))),
        'bad node name': lambda: client.CreateSession(graph_def=damaged(lambda n: n.__setattr__('name', 'a b'))),
        'run no graph': lambda: client.RunGraph(graph_handle='no', step_id=5),
        'run in no worker session': lambda: client.RunGraph(graph_handle='no', step_id=5, **nobody, **made),
        'register in no worker session': lambda: client.RegisterGraph(graph_def=small_graph(), **nobody, **made),
        'deregister no graph': lambda: client.DeregisterGraph(graph_handle='no'),
        'delete no worker session': lambda: client.DeleteWorkerSession(**nobody),
        'worker session without name': lambda: client.CreateWorkerSession(session_handle=''),
        'no key': lambda: client.RecvTensor(step_id=5, rendezvous_key='nonsense'),
        'unknown method': lambda: client.raw('/tensorflow.MasterService/No', b''),
    }


def outcome(call):
    try:
        call()
    except grpc.RpcError as e:
        return e.code().name
    return 'OK'


def test_codes_are_tensorflow_s(client, tensorflow_server):
    theirs = Client(tensorflow_server.target.removeprefix('grpc://'))
    ours = {name: outcome(call) for name, call in bad_calls(client).items()}
    expected = {name: outcome(call) for name, call in bad_calls(theirs).items()}
    theirs.close()
    assert ours == expected
