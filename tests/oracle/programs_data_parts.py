"""Single elements of datasets, their options, the sizes of their batches."""
import numpy as np
import tensorflow as tf
from programs import program
from programs_data import variant

raw = tf.raw_ops
Dataset = tf.data.Dataset
check_count = tf.data.experimental.assert_cardinality


def elements(p, d, indices, **options):
    index = tf.compat.v1.placeholder(tf.int64, None)
    specs = tf.nest.flatten(d.element_spec)
    made = raw.GetElementAtIndex(dataset=d._variant_tensor, index=index, output_types=[s.dtype for s in specs],
                                 output_shapes=options.pop('shapes', [None] * len(specs)))
    for k in indices:
        p.step(*made, feeds={index: np.int64(k)}, **options)


def numbers(n=5):
    return Dataset.range(n)


AT = [lambda p: Dataset.range(1, 9, 3, output_type=tf.float32), lambda p: Dataset.range(5, 0, -2),
      lambda p: Dataset.from_tensor_slices(([1, 2, 3], ['a', 'b', 'c'])), lambda p: Dataset.from_tensors((1, 'a')),
      lambda p: numbers().take(p.pick(-1, 0, 2, 9)), lambda p: numbers().skip(p.pick(-1, 0, 3, 9)),
      lambda p: numbers(2).repeat(p.pick(None, 0, 1, 2)), lambda p: numbers().batch(2, drop_remainder=p.pick(True, False)),
      lambda p: numbers().batch(2, num_parallel_calls=2), lambda p: numbers().padded_batch(2), lambda p: numbers().shard(2, p.pick(0, 1)),
      lambda p: numbers(3).shard(9, 7), lambda p: Dataset.zip((numbers(), p.pick(numbers(3), numbers().repeat(), numbers().filter(lambda x: x > 2)))),
      lambda p: numbers(2).concatenate(p.pick(numbers(3), numbers().filter(lambda x: x > 2))),
      lambda p: numbers().map(lambda x: 12 // (x - 1), num_parallel_calls=p.pick(None, 2)), lambda p: numbers().filter(lambda x: x > 2),
      lambda p: numbers().flat_map(Dataset.from_tensors), lambda p: numbers().interleave(Dataset.from_tensors), lambda p: numbers().prefetch(2),
      lambda p: numbers().repeat().take(4), lambda p: numbers().repeat().skip(4), lambda p: numbers().batch(2, drop_remainder=p.pick(True, False)).unbatch(),
      lambda p: Dataset.from_tensors((np.arange(3), np.arange(6).reshape(3, 2))).unbatch(), lambda p: numbers().unique(),
      lambda p: numbers().with_options(tf.data.Options()), lambda p: numbers().apply(check_count(p.pick(3, 5, 8, -1))),
      lambda p: numbers().ignore_errors(), lambda p: numbers().take_while(lambda x: x < 3), lambda p: Dataset.random(seed=1).take(5),
      lambda p: numbers().map(lambda x: tf.range(x)).prefetch(1).batch(2), lambda p: numbers().enumerate(), lambda p: numbers(0).cache(),
      lambda p: numbers(9).map(lambda x: (x, x + 1)).skip(1).batch(2).take(3).prefetch(1)]


@program(40)
def at_index(p):
    elements(p, AT[p.number % len(AT)](p), (0, 1, 2, 5))


@program(8)
def at_index_in_order(p):
    """Of what is shuffled, and of what is kept as a walk gives it."""
    d = numbers(6).shuffle(p.pick(2, 9), seed=int(p.rng.integers(1, 99)), reshuffle_each_iteration=p.pick(True, False))
    d = p.pick(lambda: d, lambda: d.map(lambda x: x * 10), lambda: d.cache(), lambda: numbers(7).filter(lambda x: x > 3).cache())()
    elements(p, d, range(7))


@program(4)
def at_index_of_few(p):
    made = raw.ListDataset(tensors=[np.int64(1), np.int64(7)], output_types=[tf.int64], output_shapes=[[]])
    elements(p, variant(made, tf.TensorSpec([], tf.int64)), (0, 1, 2, -1))
    elements(p, p.pick(numbers(), Dataset.from_tensor_slices([[1, 2]] * 3)), (1,), shapes=[[p.pick(None, 2, 3)]])
    elements(p, numbers(), ([1],), says='index must be a scalar')
    for same in (raw.ModelDataset, raw.FinalizeDataset):
        elements(p, variant(same(input_dataset=numbers()._variant_tensor, output_types=[tf.int64], output_shapes=[[]]), numbers().element_spec), (0,))


# ---- options ----

def options(p):
    chosen = tf.data.Options()
    for where, name, values in ((chosen, 'deterministic', (True, False)), (chosen.autotune, 'enabled', (True, False)), (chosen.autotune, 'ram_budget', (0, 2 ** 40)),
                                (chosen.experimental_distribute, 'auto_shard_policy', (tf.data.experimental.AutoShardPolicy.OFF, tf.data.experimental.AutoShardPolicy.DATA)),
                                (chosen.experimental_distribute, 'num_devices', (3,)), (chosen.experimental_optimization, 'map_fusion', (True, False)),
                                (chosen.experimental_optimization, 'inject_prefetch', (True, False)), (chosen.threading, 'private_threadpool_size', (0, 4)),
                                (chosen, 'experimental_slack', (True,)), (chosen, 'experimental_symbolic_checkpoint', (True, False))):
        if not p.rng.integers(3):
            setattr(where, name, p.pick(*values))
    return chosen._to_proto().SerializeToString()


def with_options(p, d, serialized=None):
    specs = tf.nest.flatten(d.element_spec)
    made = raw.OptionsDataset(input_dataset=d._variant_tensor, serialized_options=options(p) if serialized is None else serialized,
                              output_types=[s.dtype for s in specs], output_shapes=[s.shape for s in specs])
    return variant(made, *specs)


@program(10)
def options_merged(p):
    d = with_options(p, numbers())
    p.step(raw.GetOptions(input_dataset=numbers()._variant_tensor), raw.GetOptions(input_dataset=d._variant_tensor))
    d = p.pick(lambda: with_options(p, d.map(lambda x: x).batch(2)), lambda: Dataset.zip((d, with_options(p, numbers()))),
               lambda: with_options(p, d.concatenate(with_options(p, numbers()))))()
    p.step(raw.GetOptions(input_dataset=d._variant_tensor))


@program(5)
def options_as_bytes(p):
    serialized = [b'', b'\x08\x00\x08\x05', b'\x12\x02\x08\x00\x7a\x01a\x12\x02\x10\x02', b'\x5a\x01b\x5a\x01a\x52\x00', b'\x12\x02\x08', b'\x0a\x01a'][p.number]
    p.step(raw.GetOptions(input_dataset=with_options(p, numbers(), serialized)._variant_tensor))


# ---- batches ----

SIZES = [lambda d: d.take(1), lambda d: d.skip(1), lambda d: d.repeat(2), lambda d: d.shuffle(2), lambda d: d.prefetch(1), lambda d: d.cache(),
         lambda d: d.cache('x'), lambda d: d.filter(lambda x: True), lambda d: d.map(lambda x: x), lambda d: d.shard(2, 0), lambda d: d,
         lambda d: Dataset.zip((d, d)), lambda d: Dataset.zip((d, numbers())), lambda d: d.concatenate(numbers(9).batch(3)), lambda d: d.apply(check_count(3)),
         lambda d: d.with_options(tf.data.Options()), lambda d: d.ignore_errors(), lambda d: d.take_while(lambda x: True), lambda d: d.unbatch(),
         lambda d: d.batch(3), lambda d: d.padded_batch(4), lambda d: d.flat_map(Dataset.from_tensors), lambda d: d.unbatch().batch(4, num_parallel_calls=2),
         lambda d: d.apply(tf.data.experimental.map_and_batch(lambda x: x, 5)), lambda d: d.apply(tf.data.experimental.shuffle_and_repeat(3, 2, seed=1))]


@program(3)
def batch_sizes(p):
    base = numbers().batch(int(p.rng.integers(2, 4)))
    p.step(*[raw.ComputeBatchSize(input_dataset=f(base)._variant_tensor) for f in SIZES])
    for wrap in (raw.ModelDataset, raw.FinalizeDataset):
        p.step(raw.ComputeBatchSize(input_dataset=wrap(input_dataset=base._variant_tensor, output_types=[tf.int64], output_shapes=[None])))


@program(1)
def sizes(p):
    """What is known of how many elements there are, above inputs with an end, without one, and with an end that is not known."""
    few = lambda *_: Dataset.range(2)
    odd = lambda x: x % 2
    steps = (lambda d: d.interleave(few, 2), lambda d: d.interleave(few, 2, num_parallel_calls=2), lambda d: d.flat_map(few),
             lambda d: d.apply(tf.data.experimental.parallel_interleave(few, 2)), lambda d: d.filter(lambda x: x > 1),
             lambda d: d.take_while(lambda x: x > 1), lambda d: d.batch(2).unbatch(), lambda d: d.unique(), lambda d: d.ignore_errors(),
             lambda d: d.window(2, 3, drop_remainder=True), lambda d: d.group_by_window(odd, lambda k, w: w, 2),
             lambda d: d.apply(tf.data.experimental.group_by_reducer(
                 odd, tf.data.experimental.Reducer(lambda k: 0, lambda s, x: s, lambda s: s))),
             lambda d: d.batch(2).rebatch(3), lambda d: Dataset.choose_from_datasets([d, few()], few()),
             lambda d: Dataset.sample_from_datasets([d, few()]), lambda d: Dataset.zip((d, few())), lambda d: few().concatenate(d),
             lambda d: d.skip(2), lambda d: d.take(2), lambda d: d.repeat(2), lambda d: d.repeat(0), lambda d: d.shard(2, 1))
    for d in (Dataset.range(4), Dataset.range(0), Dataset.range(3).repeat(), Dataset.range(4).filter(lambda x: x > 1)):
        p.step(*(tf.raw_ops.DatasetCardinality(input_dataset=step(d)._variant_tensor) for step in steps))
