"""Iterators, generators and tables in branches and loops, over tasks, in steps that fail, and in sessions that come and go."""
import threading

import numpy as np
import pytest

import clusters
from clusters import tf, tf1, unique
from compare import error_of


def taken_or_not(s, made, p, flags):
    return [s.run(made, {p: flag}) for flag in flags]


def test_an_iterator_in_a_branch(check):
    """It moves on only where its branch is taken."""
    def program(s, form):
        p = tf1.placeholder(tf.bool, [])
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(10).map(lambda x: x * x).filter(lambda x: x % 3 < 2))
        one_shot = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(100, 103))
        first = tf1.cond(p, iterator.get_next, lambda: tf.constant(-1, tf.int64))
        second = tf1.cond(p, lambda: tf.constant(-1, tf.int64), one_shot.get_next)
        s.run(iterator.initializer)
        out = {'both': taken_or_not(s, [first, second], p, [True, True, False, True, False, False])}
        out['end'] = error_of(s.run, [first, second], {p: False})
        out['after'] = s.run(first, {p: True})
        return out
    check(program)


def test_an_iterator_in_a_loop(check):
    """Takes elements until a sum is large enough; the next loop goes on behind them, until the end fails it."""
    def program(s, form):
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(1, 30).map(lambda x: (x, tf.strings.as_string(x))))
        most = tf1.placeholder(tf.int64, [])

        def body(total, words):
            x, word = iterator.get_next()
            return total + x, tf.strings.join([words, word], ',')
        total, words = tf1.while_loop(lambda total, _: total < most, body, [tf.constant(0, tf.int64), tf.constant('')],
                                      parallel_iterations=1)
        s.run(iterator.initializer)
        out = {'sums': [s.run([total, words], {most: n}) for n in (10, 0, 40, 100)]}
        out['end'] = error_of(s.run, total, {most: 10**6})
        s.run(iterator.initializer)
        out['again'] = s.run(words, {most: 20})
        return out
    check(program)


def test_generators_and_tables_in_branches_and_loops(check):
    def program(s, form):
        p = tf1.placeholder(tf.bool, [])
        draws = tf.random.Generator.from_seed(5, alg='philox')
        drawn = tf1.cond(p, lambda: draws.normal([3]), lambda: tf.zeros([3]))
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0, name=unique())
        words = tf.constant(['a', 'b', 'a', 'c', 'a', 'b'])

        def body(i):
            word = words[i]
            with tf.control_dependencies([table.insert(word, table.lookup(word) + 1)]):
                return i + 1
        count = tf1.while_loop(lambda i: i < 6, body, [tf.constant(0)], parallel_iterations=1)
        look = tf1.cond(p, lambda: table.lookup(tf.constant(['a', 'b', 'z'])), lambda: tf.zeros([3], tf.int64))
        s.run([tf1.global_variables_initializer(), draws.state.initializer])
        out = {'drawn': taken_or_not(s, drawn, p, [True, False, True])}
        out['counts'] = [(s.run(count), s.run([look, table.size()], {p: flag})) for flag in (True, False, True)]
        return out
    check(program)


def test_elements_that_fail(check):
    """An element that fails is one step's failure: the next step gets the next element."""
    def program(s, form):
        def parse(x):
            text = tf.where(x % 4 < 1, 'bad', tf.strings.as_string(x))
            return tf.strings.to_number(text, tf.int32), tf.io.decode_raw(tf.strings.join(['1234', '5678']), tf.int32)
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(1, 10).map(parse))
        number, raw = iterator.get_next()
        doubled = number * 2
        s.run(iterator.initializer)
        out = []
        while True:
            try:
                out.append(s.run([doubled, raw]))
            except tf.errors.InvalidArgumentError as error:
                assert 'bad' in error.message
                out.append('bad')
            except tf.errors.OutOfRangeError:
                return out
    check(program)


# ---- over tasks ----

def test_one_shot_iterators_over_two_tasks(cluster):
    """One on each, read by the other in the same step; each is made once, on its task, for all steps of the session."""
    with clusters.session(cluster) as s:
        elements = []
        for i, task in enumerate(('/job:ps/task:1', '/job:worker/task:1')):
            with tf.device(task):
                dataset = tf.data.Dataset.range(10 * i, 10 * i + 4).map(lambda x: {'x': x, 's': tf.sparse.from_dense([x, 0, x + 1])}).prefetch(1)
                elements.append(tf1.data.make_one_shot_iterator(dataset).get_next())
        with tf.device('/job:worker/task:0'):
            total = elements[0]['x'] + elements[1]['x'] * 100
            dense = tf.sparse.to_dense(elements[0]['s']) + tf.sparse.to_dense(elements[1]['s'])
        got = [s.run([total, dense]) for _ in range(2)]
        got.append(s.run([total]))  # another signature goes on where the last was
        got.append(s.run([total, elements[0]['x'] + 1]))
        assert [int(g[0]) for g in got] == [1000, 1101, 1202, 1303]
        assert got[1][1].tolist() == [12, 0, 14] and got[3][1] == 4
        assert isinstance(clusters.error_of(s.run, total), tf.errors.OutOfRangeError)


def test_a_session_is_closed_while_another_of_its_graph_is_made(cluster):
    """Each has its own one-shot iterators and handles, and none takes the other's with it."""
    with tf.Graph().as_default() as graph:
        with tf.device('/job:ps/task:0'):
            element = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
            start = tf1.data.make_initializable_iterator(tf.data.Dataset.range(5))
            held = start.get_next()
        with tf.device('/job:worker/task:0'):
            y = element * 2 + held
        errors = []

        def come_and_go(worker):
            try:
                for _ in range(8):
                    s = tf1.Session(cluster.tasks['worker', worker].target, graph=graph,
                                    config=tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS, isolate_session_state=True))
                    s.run(start.initializer)
                    assert [int(s.run(y)) for _ in range(3)] == [0, 3, 6]
                    s.close()
            except BaseException as e:  # pylint: disable=broad-except
                errors.append(e)
        threads = [threading.Thread(target=come_and_go, args=[i % 2]) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert not errors and not any(t.is_alive() for t in threads), errors


def test_a_step_that_waits_when_its_session_is_closed(cluster):
    """Its iterator waits for a queue on another task: the step ends, and a session of the same graph works."""
    with tf.Graph().as_default() as graph:
        with tf.device('/job:ps/task:1'):
            queue = tf1.FIFOQueue(5, tf.int64, shared_name=unique())
            put = queue.enqueue(tf.constant(7, tf.int64))
        with tf.device('/job:worker/task:1'):
            element = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
        with tf.device('/job:worker/task:0'):
            y = tf.strings.join([tf.strings.as_string(element), tf.strings.as_string(queue.dequeue())], '-')
        config = tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS)
        first = tf1.Session(cluster.target, graph=graph, config=config)
        ended = []
        waiter = threading.Thread(target=lambda: ended.append(clusters.error_of(first.run, y)))
        waiter.start()
        clusters.wait_until(lambda: cluster.open_steps() > 0)
        second = tf1.Session(cluster.target, graph=graph, config=config)
        first.close()
        second.run(put)
        assert second.run(y) == b'0-7'
        waiter.join(60)
        assert isinstance(ended[0], (tf.errors.CancelledError, tf.errors.AbortedError)), ended
        second.close()
