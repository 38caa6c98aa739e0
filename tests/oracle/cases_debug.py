"""Debug ops, Reverse, ToBool, ResourceCountUpTo."""
import numpy as np
from ml_dtypes import bfloat16

INTS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, bfloat16, np.float32, np.float64)


def tensors(rng, t):
    shapes = ((), (0,), (5,), (2, 3), (0, 3), (1, 1, 1, 1, 2, 1, 2, 1))
    for shape in shapes:
        x = np.asarray(rng.integers(0, 3, shape) if t in INTS or t is np.bool_ else rng.standard_normal(shape) * 2).astype(t)
        yield x
    if t in FLOATS:
        yield np.array([[1, -2, 0], [np.nan, np.inf, -np.inf]], t)
        yield np.array([np.nan, np.inf], t)


def debug(check, rng):
    for t in FLOATS + INTS + (np.bool_,):
        for x in tensors(rng, t):
            if t is not np.bool_:
                check('DebugNanCount', [x], {'tensor_name': 'a:0'}, tf_shape_differs=True)
            if t not in FLOATS[:2]:
                for bounds in ({}, {'lower_bound': -1.0, 'upper_bound': 1.0}, {'lower_bound': 1.0, 'upper_bound': 0.0}):
                    check('DebugNumericSummary', [x], {'tensor_name': 'a:0', **bounds}, rtol=1e-6)
            for mode in (2, 3, 4, 5, 8):
                for out in (np.float32, np.float64):
                    check('DebugNumericSummaryV2', [x], {'tensor_debug_mode': mode, 'tensor_id': 7, 'output_dtype': out})
            check('DebugGradientIdentity', [x])
            check('DebugIdentityV2', [x])
    x = np.float32([1, 2])
    for mode in (-1, 0, 1, 6, 7, 9, 100):
        check('DebugNumericSummaryV2', [x], {'tensor_debug_mode': mode})
    for tensor_id in (2**24, 2**24 + 1, 2**53, 2**53 + 1, -5):
        for mode in (2, 3, 4, 5, 8):
            for out in (np.float32, np.float64):
                check('DebugNumericSummaryV2', [x], {'tensor_debug_mode': mode, 'tensor_id': tensor_id, 'output_dtype': out})
    for name in ('', 'a', 'a:b', 'a:1:2', 'a:'):
        check('DebugNanCount', [x], {'tensor_name': name}, tf_shape_differs=True)
        check('DebugNumericSummary', [x], {'tensor_name': name})
    for op in ('DebugIdentity', 'DebugNanCount', 'DebugNumericSummary'):
        check(op, [x], {'tensor_name': 'a:0', 'gated_grpc': True}, tf_shape_differs=True)
    check('DebugGradientRefIdentity', [ref(x)])  # pylint: disable=undefined-variable  # set by the oracle


def reverse(check, rng):
    for t in FLOATS + INTS + (np.bool_, np.complex64, np.complex128, object):
        for shape in ((), (3,), (2, 3), (2, 0, 3), (2, 3, 2), (1, 2, 1, 2, 1, 2, 1, 2)):
            x = np.asarray(rng.integers(0, 2, shape))
            x = x.astype(t) if t is not object else np.array([b'a%d' % i for i in range(x.size)] + [None], object)[:-1].reshape(shape)
            for _ in range(2):
                check('Reverse', [x, rng.integers(0, 2, len(shape)).astype(bool)])
    x = np.float32([[1, 2], [3, 4]])
    for dims in ([True], [True] * 3, True, [[True, False]]):
        check('Reverse', [x, np.array(dims)])
    check('Reverse', [np.zeros((1,) * 9, np.float32), np.ones(9, bool)])


def cases(check, rng):
    debug(check, rng)
    reverse(check, rng)
    for x in (np.int32(0), np.int32(5), np.float32(0), np.float64(np.nan), np.bool_(True), b'', b'x', np.zeros(0), np.zeros(3), np.array([b'']), np.int8(-1), np.complex64(0), np.float16(1),
              bfloat16(1), np.uint8(1), np.uint16(1), np.uint32(1), np.uint64(1), np.int16(1), np.complex128(1), np.int64(2**40), np.zeros(2, np.complex64)):
        check('ToBool', [x])
    for t in (np.int32, np.int64):
        for value in (0, 4, 5, 6, -3, [1], [[1]]):
            check('ResourceCountUpTo', [resource(np.array(value, t))], {'limit': 5, 'T': t})  # pylint: disable=undefined-variable
    check('ResourceCountUpTo', [resource(np.int64(1))], {'limit': 5, 'T': np.int32})  # pylint: disable=undefined-variable
    check('ResourceCountUpTo', [resource(None, np.int64)], {'limit': 5, 'T': np.int64})  # pylint: disable=undefined-variable
