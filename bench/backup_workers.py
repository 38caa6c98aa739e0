#!/usr/bin/env python3
"""Backup workers against stragglers: the time of a synchronous step with 0 to 4 workers more than it waits for.

    backup_workers.py [--weir FILE] [--workers N] [--compute SECONDS] [--steps N] [--plot FILE]

starts a parameter server and N workers plus backups (`weir server`) and trains on them with TensorFlow's client: an accumulator
takes the first N gradients of a step and drops those that come too late; then every worker gets the number of the next step in a
queue of its own, from which it takes the newest. (SyncReplicasOptimizer works too, but has one queue for all workers: the tokens
that a slow worker leaves there make the others compute gradients that are too late.) The network is tiny; a worker's computation
is a wait in its client, so that the figures do not depend on how many cores there are. The slow worker waits ten times as long.
Prints a row for each number of backups, with and without the slow worker, and draws them. The python that runs it must have
tensorflow.
"""
import argparse
import os
import socket
import statistics
import subprocess
import threading
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)
SLOWNESS = 10
SKIPPED = 3  # steps before the pace is steady


class Cluster:
    def __init__(self, weir, workers):
        sockets = [socket.socket() for _ in range(workers + 1)]
        for s in sockets:
            s.bind(('127.0.0.1', 0))
        self.addresses = ['127.0.0.1:%d' % s.getsockname()[1] for s in sockets]
        for s in sockets:
            s.close()
        spec = 'ps|' + self.addresses[0] + ',worker|' + ';'.join(self.addresses[1:])
        self.processes = []
        for job, task in [('ps', 0)] + [('worker', i) for i in range(workers)]:
            command = [weir, 'server', '--cluster=' + spec, '--job=' + job, '--task=%d' % task, '--threads=1']
            self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        for process in self.processes:
            process.stdout.readline()  # it listens

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


class Training:
    """Workers as threads of this process, each with a graph and a session of its own."""

    def __init__(self, cluster, needed, total, slow, compute, steps):
        self.cluster, self.needed, self.total, self.slow = cluster, needed, total, slow
        self.compute, self.steps = compute, steps
        self.ready, self.done = threading.Event(), threading.Event()
        self.reached = {}  # step → when
        self.error = None

    def build(self, index):
        """State on the parameter server, by shared names; the gradient on the worker."""
        device = tf1.train.replica_device_setter(ps_tasks=1, worker_device='/job:worker/task:%d' % index)
        with tf1.device(device):
            w = tf1.get_variable('w', [8, 1], initializer=tf1.ones_initializer(), use_resource=True)
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([4, 8]), w)))
            at = tf1.placeholder(tf.int64, [], 'at')
            gradient = tf.gradients(loss, w)[0]
        with tf.device('/job:ps/task:0'):
            accumulator = tf1.ConditionalAccumulator(tf.float32, [8, 1], shared_name='gradients')
            queues = [tf1.FIFOQueue(-1, tf.int64, [], shared_name='next_%d' % i) for i in range(self.total)]
            with tf.control_dependencies([accumulator.apply_grad(gradient, at)]):
                first = queues[index].dequeue()
            with tf.control_dependencies([first]):  # the newest is the one that counts
                newest = tf.reduce_max(tf.concat([[first], queues[index].dequeue_many(queues[index].size())], 0))
        return w, accumulator, queues, at, newest

    def lead(self, session, w, accumulator, queues):
        """The chief's loop: the mean of the first gradients, the update, the next step for everyone."""
        with tf.device('/job:ps/task:0'):
            step = tf1.get_variable('step', [], tf.int64, tf1.zeros_initializer(), use_resource=True)
            update = w.assign_sub(1e-3 * accumulator.take_grad(self.needed), read_value=False)
            with tf.control_dependencies([update]):
                now = step.assign_add(1, read_value=True)
            advance = tf.group(*[queue.enqueue(now) for queue in queues])
        session.run(tf1.global_variables_initializer())
        run = session.make_callable([advance, now])

        def loop():
            while not self.done.is_set():
                at = int(run()[1])
                self.reached[at] = time.perf_counter()
                if at >= self.steps + SKIPPED:
                    self.done.set()
        threading.Thread(target=self.guarded, args=(loop,), daemon=True).start()
        self.ready.set()

    def work(self, index):
        wait = self.compute * (SLOWNESS if self.slow and index == self.total - 1 else 1)
        with tf.Graph().as_default() as graph:
            w, accumulator, queues, step, newest = self.build(index)
            config = tf1.ConfigProto(device_filters=['/job:ps', '/job:worker/task:%d' % index])
            session = tf1.Session('grpc://' + self.cluster.addresses[index + 1], graph=graph, config=config)
            if index == 0:
                self.lead(session, w, accumulator, queues)
            self.ready.wait()
            run, at = session.make_callable(newest, [step]), 0
            while not self.done.is_set():
                time.sleep(wait)
                at = run(at)

    def guarded(self, fn, *args):
        try:
            fn(*args)
        except Exception as e:  # expected once the servers are gone
            if not self.done.is_set():
                self.error = e
                self.done.set()

    def run(self):
        """Seconds a step, the median."""
        for i in range(self.total):
            threading.Thread(target=self.guarded, args=(self.work, i), daemon=True).start()
        self.done.wait()
        if self.error:
            raise self.error
        steps = sorted(self.reached)
        times = [(self.reached[b] - self.reached[a]) / (b - a) for a, b in zip(steps, steps[1:]) if a >= SKIPPED]
        return statistics.median(times)


def measure(args, backups, slow):
    cluster = Cluster(args.weir, args.workers + backups)
    try:
        return Training(cluster, args.workers, args.workers + backups, slow, args.compute, args.steps).run()
    finally:
        cluster.stop()


# ---- the plot ----

def plot(path, args, lines):
    """Lines of (name, colour, values by the number of backups) as an SVG."""
    width, height, left, bottom, top = 640, 360, 70, 310, 50
    highest = max(max(values) for _, _, values in lines) * 1.1

    def x(i):
        return left + 40 + i * (width - left - 90) / (len(lines[0][2]) - 1)

    def y(value):
        return bottom - value / highest * (bottom - top)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{width / 2}" y="24" text-anchor="middle" font-size="15">Time of a synchronous step of {args.workers} '
           'workers</text>',
           f'<path d="M{left} {top}V{bottom}H{width - 20}" fill="none" stroke="black"/>',
           f'<text x="{(left + width) / 2}" y="{height - 12}" text-anchor="middle">backup workers</text>',
           f'<text x="18" y="{(top + bottom) / 2}" text-anchor="middle" transform="rotate(-90 18 {(top + bottom) / 2})">'
           'seconds</text>']
    for i in range(len(lines[0][2])):
        out.append(f'<text x="{x(i):.0f}" y="{bottom + 20}" text-anchor="middle">{i}</text>')
    for i in range(5):
        value = highest * i / 4
        out.append(f'<path d="M{left} {y(value):.1f}H{width - 20}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    for k, (name, colour, values) in enumerate(lines):
        points = ' '.join(f'{x(i):.1f},{y(v):.1f}' for i, v in enumerate(values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(i):.1f}" cy="{y(v):.1f}" r="3.5" fill="{colour}"/>' for i, v in enumerate(values)]
        out.append(f'<text x="{width - 30}" y="{top + 16 + 18 * k}" text-anchor="end" fill="{colour}">{name}</text>')
    with open(path, 'w') as f:
        f.write('\n'.join(out + ['</svg>']) + '\n')


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    build = os.environ.get('WEIR_BUILD', os.path.join(root, 'build', 'dev'))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--weir', default=os.path.join(build, 'cli', 'weir'))
    parser.add_argument('--workers', type=int, default=8, help='gradients that a step takes (default 8)')
    parser.add_argument('--compute', type=float, default=0.2, help='seconds a gradient takes (default 0.2)')
    parser.add_argument('--steps', type=int, default=12, help='steps measured (default 12)')
    parser.add_argument('--backups', type=int, default=4, help='most backups (default 4)')
    parser.add_argument('--plot', default=os.path.join(root, 'docs', 'backup_workers.svg'))
    args = parser.parse_args()
    rows = []
    print('backups   all equal   one %dx slow   against no slow worker, no backups' % SLOWNESS)
    for backups in range(args.backups + 1):
        rows.append([measure(args, backups, slow) for slow in (False, True)])
        print('%7d %9.3f s %12.3f s %9.2fx' % (backups, *rows[-1], rows[-1][1] / rows[0][0]), flush=True)
    equal, slow = zip(*rows)
    plot(args.plot, args, [('one worker %d times slower' % SLOWNESS, '#c03020', slow), ('all equal', '#2060a0', equal)])
    if args.backups > 0:
        good = slow[1] <= 1.2 * equal[0]
        print('one backup with a slow worker: %.2fx of a step without either (aim: 1.2x): %s' %
              (slow[1] / equal[0], 'reached' if good else 'missed'))
        return 0 if good else 1
    return 0


if __name__ == '__main__':
    main_code = main()
    os._exit(main_code)  # threads of clients whose servers are gone would keep the process
