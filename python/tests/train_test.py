"""Layers, losses, optimizers, the training loop, checkpoints, events, and models."""
import gzip
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import weir as w

DATA = pathlib.Path(os.environ.get('WEIR_DATA', 'data'))
README = pathlib.Path(os.environ.get('WEIR_README', 'python/README.md'))


def mnist(count):
    with gzip.open(DATA / 'mnist' / 'train-images-idx3-ubyte.gz') as file:
        images = np.frombuffer(file.read(16 + 784 * count), np.uint8, offset=16).reshape(count, 784)
    with gzip.open(DATA / 'mnist' / 'train-labels-idx1-ubyte.gz') as file:
        labels = np.frombuffer(file.read(8 + count), np.uint8, offset=8)
    return (images / 255).astype(np.float32), labels.astype(np.int64)


def build():
    w.set_seed(1)
    x, y = w.placeholder(w.float32, shape=[None, 784], name='x'), w.placeholder(w.int64, shape=[None])
    images = w.reshape(x, [-1, 28, 28, 1])
    hidden = w.layers.max_pool2d(w.layers.conv2d(images, 8, 3, activation='relu', padding='SAME'), 2)
    hidden = w.layers.batch_norm(w.layers.dense(w.layers.flatten(hidden), 32, activation='relu'), is_training=True)
    logits = w.layers.dense(hidden, 10, kernel_init=w.initializers.glorot_normal(3))
    return x, y, logits, w.losses.sparse_softmax_cross_entropy(y, logits)


def test_mnist_learns():
    images, labels = mnist(2000)
    x, y, logits, loss = build()
    rate = w.schedules.exponential_decay(0.01, w.global_step(), 100, 0.9)
    step = w.adam(rate, beta1=0.8).minimize(loss, global_step=w.global_step(), clip_global_norm=5)
    losses = []
    with w.Session() as session:
        result = w.fit(session, step, loss, {x: images, y: labels}, batch_size=50, max_steps=60, seed=3, quiet=True,
                       on_step=lambda state: losses.append(state.loss))
        assert result.taken == 60 and result.reason == 'steps'
        assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:10]) and len(losses) == 60
        accuracy = w.metrics.accuracy(y, w.argmax(logits, 1))
        session.run(accuracy.reset)
        assert session.run(accuracy.updated, {x: images[:500], y: labels[:500]}) > 0.75


@pytest.mark.parametrize('make', [lambda: w.sgd(0.1), lambda: w.momentum(0.05, nesterov=True), lambda: w.adam(0.1), lambda: w.adamax(0.1),
                                  lambda: w.adagrad(0.5), lambda: w.rmsprop(0.05, momentum=0.1), lambda: w.ftrl(0.5, l2=0.001),
                                  lambda: w.adadelta(50.0), lambda: w.proximal_sgd(0.1)])
def test_optimizers_descend(make):
    v = w.Variable(np.array([3, -2], np.float32))
    loss = w.mean(w.square(v - 1))
    step = make().minimize(loss)
    with w.Session() as session:
        session.init()
        first = session.run(loss)
        for _ in range(20):
            session.run(step)
        assert session.run(loss) < first


def test_gradients_of_ones_own_are_applied():
    v, u = w.Variable([1.0, 2.0]), w.Variable([5.0])
    grads = w.gradients(w.sum(w.square(v)) + 0 * w.sum(u), [v, u])
    step = w.sgd(1.0).apply(list(zip(w.clip_by_global_norm(grads, 1.0), [v, u])))
    with w.Session() as session:
        session.init()
        session.run(step)
        np.testing.assert_allclose(session.run(v), np.array([1, 2]) * (1 - 1 / np.sqrt(5)), rtol=1e-5)


def line():
    x = w.placeholder(w.float32, shape=[None, 1])
    v = w.Variable([0.0], name='v')
    loss = w.mean(w.square(x * v - 2 * x))
    return x, v, loss, w.sgd(0.1).minimize(loss)


def test_fit_takes_iterables_and_callbacks():
    x, v, loss, step = line()
    with w.Session() as session:
        result = w.fit(session, step, loss, ({x: np.ones((4, 1))} for _ in range(7)), quiet=True)
        assert (result.taken, result.reason) == (7, 'data')
        result = w.fit(session, step, loss, {x: np.ones((40, 1))}, max_steps=100, quiet=True, on_step=lambda s: s.step == 5)
        assert (result.taken, result.reason) == (5, 'request')
        result = w.fit(session, step, loss, {x: np.ones((40, 1))}, max_steps=100, quiet=True, evaluate=lambda s: 1.0, evaluate_every=10,
                       patience=2)
        assert result.reason == 'metric'
        with pytest.raises(ZeroDivisionError):
            w.fit(session, step, loss, {x: np.ones((40, 1))}, max_steps=10, quiet=True, on_step=lambda s: 1 / 0)
        with pytest.raises(KeyError):
            w.fit(session, step, loss, ({}[i] for i in range(3)), quiet=True)
        with pytest.raises(TypeError, match='no option'):
            w.fit(session, step, loss, max_step=3)


def test_fit_and_ctrl_c():
    x, v, loss, step = line()

    def press(state):
        if state.step == 3:
            os.kill(os.getpid(), signal.SIGINT)
    with w.Session() as session, pytest.raises(KeyboardInterrupt):
        w.fit(session, step, loss, {x: np.ones((40, 1))}, quiet=True, on_step=press, max_steps=100000)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_fit_in_a_thread():
    x, v, loss, step = line()
    results = []
    with w.Session() as session:
        thread = threading.Thread(target=lambda: results.append(w.fit(session, step, loss, {x: np.ones((9, 1))}, max_steps=5, quiet=True)))
        thread.start()
        thread.join()
    assert results[0].taken == 5


def test_progress_of_a_notebook(monkeypatch):
    shown = []

    class Display:
        def update(self, what):
            shown.append(what)

    class IPython:
        HTML = str
        display = staticmethod(lambda what, display_id: Display())
        get_ipython = staticmethod(lambda: type('Shell', (), {'kernel': 1}))
    monkeypatch.setitem(sys.modules, 'IPython', IPython)
    monkeypatch.setitem(sys.modules, 'IPython.display', IPython)
    x, v, loss, step = line()
    with w.Session() as session:
        w.fit(session, step, loss, {x: np.ones((40, 1))}, max_steps=5)
    assert '<progress' in shown[-1] and 'step 5/5' in shown[-1]


def test_checkpoints_savers_and_resuming(tmp_path):
    x, v, loss, step = line()
    saver = w.Saver(max_to_keep=2)
    with w.Session() as session:
        w.fit(session, step, loss, {x: np.ones((40, 1))}, max_steps=6, quiet=True, saver=saver, directory=tmp_path)
        learnt = session.run(v)
        assert w.latest_checkpoint(tmp_path) == str(tmp_path / 'model.ckpt-6')
        session.run(v.assign([7.0]))
        result = w.fit(session, step, loss, {x: np.ones((40, 1))}, max_steps=8, quiet=True, saver=saver, directory=tmp_path)
        assert result.is_resumed and result.taken == 2 and abs(session.run(v)[0] - 2) < abs(learnt[0] - 2)
        path = saver.save(session, tmp_path / 'mine', 3)
        session.run(v.assign([7.0]))
        saver.restore(session, path)
        assert session.run(v)[0] != 7
        session.save(tmp_path / 'all')
        session.run(v.assign([7.0]))
        session.restore(tmp_path / 'all')
        assert session.run(v)[0] != 7
        with pytest.raises(w.NotFoundError, match='nothing'):
            session.restore(tmp_path / 'nothing')
    assert list(tmp_path.glob('events.out.tfevents.*'))


def test_events_and_summaries(tmp_path):
    summary = w.summaries.scalar('loss', w.constant(2.5))
    with w.Session() as session, w.Events(tmp_path) as events:
        events.scalar('other', 1.5, 1)
        events.summary(session.run(summary), 1)
        events.graph(session.graph)
    data = next(tmp_path.iterdir()).read_bytes()
    assert b'loss' in data and b'other' in data
    with pytest.raises(w.FailedPreconditionError, match='closed'):
        events.flush()


def test_models_are_saved_loaded_frozen_and_run(tmp_path):
    x = w.placeholder(w.float32, shape=[None, 3], name='x')
    v = w.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name='weights')
    y = x @ v
    with w.Session() as session:
        session.init()
        w.save_model(session, tmp_path / 'model', {'x': x}, {'y': y, 'double': y * 2})
        with pytest.raises(w.AlreadyExistsError):
            w.save_model(session, tmp_path / 'model', {'x': x}, {'y': y})
    array = np.ones((4, 3), np.float32)
    model = w.load_model(tmp_path / 'model')
    port = model.signature().inputs['x']
    assert port.shape == (None, 3) and port.dtype == w.float32 and sorted(model.signatures['serving_default'].outputs) == ['double', 'y']
    for got in (model(x=array), model(array), model.run({'x': array.tolist()})):
        np.testing.assert_array_equal(got['y'], array @ np.arange(6).reshape(3, 2))
        np.testing.assert_array_equal(got['double'], 2 * got['y'])
    with pytest.raises(w.InvalidArgumentError, match='z'):
        model(z=array)
    with pytest.raises(w.NotFoundError, match='serving_default'):
        model(x=array, signature='other')
    with pytest.raises(w.NotFoundError, match='nowhere'):
        w.load_model(tmp_path / 'nowhere')
    (tmp_path / 'frozen.pb').write_bytes(model.freeze())
    frozen = w.load_model(tmp_path / 'frozen.pb')
    np.testing.assert_array_equal(frozen(x=array)['y'], model(x=array)['y'])
    model.close()
    with pytest.raises(w.FailedPreconditionError, match='closed'):
        model(x=array)


def test_the_readme_program_runs(tmp_path):
    code = re.search(r'```python\n(.*?)```', README.read_text(), re.S)[1]
    done = subprocess.run([sys.executable, '-c', code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r'accuracy ([\d.]+)', done.stdout)[1]) > 0.9, done.stdout
    assert 'loss' in done.stderr + done.stdout  # a pipe gets lines
    assert len([line for line in code.splitlines() if line.strip()]) <= 22
