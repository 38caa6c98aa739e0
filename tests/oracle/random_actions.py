"""What a random program is made of: each function adds a few nodes to a Builder where that is possible."""
import numpy as np

from random_builder import NUMBERS, Variable
from random_graph import (BOOL, DOUBLE, FLOAT, INT32, INT64, RESOURCE, STRING, array, bool_, int_, ints, shape, text,
                          type_, types)

ACTIONS = {}  # {name: (weight, function)}


def action(weight):
    def mark(function):
        ACTIONS[function.__name__] = weight, function
        return function
    return mark


def T(dtype, **more):  # pylint: disable=invalid-name
    return {'T': type_(dtype), **more}


# ---- arithmetic, much of it that an optimizer takes away ----

@action(10)
def arithmetic(b):
    x = b.find(NUMBERS)
    if x is None:
        return
    op = b.pick('Add', 'AddV2', 'Sub', 'Mul', 'Maximum', 'Minimum')
    b.compute(op, [x, b.want(x.dtype, x.dims)] if b.chance(0.8) else [x, x], T(x.dtype), x.dtype, x.dims)


@action(8)
def neutral(b):
    """x * 1, x + 0 and the like: the constant now and then behind control edges, in a branch or with a shape of its own."""
    x = b.find(NUMBERS)
    if x is None:
        return
    op, one = b.pick(('Mul', 1), ('Mul', 1), ('Add', 0), ('AddV2', 0), ('Sub', 0), ('RealDiv', 1), ('Mul', 0), ('Div', 1))
    if op == 'RealDiv' and x.dtype not in (FLOAT, DOUBLE):
        op = 'Div'
    constant = b.const(x.dtype, value=np.full(b.pick((), x.dims), one), is_free=b.chance(0.3))
    if b.chance(0.3):
        constant = tied(b, constant)
    pair = [x, constant] if op in ('Sub', 'RealDiv', 'Div') or b.chance(0.6) else [constant, x]
    b.compute(op, pair, T(x.dtype), x.dtype, x.dims)


def tied(b, value):
    """An Identity of |value| behind a control edge, from something that has an effect if there is such a thing."""
    touchers = b.touchers(b.ctx)
    others = touchers if touchers and b.chance(0.7) else [v.node() for v in b.ctx.values[-6:] if v.node() in b.before]
    others = [n for n in others if not n.startswith('arg')]
    if not others:
        return value
    return b.hand_on('Identity', [value], T(value.dtype), value.dtype, value.dims, controls=[b.pick(*others)])


@action(4)
def twice(b):
    """What undoes itself."""
    x = b.find(NUMBERS)
    if x is None:
        return
    kind = b.below(4)
    if kind == 0:
        b.compute('Neg', [b.compute('Neg', [x], T(x.dtype), x.dtype, x.dims)], T(x.dtype), x.dtype, x.dims)
    elif kind == 1:
        b.compute('Sub', [x, x], T(x.dtype), x.dtype, x.dims)
    elif kind == 2:
        wide = {FLOAT: DOUBLE, INT32: INT64}.get(x.dtype)
        if wide:
            y = b.compute('Cast', [x], {'SrcT': type_(x.dtype), 'DstT': type_(wide)}, wide, x.dims)
            b.compute('Cast', [y], {'SrcT': type_(wide), 'DstT': type_(x.dtype)}, x.dtype, x.dims)
    elif len(x.dims) == 2:
        swap = b.const(INT32, value=[1, 0])
        attrs = T(x.dtype, Tperm=type_(INT32))
        y = b.compute('Transpose', [x, swap], attrs, x.dtype, x.dims[::-1])
        b.compute('Transpose', [y, swap], attrs, x.dtype, x.dims)


@action(4)
def unary(b):
    x = b.find(NUMBERS)
    if x is None:
        return
    op = b.pick('Neg', 'Abs', 'Square', 'ZerosLike', 'OnesLike', 'Sign')
    b.compute(op, [x], T(x.dtype), x.dtype, x.dims)


@action(3)
def comparison(b):
    x = b.find(NUMBERS)
    if x is not None:
        b.compute(b.pick('Less', 'GreaterEqual', 'Equal'), [x, b.want(x.dtype, x.dims)], T(x.dtype), BOOL, x.dims)


@action(3)
def logic(b):
    x = b.find(BOOL)
    if x is None:
        return
    if b.chance(0.5):
        b.compute('LogicalNot', [x], {}, BOOL, x.dims)
    else:
        b.compute(b.pick('LogicalAnd', 'LogicalOr'), [x, b.want(BOOL, x.dims)], {}, BOOL, x.dims)


@action(3)
def reduction(b):
    x = b.find(NUMBERS)
    if x is None:
        return
    axes = b.const(INT32, value=np.arange(len(x.dims), dtype=np.int32)) if b.chance(0.8) else b.const(
        INT32, value=np.zeros(0, np.int32))
    dims = () if axes.dims[0] == len(x.dims) else x.dims
    out = b.compute(b.pick('Sum', 'Max', 'Prod'), [x, axes], T(x.dtype, Tidx=type_(INT32), keep_dims=bool_(False)), x.dtype, dims)
    if int(np.prod(x.dims)) == int(np.prod(dims)):  # nothing to reduce
        out.alias = x.alias


@action(3)
def about(b):
    """Shapes of values, that a pass may know without them."""
    x = b.find(NUMBERS)
    if x is None:
        return
    op = b.pick('Shape', 'Size', 'Rank', 'Fill', 'AddN', 'Select')
    if op == 'Fill':
        size = b.add('Shape', [x.ref], T(x.dtype, out_type=type_(INT32)), [(INT32, (len(x.dims),))], b.passes(x))[0]
        b.compute('Fill', [size, b.want(x.dtype, ())], T(x.dtype, index_type=type_(INT32)), x.dtype, x.dims)
    elif op == 'AddN':
        n = b.below(3) + 2
        b.compute('AddN', [x] + [b.want(x.dtype, x.dims) for _ in range(n - 1)], T(x.dtype, N=int_(n)), x.dtype, x.dims)
    elif op == 'Select':
        select(b, x)
    else:
        attrs = T(x.dtype, out_type=type_(INT32)) if op != 'Rank' else T(x.dtype)
        out = b.add(op, [x.ref], attrs, [(INT32, (len(x.dims),) if op == 'Shape' else ())], b.passes(x))[0]
        b.ctx.values.append(out)


def select(b, x):
    """By one condition for all it hands on what it takes, by many it makes something new."""
    inputs = [b.want(BOOL, x.dims), x, b.want(x.dtype, x.dims)]
    out = b.compute('Select', inputs, T(x.dtype), x.dtype, x.dims)
    if not x.dims:
        out.alias = inputs[1].alias | inputs[2].alias


@action(1)
def matmul(b):
    x = b.find((FLOAT, DOUBLE), (2, 2))
    if x is not None:
        b.compute('MatMul', [x, b.want(x.dtype, (2, 2))], T(x.dtype), x.dtype, (2, 2))


@action(3)
def constant(b):
    dtype = b.pick(FLOAT, FLOAT, INT32, INT32, BOOL, STRING, INT64, DOUBLE)
    b.ctx.values.append(b.const(dtype, b.draw_dims(), is_free=b.chance(0.2)))


@action(2)
def strings(b):
    x = b.find(STRING)
    if x is not None:
        b.compute('StringJoin', [x, b.want(STRING, x.dims)], {'N': int_(2), 'separator': text('-')}, STRING, x.dims)


# ---- nodes that hand their input on ----

@action(12)
def hand_on(b, x=None):
    x = x or b.find()
    if x is None or x.dtype in (RESOURCE,):
        return None
    d, dims, t = x.dtype, x.dims, T(x.dtype)
    kind = b.pick('Identity', 'Identity', 'Reshape', 'ExpandDims', 'Squeeze', 'StopGradient', 'Slice', 'StridedSlice', 'Snapshot',
                  'PreventGradient', 'Transpose', 'Split', 'Pack', 'Tile', 'CheckNumerics', 'IdentityN', 'EnsureShape', 'Cast',
                  'BroadcastTo', 'Reverse', 'AddN', 'Unpack', 'Bitcast', 'Pad', 'ConcatV2', 'GatherV2')
    size = int(np.prod(dims))

    def index(value):
        return b.const(INT32, value=np.array(value, np.int32))
    if kind == 'Reshape':
        to = b.pick(dims, (size,), (1, size))
        return b.hand_on('Reshape', [x, index(to)], {**t, 'Tshape': type_(INT32)}, d, to)
    if kind == 'ExpandDims':
        return b.hand_on('ExpandDims', [x, index(0)], {**t, 'Tdim': type_(INT32)}, d, (1, *dims))
    if kind == 'Squeeze':
        return b.hand_on('Squeeze', [x], {**t, 'squeeze_dims': ints()}, d, tuple(n for n in dims if n != 1))
    if kind == 'Slice' and dims:
        first = b.below(2) if dims[0] > 1 else 0
        return b.hand_on('Slice', [x, index([first] + [0] * (len(dims) - 1)), index([-1] * len(dims))],
                         {**t, 'Index': type_(INT32)}, d, (dims[0] - first, *dims[1:]))
    if kind == 'StridedSlice' and dims:
        masks = {m + '_mask': int_(0) for m in ('ellipsis', 'new_axis')}
        shrinks = b.below(2)
        return b.hand_on('StridedSlice', [x, index([0]), index([1]), index([1])],
                         {**t, 'Index': type_(INT32), 'begin_mask': int_(0), 'end_mask': int_(0),
                          'shrink_axis_mask': int_(shrinks), **masks}, d, dims[1:] if shrinks else (1, *dims[1:]))
    if kind == 'Transpose':
        return b.hand_on('Transpose', [x, index(range(len(dims)))], {**t, 'Tperm': type_(INT32)}, d, dims)
    if kind == 'Split' and dims:
        return split(b, x)
    if kind == 'Pack':
        return b.hand_on('Pack', [x], {**t, 'N': int_(1), 'axis': int_(0)}, d, (1, *dims))
    if kind == 'Unpack' and dims and 0 < dims[0] <= 2:
        return b.hand_on('Unpack', [x], {**t, 'num': int_(dims[0]), 'axis': int_(0)}, d, dims[1:], outputs=dims[0],
                         index=b.below(dims[0]))
    if kind == 'Tile' and dims:
        return b.hand_on('Tile', [x, index([1] * len(dims))], {**t, 'Tmultiples': type_(INT32)}, d, dims)
    if kind == 'CheckNumerics' and d in (FLOAT, DOUBLE):
        return b.hand_on('CheckNumerics', [x], {**t, 'message': text('')}, d, dims, reads=[x])
    if kind == 'IdentityN':
        return b.hand_on('IdentityN', [x], {'T': types(d)}, d, dims)
    if kind == 'EnsureShape':
        return b.hand_on('EnsureShape', [x], {**t, 'shape': shape(dims)}, d, dims)
    if kind == 'Cast' and d != STRING:
        return b.hand_on('Cast', [x], {'SrcT': type_(d), 'DstT': type_(d)}, d, dims)
    if kind == 'BroadcastTo' and d in NUMBERS and dims:
        return b.hand_on('BroadcastTo', [x, index(dims)], {**t, 'Tidx': type_(INT32)}, d, dims)
    if kind == 'Reverse' and d in NUMBERS and dims:
        return b.hand_on('ReverseV2', [x, index(np.zeros(0))], {**t, 'Tidx': type_(INT32)}, d, dims)
    if kind == 'AddN' and d in NUMBERS:
        return b.hand_on('AddN', [x], {**t, 'N': int_(1)}, d, dims)
    if kind == 'Bitcast' and d in (FLOAT, INT32):
        return b.hand_on('Bitcast', [x], {**t, 'type': type_(d)}, d, dims)
    if kind == 'Pad' and d in NUMBERS and dims:
        return b.hand_on('Pad', [x, index(np.zeros((len(dims), 2)))], {**t, 'Tpaddings': type_(INT32)}, d, dims)
    if kind == 'ConcatV2' and dims:
        empty = b.const(d, (0, *dims[1:]))
        return b.hand_on('ConcatV2', [x, empty, index(0)], {**t, 'N': int_(2), 'Tidx': type_(INT32)}, d, dims)
    if kind == 'GatherV2' and dims:
        attrs = {'Tparams': type_(d), 'Tindices': type_(INT32), 'Taxis': type_(INT32), 'batch_dims': int_(0)}
        return b.hand_on('GatherV2', [x, index(range(dims[0])), index(0)], attrs, d, dims, reads=[x])
    if kind in ('StopGradient', 'PreventGradient') or kind == 'Snapshot' and d in NUMBERS:
        return b.hand_on(kind, [x], t, d, dims)
    return b.hand_on('Identity', [x], t, d, dims)


def split(b, x):
    axis = b.const(INT32, value=0)
    value = b.add('Split', [axis.ref, x.ref], T(x.dtype, num_split=int_(1)), [(x.dtype, x.dims)], b.passes(x))[0]
    value.alias = x.alias
    b.ctx.values.append(value)
    return value


@action(3)
def chain(b):
    x = b.find()
    for _ in range(b.below(3) + 1):
        x = x and hand_on(b, x)


@action(2)
def only_after(b):
    """An Identity or NoOp behind control edges."""
    x = b.find()
    if x is not None:
        b.ctx.values.append(tied(b, x))


# ---- variables ----

def new_variable(b, kind):
    name = f'v{len(b.variables)}'
    dtype = b.pick(FLOAT, FLOAT, INT32, INT32, INT64, BOOL, STRING) if kind in ('ref', 'resource') else b.pick(FLOAT, INT32)
    v = Variable(name, kind, dtype, b.draw_dims())
    b.variables.append(v)
    b.root.variables.append(v)
    return v


def make_reference(b, is_reshaped=False):
    """A VariableV2, now and then another of the same shared_name, with its initial Assign and a read that all share."""
    v = new_variable(b, 'ref')
    v.is_reshaped = is_reshaped
    attrs = {'dtype': type_(v.dtype), 'shape': shape(v.dims), 'container': text(''), 'shared_name': text('')}
    is_shared = b.chance(0.2)
    if is_shared:
        attrs['shared_name'] = text('shared_' + v.name)
    ref = b.add('VariableV2', [], attrs, [(v.dtype, v.dims)], name=v.name)[0]
    ref.is_ref, ref.alias = True, frozenset([v])
    b.root.handles[v] = ref
    other = ref
    if is_shared:
        other = b.add('VariableV2', [], attrs, [(v.dtype, v.dims)], name=v.name + '_too')[0]
        other.alias = frozenset([v])
    start = b.const(v.dtype, v.dims)
    b.append(v.name + '_init', 'Assign', [v.name, start.ref], T(v.dtype), b.mask_of([v.name, start.node()]))
    b.append(v.name + '_state', 'Identity', [v.name], T(v.dtype), b.before[v.name])
    read = b.add('Identity', [other.ref], T(v.dtype), [(v.dtype, v.dims)], name=v.name + '/read')[0]
    read.alias = frozenset([v])
    b.root.values.append(read)
    return v


def make_resource(b):
    v = new_variable(b, 'resource')
    attrs = {'dtype': type_(v.dtype), 'shape': shape(v.dims), 'container': text(''), 'shared_name': text('shared_' + v.name)}
    b.root.handles[v] = b.add('VarHandleOp', [], attrs, [(RESOURCE, ())], name=v.name)[0]
    start = b.const(v.dtype, v.dims)
    typed = {'dtype': type_(v.dtype)}
    b.append(v.name + '_init', 'AssignVariableOp', [v.name, start.ref], typed, b.mask_of([v.name, start.node()]))
    b.append(v.name + '_state', 'ReadVariableOp', [v.name], typed, b.before[v.name])
    return v


def some_variable(b, *kinds):
    found = [v for v in b.ctx.variables if v.kind in kinds]
    return b.pick(*found) if found else None


@action(6)
def read(b):
    v = some_variable(b, 'ref', 'resource')
    if v is None:
        return
    handle = b.handle(v)
    if v.kind == 'resource':
        value = b.add('ReadVariableOp', [handle.ref], {'dtype': type_(v.dtype)}, [(v.dtype, v.dims)], [(v, False)])[0]
        b.ctx.values.append(value)
    else:
        hand_on(b, handle)


@action(14)
def write(b):
    v = some_variable(b, 'ref', 'resource')
    if v is None:
        return
    kinds = ['assign']
    if v.dtype in NUMBERS:
        kinds += ['add', 'add', 'sub']
        kinds += ['gradient'] if v.dtype in (FLOAT, DOUBLE) else []
    if v.dims:
        kinds += ['scatter', 'slice'] if v.dtype in NUMBERS else ['slice']
        kinds += ['scatter_nd'] if v.dtype in NUMBERS else []
    if v.kind == 'ref' and v.dtype in (INT32, INT64) and v.dims == ():
        kinds += ['count']
    globals()['write_' + b.pick(*kinds)](b, v)


def written(b, v, op, resource_op, inputs, attrs, resource_attrs):
    """A node that writes |v|: its reference comes out again where it has one."""
    handle = b.handle(v)
    touches = [(v, True)] + [t for t in b.reads(*inputs) if t[0] is not v]
    if v.kind == 'resource':
        b.add(resource_op, [handle.ref] + [i.ref for i in inputs], resource_attrs, [], touches)
        return
    out = b.add(op, [handle.ref] + [i.ref for i in inputs], attrs, [(v.dtype, v.dims)], touches)[0]
    out.alias = frozenset([v])
    b.ctx.values.append(out)


def value_for(b, v, dims=None):
    value = b.want(v.dtype, v.dims if dims is None else dims)
    return tied(b, value) if b.chance(0.15) else value


def fresh(b, x):
    """A value that is no alias: what keeps a tensor for later steps would keep the alias."""
    if not x.alias:
        return x
    return b.compute('Neg', [x], T(x.dtype), x.dtype, x.dims) if x.dtype in NUMBERS else b.const(x.dtype, x.dims)


def write_assign(b, v):
    x = value_for(b, v)
    if x.alias and v.kind == 'resource':  # would make the variable itself an alias
        x = fresh(b, x)
    attrs = T(v.dtype, use_locking=bool_(b.chance(0.5)))
    if v.is_reshaped and b.chance(0.5):
        x = b.const(v.dtype, (*v.dims, 2))
        attrs['validate_shape'] = bool_(False)
    written(b, v, 'Assign', 'AssignVariableOp', [x], attrs, {'dtype': type_(v.dtype)})


def write_add(b, v, op='Add'):
    written(b, v, 'Assign' + op, f'Assign{op}VariableOp', [value_for(b, v)], T(v.dtype, use_locking=bool_(b.chance(0.5))),
            {'dtype': type_(v.dtype)})


def write_sub(b, v):
    write_add(b, v, 'Sub')


def write_gradient(b, v):
    inputs = [b.want(v.dtype, ()), value_for(b, v)]
    attrs = T(v.dtype, use_locking=bool_(b.chance(0.5)))
    written(b, v, 'ApplyGradientDescent', 'ResourceApplyGradientDescent', inputs, attrs, attrs)


def write_scatter(b, v):
    kind, n = b.pick('Update', 'Add', 'Sub', 'Mul', 'Max', 'Min'), b.below(3)
    rows = b.const(INT32, value=[b.below(v.dims[0]) for _ in range(n)]) if kind != 'Update' else b.const(
        INT32, value=list(range(min(n, v.dims[0]))))
    updates = value_for(b, v, (rows.dims[0], *v.dims[1:]))
    written(b, v, 'Scatter' + kind, 'ResourceScatter' + kind, [rows, updates],
            T(v.dtype, Tindices=type_(INT32), use_locking=bool_(b.chance(0.5))),
            {'dtype': type_(v.dtype), 'Tindices': type_(INT32)})


def write_scatter_nd(b, v):
    kind = b.pick('Update', 'Add', 'Sub')
    rows = b.const(INT32, value=[[b.below(v.dims[0])]])
    attrs = T(v.dtype, Tindices=type_(INT32), use_locking=bool_(b.chance(0.5)))
    written(b, v, 'ScatterNd' + kind, 'ResourceScatterNd' + kind, [rows, value_for(b, v, (1, *v.dims[1:]))], attrs, attrs)


def write_slice(b, v):
    ends = [b.const(INT32, value=[n]) for n in (0, 1, 1)]
    attrs = T(v.dtype, Index=type_(INT32))
    written(b, v, 'StridedSliceAssign', 'ResourceStridedSliceAssign', [*ends, value_for(b, v, (1, *v.dims[1:]))], attrs, attrs)


def write_count(b, v):
    """CountUpTo gives the value before, in memory of its own; OUT_OF_RANGE at the limit."""
    handle = b.handle(v)
    barrier = [(w, True) for w in b.ctx.variables if w is not v]
    out = b.add('CountUpTo', [handle.ref], T(v.dtype, limit=int_(b.rng.randint(2, 9))), [(v.dtype, ())], [(v, True), *barrier])[0]
    b.ctx.values.append(out)


@action(2)
def momentum(b):
    """An optimizer with two variables of one type and shape."""
    for v in b.ctx.variables:
        for a in b.ctx.variables:
            if v is not a and v.kind == a.kind and v.kind in ('ref', 'resource') and v.dtype == a.dtype in (FLOAT, DOUBLE) and \
                    v.dims == a.dims and not v.is_reshaped and not a.is_reshaped:
                hv, ha = b.handle(v), b.handle(a)
                inputs = [b.want(v.dtype, ()), value_for(b, v), b.want(v.dtype, ())]
                if any({v, a} & i.alias for i in inputs):
                    return  # TensorFlow's reads its rates anew after it has written the first of the two
                touches = [(v, True), (a, True), *b.reads(*inputs)]
                b.add('ApplyMomentum' if v.kind == 'ref' else 'ResourceApplyMomentum', [hv.ref, ha.ref] + [i.ref for i in inputs],
                      T(v.dtype, use_locking=bool_(b.chance(0.5))), [], touches)
                return


# ---- deadness without order: Switch and Merge anywhere ----

@action(6)
def switch(b):
    x, p = b.find(), b.find(BOOL, ())
    if x is None or p is None or any(c.kind == 'function' for c in b.chain()):  # whose results must not be dead
        return
    outs = b.add('Switch', [x.ref, p.ref], T(x.dtype), [(x.dtype, x.dims)] * 2, b.passes(x) + b.reads(p))
    for out in outs:
        out.alias = x.alias
    b.ctx.values += outs if b.chance(0.5) else [b.pick(*outs)]


@action(4)
def merge(b):
    x = b.find()
    if x is None or b.ctx.is_in_loop() or any(c.kind == 'function' for c in b.chain()):
        return  # a loop's would run on after the last round, and a function's takes whichever of two comes first
    others = [b.want(x.dtype, x.dims) for _ in range(b.below(2) + 1)]
    inputs = [x, *others] if b.chance(0.5) else [*others, x]
    outs = b.add('Merge', [i.ref for i in inputs], T(x.dtype, N=int_(len(inputs))), [(x.dtype, x.dims), (INT32, ())],
                 b.passes(*inputs))
    outs[0].alias = frozenset().union(*(i.alias for i in inputs))
    b.ctx.values += outs if b.chance(0.3) else outs[:1]


# ---- what fails ----

def barrier(b):
    """Whatever is written is written before or after."""
    return [(v, True) for v in b.ctx.variables]


@action(2)
def check(b):
    kind = b.below(4)
    if kind == 0:
        x = b.find((FLOAT, DOUBLE))
        if x is not None:
            zero = b.const(x.dtype, value=0)
            y = b.compute('RealDiv', [x, zero], T(x.dtype), x.dtype, x.dims)
            out = b.add('CheckNumerics', [y.ref], T(x.dtype, message=text('no')), [(x.dtype, x.dims)], barrier(b))[0]
            b.ctx.values.append(out)
    elif kind == 1:
        x = b.find(BOOL, ())
        if x is not None:
            touches = barrier(b) + [t for t in b.reads(x) if t[0] not in b.ctx.variables]
            b.add('Assert', [x.ref, x.ref], {'T': types(BOOL), 'summarize': int_(3)}, [], touches)
    elif kind == 2:
        x = b.find((INT32, INT64))
        if x is not None:
            y = b.want(x.dtype, x.dims)
            touches = barrier(b) + [t for t in b.reads(x, y) if t[0] not in b.ctx.variables]
            b.ctx.values.append(b.add(b.pick('FloorDiv', 'FloorMod', 'Div'), [x.ref, y.ref], T(x.dtype), [(x.dtype, x.dims)],
                                      touches)[0])
    else:
        x, i = b.find(), b.find(INT32, ())
        if x is not None and i is not None and x.dims:
            axis = b.const(INT32, value=0)
            attrs = {'Tparams': type_(x.dtype), 'Tindices': type_(INT32), 'Taxis': type_(INT32), 'batch_dims': int_(0)}
            touches = barrier(b) + [t for t in b.reads(x, i) if t[0] not in b.ctx.variables]
            b.ctx.values.append(b.add('GatherV2', [x.ref, i.ref, axis.ref], attrs, [(x.dtype, x.dims[1:])], touches)[0])


# ---- queues, stacks ----

def make_queue(b):
    v = new_variable(b, 'queue')
    b.root.handles[v] = b.add('FIFOQueueV2', [], {
        'component_types': types(v.dtype), 'shapes': ('shapes', (v.dims,)), 'capacity': int_(20),
        'shared_name': text('shared_' + v.name), 'container': text('')}, [(RESOURCE, ())], name=v.name)[0]
    start = b.const(v.dtype, v.dims)
    typed = {'Tcomponents': types(v.dtype), 'timeout_ms': int_(-1)}
    b.append(v.name + '_init', 'QueueEnqueueV2', [v.name, start.ref], typed, b.mask_of([v.name, start.node()]))
    b.append(v.name + '_state', 'QueueSizeV2', [v.name], {}, b.before[v.name])
    return v


@action(4)
def queue(b):
    v = some_variable(b, 'queue')
    if v is None:
        return
    handle, kind = b.handle(v), b.below(5)
    if kind < 3:
        x = fresh(b, b.want(v.dtype, v.dims))
        b.add('QueueEnqueueV2', [handle.ref, x.ref], {'Tcomponents': types(v.dtype), 'timeout_ms': int_(-1)}, [], [(v, True)])
        if kind == 2:
            out = b.add('QueueDequeueV2', [handle.ref], {'component_types': types(v.dtype), 'timeout_ms': int_(-1)},
                        [(v.dtype, v.dims)], [(v, True)])[0]
            b.ctx.values.append(out)
    elif kind == 3:
        b.ctx.values.append(b.add('QueueSizeV2', [handle.ref], {}, [(INT32, ())], [(v, False)])[0])


@action(2)
def tensor_array(b):
    """Written and read at once: it lives no longer than the step."""
    x = b.find(NUMBERS)
    if x is None:
        return
    size = b.const(INT32, value=2)
    ta = b.add('TensorArrayV3', [size.ref], {'dtype': type_(x.dtype), 'element_shape': shape(None),
                                             'dynamic_size': bool_(False), 'clear_after_read': bool_(b.chance(0.5)),
                                             'identical_element_shapes': bool_(False), 'tensor_array_name': text('')},
               [(RESOURCE, (2,)), (FLOAT, ())])
    flow = ta[1]
    for i in b.pick((0, 1), (1, 0)):
        value = fresh(b, b.want(x.dtype, x.dims))
        flow = b.add('TensorArrayWriteV3', [ta[0].ref, b.const(INT32, value=i).ref, value.ref, flow.ref], T(x.dtype),
                     [(FLOAT, ())])[0]
    if b.chance(0.5):
        every = b.const(INT32, value=[0, 1])
        out = b.add('TensorArrayGatherV3', [ta[0].ref, every.ref, flow.ref],
                    {'dtype': type_(x.dtype), 'element_shape': shape(None)}, [(x.dtype, (2, *x.dims))])[0]
    else:
        out = b.add('TensorArrayReadV3', [ta[0].ref, b.const(INT32, value=b.below(2)).ref, flow.ref],
                    {'dtype': type_(x.dtype)}, [(x.dtype, x.dims)])[0]
    b.ctx.values.append(out)


@action(2)
def stack(b):
    x = b.find(NUMBERS)
    if x is None:
        return
    limit = b.const(INT32, value=4)
    handle = b.add('StackV2', [limit.ref], {'elem_type': type_(x.dtype), 'stack_name': text('')}, [(RESOURCE, ())])[0]
    pushed = []
    for _ in range(b.below(2) + 1):
        value = fresh(b, b.want(x.dtype, x.dims))
        push = b.add('StackPushV2', [handle.ref, value.ref], T(x.dtype, swap_memory=bool_(False)), [(x.dtype, x.dims)],
                     controls=pushed)
        b.ctx.values.append(push[0])
        pushed = [push[0].node()]
    pop = b.add('StackPopV2', [handle.ref], {'elem_type': type_(x.dtype)}, [(x.dtype, x.dims)], controls=pushed)[0]
    b.ctx.values.append(pop)
