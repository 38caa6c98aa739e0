"""Example messages into tensors by the ops before and beside ParseExampleV2, and SequenceExample messages."""
import numpy as np
import tensorflow as tf
from cases_parse import BYTES, FLOAT, INT, KINDS, draw, example, strings

TF_TYPE = {INT: tf.int64, FLOAT: tf.float32, BYTES: tf.string}


def value(kind, x):
    return strings(np.ravel(x).tolist()).reshape(np.shape(x)) if kind == BYTES else np.array(x, KINDS[kind])


def types(features):
    return [TF_TYPE[f[1]] for f in features]


# ---- examples ----

def batch(check, serialized, sparse=(), dense=(), names=(), **options):
    """sparse: (key, kind); dense: (key, kind, shape, default)."""
    check('ParseExample', [serialized, strings(names)] + [k for k, *_ in sparse] + [k for k, *_ in dense] +
          [value(kind, d) for _, kind, _, d in dense],
          {'Nsparse': len(sparse), 'Ndense': len(dense), 'sparse_types': types(sparse), 'Tdense': types(dense),
           'dense_shapes': [f[2] for f in dense]}, **options)


def single(check, serialized, sparse=(), dense=(), **options):
    check('ParseSingleExample', [serialized] + [value(kind, d) for _, kind, _, d in dense],
          {'num_sparse': len(sparse), 'sparse_keys': [k for k, *_ in sparse], 'dense_keys': [k for k, *_ in dense],
           'sparse_types': types(sparse), 'Tdense': types(dense), 'dense_shapes': [f[2] for f in dense]}, **options)


def examples(check, rng):
    for kind in KINDS:
        pad = b'pad' if kind == BYTES else 7
        full = [example(a=(kind, draw(rng, kind, 2)), b=(kind, draw(rng, kind, 4))) for _ in range(3)]
        partial = [example(a=(kind, draw(rng, kind, 2))), example(b=(kind, draw(rng, kind, 1)))]
        for run, messages in ((batch, [strings(full), strings(partial), strings([])]), (single, full[:1] + partial)):
            for message in messages:
                run(check, message, sparse=[(b'a', kind), (b'z', INT)], dense=[(b'b', kind, [None], [pad])])
                run(check, message, dense=[(b'a', kind, [2], value(kind, [pad] * 2)), (b'b', kind, [2, 2], np.zeros(0))])
                run(check, message, dense=[(b'a', kind, [1], np.zeros(0))])
                run(check, message, sparse=[(b'a', INT if kind != INT else FLOAT)])
    good = example(a=(INT, [1, 2]))
    for run, message in ((batch, strings([good])), (single, good)):
        run(check, message, dense=[(b'a', INT, [None, 2], [1])])
        run(check, message, dense=[(b'a', INT, [2, None], [1])])
        run(check, message, dense=[(b'a', INT, [2], [1, 2, 3])])
        run(check, message, dense=[(b'a', INT, None, [1])])
    batch(check, good, sparse=[(b'a', INT)])
    batch(check, strings([good]), sparse=[(b'a', INT)], names=[b'n'])
    batch(check, strings([good]), sparse=[(b'a', FLOAT)], names=[b'n'])
    batch(check, strings([good]), sparse=[(b'a', INT)], names=[b'n', b'm'])
    batch(check, strings([good]), sparse=[(strings([b'a']), INT)])
    batch(check, strings([b'garbage']), sparse=[(b'a', INT)])
    single(check, strings([good]), sparse=[(b'a', INT)])
    single(check, b'garbage', sparse=[(b'a', INT)])


def cases(check, rng):
    examples(check, rng)
