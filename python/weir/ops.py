"""One function an op of the library, made on first use: w.ops.mat_mul(a, b, transpose_b=True). Stubs with types are in ops.pyi.

Names such as sum, abs and slice are ops here. What needs Python's own is in nodes.py.
"""
from __future__ import annotations

from typing import Any

from . import nodes as _nodes
from . import opdefs as _opdefs
from .nodes import add as add_node
from .nodes import argmax, argmin, concat, gather, matmul

sum = _nodes.reduction('Sum')  # pylint: disable=redefined-builtin
mean = _nodes.reduction('Mean')
max = _nodes.reduction('Max')  # pylint: disable=redefined-builtin
min = _nodes.reduction('Min')  # pylint: disable=redefined-builtin
prod = _nodes.reduction('Prod')
all = _nodes.reduction('All')  # pylint: disable=redefined-builtin
any = _nodes.reduction('Any')  # pylint: disable=redefined-builtin


def __getattr__(name: str) -> Any:
    function = _nodes.find(name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return [*globals(), *_opdefs.by_function()]


__all__ = ['add_node', 'all', 'any', 'argmax', 'argmin', 'concat', 'gather', 'matmul', 'max', 'mean', 'min', 'prod', 'sum']
