"""Weir's servers, alone and as tasks, for the conftest.py that imports them: they live as long as the test run; after every test they
must be alive and hold nothing of it."""
import pytest

import clusters


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
