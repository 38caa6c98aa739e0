"""The matrix: twelve models in each format that holds models, written by TensorFlow and read by Weir, and the other way round.

The formats are the SavedModel with its variables, the graph, the checkpoint by names and that of objects. Each model is saved once and
then changed, so that checkpoints hold other values than its SavedModel: what restores them predicts otherwise than before. Variables
are equal to the bit. Records and events hold no models: files_test.py and summary_writer_test.py have both ways of those.
"""
import ctypes
import json

import numpy as np
import pytest

from conftest import BUILD
from saved_models import (KERAS, PROGRAM, Model, Module, Tables, assert_same, floats, freeze, frozen_results, graph_mode, keras, libweir,
                          run_command, tf, tf1, tf1_results, tf2_results, weir_results)
from tensorflow.core.protobuf import trackable_object_graph_pb2

GRAPH_KEY = '_CHECKPOINTABLE_OBJECT_GRAPH'
TABLE = 'MutableHashTable'  # the node of what changes; no model has two


# ---- the models, as TensorFlow has them ----

def value_of(state):
    """An array, of a table a dict."""
    return state.numpy() if hasattr(state, 'numpy') else dict(zip(*(half.numpy().tolist() for half in state.export())))


def assign(state, value):
    if isinstance(value, dict):
        state.insert(tf.constant(list(value)), tf.constant(list(value.values()), state.value_dtype))
    else:
        state.assign(value)


class Eager:
    """A model of TensorFlow 2: |root| is what checkpoints of objects hold, |variables| {name: variable or table that can change}."""

    def __init__(self, folder, root, variables, inputs):
        self.folder, self.root, self.variables, self.inputs = folder, root, variables, inputs

    def values(self):
        return {name: value_of(variable) for name, variable in self.variables.items()}

    def assign(self, values):
        for name, value in values.items():
            assign(self.variables[name], value)

    def write_objects(self, prefix):
        tf.train.Checkpoint(model=self.root).write(str(prefix))

    def read_objects(self, prefix):
        tf.train.Checkpoint(model=self.root).read(str(prefix)).assert_consumed().assert_existing_objects_matched()

    def write_names(self, prefix):
        tf1.train.Saver(self.variables).save(None, str(prefix))

    def read_names(self, prefix, names):
        tf1.train.Saver({name: self.variables[name] for name in names}).restore(None, str(prefix))


class Keras(Eager):
    def __init__(self, make, folder):
        keras.utils.set_random_seed(7)
        model, values = make()
        model.export(str(folder / 'model'), verbose=False)
        signature = tf.saved_model.load(str(folder / 'model')).signatures['serving_default']
        super().__init__(folder, model, {v.path: v.value for v in model.variables},
                         dict(zip(sorted(signature.structured_input_signature[1]), values)))
        self.outputs = sorted(signature.structured_outputs)

    def predict(self):
        given = [tf.constant(value) for value in self.inputs.values()]
        results = self.root(given if len(given) > 1 else given[0], training=False)
        return dict(zip(self.outputs, (result.numpy() for result in tf.nest.flatten(results))))


class OfFunction(Eager):
    """A tf.Module and the functions that are its signatures, of which the first predicts."""

    def __init__(self, folder, module, variables, inputs, function, other):
        super().__init__(folder, module, variables, inputs)
        self.function = function
        tf.saved_model.save(module, str(folder / 'model'), signatures={'serving_default': function, 'other': other})

    def predict(self):
        results = self.function(**{name: tf.constant(value) for name, value in self.inputs.items()})
        return {name: result.numpy() for name, result in results.items()}


def module(folder):
    (folder / 'words.txt').write_text('alpha\nbeta\n')
    made = Module(str(folder / 'words.txt'))
    return OfFunction(folder, made, {'w': made.w, 'count': made.count}, {'x': floats(2, 3), 'k': np.int32(4)}, made.loop, made.look)


def tables(folder):
    made = Tables()
    inputs = {'words': np.array([b'a', b'c', b'b'], dtype=object)}
    return OfFunction(folder, made, {'scale': made.scale, TABLE: made.ids}, inputs, made.weigh, made.learn)


class OfGraph:
    """The model of graph mode."""

    def __init__(self, folder):
        self.folder, self.graph = folder, tf.Graph()
        self.session = tf1.Session(graph=self.graph)  # for as long as the process
        self.inputs = {'x': floats(2, 4), 's': np.array([b'b', b'q'], dtype=object)}
        with self.graph.as_default():
            self.placeholders, self.outputs, _ = graph_mode()
            self.session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
            self.variables = {v.op.name: v for v in tf1.trainable_variables()}
            tf1.saved_model.simple_save(self.session, str(folder / 'model'), self.placeholders, self.outputs,
                                        legacy_init_op=tf1.tables_initializer())

    def predict(self):
        return self.session.run(self.outputs, {placeholder: self.inputs[name] for name, placeholder in self.placeholders.items()})

    def values(self):
        return self.session.run(self.variables)

    def assign(self, values):
        with self.graph.as_default():
            for name, value in values.items():
                self.variables[name].load(value, self.session)

    def write_objects(self, prefix):
        with self.graph.as_default(), self.session.as_default():
            tf.train.Checkpoint(model=tf.train.Checkpoint(**self.variables)).write(str(prefix))

    def read_objects(self, prefix):
        with self.graph.as_default(), self.session.as_default():
            status = tf.train.Checkpoint(model=tf.train.Checkpoint(**self.variables)).read(str(prefix))
            status.assert_consumed().assert_existing_objects_matched().run_restore_ops()

    def write_names(self, prefix):
        with self.graph.as_default():
            tf1.train.Saver(self.variables).save(self.session, str(prefix))

    def read_names(self, prefix, names):
        with self.graph.as_default():
            tf1.train.Saver({name: self.variables[name] for name in names}).restore(self.session, str(prefix))


MAKERS = {make.__name__: lambda folder, make=make: Keras(make, folder) for make in KERAS}
MAKERS.update(module=module, tables=tables, graph_mode=OfGraph)


def changed(value):
    if isinstance(value, dict):
        return {key: 1 - number for key, number in value.items()}
    return (value * .75 + .125).astype(value.dtype) if value.dtype.kind == 'f' else value + 1


@pytest.fixture(scope='module', params=MAKERS)
def model(request, tmp_path_factory):
    """The model after it changed: |first| and |later| are its results before and after, |later_values| what checkpoints hold.

    |nodes|: {name of a variable: its node in the SavedModel, which its signature reads}; Keras exports copies of its variables.
    """
    made = MAKERS[request.param](tmp_path_factory.mktemp(request.param))
    made.first, made.first_values = made.predict(), made.values()
    made.assign({name: changed(value) for name, value in made.first_values.items()})
    made.later, made.later_values = made.predict(), made.values()
    made.write_objects(made.folder / 'objects')
    made.write_names(made.folder / 'names')
    run_command(PROGRAM, 'twice', made.folder / 'model', made.folder / 'again')
    kept = state_in(made.folder / 'again' / 'variables' / 'variables')
    made.nodes = {name: node for name in made.variables for node in (name, name + '_1') if node in kept}
    assert any(np.abs(made.first[key] - made.later[key]).max() > 1e-3 for key in made.later)
    return made


# ---- Weir ----

class Pair(ctypes.Structure):
    _fields_ = [('variable', ctypes.c_char_p), ('path', ctypes.c_char_p)]


@pytest.fixture(scope='module')
def lib():
    library = libweir.Library(str(BUILD / 'libweir.so'))
    for name in ('objects_open', 'objects_read', 'objects_restore', 'objects_save', 'model_graph',
                 'saver_create_with', 'saver_restore', 'saver_save'):
        getattr(library.c, 'weir_' + name).restype = ctypes.c_void_p
    return library


def taken(lib, tensor):
    try:
        return lib.to_array(tensor.value)
    finally:
        lib.c.weir_tensor_release(tensor)


class Objects:
    def __init__(self, lib, prefix):
        self.lib, self.handle = lib, ctypes.c_void_p()
        lib.check(lib.c.weir_objects_open(str(prefix).encode(), ctypes.byref(self.handle)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.c.weir_objects_close(self.handle)

    def read(self, paths):
        """{name: value} of variables."""
        return {name: self.value(path) for name, path in paths.items() if name != TABLE}

    def value(self, path):
        tensor = ctypes.c_void_p()
        self.lib.check(self.lib.c.weir_objects_read(self.handle, path.encode(), ctypes.byref(tensor)))
        return taken(self.lib, tensor)

    def restore(self, loaded, paths):
        self.lib.check(self.lib.c.weir_objects_restore(self.handle, loaded.session, pairs(paths), len(paths)))


def pairs(paths):
    return (Pair * len(paths))(*[Pair(name.encode(), path.encode()) for name, path in paths.items()])


def paths_in(prefix):
    """{name of a variable, or TABLE: path of its object}, as TensorFlow wrote them."""
    message = tf.train.load_checkpoint(str(prefix)).get_tensor(GRAPH_KEY)
    values = [value for node in trackable_object_graph_pb2.TrackableObjectGraph.FromString(message).nodes for value in node.attributes]
    return {TABLE if value.name == 'table' else value.full_name: value.checkpoint_key.split('/.ATTRIBUTES/')[0] for value in values
            if value.name in ('VARIABLE_VALUE', 'table')}


def tensors_in(prefix):
    """{key: value} of a checkpoint, by TensorFlow."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {key: np.asarray(reader.get_tensor(key)) for key in reader.get_variable_to_shape_map()}


def state_in(prefix):
    """The same with a dict for each table."""
    tensors = tensors_in(prefix)
    tables = {key[:-5] for key in tensors if key.endswith('-keys')}
    halves = {name: [tensors.pop(f'{name}-{half}').tolist() for half in ('keys', 'values')] for name in tables}
    return {**tensors, **{name: dict(zip(*both)) for name, both in halves.items()}}


def assert_equal(values, expected):
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, dict):
            assert values[name] == value
            continue
        np.testing.assert_array_equal(values[name], value, err_msg=name, strict=True)


def some(values, names):
    return {name: values[name] for name in names}


# ---- SavedModels ----

def test_saved_model_of_tensorflow(model, lib):
    assert_same(weir_results(lib, model.folder / 'model', model.inputs, model.first), model.first)
    if not isinstance(model, OfGraph):  # whose variables are by name
        prefix = model.folder / 'model' / 'variables' / 'variables'
        with Objects(lib, prefix) as objects:
            read = objects.read(paths_in(prefix))
            assert_equal(read, some(model.first_values, read))


def test_saved_model_of_weir(model, lib):
    again = model.folder / 'again'
    assert_same(weir_results(lib, again, model.inputs, model.first), model.first)
    assert_same(tf1_results(again, model.inputs), model.first)
    assert_same(tf2_results(again, model.inputs), model.first)
    written = state_in(again / 'variables' / 'variables')
    assert_equal({name: written[node] for name, node in model.nodes.items()}, some(model.first_values, model.nodes))


# ---- graphs ----

def fill(table):
    """Adds what gives a table that changes the entries that it has."""
    keys, values = tf.raw_ops.LookupTableExportV2(table_handle=table.outputs[0], Tkeys=table.get_attr('key_dtype'),
                                                  Tvalues=table.get_attr('value_dtype'))
    keys, values = tf1.get_default_session().run([keys, values])
    return tf.raw_ops.LookupTableImportV2(table_handle=table.outputs[0], keys=tf.constant(keys), values=tf.constant(values)).name


def frozen_by_tensorflow(model):
    """(GraphDef with variables as constants, signature, nodes that fill its tables, feeds of these)"""
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        meta = tf1.saved_model.load(session, ['serve'], str(model.folder / 'model'))
        signature = meta.signature_def['serving_default']
        fills = [fill(node) for node in graph.get_operations() if node.type == 'MutableHashTableV2']
        fills += [output.name for output in meta.signature_def['__saved_model_init_op'].outputs.values()]
        fills += meta.collection_def['saved_model_main_op'].node_list.value
        ends = [output.name.split(':')[0] for output in signature.outputs.values()]
        frozen = tf1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ends + fills,
                                                               variable_names_whitelist=list(model.nodes.values()))
        files = {asset.tensor_info.name: np.array(str(model.folder / 'model' / 'assets' / asset.filename).encode(), dtype=object)
                 for asset in meta.asset_file_def}
        return frozen, signature, fills, files


def test_graph_of_tensorflow(model, lib):
    graph_def, signature, fills, files = frozen_by_tensorflow(model)
    assert not {node.name for node in graph_def.node if node.op in ('VarHandleOp', 'VariableV2')} & set(model.nodes.values())
    graph = libweir.Graph(lib, graph_def)
    try:
        graph.run([], files, fills)
        results = graph.run([graph.edge(output.name) for output in signature.outputs.values()],
                            {signature.inputs[name].name: np.asarray(value) for name, value in model.inputs.items()})
    finally:
        graph.close()
    assert_same(dict(zip(signature.outputs, results)), model.first)


def test_graph_of_weir(model, lib, tmp_path):
    frozen = freeze(model.folder / 'model', tmp_path / 'frozen.pb')
    assert_same(weir_results(lib, frozen, model.inputs, model.first), model.first)
    assert_same(frozen_results(frozen, model.inputs, model.first), model.first)


# ---- checkpoints of objects ----

def paths_of(model):
    """{node of a variable or table: path of its object}"""
    return {model.nodes.get(name, name): path for name, path in paths_in(model.folder / 'objects').items()}


def test_objects_of_tensorflow(model, lib, weir):
    paths = paths_of(model)
    with Objects(lib, model.folder / 'objects') as objects, Model(lib, model.folder / 'model') as loaded:
        assert_equal(objects.read(paths), {node: model.later_values[name] for name, node in model.nodes.items() if node != TABLE})
        assert_same(loaded.run(model.inputs, model.first), model.first)
        objects.restore(loaded, paths)
        assert_same(loaded.run(model.inputs, model.later), model.later)
    listed = json.loads(weir('checkpoint', 'list', model.folder / 'objects', '--json').stdout)
    assert {value['key'] for value in listed['objects']} == tensors_in(model.folder / 'objects').keys() - {GRAPH_KEY}


def test_objects_of_weir(model, lib, tmp_path):
    paths = paths_of(model)
    with Model(lib, model.folder / 'model') as loaded:
        with Objects(lib, model.folder / 'objects') as objects:
            objects.restore(loaded, paths)
        lib.check(lib.c.weir_objects_save(loaded.session, str(tmp_path / 'ours').encode(), pairs(paths), len(paths)))
    model.assign(model.first_values)
    model.read_objects(tmp_path / 'ours')
    assert_equal(some(model.values(), model.nodes), some(model.later_values, model.nodes))
    assert_same(model.predict(), model.later)


# ---- checkpoints by names ----

class Saved(ctypes.Structure):
    _fields_ = [('variable', libweir.Edge), ('name', ctypes.c_char_p)]


class SaverOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('variables', ctypes.POINTER(Saved)), ('variable_count', ctypes.c_int),
                ('max_to_keep', ctypes.c_int), ('keep_every_n_hours', ctypes.c_double), ('is_sharded', ctypes.c_bool), ('name', ctypes.c_char_p),
                ('keep_best', ctypes.c_int), ('higher_is_better', ctypes.c_bool)]


class Saver:
    """A saver in the graph of a loaded model: of the variables that the signature reads, by the names that TensorFlow has for them."""

    def __init__(self, lib, loaded, nodes):
        self.lib, self.c, self.session = lib, lib.c, loaded.session
        self.scope = ctypes.c_void_p(self.c.weir_scope_create(ctypes.c_void_p(self.c.weir_model_graph(loaded.model))))
        items = (Saved * len(nodes))()
        for item, (name, node) in zip(items, nodes.items()):
            lib.check(self.c.weir_graph_find_output(ctypes.c_void_p(self.c.weir_model_graph(loaded.model)), node.encode(),
                                                    ctypes.byref(item.variable)))
            item.name = name.encode()
        options = SaverOptions(variables=items, variable_count=len(items))
        self.saver = ctypes.c_void_p(self.c.weir_saver_create_with(self.scope, ctypes.byref(options)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.c.weir_saver_destroy(self.saver)
        self.lib.check(self.c.weir_scope_finish(self.scope))

    def restore(self, prefix):
        self.lib.check(self.c.weir_saver_restore(self.saver, self.session, str(prefix).encode()))

    def save(self, prefix):
        self.lib.check(self.c.weir_saver_save(self.saver, self.session, str(prefix).encode(), ctypes.c_int64(-1), None))


def test_names_of_tensorflow(model, lib):
    with Model(lib, model.folder / 'model') as loaded, Saver(lib, loaded, model.nodes) as saver:
        assert_same(loaded.run(model.inputs, model.first), model.first)
        saver.restore(model.folder / 'names')
        assert_same(loaded.run(model.inputs, model.later), model.later)


def test_names_of_weir(model, lib, tmp_path):
    with Model(lib, model.folder / 'model') as loaded, Saver(lib, loaded, model.nodes) as saver:
        saver.restore(model.folder / 'names')
        saver.save(tmp_path / 'ours')
    assert_equal(state_in(tmp_path / 'ours'), some(model.later_values, model.nodes))
    model.assign(model.first_values)
    model.read_names(tmp_path / 'ours', model.nodes)
    assert_same(model.predict(), model.later)
