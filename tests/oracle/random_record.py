#!/usr/bin/env python3
"""Writes random programs with what TensorFlow makes of them, as far as its own order determines it, for programs.py --replay.

    random_record.py FILE [--seed N] [--count N] [--variables KIND...] [--calm]
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import program_run
import random_generate
import random_order
import random_run
import random_tensorflow
import record
from random_programs import output_names

REPEATS = 4


def determined_steps(judge, program):
    """The runs that give the same whatever order TensorFlow takes, from the first on."""
    want = random_run.run_session(judge.tensorflow, program, program.encode(devices=False), timeout_ms=5000)
    if random_run.is_refused(program, want) or random_order.has_race(program, want):
        return []
    count = min(random_order.determined(program, want), judge.determined(program, want, REPEATS, lambda phase: None))
    steps = []
    for run, outcome in zip(program.runs[:count], want):
        step = program_run.Step(run.fetches, run.targets, run.feeds, random_run.TIMEOUT_MS, random_run.ALIKE)
        step.code, step.message, step.values = outcome.code, outcome.message, outcome.values
        steps.append(step)
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('file')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=1000)
    parser.add_argument('--variables', nargs='+', choices=('ref', 'resource'), default=('ref', 'resource'))
    parser.add_argument('--calm', action='store_true', help='no constants outside their branch, no Merge of what may be alive twice')
    options = parser.parse_args()
    tensorflow = random_tensorflow.Library()
    names, judge, writer = output_names(tensorflow), random_run.Judge(tensorflow, None), record.Writer('programs', options.seed)
    for seed in range(options.seed, options.seed + options.count):
        program = random_generate.draw(seed, names, tuple(options.variables), is_calm=options.calm)
        steps = [program_run.step_record(writer, step) for step in determined_steps(judge, program)]
        if steps:
            writer.add({'name': f'random[{seed}]', 'graph': writer.blob(program.encode(devices=False)), 'threads': program.threads,
                        'passes': program.disabled or True, 'captures': False, 'files': {}, 'steps': steps})
    writer.save(options.file)
    print(f'{len(writer.head["cases"])} programs of {options.count}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
