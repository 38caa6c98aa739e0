"""Models from files: SavedModels, MetaGraphDefs and frozen graphs, run by the names of their signatures; and saved."""
from __future__ import annotations

import ctypes
from typing import Any, Mapping, NamedTuple

from . import _c, dtypes, interrupt, library, tensor
from ._lib import C, check, errors, take_text, text
from .graph import Edge, Graph
from .handle import Handle, Owner
from .session import Feeds, Session


class Port(NamedTuple):
    """An input or output of a signature."""
    name: str
    tensor: str
    dtype: dtypes.DType
    shape: tuple[int | None, ...] | None


class Signature(NamedTuple):
    name: str
    method: str
    inputs: dict[str, Port]
    outputs: dict[str, Port]


def _ports(items: Any, count: int) -> dict[str, Port]:
    out = {}
    for p in items[:count]:
        shape = None if p.rank < 0 else tuple(None if d < 0 else d for d in p.dims[:p.rank])
        out[p.name.decode()] = Port(p.name.decode(), p.tensor.decode(), dtypes.as_dtype(p.dtype), shape)
    return out


class Model(Owner):
    """A loaded model: model(x=array) gives {"name": array}. Safe for several threads."""

    def __init__(self, path: Any, *, tags: str | None = None, checkpoint: Any = None, **options: Any):
        struct = library.options('weir_model_options_t', None, {'tags': tags, 'checkpoint': checkpoint})
        struct.session = library.options('weir_session_options_t', None, options)
        out = ctypes.c_void_p()
        check(C.weir_model_load(text(path), ctypes.byref(struct), ctypes.byref(out)))
        self.handle = Handle(out.value or 0, 'model', C.weir_model_destroy, lambda m: C.weir_session_cancel(C.weir_model_session(m)))
        self.signatures: dict[str, Signature] = {}
        for i in range(C.weir_model_signature_count(out)):
            s = C.weir_model_signature_at(out, i).contents
            self.signatures[s.name.decode()] = Signature(s.name.decode(), (s.method or b'').decode(), _ports(s.inputs, s.input_count),
                                                         _ports(s.outputs, s.output_count))
        self.graph = Graph(C.weir_model_graph(out))

    def signature(self, name: str | None = None) -> Signature:
        """|name| None: "serving_default", or the only one."""
        found = self.signatures.get(name or 'serving_default')
        if found is None and name is None and len(self.signatures) == 1:
            found = next(iter(self.signatures.values()))
        if found is None:
            raise errors.NotFoundError(f"there is no signature '{name or 'serving_default'}', but {sorted(self.signatures)}")
        return found

    def __call__(self, *args: Any, signature: str | None = None, **inputs: Any) -> dict[str, Any]:
        """Runs a signature: inputs by name, or the only one by position."""
        return self.run(inputs, *args, signature=signature)

    def run(self, inputs: Mapping[str, Any], *args: Any, signature: str | None = None, timeout: float | None = None) -> dict[str, Any]:
        """The same with inputs whose names are no names of Python's."""
        chosen, given = self.signature(signature), dict(inputs)
        if args:
            if len(args) != 1 or len(chosen.inputs) != 1 or given:
                raise TypeError(f'inputs are given by name: {sorted(chosen.inputs)}')
            given[next(iter(chosen.inputs))] = args[0]
        known = {name: port.dtype for name, port in chosen.inputs.items()}
        feeds = Feeds([(known.get(name), value) for name, value in given.items()])
        try:
            named = (_c.weir_named_tensor_t * max(1, len(given)))(
                *(_c.weir_named_tensor_t(text(name), h) for name, (h, _, _) in zip(given, feeds.handles)))
            outputs = (_c.weir_named_tensor_t * max(1, len(chosen.outputs)))(*(_c.weir_named_tensor_t(text(n), None) for n in chosen.outputs))
            self._run(chosen, named, len(given), outputs, timeout)
            return {name: tensor.result(outputs[i].tensor) for i, name in enumerate(chosen.outputs)}
        finally:
            feeds.release()

    def _run(self, signature: Signature, named: Any, count: int, outputs: Any, timeout: float | None) -> None:
        cancellation = ctypes.c_void_p()
        check(C.weir_cancellation_create(ctypes.byref(cancellation)))
        try:
            options = _c.weir_run_options_t(max(1, round(timeout * 1000)) if timeout is not None else 0, cancellation, False)
            with self.handle.use() as handle, interrupt.cancels(lambda: C.weir_cancellation_cancel(cancellation)):
                status = C.weir_model_run(handle, text(signature.name), named, count, outputs, len(signature.outputs), ctypes.byref(options))
            check(status)
        finally:
            C.weir_cancellation_destroy(cancellation)

    def freeze(self, signature: str | None = None, *, quantize_int8: bool = False) -> bytes:
        """What a signature computes, as a GraphDef without variables."""
        options = library.options('weir_freeze_options_t', None, {'signature': signature, 'quantize_int8': quantize_int8})
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        with self.handle.use() as handle:
            check(C.weir_model_freeze(handle, ctypes.byref(options), ctypes.byref(data), ctypes.byref(size)))
        return take_text(data, size.value)


def load_model(path: Any, *, tags: str | None = None, checkpoint: Any = None, **options: Any) -> Model:
    """Loads a SavedModel's directory, a MetaGraphDef (".meta") or a GraphDef (".pb", ".pbtxt").

    tags: which graph of a SavedModel, "serve" by default. checkpoint: with the variables of a .meta or .pb.
    options: as for Session.
    """
    return Model(path, tags=tags, checkpoint=checkpoint, **options)


def _named(edges: Mapping[str, Edge]) -> Any:
    return (_c.weir_named_edge_t * max(1, len(edges)))(*(_c.weir_named_edge_t(text(n), e.c) for n, e in edges.items()))


def save_model(session: Session, directory: Any, inputs: Mapping[str, Edge], outputs: Mapping[str, Edge], *,
               signature: str = 'serving_default', tags: str | None = None, whole_graph: bool = False) -> None:
    """Writes a SavedModel, which TensorFlow and servers load: the session's graph with its variables as they are."""
    spec = _c.weir_signature_spec_t(text(signature), None, _named(inputs), len(inputs), _named(outputs), len(outputs))
    options = library.options('weir_model_save_options_t', session.graph, {'tags': tags, 'whole_graph': whole_graph})
    options.signatures, options.signature_count = ctypes.pointer(spec), 1
    with session.handle.use() as handle:
        check(C.weir_model_save(handle, text(directory), ctypes.byref(options)))
