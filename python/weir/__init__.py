"""Weir: dataflow graphs, built, differentiated, trained and run, compatible with TensorFlow's. Needs no TensorFlow.

    import weir as w
    x = w.placeholder(w.float32, shape=[None, 784])
    y = w.softmax(w.layers.dense(x, 10))
    with w.Session() as session:
        session.init()
        session.run(y, {x: images})

Every op is a function, w.relu or w.ops.relu, made when it is first used.
"""
from __future__ import annotations

import atexit as _atexit
import importlib as _importlib
from typing import TYPE_CHECKING, Any

from . import errors, ops
from ._lib import C as _C
from .control import cond, switch_case, while_loop
from .dtypes import (DType, as_dtype, bfloat16, bool_, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, resource,
                     string, uint8, uint16, uint32, uint64, variant)
from .eager import Eager, Tape
from .errors import *  # noqa: F403 # pylint: disable=wildcard-import
from .graph import (Edge, Graph, Node, Variable, after, constant, convert, default_graph, device, reset_default_graph, scope,
                    set_seed)
from .model import Model, Signature, load_model, save_model
from .server import Server, open_servers as _open_servers
from .serving import Serve, open_serves as _open_serves, serve
from .session import Session, open_sessions as _open_sessions
from .tensor import Tensor, from_dlpack
from .train import (Optimizer, adadelta, adagrad, adam, adamax, clip_by_global_norm, ftrl, global_step, gradients, momentum,
                    proximal_sgd, rmsprop, sgd)
from .training import Events, FitResult, FitState, Saver, fit, latest_checkpoint

if TYPE_CHECKING:
    from . import initializers, layers, losses, metrics, schedules, summaries
    from .ops import *  # type: ignore[assignment] # noqa: F403 # pylint: disable=wildcard-import

__version__: str = _C.weir_version().decode()
_LAZY = {'initializers', 'layers', 'losses', 'metrics', 'schedules', 'summaries'}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _importlib.import_module(f'.{name}', __name__)
    if name.startswith('_'):
        raise AttributeError(name)
    return getattr(ops, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *ops.__dir__()})


@_atexit.register
def _close_all() -> None:
    """While Python can still be called back from other threads."""
    things: list[Any] = [*_open_sessions, *_open_servers, *_open_serves]
    for thing in things:
        thing.close()
