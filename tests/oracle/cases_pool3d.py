"""Cases of pooling of volumes: src/ops/nn/max_pool3d.c and avg_pool3d.c."""
import ml_dtypes
import numpy as np

from values import SATURATES

TYPES = {np.float32: dict(rtol=2e-5, atol=2e-5), ml_dtypes.bfloat16: dict(rtol=5e-2, atol=5e-2)}


def normal(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def tied(rng, shape, dtype=np.float32):
    return rng.integers(0, 4, shape).astype(dtype)


def windows(sizes, strides, padding):
    return {'ksize': [1, *sizes, 1], 'strides': [1, *strides, 1], 'padding': padding}


def outputs(shape, sizes, strides, padding):
    spaces = [-(-n // s) if padding == 'SAME' else (n - k) // s + 1 for n, k, s in zip(shape[1:], sizes, strides)]
    return (shape[0], *spaces, shape[4])


def maxima(x, out, sizes, strides, padding):
    """The maxima of |x|, as the gradients take them."""
    y = np.full(out, -np.inf, np.float32)
    pads = [max((o - 1) * s + k - n, 0) // 2 if padding == 'SAME' else 0
            for o, s, k, n in zip(out[1:], strides, sizes, x.shape[1:])]
    for d, h, w in np.ndindex(*out[1:4]):
        spans = [slice(max(i * s - p, 0), i * s - p + k) for i, s, p, k in zip((d, h, w), strides, pads, sizes)]
        y[:, d, h, w] = x.astype(np.float32)[(slice(None), *spans)].max(axis=(1, 2, 3))
    return y.astype(x.dtype)


def pool_all(check, rng, shape, sizes, strides, padding, dtype=np.float32, draw=normal):
    attrs, out = windows(sizes, strides, padding), outputs(shape, sizes, strides, padding)
    x, dy = draw(rng, shape, dtype), normal(rng, out, dtype)
    check('MaxPool3D', [x], attrs)
    check('AvgPool3D', [x], attrs, **TYPES[dtype])
    check('AvgPool3DGrad', [np.int32(shape), dy], attrs, **TYPES[dtype])
    if 0 in shape or 0 in out:
        y = np.zeros(out, dtype)
    else:
        y = maxima(x, out, sizes, strides, padding)
    check('MaxPool3DGrad', [x, y, dy], attrs, **TYPES[dtype])
    check('MaxPool3DGradGrad', [x, y, normal(rng, shape, dtype)], attrs)


def values(check, rng):
    for padding in ('SAME', 'VALID'):
        for dtype in TYPES:
            pool_all(check, rng, (2, 4, 5, 6, 3), (2, 3, 2), (2, 1, 2), padding, dtype)
            pool_all(check, rng, (2, 4, 5, 3, 2), (2, 2, 2), (1, 2, 1), padding, dtype, tied)
        pool_all(check, rng, (1, 5, 4, 3, 1), (1, 1, 1), (1, 1, 1), padding)
        pool_all(check, rng, (1, 5, 4, 3, 9), (1, 1, 1), (3, 2, 4), padding)
        pool_all(check, rng, (1, 7, 4, 6, 2), (3, 4, 3), (1, 1, 1), padding)
        pool_all(check, rng, (0, 4, 4, 4, 2), (2, 2, 2), (2, 2, 2), padding)
        pool_all(check, rng, (1, 4, 4, 4, 0), (2, 2, 2), (2, 2, 2), padding)
    # Windows longer than the volume, of which TensorFlow's gradients count more than the forward op does.
    pool_all(check, rng, (2, 4, 3, 2, 2), (5, 7, 4), (1, 1, 1), 'SAME')
    pool_all(check, rng, (2, 3, 4, 6, 2), (9, 5, 3), (2, 3, 1), 'SAME', draw=tied)
    pool_all(check, rng, (1, 0, 4, 5, 2), (2, 2, 2), (1, 2, 2), 'SAME')
    x = normal(rng, (1, 4, 4, 4, 4))
    if SATURATES:
        x[0, 1, 2, 3, 0] = x[0, 0, 0, 0, 1] = np.nan
    x[0, 2:, 2:, 2:, 1] = -np.inf
    x[0, 2, 1, 1, 0] = np.inf
    for padding in ('SAME', 'VALID'):
        for size, stride in ((2, 2), (3, 1), (3, 2)):
            check('MaxPool3D', [x], windows([size] * 3, [stride] * 3, padding))


def errors(check, rng):
    x, y = normal(rng, (1, 4, 4, 4, 2)), normal(rng, (1, 2, 2, 2, 2))
    good = windows((2, 2, 2), (2, 2, 2), 'VALID')
    bads = [{'ksize': k} for k in ([2, 2, 2, 2, 1], [1, 2, 2, 2, 2], [1, 2, 0, 2, 1], [1, -2, 2, 2, 1], [1, 2, 2, 2, 1, 1],
                                   [1, 2, 2, 1], [1, 5, 2, 2, 1], [1, 2 ** 40, 2, 2, 1])]
    bads += [{'strides': s} for s in ([2, 2, 2, 2, 1], [1, 2, 2, 2, 2], [1, 2, 0, 2, 1], [1, -2, 2, 2, 1], [1, 2, 2, 2, 1, 1],
                                      [1, 2 ** 40, 2, 2, 1])]
    for bad in bads:
        attrs = {**good, **bad}
        check('MaxPool3D', [x], attrs)
        check('AvgPool3D', [x], attrs)
        check('AvgPool3DGrad', [np.int32(x.shape), y], attrs, gradient=False)
        check('MaxPool3DGrad', [x, y, y], attrs, gradient=False)
        check('MaxPool3DGradGrad', [x, y, x], attrs, gradient=False)
    for op in ('MaxPool3D', 'AvgPool3D'):
        check(op, [x[0]], good)
    for inputs in ([x[0], y, y], [x, y[0], y], [x, y, y[0]], [x, y[:, :1], y], [x, y, y[:, :1]], [x, y[..., :1], y[..., :1]]):
        check('MaxPool3DGrad', inputs, good, gradient=False)
    for inputs in ([x[0], y, x], [x, y[0], x], [x, y, x[0]], [x, y[:, :1], x], [x, y, x[:, :1]]):
        check('MaxPool3DGradGrad', inputs, good, gradient=False)
    for shape, grad in (([4, 4, 4, 2], y), ([[1, 4, 4, 4, 2]], y), ([1, 4, 4, 4, 2], y[0]), ([2, 4, 4, 4, 2], y),
                        ([1, 4, 4, 4, 3], y), ([1, -4, 4, 4, 2], y), ([1, 2 ** 30, 2 ** 30, 2 ** 30, 2], y),
                        ([1, 4, 4, 4, 2], y[:, :1, :, :1]), ([1, 4, 4, 4, 2], normal(rng, (1, 3, 2, 2, 2))),
                        ([1, 4, 4, 4, 2], normal(rng, (1, 2, 2, 4, 2)))):
        check('AvgPool3DGrad', [np.int32(shape), grad], good, gradient=False)


def cases(check, rng):
    values(check, rng)
    errors(check, rng)
