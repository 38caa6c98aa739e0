#!/usr/bin/env python3
"""libtensorflow_table.py — Writes the table of docs/libtensorflow.md: which functions of TensorFlow's headers libtensorflow.so.2 has.

TensorFlow's headers are those of the installed package, or of --include. With --check it compares only, and exits 1 where they differ.
"""
import argparse
import collections
import pathlib
import re
import sys

from libtensorflow_map import DECLARATION, ROOT, declared

DOCUMENT = ROOT / 'docs' / 'libtensorflow.md'
BEGIN, END = '<!-- table: tools/libtensorflow_table.py -->\n', '<!-- end of table -->\n'
FAMILIES = ('TFE_Monitoring',)  # too many to name them all


def theirs(include):
    """Functions by header; one that two headers declare belongs to the first."""
    by_header = collections.OrderedDict()
    seen = set()
    headers = sorted((include / 'tensorflow' / 'c').rglob('*.h'), key=lambda path: (len(path.parts), str(path)))
    for header in headers:
        names = DECLARATION.findall(re.sub(r'//[^\n]*', '', header.read_text()))
        names = [name for name in dict.fromkeys(names) if name not in seen]
        seen.update(names)
        if names:
            by_header[str(header.relative_to(include / 'tensorflow' / 'c'))] = names
    return by_header


def shortened(names):
    parts = [f'`{name}`' for name in names if not name.startswith(FAMILIES)]
    for family in FAMILIES:
        count = sum(name.startswith(family) for name in names)
        parts += [f'`{family}*` ({count})'] if count else []
    return ', '.join(parts)


def table(include):
    ours = set(declared())
    lines = ['| header | functions | there | not there |', '|---|---|---|---|']
    for header, names in theirs(include).items():
        missing = [name for name in names if name not in ours]
        what = 'all' if len(missing) == len(names) else shortened(missing)
        lines.append(f'| `{header}` | {len(names)} | {len(names) - len(missing)} | {what} |')
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--include', type=pathlib.Path)
    args = parser.parse_args()
    version = f'python{sys.version_info.major}.{sys.version_info.minor}'
    include = args.include or pathlib.Path(sys.prefix) / 'lib' / version / 'site-packages' / 'tensorflow' / 'include'
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    wanted = before + BEGIN + table(include) + END + rest.split(END)[1]
    if args.check:
        print('as it should be' if text == wanted else f'{DOCUMENT} is not what the headers say: run tools/libtensorflow_table.py')
        return int(text != wanted)
    DOCUMENT.write_text(wanted)
    return 0


if __name__ == '__main__':
    sys.exit(main())
