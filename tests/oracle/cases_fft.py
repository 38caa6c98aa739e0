"""Fourier transforms: lengths of every kind, one to three dimensions, complex and real."""
import numpy as np

PARTS = ((np.float32, np.complex64), (np.float64, np.complex128))
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 19, 20, 21, 25, 27, 31, 32, 35, 37, 41, 48, 49, 60, 64, 67, 74, 77, 97, 100, 101, 121,
           128, 134, 143, 210, 243, 251, 256, 360, 509, 512, 625, 1000, 1009, 1024, 2018)


def centred(rng, dtype, shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == 'c' else x).astype(dtype)


def close(dtype, count):
    """Sums of |count| numbers: zeros among them are as large as their rounding."""
    return dict(rtol=2e-5, atol=4e-6 * max(1, count) ** 0.5) if np.dtype(dtype).itemsize < 16 and dtype is not np.float64 else \
        dict(rtol=1e-11, atol=2e-14 * max(1, count) ** 0.5)


def one_axis(check, rng):
    for real, dtype in PARTS:
        for n in LENGTHS:
            for batch in ((), (3,)) if n < 300 else ((),):
                x = centred(rng, dtype, batch + (n,))
                check('FFT', [x], {'Tcomplex': dtype}, **close(dtype, n))
                check('IFFT', [x], {'Tcomplex': dtype}, **close(dtype, 1))
                types = {'Treal': real, 'Tcomplex': dtype}
                check('RFFT', [centred(rng, real, batch + (n,)), np.int32([n])], types, **close(dtype, n))
                check('IRFFT', [centred(rng, dtype, batch + (n // 2 + 1,)), np.int32([n])], types, **close(real, 1))
        for shape in ((0, 3), (2, 0), (0,), (2, 3, 4), (2, 1, 3, 5), (40, 8), (17, 100), (5, 4096)):
            for op in ('FFT', 'IFFT'):
                check(op, [centred(rng, dtype, shape)], {'Tcomplex': dtype}, **close(dtype, shape[-1]))
        types = {'Treal': real, 'Tcomplex': dtype}
        for shape, n in (((7,), 4), ((7,), 5), ((2, 8), 8), ((2, 3, 9), 6), ((3,), 1), ((0, 4), 4), ((2, 0), 0), ((50, 64), 64)):
            check('RFFT', [centred(rng, real, shape), np.int32([n])], types, gradient=0 < n == shape[-1], **close(dtype, n))
        for shape, n in (((7,), 4), ((7,), 5), ((2, 5), 8), ((2, 3, 9), 6), ((3,), 1), ((3,), 2), ((0, 4), 4), ((50, 33), 64)):
            check('IRFFT', [centred(rng, dtype, shape), np.int32([n])], types, gradient=shape[-1] == n // 2 + 1, **close(real, 1))
        check('RFFT', [np.zeros((2, 0), real), np.int32([4])], types, shapes_only=True)


def more_axes(check, rng):
    for real, dtype in PARTS:
        types = {'Treal': real, 'Tcomplex': dtype}
        for axes, name in ((2, '2D'), (3, '3D')):
            shapes = {2: ((1, 1), (2, 3), (4, 4), (5, 7), (2, 8, 6), (2, 3, 4, 9), (37, 4), (4, 41), (0, 3), (3, 0), (0, 4, 4), (32, 48)),
                      3: ((1, 1, 1), (2, 3, 4), (3, 5, 7), (2, 4, 4, 8), (2, 0, 3), (5, 37, 4), (8, 12, 10))}[axes]
            for shape in shapes:
                count = int(np.prod(shape[-axes:]))
                check('FFT' + name, [centred(rng, dtype, shape)], {'Tcomplex': dtype}, **close(dtype, count))
                check('IFFT' + name, [centred(rng, dtype, shape)], {'Tcomplex': dtype}, **close(dtype, 1))
                if count == 0:
                    continue
                lengths = np.int32(shape[-axes:])
                check('RFFT' + name, [centred(rng, real, shape), lengths], types, **close(dtype, count))
                half = shape[:-1] + (shape[-1] // 2 + 1,)
                check('IRFFT' + name, [centred(rng, dtype, half), lengths], types, **close(real, 1))
                larger = tuple(d + 1 for d in shape[-axes:])
                check('RFFT' + name, [centred(rng, real, shape[:-axes] + larger), lengths], types, gradient=False, **close(dtype, count))
                check('IRFFT' + name, [centred(rng, dtype, shape[:-axes] + larger), lengths], types, gradient=False, **close(real, 1))


def errors(check, rng):
    x, z = np.ones(3, np.float32), np.ones(3, np.complex64)
    check('FFT', [np.complex64(1)])
    check('FFT2D', [z])
    check('IFFT3D', [z[None]])
    for lengths in ([-2], [6], [2, 3], [[2]], 3, []):
        check('RFFT', [x, np.int32(lengths)])
        check('IRFFT', [z, np.int32([10] if lengths == [6] else lengths)])
    check('RFFT', [np.float32(1), np.int32([1])])
    check('IRFFT', [np.complex64(1), np.int32([1])])
    for lengths in ([2], [4, 3], [2, 4], [-1, 2]):
        check('RFFT2D', [x[None].repeat(3, 0), np.int32(lengths)])
        check('IRFFT2D', [z[None].repeat(3, 0), np.int32([2, 6] if lengths == [2, 4] else lengths)])
    check('RFFT2D', [x, np.int32([1, 3])])
    check('RFFT', [x, np.int32([3])], {'Tcomplex': np.complex128})
    check('RFFT', [x.astype(np.float64), np.int32([3])], {'Tcomplex': np.complex64})
    check('IRFFT', [z, np.int32([3])], {'Treal': np.float64})


def cases(check, rng):
    one_axis(check, rng)
    more_axes(check, rng)
    errors(check, rng)
