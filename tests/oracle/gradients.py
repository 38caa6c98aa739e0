#!/usr/bin/env python3
"""Checks the gradients of Weir's ops against TensorFlow's, and numerically.

    gradients.py [--lib FILE] [--seed N] [--quota N] [--jobs N] [--devices LIST] [--verbose] [ops...]

The cases are drawn from the cases_*.py beside this file and from gradient_cases.py. Each op's node stands in a graph of
placeholders; the same GraphDef goes to TensorFlow and to libweir, and both add gradients of its floating outputs with random
gradients from above, then gradients of these. What is compared:
  - first and second derivatives with TensorFlow's, under full knowledge of shapes and under none, and which inputs have none;
  - first derivatives of float64 and complex128 nodes with central differences of the forward node in Weir;
  - slices: what is sparse in TensorFlow is sparse in Weir.
Where TensorFlow has no gradient nothing is compared; where its gradient fails, Weir's is compared numerically, or may fail too.
At points where an op is not smooth, or where TensorFlow defines the gradient to be something else, the numbers cannot agree:
NOT_NUMERIC lists these ops with the reason. --devices cpu,guard computes all on the last of these devices instead.
The python that runs it must have tensorflow.
"""
import argparse
import collections
import glob
import json
import mmap
import os
import re
import secrets
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import oracle  # pylint: disable=wrong-import-position  # sets TensorFlow's environment
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2

tf.get_logger().setLevel('ERROR')
import gradient_cases
import libweir

BATCH = 60
MAX_ELEMENTS = 3000       # of the inputs of a case
STATIC, DYNAMIC = 'static', 'dynamic'
# Cases an op, by the type of its floating inputs; second derivatives of the first SECOND of each op.
QUOTA = {'float64': 5, 'float32': 2, 'complex128': 2, 'complex64': 1, 'float16': 1}
SECOND = 4
# Relative tolerance by type; of the tensor's largest element, or of 0.01, a tenth of it as absolute tolerance: where summands of about 1
# cancel, what is left is their rounding.
TOLERANCE = {'float64': 1e-9, 'float32': 1e-4, 'complex128': 1e-9, 'complex64': 1e-4, 'float16': 3e-2, 'bfloat16': 2e-1}
# Ops whose gradient TensorFlow computes with less than the type's precision.
COARSE = {
    'ResizeBilinear': 'sums in float, also for float64; Weir in the type',
    'ResizeBilinearGrad': 'weights in float',
    'ResizeBicubic': 'products in float, also for float64',
    'CropAndResize': 'weights in float',
    'ImageProjectiveTransformV2': 'blends in float', 'ImageProjectiveTransformV3': 'blends in float',
    'MatrixSolveLs': 'the regularizer is a double of any matrices',
    'CTCLoss': 'takes logarithms in float',
}
# Ops whose gradient multiplies rounding, and by what: tolerances are ten times as wide.
AMPLIFIES = {
    'SelfAdjointEigV2': 'one over the distance of neighbouring eigenvalues',
    'Svd': 'the same of singular values',
    'FakeQuantWithMinMaxVars': 'sums all that is clipped, in float, which may cancel',
    'FakeQuantWithMinMaxVarsPerChannel': 'the same'}
NOT_NUMERIC = {
    'StopGradient': 'no gradient by definition',
    'CTCLoss': 'no gradient of the gradient that it makes',
    'Cholesky': 'reads one triangle, but the gradient is that of a symmetric matrix',
    'Betainc': 'no gradient of the first two arguments',
    'SparseSoftmax': 'the gradient takes the indices for sorted, in TensorFlow too',
    'MatrixSolveLs': 'no gradient of the regularizer',
    'SelfAdjointEigV2': 'reads one triangle, whose diagonal has no imaginary part',
    'RandomGamma': 'a draw that is rejected is a jump',
    'StatelessParameterizedTruncatedNormal': 'a draw keeps its share below it, not its random numbers',
    'StatelessRandomGammaV2': 'a draw that is rejected is a jump',
    'StatelessRandomGammaV3': 'a draw that is rejected is a jump',
    'Qr': 'jumps where a column needs no reflection',
    'FloorMod': 'jumps wherever the quotient changes, and differences step across',
    **{op: 'in TensorFlow short diagonals stand elsewhere in the gradient'
       for op in ('MatrixDiagV2', 'MatrixDiagPartV2', 'MatrixSetDiagV2')},
    'MatrixDiagV3': 'no gradient of the padding value',
    'MatrixDiagPartV3': 'no gradient of the padding value',
    'PreventGradient': 'an error by definition',
    'CheckNumerics': 'the gradient is checked too',
    'FusedBatchNorm': 'gradients of the moments are ignored',
    'FusedBatchNormV2': 'gradients of the moments are ignored',
    'FusedBatchNormV3': 'gradients of the moments are ignored',
    'MaxPoolGrad': 'chooses elements by comparing inputs',
    'MaxPoolGradV2': 'chooses elements by comparing inputs',
    'MaxPoolGradGrad': 'chooses elements by comparing inputs',
    'PadV2': 'no gradient of the padding value',
    'Polygamma': 'no gradient of the order',
    'Zeta': 'no gradient of the exponent',
    'NextAfter': 'steps',
    'SoftmaxCrossEntropyWithLogits': 'no gradient of the second output by the labels',
}
# TensorFlow's gradients of these do not conjugate, or are zero.
NOT_NUMERIC_COMPLEX = {'Cumprod', 'EuclideanNorm', 'LogMatrixDeterminant', 'MatrixDeterminant', 'MatrixSquareRoot', 'MulNoNan', 'SegmentProd', 'Sign', 'SquaredDifference', 'Svd',
                       'TridiagonalSolve', 'UnsortedSegmentProd', 'Xdivy'}

STEP = 1e-5  # of differences
# Of these ties have no derivative, nor have values that a step brings past each other one that differences can tell.
SELECTING = {'Max', 'MaxPool', 'MaxPoolV2', 'MaxPoolWithArgmax', 'Min', 'SegmentMax', 'SegmentMin', 'TopK', 'TopKV2',
             'UnsortedSegmentMax', 'UnsortedSegmentMin'}
# Of these output 0 alone is determined, vectors up to signs or phases: whole graphs test what comes through those.
FIRST_OUTPUT = {'SelfAdjointEigV2', 'Svd'}
NOT_SECOND = {op: 'TensorFlow takes the mean within the variance for a constant: right for the first derivative alone'
              for op in ('FusedBatchNormGrad', 'FusedBatchNormGradV2', 'FusedBatchNormGradV3')}


def is_floating(array):
    return array.dtype.kind in 'fc' or array.dtype.name == 'bfloat16'


# ---- cases ----

class Check:
    """An op's node with inputs, and random gradients for its outputs (dys) and for those of its inputs (ddxs)."""

    def __init__(self, case, rng, outputs):
        self.case, self.op, self.rng = case, case.op, rng
        self.inputs = case.inputs
        self.floating = [i for i, x in enumerate(self.inputs) if is_floating(x)]
        self.integer = [i for i, x in enumerate(self.inputs) if x.dtype.kind in 'iu']
        self.outputs = [j for j, y in enumerate(outputs) if is_floating(y) and not (j and self.op in FIRST_OUTPUT)]
        self.dys = {j: self.like(outputs[j]) for j in self.outputs}
        self.ddxs = {i: self.like(self.inputs[i]) for i in self.floating}
        self.with_second = False
        self.ranks_known = bool(rng.integers(2))

    def like(self, array):
        x = self.rng.uniform(-1, 1, array.shape)
        if array.dtype.kind == 'c':
            x = x + 1j * self.rng.uniform(-1, 1, array.shape)
        return np.asarray(x).astype(array.dtype)

    def ys(self, mode):
        """Which outputs gradients come into: with dynamic shapes the first alone, so that the others get zeros."""
        return self.outputs if mode == STATIC else self.outputs[:1]

    def is_numeric(self):
        wide = all(self.inputs[i].dtype.name in ('float64', 'complex128') for i in self.floating)
        wide = wide and not (self.op in SELECTING and any((np.diff(np.sort(self.inputs[i], axis=None)) <= 2 * STEP).any()
                                                          for i in self.floating))
        is_complex = any(self.inputs[i].dtype.kind == 'c' for i in self.floating)
        return wide and self.op not in NOT_NUMERIC and not (is_complex and self.op in NOT_NUMERIC_COMPLEX) and \
            self.case.options.get('numeric', True) and \
            all(d.dtype.name in ('float64', 'complex128') for d in self.dys.values())


def floating_name(case):
    names = [x.dtype.name for x in case.inputs if is_floating(x)]
    return names[0] if names else None


def is_usable(case):
    if case.has_variables or case.options.get('name') == 'specials' or not case.options.get('gradient', True):
        return False
    if case.op.startswith('FusedBatchNormGrad') and case.inputs[0].size == 0:
        return False  # TensorFlow's mean of nothing is NaN, Weir's gradient 0
    floats = [x for x in case.inputs if is_floating(x)]
    return bool(floats) and sum(x.size for x in case.inputs) <= MAX_ELEMENTS and \
        all(np.isfinite(x.astype(np.complex128)).all() for x in floats)


def widen(case):
    """The case in float64, or None."""
    def attr(value):
        if isinstance(value, list):
            return [attr(v) for v in value]
        is_type = isinstance(value, (tf.DType, np.dtype, type))
        return tf.float64 if is_type and tf.as_dtype(value) == tf.float32 else value
    inputs = [x.astype(np.float64) if x.dtype == np.float32 else x for x in case.inputs]
    try:
        return oracle.Case(case.op, inputs, {k: attr(v) for k, v in case.attrs.items()}, case.options, case.where)
    except Exception:  # pylint: disable=broad-except
        return None


def collect(options):
    """{op: cases}, ours first, then those of the op tests in random order."""
    sys.modules['oracle'] = oracle
    ours, _ = oracle.load_cases(gradient_cases.__file__, set(options.ops), options.seed)
    drawn = []
    for path in sorted(glob.glob(os.path.join(HERE, 'cases_*.py'))):
        cases, _ = oracle.load_cases(path, set(options.ops), options.seed)
        drawn += [c for c in cases if is_usable(c)]
    by_op = collections.defaultdict(list)
    for case in drawn:
        by_op[case.op].append(case)
    rng = np.random.default_rng(options.seed)
    for op in sorted(by_op):
        rng.shuffle(by_op[op])
    return ours, by_op


def forward(lib, case):
    """The outputs of the node in Weir, or None when it fails: errors are the op tests' business."""
    graph_def, _, _ = oracle.build_graph([case], False)
    try:
        graph = libweir.Graph(lib, graph_def)
    except libweir.Error:
        return None
    try:
        count = graph.c.weir_node_output_count(libweir.ctypes.c_void_p(graph.edge('n0').node))
        return graph.run([graph.edge(f'n0:{i}') for i in range(count)])
    except libweir.Error:
        return None
    finally:
        graph.close()


def choose(lib, options):
    """The checks to run: of each op as many cases of each type as the quota says."""
    ours, by_op = collect(options)
    known = lib.ops()
    checks, seen = [], collections.Counter()
    rng = np.random.default_rng(options.seed)

    def take(case):
        outputs = forward(lib, case)
        if outputs is None or not any(is_floating(y) for y in outputs) or any(y.dtype == object for y in outputs):
            return False
        check = Check(case, rng, outputs)
        check.with_second = (case in ours or seen[case.op] < SECOND) and \
            case.op not in NOT_SECOND and case.options.get('second', True)
        seen[case.op] += 1
        checks.append(check)
        return True

    for case in ours:
        if case.op in known and not take(case):
            raise ValueError(f'{case.where} {case.describe()}: the node itself fails in Weir')
    for op in sorted(set(by_op) & set(known)):
        left = {name: n * options.quota for name, n in QUOTA.items()}
        for case in by_op[op]:
            name = floating_name(case)
            wide = widen(case) if name == 'float32' and left['float64'] > 0 else None
            if wide is not None and take(wide):
                left['float64'] -= 1
            if left.get(name, 0) > 0 and take(case):
                left[name] -= 1
            if not any(left.values()):
                break
    return checks


# ---- the forward graph ----

def add_placeholder(graph, name, array, check, mode):
    node = graph.node.add(name=name, op='Placeholder')
    node.attr['dtype'].type = tf.as_dtype(array.dtype).as_datatype_enum
    shape = tf.TensorShape(array.shape)
    if mode == DYNAMIC:
        shape = tf.TensorShape([None] * array.ndim) if check.ranks_known else tf.TensorShape(None)
    node.attr['shape'].shape.CopyFrom(shape.as_proto())


def build(checks, mode):
    """A GraphDef: the node of check k is 'k', its inputs 'k_in0'..., gradients from above 'k_dy0'..., 'k_ddx0'...; and feeds."""
    graph = graph_pb2.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    feeds = {}
    for k, check in enumerate(checks):
        node = node_def_pb2.NodeDef()
        node.CopyFrom(check.case.node)
        node.name = f'n{k}'
        for i, x in enumerate(check.inputs):
            name = f'n{k}_in{i}'
            node.input.append(name)
            if x.dtype == object or (mode == STATIC and i not in check.floating):
                source = graph.node.add(name=name, op='Const')
                source.attr['dtype'].type = (tf.string if x.dtype == object else tf.as_dtype(x.dtype)).as_datatype_enum
                source.attr['value'].tensor.CopyFrom(oracle.to_proto(x))
            else:
                add_placeholder(graph, name, x, check, mode)
                feeds[name] = x
        graph.node.append(node)
        for kind, values in (('dy', check.dys), ('ddx', check.ddxs)):
            for i, value in values.items():
                add_placeholder(graph, f'n{k}_{kind}{i}', value, check, mode)
                feeds[f'n{k}_{kind}{i}'] = value
    return graph, feeds


def names_of(k, check, mode):
    ys = [f'n{k}:{j}' for j in check.ys(mode)]
    dys = [f'n{k}_dy{j}:0' for j in check.ys(mode)]
    xs = [f'n{k}_in{i}:0' for i in check.floating + check.integer]
    return ys, dys, xs


# ---- both sides ----

def add_tensorflow(graph, k, check, mode):
    """Two lists of tensors: first and second derivatives, None where there is none; the second None where TensorFlow has none."""
    ys, dys, xs = ([graph.get_tensor_by_name(n) for n in names] for names in names_of(k, check, mode))
    first = tf.compat.v1.gradients(ys, xs, grad_ys=dys)
    sparse = [isinstance(g, tf.IndexedSlices) for g in first]
    first = [None if g is None else tf.convert_to_tensor(g) for g in first]
    second = None
    if check.with_second:
        tops = [(g, graph.get_tensor_by_name(f'n{k}_ddx{i}:0')) for g, i in zip(first, check.floating) if g is not None]
        if tops:
            try:
                second = tf.compat.v1.gradients([g for g, _ in tops], xs[:len(check.floating)] + dys,
                                                grad_ys=[d for _, d in tops])
                second = [None if g is None else tf.convert_to_tensor(g) for g in second]
            except (LookupError, ValueError, TypeError, NotImplementedError, RuntimeError):
                second = None
    return first, second, sparse


def run_tensorflow(checks, mode):
    """One (first, second, sparse) of arrays a check; a text where TensorFlow has no answer."""
    graph_def, feeds = build(checks, mode)
    graph, made = tf.Graph(), []
    with graph.as_default():
        try:
            tf.graph_util.import_graph_def(graph_def, name='')
        except Exception as error:  # pylint: disable=broad-except
            if len(checks) == 1:
                return [f'import: {error}']
            return split(run_tensorflow, checks, mode)
        for k, check in enumerate(checks):
            try:
                made.append(add_tensorflow(graph, k, check, mode))
            except Exception as error:  # pylint: disable=broad-except
                made.append(f'{type(error).__name__}: {error}')
    with tf.compat.v1.Session(graph=graph, config=oracle.session_config()) as session:
        feeds = {n + ':0': v for n, v in feeds.items()}
        values = run_made(made, lambda tensors: session.run(tensors, feeds), tf.errors.OpError)
    if values is None:
        return split(run_tensorflow, checks, mode)

    def take(tensors):
        return None if tensors is None else [None if t is None else np.asarray(next(values)) for t in tensors]
    return [m if isinstance(m, str) else (take(m[0]), take(m[1]), m[2]) for m in made]


def run_made(made, run_all, error_class):
    """Values of all first and second derivatives in |made|, in order. Where a node fails, its second derivatives are left out,
    then all, and the rest runs again. None: nobody knows which one failed."""
    while True:
        flat = [t for m in made if not isinstance(m, str) for t in m[0] + (m[1] or []) if t is not None]
        try:
            return iter(run_all(flat) if flat else [])
        except error_class as error:
            text = oracle.first_message(error.message)
            name = getattr(getattr(error, 'op', None), 'name', '')  # of TensorFlow's errors
            found = re.search(r"(?:^|[/' ])n(\d+)(?:_grad|_in\d+|/|'|}| |_\d+_grad)", f'{name} {error.message}')
            k = 0 if len(made) == 1 else int(found.group(1)) if found else None
            if k is None or isinstance(made[k], str):
                return None
            made[k] = f'run: {text}' if made[k][1] is None else (made[k][0], None, *made[k][2:])


def split(run, checks, *rest):
    half = len(checks) // 2
    return run(checks[:half], *rest) + run(checks[half:], *rest)


def add_weir(graph, k, check, mode, want):
    ys, dys, xs = ([graph.edge(n) for n in names] for names in names_of(k, check, mode))
    first = graph.gradients(ys, xs, dys)
    second, problems = None, []
    if any(want[2]):
        sparse = graph.gradients_sparse(ys, xs, dys)
        problems = [f'the gradient of input {i} is dense, in TensorFlow it is slices'
                    for i, (g, s) in enumerate(zip(sparse, want[2])) if s and g.values.node and not g.indices.node]
    if want[1] is not None:
        tops = [(g, graph.edge(f'n{k}_ddx{i}')) for g, i in zip(first, check.floating) if g is not None]
        if tops:
            second = graph.gradients([g for g, _ in tops], xs[:len(check.floating)] + dys, [d for _, d in tops])
    return first, second, problems


def run_weir(checks, wants, lib, mode, note, where):
    """One (first, second, problems, numeric) a check; a text where it fails."""
    graph_def, feeds = build(checks, mode)
    for k, check in enumerate(checks):
        note(check, mode)
    try:
        graph = libweir.Graph(lib, graph_def, passes=mode == DYNAMIC, **where)
    except libweir.Error as error:
        return [f'import: {error}'] if len(checks) == 1 else split_weir(checks, wants, lib, mode, note, where)
    try:
        made = []
        for k, (check, want) in enumerate(zip(checks, wants)):
            note(check, mode)
            if isinstance(want, str) and want.startswith('LookupError'):
                made.append(want)
                continue
            try:
                if isinstance(want, str):
                    want = None, None, []
                made.append(add_weir(graph, k, check, mode, want))
            except libweir.Error as error:
                made.append(str(error))
        if len(checks) > 1:
            note(None, mode)
        values = run_made(made, lambda edges: graph.run(edges, feeds), libweir.Error)
        if values is None:
            return split_weir(checks, wants, lib, mode, note, where)

        def take(edges):
            return None if edges is None else [None if e is None else next(values) for e in edges]
        results = [m if isinstance(m, str) else [take(m[0]), take(m[1]), m[2]] for m in made]
        if mode == STATIC:
            for k, problem in compare_numerically(graph, checks, results, feeds).items():
                results[k][2].append(problem)
        return results
    finally:
        graph.close()


def split_weir(checks, wants, lib, mode, note, where):
    half = len(checks) // 2
    return run_weir(checks[:half], wants[:half], lib, mode, note, where) + \
        run_weir(checks[half:], wants[half:], lib, mode, note, where)


# ---- numerically ----

def inner(a, b):
    """The real inner product that TensorFlow's gradients of complex values are defined by."""
    return float(np.sum((np.conj(a) * b).real)) if a.dtype.kind == 'c' else float(np.sum(a * b))


def compare_numerically(graph, checks, results, feeds):
    """{k: problem}: directional derivatives along random directions, of all checks in one run."""
    chosen = [k for k, c in enumerate(checks) if c.is_numeric() and not isinstance(results[k], str) and
              any(g is not None for g in results[k][0])]
    fetches = [(k, j) for k in chosen for j in checks[k].ys(STATIC)]
    edges = [graph.edge(f'n{k}:{j}') for k, j in fetches]
    problems, step = {}, STEP
    for _ in range(2):
        directions = {(k, i): checks[k].like(checks[k].inputs[i]) for k in chosen for i in checks[k].floating}
        losses, noise = {}, collections.Counter()
        for way in (-1, 0, 1):
            moved = dict(feeds)
            for (k, i), v in directions.items():
                moved[f'n{k}_in{i}'] = checks[k].inputs[i] + way * step * v
            losses[way] = collections.Counter()
            for (k, j), y in zip(fetches, graph.run(edges, moved)):
                losses[way][k] += inner(checks[k].dys[j], y)
                noise[k] += float(np.nansum(np.abs(checks[k].dys[j] * y))) * 1e-15 / step
        for k in chosen:
            analytic, scale = 0.0, 1e-2
            for i, g in zip(checks[k].floating, results[k][0]):
                if g is not None:
                    analytic += inner(g, directions[k, i])
                    scale += float(np.sum(np.abs(g) * np.abs(directions[k, i])))
            # At a kink, and where the function bends within a step, the slopes of the two sides enclose the gradient.
            sides = sorted([(losses[0][k] - losses[-1][k]) / step, (losses[1][k] - losses[0][k]) / step])
            off = max(sides[0] - analytic, analytic - sides[1])
            if np.isfinite(sides + [analytic]).all() and off > 1e-4 * scale + noise[k]:
                problems[k] = f'numerically {sides[0]:.8g} to {sides[1]:.8g} along a direction, by the gradient {analytic:.8g}'
    return problems


# ---- comparison ----

def tolerance(want, op):
    """Options of compare_values()."""
    rtol = TOLERANCE.get(want.dtype.name, 0)
    if rtol and op in COARSE:
        rtol = max(rtol, TOLERANCE['float32'])
    if op in AMPLIFIES:
        rtol *= 10
    return {'rtol': rtol, 'atol': rtol * max(largest(want), 1e-2) / 10}


def largest(array):
    """The largest absolute value of a finite element."""
    return float(np.abs(array[np.isfinite(array)]).astype(np.float64).max(initial=0))


def compare_arrays(got, want, op):
    if (got is None) != (want is None):
        return 'there is none' if got is None else f'there is one, not in TensorFlow (which has None): {got.ravel()[:4]}'
    if got is None:
        return None
    allowed = tolerance(want, op)
    problem = oracle.compare_values(got, want, allowed)
    if problem and want.dtype == np.float16 and got.dtype == want.dtype and got.shape == want.shape:
        # TensorFlow computes in half: intermediate values overflow, and results round to the other side of a kink.
        off = np.abs(got.astype(np.float32) - want) > \
            allowed['rtol'] * (np.abs(want.astype(np.float32)) + 0.1 * min(largest(want), 1e3))
        if np.sum(off & np.isfinite(want)) <= max(1, got.size // 100):
            return None
    return problem


def compare(check, mode, want, got):
    if isinstance(want, str):
        return []
    if isinstance(got, str):
        return [f'{mode}: {got}']
    problems = list(got[2])
    order = check.floating + check.integer
    for i, g, w in zip(order, got[0], want[0]):
        # Some of TensorFlow's gradients give zeros for integers.
        problem = compare_arrays(g, None if i in check.integer else w, check.op)
        # Of outputs into which no gradient comes Weir makes no zeros.
        if problem and g is None and not np.any(w) and len(check.ys(mode)) < len(check.outputs):
            problem = None
        if problem:
            problems.append(f'gradient of input {i}: {problem}')
    if want[1] is not None and not problems:
        what = [f'input {i}' for i in check.floating] + [f'dy {j}' for j in check.ys(mode)]
        for name, g, w in zip(what, got[1] or [None] * len(want[1]), want[1]):
            problem = compare_arrays(g, w, check.op)
            # Zeros that one side knows to be zeros and the other does not are the same.
            if problem and (g is None) != (w is None) and not np.any(g if w is None else w):
                problem = None
            if problem:
                problems.append(f'second derivative, of {name}: {problem}')
    return [f'{mode}: {p}' for p in problems]


# ---- driver ----

class Report:
    def __init__(self, options):
        self.rows = collections.OrderedDict()   # op: [cases, second derivatives, numeric, failures, without answer]
        self.options = options

    def row(self, op):
        return self.rows.setdefault(op, [0, 0, 0, 0, 0])

    def fail(self, op, text):
        row = self.row(op)
        row[3] += 1
        if row[3] <= self.options.max_failures:
            print(f'FAIL {text}', flush=True)

    def add(self, check, mode, want, got):
        row = self.row(check.op)
        if isinstance(want, str):
            row[4] += 1
            is_refused = isinstance(got, str) and got.startswith('12: ')  # UNIMPLEMENTED
            if want.startswith('NotImplementedError') and not is_refused and not (mode == STATIC and check.is_numeric()):
                shown = got if isinstance(got, str) else 'there is a gradient'
                self.fail(check.op, f'{check.case.where} {check.case.describe()}\n    {mode}: {shown}\n    TensorFlow: {want.splitlines()[0]}')
            elif not isinstance(got, str) and got[2]:
                self.fail(check.op, f'{check.case.where} {check.case.describe()}\n    {mode}: {got[2][0]}\n    '
                          f'TensorFlow: {want.splitlines()[0]}')
            if self.options.verbose:
                print(f'NONE {check.case.where} {check.case.describe()} {mode}: {want.splitlines()[0][:200]}')
            return
        row[0] += 1
        row[1] += want[1] is not None
        row[2] += mode == STATIC and check.is_numeric()
        problems = compare(check, mode, want, got)
        if problems:
            self.fail(check.op, f'{check.case.where} {check.case.describe()}\n    ' + '\n    '.join(problems))

    def finish(self, seconds):
        print(f'{"op":36} {"cases":>6} {"second":>6} {"numeric":>7} {"failures":>8} {"no answer":>9}')
        for op in sorted(self.rows):
            print(f'{op:36} {self.rows[op][0]:6} {self.rows[op][1]:6} {self.rows[op][2]:7} {self.rows[op][3]:8} '
                  f'{self.rows[op][4]:9}')
        failures = sum(r[3] for r in self.rows.values())
        print(f'{len(self.rows)} ops, {sum(r[0] for r in self.rows.values())} cases, {failures} failures, {seconds:.0f} s')
        return 1 if failures else 0


def run(options, current, part):
    """Runs every |options.jobs|-th batch from |part| on; the rows of the report."""
    lib = libweir.Library(options.lib)
    report = Report(options)

    def note(check, mode):
        text = f'{check.case.where} {check.case.describe()} {mode}' if check else f'a batch, {mode}'
        text = text.encode()[:len(current) - 1] + b'\0'
        current[:len(text)] = text

    checks = choose(lib, options)
    where = {}
    if options.devices:
        kind = options.devices.split(',')[-1].split(':')[0].upper()
        where = {'devices': options.devices.encode(), 'place': f'/device:{kind}:0'.encode()}
    starts = range(0, len(checks), BATCH)
    batches = [(mode, checks[at:at + BATCH]) for mode in (STATIC, DYNAMIC) for at in starts]
    for mode, batch in batches[part::options.jobs]:
        wants = run_tensorflow(batch, mode)
        for check, want, got in zip(batch, wants, run_weir(batch, wants, lib, mode, note, where)):
            report.add(check, mode, want, got)
    if not options.ops and part == 0:
        for name, problem in gradient_cases.run_scenarios(lib):
            report.row('scenarios')[0] += 1
            if problem:
                report.fail('scenarios', f'{name}: {problem}')
    return report.rows


def missing(lib, report):
    """Ops that TensorFlow can differentiate and Weir cannot, and those without a single case."""
    from tensorflow.python.framework import ops  # pylint: disable=import-outside-toplevel
    for name, op in sorted(lib.ops().items()):
        try:
            function = ops._gradient_registry.lookup(name)  # pylint: disable=protected-access
        except LookupError:
            continue
        if function is None or name in gradient_cases.ELSEWHERE:
            continue
        if not op['gradient']:
            report.fail(name, f'{name} has no gradient')
        elif name not in report.rows:
            report.fail(name, f'{name} has a gradient but no case')


def default_library():
    places = [os.path.join(HERE, '..', '..', 'build', preset, 'libweir.so') for preset in ('dev', 'release')]
    return next((p for p in places if os.path.exists(p)), places[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--lib', default=default_library(), help='libweir.so')
    parser.add_argument('--seed', type=int, default=oracle.SEED)
    parser.add_argument('--quota', type=int, default=1, help='so many times the usual number of cases')
    parser.add_argument('--devices', metavar='LIST', help='of Weir, where all is computed on the last: cpu,guard')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--max-failures', type=int, default=4, help='printed for each op')
    parser.add_argument('--verbose', action='store_true', help='print also what TensorFlow has no answer to')
    parser.add_argument('--fresh', action='store_true', help='draw the seed')
    parser.add_argument('--counts', metavar='FILE', help='write {op: [cases, failures]} as JSON')
    parser.add_argument('ops', nargs='*')
    options = parser.parse_args()
    if options.fresh:
        options.seed = secrets.randbits(31)
    print(f'seed {options.seed}', flush=True)
    np.seterr(all='ignore')  # NaN and infinity are part of the game
    start = time.time()
    report = Report(options)
    failed = False
    for child, current, rows in [start_part(options, part) for part in range(options.jobs)]:
        with os.fdopen(rows) as pipe:
            for op, row in json.loads(pipe.read() or '{}').items():
                report.rows[op] = [a + b for a, b in zip(report.row(op), row)]
        _, status = os.waitpid(child, 0)
        failed |= status != 0
        if os.WIFSIGNALED(status):
            case = current[:].split(bytes(1), 1)[0].decode(errors='replace')
            print(f'CRASH by {signal.Signals(os.WTERMSIG(status)).name} in {case}')
    if not options.ops and not failed:
        missing(libweir.Library(options.lib), report)
    if options.counts:
        with open(options.counts, 'w') as f:
            json.dump({op: [row[0], row[3]] for op, row in report.rows.items()}, f)
    return report.finish(time.time() - start) or int(failed)


def start_part(options, part):
    """A child, so that a kernel that crashes is reported with its case: process, what it is at, and where its rows come from."""
    current = mmap.mmap(-1, 1 << 16)
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, current, reader
    code = 2
    try:
        rows = run(options, current, part)
        with os.fdopen(writer, 'w') as pipe:
            json.dump(rows, pipe)
        code = 0
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == '__main__':
    sys.exit(main())
