"""Cases of floats that are rounded to the steps of quantised ranges."""
import numpy as np

SPECIAL = np.float32([-10, -6.02, -1, -.01, -0.0, 0, .3, 5.9, 7, np.nan, np.inf, -np.inf])


def fake_quant(check, rng):
    for shape in ((), (0,), (7,), (3, 0), (30, 40)):
        x = (rng.standard_normal(shape) * 5).astype(np.float32)
        dy = rng.standard_normal(shape).astype(np.float32)
        for bits, narrow in ((8, False), (2, True), (16, False)):
            bounds = np.sort(rng.standard_normal(2) * 3).astype(np.float32)
            attrs = {'num_bits': bits, 'narrow_range': narrow}
            args = {**attrs, 'min': float(bounds[0]), 'max': float(bounds[1])}
            check('FakeQuantWithMinMaxArgs', [x], args, second=False)
            check('FakeQuantWithMinMaxArgsGradient', [dy, x], args)
            check('FakeQuantWithMinMaxVars', [x, *bounds], attrs, second=False)
            check('FakeQuantWithMinMaxVarsGradient', [dy, x, *bounds], attrs, atol=1e-5)
    for bounds in ((-6, 6), (1, 3), (-3, -1), (0, 0), (3, 1), (2, 2), (np.nan, 2), (-np.inf, 1)):
        bounds = np.float32(bounds)
        check('FakeQuantWithMinMaxVars', [SPECIAL, *bounds], second=False)
        check('FakeQuantWithMinMaxVarsGradient', [np.ones_like(SPECIAL), SPECIAL, *bounds])
    x = SPECIAL[:3]
    for attrs in ({}, {'min': 3.0, 'max': 1.0}, {'min': 0.0, 'max': 0.0}, {'num_bits': 1}, {'num_bits': 17}):
        check('FakeQuantWithMinMaxArgs', [SPECIAL], attrs, second=False)
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
            check('FakeQuantWithMinMaxVarsPerChannel', [x, low, high], attrs, second=False)
            check('FakeQuantWithMinMaxVarsPerChannelGradient', [dy, x, low, high], attrs, atol=1e-5)
    x, low, high = np.float32([[1, 2, 3]]), np.float32([-1, 0, 2]), np.float32([1, 0, 3])
    check('FakeQuantWithMinMaxVarsPerChannel', [x, low, high], {'num_bits': 1})
    for bad in ((x, low[:2], high), (x, low, high[:2]), (x, low[0], high), (x, low, x)):
        check('FakeQuantWithMinMaxVarsPerChannel', bad)
        check('FakeQuantWithMinMaxVarsPerChannelGradient', [x, *bad])
    check('FakeQuantWithMinMaxVarsPerChannelGradient', [x, x[0], low, high])
    check('FakeQuantWithMinMaxVarsPerChannelGradient', [x, x, low, high], {'num_bits': 17})


def cases(check, rng):
    fake_quant(check, rng)
    fake_quant_per_channel(check, rng)
