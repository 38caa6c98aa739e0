"""The real TensorBoard reads what Weir writes: its own loader, and its server over HTTP."""
import json
import re
import subprocess
import sys
import time
import urllib.request

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conftest import BUILD

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


def test_the_server_shows_it(run):
    command = [sys.executable, '-m', 'tensorboard.main', '--logdir', str(run.parent), '--port', '0', '--load_fast', 'false']
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        lines = []
        for line in server.stdout:
            lines.append(line)
            found = re.search(r'http://localhost:(\d+)/', line)
            if found:
                break
        else:
            pytest.fail(''.join(lines))

        def get(path):
            with urllib.request.urlopen(f'http://localhost:{found[1]}/data/{path}', timeout=30) as answer:
                return json.load(answer)

        end = time.monotonic() + 60
        while get('runs') != ['run'] or not get('plugin/scalars/tags').get('run'):
            assert time.monotonic() < end  # it reads the files after it has started to serve
            time.sleep(0.1)
        points = get('plugin/scalars/scalars?run=run&tag=train%2Fx')
        assert [(step, value) for _, step, value in points] == [(1, 0.5), (2, 1.0), (3, 1.5)]
    finally:
        server.terminate()
        server.wait(30)
