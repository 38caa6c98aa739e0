"""Recurrent networks equal tf.compat.v1.nn.dynamic_rnn: outputs, final states, gradients, training, names of variables.

The same model is built by TensorFlow and by Weir's C API, with the same weights. TensorFlow's own cells need a Keras that its
newer releases do not have, so the cells here are their formulas; Keras' layers are a second opinion.
"""
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
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev'))
sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
from libweir import Edge, Graph, Library  # noqa: E402

LIB = Library(str(BUILD / 'libweir.so'))
POINTER = ctypes.c_void_p


# ---- Weir's structs and functions ----

class Init(ctypes.Structure):
    _fields_ = [('kind', ctypes.c_int), ('first', ctypes.c_double), ('second', ctypes.c_double), ('fan', ctypes.c_int),
                ('distribution', ctypes.c_int), ('seed', ctypes.c_int64), ('graph_seed', ctypes.c_int64), ('value', Edge)]


class OptFloat(ctypes.Structure):
    _fields_ = [('value', ctypes.c_float), ('is_set', ctypes.c_bool)]


class CellOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('name', ctypes.c_char_p), ('activation', POINTER), ('kernel_init', Init),
                ('bias_init', Init), ('forget_bias', OptFloat), ('use_peepholes', ctypes.c_bool), ('projection', ctypes.c_int),
                ('cell_clip', ctypes.c_float), ('projection_clip', ctypes.c_float)]


class RnnOptions(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('name', ctypes.c_char_p), ('sequence_length', Edge),
                ('initial_state', ctypes.POINTER(Edge)), ('time_major', ctypes.c_bool), ('parallel_iterations', ctypes.c_int64)]


class Rnn(ctypes.Structure):
    _fields_ = [('outputs', Edge), ('state', ctypes.POINTER(Edge)), ('state_count', ctypes.c_int)]


class Bidirectional(ctypes.Structure):
    _fields_ = [('outputs', Edge), ('forward', Rnn), ('backward', Rnn)]


class KeepDims(ctypes.Structure):
    _fields_ = [('reserved', ctypes.c_int), ('keep_dims', ctypes.c_bool)]


class Variable(ctypes.Structure):
    _fields_ = [('handle', Edge), ('value', Edge), ('initial', Edge), ('initializer', POINTER), ('is_trainable', ctypes.c_bool)]


for name in ('lstm_cell_with', 'gru_cell_with', 'basic_rnn_cell_with', 'multi_rnn_cell', 'scope_status'):
    getattr(LIB.c, 'weir_' + name).restype = POINTER
LIB.c.weir_rnn_with.restype = LIB.c.weir_static_rnn_with.restype = Rnn
LIB.c.weir_bidirectional_rnn_with.restype = Bidirectional
LIB.c.weir_scope_variable_at.restype = Variable
LIB.c.weir_node_name.restype = ctypes.c_char_p


class Model(Graph):
    """A Weir graph that begins with TensorFlow's placeholders."""

    def __init__(self, placeholders, **kwargs):
        super().__init__(LIB, placeholders, **kwargs)

    def ok(self, result=None):
        status = self.c.weir_scope_status(self.scope)
        if status:
            raise RuntimeError(self.c.weir_status_message(POINTER(status)).decode())
        return result

    def cell(self, spec):
        """A cell from a Python one."""
        if isinstance(spec, Multi):
            cells = [self.cell(c) for c in spec.cells]
            return POINTER(self.c.weir_multi_rnn_cell(self.scope, (POINTER * len(cells))(*cells), len(cells)))
        options = CellOptions(name=spec.name.encode(), use_peepholes=getattr(spec, 'peepholes', False),
                              projection=getattr(spec, 'projection', 0), cell_clip=getattr(spec, 'clip', 0))
        if hasattr(spec, 'forget_bias'):
            options.forget_bias = OptFloat(spec.forget_bias, True)
        make = {Lstm: 'lstm', Gru: 'gru', Basic: 'basic_rnn'}[type(spec)]
        make = getattr(self.c, f'weir_{make}_cell_with')
        return self.ok(POINTER(make(self.scope, spec.units, ctypes.byref(options))))

    def rnn_options(self, lengths=None, initial=None, **kwargs):
        options = RnnOptions(**kwargs)
        if lengths:
            options.sequence_length = self.edge(lengths)
        if initial:
            options.initial_state = (Edge * len(initial))(*map(self.edge, initial))
        return options

    def rnn(self, cell, inputs, **kwargs):
        options = self.rnn_options(**kwargs)
        result = self.c.weir_rnn_with(self.scope, cell, self.edge(inputs), ctypes.byref(options))
        self.ok()
        return result.outputs, [result.state[i] for i in range(result.state_count)]

    def op(self, name, *inputs, options=None):
        function = getattr(self.c, 'weir_op_' + name)
        function.restype = Edge
        result = function(self.scope, *inputs, *([ctypes.byref(options)] if options else []))
        return self.ok(result)

    def constant(self, value):
        self.c.weir_const_int.restype = Edge
        return self.c.weir_const_int(self.scope, value)

    def variables(self):
        """{name: Variable}"""
        count = self.c.weir_scope_variable_count(self.scope)
        found = [self.c.weir_scope_variable_at(self.scope, i) for i in range(count)]
        return {self.c.weir_node_name(POINTER(v.handle.node)).decode(): v for v in found}

    def assign(self, values):
        variables = self.variables()
        assert sorted(variables) == sorted(values), 'names of variables'
        for name, value in values.items():
            initial = self.c.weir_node_name(POINTER(variables[name].initial.node)).decode()
            initializer = self.c.weir_node_name(POINTER(variables[name].initializer)).decode()
            self.run([], {f'{initial}:{variables[name].initial.index}': value}, targets=[initializer])


# ---- TensorFlow's cells ----

class Cell:
    """What dynamic_rnn asks of a cell."""

    def zero_state(self, batch, dtype):
        return tf.nest.map_structure(lambda size: tf.zeros([batch, size], dtype), self.state_size)

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        return self.zero_state(batch_size, dtype)

    def weight(self, name, shape):
        return v1.get_variable(name, shape, self.dtype, v1.random_uniform_initializer(-0.6, 0.6), use_resource=True)


class Lstm(Cell):
    def __init__(self, units, name='lstm_cell', dtype=tf.float32, **options):
        self.units, self.name, self.dtype = units, name, dtype
        self.__dict__.update(options)
        self.output_size = getattr(self, 'projection', 0) or units
        self.state_size = (units, self.output_size)

    def __call__(self, x, state, scope=None):
        c, h = state
        n = self.units
        with v1.variable_scope(self.name, reuse=v1.AUTO_REUSE):
            kernel = self.weight('kernel', [x.shape[1] + self.output_size, 4 * n])
            i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), kernel) + self.weight('bias', [4 * n]), 4, 1)
            f += getattr(self, 'forget_bias', 1.0)
            if getattr(self, 'peepholes', False):
                w_f, w_i, w_o = (self.weight(f'w_{g}_diag', [n]) for g in 'fio')
                f, i = f + w_f * c, i + w_i * c
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
            if getattr(self, 'clip', 0):
                c = tf.clip_by_value(c, -self.clip, self.clip)
            if getattr(self, 'peepholes', False):
                o += w_o * c
            h = tf.sigmoid(o) * tf.tanh(c)
            if getattr(self, 'projection', 0):
                with v1.variable_scope('projection', reuse=v1.AUTO_REUSE):
                    h = tf.matmul(h, self.weight('kernel', [n, self.projection]))
        return h, (c, h)


class Gru(Cell):
    def __init__(self, units, name='gru_cell', dtype=tf.float32):
        self.units, self.name, self.dtype = units, name, dtype
        self.output_size = self.state_size = units

    def layer(self, name, x, columns):
        with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
            return tf.matmul(x, self.weight('kernel', [x.shape[1], columns])) + self.weight('bias', [columns])

    def __call__(self, x, h, scope=None):
        with v1.variable_scope(self.name, reuse=v1.AUTO_REUSE):
            r, u = tf.split(tf.sigmoid(self.layer('gates', tf.concat([x, h], 1), 2 * self.units)), 2, 1)
            c = tf.tanh(self.layer('candidate', tf.concat([x, r * h], 1), self.units))
        h = u * h + (1 - u) * c
        return h, h


class Basic(Cell):
    def __init__(self, units, name='basic_rnn_cell', dtype=tf.float32):
        self.units, self.name, self.dtype = units, name, dtype
        self.output_size = self.state_size = units

    def __call__(self, x, h, scope=None):
        with v1.variable_scope(self.name, reuse=v1.AUTO_REUSE):
            kernel = self.weight('kernel', [x.shape[1] + self.units, self.units])
            h = tf.tanh(tf.matmul(tf.concat([x, h], 1), kernel) + self.weight('bias', [self.units]))
        return h, h


class Multi(Cell):
    def __init__(self, *cells):
        self.cells = cells
        self.output_size = cells[-1].output_size
        self.state_size = tuple(c.state_size for c in cells)

    def __call__(self, x, state, scope=None):
        states = []
        with v1.variable_scope('multi_rnn_cell', reuse=v1.AUTO_REUSE):
            for i, cell in enumerate(self.cells):
                with v1.variable_scope(f'cell_{i}', reuse=v1.AUTO_REUSE):
                    x, new = cell(x, state[i])
                    states.append(new)
        return x, tuple(states)


# ---- comparing ----

def placeholders_only(graph):
    """The GraphDef of the placeholders of |graph|."""
    out = v1.GraphDef()
    out.node.extend(n for n in graph.as_graph_def().node if n.op == 'Placeholder')
    return out


def random_values(shape, dtype, seed):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def check(weir, tensorflow, tolerance):
    assert len(weir) == len(tensorflow)
    for got, expected in zip(weir, tensorflow):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def weights_like(values, seed):
    return [random_values(v.shape, v.dtype, seed + i) for i, v in enumerate(values)]


def compare(cell, lengths=None, time_major=False, initial=False, batch=4, steps=6, width=3, dtype=np.float32, static=True,
            tolerance=2e-5, threads=1, lengths_dtype=np.int32, **weir_options):
    """Outputs, final state, and gradients of a weighted sum of them, by inputs, initial state and variables."""
    shape = [steps, batch, width] if time_major else [batch, steps, width]
    known = shape if static else [None, None, width]
    x_value = random_values(shape, dtype, 1)
    feeds = {'x:0': x_value}
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.disable_control_flow_v2()
        v1.set_random_seed(5)
        x = v1.placeholder(dtype, known, 'x')
        kwargs = {}
        if lengths is not None:
            kwargs['sequence_length'] = v1.placeholder(lengths_dtype, [None], 'lengths')
            feeds['lengths:0'] = np.array(lengths, lengths_dtype)
        xs = [x]
        if initial:
            flat = []
            for i, size in enumerate(tf.nest.flatten(cell.state_size)):
                flat.append(v1.placeholder(dtype, [batch, size], f'state{i}'))
                feeds[f'state{i}:0'] = random_values([batch, size], dtype, 70 + i)
            kwargs['initial_state'] = tf.nest.pack_sequence_as(cell.state_size, flat)
            xs += flat
        outputs, state = v1.nn.dynamic_rnn(cell, x, time_major=time_major, dtype=dtype, **kwargs)
        results = [outputs] + tf.nest.flatten(state)
        session.run(v1.global_variables_initializer())
        names = [v.op.name for v in v1.trainable_variables()]
        values = dict(zip(names, session.run(v1.trainable_variables())))
        expected = session.run(results, feeds)
        dys = weights_like(expected, 30)
        grads = v1.gradients(results, xs + v1.trainable_variables(), [tf.constant(d) for d in dys])
        expected_grads = session.run(grads, feeds)
        definition = placeholders_only(graph)
        for i, d in enumerate(dys):  # gradients of the results, to be fed
            with graph.as_default():
                node = v1.placeholder(d.dtype, d.shape, f'dy{i}').op.node_def
            definition.node.add().CopyFrom(node)
    model = Model(definition, threads=threads)
    try:
        made = model.rnn(model.cell(cell), 'x:0', lengths='lengths:0' if lengths is not None else None,
                         initial=[f'state{i}:0' for i in range(len(xs) - 1)], time_major=time_major, **weir_options)
        fetches = [made[0]] + made[1]
        variables = model.variables()
        x_edges = [model.edge('x:0')] + [model.edge(f'state{i}:0') for i in range(len(xs) - 1)]
        handles = [variables[n].handle for n in names]
        d_edges = model.gradients(fetches, x_edges + handles, [model.edge(f'dy{i}:0') for i in range(len(dys))])
        model.assign(values)
        check(model.run(fetches, feeds), expected, tolerance)
        all_feeds = {**feeds, **{f'dy{i}:0': d for i, d in enumerate(dys)}}
        check(model.run(d_edges, all_feeds), expected_grads, tolerance)
    finally:
        model.close()


CELLS = {
    'lstm': lambda: Lstm(5),
    'basic_lstm': lambda: Lstm(5, name='basic_lstm_cell', forget_bias=0.3),
    'peepholes': lambda: Lstm(5, peepholes=True, clip=0.4),
    'projection': lambda: Lstm(5, projection=2),
    'gru': lambda: Gru(5),
    'basic': lambda: Basic(5),
    'two_layers': lambda: Multi(Lstm(5, name='basic_lstm_cell'), Gru(3)),
}


@pytest.mark.parametrize('kind', CELLS)
@pytest.mark.parametrize('lengths', [None, [6, 0, 3, 1]])
def test_cells(kind, lengths):
    compare(CELLS[kind](), lengths)


@pytest.mark.parametrize('kind', ['lstm', 'gru'])
@pytest.mark.parametrize('lengths', [None, [2, 6, 0, 6]])
def test_time_major(kind, lengths):
    compare(CELLS[kind](), lengths, time_major=True)


@pytest.mark.parametrize('kind', ['lstm', 'gru', 'two_layers'])
def test_initial_state(kind):
    compare(CELLS[kind](), [0, 6, 2, 5], initial=True)


def test_unknown_sizes():
    compare(Lstm(5), [1, 4, 6, 0], static=False)
    compare(Gru(5), static=False, time_major=True)


def test_lengths_of_zero():
    compare(Lstm(5), [0, 0, 0, 0], initial=True)


def test_no_sequence_reaches_the_end():
    compare(Lstm(5), [1, 3, 0, 2], static=False)
    compare(Gru(5), [0, 0, 0, 0], static=False, time_major=True)
    compare(Gru(5), [9, 7, 6, 8])  # longer than the inputs are


def test_lengths_in_int64():
    compare(Gru(5), [1, 2, 3, 4], lengths_dtype=np.int64)


def test_double():
    compare(Lstm(4, dtype=tf.float64), [3, 6, 0, 2], dtype=np.float64, tolerance=1e-12)


@pytest.mark.parametrize('parallel', [1, 4])
def test_threads(parallel):
    compare(CELLS['two_layers'](), [3, 6, 0, 2], threads=4, parallel_iterations=parallel)


def test_one_step_and_one_row():
    compare(Lstm(5), steps=1, batch=1)


# ---- bidirectional and unrolled ----

@pytest.mark.parametrize('lengths', [None, [6, 0, 3, 1]])
@pytest.mark.parametrize('time_major', [False, True])
def test_bidirectional(lengths, time_major):
    shape = [6, 4, 3] if time_major else [4, 6, 3]
    feeds = {'x:0': random_values(shape, np.float32, 1)}
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.disable_control_flow_v2()
        x = v1.placeholder(tf.float32, shape, 'x')
        sequence_length = None
        if lengths:
            sequence_length = v1.placeholder(tf.int32, [4], 'lengths')
            feeds['lengths:0'] = np.array(lengths, np.int32)
        outputs, states = v1.nn.bidirectional_dynamic_rnn(Lstm(5), Gru(2), x, sequence_length, dtype=tf.float32,
                                                          time_major=time_major)
        session.run(v1.global_variables_initializer())
        names = [v.op.name for v in v1.trainable_variables()]
        values = dict(zip(names, session.run(v1.trainable_variables())))
        results = [tf.concat(outputs, 2), *outputs, *tf.nest.flatten(states)]
        expected = session.run(results, feeds)
        expected_grads = session.run(v1.gradients(results, [x] + v1.trainable_variables()), feeds)
        definition = placeholders_only(graph)
    model = Model(definition)
    try:
        options = model.rnn_options(lengths='lengths:0' if lengths else None, time_major=time_major)
        made = model.c.weir_bidirectional_rnn_with(model.scope, model.cell(Lstm(5)), model.cell(Gru(2)), model.edge('x:0'),
                                                   ctypes.byref(options))
        model.ok()
        fetches = [made.outputs, made.forward.outputs, made.backward.outputs, made.forward.state[0], made.forward.state[1],
                   made.backward.state[0]]
        variables = model.variables()
        grads = model.gradients(fetches, [model.edge('x:0')] + [variables[n].handle for n in names])
        model.assign(values)
        check(model.run(fetches, feeds), expected, 2e-5)
        check(model.run(grads, feeds), expected_grads, 5e-5)
    finally:
        model.close()


@pytest.mark.parametrize('lengths', [None, [4, 0, 3, 1]])
def test_static(lengths):
    feeds = {f'x{i}:0': random_values([4, 3], np.float32, i) for i in range(4)}
    cell = Multi(Lstm(5), Lstm(2))
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.disable_control_flow_v2()
        xs = [v1.placeholder(tf.float32, [4, 3], f'x{i}') for i in range(4)]
        sequence_length = None
        if lengths:
            sequence_length = v1.placeholder(tf.int32, [4], 'lengths')
            feeds['lengths:0'] = np.array(lengths, np.int32)
        outputs, state = v1.nn.static_rnn(cell, xs, dtype=tf.float32, sequence_length=sequence_length)
        session.run(v1.global_variables_initializer())
        names = [v.op.name for v in v1.trainable_variables()]
        values = dict(zip(names, session.run(v1.trainable_variables())))
        results = outputs + tf.nest.flatten(state)
        expected = session.run(results, feeds)
        expected_grads = session.run(v1.gradients(results, xs + v1.trainable_variables()), feeds)
        definition = placeholders_only(graph)
    model = Model(definition)
    try:
        options = model.rnn_options(lengths='lengths:0' if lengths else None)
        x_edges = [model.edge(f'x{i}:0') for i in range(4)]
        out = (Edge * 4)()
        made = model.c.weir_static_rnn_with(model.scope, model.cell(cell), (Edge * 4)(*x_edges), 4, out, ctypes.byref(options))
        model.ok()
        fetches = list(out) + [made.state[i] for i in range(4)]
        variables = model.variables()
        grads = model.gradients(fetches, x_edges + [variables[n].handle for n in names])
        model.assign(values)
        check(model.run(fetches, feeds), expected, 2e-5)
        check(model.run(grads, feeds), expected_grads, 5e-5)
    finally:
        model.close()


# ---- Keras' layers ----

@pytest.mark.parametrize('kind', ['lstm', 'gru'])
def test_keras(kind):
    x = random_values([4, 6, 3], np.float32, 1)
    layers = tf.keras.layers
    if kind == 'lstm':
        layer, spec = layers.LSTM(5, return_sequences=True, return_state=True), Lstm(5, forget_bias=0.0)
    else:
        layer, spec = layers.GRU(5, return_sequences=True, return_state=True, reset_after=False), Gru(5)
    outputs, *states = [np.array(v) for v in layer(x)]
    kernel, recurrent, bias = layer.get_weights()
    kernel = np.concatenate([kernel, recurrent])
    if kind == 'lstm':  # Keras: i, f, c, o and the state h, c
        i, f, c, o = np.split(kernel, 4, 1)
        b = np.split(bias, 4)
        values = {'rnn/lstm_cell/kernel': np.concatenate([i, c, f, o], 1),
                  'rnn/lstm_cell/bias': np.concatenate([b[0], b[2], b[1], b[3]])}
        states = states[::-1]
    else:  # Keras: update, reset, candidate
        z, r, c = np.split(kernel, 3, 1)
        b = np.split(bias, 3)
        values = {'rnn/gru_cell/gates/kernel': np.concatenate([r, z], 1), 'rnn/gru_cell/gates/bias': np.concatenate([b[1], b[0]]),
                  'rnn/gru_cell/candidate/kernel': c, 'rnn/gru_cell/candidate/bias': b[2]}
    with tf.Graph().as_default() as graph:
        v1.placeholder(tf.float32, x.shape, 'x')
        definition = placeholders_only(graph)
    model = Model(definition)
    try:
        outs, state = model.rnn(model.cell(spec), 'x:0')
        model.assign({k: np.ascontiguousarray(v) for k, v in values.items()})
        check(model.run([outs] + state, {'x:0': x}), [outputs] + states, 2e-5)
    finally:
        model.close()


# ---- training ----

def test_two_layers_train_as_in_tensorflow():
    """Fifty steps, two LSTM layers, twenty steps of gradient descent: the loss goes down, and as TensorFlow's does."""
    steps, batch, width, units, rate = 50, 8, 4, 16, 0.5
    x = random_values([batch, steps, width], np.float32, 1)
    target = np.tanh(x.sum(2).cumsum(1)[:, -1:]).astype(np.float32)
    cell = Multi(Lstm(units, name='basic_lstm_cell'), Lstm(units, name='basic_lstm_cell'))
    feeds = {'x:0': x, 'target:0': target}
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.disable_control_flow_v2()
        v1.set_random_seed(5)
        xs = v1.placeholder(tf.float32, [batch, steps, width], 'x')
        ts = v1.placeholder(tf.float32, [batch, 1], 'target')
        outputs, state = v1.nn.dynamic_rnn(cell, xs, dtype=tf.float32)
        top = tf.reduce_sum(state[1][1], 1, keepdims=True)
        loss = tf.reduce_mean(tf.square(top - ts))
        train = v1.train.GradientDescentOptimizer(rate / units).minimize(loss)
        session.run(v1.global_variables_initializer())
        names = [v.op.name for v in v1.trainable_variables()]
        values = dict(zip(names, session.run(v1.trainable_variables())))
        expected = [session.run([loss, train], feeds)[0] for _ in range(20)]
        definition = placeholders_only(graph)
    model = Model(definition, threads=2)
    try:
        outputs, state = model.rnn(model.cell(cell), 'x:0')
        train_names = sorted(model.variables())
        assert train_names == sorted(names)
        top = model.op('sum', state[3], model.constant(1), options=KeepDims(keep_dims=True))
        square = model.op('square', model.op('sub', top, model.edge('target:0')))
        square = model.op('reshape', square, model.op('expand_dims', model.constant(-1), model.constant(0)))
        loss = model.op('mean', square, model.constant(0), options=KeepDims())
        model.c.weir_train_sgd.restype = POINTER
        train = POINTER(model.c.weir_train_sgd(model.scope, loss, ctypes.c_float(rate / units)))
        model.ok()
        model.assign(values)
        train = model.c.weir_node_name(train).decode()
        losses = [model.run([loss], feeds, targets=[train])[0] for _ in range(20)]
    finally:
        model.close()
    np.testing.assert_allclose(losses, expected, rtol=2e-4)
    assert losses[-1] < losses[0] / 2


# ---- errors ----

def test_errors():
    with tf.Graph().as_default() as graph:
        v1.placeholder(tf.float32, [4, 6, None], 'x')
        v1.placeholder(tf.float32, [4, 6, 3], 'y')
        v1.placeholder(tf.float32, [4], 'lengths')
        definition = placeholders_only(graph)
    for inputs, lengths, message in [('x:0', None, 'known last dimension'), ('y:0', 'lengths:0', 'vector of integers')]:
        model = Model(definition)
        with pytest.raises(RuntimeError, match=message):
            model.rnn(model.cell(Gru(2)), inputs, lengths=lengths)
        with pytest.raises(Exception):
            model.close()
