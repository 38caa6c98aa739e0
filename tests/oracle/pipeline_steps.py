"""What random pipelines are made of: sources, transformations, functions. See random_pipelines.py."""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
AUTOTUNE = tf.data.AUTOTUNE


class Context:
    """The program a pipeline is drawn into, and what it uses beside datasets."""

    def __init__(self, p):
        self.p, self.rng = p, p.rng
        self.captures = []  # operations that make what functions capture
        self.has_random_size = False
        self.is_asserted = False

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low, high):
        return int(self.rng.integers(low, high))

    def variable(self):
        handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[], shared_name=f'v{len(self.captures)}')
        self.captures.append(tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(self.number(1, 9), tf.int64)))
        return handle

    def table(self):
        handle = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name=f't{len(self.captures)}')
        keys = np.arange(self.number(1, 9), dtype=np.int64)
        self.captures.append(tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=keys, values=keys * 7))
        return handle

    def initialize(self):
        for operation in self.captures:
            self.p.step(operation)


# ---- sources ----

def range_source(c):
    start, stop, step = c.number(-3, 6), c.number(-5, 16), c.pick(1, 1, 1, 2, 3, -1)
    dtype = c.pick(tf.int64, tf.int64, tf.int64, tf.int32, tf.float32, tf.float64)
    return tf.data.Dataset.range(start, stop, step, output_type=dtype)


def array(c, rows):
    shape = (rows,) + tuple(c.number(0, 4) for _ in range(c.number(0, 3)))
    kind = c.pick('int64', 'int64', 'float32', 'int32', 'string', 'bool', 'uint8')
    if kind == 'string':
        return np.array([b's%d' % c.number(0, 9) * c.number(0, 9) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    return c.rng.integers(0, 2 if kind == 'bool' else 7, shape).astype(kind)


def as_tensor(c, value):
    return c.p.hide(value) if value.dtype != object and not c.number(0, 4) else tf.constant(value)


def slices_source(c):
    rows = c.number(0, 12)
    count = c.pick(1, 1, 2, 3)
    c.captures += [] if not c.p.fed else []
    values = tuple(tf.constant(array(c, rows)) for _ in range(count))
    return tf.data.Dataset.from_tensor_slices(values[0] if count == 1 else values)


def tensors_source(c):
    return tf.data.Dataset.from_tensors(tuple(tf.constant(array(c, c.number(0, 4))) for _ in range(c.pick(1, 2))))


def bad_slices_source(c):
    shapes = [c.number(1, 4), c.number(1, 4)]
    raw = tf.raw_ops.TensorSliceDataset(components=[c.p.hide(np.zeros(s, np.int64)) for s in shapes],
                                        output_shapes=[tf.TensorShape(None)] * 2)
    c.captures.append(tf.no_op())  # a placeholder is captured: not for one-shot iterators
    spec = (tf.TensorSpec(None, tf.int64), tf.TensorSpec(None, tf.int64))
    return tf.data.experimental.from_variant(raw, spec)


SOURCES = [range_source] * 5 + [slices_source] * 4 + [tensors_source, bad_slices_source]


def draw_source(c, words):
    source = c.pick(*SOURCES)
    dataset = source(c)
    words.append(f'{source.__name__[:-7]}{[str(s.dtype.name) + str(s.shape) for s in specs(dataset)]}')
    return dataset


# ---- functions on elements ----

def specs(dataset):
    return tf.nest.flatten(dataset.element_spec)


def on_numbers(function):
    """|function| on every numeric component; strings and booleans stay."""
    def call(*xs):
        flat = [function(x) if x.dtype.is_floating or x.dtype.is_integer else x for x in tf.nest.flatten(xs)]
        return flat[0] if len(flat) == 1 else tuple(flat)
    return call


def first_int(xs):
    """A scalar int64 that depends on the element."""
    x = tf.nest.flatten(xs)[0]
    if x.dtype == tf.string:
        return tf.cast(tf.size(x), tf.int64) + 1
    total = tf.reduce_sum(tf.cast(x, tf.int64))
    return tf.where(total < 0, -total, total)


def draw_function(c):
    """(name, function) that makes another element of one."""
    k = c.number(1, 5)
    name = c.pick('add', 'cast', 'ragged', 'divide', 'pair', 'variable', 'table', 'branch', 'text', 'assert', 'outer', 'loop')
    if name == 'add':
        return name, on_numbers(lambda x: x + tf.cast(k, x.dtype))
    if name == 'cast':
        to = c.pick(tf.int32, tf.float32, tf.float64, tf.int64)
        return name, on_numbers(lambda x: tf.cast(x, to))
    if name == 'ragged':
        return name, lambda *xs: tf.range(first_int(xs) % (k + 1))
    if name == 'divide':
        return name, lambda *xs: (tf.constant(12, tf.int64) // (first_int(xs) % (k + 2)), first_int(xs))
    if name == 'pair':
        return name, lambda *xs: (tf.nest.flatten(xs)[0], first_int(xs))
    if name == 'variable':
        handle = c.variable()
        return name, lambda *xs: first_int(xs) * tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)
    if name == 'table':
        handle = c.table()
        return name, lambda *xs: tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=first_int(xs),
                                                              default_value=tf.constant(-1, tf.int64))
    if name == 'branch':
        return name, lambda *xs: tf.cond(first_int(xs) % 2 == 0, lambda: first_int(xs), lambda: -first_int(xs))
    if name == 'text':
        return name, lambda *xs: tf.strings.as_string(first_int(xs))
    if name == 'assert':
        def check(*xs):
            with tf.control_dependencies([tf1.assert_less(first_int(xs), tf.constant(k * 3, tf.int64))]):
                return tf.identity(first_int(xs))
        return name, check
    if name == 'loop':
        return name, lambda *xs: tf.while_loop(lambda i, s: i < first_int(xs) % 5, lambda i, s: (i + 1, s + i),
                                               [tf.constant(0, tf.int64), tf.constant(0, tf.int64)])[1]
    return name, on_numbers(lambda x: tf.expand_dims(x, 0) if x.shape.rank is not None else x)


# ---- transformations ----

def take(c, d):
    return d.take(c.number(-1, 9))


def skip(c, d):
    return d.skip(c.number(-1, 6))


def repeat(c, d):
    return d.repeat(c.pick(None, 0, 1, 2, 3))


def shard(c, d):
    n = c.number(1, 5)
    return d.shard(n, c.number(0, n))


def batch(c, d):
    return d.batch(c.number(1, 5), drop_remainder=bool(c.number(0, 2)),
                   num_parallel_calls=c.pick(None, None, 2), deterministic=None)


def padded_batch(c, d):
    if any(s.shape.rank is None for s in specs(d)):
        return d.batch(2)
    shapes = [[None if c.number(0, 3) else c.number(1, 5) for _ in range(s.shape.rank)] for s in specs(d)]
    values = [tf.constant(b'-') if s.dtype == tf.string else tf.constant(True) if s.dtype == tf.bool else
              tf.cast(c.number(0, 9), s.dtype) for s in specs(d)]
    pack = lambda xs: tf.nest.pack_sequence_as(d.element_spec, xs)
    shapes = [tf.TensorShape(s) for s in shapes]
    return d.padded_batch(c.number(1, 4), pack(shapes), pack(values), drop_remainder=bool(c.number(0, 2)))


def zip_with(c, d):
    other = d if not c.number(0, 3) else c.pick(*SOURCES[:-1])(c)
    return tf.data.Dataset.zip((d, other) if c.number(0, 2) else (other, d))


def concatenate(c, d):
    return d.concatenate(d.take(c.number(0, 4)))


def map_function(c, d):
    name, function = draw_function(c)
    map_function.note = name
    return d.map(function)


def parallel_map(c, d):
    name, function = draw_function(c)
    parallel_map.note = name
    return d.map(function, num_parallel_calls=c.pick(1, 2, 4, AUTOTUNE), deterministic=True)


def filter_elements(c, d):
    k = c.number(1, 4)
    return d.filter(lambda *xs: first_int(xs) % (k + 1) != 0)


def take_while(c, d):
    k = c.number(1, 30)
    return d.take_while(lambda *xs: first_int(xs) < k)


def inner(c, kind):
    """A function that makes a dataset of an element."""
    if kind == 'range':
        return lambda *xs: tf.data.Dataset.range(first_int(xs) % 4)
    if kind == 'repeat':
        return lambda *xs: tf.data.Dataset.from_tensors(first_int(xs)).repeat(first_int(xs) % 3)
    return lambda *xs: tf.data.Dataset.range(first_int(xs) % 5).map(lambda y: y * first_int(xs)).batch(2)


def flat_map(c, d):
    return d.flat_map(inner(c, c.pick('range', 'repeat', 'deep')))


def interleave(c, d):
    return d.interleave(inner(c, c.pick('range', 'repeat', 'deep')), cycle_length=c.number(1, 5), block_length=c.number(1, 4),
                        num_parallel_calls=c.pick(None, None, 1, 3), deterministic=True)


def prefetch(c, d):
    return d.prefetch(c.pick(0, 1, 3, AUTOTUNE))


def cache(c, d):
    return d.cache().repeat(c.pick(1, 2))


def scan(c, d):
    return d.scan(tf.constant(c.number(0, 5), tf.int64), lambda s, *xs: (s + first_int(xs), (s, first_int(xs))))


def unbatch(c, d):
    if any(s.shape.rank == 0 for s in specs(d)):
        d = d.batch(c.number(1, 4))
    return d.unbatch()


def window(c, d):
    flat = lambda *ws: tf.data.Dataset.zip(tuple(w.batch(3) for w in tf.nest.flatten(ws)))
    return d.window(c.number(1, 5), shift=c.pick(None, 1, 2, 3), stride=c.number(1, 3),
                    drop_remainder=bool(c.number(0, 2))).flat_map(flat)


def unique(c, d):
    if len(specs(d)) != 1 or specs(d)[0].dtype not in (tf.int64, tf.int32, tf.string):
        d = d.map(lambda *xs: first_int(xs) % 4)
    return d.unique()


def ignore_errors(c, d):
    return d if c.is_asserted else d.ignore_errors()  # TensorFlow would ask again for ever


def assert_cardinality(c, d):
    c.is_asserted = True
    return d.apply(tf.data.experimental.assert_cardinality(c.pick(0, 3, 5, 10, tf.data.INFINITE_CARDINALITY)))


def options(c, d):
    chosen = tf.data.Options()
    chosen.deterministic = True
    return d.with_options(chosen)


def reduce_whole(c, d):
    total = d.take(50).reduce(tf.constant(0, tf.int64), lambda s, *xs: s + first_int(xs))
    c.captures.append(tf.no_op())  # a tensor of the graph: not for one-shot iterators
    return tf.data.Dataset.from_tensors(total)


def shuffle(c, d):
    return d.shuffle(c.number(1, 9), seed=c.number(1, 99), reshuffle_each_iteration=c.pick(None, True, False)).repeat(c.pick(1, 1, 2, 3))


def choose(c, d):
    selector = tf.data.Dataset.range(c.number(0, 12)).map(lambda x: x * x % 2)
    return tf.data.Dataset.choose_from_datasets([d, d.skip(c.number(0, 3))], selector, stop_on_empty_dataset=bool(c.number(0, 2)))


def zip_random(c, d):
    return tf.data.Dataset.zip((d, tf.data.Dataset.random(seed=c.number(1, 99))))


def sample(c, d):
    variant = tf.raw_ops.SamplingDataset(input_dataset=d._variant_tensor, rate=0.6, seed=c.number(1, 9), seed2=c.number(1, 9),
                                         output_types=[s.dtype for s in specs(d)], output_shapes=[s.shape for s in specs(d)])
    c.captures.append(tf.no_op())  # made of a variant of the graph: not for one-shot iterators
    return tf.data.experimental.from_variant(variant, d.element_spec)


STEPS = [shuffle, shuffle, choose, zip_random, sample, take, skip, repeat, shard, batch, padded_batch, zip_with, concatenate, map_function, map_function, map_function,
         parallel_map, filter_elements, take_while, flat_map, interleave, prefetch, cache, scan, unbatch, window, unique,
         ignore_errors, assert_cardinality, options, reduce_whole]


def draw_step(c, dataset, words):
    step = c.pick(*STEPS)
    step.note = ''
    try:
        made = step(c, dataset)
    except (ValueError, TypeError, tf.errors.InvalidArgumentError):  # the client itself refuses
        return dataset
    words.append(step.__name__ + (f'({step.note})' if step.note else ''))
    return made
