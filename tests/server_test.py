"""weir server from outside: which task it is, how it ends and with which code, metrics and health, sockets."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
import numpy as np
import pytest
import tensorflow as tf

import conftest
from ports import free_ports, free_range

v1 = tf.compat.v1
WEIR = conftest.BUILD / 'cli' / 'weir'
PATIENCE = int(os.environ.get('WEIR_PATIENCE', 60))  # seconds; what hangs fails


def clean_environment(**variables):
    kept = {k: v for k, v in os.environ.items() if k != 'TF_CONFIG' and not k.startswith('SLURM_')}
    return {**kept, **variables}


class Server:
    """A weir server that was started and has announced itself."""
    def __init__(self, *args, **variables):
        self.process = subprocess.Popen([WEIR, 'server', *args], env=clean_environment(**variables), text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        while not self.lines or 'listening on' not in self.lines[-1]:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f'weir server ended with {self.process.wait()}: {self.process.stderr.read()}')
            self.lines.append(line)
        self.where = self.lines[-1].split()[-1]

    @property
    def port(self):
        return int(self.where)

    @property
    def metrics_port(self):
        return int(re.search(r'metrics on port (\d+)', ''.join(self.lines))[1])

    def get(self, path, method='GET', data=None):
        request = urllib.request.Request(f'http://127.0.0.1:{self.metrics_port}{path}', method=method, data=data)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read().decode()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        self.stdout, self.stderr = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@pytest.fixture
def server():
    servers = []
    def start(*args, **variables):
        servers.append(Server(*args, **variables))
        return servers[-1]
    yield start
    for s in servers:
        if s.process.poll() is None:
            s.process.kill()
            s.process.wait()


def fails(*args, **variables):
    return subprocess.run([WEIR, 'server', *args], env=clean_environment(**variables), text=True, capture_output=True,
                          timeout=PATIENCE)


def devices(target):
    with tf.Graph().as_default(), v1.Session(target) as session:
        return sorted(d.name for d in session.list_devices())


def double(target, x=3.0, device=None):
    with tf.Graph().as_default():
        with tf.device(device):
            y = tf.constant(x) * 2.0
        with v1.Session(target) as session:
            return session.run(y, options=v1.RunOptions(timeout_in_ms=PATIENCE * 1000))


# ---- which task ----

def test_alone(server):
    s = server('--port=0')
    assert devices(f'grpc://127.0.0.1:{s.port}') == ['/job:localhost/replica:0/task:0/device:CPU:0']
    assert double(f'grpc://127.0.0.1:{s.port}') == 6
    assert s.end() == 0


def test_flags(server):
    a, b = free_ports(2)
    cluster = f'--cluster=ps|127.0.0.1:{a},worker|127.0.0.1:{b}'
    ps, worker = server(cluster, '--job=ps'), server(cluster, '--job', 'worker', '--task', '0')
    assert (ps.port, worker.port) == (a, b)
    names = ['/job:ps/replica:0/task:0/device:CPU:0', '/job:worker/replica:0/task:0/device:CPU:0']
    assert devices(f'grpc://127.0.0.1:{b}') == names
    assert double(f'grpc://127.0.0.1:{b}', device='/job:ps') == 6
    assert [worker.end(), ps.end()] == [0, 0]


def test_tf_config(server):
    a, b, c = free_ports(3)
    cluster = {'chief': [f'127.0.0.1:{a}'], 'worker': {'3': f'127.0.0.1:{b}'}, 'evaluator': [f'127.0.0.1:{c}']}
    def config(job, index=0):
        return json.dumps({'cluster': cluster, 'task': {'type': job, 'index': index}, 'environment': 'cloud'})
    chief, worker = server(TF_CONFIG=config('chief')), server(TF_CONFIG=config('worker', 3))
    evaluator = server(TF_CONFIG=config('evaluator'))
    assert (chief.port, worker.port, evaluator.port) == (a, b, c)
    names = ['/job:chief/replica:0/task:0/device:CPU:0', '/job:worker/replica:0/task:3/device:CPU:0']
    assert devices(f'grpc://127.0.0.1:{a}') == names
    assert devices(f'grpc://127.0.0.1:{c}') == ['/job:localhost/replica:0/task:0/device:CPU:0']


def test_flags_over_tf_config(server):
    a, b = free_ports(2)
    config = json.dumps({'cluster': {'ps': [f'127.0.0.1:{a}', f'127.0.0.1:{b}']}, 'task': {'type': 'ps', 'index': 0}})
    assert server('--task=1', TF_CONFIG=config).port == b
    s = server('--no-environment', TF_CONFIG=config)
    assert devices(f'grpc://127.0.0.1:{s.port}') == ['/job:localhost/replica:0/task:0/device:CPU:0']


def test_slurm_variables(server):
    port, = free_ports(1)
    base = port - 1  # two tasks on the node: this is the second
    s = server('--jobs=ps:1,worker:1', f'--port={base}', SLURM_PROCID='1', SLURM_STEP_NODELIST='127.0.0.1',
               SLURM_STEP_TASKS_PER_NODE='2', SLURM_STEP_NUM_TASKS='2', SLURM_NODEID='0')
    assert s.port == port
    assert s.end() == 0 and '/job:worker/replica:0/task:0' in s.stderr


def test_example_by_hand():
    base = free_range(3)
    process = subprocess.Popen([conftest.ROOT / 'examples' / 'cluster' / 'local.sh', '1', '2', str(base)], text=True,
                               env=clean_environment(WEIR=str(WEIR)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        lines = []
        while sum('listening on port' in line for line in lines) < 3:
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        assert len(devices(f'grpc://127.0.0.1:{base + 1}')) == 3
        assert double(f'grpc://127.0.0.1:{base + 2}', device='/job:ps') == 6
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    with pytest.raises(OSError):
        socket.create_connection(('127.0.0.1', base), 5).close()


# ---- how it fails ----

@pytest.mark.parametrize('args, variables, message', [
    (['--nonsense'], {}, "unknown option '--nonsense'"),
    (['--port=x'], {}, "'--port=x' is out of range or no number"),
    (['--port=65536'], {}, 'out of range'),
    (['--exit-with-chief=0'], {}, 'out of range'),
    (['--job=ps'], {}, "task 0 of job 'ps' is asked for, but neither"),
    (['--cluster=ps|h:1', '--job=worker'], {}, "--cluster: the cluster has no task 0 of job 'worker'"),
    (['--cluster=ps|h'], {}, "'h' is no address"),
    (['--jobs=ps:1'], {}, 'no task of Slurm'),
    (['--exit-with-chief', '--cluster=ps|127.0.0.1:0', '--job=ps'], {}, 'there is no chief to end with'),
    ([], {'TF_CONFIG': '{"cluster"'}, "TF_CONFIG: JSON: line 1, column 11: expected ':'"),
    ([], {'TF_CONFIG': '{"cluster": {"ps": ["h:1"]}}'}, 'task.type is missing'),
    ([], {'SLURM_PROCID': '0', 'SLURM_STEP_NODELIST': 'n[1'}, "SLURM_STEP_NODELIST 'n[1'"),
    (['--jobs=ps:1'], {'SLURM_PROCID': '0', 'SLURM_JOB_NODELIST': 'n[1-2]'}, 'have 1 tasks, but Slurm started 2'),
])
def test_bad_description(args, variables, message):
    done = fails(*args, **variables)
    assert done.returncode == 2 and message in done.stderr and done.stdout == ''


def test_port_taken(server):
    s = server('--metrics-port=0')
    for args in ([f'--port={s.port}'], ['--port=0', f'--metrics-port={s.metrics_port}'], ['--bind=203.0.113.7']):
        done = fails(*args)
        assert done.returncode == 3 and 'cannot listen on' in done.stderr and done.stdout == ''


def test_bad_certificate(tmp_path):
    done = fails('--port=0', f'--tls-cert={tmp_path}/none', f'--tls-key={tmp_path}/none')
    assert done.returncode in (1, 2) and 'none' in done.stderr


# ---- how it ends ----

@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_signals(server, number):
    s = server()
    assert s.end(number) == 0


def blocked_step(port):
    """A step that waits for ever, and the list its error goes to. The client waits for a server that is gone to come back."""
    errors = []
    def wait():
        with tf.Graph().as_default():
            item = tf.queue.FIFOQueue(1, tf.float32).dequeue()
            session = v1.Session(f'grpc://127.0.0.1:{port}')
            for call in (lambda: session.run(item), session.close):  # closed while there is a server to tell
                try:
                    call()
                except tf.errors.OpError as error:
                    errors.append(error.with_traceback(None))
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread, errors


def wait_for_sample(server, is_there):
    end = time.monotonic() + PATIENCE
    while not is_there(samples(server.get('/metrics')[2])):
        assert time.monotonic() < end
        time.sleep(0.05)


def wait_for_steps(server, count):
    wait_for_sample(server, lambda found: found['weir_steps_total'] >= count)


def wait_for_call(server, method):
    """Until somebody's call of a worker's method has been answered."""
    wait_for_sample(server, lambda found: any(value for name, value in found.items()
                                              if name.startswith('weir_rpc_calls_total') and f'/{method}"' in name))


def test_signal_ends_blocked_step(server):
    port, = free_ports(1)
    s = server(f'--port={port}', '--metrics-port=0')
    thread, errors = blocked_step(s.port)
    wait_for_steps(s, 1)
    assert s.end() == 0
    server(f'--port={s.port}')  # knows nothing of the session
    thread.join(PATIENCE)
    assert not thread.is_alive() and isinstance(errors[0], tf.errors.AbortedError)


def test_second_signal(server):
    port, = free_ports(1)
    s = server(f'--port={port}', '--metrics-port=0')
    thread, errors = blocked_step(s.port)
    wait_for_steps(s, 1)
    s.process.send_signal(signal.SIGTERM)  # waits for the step
    wait_for_health(s, 503)
    assert s.end() == 128 + signal.SIGTERM and 'again' in s.stderr
    server(f'--port={s.port}')
    thread.join(PATIENCE)
    assert not thread.is_alive() and errors


def wait_for_health(server, code):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            status = server.get('/healthz')[0]
        except urllib.error.HTTPError as error:
            status = error.code
        if status == code:
            return
        assert time.monotonic() < end
        time.sleep(0.02)


def test_shut_down(server, weir):
    s = server()
    weir('server', f'--shut-down=grpc://127.0.0.1:{s.port}', timeout=PATIENCE)
    assert s.wait() == 0 and 'told to end by a client' in s.stderr
    done = weir('server', f'--shut-down=127.0.0.1:{s.port}', check=False, timeout=PATIENCE)
    assert done.returncode == 1 and 'UNAVAILABLE' in done.stderr


def test_exit_with_chief(server):
    a, b, c = free_ports(3)
    cluster = f'--cluster=ps|127.0.0.1:{a},chief|127.0.0.1:{b},worker|127.0.0.1:{c}'
    ps = server(cluster, '--job=ps', '--exit-with-chief=5')
    time.sleep(6)  # a chief that has not come yet is waited for
    assert ps.process.poll() is None
    chief = server(cluster, '--job=chief', '--exit-with-chief=5', '--metrics-port=0')
    wait_for_call(chief, 'GetStatus')  # of the parameter server: it has seen the chief
    worker = server(cluster, '--job=worker', '--exit-with-chief=600')
    assert double(f'grpc://127.0.0.1:{b}', device='/job:ps') == 6
    time.sleep(1.5)
    assert [s.process.poll() for s in (ps, chief, worker)] == [None] * 3
    chief.process.kill()
    assert ps.wait() == 0 and 'the chief is gone' in ps.stderr
    assert worker.end() == 0 and 'the chief is gone' not in worker.stderr


def test_chief_that_comes_back(server):
    a, b = free_ports(2)
    cluster = f'--cluster=ps|127.0.0.1:{a},worker|127.0.0.1:{b}'
    ps = server(cluster, '--job=ps', '--exit-with-chief=20')
    for _ in range(2):
        chief = server(cluster, '--job=worker')
        time.sleep(1.2)
        chief.process.kill()
        chief.wait()
    assert ps.process.poll() is None and ps.end() == 0


# ---- where it listens ----

def test_unix_socket(server, weir, tmp_path):
    path = tmp_path / 'weir.sock'
    s = server(f'--unix={path}')
    assert s.where == f'unix:{path}' and path.is_socket()
    assert fails(f'--unix={path}').returncode == 3
    weir('server', f'--shut-down=unix:{path}', timeout=PATIENCE)
    assert s.wait() == 0 and not path.exists()


def test_unix_socket_in_cluster(server, tmp_path):
    port, = free_ports(1)
    cluster = f'--cluster=ps|unix:{tmp_path}/ps,worker|127.0.0.1:{port}'
    ps, worker = server(cluster, '--job=ps'), server(cluster, '--job=worker')
    assert ps.where == f'unix:{tmp_path}/ps'
    assert double(f'grpc://127.0.0.1:{worker.port}', device='/job:ps') == 6


def test_binds_to_loopback_unless_told(server):
    def listens_on(port):
        rows = pathlib.Path('/proc/net/tcp').read_text().splitlines()[1:]
        local = [row.split()[1] for row in rows if row.split()[3] == '0A']
        return [address for address in local if int(address.split(':')[1], 16) == port]
    inside, outside = server(), server('--bind=0.0.0.0')
    assert listens_on(inside.port) == [f'0100007F:{inside.port:04X}']
    assert listens_on(outside.port) == [f'00000000:{outside.port:04X}']


# ---- metrics and health ----

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)')


def samples(text):
    """The samples of Prometheus' text by name with labels. Every one must be of a metric whose type was told before."""
    found, types = {}, {}
    for line in text.splitlines():
        if line.startswith('# TYPE '):
            name, kind = line.split()[2:]
            assert name not in types and kind in ('counter', 'gauge', 'histogram')
            types[name] = kind
        elif not line.startswith('#'):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            base = re.sub('_(bucket|sum|count)$', '', name)
            assert types.get(name) or types.get(base) == 'histogram', line
            assert (name + (labels or '')) not in found, line
            found[name + (labels or '')] = float(value)
    return found


def test_metrics(server):
    s = server('--metrics-port=0')
    status, headers, text = s.get('/metrics')
    assert status == 200 and headers['Content-Type'].startswith('text/plain; version=0.0.4')
    before = samples(text)
    assert before['weir_steps_total'] == 0 and before['weir_sessions{role="master"}'] == 0
    assert before['weir_task_info{job="localhost",task="0"}'] == 1
    with tf.Graph().as_default(), v1.Session(f'grpc://127.0.0.1:{s.port}') as session:
        queue = tf.queue.FIFOQueue(10, tf.float32, [[]], shared_name='a "quoted" name')
        x = v1.placeholder(tf.float32, [None])
        put, total = queue.enqueue_many([x]), tf.reduce_sum(x)
        bad = tf.debugging.check_numerics(x, 'bad')
        big = v1.get_variable('big', [1 << 20], initializer=v1.zeros_initializer(), use_resource=True)
        session.run(big.initializer)
        session.run(put, {x: [1, 2, 3]})
        for _ in range(4):
            session.run(total, {x: np.ones(1000)})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(bad, {x: [np.nan]})
        during = samples(s.get('/metrics')[2])
    assert during['weir_steps_total'] == 7
    assert during['weir_sessions{role="master"}'] == 1
    assert during['weir_queue_size{container="localhost",name="a \\"quoted\\" name"}'] == 3
    assert during['weir_tensor_memory_bytes'] >= 4 << 20  # the variable
    assert during['weir_tensor_memory_peak_bytes'] >= during['weir_tensor_memory_bytes']
    assert during['weir_heap_bytes'] > during['weir_tensor_memory_bytes']
    assert during['process_resident_memory_bytes'] > 1e6
    assert during['weir_rpc_connections'] >= 1
    run = '{method="/tensorflow.MasterService/RunStep"}'
    assert during['weir_rpc_request_bytes_total' + run] > 4 * 4000
    assert during['weir_rpc_latency_seconds_count' + run] == 7
    assert 0 < during['weir_rpc_latency_seconds_sum' + run] < 60
    buckets = [v for k, v in during.items() if k.startswith('weir_rpc_latency_seconds_bucket') and 'RunStep' in k]
    assert buckets == sorted(buckets) and buckets[-1] == 7
    calls = [v for k, v in during.items() if k.startswith('weir_rpc_calls_total') and 'RunStep' in k]
    assert sum(calls) == 7
    after = samples(s.get('/metrics')[2])
    assert after['weir_sessions{role="master"}'] == 0
    assert s.end() == 0


def test_metrics_of_tensors_between_tasks(server):
    a, b = free_ports(2)
    cluster = f'--cluster=ps|127.0.0.1:{a},worker|127.0.0.1:{b}'
    ps, worker = (server(cluster, f'--job={job}', '--metrics-port=0') for job in ('ps', 'worker'))
    with tf.Graph().as_default():
        with tf.device('/job:ps'):
            v = v1.get_variable('v', [1000], initializer=v1.zeros_initializer())
        with tf.device('/job:worker'):
            y = tf.reduce_sum(v + 1)
        with v1.Session(f'grpc://127.0.0.1:{b}') as session:
            session.run(v.initializer)
            assert session.run(y) == 1000
    sent, received = samples(ps.get('/metrics')[2]), samples(worker.get('/metrics')[2])
    assert sent['weir_tensor_sent_bytes_total'] >= 4000 and sent['weir_steps_total'] >= 2
    assert received['weir_tensor_received_bytes_total'] == sent['weir_tensor_sent_bytes_total']


def test_health(server):
    s = server('--metrics-port=0')
    assert s.get('/healthz')[0::2] == (200, 'ok\n')
    assert s.get('/healthz?x=1')[2] == 'ok\n' and s.get('/healthz', 'HEAD')[2] == ''
    for path, method, data, code in [('/nothing', 'GET', None, 404), ('/metrics', 'POST', b'x' * 5000, 405)]:
        with pytest.raises(urllib.error.HTTPError) as error:
            s.get(path, method, data)
        assert error.value.code == code


def http(port, data, patience=PATIENCE):
    with socket.create_connection(('127.0.0.1', port), patience) as connection:
        connection.sendall(data)
        answer = b''
        while part := connection.recv(65536):
            answer += part
        return answer


def test_bad_http(server):
    s = server('--metrics-port=0')
    for request, code in [(b'\r\n\r\n', b'400'), (b'GET\r\n\r\n', b'400'), (b'GET x HTTP/1.1\r\n\r\n', b'400'),
                          (b'GET /healthz SPDY/3\r\n\r\n', b'400'), (b'\x16\x03\x01\n\n', b'400'),
                          (b'GET / HTTP/1.1\r\n' + b'a: b\r\n' * 5000, b'431'), (b'GET /healthz HTTP/1.0\n\n', b'200')]:
        assert http(s.metrics_port, request).split()[1] == code, request[:40]
    # Clients that say nothing do not keep others out.
    silent = [socket.create_connection(('127.0.0.1', s.metrics_port)) for _ in range(20)]
    assert s.get('/healthz')[0] == 200
    for connection in silent:
        connection.close()
    assert s.end() == 0


def test_no_metrics_unless_asked(server):
    s = server()
    assert len(s.lines) == 1 and s.end() == 0


def test_log_levels(server):
    def log(level):
        s = server('--cluster=ps|192.0.2.1:0', '--job=ps', TF_CPP_MIN_LOG_LEVEL=level)
        assert s.end() == 0
        return s.stderr
    assert 'loopback interface only' in log('1') and 'loopback interface only' not in log('2')


# ---- weir top ----

def top(*args, code=0):
    done = subprocess.run([WEIR, 'top', *args], env=clean_environment(), text=True, capture_output=True, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if '--json' in args and code == 0 else done.stdout + done.stderr


def test_top(server):
    """Both tasks of a cluster, by the address of one, while a client runs steps; then one of them is gone."""
    a, b = free_ports(2)
    cluster = f'--cluster=ps|127.0.0.1:{a},worker|127.0.0.1:{b}'
    ps, worker = server(cluster, '--job=ps', '--devices=cpu:1,tight:1@memory=1e6'), server(cluster, '--job=worker')
    target, is_done = f'grpc://127.0.0.1:{worker.port}', threading.Event()

    def client():
        with tf.Graph().as_default():
            with tf.device('/job:ps'):
                y = tf.random.uniform([]) * 2.0
            with v1.Session(target) as session:
                while not is_done.is_set():
                    session.run(y)

    thread = threading.Thread(target=client)
    thread.start()
    try:
        first, second = top(target, '--once', '--json', '--interval=0.3')['tasks']
        while not first['steps_per_second'] or not second['steps_per_second']:  # the client has not begun
            assert thread.is_alive()
            first, second = top(target, '--once', '--json', '--interval=0.3')['tasks']
        assert (first['task'], first['address']) == ('/job:worker/task:0', target)
        assert (second['task'], second['address']) == ('/job:ps/task:0', f'127.0.0.1:{a}')
        assert first['sessions'] >= 1 and first['resident_bytes'] > 1e6 and first['steps'] > 0
        assert [device['device'][-5:] for device in first['devices']] == ['CPU:0']
        tight = second['devices'][1]
        assert 'TIGHT:0' in tight['device'] and tight['limit_bytes'] == 1e6 and tight['busy'] is None
        text = top(target, '--once', '--interval=0.1')
        assert re.search(r'^TASK +ADDRESS +STEPS', text) and re.search(rf'^/job:ps/task:0 +127.0.0.1:{a} +\d+', text, re.M)
    finally:
        is_done.set()
        thread.join()
    ps.end(signal.SIGKILL)
    gone = top(target, '--once', '--json', '--interval=0.1')['tasks'][1]
    assert gone['address'] == f'127.0.0.1:{a}' and gone['error'] and 'steps' not in gone
    assert worker.end() == 0


def test_top_refuses(server, tmp_path):
    (tmp_path / 'token').write_text('a_secret_that_nobody_guesses')
    (tmp_path / 'token').chmod(0o600)
    s = server('--port=0', f'--token-file={tmp_path / "token"}')
    target = f'grpc://127.0.0.1:{s.port}'
    assert 'UNAUTHENTICATED' in top(target, '--once', code=1)
    assert top(target, '--once', '--json', '--interval=0.1', f'--token-file={tmp_path / "token"}')['tasks'][0]['task'] == '/job:localhost/task:0'
    assert s.end() == 0
    assert 'UNAVAILABLE' in top(target, '--once', code=1)
    for wrong in ([], [target, '--interval=0'], [target, '--interval=x'], [target, target], [target, '--nce']):
        assert 'weir top' in top(*wrong, code=2)
