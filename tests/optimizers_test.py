"""Optimizers, learning-rate schedules, clipping and moving averages of the C API do what tf.compat.v1's do: the same losses,
the same variables under the same names, step by step. Needs tensorflow."""
import json
import os
import subprocess

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.keras.optimizer_v2 import adam as keras_adam
from tensorflow.python.keras.optimizer_v2 import adamax as keras_adamax

from conftest import BUILD

v1 = tf.compat.v1
STEPS, BATCH, ROWS, WIDTH, CLASSES = 50, 8, 20, 4, 3


def weir(*args):
    """What the program tests/programs/optimizers.c prints."""
    out = subprocess.run([BUILD / 'tests' / 'programs' / 'optimizers', *map(str, args)], check=True, capture_output=True,
                         text=True).stdout
    return json.loads(out)


def numbers(rows, columns, seed):
    """The same numbers as the C program's."""
    i = np.arange(rows * columns)
    return ((((i * 37 + seed * 11 + i * i * 3) % 101) / 101.0 - 0.5).astype(np.float32)).reshape(rows, columns)


def model(kind):
    ids = v1.placeholder(tf.int32, [BATCH])
    with v1.variable_scope('', use_resource=True):
        if kind != 'dense':
            table = v1.get_variable('table', initializer=numbers(ROWS, WIDTH, 1))
            x = table.sparse_read(ids)
        else:
            x = tf.gather(numbers(ROWS, WIDTH, 1), ids)
        a = v1.get_variable('layer/a', initializer=numbers(WIDTH, 5, 2))
        b = v1.get_variable('layer/b', initializer=numbers(1, 5, 3))
        c = v1.get_variable('c', initializer=numbers(5, CLASSES, 4))
    logits = tf.matmul(tf.tanh(tf.matmul(x, a) + b), c)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids % CLASSES, logits=logits)
    extra = 0.1 * tf.nn.l2_loss(table) if kind == 'mixed' else 0.0
    return ids, tf.reduce_mean(losses) + extra


def ids_of(step):
    return (step * 3 + np.arange(BATCH) ** 2) % ROWS


def global_step():
    return v1.get_variable('global_step', initializer=np.int64(0), trainable=False, use_resource=True)


def values(session):
    variables = v1.global_variables()
    return {v.op.name: np.ravel(x) for v, x in zip(variables, session.run(variables))}


def check_variables(got, expected, rel=1e-5):
    assert sorted(got) == sorted(expected)
    for name, value in expected.items():
        assert got[name] == pytest.approx(value, rel=rel, abs=1e-6), name


OPTIMIZERS = {
    'sgd': lambda s: v1.train.GradientDescentOptimizer(0.5),
    'sgd_decay': lambda s: v1.train.GradientDescentOptimizer(v1.train.exponential_decay(0.5, s, 10, 0.5)),
    'momentum': lambda s: v1.train.MomentumOptimizer(0.1, 0.9),
    'nesterov': lambda s: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    'adagrad': lambda s: v1.train.AdagradOptimizer(0.3),
    'adagrad_1': lambda s: v1.train.AdagradOptimizer(0.3, initial_accumulator_value=1.0),
    'adadelta': lambda s: v1.train.AdadeltaOptimizer(1.0, epsilon=1e-4),
    'adadelta_plain': lambda s: v1.train.AdadeltaOptimizer(),
    'rmsprop': lambda s: v1.train.RMSPropOptimizer(0.02),
    'rmsprop_momentum': lambda s: v1.train.RMSPropOptimizer(0.01, decay=0.8, momentum=0.5, epsilon=1e-3),
    'rmsprop_centered': lambda s: v1.train.RMSPropOptimizer(0.01, momentum=0.3, centered=True),
    'adam': lambda s: v1.train.AdamOptimizer(0.02),
    'adam_betas': lambda s: v1.train.AdamOptimizer(0.05, beta1=0.8, beta2=0.9, epsilon=1e-3),
    'ftrl': lambda s: v1.train.FtrlOptimizer(0.3),
    'ftrl_all': lambda s: v1.train.FtrlOptimizer(0.3, learning_rate_power=-0.6, initial_accumulator_value=0.5,
                                                 l1_regularization_strength=0.001, l2_regularization_strength=0.01,
                                                 l2_shrinkage_regularization_strength=0.02, beta=0.1),
    'proximal_sgd': lambda s: v1.train.ProximalGradientDescentOptimizer(0.5, l1_regularization_strength=0.001,
                                                                        l2_regularization_strength=0.01),
    'proximal_adagrad': lambda s: v1.train.ProximalAdagradOptimizer(0.3, l1_regularization_strength=0.001,
                                                                    l2_regularization_strength=0.01),
}
KERAS = {
    'amsgrad': lambda: keras_adam.Adam(0.02, amsgrad=True),
    'adamax': lambda: keras_adamax.Adamax(0.02),
}


@pytest.mark.parametrize('kind', ['dense', 'sparse', 'mixed'])
@pytest.mark.parametrize('name', OPTIMIZERS)
def test_optimizer(name, kind):
    with tf.Graph().as_default(), v1.Session() as session:
        ids, loss = model(kind)
        step = global_step()
        train = OPTIMIZERS[name](step).minimize(loss, global_step=step)
        session.run(v1.global_variables_initializer())
        losses = [session.run([loss, train], {ids: ids_of(i)})[0] for i in range(STEPS)]
        got = weir('train', name, kind)
        assert got['losses'] == pytest.approx(losses, rel=1e-5)
        check_variables(got['variables'], values(session), rel=1e-4)
        assert np.all(np.float32(got['variables']['c']) != np.ravel(numbers(5, CLASSES, 4)))  # every weight has moved


@pytest.mark.parametrize('kind', ['dense', 'sparse', 'mixed'])
@pytest.mark.parametrize('name', KERAS)
def test_optimizer_of_keras(name, kind):
    with tf.Graph().as_default(), v1.Session() as session:
        ids, loss = model(kind)
        train = KERAS[name]().get_updates(loss, v1.trainable_variables())
        session.run(v1.global_variables_initializer())
        losses = [session.run([loss, train], {ids: ids_of(i)})[0] for i in range(STEPS)]
        got = weir('train', name, kind)
        assert got['losses'] == pytest.approx(losses, rel=1e-5)
        for variable in v1.trainable_variables():
            expected = np.ravel(session.run(variable))
            assert got['variables'][variable.op.name] == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize('kind', ['dense', 'sparse', 'mixed'])
def test_accumulation(kind):
    """Four micro-batches, their mean clipped, one step of Adam: written out by hand in TensorFlow."""
    with tf.Graph().as_default(), v1.Session() as session:
        ids, loss = model(kind)
        variables = v1.trainable_variables()
        gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
        fed = [v1.placeholder(tf.float32, v.shape) for v in variables]
        clipped, _ = tf.clip_by_global_norm(fed, 0.2)
        train = v1.train.AdamOptimizer(0.05).apply_gradients(zip(clipped, variables))
        session.run(v1.global_variables_initializer())
        losses, sums = [], []
        for i in range(12):
            results = session.run([loss] + gradients, {ids: ids_of(i)})
            losses.append(results[0])
            sums = [s + g for s, g in zip(sums, results[1:])] if i % 4 else results[1:]
            if i % 4 == 3:
                session.run(train, {p: s / 4 for p, s in zip(fed, sums)})
        got = weir('accumulate', kind)
        assert got['losses'] == pytest.approx(losses, rel=1e-5)
        own = {k: v for k, v in got['variables'].items() if 'ccumulat' not in k and k != 'global_step'}
        check_variables(own, values(session), rel=1e-4)
        assert got['variables']['global_step'] == [3]
        assert got['variables']['Adam/accumulate/count'] == [0]
        assert not np.any(got['variables']['c/GradientAccumulator'])


def schedules(step):
    train = v1.train
    decayed = train.polynomial_decay(0.1, step, 90)
    done = tf.minimum(tf.cast(step, tf.float32) / 20, 1.0)
    return {
        'exponential': train.exponential_decay(0.1, step, 10, 0.9),
        'exponential_stairs': train.exponential_decay(0.1, step, 10, 0.9, staircase=True),
        'natural': train.natural_exp_decay(0.1, step, 10, 0.3),
        'natural_stairs': train.natural_exp_decay(0.1, step, 10, 0.3, staircase=True),
        'inverse': train.inverse_time_decay(0.1, step, 10, 0.5),
        'inverse_stairs': train.inverse_time_decay(0.1, step, 10, 0.5, staircase=True),
        'polynomial': train.polynomial_decay(0.1, step, 40),
        'polynomial_power': train.polynomial_decay(0.1, step, 40, end_learning_rate=0.01, power=0.5),
        'polynomial_cycle': train.polynomial_decay(0.1, step, 40, cycle=True),
        'piecewise': train.piecewise_constant(step, [9, 30, 60], [1.0, 0.5, 0.25, 0.1]),
        'cosine': train.cosine_decay(0.1, step, 50),
        'cosine_alpha': train.cosine_decay(0.1, step, 50, alpha=0.1),
        'restarts': train.cosine_decay_restarts(0.1, step, 10),
        'restarts_even': train.cosine_decay_restarts(0.1, step, 10, t_mul=1.0, m_mul=0.8, alpha=0.05),
        'restarts_grow': train.cosine_decay_restarts(0.1, step, 10, t_mul=1.5, m_mul=0.9),
        'linear_cosine': train.linear_cosine_decay(0.1, step, 50, alpha=0.1, num_periods=1.5),
        'warmup': decayed * done,
        'warmup_start': 0.1 * (0.25 + 0.75 * done),
    }


def test_schedules():
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.placeholder(tf.int64, [])
        rates = schedules(step)
        rows = [session.run(rates, {step: i}) for i in range(0, 100, 3)]
        got = weir('schedules')
        assert sorted(got) == sorted(rates)
        for name in rates:
            assert got[name] == pytest.approx([row[name] for row in rows], rel=1e-6, abs=3e-8), name


def test_clipping():
    with tf.Graph().as_default(), v1.Session() as session:
        def tensor(first):
            return tf.constant([[first, -2], [0.5, 3], [-0.25, 0]], tf.float32)
        x, bad = tensor(1), tensor(np.nan)
        rows = tf.IndexedSlices(x, tf.constant([4, 1, 4]), tf.constant([6, 2]))
        clipped, norm = tf.clip_by_global_norm([x, None, rows], 2.0)
        expected = session.run({
            'value': tf.clip_by_value(x, -1, 0.75), 'value_nan': tf.clip_by_value(bad, -1, 0.75),
            'norm': tf.clip_by_norm(x, 2.0), 'norm_loose': tf.clip_by_norm(x, 20.0),
            'norm_edge': tf.clip_by_norm(x, tf.constant(1.5)), 'norm_negative': tf.clip_by_norm(x, -1.0),
            'norm_zero': tf.clip_by_norm(x - x, 2.0), 'norm_nan': tf.clip_by_norm(bad, 2.0),
            'average': v1.clip_by_average_norm(x, 0.2), 'average_loose': v1.clip_by_average_norm(x, 20.0),
            'global_norm': norm, 'global_0': clipped[0], 'global_2': clipped[2].values,
            'global_2_indices': clipped[2].indices,
            'global_nan': tf.clip_by_global_norm([x, bad], 2.0)[0][0],
            'global_inf': tf.clip_by_global_norm([x, tensor(np.inf)], 2.0)[0][0],
            'global_loose': tf.clip_by_global_norm([x], 100.0)[0][0],
            'unique': tf.constant([[0.75, -2], [0.5, 3]]), 'unique_indices': tf.constant([4, 1]),
        })
        got = weir('clip')
        assert sorted(got) == sorted(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], np.ravel(value), rtol=2e-6, err_msg=name)


def test_moving_averages(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        ids, loss = model('dense')
        step = global_step()
        train = v1.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
        variables = v1.trainable_variables()
        named = tf.identity(loss, name='loss')
        with v1.variable_scope('', use_resource=True):
            with tf.control_dependencies([train]):
                updates = [v1.train.ExponentialMovingAverage(0.9).apply(variables),
                           v1.train.ExponentialMovingAverage(0.9, num_updates=step, name='Ramp').apply(variables)]
            updates += [v1.train.ExponentialMovingAverage(0.9, zero_debias=True, name='Debiased').apply([named]),
                        v1.train.ExponentialMovingAverage(0.9, name='Biased').apply([named])]
        session.run(v1.global_variables_initializer())
        for i in range(10):
            session.run(updates, {ids: ids_of(i)})
        expected = values(session)
    got = weir('average', tmp_path / 'model.ckpt')
    check_variables(got['variables'], expected)
    own, swapped, kept, back, restored = got['c']
    assert own == got['variables']['c'] == back == kept
    assert swapped == restored == got['variables']['c/ExponentialMovingAverage'] != own
    reader = tf.train.load_checkpoint(str(tmp_path / 'model.ckpt'))
    assert np.ravel(reader.get_tensor('c/ExponentialMovingAverage')) == pytest.approx(restored)


def test_bad_use_is_named():
    done = subprocess.run([BUILD / 'tests' / 'programs' / 'optimizers', 'train', 'none', 'dense'], capture_output=True, text=True)
    assert done.returncode == 2 and "no optimizer 'none'" in done.stderr
