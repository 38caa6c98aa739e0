"""Training by TensorFlow's client on Weir's servers: one alone, and two parameter servers with two workers."""
import threading

import numpy as np
import pytest
import tensorflow as tf

import clusters
import networks
from workers import in_threads, monitored, setter

tf1 = tf.compat.v1
NETWORKS = [networks.mlp, networks.lenet, networks.dynamic_rnn, networks.embedding, networks.batch_norm_net]
KINDS = pytest.mark.parametrize('use_resource', [True, False], ids=['resource', 'ref'])
STEPS = 4


def same(a, b, rtol=3e-5):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def losses(target, network, use_resource, optimizer, device=None):
    """The losses of some steps on a server of Weir's or TensorFlow's, and where the variables are."""
    with clusters.session(target) as s, tf1.device(device):
        tf1.set_random_seed(1)
        with tf1.variable_scope(f'{network.__name__}_{use_resource}'):  # servers remember variables by their names
            loss, feeds = network(use_resource)
        return networks.train(s, loss, feeds, optimizer(), STEPS), {v.device for v in tf1.global_variables()}


# ---- one client ----

@KINDS
@pytest.mark.parametrize('network', NETWORKS, ids=lambda n: n.__name__)
def test_one_server(server, tensorflow_server, network, use_resource):
    def optimizer():
        return tf1.train.AdamOptimizer(0.01)
    got, _ = losses(server, network, use_resource, optimizer)
    want, _ = losses(tensorflow_server, network, use_resource, optimizer)
    same(got, want)


@KINDS
@pytest.mark.parametrize('network', NETWORKS, ids=lambda n: n.__name__)
def test_parameter_servers(cluster, tensorflow_servers, network, use_resource):
    """The master is worker 0, the work is on worker 1, the variables are on both parameter servers."""
    def optimizer():
        return tf1.train.RMSPropOptimizer(0.01) if use_resource else tf1.train.MomentumOptimizer(0.1, 0.9)
    got, places = losses(cluster, network, use_resource, optimizer, setter(1))
    want, _ = losses(tensorflow_servers, network, use_resource, optimizer, setter(1))
    assert places == {'/job:ps/task:0', '/job:ps/task:1'}
    same(got, want)


@KINDS
def test_partitioned_variables(cluster, use_resource):
    """An embedding in three pieces over two parameter servers, looked up and trained sparsely."""
    def build(s, scope):
        tf1.set_random_seed(1)
        with tf1.variable_scope(scope):
            loss, feeds = networks.embedding(use_resource, parts=3)
        got = networks.train(s, loss, feeds, tf1.train.AdagradOptimizer(0.3), STEPS)
        table = [v for v in tf1.global_variables() if '/table/part_' in v.name and 'Adagrad' not in v.name]
        return got, s.run(table), [v.device for v in table]
    with tf.Graph().as_default(), tf1.Session() as s:
        want = build(s, 'parts')
    with clusters.session(cluster) as s, tf1.device(setter(1)):
        got = build(s, f'parts_{use_resource}')
    same(got[0], want[0])
    assert len(got[1]) == 3 and set(got[2]) == {'/job:ps/task:0', '/job:ps/task:1'}
    for a, b in zip(got[1], want[1]):
        same(a, b)


@KINDS
@pytest.mark.parametrize('sharded', [False, True], ids=['whole', 'sharded'])
def test_saver(cluster, tmp_path, sharded, use_resource):
    """Parameter servers write a checkpoint that TensorFlow reads, and read it back."""
    with clusters.session(cluster) as s, tf1.device(setter(0)):
        with tf1.variable_scope(f'saved_{sharded}_{use_resource}', use_resource=use_resource) as scope:
            a = tf1.get_variable('a', [3], initializer=tf1.constant_initializer(2.))
            b = tf1.get_variable('b', [2, 2], initializer=tf1.constant_initializer(3.), use_resource=not use_resource)
            c = tf1.get_variable('c', [], tf.int64, initializer=tf1.constant_initializer(7))
        saver = tf1.train.Saver([a, b, c], sharded=sharded)
        s.run(tf1.global_variables_initializer())
        path = saver.save(s, str(tmp_path / 'model'), global_step=5)
        s.run([tf1.assign(a, a * 0.), tf1.assign(b, b + 1.), tf1.assign(c, 0)])
        saver.restore(s, path)
        got = s.run([a, b, c])
    assert got[0].tolist() == [2.] * 3 and got[1].tolist() == [[3., 3.]] * 2 and got[2] == 7
    reader = tf.train.load_checkpoint(path)
    assert reader.get_tensor(f'{scope.name}/b').tolist() == [[3., 3.]] * 2


# ---- several clients ----

def test_queue_between_clients(cluster):
    """Two clients with masters of their own meet at a queue on a parameter server."""
    def queue():
        with tf.device('/job:ps/task:1'):
            return tf1.PaddingFIFOQueue(4, [tf.int32, tf.string], [[None], []], shared_name='between_clients')

    def produce():
        with clusters.session(cluster.tasks['worker', 0]) as s:
            x, name = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.string, [])
            with tf.device('/job:worker/task:0'):
                put = queue().enqueue([x * 2, name])
            for i in range(12):
                s.run(put, {x: list(range(i % 4)), name: str(i)})

    def consume():
        with clusters.session(cluster.tasks['worker', 1]) as s:
            with tf.device('/job:worker/task:1'):
                values, names = queue().dequeue_many(3)
                total = tf.reduce_sum(values, 1)
            for i in range(4):
                got = s.run([total, names])
                seen.extend(zip(got[1].tolist(), got[0].tolist()))
    seen = []
    in_threads(produce, consume)
    assert seen == [(str(i).encode(), 2 * sum(range(i % 4))) for i in range(12)]


@KINDS
def test_asynchronous(cluster, use_resource):
    """Two workers, each at its own pace: no step is lost, and the loss falls."""
    scope = f'async_{use_resource}'

    def work(index, last):
        with tf.Graph().as_default(), tf1.device(setter(index)):
            with tf1.variable_scope(scope, use_resource=use_resource):
                loss, feeds = networks.mlp(use_resource)
                step = tf1.train.get_or_create_global_step()
            train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
            with monitored(cluster, index, index == 0, ready) as s:
                history = [s.run([loss, train], feeds(0))[0] for _ in range(30)]
                last[index] = (history[0], history[-1], s.run(step))
    last, ready = {}, threading.Event()
    in_threads(lambda: work(0, last), lambda: work(1, last))
    assert max(steps for _, _, steps in last.values()) == 60
    assert min(end for _, end, _ in last.values()) < 0.7 * max(start for start, _, _ in last.values())


def read_after(others, variable):
    with tf.control_dependencies(others):
        return variable.read_value()


def plain_descent(steps):
    """Loss and variables before each step on one batch."""
    with tf.Graph().as_default(), tf1.Session() as s:
        with tf1.variable_scope('sync'):
            loss, feeds = networks.mlp()
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        s.run(tf1.global_variables_initializer())
        seen = []
        for _ in range(steps):
            seen.append(s.run([loss, tf1.trainable_variables()], feeds(0)))
            s.run(train, feeds(0))
        return seen


@KINDS
@pytest.mark.parametrize('needed, total', [(2, 2), (1, 2), (2, 3)], ids=['all', 'one-of-two', 'two-of-three'])
def test_synchronous(cluster, needed, total, use_resource):
    """Each step takes the mean of |needed| gradients out of |total| workers. With one batch for all, that is plain descent."""
    scope, steps = f'sync_{needed}_{total}_{use_resource}', 8
    seen, final, ready = [], [], threading.Event()

    def work(index):
        task = index % 2
        # A container of its own: the queue of tokens, whose name is fixed, is closed with the session.
        with tf.Graph().as_default() as graph, graph.container(scope), tf1.device(setter(task)):
            with tf1.variable_scope(scope, use_resource=use_resource):
                with tf1.variable_scope('sync'):
                    loss, feeds = networks.mlp(use_resource)
                step = tf1.train.get_or_create_global_step()
            optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(0.1), needed, total)
            train = optimizer.minimize(loss, step)
            # Tokens to begin with let a worker run ahead: its gradient, of variables of which some are a step younger, may still be
            # in time for the others. Only where one batch must be plain descent are there none.
            tokens = 0 if needed == total else -1
            hooks = [optimizer.make_session_run_hook(index == 0, tokens), tf1.train.StopAtStepHook(last_step=steps)]
            after = read_after([loss, train], step)
            first = step.read_value()
            variables = [read_after([first], v) for v in tf1.trainable_variables()]
            last = read_after(variables, step)
            with monitored(cluster, task, index == 0, ready, hooks) as s:
                while not s.should_stop():
                    before = s.run(step)
                    if s.should_stop():
                        break
                    value, _, at_least = s.run([loss, train, after], feeds(0))
                    seen.append((before, value, at_least))
                    if index == 0 and not s.should_stop():
                        final.append(s.run([first, variables, last]))
    in_threads(*[lambda i=i: work(i) for i in range(total)])
    want = plain_descent(max(at_least for _, _, at_least in seen) + 3)
    assert len(seen) >= needed * steps - total  # each step took so many; a worker's last one may have ended with the queue of tokens
    # Others' steps may come between any two things that a worker does, even between reading two variables.
    for before, value, at_least in seen:
        assert want[at_least + 2][0] - 2e-5 < value < want[before][0] + 2e-5, (before, value, at_least, [loss for loss, _ in want])
    for first, values, last in final if needed == total else []:
        end = last + 2 if use_resource else len(want)  # what was read of a reference is of the moment it is sent
        for i, value in enumerate(values):
            assert any(np.allclose(value, want[k][1][i], rtol=1e-4, atol=1e-6) for k in range(first, end)), \
                (first, last, i, value, [variables[i] for _, variables in want])


def synchronous(cluster, network, use_resource):
    """The losses of two workers with batches of their own, {worker: [loss, ...]}; each step takes the mean of both gradients."""
    scope = f'both-{network.__name__}-{use_resource}'.replace('_', '-')  # also the container, whose name may have no '_'
    seen, ready, together = {0: [], 1: []}, threading.Event(), threading.Barrier(2, timeout=120)

    def work(index):
        with tf.Graph().as_default() as graph, graph.container(scope), tf1.device(setter(index)):
            tf1.set_random_seed(1)
            with tf1.variable_scope(scope, use_resource=use_resource):
                loss, feeds = network(use_resource)
                step = tf1.train.get_or_create_global_step()
            optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.AdamOptimizer(0.02), 2, 2)
            train = optimizer.minimize(loss, step)
            # No tokens to begin with, and no worker begins a step before the other has its token: each step has a gradient of both.
            hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
            with monitored(cluster, index, index == 0, ready, [hook]) as s:
                for i in range(STEPS):
                    together.wait()
                    seen[index].append(float(s.run([loss, train], feeds(2 * i + index))[0]))
                together.wait()  # the chief's end closes the queue of tokens
    in_threads(lambda: work(0), lambda: work(1))
    return seen


@KINDS
@pytest.mark.parametrize('network', [networks.lenet, networks.embedding], ids=lambda n: n.__name__)
def test_synchronous_losses(cluster, tensorflow_servers, network, use_resource):
    got, want = (synchronous(servers, network, use_resource) for servers in (cluster, tensorflow_servers))
    assert len(want[0]) == len(want[1]) == STEPS
    for index in (0, 1):
        same(got[index], want[index])
