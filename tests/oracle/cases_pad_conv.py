"""Cases of src/ops/nn/fused_pad_conv2d.c.

Of one image: in a batch TensorFlow gives all of them the result of the first. src/kernel/conv/resize_pad_test.c has several.
"""
import ml_dtypes
import numpy as np

LOOSE = {np.float32: dict(rtol=2e-5, atol=1e-4), np.float64: dict(rtol=1e-5, atol=1e-5), np.float16: dict(rtol=3e-2, atol=6e-2),
         ml_dtypes.bfloat16: dict(rtol=2e-1, atol=5e-1)}


def normal(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def border(h, w):
    return np.int32([[0, 0], h, w, [0, 0]])


def attributes(mode='REFLECT', strides=(1, 1), padding='VALID', **more):
    return {'mode': mode, 'strides': [1, *strides, 1], 'padding': padding, **more}


def padded(check, rng):
    for dtype, loose in LOOSE.items():
        for mode in ('REFLECT', 'SYMMETRIC'):
            for strides, padding in (((1, 1), 'VALID'), ((2, 1), 'SAME')):
                x, f = normal(rng, (1, 5, 4, 3), dtype), normal(rng, (3, 2, 3, 4), dtype)
                check('FusedPadConv2D', [x, border((2, 1), (0, 3)), f], attributes(mode, strides, padding), **loose)
    x, f = normal(rng, (1, 4, 4, 2)), normal(rng, (2, 2, 2, 3))
    for h, w in (((0, 0), (0, 0)), ((4, 4), (0, 4)), ((3, 3), (3, 3)), ((5, 0), (0, 0)), ((0, 0), (0, 5))):
        check('FusedPadConv2D', [x, border(h, w), f], attributes('SYMMETRIC'), **LOOSE[np.float32])
        check('FusedPadConv2D', [x, border(h, w), f], attributes('REFLECT'), **LOOSE[np.float32])
    p = border((1, 1), (2, 0))
    for bad in ([x[:0], p, f], [x, p, f[0]], [x, p, f[:, :, :1].copy()], [x, p[:3], f], [x, p[0], f], [x, p - 1, f],
                [x, np.int32([[1, 0], [0, 0], [0, 0], [0, 0]]), f], [x, np.int32([[0, 0], [0, 0], [0, 0], [0, 1]]), f],
                [x, p, normal(rng, (9, 9, 2, 3))], [x, p, normal(rng, (7, 7, 2, 3))], [x, p, f[..., :0]]):
        check('FusedPadConv2D', bad, attributes('SYMMETRIC'))
    for bad in ({'strides': [1, 1, 1]}, {'strides': [1, 1, 1, 2]}, {'strides': [1, 0, 1, 1]}, {'mode': 'EDGE'}, {'padding': 'EXPLICIT'}):
        check('FusedPadConv2D', [x, p, f], {**attributes(), **bad})


def resized(check, rng):
    for dtype in (np.float32, np.float64, np.float16):
        for size in ((5, 6), (9, 11), (3, 2), (1, 1), (10, 3)):
            for align in (False, True):
                x, f = normal(rng, (1, 5, 4, 3), dtype), normal(rng, (1, 1, 3, 4), dtype)
                pads = border((0, 0), (0, 0)) if 1 in size else border((1, 2), (1, 0))
                check('FusedResizeAndPadConv2D', [x, np.int32(size), pads, f], attributes(resize_align_corners=align), **LOOSE[dtype])
    x, f, p = normal(rng, (1, 4, 4, 2)), normal(rng, (2, 3, 2, 3)), border((1, 1), (2, 0))
    check('FusedResizeAndPadConv2D', [x, np.int32([7, 5]), p, f], attributes('SYMMETRIC', (2, 3), 'SAME'), **LOOSE[np.float32])
    for bad in ([x, np.int32([5, 6, 7]), p, f], [x, np.int32([0, 6]), p, f], [x, np.int32([-1, 6]), p, f], [x, np.int32([[5, 6]]), p, f],
                [x, np.int32(5), p, f], [x[0], np.int32([5, 6]), p, f], [x[:0], np.int32([5, 6]), p, f], [x, np.int32([5, 2]), p, f],
                [x, np.int32([5, 6]), p[:3], f], [x, np.int32([5, 6]), p, f[:, :, :1].copy()]):
        check('FusedResizeAndPadConv2D', bad, attributes())


def cases(check, rng):
    padded(check, rng)
    resized(check, rng)
