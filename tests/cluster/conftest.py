"""Fixtures: servers of Weir and of TensorFlow that live as long as the test run."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # a package, so that its names do not meet those of tests/
import clusters  # noqa: E402
from server_fixtures import cluster, four_servers, one_server, server  # noqa: E402,F401


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


@pytest.fixture(params=['one', 'four'])
def any_server(request):
    """The test runs twice: on a server alone, and on one that is a task among four."""
    servers = request.getfixturevalue(f'{request.param}_server' + ('s' if request.param == 'four' else ''))
    yield servers
    assert servers.is_alive()
    servers.wait_until_idle()
