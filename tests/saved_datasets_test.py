"""A dataset that Weir saves or caches is loaded by TensorFlow, and the reverse."""
import os
import sys

import pytest

from conftest import BUILD, ROOT

tf = pytest.importorskip('tensorflow')
sys.path.insert(0, os.path.join(ROOT, 'tests', 'oracle'))

import programs  # noqa: E402
import libweir  # noqa: E402
import program_run  # noqa: E402
import programs_data_saved as saved  # noqa: E402
from programs_data import walk  # noqa: E402


def elements():
    return tf.data.Dataset.range(5).map(lambda x: (x, tf.fill([x, 2], tf.strings.as_string(x))))


def make(compression):
    """A program that saves, and one that loads; both know what TensorFlow gives for the whole."""
    whole = programs.Program('saved', 0, 0)
    with whole.graph.as_default():
        whole.step(saved.save(whole, elements(), lambda x, _: x % 2, compression=compression))
        walk(whole, saved.load(whole, [saved.INT, tf.TensorSpec([None, 2], tf.string)], compression=compression)[1], 6)
    whole.finish()
    return whole


def run_weir(lib, program, steps):
    problem = program_run.run_weir(lib, program.graph_def.SerializeToString(), steps, 2, True, False)
    assert problem is None, problem


@pytest.mark.parametrize('compression', ['', 'GZIP', 'ZLIB'])
def test_exchange(compression, tmp_path, monkeypatch):
    lib = libweir.Library(os.path.abspath(os.path.join(BUILD, 'libweir.so')))
    program = make(compression)
    for folder in ('whole', 'back'):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / 'whole')
    programs.run_tensorflow(program)
    steps = program.steps
    assert [s.code for s in steps] == [0] * 7 or steps[-1].code == 11
    run_weir(lib, program, steps[1:])  # what TensorFlow saved
    monkeypatch.chdir(tmp_path / 'back')
    run_weir(lib, program, steps[:1])
    expected = [(s.code, [v.tolist() for v in s.values]) for s in steps[1:]]
    program.steps = steps[1:]
    programs.run_tensorflow(program)   # what Weir saved
    assert [(s.code, [v.tolist() for v in s.values]) for s in program.steps] == expected


def make_cached(function):
    program = programs.Program('cached', 0, 0)
    with program.graph.as_default():
        walk(program, elements().map(function).cache('kept'), 7)
    program.finish()
    return program


def test_exchange_of_caches(tmp_path, monkeypatch):
    """A cache that one wrote is read by the other, whose own dataset would fail; and the bytes are the same."""
    lib = libweir.Library(os.path.abspath(os.path.join(BUILD, 'libweir.so')))
    good, bad = make_cached(lambda *x: x), make_cached(lambda x, y: (12 // (x * 0), y))
    for folder in ('theirs', 'ours'):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / 'theirs')
    programs.run_tensorflow(good)
    bad.steps = good.steps
    run_weir(lib, bad, good.steps)
    monkeypatch.chdir(tmp_path / 'ours')
    run_weir(lib, good, good.steps)
    expected = [(s.code, [v.tolist() for v in s.values]) for s in good.steps]
    programs.run_tensorflow(bad)
    assert [(s.code, [v.tolist() for v in s.values]) for s in bad.steps] == expected
    for name in ('kept.index', 'kept.data-00000-of-00001'):
        assert (tmp_path / 'ours' / name).read_bytes() == (tmp_path / 'theirs' / name).read_bytes(), name
    assert sorted(os.listdir()) == ['kept.data-00000-of-00001', 'kept.index']
