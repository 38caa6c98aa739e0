"""Cases of products, convolutions, poolings and normalisations of quantised tensors."""
import numpy as np

from cases_quantized import QUANTIZED, any_quantized

LOW, HIGH, TWO = np.float32(-1.5), np.float32(2), np.float32([1, 2])
RANGES = ((LOW, HIGH, LOW, HIGH), (LOW * 300, HIGH, LOW, HIGH * 2), (HIGH, HIGH * 2, LOW, LOW / 3))


def with_vectors(bounds):
    """Lists of bounds, one of which is a vector."""
    return [[*bounds[:i], TWO, *bounds[i + 1:]] for i in range(len(bounds))]


def matmul(check, rng):
    out = {'Toutput': QUANTIZED['qint32']}
    for m, k, n in ((3, 4, 5), (1, 1, 1), (33, 70, 17), (0, 2, 3), (2, 3, 0)):
        a, b = any_quantized(rng, 'quint8', (m, k)), any_quantized(rng, 'quint8', (k, n))
        for bounds in RANGES:
            check('QuantizedMatMul', [a, b, *bounds], out)
        check('QuantizedMatMul', [a.T, b, *bounds], {**out, 'transpose_a': True})
        check('QuantizedMatMul', [a, b.T, *bounds], {**out, 'transpose_b': True})
        check('QuantizedMatMul', [a.T, b.T, *bounds], {**out, 'transpose_a': True, 'transpose_b': True})
    a = any_quantized(rng, 'quint8', (2, 3))
    for bad in ((a, a), (a[0], a.T), (a, a[0])):
        check('QuantizedMatMul', [*bad, *RANGES[0]], out)
    for bounds in (*with_vectors(RANGES[0]), (HIGH, LOW, LOW, HIGH), (LOW, HIGH, HIGH, HIGH)):
        check('QuantizedMatMul', [a, a.T, *bounds], out)


def conv(check, rng):
    attrs = {'out_type': QUANTIZED['qint32'], 'strides': [1, 1, 1, 1], 'padding': 'SAME'}
    for image, kernel, stride in (((2, 5, 6, 3), (3, 2, 3, 4), 1), ((1, 7, 7, 2), (3, 3, 2, 2), 2), ((1, 9, 9, 1), (1, 1, 1, 2), 3),
                                  ((1, 11, 12, 1), (2, 3, 1, 1), 5), ((2, 2, 2, 3), (1, 1, 3, 2), 1), ((1, 4, 4, 1), (4, 4, 1, 3), 1)):
        x, f = any_quantized(rng, 'quint8', image), any_quantized(rng, 'quint8', kernel)
        for padding in ('SAME', 'VALID'):
            for bounds in RANGES:
                check('QuantizedConv2D', [x, f, *bounds], {**attrs, 'strides': [1, stride, stride, 1], 'padding': padding})
    for bounds in (*with_vectors(RANGES[0]), (HIGH, LOW, LOW, HIGH), (HIGH, HIGH, LOW, HIGH)):
        check('QuantizedConv2D', [x, f, *bounds], attrs)
    for bad in ({'strides': [1, 2, 1, 1]}, {'strides': [2, 1, 1, 1]}, {'strides': [1, 1, 1]}, {'strides': [1, 0, 0, 1]}, {'dilations': [1, 2, 2, 1]},
                {'dilations': [1, 1, 1]}, {'dilations': [2, 1, 1, 1]}):
        check('QuantizedConv2D', [x, f, *RANGES[0]], {**attrs, **bad})
    for a, b in ((x[0], f), (x, f[0]), (x[:0], f), (x, any_quantized(rng, 'quint8', (2, 2, 2, 1)))):
        check('QuantizedConv2D', [a, b, *RANGES[0]], attrs)


def pool(check, rng):
    attrs = {'ksize': [1, 2, 3, 1], 'strides': [1, 1, 1, 1], 'padding': 'SAME'}
    for op in ('QuantizedMaxPool', 'QuantizedAvgPool'):
        for name in ('quint8', 'qint8'):
            x = any_quantized(rng, name, (2, 5, 6, 4))
            for padding in ('SAME', 'VALID'):
                check(op, [x, LOW, HIGH], {**attrs, 'padding': padding})
                check(op, [x, LOW, HIGH], {**attrs, 'strides': [1, 2, 3, 1], 'padding': padding})
                check(op, [x, LOW, HIGH], {**attrs, 'ksize': [1, 4, 4, 1], 'padding': padding})
                check(op, [x[:0], LOW, HIGH], {**attrs, 'padding': padding})
        for bad in ({'ksize': [1, 2, 2]}, {'strides': [1, 2, 2]}, {'ksize': [2, 1, 1, 1]}, {'strides': [2, 1, 1, 1]}, {'ksize': [1, 1, 1, 2]},
                    {'ksize': [1, 1, 1, 2], 'strides': [1, 1, 1, 2]}, {'ksize': [1, 1, 1, 3], 'strides': [1, 1, 1, 3]},
                    {'ksize': [1, 2, 1, 2], 'strides': [1, 1, 1, 2]}, {'strides': [1, 0, 1, 1]}):
            check(op, [x, LOW, HIGH], {**attrs, **bad})
        check(op, [x[0], LOW, HIGH], attrs)
        check(op, [x, TWO, HIGH], attrs)
        check(op, [x, LOW, TWO], attrs)


def batch_norm(check, rng):
    attrs = {'out_type': QUANTIZED['qint32'], 'variance_epsilon': 0.1, 'scale_after_normalization': True}
    x = any_quantized(rng, 'quint8', (2, 3, 4, 5))
    vectors = [any_quantized(rng, 'quint8', (5,)) for _ in range(4)]

    def with_bounds(tensors, bounds=(LOW, HIGH), variance=(np.float32(0), HIGH), mean=(LOW, LOW)):
        return [y for i, t in enumerate(tensors) for y in (t, *(mean if i == 1 else variance if i == 2 else bounds))]
    op = 'QuantizedBatchNormWithGlobalNormalization'
    # Means are all 0, or factors 1/2: where products are not exact, TensorFlow's sums with them are fused on ARM.
    for bounds in ((LOW, HIGH), (LOW * 300, HIGH)):
        for variance in ((np.float32(0), HIGH), (LOW * 9, LOW * 3)):
            for scaled in (True, False):
                check(op, with_bounds([x, *vectors], bounds, variance, (np.float32(0), np.float32(0))), {**attrs, 'scale_after_normalization': scaled})
    four = (np.float32(4), np.float32(4))
    check(op, with_bounds([x, *vectors], variance=four, mean=(LOW, HIGH)), {**attrs, 'variance_epsilon': 0.0, 'scale_after_normalization': False})
    check(op, with_bounds([x[:0], *vectors]), attrs)
    check(op, with_bounds([x[0], *vectors]), attrs)
    check(op, with_bounds([x[..., :0], *[t[:0] for t in vectors]]), attrs)
    for i in range(4):
        check(op, with_bounds([x, *vectors[:i], vectors[i][:2], *vectors[i + 1:]]), attrs)
        check(op, with_bounds([x, *vectors[:i], vectors[i][None], *vectors[i + 1:]]), attrs)
        bad = with_bounds([x, *vectors])
        bad[3 * i + 1 + i % 2] = TWO
        check(op, bad, attrs)


def instance_norm(check, rng):
    # One image of sixteen channels has a kernel of its own on ARM, which rounds otherwise.
    for shape in ((2, 3, 4, 5), (1, 8, 9, 3), (3, 1, 1, 2), (2, 5, 5, 16)):
        x = any_quantized(rng, 'quint8', shape)
        for bounds in ((LOW, HIGH), (HIGH, HIGH * 90)):
            check('QuantizedInstanceNorm', [x, *bounds])
            check('QuantizedInstanceNorm', [x, *bounds], {'output_range_given': True, 'given_y_min': -1.0, 'given_y_max': 0.75})
        check('QuantizedInstanceNorm', [x, *bounds], {'min_separation': 30.0, 'variance_epsilon': 0.5})
    for given in (False, True):
        check('QuantizedInstanceNorm', [x[:, :0], LOW, HIGH], {'output_range_given': given, 'given_y_min': -1.0, 'given_y_max': 0.75})
    check('QuantizedInstanceNorm', [x, HIGH, LOW])
    check('QuantizedInstanceNorm', [x, TWO, HIGH])
    check('QuantizedInstanceNorm', [x, LOW, TWO])
    check('QuantizedInstanceNorm', [x, LOW, HIGH], {'output_range_given': True})


def resize(check, rng):
    # Of qint32 with one or three channels ARM's kernels round otherwise.
    images = [any_quantized(rng, 'quint8', (2, 5, 6, 3)), any_quantized(rng, 'quint8', (1, 4, 4, 1)), any_quantized(rng, 'qint32', (2, 5, 6, 2)),
              rng.standard_normal((2, 5, 6, 3)).astype(np.float32)]
    for x in images:
        for size in ((7, 9), (3, 2), (5, 6), (1, 1), (12, 30)):
            for attrs in ({}, {'align_corners': True}):
                check('QuantizedResizeBilinear', [x, np.int32(size), LOW, HIGH], attrs, atol=1e-6)
        # A scale whose products are exact: TensorFlow fuses the multiplication with what follows on ARM.
        check('QuantizedResizeBilinear', [x, np.int32([10, 12]), LOW, HIGH], {'half_pixel_centers': True}, atol=1e-6)
    for size in ((0, 3), (3, -1), (3,), ((3, 3),)):
        check('QuantizedResizeBilinear', [x, np.int32(size), LOW, HIGH])
    for bad in (x[0], x[:, :0], x[..., :0]):
        check('QuantizedResizeBilinear', [bad, np.int32([3, 3]), LOW, HIGH])
    check('QuantizedResizeBilinear', [x, np.int32([3, 3]), TWO, HIGH])
    check('QuantizedResizeBilinear', [x, np.int32([3, 3]), LOW, TWO])


def without_kernels(check, rng):
    """In TensorFlow these have kernels by oneDNN's rewriting of graphs alone, else ones that do nothing: what is compared is the
    definition, and that wrong shapes are refused."""
    def refused(op, inputs, attrs):
        check(op, inputs, attrs, tf_only_fails=True)
        check(op, [*inputs[:3], LOW.reshape(1, 1), *inputs[4:]], attrs, tf_only_fails=True)
    x, f = any_quantized(rng, 'quint8', (1, 5, 5, 2)), any_quantized(rng, 'qint8', (2, 2, 2, 3))
    bias, frozen, window = np.float32([1, 2, 3]), [LOW, HIGH], {'strides': [1, 2, 2, 1], 'padding': 'SAME'}
    bounds = [LOW, HIGH, LOW, HIGH]
    for op in ('QuantizedConv2DAndRelu', 'QuantizedConv2DPerChannel', 'QuantizedDepthwiseConv2D'):
        refused(op, [x, f, *bounds], window)
    for op in ('QuantizedConv2DAndReluAndRequantize', 'QuantizedConv2DAndRequantize'):
        refused(op, [x, f, *bounds, *frozen], window)
    for op in ('QuantizedConv2DWithBias', 'QuantizedConv2DWithBiasAndRelu', 'QuantizedDepthwiseConv2DWithBias',
               'QuantizedDepthwiseConv2DWithBiasAndRelu'):
        refused(op, [x, f, bias, *bounds], window)
    for op in ('QuantizedConv2DWithBiasAndReluAndRequantize', 'QuantizedConv2DWithBiasAndRequantize',
               'QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize'):
        refused(op, [x, f, bias, *bounds, *frozen], window)
    refused('QuantizedConv2DWithBiasSumAndRelu', [x, f, bias, *bounds, bias], window)
    for op, name in (('QuantizedConv2DWithBiasSumAndReluAndRequantize', 'quint8'), ('QuantizedConv2DWithBiasSignedSumAndReluAndRequantize', 'qint8')):
        refused(op, [x, f, bias, *bounds, *frozen, any_quantized(rng, name, (1, 3, 3, 3)), *frozen], window)
    a, b = x[0, 0], f[0, 0]
    refused('QuantizedMatMulWithBias', [a, b, bias, *bounds], {})
    refused('QuantizedMatMulWithBiasAndRelu', [a, b, bias, *bounds], {})
    for op in ('QuantizedMatMulWithBiasAndReluAndRequantize', 'QuantizedMatMulWithBiasAndRequantize'):
        refused(op, [a, b, bias, *bounds, *frozen], {})
    refused('QuantizedMatMulWithBiasAndDequantize', [a, b, bias, *bounds, *frozen], {'Toutput': np.float32})
    check('QuantizedConcatV2', [a, a, np.int32(0), *bounds], {'N': 2}, tf_only_fails=True)


def cases(check, rng):
    without_kernels(check, rng)
    matmul(check, rng)
    conv(check, rng)
    pool(check, rng)
    batch_norm(check, rng)
    instance_norm(check, rng)
    resize(check, rng)
