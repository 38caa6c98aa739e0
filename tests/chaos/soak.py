#!/usr/bin/env python3
"""Does memory stay flat? Two parameter servers and four workers train for half an hour, with a checkpoint every ten steps; the resident
memory of each process is noted all the while.

    soak.py --minutes 30 --out docs/soak.json --plot docs/soak.svg

A process is flat when the median of its last fifth is at most 2 % and half a megabyte over that of the fifth before. (What allocators keep for
the next step grows for some minutes, the more slowly the longer.)
"""
import argparse
import json
import pathlib
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / 'bench'))
import svg_plot

from chaos import check_whole
from world import World

PS, WORKERS, FOREVER, EVERY = 2, 4, 10**9, 2.0
PARTS, POINTS = 5, 10
SHARE, MORE = 1.02, 0.5  # of megabytes, that memory may grow


def resident(process):
    """Megabytes."""
    text = pathlib.Path(f'/proc/{process.pid}/status').read_text()
    return int(re.search(r'VmRSS:\s+(\d+) kB', text)[1]) / 1024


def watch(world, seconds):
    """Samples of each process by name, and when they were taken."""
    processes = {f'{job}:{i}': process for (job, i), process in world.servers.items()}
    processes |= {f'program {i}': process for i, process in world.programs.items()}
    times, samples = [], {name: [] for name in processes}
    world.wait_for_step(100)
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        times.append(time.monotonic() - began)
        for name, process in processes.items():
            samples[name].append(resident(process))
        time.sleep(EVERY)
    return times, samples


def growth(samples):
    """The median of the last fifth but one, and of the last."""
    part = len(samples) // PARTS
    return statistics.median(samples[-2 * part:-part]), statistics.median(samples[-part:])


def soak(minutes, is_sync):
    with tempfile.TemporaryDirectory(prefix='weir_soak.') as directory:
        with World(directory, PS, WORKERS, FOREVER, is_sync) as world:
            times, samples = watch(world, 60 * minutes)
            step = world.step()
            for program in world.programs.values():
                program.kill()
                program.wait()
            check_whole('the variables', world.variables(), WORKERS, is_sync)
    return times, samples, step


def plot(path, times, samples):
    """Of each kind of process the one that has most."""
    bounds = [len(times) * i // POINTS for i in range(POINTS + 1)]
    lines = []
    for what, kind in (('a parameter server', 'ps'), ("a worker's server", 'worker'), ('a program', 'program')):
        medians = [[statistics.median(values[a:b]) for a, b in zip(bounds, bounds[1:])] for name, values in samples.items() if name.startswith(kind)]
        lines.append((what, [max(at) for at in zip(*medians)]))
    svg_plot.write(path, 'Resident memory', 'minutes', 'megabytes', lines, [f'{times[b - 1] / 60:.0f}' for b in bounds[1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--sync', action='store_true')
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--plot', type=pathlib.Path)
    options = parser.parse_args()
    times, samples, step = soak(options.minutes, options.sync)
    grown = []
    print(f'{step} steps in {options.minutes:g} minutes\n| process | megabytes, last fifth but one | last fifth |\n|---|---|---|')
    for name, values in samples.items():
        before, after = growth(values)
        print(f'| {name} | {before:.1f} | {after:.1f} |')
        grown += [name] * (after > before * SHARE + MORE)
    if options.out:
        table = {name: [round(value, 2) for value in values] for name, values in samples.items()}
        options.out.write_text(json.dumps({'steps': step, 'seconds': [round(t) for t in times], 'megabytes': table}) + '\n')
    if options.plot:
        plot(options.plot, times, samples)
    print('not flat: ' + ', '.join(grown) if grown else 'flat')
    return len(grown) > 0


if __name__ == '__main__':
    sys.exit(main())
