"""Cases of ops that few programs have: old ones, and those of quasi-random and of rounded numbers."""
import platform

import numpy as np
from ml_dtypes import bfloat16

from values import SATURATES

f, i32 = np.float32, np.int32


def sobol(check):
    for t in (np.float32, np.float64):
        for dim, count, skip in ((1, 1, 0), (2, 7, 0), (40, 33, 5), (1111, 3, 12345), (3, 100, 2**30 - 103)):
            check('SobolSample', [i32(dim), i32(count), i32(skip)], {'dtype': t}, exact=True)
    for bad in ((0, 2, 0), (-1, 2, 0), (3, 0, 0), (3, -1, 0), (3, -2, 0), (3, 2, -1), (21201, 2, 3), (2, 5, 2**31 - 6), (2, 9, 2**31 - 1)):
        check('SobolSample', [i32(x) for x in bad])
    # Points from number 2^30 on are outside of the unit cube in TensorFlow, where a sign overflows.
    check('SobolSample', [i32(1112), i32(1), i32(0)], weir_only_fails=True)  # the table is of so many dimensions
    for at in range(3):
        check('SobolSample', [i32([2]) if i == at else i32(2) for i in range(3)])


def stochastic_cast(check, rng):
    key, counter = np.uint64([5 << 40 | 77]), np.uint64([3 << 33 | 9, 2])
    special = [0.1, 0.5, -0.5, 3, -3, np.nan, np.inf, -np.inf, 1e10, -1e10, 300.25, -300.25, 127.5, -128.5, 1e-7, -1e-7]
    for source in (np.float16, bfloat16, np.float32, np.float64):
        # Which random numbers are whose depends on the length of the processor's vectors.
        wide = source in (np.float32, np.float64) and platform.machine() != 'aarch64'
        for result in (np.int8, np.int16, np.int32):
            for shape in ((), (0,), (3,), (19,), (5, 20)):
                x = (rng.standard_normal(shape) * 20).astype(source)
                check('StochasticCastToInt', [x, key, counter, i32(1)], {'Tout': result}, shapes_only=wide)
            with np.errstate(over='ignore'):
                x = np.array(special * 3, f).astype(source)
            check('StochasticCastToInt', [x, key, counter, i32(3)], {'Tout': result}, shapes_only=wide or platform.machine() != 'aarch64')
    x, to = f([1.5, 2]), {'Tout': np.int8}
    for algorithm in (0, 2, 4):
        check('StochasticCastToInt', [x, key, counter, i32(algorithm)], to)
    check('StochasticCastToInt', [x, key, counter, i32([1])], to)
    check('StochasticCastToInt', [x, key[0], counter, i32(1)], to)
    check('StochasticCastToInt', [x, np.uint64([1, 2]), counter, i32(1)], to)
    check('StochasticCastToInt', [x, key, counter[0], i32(1)], to)
    check('StochasticCastToInt', [x, key, np.uint64([1, 2, 3]), i32(1)], to)
    check('StochasticCastToInt', [x, key, counter[:1], i32(1)], to, weir_only_fails=True)  # there it is not looked at


def picture(rng, t, shape):
    return rng.integers(0 if t is np.uint8 else -90, 100, shape).astype(t) if np.dtype(t).kind in 'iu' else (rng.standard_normal(shape) * 50).astype(t)


def random_crop(check, rng):
    for t in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64):
        for seed, size in ((1, (3, 2)), (2, (5, 3)), (3, (2, 7)), (4, (5, 7)), (5, (0, 3)), (6, (0, 0))):
            check('RandomCrop', [picture(rng, t, (5, 7, 3)), np.int64(size)], {'seed': seed, 'seed2': 9})
    image = np.zeros((5, 7, 3), f)
    check('RandomCrop', [image[:, :0], np.int64([1, 0])], {'seed': 1})
    for size in ((6, 2), (2, 8), (2,), (1, 2, 3), ((2, 2),)):
        check('RandomCrop', [image, np.int64(size)], {'seed': 1})
    check('RandomCrop', [image[0], np.int64([1, 2])], {'seed': 1})
    # A negative size ends TensorFlow's process.


def adjust_contrast(check, rng):
    for t in (np.uint8, np.int8, np.int16, np.int32, np.float32, np.float64, np.int64):
        for shape in ((4, 5, 3), (2, 3, 4, 1), (0, 2, 3), (2, 0, 3, 4)):
            check('AdjustContrast', [picture(rng, t, shape), f(1.75), f(-30), f(60)], rtol=1e-5, atol=1e-4)
    x = f([[[1], [2]], [[2], [3]]])
    for factor, low, high in ((2, 5, 1), (np.nan, 0, 1), (np.inf, 0, 1), (0, -9, 9)) + ((1, np.nan, 1), (1, 0, np.nan)) * SATURATES:
        check('AdjustContrast', [x, f(factor), f(low), f(high)])
    check('AdjustContrast', [f([[[1], [np.nan]], [[np.inf], [3]]]), f(1), f(0), f(1)])
    check('AdjustContrast', [x[0], f(1), f(0), f(1)])
    for at in range(3):
        check('AdjustContrast', [x] + [f([1]) if i == at else f(1) for i in range(3)])


def rows_of_nothing(check):
    """Whose ids nobody looks at."""
    for op in ('UnsortedSegmentSum', 'UnsortedSegmentProd', 'UnsortedSegmentMax', 'UnsortedSegmentMin'):
        for ids in ([5, 1, 2], [-1, 1, 2]):
            check(op, [np.zeros((3, 0), f), i32(ids), i32(4)], gradient=False)
            check(op, [np.zeros((3, 2), f), i32(ids), i32(4)], gradient=False)


def cases(check, rng):
    rows_of_nothing(check)
    sobol(check)
    stochastic_cast(check, rng)
    random_crop(check, rng)
    adjust_contrast(check, rng)
