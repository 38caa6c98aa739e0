"""Programs of quantised numbers that go through constants, variables and one another."""
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from programs import program

raw = tf.raw_ops
TYPES = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint16: tf.int16, tf.quint16: tf.uint16, tf.qint32: tf.int32}


def plain(tensor):
    """The integers that stand for the numbers: what a client can look at."""
    return raw.Bitcast(input=tensor, type=TYPES[tensor.dtype])


def constant(values, dtype, in_full):
    """As bytes, or as a list of values."""
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=tf.TensorShape(values.shape).as_proto())
    if in_full:
        proto.tensor_content = values.tobytes()
    else:
        proto.int_val.extend(int(v) for v in values.flat)
    return raw.Const(value=proto, dtype=dtype)


@program(20)
def kept(p):
    dtype = p.pick(tf.qint8, tf.quint8, tf.qint32)
    info = np.iinfo(TYPES[dtype].as_numpy_dtype)
    values = p.rng.integers(info.min, info.max, p.pick((), (1,), (2, 3), (40,)), TYPES[dtype].as_numpy_dtype, endpoint=True)
    first, second = constant(values, dtype, True), constant(values, dtype, False)
    variable = raw.VarHandleOp(dtype=dtype, shape=values.shape, shared_name='kept')
    p.step(raw.AssignVariableOp(resource=variable, value=p.pick(first, second)))
    read = raw.ReadVariableOp(resource=variable, dtype=dtype)
    p.step(plain(read), raw.Dequantize(input=read, min_range=-1.5, max_range=2.0, mode=p.pick('MIN_COMBINED', 'MIN_FIRST', 'SCALED')))
    p.step(plain(raw.Identity(input=read)), plain(raw.Pack(values=[first, second, read])))


@program(15)
def inferred(p):
    """A product of matrices as quantised graphs have it: to eight bits, to 32, and back."""
    a, b = (p.hide((p.rng.standard_normal(shape) * 3).astype(np.float32)) for shape in ((4, 5), (5, 3)))
    left = raw.QuantizeV2(input=a, min_range=-5.0, max_range=6.0, T=tf.quint8, mode='MIN_FIRST')
    right = raw.QuantizeV2(input=b, min_range=-7.0, max_range=5.5, T=tf.quint8, mode='MIN_FIRST')
    product = raw.QuantizedMatMul(a=left[0], b=right[0], min_a=left[1], max_a=left[2], min_b=right[1], max_b=right[2], Toutput=tf.qint32)
    small = raw.QuantizeDownAndShrinkRange(input=product[0], input_min=product[1], input_max=product[2], out_type=tf.quint8)
    relu = raw.QuantizedRelu(features=small[0], min_features=small[1], max_features=small[2], out_type=tf.quint8)
    p.step(plain(product[0]), product[1], small[2])
    near = (tf.cast(plain(small[0]), tf.float32), tf.cast(plain(relu[0]), tf.float32),
            raw.Dequantize(input=relu[0], min_range=relu[1], max_range=relu[2], mode='MIN_FIRST'))
    p.step(*near, atol=1)  # a level more where a value is in the middle between two
