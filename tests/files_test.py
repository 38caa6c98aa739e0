"""Files against TensorFlow and NumPy: what either writes, the other reads, bit for bit.

Needs tensorflow. Drives src/file through ctypes, in the probe library of the oracle.
"""
import ctypes
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from conftest import BUILD
from weir_tensors import Library, WeirError

INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, DATA_LOSS = 3, 5, 11, 15
PLAIN = [np.float32, np.float64, np.int32, np.uint8, np.int16, np.int8, np.complex64, np.int64, np.bool_, np.uint16,
         np.complex128, np.float16, np.uint32, np.uint64, ml_dtypes.bfloat16]


class View(ctypes.Structure):
    _fields_ = [('data', ctypes.c_char_p), ('size', ctypes.c_size_t)]


class OutView(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('size', ctypes.c_size_t)]


class Names(ctypes.Structure):
    _fields_ = [('items', ctypes.POINTER(ctypes.c_char_p)), ('count', ctypes.c_size_t), ('capacity', ctypes.c_size_t)]


class State(ctypes.Structure):
    _fields_ = [('latest', ctypes.c_char_p), ('all', Names), ('timestamps', ctypes.POINTER(ctypes.c_double)),
                ('last_preserved', ctypes.c_double)]


class Buffer(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('size', ctypes.c_size_t), ('capacity', ctypes.c_size_t),
                ('failed', ctypes.c_bool)]


class Functions:
    """Functions of the probe library: those it exports, and those of src/file that it finds by name."""

    def __init__(self):
        self.library = ctypes.CDLL(str(BUILD / 'tests' / 'oracle' / 'libweir_probe.so'))
        self.library.weir_probe_file_function.restype = ctypes.c_void_p

    def __getattr__(self, name):
        address = self.library.weir_probe_file_function(name.encode())
        function = ctypes.CFUNCTYPE(ctypes.c_int)(address) if address else getattr(self.library, name)
        setattr(self, name, function)
        return function


def view(data):
    data = data.encode() if isinstance(data, str) else data
    return View(data, len(data))


def path_of(path):
    return ctypes.c_char_p(str(path).encode())


@pytest.fixture(scope='session')
def weir():
    functions = Functions()
    functions.weir_event_writer_path.restype = ctypes.c_char_p
    return Library(functions)


def samples(rng):
    """Tensors of every type: a matrix, an empty one, a scalar."""
    out = {}
    for dtype in PLAIN:
        name = np.dtype(dtype).name
        out[f'{name}/matrix'] = np.abs(rng.standard_normal((3, 5)) * 50).astype(dtype)
        out[f'{name}/empty'] = np.zeros((0, 4), dtype)
        out[f'{name}/scalar'] = np.asarray(7, dtype)
    out['strings'] = np.array([b'', b'short', b'\0\xff bytes', b'x' * 1000, b'y' * 200], dtype=object)
    out['string'] = np.array(b'one', dtype=object)
    out['no strings'] = np.zeros((0,), object)
    out['special'] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    return out


def assert_same(got, expected):
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if got.dtype == object:
        assert got.tolist() == expected.tolist()
    else:
        assert got.tobytes() == np.ascontiguousarray(expected).tobytes()


# ---- checkpoints ----

def tf_save(prefix, tensors, specs=None):
    values = [tf.constant(v, tf.string, v.shape) if v.dtype == object else tf.constant(v) for v in tensors.values()]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(tensors), shape_and_slices=specs or [''] * len(tensors),
                      tensors=values)


def weir_save(weir, prefix, tensors):
    writer = weir.make('weir_bundle_writer_create', path_of(prefix), ctypes.c_size_t(1))
    for name, value in tensors.items():
        tensor = weir.tensor(value)
        weir.call('weir_bundle_add', writer, view(name), tensor)
        weir.lib.weir_tensor_release(tensor)
    weir.call('weir_bundle_finish', writer)
    weir.lib.weir_bundle_writer_destroy(writer)


def weir_load(weir, prefix, name):
    bundle = weir.make('weir_bundle_open', path_of(prefix))
    try:
        return weir.array(weir.make('weir_bundle_read', bundle, view(name)))
    finally:
        weir.lib.weir_bundle_close(bundle)


def test_checkpoint_of_tensorflow(weir, tmp_path):
    tensors = samples(np.random.default_rng(1))
    tf_save(tmp_path / 'tf', tensors)
    for name, value in tensors.items():
        assert_same(weir_load(weir, tmp_path / 'tf', name), value)
    with pytest.raises(WeirError, match='Key absent not found in checkpoint') as error:
        weir_load(weir, tmp_path / 'tf', 'absent')
    assert error.value.code == NOT_FOUND


def test_checkpoint_for_tensorflow(weir, tmp_path):
    tensors = samples(np.random.default_rng(2))
    weir_save(weir, tmp_path / 'weir', tensors)
    reader = tf.train.load_checkpoint(str(tmp_path / 'weir'))
    shapes = reader.get_variable_to_shape_map()
    assert {k: tuple(v) for k, v in shapes.items()} == {k: v.shape for k, v in tensors.items()}
    for name, value in tensors.items():
        dtype = tf.string if value.dtype == object else tf.as_dtype(value.dtype)
        got = tf.raw_ops.RestoreV2(prefix=str(tmp_path / 'weir'), tensor_names=[name], shape_and_slices=[''],
                                   dtypes=[dtype])[0].numpy()
        assert_same(np.array(got, dtype=object) if dtype == tf.string else np.asarray(got), value)


def test_checkpoint_files_are_equal(weir, tmp_path):
    """The very bytes: index and data."""
    tensors = samples(np.random.default_rng(3))
    tensors.update({f'layer_{i}/kernel/{"x" * (i % 50)}': np.float32(i).reshape(1) for i in range(9000)})
    tf_save(tmp_path / 'tf', tensors)
    weir_save(weir, tmp_path / 'weir', tensors)
    for end in ('.index', '.data-00000-of-00001'):
        assert (tmp_path / ('tf' + end)).read_bytes() == (tmp_path / ('weir' + end)).read_bytes()


def test_partitioned_of_tensorflow(weir, tmp_path):
    whole = np.arange(400 * 3, dtype=np.float32).reshape(400, 3)
    cuts = [0, 1, 70, 400]
    parts = {}
    tensors = [tf.constant(whole[a:b]) for a, b in zip(cuts, cuts[1:])]
    specs = [f'400 3 {a},{b - a}:-' for a, b in zip(cuts, cuts[1:])]
    # A name may be there once in a SaveV2: each part in a checkpoint of its own, merged by Weir.
    for i, (tensor, spec) in enumerate(zip(tensors, specs)):
        tf.raw_ops.SaveV2(prefix=str(tmp_path / f'part{i}'), tensor_names=['v', f'own{i}'], shape_and_slices=[spec, ''],
                          tensors=[tensor, tf.constant(i)])
        parts[i] = str(tmp_path / f'part{i}').encode()
    prefixes = (ctypes.c_char_p * 3)(*parts.values())
    weir.call('weir_bundle_merge', prefixes, ctypes.c_size_t(3), path_of(tmp_path / 'all'), ctypes.c_bool(False))
    assert sorted(p.name for p in tmp_path.iterdir()) == [f'all.data-0000{i}-of-00003' for i in range(3)] + ['all.index']
    assert_same(weir_load(weir, tmp_path / 'all', 'v'), whole)
    reader = tf.train.load_checkpoint(str(tmp_path / 'all'))
    assert_same(reader.get_tensor('v'), whole)
    assert [reader.get_tensor(f'own{i}') for i in range(3)] == [0, 1, 2]
    box = tf.raw_ops.RestoreV2(prefix=str(tmp_path / 'all'), tensor_names=['v'], shape_and_slices=['400 3 60,20:1,2'],
                               dtypes=[tf.float32])[0].numpy()
    assert_same(box, whole[60:80, 1:3])


def test_merge_is_that_of_tensorflow(weir, tmp_path):
    for kind in ('tf', 'weir'):
        for i in range(3):
            tf_save(tmp_path / f'{kind}{i}', {f'a{i}': np.arange(i + 2.0), f'b{i}': np.array([b'x'], object)})
    prefixes = [str(tmp_path / f'tf{i}') for i in range(3)]
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=str(tmp_path / 'tf'))
    ours = (ctypes.c_char_p * 3)(*[str(tmp_path / f'weir{i}').encode() for i in range(3)])
    weir.call('weir_bundle_merge', ours, ctypes.c_size_t(3), path_of(tmp_path / 'weir'), ctypes.c_bool(False))
    assert (tmp_path / 'tf.index').read_bytes() == (tmp_path / 'weir.index').read_bytes()
    for i in range(3):
        end = f'.data-0000{i}-of-00003'
        assert (tmp_path / ('tf' + end)).read_bytes() == (tmp_path / ('weir' + end)).read_bytes()


def test_object_checkpoint(weir, tmp_path):
    """What tf.train.Checkpoint writes today."""
    variable = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
    prefix = tf.train.Checkpoint(v=variable).save(str(tmp_path / 'ckpt'))
    assert_same(weir_load(weir, prefix, 'v/.ATTRIBUTES/VARIABLE_VALUE'), variable.numpy())
    latest = Buffer()
    weir.call('weir_checkpoint_latest', path_of(tmp_path), ctypes.byref(latest))
    assert ctypes.string_at(latest.data, latest.size).decode() == prefix == tf.train.latest_checkpoint(str(tmp_path))
    weir.lib.weir_strbuf_free(ctypes.byref(latest))


def test_checkpoint_state_for_tensorflow(weir, tmp_path):
    names = (ctypes.c_char_p * 2)(b'm-1', b'quote"\\m-2')
    state = State(b'quote"\\m-2', Names(names, 2, 2), (ctypes.c_double * 2)(1.5, 1e9 + 0.125), 3.5)
    weir.call('weir_checkpoint_state_save', path_of(tmp_path), ctypes.byref(state))
    read = tf.train.get_checkpoint_state(str(tmp_path))
    assert read.model_checkpoint_path == str(tmp_path / 'quote"\\m-2')
    assert list(read.all_model_checkpoint_timestamps) == [1.5, 1e9 + 0.125]
    assert read.last_preserved_timestamp == 3.5


# ---- records ----

RECORDS = [b'', b'a', bytes(range(256)) * 3, b'z' * 700000, b'end']


def weir_records(weir, path):
    reader = weir.make('weir_record_reader_open', path_of(path))
    out = []
    try:
        while True:
            record = OutView()
            weir.call('weir_record_next', reader, ctypes.byref(record))
            out.append(ctypes.string_at(record.data, record.size))
    except WeirError as error:
        if error.code != OUT_OF_RANGE:
            raise
    finally:
        weir.lib.weir_record_reader_destroy(reader)
    return out


def test_records(weir, tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / 'tf')) as writer:
        for record in RECORDS:
            writer.write(record)
    assert weir_records(weir, tmp_path / 'tf') == RECORDS
    writer = weir.make('weir_writer_open', path_of(tmp_path / 'weir'), ctypes.c_bool(False))
    for record in RECORDS:
        weir.call('weir_record_write', writer, ctypes.c_char_p(record), ctypes.c_size_t(len(record)))
    weir.call('weir_writer_close', writer)
    assert (tmp_path / 'weir').read_bytes() == (tmp_path / 'tf').read_bytes()
    assert [r.numpy() for r in tf.data.TFRecordDataset(str(tmp_path / 'weir'))] == RECORDS


@pytest.mark.parametrize('damage', ['cut body', 'flip length', 'flip body'])
def test_damaged_records(weir, tmp_path, damage):
    with tf.io.TFRecordWriter(str(tmp_path / 'r')) as writer:
        writer.write(b'hello')
    data = bytearray((tmp_path / 'r').read_bytes())
    if damage.startswith('cut'):
        data = data[:15]
    else:
        data[0 if 'length' in damage else 14] ^= 1
    (tmp_path / 'r').write_bytes(data)
    with pytest.raises(WeirError, match='truncated' if 'cut' in damage else 'corrupted') as error:
        weir_records(weir, tmp_path / 'r')
    assert error.value.code == DATA_LOSS
    with pytest.raises(tf.errors.DataLossError, match='truncated' if 'cut' in damage else 'corrupted'):
        list(tf.data.TFRecordDataset(str(tmp_path / 'r')))


def test_cut_header_is_the_end(weir, tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / 'r')) as writer:
        writer.write(b'hello')
        writer.write(b'world')
    (tmp_path / 'r').write_bytes((tmp_path / 'r').read_bytes()[:21 + 7])
    assert weir_records(weir, tmp_path / 'r') == [b'hello']
    assert [r.numpy() for r in tf.data.TFRecordDataset(str(tmp_path / 'r'))] == [b'hello']


# ---- events ----

def test_events(weir, tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name='c')
    graph_def = graph.as_graph_def().SerializeToString()
    summary = tf.raw_ops.HistogramSummary(tag='h', values=np.random.default_rng(5).standard_normal(1000)).numpy()
    writer = weir.make('weir_event_writer_create', path_of(tmp_path / 'logs'), ctypes.c_char_p(b'.x'))
    path = weir.lib.weir_event_writer_path(writer).decode()
    weir.call('weir_event_add_graph', writer, ctypes.c_int64(0), view(graph_def))
    weir.call('weir_event_add_scalar', writer, ctypes.c_int64(3), ctypes.c_char_p(b'loss'), ctypes.c_double(0.25))
    weir.call('weir_event_add_summary', writer, ctypes.c_int64(4), view(summary))
    weir.call('weir_event_writer_close', writer)
    events = list(tf.compat.v1.train.summary_iterator(path))
    assert events[0].file_version == 'brain.Event:2'
    assert all(abs(e.wall_time - os.path.getmtime(path)) < 60 for e in events)
    assert events[1].graph_def == graph_def
    assert (events[2].step, events[2].summary.value[0].tag, events[2].summary.value[0].simple_value) == (3, 'loss', 0.25)
    assert events[3].step == 4 and events[3].summary.SerializeToString() == summary
    assert len(events) == 4


# ---- npy ----

NPY = [d for d in PLAIN if d is not ml_dtypes.bfloat16]


@pytest.mark.parametrize('dtype', NPY, ids=lambda d: np.dtype(d).name)
def test_npy(weir, tmp_path, dtype):
    rng = np.random.default_rng(6)
    full = np.abs(rng.standard_normal((2, 3, 4)) * 50).astype(dtype)
    for i, array in enumerate([full, full[0, 0, 0], full[:0], full[0, 0], full.reshape(1, 24)]):
        array = np.asarray(array)
        np.save(tmp_path / 'np.npy', array)
        assert_same(weir.array(weir.make('weir_npy_load', path_of(tmp_path / 'np.npy'))), array)
        tensor = weir.tensor(array)
        weir.call('weir_npy_save', path_of(tmp_path / 'weir.npy'), tensor)
        weir.lib.weir_tensor_release(tensor)
        assert (tmp_path / 'weir.npy').read_bytes() == (tmp_path / 'np.npy').read_bytes()
    others = [np.asfortranarray(full), full.astype(np.dtype(dtype).newbyteorder('>')),
              np.asfortranarray(full.astype(np.dtype(dtype).newbyteorder('>')))]
    for array in others:
        for version in [(1, 0), (2, 0), (3, 0)]:
            with open(tmp_path / 'np.npy', 'wb') as file:
                np.lib.format.write_array(file, array, version)
            assert_same(weir.array(weir.make('weir_npy_load', path_of(tmp_path / 'np.npy'))), full)


def test_npy_strings(weir, tmp_path):
    texts = np.array([['a', 'grün'], ['€ 😀', '']])
    np.save(tmp_path / 'a.npy', texts)
    assert weir.array(weir.make('weir_npy_load', path_of(tmp_path / 'a.npy'))).tolist() == \
        [[s.encode() for s in row] for row in texts.tolist()]
    np.save(tmp_path / 'a.npy', np.array([b'x', b'longer']))
    got = weir.array(weir.make('weir_npy_load', path_of(tmp_path / 'a.npy')))
    assert got.tolist() == [b'x', b'longer']
    tensor = weir.tensor(got)
    weir.call('weir_npy_save', path_of(tmp_path / 'b.npy'), tensor)
    weir.lib.weir_tensor_release(tensor)
    assert (tmp_path / 'b.npy').read_bytes() == (tmp_path / 'a.npy').read_bytes()
