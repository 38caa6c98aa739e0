"""Functions of square matrices, systems of equations, singular values and eigenvalues."""
import numpy as np

from cases_linalg import FACTOR_CLOSE, FACTOR_TYPES, centred

BATCHES = (((), 1), ((), 2), ((), 5), ((), 33), ((3,), 4), ((2, 3), 3), ((0,), 3), ((2,), 0), ((), 0), ((1, 1, 2), 2))
ERRORS = ((2, 3), (3,), (), (2, 2, 3))


def regular(rng, dtype, batch, n):
    """Far enough from what has no inverse."""
    return (centred(rng, dtype, batch + (n, n)) / max(1, n) ** 0.5 + 3 * np.eye(n)).astype(dtype)


def determinants(check, rng):
    for dtype in FACTOR_TYPES:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        for batch, n in BATCHES + (((), 100),):
            a = regular(rng, dtype, batch, n)
            for op in ('MatrixDeterminant', 'LogMatrixDeterminant', 'BatchMatrixDeterminant'):
                check(op, [a], **dict(close, rtol=close['rtol'] * 20))
                if n < 10:
                    check(op, [centred(rng, dtype, batch + (n, n))], **dict(close, rtol=close['rtol'] * 20))
        for op in ('MatrixDeterminant', 'LogMatrixDeterminant'):
            for a in ([[1, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 0]], [[np.nan, 1], [1, 1]], [[-3]], [[0]]):
                check(op, [np.array(a, dtype)], **close)
            for shape in ERRORS:
                check(op, [np.ones(shape, dtype)])


def inverses(check, rng):
    for dtype in FACTOR_TYPES + [np.float16]:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        legacy = ['BatchMatrixInverse'] if dtype in (np.float32, np.float64) else []
        for op in ['MatrixInverse'] + legacy:
            for batch, n in BATCHES + (((), 120),):
                for adjoint in (False, True):
                    check(op, [regular(rng, dtype, batch, n)], {'adjoint': adjoint}, **close)
            check(op, [np.array([[0, 2], [4, 0]], dtype)], **close)
            for a in ([[1, 2], [2, 4]], [[0, 0], [0, 0]], [[np.nan, 1], [1, 1]], [[0]]):
                check(op, [np.array(a, dtype)])
            for shape in ERRORS:
                check(op, [np.ones(shape, dtype)])


def systems(check, rng):
    for dtype in FACTOR_TYPES:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        legacy = ['BatchMatrixSolve'] if dtype in (np.float32, np.float64) else []
        for op in ['MatrixSolve'] + legacy:
            for batch, n in BATCHES + (((), 130),):
                for m in (0, 1, 3):
                    for adjoint in (False, True):
                        b = centred(rng, dtype, batch + (n, m))
                        check(op, [regular(rng, dtype, batch, n), b], {'adjoint': adjoint}, **close)
            for a in ([[1, 2], [2, 4]], [[0, 0], [0, 0]], [[np.nan, 1], [1, 1]]):
                check(op, [np.array(a, dtype), np.ones((2, 1), dtype)])
            for a, b in (((2, 2), (3, 1)), ((2, 3), (2, 1)), ((2, 2), (2,)), ((2,), (2, 1)), ((1, 2, 2), (2, 1)), ((2, 2, 2), (3, 2, 1)),
                         ((), ()), ((2, 2), (1, 2, 1))):
                check(op, [np.ones(a, dtype), np.ones(b, dtype)])
        for batch, n in BATCHES + (((), 60),):
            for index in (np.int32, np.int64):
                check('Lu', [centred(rng, dtype, batch + (n, n))], {'output_idx_type': index}, **dict(close, rtol=1e-2) if n > 30 else close)
        for a in ([[1, 2], [2, 4]], [[0, 1], [1, 0]], [[0]], [[np.nan, 1], [1, 1]]):
            check('Lu', [np.array(a, dtype)])
        for shape in ERRORS:
            check('Lu', [np.ones(shape, dtype)])


def cases(check, rng):
    determinants(check, rng)
    inverses(check, rng)
    systems(check, rng)
