"""The node tests of the onnx package, as models with inputs and outputs, and what Weir makes of them."""
import ctypes
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from weir_tensors import WeirError, lib

UNIMPLEMENTED = 12


class Edge(ctypes.Structure):
    _fields_ = [('node', ctypes.c_void_p), ('index', ctypes.c_int)]


class Port(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('edge', Edge)]


class Feed(ctypes.Structure):
    _fields_ = [('edge', Edge), ('tensor', ctypes.c_void_p)]


class Step(ctypes.Structure):
    _fields_ = [('feeds', ctypes.POINTER(Feed)), ('feed_count', ctypes.c_int), ('fetches', ctypes.POINTER(Edge)),
                ('fetch_count', ctypes.c_int), ('targets', ctypes.c_void_p), ('target_count', ctypes.c_int)]


for function in ('weir_onnx_input_at', 'weir_onnx_output_at'):
    getattr(lib.lib, function).restype = Port
lib.lib.weir_onnx_graph.restype = ctypes.c_void_p


class Options(ctypes.Structure):
    """weir_session_options_t, of which only the threads are set."""
    _fields_ = [('target', ctypes.c_char_p), ('device_filters', ctypes.c_char_p), ('threads', ctypes.c_int),
                ('rest', ctypes.c_char * 256)]


class Model:
    """An imported model, as long as the block."""

    def __init__(self, model):
        if isinstance(model, (bytes, bytearray)):
            self.onnx = lib.make('weir_onnx_import_bytes', bytes(model), ctypes.c_size_t(len(model)))
        else:
            self.onnx = lib.make('weir_onnx_import', str(model).encode())
        self.session = None
        self.inputs = [lib.lib.weir_onnx_input_at(self.onnx, i) for i in range(lib.lib.weir_onnx_input_count(self.onnx))]
        self.outputs = [lib.lib.weir_onnx_output_at(self.onnx, i) for i in range(lib.lib.weir_onnx_output_count(self.onnx))]

    def __enter__(self):
        graph = ctypes.c_void_p(lib.lib.weir_onnx_graph(self.onnx))
        self.session = lib.make('weir_session_create', graph, ctypes.byref(Options(threads=1)))
        return self

    def __exit__(self, *_):
        lib.lib.weir_session_destroy(self.session)
        lib.lib.weir_onnx_destroy(self.onnx)

    def run(self, arrays):
        """The outputs for |arrays|, in the order of the inputs."""
        tensors = [lib.tensor(a) for a in arrays]
        feeds = (Feed * max(1, len(tensors)))(*[Feed(p.edge, t.value) for p, t in zip(self.inputs, tensors)])
        fetches = (Edge * max(1, len(self.outputs)))(*[p.edge for p in self.outputs])
        results = (ctypes.c_void_p * max(1, len(self.outputs)))()
        step = Step(feeds, len(tensors), fetches, len(self.outputs), None, 0)
        try:
            lib.call('weir_session_run', self.session, ctypes.byref(step), results)
        finally:
            for tensor in tensors:
                lib.lib.weir_tensor_release(tensor)
        return [lib.array(ctypes.c_void_p(results[i])) for i in range(len(self.outputs))]


def node_cases():
    """All node tests of the package: (name, model, data sets, rtol, atol)."""
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return [c for c in collect_testcases(None) if c.kind == 'node']


def as_array(value):
    """A value of a data set as an array; None where it is no tensor."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return None if isinstance(value, (list, dict, tuple)) or value is None else np.asarray(value)


def difference(got, want, rtol, atol):
    """What is wrong with |got|; None when nothing is."""
    if want.dtype.kind in 'OSU':
        texts = [s if isinstance(s, bytes) else str(s).encode() for s in want.ravel()]
        return None if list(got.ravel()) == texts and got.shape == want.shape else f'{got.ravel()} instead of {texts}'
    if got.shape != want.shape:
        return f'shape {got.shape} instead of {want.shape}'
    if got.dtype != want.dtype:
        return f'type {got.dtype} instead of {want.dtype}'
    if want.dtype.kind not in 'biufc':  # of ml_dtypes
        got, want = got.astype(np.float32), want.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        except AssertionError as error:
            return ' '.join(str(error).split())[:300]
    return None


def judge(case):
    """('passes' | 'refused' | 'fails', why) of one case."""
    inputs = [[as_array(v) for v in data[0]] for data in case.data_sets]
    wanted = [[as_array(v) for v in data[1]] for data in case.data_sets]
    if any(v is None for values in inputs + wanted for v in values):
        return 'refused', 'no tensor: a sequence or an optional value goes in or out'
    try:
        with Model(case.model.SerializeToString()) as model:
            for values, want in zip(inputs, wanted):
                for got, expected in zip(model.run(values), want, strict=True):
                    wrong = difference(got, expected, case.rtol, case.atol)
                    if wrong:
                        return 'fails', wrong
    except WeirError as error:
        return 'refused' if error.code == UNIMPLEMENTED else 'fails', str(error)
    except KeyError as error:
        return 'refused', f'type {error}'
    return 'passes', ''
