"""Records what TensorFlow makes of cases and programs for a machine that has a GPU and no TensorFlow: tests/cuda/*.xz.

    make_records.py --lib LIBWEIR.so --probe LIBWEIR_PROBE.so --cli WEIR [--only OP...]

Of the oracle's cases for ops with kernels of GPUs those are kept that fill few bytes: all that are small, and of the large ones as many of
each op. With --only, cases of these ops are recorded anew, and all else stays as it is. Programs about aliases of reference variables are left out: nodes without a kernel of a GPU get copies there, as in TensorFlow.
"""
import argparse
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, '..', 'oracle')
sys.path.insert(0, ORACLE)

import record

SMALL, LARGE_CASES, MOST = 2048, 2, 60  # bytes of a case; large cases and all cases of an op
FUSED = ('_FusedConv2D', '_ParallelConcatStart', '_ParallelConcatUpdate')  # ops of passes that TensorFlow has, too
LEFT_OUT = ('programs_alias', 'programs_checkpoint_v1')
OTHER_CPUS = ('summaries',)  # programs of sums of squares, which some CPUs round once and others twice


def blobs_of(case):
    """Numbers of all blobs of a case of the oracle."""
    results = [r for r in (case['whole'], case['kernel']) if r]
    arrays = [a for r in results for a in [*r['outputs'], *r['variables'].values()]]
    return [case['node'], *(blob for _, _, blob in case['inputs']), *(a for a in arrays if a >= 0)]


def sample(reader):
    """The cases to keep."""
    kept, large, counts = [], {}, {}
    for case in reader.cases:
        size = sum(len(reader.blob(b)) for b in set(blobs_of(case)))
        op = case['op']
        if counts.get(op, 0) >= MOST or size > SMALL and (size > 64 * SMALL or large.get(op, 0) >= LARGE_CASES):
            continue
        large[op] = large.get(op, 0) + (size > SMALL)
        counts[op] = counts.get(op, 0) + 1
        kept.append(case)
    return kept


def renumber(case, number):
    """The case with its blobs' numbers translated."""
    def result(r):
        return r and {**r, 'outputs': [number(a) for a in r['outputs']], 'variables': {k: number(a) for k, a in r['variables'].items()}}
    return {**case, 'node': number(case['node']), 'inputs': [[k, t, number(b)] for k, t, b in case['inputs']],
            'whole': result(case['whole']), 'kernel': result(case['kernel'])}


def record_ops(options, names, folder):
    path = os.path.join(folder, 'all.xz')
    subprocess.run([sys.executable, f'{ORACLE}/oracle.py', '--probe', options.probe, '--record', path, *names], stdout=subprocess.DEVNULL)
    return record.Reader(path, 'oracle')


def record_oracle(options, folder):
    ops = [json.loads(line) for line in subprocess.check_output([options.cli, 'ops', '--json'], text=True).splitlines()]
    names = [op['name'] for op in ops if 'GPU' in op['devices'] and (not op['name'].startswith('_') or op['name'] in FUSED)]
    path = os.path.join(HERE, 'oracle.xz')
    made = record_ops(options, options.only or names, folder)
    writer = record.Writer('oracle', made.seed)
    readers = [(made, sample(made))]
    if options.only:
        old = record.Reader(path, 'oracle')
        readers.insert(0, (old, [case for case in old.cases if case['op'] not in options.only]))
    for reader, cases in readers:
        for case in cases:
            writer.add(renumber(case, lambda b, reader=reader: b if b < 0 else writer.blob(reader.blob(b))))
    writer.save(path)


def program_names():
    """Of the programs that are not left out."""
    files = [f[:-3] for f in sorted(os.listdir(ORACLE)) if f.startswith('programs_') and f[:-3] not in LEFT_OUT]
    lines = [line for f in files for line in open(f'{ORACLE}/{f}.py')]
    names = {line.split('(')[0][4:] for before, line in zip(lines, lines[1:]) if before.startswith('@program') and line.startswith('def ')}
    return sorted(names - set(OTHER_CPUS))


def record_models(folder):
    subprocess.run([sys.executable, f'{HERE}/../models/export.py', folder], check=True, stdout=subprocess.DEVNULL)
    with lzma.open(os.path.join(HERE, 'models.tar.xz'), 'wb') as out, tarfile.open(fileobj=out, mode='w') as tar:
        for name in sorted(os.listdir(folder)):
            tar.add(os.path.join(folder, name), name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    for option in ('--lib', '--probe', '--cli'):
        parser.add_argument(option, required=True)
    parser.add_argument('--only', nargs='+', help='ops')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record_oracle(options, folder)
        if options.only:
            return
        subprocess.run([sys.executable, f'{ORACLE}/programs.py', '--lib', options.lib, '--times', '0.3', '--record', f'{HERE}/programs.xz',
                        *program_names()], check=True, stdout=subprocess.DEVNULL)
        # A Merge of what is alive twice takes what comes first: of two devices, either.
        subprocess.run([sys.executable, f'{ORACLE}/random_record.py', f'{HERE}/random.xz', '--variables', 'resource', '--count', '1000',
                        '--calm'], check=True)
        subprocess.run([sys.executable, f'{ORACLE}/gradient_record.py', f'{HERE}/gradients.xz', '--lib', options.lib, '--ops',
                        f'{HERE}/oracle.xz'], check=True)
        record_models(os.path.join(folder, 'models'))


if __name__ == '__main__':
    main()
