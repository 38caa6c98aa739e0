"""Cases of uniformly quantised tensors: scales and zero points."""
import numpy as np

from cases_quantized import KNOWN, QUANTIZED, any_quantized, quantized

SCALE, ZERO = np.float32(0.37), np.int32(3)


def limits(*prefixes, low=-100, high=110):
    return {p + '_' * bool(p) + f'quantization_{what}_val': v for p in prefixes for what, v in (('min', low), ('max', high))}


def wrong_axes(check, op, before, after, attrs, name='quantization_axis'):
    """Scales and zero points of [2, 3] that do not fit the axis."""
    three, two = np.float32([1, 2, 3]), np.int32([1, 2])
    for scales, zeros, axis in ((three, two, 1), (three, ZERO, 1), (three, np.int32(three), 0), (three, np.int32(three), -1), (SCALE, ZERO, 1),
                                (SCALE, ZERO, 2), (SCALE, ZERO, -2), (three[None], np.int32(three[None]), 1)):
        check(op, [*before, scales, zeros, *after], {**attrs, name: axis})


def quantize(check, rng):
    for name in ('qint8', 'quint8', 'qint32'):
        attrs = {'Tout': QUANTIZED[name], **limits('')}
        for shape in ((), (0,), (40, 50)):
            x = (rng.standard_normal(shape) * 50).astype(np.float32)
            check('UniformQuantize', [x, SCALE, ZERO], attrs)
            check('UniformQuantize', [x, -SCALE, ZERO], {'Tout': QUANTIZED[name], **limits('', low=0, high=9)})
            q = any_quantized(rng, name, shape)
            for zero in (ZERO, np.int32(-2147483648)):
                check('UniformDequantize', [q, SCALE, zero], limits(''))
        check('UniformQuantize', [KNOWN, SCALE, ZERO], attrs)
        check('UniformQuantize', [np.arange(-8, 8).astype(np.float32) / 2, np.float32(1), ZERO], attrs)
        x, q = (rng.standard_normal((3, 4, 5)) * 50).astype(np.float32), any_quantized(rng, name, (3, 4, 5))
        for axis, size in enumerate(x.shape):
            scales, zeros = np.arange(1, size + 1).astype(np.float32) / 7, np.arange(size).astype(np.int32)
            check('UniformQuantize', [x, scales, zeros], {**attrs, 'quantization_axis': axis})
            check('UniformDequantize', [q, scales, zeros], {**limits(''), 'quantization_axis': axis})
        wrong_axes(check, 'UniformQuantize', [x[0, :2, :3]], [], attrs)
        wrong_axes(check, 'UniformDequantize', [q[0, :2, :3]], [], limits(''))
    large, zero = quantized([221627655, -221627655, 2147483647], 'qint32'), np.int32(221627650)  # more than a float can tell
    check('UniformDequantize', [large, np.float32(1), zero], limits(''))
    check('UniformRequantize', [large, np.float32(1), zero, np.float32(1), ZERO], {'Tout': QUANTIZED['qint8'], **limits('input', 'output')})
    check('UniformQuantize', [x, SCALE, ZERO], {'Tout': QUANTIZED['qint8'], **limits('', low=-1 << 40)})
    check('UniformQuantize', [x, SCALE, ZERO], {'Tout': QUANTIZED['qint8'], **limits('', low=5, high=-5)})


def requantize(check, rng):
    attrs = {'Tout': QUANTIZED['qint8'], **limits('input', 'output')}
    for name in ('qint8', 'qint32'):
        for shape in ((), (0,), (40, 50)):
            x = any_quantized(rng, name, shape)
            for factor in (1, 1e-3, 1e-7, 300, 1e12, 1e-12):
                check('UniformRequantize', [x, SCALE * np.float32(factor), ZERO, SCALE, np.int32(-7)], attrs)
        x = any_quantized(rng, name, (3, 4, 5))
        for axis, size in enumerate(x.shape):
            scales, zeros = np.arange(1, size + 1).astype(np.float32) / 7, np.arange(size).astype(np.int32)
            check('UniformRequantize', [x, scales, zeros, SCALE, ZERO], {**attrs, 'input_quantization_axis': axis})
            check('UniformRequantize', [x, SCALE, ZERO, scales, zeros], {**attrs, 'output_quantization_axis': axis})
            check('UniformRequantize', [x, scales, zeros, scales[::-1], zeros],
                  {**attrs, 'input_quantization_axis': axis, 'output_quantization_axis': axis})
        x = x[0, :2, :3]
        wrong_axes(check, 'UniformRequantize', [x], [SCALE, ZERO], attrs, 'input_quantization_axis')
        wrong_axes(check, 'UniformRequantize', [x, SCALE, ZERO], [], attrs, 'output_quantization_axis')
        check('UniformRequantize', [x, SCALE, ZERO, SCALE, ZERO], {**attrs, 'input_quantization_axis': 0, 'output_quantization_axis': 1})
        for a, b in ((SCALE, -SCALE), (-SCALE, SCALE), (SCALE, np.float32(0)), (SCALE, np.float32(np.nan)), (np.float32(np.inf), SCALE)):
            check('UniformRequantize', [x, a, ZERO, b, ZERO], attrs)


def clip(check, rng):
    attrs = limits('')
    for shape in ((), (0,), (40, 50)):
        x = any_quantized(rng, 'qint32', shape)
        for bounds in ((-1000000000, 1000000000), (5, -5)):
            low, high = quantized(bounds, 'qint32')
            check('UniformQuantizedClipByValue', [x, np.array(low), np.array(high), SCALE, ZERO], attrs)
    x = any_quantized(rng, 'qint32', (2, 3))
    low, high, scales, zeros = quantized([-9, 0, 9], 'qint32'), quantized([0, 1 << 30, 10], 'qint32'), np.float32([1, 2, 3]), np.int32([1, 2, 3])
    check('UniformQuantizedClipByValue', [x, low, high, scales, zeros], {**attrs, 'quantization_axis': 1})
    check('UniformQuantizedClipByValue', [x, low[:2], high, scales, zeros], {**attrs, 'quantization_axis': 1})
    check('UniformQuantizedClipByValue', [x, low, high[0], scales, zeros], {**attrs, 'quantization_axis': 1})
    wrong_axes(check, 'UniformQuantizedClipByValue', [x, low, high], [], attrs)


def add(check, rng):
    attrs = limits('lhs', 'rhs', 'output', low=-100000, high=100000)
    one = [SCALE, ZERO]
    for a, b in (((), ()), ((40, 50), (40, 50)), ((40, 50), (50,)), ((), (4, 5)), ((4, 1, 5), (3, 1)), ((0, 2), (2,)), ((2, 3), (2,))):
        x, y = (quantized(rng.integers(-9999, 9999, s), 'qint32') for s in (a, b))
        check('UniformQuantizedAdd', [x, y, *one, SCALE * 3, np.int32(-7), SCALE / 2, np.int32(11)], attrs)
        check('UniformQuantizedAdd', [any_quantized(rng, 'qint32', a), y, *one, *one, *one], {**attrs, **limits('output', low=-1 << 31, high=(1 << 31) - 1)})
    x, y, row = (quantized(rng.integers(-9999, 9999, s), 'qint32') for s in ((2, 3), (2, 3), (3,)))
    vector, two = [np.float32([1, 2, 4]), np.int32([1, 2, 3])], [np.float32([1, 2]), np.int32([1, 2])]
    check('UniformQuantizedAdd', [x, y, *vector, *one, *one], {**attrs, 'lhs_quantization_axis': 1})
    check('UniformQuantizedAdd', [x, row, *one, *vector, *one], {**attrs, 'rhs_quantization_axis': 0})
    check('UniformQuantizedAdd', [x, row, *vector, *vector, *vector],
          {**attrs, 'lhs_quantization_axis': 1, 'rhs_quantization_axis': 0, 'output_quantization_axis': 1})
    check('UniformQuantizedAdd', [x, y, *vector, *one, *vector], {**attrs, 'lhs_quantization_axis': 1, 'output_quantization_axis': 1})
    check('UniformQuantizedAdd', [x, y, *two, *one, *vector], {**attrs, 'lhs_quantization_axis': 0, 'output_quantization_axis': 1})
    check('UniformQuantizedAdd', [x, row, *one, *vector, *two], {**attrs, 'rhs_quantization_axis': 0, 'output_quantization_axis': 0})
    for i in (2, 4, 6):
        bad = [x, y, *one, *one, *one]
        bad[i] = np.float32(0)
        check('UniformQuantizedAdd', bad, attrs)
    wrong_axes(check, 'UniformQuantizedAdd', [x, y], [*one, *one], attrs, 'lhs_quantization_axis')
    wrong_axes(check, 'UniformQuantizedAdd', [x, y, *one, *one], [], attrs, 'output_quantization_axis')


def near_ties(rng, rows, columns):
    """Rows whose elements are half-way between two quantized values, or a float or two beside that."""
    x = (rng.standard_normal((rows, columns)) * rng.uniform(0.1, 100, (rows, 1))).astype(np.float32)
    low, high = np.minimum(x.min(1, keepdims=True), 0), np.maximum(x.max(1, keepdims=True), 0)
    ties = ((rng.integers(-60, 60, x.shape) + 0.5) * ((high.astype(np.float64) - low) / 255)).astype(np.float32)
    for _ in range(2):
        ties = np.nextafter(ties, ties + rng.integers(-1, 2, x.shape).astype(np.float32))
    return np.where((x > low) & (x < high) & (ties > low) & (ties < high), ties, x)


def dot(check, rng):
    attrs = {'Tout': QUANTIZED['qint32'], **limits('lhs', 'rhs', 'output', low=-100000, high=100000)}
    one, hybrid = [SCALE, ZERO], {'Tout': np.float32, **limits('rhs')}
    for m, k, n in ((2, 3, 4), (30, 70, 20), (0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 1, 1)):
        a, b = any_quantized(rng, 'qint8', (m, k)), any_quantized(rng, 'qint8', (k, n))
        vector = [np.arange(1, n + 1).astype(np.float32) / 9, np.arange(n).astype(np.int32) - 2]
        check('UniformQuantizedDot', [a, b, *one, SCALE, np.int32(-5), SCALE * 4, np.int32(9)], attrs)
        check('UniformQuantizedDot', [a, b, *one, *vector, *one], {**attrs, 'rhs_quantization_axis': 1})
        check('UniformQuantizedDot', [a, b, *one, *vector, vector[0][::-1], vector[1]],
              {**attrs, 'rhs_quantization_axis': 1, 'output_quantization_axis': 1})
        if k:
            x = rng.standard_normal((m, k)).astype(np.float32)
            for shift in (0, 5, -5):
                check('UniformQuantizedDotHybrid', [x + np.float32(shift), b, *one], hybrid)
            check('UniformQuantizedDotHybrid', [x * 0, b, *vector], {**hybrid, 'rhs_quantization_axis': 1})
            check('UniformQuantizedDotHybrid', [x, b, *vector], {**hybrid, 'rhs_quantization_axis': 1})
    check('UniformQuantizedDotHybrid', [near_ties(rng, 200, 40), any_quantized(rng, 'qint8', (40, 3)), *one], hybrid)
    a, b, x = any_quantized(rng, 'qint8', (2, 3)), any_quantized(rng, 'qint8', (3, 4)), rng.standard_normal((2, 3)).astype(np.float32)
    vector, bad = [np.float32([1, 2, 3, 4]), np.int32([1, 2, 3, 4])], [np.float32([1, 2, 3]), np.int32([1, 2, 3])]
    for p, q in ((a, a), (a[0], b), (a, b[0])):
        check('UniformQuantizedDot', [p, q, *one, *one, *one], attrs)
        check('UniformQuantizedDotHybrid', [x if p is a else x[0], q, *one], hybrid)
    for scales in ((vector, one, one), (one, one, vector), (one, bad, one), (one, vector, bad), (one, [SCALE, bad[1]], one), ([-SCALE, ZERO], one, one),
                   (one, [-SCALE, ZERO], one), (one, one, [np.float32(0), ZERO]), ([np.float32(1e30), ZERO], [np.float32(1e30), ZERO], one)):
        check('UniformQuantizedDot', [a, b, *[y for s in scales for y in s]], attrs)
    for scales in (bad, [SCALE, bad[1]], [-SCALE, ZERO]):
        check('UniformQuantizedDotHybrid', [x, b, *scales], hybrid)
    for name, axis in (('lhs', 0), ('rhs', 0), ('output', 0)):
        check('UniformQuantizedDot', [a, b, *one, *one, *one], {**attrs, name + '_quantization_axis': axis})
    check('UniformQuantizedDotHybrid', [x, b, *one], {**hybrid, 'rhs_quantization_axis': 0})


def dimensions(lhs, rhs, out):
    """A UniformQuantizedConvolutionDimensionNumbersAttr: of lhs and out batch, feature and axes, of rhs input feature, output feature and axes."""
    data = b''
    for i, (first, second, axes) in enumerate((lhs, rhs, out)):
        data += bytes([(3 * i + 1) << 3, first, (3 * i + 2) << 3, second, (3 * i + 3) << 3 | 2, len(axes), *axes])
    return data


def convolution(check, rng):
    attrs, one = {'Tout': QUANTIZED['qint32'], 'padding': 'VALID', **limits('lhs', 'rhs', 'output', low=-100000, high=100000)}, [SCALE, ZERO]
    hybrid = {'Tout': np.float32, 'padding': 'VALID', **limits('rhs')}
    last = {'dimension_numbers': dimensions((0, 3, [1, 2]), (2, 3, [0, 1]), (0, 3, [1, 2]))}
    mixed = {'dimension_numbers': dimensions((1, 0, [3, 2]), (1, 2, [0, 3]), (2, 1, [0, 3]))}
    for x, f, more in (((2, 3, 5, 6), (4, 3, 2, 3), {}), ((2, 5, 6, 3), (2, 3, 3, 4), last), ((3, 2, 6, 5), (2, 3, 4, 3), mixed), ((2, 4, 7), (6, 2, 3), {'feature_group_count': 2}),
                       ((4, 3, 7), (6, 3, 3), {'batch_group_count': 2}), ((1, 2, 4, 3, 5), (3, 2, 2, 2, 2), {})):
        a, b = any_quantized(rng, 'qint8', x), any_quantized(rng, 'qint8', f)
        axes = len(x) - 2
        for window in ({}, {'padding': 'SAME'}, {'padding': 'SAME', 'window_strides': [2] * axes, 'rhs_dilation': [2] * axes},
                       {'padding': 'EXPLICIT', 'explicit_padding': [1, 2] * axes, 'lhs_dilation': [2] * axes, 'window_strides': [3] * axes}):
            check('UniformQuantizedConvolution', [a, b, *one, SCALE, np.int32(-5), SCALE * 9, np.int32(7)], {**attrs, **more, **window})
            y = rng.standard_normal(x).astype(np.float32)
            check('UniformQuantizedConvolutionHybrid', [y, b, *one], {**hybrid, **more, **window})
    a, b, y = any_quantized(rng, 'qint8', (2, 3, 5, 6)), any_quantized(rng, 'qint8', (4, 3, 2, 3)), rng.standard_normal((2, 3, 5, 6)).astype(np.float32)
    vector = [np.float32([1, 2, 3, 4]), np.int32([1, 2, 3, 4])]
    check('UniformQuantizedConvolution', [a, b, *one, *vector, *one], {**attrs, 'rhs_quantization_axis': 0})
    check('UniformQuantizedConvolution', [a, b, *one, *vector, *vector], {**attrs, 'rhs_quantization_axis': 0, 'output_quantization_axis': 1})
    check('UniformQuantizedConvolutionHybrid', [y, b, *vector], {**hybrid, 'rhs_quantization_axis': 0})
    for bad in ({'padding': 'X'}, {'explicit_padding': [1]}, {'padding': 'EXPLICIT', 'explicit_padding': [1]}, {'padding': 'EXPLICIT', 'explicit_padding': [-1, 0, 0, 0]},
                {'window_strides': [1]}, {'window_strides': [0, 1]}, {'lhs_dilation': [0, 1]}, {'rhs_dilation': [0, 1]}, {'feature_group_count': 0},
                {'feature_group_count': 2}, {'batch_group_count': 0}, {'batch_group_count': 3}, {'dimension_numbers': b'\xff'}, {'rhs_quantization_axis': 1},
                {'dimension_numbers': dimensions((0, 4, [1, 2]), (2, 3, [0, 1]), (0, 3, [1, 2]))}, {'dimension_numbers': dimensions((0, 3, [1]), (2, 3, [0]), (0, 3, [1]))}):
        check('UniformQuantizedConvolution', [a, b, *one, *one, *one], {**attrs, **bad})
        check('UniformQuantizedConvolutionHybrid', [y, b, *one], {**hybrid, **bad})
    for p, q in ((a, b[0]), (a[0, 0], b[0, 0])):
        check('UniformQuantizedConvolution', [p, q, *one, *one, *one], attrs)
    # Not: a filter of one scale and an output of many, which ends TensorFlow's process.
    for scales in ((vector, one, one), ([-SCALE, ZERO], one, one), (one, [-SCALE, ZERO], one), (one, one, [-SCALE, ZERO])):
        check('UniformQuantizedConvolution', [a, b, *[v for s in scales for v in s]], attrs)


def cases(check, rng):
    convolution(check, rng)
    add(check, rng)
    dot(check, rng)
    quantize(check, rng)
    requantize(check, rng)
    clip(check, rng)
