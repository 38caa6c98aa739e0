// quantize_and_dequantize.c — QuantizeAndDequantize, V2, V3, V4 and V4Grad: the loss of precision
// by quantisation, in floats.
#include "kernel/quantized/round_trip.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

#define TYPE_ATTR "T: {bfloat16, half, float, double}"
#define V2_ATTRS                                                                            \
  "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; " TYPE_ATTR     \
  "; round_mode: {'HALF_TO_EVEN','HALF_UP'} = 'HALF_TO_EVEN'; narrow_range: bool = false; " \
  "axis: int = -1"

// ---- shapes ----

// Bounds are inputs |first| and the next, which agree; |out| is their shape.
static weir_status_t* bounds_shape(weir_shape_ctx_t* ctx, int first, int64_t axis,
                                   const weir_shape_t** out) {
  const weir_shape_t* low;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, first), axis == -1 ? 0 : 1, &low));
  return weir_shape_join(ctx, weir_shape_input(ctx, first + 1), low, out);
}

// Input 0 has as many elements along |axis| as there are bounds.
static weir_status_t* check_channels(weir_shape_ctx_t* ctx, int64_t axis,
                                     const weir_shape_t* bounds) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t size;
  if (axis == -1) return NULL;
  if (axis < -1)
    return WEIR_STATUS(INVALID_ARGUMENT, "axis should be at least -1, got %lld", (long long)axis);
  if (axis >= WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "axis should be less than %d", WEIR_MAX_RANK);
  WEIR_TRY(weir_shape_at_least(ctx, in, (int)axis + 1));
  return in->rank < 0 ? NULL : weir_dim_join(ctx, weir_shape_dim(bounds, 0), in->dims[axis], &size);
}

static weir_status_t* range_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* bounds;
  const int64_t axis = weir_attrs_int(weir_shape_attrs(ctx), "axis");
  WEIR_TRY(bounds_shape(ctx, 1, axis, &bounds));
  WEIR_TRY(check_channels(ctx, axis, bounds));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

static weir_status_t* v3_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(range_shape(ctx));
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL);
}

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *inputs, *bounds;
  const int64_t axis = weir_attrs_int(weir_shape_attrs(ctx), "axis");
  WEIR_TRY(bounds_shape(ctx, 2, axis, &bounds));
  WEIR_TRY(check_channels(ctx, axis, bounds));
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), &inputs));
  WEIR_TRY(weir_shape_set(ctx, 0, inputs));
  WEIR_TRY(weir_shape_set(ctx, 1, bounds));
  return weir_shape_set(ctx, 2, bounds);
}

// ---- gradients ----

static weir_status_t* straight_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_dy(g, 0));
}

static weir_status_t* v4_grad(weir_grad_ctx_t* g) {
  weir_edge_t all = weir_grad_node_like(g, "QuantizeAndDequantizeV4Grad",
                                        WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 0),
                                                   weir_grad_input(g, 1), weir_grad_input(g, 2)),
                                        WEIR_NAMES("axis"));
  for (int i = 0; i < 3; ++i) WEIR_TRY(weir_grad_set(g, i, weir_build_output(all, i)));
  return NULL;
}

// ---- kernels ----

typedef struct state_t {
  weir_round_trip_t trip;  // bits, signs and rounding
  int64_t axis;            // -1: one range for all
  bool range_given;
  double low, high;  // of the first form
} state_t;

static weir_status_t* check_bits(int64_t bits, bool is_signed, const char* name) {
  if (bits > 0 && bits < (is_signed ? 62 : 63)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "num_bits is out of range: %lld with %s %d", (long long)bits,
                     name, is_signed);
}

static weir_status_t* read_axis(weir_attrs_t attrs, int64_t* out_axis) {
  *out_axis = weir_attrs_int(attrs, "axis");
  if (*out_axis >= -1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Axis must be at least -1. Found %lld",
                     (long long)*out_axis);
}

static weir_status_t* v3_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  self->trip.is_signed = weir_attrs_bool(attrs, "signed_input");
  self->trip.is_narrow = weir_attrs_bool(attrs, "narrow_range");
  self->range_given = weir_attrs_bool(attrs, "range_given");
  return read_axis(attrs, &self->axis);
}

static weir_status_t* v2_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  const int64_t bits = weir_attrs_int(attrs, "num_bits");
  WEIR_TRY(v3_init(init, state));
  self->trip.rounds_up = weir_view_is(weir_attrs_string(attrs, "round_mode"), "HALF_UP");
  WEIR_TRY(check_bits(bits, self->trip.is_signed, "signed_input_"));
  self->trip.bits = (int)bits;
  return NULL;
}

static weir_status_t* v1_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  const int64_t bits = weir_attrs_int(attrs, "num_bits");
  self->axis = -1;
  self->trip.is_signed = weir_attrs_bool(attrs, "signed_input");
  self->range_given = weir_attrs_bool(attrs, "range_given");
  self->low = (double)weir_attrs_float(attrs, "input_min");
  self->high = (double)weir_attrs_float(attrs, "input_max");
  WEIR_TRY(check_bits(bits, self->trip.is_signed, "signed_input_"));
  self->trip.bits = (int)bits;
  if (!self->range_given || self->low <= self->high) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid range: input_min %g > input_max %g", self->low,
                     self->high);
}

static weir_status_t* grad_init(const weir_kernel_init_t* init, void* state) {
  return read_axis(init->node->attrs, &((state_t*)state)->axis);
}

// The elements around |axis|.
static void set_axis(weir_round_trip_t* trip, const weir_tensor_t* in, int64_t axis) {
  trip->outer = trip->channels = 1;
  trip->inner = in->count;
  if (axis < 0) return;
  trip->channels = in->dims[axis];
  trip->inner = 1;
  for (int64_t i = 0; i < axis; ++i) trip->outer *= in->dims[i];
  for (int64_t i = axis + 1; i < in->rank; ++i) trip->inner *= in->dims[i];
}

static double element(const weir_tensor_t* t) {
  return weir_tensor_type(t) == WEIR_DTYPE_FLOAT ? (double)*WEIR_TENSOR_DATA(t, float)
                                                 : *WEIR_TENSOR_DATA(t, double);
}

static weir_status_t* check_order(const weir_tensor_t* low, const weir_tensor_t* high) {
  if (element(low) <= element(high)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid range: input_min %g > input_max %g", element(low),
                     element(high));
}

static weir_status_t* check_sizes(const weir_kernel_ctx_t* ctx, int64_t axis) {
  static const char* const names[] = {"input_min_tensor", "input_max_tensor"};
  const int64_t size = weir_kernel_input(ctx, 0)->dims[axis];
  for (int i = 0; i < 2; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, i + 1);
    if (bound->rank != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank 1 for %s when the axis is specified",
                         names[i]);
    }
    if (bound->count == size) continue;
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "%s has incorrect size, was %lld expected %lld to match dim %lld of the input", names[i],
        (long long)bound->count, (long long)size, (long long)axis);
  }
  return NULL;
}

static weir_status_t* run(weir_kernel_ctx_t* ctx, weir_round_trip_t* trip, int64_t axis) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  const void* x = in->data;
  weir_tensor_t* out = NULL;
  set_axis(trip, in, axis);
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  return weir_round_trip(weir_kernel_pool(ctx), dtype, trip, x, out->data);
}

static weir_status_t* v1_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const bool is_float = weir_tensor_type(weir_kernel_input(ctx, 0)) == WEIR_DTYPE_FLOAT;
  const float low = (float)self->low, high = (float)self->high;
  weir_round_trip_t trip = self->trip;
  if (self->range_given) {
    trip.low = is_float ? (const void*)&low : (const void*)&self->low;
    trip.high = is_float ? (const void*)&high : (const void*)&self->high;
  }
  return run(ctx, &trip, -1);
}

// V2 and V4. TensorFlow takes a range for each channel in none of them: where one is given, it is
// to be a scalar, whatever the axis.
static weir_status_t* v2_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *low = weir_kernel_input(ctx, 1),
                      *high = weir_kernel_input(ctx, 2);
  weir_round_trip_t trip = self->trip;
  if (self->axis >= in->rank && self->axis != -1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at least rank %lld but is rank %d",
                       (long long)self->axis + 1, in->rank);
  }
  if (self->range_given) {
    if (low->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "input_min must be a scalar.");
    if (high->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "input_max must be a scalar.");
    WEIR_TRY(check_order(low, high));
    if (self->axis != -1) WEIR_TRY(check_sizes(ctx, self->axis));
    trip.low = low->data;
    trip.high = high->data;
  }
  return run(ctx, &trip, self->axis);
}

static weir_status_t* v3_bounds(const weir_kernel_ctx_t* ctx, const state_t* self,
                                weir_round_trip_t* trip) {
  const weir_tensor_t *low = weir_kernel_input(ctx, 1), *high = weir_kernel_input(ctx, 2);
  if (self->axis == -1) {
    if (low->count != 1 || high->count != 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "input_min and input_max must be scalars");
    WEIR_TRY(check_order(low, high));
  } else {
    WEIR_TRY(check_sizes(ctx, self->axis));
  }
  trip->low = low->data;
  trip->high = high->data;
  return NULL;
}

static weir_status_t* v3_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *bits = weir_kernel_input(ctx, 3);
  weir_round_trip_t trip = self->trip;
  if (self->axis >= in->rank || in->rank == 0) {  // scalars are refused in TensorFlow, too
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Axis requested is larger than input dimensions. Axis: %lld Input Dimensions: %d",
        (long long)self->axis, in->rank);
  }
  if (bits->rank != 0) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: %d", bits->rank);
  }
  WEIR_TRY(check_bits(weir_tensor_int_at(bits, 0), trip.is_signed, "`signed_input_`"));
  trip.bits = (int)weir_tensor_int_at(bits, 0);
  if (self->range_given) WEIR_TRY(v3_bounds(ctx, self, &trip));
  return run(ctx, &trip, self->axis);
}

static weir_status_t* check_grad(const weir_kernel_ctx_t* ctx, int64_t axis) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 1);
  if (!weir_tensor_same_shape(weir_kernel_input(ctx, 0), in))
    return WEIR_STATUS(INVALID_ARGUMENT, "gradient and input must be the same size");
  if (axis != -1 && axis >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Axis should be -1 or 0 or a positive value less than %dbut given axis "
                       "value was %lld",
                       in->rank, (long long)axis);
  }
  for (int i = 2; i < 4; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, i);
    const char* name = i == 2 ? "min" : "max";
    if (bound->rank > 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input %s tensor must have dimension 0 or 1. Received %d.", name,
                         bound->rank);
    }
    if (axis == -1 && bound->rank != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "input_%s must be a scalar if axis is unspecified",
                         name);
    }
    if (axis != -1 && bound->rank != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Shape must be rank 1 for input_%s_tensor when the axis is specified",
                         name);
    }
    if (axis != -1 && bound->count != in->dims[axis]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s has incorrect size, expected %lld was %lld", name,
                         (long long)in->dims[axis], (long long)bound->count);
    }
  }
  return NULL;
}

static weir_status_t* grad_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *in = weir_kernel_input(ctx, 1);
  const weir_tensor_t *low = weir_kernel_input(ctx, 2), *high = weir_kernel_input(ctx, 3);
  weir_tensor_t* out[3] = {NULL, NULL, NULL};
  WEIR_TRY(check_grad(ctx, self->axis));
  weir_round_trip_t trip = {.low = low->data, .high = high->data};
  set_axis(&trip, in, self->axis);
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out[0]));
  for (int i = 1; i < 3; ++i) {
    WEIR_TRY(weir_kernel_output(ctx, i, low->rank, low->dims, &out[i]));
    if (out[i]->count) memset(out[i]->data, 0, weir_tensor_byte_size(out[i]));
  }
  weir_round_trip_grad(weir_kernel_pool(ctx), weir_tensor_type(in), &trip, dy->data, in->data,
                       out[0]->data);
  return NULL;
}

#define KERNEL(INIT, COMPUTE)                                                        \
  WEIR_CPU_KERNEL(.types = "T: float, double", .compute = (COMPUTE), .init = (INIT), \
                  .state_size = sizeof(state_t))

const weir_op_module_t weir_ops_quantized_quantize_and_dequantize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizeAndDequantize",
         .summary = "Elements quantised and made numbers again, by a range of attributes",
         .attrs = "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; "
                  "input_min: float = 0.0; input_max: float = 0.0; " TYPE_ATTR,
         .inputs = "input: T",
         .outputs = "output: T",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = straight_grad,
         .kernels = KERNEL(v1_init, v1_cpu)},
        {.name = "QuantizeAndDequantizeV2",
         .summary = "Elements quantised and made numbers again",
         .attrs = V2_ATTRS,
         .inputs = "input: T; input_min: T; input_max: T",
         .outputs = "output: T",
         .infer_shape = range_shape,
         .build_grad = straight_grad,
         .kernels = KERNEL(v2_init, v2_cpu)},
        {.name = "QuantizeAndDequantizeV3",
         .summary = "Elements quantised to a number of bits and made numbers again",
         .attrs = "signed_input: bool = true; range_given: bool = true; " TYPE_ATTR
                  "; narrow_range: bool = false; axis: int = -1",
         .inputs = "input: T; input_min: T; input_max: T; num_bits: int32",
         .outputs = "output: T",
         .infer_shape = v3_shape,
         .build_grad = straight_grad,
         .kernels = KERNEL(v3_init, v3_cpu)},
        {.name = "QuantizeAndDequantizeV4",
         .summary = "Elements quantised and made numbers again, with a gradient within the range",
         .attrs = V2_ATTRS,
         .inputs = "input: T; input_min: T; input_max: T",
         .outputs = "output: T",
         .infer_shape = range_shape,
         .build_grad = v4_grad,
         .kernels = KERNEL(v2_init, v2_cpu)},
        {.name = "QuantizeAndDequantizeV4Grad",
         .summary = "Gradient of QuantizeAndDequantizeV4",
         .attrs = TYPE_ATTR "; axis: int = -1",
         .inputs = "gradients: T; input: T; input_min: T; input_max: T",
         .outputs = "input_backprop: T; input_min_backprop: T; input_max_backprop: T",
         .infer_shape = grad_shape,
         .kernels = KERNEL(grad_init, grad_cpu)},
        {0}}};
