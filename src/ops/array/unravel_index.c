// unravel_index.c — UnravelIndex: flat indices as coordinates.
#include "base/string.h"
#include "ops/array/common.h"

static weir_status_t* unravel_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* indices = weir_shape_input(ctx, 0);
  const weir_shape_t* dims = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &dims));
  if (indices->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (indices->rank == 0) return weir_shape_set_vector(ctx, 0, weir_shape_dim(dims, 0));
  int64_t count = 1;
  for (int i = 0; i < indices->rank; ++i) {
    count = count < 0 || indices->dims[i] < 0 ? -1 : count * indices->dims[i];
  }
  const int64_t out[] = {weir_shape_dim(dims, 0), count};
  return weir_shape_set_dims(ctx, 0, 2, out);
}

static weir_status_t* refuse_product(const weir_tensor_t* dims) {
  weir_strbuf_t text = {0};
  for (int64_t i = 0; i < dims->count; ++i)
    weir_strbuf_printf(&text, "%s%lld", i > 0 ? " " : "", (long long)weir_tensor_int_at(dims, i));
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "Input dims product is causing integer overflow: (%s)",
                  text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* check_dims(const weir_tensor_t* dims, int64_t* out_size) {
  const int64_t most = weir_tensor_type(dims) == WEIR_DTYPE_INT32 ? INT32_MAX : INT64_MAX;
  *out_size = 1;
  for (int64_t i = 0; i < dims->count; ++i) {
    int64_t dim = weir_tensor_int_at(dims, i);
    if (dim == 0) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "Input dims cannot contain a dim of zero, but dims contains zero at index %lld",
          (long long)i);
    }
    if (dim < 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input dims cannot be negative. Got dim = %lld at index %lld",
                         (long long)dim, (long long)i);
    if (__builtin_mul_overflow(*out_size, dim, out_size) || *out_size > most)
      return refuse_product(dims);
  }
  return NULL;
}

static weir_status_t* unravel_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  const weir_tensor_t* dims = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  int64_t size = 0;
  if (indices->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The indices can only be scalar or vector, got \"%s\"",
                       weir_tensor_shape_text(indices, text));
  }
  if (indices->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "received empty tensor indices");
  if (dims->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The indices can only be 1-D, got \"%s\"",
                       weir_tensor_shape_text(dims, text));
  }
  WEIR_TRY(check_dims(dims, &size));
  for (int64_t i = 0; i < indices->count; ++i) {
    if (weir_tensor_int_at(indices, i) >= size)
      return WEIR_STATUS(INVALID_ARGUMENT, "index is out of bound as with dims");
  }
  const int64_t out_dims[] = {dims->count, indices->count};
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, indices->rank == 0 ? 1 : 2, out_dims, &out));
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t rest = weir_tensor_int_at(indices, i);
    for (int64_t k = dims->count - 1; k >= 0; --k) {
      int64_t dim = weir_tensor_int_at(dims, k);
      weir_move_set_int(out, k * indices->count + i, rest % dim);
      rest /= dim;
    }
  }
  return NULL;
}

const weir_op_module_t weir_ops_array_unravel_index = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "UnravelIndex",
                                    .attrs = "Tidx: {int32, int64} = DT_INT32",
                                    .inputs = "indices: Tidx; dims: Tidx",
                                    .outputs = "output: Tidx",
                                    .summary = "Turns flat indices into coordinates.",
                                    .infer_shape = unravel_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = unravel_cpu)},
                                   {0}}};
