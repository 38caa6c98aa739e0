#!/usr/bin/env python3
"""Writes src/kernel/random/sobol_table.inc: what the first dimensions of Sobol's sequence are made of.

    sobol_table.py DIMENSIONS > src/kernel/random/sobol_table.inc

Their numbers are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections" (2008), as
the samples of TensorFlow show them: sample 2^j - 1 is direction number j. The polynomials follow from those, too: they are the
primitive ones of a degree that continue its first numbers to all others.
"""
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

BITS = 20
ROW = 200  # compilers take strings of 4095 characters
ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz()'  # six bits each


def directions(dimensions):
    """m[j - 1][d]: the numbers below 2^j."""
    rows = []
    for j in range(1, BITS + 1):
        sample = tf.raw_ops.SobolSample(dim=dimensions, num_results=1, skip=2**j - 2, dtype=tf.float64).numpy()[0]
        rows.append((sample * 2**j).astype(np.int64))
    return np.array(rows)


def is_primitive(polynomial, degree):
    x, order = 2, 1
    while x != 1:
        x <<= 1
        order += 1
        if x >> degree:
            x ^= polynomial
        if order > 2**degree - 1 or x == 0:
            return False
    return order == 2**degree - 1


def continues(m, degree, inner):
    """Whether the polynomial with these inner coefficients makes each number of those before it."""
    for j in range(degree, BITS):
        value = m[j - degree] ^ (m[j - degree] << degree)
        for k in range(1, degree):
            if inner >> (degree - 1 - k) & 1:
                value ^= m[j - k] << k
        if value != m[j]:
            return False
    return True


def main():
    dimensions = int(sys.argv[1])
    m = directions(dimensions).T.tolist()
    at, lines = 1, []  # dimension 0 is that of van der Corput
    for degree in range(1, BITS):
        inners = [0] if degree == 1 else [i for i in range(2**(degree - 1)) if is_primitive(2**degree | i << 1 | 1, degree)]
        words = []
        for inner in inners:
            if at == dimensions:
                break
            if not continues(m[at], degree, inner):
                sys.exit(f'dimension {at}: not made by {inner} of degree {degree}')
            bits = format(inner, f'0{degree - 1}b') if degree > 1 else ''
            bits += ''.join(format(m[at][j - 1] >> 1, f'0{j - 1}b') for j in range(2, degree + 1))
            bits += '0' * (-len(bits) % 6)
            words.append(''.join(ALPHABET[int(bits[i:i + 6], 2)] for i in range(0, len(bits), 6)))
            at += 1
        for first in range(0, len(words), ROW):
            row = words[first:first + ROW]
            each = max(1, 90 // max(1, len(row[0])))
            texts = [''.join(row[i:i + each]) for i in range(0, len(row), each)]
            lines.append(f'    {{{degree}, {len(row)},\n' + '\n'.join(f'     "{t}"' for t in texts) + '},')
        if at == dimensions:
            break
    print('// Made by tools/sobol_table.py. A row: a degree, a number of dimensions whose polynomials have\n'
          '// it, and for each of those, in digits of six bits, the inner coefficients of the polynomial and\n'
          '// the first direction numbers, which are odd, without their last bit.')
    print('\n'.join(lines))


if __name__ == '__main__':
    main()
