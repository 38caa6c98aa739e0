"""Datasets that random pipelines do not draw: tables of text, lists, sparse tensors, other windows; and what takes a whole dataset."""
import gzip
import zlib

import numpy as np
import tensorflow as tf
from programs import program
from programs_data import INT, variant, walk

raw = tf.raw_ops
Dataset = tf.data.Dataset
STRING = tf.TensorSpec([], tf.string)


# ---- comma-separated values ----

RECORDS = ['1,a,2.5', '22,"b,c",-1', '3,"x""y",1e3', ',d,', '5,"l\nm",4', 'x,e,6', '7,a"b,7', '8,f', '9,g,9,9', 'NA,h,NA', '', '+4, i , 3 ',
           '6,"",.5', '99999999999999999999,k,1', '1.5,l,nan']


def table(p):
    end = p.pick('\n', '\n', '\r\n', '\r')
    lines = [RECORDS[i] for i in p.rng.integers(len(RECORDS), size=int(p.rng.integers(0, 9)))]
    text = end.join((['h1,"h\n2",h3'] if p.rng.integers(2) else []) + lines) + p.pick('', end)
    return (text + p.pick('', '', '', '2,"open')).encode()


def csv(p, names, types, **options):
    empty = lambda t: np.zeros(0, t.as_numpy_dtype) if t != tf.string else np.array([], object)
    given = {'compression_type': '', 'buffer_size': np.int64(p.pick(1, 5, 4096)), 'header': bool(p.rng.integers(2)), 'field_delim': ',',
             'use_quote_delim': bool(p.rng.integers(4)), 'na_value': p.pick('', 'NA'), 'select_cols': np.zeros(0, np.int64),
             'record_defaults': [tf.constant(empty(t), t) for t in types], **options}
    make = raw.CSVDatasetV2 if 'exclude_cols' in given else raw.CSVDataset
    return variant(make(filenames=names, output_shapes=[[]] * len(types), **given), *[tf.TensorSpec([], t) for t in types])


@program(14)
def csv_records(p):
    names = [p.write(f'f{i}', table(p)) for i in range(int(p.rng.integers(1, 3)))] + (['missing'] if not p.rng.integers(6) else [])
    types = [p.pick(tf.int64, tf.int32, tf.string), tf.string, p.pick(tf.float32, tf.float64)]
    defaults = [tf.constant(7, types[0]) if types[0] != tf.string else tf.constant(['d']), tf.constant(['e']), tf.constant([], types[2])]
    walk(p, csv(p, names, types, **({'record_defaults': defaults} if p.rng.integers(2) else {})), 16)


@program(8)
def csv_columns(p):
    names = [p.write('f', table(p))]
    columns = sorted(p.rng.choice(4, size=int(p.rng.integers(1, 4)), replace=False).tolist())
    if p.rng.integers(2):
        walk(p, csv(p, names, [tf.string] * len(columns), select_cols=np.int64(columns), record_defaults=[['d']] * len(columns)), 12)
    else:
        count = int(p.rng.integers(1, 3))
        walk(p, csv(p, names, [tf.string] * count, exclude_cols=np.int64(columns), record_defaults=[['d']] * count), 12)


@program(3)
def csv_compressed(p):
    kind, pack = p.pick(('GZIP', lambda x: gzip.compress(x, mtime=0)), ('ZLIB', zlib.compress))
    walk(p, csv(p, [p.write('f', pack(b'1,a\n2,b\n'))], [tf.int64, tf.string], compression_type=kind, header=False), 4)


@program(10)
def csv_refused(p):
    bad = p.pick({'buffer_size': np.int64(0)}, {'field_delim': ';;'}, {'select_cols': np.int64([1, 0])}, {'select_cols': np.int64([-1, 0])},
                 {'select_cols': np.int64([1])}, {'select_cols': np.int64([0, 1]), 'exclude_cols': np.int64([2])},
                 {'exclude_cols': np.int64([2, 2])}, {'compression_type': 'LZ'}, {'record_defaults': [p.hide(np.int64([1, 2])), ['a']]},
                 {'record_defaults': [p.hide(np.int64([[1]])), ['a']]})
    walk(p, csv(p, [p.write('f', b'1,a\n')], [tf.int64, tf.string], **bad), 2)


# ---- lists, parts, windows ----

@program(6)
def lists(p):
    make = p.pick(lambda xs, **a: raw.ListDataset(tensors=xs, **a), lambda xs, **a: raw.WindowOp(inputs=xs, **a))
    xs = [np.int64(1), np.float32(2), np.int64(3), np.float32(4), np.int64([5]), np.int64(6)][:int(p.rng.integers(1, 7))]
    made = make(xs, output_types=[tf.int64, tf.float32], output_shapes=[p.pick([], None), []])
    walk(p, variant(made, INT, tf.TensorSpec([], tf.float32)), 5)
    p.step(raw.DatasetCardinality(input_dataset=made))


@program(6)
def rebatch_replicas(p):
    d = Dataset.range(11).batch(int(p.rng.integers(1, 6))) if p.rng.integers(5) else Dataset.range(4)
    made = raw.RebatchDataset(input_dataset=d._variant_tensor, num_replicas=p.hide(np.int64(p.rng.integers(0, 6))), output_types=[tf.int64],
                              output_shapes=[None], use_fallback=bool(p.rng.integers(2)))
    walk(p, variant(made, tf.TensorSpec(None, tf.int64)), 12)
    p.step(raw.DatasetCardinality(input_dataset=made))


@program(12)
def sliding(p):
    n = lambda low: p.hide(np.int64(p.rng.integers(low, 5)))
    low = int(p.rng.integers(4) > 0)
    d = Dataset.range(7).map(lambda x: 12 // x) if not p.rng.integers(4) else Dataset.range(int(p.rng.integers(0, 9)))
    made = raw.SlidingWindowDataset(input_dataset=d._variant_tensor, window_size=n(low), window_shift=n(low), window_stride=n(low),
                                    drop_remainder=bool(p.rng.integers(2)), output_types=[tf.int64], output_shapes=[[None]])
    walk(p, variant(made, tf.TensorSpec([None], tf.int64)), 10)
    p.step(raw.DatasetCardinality(input_dataset=made))


@program(2)
def thread_pools(p):
    pool = raw.ThreadPoolHandle(num_threads=p.pick(2, 0), display_name='p')
    made = raw.ThreadPoolDataset(input_dataset=Dataset.range(3)._variant_tensor, thread_pool=pool, output_types=[tf.int64], output_shapes=[[]])
    walk(p, variant(made, INT), 4)


# ---- sparse tensors ----

@program(12)
def sparse_slices(p):
    indices, values, shape = p.pick(
        ([[0, 1], [0, 2], [2, 0]], [5, 6, 7], [4, 3]), ([[0, 1, 1], [0, 2, 0], [2, 0, 0]], [5, 6, 7], [3, 3, 2]), ([[2, 0], [0, 1]], [5, 6], [4, 3]),
        ([[5, 0]], [5], [4, 3]), ([[-1, 0], [0, 0]], [5, 6], [4, 3]), ([[1]], [5], [4]), ([[1, 1], [2, 2]], [5], [4, 4]), ([[1, 1]], [5], [4, 4, 4]),
        (np.zeros([0, 2]), [], [2, 3]), ([1, 2], [5, 6], [4]), ([[1, 1]], [5], 4), (np.zeros([0, 2]), [], [-2, 3]))
    dtype = p.pick(np.int64, np.float32, np.uint8, object)
    values = np.array([b'%d' % v for v in values], object) if dtype is object else np.array(values, dtype)
    made = raw.SparseTensorSliceDataset(indices=p.hide(np.int64(indices)), values=p.hide(values), dense_shape=p.hide(np.int64(shape)))
    spec = [tf.TensorSpec(None, t) for t in (tf.int64, tf.string if dtype is object else tf.as_dtype(dtype), tf.int64)]
    walk(p, variant(made, *spec), 6)
    p.step(raw.DatasetCardinality(input_dataset=made))


@program(8)
def sparse_batch(p):
    ragged = lambda x: tf.range(x * 3 % 4)
    text = lambda x: tf.fill([x % 3, 2], tf.strings.as_string(x))
    function, row = p.pick((ragged, [-1]), (ragged, [4]), (ragged, [2]), (ragged, [2, 2]), (text, [-1, -1]), (text, [3, -1]), (lambda x: x, []),
                           (ragged, [-2]))
    d = Dataset.range(5).map(function)
    made = raw.DenseToSparseBatchDataset(input_dataset=d._variant_tensor, batch_size=p.hide(np.int64(p.rng.integers(0, 4))),
                                         row_shape=p.hide(np.int64(row)), output_types=[tf.variant], output_shapes=[None])
    p.step(raw.DatasetCardinality(input_dataset=made))
    back = variant(made, tf.TensorSpec(None, tf.variant)).map(lambda x: raw.DeserializeSparse(serialized_sparse=x, dtype=d.element_spec.dtype))
    walk(p, back, 6)


# ---- whole datasets ----

@program(6)
def into_table(p):
    handle = p.pick(lambda **a: raw.HashTableV2(**a), lambda **a: raw.HashTableV2(**a), lambda **a: raw.MutableHashTableV2(**a))(
        key_dtype=tf.int64, value_dtype=tf.int64, shared_name='t')
    n, k = int(p.rng.integers(0, 5)), p.pick(1, 1, 2)
    d = Dataset.range(n).map(lambda x: (x // k, p.pick(x * x, 12 // (x - 1))))
    p.step(raw.InitializeTableFromDataset(table_handle=handle, dataset=d._variant_tensor), tf_only_fails=k == 2)
    p.step(raw.LookupTableSizeV2(table_handle=handle))
    p.step(raw.LookupTableFindV2(table_handle=handle, keys=np.int64([0, 1, 2, 7]), default_value=np.int64(-1)))


@program(6)
def into_records(p):
    kind = p.pick('', 'ZLIB', 'GZIP', 'XX')
    d = p.pick(Dataset.from_tensor_slices([b'a', b'', b'bcd' * 40]), Dataset.range(3), Dataset.range(3).map(tf.strings.as_string),
               Dataset.from_tensors((b'a', b'b')))
    p.step(raw.DatasetToTFRecord(input_dataset=d._variant_tensor, filename=p.pick('out', 'out', 'none/out'), compression_type=kind))
    walk(p, tf.data.TFRecordDataset(['out'], kind if kind != 'XX' else None), 5)


# ---- examples ----

@program(12)
def parsed_examples(p):
    from cases_parse import BYTES, FLOAT, example
    rows = [example(a=('int64', [k, k + 1]), b=(FLOAT, [.5] * (k % 3)), c=(BYTES, [b'x'] * k)) for k in range(5)]
    if not p.rng.integers(3):
        rows[int(p.rng.integers(5))] = p.pick(b'garbage', b'', example(a=(FLOAT, [1.])))
    d = Dataset.from_tensor_slices(np.array(rows, object)).batch(int(p.rng.integers(1, 4)))
    d = d.unbatch() if not p.rng.integers(5) else d
    dense = p.pick(([], [], []), (['a'], [[2]], [p.hide(np.zeros(0, np.int64))]), (['a'], [[2]], [p.hide(np.int64([8, 9]))]),
                   (['a'], [[3]], [p.hide(np.zeros(0, np.int64))]), (['a'], [[None]], [p.hide(np.int64([7]))]))
    keys = sorted(dense[0] + ['b', 'c'])
    kinds = {'a': tf.int64, 'b': tf.variant, 'c': tf.variant}
    make, given = p.pick((raw.ParseExampleDataset, {'sloppy': False}), (raw.ParseExampleDatasetV2, {'deterministic': 'true'}))
    made = make(input_dataset=d._variant_tensor, num_parallel_calls=p.hide(np.int64(p.pick(1, 2, -1, 0))), dense_defaults=dense[2], sparse_keys=['b'],
                dense_keys=dense[0], sparse_types=[tf.float32], dense_shapes=dense[1], output_types=[kinds[k] for k in keys],
                output_shapes=[None] * len(keys), ragged_keys=['c'], ragged_value_types=[tf.string], ragged_split_types=[tf.int32], **given)

    def plain(*xs):
        x = dict(zip(keys, xs))
        return ([x['a']] if 'a' in x else []) + list(raw.DeserializeSparse(serialized_sparse=x['b'], dtype=tf.float32)) + \
            list(tf.nest.flatten(raw.RaggedTensorFromVariant(encoded_ragged=x['c'], input_ragged_rank=1, output_ragged_rank=1,
                                                             Tvalues=tf.string, Tsplits=tf.int32)))
    walk(p, variant(made, *[tf.TensorSpec(None, kinds[k]) for k in keys]).map(lambda *xs: tuple(plain(*xs))), 7)
    p.step(raw.DatasetCardinality(input_dataset=made))
