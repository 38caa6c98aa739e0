"""The real TensorBoard reads what Weir writes: its own loader, its server over HTTP, and its pages in Chromium."""
import shutil
import struct
import subprocess
import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from chromium import Chromium
from conftest import BUILD
from tensorboard_pages import PAGES, Board, show

PROGRAM = BUILD / 'tests' / 'programs' / 'training'


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp('board') / 'run'
    subprocess.run([PROGRAM, 'summarize', directory], check=True, capture_output=True)
    return directory


def test_the_loader_reads_every_kind(run):
    loader = EventAccumulator(str(run))
    loader.Reload()
    tags = loader.Tags()
    assert 'train/x' in tags['scalars'] and 'row' in tags['histograms']
    assert [(e.step, e.value) for e in loader.Scalars('train/x')] == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert loader.Histograms('row')[0].histogram_value.num == 4
    assert len(loader.Images('pictures/image/0')) == 3
    assert loader.Tensors('note')[0].tensor_proto.string_val[0] == b'**hello**'


@pytest.fixture(scope='module')
def board(run):
    """What program 'board' wrote, and the run above, once TensorBoard has read them."""
    subprocess.run([BUILD / 'tests' / 'programs' / 'board', run.parent / 'board'], check=True, capture_output=True)
    served = Board(run.parent)
    try:
        end = time.monotonic() + 80
        while set(served.get('runs')) != {'run', 'board'} or 'board' not in served.plugin('graphs/info'):
            assert time.monotonic() < end  # it reads the files after it has started to serve
            time.sleep(0.1)
        yield served
    finally:
        served.end()


def test_scalars(board):
    points = board.plugin('scalars/scalars', run='run', tag='train/x')
    assert [(step, value) for _, step, value in points] == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert set(board.plugin('scalars/tags')['board']) == {'loss', 'layer/norm'}
    losses = board.plugin('scalars/scalars', run='board', tag='loss')
    assert [step for _, step, _ in losses] == list(range(1, 41)) and losses[-1][2] < 0.1 < losses[0][2]


def test_histograms(board):
    assert set(board.plugin('histograms/tags')['board']) == {'layer/table', 'errors'}
    (_, step, buckets), = board.plugin('histograms/histograms', run='board', tag='errors')
    assert step == 5 and sum(count for _, _, count in buckets) == 4
    assert (buckets[0][0], buckets[-1][1]) == (-1, 3)


def test_pictures_and_sounds(board):
    assert set(board.plugin('images/tags')['board']) == {'inputs/image/0', 'inputs/image/1'}
    picture, = board.plugin('images/images', run='board', tag='inputs/image/1', sample=0)
    assert picture['step'] == 5 and board.read(f"plugin/images/individualImage?{picture['query']}").startswith(b'\x89PNG')
    assert set(board.plugin('audio/tags')['board']) == {'tone/audio'}
    sound, = board.plugin('audio/audio', run='board', tag='tone/audio', sample=0)
    bytes_ = board.read(f"plugin/audio/individualAudio?{sound['query']}")
    assert sound['contentType'] == 'audio/wav' and bytes_[:4] == b'RIFF' and len(bytes_) == 44 + 2 * 800


def test_texts(board):
    assert board.plugin('text/tags')['board'] == ['notes'] and board.plugin('text/tags')['run'] == ['note']
    text, = board.plugin('text/text', run='board', tag='notes')
    assert text['text'] == '<p>learns <strong>words</strong> on a line</p>' and text['step'] == 5


def test_the_graph_and_a_step(board):
    info = board.plugin('graphs/info')['board']
    assert info['run_graph'] and info['tags']['step 41']['profile']
    graph = board.read('plugin/graphs/graph?run=board').decode()
    assert 'name: "layer/table"' in graph and 'op: "ResourceApplyGradientDescent"' in graph
    step = board.read('plugin/graphs/run_metadata?run=board&tag=step%2041').decode()
    assert 'device:CPU:0' in step and 'node_name: "layer/' in step


def test_hyperparameters(board):
    asked = {'experimentName': '', 'allowedStatuses': ['STATUS_SUCCESS'], 'startIndex': 0, 'sliceSize': 9, 'colParams': []}
    group, = board.get('plugin/hparams/session_groups', asked)['sessionGroups']
    assert group['hparams'] == {'rate': 0.05, 'optimizer': 'sgd', 'shuffled': False}
    assert {value['name']['tag'] for value in group['metricValues']} == {'loss', 'layer/norm'}


def test_embeddings(board):
    shown, = board.plugin('projector/info', run='board')['embeddings']
    assert shown == {'tensorName': 'layer/table', 'tensorShape': [8, 3], 'metadataPath': 'projector_labels_0.tsv'}
    points = board.read('plugin/projector/tensor?run=board&name=layer/table')
    x, y, z = struct.unpack('<24f', points)[18:21]  # of the word six
    assert abs(x + 2 * y - z - 6) < 0.5
    labels = board.read('plugin/projector/metadata?run=board&name=layer/table&num_rows=8').decode()
    assert labels.split() == ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven']


@pytest.fixture(scope='module')
def chromium():
    if not shutil.which('chromium'):
        pytest.skip('no Chromium: Ubuntu has none that is a package')
    browser = Chromium()
    yield browser
    browser.end()


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_pages(board, chromium, page):
    assert show(chromium, board, page).startswith(b'\x89PNG')
