"""Queues, barriers and accumulators."""
import numpy as np
import tensorflow as tf
from programs import program

raw = tf.raw_ops
TYPES = (np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.int16, np.complex64, np.bool_, np.float16, object)


def draw(rng, dtype, shape):
    if dtype is object:
        out = np.empty(shape, object)
        for i in range(out.size):
            out.reshape(-1)[i] = b'x' * int(rng.integers(40)) + str(rng.integers(99)).encode()
        return out
    return rng.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)


class Queue:
    """A queue node with all its accessors, and the number of elements a right queue holds."""

    def __init__(self, p, kind, is_v2):
        self.p, self.kind, self.v2 = p, kind, 'V2' if is_v2 else ''
        rng = p.rng
        self.types = [TYPES[i] for i in rng.integers(0, len(TYPES), rng.integers(1, 4))]
        self.shapes = [tuple(rng.integers(1, 4, rng.integers(0, 3))) for _ in self.types]
        self.capacity = int(rng.integers(1, 9)) if rng.integers(4) else -1
        self.left = int(rng.integers(0, max(1, self.capacity))) if kind == 'RandomShuffleQueue' else 0
        attrs = {'capacity': self.capacity, 'shapes': [list(map(int, s)) for s in self.shapes]}
        if kind == 'RandomShuffleQueue':
            attrs.update(min_after_dequeue=self.left, seed=int(rng.integers(99)), seed2=int(rng.integers(99)))
        if kind == 'PriorityQueue':
            attrs['component_types'] = [tf.as_dtype(np.dtype(t)) if t is not object else tf.string for t in self.types]
            self.types, self.shapes = [np.int64] + self.types, [()] + self.shapes
        else:
            attrs['component_types'] = self.tf_types()
        if rng.integers(3) == 0:
            attrs['shared_name'] = 'shared'
        self.make = lambda: getattr(raw, kind + self.v2)(**attrs)
        self.handle = self.make()
        self.size, self.closed = 0, False
        self.inputs = [tf.compat.v1.placeholder(t, None) for t in self.tf_types()]
        self.count = tf.compat.v1.placeholder(tf.int32, None)
        self.enqueue = self.call('QueueEnqueue', components=self.inputs)
        self.enqueue_many = self.call('QueueEnqueueMany', components=self.inputs)
        self.dequeue = self.call('QueueDequeue', component_types=self.tf_types())
        self.dequeue_many = self.call('QueueDequeueMany', n=self.count, component_types=self.tf_types())
        self.dequeue_up_to = self.call('QueueDequeueUpTo', n=self.count, component_types=self.tf_types())
        self.sizes = self.call('QueueSize')
        self.is_closed = self.call('QueueIsClosed')
        self.close = self.call('QueueClose', cancel_pending_enqueues=bool(rng.integers(2)))

    def tf_types(self):
        return [tf.string if t is object else tf.as_dtype(t) for t in self.types]

    def call(self, name, **kwargs):
        return getattr(raw, name + self.v2)(handle=self.handle, **kwargs)

    def feeds(self, prefix=()):
        values = [draw(self.p.rng, t, prefix + s) for t, s in zip(self.types, self.shapes)]
        if self.kind == 'PriorityQueue':  # TensorFlow's order of equal ones is its heap's; Weir's, of arrival, is in queue_test.c
            values[0] = self.p.rng.integers(0, 2**60, prefix)
        return dict(zip(self.inputs, values))

    def room(self):
        return 1000 if self.capacity < 0 else self.capacity - self.size

    # Random queues give elements in an order of their own: one at a time of one, or sorted.

    def do_enqueue(self):
        run = self.p.blocks if self.room() < 1 and not self.closed else self.p.step
        run(self.enqueue, feeds=self.feeds())
        self.size += self.room() > 0 and not self.closed

    def do_enqueue_many(self):
        n = int(self.p.rng.integers(0, 4))
        if n > self.room() and not self.closed:
            return
        self.p.step(self.enqueue_many, feeds=self.feeds((n,)))
        self.size += 0 if self.closed else n

    def ready(self):
        return self.size if self.closed else self.size - self.left

    def do_dequeue(self):
        run = self.p.blocks if self.ready() < 1 and not self.closed else self.p.step
        run(self.dequeue)
        self.size -= self.ready() > 0

    def do_dequeue_many(self):
        n = int(self.p.rng.integers(0, 4))
        if n > self.ready() and not self.closed:
            return
        self.p.step(self.dequeue_many, feeds={self.count: np.int32(n)})
        self.size -= n if n <= self.ready() else 0

    def do_dequeue_up_to(self):
        n = int(self.p.rng.integers(0, 4))
        if n > self.ready() and (not self.closed or self.kind == 'PriorityQueue'):
            return  # TensorFlow's closed priority queue loses what it has when asked for more
        self.p.step(self.dequeue_up_to, feeds={self.count: np.int32(n)})
        self.size -= min(n, self.ready())

    def do_size(self):
        self.p.step(self.sizes, self.is_closed)

    def do_close(self):
        if self.p.rng.integers(3) == 0:
            self.p.step(self.close)
            self.closed = True

    def do_bad(self):
        if self.closed:
            return
        feeds = self.feeds()
        last = self.inputs[-1]
        feeds[last] = np.zeros((7, 7, 7), feeds[last].dtype) if feeds[last].dtype != object else np.full((7, 7, 7), b'', object)
        self.p.step(self.enqueue, feeds=feeds)
        self.p.step(self.dequeue_many, feeds={self.count: np.int32(-1)})

    def play(self, turns):
        actions = [self.do_enqueue, self.do_enqueue, self.do_enqueue_many, self.do_dequeue, self.do_dequeue_many,
                   self.do_dequeue_up_to, self.do_size, self.do_close, self.do_bad]
        for _ in range(turns):
            actions[int(self.p.rng.integers(len(actions)))]()
        self.p.step(self.sizes, self.is_closed)


def play(p, kind):
    Queue(p, kind, True).play(int(p.rng.integers(6, 16)))


@program(40)
def fifo(p):
    play(p, 'FIFOQueue')


@program(40)
def padding_fifo(p):
    play(p, 'PaddingFIFOQueue')


@program(40)
def priority(p):
    play(p, 'PriorityQueue')


@program(40)
def random_shuffle(p):
    play(p, 'RandomShuffleQueue')


@program(30)
def queues_by_reference(p):
    kind = p.pick('FIFOQueue', 'PaddingFIFOQueue')
    Queue(p, kind, False).play(int(p.rng.integers(4, 10)))


@program(30)
def padded(p):
    """Elements of different sizes: dequeued together they are padded with zeros."""
    types = [p.pick(*TYPES) for _ in range(2)]
    tf_types = [tf.string if t is object else tf.as_dtype(t) for t in types]
    q = raw.PaddingFIFOQueueV2(component_types=tf_types, shapes=[[None], [2, None]], capacity=10)
    inputs = [tf.compat.v1.placeholder(t, None) for t in tf_types]
    put = raw.QueueEnqueueV2(handle=q, components=inputs)
    n = int(p.rng.integers(1, 5))
    for _ in range(n):
        p.step(put, feeds={inputs[0]: draw(p.rng, types[0], (int(p.rng.integers(0, 5)),)),
                           inputs[1]: draw(p.rng, types[1], (2, int(p.rng.integers(0, 4))))})
    p.step(put, feeds={inputs[0]: draw(p.rng, types[0], (1, 1)), inputs[1]: draw(p.rng, types[1], (2, 1))})
    take = p.pick('QueueDequeueManyV2', 'QueueDequeueUpToV2')
    p.step(getattr(raw, take)(handle=q, n=n, component_types=tf_types))
    p.step(raw.QueueSizeV2(handle=q))


@program(30)
def queue_within_a_step(p):
    """One step in which a dequeue waits for its enqueue."""
    q = raw.FIFOQueueV2(component_types=[tf.float32], capacity=int(p.rng.integers(1, 3)), shapes=[[2]])
    n = int(p.rng.integers(1, 6))
    values = [raw.QueueEnqueueV2(handle=q, components=[tf.fill([2], float(p.rng.integers(9)))]) for _ in range(n)]
    got = raw.QueueDequeueManyV2(handle=q, n=n, component_types=[tf.float32])
    p.step(tf.reduce_sum(got[0]), *values)
    p.step(raw.QueueSizeV2(handle=q))


@program(30)
def random_shuffle_sorted(p):
    n, left = int(p.rng.integers(1, 9)), int(p.rng.integers(0, 3))
    q = raw.RandomShuffleQueueV2(component_types=[tf.int32], capacity=20, shapes=[[]], min_after_dequeue=left)
    p.step(raw.QueueEnqueueManyV2(handle=q, components=[tf.constant(p.rng.integers(0, 99, n + left), tf.int32)]))
    p.step(raw.QueueCloseV2(handle=q))
    got = raw.QueueDequeueUpToV2(handle=q, n=n + left + 3, component_types=[tf.int32])
    p.step(raw.TopKV2(input=got[0], k=n + left)[0])
    p.step(raw.QueueSizeV2(handle=q))


@program(40)
def barrier(p):
    rng = p.rng
    types = [p.pick(np.float32, np.int32, np.int64) for _ in range(int(rng.integers(1, 3)))]
    shapes = [list(map(int, rng.integers(1, 3, rng.integers(0, 2)))) for _ in types]
    b = raw.Barrier(component_types=[tf.as_dtype(t) for t in types], shapes=shapes)
    keys = tf.compat.v1.placeholder(tf.string, None)
    values = [tf.compat.v1.placeholder(t, None) for t in types]
    inserts = [raw.BarrierInsertMany(handle=b, keys=keys, values=v, component_index=i) for i, v in enumerate(values)]
    count = tf.compat.v1.placeholder(tf.int32, [])
    allow_small = bool(rng.integers(2))
    take = raw.BarrierTakeMany(handle=b, num_elements=count, component_types=[tf.as_dtype(t) for t in types],
                               allow_small_batch=allow_small)
    sizes = [raw.BarrierReadySize(handle=b), raw.BarrierIncompleteSize(handle=b)]
    names = [f'key{i}'.encode() for i in rng.permutation(6)[:int(rng.integers(1, 6))]]
    for i in rng.permutation(len(types)):  # one key at a time: those inserted together come out in a heap's order
        for key in rng.permutation(names):
            if rng.integers(5):
                p.step(inserts[i], feeds={keys: np.array([key], object), values[i]: draw(rng, types[i], (1, *shapes[i]))})
        p.step(sizes)
    p.step(inserts[0], feeds={keys: np.array([names[0]], object), values[0]: draw(rng, types[0], (1, *shapes[0]))})
    if len(types) == 1:  # else TensorFlow looks at shapes only when all components are there
        p.step(inserts[0], feeds={keys: np.array([b'key8'], object), values[0]: np.zeros((1, 5, 5, 5), types[0])})
    p.step(raw.BarrierClose(handle=b, cancel_pending_enqueues=bool(rng.integers(2))))
    p.step(inserts[0], feeds={keys: np.array([b'new'], object), values[0]: draw(rng, types[0], (1, *shapes[0]))})
    for number in (rng.integers(1, 4), 9):  # it waits where close leaves elements incomplete
        p.step(take, feeds={count: np.int32(number)}, timeout_ms=2000)
    p.step(sizes)


# ---- accumulators ----

def dense_accumulator(p, prefix):
    rng = p.rng
    dtype = p.pick(np.float32, np.float64, np.float16)
    shape = list(map(int, rng.integers(1, 4, rng.integers(0, 3))))
    known = shape if rng.integers(2) else None
    a = getattr(raw, prefix + 'ConditionalAccumulator')(dtype=dtype, shape=known, reduction_type=p.pick('MEAN', 'SUM'))
    prefix += 'Accumulator'
    step, gradient = tf.compat.v1.placeholder(tf.int64, []), tf.compat.v1.placeholder(dtype, None)
    needed = tf.compat.v1.placeholder(tf.int32, [])
    apply = getattr(raw, prefix + 'ApplyGradient')(handle=a, local_step=step, gradient=gradient)
    take = getattr(raw, prefix + 'TakeGradient')(handle=a, num_required=needed, dtype=dtype)
    size = getattr(raw, prefix + 'NumAccumulated')(handle=a)
    new_step = getattr(raw, prefix + 'SetGlobalStep')(handle=a, new_global_step=step)
    held = now = 0
    for _ in range(int(rng.integers(4, 12))):
        action = int(rng.integers(5))
        if action < 2:
            local = int(rng.integers(now - 1 if now else 0, now + 2))
            p.step(apply, feeds={step: np.int64(local), gradient: np.asarray(rng.standard_normal(shape)).astype(dtype)})
            held += local >= now
        elif action == 2:
            wanted = int(rng.integers(1, 4))
            run = p.blocks if wanted > held else p.step
            run(take, feeds={needed: np.int32(wanted)})
            if wanted <= held:
                held, now = 0, now + 1
        elif action == 3:
            target = int(rng.integers(now, now + 3))
            p.step(new_step, feeds={step: np.int64(target)})
            now = max(now, target)
        else:
            p.step(size)
    for wanted in (0, -1):
        p.step(take, feeds={needed: np.int32(wanted)})
    if known is not None:
        p.step(apply, feeds={step: np.int64(now), gradient: np.zeros((5, 5, 5, 5), dtype)})
    p.step(size)


@program(40)
def accumulator(p):
    dense_accumulator(p, '')


@program(40)
def resource_accumulator(p):
    dense_accumulator(p, 'Resource')


@program(80)
def sparse_accumulator(p):
    rng = p.rng
    dtype = p.pick(np.float32, np.float64)
    shape = [5] + list(map(int, rng.integers(1, 3, rng.integers(0, 2))))
    known = shape[:int(rng.integers(len(shape) + 1))]  # the first dimensions suffice
    a = raw.SparseConditionalAccumulator(dtype=dtype, shape=p.pick(shape, known, None),
                                         reduction_type=p.pick('MEAN', 'SUM'))
    step, needed = tf.compat.v1.placeholder(tf.int64, []), tf.compat.v1.placeholder(tf.int32, [])
    rows, values = tf.compat.v1.placeholder(tf.int64, None), tf.compat.v1.placeholder(dtype, None)
    apply = raw.SparseAccumulatorApplyGradient(handle=a, local_step=step, gradient_indices=rows, gradient_values=values,
                                               gradient_shape=tf.constant(shape, tf.int64),
                                               has_known_shape=True)
    take = raw.SparseAccumulatorTakeGradient(handle=a, num_required=needed, dtype=dtype)
    held = now = 0
    for _ in range(int(rng.integers(3, 10))):
        if rng.integers(3):
            chosen = np.sort(rng.permutation(5)[:int(rng.integers(1, 5))]).astype(np.int64)
            if rng.integers(3) == 0:  # as lookups give them
                chosen = rng.integers(0, 5, len(chosen))
            local = int(rng.integers(max(0, now - 1), now + 2))
            p.step(apply, feeds={step: np.int64(local), rows: chosen,
                                 values: rng.standard_normal((len(chosen), *shape[1:])).astype(dtype)})
            held += local >= now
        elif held:  # TensorFlow's does not wake up at a deadline
            p.step(take, feeds={needed: np.int32(rng.integers(1, held + 1))})
            held, now = 0, now + 1
        p.step(raw.AccumulatorNumAccumulated(handle=a))
    p.step(apply, feeds={step: np.int64(now), rows: np.array([0, 1], np.int64), values: np.zeros((1, *shape[1:]), dtype)})
    p.step(apply, feeds={step: np.int64(now), rows: np.array([0], np.int64), values: np.zeros((1, 7, 7), dtype)})
    p.step(raw.AccumulatorSetGlobalStep(handle=a, new_global_step=np.int64(now + 1)))


@program(10)
def names_of_the_runtime(p):
    """Those that begin with an underscore are nobody else's, but for variables."""
    name = p.pick('_x', '_', 'x_', '__y')
    p.step(raw.QueueSizeV2(handle=raw.FIFOQueueV2(component_types=[tf.float32], shared_name=name)))
    p.step(raw.QueueSize(handle=raw.RandomShuffleQueue(component_types=[tf.float32], shared_name=name + 'r')))
    p.step(raw.LookupTableSizeV2(table_handle=raw.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name=name + 't')))
    p.step(raw.BarrierReadySize(handle=raw.Barrier(component_types=[tf.float32], shared_name=name + 'b')))
    p.step(raw.AccumulatorNumAccumulated(handle=raw.ConditionalAccumulator(dtype=tf.float32, shape=[], shared_name=name + 'a')))
    p.step(raw.ReaderNumRecordsProducedV2(reader_handle=raw.WholeFileReaderV2(shared_name=name + 'f')))
    p.step(raw.VarIsInitializedOp(resource=raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name=name + 'v')))
