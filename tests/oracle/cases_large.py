"""Rows and ids of such numbers that GPUs go other ways about them: in several launches, or by several threads."""
import numpy as np


def top(check, rng):
    for t in (np.float32, np.float64, np.float16, np.int8, np.uint64):
        x = (rng.standard_normal((2, 9000)) * 50).clip(0 if t is np.uint64 else -100, 100).astype(t)
        for k in (1, 700, 5000, 9000):
            check('TopKV2', [x, np.int32(k)], gradient=False)
    x = rng.standard_normal((3, 5000)).astype(np.float32)
    x[0, ::7], x[0, 1::7], x[1] = np.inf, -np.inf, 1
    check('TopKV2', [x, np.int32(1000)], gradient=False)
    check('TopKV2', [rng.standard_normal((5000, 3)).astype(np.float32), np.int32(2)], gradient=False)
    check('TopKV2', [rng.integers(0, 9, (1, 70000)), np.int32(3000)], {'index_type': np.int64}, gradient=False)


def segments(check, rng):
    close = dict(rtol=1e-10, gradient=False)
    for op in ('SegmentSum', 'SegmentMean', 'SegmentProd', 'SegmentMax', 'SegmentMin'):
        for shape in ((2500,), (2500, 3), (2500, 70)):
            x = rng.uniform(0.9, 1.1, shape)
            check(op, [x, np.sort(rng.integers(0, 5, 2500)).astype(np.int32)], **close)
            check(op, [x, np.sort(rng.integers(0, 3000, 2500))], **close)
        check(op, [rng.uniform(0.9, 1.1, 2500).astype(np.float32), np.sort(rng.integers(0, 9, 2500))], rtol=1e-4, gradient=False)


def sparse_segments(check, rng):
    close = dict(rtol=1e-10, gradient=False)
    for op in ('SparseSegmentSum', 'SparseSegmentMean', 'SparseSegmentSqrtN'):
        for most in (6, 2000):
            for tail in ((), (3,), (40,)):
                indices = rng.integers(0, 50, 2500).astype(np.int32)
                ids = np.sort(rng.integers(0, most, 2500)).astype(np.int32)
                x = rng.uniform(0.5, 2, (50,) + tail)
                check(op, [x, indices, ids], **close)
                check(op + 'WithNumSegments', [x, indices, ids, np.int32(most + 2)], **close)
                dy = rng.uniform(0.5, 2, (most,) + tail)
                few = slice(0, 2500, 3)  # so that GPUs add them in their order
                check(op + 'Grad', [dy, indices[few], ids[few], np.int32(60)], **close)
                check(op + 'GradV2', [dy, indices[few].astype(np.int64), ids[few], np.int32(60)], **close)


def stitches(check, rng):
    for t in (np.float32, np.int8, np.float64):
        for tail in ((), (3,), (16,)):
            # The first names all rows: TensorFlow leaves others as they are. Of those that follow the last one wins.
            indices = [rng.permutation(1300), rng.integers(0, 1300, 1000), rng.integers(0, 1300, 700)]
            data = [rng.integers(-100, 100, (len(i),) + tail).astype(t) for i in indices]
            check('DynamicStitch', [i.astype(np.int32) for i in indices] + data, {'N': 3}, gradient=False)
    indices = np.split(rng.permutation(1300).astype(np.int32), [600])
    check('ParallelDynamicStitch', indices + [rng.standard_normal((len(i), 5)) for i in indices], {'N': 2}, gradient=False)


def cases(check, rng):
    top(check, rng)
    segments(check, rng)
    sparse_segments(check, rng)
    stitches(check, rng)
