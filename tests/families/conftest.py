"""Fixtures: Weir's servers, alone and as tasks, and a check that a program gives on them what it gives in TensorFlow's own session."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'cluster')]
import clusters  # noqa: E402
import compare  # noqa: E402


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


@pytest.fixture(params=compare.FORMS)
def check(request):
    """check(program) runs it in every form."""
    servers = request.getfixturevalue('cluster' if request.param == 'tasks' else 'server')
    return lambda program, **tolerances: compare.check(servers, program, request.param, **tolerances)
