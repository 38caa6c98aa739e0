"""The shared secret: who is served with it and who is not, tasks among themselves, the monitoring pages, what is warned of."""
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import clusters

tf1 = clusters.tf1
SECRET = 'correct-horse-battery-staple'


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp('token')
    for name, text, mode in (('right', SECRET + '\n', 0o600), ('wrong', SECRET + '!', 0o600), ('open', SECRET, 0o644), ('short', 'x', 0o600)):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    with tf1.Graph().as_default() as graph:
        x = tf1.placeholder(tf1.float32, [], name='x')
        with tf1.device('/job:ps/task:0'):
            y = tf1.multiply(x, 2.0, name='y')
        with tf1.device('/job:worker/task:0'):
            tf1.add(y, 1.0, name='z')
    (folder / 'cluster.pb').write_bytes(graph.as_graph_def().SerializeToString())
    for node in (definition := graph.as_graph_def()).node:
        node.device = ''
    (folder / 'plain.pb').write_bytes(definition.SerializeToString())
    return folder


def weir(*args):
    done = subprocess.run([clusters.WEIR, *map(str, args)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def run(files, task, token=None, graph='plain.pb'):
    flags = [f'--token-file={files}/{token}'] if token else []
    return weir('run', files / graph, '--feed=x=3', '--fetch=z:0', f'--target={task.target}', *flags)


@pytest.fixture(scope='module')
def task(files):
    task = clusters.Task('--port=0', f'--token-file={files}/right')
    yield task
    assert task.is_alive()
    task.stop()


def test_calls(files, task):
    assert run(files, task, 'right') == (0, 'z:0 = 7\n')
    for token, words in ((None, 'bears no token'), ('wrong', 'another token')):
        code, text = run(files, task, token)
        assert code == 1 and 'UNAUTHENTICATED' in text and words in text, text
    assert run(files, task, 'right') == (0, 'z:0 = 7\n')


def test_client_of_tensorflow(task):
    """It cannot send one."""
    with tf1.Graph().as_default(), pytest.raises(clusters.tf.errors.UnauthenticatedError):
        with tf1.Session(task.target) as session:
            session.run(tf1.constant(1))


def page(task, path, value=None):
    request = urllib.request.Request(f'http://127.0.0.1:{task.metrics_port}{path}')
    if value:
        request.add_header('Authorization', value)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get('WWW-Authenticate')


def test_pages(task):
    status, text = page(task, '/metrics', f'Bearer {SECRET}')
    assert status == 200 and 'weir_build_info' in text and SECRET not in text
    for value in (None, SECRET, f'Bearer {SECRET}!', 'Bearer'):
        assert page(task, '/metrics', value) == (401, 'Bearer')
        assert page(task, '/', value)[0] == 401
        assert page(task, '/healthz', value) == (200, 'ok\n')


def test_shutting_down(files):
    task = clusters.Task('--port=0', f'--token-file={files}/right')
    code, text = weir('server', f'--shut-down={task.address}')
    assert code == 1 and 'UNAUTHENTICATED' in text and task.is_alive()
    assert weir('server', f'--shut-down={task.address}', f'--token-file={files}/right')[0] == 0
    assert task.process.wait(30) == 0


def test_cluster(files):
    """Tasks send it to one another; one that has another is not served."""
    ports = clusters.free_ports(2)
    spec = f'--cluster=ps|127.0.0.1:{ports[0]},worker|127.0.0.1:{ports[1]}'
    ps = clusters.Task(spec, '--job=ps', f'--token-file={files}/right')
    worker = clusters.Task(spec, '--job=worker', f'--token-file={files}/right')
    for task in (ps, worker):
        assert run(files, task, 'right', 'cluster.pb') == (0, 'z:0 = 7\n')
    worker.stop()
    worker = clusters.Task(spec, '--job=worker', f'--token-file={files}/wrong')
    code, text = run(files, worker, 'wrong', 'cluster.pb')
    assert code == 1 and 'UNAUTHENTICATED' in text, text
    for task in (ps, worker):
        assert task.is_alive()
        task.stop()


def test_change_of_secret(tmp_path, files):
    """In a cluster that goes on: each task's file has both for a while, and no call fails."""
    old, new = SECRET, SECRET[::-1]
    own = {name: tmp_path / name for name in ('ps', 'worker', 'client')}

    def write(name, *secrets):
        (tmp_path / 'next').write_text('\n'.join(secrets))
        (tmp_path / 'next').chmod(0o600)
        (tmp_path / 'next').rename(own[name])

    def runs(task, name='client'):
        return run(tmp_path, task, name, files / 'cluster.pb')

    for name in own:
        write(name, old)
    ports = clusters.free_ports(2)
    spec = f'--cluster=ps|127.0.0.1:{ports[0]},worker|127.0.0.1:{ports[1]}'
    tasks = [clusters.Task(spec, f'--job={job}', f'--token-file={own[job]}') for job in ('ps', 'worker')]
    assert [runs(task) for task in tasks] == [(0, 'z:0 = 7\n')] * 2
    for secrets in ((old, new), (new, old), (new,)):
        for name in own:  # one after the other, as somebody goes from machine to machine
            write(name, *secrets)
            time.sleep(1.1)
            assert [runs(task) for task in tasks] == [(0, 'z:0 = 7\n')] * 2
    write('client', old)
    for task in tasks:
        assert 'another token' in runs(task)[1]
        assert task.is_alive()
        task.stop()


def test_bad_files(files, task):
    code, text = weir('server', '--port=0', f'--token-file={files}/none')
    assert code == 2 and f'{files}/none' in text, text
    code, text = weir('server', '--port=0', f'--token-file={files}/short')
    assert code == 2 and 'can be guessed' in text, text
    code, text = run(files, task, 'none')
    assert code == 1 and 'INVALID_ARGUMENT' in text and f'{files}/none' in text, text


@pytest.mark.parametrize('token, bind, warnings', [('right', '127.0.0.1', ()), ('open', '127.0.0.1', ('can be read by every user',)),
                                                   ('right', '0.0.0.0', ('in plain text',))])
def test_warnings(files, token, bind, warnings):
    task = clusters.Task('--port=0', f'--bind={bind}', f'--token-file={files}/{token}')
    assert run(files, task, 'right') == (0, 'z:0 = 7\n')
    task.stop()
    text = task.errors()
    lines = [line for line in text.splitlines() if 'token' in line]
    assert len(lines) == len(warnings) and all(w in line for w, line in zip(warnings, lines)), text
    assert SECRET not in text
