"""Channels first gives what channels last gives, transposed: values and gradients, all types.

TensorFlow's CPU kernels refuse channels first for convolution and pooling, so there the other layout, which the oracle checks, is
what is compared with. Bit by bit: the order of every sum is the same. Needs tensorflow, as a client that builds graphs. Runs libweir
through ctypes.
"""
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import ml_dtypes
import numpy as np
import pytest

tf = pytest.importorskip('tensorflow')
from tensorflow.python.framework import op_def_library  # noqa: E402

from conftest import BUILD, ROOT  # noqa: E402

sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
import libweir  # noqa: E402

raw, tf1 = tf.raw_ops, tf.compat.v1
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INTEGERS = [np.int32, np.uint8, np.int16, np.int8, np.int64, np.uint16]
STRIDES = [(1, 1), (2, 2), (1, 2), (3, 1)]
PADDINGS = ['SAME', 'VALID', 'EXPLICIT']
PADS = [(0, 0), (1, 0), (2, 1), (0, 0)]  # of an NHWC tensor


@pytest.fixture(scope='module')
def lib():
    return libweir.Library(str(BUILD / 'libweir.so'))


class Layout:
    """How one of the two formats writes tensors and attributes that are given channels last."""

    def __init__(self, first):
        self.first = first

    def order(self, rank):
        return [0, rank - 1, *range(1, rank - 1)] if self.first else list(range(rank))

    def name(self, rank=4):
        return {4: 'NCHW', 5: 'NCDHW'}[rank] if self.first else {4: 'NHWC', 5: 'NDHWC'}[rank]

    def arrange(self, values):
        """A list with an item for each axis."""
        return [values[i] for i in self.order(len(values))]

    def put(self, tensor):
        return tf.transpose(tensor, self.order(len(tensor.shape))) if self.first else tensor

    def back(self, tensor):
        return tf.transpose(tensor, np.argsort(self.order(len(tensor.shape)))) if self.first else tensor

    def attrs(self, strides, padding, dilations=(1, 1), **more):
        attrs = dict(more, strides=self.arrange([1, *strides, 1]), padding=padding, data_format=self.name(len(strides) + 2))
        attrs['dilations'] = self.arrange([1, *dilations, 1])
        if padding == 'EXPLICIT':
            attrs['explicit_paddings'] = sum(map(list, self.arrange(PADS)), [])
        return attrs


def draw(rng, shape, dtype):
    kind = np.dtype(dtype).kind
    return rng.integers(0 if kind == 'u' else -20, 20, shape).astype(dtype) if kind in 'iu' else \
        rng.standard_normal(shape).astype(dtype)


def is_floating(tensor):
    return tensor.dtype.is_floating


def compare(lib, arrays, build, with_gradients=True):
    """build(layout, tensors) of channels-last tensors gives such tensors again: the same in both layouts, and so their gradients."""
    results = []
    for first in (False, True):
        with tf1.Graph().as_default() as graph:
            inputs = [tf1.placeholder(a.dtype, a.shape, name=f'x{i}') for i, a in enumerate(arrays)]
            outputs = [t for t in tf.nest.flatten(build(Layout(first), inputs)) if t.shape.rank != 0]
            ys = [t for t in outputs if is_floating(t)]
            xs = [t for t in inputs if is_floating(t)]
            weights = np.random.default_rng(5)
            dys = [tf.constant(weights.standard_normal(y.shape).astype(y.dtype.as_numpy_dtype)) for y in ys]
        weir = libweir.Graph(lib, graph.as_graph_def(), threads=2)
        try:
            edges = [weir.edge(t.name) for t in outputs]
            if with_gradients and ys and xs:
                made = weir.gradients(*[[weir.edge(t.name) for t in ts] for ts in (ys, xs, dys)])
                assert any(made)
                edges += [e for e in made if e]
            results.append(weir.run(edges, {f'x{i}:0': a for i, a in enumerate(arrays)}))
        finally:
            weir.close()
    last, channels_first = results
    assert len(last) == len(channels_first)
    for i, (want, got) in enumerate(zip(last, channels_first)):
        assert got.dtype == want.dtype and got.shape == want.shape, i
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8), err_msg=f'result {i}')


def extent(size, k, stride, dilation, padding, pads):
    reach = (k - 1) * dilation + 1
    return -(-size // stride) if padding == 'SAME' else (size + sum(pads) * (padding == 'EXPLICIT') - reach) // stride + 1


def output_shape(shape, f, strides, dilations, padding, depth):
    sizes = [extent(*args) for args in zip(shape[1:3], f[:2], strides, dilations, [padding] * 2, PADS[1:3])]
    return (shape[0], *sizes, depth)


# ---- convolution ----

@pytest.mark.parametrize('dtype', FLOATS + [np.int32])
@pytest.mark.parametrize('padding', PADDINGS)
@pytest.mark.parametrize('strides,dilations,groups', [(s, (1, 1), 1) for s in STRIDES] + [((1, 1), (2, 3), 1), ((2, 1), (1, 1), 2)])
def test_conv2d(lib, dtype, padding, strides, dilations, groups):
    rng = np.random.default_rng(1)
    shape, f = (2, 9, 10, 4), (3, 2, 4 // groups, 6)
    out = output_shape(shape, f, strides, dilations, padding, f[3])
    arrays = [draw(rng, s, dtype) for s in (shape, f, out)]

    def build(layout, inputs):
        x, w, dy = inputs
        attrs = layout.attrs(strides, padding, dilations)
        results = [layout.back(raw.Conv2D(input=layout.put(x), filter=w, **attrs)),
                   layout.back(raw.Conv2DBackpropInput(input_sizes=layout.arrange(shape), filter=w, out_backprop=layout.put(dy),
                                                       **attrs))]
        if is_floating(x):
            results.append(raw.Conv2DBackpropFilter(input=layout.put(x), filter_sizes=f, out_backprop=layout.put(dy), **attrs))
        return results
    compare(lib, arrays, build)


@pytest.mark.parametrize('dtype', FLOATS)
@pytest.mark.parametrize('padding', PADDINGS)
@pytest.mark.parametrize('stride', [1, 2, 3])
@pytest.mark.parametrize('multiplier', [1, 3])
def test_depthwise_conv2d(lib, dtype, padding, stride, multiplier):
    rng = np.random.default_rng(2)
    shape, f = (2, 8, 9, 5), (3, 2, 5, multiplier)
    out = output_shape(shape, f, (stride, stride), (1, 1), padding, 5 * multiplier)
    arrays = [draw(rng, s, dtype) for s in (shape, f, out)]

    def build(layout, inputs):
        x, w, dy = inputs
        attrs = layout.attrs((stride, stride), padding)
        return [layout.back(raw.DepthwiseConv2dNative(input=layout.put(x), filter=w, **attrs)),
                layout.back(raw.DepthwiseConv2dNativeBackpropInput(input_sizes=layout.arrange(shape), filter=w,
                                                                   out_backprop=layout.put(dy), **attrs)),
                raw.DepthwiseConv2dNativeBackpropFilter(input=layout.put(x), filter_sizes=f, out_backprop=layout.put(dy), **attrs)]
    compare(lib, arrays, build)


@pytest.mark.parametrize('dtype', FLOATS)
@pytest.mark.parametrize('padding', ['SAME', 'VALID'])
@pytest.mark.parametrize('strides', [(1, 1, 1), (2, 1, 3)])
def test_conv3d(lib, dtype, padding, strides):
    rng = np.random.default_rng(3)
    shape, f = (2, 5, 6, 7, 3), (2, 3, 2, 3, 4)
    out = (2, *[extent(n, k, s, 1, padding, (0, 0)) for n, k, s in zip(shape[1:], f, strides)], 4)
    arrays = [draw(rng, s, dtype) for s in (shape, f, out)]

    def build(layout, inputs):
        x, w, dy = inputs
        attrs = layout.attrs(strides, padding, (1, 1, 1))
        return [layout.back(raw.Conv3D(input=layout.put(x), filter=w, **attrs)),
                layout.back(raw.Conv3DBackpropInputV2(input_sizes=layout.arrange(shape), filter=w, out_backprop=layout.put(dy),
                                                      **attrs)),
                raw.Conv3DBackpropFilterV2(input=layout.put(x), filter_sizes=f, out_backprop=layout.put(dy), **attrs)]
    compare(lib, arrays, build)


@pytest.mark.parametrize('dtype', [np.float32, np.float64, np.float16])
@pytest.mark.parametrize('padding', PADDINGS)
@pytest.mark.parametrize('tail', [['BiasAdd'], ['BiasAdd', 'Relu'], ['BiasAdd', 'Elu'], ['FusedBatchNorm'], ['FusedBatchNorm', 'Relu']])
def test_fused_conv2d(lib, dtype, padding, tail):
    rng = np.random.default_rng(4)
    count = 1 if tail[0] == 'BiasAdd' else 4
    arrays = [draw(rng, s, dtype) for s in [(2, 6, 7, 3), (3, 3, 3, 5)]] + [np.abs(draw(rng, (5,), dtype)) for _ in range(count)]

    def build(layout, inputs):
        attrs = {'explicit_paddings': [], 'use_cudnn_on_gpu': True, 'filter_format': 'HWIO', 'leakyrelu_alpha': 0.2,
                 **layout.attrs((2, 1), padding)}
        y = op_def_library.apply_op('_FusedConv2D', name='fused', input=layout.put(inputs[0]), filter=inputs[1], args=inputs[2:], host_args=[],
                                    num_args=count, fused_ops=tail, epsilon=0.01, **attrs)
        return layout.back(y)
    compare(lib, arrays, build, with_gradients=False)


@pytest.mark.parametrize('tail', ['', 'Relu', 'Relu6', 'Elu', 'LeakyRelu'])
@pytest.mark.parametrize('op', ['_FusedConv3D', '_FusedDepthwiseConv2dNative'])
def test_fused_by_master(lib, op, tail):
    """Channels first by the fused op, which TensorFlow computes by another library alone, channels last by what it stands for."""
    rng = np.random.default_rng(6)
    shapes = [(2, 4, 5, 6, 3), (2, 3, 2, 3, 4)] if op == '_FusedConv3D' else [(2, 6, 7, 2), (3, 2, 2, 2)]
    rank = len(shapes[0])
    arrays = [draw(rng, s, np.float32) for s in shapes] + [draw(rng, (4,), np.float32)]

    def build(layout, inputs):
        x, w, bias = inputs
        attrs = layout.attrs((1,) * (rank - 2), 'SAME', (1,) * (rank - 2))
        if layout.first:
            more = {'padding_list': []} if rank == 5 else {}
            return layout.back(op_def_library.apply_op(
                op, name='fused', input=layout.put(x), filter=w, args=[bias], fused_ops=['BiasAdd'] + [tail] * bool(tail), epsilon=0.01,
                leakyrelu_alpha=0.2, **attrs, **more))
        y = raw.Conv3D(input=x, filter=w, **attrs) if rank == 5 else raw.DepthwiseConv2dNative(input=x, filter=w, **attrs)
        y = y + bias
        return {'': tf.identity, 'LeakyRelu': tf.nn.leaky_relu}.get(tail, lambda t: getattr(tf.nn, tail.lower())(t))(y)
    compare(lib, arrays, build, with_gradients=False)


@pytest.mark.parametrize('dtype', [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize('is_training', [True, False])
@pytest.mark.parametrize('sides', [0, 1])
@pytest.mark.parametrize('mode', ['Identity', 'Relu'])
def test_fused_batch_norm_ex(lib, dtype, is_training, sides, mode):
    """Channels first by the fused op, which TensorFlow's master makes, channels last by what it stands for."""
    rng = np.random.default_rng(5)
    shape = (3, 4, 5, 8)
    arrays = [draw(rng, shape, dtype)] + [np.abs(draw(rng, (8,), np.float32)) for _ in range(4)] + [draw(rng, shape, dtype)]

    def build(layout, inputs):
        x, scale, offset, mean, variance, side = inputs
        attrs = {'epsilon': 0.01, 'exponential_avg_factor': 1.0, 'is_training': is_training}
        if layout.first:
            fused = op_def_library.apply_op('_FusedBatchNormEx', name='fused', x=layout.put(x), scale=scale, offset=offset, mean=mean,
                                            variance=variance, side_input=[layout.put(side)] * sides, activation_mode=mode,
                                            data_format='NCHW', **attrs)
            return [layout.back(fused[0]), *fused[1:5]]
        y, *moments = raw.FusedBatchNormV3(x=tf.cast(x, tf.float32), scale=scale, offset=offset, mean=mean, variance=variance, **attrs)
        y = y + tf.cast(side, tf.float32) if sides else y
        return [tf.cast(tf.nn.relu(y) if mode == 'Relu' else y, dtype), *moments[:4]]
    compare(lib, arrays, build, with_gradients=False)


# ---- pooling ----

def pool_attrs(layout, window, strides, padding):
    attrs = layout.attrs(strides, padding, ksize=layout.arrange([1, *window, 1]))
    del attrs['dilations']
    return attrs


@pytest.mark.parametrize('dtype', FLOATS)
@pytest.mark.parametrize('padding', ['SAME', 'VALID'])
@pytest.mark.parametrize('strides', STRIDES)
@pytest.mark.parametrize('window', [(2, 2), (3, 2), (1, 4)])
def test_avg_pool(lib, dtype, padding, strides, window):
    rng = np.random.default_rng(5)
    shape = (2, 7, 8, 3)
    out = output_shape(shape, window, strides, (1, 1), padding, 3)

    def build(layout, inputs):
        x, dy = inputs
        attrs = pool_attrs(layout, window, strides, padding)
        return [layout.back(raw.AvgPool(value=layout.put(x), **attrs)),
                layout.back(raw.AvgPoolGrad(orig_input_shape=layout.arrange(shape), grad=layout.put(dy), **attrs))]
    compare(lib, [draw(rng, shape, dtype), draw(rng, out, dtype)], build)


@pytest.mark.parametrize('dtype', FLOATS + INTEGERS)
@pytest.mark.parametrize('padding', PADDINGS)
@pytest.mark.parametrize('strides', STRIDES)
@pytest.mark.parametrize('window', [(2, 2), (3, 3)])
def test_max_pool(lib, dtype, padding, strides, window):
    if padding == 'EXPLICIT' and window == (2, 2):
        pytest.skip('windows must be larger than the padding')
    rng = np.random.default_rng(6)
    shape = (2, 7, 8, 3)
    out = output_shape(shape, window, strides, (1, 1), padding, 3)

    def build(layout, inputs):
        x, dy = layout.put(inputs[0]), layout.put(inputs[1])
        attrs = pool_attrs(layout, window, strides, padding)
        y = raw.MaxPool(input=x, **attrs)
        dx = raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, **attrs)
        results = [y, tf.stop_gradient(dx) if padding == 'EXPLICIT' else dx]  # which has a gradient without padding only
        if padding != 'EXPLICIT':
            results.append(raw.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=x * dx, **attrs))
            as_inputs = {k: v for k, v in attrs.items() if k not in ('ksize', 'strides')}
            as_inputs.update(ksize=tf.constant(attrs['ksize']), strides=tf.constant(attrs['strides']))
            results.append(raw.MaxPoolV2(input=x, **as_inputs))
            results.append(raw.MaxPoolGradV2(orig_input=x, orig_output=y, grad=dy, **as_inputs))
            results.append(tf.stop_gradient(raw.MaxPoolGradGradV2(orig_input=x, orig_output=y, grad=x * dx, **as_inputs)))
        return [layout.back(r) for r in results]
    compare(lib, [draw(rng, shape, dtype), draw(rng, out, dtype)], build)


@pytest.mark.parametrize('dtype', [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize('padding', ['SAME', 'VALID'])
def test_pool3d(lib, dtype, padding):
    rng = np.random.default_rng(9)
    shape, window, strides = (2, 5, 6, 7, 3), (2, 3, 2), (2, 1, 3)
    out = (2, *[extent(n, k, s, 1, padding, (0, 0)) for n, k, s in zip(shape[1:], window, strides)], 3)

    def build(layout, inputs):
        x, dy = layout.put(inputs[0]), layout.put(inputs[1])
        attrs = pool_attrs(layout, window, strides, padding)
        y = raw.MaxPool3D(input=x, **attrs)
        dx = raw.MaxPool3DGrad(orig_input=x, orig_output=y, grad=dy, **attrs)
        results = [y, dx, raw.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=x * dx, **attrs),
                   raw.AvgPool3D(input=x, **attrs),
                   raw.AvgPool3DGrad(orig_input_shape=layout.arrange(shape), grad=dy, **attrs)]
        return [layout.back(r) for r in results]
    compare(lib, [draw(rng, shape, dtype), draw(rng, out, dtype)], build)


# ---- what goes with them ----

@pytest.mark.parametrize('dtype', FLOATS)
def test_bias(lib, dtype):
    rng = np.random.default_rng(7)

    def build(layout, inputs):
        x, bias = inputs
        return [layout.back(raw.BiasAdd(value=layout.put(x), bias=bias, data_format=layout.name()))]
    compare(lib, [draw(rng, (1, 3, 4, 5), dtype), draw(rng, (5,), dtype)], build)


@pytest.mark.parametrize('dtype', [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize('is_training', [True, False])
@pytest.mark.parametrize('shape', [(3, 4, 5, 6), (2, 3, 4, 2, 5)])
def test_batch_norm(lib, dtype, is_training, shape):
    rng = np.random.default_rng(8)
    arrays = [draw(rng, shape, dtype)] + [np.abs(draw(rng, shape[-1:], np.float32)) + 1 for _ in range(4)]

    def build(layout, inputs):
        x, *rest = inputs
        y = raw.FusedBatchNormV3(x=layout.put(x), scale=rest[0], offset=rest[1], mean=rest[2], variance=rest[3],
                                 data_format=layout.name(len(shape)), is_training=is_training)
        return layout.back(y.y) if not is_training else [layout.back(y.y), tf.stop_gradient(y.batch_mean),
                                                         tf.stop_gradient(y.batch_variance)]
    compare(lib, arrays, build)
