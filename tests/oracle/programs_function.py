"""Programs about functions as values: gradients of functions, optional values, rendezvous by public names, mapped files."""
import numpy as np
import tensorflow as tf
from ml_dtypes import bfloat16
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.framework import function

from programs import program

tf1 = tf.compat.v1
raw = tf.raw_ops
SHAPES = ([], [3], [2, 3], [4, 1])


def floats(p, shape, dtype):
    return p.rng.uniform(0.5, 2.0, shape).astype(dtype)


# ---- SymbolicGradient ----

def bodies(dtype):
    """Functions of two arguments, by the number of their results."""
    return [
        lambda x, y: x * tf.sin(y),
        lambda x, y: (x * y + tf.exp(x), x - y),
        lambda x, y: tf.reduce_sum(x * x) * y,
        lambda x, y: (tf.identity(x), tf.stop_gradient(y) * x, tf.constant(1.5, dtype) * y),
        lambda x, y: tf.tanh(x) / (y + tf.constant(1, dtype)),
        lambda x, y: x,
    ]


@program(60)
def symbolic_gradient(p):
    dtype = p.pick(np.float32, np.float64)
    shape = p.pick(*SHAPES)
    body = bodies(dtype)[int(p.rng.integers(len(bodies(dtype))))]
    defun = function.Defun(tf.as_dtype(dtype), tf.as_dtype(dtype), func_name='differentiated')(body)
    x, y = p.maybe_hide(floats(p, shape, dtype)), p.maybe_hide(floats(p, shape, dtype))
    results = defun(x, y)
    results = results if isinstance(results, (list, tuple)) else [results]
    dys = [floats(p, shape, dtype) for _ in results]
    grads = raw.SymbolicGradient(input=[x, y] + dys, Tout=[dtype, dtype], f=defun)
    p.step(list(results), list(grads))
    p.step(list(grads))


@program(30)
def registered_gradient(p):
    """A gradient function of the library stands for the function's own."""
    dtype = p.pick(tf.float32, tf.float64)
    factor = float(p.rng.uniform(2, 5))

    @function.Defun(dtype, dtype, dtype, func_name='product_gradient')
    def gradient(x, y, dz):
        return dz * factor * y, dz * x - factor

    @function.Defun(dtype, dtype, grad_func=gradient, func_name='product')
    def product(x, y):
        return x * y + 1

    shape = p.pick(*SHAPES)
    x = p.maybe_hide(floats(p, shape, dtype.as_numpy_dtype))
    y = p.maybe_hide(floats(p, shape, dtype.as_numpy_dtype))
    z = product(x, y)
    p.step(z, *tf1.gradients(z * z, [x, y]))
    p.step(*raw.SymbolicGradient(input=[x, y, z], Tout=[dtype, dtype], f=product))


@program(20)
def gradient_of_op(p):
    dtype = p.pick(np.float32, np.float64)
    op = p.pick('Mul', 'Sub', 'Maximum', 'RealDiv')
    func = tf1.AttrValue().func
    func.name = op
    func.attr['T'].type = tf.as_dtype(dtype).as_datatype_enum
    shape = p.pick(*SHAPES)
    x, y, dz = (p.maybe_hide(floats(p, shape, dtype)) for _ in range(3))
    g = tf1.get_default_graph()
    attr = tf1.AttrValue(func=func)
    types = [tf.as_dtype(dtype).as_datatype_enum]
    node = g.create_op('SymbolicGradient', [x if tf.is_tensor(x) else tf.constant(x) for x in (x, y, dz)],
                       [tf.as_dtype(dtype)] * 2,
                       attrs={'f': attr, 'Tin': tf1.AttrValue(list=tf1.AttrValue.ListValue(type=types * 3)),
                              'Tout': tf1.AttrValue(list=tf1.AttrValue.ListValue(type=types * 2))})
    p.step(list(node.outputs))


# ---- optional values ----

@program(60)
def optional(p):
    dtypes = [p.pick(np.float32, np.int32, np.complex64, np.bool_, np.int8) for _ in range(int(p.rng.integers(1, 4)))]
    values = [p.maybe_hide((p.rng.uniform(0, 3, p.pick(*SHAPES))).astype(d)) for d in dtypes]
    full = raw.OptionalFromValue(components=values)
    none = raw.OptionalNone()
    p.step(raw.OptionalHasValue(optional=full), raw.OptionalHasValue(optional=none))
    shapes = [p.pick(tf.TensorShape(None), tf.TensorShape(v.shape)) for v in values]
    types = [tf.as_dtype(d) for d in dtypes]
    p.step(*raw.OptionalGetValue(optional=full, output_types=types, output_shapes=shapes))
    p.step(*raw.OptionalGetValue(optional=none, output_types=types, output_shapes=shapes))
    wrong = [tf.float64] + types[1:]
    p.step(*raw.OptionalGetValue(optional=full, output_types=wrong, output_shapes=shapes))
    p.step(*raw.OptionalGetValue(optional=full, output_types=types + [tf.int32], output_shapes=shapes + [tf.TensorShape([])]))
    p.step(*raw.OptionalGetValue(optional=full, output_types=types, output_shapes=[tf.TensorShape([7, 7])] + shapes[1:]))
    p.step(raw.OptionalHasValue(optional=raw.ZerosLike(x=full)), raw.OptionalHasValue(optional=raw.ZerosLike(x=none)))
    p.step(*raw.OptionalGetValue(optional=raw.ZerosLike(x=full), output_types=types, output_shapes=shapes))


@program(30)
def optional_sums(p):
    dtype, shape = p.pick(np.float32, np.int32, np.float64), p.pick(*SHAPES)
    a, b = (p.maybe_hide(p.rng.uniform(0, 3, shape).astype(dtype)) for _ in range(2))
    one, none = raw.OptionalFromValue(components=[a]), raw.OptionalNone()
    three = raw.OptionalFromValue(components=[b])
    get = dict(output_types=[dtype], output_shapes=[tf.TensorShape(None)])
    p.step(*raw.OptionalGetValue(optional=raw.AddN(inputs=[one, three]), **get))
    p.step(raw.OptionalHasValue(optional=raw.AddN(inputs=[none, none])))
    p.step(raw.OptionalHasValue(optional=raw.AddN(inputs=[one, none])))


@program(30)
def optional_gradients(p):
    dtype, shape = p.pick(np.float32, np.float64), p.pick(*SHAPES)
    x, y = (p.maybe_hide(p.rng.uniform(0, 3, shape).astype(dtype)) for _ in range(2))
    kept = raw.OptionalFromValue(components=[x * 2, y])
    a, b = raw.OptionalGetValue(optional=kept, output_types=[dtype] * 2, output_shapes=[x.shape if tf.is_tensor(x) else shape] * 2)
    p.step(*tf1.gradients(a * a + tf.sin(b), [x, y]))


# ---- rendezvous by the public names; files as tensors; event files ----

@program(50)
def public_send_and_recv(p):
    dtype, shape = p.pick(np.float32, np.int64, np.complex64), p.pick(*SHAPES)
    value = tf.identity(p.maybe_hide(p.rng.uniform(0, 3, shape).astype(dtype)))
    device = '/job:localhost/replica:0/task:0/device:CPU:0'
    graph = tf1.GraphDef()
    for kind in ('Send', 'Recv'):
        node = graph.node.add(name=kind, op=kind)
        for key, text in (('tensor_name', 't'), ('send_device', device), ('recv_device', device)):
            node.attr[key].s = text.encode()
        node.attr['send_device_incarnation'].i = 1
        node.attr['T' if kind == 'Send' else 'tensor_type'].type = tf.as_dtype(dtype).as_datatype_enum
    graph.node[0].input.append('value')
    graph.node.add(name='value', op='Placeholder').attr['dtype'].type = tf.as_dtype(dtype).as_datatype_enum
    tf.graph_util.import_graph_def(graph, input_map={'value:0': value}, name='r')
    base = tf1.get_default_graph()
    p.step(tf.identity(base.get_tensor_by_name('r/Recv:0')), base.get_operation_by_name('r/Send'))


@program(80)
def immutable_const(p):
    dtype = p.pick(np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.uint8, np.complex64, np.bool_)
    shape = p.pick(*SHAPES, [0], [1000], [int(p.rng.integers(1, 50)), 2])
    count = int(np.prod(shape))
    data = p.rng.integers(0, 2, count).astype(dtype).tobytes()
    size = len(data) + int(p.pick(0, 0, 8, -1))
    name = p.write('region', (data + bytes(8))[:max(0, size)])
    value = raw.ImmutableConst(dtype=dtype, shape=shape, memory_region_name=name)
    p.step(value)
    p.step(value, tf.identity(value))
    p.step(raw.ImmutableConst(dtype=tf.string, shape=[1], memory_region_name=name))
    p.step(raw.ImmutableConst(dtype=dtype, shape=shape, memory_region_name='nothing'))


@program(40)
def missing_kernels(p):
    """Known ops, with types for which they have no kernel."""
    shape = [1, 2] + list(map(int, p.rng.integers(1, 9, 2)))

    def value(*types):
        return tf.constant(np.ones(shape, p.pick(*types)))
    wrong = (lambda: raw.LRN(input=value(bfloat16)), lambda: raw.Erfinv(x=value(np.float16, bfloat16)),
             lambda: raw.Rint(x=value(np.float16, bfloat16)), lambda: raw.Round(x=value(np.int8, np.int16, np.complex64)),
             lambda: raw.Digamma(x=value(bfloat16)), lambda: raw.Reciprocal(x=value(np.int8, np.int16, np.int32, np.int64)),
             lambda: raw.BatchMatMulV2(x=value(np.uint8), y=value(np.uint8), adj_y=True),
             lambda: raw.Multinomial(logits=np.ones([2, shape[2]], np.int32), num_samples=2))
    fine, bad = tf.constant(shape), p.pick(*wrong)()
    p.step(bad)
    p.step(fine, bad)
    p.step(tf.function(p.pick(*wrong), autograph=False)())


@program(30)
def summary_writers(p):
    writer = raw.SummaryWriter(shared_name=p.pick('', 'shared'))
    step = np.int64(p.rng.integers(100))
    scalar = raw.WriteScalarSummary(writer=writer, step=step, tag='loss', value=p.pick(np.float32(1.5), np.int32(3), np.float16(2)))
    p.step(scalar)
    p.step(raw.FlushSummaryWriter(writer=writer))
    p.step(raw.CloseSummaryWriter(writer=writer))
    p.step(raw.CreateSummaryFileWriter(writer=writer, logdir=p.pick('logs', 'logs/deep/er'), max_queue=p.pick(0, 10),
                                       flush_millis=p.pick(0, 1000), filename_suffix='.x'))
    p.step(scalar)
    metadata = tf1.SummaryMetadata(display_name='shown').SerializeToString()
    p.step(raw.WriteSummary(writer=writer, step=step, tensor=p.pick(np.ones(3, np.float32), np.array([b'a', b'bc'])), tag='t',
                            summary_metadata=p.pick(b'', metadata)))
    summary = tf1.Summary(value=[tf1.Summary.Value(tag='a', simple_value=2)]).SerializeToString()
    p.step(raw.WriteRawProtoSummary(writer=writer, step=step, tensor=p.pick(summary, [summary, summary])))
    p.step(raw.WriteRawProtoSummary(writer=writer, step=step, tensor=b'\xff'))
    p.step(raw.FlushSummaryWriter(writer=writer))
    p.step(raw.CloseSummaryWriter(writer=writer))
    p.step(scalar)


@program(10)
def variant_constants(p):
    """Numbers that a GraphDef holds as variants: sums, zeros, and their text."""
    kind = p.pick(('int', np.int32), ('float', np.float32), ('double', np.float64), ('bool', np.bool_))
    number = lambda value: tf.constant(tensor_pb2.TensorProto(
        dtype=tf.variant.as_datatype_enum, tensor_shape=tf.TensorShape([]).as_proto(),
        variant_val=[dict(type_name=kind[0], metadata=np.array(value, kind[1]).tobytes())]))
    a, b = number(p.rng.integers(2)), number(p.rng.integers(5))
    p.step(raw.AsString(input=a), raw.AsString(input=raw.AddN(inputs=[a, b, b])), raw.AsString(input=raw.ZerosLike(x=b)))


@program(30)
def variants_as_text(p):
    value = p.pick(np.float32(1.5), np.arange(5), np.array([[True, False]]), np.array([b'text']))
    full, none = raw.OptionalFromValue(components=[value, np.int32(3)][:int(p.rng.integers(1, 3))]), raw.OptionalNone()
    made = raw.TensorListFromTensor(tensor=np.ones((2, 3), np.float32), element_shape=np.array([3], np.int32))
    p.step(raw.AsString(input=full), raw.AsString(input=none), raw.AsString(input=made))
    p.step(raw.AsString(input=tf.stack([none, full])))
    p.step(raw.OptionalHasValue(optional=raw.Conj(input=none)))
    p.step(raw.TensorListLength(input_handle=raw.Conj(input=made)))


@program(30)
def for_loop(p):
    """For over a row of numbers, upwards, downwards, and wrong ones."""
    @function.Defun(tf.int32, tf.int32, tf.float32, func_name='turn')
    def body(i, total, last):
        return total * 2 + i, last + tf.cast(i, tf.float32)

    start, limit, delta = (int(p.rng.integers(-5, 6)) for _ in range(3))
    if p.rng.integers(3):
        delta = 1 if start < limit else -1
    p.step(*raw.For(start=p.maybe_hide(np.int32(start)), limit=p.maybe_hide(np.int32(limit)), delta=p.maybe_hide(np.int32(delta)),
                    input=[tf.constant(1), tf.constant(0.5)], body=body))


@program(6)
def for_loop_of_another_body(p):
    @function.Defun(tf.int32, tf.float32, func_name='too_many')
    def body(i, last):
        return last, last

    limit = int(p.rng.integers(0, 3))  # nobody looks at what is not called
    says = [None, 'Expect to produce 1 tensors, but only get 2', 'For loop body returned 2 arguments. Expected: 1'][limit]
    p.step(*raw.For(start=0, limit=p.maybe_hide(np.int32(limit)), delta=1, input=[tf.constant(0.5)], body=body), says=says)


@program(10)
def remote_call(p):
    @function.Defun(tf.float32, func_name='twice')
    def twice(x):
        return x * 2

    target = p.pick('/CPU:0', '/device:CPU:0', '/job:localhost/replica:0/task:0/device:CPU:0')
    p.step(*raw.RemoteCall(target=target, args=[p.maybe_hide(floats(p, (2,), np.float32))], Tout=[tf.float32], f=twice))
