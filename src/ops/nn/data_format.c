// data_format.c — DataFormatDimMap and DataFormatVecPermute: numbers of dimensions, and values
// given for each of them, from one data format into another.
#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { MAX_DIMS = 5 };

typedef struct formats_t {
  weir_view_t src, dst;  // borrowed from the node
} formats_t;

static int place_of(weir_view_t format, char letter) {
  for (size_t i = 0; i < format.size; ++i) {
    if (format.data[i] == letter) return (int)i;
  }
  return -1;
}

// All letters of |src| are different ones, and those of |dst|.
static bool is_permutation(weir_view_t src, weir_view_t dst) {
  if (src.size != dst.size) return false;
  for (size_t i = 0; i < src.size; ++i) {
    if (place_of(src, src.data[i]) != (int)i || place_of(dst, src.data[i]) < 0) return false;
  }
  return true;
}

static weir_status_t* format_init(const weir_kernel_init_t* init, void* state) {
  formats_t* f = state;
  f->src = weir_attrs_string(init->node->attrs, "src_format");
  f->dst = weir_attrs_string(init->node->attrs, "dst_format");
  if (f->src.size != 4 && f->src.size != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Source format must be of length 4 or 5, received src_format = %.*s",
                       WEIR_VIEW_ARG(f->src));
  }
  if (f->dst.size != 4 && f->dst.size != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Destination format must be of length 4 or 5, received dst_format = %.*s",
                       WEIR_VIEW_ARG(f->dst));
  }
  if (is_permutation(f->src, f->dst)) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Destination and source format must determine a permutation, got %.*s and %.*s",
      WEIR_VIEW_ARG(f->src), WEIR_VIEW_ARG(f->dst));
}

// ---- DataFormatDimMap ----

static weir_status_t* dim_map_cpu(weir_kernel_ctx_t* ctx) {
  const formats_t* f = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const int64_t rank = f->src.size == 5 ? 5 : 4;
  int to[MAX_DIMS];
  for (int i = 0; i < rank; ++i) to[i] = place_of(f->dst, f->src.data[i]);
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  const bool is_wide = weir_tensor_type(in) == WEIR_DTYPE_INT64;
  for (int64_t i = 0; i < in->count; ++i) {
    // What is out of range is taken as TensorFlow does: modulo the rank, and the last dimension
    // where that is negative.
    int64_t x = weir_tensor_int_at(in, i);
    x = is_wide ? (int64_t)((uint64_t)x + (uint64_t)rank) : (int32_t)((uint32_t)x + (uint32_t)rank);
    x %= rank;
    int y = to[x < 0 ? rank - 1 : x];
    if (is_wide) WEIR_TENSOR_DATA(out, int64_t)[i] = y;
    else WEIR_TENSOR_DATA(out, int32_t)[i] = y;
  }
  return NULL;
}

// ---- DataFormatVecPermute ----

// A letter of the dimensions of space.
static bool is_spatial(char letter, int axes) {
  return letter == 'H' || letter == 'W' || (axes == 3 && letter == 'D');
}

static weir_view_t spatial_letters(weir_view_t format, int axes, char buffer[MAX_DIMS]) {
  size_t count = 0;
  for (size_t i = 0; i < format.size; ++i) {
    if (is_spatial(format.data[i], axes)) buffer[count++] = format.data[i];
  }
  return (weir_view_t){.data = buffer, .size = count};
}

static weir_status_t* check_shape(const weir_tensor_t* in, int64_t rank) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank != 1 && in->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be a vector or 2D tensor, but got shape %s",
                       weir_tensor_shape_text(in, text));
  }
  if (in->dims[0] != rank && in->dims[0] != rank - 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be of size %lld or %lld, but got shape %s",
                       in->rank == 1 ? "1D input" : "First dimension of 2D input",
                       (long long)rank - 2, (long long)rank, weir_tensor_shape_text(in, text));
  }
  if (in->rank == 1 || in->dims[1] == 2) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Second dimension of 2D input must be of size 2, but got shape %s",
                     weir_tensor_shape_text(in, text));
}

static weir_status_t* vec_permute_cpu(weir_kernel_ctx_t* ctx) {
  const formats_t* f = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const int rank = (int)f->src.size;
  weir_view_t src = f->src, dst = f->dst;
  char letters[2][MAX_DIMS];
  WEIR_TRY(check_shape(in, rank));
  if (in->dims[0] != rank) {
    src = spatial_letters(src, rank - 2, letters[0]);
    dst = spatial_letters(dst, rank - 2, letters[1]);
    if ((int)src.size != rank - 2) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Format specifier must contain %s for %dD case",
                         rank == 4 ? "H and W" : "D, H and W", rank - 2);
    }
  }
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  const size_t row = weir_tensor_byte_size(in) / src.size;
  for (size_t i = 0; i < src.size; ++i) {
    memcpy((char*)out->data + i * row,
           (const char*)in->data + (size_t)place_of(src, dst.data[i]) * row, row);
  }
  return NULL;
}

#define FORMAT_ATTRS \
  "T: {int32, int64} = DT_INT32; src_format: string = 'NHWC'; dst_format: string = 'NCHW'"

const weir_op_module_t weir_ops_nn_data_format = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DataFormatDimMap",
         .summary = "Numbers of dimensions in another data format",
         .attrs = FORMAT_ATTRS,
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = dim_map_cpu, .init = format_init,
                                    .state_size = sizeof(formats_t))},
        {.name = "DataFormatVecPermute",
         .summary = "Values given for each dimension, in the order of another data format",
         .attrs = FORMAT_ATTRS,
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = vec_permute_cpu, .init = format_init,
                                    .state_size = sizeof(formats_t))},
        {0}}};
