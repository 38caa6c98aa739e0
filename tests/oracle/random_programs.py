#!/usr/bin/env python3
"""Random programs in Weir and in TensorFlow: order, aliases, dead values, failing steps, and all of them together.

    random_programs.py [--seed N] [--count N] [--minutes N] [--jobs N] [--mode process|grpc|tasks] [--lib FILE]
    random_programs.py --script FILE         runs a printed program again

Each seed is a program: see random_generate.py for what it is made of, random_run.py for what is compared. A program that Weir
runs otherwise is made small by random_shrink.py and printed with what both gave. A crash or a hang is reported with its seed.
"""
import argparse
import ctypes
import importlib
import json
import mmap
import os
import re
import resource
import signal
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import libweir
import random_generate
import random_run
import random_servers
import random_shrink
import random_tensorflow
from random_graph import read_script
from values import read_fields

HANG_S = 25  # longer than any time limit of a run
START_S = 180  # TensorFlow's Python takes its time


def output_names(tensorflow):
    """A function that names output |index| of a node as functions do."""
    get = tensorflow.c.TF_GetAllOpList
    get.restype = ctypes.POINTER(random_tensorflow.Buffer)
    buffer = get().contents
    data = ctypes.string_at(ctypes.cast(ctypes.byref(buffer), ctypes.POINTER(ctypes.c_void_p))[0], buffer.length)
    ops = {}
    for _, op in read_fields(data):
        name = op[2:2 + op[1]].decode() if op[1] < 128 else ''
        ops[name] = op
    known = {}

    def outputs(op):
        if op not in known:
            args = [dict(read_fields(v)) for k, v in read_fields(ops[op]) if k == 3] if op in ops else []
            known[op] = [(a[1].decode(), a.get(5, b'').decode(), a.get(6, b'').decode()) for a in args]
        return known[op]

    def name(node, index):
        if node.op not in ops:
            return f'out{index}:0'  # a function called by its name
        for output, number, listed in outputs(node.op):
            count = node.attrs[number][1] if number else len(node.attrs[listed][1]) if listed else 1
            if index < count:
                return f'{output}:{index}'
            index -= count
        raise ValueError(f'{node.op} has no output {index}')
    return name


# ---- a worker ----

class Place:
    """What a worker is at, readable by its parent after a crash."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 4096)

    def set(self, seed, phase):
        self.memory[:8 + 8 + 32] = struct.pack('<dq32s', time.time(), seed, phase.encode()[:32])

    def get(self):
        when, seed, phase = struct.unpack('<dq32s', self.memory[:48])
        return when, seed, phase.rstrip(b'\0').decode()


class Worker:
    def __init__(self, options, place, write):
        self.options, self.place, self.write = options, place, write
        self.tensorflow = random_tensorflow.Library()
        self.names = output_names(self.tensorflow)
        self.gradients = importlib.import_module('random_gradients') if options.gradients else None
        spread = random_servers.TensorFlowServers() if options.mode == 'tasks' else None
        self.judge = random_run.Judge(self.tensorflow, self.runner(), spread)

    def runner(self):
        """What runs a program in Weir."""
        if self.options.mode == 'process':
            weir = libweir.Library(os.path.abspath(self.options.lib))
            return lambda *what: random_run.run_weir(weir, self.options.devices, *what)
        weir = os.path.join(os.path.dirname(os.path.abspath(self.options.lib)), 'cli', 'weir')
        servers = random_servers.Servers(weir, 2 if self.options.mode == 'tasks' else 1)
        return lambda *what: servers.run(self.tensorflow, *what)

    def draw(self, seed):
        kinds = {'both': ('ref', 'resource'), 'ref': ('ref',), 'resource': ('resource',)}[self.options.variables]
        if self.gradients:
            program = self.gradients.draw(seed, kinds)
        else:
            program = random_generate.draw(seed, self.names, kinds, self.options.without, self.options.calm)
        if self.options.disabled is not None:
            program.disabled = self.options.disabled
        return program

    def run(self, seed):
        self.place.set(seed, 'generate')
        program = self.draw(seed)
        before = self.judge.counts()
        problem = self.judge.problem(program, lambda phase: self.place.set(seed, phase))
        if problem is not None and self.options.ignore and re.search(self.options.ignore, problem[1], re.S):
            problem, self.judge.refused = None, self.judge.refused + 1
        after = self.judge.counts()
        self.write({'seed': seed, 'failed': problem is not None, **{k: after[k] - before[k] for k in after}})
        if problem is not None and self.options.shrink:
            self.place.set(seed, 'shrink')
            self.write({'seed': seed, 'report': self.report(seed, program, problem)})

    def report(self, seed, program, problem):
        """The program made small, as a script, and what both give; None when it turns out not to be determined."""
        kind = random_run.kind_of(problem)
        if kind[0] == random_tensorflow.DEADLINE_EXCEEDED:
            self.judge.patience_ms = 500 if self.options.mode == 'process' else 2000

        def say(phase):
            self.place.set(seed, f'shrink {phase}')

        def fails(candidate):
            return random_run.kind_of(self.judge.problem(candidate, say, repeats=6)) == kind
        small = random_shrink.shrink(program, fails, self.value_of, self.options.shrink)
        self.place.set(seed, 'shrink')
        self.judge.patience_ms = random_run.TIMEOUT_MS
        problem = self.judge.problem(small, say, repeats=40)
        if problem is None:
            problem = self.judge.problem(program, say, repeats=60)
            small = program
        return problem and describe(seed, small, problem)

    def value_of(self, program, name):
        other = program.copy()
        self.place.set(0, 'value tensorflow')
        other.runs[-1].fetches, other.runs[-1].targets = [name + ':0'], []
        last = random_run.run_session(self.tensorflow, other, other.encode(devices=False), timeout_ms=3000)[-1]
        return last.values[0] if last.values else None


def describe(seed, program, problem):
    at, text, got, want = problem
    lines = [f'---- seed {seed}: {text}', program.show().rstrip()]
    for i, run in enumerate(program.runs):
        mark = ' <--' if i == at else ''
        lines.append(f'# run {i}: tensorflow {want[i].show()}' + (f'   weir {got[i].show()}' if i < len(got) else '') + mark)
    return '\n'.join(lines)


# ---- the parent ----

class Child:
    """A process that runs every |jobs|-th seed from |first| on."""

    def __init__(self, options, first, step, last):
        self.first, self.step, self.last = first, step, last
        self.place = Place()
        self.place.set(first, 'start')
        reader, writer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            child_main(options, self, writer)
        os.close(writer)
        self.pipe, self.rest = reader, b''

    def is_stuck(self):
        since, _, phase = self.place.get()
        return time.time() - since > (START_S if phase == 'start' else HANG_S)

    def lines(self):
        """What it wrote; None at its end."""
        data = os.read(self.pipe, 1 << 16)
        if not data:
            return None
        *whole, self.rest = (self.rest + data).split(b'\n')
        return [json.loads(line) for line in whole]


def child_main(options, child, writer):
    code = 3
    try:
        def write(message):
            os.write(writer, json.dumps(message).encode() + b'\n')
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with the parent: PR_SET_PDEATHSIG
        worker = options.worker(options, child.place, write)
        for seed in range(child.first, child.last, child.step):
            worker.run(seed)
        code = 0
    except BaseException:  # pylint: disable=broad-except
        import traceback
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class Total:
    def __init__(self):
        self.programs = self.undetermined = self.refused = self.optimized = self.failed = 0
        self.shown = {}
        self.crashes = []

    def add(self, message, options):
        if 'report' in message:
            if message['report'] is None:
                self.failed -= 1
                self.undetermined += 1
            else:
                self.show(message['report'], options)
            return
        self.programs += 1
        self.undetermined += message['undetermined']
        self.refused += message['refused']
        self.optimized += message['optimized']
        self.failed += message['failed']
        if message['failed'] and not options.shrink:
            print(f'FAIL seed {message["seed"]}', flush=True)

    def show(self, report, options):
        """The first few of those with the same ops."""
        key = tuple(sorted(line.split("'")[3] for line in report.splitlines() if line.lstrip().startswith('node(')))
        self.shown[key] = self.shown.get(key, 0) + 1
        if self.shown[key] <= options.max_failures:
            print(report, flush=True)


def watch(options):
    import select
    total, end = Total(), time.monotonic() + options.minutes * 60 if options.minutes else None
    last = options.seed + options.count
    children = [Child(options, options.seed + k, options.jobs, last) for k in range(options.jobs)]
    while children:
        ready, _, _ = select.select([c.pipe for c in children], [], [], 1)
        for child in list(children):
            if child.pipe in ready:
                messages = child.lines()
                if messages is None:
                    children.remove(child)
                    children += ended(options, child, total)
                for message in messages or []:
                    total.add(message, options)
            elif child.is_stuck():
                os.kill(child.pid, signal.SIGKILL)
        if end and time.monotonic() > end:
            for child in children:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
            break
    return total


def ended(options, child, total):
    """Children to go on with after one that ended."""
    _, status = os.waitpid(child.pid, 0)
    os.close(child.pipe)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return []
    _, seed, phase = child.place.get()
    what = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f'exit {os.WEXITSTATUS(status)}'
    if 'tensorflow' in phase:  # where TensorFlow waits for ever or crashes there is nothing to compare
        total.refused += not phase.startswith('shrink')
        print(f'seed {seed}: TensorFlow ended by {what} in {phase}', flush=True)
    else:
        print(f'CRASH seed {seed}: {what} in {phase}', flush=True)
        total.crashes.append((seed, phase))
    following = seed + child.step
    return [Child(options, following, child.step, child.last)] if following < child.last and phase != 'start' else []


def run_script(options):
    with open(options.script) as f:
        program = read_script(f.read())
    worker = Worker(options, Place(), print)
    problem = worker.judge.problem(program, repeats=40)
    print(worker.report(0, program, problem) if problem else f'no difference; {worker.judge.undetermined} undetermined, '
          f'{worker.judge.refused} refused')
    return int(problem is not None)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    places = [os.path.join(HERE, '..', '..', 'build', preset, 'libweir.so') for preset in ('dev', 'release')]
    parser.add_argument('--lib', default=next((p for p in places if os.path.exists(p)), places[0]), help='libweir.so')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=1000)
    parser.add_argument('--minutes', type=float, help='stops after that')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--mode', choices=('process', 'grpc', 'tasks'), default='process')
    parser.add_argument('--devices', metavar='LIST', help='of the process, over which nodes are spread at random: cpu:2,guard:2')
    parser.add_argument('--variables', choices=('both', 'ref', 'resource'), default='both')
    parser.add_argument('--calm', action='store_true', help='no constants outside their branch, no Merge of what may be alive twice')
    parser.add_argument('--without', nargs='*', default=(), help='actions to leave out')
    parser.add_argument('--disabled', metavar='PASSES', help='of Weir, for all programs; "": none')
    parser.add_argument('--ignore', metavar='REGEX', help='differences that are known')
    parser.add_argument('--gradients', action='store_true', help="programs of TensorFlow's client instead; ten times as slow")
    parser.add_argument('--shrink', type=float, default=30, help='seconds for each failure; 0: prints the seed alone')
    parser.add_argument('--max-failures', type=int, default=2, help='printed of those with the same ops')
    parser.add_argument('--script', metavar='FILE')
    return parser.parse_args()


def main():
    options = parse_arguments()
    options.worker = Worker
    if options.script:
        return run_script(options)
    start = time.monotonic()
    total = watch(options)
    seconds, used = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = used.ru_utime + used.ru_stime
    print(f'{total.programs} programs, {total.programs / seconds:.1f} a second, {total.programs / busy:.1f} a second of CPU; {total.failed} differ, {len(total.crashes)} crash, '
          f'{total.undetermined} undetermined, {total.optimized} as TensorFlow with its optimizer, {total.refused} refused by it')
    return int(bool(total.failed or total.crashes))


if __name__ == '__main__':
    sys.exit(main())
