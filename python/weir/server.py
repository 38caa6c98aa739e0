"""Servers: this process as one task of a cluster that speaks TensorFlow's gRPC protocol."""
from __future__ import annotations

import ctypes
import weakref
from typing import Any

from . import library
from ._lib import C, check
from .handle import Handle, Owner

open_servers: weakref.WeakSet[Server] = weakref.WeakSet()


class Server(Owner):
    """Serves sessions from when it is made until it is closed. Its address is a target: Session(target=server.target).

    Closing lets running calls end for a second, then cancels them.
    """

    def __init__(self, **options: Any):
        """|options|: fields of weir_server_options_t: cluster, job, task, bind, port, threads, tls_cert, token_file …"""
        self._options = library.options('weir_server_options_t', None, options)  # whose strings C borrows
        out = ctypes.c_void_p()
        check(C.weir_server_create(ctypes.byref(self._options), ctypes.byref(out)))
        self.handle = Handle(out.value or 0, 'server', lambda server: C.weir_server_destroy(server, 1000))
        open_servers.add(self)

    @property
    def port(self) -> int:
        with self.handle.use() as server:
            return C.weir_server_port(server)

    @property
    def target(self) -> str:
        with self.handle.use() as server:
            return 'grpc://' + C.weir_server_address(server).decode()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for a reason to end, for |timeout| seconds; whether there is one. Ctrl-C ends the wait."""
        left = timeout if timeout is not None else float('inf')
        with self.handle.use() as server:
            while left > 0:
                if C.weir_server_wait(server, int(min(left, 0.1) * 1000)):
                    return True
                left -= 0.1
        return False
