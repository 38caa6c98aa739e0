"""libtensorflow.so.2 against TensorFlow's own library: the same programs, compiled once, print the same on both.

The programs are tests/tensorflow/*.c. They are compiled against our headers and linked with our library; then the loader is given
one or the other.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev')).resolve()
WHEEL = pathlib.Path(sys.prefix) / 'lib' / f'python{sys.version_info.major}.{sys.version_info.minor}' / 'site-packages' / 'tensorflow'
PROGRAMS = sorted(path.stem for path in (ROOT / 'tests' / 'tensorflow').glob('*.c'))
TIMEOUT = 120


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """A folder where TensorFlow's libraries have the names that programs look for."""
    folder = tmp_path_factory.mktemp('tensorflow')
    if not (WHEEL / 'libtensorflow_cc.so.2').exists():
        pytest.skip('the tensorflow package is not installed')
    (folder / 'libtensorflow.so.2').symlink_to(WHEEL / 'libtensorflow_cc.so.2')
    (folder / 'libtensorflow_cc.so.2').symlink_to(WHEEL / 'libtensorflow_cc.so.2')
    (folder / 'libtensorflow_framework.so.2').symlink_to(WHEEL / 'libtensorflow_framework.so.2')
    return folder


MODEL = """
import sys, tensorflow as tf
class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(2.5)
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name='x')])
    def call(self, x):
        return {'y': x * self.weight}
model = Model()
tf.saved_model.save(model, sys.argv[1], signatures=model.call)
"""


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp('model') / 'saved'
    subprocess.run([sys.executable, '-c', MODEL, folder], check=True, timeout=TIMEOUT, capture_output=True)
    return folder


LIBRARIES = [f'-L{BUILD}', '-Wl,--no-as-needed', '-ltensorflow', '-ltensorflow_framework', '-lm', '-pthread']


def compile_program(name, folder):
    program = folder / pathlib.Path(name).name
    subprocess.run(['cc', '-std=c11', '-g', '-Wall', '-Werror', f'-I{ROOT / "include"}', '-o', program,
                    ROOT / 'tests' / 'tensorflow' / f'{name}.c', *LIBRARIES], check=True, timeout=TIMEOUT)
    return program


def run(program, libraries, *args):
    env = dict(os.environ, LD_LIBRARY_PATH=str(libraries), TF_CPP_MIN_LOG_LEVEL='3', TF_ENABLE_ONEDNN_OPTS='0')
    done = subprocess.run([program, *args], env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f'with {libraries}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}'
    return done.stdout


@pytest.mark.parametrize('name', PROGRAMS)
def test_prints_what_it_prints_with_tensorflow(name, tmp_path, wheel, model):
    program = compile_program(name, tmp_path)
    ours = run(program, BUILD, model)
    theirs = run(program, wheel, model)
    assert ours
    assert ours.splitlines() == theirs.splitlines()


def test_built_with_tensorflows_own_headers(tmp_path, wheel):
    """They are C++ in part. What the compiler makes of them must not differ from what ours say."""
    if not shutil.which('c++'):
        pytest.skip('there is no C++ compiler')
    source = ROOT / 'tests' / 'tensorflow' / 'custom_op.c'
    program = tmp_path / 'custom_op_by_theirs'
    subprocess.run(['c++', '-std=c++17', '-w', f'-I{WHEEL / "include"}', '-x', 'c++', source, '-x', 'none', '-o', program, *LIBRARIES],
                   check=True, timeout=TIMEOUT)
    assert run(program, BUILD) == run(compile_program('custom_op', tmp_path), BUILD)


def test_library_brings_ops(tmp_path, wheel):
    library = tmp_path / 'libtriple.so'
    subprocess.run(['cc', '-std=c11', '-g', '-Wall', '-Werror', f'-I{ROOT / "include"}', '-shared', '-fPIC', '-o', library,
                    ROOT / 'tests' / 'tensorflow' / 'library' / 'triple.c', *LIBRARIES], check=True, timeout=TIMEOUT)
    program = compile_program('library/load', tmp_path)
    ours = run(program, BUILD, library)
    assert 'tripled: 42' in ours
    assert ours == run(program, wheel, library)


def test_kernel_ends_in_another_step(tmp_path):
    assert run(compile_program('ours/later', tmp_path), BUILD) == 'met: 42\n' * 2


def test_what_does_not_fit_is_refused(tmp_path):
    assert run(compile_program('ours/refused', tmp_path), BUILD) == 'all refused\n'


def test_headers_map_and_library_agree():
    done = subprocess.run([sys.executable, ROOT / 'tools' / 'libtensorflow_map.py', '--check', '--library',
                           BUILD / 'libtensorflow.so.2'], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout


def test_table_is_true(wheel):
    """docs/libtensorflow.md says which functions of TensorFlow's headers are there."""
    assert wheel
    done = subprocess.run([sys.executable, ROOT / 'tools' / 'libtensorflow_table.py', '--check'], capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
