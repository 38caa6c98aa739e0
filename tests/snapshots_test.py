"""Checkpoints of two parameter servers while three workers train on them, all of them processes, some of which die: each holds
whole steps. tests/programs/snapshots.c is the workers; its steps add one to each variable, one after the other."""
import subprocess

import pytest
import tensorflow as tf

from conftest import BUILD
from replicas_test import SERVERS, Cluster

PROGRAM = BUILD / 'tests' / 'programs' / 'snapshots'
VARIABLES = 12


@pytest.fixture
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.stop()


def start(cluster, worker, *more):
    command = [PROGRAM, cluster.targets[worker], str(worker), *map(str, more)]
    cluster.programs[worker] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)


def start_all(cluster, directory, saves):
    start(cluster, 0, directory, saves)
    cluster.wait_for_line(0, 'ready')  # else a step finds some variables without a value, and ends halfway
    for worker in (1, 2):
        start(cluster, worker)


def values(directory, number):
    reader = tf.train.load_checkpoint(str(directory / f'model.ckpt-{number}'))
    return [int(reader.get_tensor(f'v{i:02}')) for i in range(VARIABLES)]


def test_whole_steps(cluster, tmp_path):
    """Hundreds of checkpoints, with two workers that never pause: in each all variables have the same value."""
    saves = 200
    start_all(cluster, tmp_path, saves)
    cluster.wait_for_line(0, f'saved {saves - 1}')
    seen = [values(tmp_path, i) for i in range(saves)]
    assert all(len(set(each)) == 1 for each in seen), seen
    assert [each[0] for each in seen] == sorted(each[0] for each in seen)
    assert seen[-1][0] > saves  # the others were at work, too
    assert len(list(tmp_path.glob('model.ckpt-0.data-*'))) == SERVERS


@pytest.mark.parametrize('with_server', [False, True], ids=['program', 'program_and_server'])
def test_a_worker_dies(cluster, tmp_path, with_server):
    """One is killed in the middle of a step. What that has written stays, but nobody waits for the rest: the checkpoints after it
    come at once, and all differ from whole steps by the same."""
    saves = 120
    start_all(cluster, tmp_path, saves)
    cluster.wait_for_line(2, 'works')
    cluster.wait_for_line(0, 'saved 20')
    cluster.kill(2, with_server)
    cluster.wait_for_line(0, f'saved {saves - 1}')
    assert all(len(set(values(tmp_path, i))) == 1 for i in range(15))
    last = values(tmp_path, saves - 1)
    expected = [value - last[0] for value in last]
    assert set(expected) <= {0, -1}
    for i in range(saves - 30, saves):
        now = values(tmp_path, i)
        assert [value - now[0] for value in now] == expected


def test_a_stopped_program_holds_nobody(cluster, tmp_path):
    """The chief is killed while it saves, and another takes its place: steps go on, and so do checkpoints."""
    start(cluster, 1)
    start(cluster, 0, tmp_path / 'first', 10000)
    cluster.wait_for_line(0, 'saved 10')
    cluster.kill(0, with_server=False)
    start(cluster, 0, tmp_path / 'second', 30)
    cluster.wait_for_line(0, 'saved 29')
    cluster.wait_for_line(1, 'works')
