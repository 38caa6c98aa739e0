"""A relay: stands before a server, passes calls on to it, and keeps what was said for a test to look at."""
import atexit
import pathlib
import pickle
import subprocess
import sys
import types

from google.protobuf.unknown_fields import UnknownFieldSet

import clusters
import messages


class Relay:
    """Calls are noted when they end, in that order."""

    def __init__(self, address=None):
        script = pathlib.Path(__file__).with_name('relay_process.py')
        self.process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self.process.kill)
        self.address = f'127.0.0.1:{self._result()}'
        self.target = f'grpc://{self.address}'
        if address:
            self.connect(address)

    def connect(self, address):
        """Which server it stands before: it may have been started with the relay's address."""
        self.server = f'grpc://{address}'
        self._ask('connect', address)

    def _result(self):
        return pickle.load(self.process.stdout)

    def _ask(self, *command):
        pickle.dump(command, self.process.stdin)
        self.process.stdin.flush()
        return [types.SimpleNamespace(**call) for call in self._result()]

    def stop(self):
        self.process.kill()
        self.process.wait()
        atexit.unregister(self.process.kill)

    def take(self):
        """The calls since the last time, and forgets them."""
        return self._ask('take')

    def wait_until_quiet(self):
        """Waits for the end of all calls that have begun."""
        clusters.wait_until(lambda: not self._ask('running'), what=lambda: f'still there: {names(self._ask("running"))}')

    def of(self, method):
        return [call for call in self._ask('look') if call.method == method]

    def wait_for(self, method, count=1):
        """The calls of |method| once there are |count|: some are made after the answer that a client waits for."""
        clusters.wait_until(lambda: len(self.of(method)) >= count, what=lambda: f'{method}: {names(self._ask("look"))}')
        return self.of(method)

    def reply(self, **replies):
        """From now on these methods are answered here: (code, message, response, trailers)."""
        self._ask('reply', replies)


def request_of(call):
    return messages.CLASSES[call.method + 'Request'].FromString(call.request)


def response_of(call):
    return messages.CLASSES[call.method + 'Response'].FromString(call.response)


def names(calls):
    return [call.method for call in calls]


def set_fields(message):
    """The names of the fields that are set. None may be there that the message is not known to have."""
    assert not len(UnknownFieldSet(message)), message
    return {field.name for field, _ in message.ListFields()}
