"""weir show, run, checkpoint and bench on files that TensorFlow and Keras wrote; misspelt names."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import conftest

WRITER = '''
import tensorflow as tf, numpy as np
x = np.arange(8, dtype=np.float32).reshape(2, 4)
model = tf.keras.Sequential([tf.keras.Input((4,), name='x'), tf.keras.layers.Dense(3, 'relu'), tf.keras.layers.Dense(2)])
model.export('exported', verbose=False)
model.save('m.keras')
model.save('m.h5')
np.save('x.npy', x)
np.savez('a.npz', x=x, y=x)
np.save('y.npy', model.predict(x, verbose=0))
with tf.io.TFRecordWriter('a.tfrecord') as w:
    for i in range(5):
        w.write(tf.train.Example(features=tf.train.Features(feature={
            'label': tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            'v': tf.train.Feature(float_list=tf.train.FloatList(value=[1, 2, 3]))})).SerializeToString())
with tf.summary.create_file_writer('logs').as_default():
    for i in range(3):
        tf.summary.scalar('loss', 1 / (i + 1), step=i)
v1 = tf.compat.v1
with tf.Graph().as_default():
    kernel = v1.get_variable('dense/kernel', initializer=x)
    bias = v1.get_variable('dense/bias', initializer=np.zeros(2, np.float32))
    v1.get_variable('step_count', initializer=np.int64(7))
    images = v1.placeholder(tf.float32, [None, 4], name='images')
    out = tf.add(tf.matmul(images, kernel, transpose_b=True), bias, name='out')
    first = v1.variables_initializer(v1.global_variables(), name='first')
    saver = v1.train.Saver()
    with v1.Session() as session:
        session.run(first)
        saver.save(session, 'ck/model.ckpt', global_step=7)
    # Named by nobody: init, step and loss are found by what they are.
    error = tf.reduce_mean(tf.square(out), name='error')
    train = v1.train.MomentumOptimizer(0.01, 0.9).minimize(error, name='update')
    v1.variables_initializer(v1.global_variables(), name='start')
    tf.io.write_graph(v1.get_default_graph().as_graph_def(), '.', 'train.pb', as_text=False)
with tf.Graph().as_default():
    v = v1.get_variable('v', initializer=x, use_resource=False)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        v1.train.Saver(write_version=v1.train.SaverDef.V1).save(session, 'ck1', write_meta_graph=False)
'''


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """A folder of files that TensorFlow, Keras and NumPy wrote, in one process of theirs."""
    folder = tmp_path_factory.mktemp('files')
    subprocess.run([sys.executable, '-c', WRITER], cwd=folder, check=True, capture_output=True,
                   env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'})
    return folder


@pytest.fixture
def tool(files):
    """Runs the command where the files are; fails the test where its exit code is another."""
    def run(*args, code=0):
        done = subprocess.run([conftest.BUILD / 'cli' / 'weir', *map(str, args)], cwd=files, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr
    return run


@pytest.mark.parametrize('name, kind, text', [
    ('exported', 'saved_model', "signature 'serving_default'"), ('exported/saved_model.pb', 'saved_model', 'tags: serve'),
    ('m.keras', 'keras', 'export'), ('m.h5', 'hdf5', 'export'), ('x.npy', 'npy', 'float [2,4]'), ('a.npz', 'npz', 'y.npy'),
    ('a.tfrecord', 'tfrecord', '5 records'), ('ck', 'checkpoint', 'dense/kernel'), ('ck/model.ckpt-7', 'checkpoint', 'V2'),
    ('ck/model.ckpt-7.data-00000-of-00001', 'checkpoint', 'V2'), ('ck/checkpoint', 'checkpoint', 'step_count'),
    ('ck1', 'checkpoint', 'V1'), ('ck/model.ckpt-7.meta', 'meta_graph', 'images'), ('train.pb', 'graph', 'Momentum'),
    ('logs', 'directory', 'events.out')])
def test_show(tool, name, kind, text):
    assert text in tool('show', name)
    assert json.loads(tool('show', name, '--json'))['kind'] == kind


def test_show_looks_at_bytes(tool, files):
    (files / 'model.pb').write_bytes((files / 'x.npy').read_bytes())
    assert 'NumPy' in tool('show', 'model.pb')
    events = next((files / 'logs').iterdir())
    shown = json.loads(tool('show', events, '--json'))
    assert shown['kind'] == 'events' and shown['tags'][0] == {'tag': 'loss', 'count': 3, 'first_step': 0, 'last_step': 2}
    header = json.dumps({'w': {'dtype': 'F32', 'shape': [1, 2], 'data_offsets': [0, 8]}}).encode()
    (files / 's.bin').write_bytes(len(header).to_bytes(8, 'little') + header + bytes(8))
    assert json.loads(tool('show', 's.bin', '--json'))['tensors'] == [{'name': 'w', 'dtype': 'F32', 'shape': [1, 2], 'bytes': 8}]


def test_show_names_signatures_and_missing_ops(tool, files):
    shown = json.loads(tool('show', 'exported', '--json'))['graphs'][0]
    serving = next(s for s in shown['signatures'] if s['name'] == 'serving_default')
    assert shown['tags'] == ['serve'] and shown['missing_ops'] == []
    assert [(p['name'], p['dtype'], p['shape']) for p in serving['inputs']] == [('x', 'float', [-1, 4])]
    (files / 'odd.pbtxt').write_text('node {name: "a" op: "NobodyHasThis"}')
    assert json.loads(tool('show', 'odd.pbtxt', '--json'))['missing_ops'] == ['NobodyHasThis']


@pytest.mark.parametrize('name', ['exported/saved_model.pb', 'ck/model.ckpt-7.index', 'ck/model.ckpt-7.meta', 'a.tfrecord', 'x.npy',
                                  'a.npz', 'ck1', 'train.pb'])
def test_show_survives_damage(files, name):
    """What is cut off or changed has a clear status, whatever the byte."""
    data = (files / name).read_bytes()
    path = files / 'damaged.bin'
    for i in range(6):
        cut = bytearray(data[:len(data) * (i + 1) // 7] if i % 2 else data)
        cut[(7919 * (i + 1)) % len(cut)] ^= 0xff
        path.write_bytes(cut)
        done = subprocess.run([conftest.BUILD / 'cli' / 'weir', 'show', path], capture_output=True, check=False)
        assert done.returncode in (0, 1) and (done.returncode == 0) == (done.stderr == b''), (i, done.stderr)


def test_run_model(tool, files):
    result = json.loads(tool('run', 'exported', '--feed', 'x=@x.npy', '--json'))
    output = result['outputs']['output_0']
    assert list(result) == ['outputs'] and output['dtype'] == 'float' and output['shape'] == [2, 2]
    np.testing.assert_allclose(np.reshape(output['values'], output['shape']), np.load(files / 'y.npy'), rtol=1e-5)
    tool('run', 'exported', '--feed', f'x={np.load(files / "x.npy").tolist()}', '--out', 'output_0=@out.npy')
    np.testing.assert_allclose(np.load(files / 'out.npy'), np.load(files / 'y.npy'), rtol=1e-5)
    assert "did you mean 'serving_default'?" in tool('run', 'exported', '--signature=serving_defalt', code=1)
    assert 'inputs: x' in tool('run', 'exported', '--feed', 'y=1', code=1)
    assert '[1,3]' in tool('run', 'exported', '--feed', 'x=[[1,2,3]]', code=1)


def test_run_graph_with_checkpoint(tool):
    args = ['ck/model.ckpt-7.meta', '--feed', 'images=[[1,0,0,0],[0,1,0,0]]', '--fetch', 'out']
    assert tool('run', *args, '--checkpoint=ck/model.ckpt-7') == tool('run', *args) == 'out = [[0 4] [1 5]]\n'
    assert tool('run', 'train.pb', *args[1:], '--checkpoint=ck', code=1)  # Momentum's slots are not in it


def test_json_values(tool, files):
    values = np.array([np.nan, np.inf, -np.inf, 0.1, 1e30], np.float32)
    np.save(files / 'odd.npy', values)
    (files / 'same.pbtxt').write_text('node {name: "x" op: "Placeholder" attr {key: "dtype" value {type: DT_FLOAT}}}'
                                      'node {name: "s" op: "Placeholder" attr {key: "dtype" value {type: DT_STRING}}}')
    shown = json.loads(tool('run', 'same.pbtxt', '--feed=x=@odd.npy', '--feed=s=["a\\"b", "\\u00e9"]', '--fetch=x', '--fetch=s', '--json'),
                       parse_constant=lambda c: pytest.fail(c))['outputs']
    assert shown['x']['values'][:3] == ['NaN', 'Infinity', '-Infinity']
    np.testing.assert_array_equal(np.float32(shown['x']['values'][3:]), values[3:])
    assert shown['s']['values'] == ['a"b', 'é'] and shown['s']['shape'] == [2]


@pytest.mark.parametrize('value', ['[1,[2]]', '[1,2', '[[1],[2,3]]', '[1]2', '1,,2', '[a]', '[' * 50])
def test_bad_values(tool, value):
    assert 'INVALID_ARGUMENT' in tool('run', 'train.pb', f'--feed=images={value}', '--fetch=images', code=1)


def test_checkpoint(tool, files):
    listed = json.loads(tool('checkpoint', 'list', 'ck', '--json'))
    assert [(t['name'], t['shape']) for t in listed['tensors']] == [('dense/bias', [2]), ('dense/kernel', [2, 4]), ('step_count', [])]
    assert json.loads(tool('checkpoint', 'print', 'ck', 'step_count', '--json'))['values'] == [7]
    tool('checkpoint', 'print', 'ck', 'dense/kernel', '--npy=k.npy')
    np.testing.assert_array_equal(np.load(files / 'k.npy'), np.load(files / 'x.npy'))
    tool('checkpoint', 'rename', 'ck', 'dense/*=layer/*', '--out=new/a', '--shards=2')
    tool('checkpoint', 'drop', 'new/a', 'step_count', '--out=new/b')
    tool('checkpoint', 'merge', 'ck', 'new/b', '--out=new/c')
    tool('checkpoint', 'reshard', 'new/c', '--shards=3', '--out=new/d')
    assert len(list((files / 'new').glob('d.data-*-of-00003'))) == 3 and 'all checksums' in tool('checkpoint', 'verify', 'new/d')
    assert 'all checksums' in tool('checkpoint', 'verify', 'ck1')
    assert sorted(p.name for p in (files / 'new').iterdir() if 'temp' in p.name or 'part' in p.name) == []
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    reader = tf.train.load_checkpoint(str(files / 'new' / 'd'))
    assert sorted(reader.get_variable_to_shape_map()) == ['dense/bias', 'dense/kernel', 'layer/bias', 'layer/kernel', 'step_count']
    np.testing.assert_array_equal(reader.get_tensor('layer/kernel'), np.load(files / 'x.npy'))


def test_checkpoint_refuses(tool, files):
    assert "did you mean 'dense/bias'?" in tool('checkpoint', 'print', 'ck', 'dense/bais', code=1)
    assert 'NOT_FOUND' in tool('checkpoint', 'drop', 'ck', 'nobody', '--out=new/x', code=1)
    assert 'twice' in tool('checkpoint', 'merge', 'ck', 'ck', '--out=new/x', code=1)
    assert 'is read' in tool('checkpoint', 'drop', 'ck', 'dense/*', '--out=ck/model.ckpt-7', code=1)
    assert not list(files.glob('new/x*'))
    assert "did you mean 'list'?" in tool('checkpoint', 'lits', code=2)
    tool('checkpoint', 'reshard', 'ck', '--shards=1', '--out=bad/c')
    path = files / 'bad' / 'c.data-00000-of-00001'
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    done = subprocess.run([conftest.BUILD / 'cli' / 'weir', 'checkpoint', 'verify', 'bad/c'], cwd=files, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and 'damaged: dense/kernel in bad/c.data-00000-of-00001' in done.stdout and 'DATA_LOSS' in done.stderr


def test_bench_finds_its_nodes(tool):
    few = ['--steps=5', '--seconds=0', '--warmup=1', '--json']
    assert json.loads(tool('bench', 'train.pb', '--batch=3', *few))['loss'] > 0
    assert json.loads(tool('bench', 'train.pb', '--feed', 'images=random', *few))['steps'] == 5
    assert json.loads(tool('bench', 'exported', '--batch=8', *few))['nodes'] > 0
    assert 'images' in tool('bench', 'train.pb', *few, code=1)
    assert '--fetch=TENSOR' in tool('bench', 'same.pbtxt', *few, code=1)


def test_suggestions(tool):
    assert "did you mean 'show'?" in tool('shwo', code=2)
    assert "did you mean '--json'?" in tool('show', 'x.npy', '--jsn', code=2)
    assert "did you mean 'MatMul'?" in tool('ops', 'MatMull', code=1)
    assert "did you mean 'images'?" in tool('run', 'train.pb', '--fetch=imags', code=1)
