"""Variables by reference and by handle, through several steps; optimizers on them.

Where there are two handles, each has a shared_name, as from TensorFlow's own clients: without one all handles of a container are
one variable there, and one a node in Weir, as loaders of functions mean it. No program can want the former. Nothing is read after a scatter failed: TensorFlow may have written a part.
"""
import numpy as np
import tensorflow as tf
from ml_dtypes import bfloat16
from programs import program
from tensorflow.python.framework import op_def_registry

import cases_train

raw, tf1 = tf.raw_ops, tf.compat.v1
NUMBERS = (np.float32, np.float64, np.float16, bfloat16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.complex64,
           np.complex128)
REALS = (np.float32, np.float64, np.int32, np.int64, np.float16)
SCATTERS = ('Add', 'Sub', 'Mul', 'Div', 'Min', 'Max', 'Update')


def draw(rng, dtype, shape):
    return np.asarray(rng.integers(1, 9, shape)).astype(dtype)


def draw_shape(rng, low=0):
    return tuple(map(int, rng.integers(1, 5, rng.integers(low, 4))))


@program(60)
def reference_variable(p):
    """Assignments in random order, also before the first and with wrong shapes."""
    rng, dtype = p.rng, p.pick(*NUMBERS)
    shape = draw_shape(rng)
    v = getattr(raw, p.pick('VariableV2', 'VariableV2', 'Variable'))(shape=shape, dtype=dtype)
    value = tf1.placeholder(dtype, None)
    actions = [raw.Assign(ref=v, value=value), raw.Assign(ref=v, value=value), raw.AssignAdd(ref=v, value=value),
               raw.AssignSub(ref=v, value=value), raw.Assign(ref=v, value=value, validate_shape=False),
               raw.AssignAdd(ref=v, value=value, use_locking=True)]
    is_set = raw.IsVariableInitialized(ref=v)
    p.step(is_set)
    p.step(v)
    for _ in range(int(rng.integers(4, 9))):
        action = actions[int(rng.integers(len(actions)))]
        now = (3, 3) if rng.integers(6) == 0 else shape
        p.step(action, feeds={value: draw(rng, dtype, now)})
        p.step(v, is_set)
    p.step(raw.RefIdentity(input=v))


@program(30)
def reference_shared(p):
    """Two nodes of one name and container are one variable; of two containers two."""
    rng = p.rng
    shape = draw_shape(rng)
    containers = p.pick(('', ''), ('a', 'a'), ('a', 'b'))
    a, b = [raw.VariableV2(shape=shape, dtype=tf.float32, shared_name='same', container=c) for c in containers]
    p.step(raw.Assign(ref=a, value=draw(rng, np.float32, shape)))
    p.step(raw.IsVariableInitialized(ref=b))
    p.step(raw.AssignAdd(ref=b, value=draw(rng, np.float32, shape)))
    p.step(a)
    p.step(b)


def scatter_feeds(p, rows, updates, dtype, shape, wrong=False):
    rng = p.rng
    n = int(rng.integers(0, 4))
    picked = rng.permutation(shape[0])[:n] if not wrong else np.array([0, p.pick(-1, shape[0])])
    width = shape[1:] if rng.integers(6) else (*shape[1:], 2)
    return {rows: picked.astype(rows.dtype.as_numpy_dtype), updates: draw(rng, dtype, (len(picked), *width))}


@program(150)
def reference_scatter(p):
    rng, dtype = p.rng, p.pick(*REALS)
    shape = draw_shape(rng, 1)
    v = raw.VariableV2(shape=shape, dtype=dtype)
    rows, updates = tf1.placeholder(p.pick(tf.int32, tf.int64), None), tf1.placeholder(dtype, None)
    kinds = [SCATTERS[p.number % len(SCATTERS)], p.pick(*SCATTERS)]
    scatters = [getattr(raw, 'Scatter' + k)(ref=v, indices=rows, updates=updates, use_locking=bool(rng.integers(2)))
                for k in kinds]
    p.step(scatters[0], feeds=scatter_feeds(p, rows, updates, dtype, shape))
    p.step(raw.Assign(ref=v, value=draw(rng, dtype, shape)))
    for scatter in scatters * 2:
        p.step(scatter, feeds=scatter_feeds(p, rows, updates, dtype, shape))
        p.step(v)
    p.step(scatters[0], feeds=scatter_feeds(p, rows, updates, dtype, shape, True))


@program(30)
def counting(p):
    dtype, limit = p.pick(np.int32, np.int64), int(p.rng.integers(0, 5))
    v = raw.VariableV2(shape=[], dtype=dtype)
    count = raw.CountUpTo(ref=v, limit=limit)
    p.step(count)
    p.step(raw.Assign(ref=v, value=dtype(p.rng.integers(-2, 2))))
    for _ in range(limit + 2):
        p.step(count)
    p.step(v)


@program(30)
def temporary(p):
    rng, dtype = p.rng, p.pick(np.float32, np.int32, np.float64)
    shape = draw_shape(rng)
    t = raw.TemporaryVariable(shape=shape, dtype=dtype, var_name='t')
    t = raw.Assign(ref=t, value=draw(rng, dtype, shape))
    for _ in range(int(rng.integers(0, 4))):
        t = raw.AssignAdd(ref=t, value=draw(rng, dtype, shape))
    last = raw.DestroyTemporaryVariable(ref=t, var_name=p.pick('t', 't', 't', 'u'))
    p.step(last)
    p.step(last)


@program(60)
def resource_variable(p):
    rng, dtype = p.rng, p.pick(*NUMBERS)
    shape = draw_shape(rng)
    v = raw.VarHandleOp(dtype=dtype, shape=shape if rng.integers(2) else None, shared_name=p.pick('some', 'name', ''),
                        container=p.pick('', 'box'))
    value = tf1.placeholder(dtype, None)
    read = raw.ReadVariableOp(resource=v, dtype=dtype)
    actions = [raw.AssignVariableOp(resource=v, value=value), raw.AssignVariableOp(resource=v, value=value),
               raw.AssignAddVariableOp(resource=v, value=value), raw.AssignSubVariableOp(resource=v, value=value)]
    about = [raw.VarIsInitializedOp(resource=v), raw.VariableShape(input=v, out_type=p.pick(tf.int32, tf.int64))]
    p.step(about[0])
    p.step(read)
    p.step(about[1])
    for _ in range(int(rng.integers(4, 9))):
        now = (3, 3) if rng.integers(6) == 0 else shape
        p.step(actions[int(rng.integers(len(actions)))], feeds={value: draw(rng, dtype, now)})
        p.step(read)
        p.step(about[0])
        p.step(about[1])


@program(60)
def destroyed(p):
    """A destroyed variable is not initialised, and may be made again."""
    rng, dtype = p.rng, p.pick(*NUMBERS)
    shape = draw_shape(rng)
    v = raw.VarHandleOp(dtype=dtype, shape=shape, shared_name='v')
    other = raw.VarHandleOp(dtype=dtype, shape=shape, shared_name='w')
    read, is_set = raw.ReadVariableOp(resource=v, dtype=dtype), raw.VarIsInitializedOp(resource=v)
    p.step(raw.AssignVariableOp(resource=other, value=draw(rng, dtype, shape)))
    destroy = [raw.DestroyResourceOp(resource=v, ignore_lookup_error=i) for i in (True, False)]
    set_again = raw.AssignVariableOp(resource=v, value=draw(rng, dtype, shape))
    for _ in range(int(rng.integers(3, 8))):
        p.step(p.pick(set_again, set_again, *destroy))
        p.step(is_set)
        p.step(read)
    p.step(raw.ReadVariableOp(resource=other, dtype=dtype))


@program(90)
def resource_scatter(p):
    rng, dtype = p.rng, p.pick(*REALS)
    shape = draw_shape(rng, 1)
    v = raw.VarHandleOp(dtype=dtype, shape=shape, shared_name='v')
    rows, updates = tf1.placeholder(p.pick(tf.int32, tf.int64), None), tf1.placeholder(dtype, None)
    kinds = [SCATTERS[p.number % len(SCATTERS)], p.pick(*SCATTERS)]
    scatters = [getattr(raw, 'ResourceScatter' + k)(resource=v, indices=rows, updates=updates) for k in kinds]
    read = raw.ReadVariableOp(resource=v, dtype=dtype)
    p.step(raw.AssignVariableOp(resource=v, value=draw(rng, dtype, shape)))
    for scatter in scatters * 2:
        p.step(scatter, feeds=scatter_feeds(p, rows, updates, dtype, shape))
        p.step(read)
    p.step(raw.ResourceGather(resource=v, indices=rows, dtype=dtype), feeds={rows: rng.integers(0, shape[0], (2, 2))})
    index = rng.integers(0, min(shape), (3, int(rng.integers(0, len(shape) + 1)))).astype(np.int32)
    p.step(raw.ResourceGatherNd(resource=v, indices=p.hide(index), dtype=dtype))
    p.step(raw.ResourceGather(resource=v, indices=rows, dtype=dtype), feeds={rows: np.array([shape[0]])})
    p.step(scatters[0], feeds=scatter_feeds(p, rows, updates, dtype, shape, True))


@program(30)
def reads_and_writes_in_order(p):
    """Control edges between reads and assignments of one step."""
    rng = p.rng
    shape = draw_shape(rng)
    v = raw.VarHandleOp(dtype=tf.float32, shape=shape, shared_name='v')
    p.step(raw.AssignVariableOp(resource=v, value=draw(rng, np.float32, shape)))
    reads, last = [], []
    for _ in range(int(rng.integers(2, 8))):
        with tf.control_dependencies(last):
            if rng.integers(2):
                last = [getattr(raw, p.pick('AssignVariableOp', 'AssignAddVariableOp'))(
                    resource=v, value=draw(rng, np.float32, shape))]
            else:
                reads.append(raw.ReadVariableOp(resource=v, dtype=tf.float32))
                last = [reads[-1]]
    for _ in range(2):
        p.step(reads, [x for x in last if isinstance(x, tf.Operation)] or reads[-1])


# ---- optimizers ----

def optimize(p, is_resource):
    """Three steps of one optimizer on slots that live between them."""
    names = [n for n in cases_train.SPECS if is_resource or n not in cases_train.RESOURCE_ONLY]
    name = names[p.number % len(names)]
    rng = p.rng
    count, before, after, types, attrs, has_sparse = cases_train.SPECS[name]
    types = [t for t in types if t in (np.float32, np.float64)]
    is_sparse = has_sparse and bool(rng.integers(2))
    dtype, shape = p.pick(*types), (4, 3)
    op = ('Resource' if is_resource else '') + ('Sparse' if is_sparse else '') + 'Apply' + name
    slots = []
    for i in range(count):
        # The mean square of a centered one is above the square of its mean: else the root of their difference is rounding.
        least = 2.5 if name == 'CenteredRMSProp' and i == 2 else 0.5
        value = rng.uniform(least, least + 1, shape).astype(dtype)
        slots.append(raw.VarHandleOp(dtype=dtype, shape=shape, shared_name=f'slot{len(slots)}') if is_resource else
                     raw.VariableV2(dtype=dtype, shape=shape))
        if is_resource:
            p.step(raw.AssignVariableOp(resource=slots[-1], value=value))
        else:
            p.step(raw.Assign(ref=slots[-1], value=value))
    gradient = tf1.placeholder(dtype, None)
    rows = tf1.placeholder(tf.int32, None)
    inputs = slots + [constant(v, dtype) for v in before] + [gradient] + ([rows] if is_sparse else []) + \
        [constant(v, dtype) for v in after]
    node = add_node(op, inputs, attrs[int(rng.integers(len(attrs)))])
    tolerance = dict(rtol=1e-4, atol=1e-5) if dtype is np.float32 else dict(rtol=1e-9, atol=1e-10)
    for _ in range(3):
        n = int(rng.integers(1, 4))
        feeds = {gradient: rng.standard_normal((n, 3) if is_sparse else shape).astype(dtype)}
        if is_sparse:
            feeds[rows] = rng.permutation(4)[:n].astype(np.int32)
        p.step(node, feeds=feeds, **tolerance)
        p.step([raw.ReadVariableOp(resource=s, dtype=dtype) if is_resource else s for s in slots], **tolerance)


def constant(value, dtype):
    return tf.constant(value if isinstance(value, np.generic) else dtype(value))


def add_node(op, inputs, attrs):
    """A node by the order of its inputs."""
    arguments = [a.name for a in op_def_registry.get(op).input_arg]
    return getattr(raw, op)(**dict(zip(arguments, inputs)), **attrs)


@program(72)
def optimizer_by_reference(p):
    optimize(p, False)


@program(72)
def optimizer_by_handle(p):
    optimize(p, True)


@program(1)
def anonymous_variables(p):
    """The name that asks for a variable which nobody else can name."""
    make = lambda: raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name='cd2c89b7-88b7-44c8-ad83-06c2a9158347')
    read = lambda handle: raw.ReadVariableOp(resource=handle, dtype=tf.float32)
    one, other = make(), make()
    with tf.control_dependencies([raw.AssignVariableOp(resource=one, value=[1., 2.]), raw.AssignVariableOp(resource=other, value=[3., 4.])]):
        both = read(one), read(other)
    p.step(*both)
    p.step(*both)


@program(20)
def mutex(p):
    """Steps that lock, with and without consuming the lock, never two at once in TensorFlow's one thread."""
    m = raw.MutexV2(shared_name=p.pick('', 'm'), container=p.pick('', 'c'))
    for i in range(int(p.rng.integers(1, 4))):
        lock = raw.MutexLock(mutex=m)
        with tf1.get_default_graph().control_dependencies([lock]):
            work = tf.constant(float(i)) * 2
        with tf1.get_default_graph().control_dependencies([work]):
            done = raw.ConsumeMutexLock(mutex_lock=lock)
        p.step(work, done)
    p.step(raw.MutexLock(mutex=raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name='other')).op)


@program(10)
def session_tensors(p):
    """Names that nobody made; what a name is called is each system's own affair."""
    name = tf1.placeholder(tf.string, None)
    p.step(raw.GetSessionTensor(handle=name, dtype=tf.float32), feeds={name: b'nobody;1;/cpu:0'})
    p.step(raw.DeleteSessionTensor(handle=name), feeds={name: b'nobody'})
