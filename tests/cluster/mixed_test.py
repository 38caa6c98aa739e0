"""Clusters of both kinds: tasks of Weir under a master of TensorFlow's, and tasks of TensorFlow's under one of Weir's."""
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import cluster_pb2

import clusters
import networks

tf1 = tf.compat.v1
WEIR, TENSORFLOW = '/job:weir/task:%d', '/job:tf/task:%d'

TENSORFLOW_TASKS = '''
import json, sys
import tensorflow as tf
cluster = json.loads(sys.argv[1])
servers = [tf.distribute.Server(cluster, job_name='tf', task_index=i) for i in range(len(cluster['tf']))]
print('ready', flush=True)
sys.stdin.read()
'''


class MixedCluster:
    """Two tasks of each kind."""

    def __init__(self):
        ports = clusters.free_ports(4)
        addresses = [f'127.0.0.1:{port}' for port in ports]
        jobs = {'weir': addresses[:2], 'tf': addresses[2:]}
        spec = ','.join(job + '|' + ';'.join(of_job) for job, of_job in jobs.items())
        self.process = subprocess.Popen([sys.executable, '-c', TENSORFLOW_TASKS, json.dumps(jobs)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        self.tasks = [clusters.Task(f'--cluster={spec}', '--job=weir', f'--task={i}') for i in range(2)]
        assert clusters.read_line(self.process.stdout, 120) == 'ready\n'
        self.targets = {job: 'grpc://' + of_job[0] for job, of_job in jobs.items()}
        self.addresses = jobs

    def stop(self):
        self.process.kill()
        self.process.wait()
        for task in self.tasks:
            task.stop()


@pytest.fixture(scope='module')
def mixed():
    cluster = MixedCluster()
    yield cluster
    cluster.stop()


@pytest.fixture(params=['tf', 'weir'])
def master(request, mixed):
    """The target of a session whose master is of one kind; the tasks are of both."""
    yield mixed.targets[request.param]
    assert all(task.is_alive() for task in mixed.tasks)
    assert mixed.process.poll() is None


def local(build):
    """What TensorFlow's own session gives, without the rewriting: on some machines its kernels lack what it makes."""
    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default(), tf1.Session(config=config) as s:
        tf1.set_random_seed(1)
        return build(s)


def same(a, b, rtol=2e-5):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


# ---- training ----

def place(variables, work):
    """Variables on one task, all else on another."""
    def choose(op):
        return variables if 'Var' in op.type and op.type != 'VarIsInitializedOp' else work
    return choose


@pytest.mark.parametrize('network, use_resource', [
    (networks.mlp, False), (networks.lenet, True), (networks.lenet, False), (networks.dynamic_rnn, True),
    (networks.embedding, True), (networks.batch_norm_net, True)], ids=lambda v: getattr(v, '__name__', str(v)))
def test_training(master, network, use_resource):
    def build(s, variables=None, work=None):
        with tf1.device(place(variables, work) if variables else None):
            with tf1.variable_scope(network.__name__):  # the tasks remember variables by their names
                loss, feeds = network(use_resource)
            return networks.train(s, loss, feeds, tf1.train.GradientDescentOptimizer(0.1), 3)
    want = local(build)
    for variables, work in ((WEIR % 1, TENSORFLOW % 1), (TENSORFLOW % 1, WEIR % 1)):
        with clusters.session(master):
            tf1.set_random_seed(1)
            same(build(tf1.get_default_session(), variables, work), want)


@pytest.mark.parametrize('optimizer', [
    lambda: tf1.train.AdamOptimizer(0.01), lambda: tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    lambda: tf1.train.RMSPropOptimizer(0.01, momentum=0.5, centered=True), lambda: tf1.train.AdagradOptimizer(0.1),
    lambda: tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001), lambda: tf1.train.AdadeltaOptimizer(1.0)],
    ids=['adam', 'momentum', 'rmsprop', 'adagrad', 'ftrl', 'adadelta'])
def test_optimizers(mixed, optimizer):
    """A master of TensorFlow's rewrites what optimizers add; Weir's tasks hold the variables."""
    def build(s, variables=None, work=None):
        with tf1.device(place(variables, work) if variables else None):
            loss, feeds = networks.mlp()
            return networks.train(s, loss, feeds, optimizer(), 3)
    want = local(build)
    with clusters.session(mixed.targets['tf']) as s:
        tf1.set_random_seed(1)
        same(build(s, WEIR % 1, WEIR % 0), want)


# ---- what TensorFlow's optimizer makes of a graph ----

def activations():
    return {'relu': tf.nn.relu, 'relu6': tf.nn.relu6, 'elu': tf.nn.elu, 'tanh': tf.tanh, 'sigmoid': tf.sigmoid,
            'leaky': lambda t: tf.nn.leaky_relu(t, 0.3), 'gelu': tf.nn.gelu, 'none': lambda t: t + 1.}


def inference(s):
    """Layers as they are when nobody asks for gradients, constants that fold into them, and chains of functions."""
    x = tf1.placeholder(tf.float32, [4, 8])
    images = tf1.placeholder(tf.float32, [2, 8, 8, 3])
    rng = np.random.RandomState(0)

    def c(*shape):
        return tf.constant(rng.uniform(-0.5, 0.5, shape).astype(np.float32))

    out = {}
    for name, f in activations().items():
        out['product ' + name] = f(tf.nn.bias_add(tf.matmul(x, c(8, 8)), c(8)))
        out['convolution ' + name] = f(tf.nn.bias_add(tf.nn.conv2d(images, c(3, 3, 3, 4), 1, 'SAME'), c(4)))
        norm = tf1.nn.fused_batch_norm(tf.nn.conv2d(images, c(3, 3, 3, 4), 2, 'SAME'), c(4), c(4), c(4), c(4) + 1.,
                                       is_training=False)[0]
        out['normalised ' + name] = f(norm)
    out['chain'] = tf.exp(tf.negative(tf.sqrt(tf.abs(x))))
    out['longer chain'] = tf.sin(tf.cos(tf.tanh(tf.square(x))))
    out['buckets'] = tf.strings.to_hash_bucket_fast(tf.strings.as_string(tf.cast(x * 10., tf.int32)), 50)
    out['stack'] = tf.parallel_stack([x, x + 1., x * 2.])
    out['branches'] = tf.switch_case(tf.cast(x[0, 0], tf.int32) % 3, [lambda: x + 1., lambda: x + 2., lambda: x * 2.])
    feeds = {x: rng.randn(4, 8).astype(np.float32), images: rng.randn(2, 8, 8, 3).astype(np.float32)}
    return s.run(out, feeds)


def test_rewritten_nodes(master):
    want = local(inference)
    with clusters.session(master) as s, tf.device(WEIR % 1):
        got = inference(s)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5, err_msg=name)


# ---- loops and conditionals ----

@pytest.fixture(params=['v1', 'v2'])
def control_flow(request):
    was_enabled = tf1.control_flow_v2_enabled()
    (tf1.enable_control_flow_v2 if request.param == 'v2' else tf1.disable_control_flow_v2)()
    yield request.param
    (tf1.enable_control_flow_v2 if was_enabled else tf1.disable_control_flow_v2)()


ROUTES = [(TENSORFLOW % 1, WEIR % 1, TENSORFLOW % 0), (WEIR % 1, TENSORFLOW % 1, WEIR % 0), (WEIR % 0, WEIR % 1, TENSORFLOW % 1)]


@pytest.mark.parametrize('route', ROUTES, ids=['tf-weir-tf', 'weir-tf-weir', 'weir-weir-tf'])
def test_loops_span_tasks(master, control_flow, route):
    first, second, third = route
    with clusters.session(master) as s:
        def body(i, a):
            with tf.device(second):
                b = a * 2.
            with tf.device(third):
                return i + 1, b + 1.

        def outer(i, a):
            with tf.device(second):
                _, inner = tf1.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, body(j, b)[1]), [tf.constant(0), a])
            return i + 1, inner

        with tf.device(first):
            x = tf1.placeholder_with_default(tf.constant(1.5), [])
            simple = tf1.while_loop(lambda i, a: i < 5, body, [tf.constant(0), x])[1]
            nested = tf1.while_loop(lambda i, a: i < 4, outer, [tf.constant(0), x])[1]
            p = tf1.placeholder(tf.bool, [])

            def yes():
                with tf.device(second):
                    return x * 2.

            def no():
                with tf.device(third):
                    return x - 1.
            choice = tf1.cond(p, yes, no)
        choice_slope = tf.gradients(choice, x)[0]
        # With the older loops TensorFlow's placer refuses the gradient: it wants a node in two places.
        slope = tf.gradients(simple, x)[0] if control_flow == 'v2' else tf.constant(32.)
        want_nested = 1.5
        for i in range(4):
            for _ in range(i):
                want_nested = want_nested * 2 + 1
        for _ in range(3):
            assert s.run([simple, slope]) == [1.5 * 32 + 31, 32.]
            assert s.run(nested) == want_nested
            assert s.run([choice, choice_slope], {p: True}) == [3., 2.]
            assert s.run([choice, choice_slope], {p: False}) == [0.5, 1.]


@pytest.mark.parametrize('device', [None, TENSORFLOW % 1, WEIR % 1], ids=['anywhere', 'tf', 'weir'])
def test_loops_built_in_c(master, device):
    """Nothing orders their constants; TensorFlow wants them inside the loop. The graph grows between the runs."""
    def run(*args):
        command = [clusters.BUILD / 'tests' / 'programs' / 'loops', *args]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()
    got, want = run(master, *([device] if device else [])), run()
    assert got[::2] == want[::2] == ['loop', 'gradient', 'nested']
    same(np.float32(got[1::2]), np.float32(want[1::2]))


@pytest.mark.parametrize('there', [TENSORFLOW % 1, WEIR % 1], ids=['tf', 'weir'])
@pytest.mark.parametrize('here', [TENSORFLOW % 0, WEIR % 0], ids=['tf', 'weir'])
def test_what_waits_for_a_dead_node_is_dead(master, here, there):
    """Also where the node is on another task: by a control edge alone."""
    with clusters.session(master) as s:
        p = tf1.placeholder(tf.bool, [])
        with tf.device(here):
            _, yes = tf.raw_ops.Switch(data=tf.constant(5.0), pred=p)
            node = tf.negative(yes)
        with tf.device(there):
            v = tf1.get_variable(clusters.unique(), [], tf.int32, initializer=tf1.zeros_initializer(), use_resource=False)
            with tf.control_dependencies([node]):
                update = tf1.assign_add(v, 1)
        s.run(tf1.global_variables_initializer())
        seen = []
        for alive in (False, True, False, True):
            s.run(update.op, {p: alive})
            seen.append(s.run(v))
    assert seen == [0, 1, 1, 2]


# ---- tensors, queues, errors, traces ----

def test_tensors_cross(master):
    values = {'float': np.random.RandomState(0).randn(3, 5).astype(np.float32), 'double': np.float64([1.5]), 'bool': np.array([True, False]),
              'half': np.float16([[1, 2.5]]), 'int64': np.int64(1 << 60), 'string': np.array([b'a', b'', b'x' * 70000], object),
              'empty': np.zeros((0, 3), np.int32), 'complex': np.complex64([1 + 2j]), 'large': np.arange(3 << 20, dtype=np.float32)}
    with clusters.session(master) as s:
        out, feeds = {}, {}
        for name, value in values.items():
            x = tf1.placeholder(tf.as_dtype(np.asarray(value).dtype), np.shape(value))
            feeds[x] = value
            for i, device in enumerate((WEIR % 1, TENSORFLOW % 1, WEIR % 0, TENSORFLOW % 0, WEIR % 1)):
                with tf.device(device):
                    x = tf.reshape(x, tf.shape(x), name=f'{name}_{i}')
            out[name] = x
        got = s.run(out, feeds)
    for name, value in values.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize('maker, user', [(WEIR % 1, TENSORFLOW % 1), (TENSORFLOW % 1, WEIR % 1), (WEIR % 0, WEIR % 1)],
                         ids=['weir-tf', 'tf-weir', 'weir-weir'])
def test_lists_cross(master, maker, user):
    """TensorLists, one of them with elements that are not set."""
    with clusters.session(master) as s:
        x = tf1.placeholder(tf.float32, [3])
        with tf.device(maker):
            full = tf.raw_ops.EmptyTensorList(element_shape=tf.constant([3]), max_num_elements=-1, element_dtype=tf.float32)
            for i in range(3):
                full = tf.raw_ops.TensorListPushBack(input_handle=full, tensor=x + float(i))
            gaps = tf.raw_ops.TensorListReserve(element_shape=tf.constant([3]), num_elements=3, element_dtype=tf.float32)
            gaps = tf.raw_ops.TensorListSetItem(input_handle=gaps, index=1, item=x)
        with tf.device(user):
            rows = tf.raw_ops.TensorListStack(input_handle=full, element_shape=[3], element_dtype=tf.float32)
            row = tf.raw_ops.TensorListGetItem(input_handle=gaps, index=1, element_shape=[3], element_dtype=tf.float32)
            count = tf.raw_ops.TensorListLength(input_handle=gaps)
        got = s.run([rows, row, count], {x: [1, 2, 3]})
    assert got[0].tolist() == [[1., 2., 3.], [2., 3., 4.], [3., 4., 5.]] and got[1].tolist() == [1., 2., 3.] and got[2] == 3


@pytest.mark.parametrize('holder, user', [(WEIR % 1, TENSORFLOW % 1), (TENSORFLOW % 1, WEIR % 1)], ids=['on-weir', 'on-tf'])
def test_queue_is_shared(master, holder, user):
    with clusters.session(master) as s:
        with tf.device(holder):
            queue = tf1.FIFOQueue(3, tf.float32, [2], shared_name='mixed_queue_' + holder[5:7] + master[-5:])
        with tf.device(user):
            put = queue.enqueue(tf.random.uniform([2], seed=1) + 1.)
            got = queue.dequeue() * 2.
            put_many = [queue.enqueue([tf.ones([2])]) for _ in range(1)]
        results = []
        taker = threading.Thread(target=lambda: results.extend(s.run(got) for _ in range(6)))
        taker.start()
        for _ in range(5):
            s.run(put)
        s.run(put_many)
        taker.join(60)
        assert len(results) == 6 and results[-1].tolist() == [2., 2.]


@pytest.mark.parametrize('where', [WEIR % 1, TENSORFLOW % 1], ids=['on-weir', 'on-tf'])
def test_errors(master, where):
    with clusters.session(master) as s:
        with tf.device(where):
            x = tf1.placeholder(tf.float32, [None])
            bad = tf1.check_numerics(1. / x, 'boom', name='the_check')
            wrong = tf.reshape(x, [7], name='the_reshape')
            queue = tf1.FIFOQueue(1, tf.float32, shared_name='never_filled')
            blocked = queue.dequeue()
        error = clusters.error_of(s.run, bad, {x: [0.]})
        assert isinstance(error, tf.errors.InvalidArgumentError) and 'boom' in error.message and error.op.name == 'the_check'
        error = clusters.error_of(s.run, wrong, {x: [0.]})
        assert isinstance(error, tf.errors.InvalidArgumentError) and error.op.name == 'the_reshape'
        error = clusters.error_of(s.run, blocked, options=tf1.RunOptions(timeout_in_ms=300))
        assert isinstance(error, tf.errors.DeadlineExceededError)
        assert s.run(bad, {x: [2.]}) == [0.5]


def test_trace(master):
    with clusters.session(master) as s:
        with tf.device(WEIR % 1):
            a = tf.random.uniform([3], name='draw_on_weir')
        with tf.device(TENSORFLOW % 1):
            b = tf.multiply(a, 2., name='double_on_tf')
        metadata = tf1.RunMetadata()
        s.run(b, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
    names = {(stats.device, node.node_name) for stats in metadata.step_stats.dev_stats for node in stats.node_stats}
    assert any('/job:weir' in device and 'draw_on_weir' in name for device, name in names), names
    assert any('/job:tf' in device and 'double_on_tf' in name for device, name in names), names


# ---- clusters that a session describes ----

def described(mixed):
    """The four tasks under other names: tasks of both kinds in both jobs, with a gap in the numbers."""
    weir, tensorflow = mixed.addresses['weir'], mixed.addresses['tf']
    cluster = cluster_pb2.ClusterDef()
    for name, tasks in {'near': {0: weir[0], 3: tensorflow[1]}, 'far': {0: tensorflow[0], 1: weir[1]}}.items():
        cluster.job.add(name=name).tasks.update(tasks)
    return cluster


def device_of(job, index):
    return f'/job:{job}/replica:0/task:{index}/device:CPU:0'


DESCRIBED = [('near', 0), ('near', 3), ('far', 0), ('far', 1)]


@pytest.mark.parametrize('is_isolated', [False, True])
def test_cluster_of_the_session(mixed, master, control_flow, is_isolated):
    with clusters.session(master, cluster_def=described(mixed), isolate_session_state=is_isolated) as s:
        assert sorted(d.name for d in s.list_devices()) == sorted(device_of(*task) for task in DESCRIBED)
        x = tf1.placeholder(tf.float32, [2])
        y = x
        for i, task in enumerate(DESCRIBED):
            with tf.device(device_of(*task)):
                y = tf.add(y, i + 1., name=f'on_{task[0]}{task[1]}')
        with tf.device('/job:far/task:1'):
            v = tf1.get_variable(clusters.unique(), [], initializer=tf1.ones_initializer(), use_resource=True)

        def body(i, a):
            with tf.device('/job:near/task:3'):
                a = a * 2.
            with tf.device('/job:far/task:1'):
                return i + 1, a + 1.
        with tf.device('/job:near/task:0'):
            loop = tf1.while_loop(lambda i, a: i < 4, body, [tf.constant(0), tf1.placeholder_with_default(1., [])])[1]
        s.run(v.initializer)
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        assert s.run([y, v], {x: [1, 2]}, options=options, run_metadata=metadata)[0].tolist() == [11., 12.]
        assert s.run([loop, v.assign_add(1.)]) == [31., 2.]
        wanted = {(device_of(*task), f'on_{task[0]}{task[1]}') for task in DESCRIBED}
        assert wanted <= {(d.device, n.node_name) for d in metadata.step_stats.dev_stats for n in d.node_stats}
        assert wanted <= {(n.device, n.name) for g in metadata.partition_graphs for n in g.node}
        with tf.device('/job:near/task:1'):
            error = clusters.error_of(s.run, tf.add(x, 1.), {x: [1, 2]})
        assert isinstance(error, tf.errors.InvalidArgumentError) and '/job:near/task:1' in error.message


def test_cluster_of_the_session_without_its_master(mixed):
    cluster = cluster_pb2.ClusterDef()
    cluster.job.add(name='far').tasks[0] = mixed.addresses['weir'][1]
    with clusters.session(mixed.targets['weir'], cluster_def=cluster) as s:
        error = clusters.error_of(s.run, tf.constant(1))
        assert isinstance(error, tf.errors.InvalidArgumentError) and mixed.addresses['weir'][0] in error.message
