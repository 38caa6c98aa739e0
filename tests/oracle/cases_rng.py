"""Generators in variables, and stateless draws for parameters. resource() is a variable; the oracle compares what it holds afterwards."""
import numpy as np
from ml_dtypes import bfloat16

FLOATS = (np.float16, bfloat16, np.float32, np.float64)
STATES = ([1, 2, 3], [-1, 2, 3], [2**63 - 1, -1, -5], [0, 0, 0], [7, 8, 9, 10])
STATE = np.int64([1, 2, 3])


def stateful(check, resource):
    shapes = ([3], [2, 3], [], [0], [5, 0], [1000])
    for state in STATES:
        for shape in shapes:
            for s in (np.int32, np.int64):
                args = [resource(np.int64(state)), np.int64(1), np.array(shape, s)]
                for t in FLOATS:
                    for op in ('StatefulUniform', 'StatefulStandardNormalV2', 'StatefulTruncatedNormal'):
                        check(op, args, {'dtype': t})
                for t in (np.int32, np.int64, np.uint32, np.uint64):
                    check('StatefulUniformFullInt', args, {'dtype': t})
                for t in (np.int32, np.int64):
                    check('StatefulUniformInt', args + [t(-5), t(100)], {'dtype': t})
    for op, more in (('StatefulUniform', []), ('StatefulStandardNormalV2', []), ('StatefulTruncatedNormal', []), ('StatefulUniformFullInt', []),
                     ('StatefulUniformInt', [np.int64(0), np.int64(9)])):
        shape = np.int64([3])
        for algorithm in (2, 3, 7, 0, [1]):
            check(op, [resource(STATE), np.int64(algorithm), shape] + more)
        for state in (np.int64([1, 2]), np.int64([[1, 2, 3]]), np.int32([1, 2, 3]), np.float32([1, 2, 3]), np.int64(1)):
            check(op, [resource(state), np.int64(1), shape] + more)
        for bad in (np.int64(3), np.int64([-1]), np.int64([[1]])):
            check(op, [resource(STATE), np.int64(1), bad] + more)
    for low, high in ((5, 5), (6, 5), ([5], 9), (5, [9])):
        check('StatefulUniformInt', [resource(STATE), np.int64(1), np.int64([3]), np.int64(low), np.int64(high)])
        check('StatefulUniformInt', [resource(STATE), np.int64(1), np.int64([0]), np.int64(low), np.int64(high)])


def skips(check, resource):
    for state in STATES[:4]:
        for delta in (0, 1, 10, 2**40, 2**62):
            check('RngSkip', [resource(np.int64(state)), np.int64(1), np.int64(delta)])
            check('RngReadAndSkip', [resource(np.int64(state)), np.int32(1), np.uint64(delta)])
        check('RngSkip', [resource(np.int64(state)), np.int64(1), np.int64(-1)])
        check('RngReadAndSkip', [resource(np.int64(state)), np.int32(3), np.uint64(2**63)])
    for algorithm in (2, 7, [1]):
        check('RngSkip', [resource(STATE), np.int64(algorithm), np.int64(1)])
        check('RngReadAndSkip', [resource(STATE), np.int32(algorithm), np.uint64(1)])
    for state in (np.int64([1, 2]), np.int64([[1, 2, 3]]), np.int32([1, 2, 3])):
        check('RngSkip', [resource(state), np.int64(1), np.int64(1)])
        check('RngReadAndSkip', [resource(state), np.int32(1), np.uint64(1)])
    check('RngSkip', [resource(STATE), np.int64(1), np.int64([1])])
    check('RngReadAndSkip', [resource(STATE), np.int32(1), np.uint64([1])])


def draws(check, rng):
    for s in (np.int32, np.int64):
        for seed in (np.int32([1, 2]), np.int64([2**40, -7])):
            for lam, shape in ((3.0, [5]), (0.5, [2, 3]), ([3, 20, 0.5], [4, 3]), ([[0, 1], [50, 1000]], [3, 2, 2]), (2.0, []), (2.0, [0]), ([], [3, 0]),
                               ([3, 20], [3]), ([3, 20], []), ([[1, 2]], [2])):
                for r in (np.float16, np.float32, np.float64, np.int32, np.int64):
                    for t in (np.float16, np.float32, np.float64, np.int32, np.int64):
                        check('StatelessRandomPoisson', [np.array(shape, s), seed, np.array(lam).astype(r)], {'dtype': t})
                for t in (np.float16, np.float32, np.float64):
                    alpha = np.array(lam).astype(t) + t(0.5)
                    check('StatelessRandomGammaV2', [np.array(shape, s), seed, alpha])
                    check('StatelessRandomGammaV3', [np.array(shape, s), np.uint64([5]), np.uint64([2, 2**60]), np.int32(1), alpha])
    check('StatelessRandomPoisson', [np.int32(3), np.int32([1, 2]), np.float32(1)], {'dtype': np.int32})
    check('StatelessRandomGammaV2', [np.int32([3]), np.int32([1]), np.float32(1)])
    for alg in (1, 2, 3, 9):
        check('StatelessRandomGammaV3', [np.int32([3]), np.uint64([5]), np.uint64([2, 3]), np.int32(alg), np.float32(2)])
    check('StatelessRandomGammaV3', [np.int32([3]), np.uint64([5, 6]), np.uint64([2, 3]), np.int32(1), np.float32(2)])


def cases(check, rng):
    stateful(check, resource)  # pylint: disable=undefined-variable  # set by the oracle
    skips(check, resource)  # pylint: disable=undefined-variable
    draws(check, rng)
