"""Sums of products over labelled axes."""
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


def cases(check, rng):
    for equation, *shapes in EQUATIONS:
        for dtype in TYPES:
            inputs = [make(rng, dtype, shape) for shape in shapes]
            close = CLOSE.get(np.dtype(dtype), {})
            check('Einsum', inputs, {'equation': equation}, name=equation, **close)
    for equation, *shapes in ERRORS:
        check('Einsum', [make(rng, np.float32, shape) for shape in shapes], {'equation': equation}, name=equation)
