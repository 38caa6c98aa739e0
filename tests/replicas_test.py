"""Replicated training from C on real servers: examples/replicas.c on two parameter servers and three workers, some of which die."""
import re
import select
import subprocess
import time

import pytest

from conftest import BUILD, ROOT
from ports import free_ports

WORKERS, SERVERS = 3, 2
PATIENCE = 240  # seconds; a hang is a failure


class Cluster:
    """`weir server` processes, and the training programs of their workers."""

    def __init__(self):
        addresses = [f'127.0.0.1:{port}' for port in free_ports(SERVERS + WORKERS)]
        spec = 'ps|' + ';'.join(addresses[:SERVERS]) + ',worker|' + ';'.join(addresses[SERVERS:])
        self.targets = ['grpc://' + address for address in addresses[SERVERS:]]
        self.servers, self.programs = {}, {}
        self.spec = spec
        for job, count in (('ps', SERVERS), ('worker', WORKERS)):
            for i in range(count):
                self.start_server(job, i)
        for server in self.servers.values():
            assert b'listening' in server.stdout.readline()

    def start_server(self, job, i):
        command = [BUILD / 'cli' / 'weir', 'server', f'--cluster={self.spec}', f'--job={job}', f'--task={i}', '--threads=1']
        self.servers[job, i] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def restart_server(self, job, i):
        """After kill -9, without anything that it had."""
        self.servers[job, i].kill()
        self.servers[job, i].communicate()
        self.start_server(job, i)

    def start(self, worker, steps, backups=0, workers=WORKERS, more=()):
        command = [BUILD / 'examples' / 'replicas', f'--target={self.targets[worker]}', f'--worker={worker}', f'--steps={steps}',
                   f'--workers={workers}', f'--ps={SERVERS}', f'--backups={backups}', *more]
        self.programs[worker] = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)

    def kill(self, worker, with_server):
        self.programs[worker].kill()
        self.programs.pop(worker).communicate()
        if with_server:
            server = self.servers.pop(('worker', worker))
            server.kill()
            server.communicate()

    def wait_for_line(self, worker, pattern):
        """Reads what a program prints up to a line with |pattern|."""
        seen, deadline = '', time.monotonic() + PATIENCE
        while not re.search(pattern, seen):
            ready, _, _ = select.select([self.programs[worker].stdout], [], [], max(0, deadline - time.monotonic()))
            line = self.programs[worker].stdout.readline().decode() if ready else ''
            assert line, f'{seen!r} without {pattern!r}; {self.programs[worker].poll()}'
            seen += line

    def results(self):
        """What the programs print until they end; all must end well."""
        deadline = time.monotonic() + PATIENCE
        outputs = {}
        for worker, program in self.programs.items():
            out, err = program.communicate(timeout=max(1, deadline - time.monotonic()))
            assert program.returncode == 0, (worker, out, err)
            outputs[worker] = out.decode()
        return outputs

    def stop(self):
        for process in [*self.programs.values(), *self.servers.values()]:
            process.kill()
        for process in [*self.programs.values(), *self.servers.values()]:
            process.communicate()


@pytest.fixture
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.stop()


def accuracy(out):
    return float(re.search(r'^([0-9.]+) % of 10000 test images right', out, re.M)[1])


def steps_of(out, worker):
    return int(re.search(rf'^worker {worker} took (\d+) steps$', out, re.M)[1])


def test_all_workers(cluster):
    """Each step has a gradient of each worker. The chief begins twice, as leader and as worker, which leaves out a number."""
    for worker in reversed(range(WORKERS)):  # the chief comes last: the others wait for it
        cluster.start(worker, steps=100)
    outputs = cluster.results()
    assert accuracy(outputs[0]) > 93
    for worker, out in outputs.items():
        assert 95 <= steps_of(out, worker) <= 105


@pytest.mark.parametrize('with_server', [False, True], ids=['program', 'program_and_server'])
def test_a_worker_dies(cluster, with_server):
    """One of three is killed while it trains; two gradients a step suffice, so that training goes on to its end."""
    for worker in range(WORKERS):
        cluster.start(worker, steps=300, backups=1)
    cluster.wait_for_line(2, r'step \d+')
    cluster.kill(2, with_server)
    outputs = cluster.results()
    assert accuracy(outputs[0]) > 93
    assert sum(steps_of(out, worker) for worker, out in outputs.items()) >= 300


def test_a_worker_comes_back(cluster):
    """All gradients are needed: the others wait for a worker that was killed, and go on once it is started again."""
    for worker in range(WORKERS):
        cluster.start(worker, steps=300)
    cluster.wait_for_line(1, r'step \d+')
    cluster.kill(1, with_server=False)
    cluster.start(1, steps=300)
    outputs = cluster.results()
    assert accuracy(outputs[0]) > 93
    assert 0 < steps_of(outputs[1], 1) < 300


def test_the_chief_comes_back(cluster):
    """Workers wait for a chief that was killed; started again, it leads on from where the parameters are."""
    for worker in range(WORKERS):
        cluster.start(worker, steps=300)
    cluster.wait_for_line(0, r'step \d+')
    cluster.kill(0, with_server=False)
    cluster.start(0, steps=300)
    outputs = cluster.results()
    assert accuracy(outputs[0]) > 93
    assert steps_of(outputs[0], 0) < 300


def test_one_worker_never_comes(cluster):
    """Neither its server nor its program: sessions of the others do not wait for it."""
    server = cluster.servers.pop(('worker', 2))
    server.kill()
    server.communicate()
    for worker in range(2):
        cluster.start(worker, steps=50, backups=1)
    assert accuracy(cluster.results()[0]) > 85


def test_no_cluster():
    out = subprocess.run([BUILD / 'examples' / 'replicas', '--steps=100'], cwd=ROOT, check=True, capture_output=True, text=True,
                         timeout=PATIENCE).stdout
    assert 95 <= steps_of(out, 0) <= 105 and accuracy(out) > 85


@pytest.mark.parametrize('job', ['ps', 'worker'])
def test_a_server_is_killed(cluster, tmp_path, job):
    """A parameter server loses its variables: the chief restores them. A worker's has none."""
    for worker in range(WORKERS):
        cluster.start(worker, steps=600, more=[f'--directory={tmp_path}'])
    cluster.wait_for_line(0, r'step 2\d\d')
    cluster.restart_server(job, 0)
    outputs = cluster.results()
    assert accuracy(outputs[0]) > 90
    assert 'servers were lost' in outputs[0]
    assert steps_of(outputs[0], 0) > 400
    assert (tmp_path / 'checkpoint').exists()


@pytest.mark.parametrize('flags', [['--bogus'], ['--steps=0'], ['--workers=x'], ['--worker=1'], ['--workers=2', '--backups=2']])
def test_bad_options(flags):
    result = subprocess.run([BUILD / 'examples' / 'replicas', *flags], capture_output=True, text=True)
    assert result.returncode == 2 and 'usage' in result.stderr
