"""Programs that read variables after their training step, with reference and with resource variables: TensorFlow's client on two
parameter servers and two workers, Weir's and TensorFlow's own. Nothing in them is left to chance: workers take turns or step together."""
import contextlib
import threading

import numpy as np
import pytest
import tensorflow as tf

import clusters
import networks
from workers import in_threads, monitored, setter

tf1 = tf.compat.v1
ROUNDS = 3


@contextlib.contextmanager
def switched(is_on, was_on, enable, disable):
    (enable if is_on else disable)()
    yield is_on
    (enable if was_on else disable)()


def control_flow_v2(is_on):
    return switched(is_on, tf1.control_flow_v2_enabled(), tf1.enable_control_flow_v2, tf1.disable_control_flow_v2)


@pytest.fixture(params=[True, False], ids=['resource', 'ref'], autouse=True)
def use_resource(request):
    """The kind of all variables that a program makes, also of those that TensorFlow's client makes for it. Conditionals are those of
    that time: with later ones TensorFlow cannot make one reference variable from another."""
    kind = switched(request.param, tf1.resource_variables_enabled(), tf1.enable_resource_variables, tf1.disable_resource_variables)
    with control_flow_v2(False), kind:
        yield request.param


@pytest.fixture(params=['ps', 'worker'])
def near(request):
    """The device of what is computed of a variable after the step: the variable's own, or the worker's."""
    if request.param == 'worker':
        return lambda v: contextlib.nullcontext()
    return lambda v: tf1.device(v.device)


def same(got, want):
    tf.nest.assert_same_structure(got, want)
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want)):
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=1e-6)


# ---- workers that take turns ----

def build(program, scope, index):
    tf1.set_random_seed(1)
    with tf1.device(setter(index)), tf1.variable_scope(scope):
        return program()


def turns(servers, program, scope):
    """What |program| shows when two workers with masters of their own take turns at its steps, and its variables at the end.

    It gives (fetches, feeds of a step), or also a function that looks at the state with a session in another graph."""
    seen = []
    with contextlib.ExitStack() as stack:
        workers = []
        for index in (0, 1):
            s = stack.enter_context(clusters.session(servers.tasks['worker', index]))
            workers.append((s, *build(program, scope, index)))
        chief = workers[0][0]
        with chief.graph.as_default():
            chief.run(tf1.global_variables_initializer())
            variables = {v.op.name: v for v in tf1.global_variables()}
        for i in range(ROUNDS):
            for index, (s, fetches, feeds, *_) in enumerate(workers):
                seen.append(s.run(fetches, feeds(2 * i + index)))
        seen.append(chief.run(variables))
    for look in workers[0][3:]:
        with clusters.session(servers.tasks['worker', 1]) as s:
            seen.append(look(s))
    return seen


def compare(cluster, tensorflow_servers, program):
    scope = clusters.unique()
    got = turns(cluster, program, scope)
    same(got, turns(tensorflow_servers, program, scope))
    return got


def descent(use_resource, rate=0.3):
    loss, feeds = networks.two_layers(use_resource)
    step = tf1.train.get_or_create_global_step()
    return loss, feeds, step, tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)


def test_clipped_weights(cluster, tensorflow_servers, use_resource, near):
    def program():
        loss, feeds, _, train = descent(use_resource)
        clipped = []
        with tf.control_dependencies([train]):
            for v in tf1.trainable_variables():
                with near(v):
                    clipped.append(v.assign(tf.clip_by_value(v, -0.12, 0.12)))
        return [loss, clipped], feeds
    compare(cluster, tensorflow_servers, program)


def test_moving_averages(cluster, tensorflow_servers, use_resource):
    def program():
        loss, feeds, step, train = descent(use_resource)
        with tf.control_dependencies([train]):
            now = step.read_value()  # fetched, too: otherwise TensorFlow's servers often use the step before
            averages = tf1.train.ExponentialMovingAverage(0.9, num_updates=now)
            update = averages.apply(tf1.trainable_variables())
        with tf.control_dependencies([update]):
            after = [averages.average(v).read_value() for v in tf1.trainable_variables()]
        names = [(averages.average_name(v), v.shape, v.device) for v in tf1.trainable_variables()]

        def look(s):
            """Another program finds the averages by their names alone."""
            found = []
            for name, shape, device in names:
                with tf1.device(device):
                    found.append(tf1.get_variable(name, shape, use_resource=use_resource))
            return s.run(found)
        return [loss, now, after], feeds, look
    *_, variables, averages = compare(cluster, tensorflow_servers, program)
    same(averages, [variables[name] for name in variables if name.endswith('/ExponentialMovingAverage')])


def test_target_network(cluster, tensorflow_servers, use_resource, near):
    def program():
        loss, feeds, _, train = descent(use_resource)
        pairs = []
        for v in tf1.trainable_variables():
            with tf1.device(v.device):  # from another task it might be read before it is trained
                target = tf1.get_variable('target_' + v.op.name.split('/')[-1], v.shape, initializer=tf1.zeros_initializer(),
                                          trainable=False, use_resource=use_resource)
            pairs.append((v, target))
        distance = tf.add_n([tf.reduce_sum(tf.square(v - target)) for v, target in pairs])
        with tf.control_dependencies([train, distance]):
            updates = []
            for v, target in pairs:
                with near(target):
                    updates.append(target.assign(0.2 * v + 0.8 * target))
        return [loss, distance, updates], feeds
    compare(cluster, tensorflow_servers, program)


def test_global_step(cluster, tensorflow_servers, use_resource):
    """All that is made of the step after its update shows the update, next to where it is and on the worker."""
    def program():
        loss, feeds, step, train = descent(use_resource)
        with tf.control_dependencies([train]), tf1.device(step.device):
            after = step.assign_add(10)
        with tf.control_dependencies([after]):
            with tf1.device(step.device):
                shown = [tf.fill([2], step), tf.identity(step), step * 2, tf.stack([step, step]), tf.reshape(step, [1])]
                odd = tf1.cond(step % 2 > 0, lambda: step * 3, lambda: step * 5)
            read = step.read_value()
            shown += [read, read + 1, tf.fill([2], read)]
        return [loss, shown, odd], feeds
    got = compare(cluster, tensorflow_servers, program)
    for i, (_, shown, _) in enumerate(got[:-1]):
        at = 11 * (i + 1)
        assert [value.tolist() for value in shown] == [[at, at], at, 2 * at, [at, at], [at], at, at + 1, [at, at]]


@pytest.mark.parametrize('is_v2', [False, True], ids=['v1', 'v2'])
def test_gathered_in_conditional(cluster, tensorflow_servers, use_resource, is_v2):
    """Only one branch reads the table: of the other, the gradient is a constant."""
    def program():
        table = networks.variable('table', [6, 4], use_resource)
        other = networks.variable('other', [3, 4], use_resource)
        ids, is_read = tf1.placeholder(tf.int32, [3]), tf1.placeholder(tf.bool, [])
        rows = tf1.cond(is_read, lambda: tf.gather(table, ids), lambda: other * 2.)
        loss = tf.reduce_sum(tf.square(rows - 1.))
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.AdagradOptimizer(0.3).minimize(loss, step)
        with tf.control_dependencies([train]):
            after = table.read_value()

        def feeds(i):
            return {ids: [i % 6, (i * 2) % 6, 5], is_read: i % 3 != 1}
        return [loss, after], feeds
    with control_flow_v2(is_v2):
        compare(cluster, tensorflow_servers, program)


def test_supervised(cluster, tensorflow_servers, use_resource, tmp_path):
    """The chief's supervisor makes and saves the variables; the other's finds them. A later chief goes on from what was saved."""
    def program(scope, index, seen, servers, folder):
        with tf.Graph().as_default():
            loss, feeds, step, train = build(lambda: descent(use_resource), scope, index)
            with tf.control_dependencies([train]):
                now = step.read_value()
            supervisor = tf1.train.Supervisor(is_chief=index == 0, logdir=folder, global_step=step, save_model_secs=0, summary_op=None,
                                              recovery_wait_secs=0.1, stop_grace_secs=5)
            with supervisor.managed_session(servers.tasks['worker', index].target, config=config()) as s:
                for i in range(ROUNDS):
                    seen.append(s.run([loss, now], feeds(i)))
                if index == 0:
                    supervisor.saver.save(s, supervisor.save_path, global_step=int(seen[-1][1]))

    def run(servers, scope):
        seen, folder = [], str(tmp_path / scope / str(servers is cluster))
        for index in (0, 1, 0):
            program(scope, index, seen, servers, folder)
        return seen
    scope = clusters.unique()
    got = run(cluster, scope)
    same(got, run(tensorflow_servers, scope))
    assert [int(now) for _, now in got] == [1, 2, 3, 4, 5, 6, 4, 5, 6]


# ---- workers that step together ----

def config():
    return tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS)


@contextlib.contextmanager
def supervised(servers, index, optimizer, step, ready, folder):
    """As TensorFlow's examples begin: the supervisor waits for the variables, then the chief starts the tokens."""
    is_chief = index == 0
    tokens, runner = optimizer.get_init_tokens_op(), optimizer.get_chief_queue_runner()
    supervisor = tf1.train.Supervisor(
        is_chief=is_chief, logdir=folder, init_op=tf1.global_variables_initializer(), global_step=step, summary_op=None, save_model_secs=0,
        local_init_op=optimizer.chief_init_op if is_chief else optimizer.local_step_init_op,
        ready_for_local_init_op=optimizer.ready_for_local_init_op, recovery_wait_secs=0.1)
    s = supervisor.prepare_or_wait_for_session(servers.tasks['worker', index].target, config=config())
    if is_chief:
        s.run(tokens)
        supervisor.start_queue_runners(s, [runner])
    yield s
    supervisor.request_stop()
    s.close()  # ends the queue runner, which waits for gradients
    supervisor.stop()


@contextlib.contextmanager
def managed(servers, index, optimizer, step, ready, folder):
    """The supervisor also starts what is in the collection of queue runners."""
    is_chief = index == 0
    tokens = optimizer.get_init_tokens_op()
    if is_chief:
        tf1.train.add_queue_runner(optimizer.get_chief_queue_runner())
    supervisor = tf1.train.Supervisor(
        is_chief=is_chief, logdir=folder, global_step=step, summary_op=None, save_model_secs=0,
        local_init_op=tf.group(optimizer.chief_init_op if is_chief else optimizer.local_step_init_op, tf1.local_variables_initializer()),
        ready_for_local_init_op=optimizer.ready_for_local_init_op, recovery_wait_secs=0.1, stop_grace_secs=10)
    with supervisor.managed_session(servers.tasks['worker', index].target, config=config()) as s:
        if is_chief:
            s.run(tokens)
        yield s
        supervisor.request_stop()
        s.close()


@contextlib.contextmanager
def hooked(servers, index, optimizer, step, ready, folder):
    with monitored(servers, index, index == 0, ready, [optimizer.make_session_run_hook(index == 0)]) as s:
        yield s


# Both begin with a token of step 0 to spare. So they take one for their first gradients, and their second ones come too late: they are
# dropped. From then on each has its token when the step that it took part in is over.
GLOBAL_STEPS = [0, 1, 1, 2, 3]


def replicas(servers, scope, start, use_resource, folder):
    """The losses of two workers, {worker: [loss, ...]}, and the variables that each finds at the end."""
    seen, ready, together = {}, threading.Event(), threading.Barrier(2, timeout=120)

    def work(index):
        with tf.Graph().as_default() as graph, graph.container(scope), tf1.device(setter(index)):
            tf1.set_random_seed(1)
            with tf1.variable_scope(scope):
                loss, feeds = networks.two_layers(use_resource)
                step = tf1.train.get_or_create_global_step()
            optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.AdamOptimizer(0.02), 2, 2)
            train = optimizer.minimize(loss, step)
            with start(servers, index, optimizer, step, ready, folder) as s:
                losses = []
                for i, at in enumerate(GLOBAL_STEPS):
                    clusters.wait_until(lambda: s.run(step) == at)
                    together.wait()
                    losses.append(s.run([loss, train], feeds(2 * i + index))[0])
                seen[index] = losses, s.run(tf1.global_variables())
                together.wait()  # the chief's end closes the queue of tokens

    def guarded(index):
        try:
            work(index)
        except BaseException:
            together.abort()  # the other need not wait
            raise
    in_threads(lambda: guarded(0), lambda: guarded(1))
    return seen


@pytest.mark.parametrize('start', [supervised, managed, hooked], ids=['supervisor', 'managed-session', 'monitored-session'])
def test_synchronous_replicas(cluster, tensorflow_servers, use_resource, start, tmp_path):
    scope = clusters.unique().replace('_', '-')  # also the container, whose name may have no '_'
    got, want = (replicas(servers, scope, start, use_resource, str(tmp_path / str(i)))
                 for i, servers in enumerate((cluster, tensorflow_servers)))
    same(got, want)
