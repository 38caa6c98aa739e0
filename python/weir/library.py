"""How layers, losses, optimizers and the like are called: keywords become C's structs of options."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence, Union

from . import _c, dtypes
from ._lib import C, check, errors, text
from .dtypes import DTypeLike, as_dtype
from .graph import Edge, EdgeLike, Graph, Node, Variable, convert, graph_of

Activation = Union[str, None]
_BY_OP: dict[int, Any] = {}


class Initializer:
    """What a variable starts with: made by w.initializers."""
    __slots__ = ('c',)

    def __init__(self, c: Any):
        self.c = c


def initial_edge(initial: Any, shape: Sequence[int] | None, dtype: DTypeLike) -> Edge:
    """What a variable starts with as an edge."""
    if not isinstance(initial, Initializer):
        return convert(initial, dtype)
    if shape is None:
        raise errors.InvalidArgumentError('a variable that starts by an initializer needs a shape')
    graph = graph_of([])
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    with graph.building() as scope:
        edge = C.weir_init_edge(scope, initial.c, as_dtype(dtype or dtypes.float32).number, _c.weir_dims_t(sizes, len(shape), True))
    return Edge(graph, edge.node, edge.index)


def activation(name: Any) -> Any:
    """The C function of an op of one input: "relu", "tanh", "gelu"."""
    if callable(name) and hasattr(name, '__name__'):
        name = name.__name__
    for symbol in (f'weir_op_{name}', f'weir_{name}'):
        if hasattr(C.dll, symbol):
            return ctypes.cast(getattr(C.dll, symbol), _c.weir_activation_fn_t)
    raise errors.NotFoundError(f"there is no activation '{name}'")


def _rate(value: Any, graph: Graph | None) -> Any:
    if isinstance(value, Edge):
        return C.weir_rate_edge(value.c)
    return C.weir_rate_float(float(value))


def _shape(value: Sequence[int | None]) -> Any:
    sizes = [-1 if d is None else d for d in value]
    return _c.weir_dims_t((ctypes.c_int64 * max(1, len(sizes)))(*sizes), len(sizes), True)


def _given(kind: Any) -> Callable[[Any, Graph | None], Any]:
    return lambda v, g: kind(v, True)


_CONVERT: dict[Any, Callable[[Any, Graph | None], Any]] = {
    _c.weir_edge_t: lambda v, g: convert(v, graph=g).c,
    _c.weir_init_t: lambda v, g: v.c,
    _c.weir_rate_t: _rate,
    _c.weir_dims_t: lambda v, g: _shape(v),
    _c.weir_activation_fn_t: lambda v, g: activation(v),
    ctypes.c_char_p: lambda v, g: text(v),
    **{kind: _given(kind) for kind in (_c.weir_opt_float_t, _c.weir_opt_int_t, _c.weir_opt_bool_t)},
}


def to_c(value: Any, kind: Any, graph: Graph | None) -> Any:
    """|value| as an argument or field of C's type |kind|."""
    if kind in _CONVERT:
        return _CONVERT[kind](value, graph)
    if kind is ctypes.c_int and not isinstance(value, int):
        return _enum(value)
    if issubclass(kind, ctypes.Array):
        return kind(*([value] if isinstance(value, int) else value))
    return value


def _enum(value: Any) -> int:
    """A constant of C by the end of its name, "sum" or "fan_in", or an element type."""
    if isinstance(value, str):
        found = [v for n, v in vars(_c).items() if n.startswith('WEIR_') and n.endswith('_' + value.upper()) and isinstance(v, int)]
        if found:
            return found[0]
    return as_dtype(value).number


def options(struct: str, graph: Graph | None, given: dict[str, Any]) -> Any:
    """A struct of options; what is None keeps its default."""
    kind = getattr(_c, struct)
    kinds = dict(kind._fields_)  # pylint: disable=protected-access
    out = kind()
    for name, value in given.items():
        if name not in kinds:
            raise TypeError(f"there is no option '{name}', but {sorted(set(kinds) - {'reserved'})}")
        if value is not None:
            setattr(out, name, to_c(value, kinds[name], graph))
    return out


class Metric:
    """value, updated (the value with this step's batch), and the nodes update and reset."""

    def __init__(self, graph: Graph, c: Any):
        self.value, self.updated = Edge(graph, c.value.node, c.value.index), Edge(graph, c.updated.node, c.updated.index)
        self.update, self.reset = Node(graph, c.update), Node(graph, c.reset)


def from_c(value: Any, graph: Graph | None) -> Any:
    if isinstance(value, _c.weir_edge_t):
        return Edge(graph, value.node, value.index) if value.node and graph else None
    if isinstance(value, _c.weir_init_t):
        return Initializer(value)
    if isinstance(value, _c.weir_metric_t):
        return Metric(graph, value) if graph else None
    return value


def call(function: str, has_scope: bool, arguments: list[Any], struct: str | None, **given: Any) -> Any:
    """Calls a function of the library: on the scope of the default graph, or of the edges that it is given."""
    c = getattr(C, function)
    graph = graph_of([*arguments, *given.values()]) if has_scope else None
    kinds = c.argtypes[1:] if has_scope else c.argtypes
    values = [to_c(a, k, graph) for a, k in zip(arguments, kinds)]
    if struct:
        values.append(ctypes.byref(options(struct, graph, given)))
    if graph is None:
        return from_c(c(*values), None)
    with graph.building() as scope:
        out = c(scope, *values)
    return from_c(out, graph)


__all__ = ['Activation', 'DTypeLike', 'EdgeLike', 'Initializer', 'Metric', 'Variable', 'call', 'check']
