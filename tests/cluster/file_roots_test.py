"""--file-roots: graphs of a server's clients read and write below those folders and nowhere else, whichever op it is."""
import itertools
import os
import sqlite3
import subprocess

import numpy as np
import pytest

import clusters

tf, tf1 = clusters.tf, clusters.tf1
raw = tf.raw_ops


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folders in and out with the same files; 'in' has links that lead out."""
    folder = tmp_path_factory.mktemp('roots')
    for name in ('in', 'out'):
        (folder / name).mkdir()
        (folder / name / 'text').write_text('a\nb\n')
        (folder / name / 'words.csv').write_text('0,1,2\n' * 3)
        (folder / name / 'raw').write_bytes(np.arange(4, dtype=np.float32).tobytes())
        with tf.io.TFRecordWriter(str(folder / name / 'record')) as writer:
            writer.write(b'one')
        with sqlite3.connect(folder / name / 'data.db') as db:
            db.execute('CREATE TABLE t (x INTEGER)')
            db.execute('INSERT INTO t VALUES (1)')
        with tf1.Graph().as_default(), tf1.Session() as session:
            session.run(raw.SaveV2(prefix=str(folder / name / 'saved'), tensor_names=['x'], shape_and_slices=[''], tensors=[tf1.constant(1.0)]))
    (folder / 'in' / 'away').symlink_to(folder / 'out')
    (folder / 'in' / 'away_text').symlink_to(folder / 'out' / 'text')
    (folder / 'in' / 'away_new').symlink_to(folder / 'out' / 'new')
    return folder


@pytest.fixture(scope='module')
def task(folder):
    task = clusters.Task('--port=0', f'--file-roots={folder}/in')
    yield task
    assert task.is_alive()
    task.stop()


def elements(dataset):
    return tf1.data.make_one_shot_iterator(dataset).get_next()


def table(path):
    made = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
    with tf1.control_dependencies([raw.InitializeTableFromTextFileV2(table_handle=made, filename=path, key_index=-2, value_index=-1)]):
        return raw.LookupTableSizeV2(table_handle=made)


def summaries(path):
    writer = raw.SummaryWriter()
    with tf1.control_dependencies([raw.CreateSummaryFileWriter(writer=writer, logdir=path, max_queue=1, flush_millis=1, filename_suffix='.x')]):
        return raw.FlushSummaryWriter(writer=writer)


def lines(path):
    reader, queue = tf1.TextLineReader(), raw.FIFOQueueV2(component_types=[tf.string])
    with tf1.control_dependencies([raw.QueueEnqueueV2(handle=queue, components=[tf1.constant(path)])]):
        return raw.ReaderReadV2(reader_handle=reader.reader_ref, queue_handle=queue).value


READS = {
    'ReadFile': lambda f: raw.ReadFile(filename=f + '/text'),
    'MatchingFiles': lambda f: raw.MatchingFiles(pattern=f + '/te*'),
    'MatchingFiles of one': lambda f: raw.MatchingFiles(pattern=f + '/text'),
    'RestoreV2': lambda f: raw.RestoreV2(prefix=f + '/saved', tensor_names=['x'], shape_and_slices=[''], dtypes=[tf.float32])[0],
    'ReaderReadV2': lambda f: lines(f + '/text'),
    'table': lambda f: table(f + '/text'),
    'TextLineDataset': lambda f: elements(tf1.data.TextLineDataset(f + '/text')),
    'TFRecordDataset': lambda f: elements(tf1.data.TFRecordDataset(f + '/record')),
    'FixedLengthRecordDataset': lambda f: elements(tf1.data.FixedLengthRecordDataset(f + '/raw', 4)),
    'CsvDataset': lambda f: elements(tf1.data.experimental.CsvDataset(f + '/words.csv', [tf.int32] * 3)),
    'SqlDataset': lambda f: elements(tf1.data.experimental.SqlDataset('sqlite', f + '/data.db', 'SELECT x FROM t', tf.int32)),
    'list_files': lambda f: elements(tf1.data.Dataset.list_files(f + '/te*', shuffle=False)),
    'ImmutableConst': lambda f: tf1.identity(raw.ImmutableConst(dtype=tf.float32, shape=[4], memory_region_name=f + '/raw')),
    'FixedUnigramCandidateSampler': lambda f: raw.FixedUnigramCandidateSampler(
        true_classes=[[1]], num_true=1, num_sampled=1, unique=False, range_max=3, vocab_file=f + '/words.csv')[0],
}
WRITES = {
    'WriteFile': lambda f: raw.WriteFile(filename=f + '/new/written', contents='x'),
    'SaveV2': lambda f: raw.SaveV2(prefix=f + '/new/saved', tensor_names=['x'], shape_and_slices=[''], tensors=[tf1.constant(1.0)]),
    'MergeV2Checkpoints': lambda f: raw.MergeV2Checkpoints(checkpoint_prefixes=[f + '/saved'], destination_prefix=f + '/new/merged', delete_old_dirs=False),
    'PrintV2': lambda f: raw.PrintV2(input='x', output_stream='file://' + f + '/printed'),
    'SummaryWriter': lambda f: summaries(f + '/new/events'),
    'cache': lambda f: elements(tf1.data.Dataset.range(3).cache(f + '/cached')),
}


numbers = itertools.count()


def run(task, make, path):
    with tf1.Graph().as_default(), tf1.name_scope(f'run{next(numbers)}'):  # state of its own
        made = make(path)
        with tf1.Session(task.target) as session:
            return session.run(made)


@pytest.mark.parametrize('name', [*READS, *WRITES])
def test_ops(task, folder, name):
    make = {**READS, **WRITES}[name]
    before = sorted(os.listdir(folder / 'out'))
    run(task, make, f'{folder}/in')
    for path in (f'{folder}/out', f'{folder}/in/../out', f'{folder}/in/away'):
        with pytest.raises(tf.errors.PermissionDeniedError, match='--file-roots') as error:
            run(task, make, path)
        assert path in str(error.value)
    assert sorted(os.listdir(folder / 'out')) == before


def test_links(task, folder):
    with pytest.raises(tf.errors.PermissionDeniedError):
        run(task, lambda path: raw.ReadFile(filename=path), f'{folder}/in/away_text')
    with pytest.raises(tf.errors.PermissionDeniedError):
        run(task, lambda path: raw.WriteFile(filename=path, contents='x'), f'{folder}/in/away_new')
    assert not (folder / 'out' / 'new').exists()
    with pytest.raises(tf.errors.PermissionDeniedError):
        run(task, lambda path: raw.ReadFile(filename=path), f'/proc/{task.process.pid}/environ')
    with pytest.raises(tf.errors.NotFoundError):  # what is not there is said of the folders only
        run(task, lambda path: raw.ReadFile(filename=path), f'{folder}/in/none')


def test_saver(task, folder):
    """A program of TensorFlow's that keeps its checkpoints below a root notices nothing."""
    with tf1.Graph().as_default():
        variable = tf1.get_variable('v', initializer=tf1.constant([1.0, 2.0]))
        saver = tf1.train.Saver()
        with tf1.Session(task.target) as session:
            session.run(tf1.global_variables_initializer())
            path = saver.save(session, f'{folder}/in/model/ckpt', global_step=3)
            session.run(variable.assign([0.0, 0.0]))
            saver.restore(session, path)
            assert session.run(variable).tolist() == [1.0, 2.0]


def test_bad_roots(folder):
    for roots, words in ((f'{folder}/none', 'No such file'), (f'{folder}/in/text', 'is no folder'), ('', 'is no folder')):
        done = subprocess.run([clusters.WEIR, 'server', '--port=0', f'--file-roots={roots}'], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and words in done.stderr, done.stderr


@pytest.mark.parametrize('flags, is_warned', [([], True), (['--file-roots=/tmp'], False)])
def test_warning(flags, is_warned):
    task = clusters.Task('--port=0', '--bind=0.0.0.0', *flags)
    task.stop()
    assert ('file_roots' in task.errors()) == is_warned, task.errors()
