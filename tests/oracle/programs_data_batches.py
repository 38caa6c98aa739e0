"""Batches after the first one, which are filled as their elements come: smaller at the end, of other shapes, of failing elements."""
import numpy as np
import tensorflow as tf
from programs import program
from programs_data import walk

Dataset = tf.data.Dataset


def uneven(x, k):
    """Tensors whose sizes change at element |k| and its multiples, the second one's later than the first's."""
    longer, later = tf.cast(x % k == k - 1, tf.int32), tf.cast(x % (k + 2) == k + 1, tf.int32)
    return tf.zeros([1 + longer]), tf.strings.as_string(tf.fill([2 + later], x)), x


@program(8)
def later_batches(p):
    size, count = int(p.rng.integers(1, 5)), int(p.rng.integers(3, 14))
    d = Dataset.range(count).map(lambda x: (x, tf.strings.as_string(x), tf.fill([2, 0], x), tf.fill([2, 3], tf.cast(x, tf.float32))))
    walk(p, d.batch(size, drop_remainder=p.pick(False, True)).repeat(p.pick(1, 2)), 10)


@program(8)
def later_batches_of_other_shapes(p):
    k = int(p.rng.integers(3, 8))
    d = Dataset.range(16).map(lambda x: uneven(x, k))
    d = p.pick(lambda: d, lambda: d.map(lambda a, b, x: (b, a, x)), lambda: d.map(lambda a, b, x: (x, a)))()
    walk(p, d.batch(int(p.rng.integers(2, 5)), drop_remainder=p.pick(False, True)), 9)


@program(8)
def later_batches_that_fail(p):
    k, size = int(p.rng.integers(4, 9)), int(p.rng.integers(2, 5))
    d = Dataset.range(16).map(lambda x: (tf.zeros([1 + tf.cast(x % 5 == 4, tf.int32)]), np.int64(12) // (x % k - (k - 1))))
    walk(p, p.pick(lambda: d.batch(size), lambda: d.filter(lambda a, x: x < 0).batch(size), lambda: d.take(15).batch(size, True))(), 10)
