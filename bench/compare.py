"""Times benchmark graphs with Weir and with TensorFlow in one run, interleaved, and prints medians and their ratio.

usage: compare.py [NAME ...] [--rounds N] [--threads N] [--seconds S] [--json FILE]
Without TensorFlow only Weir is timed. A ratio above 1 means that Weir is faster.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
GRAPHS = HERE / 'graphs'
WEIR = pathlib.Path(os.environ.get('WEIR_BUILD', HERE.parent / 'build' / 'release')) / 'cli' / 'weir'
DEFAULT = ['chain_1k', 'fanout_10k', 'loop_10k', 'mlp_b128', 'lenet_b128', 'elementwise_4m', 'matmul_1024', 'lstm_lm_b20',
           'wide_embedding_b512']


def weir(name, args):
    command = [WEIR, 'bench', GRAPHS / f'{name}.pb', '--json', f'--seconds={args.seconds}', '--steps=1000']
    if args.threads:
        command.append(f'--threads={args.threads}')
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def tensorflow(name, args):
    command = [sys.executable, HERE / 'peer_tf.py', GRAPHS, name, '--seconds', str(args.seconds), '--steps', '1000']
    if args.threads:
        command += ['--threads', str(args.threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('names', nargs='*')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--threads', type=int)
    parser.add_argument('--seconds', type=float, default=3)
    parser.add_argument('--json')
    args = parser.parse_args()
    peers = {'weir': weir}
    if importlib.util.find_spec('tensorflow'):
        peers['tensorflow'] = tensorflow
    rows = []
    print(f'{"graph":22} {"weir ms":>10} {"ns/node":>9} {"peak MB":>9} {"TF ms":>10} {"TF/weir":>8}')
    for name in args.names or DEFAULT:
        times = {peer: [] for peer in peers}
        for _ in range(args.rounds):
            for peer, run in peers.items():
                result = run(name, args)
                times[peer].append(result['step_ms'])
                if peer == 'weir':
                    last = result
        median = {peer: statistics.median(values) for peer, values in times.items()}
        row = dict(graph=name, nodes=last['nodes'], peak_bytes=last['peak_bytes'], **{f'{p}_ms': m for p, m in median.items()})
        row['ns_per_node'] = median['weir'] * 1e6 / max(last['nodes'], 1)
        row['ratio'] = median['tensorflow'] / median['weir'] if 'tensorflow' in median else None
        rows.append(row)
        tf = f'{median["tensorflow"]:10.3f} {row["ratio"]:8.2f}' if row['ratio'] else ''
        print(f'{name:22} {median["weir"]:10.3f} {row["ns_per_node"]:9.0f} {last["peak_bytes"] / 1e6:9.1f} {tf}', flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
    main()
