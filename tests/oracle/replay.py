"""Runs recorded cases (see record.py) without TensorFlow. Reached by oracle.py --replay and programs.py --replay."""
import argparse
import os
import sys
import tempfile

import probe as weir_probe
import record
from parts import run_parts

HERE = os.path.dirname(os.path.abspath(__file__))
INVALID_ARGUMENT, OUT_OF_RANGE = 3, 11


def read_result(reader, r):
    if r is None:
        return None
    return weir_probe.Result(r['code'], r['message'], [reader.array(a) for a in r['outputs']], r['shapes'],
                             {int(i): reader.array(a) for i, a in r['variables'].items()}, r.get('early', 0))


def is_unreported(devices, tensorflow_code, code):
    """Whether a value is wrong that only a device knows: a GPU says nothing of it, in TensorFlow neither."""
    return devices is not None and 'cuda' in str(devices) and tensorflow_code in (INVALID_ARGUMENT, OUT_OF_RANGE) and code == 0


def run_nodes(options, reader, part, current):
    """{op: [cases, failures, errors that no GPU reports]} of every |options.jobs|-th case from |part| on."""
    probe = weir_probe.Probe(options.probe, options.lib, options.threads, options.devices)
    rows = {}
    last = probe.device_count - 1
    for case in reader.cases[part::options.jobs]:
        if options.names and case['op'] not in options.names:
            continue
        current.set(f'{case["where"]} {case["text"]}')
        inputs = [weir_probe.Input(kind, dtype, reader.blob(blob)) for kind, dtype, blob in case['inputs']]
        pair = read_result(reader, case['whole']), read_result(reader, case['kernel'])
        weaker = []
        weir = probe.run(reader.blob(case['node']), inputs, last)
        if options.devices != 'cpu' and weir[1].message.startswith('No OpKernel was registered'):
            continue
        row = rows.setdefault(case['op'], [0, 0, 0])
        row[0] += 1
        if pair[0] is None:  # ends TensorFlow; that it did not end here is what is asked
            continue
        if pair[1] and is_unreported(options.devices, pair[1].code, weir[1].code):
            row[2] += 1
            continue
        how = case['options']
        if how.get('in_turn') and 'cuda' in str(options.devices):  # it depends on the order, and GPUs have another
            how = {**how, 'shapes_only': True}
        if how.get('rounds') and options.devices != 'cpu':  # logarithms and sines of GPUs are others in the last bit
            how = {**how, 'exact': False}
        problems = weir_probe.compare(how, case['types'], pair, weir, weaker)
        problems += weir_probe.check_mistyped(probe, reader.blob(case['node']), inputs, case.get('typed', []))
        if case.get('exhausted') and not problems:
            exact = not case['options'].get('shapes_only')
            problems += weir_probe.check_exhausted(probe, reader.blob(case['node']), inputs, weir[1], exact, last)
        if options.strict:
            problems += weaker
        if problems:
            row[1] += 1
            print(f'FAIL {case["where"]} {case["text"]}\n    ' + '\n    '.join(problems), flush=True)
    return rows


def print_rows(results):
    """The table; the exit status."""
    rows = {}
    for part in results:
        for op, counts in (part or {}).items():
            rows[op] = [a + b for a, b in zip(rows.get(op, [0, 0, 0]), counts)]
    print(f'{"op":40} {"cases":>6} {"failures":>8} {"unreported":>10}')
    for op in sorted(rows):
        print(f'{op:40} {rows[op][0]:6} {rows[op][1]:8} {rows[op][2]:10}')
    failures, unreported = (sum(r[i] for r in rows.values()) for i in (1, 2))
    print(f'{len(rows)} ops, {sum(r[0] for r in rows.values())} cases, {failures} failures'
          + (f', {unreported} errors that a GPU does not report' if unreported else ''))
    return 1 if failures or None in results or not rows else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--replay', metavar='FILE', required=True)
    parser.add_argument('--probe', help='libweir_probe.so, built already')
    parser.add_argument('--lib', default=os.path.join(tempfile.gettempdir(), 'weir_probe'))
    parser.add_argument('--devices', metavar='LIST', default='cpu', help='the last of which runs what it has kernels for: cpu,cuda')
    parser.add_argument('--strict', action='store_true', help='a shape less known than TensorFlow\'s is a failure')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('names', nargs='*', help='ops')
    options = parser.parse_args()
    reader = record.Reader(options.replay, 'oracle')
    return print_rows(run_parts(options.jobs, lambda part, current: run_nodes(options, reader, part, current)))


if __name__ == '__main__':
    sys.exit(main())
