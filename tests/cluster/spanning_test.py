"""Graphs that span tasks: placement, transfers, control flow. What a cluster of TensorFlow's does is the measure."""
import random

import numpy as np
import pytest

from clusters import error_of, session, tf, tf1, unique

PS0, PS1, WORKER0, WORKER1 = '/job:ps/task:0', '/job:ps/task:1', '/job:worker/task:0', '/job:worker/task:1'
ALL = [PS0, PS1, WORKER0, WORKER1]


def full(task):
    job, index = task.removeprefix('/').split('/')
    return f'/{job}/replica:0/{index}/device:CPU:0'


def traced(s, fetches, feed_dict=None):
    """Results, and the parts of the graph as GraphDefs."""
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(output_partition_graphs=True, trace_level=tf1.RunOptions.FULL_TRACE)
    return s.run(fetches, feed_dict, options=options, run_metadata=metadata), metadata


def devices_of(metadata):
    return {n.name: n.device for g in metadata.partition_graphs for n in g.node}


# ---- placement ----

def test_nodes_run_where_they_were_put(cluster):
    with session(cluster) as s:
        x = tf1.placeholder(tf.float32, [2], name='x')
        y = x
        for i, task in enumerate(ALL):
            with tf.device(task):
                y = tf.add(y, float(i + 1), name=f'on{i}')
        result, metadata = traced(s, y, {x: [0, 10]})
        np.testing.assert_array_equal(result, [10, 20])
        devices = devices_of(metadata)
        assert [devices[f'on{i}'] for i in range(4)] == [full(t) for t in ALL]
        ran = {d.device: {n.node_name for n in d.node_stats} for d in metadata.step_stats.dev_stats}
        for i, task in enumerate(ALL):
            assert f'on{i}' in ran[full(task)]


@pytest.mark.parametrize('name, expected', [
    ('/job:ps', PS0), ('/job:ps/task:1', PS1), ('/job:worker/replica:0', WORKER0), ('/job:ps/task:1/device:CPU:0', PS1),
    ('/job:ps/task:1/cpu:0', PS1), ('/task:0/job:ps', PS0), ('/device:CPU:*', None), ('/job:worker/task:1/device:CPU:*', WORKER1)])
def test_partial_device_names(cluster, name, expected):
    with session(cluster) as s:
        x = tf1.placeholder(tf.float32, [])
        with tf.device(name):
            y = tf.square(x, name='y')
        result, metadata = traced(s, y, {x: 3})
        assert result == 9
        if expected:
            assert devices_of(metadata)['y'] == full(expected)


PLACEMENT_ERRORS = {
    'no such task': ('/job:ps/task:7', ['Cannot assign a device for operation y', '/job:ps/task:7']),
    'no such job': ('/job:chief', ['Cannot assign a device for operation y', '/job:chief']),
    'no such device': ('/job:ps/task:0/device:GPU:0', ['Cannot assign a device for operation y', 'GPU:0']),
    'no such number': ('/job:ps/task:0/device:CPU:3', ['Cannot assign a device for operation y', 'CPU:3']),
}


@pytest.mark.parametrize('case', PLACEMENT_ERRORS)
def test_placement_errors_are_tensorflow_s(cluster, tensorflow_servers, case):
    device, texts = PLACEMENT_ERRORS[case]
    for target in (cluster, tensorflow_servers):
        with session(target, allow_soft_placement=False) as s:
            x = tf1.placeholder(tf.float32, [])
            with tf.device(device):
                y = tf.square(x, name='y')
            error = error_of(s.run, y, {x: 3})
            assert type(error) is tf.errors.InvalidArgumentError
            for text in texts:
                assert text in error.message, (target, error.message)


def test_soft_placement_ignores_devices_nobody_has(cluster):
    with session(cluster, allow_soft_placement=True) as s:
        x = tf1.placeholder(tf.float32, [])
        with tf.device('/job:ps/task:1/device:GPU:0'):
            y = tf.square(x, name='y')
        result, metadata = traced(s, y, {x: 3})
        assert result == 9 and devices_of(metadata)['y'] == full(PS1)


def test_soft_placement_does_not_invent_tasks(cluster, tensorflow_servers):
    kinds = []
    for target in (tensorflow_servers, cluster):
        with session(target, allow_soft_placement=True) as s:
            x = tf1.placeholder(tf.float32, [])
            with tf.device('/job:ps/task:9'):
                y = tf.square(x, name='y')
            try:
                kinds.append(s.run(y, {x: 3}))
            except tf.errors.OpError as e:
                kinds.append(type(e))
    assert kinds[0] == kinds[1], kinds


def test_colocated_nodes_stay_together(cluster):
    with session(cluster) as s:
        x = tf1.placeholder(tf.float32, [])
        with tf.device(PS1):
            a = tf.square(x, name='a')
        with tf1.colocate_with(a):
            b = tf.add(x, 1.0, name='b')
        with tf1.colocate_with(b):
            c = tf.subtract(x, 1.0, name='c')
        result, metadata = traced(s, [b, c], {x: 3})
        assert result == [4, 2]
        devices = devices_of(metadata)
        assert devices['b'] == devices['c'] == full(PS1)


def test_colocation_against_the_wish_of_a_node(cluster, tensorflow_servers):
    for target in (cluster, tensorflow_servers):
        with session(target, allow_soft_placement=False) as s:
            x = tf1.placeholder(tf.float32, [])
            with tf.device(PS1):
                a = tf.square(x, name='a')
            with tf.device(PS0):
                b = tf.square(x, name='b')
            b.op._set_attr('_class', tf1.AttrValue(list=tf1.AttrValue.ListValue(s=[b'loc:@a'])))
            error = error_of(s.run, [a, b], {x: 3})
            assert type(error) is tf.errors.InvalidArgumentError, error
            assert 'Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge devices with incompatible tasks: ' \
                "'/job:ps/task:0' and '/job:ps/task:1'" in error.message, error.message
            assert error.op is b.op


@pytest.mark.parametrize('use_resource', [True, False])
def test_state_stays_where_its_variable_is(cluster, use_resource):
    with session(cluster) as s:
        with tf.device(PS1):
            v = tf1.get_variable(unique(), [2], initializer=tf1.ones_initializer(), use_resource=use_resource)
        update = tf1.assign_add(v, [1.0, 2.0])  # no device: follows the variable
        sparse = tf1.scatter_add(v, [0], [5.0])
        s.run(v.initializer)
        _, metadata = traced(s, update)
        ops = {n.name: n for g in metadata.partition_graphs for n in g.node}
        updates = [n for n in ops.values() if 'AssignAdd' in n.op]
        assert updates and all(n.device == full(PS1) for n in updates)
        s.run(sparse)
        np.testing.assert_array_equal(s.run(v), [7, 3])


# ---- transfers ----

def test_each_tensor_crosses_once(cluster):
    with session(cluster) as s:
        with tf.device(PS0):
            x = tf1.placeholder_with_default(tf.ones([3]), [3], name='given')
            a = tf.square(x, name='a')
        with tf.device(PS1):
            readers = [tf.add(a, float(i), name=f'reader{i}') for i in range(5)]
        with tf.device(WORKER1):
            more = [tf.subtract(a, float(i), name=f'other{i}') for i in range(3)]
            last = tf.add_n(readers + more)
        result, metadata = traced(s, last)
        np.testing.assert_array_equal(result, [8 + 10 - 3] * 3)
        sends = [n for g in metadata.partition_graphs for n in g.node if n.op == '_Send' and n.input[0].split(':')[0] == 'a']
        assert sorted(n.attr['recv_device'].s.decode() for n in sends) == [full(PS1), full(WORKER1)]


def test_control_edges_cross(cluster):
    with session(cluster) as s:
        with tf.device(PS0):
            v = tf1.get_variable(unique(), [], initializer=tf1.zeros_initializer(), use_resource=True)
        s.run(v.initializer)
        with tf.device(PS0):
            add = v.assign_add(1, read_value=False)
        with tf.device(WORKER1), tf.control_dependencies([add]):
            between = tf.no_op()
        with tf.device(PS0), tf.control_dependencies([between]):
            after = v.read_value()
        for i in range(1, 30):
            assert s.run(after) == i


def test_strings_and_resources_cross_or_do_not(cluster):
    with session(cluster) as s:
        with tf.device(PS0):
            x = tf1.placeholder(tf.string, [None])
            a = tf.strings.join([x, x])
        with tf.device(PS1):
            b = tf.strings.length(a)
        np.testing.assert_array_equal(s.run(b, {x: [b'ab', b'', b'c' * 1000]}), [4, 0, 2000])


def test_large_tensors_cross(cluster):
    with session(cluster) as s:
        with tf.device(PS0):
            a = tf1.placeholder_with_default(tf.ones([1 << 22]), [1 << 22]) * 2
        with tf.device(PS1):
            b = a + 1
        with tf.device(WORKER1):
            c = tf.reduce_sum(b)
        assert s.run(c) == 3 * (1 << 22)


# ---- control flow ----

@pytest.fixture(params=['v1', 'v2'])
def control_flow(request):
    (tf1.enable_control_flow_v2 if request.param == 'v2' else tf1.disable_control_flow_v2)()
    yield request.param
    tf1.enable_control_flow_v2()


@pytest.mark.parametrize('a, b', [(PS0, PS1), (WORKER0, PS0), (PS1, WORKER0), (WORKER1, WORKER1)])
def test_loops_span_tasks(cluster, control_flow, a, b):
    with session(cluster) as s:
        x, count = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.int32, [])

        def body(i, v):
            with tf.device(a):
                v = v * 2
            with tf.device(b):
                v = v + 1
            return i + 1, v
        with tf.device(PS0):
            y = tf.while_loop(lambda i, v: i < count, body, [tf.constant(0), x])[1]
        expected = 3.0
        for n in range(6):
            assert s.run(y, {x: 3, count: n}) == expected, n
            expected = expected * 2 + 1


def test_nested_loops_span_tasks(cluster, control_flow):
    with session(cluster) as s:
        def outer(i, total):
            def inner(j, t):
                with tf.device(WORKER1):
                    return j + 1, t + tf.cast(j, tf.float32)
            with tf.device(PS1):
                _, total = tf.while_loop(lambda j, t: j < i, inner, [tf.constant(0), total])
            return i + 1, total
        with tf.device(PS0):
            y = tf.while_loop(lambda i, t: i < 5, outer, [tf.constant(0), tf.constant(0.0)])[1]
        assert s.run(y) == sum(j for i in range(5) for j in range(i))


def loop_in_a_loop():
    """A graph of loops and a conditional of TensorFlow's first kind: placeholder x, result y."""
    tf1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [], name='x')

        def outer(i, v):
            _, v = tf.while_loop(lambda j, _: j < i, lambda j, w: (j + 1, w * 2 + tf.cast(j, tf.float32)), [tf.constant(0), v])
            return i + 1, tf.cond(v > 20, lambda: v - x, lambda: v + 1)
        tf.identity(tf.while_loop(lambda i, _: i < 4, outer, [tf.constant(0), x])[1], name='y')
    tf1.enable_control_flow_v2()
    return graph.as_graph_def()


@pytest.mark.parametrize('seed', range(24))
def test_loops_are_cut_anywhere(cluster, seed):
    """Every Enter, Merge, Switch, NextIteration and Exit on a task drawn at random."""
    graph, rng = loop_in_a_loop(), random.Random(seed)
    with session(cluster) as s:
        tf1.import_graph_def(graph, name='')
        expected = s.run('y:0', {'x:0': 3})
    for node in graph.node:
        node.device = rng.choice(ALL[:2] if seed < 12 else ALL)
    with session(cluster) as s:
        tf1.import_graph_def(graph, name='')
        assert s.run('y:0', {'x:0': 3}) == expected


def test_inner_loops_start_from_constants(cluster, control_flow):
    with session(cluster) as s:
        def outer(i, total):
            def inner(j, t):
                with tf.device(WORKER1):
                    return j + 1, t + tf.cast(j, tf.float32)
            with tf.device(PS1):
                _, t = tf.while_loop(lambda j, t: j < 3, inner, [tf.constant(0), tf.constant(0.0)])
            return i + 1, total + t
        with tf.device(PS0):
            y = tf.while_loop(lambda i, t: i < 5, outer, [tf.constant(0), tf.constant(0.0)])[1]
        assert s.run(y) == 15


def test_conditionals_span_tasks(cluster, control_flow):
    with session(cluster) as s:
        p, x = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.float32, [])

        def yes():
            with tf.device(PS1):
                return x + 1

        def no():
            with tf.device(WORKER1):
                a = x * 2
            with tf.device(PS0):
                return a * 5
        y = tf.cond(p, yes, no)
        for _ in range(5):
            assert s.run(y, {p: True, x: 3}) == 4
            assert s.run(y, {p: False, x: 3}) == 30


def test_dead_tensors_cross(cluster):
    """Values of a branch not taken reach other tasks as dead, in every order."""
    with session(cluster) as s:
        p = tf1.placeholder(tf.bool, [])
        with tf.device(PS0):
            no, yes = tf.raw_ops.Switch(data=tf.constant(5.0), pred=p)
        with tf.device(PS1):
            a = yes * 2
        with tf.device(WORKER1):
            b = no * 3
        with tf.device(WORKER0):
            y = tf.raw_ops.Merge(inputs=[a, b])
        for value in (True, False) * 5:
            output, index = s.run(y, {p: value})
            assert (output, index) == ((10, 0) if value else (15, 1))
        error = error_of(s.run, a, {p: False})
        assert type(error) is tf.errors.InvalidArgumentError


def test_loop_with_a_conditional(cluster, control_flow):
    with session(cluster) as s:
        def body(i, v):
            def even():
                with tf.device(PS1):
                    return v + 10

            def odd():
                with tf.device(WORKER1):
                    return v * 2
            return i + 1, tf.cond(tf.equal(i % 2, 0), even, odd)
        y = tf.while_loop(lambda i, v: i < 4, body, [tf.constant(0), tf.constant(1.0)])[1]
        assert s.run(y) == ((1 + 10) * 2 + 10) * 2


def test_gradients_of_loops_that_span_tasks(cluster):
    """The client asks for stacks in two places at once: soft placement forgives that, as with TensorFlow."""
    tf1.disable_control_flow_v2()
    try:
        with session(cluster, allow_soft_placement=True) as s:
            x = tf1.placeholder(tf.float32, [])

            def body(i, v):
                with tf.device(PS1):
                    v = v * x
                with tf.device(WORKER1):
                    return i + 1, v + 0.0
            with tf.device(PS0):
                y = tf.while_loop(lambda i, v: i < 3, body, [tf.constant(0), tf.constant(2.0)])[1]
            slope = tf.gradients(y, x)[0]
            assert s.run([y, slope], {x: 3.0}) == [54, 54]
    finally:
        tf1.enable_control_flow_v2()


def test_functions_span_tasks(cluster):
    with session(cluster) as s:
        with tf.device(PS1):
            v = tf1.get_variable(unique(), [], initializer=tf1.ones_initializer(), use_resource=True)
        s.run(v.initializer)

        @tf.function
        def inside(x):
            with tf.device(PS0):
                a = x * 2
            with tf.device(WORKER1):
                return a + 1

        @tf.function
        def with_state(x):
            return x + v
        x = tf1.placeholder(tf.float32, [])
        with tf.device(WORKER0):
            y = inside(x)
        assert s.run(y, {x: 4}) == 9
        assert s.run(with_state(x), {x: 4}) == 5


# ---- many at once ----

def test_steps_of_many_threads_span_tasks(cluster):
    import threading
    failures = []
    with session(cluster) as s:
        x = tf1.placeholder(tf.float32, [None])
        y = x
        for task in (PS0, PS1, WORKER1, PS0):
            with tf.device(task):
                y = y + 1
        s.run(y, {x: [0]})

        def work(k):
            try:
                for i in range(25):
                    np.testing.assert_array_equal(s.run(y, {x: [k, i]}), [k + 4, i + 4])
            except Exception as e:
                failures.append(e)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
    assert not failures


def test_queue_between_tasks(cluster):
    """A consumer on one task waits for a producer on another."""
    import threading
    graph, name = tf.Graph(), unique()
    with graph.as_default():
        with tf.device(PS0):
            queue = tf.queue.FIFOQueue(2, tf.float32, shared_name=name)
        with tf.device(WORKER1):
            item = queue.dequeue() * 2
        with tf.device(WORKER0):
            x = tf1.placeholder(tf.float32, [])
            put = queue.enqueue(x + 1)
    got = []

    def consume():
        with session(cluster.tasks['worker', 1].target, graph) as s:
            got.extend(s.run(item) for _ in range(10))
    thread = threading.Thread(target=consume)
    thread.start()
    with session(cluster, graph) as s:
        for i in range(10):
            s.run(put, {x: i})
    thread.join(60)
    assert got == [2 * (i + 1) for i in range(10)]


def test_master_may_be_any_task(cluster):
    for task in cluster.tasks.values():
        with session(task.target) as s:
            x = tf1.placeholder(tf.float32, [])
            with tf.device(PS1):
                y = x * 2
            with tf.device(WORKER1):
                z = y + 1
            assert s.run(z, {x: 5}) == 11
