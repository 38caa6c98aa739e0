"""Workers' parts of datasets: by files, by elements, as datasets ask for it."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from programs import program
from programs_data import walk

raw = tf.raw_ops
Dataset = tf.data.Dataset
OFF, AUTO, FILE, DATA, HINT = range(-1, 4)
NAMES = ['r0', 'r1', 'r2', 'r3']


def sharded(d, workers, index, policy):
    specs = tf.nest.flatten(d.element_spec)
    made = raw.AutoShardDataset(input_dataset=d._variant_tensor, num_workers=workers, index=index, auto_shard_policy=policy,
                                output_types=[s.dtype for s in specs], output_shapes=[s.shape for s in specs])
    return made, tf.data.experimental.from_variant(made, d.element_spec)


def show(p, d, workers=2, index=1, policy=AUTO, count=9):
    made, d = sharded(d, p.hide(np.int64(workers)), p.hide(np.int64(index)), policy)
    p.step(raw.DatasetCardinality(input_dataset=made))
    walk(p, d, count)


def record_file(records):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'r')
        with tf.io.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)
        with open(path, 'rb') as f:
            return f.read()


def files(p):
    for k, name in enumerate(NAMES):
        p.write(name, record_file([b'%d%d' % (k, j) for j in range(3)]))
    return tf.data.TFRecordDataset(NAMES)


def one(x):
    return Dataset.from_tensors(x)


def names():
    return Dataset.from_tensor_slices(NAMES)


READ = tf.data.TFRecordDataset
CASES = [lambda f: f, lambda f: f.map(lambda x: x + '!').batch(2).prefetch(1), lambda f: f.shuffle(3, seed=1), lambda f: f.repeat(2).take(8).skip(1),
         lambda f: names().shuffle(4, seed=1).interleave(READ, cycle_length=2), lambda f: Dataset.zip((f, f)), lambda f: Dataset.zip((f, Dataset.range(9))),
         lambda f: f.concatenate(f.take(3)), lambda f: f.cache(), lambda f: f.filter(lambda x: x != '11').batch(2).unbatch(),
         lambda f: f.scan(np.int64(0), lambda s, x: (s, x)), lambda f: Dataset.range(4).flat_map(Dataset.range), lambda f: f.unique(),
         lambda f: f.apply(tf.data.experimental.assert_cardinality(12)), lambda f: f.flat_map(one), lambda f: f.map(lambda x: x + '!').interleave(one),
         lambda f: names().map(lambda x: x).flat_map(READ).flat_map(one), lambda f: Dataset.range(2).flat_map(lambda i: f),
         lambda f: names().repeat(2).shuffle(9, seed=3).flat_map(READ), lambda f: names().shuffle(4, seed=1).map(lambda x: x).shuffle(3, seed=2).flat_map(READ),
         lambda f: Dataset.range(7).batch(2), lambda f: tf.data.TFRecordDataset(['r0']),
         lambda f: tf.data.experimental.from_variant(raw.TFRecordDataset(filenames=NAMES, compression_type='', buffer_size=0), f.element_spec)]


@program(46)
def sharded_files(p):
    f = files(p)
    show(p, CASES[p.number % len(CASES)](f), policy=(AUTO, FILE)[p.number // len(CASES)])


@program(8)
def sharded_as_told(p):
    workers, index = p.pick((2, 1), (3, 0), (9, 7), (9, 1), (1, 0))
    f = files(p)
    show(p, p.pick(f, Dataset.range(7)), workers, index, p.pick(OFF, DATA, HINT))


@program(4)
def sharded_by_hint(p):
    d = Dataset.range(7).shard(-1, p.pick(0, -1))
    show(p, d, policy=HINT)
    walk(p, sharded(d.map(lambda x: x * 2), 2, 0, HINT)[1], 6)
    walk(p, d, 2)


@program(6)
def sharded_refused(p):
    workers, index, policy = p.pick((0, 0, AUTO), (-1, 0, AUTO), (2, 2, AUTO), (2, -1, AUTO), (1, 5, DATA), (2, 1, 9))
    p.step(raw.DatasetCardinality(input_dataset=sharded(Dataset.range(7), p.hide(np.int64(workers)), p.hide(np.int64(index)), policy)[0]))


# ---- RecordInput: with one thread that reads, and a buffer that holds an epoch; else TensorFlow's order depends on threads ----

@program(8)
def record_input(p):
    """Epochs of at most 16 records, which TensorFlow puts into its buffer at once; or the first one only."""
    files(p)
    p.write('long', record_file([b'%d' % j for j in range(40)]))
    p.write('empty', b'')
    is_long = bool(p.rng.integers(2))
    chosen = [p.pick(*NAMES, 'empty') for _ in range(int(p.rng.integers(1, 5)))] + ['long' if is_long else 'r1']
    made = raw.RecordInput(file_pattern=','.join(chosen), batch_size=4 if is_long else int(p.rng.integers(1, 9)), file_parallelism=1, file_buffer_size=1000,
                           file_random_seed=p.pick(301, 7), file_shuffle_shift_ratio=p.pick(0., .3, .5, .9))
    for _ in range(9):
        p.step(made)


@program(4)
def record_input_refused(p):
    p.write('bad', b'this is not a record at all')
    name, says = p.pick(('none*', 'Found no files at none*'), ('bad', 'corrupted record at 0'))
    made = raw.RecordInput(file_pattern=name, batch_size=2, file_parallelism=1)
    for _ in range(2):
        p.step(made, says=says)
