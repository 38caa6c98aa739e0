#!/usr/bin/env python3
"""Writes TensorFlow's gradients of ops for program_run.py, which has libweir add them to the forward graph again.

    gradient_record.py FILE --lib LIBWEIR.so --ops ORACLE.xz [--seed N]

A case of gradients.py becomes a program: the node and placeholders, and a step for each first and second derivative, whose tolerance
depends on its largest element. Of each op that ORACLE.xz has cases of, some small ones are kept, with shapes known and unknown in turn.
"""
import argparse
import collections
import os
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import gradients
import libweir
import numpy as np
import oracle
import program_run
import record
from gradients import DYNAMIC, STATIC

EACH = {'float32': 2, 'float64': 1, 'float16': 1, 'complex64': 1}  # cases of an op by type
SMALL = 1500   # bytes of inputs and of gradients from above; where an op has no such cases, its smallest is kept
MOST = 16384   # bytes of all tensors of a case


def size_of(check):
    return sum(x.nbytes for x in [*check.inputs, *check.dys.values()])


def sample(checks):
    """Those to keep."""
    by_kind = collections.defaultdict(list)
    for check in checks:
        name = gradients.floating_name(check.case)
        if name in EACH and all(x.size for x in check.inputs) and any(dy.size for dy in check.dys.values()):
            by_kind[check.op, name].append(check)
    kept = []
    for (_, name), group in sorted(by_kind.items()):
        group.sort(key=lambda check: (not check.with_second, size_of(check) > SMALL))
        small = [check for check in group if size_of(check) <= SMALL]
        kept += small[:EACH[name]] or [min(group, key=size_of)]
    return kept


def steps_of(check, mode, want, got):
    """First derivatives are called d0, d1... by their input, gradients of these dd0..., also by gradients from above."""
    ys, dys, xs = gradients.names_of(0, check, mode)
    first = [f'd{i}' for i in range(len(xs))]
    there = [i for i in range(len(check.floating)) if got[0][i] is not None]
    parts = [(first, want[0], got[0], [first, ys, xs, dys])]
    if want[1] is not None and there:
        xs = xs[:len(check.floating)] + dys
        second = [f'dd{i}' for i in range(len(xs))]
        tops = [f'n0_ddx{check.floating[i]}:0' for i in there]
        parts.append((second, want[1], got[1], [second, [first[i] for i in there], xs, tops]))
    steps, added = [], []
    for names, wants, gots, arguments in parts:
        added.append(arguments)
        for name, w, g in zip(names, wants, gots):
            # One side may know of zeros that they are.
            if w is None or g is None or oracle.compare_values(g, w, gradients.tolerance(w, check.op)):
                continue
            step = program_run.Step([name], [], {}, program_run.TIMEOUT_MS, gradients.tolerance(w, check.op))
            step.values, step.gradients, added = [w], added, []
            steps.append(step)
    return steps


def write_case(writer, check, mode, steps, number):
    graph_def, feeds = gradients.build([check], mode)
    for step in steps:
        step.feeds = feeds
    program = types.SimpleNamespace(graph_def=graph_def, threads=2, passes=mode == DYNAMIC, captures=False, files={}, steps=steps)
    program_run.write_program(writer, program, f'{check.op}[{number}]')


def record_mode(lib, writer, mode, checks, counts):
    """Cases in which libweir on a CPU differs from TensorFlow are left out: gradients.py tells of them."""
    for at in range(0, len(checks), gradients.BATCH):
        batch = checks[at:at + gradients.BATCH]
        wants = gradients.run_tensorflow(batch, mode)
        gots = gradients.run_weir(batch, wants, lib, mode, lambda *_: None, {})
        for check, want, got in zip(batch, wants, gots):
            if isinstance(want, str) or gradients.compare(check, mode, want, got):
                continue
            steps = steps_of(check, mode, want, got)
            if steps and size_of(check) + sum(step.values[0].nbytes for step in steps) <= MOST:
                write_case(writer, check, mode, steps, counts[check.op])
                counts[check.op] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('file')
    parser.add_argument('--lib', required=True, help='libweir.so')
    parser.add_argument('--ops', metavar='FILE', required=True, help='a record of cases of ops: only these')
    parser.add_argument('--seed', type=int, default=oracle.SEED)
    options = parser.parse_args()
    np.seterr(all='ignore')
    options.quota = 1
    options.ops = sorted({case['op'] for case in record.Reader(options.ops, 'oracle').cases})
    lib, writer = libweir.Library(os.path.abspath(options.lib)), record.Writer('programs', options.seed)
    checks, counts = sample(gradients.choose(lib, options)), collections.Counter()
    for first, mode in enumerate((STATIC, DYNAMIC)):
        record_mode(lib, writer, mode, checks[first::2], counts)
    writer.save(options.file)
    print(f'{sum(counts.values())} cases of {len(counts)} ops')


if __name__ == '__main__':
    main()
