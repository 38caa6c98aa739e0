"""Steps that TensorFlow's client asks for: RunStep, callables, partial runs, tracing."""
import numpy as np
import pytest
from tensorflow.core.protobuf import config_pb2

from clusters import error_of, session, tf, tf1, unique, wait_until

NUMBERS = ['float16', 'bfloat16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64',
           'complex64', 'complex128', 'bool']
ELSEWHERE = '/job:ps/task:1'


def numpy_type(name):
    return tf.as_dtype(name).as_numpy_dtype


def values_of(name, shape):
    values = np.arange(int(np.prod(shape))).reshape(shape) % 100
    if name == 'bool':
        return values % 2 == 0
    if name.startswith('complex'):
        return (values + 1j * (values + 1)).astype(numpy_type(name))
    return values.astype(numpy_type(name))


def place(servers):
    """On a cluster the nodes of a test stand on another task than the master."""
    return tf.device(ELSEWHERE if hasattr(servers, 'tasks') else None)


# ---- feeds and fetches ----

@pytest.mark.parametrize('name', NUMBERS)
@pytest.mark.parametrize('shape', [(), (0,), (3,), (2, 0, 3), (7, 5, 3)], ids=str)
def test_every_type_goes_there_and_back(any_server, name, shape):
    value = values_of(name, shape)
    with session(any_server) as s, place(any_server):
        x = tf1.placeholder(name)
        y = tf.identity(x)
        result = s.run(y, {x: value})
        np.testing.assert_array_equal(result, value)
        assert result.dtype == value.dtype and result.shape == shape
        held = tf.constant(value)
        np.testing.assert_array_equal(s.run(tf.identity(held)), value)


def test_bools_that_nobody_set(server):
    """The client takes no byte but 0 and 1 for a bool, whatever was in that memory before."""
    with session(server) as s:
        x = tf1.placeholder(tf.float32)
        other = tf.exp(x)
        bools = tf.raw_ops.Empty(shape=[4000], dtype=tf.bool, init=False)
        for _ in range(5):
            s.run(other, {x: np.full([1000], 1.7)})
            assert s.run(bools).shape == (4000,)


@pytest.mark.parametrize('value', [b'', b'one', 'größe'.encode(), [b'a', b'', b'x' * 300], np.zeros([0], object),
                                   [[b'\0\xff', b'b'], [b'c', b'd']]], ids=repr)
def test_strings(any_server, value):
    with session(any_server) as s, place(any_server):
        x = tf1.placeholder(tf.string)
        result = s.run(tf.identity(x), {x: value})
        np.testing.assert_array_equal(result, np.array(value, object))
        joined = tf.strings.join([x, x])
        expected = np.vectorize(lambda b: b + b, otypes=[object])(np.array(value, object))
        np.testing.assert_array_equal(s.run(joined, {x: value}), expected)


@pytest.mark.parametrize('megabytes', [1, 64])
def test_large_tensors(any_server, megabytes):
    value = np.random.default_rng(0).standard_normal(megabytes << 18).astype(np.float32)
    with session(any_server) as s, place(any_server):
        x = tf1.placeholder(tf.float32)
        result = s.run(tf.identity(x), {x: value})
        np.testing.assert_array_equal(result, value)


def test_large_constants_and_splats(any_server):
    big = np.arange(1 << 20, dtype=np.int32)
    with session(any_server) as s, place(any_server):
        np.testing.assert_array_equal(s.run(tf.constant(big) + 0), big)
        np.testing.assert_array_equal(s.run(tf.constant(3.5, shape=[50, 20]) + 0), np.full([50, 20], 3.5, np.float32))
        np.testing.assert_array_equal(s.run(tf.identity(tf.constant('a', shape=[2, 2]))), np.full([2, 2], b'a', object))
        np.testing.assert_array_equal(s.run(tf.identity(tf.constant(2.5, tf.bfloat16, [3]))), np.full([3], 2.5, numpy_type('bfloat16')))
        np.testing.assert_array_equal(s.run(tf.identity(tf.constant(2 + 1j, tf.complex64, [3]))), np.full([3], 2 + 1j, np.complex64))


def test_fed_as_values_of_a_proto(server):
    """A feed as other clients send it: typed values, the last repeated."""
    from messages import Client
    from tensorflow.core.framework import tensor_pb2
    client = Client(server.address)
    graph = tf.Graph()
    with graph.as_default():
        tf.identity(tf1.placeholder(tf.float32, name='x'), name='y')
    handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
    proto = tensor_pb2.TensorProto(dtype=1, float_val=[1, 2])
    proto.tensor_shape.dim.add(size=4)
    feed = {'name': b'x:0', 'tensor': proto}
    response = client.RunStep(session_handle=handle, feed=[feed], fetch=['y:0'])
    np.testing.assert_array_equal(tf.make_ndarray(response.tensor[0].tensor), [1, 2, 2, 2])
    assert response.tensor[0].name == b'y:0'
    client.CloseSession(session_handle=handle)
    client.close()


def test_names_are_fetched_as_asked(any_server):
    with session(any_server) as s, place(any_server):
        a = tf.constant([1.0, 2.0], name='a')
        b = tf.reduce_sum(a, name='b')
        result = s.run({'twice': [b, b], 'both': (a, b), 'none': []})
        assert result['twice'] == [3, 3] and result['both'][1] == 3
        np.testing.assert_array_equal(result['both'][0], [1, 2])
        first, second = tf.split(a, 2, name='parts')
        assert s.run([second, first, second]) == [[2], [1], [2]]
        assert s.run([b.op, a.op]) == [None, None]
        assert s.run([b, b.op]) == [3, None]


def test_intermediate_edges_can_be_fed(any_server):
    with session(any_server) as s:
        with place(any_server):
            x = tf1.placeholder(tf.float32, [2], name='x')
            middle = x * 2
        out = middle + 1
        np.testing.assert_array_equal(s.run(out, {middle: [5, 6]}), [6, 7])
        np.testing.assert_array_equal(s.run(middle, {middle: [5, 6]}), [5, 6])
        fetched, fed = s.run([out, middle], {middle: [1, 2]})
        np.testing.assert_array_equal(fetched, [2, 3])
        np.testing.assert_array_equal(fed, [1, 2])
        first, second = tf.split(x, 2)
        assert s.run(first + second, {x: [1, 2], second: [10]}) == [11]


def test_sparse_and_indexed_values(any_server):
    with session(any_server) as s, place(any_server):
        sparse = tf1.sparse_placeholder(tf.float32)
        dense = tf1.sparse_tensor_to_dense(sparse)
        value = tf1.SparseTensorValue([[0, 1], [1, 0]], [5.0, 7.0], [2, 2])
        np.testing.assert_array_equal(s.run(dense, {sparse: value}), [[0, 5], [7, 0]])
        back = s.run(sparse, {sparse: value})
        np.testing.assert_array_equal(back.values, [5, 7])


def test_targets_run(any_server):
    with session(any_server) as s, place(any_server):
        for use_resource in (True, False):
            v = tf1.get_variable(f'target{use_resource}', [], initializer=tf1.zeros_initializer(), use_resource=use_resource)
            add = tf1.assign_add(v, 1.0)
            with tf.control_dependencies([add]):
                nothing = tf.no_op()
            s.run(v.initializer)
            s.run(nothing)
            s.run([nothing, add.op, add])
            assert s.run(v) == 2


def test_nothing_to_run_is_an_error(server):
    from messages import Client, code_of
    client = Client(server.address)
    handle = client.CreateSession().session_handle
    code, message = code_of(client.RunStep, session_handle=handle)
    assert code == 'INVALID_ARGUMENT' and 'Must specify at least one target to fetch or execute.' in message
    client.CloseSession(session_handle=handle)
    client.close()


@pytest.mark.parametrize('later', [0, 1, 5000])
def test_a_repeated_step_is_taken_once(server, later):
    """However many others there were in between."""
    from messages import Client, code_of
    client = Client(server.address)
    graph = tf.Graph()
    with graph.as_default():
        v = tf1.get_variable('v', [], initializer=tf1.zeros_initializer(), use_resource=True)
        tf.identity(v.assign_add(1.0), name='added')
        start, value = v.initializer.name, v.value().name
    handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
    client.RunStep(session_handle=handle, target=[start])
    first = np.random.default_rng().integers(1, 2**62)
    client.RunStep(session_handle=handle, fetch=['added:0'], request_id=first)
    for i in range(later):
        client.RunStep(session_handle=handle, target=[start.replace('Assign', 'Initializer/zeros')], request_id=first + 1 + i)
    code, message = code_of(client.RunStep, session_handle=handle, fetch=['added:0'], request_id=first)
    assert code == 'ABORTED' and 'seen before' in message
    assert tf.make_ndarray(client.RunStep(session_handle=handle, fetch=[value]).tensor[0].tensor) == 1
    client.CloseSession(session_handle=handle)
    client.close()


# ---- callables ----

def test_make_callable(any_server):
    with session(any_server) as s, place(any_server):
        x, y = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        add = s.make_callable(x + y, [x, y])
        assert [add(i, 10) for i in range(5)] == [10, 11, 12, 13, 14]
        both = s.make_callable([x * y, x - y], [x, y])
        assert both(6, 2) == [12, 4]
        assert s.make_callable(tf.no_op())() is None


def test_callables_by_position(any_server):
    with session(any_server) as s, place(any_server):
        x, y = tf1.placeholder(tf.float32, [None]), tf1.placeholder(tf.float32, [])
        z = x * y
        options = config_pb2.CallableOptions(feed=[y.name, x.name], fetch=[z.name, y.name, z.name])
        call = s._make_callable_from_options(options)
        for i in range(3):
            first, second, third = call(np.float32(i), np.array([1, 2], np.float32))
            np.testing.assert_array_equal(first, [i, 2 * i])
            np.testing.assert_array_equal(third, first)
            assert second == i
        other = s._make_callable_from_options(config_pb2.CallableOptions(feed=[x.name], fetch=[tf.reduce_sum(x).name]))
        assert other(np.ones(5, np.float32)) == [5]
        del other
        assert call(np.float32(1), np.array([1], np.float32))[0] == [1]


def test_callables_with_targets_and_wrong_feeds(any_server):
    with session(any_server) as s, place(any_server):
        v = tf1.get_variable('by_callable', [], initializer=tf1.zeros_initializer(), use_resource=True)
        add = v.assign_add(1, read_value=False)
        x = tf1.placeholder(tf.float32, [2])
        s.run(v.initializer)
        call = s._make_callable_from_options(config_pb2.CallableOptions(target=[add.name]))
        call()
        call()
        assert s.run(v) == 2
        call = s._make_callable_from_options(config_pb2.CallableOptions(feed=[x.name], fetch=[(x + 1).name]))
        error = error_of(call, np.ones([2], np.int32))
        assert isinstance(error, tf.errors.InvalidArgumentError)
        assert isinstance(error_of(s._make_callable_from_options, config_pb2.CallableOptions(fetch=['nobody:0'])),
                          (tf.errors.NotFoundError, tf.errors.InvalidArgumentError))


def test_callables_can_trace(any_server):
    """TensorFlow's client drops the metadata of a callable: a raw one does not."""
    from messages import Client
    client = Client(any_server.target.removeprefix('grpc://'))
    graph = tf.Graph()
    with graph.as_default(), place(any_server):
        tf.square(tf1.placeholder(tf.float32, [2], name='x'), name='traced')
    handle = client.CreateSession(graph_def=graph.as_graph_def()).session_handle
    options = config_pb2.CallableOptions(feed=['x:0'], fetch=['traced:0'])
    options.run_options.trace_level = config_pb2.RunOptions.FULL_TRACE
    options.run_options.output_partition_graphs = True
    number = client.MakeCallable(session_handle=handle, options=options).handle
    response = client.RunCallable(session_handle=handle, handle=number, feed=[tf.make_tensor_proto([1.0, 3.0])])
    np.testing.assert_array_equal(tf.make_ndarray(response.fetch[0]), [1, 9])
    assert 'traced' in {n.node_name for d in response.metadata.step_stats.dev_stats for n in d.node_stats}
    assert 'traced' in {n.name for g in response.metadata.partition_graphs for n in g.node}
    client.CloseSession(session_handle=handle)
    client.close()


# ---- tracing ----

def test_traces_have_the_nodes_of_all_tasks(cluster):
    with session(cluster) as s:
        with tf.device('/job:ps/task:0'):
            a = tf1.placeholder(tf.float32, [2, 2], name='fed')
            b = tf.square(a, name='on_ps0')
        with tf.device('/job:ps/task:1'):
            c = tf.matmul(b, b, name='on_ps1')
        with tf.device('/job:worker/task:1'):
            d = tf.reduce_sum(c, name='on_worker1')
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        metadata = tf1.RunMetadata()
        assert s.run(d, {a: np.ones([2, 2])}, options=options, run_metadata=metadata) == 8
        nodes = {stats.device: {n.node_name for n in stats.node_stats} for stats in metadata.step_stats.dev_stats}
        for device, node in [('/job:ps/replica:0/task:0/device:CPU:0', 'on_ps0'), ('/job:ps/replica:0/task:1/device:CPU:0', 'on_ps1'),
                             ('/job:worker/replica:0/task:1/device:CPU:0', 'on_worker1')]:
            assert node in nodes[device], nodes
        for stats in metadata.step_stats.dev_stats:
            for node in stats.node_stats:
                assert node.all_start_micros > 0 and node.all_end_rel_micros >= 0
        graphs = metadata.partition_graphs
        assert len(graphs) >= 3
        by_name = {n.name: n for g in graphs for n in g.node}
        assert by_name['on_ps1'].device == '/job:ps/replica:0/task:1/device:CPU:0'
        sends = [n for g in graphs for n in g.node if n.op == '_Send']
        receives = [n for g in graphs for n in g.node if n.op == '_Recv']
        keys = lambda ends: sorted((n.attr['send_device'].s, n.attr['recv_device'].s, n.attr['tensor_name'].s) for n in ends)  # noqa
        assert sends and keys(sends) == keys(receives)


def test_traces_on_one_server_make_a_timeline(server):
    from tensorflow.python.client import timeline
    with session(server) as s:
        x = tf.random.normal([64, 64], seed=1)
        y = tf.matmul(x, x, name='product')
        metadata = tf1.RunMetadata()
        s.run(y, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
        assert not metadata.partition_graphs
        text = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
        assert 'product' in text
        quiet = tf1.RunMetadata()
        s.run(y, run_metadata=quiet)
        assert not quiet.step_stats.dev_stats


# ---- partial runs ----

def test_partial_run(any_server):
    with session(any_server) as s, place(any_server):
        a, b, c = (tf1.placeholder(tf.float32, []) for _ in range(3))
        first = a + b
        second = first * c
        for _ in range(3):
            handle = s.partial_run_setup([first, second], [a, b, c])
            assert s.partial_run(handle, first, {a: 1, b: 2}) == 3
            assert s.partial_run(handle, second, {c: 17}) == 51


def test_partial_runs_overlap(any_server):
    with session(any_server) as s, place(any_server):
        a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        x, y = a + 1, b * 2
        handles = [s.partial_run_setup([x, y], [a, b]) for _ in range(4)]
        for i, handle in enumerate(handles):
            assert s.partial_run(handle, x, {a: i}) == i + 1
        for i, handle in reversed(list(enumerate(handles))):
            assert s.partial_run(handle, y, {b: i}) == 2 * i


def test_partial_run_mistakes(any_server):
    with session(any_server) as s, place(any_server):
        a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        x, y, other = a + 1, b * 2, a + b
        handle = s.partial_run_setup([x, y], [a, b])
        assert s.partial_run(handle, x, {a: 1}) == 2
        assert isinstance(error_of(s.partial_run, handle, y, {a: 1, b: 1}), tf.errors.InvalidArgumentError)
        handle = s.partial_run_setup([x], [a])
        assert isinstance(error_of(s.partial_run, handle, other, {a: 1}), tf.errors.InvalidArgumentError)
        assert isinstance(error_of(s.partial_run, 'nothing', x, {a: 1}), tf.errors.InvalidArgumentError)


def test_partial_run_fetches_only_what_was_fed_for(any_server):
    with session(any_server) as s, place(any_server):
        a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        x, y = a + 1, tf.square(b) + a
        handle = s.partial_run_setup([x, y], [a, b])
        error = error_of(s.partial_run, handle, [x, y], {a: 1})
        assert type(error) is tf.errors.InvalidArgumentError
        assert "can't be computed from the feeds that have been fed so far" in error.message
        assert s.partial_run(handle, x, {a: 1}) == 2  # nothing was used up
        assert s.partial_run(handle, y, {b: 3}) == 10


def test_partial_run_left_open_ends_with_the_session(any_server):
    for _ in range(5):
        with session(any_server) as s, place(any_server):
            a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
            x, y = a + 1, b * 2
            handle = s.partial_run_setup([x, y], [a, b])
            assert s.partial_run(handle, x, {a: 1}) == 2


# ---- state ----

def test_queues_stacks_and_tensor_arrays(any_server):
    with session(any_server) as s, place(any_server):
        queue = tf.queue.FIFOQueue(10, [tf.float32, tf.string], shapes=[[], []], shared_name=unique())
        shapeless = tf.queue.FIFOQueue(10, tf.float32, shared_name=unique())
        s.run(shapeless.enqueue_many([[1.0, 2.0]]))
        assert s.run(shapeless.dequeue()) == 1
        put = queue.enqueue_many([[1.0, 2.0, 3.0], ['a', 'b', 'c']])
        s.run(put)
        assert s.run(queue.size()) == 3
        assert s.run(queue.dequeue()) == [1.0, b'a']
        numbers, words = s.run(queue.dequeue_many(2))
        np.testing.assert_array_equal(numbers, [2, 3])
        assert list(words) == [b'b', b'c']
        array = tf.TensorArray(tf.float32, 3)
        total = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t.write(i, tf.cast(i, tf.float32) * 2)), [0, array])[1]
        np.testing.assert_array_equal(s.run(total.stack()), [0, 2, 4])


def test_random_numbers_are_tensorflow_s(server, tensorflow_server):
    def draw(target):
        with session(target) as s:
            tf1.set_random_seed(87)
            x = tf.random.normal([4], seed=5)
            y = tf.random.uniform([3], seed=6)
            return [s.run([x, y]) for _ in range(2)]
    for ours, theirs in zip(draw(server), draw(tensorflow_server)):
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('use_resource', [True, False])
def test_training(any_server, use_resource):
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal([32, 4]).astype(np.float32)
    labels = (inputs @ np.array([1, -2, 3, 0.5], np.float32))[:, None]
    with session(any_server) as s, place(any_server):
        x, y = tf1.placeholder(tf.float32, [None, 4]), tf1.placeholder(tf.float32, [None, 1])
        with tf1.variable_scope(f'training{use_resource}', use_resource=use_resource):
            w = tf1.get_variable('w', [4, 1], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean((tf.matmul(x, w) - y)**2)
        train = tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
        s.run(tf1.global_variables_initializer())
        losses = [s.run([loss, train], {x: inputs, y: labels})[0] for _ in range(40)]
        assert losses[-1] < losses[0] / 50


def test_steps_leave_nothing(any_server):
    with session(any_server) as s, place(any_server):
        x = tf1.placeholder(tf.float32, [1 << 16])
        y = tf.reduce_sum(x)
        bad = tf.debugging.check_numerics(x / 0, 'infinite')
        data = np.ones(1 << 16)

        def churn(count):
            for _ in range(count):
                assert s.run(y, {x: data}) == 1 << 16
                error_of(s.run, bad, {x: data})
        churn(30)
        before = any_server.memory()
        churn(150)
        wait_until(lambda: any_server.memory() - before < 8 << 20)


@pytest.mark.parametrize('device', [None, '/job:ps/task:1'], ids=['here', 'elsewhere'])
def test_a_target_that_others_wait_for_is_run(cluster, device):
    """Nobody reads its value, but the client has named it: it fails, and so does the step."""
    with session(cluster) as s:
        x = tf1.placeholder(tf.float32, [2, 2])
        with tf.device(device):
            inverse = tf.linalg.inv(x)
            with tf.control_dependencies([inverse]):
                after = tf.constant(1.) + x[0, 0]
        assert isinstance(error_of(s.run, [after, inverse.op], {x: np.zeros([2, 2])}), tf.errors.InvalidArgumentError)
        assert s.run([after, inverse.op], {x: np.eye(2)}) == [2., None]
