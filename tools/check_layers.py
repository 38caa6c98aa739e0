#!/usr/bin/env python3
"""Checks the include rule: a folder of src/ may include itself and the folders before it, never those after.

Public headers (weir/*.h) may be included anywhere. Tests may include the folders of tests/ too. Exits 1 and names each violation.
"""
import pathlib
import re
import sys

# In the order of the layer table of the architecture document.
LAYERS = ['base', 'wire', 'tensor', 'file', 'device', 'op', 'kernel', 'image', 'ops', 'graph', 'pass', 'exec', 'runtime',
          'eager', 'session', 'rpc', 'cluster', 'api', 'onnx', 'model', 'serving', 'tensorflow']
# Written by the build, not found in src/.
GENERATED = {'op_modules.inc'}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / 'src'


def is_test(path):
    return path.stem.endswith(('_test', '_fuzz', 'testing'))


def violations(path):
    layer = path.relative_to(SRC).parts[0]
    for include in INCLUDE.findall(path.read_text()):
        folder = include.split('/')[0]
        if folder == 'weir' or include in GENERATED or (path.parent / include).exists() and '/' not in include:
            continue
        if layer == 'tensorflow' and (ROOT / 'include' / include).exists():
            continue  # the headers that it implements
        if is_test(path) and ((ROOT / 'tests' / include).exists() or folder in LAYERS and (SRC / include).exists()):
            continue  # a test may build on the whole system
        if not (SRC / include).exists():
            yield f'includes "{include}", which is not in src/'
        elif folder not in LAYERS:
            yield f'includes "{include}": folder {folder}/ has no layer'
        elif LAYERS.index(folder) > LAYERS.index(layer):
            yield f'({layer}/) includes "{include}", which is above it'


def outside_violations(path):
    """Commands, examples and the user-level library see public headers only; tests may use the helpers of tests/."""
    for include in INCLUDE.findall(path.read_text()):
        if is_test(path) and (ROOT / 'tests' / include).exists():
            continue
        if not include.startswith('weir/') and not (path.parent / include).exists():
            yield f'includes "{include}": only weir/*.h is public'


def main():
    bad = []
    for path in sorted(SRC.rglob('*')):
        if path.suffix in ('.c', '.h', '.inc', '.cu'):
            if path.relative_to(SRC).parts[0] == 'library':
                bad += [f'{path.relative_to(ROOT)} {text}' for text in outside_violations(path)]
                continue
            if path.relative_to(SRC).parts[0] not in LAYERS:
                bad.append(f'{path.relative_to(ROOT)}: its folder has no layer')
                continue
            bad += [f'{path.relative_to(ROOT)} {text}' for text in violations(path)]
    for folder in ('cli', 'examples'):
        for path in sorted((ROOT / folder).rglob('*.[ch]')):
            bad += [f'{path.relative_to(ROOT)} {text}' for text in outside_violations(path)]
    print('\n'.join(bad) or 'layers: every include points to its own folder or one before it')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
