"""Graphs of nodes that Weir fuses or joins: elementwise functions, every one that GPUs have, of every type and with every way to
broadcast; updates of many variables; and batch normalisations with what follows them, both ways.

    fused_graphs.py --write DIRECTORY                                   needs TensorFlow
    fused_graphs.py --run DIRECTORY --probe FILE [--devices LIST]       does not

Writes them to files, and runs those where there is a GPU: fused and not, they must give the same bits. compile_kernels.py compiles them
elsewhere.
"""
import argparse
import ctypes
import glob
import os
import sys

try:
    import tensorflow as tf
except ImportError:  # to run them
    tf = None

MOST_NODES = 12  # of a graph that was fused, arguments, results and copies included
MOST_OF_SUMS = 8  # of one with sums that were taken along
FLOATING = (tf.float32, tf.float64, tf.half, tf.bfloat16) if tf else ()
UNARY = ('Abs Neg Sign Square Reciprocal Sqrt Rsqrt Exp Expm1 Log Log1p Tanh Sigmoid Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh '
         'Acosh Atanh Erf Erfc Lgamma Digamma Floor Ceil Round Relu Relu6 LeakyRelu Elu Selu Softplus Softsign').split()
BINARY = ('AddV2 Sub Mul RealDiv FloorDiv FloorMod TruncateDiv Pow SquaredDifference Maximum Minimum DivNoNan MulNoNan Xdivy Xlogy '
          'Xlog1py Atan2 TanhGrad SigmoidGrad SqrtGrad RsqrtGrad ReciprocalGrad ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad '
          'SoftplusGrad SoftsignGrad').split()
COMPARISONS = 'Less LessEqual Greater GreaterEqual Equal NotEqual'.split()
INTEGERS = (tf.int8, tf.int16, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64) if tf else ()
# Of three operands; the result has the shape of the first.
SHAPES = [((6, 8), (6, 8), (6, 8)), ((6, 8), (), ()), ((6, 8), (8,), ()), ((6, 8), (6, 1), (8,)), ((6, 7), (6, 1), (7,)),
          ((4, 5, 6), (4, 1, 6), (1, 5, 1)), ((4, 5, 8), (4, 1, 8), (5, 1)), ((), (), ()), ((0, 3), (3,), ())]

# Of tensors whose channels are summed: channels of every number, few rows and many, runs that packs fit and that they do not, and nothing.
NHWC = [(4, 5, 6, 1), (4, 5, 6, 3), (3, 5, 5, 7), (2, 6, 6, 36), (30, 30, 30, 64), (5, 1000), (3, 2, 1001), (2, 3000), (40000, 3), (9000, 4), (1, 8),
        (1, 1), (0, 4, 4, 3), (2, 3, 0)]
NCHW = [(4, 3, 5, 7), (3, 7, 6, 6), (4, 64, 8, 8), (2, 1000, 2, 2), (2, 3, 100, 100), (64, 2, 40, 40), (5, 1, 6, 6), (6, 4, 1, 1), (2, 3, 40000),
        (2, 5, 0, 4), (0, 5, 4, 4)]


# Optimizers and their variables.
SLOTS = {'GradientDescent': ['var'], 'Momentum': ['var', 'accum'], 'KerasMomentum': ['var', 'accum'], 'Adam': ['var', 'm', 'v'],
         'RMSProp': ['var', 'ms', 'mom']}
SIZES = [1, 3, 0, 4096, 4097, 5000, 12289] + list(range(2, 25))  # of variables; more than are updated at once


def feed(dtype, shape=(5, 12)):
    return tf.compat.v1.placeholder(dtype, shape)


def raw(name, *inputs):
    """An op by its name, of inputs in their order."""
    op = getattr(tf.raw_ops, name)
    names = {'Less': 'x y', 'AddN': 'inputs'}.get(name) or ' '.join(
        a for a in op.__signature__.parameters if a not in ('name', 'alpha', 'incompatible_shape_error'))
    return op(**dict(zip(names.split(), inputs)))


def functions(dtype):
    """Each function's value goes on into the next one's, unless it is infinite or no number."""
    x, y = feed(dtype), feed(dtype)
    wide = dtype in (tf.float32, tf.float64)
    values = [lambda v, n=name: raw(n, v) for name in UNARY + ['Rint', 'Erfinv', 'Ndtri'] * wide
              if name not in ('Lgamma', 'Digamma') or dtype != tf.bfloat16]
    values += [lambda v, n=name: raw(n, v, x) for name in BINARY + ['NextAfter', 'TruncateMod', 'Zeta', 'Polygamma'] * wide]
    for value in values:
        z = value(y)
        bad = tf.raw_ops.LogicalOr(x=raw('IsInf', z), y=tf.raw_ops.LogicalAnd(x=raw('IsNan', z), y=tf.logical_not(raw('IsFinite', z))))
        y = tf.raw_ops.SelectV2(condition=bad, t=x, e=y * tf.constant(0.25, dtype) + z)
    return y


def integers(dtype):
    x, y = feed(dtype), feed(dtype)
    for name in 'AddV2 Sub Mul Maximum Minimum BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift'.split():
        y = raw(name, y, x)
    return tf.raw_ops.Invert(x=tf.raw_ops.Square(x=y)) if dtype == tf.int64 else tf.raw_ops.Invert(x=y)


def complexes(dtype):
    """Numbers are put together and taken apart."""
    x, y = feed(dtype), feed(dtype)
    for _ in range(2):
        whole = tf.math.conj(tf.complex(x, y))
        x, y = tf.math.imag(whole) + tf.math.angle(whole), tf.math.real(whole) * tf.abs(whole)
    return tf.math.conj(tf.complex(x, y))


def choices(dtype):
    x, y = feed(dtype), feed(dtype)
    for name in COMPARISONS:
        y = tf.raw_ops.SelectV2(condition=tf.logical_not(raw(name, x, y)), t=x, e=y)
    return y


def casts(dtype):
    y = feed(dtype)
    for other in FLOATING + INTEGERS + (tf.bool,):
        y = tf.cast(tf.cast(y, other), dtype)
    return y


def broadcasts(shapes):
    x, y, z = (feed(tf.float32, shape) for shape in shapes)
    y = (x + tf.exp(y)) * tf.tanh(z) + y
    return tf.raw_ops.SelectV2(condition=y > z, t=y, e=-x)


def several_shapes():
    """A value that is read small and large."""
    x, bias = feed(tf.float32, (64, 48)), feed(tf.float32, (48,))
    scale = tf.exp(bias) * bias
    y = tf.nn.relu(tf.nn.bias_add(x * scale, bias))
    return tf.concat([tf.reshape(tf.reduce_sum(y, 0), [48]), tf.reshape(scale, [48])], 0)


def long_chain():
    y = feed(tf.float32, (300,))
    for i in range(300):
        y = tf.sin(y) if i % 2 else tf.raw_ops.AddN(inputs=[y, tf.tanh(y)])
    return y


def all_of(*values):
    return tf.concat([tf.reshape(value, [-1]) for value in values], 0)


def channel_sums(value, data_format='NHWC'):
    return tf.raw_ops.BiasAddGrad(out_backprop=value, data_format=data_format)


def relu_gradients(dtype, shape, data_format):
    """What a layer's gradients begin with: read whole, and summed by channels."""
    gradient = tf.raw_ops.ReluGrad(gradients=feed(dtype, shape), features=feed(dtype, shape))
    return all_of(gradient, channel_sums(gradient, data_format))


def sums_without(dtype):
    """Of a value that nobody else reads, and is no number here and there."""
    x, y = feed(dtype, (300, 24)), feed(dtype, (300, 24))
    return channel_sums(tf.sqrt(x) * y)


def sums_of_broadcasts(shapes):
    """Integers: however they are added, their sums are the same."""
    x, y, z = (tf.round(feed(tf.float32, shape) * 8) for shape in shapes)
    value = x * y - z
    return all_of(value, channel_sums(value), channel_sums(-value), y)


def sums_between_types(dtype, other):
    """Mixed precision: another type in memory than what is summed."""
    x = tf.cast(tf.round(feed(dtype, (50, 40)) * 8), other)
    value = tf.raw_ops.ReluGrad(gradients=x, features=tf.cast(feed(dtype, (50, 40)), other))
    return all_of(tf.cast(value, dtype), tf.cast(channel_sums(value), dtype))


def sums_apart():
    """What is made of a sum is not of the sum's node."""
    x = tf.round(feed(tf.float32, (64, 12)) * 8)
    total = channel_sums(x)
    return all_of(x * total, channel_sums(tf.exp(x) * 0 + total))


def scalars(optimizer, rate, half):
    if optimizer == 'GradientDescent':
        return dict(alpha=rate)
    if optimizer == 'Adam':
        return dict(lr=rate, beta1_power=half, beta2_power=half, beta1=half, beta2=half, epsilon=rate)
    if optimizer == 'RMSProp':
        return dict(lr=rate, rho=half, momentum=half, epsilon=rate)
    return dict(lr=rate, momentum=half, use_nesterov=optimizer == 'Momentum')


def set_variable(name, value, is_resource):
    """A variable, and what sets it."""
    if is_resource:
        handle = tf.raw_ops.VarHandleOp(dtype=value.dtype, shape=value.shape, shared_name=name)
        return handle, tf.raw_ops.AssignVariableOp(resource=handle, value=value)
    reference = tf.raw_ops.VariableV2(dtype=value.dtype, shape=value.shape, shared_name=name)
    return reference, tf.raw_ops.Assign(ref=reference, value=value).op


def updates(optimizer, dtype, is_resource=True):
    """Variables are set, updated and read in one step."""
    apply = getattr(tf.raw_ops, ('ResourceApply' if is_resource else 'Apply') + optimizer)
    x = feed(dtype, (max(SIZES),))
    rate, half = x[0] * x[0], tf.constant(0.5, dtype)
    variables, done = [], []
    for i, size in enumerate(SIZES):
        slots, ready = zip(*(set_variable(f'{slot}{i}', tf.abs(x[:size]) + tf.constant(k + 1, dtype), is_resource)
                             for k, slot in enumerate(SLOTS[optimizer])))
        with tf.control_dependencies(ready):
            gradient = {'delta' if optimizer == 'GradientDescent' else 'grad': x[:size] * half}
            done.append(apply(**dict(zip(SLOTS[optimizer], slots)), **gradient, **scalars(optimizer, rate, half)))
        variables += slots
    with tf.control_dependencies([tf.group(done)]):
        return tf.concat([tf.raw_ops.ReadVariableOp(resource=v, dtype=dtype) if is_resource else tf.identity(v) for v in variables], 0)


def most_updates(optimizer):
    """Nodes of a step whose updates are one of them."""
    return len(SIZES) * (7 + 3 * len(SLOTS[optimizer])) + 10


def normalisation(dtype, shape, layout='NHWC', is_training=True, has_side=False):
    """A batch normalisation, an addend or none, a ReLU, and their gradients."""
    x, side, dy = (feed(dtype, shape) for _ in range(3))
    scale, offset, mean, variance = (feed(tf.float32, shape[1:2] if layout == 'NCHW' else shape[-1:]) for _ in range(4))
    attrs = dict(epsilon=0.001, data_format=layout, is_training=is_training)
    variance = tf.square(variance)
    norm = tf.raw_ops.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean, variance=variance,
                                       exponential_avg_factor=0.25 if is_training else 1.0, **attrs)
    y = tf.nn.relu(norm.y + side if has_side else norm.y)
    masked = tf.raw_ops.ReluGrad(gradients=dy, features=y)
    moments = (norm.reserve_space_1, norm.reserve_space_2) if is_training else (mean, variance)
    grad = tf.raw_ops.FusedBatchNormGradV3(y_backprop=masked, x=x, scale=scale, reserve_space_1=moments[0], reserve_space_2=moments[1],
                                           reserve_space_3=norm.reserve_space_3, **attrs)
    results = [y, norm.batch_mean, norm.batch_variance, *grad[:3]] + [masked] * has_side
    return tf.concat([tf.cast(tf.reshape(v, [-1]), tf.float32) for v in results], 0)


def failures():
    """Names, functions that build a graph of nodes that are joined, and what its error says."""
    def unset(is_resource, sizes):
        x, done = feed(tf.float32, (3,)), []
        for i, size in enumerate(sizes):
            if is_resource:
                variable = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=tf.TensorShape(None), shared_name=f'v{i}')
                ready = [tf.raw_ops.AssignVariableOp(resource=variable, value=tf.fill([size], x[0]))] if size else []
            else:
                variable, ready = tf.raw_ops.VariableV2(dtype=tf.float32, shape=[3], name=f'v{i}'), []
            with tf.control_dependencies(ready):
                apply = tf.raw_ops.ResourceApplyGradientDescent if is_resource else tf.raw_ops.ApplyGradientDescent
                done.append(apply(var=variable, alpha=x[0], delta=x, name=f'update{i}'))
        with tf.control_dependencies([tf.group(done)]):
            return tf.identity(x)
    yield 'a handle of nothing', lambda: unset(True, [3, 0]), "Node 'update1' (ResourceApplyGradientDescent): Invalid variable reference"
    yield 'an unset reference', lambda: unset(False, [3, 3]), "Node 'update0' (ApplyGradientDescent): Attempting to use uninitialized value v0"
    yield 'another shape', lambda: unset(True, [3, 4]), "Node 'update1' (ResourceApplyGradientDescent): var and delta do not have the same shape"


def cases():
    """Names, functions that build a graph and return what it is fetched for, and how many nodes may be left of it."""
    for dtype in FLOATING:
        yield f'functions of {dtype.name}', lambda d=dtype: functions(d), MOST_NODES
    for dtype in INTEGERS:
        yield f'integers of {dtype.name}', lambda d=dtype: integers(d), MOST_NODES
    for dtype in (tf.float32, tf.float64):
        yield f'complex numbers of {dtype.name}', lambda d=dtype: complexes(d), MOST_NODES
    for dtype in FLOATING + (tf.int64,):
        yield f'choices of {dtype.name}', lambda d=dtype: choices(d), MOST_NODES
        yield f'casts of {dtype.name}', lambda d=dtype: casts(d), MOST_NODES
    for shapes in SHAPES:
        yield f'broadcasts of {shapes}', lambda s=shapes: broadcasts(s), MOST_NODES
    yield 'several shapes', several_shapes, MOST_NODES
    yield 'a long chain', long_chain, MOST_NODES
    for shape in NHWC:
        yield f'sums of channels of {shape}', lambda s=shape: relu_gradients(tf.float32, s, 'NHWC'), MOST_OF_SUMS
    for shape in NCHW:
        yield f'sums of channels of {shape}, NCHW', lambda s=shape: relu_gradients(tf.float32, s, 'NCHW'), MOST_OF_SUMS
    for dtype in FLOATING:
        for data_format in ('NHWC', 'NCHW'):
            yield (f'sums of channels of {dtype.name}, {data_format}', lambda d=dtype, f=data_format: relu_gradients(d, (6, 16, 6, 40), f),
                   MOST_OF_SUMS)
        yield f'sums of channels of {dtype.name} alone', lambda d=dtype: sums_without(d), MOST_OF_SUMS - 2
    for shapes in (s for s in SHAPES if len(s[0]) > 1):
        yield f'sums of broadcasts of {shapes}', lambda s=shapes: sums_of_broadcasts(s), 3 * MOST_NODES
    for dtype, other in (FLOATING[0], FLOATING[2]), (FLOATING[0], FLOATING[3]), (FLOATING[2], FLOATING[0]):
        yield f'sums of {dtype.name} as {other.name}', lambda d=dtype, o=other: sums_between_types(d, o), 2 * MOST_NODES
    yield 'what is made of sums', sums_apart, 2 * MOST_NODES
    for optimizer in SLOTS:
        yield f'updates by {optimizer}', lambda o=optimizer: updates(o, tf.float32), most_updates(optimizer)
        if optimizer != 'KerasMomentum':
            yield f'updates of references by {optimizer}', lambda o=optimizer: updates(o, tf.float32, False), most_updates(optimizer)
    for dtype in FLOATING[1:]:
        yield f'updates of {dtype.name}', lambda d=dtype: updates('Momentum', d), most_updates('Momentum')
    for dtype in (tf.float32, tf.half, tf.bfloat16):
        for side in (False, True):
            for layout, shape in ('NHWC', (9, 6, 5, 64)), ('NHWC', (3, 5, 5, 7)), ('NCHW', (3, 6, 4, 8)):
                yield (f'normalisation of {dtype.name}, {layout} {shape}' + ', and an addend' * side,
                       lambda d=dtype, s=shape, l=layout, a=side: normalisation(d, s, l, has_side=a), MOST_NODES + 14)
        yield f'normalisation of {dtype.name} by moments', lambda d=dtype: normalisation(d, (4, 3, 3, 16), is_training=False), MOST_NODES + 14


def graph_of(build):
    """A serialised GraphDef and the name of its result."""
    with tf.Graph().as_default() as graph:
        result = build()
        return graph.as_graph_def().SerializeToString(), result.name


def on_device(data, device):
    graph = tf.compat.v1.GraphDef.FromString(data)
    for node in graph.node:
        node.device = device
    return graph.SerializeToString()


class Runner:
    """Runs graphs through libweir_probe.so."""

    def __init__(self, probe, devices):
        self.lib = ctypes.CDLL(os.path.abspath(probe))
        self.lib.weir_probe_graph.restype = ctypes.c_char_p
        self.devices = devices

    def run(self, data, fetch, without=None):
        """(nodes of the step, what went wrong or None); without passes, if some are given, the results must be the same."""
        nodes = ctypes.c_size_t()
        message = self.lib.weir_probe_graph(data, ctypes.c_size_t(len(data)), fetch.encode(), self.devices.encode(),
                                            without.encode() if without else None, ctypes.byref(nodes))
        return nodes.value, message.decode() if message else None


def write(directory):
    os.makedirs(directory, exist_ok=True)
    for i, (name, build, _) in enumerate(cases()):
        data, fetch = graph_of(build)
        with open(os.path.join(directory, f'{i:02}.pb'), 'wb') as file:
            file.write(f'{name}\n{fetch}\n'.encode() + data)
    return 0


def run(directory, probe, devices):
    runner, failures = Runner(probe, devices), 0
    for path in sorted(glob.glob(os.path.join(directory, '*.pb'))):
        with open(path, 'rb') as file:
            name, fetch = file.readline().decode().strip(), file.readline().decode().strip()
            nodes, message = runner.run(file.read(), fetch, 'epilogue,fuse,join')
        failures += message is not None
        print(f'{message or "ok"}: {name}, {nodes} nodes', flush=True)
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--write', metavar='DIRECTORY')
    parser.add_argument('--run', metavar='DIRECTORY')
    parser.add_argument('--probe', help='libweir_probe.so')
    parser.add_argument('--devices', default='cpu,cuda', help='of the session')
    options = parser.parse_args()
    return write(options.write) if options.write else run(options.run, options.probe, options.devices)


if __name__ == '__main__':
    sys.exit(main())
