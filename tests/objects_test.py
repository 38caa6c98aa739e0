"""Checkpoints of TensorFlow 2's objects (tf.train.Checkpoint, Keras models): listed by path, read, restored into a graph where TensorFlow
writes them, and read by TensorFlow where Weir does."""
import ctypes
import json
import os
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

tf1 = tf.compat.v1
INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 3, 5, 9
rng = np.random.default_rng(5)


class Layer(tf.Module):
    def __init__(self, name):
        super().__init__(name)
        self.kernel = tf.Variable(rng.normal(size=(3, 2)).astype('f'), name=f'{name}/kernel')


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """(prefix, the values of variables by the paths that TensorFlow knows them by)"""
    model = tf.Module()
    model.layers = [Layer('first'), Layer('second')]
    model.named = {'a/b.c': model.layers[1]}  # another way to the second, with a name that keys spell otherwise
    model.scale = tf.Variable(np.float32(2.5), name='scale')
    model.ids = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    model.ids.insert(tf.constant(['one', 'two']), tf.constant([1, 2], tf.int64))
    step = tf.Variable(7, dtype=tf.int64, name='step')
    prefix = tf.train.Checkpoint(model=model, step=step).save(str(tmp_path_factory.mktemp('objects') / 'ckpt'))
    return prefix, {'model/layers/0/kernel': model.layers[0].kernel, 'model/layers/1/kernel': model.layers[1].kernel,
                    'model/named/a.Sb..c/kernel': model.layers[1].kernel, 'model/scale': model.scale, 'step': step}


@pytest.fixture(scope='module')
def lib():
    library = libweir.Library(str(BUILD / 'libweir.so'))
    for name in ('weir_objects_open', 'weir_objects_restore', 'weir_objects_save', 'weir_session_read_variable'):
        getattr(library.c, name).restype = ctypes.c_void_p
    return library


def test_they_are_listed_by_path(saved, weir):
    prefix, _ = saved
    listed = json.loads(weir('checkpoint', 'list', prefix, '--json').stdout)
    keys = {name for name, _ in tf.train.list_variables(prefix)}
    assert {tensor['name'] for tensor in listed['tensors']} == keys
    assert {value['key'] for value in listed['objects']} == keys - {'_CHECKPOINTABLE_OBJECT_GRAPH'}
    names = {value['path']: value['name'] for value in listed['objects'] if value['attribute'] == 'VARIABLE_VALUE'}
    assert names == {'model/layers/0/kernel': 'first/kernel', 'model/layers/1/kernel': 'second/kernel', 'model/scale': 'scale', 'step': 'step',
                     'save_counter': 'save_counter'}
    assert 'model/layers/0/kernel                            first/kernel' in weir('checkpoint', 'list', prefix).stdout


def test_values_are_read_by_any_way(saved, weir):
    prefix, variables = saved
    for path, variable in variables.items():
        shown = json.loads(weir('checkpoint', 'print', prefix, path, '--json').stdout)
        np.testing.assert_array_equal(np.reshape(shown['values'], shown['shape']).astype('f'), variable.numpy())
    wrong = weir('checkpoint', 'print', prefix, 'model/layers/0/kernl', check=False)
    assert wrong.returncode == 1 and "did you mean 'model/layers/0/kernel'?" in wrong.stderr


class Pair(ctypes.Structure):
    _fields_ = [('variable', ctypes.c_char_p), ('path', ctypes.c_char_p)]


class Session:
    """A graph of TensorFlow's with variables of those names and shapes and a table of those types, and the checkpoint."""

    def __init__(self, lib, prefix, table=None, **shapes):
        with tf.Graph().as_default() as graph:
            if table:
                tf.lookup.experimental.MutableHashTable(*table, -1)
            for name, shape in shapes.items():
                tf1.get_variable(name, shape, tf.float32, use_resource=True)
        self.lib, self.graph, self.objects = lib, libweir.Graph(lib, graph.as_graph_def()), ctypes.c_void_p()
        lib.check(lib.c.weir_objects_open(prefix.encode(), ctypes.byref(self.objects)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.c.weir_objects_close(self.objects)
        self.graph.close()

    def restore(self, pairs=None):
        given = pairs and (Pair * len(pairs))(*[Pair(variable.encode(), path.encode()) for variable, path in pairs.items()])
        self.lib.check(self.lib.c.weir_objects_restore(self.objects, self.graph.session, given, len(pairs or ())))

    def save(self, prefix, pairs=None):
        given = pairs and (Pair * len(pairs))(*[Pair(variable.encode(), path.encode()) for variable, path in pairs])
        self.lib.check(self.lib.c.weir_objects_save(self.graph.session, str(prefix).encode(), given, len(pairs or ())))

    def read(self, name):
        tensor = ctypes.c_void_p()
        self.lib.check(self.lib.c.weir_session_read_variable(self.graph.session, name.encode(), ctypes.byref(tensor)))
        try:
            return self.lib.to_array(tensor.value)
        finally:
            self.lib.c.weir_tensor_release(tensor)


def test_a_graph_is_restored_by_path(lib, saved):
    prefix, variables = saved
    with Session(lib, prefix, w=(3, 2), u=(3, 2), other=(2,)) as session:
        session.restore({'w': 'model/layers/0/kernel', 'u': 'model/named/a.Sb..c/kernel'})
        np.testing.assert_array_equal(session.read('w'), variables['model/layers/0/kernel'].numpy())
        np.testing.assert_array_equal(session.read('u'), variables['model/layers/1/kernel'].numpy())
        with pytest.raises(libweir.Error, match="'other' is not initialised"):
            session.read('other')


def test_a_graph_is_restored_by_names(lib, saved):
    prefix, variables = saved
    with Session(lib, prefix, **{'first/kernel': (3, 2), 'scale': ()}) as session:
        session.restore()
        np.testing.assert_array_equal(session.read('first/kernel'), variables['model/layers/0/kernel'].numpy())
        assert session.read('scale') == np.float32(2.5)


@pytest.mark.parametrize('pairs, code, text', [
    ({'w': 'model/scale'}, INVALID_ARGUMENT, r"variable 'w' has shape \[3,2\], and does not take shape \[\]"),
    ({'w': 'step'}, INVALID_ARGUMENT, "variable 'w' is float, and does not take int64"),
    ({'w': 'model/layers/2/kernel'}, NOT_FOUND, "'model/layers/2/kernel' leads to no variable"),
    ({'w': 'model/layers'}, NOT_FOUND, "'model/layers' leads to no variable"),
    ({'v': 'model/layers/0/kernel'}, NOT_FOUND, "no variable 'v'"),
    (None, NOT_FOUND, "no object was called 'w'")])
def test_what_does_not_fit_changes_nothing(lib, saved, pairs, code, text):
    with Session(lib, saved[0], w=(3, 2)) as session:
        with pytest.raises(libweir.Error, match=text) as error:
            session.restore(pairs)
        assert error.value.code == code
        with pytest.raises(libweir.Error, match='is not initialised'):
            session.read('w')


@pytest.mark.parametrize('path, code, text', [
    ('model/scale', NOT_FOUND, "'model/scale' leads to no table"),
    ('model/idx', NOT_FOUND, "'model/idx' leads to no table"),
    ('model/ids', INVALID_ARGUMENT, "table 'MutableHashTable' is from string to int32, and takes none from string to int64")])
def test_a_table_that_does_not_fit_changes_nothing(lib, saved, path, code, text):
    with Session(lib, saved[0], table=(tf.string, tf.int32), w=(3, 2)) as session:
        with pytest.raises(libweir.Error, match=text) as error:
            session.restore({'w': 'model/layers/0/kernel', 'MutableHashTable': path})
        assert error.value.code == code
        with pytest.raises(libweir.Error, match='is not initialised'):
            session.read('w')


def test_tables_have_paths_of_their_own(lib, saved, tmp_path):
    with Session(lib, saved[0], table=(tf.string, tf.int64), w=(3, 2)) as session:
        session.restore({'w': 'model/layers/0/kernel', 'MutableHashTable': 'model/ids'})
        with pytest.raises(libweir.Error, match="'a' would be the path of variables 'w' and 'MutableHashTable'"):
            session.save(tmp_path / 'ours', [('w', 'a'), ('MutableHashTable', 'a')])
        assert not list(tmp_path.iterdir())
        for _ in range(2):  # what was written is not in the way
            session.save(tmp_path / 'ours', [('MutableHashTable', 'ids')])
            session.restore({'MutableHashTable': 'model/ids'})
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    tf.train.Checkpoint(ids=table).read(str(tmp_path / 'ours')).assert_consumed().assert_existing_objects_matched()
    assert dict(zip(*(half.numpy().tolist() for half in table.export()))) == {b'one': 1, b'two': 2}


def test_keras(lib, tmp_path):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(2)], name='net')
    prefix = tf.train.Checkpoint(model=model).save(str(tmp_path / 'ckpt'))
    with Session(lib, prefix, **{layer.kernel.path: layer.kernel.shape for layer in model.layers}) as session:
        session.restore()
        for layer in model.layers:
            np.testing.assert_array_equal(session.read(layer.kernel.path), layer.kernel.numpy())


SHAPES = {'first/kernel': (3, 2), 'second/kernel': (3, 2), 'scale': ()}


def test_tensorflow_restores_what_weir_saves(lib, saved, tmp_path):
    prefix, variables = saved
    paths = [('first/kernel', 'model/layers/0/kernel'), ('second/kernel', 'model/named/a.Sb..c/kernel'), ('scale', 'model/scale')]
    with Session(lib, prefix, **SHAPES) as session:
        session.restore()
        session.save(tmp_path / 'ours', paths)
    model = tf.Module()
    model.layers = [Layer('x')]
    model.named = {'a/b.c': Layer('y')}
    model.scale = tf.Variable(np.float32(0))
    tf.train.Checkpoint(model=model).read(str(tmp_path / 'ours')).assert_consumed().assert_existing_objects_matched()
    np.testing.assert_array_equal(model.layers[0].kernel, variables['model/layers/0/kernel'])
    np.testing.assert_array_equal(model.named['a/b.c'].kernel, variables['model/layers/1/kernel'])
    assert model.scale.numpy() == np.float32(2.5)
    with Session(lib, str(tmp_path / 'ours'), **SHAPES) as session:
        session.restore()  # by the names that variables had
        np.testing.assert_array_equal(session.read('second/kernel'), variables['model/layers/1/kernel'].numpy())


def test_names_are_paths(lib, saved, tmp_path):
    with Session(lib, saved[0], **{'first/kernel': (3, 2), 'v1.0/w': (3, 2)}) as session:
        session.restore({'first/kernel': 'model/layers/0/kernel', 'v1.0/w': 'model/layers/1/kernel'})
        session.save(tmp_path / 'ours')
    first, odd = tf.Module(), tf.Module()
    first.kernel, odd.w = tf.Variable(np.zeros((3, 2), 'f')), tf.Variable(np.zeros((3, 2), 'f'))
    tf.train.Checkpoint(**{'first': first, 'v1.0': odd}).read(str(tmp_path / 'ours')).assert_consumed().assert_existing_objects_matched()
    np.testing.assert_array_equal(odd.w, saved[1]['model/layers/1/kernel'])


@pytest.mark.parametrize('pairs, code, text', [
    ([('scale', '')], INVALID_ARGUMENT, "variable 'scale' has an empty path"),
    ([('scale', 'a//b')], INVALID_ARGUMENT, "'a//b' is no path: '' is no name"),
    ([('scale', '/a')], INVALID_ARGUMENT, "'/a' is no path: '' is no name"),
    ([('scale', 'a/')], INVALID_ARGUMENT, "'a/' is no path: '' is no name"),
    ([('scale', 'a/b.c')], INVALID_ARGUMENT, "'a/b.c' is no path: 'b.c' is no name"),
    ([('scale', 'a/b.')], INVALID_ARGUMENT, "'b.' is no name"),
    ([('scale', 'a'), ('first/kernel', 'a')], INVALID_ARGUMENT, "'a' would be the path of variables 'scale' and 'first/kernel'"),
    ([('scales', 'a')], NOT_FOUND, "did you mean 'scale'"),
    ([('scale', 'a'), ('other', 'b')], FAILED_PRECONDITION, "variable 'other' is not initialised"),
    (None, FAILED_PRECONDITION, "variable 'other' is not initialised")])
def test_what_cannot_be_saved_leaves_nothing(lib, saved, tmp_path, pairs, code, text):
    with Session(lib, saved[0], **SHAPES, other=(2,)) as session:
        session.restore({'first/kernel': 'model/layers/0/kernel', 'second/kernel': 'model/layers/1/kernel', 'scale': 'model/scale'})
        with pytest.raises(libweir.Error, match=text) as error:
            session.save(tmp_path / 'ours', pairs)
    assert error.value.code == code and not list(tmp_path.iterdir())


def test_one_way_to_two_objects(lib, tmp_path):
    # Object 0 has 'a' twice: as object 1 and as object 0.
    message = bytes([0x0a, 12, 0x0a, 5, 8, 1, 0x12, 1, 97, 0x0a, 3, 0x12, 1, 97, 0x0a, 0])
    tf.raw_ops.SaveV2(prefix=str(tmp_path / 'p'), tensor_names=['_CHECKPOINTABLE_OBJECT_GRAPH'], shape_and_slices=[''],
                      tensors=[tf.constant(message)])
    with pytest.raises(libweir.Error, match="object 0 has 'a' twice"), Session(lib, str(tmp_path / 'p'), w=()):
        pass


def test_a_checkpoint_of_names(lib, tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable('w', initializer=np.float32(1))
        session.run(tf1.global_variables_initializer())
        prefix = tf1.train.Saver().save(session, str(tmp_path / 'named'))
    with pytest.raises(libweir.Error, match='none of objects') as error, Session(lib, prefix, w=()):
        pass
    assert error.value.code == FAILED_PRECONDITION
