"""Datasets and iterators: what random pipelines do not draw. Files, handles, state, arguments that are refused, names in messages."""
import gzip
import zlib

import numpy as np
import tensorflow as tf
from programs import program
from programs_io import record_file, text_file

raw, tf1 = tf.raw_ops, tf.compat.v1
Dataset = tf.data.Dataset


def walk(p, dataset, count=12, **options):
    """Steps that initialise an iterator and ask for |count| elements; |options| are those of the last."""
    iterator = tf1.data.make_initializable_iterator(dataset)
    p.step(iterator.initializer)
    element = tf.nest.flatten(iterator.get_next())
    for k in range(count):
        p.step(*element, **(options if k == count - 1 else {}))
    return iterator


def variant(tensor, *specs):
    return tf.data.experimental.from_variant(tensor, specs[0] if len(specs) == 1 else tuple(specs))


INT = tf.TensorSpec([], tf.int64)


# ---- iterators ----

@program(6)
def one_shot(p):
    n = int(p.rng.integers(1, 5))
    iterator = tf1.data.make_one_shot_iterator(Dataset.range(n).map(lambda x: x * x))
    elements = [iterator.get_next() for _ in range(2)]
    for _ in range(n + 2):
        p.step(p.pick(*elements))  # a signature of its own goes on where the other was


@program(4)
def reinitializable(p):
    iterator = tf1.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    first, second = iterator.make_initializer(Dataset.range(3)), iterator.make_initializer(Dataset.range(10, 12))
    element = iterator.get_next()
    p.step(element)
    for init in (first, second, first):
        p.step(init)
        for _ in range(int(p.rng.integers(1, 5))):
            p.step(element)


@program(3)
def wrong_components(p):
    iterator = tf1.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    for dataset in (Dataset.from_tensors(np.float32(1)), Dataset.from_tensors(np.int64([1, 2])), Dataset.zip((Dataset.range(2),) * 2)):
        p.step(raw.MakeIterator(dataset=dataset._variant_tensor, iterator=iterator._iterator_resource))


@program(3)
def string_handles(p):
    a, b = Dataset.range(3), Dataset.range(10, 30, 10)
    one, two = tf1.data.make_initializable_iterator(a, shared_name='a'), tf1.data.make_initializable_iterator(b, shared_name='b')
    for iterator in (one, two):
        p.step(iterator.initializer)
    for iterator in (one, two, one, two, two):
        again = raw.IteratorFromStringHandleV2(string_handle=iterator.string_handle(), output_types=[tf.int64], output_shapes=[[]])
        p.step(raw.IteratorGetNext(iterator=again, output_types=[tf.int64], output_shapes=[[]]))
    p.step(raw.IteratorFromStringHandle(string_handle=p.hide(b'nonsense')))
    bad = raw.IteratorFromStringHandle(string_handle=one.string_handle(), output_types=[tf.float32], output_shapes=[[]])
    p.step(bad.op)


@program(4)
def anonymous(p):
    make = p.pick(lambda **a: raw.AnonymousIteratorV3(**a), lambda **a: raw.AnonymousIteratorV2(**a).handle,
                  lambda **a: raw.AnonymousIterator(**a))
    handle = make(output_types=[tf.int64], output_shapes=[[]])
    made = raw.MakeIterator(dataset=Dataset.range(5, 9)._variant_tensor, iterator=handle)
    with tf.control_dependencies([made]):
        first = raw.IteratorGetNext(iterator=handle, output_types=[tf.int64], output_shapes=[[]])
    with tf.control_dependencies(first):
        p.step(first, raw.IteratorGetNextSync(iterator=handle, output_types=[tf.int64], output_shapes=[[]]))


@program(3)
def as_optional(p):
    iterator = tf1.data.make_initializable_iterator(Dataset.range(2))
    p.step(iterator.initializer)
    optional = raw.IteratorGetNextAsOptional(iterator=iterator._iterator_resource, output_types=[tf.int64], output_shapes=[[]])
    has = raw.OptionalHasValue(optional=optional)
    for _ in range(3):
        p.step(has)


@program(2)
def declared_otherwise(p):
    iterator = tf1.data.make_initializable_iterator(Dataset.range(3).map(lambda x: tf.ones([x])))
    p.step(iterator.initializer)
    handle = iterator._iterator_resource
    p.step(raw.IteratorGetNext(iterator=handle, output_types=[tf.float32], output_shapes=[[None]]))
    p.step(raw.IteratorGetNext(iterator=handle, output_types=[tf.float32], output_shapes=[[7]]))
    p.step(raw.IteratorGetNext(iterator=handle, output_types=[tf.int32], output_shapes=[[None]]))


@program(2)
def single_element(p):
    for n in (0, 1, 2):
        p.step(raw.DatasetToSingleElement(dataset=Dataset.range(n)._variant_tensor, output_types=[tf.int64], output_shapes=[[]]))


@program(2)
def waits(p):
    queue = raw.FIFOQueueV2(component_types=[tf.int64])
    take = lambda x: x + raw.QueueDequeueV2(handle=queue, component_types=[tf.int64])[0]
    iterator = tf1.data.make_initializable_iterator(Dataset.range(3).map(take))
    element = iterator.get_next()
    p.step(iterator.initializer)
    p.step(raw.QueueEnqueueV2(handle=queue, components=[tf.constant(7, tf.int64)]))
    p.step(element)
    p.blocks(element)


# ---- arguments that are refused ----

@program(40)
def refused(p):
    d, n = Dataset.range(6)._variant_tensor, lambda low, high: p.hide(np.int64(p.rng.integers(low, high)))
    spec = {'output_types': [tf.int64], 'output_shapes': [[]]}
    flag = p.hide(np.bool_(p.rng.integers(2)))
    made = p.pick(
        lambda: raw.BatchDatasetV2(input_dataset=d, batch_size=n(-1, 3), drop_remainder=flag, output_types=[tf.int64],
                                   output_shapes=[[None]]),
        lambda: raw.ShardDataset(input_dataset=d, num_shards=n(-1, 3), index=n(-1, 3), **spec),
        lambda: raw.ShardDataset(input_dataset=d, num_shards=p.hide(np.int64(8)), index=n(0, 7), require_non_empty=True, **spec),
        lambda: raw.WindowDataset(input_dataset=d, size=n(0, 3), shift=n(0, 3), stride=n(0, 3), drop_remainder=flag,
                                  output_types=[tf.variant], output_shapes=[[]]),
        lambda: raw.PrefetchDataset(input_dataset=d, buffer_size=n(-3, 2), **spec),
        lambda: raw.ShuffleDataset(input_dataset=d, buffer_size=n(-2, 3), seed=p.hide(np.int64(1)), seed2=p.hide(np.int64(2)), **spec),
        lambda: raw.RangeDataset(start=n(0, 3), stop=n(0, 9), step=n(-1, 2), **spec),
        lambda: raw.TakeDataset(input_dataset=d, count=p.hide(np.int64([1, 2])), **spec),
        lambda: raw.PaddedBatchDatasetV2(input_dataset=d, batch_size=n(0, 3), padded_shapes=[p.hide(np.int64(p.pick([], [2])))],
                                         padding_values=[p.hide(np.int64(p.pick(0, [1, 2])))], drop_remainder=flag,
                                         output_shapes=[[None]]),
        lambda: raw.MaxIntraOpParallelismDataset(input_dataset=d, max_intra_op_parallelism=n(-1, 2), **spec),
        lambda: raw.PrivateThreadPoolDataset(input_dataset=d, num_threads=n(-1, 2), **spec),
        lambda: raw.ConcatenateDataset(input_dataset=d, another_dataset=Dataset.from_tensors(1.0)._variant_tensor, **spec),
        lambda: raw.DirectedInterleaveDataset(selector_input_dataset=Dataset.from_tensors(p.pick(np.int64(1), np.float32(1)))._variant_tensor,
                                              data_input_datasets=[d], **spec),
    )()
    p.step(raw.DatasetCardinality(input_dataset=made))


# ---- messages ----

@program(2)
def messages(p):
    walk(p, Dataset.range(2), 3, says='End of sequence')
    iterator = tf1.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    p.step(iterator.get_next(), says='GetNext() failed because the iterator has not been initialized.')
    walk(p, Dataset.from_tensor_slices([[1, 2, 3]]).map(lambda x: tf.range(x[0])).concatenate(
        Dataset.from_tensors(tf.range(3))).batch(2), 1, says='Cannot batch tensors with different shapes in component 0.')
    walk(p, Dataset.range(1).map(lambda x: 1 // x), 1, says='Error in user-defined function passed to MapDataset')


# ---- state ----

@program(6)
def shared_seeds(p):
    seeds = [p.hide(np.int64(p.rng.integers(1, 99))) for _ in range(2)]
    generator = raw.AnonymousSeedGenerator(seed=seeds[0], seed2=seeds[1], reshuffle=p.hide(np.bool_(p.rng.integers(2)))).handle
    spec = {'output_types': [tf.int64], 'output_shapes': [[]]}
    size = tf.constant(4, tf.int64)
    d = p.pick(lambda x: raw.ShuffleDatasetV2(input_dataset=x, buffer_size=size, seed_generator=generator, **spec),
               lambda x: raw.ShuffleDatasetV3(input_dataset=x, buffer_size=size, seed=seeds[0], seed2=seeds[1],
                                              seed_generator=generator, **spec),
               lambda x: raw.ShuffleAndRepeatDatasetV2(input_dataset=x, buffer_size=size, seed=seeds[0], seed2=seeds[1],
                                                       count=tf.constant(2, tf.int64), seed_generator=generator, **spec),
               lambda x: raw.ShuffleAndRepeatDataset(input_dataset=x, buffer_size=size, seed=seeds[0], seed2=seeds[1],
                                                     count=tf.constant(3, tf.int64), **spec),
               lambda x: raw.RandomDatasetV2(seed=seeds[0], seed2=seeds[1], seed_generator=generator,
                                             rerandomize_each_iteration=True, **spec))(Dataset.range(7)._variant_tensor)
    walk(p, variant(d, INT).take(14).repeat(2), 30)


@program(3)
def memory_cache(p):
    handle = raw.AnonymousMemoryCache().handle
    spec = {'output_types': [tf.int64], 'output_shapes': [[]]}
    cached = raw.CacheDatasetV2(input_dataset=Dataset.range(3)._variant_tensor, filename='', cache=handle, **spec)
    walk(p, variant(cached, INT).repeat(2), 8)


@program(4)
def generated(p):
    limit = int(p.rng.integers(1, 6))

    @tf.function(autograph=False)
    def begin(x):
        return x, x + 1

    @tf.function(autograph=False)
    def following(a, b):
        with tf.control_dependencies([tf1.assert_equal(a + 1, b)]):
            return tf.where(tf.random.stateless_uniform([], [1, 2]) < 2, a, b)

    @tf.function(autograph=False)
    def end(a, b):
        return a + b
    args = [begin.get_concrete_function(tf.TensorSpec([], tf.int64)), following.get_concrete_function(INT, INT),
            end.get_concrete_function(INT, INT)]
    for function in args:
        function.add_to_graph(p.graph)
    made = raw.GeneratorDataset(init_func_other_args=[tf.constant(limit, tf.int64)], next_func_other_args=[],
                                finalize_func_other_args=[], init_func=args[0], next_func=args[1], finalize_func=args[2],
                                output_types=[tf.int64], output_shapes=[[]])
    walk(p, variant(made, INT).take(3), 5)


@program(2)
def wrapped(p):
    inside = raw.WrapDatasetVariant(input_handle=Dataset.range(3)._variant_tensor)
    walk(p, variant(raw.UnwrapDatasetVariant(input_handle=inside), INT), 5)


@program(3)
def variable_between(p):
    v = raw.VarHandleOp(dtype=tf.int64, shape=[])
    p.step(raw.AssignVariableOp(resource=v, value=tf.constant(1, tf.int64)))
    iterator = tf1.data.make_initializable_iterator(Dataset.range(9).map(lambda x: x * raw.ReadVariableOp(resource=v, dtype=tf.int64)))
    element = iterator.get_next()
    p.step(iterator.initializer)
    for k in range(4):
        p.step(raw.AssignVariableOp(resource=v, value=tf.constant(k * 10, tf.int64)))
        walk(p, Dataset.range(2).map(lambda x: x + raw.ReadVariableOp(resource=v, dtype=tf.int64)), 3)
    p.step(element)


# ---- files ----

def pack(p, data):
    """(compression, bytes)."""
    name = p.pick('', '', 'ZLIB', 'GZIP')
    return name, {'': lambda x: x, 'ZLIB': zlib.compress, 'GZIP': lambda x: gzip.compress(x, mtime=0)}[name](data)


def names(p, *files):
    return [p.write(f'f{i}', data) for i, data in enumerate(files)]


@program(20)
def lines(p):
    kind, one = pack(p, text_file(p.rng))
    other = one if kind else text_file(p.rng)
    paths = names(p, one, other)
    if p.rng.integers(4) == 0:
        paths.append('missing')
    walk(p, tf.data.TextLineDataset(paths, kind or None, buffer_size=p.pick(None, 4)), 14)


@program(20)
def records(p):
    kind, one = pack(p, record_file(p.rng))
    if p.rng.integers(4) == 0 and not kind and len(one) > 8:
        at = int(p.rng.integers(len(one)))
        one = one[:at] + bytes([one[at] ^ 1]) + one[at + 1:]
    other = one if kind else record_file(p.rng)
    paths = names(p, one, other) + (['missing'] if p.rng.integers(4) == 0 else [])
    walk(p, tf.data.TFRecordDataset(paths, kind or None), 16)


@program(20)
def fixed(p):
    header, size, footer = (int(x) for x in (p.rng.integers(0, 3), p.rng.integers(1, 4), p.rng.integers(0, 3)))
    kind, data = pack(p, bytes(p.rng.integers(0, 256, header + footer + size * int(p.rng.integers(0, 5))).astype(np.uint8)) +
                      (b'!' if p.rng.integers(5) == 0 else b''))
    walk(p, tf.data.FixedLengthRecordDataset(names(p, data, data), size, header, footer, compression_type=kind or None), 12)


@program(6)
def matching(p):
    for name in ('a1', 'a2', 'b1', 'c'):
        p.write(name, b'')
    pattern = p.pick('a*', '?1', 'zzz', ['b*', 'a?'])
    made = raw.MatchingFilesDataset(patterns=pattern)
    walk(p, variant(made, tf.TensorSpec([], tf.string)), 5)


# ---- groups and batches ----

@program(8)
def by_window(p):
    n, size = int(p.rng.integers(1, 4)), int(p.rng.integers(0, 4))
    d = Dataset.range(int(p.rng.integers(0, 14))).map(lambda x: x * 7 % 11)
    walk(p, d.group_by_window(lambda x: x % n, lambda key, group: group.map(lambda x: (key, x)).batch(3),
                              window_size_func=lambda key: key % 2 + size), 12)


@program(4)
def by_reducer(p):
    reducer = tf.data.experimental.Reducer(lambda key: (key, tf.constant(0, tf.int64)), lambda s, x: (s[0], s[1] + x),
                                           lambda key, total: (key, total))
    d = Dataset.range(int(p.rng.integers(0, 9))).map(lambda x: x * 5 % 7 - 3)
    walk(p, d.apply(tf.data.experimental.group_by_reducer(lambda x: x % 3, reducer)), 5)


@program(8)
def map_and_batch(p):
    k = int(p.rng.integers(2, 9))
    d = Dataset.range(10).apply(tf.data.experimental.map_and_batch(
        lambda x: 100 // (x % k - 1), int(p.rng.integers(1, 4)), num_parallel_calls=int(p.rng.integers(1, 4)),
        drop_remainder=bool(p.rng.integers(2))))
    walk(p, d, 8)


@program(8)
def rebatch(p):
    sizes = [int(x) for x in p.rng.integers(1, 5, p.rng.integers(1, 4))]
    walk(p, Dataset.range(int(p.rng.integers(0, 12))).batch(3).rebatch(sizes, drop_remainder=bool(p.rng.integers(2))), 9)


@program(6)
def legacy_interleave(p):
    make = tf.data.experimental.parallel_interleave(lambda x: Dataset.range(x % 4).map(lambda y: y + 10 * x),
                                                    cycle_length=int(p.rng.integers(1, 4)), block_length=int(p.rng.integers(1, 3)))
    walk(p, Dataset.range(6).apply(make), 16)
