"""Cases of ops that TensorFlow keeps for old graphs: gradients of Conv3D, normalisation by given moments."""
import numpy as np

from values import DIVIDES_BY_ZERO

LOOSE = {np.float32: dict(rtol=2e-5, atol=2e-4), np.float64: dict(rtol=1e-11, atol=1e-11), np.float16: dict(rtol=2e-2, atol=1e-1)}


def normal(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def convolutions(check, rng):
    def both(x, f, dy, attrs, **options):
        for op in ('Conv3DBackpropInput', 'Conv3DBackpropFilter'):
            check(op, [x, f, dy], attrs, **options)
    for dtype, loose in LOOSE.items():
        for strides, padding, out in (((1, 1, 1), 'VALID', (3, 3, 4)), ((2, 1, 3), 'SAME', (2, 5, 2))):
            x, f, dy = (normal(rng, s, dtype) for s in ((2, 4, 5, 6, 2), (2, 3, 3, 2, 3), (2, *out, 3)))
            both(x, f, dy, {'strides': [1, *strides, 1], 'padding': padding}, **loose)
    x, f, dy = (normal(rng, s) for s in ((1, 4, 4, 4, 2), (2, 2, 2, 2, 3), (1, 3, 3, 3, 3)))
    attrs = {'strides': [1] * 5, 'padding': 'VALID'}
    both(x[:0], f, dy[:0], attrs)
    check('Conv3DBackpropFilter', [x, f[..., :0], dy[..., :0]], attrs)  # the other is left as memory happens to be in TensorFlow
    # TensorFlow's gradients know no dilation on the CPU.
    both(x, f, dy[:, :2, :2, :2].copy(), {**attrs, 'dilations': [1, 2, 2, 2, 1]}, tf_only_fails=True)
    for bad in ([x, f, dy[:, :1]], [x[0], f, dy], [x, f[0], dy], [x, f, dy[0]], [normal(rng, (1, 4, 4, 4, 3)), f, dy]):
        both(*bad, attrs)
    for bad in ({'strides': [1, 1, 1, 1, 2]}, {'strides': [1, 0, 1, 1, 1]}, {'strides': [1] * 6}, {'strides': [1] * 4},
                {'dilations': [1, 0, 1, 1, 1]}, {'dilations': [1] * 4}):
        both(x, f, dy, {**attrs, **bad})


def normalisations(check, rng):
    for dtype, loose in LOOSE.items():
        for shape in ((2, 3, 4, 5), (0, 3, 4, 5), (3, 16, 16, 8)) + ((2, 3, 4, 0),) * DIVIDES_BY_ZERO:
            for scaled in (False, True):
                attrs = {'variance_epsilon': 0.01, 'scale_after_normalization': scaled}
                x, dy = normal(rng, shape, dtype), normal(rng, shape, dtype)
                m, v, b, g = (normal(rng, shape[3:], dtype) for _ in range(4))
                v = np.abs(v) + dtype(0.5)
                check('BatchNormWithGlobalNormalization', [x, m, v, b, g], attrs, **loose)
                wide = dict(loose, atol=2.0) if dtype == np.float16 and shape[0] == 3 else loose
                check('BatchNormWithGlobalNormalizationGrad', [x, m, v, g, dy], attrs, **wide)
    x, m = normal(rng, (2, 3, 4, 5)), normal(rng, (5,)) ** 2
    attrs = {'variance_epsilon': 0.01, 'scale_after_normalization': True}
    # Vectors of another length than there are channels are left out: TensorFlow's kernels read and write past the ends of them.
    for bad in ([x[0], m, m, m, m], [x, m[None], m, m, m], [x, m, m[None], m, m], [x, m, m, m[0], m], [x, m, m, m, m[None]]):
        check('BatchNormWithGlobalNormalization', bad, attrs)
    for bad in ([x[0], m, m, m, x[0]], [x, m[None], m, m, x], [x, m, m[None], m, x], [x, m, m, m[0], x],
                [x, m, m, m, x.reshape(2, 4, 3, 5)], [x, m, m, m, x[0]]):
        check('BatchNormWithGlobalNormalizationGrad', bad, attrs)


def cases(check, rng):
    convolutions(check, rng)
    normalisations(check, rng)
