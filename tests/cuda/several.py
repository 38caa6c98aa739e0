"""Collectives between the GPUs of one process, by NCCL: a graph for as many as there are, and what it must give.

    several.py --weir build/cuda/cli/weir [--gpus N]

One GPU is a group of one. Each op runs a few times, so that communicators are used again.
"""
import argparse
import subprocess
import sys
import tempfile

import numpy as np

COUNT, RUNS = 1000, 3


def attr(name, kind, value):
    return f'attr {{key: "{name}" value {{{kind}: {value}}}}}'


def node(name, op, *attrs, inputs=(), device=''):
    return '\n'.join([f'node {{name: "{name}" op: "{op}"', *(f'input: "{i}"' for i in inputs),
                      *([f'device: "{device}"'] if device else []), *attrs, '}'])


def keys(size, instance):
    return (attr('group_size', 'i', size), attr('group_key', 'i', 1), attr('instance_key', 'i', instance),
            attr('communication_hint', 's', '"nccl"'))


class Graph:
    def __init__(self, gpus, device_type):
        self.gpus, self.type, self.nodes, self.expected = gpus, device_type, [], {}
        self.x = [np.linspace(-1, 1 + i, COUNT, dtype=np.float32) for i in range(gpus)]
        for i in range(gpus):
            self.nodes.append(node(f'x{i}', 'Placeholder', attr('dtype', 'type', 'DT_FLOAT')))

    def add(self, i, name, op, *attrs, inputs=None, value=None):
        inputs = [f'x{i}'] if inputs is None else inputs
        self.nodes.append(node(f'{name}{i}', op, attr('T', 'type', 'DT_FLOAT'), *attrs, inputs=inputs, device=f'/device:{self.type}:{i}'))
        self.expected[f'{name}{i}'] = value

    def build(self):
        whole, n = np.stack(self.x), self.gpus
        merged = {'sum': whole.sum(0), 'prod': whole.prod(0), 'min': whole.min(0), 'max': whole.max(0)}
        shape = attr('shape', 'shape', f'{{dim {{size: {COUNT}}}}}')
        offsets = 'attr {key: "subdiv_offsets" value {list {i: 0}}}'
        for i in range(n):
            for name, value in merged.items():
                self.add(i, name, 'NcclAllReduce', attr('reduction', 's', f'"{name}"'), attr('num_devices', 'i', n),
                         attr('shared_name', 's', f'"{name}"'), value=value)
            self.add(i, 'mean', 'CollectiveReduce', *keys(n, 1), attr('merge_op', 's', '"Add"'), attr('final_op', 's', '"Div"'), offsets,
                     value=whole.mean(0))
            self.add(i, 'rows', 'CollectiveGather', *keys(n, 2), shape, value=whole.reshape(-1))
            op = 'CollectiveBcastSend' if i == n - 1 else 'CollectiveBcastRecv'
            self.add(i, 'sent', op, *keys(n, 3), shape, inputs=[f'x{i}'] if i == n - 1 else [], value=self.x[-1])
        self.add(0, 'one', 'NcclReduce', attr('reduction', 's', '"sum"'), attr('num_devices', 'i', n),
                 inputs=[f'max{i}' for i in range(n)], value=merged['max'] * n)
        self.add(n - 1, 'all', 'NcclBroadcast', shape, inputs=['one0'], value=merged['max'] * n)
        return '\n'.join(self.nodes)


def check(options, gpus):
    graph = Graph(gpus, 'GPU')
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/graph.pbtxt', 'w', encoding='utf-8') as file:
            file.write(graph.build())
        command = [options.weir, 'run', f'{folder}/graph.pbtxt', f'--devices=cpu,cuda:{gpus}', f'--save={folder}/out']
        for i, x in enumerate(graph.x):
            np.save(f'{folder}/x{i}.npy', x)
            command += ['--feed', f'x{i}=@{folder}/x{i}.npy']
        for name in graph.expected:
            command += ['--fetch', name]
        for _ in range(RUNS):
            made = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if made.returncode:
                return [made.stderr.strip()]
            for i, (name, value) in enumerate(graph.expected.items()):
                got = np.load(f'{folder}/out{i}.npy')
                if got.shape != value.shape or not np.allclose(got, value, 1e-5, 1e-6):
                    wrong.append(f'{gpus} GPUs, {name}: {got[:4]}, not {value[:4]}')
    return wrong


def count_gpus():
    try:
        return subprocess.run(['nvidia-smi', '-L'], capture_output=True, text=True).stdout.count('GPU ')
    except OSError:
        return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--weir', required=True)
    parser.add_argument('--gpus', type=int, default=0, help='0: all of the machine')
    options = parser.parse_args()
    most = options.gpus or max(count_gpus(), 1)
    wrong = [line for gpus in sorted({1, min(2, most), most}) for line in check(options, gpus)]
    for line in wrong:
        print(f'FAIL {line}')
    print(f'up to {most} GPUs, {len(wrong)} wrong')
    return int(bool(wrong))


if __name__ == '__main__':
    sys.exit(main())
