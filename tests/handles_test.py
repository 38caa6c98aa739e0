"""Every op that takes a handle, given one that names nothing: the kernel fails, and does not crash."""
import sys

import pytest

from conftest import BUILD, ROOT

tf = pytest.importorskip('tensorflow')
sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
import libweir  # noqa: E402
import oracle  # noqa: E402
import probe as weir_probe  # noqa: E402
from parts import run_parts  # noqa: E402
from tensorflow.core.framework import node_def_pb2, op_def_pb2, tensor_pb2  # noqa: E402

RESOURCE = 20


def attr_value(attr):
    """A value for an attribute without a default."""
    if attr.type == 'type':
        return tf.as_dtype(attr.allowed_values.list.type[0]) if attr.allowed_values.list.type else tf.float32
    if attr.type == 'list(type)':
        return [tf.float32]
    if attr.type.startswith('list('):
        return []
    return {'int': max(1, attr.minimum), 'float': 1.0, 'bool': False, 'string': '', 'shape': tf.TensorShape([])}.get(attr.type)


def inputs_of(op_def, attrs):
    """One of each, all scalars; handles are empty."""
    for arg in op_def.input_arg:
        types = attrs[arg.type_list_attr] if arg.type_list_attr else [attrs[arg.type_attr] if arg.type_attr else tf.as_dtype(arg.type)]
        for dtype in list(types) * (attrs.get(arg.number_attr, 0) if arg.number_attr else 1):
            proto = tensor_pb2.TensorProto(dtype=dtype.base_dtype.as_datatype_enum)
            proto.tensor_shape.SetInParent()
            yield weir_probe.Input(weir_probe.TENSOR, 0, proto.SerializeToString())


def call(probe, name):
    """What the kernel makes of it; None where the probe cannot make the node."""
    op_def = op_def_pb2.OpDef.FromString(probe.op_def(name))
    if not any(arg.type == RESOURCE and not arg.is_ref for arg in op_def.input_arg):
        return None
    attrs = {a.name: attr_value(a) for a in op_def.attr if not a.HasField('default_value')}
    attrs |= {a.name: tf.as_dtype(a.default_value.type) for a in op_def.attr if a.HasField('default_value') and a.type == 'type'}
    node = node_def_pb2.NodeDef(name='node', op=name)
    for attr in op_def.attr:
        if attrs.get(attr.name) is not None:
            oracle.set_attr(node.attr[attr.name], attr.type, attrs[attr.name])
    return probe.run(node.SerializeToString(), list(inputs_of(op_def, attrs)))[1]


def run(part, current):
    names = sorted(libweir.Library(str(BUILD / 'libweir.so')).ops())
    probe = weir_probe.Probe(str(BUILD / 'tests' / 'oracle' / 'libweir_probe.so'), None, 1)
    tried, taken = [], []
    for name in names[part::2]:
        current.set(name)
        result = call(probe, name)
        if result is not None:
            tried.append(name)
        if result is not None and result.code == 0:
            taken.append(name)
    return [tried, taken]


def test_empty_handles():
    tried, taken = [], []
    for result in run_parts(2, run):
        assert result is not None, 'see what was printed'
        tried += result[0]
        taken += result[1]
    assert len(tried) > 80
    assert not taken
