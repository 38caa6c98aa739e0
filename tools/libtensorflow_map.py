#!/usr/bin/env python3
"""libtensorflow_map.py — Writes tools/libtensorflow.map: the functions that the headers of include/tensorflow/ declare.

With --check it compares only, and with --library FILE also with what that exports. Exits 1 and says what differs.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAP = ROOT / 'tools' / 'libtensorflow.map'
DECLARATION = re.compile(r'TF_CAPI_EXPORT\s+(?:extern\s+)?[^;(]*?\b(TFE?_\w+)\s*\(', re.S)


def declared():
    names = {}
    for header in sorted((ROOT / 'include' / 'tensorflow').rglob('*.h')):
        text = re.sub(r'//[^\n]*', '', header.read_text())
        for name in DECLARATION.findall(text):
            names[name] = str(header.relative_to(ROOT / 'include'))
    return names


def exported(library):
    text = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split('@')[0] for line in text.splitlines()} - {'_init', '_fini'}


def write():
    lines = ''.join(f'    {name};\n' for name in sorted(declared()))
    return f'{{\n  global:\n{lines}  local: *;\n}};\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--library')
    args = parser.parse_args()
    bad = []
    if args.check or args.library:
        if MAP.read_text() != write():
            bad.append('tools/libtensorflow.map is not what the headers declare: run tools/libtensorflow_map.py')
        if args.library:
            there, wanted = exported(args.library), set(declared())
            bad += [f'{name} is declared, but {args.library} does not export it' for name in sorted(wanted - there)]
            bad += [f'{args.library} exports {name}, which no header declares' for name in sorted(there - wanted)]
    else:
        MAP.write_text(write())
    print('\n'.join(bad) or f'{len(declared())} functions')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
