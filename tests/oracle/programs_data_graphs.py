"""Datasets that become graphs and graphs that become datasets: what random_pipelines.py --graphs does not draw."""
import numpy as np
import tensorflow as tf
from programs import program
from programs_io import record_file, text_file

raw, tf1 = tf.raw_ops, tf.compat.v1
Dataset = tf.data.Dataset
IGNORE, FAIL = 1, 2
RANGE = tf.TensorSpec([], tf.int64)


def graph_of(dataset, policy=IGNORE, **attrs):
    return raw.DatasetToGraphV2(input_dataset=dataset._variant_tensor, external_state_policy=policy, **attrs)


def dataset_of(graph, spec=RANGE):
    return tf.data.experimental.from_variant(raw.DatasetFromGraph(graph_def=graph), spec)


def again(dataset, **attrs):
    """The same dataset, which was a graph in between."""
    return dataset_of(graph_of(dataset, **attrs), dataset.element_spec)


def walk(p, dataset, count=8, **options):
    iterator = tf1.data.make_initializable_iterator(dataset)
    element = tf.nest.flatten(iterator.get_next(), expand_composites=True)
    p.step(iterator.initializer)
    for _ in range(count):
        p.step(*element, **options)


def made_eagerly(make):
    """What TensorFlow makes of |make|() outside of the program's graph."""
    with tf.Graph().as_default(), tf1.Session() as session:
        return tf1.GraphDef.FromString(session.run(graph_of(make())))


# ---- there and back ----

@program(12)
def sources(p):
    names = [p.write(f'{k}.txt', text_file(p.rng)) for k in range(2)]
    records = [p.write(f'{k}.rec', record_file(p.rng)) for k in range(2)]
    ragged = tf.ragged.constant([[1], [2, 3], []])
    sparse = tf.sparse.from_dense([[0, 1], [2, 0], [0, 0]])
    dataset = [lambda: tf.data.TextLineDataset(names), lambda: tf.data.TFRecordDataset(records),
               lambda: Dataset.list_files(['*.txt', '*.rec'], shuffle=False), lambda: Dataset.from_tensors(ragged),
               lambda: Dataset.from_tensor_slices(ragged), lambda: Dataset.from_tensors(sparse),
               lambda: Dataset.from_tensor_slices(sparse), lambda: Dataset.random(seed=7).take(5),
               lambda: Dataset.from_tensor_slices(p.hide(p.rng.integers(0, 99, [5, 2]))).map(lambda x: x[0]),
               lambda: Dataset.from_tensor_slices(np.zeros([3, 0], np.float32)),
               lambda: Dataset.from_tensors(tf.constant(['a', '', 'b\0c'])),
               lambda: Dataset.from_tensors((tf.constant(1 + 2j), tf.constant(1.5, tf.bfloat16), tf.constant(True)))][p.number]()
    p.is_spread = p.number not in (3, 4)  # what ragged rows hold stays in the device's memory, and is not written from there
    walk(p, again(dataset))


@program(8)
def groups(p):
    key, data = lambda x: x % 3, Dataset.range(15)
    reducer = tf.data.experimental.Reducer(lambda _: np.int64(0), lambda s, x: s + x, lambda s: s)
    dataset = [lambda: data.group_by_window(key, lambda k, w: w.batch(2), 2),
               lambda: data.apply(tf.data.experimental.group_by_reducer(key, reducer)),
               lambda: data.window(3, 2).flat_map(lambda w: w.batch(3)), lambda: data.batch(4).rebatch([1, 2, 3]),
               lambda: data.map(key).unique(), lambda: data.shuffle(5, seed=3).repeat(2),
               lambda: data.cache('kept'), lambda: data.apply(tf.data.experimental.assert_cardinality(15))][p.number]()
    walk(p, again(dataset), 14)


@program(6)
def captured(p):
    """Values, variables, tables and datasets that functions captured."""
    value = p.hide(p.rng.integers(0, 9, [3]))
    variable = raw.VarHandleOp(dtype=tf.int64, shape=[], shared_name='v')
    table = raw.HashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name='t')
    changing = raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name='m')
    rows = raw.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.int64, value_shape=[2], shared_name='r')
    keys = np.arange(3, dtype=np.int64)
    p.step(raw.AssignVariableOp(resource=variable, value=np.int64(5)),
           raw.LookupTableImportV2(table_handle=table, keys=keys, values=['a', 'b', 'c']),
           raw.LookupTableImportV2(table_handle=changing, keys=keys, values=keys * 3),
           raw.LookupTableImportV2(table_handle=rows, keys=keys, values=np.stack([keys, keys], 1)))
    other, data = Dataset.range(2), Dataset.range(4)
    find = lambda t, x, d: raw.LookupTableFindV2(table_handle=t, keys=x, default_value=d)
    dataset = [lambda: data.map(lambda x: x + value), lambda: data.map(lambda x: x + raw.ReadVariableOp(resource=variable, dtype=tf.int64)),
               lambda: data.map(lambda x: find(table, x, '?')), lambda: data.map(lambda x: find(changing, x, np.int64(-1))),
               lambda: data.map(lambda x: find(rows, x, np.int64([-1, -2]))), lambda: data.flat_map(lambda x: other)][p.number]()
    iterator = tf1.data.make_initializable_iterator(again(dataset))
    p.step(iterator.initializer)
    # What it took along is its own.
    p.step(raw.AssignVariableOp(resource=variable, value=np.int64(50)))
    p.step(raw.LookupTableRemoveV2(table_handle=changing, keys=keys))
    for _ in range(6):
        p.step(iterator.get_next())


@program(1)
def packed(p):
    """Several datasets in a tensor."""
    many = raw.Pack(values=[Dataset.range(k)._variant_tensor for k in (2, 3)])
    pick = lambda i: tf.data.experimental.from_variant(many[i], RANGE)
    walk(p, again(Dataset.range(2).flat_map(pick)))


@program(1)
def elements_that_are_datasets(p):
    """Their functions are the graph's, wherever they are walked over."""
    inner = Dataset.range(3).map(lambda x: Dataset.range(x).map(lambda y: x * 10 + y))
    walk(p, again(inner).flat_map(lambda d: d))
    walk(p, again(again(inner)).flat_map(lambda d: d))


@program(1)
def windows(p):
    """What iterators make: windows, groups."""
    one = lambda w: tf.data.experimental.get_single_element(again(w).batch(9))
    walk(p, Dataset.range(7).window(3).map(one))
    walk(p, Dataset.range(7).group_by_window(lambda x: x % 2, lambda k, w: again(w).batch(9), 3))


@program(1)
def within_functions(p):
    graphs = graph_of(Dataset.range(3).map(lambda x: x * 2))
    walk(p, Dataset.range(2).flat_map(lambda x: dataset_of(graphs).map(lambda y: y + x)))
    walk(p, again(Dataset.range(2).flat_map(lambda x: dataset_of(graphs).map(lambda y: y + x))))


@program(1)
def used_in_other_ways(p):
    """By index, reduced, counted, its state saved."""
    d = again(Dataset.range(9).batch(2, drop_remainder=True).map(lambda x: x + 1))
    p.step(raw.DatasetCardinality(input_dataset=d._variant_tensor))
    p.step(raw.GetElementAtIndex(dataset=d._variant_tensor, index=np.int64(2), output_types=[tf.int64], output_shapes=[[2]]))
    p.step(raw.GetElementAtIndex(dataset=d._variant_tensor, index=np.int64(4), output_types=[tf.int64], output_shapes=[[2]]))
    p.step(d.reduce(np.int64(0), lambda s, x: s + tf.reduce_sum(x)))
    p.step(raw.GetOptions(input_dataset=again(d.with_options(tf.data.Options()))._variant_tensor))
    one, two = (tf1.data.make_initializable_iterator(d) for _ in range(2))
    p.step(one.initializer, two.initializer)
    p.step(one.get_next())
    state = raw.SerializeIterator(resource_handle=one._iterator_resource, external_state_policy=IGNORE)
    p.step(raw.DeserializeIterator(resource_handle=two._iterator_resource, serialized=state))
    p.step(two.get_next())


@program(1)
def shared_below(p):
    d = Dataset.range(4).shuffle(3, seed=1)
    for _ in range(4):
        d = Dataset.zip((d, d)).map(lambda x, y: x + y)
    walk(p, again(d))


# ---- state that is left out ----

@program(8)
def stateful(p):
    """What the policies say to it."""
    variable = raw.VarHandleOp(dtype=tf.int64, shape=[], shared_name='v')
    p.step(raw.AssignVariableOp(resource=variable, value=np.int64(5)))
    read = lambda: raw.ReadVariableOp(resource=variable, dtype=tf.int64)
    data = Dataset.range(3)
    dataset = [lambda: data.map(lambda x: x + read()), lambda: data.filter(lambda x: x < read()),
               lambda: data.flat_map(lambda x: Dataset.range(2).map(lambda y: y + read())),
               lambda: data.map(lambda x: tf.cond(x > 1, lambda: x + read(), lambda: x)),
               lambda: data.map(lambda x: tf.random.uniform([], maxval=5, dtype=tf.int64)),
               lambda: data.scan(np.int64(0), lambda s, x: (s + read(), x)),
               lambda: data.map(lambda x: tf.switch_case(tf.cast(x, tf.int32), [lambda: x + read(), lambda: x])),
               lambda: data.shuffle(2)][p.number]()
    for policy in 0, 1, 2, 3, -1:
        p.step(graph_of(dataset, policy).op, **({'says': 'is stateful.'} if policy == FAIL and p.number < 7 else {}))
    for allowed in False, True:
        p.step(raw.DatasetToGraph(input_dataset=dataset._variant_tensor, allow_stateful=allowed).op)
        p.step(raw.DatasetToGraph(input_dataset=dataset._variant_tensor, allow_stateful=allowed,
                                  stateful_whitelist=['ReadVariableOp']).op)


@program(1)
def uninitialized(p):
    variable = raw.VarHandleOp(dtype=tf.int64, shape=[], shared_name='v')
    dataset = Dataset.range(3).map(lambda x: x + raw.ReadVariableOp(resource=variable, dtype=tf.int64))
    p.step(graph_of(dataset).op, says='Failed to serialize the input pipeline graph: ')


@program(2)
def devices(p):
    def far(x):
        with tf.device('/job:localhost/replica:0/task:0/device:CPU:0'):
            return x + 1
    walk(p, again(Dataset.range(3).map(far), strip_device_assignment=bool(p.number)))


@program(1)
def no_datasets(p):
    p.step(raw.DatasetToGraphV2(input_dataset=raw.Pack(values=[Dataset.range(3)._variant_tensor])).op,
           says='Dataset tensor must be a scalar of dtype DT_VARIANT.')
    empty = raw.EmptyTensorList(element_shape=tf.constant([], tf.int32), max_num_elements=3, element_dtype=tf.int32)
    p.step(raw.DatasetToGraphV2(input_dataset=empty).op)


# ---- graphs that are none ----

def base():
    return made_eagerly(lambda: Dataset.range(4).map(lambda x: x + 1))


def node(g, op):
    return next(n for n in g.node if n.op == op)


def no_result(g):
    node(g, '_Retval').op = 'Identity'
    del g.node[-1].attr['index']


def two_results(g):
    last = g.node.add()
    last.CopyFrom(node(g, '_Retval'))
    last.name, last.input[0] = 'second', node(g, 'RangeDataset').name


def unknown_input(g):
    node(g, '_Retval').input[0] = 'nowhere'


def another_output(g):
    node(g, '_Retval').input[0] += ':1'


def first_output(g):
    node(g, '_Retval').input[0] += ':0'


def a_control_input(g):
    result = node(g, '_Retval')
    result.input[0] = '^' + result.input[0]


def a_number(g):
    node(g, '_Retval').input[0] = node(g, 'Const').name
    node(g, '_Retval').attr['T'].type = tf.int64.as_datatype_enum


def no_function(g):
    node(g, 'MapDataset').attr['f'].func.name = 'unheard_of'


def no_library(g):
    g.ClearField('library')


def another_function(g):
    """Of the same name as the session's."""
    for n in g.library.function[0].node_def:
        if n.op == 'Const':
            n.attr['value'].tensor.int64_val[:] = [7]


def a_cycle(g):
    node(g, 'MapDataset').input[0] = node(g, 'MapDataset').name


def of_the_future(g):
    g.versions.min_consumer = 99999


def without_version(g):
    g.ClearField('versions')


def no_such_op(g):
    node(g, 'Const').op = 'NoSuchOp'


def bad_name(g):
    g.node[0].name = 'a b'


def a_placeholder(g):
    node(g, 'Const').op = 'Placeholder'
    del node(g, 'Placeholder').attr['value']


def on_a_gpu(g):
    node(g, 'Const').device = '/gpu:0'


def no_attribute(g):
    del node(g, 'RangeDataset').attr['output_types']


def bad_argument(g):
    node(g, 'RangeDataset').input[2] = node(g, 'Const').name  # a step of zero


def unchanged(g):
    del g


CHANGES = [no_result, two_results, unknown_input, another_output, first_output, a_control_input, a_number, no_function, no_library,
           another_function, a_cycle, of_the_future, without_version, no_such_op, bad_name, a_placeholder, on_a_gpu, no_attribute,
           bad_argument, unchanged]


@program(len(CHANGES))
def changed(p):
    g = base()
    CHANGES[p.number](g)
    iterator = tf1.data.make_initializable_iterator(dataset_of(p.hide(g.SerializeToString())))
    p.step(iterator.initializer)
    for _ in range(5):
        p.step(iterator.get_next())


@program(10)
def other_bytes(p):
    given = [b'', b'\xff\xfe\0abc', b'no graph', base().SerializeToString()[:-40], bytes(p.rng.integers(0, 256, 40, np.uint8)),
             np.array([b'a'], object), np.array([b'a', b'b'], object), np.array([], object), b'\x0a\x00', b'\x12\x00'][p.number]
    p.step(raw.DatasetFromGraph(graph_def=p.hide(given)).op)
