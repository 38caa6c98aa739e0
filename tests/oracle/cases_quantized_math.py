"""Cases of quantised tensors joined, reshaped, added and multiplied."""
import numpy as np

from cases_quantized import QUANTIZED, any_quantized
from values import SATURATES

LOW, HIGH, TWO = np.float32(-1.5), np.float32(2), np.float32([1, 2])


def reshape(check, rng):
    for name in ('quint8', 'qint32'):
        x = any_quantized(rng, name, (2, 6))
        for shape in ([12], [3, -1], [5], [-1, -1], []):
            check('QuantizedReshape', [x, np.int32(shape), LOW, HIGH])
        check('QuantizedReshape', [x, np.int64([4, 3]), LOW, HIGH])
        check('QuantizedReshape', [x, np.int32([12]), TWO, HIGH])
        check('QuantizedReshape', [x, np.int32([12]), LOW, TWO])


def concat(check, rng):
    for name in ('quint8', 'qint32'):
        x, y = any_quantized(rng, name, (3, 4, 5)), any_quantized(rng, name, (3, 2, 5))
        for bounds in ((LOW, LOW, HIGH, HIGH), (LOW, LOW * 3, HIGH, HIGH), (HIGH, LOW, HIGH * 2, HIGH), (HIGH, HIGH, HIGH * 2, HIGH * 3),
                       (LOW, LOW * 3, LOW / 2, LOW)):
            check('QuantizedConcat', [np.int32(1), x, y, *bounds], {'N': 2})
        bounds = (LOW, LOW, HIGH, HIGH)
        for axis in (-1, 0, 2, 3, [1]):
            check('QuantizedConcat', [np.int32(axis), x, x, *bounds], {'N': 2})
        check('QuantizedConcat', [np.int32(0), x, y, *bounds], {'N': 2})
        check('QuantizedConcat', [np.int32(1), x, x[0], *bounds], {'N': 2})
        check('QuantizedConcat', [np.int32(0), x[0, 0, 0], x[0, 0, 0], *bounds], {'N': 2})
        check('QuantizedConcat', [np.int32(1), x[:, :0], y[:, :0], *bounds], {'N': 2})
        check('QuantizedConcat', [np.int32(1), x, y, x, LOW, LOW, LOW * 2, HIGH, HIGH * 9, HIGH], {'N': 3})
        check('QuantizedConcat', [np.int32(1), x[:, :0], y, x, LOW, LOW, LOW * 2, HIGH, HIGH * 9, HIGH], {'N': 3})
        if SATURATES:
            check('QuantizedConcat', [np.int32(1), x, y, LOW, LOW, np.float32(np.nan), HIGH], {'N': 2})
        check('QuantizedConcat', [np.int32(1), x, y, LOW, TWO, HIGH, HIGH], {'N': 2})
        check('QuantizedConcat', [np.int32(1), x, y, LOW, LOW, TWO[:0], HIGH], {'N': 2})


def arithmetic(check, rng):
    # Where neither tensor ends with all of the other, TensorFlow's kernels repeat the wrong way, or leave elements as they were.
    shapes = [((), ()), ((5,), (5,)), ((0,), (0,)), ((40, 50), (50,)), ((50,), (40, 50)), ((4, 5), ()), ((), (4, 5)), ((1, 5, 1, 2), (1, 2)),
              ((0, 2), (2,)), ((2, 0), (0,)), ((0, 2), ()), ((2,), (3,)), ((2, 3, 2), (2, 1, 2))]
    for op in ('QuantizedAdd', 'QuantizedMul'):
        out = {'Toutput': QUANTIZED['qint32']}
        for a, b in shapes:
            x, y = any_quantized(rng, 'quint8', a), any_quantized(rng, 'quint8', b)
            check(op, [x, y, LOW, HIGH, LOW, HIGH], out)
            check(op, [x, y, LOW * 300, HIGH, LOW, HIGH], out)
            if op == 'QuantizedAdd':  # in products TensorFlow takes zeros that are not within the range by their last eight bits on ARM
                check(op, [x, y, HIGH, HIGH * 2, LOW, LOW / 3], out)
        x, y = any_quantized(rng, 'quint8', (2, 2)), any_quantized(rng, 'quint8', (2,))
        for bounds in ((HIGH, LOW, LOW, HIGH), (LOW, HIGH, HIGH, HIGH), (np.float32(np.nan), HIGH, LOW, HIGH)):
            check(op, [x, y, *bounds], out)
        for i in range(4):
            bounds = [LOW, HIGH, LOW, HIGH]
            bounds[i] = TWO
            check(op, [x, y, *bounds], out)


def bias_add(check, rng):
    out = {'out_type': QUANTIZED['qint32']}
    for name in ('quint8', 'qint8'):
        for shape in ((40, 50), (3, 4, 5), (0, 2), (2, 0)):
            x, y = any_quantized(rng, name, shape), any_quantized(rng, name, shape[-1:])
            for bounds in ((LOW, HIGH, LOW, HIGH), (LOW * 300, HIGH, LOW, HIGH), (HIGH, HIGH * 2, LOW, LOW / 3), (HIGH, LOW, LOW, LOW)):
                check('QuantizedBiasAdd', [x, y, *bounds], out)
        x, y = any_quantized(rng, name, (2, 2)), any_quantized(rng, name, (2,))
        check('QuantizedBiasAdd', [y, y, LOW, HIGH, LOW, HIGH], out)
        check('QuantizedBiasAdd', [x, x, LOW, HIGH, LOW, HIGH], out)
        check('QuantizedBiasAdd', [x, y[:1], LOW, HIGH, LOW, HIGH], out)
        for i in range(4):
            bounds = [LOW, HIGH, LOW, HIGH]
            bounds[i] = TWO
            check('QuantizedBiasAdd', [x, y, *bounds], out)


def cases(check, rng):
    reshape(check, rng)
    concat(check, rng)
    arithmetic(check, rng)
    bias_add(check, rng)
