"""npz and safetensors files against NumPy and the safetensors package: what either writes, the other reads, bit for bit.

Drives libweir through ctypes; needs no TensorFlow.
"""
import ctypes

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from weir_tensors import WeirError, lib

PLAIN = [np.float32, np.float64, np.int32, np.uint8, np.int16, np.int8, np.int64, np.bool_, np.uint16, np.float16, np.uint32,
         np.uint64]


def draw(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    return (rng.standard_normal(shape) * 50).astype(dtype)


def arrays():
    out = {f'a/{np.dtype(t).name}': draw(t, (3, 5, i), i) for i, t in enumerate(PLAIN)}
    return out | {'scalar': np.array(2.5, np.float32), 'large': draw(np.float32, (300, 1000)),
                  'zeros': np.zeros((100, 1000), np.int32)}


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(np.ascontiguousarray(a).view(np.uint8) if a.ndim else a,
                                  np.ascontiguousarray(b).view(np.uint8) if b.ndim else b)


def c_strings(names):
    return (ctypes.c_char_p * max(1, len(names)))(*[n.encode() for n in names])


class Tensors:
    """An array of tensors for the length of a block."""

    def __init__(self, values):
        self.items = (ctypes.c_void_p * max(1, len(values)))(*[lib.tensor(v).value for v in values])

    def __enter__(self):
        return self.items

    def __exit__(self, *_):
        for item in self.items:
            lib.lib.weir_tensor_release(ctypes.c_void_p(item))


def read_npz(path):
    npz = lib.make('weir_npz_open', str(path).encode(), None)
    try:
        names = [lib.text('weir_npz_name', npz, i) for i in range(lib.lib.weir_npz_count(npz))]
        return {n: lib.array(lib.make('weir_npz_read', npz, n.encode())) for n in names}
    finally:
        lib.lib.weir_npz_close(npz)


@pytest.mark.parametrize('save', [np.savez, np.savez_compressed])
def test_reads_what_numpy_wrote(tmp_path, save):
    want = arrays() | {'fortran': np.asfortranarray(draw(np.float64, (4, 6))), 'big': draw(np.int32, (7,)).astype('>i4')}
    save(tmp_path / 'a.npz', **want)
    got = read_npz(tmp_path / 'a.npz')
    assert sorted(got) == sorted(want)
    for name in want:
        same(got[name], want[name].astype(want[name].dtype.newbyteorder('=')))


@pytest.mark.parametrize('is_compressed', [False, True])
def test_numpy_reads_what_weir_wrote(tmp_path, is_compressed):
    want = arrays()
    path = tmp_path / 'a.npz'
    with Tensors(list(want.values())) as tensors:
        lib.call('weir_npz_save', str(path).encode(), c_strings(want), tensors, len(want), ctypes.c_bool(is_compressed))
    with np.load(path) as got:
        assert got.zip.testzip() is None
        assert got.files == list(want)
        for name in want:
            same(got[name], want[name])
    assert (path.stat().st_size < sum(a.nbytes for a in want.values())) == is_compressed


def test_npz_of_many(tmp_path):
    want = {f'x{i}': np.int64(i).reshape(()) for i in range(66000)}  # more than 16 bits count: zip64
    path = tmp_path / 'a.npz'
    one = lib.tensor(np.int64(7).reshape(()))
    tensors = (ctypes.c_void_p * len(want))(*[one.value] * len(want))
    lib.call('weir_npz_save', str(path).encode(), c_strings(want), tensors, len(want), ctypes.c_bool(False))
    lib.lib.weir_tensor_release(one)
    with np.load(path) as got:
        assert len(got.files) == len(want) and got['x65999'] == 7
    npz = lib.make('weir_npz_open', str(path).encode(), None)
    assert lib.lib.weir_npz_count(npz) == len(want)
    assert lib.array(lib.make('weir_npz_read', npz, b'x65999')) == 7
    lib.lib.weir_npz_close(npz)


class Entry(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('type', ctypes.c_char_p), ('dtype', ctypes.c_int), ('rank', ctypes.c_int),
                ('dims', ctypes.POINTER(ctypes.c_int64)), ('size', ctypes.c_size_t)]


class Note(ctypes.Structure):
    _fields_ = [('key', ctypes.c_char_p), ('value', ctypes.c_char_p)]


lib.lib.weir_safetensors_at.restype = ctypes.POINTER(Entry)
lib.lib.weir_safetensors_note_at.restype = Note


def read_safetensors(path):
    file = lib.make('weir_safetensors_open', str(path).encode())
    try:
        entries = [lib.lib.weir_safetensors_at(file, i)[0] for i in range(lib.lib.weir_safetensors_count(file))]
        values = {e.name.decode(): lib.array(lib.make('weir_safetensors_read', file, e.name)) for e in entries}
        for entry in entries:
            assert tuple(entry.dims[:entry.rank]) == values[entry.name.decode()].shape
        notes = [lib.lib.weir_safetensors_note_at(file, i) for i in range(lib.lib.weir_safetensors_note_count(file))]
        return values, {n.key.decode(): n.value.decode() for n in notes}
    finally:
        lib.lib.weir_safetensors_close(file)


def hub_arrays():
    return arrays() | {'bf16': draw(np.float32, (9,)).astype(ml_dtypes.bfloat16), 'empty': np.zeros((0, 3), np.float32),
                       'complex': draw(np.float32, (2, 2)).astype(np.complex64), 'naïve "name"\n': draw(np.int8, (3,))}


def test_reads_what_safetensors_wrote(tmp_path):
    want = hub_arrays()
    safetensors.numpy.save_file(want, tmp_path / 'a.safetensors', metadata={'format': 'np', 'ü': '"quoted"'})
    got, notes = read_safetensors(tmp_path / 'a.safetensors')
    assert notes == {'format': 'np', 'ü': '"quoted"'}
    assert sorted(got) == sorted(want)
    for name in want:
        same(got[name], want[name])


def test_safetensors_reads_what_weir_wrote(tmp_path):
    want = hub_arrays()
    path = tmp_path / 'a.safetensors'
    notes = (Note * 1)(Note('ü'.encode(), b'"quoted"'))
    with Tensors(list(want.values())) as tensors:
        lib.call('weir_safetensors_save', str(path).encode(), c_strings(want), tensors, len(want), notes, 1)
    got = safetensors.numpy.load_file(path)
    assert sorted(got) == sorted(want)
    for name in want:
        same(got[name], want[name])
    with safetensors.safe_open(path, 'np') as file:
        assert file.metadata() == {'ü': '"quoted"'}
    same(read_safetensors(path)[0]['large'], want['large'])


def test_says_which_file(tmp_path):
    for function in ('weir_npz_open', 'weir_safetensors_open'):
        arguments = [None] if 'npz' in function else []
        with pytest.raises(WeirError, match='missing') as error:
            lib.make(function, str(tmp_path / 'missing').encode(), *arguments)
        assert error.value.code == 5
        (tmp_path / 'empty').write_bytes(b'')
        with pytest.raises(WeirError, match='empty') as error:
            lib.make(function, str(tmp_path / 'empty').encode(), *arguments)
        assert error.value.code == 3
