"""Order and memory: what was read of a reference variable follows the variable, and conditions and updates are never lost.

In TensorFlow a read of a reference variable shares the variable's memory, so whoever looks at it after a write sees the write.
Every program here is ordered by edges, so that TensorFlow's results are determined.
"""
import numpy as np
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1


def draw(p, shape):
    return p.rng.integers(1, 9, shape).astype(np.float32)


def variable(p, shape, dtype=tf.float32):
    """A reference variable, its only read, which nothing orders, and its initialiser."""
    v = raw.VariableV2(shape=shape, dtype=dtype, shared_name=f'v{p.rng.integers(1 << 30)}')
    return v, tf.identity(v), raw.Assign(ref=v, value=tf.constant(draw(p, shape), dtype))


def share(p, x):
    """Something that shares the memory of |x|, of shape [2, 3], in that shape."""
    for _ in range(int(p.rng.integers(0, 4))):
        x = p.pick(
            lambda: tf.identity(x),
            lambda: raw.Reshape(tensor=raw.Reshape(tensor=x, shape=[3, 2]), shape=p.maybe_hide(np.int32([2, 3]))),
            lambda: tf.squeeze(tf.expand_dims(x, 0), [0]),
            lambda: tf.stop_gradient(x),
            lambda: raw.CheckNumerics(tensor=x, message='x'),
            lambda: raw.EnsureShape(input=x, shape=[2, 3]),
            lambda: raw.Transpose(x=x, perm=[0, 1]),
            lambda: raw.Cast(x=x, DstT=tf.float32),
            lambda: raw.IdentityN(input=[x, tf.constant(1)])[0],
            lambda: raw.Sum(input=x, axis=np.int32([])),
            lambda: raw.AddN(inputs=[x]),
            lambda: raw.Tile(input=x, multiples=[1, 1]),
            lambda: raw.Slice(input=x, begin=[0, 0], size=[-1, -1]),
            lambda: raw.StridedSlice(input=x, begin=[0], end=[2], strides=[1]),
            lambda: tf.squeeze(raw.Pack(values=[x], axis=0), [0]),
            lambda: raw.Select(condition=p.hide(True), x=x, y=x * 2.),
            lambda: raw.Merge(inputs=raw.Switch(data=x, pred=p.hide(bool(p.rng.integers(2)))))[0],
            lambda: raw.Exit(data=raw.Enter(data=x, frame_name='f', is_constant=bool(p.rng.integers(2)))),
        )()
    return x


def write(p, v):
    value = tf.constant(draw(p, (2, 3)))
    rows = tf.constant([0, 1])
    with tf.control_dependencies(None):  # what is fed orders nothing
        fed = p.hide(draw(p, (2, 3)))
    return p.pick(
        lambda: raw.Assign(ref=v, value=value),
        lambda: raw.Assign(ref=v, value=fed),
        lambda: raw.Assign(ref=v, value=raw.AddV2(x=value, y=value), use_locking=False),
        lambda: raw.AssignAdd(ref=v, value=value),
        lambda: raw.AssignSub(ref=v, value=value, use_locking=True),
        lambda: raw.ScatterAdd(ref=v, indices=rows, updates=value),
        lambda: raw.ScatterUpdate(ref=v, indices=rows, updates=value),
        lambda: raw.ScatterNdAdd(ref=v, indices=[[0]], updates=value[:1]),
        lambda: raw.ApplyGradientDescent(var=v, alpha=0.5, delta=value),
        lambda: raw.StridedSliceAssign(ref=v, begin=[0], end=[1], strides=[1], value=value[:1]),
    )()


def look(p, x):
    """A new value made of |x|."""
    return p.pick(
        lambda: raw.AddV2(x=x, y=tf.constant(p.pick(0., 1.))),
        lambda: raw.Mul(x=x, y=tf.constant(p.pick(1., 2.))),
        lambda: raw.Neg(x=raw.Neg(x=x)),
        lambda: raw.GatherV2(params=x, indices=[1, 0], axis=0),
        lambda: raw.Sum(input=x, axis=[0]),
        lambda: raw.ConcatV2(values=[x, x], axis=0),
        lambda: raw.Snapshot(input=x),
        lambda: raw.Roll(input=x, shift=0, axis=0),
        lambda: raw.ConjugateTranspose(x=x, perm=[0, 1]),
        lambda: raw.Mul(x=raw.Mul(x=x, y=tf.constant(2.)), y=tf.constant(3.)),
    )()


@program(250)
def reader_after_write(p):
    """Readers before and after each write, of one read that nothing orders."""
    v, read, init = variable(p, (2, 3))
    p.step(init.op)
    x, seen, before = share(p, read), [], []
    for _ in range(int(p.rng.integers(1, 4))):
        with tf.control_dependencies(before):
            seen.append(look(p, x))
        with tf.control_dependencies([seen[-1]]):
            before = [write(p, v)]
    with tf.control_dependencies(before):
        seen.append(look(p, x))
    p.step(*seen)
    p.step(v)
    p.step(*seen)


@program(60)
def readers_by_reference(p):
    """Readers before and after each write that have the reference itself."""
    v, _, init = variable(p, (2, 3))
    p.step(init.op)
    seen, before = [], []
    for _ in range(int(p.rng.integers(1, 4))):
        with tf.control_dependencies(before):
            seen.append(look(p, v))
        with tf.control_dependencies([seen[-1]]):
            before = [write(p, v)]
    with tf.control_dependencies(before):
        seen.append(look(p, v))
    p.step(*seen)
    p.step(*seen)


@program(80)
def rows(p):
    """Rows of a variable are views where they are aligned in memory, as in TensorFlow."""
    width, dtype = p.pick(3, 8, 16, 32), p.pick(tf.float32, tf.float64, tf.int32)
    shape = p.pick((4, width), (4 * width,))
    v, read, init = variable(p, shape, dtype)
    p.step(init.op)
    begin, count = int(p.rng.integers(2)) * shape[0] // 4, shape[0] // 2
    part = p.pick(
        lambda: raw.Slice(input=read, begin=[begin] + [0] * (len(shape) - 1), size=[count] + [-1] * (len(shape) - 1)),
        lambda: raw.StridedSlice(input=read, begin=[begin], end=[begin + count], strides=[1]),
        lambda: raw.StridedSlice(input=read, begin=[1], end=[2], strides=[1], shrink_axis_mask=1),
        lambda: raw.Split(axis=0, value=read, num_split=2)[1],
        lambda: raw.SplitV(value=read, size_splits=[count // 2, shape[0] - count // 2], axis=0, num_split=2)[1],
        lambda: raw.Unpack(value=read, num=shape[0])[1],
    )()
    with tf.control_dependencies([part]):
        w = raw.AssignAdd(ref=v, value=tf.constant(draw(p, shape), dtype))
    with tf.control_dependencies([w]):
        p.step(part + tf.ones((), dtype))


@program(60)
def results_are_of_the_end(p):
    """A fetched read is what the variable holds when the step ends, and later steps do not change it."""
    v, read, init = variable(p, (2, 3))
    p.step(init.op)
    x = share(p, read)
    with tf.control_dependencies([x]):
        w = write(p, v)
    p.step(x, w.op)
    p.step(x, w.op)


@program(60)
def other_size(p):
    """A variable that takes on another size leaves its memory to those who read it."""
    v, read, init = variable(p, (2, 3))
    p.step(init.op)
    x = share(p, read)
    with tf.control_dependencies([x]):
        a = write(p, v)
    with tf.control_dependencies([a]):
        b = raw.Assign(ref=v, value=draw(p, (p.pick(2, 4),)), validate_shape=False)
    with tf.control_dependencies([b]):
        c = raw.AssignAdd(ref=b, value=draw(p, ()) + tf.zeros_like(b))
    with tf.control_dependencies([c]):
        p.step(look(p, x), tf.identity(c))


@program(40)
def same_size_other_shape(p):
    v, read, init = variable(p, (2, 3))
    p.step(init.op)
    x = share(p, read)
    with tf.control_dependencies([x]):
        a = raw.Assign(ref=v, value=draw(p, (6,)), validate_shape=False)
    with tf.control_dependencies([a]):
        p.step(look(p, x), tf.identity(a))


@program(40)
def two_nodes_of_one_name(p):
    name = f's{p.rng.integers(1 << 30)}'
    a, b = [raw.VariableV2(shape=(2, 3), dtype=tf.float32, shared_name=name) for _ in range(2)]
    p.step(raw.Assign(ref=a, value=draw(p, (2, 3))).op)
    x = share(p, tf.identity(a))
    with tf.control_dependencies([x]):
        w = write(p, b)
    with tf.control_dependencies([w]):
        p.step(look(p, x), look(p, tf.identity(a)))


@program(40)
def counters(p):
    """fill([2], global_step) after assign_add, as synchronous replicas hand out their tokens."""
    v, read, init = variable(p, (), p.pick(tf.int32, tf.int64))
    p.step(init.op)
    with tf.control_dependencies([raw.AssignAdd(ref=v, value=tf.ones((), read.dtype))]):
        filled = tf.fill([2], read)
    for _ in range(3):
        p.step(filled)


@program(40)
def strings(p):
    v = raw.VariableV2(shape=[2], dtype=tf.string)
    read = tf.identity(v)
    p.step(raw.Assign(ref=v, value=['a', 'b' * 40]).op)
    x = p.pick(read, tf.reshape(read, [2, 1]), tf.identity(read))
    with tf.control_dependencies([raw.AsString(input=1) if p.rng.integers(2) else x]):
        w = raw.Assign(ref=v, value=['c' * int(p.rng.integers(50)), 'd'])
    with tf.control_dependencies([w]):
        p.step(raw.StringJoin(inputs=[x, x]))


@program(80)
def kept_elsewhere(p):
    """Reads that went through queues, stacks, arrays and lists before the write.

    Not through resource variables: in TensorFlow they, too, change with what was assigned to them, here they are copies.
    """
    v, read, init = variable(p, (2, 3))
    p.step(init.op)
    x, kind = share(p, read), p.pick('queue', 'stack', 'array', 'list')
    if kind == 'queue':
        q = raw.FIFOQueueV2(component_types=[tf.float32])
        put = raw.QueueEnqueueV2(handle=q, components=[x])
        take = lambda: raw.QueueDequeueV2(handle=q, component_types=[tf.float32])[0]
    elif kind == 'stack':
        s = raw.StackV2(max_size=-1, elem_type=tf.float32)
        put = raw.StackPushV2(handle=s, elem=x)
        take = lambda: raw.StackPopV2(handle=s, elem_type=tf.float32)
    elif kind == 'array':
        a, flow = raw.TensorArrayV3(size=1, dtype=tf.float32)
        put = raw.TensorArrayWriteV3(handle=a, index=0, value=x, flow_in=flow)
        take = lambda: raw.TensorArrayReadV3(handle=a, index=0, flow_in=put, dtype=tf.float32)
    else:
        empty = raw.EmptyTensorList(element_shape=[2, 3], max_num_elements=-1, element_dtype=tf.float32)
        put = raw.TensorListPushBack(input_handle=empty, tensor=x)
        take = lambda: raw.TensorListPopBack(input_handle=put, element_shape=[2, 3], element_dtype=tf.float32)[1]
    with tf.control_dependencies([put]):
        w = write(p, v)
    with tf.control_dependencies([w]):
        got = take()
    p.step(look(p, got), look(p, got))


@program(60)
def in_functions(p):
    """A read handed to a function, which hands it back or makes something new of it."""
    v, read, init = variable(p, (2, 3))
    p.step(init.op)
    hands_back = bool(p.rng.integers(2))

    @tf.function
    def body(y):
        return (tf.identity(y) if hands_back else y * 2.), y + 1.  # what TensorFlow's optimizer leaves alone

    got, new = body(share(p, read)) if p.rng.integers(2) else tf.cond(p.hide(True), lambda: body(read), lambda: body(read * 2.))
    with tf.control_dependencies([got, new]):
        w = write(p, v)
    with tf.control_dependencies([w]):
        p.step(look(p, got), look(p, new))


# ---- constants that nothing orders, conditions, and updates behind constants ----

@program(60)
def merge_with_constant(p):
    """The constant is there first, whether the other input is alive or dead."""
    v, _, init = variable(p, (2, 3))
    p.step(init.op)
    pred = p.hide(bool(p.rng.integers(2)))
    x = raw.Switch(data=p.maybe_hide(draw(p, (2, 3))), pred=pred)[int(p.rng.integers(2))]
    constant = tf.constant(draw(p, (2, 3)))
    inputs = p.pick([constant, tf.identity(x)], [x + 1., constant])
    merged, index = raw.Merge(inputs=inputs)
    p.step(merged, index, raw.AssignAdd(ref=v, value=merged).op, constant + 1.)
    p.step(v)


@program(80)
def conditions_of_simplified_nodes(p):
    """Of a * 1 each of the two may be dead: then the product is."""
    v, _, init = variable(p, (2, 3))
    p.step(init.op)
    preds = [p.hide(bool(p.rng.integers(2))) for _ in range(p.pick(1, 2))]
    a = tf.identity(raw.Switch(data=draw(p, (2, 3)), pred=preds[0])[1])
    one = raw.Switch(data=p.maybe_hide(np.float32(1)), pred=preds[-1])[int(p.rng.integers(2))]
    if p.rng.integers(2):
        with tf.control_dependencies([tf.identity(one)]):
            one = tf.constant(np.float32(1))
    y = p.pick(lambda: a * one, lambda: one * a, lambda: a / one, lambda: (a * one) * one)()
    other = tf.constant(draw(p, (2, 3)))
    with tf.control_dependencies([y]):
        w = raw.AssignAdd(ref=v, value=other)
    merged = raw.Merge(inputs=[y, raw.Switch(data=other, pred=preds[0])[0]])
    p.step(w.op)
    p.step(v)
    del merged


@program(80)
def updates_behind_constants(p):
    """old + 0, where the 0 waits for an update: the update happens."""
    v, read, init = variable(p, (2, 3))
    p.step(init.op)
    old = p.hide(draw(p, (2, 3)))
    with tf.control_dependencies([write(p, v)]):
        zero, one = tf.constant(np.zeros((2, 3), np.float32)), tf.constant(np.float32(1))
    y = p.pick(lambda: old + zero, lambda: old * one, lambda: old - zero, lambda: tf.shape(old + zero), lambda: zero + zero,
               lambda: tf.reshape(old, tf.shape(zero)))()
    p.step(y)
    p.step(v)
