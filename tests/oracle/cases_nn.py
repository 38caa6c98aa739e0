"""Cases of src/ops/nn/: convolution, pooling, activations, softmax and cross entropy, normalisation."""
import ml_dtypes
import numpy as np

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
REALS = FLOATS + [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
LOOSE = {np.float32: dict(rtol=2e-5, atol=2e-5), np.float64: dict(rtol=1e-11, atol=1e-11),
         np.float16: dict(rtol=2e-2, atol=2e-2), ml_dtypes.bfloat16: dict(rtol=1e-1, atol=1e-1)}


def summed(loose, terms):
    """For sums of so many terms, which the two libraries add in different orders."""
    return dict(loose, atol=loose['atol'] * max(1.0, terms ** 0.5 / 4)) if 'atol' in loose else loose


def normal(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def real(rng, shape, dtype):
    if np.dtype(dtype).kind in 'iu':
        low = 0 if np.dtype(dtype).kind == 'u' else -20
        return rng.integers(low, 20, shape).astype(dtype)
    return normal(rng, shape, dtype)


def conv_sizes(n, k, s, d, padding, pads=(0, 0)):
    extent = (k - 1) * d + 1
    if padding == 'SAME':
        return -(-n // s)
    return (n + sum(pads) - extent) // s + 1


def conv_all(check, rng, shape, filter_shape, strides, padding, dtype=np.float32, dilations=(1, 1), pads=None):
    """Conv2D and both gradients of one geometry."""
    n, h, w, _ = shape
    pads = pads or [0, 0, 0, 0]
    attrs = {'strides': [1, *strides, 1], 'padding': padding, 'dilations': [1, *dilations, 1]}
    if padding == 'EXPLICIT':
        attrs['explicit_paddings'] = [0, 0, *pads, 0, 0]
    out = (n, conv_sizes(h, filter_shape[0], strides[0], dilations[0], padding, pads[:2]),
           conv_sizes(w, filter_shape[1], strides[1], dilations[1], padding, pads[2:]), filter_shape[3])
    x, f, dy = (real(rng, s, dtype) for s in (shape, filter_shape, out))
    loose = LOOSE.get(dtype, {})
    check('Conv2D', [x, f], attrs, **loose)
    # TensorFlow's gradients know no dilation on the CPU.
    loose = dict(loose, tf_only_fails=True) if dilations != (1, 1) else loose
    check('Conv2DBackpropInput', [np.int32(shape), f, dy], attrs, **loose)
    if dtype != np.int32:
        check('Conv2DBackpropFilter', [x, np.int32(filter_shape), dy], attrs, **summed(loose, n * out[1] * out[2]))


def convolutions(check, rng):
    for dtype in FLOATS + [np.int32]:
        conv_all(check, rng, (2, 5, 6, 3), (3, 3, 3, 4), (1, 1), 'SAME', dtype)
        conv_all(check, rng, (2, 5, 6, 3), (3, 2, 3, 4), (2, 1), 'VALID', dtype)
    for padding in ('SAME', 'VALID'):
        for k, s in ((1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (5, 1), (5, 4)):
            conv_all(check, rng, (3, 9, 7, 4), (k, k, 4, 5), (s, s), padding)
    conv_all(check, rng, (10, 7, 8, 1), (5, 5, 1, 8), (1, 1), 'SAME')
    conv_all(check, rng, (9, 6, 6, 33), (3, 3, 33, 17), (1, 1), 'SAME')
    conv_all(check, rng, (1, 14, 14, 16), (3, 3, 16, 32), (1, 1), 'SAME')
    conv_all(check, rng, (70, 3, 3, 5), (3, 3, 5, 6), (1, 1), 'VALID')
    conv_all(check, rng, (4, 30, 30, 8), (3, 3, 8, 8), (1, 2), 'SAME')
    conv_all(check, rng, (2, 9, 9, 3), (3, 3, 3, 4), (1, 1), 'SAME', dilations=(2, 2))
    conv_all(check, rng, (2, 11, 9, 3), (3, 2, 3, 4), (1, 1), 'VALID', dilations=(3, 2))
    conv_all(check, rng, (9, 5, 6, 3), (3, 3, 3, 4), (1, 2), 'EXPLICIT', pads=[1, 0, 2, 1])
    conv_all(check, rng, (2, 5, 6, 3), (3, 3, 3, 4), (1, 1), 'EXPLICIT', pads=[2, 2, 0, 3])
    conv_all(check, rng, (0, 5, 6, 3), (3, 3, 3, 4), (1, 1), 'SAME')
    # Groups, of which TensorFlow's CPU has no gradients.
    for shape, f, s in (((2, 5, 5, 4), (3, 3, 2, 6), 1), ((9, 4, 4, 6), (2, 2, 2, 9), 2), ((2, 4, 4, 6), (1, 1, 3, 4), 1)):
        x, w = normal(rng, shape), normal(rng, f)
        dy = normal(rng, (shape[0], -(-shape[1] // s), -(-shape[2] // s), f[3]))
        attrs = {'strides': [1, s, s, 1], 'padding': 'SAME'}
        check('Conv2D', [x, w], attrs, **LOOSE[np.float32])
        check('Conv2DBackpropInput', [np.int32(shape), w, dy], attrs, tf_only_fails=True)
        check('Conv2DBackpropFilter', [x, np.int32(f), dy], attrs, tf_only_fails=True)


def convolution_errors(check, rng):
    x, f = normal(rng, (2, 5, 6, 3)), normal(rng, (3, 3, 3, 4))
    same = {'strides': [1, 1, 1, 1], 'padding': 'SAME'}
    check('Conv2D', [x, f[:, :, :2]], same)
    check('Conv2D', [x, f[:, :, :0]], same)
    check('Conv2D', [x, f[:0]], same)
    check('Conv2D', [x[..., :0], f], same)
    check('Conv2D', [x[0], f], same)
    check('Conv2D', [x, f[0]], same)
    check('Conv2D', [x, f], dict(same, strides=[1, 0, 1, 1]))
    check('Conv2D', [x, f], dict(same, strides=[1, 1, 1]))
    check('Conv2D', [x, f], dict(same, strides=[2, 1, 1, 1]))
    check('Conv2D', [x, f], dict(same, dilations=[1, 0, 1, 1]))
    check('Conv2D', [x, f], dict(same, dilations=[1, 1, 1, 2]))
    check('Conv2D', [x, f], dict(same, explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0]))
    for pads in ([0, 0, 1, 1], [0, 0, 1, -1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 0, 0]):
        check('Conv2D', [x, f], dict(same, padding='EXPLICIT', explicit_paddings=pads))
    check('Conv2D', [x, normal(rng, (8, 3, 3, 4))], dict(same, padding='VALID'))
    dy = normal(rng, (2, 5, 6, 4))
    check('Conv2DBackpropInput', [np.int32([5, 6]), f, dy], same, **LOOSE[np.float32])
    check('Conv2DBackpropInput', [np.int32([2, 5, 6]), f, dy], same)
    check('Conv2DBackpropInput', [np.int32([2, 4, 6, 3]), f, dy], same)
    check('Conv2DBackpropInput', [np.int32([3, 5, 6, 3]), f, dy], same)
    check('Conv2DBackpropInput', [np.int32([2, 5, 6, 3]), f[..., :2], dy], same)
    check('Conv2DBackpropFilter', [x, np.int32([3, 3, 3]), dy], same)
    check('Conv2DBackpropFilter', [x, np.int32([3, 3, 3, 5]), dy], same)
    check('Conv2DBackpropFilter', [x, np.int32([3, 3, 3, 4]), dy[:1]], same)
    nchw = dict(same, data_format='NCHW')
    check('Conv2D', [x.transpose(0, 3, 1, 2), f], nchw, tf_only_fails=True)


def depthwise(check, rng):
    for dtype in FLOATS:
        loose = LOOSE[dtype]
        for m, s, padding in ((1, 1, 'SAME'), (3, 2, 'VALID')):
            x, f = normal(rng, (3, 6, 7, 5), dtype), normal(rng, (3, 3, 5, m), dtype)
            attrs = {'strides': [1, s, s, 1], 'padding': padding}
            h, w = (conv_sizes(n, 3, s, 1, padding) for n in (6, 7))
            dy = normal(rng, (3, h, w, 5 * m), dtype)
            check('DepthwiseConv2dNative', [x, f], attrs, **loose)
            check('DepthwiseConv2dNativeBackpropInput', [np.int32(x.shape), f, dy], attrs, **loose)
            check('DepthwiseConv2dNativeBackpropFilter', [x, np.int32(f.shape), dy], attrs, **summed(loose, 3 * h * w))
    x, f = normal(rng, (2, 6, 7, 4)), normal(rng, (3, 3, 4, 2))
    attrs = {'strides': [1, 1, 1, 1], 'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 2, 0, 1, 0, 0]}
    check('DepthwiseConv2dNative', [x, f], attrs, **LOOSE[np.float32])
    check('DepthwiseConv2dNative', [x, f[:, :, :3]], attrs)


def biases(check, rng):
    for dtype in REALS + [np.complex64, np.complex128]:
        x, b = real(rng, (2, 3, 5), dtype), real(rng, (5,), dtype)
        check('BiasAdd', [x, b])
        check('BiasAddV1', [x, b])
        check('BiasAdd', [x, real(rng, (3,), dtype)], {'data_format': 'NCHW'})
        check('BiasAddGrad', [x], **LOOSE.get(dtype, {}))
        check('BiasAddGrad', [x], {'data_format': 'NCHW'}, **LOOSE.get(dtype, {}))
    long = summed(LOOSE[np.float32], 6300)  # TensorFlow itself is up to 3e-4 from the exact sum
    check('BiasAddGrad', [normal(rng, (700, 9, 8))], **long)
    check('BiasAddGrad', [normal(rng, (9, 8, 700))], {'data_format': 'NCHW'}, **long)
    for shape in ((4, 3), (2, 3, 4, 5), (2, 3, 2, 2, 2), (0, 3), (3, 0)):
        x = normal(rng, shape)
        for axis, fmt in ((-1, 'NHWC'), (1, 'NCHW')):
            check('BiasAdd', [x, normal(rng, (shape[axis],))], {'data_format': fmt})
            check('BiasAddGrad', [x], {'data_format': fmt}, **LOOSE[np.float32])
    check('BiasAdd', [x, normal(rng, (7,))])
    check('BiasAdd', [normal(rng, (3,)), normal(rng, (3,))])
    check('BiasAdd', [normal(rng, (3, 3)), normal(rng, (3, 1))])
    check('BiasAddGrad', [normal(rng, (3,))])


def activations(check, rng):
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 6.0, 6.5, 1e-30, -1e-30, 100, -100, 1e-4, -1e-4, 20, -20])
    for dtype in REALS:
        x = real(rng, (3, 300), dtype)
        dy = real(rng, (3, 300), dtype)
        for op in ('Relu', 'Relu6'):
            check(op, [x])
            check(op + 'Grad', [dy, x])
    for dtype in FLOATS:
        x, dy = normal(rng, (5, 111), dtype), normal(rng, (5, 111), dtype)
        edge = special.astype(dtype)
        for op in ('Relu', 'Relu6', 'LeakyRelu', 'Elu', 'Selu', 'Softplus', 'Softsign'):
            # TensorFlow computes exp(x) - 1, which is off by an absolute 1e-7 near 0.
            near = dict(rtol=1e-5, atol=2e-7) if dtype == np.float32 else {}
            near = dict(rtol=1e-9, atol=1e-15) if dtype == np.float64 else near
            near = dict(rtol=8e-3, atol=2e-3) if dtype == np.float16 else near
            near = dict(rtol=3e-2, atol=1e-2) if dtype == ml_dtypes.bfloat16 else near
            check(op, [x], **near)
            check(op, [edge], **near)
            check(op + 'Grad', [dy, x], **near)
            check(op + 'Grad', [np.ones_like(edge), edge], **near)
            check(op + 'Grad', [dy, x[:2]])
            check(op, [x[:0]])
        for alpha in (0.0, 0.3, 1.5, -1.0):
            check('LeakyRelu', [x], {'alpha': alpha})
            check('LeakyReluGrad', [dy, x], {'alpha': alpha})
    check('ReluGrad', [np.float32([np.inf, np.nan, -np.inf, 1]), np.float32([-1, 0, 1, np.nan])])


def pools(check, rng):
    for dtype in REALS:
        x = real(rng, (2, 5, 7, 3), dtype)
        for padding in ('SAME', 'VALID'):
            attrs = {'ksize': [1, 2, 3, 1], 'strides': [1, 2, 1, 1], 'padding': padding}
            y = (2, 3, 7, 3) if padding == 'SAME' else (2, 2, 5, 3)
            if dtype not in (np.uint32, np.uint64):
                check('MaxPool', [x], attrs)
                check('MaxPoolV2', [x, np.int32([1, 3, 3, 1]), np.int32([1, 2, 2, 1])], {'padding': padding})
            top = max_pool(x, (2, 3), (2, 1), padding)
            assert top.shape == y
            dy = real(rng, y, dtype)
            loose = LOOSE.get(dtype, {})
            check('MaxPoolGrad', [x, top, dy], attrs, **loose)
            check('MaxPoolGradGrad', [x, top, real(rng, x.shape, dtype)], attrs)
            v2 = [np.int32([1, 2, 3, 1]), np.int32([1, 2, 1, 1])]
            check('MaxPoolGradV2', [x, top, dy, *v2], {'padding': padding}, **loose)
            check('MaxPoolGradGradV2', [x, top, real(rng, x.shape, dtype), *v2], {'padding': padding})
            for batch in (False, True):
                check('MaxPoolWithArgmax', [x], dict(attrs, include_batch_in_index=batch))
            check('MaxPoolWithArgmax', [x], dict(attrs, Targmax=np.int32))
            index = rng.integers(0, 5 * 7 * 3, y).astype(np.int64)
            # One image only: given two without the batch in the index, TensorFlow's kernel aborted under one thread.
            check('MaxPoolGradWithArgmax', [x[:1], dy[:1], index[:1]], attrs, **loose)
            index[1] += 5 * 7 * 3
            check('MaxPoolGradWithArgmax', [x, dy, index], dict(attrs, include_batch_in_index=True), **loose)
            if dtype in FLOATS:
                check('AvgPool', [x], attrs, **loose)
                check('AvgPoolGrad', [np.int32(x.shape), dy], attrs, **loose)
    x = normal(rng, (3, 12, 12, 40))
    for k, s in ((1, 1), (2, 2), (3, 2), (3, 1), (12, 12)):
        for padding in ('SAME', 'VALID'):
            attrs = {'ksize': [1, k, k, 1], 'strides': [1, s, s, 1], 'padding': padding}
            top = max_pool(x, (k, k), (s, s), padding)
            check('MaxPool', [x], attrs)
            check('AvgPool', [x], attrs, **LOOSE[np.float32])
            check('MaxPoolGrad', [x, top, normal(rng, top.shape)], attrs, **LOOSE[np.float32])
            check('AvgPoolGrad', [np.int32(x.shape), normal(rng, top.shape)], attrs, **LOOSE[np.float32])
    pads = {'ksize': [1, 3, 3, 1], 'strides': [1, 2, 2, 1], 'padding': 'EXPLICIT',
            'explicit_paddings': [0, 0, 1, 2, 0, 1, 0, 0]}
    check('MaxPool', [x], pads)
    check('MaxPool', [x], dict(pads, explicit_paddings=[0, 0, 3, 0, 0, 0, 0, 0]))
    check('MaxPool', [x[..., :6]], {'ksize': [1, 1, 1, 3], 'strides': [1, 1, 1, 3], 'padding': 'SAME'})
    odd = {'ksize': [1, 2, 2, 1], 'strides': [1, 1, 1, 2], 'padding': 'VALID'}  # no stride over channels without a window
    for op in ('MaxPool', 'AvgPool', 'MaxPoolWithArgmax'):
        check(op, [x[:1, :3, :4, :6]], odd, tf_shape_differs=True, gradient=False)
    check('AvgPoolGrad', [np.int32([1, 3, 4, 6]), normal(rng, (1, 2, 3, 6))], odd, gradient=False)
    ties = np.zeros((1, 4, 4, 5), np.float32)
    attrs = {'ksize': [1, 3, 3, 1], 'strides': [1, 1, 1, 1], 'padding': 'SAME'}
    check('MaxPoolGrad', [ties, ties, normal(rng, ties.shape)], attrs, **LOOSE[np.float32])
    check('MaxPoolWithArgmax', [ties], attrs)
    check('MaxPool', [x[:0]], attrs)
    check('AvgPool', [x[:0]], attrs)


def pool_errors(check, rng):
    x = normal(rng, (2, 5, 6, 3))
    good = {'ksize': [1, 2, 2, 1], 'strides': [1, 1, 1, 1], 'padding': 'VALID'}
    for bad in ({'ksize': [1, 0, 2, 1]}, {'ksize': [2, 1, 1, 1]}, {'ksize': [1, 2, 2, 2]}, {'strides': [1, 0, 1, 1]},
                {'ksize': [1, 8, 1, 1]}, {'ksize': [1, 1, 1, 2], 'strides': [1, 1, 1, 2]},
                {'ksize': [1, 1, 1, 3], 'strides': [1, 1, 1, 1]}, {'ksize': [1, 2, 2, 1, 1]}):
        check('MaxPool', [x], dict(good, **bad))
        check('AvgPool', [x], dict(good, **bad))
    for bad in (x[0], x[0, 0, 0, 0], x[None]):
        check('MaxPoolWithArgmax', [bad], good)
        for op in ('MaxPoolGradWithArgmax', 'MaxPoolGradGradWithArgmax'):
            check(op, [bad, np.zeros((2, 4, 5, 3), np.float32), np.zeros((2, 4, 5, 3), np.int64)], good)
        check('AvgPool', [bad], good)
    check('MaxPool', [x[0]], good)
    top = max_pool(x, (2, 2), (1, 1), 'VALID')
    check('MaxPoolGrad', [x, top[:1], top], good)
    check('MaxPoolGrad', [x, top, top[:1]], good)
    check('MaxPoolGradGrad', [x, top, top], good)
    check('AvgPoolGrad', [np.int32([2, 5, 6]), top], good)
    check('AvgPoolGrad', [np.int32([2, 5, 6, 3]), top[:1]], good, weir_only_fails=True)  # TensorFlow reads past the end


def max_pool(x, k, s, padding):
    n, h, w, c = x.shape
    oh, ow = (conv_sizes(m, kk, ss, 1, padding) for m, kk, ss in zip((h, w), k, s))
    top = [max(0, (o - 1) * ss + kk - m) // 2 if padding == 'SAME' else 0 for o, ss, kk, m in zip((oh, ow), s, k, (h, w))]
    out = np.empty((n, oh, ow, c), x.dtype)
    for i in range(oh):
        for j in range(ow):
            a, b = i * s[0] - top[0], j * s[1] - top[1]
            out[:, i, j] = x[:, max(a, 0):a + k[0], max(b, 0):b + k[1]].max((1, 2))
    return out


def softmaxes(check, rng):
    for dtype in FLOATS:
        loose = LOOSE[dtype]
        for shape in ((4, 10), (7, 1), (3, 1001), (2, 3, 33), (17,), (0, 4), (4, 0), (70, 3)):
            x = normal(rng, shape, dtype) * dtype(5)
            check('Softmax', [x], **loose)
            check('LogSoftmax', [x], **loose)
        for n, c in ((5, 10), (64, 1000), (1, 1), (0, 4), (300, 7)):
            x = normal(rng, (n, c), dtype)
            p = rng.dirichlet(np.ones(c), n).astype(dtype)
            check('SoftmaxCrossEntropyWithLogits', [x, p], **loose)
            for t in (np.int32, np.int64):
                check('SparseSoftmaxCrossEntropyWithLogits', [x, rng.integers(0, c, n).astype(t)], **loose)
    x = normal(rng, (4, 3))
    edge = np.float32([[np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 0, 1], [1e38, -1e38, 0]])
    check('Softmax', [edge])
    check('LogSoftmax', [edge])
    check('Softmax', [np.float32(1)])
    check('SoftmaxCrossEntropyWithLogits', [edge, np.ones((4, 3), np.float32)])
    for shape in ((1, 3), (4, 1), (3,), (1, 1), (4, 4), (5, 3), (2, 4, 3)):
        check('SoftmaxCrossEntropyWithLogits', [x, normal(rng, shape)], **LOOSE[np.float32])
    for labels in ([0, 1, 2, 3], [0, -1, 0, 0], [0, 1, 2], [[0, 1, 2, 0]]):
        check('SparseSoftmaxCrossEntropyWithLogits', [x, np.int32(labels)])
    check('SparseSoftmaxCrossEntropyWithLogits', [x[:, :0], np.int32([0, 0, 0, 0])])
    check('SparseSoftmaxCrossEntropyWithLogits', [x[0], np.int32([0, 0, 0])])


def batch_norms(check, rng):
    for op, dtypes in (('FusedBatchNorm', [np.float32]), ('FusedBatchNormV2', FLOATS[:1] + FLOATS[2:]),
                       ('FusedBatchNormV3', FLOATS[:1] + FLOATS[2:])):
        grad = op.replace('Norm', 'NormGrad')
        for dtype in dtypes:
            loose = dict(LOOSE[dtype])
            for shape, fmt in (((3, 4, 5, 6), 'NHWC'), ((3, 6, 4, 5), 'NCHW'), ((40, 9, 9, 20), 'NHWC')):
                c = shape[3] if fmt == 'NHWC' else shape[1]
                x, dy = normal(rng, shape, dtype), normal(rng, shape, dtype)
                scale, offset, mean = (normal(rng, (c,)) for _ in range(3))
                var = rng.random(c).astype(np.float32) + 0.5
                none = np.zeros(0, np.float32)
                attrs = {'data_format': fmt, 'epsilon': 1e-3}
                check(op, [x, scale, offset, none, none], attrs, **loose)
                check(op, [x, scale, offset, mean, var], dict(attrs, exponential_avg_factor=0.25), **loose)
                # The reserve spaces are not set at inference.
                check(op, [x, scale, offset, mean, var], dict(attrs, is_training=False), shapes_only=True)
                tail = [np.float32(0)] if op.endswith('V3') else []
                # Sums over thousands of rows.
                wide = dict(rtol=loose['rtol'] * 10, atol=loose['atol'] * 10)
                check(grad, [dy, x, scale, mean, var, *tail], attrs, **wide)
                # With constant moments TensorFlow's CPU knows NHWC only.
                check(grad, [dy, x, scale, mean, var, *tail], dict(attrs, is_training=False), tf_only_fails=fmt == 'NCHW',
                      **wide)
    x, scale = normal(rng, (2, 3, 3, 4)), np.ones(4, np.float32)
    check('FusedBatchNormV3', [x[..., None, :], scale, scale, scale, scale], {'data_format': 'NDHWC'}, **LOOSE[np.float32])
    check('FusedBatchNormV3', [x[:1, :1, :1], scale, scale, scale, scale], **LOOSE[np.float32])
    check('FusedBatchNormV3', [x, scale[:3], scale, scale, scale])
    check('FusedBatchNormV3', [x, scale, scale, scale[:3], scale], {'is_training': False})
    check('FusedBatchNormV3', [x[0], scale, scale, scale, scale])
    check('FusedBatchNormGradV3', [x[:1], x, scale, scale, scale, np.float32(0)])
    check('FusedBatchNormGradV3', [x[:0], x[:0], scale, scale, scale, np.float32(0)])


def others(check, rng):
    for dtype in (np.float32, np.float16):
        x = normal(rng, (2, 3, 4, 13), dtype)
        loose = LOOSE[dtype]
        for attrs in ({}, {'depth_radius': 2, 'bias': 2.0, 'alpha': 1e-2, 'beta': 0.75},
                      {'depth_radius': 20, 'beta': 1.0}, {'depth_radius': 0, 'beta': 0.6}):
            check('LRN', [x], attrs, **loose)
            y = normal(rng, x.shape, dtype)
            check('LRNGrad', [normal(rng, x.shape, dtype), x, y], attrs, **loose)
    check('LRN', [normal(rng, (3, 4))])
    check('LRN', [normal(rng, (1, 1, 1, 4))], {'depth_radius': -1})
    check('LRNGrad', [normal(rng, (1, 1, 1, 4)), normal(rng, (1, 1, 1, 5)), normal(rng, (1, 1, 1, 4))])
    p = normal(rng, (6, 9))
    p[1, 2] = np.nan
    p[2, 3] = p[2, 4] = 9
    for dtype in (np.int32, np.int64):
        for k in (0, 1, 3, 9, 20):
            t = np.array([0, 1, 4, -1, 9, 8], dtype)
            check('InTopK', [p, t], {'k': k})
            check('InTopKV2', [p, t, dtype(k)])
    check('InTopKV2', [p, np.int32([1]), np.int32(1)])
    check('InTopKV2', [p[0], np.int32([1]), np.int32(1)])
    check('InTopKV2', [p, np.int32([[1]]), np.int32(1)])
    check('InTopKV2', [p, np.int32([1, 1, 1, 1, 1, 1]), np.int32([1, 1])])


def cases(check, rng):
    for group in (convolutions, convolution_errors, depthwise, biases, activations, pools, pool_errors, softmaxes,
                  batch_norms, others):
        group(check, rng)
