"""libweir.so: where it is, its functions with their types on first use, and statuses as exceptions."""
from __future__ import annotations

import ctypes
import os
import pathlib
import re
from typing import Any

from . import _c, errors

NODE = re.compile(r"[Nn]ode '([^']+)'")


def find() -> str:
    """WEIR_LIBRARY, else the library in the wheel."""
    given = os.environ.get('WEIR_LIBRARY')
    return given or str(pathlib.Path(__file__).parent / 'lib' / 'libweir.so.0')


def _load_needed(folder: pathlib.Path) -> None:
    """What libweir.so needs: of the system, where it has it, else what is in the wheel. It is found by name once it is loaded."""
    for path in sorted(folder.glob('lib*.so.*'), key=lambda p: not p.name.startswith(('libz', 'libcrypto'))):
        if path.name.startswith('libweir'):
            continue
        try:
            ctypes.CDLL(path.name)
        except OSError:
            ctypes.CDLL(str(path))


class Library:
    """The functions of Weir's C API, C.weir_graph_create, and so on. A call lets other threads run."""

    def __init__(self) -> None:
        path = find()
        _load_needed(pathlib.Path(path).parent)
        try:
            self.dll = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(f'{error}. WEIR_LIBRARY may name a libweir.so') from error

    def __getattr__(self, name: str) -> Any:
        if name not in _c.FUNCTIONS:
            raise AttributeError(name)
        try:
            function = getattr(self.dll, name)
        except AttributeError:
            raise errors.UnimplementedError(f'{find()} has no {name}') from None
        function.restype, function.argtypes = eval(_c.FUNCTIONS[name], vars(_c))  # pylint: disable=eval-used
        setattr(self, name, function)
        return function


C = Library()
_c.C = C  # type: ignore[attr-defined]


def text(value: str | bytes | os.PathLike | None) -> bytes | None:
    """A string for C. One that holds a NUL would be cut short there."""
    if value is None:
        return None
    data = os.fsencode(value) if not isinstance(value, bytes) else value
    if b'\0' in data:
        raise errors.InvalidArgumentError(f'{value!r} holds a NUL')
    return data


def check(status: int | None) -> None:
    """Raises what |status| says, and frees it."""
    if not status:
        return
    code = C.weir_status_code(status)
    message = C.weir_status_message(status).decode(errors='replace')
    C.weir_status_destroy(status)
    raise make_error(code, message)


def make_error(code: int, message: str) -> errors.Error:
    node = NODE.search(message)
    return errors.BY_CODE[code if 0 < code < len(errors.BY_CODE) else 2](message, node[1] if node else None)


def make_status(error: BaseException) -> int:
    """A status that says what |error| does: what a callback returns to C."""
    code = errors.BY_CODE.index(type(error)) if type(error) in errors.BY_CODE[1:] else 1
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)(
        ctypes.cast(C.dll.weir_status_create, ctypes.c_void_p).value or 0)
    return create(code, b'python', 0, b'%s', f'{type(error).__name__}: {error}'.encode())


def take_text(pointer: ctypes.c_void_p, size: int | None = None) -> bytes:
    """The bytes of a buffer that C gave away, which is freed."""
    try:
        return ctypes.string_at(pointer.value, -1 if size is None else size) if pointer.value else b''
    finally:
        C.weir_buffer_free(ctypes.cast(pointer, ctypes.c_char_p))
