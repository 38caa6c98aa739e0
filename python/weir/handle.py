"""Handles of C that several threads use: closing waits for calls under way, and what comes later is an exception, never a crash."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, TypeVar

from ._lib import errors


class Handle:
    """A pointer that |destroy| ends. |cancel|, if any, makes calls under way return."""

    def __init__(self, value: int, what: str, destroy: Callable[[int], Any], cancel: Callable[[int], Any] | None = None):
        self._value, self._what, self._destroy, self._cancel = value, what, destroy, cancel
        self._uses, self._changed = 0, threading.Condition(threading.Lock())

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        with self._changed:
            if not self._value:
                raise errors.FailedPreconditionError(f'the {self._what} is closed')
            self._uses += 1
            value = self._value
        try:
            yield value
        finally:
            with self._changed:
                self._uses -= 1
                if not self._uses:
                    self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        return not self._value

    def close(self) -> None:
        with self._changed:
            value, self._value = self._value, 0
            if not value:
                return
            while self._uses:
                if self._cancel:
                    self._cancel(value)
                self._changed.wait(0.1)
        self._destroy(value)


Owned = TypeVar('Owned', bound='Owner')


class Owner:
    """What has a handle, and closes it at the end of a `with`, or when nobody holds it any more."""
    handle: Handle

    def __enter__(self: Owned) -> Owned:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, 'handle', None):
            self.close()

    def close(self) -> None:
        self.handle.close()
