#!/usr/bin/env python3
"""The paper's language model: an LSTM over 40,000 words, its softmax whole or sampled, by parameter servers and workers.

    language_model.py [--servers weir tensorflow] [--softmax full sampled] [--ps 1 2 …] [--workers 1 2 …] [--seconds N]
                      [--json FILE] [--plot FILE]

Embedding and softmax weights are cut among the parameter servers. With the full softmax each server multiplies by its own part; with the
sampled one it hands out the rows of the true words and of 512 others. Workers train asynchronously by gradient descent on words drawn by
chance, as fast as they can; the figure is words a second of all workers together. All processes are on this machine and share its cores,
so more of them help only as far as cores are idle: what can be compared is Weir's servers with TensorFlow's, and sampled with full.
The python that runs it must have tensorflow.
"""
import argparse
import json
import os
import pathlib
import time

from client import default_weir, open_session, run_workers, tf, tf1
import svg_plot
from servers import Cluster

WORDS, UNITS, SAMPLED, BATCH, LENGTH = 40000, 512, 512, 16, 20


def parts(name, shape, ps_count, initializer):
    """A variable cut by rows, a part on each parameter server."""
    made = []
    for i in range(ps_count):
        rows = shape[0] // ps_count + (i < shape[0] % ps_count)
        with tf1.device('/job:ps/task:%d' % i):
            made.append(tf1.get_variable('%s_%d' % (name, i), [rows, *shape[1:]], initializer=initializer, use_resource=True))
    return made


def lstm(inputs):
    """The outputs of all steps, one below the other. |inputs|: a tensor for each step."""
    with tf1.device('/job:ps/task:0'):
        kernel = tf1.get_variable('kernel', [2 * UNITS, 4 * UNITS], use_resource=True)
        bias = tf1.get_variable('bias', [4 * UNITS], initializer=tf1.zeros_initializer(), use_resource=True)
    weights, shift = kernel.read_value(), bias.read_value()
    c = h = tf.zeros([BATCH, UNITS])
    outputs = []
    for x in inputs:
        i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), weights) + shift, 4, 1)
        c = c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        outputs.append(h)
    return tf.concat(outputs, 0)


def full_loss(outputs, labels, weights, biases):
    logits = []
    for w, b in zip(weights, biases):
        with tf1.device(w.device):
            logits.append(tf.matmul(outputs, w, transpose_b=True) + b)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.concat(logits, 1)))


def sampled_loss(outputs, labels, weights, biases):
    return tf.reduce_mean(tf1.nn.sampled_softmax_loss(weights, biases, tf.expand_dims(labels, 1), outputs, SAMPLED, WORDS,
                                                      partition_strategy='div'))


def build(softmax, ps_count, index):
    small = tf1.random_uniform_initializer(-0.05, 0.05, seed=1)
    embedding = parts('embedding', [WORDS, UNITS], ps_count, small)
    weights = parts('softmax', [WORDS, UNITS], ps_count, small)
    biases = parts('shift', [WORDS], ps_count, tf1.zeros_initializer())
    with tf1.device('/job:worker/task:%d' % index):
        words = tf1.random_uniform([LENGTH + 1, BATCH], 0, WORDS, tf.int64, seed=index + 1)
        inputs = tf1.nn.embedding_lookup(embedding, words[:-1], partition_strategy='div')
        labels = tf.reshape(words[1:], [-1])
        loss = {'full': full_loss, 'sampled': sampled_loss}[softmax](lstm(tf.unstack(inputs)), labels, weights, biases)
        optimizer = tf1.train.GradientDescentOptimizer(0.1)
        step = optimizer.minimize(loss, colocate_gradients_with_ops=True)
    return step, tf1.global_variables_initializer()


def measure(args, servers, softmax, ps_count, workers):
    """Words a second."""
    steps = [0] * workers
    spans = []

    def work(index, barrier):
        with tf.Graph().as_default() as graph:
            step, init = build(softmax, ps_count, index)
        with open_session(cluster, index, graph) as session:
            if index == 0:
                session.run(init)
            barrier.wait()
            run = session.make_callable(step)
            run()  # the first prepares the graph
            barrier.wait()
            start = time.perf_counter()
            while time.perf_counter() - start < args.seconds:
                run()
                steps[index] += 1
            spans.append(time.perf_counter() - start)

    with Cluster(servers, args.weir, ps_count, workers) as cluster:
        run_workers(workers, work)
    return sum(steps) * BATCH * LENGTH / max(spans)


def measure_all(args):
    rows = []
    print('softmax   servers  workers', ''.join('%18s' % s for s in args.servers))
    for softmax in args.softmax:
        for ps_count in args.ps:
            for workers in args.workers:
                speeds = {servers: measure(args, servers, softmax, ps_count, workers) for servers in args.servers}
                rows.append({'softmax': softmax, 'ps': ps_count, 'workers': workers, **speeds})
                ratio = '%9.2fx' % (speeds['weir'] / speeds['tensorflow']) if len(speeds) == 2 else ''
                print('%-9s %7d %8d' % (softmax, ps_count, workers), ''.join('%10.0f words/s' % s for s in speeds.values()), ratio,
                      flush=True)
    return rows


def plot(args, rows):
    lines = []
    for softmax in args.softmax:
        for servers in args.servers:
            lines.append(('%s, %s' % (softmax, servers),
                          [row[servers] for row in rows if row['softmax'] == softmax and row['ps'] == args.ps[-1]]))
    svg_plot.write(args.plot, 'Language model, %d parameter servers' % args.ps[-1], 'workers', 'words a second', lines, args.workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', nargs='+', choices=['weir', 'tensorflow'], default=['weir', 'tensorflow'])
    parser.add_argument('--weir', default=default_weir())
    parser.add_argument('--softmax', nargs='+', choices=['full', 'sampled'], default=['full', 'sampled'])
    parser.add_argument('--ps', nargs='+', type=int, default=[1, 2, 4])
    parser.add_argument('--workers', nargs='+', type=int, default=[1, 2, 4])
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--json', help='a file for the numbers')
    parser.add_argument('--plot', help='an SVG file')
    args = parser.parse_args()
    rows = measure_all(args)
    if args.json:
        result = {'words': WORDS, 'units': UNITS, 'sampled': SAMPLED, 'batch': BATCH, 'length': LENGTH, 'cores': os.cpu_count(),
                  'seconds': args.seconds, 'words_per_second': rows}
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + '\n')
    if args.plot:
        plot(args, rows)


if __name__ == '__main__':
    main()
