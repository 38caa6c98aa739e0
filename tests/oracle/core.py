"""Joins the counts of oracle.py, gradients.py and programs.py into one table of the core ops.

    oracle.py --core COUNTS...      with files that those programs wrote by --counts

ops_core.txt lists the ops of ordinary training programs. An op with fewer than 30 cases fails, unless the reason stands in NOTE,
and so does one without any.
"""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ENOUGH = 30
# Why an op has fewer different inputs than that.
NOTE = {
    'Abort': 'ends the process: only that it does not run on a dead branch can be compared',
    'Timestamp': 'has no input, and its value is the time',
    'NoOp': 'has no input',
    'ControlTrigger': 'has no input',
}


def read_core():
    with open(os.path.join(HERE, 'ops_core.txt')) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith('#')]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--core', nargs='+', metavar='COUNTS', required=True)
    files = parser.parse_args().core
    tables = []
    for path in files:
        with open(path) as f:
            tables.append(json.load(f))  # {op: [cases, failures]}
    titles = [os.path.splitext(os.path.basename(path))[0] for path in files]
    core = read_core()
    print(f'{"op":40} {"cases":>6} {"failures":>8}' + ''.join(f' {t:>10}' for t in titles))
    none, few = [], []
    for op in core:
        counts = [t.get(op, [0, 0]) for t in tables]
        cases, failures = (sum(c[i] for c in counts) for i in (0, 1))
        print(f'{op:40} {cases:6} {failures:8}' + ''.join(f' {c[0]:10}' for c in counts))
        if cases == 0:
            none.append(op)
        elif cases < ENOUGH:
            few.append((op, cases))
    for op, cases in few:
        print(f'below {ENOUGH}: {op} {cases}: {NOTE.get(op, "no reason is given")}')
    for op in none:
        print(f'no case: {op}')
    unexplained = [op for op, _ in few if op not in NOTE]
    print(f'{len(core)} core ops, {len(few)} below {ENOUGH} cases ({len(unexplained)} without a reason), {len(none)} without any')
    return 1 if none or unexplained else 0


if __name__ == '__main__':
    sys.exit(main())
