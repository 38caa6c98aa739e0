"""The state of iterators, saved and restored: what random_pipelines.py --saves does not draw."""
import gzip
import os
import tempfile

import numpy as np
import tensorflow as tf
from programs import program
from programs_io import record_file, text_file

raw, tf1 = tf.raw_ops, tf.compat.v1
Dataset = tf.data.Dataset
IGNORE, FAIL = 1, 2


def state_of(iterator, policy=IGNORE):
    return raw.SerializeIterator(resource_handle=iterator._iterator_resource, external_state_policy=policy)


def restored(iterator, state):
    return raw.DeserializeIterator(resource_handle=iterator._iterator_resource, serialized=state)


def take_over(p, dataset, before, after=12, by_file=True):
    """Elements of one iterator, then those of another that was restored from its state."""
    one, two = (tf1.data.make_initializable_iterator(dataset) for _ in range(2))
    first, second = (tf.nest.flatten(i.get_next()) for i in (one, two))
    p.step(one.initializer)
    for _ in range(before):
        p.step(*first)
    where = dict(prefix='saved', tensor_names=['it'], shape_and_slices=[''])
    if by_file:
        p.step(raw.SaveV2(tensors=[state_of(one)], **where))
    p.step(*first)
    p.step(two.initializer)
    p.step(restored(two, raw.RestoreV2(dtypes=[tf.variant], **where)[0] if by_file else state_of(one)))
    for _ in range(after):
        p.step(*second)


# ---- datasets that random pipelines leave out ----

@program(5)
def files(p):
    names = [p.write(f'{k}.txt', text_file(p.rng)) for k in range(2)]
    records = [p.write(f'{k}.rec', record_file(p.rng)) for k in range(2)]
    pieces = p.write('pieces', b'HH' + b'abc' * 7 + b'F')
    dataset = [lambda: tf.data.TextLineDataset(names), lambda: tf.data.TFRecordDataset(records),
               lambda: tf.data.FixedLengthRecordDataset([pieces] * 2, 3, 2, 1),
               lambda: tf.data.Dataset.list_files(['*.txt', '*.rec'], shuffle=False),
               lambda: tf.data.TextLineDataset(p.write('lines.gz', gzip.compress(b'a\nbb\n\nccc\nd\n')), 'GZIP')][p.number]()
    take_over(p, dataset, int(p.rng.integers(0, 6)))


@program(4)
def groups(p):
    size = int(p.rng.integers(1, 4))
    key = lambda x: x % 3
    reducer = tf.data.experimental.Reducer(lambda _: np.int64(0), lambda s, x: s + x, lambda s: s)
    dataset = [lambda: Dataset.range(15).group_by_window(key, lambda k, w: w.batch(2), size),
               lambda: Dataset.range(15).apply(tf.data.experimental.group_by_reducer(key, reducer))][p.number % 2]()
    take_over(p, dataset, int(p.rng.integers(0, 6)), by_file=False)
    take_over(p, dataset, int(p.rng.integers(0, 6)))


@program(6)
def rows(p):
    data = Dataset.range(20)
    dataset = [lambda: data.batch(4).rebatch([1, 2, 3]), lambda: data.batch(5).unbatch().batch(3),
               lambda: data.padded_batch(3),
               lambda: Dataset.from_tensor_slices(tf.sparse.from_dense([[0, 1], [2, 0], [0, 0], [3, 4]])),
               lambda: data.window(3, 2).map(lambda w: tf.data.experimental.get_single_element(w.batch(3))),
               lambda: data.map(lambda x: (x, tf.strings.as_string(x))).shuffle(tf.data.UNKNOWN_CARDINALITY, seed=3).repeat(2)][p.number]()
    dataset = dataset.map(lambda x: tf.sparse.to_dense(x)) if p.number == 3 else dataset
    take_over(p, dataset, int(p.rng.integers(0, 6)))


@program(3)
def kept_errors(p):
    """What was made ahead and failed fails when it is asked for, also after it was restored."""
    dataset = Dataset.range(9).map(lambda x: 12 // (x % 3), num_parallel_calls=2).prefetch(4)
    take_over(p, dataset, int(p.rng.integers(0, 5)))


@program(3)
def shared_seeds(p):
    dataset = Dataset.range(5).shuffle(4, seed=7, reshuffle_each_iteration=bool(p.number % 2))
    dataset = dataset.concatenate(Dataset.range(10, 12)).repeat(3) if p.number else dataset.repeat(3).prefetch(2)
    take_over(p, dataset, int(p.rng.integers(0, 12)))


# ---- what cannot be ----

@program(1)
def not_initialized(p):
    iterator = tf1.data.make_initializable_iterator(Dataset.range(3))
    p.step(state_of(iterator).op)
    other = tf1.data.make_initializable_iterator(Dataset.range(3))
    p.step(other.initializer)
    p.step(restored(iterator, state_of(other)))
    p.step(other.get_next())


@program(1)
def generators(p):
    dataset = Dataset.range(3).apply(tf.data.experimental.copy_to_device('/cpu:0'))
    iterator = tf1.data.make_initializable_iterator(dataset)
    p.step(iterator.initializer)
    p.step(iterator.get_next())
    p.step(state_of(iterator).op)
    p.step(iterator.get_next())


@program(2)
def of_another_dataset(p):
    """Where there is less in the state than is looked for."""
    one, two = (tf1.data.make_initializable_iterator(d) for d in (Dataset.range(3), Dataset.range(3).shuffle(2, seed=1)))
    p.step(one.initializer)
    p.step(two.initializer)
    p.step(restored(two, state_of(one)))
    p.step(one.get_next())


@program(6)
def external_state(p):
    """With the policy "fail" a function that has state of its own is refused, where TensorFlow does."""
    v = raw.VarHandleOp(dtype=tf.int64, shape=[], shared_name='v')
    p.step(raw.AssignVariableOp(resource=v, value=np.int64(2)))
    read = lambda: raw.ReadVariableOp(resource=v, dtype=tf.int64)
    draw = lambda x: x + tf.random.uniform([], 0, 1, tf.int64, seed=1)
    call = tf.function(draw)
    data = Dataset.range(1, 9)
    dataset = [lambda: data.map(lambda x: x * read()), lambda: data.filter(lambda x: x < read() * 9),
               lambda: data.map(lambda x: tf.cond(x > 2, lambda: draw(x), lambda: x)),
               lambda: data.map(call), lambda: data.flat_map(lambda x: Dataset.range(x).map(draw)),
               lambda: data.map(lambda x: tf.while_loop(lambda i: i < 3, lambda i: i + 1, [x])[0])][p.number]()
    iterator = tf1.data.make_initializable_iterator(dataset)
    p.step(iterator.initializer)
    p.step(iterator.get_next())
    for policy in (FAIL, IGNORE, 0, 7):
        p.step(state_of(iterator, policy).op)
    p.step(iterator.get_next())


# ---- variants in checkpoints ----

def saved_by_tensorflow(p, tensors):
    """Files of a checkpoint that TensorFlow writes."""
    with tempfile.TemporaryDirectory() as folder:
        with tf.Graph().as_default(), tf1.Session() as session:
            made = [make() for make in tensors]
            names = [f't{k}' for k in range(len(made))]
            session.run(raw.SaveV2(prefix=os.path.join(folder, 'theirs'), tensor_names=names, shape_and_slices=[''] * len(made), tensors=made))
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), 'rb') as f:
                p.write(name, f.read())


@program(3)
def lists_in_checkpoints(p):
    p.is_spread = False  # lists of what is in a device's own memory are not written
    values = [p.rng.integers(0, 99, n) for n in (3, 1)]
    lists = [lambda v=v: raw.TensorListFromTensor(tensor=v, element_shape=np.int32([])) for v in values]
    lists.append(lambda: tf.stack([make() for make in lists[:2]]))
    saved_by_tensorflow(p, lists)
    mine = dict(prefix='mine', tensor_names=['t0', 't1', 't2'], shape_and_slices=[''] * 3)
    p.step(raw.SaveV2(tensors=[make() for make in lists], **mine))
    for prefix in ('mine', 'theirs'):
        read = raw.RestoreV2(**{**mine, 'prefix': prefix}, dtypes=[tf.variant] * 3)
        for handle in (read[0], read[1], read[2][0], read[2][1]):
            p.step(raw.TensorListStack(input_handle=handle, element_shape=np.int32([]), element_dtype=tf.int64))


@program(2)
def states_as_strings(p):
    one, two = (tf1.data.make_initializable_iterator(Dataset.range(9).shuffle(4, seed=1)) for _ in range(2))
    p.step(one.initializer)
    p.step(one.get_next())
    p.step(two.initializer)
    text = raw.SerializeTensor(tensor=state_of(one))
    p.step(restored(two, raw.ParseTensor(serialized=text, out_type=tf.variant)))
    element = two.get_next()
    for _ in range(9):
        p.step(element)
