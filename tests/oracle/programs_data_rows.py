"""Functions on the rows of tensors."""
import numpy as np
import tensorflow as tf
from programs import program
from programs_data_saved import function

raw = tf.raw_ops


@program(14)
def map_defun(p):
    rows = int(p.rng.integers(0, 4))
    x, y = np.arange(rows * 2, dtype=np.int64).reshape(rows, 2), np.arange(p.pick(rows, rows, rows, 2), dtype=np.float32)
    two = [tf.TensorSpec([2], tf.int64), tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int64)]
    body, types, shapes = p.pick(
        (lambda x, y, c: (x + c, y * 2), [tf.int64, tf.float32], [[2], []]), (lambda x, y, c: (x + c, y), [tf.int64, tf.float32], [[2], None]),
        (lambda x, y, c: tf.strings.as_string(x[0] + c), [tf.string], [[]]), (lambda x, y, c: tf.range(x[0]), [tf.int64], [[None]]),
        (lambda x, y, c: x, [tf.int64], [[3]]), (lambda x, y, c: x, [tf.float32], [[2]]), (lambda x, y, c: (x, x), [tf.int64], [[2]]),
        (lambda x, y, c: 12 // x, [tf.int64], [[2]]))
    hide = p.pick(p.hide, p.hide, tf.constant) if len(y) == rows else p.hide
    made = raw.MapDefun(arguments=[hide(x), hide(y)], captured_inputs=[p.hide(np.int64(5))], output_types=types, output_shapes=shapes,
                        f=function(p, body, *two), max_intra_op_parallelism=int(p.rng.integers(1, 3)))
    p.step(*made)
