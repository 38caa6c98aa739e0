"""Calls libweir through ctypes, with NumPy arrays for tensors. Needs neither TensorFlow nor a wheel of Weir's own."""
import ctypes

import ml_dtypes
import numpy as np

from conftest import BUILD

# By weir_dtype_t's numbers.
TYPES = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8, 8: np.complex64, 9: np.int64,
         10: np.bool_, 14: ml_dtypes.bfloat16, 17: np.uint16, 18: np.complex128, 19: np.float16, 22: np.uint32, 23: np.uint64,
         24: ml_dtypes.float8_e5m2, 25: ml_dtypes.float8_e4m3fn, 26: ml_dtypes.float8_e4m3fnuz, 28: ml_dtypes.float8_e5m2fnuz,
         29: ml_dtypes.int4, 30: ml_dtypes.uint4}
NUMBERS = {np.dtype(t): n for n, t in TYPES.items()}
STRING = 7


class WeirError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Library:
    """Calls functions of libweir, or of those given, that return a status, and turns that into an exception."""

    def __init__(self, functions=None):
        self.lib = functions or ctypes.CDLL(str(BUILD / 'libweir.so'))
        self.lib.weir_status_message.restype = ctypes.c_char_p
        for name in ('weir_tensor_data', 'weir_tensor_dims', 'weir_tensor_string'):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.weir_tensor_byte_size.restype = ctypes.c_size_t
        self.lib.weir_tensor_count.restype = ctypes.c_int64

    def call(self, name, *args):
        function = getattr(self.lib, name)
        function.restype = ctypes.c_void_p
        status = function(*args)
        if status:
            status = ctypes.c_void_p(status)
            code, message = self.lib.weir_status_code(status), self.lib.weir_status_message(status).decode()
            self.lib.weir_status_destroy(status)
            raise WeirError(code, message)

    def make(self, name, *args):
        """Calls a function whose last parameter is an out pointer, and returns that."""
        out = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(out))
        return out

    def text(self, name, *args):
        """Calls a function that returns a string."""
        function = getattr(self.lib, name)
        function.restype = ctypes.c_char_p
        return function(*args).decode()

    def tensor(self, array):
        array = np.asarray(array)
        dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        if array.dtype.kind in 'OSU':
            texts = [s if isinstance(s, bytes) else str(s).encode() for s in array.ravel()]
            data = (ctypes.c_char_p * max(1, len(texts)))(*texts)
            sizes = (ctypes.c_size_t * max(1, len(texts)))(*map(len, texts))
            return self.make('weir_tensor_create_strings', array.ndim, dims, data, sizes)
        return self.make('weir_tensor_create_from', NUMBERS[array.dtype], array.ndim, dims,
                         ctypes.c_char_p(np.ascontiguousarray(array).tobytes()))

    def array(self, tensor):
        """The tensor as an array; releases it."""
        lib = self.lib
        dtype = lib.weir_tensor_dtype(tensor)
        rank = lib.weir_tensor_rank(tensor)
        shape = tuple((ctypes.c_int64 * rank).from_address(lib.weir_tensor_dims(tensor))) if rank else ()
        if dtype == STRING:
            out = np.empty(lib.weir_tensor_count(tensor), dtype=object)
            for i in range(out.size):
                size = ctypes.c_size_t()
                at = lib.weir_tensor_string(tensor, ctypes.c_int64(i), ctypes.byref(size))
                out[i] = ctypes.string_at(at, size.value)
        else:
            size = lib.weir_tensor_byte_size(tensor)
            data = ctypes.string_at(lib.weir_tensor_data(tensor), size) if size else b''
            out = np.frombuffer(data, TYPES[dtype])
        lib.weir_tensor_release(tensor)
        return out.reshape(shape)


lib = Library()
