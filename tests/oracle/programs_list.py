"""Stacks, arrays of tensors and lists."""
import numpy as np
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1
TYPES = (np.float32, np.float64, np.int32, np.int64, np.int16, np.complex64, np.bool_)


def draw(rng, dtype, shape):
    return np.asarray(rng.integers(0, 2 if dtype is np.bool_ else 90, shape)).astype(dtype)


def draw_shape(rng, high=3):
    return tuple(map(int, rng.integers(1, 4, rng.integers(0, high))))


def in_order(nodes):
    return tf.control_dependencies([n for n in nodes if n is not None])


# ---- stacks ----

def stack(p, v2):
    rng, dtype = p.rng, p.pick(*TYPES)
    limit = p.pick(-1, -1, 1, 3)
    if v2:
        s = raw.StackV2(max_size=tf.constant(limit), elem_type=dtype, stack_name=p.pick('', 'name'))
    else:
        s = raw.Stack(elem_type=dtype, stack_name=p.pick('', 'name'))
    last, popped = [], []
    for _ in range(int(rng.integers(1, 10))):
        value = p.maybe_hide(draw(rng, dtype, draw_shape(rng)))
        with in_order(last):
            if rng.integers(3):
                push = raw.StackPushV2 if v2 else raw.StackPush
                popped.append(push(handle=s, elem=value, swap_memory=bool(rng.integers(2))))
            else:
                popped.append((raw.StackPopV2 if v2 else raw.StackPop)(handle=s, elem_type=dtype))
            last = [popped[-1]]
    if rng.integers(2):
        with in_order(last):
            last = [(raw.StackCloseV2 if v2 else raw.StackClose)(handle=s)]
    p.step(popped, last)
    p.step(popped[:1])
    wrong = tf.float32 if dtype != np.float32 else tf.int32
    p.step((raw.StackPushV2 if v2 else raw.StackPush)(handle=s, elem=tf.zeros([], wrong)))
    p.step((raw.StackPopV2 if v2 else raw.StackPop)(handle=s, elem_type=wrong))


@program(60)
def stack_by_handle(p):
    stack(p, True)


@program(40)
def stack_by_reference(p):
    stack(p, False)


# ---- arrays ----

class Array:
    def __init__(self, p):
        self.p = p
        self.dtype = p.pick(*TYPES)
        self.shape = draw_shape(p.rng)
        self.size = int(p.rng.integers(1, 6))
        self.known = self.shape if p.rng.integers(2) else None
        self.handle, self.flow = raw.TensorArrayV3(
            size=p.maybe_hide(np.int32(self.size)), dtype=self.dtype, element_shape=self.known,
            dynamic_size=bool(p.rng.integers(2)), clear_after_read=bool(p.rng.integers(3) == 0),
            identical_element_shapes=bool(p.rng.integers(2)), tensor_array_name=p.pick('', 'name'))

    def value(self, prefix=()):
        return self.p.maybe_hide(draw(self.p.rng, self.dtype, prefix + self.shape))

    def write(self, index, value):
        self.flow = raw.TensorArrayWriteV3(handle=self.handle, index=index, value=value, flow_in=self.flow)

    def read(self, index):
        return raw.TensorArrayReadV3(handle=self.handle, index=index, flow_in=self.flow, dtype=self.dtype)

    def length(self):
        return raw.TensorArraySizeV3(handle=self.handle, flow_in=self.flow)

    def gather(self, indices):
        return raw.TensorArrayGatherV3(handle=self.handle, indices=indices, flow_in=self.flow, dtype=self.dtype,
                                       element_shape=self.known)


@program(60)
def array_written_and_read(p):
    a = Array(p)
    rng = p.rng
    for i in rng.permutation(a.size):
        if rng.integers(8):
            a.write(p.maybe_hide(np.int32(i)), a.value())
    if rng.integers(5) == 0:
        a.write(p.maybe_hide(np.int32(rng.integers(-1, a.size + 2))), a.value())
    if rng.integers(6) == 0:
        a.write(np.int32(0), p.hide(draw(rng, a.dtype, (4, 4, 4))))
    index = p.hide(np.int32(rng.integers(0, a.size)))
    p.step(a.read(index), a.length())
    p.step(a.gather(p.maybe_hide(np.arange(a.size, dtype=np.int32))))
    p.step(a.read(p.hide(np.int32(a.size + 3))))
    with tf.control_dependencies([a.flow]):
        p.step(raw.TensorArrayCloseV3(handle=a.handle))


@program(40)
def array_scattered_and_gathered(p):
    a, rng = Array(p), p.rng
    rows = rng.permutation(a.size)[:int(rng.integers(1, a.size + 1))].astype(np.int32)
    wrong = rng.integers(6) == 0
    a.flow = raw.TensorArrayScatterV3(handle=a.handle, indices=p.hide(rows), flow_in=a.flow,
                                      value=p.hide(draw(rng, a.dtype, (len(rows) + wrong, *a.shape))))
    p.step(a.gather(p.hide(rng.permutation(rows))), a.length())
    p.step(a.gather(p.hide(np.arange(a.size, dtype=np.int32))))


@program(40)
def array_split_and_concatenated(p):
    a, rng = Array(p), p.rng
    width = tuple(a.shape[1:])
    lengths = rng.integers(0, 4, a.size).astype(np.int64) if a.known is None or not a.shape else \
        np.full(a.size, a.shape[0], np.int64)
    if rng.integers(8) == 0:
        lengths[-1] += 1
    total = int(lengths.sum()) + int(rng.integers(8) == 0)
    a.flow = raw.TensorArraySplitV3(handle=a.handle, value=p.hide(draw(rng, a.dtype, (total, *width))), lengths=p.hide(lengths),
                                    flow_in=a.flow)
    p.step(a.length())
    joined = raw.TensorArrayConcatV3(handle=a.handle, flow_in=a.flow, dtype=a.dtype)
    p.step(joined.value, joined.lengths)


@program(80)
def array_gradient(p):
    """Gradient arrays: writes to one place add up."""
    rng, dtype = p.rng, p.pick(np.float32, np.float64)
    size, shape = int(rng.integers(1, 5)), draw_shape(rng)
    handle, flow = raw.TensorArrayV3(size=size, dtype=dtype, clear_after_read=False)
    flow = raw.TensorArrayScatterV3(handle=handle, indices=np.arange(size, dtype=np.int32),
                                    value=draw(rng, dtype, (size, *shape)), flow_in=flow)
    if rng.integers(2):
        grad, grad_flow = raw.TensorArrayGradV3(handle=handle, flow_in=flow, source=p.pick('gradients', 'other'))
    else:
        grad, grad_flow = raw.TensorArrayGradWithShape(handle=handle, flow_in=flow, shape_to_prepend=tf.constant([], tf.int32),
                                                       source='gradients')
    for _ in range(int(rng.integers(0, 6))):
        grad_flow = raw.TensorArrayWriteV3(handle=grad, index=int(rng.integers(size)), value=draw(rng, dtype, shape),
                                           flow_in=grad_flow)
    index = p.hide(np.int32(rng.integers(size)))
    p.step(raw.TensorArrayReadV3(handle=grad, index=index, flow_in=grad_flow, dtype=dtype),
           raw.TensorArraySizeV3(handle=grad, flow_in=grad_flow))
    p.step(raw.TensorArrayGatherV3(handle=grad, indices=np.arange(size, dtype=np.int32), flow_in=grad_flow, dtype=dtype))


# ---- lists ----

class List:
    """A chain of list nodes, each of which may be looked at. |items| says which elements are set: of others TensorFlow gives
    memory as it finds it, or aborts."""

    def __init__(self, p, handle, dtype, shape, items):
        self.p, self.handle, self.dtype, self.shape, self.items = p, handle, dtype, shape, items
        self.made = []

    def shape_input(self):
        return tf.constant(np.array(self.shape, np.int32)) if self.p.rng.integers(2) else tf.constant(-1)

    def value(self, prefix=()):
        return self.p.maybe_hide(draw(self.p.rng, self.dtype, prefix + self.shape))

    def set_items(self, indices, resize=True):
        for i in indices:
            if i >= len(self.items) and resize:
                self.items += [False] * (int(i) + 1 - len(self.items))
            if i < len(self.items):
                self.items[i] = True

    def push(self):
        self.handle = raw.TensorListPushBack(input_handle=self.handle, tensor=self.value())
        self.items.append(True)

    def pop(self):
        if self.items and not self.items[-1]:
            return
        self.handle, item = raw.TensorListPopBack(input_handle=self.handle, element_shape=self.shape_input(),
                                                  element_dtype=self.dtype)
        self.made.append(item)
        self.items = self.items[:-1]

    def set(self):
        index, resize = int(self.p.rng.integers(0, 4)), bool(self.p.rng.integers(2))
        self.handle = raw.TensorListSetItem(input_handle=self.handle, index=self.p.hide(np.int32(index)), item=self.value(),
                                            resize_if_index_out_of_bounds=resize)
        self.set_items([index], resize)

    def get(self):
        index = int(self.p.rng.integers(0, 4))
        if index < len(self.items) and not self.items[index]:
            return
        index = self.p.hide(np.int32(index))
        self.made.append(raw.TensorListGetItem(input_handle=self.handle, index=index, element_shape=self.shape_input(),
                                               element_dtype=self.dtype))

    def resize(self):
        size = int(self.p.rng.integers(0, 6))
        self.handle = raw.TensorListResize(input_handle=self.handle, size=self.p.hide(np.int32(size)))
        self.items = (self.items + [False] * size)[:size]

    def look(self):
        self.made.append(raw.TensorListLength(input_handle=self.handle))
        self.made.append(raw.TensorListElementShape(input_handle=self.handle, shape_type=self.p.pick(tf.int32, tf.int64)))

    def stack(self):
        if all(self.items):
            self.made.append(raw.TensorListStack(input_handle=self.handle, element_shape=self.shape_input(),
                                                 element_dtype=self.dtype))

    def gather(self):
        rows = self.p.rng.integers(0, 3, int(self.p.rng.integers(0, 4))).astype(np.int32)
        if all(self.items):
            self.made.append(raw.TensorListGather(input_handle=self.handle, indices=self.p.hide(rows),
                                                  element_shape=self.shape_input(), element_dtype=self.dtype))

    def scatter(self):
        n = int(self.p.rng.integers(0, 3))
        rows = self.p.rng.permutation(4)[:n].astype(np.int32)
        self.handle = raw.TensorListScatterIntoExistingList(input_handle=self.handle, tensor=self.value((n,)),
                                                            indices=self.p.hide(rows))
        self.set_items(rows)

    def play(self, turns):
        actions = [self.push, self.push, self.pop, self.set, self.get, self.resize, self.look, self.stack, self.gather,
                   self.scatter]
        for _ in range(turns):
            actions[int(self.p.rng.integers(len(actions)))]()
        self.look()
        for tensor in self.made:
            self.p.step(tensor)
        self.p.step(self.made)


@program(100)
def list_from_nothing(p):
    dtype, shape, n = p.pick(*TYPES), draw_shape(p.rng), 0
    known = p.pick(np.array(shape, np.int32), np.int32(-1), np.array([-1] * len(shape), np.int64))
    if p.rng.integers(2):
        handle = raw.EmptyTensorList(element_shape=p.maybe_hide(known), max_num_elements=p.pick(-1, -1, 2, 5),
                                     element_dtype=dtype)
    else:
        n = int(p.rng.integers(0, 5))
        handle = raw.TensorListReserve(element_shape=p.maybe_hide(known), num_elements=p.hide(np.int32(n)),
                                       element_dtype=dtype)
    List(p, handle, dtype, shape, [False] * n).play(int(p.rng.integers(3, 9)))


@program(100)
def list_from_rows(p):
    rng, dtype, shape = p.rng, p.pick(*TYPES), draw_shape(p.rng)
    n = size = int(rng.integers(1, 5))
    values = p.maybe_hide(draw(rng, dtype, (n, *shape)))
    known = p.maybe_hide(np.array(shape, np.int32))
    kind = p.number % 3
    if kind == 0:
        handle = raw.TensorListFromTensor(tensor=values, element_shape=known)
    elif kind == 1:
        handle = raw.TensorListScatter(tensor=values, indices=p.hide(rng.permutation(n).astype(np.int32)), element_shape=known)
    else:
        size = p.pick(n, n + 2)
        handle = raw.TensorListScatterV2(tensor=values, indices=p.hide(rng.permutation(n).astype(np.int32)),
                                         element_shape=known, num_elements=p.hide(np.int32(p.pick(-1, n) if size == n else size)))
    List(p, handle, dtype, shape, [True] * n + [False] * (size - n)).play(int(rng.integers(3, 9)))


@program(60)
def list_of_any_type(p):
    """Every element is set."""
    rng, dtype, shape = p.rng, p.pick(*TYPES), draw_shape(p.rng)
    n, known = int(rng.integers(1, 5)), tf.constant(np.array(shape, np.int32))
    handle = raw.TensorListFromTensor(tensor=p.maybe_hide(draw(rng, dtype, (n, *shape))), element_shape=known)
    made = []
    for _ in range(int(rng.integers(1, 5))):
        handle = raw.TensorListPushBack(input_handle=handle, tensor=p.maybe_hide(draw(rng, dtype, shape)))
        handle = raw.TensorListSetItem(input_handle=handle, index=p.hide(np.int32(rng.integers(0, n))),
                                       item=draw(rng, dtype, shape))
        made.append(raw.TensorListGetItem(input_handle=handle, index=int(rng.integers(0, n)), element_shape=known,
                                          element_dtype=dtype))
        if rng.integers(3) == 0:
            handle, item = raw.TensorListPopBack(input_handle=handle, element_shape=known, element_dtype=dtype)
            made.append(item)
    rows = p.hide(rng.integers(0, n, 3).astype(np.int32))
    made.append(raw.TensorListGather(input_handle=handle, indices=rows, element_shape=known, element_dtype=dtype))
    made.append(raw.TensorListStack(input_handle=handle, element_shape=known, element_dtype=dtype))
    p.step(made)


@program(60)
def list_pieces(p):
    rng, dtype = p.rng, p.pick(*TYPES)
    width = draw_shape(rng, 2)
    lengths = rng.integers(0, 4, int(rng.integers(1, 4))).astype(np.int64)
    total = int(lengths.sum()) + int(rng.integers(8) == 0)
    element = p.hide(np.array([-1, *width], np.int32))
    handle = raw.TensorListSplit(tensor=p.hide(draw(rng, dtype, (total, *width))), element_shape=element,
                                 lengths=p.hide(lengths))
    if rng.integers(3) == 0:
        handle = raw.TensorListResize(input_handle=handle, size=len(lengths) + 1)
    missing = p.hide(rng.integers(0, 3, int(rng.integers(0, 4))).astype(np.int64))
    if rng.integers(4):
        joined = raw.TensorListConcatV2(input_handle=handle, element_shape=element, leading_dims=missing, element_dtype=dtype)
    else:
        joined = raw.TensorListConcat(input_handle=handle, element_dtype=dtype)
    p.step(joined.tensor, joined.lengths)
    p.step(raw.TensorListLength(input_handle=handle))


@program(40)
def lists_joined(p):
    rng, dtype, shape = p.rng, p.pick(*TYPES), draw_shape(p.rng)
    known = np.array(shape, np.int32)
    a, b = [raw.TensorListFromTensor(tensor=draw(rng, dtype, (int(rng.integers(1, 4)), *shape)), element_shape=known)
            for _ in range(2)]
    joined = raw.TensorListConcatLists(input_a=a, input_b=b, element_dtype=dtype)
    p.step(raw.TensorListStack(input_handle=joined, element_shape=known, element_dtype=dtype),
           raw.TensorListLength(input_handle=a), raw.TensorListLength(input_handle=joined))


@program(40)
def lists_in_batches(p):
    rng, dtype, shape = p.rng, p.pick(*TYPES), draw_shape(p.rng)
    known, n = np.array(shape, np.int32), int(rng.integers(1, 4))
    lists = [raw.EmptyTensorList(element_shape=known, max_num_elements=-1, element_dtype=dtype) for _ in range(n)]
    handles = tf.stack(lists)
    for _ in range(int(rng.integers(1, 3))):
        handles = raw.TensorListPushBackBatch(input_handles=handles, tensor=p.maybe_hide(draw(rng, dtype, (n, *shape))))
    for one in tf.unstack(handles, num=n):
        p.step(raw.TensorListStack(input_handle=one, element_shape=known, element_dtype=dtype))
