"""The Python package: its wheel is built and installed into a fresh venv, where its own tests (python/tests) run; its checkpoints and
models are read by TensorFlow.
"""
import os
import subprocess
import sys
import sysconfig
import venv

import pytest

from conftest import BUILD, ROOT

ENVIRONMENT = {**{k: v for k, v in os.environ.items() if k not in ('PYTHONPATH', 'WEIR_LIBRARY')},
               'WEIR_DATA': str(ROOT / 'data'), 'WEIR_README': str(ROOT / 'python' / 'README.md')}


@pytest.fixture(scope='module', name='python')
def fixture_python(tmp_path_factory):
    """The interpreter of a venv with the wheel; NumPy and pytest are found where they are installed already."""
    folder = tmp_path_factory.mktemp('python')
    done = subprocess.run([sys.executable, ROOT / 'python' / 'tools' / 'weir_wheel.py', '--build', BUILD, '--out', folder, '--level', '1'],
                          check=True, capture_output=True, text=True)
    venv.create(folder / 'venv', with_pip=False, symlinks=True)
    python = folder / 'venv' / 'bin' / 'python'
    subprocess.run([sys.executable, '-m', 'pip', '--python', python, 'install', '--quiet', '--no-index', '--no-deps', '--no-compile',
                    done.stdout.strip()], check=True, capture_output=True)
    site = subprocess.run([python, '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'], check=True, capture_output=True, text=True)
    with open(os.path.join(site.stdout.strip(), 'others.pth'), 'w', encoding='utf-8') as file:
        file.write(sysconfig.get_path('purelib') + '\n')
    return python


def test_the_package_in_a_fresh_venv(python):
    code = 'import weir, numpy; print(weir.__file__)'
    where = subprocess.run([python, '-c', code], check=True, capture_output=True, text=True, env=ENVIRONMENT, cwd='/').stdout
    assert str(python.parent.parent) in where
    done = subprocess.run([python, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'no:xdist', '--rootdir', ROOT / 'python',
                           ROOT / 'python' / 'tests'], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


PROGRAM = '''
import sys, numpy as np, weir as w
x = w.placeholder(w.float32, shape=[None, 2], name='x')
v = w.Variable(np.array([[1, 2], [3, 4]], np.float32), name='weights')
with w.Session() as session:
    session.init()
    session.save(sys.argv[1] + '/model.ckpt')
    w.save_model(session, sys.argv[1] + '/model', {'x': x}, {'y': w.relu(x @ v)})
'''


def test_tensorflow_reads_what_the_package_writes(python, tmp_path):
    subprocess.run([python, '-c', PROGRAM, tmp_path], check=True, env=ENVIRONMENT)
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    assert tf.train.load_checkpoint(str(tmp_path / 'model.ckpt')).get_tensor('weights').tolist() == [[1, 2], [3, 4]]
    predict = tf.saved_model.load(str(tmp_path / 'model')).signatures['serving_default']
    assert predict(x=tf.constant([[1.0, -1.0]]))['y'].numpy().tolist() == [[0, 0]]
    assert predict(x=tf.constant([[-1.0, 1.0]]))['y'].numpy().tolist() == [[2, 2]]
