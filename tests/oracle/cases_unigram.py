"""Samplers that learn weights: the first draw, and what they refuse."""
import numpy as np


def cases(check, rng):
    for op in ('LearnedUnigramCandidateSampler', 'ThreadUnsafeUnigramCandidateSampler'):
        for limit in (1, 2, 7, 8, 100, 10007):
            for count in (1, 5, 64):
                for unique in (False, True):
                    if unique and count > limit // 2:
                        continue
                    classes = rng.integers(0, limit, (3, 2))
                    check(op, [classes], {'num_true': 2, 'num_sampled': count, 'unique': unique, 'range_max': limit, 'seed': 42, 'seed2': count}, rtol=1e-6)
        attrs = {'num_true': 1, 'num_sampled': 9, 'unique': True, 'range_max': 10, 'seed': 3, 'seed2': -9}
        for classes in ([[0], [9]], [[0], [10]], [[-1], [9]], [0, 9], [[0, 9]], [[[0]]]):
            check(op, [np.int64(classes)], attrs, rtol=1e-6)
        check(op, [np.int64([[0]])], dict(attrs, range_max=8))
        check(op, [np.int64([[0]])], dict(attrs, range_max=0))
        check(op, [np.int64([[0]])], dict(attrs, num_sampled=0))
