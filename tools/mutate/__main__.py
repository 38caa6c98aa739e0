"""Puts small faults into C files, one at a time, and says which the tests notice.

    python3 tools/mutate [--files GLOB...] [--count N] [--seed N] [--jobs N] [--without CHECK...] [--only ID...] [--folder DIR]

Faults are made by rule (rules.py) in a copy of the working tree under build/mutate/, which is built incrementally; a fault's
judgement ends with the first test that fails (judge.py says which run, in which order). Each outcome is printed, survivors with
their change, and written to build/mutate/report.json. A fault that cannot be noticed because it changes nothing that anybody
can see is named with the reason in equivalent.txt beside this file, and is not drawn again.
"""
import argparse
import collections
import difflib
import glob
import json
import multiprocessing
import os
import random
import sys
import time

import judge
import rules

DEFAULT_FILES = [f'src/{folder}/*.c' for folder in ('exec', 'pass', 'op', 'runtime', 'session', 'cluster/*', 'tensor', 'wire', 'file', 'device',
                                                    'device/*', 'kernel/*', 'ops/*')]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--files', nargs='+', metavar='GLOB', help='C files, from the root of the project')
    parser.add_argument('--count', type=int, default=20, help='faults to judge')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=1, help='copies of the tree that are built and tested at once')
    parser.add_argument('--without', nargs='+', default=[], metavar='CHECK', help='leaves out asan, programs, ...')
    parser.add_argument('--only', nargs='+', metavar='ID', help='judges these faults of the files')
    parser.add_argument('--folder', default='build/mutate', help='of the copies, the records and the report')
    parser.add_argument('--list', action='store_true', help='only prints which faults would be judged')
    return parser.parse_args()


def equivalent():
    """{id: reason} of faults that change nothing."""
    lines = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'equivalent.txt')).read().split('\n')
    return dict(line.split(' ', 1) for line in lines if line and not line.startswith('#'))


def draw(options, texts):
    """Faults in the order to be judged: files take turns, and so do rules within a file."""
    if options.only:
        return [f for path, text in texts.items() for f in rules.faults(path, text) if f.id in options.only]
    rng, argued, queues = random.Random(options.seed), equivalent(), []
    for path, text in sorted(texts.items()):
        by_rule = collections.defaultdict(list)
        for fault in rules.faults(path, text):
            if fault.id not in argued:
                by_rule[fault.rule].append(fault)
        for found in by_rule.values():
            rng.shuffle(found)
        turns = sorted(by_rule)
        rng.shuffle(turns)
        queues.append([f for round_ in range(max(map(len, by_rule.values()), default=0)) for r in turns for f in by_rule[r][round_:round_ + 1]])
    rng.shuffle(queues)
    return [q[turn] for turn in range(max(map(len, queues), default=0)) for q in queues if turn < len(q)]


def change(fault, text):
    lines = difflib.unified_diff(text.split('\n'), fault.apply(text).split('\n'), fault.path, fault.path, lineterm='', n=2)
    return '\n'.join(lines)


def work(*args):
    """One copy of the tree: takes faults until there is none."""
    try:
        work_on(*args)
    except BaseException as error:  # pylint: disable=broad-except  # the others cannot go on, either
        args[-1].put(repr(error))
        raise


def work_on(job, options, texts, records, limits, tasks, results):
    tree = make_tree(options, job)
    for fault in iter(tasks.get, None):
        checks = [c for c in judge.checks_for(tree, fault.path, records) if c.name not in options.without]
        start, tree.learning = time.monotonic(), 0.0
        judgement = judge.judge(tree, fault, texts[fault.path], checks, limits)
        results.put((fault, *judgement, time.monotonic() - start - tree.learning))


def make_tree(options, job):
    tree = judge.Tree(f'{options.folder}/tree{job}', f'{options.folder}/log{job}')
    os.makedirs(tree.folder, exist_ok=True)
    tree.update()
    tree.configure()
    return tree


def find_files(options):
    paths = {p for g in options.files or DEFAULT_FILES for p in glob.glob(g)}
    if not options.files:
        paths = {p for p in paths if not rules.GPU.search(p)}
    return sorted(p for p in paths if not p.endswith(('_test.c', '_fuzz.c')))


def main():
    options = parse_arguments()
    os.chdir(judge.ROOT)
    texts = {path: open(path).read() for path in find_files(options)}
    faults = draw(options, texts)
    if options.list:
        print('\n'.join(f'{f.id}\n{change(f, texts[f.path])}\n' for f in faults[:options.count]))
        return 0
    options.folder = os.path.abspath(options.folder)
    os.makedirs(options.folder, exist_ok=True)
    python = os.path.join(judge.ROOT, '.venv/bin/python')
    records = judge.Records(options.folder, python if os.path.exists(python) else sys.executable)
    faults = faults[:options.count + options.count // 2]  # some do not build, or to the same code
    records.prepare(make_tree(options, 0), {f.path for f in faults})
    tasks, results, limits = multiprocessing.Queue(), multiprocessing.Queue(), multiprocessing.Manager().dict()
    workers = [multiprocessing.Process(target=work, args=(j, options, texts, records, limits, tasks, results), daemon=True)
               for j in range(options.jobs)]
    for worker in workers:
        worker.start()
    status = collect(options, texts, faults, tasks, results)
    for name, _ in [key for key, limit in limits.items() if limit is None]:
        print(f'left out, as it fails without a fault: {name}')
        status = 2
    return status


def collect(options, texts, faults, tasks, results):
    """Keeps the workers busy until |count| faults that compile to other code are judged; the exit status: 1 with survivors."""
    rows, counted, waiting, rest = [], 0, 0, iter(faults)
    while counted < options.count:
        while waiting < min(options.jobs, options.count - counted):
            fault = next(rest, None)
            if fault is None:
                break
            tasks.put(fault)
            waiting += 1
        if waiting == 0:
            break
        result = results.get()
        if isinstance(result, str):
            sys.exit(result)
        fault, outcome, ran, shown, seconds = result
        waiting -= 1
        counted += outcome not in ('does not build', 'same code')
        rows.append({'id': fault.id, 'line': fault.line, 'outcome': outcome, 'checks': ran, 'seconds': round(seconds, 1),
                     'diff': change(fault, texts[fault.path]), 'output': shown})
        print(f'{fault.id:60} line {fault.line:4} {seconds:6.1f} s  {outcome}', flush=True)
        if outcome == 'survived':
            print(f'not noticed by {", ".join(ran)}\n{rows[-1]["diff"]}', flush=True)
        with open(f'{options.folder}/report.json', 'w') as f:
            json.dump(rows, f, indent=1)
    for _ in range(options.jobs):
        tasks.put(None)
    return print_summary([r for r in rows if r['outcome'] not in ('does not build', 'same code')], len(rows))


def print_summary(rows, drawn):
    table = collections.defaultdict(collections.Counter)
    for row in rows:
        path = row['id'].split(':')[1].split('/')
        table['/'.join(path[1:3]) if path[1] == 'ops' else path[1]]['survived' if row['outcome'] == 'survived' else 'caught'] += 1
    print(f'\n{"folder":20} {"caught":>7} {"survived":>9}')
    for folder in sorted(table):
        print(f'{folder:20} {table[folder]["caught"]:7} {table[folder]["survived"]:9}')
    survived = sum(t['survived'] for t in table.values())
    seconds = sum(r['seconds'] for r in rows) / max(1, len(rows))
    print(f'{len(rows)} faults of {drawn} drawn: {len(rows) - survived} caught, {survived} survived; {seconds:.0f} s each')
    return 1 if survived else 0


if __name__ == '__main__':
    sys.exit(main())
