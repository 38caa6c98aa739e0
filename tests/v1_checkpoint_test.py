"""Checkpoints of the first format: what TensorFlow writes Weir reads, what Weir writes TensorFlow reads, byte for byte."""
import os
import sys

import numpy as np
import pytest

import conftest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
tf = pytest.importorskip('tensorflow')
sys.path.insert(0, str(conftest.ROOT / 'tests' / 'oracle'))
import libweir  # noqa: E402

tf1, raw = tf.compat.v1, tf.raw_ops
ARRAYS = {
    'float': np.array([[1.5, -2.0, np.inf], [0.0, -0.0, 3e38]], np.float32), 'double': np.linspace(-1, 1, 7), 'half': np.float16([1, 2.5]),
    'int32': np.array([-1, 2**31 - 1, -2**31], np.int32), 'int64': np.array([2**62, -5]), 'int16': np.array([[-300]], np.int16),
    'uint8': np.arange(256, dtype=np.uint8), 'bool': np.array([True, False, True]), 'complex': np.array([1 + 2j, -3j], np.complex64),
    'scalar': np.float32(7), 'empty': np.zeros((0, 3), np.float32), 'strings': np.array([b'', b'abc', b'x' * 500], object),
    'large': np.arange(200000, dtype=np.float32).reshape(400, 500), 'more': np.arange(100000, dtype=np.int64),
}


def graph_of(build):
    with tf1.Graph().as_default() as graph:
        build()
        return graph


def run_weir(build, fetches=(), targets=()):
    graph = libweir.Graph(libweir.Library(str(conftest.BUILD / 'libweir.so')), graph_of(build).as_graph_def())
    try:
        return graph.run([graph.edge(name) for name in fetches], targets=targets)
    finally:
        graph.close()


def run_tensorflow(build, fetches=(), targets=()):
    with tf1.Session(graph=graph_of(build)) as session:
        return session.run([name for name in fetches] + list(targets))[:len(fetches)]


def save(path):
    def build():
        raw.Save(filename=str(path), tensor_names=list(ARRAYS), data=[tf.constant(a) for a in ARRAYS.values()], name='save')
    return build


def save_parts(path):
    def build():
        x = ARRAYS['large']
        raw.SaveSlices(filename=str(path), tensor_names=['v', 'v', 'w'], shapes_and_slices=['400 500 100,300:-', '400 500 0,100:-', ''],
                       data=[tf.constant(x[100:]), tf.constant(x[:100]), tf.constant(x[0])], name='save')
    return build


def restore(path):
    def build():
        for name, array in ARRAYS.items():
            raw.Restore(file_pattern=str(path), tensor_name=name, dt=tf.constant(array).dtype, name=name)
    return build


def restore_part(path):
    def build():
        raw.RestoreSlice(file_pattern=str(path), tensor_name='v', shape_and_slice='400 500 90,20:5,10', dt=tf.float32, name='part')
    return build


@pytest.mark.parametrize('saves', [save, save_parts])
def test_same_bytes(saves, tmp_path):
    run_weir(saves(tmp_path / 'weir'), targets=['save'])
    run_tensorflow(saves(tmp_path / 'tensorflow'), targets=['save'])
    assert (tmp_path / 'weir').read_bytes() == (tmp_path / 'tensorflow').read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ['tensorflow', 'weir']


@pytest.mark.parametrize('writer,reader', [(run_weir, run_tensorflow), (run_tensorflow, run_weir)])
def test_across(writer, reader, tmp_path):
    writer(save(tmp_path / 'ck'), targets=['save'])
    got = reader(restore(tmp_path / 'ck'), [name + ':0' for name in ARRAYS])
    for (name, array), value in zip(ARRAYS.items(), got):
        value = np.asarray(value)
        assert value.shape == np.shape(array), name
        assert value.tolist() == np.asarray(array).tolist(), name


def test_most_dimensions(tmp_path):
    """TensorFlow writes one less."""
    def saves():
        raw.Save(filename=str(tmp_path / 'ck'), tensor_names=['x'], data=[raw.Reshape(tensor=[8.0], shape=[1] * 254)], name='save')

    def restores():
        x = raw.Restore(file_pattern=str(tmp_path / 'ck'), tensor_name='x', dt=tf.float32)
        raw.Rank(input=x, name='rank')
        raw.Reshape(tensor=x, shape=[1], name='flat')
    run_weir(saves, targets=['save'])
    rank, flat = run_weir(restores, ['rank:0', 'flat:0'])
    assert (int(rank), list(flat)) == (254, [8])


@pytest.mark.parametrize('writer,reader', [(run_weir, run_tensorflow), (run_tensorflow, run_weir)])
def test_parts(writer, reader, tmp_path):
    writer(save_parts(tmp_path / 'ck'), targets=['save'])
    part, = reader(restore_part(tmp_path / 'ck'), ['part:0'])
    np.testing.assert_array_equal(part, ARRAYS['large'][90:110, 5:15])


@pytest.mark.parametrize('size', [0, 1, 47, 48, 100, -1, -20])
def test_damaged(size, tmp_path):
    run_weir(save(tmp_path / 'ck'), targets=['save'])
    data = (tmp_path / 'ck').read_bytes()
    (tmp_path / 'ck').write_bytes(data[:size])
    with pytest.raises(libweir.Error) as error:
        run_weir(restore(tmp_path / 'ck'), ['float:0'])
    assert error.value.code in (3, 15)


def part_of(run, path):
    """The part, or None when it cannot be read."""
    try:
        part, = run(restore_part(path), ['part:0'])
        return part
    except (libweir.Error, tf.errors.OpError):
        return None


def test_flipped_bytes(tmp_path):
    """A flipped bit is noticed where TensorFlow notices it, and elsewhere harms nothing."""
    run_weir(save_parts(tmp_path / 'ck'), targets=['save'])
    data, want, noticed = (tmp_path / 'ck').read_bytes(), ARRAYS['large'][90:110, 5:15], []
    np.testing.assert_array_equal(part_of(run_weir, tmp_path / 'ck'), want)
    for at in [*range(0, len(data), len(data) // 40), *range(len(data) - 48, len(data), 6)]:
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        (tmp_path / 'ck').write_bytes(damaged)
        part = part_of(run_weir, tmp_path / 'ck')
        noticed.append(part is None)
        assert (part is None) == (part_of(run_tensorflow, tmp_path / 'ck') is None), f'byte {at}'
        if part is not None:
            np.testing.assert_array_equal(part, want, f'byte {at}')
    assert any(noticed) and not all(noticed)
