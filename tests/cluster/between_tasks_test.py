"""What masters say to workers and workers to each other, row by row, as relays between them see it: Weir's to Weir's, Weir's to
TensorFlow's, TensorFlow's to Weir's."""
import json
import os
import subprocess
import sys
import time

import grpc
import numpy as np
import pytest

import clusters
import messages
from clusters import error_of, session, tf, tf1
from relay import Relay, names, request_of, response_of, set_fields

TENSORFLOW_TASK = '''
import json, sys
import tensorflow as tf
servers = [tf.distribute.Server(cluster, job_name=job, task_index=0) for cluster, job in json.loads(sys.argv[1])]
print(json.dumps([server.target.removeprefix('grpc://') for server in servers]), flush=True)
sys.stdin.read()
'''


class Pair:
    """A master and a worker, each with a relay before it: the other knows only that. They listen where there is a free port."""

    def __init__(self):
        self.relays = {job: Relay() for job in ('master', 'worker')}
        self.addresses, self.tasks = {}, []

    def spec(self, job):
        return {j: ['127.0.0.1:0' if j == job else relay.address] for j, relay in self.relays.items()}

    def start(self, job):
        cluster = ','.join(f'{j}|{addresses[0]}' for j, addresses in self.spec(job).items())
        self.tasks.append(clusters.Task(f'--cluster={cluster}', f'--job={job}', '--task=0'))
        self.started(job, self.tasks[-1].address)

    def started(self, job, address):
        self.addresses[job] = address
        self.relays[job].connect(address)
        self.target = 'grpc://' + self.addresses.get('master', '')

    def take(self):
        """Calls to the worker and calls to the master, the latter of tensors only."""
        return self.relays['worker'].take(), self.relays['master'].take()


@pytest.fixture(scope='module')
def all_pairs():
    pairs = {name: Pair() for name in ('weir-weir', 'weir-tf', 'tf-weir')}
    of_tensorflow = [(pairs['weir-tf'].spec('worker'), 'worker'), (pairs['tf-weir'].spec('master'), 'master')]
    process = subprocess.Popen([sys.executable, '-c', TENSORFLOW_TASK, json.dumps(of_tensorflow)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    was, os.environ['WEIR_SAME_HOST'] = os.environ.get('WEIR_SAME_HOST'), '0'  # tensors by the network, for the relays to see
    for name, jobs in (('weir-weir', ('master', 'worker')), ('weir-tf', ('master',)), ('tf-weir', ('worker',))):
        for job in jobs:
            pairs[name].start(job)
    os.environ.pop('WEIR_SAME_HOST') if was is None else os.environ.update(WEIR_SAME_HOST=was)
    worker, master = json.loads(clusters.read_line(process.stdout, 120))
    pairs['weir-tf'].started('worker', worker)
    pairs['tf-weir'].started('master', master)
    yield pairs
    process.kill()
    process.wait()
    for pair in pairs.values():
        for task in pair.tasks:
            task.stop()
        for relay in pair.relays.values():
            relay.stop()


@pytest.fixture(params=['weir-weir', 'weir-tf', 'tf-weir'])
def pair(request, all_pairs):
    """A master of one kind and a worker of one kind."""
    pair = all_pairs[request.param]
    for relay in pair.relays.values():
        relay.wait_until_quiet()
    pair.take()
    pair.name = request.param
    yield pair
    for relay in pair.relays.values():
        relay.reply()
    for task in pair.tasks:
        task.wait_until_idle()


MASTER, WORKER = (f'/job:{job}/replica:0/task:0/device:CPU:0' for job in ('master', 'worker'))
# What masters send after they have answered their client: these may be of an earlier test.
AFTERWARDS = {'CleanupGraph', 'DeregisterGraph', 'DeleteWorkerSession', 'Logging'}


def on_worker():
    return tf.device('/job:worker/task:0')


def on_master():
    return tf.device('/job:master/task:0')


def incarnations(s):
    return {d.name: d.incarnation % (1 << 64) for d in s.list_devices()}


def test_session_start(pair):
    with session(pair, isolate_session_state=True) as s:
        of_device = incarnations(s)
        assert set(of_device) == {MASTER, WORKER}
        to_worker = [c for c in pair.take()[0] if c.method not in AFTERWARDS]
        status, create = to_worker[0], to_worker[-1]
        assert set(names(to_worker[:-1])) == {'GetStatus'} and create.method == 'CreateWorkerSession'
        attributes, = response_of(status).device_attributes
        assert set_fields(attributes) == {'name', 'device_type', 'memory_limit', 'locality', 'incarnation', 'xla_global_id'}
        assert (attributes.name, attributes.incarnation) == (WORKER, of_device[WORKER])
        request = request_of(create)
        assert set_fields(request) == {'session_handle', 'server_def', 'isolate_session_state', 'master_task', 'master_incarnation'}
        assert (request.server_def.job_name, request.server_def.task_index, request.server_def.protocol) == ('worker', 0, 'grpc')
        assert request.master_task == b'/job:master/replica:0/task:0'
        assert request.master_incarnation % (1 << 64) == of_device[MASTER] and create.response == b''


def test_filtered_tasks_are_not_asked(pair):
    with session(pair, device_filters=['/job:master']) as s:
        assert set(incarnations(s)) == {MASTER}
        assert s.run(tf.constant(1) + 1) == 2
    to_worker, to_master = pair.take()
    assert not {'GetStatus', 'CreateWorkerSession', 'RegisterGraph', 'RunGraph'} & set(names(to_worker)) and not to_master


def test_signature_is_registered_once(pair):
    with session(pair) as s:
        x = tf1.placeholder(tf.float32, [2], name='x')
        with on_worker():
            y = tf.square(x, name='y')
        for _ in range(3):
            s.run(y, {x: [1, 2]})
        s.run([y, y.op], {x: [1, 2]})
        to_worker, _ = pair.take()
        created, = [c for c in to_worker if c.method == 'CreateWorkerSession']
        registered = [c for c in to_worker if c.method == 'RegisterGraph']
        assert len(registered) == 2  # a signature each
        request = request_of(registered[0])
        assert {'session_handle', 'graph_def', 'create_worker_session_called', 'config_proto'} <= set_fields(request)
        assert request.session_handle == request_of(created).session_handle and request.create_worker_session_called
        assert request.config_proto.operation_timeout_in_ms == clusters.PATIENCE_MS
        assert {n.device for n in request.graph_def.node} == {WORKER} and request.graph_def.versions.producer > 0
        assert set_fields(response_of(registered[0])) == {'graph_handle'}
        handles = [response_of(c).graph_handle for c in registered]
        runs = [request_of(c).graph_handle for c in to_worker if c.method == 'RunGraph']
        assert len(set(handles)) == 2 and runs == handles[:1] * 3 + handles[1:]


def wait_for_cleanup(pair, step_id):
    """The master sends it after it has answered the client."""
    def found():
        return [c for c in pair.relays['worker'].of('CleanupGraph') if request_of(c).step_id == step_id]
    clusters.wait_until(found)
    return found()[0]


def test_each_step(pair):
    with session(pair) as s:
        x = tf1.placeholder(tf.float32, [2], name='x')
        with on_worker():
            y = tf.square(x, name='y')
        with on_master():
            z = y + 1
        np.testing.assert_array_equal(s.run(z, {x: [1, 2]}), [2, 5])
        of_device = incarnations(s)
        step_id = request_of(pair.relays['worker'].wait_for('RunGraph')[0]).step_id
        cleanup = wait_for_cleanup(pair, step_id)
        to_worker, to_master = pair.take()
        registered, = [c for c in to_worker if c.method == 'RegisterGraph']
        run, = [c for c in to_worker if c.method == 'RunGraph']
        request, response = request_of(run), response_of(run)
        assert set_fields(request) == {'graph_handle', 'step_id', 'exec_opts', 'session_handle', 'store_errors_in_response_body',
                                       'create_worker_session_called', 'request_id'}  # and no send, no recv_key
        assert request.graph_handle == response_of(registered).graph_handle and not request.exec_opts.ListFields()
        assert set_fields(response) <= {'cost_graph'} and not response.cost_graph.ListFields()
        assert request.step_id == step_id and cleanup.response == b''
        fetched, = [c for c in to_worker if c.method == 'RecvTensor']
        fed, = to_master
        nodes = {n.op: n for n in request_of(registered).graph_def.node}
        for call, source, destination, node in ((fetched, WORKER, MASTER, nodes['_Send']), (fed, MASTER, WORKER, nodes['_Recv'])):
            assert call.method == 'RecvTensor' and set_fields(request_of(call)) == {'step_id', 'rendezvous_key', 'request_id'}
            assert request_of(call).step_id == request.step_id
            name = node.attr['tensor_name'].s.decode()
            assert request_of(call).rendezvous_key.decode() == f'{source};{of_device[source]:016x};{destination};{name};0:0'
            assert node.attr['send_device_incarnation'].i % (1 << 64) == of_device[source]
            answer = response_of(call)
            assert set_fields(answer) == {'tensor', 'send_start_micros'} and abs(answer.send_start_micros / 1e6 - time.time()) < 60
        np.testing.assert_array_equal(tf.make_ndarray(response_of(fed).tensor), [1, 2])
        ids = [request_of(c).request_id for c in (run, fetched, fed)]
        assert 0 not in ids and len(set(ids)) == 3


def test_tracing_of_tasks(pair):
    with session(pair) as s:
        x = tf1.placeholder(tf.float32, [2], name='x')
        with on_worker():
            y = tf.square(x, name='y')
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True,
                                 report_tensor_allocations_upon_oom=True)
        s.run(y, {x: [1, 2]}, options=options, run_metadata=metadata)
        wait_for_cleanup(pair, request_of(pair.relays['worker'].wait_for('RunGraph')[0]).step_id)
        if pair.name == 'tf-weir':  # it waits for none but the last, so they arrive in any order
            pair.relays['worker'].wait_for('Logging', 3)
        to_worker, _ = pair.take()
        run, = [c for c in to_worker if c.method == 'RunGraph']
        assert request_of(run).exec_opts.record_timeline
        stats = response_of(run).step_stats.dev_stats
        assert [d.device for d in stats] == [WORKER] and 'y' in {n.node_name for n in stats[0].node_stats}
        assert all(0 < n.scheduled_nanos <= n.all_start_nanos for d in metadata.step_stats.dev_stats for n in d.node_stats
                   if n.node_name != 'RecvTensor')  # which is no node
        assert 'y' in {n.node_name for d in metadata.step_stats.dev_stats if d.device == WORKER for n in d.node_stats}
        assert {'y': WORKER}.items() <= {n.name: n.device for g in metadata.partition_graphs for n in g.node}.items()
        logging = [request_of(c) for c in to_worker if c.method == 'Logging']
        if pair.name == 'tf-weir':
            assert request_of(run).exec_opts.record_partition_graphs and 'y' in {n.name for n in response_of(run).partition_graph[0].node}
            assert request_of(run).exec_opts.report_tensor_allocations_upon_oom
            assert sorted(map(list, map(set_fields, logging))) == [['disable_rpc_logging'], ['enable_rpc_logging'], ['fetch_step_id']]
            assert [r.fetch_step_id for r in logging if r.fetch_step_id] == [[request_of(run).step_id]]
        if pair.name != 'weir-tf':
            check_log(pair)


def check_log(pair):
    """A worker notes what it fetched while it was told to, and tells it once."""
    client = messages.Client(pair.addresses['worker'])
    client.Logging(enable_rpc_logging=True)
    with session(pair) as s:
        x = tf1.placeholder(tf.float32, [3])
        with on_worker():
            y = tf.square(x)
        s.run(y, {x: [1, 2, 3]})
        step_id = request_of(pair.relays['worker'].wait_for('RunGraph')[0]).step_id
        wait_for_cleanup(pair, step_id)
        client.Logging(disable_rpc_logging=True)
        fetched, = pair.take()[1]
        s.run(y, {x: [1, 2, 3]})
        other = request_of(pair.relays['worker'].wait_for('RunGraph')[0]).step_id
        wait_for_cleanup(pair, other)
    step, = client.Logging(fetch_step_id=[step_id, other, 77]).step
    device, = step.step_stats.dev_stats
    node, = device.node_stats
    assert (step.step_id, device.device, node.node_name) == (step_id, WORKER, 'RecvTensor')
    name = request_of(fetched).rendezvous_key.decode().split(';')[3]
    assert node.timeline_label.startswith('[12B] [') and node.timeline_label.endswith(f'Mb/s] {name} from {MASTER} to {WORKER}')
    assert node.output[0].tensor_description.allocation_description.requested_bytes == 12
    assert abs(node.all_start_micros / 1e6 - time.time()) < 60 and node.all_end_rel_micros > 0
    assert not client.Logging(fetch_step_id=[step_id]).step and not client.Logging(clear=True).step
    client.close()


def test_close_and_reset_reach_workers(pair):
    with session(pair) as s:
        s.list_devices()
        created, = [c for c in pair.take()[0] if c.method == 'CreateWorkerSession']

    def deletions():
        calls = pair.relays['worker'].of('DeleteWorkerSession')
        return [c for c in calls if request_of(c).session_handle == request_of(created).session_handle]
    clusters.wait_until(deletions)
    deleted, = deletions()
    assert deleted.response == b'' and 5 < deleted.seconds < 10.5
    pair.take()
    tf1.Session.reset(pair.target, ['one', 'two'])
    cleaned, = [c for c in pair.take()[0] if c.method not in AFTERWARDS]
    assert cleaned.method == 'CleanupAll' and request_of(cleaned).container == [b'one', b'two'] and cleaned.response == b''


def test_partial_runs_of_tasks(pair):
    with session(pair) as s:
        a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        with on_worker():
            x = a + 1
            y = x * b
        for i in range(3):
            handle = s.partial_run_setup([x, y], [a, b])
            assert s.partial_run(handle, x, {a: i}) == i + 1
            assert s.partial_run(handle, y, {b: 5}) == 5 * (i + 1)
        runs = [request_of(c) for c in pair.relays['worker'].of('RunGraph')]
        steps = {r.step_id for r in runs}
        assert len(steps) == 3
        for step_id in steps:
            wait_for_cleanup(pair, step_id)
        assert all(not r.send and not r.recv_key for r in runs)
        if pair.name == 'tf-weir':
            assert [(r.is_partial, r.is_last_partial_run) for r in runs] == [(True, False), (True, True)] * 3


def test_partial_runs_that_fail(pair):
    with session(pair) as s:
        a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        with on_worker():
            x = tf.debugging.check_numerics(a, 'look here', name='checked')
            y = x * b
        handle = s.partial_run_setup([x, y], [a, b])
        error = error_of(s.partial_run, handle, x, {a: np.nan})
        assert type(error) is tf.errors.InvalidArgumentError and 'look here' in error.message
        handle = s.partial_run_setup([x, y], [a, b])
        assert s.partial_run(handle, x, {a: 2}) == 2
        assert s.partial_run(handle, y, {b: 2}) == 4
        s.partial_run_setup([x, y], [a, b])  # and one that is left when the session ends


def test_rewritten_graphs_arrive(all_pairs):
    """A master of TensorFlow's fuses nodes and makes new ones, which a worker of Weir's must know."""
    pair = all_pairs['tf-weir']
    pair.take()
    with session(pair) as s:
        x, images = tf1.placeholder(tf.float32, [4, 8]), tf1.placeholder(tf.float32, [2, 8, 8, 3])
        with on_worker():
            dense = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, tf.ones([8, 8])), tf.ones([8])))
            layer = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, tf.ones([3, 3, 3, 4]), 1, 'SAME'), tf.ones([4])))
            chain = tf.exp(tf.negative(tf.sqrt(tf.abs(x))))
        a, b, c = s.run([dense, layer, chain], {x: np.ones([4, 8]), images: np.ones([2, 8, 8, 3])})
        assert (a == 9).all() and b.max() == 28
        np.testing.assert_allclose(c, np.exp(-1), rtol=1e-5)
        registered, = [c for c in pair.take()[0] if c.method == 'RegisterGraph']
    nodes = request_of(registered).graph_def.node
    assert {'_FusedMatMul', '_FusedConv2D', '_UnaryOpsComposition'} <= {n.op for n in nodes}
    assert 'Neg/unary_ops_composition' in {n.name for n in nodes}  # a node that no client named
    for task in pair.tasks:
        task.wait_until_idle()


# ---- tensors between tasks ----

def fetched(pair, value, feed_dict):
    """What RecvTensor answered when the master fetched |value| from the worker, as bytes and as a message."""
    with session(pair, value.graph) as s:
        s.run(value, feed_dict)
        calls = [c for c in pair.take()[0] if c.method == 'RecvTensor' and c.code == 'OK']  # others were of an earlier step
    return [(c.response, response_of(c)) for c in calls]


def test_bytes_come_last(pair):
    """Type and shape, then the elements; before the tensor nothing but fields 2 to 4."""
    for size in (3, 5000):
        with tf.Graph().as_default():
            x = tf1.placeholder(tf.float32, [size])
            with on_worker():
                y = tf.square(x)
        (data, message), = fetched(pair, y, {x: np.arange(size)})
        content = np.arange(size, dtype=np.float32)**2
        assert data.endswith(content.tobytes()) and data[0] == 0x18  # send_start_micros first
        assert message.tensor.tensor_content == content.tobytes()
        assert message.tensor.SerializeToString()[:2] == b'\x08\x01'
        assert set_fields(message) <= {'tensor', 'send_start_micros', 'transport_options'}


def test_scalars_and_strings(pair):
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.bool, [])
        with on_worker():
            y, z = tf.logical_not(x), tf.strings.join([tf.strings.as_string(x), '+'])
    (_, scalar), = fetched(pair, y, {x: False})
    (_, string), = fetched(pair, z, {x: False})
    assert scalar.tensor.dtype == 10 and not scalar.tensor.tensor_shape.dim and tf.make_ndarray(scalar.tensor) == True  # noqa: E712
    tensor = string.tensor
    assert tensor.dtype == 7 and (list(tensor.string_val) == [b'false+'] or tensor.tensor_content == b'\x06false+')


def test_dead_tensors(pair):
    with tf.Graph().as_default() as graph:
        p = tf1.placeholder(tf.bool, [])
        with on_worker():
            no, yes = tf.raw_ops.Switch(data=tf.constant(5.0), pred=p)
            no, yes = tf.negative(no), tf.abs(yes)
        with on_master():
            both = tf.raw_ops.Merge(inputs=[no, yes])
    with session(pair, graph) as s:
        assert s.run(both, {p: True}).output == 5

        def answered():
            return [response_of(c) for c in pair.relays['worker'].of('RecvTensor') if c.code == 'OK']
        clusters.wait_until(lambda: len(answered()) == 2)
        answers = answered()
    dead, = [a for a in answers if a.is_dead]
    assert dead.tensor.dtype == 1 and [d.size for d in dead.tensor.tensor_shape.dim] == [0] and not dead.tensor.tensor_content
    alive, = [a for a in answers if not a.is_dead]
    assert tf.make_ndarray(alive.tensor) == 5


def test_frames_are_in_the_keys(pair):
    """Outside of loops a tensor is of frame and iteration 0:0, inside of one not always."""
    with session(pair) as s:
        x = tf1.placeholder(tf.float32, [])

        def body(i, v):
            with on_worker():
                v = v * 2
            return i + 1, v
        tf1.disable_control_flow_v2()
        try:
            with on_master():
                y = tf.while_loop(lambda i, v: i < 4, body, [tf.constant(0), x])[1]
        finally:
            tf1.enable_control_flow_v2()
        assert s.run(y, {x: 1}) == 16
        to_worker, to_master = pair.take()
    keys = [request_of(c).rendezvous_key.decode() for c in to_worker + to_master if c.method == 'RecvTensor' and c.code == 'OK']
    tensors = [k.split(';') for k in keys]
    assert len(set(keys)) == len(keys)
    iterations = {(t[3], t[4]) for t in tensors}
    assert any(len({i for name, i in iterations if name == n}) >= 4 for n, _ in iterations), keys


# ---- error classes ----

CODES = {1: tf.errors.CancelledError, 2: tf.errors.UnknownError, 3: tf.errors.InvalidArgumentError, 4: tf.errors.DeadlineExceededError,
         5: tf.errors.NotFoundError, 6: tf.errors.AlreadyExistsError, 7: tf.errors.PermissionDeniedError,
         8: tf.errors.ResourceExhaustedError, 9: tf.errors.FailedPreconditionError, 10: tf.errors.AbortedError,
         11: tf.errors.OutOfRangeError, 12: tf.errors.UnimplementedError, 13: tf.errors.InternalError, 14: tf.errors.UnavailableError,
         15: tf.errors.DataLossError, 16: tf.errors.UnauthenticatedError}


@pytest.mark.parametrize('where', ['body', 'status'])
def test_error_classes_reach_the_client(all_pairs, where):
    """Each code that a worker can end a step with, in the body of its answer and as the status of the call."""
    pair = all_pairs['weir-weir']
    with session(pair) as s:
        with on_worker():
            step = tf.no_op(name='step')
        s.run(step)
        try:
            for code, kind in CODES.items():
                name = next(c.name for c in grpc.StatusCode if c.value[0] == code)
                body = messages.encoded('RunGraphResponse', {'status_code': code, 'status_error_message': f'because of {name}'})
                # A GrpcPayloadContainer with one payload, which says nothing that a client asks for.
                payloads = {'grpc-status-details-bin': b'\x0a\x0d\x0a\x04type\x12\x05bytes'}
                pair.relays['worker'].reply(RunGraph=('OK', '', body.SerializeToString(), {}) if where == 'body'
                                            else (name, f'because of {name}', b'', payloads))
                error = error_of(s.run, step)
                assert type(error) is kind and f'because of {name}' in error.message, (name, error)
        finally:
            pair.relays['worker'].reply()
        s.run(step)  # the session outlived it all
    for task in pair.tasks:
        task.wait_until_idle()


def test_answers_that_are_no_messages(all_pairs):
    """A step whose worker answers with bytes that cannot be read has not ended well."""
    pair = all_pairs['weir-weir']
    with session(pair) as s:
        with on_worker():
            step = tf.no_op(name='step')
        s.run(step)
        try:
            pair.relays['worker'].reply(RunGraph=('OK', '', b'\x12\x7fshort', {}))  # field 2, of 127 bytes
            error = error_of(s.run, step)
        finally:
            pair.relays['worker'].reply()
        assert type(error) is tf.errors.InvalidArgumentError and 'RunGraphResponse' in error.message, error
        s.run(step)
    for task in pair.tasks:
        task.wait_until_idle()


def entry(name, value):
    """One payload of a GrpcPayloadContainer: shorter than 128 bytes."""
    pair = b'\x0a' + bytes([len(name)]) + name + b'\x12' + bytes([len(value)]) + value
    return b'\x0a' + bytes([len(pair)]) + pair


LOST = entry(b'type.googleapis.com/tensorflow.distributed_runtime.GrpcPayloadsLost', b'')
# What a worker's error comes with, and what the client gets.
PAYLOADS = {'a source': (entry(b'type.googleapis.com/tensorflow.core.platform.ErrorSourceProto', b'\x08\x03'),) * 2,  # XLA_COMPILE_OP
            'bytes': (entry(b'type', bytes(range(100))),) * 2, 'most that fits': (entry(b'type', bytes(100)) * 37,) * 2,
            'none': (b'', b''), 'no container': (b'what is this', LOST), 'too many': (entry(b'type', bytes(100)) * 38, LOST)}


@pytest.mark.parametrize('payloads', PAYLOADS)
@pytest.mark.parametrize('method', ['RunGraph', 'RecvTensor', 'RegisterGraph', 'CreateWorkerSession'])
def test_payloads_of_errors_reach_the_client(all_pairs, method, payloads):
    """In grpc-status-details-bin, as TensorFlow's master passes them on; it has no limit but that its client breaks."""
    sent, expected = PAYLOADS[payloads]
    with tf.Graph().as_default() as graph:
        with on_worker():
            tf.no_op(name='step')
            x = tf1.placeholder_with_default(1., [], name='x')
        with on_master():
            tf.identity(x, name='y')
    for name in ('weir-weir', 'tf-weir')[:1 if payloads in ('most that fits', 'too many') else 2]:
        pair = all_pairs[name]
        client = messages.Client(pair.addresses['master'])
        handle = {'session_handle': client.CreateSession(graph_def=graph.as_graph_def()).session_handle}
        client.RunStep(target=['step'] if method != 'RegisterGraph' else [], fetch=['y:0'], **handle)
        try:
            pair.relays['worker'].reply(**{method: ('DATA_LOSS', 'because', b'', {'grpc-status-details-bin': sent} if sent else {})})
            with pytest.raises(grpc.RpcError) as error:
                if method == 'CreateWorkerSession':
                    client.CreateSession(graph_def=graph.as_graph_def())
                else:
                    client.RunStep(target=['step'], fetch=['y:0'], **handle)
        finally:
            pair.relays['worker'].reply()
        assert error.value.code() == grpc.StatusCode.DATA_LOSS and 'because' in error.value.details()
        assert dict(error.value.trailing_metadata() or ()).get('grpc-status-details-bin', b'') == expected
        client.CloseSession(**handle)
        client.close()
        for task in pair.tasks:
            task.wait_until_idle()


@pytest.mark.parametrize('method', ['GetStatus', 'CreateWorkerSession', 'RegisterGraph', 'RecvTensor'])
def test_other_calls_to_a_worker_fail(all_pairs, method):
    pair = all_pairs['weir-weir']
    pair.relays['worker'].reply(**{method: ('PERMISSION_DENIED', 'not today', b'', {})})
    try:
        with session(pair) as s:
            with on_worker():
                y = tf.square(tf1.placeholder_with_default(2.0, []))
            error = error_of(s.run, y)
            assert type(error) is tf.errors.PermissionDeniedError and 'not today' in error.message
            pair.relays['worker'].reply()
            assert s.run(y) == 4
    finally:
        pair.relays['worker'].reply()
    for task in pair.tasks:
        task.wait_until_idle()


def test_variants_of_tensors(pair):
    """Ragged rows, maps and composite tensors."""
    raw = tf.raw_ops
    with session(pair) as s:
        x, y = tf1.placeholder(tf.float32, [3]), tf1.placeholder(tf.int32, [2])
        with on_worker():
            ragged = raw.RaggedTensorToVariant(rt_nested_splits=[tf.constant([0, 2, 3], tf.int64)], rt_dense_values=tf.identity(x),
                                               batched_input=True)
            a_map = raw.TensorMapInsert(input_handle=raw.EmptyTensorMap(), key=tf.constant('k'), value=tf.identity(y))
            composite = raw.CompositeTensorVariantFromComponents(components=[y + 1, tf.constant('seven')], metadata=b'')
        with on_master():
            rows = raw.RaggedTensorFromVariant(encoded_ragged=ragged, input_ragged_rank=0, output_ragged_rank=1, Tvalues=tf.float32)
            found = raw.TensorMapLookup(input_handle=a_map, key=tf.constant('k'), value_dtype=tf.int32)
            parts = raw.CompositeTensorVariantToComponents(encoded=composite, metadata=b'', Tcomponents=[tf.int32, tf.string])
        splits, values, got, number, text = s.run([rows.output_nested_splits[0], rows.output_dense_values, found, *parts],
                                                  {x: [1, 2, 3], y: [4, 5]})
        assert splits.tolist() == [0, 2, 3] and values.tolist() == [1, 2, 3]
        assert got.tolist() == [4, 5] and number.tolist() == [5, 6] and text == b'seven'
