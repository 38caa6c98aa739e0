"""Optimizers, dense and sparse, by reference and by handle."""
import numpy as np
from ml_dtypes import bfloat16
from oracle import ref, resource

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
}


def slots(rng, count, dtype, shape, wrap):
    return [wrap(rng.uniform(0.5, 1.5, shape).astype(dtype)) for _ in range(count)]


def one(check, rng, name, dtype, attrs, wrap, is_sparse, shape=(6, 3), rows=(4, 0, 2)):
    count, before, after, _, _, _ = SPECS[name]
    grad_shape = (len(rows),) + shape[1:] if is_sparse else shape
    inputs = slots(rng, count, dtype, shape, wrap) + [dtype(s) for s in before]
    inputs.append(rng.standard_normal(grad_shape).astype(dtype))
    if is_sparse:
        inputs.append(np.array(rows, np.int32 if rng.integers(2) else np.int64))
    inputs += [dtype(s) for s in after]
    op = ('Resource' if wrap is resource else '') + ('Sparse' if is_sparse else '') + 'Apply' + name
    check(op, inputs, attrs, **LOOSE.get(dtype, dict(rtol=1e-10, atol=1e-12)))


def cases(check, rng):
    for name, (_, _, _, types, attrs_list, has_sparse) in SPECS.items():
        for dtype in types:
            for attrs in attrs_list:
                for wrap in (resource, ref):
                    if wrap is ref and name.startswith('Keras'):
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
