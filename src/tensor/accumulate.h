// accumulate.h — Sums of tensors outside of graphs: gradient TensorArrays and lists of tensors add
// up what reaches them.
#ifndef WEIR_TENSOR_ACCUMULATE_H_
#define WEIR_TENSOR_ACCUMULATE_H_

#include "tensor/tensor.h"

// *|take_sum| += |value|, in place when the memory may be written, else *|take_sum| is replaced by
// a fresh tensor. The shapes and types are equal. INVALID_ARGUMENT for types without a sum;
// variants are added by their own type.
WEIR_MUST_USE weir_status_t* weir_tensor_accumulate(weir_tensor_t** take_sum,
                                                    const weir_tensor_t* value);

// Creates zeros of a type and shape; strings, handles and variants are empty.
WEIR_MUST_USE weir_status_t* weir_tensor_create_zeros(weir_dtype_t dtype, int rank,
                                                      const int64_t* dims,
                                                      weir_tensor_t** out_tensor);

#endif  // WEIR_TENSOR_ACCUMULATE_H_
