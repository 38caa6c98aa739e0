"""Element types: w.float32 and its kin, and what NumPy, Python and Weir call them."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import numpy as np


class DType:
    """An element type. Compares equal to whatever else names it: NumPy's dtype, "float32"."""
    __slots__ = ('number', 'name', 'array_name', 'is_plain')

    def __init__(self, number: int, name: str, array_name: str | None):
        self.number, self.name, self.array_name = number, name, array_name
        self.is_plain = array_name is not None

    def __repr__(self) -> str:
        return f'weir.{self.name}'

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.number == other.number
        try:
            return as_dtype(other).number == self.number
        except TypeError:
            return False

    @property
    def numpy(self) -> np.dtype:
        """NumPy's type. Without the package ml_dtypes, those that NumPy lacks are integers of the same bits."""
        import numpy
        if self.array_name is None:
            return numpy.dtype(object)
        if self.array_name in BITS:
            try:
                import ml_dtypes
                return numpy.dtype(getattr(ml_dtypes, self.array_name))
            except (ImportError, AttributeError):
                warnings.warn(f'{self.name} elements are shown as the bits they are, {BITS[self.array_name]}: the package ml_dtypes, '
                              'which has the type, is not installed', stacklevel=3)
                return numpy.dtype(BITS[self.array_name])
        return numpy.dtype(self.array_name)


# What NumPy itself has not.
BITS = {'bfloat16': 'uint16', 'float8_e5m2': 'uint8', 'float8_e4m3fn': 'uint8', 'float8_e4m3fnuz': 'uint8', 'float8_e4m3b11fnuz': 'uint8',
        'float8_e5m2fnuz': 'uint8', 'int4': 'int8', 'uint4': 'uint8', 'int2': 'int8', 'uint2': 'uint8', 'float4_e2m1fn': 'uint8'}
ROWS = [(1, 'float32', 'float32'), (2, 'float64', 'float64'), (3, 'int32', 'int32'), (4, 'uint8', 'uint8'), (5, 'int16', 'int16'),
        (6, 'int8', 'int8'), (7, 'string', None), (8, 'complex64', 'complex64'), (9, 'int64', 'int64'), (10, 'bool', 'bool'),
        (11, 'qint8', 'int8'), (12, 'quint8', 'uint8'), (13, 'qint32', 'int32'), (14, 'bfloat16', 'bfloat16'), (15, 'qint16', 'int16'),
        (16, 'quint16', 'uint16'), (17, 'uint16', 'uint16'), (18, 'complex128', 'complex128'), (19, 'float16', 'float16'),
        (20, 'resource', None), (21, 'variant', None), (22, 'uint32', 'uint32'), (23, 'uint64', 'uint64')]
ROWS += [(24 + i, name, name) for i, name in enumerate(list(BITS)[1:])]
BY_NUMBER = {row[0]: DType(*row) for row in ROWS}
BY_NAME = {dtype.name: dtype for dtype in BY_NUMBER.values()}
BY_NAME.update(float=BY_NAME['float32'], double=BY_NAME['float64'], half=BY_NAME['float16'], bool_=BY_NAME['bool'],
               str=BY_NAME['string'], int=BY_NAME['int32'], bytes=BY_NAME['string'], object=BY_NAME['string'])
DTypeLike = Union[DType, str, type, int, 'np.dtype', None]


def as_dtype(value: Any) -> DType:
    """The type that |value| names: a DType, "float32", numpy.float32, float, or TensorFlow's number."""
    if isinstance(value, DType):
        return value
    if isinstance(value, int) and value % 100 in BY_NUMBER:
        return BY_NUMBER[value % 100]
    name = value if isinstance(value, str) else getattr(value, 'name', None) or getattr(value, '__name__', None)
    if name in BY_NAME:
        return BY_NAME[name]
    if isinstance(name, str) and name.startswith(('str', 'bytes')):  # NumPy's names have a length
        return BY_NAME['string']
    raise TypeError(f'{value!r} is no element type of Weir')


float32, float64, float16, bfloat16 = (BY_NAME[n] for n in ('float32', 'float64', 'float16', 'bfloat16'))
int8, int16, int32, int64 = (BY_NAME[n] for n in ('int8', 'int16', 'int32', 'int64'))
uint8, uint16, uint32, uint64 = (BY_NAME[n] for n in ('uint8', 'uint16', 'uint32', 'uint64'))
complex64, complex128, bool_, string = (BY_NAME[n] for n in ('complex64', 'complex128', 'bool', 'string'))
resource, variant = BY_NAME['resource'], BY_NAME['variant']
