"""Models that TensorFlow writes and Weir reads, and the other way round.

Needs tensorflow, which makes the models in this process; Weir runs them through ctypes (weir_model_load, weir_model_run), saves them
again (tests/programs/models.c) and freezes them (weir freeze), and TensorFlow reads what comes out. docs/models.md tells of all this.
"""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest

tf = pytest.importorskip('tensorflow')
keras = pytest.importorskip('keras')
from tensorflow.core.protobuf import saved_model_pb2

from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
import libweir

tf1, L = tf.compat.v1, keras.layers
PROGRAM, WEIR = BUILD / 'tests' / 'programs' / 'models', BUILD / 'cli' / 'weir'
FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, DATA_LOSS = 9, 3, 5, 12, 15
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


@pytest.fixture(scope='module')
def lib():
    return libweir.Library(str(BUILD / 'libweir.so'))


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


def saved(make, path):
    """Exports a model; its inputs by name and what it gives for them."""
    keras.utils.set_random_seed(7)
    model, values = make()
    model.export(str(path), verbose=False)
    signature = tf.saved_model.load(str(path)).signatures['serving_default']
    inputs = dict(zip(sorted(signature.structured_input_signature[1]), values))
    results = signature(**{key: tf.constant(value) for key, value in inputs.items()})
    return inputs, {key: value.numpy() for key, value in results.items()}


# ---- the matrix: each model is read, saved again and read by TensorFlow, frozen and read by both ----

@pytest.mark.parametrize('make', KERAS)
def test_keras(make, lib, tmp_path):
    inputs, expected = saved(make, tmp_path / 'model')
    assert_same(weir_results(lib, tmp_path / 'model', inputs, expected), expected)
    run_command(PROGRAM, 'twice', tmp_path / 'model', tmp_path / 'again')
    assert_same(weir_results(lib, tmp_path / 'again', inputs, expected), expected)
    assert_same(tf1_results(tmp_path / 'again', inputs), expected)
    if make in (dense, text):  # it takes seconds
        assert_same(tf2_results(tmp_path / 'again', inputs), expected)
    frozen = freeze(tmp_path / 'model', tmp_path / 'frozen.pb')
    assert_same(weir_results(lib, frozen, inputs, expected), expected)
    assert_same(frozen_results(frozen, inputs, expected), expected)


class Module(tf.Module):
    """Functions with a loop and a conditional in which variables are read, a counter, a table read from an asset."""

    def __init__(self, words):
        super().__init__()
        self.w = tf.Variable(floats(3, 3))
        self.count = tf.Variable(0, dtype=tf.int64)
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


def test_module(lib, tmp_path):
    (tmp_path / 'words.txt').write_text('alpha\nbeta\n')
    module = Module(str(tmp_path / 'words.txt'))
    tf.saved_model.save(module, str(tmp_path / 'model'), signatures={'serving_default': module.loop, 'look': module.look})
    (tmp_path / 'words.txt').unlink()
    shutil.move(tmp_path / 'model', tmp_path / 'moved')  # assets are found where they are now
    words = np.array([b'beta', b'gamma'], dtype=object)
    with Model(lib, tmp_path / 'moved') as model:
        assert model.signatures() == {'serving_default': (['k', 'x'], ['y']), 'look': (['words'], ['count', 'ids'])}
        for turn in (1, 2, 3):  # state stays
            out = model.run({'words': words}, ['ids', 'count', 'ids'], 'look')
            assert out['ids'].tolist() == [1, -1] and out['count'] == turn
        with pytest.raises(libweir.Error, match="AssignAddVariableOp.* variable 'count|variable"):
            freeze_in_process(lib, model, b'look')
    frozen = freeze(tmp_path / 'moved', tmp_path / 'frozen.pbtxt')
    for x in (floats(2, 3), -np.ones((2, 3), 'f')):
        inputs = {'x': x, 'k': np.int32(4)}
        expected = {'y': module.loop(tf.constant(x), tf.constant(4))['y'].numpy()}
        assert_same(weir_results(lib, tmp_path / 'moved', inputs, ['y']), expected)
        assert_same(weir_results(lib, frozen, inputs, ['y']), expected)


def freeze_in_process(lib, model, signature):
    class FreezeOptions(ctypes.Structure):
        _fields_ = [('signature', ctypes.c_char_p), ('quantize_int8', ctypes.c_bool)]

    lib.c.weir_model_freeze.restype = ctypes.c_void_p
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = FreezeOptions(signature=signature)
    lib.check(lib.c.weir_model_freeze(model.model, ctypes.byref(options), ctypes.byref(data), ctypes.byref(size)))


class Tables(tf.Module):
    """A table that changes, read in a branch and in a loop, beside one that is filled once."""

    def __init__(self):
        super().__init__()
        self.ids = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        initializer = tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1, -1], tf.int64), [.5, 1.5, 9.])
        self.weights = tf.lookup.StaticHashTable(initializer, 0.)
        self.ids.insert(tf.constant(['a', 'b']), tf.constant([0, 1], tf.int64))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name='words')])
    def weigh(self, words):
        ids = tf.cond(tf.size(words) > 2, lambda: self.ids.lookup(words), lambda: self.ids.lookup(words) + 1)
        total = tf.zeros_like(ids, tf.float32)
        for _ in tf.range(2):
            total += self.weights.lookup(ids)
        return {'total': total, 'size': self.ids.size() + tf.size(words, tf.int64)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name='words')])
    def learn(self, words):
        self.ids.insert(words, tf.fill(tf.shape(words), tf.constant(1, tf.int64)))
        return {'size': self.ids.size()}


def test_tables_are_frozen_with_what_is_in_them(lib, tmp_path):
    module = Tables()
    tf.saved_model.save(module, str(tmp_path / 'model'), signatures={'serving_default': module.weigh, 'learn': module.learn})
    frozen = freeze(tmp_path / 'model', tmp_path / 'frozen.pb')
    for words in ([b'a', b'c', b'b'], [b'a', b'c']):
        inputs = {'words': np.array(words, dtype=object)}
        expected = {key: value.numpy() for key, value in module.weigh(tf.constant(words)).items()}
        assert_same(weir_results(lib, frozen, inputs, expected), expected)
        assert_same(frozen_results(frozen, inputs, expected), expected)
    with Model(lib, tmp_path / 'model') as model:
        more = {'words': np.array([b'c', b'd'], dtype=object)}
        assert model.run(more, ['size'], 'learn')['size'] == 4
        with pytest.raises(libweir.Error, match=r"\(LookupTableInsertV2\) changes a table"):
            freeze_in_process(lib, model, b'learn')


@pytest.fixture(scope='module')
def old(tmp_path_factory):
    """A model of graph mode with a reference variable, a resource and a table: (folder, inputs, results)."""
    folder = tmp_path_factory.mktemp('old')
    with tf.Graph().as_default(), tf1.Session() as session:
        x, s = tf1.placeholder(tf.float32, [None, 4], name='x'), tf1.placeholder(tf.string, [None], name='s')
        w = tf1.get_variable('w', [4, 3], use_resource=False, initializer=tf1.random_normal_initializer(seed=1))
        b = tf1.get_variable('b', [3], use_resource=True, initializer=tf1.ones_initializer())
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(['a', 'b'], tf.constant([1, 2], tf.int64)), -1)
        y, z = tf.nn.softmax(x @ w + b, name='y'), tf.identity(table.lookup(s), name='z')
        step = tf1.train.AdamOptimizer().minimize(tf1.reduce_sum(y[:, 0]), name='step')
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        inputs = {'x': floats(2, 4), 's': np.array([b'b', b'q'], dtype=object)}
        session.run(step, {x: inputs['x']})
        results = dict(zip('yz', session.run([y, z], {x: inputs['x'], s: inputs['s']})))
        saver = tf1.train.Saver()
        tf1.saved_model.simple_save(session, str(folder / 'model'), {'x': x, 's': s}, {'y': y, 'z': z},
                                    legacy_init_op=tf1.tables_initializer())
        saver.save(session, str(folder / 'train'))
        frozen = tf1.graph_util.convert_variables_to_constants(session, session.graph_def, ['y'])
        (folder / 'frozen.pb').write_bytes(frozen.SerializeToString())
        tf.io.write_graph(frozen, str(folder), 'frozen.pbtxt')
        tf.io.write_graph(tf1.graph_util.extract_sub_graph(session.graph_def, ['y']), str(folder), 'graph.pb', as_text=False)
    return folder, inputs, results


def test_graph_mode(lib, tmp_path, old):
    folder, inputs, expected = old
    assert_same(weir_results(lib, folder / 'model', inputs, expected), expected)
    run_command(PROGRAM, 'twice', folder / 'model', tmp_path / 'again')
    assert_same(tf1_results(tmp_path / 'again', inputs), expected)
    assert_same(tf2_results(tmp_path / 'again', inputs), expected)


@pytest.mark.parametrize('file', ['frozen.pb', 'frozen.pbtxt', 'graph.pb', 'train.meta'])
def test_graph_files(lib, tmp_path, old, file):
    folder, inputs, expected = old
    checkpoint = folder / 'train' if file in ('graph.pb', 'train.meta') else None
    with Model(lib, folder / file, checkpoint=checkpoint) as model:
        assert 'x' in model.signatures()['serving_default'][0]
        result = 'z' if file == 'train.meta' else 'y'  # the gradient reads y: it is no end of that graph
        assert set(model.signatures()['serving_default'][1]) >= {result}
        fed = {name: inputs[name] for name in model.signatures()['serving_default'][0]}
        assert_same(model.run(fed, [result]), {result: expected[result]})
    if file == 'graph.pb':
        frozen = freeze(folder / file, tmp_path / 'frozen.pb', f'--checkpoint={checkpoint}')
        assert_same(frozen_results(frozen, {'x': inputs['x']}, ['y']), {'y': expected['y']})


def test_quantized(lib, tmp_path):
    inputs, expected = saved(dense, tmp_path / 'model')
    whole = freeze(tmp_path / 'model', tmp_path / 'whole.pb')
    small = freeze(tmp_path / 'model', tmp_path / 'small.pb', '--quantize=int8')
    assert small.stat().st_size < whole.stat().st_size - 2048 * 2  # the 64x32 kernel
    results = weir_results(lib, small, inputs, expected)
    assert_same(results, expected, atol=.02)
    assert any(np.abs(results[key] - expected[key]).max() > 1e-7 for key in expected)  # something was rounded
    assert_same(frozen_results(small, inputs, expected), results)


# ---- what Weir builds ----

def test_weir_writes(lib, tmp_path):
    run_command(PROGRAM, 'dense', tmp_path / 'dense')
    x = floats(4, 3)
    w, b = np.array([[1, -2], [3, .5], [2, -1]], 'f'), np.array([1, -2], 'f')
    expected = {'output': np.maximum(x @ w + b, 0)}
    assert_same(weir_results(lib, tmp_path / 'dense', {'input': x}, ['output']), expected)
    assert_same(tf1_results(tmp_path / 'dense', {'input': x}), expected)
    assert_same(tf2_results(tmp_path / 'dense', {'input': x}), expected)
    assert [name for name, _ in tf.train.list_variables(str(tmp_path / 'dense' / 'variables' / 'variables'))] == ['b', 'w']
    assert [v.name for v in tf.saved_model.load(str(tmp_path / 'dense')).variables] == ['w:0', 'b:0']
    (tmp_path / 'words.txt').write_text('alpha\nbeta\n')
    run_command(PROGRAM, 'table', tmp_path / 'table', tmp_path / 'words.txt')
    (tmp_path / 'words.txt').unlink()
    words = {'words': np.array([b'beta', b'gamma'], dtype=object)}
    for results in (weir_results(lib, tmp_path / 'table', words, ['ids']), tf1_results(tmp_path / 'table', words),
                    tf2_results(tmp_path / 'table', words)):
        assert results['ids'].tolist() == [1, -1]


def test_saving_is_all_or_nothing(tmp_path):
    run_command(PROGRAM, 'dense', tmp_path / 'deep' / 'dense/')
    done = subprocess.run([PROGRAM, 'dense', tmp_path / 'deep' / 'dense'], capture_output=True, text=True)
    assert done.returncode == 1 and 'ALREADY_EXISTS' in done.stderr
    done = subprocess.run([PROGRAM, 'table', tmp_path / 'deep' / 'table', tmp_path / 'none.txt'], capture_output=True, text=True)
    assert done.returncode == 1 and 'none.txt' in done.stderr
    assert [entry.name for entry in (tmp_path / 'deep').iterdir()] == ['dense']


# ---- what goes wrong ----

@pytest.fixture(scope='module')
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp('exported') / 'model'
    inputs, expected = saved(dense, folder)
    return folder, inputs, expected


def refused(lib, path, code, words, **options):
    with pytest.raises(libweir.Error) as caught:
        Model(lib, path, **options)
    assert caught.value.code == code, caught.value.message
    for word in [words] if isinstance(words, str) else words:
        assert word in caught.value.message


def test_wrong_runs(lib, exported):
    folder, inputs, expected = exported
    (key, x), output = next(iter(inputs.items())), next(iter(expected))
    with Model(lib, folder) as model:
        for given, asked, name, code, words in [
                ({}, [output], None, INVALID_ARGUMENT, f"input '{key}' is missing; inputs are '{key}'"),
                ({key: x, 'b': x}, [output], None, INVALID_ARGUMENT, f"input 'b' is unknown; inputs are '{key}'"),
                ({key: x}, ['nothing'], None, INVALID_ARGUMENT, f"output 'nothing' is unknown; outputs are '{output}'"),
                ({key: x}, [], None, INVALID_ARGUMENT, 'no output'),
                ({key: x.astype('d')}, [output], None, INVALID_ARGUMENT, 'is float[?,8], not double[5,8]'),
                ({key: x[:, :3]}, [output], None, INVALID_ARGUMENT, 'is float[?,8], not float[5,3]'),
                ({key: x}, [output], 'train', NOT_FOUND, "no signature 'train'; it has 'serve', 'serving_default'")]:
            with pytest.raises(libweir.Error) as caught:
                model.run(given, asked, name)
            assert caught.value.code == code and words in caught.value.message, caught.value.message
        assert_same(model.run(inputs, expected), expected)


def changed(folder, tmp_path, change):
    """A copy of a model whose saved_model.pb is changed."""
    shutil.copytree(folder, tmp_path / 'changed', dirs_exist_ok=True)
    file = tmp_path / 'changed' / 'saved_model.pb'
    message = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    change(message.meta_graphs[0])
    file.write_bytes(message.SerializeToString())
    return tmp_path / 'changed'


def test_wrong_models(lib, exported, tmp_path):
    folder = exported[0]
    refused(lib, folder, NOT_FOUND, ["tags 'serve,gpu'", "there are 'serve'"], tags='serve,gpu')
    refused(lib, tmp_path, NOT_FOUND, 'saved_model.pb')
    refused(lib, tmp_path / 'none', NOT_FOUND, 'none')

    def new_ops(meta):
        meta.graph_def.library.function[0].node_def[0].op = 'NewInFunction'
        meta.graph_def.node.add(name='late', op='NewInGraph')
        meta.signature_def['serving_default'].outputs['late'].name = 'late:0'

    refused(lib, changed(folder, tmp_path, new_ops), UNIMPLEMENTED, ['NewInGraph', 'late'])

    def no_tensor(meta):
        meta.signature_def['serving_default'].inputs['keras'].name = 'gone:0'

    refused(lib, changed(folder, tmp_path, no_tensor), NOT_FOUND, ['serving_default', 'gone'])

    def far_asset(meta):
        asset = meta.asset_file_def.add(filename='../../etc/passwd')
        asset.tensor_info.name = 'x:0'

    refused(lib, changed(folder, tmp_path, far_asset), INVALID_ARGUMENT, '../../etc/passwd')


def test_damaged_models(lib, exported, tmp_path):
    folder, inputs, expected = exported
    shutil.copytree(folder, tmp_path / 'model')
    file = tmp_path / 'model' / 'saved_model.pb'
    whole = file.read_bytes()
    for size in [0, *range(1, len(whole), len(whole) // 24)]:
        file.write_bytes(whole[:size])
        refused(lib, tmp_path / 'model', DATA_LOSS, 'saved_model.pb')
    for _ in range(24):  # anything may come of it but a crash
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] ^= int(rng.integers(1, 256))
        file.write_bytes(bytes(damaged))
        try:
            weir_results(lib, tmp_path / 'model', inputs, expected)
        except libweir.Error as error:
            assert error.message
    file.write_bytes(whole)
    data = tmp_path / 'model' / 'variables' / 'variables.data-00000-of-00001'
    bytes_of_variables = data.read_bytes()
    data.write_bytes(bytes_of_variables[:100])
    refused(lib, tmp_path / 'model', DATA_LOSS, 'variables')
    data.unlink()
    refused(lib, tmp_path / 'model', NOT_FOUND, 'variables.data')
    (tmp_path / 'model' / 'variables' / 'variables.index').unlink()
    refused(lib, tmp_path / 'model', NOT_FOUND, 'variables.index')
