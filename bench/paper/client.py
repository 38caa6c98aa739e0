"""What the paper's experiments share: TensorFlow's client, and workers that are its threads."""
import os
import pathlib
import sys
import threading

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def default_weir():
    build = os.environ.get('WEIR_BUILD', BENCH.parent / 'build' / 'release')
    return str(pathlib.Path(build) / 'cli' / 'weir')


def open_session(cluster, index, graph):
    """Of worker |index|: what others do is no business of its steps."""
    config = tf1.ConfigProto(device_filters=['/job:ps', '/job:worker/task:%d' % index])
    return tf1.Session('grpc://' + cluster.workers[index], graph=graph, config=config)


def run_workers(count, work):
    """Runs work(index, barrier) for each worker on a thread of its own, and raises what one of them raised first."""
    barrier, errors = threading.Barrier(count), []

    def guarded(index):
        try:
            work(index, barrier)
        except threading.BrokenBarrierError:
            pass  # another failed
        except Exception as e:
            errors.append(e)
            barrier.abort()

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
