"""Fixtures: Weir's servers, alone and as tasks, and a check that a program gives on them what it gives in TensorFlow's own session."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'cluster')]
import compare  # noqa: E402
from server_fixtures import cluster, four_servers, one_server, server  # noqa: E402,F401


@pytest.fixture(params=compare.FORMS)
def check(request):
    """check(program) runs it in every form."""
    servers = request.getfixturevalue('cluster' if request.param == 'tasks' else 'server')
    return lambda program, **tolerances: compare.check(servers, program, request.param, **tolerances)
