"""The chief's lease is kept by a real etcd: who has it dies, ends, loses parameter servers; and so does etcd."""
import socket
import threading
import time

import pytest

from etcd_process import etcd  # noqa: F401  pylint: disable=unused-import
from ports import free_ports
from world import World

# pylint: disable=redefined-outer-name

LONG = 20  # seconds of a lease that is to outlive etcd's restart
SHORT = 1


def train(etcd, tmp_path, seconds=SHORT, steps=400, is_sync=False, ps=1, addresses=None):
    directory = tmp_path / 'checkpoints'
    directory.mkdir()
    return World(directory, ps=ps, workers=2, steps=steps, is_sync=is_sync, etcd=(addresses or etcd.address, seconds))


def chiefs(world):
    """Who became the chief, in order, and when."""
    return [line for line in world.seen() if line.text.startswith('the chief now')]


def said(world, text):
    return [line for line in world.seen() if text in line.text]


def finish(world):
    """All come to the end, and there is a checkpoint of it."""
    world.wait(world.is_over, 'the end')
    codes = {i: program.returncode for i, program in world.programs.items()}
    assert not any(codes.values()), (codes, world.seen()[-20:])
    assert world.newest() >= world.steps


@pytest.mark.parametrize('is_sync', [False, True], ids=['asynchronous', 'synchronous'])
def test_chief_is_killed(etcd, tmp_path, is_sync):
    with train(etcd, tmp_path, is_sync=is_sync) as world:
        world.wait_for_step(20)
        first = world.chief()
        killed = time.time()
        world.lose(first)
        world.wait(lambda: len(chiefs(world)) > 1, 'another chief')
        assert chiefs(world)[-1].worker != first
        assert chiefs(world)[-1].time - killed > SHORT / 2  # it had asked for more a quarter of that before, at most
        if is_sync:
            world.start_program(first)  # a step takes a gradient of each
        finish(world)


def test_chief_ends_in_order(etcd, tmp_path):
    with train(etcd, tmp_path, seconds=LONG) as world:
        world.wait_for_step(20)
        first = world.chief()
        world.end_program(first)
        del world.programs[first]
        ended = time.time()
        world.wait(lambda: len(chiefs(world)) > 1, 'another chief')
        assert chiefs(world)[-1].time - ended < LONG / 2  # it asks four times in the time of a lease
        finish(world)


@pytest.mark.parametrize('is_sync', [False, True], ids=['asynchronous', 'synchronous'])
def test_parameter_server_is_killed(etcd, tmp_path, is_sync):
    """A lease that it kept itself would be anybody's then."""
    with train(etcd, tmp_path, seconds=LONG, is_sync=is_sync) as world:
        world.wait(lambda: world.newest() >= 10, 'a checkpoint')
        world.kill(world.servers['ps', 0])
        world.start_server('ps', 0)
        finish(world)
        assert len(chiefs(world)) == 1
        assert said(world, 'going on at step')


def test_etcd_is_started_again(etcd, tmp_path):
    with train(etcd, tmp_path, seconds=LONG, steps=1500) as world:
        world.wait_for_step(20)
        world.chief()
        etcd.kill()
        world.wait_for_step(world.step() + 100)
        etcd.start()
        finish(world)
        assert len(chiefs(world)) == 1
        assert not said(world, 'no longer the chief')


def test_etcd_is_gone_for_longer(etcd, tmp_path):
    with train(etcd, tmp_path, steps=3000) as world:
        world.wait_for_step(20)
        first = world.chief()
        etcd.kill()
        world.wait(lambda: said(world, 'no longer the chief'), 'a chief that gives up')
        [line] = said(world, 'no longer the chief')
        assert line.worker == first and 'etcd: cannot connect to' in line.text
        assert said(world, 'nobody knows who is the chief')  # the other one
        time.sleep(0.2)  # a save that was under way
        saved = world.newest()
        world.wait_for_step(world.step() + 100)  # steps go on
        assert world.newest() == saved  # and nobody saves them
        etcd.start()
        world.wait(lambda: len(chiefs(world)) > 1, 'a chief again')
        finish(world)


def test_one_endpoint_is_dead(etcd, tmp_path):
    [dead] = free_ports(1)
    with train(etcd, tmp_path, steps=100, addresses=f'http://127.0.0.1:{dead},http://{etcd.address}') as world:
        finish(world)
        assert chiefs(world)


@pytest.mark.parametrize('answer', [b'HTTP/1.1 400 Bad Request\r\n\r\n', bytes(range(256)) * 40, b'\0\0\0\4\0\0\0\0\0' * 2 + b'\xff' * 999, b''])
def test_one_endpoint_lies(etcd, tmp_path, answer):
    """It talks, but not as etcd does, and hangs up or never ends."""
    def talk():
        while True:
            try:
                connection, _ = liar.accept()
            except OSError:
                return
            connections.append(connection)
            try:
                connection.sendall(answer)
            except OSError:
                pass

    connections = []
    with socket.create_server(('127.0.0.1', 0)) as liar:
        thread = threading.Thread(target=talk)
        thread.start()
        with train(etcd, tmp_path, steps=100, addresses=f'127.0.0.1:{liar.getsockname()[1]},{etcd.address}') as world:
            finish(world)
            assert chiefs(world)
        liar.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in connections:
        connection.close()
