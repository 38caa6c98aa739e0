"""Datasets over databases and in cache files; what fails at its end."""
import functools
import os
import subprocess
import sys
import tempfile

import tensorflow as tf
from programs import program
from programs_data import INT, variant, walk

raw, tf1 = tf.raw_ops, tf.compat.v1
Dataset = tf.data.Dataset
KINDS = [tf.string, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.bool, tf.float64]


# ---- databases ----

# In a process of its own: libsqlite3 must not have been loaded behind TensorFlow's when Weir opens it.
MAKE_DATABASE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute('create table t (a integer, b text, c real, d blob, e)')
rows = [(1, 'x', 1.5, b'\\0\\xff', '7'), (300, '1.9y', -2.7, None, 3.99), (-2 ** 63, '', 1e9, b'', None)]
connection.executemany('insert into t values (?, ?, ?, ?, ?)', rows)
connection.commit()
"""


@functools.lru_cache(None)
def database():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'd')
        subprocess.run([sys.executable, '-c', MAKE_DATABASE, path], check=True)
        with open(path, 'rb') as f:
            return f.read()


def sql(p, query, types, name='d', driver='sqlite', shapes=None):
    shapes = shapes or [[]] * len(types)
    made = raw.SqlDataset(driver_name=p.hide(driver), data_source_name=p.hide(name), query=p.hide(query), output_types=types,
                          output_shapes=shapes)
    return variant(made, *[tf.TensorSpec(s, t) for s, t in zip(shapes, types)])


@program(12)
def sql_rows(p):
    p.write('d', database())
    columns = [p.pick('a', 'b', 'c', 'd', 'e') for _ in range(int(p.rng.integers(1, 6)))]
    d = sql(p, f'select {", ".join(columns)} from t', [p.pick(*KINDS) for _ in columns])
    p.step(raw.DatasetCardinality(input_dataset=d._variant_tensor))
    walk(p, d, 5)


@program(12)
def sql_refused(p):
    p.write('d', database())
    p.write('bad', b'not a database' * 99)
    given, says = p.pick((('select zz from t', [tf.int64]), 'Prepare() failed: [1] no such column: zz: select zz from t'),
                         (('selekt', [tf.int64]), 'Prepare() failed'), (('', [tf.int64]), 'The number of columns in query (0)'),
                         (('select a, b from t', [tf.int64]), 'must match the number of elements in output_types (1).'),
                         (('select abs(a) from t', [tf.int64]), None), (('select a from t', [tf.int64], 'new'), 'no such table'),
                         (('select a from t', [tf.int64], 'bad'), 'Prepare() failed: [26] file is not a database'),
                         (('delete from t', [tf.int64]), 'The number of columns'),
                         (('insert into t values (1, 1, 1, 1, 1) returning a', [tf.int64]), None))
    d = sql(p, *given)
    iterator = tf1.data.make_initializable_iterator(d)
    p.step(iterator.initializer)
    for _ in range(6 if says is None else 2):
        p.step(iterator.get_next(), says=says)


@program(6)
def sql_declared(p):
    given, says = p.pick(({'types': [tf.float32]}, 'Each element of `output_types_` must be one of'),
                         ({'types': [tf.int64], 'shapes': [p.pick([1], None)]}, 'Each element of `output_shapes_` must be a scalar.'),
                         ({'types': [tf.int64], 'driver': 'mysql'}, 'The database type, mysql, is not supported by SqlDataset.'),
                         ({'types': [tf.int64], 'driver': ['sqlite']}, 'driver_name must be a scalar'),
                         ({'types': [tf.int64], 'name': ['d']}, 'data_source_name must be a scalar'))
    p.step(raw.DatasetCardinality(input_dataset=sql(p, 'select 1', **given)._variant_tensor), says=says)


# ---- caches in files ----

def cached(p, d, name='x'):
    if p.rng.integers(2):
        return d.cache(name)
    specs = tf.nest.flatten(d.element_spec)
    made = raw.CacheDatasetV2(input_dataset=d._variant_tensor, filename=p.hide(name), cache=raw.DummyMemoryCache(),
                              output_types=[s.dtype for s in specs], output_shapes=[s.shape for s in specs])
    return variant(made, *specs)


@program(10)
def cache_files(p):
    n = int(p.rng.integers(0, 4))
    d = p.pick(Dataset.range(n), Dataset.range(n).map(lambda x: (x, tf.fill([x], tf.strings.as_string(x)), tf.cast(x, tf.bfloat16))),
               Dataset.range(5).map(lambda x: 12 // (x - 2)), Dataset.from_tensors(tuple(range(12))))
    d = cached(p, d)
    p.step(raw.DatasetCardinality(input_dataset=d._variant_tensor))
    walk(p, d.repeat(p.pick(1, 1, 3)), 9)
    walk(p, d, 5)


@program(4)
def cache_files_of_another(p):
    """A cache is what it is, whatever the dataset would give."""
    walk(p, cached(p, Dataset.range(2)), 4)
    walk(p, cached(p, p.pick(Dataset.range(7, 12), Dataset.range(3).map(lambda x: tf.fill([2], 1.)), Dataset.range(3).map(lambda x: tf.fill([2], x)))), 4)
    walk(p, cached(p, Dataset.zip((Dataset.range(5), Dataset.range(5)))), 3)


@program(8)
def cache_files_refused(p):
    name, says = p.pick(('none/x', 'x_0.lockfile; No such file or directory'), ('locked', "cache lockfile already exists ('locked_0.lockfile')"),
                        ('begun', 'Existing cache files found: '), ('bad', None))
    p.write('locked_0.lockfile', b'by hand')
    p.write('begun_0.index', b'')
    p.write('bad.index', b'hello')
    iterator = tf1.data.make_initializable_iterator(cached(p, Dataset.range(3), name))
    p.step(iterator.initializer)
    for _ in range(2):
        p.step(iterator.get_next(), says=says)
    p.step(raw.DatasetCardinality(input_dataset=raw.CacheDataset(input_dataset=Dataset.range(3)._variant_tensor, filename=p.hide(['x']),
                                                                 output_types=[tf.int64], output_shapes=[[]])),
           says='filename must be a scalar')


# ---- what fails at its end ----

@program(4)
def failing_ends(p):
    d = Dataset.range(1).apply(tf.data.experimental.assert_cardinality(3)).repeat(p.pick(2, None))
    walk(p, d.interleave(Dataset.from_tensors, cycle_length=3, block_length=2, num_parallel_calls=3, deterministic=True), 5)


@program(4)
def failing_among_shuffled(p):
    """A shuffle that is repeated reads on before it has given out all."""
    d = Dataset.range(-3, 13).map(lambda x: 12 // (x % 5)).shuffle(5, seed=24, reshuffle_each_iteration=p.pick(True, False))
    walk(p, d.repeat(p.pick(2, 3, None)), 26)


@program(4)
def unlike_remainders(p):
    """Of what is mapped into batches, rows that do not fit together are seen before they are dropped."""
    d = Dataset.range(5)
    ragged = lambda x: tf.range(x % 3 + 1)
    walk(p, p.pick(d.skip(3).map(ragged).batch(3, drop_remainder=True), d.apply(tf.data.experimental.map_and_batch(ragged, 7, drop_remainder=True)),
                   d.skip(3).map(ragged).prefetch(1).batch(3, drop_remainder=True)), 3)
