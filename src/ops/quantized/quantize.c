// quantize.c — QuantizeV2 and Dequantize: floats made numbers of quantised types, and back.
#include <float.h>

#include "kernel/quantized/convert.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/cast.h"

#define MODE_ATTR "mode: {'MIN_COMBINED','MIN_FIRST','SCALED'} = 'MIN_COMBINED'"

typedef enum quantize_mode_t { MIN_COMBINED, MIN_FIRST, SCALED } quantize_mode_t;

typedef struct state_t {
  quantize_mode_t mode;
  bool to_even, is_narrow;
  int64_t axis;  // below 0: one range for all
  float least;   // range for its largest number
} state_t;

// ---- shapes ----

// Checks both bounds; |out_bounds| is the shape of the second.
static weir_status_t* bounds_shape(weir_shape_ctx_t* ctx, const weir_shape_t** out_bounds,
                                   int64_t* out_axis) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const int64_t axis = weir_attrs_int(weir_shape_attrs(ctx), "axis");
  int64_t size;
  *out_axis = axis;
  if (axis < -1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "axis should be at least -1, got %lld", (long long)axis);
  }
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), axis < 0 ? 0 : 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), axis < 0 ? 0 : 1, out_bounds));
  if (axis < 0) return NULL;
  if (in->rank < 0) return NULL;
  if (axis >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at least rank %lld but is rank %d",
                       (long long)axis + 1, in->rank);
  }
  return weir_dim_join(ctx, weir_shape_dim(*out_bounds, 0), in->dims[axis], &size);
}

static weir_status_t* quantize_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* bounds;
  int64_t axis;
  WEIR_TRY(bounds_shape(ctx, &bounds, &axis));
  // A single slice has scalars for bounds.
  const int64_t size = axis < 0 ? 1 : weir_shape_dim(bounds, 0);
  const weir_shape_t* out = size == 1  ? &weir_shape_scalar
                            : size < 0 ? &weir_shape_unknown
                                       : bounds;
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  WEIR_TRY(weir_shape_set(ctx, 1, out));
  return weir_shape_set(ctx, 2, out);
}

static weir_status_t* dequantize_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* bounds;
  int64_t axis;
  WEIR_TRY(bounds_shape(ctx, &bounds, &axis));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

// ---- kernels ----

static weir_status_t* read_attrs(weir_attrs_t attrs, state_t* self) {
  const weir_view_t mode = weir_attrs_string(attrs, "mode");
  self->mode = weir_view_is(mode, "SCALED")      ? SCALED
               : weir_view_is(mode, "MIN_FIRST") ? MIN_FIRST
                                                 : MIN_COMBINED;
  self->is_narrow = weir_attrs_bool(attrs, "narrow_range");
  self->axis = weir_attrs_int(attrs, "axis");
  if (self->axis >= -1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "axis should be at least -1, got %lld",
                     (long long)self->axis);
}

static weir_status_t* quantize_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(read_attrs(attrs, self));
  self->to_even = weir_view_is(weir_attrs_string(attrs, "round_mode"), "HALF_TO_EVEN");
  self->least = weir_attrs_float(attrs, "ensure_minimum_range");
  if (!self->to_even || self->mode == SCALED) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '%.*s'.",
      WEIR_VIEW_ARG(weir_attrs_string(attrs, "mode")));
}

static weir_status_t* dequantize_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(read_attrs(attrs, self));
  if (self->mode == MIN_COMBINED || weir_attrs_type(attrs, "dtype") == WEIR_DTYPE_FLOAT)
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%.*s'",
                     WEIR_VIEW_ARG(weir_attrs_string(attrs, "mode")));
}

static void set_slices(const weir_tensor_t* in, int64_t axis, weir_slices_t* out) {
  *out = (weir_slices_t){.outer = 1, .slices = 1, .inner = in->count};
  if (axis < 0) return;
  out->slices = in->dims[axis];
  out->inner = 1;
  for (int64_t i = 0; i < axis; ++i) out->outer *= in->dims[i];
  for (int64_t i = axis + 1; i < in->rank; ++i) out->inner *= in->dims[i];
}

// ---- QuantizeV2 ----

static weir_status_t* check_bounds(const weir_kernel_ctx_t* ctx, int64_t axis) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  if (axis >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Axis is on a zero-based index, so its value must always be less than "
                       "number of input's dims, but given axis value was %lld and input's dims "
                       "was %d",
                       (long long)axis, in->rank);
  }
  for (int i = 1; i < 3; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    const char* name = i == 1 ? "min_range" : "max_range";
    if (axis < 0 && t->count != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "If axis is not specified, %s must contain a single float element, but it "
                         "contains %lld elements",
                         name, (long long)t->count);
    }
    if (axis >= 0 && t->rank != 1) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "If axis is specified, %s must be a 1-D tensor whose size matches the axis "
          "dimension of the input and output tensors, but %s dims are %d",
          name, name, t->rank);
    }
    if (axis >= 0 && t->count != in->dims[axis]) {
      char text[WEIR_SHAPE_TEXT_SIZE];
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "If axis is specified, %s must be a 1-D tensor whose size matches the axis "
          "dimension of the input and output tensors, but its shape is %s and "
          "input's axis dimension is of size %lld",
          name, weir_tensor_shape_text(t, text), (long long)in->dims[axis]);
    }
  }
  return NULL;
}

// Scales to whole numbers, and changes |min| and |max| to what the ends of the type stand for.
static float scale_ends(const state_t* self, weir_dtype_t dtype, float* min, float* max) {
  const float lowest = (float)(weir_quantized_lowest(dtype) + (self->is_narrow ? 1 : 0));
  const float highest = (float)weir_quantized_highest(dtype);
  const float by_min = lowest * *min > 0 ? lowest / *min : FLT_MAX;
  const float by_max = highest * *max > 0 ? highest / *max : FLT_MAX;
  const float scale = by_max < by_min ? by_max : by_min;
  *min = lowest / scale;
  *max = highest / scale;
  return scale;
}

static weir_quantize_t scaled_range(const state_t* self, weir_dtype_t dtype, float* min,
                                    float* max) {
  const float scale = scale_ends(self, dtype, min, max);
  return (weir_quantize_t){.rounding = self->to_even ? WEIR_QUANTIZE_EVEN : WEIR_QUANTIZE_AWAY,
                           .low = *min,
                           .high = *max,
                           .scale = scale,
                           .top = FLT_MAX};
}

static weir_quantize_t combined_range(weir_dtype_t dtype, float min, float max) {
  const int64_t lowest = weir_quantized_lowest(dtype);
  const double steps = (double)weir_quantized_steps(dtype);
  return (weir_quantize_t){.rounding = lowest ? WEIR_QUANTIZE_AWAY : WEIR_QUANTIZE_DOWN,
                           .low = min,
                           .high = max,
                           .origin = min,
                           .scale = (float)((steps - 1.0) / (double)(max - min)),
                           .bias = lowest ? (float)(-steps / 2.0) : 0.5f,
                           .top = FLT_MAX};
}

// The range of one slice, which is made to hold 0 and not to be too small.
static weir_status_t* find_range(const state_t* self, weir_dtype_t dtype, float* min, float* max,
                                 weir_quantize_t* out) {
  const float low = *min, high = *max;
  if (high < low) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input_max_range must be larger than input_min_range.");
  }
  const float widest = fabsf(low) < fabsf(high) ? fabsf(high) : fabsf(low);
  const float epsilon = (1.0f < widest ? widest : 1.0f) * self->least;
  *min = low < 0 ? low : 0;
  *max = high < *min + epsilon ? *min + epsilon : high;
  *max = 0 < *max ? *max : 0;
  *out = self->mode == SCALED      ? scaled_range(self, dtype, min, max)
         : self->mode == MIN_FIRST ? weir_quantize_in(dtype, *min, *max)
                                   : combined_range(dtype, *min, *max);
  return NULL;
}

static weir_status_t* find_ranges(weir_kernel_ctx_t* ctx, int64_t count, weir_dtype_t dtype,
                                  weir_quantize_t* ranges) {
  const int rank = count == 1 ? 0 : 1;  // one slice: scalars, as TensorFlow's kernel makes them
  weir_tensor_t *min = NULL, *max = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 1, rank, &count, &min));
  WEIR_TRY(weir_kernel_output(ctx, 2, rank, &count, &max));
  for (int64_t i = 0; i < count; ++i) {
    float low = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), float)[i];
    float high = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), float)[i];
    WEIR_TRY(find_range(ctx->state, dtype, &low, &high, &ranges[i]));
    WEIR_TENSOR_DATA(min, float)[i] = low;
    WEIR_TENSOR_DATA(max, float)[i] = high;
  }
  return NULL;
}

static weir_status_t* quantize_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = ctx->node->output_types[0];
  weir_slices_t slices;
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_bounds(ctx, self->axis));
  set_slices(in, self->axis, &slices);
  if (slices.slices != 1 && self->mode == MIN_FIRST) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "MIN_FIRST mode is not implemented for Quantize with axis != -1.");
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  weir_quantize_t* ranges = weir_alloc_array((size_t)slices.slices, sizeof(*ranges));
  if (slices.slices && !ranges) return weir_out_of_memory();
  weir_status_t* status = find_ranges(ctx, slices.slices, dtype, ranges);
  if (!status)
    weir_quantize_floats(weir_kernel_pool(ctx), dtype, &slices, ranges, in->data, out->data);
  weir_free(ranges);
  return status;
}

// ---- Dequantize ----

static weir_status_t* check_counts(const weir_kernel_ctx_t* ctx, int64_t axis, int64_t slices) {
  for (int i = 1; i < 3; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (t->count == slices) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input_%s_tensor must have as many elements as input on the dequantization "
                       "axis (%lld), got %lld, expected %lld",
                       i == 1 ? "min" : "max", (long long)axis, (long long)t->count,
                       (long long)slices);
  }
  return NULL;
}

static weir_dequantize_t find_scale(const state_t* self, weir_dtype_t dtype, float min, float max) {
  const float lowest = (float)weir_quantized_lowest(dtype);
  const float highest = (float)weir_quantized_highest(dtype);
  if (self->mode == MIN_FIRST) return weir_dequantize_in(dtype, min, max);
  if (self->mode == SCALED) {
    const float by_min = min / (float)(weir_quantized_lowest(dtype) + (self->is_narrow ? 1 : 0));
    const float by_max = max / highest;
    return (weir_dequantize_t){.scale = lowest == 0 || by_min < by_max ? by_max : by_min};
  }
  return (weir_dequantize_t){.shift = lowest == 0 ? 0 : (highest - lowest + 1) / 2.0f,
                             .scale = (max - min) / (highest - lowest),
                             .base = min};
}

static weir_status_t* run_dequantize(weir_kernel_ctx_t* ctx, const weir_slices_t* slices,
                                     const weir_dequantize_t* ranges, weir_tensor_t* out) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  weir_pool_t* pool = weir_kernel_pool(ctx);
  if (weir_tensor_type(out) == WEIR_DTYPE_FLOAT) {
    weir_dequantize_floats(pool, dtype, slices, ranges, in->data, out->data);
    return NULL;
  }
  weir_tensor_t* wide = NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, in->count, &wide));
  weir_dequantize_floats(pool, dtype, slices, ranges, in->data, wide->data);
  weir_status_t* status =
      weir_cast_elements(weir_tensor_type(out), out->data, WEIR_DTYPE_FLOAT, wide->data, in->count);
  weir_tensor_release(wide);
  return status;
}

static weir_status_t* dequantize_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_slices_t slices;
  weir_tensor_t* out = NULL;
  if (self->axis >= in->rank && self->axis >= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Axis must be less than input dimension(%d), got %lld",
                       in->rank, (long long)self->axis);
  }
  set_slices(in, self->axis, &slices);
  WEIR_TRY(check_counts(ctx, self->axis, slices.slices));
  if (slices.slices != 1 && self->mode == MIN_FIRST) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "MIN_FIRST mode is not implemented for Dequantize with axis != -1.");
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  weir_dequantize_t* ranges = weir_alloc_array((size_t)slices.slices, sizeof(*ranges));
  if (slices.slices && !ranges) return weir_out_of_memory();
  const float* min = weir_kernel_input(ctx, 1)->data;
  const float* max = weir_kernel_input(ctx, 2)->data;
  for (int64_t i = 0; i < slices.slices; ++i)
    ranges[i] = find_scale(self, weir_tensor_type(in), min[i], max[i]);
  weir_status_t* status = run_dequantize(ctx, &slices, ranges, out);
  weir_free(ranges);
  return status;
}

const weir_op_module_t weir_ops_quantized_quantize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizeV2",
         .summary = "Floats as numbers of a quantised type, and the range these stand for",
         .attrs = "T: quantizedtype; " MODE_ATTR
                  "; round_mode: {'HALF_AWAY_FROM_ZERO','HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'; "
                  "narrow_range: bool = false; axis: int = -1; ensure_minimum_range: float = 0.01",
         .inputs = "input: float; min_range: float; max_range: float",
         .outputs = "output: T; output_min: float; output_max: float",
         .infer_shape = quantize_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = quantize_cpu, .init = quantize_init,
                                    .state_size = sizeof(state_t))},
        {.name = "Dequantize",
         .summary = "The floats that numbers of a quantised type stand for",
         .attrs = "T: quantizedtype; " MODE_ATTR
                  "; narrow_range: bool = false; axis: int = -1; dtype: {bfloat16, float} = "
                  "DT_FLOAT",
         .inputs = "input: T; min_range: float; max_range: float",
         .outputs = "output: dtype",
         .infer_shape = dequantize_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = dequantize_cpu, .init = dequantize_init,
                                    .state_size = sizeof(state_t))},
        {0}}};
