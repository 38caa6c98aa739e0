"""Variables in parts (weir/partition.h): checkpoints that TensorFlow's partitioned variables read and write, however many parts either
side has, and the losses of its lookups, sampled losses and optimizers. tests/programs/partitions.c is Weir's side."""
import json
import os
import subprocess

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import pytest
import tensorflow as tf

from conftest import BUILD

v1 = tf.compat.v1
STEPS, BATCH, ROWS, WIDTH, CLASSES, SAMPLES = 5, 6, 23, 4, 11, 5


def weir(parts, strategy, loss, optimizer, load='', save='', target=''):
    """The losses that the program prints."""
    args = [target, parts, strategy, loss, optimizer, load, save]
    done = subprocess.run([BUILD / 'tests' / 'programs' / 'partitions', *map(str, args)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def numbers(shape, seed):
    i = np.arange(np.prod(shape))
    return ((((i * 37 + seed * 11 + i * i * 3) % 101) / 101.0 - 0.5).astype(np.float32)).reshape(shape)


def variable(name, shape, seed, partitioner):
    return v1.get_variable(name, initializer=tf.constant(numbers(shape, seed)), partitioner=partitioner, use_resource=True)


OPTIMIZERS = {'sgd': lambda: v1.train.GradientDescentOptimizer(0.5), 'adam': lambda: v1.train.AdamOptimizer(0.02),
              'adagrad': lambda: v1.train.AdagradOptimizer(0.3), 'momentum': lambda: v1.train.MomentumOptimizer(0.1, 0.9)}


def whole_softmax(w, b, labels, x):
    """Of classes in parts of consecutive rows."""
    logits = tf.concat([tf.matmul(x, a, transpose_b=True) for a in w], 1) + tf.concat(list(b), 0)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def tensorflow(partitioner, strategy, loss, optimizer, load='', save=''):
    """What TensorFlow's partitioned variables do."""
    with tf.Graph().as_default(), v1.Session() as session:
        ids = v1.placeholder(tf.int64, [BATCH])
        parts = lambda v: list(v) if partitioner else [v]  # noqa: E731
        table = parts(variable('table', (ROWS, WIDTH), 1, partitioner))
        x = v1.nn.embedding_lookup(table, ids, partition_strategy=strategy)
        w, b = parts(variable('w', (CLASSES, WIDTH), 2, partitioner)), parts(variable('b', (CLASSES,), 3, partitioner))
        labels = ids % CLASSES
        if loss == 'softmax':
            losses = whole_softmax(w, b, labels, x)
        else:
            sample = tf.random.log_uniform_candidate_sampler(labels[:, None], 1, SAMPLES, True, CLASSES, seed=9)
            function = v1.nn.nce_loss if loss.startswith('nce') else v1.nn.sampled_softmax_loss
            losses = function(w, b, labels[:, None], x, SAMPLES, CLASSES, sampled_values=sample, partition_strategy=strategy)
        mean = tf.reduce_mean(losses)
        step = OPTIMIZERS[optimizer]().minimize(mean)
        saver = v1.train.Saver()
        session.run(v1.global_variables_initializer())
        if load:
            saver.restore(session, str(load))
        found = [session.run([mean, step], {ids: (i * 3 + np.arange(BATCH) ** 2) % ROWS})[0] for i in range(STEPS)]
        if save:
            saver.save(session, str(save), write_meta_graph=False)
        return found


def tensors(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def same_checkpoints(a, b):
    a, b = tensors(a), tensors(b)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], 1e-4, 1e-6, err_msg=name)


def slices(prefix):
    """How many slices each tensor is stored in."""
    lines = subprocess.run([BUILD / 'cli' / 'weir', 'checkpoint', 'list', prefix], check=True, capture_output=True,
                           text=True).stdout.splitlines()[2:]
    return {line.split()[0]: line.split(', ')[-1] for line in lines}


CASES = [('3', 'mod', 'sampled_softmax', 'adam'), ('3', 'div', 'nce', 'adagrad'), ('bytes:64', 'div', 'sampled_softmax', 'momentum'),
         ('1', 'div', 'softmax', 'sgd'), ('40', 'mod', 'nce_on_parts', 'sgd'), ('4', 'div', 'sampled_softmax_on_parts', 'adagrad')]


def partitioner_of(parts):
    if parts == 'whole':
        return None
    return v1.variable_axis_size_partitioner(int(parts[6:])) if ':' in parts else v1.fixed_size_partitioner(int(parts))


@pytest.mark.parametrize('parts, strategy, loss, optimizer', CASES, ids=['-'.join(c) for c in CASES])
def test_training(tmp_path, parts, strategy, loss, optimizer):
    """The losses, and all that a checkpoint has of it: TensorFlow reads each variable and slot as one tensor."""
    want = tensorflow(partitioner_of(parts), strategy, loss, optimizer, save=tmp_path / 'want')
    got = weir(parts, strategy, loss, optimizer, save=tmp_path / 'got')
    np.testing.assert_allclose(got, want, 1e-5)
    same_checkpoints(tmp_path / 'got', tmp_path / 'want')
    assert slices(tmp_path / 'got') == slices(tmp_path / 'want')


@pytest.mark.parametrize('before, after', [('3', '5'), ('5', 'whole'), ('whole', '2')])
def test_other_parts(tmp_path, before, after):
    """A run goes on in other parts: both from Weir's checkpoint, then both from TensorFlow's. Its slots come along."""
    weir(before, 'div', 'softmax', 'adam', save=tmp_path / 'weir')
    tensorflow(partitioner_of(before), 'div', 'softmax', 'adam', save=tmp_path / 'tensorflow')
    for start in ('weir', 'tensorflow'):
        got = weir(after, 'div', 'softmax', 'adam', tmp_path / start, tmp_path / f'{start}_weir')
        want = tensorflow(partitioner_of(after), 'div', 'softmax', 'adam', tmp_path / start, tmp_path / f'{start}_tensorflow')
        np.testing.assert_allclose(got, want, 1e-5)
        same_checkpoints(tmp_path / f'{start}_weir', tmp_path / f'{start}_tensorflow')
