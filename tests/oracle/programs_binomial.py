"""StatefulRandomBinomial. TensorFlow moves a generator on only where nobody else holds its memory: steps before see to that."""
import numpy as np
import tensorflow as tf
from programs import program

raw = tf.raw_ops
PAIRS = ((10.0, 0.3, [5]), (100.0, 0.7, [3, 4]), (1000.0, 0.001, [20]), ([10.0, 20.0, 30.0], 0.5, [2, 3]), ([[10.0], [100.0]], [0.5, 0.1, 0.9], [2, 2, 3]),
         (2000.0, [0.0, 1.0, 0.5], [100, 3]), (10.0, 0.5, [0]), (10.0, 0.5, [3]), ([10.0, 20.0], 0.5, [2, 3]), ([10.0, 20.0], [0.5, 0.25, 0.125], [2, 3]))


@program(30)
def stateful_binomial(p):
    state = raw.VarHandleOp(dtype=tf.int64, shape=[3])
    p.step(raw.AssignVariableOp(resource=state, value=p.rng.integers(-2**62, 2**62, 3)))
    p.step(raw.AssignAddVariableOp(resource=state, value=np.int64([1, 1, 1])))
    counts, probs, shape = p.pick(*PAIRS)
    kind = p.pick(np.float16, np.float32, np.float64)
    draw = raw.StatefulRandomBinomial(resource=state, algorithm=p.pick(1, 1, 1, 3), shape=np.int32(shape), counts=p.hide(np.array(counts, kind)),
                                      probs=p.hide(np.array(probs, kind)), dtype=p.pick(tf.int32, tf.int64, tf.float16, tf.float32, tf.float64))
    for _ in range(3):
        p.step(draw)
    p.step(raw.ReadVariableOp(resource=state, dtype=tf.int64))
