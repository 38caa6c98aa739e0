"""Conditionals and loops, of nodes and of functions; calls; references; placeholders; messages; rendezvous."""
import numpy as np
import tensorflow as tf
from programs import program
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import function

raw, tf1 = tf.raw_ops, tf.compat.v1
TYPES = (np.float32, np.float64, np.int32, np.int64, np.int8, np.complex64, np.bool_)
REALS = (np.float32, np.float64, np.int32, np.int64)


def draw(rng, dtype, shape):
    return np.asarray(rng.integers(0, 2 if dtype is np.bool_ else 9, shape)).astype(dtype)


def draw_shape(rng):
    return tuple(map(int, rng.integers(1, 4, rng.integers(0, 3))))


# ---- Switch and Merge ----

@program(60)
def branches(p):
    """A tree of Switches, joined by Merges; and its dead leaves fetched."""
    rng, dtype = p.rng, p.pick(*TYPES)
    predicates = [p.hide(np.bool_(rng.integers(2))) for _ in range(3)]
    value = p.maybe_hide(draw(rng, dtype, draw_shape(rng)))
    no, yes = raw.Switch(data=value, pred=predicates[0])
    no_no, no_yes = raw.Switch(data=no, pred=predicates[1])
    yes_no, yes_yes = raw.Switch(data=yes, pred=predicates[2])
    leaves = [no_no, no_yes, yes_no, yes_yes]
    merged = raw.Merge(inputs=[tf.identity(leaf) for leaf in leaves])
    p.step(merged.output, merged.value_index)
    inner = raw.Merge(inputs=[no_no, no_yes])
    outer = raw.Merge(inputs=[inner.output, yes])
    p.step(outer.output, outer.value_index)
    for leaf in leaves[:int(rng.integers(1, 4))]:
        p.step(leaf)
    p.step(inner.output)


@program(30)
def branches_by_control(p):
    """A node behind control edges from a dead branch does not run; ControlTrigger does."""
    rng = p.rng
    predicate = p.hide(np.bool_(rng.integers(2)))
    no, yes = raw.Switch(data=tf.constant(1.0), pred=predicate)
    v = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name='v')
    p.step(raw.AssignVariableOp(resource=v, value=float(rng.integers(9))))
    with tf.control_dependencies([tf.identity(yes)]):
        add = raw.AssignAddVariableOp(resource=v, value=float(rng.integers(1, 9)))
    with tf.control_dependencies([tf.identity(no)]):
        sub = raw.AssignSubVariableOp(resource=v, value=float(rng.integers(1, 9)))
    with tf.control_dependencies([add, sub]):
        trigger = raw.ControlTrigger()
        nothing = raw.NoOp()
    with tf.control_dependencies([trigger]):
        after = tf.identity(tf.constant(draw(rng, np.float32, (2,))))
    p.step(after)
    p.step(nothing)
    p.step(raw.ReadVariableOp(resource=v, dtype=tf.float32))


@program(10)
def abort_that_does_not_run(p):
    """Running it would end the process, so it stands behind a dead branch."""
    no, yes = raw.Switch(data=tf.constant(float(p.rng.integers(9))), pred=p.hide(np.bool_(False)))
    with tf.control_dependencies([tf.identity(yes)]):
        abort = raw.Abort(error_msg=p.pick('', 'no'), exit_without_error=bool(p.number % 2))
    p.step(tf.identity(no), abort)


# ---- loops of nodes ----

def close_loop(merge, back):
    merge.op._update_input(1, back)  # pylint: disable=protected-access


@program(60)
def counted_loop(p):
    """x = f(x) while i < n, node by node."""
    rng, dtype = p.rng, p.pick(*REALS)
    n, name = p.hide(np.int32(rng.integers(0, 12))), 'loop'
    parallel = int(rng.integers(1, 12))

    def enter(x, constant=False):
        return raw.Enter(data=x, frame_name=name, is_constant=constant, parallel_iterations=parallel)
    start = [tf.constant(0), p.maybe_hide(draw(rng, dtype, draw_shape(rng)))]
    limit, step, one = enter(n, True), enter(tf.constant(dtype(rng.integers(1, 3))), True), enter(tf.constant(1), True)
    merges = [raw.Merge(inputs=[e, e]).output for e in map(enter, start)]
    condition = raw.LoopCond(input=tf.less(merges[0], limit))
    exits, insides = zip(*[raw.Switch(data=m, pred=condition) for m in merges])
    body = [insides[0] + one, insides[1] + step if rng.integers(2) else insides[1] * step]
    for merge, new in zip(merges, body):
        close_loop(merge, raw.NextIteration(data=new))
    outs = [raw.Exit(data=x) for x in exits]
    p.step(outs)
    p.step(outs[1])
    p.step(tf.identity(outs[0]) + 1)


@program(40)
def reference_loop(p):
    """A variable counts itself up by reference."""
    rng, dtype = p.rng, p.pick(np.float32, np.int32, np.int64)
    v = raw.VariableV2(shape=[], dtype=dtype)
    p.step(raw.Assign(ref=v, value=dtype(rng.integers(3))))
    enter = raw.RefEnter(data=v, frame_name='refs', parallel_iterations=1)
    limit = raw.Enter(data=p.hide(dtype(rng.integers(0, 9))), frame_name='refs', is_constant=True)
    one = raw.Enter(data=tf.constant(dtype(1)), frame_name='refs', is_constant=True)
    merge = raw.RefMerge(inputs=[enter, enter])
    condition = raw.LoopCond(input=tf.less(tf.identity(merge.output), limit))
    out, inside = raw.RefSwitch(data=merge.output, pred=condition)
    close_loop(merge.output, raw.RefNextIteration(data=raw.AssignAdd(ref=inside, value=one)))
    left = raw.RefExit(data=out)
    p.step(tf.identity(left))
    p.step(v)
    p.step(raw.AssignAdd(ref=raw.RefIdentity(input=v), value=dtype(2)))
    p.step(tf.identity(left))


@program(40)
def reference_branches(p):
    """RefSwitch, RefMerge and RefSelect hand variables on, not their values."""
    rng, dtype = p.rng, p.pick(*REALS)
    n, shape = int(rng.integers(1, 4)), draw_shape(rng)
    vs = [raw.VariableV2(shape=shape, dtype=dtype) for _ in range(n)]
    for v in vs:
        p.step(raw.Assign(ref=v, value=draw(rng, dtype, shape)))
    index = tf1.placeholder(tf.int32, None)
    selected = raw.RefSelect(index=index, inputs=vs)
    change = raw.AssignAdd(ref=selected, value=draw(rng, dtype, shape))
    for i in (0, n - 1, int(rng.integers(-1, n + 1))):
        p.step(change, feeds={index: np.int32(i)})
        p.step(vs)
    no, yes = raw.RefSwitch(data=vs[0], pred=p.hide(np.bool_(rng.integers(2))))
    merged = raw.RefMerge(inputs=[raw.RefIdentity(input=no), raw.RefIdentity(input=yes)])
    p.step(raw.AssignSub(ref=merged.output, value=draw(rng, dtype, shape)), merged.value_index)
    p.step(vs[0])


@program(40)
def nested_loops(p):
    rng = p.rng
    outer, inner = int(rng.integers(0, 5)), int(rng.integers(0, 5))
    x = p.maybe_hide(draw(rng, np.float32, draw_shape(rng)))
    parallel = int(rng.integers(1, 5))

    def inside(j, y):
        return j + 1, tf.cond(tf.equal(j % 2, 0), lambda: y + 1.0, lambda: y * 2.0)

    def around(i, y):
        _, y = tf1.while_loop(lambda j, y: j < i + inner, inside, [tf.constant(0), y], parallel_iterations=parallel)
        return i + 1, y
    with_v2 = tf1.control_flow_v2_enabled()
    if with_v2:
        tf1.disable_control_flow_v2()
    try:
        out = tf1.while_loop(lambda i, y: i < outer, around, [tf.constant(0), x], parallel_iterations=parallel)
    finally:
        if with_v2:
            tf1.enable_control_flow_v2()
    p.step(out)


@program(30)
def loop_with_an_array(p):
    """What dynamic_rnn does: an array written in a loop, and a stack of it."""
    rng = p.rng
    n = int(rng.integers(1, 7))
    x = tf.constant(draw(rng, np.float32, (n, 2)))
    array = tf1.TensorArray(tf.float32, n).unstack(x)
    tf1.disable_control_flow_v2()
    try:
        _, state, out = tf1.while_loop(lambda i, s, a: i < n, lambda i, s, a: (i + 1, s + array.read(i), a.write(i, s * 2.0)),
                                       [tf.constant(0), tf.zeros([2]), tf1.TensorArray(tf.float32, n)])
    finally:
        tf1.enable_control_flow_v2()
    p.step(state, out.stack())


# ---- functions ----

def unary(p, dtype, shape):
    """A random function of one tensor."""
    kind, value = int(p.rng.integers(4)), draw(p.rng, dtype, shape)

    @function.Defun(dtype, func_name=f'f{p.rng.integers(1 << 30)}')
    def f(x):
        return [x + value, x * x - value, tf.maximum(x, value), x][kind]
    return f


@program(60)
def conditional_functions(p):
    rng, dtype, shape = p.rng, p.pick(*REALS), draw_shape(p.rng)
    x = p.maybe_hide(draw(rng, dtype, shape))
    f, g = unary(p, dtype, shape), unary(p, dtype, shape)
    condition = p.hide(p.pick(np.bool_(True), np.bool_(False), np.int32(0), np.int32(3), np.float32(0), np.zeros(2, np.float32),
                              np.zeros((0,), np.float32), np.array(b'', object), np.array(b'yes', object)))
    for op in (raw.If, raw.StatelessIf):
        p.step(op(cond=condition, input=[x], Tout=[dtype], then_branch=f, else_branch=g))


@program(60)
def case_functions(p):
    rng, dtype, shape = p.rng, p.pick(*REALS), draw_shape(p.rng)
    x = p.maybe_hide(draw(rng, dtype, shape))
    fs = [unary(p, dtype, shape) for _ in range(int(rng.integers(1, 5)))]
    index = tf1.placeholder(tf.int32, None)
    for op in (raw.Case, raw.StatelessCase):
        y = op(branch_index=index, input=[x], Tout=[dtype], branches=fs)
        for i in {0, len(fs) - 1, int(rng.integers(-2, 6))}:
            p.step(y, feeds={index: np.int32(i)})


@program(60)
def loop_functions(p):
    rng, dtype, shape = p.rng, p.pick(*REALS), draw_shape(p.rng)
    step = unary(p, dtype, shape)
    name = f'{rng.integers(1 << 30)}'

    @function.Defun(tf.int32, tf.int32, dtype, func_name='body' + name)
    def body(i, n, x):
        return i + 1, n, step(x)

    @function.Defun(tf.int32, tf.int32, dtype, func_name='cond' + name)
    def cond(i, n, x):  # pylint: disable=unused-argument
        return i < n
    inputs = [tf.constant(0), p.hide(np.int32(rng.integers(0, 6))), p.maybe_hide(draw(rng, dtype, shape))]
    for op in (raw.While, raw.StatelessWhile):
        p.step(op(input=inputs, cond=cond, body=body, parallel_iterations=int(rng.integers(1, 11))),
               **(dict(rtol=1e-5) if dtype is np.float32 else {}))


@program(60)
def called_functions(p):
    rng, dtype, shape = p.rng, p.pick(*REALS), draw_shape(p.rng)
    f, g = unary(p, dtype, shape), unary(p, dtype, shape)

    @function.Defun(dtype, dtype, func_name=f'outer{rng.integers(1 << 30)}')
    def outer(x, y):
        return f(x) + g(y), g(f(y))
    x, y = p.maybe_hide(draw(rng, dtype, shape)), p.maybe_hide(draw(rng, dtype, shape))
    for op in (raw.PartitionedCall, raw.StatefulPartitionedCall):
        p.step(op(args=[x, y], Tout=[dtype, dtype], f=outer))
        p.step(op(args=[x], Tout=[dtype], f=f))
    p.step(outer(x, y))


@program(40)
def functions_with_state(p):
    """Variables, assertions and errors within functions and branches."""
    rng, dtype = p.rng, p.pick(*REALS)
    v = raw.VarHandleOp(dtype=dtype, shape=[], shared_name='v')
    name, limit = f'{rng.integers(1 << 30)}', dtype(rng.integers(0, 9))

    @function.Defun(tf.resource, dtype, func_name='add' + name)
    def add(handle, x):
        with tf.control_dependencies([raw.AssignAddVariableOp(resource=handle, value=x)]):
            return raw.ReadVariableOp(resource=handle, dtype=dtype)

    @function.Defun(tf.resource, dtype, func_name='check' + name)
    def check(handle, x):
        now = raw.ReadVariableOp(resource=handle, dtype=dtype)
        with tf.control_dependencies([raw.Assert(condition=tf.less(now, limit), data=[now])]):
            return now + x
    p.step(raw.AssignVariableOp(resource=v, value=dtype(1)))
    x = p.hide(dtype(rng.integers(1, 5)))
    condition = tf1.placeholder(tf.bool, [])
    branch = raw.If(cond=condition, input=[v, x], Tout=[dtype], then_branch=add, else_branch=check)
    call = raw.StatefulPartitionedCall(args=[v, x], Tout=[dtype], f=add)
    for _ in range(int(rng.integers(2, 6))):
        if rng.integers(3):
            p.step(branch, feeds={condition: np.bool_(rng.integers(2))})
        else:
            p.step(call)
    p.step(raw.ReadVariableOp(resource=v, dtype=dtype))


@program(40)
def conditions_of_many(p):
    """A condition that is no scalar: true where it has elements, but where a Switch is asked for."""
    rng, dtype, name = p.rng, p.pick(np.bool_, np.bool_, np.int32), f'{p.rng.integers(1 << 30)}'
    yes = function.Defun(tf.float32, func_name='yes' + name)(lambda x: tf.identity(x))  # pylint: disable=unnecessary-lambda
    no = function.Defun(tf.float32, func_name='no' + name)(lambda x: tf.negative(x))  # pylint: disable=unnecessary-lambda
    value = draw(rng, dtype, p.pick((), (0,), (1,), (2,), (2, 0), (1, 1)))
    condition = tf1.placeholder(dtype, p.pick(value.shape, None))
    branch = p.pick(raw.If, raw.StatelessIf)(cond=condition, input=[p.hide(np.float32(3))], Tout=[tf.float32], then_branch=yes, else_branch=no)
    if dtype is np.bool_ and rng.integers(2):
        branch[0].op._set_attr('_lower_using_switch_merge', attr_value_pb2.AttrValue(b=True))
    p.step(branch, feeds={condition: value})


# ---- placeholders, assertions, messages ----

@program(40)
def placeholders(p):
    rng, dtype, shape = p.rng, p.pick(*TYPES), draw_shape(p.rng)
    known = p.pick(shape, None, [None] * len(shape))
    x = raw.Placeholder(dtype=dtype, shape=known)
    y = raw.PlaceholderWithDefault(input=draw(rng, dtype, shape), shape=known)
    both = tf.stack([tf.identity(x), y])
    p.step(both, feeds={x: draw(rng, dtype, shape)})
    p.step(both, feeds={x: draw(rng, dtype, shape), y: draw(rng, dtype, shape)})
    p.step(y)
    p.step(both)
    p.step(x, feeds={x: draw(rng, dtype, shape)})


@program(30)
def assertions(p):
    rng = p.rng
    data = [p.maybe_hide(draw(rng, p.pick(*TYPES), draw_shape(rng))) for _ in range(int(rng.integers(1, 4)))]
    condition = tf1.placeholder(tf.bool, [])
    check = raw.Assert(condition=condition, data=data, summarize=int(rng.integers(1, 5)))
    with tf.control_dependencies([check]):
        x = tf.identity(tf.constant(draw(rng, np.float32, (2,))))
    for value in (True, False):
        p.step(x, feeds={condition: np.bool_(value)})


@program(30)
def printed(p):
    """To the standard error, which is compared."""
    rng, dtype, shape = p.rng, p.pick(np.float32, np.int32, np.int64, np.bool_, np.float64), draw_shape(p.rng)
    p.captures = True
    x = p.maybe_hide(draw(rng, dtype, shape))
    data = [p.maybe_hide(draw(rng, p.pick(np.int32, np.float32), draw_shape(rng))) for _ in range(int(rng.integers(0, 3)))]
    out = raw.Print(input=x, data=data, message=p.pick('', 'what: '), first_n=p.pick(-1, 1, 2),
                    summarize=int(rng.integers(1, 6)))
    for _ in range(3):
        p.step(out)


@program(60)
def printed_text(p):
    p.captures = True
    text = p.pick('', 'one line', 'two\nlines', 'x' * 300, 'caf\u00e9') + str(p.rng.integers(999))
    out = raw.PrintV2(input=p.maybe_hide(text), output_stream=p.pick('stderr', 'file://out.txt'),
                      end=p.pick('\n', '', '; '))
    for _ in range(int(p.rng.integers(1, 4))):
        p.step(out)
    if out.get_attr('output_stream').startswith(b'file'):
        p.step(raw.ReadFile(filename='out.txt'))


# ---- rendezvous ----

@program(80)
def sent_and_received(p):
    """_Send and _Recv of one step meet by name."""
    rng, dtype, shape = p.rng, p.pick(*TYPES), draw_shape(p.rng)
    device = '/job:localhost/replica:0/task:0/device:CPU:0'
    host = p.pick('', 'Host')
    graph = tf1.GraphDef()
    count = int(rng.integers(1, 4))
    values = [p.maybe_hide(draw(rng, dtype, shape)) for _ in range(count)]
    base = tf1.get_default_graph()
    for i, value in enumerate(values):
        for kind in ('Send', 'Recv'):
            node = graph.node.add(name=f'{kind}{i}', op=f'_{host}{kind}')
            for key, text in (('tensor_name', f't{i}'), ('send_device', device), ('recv_device', device)):
                node.attr[key].s = text.encode()
            node.attr['send_device_incarnation'].i = 1
            node.attr['client_terminated'].b = False
            node.attr['T' if kind == 'Send' else 'tensor_type'].type = tf.as_dtype(dtype).as_datatype_enum
            if kind == 'Send':
                node.input.append(value.op.name)
                if value.op.name not in [n.name for n in graph.node]:
                    graph.node.add(name=value.op.name, op='Placeholder').attr['dtype'].type = \
                        tf.as_dtype(dtype).as_datatype_enum
    tf.graph_util.import_graph_def(graph, input_map={v.name: v for v in values}, name='r')
    got = [base.get_tensor_by_name(f'r/Recv{i}:0') for i in range(count)]
    p.step([tf.identity(g) for g in got], [base.get_operation_by_name(f'r/Send{i}') for i in range(count)])


@program(20)
def switch_of_many(p):
    """An index outside goes to the last output."""
    count, index = int(p.rng.integers(2, 5)), np.int32(p.rng.integers(-2, 6))
    inputs = [p.hide(p.rng.standard_normal(3).astype(np.float32)), p.hide(index)]
    node = tf1.get_default_graph().create_op('_SwitchN', inputs, [tf.float32] * count, name='switch',
                                             attrs={'num_outs': tf1.AttrValue(i=count), 'T': tf1.AttrValue(type=1)})
    p.step(*raw.Merge(inputs=[output + np.float32(i) for i, output in enumerate(node.outputs)]))


@program(8)
def merges_of_what_is_alive(p):
    """A Merge takes the first that comes; what is made from one of its inputs comes after that, also where all could be known before."""
    v = raw.VarHandleOp(dtype=tf.int32, shape=[2], shared_name='v')
    with tf.control_dependencies([v]):
        first = tf.identity(tf.constant([-3]))
    later = p.pick(raw.AddV2, raw.Mul)(x=first, y=first)
    for _ in range(p.pick(0, 2)):
        later = raw.Neg(x=later)
    p.is_spread = False  # on several devices it is the copies that come first or later
    p.step(raw.Merge(inputs=[later, first, later][p.pick(0, 1):]).output)


@program(8)
def constants_behind_a_switch(p):
    """What an op is simplified to has constants of its own, and is as dead as the op, whose only input that may be is a Switch."""
    x, alive = tf1.placeholder_with_default(np.float32([4, 6]), [2]), tf1.placeholder_with_default(bool(p.rng.integers(2)), [])
    off, on = raw.Switch(data=x, pred=alive)
    simplified = [raw.RealDiv(x=on, y=np.float32([2, 2])), raw.Mul(x=on, y=np.float32([0, 0])), raw.Pow(x=on, y=np.float32(0)),
                  raw.Sub(x=on, y=on), raw.Pow(x=on, y=np.float32(3))]
    p.step(*[raw.Merge(inputs=[y, raw.Neg(x=off)]).output for y in simplified])
