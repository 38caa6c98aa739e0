// conv2d_fused.c — QuantizedConv2D and QuantizedDepthwiseConv2D with what follows them: definitions
// and shapes. TensorFlow has kernels for these with oneDNN alone, by rewriting graphs.
#include "kernel/conv/conv_op.h"
#include "ops/quantized/common.h"

// Scalars for the bounds of the input, at most vectors for those of the filter: inputs |first| on.
static weir_status_t* check_bounds(weir_shape_ctx_t* ctx, int first) {
  for (int i = first; i < first + 2; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
    WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, i + 2), 1));
  }
  return NULL;
}

// The result in 32 bits has bounds as the filter has.
static weir_status_t* wide_shape(weir_shape_ctx_t* ctx, int first) {
  WEIR_TRY(weir_conv_op_shape(ctx));
  WEIR_TRY(check_bounds(ctx, first));
  WEIR_TRY(weir_shape_set(ctx, 1, weir_shape_input(ctx, first + 3)));
  return weir_shape_set(ctx, 2, weir_shape_input(ctx, first + 3));
}

// In eight bits it has scalars, which are inputs too.
static weir_status_t* narrow_shape(weir_shape_ctx_t* ctx, int first) {
  WEIR_TRY(weir_conv_op_shape(ctx));
  WEIR_TRY(check_bounds(ctx, first));
  return quantized_bounds_shape(ctx, first + 4, first + 5);
}

static weir_status_t* plain_shape(weir_shape_ctx_t* ctx) { return wide_shape(ctx, 2); }

static weir_status_t* plain_relu_requantize_shape(weir_shape_ctx_t* ctx) {
  return narrow_shape(ctx, 2);
}

static weir_status_t* plain_requantize_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_conv_op_shape(ctx));
  return quantized_bounds_shape(ctx, 2, 7);
}

static weir_status_t* bias_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  return wide_shape(ctx, 3);
}

static weir_status_t* bias_requantize_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  return narrow_shape(ctx, 3);
}

#define TYPES "Tinput: quantizedtype; Tfilter: quantizedtype; "
#define BIAS_TYPE "Tbias: {float, qint32}; "
#define SUMMAND_TYPE "Tsummand: quantizedtype; "
#define OUT(TYPE) "out_type: quantizedtype = " TYPE "; "
#define WINDOW "strides: list(int); padding: {'SAME','VALID'}; dilations: list(int) = [1, 1, 1, 1]"
#define PADDED WINDOW "; padding_list: list(int) = []"
#define BOUNDS "min_input: float; max_input: float; min_filter: float; max_filter: float"
#define FROZEN "; min_freezed_output: float; max_freezed_output: float"
#define SUMMAND "; summand: Tsummand; min_summand: float; max_summand: float"
#define OPERANDS "input: Tinput; filter: Tfilter; "
// An op of this kind, without a kernel.
#define FUSED(NAME, ATTRS, INPUTS, SHAPE)                                                       \
  {                                                                                             \
    .name = (NAME),                                                                             \
    .summary = "A quantised convolution and what follows it: no kernel without oneDNN",         \
    .attrs = ATTRS, .inputs = OPERANDS INPUTS,                                                  \
    .outputs = "output: out_type; min_output: float; max_output: float", .infer_shape = (SHAPE) \
  }

const weir_op_module_t weir_ops_quantized_conv2d_fused = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        FUSED("QuantizedConv2DAndRelu", TYPES OUT("DT_QINT32") PADDED, BOUNDS, plain_shape),
        FUSED("QuantizedConv2DAndReluAndRequantize", TYPES OUT("DT_QUINT8") PADDED, BOUNDS FROZEN,
              plain_relu_requantize_shape),
        FUSED("QuantizedConv2DAndRequantize", TYPES OUT("DT_QINT8") PADDED, BOUNDS FROZEN,
              plain_requantize_shape),
        FUSED("QuantizedConv2DPerChannel", TYPES OUT("DT_QINT32") WINDOW, BOUNDS, plain_shape),
        FUSED("QuantizedConv2DWithBias", TYPES OUT("DT_QINT32") PADDED, "bias: float; " BOUNDS,
              bias_shape),
        FUSED("QuantizedConv2DWithBiasAndRelu", TYPES OUT("DT_QINT32") PADDED,
              "bias: float; " BOUNDS, bias_shape),
        FUSED("QuantizedConv2DWithBiasAndReluAndRequantize",
              TYPES BIAS_TYPE OUT("DT_QUINT8") PADDED, "bias: Tbias; " BOUNDS FROZEN,
              bias_requantize_shape),
        FUSED("QuantizedConv2DWithBiasAndRequantize", TYPES BIAS_TYPE OUT("DT_QINT8") PADDED,
              "bias: Tbias; " BOUNDS FROZEN, bias_requantize_shape),
        FUSED("QuantizedConv2DWithBiasSignedSumAndReluAndRequantize",
              TYPES BIAS_TYPE SUMMAND_TYPE OUT("DT_QUINT8") PADDED,
              "bias: Tbias; " BOUNDS FROZEN SUMMAND, bias_requantize_shape),
        FUSED("QuantizedConv2DWithBiasSumAndRelu", TYPES OUT("DT_QINT32") PADDED,
              "bias: float; " BOUNDS "; summand: float", bias_shape),
        FUSED("QuantizedConv2DWithBiasSumAndReluAndRequantize",
              TYPES BIAS_TYPE SUMMAND_TYPE OUT("DT_QUINT8") PADDED,
              "bias: Tbias; " BOUNDS FROZEN SUMMAND, bias_requantize_shape),
        FUSED("QuantizedDepthwiseConv2D", TYPES OUT("DT_QINT32") WINDOW, BOUNDS,
              weir_conv_op_depthwise_shape),
        FUSED("QuantizedDepthwiseConv2DWithBias", TYPES OUT("DT_QINT32") WINDOW,
              "bias: float; " BOUNDS, weir_conv_op_depthwise_shape),
        FUSED("QuantizedDepthwiseConv2DWithBiasAndRelu", TYPES OUT("DT_QINT32") PADDED,
              "bias: float; " BOUNDS, weir_conv_op_depthwise_shape),
        FUSED("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
              TYPES BIAS_TYPE OUT("DT_QUINT8") PADDED, "bias: Tbias; " BOUNDS FROZEN,
              weir_conv_op_depthwise_shape),
        {0}}};
