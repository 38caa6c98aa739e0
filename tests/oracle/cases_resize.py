"""Cases of the ops of src/ops/image/ that resize, but for ResizeBilinear (cases_image.py)."""
import ml_dtypes
import numpy as np

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INTS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]
ALIGNMENTS = ({}, {'align_corners': True}, {'half_pixel_centers': True})
SHAPES = (((1, 1, 1, 1), (4, 5)), ((1, 40, 30, 3), (90, 17)), ((4, 2, 3, 5), (31, 2)), ((1, 17, 9, 1), (3, 50)),
          ((0, 4, 4, 3), (2, 2)), ((1, 64, 64, 2), (7, 7)))
CLOSE = dict(rtol=1e-5, atol=5e-5)


def real(rng, shape, dtype):
    if np.dtype(dtype).kind in 'iu':
        return rng.integers(0 if np.dtype(dtype).kind == 'u' else -100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def errors(check, op, x, *more, attrs=None):
    """What all of them say about images and sizes."""
    for size in ([0, 4], [4, -1], [4], [4, 4, 4], [[4, 4]], 4):
        check(op, [x, np.int32(size), *more], attrs)
    for bad in (x[0], x[:, :0], x[..., :0]):
        check(op, [bad, np.int32([4, 4]), *more], attrs)


def nearest(check, rng):
    for dtype in FLOATS + INTS:
        for attrs in ALIGNMENTS:
            x = real(rng, (2, 5, 7, 3), dtype)
            for size in ((3, 4), (10, 13), (1, 1)):
                check('ResizeNearestNeighbor', [x, np.int32(size)], attrs)
            if dtype not in (np.int16, np.uint16, np.int64):
                for size in ((3, 4), (10, 13), (5, 7), (1, 1)):
                    check('ResizeNearestNeighborGrad', [x, np.int32(size)], attrs)
    for shape, size in SHAPES:
        for attrs in ALIGNMENTS:
            x, dy = real(rng, shape, np.float32), real(rng, (shape[0], *size, shape[3]), np.float32)
            check('ResizeNearestNeighbor', [x, np.int32(size)], attrs)
            check('ResizeNearestNeighborGrad', [dy, np.int32(shape[1:3])], attrs, rtol=1e-5, atol=1e-5)
    x = real(rng, (1, 3, 3, 2), np.float32)
    errors(check, 'ResizeNearestNeighbor', x)
    errors(check, 'ResizeNearestNeighborGrad', x)
    for op in ('ResizeNearestNeighbor', 'ResizeNearestNeighborGrad'):
        check(op, [x, np.int32([4, 5])], {'align_corners': True, 'half_pixel_centers': True})
    check('ResizeNearestNeighbor', [np.zeros((1, 1 << 24, 1, 1), np.uint8), np.int32([2, 1])])


def bicubic(check, rng):
    for dtype in FLOATS + INTS:
        for attrs in ALIGNMENTS:
            x = real(rng, (2, 5, 7, 3), dtype)
            for size in ((3, 4), (10, 13), (5, 7)):
                check('ResizeBicubic', [x, np.int32(size)], attrs, **CLOSE)
                if dtype in FLOATS[:2]:
                    check('ResizeBicubicGrad', [real(rng, (2, *size, 3), np.float32), x], attrs, **CLOSE)
    for shape, size in SHAPES:
        for attrs in ALIGNMENTS:
            x, dy = real(rng, shape, np.float32), real(rng, (shape[0], *size, shape[3]), np.float32)
            check('ResizeBicubic', [x, np.int32(size)], attrs, **CLOSE)
            check('ResizeBicubicGrad', [dy, x], attrs, rtol=1e-5, atol=2e-4)
    x = real(rng, (1, 3, 3, 2), np.float32)
    both = {'align_corners': True, 'half_pixel_centers': True}
    errors(check, 'ResizeBicubic', x)
    check('ResizeBicubic', [x, np.int32([4, 5])], both)
    dy = real(rng, (1, 4, 4, 2), np.float32)
    for bad in ([dy[0], x], [dy, x[0]], [dy[:0], x[:0]], [dy[:, :0], x], [dy, x[:, :0]]):
        check('ResizeBicubicGrad', bad)
    check('ResizeBicubicGrad', [dy, x], both)


def area(check, rng):
    for dtype in FLOATS + INTS:
        for attrs in ALIGNMENTS[:2]:
            x = real(rng, (2, 5, 7, 3), dtype)
            for size in ((3, 4), (10, 13), (5, 7), (1, 1)):
                check('ResizeArea', [x, np.int32(size)], attrs, **CLOSE)
    for shape, size in SHAPES + (((1, 9, 8, 3), (3, 4)), ((1, 1, 8, 3), (3, 4)), ((2, 8, 1, 2), (3, 3))):
        for attrs in ALIGNMENTS[:2]:
            check('ResizeArea', [real(rng, shape, np.float32), np.int32(size)], attrs, **CLOSE)
    errors(check, 'ResizeArea', real(rng, (1, 3, 3, 2), np.float32))


def scale_and_translate(check, rng):
    kinds = ('lanczos1', 'lanczos3', 'lanczos5', 'gaussian', 'box', 'triangle', 'keyscubic', 'mitchellcubic')
    moves = ((1, 1, 0, 0), (2.5, .4, 0, 0), (.3, .7, -1.5, 2), (1, 3, 100, -1), (.01, 1e-3, 0, 0), (1e30, 5, .5, 0),
             (1, 2, np.inf, np.nan))
    for kind in kinds:
        for antialias in (False, True):
            attrs = {'kernel_type': kind, 'antialias': antialias}
            for sy, sx, ty, tx in moves[:4]:
                scale, move = np.float32([sy, sx]), np.float32([ty, tx])
                x, dy = real(rng, (2, 9, 8, 3), np.float32), real(rng, (2, 7, 12, 3), np.float32)
                check('ScaleAndTranslate', [x, np.int32([7, 12]), scale, move], attrs, **CLOSE)
                check('ScaleAndTranslateGrad', [dy, x, scale, move], attrs, **CLOSE)
    for sy, sx, ty, tx in moves[4:-1]:
        x, dy = real(rng, (1, 9, 8, 3), np.float32), real(rng, (1, 7, 12, 3), np.float32)
        check('ScaleAndTranslate', [x, np.int32([7, 12]), np.float32([sy, sx]), np.float32([ty, tx])], **CLOSE)
        check('ScaleAndTranslateGrad', [dy, x, np.float32([sy, sx]), np.float32([ty, tx])], **CLOSE)
    for dtype in FLOATS + INTS:
        check('ScaleAndTranslate', [real(rng, (2, 5, 7, 3), dtype), np.int32([4, 9]), np.float32([.8, 1.3]), np.float32([0, .5])],
              rtol=1e-4, atol=1e-4)
    one, none = np.ones(2, np.float32), np.zeros(2, np.float32)
    x = real(rng, (1, 3, 3, 2), np.float32)
    check('ScaleAndTranslate', [x[:0], np.int32([4, 4]), one, none])
    errors(check, 'ScaleAndTranslate', x, one, none)
    for scale, move in (([0, 1], [0, 0]), ([-1, 1], [0, 0]), ([np.nan, 1], [0, 0]), ([1], [0, 0]), ([[1, 1]], [0, 0]), ([1, 1], [0, 0, 0]),
                        ([1, 1], 0)):
        check('ScaleAndTranslate', [x, np.int32([4, 4]), np.float32(scale), np.float32(move)])
        check('ScaleAndTranslateGrad', [x, x, np.float32(scale), np.float32(move)])
    for bad in ([x[0], x], [x, x[0]], [x[:0], x[:0]]):
        check('ScaleAndTranslateGrad', [*bad, one, none])
    check('ScaleAndTranslate', [x, np.int32([4, 4]), one, none], {'kernel_type': 'other'})
    check('ScaleAndTranslateGrad', [x, x, one, none], {'kernel_type': 'Box'})


def too_large(check, rng):
    """Results that no memory holds."""
    x, size = real(rng, (1, 2, 2, 3), np.float32), np.int32([2**31 - 1, 2**31 - 1])
    for op in ('ResizeNearestNeighbor', 'ResizeNearestNeighborGrad', 'ResizeBicubic', 'ResizeArea'):
        check(op, [x, size])
    check('ScaleAndTranslate', [x, size, np.ones(2, np.float32), np.zeros(2, np.float32)])
    check('CropAndResize', [x, np.zeros((1, 4), np.float32), np.int32([0]), size])
    check('CropAndResizeGradImage', [x, np.zeros((1, 4), np.float32), np.int32([0]), np.int32([1, *size, 3])], {'T': np.float32})
    check('ExtractGlimpse', [x, size, np.zeros((1, 2), np.float32)], {'noise': 'zero', 'uniform_noise': False})
    check('ImageProjectiveTransformV2', [x, np.ones((1, 8), np.float32), size], {'interpolation': 'BILINEAR'})


def cases(check, rng):
    too_large(check, rng)
    nearest(check, rng)
    bicubic(check, rng)
    area(check, rng)
    scale_and_translate(check, rng)
