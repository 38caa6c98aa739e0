"""Attention equals Keras' MultiHeadAttention and the formulas of its papers: outputs, weights, gradients, names of variables."""
import ctypes
import os
import pathlib
import sys

import numpy as np
import pytest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
tf = pytest.importorskip('tensorflow')
v1 = tf.compat.v1

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests'))
from rnn_test import LIB, POINTER, Edge, Init, Model, OptFloat, check, placeholders_only, random_values  # noqa: E402


class Result(ctypes.Structure):
    _fields_ = [('output', Edge), ('weights', Edge)]


class Options(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('mask', Edge), ('is_causal', ctypes.c_bool), ('scale', OptFloat),
                ('dropout_rate', ctypes.c_float), ('training', Edge), ('is_training', ctypes.c_bool), ('seed', ctypes.c_int64)]


class HeadOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('name', ctypes.c_char_p), ('key', Edge), ('value_dim', ctypes.c_int),
                ('output_size', ctypes.c_int), ('no_bias', ctypes.c_bool), ('kernel_init', Init), ('bias_init', Init),
                ('mask', Edge), ('is_causal', ctypes.c_bool), ('dropout_rate', ctypes.c_float), ('training', Edge),
                ('is_training', ctypes.c_bool), ('seed', ctypes.c_int64)]


class MemoryOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('name', ctypes.c_char_p), ('memory_length', Edge), ('normalize', ctypes.c_bool),
                ('kernel_init', Init)]


LIB.c.weir_attention_with.restype = LIB.c.weir_multi_head_attention_with.restype = LIB.c.weir_attend.restype = Result
LIB.c.weir_bahdanau_attention_with.restype = LIB.c.weir_luong_attention_with.restype = POINTER
LIB.c.weir_positional_encoding.restype = Edge


def model_of(feeds, unknown=()):
    """A model with a placeholder for each of |feeds|."""
    with tf.Graph().as_default() as graph:
        for name, value in feeds.items():
            shape = [None if (name, i) in unknown else d for i, d in enumerate(value.shape)]
            v1.placeholder(value.dtype, shape, name)
        return Model(placeholders_only(graph))


def named(feeds):
    return {f'{k}:0': v for k, v in feeds.items()}


def reference(q, k, v, mask=None, scale=None):
    scores = tf.matmul(q, k, transpose_b=True) * (scale if scale is not None else q.shape[-1] ** -0.5)
    if mask is not None:
        scores = tf.where(mask, scores, tf.constant(-1e9, scores.dtype))
    weights = tf.nn.softmax(scores)
    return tf.matmul(weights, v), weights


@pytest.mark.parametrize('kind', ['plain', 'mask', 'causal', 'both', 'scale', 'nothing'])
@pytest.mark.parametrize('leading', [(), (2,), (2, 3)])
def test_dot_product(kind, leading):
    feeds = {'q': random_values([*leading, 4, 6], np.float32, 1), 'k': random_values([*leading, 5, 6], np.float32, 2),
             'v': random_values([*leading, 5, 3], np.float32, 3)}
    mask = None
    if kind in ('mask', 'both'):
        mask = np.random.default_rng(4).random([*leading, 4, 5]) < 0.6
        mask[..., 0] = True
    if kind == 'nothing':
        mask = np.zeros([4, 5], bool)
        mask[1:] = True
    causal = np.tril(np.ones([4, 5], bool))
    seen = mask
    if kind in ('causal', 'both'):
        seen = causal if mask is None else mask & causal
    scale = 0.3 if kind == 'scale' else None
    xs = [tf.constant(a) for a in feeds.values()]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        expected = reference(*xs, seen, scale)
        loss = tf.reduce_sum(expected[0] ** 2)
    expected_grads = tape.gradient(loss, xs)
    if mask is not None:
        feeds['mask'] = mask
    model = model_of(feeds)
    try:
        options = Options(is_causal=kind in ('causal', 'both'))
        if mask is not None:
            options.mask = model.edge('mask:0')
        if scale:
            options.scale = OptFloat(scale, True)
        edges = [model.edge(f'{n}:0') for n in 'qkv']
        made = model.c.weir_attention_with(model.scope, *edges, ctypes.byref(options))
        model.ok()
        output, weights = model.run([made.output, made.weights], named(feeds))
        check([output, weights], [e.numpy() for e in expected], 1e-5)
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        grads = model.gradients([made.output], edges, [made.output])
        check(model.run(grads, named(feeds)), [g.numpy() / 2 for g in expected_grads], 1e-5)
    finally:
        model.close()


@pytest.mark.parametrize('kind', ['self', 'cross', 'mask', 'causal', 'no_bias'])
def test_multi_head(kind):
    query, value = random_values([2, 4, 6], np.float32, 1), random_values([2, 5, 3], np.float32, 2)
    feeds = {'query': query, 'value': query if kind in ('self', 'causal') else value}
    call = {}
    if kind == 'cross':
        feeds['key'] = random_values([2, 5, 7], np.float32, 3)
        call['key'] = feeds['key']
    if kind == 'mask':
        mask = np.random.default_rng(4).random([2, 4, 5]) < 0.6
        mask[..., 0] = True
        feeds['mask'] = call['attention_mask'] = mask
    options = {'value_dim': 3, 'output_shape': 4} if kind == 'cross' else {}
    layer = tf.keras.layers.MultiHeadAttention(3, 4, use_bias=kind != 'no_bias', **options)
    xs = {k: tf.constant(v) for k, v in feeds.items() if k != 'mask'}
    layer(xs['query'], xs['value'], **call)
    layer.set_weights([random_values(w.shape, np.float32, 20 + i) for i, w in enumerate(layer.get_weights())])
    if 'key' in xs:
        call['key'] = xs['key']
    with tf.GradientTape() as tape:
        tape.watch(xs)
        output, weights = layer(xs['query'], xs['value'], return_attention_scores=True, use_causal_mask=kind == 'causal', **call)
    expected_grads = tape.gradient(output, [xs[k] for k in xs], tf.sin(output))
    values = {w.path.split('/', 1)[1]: w.numpy() for w in layer.weights}
    model = model_of(feeds)
    try:
        head = HeadOptions(no_bias=kind == 'no_bias', is_causal=kind == 'causal')
        if kind == 'cross':
            head.key, head.value_dim, head.output_size = model.edge('key:0'), 3, 4
        if kind == 'mask':
            head.mask = model.edge('mask:0')
        made = model.c.weir_multi_head_attention_with(model.scope, model.edge('query:0'), model.edge('value:0'), 3, 4,
                                                      ctypes.byref(head))
        model.ok()
        model.assign({f'multi_head_attention/{k}': v for k, v in values.items()})
        check(model.run([made.output, made.weights], named(feeds)), [output.numpy(), weights.numpy()], 1e-5)
        dy = model.c.weir_op_sin
        dy.restype = Edge
        grads = model.gradients([made.output], [model.edge(f'{k}:0') for k in xs], [dy(model.scope, made.output)])
        check(model.run(grads, named(feeds)), [g.numpy() for g in expected_grads], 3e-5)
    finally:
        model.close()


@pytest.mark.parametrize('kind', ['bahdanau', 'luong'])
@pytest.mark.parametrize('normalize', [False, True])
@pytest.mark.parametrize('lengths', [None, [5, 2, 1]])
def test_memory(kind, normalize, lengths):
    feeds = {'memory': random_values([3, 5, 4], np.float32, 1), 'query': random_values([3, 6], np.float32, 2)}
    if lengths:
        feeds['lengths'] = np.array(lengths, np.int32)
    prefix = f'{kind}_attention/'
    values = {prefix + 'memory_layer/kernel': random_values([4, 6], np.float32, 3)}
    if kind == 'bahdanau':
        values[prefix + 'query_layer/kernel'] = random_values([6, 6], np.float32, 4)
        values[prefix + 'attention_v'] = random_values([6], np.float32, 5)
    if normalize:
        values[prefix + 'attention_g'] = np.array(0.7, np.float32)
    if normalize and kind == 'bahdanau':
        values[prefix + 'attention_b'] = random_values([6], np.float32, 6)
    xs = [tf.constant(feeds['memory']), tf.constant(feeds['query'])]
    get = {k[len(prefix):]: tf.constant(v) for k, v in values.items()}
    with tf.GradientTape() as tape:
        tape.watch(xs)
        tape.watch(list(get.values()))
        memory, query = xs
        if lengths:
            memory *= tf.sequence_mask(lengths, 5, tf.float32)[:, :, None]
        keys = memory @ get['memory_layer/kernel']
        if kind == 'bahdanau':
            v, b = get['attention_v'], 0.
            if normalize:
                v, b = get['attention_g'] * v * tf.math.rsqrt(tf.reduce_sum(v * v)), get['attention_b']
            scores = tf.reduce_sum(v * tf.tanh(keys + (query @ get['query_layer/kernel'])[:, None] + b), 2)
        else:
            scores = tf.reduce_sum(keys * query[:, None], 2) * (get['attention_g'] if normalize else 1)
        if lengths:
            scores = tf.where(tf.sequence_mask(lengths, 5), scores, -np.inf)
        weights = tf.nn.softmax(scores)
        output = tf.reduce_sum(weights[:, :, None] * memory, 1)
    expected_grads = tape.gradient(output, xs + list(get.values()), tf.sin(output))
    model = model_of(feeds)
    try:
        options = MemoryOptions(normalize=normalize)
        if lengths:
            options.memory_length = model.edge('lengths:0')
        make = getattr(model.c, f'weir_{kind}_attention_with')
        attention = POINTER(make(model.scope, model.edge('memory:0'), 6, ctypes.byref(options)))
        made = model.ok(model.c.weir_attend(attention, model.scope, model.edge('query:0')))
        model.ok()
        model.assign(values)
        check(model.run([made.output, made.weights], named(feeds)), [output.numpy(), weights.numpy()], 1e-5)
        dy = model.c.weir_op_sin
        dy.restype = Edge
        variables = model.variables()
        wrt = [model.edge('memory:0'), model.edge('query:0')] + [variables[prefix + k].handle for k in get]
        grads = model.gradients([made.output], wrt, [dy(model.scope, made.output)])
        check(model.run(grads, named(feeds)), [g.numpy() for g in expected_grads], 3e-5)
    finally:
        model.close()


def test_positions():
    model = model_of({'x': np.zeros(1, np.float32)})
    try:
        got = model.run([model.c.weir_positional_encoding(model.scope, 7, 6)])[0]
        p, i = np.meshgrid(np.arange(7), np.arange(6), indexing='ij')
        angle = p / 10000. ** (i // 2 * 2 / 6)
        np.testing.assert_allclose(got, np.where(i % 2, np.cos(angle), np.sin(angle)), atol=1e-6)
    finally:
        model.close()


def test_errors():
    feeds = {'x': np.zeros([2, 3, 4], np.float32), 'mask': np.zeros([2, 3, 3], np.float32)}
    model = model_of(feeds)
    x = model.edge('x:0')
    model.c.weir_attention_with(model.scope, x, x, x, ctypes.byref(Options(mask=model.edge('mask:0'))))
    with pytest.raises(RuntimeError, match='must be bool'):
        model.ok()
    with pytest.raises(Exception):
        model.close()
    model = model_of(feeds)
    x = model.edge('x:0')
    attention = POINTER(model.c.weir_luong_attention_with(model.scope, x, 5, ctypes.byref(MemoryOptions())))
    model.c.weir_attend(attention, model.scope, x)
    with pytest.raises(RuntimeError, match='must be a matrix'):
        model.ok()
    with pytest.raises(Exception):
        model.close()
