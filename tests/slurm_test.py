"""A real Slurm on this machine starts the cluster: srun weir server. Needs slurm-wlm and munge, and to be root."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
import pytest
import tensorflow as tf

import conftest
from ports import free_ports, free_range

v1 = tf.compat.v1
WEIR = conftest.BUILD / 'cli' / 'weir'
PROGRAMS = ['slurmctld', 'slurmd', 'srun', 'munged']
PATIENCE = 60

missing = [name for name in PROGRAMS if not shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/sbin')]
pytestmark = [pytest.mark.skipif(bool(missing), reason=f'not installed: {missing}'),
              pytest.mark.skipif(os.geteuid() != 0, reason='Slurm is started as root'),
              pytest.mark.skipif(not os.path.ismount('/sys/fs/cgroup'), reason='slurmd does not start without cgroups')]

CONF = '''
ClusterName=weirtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
AuthType=auth/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus}
PartitionName=test Nodes={host} Default=YES OverSubscribe=FORCE:8
'''


def wait_for(what, is_there, patience=PATIENCE):
    end = time.monotonic() + patience
    while not is_there():
        assert time.monotonic() < end, f'{what} did not come'
        time.sleep(0.1)


def is_munge_up():
    return subprocess.run(['munge', '-n'], capture_output=True).returncode == 0


def start_munge(folder):
    """munged on its usual socket, unless one is running already; returns the pid to end, or None."""
    if is_munge_up():
        return None
    for path in ('/run/munge', '/var/lib/munge', '/var/log/munge'):
        os.makedirs(path, exist_ok=True)
        shutil.chown(path, 'munge', 'munge')
    os.chmod('/run/munge', 0o755)
    pid_file = '/run/munge/weir-test.pid'
    subprocess.run(['setpriv', '--reuid=munge', '--regid=munge', '--clear-groups', shutil.which('munged', path='/usr/sbin'),
                    f'--pid-file={pid_file}'], check=True)
    wait_for('munge', is_munge_up)
    return int(pathlib.Path(pid_file).read_text())


@pytest.fixture(scope='module')
def slurm(tmp_path_factory):
    """Starts slurmctld and slurmd with folders and ports of their own; gives the environment for srun."""
    folder = tmp_path_factory.mktemp('slurm')
    host = socket.gethostname().split('.')[0]
    for name in ('state', 'spool'):
        (folder / name).mkdir()
    conf = folder / 'slurm.conf'
    ctld, slurmd = free_ports(2)
    conf.write_text(CONF.format(host=host, ctld=ctld, slurmd=slurmd, folder=folder, cpus=os.cpu_count()))
    environment = {k: v for k, v in os.environ.items() if not k.startswith('SLURM') and k != 'TF_CONFIG'}
    environment['SLURM_CONF'] = str(conf)
    environment['PATH'] += ':/usr/sbin:/sbin'
    munge = start_munge(folder)
    try:
        subprocess.run(['slurmctld', '-i'], env=environment, check=True, cwd=folder)
        subprocess.run(['slurmd'], env=environment, check=True, cwd=folder)
        def is_idle():
            info = subprocess.run(['sinfo', '-h', '-o', '%t'], env=environment, capture_output=True, text=True)
            return info.stdout.strip() in ('idle', 'mix', 'alloc')
        wait_for('an idle node', is_idle)
        yield environment
    finally:
        for name in ('slurmd', 'slurmctld'):
            stop(folder / f'{name}.pid')
        if munge:
            os.kill(munge, signal.SIGTERM)


def stop(pid_file):
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return  # it never started
    os.kill(pid, signal.SIGTERM)
    wait_for('the end of ' + pid_file.stem, lambda: not pathlib.Path(f'/proc/{pid}').exists())


class Step:
    """srun weir server, once every task has announced itself."""
    def __init__(self, environment, count, *args):
        self.base = free_range(count)
        command = ['srun', f'-n{count}', '-O', '--label', '--kill-on-bad-exit=0', str(WEIR), 'server', '--bind=0.0.0.0',
                   f'--port={self.base}', *args]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        said = ('listening on port', 'weir server: /job:')  # two lines of each task, by stdout and stderr, in any order
        while any(sum(what in line for line in self.lines) < count for what in said):
            line = self.process.stdout.readline()
            assert line, f'srun ended with {self.process.wait()}: {"".join(self.lines)}'
            self.lines.append(line)
        self.text = ''.join(self.lines)

    def stop(self):
        """As scancel does: SIGTERM to every task. Gives srun's exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@pytest.fixture
def step(slurm):
    steps = []
    def start(count, *args):
        steps.append(Step(slurm, count, *args))
        return steps[-1]
    yield start
    for s in steps:
        if s.process.poll() is None:
            s.process.kill()
            s.process.wait()


def ports_of(text):
    """The ports by Slurm's rank: lines are '2: weir server listening on port 8890'."""
    rows = [line.split() for line in text.splitlines() if 'listening on port' in line]
    return {int(row[0].rstrip(':')): int(row[-1]) for row in rows}


def test_parameter_servers_and_workers(step):
    s = step(4, '--jobs=ps:1,worker:3')
    assert ports_of(s.text) == {rank: s.base + rank for rank in range(4)}
    for rank, name in enumerate(['ps/replica:0/task:0'] + [f'worker/replica:0/task:{i}' for i in range(3)]):
        assert f'{rank}: weir server: /job:{name} at' in s.text
    with tf.Graph().as_default():
        with tf.device('/job:ps/task:0'):
            v = v1.get_variable('v', [10], initializer=v1.zeros_initializer())
        adds = []
        for i in range(3):
            with tf.device(f'/job:worker/task:{i}'):
                grown = tf.ones([10]) * float(i + 1)
            with tf.device('/job:ps/task:0'):
                adds.append(v1.assign_add(v, grown))
        with v1.Session(f'grpc://127.0.0.1:{s.base + 1}') as session:
            names = sorted(d.name for d in session.list_devices())
            assert len(names) == 4 and sum('worker' in name for name in names) == 3
            session.run(v.initializer)
            for add in adds:
                session.run(add, options=v1.RunOptions(timeout_in_ms=PATIENCE * 1000))
            assert session.run(v).tolist() == [6] * 10


def test_workers_by_default_and_their_end(step, slurm):
    s = step(2)
    with tf.Graph().as_default():
        with tf.device('/job:worker/task:1'):
            y = tf.constant(2.0) * 3.0
        with v1.Session(f'grpc://127.0.0.1:{s.base}') as session:
            assert session.run(y) == 6
    # Each server is told to end, so the step ends by itself, and well.
    for rank in range(2):
        subprocess.run([WEIR, 'server', f'--shut-down=127.0.0.1:{s.base + rank}'], check=True, timeout=PATIENCE)
    s.process.communicate(timeout=PATIENCE)
    assert s.process.returncode == 0


def test_cancelled(step):
    s = step(2)
    assert s.stop() is not None


def sample(port, prefix):
    """The sum of a task's metrics that begin so."""
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=PATIENCE) as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(prefix))


def test_exit_with_chief(step):
    s = step(3, '--jobs=ps:1,chief:1,worker:1', '--exit-with-chief=5', '--metrics-port=0')
    port = re.search(r'^1: .* metrics on port (\d+)$', s.text, re.M)[1]
    wait_for('connections of both others', lambda: sample(port, 'weir_rpc_connections ') == 2)
    calls = sample(port, 'weir_rpc_calls_total{method="/tensorflow.WorkerService/GetStatus"')
    # They ask every second: three more answers are not all of one of them.
    wait_for('calls', lambda: sample(port, 'weir_rpc_calls_total{method="/tensorflow.WorkerService/GetStatus"') >= calls + 3)
    subprocess.run([WEIR, 'server', f'--shut-down=127.0.0.1:{s.base + 1}'], check=True, timeout=PATIENCE)
    rest, _ = s.process.communicate(timeout=PATIENCE)
    assert s.process.returncode == 0 and rest.count('the chief is gone') == 2


def test_wrong_number_of_tasks(slurm):
    done = subprocess.run(['srun', '-n2', '-O', str(WEIR), 'server', '--jobs=ps:1,worker:3'], env=slurm, capture_output=True,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 2 and 'have 4 tasks, but Slurm started 2' in done.stderr


def test_example_job(slurm, tmp_path):
    """examples/cluster/slurm.sbatch as a user submits it, with a program that trains on the workers."""
    program = tmp_path / 'train.py'
    program.write_text(PROGRAM)
    environment = {**slurm, 'PATH': f'{WEIR.parent}:{slurm["PATH"]}', 'WEIR_PORT': str(free_range(5))}
    command = ['sbatch', '--wait', '--cpus-per-task=1', '--overcommit', f'--output={tmp_path}/out', '--time=5',
               str(conftest.ROOT / 'examples' / 'cluster' / 'slurm.sbatch'), sys.executable, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE)
    output = (tmp_path / 'out').read_text()
    assert done.returncode == 0, done.stderr + output
    assert 'trained to 0.5' in output and output.count('the chief is gone') == 4


PROGRAM = '''
import os
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
with tf.device('/job:ps'):
    w = v1.get_variable('w', [], initializer=v1.zeros_initializer())
steps = []
for i in range(3):
    with tf.device(f'/job:worker/task:{i}'):
        gradient = 2 * (w - 0.5)
    with tf.device('/job:ps'):
        steps.append(v1.assign_sub(w, 0.25 * gradient))
with v1.Session(os.environ['WEIR_TARGET']) as session:
    session.run(w.initializer)
    for _ in range(10):
        for step in steps:
            session.run(step)
    print(f'trained to {session.run(w):.1f}')
'''


def test_names_tensorflow_resolves_alike(slurm, tmp_path):
    """TensorFlow's own resolver reads the same cluster from the same step."""
    program = tmp_path / 'resolve.py'
    program.write_text('import os; os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n'
                       'import tensorflow as tf\n'
                       'r = tf.distribute.cluster_resolver.SlurmClusterResolver(jobs={"ps": 1, "worker": 1}, gpus_per_node=2,\n'
                       '    gpus_per_task=1, auto_set_gpu=False)\n'
                       'print(r.cluster_spec().as_dict(), r.get_task_info())\n')
    done = subprocess.run(['srun', '-n2', '-O', '--label', sys.executable, str(program)], env=slurm, capture_output=True,
                          text=True, timeout=4 * PATIENCE)
    host = socket.gethostname().split('.')[0]
    expected = {'ps': [f'{host}:8888'], 'worker': [f'{host}:8889']}
    lines = sorted(line for line in done.stdout.splitlines() if 'ps' in line)
    assert lines == [f"0: {expected} ('ps', 0)", f"1: {expected} ('worker', 0)"], done.stderr
