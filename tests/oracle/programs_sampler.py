"""Samplers that learn from the classes they are shown."""
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1


@program(30)
def unigram_samplers(p):
    op = p.pick('LearnedUnigramCandidateSampler', 'ThreadUnsafeUnigramCandidateSampler')
    limit, columns = int(p.pick(1, 2, 3, 4, 7, 64, 1000)), int(p.pick(1, 2))
    classes = tf1.placeholder(tf.int64, None)
    draw = getattr(raw, op)(true_classes=classes, num_true=columns, num_sampled=int(p.pick(1, 5, 40)), unique=bool(p.rng.integers(2)) and limit > 200, range_max=limit,
                            seed=int(p.rng.integers(1, 99)), seed2=int(p.rng.integers(1, 99)))
    for _ in range(6):
        shape = (int(p.rng.integers(0, 9)), columns)
        p.step(*draw, feeds={classes: p.rng.integers(0, limit, shape)}, rtol=1e-6)
    p.step(*draw, feeds={classes: p.rng.integers(0, limit, (2, columns + 1))})
    p.step(*draw, feeds={classes: p.rng.integers(limit, limit + 2, (2, columns))})
    p.step(*draw, feeds={classes: p.rng.integers(0, limit, (2, columns))}, rtol=1e-6)
