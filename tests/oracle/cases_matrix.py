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


# TensorFlow infers vectors of no elements for vectors that are not asked for, and gives scalars of any value.
ABSENT = {'tf_shape_differs': True}


def hermitian(a):
    return a + np.conj(np.swapaxes(a, -1, -2))


def singular(check, rng):
    for dtype in FACTOR_TYPES:
        close = dict(FACTOR_CLOSE[np.dtype(dtype)], up_to='svd')
        for shape in ((1, 1), (2, 2), (3, 3), (5, 3), (3, 5), (1, 4), (4, 1), (2, 4, 4), (2, 3, 5, 2), (0, 3, 3), (17, 9), (20, 20), (9, 17),
                      (0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 0), (60, 40)):
            a, close['gradient'] = centred(rng, dtype, shape), shape[-1] < 30
            for op in ('Svd', 'BatchSvd'):
                for full in (False, True):
                    check(op, [a], {'full_matrices': full}, **close)
                check(op, [a], {'compute_uv': False}, **close, **ABSENT)
        for a in ([[1, 2], [2, 4]], [[0, 0], [0, 0]], np.eye(3), -np.eye(3), np.ones((4, 3)), np.diag([3, 0, 1, 0]), [[0, 5]],
                  [[1e-20, 0], [0, 1e20]], [[1e30, 1e30], [1e30, -1e30]]):
            for full in (False, True):
                check('Svd', [np.array(a, dtype)], {'full_matrices': full}, **dict(close, gradient=False))
        for value in (np.nan, np.inf):
            check('Svd', [np.array([[1, value], [0, 1]], dtype)])
        for shape in ((3,), ()):
            check('Svd', [np.ones(shape, dtype)])


def self_adjoint(check, rng):
    for dtype in FACTOR_TYPES:
        close = dict(FACTOR_CLOSE[np.dtype(dtype)], up_to='self adjoint')
        is_real = np.dtype(dtype).kind == 'f'
        for batch, n in BATCHES + (((), 80),):
            a = hermitian(centred(rng, dtype, batch + (n, n)))
            for op in ['SelfAdjointEigV2'] + ['BatchSelfAdjointEigV2'] * is_real:
                check(op, [a], **close)
                check(op, [a], {'compute_v': False}, **close, **ABSENT)
                check(op, [a + np.triu(np.full_like(a, 7), 1)], name='upper triangle is not read', **close)
            for op in ('SelfAdjointEig', 'BatchSelfAdjointEig'):
                if is_real:
                    check(op, [a], **dict(close, up_to='stacked'))
        for a in ([[1, 2], [2, 4]], np.zeros((3, 3)), np.eye(3), np.diag([3, -1, 1, 0]), np.ones((5, 5)), [[1e-20, 0], [0, 1e20]]):
            check('SelfAdjointEigV2', [np.array(a, dtype)], gradient=False, **close)
        check('SelfAdjointEigV2', [np.array([[np.nan, 0], [0, 1]], dtype)])
        for shape in ERRORS:
            check('SelfAdjointEigV2', [np.ones(shape, dtype)])


def eigen(check, rng):
    for dtype in FACTOR_TYPES:
        is_wide = dtype in (np.float64, np.complex128)
        out = np.complex128 if is_wide else np.complex64
        close = dict(dict(rtol=1e-8, atol=1e-9) if is_wide else dict(rtol=3e-3, atol=2e-3), up_to='eigen', gradient=False)
        for batch, n in BATCHES + (((), 60),):
            a = centred(rng, dtype, batch + (n, n))
            check('Eig', [a], {'Tout': out}, **close)
            check('Eig', [a], {'Tout': out, 'compute_v': False}, **close, **ABSENT)
            check('Eig', [hermitian(a)], {'Tout': out}, **close)
        for a in (np.eye(3), np.diag([3, -1, 1, 0]), [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 2], [0, 3]], [[0, -1], [1, 0]],
                  np.roll(np.eye(6), 1, 0), [[1e-20, 0], [0, 1e20]]):
            check('Eig', [np.array(a, dtype)], {'Tout': out}, **close)
        check('Eig', [np.array([[1, 1], [0, 1]], dtype)], {'Tout': out}, shapes_only=True, gradient=False)
        check('Eig', [np.array([[np.nan, 0], [0, 1]], dtype)], {'Tout': out})
        check('Eig', [np.eye(2, dtype=dtype)], {'Tout': np.complex64 if is_wide else np.complex128}, gradient=False)
        for shape in ERRORS:
            check('Eig', [np.ones(shape, dtype)], {'Tout': out})


def functions(check, rng):
    for dtype in FACTOR_TYPES:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        close = dict(close, rtol=close['rtol'] * 10, atol=close['atol'] * 10)
        names = ['MatrixSquareRoot', 'MatrixExponential'] + ['MatrixLogarithm'] * (np.dtype(dtype).kind == 'c')
        for op in names:
            for batch, n in BATCHES + (((), 40),):
                check(op, [regular(rng, dtype, batch, n)], **close)
            for a in (np.eye(3), np.diag([3, 5, 1, 2]), [[1, 2], [0, 3]], [[4, 1], [0, 4]], [[1e-3, 5], [0, 20]]):
                check(op, [np.array(a, dtype)], **close)
            for shape in ERRORS:
                check(op, [np.ones(shape, dtype)])
        check('MatrixSquareRoot', [np.array([[-1, 0], [0, 1]], dtype)], **close)
        check('MatrixSquareRoot', [np.array([[1, 2], [3, 1]], dtype)], **close)
        check('MatrixExponential', [(30 * centred(rng, dtype, (5, 5))).astype(dtype) / 5], **dict(close, rtol=1e-2))
        check('MatrixExponential', [np.zeros((2, 2), dtype)], **close)
        if np.dtype(dtype).kind == 'c':
            check('MatrixLogarithm', [np.array([[-1, 2], [0, 3]], dtype)], **close)
            check('MatrixLogarithm', [centred(rng, dtype, (3, 4, 4))], **close)


def least_squares(check, rng):
    for dtype in FACTOR_TYPES:
        close = dict(rtol=5e-3, atol=1e-3) if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == 'c')) == 4 else dict(rtol=1e-8, atol=1e-9)
        for op in ['MatrixSolveLs'] + ['BatchMatrixSolveLs'] * (np.dtype(dtype).kind == 'f'):
            for shape in ((1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 1, 2, 4), (20, 7), (7, 20), (0, 3, 3), (3, 0), (2, 3, 0)):
                for k in (0, 1, 3):
                    b = centred(rng, dtype, shape[:-1] + (k,))
                    for fast, l2 in ((True, 0.0), (True, 0.7), (False, 0.0), (False, 0.5)):
                        check(op, [centred(rng, dtype, shape), b, np.float64(l2)], {'fast': fast}, **close)
            check(op, [np.zeros((0, 3), dtype), np.zeros((0, 2), dtype), np.float64(0)], shapes_only=True)
            for a in ([[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 2, 3], [2, 4, 6]]):
                b = np.array([[1], [3]], dtype)
                check(op, [np.array(a, dtype), b, np.float64(0)], {'fast': True})
                check(op, [np.array(a, dtype), b, np.float64(0)], {'fast': False}, **close)
                check(op, [np.array(a, dtype), b, np.float64(1)], {'fast': True}, **close)
            for a, b, l2 in (((2, 2), (3, 1), 0), ((2, 2), (2,), 0), ((2,), (2, 1), 0), ((1, 2, 2), (2, 1), 0), ((2, 2, 2), (3, 2, 1), 0),
                             ((), (), 0), ((2, 2), (2, 1), -1), ((2, 2), (2, 1), [0.5]), ((2, 2), (2, 1), np.nan)):
                check(op, [np.ones(a, dtype), np.ones(b, dtype), np.float64(l2)])


def bands(check, rng):
    for dtype in FACTOR_TYPES:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        op = 'BandedTriangularSolve'
        for left, right, count, n, k in (((), (), 1, 1, 1), ((), (), 2, 3, 1), ((), (), 3, 5, 2), ((2,), (2,), 2, 4, 3), ((), (3,), 2, 4, 1),
                                         ((2, 1), (3,), 2, 4, 2), ((), (), 4, 4, 1), ((), (), 5, 3, 1), ((0,), (0,), 2, 3, 1), ((), (), 2, 3, 0)):
            a = centred(rng, dtype, left + (count, n)) / 3
            b = centred(rng, dtype, right + (n, k))
            for lower in (False, True):
                a[..., 0 if lower else -1, :] += 2
                for adjoint in (False, True):
                    check(op, [a, b], {'lower': lower, 'adjoint': adjoint}, gradient=count <= n, **close)
        check(op, [np.array([[1, 0, 3], [0, 1, 1]], dtype), np.ones((3, 1), dtype)])
        for a, b in (((2, 3), (2, 1)), ((3,), (3, 1)), ((2, 3), (3,)), ((0, 3), (3, 1)), ((2, 2, 3), (4, 3, 1)), ((), ())):
            check(op, [np.ones(a, dtype), np.ones(b, dtype)])


def tridiagonals(check, rng):
    for dtype in FACTOR_TYPES:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        for batch, n, k in (((), 1, 1), ((), 2, 1), ((), 3, 2), ((), 10, 3), ((2,), 4, 2), ((2, 3), 5, 1), ((0,), 3, 1), ((), 0, 1), ((), 3, 0),
                            ((), 200, 1)):
            d = centred(rng, dtype, batch + (3, n))
            b = centred(rng, dtype, batch + (n, k))
            wide = d.copy()
            wide[..., 1, :] += 4
            for pivoting in (False, True):
                check('TridiagonalSolve', [wide.astype(dtype), b], {'partial_pivoting': pivoting}, **close)
            check('TridiagonalSolve', [wide, b], {'perturb_singular': True}, **close)
            if n < 12:
                d[..., 1, :] = 0 if n % 2 == 0 else d[..., 1, :]
                check('TridiagonalSolve', [d, b], **dict(close, rtol=close['rtol'] * 100), gradient=False)
            parts = [d[..., i:i + 1, :].copy() for i in range(3)]
            check('TridiagonalMatMul', [*parts, b], **close)
        zeros, ones = np.zeros((3, 3), dtype), np.ones((3, 1), dtype)
        for pivoting, perturb in ((True, False), (False, False), (True, True), (False, True)):
            check('TridiagonalSolve', [zeros, ones], {'partial_pivoting': pivoting, 'perturb_singular': perturb}, gradient=False)
        for d in ([[0, 0, 0], [2, 0, 3], [0, 0, 0]], [[5, 0, 0], [2, 0, 3], [0, 0, 0]], [[0, 7, 0], [2, 0, 3], [0, 0, 0]]):
            check('TridiagonalSolve', [np.array(d, dtype), ones], {'perturb_singular': True}, gradient=False)
        for a, b in (((2, 3), (3, 1)), ((3, 3), (2, 1)), ((3, 3), (1, 3, 1)), ((3,), (3, 1)), ((2, 3, 3), (3, 3, 1)), ((), ())):
            check('TridiagonalSolve', [np.ones(a, dtype), np.ones(b, dtype)])
        for a, b, c, x in (((1, 2), (1, 3), (1, 3), (3, 2)), ((1, 3), (1, 3), (1, 2), (3, 2)), ((2, 3), (2, 3), (2, 3), (3, 2)),
                           ((3,), (3,), (3,), (3, 2)), ((2, 1, 3), (1, 3), (1, 3), (3, 2)), ((1, 3), (1, 3), (1, 3), (4, 2)),
                           ((2, 1, 3), (2, 1, 3), (2, 1, 3), (3, 3, 2))):
            check('TridiagonalMatMul', [np.ones(shape, dtype) for shape in (a, b, c, x)])


def legacy(check, rng):
    for dtype in (np.float32, np.float64):
        close = FACTOR_CLOSE[np.dtype(dtype)]
        a = centred(rng, dtype, (2, 4, 4))
        positive = (a @ np.swapaxes(a, -1, -2) + 4 * np.eye(4)).astype(dtype)
        check('BatchCholesky', [positive], **close)
        check('BatchCholesky', [np.ones((2, 3), dtype)])
        l = np.linalg.cholesky(positive)
        check('BatchCholeskyGrad', [l, a], **close)
        check('BatchMatrixTriangularSolve', [l, centred(rng, dtype, (2, 4, 3))], **close)
        check('BatchMatrixTriangularSolve', [l, centred(rng, dtype, (2, 4, 3))], {'lower': False, 'adjoint': True}, **close)


MOVED = [np.float32, np.float64, np.complex64, np.complex128, np.int8, np.int32, np.int64, np.uint16, bool, np.float16]
ALIGNS = ('LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT')


def any_numbers(rng, dtype, shape):
    return rng.integers(0, 2 if dtype is bool else 100, shape).astype(dtype)


def diagonals(check, rng):
    for dtype in MOVED:
        def draw(*shape):
            return any_numbers(rng, dtype, shape)
        zero = np.zeros((), dtype)
        for shape, k in (((3, 3), 0), ((3, 4), 1), ((4, 3), -2), ((2, 3, 4), [-1, 1]), ((4, 4), [0, 2]), ((2, 3, 5, 4), [-3, -1]), ((3, 5), [-2, 4]),
                         ((0, 3, 3), [0, 1]), ((3, 3), [1, 1]), ((2, 2), [-1, 0])):
            low, high = np.ravel(k)[0], np.ravel(k)[-1]
            rows, columns = shape[-2:]
            length = min(rows + min(high, 0), columns - max(low, 0))
            packed = shape[:-2] + ((high - low + 1, length) if high > low else (length,))
            check('MatrixDiagPartV2', [draw(*shape), np.int32(k), zero])
            check('MatrixDiagV2', [draw(*packed), np.int32(k), np.int32(rows), np.int32(columns), zero])
            check('MatrixDiagV2', [draw(*packed), np.int32(k), np.int32(-1), np.int32(-1), zero])
            check('MatrixSetDiagV2', [draw(*shape), draw(*packed), np.int32(k)])
            for align in ALIGNS:
                check('MatrixSetDiagV3', [draw(*shape), draw(*packed), np.int32(k)], {'align': align})
        check('BatchMatrixDiag', [draw(2, 3)])
        check('BatchMatrixDiagPart', [draw(2, 3, 4)])
        check('BatchMatrixSetDiag', [draw(2, 3, 4), draw(2, 3)])
        if dtype is not bool:
            check('BatchMatrixBandPart', [draw(2, 3, 4), np.int64(1), np.int64(-1)])
    x = np.ones((2, 3, 4), np.float32)
    for op in ('MatrixSetDiagV2', 'MatrixSetDiagV3'):
        for diagonal, k in (((2, 3), [0, 1]), ((2, 2, 2), [0, 1]), ((2, 2), 0), ((3, 3), 0), ((3,), 0), ((), 0), ((2, 3), 4), ((2, 3), -3), ((2, 2, 3), [1, 0]),
                            ((2, 3), [[0]]), ((2, 3), [0, 1, 2]), ((2, 3), [])):
            check(op, [x, np.ones(diagonal, np.float32), np.int32(k)])
        check(op, [np.ones(3, np.float32), np.ones(3, np.float32), np.int32(0)])


def cases(check, rng):
    determinants(check, rng)
    inverses(check, rng)
    systems(check, rng)
    singular(check, rng)
    self_adjoint(check, rng)
    eigen(check, rng)
    functions(check, rng)
    least_squares(check, rng)
    bands(check, rng)
    tridiagonals(check, rng)
    legacy(check, rng)
    diagonals(check, rng)
