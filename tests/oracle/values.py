"""Element types, tensors as TensorProto bytes, and how two values are compared: the part of the checks that needs numpy alone."""
import platform

import numpy as np
import ml_dtypes

# Whether integers may be divided by zero, which ends a process elsewhere: some of TensorFlow's kernels, and oneDNN's, do so where
# tensors or their rows are empty.
DIVIDES_BY_ZERO = platform.machine() == 'aarch64'
# Whether all of TensorFlow's kernels make the nearest integer of a float that none holds, 0 of NaN, and NaN of the larger of NaN and a
# number. Elsewhere that is up to the processor and to an element's place in the tensor; Weir does so everywhere.
SATURATES = platform.machine() == 'aarch64'

CODES = ('OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED '
         'RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS '
         'UNAUTHENTICATED').split()
# Relative and absolute tolerance by type: a few units in the last place.
TOLERANCE = {'float64': (1e-12, 1e-15), 'float32': (3e-6, 1e-7), 'float16': (2e-3, 1e-5), 'bfloat16': (1.6e-2, 1e-4),
             'complex64': (3e-6, 3e-7), 'complex128': (1e-12, 1e-15)}
# Bits of the fraction, for errors in units in the last place.
FRACTION = {'float64': 52, 'float32': 23, 'float16': 10, 'bfloat16': 7, 'complex64': 23, 'complex128': 52}

STRING, RESOURCE, VARIANT = 7, 20, 21
OPAQUE = (RESOURCE, VARIANT)  # what a client cannot look into
# The enum DataType.
NUMPY = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8, STRING: object, 8: np.complex64,
         9: np.int64, 10: np.bool_, 11: [('qint8', np.int8)], 12: [('quint8', np.uint8)], 13: [('qint32', np.int32)],
         14: ml_dtypes.bfloat16, 15: [('qint16', np.int16)], 16: [('quint16', np.uint16)], 17: np.uint16, 18: np.complex128,
         19: np.float16, 22: np.uint32, 23: np.uint64, 24: ml_dtypes.float8_e5m2, 25: ml_dtypes.float8_e4m3fn,
         26: ml_dtypes.float8_e4m3fnuz, 27: ml_dtypes.float8_e4m3b11fnuz, 28: ml_dtypes.float8_e5m2fnuz, 29: ml_dtypes.int4,
         30: ml_dtypes.uint4}
NUMPY = {enum: np.dtype(dtype) for enum, dtype in NUMPY.items()}
ENUM = {dtype: enum for enum, dtype in NUMPY.items()}


# ---- TensorProto: dtype = 1, tensor_shape = 2 {dim = 2 {size = 1}}, tensor_content = 4, string_val = 8 ----

def varint(value):
    if 0 <= value < 128:
        return bytes((value,))
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def write_tensor(array):
    """A numpy array (strings: objects that are bytes) as a TensorProto."""
    dims = b''.join(field(2, b'\x08' + varint(d)) for d in array.shape)
    head = b'\x08' + varint(ENUM[array.dtype]) + field(2, dims)
    if array.dtype == object:
        return head + b''.join(field(8, s.encode() if isinstance(s, str) else bytes(s)) for s in array.ravel())
    return head + field(4, np.ascontiguousarray(array).tobytes())


def read_fields(data):
    """Pairs of field number and value: an integer or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        elif key & 7 == 2:
            size = number()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            raise ValueError(f'wire type {key & 7} in a TensorProto')


def read_tensor(data):
    """The array of a TensorProto as Weir and write_tensor write it; None of a resource or variant."""
    dtype, shape, content, strings = 0, [], b'', []
    for name, value in read_fields(data):
        if name == 1:
            dtype = value
        elif name == 2:
            for inner, dim in read_fields(value):
                size = dict(read_fields(dim)).get(1, 0) if inner == 2 else 0
                shape += [size] if inner == 2 else []
        elif name == 4:
            content = value
        elif name == 8:
            strings.append(value)
    if dtype in OPAQUE:
        return None
    if dtype == STRING:
        out = np.empty(len(strings), object)
        out[:] = strings
        return out.reshape(shape)
    return np.frombuffer(content, NUMPY[dtype]).reshape(shape).copy()


# ---- comparison ----

def compare_values(got, want, options):
    """None, or what differs."""
    if got is None or want is None:
        return None if got is want else f'{"nothing" if got is None else "a value"} where the other has the opposite'
    if got.dtype != want.dtype and not (got.dtype.kind in 'OS' and want.dtype.kind in 'OS'):
        return f'type {got.dtype}, not {want.dtype}'
    if got.shape != want.shape:
        return f'shape {got.shape}, not {want.shape}'
    if options.get('shapes_only') or got.size == 0:
        return None
    name = got.dtype.name
    if options.get('exact') or name not in TOLERANCE:
        if got.dtype == object or got.dtype.kind == 'S':
            wrong = np.array([a != b for a, b in zip(got.ravel(), want.ravel())]).reshape(got.shape)
        else:
            view = np.dtype(f'V{got.dtype.itemsize}') if options.get('exact') else got.dtype
            a, b = np.ascontiguousarray(got), np.ascontiguousarray(want)
            wrong = np.asarray(a.view(view) != b.view(view)).reshape(got.shape)
        error = None
    else:
        rtol, atol = TOLERANCE[name]
        rtol, atol = options.get('rtol', rtol), options.get('atol', atol)
        wide = np.complex128 if got.dtype.kind == 'c' else np.float64
        with np.errstate(all='ignore'):
            a, b = got.astype(wide), want.astype(wide)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            error = np.abs(a - b)
            close = np.isfinite(a) & np.isfinite(b) & (error <= atol + rtol * np.abs(b))
        wrong = ~(same | close)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    text = f'{int(wrong.sum())} of {wrong.size} elements differ, first at {list(at)}: {np.asarray(got)[at]!r}, not {np.asarray(want)[at]!r}'
    return text if error is None else text + describe_error(error, wrong, np.abs(b), FRACTION[name])


# ---- what is determined where factors are not ----

def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def ordered(values):
    """Complex numbers in the order of their real parts, and of their imaginary ones where those are about equal."""
    scale = max(1e-30, np.abs(values).max(initial=0))
    keys = np.round(values.real / scale, 3), np.round(values.imag / scale, 3)
    return np.take_along_axis(values, np.lexsort(keys[::-1], axis=-1), -1)


def of_svd(s, u, v):
    if u.ndim < 2:
        return [s]  # vectors that were not asked for have no values
    k = s.shape[-1]
    return [s, (u[..., :k] * s[..., None, :]) @ adjoint(v[..., :k]), adjoint(u) @ u, adjoint(v) @ v]


def of_self_adjoint(e, v):
    return [e] if v.ndim < 2 else [e, (v * e[..., None, :]) @ adjoint(v), adjoint(v) @ v]


def of_eigen(e, v):
    if v.ndim < 2:
        return [ordered(e)]
    return [ordered(e), (v * e[..., None, :]) @ np.linalg.inv(v), np.linalg.norm(v, axis=-2)]


def of_stacked(both):
    return of_self_adjoint(both[..., 0, :], both[..., 1:, :])


DETERMINED = {'svd': of_svd, 'self adjoint': of_self_adjoint, 'eigen': of_eigen, 'stacked': of_stacked}


def compare_determined(got, want, kind, options):
    with np.errstate(all='ignore'):
        pairs = zip(DETERMINED[kind](*got), DETERMINED[kind](*want))
        problems = [compare_values(a, b, options) for a, b in pairs]
    return [f'{kind}, what is determined {i}: {p}' for i, p in enumerate(problems) if p]


def describe_error(error, wrong, size, fraction):
    """The largest error, also in units in the last place of the wanted value."""
    finite = wrong & np.isfinite(error)
    if not finite.any():
        return ''
    unit = np.exp2(np.floor(np.log2(np.maximum(size[finite], 1e-30))) - fraction)
    return f'; largest error {error[finite].max():.3g}, {(error[finite] / unit).max():.3g} units in the last place'


def code_name(code):
    return CODES[code] if 0 <= code < len(CODES) else str(code)


def first_message(text):
    lines = [l for l in text.splitlines() if l.strip() and not l.startswith(('Graph execution error', 'Detected at', 'Node:', '    File'))]
    return lines[0] if lines else text
