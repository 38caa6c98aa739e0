"""Cases of blocks of space as batches or channels, and of data formats: src/ops/nn/space_to_batch.c, space_to_depth.c, data_format.c."""
import ml_dtypes
import numpy as np

NUMBERS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
           np.uint32, np.uint64]


def some(rng, shape, dtype=np.float32):
    return rng.integers(0, 100, shape).astype(dtype)


def edges(*values, dtype=np.int32):
    return np.array(values, dtype).reshape(len(values), 2)


def to_batch(check, rng, shape, block, pads, dtype=np.float32, index=np.int32):
    """SpaceToBatchND, and back."""
    block, pads = np.array(block, index), edges(*pads, dtype=index)
    check('SpaceToBatchND', [some(rng, shape, dtype), block, pads])
    batch = shape[0] * int(np.prod(block))
    outer = [(n + sum(p)) // b for n, p, b in zip(shape[1:], pads, block)]
    check('BatchToSpaceND', [some(rng, (batch, *outer, *shape[1 + len(block):]), dtype), block, pads])


def batches(check, rng):
    for dtype in NUMBERS:
        to_batch(check, rng, (2, 3, 4, 2), [2, 3], [[1, 0], [0, 2]], dtype)
    to_batch(check, rng, (2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]], index=np.int64)
    to_batch(check, rng, (3, 5), [4], [[5, 6]])
    to_batch(check, rng, (2, 3, 1, 4, 2, 2), [1, 2, 1, 2, 1], [[0, 0], [3, 4], [0, 0], [1, 1], [0, 0]])
    to_batch(check, rng, (1, 2, 3, 2, 4), [2, 3, 1, 2], [[0, 0], [2, 1], [1, 0], [0, 0]])
    to_batch(check, rng, (2, 3, 4), [1, 1], [[0, 0], [0, 0]])
    to_batch(check, rng, (2, 3), [], [])
    to_batch(check, rng, (0, 4), [2], [[1, 1]])
    to_batch(check, rng, (2, 0, 3), [3], [[0, 0]])
    to_batch(check, rng, (2, 0, 3), [3], [[4, 2]])
    to_batch(check, rng, (2, 3, 0), [3], [[0, 0]])
    to_batch(check, rng, (3, 40, 50, 16), [4, 5], [[3, 1], [2, 3]])


def batch_errors(check, rng):
    x = some(rng, (4, 2, 3))
    for op in ('SpaceToBatchND', 'BatchToSpaceND'):
        check(op, [x, np.int32([[2]]), edges([0, 0])])
        check(op, [x, np.int32([2, 1, 1]), edges([0, 0], [0, 0], [0, 0])])
        check(op, [x, np.int32([2]), edges([0, 0], [0, 0])])
        check(op, [x, np.int32([2]), np.int32([0, 0])])
        check(op, [x, np.int32([0]), edges([0, 0])])
        check(op, [x, np.int32([-2]), edges([0, 0])])
        check(op, [x, np.int32([2]), edges([-1, 1])])
        check(op, [x, np.int32([3]), edges([0, 0])])
        check(op, [some(rng, (32, 2, 2, 2, 2, 2)), np.int32([2] * 5), edges(*[[0, 0]] * 5)])
    check('BatchToSpaceND', [x, np.int32([2]), edges([4, 0])])
    check('BatchToSpaceND', [x, np.int32([2]), edges([3, 2])])


def images(check, rng):
    for dtype in NUMBERS:
        check('SpaceToBatch', [some(rng, (2, 3, 4, 2), dtype), edges([1, 0], [0, 2])], {'block_size': 2})
        check('BatchToSpace', [some(rng, (8, 2, 3, 2), dtype), edges([1, 0], [0, 2])], {'block_size': 2})
    for op in ('SpaceToBatch', 'BatchToSpace'):
        check(op, [some(rng, (9, 6, 3, 1)), edges([0, 0], [0, 0], dtype=np.int64)], {'block_size': 3})
        check(op, [some(rng, (9, 0, 3, 1)), edges([0, 0], [0, 0])], {'block_size': 3})
        check(op, [some(rng, (9, 3, 3)), edges([0, 0], [0, 0])], {'block_size': 3})
        check(op, [some(rng, (10, 4, 3, 1)), edges([0, 0], [0, 0])], {'block_size': 3})
        check(op, [some(rng, (9, 3, 3, 1)), edges([0, 0])], {'block_size': 3})
        check(op, [some(rng, (9, 3, 3, 1)), edges([0, 0], [0, -3])], {'block_size': 3})
        check(op, [some(rng, (9, 3, 3, 1)), edges([0, 0], [0, 0])], {'block_size': 1})
        check(op, [some(rng, (9, 3, 3, 1), bool), edges([0, 0], [0, 0])], {'block_size': 3})


def depths(check, rng):
    for dtype in NUMBERS + [np.bool_, np.complex64, np.complex128]:
        check('SpaceToDepth', [some(rng, (2, 4, 6, 3), dtype)], {'block_size': 2})
        check('DepthToSpace', [some(rng, (2, 3, 2, 8), dtype)], {'block_size': 2})
    words = np.array([b'a%d' % i for i in range(36)], object)
    check('SpaceToDepth', [words.reshape(1, 6, 3, 2)], {'block_size': 3})
    check('DepthToSpace', [words.reshape(1, 2, 2, 9)], {'block_size': 3})
    for op in ('SpaceToDepth', 'DepthToSpace'):
        for shape in ((0, 4, 4, 4), (2, 0, 4, 4), (2, 4, 4, 0), (3, 8, 4, 16), (2, 3, 4, 4), (1, 4, 4, 6), (4, 4, 4), (1, 4, 4, 4, 4)):
            check(op, [some(rng, shape)], {'block_size': 2})
        check(op, [some(rng, (1, 4, 4, 4))], {'block_size': 1})
        check(op, [some(rng, (1, 4, 4, 4))], {'block_size': 2 ** 40})


def formats(check, rng):
    for dtype in (np.int32, np.int64):
        for src, dst in (('NHWC', 'NCHW'), ('NCHW', 'NHWC'), ('HWNC', 'WHCN'), ('NDHWC', 'NCDHW'), ('abcd', 'dbca'), ('NH', 'HN'),
                         ('NHWC', 'NCHX'), ('NNHW', 'HWNN'), ('NHWC', 'NCDHW'), ('NHWC', 'NC'), ('', '')):
            attrs = {'src_format': src, 'dst_format': dst}
            check('DataFormatDimMap', [dtype([[-4, -1, 0], [3, 1, 2]])], attrs)
            check('DataFormatVecPermute', [rng.integers(0, 9, (len(src),)).astype(dtype)], attrs)
            check('DataFormatVecPermute', [rng.integers(0, 9, (len(src), 2)).astype(dtype)], attrs)
            check('DataFormatVecPermute', [rng.integers(0, 9, (max(len(src) - 2, 0),)).astype(dtype)], attrs)
            check('DataFormatVecPermute', [rng.integers(0, 9, (max(len(src) - 2, 0), 2)).astype(dtype)], attrs)
        for shape in ((), (0,), (3,), (4, 3), (3, 2), (0, 2), (2, 2, 2)):
            check('DataFormatVecPermute', [rng.integers(0, 9, shape).astype(dtype)])
        for shape in ((), (0,), (7,)):
            check('DataFormatDimMap', [rng.integers(-4, 4, shape).astype(dtype)])
        check('DataFormatDimMap', [dtype([4, -5, 100, -100, 9, -9])])
        check('DataFormatDimMap', [dtype([4, -5, 100, -100, 9, -9])], {'src_format': 'NCDHW', 'dst_format': 'NDHWC'})
    check('DataFormatDimMap', [np.int32([2 ** 31 - 1, -2 ** 31])])


def cases(check, rng):
    batches(check, rng)
    batch_errors(check, rng)
    images(check, rng)
    depths(check, rng)
    formats(check, rng)
