#!/usr/bin/env python3
"""Checks Weir's ops against TensorFlow: the same node, the same inputs, in both.

    oracle.py [--probe FILE | --lib DIR] [--seed N | --fresh] [--rounds N] [--devices LIST] [--strict] [--verbose] [names...]
    oracle.py --record FILE [names...]     also writes the cases and TensorFlow's results
    oracle.py --replay FILE [names...]     the same without TensorFlow
    oracle.py --core COUNTS...             joins what --counts FILE of this and the other programs wrote: see core.py

runs the cases of every cases_*.py beside this file, or of those named: "array" is cases_array.py, "Concat" is one op.
The python that runs it must have tensorflow, but for replaying. FILE is the probe library as CMake builds it (target
weir_probe). Without it the library is built first (build_probe.sh) into DIR, by default weir_probe in the system's folder for
temporary files; building is incremental. --devices cpu,guard runs every case on each of these devices of Weir.

A case file defines one function:

    def cases(check, rng):
        x = rng.standard_normal((2, 3)).astype(np.float32)
        check('Abs', [x])                                  # type and number attributes are inferred from the inputs
        check('ConcatV2', [x, x, np.int32(0)], {'N': 2})   # list arguments are flattened
        check('Cast', [x], {'DstT': np.int64})             # types: numpy, tf.DType or 'bfloat16'
        check('Assign', [ref(x), x])                       # ref variables (ref(None, np.float32): uninitialised)
        check('ReadVariableOp', [resource(x)], {'dtype': np.float32})
        check('Sum', [x, np.int32(7)])                     # both must fail, with the same code

rng is a numpy Generator; its seed is fixed unless --fresh draws one, which is printed. check compares types, shapes and values of
all outputs (NaN equals NaN), the values of variables afterwards, and error codes. Keywords: rtol, atol (by default from the
type), exact=True (bit for bit, also the sign of zero), shapes_only=True (random values), in_turn=True (by the order of elements, which is
another on GPUs: there only shapes), tf_only_fails=True /
weir_only_fails=True for documented differences, tf_shape_differs=True where TensorFlow infers another shape than its kernel gives, needs_value=True where Weir's shape function refuses the node only by the
value of an input, up_to='svd' (or another key of values.DETERMINED: what is compared is made of the outputs, which signs or the
order leave open by themselves), gradient=False (gradients.py leaves the case out), name='text' for the report.
A node that takes a variable must refuse one of another type (INVALID_ARGUMENT), which is tried with each case. With some of each op
every allocation fails in turn: that must be RESOURCE_EXHAUSTED, or change nothing.
The probe also checks each inferred shape against the real one under full, partial and no knowledge, and that overwriting
inputs (buffer forwarding) changes nothing. Inputs are np arrays or scalars, bytes/str (string tensors), ml_dtypes arrays.
"""
import argparse
import collections
import glob
import hashlib
import importlib.util
import json
import os
import secrets
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
if __name__ == '__main__' and '--replay' in sys.argv:
    import replay
    sys.exit(replay.main())
if __name__ == '__main__' and '--core' in sys.argv:
    import core
    sys.exit(core.main())

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, op_def_pb2, tensor_pb2
from tensorflow.python.framework import op_def_registry, tensor_util

import probe as weir_probe
import record
from parts import run_parts
from probe import REF, RESOURCE, TENSOR, Result
from values import compare_values, first_message, write_tensor  # pylint: disable=unused-import  # used by gradients.py

SEED = 20161102
BATCH = 150
EXHAUSTED = 6


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


# ---- TensorFlow ----

def session_config():
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1  # L0: no constant folding either
    return config


def removed_in(case):
    """The version of graphs from which on TensorFlow refuses the op; 0: takes it in all."""
    return case.op_def.deprecation.version


def build_graph(cases, as_placeholders):
    """One GraphDef with the node of case k as 'k', its inputs, and what initialises its variables."""
    graph = graph_pb2.GraphDef()
    graph.versions.producer = tf.compat.v1.GRAPH_DEF_VERSION if hasattr(tf.compat.v1, 'GRAPH_DEF_VERSION') else \
        tf.version.GRAPH_DEF_VERSION
    removed = [removed_in(case) for case in cases if removed_in(case)]
    if removed:
        graph.versions.producer = min(removed) - 1
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
                if as_placeholders == 'of known shapes':
                    source.attr['shape'].shape.CopyFrom(tf.TensorShape(x.shape).as_proto())
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


class Refused(Exception):
    """TensorFlow would not add a node to a graph: by its types, or by its shape function."""


def error_of(error):
    if isinstance(error, Refused):
        return error.args
    if isinstance(error, tf.errors.OpError):
        return error.error_code, error.message
    return 3, str(error)  # graph construction turns INVALID_ARGUMENT into ValueError


def as_array(value, dtype=None):
    """What a session returns, which is bytes for a string scalar: numpy's own strings lose trailing zeros. Numbers of quantised types
    come as integers."""
    array = np.array(value, dtype=object) if isinstance(value, bytes) else np.asarray(value)
    return np.ascontiguousarray(array).view(dtype.as_numpy_dtype).reshape(array.shape) if dtype and dtype.is_quantized else array


def run_tensorflow(cases, as_placeholders=False):
    """Results of all cases in one session, or None when one of them fails."""
    graph_def, feeds, inits = build_graph(cases, as_placeholders)
    graph = tf.Graph()
    with graph.as_default():
        try:
            tf.graph_util.import_graph_def(graph_def, name='')
        except Exception as error:  # pylint: disable=broad-except
            raise Refused(*error_of(error)) from error
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
            outputs = [None if d in (tf.resource, tf.variant) else as_array(next(got), d) for d in case.output_dtypes]
            shapes = [None if t.shape.rank is None else t.shape.as_list() for t in graph.get_operation_by_name(f'n{k}').outputs]
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


def is_refused_by_shapes(cases):
    """Whether TensorFlow refuses to build the graph also without the values of the inputs."""
    graph_def, _, _ = build_graph(cases, 'of known shapes')
    try:
        with tf.Graph().as_default():
            tf.graph_util.import_graph_def(graph_def, name='')
    except Exception:  # pylint: disable=broad-except
        return True
    return False


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
        early = 0 if not isinstance(error, Refused) else 2 if is_refused_by_shapes(cases) else 1
        whole = Result(*error_of(error), None, None, None, early)
    try:
        kernel = run_tensorflow(cases, as_placeholders=True)[0]
    except Exception as error:  # pylint: disable=broad-except
        kernel = Result(*error_of(error), None, None, None)
    return [(whole, kernel)]


# ---- definitions ----

# Types that definitions allow beyond TensorFlow's: of nodes that Weir's own passes make, and no other process sees.
MORE_TYPES = {'_FusedConv2D': {tf.bfloat16.as_datatype_enum}}


def compare_op_def(got, want):
    """What differs between two OpDefs, documentation apart."""
    problems = []
    more = MORE_TYPES.get(want.name, set())
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
        allowed = sorted(set(a.allowed_values.list.type) - more), list(a.allowed_values.list.s)
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

def load_cases(path, wanted_ops, seed=SEED):
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
    module.cases(check, np.random.default_rng(seed))
    return collected, errors


def choose(names):
    """The case files and the ops that |names| mean."""
    files = {os.path.basename(f)[len('cases_'):-3]: f for f in sorted(glob.glob(os.path.join(HERE, 'cases_*.py')))}
    groups, wanted_ops = [], set()
    for name in names:
        group = os.path.basename(name).removesuffix('.py').removeprefix('cases_')
        if name.endswith('.py'):
            files[group] = name
        if group in files:
            groups.append(group)
        elif op_def_registry.get(name) is not None:
            wanted_ops.add(name)
        else:
            raise SystemExit(f'neither a case file nor an op: {name}')
    return {g: files[g] for g in groups or files}, wanted_ops


class Report:
    def __init__(self, max_failures):
        self.rows = {}  # op: [cases, distinct ones, failures, shapes weaker than TensorFlow's]
        self.max_failures = max_failures

    def row(self, op):
        return self.rows.setdefault(op, [0, 0, 0, 0])

    def fail(self, op, where, text):
        row = self.row(op)
        row[2] += 1
        if row[2] <= self.max_failures:
            print(f'FAIL {where} {text}', flush=True)

    def add(self, rows):
        for op, row in rows.items():
            self.rows[op] = [a + b for a, b in zip(self.row(op), row)]

    def finish(self, missing=()):
        print(f'{"op":40} {"cases":>6} {"distinct":>8} {"failures":>8} {"weaker shapes":>14}')
        for op in sorted(self.rows):
            cases, distinct, failures, weaker = self.rows[op]
            print(f'{op:40} {cases:6} {distinct:8} {failures:8} {weaker:14}')
        if missing:
            print('not in this build:', ' '.join(missing))
        failures = sum(r[2] for r in self.rows.values())
        print(f'{len(self.rows)} ops, {sum(r[0] for r in self.rows.values())} cases, {failures} failures', flush=True)
        return 1 if failures else 0


def fingerprint(case):
    """Equal for equal cases."""
    h = hashlib.sha1(case.node.SerializeToString(deterministic=True))
    for x in probe_inputs(case):
        h.update(b'%d %d %d ' % (x.kind, x.dtype, len(x.proto)) + x.proto)
    return h.digest()


def load(options, report):
    files, wanted_ops = choose(options.names)
    cases = []
    for group, path in files.items():
        try:
            collected, errors = load_cases(path, wanted_ops, options.seed)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            report.fail(f'cases_{group}', '', 'the case file does not run')
            continue
        cases += collected
        for error in errors:
            report.fail(*error)
    return cases


def depends_on_files(case):
    """Files of another machine cannot be replayed."""
    folder = tempfile.gettempdir().encode() + b'/'
    return any(folder in x.proto for x in probe_inputs(case)) or folder in case.node.SerializeToString()


def add_record(writer, case, pair, types, **more):
    """A pair without results is of a case that ends TensorFlow."""
    def result(r):
        return r and {'code': r.code, 'message': first_message(r.message)[:400 if case.options.get('says') else 200],
                      'early': r.early, 'outputs': [writer.array(a) for a in r.outputs or []], 'shapes': r.shapes or [],
                      'variables': {i: writer.array(a) for i, a in (r.variables or {}).items()}}
    writer.add({'op': case.op, 'where': case.where, 'text': case.describe(),
                'node': writer.blob(case.node.SerializeToString()),
                'inputs': [[x.kind, x.dtype, writer.blob(x.proto)] for x in probe_inputs(case)],
                'options': record.plain(case.options), 'types': types, 'whole': result(pair[0]), 'kernel': result(pair[1]), **more})


def make_record(writer, case, pair):
    add_record(writer, case, pair, [t.as_datatype_enum for t in case.output_dtypes or []],
               typed=typed_variables(case, pair), exhausted=is_exhausted(case, pair))


def probe_inputs(case):
    """What the probe takes for the inputs of |case|."""
    out = []
    for x in case.inputs:
        if isinstance(x, Variable):
            proto = b'' if x.value is None else write_tensor(x.value)
            out.append(weir_probe.Input(x.kind, x.dtype.as_datatype_enum, proto))
        else:
            out.append(weir_probe.Input(TENSOR, 0, write_tensor(x)))
    return out


def run_weir(options, probe, current, case):
    """What each device gave."""
    results = []
    for device in range(probe.device_count):
        text = f'{case.where} {case.describe()} on device {device}'
        current.set(text)
        if options.verbose:
            print('RUN', text, flush=True)
        results.append(probe.run(case.node.SerializeToString(), probe_inputs(case), device))
    return results


def tensorflow_pairs(cases, weir):
    """tensorflow_results(), of the cases that fail in Weir one by one: where both agree, no batch has to be halved."""
    alone = [any(result.code for result in got[0][:2] if result) for got in weir]
    together = iter(tensorflow_results([case for case, is_alone in zip(cases, alone) if not is_alone]))
    return [tensorflow_results([case])[0] if is_alone else next(together) for case, is_alone in zip(cases, alone)]


def choose_exhausted(cases):
    """Says of which cases each allocation is to fail in turn: some of each op, which differ in the types and ranks of their inputs."""
    kinds = collections.defaultdict(set)
    for case in cases:
        values = [x.value if isinstance(x, Variable) else x for x in case.inputs]
        kind = tuple(None if x is None else (str(x.dtype), x.ndim, x.size > 0) for x in values)
        case.is_exhausted = kind not in kinds[case.op] and len(kinds[case.op]) < EXHAUSTED
        kinds[case.op].add(kind)


def is_exhausted(case, pair):
    return case.is_exhausted and not pair[0].code and not case.options.get('weir_only_fails')


def typed_variables(case, pair):
    """The resource variables of a case that TensorFlow takes, if an attribute says which type they have."""
    types = [tf.as_dtype(v) for v in case.attrs.values() if isinstance(v, (tf.DType, np.dtype, type))]
    return [i for i, x in enumerate(case.inputs)
            if not pair[0].code and isinstance(x, Variable) and x.kind == RESOURCE and x.value is not None and x.dtype in types]


def check_case(options, report, probe, case, pair, weir):
    row = report.row(case.op)
    row[0] += 1
    warnings = []
    types = [t.as_datatype_enum for t in case.output_dtypes or []]
    problems = weir_probe.compare(case.options, types, pair, weir[0], warnings)
    for device, got in enumerate(weir[1:], 1):
        problems += [f'on device {device}: {p}' for p in weir_probe.compare(case.options, types, pair, got, [])]
    node, inputs = case.node.SerializeToString(), probe_inputs(case)
    problems += weir_probe.check_mistyped(probe, node, inputs, typed_variables(case, pair))
    if is_exhausted(case, pair) and not problems:
        last = probe.device_count - 1
        problems += weir_probe.check_exhausted(probe, node, inputs, weir[last][1], not case.options.get('shapes_only'), last)
    if options.strict:
        problems += warnings
    row[3] += bool(warnings)
    if problems:
        report.fail(case.op, case.where, f'{case.describe()}\n    ' + '\n    '.join(problems))
    elif warnings and options.verbose:
        print('    ' + '\n    '.join(warnings))


def run(options, part, current):
    """Runs every |options.jobs|-th batch from |part| on: the rows of the report, and ops that this build lacks."""
    report = Report(options.max_failures)
    cases = load(options, report if part == 0 else Report(0))
    probe = weir_probe.Probe(options.probe, options.lib, options.threads, options.devices)
    missing = sorted({c.op for c in cases if not probe.has_op(c.op)})
    cases = [c for c in cases if c.op not in missing]
    if part == 0:
        for op in sorted({c.op for c in cases}):
            for problem in compare_op_def(op_def_pb2.OpDef.FromString(probe.op_def(op)), op_def_registry.get(op)):
                report.fail(op, 'definition', f'{op}: {problem}')
        for op, _ in {(c.op, fingerprint(c)) for c in cases}:
            report.row(op)[1] += 1
    batches = []
    for kind in sorted({(c.has_variables, removed_in(c)) for c in cases}):
        chosen = [c for c in cases if (c.has_variables, removed_in(c)) == kind]
        size = BATCH // 5 if kind[0] else BATCH
        batches += [chosen[i:i + size] for i in range(0, len(chosen), size)]
    writer = record.Writer('oracle', options.seed) if options.record else None
    choose_exhausted(cases)
    for batch in batches[part::options.jobs]:
        weir = [run_weir(options, probe, current, case) for case in batch]
        for case, pair, got in zip(batch, tensorflow_pairs(batch, weir), weir):
            check_case(options, report, probe, case, pair, got)
            if writer and not depends_on_files(case):
                make_record(writer, case, pair)
    if writer:
        writer.save(options.record)
    return [report.rows, missing]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--probe', help='libweir_probe.so, built already')
    parser.add_argument('--lib', default=os.path.join(tempfile.gettempdir(), 'weir_probe'))
    parser.add_argument('--devices', metavar='LIST', default='cpu', help='of Weir: cpu,guard')
    parser.add_argument('--list', action='store_true', help='print the ops that the cases cover')
    parser.add_argument('--strict', action='store_true', help='a shape less known than TensorFlow\'s is a failure')
    parser.add_argument('--verbose', action='store_true', help='print every case before it runs')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--max-failures', type=int, default=5, help='printed for each op')
    parser.add_argument('--seed', type=int, default=SEED)
    parser.add_argument('--fresh', action='store_true', help='draw the seed')
    parser.add_argument('--rounds', type=int, default=1, help='each with the next seed')
    parser.add_argument('--record', metavar='FILE', help='write the cases and TensorFlow\'s results')
    parser.add_argument('--counts', metavar='FILE', help='write {op: [distinct cases, failures]} as JSON')
    parser.add_argument('names', nargs='*')
    return parser.parse_args()


def main():
    sys.modules['oracle'] = sys.modules[__name__]  # case files may: from oracle import ref, resource
    options = parse_arguments()
    if options.list:
        print('\n'.join(sorted({c.op for c in load(options, Report(5))})))
        return 0
    if options.fresh:
        options.seed = secrets.randbits(31)
    if options.record:
        options.jobs = options.rounds = 1
    code = 0
    for options.seed in range(options.seed, options.seed + options.rounds):
        print(f'seed {options.seed}', flush=True)
        report, missing = Report(options.max_failures), []
        for result in run_parts(options.jobs, lambda part, current: run(options, part, current)):
            code |= result is None
            rows, missing = result or ({}, missing)
            report.add(rows)
        code |= report.finish(missing)
    if options.counts:
        with open(options.counts, 'w') as f:
            json.dump({op: [row[1], row[2]] for op, row in report.rows.items()}, f)
    return code


if __name__ == '__main__':
    sys.exit(main())
