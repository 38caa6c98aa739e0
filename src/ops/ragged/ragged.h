// ragged.h — What ops of ragged tensors share: row splits.
#ifndef WEIR_OPS_RAGGED_RAGGED_H_
#define WEIR_OPS_RAGGED_RAGGED_H_

#include "ops/sparse/sparse.h"
#include "tensor/handle.h"
#include "tensor/parcel_kinds.h"

// Types of values that TensorFlow's kernels take.
#define RAGGED_VALUES(attr)                                                                  \
  attr ": float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, " \
       "uint64, "                                                                            \
       "complex64, complex128, bool, string, qint8, quint8, qint16, quint16, qint32"

// The gradient of RaggedTensorToTensor (to_tensor_grad.c).
weir_status_t* weir_ragged_to_tensor_grad(weir_grad_ctx_t* g);

#endif  // WEIR_OPS_RAGGED_RAGGED_H_
