"""Arithmetic: elementwise ops of every type, broadcasting, reductions, products of matrices, segments, casts."""
import numpy as np
import ml_dtypes

from values import SATURATES

BF16 = ml_dtypes.bfloat16
FLOATING = [np.float32, np.float64, np.float16, BF16]
COMPLEX = [np.complex64, np.complex128]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
INTEGER = SIGNED + UNSIGNED
NUMBER = FLOATING + INTEGER + COMPLEX
SPECIALS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1e-3, 30.0, -30.0]


def make(rng, dtype, shape, lo=-3.0, hi=3.0):
    dtype = np.dtype(dtype)
    if dtype == bool:
        return rng.random(shape) < 0.5
    if dtype.kind == 'c':
        return (rng.uniform(lo, hi, shape) + 1j * rng.uniform(lo, hi, shape)).astype(dtype)
    if dtype.kind in 'iu':
        return rng.integers(0 if dtype.kind == 'u' else -20, 21, shape).astype(dtype)
    return rng.uniform(lo, hi, shape).astype(dtype)


def no_zero(x):
    return np.where(x == 0, np.ones_like(x), x)


def unary(check, rng):
    plain = {
        'Neg': FLOATING + SIGNED + COMPLEX, 'Abs': FLOATING + SIGNED, 'Sign': FLOATING + SIGNED + COMPLEX,
        'Square': NUMBER, 'Reciprocal': FLOATING + COMPLEX, 'Inv': FLOATING, 'Exp': FLOATING + COMPLEX,
        'Expm1': FLOATING + COMPLEX, 'Log': FLOATING + COMPLEX, 'Log1p': FLOATING + COMPLEX, 'Sqrt': FLOATING + COMPLEX,
        'Rsqrt': FLOATING + COMPLEX, 'Tanh': FLOATING + COMPLEX, 'Sigmoid': FLOATING + COMPLEX, 'Sin': FLOATING + COMPLEX,
        'Cos': FLOATING + COMPLEX, 'Tan': FLOATING + COMPLEX, 'Sinh': FLOATING + COMPLEX, 'Cosh': FLOATING + COMPLEX,
        'Asin': FLOATING + COMPLEX, 'Acos': FLOATING + COMPLEX, 'Atan': FLOATING + COMPLEX, 'Asinh': FLOATING + COMPLEX,
        'Acosh': FLOATING + COMPLEX, 'Atanh': FLOATING + COMPLEX, 'Erf': FLOATING, 'Erfc': FLOATING,
        'Erfinv': FLOATING[:2], 'Ndtri': FLOATING[:2], 'Lgamma': FLOATING[:3], 'Digamma': FLOATING[:3],
        'BesselI0e': FLOATING[:3], 'BesselI1e': FLOATING[:3],
        'Floor': FLOATING, 'Ceil': FLOATING, 'Rint': FLOATING[:2], 'Round': FLOATING,  # of integers TensorFlow gives 0 on ARM
        
        'IsNan': FLOATING, 'IsInf': FLOATING, 'IsFinite': FLOATING, 'Invert': INTEGER, 'PopulationCount': INTEGER,
    }
    unit = {'Asin', 'Acos', 'Atanh', 'Erfinv', 'Ndtri'}
    positive = {'Log', 'Sqrt', 'Rsqrt', 'Log1p', 'Acosh', 'Lgamma', 'Digamma'}
    loose = {'Acosh', 'Atanh', 'BesselI0e', 'BesselI1e', 'Lgamma', 'Digamma', 'Erfinv', 'Ndtri', 'Tan', 'Asin', 'Acos', 'Expm1', 'Log1p'}
    for op, types in plain.items():
        for dtype in types:
            lo, hi = (-0.95, 0.95) if op in unit else (0.05, 6.0) if op in positive else (-4.0, 4.0)
            if op == 'Ndtri':
                lo, hi = 0.01, 0.99
            if op == 'Acosh':
                lo, hi = 1.05, 5.0
            kind = np.dtype(dtype).kind
            keywords = {}
            if op in loose or kind == 'c':
                keywords = {np.dtype(np.float32): dict(rtol=2e-5, atol=1e-6), np.dtype(np.float64): dict(rtol=1e-10, atol=1e-12),
                            np.dtype(np.complex64): dict(rtol=5e-5, atol=1e-5),
                            np.dtype(np.complex128): dict(rtol=1e-9, atol=1e-11)}.get(np.dtype(dtype), {})
            for shape in [(), (7,), (3, 5), (0, 4)]:
                x = make(rng, dtype, shape, lo, hi)
                if op == 'Reciprocal':
                    x = no_zero(x)
                check(op, [x], **keywords)
            if kind not in 'ciu':
                # Eigen's polynomials saturate or differ in sign of zero at the specials of a few functions.
                if op not in ('Erf', 'Lgamma', 'Digamma', 'Erfinv', 'Ndtri', 'Sin', 'Cos', 'Tan'):
                    check(op, [np.array(SPECIALS, dtype=dtype)], name='specials', **keywords)
            check(op, [make(rng, dtype, (1000,), lo, hi)], **keywords)
            if op in ('BesselI0e', 'BesselI1e'):  # power series, then asymptotic ones
                check(op, [make(rng, dtype, (200,), -80, 80)], **keywords)
    check('LogicalNot', [make(rng, bool, (4, 5))])
    for dtype in COMPLEX:
        x = make(rng, dtype, (3, 4))
        out = np.float32 if dtype == np.complex64 else np.float64
        for op in ('Real', 'Imag', 'Angle', 'ComplexAbs'):
            check(op, [x], {'Tout': out})
        check('Conj', [x])
        part = make(rng, out, (3, 1))
        check('Complex', [part, make(rng, out, (1, 4))], {'Tout': dtype})


def binary(check, rng):
    shapes = [((), ()), ((4,), (4,)), ((3, 4), (4,)), ((3, 1), (1, 5)), ((), (2, 3)), ((2, 3), ()), ((0,), (1,)),
              ((2, 1, 3, 1), (4, 1, 5)), ((50, 3), (3,)), ((3, 50), (3, 1)), ((2, 40), (40,))]
    table = {
        'AddV2': NUMBER, 'Sub': NUMBER, 'Mul': NUMBER, 'Add': FLOATING + SIGNED + [np.uint8] + COMPLEX,
        'Div': NUMBER, 'RealDiv': FLOATING + COMPLEX, 'FloorDiv': FLOATING + INTEGER, 'FloorMod': FLOATING + INTEGER,
        'TruncateDiv': FLOATING + INTEGER, 'TruncateMod': [np.int32, np.int64, np.float32, np.float64],
        'Mod': [np.int32, np.int64, np.float32, np.float64], 'Maximum': FLOATING + INTEGER, 'Minimum': FLOATING + INTEGER,
        'SquaredDifference': FLOATING + [np.int32, np.int64] + COMPLEX, 'DivNoNan': FLOATING + COMPLEX,
        'MulNoNan': FLOATING + COMPLEX, 'Xdivy': FLOATING + COMPLEX, 'Xlogy': FLOATING, 'Xlog1py': FLOATING,
        'Atan2': FLOATING, 'Less': FLOATING + INTEGER, 'LessEqual': FLOATING + INTEGER, 'Greater': FLOATING + INTEGER,
        'GreaterEqual': FLOATING + INTEGER, 'Equal': NUMBER + [bool], 'NotEqual': NUMBER + [bool],
        'BitwiseAnd': INTEGER, 'BitwiseOr': INTEGER, 'BitwiseXor': INTEGER, 'LeftShift': INTEGER, 'RightShift': INTEGER,
        'LogicalAnd': [bool], 'LogicalOr': [bool], 'NextAfter': FLOATING[:2],
    }
    divisions = {'Div', 'RealDiv', 'FloorDiv', 'FloorMod', 'TruncateDiv', 'TruncateMod', 'Mod', 'Xdivy'}
    shifts = {'LeftShift', 'RightShift'}
    for op, types in table.items():
        for dtype in types:
            keywords = {}
            if dtype == np.complex64:
                keywords = dict(rtol=1e-5, atol=1e-5)
            for a, b in shapes:
                x, y = make(rng, dtype, a), make(rng, dtype, b)
                if op in ('Xlogy', 'Xlog1py'):
                    y = np.abs(y)
                if op in divisions:
                    y = no_zero(y)
                if op in shifts:
                    y = np.asarray(np.abs(y.astype(np.int64)) % 7).astype(dtype)
                check(op, [x, y], **keywords)
            if np.dtype(dtype).kind not in 'ciub' and op not in ('FloorMod', 'Mod', 'TruncateMod', 'NextAfter'):
                grid = np.array(SPECIALS, dtype=dtype)
                check(op, [grid.reshape(-1, 1), grid.reshape(1, -1)], name='specials')
        check(op, [make(rng, types[0], (2,)), make(rng, types[0], (3,))])
    for dtype in INTEGER:
        x = np.array([1, 2, 3], dtype)
        for op in ('Div', 'FloorDiv', 'FloorMod'):  # TruncateDiv: TensorFlow calls it INTERNAL
            check(op, [x, np.array([1, 0, 2], dtype)])
    check('Add', [np.array([b'a', b'bc'], object), np.array(b'x' * 40, object)])
    check('Equal', [np.array([b'a', b'bc'], object), np.array(b'a', object)])
    check('NotEqual', [np.array([[b'a'], [b'bc']], object), np.array([b'a', b'q'], object)])
    for op in ('Equal', 'NotEqual'):
        check(op, [make(rng, np.float32, (2,)), make(rng, np.float32, (3,))], {'incompatible_shape_error': False})
        check(op, [make(rng, np.float32, (2, 1)), make(rng, np.float32, (3,))], {'incompatible_shape_error': False})
    check('ApproximateEqual', [np.float32([1, 2, 3]), np.float32([1, 2.1, 3.000001])])
    check('ApproximateEqual', [np.float64([1, 2, 3]), np.float64([1, 2.1, 3.000001])], {'tolerance': 0.2})
    check('ApproximateEqual', [np.float64([1, 2, 3]), np.float64([1, 2.1])])
    many = (2, 1, 2, 1, 2, 1, 2, 1, 2)
    check('AddV2', [make(rng, np.float32, many), make(rng, np.float32, (1, 2) * 4 + (1,))])


def power(check, rng):
    for dtype in FLOATING:
        check('Pow', [make(rng, dtype, (4, 5), 0.1, 3), make(rng, dtype, (5,))], **(dict(rtol=1e-5) if dtype == np.float32 else {}))
        check('Pow', [make(rng, dtype, (6,)), np.array(2, dtype)])
        grid = np.array(SPECIALS[:9], dtype)
        check('Pow', [grid.reshape(-1, 1), grid.reshape(1, -1)], name='specials')
    for dtype in SIGNED:
        check('Pow', [np.array([2, -3, 0, 1], dtype), np.array([3, 2, 0, 5], dtype)])
        check('Pow', [np.array([2, 3], dtype), np.array([1, -1], dtype)])
    for dtype in COMPLEX:
        check('Pow', [make(rng, dtype, (4,)), make(rng, dtype, (4,))], rtol=1e-4, atol=1e-5)
    for op in ('TanhGrad', 'SigmoidGrad', 'SqrtGrad', 'RsqrtGrad', 'ReciprocalGrad', 'InvGrad'):
        for dtype in FLOATING + COMPLEX:
            for shape in [(), (5,), (2, 3)]:
                check(op, [no_zero(make(rng, dtype, shape, 0.2, 2)), make(rng, dtype, shape)],
                      **{np.complex64: dict(rtol=1e-5, atol=1e-5), BF16: dict(rtol=5e-2, atol=5e-2),
                         np.float16: dict(rtol=6e-3, atol=6e-3)}.get(dtype, {}))
    for op in ('SqrtGrad', 'RsqrtGrad', 'ReciprocalGrad', 'InvGrad'):
        for dtype in FLOATING + COMPLEX:
            check(op, [np.array([0, np.inf, np.nan, 2], dtype), np.zeros(4, dtype)], name='no gradient')
    for dtype in (np.float32, np.float64):
        tolerance = dict(rtol=1e-4 if dtype == np.float32 else 1e-10)
        check('Polygamma', [np.array([0, 1, 2, 3], dtype), make(rng, dtype, (4,), 0.5, 5)], **tolerance)
        check('Zeta', [make(rng, dtype, (5,), 1.5, 6), make(rng, dtype, (5,), 0.5, 5)], **tolerance)


def reductions(check, rng):
    axes = [[], [0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2], [-1], [-3, 1]]
    for op in ('Sum', 'Mean', 'Prod', 'Max', 'Min', 'EuclideanNorm'):
        types = FLOATING + INTEGER if op in ('Max', 'Min') else NUMBER
        for dtype in types:
            keywords = {}
            if dtype in (np.complex64,):
                keywords = dict(rtol=1e-4, atol=1e-3)
            if dtype in (np.float32,):
                keywords = dict(rtol=1e-5, atol=1e-5)
            if dtype in (np.float16, BF16):
                keywords = dict(rtol=3e-2, atol=3e-2)
            if dtype == np.complex128:
                keywords = dict(rtol=1e-10, atol=1e-10)
            lo, hi = (0.5, 1.5) if op == 'Prod' else (-3, 3)
            for axis in axes:
                x = make(rng, dtype, (3, 4, 5), lo, hi)
                check(op, [x, np.array(axis, np.int32)], {'keep_dims': len(axis) % 2 == 0}, **keywords)
            check(op, [make(rng, dtype, (0, 3), lo, hi), np.int32([0])], **keywords)
            check(op, [make(rng, dtype, (2, 0, 3), lo, hi), np.int64(0)], **keywords)
            check(op, [make(rng, dtype, (), lo, hi), np.array([], np.int32)], **keywords)
        x = make(rng, np.float32, (2, 3))
        for bad in ([2], [-3], [0, 0], [0, -2]):
            check(op, [x, np.int32(bad)])
    for dtype in FLOATING:
        x = np.array([[1, np.nan, 2], [np.inf, 1, -np.inf], [3, 4, 5]], dtype)
        for op in ('Sum', 'Mean', 'Max', 'Min'):
            check(op, [x, np.int32([1])], name='specials')
    check('Sum', [make(rng, np.float32, (1000, 37)), np.int32([0])], rtol=1e-5, atol=1e-4)
    check('Sum', [make(rng, np.float32, (37, 5000)), np.int32([1])], rtol=1e-5, atol=1e-3)
    check('Mean', [make(rng, np.float32, (300000,)), np.int32([0])], rtol=1e-5, atol=1e-5)
    for op in ('All', 'Any'):
        for axis in axes:
            check(op, [make(rng, bool, (2, 2, 3)), np.array(axis, np.int32)])
        check(op, [np.zeros((2, 0), bool), np.int32([1])])
    for op in ('ArgMax', 'ArgMin'):
        for dtype in FLOATING + INTEGER + [bool]:
            for axis in (0, 1, 2, -1):
                check(op, [make(rng, dtype, (3, 4, 5)), np.int32(axis)])
        x = make(rng, np.float32, (3, 4))
        check(op, [x, np.int64(1)], {'output_type': np.int32})
        for axis in (2, -3):
            check(op, [x, np.int32(axis)])
        check(op, [np.zeros((0, 3), np.float32), np.int32(0)])
        check(op, [np.zeros((0, 3), np.float32), np.int32(1)])
        check(op, [np.float32([1, np.nan, 3, 3]), np.int32(0)])
        check(op, [np.float32([np.nan, 1, np.inf, -np.inf]), np.int32(0)])
    for dtype in FLOATING:
        check('L2Loss', [make(rng, dtype, (4, 5))], **(dict(rtol=2e-2) if dtype in (np.float16, BF16) else {}))
        check('L2Loss', [make(rng, dtype, (0,))])


def products(check, rng):
    for dtype in FLOATING + [np.int32, np.int64] + COMPLEX:
        tolerance = dict(rtol=2e-2, atol=6e-2) if dtype in (np.float16, BF16) else (
            dict(rtol=1e-4, atol=1e-4) if dtype in (np.float32, np.complex64) else dict(rtol=1e-10, atol=1e-10))
        for ta in (False, True):
            for tb in (False, True):
                for m, n, k in [(2, 3, 4), (1, 5, 1), (0, 2, 3), (2, 3, 0), (17, 9, 33), (1, 30, 40), (30, 1, 40)]:
                    a = make(rng, dtype, (k, m) if ta else (m, k))
                    b = make(rng, dtype, (n, k) if tb else (k, n))
                    check('MatMul', [a, b], {'transpose_a': ta, 'transpose_b': tb}, **tolerance)
                for batch_a, batch_b in [((), ()), ((2,), (2,)), ((3, 1), (2,)), ((), (4,)), ((10,), (10,)), ((0,), (1,))]:
                    a = make(rng, dtype, batch_a + ((4, 2) if ta else (2, 4)))
                    b = make(rng, dtype, batch_b + ((3, 4) if tb else (4, 3)))
                    for op in ['BatchMatMulV2'] + (['BatchMatMul'] if batch_a == batch_b else []):
                        check(op, [a, b], {'adj_x': ta, 'adj_y': tb}, **tolerance)
    x = make(rng, np.float32, (2, 3))
    check('MatMul', [x, x])
    check('MatMul', [x, make(rng, np.float32, (3,))])
    check('MatMul', [make(rng, np.float32, (2, 2, 3)), make(rng, np.float32, (2, 3, 2))])
    check('MatMul', [make(rng, np.float32, (300, 200)), make(rng, np.float32, (200, 250))], rtol=1e-4, atol=1e-4)
    check('BatchMatMulV2', [x, x])
    check('BatchMatMulV2', [make(rng, np.float32, (3, 2, 3)), make(rng, np.float32, (2, 3, 2))])
    check('BatchMatMul', [make(rng, np.float32, (3, 2, 3)), make(rng, np.float32, (2, 3, 2))])
    check('BatchMatMulV2', [make(rng, np.float32, (3,)), x])
    check('BatchMatMulV3', [make(rng, np.int8, (2, 3)), make(rng, np.uint8, (3, 4))], {'Tout': np.int32})
    check('BatchMatMulV3', [make(rng, np.float32, (5, 2, 3)), make(rng, np.float32, (3, 4))], {'Tout': np.float32}, rtol=1e-5, atol=1e-5)


def selections(check, rng):
    for dtype in NUMBER + [bool]:
        x, y = make(rng, dtype, (3, 4)), make(rng, dtype, (3, 4))
        check('Select', [make(rng, bool, (3, 4)), x, y])
        check('Select', [make(rng, bool, (3,)), x, y])
        check('Select', [np.array(True), x, y])
        check('SelectV2', [make(rng, bool, (4,)), x, y])
        check('SelectV2', [make(rng, bool, (3, 1)), x, y[0]])
        check('SelectV2', [make(rng, bool, (3, 4)), x[0, 0], y])
        check('SelectV2', [np.array(False), x, y[:, :1]])
    text = np.array([b'a', b'b'], object)
    check('Select', [np.array([True, False]), text, text[::-1].copy()])
    check('SelectV2', [np.array([[True], [False]]), text, np.array(b'c', object)])
    x = make(rng, np.float32, (3, 4))
    check('Select', [make(rng, bool, (2,)), x, x])
    check('Select', [make(rng, bool, (3, 1)), x, x])
    check('Select', [make(rng, bool, (3, 4)), x, x[0]])
    check('SelectV2', [make(rng, bool, (2,)), x, x])
    for dtype in FLOATING + SIGNED + [np.uint8, np.uint16]:
        x = make(rng, dtype, (3, 4))
        low, high = np.array(-2 if np.dtype(dtype).kind != 'u' else 1, dtype), np.array(2, dtype)
        check('ClipByValue', [x, low, high])
        check('ClipByValue', [x, np.full((3, 4), low), high])
        check('ClipByValue', [x, np.full((3, 4), low), np.full((3, 4), high)])
    check('ClipByValue', [x, np.full((4,), 1, x.dtype), high])
    for dtype in (np.complex64, np.complex128):
        z = (rng.uniform(-5, 5, (3, 4)) + 1j * rng.uniform(-5, 5, (3, 4))).astype(dtype)
        low, high = dtype(-1 - 2j), dtype(2 + 1j)
        check('ClipByValue', [z, low, high])
        check('ClipByValue', [z, np.full((3, 4), low), high])
        check('ClipByValue', [z, low, np.full((3, 4), high)])
        check('ClipByValue', [z, high, low])
        check('ClipByValue', [np.array([complex(np.nan, 1), complex(0, np.inf), complex(-np.inf, np.nan)], dtype), low, high])
        check('ClipByValue', [np.zeros((0, 2), dtype), low, high])
        check('ClipByValue', [z, np.full(4, low), high])
    low, high = x.dtype.type(0), x.dtype.type(3)
    check('ClipByValue', [np.array(SPECIALS, np.float32), np.float32(-2), np.float32(2)])


def casts(check, rng):
    types = NUMBER + [bool]
    for source in types:
        for target in types:
            # Negative numbers as unsigned ones are up to the processor, and to an element's place in the tensor.
            lo = 0 if np.dtype(target).kind == 'u' else -3
            check('Cast', [make(rng, source, (2, 7), lo)], {'DstT': target})
    check('Cast', [np.array([1e10, -1e10, -np.inf, 3.7, -3.7], np.float32)], {'DstT': np.int64})
    if SATURATES:
        check('Cast', [np.array([np.nan, np.inf], np.float32)], {'DstT': np.int64})
        for value in (-1.0, -0.5, -200.0, 300.0, 70000.0, -40000.0, 4e9, 1e20, -1e20, np.nan, np.inf):
            for source in (np.float32, np.float64):
                for target in INTEGER:
                    check('Cast', [source(value)], {'DstT': target})
    for source in (np.float32, np.float64):
        for target in (BF16, np.float16):
            check('Cast', [make(rng, source, (100,))], {'DstT': target, 'Truncate': True})


def sums(check, rng):
    for dtype in NUMBER:
        for n in (1, 2, 3, 9):
            for shape in [(), (4,), (2, 0)]:
                check('AddN', [make(rng, dtype, shape) for _ in range(n)], {'N': n},
                      **(dict(rtol=3e-2, atol=3e-2) if dtype in (np.float16, BF16) else dict(rtol=1e-5, atol=1e-5)))
    check('AddN', [make(rng, np.float32, (2,)), make(rng, np.float32, (3,))], {'N': 2})
    check('AddN', [make(rng, np.float32, (5000,)) for _ in range(5)], {'N': 5}, rtol=1e-5, atol=1e-5)
    for op in ('Cumsum', 'Cumprod'):
        for shape, axis, exclusive, reverse in [((2, 6500), 1, False, False), ((5000, 3), 0, True, True), ((40, 70), 0, False, True),
                                                ((3, 100), 1, True, False), ((2, 33, 3), 1, False, False)]:
            check(op, [make(rng, np.float32, shape, 0.99, 1.01), np.int32(axis)], {'exclusive': exclusive, 'reverse': reverse},
                  rtol=1e-3)
        for dtype in NUMBER:
            for exclusive in (False, True):
                for reverse in (False, True):
                    tolerance = dict(rtol=5e-2, atol=5e-2) if dtype in (np.float16, BF16) else (
                        dict(rtol=1e-4, atol=1e-4) if dtype in (np.float32, np.complex64) else {})
                    for axis in (0, 1, -1):
                        check(op, [make(rng, dtype, (3, 4, 2), 0.5, 1.5), np.int32(axis)],
                              {'exclusive': exclusive, 'reverse': reverse}, **tolerance)
        check(op, [np.float32([1, 2]), np.int32(1)])
        check(op, [np.float32([1, 2]), np.int32([0])])
        check(op, [np.zeros((0, 2), np.float32), np.int64(0)])
    for dtype in FLOATING + INTEGER:
        check('Cross', [make(rng, dtype, (2, 3)), make(rng, dtype, (2, 3))],
              **(dict(rtol=3e-2, atol=1e-1) if dtype in (np.float16, BF16) else dict(atol=1e-5)))
    check('Cross', [make(rng, np.float32, (2, 2)), make(rng, np.float32, (2, 2))])
    check('Cross', [make(rng, np.float32, (2, 3)), make(rng, np.float32, (1, 3))])


def segments(check, rng):
    for op in ('SegmentSum', 'SegmentMean', 'SegmentProd', 'SegmentMax', 'SegmentMin'):
        types = FLOATING + INTEGER if op in ('SegmentMax', 'SegmentMin') else NUMBER
        for dtype in types:
            tolerance = dict(rtol=5e-2, atol=5e-2) if dtype in (np.float16, BF16) else dict(rtol=1e-5, atol=1e-5)
            for index in (np.int32, np.int64):
                check(op, [make(rng, dtype, (6, 3), 0.5, 1.5), np.array([0, 0, 2, 2, 2, 5], index)], **tolerance)
            check(op, [make(rng, dtype, (4,), 0.5, 1.5), np.int32([0, 1, 1, 3])], **tolerance)
            check(op, [make(rng, dtype, (0, 3)), np.zeros((0,), np.int32)])
        x = make(rng, np.float32, (4, 2))
        check(op, [x, np.int32([0, 1, 0, 1])])
        check(op, [x, np.int32([-1, 0, 0, 1])])
        check(op, [x, np.int32([0, 1])])
        check(op, [x, np.int32([[0, 1], [1, 1]])])
        # Many rows whose ids do not occur, and more than there can be.
        check(op, [np.float32([2, 3]), np.int32([7, 3000000])])
        for last in (2**40, 2**63 - 1):
            check(op, [x, np.int64([0, 1, 1, last])], gradient=False)
    numbers = [np.nan, 3, 1, np.nan, 2, 5, np.nan, np.nan, 4, np.nan, np.inf]
    for dtype in FLOATING:  # a NaN is forgotten when a number comes
        for op in ('SegmentMax', 'SegmentMin'):
            check(op, [np.array(numbers, dtype), np.int32([0, 0, 0, 1, 1, 1, 2, 4, 4, 4, 5])], gradient=False,
                  in_turn=True)
            check('Unsorted' + op, [np.array(numbers, dtype), np.int32([0, 0, 1, 0, 0, 1, 2, 4, 1, 4, 5]), np.int32(7)], gradient=False,
                  in_turn=True)
    for op in ('UnsortedSegmentSum', 'UnsortedSegmentProd', 'UnsortedSegmentMax', 'UnsortedSegmentMin'):
        types = FLOATING + INTEGER if op[-3:] in ('Max', 'Min') else NUMBER
        for dtype in types:
            tolerance = dict(rtol=5e-2, atol=5e-2) if dtype in (np.float16, BF16) else dict(rtol=1e-5, atol=1e-5)
            for index in (np.int32, np.int64):
                check(op, [make(rng, dtype, (6, 3), 0.5, 1.5), np.array([3, 0, -1, 0, 2, 3], index), np.int32(5)], **tolerance)
            check(op, [make(rng, dtype, (2, 3, 2), 0.5, 1.5), np.int32([[1, 0, 1], [2, 2, 0]]), np.int64(3)], **tolerance)
            check(op, [make(rng, dtype, (0, 3)), np.zeros((0,), np.int32), np.int32(2)])
        x = make(rng, np.float32, (4, 2))
        check(op, [x, np.int32([0, 5, 0, 1]), np.int32(3)])
        check(op, [x, np.int32([0, 1]), np.int32(3)])
        check(op, [x, np.int32([0, 1, 1, 1]), np.int32(-1)])
        check(op, [x, np.int32([0, 1, 1, 1]), np.int32([3])])
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        ids = np.int32([1, 1, 3, 0, 9])
        check('Bincount', [ids, np.int32(5), make(rng, dtype, (5,))])
        check('Bincount', [ids, np.int32(5), np.zeros((0,), dtype)])
        for binary_output in (False, True):
            check('DenseBincount', [ids, np.int32(5), np.zeros((0,), dtype)], {'binary_output': binary_output})
            check('DenseBincount', [np.int64([[1, 1, 3], [0, 7, 2]]), np.int64(5), np.zeros((0,), dtype)], {'binary_output': binary_output})
        check('DenseBincount', [np.int64([[1, 1, 3], [0, 7, 2]]), np.int64(5), make(rng, dtype, (2, 3))])
    for shape in ((1, 4), (2, 2), (3,)):
        for op in ('Bincount', 'DenseBincount'):
            check(op, [np.int32([1, 1, 3, 0]), np.int32(5), np.ones(shape, np.float32)])
    check('Bincount', [np.int32([1, -1]), np.int32(5), np.zeros((0,), np.float32)])
    check('DenseBincount', [np.int32([1, -1]), np.int32(5), np.zeros((0,), np.float32)])


def cases(check, rng):
    unary(check, rng)
    binary(check, rng)
    power(check, rng)
    reductions(check, rng)
    products(check, rng)
    selections(check, rng)
    casts(check, rng)
    sums(check, rng)
    segments(check, rng)
