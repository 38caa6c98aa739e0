"""Gradients, and the optimizers that take steps along them."""
from __future__ import annotations

import ctypes
from typing import Any, Sequence

from . import _c, library
from ._lib import C, check, errors, text
from .graph import Edge, Graph, Node, default_graph


def _edges(items: Sequence[Edge]) -> Any:
    return (_c.weir_edge_t * max(1, len(items)))(*(e.c for e in items))


def gradients(ys: Edge | Sequence[Edge], xs: Edge | Sequence[Edge], grad_ys: Sequence[Edge] | None = None) -> list[Edge | None]:
    """Edges with the gradients of the sum of |ys| for each of |xs|; None for one that they do not depend on."""
    ys, xs = ([v] if isinstance(v, Edge) else list(v) for v in (ys, xs))
    graph, out = ys[0].graph, (_c.weir_edge_t * max(1, len(xs)))()
    with graph.building() as scope:
        check(C.weir_gradients(scope, _edges(ys), len(ys), _edges(xs), len(xs), _edges(grad_ys) if grad_ys else None, out))
    return [Edge(graph, e.node, e.index) if e.node else None for e in out[:len(xs)]]


class Optimizer:
    """How variables are moved against a gradient. Made by the functions of this module."""

    def __init__(self, c: Any, graph: Graph | None = None):
        self.c, self.graph = c, graph

    def minimize(self, loss: Edge, *, variables: Sequence[Edge] | None = None, global_step: Edge | None = None,
                 clip_global_norm: float = 0, accumulate: int = 0, loss_scale: float = 0) -> Node:
        """A node that takes one step against |loss|, of all trainable variables or |variables|. Run it with a session."""
        options = library.options('weir_minimize_options_t', loss.graph, {
            'clip_global_norm': clip_global_norm, 'accumulate': accumulate, 'loss_scale': loss_scale, 'global_step': global_step})
        if variables is not None:
            options.variables, options.variable_count = _edges(variables), len(variables)
        with loss.graph.building() as scope:
            node = C.weir_minimize_with(scope, ctypes.byref(self.c), loss.c, ctypes.byref(options))
        return Node(loss.graph, node)

    def apply(self, gradients_and_variables: Sequence[tuple[Edge, Any]], *, global_step: Edge | None = None) -> Node:
        """A node that applies gradients of one's own: pairs of a gradient and its variable."""
        if not gradients_and_variables:
            raise errors.InvalidArgumentError('there is no gradient to apply')
        graph = gradients_and_variables[0][1].graph
        items = (_c.weir_variable_gradient_t * len(gradients_and_variables))()
        for item, (gradient, variable) in zip(items, gradients_and_variables):
            item.variable = variable.info
            item.gradient.values = gradient.c
        options = library.options('weir_minimize_options_t', graph, {'global_step': global_step})
        with graph.building() as scope:
            node = C.weir_apply_gradients_with(scope, ctypes.byref(self.c), items, len(items), ctypes.byref(options))
        return Node(graph, node)


def _make(name: str, rate: Any, *more: Any, **given: Any) -> Optimizer:
    struct = f'weir_{ {"proximal_sgd": "proximal", "proximal_adagrad": "proximal"}.get(name, name)}_options_t'
    arguments = [library.to_c(rate, _c.weir_rate_t, None), *more]
    if hasattr(_c, struct):
        arguments.append(ctypes.byref(library.options(struct, None, given)))
    return Optimizer(getattr(C, f'weir_{name}_with')(*arguments))


Rate = Any  # a number, or an edge: a schedule of w.schedules, a placeholder


def sgd(rate: Rate) -> Optimizer:
    """w -= rate * g"""
    return _make('sgd', rate)


def momentum(rate: Rate, momentum: float = 0.9, *, nesterov: bool = False) -> Optimizer:  # pylint: disable=redefined-outer-name
    """m = momentum * m + g;  w -= rate * m"""
    return _make('momentum', rate, momentum, nesterov=nesterov)


def adam(rate: Rate = 0.001, *, beta1: float | None = None, beta2: float | None = None, epsilon: float | None = None,
         amsgrad: bool = False) -> Optimizer:
    """Kingma and Ba's. By default 0.9, 0.999 and 1e-8."""
    return _make('adam', rate, beta1=beta1, beta2=beta2, epsilon=epsilon, amsgrad=amsgrad)


def adamax(rate: Rate = 0.001, *, beta1: float | None = None, beta2: float | None = None, epsilon: float | None = None) -> Optimizer:
    """Adam with the infinity norm."""
    return _make('adamax', rate, beta1=beta1, beta2=beta2, epsilon=epsilon)


def adagrad(rate: Rate, *, initial_accumulator: float | None = None) -> Optimizer:
    """a += g²;  w -= rate * g / sqrt(a)"""
    return _make('adagrad', rate, initial_accumulator=initial_accumulator)


def adadelta(rate: Rate, *, rho: float | None = None, epsilon: float | None = None) -> Optimizer:
    """Steps scaled by the ratio of running averages of squared steps and of squared gradients."""
    return _make('adadelta', rate, rho=rho, epsilon=epsilon)


def rmsprop(rate: Rate, *, decay: float | None = None, momentum: float = 0, epsilon: float | None = None,  # pylint: disable=redefined-outer-name
            centered: bool = False) -> Optimizer:
    """Steps divided by the root of a running mean of squared gradients."""
    return _make('rmsprop', rate, decay=decay, momentum=momentum, epsilon=epsilon, centered=centered)


def ftrl(rate: Rate, *, rate_power: float | None = None, initial_accumulator: float | None = None, l1: float = 0, l2: float = 0,
         l2_shrinkage: float = 0, beta: float = 0) -> Optimizer:
    """Follow the regularised leader."""
    return _make('ftrl', rate, rate_power=rate_power, initial_accumulator=initial_accumulator, l1=l1, l2=l2, l2_shrinkage=l2_shrinkage,
                 beta=beta)


def proximal_sgd(rate: Rate, *, l1: float = 0, l2: float = 0) -> Optimizer:
    """SGD with a proximal step for l1 and l2."""
    return _make('proximal_sgd', rate, l1=l1, l2=l2)


def global_step(graph: Graph | None = None) -> Edge:
    """The value of the int64 variable "global_step", made on first use."""
    graph = graph or default_graph()
    with graph.building() as scope:
        edge = C.weir_global_step(scope)
    return Edge(graph, edge.node, edge.index)


def clip_by_global_norm(items: Sequence[Edge | None], norm: float) -> list[Edge | None]:
    """Scales all together so that the norm of all is at most |norm|; None stays None."""
    from . import ops
    given = [e for e in items if e is not None]
    total = ops.sqrt(ops.add_n([ops.sum(e * e) for e in given]))
    scale = norm / ops.maximum(total, norm)
    return [None if e is None else e * scale for e in items]


__all__ = ['Optimizer', 'adadelta', 'adagrad', 'adam', 'adamax', 'clip_by_global_norm', 'ftrl', 'global_step', 'gradients', 'momentum',
           'proximal_sgd', 'rmsprop', 'sgd', 'text']
