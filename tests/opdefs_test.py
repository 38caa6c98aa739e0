"""Every registered op is defined as TensorFlow defines it, field by field, and its CPU kernels take TensorFlow's types."""
import ctypes
import json
import os
import re

import pytest

import conftest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
tf = pytest.importorskip('tensorflow')
from tensorflow.core.framework import attr_value_pb2, op_def_pb2, types_pb2  # noqa: E402
from tensorflow.python.framework import kernels, op_def_registry, tensor_util  # noqa: E402

# Types of TensorFlow's CPU kernels that Weir's lack, with the reason.
LACKING = {
    '_FusedConv2D': {'T': {'int8', 'qint8'}},  # quantised inference, with scales as arguments
    'QuantizedConv2D': {'Tfilter': {'qint8'}},  # a kernel that does nothing, as those below
}
# Ops whose kernels in TensorFlow do nothing: oneDNN puts others in their place when it rewrites graphs. And those others.
IDLE = ('QuantizedConcatV2', 'QuantizedConv2DAnd', 'QuantizedConv2DPerChannel', 'QuantizedConv2DWith', 'QuantizedDepthwiseConv2D',
        'QuantizedMatMulWith', '_FusedQuantized', '_QuantizedMatMul')
# Ops that a plan adds and TensorFlow has under no name: copies between the memories of one process are no ops there,
# nor are fused or joined nodes; or that a master adds to a step that takes variables for a checkpoint.
OWN = {'_ApplyAdamAll', '_ApplyGradientDescentAll', '_ApplyMomentumAll', '_ApplyRMSPropAll', '_CopyFromPeer', '_CopyToDevice',
       '_AwaitWrites', '_CopyToHost', '_FindRows', '_Fused', '_FusedReduce', '_HoldWrites', '_Lease', '_MapVariable', '_OpenWrites', '_ResourceApplyAdamAll', '_ResourceApplyGradientDescentAll', '_ResourceApplyKerasMomentumAll',
       '_ResourceApplyMomentumAll', '_ResourceApplyRMSPropAll'}
# Attributes that take more types than TensorFlow's: mixed precision is bfloat16 there, too, but its optimizer leaves that unfused.
WIDER = {('_FusedBatchNormGradEx', 'T'): {'bfloat16'}, ('_FusedConv2D', 'T'): {'bfloat16'}}
FIELDS = ['is_aggregate', 'is_stateful', 'is_commutative', 'allows_uninitialized_input', 'is_distributed_communication']
ARG_FIELDS = ['name', 'type', 'type_attr', 'number_attr', 'type_list_attr', 'is_ref']
ATTR_FIELDS = ['name', 'type', 'default_value', 'has_minimum', 'minimum', 'allowed_values']


def registered():
    library = ctypes.CDLL(conftest.BUILD / 'libweir.so')
    library.weir_op_list.restype = ctypes.c_void_p
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert not library.weir_op_list(ctypes.byref(data), ctypes.byref(size))
    ops = op_def_pb2.OpList.FromString(ctypes.string_at(data, size.value))
    library.weir_buffer_free(data)
    return {op.name: op for op in ops.op}


OPS = registered()


def test_there_are_ops():
    assert len(OPS) > 300 and list(OPS) == sorted(OPS)


def test_every_function_of_the_header_says_what_it_does():
    declarations = [part for part in (conftest.BUILD / 'include' / 'weir' / 'ops.h').read_text().split('\n\n') if 'WEIR_API' in part]
    assert len(declarations) > 1000
    undescribed = []
    for declaration in declarations:
        first = declaration.strip().splitlines()[0]
        found = re.fullmatch(r'// (\w+): (.+)', first)
        if not found or found[2].lower().strip(' .') in ('', found[1].lower()):  # the name again says nothing
            undescribed.append(first)
    assert not undescribed


def test_own_ops_are_no_ones_else():
    assert [name for name in OPS if op_def_registry.get(name) is None] == sorted(OWN)


def plain(value):
    """A tensor as what it holds: TensorProto has several ways to say the same."""
    if not isinstance(value, attr_value_pb2.AttrValue) or not value.HasField('tensor'):
        return value
    array = tensor_util.MakeNdarray(value.tensor)
    return value.tensor.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize('name', sorted(set(OPS) - OWN))
def test_definition(name):
    expected = op_def_registry.get(name)
    got = OPS[name]
    for field in FIELDS:
        assert getattr(got, field) == getattr(expected, field), field
    for part in ('input_arg', 'output_arg'):
        assert [[getattr(arg, f) for f in ARG_FIELDS] for arg in getattr(got, part)] == \
            [[getattr(arg, f) for f in ARG_FIELDS] for arg in getattr(expected, part)], part
    assert [a.name for a in got.attr] == [a.name for a in expected.attr]
    for mine, theirs in zip(got.attr, expected.attr):
        more = WIDER.get((name, mine.name), set())
        if more:
            assert type_names(mine.allowed_values.list.type) == type_names(theirs.allowed_values.list.type) | more
        for field in set(ATTR_FIELDS) - ({'allowed_values'} if more else set()):
            assert plain(getattr(mine, field)) == plain(getattr(theirs, field)), f'{mine.name}.{field}'
        assert mine.HasField('default_value') == theirs.HasField('default_value'), mine.name


def type_names(values):
    return {types_pb2.DataType.Name(value)[len('DT_'):].lower() for value in values}


def possible(name, attr):
    """Types that the op's own definition allows; TensorFlow registers kernels for others too, which nothing reaches."""
    found = [a for a in op_def_registry.get(name).attr if a.name == attr]
    if not found:  # of TopK: TensorFlow's kernels want an attribute that only TopKV2 has
        return set()
    allowed = found[0].allowed_values.list.type
    return type_names(allowed) if allowed else type_names(types_pb2.DataType.values())


@pytest.fixture(scope='module')
def kernel_types(weir):
    return {op['name']: op for op in map(json.loads, weir('ops', '--json').stdout.splitlines())}


@pytest.mark.parametrize('name', sorted(OPS))
def test_kernel_types(name, kernel_types):
    wanted = {}
    rows = [k for k in kernels.get_registered_kernels_for_op(name).kernel if k.device_type == 'CPU' and not k.label]
    for row in rows:
        for constraint in row.constraint:
            types = type_names(constraint.allowed_values.list.type) & possible(name, constraint.name)
            wanted.setdefault(constraint.name, set()).update(types)
    if name.startswith(IDLE):
        assert not kernel_types[name]['devices']
        return
    if rows:
        assert 'CPU' in kernel_types[name]['devices']
    got = kernel_types[name]['types']
    lacking = {attr: types - set(got[attr]) for attr, types in wanted.items() if attr in got and types - set(got[attr])}
    assert lacking == LACKING.get(name, {})  # an exception that is no longer one goes
