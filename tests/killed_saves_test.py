"""Training that is killed while it saves: what is found afterwards is the state of one step, whole.

Needs no TensorFlow. tests/programs/saving.c trains two variables and a step counter that are always equal, saves after each step,
and says which checkpoint it would go on from. `python3 tests/killed_saves_test.py --rounds 200` kills more often; a seed repeats a run
as far as the scheduler does.
"""
import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, os.path.dirname(__file__))
from conftest import BUILD

PROGRAM = BUILD / 'tests' / 'programs' / 'saving'
ELEMENTS = 500_000  # two megabytes a variable: a save takes a while
WAYS = ('background', 'timed', 'foreground')


def found(directory, elements=ELEMENTS):
    """What the program would go on from: {'path': …, 'step': …, 'refused': …}, after the invariant was looked at."""
    out = subprocess.run([PROGRAM, 'check', directory, str(elements)], check=True, capture_output=True, text=True).stdout
    words = dict(line.split(' ', 1) for line in out.splitlines())
    if words['path'] != 'none':
        step = int(words['step'])
        assert words['path'].endswith(f'-{step}'), out
        assert words['a'] == words['b'] == f'{step} {step}', out
        words['step'] = step
    return words


def kill_once(rng, directory, way):
    """Trains, and kills the program after a random time; the last step that it told of."""
    process = subprocess.Popen([PROGRAM, 'train', directory, str(ELEMENTS), '1000000', way], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    first = process.stdout.readline()
    time.sleep(rng.random() ** 2 * 0.4)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    steps = [int(line) for line in (first + rest).splitlines(keepends=True) if line.endswith('\n')]
    return steps[0], steps[-1]


def rounds(rng, directory, count, way):
    """Kills and looks, again and again in the same directory. How far it came."""
    before = 0
    for _ in range(count):
        first, _ = kill_once(rng, directory, way)
        assert first == before + 1, f'it went on from step {first - 1}, not from {before}'
        after = found(directory)
        assert 'refused' not in after or after['path'] == 'none', after
        step = after.get('step', 0)
        assert step >= before, f'step {before} was saved, and {step} is what is left'
        before = step
    return before


@pytest.mark.parametrize('way', WAYS)
def test_killed_at_any_moment(tmp_path, way):
    rng = random.Random(7)
    assert rounds(rng, tmp_path, 4, way) > 0
    assert not [p for p in tmp_path.glob('*.index') if not p.with_name(p.stem + '.data-00000-of-00001').exists()]


@pytest.mark.parametrize('way, words', [('background', 'and steps wait'), ('timed', 'and is put off')])
def test_saves_that_take_longer_than_the_interval(tmp_path, way, words):
    done = subprocess.run([PROGRAM, 'train', tmp_path, str(ELEMENTS), '30', way], check=True, capture_output=True, text=True)
    assert re.search(f'a checkpoint is due, {words}: that of step [0-9]+ is still being written\n', done.stderr)
    assert found(tmp_path)['step'] == 30  # the end is always saved


# ---- what was damaged otherwise ----

def saved(directory):
    """Three checkpoints: of steps 3, 4 and 5."""
    subprocess.run([PROGRAM, 'train', directory, '1000', '5', 'foreground'], check=True, capture_output=True)
    assert sorted(p.stem for p in directory.glob('*.index')) == [f'model.ckpt-{i}' for i in (3, 4, 5)]


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def spoil(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = {'data cut': (cut, 'data', 'ends early'), 'data spoilt': (spoil, 'data', 'hecksum'), 'data gone': (pathlib.Path.unlink, 'data', 'No such file'),
          'index cut': (cut, 'index', 'sstable'), 'index spoilt': (spoil, 'index', 'checksum'), 'index empty': (lambda p: p.write_bytes(b''), 'index', 'short'),
          'index gone': (pathlib.Path.unlink, 'index', 'No such file')}


@pytest.mark.parametrize('kind', DAMAGE)
def test_damaged_checkpoint(tmp_path, kind):
    damage, part, word = DAMAGE[kind]
    saved(tmp_path)
    for newest in (5, 4):
        name = f'model.ckpt-{newest}' + ('.index' if part == 'index' else '.data-00000-of-00001')
        damage(tmp_path / name)
        here = set(os.listdir(tmp_path))
        words = found(tmp_path, 1000)
        assert words['step'] == newest - 1 and word in words['refused'] and f'model.ckpt-{newest}' in words['refused']
        assert set(os.listdir(tmp_path)) == here
    # The loop says so in one line, goes on, and writes what was damaged anew.
    done = subprocess.run([PROGRAM, 'train', tmp_path, '1000', '5', 'foreground'], check=True, capture_output=True, text=True)
    line, = done.stderr.splitlines()
    assert line.startswith(f'damaged checkpoints passed over, going on from {tmp_path}/model.ckpt-3: model.ckpt-5: ') and word in line
    assert found(tmp_path, 1000) == {'path': f'{tmp_path}/model.ckpt-5', 'step': 5, 'a': '5 5', 'b': '5 5'}


@pytest.mark.parametrize('text', ['', 'model_checkpoint_path: "mod', '\0' * 100, 'model_checkpoint_path: "model.ckpt-9"\n'])
def test_damaged_state(tmp_path, text):
    saved(tmp_path)
    (tmp_path / 'checkpoint').write_text(text)
    words = found(tmp_path, 1000)
    assert words['step'] == 5 and ('model.ckpt-9' if '9' in text else 'checkpoint') in words['refused']
    os.utime(tmp_path / 'model.ckpt-4.index')  # saved last
    assert found(tmp_path, 1000)['step'] == 4


def test_nothing_is_whole(tmp_path):
    saved(tmp_path)
    for path in tmp_path.glob('*.data*'):
        cut(path)
    done = subprocess.run([PROGRAM, 'train', tmp_path, '1000', '9', 'foreground'], capture_output=True, text=True)
    assert done.returncode == 1 and 'no_resume' in done.stderr and 'model.ckpt-3' in done.stderr
    for path in tmp_path.glob('model.ckpt*'):  # somebody wants it from the beginning
        path.unlink()
    done = subprocess.run([PROGRAM, 'train', tmp_path, '1000', '2', 'foreground'], check=True, capture_output=True, text=True)
    assert 'beginning anew' in done.stderr and found(tmp_path, 1000)['step'] == 2


def test_without_state(tmp_path):
    """TensorFlow's rule: no file, no checkpoint. But it is told."""
    saved(tmp_path)
    (tmp_path / 'checkpoint').unlink()
    words = found(tmp_path, 1000)
    assert words['path'] == 'none' and 'is not there' in words['refused']


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    for i, way in enumerate(WAYS):
        with tempfile.TemporaryDirectory() as directory:
            count = (options.rounds + i) // len(WAYS)
            print(f'{way}: {count} rounds, {rounds(random.Random(options.seed), directory, count, way)} steps')


if __name__ == '__main__':
    main()
