"""Steps of several clients that a server puts together to batches."""
import threading

import numpy as np
import pytest

from clusters import error_of, session, tf, tf1, unique

raw = tf.raw_ops
FOREVER = 10**8  # microseconds


def batched(f, x, **attrs):
    f = tf.function(f, input_signature=[tf.TensorSpec(None, tf.float32)], autograph=False).get_concrete_function()
    attrs = {'num_batch_threads': 2, 'max_batch_size': 4, 'batch_timeout_micros': FOREVER, 'shared_name': unique(), **attrs}
    return raw.BatchFunction(in_tensors=[x], captured_tensors=[], f=f, Tout=[tf.float32], **attrs)[0]


def run_all(calls):
    """The results of calls at the same time: values, or errors."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except tf.errors.OpError as error:
            results[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_steps_fill_batches(server):
    """No batch ends but by being full."""
    with session(server) as s:
        x = tf1.placeholder(tf.float32, [None])
        y = batched(lambda x: x * 10 + tf.cast(tf.shape(x)[0], tf.float32), x)
        results = run_all([lambda i=i: s.run(y, {x: [i]}) for i in range(16)])
        np.testing.assert_array_equal(results, [[i * 10 + 4] for i in range(16)])


def test_batch_and_unbatch(server):
    with session(server) as s:
        x = tf1.placeholder(tf.float32, [None])
        batch = raw.Batch(in_tensors=[x], num_batch_threads=1, max_batch_size=4, batch_timeout_micros=FOREVER,
                          grad_timeout_micros=0, shared_name=unique())
        y = raw.Unbatch(batched_tensor=batch.batched_tensors[0] * 2, batch_index=batch.batch_index, id=batch.id,
                        timeout_micros=FOREVER, shared_name=unique())
        results = run_all([lambda i=i: s.run(y, {x: [i]}) for i in range(8)])
        np.testing.assert_array_equal(results, [[i * 2] for i in range(8)])


def test_an_error_reaches_every_step(server):
    with session(server) as s:
        x = tf1.placeholder(tf.float32, [None])
        y = batched(lambda x: tf.debugging.check_numerics(x, 'not good'), x)
        for error in run_all([lambda v=v: s.run(y, {x: [v]}) for v in (1, 2, np.nan, 3)]):
            assert isinstance(error, tf.errors.InvalidArgumentError) and 'not good' in error.message


@pytest.mark.parametrize('splits', [False, True])
def test_late_steps_do_not_wait(server, splits):
    with session(server) as s:
        x = tf1.placeholder(tf.float32, [None])
        y = batched(lambda x: -x, x, batch_timeout_micros=1000, max_batch_size=8, max_enqueued_batches=100,
                    enable_large_batch_splitting=splits, allowed_batch_sizes=[1, 3] if splits else [])
        calls = [np.arange(i % 5 + 1) + 10. * i for i in range(24)]
        for value, result in zip(calls, run_all([lambda v=v: s.run(y, {x: v}) for v in calls])):
            np.testing.assert_array_equal(result, -value)


def test_a_cancelled_step_leaves_the_others(server):
    """Who waits for a batch to be full runs out of time; the batch goes on without it."""
    with session(server) as s:
        x = tf1.placeholder(tf.float32, [None])
        y = batched(lambda x: x * 0 + tf.cast(tf.shape(x)[0], tf.float32), x)
        late = tf1.RunOptions(timeout_in_ms=50)
        error = error_of(lambda: s.run(y, {x: [1, 2, 3]}, options=late))
        assert isinstance(error, (tf.errors.DeadlineExceededError, tf.errors.CancelledError))
        results = run_all([lambda: s.run(y, {x: [1, 2]})] * 2)
        np.testing.assert_array_equal(results, [[4, 4]] * 2)
