"""DLPack of the eager C API, which TensorFlow's library has in C++ only: tests/tensorflow/ours/dlpack.c on ours."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev')).resolve()


def test_dlpack(tmp_path):
    program = tmp_path / 'dlpack'
    subprocess.run(['cc', '-std=c11', '-g', '-Wall', '-Werror', f'-I{ROOT / "include"}', '-o', program,
                    ROOT / 'tests' / 'tensorflow' / 'ours' / 'dlpack.c', f'-L{BUILD}', '-ltensorflow'], check=True, timeout=60)
    done = subprocess.run([program], env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD)), capture_output=True, text=True, timeout=60,
                          check=False)
    assert (done.returncode, done.stdout) == (0, 'fine\n'), done.stdout + done.stderr
