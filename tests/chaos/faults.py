"""What is done to a training that runs. Each kind is a function of the world, a number that says to which process, and seconds."""
import signal
import time

from world import UNSAVED, Failure


def kill_ps(world, i, seconds):
    _kill_server(world, 'ps', i % world.ps, seconds)


def kill_worker(world, i, seconds):
    _kill_server(world, 'worker', i % world.workers, seconds)


def _kill_server(world, job, i, seconds):
    world.kill(world.servers[job, i])
    time.sleep(seconds)
    world.start_server(job, i)


def kill_chief(world, _, seconds):
    _kill_program(world, 0, seconds)


def kill_program(world, i, seconds):
    _kill_program(world, 1 + i % (world.workers - 1), seconds)


def _kill_program(world, i, seconds):
    world.kill(world.programs[i])
    time.sleep(seconds)
    world.start_program(i)


def kill_host(world, i, seconds):
    """A worker's server and its program."""
    i %= world.workers
    world.kill(world.servers['worker', i])
    world.kill(world.programs[i])
    time.sleep(seconds)
    world.start_server('worker', i)
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
    _stop(world.programs[i % world.workers], seconds)


def _stop(process, seconds):
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def end_chief(world, _, seconds):
    """SIGTERM: the chief saves and ends. That ends synchronous training for all, and its queues on the servers are closed: whoever
    goes on with it later starts the servers anew."""
    world.end_program(0)
    said = world.life_of(0)
    step = [0, *(int(text[3:]) for text in said if text.startswith('at '))][-1]
    if world.newest() < step - 1 and UNSAVED not in '\n'.join(said):  # what it told of last may have been counted later
        raise Failure(f'after SIGTERM at step {step} the newest checkpoint is of step {world.newest()}')
    if world.is_sync:
        kill_all(world, 0, seconds)
        return
    time.sleep(seconds)
    world.start_program(0)


def end_program(world, i, seconds):
    i = 1 + i % (world.workers - 1)
    world.end_program(i)
    time.sleep(seconds)
    world.start_program(i)


KINDS = {f.__name__: f for f in (kill_ps, kill_worker, kill_program, kill_chief, kill_host, kill_all, stop_ps, stop_worker, stop_program,
                                 end_chief, end_program)}
