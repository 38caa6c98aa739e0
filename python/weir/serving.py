"""Serving models: this process answers TensorFlow Serving's REST and gRPC APIs."""
from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Mapping, Sequence, Union

from . import library
from ._lib import C, check, text
from .handle import Handle, Owner

open_serves: weakref.WeakSet[Serve] = weakref.WeakSet()
Models = Union[str, 'os.PathLike[str]', Mapping[str, Any], Sequence[Any]]


def _strings(values: Sequence[Any]) -> Any:
    return (ctypes.c_char_p * max(1, len(values)))(*[text(value) for value in values])


class Serve(Owner):
    """Answers requests from when it is made until it is closed. Made by serve().

    Closing takes no further requests, and lets running ones end for a second.
    """

    def __init__(self, models: Models, labels: Sequence[str] = (), **options: Any):
        if isinstance(models, Mapping):
            models = [f'{name}={os.fspath(folder)}' for name, folder in models.items()]
        elif isinstance(models, (str, os.PathLike)):
            models = [models]
        names, tags = _strings(models), _strings(labels)  # which C borrows until it returns
        made = library.options('weir_serve_options_t', None, options)
        made.models, made.model_count = ctypes.cast(names, ctypes.POINTER(ctypes.c_char_p)), len(models)
        made.labels, made.label_count = ctypes.cast(tags, ctypes.POINTER(ctypes.c_char_p)), len(labels)
        out = ctypes.c_void_p()
        check(C.weir_serve_create(ctypes.byref(made), ctypes.byref(out)))
        self.handle = Handle(out.value or 0, 'serving', lambda serving: C.weir_serve_destroy(serving, 1000))
        open_serves.add(self)

    @property
    def port(self) -> int:
        """Of gRPC."""
        with self.handle.use() as serving:
            return C.weir_serve_port(serving)

    @property
    def rest_port(self) -> int:
        with self.handle.use() as serving:
            return C.weir_serve_rest_port(serving)

    def wait(self, timeout: float | None = None) -> None:
        """Serves for |timeout| seconds, or until Ctrl-C, which is KeyboardInterrupt."""
        left = timeout if timeout is not None else float('inf')
        with self.handle.use() as serving:
            while left > 0 and not C.weir_serve_wait(serving, int(min(left, 0.1) * 1000)):
                left -= 0.1


def serve(models: Models, labels: Sequence[str] = (), **options: Any) -> Serve:
    """Serves a folder, several, or {name: folder}; a folder holds versions by number, or is a model itself.

    |labels|: "[MODEL/]LABEL=VERSION". |options|: fields of weir_serve_options_t: port and rest_port (-1: any that is free), bind, threads,
    max_batch, token_file, tls_cert …
    """
    return Serve(models, labels, **options)
