"""Sessions: run any part of a graph on state that lives between steps, here or on a server."""
from __future__ import annotations

import ctypes
import weakref
from typing import Any, Callable, Mapping, Sequence

from . import _c, interrupt, library, tensor
from ._lib import C, check, errors, take_text, text
from .graph import Edge, Graph, Node, Variable, default_graph
from .handle import Handle, Owner

open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()  # closed when the process ends, while Python still works


def _edge(graph: Graph, item: Any) -> Edge | Node:
    """What may be fetched or run: an edge, a node, or the name of either."""
    if isinstance(item, (Edge, Node)):
        return item
    if isinstance(item, str):
        node = graph.node(item) if ':' not in item else None
        return node if node is not None and C.weir_node_output_count(node.handle) == 0 else graph.edge(item)
    raise TypeError(f'{item!r} is neither an edge nor a node, nor the name of one')


class Structure:
    """Fetches in nested lists, tuples and dicts: which edges and nodes there are, and results in the same shape."""

    def __init__(self, graph: Graph, fetches: Any):
        self.graph, self.edges, self.nodes = graph, [], []  # type: Graph, list[Edge], list[Node]
        self.shape = self._look(fetches)

    def _look(self, item: Any) -> Any:
        if isinstance(item, Mapping):
            return {k: self._look(v) for k, v in item.items()}
        if isinstance(item, tuple) and hasattr(item, '_fields'):
            return type(item)(*map(self._look, item))
        if isinstance(item, (list, tuple)):
            return type(item)(map(self._look, item))
        if item is None:
            return None
        found = _edge(self.graph, item)
        if isinstance(found, Node):
            self.nodes.append(found)
            return None
        self.edges.append(found)
        return _At(len(self.edges) - 1)

    def fill(self, results: Sequence[Any]) -> Any:
        return self._fill(self.shape, results)

    def _fill(self, item: Any, results: Sequence[Any]) -> Any:
        if isinstance(item, _At):
            return results[item.index]
        if isinstance(item, dict):
            return {k: self._fill(v, results) for k, v in item.items()}
        if isinstance(item, tuple) and hasattr(item, '_fields'):
            return type(item)(*(self._fill(v, results) for v in item))
        return type(item)(self._fill(v, results) for v in item) if isinstance(item, (list, tuple)) else None

    def spec(self, feeds: Sequence[Edge]) -> Any:
        """weir_step_spec_t; tensors of feeds are set later."""
        items = (_c.weir_feed_t * max(1, len(feeds)))(*(_c.weir_feed_t(e.c, None) for e in feeds))
        edges = (_c.weir_edge_t * max(1, len(self.edges)))(*(e.c for e in self.edges))
        nodes = (ctypes.c_void_p * max(1, len(self.nodes)))(*(n.handle for n in self.nodes))
        return _c.weir_step_spec_t(items, len(feeds), edges, len(self.edges), nodes, len(self.nodes))


class _At:
    """Where a result goes."""
    __slots__ = ('index',)

    def __init__(self, index: int):
        self.index = index


class Feeds:
    """Tensors of what is fed, alive for one call."""

    def __init__(self, values: Sequence[tuple[Any, Any]]):
        """|values|: (type or None, what is fed)."""
        self.handles: list[tuple[int, int, Any]] = []
        try:
            for dtype, value in values:
                self.handles.append(tensor.feed_handle(value, dtype))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        for handle, number, _ in self.handles:
            if number < 0:
                continue
            C.weir_tensor_release(handle)
            if number:
                tensor.protect(number)
        self.handles = []


class Session(Owner):
    """Runs a graph. Variables, queues and tables live as long as the graph's last session. Safe for several threads.

    Closing cancels running steps, and waits for them.
    """

    def __init__(self, graph: Graph | None = None, target: str | None = None, **options: Any):
        """|target|: "grpc://host:port", a server that runs the steps. |options|: the fields of weir_session_options_t, such as
        threads, devices, mixed_precision, isolate_state, tls_ca, token_file."""
        self.graph = graph or default_graph()
        struct = library.options('weir_session_options_t', None, {'target': target, **options})
        out = ctypes.c_void_p()
        check(C.weir_session_create(self.graph.handle, ctypes.byref(struct), ctypes.byref(out)))
        self.handle = Handle(out.value or 0, 'session', C.weir_session_destroy, C.weir_session_cancel)
        open_sessions.add(self)

    @classmethod
    def borrow(cls, graph: Graph, handle: int) -> Session:
        """A session that somebody else ends."""
        self = cls.__new__(cls)
        self.graph, self.handle = graph, Handle(handle, 'session', lambda _: None)
        return self

    def cancel(self) -> None:
        """Cancels every step now running: CancelledError."""
        with self.handle.use() as handle:
            C.weir_session_cancel(handle)

    def init(self) -> None:
        """Gives all variables of the graph what they start with."""
        node = self.graph.initializer()
        if node:
            self.run(node)

    # ---- steps ----

    def run(self, fetches: Any, feeds: Mapping[Any, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Runs one step, and gives what |fetches| asks for: an edge, node or name, or lists, tuples and dicts of them.

        Edges give arrays of the caller's own, nodes None. |feeds| sets edges to arrays, which are read in place: one that a
        variable or a queue keeps is read-only as long as that does. |timeout|: seconds, then DeadlineExceededError.
        """
        structure = Structure(self.graph, fetches)
        edges = [_edge(self.graph, key) for key in feeds or ()]
        results = self._step(structure, edges, list((feeds or {}).values()), timeout, None)
        return structure.fill(results)

    def trace(self, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> tuple[Any, str]:
        """As run, and the step's times as JSON for chrome://tracing and Perfetto."""
        structure, out = Structure(self.graph, fetches), ctypes.c_void_p()
        edges = [_edge(self.graph, key) for key in feeds or ()]
        results = self._step(structure, edges, list((feeds or {}).values()), None, out)
        return structure.fill(results), take_text(out).decode()

    def _step(self, structure: Structure, edges: Sequence[Any], values: Sequence[Any], timeout: float | None, trace: Any) -> list[Any]:
        for edge in edges:
            if not isinstance(edge, Edge):
                raise errors.InvalidArgumentError(f"'{edge.name}' has no output that could be fed")
        if any(e.graph.handle != self.graph.handle for e in [*structure.edges, *structure.nodes, *edges]):
            raise errors.InvalidArgumentError('what is run or fed belongs to another graph than the session')
        feeds = Feeds([(e.dtype, v) for e, v in zip(edges, values)])
        try:
            spec = structure.spec(edges)
            for i, (handle, _, _) in enumerate(feeds.handles):
                spec.feeds[i].tensor = handle
            out = (ctypes.c_void_p * max(1, len(structure.edges)))()
            with self.handle.use() as handle:
                if trace is not None:
                    check(C.weir_session_run_traced(handle, ctypes.byref(spec), out, ctypes.byref(trace)))
                else:
                    _run(handle, spec, timeout, out)
            return [tensor.result(t or 0) for t in out[:len(structure.edges)]]
        finally:
            feeds.release()

    def callable(self, fetches: Any, feeds: Sequence[Edge] = ()) -> Callable[..., Any]:
        """A step that is prepared once: a function of what is fed, in the order of |feeds|."""
        return Callable_(self, fetches, feeds)

    # ---- checkpoints ----

    def save(self, prefix: Any) -> None:
        """Writes all variables as a checkpoint that TensorFlow reads, too: "dir/model.ckpt-100"."""
        with self.handle.use() as handle:
            check(C.weir_checkpoint_save(handle, text(prefix)))

    def restore(self, prefix: Any) -> None:
        """Reads all variables from a checkpoint, of TensorFlow's V2 format."""
        with self.handle.use() as handle:
            check(C.weir_checkpoint_restore(handle, text(prefix)))


def _run(handle: int, spec: Any, timeout: float | None, out: Any) -> None:
    """One step, which Ctrl-C cancels."""
    cancellation = ctypes.c_void_p()
    check(C.weir_cancellation_create(ctypes.byref(cancellation)))
    try:
        options = _c.weir_run_options_t(max(1, round(timeout * 1000)) if timeout is not None else 0, cancellation, False)
        with interrupt.cancels(lambda: C.weir_cancellation_cancel(cancellation)):
            status = C.weir_session_run_with(handle, ctypes.byref(spec), ctypes.byref(options), out, None, None)
        check(status)
    finally:
        C.weir_cancellation_destroy(cancellation)


class Callable_:
    """What Session.callable gives."""

    def __init__(self, session: Session, fetches: Any, feeds: Sequence[Edge]):
        self.session, self.structure, self.types = session, Structure(session.graph, fetches), [e.dtype for e in feeds]
        out, spec = ctypes.c_void_p(), self.structure.spec(feeds)
        with session.handle.use() as handle:
            check(C.weir_callable_create(handle, ctypes.byref(spec), ctypes.byref(out)))
        self.handle = Handle(out.value or 0, 'callable', C.weir_callable_destroy)

    def __call__(self, *values: Any) -> Any:
        if len(values) != len(self.types):
            raise TypeError(f'{len(self.types)} values are fed, not {len(values)}')
        feeds = Feeds(list(zip(self.types, values)))
        try:
            tensors = (ctypes.c_void_p * max(1, len(values)))(*(h for h, _, _ in feeds.handles))
            out = (ctypes.c_void_p * max(1, len(self.structure.edges)))()
            with self.session.handle.use() as session, self.handle.use() as handle:
                with interrupt.cancels(lambda: C.weir_session_cancel(session)):
                    status = C.weir_callable_run(handle, tensors, out)
                check(status)
            return self.structure.fill([tensor.result(t or 0) for t in out[:len(self.structure.edges)]])
        finally:
            feeds.release()

    def __del__(self) -> None:
        if getattr(self, 'handle', None) and not self.session.handle.is_closed:
            with self.session.handle.use():
                self.handle.close()


__all__ = ['Session', 'Variable']
