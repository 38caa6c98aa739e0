"""Optimizers, dense and sparse, by reference and by handle."""
import numpy as np
from ml_dtypes import bfloat16
from oracle import ref, resource
from values import SATURATES

WIDE = (np.float32, np.float64)
REAL = (np.float32, np.float64, np.float16, bfloat16)
ALL = REAL + (np.complex64, np.complex128)
# Half precision is rounded once here, after every operation there.
LOOSE = {np.float16: dict(rtol=2e-2, atol=2e-2), bfloat16: dict(rtol=1.5e-1, atol=1.5e-1),
         np.float32: dict(rtol=2e-5, atol=1e-6), np.complex64: dict(rtol=5e-5, atol=1e-5),
         np.complex128: dict(rtol=1e-9, atol=1e-11)}

# Op: slots, then scalars before and after the gradient, types, attributes to try, whether there is a sparse form.
SPECS = {
    'GradientDescent': (1, [0.1], [], ALL, [{}], False),
    'Momentum': (2, [0.1], [0.9], ALL, [{}, {'use_nesterov': True}], True),
    'KerasMomentum': (2, [0.1], [0.9], ALL, [{}, {'use_nesterov': True}], True),
    'Adam': (3, [0.81, 0.9, 0.1, 0.9, 0.99, 1e-3], [], ALL, [{}, {'use_nesterov': True}], False),
    'AdaMax': (3, [0.81, 0.1, 0.9, 0.99, 1e-3], [], (np.float32, np.float64, np.float16), [{}], False),
    'Adagrad': (2, [0.1], [], ALL, [{}, {'update_slots': False}], True),
    'AdagradV2': (2, [0.1, 1e-3], [], ALL, [{}, {'update_slots': False}], True),
    'RMSProp': (3, [0.1, 0.9, 0.8, 1e-3], [], ALL, [{}], True),
    'CenteredRMSProp': (4, [0.1, 0.9, 0.8, 1.0], [], ALL, [{}], True),
    'Adadelta': (3, [0.1, 0.9, 1e-3], [], ALL, [{}], True),
    'Ftrl': (3, [], [0.1, 0.2, 0.3, -0.5], REAL, [{}, {'multiply_linear_by_lr': True}], True),
    'FtrlV2': (3, [], [0.1, 0.2, 0.3, 0.05, -0.5], REAL, [{}, {'multiply_linear_by_lr': True}], True),
    'AdagradDA': (3, [], [0.1, 0.2, 0.3, np.int64(3)], WIDE, [{}, {'use_locking': True}], True),
    'AddSign': (2, [0.1, 1.5, 0.7, 0.9], [], REAL, [{}, {'use_locking': True}], False),
    'PowerSign': (2, [0.1, 1.5, 0.7, 0.9], [], REAL, [{}, {'use_locking': True}], False),
    'ProximalAdagrad': (2, [0.1, 0.2, 0.3], [], WIDE, [{}, {'use_locking': True}], True),
    'ProximalGradientDescent': (1, [0.1, 0.2, 0.3], [], WIDE, [{}, {'use_locking': True}], True),
    'AdamWithAmsgrad': (4, [0.81, 0.9, 0.1, 0.9, 0.99, 1e-3], [], REAL, [{}], False),
}
RESOURCE_ONLY = ('KerasMomentum', 'AdamWithAmsgrad')


def slots(rng, count, dtype, shape, wrap):
    return [wrap(rng.uniform(0.5, 1.5, shape).astype(dtype)) for _ in range(count)]


def scalars(dtype, values):
    return [v if isinstance(v, np.generic) else dtype(v) for v in values]


def one(check, rng, name, dtype, attrs, wrap, is_sparse, shape=(6, 3), rows=(4, 0, 2)):
    count, before, after, _, _, _ = SPECS[name]
    grad_shape = (len(rows),) + shape[1:] if is_sparse else shape
    inputs = slots(rng, count, dtype, shape, wrap) + scalars(dtype, before)
    if name == 'CenteredRMSProp':  # a mean of squares is at least the square of the mean: else the root is of rounding errors
        inputs[2] = wrap(rng.uniform(2.5, 3.5, shape).astype(dtype))
    inputs.append(rng.standard_normal(grad_shape).astype(dtype))
    if is_sparse:
        inputs.append(np.array(rows, np.int32 if rng.integers(2) else np.int64))
    inputs += scalars(dtype, after)
    op = ('Resource' if wrap is resource else '') + ('Sparse' if is_sparse else '') + 'Apply' + name
    check(op, inputs, attrs, **LOOSE.get(dtype, dict(rtol=1e-10, atol=1e-12)))


def longer_rows(check):
    """Gradients with more dimensions than the variable, of one element each."""
    for shape, grad in (((4,), (2, 1)), ((4, 3), (2, 3, 1)), ((4, 3), (2, 1, 3))):
        rows, values = np.array([3, 1], np.int32), np.linspace(-1, 1, int(np.prod(grad)), dtype=np.float32).reshape(grad)
        slot = lambda: resource(np.full(shape, 0.5, np.float32))
        rate = np.float32(0.25)
        check('ResourceSparseApplyMomentum', [slot(), slot(), rate, values, rows, rate], rtol=1e-6)
        check('ResourceSparseApplyFtrl', [slot(), slot(), slot(), values, rows, rate, rate, rate, np.float32(-0.5)], rtol=1e-5)
        check('ResourceSparseApplyAdagrad', [slot(), slot(), rate, values, rows], rtol=1e-6)


def proximal(check, rng):
    """Thresholds: off, negative, above every value; rows of one element; large steps."""
    for dtype in WIDE:
        options = LOOSE.get(dtype, dict(rtol=1e-9, atol=1e-12))
        for shape in ((8,), (8, 3)):
            sparse = [np.array([5, 1, 5, 0], np.int32)]
            for rate, l1, l2 in ((0.5, 0, 0), (0.5, 0, 0.3), (0.5, 0.7, 0), (0.5, -0.4, 0.2), (0.5, 100, 1), (0, 0.1, 0.1)):
                for wrap in (ref, resource):
                    prefix = 'Resource' if wrap is resource else ''
                    values = [dtype(rate), dtype(l1), dtype(l2)]
                    var = lambda: wrap(rng.standard_normal(shape).astype(dtype))
                    accum = lambda: wrap(rng.uniform(0.5, 1.5, shape).astype(dtype))
                    grad = rng.standard_normal(shape).astype(dtype)
                    check(prefix + 'ApplyProximalGradientDescent', [var()] + values + [grad], **options)
                    check(prefix + 'SparseApplyProximalGradientDescent', [var()] + values + [grad[:4]] + sparse, **options)
                    check(prefix + 'ApplyProximalAdagrad', [var(), accum()] + values + [grad], **options)
                    check(prefix + 'SparseApplyProximalAdagrad', [var(), accum()] + values + [grad[:4]] + sparse, **options)
                    step = [np.int64(7)]
                    check(prefix + 'ApplyAdagradDA', [var(), var(), accum(), grad] + values + step, **options)
                    check(prefix + 'SparseApplyAdagradDA', [var(), var(), accum(), grad[:4]] + sparse + values + step, **options)
    x = np.array([1, -2, 0, 3], np.float32)
    for step in (1, 1000, 20000001):
        check('ResourceApplyAdagradDA', [resource(x), resource(x * 1e6), resource(x * x), x] +
              [np.float32(s) for s in (0.1, 1e-3, 0.3)] + [np.int64(step)], rtol=1e-5)


def odd_values(check):
    f = np.float32
    odd, ones = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1], f), np.ones(6, f)
    for l1 in (0, 0.1):
        values = [f(0.1), f(l1), f(0.2)]
        check('ResourceApplyProximalGradientDescent', [resource(ones)] + values + [odd])
        check('ResourceApplyProximalGradientDescent', [resource(odd)] + values + [ones * 0])
        check('ResourceApplyProximalAdagrad', [resource(ones), resource(ones * 0)] + values + [odd])
        check('ResourceApplyProximalAdagrad', [resource(odd), resource(ones)] + values + [ones])
        check('ResourceApplyAdagradDA', [resource(ones), resource(ones * 0), resource(ones * 0), odd] + values + [np.int64(2)])
        check('ResourceApplyAdagradDA', [resource(ones), resource(odd), resource(ones), ones] + values + [np.int64(2)])
        for step in (0, -3):
            for shape in ((3,), (3, 2)):
                x = np.ones(shape, f)
                for rate in (0.1, 0, -0.1):
                    rest = [f(rate), f(l1), f(0.2), np.int64(step)]
                    rows = np.array([0, 2], np.int32)
                    check('ResourceApplyAdagradDA', [resource(x), resource(x), resource(x), x * 2] + rest)
                    check('ResourceSparseApplyAdagradDA', [resource(x), resource(x), resource(x), x[:2] * 2, rows] + rest)
    adam = [f(v) for v in (0.81, 0.9, 0.1, 0.9, 0.99, 1e-3)]
    check('ResourceApplyAdamWithAmsgrad', [resource(ones), resource(ones), resource(ones), resource(odd)] + adam + [ones])
    known = odd if SATURATES else odd[~np.isnan(odd)]
    one = np.ones(known.shape, f)
    check('ResourceApplyAdamWithAmsgrad', [resource(one), resource(one), resource(one), resource(one)] + adam + [known])


def mismatches(check):
    x, y, lr, step = np.ones(3, np.float32), np.ones(4, np.float32), np.float32(0.1), np.int64(1)
    m, rows = np.ones((3, 2), np.float32), np.array([0], np.int32)
    check('ResourceApplyAddSign', [resource(x), resource(y), lr, lr, lr, lr, x])
    check('ResourceApplyPowerSign', [resource(x), resource(x), lr, x, lr, lr, x])
    check('ApplyPowerSign', [ref(x), ref(x), lr, lr, lr, lr, y])
    check('ApplyAdagradDA', [ref(x), ref(x), ref(x), x, lr, lr, lr, np.ones(1, np.int64)])
    check('ResourceApplyAdagradDA', [resource(x), resource(x), resource(y), x, lr, lr, lr, step])
    check('ResourceSparseApplyAdagradDA', [resource(m), resource(m), resource(m), m, rows, lr, lr, lr, step])
    check('ResourceSparseApplyProximalAdagrad', [resource(m), resource(m), lr, lr, lr, np.ones((1, 3), np.float32), rows])
    check('SparseApplyProximalGradientDescent', [ref(lr), lr, lr, lr, x, rows])
    check('ResourceSparseApplyMomentum', [resource(m), resource(m), lr, m, rows[None], lr])
    check('SparseApplyAdagrad', [ref(m), ref(m), lr, m, rows[None]])
    check('SparseApplyAdagrad', [ref(m), ref(m), lr, m, rows[0]])
    check('ApplyProximalAdagrad', [ref(x), ref(None, np.float32), lr, lr, lr, x])
    check('ResourceApplyProximalGradientDescent', [resource(None, np.float32), lr, lr, lr, x])
    check('ResourceApplyAdamWithAmsgrad', [resource(x), resource(x), resource(x), resource(y)] + [lr] * 6 + [x])
    for op, count, tail in (('AdagradDA', 3, None), ('ProximalAdagrad', 2, ()), ('ProximalGradientDescent', 1, ())):
        empty = [resource(np.ones((3, 0), np.float32)) for _ in range(count)]
        none = np.ones((1, 0), np.float32)
        inputs = [none, rows, lr, lr, lr, step] if tail is None else [lr, lr, lr, none, rows]
        check('ResourceSparseApply' + op, empty + inputs)


def signs(check):
    odd = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, 0.5], np.float32)
    mean = np.array([1, 1, -9, 9, 1, 1, 1, np.nan, 2, 0], np.float32)
    x = np.arange(10, dtype=np.float32)
    for op in ('ApplyAddSign', 'ApplyPowerSign'):
        check('Resource' + op, [resource(x), resource(mean)] + [np.float32(s) for s in (0.1, 1.5, 0.7, 0.9)] + [odd])
        check(op, [ref(x), ref(mean)] + [np.float32(s) for s in (0.1, -0.5, 0, 0)] + [odd])


def drawn(check, rng):
    """Random types, shapes, attributes and rows."""
    for name, (_, _, _, types, attrs_list, has_sparse) in SPECS.items():
        narrow = [t for t in types if t not in (np.float16, bfloat16)]
        for _ in range(28):
            for wrap in (resource, ref):
                if wrap is ref and name in RESOURCE_ONLY:
                    continue
                dtype, attrs = narrow[rng.integers(len(narrow))], attrs_list[rng.integers(len(attrs_list))]
                one(check, rng, name, dtype, attrs, wrap, False, shape=tuple(map(int, rng.integers(1, 7, rng.integers(0, 4)))))
                if has_sparse:
                    shape = tuple(map(int, rng.integers(2, 7, rng.integers(1, 4))))
                    rows = tuple(map(int, rng.permutation(shape[0])[:rng.integers(1, shape[0] + 1)]))
                    one(check, rng, name, dtype, attrs, wrap, True, shape, rows)


def refused(check):
    """Rows without elements, and scalars that sparse updates refuse where dense ones do not."""
    rows, lr = np.array([0, 1], np.int32), np.float32(0.5)
    for inner in ((0,), (0, 3), (2,)):
        x, grad = np.ones((3,) + inner, np.float32), np.ones((2,) + inner, np.float32)
        for wrap, prefix in ((resource, 'Resource'), (ref, '')):
            check(prefix + 'SparseApplyAdagrad', [wrap(x), wrap(x), lr, grad, rows])
            check(prefix + 'SparseApplyAdagradV2', [wrap(x), wrap(x), lr, lr, grad, rows])
            check(prefix + 'SparseApplyFtrl', [wrap(x), wrap(x), wrap(x), grad, rows, lr, lr, lr, -lr])
            check(prefix + 'SparseApplyFtrlV2', [wrap(x), wrap(x), wrap(x), grad, rows, lr, lr, lr, lr, -lr])
    x, grad = np.ones((3, 2), np.float32), np.ones((2, 2), np.float32)
    for flag in (False, True):
        for at in range(5):
            for value in (-1, 0, 1, np.nan):
                scalars = [np.float32(v) for v in (0.5, 0.1, 0.1, 0.1, -0.5)]
                scalars[at] = np.float32(value)
                attrs = {'multiply_linear_by_lr': flag}
                check('ResourceSparseApplyFtrlV2', [resource(x)] * 1 + [resource(x), resource(x), grad, rows] + scalars, attrs)
                check('ResourceApplyFtrlV2', [resource(x), resource(x), resource(x), x] + scalars, attrs)
                if at != 3:
                    scalars = scalars[:3] + scalars[4:]
                    check('ResourceSparseApplyFtrl', [resource(x), resource(x), resource(x), grad, rows] + scalars, attrs)
                    check('ResourceApplyFtrl', [resource(x), resource(x), resource(x), x] + scalars, attrs)


def cases(check, rng):
    refused(check)
    for name, (_, _, _, types, attrs_list, has_sparse) in SPECS.items():
        for dtype in types:
            for attrs in attrs_list:
                for wrap in (resource, ref):
                    if wrap is ref and name in RESOURCE_ONLY:
                        continue
                    one(check, rng, name, dtype, attrs, wrap, False)
                    if has_sparse and not (dtype is bfloat16 and 'RMSProp' in name):
                        one(check, rng, name, dtype, attrs, wrap, True)
        one(check, rng, name, np.float32, {}, resource, False, shape=(1001,))
        one(check, rng, name, np.float32, {}, resource, False, shape=())
        one(check, rng, name, np.float32, {}, resource, False, shape=(0, 2))
        if has_sparse:
            one(check, rng, name, np.float32, {}, resource, True, rows=(1, 6))
            one(check, rng, name, np.float32, {}, resource, True, rows=(1, -1))
            one(check, rng, name, np.float32, {}, resource, True, rows=())
            one(check, rng, name, np.float32, {}, resource, True, rows=(3, 3, 3))
    x = np.ones(3, np.float32)
    lr = np.float32(0.1)
    check('ResourceApplyGradientDescent', [resource(x), lr, np.ones(4, np.float32)])
    check('ResourceApplyGradientDescent', [resource(x), x, x])
    check('ResourceApplyGradientDescent', [resource(None, np.float32), lr, x])
    check('ApplyGradientDescent', [ref(None, np.float32), lr, x])
    check('ResourceApplyMomentum', [resource(x), resource(np.ones(4, np.float32)), lr, x, lr])
    for power in (-0.3, -0.5, -0.8):
        check('ResourceApplyFtrl', [resource(x), resource(x * 2), resource(x * 3), x * 4] +
              [np.float32(s) for s in (0.1, 0.2, 0.3, power)], rtol=1e-5)
    proximal(check, rng)
    longer_rows(check)
    signs(check)
    odd_values(check)
    mismatches(check)
    drawn(check, rng)
