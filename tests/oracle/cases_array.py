"""Cases of the array ops: every type of TensorFlow's CPU kernels, random shapes, edges and errors."""
import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
NUMBERS = [np.float32, np.float64, np.float16, BF16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
           np.uint32, np.uint64, np.complex64, np.complex128]
PLAIN = NUMBERS + [np.bool_]
MOVED = PLAIN + [object]  # object: strings


def make(rng, dtype, shape):
    if dtype is object:
        flat = [b'x' * int(n) for n in rng.integers(0, 40, size=int(np.prod(shape, dtype=np.int64)))]
        out = np.empty(len(flat), dtype=object)
        out[:] = flat
        return out.reshape(shape)
    if dtype is np.bool_:
        return rng.integers(0, 2, size=shape).astype(np.bool_)
    if np.issubdtype(dtype, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 100, size=shape).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def ints(*values, dtype=np.int32):
    return np.array(values, dtype=dtype)


def random_shape(rng, low=0, high=4, rank=None):
    rank = int(rng.integers(0, 5)) if rank is None else rank
    return tuple(int(n) for n in rng.integers(low, high + 1, size=rank))


def identities(check, rng):
    for t in MOVED:
        x = make(rng, t, (2, 3))
        for op in ('Identity', 'StopGradient', 'DeepCopy', 'PreventGradient', 'PlaceholderWithDefault', 'EnsureShape'):
            attrs = {'shape': [2, None]} if op in ('PlaceholderWithDefault', 'EnsureShape') else {}
            check(op, [x], attrs)
    for t in PLAIN:
        check('Snapshot', [make(rng, t, (2, 3))])
    check('IdentityN', [make(rng, np.float32, (2,)), make(rng, object, (3,)), ints(1, 2)])
    check('EnsureShape', [make(rng, np.float32, (2, 3))], {'shape': [2, 4]})
    check('EnsureShape', [make(rng, np.float32, (2, 3))], {'shape': [None]})
    check('Placeholder', [], {'dtype': np.float32, 'shape': [2, 3]})
    for t in (np.float32, np.float64, np.float16, BF16):
        check('CheckNumerics', [make(rng, t, (5,))], {'message': 'm'})
        for bad in (np.nan, np.inf, -np.inf):
            check('CheckNumerics', [np.array([1, bad, 2]).astype(t)], {'message': 'm'})
    check('CheckNumericsV2', [np.array([1, np.inf, 2], np.float32)], {'message': 'm'})
    check('CheckNumericsV2', [np.array([1, 2], np.float32)], {'message': 'm'})
    for bad in (0, np.nan, -np.inf):
        x = make(rng, np.float32, (100, 300))
        x[77, 123] = bad
        check('CheckNumericsV2', [x], {'message': 'm'})
    check('CheckNumerics', [np.zeros((0, 3), np.float32)], {'message': 'm'})


def shapes(check, rng):
    for shape in ((), (0,), (2, 3), (4, 0, 2), (1, 1, 1, 5)):
        x = make(rng, np.float32, shape)
        for out in (np.int32, np.int64):
            check('Shape', [x], {'out_type': out})
            check('Size', [x], {'out_type': out})
            check('ShapeN', [x, make(rng, np.float32, (7,))], {'N': 2, 'out_type': out})
        check('Rank', [x])
    check('Shape', [make(rng, object, (2, 2))])
    x = make(rng, np.float32, (4, 6))
    for t in (np.int32, np.int64):
        for to in ((24,), (2, -1), (-1, 3, 2), (4, 6), (5, 5), (5, -1), (-1, -1), (-2, 12), (0, -1), ()):
            check('Reshape', [x, ints(*to, dtype=t)])
    check('Reshape', [make(rng, np.float32, (0, 3)), ints(-1, 3)])
    check('Reshape', [make(rng, np.float32, (0, 3)), ints(0, -1)])
    check('Reshape', [make(rng, np.float32, (0, 3)), ints(3, -1)])
    check('Reshape', [make(rng, np.float32, (0,)), ints(0, 5)])
    check('Reshape', [x, np.ones((2, 2), np.int32)])
    check('Reshape', [x, np.int32(-1)])
    for t in MOVED:
        check('Reshape', [make(rng, t, (2, 3)), ints(3, 2)])
        check('ExpandDims', [make(rng, t, (2, 3)), np.int32(1)])
        check('Squeeze', [make(rng, t, (1, 3, 1))])
    for axis in (-4, -3, -1, 0, 2, 3):
        check('ExpandDims', [x, np.int32(axis)])
        check('ExpandDims', [x, ints(axis, dtype=np.int64)])
    check('ExpandDims', [x, ints(0, 1)])
    y = make(rng, np.float32, (1, 3, 1, 2))
    for dims in ([], [0], [2], [-2], [0, 2], [1], [5], [0, 0]):
        check('Squeeze', [y], {'squeeze_dims': dims})


def fills(check, rng):
    for t in MOVED:
        check('Fill', [ints(2, 3), make(rng, t, ())])
        if t is not object:
            check('OnesLike', [make(rng, t, (2, 3))])
        check('ZerosLike', [make(rng, t, (2, 3))])
        check('Empty', [ints(2, 3)], {'dtype': 'string' if t is object else t, 'init': True})
    check('Fill', [ints(2, 0, dtype=np.int64), np.float32(1)])
    check('Fill', [ints(), np.float32(1)])
    check('Fill', [ints(2, -1), np.float32(1)])
    check('Fill', [ints(2), ints(1, 2)])
    check('Fill', [np.ones((1, 2), np.int32), np.float32(2)])
    check('Fill', [np.int32(3), np.float32(2)])
    check('ZerosLike', [make(rng, np.float32, (0, 2))])
    check('OnesLike', [make(rng, np.float32, ())])


def joins(check, rng):
    for t in MOVED:
        a, b = make(rng, t, (2, 3)), make(rng, t, (2, 3))
        check('Pack', [a, b], {'N': 2, 'axis': 1})
        check('Unpack', [a], {'num': 3, 'axis': 1})
        check('ConcatV2', [a, b, np.int32(1)], {'N': 2})
        check('Concat', [np.int32(0), a, b], {'N': 2})
        check('Split', [np.int32(1), a], {'num_split': 3})
        check('SplitV', [a, ints(1, 2), np.int32(-1)], {'num_split': 2})
    for _ in range(12):
        shape = random_shape(rng)
        n = int(rng.integers(1, 5))
        rank = len(shape)
        values = [make(rng, np.float32, shape) for _ in range(n)]
        for axis in range(-rank - 1, rank + 1):
            check('Pack', values, {'N': n, 'axis': axis})
        for axis in range(-rank, rank):
            check('Unpack', [values[0]], {'num': shape[axis], 'axis': axis})
    check('Pack', [make(rng, np.float32, (2,)), make(rng, np.float32, (3,))], {'N': 2})
    check('Pack', [make(rng, np.float32, (2,))], {'N': 1, 'axis': 2})
    check('Unpack', [make(rng, np.float32, (2,))], {'num': 3})
    check('Unpack', [make(rng, np.float32, (2,))], {'num': 2, 'axis': 1})
    check('Unpack', [make(rng, np.float32, (4, 3000))], {'num': 4})
    for _ in range(15):
        rank = int(rng.integers(1, 5))
        axis = int(rng.integers(0, rank))
        n = int(rng.integers(2, 6))
        base = list(random_shape(rng, rank=rank))
        values = []
        for _ in range(n):
            base[axis] = int(rng.integers(0, 4))
            values.append(make(rng, np.int16, tuple(base)))
        check('ConcatV2', values + [np.int32(axis)], {'N': n})
        check('ConcatV2', values + [np.int64(axis - rank)], {'N': n})
        check('Concat', [np.int32(axis)] + values, {'N': n})
        check('ConcatOffset', [np.int32(axis)] + [np.array(v.shape, np.int32) for v in values], {'N': n})
    x = make(rng, np.float32, (2, 3))
    check('ConcatV2', [x, x, np.int32(2)], {'N': 2})
    check('ConcatV2', [x, x, ints(0)], {'N': 2})
    check('ConcatV2', [x, make(rng, np.float32, (2,)), np.int32(0)], {'N': 2})
    check('ConcatV2', [x, make(rng, np.float32, (2, 4)), np.int32(0)], {'N': 2})
    check('ConcatV2', [np.float32(1), np.float32(2), np.int32(0)], {'N': 2})
    check('ConcatOffset', [np.int32(5), ints(1, 2), ints(1, 3)], {'N': 2})
    check('ConcatOffset', [np.int32(0), ints(1, 2), ints(1, 3)], {'N': 2})
    check('ConcatOffset', [np.int32(-1), ints(1, 2, dtype=np.int64), ints(1, 3, dtype=np.int64)], {'N': 2})
    y = make(rng, np.float32, (6, 4, 5))
    for axis, n in ((0, 3), (1, 4), (2, 5), (-1, 5), (-3, 2), (0, 1), (0, 4), (3, 1), (-4, 1)):
        check('Split', [np.int32(axis), y], {'num_split': n})
    check('Split', [np.int32(0), make(rng, np.float32, (4, 4000))], {'num_split': 4})
    check('Split', [np.int32(1), make(rng, np.float32, (2, 0))], {'num_split': 2})
    for sizes in ((1, 2, 3), (-1, 2, 3), (0, 6, 0), (1, 1, 1), (-1, -1, 6), (-2, 4, 4), (3, 4, -1), (2, -1, 0)):
        for t in (np.int32, np.int64):  # TensorFlow aborts on int8
            check('SplitV', [y, ints(*sizes, dtype=t), np.int32(0)], {'num_split': 3})
    check('SplitV', [y, ints(4, dtype=np.int64), np.int32(1)], {'num_split': 1})
    check('SplitV', [y, ints(1, 2), np.int32(5)], {'num_split': 2})
    check('SplitV', [y, ints(1, 2, 3), np.int32(0)], {'num_split': 2})
    many_parts(check, rng)


def many_parts(check, rng):
    """More parts than a GPU moves at once, of widths that fill its largest pieces, or do not."""
    for width in (1, 4):
        sizes = [width * (i % 4) for i in range(150)]
        values = [make(rng, np.float32, (3, size)) for size in sizes]
        check('ConcatV2', values + [np.int32(1)], {'N': len(values)})
        check('SplitV', [np.concatenate(values, 1), ints(*sizes), np.int32(1)], {'num_split': len(values)})
        values = [make(rng, np.float32, (3, width)) for _ in range(70)]
        check('Pack', values, {'N': len(values), 'axis': 1})
        check('Unpack', [np.stack(values, 1)], {'num': len(values), 'axis': 1})


def large_slices(check, rng):
    """Results above 4096 bytes, where whole rows are views: part of one axis, and of each pair."""
    x = make(rng, np.float32, (20, 18, 16))
    whole = np.array(x.shape, np.int32)
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        begin, size = np.zeros(3, np.int32), whole.copy()
        begin[list(axes)], size[list(axes)] = 1, whole[list(axes)] - 3
        check('Slice', [x, begin, size])
        check('StridedSlice', [x, begin, begin + size, ints(1, 1, 1)])
        check('StridedSlice', [x, begin, begin + size, np.where(np.isin(range(3), axes), 2, 1).astype(np.int32)])
        check('StridedSlice', [x, begin + size - 1, begin - whole - 1, np.full(3, -1, np.int32)])
    for axis in range(3):
        x = make(rng, np.int32, np.roll((4, 40, 40), axis))
        begin = np.zeros(3, np.int32)
        begin[axis] = 2
        check('StridedSlice', [x, begin, np.array(x.shape, np.int32), ints(1, 1, 1)], {'shrink_axis_mask': 1 << axis})
        check('StridedSlice', [x, begin, np.array(x.shape, np.int32), ints(1, 1, 1)], {'new_axis_mask': 1 << axis})


def slices(check, rng):
    for t in MOVED:
        x = make(rng, t, (3, 4, 5))
        check('Slice', [x, ints(1, 0, 2), ints(2, -1, 2)])
        check('StridedSlice', [x, ints(0, 3, 1), ints(3, 0, 5), ints(2, -2, 1)])
        dy = make(rng, t, (2, 2, 4))
        check('StridedSliceGrad', [ints(3, 4, 5), ints(0, 3, 1), ints(3, 0, 5), ints(2, -2, 1), dy])
    x = make(rng, np.float32, (3, 4, 5))
    check('Slice', [x, ints(0, 0, 0), ints(-1, -1, -1)])
    check('Slice', [x, ints(0, 0, 0, dtype=np.int64), ints(3, 4, 5, dtype=np.int64)])
    check('Slice', [x, ints(3, 0, 0), ints(0, 4, 5)])
    check('Slice', [x, ints(4, 0, 0), ints(0, 4, 5)])
    check('Slice', [x, ints(-1, 0, 0), ints(1, 4, 5)])
    check('Slice', [x, ints(1, 0, 0), ints(3, 4, 5)])
    check('Slice', [x, ints(1, 0, 0), ints(-2, 4, 5)])
    check('Slice', [x, ints(1, 0), ints(1, 4)])
    check('Slice', [np.float32(3), ints(), ints()])
    check('Slice', [make(rng, np.float32, (10, 2000)), ints(2, 0), ints(5, 2000)])
    large_slices(check, rng)
    names = ('begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask', 'shrink_axis_mask')
    for i in range(120):
        shape = random_shape(rng, low=0 if i % 5 == 0 else 1, high=5)
        x = make(rng, np.int32, shape)
        n = int(rng.integers(0, len(shape) + 3))
        begin, end = (rng.integers(-6, 7, size=n).astype(np.int32) for _ in range(2))
        strides = rng.choice([-3, -2, -1, 1, 1, 1, 2, 3], size=n).astype(np.int32)
        masks = {m: int(rng.integers(0, 1 << n)) for m in names}
        masks['ellipsis_mask'] = int(rng.choice([0, 0] + [1 << k for k in range(n)]))
        masks['shrink_axis_mask'] &= int(rng.integers(0, 1 << n))
        masks['new_axis_mask'] &= int(rng.integers(0, 1 << n))
        dtype = (np.int32, np.int64, np.int16)[i % 3]
        check('StridedSlice', [x, begin.astype(dtype), end.astype(dtype), strides.astype(dtype)], masks)
    check('StridedSlice', [x, ints(0), ints(1), ints(0)])
    check('StridedSlice', [ints(1, 2, 3), ints(5), ints(6), ints(1)], {'shrink_axis_mask': 1})
    check('StridedSlice', [ints(1, 2, 3), ints(0), ints(1), ints(-1)], {'shrink_axis_mask': 1})
    check('StridedSlice', [ints(1, 2, 3), ints(0, 0), ints(1, 1), ints(1, 1)], {'ellipsis_mask': 3})
    check('StridedSlice', [ints(1, 2, 3), ints(0, 0), ints(1, 1), ints(1, 1)])
    check('StridedSlice', [ints(1, 2, 3), ints(0, 0), ints(1), ints(1, 1)])
    check('StridedSlice', [make(rng, np.float32, (10, 3000)), ints(2), ints(3), ints(1)], {'shrink_axis_mask': 1})
    dy = make(rng, np.float32, (2, 5))
    check('StridedSliceGrad', [ints(4, 5), ints(1), ints(3), ints(1), dy])
    check('StridedSliceGrad', [ints(4, 5), ints(1), ints(3), ints(2), dy])
    check('StridedSliceGrad', [ints(4, 5, dtype=np.int64), ints(2, dtype=np.int64), ints(3, dtype=np.int64),
                               ints(1, dtype=np.int64), dy[0]], {'shrink_axis_mask': 1})


def pads(check, rng):
    for t in MOVED:
        x = make(rng, t, (2, 3))
        p = np.array([[1, 2], [0, 1]], np.int32)
        check('Pad', [x, p])
        check('PadV2', [x, p.astype(np.int64), make(rng, t, ())])
        for mode in ('REFLECT', 'SYMMETRIC'):
            check('MirrorPad', [x, np.array([[1, 0], [2, 1]], np.int32)], {'mode': mode})
            if t not in (object, np.bool_):
                check('MirrorPadGrad', [make(rng, t, (5, 7)), np.array([[1, 1], [2, 1]], np.int32)], {'mode': mode})
        # TensorFlow's Tile lacks some types.
        check('Tile', [x, ints(2, 3)], tf_only_fails=t is np.uint16)
    for _ in range(15):
        shape = random_shape(rng)
        x = make(rng, np.float32, shape)
        p = rng.integers(0, 3, size=(len(shape), 2)).astype(np.int64)
        check('Pad', [x, p])
        check('Tile', [x, rng.integers(0, 4, size=len(shape)).astype(np.int64)])
        big = make(rng, np.float64, tuple(3 + n for n in shape))
        for mode in ('REFLECT', 'SYMMETRIC'):
            check('MirrorPad', [big, p.astype(np.int32)], {'mode': mode})
            grown = tuple(3 + n + int(q.sum()) for n, q in zip(shape, p))
            check('MirrorPadGrad', [make(rng, np.float64, grown), p], {'mode': mode})
    x = make(rng, np.float32, (2, 3))
    check('Pad', [x, np.zeros((2, 2), np.int32)])
    check('Pad', [x, np.array([[1, -1], [0, 0]], np.int32)])
    check('Pad', [x, np.zeros((3, 2), np.int32)])
    check('Pad', [x, np.zeros((2, 3), np.int32)])
    check('MirrorPad', [x, np.array([[2, 0], [0, 0]], np.int32)], {'mode': 'REFLECT'})
    check('MirrorPad', [x, np.array([[3, 0], [0, 0]], np.int32)], {'mode': 'SYMMETRIC'})
    check('Tile', [x, ints(2)])
    check('Tile', [x, ints(2, -1)])
    check('Tile', [np.float32(2), ints()])
    check('TileGrad', [np.ones((4, 6), np.float32), np.int32([2, 3])], tf_only_fails=True)  # its kernel asks for an attribute that it lacks


def transposes(check, rng):
    for t in MOVED:
        check('Transpose', [make(rng, t, (2, 3, 4)), ints(2, 0, 1)])
        check('ConjugateTranspose', [make(rng, t, (3, 4)), ints(1, 0)])
    for shape in ((33, 65), (3, 17, 9), (2, 8, 16, 3), (1, 5, 1), (), (0, 4), (7,), (100, 8), (64, 64)):
        for t in (np.int8, np.int16, np.float32, np.float64, np.complex128):
            perm = rng.permutation(len(shape)).astype(np.int32)
            check('Transpose', [make(rng, t, shape), perm])
            check('Transpose', [make(rng, t, shape), perm[::-1].astype(np.int64)])
    x = make(rng, np.float32, (2, 3))
    for perm in ((0, 0), (0, 2), (0,), (-1, 0), (0, 1)):
        check('Transpose', [x, ints(*perm)])
    check('InvertPermutation', [ints(3, 4, 0, 2, 1)])
    check('InvertPermutation', [ints(3, 4, 0, 2, 1, dtype=np.int64)])
    check('InvertPermutation', [ints()])
    check('InvertPermutation', [ints(0, 0)])
    check('InvertPermutation', [ints(0, 2)])
    check('InvertPermutation', [np.zeros((1, 1), np.int32)])


def gathers(check, rng):
    for t in MOVED:
        p = make(rng, t, (4, 3))
        for it in (np.int16, np.int32, np.int64):
            check('GatherV2', [p, ints(3, 0, 0, dtype=it), np.int32(0)])
            check('GatherV2', [p, ints(2, 0, dtype=it), np.int64(1)])
            check('GatherNd', [p, np.array([[0, 2], [3, 1]], it)])
        check('Gather', [p, np.array([[1, 2], [0, 3]], np.int32)])
        if t is not np.bool_:
            check('ScatterNd', [np.array([[1], [3]], np.int32), make(rng, t, (2, 3)), ints(5, 3)])
        check('TensorScatterUpdate', [p, np.array([[1], [3]], np.int32), make(rng, t, (2, 3))])
        if t not in (object, np.bool_):
            for op in ('TensorScatterAdd', 'TensorScatterSub'):
                check(op, [p, np.array([[1], [1]], np.int64), make(rng, t, (2, 3))])
            check('ScatterNd', [np.array([[1, 1], [1, 1], [0, 2]], np.int64), make(rng, t, (3,)),
                                ints(2, 3, dtype=np.int64)])
    check('ScatterNd', [np.array([[1], [1]], np.int32), np.array([True, True]), ints(3)])
    p = make(rng, np.float32, (2, 3, 4, 5))
    for axis in range(-4, 4):
        n = p.shape[axis]
        for shape in ((), (0,), (3,), (2, 2)):
            check('GatherV2', [p, rng.integers(0, n, size=shape).astype(np.int32), np.int32(axis)])
    for batch_dims in range(0, 3):
        for axis in range(batch_dims, 4):
            index = rng.integers(0, p.shape[axis], size=p.shape[:batch_dims] + (6,)).astype(np.int32)
            check('GatherV2', [p, index, np.int32(axis)], {'batch_dims': batch_dims})
            check('GatherV2', [p, index, np.int32(axis)], {'batch_dims': batch_dims - index.ndim})
    check('GatherV2', [p, ints(0), np.int32(0)], {'batch_dims': 1})
    check('GatherV2', [p, ints(2), np.int32(0)])
    check('GatherV2', [p, ints(-1), np.int32(0)])
    check('GatherV2', [p, ints(0), np.int32(4)])
    check('GatherV2', [p, ints(0), ints(0)])
    check('GatherV2', [np.float32(1), ints(0), np.int32(0)])
    check('GatherV2', [make(rng, np.float32, (0, 3)), ints(), np.int32(0)])
    check('GatherV2', [make(rng, np.float32, (0, 3)), ints(0), np.int32(0)])
    check('GatherV2', [make(rng, np.float32, (1000,)), rng.integers(0, 1000, size=5000), np.int32(0)])
    for depth in range(0, 5):
        index = np.stack([rng.integers(0, p.shape[k], size=(2, 3)) for k in range(depth)], -1) if depth else \
            np.zeros((2, 3, 0))
        check('GatherNd', [p, index.astype(np.int32)])
        dy = make(rng, np.float32, (2, 3) + p.shape[depth:])
        check('ScatterNd', [index.astype(np.int32), dy, ints(2, 3, 4, 5)])
        check('TensorScatterAdd', [p, index.astype(np.int32), dy])
    check('GatherNd', [p, np.array([[2]], np.int32)])
    check('GatherNd', [p, np.array([[0, 3]], np.int32)])
    check('GatherNd', [p, np.zeros((1, 5), np.int32)])
    check('GatherNd', [p, np.int32(0)])
    check('GatherNd', [make(rng, np.float32, (0,)), np.array([[0]], np.int32)])
    check('GatherNd', [ints(1, 2, 3), np.array([[5], [1]], np.int32)], {'bad_indices_policy': 'IGNORE'})
    check('ScatterNd', [np.array([[5], [1]], np.int32), ints(1, 2), ints(3)], {'bad_indices_policy': 'IGNORE'})
    check('ScatterNd', [np.array([[5]], np.int32), ints(1), ints(3)])
    check('ScatterNd', [np.array([[1]], np.int32), ints(1, 2), ints(3)])
    check('ScatterNd', [np.array([[0]], np.int32), ints(1), ints(0)])
    check('ScatterNd', [np.zeros((0, 1), np.int32), np.zeros((0,), np.float32), ints(0)])
    check('TensorScatterUpdate', [ints(1, 2, 3), np.array([[3]], np.int32), ints(7)])
    check('TensorScatterUpdate', [ints(1, 2, 3), np.array([[1]], np.int32), ints(7, 8)])


def searches(check, rng):
    for t in PLAIN:
        x = make(rng, t, (3, 4))
        x[0, 0] = 0
        check('Where', [x], tf_only_fails=t is np.float16)
        if t not in (np.complex64, np.complex128):
            check('Unique', [make(rng, t, (60,))])
            check('UniqueWithCounts', [make(rng, t, (60,))], {'out_idx': np.int64})
            y = np.concatenate([make(rng, t, (2, 3))] * 2, 0)
            check('UniqueV2', [y, ints(0)])
            check('UniqueV2', [y, ints(1, dtype=np.int64)], {'out_idx': np.int64})
            check('UniqueWithCountsV2', [y, ints(0)])
            if t is not np.bool_:
                check('ListDiff', [make(rng, t, (30,)), make(rng, t, (10,))])
                check('TopKV2', [make(rng, t, (5, 20)), np.int32(7)])
                for k in (64, 299, 300):
                    check('TopKV2', [make(rng, t, (3, 300)), np.int32(k)])
        large = make(rng, t, (3, 50, 13))
        large[rng.integers(0, 2, large.shape) > 0] = 0
        check('Where', [large], tf_only_fails=t is np.float16)
    check('Where', [np.array([0, 1j, 1, -0., np.nan * 1j], np.complex64)])
    check('Where', [np.eye(60, dtype=np.bool_).reshape(60, 1, 5, 12)])
    check('Where', [np.array([[-0., np.nan], [np.inf, 0]], np.float32)])
    check('Where', [np.array(True)])
    check('Where', [np.zeros((0, 2), np.bool_)])
    check('Where', [np.zeros((3, 2), np.bool_)])
    for share in (0, 0.3, 1):  # more than a block of threads takes at once
        check('Where', [rng.random((9, 700)) < share])
    check('Where', [(rng.random(70000) < 0.5).astype(np.float32)])
    check('Where', [np.where(rng.random((2,) * 8) < 0.5, 1j, 0).astype(np.complex128)])
    for top in (2, 500, 1000000):
        for t in (np.int32, np.int64, np.float32):
            check('UniqueWithCounts', [rng.integers(0, top, 9000).astype(t)], {'out_idx': np.int64})
    x = rng.integers(-2, 3, 3000).astype(np.float64)
    x[rng.integers(0, 3000, 500)] = np.nan
    x[rng.integers(0, 3000, 500)] = -0.
    check('UniqueWithCounts', [x])
    for axis in (0, 1, 2):
        check('UniqueWithCountsV2', [rng.integers(0, 2, size=(5, 700, 3)).astype(np.float32), ints(axis)])
        check('UniqueWithCountsV2', [np.zeros((2, 0, 3), np.float32), ints(axis)])
    check('Unique', [make(rng, object, (30,))])
    check('ListDiff', [make(rng, object, (30,)), make(rng, object, (10,))], {'out_idx': np.int64})
    check('Unique', [np.array([np.nan, 0., -0., np.nan, 1], np.float32)])
    check('Unique', [np.zeros((0,), np.float32)])
    check('Unique', [np.zeros((2, 2), np.float32)])
    check('UniqueV2', [ints(1, 1, 2), ints()])
    check('UniqueV2', [make(rng, np.int32, (2, 2)), ints()])
    check('UniqueV2', [make(rng, np.int32, (2, 2)), ints(2)])
    check('UniqueV2', [make(rng, np.int32, (2, 2)), ints(0, 1)])
    check('UniqueV2', [rng.integers(0, 2, size=(2, 9, 2)).astype(np.int32), ints(1)])
    check('UniqueV2', [rng.integers(0, 2, size=(2, 9, 2)).astype(np.int32), ints(-2)])
    for k in (0, 1, 3, 20):
        check('TopKV2', [rng.integers(0, 5, size=(4, 20)).astype(np.float32), np.int32(k)])
    check('TopKV2', [rng.choice(np.array([-0., 0, 1, -np.inf, np.inf], np.float32), (2, 200)), np.int32(200)])
    check('TopKV2', [make(rng, np.float32, (9,)), np.int64(3)], {'index_type': np.int64, 'Tk': np.int64})
    check('TopKV2', [make(rng, np.float32, (9,)), np.int16(3)], {'index_type': np.int16, 'Tk': np.int16})
    check('TopKV2', [make(rng, np.float32, (3,)), np.int32(4)])
    check('TopKV2', [make(rng, np.float32, (3,)), np.int32(-1)])
    check('TopKV2', [np.float32(1), np.int32(1)])
    check('TopKV2', [np.array([1, -np.inf, np.inf, -0., 0.], np.float32), np.int32(5)])
    for t in MOVED:
        for ti in (np.uint8, np.int8, np.int32, np.int64):
            check('OneHot', [ints(0, 2, 3, 9, dtype=ti), np.int32(4), make(rng, t, ()), make(rng, t, ())])
    for axis in (-1, 0, 1, 2, 3, -2):
        check('OneHot', [np.array([[0, -1], [5, 2]], np.int32), np.int32(3), np.float32(1), np.float32(0)], {'axis': axis})
    check('OneHot', [np.int32(1), np.int32(3), np.float32(1), np.float32(0)])
    check('OneHot', [ints(1), np.int32(0), np.float32(1), np.float32(0)])
    check('OneHot', [ints(1), np.int32(-1), np.float32(1), np.float32(0)])
    check('OneHot', [ints(1), ints(3), np.float32(1), np.float32(0)])


def turns(check, rng):
    for t in MOVED:
        x = make(rng, t, (3, 4, 2))
        check('ReverseV2', [x, ints(1)])
        check('ReverseV2', [x, ints(0, -1, dtype=np.int64)])
        check('ReverseSequence', [x, ints(0, 4, 2, dtype=np.int64)], {'seq_dim': 1, 'batch_dim': 0})
        check('Roll', [x, ints(1, -3), ints(0, 1)])
        check('BroadcastTo', [make(rng, t, (3, 1)), ints(2, 3, 4)])
    x = make(rng, np.float32, (3, 4, 2))
    for axes in ((), (0, 1, 2), (3,), (-4,), (1, 1), (1, -2)):
        check('ReverseV2', [x, ints(*axes)])
    check('ReverseV2', [np.float32(1), ints()])
    check('ReverseSequence', [x, ints(0, 3, 1, 2)], {'seq_dim': 0, 'batch_dim': 1})
    check('ReverseSequence', [x, ints(2, 3)], {'seq_dim': 0, 'batch_dim': 2})
    for lengths, seq, batch in (((5, 1, 1), 1, 0), ((-1, 1, 1), 1, 0), ((1, 1), 1, 0), ((1, 1, 1), 0, 0), ((1, 1, 1), 3, 0)):
        check('ReverseSequence', [x, ints(*lengths)], {'seq_dim': seq, 'batch_dim': batch})
    for shift, axis in ((1, 0), (-5, 2), (0, 1), (7, -1), (1, 3)):
        check('Roll', [x, np.int32(shift), np.int64(axis)])
    check('Roll', [x, ints(1, 2, 3), ints(0, 0, 2)])
    check('Roll', [x, ints(1, 2, 1), ints(0, 1, 2)])
    check('Roll', [x, ints(1, 2), ints(0)])
    for shift in (2 ** 32 + 1, 2 ** 63 - 1, -2 ** 63):  # TensorFlow takes shifts and axes as ints
        check('Roll', [x, np.int64(shift), np.int64(2 ** 32)])
    check('Roll', [np.float32(1), np.int32(1), np.int32(0)])
    check('Roll', [np.zeros((0, 2), np.float32), np.int32(1), np.int32(0)])
    for a, b in (((3, 1), (3, 4)), ((), (2, 2)), ((1,), ()), ((2,), (3,)), ((1, 1, 2), (5, 3, 2)), ((0,), (2, 0)),
                 ((2, 2), (2,)), ((3, 1), (0, 3, 2)), ((3,), (3, 1)), ((5,), (4, 5))):
        check('BroadcastTo', [make(rng, np.float32, a), np.array(b, np.int64)])
        for t in (np.int32, np.int64):
            check('BroadcastArgs', [np.array(a, t), np.array(b, t)])
            check('BroadcastGradientArgs', [np.array(a, t), np.array(b, t)])
    for a, b in (((1, 1), (1, 1)), ((1,), (1, 1)), ((2, 1, 3), (1, 3)), ((2, 1), (2, 1))):
        check('BroadcastGradientArgs', [np.array(a, np.int32), np.array(b, np.int32)])


def numbers(check, rng):
    for t in (np.float32, np.float64, np.float16, BF16, np.int32, np.int64):
        for a, b, c in ((0, 10, 1), (3, 18, 3), (10, 0, -3), (5, 5, 1), (0, 5, 0), (5, 0, 1), (0, 5, -1)):
            # TensorFlow's kernel takes halves, its shape function does not.
            check('Range', [t(a), t(b), t(c)], tf_only_fails=t is np.float16 and c != 0 and (b - a) * c >= 0)
    check('Range', [np.float32(0), np.float32(1), np.float32(0.1)])
    check('Range', [np.float32(0), np.float32(1000), np.float32(0.1)])
    check('Range', [np.float64(-1), np.float64(1), np.float64(0.013)])
    check('Range', [ints(0), np.int32(5), np.int32(1)])
    for t in (np.float32, np.float64):
        for n in (1, 2, 7, 100, 0, -1):
            check('LinSpace', [t(-1.5), t(2.25), np.int32(n)])
            check('LinSpace', [t(3), t(3), np.int64(n)])
    x = make(rng, np.float32, (3, 2))
    for t in ('int32', 'uint32', 'float16', 'bfloat16', 'uint8', 'float64', 'complex64', 'complex128'):
        check('Bitcast', [x], {'type': t})
    check('Bitcast', [make(rng, np.float32, (2, 4))], {'type': np.complex128})
    check('Bitcast', [make(rng, np.float32, ())], {'type': np.uint8})
    check('Bitcast', [make(rng, np.uint8, (3, 8))], {'type': np.int64})
    for indices in (np.int32(3), ints(3, 4, 0), ints(), ints(7), np.zeros((1, 1), np.int32), ints(-1)):
        check('UnravelIndex', [indices, ints(2, 3)])
    check('UnravelIndex', [ints(3, 22, dtype=np.int64), ints(4, 3, 2, dtype=np.int64)])
    check('UnravelIndex', [ints(1), ints(2, 0)])


def partitions(check, rng):
    for t in MOVED:
        check('DynamicPartition', [make(rng, t, (5, 2)), ints(0, 2, 0, 1, 2)], {'num_partitions': 4})
        check('DynamicStitch', [ints(4, 0), ints(1, 2, 3), make(rng, t, (2, 2)), make(rng, t, (3, 2))], {'N': 2})
        check('ParallelDynamicStitch', [ints(1, 0), ints(2), make(rng, t, (2, 2)), make(rng, t, (1, 2))], {'N': 2})
    check('DynamicPartition', [make(rng, np.float32, (2, 3, 4)), rng.integers(0, 3, size=(2, 3)).astype(np.int32)],
          {'num_partitions': 3})
    for parts in (1, 3, 150):  # rows that several warps deal, outputs that several launches fill
        for shape in ((5000,), (5000, 3), (1700, 8)):
            owners = rng.integers(0, parts, size=shape[0]).astype(np.int32)
            check('DynamicPartition', [make(rng, np.float32, shape), owners], {'num_partitions': parts})
    owners = rng.integers(0, 3, size=5000).astype(np.int32)
    owners[[777, 4000]] = 3, -1
    check('DynamicPartition', [make(rng, np.float32, (5000,)), owners], {'num_partitions': 3})
    check('DynamicPartition', [np.zeros((5000, 0), np.float32), np.minimum(owners, 2) % 3], {'num_partitions': 3})
    check('DynamicPartition', [np.float32(1), np.int32(1)], {'num_partitions': 2})
    check('DynamicPartition', [make(rng, np.float32, (2,)), ints(0, 3)], {'num_partitions': 2})
    check('DynamicPartition', [make(rng, np.float32, (2,)), ints(0, -1)], {'num_partitions': 2})
    check('DynamicPartition', [make(rng, np.float32, (2,)), ints(0, 1, 1)], {'num_partitions': 2})
    check('DynamicPartition', [np.zeros((0, 2), np.float32), ints()], {'num_partitions': 2})
    check('DynamicStitch', [np.int32(1), ints(0, 2), make(rng, np.float32, (3,)), make(rng, np.float32, (2, 3))], {'N': 2})
    check('DynamicStitch', [ints(0, 1), ints(1, 0), ints(1, 2), ints(3, 4)], {'N': 2})
    check('DynamicStitch', [ints(0, -1), ints(1, 2)], {'N': 1})
    check('DynamicStitch', [ints(0, 1), ints(1, 2, 3)], {'N': 1})
    check('DynamicStitch', [ints(0), ints(1), make(rng, np.float32, (1, 2)), make(rng, np.float32, (1, 3))], {'N': 2})
    check('DynamicStitch', [ints(), np.zeros((0, 3), np.float32)], {'N': 1})


def diagonals(check, rng):
    for t in (np.float32, np.float64, np.float16, np.int32, np.int64, np.complex64, np.complex128):
        check('Diag', [make(rng, t, (3,))])
        check('DiagPart', [make(rng, t, (3, 3))])
    check('Diag', [make(rng, np.float32, (2, 3))])
    check('DiagPart', [make(rng, np.float32, (2, 3, 2, 3))])
    check('Diag', [np.float32(1)])
    check('DiagPart', [make(rng, np.float32, (2, 3))])
    for shape in ((2, 3, 2), (), (3,), (2, 2, 2), (0, 0, 0), (2, 2, 2, 2, 2)):
        check('DiagPart', [make(rng, np.float32, shape)])
    check('Diag', [np.zeros((0,), np.float32)])
    for t in PLAIN:
        check('MatrixDiag', [make(rng, t, (2, 3))])
        check('MatrixDiagPart', [make(rng, t, (2, 3, 4))])
        check('MatrixSetDiag', [make(rng, t, (2, 3, 4)), make(rng, t, (2, 3))])
        check('MatrixBandPart', [make(rng, t, (2, 3, 4)), np.int64(1), np.int64(0)])
    for lower in (-1, 0, 1, 4, 5):
        for upper in (-1, 0, 2, 3, 4):
            check('MatrixBandPart', [make(rng, np.float32, (4, 3)), np.int32(lower), np.int32(upper)])
    for lower, upper in ((-2 ** 63, 0), (1, -2 ** 63), (-2 ** 63, -1)):
        check('MatrixBandPart', [np.ones((3, 4), np.float32), np.int64(lower), np.int64(upper)])
    check('MatrixBandPart', [ints(1), np.int32(0), np.int32(0)])
    check('MatrixDiagPart', [make(rng, np.float32, (4, 2))])
    check('MatrixDiag', [np.float32(1)])
    check('MatrixSetDiag', [make(rng, np.float32, (4, 2)), make(rng, np.float32, (2,))])
    check('MatrixSetDiag', [make(rng, np.float32, (4, 2)), make(rng, np.float32, (4,))])
    check('MatrixSetDiag', [make(rng, np.float32, (4, 2)), make(rng, np.float32, (1, 2))])
    check('MatrixDiagPart', [ints(1)])
    check('MatrixDiag', [np.zeros((2, 0), np.float32)])
    for t in [t for t in MOVED]:
        check('SparseToDense', [np.array([[0, 1], [1, 2]], np.int32), ints(2, 3), make(rng, t, (2,)), make(rng, t, ())])
    check('SparseToDense', [ints(1, 3, dtype=np.int64), ints(5, dtype=np.int64), np.float32(2), np.float32(0)])
    check('SparseToDense', [np.int32(1), ints(5), np.float32(2), np.float32(0)])
    for index in ([[0, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 1], [0, 5]], [[0, 1], [-1, 0]]):
        for validate in (True, False):
            check('SparseToDense', [np.array(index, np.int32), ints(2, 2), ints(1, 2), np.int32(0)],
                  {'validate_indices': validate})
    check('SparseToDense', [np.array([[0, 0]], np.int32), ints(2), ints(1), np.int32(0)])
    check('SparseToDense', [np.array([[0, 0]], np.int32), ints(2, 2), ints(1, 2), np.int32(0)])


def top_k_v1(check, rng):
    """TensorFlow has TopK's definition, but refuses graphs of today that use it; its results are TopKV2's."""
    for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8, np.int16, np.uint16, np.uint32, np.uint64):
        for shape, k in (((5,), 2), ((3, 4), 4), ((2, 3, 5), 0)):
            check('TopK', [rng.integers(0, 50, shape).astype(dtype)], {'k': k}, tf_only_fails=True)


def cases(check, rng):
    top_k_v1(check, rng)
    for group in (identities, shapes, fills, joins, slices, pads, transposes, gathers, searches, turns, numbers,
                  partitions, diagonals):
        group(check, rng)
