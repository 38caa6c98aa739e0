#!/usr/bin/env python3
"""Training in a cluster whose processes are killed, stopped and started again, and whose network fails, at moments that a seed draws.

A round is a training from its first step to its last: parameter servers, workers' servers, and a program for each worker, all of them
processes (world.py), to some of which, or to their network (network.py), something is done (faults.py) when training has come to some
step. Every step adds one to each variable and to the global step (tests/programs/chaos.c), so what must hold afterwards can be counted:

- all programs come to the last step, in time;
- a variable is as many as the global step, but for steps that were interrupted since the state was last restored, or before the checkpoint
  that it was restored from: each of those may have been taken in part;
- all elements of a variable are the same, and so are those of its checkpoints: nothing is written in half;
- every checkpoint that is there can be read, and is of whole steps as the variables are.

    chaos.py --rounds 100                   the faults of each round are drawn from a seed
    chaos.py --seed 7 --verbose             one of them again, as far as the scheduler lets it
    chaos.py --rounds 100 --only kill_ps    of one kind
    chaos.py --table 20                     so many rounds of each kind, as a table, with the median and longest times until a
                                            fault is noticed, and until all go on when it is over
"""
import argparse
import collections
import contextlib
import pathlib
import random
import re
import statistics
import sys
import tempfile
import time

import disk
import faults
from world import Failure, World

MARGIN = 0.1  # seconds between what happens and the line that tells of it
AT_END = 15  # steps before the last: if the chief has ended when variables are lost, nobody restores them
LATE = 3  # steps by which lines of one program may come after those of another
Fault = collections.namedtuple('Fault', 'kind step process seconds')
Result = collections.namedtuple('Result', 'failure torn recoveries restores seconds delays')
Delay = collections.namedtuple('Delay', 'noticed back')  # seconds from a fault to the first loop that lost a server; from its end until all go on


# ---- drawing ----

class Round:
    """What a seed says: sizes, and faults in the order of their steps."""

    def __init__(self, seed, kinds, count=None):
        rng = random.Random(seed)
        self.seed = seed
        self.ps, self.workers = rng.choice([1, 2]), 2
        self.is_sync = rng.random() < 0.5
        self.drawn_steps = rng.randrange(60, 160)
        count = count or rng.choice([1, 1, 2, 3])
        steps = sorted(rng.randrange(2, self.drawn_steps * 2 // 3) for _ in range(count))
        for i in range(1, count):
            if rng.random() < 0.4:  # while training is still about to go on
                steps[i] = steps[i - 1]
        drawn = [Fault(rng.choice(kinds), step, rng.randrange(4), rng.choice([0, 0.1, 0.3, 1.0])) for step in steps]
        self.is_leased, self.is_relayed = rng.random() < 0.3, rng.random() < 0.2
        self.has_disk = self.has_clocks = False
        self.meet(drawn)

    @property
    def steps(self):
        # So that a lease runs out, and a disk is free again, before they are over.
        return self.drawn_steps + 150 * self.is_leased + 300 * self.has_disk

    def meet(self, met):
        """Has these faults in place of those drawn."""
        self.faults = met
        self.is_leased = self.is_leased or any(fault.kind in faults.LEASED for fault in met)
        self.is_relayed = self.is_relayed or any(fault.kind in faults.OF_NETWORKS for fault in met)
        self.has_disk = self.has_disk or any(fault.kind in faults.OF_DISKS for fault in met)
        self.has_clocks = self.has_clocks or any(fault.kind in faults.OF_CLOCKS for fault in met)

    def __str__(self):
        kind = 'synchronous' if self.is_sync else 'asynchronous'
        what = ', '.join(f'{f.kind}({f.process}, {f.seconds:g} s) at {f.step}' for f in self.faults)
        kind += ' with a lease' * self.is_leased + ' through relays' * self.is_relayed
        return f'seed {self.seed}: {kind}, {self.ps} ps, {self.steps} steps; {what}'


# ---- what must hold ----

def may_lead(world, line):
    return line.worker == 0 or (world.is_leased and line.worker is not None)


def restored(world):
    """When the state last went back to a checkpoint, or to the beginning, and to which step: the chief's loop says so, unless it is
    new itself."""
    latest, when, step, is_new = 0, 0, 0, False
    for line in world.seen():
        if line.text.startswith('going on at ') and 'what servers have' not in line.text:
            when, step = line.time, int(re.search(r'step (\d+)', line.text)[1])
        elif line.text == 'started':
            is_new = is_new or may_lead(world, line)
        elif line.text.startswith('at '):
            at = int(line.text[3:])
            if is_new and may_lead(world, line):
                when, step, is_new = *((line.time, at) if at < latest - LATE else (when, step)), False
            latest = max(latest, at)
    return when, step


def first_at(lines, step):
    """When training first came to |step|."""
    return min((line.time for line in lines if line.text.startswith('at ') and int(line.text[3:]) >= step), default=0.0)


def interruptions(lines, since=0.0, until=float('inf')):
    """How many steps may have been taken in part."""
    return sum(since <= line.time <= until and (is_fault(line) or line.text.startswith('lost a server')) for line in lines)


def is_fault(line):
    return line.worker is None and not line.text.startswith('damaged')


def check_whole(what, variables, most, is_sync):
    """The largest difference between a variable and the global step."""
    step = variables.pop('global_step')[0]
    worst = 0
    for name, (least, largest) in variables.items():
        if least != largest:
            raise Failure(f'{what}: elements of {name} are from {least} to {largest}')
        # Each beginning of a synchronous chief leaves out a number.
        difference = max(variables.values())[0] - least if is_sync else abs(step - least)
        if difference > most or (is_sync and least > step + most):
            raise Failure(f'{what}: {name} is {least} at step {step}, with {most} interrupted steps; all: {variables}')
        worst = max(worst, difference)
    return worst, step


def check_checkpoints(world):
    lines = world.seen()
    for number, when, variables in world.checkpoints():
        _, saved = check_whole(f'the checkpoint {number}', variables, interruptions(lines, until=when + MARGIN), world.is_sync)
        if saved < number:
            raise Failure(f'the checkpoint {number} has global step {saved}')


def check_nothing_else(world):
    """In the directory: what saves that failed or were killed began is gone, but for shards, which may stay for a minute."""
    known = re.compile(r'model\.ckpt-[0-9]+(\.index|\.data-[0-9]+-of-[0-9]+|_temp)|checkpoint|events\..*')
    names = [path.name for path in pathlib.Path(world.directory).iterdir() if not known.fullmatch(path.name)]
    if names:
        raise Failure(f'there is also {", ".join(sorted(names))}')


def check_progress(world):
    """After no fault is training further back than the newest checkpoint at that time."""
    newest = 0
    for line in world.seen():
        if line.worker is None:
            newest = int(line.text.split()[1])
        elif may_lead(world, line) and line.text.startswith('at ') and int(line.text[3:]) < newest - LATE:
            raise Failure(f'at step {line.text[3:]} after a checkpoint of step {newest}')


def check_end(world):
    """What the variables and the checkpoints are when all have ended; the largest difference."""
    lines = world.seen()
    when, checkpoint = restored(world)
    most = interruptions(lines, since=when - MARGIN)
    if when:  # a checkpoint has what was interrupted before it
        most += interruptions(lines, until=min(first_at(lines, checkpoint), when - MARGIN))
    worst, step = check_whole('the variables', world.variables(), most, world.is_sync)
    if step < world.steps:
        raise Failure(f'the programs ended at step {step} of {world.steps}')
    check_checkpoints(world)
    check_nothing_else(world)
    check_progress(world)
    if world.newest() < world.steps:
        raise Failure(f'the newest checkpoint is of step {world.newest()} of {world.steps}')
    return worst


# ---- how soon ----

def delay_of(lines, met, ended):
    """None where nobody lost a server."""
    lost = [line.time for line in lines if line.time >= met and line.text.startswith('lost a server')]
    back = [line.time for line in lines if lost and line.time >= lost[0] and line.text.startswith('going on at ')]
    return Delay(lost[0] - met, max(back[-1] - ended, 0)) if back else None


def spread(seconds):
    return f'{statistics.median(seconds):.2f}, {max(seconds):.2f}' if seconds else ''


# ---- playing ----

def wait_for_end(world):
    world.wait(world.is_over, 'the end of training')
    for i, program in world.programs.items():
        if program.returncode != 0:
            raise Failure(f'program {i} ended with {program.returncode}')


def log_of(world):
    return '\n'.join(f'    {line.time - world.began:7.3f}  {"fault" if line.worker is None else line.worker}  {line.text}'
                     for line in world.seen())


def play(drawn, verbose=False):
    began, failure, torn, times = time.time(), None, 0, []
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix='weir_chaos.'))
        if drawn.has_disk:
            stack.enter_context(disk.Disk(directory))
        clocks = stack.enter_context(tempfile.TemporaryDirectory(prefix='weir_clocks.')) if drawn.has_clocks else None
        world = World(directory, drawn.ps, drawn.workers, drawn.steps, drawn.is_sync, drawn.is_leased, drawn.is_relayed, clocks)
        world.began = began
        with world:
            try:
                for fault in drawn.faults:
                    world.wait_for_step(fault.step)
                    if world.step() > drawn.steps - AT_END:
                        break
                    met = world.note_fault(fault.kind)
                    faults.KINDS[fault.kind](world, fault.process, fault.seconds)
                    times.append((met, time.time()))
                wait_for_end(world)
                torn = check_end(world)
            except Failure as e:
                failure = str(e)
        if verbose or failure:
            print(log_of(world))
        lines = world.seen()
    recoveries = sum(line.text.startswith('going on at ') for line in lines)
    restores = sum(line.text.startswith('end ') and line.text.endswith(' restored') for line in lines)
    delays = [delay_of(lines, *times[0])] if len(times) == 1 else []
    return Result(failure, torn, recoveries, restores, time.time() - began, [delay for delay in delays if delay])


def run(rounds, verbose):
    """Plays all rounds; their results."""
    results = []
    for drawn in rounds:
        result = play(drawn, verbose)
        results.append(result)
        if verbose or result.failure:
            print(f'{drawn}\n    {result.failure or "fine"}; {result}', flush=True)
    return results


def print_table(rounds_of_kind):
    print('| fault | rounds | came to the end | loops that waited and went on | went on from a checkpoint | with a step taken in part '
          '| noticed after | all went on after |')
    print('|---|---|---|---|---|---|---|---|')
    for kind, results in rounds_of_kind.items():
        good = sum(not r.failure for r in results)
        delays = sum((r.delays for r in results), [])
        print(f'| {kind} | {len(results)} | {good} | {sum(r.recoveries for r in results)} times | {sum(r.restores > 0 for r in results)} '
              f'| {sum(r.torn > 0 for r in results)} | {spread([d.noticed for d in delays])} | {spread([d.back for d in delays])} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', help='kinds of faults, separated by commas')
    parser.add_argument('--table', type=int, metavar='ROUNDS', help='rounds of each kind, one fault a round')
    parser.add_argument('--verbose', action='store_true')
    options = parser.parse_args()
    kinds = options.only.split(',') if options.only else list(faults.KINDS)
    seeds = range(options.seed, options.seed + (options.table or options.rounds))
    if options.table:
        results = {kind: run([Round(seed, [kind], 1) for seed in seeds], options.verbose) for kind in kinds}
        results['any, one to three a round'] = run([Round(seed, kinds) for seed in seeds], options.verbose)
        print_table(results)
        every = sum(results.values(), [])
    else:
        every = run([Round(seed, kinds) for seed in seeds], options.verbose)
    failed = sum(r.failure is not None for r in every)
    print(f'{len(every)} rounds, {failed} with findings, {sum(r.recoveries for r in every)} recoveries')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
