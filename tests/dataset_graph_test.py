"""Graphs that datasets are made of: whatever they hold, they end in a dataset or in an error, and their functions are their own."""
import os
import sys

import numpy as np
import pytest
import tensorflow as tf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'oracle'))
import libweir

raw, tf1 = tf.raw_ops, tf.compat.v1
Dataset = tf.data.Dataset
INT = tf.TensorSpec([], tf.int64)
BUILD = os.environ.get('WEIR_BUILD', os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'build', 'dev'))


@pytest.fixture(scope='module')
def lib():
    return libweir.Library(os.path.join(BUILD, 'libweir.so'))


def graph_of(dataset):
    return raw.DatasetToGraphV2(input_dataset=dataset._variant_tensor, external_state_policy=1)


def by_tensorflow(make):
    """The GraphDef of the dataset that |make| builds."""
    with tf.Graph().as_default(), tf1.Session() as session:
        return tf1.GraphDef.FromString(session.run(graph_of(make())))


class Loader:
    """A session of Weir's that makes datasets of graphs and walks over them."""

    def __init__(self, lib, with_more=None):
        with tf.Graph().as_default() as graph:
            given = tf1.placeholder(tf.string, [])
            dataset = tf.data.experimental.from_variant(raw.DatasetFromGraph(graph_def=given), INT)
            iterator = tf1.data.make_initializable_iterator(with_more(dataset) if with_more else dataset)
            self.given, self.start, self.element = given.name, iterator.initializer.name, iterator.get_next().name
            self.written = graph_of(dataset).name
            self.functions = [f.signature.name for f in graph.as_graph_def().library.function]
        self.graph = libweir.Graph(lib, graph.as_graph_def().SerializeToString(), threads=2)

    def feeds(self, graph_def):
        data = graph_def if isinstance(graph_def, bytes) else graph_def.SerializeToString()
        return {self.given: np.array(data, object)}

    def walk(self, graph_def, count=5, timeout_ms=100000):
        """Elements, up to |count| of them; an error is the last."""
        got = []
        try:
            self.graph.run([], self.feeds(graph_def), [self.start])
            while len(got) < count:
                got.append(self.graph.run([self.graph.edge(self.element)], {}, [], timeout_ms)[0].item())
        except libweir.Error as error:
            return got + ([error] if error.code != 11 else [])
        return got

    def write(self, graph_def):
        return tf1.GraphDef.FromString(self.graph.run([self.graph.edge(self.written)], self.feeds(graph_def))[0].item())


@pytest.fixture(scope='module')
def loader(lib):
    return Loader(lib)


def plain():
    return by_tensorflow(lambda: Dataset.range(4).map(lambda x: x + 1))


def node(graph, op):
    return next(n for n in graph.node if n.op == op)


def test_random_bytes(loader):
    rng = np.random.default_rng(1)
    for size in [0, 1, 2, 5, 20, 100, 1000] * 10:
        assert isinstance(loader.walk(rng.bytes(size))[-1], libweir.Error)
    assert loader.walk(plain()) == [1, 2, 3, 4]


def test_changed_bytes(loader):
    rng = np.random.default_rng(2)
    good = by_tensorflow(lambda: Dataset.range(6).filter(lambda x: x > 1).batch(2).map(tf.reduce_sum).take(2)).SerializeToString()
    for _ in range(400):
        data = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        loader.walk(bytes(data)[:int(rng.integers(len(data) // 2, 3 * len(data)))])
    assert loader.walk(good) == [5, 9]


def test_cycles(loader):
    graph = plain()
    node(graph, 'MapDataset').input[0] = node(graph, 'MapDataset').name
    assert 'cycle' in str(loader.walk(graph)[-1])
    graph = plain()
    node(graph, 'RangeDataset').input.append('^' + node(graph, 'MapDataset').name)
    assert 'cycle' in str(loader.walk(graph)[-1])


def test_no_result(loader):
    graph = plain()
    del node(graph, '_Retval').input[:]  # which ends TensorFlow
    assert loader.walk(graph)[-1].code == 3
    del graph.node[-1]
    assert loader.walk(graph)[-1].code == 5


def test_recursion(loader):
    graph = plain()
    function = graph.library.function[0]
    argument, result = function.signature.input_arg[0].name, function.signature.output_arg[0].name
    call = function.node_def.add(name='again', op=function.signature.name, input=[argument])
    function.ret[result] = f'{call.name}:{result}:0'
    assert loader.walk(graph, timeout_ms=1000)[-1].code in (4, 8)  # DEADLINE_EXCEEDED, or memory was first
    assert loader.walk(plain()) == [1, 2, 3, 4]


def deep(count, op='TakeDataset'):
    graph = by_tensorflow(lambda: Dataset.range(4).take(3))
    take, last = node(graph, op), node(graph, op).name
    for k in range(count):
        graph.node.add().CopyFrom(take)
        graph.node[-1].name, graph.node[-1].input[0] = f'take{k}', last
        last = graph.node[-1].name
    node(graph, '_Retval').input[0] = last
    return graph


def test_deep_datasets(loader):
    assert loader.walk(deep(4990)) == [0, 1, 2]
    assert len(loader.write(deep(4990)).node) == 2 * 4990 + len(deep(0).node)  # each with its constant
    assert loader.walk(deep(20000))[-1].code == 8


def test_graphs_within_graphs(loader):
    def wrapped(inner):
        graph = tf1.GraphDef()
        data = graph.node.add(name='data', op='Const')
        data.attr['dtype'].type = tf.string.as_datatype_enum
        data.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(inner.SerializeToString()))
        graph.node.add(name='made', op='DatasetFromGraph', input=['data'])
        result = graph.node.add(name='dataset', op='_Retval', input=['made'])
        result.attr['T'].type, result.attr['index'].i = tf.variant.as_datatype_enum, 0
        return graph
    graph = plain()
    for _ in range(10):
        graph = wrapped(graph)
    assert loader.walk(graph) == [1, 2, 3, 4]
    for _ in range(100):
        graph = wrapped(graph)
    assert loader.walk(graph)[-1].code == 8


def test_functions_are_its_own(lib):
    """A graph may have another function of the name of one of the session's."""
    loader = Loader(lib, lambda d: Dataset.zip((Dataset.range(4).map(lambda x: x * 7), d)).map(lambda x, y: 10 * x + y))
    for name in loader.functions:
        graph = plain()
        graph.library.function[0].signature.name = node(graph, 'MapDataset').attr['f'].func.name = name
        assert loader.walk(graph) == [1, 72, 143, 214]
    assert len(loader.functions) == 2


def test_functions_of_one_name(lib):
    """Datasets whose functions differ under one name cannot be one graph."""
    one, two = plain(), plain()
    two.library.function[0].signature.name = node(two, 'MapDataset').attr['f'].func.name = \
        one.library.function[0].signature.name
    for n in two.library.function[0].node_def:
        if n.op == 'Const':
            n.attr['value'].tensor.int64_val[:] = [7]
    with tf.Graph().as_default() as graph:
        both = [tf.data.experimental.from_variant(raw.DatasetFromGraph(graph_def=g.SerializeToString()), INT) for g in (one, two)]
        made, same = graph_of(both[0].concatenate(both[1])), graph_of(both[0].concatenate(both[0]))
    weir = libweir.Graph(lib, graph.as_graph_def().SerializeToString(), threads=1)
    assert len(tf1.GraphDef.FromString(weir.run([weir.edge(same.name)], {})[0].item()).library.function) == 1
    with pytest.raises(libweir.Error, match='a different function with the same name'):
        weir.run([weir.edge(made.name)], {})
    weir.close()


def test_written_as_tensorflow_writes_it(lib):
    """Ops, inputs and attributes; and devices of functions, which are stripped of their tasks."""
    def far(x):
        with tf.device('/job:a/replica:0/task:7/device:CPU:0'):
            return x + 1
    for strips in False, True:
        with tf.Graph().as_default() as graph:
            dataset = Dataset.range(10).map(far).batch(3).take(2)
            made = raw.DatasetToGraphV2(input_dataset=dataset._variant_tensor, strip_device_assignment=strips)
            with tf1.Session() as session:
                theirs = tf1.GraphDef.FromString(session.run(made))
        weir = libweir.Graph(lib, graph.as_graph_def().SerializeToString(), threads=1)
        ours = tf1.GraphDef.FromString(weir.run([weir.edge(made.name)], {})[0].item())
        weir.close()
        for a, b in zip(theirs.node, ours.node):
            assert (a.name, a.op, list(a.input)) == (b.name, b.op, list(b.input))
            assert set(a.attr) == set(b.attr)
            assert all(a.attr[k] == b.attr[k] for k in a.attr if k not in ('metadata', 'value'))
        assert len(theirs.node) == len(ours.node)
        assert [n.device for n in theirs.library.function[0].node_def] == [n.device for n in ours.library.function[0].node_def]
        assert theirs.versions == ours.versions
