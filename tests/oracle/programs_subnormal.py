"""Numbers too small to be normal: arithmetic takes them for zero, and gives zero instead of them, whoever computes and on which thread."""
import numpy as np
import tensorflow as tf
from programs import program

raw = tf.raw_ops


@program(16)
def subnormals(p):
    kind = p.pick(np.float32, np.float64)
    tiny = np.finfo(kind).tiny
    x = p.hide((tiny * p.rng.uniform(0.1, 3, p.pick(1, 7, 64, 100000))).astype(kind))
    half, big = p.hide(kind(0.5)), p.hide(kind(1 / tiny))
    p.step(x * half * big, x * big, (x + x) * big, (x - half * x) * big, half / x, raw.Sqrt(x=x) * raw.Sqrt(x=big))
    p.step(x > 0, tf.equal(x, 0), raw.Where(condition=x), tf.cast(x, tf.float64 if kind is np.float32 else tf.float32) > 0, raw.Sign(x=x))
    p.step(raw.Maximum(x=x, y=half * x) * big, raw.Square(x=x * half), raw.Log(x=half * x))
    few = x[:7]
    p.step(raw.Sum(input=few * half, axis=[0]) * big, tf.matmul(few[None] * half, few[:, None] * big))


@program(4)
def subnormals_elsewhere(p):
    """In a loop, in a function, in a dataset, and what is known before the step."""
    tiny = np.finfo(np.float32).tiny
    x, half, big = p.hide(np.float32([tiny, 2 * tiny])), p.hide(np.float32(0.5)), p.hide(np.float32(1 / tiny))
    p.step(tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * half), (0, x))[1] * big, tf.function(lambda y: y * half * big)(x))
    p.step(tf.constant([tiny, 2 * tiny]) * np.float32(0.5) * np.float32(1 / tiny))
