// rows.h — What the list and array ops share: rows of a tensor as tensors, and tensors as rows of
// one.
#ifndef WEIR_OPS_LIST_ROWS_H_
#define WEIR_OPS_LIST_ROWS_H_

#include "op/kernel.h"
#include "tensor/accumulate.h"

// Rows of fewer bytes are copied: a tensor of their own is cheaper than two views, and does not
// keep the whole alive.
#define ROWS_COPY_SIZE 1024

// Creates a tensor of rows [begin, end) of |tensor|, without dimension 0 when |drops_dim| (one row
// then).
static inline weir_status_t* rows_create(weir_tensor_t* tensor, int64_t begin, int64_t end,
                                         bool drops_dim, weir_tensor_t** out_rows) {
  int64_t dims[WEIR_MAX_RANK];
  int skip = drops_dim ? 1 : 0;
  int rank = tensor->rank - skip;
  for (int i = 0; i < rank; ++i) dims[i] = tensor->dims[i + skip];
  if (!drops_dim) dims[0] = end - begin;
  weir_dtype_t dtype = weir_tensor_type(tensor);
  int64_t row_count = tensor->dims[0] > 0 ? tensor->count / tensor->dims[0] : 0;
  size_t row_size = (size_t)row_count * weir_dtype_size(dtype);
  if (weir_dtype_is_plain(dtype) && (size_t)(end - begin) * row_size < ROWS_COPY_SIZE) {
    const char* first =
        row_size ? (const char*)tensor->data + (size_t)begin * row_size : (const char*)tensor;
    return weir_tensor_create_from(dtype, rank, dims, first, out_rows);
  }
  weir_tensor_t* slice = NULL;
  WEIR_TRY(weir_tensor_slice(tensor, begin, end, &slice));
  if (!drops_dim) {
    *out_rows = slice;
    return NULL;
  }
  weir_status_t* status = weir_tensor_reshape(slice, rank, dims, out_rows);
  weir_tensor_release(slice);
  return status;
}

// Copies |item| (NULL: |count| zeros) to the elements of |out| from |*at| on and moves |*at| past
// them.
static inline weir_status_t* rows_append(weir_tensor_t* out, int64_t* at, const weir_tensor_t* item,
                                         int64_t count) {
  weir_dtype_t dtype = weir_tensor_type(out);
  size_t size = weir_dtype_size(dtype);
  char* to = (char*)out->data + (size_t)*at * size;
  if (item) count = item->count;
  *at += count;
  if (count == 0) return NULL;
  if (item && weir_dtype_is_plain(dtype)) {
    memcpy(to, item->data, (size_t)count * size);
    return NULL;
  }
  if (item) return weir_elements_copy(dtype, to, item->data, count);
  if (weir_dtype_is_plain(dtype)) memset(to, 0, (size_t)count * size);
  return NULL;
}

// The dtypes list kernels that touch elements take.
#define ROWS_LIST_TYPES                                                                        \
  "element_dtype: variant, qint32, qint16, quint16, qint8, quint8, string, bool, complex128, " \
  "complex64, double, "                                                                        \
  "float, bfloat16, half, int32, int8, uint8, int16, uint16, uint32, int64, uint64"

#endif  // WEIR_OPS_LIST_ROWS_H_
