"""Example messages into tensors."""
import numpy as np
import tensorflow as tf


def example(**features):
    out = tf.train.Example()
    for name, values in features.items():
        feature = out.features.feature[name]
        if values is None:
            continue
        kind, values = values
        getattr(feature, kind + '_list').value.extend(values)
        if not values:
            getattr(feature, kind + '_list').SetInParent()
    return out.SerializeToString()


INT, FLOAT, BYTES = 'int64', 'float', 'bytes'
KINDS = {INT: np.int64, FLOAT: np.float32, BYTES: object}


def draw(rng, kind, count):
    if kind == INT:
        return rng.integers(-2**62, 2**62, count).tolist()
    if kind == FLOAT:
        return rng.standard_normal(count).astype(np.float32).tolist()
    return [bytes(rng.integers(0, 256, rng.integers(0, 30)).astype(np.uint8)) for _ in range(count)]


def strings(items):
    return np.array(list(items) + [None], object)[:-1]


def run(check, serialized, sparse=(), dense=(), ragged=(), names=(), **options):
    """sparse: (key, kind); dense: (key, kind, shape, default); ragged: (key, kind, split type)."""
    tf_type = {INT: tf.int64, FLOAT: tf.float32, BYTES: tf.string}
    inputs = [serialized, strings(names), strings(k for k, _ in sparse), strings(k for k, *_ in dense),
              strings(k for k, *_ in ragged)]
    inputs += [strings(np.ravel(d).tolist()).reshape(np.shape(d)) if kind == BYTES else np.array(d, KINDS[kind])
               for _, kind, _, d in dense]
    check('ParseExampleV2', inputs,
          {'num_sparse': len(sparse), 'sparse_types': [tf_type[k] for _, k in sparse], 'Tdense': [tf_type[k] for _, k, *_ in dense],
           'dense_shapes': [s for _, _, s, _ in dense], 'ragged_value_types': [tf_type[k] for _, k, _ in ragged],
           'ragged_split_types': [s for *_, s in ragged]}, **options)


def cases(check, rng):
    for kind in KINDS:
        zero = b'' if kind == BYTES else 0
        pad = b'pad' if kind == BYTES else 7
        for batch in (None, 0, 1, 3, 17):
            def batched(make):
                made = [make() for _ in range(1 if batch is None else batch)]
                return made[0] if batch is None else strings(made)
            ragged_rows = batched(lambda: example(a=(kind, draw(rng, kind, int(rng.integers(0, 5)))), other=(INT, [1])))
            missing = batched(lambda: example(a=(kind, draw(rng, kind, 3))) if rng.random() < 0.5 else example(b=None))
            pairs = batched(lambda: example(a=(kind, draw(rng, kind, 2)), b=(kind, draw(rng, kind, 4))))
            run(check, ragged_rows, sparse=[(b'a', kind)])
            run(check, missing, sparse=[(b'a', kind), (b'b', INT)])
            for split in (tf.int32, tf.int64):
                run(check, ragged_rows, ragged=[(b'a', kind, split)])
                run(check, missing, ragged=[(b'a', kind, split), (b'z', FLOAT, split)])
            run(check, pairs, dense=[(b'a', kind, [2], np.zeros(0)), (b'b', kind, [2, 2], np.zeros(0))])
            run(check, pairs, dense=[(b'a', kind, [2, 1], np.zeros((0, 1)))], sparse=[(b'b', kind)])
            run(check, missing, dense=[(b'a', kind, [3], [pad] * 3)])
            run(check, missing, dense=[(b'a', kind, [3], np.zeros(0))])
            run(check, ragged_rows, dense=[(b'a', kind, [None], [pad])])
            run(check, pairs, dense=[(b'b', kind, [None, 2], [pad])], ragged=[(b'a', kind, tf.int64)])
            run(check, pairs, dense=[(b'b', kind, [None, 3], [pad])])
            run(check, missing, dense=[(b'a', kind, [None], [zero])])
            run(check, pairs, dense=[(b'a', kind, [3], np.zeros(0))])
            run(check, pairs, dense=[(b'q', kind, [], pad)])
            run(check, pairs)
        run(check, strings([example(a=(kind, draw(rng, kind, 1)))]), dense=[(b'a', kind, [], np.zeros(0))])
        run(check, strings([example(a=(kind, []))]), dense=[(b'a', kind, [0], np.zeros(0))])
        run(check, strings([example(a=(kind, []))]), sparse=[(b'a', kind)])
        for other in KINDS:
            if other != kind:
                run(check, strings([example(a=(kind, draw(rng, kind, 2)))]), sparse=[(b'a', other)])
                run(check, example(a=(kind, draw(rng, kind, 2))), dense=[(b'a', other, [2], np.zeros(0))])
                run(check, strings([example(a=(kind, draw(rng, kind, 2)))]), ragged=[(b'a', other, tf.int32)])
    good = strings([example(a=(INT, [1, 2]))])
    # Values that are not packed, unknown fields, keys that come twice.
    loose = tf.train.Example()
    loose.features.feature['a'].int64_list.value.append(5)
    unpacked = b'\x0a\x0d' + b'\x0a\x0b' + b'\x0a\x01a' + b'\x12\x06' + b'\x1a\x04' + b'\x08\x05\x08\x06'
    run(check, strings([unpacked]), sparse=[(b'a', INT)])
    run(check, unpacked, dense=[(b'a', INT, [2], np.zeros(0))])
    twice = example(a=(INT, [1])) + example(a=(INT, [2, 3]))
    run(check, strings([twice]), sparse=[(b'a', INT)])
    entry = b'\x0a\x01a\x12\x05\x1a\x03\x0a\x01'
    run(check, strings([b'\x0a\x18' + b'\x0a\x0a' + entry + b'\x01' + b'\x0a\x0a' + entry + b'\x02']), sparse=[(b'a', INT)])
    for bad in (b'\xff', b'garbage', example(a=(INT, [1]))[:-1], b'\x0a\x05abc'):
        run(check, strings([bad]), sparse=[(b'a', INT)])
        run(check, bad, sparse=[(b'a', INT)])
    run(check, strings([b'']), sparse=[(b'a', INT)], ragged=[(b'r', FLOAT, tf.int32)])
    run(check, b'', sparse=[(b'a', INT)], ragged=[(b'r', FLOAT, tf.int32)])
    for keys in (np.array(b'a', object), strings([b'a']).reshape(1, 1), strings([b'a', b'b'])):
        check('ParseExampleV2', [good, strings([]), keys, strings([]), strings([]).reshape(0, 2)],
              {'num_sparse': 1, 'sparse_types': [tf.int64], 'Tdense': [], 'dense_shapes': [], 'ragged_value_types': [], 'ragged_split_types': []})
    run(check, good.reshape(1, 1), sparse=[(b'a', INT)])
    run(check, good, sparse=[(b'a', INT)], names=[b'n'])
    run(check, good, sparse=[(b'a', INT)], names=[b'n', b'm'])
    run(check, good, dense=[(b'a', INT, [2], [1, 2, 3])])
    run(check, good, dense=[(b'a', INT, [None], [1, 2])])
    run(check, good, dense=[(b'a', INT, [None], np.zeros(0))])
    run(check, good, dense=[(b'a', INT, [2, None], [1])])
    run(check, good, dense=[(b'a', INT, None, [1])])
