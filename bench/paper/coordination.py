#!/usr/bin/env python3
"""The paper's null steps: what it costs to coordinate workers that compute nothing.

    coordination.py [--servers weir tensorflow] [--cases scalar dense_100M …] [--workers 1 2 4 …] [--ps N] [--steps N]
                    [--json FILE] [--plot FILE]

Parameter servers hold a model, a part of it each. In a step every worker fetches it, does next to nothing, and sends an update of all
that it fetched; the step ends with the last worker, and all begin the next one together. The cases are the paper's:

    scalar       one number on each server
    dense_100M   100 MB, all of it fetched and updated
    dense_1G     1 GB
    sparse_1G    32 random rows of a table of 1 GB
    sparse_4G    the same of 4 GB; sparse_16G of 16 GB

All processes are on this machine, where the paper had one for each task, so the times of both kinds of servers hold their share of its
cores; the client is TensorFlow's in both, its workers are threads of one process. Kinds take turns for each measurement. Prints medians
of step times in milliseconds. The python that runs it must have tensorflow.
"""
import argparse
import json
import os
import pathlib
import statistics
import time

from client import default_weir, open_session, run_workers, tf, tf1
import svg_plot
from servers import Cluster

ROW = 256  # floats of a table's row, 1 KB
LOOKED_UP = 32  # rows a step
BYTES = {'scalar': 0, 'dense_100M': 100 << 20, 'dense_1G': 1 << 30, 'sparse_1G': 1 << 30, 'sparse_4G': 4 << 30, 'sparse_16G': 16 << 30}
WARM_UP = 3  # steps


def part_shape(case, ps_count):
    return [] if case == 'scalar' else [BYTES[case] // (4 * ROW * ps_count), ROW]


def update_part(case, part):
    """A node on the parameter server that changes |part| by what the worker makes of it."""
    if not case.startswith('sparse'):
        return part.assign_sub(1e-3 * part.read_value(), read_value=False)
    rows = tf1.random_uniform([LOOKED_UP], 0, part.shape[0], tf.int32)
    return part.scatter_sub(tf.IndexedSlices(1e-3 * tf.gather(part, rows), rows))


def build(case, ps_count, index):
    """One worker's graph: its step, and what initialises the model."""
    parts = []
    for i in range(ps_count):
        with tf1.device('/job:ps/task:%d' % i):
            parts.append(tf1.get_variable('part_%d' % i, part_shape(case, ps_count), initializer=tf1.ones_initializer(),
                                          use_resource=True))
    if case.startswith('sparse'):  # a step looks rows of one part up: tables are dealt out by rows
        parts = [parts[index % ps_count]]
    with tf1.device('/job:worker/task:%d' % index):
        step = tf.group(*[update_part(case, part) for part in parts])
    return step, tf1.global_variables_initializer()


def measure(args, servers, case, workers):
    """The median time of a step in milliseconds."""
    starts, ends = [], []

    def work(index, barrier):
        with tf.Graph().as_default() as graph:
            step, init = build(case, args.ps, index)
        with open_session(cluster, index, graph) as session:
            if index == 0:
                session.run(init)
            run = session.make_callable(step)
            for _ in range(args.steps + WARM_UP):
                if barrier.wait() == 0:
                    starts.append(time.perf_counter())
                run()
                if barrier.wait() == 0:
                    ends.append(time.perf_counter())

    with Cluster(servers, args.weir, args.ps, workers) as cluster:
        run_workers(workers, work)
    return 1e3 * statistics.median([end - start for start, end in zip(starts, ends)][WARM_UP:])


def measure_all(args):
    rows = []
    print('%-11s %8s' % ('case', 'workers'), ''.join('%14s' % s for s in args.servers))
    for case in args.cases:
        for workers in args.workers:
            times = {servers: measure(args, servers, case, workers) for servers in args.servers}
            rows.append({'case': case, 'workers': workers, **times})
            ratio = '%9.1fx' % (times['tensorflow'] / times['weir']) if len(times) == 2 else ''
            print('%-11s %8d' % (case, workers), ''.join('%11.2f ms' % t for t in times.values()), ratio, flush=True)
    return rows


def plot(path, rows, servers, workers):
    lines = []
    for case in dict.fromkeys(row['case'] for row in rows):
        lines += [('%s, %s' % (case, s), [row[s] for row in rows if row['case'] == case]) for s in servers]
    svg_plot.write(path, 'Null steps: median time', 'workers', 'milliseconds', lines, workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', nargs='+', choices=['weir', 'tensorflow'], default=['weir', 'tensorflow'])
    parser.add_argument('--weir', default=default_weir())
    parser.add_argument('--cases', nargs='+', choices=list(BYTES), default=['scalar', 'dense_100M', 'sparse_1G'])
    parser.add_argument('--workers', nargs='+', type=int, default=[1, 2, 4, 8])
    parser.add_argument('--ps', type=int, default=16, help='parameter servers (default 16, as in the paper)')
    parser.add_argument('--steps', type=int, default=20, help='steps measured (default 20)')
    parser.add_argument('--json', help='a file for the numbers')
    parser.add_argument('--plot', help='an SVG file')
    args = parser.parse_args()
    rows = measure_all(args)
    if args.json:
        result = {'ps': args.ps, 'steps': args.steps, 'cores': os.cpu_count(), 'milliseconds': rows}
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + '\n')
    if args.plot:
        plot(args.plot, rows, args.servers, args.workers)


if __name__ == '__main__':
    main()
