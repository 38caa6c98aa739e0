"""What ops there are: the library's OpList, of which each op is read when it is first used."""
from __future__ import annotations

import ctypes
import functools
import keyword
import re
import struct
from typing import Any, Iterator, NamedTuple

from . import dtypes
from ._lib import C, check, take_text


class Arg(NamedTuple):
    name: str
    type: int  # 0: said by an attribute
    type_attr: str
    number_attr: str
    type_list_attr: str

    @property
    def is_list(self) -> bool:
        return bool(self.number_attr or self.type_list_attr)


class Attr(NamedTuple):
    name: str
    type: str
    default: Any
    has_default: bool


class OpDef(NamedTuple):
    name: str
    inputs: list[Arg]
    outputs: list[Arg]
    attrs: list[Attr]
    summary: str

    def is_inferred(self, attr: str) -> bool:
        """Whether the inputs tell the attribute."""
        return any(attr in (arg.type_attr, arg.number_attr, arg.type_list_attr) for arg in self.inputs)


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a protobuf message that the library wrote."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value: Any = varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            value = data[at:at + size]
            at += size
        yield tag >> 3, value


def _default(data: bytes) -> Any:
    """The value of an AttrValue, where it is short enough for a signature."""
    for number, value in fields(data):
        if number == 1:
            return [_default(_again(n, v)) for n, v in fields(value)]
        if number == 2:
            return value.decode(errors='replace')
        if number == 3:
            return value - (1 << 64) if value >> 63 else value
        if number == 4:
            return float(f'{struct.unpack("<f", value)[0]:.7g}')
        if number == 5:
            return bool(value)
        if number == 6:
            return dtypes.BY_NUMBER.get(value)
        if number == 7:
            return _shape(value)
    return None


def _again(number: int, value: Any) -> bytes:
    """One field as a message of its own: numbers in a list are the numbers of AttrValue's fields."""
    if isinstance(value, int):
        out, rest = bytearray([number << 3]), value
        while rest > 127:
            out.append(rest & 127 | 128)
            rest >>= 7
        return bytes(out + bytes([rest]))
    return bytes([number << 3 | 5]) + value if number == 4 else b''


def _shape(data: bytes) -> Any:
    dims = []
    for number, value in fields(data):
        if number == 3:
            return None
        size = dict(fields(value)).get(1, 0)
        dims.append(-1 if size >> 63 else size)
    return dims


def _arg(data: bytes) -> Arg:
    got = dict(fields(data))
    return Arg(got[1].decode(), got.get(3, 0), *(got.get(n, b'').decode() for n in (4, 5, 6)))


def _attr(data: bytes) -> Attr:
    got = dict(fields(data))
    return Attr(got[1].decode(), got[2].decode(), _default(got[3]) if 3 in got else None, 3 in got)


def snake(name: str) -> str:
    """BatchMatMulV2 → batch_mat_mul_v2, Conv2D → conv2d: as in weir/ops.h."""
    out = ''
    for i, c in enumerate(name):
        after = name[i + 1:i + 2]
        if c.isupper() and i and (name[i - 1].islower() or name[i - 1].isdigit() and after.islower() or
                                  name[i - 1].isupper() and after.islower()):
            out += '_'
        out += c.lower()
    return safe(out)


def safe(name: str) -> str:
    return name + '_' if keyword.iskeyword(name) or name in ('self', 'name') else name


@functools.lru_cache(None)
def _index() -> dict[str, bytes]:
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(C.weir_op_list(ctypes.byref(data), ctypes.byref(size)))
    ops = {}
    for _, op in fields(take_text(data, size.value)):
        name = next(value for number, value in fields(op) if number == 1).decode()
        ops[name] = op
    return ops


@functools.lru_cache(None)
def by_function() -> dict[str, str]:
    """{name of the function: name of the op}."""
    return {snake(name): name for name in _index() if re.match('[A-Za-z]', name)}


@functools.lru_cache(None)
def find(name: str) -> OpDef | None:
    """The op's definition; None: there is none of that name."""
    data = _index().get(name)
    if data is None:
        return None
    parts: dict[int, list[Any]] = {}
    for number, value in fields(data):
        parts.setdefault(number, []).append(value)
    return OpDef(name, [_arg(a) for a in parts.get(2, [])], [_arg(a) for a in parts.get(3, [])], [_attr(a) for a in parts.get(4, [])],
                 parts.get(5, [b''])[0].decode())
