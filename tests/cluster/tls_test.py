"""TLS: servers with certificates, the native client and servers among themselves."""
import contextlib
import http.client
import socket
import ssl
import subprocess

import pytest

import clusters

tf1 = clusters.tf1


def openssl(folder, *args):
    subprocess.run(['openssl', *args], cwd=folder, check=True, capture_output=True, timeout=60)


def make_authority(folder, name):
    openssl(folder, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
            '-subj', f'/CN={name}', '-keyout', f'{name}.key', '-out', f'{name}.pem')


def make_certificate(folder, name, authority, host):
    openssl(folder, 'req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', f'/CN={name}',
            '-keyout', f'{name}.key', '-out', f'{name}.csr')
    (folder / f'{name}.ext').write_text(f'subjectAltName={host}\n')
    openssl(folder, 'x509', '-req', '-in', f'{name}.csr', '-CA', f'{authority}.pem', '-CAkey', f'{authority}.key',
            '-CAcreateserial', '-days', '2', '-extfile', f'{name}.ext', '-out', f'{name}.pem')


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Two authorities; a server, a client, and a server under another name, of the first; a stranger of the second."""
    folder = tmp_path_factory.mktemp('tls')
    make_authority(folder, 'ours')
    make_authority(folder, 'theirs')
    make_certificate(folder, 'server', 'ours', 'IP:127.0.0.1,DNS:localhost')
    make_certificate(folder, 'client', 'ours', 'DNS:client.example')
    make_certificate(folder, 'elsewhere', 'ours', 'DNS:elsewhere.example')
    make_certificate(folder, 'stranger', 'theirs', 'IP:127.0.0.1')
    with tf1.Graph().as_default() as graph:
        x = tf1.placeholder(tf1.float32, [], name='x')
        with tf1.device('/job:ps/task:0'):
            y = tf1.multiply(x, 2.0, name='y')
        with tf1.device('/job:worker/task:0'):
            tf1.add(y, 1.0, name='z')
        tf1.negative(tf1.constant(2.0), name='constant')
    (folder / 'cluster.pb').write_bytes(graph.as_graph_def().SerializeToString())
    for node in (definition := graph.as_graph_def()).node:
        node.device = ''
    (folder / 'plain.pb').write_bytes(definition.SerializeToString())
    return folder


def server_flags(files, name='server', is_mutual=False):
    flags = [f'--tls-cert={files}/{name}.pem', f'--tls-key={files}/{name}.key', f'--tls-ca={files}/ours.pem']
    return flags + ['--tls-mutual'] if is_mutual else flags


def run(files, target, *flags, graph='plain.pb'):
    """`weir run` as a client: its exit code and what it printed."""
    command = [clusters.WEIR, 'run', files / graph, '--feed=x=3', '--fetch=z:0', f'--target={target}', *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def client_flags(files, name=None, authority='ours'):
    flags = [f'--tls-ca={files}/{authority}.pem']
    return flags + ([f'--tls-cert={files}/{name}.pem', f'--tls-key={files}/{name}.key'] if name else [])


@pytest.fixture(scope='module')
def tls_server(files):
    task = clusters.Task('--port=0', *server_flags(files))
    yield task
    assert task.is_alive()
    task.stop()


@pytest.fixture(scope='module')
def mutual_server(files):
    task = clusters.Task('--port=0', *server_flags(files, is_mutual=True))
    yield task
    assert task.is_alive()
    task.stop()


def secure(task):
    return f'grpc+tls://127.0.0.1:{task.port}'


def test_right_authority(files, tls_server):
    assert run(files, secure(tls_server), *client_flags(files)) == (0, 'z:0 = 7\n')
    assert run(files, f'grpc+tls://localhost:{tls_server.port}', *client_flags(files)) == (0, 'z:0 = 7\n')


def test_wrong_authority(files, tls_server):
    code, text = run(files, secure(tls_server), *client_flags(files, authority='theirs'))
    assert code == 1 and 'UNAVAILABLE' in text and 'certificate is not trusted' in text, text


def test_certificate_of_another_host(files):
    task = clusters.Task('--port=0', *server_flags(files, 'elsewhere'))
    code, text = run(files, secure(task), *client_flags(files))
    assert code == 1 and 'UNAVAILABLE' in text and 'certificate is not trusted' in text, text
    task.stop()


def test_plain_client_of_tls_server(files, tls_server):
    code, text = run(files, f'grpc://127.0.0.1:{tls_server.port}')
    assert code == 1 and 'UNAVAILABLE' in text, text


def test_tls_client_of_plain_server(files):
    task = clusters.Task('--port=0')
    code, text = run(files, secure(task), *client_flags(files))
    assert code == 1 and 'UNAVAILABLE' in text and 'TLS' in text, text
    assert task.is_alive()
    task.stop()


def test_mutual_with_certificate(files, mutual_server):
    assert run(files, secure(mutual_server), *client_flags(files, 'client')) == (0, 'z:0 = 7\n')


def test_mutual_without_certificate(files, mutual_server):
    code, text = run(files, secure(mutual_server), *client_flags(files))
    assert code == 1 and 'UNAVAILABLE' in text and 'certificate required' in text, text


def test_mutual_with_a_strangers_certificate(files, mutual_server):
    code, text = run(files, secure(mutual_server), *client_flags(files, 'stranger'))
    assert code == 1 and 'UNAVAILABLE' in text, text
    assert run(files, secure(mutual_server), *client_flags(files, 'client')) == (0, 'z:0 = 7\n')


def test_files_without_tls(files, tls_server):
    code, text = run(files, f'grpc://127.0.0.1:{tls_server.port}', *client_flags(files))
    assert code == 1 and 'INVALID_ARGUMENT' in text and "is not 'grpc+tls://'" in text, text


def test_unreadable_files(files, tls_server):
    code, text = run(files, secure(tls_server), '--tls-ca=/no/such.pem')
    assert code == 1 and 'INVALID_ARGUMENT' in text and '/no/such.pem' in text, text
    code, text = run(files, secure(tls_server), *client_flags(files), f'--tls-key={files}/client.key')
    assert code == 1 and 'without tls_cert' in text, text
    code, text = run(files, secure(tls_server), *client_flags(files), f'--tls-cert={files}/client.pem',
                     f'--tls-key={files}/stranger.key')
    assert code == 1 and 'INVALID_ARGUMENT' in text and 'stranger.key' in text, text


@pytest.mark.parametrize('is_mutual', [False, True])
def test_cluster(files, is_mutual):
    """Two tasks: a step crosses between them, and each is the other's TLS client."""
    ports = clusters.free_ports(2)
    spec = f'--cluster=ps|127.0.0.1:{ports[0]},worker|127.0.0.1:{ports[1]}'
    tasks = [clusters.Task(spec, f'--job={job}', '--task=0', *server_flags(files, is_mutual=is_mutual))
             for job in ('ps', 'worker')]
    for task in tasks:
        assert run(files, secure(task), *client_flags(files, 'client'), graph='cluster.pb') == (0, 'z:0 = 7\n')
    for task in tasks:
        assert task.is_alive()
        task.stop()


def test_bench(files, tls_server):
    command = [clusters.WEIR, 'bench', files / 'plain.pb', '--init=', '--run=', '--fetch=constant:0', '--steps=5',
               f'--target={secure(tls_server)}', *client_flags(files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# ---- the pages for monitoring ----

def trust(files, authority='ours', name=None, protocols=()):
    context = ssl.create_default_context(cafile=files / f'{authority}.pem')
    if name:
        context.load_cert_chain(files / f'{name}.pem', files / f'{name}.key')
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def page(task, context, path='/healthz'):
    connection = http.client.HTTPSConnection('127.0.0.1', task.metrics_port, timeout=30, context=context)
    try:
        connection.request('GET', path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_pages(files, tls_server):
    for protocols in ((), ('http/1.1',), ('h2', 'http/1.1')):
        assert page(tls_server, trust(files, protocols=protocols)) == (200, 'ok\n')
    status, text = page(tls_server, trust(files), '/metrics')
    assert status == 200 and 'weir_build_info' in text and text.endswith('\n')
    assert page(tls_server, trust(files), '/nothing')[0] == 404


def test_pages_of_strangers(files, tls_server):
    with pytest.raises(ssl.SSLCertVerificationError):
        page(tls_server, trust(files, 'theirs'))
    with pytest.raises(ssl.SSLError):  # another protocol than the pages'
        page(tls_server, trust(files, protocols=('h2',)))
    with socket.create_connection(('127.0.0.1', tls_server.metrics_port), 30) as plain:
        plain.sendall(b'GET /healthz HTTP/1.1\r\n\r\n')
        with contextlib.suppress(ConnectionResetError):
            assert b'ok' not in plain.recv(1000)
    assert page(tls_server, trust(files)) == (200, 'ok\n')


def test_pages_mutual(files, mutual_server):
    assert page(mutual_server, trust(files, name='client')) == (200, 'ok\n')
    for name in (None, 'stranger'):
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            page(mutual_server, trust(files, name=name))
    assert page(mutual_server, trust(files, name='client'))[0] == 200


def test_pages_beside_slow_readers(files, tls_server):
    """Clients that stop in the midst of the handshake, of a request or of an answer do not keep others out."""
    with contextlib.ExitStack() as stack:
        for words in (b'', b'\x16\x03\x01', b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc'):
            for _ in range(4):
                stack.enter_context(socket.create_connection(('127.0.0.1', tls_server.metrics_port), 30)).sendall(words)
        for words in (b'', b'GET /met', b'GET /metrics HTTP/1.1\r\n\r\n'):
            plain = stack.enter_context(socket.create_connection(('127.0.0.1', tls_server.metrics_port), 30))
            stack.enter_context(trust(files).wrap_socket(plain, server_hostname='127.0.0.1')).sendall(words)
        assert page(tls_server, trust(files), '/metrics')[0] == 200
    for _ in range(50):  # who hangs up without waiting for the answer
        plain = socket.create_connection(('127.0.0.1', tls_server.metrics_port), 30)
        with trust(files).wrap_socket(plain, server_hostname='127.0.0.1') as connection:
            connection.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
    assert page(tls_server, trust(files)) == (200, 'ok\n')
