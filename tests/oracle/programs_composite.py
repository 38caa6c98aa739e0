"""Composite tensors as variants, and handles that do not keep their resources alive."""
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import composite_tensor_variant_pb2
from tensorflow.python.framework import test_ops
from tensorflow.python.saved_model import nested_structure_coder

from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1


def metadata_of(spec):
    message = composite_tensor_variant_pb2.CompositeTensorVariantMetadata()
    message.type_spec_proto.CopyFrom(nested_structure_coder.encode_structure(spec).type_spec_value)
    return message.SerializeToString()


RAGGED = metadata_of(tf.RaggedTensorSpec([None, None], tf.float32))
SPARSE = metadata_of(tf.SparseTensorSpec([None, None], tf.float32))


@program(30)
def composite_variants(p):
    """There and back, through other nodes; another class, number or type than was put in."""
    values = [np.float32(p.rng.standard_normal(3)), np.int64([0, 2, 3]), np.array([b'a', b''], object)][:int(p.rng.integers(4))]
    components = [p.hide(v) for v in values]
    types = [c.dtype for c in components]
    metadata = p.pick(RAGGED, SPARSE, b'')
    whole = raw.CompositeTensorVariantFromComponents(components=components, metadata=metadata)
    whole = p.pick(tf.identity, lambda v: tf.stack([v, v]), lambda v: tf.reshape(v, [1]))(whole)

    def parts(encoded=whole, metadata=metadata, types=types):
        return list(raw.CompositeTensorVariantToComponents(encoded=encoded, metadata=metadata, Tcomponents=types))

    if types:
        p.step(parts())
        p.step(parts(metadata=p.pick(RAGGED, SPARSE, b'')))
        p.step(parts(metadata=b'\xff'))
        p.step(parts(types=types[:-1] + [tf.int32]))
    p.step(parts(types=types + [tf.int32]))
    p.step(parts(encoded=raw.EmptyTensorList(element_shape=[1], max_num_elements=1, element_dtype=tf.float32), types=[tf.int32]))
    p.step(raw.CompositeTensorVariantToComponents(
        encoded=raw.CompositeTensorVariantFromComponents(components=[p.hide(np.int32(1))], metadata=b'\x0a\xff'), metadata=b'',
        Tcomponents=[tf.int32]))


@program(10)
def composite_gradients(p):
    x, y = p.hide(np.float32(p.rng.standard_normal(3))), p.hide(np.int64([0, 2, 3]))
    whole = raw.CompositeTensorVariantFromComponents(components=[x, y], metadata=RAGGED)
    values, _ = raw.CompositeTensorVariantToComponents(encoded=whole, metadata=RAGGED, Tcomponents=[tf.float32, tf.int64])
    p.step(tf1.gradients(tf.square(values), x))


@program(10)
def handles_that_count(p):
    """Anonymous resources live by their handles alone."""
    table = raw.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.int64)
    variable = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name=p.pick('v', 'w'))
    array = raw.TensorArrayV3(size=1, dtype=tf.float32)
    for handle in (table, variable, array.handle):
        p.step(test_ops.is_resource_handle_ref_counting(handle))
        p.step(test_ops.is_resource_handle_ref_counting(test_ops.make_weak_resource_handle(handle)))
    p.step(raw.LookupTableSizeV2(table_handle=table))
    p.step(raw.LookupTableSizeV2(table_handle=test_ops.make_weak_resource_handle(table)))
    p.step(raw.AssignVariableOp(resource=test_ops.make_weak_resource_handle(variable), value=2.0))
    p.step(raw.ReadVariableOp(resource=test_ops.make_weak_resource_handle(variable), dtype=tf.float32))


@program(10)
def stub_resources(p):
    stub = test_ops.stub_resource_handle_op(container=p.pick('', 'c'), shared_name=p.pick('', 's'))
    p.step(test_ops.is_resource_handle_ref_counting(stub))
    p.step(raw.DestroyResourceOp(resource=stub, ignore_lookup_error=False))
    p.step(test_ops.resource_create_op(stub))
    p.step(test_ops.resource_create_op(stub))
    p.step(raw.DestroyResourceOp(resource=stub, ignore_lookup_error=False))
    p.step(test_ops.resource_create_op(test_ops.make_weak_resource_handle(stub)))
    p.step(test_ops.resource_create_op(raw.VarHandleOp(dtype=tf.float32, shape=[])))
