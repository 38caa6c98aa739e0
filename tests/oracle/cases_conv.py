"""Cases of src/ops/nn/conv.c, and of the forms of Conv3D and DepthwiseConv2dNative with a tail."""
import ml_dtypes
import numpy as np

LOOSE = {np.float32: dict(rtol=2e-5, atol=1e-4), np.float64: dict(rtol=1e-11, atol=1e-11), np.float16: dict(rtol=2e-2, atol=3e-2),
         ml_dtypes.bfloat16: dict(rtol=1e-1, atol=2e-1), np.int32: {}}
FLOAT = LOOSE[np.float32]


def some(rng, shape, dtype=np.float32):
    if dtype == np.int32:
        return rng.integers(-20, 20, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def attributes(axes, padding='VALID', **more):
    return {'strides': [1] * (axes + 2), 'padding': padding, **more}


def convolutions(check, rng):
    for dtype, loose in LOOSE.items():
        image, f = some(rng, (2, 5, 6, 2), dtype), some(rng, (2, 3, 2, 4), dtype)
        volume, g = some(rng, (2, 4, 5, 6, 2), dtype), some(rng, (2, 2, 3, 2, 4), dtype)
        check('Conv', [image, f], {**attributes(2, 'SAME'), 'strides': [1, 2, 1, 1]}, **loose)
        check('Conv', [image, f], attributes(2, dilations=[1, 2, 2, 1]), **loose)
        check('Conv', [volume, g], {**attributes(3, 'SAME'), 'strides': [1, 1, 2, 3, 1]}, **loose)
    image, f = some(rng, (2, 5, 6, 2)), some(rng, (2, 3, 2, 4))
    volume, g = some(rng, (2, 4, 5, 6, 2)), some(rng, (2, 2, 3, 2, 4))
    pads = [0, 0, 1, 2, 0, 1, 0, 0]
    check('Conv', [image, f], attributes(2, 'EXPLICIT', explicit_paddings=pads), **FLOAT)
    check('Conv', [some(rng, (2, 3, 5, 6, 2)), f], attributes(2, batch_dims=2), **FLOAT)
    check('Conv', [some(rng, (2, 1, 3, 4, 5, 6, 2)), g], attributes(3, batch_dims=3), **FLOAT)
    check('Conv', [image[0], f], attributes(2, batch_dims=0), **FLOAT)
    check('Conv', [image[:0], f], attributes(2))
    check('Conv', [volume[:0], g], attributes(3))
    # TensorFlow's CPU kernel of volumes knows no dilation.
    check('Conv', [volume, g], attributes(3, dilations=[1, 2, 2, 2, 1]), tf_only_fails=True)


def errors(check, rng):
    image, f = some(rng, (2, 5, 6, 2)), some(rng, (2, 3, 2, 4))
    volume, g = some(rng, (2, 4, 5, 6, 2)), some(rng, (2, 2, 3, 2, 4))
    pads = [0, 0, 1, 2, 0, 1, 0, 0]
    for bad in ([some(rng, (2, 5, 2)), f], [volume, f], [image, g], [image, f[0]], [image, f[:, :, :1].copy()], [image, f[..., :0]],
                [image, f[:0]], [image, some(rng, (9, 9, 2, 3))], [image, some(rng, (6, 6, 2, 3))], [image[..., :0], f[:, :, :0]]):
        check('Conv', bad, attributes(2))
    for bad in ({'batch_dims': -1}, {'batch_dims': 2}, {'batch_dims': 5}, {'strides': [1, 1, 1]}, {'strides': [1, 0, 1, 1]},
                {'strides': [2, 1, 1, 1]}, {'strides': []}, {'dilations': [1, 1, 1]}, {'dilations': [1, 0, 1, 1]},
                {'dilations': [1, 1, 1, 2]}, {'padding': 'EXPLICIT'}, {'explicit_paddings': pads},
                {'padding': 'EXPLICIT', 'explicit_paddings': pads[:4]}, {'padding': 'EXPLICIT', 'explicit_paddings': [1] * 8},
                {'padding': 'EXPLICIT', 'explicit_paddings': [-i for i in pads]}, {'groups': 0}, {'groups': 3}):
        check('Conv', [image, f], {**attributes(2), **bad})
    check('Conv', [some(rng, (2, 5, 6, 4)), f], attributes(2, groups=2))
    check('Conv', [some(rng, (2, 2, 5, 6)), f], attributes(2, data_format='CHANNELS_FIRST'))


def tails(check, rng):
    """Kernels of TensorFlow's for these are of a library that is left out here: values are compared in tests/data_format_test.py."""
    for op, shapes in (('_FusedConv3D', [(2, 4, 5, 6, 3), (2, 3, 2, 3, 4)]), ('_FusedDepthwiseConv2dNative', [(2, 6, 7, 2), (3, 2, 2, 2)])):
        attrs = {'strides': [1] * len(shapes[0]), 'padding': 'SAME', 'num_args': 1, 'fused_ops': ['BiasAdd']}
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
            inputs = [some(rng, s, dtype) for s in (*shapes, (4,))]
            check(op, inputs, attrs, tf_only_fails=True)
            check(op, inputs, {**attrs, 'fused_ops': ['BiasAdd', 'Relu']}, tf_only_fails=True)


def cases(check, rng):
    convolutions(check, rng)
    errors(check, rng)
    tails(check, rng)
