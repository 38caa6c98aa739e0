"""The examples do what they promise, and TensorFlow reads the files they write. Needs tensorflow."""
import os
import re
import subprocess

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest
import tensorflow as tf

from conftest import BUILD, ROOT

STEPS = 20


def run(name, *args, check=True):
    return subprocess.run([BUILD / 'examples' / name, *map(str, args)], cwd=ROOT, check=check, capture_output=True, text=True)


@pytest.fixture(scope='module')
def mnist(tmp_path_factory):
    """A short training run; what it printed and where it wrote."""
    directory = tmp_path_factory.mktemp('mnist')
    return run('mnist', f'--steps={STEPS}', '--no-check', directory).stdout, directory


def test_linear_regression():
    assert run('linear_regression').stdout == 'y = 3.000 x + 2.000\n'


def test_recursive_net():
    out = run('recursive_net', '--steps=600').stdout
    assert number(r'^step 600/600  loss ([0-9.]+)', out) < 0.05 < number(r'^step 100/600  loss ([0-9.]+)', out)
    assert number(r'^right: ([0-9.]+) % of 200', out) > 80


def test_readme_has_the_example():
    source = (ROOT / 'examples' / 'linear_regression.c').read_text()
    assert source.split('\n', 1)[1].strip() in (ROOT / 'README.md').read_text()


def test_mnist_prints_lines_in_a_pipe(mnist):
    out, directory = mnist
    assert '\r' not in out
    assert re.search(rf'^step {STEPS}/{STEPS}  loss [0-9.]+  \d+ images/s  0:00 left$', out, re.M)
    accuracy = float(re.search(r'^([0-9.]+) % of 10000 test images right', out, re.M)[1])
    assert 50 < accuracy < 100
    assert f'{directory}/model.ckpt-{STEPS}' in out


def test_tensorflow_reads_the_checkpoint(mnist):
    _, directory = mnist
    assert tf.train.latest_checkpoint(str(directory)) == f'{directory}/model.ckpt-{STEPS}'
    reader = tf.train.load_checkpoint(str(directory))
    shapes = reader.get_variable_to_shape_map()
    weights = {'conv2d/kernel': [5, 5, 1, 32], 'conv2d_1/kernel': [5, 5, 32, 64], 'dense/kernel': [1024, 512],
               'dense_1/kernel': [512, 10], 'conv2d/bias': [32], 'conv2d_1/bias': [64], 'dense/bias': [512], 'dense_1/bias': [10]}
    for name, shape in weights.items():
        assert shapes[name] == shape
        value = reader.get_tensor(name)
        assert np.isfinite(value).all() and np.abs(value).max() > 0
        assert shapes[f'{name}/Adam'] == shapes[f'{name}/Adam_1'] == shape
    assert reader.get_tensor('beta1_power') == pytest.approx(0.9 ** (STEPS + 1), rel=1e-5)


def test_tensorflow_reads_the_events(mnist):
    _, directory = mnist
    paths = list(directory.glob('events.out.tfevents.*'))
    assert len(paths) == 1
    events = list(tf.compat.v1.train.summary_iterator(str(paths[0])))
    assert events[0].file_version == 'brain.Event:2'
    graph = tf.compat.v1.GraphDef.FromString(next(e.graph_def for e in events if e.graph_def))
    assert {'Conv2D', 'MatMul', 'ResourceApplyAdam'} <= {node.op for node in graph.node}
    scalars = [(v.tag, e.step, v.simple_value) for e in events for v in e.summary.value]
    losses = [value for tag, _, value in scalars if tag == 'loss']
    assert len(losses) == STEPS and losses[-1] < losses[0]
    assert [step for tag, step, _ in scalars if tag == 'accuracy'] == [STEPS]


def test_mnist_is_deterministic(mnist, tmp_path):
    _, directory = mnist
    run('mnist', f'--steps={STEPS}', '--no-check', tmp_path)
    first, second = (tf.train.load_checkpoint(str(d)) for d in (directory, tmp_path))
    for name in first.get_variable_to_shape_map():
        np.testing.assert_array_equal(first.get_tensor(name), second.get_tensor(name))


def test_mnist_checks_its_accuracy(tmp_path):
    assert run('mnist', '--steps=1', tmp_path, check=False).returncode == 1


def test_mnist_reports_missing_data(tmp_path):
    result = run('mnist', f'--data={tmp_path}', tmp_path, check=False)
    assert result.returncode == 1 and 'cannot read' in result.stderr
    assert run('mnist', '--bogus', check=False).returncode == 2


# ---- the others: each learns ----

def number(pattern, text):
    found = re.findall(pattern, text, re.M)
    assert found, f'{pattern} not in {text}'
    return float(found[-1])


def test_mnist_mlp():
    assert number(r'^([0-9.]+) % of 10000 test images right', run('mnist_mlp', '--steps=300').stdout) > 93


def test_mnist_records(tmp_path):
    (tmp_path / 'data').symlink_to(ROOT / 'data')
    command = [BUILD / 'examples' / 'mnist_records', '--steps=200']
    out = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert number(r'^([0-9.]+) % of 10000 test images right', out) > 88
    names = sorted(str(path) for path in tmp_path.glob('runs/mnist_records/*.tfrecord'))
    assert len(names) == 8
    count = tf.data.TFRecordDataset(names).reduce(np.int64(0), lambda n, _: n + 1)
    assert count.numpy() == 70000  # TensorFlow reads the files, too


def test_char_lstm():
    out = run('char_lstm', '--steps=100').stdout
    assert number(r'^step 100  perplexity ([0-9.]+)', out) < 30  # there are 65 characters
    sample = out.split('characters/s\n', 1)[1]
    assert len(sample) == 401 and ' ' in sample


def test_word_embeddings():
    out = run('word_embeddings', '--steps=2000').stdout
    assert number(r'^step 2000  loss ([0-9.]+)', out) < 4.1 < number(r'^step 100  loss ([0-9.]+)', out)
    neighbours = {line.split(':')[0]: line.split(':')[1].split() for line in out.splitlines() if ':' in line}
    assert len(neighbours) == 8
    for word, near in neighbours.items():
        assert len(set(near)) == 5 and word not in near


def test_wide_and_deep():
    out = run('wide_and_deep', '--steps=3000').stdout
    assert number(r'on new examples: ([0-9.]+)', out) > 0.7


def test_mixture_of_experts():
    out = run('mixture_of_experts', '--steps=2000').stdout
    assert number(r'^step 2000  error ([0-9.]+)', out) < 0.2  # the best linear function: 3.1
    assert all(int(rows) > 20 for rows in re.findall(r'\d+', out.rsplit(':', 1)[1]))


def test_policy_gradient():
    out = run('policy_gradient', '--steps=400').stdout
    assert number(r'^episode 400: ([0-9.]+) % right', out) > 90
    sizes = [int(size) for size in re.findall(r'the graph has (\d+) nodes', out)]
    assert len(sizes) == 8 and sizes == sorted(sizes)


def test_transfer_learning(tmp_path):
    (tmp_path / 'data').symlink_to(ROOT / 'data')
    out = subprocess.run([BUILD / 'examples' / 'transfer_learning', '--steps=200'], cwd=tmp_path, check=True,
                         capture_output=True, text=True).stdout
    assert number(r'0 to 4.* ([0-9.]+) % right', out) > 96
    assert number(r'with the trunk of the first model: ([0-9.]+) %', out) > number(r'from 50 examples: ([0-9.]+) %', out)
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / 'runs' / 'transfer'))]
    assert sorted(names) == [f'trunk/conv2d{i}/{w}' for i in ('', '_1') for w in ('bias', 'kernel')]


@pytest.mark.parametrize('name', ['mnist_mlp', 'char_lstm', 'word_embeddings', 'wide_and_deep', 'mixture_of_experts',
                                  'policy_gradient', 'transfer_learning'])
def test_bad_options(name):
    for option in ('--steps=', '--steps=0', '--steps=1x', '--bogus'):
        result = run(name, option, check=False)
        assert result.returncode == 2 and 'usage' in result.stderr


@pytest.mark.parametrize('name', ['mnist_mlp', 'char_lstm', 'word_embeddings', 'transfer_learning'])
def test_missing_data(name, tmp_path):
    result = subprocess.run([BUILD / 'examples' / name], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1 and 'cannot read' in result.stderr
