"""Weir for devices: the static builds, of musl and of the other processor, run a model that TensorFlow trained."""
import collections
import gzip
import os
import platform
import re
import shutil
import subprocess

import numpy as np
import pytest

from conftest import BUILD, ROOT

DATA = ROOT / 'data' / 'mnist'
ROOM = 3 << 20  # bytes of the whole command
OTHER = {'x86_64': 'aarch64'}.get(platform.machine(), 'x86_64')
pytestmark = pytest.mark.skipif(BUILD.name != 'dev', reason='builds of its own')


def read(kind, header, count, shape):
    with gzip.open(DATA / f'{kind}-ubyte.gz') as file:
        return np.frombuffer(file.read()[header:], np.uint8).reshape(shape)[:count]


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """A folder with a frozen network that reads digits, a hundred pictures, and what TensorFlow says of them."""
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # pylint: disable=import-outside-toplevel
    tf.random.set_seed(1)
    filters, bias = tf.Variable(tf.random.normal([5, 5, 1, 8], stddev=0.2)), tf.Variable(tf.zeros([8]))
    weights = tf.Variable(tf.random.normal([14 * 14 * 8, 10], stddev=0.02))

    def scores(images):
        x = tf.reshape(tf.cast(images, tf.float32) / 255, [-1, 28, 28, 1])
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, filters, 1, 'SAME') + bias), 2, 2, 'SAME')
        return tf.reshape(x, [-1, 14 * 14 * 8]) @ weights

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores(images)))
        for variable, slope in zip((filters, bias, weights), tape.gradient(loss, (filters, bias, weights))):
            variable.assign_sub(0.2 * slope)

    images, labels = read('train-images-idx3', 16, 4000, (-1, 28, 28)), read('train-labels-idx1', 8, 4000, -1).astype(np.int32)
    for i in range(0, 4000, 50):
        step(images[i:i + 50], labels[i:i + 50])

    predict = tf.function(lambda images: tf.nn.softmax(scores(images), name='probabilities'))
    frozen = convert_variables_to_constants_v2(predict.get_concrete_function(tf.TensorSpec([None, 28, 28], tf.uint8, 'images')))
    folder = tmp_path_factory.mktemp('model')
    (folder / 'frozen.pb').write_bytes(frozen.graph.as_graph_def().SerializeToString())
    pictures = read('t10k-images-idx3', 16, 100, (-1, 28, 28))
    np.save(folder / 'images.npy', pictures)
    np.save(folder / 'expected.npy', predict(pictures).numpy())
    return folder


def build(preset, *options):
    """The command that the preset makes; build/PRESET is kept, as for users."""
    environment = {name: value for name, value in os.environ.items() if name not in ('CC', 'CFLAGS', 'LDFLAGS')}
    folder = ROOT / 'build' / preset
    for command in (['cmake', '--preset', preset, '-DWEIR_WERROR=ON', *options],
                    ['cmake', '--build', folder, '--target', 'weir_cli', '-j2']):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder / 'cli' / 'weir'


def runs_the_model(command, model, out):
    done = subprocess.run([*command, 'run', model / 'frozen.pb', '--feed', f"images=@{model / 'images.npy'}", '--fetch', 'Identity',
                           '--threads', '2', '--save', out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result, expected = np.load(next(out.parent.glob(out.name + '*.npy'))), np.load(model / 'expected.npy')
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)
    labels = read('t10k-labels-idx1', 8, 100, -1)
    assert (result.argmax(1) == labels).mean() > 0.8


def machine(path):
    return re.search(r'Machine:\s+(.*)', subprocess.run(['readelf', '-h', path], capture_output=True, text=True, check=True).stdout)[1]


def is_static(path):
    return 'INTERP' not in subprocess.run(['readelf', '-l', path], capture_output=True, text=True, check=True).stdout


def test_a_static_command_with_musl(model, tmp_path):
    command = build('static')
    assert is_static(command) and command.stat().st_size < ROOM
    runs_the_model([command], model, tmp_path / 'out')


def test_a_static_command_for_the_other_processor(model, tmp_path):
    command = build('cross', '-DCMAKE_BUILD_TYPE=Debug', '-DCMAKE_C_FLAGS_DEBUG=-O0')  # soon built: what it computes is the question
    assert is_static(command) and OTHER.replace('_', '-') in machine(command).lower().replace('_', '-')
    emulator = shutil.which(f'qemu-{OTHER}-static')
    runs_the_model([emulator, command], model, tmp_path / 'out')


# ---- families ----

SHARED = set(re.search(r'WEIR_SHARED_OP_FILES (.*?)\)', (ROOT / 'CMakeLists.txt').read_text(), re.S)[1].split())


def objects():
    """By the path below src of each of the core's objects: the symbols that it defines, and those that it needs."""
    root = BUILD / 'CMakeFiles' / 'weir_core.dir' / 'src'
    defined, needed = collections.defaultdict(set), collections.defaultdict(set)
    lines = subprocess.run(['nm', '-A', '-g', *root.rglob('*.o')], capture_output=True, text=True, check=True).stdout.splitlines()
    for path, (*_, kind, symbol) in ((line.split(':')[0], line.split(':', 1)[1].split()) for line in lines):
        (needed if kind == 'U' else defined)[os.path.relpath(path, root)[:-2]].add(symbol)
    return defined, needed


def test_whatever_families_are_left_out_the_rest_links():
    defined, needed = objects()
    homes = {symbol: path for path, symbols in defined.items() for symbol in symbols}
    assert len(defined) > 500 and SHARED <= {path.removeprefix('ops/') for path in defined}
    wrong = []
    for path, symbols in needed.items():
        family = path.split('/')[1] if path.count('/') == 2 and path.startswith('ops/') else None
        is_kept = family is None or path.removeprefix('ops/') in SHARED
        for symbol in symbols - {s for s in symbols if s.startswith('weir_ops_')}:
            home = homes.get(symbol, '')
            if home.count('/') == 2 and home.startswith('ops/') and home.removeprefix('ops/') not in SHARED:
                if is_kept or home.split('/')[1] != family:
                    wrong.append(f'{path} needs {symbol} of {home}')
    assert not wrong, 'for WEIR_SHARED_OP_FILES in CMakeLists.txt: ' + '; '.join(wrong)
