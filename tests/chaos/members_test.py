"""Parameter servers that come back elsewhere: where they are, a real etcd knows."""
import pytest

from etcd_process import etcd  # noqa: F401  pylint: disable=unused-import
from world import World

# pylint: disable=redefined-outer-name

PS = '/weir/chaos/ps/0'


def train(etcd, tmp_path, steps=400, is_sync=False, lease=None):
    directory = tmp_path / 'checkpoints'
    directory.mkdir()
    return World(directory, ps=2, workers=2, steps=steps, is_sync=is_sync, etcd=lease, members=etcd.address)


def finish(world):
    world.wait(world.is_over, 'the end')
    codes = {i: program.returncode for i, program in world.programs.items()}
    assert not any(codes.values()), (codes, world.seen()[-20:])
    assert world.newest() >= world.steps


def replace(world, etcd):
    """Of parameter server 0: another process, at another address. The one before was killed, and its key is still there."""
    before = etcd.get(PS)
    world.kill(world.servers['ps', 0])
    world.start_server('ps', 0)
    world.wait(lambda: etcd.get(PS) not in (before, None), 'another address')


@pytest.mark.parametrize('is_sync', [False, True], ids=['asynchronous', 'synchronous'])
def test_comes_back_elsewhere(etcd, tmp_path, is_sync):
    with train(etcd, tmp_path, is_sync=is_sync) as world:
        world.wait(lambda: world.newest() >= 10, 'a checkpoint')
        replace(world, etcd)
        world.wait(lambda: any('going on at step' in line.text for line in world.seen()), 'training that goes on')
        replace(world, etcd)
        finish(world)


def test_chief_and_parameter_server(etcd, tmp_path):
    """etcd keeps both."""
    with train(etcd, tmp_path, lease=(etcd.address, 1)) as world:
        world.wait(lambda: world.newest() >= 10, 'a checkpoint')
        world.lose(world.chief())
        replace(world, etcd)
        finish(world)


def test_etcd_is_gone(etcd, tmp_path):
    """What was learnt holds; who comes back then is found when etcd is there again."""
    with train(etcd, tmp_path) as world:
        world.wait(lambda: world.newest() >= 10, 'a checkpoint')
        etcd.kill()
        world.wait_for_step(world.step() + 100)
        world.kill(world.servers['ps', 0])
        world.start_server('ps', 0)
        etcd.start()
        finish(world)


def test_keys_change(etcd, tmp_path):
    """What is no address is passed over; a task whose key was removed says again where it is, and takes it back at its end."""
    with train(etcd, tmp_path) as world:
        world.wait_for_step(20)
        address = etcd.get(PS)
        etcd.put('/weir/chaos/ps/1', 'nowhere\0')
        etcd.put('/weir/chaos/ps/77', '127.0.0.1:1')
        etcd.put('/weir/chaos/', '')
        etcd.delete(PS)
        world.wait(lambda: etcd.get(PS) == address, 'the key again')
        finish(world)
        world.servers['ps', 0].terminate()
        world.servers['ps', 0].wait()
        assert etcd.get(PS) is None
