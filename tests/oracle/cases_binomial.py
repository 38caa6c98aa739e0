"""Draws whose parameters broadcast: binomial and truncated normal ones, and casts by chance."""
import numpy as np
from ml_dtypes import bfloat16

STATE = np.int64([1, 2, 3])
PAIRS = ((10.0, 0.3, [5]), (100.0, 0.3, [3, 4]), (100.0, 0.7, [50]), (1000.0, 0.001, [20]), ([10.0, 20.0, 30.0], 0.5, [2, 3]), ([[10.0], [100.0]], [0.5, 0.1, 0.9], [2, 2, 3]),
         (2000.0, [0.0, 1.0, 0.5], [100, 3]), ([0.0, -5.0], 0.3, [2]), (10.0, [-0.5, 1.5], [2]), ([], 0.5, [3, 0]), (10.0, 0.5, [0]), (10.0, 0.5, []), ([10.0, 20.0], 0.5, [2, 3]),
         ([10.0, 20.0], [0.5, 0.25, 0.125], [2, 3]), (10.0, 0.5, 3), (10.0, 0.5, [[3]]), (10.0, 0.5, [-2]), ([[1.0]], 0.5, [1]))


def binomial(check, rng):
    for counts, probs, shape in PAIRS:
        for s in (np.int32, np.int64):
            seed = rng.integers(-2**31, 2**31, 2).astype(s)
            for t in (np.float16, np.float32, np.float64):
                for out in (np.float16, np.float32, np.float64, np.int32, np.int64):
                    pair = [np.array(counts, t), np.array(probs, t)]
                    if s is np.int32 or t is np.float64:
                        check('StatelessRandomBinomial', [np.array(shape, s), seed, *pair], {'dtype': out}, exact=True)
    nan = np.float64([np.nan, 2])
    check('StatelessRandomBinomial', [np.int32([2]), np.int32([1, 2]), np.float64(10), nan / 4], {'dtype': np.float64})
    check('StatelessRandomBinomial', [np.int32([2]), np.int32([1, 2, 3]), np.float64(10), np.float64(0.5)])
    for algorithm in (2, 3, 7, 0, [1]):
        check('StatefulRandomBinomial', [resource(STATE), np.int64(algorithm), np.int32([2]), np.float64(10), np.float64(0.5)])  # pylint: disable=undefined-variable
    for state in (np.int64([1, 2]), np.int64([[1, 2, 3]]), np.int32([1, 2, 3])):
        check('StatefulRandomBinomial', [resource(state), np.int64(1), np.int32([2]), np.float64(10), np.float64(0.5)])  # pylint: disable=undefined-variable


def truncated(check, rng):
    op = 'StatelessParameterizedTruncatedNormal'
    for t in (np.float16, np.float32, np.float64):
        near = {} if t is np.float64 else {'rtol': 2e-3 if t is np.float16 else 1e-6}
        for shape, means, deviations, low, high in (
                ([5], 0.0, 1.0, -8.0, 8.0), ([3, 2], [0.0, 1.0], 2.0, -1.4, 8.0), ([2, 4, 2], [[0.0]], [1.0, 0.5], 2.0, [3.0, 4.0]), ([6], 0.0, 1.0, 2.0, np.inf), ([6], 0.0, 1.0, -np.inf, -3.0),
                ([2, 3], [[0.0], [1.0]], 1.0, [-1.0, 0.0, 1.0], 1.5), ([0], 0.0, 1.0, -1.0, 1.0), ([7, 1], [0.5], 1.0, 0.4, 0.6)):
            for s in (np.int32, np.int64):
                check(op, [np.array(shape, s), rng.integers(-2**31, 2**31, 2).astype(s), *(np.array(p, t) for p in (means, deviations, low, high))],
                      gradient=s is np.int32 and len(shape) > 1, **near)
    f = np.float32
    for shape, means, deviations, low, high in (([2], 0, 0, -1, 1), ([2], 0, -1, -1, 1), ([2], 0, 1, 1, 0), ([2], 0, 1, -np.inf, np.inf), ([0], 0, -1, -1, 1), ([3], [0, 0], 1, -1, 1),
                                                ([2, 3], [[0], [0]], 1, -1, 1), ([2], [0, 0, 0], [1, 1], -1, 1), ([], [1], 1, -1, 1), (3, 0, 1, -1, 1), ([-3], 0, 1, -1, 1)):
        check(op, [np.int32(shape), np.int32([1, 2]), f(means), f(deviations), f(low), f(high)])
    check(op, [np.int32([2]), np.int32([1, 2, 3]), f(0), f(1), f(-1), f(1)])


def cases(check, rng):
    binomial(check, rng)
    truncated(check, rng)
