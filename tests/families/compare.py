"""One program, run by TensorFlow's own session and by TensorFlow's client on servers of Weir's: the results must be the same.

A program is a function of a session and a form that builds a graph and returns what it found, in any structure. The forms:
'graph' is a graph with the loops and conditionals of TensorFlow 1; 'functions' has those of TensorFlow 2 (If, While), and
what goes through form.function is a PartitionedCall; 'tasks' is the first of them over two tasks: what holds state on a parameter
server, all else on a worker."""
import contextlib

import numpy as np

import clusters
from clusters import tf, tf1

FORMS = ('graph', 'functions', 'tasks')
STATE, WORK = '/job:ps/task:0', '/job:worker/task:0'
KEEPERS = ('Dataset', 'Iterator', 'VarHandle', 'VarIs', 'Variable', 'Assign', 'Resource', 'Table', 'Queue')  # in names of ops that keep state


class Form:
    def __init__(self, name, device):
        self.name = name
        self.device = device  # of state that the program places by itself

    def function(self, f):
        return tf.function(f, autograph=False) if self.name == 'functions' else f


def keeps_state(op):
    return any(word in op.type for word in KEEPERS)


def place(op):
    return op.device or (STATE if keeps_state(op) else WORK)


@contextlib.contextmanager
def control_flow(is_new):
    was_new = tf1.control_flow_v2_enabled()
    (tf1.enable_control_flow_v2 if is_new else tf1.disable_control_flow_v2)()
    yield
    (tf1.enable_control_flow_v2 if was_new else tf1.disable_control_flow_v2)()


def run(target, program, name):
    config = {}
    if not target:  # without the rewriting: on some machines TensorFlow's kernels lack what it makes
        options = tf1.GraphOptions()
        options.rewrite_options.disable_meta_optimizer = True
        config['graph_options'] = options
    with control_flow(name == 'functions'), clusters.session(target, **config) as s:
        with tf1.device(place if name == 'tasks' and target else None):
            tf1.set_random_seed(1)
            return program(s, Form(name, STATE if name == 'tasks' and target else None))


def check(servers, program, name='graph', rtol=1e-5, atol=1e-6):
    """Text, truth and whole numbers are equal, others up to what another order of additions may do."""
    same(run(servers.target, program, name), run('', program, name), rtol, atol)


def same(got, want, rtol=1e-5, atol=1e-6):
    tf.nest.assert_same_structure(got, want)
    for i, (a, b) in enumerate(zip(tf.nest.flatten(got), tf.nest.flatten(want))):
        a, b, where = np.asarray(a), np.asarray(b), f'result {i}'
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f'{where}: {a.dtype} {a.shape}, not {b.dtype} {b.shape}'
        if b.dtype.kind in 'fc':
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def variables(**shapes):
    """Resource variables with draws of a fixed seed in them, small."""
    return {name: tf1.get_variable(name, initializer=tf1.random_normal(shape, stddev=0.3, seed=i + 1), use_resource=True)
            for i, (name, shape) in enumerate(shapes.items())}


def train(s, loss, steps, feeds=None, optimizer=None):
    """The losses of some steps."""
    optimizer = optimizer or tf1.train.GradientDescentOptimizer(0.1)
    step = optimizer.minimize(loss)
    s.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
    return [s.run([loss, step], feeds)[0] for _ in range(steps)]


def falls(losses, factor=0.8):
    assert np.isfinite(losses).all() and losses[-1] < factor * losses[0], losses
    return losses


def error_of(fn, *args, **kwargs):
    """Its code: messages are compared elsewhere."""
    return np.int32(clusters.error_of(fn, *args, **kwargs).error_code)
