"""Datasets as TensorFlow rewrites them before it walks over them, and errors that come together with the end of a sequence."""
import tensorflow as tf
from programs import program
from programs_data import walk

Dataset = tf.data.Dataset


@program(6)
def shuffled_twice(p):
    """One dataset below two others: each has seeds of its own."""
    d = Dataset.range(9).shuffle(int(p.rng.integers(2, 6)), seed=int(p.rng.integers(1, 99)),
                                 reshuffle_each_iteration=p.pick(None, True, False)).repeat(int(p.rng.integers(1, 3)))
    walk(p, p.pick(lambda: Dataset.zip((d, d.skip(1))), lambda: d.take(4).concatenate(d), lambda: d.concatenate(d.take(3)).repeat(2),
                   lambda: Dataset.from_tensors(d.concatenate(d.take(3)).batch(30).get_single_element()))(), 14)


@program(6)
def batch_of_failing_map(p):
    k, size = int(p.rng.integers(2, 5)), int(p.rng.integers(1, 5))
    d = Dataset.range(9).map(lambda x: 12 // (x % k), num_parallel_calls=p.pick(None, 2))
    walk(p, p.pick(lambda: d.batch(size), lambda: d.batch(size, drop_remainder=True), lambda: d.batch(size, num_parallel_calls=2),
                   lambda: d.take(8).batch(size), lambda: Dataset.range(2).flat_map(lambda _: d.batch(size)))(), 12)


@program(8)
def failing_at_the_end(p):
    d = Dataset.range(int(p.rng.integers(0, 3))).apply(tf.data.experimental.assert_cardinality(5))
    flat = d.flat_map(lambda x: Dataset.range(2))
    walk(p, p.pick(lambda: Dataset.zip((flat, Dataset.range(3))), lambda: d.batch(2).window(2).flat_map(lambda w: w),
                   lambda: d.padded_batch(2).window(2).flat_map(lambda w: w), lambda: flat.window(3).flat_map(lambda w: w),
                   lambda: d.map(lambda x: x + 1, num_parallel_calls=2).window(2).flat_map(lambda w: w),
                   lambda: d.map(lambda x: x + 1).batch(2).window(1).flat_map(lambda w: w))(), 8)


@program(6)
def interleave_of_failing(p):
    k = int(p.rng.integers(2, 5))
    d = Dataset.range(9).map(lambda x: 12 // (x % k))
    make = lambda x: Dataset.range(x % 4).map(lambda y: 10 * x + y)
    failing = lambda x: Dataset.range(12 // (x % k)).take(2)
    source, function = p.pick((d, make), (Dataset.range(9), failing))
    walk(p, source.interleave(function, cycle_length=int(p.rng.integers(2, 4)), block_length=int(p.rng.integers(1, 3)),
                              num_parallel_calls=p.pick(None, 1, 2), deterministic=True), 20)
