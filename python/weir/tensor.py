"""Tensors: arrays of NumPy, and of whoever speaks DLPack, as Weir's tensors and back, without a copy where that is safe."""
from __future__ import annotations

import ctypes
import itertools
import threading
from typing import TYPE_CHECKING, Any

from . import _c, dtypes
from ._lib import C, check, errors
from .dtypes import DTypeLike, as_dtype

if TYPE_CHECKING:
    import numpy as np

COPY_BELOW = 4096  # bytes: copying is faster than keeping an array for so few

# ---- memory of arrays that tensors read ----


class Kept:
    """An array whose memory a tensor reads. |protect| makes it read-only for as long as that is so."""

    def __init__(self, array: np.ndarray):
        self.array, self.is_protected = array, False

    def protect(self) -> None:
        if self.array.flags.writeable:
            self.array.flags.writeable = False
            self.is_protected = True

    def free(self) -> None:
        if self.is_protected:
            self.array.flags.writeable = True


_kept: dict[int, Kept] = {}
_kept_lock = threading.RLock()  # a garbage collection may free a tensor while it is held
_numbers = itertools.count(1)


@_c.weir_deallocator_fn_t
def _drop(_data: int, _size: int, number: int) -> None:
    with _kept_lock:
        kept = _kept.pop(number, None)
        if kept:
            kept.free()


def protect(number: int) -> None:
    """Called when a step has ended: if a variable or queue kept the array, it must not be changed under them."""
    with _kept_lock:
        if number in _kept:
            _kept[number].protect()


# ---- handles ----

def _dims(shape: Any) -> Any:
    return (ctypes.c_int64 * max(1, len(shape)))(*shape)


def _from_strings(array: np.ndarray) -> int:
    items = [item if isinstance(item, bytes) else item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel()]
    out = ctypes.c_void_p()
    check(C.weir_tensor_create_strings(array.ndim, _dims(array.shape), (ctypes.c_char_p * max(1, len(items)))(*items),
                                       (ctypes.c_size_t * max(1, len(items)))(*map(len, items)), ctypes.byref(out)))
    return out.value  # type: ignore[return-value]


def from_array(array: np.ndarray, dtype: dtypes.DType | None = None) -> tuple[int, int]:
    """A tensor's handle, and a number for |protect|: 0 where the elements were copied."""
    if array.dtype.kind in 'OSU':
        return _from_strings(array), 0
    dtype = dtype or as_dtype(array.dtype)
    if not array.flags.c_contiguous or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder('='), order='C')
    out, dims, address = ctypes.c_void_p(), _dims(array.shape), array.__array_interface__['data'][0]
    if array.nbytes < COPY_BELOW:
        check(C.weir_tensor_create_from(dtype.number, array.ndim, dims, address, ctypes.byref(out)))
        return out.value, 0  # type: ignore[return-value]
    number = next(_numbers)
    with _kept_lock:
        _kept[number] = Kept(array)
    check(C.weir_tensor_wrap(dtype.number, array.ndim, dims, address, array.nbytes, _drop, number, ctypes.byref(out)))
    return out.value, number  # type: ignore[return-value]


class _Memory:
    """What an array on a tensor's memory has as its base."""

    def __init__(self, tensor: Tensor, typestr: str):
        self.tensor = tensor
        self.__array_interface__ = {'data': (C.weir_tensor_data(tensor.handle), not C.weir_tensor_is_writable(tensor.handle)),
                                    'shape': tensor.shape, 'typestr': typestr, 'version': 3}


class Tensor:
    """Elements of one type and a shape, in Weir's memory. NumPy takes it as an array, and DLPack's consumers as theirs."""
    __slots__ = ('handle', '__weakref__')

    def __init__(self, value: Any, dtype: DTypeLike = None):
        """|value|: an array, numbers, strings, or nested lists of them. The memory of a large array is used as it is."""
        self.handle = 0
        self.handle, _ = from_array(*as_array(value, dtype))

    @classmethod
    def adopt(cls, handle: int) -> Tensor:
        """The tensor of |handle|, which it releases."""
        self = cls.__new__(cls)
        self.handle = handle
        return self

    def __del__(self, release: Any = C.weir_tensor_release) -> None:
        if getattr(self, 'handle', 0):
            release(self.handle)

    @property
    def dtype(self) -> dtypes.DType:
        return dtypes.BY_NUMBER[C.weir_tensor_dtype(self.handle)]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(C.weir_tensor_dims(self.handle)[:C.weir_tensor_rank(self.handle)])

    def __repr__(self) -> str:
        return f'weir.Tensor({self.numpy()!r})' if C.weir_tensor_count(self.handle) < 1000 else f'weir.Tensor({self.shape}, {self.dtype})'

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError('a scalar has no length')
        return self.shape[0]

    def numpy(self) -> np.ndarray:
        """An array on this memory. It is read-only where somebody else, such as a variable, has it, too."""
        import numpy
        dtype = self.dtype
        if dtype is dtypes.string:
            return self._strings()
        if not dtype.is_plain:
            raise errors.InvalidArgumentError(f'a {dtype.name} is no array')
        element = dtype.numpy
        if C.weir_tensor_count(self.handle) == 0:
            return numpy.empty(self.shape, element)
        plain = element if element.kind in 'biufc' else numpy.dtype(f'u{element.itemsize}')
        return numpy.asarray(_Memory(self, plain.str)).view(element)

    def _strings(self) -> np.ndarray:
        import numpy
        out, size = numpy.empty(C.weir_tensor_count(self.handle), object), ctypes.c_size_t()
        read = C.weir_tensor_string
        read.restype = ctypes.c_void_p  # there may be NULs within
        for i in range(out.size):
            address = read(self.handle, i, ctypes.byref(size))
            out[i] = ctypes.string_at(address, size.value) if size.value else b''
        return out.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        import numpy
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and dtype != array.dtype else numpy.array(array) if copy else array

    # ---- DLPack ----

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the host

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        if dl_device not in (None, (1, 0)):
            raise BufferError('tensors are in the memory of the host')
        tensor = Tensor(self.numpy().copy()) if copy else self
        is_new, out = bool(max_version and max_version[0] >= 1), ctypes.c_void_p()
        create = C.weir_tensor_to_dlpack if is_new else C.weir_tensor_to_dlpack_old
        try:
            check(create(tensor.handle, ctypes.byref(out)))
        except errors.Error as error:
            raise BufferError(error.message) from None
        return _capsule_new(out.value, _VERSIONED if is_new else _OLD, _destroy_versioned if is_new else _destroy_old)


_VERSIONED, _OLD = b'dltensor_versioned', b'dltensor'
_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.restype, _capsule_is.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_capsule_get = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_get.restype, _capsule_get.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
_capsule_rename = ctypes.pythonapi.PyCapsule_SetName
_capsule_rename.restype, _capsule_rename.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]


def _take(capsule: int, name: bytes) -> int:
    out = ctypes.c_void_p()
    function = C.weir_tensor_from_dlpack if name == _VERSIONED else C.weir_tensor_from_dlpack_old
    check(function(_capsule_get(capsule, name), ctypes.byref(out)))
    return out.value  # type: ignore[return-value]


def _destroyer(name: bytes) -> Any:
    @ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    def destroy(capsule: int) -> None:  # a capsule that nobody took still owns its tensor
        if _capsule_is(capsule, name):
            C.weir_tensor_release(_take(capsule, name))
    return destroy


_destroy_versioned, _destroy_old = _destroyer(_VERSIONED), _destroyer(_OLD)
_USED = {_VERSIONED: b'used_dltensor_versioned', _OLD: b'used_dltensor'}


def from_dlpack(value: Any) -> Tensor:
    """A tensor on the memory of |value|: an array or tensor of a library that speaks DLPack, or its capsule."""
    capsule = value
    if hasattr(value, '__dlpack__'):
        try:
            capsule = value.__dlpack__(max_version=(1, 1))
        except TypeError:  # written before version 1.0
            capsule = value.__dlpack__()
    for name, used in _USED.items():
        if _capsule_is(id(capsule), name):
            try:
                return Tensor.adopt(_take(id(capsule), name))
            finally:
                _capsule_rename(id(capsule), used)
    raise TypeError(f'{type(value).__name__} is neither an array with __dlpack__ nor its capsule')


# ---- conversions ----

def as_array(value: Any, dtype: DTypeLike = None) -> tuple[np.ndarray, dtypes.DType | None]:
    """|value| as an array, and the type of its tensor. Python's numbers are float32 and int32, as in TensorFlow."""
    import numpy
    wanted = as_dtype(dtype) if dtype is not None else None
    if wanted is not None and wanted.is_plain:
        array = numpy.asarray(value)
        if array.dtype != wanted.numpy:
            if array.dtype.kind in 'OSU':
                raise errors.InvalidArgumentError(f'{_short(value)} is no {wanted.name}')
            array = array.astype(wanted.numpy)
        return array, wanted
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return numpy.asarray(value), wanted
    array = numpy.asarray(value, object) if isinstance(value, (str, bytes)) else numpy.asarray(value)
    if array.dtype == numpy.float64 and not hasattr(value, 'dtype'):
        array = array.astype(numpy.float32)
    elif array.dtype == numpy.int64 and not hasattr(value, 'dtype') and (not array.size or abs(array).max() < 2**31):
        array = array.astype(numpy.int32)
    if array.dtype.kind in 'SU':
        array = numpy.asarray(value, object)
    return array, wanted


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + '...'


def feed_handle(value: Any, dtype: dtypes.DType | None) -> tuple[int, int, Any]:
    """A handle that the caller releases if |number| of (handle, number, owner) is not negative; |owner| is to be kept meanwhile."""
    if isinstance(value, Tensor):
        return value.handle, -1, value
    import numpy
    if not isinstance(value, (numpy.ndarray, list, tuple, int, float)) and hasattr(value, '__dlpack__') and not hasattr(value, '__array_interface__'):
        tensor = from_dlpack(value)
        return tensor.handle, -1, tensor
    array, wanted = as_array(value, None if isinstance(value, numpy.ndarray) and value.dtype.kind in 'OSU' else dtype)
    handle, number = from_array(array, wanted)
    return handle, number, None


def result(handle: int) -> Any:
    """What a fetch gives: an array of the caller's own, or for a scalar NumPy's scalar. Takes |handle|."""
    tensor = Tensor.adopt(handle)
    dtype = tensor.dtype
    if not dtype.is_plain and dtype is not dtypes.string:
        return tensor
    array = tensor.numpy()
    if array.ndim == 0:
        return array[()]
    return array.copy() if array.nbytes < COPY_BELOW or not array.flags.writeable else array
