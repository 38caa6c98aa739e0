"""Runs some recorded cases of each op on a GPU in one process, whatever they give: for tools that watch."""
import argparse
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))

import probe as weir_probe
import record


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--records', required=True)
    parser.add_argument('--probe', required=True)
    parser.add_argument('--devices', required=True)
    parser.add_argument('--each', type=int, default=1, help='cases of an op')
    options = parser.parse_args()
    reader = record.Reader(options.records, 'oracle')
    probe = weir_probe.Probe(options.probe, None, 1, options.devices)
    counts = collections.Counter()
    for case in reader.cases:
        if counts[case['op']] >= options.each or case['kernel'] and case['kernel']['code']:
            continue
        counts[case['op']] += 1
        inputs = [weir_probe.Input(kind, dtype, reader.blob(blob)) for kind, dtype, blob in case['inputs']]
        probe.run(reader.blob(case['node']), inputs, probe.device_count - 1)
    print(f'{sum(counts.values())} cases of {len(counts)} ops')


if __name__ == '__main__':
    main()
