"""The training loop, savers, and event files."""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from . import _c, library, tensor
from ._lib import C, check, errors, make_status, take_text, text
from .graph import Edge, Graph, Node, default_graph
from .handle import Handle, Owner
from .session import Session


class Saver(Owner):
    """Writes checkpoints and reads them, as tf.compat.v1.train.Saver does, and keeps the last ones and the best ones."""

    def __init__(self, variables: Sequence[Edge] | None = None, *, graph: Graph | None = None, **options: Any):
        """|variables|: which; None: all. |options|: fields of weir_saver_options_t: max_to_keep, keep_best, is_sharded …"""
        self.graph = graph or (variables[0].graph if variables else default_graph())
        struct = library.options('weir_saver_options_t', self.graph, options)
        if variables:
            items = (_c.weir_saved_t * len(variables))(*(_c.weir_saved_t(v.c, None) for v in variables))
            struct.variables, struct.variable_count = items, len(variables)
        with self.graph.building() as scope:
            handle = C.weir_saver_create_with(scope, ctypes.byref(struct))
        self.handle = Handle(handle, 'saver', C.weir_saver_destroy)

    def save(self, session: Session, prefix: Any, step: int = -1) -> str:
        """Saves as "prefix-step", or as |prefix|; gives that name."""
        out = ctypes.c_void_p()
        with session.handle.use() as s, self.handle.use() as saver:
            check(C.weir_saver_save(saver, s, text(prefix), step, ctypes.byref(out)))
        return os.fsdecode(take_text(out))

    def restore(self, session: Session, prefix: Any) -> None:
        with session.handle.use() as s, self.handle.use() as saver:
            check(C.weir_saver_restore(saver, s, text(prefix)))


def latest_checkpoint(directory: Any) -> str | None:
    """The prefix of the newest checkpoint by the directory's file "checkpoint"; None: there is none."""
    out = ctypes.c_void_p()
    check(C.weir_latest_checkpoint(text(directory), ctypes.byref(out)))
    return os.fsdecode(take_text(out)) if out.value else None


class Events(Owner):
    """An event file for TensorBoard."""

    def __init__(self, directory: Any):
        out = ctypes.c_void_p()
        check(C.weir_events_create(text(directory), ctypes.byref(out)))
        self.handle = Handle(out.value or 0, 'event file', lambda value: check(C.weir_events_close(value)))

    def scalar(self, tag: str, value: float, step: int) -> None:
        with self.handle.use() as events:
            check(C.weir_events_scalar(events, text(tag), float(value), step))

    def summary(self, value: Any, step: int) -> None:
        """What an edge of w.summaries gave."""
        summary = tensor.Tensor(value)
        with self.handle.use() as events:
            check(C.weir_events_add_summary(events, summary.handle, step))

    def graph(self, graph: Graph) -> None:
        with self.handle.use() as events:
            check(C.weir_events_graph(events, graph.handle))

    def flush(self) -> None:
        with self.handle.use() as events:
            check(C.weir_events_flush(events))


# ---- the loop ----

class FitResult(NamedTuple):
    """|reason|: "steps", "data", "metric", "signal" or "request"."""
    step: int
    taken: int
    loss: float
    best_metric: float
    best_step: int
    reason: str
    is_resumed: bool


class FitState(NamedTuple):
    step: int
    loss: float
    seconds: float


REASONS = ('steps', 'data', 'metric', 'signal', 'request')


def _is_notebook() -> bool:
    """Whether IPython shows output as a notebook does."""
    shell = sys.modules.get('IPython')
    instance = shell.get_ipython() if shell else None
    return instance is not None and hasattr(instance, 'kernel')


class _NotebookBar:
    """A bar in the cell's output, where there is no terminal."""

    def __init__(self, last: int):
        from IPython.display import HTML, display  # type: ignore[import-not-found]
        self.html, self.last, self.shown, self.last_seconds = HTML, last, 0.0, 0.0
        self.display = display(HTML(''), display_id=True)

    def show(self, state: FitState, is_last: bool = False) -> None:
        self.last_seconds = state.seconds
        if not is_last and state.seconds - self.shown < 0.1:
            return
        self.shown = state.seconds
        rate = state.step / state.seconds if state.seconds else 0
        bar = f'<progress value="{state.step}" max="{self.last}"></progress> ' if self.last else ''
        self.display.update(self.html(f'{bar}step {state.step}{f"/{self.last}" if self.last else ""} · loss {state.loss:.4f} · '
                                      f'{rate:.0f} steps/s'))


class _Loop:
    """The callbacks of one loop; what they raise ends it, and is raised again when C has returned."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.kept: list[Any] = []

    def guard(self, function: Callable[..., None]) -> Callable[..., int | None]:
        def call(*args: Any) -> int | None:
            try:
                function(*args)
                return None
            except StopIteration:
                return make_status(errors.OutOfRangeError('the data ended'))
            except BaseException as error:  # pylint: disable=broad-exception-caught
                self.error = self.error or error
                return make_status(error)
        return call


def _state(c: Any) -> FitState:
    return FitState(c.contents.step, c.contents.loss, c.contents.seconds)


def _batcher(data: Mapping[Edge, Any], batch_size: int, epochs: int, seed: int, shuffle: bool) -> Handle:
    tensors = [tensor.Tensor(value, edge.dtype) for edge, value in data.items()]
    options = _c.weir_batcher_options_t(batch_size=batch_size, epochs=epochs, seed=seed, no_shuffle=not shuffle)
    out = ctypes.c_void_p()
    handles = (ctypes.c_void_p * len(tensors))(*(t.handle for t in tensors))
    check(C.weir_batcher_create_with(handles, len(tensors), ctypes.byref(options), ctypes.byref(out)))
    return Handle(out.value or 0, 'batcher', C.weir_batcher_destroy)


def _feed_callback(loop: _Loop, batches: Iterator[Mapping[Edge, Any]], kind: Any) -> Any:
    """Each step's feeds come from a Python iterator."""
    def feed(_arg: int, _step: int, feeds: Any, count: Any) -> None:
        for edge, value in next(batches).items():
            handle, number, _ = tensor.feed_handle(value, edge.dtype)
            if number < 0:
                C.weir_tensor_retain(handle)
            feeds[count[0]] = _c.weir_feed_t(edge.c, handle)
            count[0] += 1
    return kind(loop.guard(feed))


def fit(session: Session, step: Node, loss: Edge, data: Any = None, *, batch_size: int = 32, epochs: int = 0, max_steps: int = 0,
        shuffle: bool = True, seed: int = 0, on_step: Callable[[FitState], bool | None] | None = None,
        evaluate: Callable[[FitState], float] | None = None, saver: Saver | None = None, events: Events | None = None,
        init: bool = True, quiet: bool = False, **options: Any) -> FitResult:
    """Runs |step| and fetches |loss| until |max_steps| or the data's end.

    data: {edge: array}, dealt out in batches of rows; or an iterable of {edge: array}, a batch each.
    on_step: called after each step; True ends the loop. evaluate: gives a metric; with patience=N early stopping.
    init: initialises variables first, unless a checkpoint of |directory| is resumed.
    options: fields of weir_fit_options_t: directory, save_every, evaluate_every, patience, higher_is_better, log_every …

    A terminal shows one line with a bar, a notebook a bar in the cell, a pipe a line now and then. Ctrl-C saves a checkpoint, if
    there is a saver, and raises KeyboardInterrupt. With a Python iterable as data there is no going back to a batch when resuming.
    """
    loop, struct = _Loop(), library.options('weir_fit_options_t', session.graph, {'max_steps': max_steps, **options})
    kinds = {field[0]: field[1] for field in _c.weir_fit_options_t._fields_}  # pylint: disable=protected-access
    notebook = _NotebookBar(max_steps) if not quiet and _is_notebook() else None
    struct.is_quiet = quiet or notebook is not None
    struct.no_signals |= threading.current_thread() is not threading.main_thread()
    batcher = None
    node = session.graph.initializer() if init else None
    if node:
        struct.init = node.handle
    if isinstance(data, Mapping):
        batcher = _batcher(data, batch_size, epochs, seed, shuffle)
        inputs = (_c.weir_edge_t * len(data))(*(edge.c for edge in data))
        struct.inputs = inputs
    elif data is not None:
        struct.feed = _feed_callback(loop, iter(data), kinds['feed'])
    if on_step or notebook:
        struct.on_step = kinds['on_step'](loop.guard(_on_step(on_step, notebook)))
    if evaluate:
        def measure(_arg: int, state: Any, out: Any) -> None:
            out[0] = float(evaluate(_state(state)))
        struct.evaluate = kinds['evaluate'](loop.guard(measure))
    result = _run(session, step, loss, struct, loop, batcher, saver, events)
    if notebook:
        notebook.show(FitState(result.step, result.loss, notebook.last_seconds), is_last=True)
    return result


def _on_step(on_step: Callable[[FitState], bool | None] | None, notebook: _NotebookBar | None) -> Callable[..., None]:
    def call(_arg: int, state: Any, stop: Any) -> None:
        now = _state(state)
        if notebook:
            notebook.show(now)
        if on_step and on_step(now):
            stop[0] = True
    return call


def _run(session: Session, step: Node, loss: Edge, struct: Any, loop: _Loop, batcher: Handle | None, saver: Saver | None,
         events: Events | None) -> FitResult:
    result, used = _c.weir_fit_result_t(), []
    try:
        for field, owner in (('data', batcher), ('saver', saver and saver.handle), ('events', events and events.handle)):
            if owner:
                context = owner.use()
                setattr(struct, field, context.__enter__())
                used.append(context)
        with session.handle.use() as handle:
            status = C.weir_fit_with(handle, step.handle, loss.c, ctypes.byref(struct), ctypes.byref(result))
    finally:
        for context in used:
            context.__exit__(None, None, None)
        if batcher:
            batcher.close()
    if loop.error:
        C.weir_status_destroy(status)
        raise loop.error
    check(status)
    if result.reason == REASONS.index('signal'):
        raise KeyboardInterrupt
    return FitResult(result.step, result.taken, result.loss, result.best_metric, result.best_step, REASONS[result.reason],
                     result.is_resumed)
