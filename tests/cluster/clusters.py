"""Servers for tests: tasks of Weir, and for comparison tasks of TensorFlow, as processes of their own."""
import atexit
import contextlib
import itertools
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import types
import urllib.request

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
import tensorflow as tf  # noqa: E402

from ports import free_ports  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev'))
WEIR = BUILD / 'cli' / 'weir'
PATIENCE_MS = 30000  # no call of a test takes longer: a hang is an error, not a wait
CACHE = BUILD / 'CMakeCache.txt'
IS_SANITIZED = CACHE.exists() and re.search(r'^WEIR_SANITIZE:\w+=.', CACHE.read_text(), re.M) is not None
IS_THREAD_SANITIZED = IS_SANITIZED and re.search(r'^WEIR_SANITIZE:\w+=.*thread', CACHE.read_text(), re.M) is not None
FINDINGS = ('Sanitizer', 'runtime error:')


def read_line(pipe, seconds):
    """A line of a process's output; an empty one when there is none in time."""
    ready, _, _ = select.select([pipe], [], [], seconds)
    line = pipe.readline() if ready else ''
    return line if isinstance(line, str) else line.decode()


class Task:
    """A `weir server`."""

    def __init__(self, *args, folder=None):
        self.log = tempfile.TemporaryFile(mode='w+', errors='backslashreplace')
        self.process = subprocess.Popen([WEIR, 'server', '--metrics-port=0', *args], stdout=subprocess.PIPE, stderr=self.log,
                                        bufsize=0, cwd=folder)  # a line read is no more than that line
        atexit.register(self.process.kill)
        self.metrics_port = self._read_port('weir server metrics on port')
        self.port = self._read_port('weir server listening on port')
        self.address = f'127.0.0.1:{self.port}'
        self.target = f'grpc://{self.address}'

    def _read_port(self, text):
        line = read_line(self.process.stdout, 60)
        assert line.startswith(text), f'{line!r} {self.errors()}'
        return int(line.split()[-1])

    def metrics(self):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.metrics_port}/metrics', timeout=PATIENCE_MS / 1000) as page:
            lines = page.read().decode().splitlines()
        return dict(line.rsplit(' ', 1) for line in lines if not line.startswith('#'))

    def held(self):
        """What the task holds for its clients: nothing, once they have gone."""
        values = self.metrics()
        names = ['weir_sessions{role="master"}', 'weir_sessions{role="worker"}', 'weir_steps_open', 'weir_graphs_running',
                 'weir_rpc_calls_running']
        return {name: int(values[name]) for name in names}

    def open_steps(self):
        return self.held()['weir_steps_open']

    def wait_until_idle(self):
        wait_until(lambda: not any(self.held().values()), what=lambda: f'{self.address} holds {self.held()}')

    def errors(self):
        self.log.seek(0)
        return self.log.read()

    def is_alive(self):
        return self.process.poll() is None

    def memory(self):
        """Bytes resident. Sanitizers keep what was freed: with them there is nothing to measure."""
        if IS_SANITIZED:
            return 0
        status = pathlib.Path(f'/proc/{self.process.pid}/status').read_text()
        return int(status.split('VmRSS:')[1].split()[0]) * 1024

    def threads(self):
        return len(os.listdir(f'/proc/{self.process.pid}/task'))

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def stop(self):
        """Ends the task in order; fails when it crashed, hung or a sanitizer had something to say."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(120 if IS_SANITIZED else 60)  # leaks take long to look for
        finally:
            self.process.kill()
            atexit.unregister(self.process.kill)
        errors = self.errors()
        assert code == 0, f'exit code {code}\n{errors[-6000:]}'
        assert not any(finding in errors for finding in FINDINGS), errors[:12000]


class Cluster:
    """Tasks of Weir: {'ps': 2, 'worker': 2} by default. All of them get the options."""
    options = ()

    def __init__(self, jobs=None, *options):
        self.options = options
        jobs = jobs or {'ps': 2, 'worker': 2}
        ports = iter(free_ports(sum(jobs.values())))
        addresses = {job: [f'127.0.0.1:{next(ports)}' for _ in range(count)] for job, count in jobs.items()}
        self.spec = ','.join(job + '|' + ';'.join(of_job) for job, of_job in addresses.items())
        self.tasks = {}
        for job, of_job in addresses.items():
            for i in range(len(of_job)):
                self.start(job, i)
        self.target = self.tasks['worker', 0].target

    def start(self, job, i):
        self.tasks[job, i] = Task(f'--cluster={self.spec}', f'--job={job}', f'--task={i}', *self.options)

    def is_alive(self):
        return all(task.is_alive() for task in self.tasks.values())

    def open_steps(self):
        """On all tasks; a step that spans tasks counts on each."""
        return sum(task.open_steps() for task in self.tasks.values())

    def wait_until_idle(self):
        for task in self.tasks.values():
            task.wait_until_idle()

    def memory(self):
        return sum(task.memory() for task in self.tasks.values())

    def stop(self):
        for task in self.tasks.values():
            task.stop()


TENSORFLOW_TASKS = '''
import json, sys
import tensorflow as tf
cluster = json.loads(sys.argv[1])
servers = [tf.distribute.Server(cluster, job_name=job, task_index=i)
           for job, addresses in cluster.items() for i in range(len(addresses))]
print('ready', flush=True)
sys.stdin.read()
'''


class TensorFlowCluster:
    """The same tasks, TensorFlow's: all in one process, which takes seconds to start."""

    def __init__(self, jobs=None):
        import json
        jobs = jobs or {'ps': 2, 'worker': 2}
        ports = iter(free_ports(sum(jobs.values())))
        spec = {job: [f'127.0.0.1:{next(ports)}' for _ in range(count)] for job, count in jobs.items()}
        self.process = subprocess.Popen([sys.executable, '-c', TENSORFLOW_TASKS, json.dumps(spec)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        atexit.register(self.process.kill)
        assert read_line(self.process.stdout, 120) == 'ready\n'
        self.tasks = {(job, i): types.SimpleNamespace(target=f'grpc://{address}')
                      for job, addresses in spec.items() for i, address in enumerate(addresses)}
        self.target = self.tasks[list(spec)[-1], 0].target

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def session(target, graph=None, **config):
    """A session of TensorFlow's client whose calls give up in the end. A new graph unless there is one."""
    graph = graph or tf.Graph()
    config.setdefault('operation_timeout_in_ms', PATIENCE_MS)
    with graph.as_default(), tf1.Session(getattr(target, 'target', target), graph=graph,
                                         config=tf1.ConfigProto(**config)) as s:
        yield s


_names = itertools.count()


def unique():
    """A name for state that other tests must not find: tasks share it between sessions."""
    return f'unique_{next(_names)}'


def error_of(fn, *args, **kwargs):
    """The error that a call raises: every one of these tests expects it to."""
    try:
        result = fn(*args, **kwargs)
    except tf.errors.OpError as e:
        return e
    raise AssertionError(f'no error, but {result!r}')


def wait_until(condition, seconds=PATIENCE_MS / 1000, what=lambda: 'it did not become true'):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.01)
