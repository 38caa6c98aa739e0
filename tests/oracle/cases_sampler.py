"""Candidate samplers: the same seeds give the same bits as TensorFlow."""
import numpy as np


def samplers(check, rng):
    for op in ('UniformCandidateSampler', 'LogUniformCandidateSampler'):
        for limit in (1, 2, 7, 8, 100, 1024, 10007, 2**31, 2**40 + 3):
            for count in (1, 5, 64):
                for unique in (False, True):
                    for rows, columns in ((0, 1), (3, 2), (17, 1)):
                        if unique and count > limit // 2 and limit > 100:
                            continue
                        classes = rng.integers(0, limit, (rows, columns))
                        check(op, [classes], {'num_true': columns, 'num_sampled': count, 'unique': unique,
                                              'range_max': limit, 'seed': 42, 'seed2': count}, exact=True)
        attrs = {'num_true': 1, 'num_sampled': 90, 'unique': True, 'range_max': 100, 'seed': 3, 'seed2': -9}
        check(op, [np.array([[0], [99]], np.int64)], attrs, exact=True)
        check(op, [np.array([[0], [100]], np.int64)], attrs)
        check(op, [np.array([[-1], [9]], np.int64)], attrs)
        check(op, [np.array([0, 9], np.int64)], attrs)
        check(op, [np.array([[0, 9]], np.int64)], attrs)
        check(op, [np.array([[[0]]], np.int64)], attrs)
        check(op, [np.array([[0]], np.int64)], dict(attrs, range_max=89))
        check(op, [np.array([[0]], np.int64)], dict(attrs, range_max=0))
        check(op, [np.array([[0]], np.int64)], dict(attrs, num_sampled=0))


def hits(check, rng):
    for rows, columns, count in ((0, 1, 3), (4, 1, 0), (5, 2, 6), (50, 3, 40), (300, 1, 500)):
        check('ComputeAccidentalHits', [rng.integers(-50, 50, (rows, columns)), rng.integers(-50, 50, count)],
              {'num_true': columns}, exact=True)
    classes, sampled = np.array([[1, 2], [2, 3]], np.int64), np.array([2, 5, 2, 1], np.int64)
    check('ComputeAccidentalHits', [classes, sampled], {'num_true': 2}, exact=True)
    check('ComputeAccidentalHits', [classes, sampled], {'num_true': 1})
    check('ComputeAccidentalHits', [classes, sampled], {'num_true': -1})
    check('ComputeAccidentalHits', [classes[0], sampled], {'num_true': 2})
    check('ComputeAccidentalHits', [classes, classes], {'num_true': 2})
    check('ComputeAccidentalHits', [np.zeros((3, 0), np.int64), sampled], {'num_true': 0})


def weighted(check, rng):
    def fixed(classes, unigrams, samples=5, **more):
        check('FixedUnigramCandidateSampler', [np.array(classes, np.int64)],
              {'num_true': np.shape(classes)[-1], 'num_sampled': samples, 'unigrams': unigrams, 'range_max': len(unigrams), 'unique': False, 'seed': 3,
               'seed2': 4, **more}, rtol=1e-6)

    for n in (1, 2, 3, 4, 10, 100):
        weights = [float(x) for x in rng.uniform(0.1, 5, n)]
        for unique in (True, False):
            for samples in (1, n, 50):
                fixed(rng.integers(0, n, (3, 2)), weights, samples, unique=unique)
            fixed(rng.integers(0, n, (2, 1)), weights, 1, unique=unique, distortion=0.75)
    fixed([[1, 2]], [1.0, 2.0, 3.0, 4.0], num_reserved_ids=2, range_max=6)
    fixed([[1, 2]], [1.0, 2.0, 3.0, 4.0], num_shards=2, shard=1, range_max=2)
    fixed([[0, 1]], [1.0, 2.0, 3.0, 4.0], num_shards=2, shard=1, range_max=2)
    for reserved in (1, 2, 3):
        for shard in (0, 1):
            for most in (2, 3):
                fixed([[0, 1]], [1.0, 2.0, 3.0, 4.0], num_shards=2, shard=shard, range_max=most, num_reserved_ids=reserved)
    fixed([[1, 2]], [1.0, 2.0, 3.0, 4.0], range_max=5)
    fixed([[1, 9]], [1.0, 2.0, 3.0, 4.0])
    fixed([1, 2], [1.0, 2.0, 3.0, 4.0])
    fixed([[1, 2]], [])
    fixed([[1, 2]], [], range_max=3, vocab_file='nowhere/vocabulary')
    for classes in ([[1, 2], [0, 3]], [[1, 2, 3]], [[5, 1]], [1, 2], np.zeros((0, 2)), [[-1, 0]]):
        for unique in (True, False):
            check('AllCandidateSampler', [np.array(classes, np.int64)], {'num_true': 2, 'num_sampled': 4, 'unique': unique})


def cases(check, rng):
    weighted(check, rng)
    samplers(check, rng)
    hits(check, rng)
