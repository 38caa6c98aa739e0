"""Ctrl-C while C code runs: Python's handlers would wait for its end, so a thread is told of the signal and cancels the step."""
from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from typing import Callable, Iterator

_lock = threading.Lock()
_cancel: Callable[[], None] | None = None  # of what the main thread runs
_forward = -1  # whose wake-up descriptor ours stands in for
_reader: socket.socket | None = None
_writer: socket.socket | None = None
_pid = 0


def _watch(reader: socket.socket) -> None:
    while data := reader.recv(64):
        with _lock:
            if signal.SIGINT in data and _cancel:
                _cancel()
            if _forward >= 0:
                with contextlib.suppress(OSError):
                    os.write(_forward, data)


def _start() -> None:
    """The thread and its socket; anew in a child process."""
    global _reader, _writer, _pid
    if _pid == os.getpid():
        return
    _reader, _writer = socket.socketpair()
    _writer.setblocking(False)
    _pid = os.getpid()
    threading.Thread(target=_watch, args=(_reader,), name='weir-interrupt', daemon=True).start()


@contextlib.contextmanager
def cancels(cancel: Callable[[], None]) -> Iterator[None]:
    """|cancel| is called when SIGINT comes meanwhile. Of the main thread only, where Python's handlers run."""
    global _cancel, _forward
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    _start()
    assert _writer is not None
    before = signal.set_wakeup_fd(_writer.fileno(), warn_on_full_buffer=False)
    with _lock:
        outer, _cancel, _forward = _cancel, cancel, before if before != _writer.fileno() else _forward
    try:
        yield
    finally:
        with _lock:
            _cancel = outer
        signal.set_wakeup_fd(before)
