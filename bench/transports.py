#!/usr/bin/env python3
"""How long a tensor takes from one task to another, by each of the transports that Weir has on one machine.

    transports.py [--weir FILE] [--megabytes 1 10 100] [--rounds N] [--steps N]

A parameter server holds a variable; in a step a worker fetches all of it and does nothing with it. For each transport there is a
cluster of two tasks; they take turns, for rounds of some steps each. Prints the medians of all steps in milliseconds, and GB/s. The
python that runs it must have tensorflow.
"""
import argparse
import contextlib
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'paper'))
from client import default_weir, open_session, tf, tf1  # noqa: E402
from servers import Cluster  # noqa: E402

UCX = {'WEIR_TRANSPORT': 'ucx', 'WEIR_SAME_HOST': '0'}
KINDS = {
    'rpc': {'WEIR_TRANSPORT': 'auto', 'WEIR_SAME_HOST': '0'},
    'same_host': {'WEIR_TRANSPORT': 'auto', 'WEIR_SAME_HOST': '1'},
    'ucx_tcp': {**UCX, 'UCX_TLS': 'tcp,self'},
    'ucx_shared': {**UCX, 'UCX_TLS': 'posix,sysv,cma,self'},
}
WARM_UP = 5  # steps, after which UCX is connected


@contextlib.contextmanager
def cluster_of(kind, weir):
    os.environ.update(KINDS[kind])
    with Cluster('weir', weir, 1, 1) as cluster:
        for name in KINDS[kind]:
            del os.environ[name]
        yield cluster


class Measurement:
    """A session of a cluster whose step moves one tensor."""

    def __init__(self, stack, kind, weir, megabytes):
        graph = tf.Graph()
        with graph.as_default():
            with tf1.device('/job:ps/task:0'):
                part = tf1.get_variable('part', [megabytes << 18], initializer=tf1.ones_initializer(), use_resource=True)
                value = part.read_value()
            with tf1.device('/job:worker/task:0'):
                step = tf.identity(value).op
            init = tf1.global_variables_initializer()
        self.session = stack.enter_context(open_session(stack.enter_context(cluster_of(kind, weir)), 0, graph))
        self.session.run(init)
        self.step = self.session.make_callable(step)
        self.times = []
        for _ in range(WARM_UP):
            self.step()
            time.sleep(0.1)

    def run(self, steps):
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            self.times.append(time.perf_counter() - start)


def measure(args, megabytes):
    with contextlib.ExitStack() as stack:
        measurements = {kind: Measurement(stack, kind, args.weir, megabytes) for kind in args.kinds}
        for _ in range(args.rounds):
            for measurement in measurements.values():
                measurement.run(args.steps)
        return {kind: statistics.median(measurement.times) for kind, measurement in measurements.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--weir', default=default_weir())
    parser.add_argument('--kinds', nargs='+', choices=list(KINDS), default=list(KINDS))
    parser.add_argument('--megabytes', nargs='+', type=int, default=[1, 10, 100])
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--steps', type=int, default=5, help='of each transport in a round (default 5)')
    args = parser.parse_args()
    print('%6s' % 'MB', ''.join('%24s' % kind for kind in args.kinds))
    for megabytes in args.megabytes:
        medians = measure(args, megabytes)
        print('%6d' % megabytes, ''.join('%12.2f ms %4.1f GB/s' % (1e3 * t, megabytes / 953.67 / t) for t in medians.values()),
              flush=True)


if __name__ == '__main__':
    main()
