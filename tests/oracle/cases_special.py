"""Special functions: Bessel's, integrals, incomplete gamma and beta functions, running log-sums."""
import numpy as np
import ml_dtypes

BF16 = ml_dtypes.bfloat16
WIDE = [np.float32, np.float64]
# TensorFlow's float functions are polynomials of that precision.
CLOSE = {np.dtype(np.float32): dict(rtol=3e-5, atol=2e-6), np.dtype(np.float64): dict(rtol=1e-9, atol=1e-11),
         np.dtype(np.float16): dict(rtol=5e-3, atol=2e-3), np.dtype(BF16): dict(rtol=5e-2, atol=5e-2)}
# The range, and special values where both agree on what they give.
UNARY = {
    'BesselI0': (-20, 20, [0, -0.0, 30, -30]), 'BesselI1': (-20, 20, [0, -0.0, 30, -30]), 'BesselJ0': (-20, 20, [0, -0.0]),
    'BesselJ1': (-20, 20, [0, -0.0]), 'BesselY0': (0.1, 20, [0, -1, -np.inf]), 'BesselY1': (0.1, 20, [-1, -np.inf]),
    'BesselK0': (0.01, 20, [0, -1, np.inf, -np.inf]), 'BesselK0e': (0.01, 60, [0, -1, np.inf, -np.inf]),
    'BesselK1': (0.01, 20, [0, -1, np.inf, -np.inf]), 'BesselK1e': (0.01, 60, [0, -1, np.inf, -np.inf]),
    'Dawsn': (-10, 10, [0, np.inf, -np.inf, 1e5]), 'Expint': (0.01, 60, [0, -1, np.inf, 1e-30]),
    'FresnelCos': (-10, 10, [0, np.inf, -np.inf]), 'FresnelSin': (-10, 10, [0, np.inf, -np.inf]),
    'Spence': (0, 10, [0, 1, -1, np.inf, 0.5, 1.5, 3]),
}


def unary(check, rng):
    for op, (low, high, specials) in UNARY.items():
        for dtype in WIDE + [np.float16] * op.startswith('Bessel'):
            close = dict(CLOSE[np.dtype(dtype)])
            if op == 'Expint' or op in ('BesselI0', 'BesselI1'):
                close['rtol'] *= 3  # exp of a rounded argument
            if dtype is np.float16:
                high = min(high, 8)
            for shape in ((), (7,), (3, 5), (0, 4), (500,)):
                check(op, [rng.uniform(max(low, -high), high, shape).astype(dtype)], **close)
            check(op, [np.array(specials + [np.nan], dtype)], name='specials', **close)
            if op.startswith('BesselK') or op in ('Expint', 'Spence'):
                check(op, [np.exp(rng.uniform(-6 if dtype is np.float16 else -20, 1, 100)).astype(dtype)], **close)


def gammas(check, rng):
    for dtype in WIDE:
        close = dict(CLOSE[np.dtype(dtype)])
        for op in ('Igamma', 'Igammac', 'IgammaGradA'):
            for left, right in (((), ()), ((5,), (5,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 3), ()), ((0,), (1,)), ((300,), (300,))):
                for scale in (1, 20):
                    check(op, [(rng.uniform(0.05, 1, left) * scale).astype(dtype), (rng.uniform(0.05, 1, right) * scale).astype(dtype)], **close)
            a, x = np.meshgrid(np.array([-1, 0, 0.5, 1, 3, np.inf, np.nan], dtype), np.array([-1, 0, 0.5, 2, 50, np.inf, np.nan], dtype))
            check(op, [a, x], name='specials', **close)
            check(op, [np.ones(2, dtype), np.ones(3, dtype)])
        for a, b, x in (((), (), ()), ((4,), (4,), (4,)), ((2, 3), (), (2, 3)), ((), (), (5,)), ((3,), (3,), ()), ((0,), (0,), (0,)), ((300,), (300,), (300,)),
                        ((3,), (), ()), ((), (3,), ())):
            for scale in (1, 10):
                check('Betainc', [(rng.uniform(0.1, 1, a) * scale).astype(dtype), (rng.uniform(0.1, 1, b) * scale).astype(dtype),
                                  rng.uniform(0.01, 0.99, x).astype(dtype)], gradient=a == x, **close)
        a, b, x = np.meshgrid(np.array([-1, 0, 0.5, 3], dtype), np.array([-1, 0, 0.5, 3], dtype), np.array([-0.5, 0, 0.3, 1, 1.5], dtype))
        check('Betainc', [a, b, x], name='specials', **close)
        for a, b, x in (((2, 1), (1, 2), (2, 2)), ((3,), (2,), (3,)), ((1,), (3,), (3,)), ((), (3,), (2,)), ((1,), (), (3,))):
            check('Betainc', [np.full(shape, 0.5, dtype) for shape in (a, b, x)])


def running(check, rng):
    for dtype in WIDE + [np.float16, BF16]:
        close = CLOSE[np.dtype(dtype)]
        for exclusive in (False, True):
            for reverse in (False, True):
                attrs = {'exclusive': exclusive, 'reverse': reverse}
                for axis in (0, 1, -1):
                    check('CumulativeLogsumexp', [rng.uniform(-3, 3, (3, 4, 2)).astype(dtype), np.int32(axis)], attrs, **close)
                check('CumulativeLogsumexp', [np.array([-np.inf, -np.inf, 1, 60, -60, 60], dtype), np.int64(0)], attrs, **close)
    check('CumulativeLogsumexp', [np.float32([1, 2]), np.int32(1)])
    check('CumulativeLogsumexp', [np.float32([1, 2]), np.int32([0])])
    check('CumulativeLogsumexp', [np.float32(1), np.int32(0)])
    check('CumulativeLogsumexp', [np.zeros((0, 2), np.float32), np.int64(0)])


def cases(check, rng):
    unary(check, rng)
    gammas(check, rng)
    running(check, rng)
