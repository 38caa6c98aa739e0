"""What is done to a training that runs. Each kind is a function of the world, a number that says to which process, and seconds."""
import signal
import time

import disk
from world import UNSAVED, Failure

LEASE = 0.4  # seconds, as tests/programs/chaos.c has them
LATENCY = 0.05  # seconds, of a slow network, one way
SKEW = 3 * 24 * 3600  # seconds by which a clock is wrong


def kill_ps(world, i, seconds):
    _kill_server(world, 'ps', i % world.ps, seconds)


def kill_worker(world, i, seconds):
    _kill_server(world, 'worker', i % world.workers, seconds)


def _kill_server(world, job, i, seconds):
    world.kill(world.servers[job, i])
    time.sleep(seconds)
    world.start_server(job, i)


def kill_chief(world, _, seconds):
    _kill_program(world, world.chief(), seconds)


def kill_program(world, i, seconds):
    _kill_program(world, _not_chief(world, i), seconds)


def _not_chief(world, i):
    others = sorted(set(world.programs) - {world.chief()})
    return others[i % len(others)] if others else world.chief()


def _kill_program(world, i, seconds):
    world.kill(world.programs[i])
    time.sleep(seconds)
    world.start_program(i)


def lose_chief(world, _, seconds):
    """For good: another has to take over. The last one, or one whom a synchronous step waits for, comes back."""
    chief = world.chief()
    if world.is_sync or len(world.programs) == 1:
        _kill_program(world, chief, LEASE + seconds)
    else:
        world.lose(chief)


def kill_host(world, i, seconds):
    """A worker's server and its program."""
    i %= world.workers
    is_there = i in world.programs
    world.kill(world.servers['worker', i])
    if is_there:
        world.kill(world.programs[i])
    time.sleep(seconds)
    world.start_server('worker', i)
    if is_there:
        world.start_program(i)


def kill_all(world, _, seconds):
    """As a cut of the current."""
    for process in [*world.servers.values(), *world.programs.values()]:
        process.kill()
    for process in [*world.servers.values(), *world.programs.values()]:
        process.wait()
    time.sleep(seconds)
    for job, i in list(world.servers):
        world.start_server(job, i)
    for i in list(world.programs):
        world.start_program(i)


def stop_ps(world, i, seconds):
    _stop(world.servers['ps', i % world.ps], seconds)


def stop_worker(world, i, seconds):
    _stop(world.servers['worker', i % world.workers], seconds)


def stop_program(world, i, seconds):
    programs = [program for _, program in sorted(world.programs.items())]
    _stop(programs[i % len(programs)], seconds)


def _stop(process, seconds):
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def end_chief(world, _, seconds):
    """SIGTERM: the chief saves and ends. Without a lease that ends synchronous training for all, and its queues on the servers are
    closed: whoever goes on with it later starts the servers anew."""
    chief = world.chief()
    world.end_program(chief)
    said = world.life_of(chief)
    step = [0, *(int(text[3:]) for text in said if text.startswith('at '))][-1]
    if world.newest() < step - 1 and UNSAVED not in '\n'.join(said):  # what it told of last may have been counted later
        raise Failure(f'after SIGTERM at step {step} the newest checkpoint is of step {world.newest()}')
    if world.is_sync and not world.is_leased:
        kill_all(world, 0, seconds)
        return
    time.sleep(seconds)
    world.start_program(chief)


def end_program(world, i, seconds):
    i = _not_chief(world, i)
    world.end_program(i)
    time.sleep(seconds)
    world.start_program(i)


def cut_ps(world, i, seconds):
    """Connections to it end, and no new ones can be made."""
    _disturb(world, 'ps', i % world.ps, seconds, 'cut')


def cut_worker(world, i, seconds):
    _disturb(world, 'worker', i % world.workers, seconds, 'cut')


def hold_ps(world, i, seconds):
    """No byte passes to it or back; connections remain."""
    _disturb(world, 'ps', i % world.ps, seconds, 'hold')


def hold_worker(world, i, seconds):
    _disturb(world, 'worker', i % world.workers, seconds, 'hold')


def slow_ps(world, i, seconds):
    _disturb(world, 'ps', i % world.ps, seconds, 'slow', LATENCY)


def fill_disk(world, _, seconds):
    """That of the checkpoints. At the end of training there must be space."""
    disk.fill(world.directory)
    time.sleep(seconds / 2)
    disk.free(world.directory)


def damage_checkpoint(world, i, seconds):
    """The newest, just before it is needed."""
    world.damage_newest(i)
    world.note_damage()
    _kill_server(world, 'ps', i % world.ps, seconds)


def skew_ps(world, i, seconds):
    _skew(world, 'ps', i % world.ps, seconds)


def skew_worker(world, i, seconds):
    """Its server and its program."""
    _skew(world, 'worker', i % world.workers, seconds)


def _skew(world, job, i, seconds):
    """Ahead, and then behind what it was."""
    world.set_clock(job, i, SKEW)
    time.sleep(seconds)
    world.set_clock(job, i, -SKEW)


def _disturb(world, job, i, seconds, what, *args):
    world.network.do((job, i), what, *args)
    time.sleep(seconds)
    world.network.do((job, i), 'heal')


KINDS = {f.__name__: f for f in (kill_ps, kill_worker, kill_program, kill_chief, kill_host, kill_all, stop_ps, stop_worker, stop_program,
                                 end_chief, end_program, lose_chief, cut_ps, cut_worker, hold_ps, hold_worker, slow_ps,
                                 fill_disk, damage_checkpoint, skew_ps, skew_worker)}
LEASED = {'lose_chief'}  # what is survived with a lease only
OF_NETWORKS = {'cut_ps', 'cut_worker', 'hold_ps', 'hold_worker', 'slow_ps'}
OF_DISKS = {'fill_disk'}
OF_CLOCKS = {'skew_ps', 'skew_worker'}
