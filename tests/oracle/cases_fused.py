"""Ops that TensorFlow's graph optimizer makes out of others: fused products and convolutions, chains of functions."""
import numpy as np

LOOSE = {np.float32: dict(rtol=2e-5, atol=2e-5), np.float64: dict(rtol=1e-10, atol=1e-10), np.float16: dict(rtol=2e-2, atol=2e-2)}
NO_HALF = {'Tan', 'Sinh', 'Cosh', 'Asinh', 'Acosh', 'Atan', 'Atanh', 'Acos', 'Asin', 'Rint'}
TAILS = [[], ['Relu'], ['Relu6'], ['Elu'], ['LeakyRelu'], ['Tanh'], ['Sigmoid']]


def normal(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def products(check, rng):
    for tail in TAILS:
        for m, k, n in ((3, 4, 5), (1, 1, 1), (17, 33, 70), (0, 3, 2), (2, 3, 300)):
            attrs = {'num_args': 1, 'fused_ops': ['BiasAdd', *tail], 'leakyrelu_alpha': 0.3}
            check('_FusedMatMul', [normal(rng, (m, k)), normal(rng, (k, n)), normal(rng, (n,))], attrs, **LOOSE[np.float32])
    for dtype in (np.float32, np.float16):
        for a in (False, True):
            for b in (False, True):
                x, w = normal(rng, (4, 6) if not a else (6, 4), dtype), normal(rng, (6, 3) if not b else (3, 6), dtype)
                attrs = {'num_args': 1, 'fused_ops': ['BiasAdd', 'Relu'], 'transpose_a': a, 'transpose_b': b}
                check('_FusedMatMul', [x, w, normal(rng, (3,), dtype)], attrs, **LOOSE[dtype], tf_only_fails=dtype == np.float16)
    x, w, bias = normal(rng, (2, 3)), normal(rng, (3, 4)), normal(rng, (4,))
    x[0, 0] = np.nan
    check('_FusedMatMul', [x, w, bias], {'num_args': 1, 'fused_ops': ['BiasAdd', 'Relu']}, **LOOSE[np.float32])
    good = {'num_args': 1, 'fused_ops': ['BiasAdd']}
    check('_FusedMatMul', [x, w.T, bias], good)
    check('_FusedMatMul', [x, w, bias[:3]], good, weir_only_fails=True)  # TensorFlow reads past the end
    check('_FusedMatMul', [x, w, x], good)
    check('_FusedMatMul', [x[0], w, bias], good)
    check('_FusedMatMul', [x, w, bias], {'num_args': 1, 'fused_ops': ['Foo']})
    check('_FusedMatMul', [x, w, bias], {'num_args': 1, 'fused_ops': []})
    check('_FusedMatMul', [x, w], {'num_args': 0, 'fused_ops': ['BiasAdd']})


def convolutions(check, rng):
    def conv(x, f, args, fused, tf_only_fails=False, weir_only_fails=False, **attrs):
        dtype = x.dtype.type
        attrs = {'strides': [1, 1, 1, 1], 'padding': 'SAME', 'fused_ops': fused, 'num_args': len(args), 'num_host_args': 0,
                 'TArgs': [dtype] * len(args), **attrs}
        check('_FusedConv2D', [x, f, *args], attrs, tf_only_fails=tf_only_fails, weir_only_fails=weir_only_fails, **LOOSE[dtype])
    for tail in TAILS:
        for shape, f, more in (((2, 5, 6, 3), (3, 3, 3, 4), {}), ((1, 7, 7, 2), (1, 1, 2, 9), {}),
                               ((3, 9, 7, 4), (3, 2, 4, 5), {'strides': [1, 2, 2, 1], 'padding': 'VALID'})):
            conv(normal(rng, shape), normal(rng, f), [normal(rng, f[3:])], ['BiasAdd', *tail], leakyrelu_alpha=0.1,
                 tf_only_fails=tail in (['Tanh'], ['Sigmoid']), **more)
    for tail in TAILS[:5]:
        x, f = normal(rng, (2, 6, 6, 3)), normal(rng, (3, 3, 3, 4))
        norm = [normal(rng, (4,)), normal(rng, (4,)), normal(rng, (4,)), rng.uniform(0.5, 2, 4).astype(np.float32)]
        conv(x, f, norm, ['FusedBatchNorm', *tail], epsilon=0.01)
    conv(normal(rng, (2, 5, 6, 3), np.float64), normal(rng, (3, 3, 3, 4), np.float64), [normal(rng, (4,), np.float64)],
         ['BiasAdd', 'Relu'])
    conv(normal(rng, (2, 5, 6, 3)), normal(rng, (3, 3, 3, 4)), [normal(rng, (4,))], ['BiasAdd', 'Relu'], dilations=[1, 2, 2, 1])
    conv(normal(rng, (2, 5, 6, 3)), normal(rng, (3, 3, 3, 4)), [normal(rng, (4,))], ['BiasAdd', 'Elu'], padding='EXPLICIT',
         explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0])
    conv(normal(rng, (0, 5, 6, 3)), normal(rng, (3, 3, 3, 4)), [normal(rng, (4,))], ['BiasAdd'])
    for tail in TAILS[:2]:  # what GPUs have kernels for
        for f, more in (((3, 3, 3, 4), {'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 2, 0, 1, 0, 0]}),
                        ((2, 3, 3, 4), {'dilations': [1, 2, 1, 1], 'padding': 'VALID'}),
                        ((1, 1, 3, 8), {}),
                        ((2, 2, 3, 5), {'strides': [1, 2, 2, 1]})):
            conv(normal(rng, (1, 5, 4, 3)), normal(rng, f), [normal(rng, f[3:])], ['BiasAdd', *tail], **more)
        conv(normal(rng, (1, 4, 4, 8), np.float16), normal(rng, (2, 2, 8, 8), np.float16), [normal(rng, (8,), np.float16)],
             ['BiasAdd', *tail], tf_only_fails=True)
        conv(normal(rng, (1, 3, 4, 2), np.float64), normal(rng, (3, 2, 2, 3), np.float64), [normal(rng, (3,), np.float64)],
             ['BiasAdd', *tail])
    x = normal(rng, (1, 4, 4, 3))
    x[0, 1, 1, 1], x[0, 3, 3, 0] = np.nan, -np.inf
    conv(x, normal(rng, (3, 3, 3, 4)), [normal(rng, (4,))], ['BiasAdd', 'Relu'])
    conv(normal(rng, (2, 5, 6, 3)), normal(rng, (3, 3, 3, 4)), [normal(rng, (3,))], ['BiasAdd'], weir_only_fails=True)
    conv(normal(rng, (2, 5, 6, 3)), normal(rng, (3, 3, 3, 4)), [normal(rng, (4,))], ['Relu'])
    conv(normal(rng, (2, 5, 6, 3)), normal(rng, (3, 3, 3, 4)), [normal(rng, (4,))], ['FusedBatchNorm'])


def compositions(check, rng):
    chains = [['Abs', 'Sqrt'], ['Tanh', 'Neg', 'Exp'], ['Square', 'Log1p', 'Rsqrt'], ['Sin', 'Cos', 'Tan'], ['Relu', 'Relu6'],
              ['Elu', 'Selu', 'Sigmoid'], ['Sinh', 'Cosh', 'Asinh'], ['Atan', 'Acos', 'Asin'], ['Floor', 'Ceil', 'Rint'],
              ['Round', 'Reciprocal', 'Inv'], ['Expm1', 'Tanh', 'Atanh'], ['Exp', 'Acosh', 'Log']]
    for names in chains:
        for dtype in (np.float32, np.float64, np.float16):
            loose = {np.float32: dict(rtol=1e-4, atol=1e-5), np.float64: dict(rtol=1e-8, atol=1e-10),
                     np.float16: dict(rtol=5e-2, atol=2e-2)}[dtype]
            check('_UnaryOpsComposition', [rng.uniform(0.1, 0.9, (5, 7)).astype(dtype)], {'op_names': names},
                  tf_only_fails=dtype == np.float16 and not NO_HALF.isdisjoint(names), **loose)
    check('_UnaryOpsComposition', [normal(rng, (3000,))], {'op_names': ['Tanh', 'Square', 'Neg']}, rtol=1e-5, atol=1e-6)
    check('_UnaryOpsComposition', [normal(rng, (0, 2))], {'op_names': ['Tanh', 'Square']})
    check('_UnaryOpsComposition', [np.float32([np.nan, np.inf, -np.inf, -0.0])], {'op_names': ['Neg', 'Abs']})
    check('_UnaryOpsComposition', [normal(rng, (2,))], {'op_names': ['Foo']})
    check('_UnaryOpsComposition', [normal(rng, (2,))], {'op_names': []})


def buckets(check, rng):
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        lacks = dict(tf_only_fails=np.dtype(dtype).kind == 'u')
        for count in (1, 7, 1 << 40):
            check('_TensorToHashBucketFast', [rng.integers(limits.min, limits.max, (3, 4), dtype)], {'num_buckets': count}, **lacks)
        check('_TensorToHashBucketFast', [np.array([limits.min, limits.max, 0], dtype)], {'num_buckets': 1000}, **lacks)


def rows(check, rng):
    for dtype in (np.float32, np.int32, 'string'):
        for shape in ((3, 4), (0, 2), ()):
            check('_ParallelConcatStart', [], {'shape': shape, 'dtype': dtype}, shapes_only=True)  # TensorFlow leaves it unwritten
    for dtype in (np.float32, np.int64, np.float16, bool):
        for at in (0, 2):
            check('_ParallelConcatUpdate', [np.zeros((3, 4), dtype), normal(rng, (1, 4)).astype(dtype)], {'loc': at})
    check('_ParallelConcatUpdate', [np.zeros((3, 4), np.float32), normal(rng, (1, 3))], {'loc': 0})
    check('_ParallelConcatUpdate', [np.zeros((3, 4), np.float32), normal(rng, (1, 4))], {'loc': 3})
    for at in (-1, -5):
        check('_ParallelConcatUpdate', [np.zeros((3, 4), np.float32), np.ones((1, 4), np.float32)], {'loc': at})


def cases(check, rng):
    for group in (products, convolutions, compositions, buckets, rows):
        group(check, rng)
