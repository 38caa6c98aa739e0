"""Tensors as messages: SerializeTensor, ParseTensor."""
import numpy as np
import tensorflow as tf
from ml_dtypes import bfloat16

TYPES = (np.float32, np.float64, np.float16, bfloat16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
         np.complex64, np.complex128, np.bool_)


def cases(check, rng):
    for t in TYPES:
        for shape in ((), (3,), (2, 3), (0, 2), (2, 0, 3), (1, 1, 1)):
            with np.errstate(all='ignore'):
                value = np.asarray(rng.standard_normal(shape) * 50).astype(t)
            check('SerializeTensor', [value])
            check('ParseTensor', [tf.io.serialize_tensor(tf.constant(value)).numpy()], {'out_type': t})
            check('ParseTensor', [tf.make_tensor_proto(value).SerializeToString()], {'out_type': t})
        check('ParseTensor', [tf.io.serialize_tensor(tf.constant(np.zeros(2, t))).numpy()], {'out_type': np.int32 if t != np.int32 else np.int64})
    words = np.array([[b'a', b''], [b'x' * 50, b'\0\xff']], object)
    for value in (words, words[:0], words[0, 0]):
        check('SerializeTensor', [value])
        check('ParseTensor', [tf.make_tensor_proto(value, tf.string, shape=np.shape(value)).SerializeToString()], {'out_type': tf.string})
    for bad in (b'', b'x', b'\x08\x01', b'\x08\x01\x12\x04\x12\x02\x08\x02\x22\x04\x00\x00\x00\x00', b'\x08\x63', b'\x08\x01\x12\x0d\x12\x0b\x08'):
        check('ParseTensor', [bad], {'out_type': np.float32})
    check('ParseTensor', [np.array([b'', b''], object)], {'out_type': np.float32})
    check('ParseTensor', [np.array([], object)], {'out_type': np.float32})
