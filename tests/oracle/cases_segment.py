"""Reductions of gathered rows by sorted ids, and their gradients."""
import numpy as np
import ml_dtypes

BF16 = ml_dtypes.bfloat16
FLOATING = [np.float32, np.float64, np.float16, BF16]
INTEGER = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
REDUCTIONS = ('SparseSegmentSum', 'SparseSegmentMean', 'SparseSegmentSqrtN')


def make(rng, dtype, shape):
    if np.dtype(dtype).kind in 'iu':
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.uniform(0.5, 2.0, shape).astype(dtype)


def tolerance(dtype):
    if dtype == np.float16:
        return dict(rtol=5e-3, atol=1e-3)
    return dict(rtol=5e-2, atol=1e-2) if dtype == BF16 else dict(rtol=2e-6 if dtype == np.float32 else 1e-12)


def forward(check, rng, op, dtype):
    close = tolerance(dtype)
    for index in (np.int32, np.int64):
        for ids in (np.int32, np.int64):
            inputs = [make(rng, dtype, (7, 3)), np.array([6, 0, 1, 1, 3], index), np.array([0, 0, 2, 2, 5], ids)]
            check(op, inputs, **close)
            check(op + 'WithNumSegments', inputs + [index(8)], **close)
    check(op, [make(rng, dtype, (9,)), np.int32([1, 8, 2]), np.int32([0, 1, 1])], **close)
    check(op, [make(rng, dtype, (5, 2, 300)), rng.integers(0, 5, 40).astype(np.int32), np.sort(rng.integers(0, 6, 40))], **close)
    check(op, [make(rng, dtype, (4, 0)), np.int32([1, 2]), np.int32([0, 1])])
    # Without indices TensorFlow's dense gradient is uninitialised memory: the name keeps them from the checks of gradients.
    nothing = [make(rng, dtype, (4, 3)), np.zeros((0,), np.int32), np.zeros((0,), np.int32)]
    check(op, nothing, name='specials')
    check(op + 'WithNumSegments', nothing + [np.int32(3)], name='specials')


def forward_errors(check, rng, op):
    x = make(rng, np.float32, (4, 2))
    bad = [([0, 4], [0, 1]), ([0, -1], [0, 1]), ([0, 1], [1, 0]), ([0, 1], [-1, 0]), ([0, 1, 2], [0, 1]), ([[0, 1]], [[0, 1]]),
           ([0, 1], [-2, -1]), ([0, 1, 2], [0, 3, 2])]
    for indices, ids in bad:
        check(op, [x, np.int32(indices), np.int32(ids)])
        check(op + 'WithNumSegments', [x, np.int32(indices), np.int32(ids), np.int32(4)])
    check(op, [np.float32(1), np.int32([0]), np.int32([0])])
    for ids in (np.int32([2**31 - 1]), np.int64([2**31 - 1]), np.int64([0, 2**63 - 1]), np.int32([2**31 - 1, 0])):
        check(op, [x, np.zeros(len(ids), np.int32), ids])
    for segments in (np.int32(1), np.int32(-1), np.int32([3]), np.int32(0)):
        check(op + 'WithNumSegments', [x, np.int32([0, 1]), np.int32([0, 1]), segments])


def backward(check, rng, op):
    for dtype in FLOATING:
        close = tolerance(dtype)
        for index in (np.int32, np.int64):
            for ids in (np.int32, np.int64):
                check(op, [make(rng, dtype, (6, 3)), np.array([6, 0, 1, 1, 6, 3], index), np.array([0, 0, 2, 2, 2, 5], ids),
                           np.int32(8)], **close)
        check(op, [make(rng, dtype, (6, 2, 300)), rng.integers(0, 5, 40).astype(np.int32), np.sort(rng.integers(0, 6, 40)),
                   np.int32(5)], **close)
        check(op, [make(rng, dtype, (3,)), np.int32([2, 2]), np.int32([0, 2]), np.int32(4)], **close)
        check(op, [make(rng, dtype, (3, 0)), np.int32([2, 2]), np.int32([0, 2]), np.int32(4)])
        # Without indices TensorFlow's dense gradient leaves its output uninitialised.
        check(op, [make(rng, dtype, (0, 3)), np.zeros((0,), np.int32), np.zeros((0,), np.int32), np.int32(4)], shapes_only=True)
    x = make(rng, np.float32, (3, 2))
    for indices, ids, rows in (([0, 4], [0, 1], 4), ([0, -1], [0, 1], 4), ([0, 1], [0, 3], 4), ([0, 1], [-1, 0], 4),
                               ([0, 1, 2], [0, 1], 4), ([[0, 1]], [[0, 1]], 4), ([0, 1], [0, 1], [4]), ([0, 1], [0, 1], -1),
                               ([0, 1], [0, 1], 0)):
        check(op, [x, np.int32(indices), np.int32(ids), np.int32(rows)])
    check(op, [np.float32(1), np.int32([0]), np.int32([0]), np.int32(1)])


def cases(check, rng):
    for op in REDUCTIONS:
        for dtype in FLOATING + (INTEGER if op == 'SparseSegmentSum' else []):
            forward(check, rng, op, dtype)
        for name in (op, op + 'WithNumSegments'):
            extra = [np.int32(6)] if name != op else []
            check(name, [make(rng, np.float64, (5, 2)), np.int32([4, 1, 1]), np.int32([0, 2, 2])] + extra,
                  {'sparse_gradient': True})
        forward_errors(check, rng, op)
        backward(check, rng, op + 'Grad')
        backward(check, rng, op + 'GradV2')
