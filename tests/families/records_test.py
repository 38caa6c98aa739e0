"""Training from TFRecord files through every kind of iterator: one-shot, initialisable, reinitialisable, and chosen by its handle."""
import numpy as np
import pytest

from clusters import tf, tf1
from compare import falls, train, variables

pytestmark = pytest.mark.parametrize('check', ['graph', 'tasks'], indirect=True)  # no loops, no functions but those of the data


@pytest.fixture(scope='module')
def paths(tmp_path_factory):
    """Two files of examples, the second compressed."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp('records')
    for part, compression in ((0, ''), (1, 'GZIP')):
        with tf.io.TFRecordWriter(str(folder / f'{part}.tfrecord'), compression) as writer:
            for i in range(24):
                x = rng.standard_normal(4).astype(np.float32)
                features = {'x': tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                            'y': tf.train.Feature(int64_list=tf.train.Int64List(value=[int(x[0] + x[1] > 0)])),
                            'name': tf.train.Feature(bytes_list=tf.train.BytesList(value=[f'{part}-{i}'.encode()]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return [str(folder / f'{part}.tfrecord') for part in range(2)]


def parse(record):
    made = tf.io.parse_single_example(record, {
        'x': tf.io.FixedLenFeature([4], tf.float32), 'y': tf.io.FixedLenFeature([], tf.int64),
        'name': tf.io.FixedLenFeature([], tf.string), 'more': tf.io.VarLenFeature(tf.float32)})
    return made['x'], made['y'], made['name']


def examples(path, compression=''):
    return tf.data.TFRecordDataset(path, compression).map(parse, num_parallel_calls=2)


def model(x, y):
    v = variables(w=[4, 8], b=[8], u=[8, 2])
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, v['w']) + v['b']), v['u'])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def rest(s, element):
    got = []
    while True:
        try:
            got.append(s.run(element))
        except tf.errors.OutOfRangeError:
            return got


def test_one_shot(check, paths):
    def program(s, _):
        dataset = examples(paths[0]).shuffle(10, seed=3).repeat(3).batch(16, drop_remainder=True).prefetch(1)
        x, y, name = tf1.data.make_one_shot_iterator(dataset).get_next()
        losses = train(s, model(x, y), 3, optimizer=tf1.train.AdamOptimizer(0.1))
        return {'losses': falls(losses, 1), 'rest': rest(s, [x, y, name])}
    check(program)


def test_initializable(check, paths):
    def program(s, _):
        path = tf1.placeholder(tf.string, [])
        count = tf1.placeholder_with_default(tf.constant(8, tf.int64), [])
        dataset = tf.data.TFRecordDataset(path, 'GZIP').map(parse).batch(count)
        iterator = tf1.data.make_initializable_iterator(dataset)
        x, y, name = iterator.get_next()
        s.run(iterator.initializer, {path: paths[1]})
        losses = train(s, model(x, y), 3)
        s.run(iterator.initializer, {path: paths[1], count: 9})
        return {'losses': losses, 'after': rest(s, name)}
    check(program)


def test_reinitializable_and_feedable(check, paths):
    def program(s, _):
        first, second = examples(paths[0]).take(12).repeat().batch(6), examples([paths[1]], 'GZIP').take(5).batch(5)
        either = tf1.data.Iterator.from_structure(tf1.data.get_output_types(first), tf1.data.get_output_shapes(first))
        starts = [either.make_initializer(dataset) for dataset in (first, second)]
        one_shot = tf1.data.make_one_shot_iterator(first)
        handle = tf1.placeholder(tf.string, [])
        chosen = tf1.data.Iterator.from_string_handle(handle, tf1.data.get_output_types(first), tf1.data.get_output_shapes(first))
        x, y, name = chosen.get_next()
        handles = s.run([either.string_handle(), one_shot.string_handle()])
        s.run(starts[0])
        out = {'losses': train(s, model(x, y), 4, {handle: handles[0]})}
        s.run(starts[1])
        out['second'] = s.run(name, {handle: handles[0]})
        out['one shot'] = s.run([name, y], {handle: handles[1]})
        s.run(starts[0])
        out['again'] = [s.run(name, {handle: h}) for h in handles]
        return out
    check(program)
