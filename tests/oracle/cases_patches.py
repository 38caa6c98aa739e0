"""Cases of src/ops/nn/extract_patches.c."""
import ml_dtypes
import numpy as np

NUMBERS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
           np.uint32, np.uint64]


def some(rng, shape, dtype=np.float32):
    return rng.integers(0, 100, shape).astype(dtype)


def image(check, x, sizes, strides=(1, 1), rates=(1, 1), padding='SAME', **options):
    check('ExtractImagePatches', [x], {'ksizes': [1, *sizes, 1], 'strides': [1, *strides, 1], 'rates': [1, *rates, 1],
                                       'padding': padding}, **options)


def volume(check, x, sizes, strides=(1, 1, 1), padding='SAME', **options):
    check('ExtractVolumePatches', [x], {'ksizes': [1, *sizes, 1], 'strides': [1, *strides, 1], 'padding': padding}, **options)


def images(check, rng):
    for dtype in NUMBERS + [np.complex64, np.complex128]:
        image(check, some(rng, (2, 4, 5, 2), dtype), (2, 3), (1, 2), (2, 1))
    for padding in ('SAME', 'VALID'):
        for sizes, strides, rates in (((1, 1), (1, 1), (1, 1)), ((3, 3), (1, 1), (1, 1)), ((2, 3), (2, 3), (1, 2)),
                                      ((3, 2), (5, 1), (2, 3)), ((6, 7), (1, 1), (1, 1)), ((1, 2), (9, 9), (1, 4))):
            image(check, some(rng, (2, 6, 7, 3)), sizes, strides, rates, padding)
        for shape in ((0, 3, 3, 1), (1, 0, 3, 2), (1, 3, 3, 0)):
            image(check, some(rng, shape), (2, 2), padding=padding)
    image(check, some(rng, (1, 3, 3, 1)), (9, 11))
    image(check, some(rng, (1, 3, 3, 1)), (4, 4), padding='VALID')
    image(check, some(rng, (1, 3, 3, 1)), (5, 4), padding='VALID')
    image(check, some(rng, (3, 3, 1)), (2, 2))
    for sizes, strides, rates in (((0, 2), (1, 1), (1, 1)), ((-1, 2), (1, 1), (1, 1)), ((2, 2), (0, 1), (1, 1)),
                                  ((2, 2), (1, 1), (1, 0)), ((2, 2), (-1, 1), (1, 1))):
        image(check, some(rng, (1, 3, 3, 1)), sizes, strides, rates)
    base = {'ksizes': [1, 2, 2, 1], 'strides': [1, 1, 1, 1], 'rates': [1, 1, 1, 1], 'padding': 'SAME'}
    for name in ('ksizes', 'strides', 'rates'):
        for bad in ([2, 1, 1, 1], [1, 1, 1, 2], [1, 1, 1, 1, 1], [1, 1, 1]):
            check('ExtractImagePatches', [some(rng, (2, 3, 3, 1))], {**base, name: bad})


def volumes(check, rng):
    for dtype in NUMBERS:
        volume(check, some(rng, (2, 3, 4, 5, 2), dtype), (2, 1, 3), (1, 2, 2))
    for padding in ('SAME', 'VALID'):
        volume(check, some(rng, (2, 3, 4, 5, 2)), (1, 1, 1), (1, 1, 1), padding)
        volume(check, some(rng, (1, 3, 4, 5, 1)), (3, 2, 4), (1, 3, 2), padding)
        volume(check, some(rng, (0, 3, 4, 5, 1)), (3, 2, 4), (1, 3, 2), padding)
        volume(check, some(rng, (1, 3, 0, 5, 1)), (1, 2, 1), (1, 1, 1), padding)
    volume(check, some(rng, (2, 7, 8, 9, 2)), (1, 2, 1), (4, 5, 5))
    volume(check, some(rng, (2, 7, 8, 9, 2)), (1, 2, 3), (9, 8, 7))
    volume(check, some(rng, (1, 3, 3, 3, 2)), (2, 4, 2), padding='VALID')
    volume(check, some(rng, (1, 3, 3, 3, 2)), (2, 5, 2), padding='VALID')
    volume(check, some(rng, (3, 3, 3, 2)), (2, 2, 2))
    volume(check, some(rng, (1, 3, 3, 3, 2)), (2, 0, 2))
    volume(check, some(rng, (1, 3, 3, 3, 2)), (2, 2, 2), (1, 0, 1))
    base = {'ksizes': [1, 2, 2, 2, 1], 'strides': [1, 1, 1, 1, 1], 'padding': 'SAME'}
    for name in ('ksizes', 'strides'):
        for bad in ([2, 1, 1, 1, 1], [1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 1], [1, 1, 1, 1]):
            check('ExtractVolumePatches', [some(rng, (1, 3, 3, 3, 1))], {**base, name: bad})


def cases(check, rng):
    images(check, rng)
    volumes(check, rng)
