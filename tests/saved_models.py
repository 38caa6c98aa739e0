"""Models that TensorFlow makes and runs, and Weir runs through ctypes: what saved_models_test.py and matrix_test.py share."""
import ctypes
import os
import pathlib
import subprocess
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest

tf = pytest.importorskip('tensorflow')
keras = pytest.importorskip('keras')

from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
import libweir

tf1, L = tf.compat.v1, keras.layers
PROGRAM, WEIR = BUILD / 'tests' / 'programs' / 'models', BUILD / 'cli' / 'weir'
rng = np.random.default_rng(3)


# ---- Weir, from outside ----

class Port(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('tensor', ctypes.c_char_p), ('edge', libweir.Edge), ('dtype', ctypes.c_int),
                ('rank', ctypes.c_int), ('dims', ctypes.POINTER(ctypes.c_int64))]


class Signature(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('method', ctypes.c_char_p), ('inputs', ctypes.POINTER(Port)),
                ('input_count', ctypes.c_int), ('outputs', ctypes.POINTER(Port)), ('output_count', ctypes.c_int)]


class Named(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('tensor', ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [('tags', ctypes.c_char_p), ('session', libweir.SessionOptions), ('checkpoint', ctypes.c_char_p)]


class Model:
    def __init__(self, lib, path, tags=None, checkpoint=None):
        self.lib, self.c, self.model = lib, lib.c, ctypes.c_void_p()
        for name in ('weir_model_load', 'weir_model_run'):
            getattr(self.c, name).restype = ctypes.c_void_p
        self.c.weir_model_signature_at.restype = ctypes.POINTER(Signature)
        options = Options(tags=tags and tags.encode(), checkpoint=checkpoint and str(checkpoint).encode(),
                          session=libweir.SessionOptions(threads=1))
        lib.check(self.c.weir_model_load(str(path).encode(), ctypes.byref(options), ctypes.byref(self.model)))
        self.c.weir_model_session.restype = ctypes.c_void_p
        self.session = ctypes.c_void_p(self.c.weir_model_session(self.model))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.c.weir_model_destroy(self.model)

    def signatures(self):
        """{name: ([inputs], [outputs])}"""
        out = {}
        for i in range(self.c.weir_model_signature_count(self.model)):
            s = self.c.weir_model_signature_at(self.model, i)[0]
            out[s.name.decode()] = ([s.inputs[k].name.decode() for k in range(s.input_count)],
                                    [s.outputs[k].name.decode() for k in range(s.output_count)])
        return out

    def run(self, inputs, outputs, name=None):
        fed = [(key.encode(), self.lib.to_tensor(np.asarray(value))) for key, value in inputs.items()]
        given = (Named * max(1, len(fed)))(*[Named(key, tensor) for key, tensor in fed])
        wanted = (Named * max(1, len(outputs)))(*[Named(key.encode(), None) for key in outputs])
        try:
            self.lib.check(self.c.weir_model_run(self.model, name and name.encode(), given, len(fed), wanted, len(outputs), None))
            return {key: self.lib.to_array(wanted[i].tensor) for i, key in enumerate(outputs)}
        finally:
            for _, tensor in fed:
                self.c.weir_tensor_release(tensor)
            for i in range(len(outputs)):
                self.c.weir_tensor_release(ctypes.c_void_p(wanted[i].tensor))


def weir_results(lib, path, inputs, outputs, **options):
    with Model(lib, path, **options) as model:
        return model.run(inputs, outputs)


def run_command(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def freeze(model, out, *options):
    run_command(WEIR, 'freeze', model, out, *options)
    return out


# ---- TensorFlow ----

def tf2_results(path, inputs):
    signature = tf.saved_model.load(str(path)).signatures['serving_default']
    return {key: value.numpy() for key, value in signature(**{key: tf.constant(value) for key, value in inputs.items()}).items()}


def tf1_results(path, inputs):
    with tf1.Session(graph=tf.Graph()) as session:
        signature = tf1.saved_model.load(session, ['serve'], str(path)).signature_def['serving_default']
        return session.run({key: value.name for key, value in signature.outputs.items()},
                           {signature.inputs[key].name: value for key, value in inputs.items()})


def frozen_results(path, inputs, outputs):
    graph_def = tf1.GraphDef.FromString(pathlib.Path(path).read_bytes())
    assert not any(node.op in ('VarHandleOp', 'VariableV2') for node in graph_def.node)
    with tf.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        tf.import_graph_def(graph_def, name='')
        return session.run({key: key + ':0' for key in outputs}, {key + ':0': value for key, value in inputs.items()})


def assert_same(results, expected, atol=1e-5):
    assert results.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(results[key], value, rtol=1e-4, atol=atol, err_msg=key)


# ---- models ----

def floats(*shape):
    return rng.normal(size=shape).astype('f')


def dense():
    layers = [keras.Input((8,)), L.Dense(64, activation='relu'), L.BatchNormalization(), L.Dropout(.5), L.Dense(32), L.Dense(3)]
    return keras.Sequential([*layers, L.Softmax()]), [floats(5, 8)]


def convolution():
    layers = [L.Conv2D(8, 3, activation='relu'), L.MaxPooling2D(), L.BatchNormalization(), L.DepthwiseConv2D(3)]
    return keras.Sequential([keras.Input((16, 16, 3)), *layers, L.GlobalAveragePooling2D(), L.Dense(4)]), [floats(2, 16, 16, 3)]


def lstm():
    layers = [L.Embedding(50, 8, mask_zero=True), L.LSTM(12, return_sequences=True), L.GRU(6), L.Dense(2)]
    return keras.Sequential([keras.Input((7,)), *layers]), [rng.integers(0, 50, size=(3, 7)).astype('f')]


def bidirectional():
    layers = [L.Conv1D(6, 3, padding='causal'), L.Bidirectional(L.LSTM(4)), L.Dense(2)]
    return keras.Sequential([keras.Input((8, 5)), *layers]), [floats(2, 8, 5)]


def two_inputs():
    a, b = keras.Input((4,), name='a'), keras.Input((6,), name='b')
    x = L.LayerNormalization()(L.Concatenate()([L.Dense(5)(a), L.Dense(5)(b)]))
    return keras.Model([a, b], [L.Dense(1, name='y')(x), L.Dense(2, activation='sigmoid', name='z')(x)]), [floats(3, 4), floats(3, 6)]


def attention():
    i = keras.Input((10, 8))
    x = L.LayerNormalization()(L.MultiHeadAttention(2, 4)(i, i) + i)
    return keras.Model(i, L.Dense(3)(L.GlobalAveragePooling1D()(x))), [floats(2, 10, 8)]


def residual():
    i = keras.Input((12, 12, 4))
    x = L.Activation('gelu')(L.GroupNormalization(2)(L.SeparableConv2D(4, 3, padding='same')(i)))
    return keras.Model(i, L.Dense(3)(L.Flatten()(L.UpSampling2D()(L.AveragePooling2D(2)(x + i))))), [floats(2, 12, 12, 4)]


def text():
    words = L.TextVectorization(max_tokens=20, output_sequence_length=6)
    words.adapt(np.array(['the cat sat', 'a dog ran far', 'the dog sat down']))
    layers = [words, L.Embedding(20, 4), L.GlobalAveragePooling1D(), L.Dense(2)]
    return (keras.Sequential([keras.Input((), dtype='string'), *layers]),
            [np.array([b'the dog', b'A cat ran!', b'unknown words'], dtype=object)])


def lookup():
    i = keras.Input((1,), dtype='string')
    x = L.StringLookup(vocabulary=['x', 'y', 'z'], output_mode='one_hot')(i)
    return keras.Model(i, L.Dense(2)(x)), [np.array([[b'y'], [b'q']], dtype=object)]


KERAS = [dense, convolution, lstm, bidirectional, two_inputs, attention, residual, text, lookup]


class Module(tf.Module):
    """Functions with a loop and a conditional in which variables are read, a counter, a table read from an asset."""

    def __init__(self, words):
        super().__init__()
        self.w = tf.Variable(floats(3, 3), name='w')
        self.count = tf.Variable(0, dtype=tf.int64, name='count')
        self.asset = tf.saved_model.Asset(words)
        initializer = tf.lookup.TextFileInitializer(self.asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                                    tf.lookup.TextFileIndex.LINE_NUMBER)
        self.table = tf.lookup.StaticHashTable(initializer, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([], tf.int32)])
    def loop(self, x, k):
        for _ in tf.range(k):
            x = tf.cond(tf.reduce_sum(x) > 0, lambda: x @ self.w, lambda: tf.nn.relu(x) + self.w[0])
        return {'y': x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, words):
        self.count.assign_add(1)
        return {'ids': self.table.lookup(words), 'count': self.count.read_value()}


class Tables(tf.Module):
    """A table that changes, read in a branch and in a loop, beside one that is filled once and a variable."""

    def __init__(self):
        super().__init__()
        self.ids = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        initializer = tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1, -1], tf.int64), [.5, 1.5, 9.])
        self.weights = tf.lookup.StaticHashTable(initializer, 0.)
        self.scale = tf.Variable(2., name='scale')
        self.ids.insert(tf.constant(['a', 'b']), tf.constant([0, 1], tf.int64))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name='words')])
    def weigh(self, words):
        ids = tf.cond(tf.size(words) > 2, lambda: self.ids.lookup(words), lambda: self.ids.lookup(words) + 1)
        total = tf.zeros_like(ids, tf.float32)
        for _ in tf.range(2):
            total += self.scale * self.weights.lookup(ids)
        return {'total': total, 'size': self.ids.size() + tf.size(words, tf.int64)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name='words')])
    def learn(self, words):
        self.ids.insert(words, tf.fill(tf.shape(words), tf.constant(1, tf.int64)))
        return {'size': self.ids.size()}


def graph_mode():
    """Adds a model to the graph, of a reference variable, a resource and a table: its inputs, outputs, and a step that trains it."""
    x, s = tf1.placeholder(tf.float32, [None, 4], name='x'), tf1.placeholder(tf.string, [None], name='s')
    w = tf1.get_variable('w', [4, 3], use_resource=False, initializer=tf1.random_normal_initializer(seed=1))
    b = tf1.get_variable('b', [3], use_resource=True, initializer=tf1.ones_initializer())
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(['a', 'b'], tf.constant([1, 2], tf.int64)), -1)
    y, z = tf.nn.softmax(x @ w + b, name='y'), tf.identity(table.lookup(s), name='z')
    step = tf1.train.AdamOptimizer().minimize(tf1.reduce_sum(y[:, 0]), name='step')
    return {'x': x, 's': s}, {'y': y, 'z': z}, step
