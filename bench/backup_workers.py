#!/usr/bin/env python3
"""Backup workers against stragglers: the time of a synchronous step with 0 to 4 workers more than it waits for.

    backup_workers.py [--servers weir tensorflow] [--scheme queues sync_replicas] [--weir FILE] [--workers N]
                      [--compute SECONDS] [--steps N] [--backups N] [--plot FILE]

starts a parameter server and N workers plus backups and trains on them with TensorFlow's client. Servers are `weir server`, or
processes with TensorFlow's own. In both schemes an accumulator takes the first N gradients of a step and drops those that come too
late; they differ in how a worker learns of the next step:

    queues          each worker has a queue of its own, into which every step's number goes; it takes the newest
    sync_replicas   tf.compat.v1.train.SyncReplicasOptimizer: one queue for all, into which a step puts a token for each worker

The network is tiny; a worker's computation is a wait in its client, so that the figures do not depend on how many cores there are.
The slow worker waits ten times as long. Prints a row for each number of backups, with and without the slow worker, and how
many of the other workers' gradients came when their step was over; draws the times with the slow worker. The python that runs it
must have tensorflow.
"""
import argparse
import os
import sys
import threading
import time

import svg_plot
from servers import Cluster

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.FATAL)  # SyncReplicasOptimizer makes things that it does not use
SLOWNESS = 10
SKIPPED = 6  # steps before the pace is steady: the first tokens let workers run ahead


# ---- schemes: a worker's graph, and how it is run ----

def network(index):
    """State on the parameter server, the computation on the worker."""
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device='/job:worker/task:%d' % index)):
        w = tf1.get_variable('w', [8, 1], initializer=tf1.ones_initializer(), use_resource=True)
        return w, tf.reduce_mean(tf.square(tf.matmul(tf.ones([4, 8]), w)))


class Queues:
    """Accumulator and queues are on the parameter server, by shared names."""

    def __init__(self, index, needed, total):
        w, loss = network(index)
        with tf1.device('/job:worker/task:%d' % index):
            self.at = tf1.placeholder(tf.int64, [])
            gradient = tf.gradients(loss, w)[0]
        with tf.device('/job:ps/task:0'):
            accumulator = tf1.ConditionalAccumulator(tf.float32, [8, 1], shared_name='gradients')
            queues = [tf1.FIFOQueue(-1, tf.int64, [], shared_name='next_%d' % i) for i in range(total)]
            with tf.control_dependencies([accumulator.apply_grad(gradient, self.at)]):
                first = queues[index].dequeue()
            with tf.control_dependencies([first]):  # the newest is the one that counts
                self.newest = tf.reduce_max(tf.concat([[first], queues[index].dequeue_many(queues[index].size())], 0))
            step = tf1.get_variable('step', [], tf.int64, tf1.zeros_initializer(), use_resource=True)
            update = w.assign_sub(1e-3 * accumulator.take_grad(needed), read_value=False)
            with tf.control_dependencies([update]):
                now = step.assign_add(1, read_value=True)
            self.advance = tf.group(*[queue.enqueue(now) for queue in queues])

    def lead(self, session):
        """Makes the state. A call of the result ends a step: the mean of the first gradients, the update, the next step."""
        session.run(tf1.global_variables_initializer())
        return session.make_callable(self.advance)

    def join(self, session):
        """A call of the result hands the gradient of a step in, and gives the step to go on with."""
        return session.make_callable(self.newest, [self.at])


class SyncReplicas:
    def __init__(self, index, needed, total):
        _, loss = network(index)
        with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device='/job:worker/task:%d' % index)):
            step = tf1.train.get_or_create_global_step()
            self.optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(1e-3), needed, total)
            self.train = self.optimizer.minimize(loss, step)
            self.tokens = self.optimizer.get_init_tokens_op()

    def lead(self, session):
        session.run(tf1.global_variables_initializer())
        session.run(self.optimizer.chief_init_op)
        session.run(self.tokens)
        return session.make_callable(self.optimizer.get_chief_queue_runner().enqueue_ops[0])

    def join(self, session):
        session.run(self.optimizer.local_step_init_op)
        run = session.make_callable(self.train)
        return lambda at: run()  # the worker's server knows at which step it is


SCHEMES = {'queues': Queues, 'sync_replicas': SyncReplicas}


class Training:
    """Workers as threads of this process, each with a graph and a session of its own."""

    def __init__(self, cluster, scheme, needed, total, slow, compute, steps):
        self.cluster, self.scheme, self.needed, self.total = cluster, SCHEMES[scheme], needed, total
        self.slow, self.compute, self.steps = slow, compute, steps
        self.ready, self.done = threading.Event(), threading.Event()
        self.reached = {}  # step → when
        self.sessions = []
        self.late = []  # for each gradient of a worker that is not slow: whether its step was over
        self.error = None

    def lead(self, advance):
        for at in range(1, self.steps + SKIPPED + 1):
            advance()
            self.reached[at] = time.perf_counter()
        self.done.set()

    def work(self, index):
        is_slow = self.slow and index == self.total - 1
        with tf.Graph().as_default() as graph:
            worker = self.scheme(index, self.needed, self.total)
            config = tf1.ConfigProto(device_filters=['/job:ps', '/job:worker/task:%d' % index])
            session = tf1.Session('grpc://' + self.cluster.workers[index], graph=graph, config=config)
            self.sessions.append(session)
            if index == 0:
                advance = worker.lead(session)
                threading.Thread(target=self.guarded, args=(self.lead, advance), daemon=True).start()
                self.ready.set()
            self.ready.wait()
            if self.done.is_set():
                return
            run, at = worker.join(session), 0
            while not self.done.is_set():
                time.sleep(self.compute * (SLOWNESS if is_slow else 1))
                if not is_slow and SKIPPED in self.reached:
                    self.late.append(at + 1 in self.reached)
                at = int(run(at))

    def guarded(self, fn, *args):
        try:
            fn(*args)
        except Exception as e:  # expected once the sessions are closed
            if not self.done.is_set():
                self.error = e
                self.done.set()
                self.ready.set()

    def run(self):
        """Seconds a step, the mean, and the share of the gradients that came too late, without those of a slow worker."""
        threads = [threading.Thread(target=self.guarded, args=(self.work, i), daemon=True) for i in range(self.total)]
        for thread in threads:
            thread.start()
        self.done.wait()
        # While there are servers: to close a session whose server is gone is to wait for it, and the garbage collector would do that
        # in a worker of the next measurement.
        for session in self.sessions:
            session.close()
        for thread in threads:
            thread.join()
        if self.error:
            raise self.error
        return (self.reached[SKIPPED + self.steps] - self.reached[SKIPPED]) / self.steps, sum(self.late) / len(self.late)


def measure(args, servers, scheme, backups, slow):
    with Cluster(servers, args.weir, 1, args.workers + backups, '--threads=1') as cluster:
        return Training(cluster, scheme, args.workers, args.workers + backups, slow, args.compute, args.steps).run()


def measure_all(args, servers, scheme):
    """Prints the table of one kind of servers with one scheme; returns times of steps (all equal, one slow)."""
    print('%s servers, %s' % (servers, scheme))
    print('backups   all equal   one %dx slow   against no slow worker, no backups   late gradients' % SLOWNESS)
    rows = []
    for backups in range(args.backups + 1):
        (equal, _), (slow, late) = (measure(args, servers, scheme, backups, is_slow) for is_slow in (False, True))
        rows.append((equal, slow))
        print('%7d %9.3f s %12.3f s %9.2fx %43.0f %%' % (backups, equal, slow, slow / rows[0][0], 100 * late), flush=True)
    return list(zip(*rows))


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    build = os.environ.get('WEIR_BUILD', os.path.join(root, 'build', 'dev'))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', nargs='+', choices=['weir', 'tensorflow'], default=['weir'])
    parser.add_argument('--scheme', nargs='+', choices=list(SCHEMES), default=['queues'])
    parser.add_argument('--weir', default=os.path.join(build, 'cli', 'weir'))
    parser.add_argument('--workers', type=int, default=8, help='gradients that a step takes (default 8)')
    parser.add_argument('--compute', type=float, default=0.2, help='seconds a gradient takes (default 0.2)')
    parser.add_argument('--steps', type=int, default=12, help='steps measured (default 12)')
    parser.add_argument('--backups', type=int, default=4, help='most backups (default 4)')
    parser.add_argument('--plot', help='an SVG file')
    args = parser.parse_args()
    lines, is_good = [], True
    for scheme in args.scheme:
        for servers in args.servers:
            equal, slow = measure_all(args, servers, scheme)
            lines.append(('%s, %s' % (scheme, servers), slow))
            if scheme == 'queues' and servers == 'weir' and args.backups > 0:
                is_good = slow[1] <= 1.2 * equal[0]
                print('one backup with a slow worker: %.2fx of a step without either (aim: 1.2x): %s' %
                      (slow[1] / equal[0], 'reached' if is_good else 'missed'))
    if args.plot:
        svg_plot.write(args.plot, 'Time of a synchronous step of %d workers, one of them %d times slower' % (args.workers, SLOWNESS),
                       'backup workers', 'seconds', lines)
    return 0 if is_good else 1


if __name__ == '__main__':
    sys.exit(main())
