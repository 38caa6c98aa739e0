"""Random shapes, types and attributes for ops whose own files hold chosen cases: together at least 30 different ones an op."""
import numpy as np
from ml_dtypes import bfloat16

COUNT = 30
WIDE = (np.float32, np.float64)
FLOATS = (np.float32, np.float64, np.float16, bfloat16)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64)
COMPLEX = (np.complex64, np.complex128)
ANY = FLOATS + INTEGERS + COMPLEX + (np.bool_, object)


def pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def draw_shape(rng, low=0, high=4, smallest=0):
    """A rank in [low, high]; now and then with an empty dimension."""
    shape = rng.integers(max(1, smallest), 6, rng.integers(low, high + 1))
    if smallest == 0 and shape.size and rng.integers(8) == 0:
        shape[int(rng.integers(shape.size))] = 0
    return tuple(map(int, shape))


def draw(rng, dtype, shape, low=-3.0, high=3.0):
    if dtype is object:
        out = np.empty(int(np.prod(shape)), object)
        out[:] = [b'%d' % rng.integers(9) + b's' * int(rng.integers(30)) for _ in range(out.size)]
        return out.reshape(shape)
    if dtype is np.bool_:
        return np.asarray(rng.integers(0, 2, shape) > 0)
    if np.dtype(dtype).kind in 'iu':
        return np.asarray(rng.integers(0 if np.dtype(dtype).kind == 'u' else -9, 10, shape)).astype(dtype)
    x = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind == 'c':
        x = x + 1j * rng.uniform(low, high, shape)
    return np.asarray(x).astype(dtype)


def index_type(rng):
    return pick(rng, (np.int32, np.int64))


def close(dtype, scale=1.0):
    """For functions that the two libraries compute by different formulas."""
    rtol, atol = {np.float32: (2e-5, 2e-6), np.float64: (1e-10, 1e-12), np.float16: (5e-3, 5e-3), bfloat16: (4e-2, 4e-2),
                  np.complex64: (5e-5, 1e-5), np.complex128: (1e-9, 1e-11)}[dtype]
    return dict(rtol=rtol * scale, atol=atol * scale)


# ---- elementwise ----

# Op: types, range.
UNARY = {
    'Ceil': (FLOATS, -9, 9), 'Floor': (FLOATS, -9, 9), 'Rint': (WIDE, -9, 9), 'Round': (FLOATS, -9, 9), 'Erf': (WIDE, -4, 4),
    'Erfc': (WIDE, -3, 3), 'Erfinv': (WIDE, -0.95, 0.95), 'Ndtri': (WIDE, 0.02, 0.98), 'Digamma': (WIDE, 0.3, 20),
    'Lgamma': (WIDE, 0.3, 20), 'Elu': (FLOATS, -4, 4), 'Selu': (FLOATS, -4, 4), 'Softplus': (FLOATS, -20, 20),
    'Softsign': (FLOATS, -4, 4), 'Relu': (FLOATS + INTEGERS, -4, 4), 'Relu6': (FLOATS, -4, 9), 'Inv': (FLOATS, 0.2, 4),
    'IsFinite': (FLOATS, -4, 4), 'IsInf': (FLOATS, -4, 4), 'IsNan': (FLOATS, -4, 4), 'LogicalNot': ((np.bool_,), 0, 1),
    'OnesLike': (ANY[:-1], -4, 4), 'ZerosLike': (ANY, -4, 4), 'Snapshot': (ANY[:-1], -4, 4), 'StopGradient': (ANY, -4, 4),
    'Identity': (ANY, -4, 4), 'DeepCopy': (ANY[:-1], -4, 4), 'PreventGradient': (ANY, -4, 4), 'Rank': (ANY, -4, 4),
    'DebugIdentity': (ANY, -4, 4), 'GuaranteeConst': (ANY, -4, 4),
}
SPECIAL = {'IsFinite', 'IsInf', 'IsNan', 'Ceil', 'Floor', 'Rint', 'Round', 'Relu', 'Relu6', 'Identity'}
LOOSE = {'Erf', 'Erfc', 'Erfinv', 'Ndtri', 'Digamma', 'Lgamma', 'Elu', 'Selu', 'Softplus', 'Softsign', 'Inv'}


def unary(check, rng):
    for op, (types, low, high) in UNARY.items():
        for _ in range(COUNT * 2 if op == 'LogicalNot' else COUNT):
            dtype = pick(rng, types)
            x = draw(rng, dtype, draw_shape(rng), low, high)
            if op in SPECIAL and x.size and dtype in FLOATS:
                x.reshape(-1)[:1] = pick(rng, (np.nan, np.inf, -np.inf, -0.0, 0.5, -2.5))
            check(op, [x], **(close(dtype) if op in LOOSE else {}))


GRADIENTS = {'EluGrad': FLOATS, 'SeluGrad': FLOATS, 'SoftplusGrad': FLOATS, 'SoftsignGrad': FLOATS, 'ReluGrad': FLOATS,
             'Relu6Grad': FLOATS, 'LeakyReluGrad': FLOATS, 'RsqrtGrad': WIDE, 'SqrtGrad': WIDE, 'TanhGrad': WIDE,
             'SigmoidGrad': WIDE, 'ReciprocalGrad': WIDE, 'InvGrad': WIDE}


def gradients(check, rng):
    for op, types in GRADIENTS.items():
        for _ in range(COUNT):
            dtype, shape = pick(rng, types), draw_shape(rng)
            x, dy = draw(rng, dtype, shape), draw(rng, dtype, shape)
            if op in ('RsqrtGrad', 'SqrtGrad', 'ReciprocalGrad', 'InvGrad'):
                x = draw(rng, dtype, shape, 0.2, 3)
            attrs = {'alpha': float(rng.uniform(0, 1))} if op == 'LeakyReluGrad' else {}
            inputs = [dy, x] if op in ('SoftplusGrad', 'SoftsignGrad', 'ReluGrad', 'Relu6Grad', 'LeakyReluGrad', 'EluGrad',
                                       'SeluGrad') else [x, dy]
            check(op, inputs, attrs, **close(dtype, 2))
    for _ in range(COUNT):
        dtype = pick(rng, FLOATS)
        check('LeakyRelu', [draw(rng, dtype, draw_shape(rng))], {'alpha': float(rng.uniform(0, 1))})


def spread(rng):
    """Two shapes that broadcast, mostly."""
    shape = draw_shape(rng)
    a = [d if rng.integers(4) else 1 for d in shape]
    b = [d if rng.integers(4) else 1 for d in shape][int(rng.integers(0, len(shape) + 1)):]
    if rng.integers(12) == 0:
        b = b + [7]
    return (tuple(a), tuple(b)) if rng.integers(2) else (tuple(b), tuple(a))


def binary(check, rng):
    for _ in range(COUNT):
        a, b = spread(rng)
        for op in ('LogicalAnd', 'LogicalOr'):
            check(op, [draw(rng, np.bool_, a), draw(rng, np.bool_, b)])
        dtype = pick(rng, WIDE)
        check('Pow', [draw(rng, dtype, a, 0.1, 3), draw(rng, dtype, b)], **close(dtype))
        check('Zeta', [draw(rng, dtype, a, 1.5, 6), draw(rng, dtype, b, 0.5, 5)], **close(dtype, 5))
        order = np.asarray(rng.integers(0, 4, a)).astype(dtype)
        check('Polygamma', [order, draw(rng, dtype, b, 0.5, 5)], **close(dtype, 5))
        check('Complex', [draw(rng, dtype, a), draw(rng, dtype, b)], {'Tout': np.complex64 if dtype is np.float32 else
                                                                       np.complex128})
        for op in ('BroadcastArgs', 'BroadcastGradientArgs'):
            t = index_type(rng)
            check(op, [np.array(a, t), np.array(b, t)])
        check('NextAfter', [draw(rng, dtype, a), draw(rng, dtype, b)], exact=True)
        check('ApproximateEqual', [x := draw(rng, dtype, a), x + draw(rng, dtype, a, -0.01, 0.01)],
              {'tolerance': float(rng.uniform(1e-6, 0.02))})
    for _ in range(COUNT):
        dtype, shape = pick(rng, COMPLEX), draw_shape(rng)
        real = {'Tout': np.float32 if dtype is np.complex64 else np.float64}
        x = draw(rng, dtype, shape)
        for op in ('Real', 'Imag', 'Angle', 'ComplexAbs'):
            check(op, [x], real, **close(dtype))
        check('Conj', [x])
        dtype = pick(rng, FLOATS + INTEGERS)
        shape = draw_shape(rng, 0, 2) + (3,)
        check('Cross', [draw(rng, dtype, shape), draw(rng, dtype, shape)], **(close(dtype) if dtype in FLOATS else {}))


# ---- reductions and products ----

def reductions(check, rng):
    for _ in range(COUNT):
        shape = draw_shape(rng)
        axes = rng.permutation(len(shape))[:int(rng.integers(0, len(shape) + 1))]
        axes = np.where(rng.integers(0, 2, len(axes)) > 0, axes, axes - len(shape))
        if rng.integers(10) == 0:
            axes = np.append(axes, 9)
        for op in ('All', 'Any'):
            check(op, [draw(rng, np.bool_, shape), axes.astype(index_type(rng))], {'keep_dims': bool(rng.integers(2))})
        dtype = pick(rng, WIDE)
        check('L2Loss', [draw(rng, dtype, draw_shape(rng))], **close(dtype))
        n, k, m = rng.integers(1, 6, 3)
        batch_a, batch_b = (a := draw_shape(rng, 0, 2, 1)), pick(rng, (a, (), (1,) * len(a)))
        adjoint = {'adj_x': bool(rng.integers(2)), 'adj_y': bool(rng.integers(2))}
        x = draw(rng, dtype, batch_a + ((k, n) if adjoint['adj_x'] else (n, k)))
        y = draw(rng, dtype, batch_b + ((m, k) if adjoint['adj_y'] else (k, m)))
        check('BatchMatMulV3', [x, y], dict(adjoint, Tout=dtype), **close(dtype, 3))


# ---- arrays ----

def shapes(check, rng):
    for _ in range(COUNT):
        dtype, shape = pick(rng, ANY), draw_shape(rng)
        x, t = draw(rng, dtype, shape), index_type(rng)
        check('Shape', [x], {'out_type': t})
        check('Size', [x], {'out_type': t})
        n = int(rng.integers(1, 4))
        xs = [draw(rng, np.float32, draw_shape(rng)) for _ in range(n)]
        check('ShapeN', xs, {'N': n, 'out_type': t})
        check('IdentityN', [draw(rng, pick(rng, ANY), draw_shape(rng)) for _ in range(n)])
        asked = [d if rng.integers(2) else None for d in shape]
        if rng.integers(8) == 0:
            asked = asked + [2]
        for op in ('EnsureShape', 'PlaceholderWithDefault'):
            check(op, [x], {'shape': asked})
        axis = int(rng.integers(-len(shape) - 2, len(shape) + 2))
        check('ExpandDims', [x, t(axis)])
        ones = tuple(1 if rng.integers(2) else d for d in shape)
        chosen = [int(a) for a in rng.permutation(len(ones)) if ones[a] == 1 and rng.integers(2)]
        check('Squeeze', [draw(rng, dtype, ones)], {'squeeze_dims': chosen})
        target = tuple(d if d != 1 else int(rng.integers(1, 4)) for d in ones)
        check('BroadcastTo', [draw(rng, dtype, ones), np.array((2, *target) if rng.integers(2) else target, t)])
        check('Fill', [np.array(shape, t), draw(rng, dtype, ())])
        check('Empty', [np.array(shape, np.int32)], {'dtype': 'string' if dtype is object else dtype, 'init': True})
        check('FakeParam', [], {'dtype': 'string' if dtype is object else dtype, 'shape': shape}, shapes_only=True)
        numbers = pick(rng, ((np.float32, np.int32), (np.int64, np.float64), (np.uint8, np.int8), (np.float32, np.uint8),
                             (np.int32, np.int64), (np.uint8, np.float32), (np.float64, np.complex64)))
        last = shape + (int(rng.integers(1, 3)) * 4,)
        check('Bitcast', [draw(rng, numbers[0], last)], {'type': numbers[1]})


def moves(check, rng):
    for _ in range(COUNT):
        dtype, shape, t = pick(rng, ANY), draw_shape(rng, 1), index_type(rng)
        x = draw(rng, dtype, shape)
        rank = len(shape)
        paddings = rng.integers(0, 3, (rank, 2)).astype(t)
        check('PadV2', [x, paddings, draw(rng, dtype, ())])
        axes = rng.integers(-rank, rank, int(rng.integers(1, 3)))
        check('Roll', [x, rng.integers(-7, 8, len(axes)).astype(t), axes.astype(index_type(rng))])
        begin = np.array([rng.integers(0, d + 1) for d in shape])
        size = np.array([rng.integers(-1, d - b + 1) for d, b in zip(shape, begin)])
        check('Slice', [x, begin.astype(t), size.astype(t)])
        parts = int(rng.integers(1, 4))
        axis = int(rng.integers(-rank, rank))
        even = list(shape)
        even[axis] *= parts
        check('Split', [np.int32(axis), draw(rng, dtype, even)], {'num_split': parts})
        perm = rng.permutation(int(rng.integers(0, 30))).astype(t)
        if rng.integers(8) == 0 and perm.size:
            perm[0] = pick(rng, (-1, perm.size, perm[-1]))
        check('InvertPermutation', [perm])
        n = int(rng.integers(1, 4))
        check('ParallelConcat', [draw(rng, pick(rng, (np.float32, np.int32)), (1, *shape))] * n, {'N': n, 'shape': (n, *shape)})
        pieces = [list(shape) for _ in range(n)]
        for piece in pieces:
            piece[axis] = int(rng.integers(0, 5))
        check('ConcatOffset', [np.int32(axis)] + [np.array(p, np.int32) for p in pieces], {'N': n})
        dims = np.array(draw_shape(rng, 1, 3, 1), t)
        check('UnravelIndex', [rng.integers(0, int(np.prod(dims)), draw_shape(rng, 0, 1)).astype(t), dims])
        real = pick(rng, WIDE)
        check('LinSpace', [draw(rng, real, ()), draw(rng, real, ()), t(rng.integers(0, 20))], rtol=1e-5, atol=1e-6)
        x2 = draw(rng, dtype, draw_shape(rng, 2, 3, 1))
        lengths = rng.integers(0, x2.shape[1] + 1, x2.shape[0]).astype(t)
        check('ReverseSequence', [x2, lengths], {'seq_dim': 1, 'batch_dim': 0})
        rows = rng.integers(0, shape[0] or 1, int(rng.integers(0, 3))).astype(np.int32)
        number = pick(rng, (np.float32, np.float64, np.int32, np.int64))
        if shape[0]:
            for op in ('InplaceAdd', 'InplaceSub', 'InplaceUpdate'):
                rows = rng.permutation(shape[0])[:int(rng.integers(0, 3))].astype(np.int32)
                check(op, [draw(rng, number, shape), rows, draw(rng, number, (len(rows), *shape[1:]))])


def strided_slice_grad(check, rng):
    for _ in range(COUNT):
        dtype, t, shape = pick(rng, ANY[:-2]), index_type(rng), draw_shape(rng, 1, 3, 1)
        begin = np.array([rng.integers(0, d) for d in shape])
        end = np.array([rng.integers(b, d + 1) for b, d in zip(begin, shape)])
        strides = rng.integers(1, 4, len(shape))
        dy = np.zeros(shape)[tuple(slice(*s) for s in zip(begin, end, strides))].shape
        check('StridedSliceGrad', [np.array(shape, t), begin.astype(t), end.astype(t), strides.astype(t), draw(rng, dtype, dy)])


def diagonals(check, rng):
    for _ in range(COUNT):
        dtype = pick(rng, (np.float32, np.float64, np.int32, np.int64, np.complex64))
        shape = draw_shape(rng, 1, 2, 1)
        check('Diag', [draw(rng, dtype, shape)])
        check('DiagPart', [draw(rng, dtype, shape * 2)])
        matrix = draw_shape(rng, 2, 4)
        x = draw(rng, pick(rng, ANY[:-1]), matrix)
        check('MatrixDiag', [draw(rng, pick(rng, ANY[:-1]), draw_shape(rng, 1, 3))])
        check('MatrixDiagPart', [x])
        check('MatrixSetDiag', [x, draw(rng, x.dtype.type, matrix[:-2] + (min(matrix[-2:]),))])


def selections(check, rng):
    for _ in range(COUNT):
        dtype, t = pick(rng, (np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8)), index_type(rng)
        few = np.asarray(rng.integers(0, 6, int(rng.integers(0, 20)))).astype(dtype)
        check('ListDiff', [few, np.asarray(rng.integers(0, 6, int(rng.integers(0, 4)))).astype(dtype)], {'out_idx': t})
        for op in ('Unique', 'UniqueWithCounts'):
            check(op, [few], {'out_idx': t})
        check('UniqueWithCountsV2', [few.reshape(-1, 1), np.array([0], t)], {'out_idx': t})
        check('Where', [draw(rng, pick(rng, (np.bool_, np.float32, np.int32)), draw_shape(rng, 1, 4))])
        x = draw(rng, dtype, draw_shape(rng, 1, 3, 1))
        check('TopKV2', [x, np.int32(rng.integers(0, x.shape[-1] + 2))])
        parts = int(rng.integers(1, 5))
        data = draw(rng, pick(rng, ANY), draw_shape(rng, 1, 3))
        check('DynamicPartition', [data, rng.integers(0, parts, data.shape[0]).astype(np.int32)], {'num_partitions': parts})
        n, width = int(rng.integers(1, 6)), draw_shape(rng, 0, 2)
        order, cut = rng.permutation(n).astype(np.int32), int(rng.integers(0, n + 1))
        values = draw(rng, pick(rng, ANY), (n, *width))
        for op in ('DynamicStitch', 'ParallelDynamicStitch'):
            check(op, [order[:cut], order[cut:], values[:cut], values[cut:]], {'N': 2})
        shape = draw_shape(rng, 1, 3, 1)
        count = int(rng.integers(0, 4))
        cells = np.sort(rng.permutation(int(np.prod(shape)))[:count])
        count = len(cells)
        indices = np.stack(np.unravel_index(cells, shape), 1).astype(t).reshape(count, len(shape))
        check('SparseToDense', [indices, np.array(shape, t), draw(rng, dtype, (count,)), draw(rng, dtype, ())])
        x = draw(rng, dtype, draw_shape(rng, 1, 3, 1))
        depth = int(rng.integers(1, x.ndim + 1))
        places = np.stack([rng.integers(0, d, 3) for d in x.shape[:depth]], 1).astype(t)
        updates = draw(rng, dtype, (3, *x.shape[depth:]))
        for op in ('TensorScatterAdd', 'TensorScatterSub'):
            check(op, [x, places, updates])
        true = rng.integers(0, 6, (int(rng.integers(1, 4)), int(rng.integers(1, 3)))).astype(np.int64)
        check('ComputeAccidentalHits', [true, rng.integers(0, 6, int(rng.integers(1, 6))).astype(np.int64)],
              {'num_true': true.shape[1]})


def numerics(check, rng):
    for _ in range(COUNT):
        dtype = pick(rng, FLOATS)
        x = draw(rng, dtype, draw_shape(rng, 1, 2, 1))
        if rng.integers(2):
            x.reshape(-1)[0] = pick(rng, (np.nan, np.inf, -np.inf))
        for op in ('CheckNumerics', 'CheckNumericsV2'):
            check(op, [x], {'message': 'drawn'})


# ---- networks ----

def pooling(check, rng):
    for _ in range(COUNT):
        dtype = pick(rng, WIDE)
        x = draw(rng, dtype, (int(rng.integers(1, 3)), *map(int, rng.integers(3, 8, 2)), int(rng.integers(1, 4))))
        window, stride = [1, *map(int, rng.integers(1, 4, 2)), 1], [1, *map(int, rng.integers(1, 4, 2)), 1]
        attrs = {'ksize': window, 'strides': stride, 'padding': pick(rng, ('SAME', 'VALID'))}
        check('AvgPool', [x], attrs, **close(dtype))
        size = [-(-n // s) if attrs['padding'] == 'SAME' else (n - k) // s + 1
                for n, k, s in zip(x.shape[1:3], window[1:3], stride[1:3])]
        check('AvgPoolGrad', [np.array(x.shape, np.int32), draw(rng, dtype, (x.shape[0], *size, x.shape[3]))], attrs,
              **close(dtype))
        times, side = int(rng.integers(1, 3)), int(rng.integers(1, 3))
        f = draw(rng, dtype, (*window[1:3], x.shape[3], times))
        attrs = {'strides': [1, side, side, 1], 'padding': attrs['padding']}
        size = [-(-n // side) if attrs['padding'] == 'SAME' else (n - k) // side + 1 for n, k in zip(x.shape[1:3], window[1:3])]
        dy = draw(rng, dtype, (x.shape[0], *size, x.shape[3] * times))
        check('DepthwiseConv2dNative', [x, f], attrs, **close(dtype, 3))
        check('DepthwiseConv2dNativeBackpropInput', [np.array(x.shape, np.int32), f, dy], attrs, **close(dtype, 3))
        check('DepthwiseConv2dNativeBackpropFilter', [x, np.array(f.shape, np.int32), dy], attrs, **close(dtype, 5))


def normalisation(check, rng):
    for _ in range(COUNT):
        x = draw(rng, np.float32, (int(rng.integers(1, 3)), *map(int, rng.integers(1, 4, 2)), int(rng.integers(1, 9))))
        attrs = {'depth_radius': int(rng.integers(0, 6)), 'bias': float(rng.uniform(0.5, 2)), 'alpha': float(rng.uniform(0, 1)),
                 'beta': float(rng.uniform(0.1, 1))}
        check('LRN', [x], attrs, **close(np.float32, 5))
        check('LRNGrad', [draw(rng, np.float32, x.shape), x, draw(rng, np.float32, x.shape)], attrs, **close(np.float32, 20))
        n = x.shape[3]
        is_training = bool(rng.integers(2))
        check('FusedBatchNormGradV3', [draw(rng, np.float32, x.shape), x, draw(rng, np.float32, (n,)),
                                       draw(rng, np.float32, (n,)), draw(rng, np.float32, (n,), 0.5, 2),
                                       np.zeros(n, np.float32)],
              {'is_training': is_training, 'epsilon': 1e-3}, rtol=1e-3, atol=1e-3,
              gradient=x.size > 8 * n)  # of two or three rows nearly nothing is left: rounding


def classes(check, rng):
    for _ in range(COUNT):
        rows, n = int(rng.integers(0, 6)), int(rng.integers(1, 8))
        dtype, t = pick(rng, WIDE), index_type(rng)
        logits = draw(rng, dtype, (rows, n))
        labels = np.abs(draw(rng, dtype, (rows, n)))
        check('SoftmaxCrossEntropyWithLogits', [logits, labels / np.maximum(labels.sum(1, keepdims=True), 1e-9)],
              **close(dtype, 5))
        check('InTopKV2', [logits.astype(np.float32), rng.integers(-1, n + 1, rows).astype(t), t(rng.integers(0, n + 2))])


# ---- random numbers ----

def randoms(check, rng):
    for _ in range(COUNT):
        seeds = {'seed': int(rng.integers(1, 1 << 40)), 'seed2': int(rng.integers(0, 1 << 40))}
        pair = rng.integers(-2**62, 2**62, 2).astype(np.int64)
        t = index_type(rng)
        shape = np.array(draw_shape(rng), t)
        dtype = pick(rng, (np.int32, np.int64))
        logits = draw(rng, pick(rng, FLOATS), (int(rng.integers(1, 4)), int(rng.integers(1, 9))))
        check('RandomShuffle', [draw(rng, pick(rng, ANY), draw_shape(rng, 1))], seeds, exact=True)
        check('Multinomial', [logits, np.int32(rng.integers(0, 20))], dict(seeds, output_dtype=dtype), exact=True)
        check('StatelessMultinomial', [logits, np.int32(rng.integers(0, 20)), pair], {'output_dtype': dtype}, exact=True)
        key, counter = rng.integers(0, 2**63, 1).astype(np.uint64), rng.integers(0, 2**63, 2).astype(np.uint64)
        low = dtype(rng.integers(-99, 99))
        bounds = [low, dtype(low + rng.integers(1, 999))]
        check('StatelessRandomUniformInt', [shape, pair] + bounds, exact=True)
        check('StatelessRandomUniformIntV2', [shape, key, counter, np.int32(1)] + bounds, exact=True)
        full = pick(rng, (np.int32, np.int64, np.uint32, np.uint64))
        check('StatelessRandomUniformFullInt', [shape, pair], {'dtype': full}, exact=True)
        check('StatelessRandomUniformFullIntV2', [shape, key, counter, np.int32(1)], {'dtype': full}, exact=True)
        check('StatelessRandomGetKeyCounter', [pair], exact=True)
        check('StatelessRandomGetKeyCounterAlg', [pair], exact=True)


# ---- summaries and names ----

def texts(check, rng):
    for _ in range(COUNT):
        n = int(rng.integers(0, 5))
        tags = np.array([b'tag %d' % i for i in range(n)] + [None], object)[:-1]
        dtype = pick(rng, (np.float32, np.float64, np.int32, np.int64, np.uint8))
        values = draw(rng, dtype, (n,))
        check('ScalarSummary', [tags, values])
        check('TensorSummaryV2', [b'tag', draw(rng, dtype, draw_shape(rng)), b''])
        check('ShardedFilename', [b'base%d' % n, np.int32(rng.integers(0, 1 << 20)), np.int32(rng.integers(1, 1 << 20))])
        check('ShardedFilespec', [b'base%d' % n, np.int32(rng.integers(1, 1 << 20))])


def cases(check, rng):
    for part in (unary, gradients, binary, reductions, shapes, moves, strided_slice_grad, diagonals, selections, numerics, pooling,
                 normalisation, classes, randoms, texts):
        part(check, rng)
