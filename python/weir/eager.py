"""Define by run: ops that execute as they are added, and gradients of what has run: weir/eager.h."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import Any, Iterator

from . import library
from ._lib import C, check, errors
from .graph import Edge, Graph
from .tensor import Tensor


class Tape(Graph):
    """What has run since it was made, for gradients; edges have values as long as it lives. `with` makes it the place of new ops."""

    def __init__(self, context: Eager):  # pylint: disable=super-init-not-called
        self.context = context
        self.root: int = C.weir_eager_scope(context.handle)
        if not self.root:
            raise errors.ResourceExhaustedError('no memory for a tape')
        self.handle: int = C.weir_graph_retain(C.weir_scope_graph(self.root))
        self.lock = threading.RLock()
        self._initializer = (0, None)

    @contextlib.contextmanager
    def building(self) -> Iterator[int]:
        with self.lock:
            yield self.scope_handle()
            check(C.weir_eager_recover(self.root))

    def value(self, edge: Edge) -> Any:
        out = ctypes.c_void_p()
        with self.lock:
            check(C.weir_eager_value(self.root, edge.c, ctypes.byref(out)))
        return Tensor.adopt(out.value or 0).numpy()


class Eager:
    """Variables, known by their names, and tapes on which ops run at once:

        eager = w.Eager()
        for images, labels in data:
            with eager.tape():
                w.sgd(0.1).minimize(loss(images, labels))
    """

    def __init__(self, **options: Any):
        """|options|: fields of weir_eager_options_t: threads, devices …"""
        made = library.options('weir_eager_options_t', None, options)  # whose strings C borrows
        out = ctypes.c_void_p()
        check(C.weir_eager_create(ctypes.byref(made), ctypes.byref(out)))
        self.handle: int = out.value  # type: ignore[assignment]

    def __del__(self, destroy: Any = C.weir_eager_destroy) -> None:
        if getattr(self, 'handle', 0):
            destroy(self.handle)

    def tape(self) -> Tape:
        return Tape(self)

    def reset(self) -> None:
        """Drops all variables."""
        C.weir_eager_reset(self.handle)
