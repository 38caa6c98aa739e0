"""Sums of products over labelled axes; factors of matrices, triangular systems."""
import numpy as np
import ml_dtypes

BF16 = ml_dtypes.bfloat16
TYPES = [np.float32, np.float64, np.float16, BF16, np.int32, np.int64, np.complex64, np.complex128]


def make(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == 'i':
        return rng.integers(-9, 10, shape).astype(dtype)
    x = rng.uniform(0.2, 1.5, shape)
    return (x + 1j * rng.uniform(0.2, 1.5, shape) if dtype.kind == 'c' else x).astype(dtype)


CLOSE = {np.dtype(np.float32): dict(rtol=1e-5, atol=1e-5), np.dtype(np.complex64): dict(rtol=1e-5, atol=1e-5),
         np.dtype(np.float16): dict(rtol=1e-2, atol=1e-2), np.dtype(BF16): dict(rtol=6e-2, atol=6e-2)}

EQUATIONS = [
    ('->', ()), ('i->i', (3,)), ('ij->ji', (2, 3)), ('ij->', (3, 4)), ('ij->i', (3, 4)), ('ij->j', (3, 4)), ('ii->', (3, 3)),
    ('ii->i', (3, 3)), ('i->ii', (3,)), ('iij->ji', (2, 2, 3)), ('aabbcd->ca', (2, 2, 3, 3, 2, 4)), ('abc->acb', (2, 3, 4)),
    ('...ij->...ji', (2, 3, 4)), ('...ij->i...', (2, 3)), ('i...->...', (3, 2, 4)), ('...ij->ij...', (5, 2, 3)),
    ('ij...->j...i', (5, 2, 3)), ('...->...', (2, 3)), ('ij->...', (2, 3)), ('...ij->i', (2, 3)), ('i j->i', (2, 1, 3)),
    ('abcdef->fedcba', (2, 1, 3, 1, 2, 2)), ('ij->iij', (2, 3)), ('ij->ij', (0, 3)), ('ij->i', (3, 0)),
    ('ij,jk->ik', (3, 4), (4, 5)), ('ij,kj->ik', (3, 4), (5, 4)), ('ji,jk->ik', (4, 3), (4, 5)), ('ij,jk->ki', (3, 4), (4, 5)),
    ('ij,jk->', (3, 4), (4, 5)), ('bij,bjk->bik', (2, 3, 4), (2, 4, 5)), ('bij,bjk->kbi', (9, 3, 4), (9, 4, 5)),
    ('ibj,bkj->bik', (3, 2, 4), (2, 5, 4)), ('i,j->ij', (3,), (4,)), ('i,j->ji', (3,), (4,)), ('i,i->', (4,), (4,)),
    ('i,i->i', (4,), (4,)), ('ij,ij->ij', (30, 40), (30, 40)), ('ij,ji->ij', (3, 4), (4, 3)), ('i,->i', (3,), ()), (',->', (), ()),
    ('abc,cd->ad', (2, 3, 4), (4, 5)), ('abc,cde->de', (2, 3, 4), (4, 5, 2)), ('abcd,adef->abcef', (2, 3, 1, 4), (2, 4, 2, 3)),
    ('ij,i->ij', (3, 4), (3,)), ('ii,ij->j', (3, 3), (3, 4)), ('iij,jk->ik', (3, 3, 4), (4, 2)), ('ij,jk->iik', (3, 4), (4, 2)),
    ('...ij,...jk->...ik', (2, 3, 4), (2, 4, 5)), ('...ij,...jk->...ik', (6, 1, 3, 4), (2, 4, 5)),
    ('...ij,jk->...ik', (2, 3, 4), (4, 5)), ('ij,...jk->i...k', (3, 4), (2, 4, 5)), ('...i,...i->...', (2, 1, 3), (4, 3)),
    ('...i,i...->...', (5, 3), (3, 1)), ('i,j->...ij', (2,), (3,)), ('...,...->...', (3, 1), (4,)), ('...i,j->...', (2, 3), (4,)),
    ('bsh,hnd->bsnd', (2, 5, 6), (6, 3, 4)), ('BTNH,BFNH->BNFT', (2, 5, 3, 4), (2, 6, 3, 4)),
    ('BNFT,BTNH->BFNH', (2, 3, 6, 5), (2, 5, 3, 4)), ('ij,jk->ik', (3, 0), (0, 5)), ('ij,jk->ik', (0, 3), (3, 5)),
    ('...ij,...jk->...ik', (0, 3, 4), (1, 4, 5)), ('abi,cbj->ab', (2, 3, 4), (5, 3, 2)), ('ij,jk->ik', (130, 70), (70, 90)),
]

ERRORS = [
    ('ij,jk', (2, 3), (3, 4)), ('ij->->i', (2, 3)), ('ij,jk,kl->il', (2, 3), (3, 4), (4, 5)), ('ij->i', (2, 3), (3,)),
    ('ij,j->i', (2, 3)), ('ijk->i', (2, 3)), ('...ij->i', (4, 2, 3)), ('...ijk->i', (2, 3)), ('i,i->', (1,), (3,)), ('ii->', (2, 3)),
    ('...i,...i->...', (2, 3), (4, 3)), ('...i,...i->i', (1, 3), (3,)), ('...i,...i->i', (2, 3), (2, 3)), ('i->i', (2, 3)),
    ('ij->k', (2, 3)), ('i..->i', (2,)), ('i.->i', (2, 3)), ('...i...->i', (2,)),
]


FACTOR_CLOSE = {np.dtype(np.float32): dict(rtol=2e-4, atol=2e-5), np.dtype(np.complex64): dict(rtol=2e-4, atol=2e-5),
                np.dtype(np.float64): dict(rtol=1e-10, atol=1e-12), np.dtype(np.complex128): dict(rtol=1e-10, atol=1e-12),
                np.dtype(np.float16): dict(rtol=3e-2, atol=2e-2)}
FACTOR_TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def centred(rng, dtype, shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == 'c' else x).astype(dtype)


def positive(rng, dtype, batch, n):
    a = centred(rng, dtype, batch + (n, n))
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)).astype(dtype)


def cholesky(check, rng):
    # TensorFlow leaves the upper triangle as it was when the matrix has no factor.
    for dtype in FACTOR_TYPES:
        check('Cholesky', [-np.ones((1, 1), dtype)])
        check('Cholesky', [np.zeros((2, 1, 1), dtype)])
        check('Cholesky', [np.array([[1, 2], [2, 1]], dtype)], shapes_only=True)
        check('Cholesky', [np.stack([np.eye(2), -np.eye(2)]).astype(dtype)], shapes_only=True)
        check('Cholesky', [np.array([[np.nan, 0], [0, 1]], dtype)])
        check('Cholesky', [np.ones((2, 3), dtype)])
        check('Cholesky', [np.ones((3,), dtype)])
        check('Cholesky', [dtype(2)])
    for batch, n in (((), 5), ((3,), 4), ((2, 3), 3), ((), 1), ((), 2), ((), 33), ((), 70), ((0,), 3), ((2,), 0), ((), 0), ((1, 1, 2), 2)):
        for dtype in FACTOR_TYPES:
            close = FACTOR_CLOSE[np.dtype(dtype)]
            a = positive(rng, dtype, batch, n)
            check('Cholesky', [a], **close)
            check('Cholesky', [a + np.triu(np.full_like(a, 7), 1)], name='upper triangle is not read', **close)
            if np.dtype(dtype).kind == 'f':
                l = np.linalg.cholesky(a) if a.size else a
                check('CholeskyGrad', [l, centred(rng, dtype, batch + (n, n))], **close)
                check('CholeskyGrad', [l, np.tril(centred(rng, dtype, batch + (n, n)))], **close)
    for l, g in (((2, 2), (3, 3)), ((2, 3), (2, 3)), ((2, 2), (1, 2, 2)), ((2,), (2, 2)), ((2, 2, 2), (3, 2, 2))):
        check('CholeskyGrad', [np.ones(l, np.float32), np.ones(g, np.float32)])


def stable(rng, dtype, shape):
    """A matrix whose factors rounding moves little: TensorFlow rounds each step of half to half, so that a nearly singular matrix
    spreads its factors, and a pivot next to 0 (tau near 1) or a column hardly reflected (near 2) turns the sign of a row of r."""
    while True:
        a = centred(rng, dtype, shape)
        if a.size == 0:
            return a
        wide = a.astype(np.complex128 if a.dtype.kind == 'c' else np.float64)
        s = np.linalg.svd(wide[..., :, :shape[-2]], compute_uv=False)
        tau = np.linalg.qr(wide, mode='raw')[1].real  # 1 + |pivot| / |column|; 0: not reflected
        if (s[..., -1] > s[..., 0] / 20).all() and ((tau == 0) | (tau > 1.03) & (tau < 1.99)).all():
            return a


QR_SHAPES = ((5, 3), (3, 5), (2, 4, 4), (17, 9), (3, 0), (1, 1), (2, 2), (3, 3), (1, 4), (4, 1), (2, 3, 5, 2), (0, 3, 3), (20, 20), (9, 17),
             (0, 3), (2, 0, 3), (2, 3, 0), (0, 0))
QR_MATRICES = ([[0, 0], [0, 0]], [[0], [0], [5]], [[-3, 1], [4, 2]], [[1, 2], [0, 3]], [[-1, 2], [0, -3]], [[3, 1], [4, 2]],
               [[0, 1], [1, 0]], [[0, 1, 2]], np.eye(3), -np.eye(3))


def qr(check, rng):
    types = FACTOR_TYPES + [np.float16]
    for shape in QR_SHAPES:
        for full in (False, True):
            for dtype in types:
                check('Qr', [stable(rng, dtype, shape)], {'full_matrices': full}, **FACTOR_CLOSE[np.dtype(dtype)])
    for dtype in types:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        for full in (False, True):
            for a in QR_MATRICES:
                check('Qr', [np.array(a, dtype)], {'full_matrices': full}, **close)
            check('Qr', [np.ones(3, dtype)], {'full_matrices': full})
        if np.dtype(dtype).kind == 'c':
            check('Qr', [np.array([[1j, 0], [0, -2j]], dtype)], **close)
            check('Qr', [np.diag([1 + 1j, 2, -1j]).astype(dtype)], **close)
    for big in (60, 100):
        check('Qr', [centred(rng, np.float64, (big, 50))], rtol=1e-8, atol=1e-10)


def triangular(check, rng):
    for dtype in FACTOR_TYPES:
        close = FACTOR_CLOSE[np.dtype(dtype)]
        for a_batch, b_batch, n, m in (((), (), 1, 1), ((), (), 3, 1), ((), (), 4, 7), ((2,), (2,), 3, 2), ((2, 3), (2, 3), 2, 5),
                                       ((), (4,), 3, 2), ((4,), (), 3, 2), ((2, 1), (1, 3), 3, 2), ((0,), (0,), 3, 2),
                                       ((), (), 0, 3), ((), (), 3, 0), ((), (), 40, 6)):
            a = centred(rng, dtype, a_batch + (n, n)) / max(1, n) + 2 * np.eye(n).astype(dtype)
            b = centred(rng, dtype, b_batch + (n, m))
            for lower in (False, True):
                for adjoint in (False, True):
                    check('MatrixTriangularSolve', [a.astype(dtype), b], {'lower': lower, 'adjoint': adjoint}, **close)
        check('MatrixTriangularSolve', [np.array([[1, 0], [3, 0]], dtype), np.ones((2, 1), dtype)])
        check('MatrixTriangularSolve', [np.array([[np.nan, 0], [3, 1]], dtype), np.ones((2, 1), dtype)])
        for a, b in (((2, 3), (2, 1)), ((2, 2), (3, 1)), ((2, 2), (2,)), ((2,), (2, 2)), ((2, 2, 2), (3, 2, 2)), ((), ())):
            check('MatrixTriangularSolve', [np.ones(a, dtype), np.ones(b, dtype)])


def cases(check, rng):
    cholesky(check, rng)
    qr(check, rng)
    triangular(check, rng)
    for equation, *shapes in EQUATIONS:
        for dtype in TYPES:
            inputs = [make(rng, dtype, shape) for shape in shapes]
            close = CLOSE.get(np.dtype(dtype), {})
            check('Einsum', inputs, {'equation': equation}, name=equation, **close)
    for equation, *shapes in ERRORS:
        check('Einsum', [make(rng, np.float32, shape) for shape in shapes], {'equation': equation}, name=equation)
