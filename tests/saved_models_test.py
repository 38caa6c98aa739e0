"""Models that TensorFlow writes and Weir reads, and the other way round.

Needs tensorflow, which makes the models in this process; Weir runs them through ctypes (weir_model_load, weir_model_run), saves them
again (tests/programs/models.c) and freezes them (weir freeze), and TensorFlow reads what comes out. docs/models.md tells of all this.
"""
import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from conftest import BUILD
from saved_models import (PROGRAM, Model, Module, Tables, assert_same, dense, floats, freeze, frozen_results, graph_mode, keras, libweir,
                          rng, run_command, tf, tf1, tf1_results, tf2_results, weir_results)
from tensorflow.core.protobuf import saved_model_pb2

FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, DATA_LOSS = 9, 3, 5, 12, 15


@pytest.fixture(scope='module')
def lib():
    return libweir.Library(str(BUILD / 'libweir.so'))


def saved(make, path):
    """Exports a model; its inputs by name and what it gives for them."""
    keras.utils.set_random_seed(7)
    model, values = make()
    model.export(str(path), verbose=False)
    signature = tf.saved_model.load(str(path)).signatures['serving_default']
    inputs = dict(zip(sorted(signature.structured_input_signature[1]), values))
    results = signature(**{key: tf.constant(value) for key, value in inputs.items()})
    return inputs, {key: value.numpy() for key, value in results.items()}


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


class Dense(tf.Module):
    """Tables whose values are vectors, one of them without a limit on its keys."""

    def __init__(self):
        super().__init__()
        self.rows = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0., 0.])
        self.dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [-1., -1.], empty_key=-1, deleted_key=-2)
        self.rows.insert(tf.constant(['a', 'b']), tf.constant([[1., 2.], [3., 4.]]))
        self.dense.insert(tf.constant([5, 7], tf.int64), tf.constant([[5., 6.], [7., 8.]]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name='words'), tf.TensorSpec([None], tf.int64, name='ids')])
    def look(self, words, ids):
        return {'rows': self.rows.lookup(words), 'dense': self.dense.lookup(ids)}


def test_tables_of_vectors_are_saved(lib, tmp_path):
    module = Dense()
    tf.saved_model.save(module, str(tmp_path / 'model'), signatures=module.look)
    run_command(PROGRAM, 'twice', tmp_path / 'model', tmp_path / 'again')  # which has no variables
    inputs = {'words': np.array([b'b', b'c'], dtype=object), 'ids': np.array([7, 6])}
    expected = {'rows': np.array([[3, 4], [0, 0]], 'f'), 'dense': np.array([[7, 8], [-1, -1]], 'f')}
    assert_same(weir_results(lib, tmp_path / 'again', inputs, expected), expected)
    assert_same(tf1_results(tmp_path / 'again', inputs), expected)
    assert_same(tf2_results(tmp_path / 'again', inputs), expected)


@pytest.fixture(scope='module')
def old(tmp_path_factory):
    """The model of graph mode in files of TensorFlow 1's: (folder, inputs, results)."""
    folder = tmp_path_factory.mktemp('old')
    with tf.Graph().as_default(), tf1.Session() as session:
        placeholders, outputs, step = graph_mode()
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        inputs = {'x': floats(2, 4), 's': np.array([b'b', b'q'], dtype=object)}
        fed = {placeholder: inputs[name] for name, placeholder in placeholders.items()}
        session.run(step, fed)
        results = session.run(outputs, fed)
        saver = tf1.train.Saver()
        saver.save(session, str(folder / 'train'))
        frozen = tf1.graph_util.convert_variables_to_constants(session, session.graph_def, ['y'])
        (folder / 'frozen.pb').write_bytes(frozen.SerializeToString())
        tf.io.write_graph(frozen, str(folder), 'frozen.pbtxt')
        tf.io.write_graph(tf1.graph_util.extract_sub_graph(session.graph_def, ['y']), str(folder), 'graph.pb', as_text=False)
    return folder, inputs, results


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
