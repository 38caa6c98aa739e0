#!/usr/bin/env python3
"""What lookups and sparse updates of a table in a sparse file cost, by its size: a table for docs/training.md.

    huge.py [--bench build/release/huge_bench] [--folder /tmp] [--sizes 0.1,1,10,100]

Each size in gigabytes gets a file of its own, which is made sparse and removed again: what is not written takes no disk. The file system
must have files that large and holes in them.
"""
import argparse
import json
import os
import subprocess
import tempfile


def measure(bench, folder, size):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        return json.loads(subprocess.run([bench, os.path.join(own, 'table'), size], check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bench', default='build/release/huge_bench')
    parser.add_argument('--folder')
    parser.add_argument('--sizes', default='0.1,1,10,100')
    options = parser.parse_args()
    print('| table | rows | opened | 1024 rows read, first time | again | and updated, first time | again | on the disk after it |')
    print('|---|---|---|---|---|---|---|---|')
    for size in options.sizes.split(','):
        row = measure(options.bench, options.folder, size)
        print(f'| {size} GB | {row["rows"] / 1e6:.1f} million | {row["open_us"]:.0f} µs | {row["first_us"]:.0f} µs '
              f'| {row["again_us"]:.0f} µs | {row["update_us"]:.0f} µs '
              f'| {row["update_again_us"]:.0f} µs | {row["disk_bytes"] / 1e6:.0f} MB |')


if __name__ == '__main__':
    main()
