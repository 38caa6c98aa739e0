#!/usr/bin/env python3
"""Training steps on one GPU: Weir and its peers (peer_gpu.py) in one run, as JSON lines and as a table.

    gpu.py --weir FILE [--graphs DIR] [--models NAME...] [--prec fp32,tf32,bf16] [--modes eager,graphs,jax] [--out FILE.jsonl]
    gpu.py --table FILE.jsonl                 the table of docs/performance-gpu.md

Each model and precision: the peers one after the other, each in a process of its own, then Weir, then Weir once more; the medians of
timed steps. Weir's time includes fetching the loss of every step; its peers' does not include any fetch.
"""
import argparse
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GRAPHS = {'alexnet': 'alexnet_b128', 'overfeat': 'overfeat_b128', 'vgg_a': 'vgg_a_b64', 'googlenet': 'googlenet_b128',
          'lstm_lm': 'lstm_lm_h650', 'inception_v3': 'inception_v3_b64', 'resnet50': 'resnet50_b64'}
OPTIONS = {'tf32': [], 'fp32': ['--tf32=0'], 'bf16': ['--amp=bf16']}


def lines_of(command, **more):
    """The JSON objects that a program prints, one a line."""
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    rows = [json.loads(line) for line in made.stdout.splitlines() if line.startswith('{')]
    return rows or [{'error': made.stderr.strip()[-300:] or f'exit status {made.returncode}'}]


def run_peers(model, prec, modes):
    command = [sys.executable, f'{HERE}/peer_gpu.py', model, f'--prec={prec}', f'--modes={",".join(modes)}']
    return [row for row in lines_of(command) if row.get('model') == model or 'error' in row]


def run_weir(options, model, prec):
    graph = os.path.join(options.graphs, GRAPHS[model] + '.pb')
    command = [options.weir, 'bench', graph, '--device=cuda:0', *OPTIONS[prec], '--steps=30', '--seconds=10', '--warmup=5', '--json']
    row = lines_of(command)[0]
    shown = ' '.join(['weir', 'bench', os.path.basename(graph), *command[3:]])
    return {'model': model, 'system': 'weir', 'prec': prec, **{k: row[k] for k in row if k not in ('graph', 'system')}, 'command': shown}


def measure(options):
    with open(options.out, 'w') as out:
        def keep(row):
            out.write(json.dumps(row) + '\n')
            out.flush()
            print(json.dumps(row), flush=True)
        for prec in options.prec.split(','):
            for model in options.models:
                for row in run_peers(model, prec, options.modes.split(',')):
                    keep(row)
                for _ in range(2):
                    keep(run_weir(options, model, prec))


def table(path):
    best, weir, ready = {}, collections.defaultdict(list), {}
    for row in map(json.loads, open(path)):
        key = row.get('model'), row.get('prec')
        if 'step_ms' not in row:
            continue
        if row['system'] == 'weir':
            weir[key].append(row['step_ms'])
            ready[key] = row['ready_s']
        elif key not in best or row['step_ms'] < best[key][0]:
            best[key] = row['step_ms'], row['system']
    print('| model | precision | Weir, ms a step | ready after, s | best peer, ms | ratio |\n|---|---|---|---|---|---|')
    for key, times in weir.items():
        ms, (peer, name) = min(times), best.get(key, (None, '-'))
        rest = f'{peer:.2f} ({name}) | {peer / ms:.2f}' if peer else '- | -'
        print(f'| {key[0]} | {key[1]} | {ms:.2f} | {ready[key]:.1f} | {rest} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--weir', default=os.path.join(HERE, '..', 'build', 'cuda', 'cli', 'weir'))
    parser.add_argument('--graphs', default=os.path.join(HERE, 'graphs'))
    parser.add_argument('--models', nargs='+', default=['alexnet', 'overfeat', 'vgg_a', 'googlenet'], choices=GRAPHS)
    parser.add_argument('--prec', default='tf32,fp32,bf16')
    parser.add_argument('--modes', default='eager,compile,graphs,jax', help='of the peers')
    parser.add_argument('--out', default='gpu.jsonl')
    parser.add_argument('--table', metavar='FILE')
    options = parser.parse_args()
    if options.table:
        table(options.table)
    else:
        measure(options)


if __name__ == '__main__':
    main()
