"""The half of programs.py that needs no TensorFlow: runs a program in Weir, compares every step, reads and writes records."""
import argparse
import contextlib
import os
import random
import sys
import tempfile

import libweir
import record
from parts import run_parts
from replay import is_unreported, print_rows
from values import code_name, compare_values

TIMEOUT_MS = 20000  # of a step that shall end by itself
BLOCK_MS = 30       # of one that shall not
DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = 4, 8
EXHAUSTED = (20, 60, 150, 150, 400, 400, 1000, 1000)  # below each of these an allocation is drawn to fail
UNREPORTED = 'an error that a GPU does not report; what follows is another program'


class Step:
    def __init__(self, fetches, targets, feeds, timeout_ms, options):
        self.fetches, self.targets, self.feeds = fetches, targets, feeds  # names, names, {name: array}
        self.timeout_ms, self.options = timeout_ms, options
        self.gradients = []  # arguments of Graph.derive(): what is added before the step
        self.code, self.message, self.values, self.printed = 0, '', [], ''  # what TensorFlow gave


@contextlib.contextmanager
def in_folder(files):
    """Runs in a fresh folder that holds |files|: programs name files relative to it."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, data in files.items():
                os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
                with open(name, 'wb') as f:
                    f.write(data)
            yield
        finally:
            os.chdir(before)


@contextlib.contextmanager
def captured(wanted):
    """Gives a list that holds, afterwards, what was written to the standard error; [''] when not |wanted|."""
    text = ['']
    if not wanted:
        yield text
        return
    saved = os.dup(2)
    with tempfile.TemporaryFile() as f:
        os.dup2(f.fileno(), 2)
        try:
            yield text
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            f.seek(0)
            text[0] = f.read().decode(errors='replace')


def compare_step(step, code, message, values, printed):
    """None, or what differs from what TensorFlow gave."""
    if step.options.get('tf_only_fails') and step.code:
        return None
    if step.timeout_ms == BLOCK_MS and step.code != DEADLINE_EXCEEDED:
        return f'does not block in TensorFlow: {code_name(step.code)} {step.message}'
    if code != step.code:
        return f'{code_name(code)}, not {code_name(step.code)}\n      tensorflow: {step.message}\n      weir:       {message}'
    says = step.options.get('says')
    if says and not (says in message and says in step.message):
        return f'does not say {says!r}\n      tensorflow: {step.message}\n      weir:       {message}'
    for name, got, want in zip(step.fetches, values, step.values):
        problem = compare_values(got, want, step.options)
        if problem:
            return f'{name}: {problem}'
    return f'printed {printed!r}, not {step.printed!r}' if printed != step.printed else None


def run_weir(lib, graph_def, steps, threads, passes, captures, devices=None, place=None):
    """None, or what is wrong."""
    try:
        graph = libweir.Graph(lib, graph_def, threads=threads, passes=passes, devices=devices, place=place)
    except libweir.Error as error:
        return f'import: {error}'
    try:
        for i, step in enumerate(steps):
            code, message, values = 0, '', []
            try:
                for names in step.gradients:
                    graph.derive(*names)
                with captured(captures) as printed:
                    values = graph.run([graph.edge(n) for n in step.fetches], step.feeds, step.targets, step.timeout_ms)
            except libweir.Error as error:
                code, message = error.code, error.message
            if is_unreported(devices, step.code, code):
                return UNREPORTED
            problem = compare_step(step, code, message, values, printed[0])
            if problem:
                shown = {k: v.tolist() for k, v in step.feeds.items() if v.size < 20}
                return f'step {i} of {len(steps)} ({threads} threads, passes {passes}), {step.fetches + step.targets} {shown}\n' \
                       f'    {problem}'
        return None
    finally:
        graph.close()


# ---- memory that is not there ----

def run_exhausted(probe, name, graph_def, steps, threads, passes, captures, files):
    """None, or what is wrong where an allocation fails, now this one and now that: a step ends with RESOURCE_EXHAUSTED, or as
    TensorFlow's does. What comes after such a step is not looked at."""
    rng = random.Random(name)
    for n in sorted({rng.randrange(1, limit) for limit in EXHAUSTED}):
        with in_folder(files):
            graph = libweir.Graph(probe, graph_def, threads=threads, passes=passes)
            try:
                problem = exhaust(probe, graph, steps, captures, n)
            finally:
                graph.close()
        if problem:
            return f'allocation {n} fails ({threads} threads, passes {passes}): {problem}'
    return None


def exhaust(probe, graph, steps, captures, n):
    for names in (names for step in steps for names in step.gradients):
        graph.derive(*names)
    for i, step in enumerate(steps):
        code, message, values = 0, '', []
        fetches, feeds = [graph.edge(name) for name in step.fetches], step.feeds
        if i == 0:
            probe.c.weir_probe_fail_now(n)
        try:
            with captured(captures) as printed:
                values = graph.run(fetches, feeds, step.targets, step.timeout_ms)
        except libweir.Error as error:
            code, message = error.code, error.message
        if code == RESOURCE_EXHAUSTED and step.code != code:
            probe.c.weir_probe_fail_now(0)
            return None
        problem = compare_step(step, code, message, values, printed[0])
        if problem:
            probe.c.weir_probe_fail_now(0)
            return f'step {i} of {len(steps)}, {step.fetches + step.targets}\n    {problem}'
    probe.c.weir_probe_fail_now(0)
    return None


# ---- records ----

def step_record(writer, s):
    return {'fetches': s.fetches, 'targets': s.targets, 'feeds': {k: writer.array(v) for k, v in s.feeds.items()},
            'gradients': s.gradients, 'timeout_ms': s.timeout_ms, 'options': record.plain(s.options), 'code': s.code,
            'message': s.message, 'values': [writer.array(v) for v in s.values], 'printed': s.printed}


def write_program(writer, program, name):
    writer.add({'name': name, 'graph': writer.blob(program.graph_def.SerializeToString()), 'threads': program.threads,
                'passes': program.passes, 'captures': program.captures,
                'files': {k: writer.blob(v) for k, v in program.files.items()},
                'steps': [step_record(writer, s) for s in program.steps]})


def read_step(reader, s):
    step = Step(s['fetches'], s['targets'], {k: reader.array(v) for k, v in s['feeds'].items()}, s['timeout_ms'], s['options'])
    step.code, step.message, step.values = s['code'], s['message'], [reader.array(v) for v in s['values']]
    step.printed, step.gradients = s['printed'], s.get('gradients', [])
    return step


def replay_programs(options, reader, part, current):
    lib = libweir.Library(os.path.abspath(options.lib))
    probe = libweir.Library(os.path.abspath(options.probe)) if options.probe else None
    rows = {}
    for case in reader.cases[part::options.jobs]:
        name = case['name'].split('[')[0]
        if options.names and name not in options.names:
            continue
        current.set(case['name'])
        row = rows.setdefault(name, [0, 0, 0])
        row[0] += 1
        passes = case['passes'].encode() if isinstance(case['passes'], str) else case['passes']
        files = {k: reader.blob(v) for k, v in case['files'].items()}
        what = reader.blob(case['graph']), [read_step(reader, s) for s in case['steps']], case['threads'], passes
        with in_folder(files):
            problem = run_weir(lib, *what, case['captures'], options.devices, options.place)
        if not problem and probe:
            problem = run_exhausted(probe, case['name'], *what, case['captures'], files)
        if problem is UNREPORTED:
            row[2] += 1
        elif problem:
            row[1] += 1
            print(f'FAIL {case["name"]}: {problem}', flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--replay', metavar='FILE', required=True)
    parser.add_argument('--lib', required=True, help='libweir.so')
    parser.add_argument('--devices', metavar='LIST', type=os.fsencode, help='run each program on these devices: cpu,cuda')
    parser.add_argument('--place', metavar='WHERE', type=os.fsencode, help='where nodes go then: random:1')
    parser.add_argument('--probe', help='libweir_probe.so: programs run with it as well, and allocations fail')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('names', nargs='*', help='programs')
    options = parser.parse_args()
    reader = record.Reader(options.replay, 'programs')
    return print_rows(run_parts(options.jobs, lambda part, current: replay_programs(options, reader, part, current)))


if __name__ == '__main__':
    sys.exit(main())
