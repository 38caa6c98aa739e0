"""What the tests that drive Weir from outside share: where the build is, and how to call the command."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev'))
os.environ['PATH'] = os.path.dirname(sys.executable) + os.pathsep + os.environ['PATH']


@pytest.fixture(scope='session')
def weir():
    """Runs the weir command; raises when it fails unless check=False."""
    def run(*args, check=True, **kwargs):
        return subprocess.run([BUILD / 'cli' / 'weir', *map(str, args)], check=check, capture_output=True, text=True, **kwargs)
    return run
