"""The real TensorBoard, and what is to be seen on its pages of what tests/programs/board.c wrote.

    .venv/bin/python tests/tensorboard_pages.py [PAGE…]     # draws docs/tensorboard/*.png anew
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from chromium import Chromium
from conftest import BUILD, ROOT

# |texts| are on the page; |click|: what is pressed, and is to be found then.
Page = collections.namedtuple('Page', 'name address texts click then', defaults=((), ()))
PAGES = [
    Page('scalars', 'scalars&run=board', ['tag: layer/norm', 'loss']),
    Page('histograms', 'histograms', ['errors', 'layer/table']),
    Page('images', 'images', ['inputs/image/0', 'inputs/image/1', 'step 5']),
    Page('audio', 'audio', ['tone/audio', 'step 5']),
    Page('text', 'text', ['notes', 'learns words on a line']),
    Page('graph', 'graphs&run=board', ['Main Graph', 'gradients', 'mean_squared_error']),
    Page('step', 'graphs&run=board', ['Main Graph', 'gradients', 'step 41'], ['step 41'], ['unused substructure']),
    Page('hparams', 'hparams', ['optimizer', 'sgd', 'rate', 'shuffled']),
    Page('projector', 'projector', ['Points: 8', 'Dimension: 3']),
]


class Board:
    """A TensorBoard that serves a folder of runs."""

    def __init__(self, directory):
        command = [sys.executable, '-m', 'tensorboard.main', '--logdir', str(directory), '--port', '0', '--load_fast', 'false']
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        for line in self.server.stdout:
            lines.append(line)
            found = re.search(r'http://localhost:(\d+)/', line)
            if found:
                self.address = f'http://localhost:{found[1]}/data/'
                return
        raise AssertionError(''.join(lines))

    def end(self):
        self.server.terminate()
        self.server.wait(30)

    def read(self, path, body=None):
        """What it answers; |body| is posted."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def get(self, path, body=None):
        return json.loads(self.read(path, body))

    def plugin(self, path, **query):
        return self.get(f'plugin/{path}?{urllib.parse.urlencode(query)}')


def show(chromium, board, page, is_drawing=False):
    """The page as a picture once all is on it; |is_drawing|: and once nothing moves any more, or when the projector has turned a bit."""
    chromium.open(board.address.removesuffix('data/') + '#' + page.address, *page.texts)
    for text in page.click:
        chromium.click(text)
    chromium.wait_for(*page.then)
    picture = chromium.picture()
    for _ in range(5 if is_drawing else 0):
        time.sleep(2)
        picture, last = chromium.picture(), picture
        if picture == last:
            break
    return picture


def main():
    folder = ROOT / 'docs' / 'tensorboard'
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as runs:
        subprocess.run([BUILD / 'tests' / 'programs' / 'board', pathlib.Path(runs, 'board')], check=True)
        board, chromium = Board(runs), Chromium()
        try:
            while 'board' not in board.plugin('graphs/info'):
                time.sleep(0.1)
            for page in [page for page in PAGES if page.name in (sys.argv[1:] or [p.name for p in PAGES])]:
                (folder / f'{page.name}.png').write_bytes(show(chromium, board, page, is_drawing=True))
        finally:
            chromium.end()
            board.end()


if __name__ == '__main__':
    main()
