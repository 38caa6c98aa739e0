"""Readers and lookup tables against TensorFlow: the same graph, made by TensorFlow's client, step by step in both.

Needs tensorflow. Runs libweir through ctypes.
"""
import gzip
import os
import sys
import zlib

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest

tf = pytest.importorskip('tensorflow')

from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
import libweir

raw, tf1 = tf.raw_ops, tf.compat.v1


@pytest.fixture(scope='module')
def lib():
    return libweir.Library(str(BUILD / 'libweir.so'))


def outcome(call):
    """('ok', values) or ('error', code)."""
    try:
        return 'ok', [np.asarray(v).tolist() for v in call()]
    except tf.errors.OpError as error:
        return 'error', error.error_code
    except libweir.Error as error:
        return 'error', error.code


def compare(lib, build):
    """build() makes a graph and returns its steps: a list of tensors to fetch, or an operation. An error is a result, too."""
    with tf1.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        steps = build()
        weir = libweir.Graph(lib, graph.as_graph_def(), threads=2)
        try:
            for i, step in enumerate(steps):
                if isinstance(step, tf.Operation):
                    want = outcome(lambda: [session.run(step)] and [])
                    got = outcome(lambda: weir.run_node(step.name) or [])
                else:
                    want = outcome(lambda: session.run(step))
                    got = outcome(lambda: weir.run([weir.edge(t.name) for t in step]))
                assert got == want, f'step {i}: {step}'
        finally:
            weir.close()


# ---- readers ----

@pytest.fixture
def files(tmp_path):
    contents = {'a': b'l1\nl2\r\nl3', 'b': b'x\ry\n\nz\n', 'carriage': b'p\r\r\nq\r', 'empty': b'', 'fixed': b'HHrec1rec2rec3F',
                'long': b'0123456789' * 60000 + b'\nend\n'}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    with tf.io.TFRecordWriter(str(tmp_path / 'records')) as writer:
        for record in (b'one', b'', b'three'):
            writer.write(record)
    data = (tmp_path / 'records').read_bytes()
    (tmp_path / 'truncated').write_bytes(data[:-2])
    (tmp_path / 'corrupted').write_bytes(data[:25] + b'X' + data[26:])
    for kind, pack in (('zlib', zlib.compress), ('gzip', gzip.compress)):
        for name in ('records', 'fixed', 'empty', 'long', 'truncated'):
            (tmp_path / f'{name}.{kind}').write_bytes(pack((tmp_path / name).read_bytes()))
        packed = (tmp_path / f'records.{kind}').read_bytes()
        (tmp_path / f'twice.{kind}').write_bytes(packed + packed)
        (tmp_path / f'cut.{kind}').write_bytes(packed[:-6])
        (tmp_path / f'half.{kind}').write_bytes(packed[:len(packed) // 2])
        (tmp_path / f'damaged.{kind}').write_bytes(packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:])
        (tmp_path / f'nothing.{kind}').write_bytes(b'')
    with tf.io.TFRecordWriter(str(tmp_path / 'many.gzip'), tf.io.TFRecordOptions(compression_type='GZIP')) as writer:
        for i in range(3000):
            writer.write(bytes([i % 251]) * (i % 700))
    return lambda *names: [str(tmp_path / name) for name in names]


def reading(make, names, count, limit=None):
    """Steps: fill and close the queue, then |count| reads, each followed by the counters; a reset at the end."""
    def build():
        queue = tf1.FIFOQueue(20, tf.string, shapes=[[]])
        reader = make()
        if limit is None:
            read = raw.ReaderReadV2(reader_handle=reader, queue_handle=queue.queue_ref)
        else:
            read = raw.ReaderReadUpToV2(reader_handle=reader, queue_handle=queue.queue_ref, num_records=np.int64(limit))
        counters = [raw.ReaderNumRecordsProducedV2(reader_handle=reader), raw.ReaderNumWorkUnitsCompletedV2(reader_handle=reader)]
        steps = [queue.enqueue_many([names]), queue.close()]
        return steps + [list(read), counters] * count + [raw.ReaderResetV2(reader_handle=reader), counters, list(read)]
    return build


def text(**attrs):
    return lambda: raw.TextLineReaderV2(**attrs)


def fixed(**attrs):
    return lambda: raw.FixedLengthRecordReaderV2(**attrs)


def records(**attrs):
    return lambda: raw.TFRecordReaderV2(**attrs)


def whole(**attrs):
    return lambda: raw.WholeFileReaderV2(**attrs)


@pytest.mark.parametrize('make, names, count', [
    (text(), ['a', 'empty', 'b', 'carriage'], 10),
    (text(), ['long', 'a'], 4),
    (text(), ['missing', 'a'], 2),
    (text(), ['empty'] * 12 + ['a'], 2),
    (text(skip_header_lines=2), ['a', 'empty', 'b'], 4),
    (text(skip_header_lines=-1), ['a'], 1),
    (whole(), ['a', 'empty', 'b'], 4),
    (whole(), ['missing', 'a'], 2),
    (fixed(record_bytes=4, header_bytes=2, footer_bytes=1), ['fixed', 'a'], 5),
    (fixed(record_bytes=4, hop_bytes=3), ['fixed'], 6),
    (fixed(record_bytes=4, hop_bytes=30), ['fixed'], 3),
    (fixed(record_bytes=4, header_bytes=100), ['fixed', 'a'], 3),
    (fixed(record_bytes=0), ['fixed'], 2),
    (fixed(record_bytes=-1), ['fixed'], 1),
    (fixed(record_bytes=3, header_bytes=-1), ['fixed'], 1),
    (fixed(record_bytes=3, footer_bytes=-1), ['fixed'], 1),
    (fixed(record_bytes=3, hop_bytes=-1), ['fixed'], 1),
    (fixed(record_bytes=4, encoding='other'), ['fixed'], 1),
    (records(), ['records', 'empty', 'records'], 8),
    (records(), ['truncated', 'records'], 5),
    (records(), ['corrupted', 'records'], 5),
    (records(compression_type='other'), ['records'], 1),
    (records(compression_type='ZLIB'), ['records.zlib', 'empty.zlib', 'nothing.zlib', 'records.zlib'], 8),
    (records(compression_type='GZIP'), ['records.gzip', 'empty.gzip', 'nothing.gzip', 'records.gzip'], 8),
    (records(compression_type='GZIP'), ['many.gzip'], 20),
    (records(compression_type='GZIP'), ['twice.gzip'], 8),
    (records(compression_type='ZLIB'), ['cut.zlib', 'records.zlib'], 6),
    (records(compression_type='GZIP'), ['half.gzip', 'records.gzip'], 3),
    (records(compression_type='ZLIB'), ['truncated.zlib'], 4),
    (records(compression_type='ZLIB'), ['damaged.zlib'], 2),
    (records(compression_type='GZIP'), ['damaged.gzip'], 2),
    (records(compression_type='ZLIB'), ['records'], 2),
    (records(compression_type='GZIP'), ['records.zlib'], 2),
    (records(compression_type='ZLIB'), ['missing', 'records.zlib'], 3),
    (fixed(record_bytes=4, header_bytes=2, footer_bytes=1, encoding='ZLIB'), ['fixed.zlib', 'fixed.zlib'], 8),
    (fixed(record_bytes=4, hop_bytes=3, encoding='GZIP'), ['fixed.gzip'], 6),
    (fixed(record_bytes=4, hop_bytes=30, encoding='ZLIB'), ['fixed.zlib'], 3),
    (fixed(record_bytes=4, header_bytes=100, encoding='ZLIB'), ['fixed.zlib', 'fixed.zlib'], 3),
    (fixed(record_bytes=100000, hop_bytes=140000, encoding='GZIP'), ['long.gzip'], 6),
    (fixed(record_bytes=4, encoding='GZIP'), ['fixed'], 2),
])
def test_reads_as_tensorflow(lib, files, make, names, count):
    compare(lib, reading(make, files(*names), count))


@pytest.mark.parametrize('make, names, limit', [
    (text(), ['a', 'empty', 'b'], 5), (text(), ['a', 'empty', 'b'], 2), (text(), ['a'], 0), (whole(), ['a', 'b'], 2),
    (fixed(record_bytes=4, header_bytes=2, footer_bytes=1), ['fixed', 'a', 'fixed'], 5),
    (records(compression_type='GZIP'), ['many.gzip', 'records.gzip'], 1900),
    (fixed(record_bytes=70000, encoding='ZLIB'), ['long.zlib'], 5),
    (records(), ['records', 'empty', 'records'], 5), (records(), ['truncated'], 5), (records(), ['records'], 2),
])
def test_reads_up_to_as_tensorflow(lib, files, make, names, limit):
    compare(lib, reading(make, files(*names), 4, limit))


def test_reads_what_string_input_producer_queues(lib, files):
    """One step enqueues while another read waits for the name: a read holds no thread."""
    def build():
        queue = tf1.FIFOQueue(1, tf.string, shapes=[[]])
        reader = tf1.TextLineReader()
        enqueue = queue.enqueue([files('a')[0]])
        key, value = reader.read(queue)
        again, more = reader.read(queue)
        with tf1.control_dependencies([enqueue]):
            both = tf.identity(value)
        return [[both], [tf.strings.length(tf.strings.join([key, again]))], [reader.num_records_produced()]]
    compare(lib, build)


# ---- tables ----

VALUES = {'string': ['a', 'a longer string than fits inside', ''], 'int64': [5, -6, 1 << 40], 'int32': [5, -6, 7],
          'float32': [.5, -2, 0], 'float64': [.5, -2, 0], 'bool': [True, False, True]}
KEYS = {'string': ['k', 'another key that is rather long', ''], 'int64': [1, -2, 1 << 50], 'int32': [1, -2, 3]}
HASH = [(k, v) for k in KEYS for v in VALUES if (k, v) not in {('int64', 'bool'), ('int32', 'bool'), ('int32', 'int64')}]
MUTABLE = [p for p in HASH if p not in {('string', 'string'), ('int32', 'string')}]


def array(values, dtype):
    return np.array([v.encode() for v in values], object) if dtype == 'string' else np.array(values, dtype)


@pytest.mark.parametrize('key, value', HASH)
def test_hash_table(lib, key, value):
    keys, values = array(KEYS[key], key), array(VALUES[value], value)

    def build():
        table = raw.HashTableV2(key_dtype=key, value_dtype=value)

        def find(k, default):
            return [raw.LookupTableFindV2(table_handle=table, keys=k, default_value=default)]

        def initialize(k, v):
            return raw.InitializeTableV2(table_handle=table, keys=k, values=v)
        size = [raw.LookupTableSizeV2(table_handle=table)]
        export = list(raw.LookupTableExportV2(table_handle=table, Tkeys=key, Tvalues=value))
        return [size, export, find(keys, values[1]), initialize(keys[[0, 0]], values[:2]), size, initialize(keys[:2], values[:2]),
                size, find(keys[::-1].reshape(3, 1), values[2]), find(keys, values[[2, 1, 0]]), find(keys, values[:1]),
                find(keys[0], values[2]), find(keys[:0], values[2]), initialize(keys[1:], values[1:]), initialize(keys, values),
                raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values),
                raw.LookupTableImportV2(table_handle=table, keys=keys, values=values),
                raw.LookupTableRemoveV2(table_handle=table, keys=keys), find(keys, values[2])]
    compare(lib, build)


@pytest.mark.parametrize('key, value', MUTABLE)
def test_mutable_hash_table(lib, key, value):
    keys, values = array(KEYS[key], key), array(VALUES[value], value)

    def build():
        table = raw.MutableHashTableV2(key_dtype=key, value_dtype=value)

        def find(k, default):
            return [raw.LookupTableFindV2(table_handle=table, keys=k, default_value=default)]

        def insert(k, v):
            return raw.LookupTableInsertV2(table_handle=table, keys=k, values=v)

        def remove(k):
            return raw.LookupTableRemoveV2(table_handle=table, keys=k)
        size = [raw.LookupTableSizeV2(table_handle=table)]
        export = list(raw.LookupTableExportV2(table_handle=table, Tkeys=key, Tvalues=value))
        return [size, export, raw.InitializeTableV2(table_handle=table, keys=keys, values=values), insert(keys[:2], values[:2]),
                find(keys, values[2]), find(keys, values[[2, 1, 0]]), find(keys, values[:2]), insert(keys.reshape(1, 3),
                values[::-1].reshape(1, 3)), find(keys, values[0]), size, remove(keys[1:]), export, remove(keys[1:]),
                insert(keys, values[:2]), raw.LookupTableImportV2(table_handle=table, keys=keys[[1, 1]], values=values[:2]),
                export, size]
    compare(lib, build)


def test_mismatches_and_old_handles(lib):
    keys, values = np.array([1, 2], np.int64), np.array([.5, 1.5], np.float32)

    def build():
        table = raw.HashTableV2(key_dtype='int64', value_dtype='float32', shared_name='t')
        other = raw.HashTableV2(key_dtype='int64', value_dtype='string', shared_name='t')
        old = raw.MutableHashTable(key_dtype='int64', value_dtype='float32')
        return [raw.InitializeTableV2(table_handle=table, keys=keys, values=values),
                [raw.LookupTableFindV2(table_handle=table, keys=keys.astype(np.int32), default_value=values[0])],
                [raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=keys[0])],
                raw.InitializeTableV2(table_handle=table, keys=keys, values=keys),
                [raw.LookupTableSizeV2(table_handle=other)],
                raw.LookupTableInsert(table_handle=old, keys=keys, values=values),
                [raw.LookupTableFind(table_handle=old, keys=keys[1:], default_value=values[0])],
                raw.LookupTableImport(table_handle=old, keys=keys[:1], values=values[:1]),
                list(raw.LookupTableExport(table_handle=old, Tkeys='int64', Tvalues='float32')),
                [raw.LookupTableSize(table_handle=old)]]
    compare(lib, build)
