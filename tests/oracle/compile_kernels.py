"""Compiles every GPU kernel, by NVRTC, on a machine without a GPU.

    compile_kernels.py --probe FILE [--jobs N] [--fused] [names...]

The oracle's cases run on fake GPUs (tests/testing/cuda_fake.h) of three architectures: on one of them a case for each op, its types
and the attributes that are words or flags, but no more than --kinds of an op; on the others one for each op. A kernel that does not compile, or fails where the CPU's does not, is a failure; what it
computes is for a machine with a GPU to say (replay.py). Graphs that are fused follow (fused_graphs.py), and sources that no op asks
for without cuDNN (nvrtc.py). NVRTC is PyPI's, unless WEIR_NVRTC names another.
"""
import argparse
import collections
import os
import sys
import tempfile

import fused_graphs
import nvrtc
import oracle
import probe as weir_probe
from parts import run_parts
from values import code_name

ARCHITECTURES, MAIN = 3, 2  # devices of the fake driver, and the one that gets all cases
LIBRARIES = ('libcudnn', 'libcublas', 'cuDNN', 'cuBLAS')  # which are not here or want a GPU, and need no compilation


def kind(case):
    """Cases that a kernel tells apart before it sees any values."""
    words = [f'{name}={value}' for name, value in sorted(case.node.attr.items()) if value.WhichOneof('value') in ('type', 's', 'b')]
    return case.op, tuple(words), tuple(x.dtype for x in oracle.probe_inputs(case))


def run(options, part, current):
    cases, kinds = {}, collections.Counter()
    for case in [] if options.fused else oracle.load(options, oracle.Report(0)):
        if kind(case) not in cases and kinds[case.op] < options.kinds:
            kinds[case.op] += 1
            cases[kind(case)] = case
    probe = weir_probe.Probe(options.probe, None, 1, f'cpu,cuda:{ARCHITECTURES}', fake_cuda=True)
    rows, seen = collections.Counter(), set()
    for case in list(cases.values())[part::options.jobs]:
        current.set(f'{case.where} {case.describe()}')
        node, inputs = case.node.SerializeToString(), oracle.probe_inputs(case)
        if probe.run(node, inputs)[1].code:
            continue
        for device in [MAIN] + [d for d in range(1, 1 + ARCHITECTURES) if d != MAIN and case.op not in seen]:
            result = probe.run(node, inputs, device)[1]
            if result.message.startswith('No OpKernel was registered'):
                break
            seen.add(case.op)
            rows[case.op, 'runs'] += 1
            if result.code and not result.message.startswith(LIBRARIES):
                rows[case.op, 'failures'] += 1
                print(f'FAIL {case.where} {case.describe()} on device {device}\n    {code_name(result.code)}: {result.message}', flush=True)
    if not options.names:
        current.set('fused graphs')
        run_fused(options, part, rows)
    return [[op, what, count] for (op, what), count in rows.items()]


def run_fused(options, part, rows):
    """Graphs whose nodes are fused or joined, on each of the devices."""
    runner = fused_graphs.Runner(options.probe, f'cpu,cuda:{ARCHITECTURES}')

    def check(name, build, device, is_right):
        data, fetch = fused_graphs.graph_of(build)
        nodes, message = runner.run(fused_graphs.on_device(data, f'/device:GPU:{device}'), fetch)
        rows['_Fused', 'runs'] += 1
        if not is_right(nodes, message):
            rows['_Fused', 'failures'] += 1
            print(f'FAIL fused graph: {name} on device {device}, {nodes} nodes\n    {message}', flush=True)
    for i, (name, build, most) in list(enumerate(fused_graphs.cases()))[part::options.jobs]:
        for device in range(ARCHITECTURES) if i % 4 == 0 else [MAIN - 1]:
            check(name, build, device, lambda nodes, message: not message and nodes <= most)
    for name, build, text in list(fused_graphs.failures())[part::options.jobs]:
        check(name, build, MAIN - 1, lambda nodes, message: message and text in message)


def main():
    sys.modules['oracle'] = oracle
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--probe', required=True, help='libweir_probe.so')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--kinds', type=int, default=3, help='of cases, for each op')
    parser.add_argument('--seed', type=int, default=oracle.SEED)
    parser.add_argument('--fused', action='store_true', help='only the graphs that are fused')
    parser.add_argument('names', nargs='*', help='ops')
    options = parser.parse_args()
    library = nvrtc.find_library()
    if library:
        os.environ.setdefault('WEIR_NVRTC', library)
    total = collections.Counter()
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault('WEIR_CACHE_DIR', cache)
        results = run_parts(options.jobs, lambda part, current: run(options, part, current))
    for rows in results:
        for op, what, count in rows or []:
            total[op, what] += count
    ops = {op for op, _ in total}
    runs, failures = (sum(n for (_, w), n in total.items() if w == what) for what in ('runs', 'failures'))
    if not options.names:
        alone, _ = nvrtc.failures(os.environ.get('WEIR_NVRTC', 'libnvrtc.so.13'))
        failures += len(alone)
        print(''.join(line + '\n' for line in alone), end='')
    print(f'{len(ops)} ops with GPU kernels, {runs} runs on fake GPUs, {failures} failures')
    return 1 if failures or None in results or not runs else 0


if __name__ == '__main__':
    sys.exit(main())
