#!/usr/bin/env python3
"""What more workers do to what is learned: accuracy after the same number of examples, synchronous and asynchronous.

    accuracy.py [--servers weir] [--modes sync async] [--workers 1 2 4 …] [--examples N] [--json FILE] [--plot FILE]

A perceptron on MNIST, by gradient descent with batches of 100 a worker. Asynchronous workers each apply their gradient when they have
it, to parameters that others moved meanwhile. Synchronous ones move the parameters once by the mean of all gradients, so with more of
them there are fewer, better steps; the rate of learning is the same. All processes are on this machine, so asynchronous gradients are
as stale as its scheduler makes them. The python that runs it must have tensorflow.
"""
import argparse
import gzip
import json
import pathlib
import threading

import numpy as np

from client import BENCH, default_weir, open_session, run_workers, tf, tf1
import svg_plot
from servers import Cluster

DATA = BENCH.parent / 'data' / 'mnist'
BATCH, UNITS, RATE = 100, 100, 0.1


def read(name, header):
    return np.frombuffer(gzip.decompress((DATA / name).read_bytes()), np.uint8, offset=header)


def load(kind):
    images = read(kind + '-images-idx3-ubyte.gz', 16).reshape(-1, 784).astype(np.float32) / 255
    return images, read(kind + '-labels-idx1-ubyte.gz', 8).astype(np.int64)


class Model:
    """One worker's graph. Synchronous gradients go to accumulators, from which the first worker takes their mean."""

    def __init__(self, index, workers):
        with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device='/job:worker/task:%d' % index)):
            self.images = tf1.placeholder(tf.float32, [None, 784])
            self.labels = tf1.placeholder(tf.int64, [None])
            make = tf1.initializers.glorot_uniform(seed=1)
            shapes = {'w1': [784, UNITS], 'b1': [UNITS], 'w2': [UNITS, 10], 'b2': [10]}
            v = {name: tf1.get_variable(name, shape, initializer=make if len(shape) == 2 else tf1.zeros_initializer(),
                                        use_resource=True) for name, shape in shapes.items()}
            logits = tf.matmul(tf.nn.relu(tf.matmul(self.images, v['w1']) + v['b1']), v['w2']) + v['b2']
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=logits))
            self.accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), self.labels), tf.float32))
            optimizer = tf1.train.GradientDescentOptimizer(RATE)
            pairs = optimizer.compute_gradients(loss)
            self.apply = optimizer.apply_gradients(pairs)
        with tf1.device('/job:ps/task:0'):
            step = tf1.get_variable('step', [], tf.int64, tf1.zeros_initializer(), use_resource=True)
            means = [tf1.ConditionalAccumulator(tf.float32, x.shape, shared_name=x.op.name + '_mean') for _, x in pairs]
            self.hand_in = tf.group(*[mean.apply_grad(g, step.read_value()) for mean, (g, _) in zip(means, pairs)])
            moved = optimizer.apply_gradients([(mean.take_grad(workers), x) for mean, (_, x) in zip(means, pairs)])
            with tf.control_dependencies([moved]):
                counted = step.assign_add(1, read_value=True)
            with tf.control_dependencies([counted]):  # or the next gradients would be dropped as too old
                self.move = tf.group(*[mean.set_global_step(counted) for mean in means])
        self.init = tf1.global_variables_initializer()


class Batches:
    """Every batch once in an epoch, whichever worker takes it."""

    def __init__(self, images, labels, examples):
        self.images, self.labels, self.left = images, labels, examples // BATCH
        self.rng, self.order, self.lock = np.random.default_rng(1), [], threading.Lock()

    def take(self):
        with self.lock:
            if self.left == 0:
                return None
            self.left -= 1
            if len(self.order) < BATCH:
                self.order = list(self.rng.permutation(len(self.images)))
            chosen, self.order = self.order[:BATCH], self.order[BATCH:]
        return self.images[chosen], self.labels[chosen]


def train(args, servers, mode, workers):
    """The share of the test images that are told right in the end."""
    batches, result = Batches(*load('train'), args.examples), []

    def work(index, barrier):
        with tf.Graph().as_default() as graph:
            model = Model(index, workers)
        with open_session(cluster, index, graph) as session:
            if index == 0:
                session.run(model.init)
            barrier.wait()
            for _ in range(args.examples // BATCH // workers):
                images, labels = batches.take()
                session.run(model.apply if mode == 'async' else model.hand_in, {model.images: images, model.labels: labels})
                if mode == 'sync':
                    barrier.wait()
                    if index == 0:
                        session.run(model.move)
                    barrier.wait()
            barrier.wait()
            if index == 0:
                images, labels = load('t10k')
                result.append(float(session.run(model.accuracy, {model.images: images, model.labels: labels})))

    with Cluster(servers, args.weir, 1, workers) as cluster:
        run_workers(workers, work)
    return result[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', choices=['weir', 'tensorflow'], default='weir')
    parser.add_argument('--weir', default=default_weir())
    parser.add_argument('--modes', nargs='+', choices=['sync', 'async'], default=['sync', 'async'])
    parser.add_argument('--workers', nargs='+', type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument('--examples', type=int, default=180000, help='seen by all workers together (default 180000: three epochs)')
    parser.add_argument('--json', help='a file for the numbers')
    parser.add_argument('--plot', help='an SVG file')
    args = parser.parse_args()
    rows = []
    for workers in args.workers:
        rows.append({'workers': workers, **{mode: train(args, args.servers, mode, workers) for mode in args.modes}})
        print('%3d workers' % workers, ''.join('   %s %.2f %%' % (mode, 100 * rows[-1][mode]) for mode in args.modes), flush=True)
    if args.json:
        result = {'servers': args.servers, 'examples': args.examples, 'batch': BATCH, 'rate': RATE, 'accuracy': rows}
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + '\n')
    if args.plot:
        lines = [(mode, [1 - row[mode] for row in rows]) for mode in args.modes]
        svg_plot.write(args.plot, 'Errors after %d examples' % args.examples, 'workers', 'share of test images', lines, args.workers)


if __name__ == '__main__':
    main()
