#!/usr/bin/env python3
"""Random tf.data pipelines in Weir and in TensorFlow, element by element: values, types, shapes, errors, the end.

    random_pipelines.py [--seed N] [--count N] [--jobs N] [--lib FILE] [--saves | --graphs] [--verbose]

Each seed is a pipeline: a source, up to six transformations of it, an iterator. TensorFlow's client builds the graph; its session
and libweir run the initialiser and ask for elements until after the end, going on after errors. pipeline_steps.py has the sources
and transformations. A pipeline that differs is printed with its seed: --seed N --count 1 runs it again.

With --saves, Weir saves the iterator's state twice on the way, and goes on with an iterator that was restored from it; TensorFlow
does not, and must give the same.

With --graphs, both make a GraphDef of the dataset (DatasetToGraphV2), and each makes a dataset of both (DatasetFromGraph): all
four must give the elements that TensorFlow gives of the dataset itself.
"""
import argparse
import copy
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


class Saves:
    """Iterators that take over from one another, and the steps that let them."""

    def __init__(self, p, dataset, words, seed):
        rng = np.random.default_rng([seed, 1])
        self.iterators = [tf1.data.make_initializable_iterator(dataset) for _ in range(3)]
        self.elements = [[t.name for t in tf.nest.flatten(i.get_next(), expand_composites=True)] for i in self.iterators]
        self.places = sorted(int(k) for k in rng.integers(0, rng.integers(1, ELEMENTS), 2))
        pairs = list(zip(self.iterators, self.iterators[1:]))
        # Datasets among the elements, which windows are, go into no checkpoint.
        in_memory = 'window' in ' '.join(words) or rng.integers(2)
        self.steps = [(self.hand_over if in_memory else self.hand_over_by_file)(*pair) for pair in pairs]

    @staticmethod
    def hand_over(old, new):
        state = tf.raw_ops.SerializeIterator(resource_handle=old._iterator_resource, external_state_policy=1)
        return [[new.initializer], [tf.raw_ops.DeserializeIterator(resource_handle=new._iterator_resource, serialized=state)]]

    @staticmethod
    def hand_over_by_file(old, new):
        state = tf.raw_ops.SerializeIterator(resource_handle=old._iterator_resource, external_state_policy=1)
        where = dict(prefix='state', tensor_names=['iterator'], shape_and_slices=[''])
        read = tf.raw_ops.RestoreV2(dtypes=[tf.variant], **where)
        return [[new.initializer], [tf.raw_ops.SaveV2(tensors=[state], **where)],
                [tf.raw_ops.DeserializeIterator(resource_handle=new._iterator_resource, serialized=read[0])]]

    def insert(self, steps):
        """|steps| as Weir takes them: behind each place elements are the next iterator's."""
        first = next(i for i, s in enumerate(steps) if s.fetches == self.elements[0])
        made, turn = [], 0
        for i, step in enumerate(steps):
            while turn < 2 and i - first == self.places[turn]:
                for targets in self.steps[turn]:
                    made.append(program_run.Step([], [t.name for t in targets], steps[0].feeds, step.timeout_ms, {}))
                turn += 1
            made.append(copy.copy(step))
            if step.fetches == self.elements[0]:
                made[-1].fetches = self.elements[turn]
        return made


class Graphs:
    """The dataset as a GraphDef, and an iterator over what is made of one."""

    def __init__(self, p, dataset):
        self.made = tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor, external_state_policy=1)
        self.given = tf1.placeholder(tf.string, [])
        loaded = tf.raw_ops.DatasetFromGraph(graph_def=self.given)
        iterator = tf1.data.make_initializable_iterator(tf.data.experimental.from_variant(loaded, dataset.element_spec))
        self.start = iterator.initializer.name
        self.elements = [t.name for t in tf.nest.flatten(iterator.get_next(), expand_composites=True)]
        self.count = len(p.steps)  # of steps that make what functions capture

    def makers(self, steps):
        """Steps that make the GraphDef."""
        last = program_run.Step([self.made.name], [], steps[-1].feeds, program_run.TIMEOUT_MS, {})
        return [copy.copy(s) for s in steps[:self.count]] + [last]

    def loaders(self, steps, graph):
        """|steps|, which start an iterator and ask for elements, over what |graph| makes."""
        made = [copy.copy(s) for s in steps]
        for step in made[self.count:]:
            step.feeds = {**step.feeds, self.given.name: np.array(graph, object)}
            step.fetches, step.targets = (self.elements, []) if step.fetches else ([], [self.start])
        return made


def draw(p):
    """(a dataset, what else it needs, words) drawn into the program |p|."""
    words = []
    context = pipeline_steps.Context(p)
    dataset = pipeline_steps.draw_source(context, words)
    for _ in range(int(p.rng.integers(0, DEPTH + 1))):
        dataset = pipeline_steps.draw_step(context, dataset, words)
    context.initialize()
    return dataset, context, words


def build_graphs(p):
    """Draws a pipeline; returns what it is, in words, and its graphs."""
    dataset, _, words = draw(p)
    graphs = Graphs(p, dataset)
    iterator = tf1.data.make_initializable_iterator(dataset)
    p.step(iterator.initializer)
    element = tf.nest.flatten(iterator.get_next(), expand_composites=True)
    for _ in range(ELEMENTS):
        p.step(*element)
    return ' . '.join(words), graphs


def build(p, seed=None):
    """Draws a pipeline into the program |p|; returns what it is, in words, and with |seed| its saves."""
    dataset, context, words = draw(p)
    cardinality = tf.raw_ops.DatasetCardinality(input_dataset=dataset._variant_tensor)
    if seed is not None:
        saves = Saves(p, dataset, words, seed)
        p.step(saves.iterators[0].initializer)
        for _ in range(ELEMENTS):
            p.step(*(p.graph.get_tensor_by_name(name) for name in saves.elements[0]))
        return ' . '.join(words), saves
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
    return ' . '.join(words), None


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


def run_made(p, steps):
    """Runs other |steps| than the program's in TensorFlow; returns them."""
    other = copy.copy(p)
    other.steps = steps
    with program_run.in_folder(p.files):
        programs.run_tensorflow(other)
    return other.steps


def graph_of_weir(lib, p, steps):
    """The GraphDef that the last of |steps| gives."""
    graph = libweir.Graph(lib, p.graph_def.SerializeToString(), threads=p.threads, passes=p.passes)
    try:
        with program_run.in_folder(p.files):
            for step in steps:
                values = graph.run([graph.edge(n) for n in step.fetches], step.feeds, step.targets, step.timeout_ms)
        return values[0].item()
    finally:
        graph.close()


def compare_graphs(lib, p, graphs, note):
    """None, or what differs between the program's steps and those over datasets that were graphs in between."""
    steps = trim(p.steps)
    note('tensorflow')
    theirs = run_made(p, graphs.makers(steps))[-1]
    note('weir')
    try:
        ours = graph_of_weir(lib, p, graphs.makers(steps))
    except libweir.Error as error:
        same = error.code == theirs.code
        return None if same else f'{error}, not {theirs.code} {theirs.message}'
    if theirs.code:
        return f'no error of {theirs.code} {theirs.message}'
    note('tensorflow')
    for step, want in zip(run_made(p, graphs.loaders(steps, ours)), steps):
        problem = program_run.compare_step(want, step.code, step.message, step.values, '')
        if problem:
            return f'TensorFlow, of the graph by Weir: {problem}'
    note('weir')
    for name, graph in ('TensorFlow', theirs.values[0].item()), ('Weir', ours):
        with program_run.in_folder(p.files):
            problem = program_run.run_weir(lib, p.graph_def.SerializeToString(), graphs.loaders(steps, graph), p.threads, p.passes,
                                           False)
        if problem:
            return f'Weir, of the graph by {name}: {problem}'
    return None


def run_graphs(lib, seed, note):
    """(words, problem) of a pipeline that becomes a graph on the way."""
    p = programs.Program('pipeline', seed, 0)
    words = ''
    try:
        with p.graph.as_default():
            tf1.set_random_seed(seed)
            words, graphs = build_graphs(p)
    except Exception:  # pylint: disable=broad-except
        return words, f'the pipeline itself is bad: {traceback.format_exc()}'
    p.finish()
    note('tensorflow')
    with program_run.in_folder(p.files):
        programs.run_tensorflow(p)
    is_made = not any(s.code for s in p.steps if not s.fetches)
    return words, compare_graphs(lib, p, graphs, note) if is_made and not is_mistaken(words, p.steps) else None


def run_one(lib, seed, has_saves, note):
    """(words, problem). note(phase) says what it is at."""
    p = programs.Program('pipeline', seed, 0)
    words = ''
    try:
        with p.graph.as_default():
            tf1.set_random_seed(seed)
            words, saves = build(p, seed if has_saves else None)
    except Exception:  # pylint: disable=broad-except
        return words, f'the pipeline itself is bad: {traceback.format_exc()}'
    p.finish()
    note('tensorflow')
    with program_run.in_folder(p.files):
        programs.run_tensorflow(p)
    if is_mistaken(words, p.steps):
        return words, None
    note('weir')
    steps = trim(p.steps)
    if saves and not any(s.code for s in p.steps if not s.fetches):
        words += f' | saved at {saves.places}'
        steps = saves.insert(steps)
    with program_run.in_folder(p.files):
        problem = program_run.run_weir(lib, p.graph_def.SerializeToString(), steps, p.threads, p.passes, False)
    return words, problem


def run(options, seeds, current):
    lib = libweir.Library(os.path.abspath(options.lib))
    failures = 0
    for seed in seeds:
        note = lambda phase: current.set(f'{seed} {phase} {failures}')  # read after a crash
        note('build')
        signal.alarm(HANG_S)
        words, problem = run_graphs(lib, seed, note) if options.graphs else run_one(lib, seed, options.saves, note)
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
    parser.add_argument('--saves', action='store_true', help='save and restore on the way')
    parser.add_argument('--graphs', action='store_true', help='make graphs of datasets, and datasets of those')
    parser.add_argument('--verbose', action='store_true')
    options = parser.parse_args()
    np.seterr(all='ignore')
    differ, crashes, refused = run_all(options)
    print(f'{options.count} pipelines, {differ} differ, {crashes} crash, {refused} crash TensorFlow')
    return int(differ + crashes > 0)


if __name__ == '__main__':
    sys.exit(main())
