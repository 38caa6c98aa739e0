// bitcast.c — Bitcast: the bytes of a tensor read as another type.
#include "ops/array/common.h"

// The output's dimensions: a larger type takes up the last dimension, a smaller one adds one. False
// when it does not fit.
static bool bitcast_dims(size_t from, size_t to, int rank, const int64_t* dims, int64_t* out_dims,
                         int* out_rank) {
  for (int i = 0; i < rank; ++i) out_dims[i] = dims[i];
  *out_rank = rank;
  if (from < to) {
    if (rank == 0 || (dims[rank - 1] >= 0 && dims[rank - 1] != (int64_t)(to / from))) return false;
    *out_rank = rank - 1;
  } else if (from > to) {
    out_dims[rank] = (int64_t)(from / to);
    *out_rank = rank + 1;
  }
  return true;
}

static weir_status_t* bitcast_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  size_t from = weir_dtype_size(weir_dtype_base(ctx->node->input_types[0]));
  size_t to = weir_dtype_size(weir_attrs_type(weir_shape_attrs(ctx), "type"));
  int64_t dims[WEIR_MAX_RANK + 1];
  int rank = 0;
  if (in->rank < 0) return weir_shape_set(ctx, 0, in);
  if (!bitcast_dims(from, to, in->rank, in->dims, dims, &rank)) {
    if (in->rank == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Cannot bitcast a scalar to a larger type: Shape must be at least rank 1");
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot bitcast due to shape. %lld does not match %zu",
                       (long long)in->dims[in->rank - 1], to / from);
  }
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

static weir_status_t* bitcast_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* in = ctx->inputs[0].tensor;
  weir_dtype_t dtype = weir_dtype_base(ctx->node->output_types[0]);
  int64_t dims[WEIR_MAX_RANK + 1];
  int rank = 0;
  weir_tensor_t* view = NULL;
  if (!bitcast_dims(weir_dtype_size(weir_tensor_type(in)), weir_dtype_size(dtype), in->rank,
                    in->dims, dims, &rank)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot bitcast from %s to %s",
                       weir_dtype_name(weir_tensor_type(in)), weir_dtype_name(dtype));
  }
  WEIR_TRY(weir_tensor_view_as(in, dtype, rank, dims, &view));
  weir_kernel_set(ctx, 0, view);
  return NULL;
}

#define BITCAST_TYPES                                                                          \
  "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, " \
  "complex64, complex128, "                                                                    \
  "qint8, quint8, qint16, quint16, qint32}"

const weir_op_module_t weir_ops_array_bitcast = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Bitcast",
         .attrs = "T: " BITCAST_TYPES "; type: " BITCAST_TYPES,
         .inputs = "input: T",
         .outputs = "output: type",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "Reads the bytes of a tensor as another type.",
         .infer_shape = bitcast_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.has_device_int32 = true, .compute = bitcast_cpu)},
        {0}}};
