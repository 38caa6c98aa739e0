#!/usr/bin/env python3
"""Functions that call themselves and each other to a random depth, in Weir: values, failures at the bottom, deadlines and cancellations.

    random_recursion.py [--seed N] [--count N] [--minutes N] [--depth N] [--lib FILE]

What each gives follows from its functions; TensorFlow, which puts bodies in place of calls, does not come back from any. None may crash
or hang; a failure at the bottom comes back with its code and in few words, however deep it was.
"""
import argparse
import ctypes
import os
import random
import resource
import sys
import threading
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import libweir
import random_programs
from random_graph import BOOL, FLOAT, INT32, Function, Node, Program, Run, bool_, func, shape, tensor, text, type_, types

INVALID_ARGUMENT, CANCELLED, LATE, EXHAUSTED = 3, 1, 4, 8
LONGEST = 2000  # characters of a message
MEMORY = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
MOST_MEMORY = max(MEMORY // 8, 1 << 30)  # of a program without end: calls may have a part of the machine's

# What is done with a number on the way down or up: an op, its other input, and the same in Python.
STEPS = {'Add': ('AddV2', 1.0, lambda x: x + np.float32(1)), 'Halve': ('Mul', 0.5, lambda x: x * np.float32(0.5)), 'Neg': ('Neg', None, lambda x: -x)}
# What may be at the bottom: nodes from the argument x to a result, and the code it fails with; None: it does not.
BOTTOMS = {'x': None, 'check': INVALID_ARGUMENT, 'assert': INVALID_ARGUMENT, 'reshape': INVALID_ARGUMENT, 'gather': INVALID_ARGUMENT}


def constant(name, value):
    return Node(name, 'Const', [], {'dtype': type_(INT32 if isinstance(value, int) else FLOAT),
                                    'value': tensor('int32' if isinstance(value, int) else 'float32', [], [value])})


def bottom_nodes(kind):
    """Nodes of the deepest function and its result."""
    if kind == 'x':
        return [Node('out', 'Identity', ['x'], {'T': type_(FLOAT)})], 'out:output:0', []
    if kind == 'check':
        return [constant('zero', 0.0), Node('nan', 'Div', ['zero:output:0', 'zero:output:0'], {'T': type_(FLOAT)}),
                Node('out', 'CheckNumerics', ['nan:z:0'], {'T': type_(FLOAT), 'message': text('at the bottom')})], 'out:output:0', []
    if kind == 'assert':
        return [Node('false', 'Const', [], {'dtype': type_(BOOL), 'value': tensor('bool', [], [False])}),
                Node('fail', 'Assert', ['false:output:0', 'x'], {'T': types(FLOAT)}), Node('out', 'Identity', ['x', '^fail'], {'T': type_(FLOAT)})], 'out:output:0', ['fail']
    if kind == 'reshape':
        return [Node('three', 'Const', [], {'dtype': type_(INT32), 'value': tensor('int32', [1], [3])}),
                Node('out', 'Reshape', ['x', 'three:output:0'], {'T': type_(FLOAT), 'Tshape': type_(INT32)})], 'out:output:0', []
    return [Node('row', 'Const', [], {'dtype': type_(FLOAT), 'value': tensor('float32', [2], [1, 2])}), constant('far', 7), constant('axis', 0),
            Node('out', 'GatherV2', ['row:output:0', 'far:output:0', 'axis:output:0'], {'Tparams': type_(FLOAT), 'Tindices': type_(INT32), 'Taxis': type_(INT32)})], 'out:output:0', []


def step_nodes(name, source, kind):
    op, other, _ = STEPS[kind]
    nodes = [constant(name + '_by', other)] if other is not None else []
    inputs = [source] + ([name + '_by:output:0'] if other is not None else [])
    return nodes + [Node(name, op, inputs, {'T': type_(FLOAT)})], f'{name}:{"y" if op == "Neg" else "z"}:0'


class Drawn:
    """A program and what must come of it."""

    def __init__(self, seed, most):
        rng = random.Random(seed)
        self.rings = rng.randrange(1, 4)  # functions that call each other in turn
        self.down, self.up = ([rng.choice(sorted(STEPS)) for _ in range(self.rings)] for _ in range(2))
        self.calls = [rng.choice(('name', 'PartitionedCall', 'StatefulPartitionedCall')) for _ in range(self.rings)]
        self.bottom = rng.choice(sorted(BOTTOMS))
        self.is_endless = rng.random() < 0.2
        self.depth = int(np.exp(rng.uniform(0, np.log(most))))
        ends = (*['deadline', 'cancel'] * 4, None) if self.is_endless else ('deadline', 'cancel', *[None] * 6)
        self.end = rng.choice(ends)
        self.wait_s = rng.choice((0.01, 0.05, 0.2))
        self.start = rng.choice((0.0, 1.0, -2.0))
        self.threads = rng.choice((1, 2, 4))
        self.is_lowered = rng.random() < 0.5
        self.program = self.make()

    def make(self):
        program = Program()
        program.threads = self.threads
        nodes, result, controls = bottom_nodes(self.bottom)
        program.functions.append(Function('bottom', [('n', INT32), ('x', FLOAT)], [('r', FLOAT, result)], controls, nodes))
        for k in range(self.rings):
            program.functions += [self.further(k), self.choose(k)]
        program.nodes = [Node('n', 'Placeholder', [], {'dtype': type_(INT32), 'shape': shape(())}),
                         Node('x', 'Placeholder', [], {'dtype': type_(FLOAT), 'shape': shape(())}),
                         Node('y', 'PartitionedCall', ['n', 'x'], self.call_attrs('f0')), Node('z', 'Neg', ['y'], {'T': type_(FLOAT)})]
        program.runs = [Run(['z:0'], [], {'n:0': np.array(self.depth, np.int32), 'x:0': np.array(self.start, np.float32)})] * 2
        return program

    def call_attrs(self, name):
        return {'f': func(name), 'Tin': types(INT32, FLOAT), 'Tout': types(FLOAT)}

    def further(self, k):
        """One level down: something with the number, the next function, and something on the way back."""
        nodes, value = step_nodes('down', 'x', self.down[k])
        following, how = f'f{(k + 1) % self.rings}', self.calls[k]
        nodes += [constant('one', 1), Node('less', 'Sub', ['n', 'one:output:0'], {'T': type_(INT32)})]
        inputs = ['n' if self.is_endless else 'less:z:0', value]
        if how == 'name':
            nodes.append(Node('rest', following, inputs, {}))
        else:
            nodes.append(Node('rest', how, inputs, self.call_attrs(following)))
        more, result = step_nodes('up', 'rest:r:0' if how == 'name' else 'rest:output:0', self.up[k])
        return Function(f'further{k}', [('n', INT32), ('x', FLOAT)], [('r', FLOAT, result)], [], nodes + more)

    def choose(self, k):
        nodes = [constant('zero', 0), Node('end', 'LessEqual', ['n', 'zero:output:0'], {'T': type_(INT32)})]
        attrs = {'Tcond': type_(BOOL), 'Tin': types(INT32, FLOAT), 'Tout': types(FLOAT), 'then_branch': func('bottom'), 'else_branch': func(f'further{k}')}
        attrs |= {'_lower_using_switch_merge': bool_(True)} if self.is_lowered else {}
        nodes.append(Node('if', 'If', ['end:z:0', 'n', 'x'], attrs))
        return Function(f'f{k}', [('n', INT32), ('x', FLOAT)], [('r', FLOAT, 'if:output:0')], [], nodes)

    def wanted(self):
        """(codes that may come, value)."""
        codes = {BOTTOMS[self.bottom] or 0} if not self.is_endless else set()
        codes |= {EXHAUSTED} if self.is_endless or self.depth > 100000 else set()
        codes |= {'deadline': {LATE}, 'cancel': {CANCELLED}, None: set()}[self.end]
        value = np.float32(self.start)
        if not self.is_endless and not BOTTOMS[self.bottom]:
            levels = [i % self.rings for i in range(self.depth)]
            for k in levels:
                value = STEPS[self.down[k]][2](value)
            for k in reversed(levels):
                value = STEPS[self.up[k]][2](value)
        return codes, -value


def virtual_memory():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[0]) * os.sysconf('SC_PAGE_SIZE')


class Weir:
    def __init__(self, path):
        self.lib = libweir.Library(path)
        self.lib.c.weir_cancellation_create.restype = ctypes.c_void_p

    def run(self, drawn):
        """Outcomes of the steps: (code, message, value)."""
        graph = libweir.Graph(self.lib, drawn.program.encode(), threads=drawn.threads)
        try:
            return [self.step(graph, drawn, run) for run in drawn.program.runs]
        finally:
            graph.close()

    def step(self, graph, drawn, run):
        timer = None
        if drawn.end == 'cancel':
            timer = threading.Timer(drawn.wait_s, self.lib.c.weir_session_cancel, [graph.session])
            timer.start()
        try:
            values = graph.run([graph.edge(f) for f in run.fetches], run.feeds, run.targets, int(drawn.wait_s * 1000) if drawn.end == 'deadline' else 0)
            return 0, '', values[0]
        except libweir.Error as error:
            return error.code, error.message, None
        finally:
            if timer:
                timer.join()


class Worker:
    """What random_programs.py drives, a seed at a time."""

    def __init__(self, options, place, write):
        self.options, self.place, self.write = options, place, write
        self.weir = Weir(os.path.abspath(options.lib))
        if 'san' not in os.environ.get('LD_PRELOAD', ''):  # sanitizers map more than there is
            resource.setrlimit(resource.RLIMIT_AS, (virtual_memory() + 2 * MOST_MEMORY,) * 2)  # whatever happens, the machine has the rest

    def run(self, seed):
        self.place.set(seed, 'weir')
        drawn = Drawn(seed, self.options.depth)
        problem = self.problem(drawn)
        self.write({'seed': seed, 'failed': problem is not None, 'undetermined': 0, 'refused': 0, 'optimized': 0})
        if problem is not None:
            self.write({'seed': seed, 'report': f'---- seed {seed}: {problem}\n{describe(drawn)}'})

    def problem(self, drawn):
        codes, value = drawn.wanted()
        for i, (code, message, got) in enumerate(self.weir.run(drawn)):
            if code not in codes:
                return f'step {i}: code {code}, not {sorted(codes)}: {message[:300]}'
            if code and (not message or len(message) > LONGEST):
                return f'step {i}: a message of {len(message)} characters'
            if not code and not np.allclose(got, value, 1e-4, 1e-6, equal_nan=True):
                return f'step {i}: {got}, not {value}'
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        return f'{taken >> 20} MB were taken' if taken > MOST_MEMORY else None


def describe(drawn):
    known = {k: v for k, v in vars(drawn).items() if k != 'program'}
    return f'# {known}\n{drawn.program.show()}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    places = [os.path.join(HERE, '..', '..', 'build', preset, 'libweir.so') for preset in ('dev', 'release')]
    parser.add_argument('--lib', default=next((p for p in places if os.path.exists(p)), places[0]), help='libweir.so')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--minutes', type=float, help='stops after that')
    parser.add_argument('--jobs', type=int, default=1, help='processes')
    parser.add_argument('--depth', type=int, default=60000, help='the deepest')
    parser.add_argument('--shrink', type=float, default=1)
    parser.add_argument('--max-failures', type=int, default=2)
    options = parser.parse_args()
    options.worker = Worker
    start = time.monotonic()
    total = random_programs.watch(options)
    print(f'{total.programs} programs in {time.monotonic() - start:.0f} s; {total.failed} fail, {len(total.crashes)} crash')
    return int(bool(total.failed or total.crashes))


if __name__ == '__main__':
    sys.exit(main())
