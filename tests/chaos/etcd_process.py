"""A real etcd of one member, which may be killed and started again; the fixture for those who import it."""
import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from ports import free_ports

PATIENCE = 60  # seconds until it serves


class Etcd:
    def __init__(self, directory):
        self.directory = directory
        self.port, self.peer_port = free_ports(2)
        self.address = f'127.0.0.1:{self.port}'
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """With what it had, if it was killed."""
        own, peers = f'http://{self.address}', f'http://127.0.0.1:{self.peer_port}'
        self.process = subprocess.Popen(
            ['etcd', f'--data-dir={self.directory}', f'--listen-client-urls={own}', f'--advertise-client-urls={own}',
             f'--listen-peer-urls={peers}', f'--initial-advertise-peer-urls={peers}', f'--initial-cluster=default={peers}'],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not self._is_healthy():
            assert time.monotonic() < deadline and self.process.poll() is None, 'etcd does not serve'
            time.sleep(0.05)

    def _is_healthy(self):
        try:
            with urllib.request.urlopen(f'http://{self.address}/health', timeout=1) as page:
                return b'"true"' in page.read()
        except (urllib.error.URLError, OSError):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    # ---- keys, as people change them ----

    def _post(self, method, **fields):
        texts = {name: base64.b64encode(text.encode()).decode() for name, text in fields.items()}
        request = urllib.request.Request(f'http://{self.address}/v3/kv/{method}', json.dumps(texts).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as page:
            return json.load(page)

    def put(self, key, value):
        self._post('put', key=key, value=value)

    def delete(self, key):
        self._post('deleterange', key=key)

    def get(self, key):
        """None: there is no such key."""
        found = self._post('range', key=key).get('kvs')
        return base64.b64decode(found[0]['value']).decode() if found else None


@pytest.fixture
def etcd(tmp_path):
    if not shutil.which('etcd'):
        pytest.skip('needs etcd (Debian: etcd-server)')
    with Etcd(tmp_path / 'etcd') as server:
        yield server
