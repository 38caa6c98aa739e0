"""Ragged tensors: row splits and values."""
import numpy as np
import ml_dtypes

from cases_sparse import I64, NUMBER, dense, sparse, values

BF16 = ml_dtypes.bfloat16


def splits(rng, rows, most=4, dtype=I64):
    return np.concatenate([[0], np.cumsum(rng.integers(0, most + 1, rows))]).astype(dtype)


def ranges(check, rng):
    for t in (np.int32, np.int64, np.float32, np.float64):
        for s in (np.int32, np.int64):
            attrs = {'Tsplits': s}
            check('RaggedRange', [np.array([0, 5, 8], t), np.array([3, 5, 12], t), np.array([1, 1, 2], t)], attrs)
            check('RaggedRange', [np.array([3, 5], t), np.array([-3, 5], t), np.array([-2, -1], t)], attrs)
            check('RaggedRange', [t(0), np.array([3, 5, 0], t), t(2)], attrs)
            check('RaggedRange', [t(0), t(5), t(1)], attrs)
            check('RaggedRange', [np.array([], t), np.array([], t), np.array([], t)], attrs)
            check('RaggedRange', [t(0), np.array([], t), t(1)], attrs)
    x = np.array([0, 1, 2], np.int32)
    check('RaggedRange', [np.float32([0, 0.5]), np.float32([1, 2.3]), np.float32([0.1, 0.3])])
    check('RaggedRange', [np.array([3, 5], np.int32), np.array([0, 9], np.int32), np.array([1, 1], np.int32)])
    for bad in ([x[None], x, x + 1], [x, x[None], x + 1], [x, x, x[None]], [x, x + 5, x], [x, x[:2], x + 1], [x[:2], x, x + 1], [x, x, x[:2] + 1],
                [np.float32([0]), np.float32([np.inf]), np.float32([1])], [np.float32([0]), np.float32([np.nan]), np.float32([1])],
                [np.float32([np.nan]), np.float32([1]), np.float32([1])],
                [np.array([0], np.int64), np.array([2**62], np.int64), np.array([1], np.int64)],
                [np.array([0, 0], np.int32), np.array([2**31 - 1, 2**31 - 1], np.int32), np.array([1, 1], np.int32)][:0] or [x, x, 0 * x]):
        check('RaggedRange', bad)
    check('RaggedRange', [np.array([0], np.int64), np.array([2**33], np.int64), np.array([1], np.int64)], {'Tsplits': np.int32})


def gathers(check, rng):
    for t in NUMBER + [bool, bytes]:
        s = splits(rng, 5)
        check('RaggedGather', [s, values(rng, t, s[-1]), np.array([4, 0, 0, 2], np.int32)], {'PARAMS_RAGGED_RANK': 1, 'OUTPUT_RAGGED_RANK': 1})
    for index in (np.int32, np.int64):
        for st in (np.int32, np.int64):
            outer = splits(rng, 5, dtype=st)
            inner = splits(rng, outer[-1], dtype=st)
            v = dense(rng, np.float64, (inner[-1], 3))
            check('RaggedGather', [outer, inner, v, np.array([3, 1, 1], index)], {'PARAMS_RAGGED_RANK': 2, 'OUTPUT_RAGGED_RANK': 2})
            check('RaggedGather', [outer, inner, v, np.array([[3, 1], [0, 4]], index)], {'PARAMS_RAGGED_RANK': 2, 'OUTPUT_RAGGED_RANK': 3})
            check('RaggedGather', [inner, v, np.array([[3, 1], [0, 4]], index)], {'PARAMS_RAGGED_RANK': 1, 'OUTPUT_RAGGED_RANK': 2})
            check('RaggedGather', [inner, v, index(2)], {'PARAMS_RAGGED_RANK': 1, 'OUTPUT_RAGGED_RANK': 0})
            check('RaggedGather', [outer, inner, v, index(2)], {'PARAMS_RAGGED_RANK': 2, 'OUTPUT_RAGGED_RANK': 1})
            check('RaggedGather', [inner, v, np.zeros((0,), index)], {'PARAMS_RAGGED_RANK': 1, 'OUTPUT_RAGGED_RANK': 1})
            check('RaggedGather', [inner, v, np.zeros((2, 0), index)], {'PARAMS_RAGGED_RANK': 1, 'OUTPUT_RAGGED_RANK': 2})
    s, v = np.array([0, 2, 2, 5], I64), values(rng, np.float32, 5)
    one = {'PARAMS_RAGGED_RANK': 1, 'OUTPUT_RAGGED_RANK': 1}
    for bad in ([s, v, np.int32([3])], [s, v, np.int32([-1])], [s, np.float32(1), np.int32([0])], [s[None], v, np.int32([0])], [s[:0], v, np.int32([0])],
                [np.array([0, 3, 2, 5], I64), v, np.int32([0, 1])], [np.array([0, 2, 9], I64), v, np.int32([1])], [np.array([1, 2, 5], I64), v, np.int32([0])],
                [np.array([-1, 2, 5], I64), v, np.int32([0])], [np.array([0, 2, 3], I64), v, np.int32([1])], [I64(3), v, np.int32([0])]):
        check('RaggedGather', bad, one)
    check('RaggedGather', [np.array([0, 1, 4], I64), s, v, np.int32([0])], {'PARAMS_RAGGED_RANK': 2, 'OUTPUT_RAGGED_RANK': 2})


def to_sparse(check, rng):
    for t in NUMBER + [bool, bytes]:
        s = splits(rng, 5)
        check('RaggedTensorToSparse', [s, values(rng, t, s[-1])], {'RAGGED_RANK': 1})
    for st in (np.int32, np.int64):
        outer = splits(rng, 5, dtype=st)
        inner = splits(rng, outer[-1], dtype=st)
        check('RaggedTensorToSparse', [outer, inner, dense(rng, np.float64, (inner[-1],))], {'RAGGED_RANK': 2})
        check('RaggedTensorToSparse', [outer, inner, dense(rng, np.float64, (inner[-1], 2, 3))], {'RAGGED_RANK': 2})
        check('RaggedTensorToSparse', [np.array([0], st), dense(rng, np.float64, (0, 2))], {'RAGGED_RANK': 1})
        check('RaggedTensorToSparse', [np.array([0, 0, 0], st), dense(rng, np.float64, (0,))], {'RAGGED_RANK': 1})
        check('RaggedTensorToSparse', [np.array([0, 2, 3], st), dense(rng, np.float64, (3, 0))], {'RAGGED_RANK': 1})
    v = values(rng, np.float32, 5)
    for bad in ([[0, 2, 4], v], [[0, 2, 6], v], [[1, 2, 5], v], [[0, 3, 2, 5], v], [[[0, 5]], v], [[], v], [5, v], [[0, 5], v[0]]):
        check('RaggedTensorToSparse', [np.array(bad[0], I64), bad[1]], {'RAGGED_RANK': 1})
    check('RaggedTensorToSparse', [np.array([0, 1, 2], I64), np.array([0, 2, 2, 5], I64), v], {'RAGGED_RANK': 2})
    check('RaggedTensorToSparse', [np.array([0, 1, 5], I64), np.array([0, 2, 2, 5], I64), v], {'RAGGED_RANK': 2})


def to_tensor(check, rng):
    for t in NUMBER + [bool, bytes]:
        s = splits(rng, 5)
        default = values(rng, t, 1)[0]
        check('RaggedTensorToTensor', [np.array([-1, -1], I64), values(rng, t, s[-1]), default, s], {'row_partition_types': ['ROW_SPLITS']})
    for index in (np.int32, np.int64):
        for shape_type in (np.int32, np.int64):
            outer = splits(rng, 4, dtype=index)
            inner = splits(rng, outer[-1], dtype=index)
            v = dense(rng, np.float32, (inner[-1], 2))
            two = {'row_partition_types': ['ROW_SPLITS', 'ROW_SPLITS']}
            for shape in ([-1, -1, -1, -1], [-1, 2, -1, 2], [3, 5, 2, 2], [9, 1, 9, 2], [-1, 0, -1, -1], [-1, -1, -1, 3], [-1, -1, -1]):
                check('RaggedTensorToTensor', [np.array(shape, shape_type), v, np.float32(7), outer, inner], two)
            check('RaggedTensorToTensor', [np.array(-1, shape_type), v, np.float32(7), outer, inner], two)
            check('RaggedTensorToTensor', [np.array([-1, -1, -1, 2], shape_type), v, np.float32([7, 8]), outer, inner], two)
            check('RaggedTensorToTensor', [np.array([-1, -1, -1, 2], shape_type), v, np.float32([[[7], [8]]])[:, 0], outer, inner], two)
            ids = np.repeat(np.arange(3), [2, 0, 3]).astype(index)
            x = dense(rng, np.float32, (5,))
            rowids = {'row_partition_types': ['FIRST_DIM_SIZE', 'VALUE_ROWIDS']}
            for shape in ([-1, -1], [2, 2], [5, 4], [-1, 1]):
                check('RaggedTensorToTensor', [np.array(shape, shape_type), x, np.float32(7), index(4), ids], rowids)
            check('RaggedTensorToTensor', [np.array([-1, -1], shape_type), x[:0], np.float32(7), index(0), ids[:0]], rowids)
            check('RaggedTensorToTensor', [np.array([-1, -1, -1], shape_type), x, np.float32(7), index(2), np.array([0, 1, 1], index), ids],
                  {'row_partition_types': ['FIRST_DIM_SIZE', 'VALUE_ROWIDS', 'VALUE_ROWIDS']})
    x, s = dense(rng, np.float32, (5,)), np.array([0, 2, 2, 5], I64)
    one = {'row_partition_types': ['ROW_SPLITS']}
    shape = np.array([-1, -1], I64)
    # Splits that lead past the values let TensorFlow read what is behind them.
    for bad in ([shape, x, np.float32(1), np.array([0, 3, 2, 5], I64)],
                [shape, x, np.float32(1), np.array([1, 2, 5], I64)], [shape, x, np.float32(1), np.array([], I64)], [shape, x, np.float32(1), s[None]],
                [np.array([-2, -1], I64), x, np.float32(1), s], [np.array([[-1, -1]], I64), x, np.float32(1), s], [np.array([-1], I64), x, np.float32(1), s],
                [np.array([-1, -1, -1], I64), x, np.float32(1), s], [shape, np.float32(1), np.float32(1), s], [shape, x, np.float32([1, 2]), s],
                [shape, x, np.float32([[1]]), s], [shape, x, np.float32([1]), s], [shape, x, np.float32(1), np.array([0, 2, 4], I64)],
                [shape, x, np.float32(1), I64(3)]):
        check('RaggedTensorToTensor', bad, one)
    check('RaggedTensorToTensor', [I64(3), x, np.float32(1), s], one, needs_value=True)
    for types in (['ROW_LENGTHS'], ['bad'], ['VALUE_ROWIDS'], ['FIRST_DIM_SIZE'], ['ROW_LIMITS'], [], ['ROW_SPLITS', 'ROW_SPLITS']):
        check('RaggedTensorToTensor', [shape, x, np.float32(1), s], {'row_partition_types': types})
    rowids = {'row_partition_types': ['FIRST_DIM_SIZE', 'VALUE_ROWIDS']}
    for bad in ([-1, 0, 1, 2, 3], [0, 1, 2, 3, 9], [0, 1]):
        check('RaggedTensorToTensor', [shape, x, np.float32(1), I64(4), np.array(bad, I64)], rowids)


def counts(check, rng):
    for index in (np.int32, np.int64):
        for t in (np.int32, np.int64, np.float32, np.float64):
            for binary in (False, True):
                s = splits(rng, 4)
                v = rng.integers(0, 6, s[-1]).astype(index)
                for w in (np.zeros(0, t), (values(rng, np.float64, len(v)) * 9).astype(t)):
                    check('RaggedBincount', [s, v, index(7), w], {'binary_output': binary})
                    check('RaggedBincount', [s, v, index(3), w], {'binary_output': binary})
                    check('RaggedCountSparseOutput', [s, v, w], {'binary_output': binary, 'output_type': t})
    for shape, binary in (((5,), False), ((2, 4), False), ((1,), True)):
        check('RaggedBincount', [np.array([0, 1, 4], I64), np.int32([1, 0, 2, 2]), np.int32(3), np.ones(shape, np.float32)], {'binary_output': binary})
    base = {'binary_output': False, 'output_type': np.float32}
    none = np.zeros(0, np.float32)
    s, v = np.array([0, 2, 2, 5], I64), np.array([1, 1, 4, 0, 2], I64)
    for low in (-1, 0, 9):
        for high in (-1, 0, 2, 9):
            check('RaggedCountSparseOutput', [s, v, none], {**base, 'minlength': low, 'maxlength': high})
    for bad in ([s[None], v], [np.array([], I64), v], [np.array([0], I64), v], [np.array([1, 2, 5], I64), v], [np.array([0, 2, 4], I64), v], [np.array([0, 3, 2, 5], I64), v],
                [np.array([0, 2, 6], I64), v], [s, -v - 1], [s, v[None]], [I64(5), v]):
        check('RaggedCountSparseOutput', bad + [none], base, tf_shape_differs=bad[1].ndim == 2)
        if bad[1][..., 0] >= 0 and bad[1].ndim == 1:
            check('RaggedBincount', bad + [I64(7), none])
    for w in (np.float32([1, 2]), np.ones((5, 1), np.float32), np.float32(1)):
        check('RaggedCountSparseOutput', [s, v, w], base)
    for size in (I64(-1), np.array([3], I64), I64(0)):
        check('RaggedBincount', [s, v, size, none])


def crosses(check, rng):
    def few(t, n):
        x = rng.integers(0, 6, n)
        return np.array([b'%d' % y for y in x] + [None], object)[:-1] if t == bytes else x.astype(np.int64)

    def kind(x):
        return 'string' if x.dtype == object else np.int64
    for order, hashed in ((o, h) for o in ('RR', 'RSD', 'D', 'SR', 'R', 'DD', 'SS', 'RD') for h in (False, True)):
        for buckets in (0, 9):
            for key in (1, 0xDECAFCAFFE):
                for st in (np.int32, np.int64):
                    rv, rs, sp, dn = [], [], [], []
                    for k, c in enumerate(order):
                        t = (bytes, np.int64)[k % 2]
                        if c == 'R':
                            rs.append(splits(rng, 3, 3, st))
                            rv.append(few(t, rs[-1][-1]))
                        elif c == 'S':
                            i, v, s = sparse(rng, np.int64, (3, 3), 0.6)
                            sp.append([i, few(t, len(v)), s])
                        else:
                            dn.append(few(t, 6).reshape(3, 2))
                    check('RaggedCross', rv + rs + [p[k] for k in range(3) for p in sp] + dn,
                          {'Nsparse': len(sp), 'input_order': order, 'hashed_output': hashed, 'num_buckets': buckets, 'hash_key': key,
                           'ragged_values_types': [kind(x) for x in rv], 'ragged_splits_types': [st] * len(rs),
                           'sparse_values_types': [kind(p[1]) for p in sp], 'dense_types': [kind(x) for x in dn],
                           'out_values_type': np.int64 if hashed else 'string', 'out_row_splits_type': st})
    v, s = few(np.int64, 5), np.array([0, 2, 2, 5], I64)

    def one(values_, splits_, dense_, order='RD', **more):
        check('RaggedCross', [values_, splits_, dense_], {
            'Nsparse': 0, 'input_order': order, 'hashed_output': True, 'num_buckets': 9, 'hash_key': 1, 'ragged_values_types': [np.int64],
            'ragged_splits_types': [np.int64], 'sparse_values_types': [], 'dense_types': [np.int64], 'out_values_type': np.int64,
            'out_row_splits_type': np.int64, **more})
    d = few(np.int64, 6).reshape(3, 2)
    for bad in ((v, s, d[:2]), (v, s, d[0]), (v[None], s, d), (v, s[None], d), (v, np.array([0, 2, 2, 4], I64), d), (v, np.array([1, 2, 2, 5], I64), d),
                (v, np.array([], I64), d), (v, np.array([0, 3, 2, 5], I64), d)):
        one(*bad)
    for order in ('R', 'RR', 'RDD', 'X', 'rd', 'SD'):
        one(v, s, d, order)


def fill(check, rng):
    for t in NUMBER + [bool, bytes]:
        check('RaggedFillEmptyRows', [np.array([0, 0, 2, 5], I64), values(rng, t, 4), I64(7), values(rng, t, 1)[0]])
        check('RaggedFillEmptyRows', [np.array([2, 0, 0, 3], I64), values(rng, t, 4), I64(4), values(rng, t, 1)[0]])
        if t in NUMBER:
            check('RaggedFillEmptyRowsGrad', [np.array([2, 0, 5], I64), values(rng, t, 7)], rtol=1e-2, atol=1e-2)
    one, x = np.float64(7), values(rng, np.float64, 3)
    ids = np.array([0, 1, 3], I64)
    # Of no rows at all TensorFlow gives a matrix of row ids.
    check('RaggedFillEmptyRows', [ids[:0], x[:0], I64(3), one])
    for bad in ([ids, x, I64(3), one], [ids - 1, x, I64(4), one], [ids, x[:2], I64(4), one], [ids[None], x, I64(4), one], [ids, x[None], I64(4), one],
                [ids, x, np.array([4], I64), one], [ids, x, I64(4), np.float64([7])], [ids, x, I64(0), one], [ids, x, I64(-1), one]):
        check('RaggedFillEmptyRows', bad)
    for index, grad in (([], []), ([], [1.0]), ([0, 0], [1.0, 2.0]), ([0, 2], [1.0, 2.0]), ([-1], [1.0]), ([[0]], [1.0]), ([0], [[1.0]])):
        check('RaggedFillEmptyRowsGrad', [np.array(index, I64), np.array(grad, np.float64)])


def cases(check, rng):
    for family in (ranges, gathers, to_sparse, to_tensor, counts, crosses, fill):
        family(check, rng)
