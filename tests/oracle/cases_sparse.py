"""Sparse tensors: indices, values and shape."""
import numpy as np
import ml_dtypes

BF16 = ml_dtypes.bfloat16
REAL = [np.float32, np.float64, np.float16, BF16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
NUMBER = REAL + [np.complex64, np.complex128]
FLOATING = [np.float32, np.float64, np.float16, BF16]
I64 = np.int64


def values(rng, dtype, n):
    if dtype == bytes:
        return np.array([bytes(rng.integers(97, 123, rng.integers(0, 30)).astype(np.uint8)) for _ in range(n)] + [None], object)[:-1]
    if dtype == bool:
        return rng.integers(0, 2, n).astype(bool)
    kind = np.dtype(dtype).kind
    if kind in 'iu':
        return rng.integers(0, 20, n).astype(dtype)
    x = rng.standard_normal(n) + 0.1
    if kind == 'c':
        x = x + 1j * rng.standard_normal(n)
    return np.asarray(x).astype(dtype)


def dense(rng, dtype, shape):
    return values(rng, dtype, int(np.prod(shape))).reshape(shape)


def sparse(rng, dtype, shape, density=0.5, shuffled=False):
    """[indices, values, shape] in order, unless |shuffled|."""
    cells = int(np.prod(shape))
    flat = np.sort(rng.choice(cells, int(round(cells * density)), replace=False)) if cells else np.zeros(0, I64)
    if shuffled:
        rng.shuffle(flat)
    indices = np.stack(np.unravel_index(flat, shape), 1).astype(I64) if shape and flat.size else np.zeros((flat.size, len(shape)), I64)
    return [indices, values(rng, dtype, len(flat)), np.array(shape, I64)]


def close(dtype):
    if dtype == np.float16:
        return dict(rtol=5e-3, atol=2e-3)
    if dtype == BF16:
        return dict(rtol=5e-2, atol=2e-2)
    return dict(rtol=1e-5, atol=1e-6) if dtype in (np.float32, np.complex64) else dict(rtol=1e-12, atol=1e-12)


def broken(triple):
    """The same sparse tensor with one thing wrong each, that no op can overlook or that some must."""
    i, v, s = triple
    n = len(v)
    far, low, twice = i.copy(), i.copy(), i.copy()
    far[n // 2, -1] = s[-1]
    low[0, 0] = -1
    twice[1] = twice[0]
    yield [i[:, 0], v, s]
    yield [i[None], v, s]
    yield [i, v[:, None], s]
    yield [i, v[0], s]
    yield [i, v, s[None]]
    yield [i, v, s[0]]
    yield [i[:-1], v, s]
    yield [i, v[:-1], s]
    yield [i, v, s[:-1]]
    yield [i, v, np.concatenate([s, [3]]).astype(I64)]
    yield [i[:, :-1], v, s]
    yield [far, v, s]
    yield [low, v, s]
    yield [i[::-1], v, s]
    yield [twice, v, s]
    yield [i, v, np.concatenate([-s[:1], s[1:]]).astype(I64)]
    yield [i, v, np.concatenate([s[:-1], [2**62]]).astype(I64)]


def reject(check, op, before, triple, after, attrs=None, skip=(), **options):
    for k, bad in enumerate(broken(triple)):
        if k not in skip:
            check(op, before + bad + after, attrs, **options)


SHAPES = [(), (0,), (6,), (4, 5), (0, 3), (3, 0), (2, 3, 4), (2, 1, 2, 3), (2, 1, 2, 1, 2, 2)]


def reorder(check, rng):
    for dtype in NUMBER + [bool, bytes]:
        for shape in [(7,), (5, 6), (2, 3, 4)]:
            check('SparseReorder', sparse(rng, dtype, shape, 0.6, shuffled=True))
    for shape in SHAPES[1:]:
        check('SparseReorder', sparse(rng, np.float32, shape, 0.7, shuffled=True))
        check('SparseReorder', sparse(rng, np.float64, shape, 0.7))
    check('SparseReorder', sparse(rng, np.float32, (60, 50, 20), 0.5, shuffled=True))
    check('SparseReorder', sparse(rng, np.float32, (3, 2**40, 2**41)[:1], 0.5, shuffled=True))
    i, v, _ = sparse(rng, np.float64, (5, 4), 0.8, shuffled=True)
    check('SparseReorder', [i, v, np.array([2**40, 2**22], I64)])
    check('SparseReorder', [i[[0, 1, 0, 2, 1]], v[:5], np.array([5, 4], I64)])
    reject(check, 'SparseReorder', [], sparse(rng, np.float32, (4, 5)), [])


def reshape(check, rng):
    for shape, to in [((6,), [2, 3]), ((6,), [-1]), ((4, 5), [10, 2]), ((4, 5), [2, -1, 5]), ((4, 5), [-1]), ((2, 3, 4), [24]),
                      ((2, 3, 4), [2, 3, 4]), ((2, 3, 4), [4, -1]), ((0, 3), [0]), ((0, 3), [3, 0, 2]), ((0, 3), [-1, 3]), ((3, 0), [-1]),
                      ((0,), [0, -1]), ((0, 5), [0, -1]), ((4, 5), [-1, -1]), ((4, 5), [3, -1]), ((4, 5), [21]), ((4, 5), [-2, 10]), ((4, 5), []),
                      ((1,), []), ((4, 5), [4, 5]), ((4, 5), [0, -1]), ((4, 5), [2**62, 4])]:
        i, _, s = sparse(rng, np.float32, shape)
        check('SparseReshape', [i, s, np.array(to, I64)])
    i, _, s = sparse(rng, np.float32, (4, 5))
    for bad in ([i[:, 0], s, [20]], [i, s[None], [20]], [i, s, [[20]]], [i, s, 20], [i, s[:1], [4]], [i[:, :1], s, [20]],
                [i, -s, [20]], [i, np.array([4, -5]), [-1]], [i, np.array([2**62, 5]), [-1]], [i - 1, s, [-1]], [i + 4, s, [-1]]):
        check('SparseReshape', [np.array(x, I64) for x in bad])


def concat(check, rng):
    for dtype in NUMBER + [bool, bytes]:
        parts = [sparse(rng, dtype, (3, n), 0.5) for n in (2, 4)]
        check('SparseConcat', [p[k] for k in range(3) for p in parts], {'concat_dim': 1})
    for shapes, axis in [([(2, 3), (4, 3)], 0), ([(2, 3), (4, 3)], -2), ([(2, 3), (2, 1), (2, 0)], 1), ([(2, 3), (2, 1)], -1),
                         ([(2, 3, 4), (2, 1, 4), (2, 2, 4)], 1), ([(4,), (5,)], 0), ([(0,), (0,)], 0), ([(0, 2), (0, 3)], 1),
                         ([(2, 3), (4, 3)], 1), ([(2, 3), (2, 3)], 2), ([(2, 3), (2, 3)], -3), ([(2, 3), (2, 3, 1)], 0)]:
        parts = [sparse(rng, np.float32, s, 0.6) for s in shapes]
        check('SparseConcat', [p[k] for k in range(3) for p in parts], {'concat_dim': axis})
    parts = [sparse(rng, np.float32, (5, 4), 0.6, shuffled=True) for _ in range(3)]
    for axis in (0, 1):
        check('SparseConcat', [p[k] for k in range(3) for p in parts], {'concat_dim': axis})
    good = sparse(rng, np.float32, (4, 5))
    for k, bad in enumerate(broken(good)):
        if k == 14:  # which of two equal rows comes first depends on TensorFlow's sort
            continue
        for parts in ([bad, good], [good, bad]):
            check('SparseConcat', [p[k] for k in range(3) for p in parts], {'concat_dim': 1})


def split(check, rng):
    for dtype in NUMBER + [bool, bytes]:
        check('SparseSplit', [I64(1)] + sparse(rng, dtype, (3, 7), 0.5), {'num_split': 3})
    for shape, axis, n in [((6,), 0, 3), ((7,), 0, 3), ((7,), 0, 7), ((7,), 0, 8), ((7,), 0, 1), ((4, 5), 0, 2), ((4, 5), 1, 2), ((2, 3, 4), 2, 2),
                           ((2, 3, 4), -1, 2), ((2, 3, 4), -3, 2), ((2, 3, 4), 3, 2), ((2, 3, 4), -4, 2), ((0, 3), 1, 2), ((3, 0), 0, 2),
                           ((3, 0), 1, 1)]:
        check('SparseSplit', [I64(axis)] + sparse(rng, np.float32, shape, 0.6), {'num_split': n})
    check('SparseSplit', [np.array([1], I64)] + sparse(rng, np.float32, (4, 5)), {'num_split': 2})
    check('SparseSplit', [np.array([1, 0], I64)] + sparse(rng, np.float32, (4, 5)), {'num_split': 2})
    reject(check, 'SparseSplit', [I64(1)], sparse(rng, np.float32, (4, 5)), [], {'num_split': 2})
    reject(check, 'SparseSplit', [I64(0)], sparse(rng, np.float32, (4, 5)), [], {'num_split': 3})


def slices(check, rng):
    for dtype in NUMBER + [bool, bytes]:
        check('SparseSlice', sparse(rng, dtype, (5, 6)) + [np.array([1, 2], I64), np.array([3, 3], I64)])
    for shape, start, size in [((6,), [2], [3]), ((6,), [2], [30]), ((6,), [6], [1]), ((6,), [7], [1]), ((4, 5), [0, 0], [4, 5]), ((4, 5), [1, 1], [2, 0]),
                               ((4, 5), [3, 4], [9, 9]), ((2, 3, 4), [0, 1, 1], [2, 1, 2]), ((0, 3), [0, 1], [0, 2]), ((4, 5), [-1, 0], [2, 2]),
                               ((4, 5), [0, 0], [-1, 2]), ((4, 5), [0], [2]), ((4, 5), [0, 0, 0], [2, 2, 2]), ((4, 5), [0, 0], [2]),
                               ((4, 5), [5, 0], [2, 2]), ((4, 5), [2**62, 0], [2**62, 2]), ((4, 5), [[0, 0]], [[2, 2]]), ((4, 5), [0, 0], [[2, 2]])]:
        check('SparseSlice', sparse(rng, np.float64, shape) + [np.array(start, I64), np.array(size, I64)])
    reject(check, 'SparseSlice', [], sparse(rng, np.float32, (4, 5)), [np.array([1, 1], I64), np.array([2, 3], I64)])
    for dtype in NUMBER:
        i, _, s = sparse(rng, np.float32, (5, 6))
        start, size = np.array([1, 2]), np.array([3, 3])
        inside = np.all((i >= start) & (i < start + size), 1)
        out = i[inside] - start
        check('SparseSliceGrad', [values(rng, dtype, len(out)), i, start, out])
    v = values(rng, np.float32, len(out))
    check('SparseSliceGrad', [np.zeros(0, np.float32), i, start, np.zeros((0, 2), I64)])
    check('SparseSliceGrad', [np.zeros(0, np.float32), i[:0], start, np.zeros((0, 2), I64)])
    for bad in ([v[:, None], i, start, out], [v, i[:, 0], start, out], [v, i, start[None], out], [v, i, start, out[:, 0]], [v, i[:, :1], start, out],
                [v, i, start, out[:, :1]], [v, i, start[:1], out], [v[:-1], i, start, out], [v, i, start, out + 1], [v, i[::-1], start, out[::-1]],
                [v, i[::-1], start, out], [v, i[:2], start, out]):
        check('SparseSliceGrad', bad)


def add(check, rng):
    for dtype in (np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.complex64, np.complex128):
        real = {np.complex64: np.float32, np.complex128: np.float64}.get(dtype, dtype)
        for shape in ((6,), (4, 5), (2, 3, 4)):
            for thresh in (0, 1):
                check('SparseAdd', sparse(rng, dtype, shape) + sparse(rng, dtype, shape) + [real(thresh)], numeric=not thresh)
        i, v, s = sparse(rng, dtype, (4, 5))
        check('SparseAdd', [i, v, s, i, (0 - v).astype(dtype), s, real(0)], numeric=False)
        check('SparseAdd', [i, v, s, i, (0 - v).astype(dtype), s, real(1)], numeric=False)
        a, b = sparse(rng, dtype, (4, 5)), sparse(rng, dtype, (4, 5))
        union = np.array(sorted({tuple(r) for r in np.concatenate([a[0], b[0]])}), I64)
        check('SparseAddGrad', [values(rng, dtype, len(union)), a[0], b[0], union])
        check('SparseAddGrad', [values(rng, dtype, len(union) - 3), a[0], b[0], union[3:]])
    a, b = sparse(rng, np.float32, (4, 5)), sparse(rng, np.float32, (4, 5))
    for shape in ((0,), (3, 0)):
        check('SparseAdd', sparse(rng, np.float32, shape) * 2 + [np.float32(0)])
    check('SparseAdd', a + sparse(rng, np.float32, (4, 5), 0) + [np.float32(0)])
    check('SparseAdd', a + b + [np.float32(-1)])
    check('SparseAdd', a + b + [np.float32([0])])
    check('SparseAdd', a + b + [np.float32([0, 1])])
    check('SparseAdd', a + b + [np.float64(0)])
    check('SparseAdd', a + b + [np.int32(0)])
    check('SparseAdd', a + sparse(rng, np.float32, (5, 4)) + [np.float32(0)])
    check('SparseAdd', a + sparse(rng, np.float32, (20,)) + [np.float32(0)])
    reject(check, 'SparseAdd', [], a, b + [np.float32(0)])
    reject(check, 'SparseAdd', a, b, [np.float32(0)])
    v = values(rng, np.float32, len(a[0]))
    for bad in ([v[:, None], a[0], a[0], a[0]], [v, a[0][:, 0], a[0], a[0]], [v, a[0], a[0][:, 0], a[0]], [v, a[0], a[0], a[0][:, 0]],
                [v[:-1], a[0], a[0], a[0]], [v, a[0][:, :1], a[0], a[0]], [v, a[0], a[0][:, :1], a[0]], [v, a[0], a[0], a[0][:, :1]],
                [v, a[0], b[0], b[0][:len(v)]], [v, a[0][::-1], b[0], a[0]]):
        check('SparseAddGrad', bad)
    for dtype in NUMBER:
        for index in (np.int32, np.int64):
            for shape in ((6,), (4, 5), (2, 3, 4), (2, 1, 2, 3)):
                i, v, s = sparse(rng, dtype, shape)
                check('SparseTensorDenseAdd', [i.astype(index), v, s.astype(index), dense(rng, dtype, shape)])
    i, v, s = sparse(rng, np.float32, (4, 5))
    check('SparseTensorDenseAdd', [i[[0, 0, 1]], v[:3], s, dense(rng, np.float32, (4, 5))])
    check('SparseTensorDenseAdd', sparse(rng, np.float32, (2, 1, 2, 1, 2)) + [dense(rng, np.float32, (2, 1, 2, 1, 2))])
    check('SparseTensorDenseAdd', sparse(rng, np.float32, (2, 1, 2, 1, 2, 1)) + [dense(rng, np.float32, (2, 1, 2, 1, 2, 1))])
    check('SparseTensorDenseAdd', sparse(rng, np.float32, (0, 3)) + [dense(rng, np.float32, (0, 3))])
    check('SparseTensorDenseAdd', [i, v, s, dense(rng, np.float32, (5, 4))])
    check('SparseTensorDenseAdd', [i, v, s, dense(rng, np.float32, (4,))])
    check('SparseTensorDenseAdd', [np.zeros((1, 0), I64), v[:1], np.zeros(0, I64), np.float32(2)])
    reject(check, 'SparseTensorDenseAdd', [], [i, v, s], [dense(rng, np.float32, (4, 5))])


def dense_matmul(check, rng):
    for dtype in FLOATING + [np.int32, np.complex64, np.complex128]:
        for index in (np.int32, np.int64):
            for adjoint_a in (False, True):
                for adjoint_b in (False, True):
                    for n in (1, 3, 40):
                        i, v, s = sparse(rng, dtype, (5, 4), 0.5, shuffled=True)
                        inner = 5 if adjoint_a else 4
                        b = dense(rng, dtype, (n, inner) if adjoint_b else (inner, n))
                        check('SparseTensorDenseMatMul', [i.astype(index), v, s, b], {'adjoint_a': adjoint_a, 'adjoint_b': adjoint_b}, **close(dtype))
    for a, b in (((0, 4), (4, 3)), ((5, 0), (0, 3)), ((5, 4), (4, 0)), ((50, 40), (40, 30)), ((4, 5), (4, 5)), ((4, 5), (5,)), ((4, 5), (5, 2, 2)),
                 ((300, 200), (200, 64))):
        for adjoint in (False, True):
            check('SparseTensorDenseMatMul', sparse(rng, np.float32, a, 0.3, True) + [dense(rng, np.float32, b)], {'adjoint_b': adjoint}, rtol=1e-4, atol=1e-4)
    check('SparseTensorDenseMatMul', sparse(rng, np.float32, (4, 5, 2), 0.3) + [dense(rng, np.float32, (5, 3))])
    i, v, s = sparse(rng, np.float64, (4, 5))
    check('SparseTensorDenseMatMul', [i[[0, 0, 1, 1]], v[:4], s, dense(rng, np.float64, (5, 3))])
    check('SparseTensorDenseMatMul', [i, v, np.array([0, 5], I64), np.ones((5, 3))])  # indices are not looked at
    check('SparseTensorDenseMatMul', [i, v, np.array([2, 5], I64), np.ones((5, 0))])
    x = dense(rng, np.float64, (5, 3))
    x[1] = np.nan
    check('SparseTensorDenseMatMul', [i, v, s, x], name='specials')
    reject(check, 'SparseTensorDenseMatMul', [], sparse(rng, np.float32, (4, 5)), [dense(rng, np.float32, (5, 3))], skip=(15,))  # ends TensorFlow's process
    reject(check, 'SparseTensorDenseMatMul', [], sparse(rng, np.float32, (5, 4)), [dense(rng, np.float32, (5, 3))], {'adjoint_a': True}, skip=(16,))
    for ta in (np.float32, BF16):
        for tb in (np.float32, BF16):
            for trans_a in (False, True):
                for trans_b in (False, True):
                    for m, k, n in ((2, 3, 4), (7, 40, 33), (1, 1, 1)):
                        a, b = dense(rng, ta, (k, m) if trans_a else (m, k)), dense(rng, tb, (n, k) if trans_b else (k, n))
                        a[a < 0] = 0
                        loose = dict(rtol=1e-2, atol=1e-2) if BF16 in (ta, tb) else dict(rtol=1e-5, atol=1e-5)
                        check('SparseMatMul', [a, b], {'transpose_a': trans_a, 'transpose_b': trans_b, 'a_is_sparse': bool(m % 2)}, **loose)
                        check('SparseMatMul', [a, b], {'transpose_a': trans_a, 'transpose_b': trans_b, 'b_is_sparse': True}, **loose)
    for a, b in (((2, 3), (4, 3)), ((2,), (2, 3)), ((2, 3), (3,)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((1, 2, 3), (3, 2))):
        check('SparseMatMul', [dense(rng, np.float32, a), dense(rng, np.float32, b)])


AXES = [[], [0], [1], [-1], [0, 1], [1, 0], [0, 0], [-2], [2], [-3], [[0, 1]], 1]


def reduce(check, rng):
    for op in ('SparseReduceSum', 'SparseReduceMax', 'SparseReduceSumSparse', 'SparseReduceMaxSparse'):
        for dtype in NUMBER if 'Sum' in op else REAL:
            for keep in (False, True):
                check(op, sparse(rng, dtype, (4, 5)) + [np.int32([1])], {'keep_dims': keep}, **close(dtype))
                check(op, sparse(rng, dtype, (3, 2, 4)) + [np.int32([0, 2])], {'keep_dims': keep}, **close(dtype))
        for axes in AXES:
            for keep in (False, True):
                check(op, sparse(rng, np.float64, (4, 5)) + [np.int32(axes)], {'keep_dims': keep}, **close(np.float64))
        for shape in SHAPES[1:]:
            check(op, sparse(rng, np.float64, shape) + [np.int32([0])], **close(np.float64))
            check(op, sparse(rng, np.float64, shape) + [np.int32([-1])], {'keep_dims': True}, **close(np.float64))
        check(op, sparse(rng, np.float64, (4, 5), 0.6, True) + [np.int32([0])], **close(np.float64))
        for axes in ([1], [0]):
            reject(check, op, [], sparse(rng, np.float64, (4, 5)), [np.int32(axes)], **close(np.float64))


def cwise(check, rng):
    for op in ('SparseDenseCwiseAdd', 'SparseDenseCwiseMul', 'SparseDenseCwiseDiv'):
        for dtype in REAL:
            for shape, other in (((4, 5), (4, 5)), ((4, 5), (5,)), ((4, 5), (4, 1)), ((4, 5), ()), ((2, 3, 4), (3, 1)), ((6,), (1,))):
                y = dense(rng, dtype, other)
                y = np.where(y == 0, np.ones_like(y), y)
                check(op, sparse(rng, dtype, shape) + [y], **close(dtype))
        for shape, other in (((0, 3), (3,)), ((4, 5), (4,)), ((4, 5), (1, 4, 5)), ((4, 5), (5, 4)), ((4, 1), (4, 5)), ((2, 1, 2, 3), (2, 1)),
                             ((2, 1, 2, 1, 2), (2,)), ((2, 1, 2, 1, 2, 1), (2, 1)), ((5,), (0,)), ((), ())):
            check(op, sparse(rng, np.float64, shape) + [dense(rng, np.float64, other)])
        check(op, sparse(rng, np.int32, (4, 5)) + [np.zeros(5, np.int32)], name='specials')
        check(op, sparse(rng, np.float32, (4, 5)) + [np.zeros(5, np.float32)], name='specials')
        check(op, sparse(rng, np.float64, (4, 5), 0.6, True) + [dense(rng, np.float64, (5,))])
        reject(check, op, [], sparse(rng, np.float64, (4, 5)), [dense(rng, np.float64, (4, 5))])
        reject(check, op, [], sparse(rng, np.float64, (4, 5)), [dense(rng, np.float64, (5,))])


def softmax(check, rng):
    for dtype in (np.float32, np.float64, np.float16):
        for shape in SHAPES[3:]:
            check('SparseSoftmax', sparse(rng, dtype, shape), **close(dtype))
    check('SparseSoftmax', sparse(rng, np.float32, (6,)))
    check('SparseSoftmax', sparse(rng, np.float32, ()))
    i, v, s = sparse(rng, np.float64, (4, 5))
    check('SparseSoftmax', [i, v * 1000, s])
    v = v.copy()
    v[2] = -np.inf
    check('SparseSoftmax', [i, v, s], name='specials')
    reject(check, 'SparseSoftmax', [], sparse(rng, np.float64, (4, 5)), [])


def extremes(check, rng):
    for op in ('SparseSparseMaximum', 'SparseSparseMinimum'):
        for dtype in REAL:
            for shape in ((6,), (4, 5), (2, 3, 4)):
                check(op, sparse(rng, dtype, shape) + sparse(rng, dtype, shape))
        a, b = sparse(rng, np.float32, (4, 5)), sparse(rng, np.float32, (4, 5))
        for shape in ((0,), (3, 0)):
            check(op, sparse(rng, np.float32, shape) * 2)
        check(op, a + sparse(rng, np.float32, (4, 5), 0))
        check(op, a + sparse(rng, np.float32, (5, 4)))
        check(op, a + sparse(rng, np.float32, (20,)))
        reject(check, op, [], a, b)
        reject(check, op, a, b, [])


def fill(check, rng):
    for dtype in NUMBER + [bool, bytes]:
        check('SparseFillEmptyRows', sparse(rng, dtype, (6, 4), 0.2) + [values(rng, dtype, 1)[0]])
        check('SparseFillEmptyRows', sparse(rng, dtype, (6, 4), 0.4, True) + [values(rng, dtype, 1)[0]])
        if dtype in NUMBER:
            check('SparseFillEmptyRowsGrad', [np.array([2, 0, 5], I64), values(rng, dtype, 7)], **close(dtype))
    for shape in SHAPES[1:]:
        check('SparseFillEmptyRows', sparse(rng, np.float64, shape, 0.3) + [np.float64(7)])
    check('SparseFillEmptyRows', sparse(rng, np.float64, (), 0.3) + [np.float64(7)])
    check('SparseFillEmptyRows', sparse(rng, np.float64, (5, 3), 1) + [np.float64(7)])
    check('SparseFillEmptyRows', sparse(rng, np.float64, (5, 3), 0) + [np.float64(7)])
    check('SparseFillEmptyRows', sparse(rng, np.float64, (5, 3)) + [np.float64([7])])
    reject(check, 'SparseFillEmptyRows', [], sparse(rng, np.float64, (4, 5)), [np.float64(7)])
    for index, grad in (([], []), ([], [1.0]), ([0, 0], [1.0, 2.0]), ([0, 2], [1.0, 2.0]), ([-1], [1.0]), ([[0]], [1.0]), ([0], [[1.0]])):
        check('SparseFillEmptyRowsGrad', [np.array(index, I64), np.array(grad, np.float64)])


def cases(check, rng):
    for family in (reorder, reshape, concat, split, slices, add, dense_matmul, reduce, cwise, softmax, extremes, fill):
        family(check, rng)
