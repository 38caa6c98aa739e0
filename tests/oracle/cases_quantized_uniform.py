"""Cases of uniformly quantised tensors: scales and zero points."""
import numpy as np

from cases_quantized import QUANTIZED, SPECIAL, any_quantized, quantized

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
        check('UniformQuantize', [SPECIAL, SCALE, ZERO], attrs)
        check('UniformQuantize', [np.arange(-8, 8).astype(np.float32) / 2, np.float32(1), ZERO], attrs)
        x, q = (rng.standard_normal((3, 4, 5)) * 50).astype(np.float32), any_quantized(rng, name, (3, 4, 5))
        for axis, size in enumerate(x.shape):
            scales, zeros = np.arange(1, size + 1).astype(np.float32) / 7, np.arange(size).astype(np.int32)
            check('UniformQuantize', [x, scales, zeros], {**attrs, 'quantization_axis': axis})
            check('UniformDequantize', [q, scales, zeros], {**limits(''), 'quantization_axis': axis})
        wrong_axes(check, 'UniformQuantize', [x[0, :2, :3]], [], attrs)
        wrong_axes(check, 'UniformDequantize', [q[0, :2, :3]], [], limits(''))
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


def cases(check, rng):
    quantize(check, rng)
    requantize(check, rng)
    clip(check, rng)
