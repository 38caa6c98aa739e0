"""What the tests of the package share: each has a graph of its own, and Ctrl-C, also where whoever started them ignores it."""
import faulthandler
import signal

import pytest

import weir as w


@pytest.fixture(autouse=True)
def graph():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.dump_traceback_later(300, exit=True)
    with w.Graph() as new:
        yield new
    faulthandler.cancel_dump_traceback_later()
    signal.signal(signal.SIGINT, before)
