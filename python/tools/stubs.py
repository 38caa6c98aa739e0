"""Writes ops.pyi, the types of all op functions, of the library that WEIR_LIBRARY names."""
import pathlib
import sys

from weir import nodes, opdefs

TYPES = {'int': 'int', 'float': 'float', 'bool': 'bool', 'type': 'DTypeLike', 'string': 'str | bytes', 'shape': 'Sequence[int | None] | None',
         'tensor': 'Any', 'func': 'str'}
HEAD = '''# ops.pyi: generated from the registry of ops: do not edit.
from builtins import bool as _bool, float as _float, int as _int, str as _str, bytes as _bytes
from typing import Any, NamedTuple, Sequence

from .dtypes import DTypeLike
from .graph import Edge, EdgeLike, Node
from .nodes import argmax as argmax, argmin as argmin, concat as concat, gather as gather, matmul as matmul

def add_node(op_name: _str, inputs: Sequence[Any] = ..., *, name: _str | None = ..., graph: Any = ..., **attrs: Any) -> Any: ...
'''
REDUCTIONS = ('sum', 'mean', 'max', 'min', 'prod', 'all', 'any')
BY_HAND = {*REDUCTIONS, 'argmax', 'argmin', 'concat', 'gather', 'matmul'}
BUILTINS = ('int', 'float', 'bool', 'str', 'bytes')  # some are names of ops, too


def type_of(attr):
    kind = TYPES[attr.type.removeprefix('list(').removesuffix(')')] if attr.type != 'list(tensor)' else 'Any'
    kind = ' '.join('_' + w if w in BUILTINS else w for w in kind.replace('[', '[ ').split()).replace('[ ', '[').replace('[int', '[_int')
    return f'Sequence[{kind}]' if attr.type.startswith('list(') else kind


def stub(function, op):
    signature = nodes.make(function, op).__signature__
    attrs = {opdefs.safe(a.name): a for a in op.attrs}
    inputs = {opdefs.safe(a.name): a for a in op.inputs}
    parts, has_star = [], False
    for name, p in signature.parameters.items():
        if p.kind is p.KEYWORD_ONLY and not has_star:
            parts.append('*')
            has_star = True
        kind = '_str | None' if name == 'name' and p.kind is p.KEYWORD_ONLY else \
            ('Sequence[EdgeLike]' if inputs[name].is_list else 'EdgeLike') if name in inputs else type_of(attrs[name])
        parts.append(f'{name}: {kind}' + (' = ...' if p.default is not p.empty else ''))
    one = len(op.outputs) == 1
    result = 'Node' if not op.outputs else 'Any' if not one else 'list[Edge]' if op.outputs[0].is_list else 'Edge'
    return f'def {function}({", ".join(parts)}) -> {result}: ...'


def main():
    lines = [HEAD] + [f'def {n}(x: EdgeLike, axis: EdgeLike = ..., *, keepdims: _bool = ..., name: _str | None = ...) -> Edge: ...'
                      for n in REDUCTIONS]
    for function, name in sorted(opdefs.by_function().items()):
        if function not in BY_HAND:
            lines.append(stub(function, opdefs.find(name)))
    pathlib.Path(sys.argv[1]).write_text('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
