#!/usr/bin/env python3
"""Writes src/ops/string/unicode_tables.inc: what the ops on text must know of Unicode's characters.

    unicode_tables.py > src/ops/string/unicode_tables.inc

Neither Python nor the C library knows scripts, and both have another version of Unicode than TensorFlow, whose answers ours are to be.
So TensorFlow is asked about every character: UnicodeScript, StringLower and StringUpper.
"""
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

RUNES = [c for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
SIGMA, FINAL_SIGMA = '\u03a3', '\u03c2'


def lower(texts):
    return [t.decode() for t in tf.raw_ops.StringLower(input=[t.encode() for t in texts], encoding='utf-8').numpy()]


def upper(texts):
    return [t.decode() for t in tf.raw_ops.StringUpper(input=[t.encode() for t in texts], encoding='utf-8').numpy()]


def ranges_of_distance(pairs):
    """(first, last, step, distance): every |step|th character from first to last becomes another, |distance| away."""
    ranges = []
    for a, b in pairs:
        if ranges:
            first, last, step, distance = ranges[-1]
            if distance == b - a and a - last == (step or a - last) and a - last <= 2:
                ranges[-1] = (first, a, a - last, distance)
                continue
        ranges.append((a, a, 0, b - a))
    return [(first, last, step or 1, distance) for first, last, step, distance in ranges]


def ranges_of(members):
    ranges = []
    for c in members:
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    return ranges


def table(head, rows):
    print(f'static const {head} = {{')
    line = '   '
    for row in rows:
        if len(line) + len(row) > 97:
            print(line)
            line = '   '
        line += f' {row},'
    print(f'{line}\n}};\n')


def mapping(name, mapped):
    pairs = [(c, ord(t)) for c, t in zip(RUNES, mapped) if len(t) == 1 and ord(t) != c]
    table(f'case_range_t {name}_ranges[]', [f'{{0x{a:x}, 0x{b:x}, {s}, {d}}}' for a, b, s, d in ranges_of_distance(pairs)])
    several = [(c, [ord(x) for x in t] + [0] * (3 - len(t))) for c, t in zip(RUNES, mapped) if len(t) > 1]
    table(f'case_special_t {name}_specials[]', [f'{{0x{c:x}, {{{", ".join(f"0x{x:x}" for x in t)}}}}}' for c, t in several])


def main():
    print('// unicode_tables.inc — Facts about the characters of Unicode, of the version that TensorFlow has.')
    print('// Written by tools/unicode_tables.py; not to be changed by hand. Sorted.\n// clang-format off\n')
    scripts = tf.raw_ops.UnicodeScript(input=np.arange(0x110000, dtype=np.int32)).numpy()
    starts = [0] + [int(i) + 1 for i in np.nonzero(np.diff(scripts))[0]]
    table('uint32_t script_starts[]', [f'0x{c << 8 | int(scripts[c]):x}' for c in starts])
    texts = [chr(c) for c in RUNES]
    mapping('lower', lower(texts))
    mapping('upper', upper(texts))
    # A sigma after a letter with case is a final one; what has no bearing on case may stand between.
    is_cased = [t[-1] == FINAL_SIGMA for t in lower([t + SIGMA for t in texts])]
    is_passed = [t[-1] == FINAL_SIGMA for t in lower(['A' + t + SIGMA for t in texts])]
    table('rune_span_t cased[]', [f'{{0x{a:x}, 0x{b:x}}}' for a, b in ranges_of([c for c, y in zip(RUNES, is_cased) if y])])
    ignored = [c for c, y, p in zip(RUNES, is_cased, is_passed) if p and not y]
    table('rune_span_t case_ignorable[]', [f'{{0x{a:x}, 0x{b:x}}}' for a, b in ranges_of(ignored)])
    print('// clang-format on')


if __name__ == '__main__':
    main()
