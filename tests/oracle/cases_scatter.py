"""Scatters and slices into variables and tensors, rows in place, bands of diagonals."""
import numpy as np
from ml_dtypes import bfloat16
from oracle import ref, resource

ORDERED = (np.float32, np.float64, np.float16, bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
           np.int64, np.uint64)
NUMBERS = ORDERED + (np.complex64, np.complex128)
ALIGNS = ('LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT')
i32, f32 = np.int32, np.float32


def numbers(rng, dtype, shape):
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(1, 9, shape).astype(dtype)


def strings(*shape):
    return np.array([b'%d' % k * (k + 1) * 5 for k in range(int(np.prod(shape)))], object).reshape(shape)


def targets(op, x):
    """The op's name by kind of target, and the target."""
    if op in ('Min', 'Max', 'Add', 'Sub', 'Update'):
        yield 'ScatterNd' + op, ref(x)
        yield 'ResourceScatterNd' + op, resource(x)
    if op in ('Min', 'Max'):
        yield 'TensorScatter' + op, x
    if op == 'Add':
        yield 'ScatterNdNonAliasingAdd', x


def types_of(op, kind):
    if op in ('Min', 'Max'):
        return ORDERED
    return NUMBERS + ((np.bool_,) if op == 'Update' or not kind.startswith('ScatterNd') or 'Non' in kind else ())


def long_rows(check, rng):
    """Each is dealt out to several threads."""
    x, index = numbers(rng, f32, (3, 100000)), np.array([0, 1], i32)
    for op in ('Update', 'Add', 'Max'):
        check('Scatter' + op, [ref(x), index, numbers(rng, f32, (2, 100000))])
        check('Scatter' + op, [ref(x), index, f32(3)])
        check('ResourceScatter' + op, [resource(x), index, numbers(rng, f32, (2, 100000))])


def scatter_nd(check, rng):
    for op in ('Update', 'Add', 'Sub', 'Min', 'Max'):
        for dtype in NUMBERS + (np.bool_,):
            for name, x in targets(op, numbers(rng, dtype, (5, 3))):
                if dtype not in types_of(op, name):
                    continue
                check(name, [x, np.array([[1], [3]], i32), numbers(rng, dtype, (2, 3))])
                if op != 'Update':
                    check(name, [x, np.array([[4, 0], [1, 2], [1, 2]], np.int64), numbers(rng, dtype, (3,))])
        x = numbers(rng, f32, (2, 3, 4))
        cases = [
            (np.array([[[1, 2], [0, 0]]], i32), (1, 2, 4)), (np.array([[1, 2, 3]], i32), (1,)),
            (np.zeros((0, 1), i32), (0, 3, 4)), (np.array([1], i32), (3, 4)), (np.array([1], i32), (1, 3, 4)), (np.zeros(0, i32), (2, 3, 4)),
            (np.zeros((1, 0), i32), (1, 2, 3, 4)),
            (np.array([[2]], i32), (1, 3, 4)), (np.array([[-1]], i32), (1, 3, 4)), (np.array([[1]], i32), (2, 3, 4)),
            (np.array([[0], [5]], i32), (2, 3, 4)), (np.array([[1]], i32), (1, 3)), (np.array(1, i32), (3, 4)),
            (np.array([[0, 0, 0, 0]], i32), (1,)), (np.array([[0, 0, 3]], i32), (1,))]
        for index, shape in cases:
            for name, target in targets(op, x):
                check(name, [target, index, numbers(rng, f32, shape)])
        for policy in ('IGNORE', 'ERROR', 'DEFAULT', 'what'):
            for name, target in targets(op, x):
                check(name, [target, np.array([[5], [1]], i32), numbers(rng, f32, (2, 3, 4))],
                      {'bad_indices_policy': policy})
        for name, target in targets(op, np.zeros((0, 3), f32)):
            check(name, [target, np.array([[0]], i32), np.zeros((1, 3), f32)])
            check(name, [target, np.zeros((0, 1), i32), np.zeros((0, 3), f32)])
        one = np.array([[0]], i32)
        check('ScatterNd' + op, [ref(None, np.float32), one, np.ones(1, f32)])
        check('ResourceScatterNd' + op, [resource(None, np.float32), one, np.ones(1, f32)])
        if op in ('Add', 'Sub', 'Update'):
            for shape in ((4, 40), (6, 1)):
                check('ResourceScatterNd' + op, [resource(numbers(rng, np.bool_, shape)), np.array([[1], [3]], i32),
                                                 numbers(rng, np.bool_, (2, shape[1]))])
    for name, x in targets('Update', strings(4)):
        check(name, [x, np.array([[2], [0]], i32), np.array(['x' * 40, 'y'], object)])


def slices(check, rng):
    masks = ({}, {'begin_mask': 1}, {'end_mask': 3}, {'shrink_axis_mask': 2}, {'new_axis_mask': 1},
             {'ellipsis_mask': 1})

    def each(x, begin, end, strides, make, attrs, index=i32):
        spec = [np.array(v, index) for v in (begin, end, strides)]
        check('StridedSliceAssign', [ref(x)] + spec + [make], attrs)
        check('ResourceStridedSliceAssign', [resource(x)] + spec + [make], attrs)
        check('TensorStridedSliceUpdate', [x] + spec + [make], attrs)

    for dtype in NUMBERS + (np.bool_,):
        for index in (i32, np.int64):
            each(numbers(rng, dtype, (4, 5)), [1, 0], [3, 5], [1, 2], numbers(rng, dtype, (2, 3)), {}, index)
    each(strings(4, 2), [3], [0], [-2], strings(2, 2), {})
    for shape in ((1, 2, 3), (1, 1, 2, 1), (2, 1, 3), (2, 2, 3)):
        each(np.zeros((4, 5), np.float32), [1, 0], [3, 5], [1, 2], np.arange(np.prod(shape), dtype=np.float32).reshape(shape), {})
    each(np.zeros(4, np.float32), [1], [2], [1], np.ones((1, 1), np.float32), {'shrink_axis_mask': 1})
    x = rng.standard_normal((4, 5, 3))
    shapes = {0: (2, 2, 3), 1: (3, 2, 3), 2: (3, 4, 3), 3: (2, 3), 4: (1, 2, 5, 3), 5: (4, 5, 2)}
    for k, mask in enumerate(masks):
        each(x, [1, 1], [3, 3], [1, 1], rng.standard_normal(shapes[k]), mask)
        each(x, [1, 1], [3, 3], [1, 1], rng.standard_normal((7, 7)), mask)
    each(x, [-1, -1, 2], [-5, -6, 0], [-2, -1, -1], rng.standard_normal((2, 5, 2)), {})
    each(x, [1, 2, 0], [2, 3, 1], [1, 1, 1], np.float64(3), {'shrink_axis_mask': 7})
    each(x, [1, 1], [3, 3], [1, 1], np.float64(3), {})
    each(x, [1, 1], [3, 3], [1, 1], rng.standard_normal((1, 1, 3)), {})
    each(x, [1, 1], [3, 3], [1, 1], rng.standard_normal((2, 3)), {})
    each(x, [3], [3], [1], rng.standard_normal((0, 5, 3)), {})
    each(x, [3], [3], [1], rng.standard_normal((2, 3)), {})
    each(x, [3], [4], [0], rng.standard_normal((1, 5, 3)), {})
    each(x, [4], [5], [1], rng.standard_normal((5, 3)), {'shrink_axis_mask': 1})
    each(x, [0, 0], [1], [1], rng.standard_normal((1, 5, 3)), {})
    each(x, [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], rng.standard_normal((1, 1, 1)), {})
    each(np.zeros((0, 3)), [0], [2], [1], np.zeros((0, 3)), {})
    one = np.array([1], i32)
    check('StridedSliceAssign', [ref(None, np.float32), one, one, one, np.ones(1, f32)])
    check('ResourceStridedSliceAssign', [resource(None, np.float32), one, one, one, np.ones(1, f32)])


def inplace(check, rng):
    for op in ('InplaceUpdate', 'InplaceAdd', 'InplaceSub'):
        for dtype in NUMBERS + (np.bool_,):
            check(op, [numbers(rng, dtype, (5, 2, 3)), np.array([1, 4], i32), numbers(rng, dtype, (2, 2, 3))])
        x = numbers(rng, f32, (4, 3))
        for rows in ([-1, 2], [7, -6], [1, 1], [0]):
            check(op, [x, np.array(rows, i32), numbers(rng, f32, (len(rows), 3))])
        check(op, [x[:, 0], np.array([2], i32), np.ones(1, f32)])
        check(op, [x, np.array([], i32), np.ones((0, 3), f32)])
        check(op, [np.zeros((0, 3), f32), np.array([1], i32), np.ones((1, 3), f32)])
        check(op, [np.zeros((3, 0), f32), np.array([1], i32), np.ones((1, 0), f32)])
        check(op, [x, np.array([1, 2], i32), np.ones((1, 3), f32)])
        check(op, [x, np.array([1], i32), np.ones((1, 2), f32)])
        check(op, [x, np.array([1], i32), np.ones(3, f32)])
        check(op, [x, np.int32(1), np.ones((1, 3), f32)])
        check(op, [strings(3, 2), np.array([2, 0], i32), strings(2, 2)])


def diagonals(check, rng):
    for dtype in NUMBERS + (np.bool_,):
        check('MatrixDiagV3', [numbers(rng, dtype, (2, 3)), i32(1), i32(-1), i32(-1), numbers(rng, dtype, ())])
        check('MatrixDiagPartV3', [numbers(rng, dtype, (2, 3, 4)), np.array([-1, 2], i32), numbers(rng, dtype, ())])
    zero = np.float64(0)
    for align in ALIGNS:
        for rows, columns in ((3, 4), (4, 3), (3, 3), (1, 5), (5, 1)):
            x = rng.standard_normal((2, rows, columns))
            for k in (0, 1, -1, [0, 1], [-1, 0], [-2, 2], [-1, 1], [1, 2], [-2, -1], [2], [-rows + 1, columns - 1]):
                k = np.array(k, i32)
                check('MatrixDiagPartV3', [x, k, np.float64(7)], {'align': align})
                lower, upper = int(k.min()), int(k.max())
                length = min(rows + min(upper, 0), columns - max(lower, 0))
                if length <= 0:
                    continue
                shape = (2, length) if lower == upper else (2, upper - lower + 1, length)
                y = rng.standard_normal(shape)
                for size in ((rows, columns), (-1, -1), (rows, -1), (-1, columns)):
                    check('MatrixDiagV3', [y, k, i32(size[0]), i32(size[1]), np.float64(7)], {'align': align})
    y = rng.standard_normal((3, 4))
    for k in ([0, 1], [1, 0], [], [0, 1, 2], [[0]], [-1, 1]):
        k = np.array(k, i32)
        check('MatrixDiagV3', [y, k, i32(-1), i32(-1), zero])
        check('MatrixDiagPartV3', [y, k, zero])
    for rows, columns in ((2, 2), (5, 5), (3, 4), (4, 9), (0, 0), (-2, 4), (-1, -3)):
        check('MatrixDiagV3', [y, i32(0), i32(rows), i32(columns), zero])
    check('MatrixDiagV3', [zero, i32(0), i32(-1), i32(-1), zero])
    check('MatrixDiagV3', [y[0], np.array([0, 1], i32), i32(-1), i32(-1), zero])
    check('MatrixDiagV3', [y, i32(0), np.array([4], i32), i32(-1), zero])
    check('MatrixDiagV3', [y, i32(0), i32(-1), i32(-1), y[0]])
    check('MatrixDiagV3', [np.zeros((0, 3)), i32(0), i32(-1), i32(-1), zero])
    check('MatrixDiagV3', [np.zeros((2, 0)), i32(1), i32(-1), i32(-1), np.float64(5)])
    check('MatrixDiagPartV3', [y[0], i32(0), zero])
    check('MatrixDiagPartV3', [y, i32(0), y[0]])
    for k in (4, -3, [0, 4], [-3, 0], 3, -2):
        check('MatrixDiagPartV3', [y, np.array(k, i32), zero])
    check('MatrixDiagPartV3', [np.zeros((0, 3, 3)), np.array([0, 1], i32), zero])
    check('MatrixDiagPartV3', [np.zeros((2, 0, 3)), i32(0), zero])


def others(check, rng):
    for dtype in NUMBERS + (np.bool_,):
        rows = [numbers(rng, dtype, (1, 2, 3)) for _ in range(3)]
        check('ParallelConcat', rows, {'N': 3, 'shape': (3, 2, 3)})
        check('DebugIdentity', [rows[0]], {'tensor_name': 'a:0'})
    check('ParallelConcat', [strings(1, 2), strings(1, 2)], {'N': 2, 'shape': (2, 2)})
    check('ParallelConcat', [np.ones((1, 2)), np.ones((1, 2))], {'N': 2, 'shape': (3, 2)},
          weir_only_fails=True, name='a row that no value fills')
    check('ParallelConcat', [np.ones((2, 2)), np.ones((1, 2))], {'N': 2, 'shape': (2, 2)})
    check('ParallelConcat', [np.ones((1, 2)), np.ones((1, 3))], {'N': 2, 'shape': (2, 2)})
    check('ParallelConcat', [np.ones((1, 0))], {'N': 1, 'shape': (1, 0)})
    check('DebugIdentity', [strings(2)], {'tensor_name': 'a'})
    for name in ('', 'a:b', 'a:', 'a:0:1', 'a:12'):
        check('DebugIdentity', [np.ones(2)], {'tensor_name': name})
    check('Timestamp', [], shapes_only=True)


def index_vectors(check):
    """To TensorFlow's shape functions a vector is one row of indices, to its kernels a column: it refuses them."""
    for op in ('Update', 'Add', 'Sub', 'Min', 'Max'):
        for index, updates, shape in (([1], (), (3,)), ([1], (1,), (3,)), ([0, 1], (2,), (3,)), ([0, 1], (), (3, 3)),
                                      ([0], (3,), (2, 3)), ([0], (1,), (1, 1)), ([0, 1], (2, 3), (2, 3)), ([], (0,), (3,)),
                                      ([], (3,), (3,)), ([], (0, 3), (2, 3)), (1, (1,), (3,)), (1, (), (3,)), ([[1]], (1,), (3,)),
                                      ([[0], [1]], (2, 3), (2, 3)), ([[0, 1]], (1,), (2, 3))):
            check('TensorScatter' + op, [np.zeros(shape, f32), np.array(index, i32), np.ones(updates, f32)])


def cases(check, rng):
    index_vectors(check)
    scatter_nd(check, rng)
    long_rows(check, rng)
    slices(check, rng)
    inplace(check, rng)
    diagonals(check, rng)
    others(check, rng)
