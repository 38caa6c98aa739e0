"""Conditionals and loops, whose parts are Python functions that add nodes: weir/control.h and weir/function.h."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence

from . import _c, dtypes
from ._lib import C, text
from .graph import Edge, Graph, convert, graph_of, within

Branch = Callable[[], Any]


class _Branches:
    """Python functions as C's. C may call one more than once, and wants as many results of each; the first to raise ends the building."""

    def __init__(self, graph: Graph, functions: Sequence[Branch], count: int):
        self.graph, self.count = graph, count
        self.error: BaseException | None = None
        self.c = [_c.weir_branch_fn_t(self._wrap(function)) for function in functions]

    def _wrap(self, function: Branch) -> Callable[..., None]:
        def branch(scope: int, outs: Any, _user: Any) -> None:
            if self.error:
                return
            try:
                with within(self.graph, scope):
                    for i, edge in enumerate(self._edges(function())):
                        outs[i] = edge.c
            except BaseException as error:  # pylint: disable=broad-exception-caught # it may not pass through C
                self.error = error
        return branch

    def _edges(self, results: Any) -> list[Edge]:
        items = list(results) if isinstance(results, (list, tuple)) else [results]
        if len(items) != self.count:
            raise ValueError(f'a branch gives {len(items)} results where {self.count} were asked for')
        return [convert(item, graph=self.graph) for item in items]


def _build(call: Callable[..., None], graph: Graph, branches: _Branches, name: str | None) -> Any:
    outs = (_c.weir_edge_t * branches.count)()
    options = _c.weir_cond_options_t(name=text(name))
    try:
        with graph.building() as scope:
            call(scope, outs, branches.count, ctypes.byref(options))
    except Exception:
        if branches.error is None:
            raise
    if branches.error is not None:
        raise branches.error
    edges = tuple(Edge(graph, edge.node, edge.index) for edge in outs)
    return edges[0] if len(edges) == 1 else edges


def cond(pred: Any, then: Branch, otherwise: Branch, *, count: int = 1, name: str | None = None) -> Any:
    """What |then| gives if |pred| is true, else what |otherwise| does; only the one runs. With a |count| above 1 both give so many."""
    graph = graph_of([pred])
    condition, branches = convert(pred, dtypes.bool_, graph), _Branches(graph, [then, otherwise], count)
    return _build(lambda scope, *rest: C.weir_cond_with(scope, condition.c, *branches.c, None, *rest), graph, branches, name)


def switch_case(index: Any, functions: Sequence[Branch], *, count: int = 1, name: str | None = None) -> Any:
    """What functions[index] gives, or the last of them when |index| is none of theirs; only that one runs."""
    graph = graph_of([index])
    chosen, branches = convert(index, dtypes.int32, graph), _Branches(graph, functions, count)
    table = (_c.weir_branch_fn_t * max(1, len(functions)))(*branches.c)
    return _build(lambda scope, *rest: C.weir_switch_case_with(scope, chosen.c, ctypes.cast(table, ctypes.c_void_p), len(functions), None, *rest),
                  graph, branches, name)


# ---- loops ----

class _Function:
    """A function of the graph's library, built by Python's |function| of edges, with what it captured of the graph around."""

    def __init__(self, graph: Graph, name: str, function: Callable[..., Any], like: Sequence[Edge], count: int, shapes: Sequence[Any]):
        error: list[BaseException] = []

        def build(scope: int, args: Any, results: Any, _user: Any) -> None:
            try:
                with within(graph, scope):
                    given = function(*[Edge(graph, args[i].node, args[i].index) for i in range(len(like))])
                    items = list(given) if isinstance(given, (list, tuple)) else [given]
                    if len(items) != count:
                        raise ValueError(f'the {name} of a loop gives {len(items)} results instead of {count}')
                    wanted = [edge.dtype for edge in like] if name == 'body' else [dtypes.bool_]
                    for i, item in enumerate(items):
                        results[i] = convert(item, wanted[min(i, len(wanted) - 1)], graph).c
            except BaseException as raised:  # pylint: disable=broad-exception-caught # it may not pass through C
                error.append(raised)

        dims = [_c.weir_dims_t((ctypes.c_int64 * max(1, len(s)))(*[-1 if d is None else d for d in s]), len(s), True) if s is not None
                else _c.weir_dims_t(None, -1, True) for s in shapes]
        types = (ctypes.c_int * max(1, len(like)))(*[edge.dtype.number for edge in like])
        spec = _c.weir_spec_t(_c.weir_types_t(types, len(like)), _c.weir_shapes_t((_c.weir_dims_t * max(1, len(dims)))(*dims), len(dims)))
        try:
            with graph.building() as scope:
                made = C.weir_define_function(scope, text(name), spec, _c.weir_function_fn_t(build), None, count)
        except Exception:
            if not error:
                raise
        if error:
            raise error[0]
        self.name = made.name.decode()
        self.captured = [Edge(graph, made.captured[i].node, made.captured[i].index) for i in range(made.captured_count)]


def while_loop(goes_on: Callable[..., Any], body: Callable[..., Any], state: Sequence[Any], *, shapes: Sequence[Any] | None = None,
               name: str | None = None) -> tuple[Edge, ...]:
    """Replaces |state| by body(*state) as long as goes_on(*state) is true; what it ends with. Edges from around may be used in both.

    |shapes|: of the state, where they change from one iteration to the next; None is an unknown size, or shape.
    """
    from . import ops
    graph = graph_of(state)
    edges = [convert(value, graph=graph) for value in state]
    sizes = list(shapes) if shapes is not None else [edge.shape for edge in edges]
    count = len(edges)
    test = _Function(graph, 'cond', goes_on, edges, 1, sizes)
    step = _Function(graph, 'body', body, edges, count, sizes)
    # Both are given all that either captured, as state that stays.
    every, kept = [*edges, *test.captured, *step.captured], len(test.captured)
    all_sizes = [*sizes, *[edge.shape for edge in every[count:]]]

    def call_test(*values: Edge) -> Any:
        return ops.partitioned_call(values[:count + kept], [dtypes.bool_], test.name)[0]

    def call_body(*values: Edge) -> Any:
        made = ops.partitioned_call([*values[:count], *values[count + kept:]], [edge.dtype for edge in edges], step.name)
        return [*made, *values[count:]]

    calls = (_Function(graph, 'cond', call_test, every, 1, all_sizes), _Function(graph, 'body', call_body, every, len(every), all_sizes))
    out = ops.while_(every, calls[0].name, calls[1].name, output_shapes=all_sizes, name=name)
    return tuple(out[:count])
