"""Errors: an exception a status code. Each is also the built-in exception that a Python program would expect."""


class Error(Exception):
    """What a call of Weir ended with: |code| ("INVALID_ARGUMENT"), |message|, and |node|, the node's name where one failed."""
    code = 'UNKNOWN'

    def __init__(self, message: str, node: str | None = None):
        super().__init__(message)
        self.message = message
        self.node = node

    def __str__(self) -> str:  # KeyError's would be quoted
        return self.message


class CancelledError(Error):
    code = 'CANCELLED'


class UnknownError(Error):
    code = 'UNKNOWN'


class InvalidArgumentError(Error, ValueError):
    code = 'INVALID_ARGUMENT'


class DeadlineExceededError(Error, TimeoutError):
    code = 'DEADLINE_EXCEEDED'


class NotFoundError(Error, LookupError):
    code = 'NOT_FOUND'


class AlreadyExistsError(Error):
    code = 'ALREADY_EXISTS'


class PermissionDeniedError(Error, PermissionError):
    code = 'PERMISSION_DENIED'


class ResourceExhaustedError(Error, MemoryError):
    code = 'RESOURCE_EXHAUSTED'


class FailedPreconditionError(Error, RuntimeError):
    code = 'FAILED_PRECONDITION'


class AbortedError(Error):
    code = 'ABORTED'


class OutOfRangeError(Error, IndexError):
    code = 'OUT_OF_RANGE'


class UnimplementedError(Error, NotImplementedError):
    code = 'UNIMPLEMENTED'


class InternalError(Error):
    code = 'INTERNAL'


class UnavailableError(Error, ConnectionError):
    code = 'UNAVAILABLE'


class DataLossError(Error, OSError):
    code = 'DATA_LOSS'


class UnauthenticatedError(Error, PermissionError):
    code = 'UNAUTHENTICATED'


BY_CODE = (Error, CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError, AlreadyExistsError,
           PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError, AbortedError, OutOfRangeError, UnimplementedError,
           InternalError, UnavailableError, DataLossError, UnauthenticatedError)
__all__ = [error.__name__ for error in BY_CODE]
