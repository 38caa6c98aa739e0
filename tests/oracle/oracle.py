#!/usr/bin/env python3
"""Checks Weir's ops against TensorFlow: the same node, the same inputs, in both.

    oracle.py [--probe FILE | --lib DIR] [--list] [--strict] [--verbose] [names...]

runs the cases of every cases_*.py beside this file, or of those named: "array" is cases_array.py, "Concat" is one op.
The python that runs it must have tensorflow. FILE is the probe library as CMake builds it (target weir_probe). Without it the
library is built first (build_probe.sh) into DIR, by default weir_probe in the system's folder for temporary files; building is
incremental.

A case file defines one function:

    def cases(check, rng):
        x = rng.standard_normal((2, 3)).astype(np.float32)
        check('Abs', [x])                                  # type and number attributes are inferred from the inputs
        check('ConcatV2', [x, x, np.int32(0)], {'N': 2})   # list arguments are flattened
        check('Cast', [x], {'DstT': np.int64})             # types: numpy, tf.DType or 'bfloat16'
        check('Assign', [ref(x), x])                       # ref variables (ref(None, np.float32): uninitialised)
        check('ReadVariableOp', [resource(x)], {'dtype': np.float32})
        check('Sum', [x, np.int32(7)])                     # both must fail, with the same code

rng is a numpy Generator with a fixed seed. check compares types, shapes and values of all outputs (NaN equals NaN), the values
of variables afterwards, and error codes. Keywords: rtol, atol (by default from the type), exact=True (bit for bit, also the sign
of zero), shapes_only=True (random values), tf_only_fails=True / weir_only_fails=True for documented differences, name='text' for the report.
The probe also checks each inferred shape against the real one under full, partial and no knowledge, and that overwriting
inputs (buffer forwarding) changes nothing. Inputs are np arrays or scalars, bytes/str (string tensors), ml_dtypes arrays.
"""
import argparse
import collections
import ctypes
import glob
import importlib.util
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import traceback

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2, op_def_pb2, tensor_pb2
from tensorflow.python.framework import op_def_registry, tensor_util

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20161102
BATCH = 150
TENSOR, REF, RESOURCE = 0, 1, 2
CODES = ('OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED '
         'RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS '
         'UNAUTHENTICATED').split()
# Relative and absolute tolerance by type: a few units in the last place.
TOLERANCE = {'float64': (1e-12, 1e-15), 'float32': (3e-6, 1e-7), 'float16': (2e-3, 1e-5), 'bfloat16': (1.6e-2, 1e-4),
             'complex64': (3e-6, 3e-7), 'complex128': (1e-12, 1e-15)}


class Variable:
    def __init__(self, kind, value, dtype):
        self.kind = kind
        self.value = None if value is None else to_array(value)
        self.dtype = tf.as_dtype(dtype if dtype is not None else self.value.dtype)


def ref(value, dtype=None):
    """A ref variable holding |value|; None: not initialised."""
    return Variable(REF, value, dtype)


def resource(value, dtype=None):
    """A handle of a resource variable holding |value|; None: not initialised."""
    return Variable(RESOURCE, value, dtype)


def to_array(value):
    if isinstance(value, (str, bytes)):
        return np.array(value.encode() if isinstance(value, str) else value, dtype=object)
    array = np.asarray(value)
    if array.dtype.kind in 'US':
        array = np.array([s.encode() if isinstance(s, str) else bytes(s) for s in array.ravel()] + [None],
                         dtype=object)[:-1].reshape(array.shape)
    return array


def to_proto(array, dtype=None):
    if array.dtype == object:
        return tf.make_tensor_proto(array, tf.string, shape=array.shape)
    proto = tensor_pb2.TensorProto(dtype=tf.as_dtype(dtype or array.dtype).as_datatype_enum)
    for dim in array.shape:
        proto.tensor_shape.dim.add(size=dim)
    proto.tensor_content = np.ascontiguousarray(array).tobytes()
    return proto


# ---- attributes ----

def set_attr(out, kind, value):
    """Fills the AttrValue |out| of the OpDef type |kind|."""
    if kind.startswith('list('):
        inner = kind[5:-1]
        out.list.SetInParent()
        for item in value:
            if inner == 'string':
                out.list.s.append(item.encode() if isinstance(item, str) else item)
            elif inner == 'type':
                out.list.type.append(tf.as_dtype(item).as_datatype_enum)
            elif inner == 'shape':
                out.list.shape.append(tf.TensorShape(item).as_proto())
            elif inner == 'tensor':
                out.list.tensor.append(to_proto(to_array(item)))
            else:
                getattr(out.list, inner[0]).append(item)
    elif kind == 'string':
        out.s = value.encode() if isinstance(value, str) else value
    elif kind == 'type':
        out.type = tf.as_dtype(value).as_datatype_enum
    elif kind == 'shape':
        out.shape.CopyFrom(tf.TensorShape(value).as_proto())
    elif kind == 'tensor':
        out.tensor.CopyFrom(to_proto(to_array(value)))
    elif kind == 'func':
        out.func.name = value
    else:
        setattr(out, kind[0], value)


def infer_attrs(op_def, dtypes, attrs):
    """Adds the type and number attributes that the inputs determine."""
    attrs = dict(attrs)
    counted = [a for a in op_def.input_arg if a.number_attr or a.type_list_attr]
    unknown = {a.number_attr or a.type_list_attr for a in counted} - set(attrs)
    known = len(op_def.input_arg) - len(counted)
    for a in counted:
        name = a.number_attr or a.type_list_attr
        if name in attrs:
            known += attrs[name] if a.number_attr else len(attrs[name])
    if len(unknown) == 1:
        sharers = sum((a.number_attr or a.type_list_attr) in unknown for a in counted)
        each = max(0, len(dtypes) - known) // sharers
    at = 0
    for a in op_def.input_arg:
        name = a.number_attr or a.type_list_attr
        count = 1
        if name:
            count = (attrs[name] if a.number_attr else len(attrs[name])) if name in attrs else each
            if name not in attrs:
                attrs[name] = count if a.number_attr else list(dtypes[at:at + count])
        if a.type_attr and a.type_attr not in attrs and at < len(dtypes) and count > 0:
            attrs[a.type_attr] = dtypes[at]
        at += count
    return attrs


# ---- one case ----

class Case:
    def __init__(self, op, inputs, attrs, options, where):
        self.op, self.options, self.where = op, options, where
        self.op_def = op_def_registry.get(op)
        if self.op_def is None:
            raise ValueError(f'TensorFlow has no op {op}')
        self.inputs = [x if isinstance(x, Variable) else to_array(x) for x in inputs]
        self.has_variables = any(isinstance(x, Variable) for x in self.inputs)
        dtypes = [tf.resource if isinstance(x, Variable) and x.kind == RESOURCE else
                  x.dtype if isinstance(x, Variable) else tf.string if x.dtype == object else tf.as_dtype(x.dtype)
                  for x in self.inputs]
        self.attrs = infer_attrs(self.op_def, dtypes, attrs or {})
        self.node = node_def_pb2.NodeDef(name='node', op=op)
        kinds = {a.name: a.type for a in self.op_def.attr}
        for name, value in self.attrs.items():
            set_attr(self.node.attr[name], kinds.get(name, guess_kind(value)), value)
        self.output_dtypes = None

    def describe(self):
        def one(x):
            if isinstance(x, Variable):
                return ('ref ' if x.kind == REF else 'resource ') + (one(x.value) if x.value is not None else 'empty')
            small = 0 < x.size <= 6
            return f'{"string" if x.dtype == object else x.dtype}{list(x.shape)}' + (f'={x.tolist()}' if small else '')
        shown = {k: (tf.as_dtype(v).name if isinstance(v, (tf.DType, np.dtype, type)) else v)
                 for k, v in self.attrs.items()}
        name = self.options.get('name')
        return f'{name + ": " if name else ""}{self.op}({", ".join(map(one, self.inputs))}) {shown}'


def guess_kind(value):
    if isinstance(value, bool):
        return 'bool'
    return {int: 'int', float: 'float', str: 'string', bytes: 'string'}.get(type(value), 'type')


Result = collections.namedtuple('Result', 'code message outputs shapes variables')


# ---- TensorFlow ----

def session_config():
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1  # L0: no constant folding either
    return config


def build_graph(cases, as_placeholders):
    """One GraphDef with the node of case k as 'k', its inputs, and what initialises its variables."""
    graph = graph_pb2.GraphDef()
    graph.versions.producer = tf.compat.v1.GRAPH_DEF_VERSION if hasattr(tf.compat.v1, 'GRAPH_DEF_VERSION') else \
        tf.version.GRAPH_DEF_VERSION
    feeds, inits = {}, []
    for k, case in enumerate(cases):
        node = node_def_pb2.NodeDef()
        node.CopyFrom(case.node)
        node.name = f'n{k}'
        for i, x in enumerate(case.inputs):
            name = f'n{k}_in{i}'
            node.input.append(name)
            if isinstance(x, Variable):
                add_variable(graph, name, x, inits)
                continue
            source = graph.node.add(name=name)
            dtype = tf.string if x.dtype == object else tf.as_dtype(x.dtype)
            source.attr['dtype'].type = dtype.as_datatype_enum
            if as_placeholders:
                source.op = 'Placeholder'
                source.attr['shape'].shape.unknown_rank = True
                feeds[name + ':0'] = x
            else:
                source.op = 'Const'
                source.attr['value'].tensor.CopyFrom(to_proto(x))
        graph.node.append(node)
    return graph, feeds, inits


def add_variable(graph, name, variable, inits):
    node = graph.node.add(name=name, op='VariableV2' if variable.kind == REF else 'VarHandleOp')
    node.attr['dtype'].type = variable.dtype.as_datatype_enum
    node.attr['shape'].shape.unknown_rank = True
    if variable.value is not None:
        node.attr['shape'].shape.CopyFrom(tf.TensorShape(variable.value.shape).as_proto())
        value = graph.node.add(name=name + '_value', op='Const')
        value.attr['dtype'].type = variable.dtype.as_datatype_enum
        value.attr['value'].tensor.CopyFrom(to_proto(variable.value))
        init = graph.node.add(name=name + '_init', op='Assign' if variable.kind == REF else 'AssignVariableOp',
                              input=[name, name + '_value'])
        init.attr['T' if variable.kind == REF else 'dtype'].type = variable.dtype.as_datatype_enum
        inits.append(name + '_init')
    if variable.kind == RESOURCE:
        node.attr['shared_name'].s = name.encode()
        read = graph.node.add(name=name + '_read', op='ReadVariableOp', input=[name])
        read.attr['dtype'].type = variable.dtype.as_datatype_enum


def error_of(error):
    if isinstance(error, tf.errors.OpError):
        return error.error_code, error.message
    return 3, str(error)  # graph construction turns INVALID_ARGUMENT into ValueError


def as_array(value):
    """What a session returns, which is bytes for a string scalar: numpy's own strings lose trailing zeros."""
    return np.array(value, dtype=object) if isinstance(value, bytes) else np.asarray(value)


def run_tensorflow(cases, as_placeholders=False):
    """Results of all cases in one session, or None when one of them fails."""
    graph_def, feeds, inits = build_graph(cases, as_placeholders)
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(graph_def, name='')
    fetches = []
    for k, case in enumerate(cases):
        op = graph.get_operation_by_name(f'n{k}')
        case.output_dtypes = [t.dtype.base_dtype for t in op.outputs]
        fetches.append([op] + [t for t in op.outputs if t.dtype.base_dtype not in (tf.resource, tf.variant)])
    results = []
    with tf.compat.v1.Session(graph=graph, config=session_config()) as session:
        if inits:
            session.run([graph.get_operation_by_name(i) for i in inits])
        values = session.run(fetches, feeds)
        for k, case in enumerate(cases):
            got = iter(values[k][1:])
            outputs = [None if d in (tf.resource, tf.variant) else as_array(next(got)) for d in case.output_dtypes]
            shapes = [t.shape for t in graph.get_operation_by_name(f'n{k}').outputs]
            variables = {}
            for i, x in enumerate(case.inputs):
                if isinstance(x, Variable):
                    variables[i] = read_variable(session, graph, f'n{k}_in{i}', x)
            results.append(Result(0, '', outputs, shapes, variables))
    return results


def read_variable(session, graph, name, variable):
    try:
        return as_array(session.run(f'{name}:0' if variable.kind == REF else f'{name}_read:0'))
    except tf.errors.OpError:
        return None


def tensorflow_results(cases):
    """Halves a batch that fails until the failing case stands alone; then a pair of results: as a graph of constants, and, when
    that fails, of the kernel by itself (placeholders keep the shape function from seeing the error first)."""
    if not cases:
        return []
    try:
        return [(r, None) for r in run_tensorflow(cases)]
    except Exception as error:  # pylint: disable=broad-except
        if len(cases) > 1:
            half = len(cases) // 2
            return tensorflow_results(cases[:half]) + tensorflow_results(cases[half:])
        whole = Result(*error_of(error), None, None, None)
    try:
        kernel = run_tensorflow(cases, as_placeholders=True)[0]
    except Exception as error:  # pylint: disable=broad-except
        kernel = Result(*error_of(error), None, None, None)
    return [(whole, kernel)]


# ---- Weir ----

class Probe:
    def __init__(self, file, directory, threads):
        if not file:
            # Rebuilding replaces the file and leaves a library in use alone.
            subprocess.run([os.path.join(HERE, 'build_probe.sh'), directory], check=True)
            file = os.path.join(directory, 'libweir_probe.so')
        self.lib = ctypes.CDLL(os.path.abspath(file))
        lib = self.lib
        lib.weir_probe_start.restype = ctypes.c_char_p
        lib.weir_probe_run.restype = ctypes.c_void_p
        for name in ('code', 'message', 'complaint', 'output_count', 'output', 'variable', 'shape', 'free'):
            getattr(lib, 'weir_probe_' + name).argtypes = None
        lib.weir_probe_message.restype = ctypes.c_char_p
        lib.weir_probe_complaint.restype = ctypes.c_char_p
        lib.weir_probe_output.restype = ctypes.c_void_p
        lib.weir_probe_variable.restype = ctypes.c_void_p
        lib.weir_probe_op_def.restype = ctypes.c_void_p
        message = lib.weir_probe_start(threads)
        if message:
            raise SystemExit('the registry of ops is bad: ' + message.decode())

    def has_op(self, name):
        return bool(self.lib.weir_probe_has_op(name.encode()))

    def op_def(self, name):
        size = ctypes.c_size_t()
        data = self.lib.weir_probe_op_def(name.encode(), ctypes.byref(size))
        op_def = op_def_pb2.OpDef()
        op_def.ParseFromString(ctypes.string_at(data, size.value))
        return op_def

    def tensor(self, function, handle, i):
        size = ctypes.c_size_t()
        data = function(handle, i, ctypes.byref(size))
        if not data:
            return None
        proto = tensor_pb2.TensorProto()
        proto.ParseFromString(ctypes.string_at(data, size.value))
        if proto.dtype in (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum):
            return None
        return np.asarray(tensor_util.MakeNdarray(proto))

    def run(self, case):
        """(shape result, kernel result, complaint)."""
        lib, count = self.lib, len(case.inputs)
        protos, kinds, dtypes = [], [], []
        for x in case.inputs:
            is_variable = isinstance(x, Variable)
            value = x.value if is_variable else x
            protos.append(b'' if value is None else to_proto(value).SerializeToString())
            kinds.append(x.kind if is_variable else TENSOR)
            dtypes.append(x.dtype.as_datatype_enum if is_variable else 0)
        node = case.node.SerializeToString()
        handle = ctypes.c_void_p(lib.weir_probe_run(
            node, ctypes.c_size_t(len(node)), count, (ctypes.c_char_p * max(1, count))(*protos),
            (ctypes.c_size_t * max(1, count))(*map(len, protos)), (ctypes.c_int * max(1, count))(*kinds),
            (ctypes.c_int * max(1, count))(*dtypes)))
        try:
            return self.collect(case, handle)
        finally:
            lib.weir_probe_free(handle)

    def collect(self, case, handle):
        lib = self.lib
        outputs, shapes, variables = [], [], {}
        codes = [lib.weir_probe_code(handle, k) for k in (0, 1)]
        if codes[0] == 0:
            dims = (ctypes.c_int64 * 256)()
            for i in range(lib.weir_probe_output_count(handle)):
                rank = lib.weir_probe_shape(handle, i, dims)
                shapes.append(tf.TensorShape(None if rank < 0 else [None if d < 0 else d for d in dims[:rank]]))
        if codes[1] == 0:
            outputs = [self.tensor(lib.weir_probe_output, handle, i)
                       for i in range(lib.weir_probe_output_count(handle))]
            variables = {i: self.tensor(lib.weir_probe_variable, handle, i)
                         for i, x in enumerate(case.inputs) if isinstance(x, Variable)}
        results = [Result(codes[k], lib.weir_probe_message(handle, k).decode(errors='replace'), outputs, shapes, variables)
                   for k in (0, 1)]
        return results[0], results[1], lib.weir_probe_complaint(handle).decode(errors='replace')


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
            wrong = np.asarray(a.view(view) != b.view(view)) if a.ndim else np.asarray(a.tobytes() != b.tobytes())
        error = None
    else:
        rtol, atol = TOLERANCE[name]
        rtol, atol = options.get('rtol', rtol), options.get('atol', atol)
        wide = np.complex128 if got.dtype.kind == 'c' else np.float64
        a, b = got.astype(wide), want.astype(wide)
        with np.errstate(all='ignore'):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            error = np.abs(a - b)
            close = np.isfinite(a) & np.isfinite(b) & (error <= atol + rtol * np.abs(b))
        wrong = ~(same | close)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    text = f'{int(wrong.sum())} of {wrong.size} elements differ, first at {list(at)}: {np.asarray(got)[at]!r}, not {np.asarray(want)[at]!r}'
    if error is not None:
        finite = error[wrong & np.isfinite(error)]
        text += f'; largest error {finite.max():.3g}' if finite.size else ''
    return text


def code_name(code):
    return CODES[code] if 0 <= code < len(CODES) else str(code)


def compare_failure(case, whole, kernel, shape_result, kernel_result):
    """TensorFlow failed with |whole|; by its kernel alone with |kernel|, which may have succeeded."""
    problems = []
    if case.options.get('tf_only_fails'):
        return problems
    weir_code = shape_result.code or kernel_result.code
    messages = f'\n      tensorflow: {code_name(whole.code)}: {first_message(whole.message)}' \
               f'\n      kernel:     {code_name(kernel.code)}: {first_message(kernel.message)}' \
               f'\n      weir shape: {code_name(shape_result.code)}: {first_message(shape_result.message)}' \
               f'\n      weir:       {code_name(kernel_result.code)}: {first_message(kernel_result.message)}'
    if weir_code == 0:
        problems.append('TensorFlow fails, Weir does not' + messages)
    elif weir_code != whole.code and weir_code != kernel.code:
        problems.append('the codes differ' + messages)
    elif kernel.code and not kernel_result.code:
        problems.append("TensorFlow's kernel fails by itself, Weir's does not" + messages)
    elif kernel.code and kernel.code != kernel_result.code and shape_result.code == 0:
        problems.append('the codes of the kernels differ' + messages)
    return problems


def first_message(text):
    lines = [l for l in text.splitlines() if l.strip() and not l.startswith(('Graph execution error', 'Detected at', 'Node:', '    File'))]
    return lines[0] if lines else text


def compare(case, pair, weir, warnings):
    """The list of what is wrong with a case."""
    whole, kernel = pair
    shape_result, kernel_result, complaint = weir
    if whole.code:
        return compare_failure(case, whole, kernel, shape_result, kernel_result)
    for result, what in ((shape_result, 'shape function'), (kernel_result, 'kernel')):
        if result.code:
            if case.options.get('weir_only_fails'):
                return []
            return [f'{what} fails: {code_name(result.code)}: {result.message}']
    problems = [complaint] if complaint else []
    for i, want in enumerate(whole.outputs):
        if case.output_dtypes[i] in (tf.resource, tf.variant):
            continue
        problem = compare_values(kernel_result.outputs[i], want, case.options)
        if problem:
            problems.append(f'output {i}: {problem}')
        if kernel_result.shapes[i].is_compatible_with(whole.shapes[i]):
            if is_weaker(kernel_result.shapes[i], whole.shapes[i]):
                warnings.append(f'output {i} is inferred as {kernel_result.shapes[i]}, by TensorFlow as {whole.shapes[i]}')
        else:
            problems.append(f'output {i} is inferred as {kernel_result.shapes[i]}, by TensorFlow as {whole.shapes[i]}')
    for i, want in whole.variables.items():
        problem = compare_values(kernel_result.variables.get(i), want, case.options)
        if problem:
            problems.append(f'variable {i}: {problem}')
    return problems


def is_weaker(got, want):
    if want.rank is None:
        return False
    if got.rank is None:
        return True
    return any(g is None and w is not None for g, w in zip(got.as_list(), want.as_list()))


# ---- definitions ----

def compare_op_def(got, want):
    """What differs between two OpDefs, documentation apart."""
    problems = []
    for field in ('is_stateful', 'is_commutative', 'is_aggregate', 'allows_uninitialized_input',
                  'is_distributed_communication'):
        if getattr(got, field) != getattr(want, field):
            problems.append(f'{field} is {getattr(got, field)}')

    def arg(a):
        return (a.name, a.type, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref)

    def attr(a):
        # Proto bytes of a default may differ in form (packed tensors), so tensors are compared by value.
        default = None
        if a.HasField('default_value'):
            default = a.default_value
            default = ('tensor', tensor_util.MakeNdarray(default.tensor).tolist()) if default.HasField('tensor') else \
                default.SerializeToString(deterministic=True)
        allowed = sorted(a.allowed_values.list.type), list(a.allowed_values.list.s)
        return (a.name, a.type, default, a.has_minimum, a.minimum, allowed)
    for what, f in (('input_arg', arg), ('output_arg', arg), ('attr', attr)):
        a, b = [f(x) for x in getattr(got, what)], [f(x) for x in getattr(want, what)]
        if a != b:
            problems += [f'{what} {x} is not TensorFlow\'s' for x in a if x not in b]
            problems += [f'{what} {x} is missing' for x in b if x not in a]
            if sorted(map(str, a)) == sorted(map(str, b)):
                problems.append(f'{what}s stand in another order')
    return problems


# ---- driver ----

def load_cases(path, wanted_ops):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    module.ref, module.resource = ref, resource
    collected, errors = [], []

    def check(op, inputs, attrs=None, **options):
        if wanted_ops and op not in wanted_ops:
            return
        frame = sys._getframe(1)
        where = f'{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}'
        try:
            collected.append(Case(op, inputs, attrs, options, where))
        except Exception as error:  # pylint: disable=broad-except
            errors.append((op, where, f'the case itself is bad: {error!r}'))
    spec.loader.exec_module(module)
    module.cases(check, np.random.default_rng(SEED))
    return collected, errors


def main():
    sys.modules['oracle'] = sys.modules[__name__]  # case files may: from oracle import ref, resource
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--probe', help='libweir_probe.so, built already')
    parser.add_argument('--lib', default=os.path.join(tempfile.gettempdir(), 'weir_probe'))
    parser.add_argument('--list', action='store_true', help='print the ops that the cases cover')
    parser.add_argument('--strict', action='store_true', help='a shape less known than TensorFlow\'s is a failure')
    parser.add_argument('--verbose', action='store_true', help='print every case before it runs')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--max-failures', type=int, default=5, help='printed for each op')
    parser.add_argument('names', nargs='*')
    return run_guarded(parser.parse_args())


def run_guarded(options):
    """Runs in a child, so that a kernel that crashes is reported with its case."""
    current = mmap.mmap(-1, 1 << 16)
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = run(options, current)
        except SystemExit as stop:
            print(stop, file=sys.stderr)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        case = current[:].split(b'\0', 1)[0].decode(errors='replace')
        print(f'CRASH by {signal.Signals(os.WTERMSIG(status)).name} in {case}')
        return 1
    return os.WEXITSTATUS(status)


def run(options, current):

    files = {os.path.basename(f)[len('cases_'):-3]: f for f in sorted(glob.glob(os.path.join(HERE, 'cases_*.py')))}
    for name in options.names:
        if name.endswith('.py'):
            files[os.path.basename(name)[:-3].removeprefix('cases_')] = name
    groups = [n[:-3] if n.endswith('.py') else n for n in options.names]
    groups = [os.path.basename(n).removeprefix('cases_') for n in groups]
    groups = [n for n in groups if n in files]
    wanted_ops = {n for n in options.names if op_def_registry.get(n) is not None}
    unknown = [n for n in options.names if n not in wanted_ops and
               os.path.basename(n).removesuffix('.py').removeprefix('cases_') not in groups]
    if unknown:
        raise SystemExit(f'neither a case file nor an op: {" ".join(unknown)}')

    cases, rows = [], collections.OrderedDict()

    def fail(op, where, text):
        row = rows.setdefault(op, [0, 0, 0])
        row[1] += 1
        if row[1] <= options.max_failures:
            print(f'FAIL {where} {text}', flush=True)

    for group in groups or files:
        try:
            collected, errors = load_cases(files[group], wanted_ops)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            fail(f'cases_{group}', '', 'the case file does not run')
            continue
        cases += collected
        for error in errors:
            fail(*error)
    if options.list:
        print('\n'.join(sorted({c.op for c in cases})))
        return 0

    probe = Probe(options.probe, options.lib, options.threads)
    missing = sorted({c.op for c in cases if not probe.has_op(c.op)})
    for op in sorted({c.op for c in cases} - set(missing)):
        for problem in compare_op_def(probe.op_def(op), op_def_registry.get(op)):
            fail(op, 'definition', f'{op}: {problem}')
    cases = [c for c in cases if c.op not in missing]
    plain = [c for c in cases if not c.has_variables]
    batches = [plain[i:i + BATCH] for i in range(0, len(plain), BATCH)] + [[c] for c in cases if c.has_variables]
    for batch in batches:
        for case, pair in zip(batch, tensorflow_results(batch)):
            row = rows.setdefault(case.op, [0, 0, 0])
            row[0] += 1
            if options.verbose:
                print(f'RUN {case.where} {case.describe()}', flush=True)
            text = f'{case.where} {case.describe()}'.encode()[:len(current) - 1] + b'\0'
            current[:len(text)] = text
            warnings = []
            problems = compare(case, pair, probe.run(case), warnings)
            if options.strict:
                problems += warnings
            row[2] += bool(warnings)
            if problems:
                fail(case.op, case.where, f'{case.describe()}\n    ' + '\n    '.join(problems))
            elif warnings and options.verbose:
                print('    ' + '\n    '.join(warnings))
    failures = sum(r[1] for r in rows.values())
    print(f'{"op":40} {"cases":>6} {"failures":>8} {"weaker shapes":>14}')
    for op in sorted(rows):
        print(f'{op:40} {rows[op][0]:6} {rows[op][1]:8} {rows[op][2]:14}')
    if missing:
        print('not in this build:', ' '.join(missing))
    print(f'{len(rows)} ops, {sum(r[0] for r in rows.values())} cases, {failures} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
