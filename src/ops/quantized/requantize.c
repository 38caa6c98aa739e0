// requantize.c — RequantizationRange, Requantize, their forms for each channel, and
// QuantizeDownAndShrinkRange: sums of products brought back to eight bits.
#include "kernel/quantized/requantize.h"

#include <float.h>

#include "ops/quantized/common.h"

// ---- shapes ----

static weir_status_t* set_scalars(weir_shape_ctx_t* ctx, int rank) {
  for (int i = 1; i < 3; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), rank, NULL));
  return weir_shape_fn_scalar(ctx);
}

static weir_status_t* range_shape(weir_shape_ctx_t* ctx) { return set_scalars(ctx, 0); }
static weir_status_t* channel_range_shape(weir_shape_ctx_t* ctx) { return set_scalars(ctx, 1); }

static weir_status_t* requantize_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  return quantized_bounds_shape(ctx, 1, 4);
}

static weir_status_t* channel_shape(weir_shape_ctx_t* ctx) {
  for (int i = 1; i < 3; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, NULL));
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  return quantized_bounds_shape(ctx, 3, 4);
}

static weir_status_t* shrink_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  return quantized_bounds_shape(ctx, 1, 2);
}

// ---- one range ----

// The range of floats that the elements take up, widened to hold 0 from below.
static void used_range(const weir_tensor_t* in, float min, float max, float* out_min,
                       float* out_max) {
  int32_t low, high;
  weir_int32_extremes(in->data, in->count, 1, &low, &high);
  const float least = weir_quantized_to_float(WEIR_DTYPE_QINT32, low, min, max);
  *out_min = least < 0 ? least : 0;
  *out_max = weir_quantized_to_float(WEIR_DTYPE_QINT32, high, min, max);
}

static weir_status_t* range_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *min = weir_kernel_input(ctx, 1), *max = weir_kernel_input(ctx, 2);
  float low, high;
  if (min->count < 1) return WEIR_STATUS(INVALID_ARGUMENT, "Input min must not be empty.");
  if (max->count < 1) return WEIR_STATUS(INVALID_ARGUMENT, "Input max must not be empty.");
  used_range(weir_kernel_input(ctx, 0), *WEIR_TENSOR_DATA(min, float),
             *WEIR_TENSOR_DATA(max, float), &low, &high);
  WEIR_TRY(quantized_set_scalar(ctx, 0, low));
  return quantized_set_scalar(ctx, 1, high);
}

static weir_status_t* run(weir_kernel_ctx_t* ctx, const weir_requantize_t* args) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  weir_requantize(weir_kernel_pool(ctx), args, in->data, out->data, in->count);
  return quantized_set_bounds(ctx, args->out_min, args->out_max);
}

static weir_status_t* requantize_cpu(weir_kernel_ctx_t* ctx) {
  weir_requantize_t r = {.out = ctx->node->output_types[0]};
  WEIR_TRY(quantized_scalar(ctx, 1, "input_min", &r.in_min));
  WEIR_TRY(quantized_scalar(ctx, 2, "input_max", &r.in_max));
  WEIR_TRY(quantized_scalar(ctx, 3, "requested_output_min", &r.out_min));
  WEIR_TRY(quantized_scalar(ctx, 4, "requested_output_max", &r.out_max));
  if (!(r.out_min <= 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "requested_output_min must be <= 0, but got %g",
                       (double)r.out_min);
  }
  if (!(r.out_max >= r.out_min)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "requested_output_max must be >= requested_output_min, but got %g and %g",
                       (double)r.out_max, (double)r.out_min);
  }
  return run(ctx, &r);
}

static weir_status_t* shrink_cpu(weir_kernel_ctx_t* ctx) {
  weir_requantize_t r = {.out = ctx->node->output_types[0]};
  WEIR_TRY(quantized_scalar(ctx, 1, "input_min", &r.in_min));
  WEIR_TRY(quantized_scalar(ctx, 2, "input_max", &r.in_max));
  used_range(weir_kernel_input(ctx, 0), r.in_min, r.in_max, &r.out_min, &r.out_max);
  return run(ctx, &r);
}

// ---- a range for each channel ----

// The larger absolute value of the bounds of channel |c|.
static float widest(const weir_kernel_ctx_t* ctx, int64_t c) {
  const float low = fabsf(WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), float)[c]);
  const float high = fabsf(WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), float)[c]);
  return low < high ? high : low;
}

static weir_status_t* check_channel_range(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *min = weir_kernel_input(ctx, 1),
                      *max = weir_kernel_input(ctx, 2);
  if (min->rank > 1 && min->dims[0] == max->count && min->count != max->count) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "input_min must have the same number of elements as input_max, got %lld and %lld",
        (long long)min->count, (long long)max->count);
  }
  if (min->rank != 1 || max->rank != 1 || min->count != max->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input_min has incorrect size, expected %lld was %lld",
                       (long long)max->count, (long long)(min->rank > 0 ? min->dims[0] : 1));
  }
  if (in->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "input must not be empty");
  if (in->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "input must be in NHWC format");
  if (in->dims[3] == max->count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "input must have same number of channels as length of input_min: %lld vs %lld",
                     (long long)in->dims[3], (long long)max->count);
}

static weir_status_t* channel_range_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const float clip = weir_attrs_float(weir_kernel_attrs(ctx), "clip_value_max");
  bool is_negative = false;
  float largest = FLT_MIN;
  WEIR_TRY(check_channel_range(ctx));
  for (int64_t c = 0; c < in->dims[3]; ++c) {
    int32_t low, high;
    weir_int32_extremes(WEIR_TENSOR_DATA(in, int32_t) + c, in->count / in->dims[3], in->dims[3],
                        &low, &high);
    is_negative |= low < 0;
    // The absolute value of INT32_MIN is itself: TensorFlow's wraps.
    const int32_t below = low < 0 && low > INT32_MIN ? -low : low;
    const int32_t above = high < 0 && high > INT32_MIN ? -high : high;
    const float range = widest(ctx, c) * (float)WEIR_MAX(below, above) / 0x1p31f;
    if (largest < range) largest = range;
  }
  if (largest > clip) largest = clip;
  WEIR_TRY(quantized_set_scalar(ctx, 0, is_negative ? -largest : 0));
  return quantized_set_scalar(ctx, 1, largest);
}

static weir_status_t* check_channels(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *min = weir_kernel_input(ctx, 1),
                      *max = weir_kernel_input(ctx, 2);
  if (in->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Current RequantizePerChannel operatorsupports 4D tensors only.");
  }
  if (max->count != min->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input_max has incorrect size, expected %lld was %lld",
                       (long long)min->count, (long long)max->count);
  }
  for (int i = 3; i < 5; ++i) {
    if (weir_kernel_input(ctx, i)->count == 1) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "requested_output_%s must be a scalar",
                       i == 3 ? "min" : "max");
  }
  if (in->dims[3] == min->count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "input_min has incorrect size, expected %lld was %lld",
                     (long long)in->dims[3], (long long)min->count);
}

static weir_status_t* channel_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = ctx->node->output_types[0];
  weir_tensor_t *out = NULL, *factors = NULL;
  WEIR_TRY(check_channels(ctx));
  const float min = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 3), float);
  const float max = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 4), float);
  if (dtype == WEIR_DTYPE_QINT8 && !(min < 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "If out_type is QINT8, requested_output_max must be non negative, got %g",
                       (double)min);
  }
  const int64_t channels = in->dims[3];
  const float wanted = fabsf(min) < fabsf(max) ? fabsf(max) : fabsf(min);
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, channels, &factors));
  for (int64_t c = 0; c < channels; ++c) {
    WEIR_TENSOR_DATA(factors, float)
    [c] = (float)weir_quantized_highest(dtype) * (widest(ctx, c) / wanted / 0x1p31f);
  }
  weir_requantize_channels(weir_kernel_pool(ctx), dtype, channels ? in->count / channels : 0,
                           channels, factors->data, in->data, out->data);
  weir_tensor_release(factors);
  return quantized_set_bounds(ctx, min, max);
}

#define BOUNDS "input_min: float; input_max: float"
#define OUT_BOUNDS "output_min: float; output_max: float"
#define EIGHT_BITS(TYPE, COMPUTE)                                                                 \
  ((const weir_kernel_def_t[]){                                                                   \
      {WEIR_DEVICE_CPU, .types = TYPE ": qint32; out_type: quint8, qint8", .compute = (COMPUTE)}, \
      {0}})

const weir_op_module_t weir_ops_quantized_requantize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RequantizationRange",
         .summary = "The range that quantised elements take up",
         .attrs = "Tinput: quantizedtype",
         .inputs = "input: Tinput; " BOUNDS,
         .outputs = OUT_BOUNDS,
         .infer_shape = range_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "Tinput: qint32", .compute = range_cpu)},
        {.name = "RequantizationRangePerChannel",
         .summary = "The range that quantised elements take up, whose channels have ranges each",
         .attrs = "T: quantizedtype = DT_QINT32; clip_value_max: float",
         .inputs = "input: T; " BOUNDS,
         .outputs = OUT_BOUNDS,
         .infer_shape = channel_range_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: qint32", .compute = channel_range_cpu)},
        {.name = "Requantize",
         .summary = "Quantised elements brought to another range and type",
         .attrs = "Tinput: quantizedtype; out_type: quantizedtype",
         .inputs =
             "input: Tinput; " BOUNDS "; requested_output_min: float; requested_output_max: float",
         .outputs = "output: out_type; " OUT_BOUNDS,
         .infer_shape = requantize_shape,
         .kernels = EIGHT_BITS("Tinput", requantize_cpu)},
        {.name = "RequantizePerChannel",
         .summary = "Quantised elements, whose channels have ranges each, brought to one",
         .attrs = "T: quantizedtype = DT_QINT32; out_type: quantizedtype = DT_QUINT8",
         .inputs = "input: T; " BOUNDS "; requested_output_min: float; requested_output_max: float",
         .outputs = "output: out_type; " OUT_BOUNDS,
         .infer_shape = channel_shape,
         .kernels = EIGHT_BITS("T", channel_cpu)},
        {.name = "QuantizeDownAndShrinkRange",
         .summary = "Quantised elements as eight bits of the range they take up",
         .attrs = "Tinput: quantizedtype; out_type: quantizedtype",
         .inputs = "input: Tinput; " BOUNDS,
         .outputs = "output: out_type; " OUT_BOUNDS,
         .infer_shape = shrink_shape,
         .kernels =
             WEIR_CPU_KERNEL(.types = "Tinput: qint32; out_type: quint8", .compute = shrink_cpu)},
        {0}}};
