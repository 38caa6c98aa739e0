"""Conditionals, whose branches are Python functions that add nodes: weir/control.h."""
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
