"""Fixtures: servers that live as long as the test run; after every test they must be alive and hold nothing of it."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # a package, so that its names do not meet those of tests/
import clusters  # noqa: E402


@pytest.fixture(scope='session')
def one_server():
    task = clusters.Task('--port=0')
    yield task
    task.stop()


@pytest.fixture(scope='session')
def four_servers():
    cluster = clusters.Cluster()
    yield cluster
    cluster.stop()


@pytest.fixture(scope='session')
def tensorflow_server():
    cluster = clusters.TensorFlowCluster({'localhost': 1})
    yield cluster
    cluster.stop()


@pytest.fixture(scope='session')
def tensorflow_servers():
    cluster = clusters.TensorFlowCluster()
    yield cluster
    cluster.stop()


@pytest.fixture
def server(one_server):
    yield one_server
    assert one_server.is_alive(), one_server.errors()
    one_server.wait_until_idle()


@pytest.fixture
def cluster(four_servers):
    yield four_servers
    assert four_servers.is_alive()
    four_servers.wait_until_idle()


@pytest.fixture(params=['one', 'four'])
def any_server(request):
    """The test runs twice: on a server alone, and on one that is a task among four."""
    servers = request.getfixturevalue(f'{request.param}_server' + ('s' if request.param == 'four' else ''))
    yield servers
    assert servers.is_alive()
    servers.wait_until_idle()
