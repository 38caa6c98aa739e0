"""Random permutations of rows, and indices in them."""
import numpy as np


def rows(check, rng):
    op = 'StatelessShuffle'
    key, counter = np.uint64([77]), np.uint64([5, 9])
    for dtype in (np.float32, np.float64, np.int8, np.int64, np.complex128, np.float16, bool):
        for shape in ((), (1,), (10,), (7, 3), (0,), (3, 0), (2, 2, 2), (500,)):
            check(op, [rng.integers(0, 2, shape).astype(dtype) if dtype is bool else np.arange(int(np.prod(shape))).reshape(shape).astype(dtype),
                       rng.integers(0, 2**62, 1).astype(np.uint64), rng.integers(0, 2**62, 2).astype(np.uint64), np.int32(1)])
    check(op, [np.array([b'a', b'b', b'c', b'd'], object), key, counter, np.int32(3)])
    x = np.arange(6)
    for bad in ([x, np.uint64(1), counter, np.int32(1)], [x, np.uint64([1, 2]), counter, np.int32(1)],
                [x, key, np.uint64(1), np.int32(1)], [x, key, counter, np.int32([1])], [x, key, counter, np.int32(7)], [x, key, counter, np.int32(2)]):
        check(op, bad)
    check(op, [x, key, np.uint64([1]), np.int32(1)], weir_only_fails=True)  # TensorFlow reads beyond it


def cases(check, rng):
    rows(check, rng)
    op = 'RandomIndexShuffle'
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        for seed_type in (np.int32, np.uint32, np.int64, np.uint64):
            for top in (0, 1, 4, 9, 1000, 65535, 65536, 10**6, 2**31 - 1):
                for rounds in (4, 6, 16, 64):
                    check(op, [np.array(rng.integers(0, top + 1), dtype), rng.integers(0, 2**31, 3).astype(seed_type), np.array(top, dtype)],
                          {'rounds': rounds})
            check(op, [np.arange(5).astype(dtype), np.array([1, 2, 3], seed_type), np.array(4, dtype)])
    check(op, [np.int64(12345678901), np.int32([11, 22, 33]), np.int64(1 << 40)])
    check(op, [np.uint64((1 << 63) + 5), np.int32([11, -22, 33]), np.uint64((1 << 64) - 1)])
    i = np.int32
    for index, seed, top in (([0, 1], [[1, 2, 3], [4, 5, 6]], [5, 9]), ([0, 1], [1, 2, 3], [5, 9]), (1, [[1, 2, 3], [4, 5, 6]], [5, 9]),
                             (1, [[1, 2, 3], [4, 5, 6]], 9), (1, [1, 2, 3], [5, 9]), ([0, 1], [[1, 2, 3]], [5, 9]), ([0, 1], [1, 2], [5, 9]),
                             ([0, 1], [[1, 2], [3, 4]], [5, 9]), ([[0, 1]], [1, 2, 3], 5), ([0, 1], [1, 2, 3], [5, 9, 8]), ([0], [1, 2, 3], [5, 9, 8]),
                             ([], [1, 2, 3], 5), ([0, 1], [], 5), (1, 1, 5), (-1, [1, 2, 3], 5), (1, [1, 2, 3], -1), (5, [1, 2, 3], 4)):
        check(op, [i(index), i(seed), i(top)])
