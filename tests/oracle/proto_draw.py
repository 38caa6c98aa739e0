"""What small random graphs are made of: nodes with inputs and attributes that mostly fit, tensors as any writer of protos may write
them, and the steps to run."""
import struct

import numpy as np

from random_graph import (BOOL, DOUBLE, FLOAT, INT32, INT64, RESOURCE, STRING, VARIANT, Node, Program, Run, bool_, bytes_, int_, ints, shape, shapes, text,
                          type_, types)
from values import ENUM, NUMPY, field, varint, write_tensor

PRODUCERS = (1, 8, 12, 20, 21, 22, 23, 24, 25, 26, 27, 120, 1882)
HUGE = {np.float32: (1e30, np.inf, np.nan, 1e15), np.float64: (1e300, np.inf, np.nan, 1e15), np.int32: (2**31 - 1, -2**31),
        np.int64: (2**63 - 1, -2**63, 2**62, 2**45)}
HANDS_ON = ('Identity', 'GuaranteeConst', 'StopGradient', 'PreventGradient', 'IdentityN', 'Snapshot')


class Builder:
    def __init__(self, rng):
        self.rng, self.program, self.made = rng, Program(), 0
        self.is_wrong = False  # one thing may be, or nobody could say which is told of first

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *choices):
        return self.rng.choice(choices)

    def node(self, op, *inputs, **attrs):
        self.made += 1
        name = f'{op.lower()}{self.made}'
        self.program.nodes.append(Node(name, op, inputs, attrs))
        return name

    def run(self, fetches=(), targets=(), feeds=None):
        self.program.runs.append(Run([f if ':' in f else f + ':0' for f in fetches], targets, feeds))

    # ---- tensors ----

    def dims(self, rank=None):
        rank = self.pick(0, 1, 1, 2, 2, 3) if rank is None else rank
        return [self.pick(0, 1, 2, 2, 3, 3, 4) for _ in range(rank)]

    def array(self, dtype, dims=None, low=-2, high=6):
        """Small numbers; now and then one that is far out."""
        dims = self.dims() if dims is None else dims
        size = int(np.prod(dims))
        if dtype == object:
            out = np.empty(size, object)
            out[:] = [self.pick(b'', b'a', b'bc', b'1', b'x' * 40) for _ in range(size)]
            return out.reshape(dims)
        values = [self.rng.randrange(low, high) for _ in range(size)]
        out = np.array(values, dtype).reshape(dims)
        if dtype in HUGE and size and not self.is_wrong and self.chance(0.06):
            self.is_wrong = True
            out.ravel()[self.rng.randrange(size)] = self.pick(*HUGE[dtype])
        return out

    def seen(self, array):
        """A constant, which shape functions see."""
        return self.node('Const', dtype=type_(ENUM[array.dtype]), value=('array', array))

    def other(self, array):
        """Something else of the type: another rank, shape or size."""
        dims, dtype = list(array.shape), array.dtype.type if array.dtype != object else object
        how = self.pick('rank', 'less', 'grown', 'any')
        if how == 'rank':
            dims.insert(0, 1)
        elif how == 'less' and dims:
            dims.pop()
        elif how == 'grown' and dims:
            dims[self.rng.randrange(len(dims))] += 1
        else:
            dims = self.dims()
        return self.array(dtype, dims)

    def value(self, array, wrong=0.1, most=None):
        """A node that gives |array|, or mostly so: a constant that shape functions see, or one that they do not."""
        if not self.is_wrong and self.chance(wrong):
            array, self.is_wrong = self.other(array), True
        if most is not None:
            array = np.minimum(array, most).astype(array.dtype)
        const = self.node('Const', dtype=type_(ENUM[array.dtype]), value=('array', array))
        if self.chance(0.3):
            return const
        known = self.pick(None, None, None, [-1] * array.ndim)
        return self.node('PlaceholderWithDefault', const, dtype=type_(ENUM[array.dtype]), shape=shape(known))

    def odd(self, fine, *odd):
        """One of |fine|, or what is likely to be wrong, if nothing is yet."""
        if not self.is_wrong and self.chance(0.25):
            self.is_wrong = True
            return self.pick(*odd)
        return self.pick(*fine)

    def handed_on(self, name, dtype):
        """|name|, or an op that only hands it on."""
        if self.chance(0.85):
            return name
        op = self.pick(*HANDS_ON)
        return self.node(op, name, T=types(dtype) if op == 'IdentityN' else type_(dtype))

    # ---- constants as protos ----

    def tensor_proto(self, dtype, dims):
        """A TensorProto with more, fewer or other values than the shape has places."""
        count = int(np.prod(dims)) if all(d >= 0 for d in dims) else 1
        number = self.pick(count, count, count, 0, 1, count + 1, max(0, count - 1), count + 3)
        head = b'\x08' + varint(dtype) + field(2, b''.join(field(2, b'\x08' + varint(d)) for d in dims))
        own = FIELDS.get(dtype, 7)
        if dtype not in (STRING, RESOURCE, VARIANT) and self.chance(0.2):
            size = NUMPY[dtype].itemsize if dtype in NUMPY else 1
            return head + field(4, bytes(self.rng.randrange(2 if dtype == BOOL else 100) for _ in range(size * number)))
        if self.chance(0.06):
            own = self.pick(*FIELDS.values())
        return head + b''.join(self.list_value(own, number))

    def list_value(self, number, count):
        values = [self.rng.randrange(-3, 9) for _ in range(count)]
        if number == 8:
            return [field(8, self.pick(b'', b'a', b'bc', b'y' * 30)) for _ in values]
        if number == 15:
            return [field(15, self.variant()) for _ in values]
        if number == 14:
            return [field(14, field(1, b'/job:localhost/replica:0/task:0/device:CPU:0') + field(3, b'none')) for _ in values]
        if number in (5, 9):
            pairs = values * (2 if number == 9 else 1)
            return [field(number, b''.join(struct.pack('<f', v) for v in pairs))] if pairs else []
        if number in (6, 12):
            pairs = values * (2 if number == 12 else 1)
            return [field(number, b''.join(struct.pack('<d', v) for v in pairs))] if pairs else []
        values = [abs(v) % 2 if number == 11 else abs(v) if number in (13, 16, 17) else v for v in values]
        if self.chance(0.5):
            return [varint(number << 3) + varint(v) for v in values]
        return [field(number, b''.join(map(varint, values)))] if values else []

    def variant(self):
        kind = self.pick('int', 'float', 'double', 'bool', '', 'tensorflow::TensorList', 'Unheard', 'int')
        data = {'int': struct.pack('<i', 7), 'float': struct.pack('<f', 2), 'double': struct.pack('<d', 3), 'bool': b'\x01'}.get(kind, b'')
        if kind == 'tensorflow::TensorList':  # indices of missing elements, type, number of elements, shape
            data = b'\x00' + varint(FLOAT) + varint((1 << 64) - 1) + b'\x18\x01'
        return (field(1, kind.encode()) if kind else b'') + (field(2, data) if data else b'')


FIELDS = {FLOAT: 5, DOUBLE: 6, INT32: 7, 4: 7, 5: 7, 6: 7, STRING: 8, 8: 9, INT64: 10, BOOL: 11, 18: 12, 19: 13, 14: 13, 17: 7, 22: 16, 23: 17,
         11: 7, 12: 7, 13: 7, VARIANT: 15}


# ---- families: each draws a graph and its steps ----

def constants(b):
    for _ in range(b.rng.randrange(1, 4)):
        dtype = b.pick(*FIELDS, STRING, VARIANT, FLOAT, INT32)
        dims = b.dims(b.pick(0, 1, 1, 1, 2))
        const = b.node('Const', dtype=type_(dtype), value=bytes_(field(8, b.tensor_proto(dtype, dims))))
        if dtype == VARIANT:
            many = b.node('AddN', const, const, N=int_(2), T=type_(VARIANT)) if b.chance(0.4) else b.node('ZerosLike', const, T=type_(VARIANT))
            b.run([b.node('Shape', b.pick(const, many), T=type_(VARIANT))])
        elif dtype in (11, 12, 13):
            b.run([b.node('Shape', const, T=type_(dtype))])
        else:
            b.run([b.node('Identity', const, T=type_(dtype))])


def placeholders(b):
    dims = b.pick(None, (), (), (2,), (-1, 2), (0,), (2, 2))
    op = b.pick('Placeholder', 'Placeholder', 'PlaceholderV2')
    x = b.node(op, dtype=type_(FLOAT), shape=shape(dims))
    made = [b.node('Shape', x, T=type_(FLOAT)), b.node('Identity', x, T=type_(FLOAT)),
            b.node('MatMul', x, x, T=type_(FLOAT), transpose_b=bool_(True)), b.node('Neg', x, T=type_(FLOAT))]
    keep = b.rng.sample(made, 2)
    b.program.nodes = [n for n in b.program.nodes if n.name == x or n.name in keep]
    for _ in range(2):
        b.run([b.pick(*keep)], feeds={x + ':0': b.array(np.float32, b.pick(list(d if d > 0 else 2 for d in dims or ()), b.dims()))})


QUEUES = ('FIFOQueueV2', 'PaddingFIFOQueueV2', 'RandomShuffleQueueV2', 'PriorityQueueV2', 'Barrier')
COMPONENTS = ((FLOAT,), (FLOAT,), (FLOAT,), (INT32,), (FLOAT, INT32))


def component_shapes(b, count):
    one = b.pick(((),), ((2,),), ((2,),), ((3,),), (None,), ((-1, 2),), ((2, -1, 3),), ((0,),))
    return () if b.chance(0.25) else one * count


def queue(b, kind, name):
    kinds = b.pick(*COMPONENTS)
    attrs = {'shared_name': text(name), 'capacity': int_(b.pick(-1, 3, 3, 4)), 'shapes': shapes(*component_shapes(b, len(kinds)))}
    attrs['component_types'] = types(*kinds)
    if kind == 'RandomShuffleQueueV2':
        seed = b.pick(0, 1, 1, 2)
        attrs |= {'min_after_dequeue': int_(b.pick(0, 0, 1)), 'seed': int_(seed), 'seed2': int_(seed and 3)}
    if kind == 'PriorityQueueV2':  # puts the priority before them
        attrs['shapes'] = shapes(*(b.pick((), (2,), (3,)) for _ in kinds))
        return b.node(kind, **attrs), (INT64, *kinds), ((), *attrs['shapes'][1])
    return b.node(kind, **attrs), kinds, attrs['shapes'][1]


def queues(b):
    """Some queues or barriers, of one name or two, and what is put in and taken out step by step."""
    kind = b.pick(*QUEUES)
    made = [queue(b, kind if b.chance(0.9) else b.pick(*QUEUES), b.pick('one', 'one', 'two')) for _ in range(b.rng.randrange(1, 4))]
    for _ in range(b.rng.randrange(2, 7)):
        handle, kinds, dims = b.pick(*made)
        is_barrier = handle.startswith('barrier')
        handle = b.handed_on(handle, RESOURCE) if not is_barrier else handle
        fetched, target = barrier_step(b, handle, kinds, dims) if is_barrier else queue_step(b, handle, kinds, dims)
        b.run([fetched] if fetched else [], [] if fetched else [target])


def components(b, kinds, dims, many=()):
    """Values that fit a queue, mostly."""
    out = []
    for i, kind in enumerate(kinds):
        known = dims[i] if i < len(dims) and dims[i] is not None else ()
        sizes = list(many) + [b.pick(1, 2) if d < 0 else d for d in known]
        out.append(b.value(b.array({FLOAT: np.float32, INT32: np.int32, INT64: np.int64}[kind], sizes), wrong=0.2))
    return out


def queue_step(b, handle, kinds, dims):
    what = b.pick('Enqueue', 'Enqueue', 'EnqueueMany', 'Dequeue', 'DequeueMany', 'DequeueUpTo', 'Size', 'Size', 'Close', 'IsClosed')
    if what == 'Enqueue':
        return None, b.node('QueueEnqueueV2', handle, *components(b, kinds, dims), Tcomponents=types(*kinds))
    if what == 'EnqueueMany':
        return None, b.node('QueueEnqueueManyV2', handle, *components(b, kinds, dims, [b.pick(0, 1, 2)]), Tcomponents=types(*kinds))
    if what == 'Dequeue':
        return b.node('QueueDequeueV2', handle, component_types=types(*kinds)), None
    if what in ('DequeueMany', 'DequeueUpTo'):
        n = b.value(np.array(b.pick(0, 1, 1, 2), np.int32), wrong=0.05 if what == 'DequeueMany' else 0)
        return b.node(f'Queue{what}V2', handle, n, component_types=types(*kinds)), None
    if what == 'Close':
        return None, b.node('QueueCloseV2', handle, cancel_pending_enqueues=bool_(b.chance(0.3)))
    return b.node('QueueSizeV2' if what == 'Size' else 'QueueIsClosedV2', handle), None


def barrier_step(b, handle, kinds, dims):
    what = b.pick('insert', 'insert', 'ready', 'incomplete', 'take', 'close')
    if what == 'insert':
        i = b.rng.randrange(len(kinds))
        count = b.pick(0, 1, 1, 2)
        value = components(b, [kinds[i]], dims[i:i + 1], [count])[0]
        keys = np.empty(count, object)
        keys[:] = [b.pick(b'k', b'l', b'm') for _ in range(count)]
        return None, b.node('BarrierInsertMany', handle, b.value(keys, wrong=0.05), value, T=type_(kinds[i]), component_index=int_(i))
    if what == 'take':
        return b.node('BarrierTakeMany', handle, b.value(np.array(b.pick(0, 1, 1, 2), np.int32), 0.05), component_types=types(*kinds),
                      allow_small_batch=bool_(b.chance(0.5)), wait_for_incomplete=bool_(False)), None
    if what == 'close':
        return None, b.node('BarrierClose', handle, cancel_pending_enqueues=bool_(b.chance(0.3)))
    return b.node('BarrierReadySize' if what == 'ready' else 'BarrierIncompleteSize', handle), None


def accumulators(b):
    sparse, made = b.chance(0.5), []
    for _ in range(b.rng.randrange(1, 3)):
        dims = b.pick(None, (), (2,), (2, 2), (-1, 2), (3,))
        op = 'SparseConditionalAccumulator' if sparse else 'ConditionalAccumulator'
        made.append((b.node(op, dtype=type_(b.pick(FLOAT, FLOAT, FLOAT, DOUBLE)), shape=shape(dims), shared_name=text(b.pick('a', 'a', 'b'))), dims))
    for _ in range(b.rng.randrange(2, 6)):
        handle, dims = b.pick(*made)
        sizes = [2 if d < 0 else d for d in dims or ()]
        step = b.value(np.array(b.pick(0, 0, 1), np.int64), 0.05)
        what = b.pick('apply', 'apply', 'take', 'count', 'step')
        if what == 'apply' and sparse:
            rows = b.pick(0, 1, 2)
            gradient = b.value(b.array(np.float32, [rows] + sizes[1:]), 0.2)
            indices = b.value(b.array(np.int64, [rows], 0, 2), 0.2)
            known = b.pick(True, False)
            whole = b.value(np.array(sizes if known else [], np.int64), 0.1)
            b.run([], [b.node('SparseAccumulatorApplyGradient', handle, step, indices, gradient, whole, dtype=type_(FLOAT), has_known_shape=bool_(known))])
        elif what == 'apply':
            b.run([], [b.node('AccumulatorApplyGradient', handle, step, b.value(b.array(np.float32, sizes), 0.2), dtype=type_(FLOAT))])
        elif what == 'take':
            n = b.value(np.array(b.pick(1, 1, 0, 2), np.int32), 0.05)
            b.run([b.node(('Sparse' if sparse else '') + 'AccumulatorTakeGradient', handle, n, dtype=type_(FLOAT)) + (':1' if sparse else '')])
        elif what == 'count':
            b.run([b.node('AccumulatorNumAccumulated', handle)])
        else:
            b.run([], [b.node('AccumulatorSetGlobalStep', handle, step)])


def arrays(b):
    """A TensorArray written and read in one step."""
    dims = b.pick(None, (), (2,), (-1, 2), (3,))
    sizes = [2 if d < 0 else d for d in (dims if dims is not None else b.pick((), (2,)))]
    array = b.node('TensorArrayV3', b.value(np.array(b.pick(0, 1, 2, 3), np.int32), 0.05), dtype=type_(FLOAT), element_shape=shape(dims),
                   dynamic_size=bool_(b.chance(0.3)), clear_after_read=bool_(b.chance(0.7)), identical_element_shapes=bool_(b.chance(0.3)))
    handle, flow = array, array + ':1'
    for _ in range(b.rng.randrange(1, 4)):
        handle_now = b.handed_on(handle, RESOURCE)
        what = b.pick('Write', 'Write', 'Scatter', 'Split')
        if what == 'Write':
            index = b.value(np.array(b.pick(0, 1, 2, -1, 3), np.int32), 0.05)
            flow = b.node('TensorArrayWriteV3', handle_now, index, b.value(b.array(np.float32, sizes), 0.15), flow, T=type_(FLOAT))
        elif what == 'Scatter':
            n = b.pick(0, 1, 2)
            flow = b.node('TensorArrayScatterV3', handle_now, b.value(b.array(np.int32, [n], 0, 4), 0.1), b.value(b.array(np.float32, [n] + sizes), 0.15),
                          flow, T=type_(FLOAT))
        else:
            flow = b.node('TensorArraySplitV3', handle_now, b.value(b.array(np.float32, [3] + sizes[1:]), 0.1), b.value(np.array(b.pick([3], [1, 2], [0, 3], [2]), np.int64), 0.2),
                          flow, T=type_(FLOAT))
    what = b.pick('Read', 'Gather', 'Concat', 'Size')
    if what == 'Read':
        out = b.node('TensorArrayReadV3', handle, b.value(np.array(b.pick(0, 1, 2, -1), np.int32), 0.05), flow, dtype=type_(FLOAT))
    elif what == 'Gather':
        out = b.node('TensorArrayGatherV3', handle, b.value(b.array(np.int32, [b.pick(0, 1, 2)], 0, 3), 0.1), flow, dtype=type_(FLOAT),
                     element_shape=shape(b.pick(None, dims)))
    elif what == 'Concat':
        out = b.node('TensorArrayConcatV3', handle, flow, dtype=type_(FLOAT), element_shape_except0=shape(None))
    else:
        out = b.node('TensorArraySizeV3', handle, flow)
    b.run([out])


def lists(b):
    sizes = list(b.pick((), (2,), (3,)))
    dims = b.seen(np.array(-1, np.int32))  # a scalar must be seen
    if b.chance(0.6):
        dims = b.value(b.pick(np.array(sizes, np.int32), np.array([-1] * len(sizes), np.int32)), 0.1)
    made = b.node('EmptyTensorList', dims, b.value(np.array(b.pick(-1, -1, 1), np.int32), 0.02), element_dtype=type_(FLOAT), shape_type=type_(INT32))
    for _ in range(b.rng.randrange(0, 4)):
        made = b.node('TensorListPushBack', made, b.value(b.array(np.float32, sizes), 0.2), element_dtype=type_(FLOAT))
    what = b.pick('Stack', 'Get', 'Gather', 'Concat', 'Length', 'Set', 'Pop')
    index = b.value(np.array(b.odd((0, 1), 2, -1), np.int32), 0.05)
    if what == 'Set':
        made = b.node('TensorListSetItem', made, index, b.value(b.array(np.float32, sizes), 0.2), element_dtype=type_(FLOAT))
        what = 'Stack'
    if what == 'Stack':
        out = b.node('TensorListStack', made, dims, element_dtype=type_(FLOAT), num_elements=int_(b.pick(-1, -1, 2)))
    elif what == 'Get':
        out = b.node('TensorListGetItem', made, index, dims, element_dtype=type_(FLOAT))
    elif what == 'Gather':
        out = b.node('TensorListGather', made, b.value(b.array(np.int32, [b.pick(0, 1, 2)], 0, 3), 0.1), dims, element_dtype=type_(FLOAT))
    elif what == 'Concat':
        out = b.node('TensorListConcatV2', made, dims, b.value(np.zeros(b.pick(0, 0, 2), np.int64), 0.05), element_dtype=type_(FLOAT), shape_type=type_(INT32))
    elif what == 'Pop':
        out = b.node('TensorListPopBack', made, dims, element_dtype=type_(FLOAT)) + ':1'
    else:
        out = b.node('TensorListLength', made)
    b.run([out])


def variables(b):
    """Variables of both kinds, set or not, read and written by ops of all kinds."""
    is_ref = b.chance(0.5)
    dims = list(b.pick((), (2,), (2, 2)))
    name = b.node('VariableV2' if is_ref else 'VarHandleOp', dtype=type_(FLOAT), shape=shape(dims), shared_name=text(b.pick('', 'v')))
    value = lambda wrong=0.15: b.value(b.array(np.float32, dims), wrong)
    indices = lambda: b.value(b.array(np.int32, [1], 0, 2), 0.1)
    rows = lambda: b.value(b.array(np.float32, [1] + dims[1:]), 0.1)
    number = lambda: b.value(b.array(np.float32, []), 0.05)
    T = {'T': type_(FLOAT)}
    if is_ref:
        steps = [lambda: ('Identity', name, T), lambda: ('AssignAdd', name, value(), T), lambda: ('AssignSub', name, value(), T), lambda: ('Neg', name, T),
                 lambda: ('ScatterAdd', name, indices(), rows(), T | {'Tindices': type_(INT32)}), lambda: ('ScatterUpdate', name, indices(), rows(), T | {'Tindices': type_(INT32)}),
                 lambda: ('ApplyGradientDescent', name, number(), value(), T),
                 lambda: ('IsVariableInitialized', name, {'dtype': type_(FLOAT)}), lambda: ('CountUpTo', name, T | {'limit': int_(3)}),
                 lambda: ('Assign', name, value(), T | {'validate_shape': bool_(b.chance(0.7))}), lambda: ('AddV2', name, value(), T)]
    else:
        d = {'dtype': type_(FLOAT)}
        steps = [lambda: ('ReadVariableOp', name, d), lambda: ('AssignAddVariableOp', name, value(), d), lambda: ('AssignSubVariableOp', name, value(), d),
                 lambda: ('ResourceScatterAdd', name, indices(), rows(), d | {'Tindices': type_(INT32)}), lambda: ('ResourceGather', name, indices(), d | {'Tindices': type_(INT32)}),
                 lambda: ('ResourceApplyGradientDescent', name, number(), value(), T), lambda: ('VarIsInitializedOp', name, {}),
                 lambda: ('AssignVariableOp', name, value(), d), lambda: ('VariableShape', name, {}), lambda: ('DestroyResourceOp', name, {'ignore_lookup_error': bool_(b.chance(0.5))})]
    quiet = ('AssignAddVariableOp', 'AssignSubVariableOp', 'ResourceScatterAdd', 'ResourceApplyGradientDescent', 'AssignVariableOp', 'DestroyResourceOp')
    for _ in range(b.rng.randrange(2, 6)):
        op, *inputs, attrs = b.pick(*steps)()
        if op == 'CountUpTo':
            continue
        if not is_ref:
            inputs[0] = b.handed_on(inputs[0], RESOURCE)
        made = b.node(op, *inputs, **attrs)
        b.run([] if op in quiet else [made], [made] if op in quiet else [])


def sizes_of(b, dims):
    return b.value(np.array(dims, b.pick(np.int32, np.int64)), 0.1)


def of_type(name, b):
    node = next(n for n in b.program.nodes if n.name == name)
    source = node if node.op == 'Const' else next(n for n in b.program.nodes if n.name == node.inputs[0])
    return type_(ENUM[source.attrs['value'][1].dtype])


def stateless(b):
    """One op whose kernel looks at sizes and values."""
    f = lambda dims=None, wrong=0.1: b.value(b.array(np.float32, dims), wrong)
    i = lambda dims=None, low=0, high=4, wrong=0.1: b.value(b.array(np.int32, dims, low, high), wrong)
    scalar = lambda *choices: b.value(np.array(b.pick(*choices), np.int32), 0.08)
    T, n = {'T': type_(FLOAT)}, b.pick(0, 1, 2, 3, 4)
    I, tail = type_(INT32), b.dims(b.pick(0, 1, 2))
    what = b.rng.randrange(21)
    if what == 0:
        kind = b.pick(np.int32, np.int64, np.float32, np.float64)
        values = [b.value(np.array(b.array(kind, [1])[0] if b.chance(0.75) else b.pick(*HUGE[kind]), kind), 0.04) for _ in range(3)]
        out = b.node('Range', *values, Tidx=type_(ENUM[np.dtype(kind)]))
    elif what == 1:
        d = sizes_of(b, b.dims(b.pick(1, 2)))
        out = b.node('Fill', d, f([]), T=type_(FLOAT), index_type=of_type(d, b))
    elif what == 2:
        parts = b.rng.randrange(2, 4)
        base = b.dims(b.pick(1, 2, 3))
        out = b.node('ConcatOffset', scalar(b.odd((0, 1), 2, -1)), *[b.value(np.array([d + b.odd((0,), 1, 0, 0) for d in base], np.int32), 0.08) for _ in range(parts)], N=int_(parts))
    elif what == 3:
        parts, base = b.rng.randrange(2, 4), b.dims(b.pick(1, 2))
        out = b.node('ConcatV2', *[f([d + b.odd((0,), 1, 0, 0) for d in base]) for _ in range(parts)], scalar(b.odd((0,), 1, -1)), N=int_(parts), T=type_(FLOAT), Tidx=I)
    elif what == 4:
        pieces = b.dims(b.pick(1, 2))
        out = b.node('SplitV', f([sum(pieces) + b.odd((0,), 1)] + tail), b.value(np.array(pieces, np.int32), 0.08), b.seen(np.array(b.odd((0,), 1, -1), np.int32)),
                     T=type_(FLOAT), Tlen=I, num_split=int_(len(pieces)))
    elif what == 5:
        out = b.node('Split', scalar(b.odd((0,), 1, -1)), f(), T=type_(FLOAT), num_split=int_(b.pick(1, 2, 2, 3)))
    elif what == 6:
        ids = b.array(np.int32, [n], 0, 4)
        ids = ids if b.odd((False,), True) else np.sort(ids)
        out = b.node(b.pick('SegmentSum', 'SegmentMean', 'SegmentMax', 'SegmentProd', 'SegmentMin'), f([n] + tail),
                     b.value(ids, most=10**6), T=type_(FLOAT), Tindices=I)  # the last one says how many rows there are
    elif what == 7:
        out = b.node(b.pick('UnsortedSegmentSum', 'UnsortedSegmentMax', 'UnsortedSegmentProd'), f([n] + tail), i([n], -1), scalar(b.odd((4, 5), 0, 1, -1)), T=type_(FLOAT), Tindices=I,
                     Tnumsegments=I)
    elif what == 8:
        ids = np.sort(b.array(np.int32, [n], b.odd((0,), -1), 4))
        op = b.pick('SparseSegmentSum', 'SparseSegmentMean', 'SparseSegmentSqrtN')
        more, attrs = (), {}
        if b.chance(0.5):
            op, more, attrs = op + 'WithNumSegments', (scalar(b.odd((4, 5), 0, 1, 3, -1)),), {'Tnumsegments': I}
        out = b.node(op, f([4] + tail), i([n], b.odd((0,), -1), b.pick(4, 4, 5)), b.value(ids), *more, T=type_(FLOAT), Tidx=I, Tsegmentids=I, **attrs)
    elif what == 9:
        out = b.node('GatherV2', f([3] + tail), i(None, b.odd((0,), -1), 4), scalar(b.odd((0,), 1, -1)), Tparams=type_(FLOAT), Tindices=I, Taxis=I)
    elif what == 10:
        out = b.node('GatherNd', f([3] + tail), i([2, b.pick(0, 1, 1, 2)], b.odd((0,), -1), 4), Tparams=type_(FLOAT), Tindices=I)
    elif what == 11:
        out = b.node('ScatterNd', i([n, 1], b.odd((0,), -1), 4), f([n] + tail), b.value(np.array([4] + tail, np.int32), 0.1), T=type_(FLOAT), Tindices=I)
    elif what == 12:
        dims = b.dims(b.pick(1, 2))
        out = b.node('Slice', f(dims), i([len(dims)], -1, 2), i([len(dims)], -1, 3), T=type_(FLOAT), Index=I)
    elif what == 13:
        dims = b.dims(b.pick(1, 2))
        out = b.node('Pad', f(dims), i([len(dims), 2], b.odd((0,), -1), 3), T=type_(FLOAT), Tpaddings=I)
    elif what == 14:
        dims = b.dims(b.pick(1, 2))
        out = b.node('Tile', f(dims), i([len(dims)], b.odd((0,), -1), 3), T=type_(FLOAT), Tmultiples=I)
    elif what == 15:
        dims = b.dims()
        out = b.node('Reshape', f(dims), b.value(np.array(b.pick([-1], dims, dims[::-1], [2, -1], [-1, -1]), np.int32), 0.08), T=type_(FLOAT), Tshape=I)
    elif what == 16:
        out = b.node('UnravelIndex', i(b.pick([], [2]), 0, 8), b.value(np.array(b.dims(b.pick(1, 2)), np.int32), 0.1), Tidx=I)
    elif what == 17:
        order = list(range(n))
        b.rng.shuffle(order)
        out = b.node('InvertPermutation', b.value(np.array(order, np.int32) + b.pick(0, 0, 0, 1), 0.08), T=I)
    elif what == 18:
        parts = b.rng.randrange(1, 3)
        counts = [b.pick(0, 1, 2) for _ in range(parts)]
        out = b.node('DynamicStitch', *[i([c], b.odd((0,), -1), 4) for c in counts], *[f([c] + tail) for c in counts], N=int_(parts), T=type_(FLOAT))
    elif what == 19:
        out = b.node('SparseToDense', i([n, 1], 0, 4), b.value(np.array([4], np.int32), 0.08), f([n]), f([]), T=type_(FLOAT), Tindices=I,
                     validate_indices=bool_(b.chance(0.7)))
    else:
        out = b.node('OneHot', i(None, -1, 4), scalar(b.odd((0, 1, 3), -1)), f([]), f([]), T=type_(FLOAT), TI=I, axis=int_(b.odd((-1, 0), 4)))
    b.run([out])


def example_proto(b):
    """An Example with some of the features a, b and t."""
    features = b''
    for key in ('a', 'b', 't'):
        if b.chance(0.25):
            continue
        kind, count = b.pick(1, 2, 3), b.pick(0, 1, 2, 3)
        if kind == 1:
            items = b''.join(field(1, b.pick(b'x', b'yy')) for _ in range(count))
        elif kind == 2:
            items = field(1, b''.join(struct.pack('<f', b.rng.randrange(5)) for _ in range(count)))
        else:
            items = field(1, b''.join(varint(b.rng.randrange(5)) for _ in range(count)))
        feature = field(kind, items) if b.chance(0.95) else b''
        features += field(1, field(1, key.encode()) + field(2, feature))
    data = field(1, features)
    return data if b.chance(0.95) else data[:-1] + b'\xff'


def strings_of(items):
    out = np.empty(len(items), object)
    out[:] = items
    return out


def examples(b):
    kinds = {np.float32: FLOAT, np.int64: INT64, object: STRING}
    batch = b.pick(1, 1, 2)
    dense = [(k, b.pick(*kinds)) for k in b.rng.sample(('a', 'b', 't', 'none'), b.rng.randrange(0, 3))]
    rest = [k for k in ('a', 'b', 't', 'none') if k not in dict(dense)]
    sparse = [(k, b.pick(*kinds)) for k in b.rng.sample(rest, b.rng.randrange(0 if dense else 1, 3))]
    dims = [b.pick((), (1,), (2,), (3,), (-1,), (2, 1)) for _ in dense]
    defaults = [b.value(b.array(t, [] if b.chance(0.1) else [0] if b.chance(0.5) else [1 if x < 0 else x for x in d]), 0.05) for (_, t), d in zip(dense, dims)]
    serialized = b.value(strings_of([example_proto(b) for _ in range(batch)]), 0.02)
    names = b.value(strings_of([b'first', b'second'][:batch] if b.chance(0.5) else []), 0)
    keys = lambda pairs: b.value(strings_of([k.encode() for k, _ in pairs]), 0)
    out = b.node('ParseExampleV2', serialized, names, keys(sparse), keys(dense), b.value(strings_of([]), 0), *defaults, Tdense=types(*[kinds[t] for _, t in dense]),
                 num_sparse=int_(len(sparse)), sparse_types=types(*[kinds[t] for _, t in sparse]), ragged_value_types=types(), ragged_split_types=types(),
                 dense_shapes=shapes(*dims))
    b.run([f'{out}:{k}' for k in range(3 * len(sparse) + len(dense))])


FAMILIES = {'constants': constants, 'placeholders': placeholders, 'queues': queues, 'accumulators': accumulators, 'arrays': arrays, 'lists': lists,
            'variables': variables, 'stateless': stateless, 'examples': examples}
WEIGHTS = {'queues': 3, 'stateless': 4}


def draw(rng, only=None):
    """A program and the name of its family."""
    names = only or list(FAMILIES)
    family = rng.choices(names, [WEIGHTS.get(n, 1) for n in names])[0]
    b = Builder(rng)
    FAMILIES[family](b)
    if rng.random() < (0.8 if family == 'placeholders' else 0.1):
        b.program.producer = rng.choice(PRODUCERS)
    return b.program, family
