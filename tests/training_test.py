"""What savers, summaries and record writers write, TensorFlow and TensorBoard read, and the other way round. Plug-ins load.

Needs tensorflow. tests/programs/training.c is the other side.
"""
import os
import re
import signal
import subprocess
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest
import tensorflow as tf

from conftest import BUILD, ROOT

v1 = tf.compat.v1
VALUES = {
    'layer/kernel': np.array([[0.1, -0.0, 1e-40], [3e38, -7.25, 1 / 3]], np.float32),
    'layer/bias': np.array([0.1, -1e300]),
    'global_step': np.int64(1 << 40),
    'table': np.array([-1, 0, 7], np.int32),
    'flags': np.array([True, False]),
}


def program(*args, check=True):
    return subprocess.run([BUILD / 'tests' / 'programs' / 'training', *map(str, args)], check=check, capture_output=True,
                          text=True)


def variables():
    """The program's variables in the default graph."""
    return {name: v1.get_variable(name, initializer=np.zeros_like(value), use_resource=True) for name, value in VALUES.items()}


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- savers ----

@pytest.fixture
def target():
    """A server of one task."""
    process = subprocess.Popen([BUILD / 'cli' / 'weir', 'server'], stdout=subprocess.PIPE, text=True)
    yield 'grpc://127.0.0.1:' + process.stdout.readline().split()[-1]
    process.terminate()
    assert process.wait(timeout=60) == 0


def test_saver_on_a_server(tmp_path, target):
    program('save_sharded', tmp_path, target)
    reader = tf.train.load_checkpoint(str(tmp_path))
    for name, value in VALUES.items():
        assert same_bits(reader.get_tensor(name), value), name


@pytest.mark.parametrize('verb', ['save', 'save_sharded'])
def test_tensorflow_restores(tmp_path, verb):
    program(verb, tmp_path)
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest == f'{tmp_path}/model.ckpt-3'
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == [f'{tmp_path}/model.ckpt-{i}' for i in (2, 3)]
    assert len(state.all_model_checkpoint_timestamps) == 2
    assert not list(tmp_path.glob('model.ckpt-1*')) and not list(tmp_path.glob('*_temp*'))
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert set(reader.get_variable_to_shape_map()) == set(VALUES)
    for name, value in VALUES.items():
        assert same_bits(reader.get_tensor(name), value), name
    with v1.Graph().as_default(), v1.Session() as session:
        made = variables()
        v1.train.Saver(made).restore(session, latest)
        for name, value in VALUES.items():
            assert same_bits(session.run(made[name]), value), name


def test_tensorflow_reads_what_keeps_the_best(tmp_path):
    before = time.time()
    program('best', tmp_path)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert tf.train.latest_checkpoint(str(tmp_path)) == state.model_checkpoint_path == f'{tmp_path}/model.ckpt-5'
    assert list(state.all_model_checkpoint_paths) == [f'{tmp_path}/model.ckpt-{i}' for i in (2, 3, 5)]
    assert len(state.all_model_checkpoint_timestamps) == 3
    assert before - 1 <= state.last_preserved_timestamp <= min(state.all_model_checkpoint_timestamps)  # from when hours are counted
    assert sorted(p.name for p in tmp_path.glob('*.index')) == [f'model.ckpt-{i}.index' for i in (2, 3, 5)]
    head, *lines = (tmp_path / 'checkpoint_best').read_text().splitlines()
    assert head == 'best 2 highest' and [(float(m), n) for m, n in map(str.split, lines)] == [(0.9, 'model.ckpt-2'), (0.7, 'model.ckpt-3')]
    reader = tf.train.load_checkpoint(f'{tmp_path}/model.ckpt-2')
    for name, value in VALUES.items():
        assert same_bits(reader.get_tensor(name), value), name


@pytest.mark.parametrize('sharded', [False, True])
def test_weir_restores(tmp_path, sharded):
    theirs, ours = tmp_path / 'theirs', tmp_path / 'ours'
    theirs.mkdir()
    with v1.Graph().as_default(), v1.Session() as session:
        made = variables()
        for name, value in VALUES.items():
            made[name].load(value / 2 if value.dtype.kind == 'f' else value, session)
        session.run(v1.variables_initializer([]))
        expected = {name: session.run(variable) for name, variable in made.items()}
        v1.train.Saver(made, sharded=sharded).save(session, f'{theirs}/model.ckpt', global_step=12)
    assert program('copy', theirs, ours).stdout == f'{theirs}/model.ckpt-12\n'
    reader = tf.train.load_checkpoint(str(ours))
    for name, value in expected.items():
        assert same_bits(reader.get_tensor(name), value), name


def test_tensorflow_runs_our_saver_nodes(tmp_path):
    """The nodes are the Saver's: SaverDef's names find them, and TensorFlow's own runtime saves and restores with them."""
    program('save', tmp_path)
    graph_def = v1.GraphDef.FromString((tmp_path / 'graph.pb').read_bytes())
    assert {node.attr['shared_name'].s.decode() for node in graph_def.node if node.op == 'VarHandleOp'} == set(VALUES)
    with v1.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(graph_def, name='')
        saver_def = v1.train.SaverDef(filename_tensor_name='save/Const:0', save_tensor_name='save/control_dependency:0',
                                      restore_op_name='save/restore_all', version=v1.train.SaverDef.V2, max_to_keep=5)
        saver = v1.train.Saver(saver_def=saver_def)
        saver.restore(session, f'{tmp_path}/model.ckpt-3')
        saver.save(session, f'{tmp_path}/again', write_meta_graph=False)
    reader = tf.train.load_checkpoint(f'{tmp_path}/again')
    for name, value in VALUES.items():
        assert same_bits(reader.get_tensor(name), value), name


# ---- summaries ----

def test_summaries(tmp_path):
    program('summarize', tmp_path)
    path, = tmp_path.glob('events.out.tfevents.*')
    events = [e for e in v1.train.summary_iterator(str(path)) if e.HasField('summary')]
    assert [e.step for e in events] == [1, 2, 3]
    for e in events:
        values = {v.tag.split('/image')[0]: v for v in e.summary.value}
        assert values['train/x'].simple_value == pytest.approx(0.5 * e.step)
        histogram = values['row'].histo
        assert (histogram.num, histogram.min, histogram.max) == (4, -2 * 0.5 * e.step, 3 * 0.5 * e.step)
        assert [v.tag for v in e.summary.value if v.HasField('image')] == ['pictures/image/0', 'pictures/image/1']
        assert values['note'].metadata.plugin_data.plugin_name == 'text'
        assert tf.make_ndarray(values['note'].tensor).item() == b'**hello**'
        picture = tf.io.decode_png(values['pictures'].image.encoded_image_string).numpy()
        with v1.Graph().as_default(), v1.Session() as session:
            row = np.tile(np.array([-2, 0, 0.5, 3], np.float32), 6).reshape(2, 3, 4, 1)
            theirs = v1.Summary.FromString(session.run(v1.summary.image('p', row, 2)))
        np.testing.assert_array_equal(picture, tf.io.decode_png(theirs.value[1].image.encoded_image_string).numpy())


# ---- records ----

def test_tensorflow_reads_records(tmp_path):
    path = tmp_path / 'a.tfrecord'
    program('write', path)
    examples = [tf.train.Example.FromString(r.numpy()) for r in tf.data.TFRecordDataset(str(path))]
    for i, example in enumerate(examples):
        feature = example.features.feature
        assert list(feature['floats'].float_list.value) == [i, 0.25]
        assert list(feature['ints'].int64_list.value) == [-i, 1 << 40]
        assert feature['none'].WhichOneof('kind') == 'int64_list' and not feature['none'].int64_list.value
        assert list(feature['bytes'].bytes_list.value) == [b'a\0b']
    assert len(examples) == 3


def test_weir_reads_records(tmp_path):
    path = tmp_path / 'b.tfrecord'
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(10):
            feature = {'x': tf.train.Feature(float_list=tf.train.FloatList(value=[i]))} if i else {}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    assert float(program('read', path).stdout) == 145  # 1 … 9, and the default of the first
    path.write_bytes(path.read_bytes()[:-3])
    result = program('read', path, check=False)
    assert result.returncode == 1 and 'truncated' in result.stderr


# ---- plug-ins ----

CLAMP = BUILD / 'examples' / 'clamp.so'


def test_plugin_program():
    out = subprocess.run([BUILD / 'examples' / 'use_clamp', CLAMP], check=True, capture_output=True, text=True).stdout
    assert out == 'y = [-2 -0.5 1 2]\ndy/dx = [0 1 1 0]\n'


def test_plugin_option(weir, tmp_path):
    assert 'Limits numbers' in weir('ops', 'Clamp', f'--plugin={CLAMP}').stdout
    assert weir('ops', 'Clamp', check=False).returncode == 1
    graph = tmp_path / 'g.pbtxt'
    graph.write_text('''node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Clamp" input: "x" attr { key: "limit" value { f: 0.5 } } }''')
    assert '[-0.5 0.25 0.5]' in weir('run', graph, '--plugin', CLAMP, '--feed=x=-1,0.25,7', '--fetch=y').stdout
    assert weir('run', graph, '--feed=x=-1', '--fetch=y', check=False).returncode == 1
    bad = weir('ops', f'--plugin={tmp_path}/none.so', check=False)
    assert bad.returncode == 1 and 'none.so' in bad.stderr


def test_plugin_with_state_lists_and_delays(weir, tmp_path):
    graph = tmp_path / 'g.pbtxt'
    graph.write_text('''node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "sizes" op: "Const" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "value" value { tensor {
  dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 1 int64_val: 2 } } } }
node { name: "later" op: "Delay" input: "x" attr { key: "T" value { type: DT_FLOAT } } attr { key: "ms" value { i: 20 } } }
node { name: "parts" op: "SplitRows" input: "later" input: "sizes" attr { key: "N" value { i: 2 } } }
node { name: "mean" op: "RunningMean" input: "parts:1" attr { key: "start" value { f: 6 } } }''')
    run = ('run', graph, f'--plugin={BUILD / "examples" / "rows.so"}', '--fetch=parts:1', '--fetch=mean')
    for devices in ((), ('--devices=cpu,guard', '--place=/device:GUARD:0')):
        out = weir(*run, '--feed=x=1,2,4', *devices).stdout
        assert out.split('\n')[:2] == ['parts:1 = [2 4]', 'mean = 4']
    few = weir(*run, '--feed=x=1,2', check=False)
    assert few.returncode == 1 and 'no 2 rows from row 1 on' in few.stderr


# ---- the loop ----

def interrupted(directory):
    """Trains until the second line is printed; what it printed, and the step it saved."""
    process = subprocess.Popen([BUILD / 'tests' / 'programs' / 'training', 'train', directory], stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a job's may be ignored
    lines = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return lines, rest.splitlines()[-1], int(tf.train.latest_checkpoint(str(directory)).rsplit('-', 1)[1])


def test_training_saves_when_interrupted_and_resumes(tmp_path):
    lines, last, first = interrupted(tmp_path)
    assert re.match(r'step 200/2000000  loss [0-9.]+  \d+ points/s  \d+:\d\d left$', lines[1])
    assert last == f'interrupted at step {first}' and first >= 200
    lines, last, second = interrupted(tmp_path)
    assert second > first and last == f'interrupted at step {second}, resumed'
    assert int(lines[0].split('/')[0].split()[1]) > first
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert set(reader.get_variable_to_shape_map()) == {'w', 'b'}
    accumulated = [(e.step, v.simple_value) for path in sorted(tmp_path.glob('events*'))
                   for e in v1.train.summary_iterator(str(path)) for v in e.summary.value if v.tag == 'loss']
    assert [step for step, _ in accumulated] == list(range(1, second + 1))


def test_guide_has_a_program_that_runs(tmp_path):
    """The program of docs/training.md, as a user would compile it."""
    source, = re.findall(r'^```c\n(// train\.c.*?)^```$', (ROOT / 'docs' / 'training.md').read_text(), re.M | re.S)
    (tmp_path / 'train.c').write_text(source)
    subprocess.run(['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', f'-I{ROOT}/include', f'-I{BUILD}/include', tmp_path / 'train.c',
                    '-o', tmp_path / 'train', f'-L{BUILD}', '-lweir', '-lm', f'-Wl,-rpath,{BUILD}'], check=True)
    out = subprocess.run([tmp_path / 'train', tmp_path / 'run'], check=True, capture_output=True, text=True).stdout
    assert float(re.search(r'^loss ([0-9.]+) after 1000 steps', out, re.M)[1]) < 0.02
    assert tf.train.latest_checkpoint(str(tmp_path / 'run')).endswith('-1000')
