"""TensorFlow's client walks over datasets on a server: one-shot, initialisable and shared iterators, functions that capture state."""
import numpy as np
import pytest

from clusters import error_of, session, tf, tf1, unique


def elements(s, element):
    """All that come before the end."""
    got = []
    while True:
        try:
            got.append(s.run(element))
        except tf.errors.OutOfRangeError as error:
            assert 'End of sequence' in error.message
            return got


def test_one_shot_iterator(any_server):
    with session(any_server) as s:
        dataset = tf.data.Dataset.range(10).filter(lambda x: x % 3 > 0).map(lambda x: x * x, num_parallel_calls=2).batch(4).prefetch(2)
        got = elements(s, tf1.data.make_one_shot_iterator(dataset).get_next())
        assert [x.tolist() for x in got] == [[1, 4, 16, 25], [49, 64]]


def test_initializable_iterator(any_server):
    with session(any_server) as s:
        factor = tf1.get_variable(unique(), initializer=tf.constant(2, tf.int64), use_resource=True)
        count = tf1.placeholder(tf.int64, [])
        dataset = tf.data.Dataset.range(count).map(lambda x: x * factor)
        iterator = tf1.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
        assert isinstance(error_of(s.run, element), tf.errors.FailedPreconditionError)
        s.run(factor.initializer)
        s.run(iterator.initializer, {count: 3})
        assert elements(s, element) == [0, 2, 4]
        s.run(factor.assign(5))
        s.run(iterator.initializer, {count: 4})
        assert elements(s, element) == [0, 5, 10, 15]


def test_iterators_of_two_sessions_are_two(server):
    with tf.Graph().as_default():
        element = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(2)).get_next()
        for _ in range(2):
            with tf1.Session(server.target) as s:
                assert elements(s, element) == [0, 1]


def test_an_error_in_a_function_names_its_node(server):
    with session(server) as s:
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(2).map(lambda x: tf.constant(1, tf.int64) // x))
        s.run(iterator.initializer)
        error = error_of(s.run, iterator.get_next())
        assert isinstance(error, tf.errors.InvalidArgumentError)
        assert 'floordiv' in error.message and 'Integer division by zero' in error.message


def test_a_step_that_waits_for_an_element_can_be_given_up(server):
    with session(server) as s:
        queue = tf1.FIFOQueue(3, tf.int64, shared_name=unique())
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(3).map(lambda x: x + queue.dequeue()))
        element = iterator.get_next()
        s.run(iterator.initializer)
        options = tf1.RunOptions(timeout_in_ms=200)
        assert isinstance(error_of(s.run, element, options=options), tf.errors.DeadlineExceededError)


def test_training_from_a_dataset(server):
    with session(server) as s:
        x = np.linspace(-1, 1, 64, dtype=np.float32)
        dataset = tf.data.Dataset.from_tensor_slices((x, 3 * x + 1)).shuffle(64, seed=1).repeat().batch(16).prefetch(2)
        iterator = tf1.data.make_initializable_iterator(dataset)
        xs, ys = iterator.get_next()
        w, b = (tf1.get_variable(unique(), initializer=0.0, use_resource=True) for _ in 'wb')
        train = tf1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_mean((w * xs + b - ys)**2))
        s.run([w.initializer, b.initializer, iterator.initializer])
        for _ in range(60):
            s.run(train)
        assert s.run([w, b]) == pytest.approx([3, 1], abs=1e-3)


def test_an_iterator_is_saved_and_restored(server, tmp_path):
    """By the client's own Saver, with a variable beside it."""
    with session(server) as s:
        dataset = tf.data.Dataset.range(20).shuffle(6, seed=1).map(lambda x: x * x).batch(3).repeat(2).prefetch(2)
        iterator = tf1.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
        steps = tf1.get_variable(unique(), initializer=0, use_resource=True)
        saver = tf1.train.Saver({'steps': steps, 'iterator': tf1.data.experimental.make_saveable_from_iterator(iterator)})
        s.run([steps.initializer, iterator.initializer])
        before = [s.run(element).tolist() for _ in range(4)]
        s.run(steps.assign(4))
        saver.save(s, str(tmp_path / 'model'))
        after = [x.tolist() for x in elements(s, element)]
        s.run([steps.initializer, iterator.initializer])
        assert s.run(element).tolist() == before[0]
        saver.restore(s, str(tmp_path / 'model'))
        assert s.run(steps) == 4
        assert [x.tolist() for x in elements(s, element)] == after


def test_an_iterator_with_state_outside_is_not_saved(server, tmp_path):
    with session(server) as s:
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(3).map(lambda x: x + tf.random.uniform([], 0, 9, tf.int64)))
        saver = tf1.train.Saver({'iterator': tf1.data.experimental.make_saveable_from_iterator(iterator)})
        s.run(iterator.initializer)
        error = error_of(saver.save, s, str(tmp_path / 'model'))
        assert isinstance(error, tf.errors.FailedPreconditionError) and 'is stateful' in error.message


def test_an_iterator_deals_elements_to_devices(server):
    from tensorflow.python.data.ops import multi_device_iterator_ops
    with session(server) as s:
        iterator = multi_device_iterator_ops.MultiDeviceIterator(tf.data.Dataset.range(5), ['/cpu:0', '/cpu:0'])
        s.run(iterator.initializer)
        first, second = iterator.get_next()
        assert [s.run([first, second]) for _ in range(2)] == [[0, 1], [2, 3]]
        assert s.run(first) == 4
        assert isinstance(error_of(s.run, second), tf.errors.OutOfRangeError)
