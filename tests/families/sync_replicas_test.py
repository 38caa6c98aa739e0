"""tf.data and SyncReplicasOptimizer: two workers, each with its shard, step together on two parameter servers. Both clusters, Weir's
and TensorFlow's, get the same numbers: a step is the mean of both workers' gradients, in whatever order they come."""
import threading

import numpy as np
import pytest

import clusters
from clusters import tf, tf1
from workers import in_threads, monitored, setter

STEPS = 5


def shard(index):
    rng = np.random.default_rng(14)
    x = rng.standard_normal([32, 3]).astype(np.float32)
    y = x @ np.float32([1, -2, 0.5])
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shard(2, index).repeat().batch(8).prefetch(1)
    return tf1.data.make_one_shot_iterator(dataset).get_next()


def worker(cluster, index, ready, results):
    with tf.Graph().as_default():
        with tf1.device(setter(index)):
            step = tf1.train.get_or_create_global_step()
            w = tf1.get_variable('w', initializer=tf.zeros([3, 1]), use_resource=False)
            b = tf1.get_variable('b', initializer=tf.zeros([]), use_resource=False)
            with tf1.device(f'/job:worker/task:{index}'):
                x, y = shard(index)
            loss = tf.reduce_mean(((x @ w)[:, 0] + b - y)**2)
            optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(0.2), 2, 2)
            train = optimizer.minimize(loss, global_step=step)
            final = [w, b, step]
        hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
        with monitored(cluster, index, index == 0, ready, [hook]) as s:
            losses = [s.run([loss, train])[0] for _ in range(STEPS)]
            results[index] = losses, s.run(final) if index == 0 else None
            results['done'].wait(60)  # the queue runners of the chief hand out the tokens


def train(cluster):
    results, ready = {'done': threading.Barrier(2)}, threading.Event()
    in_threads(*[lambda i=i: worker(cluster, i, ready, results) for i in range(2)])
    return [results[0], results[1]]


# The chief's queue runner is waiting when its session is closed, and TensorFlow's thread says so.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnhandledThreadExceptionWarning')
def test_two_workers_step_together(cluster):
    tensorflow = clusters.TensorFlowCluster()
    try:
        want = train(tensorflow)
    finally:
        tensorflow.stop()
    got = train(cluster)
    for i in range(2):
        np.testing.assert_allclose(got[i][0], want[i][0], rtol=1e-5)
        assert got[i][0][-1] < 0.5 * got[i][0][0]
    for a, b in zip(got[0][1], want[0][1]):
        np.testing.assert_allclose(a, b, rtol=1e-5)
