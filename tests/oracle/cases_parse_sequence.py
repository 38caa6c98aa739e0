"""Example messages into tensors by the ops before and beside ParseExampleV2, and SequenceExample messages."""
import numpy as np
import tensorflow as tf
from cases_parse import BYTES, FLOAT, INT, KINDS, draw, example, strings
from values import DIVIDES_BY_ZERO

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


# ---- sequences ----

def feature(kind, values):
    made = tf.train.Feature()
    if kind is not None:
        getattr(made, kind + '_list').value.extend(values)
        getattr(made, kind + '_list').SetInParent()
    return made


def sequence(context, lists):
    """context: {key: (kind, values)}; lists: {key: (kind, rows)}; a kind of None: a feature without values of any type."""
    out = tf.train.SequenceExample()
    for key, (kind, values) in context.items():
        out.context.feature[key].CopyFrom(feature(kind, values))
    for key, (kind, rows) in lists.items():
        out.feature_lists.feature_list[key].SetInParent()
        out.feature_lists.feature_list[key].feature.extend(feature(kind, row) for row in rows)
    return out.SerializeToString()


class Request:
    """What to read. sparse, list_sparse: (key, kind); dense: (key, kind, shape, default); list_dense: (key, kind, shape, may miss);
    ragged, list_ragged: (key, kind, split type)."""

    def __init__(self, sparse=(), dense=(), ragged=(), list_sparse=(), list_dense=(), list_ragged=()):
        self.sparse, self.dense, self.ragged = sparse, dense, ragged
        self.list_sparse, self.list_dense, self.list_ragged = list_sparse, list_dense, list_ragged

    def defaults(self):
        return [value(kind, d) for _, kind, _, d in self.dense]

    def attrs(self):
        return {'Ncontext_sparse': len(self.sparse), 'context_sparse_types': types(self.sparse), 'Tcontext_dense': types(self.dense),
                'context_dense_shapes': [f[2] for f in self.dense], 'Nfeature_list_sparse': len(self.list_sparse),
                'feature_list_sparse_types': types(self.list_sparse), 'Nfeature_list_dense': len(self.list_dense),
                'feature_list_dense_types': types(self.list_dense), 'feature_list_dense_shapes': [f[2] for f in self.list_dense]}

    def missing(self):
        return [f[0] for f in self.list_dense if f[3]]

    def v1(self, check, serialized, names=(), **options):
        keys = lambda features: [f[0] for f in features]
        check('ParseSequenceExample', [serialized, strings(names)] + self.defaults(),
              {**self.attrs(), 'Ncontext_dense': len(self.dense), 'feature_list_dense_missing_assumed_empty': self.missing(),
               'context_sparse_keys': keys(self.sparse), 'context_dense_keys': keys(self.dense),
               'feature_list_sparse_keys': keys(self.list_sparse), 'feature_list_dense_keys': keys(self.list_dense)}, **options)

    def v2(self, check, serialized, names=(), **options):
        keys = lambda features: strings(f[0] for f in features)
        splits = lambda features: [f[2] for f in features]
        check('ParseSequenceExampleV2',
              [serialized, names if isinstance(names, bytes) else strings(names), keys(self.sparse), keys(self.dense), keys(self.ragged),
               keys(self.list_sparse), keys(self.list_dense), keys(self.list_ragged), np.array([f[3] for f in self.list_dense], bool)] +
              self.defaults(),
              {**self.attrs(), 'context_ragged_value_types': types(self.ragged), 'context_ragged_split_types': splits(self.ragged),
               'feature_list_ragged_value_types': types(self.list_ragged), 'feature_list_ragged_split_types': splits(self.list_ragged)},
              **options)

    def single(self, check, serialized, name=b'', **options):
        keys = lambda features: [f[0] for f in features]
        check('ParseSingleSequenceExample',
              [serialized, strings(self.missing())] + keys(self.sparse) + keys(self.dense) + keys(self.list_sparse) +
              keys(self.list_dense) + self.defaults() + [name], {**self.attrs(), 'Ncontext_dense': len(self.dense)}, **options)

    def all(self, check, message, scalar_too=True):
        """Alone, and in batches with itself."""
        if not self.ragged and not self.list_ragged:
            self.v1(check, strings([message]))
            self.single(check, message)
        if not self.ragged and not self.list_ragged and scalar_too:
            self.v2(check, message)
        self.v2(check, strings([message, message]))


def requests(kind, other, rng):
    pad = b'pad' if kind == BYTES else 7
    none = np.zeros(0)
    two = value(kind, draw(rng, kind, 2))
    yield Request(sparse=[(b'a', kind)], list_sparse=[(b'l', kind)])
    yield Request(sparse=[(b'z', kind)], list_sparse=[(b'z', kind)], dense=[(b'a', kind, [2], two)])
    yield Request(ragged=[(b'a', kind, tf.int32)], list_ragged=[(b'l', kind, tf.int64)])
    yield Request(ragged=[(b'z', kind, tf.int64)], list_ragged=[(b'z', kind, tf.int32)], sparse=[(b'a', kind)])
    yield Request(dense=[(b'a', kind, [2], none)], list_dense=[(b'u', kind, [2], True)])
    yield Request(dense=[(b'a', kind, [2, 1], two.reshape(2, 1)), (b'z', kind, [], pad)])
    yield Request(dense=[(b'a', kind, [0], none)])
    yield Request(dense=[(b'z', kind, [2], none)])
    yield Request(dense=[(b'a', kind, [1], [pad])])
    yield Request(list_dense=[(b'l', kind, [1], False)])
    yield Request(list_dense=[(b'l', kind, [], True), (b'u', kind, [2, 1], True)])
    yield Request(list_dense=[(b'e', kind, [3], False)])
    if DIVIDES_BY_ZERO:
        yield Request(list_dense=[(b'e', kind, [0], True), (b'u', kind, [3], True)])
    for bad in (Request(sparse=[(b'a', other)]), Request(dense=[(b'a', other, [2], none)]), Request(ragged=[(b'a', other, tf.int32)]),
                Request(list_sparse=[(b'l', other)]), Request(list_dense=[(b'l', other, [1], True)]),
                Request(list_ragged=[(b'l', other, tf.int32)])):
        yield bad


def sequences(check, rng):
    for kind, other in ((INT, FLOAT), (FLOAT, BYTES), (BYTES, INT)):
        rows = lambda *sizes: (kind, [draw(rng, kind, n) for n in sizes])
        messages = [sequence({'a': (kind, draw(rng, kind, 2))}, {'l': rows(1, 2, 0), 'u': rows(2, 2), 'e': rows()}),
                    sequence({'a': (kind, [])}, {'l': rows(1), 'o': rows(0, 0)}),
                    sequence({'a': (None, [])}, {'l': (None, [[], []])}), b'']
        for request in requests(kind, other, rng):
            for message in messages if kind == INT else messages[:1]:
                request.all(check, message)
            for batched in (strings([]), strings(messages), strings(messages[:2]), strings([messages[0], messages[0], messages[3]])):
                request.v2(check, batched)
    refused(check, rng)


def refused(check, rng):
    good = sequence({'a': (INT, [1, 2])}, {'l': (INT, [[1], [2]])})
    sparse = Request(sparse=[(b'a', INT)])
    for request in (Request(sparse=[(b'a', INT), (b'a', INT)]), Request(sparse=[(b'a', INT)], dense=[(b'a', INT, [2], np.zeros(0))]),
                    Request(list_sparse=[(b'l', INT)], list_dense=[(b'l', INT, [1], False)]),
                    Request(sparse=[(b'a', INT)], ragged=[(b'a', INT, tf.int32)]),
                    Request(dense=[(b'a', INT, [2], [1])]), Request(dense=[(b'a', INT, [None], [1])]),
                    Request(list_dense=[(b'l', INT, [None], False)])):
        request.all(check, good)
    for message in (b'garbage', good[:-1]):
        sparse.all(check, message)
    sparse.v1(check, good)
    sparse.v1(check, strings([good]), names=[b'n', b'm'])
    sparse.v1(check, strings([good]), names=[b'n'])
    sparse.v2(check, strings([good]).reshape(1, 1))
    sparse.v2(check, strings([good]), names=b'n')
    sparse.v2(check, strings([good, good]), names=[b'n'])
    sparse.single(check, strings([good]))
    sparse.single(check, good, name=strings([b'n']))
    Request(sparse=[(strings([b'a']), INT)]).single(check, good)
    # TensorFlow refuses rows without values, or leaves their number unwritten, by what else there is.
    empty = sequence({}, {'o': (INT, [[], []])})
    if DIVIDES_BY_ZERO:
        for run in (Request.v1, Request.v2):
            run(Request(list_dense=[(b'o', INT, [0], True)]), check, strings([empty, good]), shapes_only=True, tf_only_fails=True)
        Request(list_dense=[(b'o', INT, [0], True)]).single(check, empty)
    # TensorFlow leaves the splits of one example unwritten.
    ragged = Request(ragged=[(b'a', INT, tf.int64)], list_ragged=[(b'l', INT, tf.int32)])
    ragged.v2(check, good, shapes_only=True, tf_shape_differs=True)


def cases(check, rng):
    examples(check, rng)
    sequences(check, rng)
