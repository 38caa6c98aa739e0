#!/usr/bin/env python3
"""Small random graphs in Weir and in TensorFlow, drawn at the level of protos: values, shapes, codes, and whom messages name.

    random_protos.py [--seed N] [--count N] [--minutes N] [--jobs N] [--families NAME...] [--lib FILE]
    random_protos.py --script FILE         runs a printed graph again

Each seed is a graph of a family of proto_draw.py and some steps. Compared are inferred shapes, fetched values, codes, which nodes
messages name, and whether they say what TensorFlow's say; that they say it word by word is for programs_message.py. A graph that differs is made small and printed; a crash or a hang is
reported with its seed.
"""
import argparse
import ctypes
import os
import random
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import libweir
import proto_draw
import random_programs
import random_run
import random_shrink
import random_tensorflow
from messages import LEAST_SAID, bare, share_said
from random_graph import read_script
from random_run import Outcome

WAIT_MS = 300  # a step that blocks in both
HANDLES = (20, 107)  # resource, reference to a string: what TensorFlow says of their shape is not so
# Weir has kernels and ops that TensorFlow lacks or has removed.
MORE = re.compile('No OpKernel was registered|is not available in GraphDef version|(AddN of|ZerosLike) non-scalar')
# Differences that are known: Weir refuses what TensorFlow finds out later or never, or tells of another of two faults first.
KNOWN = re.compile('|'.join((
    "Shared conditional accumulator '\\w+' has another kind",  # TensorFlow takes the first, and may crash on gradients for it
    'BarrierInsertMany.*Shape mismatch in tuple component',  # when the value comes, not when its tuple is complete
    'a variant that is a Unheard cannot be read',  # UNIMPLEMENTED
    'Signature mismatch, have: ',  # of a gradient for an accumulator of another type
    'malformed Feature: varint is cut short',  # TensorFlow reads on beyond it
    'malformed Example: length runs past the end',  # of a field that nobody knows
    'Shape mismatch in tuple component [1-9]',  # of two that are wrong
    'No unary variant unary_op function found',
    'Received a shape scalar with unknown static value',
    'Shapes must be provided for all components',  # before a queue of that name is looked for
    'Determined shape must either match input shape',  # of a SplitV into one part
    'Tried to write to index .* but array is not resizeable',  # of a scatter
    'is both fed and fetched|n must be a scalar, not shape|Need data',  # of two faults
    'Expected begin.*when input.dim_size',  # of a dimension of nothing
    'need 0 <= index <.*Indices are not valid',  # Weir says which
    'index of slice .* exceeded limits',
    'Shape must be a vector, got \\[\\]|OOM when allocating',
    'Resource(Scatter|Gather).*(at least rank 1|must be at least 1-D|Could not find variable)|at least rank 1.*Resource(Scatter|Gather)',
    'does not say .(Shape must be|scalar but has rank)',  # of two ranks that are wrong
    'Expected at least one dimension, got',  # TensorFlow says a number that nobody wrote
    'does not index into param shape',  # of two indices that are wrong
    'All input tensors must have the same size in the 0th dimension',  # and not of the shape
    'Barrier .* is closed',  # also where no key is inserted
    'not OUT_OF_RANGE PriorityQueue .*insufficient elements.*queuedequeueupto',  # of a closed queue, which loses what it has
    'element shape .* is not fully defined. Currently only static shapes',  # Weir packs no elements, too
    'Expected a non-negative size, got',  # of an int32 that overflows; Weir counts on
    'split_dim must be a scalar but has rank',  # a Split into one part is no Split
    'Expected multiples argument to be a vector of length 0',  # a Tile of a scalar is no Tile
    'possibly because .segment_ids. input is not sorted')), re.S)
# Shape functions that know less than TensorFlow's.
LESS = ('TensorArrayReadV3', 'TensorArrayGatherV3', 'TensorListConcatV2', 'Tile')
LATE = random_tensorflow.DEADLINE_EXCEEDED


def unsaid(names, got, want):
    """The node that TensorFlow's message |want| names and Weir's does not."""
    return next((n for n in names if n in want and n not in got), None)


def is_refused(outcomes):
    return outcomes[0].message.startswith('import')


def is_less(got, want):
    """Whether shape |got| knows less than |want|, or something else."""
    if want is None:
        return False
    return got is None or len(got) != len(want) or any(w >= 0 and g != w for g, w in zip(got, want))


def fits(array, dims):
    return dims is None or len(dims) == array.ndim and all(d < 0 or d == n for d, n in zip(dims, array.shape))


def known(rank, dims):
    return None if rank < 0 else tuple(dims[:rank])


class TensorFlow:
    def __init__(self):
        self.lib = random_tensorflow.Library()

    def run(self, program, pool='one'):
        """(outcomes, shapes by node and output)."""
        lib, c = self.lib, self.lib.c
        try:
            session = random_tensorflow.Session(lib, program.encode())
        except random_tensorflow.Error as error:
            return [Outcome(error.code, 'import: ' + error.message, [])], {}
        try:
            found = {}
            for node in program.nodes:
                oper = session.node(node.name)
                for i in range(c.TF_OperationNumOutputs(ctypes.c_void_p(oper))):
                    output, dims = random_tensorflow.Output(oper, i), (ctypes.c_int64 * 16)()
                    rank = c.TF_GraphGetTensorNumDims(session.graph, output, lib.status)
                    if rank > 0:
                        c.TF_GraphGetTensorShape(session.graph, output, dims, rank, lib.status)
                    if c.TF_OperationOutputType(output) not in HANDLES:
                        found[node.name, i] = known(rank, dims)
            return self.steps(session, program, pool), found
        finally:
            session.close()

    def steps(self, session, program, pool):
        outcomes = []
        for run in program.runs:
            try:
                outcomes.append(Outcome(0, '', session.run(run, pool, WAIT_MS)))
            except random_tensorflow.Error as error:
                outcomes.append(Outcome(error.code, error.message, []))
            if outcomes[-1].code == LATE:
                break
        return outcomes


class Weir:
    def __init__(self, path):
        self.lib = libweir.Library(path)

    def run(self, program):
        try:
            graph = libweir.Graph(self.lib, program.encode())
        except libweir.Error as error:
            return [Outcome(error.code, 'import: ' + error.message, [])], {}
        try:
            found = {}
            for node in program.nodes:
                real = graph.node(node.name)
                for i in range(self.lib.c.weir_node_output_count(ctypes.c_void_p(real))):
                    dims = (ctypes.c_int64 * 16)()
                    found[node.name, i] = known(self.lib.c.weir_edge_dims(libweir.Edge(real, i), dims, 16), dims)
            return self.steps(graph, program), found
        finally:
            graph.close()

    def steps(self, graph, program):
        outcomes = []
        for run in program.runs:
            try:
                outcomes.append(Outcome(0, '', graph.run([graph.edge(f) for f in run.fetches], run.feeds, run.targets, WAIT_MS)))
            except libweir.Error as error:
                outcomes.append(Outcome(error.code, error.message, []))
            if outcomes[-1].code == LATE:
                break
        return outcomes


class Worker:
    """What random_programs.py drives, a seed at a time."""

    def __init__(self, options, place, write):
        self.options, self.place, self.write = options, place, write
        self.tensorflow, self.weir = TensorFlow(), Weir(os.path.abspath(options.lib))
        self.undetermined = 0

    def run(self, seed):
        self.place.set(seed, 'generate')
        program, _ = proto_draw.draw(random.Random(seed), self.options.families)
        before = self.undetermined
        problem = self.problem(program, seed)
        self.write({'seed': seed, 'failed': problem is not None, 'undetermined': self.undetermined - before, 'refused': 0, 'optimized': 0})
        if problem is not None:
            self.write({'seed': seed, 'report': self.report(seed, program, problem)})

    def problem(self, program, seed, phase=''):
        """None, or (kind, text, outcomes of Weir, of TensorFlow)."""
        self.place.set(seed, phase + 'tensorflow')
        want, want_shapes = self.tensorflow.run(program)
        self.place.set(seed, phase + 'weir')
        got, got_shapes = self.weir.run(program)
        found = self.difference(program, got, want, got_shapes, want_shapes)
        if found is None or KNOWN.search(found[1]):
            return None
        for pool in ('four', 'caller'):
            self.place.set(seed, phase + 'tensorflow again')
            again, _ = self.tensorflow.run(program, pool)
            if self.difference(program, again, want, want_shapes, want_shapes):
                self.undetermined += 1
                return None
        return (*found, got, want)

    def difference(self, program, got, want, got_shapes, want_shapes):
        """None, or what differs: a kind and a text."""
        is_early, is_early_there = is_refused(got), is_refused(want)
        if is_early != is_early_there:  # one may look at a node when the graph is read, the other when it runs
            early, late = (got, want) if is_early else (want, got)
            # What Weir refuses at once need not run into the same fault there first.
            is_same = any(o.code == early[0].code or is_early and o.code for o in late) or any(MORE.search(o.message) for o in want)
            return None if is_same else (('import', early[0].code), f'{got[0].show()}, not {want[0].show()}')
        for i, outcome in enumerate(want):
            if i >= len(got):
                return ('steps', i), f'step {i}: none, not {outcome.show()}'
            if MORE.search(outcome.message):
                break
            feeds = program.runs[i].feeds
            if 'Cannot feed value of shape' in got[i].message and not all(
                    fits(a, want_shapes[n.split(':')[0], 0]) for n, a in feeds.items()):
                break  # as TensorFlow's Python says, its C library does not
            if outcome.code != got[i].code:
                return ('code', got[i].code, outcome.code), f'step {i}: {got[i].show()}, not {outcome.show()}'
            text = random_run.differs(got[i], outcome, program.runs[i].fetches)
            if text:
                return ('value',), f'step {i}: {text}'
            if outcome.code not in (0, LATE):
                missing = unsaid([n.name for n in program.nodes], got[i].message, bare(outcome.message))
                if missing:
                    return ('says',), f'step {i} does not say {missing!r}: {got[i].show()}, not {outcome.show()}'
                # Of what a shape function finds, TensorFlow repeats the node.
                if not is_early and share_said(got[i].message, bare(outcome.message)) < LEAST_SAID:
                    return ('text',), f'step {i} says something else: {got[i].show()}, not {outcome.show()}'
        for key in want_shapes:
            is_known = next(n.op for n in program.nodes if n.name == key[0]) in LESS
            if key in got_shapes and not is_known and is_less(got_shapes[key], want_shapes[key]):
                return ('shape',), f'{key[0]}:{key[1]} has shape {got_shapes[key]}, not {want_shapes[key]}'
        return None

    def report(self, seed, program, problem):
        def fails(candidate):
            found = self.problem(candidate, seed, 'shrink ')
            return found is not None and found[0] == problem[0]
        small = random_shrink.shrink(program, fails, None, self.options.shrink)
        self.place.set(seed, 'shrink')
        problem = self.problem(small, seed, 'shrink ') or problem
        return '\n'.join([f'---- seed {seed}: {problem[1]}', small.show().rstrip()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    places = [os.path.join(HERE, '..', '..', 'build', preset, 'libweir.so') for preset in ('dev', 'release')]
    parser.add_argument('--lib', default=next((p for p in places if os.path.exists(p)), places[0]), help='libweir.so')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=1000)
    parser.add_argument('--minutes', type=float, help='stops after that')
    parser.add_argument('--jobs', type=int, default=1, help='processes')
    parser.add_argument('--families', nargs='*', choices=sorted(proto_draw.FAMILIES))
    parser.add_argument('--shrink', type=float, default=10, help='seconds for each failure')
    parser.add_argument('--max-failures', type=int, default=2, help='printed of those with the same ops')
    parser.add_argument('--script', metavar='FILE')
    options = parser.parse_args()
    options.worker = Worker
    if options.script:
        with open(options.script) as f:
            problem = Worker(options, random_programs.Place(), print).problem(read_script(f.read()), 0)
        print(problem[1] if problem else 'no difference')
        return int(problem is not None)
    start = time.monotonic()
    total = random_programs.watch(options)
    print(f'{total.programs} graphs in {time.monotonic() - start:.0f} s; {total.failed} differ, {len(total.crashes)} crash, '
          f'{total.undetermined} undetermined, {total.refused} end TensorFlow')
    return int(bool(total.failed or total.crashes))


if __name__ == '__main__':
    sys.exit(main())
