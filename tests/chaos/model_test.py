"""What the models of this folder say of all orders of events, by Spin: it makes a program of a model that tries them all."""
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
pytestmark = pytest.mark.skipif(not shutil.which('spin'), reason='no Spin: tools/setup.sh python')


def errors(folder, name, *options):
    """How many orders of events end otherwise than they should: 0 or 1, for it stops at the first."""
    for command in (['spin', *options, '-a', HERE / name], ['cc', '-O1', '-w', '-DSAFETY', '-o', 'pan', 'pan.c']):
        subprocess.run([*map(str, command)], cwd=folder, check=True, capture_output=True)
    out = subprocess.run(['./pan', '-m100000'], cwd=folder, check=True, capture_output=True, text=True).stdout
    assert 'max search depth too small' not in out, out
    return int(out.split('errors: ')[1].split()[0])


def test_takeover(tmp_path):
    assert errors(tmp_path, 'takeover.pml') == 0


def test_takeover_that_keeps_values(tmp_path):
    """The model finds what was wrong once: variables that are given new values while others still have their old ones."""
    assert errors(tmp_path, 'takeover.pml', '-DKEEP') == 1
