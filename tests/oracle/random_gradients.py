"""Random programs that TensorFlow's client writes: gradients through conditionals and loops, old and new, of variables."""
import os
import random

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

from random_graph import Node, Program, RawFunction, Run, array, bool_, bytes_, func, int_, shape, text, type_

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf.get_logger().setLevel('ERROR')


class Client:
    """Draws a graph: a few variables, an expression of them, its gradients, an update."""

    def __init__(self, rng, kinds):
        self.rng, self.kinds, self.graph = rng, kinds, tf1.get_default_graph()
        self.variables, self.fed = [], {}
        self.dims = rng.choice(([], [2], [3], [2, 2]))

    def chance(self, p):
        return self.rng.random() < p

    def array(self, dims=None):
        dims = self.dims if dims is None else dims
        return np.array([self.rng.randint(-2, 3) for _ in range(int(np.prod(dims)))], np.float32).reshape(dims)

    def hold(self, value):
        """A placeholder outside all conditionals and loops."""
        with self.graph.as_default(), tf1.control_dependencies(None):
            tensor = tf1.placeholder(value.dtype, value.shape)
        self.fed[tensor.name] = value
        return tensor

    def predicate(self):
        return self.hold(np.array(self.chance(0.5)))

    def variable(self):
        is_resource = self.rng.choice(self.kinds) == 'resource'
        v = tf1.get_variable(f'v{len(self.variables)}', initializer=self.array(), use_resource=is_resource)
        self.variables.append(v)
        return v

    def expression(self, x, depth=0):
        kind = self.rng.randrange(11 if depth < 3 else 5)
        if kind == 0:
            return x * self.rng.choice((1.0, 2.0)) + self.rng.choice((0.0, 1.0))
        if kind == 1:
            return tf.square(x) - x
        if kind == 2:
            return tf.maximum(x, self.array())
        if kind == 3 and self.dims:
            return tf.gather(x, self.hold(np.array([self.rng.randrange(self.dims[0]) for _ in range(self.dims[0])], np.int32)))
        if kind == 4:
            return x * tf.reduce_sum(x) * 0.5
        if kind in (5, 6):
            return tf1.cond(self.predicate(), lambda: self.expression(x, depth + 1), lambda: self.branch(x, depth + 1))
        if kind in (7, 8):
            rounds = self.hold(np.int32(self.rng.randrange(4)))
            return tf1.while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, self.expression(y, depth + 2)), [0, x],
                                  parallel_iterations=self.rng.choice((1, 10)))[1]
        if kind == 9:
            return self.array_loop(x)
        return self.expression(self.expression(x, depth + 1), depth + 1)

    def branch(self, x, depth):
        """Now and then nothing of x, so that its gradient is a zero."""
        return tf.constant(self.array()) if self.chance(0.25) else self.expression(x, depth)

    def array_loop(self, x):
        n = 3
        out = tf1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))),
                             [0, tf1.TensorArray(tf.float32, n)])[1]
        return tf.reduce_sum(out.stack(), 0)

    def draw(self):
        vs = [self.variable() for _ in range(self.rng.randrange(1, 3))]
        y = self.expression(tf.identity(vs[0]))
        for v in vs[1:]:
            y = y + self.expression(v * 1.0)
        loss = tf.reduce_sum(y)
        grads = [g for g in tf1.gradients(loss, vs + ([vs[0].read_value()] if self.chance(0.3) else []))]
        dense = [(tf.convert_to_tensor(g), v) for g, v in zip(grads, vs) if g is not None]
        pairs = [(g, v) for g, v in zip(grads, vs) if g is not None]
        optimizer = self.rng.choice((tf1.train.GradientDescentOptimizer(0.5), tf1.train.MomentumOptimizer(0.5, 0.5),
                                     tf1.train.AdagradOptimizer(0.5)))
        update = optimizer.apply_gradients(pairs) if pairs else tf.no_op()
        return loss, [g for g, _ in dense], update


def draw(seed, kinds):
    rng = random.Random(seed)
    graph = tf.Graph()
    is_new = rng.random() < 0.5
    (tf1.enable_control_flow_v2 if is_new else tf1.disable_control_flow_v2)()
    with graph.as_default():
        client = Client(rng, kinds)
        loss, grads, update = client.draw()
        start = tf1.global_variables_initializer()
        reads = [tf.identity(v.read_value() if hasattr(v, 'handle') else v) for v in tf1.global_variables()]
    program = convert(graph.as_graph_def())
    program.features = ('gradients',)
    runs = program.runs
    runs.append(Run([], [start.name]))
    state = Run([r.name for r in reads], is_state=True)
    for _ in range(rng.randrange(1, 4)):
        feeds = {k: v if rng.random() < 0.7 or v.dtype != np.bool_ else ~v for k, v in client.fed.items()}
        if rng.random() < 0.6 or not grads:  # the loss beside the update may be that of before or after
            runs.append(Run([], [update.name], feeds))
        else:
            runs.append(Run([g.name for g in grads] + [loss.name], [], feeds))
        runs.append(state.copy())
    program.threads, program.disabled = rng.choice((1, 2, 4)), rng.choice(('', '', '', 'arithmetic', 'fold', 'fuse', 'all'))
    return program


def attribute(value):
    """Of the kinds that a script can spell, or as it is."""
    kind = value.WhichOneof('value')
    if kind == 'type':
        return type_(value.type)
    if kind == 'i':
        return int_(value.i)
    if kind == 'b':
        return bool_(value.b)
    if kind == 's':
        return text(value.s.decode())
    if kind == 'shape':
        return shape(None if value.shape.unknown_rank else [d.size for d in value.shape.dim])
    if kind == 'tensor' and value.tensor.dtype in (1, 3, 9, 10):
        return array(tf.make_ndarray(value.tensor))
    if kind == 'func':
        return func(value.func.name)
    return bytes_(value.SerializeToString())


def convert(graph_def):
    program = Program()
    for n in graph_def.node:
        program.nodes.append(Node(n.name, n.op, n.input, {k: attribute(v) for k, v in n.attr.items()}))
    for f in graph_def.library.function:
        program.functions.append(RawFunction(f.signature.name, f.SerializeToString()))
    return program
