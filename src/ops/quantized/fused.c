// fused.c — _FusedQuantizedConv2D, _FusedQuantizedDepthwiseConv2D and _QuantizedMatMul, which
// oneDNN's graphs are rewritten to: definitions and shapes. TensorFlow has kernels for these with
// oneDNN alone.
#include "kernel/conv/conv_op.h"
#include "ops/quantized/common.h"

static bool has_op(const weir_shape_ctx_t* ctx, const char* name) {
  const weir_attr_t* list = weir_attrs_list(weir_shape_attrs(ctx), "fused_ops");
  for (size_t i = 0; i < list->count; ++i) {
    if (weir_view_is(list->u.strings[i], name)) return true;
  }
  return false;
}

// That there are as many inputs as are looked at, and an output.
static weir_status_t* check_counts(const weir_shape_ctx_t* ctx, int inputs) {
  if (ctx->node->input_count >= inputs && ctx->node->output_count >= 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s needs %d inputs and an output, not %d and %d",
                     ctx->node->op->name, inputs, ctx->node->input_count, ctx->node->output_count);
}

// After input and filter: a bias, a summand, the bounds of both.
static weir_status_t* bounds_shape(weir_shape_ctx_t* ctx, int first) {
  const weir_shape_t* bounds = NULL;
  for (int i = first; i < first + 2; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
    WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, i + 2), 1));
  }
  bounds = weir_shape_input(ctx, first + 3);
  for (int i = 1; i < WEIR_MIN(3, ctx->node->output_count); ++i) {
    if (has_op(ctx, "Requantize")) WEIR_TRY(weir_shape_set_scalar(ctx, i));
    else WEIR_TRY(weir_shape_set(ctx, i, bounds));
  }
  return NULL;
}

static weir_status_t* fused_shape(weir_shape_ctx_t* ctx, bool is_depthwise) {
  const bool has_bias = has_op(ctx, "BiasAdd"), has_summand = has_op(ctx, "Sum");
  int next = 2;
  WEIR_TRY(check_counts(ctx, 6 + has_bias + has_summand));
  WEIR_TRY(is_depthwise ? weir_conv_op_depthwise_shape(ctx) : weir_conv_op_shape(ctx));
  if (has_bias) WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, next++), 1, NULL));
  if (has_summand) WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, next++), 4, NULL));
  return bounds_shape(ctx, next);
}

static weir_status_t* conv_shape(weir_shape_ctx_t* ctx) { return fused_shape(ctx, false); }
static weir_status_t* depthwise_shape(weir_shape_ctx_t* ctx) { return fused_shape(ctx, true); }

static weir_status_t* matmul_shape(weir_shape_ctx_t* ctx) {
  const bool transpose_a = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_a");
  const bool transpose_b = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_b");
  const weir_shape_t *a = NULL, *b = NULL;
  int64_t inner;
  WEIR_TRY(check_counts(ctx, 2));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &b));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(a, transpose_a ? 0 : 1),
                         weir_shape_dim(b, transpose_b ? 1 : 0), &inner));
  const int64_t dims[2] = {weir_shape_dim(a, transpose_a ? 1 : 0),
                           weir_shape_dim(b, transpose_b ? 0 : 1)};
  return weir_shape_set_dims(ctx, 0, 2, dims);
}

#define ARGUMENTS                                                       \
  .inputs = "device_inputs: Tdevice_inputs; host_inputs: Thost_inputs", \
  .outputs = "device_outputs: Tdevice_outputs; host_outputs: Thost_outputs"
#define LISTS(HOST_DEFAULT)                                                          \
  "Tdevice_inputs: list(type) >= 0 = []; Thost_inputs: list(type) >= 0" HOST_DEFAULT \
  "; Tdevice_outputs: list(type) >= 0 = []; Thost_outputs: list(type) >= 0" HOST_DEFAULT "; "
#define CONV_ATTRS \
  "Tinput: quantizedtype = DT_QUINT8; Tfilter: quantizedtype = DT_QINT8; "                     \
  "Tbias: {float, qint32} = DT_QINT32; Tsummand: {float, quint8, qint8, qint32}; "             \
  "out_type: quantizedtype = DT_QINT32; " LISTS("")                                            \
  "data_format: string = 'NHWC'; strides: list(int); is_filter_const: bool = true; "           \
  "is_bias_const: bool = true; padding: {'SAME','VALID','EXPLICIT'}; "                         \
  "explicit_paddings: list(int) = []; dilations: list(int) = [1, 1, 1, 1]; "                   \
  "fused_ops: list(string) = []; alpha: float = 0.0"
#define WIDE "{bfloat16, float, qint8, quint8, qint32, qint16, quint16} = DT_FLOAT; "

const weir_op_module_t weir_ops_quantized_fused = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_FusedQuantizedConv2D",
         .summary = "A quantised convolution and what follows it: no kernel without oneDNN",
         .attrs = CONV_ATTRS,
         ARGUMENTS,
         .infer_shape = conv_shape},
        {.name = "_FusedQuantizedDepthwiseConv2D",
         .summary =
             "A quantised depthwise convolution and what follows it: no kernel without oneDNN",
         .attrs = CONV_ATTRS,
         ARGUMENTS,
         .infer_shape = depthwise_shape},
        {.name = "_QuantizedMatMul",
         .summary = "A quantised product and what follows it: no kernel without oneDNN",
         .attrs = LISTS(" = []") "T1: quantizedtype; T2: quantizedtype; Tbias: " WIDE "U: " WIDE
                                 "Tout: " WIDE "transpose_a: bool = false; transpose_b: bool = "
                                 "false; is_weight_const: bool = true; "
                                 "is_bias_const: bool = true; fused_ops: list(string) = []; "
                                 "input_quant_mode: {'MIN_FIRST','SCALED'} = 'SCALED'; "
                                 "output_quant_mode: {'MIN_FIRST','SCALED'} = 'SCALED'; "
                                 "leakyrelu_alpha: float = 0.2",
         ARGUMENTS,
         .infer_shape = matmul_shape},
        {0}}};
