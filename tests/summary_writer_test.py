"""Event files that summary writer ops write are what TensorFlow's own iterator reads."""
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


def test_events(tmp_path):
    summary = tf1.Summary(value=[tf1.Summary.Value(tag='raw', simple_value=2)]).SerializeToString()
    metadata = tf1.SummaryMetadata(display_name='shown')
    with tf1.Graph().as_default() as g:
        writer = raw.SummaryWriter(shared_name='w')
        raw.CreateSummaryFileWriter(writer=writer, logdir=str(tmp_path / 'logs'), max_queue=10, flush_millis=100000,
                                    filename_suffix='.suffix', name='create')
        raw.WriteScalarSummary(writer=writer, step=np.int64(3), tag='loss', value=1.5, name='scalar')
        raw.WriteSummary(writer=writer, step=np.int64(4), tensor=np.arange(3.0), tag='tensor',
                         summary_metadata=metadata.SerializeToString(), name='tensor')
        raw.WriteRawProtoSummary(writer=writer, step=np.int64(5), tensor=[summary, summary], name='proto')
        raw.CloseSummaryWriter(writer=writer, name='close')
    graph = libweir.Graph(libweir.Library(str(conftest.BUILD / 'libweir.so')), g.as_graph_def())
    for node in ('create', 'create', 'scalar', 'tensor', 'proto', 'close'):
        graph.run_node(node)
    with pytest.raises(libweir.Error) as error:
        graph.run_node('scalar')
    assert error.value.code == 5
    graph.close()
    path, = (tmp_path / 'logs').iterdir()
    assert path.name.startswith('events.out.tfevents.') and path.name.endswith('.suffix')
    version, scalar, tensor, proto = tf1.train.summary_iterator(str(path))
    assert version.file_version == 'brain.Event:2'
    assert (scalar.step, scalar.summary.value[0].tag, scalar.summary.value[0].simple_value) == (3, 'loss', 1.5)
    value = tensor.summary.value[0]
    assert (tensor.step, value.tag, value.metadata) == (4, 'tensor', metadata)
    np.testing.assert_array_equal(tf.make_ndarray(value.tensor), np.arange(3.0))
    assert proto.step == 5 and [v.tag for v in proto.summary.value] == ['raw', 'raw']


def events_of(tmp_path, name, make):
    """What a node that |make| builds writes, in Weir and in TensorFlow."""
    found = []
    for system in ('weir', 'tensorflow'):
        with tf1.Graph().as_default() as g:
            writer = raw.SummaryWriter(shared_name=f'{name}_{system}')
            raw.CreateSummaryFileWriter(writer=writer, logdir=str(tmp_path / name / system), max_queue=10, flush_millis=100000,
                                        filename_suffix='', name='create')
            make(writer)
            raw.CloseSummaryWriter(writer=writer, name='close')
        nodes = ('create', 'write', 'close')
        if system == 'weir':
            graph = libweir.Graph(libweir.Library(str(conftest.BUILD / 'libweir.so')), g.as_graph_def())
            for node in nodes:
                graph.run_node(node)
            graph.close()
        else:
            with tf1.Session(graph=g) as session:
                for node in nodes:
                    session.run(g.get_operation_by_name(node))
        path, = (tmp_path / name / system).iterdir()
        events = list(tf1.train.summary_iterator(str(path)))[1:]
        for event in events:
            event.wall_time = 0
        found.append(events)
    return found


@pytest.mark.parametrize('name', ['histogram', 'audio', 'graph', 'event', 'image'])
def test_events_are_tensorflows(tmp_path, name):
    step, rng = np.int64(7), np.random.default_rng(1)
    graph_def = tf1.GraphDef()
    graph_def.node.add(name='a', op='NoOp')
    event = tf1.Event(step=5, summary=tf1.Summary(value=[tf1.Summary.Value(tag='t', simple_value=2)]))
    values, image = rng.standard_normal(50), rng.uniform(-1, 1, (2, 2, 3, 3)).astype(np.float32)
    image[0, 0, 0, 0] = np.nan
    makers = {
        'histogram': lambda w: raw.WriteHistogramSummary(writer=w, step=step, tag='h', values=values, name='write'),
        'audio': lambda w: raw.WriteAudioSummary(writer=w, step=step, tag='s', tensor=np.float32([[0, .5, -1]]), sample_rate=8000.0, name='write'),
        'graph': lambda w: raw.WriteGraphSummary(writer=w, step=step, tensor=graph_def.SerializeToString(), name='write'),
        'image': lambda w: raw.WriteImageSummary(writer=w, step=step, tag='i', tensor=image, bad_color=np.uint8([9, 8, 7]), name='write'),
        'event': lambda w: raw.ImportEvent(writer=w, event=event.SerializeToString(), name='write'),
    }
    ours, theirs = events_of(tmp_path, name, makers[name])
    for event in ours + theirs if name == 'image' else []:  # deflated by another hand
        for value in event.summary.value:
            value.image.encoded_image_string = tf.io.decode_png(value.image.encoded_image_string).numpy().tobytes()
    assert len(ours) == 1 and ours == theirs
