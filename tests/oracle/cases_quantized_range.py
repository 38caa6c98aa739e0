"""Cases of quantised elements in other ranges and types, and within bounds."""
import numpy as np

from cases_quantized import QUANTIZED, any_quantized, quantized
from values import DIVIDES_BY_ZERO, SATURATES

# Bounds that make elements NaN; elsewhere TensorFlow may divide by what becomes of them, which ends its process.
UNKNOWN = ((np.nan, 1),) if SATURATES else ()


def requantize(check, rng):
    for shape in ((), (0,), (30, 40)):
        x = any_quantized(rng, 'qint32', shape)
        for low, high in ((-1, 1), (-300, 500), (1, 2), (1, -1), (0, 0)) + UNKNOWN:
            bounds = np.float32([low, high])
            check('RequantizationRange', [x, *bounds])
            check('QuantizeDownAndShrinkRange', [x, *bounds], {'out_type': QUANTIZED['quint8']})
            for name in ('quint8', 'qint8'):
                for wanted in ((-1, 1), (-200, 3), (0, 1), (0, 0)):
                    check('Requantize', [x, *bounds, *np.float32(wanted)], {'out_type': QUANTIZED[name]})
    some = quantized(np.int32([[-100, 0, 5000000], [1 << 20, -12345, 77]]), 'qint32')
    zero, one, two = np.float32(0), np.float32(1), np.float32([1, 2])
    check('RequantizationRange', [some, -one * 50, one * 70])
    check('QuantizeDownAndShrinkRange', [some, -one * 50, one * 70], {'out_type': QUANTIZED['quint8']})
    for bad in ((two, one), (one, two)):
        check('RequantizationRange', [some, *bad])
        check('QuantizeDownAndShrinkRange', [some, *bad], {'out_type': QUANTIZED['quint8']})
        check('Requantize', [some, *bad, zero, one], {'out_type': QUANTIZED['quint8']})
        check('Requantize', [some, zero, one, *bad], {'out_type': QUANTIZED['quint8']})
    check('RequantizationRange', [some, two[:0], one])
    check('RequantizationRange', [some, one, two[:0]])
    for wanted in ((1, 2), (-1, -2), (-1, np.nan)) + UNKNOWN:
        check('Requantize', [some, -one, one, *np.float32(wanted)], {'out_type': QUANTIZED['qint8']})


def requantize_per_channel(check, rng):
    x = any_quantized(rng, 'qint32', (2, 3, 4, 5))
    low, high = -np.arange(1, 6).astype(np.float32), np.arange(2, 7).astype(np.float32)
    for clip in (1e30, 2.0, -2.0):
        check('RequantizationRangePerChannel', [x, low, high], {'clip_value_max': clip})
    for more in (quantized(np.zeros((1, 1, 2, 5)), 'qint32'), quantized(np.full((1, 1, 2, 5), -1 << 31), 'qint32'), x[..., :4], x[:0], x[0]):
        check('RequantizationRangePerChannel', [more, low, high], {'clip_value_max': 6.0})
    check('RequantizationRangePerChannel', [x, low[:2], high], {'clip_value_max': 6.0})
    check('RequantizationRangePerChannel', [x, low, high[:2]], {'clip_value_max': 6.0})
    for name in ('quint8', 'qint8'):
        out = {'out_type': QUANTIZED[name]}
        for wanted in ((-3, 4), (-.5, .25), (0, 1), (2, 1)):
            check('RequantizePerChannel', [x, low, high, *np.float32(wanted)], out)
        wanted = np.float32([-1, 1])
        if DIVIDES_BY_ZERO:
            check('RequantizePerChannel', [x[:0], low, high, *wanted], out)
        check('RequantizePerChannel', [x[0], low, high, *wanted], out)
        check('RequantizePerChannel', [x, low[:2], high, *wanted], out)
        check('RequantizePerChannel', [x, low, high[:2], *wanted], out)
        check('RequantizePerChannel', [x, low, high, wanted, wanted[1]], out)


def relu(check, rng):
    for name in ('quint8', 'qint32'):
        out = {'out_type': QUANTIZED[name]}
        for op in ('QuantizedRelu', 'QuantizedRelu6'):
            for shape in ((), (0,), (30, 40)):
                x = any_quantized(rng, name, shape)
                for bounds in ((-1, 1), (-20, 30), (0, 5), (2, 3), (7, 9), (-3, -1), (0, 0), (1, -1)) + UNKNOWN:
                    check(op, [x, *np.float32(bounds)], out)
            check(op, [x, np.float32([1, 2]), np.float32(1)], out)
            check(op, [x, np.float32(1), np.float32([1, 2])], out)


def cases(check, rng):
    requantize(check, rng)
    requantize_per_channel(check, rng)
    relu(check, rng)
