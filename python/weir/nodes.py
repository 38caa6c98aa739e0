"""Nodes of any op: their inputs and attributes from Python's values; and the operators of edges."""
from __future__ import annotations

import collections
import ctypes
import difflib
import inspect
from typing import Any, Callable, Sequence

from . import _c, dtypes, opdefs
from ._lib import C, errors, text
from .dtypes import as_dtype
from .graph import Edge, Graph, Node, convert, graph_of
from .tensor import Tensor


# ---- adding a node ----

def _dims(value: Any) -> Any:
    """weir_dims_t of a shape: None is an unknown one, and within it an unknown size."""
    if value is None:
        return _c.weir_dims_t(None, -1, True)
    sizes = [-1 if d is None else int(d) for d in value]
    return _c.weir_dims_t((ctypes.c_int64 * max(1, len(sizes)))(*sizes), len(sizes), True)


def _array(kind: Any, values: Sequence[Any]) -> Any:
    return (kind * max(1, len(values)))(*values)


def _strings(values: Sequence[Any]) -> Any:
    return _c.weir_strings_t(_array(ctypes.c_char_p, [text(v) for v in values]), len(values))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


# By type of an attribute: which function sets it, and what it is given behind the name.
_SETTERS: dict[str, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    'int': ('int', lambda v: (int(v),)),
    'float': ('float', lambda v: (float(v),)),
    'bool': ('bool', lambda v: (bool(v),)),
    'type': ('type', lambda v: (as_dtype(v).number,)),
    'string': ('string', lambda v: (_bytes(v), len(_bytes(v)))),
    'shape': ('shape', lambda v: (_dims(v),)),
    'tensor': ('tensor', lambda v: (v.handle,)),
    'func': ('func', lambda v: (text(v),)),
    'list(int)': ('ints', lambda v: (_c.weir_ints_t(_array(ctypes.c_int64, [int(i) for i in v]), len(v)),)),
    'list(float)': ('floats', lambda v: (_c.weir_floats_t(_array(ctypes.c_float, v), len(v)),)),
    'list(bool)': ('bools', lambda v: (_array(ctypes.c_bool, v), len(v))),
    'list(type)': ('types', lambda v: (_c.weir_types_t(_array(ctypes.c_int, [as_dtype(t).number for t in v]), len(v)),)),
    'list(string)': ('strings', lambda v: (_strings(v),)),
    'list(shape)': ('shapes', lambda v: (_c.weir_shapes_t(_array(_c.weir_dims_t, [_dims(s) for s in v]), len(v)),)),
    'list(func)': ('funcs', lambda v: (_strings(v),)),
}


def _set_attr(builder: int, op: str, attr: opdefs.Attr, value: Any) -> Any:
    """Sets the attribute; what comes back must live until the node is made."""
    if attr.type == 'tensor' and not isinstance(value, Tensor):
        value = Tensor(value)
    if attr.type not in _SETTERS:
        raise errors.UnimplementedError(f'{op}: attributes of type {attr.type} cannot be given')
    function, prepare = _SETTERS[attr.type]
    name = attr.name.encode()
    try:
        arguments = prepare(value)
        getattr(C, 'weir_node_set_' + function)(builder, name, *arguments)
    except (TypeError, ValueError, AttributeError, ctypes.ArgumentError) as error:
        if isinstance(error, errors.Error):
            raise
        raise errors.InvalidArgumentError(f"{op}: attribute '{attr.name}' is {attr.type}, not {value!r}") from error
    return name, value, arguments


def _wanted(op: opdefs.OpDef, arg: opdefs.Arg, known: dict[str, dtypes.DType]) -> dtypes.DType | None:
    """The type that a number or list given for |arg| becomes, where another argument or the op says it."""
    if arg.type and arg.type in dtypes.BY_NUMBER:
        return dtypes.BY_NUMBER[arg.type]
    return known.get(arg.type_attr)


def _is_typed(value: Any) -> bool:
    return hasattr(value, 'dtype')


def _inputs(op: opdefs.OpDef, graph: Graph, values: list[Any], attrs: dict[str, Any]) -> list[list[Edge]]:
    """The edges of each argument. What has a type of its own is looked at first, so that numbers follow it."""
    known: dict[str, dtypes.DType] = {a.name: as_dtype(attrs[a.name]) for a in op.attrs if a.type == 'type' and attrs.get(a.name) is not None}
    for arg, value in zip(op.inputs, values):
        for item in value if arg.is_list else [value]:
            if arg.type_attr and _is_typed(item) and (isinstance(item, Edge) or arg.type_attr not in known):
                known[arg.type_attr] = as_dtype(int(item.dtype.number) if isinstance(item, Edge) else item.dtype)
    return [[convert(item, None if isinstance(item, Edge) else _wanted(op, arg, known), graph) for item in (value if arg.is_list else [value])]
            for arg, value in zip(op.inputs, values)]


def _lengths(op: opdefs.OpDef, edges: list[list[Edge]]) -> dict[str, Any]:
    """Attributes that say how long lists of inputs are: where there are several, C cannot tell one from another."""
    found: dict[str, Any] = {}
    for arg, items in zip(op.inputs, edges):
        if arg.number_attr:
            found[arg.number_attr] = len(items)
        elif arg.type_list_attr:
            found[arg.type_list_attr] = [item.dtype for item in items]
    return found


def _results(op: opdefs.OpDef, node: Node, attrs: dict[str, Any]) -> Any:
    """The node of an op without outputs; its output; or a tuple of them by name, lists where they are lists."""
    edges = node.outputs
    if not op.outputs:
        return node
    fixed, at, out = sum(not a.is_list for a in op.outputs), 0, []
    for arg in op.outputs:
        length = attrs.get(arg.number_attr or arg.type_list_attr)
        count = len(edges) - fixed if length is None else length if isinstance(length, int) else len(length)
        out.append(edges[at:at + count] if arg.is_list else edges[at])
        at += count if arg.is_list else 1
    if len(out) == 1:
        return out[0]
    return collections.namedtuple(op.name.strip('_') + 'Result', [opdefs.safe(a.name) for a in op.outputs], rename=True)(*out)


def add(op_name: str, inputs: Sequence[Any] = (), *, name: str | None = None, graph: Graph | None = None, **attrs: Any) -> Any:
    """Adds a node of any op, with TensorFlow's names: w.ops.add("MatMul", [a, b], transpose_b=True)."""
    op = opdefs.find(op_name)
    if op is None:
        raise errors.NotFoundError(f"there is no op '{op_name}'")
    if len(inputs) != len(op.inputs):
        raise errors.InvalidArgumentError(f'{op_name} takes {len(op.inputs)} inputs, not {len(inputs)}')
    graph = graph or graph_of(inputs)
    edges = _inputs(op, graph, list(inputs), attrs)
    given = {**_lengths(op, edges), **{k: v for k, v in attrs.items() if v is not None or k == 'shape'}}
    kinds = {a.name: a for a in op.attrs}
    unknown = [key for key in given if key not in kinds]
    if unknown:
        raise errors.InvalidArgumentError(f"{op_name} has no attribute '{unknown[0]}', but {sorted(kinds)}")
    flat = [e.c for items in edges for e in items]
    with graph.building() as scope:
        op_text = op_name.encode()  # C borrows it, and what is in |kept|, until the end
        builder = C.weir_node_begin(C.weir_scope_name(scope, text(name)) if name else scope, op_text)
        C.weir_node_inputs(builder, _array(_c.weir_edge_t, flat), len(flat))
        kept = [_set_attr(builder, op_name, kinds[key], value) for key, value in given.items()]
        handle = C.weir_node_end(builder)
        del kept, op_text
    return _results(op, Node(graph, handle), given)


# ---- one function an op ----

def _signature(op: opdefs.OpDef) -> inspect.Signature:
    """Inputs, then attributes without a default, then by keyword those with one, and the node's name."""
    kind = inspect.Parameter
    required = [a.name for a in op.attrs if not a.has_default and not op.is_inferred(a.name)]
    optional = [a for a in op.attrs if a.has_default and not op.is_inferred(a.name)]
    parameters = [kind(opdefs.safe(n), kind.POSITIONAL_OR_KEYWORD) for n in [a.name for a in op.inputs] + required]
    parameters += [kind(opdefs.safe(a.name), kind.KEYWORD_ONLY, default=a.default) for a in optional]
    parameters.append(kind('name', kind.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


def _doc(op: opdefs.OpDef) -> str:
    lines = [op.summary or f"TensorFlow's {op.name}.", '', f'op: {op.name}']
    lines += [f'{opdefs.safe(a.name)}: {"list of edges" if a.is_list else "edge"}' for a in op.inputs]
    lines += [f'{opdefs.safe(a.name)}: {a.type}' for a in op.attrs if not op.is_inferred(a.name)]
    return '\n'.join(lines)


def make(name: str, op: opdefs.OpDef) -> Callable[..., Any]:
    signature = _signature(op)
    attr_names = {opdefs.safe(a.name): a.name for a in op.attrs}
    input_names = [opdefs.safe(a.name) for a in op.inputs]

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f'{name}{signature}: {error}') from None
        values = bound.arguments
        inputs = [values[n] for n in input_names]
        node_name = kwargs.get('name')
        attrs = {attr_names[k]: v for k, v in values.items() if k in attr_names and k not in input_names and k != 'name'}
        return add(op.name, inputs, name=node_name, **attrs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _doc(op)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def find(name: str) -> Callable[..., Any]:
    """The function of the op that is called |name| here."""
    op_name = opdefs.by_function().get(name) if not name.startswith('_') else None
    op = opdefs.find(op_name) if op_name else None
    if op is None:
        near = difflib.get_close_matches(name, opdefs.by_function(), 1) if not name.startswith('_') else []
        raise AttributeError(f"there is no op '{name}'" + (f", but '{near[0]}'" if near else ''))
    return make(name, op)


# ---- operators and what NumPy calls otherwise ----

def _operator(op_name: str, swapped: bool = False) -> Callable[[Edge, Any], Any]:
    def function(self: Edge, other: Any) -> Any:
        return add(op_name, [other, self] if swapped else [self, other])
    return function


for _name, _op in {'add': 'AddV2', 'sub': 'Sub', 'mul': 'Mul', 'truediv': 'RealDiv', 'floordiv': 'FloorDiv', 'mod': 'FloorMod', 'pow': 'Pow',
                   'matmul': 'BatchMatMulV2', 'and': 'LogicalAnd', 'or': 'LogicalOr'}.items():
    setattr(Edge, f'__{_name}__', _operator(_op))
    setattr(Edge, f'__r{_name}__', _operator(_op, swapped=True))
for _name, _op in {'lt': 'Less', 'le': 'LessEqual', 'gt': 'Greater', 'ge': 'GreaterEqual'}.items():
    setattr(Edge, f'__{_name}__', _operator(_op))
for _name, _op in {'neg': 'Neg', 'abs': 'Abs', 'invert': 'LogicalNot'}.items():
    setattr(Edge, f'__{_name}__', lambda self, _op=_op: add(_op, [self]))


def matmul(a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None) -> Edge:
    """The matrix product of a and b, or of each pair of matrices where they have more than two dimensions."""
    a = convert(a, getattr(b, 'dtype', None))
    b = convert(b, a.dtype)
    if a.shape is not None and len(a.shape) == 2 and b.shape is not None and len(b.shape) == 2:
        return add('MatMul', [a, b], transpose_a=transpose_a, transpose_b=transpose_b, name=name)
    return add('BatchMatMulV2', [a, b], adj_x=transpose_a, adj_y=transpose_b, name=name)


setattr(Edge, '__matmul__', lambda self, other: matmul(self, other))
setattr(Edge, '__rmatmul__', lambda self, other: matmul(other, self))


def reduction(op_name: str) -> Callable[..., Edge]:
    """A function that reduces by the op, along an axis, several, or all."""
    def reduce(x: Any, axis: Any = None, *, keepdims: bool = False, name: str | None = None) -> Edge:
        x = convert(x)
        if axis is None:
            axis = add('Range', [0, add('Rank', [x]), 1]) if x.shape is None else list(range(len(x.shape)))
        if isinstance(axis, (list, tuple)):
            import numpy
            axis = numpy.asarray(axis, numpy.int32)
        return add(op_name, [x, axis], keep_dims=keepdims, name=name)
    reduce.__name__ = reduce.__qualname__ = op_name.lower()
    reduce.__doc__ = f'{op_name} over |axis|: a number, several, or None: all.'
    return reduce


def argmax(x: Any, axis: int = 0, *, dtype: Any = dtypes.int64, name: str | None = None) -> Edge:
    """Where along |axis| the largest element is."""
    return add('ArgMax', [x, axis], output_type=dtype, name=name)


def argmin(x: Any, axis: int = 0, *, dtype: Any = dtypes.int64, name: str | None = None) -> Edge:
    """Where along |axis| the smallest element is."""
    return add('ArgMin', [x, axis], output_type=dtype, name=name)


def concat(values: Sequence[Any], axis: int = 0, *, name: str | None = None) -> Edge:
    """|values| behind one another along |axis|."""
    return add('ConcatV2', [values, axis], name=name)


def index(x: Edge, key: Any) -> Edge:
    """x[key], for numbers, slices, None, ..., and edges that are scalars."""
    keys = key if isinstance(key, tuple) else (key,)
    begin, end, stride = [], [], []
    masks: dict[str, Any] = dict.fromkeys(('begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask', 'shrink_axis_mask'), 0)
    for i, k in enumerate(keys):
        first, last, step = 0, 0, 1
        if k is Ellipsis:
            masks['ellipsis_mask'] |= 1 << i
        elif k is None:
            masks['new_axis_mask'] |= 1 << i
        elif isinstance(k, slice):
            masks['begin_mask'] |= (k.start is None) << i
            masks['end_mask'] |= (k.stop is None) << i
            first, last, step = k.start or 0, k.stop or 0, 1 if k.step is None else k.step
        elif isinstance(k, Edge) or hasattr(k, '__index__'):
            masks['shrink_axis_mask'] |= 1 << i
            first, last = k, k + 1
        else:
            raise TypeError(f'an edge is indexed by numbers, slices, None and ..., not by {k!r}: w.gather picks rows')
        begin.append(first)
        end.append(last)
        stride.append(step)
    return add('StridedSlice', [x, _index_vector(begin), _index_vector(end), _index_vector(stride)], **masks)


def _index_vector(items: list[Any]) -> Any:
    if not [i for i in items if isinstance(i, Edge)]:
        import numpy
        return numpy.asarray([i.__index__() for i in items], numpy.int32)
    return add('Pack', [[add('Cast', [i], DstT=dtypes.int32) if isinstance(i, Edge) else int(i) for i in items]])


def gather(x: Any, indices: Any, axis: int = 0, *, name: str | None = None) -> Edge:
    """The rows (along |axis|) of |x| that |indices| name."""
    return add('GatherV2', [x, indices, axis], name=name)
