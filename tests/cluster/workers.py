"""Workers of one training program, each with a client of its own."""
import threading

import tensorflow as tf

import clusters

tf1 = tf.compat.v1


def setter(worker, ps=2):
    return tf1.train.replica_device_setter(ps_tasks=ps, worker_device=f'/job:worker/task:{worker}')


def in_threads(*functions):
    """Runs them side by side, and raises what one of them raised."""
    errors = []

    def guarded(fn):
        try:
            fn()
        except BaseException as e:  # handed to the test's own thread
            errors.append(e)
    threads = [threading.Thread(target=guarded, args=(fn,), daemon=True) for fn in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), 'a worker hangs'


class Ready(tf1.train.SessionRunHook):
    """Says when the chief has made the variables; the others would look again only after half a minute."""

    def __init__(self, event):
        self.event = event

    def after_create_session(self, session, coord):
        self.event.set()


def monitored(cluster, task, is_chief, ready, hooks=()):
    """A session of one of several workers."""
    if not is_chief:
        assert ready.wait(120)
    return tf1.train.MonitoredTrainingSession(cluster.tasks['worker', task].target, is_chief=is_chief,
                                              hooks=[*hooks, Ready(ready)], stop_grace_period_secs=1,
                                              config=tf1.ConfigProto(operation_timeout_in_ms=clusters.PATIENCE_MS))
