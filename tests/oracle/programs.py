#!/usr/bin/env python3
"""Checks programs against TensorFlow: a graph and a sequence of steps on its state, in both.

    programs.py [--lib FILE] [--probe FILE] [--seed N | --fresh] [--rounds N] [--devices LIST [--place WHERE]] [--verbose] [names...]
    programs.py --record FILE [names...]     also writes the programs and TensorFlow's results
    programs.py --replay FILE [names...]     the same without TensorFlow

runs the programs of every programs_*.py beside this file, or of those named: "queue" is programs_queue.py, "fifo" is one program.
What one kernel call cannot show is here: variables, queues, tables, loops, functions, files. A program is a function

    @program(30)                                # so many cases, each with its own random numbers
    def counter(p):
        v = raw.VarHandleOp(dtype=tf.int32, shape=[])
        p.step(raw.AssignVariableOp(resource=v, value=p.rng.integers(9)))
        p.step(raw.ReadVariableOp(resource=v, dtype=tf.int32), more, tensors, or_operations)

that builds a graph with TensorFlow's client and says which steps to run. The GraphDef goes to TensorFlow's session and to
libweir; after every step the fetched values or the error code are compared. p.rng draws; p.hide(array) is a placeholder of
unknown shape that every step feeds, for values that shape functions shall not see; p.blocks(...) is a step that waits for ever
and must end with DEADLINE_EXCEEDED; p.write(name, data) makes a file in the folder the steps run in. Options of step: feeds, and
those of oracle.py's check. An op is counted in every distinct program whose steps reach it.
"""
import argparse
import collections
import glob
import hashlib
import importlib.util
import json
import os
import secrets
import sys
import tempfile
import time
import traceback
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
if __name__ == '__main__' and '--replay' in sys.argv:
    import program_run
    sys.exit(program_run.main())

import oracle  # sets TensorFlow's environment
import numpy as np
import tensorflow as tf

import libweir
import program_devices
import program_run
import record
from parts import run_parts
from program_run import BLOCK_MS, TIMEOUT_MS, Step, in_folder
from values import first_message

tf.get_logger().setLevel('ERROR')
tf1 = tf.compat.v1
CPUS, GUARDS = ['/device:CPU:0', '/device:CPU:1'], ['/device:GUARD:0', '/device:GUARD:1']


def as_fed(tensor, value):
    """In the tensor's type, as TensorFlow's session makes it."""
    array = oracle.to_array(value)
    return array if array.dtype == object else array.astype(tensor.dtype.as_numpy_dtype)


def program(count):
    """Marks a function of a programs_*.py as a program to draw |count| times."""
    def mark(function):
        function.count = count
        return function
    return mark


class Program:
    """A graph under construction, and the steps to run on it."""

    def __init__(self, name, number, seed):
        self.name, self.number = name, number
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        self.graph = tf.Graph()
        self.fed, self.steps, self.files = {}, [], {}
        self.captures = False  # whether what steps print is compared
        self.is_about_memory = False  # whether results depend on which values share memory
        self.is_spread = True  # whether further runs have its nodes on several devices
        self.threads, self.passes = int(self.rng.integers(1, 4)), bool(self.rng.integers(4))

    def hide(self, value):
        array = oracle.to_array(value)
        tensor = tf1.placeholder(tf.string if array.dtype == object else array.dtype, None)
        self.fed[tensor.name] = array
        return tensor

    def maybe_hide(self, value):
        """A constant or a placeholder."""
        return self.hide(value) if self.rng.integers(2) else tf.constant(value)

    def write(self, name, data):
        self.files[name] = data
        return name

    def step(self, *what, feeds=None, timeout_ms=TIMEOUT_MS, **options):
        flat = tf.nest.flatten(list(what))
        fetches = [x.name for x in flat if isinstance(x, tf.Tensor)]
        targets = [x.name for x in flat if isinstance(x, tf.Operation)]
        feeds = {t.name: as_fed(t, v) for t, v in (feeds or {}).items()}
        self.steps.append(Step(fetches, targets, feeds, timeout_ms, options))

    def blocks(self, *what, feeds=None):
        self.step(*what, feeds=feeds, timeout_ms=BLOCK_MS)

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    # ---- what is known when the graph is complete ----

    def finish(self):
        self.graph_def = self.graph.as_graph_def()
        for step in self.steps:
            step.feeds.update(self.fed)
        h = hashlib.sha1(self.graph_def.SerializeToString(deterministic=True))
        for step in self.steps:
            h.update(repr((step.fetches, step.targets)).encode())
            for name, array in sorted(step.feeds.items()):
                h.update(name.encode() + (repr(array.tolist()).encode() if array.dtype == object else array.tobytes()))
        self.fingerprint = h.hexdigest()

    def ops(self):
        """The ops that the steps reach."""
        todo = [self.graph.get_operation_by_name(n.split(':')[0]) for s in self.steps for n in s.fetches + s.targets]
        seen = set(todo)
        while todo:
            op = todo.pop()
            for other in [t.op for t in op.inputs] + list(op.control_inputs):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        names = {op.type for op in seen}
        names |= {node.op for f in self.graph_def.library.function for node in f.node_def}
        if any(s.feeds for s in self.steps) or any(f.signature.input_arg for f in self.graph_def.library.function):
            names.add('_Arg')
        if any(s.fetches for s in self.steps):
            names.add('_Retval')
        return names - {f.signature.name for f in self.graph_def.library.function}  # a function may be called by its name


def run_tensorflow(program, graph=None, target='', config=None):
    """Fills in what each step gave."""
    graph, config = graph or program.graph, config or oracle.session_config()
    config.operation_timeout_in_ms = TIMEOUT_MS
    with tf1.Session(target, graph=graph, config=config) as session:
        for step in program.steps:
            what = list(step.fetches) + [graph.get_operation_by_name(t) for t in step.targets]
            try:
                with program_run.captured(program.captures) as printed:
                    values = session.run(what, step.feeds, tf1.RunOptions(timeout_in_ms=step.timeout_ms))
                step.values = [oracle.as_array(v) for v in values[:len(step.fetches)]]
                step.code, step.message = 0, ''
            except tf.errors.OpError as error:
                step.values, step.code, step.message = [], error.error_code, first_message(error.message)[:200]
            step.printed = printed[0]


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [f for f in vars(module).values() if callable(f) and hasattr(f, 'count')]


def choose(names):
    files = {os.path.basename(f)[len('programs_'):-3]: f for f in sorted(glob.glob(os.path.join(HERE, 'programs_*.py')))}
    wanted = [f for name, path in files.items() for f in load(path)
              if not names or name in names or f.__name__ in names]
    if not wanted:
        raise SystemExit(f'neither a program nor a file of programs: {" ".join(names)}')
    return wanted


class Report:
    def __init__(self):
        self.rows, self.seen, self.failures, self.programs = collections.Counter(), {}, 0, 0
        self.failed_ops = collections.Counter()

    def add(self, ops, fingerprint, problem):
        self.programs += 1
        self.failures += problem is not None
        for op in ops:
            if fingerprint not in self.seen.setdefault(op, []):
                self.seen[op].append(fingerprint)
            self.rows[op] += 1
            self.failed_ops[op] += problem is not None


def run_one(options, lib, function, number, current, writer):
    """(ops, fingerprint, problem)."""
    name = f'{function.__name__}[{number}]'
    current.set(name)
    program = Program(function.__name__, number, options.seed)
    program.number %= function.count  # with --times the cases that are counted come again, drawn otherwise
    program.is_about_memory = function.__module__ == 'programs_alias'
    try:
        with program.graph.as_default():
            function(program)
    except Exception:  # pylint: disable=broad-except
        return [], name, f'{name}: the program itself is bad: {traceback.format_exc()}'
    program.finish()
    with in_folder(program.files):
        run_tensorflow(program)
    if writer:
        program_run.write_program(writer, program, name)
    with in_folder(program.files):
        problem = program_run.run_weir(lib, program.graph_def.SerializeToString(), program.steps, program.threads, program.passes,
                                       program.captures)
    if options.probe and not problem:
        run_again = program.graph_def.SerializeToString(), program.steps, program.threads, program.passes, program.captures, program.files
        problem = program_run.run_exhausted(options.exhausted, name, *run_again)
    for place in places(options, program) if not problem else []:
        with in_folder(program.files):
            current.set(f'{name} on {options.devices}, {place}')
            problem = program_run.run_weir(lib, spread(program).SerializeToString(), program.steps, program.threads,
                                           program.passes, program.captures, options.devices.encode(), place.encode())
        if problem:
            problem = f'on {options.devices}, {place}: {problem}'
            break
    if options.devices and program.is_about_memory and not problem:
        problem = run_placed(lib, program)
    return program.ops(), program.fingerprint, problem and f'{name}: {problem}'


# ---- several devices ----

def places(options, program):
    """Where the nodes of the program go that its further runs are of. What a variable's reader sees of later writes depends on
    where it is, so a program about that has its own: run_placed."""
    if not options.devices or program.is_about_memory or not program.is_spread:
        return []
    return [options.place] if options.place else ['/device:GUARD:0', f'random:{program.number}']


def run_placed(lib, program):
    """The program over two CPUs, and over CPUs and guards where its order leaves nothing open, in TensorFlow and in Weir."""
    for among in (CPUS, CPUS + GUARDS):
        devices = program_devices.draw_devices(program.graph, among, program.rng)
        if any(program_devices.find_open(program.graph, step, devices) for step in program.steps):
            continue
        names, target = (program_devices.Tasks.NAMES, program_devices.Tasks.target()) if among != CPUS else (None, '')
        graph = tf.Graph()
        with graph.as_default():
            there = {name: names[device] for name, device in devices.items()} if names else devices
            tf.import_graph_def(program_devices.with_devices(program.graph_def, there), name='')
        run_tensorflow(program, graph, target, program_devices.config())
        if any('is not unique' in step.message for step in program.steps):
            continue  # TensorFlow names a Recv like one of the nodes that it inlined
        placed = program_devices.with_devices(program.graph_def, devices).SerializeToString()
        problem = program_run.run_weir(lib, placed, program.steps, program.threads, program.passes, program.captures,
                                       b'cpu:2,guard:2')
        if problem:
            return f'on {sorted(set(devices.values()))}: {problem}'
    return None


def spread(program):
    """The graph, but what nodes share by name is on one device."""
    graph = tf1.GraphDef()
    graph.CopyFrom(program.graph_def)
    for node in graph.node:
        if node.attr['shared_name'].s if 'shared_name' in node.attr else b'':
            node.device = '/device:CPU:1'
    return graph


def run(options, functions, part, current):
    """Every |options.jobs|-th case from |part| on."""
    lib = libweir.Library(os.path.abspath(options.lib))
    options.exhausted = libweir.Library(os.path.abspath(options.probe)) if options.probe else None
    known = lib.ops()
    writer = record.Writer('programs', options.seed) if options.record else None
    results, printed = [], collections.Counter()
    cases = [(f, k) for f in functions for k in range(max(1, int(f.count * options.times)))]
    for function, number in cases[part::options.jobs]:
        start = time.time()
        ops, fingerprint, problem = run_one(options, lib, function, number, current, writer)
        missing = sorted(op for op in ops if op not in known)
        if problem and missing:
            problem += f'\n    not in this build: {" ".join(missing)}'
        if problem and printed[function] < options.max_failures:
            print('FAIL', problem, flush=True)
            printed[function] += 1
        if options.verbose:
            print(f'RUN {function.__name__}[{number}] {time.time() - start:.3f} s', flush=True)
        results.append([sorted(ops), fingerprint, problem])
    if writer:
        writer.save(os.path.abspath(options.record))
    return results


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    places = [os.path.join(HERE, '..', '..', 'build', preset, 'libweir.so') for preset in ('dev', 'release')]
    parser.add_argument('--lib', default=next((p for p in places if os.path.exists(p)), places[0]), help='libweir.so')
    parser.add_argument('--seed', type=int, default=oracle.SEED)
    parser.add_argument('--fresh', action='store_true', help='draw the seed')
    parser.add_argument('--rounds', type=int, default=1, help='each with the next seed')
    parser.add_argument('--times', type=float, default=1, help='so many times the usual number of cases')
    parser.add_argument('--devices', metavar='LIST', help='run each program on these devices, too: cpu:2,guard:2')
    parser.add_argument('--place', metavar='WHERE', help='where nodes go then; by default once all to a guard, once at random')
    parser.add_argument('--probe', metavar='FILE', help='libweir_probe.so: programs run with it as well, and allocations fail')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--max-failures', type=int, default=3, help='printed for each program')
    parser.add_argument('--verbose', action='store_true', help='print every case and its time')
    parser.add_argument('--record', metavar='FILE', help='write the programs and TensorFlow\'s results')
    parser.add_argument('--counts', metavar='FILE', help='write {op: [distinct cases, failures]} as JSON')
    parser.add_argument('names', nargs='*')
    return parser.parse_args()


def finish(report):
    print(f'{"op":40} {"programs":>8} {"distinct":>8} {"in failing ones":>15}')
    for op in sorted(report.rows):
        print(f'{op:40} {report.rows[op]:8} {len(report.seen[op]):8} {report.failed_ops[op]:15}')
    print(f'{len(report.rows)} ops, {report.programs} programs, {report.failures} failures', flush=True)
    return 1 if report.failures else 0


def main():
    sys.modules['programs'] = sys.modules[__name__]  # files of programs: from programs import program
    options = parse_arguments()
    functions = choose(options.names)
    if options.fresh:
        options.seed = secrets.randbits(31)
    if options.record:
        options.jobs = options.rounds = 1
    code = 0
    for options.seed in range(options.seed, options.seed + options.rounds):
        print(f'seed {options.seed}', flush=True)
        report = Report()
        for result in run_parts(options.jobs, lambda part, current: run(options, functions, part, current)):
            code |= result is None
            for row in result or []:
                report.add(*row)
        code |= finish(report)
    if options.counts:
        with open(options.counts, 'w') as f:
            json.dump({op: [len(report.seen[op]), report.failed_ops[op]] for op in report.rows}, f)
    return code


if __name__ == '__main__':
    sys.exit(main())
