"""What bad_inputs.py changes of a good case, by rule: one thing, of an input or of an attribute."""
import copy

import numpy as np

from oracle import Variable, set_attr

UNHEARD = 'NO_SUCH_VALUE'
MOST_VALUES = 64  # of an input whose values are changed: sizes, axes and ids are few


# ---- inputs ----

def resized(array, axis, size):
    """|array| with |size| elements along |axis|: repeated, or cut."""
    if array.shape[axis] == 0:
        return filled(array.shape[:axis] + (size,) + array.shape[axis + 1:], array)
    return np.take(array, np.arange(size) % array.shape[axis], axis)


def filled(shape, array):
    out = np.zeros(shape, array.dtype)
    if array.dtype == object:
        out.fill(b'')
    return out


def other_shapes(array):
    """(rule, array) of the same type."""
    yield 'one more dimension', array[None]
    yield 'two of it', np.stack([array, array])
    yield 'a last dimension of 1', array[..., None]
    yield 'a last dimension of 2', np.stack([array, array], -1)
    if array.ndim and array.shape[0]:
        yield 'its first row', array[0]
    if array.ndim > 1 and array.shape[-1]:
        yield 'its first column', array[..., 0]
    for axis, size in enumerate(array.shape):
        yield f'one more along {axis}', resized(array, axis, size + 1)
        if size > 0:
            yield f'one less along {axis}', resized(array, axis, size - 1)
        if size > 1:
            yield f'none along {axis}', resized(array, axis, 0)
            yield f'one along {axis}', resized(array, axis, 1)
    if array.ndim and array.size:
        yield 'a scalar', array.reshape(-1)[0]
    if array.ndim != 1:
        yield 'a vector', array.reshape(-1)
    if array.ndim != 2:
        yield 'a matrix', array.reshape(1, array.size)
    yield 'nothing', filled((0,), array)


def are_values_meant(case, arg):
    """Whether the integers of |arg| say how many, which or where: those of its type cannot be data."""
    if not arg.type_attr:
        return True
    allowed = next(a.allowed_values.list.type for a in case.op_def.attr if a.name == arg.type_attr)
    return 0 < len(allowed) and not set(allowed) & {1, 2}  # float, double


def other_values(array, draw):
    if array.dtype.kind == 'f' and array.ndim == 0:
        for value in (-1, 0, np.nan):
            yield f'value {value}', np.array(value, array.dtype)
    if array.dtype not in (np.int32, np.int64) or not 0 < array.size <= MOST_VALUES:
        return
    largest = int(array.max())
    for value in {-1, 0, largest + 1, 2 * largest + 7, -int(array.max()) - 2, int(np.iinfo(array.dtype).max), int(np.iinfo(array.dtype).min)}:
        if not np.iinfo(array.dtype).min <= value <= np.iinfo(array.dtype).max:
            continue
        at = draw.randrange(array.size)
        out = array.copy()
        out.reshape(-1)[at] = value
        yield f'value {at} is {value}', out
    if array.size > 1:
        yield 'values in reverse', array.reshape(-1)[::-1].reshape(array.shape).copy()


def other_inputs(case, draw):
    """(place, rule, changed inputs)."""
    args = args_of_inputs(case)
    for i, x in enumerate(case.inputs):
        array = x.value if isinstance(x, Variable) else x
        if array is None:
            continue
        changed = list(other_shapes(array))
        if not isinstance(x, Variable) and are_values_meant(case, args[i]):
            changed += other_values(array, draw)
        for rule, value in changed:
            value = np.asarray(value, array.dtype) if array.dtype != object else value
            if array.dtype == object and not isinstance(value, np.ndarray):
                value = np.array(value, dtype=object)
            new = Variable(x.kind, value, x.dtype) if isinstance(x, Variable) else value
            yield f'input {i}', rule, [*case.inputs[:i], new, *case.inputs[i + 1:]]
        if isinstance(x, Variable):
            yield f'input {i}', 'not initialised', [*case.inputs[:i], Variable(x.kind, None, x.dtype), *case.inputs[i + 1:]]


def args_of_inputs(case):
    """The argument of the definition that each input is of."""
    out = []
    for arg in case.op_def.input_arg:
        count = case.attrs[arg.number_attr] if arg.number_attr else len(case.attrs[arg.type_list_attr]) if arg.type_list_attr else 1
        out += [arg] * count
    return out


# ---- attributes ----

def counts_inputs(case, name):
    return any(name in (a.number_attr, a.type_list_attr) for a in case.op_def.input_arg)


def other_attr_values(kind, value):
    """(rule, value) of an attribute that is |value|."""
    if kind == 'bool':
        yield 'the other', not value
    elif kind == 'int':
        yield from ((f'is {v}', v) for v in sorted({0, -1, value + 1, value - 1, 2 ** 31 - 1} - {value}))
    elif kind == 'float':
        yield from ((f'is {v}', v) for v in sorted({0.0, -1.0, 2.0} - {value}))
    elif kind == 'string':
        yield 'is unheard of', UNHEARD
        yield 'is empty', ''
    elif kind == 'shape':
        dims = value if isinstance(value, (list, tuple)) else None
        if dims is not None and None not in dims and -1 not in dims:
            yield 'one more dimension', [*dims, 1]
            yield 'unknown', None
            if dims:
                yield 'one dimension less', list(dims[1:])
                yield 'one more along 0', [dims[0] + 1, *dims[1:]]
                yield 'unknown along 0', [None, *dims[1:]]
    elif kind.startswith('list(') and kind != 'list(type)' and kind != 'list(func)':
        yield from other_lists(kind[5:-1], list(value))


def other_lists(kind, items):
    yield 'none', []
    if items:
        yield 'one longer', [*items, items[-1]]
        yield 'one shorter', items[:-1]
        for i in {0, len(items) // 2, len(items) - 1}:
            for rule, item in other_attr_values(kind, items[i]):
                yield f'item {i} {rule}', [*items[:i], item, *items[i + 1:]]
    elif kind == 'int':
        yield 'one 1', [1]


def other_attrs(case):
    """(place, rule, node's changed attributes)."""
    for attr in case.op_def.attr:
        if attr.type in ('type', 'func', 'tensor') or counts_inputs(case, attr.name):
            continue
        value = case.attrs.get(attr.name, plain_default(attr))
        if value is None or attr.name == 'sorted':  # without it any order will do
            continue
        for rule, other in other_attr_values(attr.type, value):
            yield f'attribute {attr.name}', rule, {**case.attrs, attr.name: other}


def plain_default(attr):
    """The default of an attribute of the definition, as cases write them; None if there is none that they can."""
    if not attr.HasField('default_value'):
        return None
    default = attr.default_value
    simple = {'int': default.i, 'float': default.f, 'bool': default.b, 'string': default.s}
    lists = {'list(int)': default.list.i, 'list(float)': default.list.f, 'list(bool)': default.list.b, 'list(string)': default.list.s}
    if attr.type in lists:
        return list(lists[attr.type])
    return simple.get(attr.type)


# ---- cases ----

def with_inputs(case, inputs, rule):
    out = copy.copy(case)
    out.inputs, out.rule = inputs, rule
    return out


def with_attrs(case, attrs, rule):
    out = copy.copy(case)
    out.attrs, out.rule = attrs, rule
    out.node = type(case.node)()
    out.node.CopyFrom(case.node)
    for attr in case.op_def.attr:
        if attr.name in attrs and attrs[attr.name] != case.attrs.get(attr.name):
            out.node.attr[attr.name].Clear()
            set_attr(out.node.attr[attr.name], attr.type, attrs[attr.name])
    return out


def changed(case, draw):
    """(place, case) for every rule that applies."""
    for place, rule, inputs in other_inputs(case, draw):
        yield place, with_inputs(case, inputs, f'{place}: {rule}')
    for place, rule, attrs in other_attrs(case):
        yield place, with_attrs(case, attrs, f'{place}: {rule}')


def size_of(case):
    """To choose small cases by; those with empty inputs show less."""
    arrays = [x.value if isinstance(x, Variable) else x for x in case.inputs]
    sizes = [0 if x is None else x.size for x in arrays]
    return sizes.count(0), sum(sizes)


def draw_cases(bases, count, draw):
    """|count| changed cases of the good ones |bases|, spread over their inputs and attributes."""
    places = {}
    for base in bases:
        for place, case in changed(base, draw):
            places.setdefault(place, []).append(case)
    for cases in places.values():
        draw.shuffle(cases)
    out, order = [], sorted(places)
    draw.shuffle(order)
    while len(out) < count and any(places.values()):
        out += [places[place].pop() for place in order if places[place]]
    return out[:count]
