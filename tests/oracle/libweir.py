"""The part of libweir's C API that checks need, through ctypes: import a GraphDef, add gradients, run."""
import ctypes
import json

import numpy as np

from values import ENUM, NUMPY, STRING


class Error(Exception):
    """A status: its code and message."""

    def __init__(self, code, message):
        super().__init__(f'{code}: {message}')
        self.code, self.message = code, message


class Edge(ctypes.Structure):
    _fields_ = [('node', ctypes.c_void_p), ('index', ctypes.c_int)]


class Gradient(ctypes.Structure):
    _fields_ = [('values', Edge), ('indices', Edge), ('dense_shape', Edge)]


class Feed(ctypes.Structure):
    _fields_ = [('edge', Edge), ('tensor', ctypes.c_void_p)]


class StepSpec(ctypes.Structure):
    _fields_ = [('feeds', ctypes.POINTER(Feed)), ('feed_count', ctypes.c_int),
                ('fetches', ctypes.POINTER(Edge)), ('fetch_count', ctypes.c_int),
                ('targets', ctypes.POINTER(ctypes.c_void_p)), ('target_count', ctypes.c_int)]


class SessionOptions(ctypes.Structure):
    _fields_ = [('target', ctypes.c_char_p), ('device_filters', ctypes.c_char_p), ('threads', ctypes.c_int),
                ('disabled_passes', ctypes.c_char_p), ('devices', ctypes.c_char_p),
                ('place', ctypes.c_char_p), ('rates', ctypes.c_char_p),
                ('mixed_precision', ctypes.c_char_p), ('allow_soft_placement', ctypes.c_bool), ('isolate_state', ctypes.c_bool),
                ('tls_ca', ctypes.c_char_p), ('tls_cert', ctypes.c_char_p), ('tls_key', ctypes.c_char_p),
                ('token_file', ctypes.c_char_p)]


class RunOptions(ctypes.Structure):
    _fields_ = [('timeout_ms', ctypes.c_int64), ('cancellation', ctypes.c_void_p), ('trace', ctypes.c_bool)]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        pointer = ctypes.c_void_p
        for name in ('graph_create', 'graph_import_def', 'graph_find_output', 'session_create', 'session_run', 'gradients',
                     'gradients_sparse', 'scope_finish', 'scope_create', 'tensor_create_from', 'tensor_create_strings',
                     'describe_ops', 'graph_find_node', 'tensor_data', 'session_run_target', 'session_run_with'):
            getattr(self.c, 'weir_' + name).restype = pointer
        self.c.weir_status_message.restype = ctypes.c_char_p
        self.c.weir_tensor_dims.restype = ctypes.POINTER(ctypes.c_int64)
        self.c.weir_tensor_byte_size.restype = ctypes.c_size_t
        self.c.weir_tensor_string.restype = pointer

    def check(self, status):
        if status:
            status = ctypes.c_void_p(status)
            error = Error(self.c.weir_status_code(status), self.c.weir_status_message(status).decode(errors='replace'))
            self.c.weir_status_destroy(status)
            raise error

    def ops(self):
        """{name: description} of every op of the library."""
        text = ctypes.c_void_p()
        self.check(self.c.weir_describe_ops(None, True, ctypes.byref(text)))
        lines = ctypes.string_at(text.value).decode().splitlines()
        self.c.weir_buffer_free(text)
        ops = [json.loads(line) for line in lines if line.strip()]
        return {op['name']: op for op in ops}

    def to_tensor(self, array):
        """A weir_tensor_t* for the caller to release."""
        out = ctypes.c_void_p()
        dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        if array.dtype == object:
            texts = [bytes(s) for s in array.ravel()]
            self.check(self.c.weir_tensor_create_strings(
                array.ndim, dims, (ctypes.c_char_p * max(1, len(texts)))(*texts),
                (ctypes.c_size_t * max(1, len(texts)))(*map(len, texts)), ctypes.byref(out)))
        else:
            data = np.ascontiguousarray(array).tobytes()
            self.check(self.c.weir_tensor_create_from(ENUM[array.dtype], array.ndim, dims, data,
                                                      ctypes.byref(out)))
        return out

    def to_array(self, tensor):
        tensor = ctypes.c_void_p(tensor)
        dims = self.c.weir_tensor_dims(tensor)
        shape = tuple(dims[i] for i in range(self.c.weir_tensor_rank(tensor)))
        dtype = self.c.weir_tensor_dtype(tensor)
        if dtype == STRING:
            return self.to_strings(tensor, shape)
        if dtype not in NUMPY:
            return None  # a resource or variant
        data = ctypes.string_at(self.c.weir_tensor_data(tensor), self.c.weir_tensor_byte_size(tensor))
        return np.frombuffer(data, NUMPY[dtype]).reshape(shape).copy()

    def to_strings(self, tensor, shape):
        size = ctypes.c_size_t()
        out = np.empty(int(np.prod(shape)), object)
        for i in range(out.size):
            data = self.c.weir_tensor_string(tensor, ctypes.c_int64(i), ctypes.byref(size))
            out[i] = ctypes.string_at(data, size.value) if size.value else b''
        return out.reshape(shape)


class Graph:
    """A graph with one scope and one session."""

    def __init__(self, lib, graph_def, threads=1, passes=True, devices=None, place=None):
        """|passes|: whether they run, or the names (bytes) of those that do not; |devices|, |place|: as SessionOptions (bytes)."""
        self.lib, self.c = lib, lib.c
        self.graph, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.derived = {}  # edges by the names that derive() gave them
        lib.check(self.c.weir_graph_create(ctypes.byref(self.graph)))
        data = graph_def if isinstance(graph_def, bytes) else graph_def.SerializeToString()
        lib.check(self.c.weir_graph_import_def(self.graph, data, ctypes.c_size_t(len(data)), None))
        self.scope = ctypes.c_void_p(self.c.weir_scope_create(self.graph))
        options = SessionOptions(threads=threads, disabled_passes=None if passes is True else passes or b'all',
                                 devices=devices, place=place)
        lib.check(self.c.weir_session_create(self.graph, ctypes.byref(options), ctypes.byref(self.session)))

    def close(self):
        self.c.weir_session_destroy(self.session)
        status = self.c.weir_scope_finish(self.scope)
        self.c.weir_graph_release(self.graph)
        self.lib.check(status)

    def edge(self, name):
        if name in self.derived:
            return self.derived[name]
        edge = Edge()
        self.lib.check(self.c.weir_graph_find_output(self.graph, name.encode(), ctypes.byref(edge)))
        return edge

    def gradients(self, ys, xs, grad_ys=None):
        """Dense gradients, an Edge each; None where the ys do not depend on an x."""
        out = (Edge * len(xs))()
        dys = (Edge * len(ys))(*grad_ys) if grad_ys is not None else None
        self.lib.check(self.c.weir_gradients(self.scope, (Edge * len(ys))(*ys), len(ys), (Edge * len(xs))(*xs), len(xs), dys,
                                             out))
        return [Edge(e.node, e.index) if e.node else None for e in out]

    def derive(self, names, ys, xs, grad_ys):
        """Adds gradients, all by names: those that there are can be found by |names| from then on."""
        edges = self.gradients(*(list(map(self.edge, each)) for each in (ys, xs, grad_ys)))
        self.derived.update((name, edge) for name, edge in zip(names, edges) if edge)

    def gradients_sparse(self, ys, xs, grad_ys=None):
        """A Gradient each."""
        out = (Gradient * len(xs))()
        dys = (Edge * len(ys))(*grad_ys) if grad_ys is not None else None
        self.lib.check(self.c.weir_gradients_sparse(self.scope, (Edge * len(ys))(*ys), len(ys), (Edge * len(xs))(*xs),
                                                    len(xs), dys, out))
        return list(out)

    def node(self, name):
        node = self.c.weir_graph_find_node(self.graph, name.encode())
        if not node:
            raise KeyError(name)
        return node

    def run_node(self, name):
        self.lib.check(self.c.weir_session_run_target(self.session, ctypes.c_void_p(self.node(name))))

    def run(self, fetches, feeds=None, targets=(), timeout_ms=0):
        """Arrays of the edges |fetches|; |feeds|: {name: array}; |targets|: names of nodes."""
        if not fetches and not targets:
            return []
        tensors = []
        try:
            items = (Feed * max(1, len(feeds or {})))()
            for i, (name, array) in enumerate((feeds or {}).items()):
                tensors.append(self.lib.to_tensor(array))
                items[i] = Feed(self.edge(name), tensors[-1])
            nodes = (ctypes.c_void_p * max(1, len(targets)))(*map(self.node, targets))
            spec = StepSpec(feeds=items, feed_count=len(feeds or {}), fetches=(Edge * len(fetches))(*fetches),
                            fetch_count=len(fetches), targets=nodes, target_count=len(targets))
            results = (ctypes.c_void_p * max(1, len(fetches)))()
            options = RunOptions(timeout_ms=timeout_ms)
            self.lib.check(self.c.weir_session_run_with(self.session, ctypes.byref(spec), ctypes.byref(options), results, None,
                                                        None))
            arrays = [self.lib.to_array(t) for t in results[:len(fetches)]]
            for t in results[:len(fetches)]:
                self.c.weir_tensor_release(ctypes.c_void_p(t))
            return arrays
        finally:
            for t in tensors:
                self.c.weir_tensor_release(t)
