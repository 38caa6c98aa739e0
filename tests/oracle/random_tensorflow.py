"""TensorFlow's C API through ctypes: a session of a GraphDef, without TensorFlow's Python and its seconds of start."""
import ctypes
import importlib.util
import os
import struct

import numpy as np

from values import ENUM, NUMPY, STRING, field, varint

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
DEADLINE_EXCEEDED = 4
POOLS = {'caller': -1, 'one': 0, 'four': 1}  # threads that run the nodes of a step


class Error(Exception):
    def __init__(self, code, message):
        super().__init__(f'{code}: {message}')
        self.code, self.message = code, message


class Output(ctypes.Structure):
    _fields_ = [('oper', ctypes.c_void_p), ('index', ctypes.c_int)]


class Buffer(ctypes.Structure):
    _fields_ = [('data', ctypes.c_char_p), ('length', ctypes.c_size_t), ('deallocator', ctypes.c_void_p)]


def config(is_isolated=False, is_plain=True):
    """A ConfigProto: pools of one and of four threads; |is_plain|: no rewrites at all."""
    options = field(3, b'\x18' + varint(-1)) + field(10, b'\x98\x01\x01')  # opt_level L0, disable_meta_optimizer
    if not is_plain:  # min_graph_nodes = -1: the optimizer takes on small graphs too
        options = field(10, b'\x88\x01' + varint(-1))
    pools = b''.join(field(12, b'\x08' + varint(n) + field(2, f'random{n}'.encode())) for n in (1, 4))
    return b'\x10\x01\x28\x01' + field(10, options) + pools + (b'\x78\x01' if is_isolated else b'')


def run_options(pool, timeout_ms):
    return b'\x10' + varint(timeout_ms) + (b'\x18' + varint(POOLS[pool]) if pool else b'')


def library_path():
    folder = os.path.dirname(importlib.util.find_spec('tensorflow').origin)
    return os.path.join(folder, 'libtensorflow_cc.so.2')


class Library:
    def __init__(self):
        self.c = c = ctypes.CDLL(library_path())
        for name in ('NewStatus', 'NewGraph', 'NewSessionOptions', 'NewSession', 'NewImportGraphDefOptions', 'AllocateTensor',
                     'TensorData', 'GraphOperationByName', 'NewBuffer'):
            getattr(c, 'TF_' + name).restype = ctypes.c_void_p
        c.TF_Message.restype = ctypes.c_char_p
        c.TF_Dim.restype = ctypes.c_int64
        c.TF_TensorByteSize.restype = ctypes.c_size_t
        self.status = ctypes.c_void_p(c.TF_NewStatus())
        self.malloc = ctypes.CDLL(None).malloc
        self.malloc.restype = ctypes.c_void_p

    def check(self):
        code = self.c.TF_GetCode(self.status)
        if code:
            raise Error(code, self.c.TF_Message(self.status).decode(errors='replace'))

    def to_tensor(self, array):
        """A TF_Tensor* for the caller to delete; its memory is TensorFlow's, for variables may keep it."""
        dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        data = b''.join(map(self.to_string, array.ravel())) if array.dtype == object else np.ascontiguousarray(array).tobytes()
        tensor = ctypes.c_void_p(self.c.TF_AllocateTensor(ENUM[array.dtype], dims, array.ndim, ctypes.c_size_t(len(data))))
        if data:
            ctypes.memmove(self.c.TF_TensorData(tensor), data, len(data))
        return tensor

    def to_string(self, text):
        """The 24 bytes of a TF_TString: inline, or with memory of its own, which is never freed."""
        text = text.encode() if isinstance(text, str) else text
        if len(text) <= 22:
            return bytes([len(text) << 2]) + text.ljust(23, b'\0')
        memory = self.malloc(len(text) + 1)
        ctypes.memmove(memory, text, len(text))
        return struct.pack('<QQQ', len(text) << 2 | 1, len(text), memory)

    def to_array(self, tensor):
        tensor = ctypes.c_void_p(tensor)
        dims = tuple(self.c.TF_Dim(tensor, i) for i in range(self.c.TF_NumDims(tensor)))
        dtype = self.c.TF_TensorType(tensor)
        if dtype not in NUMPY:
            return None
        size = self.c.TF_TensorByteSize(tensor)
        data = ctypes.string_at(self.c.TF_TensorData(tensor), size) if size else b''
        if dtype == STRING:
            return self.to_strings(self.c.TF_TensorData(tensor), dims)
        return np.frombuffer(data, NUMPY[dtype]).reshape(dims).copy()

    def to_strings(self, at, dims):
        out = np.empty(int(np.prod(dims)), object)
        for i in range(out.size):
            place = at + 24 * i
            a, b, c = struct.unpack('<QQQ', ctypes.string_at(place, 24))
            kind = a & 3
            if kind == 0:
                out[i] = ctypes.string_at(place + 1, (a & 255) >> 2)
            elif kind == 1:
                out[i] = ctypes.string_at(c, a >> 2)
            elif kind == 3:
                out[i] = ctypes.string_at(b, a >> 2)
            else:
                out[i] = ctypes.string_at(place + (a >> 32), (a & 0xffffffff) >> 2)
        return out.reshape(dims)


class Session:
    def __init__(self, lib, graph_def, target=None, is_isolated=False, is_plain=True):
        self.lib, self.c = lib, lib.c
        c, status = lib.c, lib.status
        self.graph = ctypes.c_void_p(c.TF_NewGraph())
        self.session = None
        try:
            buffer = Buffer(graph_def, len(graph_def), None)
            options = ctypes.c_void_p(c.TF_NewImportGraphDefOptions())
            c.TF_GraphImportGraphDef(self.graph, ctypes.byref(buffer), options, status)
            c.TF_DeleteImportGraphDefOptions(options)
            lib.check()
            self.session = self.open(target, config(is_isolated, is_plain))
        except Error:
            self.close()
            raise

    def open(self, target, proto):
        c, status = self.c, self.lib.status
        options = ctypes.c_void_p(c.TF_NewSessionOptions())
        c.TF_SetConfig(options, proto, ctypes.c_size_t(len(proto)), status)
        if target:
            c.TF_SetTarget(options, target.encode())
        session = ctypes.c_void_p(c.TF_NewSession(self.graph, options, status))
        c.TF_DeleteSessionOptions(options)
        self.lib.check()
        return session

    def close(self):
        if self.session:
            self.c.TF_CloseSession(self.session, self.lib.status)
            self.c.TF_DeleteSession(self.session, self.lib.status)
        self.c.TF_DeleteGraph(self.graph)

    def output(self, name):
        name, _, index = name.partition(':')
        return Output(self.node(name), int(index or 0))

    def node(self, name):
        node = self.c.TF_GraphOperationByName(self.graph, name.encode())
        if not node:
            raise Error(3, f'no node {name}')
        return node

    def run(self, run, pool, timeout_ms):
        """Arrays of the fetches."""
        c, lib = self.c, self.lib
        count = len(run.fetches)
        inputs = (Output * max(1, len(run.feeds)))(*map(self.output, run.feeds))
        outputs = (Output * max(1, count))(*map(self.output, run.fetches))
        targets = (ctypes.c_void_p * max(1, len(run.targets)))(*map(self.node, run.targets))
        tensors = [lib.to_tensor(a) for a in run.feeds.values()]
        fed = (ctypes.c_void_p * max(1, len(tensors)))(*[t.value for t in tensors])
        values = (ctypes.c_void_p * max(1, count))()
        text = run_options(pool, timeout_ms)
        options = Buffer(text, len(text), None)
        c.TF_SessionRun(self.session, ctypes.byref(options), inputs, fed, len(run.feeds), outputs, values, count, targets,
                        len(run.targets), None, lib.status)
        for t in tensors:
            c.TF_DeleteTensor(t)
        lib.check()
        arrays = [lib.to_array(v) for v in values[:count]]
        for v in values[:count]:
            c.TF_DeleteTensor(ctypes.c_void_p(v))
        return arrays
