// rows.h — What the list and array ops share: rows of a tensor as tensors, and tensors as rows of
// one.
#ifndef WEIR_OPS_LIST_ROWS_H_
#define WEIR_OPS_LIST_ROWS_H_

#include "kernel/move/move_op.h"
#include "tensor/accumulate.h"

// Elements are where the node's device computes: a kernel of a GPU has the CPU's function, and what
// touches elements does it there.
#define LIST_KERNELS(...) \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, __VA_ARGS__}, {WEIR_DEVICE_GPU, __VA_ARGS__}, {0}})

// Strings and the like are the host's on every device.
static inline bool rows_are_on_gpu(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype) {
  return weir_device_is_cuda(ctx->device) && weir_dtype_is_plain(dtype);
}

// Creates zeros where elements of |dtype| are.
static inline weir_status_t* rows_create_zeros(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                               int rank, const int64_t* dims,
                                               weir_tensor_t** out_tensor) {
  if (!rows_are_on_gpu(ctx, dtype)) return weir_tensor_create_zeros(dtype, rank, dims, out_tensor);
  weir_tensor_t* zeros = NULL;
  weir_allocator_t* allocator = weir_device_allocator(ctx->device, WEIR_MEMORY_DEVICE);
  WEIR_TRY(weir_tensor_create_in(allocator, dtype, rank, dims, &zeros));
  weir_status_t* status =
      zeros->count ? weir_cuda_zero(ctx->device, zeros->data, weir_tensor_byte_size(zeros)) : NULL;
  if (status) weir_tensor_release(zeros);
  else *out_tensor = zeros;
  return status;
}

// Rows of fewer bytes are copied: a tensor of their own is cheaper than two views, and does not
// keep the whole alive.
#define ROWS_COPY_SIZE 1024

// Creates a tensor of rows [begin, end) of |tensor|, without dimension 0 when |drops_dim| (one row
// then).
static inline weir_status_t* rows_create(const weir_kernel_ctx_t* ctx, weir_tensor_t* tensor,
                                         int64_t begin, int64_t end, bool drops_dim,
                                         weir_tensor_t** out_rows) {
  int64_t dims[WEIR_MAX_RANK];
  int skip = drops_dim ? 1 : 0;
  int rank = tensor->rank - skip;
  for (int i = 0; i < rank; ++i) dims[i] = tensor->dims[i + skip];
  if (!drops_dim) dims[0] = end - begin;
  weir_dtype_t dtype = weir_tensor_type(tensor);
  int64_t row_count = tensor->dims[0] > 0 ? tensor->count / tensor->dims[0] : 0;
  size_t row_size = (size_t)row_count * weir_dtype_size(dtype);
  if (weir_dtype_is_plain(dtype) && !rows_are_on_gpu(ctx, dtype) &&
      (size_t)(end - begin) * row_size < ROWS_COPY_SIZE) {
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

// ---- rows of an output, one after the other ----

// Kernels that make one have this state: a GPU moves many small ones in one launch.
static inline weir_status_t* rows_joiner_init(const weir_kernel_init_t* init, void* state) {
  return weir_device_is_cuda(init->device) ? weir_move_gpu_init(init, state) : NULL;
}
#define ROWS_JOINER .init = rows_joiner_init, .state_size = sizeof(weir_move_state_t)

typedef struct rows_t {
  weir_dtype_t dtype;
  bool is_on_gpu;
  weir_kernel_parts_t parts;
} rows_t;

static inline rows_t rows_of(const weir_kernel_ctx_t* ctx, weir_tensor_t* out) {
  weir_dtype_t dtype = weir_tensor_type(out);
  return (rows_t){.dtype = dtype,
                  .is_on_gpu = rows_are_on_gpu(ctx, dtype),
                  .parts = {.ctx = ctx,
                            .dtype = dtype,
                            .rows = 1,
                            .columns = out->count,
                            .whole = (uintptr_t)out->data}};
}

static inline weir_status_t* rows_append_on_host(rows_t* rows, const weir_tensor_t* item,
                                                 int64_t count) {
  void* to = (void*)rows->parts.whole;
  size_t bytes = (size_t)count * weir_dtype_size(rows->dtype);
  rows->parts.whole += bytes;
  if (item && !weir_dtype_is_plain(rows->dtype))
    return weir_elements_copy(rows->dtype, to, item->data, count);
  if (item) memcpy(to, item->data, bytes);
  else if (weir_dtype_is_plain(rows->dtype)) memset(to, 0, bytes);
  return NULL;
}

// Copies |item| (NULL: |count| zeros) behind what is there.
static inline weir_status_t* rows_append(rows_t* rows, const weir_tensor_t* item, int64_t count) {
  if (item) count = item->count;
  if (count == 0) return NULL;
  if (!rows->is_on_gpu) return rows_append_on_host(rows, item, count);
  if (item) return weir_kernel_join_part(&rows->parts, item->data, count);
  WEIR_TRY(weir_kernel_finish_parts(&rows->parts));
  void* to = (void*)rows->parts.whole;
  size_t bytes = (size_t)count * weir_dtype_size(rows->dtype);
  rows->parts.whole += bytes;
  return weir_cuda_zero(rows->parts.ctx->device, to, bytes);
}

static inline weir_status_t* rows_finish(rows_t* rows) {
  return rows->is_on_gpu ? weir_kernel_finish_parts(&rows->parts) : NULL;
}

// The dtypes list kernels that touch elements take.
#define ROWS_LIST_TYPES                                                                        \
  "element_dtype: variant, qint32, qint16, quint16, qint8, quint8, string, bool, complex128, " \
  "complex64, double, "                                                                        \
  "float, bfloat16, half, int32, int8, uint8, int16, uint16, uint32, int64, uint64"

#endif  // WEIR_OPS_LIST_ROWS_H_
