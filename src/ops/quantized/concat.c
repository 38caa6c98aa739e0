// concat.c — QuantizedConcat, QuantizedConcatV2: quantised tensors joined, in a range that holds
// all of theirs.
#include <float.h>

#include "kernel/quantized/range.h"
#include "ops/array/concat_shape.h"
#include "ops/quantized/common.h"

static weir_status_t* concat_shape(weir_shape_ctx_t* ctx) {
  const int count = (int)weir_attrs_int(weir_shape_attrs(ctx), "N");
  WEIR_TRY(weir_concat_shape(ctx, weir_concat_inputs(ctx->node, count)));
  return quantized_bounds_shape(ctx, count + 1, 3 * count);
}

static weir_status_t* read_bound(const weir_kernel_ctx_t* ctx, int i, int index, const char* name,
                                 float* out) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  if (t->count != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s each tensor's num elements must be 1, given num elements %lld in index "
                       "%d",
                       name, (long long)t->count, index);
  }
  *out = *WEIR_TENSOR_DATA(t, float);
  return NULL;
}

// The range of the result: at most 0 at its lower end, symmetric for signed types.
static weir_status_t* find_bounds(const weir_kernel_ctx_t* ctx, int count, float* out_min,
                                  float* out_max) {
  float least = 0, most = -FLT_MAX;  // which a NaN does not replace
  for (int i = 0; i < count; ++i) {
    float min = 0, max = 0;
    WEIR_TRY(read_bound(ctx, 1 + count + i, i, "input_mins", &min));
    WEIR_TRY(read_bound(ctx, 1 + 2 * count + i, i, "input_maxes", &max));
    least = min < least ? min : least;
    most = max > most ? max : most;
  }
  const float widest = fabsf(least) < fabsf(most) ? fabsf(most) : fabsf(least);
  const bool is_signed = weir_quantized_lowest(ctx->node->output_types[0]) != 0;
  *out_min = is_signed ? -widest : least;
  *out_max = is_signed ? widest : most;
  return NULL;
}

static weir_status_t* find_dims(const weir_kernel_ctx_t* ctx, int count, int axis, int64_t* dims) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 1);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int k = 0; k < first->rank; ++k) dims[k] = first->dims[k];
  for (int i = 1; i < count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, 1 + i);
    bool fits = t->rank == first->rank;
    if (!fits) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = %s",
          weir_tensor_shape_text(first, a), i, weir_tensor_shape_text(t, b));
    }
    for (int k = 0; k < t->rank; ++k) fits &= k == axis || t->dims[k] == dims[k];
    if (!fits) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "ConcatOp : Dimensions of inputs should match: shape[0] = %s vs. shape[%d] = %s",
          weir_tensor_shape_text(first, a), i, weir_tensor_shape_text(t, b));
    }
    dims[axis] += t->dims[axis];
  }
  return NULL;
}

// Copies |t| into columns [at, …) of a matrix with rows of |columns|, in the range [min, max].
// Eight bits have few values, each of which is brought to the range once.
typedef struct part_t {
  const weir_tensor_t* t;
  bool is_same;  // range
  weir_dequantize_t from;
  weir_quantize_t to;
  uint8_t table[256];
  int64_t width, columns, at;
  void* out;
} part_t;

static void copy_rows(void* arg, int64_t begin, int64_t end) {
  const part_t* p = arg;
  const size_t size = weir_dtype_size(weir_tensor_type(p->t));
  for (int64_t row = begin; row < end; ++row) {
    const char* x = (const char*)p->t->data + (size_t)(row * p->width) * size;
    char* y = (char*)p->out + (size_t)(row * p->columns + p->at) * size;
    if (p->is_same) {
      memcpy(y, x, (size_t)p->width * size);
    } else if (size == 1) {
      for (int64_t i = 0; i < p->width; ++i) y[i] = (char)p->table[(uint8_t)x[i]];
    } else {
      for (int64_t i = 0; i < p->width; ++i)
        ((int32_t*)y)[i] =
            weir_requantize_value(&p->from, &p->to, weir_tensor_type(p->t), ((const int32_t*)x)[i]);
    }
  }
}

static void copy_part(weir_kernel_ctx_t* ctx, int count, int i, float min, float max, part_t* p) {
  const float low = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1 + count + i), float);
  const float high = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1 + 2 * count + i), float);
  const weir_dtype_t dtype = weir_tensor_type(p->t);
  p->is_same = low == min && high == max;
  p->from = weir_dequantize_in(dtype, low, high);
  p->to = weir_quantize_in(dtype, min, max);
  for (int v = 0; v < 256 && dtype != WEIR_DTYPE_QINT32; ++v)
    p->table[v] = (uint8_t)weir_requantize_value(&p->from, &p->to, dtype, v);
  const int64_t rows = p->width ? p->t->count / p->width : 0;
  weir_pool_for(weir_kernel_pool(ctx), rows, (double)p->width, copy_rows, p);
}

static weir_status_t* concat_cpu(weir_kernel_ctx_t* ctx) {
  const int count = (int)weir_attrs_int(weir_kernel_attrs(ctx), "N");
  const weir_tensor_t *axis = weir_kernel_input(ctx, 0), *first = weir_kernel_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK], inner = 1;
  float min = 0, max = 0;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (axis->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Concat dim tensor should be a scalar integer, but got shape %s",
                       weir_tensor_shape_text(axis, text));
  }
  const int64_t at = weir_tensor_int_at(axis, 0);
  if (at < 0 || at >= first->rank) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "ConcatOp : Expected concatenating dimensions in the range [0, %d), but got %lld",
        first->rank, (long long)at);
  }
  WEIR_TRY(find_bounds(ctx, count, &min, &max));
  WEIR_TRY(find_dims(ctx, count, (int)at, dims));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, first->rank, dims, &out));
  for (int k = (int)at + 1; k < first->rank; ++k) inner *= dims[k];
  part_t part = {.columns = dims[at] * inner, .out = out->data};
  // Values without elements are left out before ranges are given to them, as in TensorFlow.
  for (int i = 0, range = 0; i < count; ++i) {
    part.t = weir_kernel_input(ctx, 1 + i);
    if (part.t->count == 0) continue;
    part.width = part.t->dims[at] * inner;
    copy_part(ctx, count, range++, min, max, &part);
    part.at += part.width;
  }
  return quantized_set_bounds(ctx, min, max);
}

const weir_op_module_t weir_ops_quantized_concat = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedConcat",
         .summary = "Joins quantised tensors along a dimension",
         .attrs = "N: int >= 2; T: type",
         .inputs =
             "concat_dim: int32; values: N * T; input_mins: N * float; input_maxes: N * float",
         .outputs = "output: T; output_min: float; output_max: float",
         .infer_shape = concat_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: quint8, qint32", .compute = concat_cpu,
                                    .host_inputs = "concat_dim")},
        {.name = "QuantizedConcatV2",
         .summary = "Joins quantised tensors along an axis: no kernel, as in TensorFlow without "
                    "oneDNN",
         .attrs = "N: int >= 2; T: type; Tidx: {int32, int64} = DT_INT32",
         .inputs = "values: N * T; axis: Tidx; input_mins: N * float; input_maxes: N * float",
         .outputs = "output: T; output_min: float; output_max: float",
         .infer_shape = concat_shape},
        {0}}};
