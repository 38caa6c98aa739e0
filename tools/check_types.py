#!/usr/bin/env python3
"""Checks that a type's name means one thing: no name is defined twice in include/, src/ and cli/.

A declaration (`typedef struct x_t x_t;`) beside the definition of its tag is the same meaning. A type of one .c file is that
file's own business unless its name begins with weir_: such a name claims the whole project. Exits 1 and names each pair.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ('include', 'src', 'cli')

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/', re.S)
# A body: struct, union or enum, with its tag and its typedef where it has them; on one line or closed at the margin, as
# clang-format writes it.
BODY = re.compile(r'^(?:typedef )?(?:struct|union|enum) (?:WEIR_\w+\([^)]*\) )?(\w+ )?'
                  r'(?:\{[^{}\n]*|\{[ \t]*\n.*?\n)\}[ \t]*(\w+)?;', re.M | re.S)
FORWARD = re.compile(r'^typedef (?:struct|union|enum) (\w+) \1;', re.M)
FUNCTION = re.compile(r'^typedef [^;{}]*?\(\*(\w+)\)\s*\([^;{}]*\);', re.M)
PLAIN = re.compile(r'^typedef [^;{}()]*?\b(\w+)(?:\[[^]]*\])?;', re.M)


def definitions(text):
    """Yields (offset, name, is_declaration) of every type that |text| names."""
    forward = {m.start(): m.group(1) for m in FORWARD.finditer(text)}
    for at, name in forward.items():
        yield at, name, True
    for m in BODY.finditer(text):
        for name in {name.strip() for name in m.groups() if name}:
            yield m.start(), name, False
    for pattern in (FUNCTION, PLAIN):
        for m in pattern.finditer(text):
            if m.start() not in forward:
                yield m.start(), m.group(1), False


def blank(match):
    """Comments become as many lines, so that offsets still tell lines."""
    return '\n' * match.group().count('\n')


def main():
    places = collections.defaultdict(list)  # where a name has a body
    declared = set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob('*')):
            if path.suffix not in ('.c', '.h', '.inc', '.cu'):
                continue
            text = COMMENT.sub(blank, path.read_text())
            for at, name, is_declaration in definitions(text):
                if path.suffix in ('.c', '.cu') and not name.startswith('weir_'):
                    continue
                declared.add(name)
                if not is_declaration:
                    places[name].append(f'{path.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}')
    bad = [f'{name}: {" and ".join(found)}' for name, found in sorted(places.items()) if len(found) > 1]
    print('\n'.join(bad) or f'types: {len(declared)} names, each with one meaning')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
