"""Cases of floats that are rounded to the steps of quantised ranges."""
import numpy as np

from values import SATURATES

QUANTIZED = {name: np.dtype([(name, name[1:])]) for name in ('qint8', 'quint8', 'qint16', 'quint16', 'qint32')}
SPECIAL = np.float32([-10, -6.02, -1, -.01, -0.0, 0, .3, 5.9, 7, np.nan, np.inf, -np.inf])
KNOWN = SPECIAL if SATURATES else SPECIAL[~np.isnan(SPECIAL)]


def fake_quant(check, rng):
    for shape in ((), (0,), (7,), (3, 0), (30, 40)):
        x = (rng.standard_normal(shape) * 5).astype(np.float32)
        dy = rng.standard_normal(shape).astype(np.float32)
        for bits, narrow in ((8, False), (2, True), (16, False)):
            bounds = np.sort(rng.standard_normal(2) * 3).astype(np.float32)
            attrs = {'num_bits': bits, 'narrow_range': narrow}
            args = {**attrs, 'min': float(bounds[0]), 'max': float(bounds[1])}
            check('FakeQuantWithMinMaxArgs', [x], args)
            check('FakeQuantWithMinMaxArgsGradient', [dy, x], args)
            check('FakeQuantWithMinMaxVars', [x, *bounds], attrs)
            check('FakeQuantWithMinMaxVarsGradient', [dy, x, *bounds], attrs, atol=1e-5)
    for bounds in ((-6, 6), (1, 3), (-3, -1), (0, 0), (3, 1), (2, 2), (np.nan, 2), (-np.inf, 1)):
        bounds = np.float32(bounds)
        check('FakeQuantWithMinMaxVars', [SPECIAL, *bounds])
        check('FakeQuantWithMinMaxVarsGradient', [np.ones_like(SPECIAL), SPECIAL, *bounds])
    x = SPECIAL[:3]
    for attrs in ({}, {'min': 3.0, 'max': 1.0}, {'min': 0.0, 'max': 0.0}, {'num_bits': 1}, {'num_bits': 17}):
        check('FakeQuantWithMinMaxArgs', [SPECIAL], attrs)
        check('FakeQuantWithMinMaxArgsGradient', [SPECIAL[::-1], SPECIAL], attrs)
    check('FakeQuantWithMinMaxArgsGradient', [x, x[:2]])
    check('FakeQuantWithMinMaxVars', [x, x[0], x[1]], {'num_bits': 1})
    check('FakeQuantWithMinMaxVars', [x, x[:1], x[1]])
    check('FakeQuantWithMinMaxVars', [x, x[0], x[:1]])
    check('FakeQuantWithMinMaxVarsGradient', [x, x, x[0], x[1]], {'num_bits': 17})
    check('FakeQuantWithMinMaxVarsGradient', [x, x[:2], x[0], x[1]])
    check('FakeQuantWithMinMaxVarsGradient', [x, x, x[:1], x[1]])
    check('FakeQuantWithMinMaxVarsGradient', [x, x, x[0], x[:1]])


def fake_quant_per_channel(check, rng):
    for shape in ((3,), (0,), (5, 3), (0, 3), (2, 0), (4, 5, 6), (2, 3, 4, 5), (1,), (3, 1)):
        x = (rng.standard_normal(shape) * 3).astype(np.float32)
        dy = rng.standard_normal(shape).astype(np.float32)
        low = -np.abs(rng.standard_normal(shape[-1])).astype(np.float32)
        high = low + 4
        low[:1] = high[:1] = 0
        for attrs in ({}, {'num_bits': 4, 'narrow_range': True}):
            check('FakeQuantWithMinMaxVarsPerChannel', [x, low, high], attrs)
            check('FakeQuantWithMinMaxVarsPerChannelGradient', [dy, x, low, high], attrs, atol=1e-5)
    x, low, high = np.float32([[1, 2, 3]]), np.float32([-1, 0, 2]), np.float32([1, 0, 3])
    check('FakeQuantWithMinMaxVarsPerChannel', [x, low, high], {'num_bits': 1})
    for bad in ((x, low[:2], high), (x, low, high[:2]), (x, low[0], high), (x, low, x)):
        check('FakeQuantWithMinMaxVarsPerChannel', bad)
        check('FakeQuantWithMinMaxVarsPerChannelGradient', [x, *bad])
    check('FakeQuantWithMinMaxVarsPerChannelGradient', [x, x[0], low, high])
    check('FakeQuantWithMinMaxVarsPerChannelGradient', [x, x, low, high], {'num_bits': 17})


def round_trip(check, rng):
    def step(*args, **options):  # gradients are straight, whatever the steps
        check(*args, numeric=False, **options)
    for t in (np.float32, np.float64):
        zero = t(0)
        for shape in ((), (0,), (50,), (3, 4, 5)):
            x = (rng.standard_normal(shape) * 5).astype(t)
            for signed in (True, False):
                for bits, narrow in ((8, False), (4, True), (1, False), (20, True)):
                    attrs = {'signed_input': signed, 'num_bits': bits, 'range_given': narrow}
                    step('QuantizeAndDequantize', [x], {**attrs, 'input_min': -2.5, 'input_max': 3.0})
                    attrs['narrow_range'] = narrow and signed
                    for mode in ('HALF_TO_EVEN', 'HALF_UP'):
                        step('QuantizeAndDequantizeV2', [x, t(-2.5), t(3)], {**attrs, 'round_mode': mode})
                    step('QuantizeAndDequantizeV4', [x, t(-2), t(1)], attrs, second=False)
                    del attrs['num_bits']
                    step('QuantizeAndDequantizeV3', [x, t(-2), t(1), np.int32(bits)], attrs)
            step('QuantizeAndDequantizeV4Grad', [x[..., None], x[..., None], t(-1), t(2)], second=False, gradient=False)
        x = (rng.standard_normal((3, 4, 5)) * 5).astype(t)
        for axis, size in enumerate(x.shape):
            low, high = -np.arange(1, size + 1).astype(t), np.arange(2, size + 2).astype(t)
            step('QuantizeAndDequantizeV2', [x, low, high], {'axis': axis})
            step('QuantizeAndDequantizeV2', [x, low, high], {'axis': axis, 'range_given': True})  # scalars only
            step('QuantizeAndDequantizeV3', [x, low, high, np.int32(4)], {'axis': axis})
            step('QuantizeAndDequantizeV3', [x, low, high, np.int32(4)], {'axis': axis, 'range_given': False})
            step('QuantizeAndDequantizeV4', [x, low, high], {'axis': axis}, second=False)
            step('QuantizeAndDequantizeV4Grad', [x, x, low, high], {'axis': axis}, gradient=False)
        halves = t([-1.5, -.5, .5, 1.5, 2.5, 7])
        for mode in ('HALF_TO_EVEN', 'HALF_UP'):
            step('QuantizeAndDequantizeV2', [halves, zero, zero], {'num_bits': 4, 'round_mode': mode})
        step('QuantizeAndDequantizeV2', [t([np.nan, np.inf, -np.inf]), t(-1), t(2)], {'range_given': True})
        step('QuantizeAndDequantizeV2', [t([1, 2, 3]), zero, zero], {'range_given': True})


def round_trip_errors(check):
    x = np.float32([[-1.3, .2, .5], [2.5, -.7, 1.1]])
    low, high, bits = -x[1, 2], x[1, 0], np.int32(8)
    for bad in ({'num_bits': 0}, {'num_bits': 62}, {'num_bits': 63, 'signed_input': False}):
        check('QuantizeAndDequantize', [x], bad)
        check('QuantizeAndDequantizeV2', [x, low, high], bad)
        check('QuantizeAndDequantizeV4', [x, low, high], bad)
    check('QuantizeAndDequantize', [x], {'range_given': True, 'input_min': 1.0})
    for op in ('QuantizeAndDequantizeV2', 'QuantizeAndDequantizeV3', 'QuantizeAndDequantizeV4'):
        more = [bits] if op[-1] == '3' else []
        check(op, [x, high, low, *more], {'range_given': True})
        check(op, [x, np.float32(np.nan), low, *more], {'range_given': True})
        check(op, [x, low, high[None], *more], {'range_given': op[-1] != '3'})
        check(op, [x, low[None], high[None], *more], {'axis': 2})
        check(op, [x, low[None], high[None], *more], {'axis': -2})
        check(op, [x, low, high, *more], {'axis': 0})
        check(op, [x, low[None], x[0, :2], *more], {'axis': 0})
    for bad in (np.int32([8]), np.int32(0), np.int32(62)):
        check('QuantizeAndDequantizeV3', [x, low, high, bad])
    check('QuantizeAndDequantizeV4Grad', [x[0], x, low, high])
    check('QuantizeAndDequantizeV4Grad', [x, x, low[None], high])
    check('QuantizeAndDequantizeV4Grad', [x, x, low, high[None]])
    for axis in (-2, 0, 2):
        check('QuantizeAndDequantizeV4Grad', [x, x, x[0], x[0]], {'axis': axis})
        check('QuantizeAndDequantizeV4Grad', [x, x, low, high], {'axis': axis})


def quantized(array, name):
    """The array of integers as one of a quantised type."""
    return np.ascontiguousarray(array, name[1:]).view(QUANTIZED[name]).reshape(np.shape(array))


def any_quantized(rng, name, shape):
    info = np.iinfo(name[1:])
    return quantized(rng.integers(info.min, info.max, shape, name[1:], endpoint=True), name)


def quantize(check, rng):
    modes = [{'mode': 'MIN_COMBINED'}, {'mode': 'MIN_FIRST'}, {'mode': 'SCALED'}, {'mode': 'SCALED', 'round_mode': 'HALF_TO_EVEN'},
             {'mode': 'SCALED', 'narrow_range': True}]
    for name, t in QUANTIZED.items():
        for mode in modes:
            attrs = {'T': t, **mode}
            for shape in ((), (0,), (40, 50)):
                x = (rng.standard_normal(shape) * 5).astype(np.float32)
                for bounds in ((-6, 5), (0, 7), (-3, -1), (2, 3), (0, 0)):
                    if bounds[1] >= 0 or name[1] == 'i':  # else scales are so large that ranges are denormal, which TensorFlow flushes
                        check('QuantizeV2', [x, *np.float32(bounds)], attrs)
            check('QuantizeV2', [KNOWN, *np.float32([-2, 3])], {**attrs, 'ensure_minimum_range': 1.5})
            check('QuantizeV2', [np.arange(-8, 8).astype(np.float32) / 2, np.float32(-8), np.float32(7)], attrs)  # halves
            x = (rng.standard_normal((3, 4, 5)) * 5).astype(np.float32)
            for axis, size in enumerate(x.shape):
                low, high = -np.arange(size).astype(np.float32), np.arange(1, size + 1).astype(np.float32)
                check('QuantizeV2', [x, low, high], {**attrs, 'axis': axis})
            check('QuantizeV2', [x[:1], low[:1], high[:1]], {**attrs, 'axis': 0}, tf_shape_differs=True)  # the kernel makes scalars
    x = np.float32([[-1, 0, 1], [2, 3, 4]])
    t = {'T': QUANTIZED['quint8']}
    check('QuantizeV2', [x, x[0, 1], x[1, 1]], {**t, 'ensure_minimum_range': 0.0})
    check('QuantizeV2', [x[:0], x[0, :0], x[0, :0]], {**t, 'axis': 0})
    check('QuantizeV2', [x, x[1, 1], x[0, 1]], t)
    check('QuantizeV2', [x, x[0, 1], x[1, 1]], {**t, 'round_mode': 'HALF_TO_EVEN'})
    check('QuantizeV2', [x, x[0, :2], x[1, 0]], t)
    check('QuantizeV2', [x, x[0, 0], x[1, :2]], t)
    for axis in (-2, 0, 1, 2):
        check('QuantizeV2', [x, x[0], x[1]], {**t, 'axis': axis})
        check('QuantizeV2', [x, x[0, 0], x[1, 0]], {**t, 'axis': axis})
    check('QuantizeV2', [x, x[0], x[1] - 5], {**t, 'axis': 1})


def dequantize(check, rng):
    for name in QUANTIZED:
        for mode in ('MIN_COMBINED', 'MIN_FIRST', 'SCALED'):
            for narrow in (False, True):
                attrs = {'mode': mode, 'narrow_range': narrow}
                for shape in ((), (0,), (300,)):
                    q = any_quantized(rng, name, shape)
                    for bounds in ((-6, 5), (0, 7), (3, 1), (4, 4), (np.nan, 1)):
                        check('Dequantize', [q, *np.float32(bounds)], attrs)
                q = any_quantized(rng, name, (3, 4, 5))
                for axis, size in enumerate(q.shape):
                    low, high = -np.arange(size).astype(np.float32), np.arange(1, size + 1).astype(np.float32)
                    # Of an unknown rank TensorFlow's shape function takes no axis: its kernel is not asked by itself.
                    check('Dequantize', [q, low, high], {**attrs, 'axis': axis}, tf_only_fails=mode == 'MIN_FIRST')
        check('Dequantize', [q, low, high], {'axis': 2, 'dtype': 'bfloat16'})
        check('Dequantize', [q, low[0], high[0]], {'dtype': 'bfloat16'})
        check('Dequantize', [q, low[0], high[0]], {'dtype': 'bfloat16', 'mode': 'SCALED'})
    check('Dequantize', [q, low[:2], high[0]])
    check('Dequantize', [q, low[0], high[:2]])
    check('Dequantize', [q[:0], low[:0], high[:0]], {'axis': 0})
    for axis in (-2, 0, 3):
        check('Dequantize', [q, low, high], {'axis': axis})
        check('Dequantize', [q, low[0], high[0]], {'axis': axis})


# TensorFlow differentiates the ops that have second=False here only once.
def cases(check, rng):
    round_trip(check, rng)
    round_trip_errors(check)
    fake_quant(check, rng)
    fake_quant_per_channel(check, rng)
    quantize(check, rng)
    dequantize(check, rng)
