"""Tasks that die and come back on the same port: what clients see, and sessions that recover by themselves."""
import contextlib
import threading

import numpy as np
import pytest
import tensorflow as tf

import clusters
import networks

tf1 = tf.compat.v1
LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)


class Restartable(clusters.Cluster):
    """A cluster whose tasks can be killed."""

    def kill(self, job, i):
        task = self.tasks[job, i]
        task.process.kill()
        task.process.wait()

    def restart(self, job, i):
        self.kill(job, i)
        self.start(job, i)


@pytest.fixture(scope='module')
def small():
    cluster = Restartable({'ps': 1, 'worker': 2})
    yield cluster
    cluster.stop()


@contextlib.contextmanager
def session(cluster):
    """A session whose master may be gone when it is closed."""
    with tf.Graph().as_default():
        s = tf1.Session(cluster.tasks['worker', 0].target, config=tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS))
        yield s
        with contextlib.suppress(tf.errors.AbortedError):
            s.close()


@contextlib.contextmanager
def program(cluster, name):
    """A variable on the parameter server, and work on worker 1 under worker 0 as master."""
    with session(cluster) as s:
        with tf.device('/job:ps/task:0'):
            v = tf1.get_variable(name, [], initializer=tf1.constant_initializer(1.), use_resource=True)
        with tf.device('/job:worker/task:1'):
            y = v * 2.
        yield s, v, y


def test_parameter_server_dies(small):
    with program(small, 'a') as (s, v, y):
        s.run(v.initializer)
        assert s.run(y) == 2.
        small.kill('ps', 0)
        assert isinstance(clusters.error_of(s.run, y), tf.errors.UnavailableError)
        small.start('ps', 0)
        for _ in range(3):  # this session knows nothing of the new process
            assert isinstance(clusters.error_of(s.run, y), LOST)
    with program(small, 'a') as (s, v, y):
        assert isinstance(clusters.error_of(s.run, y), tf.errors.FailedPreconditionError)
        s.run(v.initializer)
        assert s.run(y) == 2.


def test_worker_restarts(small):
    with program(small, 'b') as (s, v, y):
        s.run(v.initializer)
        assert s.run(y) == 2.
        s.run(y.op)
        before = {d.name: d.incarnation for d in s.list_devices()}
        small.restart('worker', 1)
        error = clusters.error_of(s.run, y)
        assert isinstance(error, LOST)
        clusters.wait_until(lambda: isinstance(clusters.error_of(s.run, y), tf.errors.AbortedError))
        error = clusters.error_of(s.run, y)  # of what is asked first: to run the part, or for its tensor
        assert isinstance(error, tf.errors.AbortedError), error
        assert 'Session handle is not found' in error.message or 'expects a different device incarnation' in error.message
        error = clusters.error_of(s.run, y.op)  # nothing is fetched
        assert isinstance(error, tf.errors.AbortedError), error
        assert 'Session handle is not found' in error.message and 'just restarted' in error.message
        assert s.run(v.read_value()) == 1.  # what does not need the task goes on
    with program(small, 'b') as (s, v, y):
        assert s.run(y) == 2.
        after = {d.name: d.incarnation for d in s.list_devices()}
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {'/job:worker/replica:0/task:1/device:CPU:0'}  # of the new process, and of no other


def test_master_restarts(small):
    with program(small, 'c') as (s, v, y):
        s.run(v.initializer)
        small.restart('worker', 0)
        error = clusters.error_of(s.run, y)
        if not isinstance(error, tf.errors.AbortedError):  # the client may see the broken connection first
            assert isinstance(error, tf.errors.UnavailableError)
            clusters.wait_until(lambda: isinstance(clusters.error_of(s.run, y), tf.errors.AbortedError))
            error = clusters.error_of(s.run, y)
        assert isinstance(error, tf.errors.AbortedError) and 'is not found' in error.message
    with program(small, 'c') as (s, v, y):
        assert s.run(y) == 2.


@pytest.mark.parametrize('job, index', [('worker', 1), ('ps', 0)])
def test_task_dies_within_a_step(small, job, index):
    with clusters.session(small.tasks['worker', 0].target) as s:
        with tf.device(f'/job:{job}/task:{index}'):
            blocked = tf1.FIFOQueue(1, tf.float32, shared_name='never').dequeue()
        other = '/job:ps/task:0' if job == 'worker' else '/job:worker/task:1'
        with tf.device(other):
            result = blocked + 1.
        s.list_devices()

        def kill():
            clusters.wait_until(lambda: small.tasks[job, index].held()['weir_graphs_running'])
            small.kill(job, index)
        killer = threading.Thread(target=kill)
        killer.start()
        error = clusters.error_of(s.run, result)
        killer.join()
        assert isinstance(error, tf.errors.UnavailableError)
        with tf.device('/job:worker/task:0'):
            assert s.run(tf.constant(1.) + tf.random.uniform([], 0., 0.)) == 1.
    small.start(job, index)


class Kill(tf1.train.SessionRunHook):
    """Kills and restarts tasks when training gets to given steps; once each."""

    def __init__(self, cluster, plan, step):
        self.cluster, self.plan, self.step = cluster, dict(plan), step
        self.sessions = 0
        self.steps = []

    def after_create_session(self, session, coord):
        self.sessions += 1

    def before_run(self, context):
        return tf1.train.SessionRunArgs(self.step)

    def after_run(self, context, values):
        self.steps.append(int(values.results))
        victim = self.plan.pop(self.steps[-1], None)
        if victim:
            self.cluster.restart(*victim)


def build(scope, is_local=False):
    setter = tf1.train.replica_device_setter(ps_tasks=1, worker_device='/job:worker/task:1')
    with tf1.device(None if is_local else setter), tf1.variable_scope(scope):
        loss, feeds = networks.mlp()
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return loss, feeds, step, train


def descent(steps):
    """The loss after so many steps, without a server."""
    with tf.Graph().as_default(), tf1.Session() as s:
        loss, feeds, _, train = build('m', is_local=True)
        s.run(tf1.global_variables_initializer())
        for _ in range(steps):
            s.run(train, feeds(0))
        return s.run(loss, feeds(0))


def test_monitored_session_recovers(small, tmp_path):
    """Through the death of each kind of task, back to the last checkpoint each time, to the right result."""
    with tf.Graph().as_default():
        loss, feeds, step, train = build('monitored')
        kill = Kill(small, {7: ('ps', 0), 12: ('worker', 1), 16: ('worker', 0)}, step)
        hooks = [tf1.train.CheckpointSaverHook(str(tmp_path), save_steps=5), kill, tf1.train.StopAtStepHook(last_step=20)]
        with tf1.train.MonitoredTrainingSession(small.tasks['worker', 0].target, hooks=hooks, checkpoint_dir=str(tmp_path),
                                                save_checkpoint_secs=None, save_checkpoint_steps=None,
                                                config=tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS)) as s:
            while not s.should_stop():
                s.run(train, feeds(0))
        assert kill.sessions == 4 and not kill.plan, (kill.sessions, kill.steps)
        back = [(a, b) for a, b in zip(kill.steps, kill.steps[1:]) if b <= a]
        assert back, kill.steps  # it did go back to a checkpoint
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor('monitored/global_step') == 20
    with clusters.session(small) as s:
        loss, feeds, _, _ = build('monitored')
        tf1.train.Saver().restore(s, tf.train.latest_checkpoint(str(tmp_path)))
        np.testing.assert_allclose(s.run(loss, feeds(0)), descent(20), rtol=1e-4)


def test_supervisor_recovers(small, tmp_path):
    """A Supervisor's program, run again after the parameter server came back empty, goes on from the checkpoint."""
    def run(until):
        with tf.Graph().as_default():
            loss, feeds, step, train = build('supervised')
            supervisor = tf1.train.Supervisor(logdir=str(tmp_path), global_step=step, save_model_secs=0, save_summaries_secs=0,
                                              recovery_wait_secs=1)
            with supervisor.managed_session(small.tasks['worker', 0].target,
                                            config=tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS)) as s:
                first = int(s.run(step))
                while not supervisor.should_stop() and s.run(step) < until:
                    s.run(train, feeds(0))
                supervisor.saver.save(s, supervisor.save_path, global_step=step)
                return first, s.run(loss, feeds(0))
    assert run(6)[0] == 0
    small.restart('ps', 0)
    first, loss = run(10)
    assert first == 6
    np.testing.assert_allclose(loss, descent(10), rtol=1e-4)
