// tile_grad.c — TileGrad: sums the copies that Tile made. Of graphs from before there were
// gradients of Tile made of other ops.
#include "kernel/elementwise/elementwise.h"
#include "ops/array/common.h"

// The dimensions of one copy. INVALID_ARGUMENT where |in| is not made of whole ones.
static weir_status_t* copy_dims(const weir_tensor_t* in, const weir_tensor_t* multiples,
                                int64_t* dims) {
  if (multiples->rank != 1 || multiples->count != in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected multiples to be a vector of length %d",
                       in->rank);
  }
  for (int i = 0; i < in->rank; ++i) {
    const int64_t multiple = weir_tensor_int_at(multiples, i);
    if (multiple <= 0 || in->dims[i] % multiple != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected input_dims[%d] to be a multiple of multiples[%d]"
                         ", but %lld is none of %lld",
                         i, i, (long long)in->dims[i], (long long)multiple);
    }
    dims[i] = in->dims[i] / multiple;
  }
  return NULL;
}

// The row of |out| that row |row| of |in| is a copy of: rows are along the last dimension.
static int64_t original_row(const weir_tensor_t* in, const weir_tensor_t* out, int64_t row) {
  int64_t place = 0, stride = 1;
  for (int i = in->rank - 2; i >= 0; --i) {
    place += row % in->dims[i] % out->dims[i] * stride;
    stride *= out->dims[i];
    row /= in->dims[i];
  }
  return place;
}

static weir_status_t* tile_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(copy_dims(in, weir_kernel_input(ctx, 1), dims));
  if (in->rank == 0) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, &out));
  if (out->count == 0) return NULL;
  const weir_dtype_t dtype = weir_tensor_type(in);
  const weir_binary_fn_t add = weir_binary_find(WEIR_BINARY_ADD, dtype);
  const int64_t width = dims[in->rank - 1], per_row = in->dims[in->rank - 1] / width;
  const size_t bytes = (size_t)width * weir_dtype_size(dtype);
  weir_move_zero(dtype, out->data, out->count);
  for (int64_t i = 0; i < in->count / width; ++i) {
    char* to = (char*)out->data + (size_t)original_row(in, out, i / per_row) * bytes;
    add(to, (const char*)in->data + (size_t)i * bytes, to, width, WEIR_SPAN_BOTH);
  }
  return NULL;
}

static weir_status_t* tile_grad_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_tensor_t* multiples = weir_shape_value(ctx, 1);
  if (in->rank < 0) return NULL;
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < in->rank; ++i) {
    const int64_t multiple =
        multiples && i < multiples->count ? weir_tensor_int_at(multiples, i) : 0;
    dims[i] = in->dims[i] >= 0 && multiple > 0 ? in->dims[i] / multiple : -1;
  }
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

const weir_op_module_t weir_ops_array_tile_grad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TileGrad",
         .attrs = "T: type",
         .inputs = "input: T; multiples: int32",
         .outputs = "output: T",
         .summary = "Sums the copies that Tile made",
         .infer_shape = tile_grad_shape,
         .kernels = WEIR_CPU_KERNEL(
                 .types =
                     "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, "
                     "uint32, uint64, complex64, complex128",
                 .compute = tile_grad_cpu, .host_inputs = "multiples")},
        {0}}};
