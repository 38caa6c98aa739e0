// matmul.c — QuantizedMatMul, and the definitions of the forms with a bias, whose kernels
// TensorFlow has with oneDNN alone.
#include "kernel/quantized/product.h"
#include "kernel/quantized/range.h"
#include "ops/quantized/common.h"

// ---- shapes ----

static weir_status_t* product_shape(weir_shape_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  const int by_a = weir_attrs_bool(attrs, "transpose_a") ? 0 : 1;
  const int by_b = weir_attrs_bool(attrs, "transpose_b") ? 1 : 0;
  const weir_shape_t *a, *b;
  int64_t inner;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &b));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(a, by_a), weir_shape_dim(b, by_b), &inner));
  const int64_t dims[2] = {weir_shape_dim(a, 1 - by_a), weir_shape_dim(b, 1 - by_b)};
  return weir_shape_set_dims(ctx, 0, 2, dims);
}

static weir_status_t* matmul_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(product_shape(ctx));
  return quantized_bounds_shape(ctx, 2, 5);
}

static weir_status_t* check_bias(weir_shape_ctx_t* ctx, int last) {
  WEIR_TRY(product_shape(ctx));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  for (int i = 3; i <= last; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return NULL;
}

static weir_status_t* bias_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_bias(ctx, 6));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_scalar(ctx, 2);
}

static weir_status_t* bias_requantize_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_bias(ctx, 8));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_scalar(ctx, 2);
}

static weir_status_t* bias_dequantize_shape(weir_shape_ctx_t* ctx) { return check_bias(ctx, 8); }

// ---- kernel ----

static weir_status_t* read_bounds(const weir_kernel_ctx_t* ctx, float* bounds) {
  static const char* const names[] = {"min_a", "max_a", "min_b", "max_b"};
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < 4; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i + 2);
    if (t->rank != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, but got shape%s", names[i],
                         weir_tensor_shape_text(t, text));
    }
    bounds[i] = *WEIR_TENSOR_DATA(t, float);
  }
  if (!(bounds[1] > bounds[0]))
    return WEIR_STATUS(INVALID_ARGUMENT, "max_a must be larger than min_a.");
  if (!(bounds[3] > bounds[2]))
    return WEIR_STATUS(INVALID_ARGUMENT, "max_b must be larger than min_b.");
  return NULL;
}

static weir_status_t* read_sizes(const weir_kernel_ctx_t* ctx, weir_quantized_matmul_t* out) {
  const weir_tensor_t *a = weir_kernel_input(ctx, 0), *b = weir_kernel_input(ctx, 1);
  char in_a[WEIR_SHAPE_TEXT_SIZE], in_b[WEIR_SHAPE_TEXT_SIZE];
  out->transpose_a = weir_attrs_bool(weir_kernel_attrs(ctx), "transpose_a");
  out->transpose_b = weir_attrs_bool(weir_kernel_attrs(ctx), "transpose_b");
  if (a->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "In[0] is not a matrix");
  if (b->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "In[1] is not a matrix");
  out->m = a->dims[out->transpose_a ? 1 : 0];
  out->k = a->dims[out->transpose_a ? 0 : 1];
  out->n = b->dims[out->transpose_b ? 0 : 1];
  if (out->k == b->dims[out->transpose_b ? 1 : 0]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                     weir_tensor_shape_text(a, in_a), weir_tensor_shape_text(b, in_b));
}

static weir_status_t* matmul_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *a = weir_kernel_input(ctx, 0), *b = weir_kernel_input(ctx, 1);
  weir_quantized_matmul_t args = {.a = {.data = a->data}, .b = {.data = b->data}};
  float bounds[4] = {0}, min = 0, max = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_bounds(ctx, bounds));
  WEIR_TRY(read_sizes(ctx, &args));
  args.a.offset = (int32_t)weir_float_to_quantized_free(WEIR_DTYPE_QUINT8, 0, bounds[0], bounds[1]);
  args.b.offset = (int32_t)weir_float_to_quantized_free(WEIR_DTYPE_QUINT8, 0, bounds[2], bounds[3]);
  const int64_t dims[2] = {args.m, args.n};
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  WEIR_TRY(weir_quantized_matmul(weir_kernel_pool(ctx), &args, out->data));
  weir_quantized_product_range(WEIR_DTYPE_QUINT8, bounds[0], bounds[1], WEIR_DTYPE_QUINT8,
                               bounds[2], bounds[3], WEIR_DTYPE_QINT32, &min, &max);
  return quantized_set_bounds(ctx, min, max);
}

#define TYPES "T1: quantizedtype; T2: quantizedtype; "
#define BIAS_TYPE "Tbias: {float, qint32}; "
#define TRANSPOSE "transpose_a: bool = false; transpose_b: bool = false; "
#define MODE "input_quant_mode: {'MIN_FIRST','SCALED'} = 'MIN_FIRST'"
#define BOUNDS "min_a: float; max_a: float; min_b: float; max_b: float"
#define FROZEN "; min_freezed_output: float; max_freezed_output: float"
#define OUTPUTS "out: Toutput; min_out: float; max_out: float"

const weir_op_module_t weir_ops_quantized_matmul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedMatMul",
         .summary = "Product of two quantised matrices",
         .attrs = TYPES "Toutput: quantizedtype = DT_QINT32; " TRANSPOSE
                        "Tactivation: quantizedtype = DT_QUINT8",
         .inputs = "a: T1; b: T2; " BOUNDS,
         .outputs = OUTPUTS,
         .infer_shape = matmul_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T1: quint8; T2: quint8; Toutput: qint32",
                                    .compute = matmul_cpu)},
        {.name = "QuantizedMatMulWithBias",
         .summary = "Product of two quantised matrices and a bias: no kernel without oneDNN",
         .attrs = TYPES BIAS_TYPE "Toutput: quantizedtype = DT_QINT32; " TRANSPOSE MODE,
         .inputs = "a: T1; b: T2; bias: Tbias; " BOUNDS,
         .outputs = OUTPUTS,
         .infer_shape = bias_shape},
        {.name = "QuantizedMatMulWithBiasAndRelu",
         .summary = "QuantizedMatMulWithBias, at least 0: no kernel without oneDNN",
         .attrs = TYPES "Toutput: quantizedtype = DT_QINT32; " TRANSPOSE MODE,
         .inputs = "a: T1; b: T2; bias: float; " BOUNDS,
         .outputs = OUTPUTS,
         .infer_shape = bias_shape},
        {.name = "QuantizedMatMulWithBiasAndReluAndRequantize",
         .summary = "QuantizedMatMulWithBias, at least 0, in eight bits: no kernel without oneDNN",
         .attrs = TYPES BIAS_TYPE "Toutput: quantizedtype = DT_QUINT8; " TRANSPOSE MODE,
         .inputs = "a: T1; b: T2; bias: Tbias; " BOUNDS FROZEN,
         .outputs = OUTPUTS,
         .infer_shape = bias_requantize_shape},
        {.name = "QuantizedMatMulWithBiasAndRequantize",
         .summary = "QuantizedMatMulWithBias in eight bits: no kernel without oneDNN",
         .attrs = TYPES BIAS_TYPE "Toutput: quantizedtype = DT_QUINT8; " TRANSPOSE MODE,
         .inputs = "a: T1; b: T2; bias: Tbias; " BOUNDS FROZEN,
         .outputs = OUTPUTS,
         .infer_shape = bias_requantize_shape},
        {.name = "QuantizedMatMulWithBiasAndDequantize",
         .summary = "QuantizedMatMulWithBias as floats: no kernel without oneDNN",
         .attrs = TYPES BIAS_TYPE "Toutput: {float}; " TRANSPOSE MODE,
         .inputs = "a: T1; b: T2; bias: Tbias; " BOUNDS FROZEN,
         .outputs = "out: Toutput",
         .infer_shape = bias_dequantize_shape},
        {0}}};
