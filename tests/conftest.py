"""What the tests that drive Weir from outside share: where the build is, and how to call the command."""
import faulthandler
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev'))
os.environ['PATH'] = os.path.dirname(sys.executable) + os.pathsep + os.environ['PATH']
LIMIT = int(os.environ.get('WEIR_TEST_LIMIT', 120))  # seconds a test may take, many times what most do
LONGER = dict.fromkeys(('examples_test', 'losses_test', 'models_test', 'oracle_test', 'python_test', 'replicas_test', 'slurm_test', 'training_test'), 5)
LONGER['static_test'] = 15  # so many times that: it builds twice, beside other tests
stacks = 2  # where they are written


def pytest_collection_modifyitems(items):
    """What takes longest first, so that at the end no process waits for another."""
    items.sort(key=lambda item: item.path.stem not in LONGER)


def pytest_configure():
    global stacks  # pylint: disable=global-statement
    stacks = os.dup(2)  # as it is now: later it may be a file in which a test's output is kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails with the stacks of all threads; one that hangs outside of Python ends the process with them."""
    seconds = LONGER.get(item.path.stem, 1) * LIMIT

    def stop(*_):
        faulthandler.dump_traceback(stacks)
        pytest.fail(f'{item.nodeid} does not end: {seconds} s have passed')

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(seconds + 10, exit=True, file=stacks)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope='session')
def weir():
    """Runs the weir command; raises when it fails unless check=False."""
    def run(*args, check=True, **kwargs):
        return subprocess.run([BUILD / 'cli' / 'weir', *map(str, args)], check=check, capture_output=True, text=True, **kwargs)
    return run
