"""Graphs, their nodes and edges, and where new nodes go."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence, Union

from . import _c, dtypes
from ._lib import C, check, errors, take_text, text
from .dtypes import DTypeLike, as_dtype
from .tensor import Tensor, as_array, from_array

_places = threading.local()  # .stack: [(graph, scope)], innermost last
_default: Graph | None = None
_default_lock = threading.Lock()


class Node:
    """An op of a graph. A session that is asked for it runs it, and gives None."""
    __slots__ = ('graph', 'handle')

    def __init__(self, graph: Graph, handle: int):
        self.graph, self.handle = graph, handle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.handle == other.handle

    def __hash__(self) -> int:
        return hash(self.handle)

    def __repr__(self) -> str:
        return f'<Node {self.name!r} {self.type}>'

    @property
    def name(self) -> str:
        return C.weir_node_name(self.handle).decode()

    @property
    def type(self) -> str:
        """The name of its op: "MatMul"."""
        return C.weir_node_op(self.handle).decode()

    @property
    def device(self) -> str:
        return C.weir_node_device(self.handle).decode()

    @property
    def inputs(self) -> list[Edge]:
        edges = (C.weir_node_input(self.handle, i) for i in range(C.weir_node_input_count(self.handle)))
        return [Edge(self.graph, e.node, e.index) for e in edges]

    @property
    def outputs(self) -> list[Edge]:
        return [Edge(self.graph, self.handle, i) for i in range(C.weir_node_output_count(self.handle))]


class Edge:
    """A value of a graph: an output of a node. Operators and indices add nodes; == asks whether two are the same edge."""
    __slots__ = ('graph', 'node_handle', 'index')
    __array_priority__ = 1000.0  # array + edge is the edge's operator
    __array_ufunc__ = None

    def __init__(self, graph: Graph, node: int, index: int):
        self.graph, self.node_handle, self.index = graph, node, index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and (self.node_handle, self.index) == (other.node_handle, other.index)

    def __hash__(self) -> int:
        return hash((self.node_handle, self.index))

    def __repr__(self) -> str:
        return f'<Edge {self.name!r} {self.dtype.name} {self.shape}>'

    if TYPE_CHECKING:  # nodes.py adds them
        def _unary(self) -> Edge: ...
        def _binary(self, other: Any) -> Edge: ...
        __neg__ = __abs__ = __invert__ = _unary
        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = __and__ = __or__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = __rand__ = __ror__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary

    def numpy(self) -> Any:
        """What has been computed: on a tape (w.Eager)."""
        return self.graph.value(self)

    def __bool__(self) -> bool:
        return bool(self.graph.value(self))

    def __float__(self) -> float:
        return float(self.graph.value(self))

    def __int__(self) -> int:
        return int(self.graph.value(self))

    def __iter__(self) -> Iterator[Edge]:
        if not self.shape or self.shape[0] is None:
            raise TypeError('the size of the first dimension is not known: use w.unpack(x, num)')
        return (self[i] for i in range(self.shape[0]))

    @property
    def c(self) -> Any:
        return _c.weir_edge_t(self.node_handle, self.index)

    @property
    def node(self) -> Node:
        return Node(self.graph, self.node_handle)

    @property
    def name(self) -> str:
        return f'{self.node.name}:{self.index}'

    @property
    def dtype(self) -> dtypes.DType:
        return as_dtype(C.weir_edge_type(self.c))

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Sizes, None for one that is not known; None: nor is the rank."""
        dims = (ctypes.c_int64 * 254)()
        rank = C.weir_edge_dims(self.c, dims, 254)
        return None if rank < 0 else tuple(None if d < 0 else d for d in dims[:rank])

    def __getitem__(self, key: Any) -> Edge:
        from .nodes import index
        return index(self, key)


class Variable(Edge):
    """The value of a variable. Sessions keep it: see Session.init."""
    __slots__ = ('info',)
    info: Any  # weir_variable_info_t

    def __init__(self, initial: Any, shape: Sequence[int] | None = None, dtype: DTypeLike = None, *, name: str = 'variable',
                 trainable: bool = True):
        """|initial|: an array, an edge, or an initializer, which needs |shape|. Optimizers leave those that are not |trainable|."""
        from .library import initial_edge
        edge = initial_edge(initial, shape, dtype)
        make = C.weir_variable if trainable else C.weir_state_variable
        with edge.graph.building() as scope:
            made = make(scope, text(name), edge.c)
        found = next(v for v in reversed(edge.graph.variables) if v.node_handle == made.node)
        super().__init__(edge.graph, found.node_handle, found.index)
        self.info = found.info

    @classmethod
    def of(cls, graph: Graph, info: Any) -> Variable:
        self = cls.__new__(cls)
        Edge.__init__(self, graph, info.value.node, info.value.index)
        self.info = info
        return self

    @property
    def handle(self) -> Edge:
        return Edge(self.graph, self.info.handle.node, self.info.handle.index)

    @property
    def initializer(self) -> Node:
        return Node(self.graph, self.info.initializer)

    @property
    def trainable(self) -> bool:
        return self.info.is_trainable

    @property
    def variable_name(self) -> str:
        """What checkpoints call it."""
        return self.handle.node.name

    def assign(self, value: Any) -> Node:
        from . import ops
        return ops.assign_variable_op(self.handle, convert(value, self.dtype))

    def assign_add(self, value: Any) -> Node:
        from . import ops
        return ops.assign_add_variable_op(self.handle, convert(value, self.dtype))


EdgeLike = Union[Edge, Any]


class Graph:
    """A graph that grows. `with graph:` makes it the one that new nodes go to; without any they go to the default graph."""

    def __init__(self, handle: int | None = None):
        """|handle|: a graph of C's that is retained."""
        out = ctypes.c_void_p(C.weir_graph_retain(handle) if handle else None)
        if not handle:
            check(C.weir_graph_create(ctypes.byref(out)))
        self.handle: int = out.value  # type: ignore[assignment]
        self.root: int = C.weir_scope_create(self.handle)
        self.lock = threading.RLock()  # scopes are one thread's at a time
        self._initializer: tuple[int, Node | None] = (0, None)

    def __del__(self, finish: Any = C.weir_scope_finish, destroy: Any = C.weir_status_destroy, release: Any = C.weir_graph_release) -> None:
        if getattr(self, 'root', 0):
            destroy(finish(self.root))
            release(self.handle)

    # ---- where nodes go ----

    def __enter__(self) -> Graph:
        _stack().append((self, self.root))
        return self

    def __exit__(self, *_: Any) -> None:
        _stack().pop()

    as_default = __enter__

    @contextlib.contextmanager
    def building(self) -> Iterator[int]:
        """The scope for new nodes; an error of what is done there is raised, and does not stick."""
        with self.lock:
            yield self.scope_handle()
            check(C.weir_scope_take_error(self.root))

    def scope_handle(self) -> int:
        stack = _stack()
        return stack[-1][1] if stack and stack[-1][0] is self else self.root

    @contextlib.contextmanager
    def _within(self, derive: Any) -> Iterator[Graph]:
        with self.building() as scope:
            inner = derive(scope)
        _stack().append((self, inner))
        try:
            yield self
        finally:
            _stack().pop()

    def scope(self, name: str) -> contextlib.AbstractContextManager[Graph]:
        """New nodes are called "name/…", or "name_1/…" where there is such a scope."""
        return self._within(lambda scope: C.weir_scope_in(scope, text(name)))

    def device(self, name: str) -> contextlib.AbstractContextManager[Graph]:
        """New nodes are placed on the device, "/gpu:0"."""
        return self._within(lambda scope: C.weir_scope_on(scope, text(name)))

    def after(self, *nodes: Node | Edge) -> contextlib.AbstractContextManager[Graph]:
        """New nodes run when |nodes| have."""
        handles = [n.node_handle if isinstance(n, Edge) else n.handle for n in nodes]
        array = (ctypes.c_void_p * max(1, len(handles)))(*handles)
        return self._within(lambda scope: C.weir_scope_after(scope, array, len(handles)))

    def seed(self, seed: int) -> None:
        """Makes what is drawn at random from now on, and has no seed of its own, the same in every run."""
        C.weir_scope_seed(self.root, seed)

    def value(self, edge: Edge) -> Any:
        """What |edge| is: on a tape, see Tape."""
        raise TypeError('an edge has no value while the graph is built: run it, or use w.cond')

    # ---- what there is ----

    @property
    def nodes(self) -> list[Node]:
        return [Node(self, C.weir_graph_node_at(self.handle, i)) for i in range(C.weir_graph_node_count(self.handle))]

    def node(self, name: str) -> Node:
        handle = C.weir_graph_find_node(self.handle, text(name))
        if not handle:
            raise errors.NotFoundError(f"the graph has no node '{name}'")
        return Node(self, handle)

    def edge(self, name: str) -> Edge:
        """The output "node:0", or "node"."""
        out = _c.weir_edge_t()
        check(C.weir_graph_find_output(self.handle, text(name), ctypes.byref(out)))
        return Edge(self, out.node, out.index)

    @property
    def variables(self) -> list[Variable]:
        """Of those made on this object, in order."""
        return [Variable.of(self, C.weir_scope_variable_at(self.root, i)) for i in range(C.weir_scope_variable_count(self.root))]

    @property
    def trainable_variables(self) -> list[Variable]:
        return [v for v in self.variables if v.trainable]

    def initializer(self) -> Node | None:
        """A node that gives all variables made so far what they start with; None: there is no variable."""
        with self.lock:
            count = C.weir_scope_variable_count(self.root)
            if count != self._initializer[0]:
                handle = C.weir_initializer(self.root)
                check(C.weir_scope_take_error(self.root))
                self._initializer = (count, Node(self, handle))
            return self._initializer[1]

    # ---- GraphDefs ----

    @classmethod
    def load(cls, path: Any) -> Graph:
        """A graph from a file: a binary GraphDef, or text where the name ends in .pbtxt or .txt."""
        out = ctypes.c_void_p()
        check(C.weir_graph_load(text(path), ctypes.byref(out)))
        try:
            return cls(out.value)
        finally:
            C.weir_graph_release(out)

    def import_def(self, data: bytes, prefix: str | None = None) -> None:
        """Adds the nodes of a binary GraphDef."""
        check(C.weir_graph_import_def(self.handle, data, len(data), text(prefix)))

    def to_def(self) -> bytes:
        """The graph as a binary GraphDef, which TensorFlow reads, too."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(C.weir_graph_to_def(self.handle, ctypes.byref(data), ctypes.byref(size)))
        return take_text(data, size.value)

    def to_text(self) -> str:
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(C.weir_graph_to_text(self.handle, ctypes.byref(data), ctypes.byref(size)))
        return take_text(data, size.value).decode()


def _stack() -> list[tuple[Graph, int]]:
    if not hasattr(_places, 'stack'):
        _places.stack = []
    return _places.stack


@contextlib.contextmanager
def within(graph: Graph, scope: int) -> Iterator[None]:
    """New nodes of |graph| go to |scope|, which C handed out."""
    _stack().append((graph, scope))
    try:
        yield
    finally:
        _stack().pop()


def default_graph() -> Graph:
    """The innermost graph of `with`; without any the process's own, which is made on first use."""
    global _default
    if _stack():
        return _stack()[-1][0]
    with _default_lock:
        if _default is None:
            _default = Graph()
        return _default


def reset_default_graph() -> None:
    """The next node begins a new default graph. For notebooks, and tests."""
    global _default
    _default = None


def graph_of(values: Iterable[Any]) -> Graph:
    """The graph of `with`, else that of the first edge among |values|, else the default graph."""
    if not _stack():
        for value in values:
            if isinstance(value, Edge):
                return value.graph
            if isinstance(value, (list, tuple)):
                for item in value:
                    if isinstance(item, Edge):
                        return item.graph
    return default_graph()


def scope(name: str) -> contextlib.AbstractContextManager[Graph]:
    """Graph.scope of the default graph."""
    return default_graph().scope(name)


def device(name: str) -> contextlib.AbstractContextManager[Graph]:
    """Graph.device of the default graph."""
    return default_graph().device(name)


def after(*nodes: Node | Edge) -> contextlib.AbstractContextManager[Graph]:
    """Graph.after of the default graph."""
    return graph_of([n if isinstance(n, Edge) else None for n in nodes]).after(*nodes)


def set_seed(seed: int) -> None:
    """Graph.seed of the default graph."""
    default_graph().seed(seed)


def constant(value: Any, dtype: DTypeLike = None, *, name: str | None = None, graph: Graph | None = None) -> Edge:
    """A constant: of an array, numbers, strings, or nested lists of them."""
    graph = graph or graph_of([])
    tensor = value if isinstance(value, Tensor) else None
    if tensor is None:
        array, wanted = as_array(value, dtype)
        # Constants outlive the array: it may be changed later, the constant must not.
        tensor = Tensor.adopt(from_array(array.copy() if array.nbytes and array.dtype.kind not in 'OSU' else array, wanted)[0])
    with graph.building() as inner:
        edge = C.weir_const(C.weir_scope_name(inner, text(name)) if name else inner, tensor.handle)
    return Edge(graph, edge.node, edge.index)


def convert(value: Any, dtype: DTypeLike = None, graph: Graph | None = None) -> Edge:
    """|value| as an edge: constants become nodes."""
    if isinstance(value, Edge):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(item, Edge) for item in value):
        from .ops import pack
        return pack([convert(item, dtype, graph) for item in value])
    return constant(value, dtype, graph=graph)
