"""Variables by reference and by handle, gathers and scatters."""
import numpy as np
from ml_dtypes import bfloat16
from oracle import ref, resource

NUMBERS = (np.float32, np.float64, np.float16, bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
           np.int64, np.uint64, np.complex64, np.complex128)


def numbers(rng, dtype, shape, low=1):
    return rng.integers(low, 9, shape).astype(dtype)


def assign(check, rng):
    for dtype in NUMBERS + (np.bool_,):
        x, y = numbers(rng, dtype, (2, 3)), numbers(rng, dtype, (2, 3))
        check('Assign', [ref(x), y])
        check('ReadVariableOp', [resource(x)], {'dtype': dtype})
        check('AssignVariableOp', [resource(x), y])
        check('VariableShape', [resource(x)])
        if dtype is not np.bool_:
            for op in ('AssignAdd', 'AssignSub'):
                check(op, [ref(x), y])
                check(op + 'VariableOp', [resource(x), y])
    x, y = np.zeros((2, 3), np.float32), np.ones(4, np.float32)
    check('Assign', [ref(x), y])
    check('Assign', [ref(x), y], {'validate_shape': False})
    check('Assign', [ref(None, np.float32), y], {'validate_shape': False})
    check('AssignAdd', [ref(x), y])
    check('AssignAdd', [ref(None, np.float32), y])
    check('AssignVariableOp', [resource(None, np.float32), y])
    check('AssignAddVariableOp', [resource(x), y])
    check('AssignAddVariableOp', [resource(None, np.float32), y])
    check('AssignVariableOp', [resource(np.array(['a', 'b'])), np.array(['c', 'd' * 50])])
    check('ReadVariableOp', [resource(None, np.float32)], {'dtype': np.float32})
    check('ReadVariableOp', [resource(x)], {'dtype': np.int32})
    check('VarIsInitializedOp', [resource(x)])
    check('VarIsInitializedOp', [resource(None, np.float32)])
    check('IsVariableInitialized', [ref(x)])
    check('VariableShape', [resource(x)], {'out_type': np.int64})
    for dtype in (np.int32, np.int64):
        check('CountUpTo', [ref(dtype(3))], {'limit': 5})
        check('CountUpTo', [ref(dtype(5))], {'limit': 5})


def gather(check, rng):
    for dtype in NUMBERS + (np.bool_,):
        x = numbers(rng, dtype, (5, 2, 3))
        for index in (np.int32, np.int64):
            check('ResourceGather', [resource(x), np.array([[0, 4], [2, 2]], index)], {'dtype': dtype})
            check('ResourceGatherNd', [resource(x), np.array([[0, 1], [4, 0]], index)], {'dtype': dtype})
    x = rng.standard_normal((4, 5, 2)).astype(np.float32)
    f = {'dtype': np.float32}
    check('ResourceGather', [resource(x), np.int32(3)], f)
    check('ResourceGather', [resource(x), np.array([], np.int32)], f)
    check('ResourceGather', [resource(x), np.array([4], np.int32)], f)
    check('ResourceGather', [resource(x), np.array([-1], np.int32)], f)
    check('ResourceGather', [resource(x), rng.integers(0, 5, (4, 3)).astype(np.int32)], dict(f, batch_dims=1))
    check('ResourceGather', [resource(np.float32(1)), np.array([0], np.int32)], f)
    check('ResourceGather', [resource(np.array(['a', 'b'])), np.array([1, 0, 1], np.int32)], {'dtype': 'string'})
    check('ResourceGatherNd', [resource(x), np.array([[0, 1, 1]], np.int32)], f)
    check('ResourceGatherNd', [resource(x), np.array([[0, 5]], np.int32)], f)
    check('ResourceGatherNd', [resource(x), np.zeros((2, 0), np.int32)], f)


def scatter(check, rng):
    for op in ('Add', 'Sub', 'Mul', 'Div', 'Min', 'Max', 'Update'):
        for dtype in NUMBERS:
            if op in ('Min', 'Max') and dtype in (np.complex64, np.complex128):
                continue
            x = numbers(rng, dtype, (5, 3))
            rows = np.array([1, 4, 0], np.int32)
            check('ResourceScatter' + op, [resource(x), rows, numbers(rng, dtype, (3, 3))])
            if op in ('Min', 'Max') and dtype not in (np.float32, np.float64, np.float16, bfloat16, np.int32, np.int64):
                continue
            check('Scatter' + op, [ref(x), rows.astype(np.int64), numbers(rng, dtype, (3, 3))])
        x = numbers(rng, np.float32, (4, 2))
        check('ResourceScatter' + op, [resource(x), np.array([[1], [2]], np.int32), np.ones((2, 1, 2), np.float32)])
        check('ResourceScatter' + op, [resource(x), np.array([1, 2], np.int32), np.float32(2)])
        check('ResourceScatter' + op, [resource(x), np.int32(1), np.full(2, 3, np.float32)])
        check('ResourceScatter' + op, [resource(x), np.array([1, 4], np.int32), np.ones((2, 2), np.float32)])
        check('ResourceScatter' + op, [resource(x), np.array([1, -1], np.int32), np.ones((2, 2), np.float32)])
        check('ResourceScatter' + op, [resource(x), np.array([1], np.int32), np.ones((2, 2), np.float32)])
        check('Scatter' + op, [ref(x), np.array([1, 4], np.int32), np.ones((2, 2), np.float32)])
        check('ResourceScatter' + op, [resource(x), np.array([], np.int32), np.ones((0, 2), np.float32)])
    check('ResourceScatterAdd', [resource(np.zeros((3, 2), np.float32)), np.array([1, 1, 1], np.int32),
                                 numbers(rng, np.float32, (3, 2))])
    check('ResourceScatterUpdate', [resource(np.array(['a', 'b', 'c'])), np.array([2, 0], np.int32),
                                    np.array(['x' * 30, 'y'])])


def cases(check, rng):
    assign(check, rng)
    gather(check, rng)
    scatter(check, rng)
