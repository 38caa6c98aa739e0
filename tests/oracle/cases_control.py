"""Control flow, stacks, arrays and lists: what one node alone can show."""
import numpy as np

TYPES = (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
         np.complex64, np.bool_)


def merge(check, rng):
    for dtype in TYPES:
        check('Merge', [rng.integers(0, 2, (2, 3)).astype(dtype)], {'N': 1})
    check('Merge', [np.array(['a', 'b' * 40])], {'N': 1})
    check('LoopCond', [np.bool_(True)])
    check('NoOp', [])
    check('ControlTrigger', [])


def guards(check, rng):
    x = rng.standard_normal((2, 3)).astype(np.float32)
    for data in (x, np.arange(5), np.array('abc'), np.array(['a', 'b', 'c', 'd']), np.zeros((0, 2)), np.float64(1 / 3)):
        check('Assert', [np.bool_(True), data], {'T': [np.asarray(data).dtype if data.dtype.kind != 'U' else 'string']})
        check('Assert', [np.bool_(False), data], {'T': [np.asarray(data).dtype if data.dtype.kind != 'U' else 'string']})
    for condition in (np.array([False]), np.array([True]), np.ones((1, 1), np.bool_), np.ones(0, np.bool_)):
        check('Assert', [condition, x], {'T': [np.float32]})
    check('Print', [x], {'U': [], 'message': ''}, name='Print of nothing')


def fake_param(check, rng):
    for shape in ([], [2, 3], [0]):
        check('FakeParam', [], {'dtype': np.float32, 'shape': shape}, shapes_only=True)


def lists(check, rng):
    """Only what fails: the probe cannot look into variants, so lists themselves are compared by graphs."""
    x = rng.standard_normal((3, 2)).astype(np.float32)
    i32, i64 = np.int32, np.int64
    for shape in (i32(3), np.array([[2]], i32), np.array([-2], i32)):
        check('EmptyTensorList', [shape, i32(-1)], {'element_dtype': np.float32}, needs_value=True)  # it may be computed
    check('EmptyTensorList', [i32(-1), np.array([1], i32)], {'element_dtype': np.float32})
    check('TensorListReserve', [i32(-1), i32(-1)], {'element_dtype': np.float32})
    check('TensorListFromTensor', [x, np.array([3], i32)])
    check('TensorListFromTensor', [np.float32(1), i32(-1)])
    check('TensorListScatter', [x, np.array([0, -4, 2], i32), i32(-1)])
    check('TensorListScatter', [x, np.array([0, 4], i32), i32(-1)])
    for count in (-2, 3):
        check('TensorListScatterV2', [x, np.array([0, 4, 2], i32), i32(-1), i32(count)])
    for lengths in ([1, 1], [2, 2], [-1, 4], []):
        check('TensorListSplit', [x, np.array([-1, 2], i32), np.array(lengths, i64)])
    check('TensorListSplit', [x, np.array([-1, 3], i32), np.array([3], i64)])
    check('TensorListSplit', [x, np.array([], i32), np.array([3], i64)])


def arrays(check, rng):
    check('TensorArrayV3', [np.int32(3)], {'dtype': np.float32})
    check('TensorArrayV3', [np.int32(-1)], {'dtype': np.float32})
    check('TensorArrayV3', [np.array([1], np.int32)], {'dtype': np.float32})
    check('StackV2', [np.int32(-1)], {'elem_type': np.float32})
    check('StackV2', [np.array([1], np.int32)], {'elem_type': np.float32})


def cases(check, rng):
    merge(check, rng)
    guards(check, rng)
    fake_param(check, rng)
    lists(check, rng)
    arrays(check, rng)
