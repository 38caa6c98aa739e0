#!/usr/bin/env python3
"""Random tf.data pipelines in Weir and in TensorFlow, element by element: values, types, shapes, errors, the end.

    random_pipelines.py [--seed N] [--count N] [--jobs N] [--lib FILE] [--verbose]

Each seed is a pipeline: a source, up to six transformations of it, an iterator. TensorFlow's client builds the graph; its session
and libweir run the initialiser and ask for elements until after the end, going on after errors. pipeline_steps.py has the sources
and transformations. A pipeline that differs is printed with its seed: --seed N --count 1 runs it again.
"""
import argparse
import os
import signal
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import programs
import numpy as np
import tensorflow as tf

import libweir
import pipeline_steps
import program_run
from parts import Current, run_parts

tf1 = tf.compat.v1
ELEMENTS = 26  # asked for, at most
DEPTH = 6
HANG_S = 20  # TensorFlow, too, may loop for ever


def build(p):
    """Draws a pipeline into the program |p|; returns what it is, in words."""
    words = []
    context = pipeline_steps.Context(p)
    dataset = pipeline_steps.draw_source(context, words)
    for _ in range(int(p.rng.integers(0, DEPTH + 1))):
        dataset = pipeline_steps.draw_step(context, dataset, words)
    context.initialize()
    cardinality = tf.raw_ops.DatasetCardinality(input_dataset=dataset._variant_tensor)
    if p.rng.integers(4):
        iterator = tf1.data.make_initializable_iterator(dataset)
        p.step(iterator.initializer)
    else:
        iterator = tf1.data.make_one_shot_iterator(dataset) if not context.captures else \
            tf1.data.make_initializable_iterator(dataset)
        if context.captures:
            p.step(iterator.initializer)
    if not context.has_random_size:
        p.step(cardinality)
    element = tf.nest.flatten(iterator.get_next(), expand_composites=True)
    for _ in range(ELEMENTS):
        p.step(*element)
    return ' . '.join(words)


def trim(steps):
    """Steps until one after the end, or after too many errors in a row."""
    for i, step in enumerate(steps):
        if step.code == 11:
            return steps[:i + 2]
    return steps


def is_mistaken(words, steps):
    """Whether TensorFlow refuses what is right: what it makes of a choice below a concatenation has the shape of the selector, and
    what it makes of a shuffle that is repeated no times is an op that refuses that."""
    if any(s.message.startswith('count must be greater than zero or equal to -1.') for s in steps):
        return 'shuffle' in words and 'repeat' in words.partition('shuffle')[2]
    refused = any(s.message.startswith('Incompatible shapes at component') for s in steps)
    return refused and 'concatenate' in words.partition('choose')[2]


def run_one(lib, seed, note):
    """(words, problem). note(phase) says what it is at."""
    p = programs.Program('pipeline', seed, 0)
    words = ''
    try:
        with p.graph.as_default():
            tf1.set_random_seed(seed)
            words = build(p)
    except Exception:  # pylint: disable=broad-except
        return words, f'the pipeline itself is bad: {traceback.format_exc()}'
    p.finish()
    note('tensorflow')
    with program_run.in_folder(p.files):
        programs.run_tensorflow(p)
    if is_mistaken(words, p.steps):
        return words, None
    note('weir')
    with program_run.in_folder(p.files):
        problem = program_run.run_weir(lib, p.graph_def.SerializeToString(), trim(p.steps), p.threads, p.passes, False)
    return words, problem


def run(options, seeds, current):
    lib = libweir.Library(os.path.abspath(options.lib))
    failures = 0
    for seed in seeds:
        note = lambda phase: current.set(f'{seed} {phase} {failures}')  # read after a crash
        note('build')
        signal.alarm(HANG_S)
        words, problem = run_one(lib, seed, note)
        failures += problem is not None
        if options.verbose:
            print(f'seed {seed}: {words}', flush=True)
        if problem:
            print(f'FAIL seed {seed}: {words}\n  {problem}', flush=True)
    signal.alarm(0)
    return failures


def run_all(options):
    """(pipelines that differ, crashes of Weir, crashes of TensorFlow). What a crash left is run by another process."""
    differ = crashes = refused = 0
    parts = [list(range(options.seed + k, options.seed + options.count, options.jobs)) for k in range(options.jobs)]
    while parts:
        places = [Current() for _ in parts]
        results = run_parts(len(parts), lambda k, _: run(options, parts[k], places[k]))
        left = []
        for seeds, place, result in zip(parts, places, results):
            differ += result or 0
            if result is None:
                seed, phase, before = place.get().split()
                differ += int(before)
                refused += phase == 'tensorflow'
                crashes += phase != 'tensorflow'
                print(f'seed {seed}: a crash or a hang, in {phase}', flush=True)
                left.append(seeds[seeds.index(int(seed)) + 1:])
        parts = [seeds for seeds in left if seeds]
    return differ, crashes, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    places = [os.path.join(HERE, '..', '..', 'build', preset, 'libweir.so') for preset in ('dev', 'release')]
    parser.add_argument('--lib', default=next((x for x in places if os.path.exists(x)), places[0]), help='libweir.so')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--verbose', action='store_true')
    options = parser.parse_args()
    np.seterr(all='ignore')
    differ, crashes, refused = run_all(options)
    print(f'{options.count} pipelines, {differ} differ, {crashes} crash, {refused} crash TensorFlow')
    return int(differ + crashes > 0)


if __name__ == '__main__':
    sys.exit(main())
