"""Places among sorted numbers: buckets, histograms, bounds, the n-th element, falling sequences."""
import numpy as np
import ml_dtypes

BF16 = ml_dtypes.bfloat16
REAL = [np.float32, np.float64, np.float16, BF16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def buckets(check, rng):
    for t in (np.int32, np.int64, np.float32, np.float64):
        for shape in ((), (0,), (7,), (3, 0), (100, 50)):
            x = (rng.standard_normal(shape) * 5).astype(t)
            check('Bucketize', [x], {'boundaries': [-3.5, 0.0, 0.0, 2.25]})
        for shape in ((), (0,), (50,), (3, 4), (2, 2, 2)):
            x = (rng.standard_normal(shape) * 5).astype(t)
            for out in (np.int32, np.int64):
                for low, high, count in ((0, 5, 5), (-3, 4, 1), (-10, 10, 37)):
                    check('HistogramFixedWidth', [x, np.array([low, high], t), np.int32(count)], {'dtype': out})
        for low_high, count in (([5, 0], 5), ([5, 5], 5), ([0, 5, 6], 5), (5, 5), ([0, 5], 0), ([0, 5], -1), ([0, 5], [3]), ([], 2)):
            check('HistogramFixedWidth', [np.ones(3, t), np.array(low_high, t), np.int32(count)])
    check('Bucketize', [np.array([np.nan, np.inf, -np.inf, 1], np.float32)], {'boundaries': [1.0]})
    check('Bucketize', [np.float32([1, 2])], {'boundaries': []})
    check('Bucketize', [np.float32([1, 2])], {'boundaries': [2.0, 1.0]})
    check('HistogramFixedWidth', [np.float32([-1, 0, 1.5, 2, 5, 15]), np.float32([0, 5]), np.int32(5)])
    check('HistogramFixedWidth', [np.float32([1, np.nan]), np.float32([0, 5]), np.int32(5)])


def bounds(check, rng):
    for t in REAL:
        for rows, n, m in ((1, 5, 7), (3, 4, 2), (2, 0, 3), (2, 3, 0), (0, 3, 3), (2, 100, 50)):
            row = np.sort(rng.integers(0, 20, (rows, n)), -1).astype(t)
            x = rng.integers(0, 22, (rows, m)).astype(t)
            for op in ('LowerBound', 'UpperBound'):
                for out in (np.int32, np.int64):
                    check(op, [row, x], {'out_type': out})
    for op in ('LowerBound', 'UpperBound'):
        check(op, [np.float32([[-np.inf, -1, -0.0, 0, np.inf]]), np.float32([[np.nan, 0, -0.0, -np.inf, np.inf, -2]])])
        for a, b in (((1, 2), (2, 1)), ((2,), (1,)), ((2, 1, 1), (2, 1, 1)), ((1, 2), (1,)), ((), ())):
            check(op, [np.ones(a, np.float32), np.ones(b, np.float32)])


def nth(check, rng):
    for t in REAL:
        for shape in ((1,), (7,), (3, 5), (2, 0, 4), (2, 3, 9), (4, 300)):
            x = rng.permutation(int(np.prod(shape))).reshape(shape).astype(t) if np.dtype(t).kind != 'u' or np.prod(shape) < 200 else \
                rng.integers(0, 99, shape).astype(t)
            for n in (0, shape[-1] // 2, shape[-1] - 1):
                for reverse in (False, True):
                    check('NthElement', [x, np.int32(n)], {'reverse': reverse})
    x = np.float32([[3, 1, 2, 1]])
    check('NthElement', [x, np.int32(1)])
    for n in (-1, 4, [0]):
        check('NthElement', [x, np.int32(n)])
    check('NthElement', [np.float32(1), np.int32(0)])
    check('NthElement', [np.zeros((2, 0), np.float32), np.int32(0)])


def falling(check, rng):
    pairs = ((np.int32, np.float64), (np.int64, np.float64), (np.int8, np.float32), (np.int16, np.float32), (np.float64, np.float64),
             (np.float32, np.float32), (BF16, BF16), (np.float16, np.float16))
    for t, out in pairs:
        narrow = {np.dtype(np.float16): dict(rtol=1e-2, atol=1e-2), np.dtype(BF16): dict(rtol=6e-2, atol=6e-2)}.get(np.dtype(t), dict(rtol=1e-5, atol=1e-6))
        for shape in ((), (1,), (9,), (3, 7), (2, 0), (0, 3), (2, 2, 5)) + ((2, 60),) * (narrow['rtol'] < 1e-3):
            x = (rng.standard_normal(shape) * 8).astype(t)
            if np.dtype(t) in (np.dtype(np.float16), np.dtype(BF16)):
                x = rng.permutation(max(1, x.size))[:x.size].reshape(shape).astype(t)  # sums are rounded in another order
            check('IsotonicRegression', [x], {'output_dtype': out}, gradient=len(shape) == 2 and 0 not in shape, **narrow)
    check('IsotonicRegression', [np.int32([1, 2])], {'output_dtype': np.float32})
    check('IsotonicRegression', [np.float32([[3, 3, 1], [1, 1, 1], [1, 2, 3]])])


def top(check, rng):
    for t in (np.float32, np.float16, BF16):
        for shape, k in (((7,), 3), ((3, 9), 0), ((3, 9), 9), ((2, 3, 5), 2), ((0, 4), 2)):
            x = rng.permutation(int(np.prod(shape))).reshape(shape).astype(t)
            for aggregate in (True, False):
                check('ApproxTopK', [x], {'k': k, 'aggregate_to_topk': aggregate}, gradient=k > 0 and 0 not in shape, tf_shape_differs=not aggregate)
    x = np.float32([[3, 1, 2, 5]])
    check('ApproxTopK', [x], {'k': 5})
    check('ApproxTopK', [np.float32(1)], {'k': 1})
    check('ApproxTopK', [x], {'k': 2, 'is_max_k': False})
    check('ApproxTopK', [x], {'k': 1, 'reduction_dimension': 0})


def cases(check, rng):
    buckets(check, rng)
    bounds(check, rng)
    nth(check, rng)
    falling(check, rng)
    top(check, rng)
