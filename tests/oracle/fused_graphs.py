"""Graphs of elementwise nodes that Weir fuses, for compile_kernels.py: every function that GPUs have, every type, every way to
broadcast."""
import tensorflow as tf

MOST_NODES = 12  # of a graph that was fused, arguments, results and copies included
FLOATING = (tf.float32, tf.float64, tf.half, tf.bfloat16)
UNARY = ('Abs Neg Sign Square Reciprocal Sqrt Rsqrt Exp Expm1 Log Log1p Tanh Sigmoid Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh '
         'Acosh Atanh Erf Erfc Lgamma Floor Ceil Round Relu Relu6 LeakyRelu Elu Selu Softplus Softsign').split()
BINARY = ('AddV2 Sub Mul RealDiv FloorDiv FloorMod TruncateDiv Pow SquaredDifference Maximum Minimum DivNoNan MulNoNan Xdivy Xlogy '
          'Xlog1py Atan2 TanhGrad SigmoidGrad SqrtGrad RsqrtGrad ReciprocalGrad ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad '
          'SoftplusGrad SoftsignGrad').split()
COMPARISONS = 'Less LessEqual Greater GreaterEqual Equal NotEqual'.split()
INTEGERS = (tf.int8, tf.int16, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64)
# Of three operands; the result has the shape of the first.
SHAPES = [((6, 8), (6, 8), (6, 8)), ((6, 8), (), ()), ((6, 8), (8,), ()), ((6, 8), (6, 1), (8,)), ((6, 7), (6, 1), (7,)),
          ((4, 5, 6), (4, 1, 6), (1, 5, 1)), ((4, 5, 8), (4, 1, 8), (5, 1)), ((), (), ()), ((0, 3), (3,), ())]


def feed(dtype, shape=(5, 12)):
    return tf.compat.v1.placeholder(dtype, shape)


def raw(name, *inputs):
    """An op by its name, of inputs in their order."""
    op = getattr(tf.raw_ops, name)
    names = {'Less': 'x y', 'AddN': 'inputs'}.get(name) or ' '.join(
        a for a in op.__signature__.parameters if a not in ('name', 'alpha', 'incompatible_shape_error'))
    return op(**dict(zip(names.split(), inputs)))


def functions(dtype):
    x, y = feed(dtype), feed(dtype)
    for name in UNARY:
        y = raw(name, y)
    for name in BINARY:
        y = raw(name, y, x)
    if dtype in (tf.float32, tf.float64):
        y = tf.raw_ops.NextAfter(x1=raw('Ndtri', raw('Erfinv', raw('Rint', y))), x2=x)
    return tf.raw_ops.LogicalAnd(x=raw('IsNan', y), y=tf.raw_ops.LogicalOr(x=raw('IsInf', y), y=raw('IsFinite', x)))


def integers(dtype):
    x, y = feed(dtype), feed(dtype)
    for name in 'AddV2 Sub Mul Maximum Minimum BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift'.split():
        y = raw(name, y, x)
    return tf.raw_ops.Invert(x=tf.raw_ops.Square(x=y)) if dtype == tf.int64 else tf.raw_ops.Invert(x=y)


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


def cases():
    """Names and functions that build a graph and return what it is fetched for."""
    for dtype in FLOATING:
        yield f'functions of {dtype.name}', lambda d=dtype: functions(d)
    for dtype in INTEGERS:
        yield f'integers of {dtype.name}', lambda d=dtype: integers(d)
    for dtype in FLOATING + (tf.int64,):
        yield f'choices of {dtype.name}', lambda d=dtype: choices(d)
        yield f'casts of {dtype.name}', lambda d=dtype: casts(d)
    for shapes in SHAPES:
        yield f'broadcasts of {shapes}', lambda s=shapes: broadcasts(s)
    yield 'several shapes', several_shapes
    yield 'a long chain', long_chain


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
