// batch_norm.c — FusedBatchNorm, FusedBatchNormV2, FusedBatchNormV3, and _FusedBatchNormEx, which
// TensorFlow makes of the last with an addend and a ReLU.
#include "kernel/nn/batch_norm.h"

#include <math.h>

#include "kernel/move/staging.h"
#include "kernel/nn/cuda_batch_norm.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

#define NORM_ATTRS "epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
#define TAIL_ATTRS "is_training: bool = true"

static bool is_channels_first(weir_attrs_t attrs) {
  weir_view_t format = weir_attrs_string(attrs, "data_format");
  return weir_view_starts_with(format, "NC");
}

static weir_status_t* batch_norm_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *x = weir_shape_input(ctx, 0), *vector;
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  bool is_5d = weir_attrs_string(attrs, "data_format").size == 5;
  WEIR_TRY(weir_shape_with_rank(ctx, x, is_5d ? 5 : 4, &x));
  int axis = is_channels_first(attrs) ? 1 : x->rank - 1;
  int64_t channels = weir_shape_dim(x, axis);
  // The moments given count at inference, and where the new ones are mixed with them.
  bool has_moments = !weir_attrs_bool(attrs, "is_training") ||
                     weir_attrs_float(attrs, "exponential_avg_factor") != 1;
  int count = has_moments ? 5 : 3;
  for (int i = 1; i < count; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &vector));
    WEIR_TRY(weir_dim_join(ctx, channels, weir_shape_dim(vector, 0), &channels));
  }
  int64_t dims[5];
  for (int i = 0; i < x->rank; ++i) dims[i] = i == axis ? channels : x->dims[i];
  WEIR_TRY(weir_shape_set_dims(ctx, 0, x->rank, dims));
  for (int i = 1; i < 5; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, channels));
  return NULL;
}

// At training the reserve spaces hold the batch's moments; at inference the moments given are
// constants.
static weir_status_t* build_grad(weir_grad_ctx_t* g, const char* op, bool has_third) {
  weir_attrs_t attrs = weir_grad_attrs(g);
  bool is_training = weir_attrs_bool(attrs, "is_training");
  weir_edge_t inputs[6] = {weir_grad_dy(g, 0),
                           weir_grad_input(g, 0),
                           weir_grad_input(g, 1),
                           is_training ? weir_grad_output(g, 3) : weir_grad_input(g, 3),
                           is_training ? weir_grad_output(g, 4) : weir_grad_input(g, 4),
                           has_third ? weir_grad_output(g, 5) : WEIR_NO_EDGE};
  weir_attrs_t copied =
      WEIR_ATTRS(weir_attr_copy("epsilon", weir_attrs_find(attrs, "epsilon")),
                 weir_attr_copy("data_format", weir_attrs_find(attrs, "data_format")),
                 weir_attr_bool("is_training", is_training));
  weir_edge_t first = weir_grad_node_with(
      g, op, (weir_edges_t){.items = inputs, .count = has_third ? 6 : 5}, copied);
  for (int i = 0; i < 3; ++i) WEIR_TRY(weir_grad_set(g, i, weir_build_output(first, i)));
  return NULL;
}

static weir_status_t* batch_norm_grad(weir_grad_ctx_t* g) {
  return build_grad(g, "FusedBatchNormGrad", false);
}
static weir_status_t* batch_norm_v2_grad(weir_grad_ctx_t* g) {
  return build_grad(g, "FusedBatchNormGradV2", false);
}
static weir_status_t* batch_norm_v3_grad(weir_grad_ctx_t* g) {
  return build_grad(g, "FusedBatchNormGradV3", true);
}

// ---- kernel ----
typedef struct state_t {
  float epsilon;
  float factor;  // of the new moments in the running ones
  bool is_nchw;
  bool is_training;
  bool is_relu;          // _FusedBatchNormEx
  weir_cuda_norm_t gpu;  // of a GPU's kernel
} state_t;

static weir_status_t* init_state(const weir_kernel_init_t* init, void* state) {
  weir_attrs_t attrs = init->node->attrs;
  *(state_t*)state = (state_t){.epsilon = weir_attrs_float(attrs, "epsilon"),
                               .factor = weir_attrs_float(attrs, "exponential_avg_factor"),
                               .is_nchw = is_channels_first(attrs),
                               .is_training = weir_attrs_bool(attrs, "is_training")};
  return NULL;
}

static weir_status_t* init_state_ex(const weir_kernel_init_t* init, void* state) {
  weir_attrs_t attrs = init->node->attrs;
  weir_view_t mode = weir_attrs_string(attrs, "activation_mode");
  WEIR_TRY(init_state(init, state));
  ((state_t*)state)->is_relu = weir_view_is(mode, "Relu");
  if (!weir_view_is(mode, "Relu") && !weir_view_is(mode, "Identity"))
    return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported activation mode: %.*s", WEIR_VIEW_ARG(mode));
  if (weir_attrs_int(attrs, "num_side_inputs") > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "FusedBatchNorm accepts at most one side input.");
  return NULL;
}

static weir_status_t* check_inputs(weir_kernel_ctx_t* ctx, const state_t* s, int64_t channels) {
  static const char* const names[] = {"x", "scale", "offset", "mean", "variance"};
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  if (x->rank != 4 && x->rank != 5)
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 4 or 5-dimensional");
  for (int i = 1; i < 5; ++i) {
    const weir_tensor_t* v = weir_kernel_input(ctx, i);
    char text[WEIR_SHAPE_TEXT_SIZE];
    if (v->rank != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 1-dimensional %s", names[i],
                         weir_tensor_shape_text(v, text));
    }
    bool is_used = i < 3 || !s->is_training || s->factor != 1;
    if (is_used && v->count != channels) {
      const char* when = i < 3            ? ""
                         : s->is_training ? "When exponential_avg_factor != 1, "
                                          : "When is_training=false, ";
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "%s%s must have the same number of elements as the channels of x, got %lld and %lld",
          when, names[i], (long long)v->count, (long long)channels);
    }
  }
  return NULL;
}

// Outputs 1 and 2: the running moments, which take in the batch's by the factor; the variance
// without bias.
static void mix_moments(weir_kernel_ctx_t* ctx, const state_t* s, int64_t rows, int64_t channels) {
  float* running[2] = {ctx->outputs[1].tensor->data, ctx->outputs[2].tensor->data};
  const float* batch[2] = {ctx->outputs[3].tensor->data, ctx->outputs[4].tensor->data};
  const float correction[2] = {1, (float)rows / (float)WEIR_MAX(rows - 1, 1)};
  for (int k = 0; k < 2; ++k) {
    const float* old = s->factor != 1 ? weir_kernel_input(ctx, 3 + k)->data : NULL;
    for (int64_t c = 0; c < channels; ++c) {
      float value = batch[k][c] * correction[k];
      running[k][c] = old ? (1 - s->factor) * old[c] + s->factor * value : value;
    }
  }
}

static weir_status_t* normalise(weir_kernel_ctx_t* ctx, const state_t* s,
                                const weir_batch_norm_t* bn, const float* x, float* y) {
  weir_pool_t* pool = weir_kernel_pool(ctx);
  float *mean = ctx->outputs[1].tensor->data, *variance = ctx->outputs[2].tensor->data;
  float *saved_mean = ctx->outputs[3].tensor->data, *saved_variance = ctx->outputs[4].tensor->data;
  if (bn->rows == 0) {
    for (int64_t c = 0; c < bn->channels; ++c)
      mean[c] = variance[c] = NAN, saved_mean[c] = saved_variance[c] = 0;
    return NULL;
  }
  if (s->is_training) {
    WEIR_TRY(weir_batch_norm_moments(pool, bn, x, saved_mean, saved_variance));
    mix_moments(ctx, s, bn->rows, bn->channels);
    return weir_batch_norm_apply(pool, bn, x, saved_mean, saved_variance, y);
  }
  const float *old_mean = weir_kernel_input(ctx, 3)->data,
              *old_variance = weir_kernel_input(ctx, 4)->data;
  for (int64_t c = 0; c < bn->channels; ++c) {
    mean[c] = old_mean[c], variance[c] = old_variance[c];
    saved_mean[c] = saved_variance[c] = 0;
  }
  return weir_batch_norm_apply(pool, bn, x, old_mean, old_variance, y);
}

static weir_status_t* check_side(const weir_tensor_t* side, const weir_tensor_t* in) {
  if (weir_tensor_same_shape(side, in)) return NULL;
  char texts[2][WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "side_input shape must be equal to input shape: %s != %s",
                     weir_tensor_shape_text(side, texts[0]), weir_tensor_shape_text(in, texts[1]));
}

// y += side input, then ReLU, as the node has them.
static weir_status_t* finish_ex(weir_kernel_ctx_t* ctx, const state_t* s, float* y) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  if (ctx->input_count > 5) {
    const weir_tensor_t* side = weir_kernel_input(ctx, 5);
    weir_staged_t staged = {0};
    WEIR_TRY(check_side(side, in));
    WEIR_TRY(weir_stage_input(ctx, side, s->is_nchw, &staged));
    const float* added = staged.data;
    for (int64_t i = 0; i < in->count; ++i) y[i] += added[i];
    weir_staged_release(&staged);
  }
  for (int64_t i = 0; s->is_relu && i < in->count; ++i) y[i] = y[i] <= 0 ? 0 : y[i];
  return NULL;
}

static weir_status_t* batch_norm_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* s = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_staged_t x = {0}, y = {0};
  weir_tensor_t *out, *vector;
  int64_t channels = in->rank < 2 ? 0 : in->dims[s->is_nchw ? 1 : in->rank - 1];
  WEIR_TRY(check_inputs(ctx, s, channels));
  for (int i = 1; i < 5; ++i) WEIR_TRY(weir_kernel_output(ctx, i, 1, &channels, &vector));
  if (ctx->output_count > 5) {  // V3's third reserve space is for GPUs
    WEIR_TRY(weir_kernel_output(ctx, 5, 0, NULL, &vector));
    WEIR_TENSOR_DATA(vector, float)[0] = 0;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  weir_batch_norm_t bn = {.rows = channels > 0 ? in->count / channels : 0,
                          .channels = channels,
                          .epsilon = s->epsilon,
                          .scale = weir_kernel_input(ctx, 1)->data,
                          .offset = weir_kernel_input(ctx, 2)->data};
  weir_status_t* status = weir_stage_input(ctx, in, s->is_nchw, &x);
  if (!status) status = weir_stage_output(ctx, out, s->is_nchw, &y);
  if (!status) status = normalise(ctx, s, &bn, x.data, y.data);
  if (!status) status = finish_ex(ctx, s, y.data);
  if (!status) status = weir_stage_finish(ctx, out, s->is_nchw, &y);
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

// ---- GPU ----

static weir_status_t* gpu_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(init_state(init, state));
  return weir_cuda_norm_find(init->device, init->node->input_types[0], &((state_t*)state)->gpu);
}

static weir_status_t* gpu_init_ex(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(init_state_ex(init, state));
  return weir_cuda_norm_find(init->device, init->node->input_types[0], &((state_t*)state)->gpu);
}

// Outputs 1 to 5. Without elements the moments are what they are on the CPU.
static weir_status_t* gpu_vectors(weir_kernel_ctx_t* ctx, int64_t channels, bool is_empty) {
  size_t size = (size_t)channels * sizeof(float);
  weir_tensor_t* vector;
  for (int i = 1; i < 5; ++i) {
    WEIR_TRY(weir_kernel_output(ctx, i, 1, &channels, &vector));
    int nan_or_0 = i < 3 ? 0xff : 0;
    if (is_empty && size > 0) WEIR_TRY(weir_cuda_set(ctx->device, vector->data, nan_or_0, size));
  }
  if (ctx->output_count <= 5) return NULL;
  WEIR_TRY(weir_kernel_output(ctx, 5, 0, NULL, &vector));
  return weir_cuda_zero(ctx->device, vector->data, sizeof(float));
}

static weir_status_t* batch_norm_gpu(weir_kernel_ctx_t* ctx) {
  const state_t* s = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* side = ctx->input_count > 5 ? weir_kernel_input(ctx, 5) : NULL;
  weir_tensor_t* out;
  int64_t channels = in->rank < 2 ? 0 : in->dims[s->is_nchw ? 1 : in->rank - 1];
  WEIR_TRY(check_inputs(ctx, s, channels));
  if (side) WEIR_TRY(check_side(side, in));
  WEIR_TRY(gpu_vectors(ctx, channels, in->count == 0));
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  if (in->count == 0 || channels == 0) return NULL;
  weir_norm_t norm = {.outer = s->is_nchw ? in->dims[0] : in->count / channels,
                      .channels = channels,
                      .inner = s->is_nchw ? in->count / in->dims[0] / channels : 1,
                      .epsilon = s->epsilon,
                      .factor = s->factor,
                      .is_training = s->is_training,
                      .is_relu = s->is_relu};
  weir_norm_moments_t moments = {.old_mean = weir_kernel_input(ctx, 3)->data,
                                 .old_variance = weir_kernel_input(ctx, 4)->data,
                                 .scale = weir_kernel_input(ctx, 1)->data,
                                 .offset = weir_kernel_input(ctx, 2)->data,
                                 .mean = ctx->outputs[1].tensor->data,
                                 .variance = ctx->outputs[2].tensor->data,
                                 .saved_mean = ctx->outputs[3].tensor->data,
                                 .saved_variance = ctx->outputs[4].tensor->data};
  weir_norm_tensors_t tensors = {
      .x = in->data, .other = side ? side->data : NULL, .out = out->data};
  return weir_cuda_norm(ctx, &s->gpu, &norm, &tensors, &moments);
}

#define KERNELS(TYPES, cpu_init_fn, gpu_init_fn, ...)                                 \
  (const weir_kernel_def_t[]) {                                                       \
    {WEIR_DEVICE_CPU, .types = TYPES, .compute = batch_norm_cpu, .init = cpu_init_fn, \
     .state_size = sizeof(state_t)},                                                  \
        {WEIR_DEVICE_GPU,                                                             \
         .types = TYPES,                                                              \
         .compute = batch_norm_gpu,                                                   \
         .init = gpu_init_fn,                                                         \
         .state_size = sizeof(state_t),                                               \
         __VA_ARGS__},                                                                \
    {                                                                                 \
      0                                                                               \
    }                                                                                 \
  }
#define KERNEL(TYPES) KERNELS(TYPES, init_state, gpu_init, .tails = NULL)

const weir_op_module_t weir_ops_nn_batch_norm = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FusedBatchNorm",
         .summary = "Normalises channels by the moments of the batch, or by given ones",
         .attrs = "T: {float}; " NORM_ATTRS "data_format: {'NHWC','NCHW'} = 'NHWC'; " TAIL_ATTRS,
         .inputs = "x: T; scale: T; offset: T; mean: T; variance: T",
         .outputs =
             "y: T; batch_mean: T; batch_variance: T; reserve_space_1: T; reserve_space_2: T",
         .infer_shape = batch_norm_shape,
         .build_grad = batch_norm_grad,
         .kernels = KERNEL(NULL)},
        {.name = "FusedBatchNormV2",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Normalises channels by the moments of the batch, or by given ones; moments "
                    "are floats",
         .attrs = "T: {half, bfloat16, float}; U: {float}; " NORM_ATTRS
                  "data_format: {'NHWC','NCHW'} = 'NHWC'; " TAIL_ATTRS,
         .inputs = "x: T; scale: U; offset: U; mean: U; variance: U",
         .outputs =
             "y: T; batch_mean: U; batch_variance: U; reserve_space_1: U; reserve_space_2: U",
         .infer_shape = batch_norm_shape,
         .build_grad = batch_norm_v2_grad,
         .kernels = KERNEL(NULL)},
        {.name = "FusedBatchNormV3",
         .mixed = WEIR_MIXED_INFER,
         .extended = {"_FusedBatchNormEx", WEIR_EXTENDED_SIDE},
         .summary = "Normalises channels by the moments of the batch, or by given ones; moments "
                    "are floats",
         .attrs = "T: {half, bfloat16, float}; U: {bfloat16, float}; " NORM_ATTRS
                  "data_format: {'NHWC','NCHW','NDHWC','NCDHW'} = 'NHWC'; " TAIL_ATTRS,
         .inputs = "x: T; scale: U; offset: U; mean: U; variance: U",
         .outputs = "y: T; batch_mean: U; batch_variance: U; reserve_space_1: U; reserve_space_2: "
                    "U; reserve_space_3: U",
         .infer_shape = batch_norm_shape,
         .build_grad = batch_norm_v3_grad,
         .kernels = KERNEL("U: float")},
        {.name = "_FusedBatchNormEx",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Batch normalisation, an addend and an activation",
         .attrs = "T: {half, float, bfloat16}; U: {float}; " NORM_ATTRS
                  "num_side_inputs: int >= 0 = 0; activation_mode: string = 'Identity'; "
                  "data_format: {'NHWC','NCHW'} = 'NHWC'; " TAIL_ATTRS,
         .inputs = "x: T; scale: U; offset: U; mean: U; variance: U; side_input: num_side_inputs*T",
         .outputs = "y: T; batch_mean: U; batch_variance: U; reserve_space_1: U; reserve_space_2: "
                    "U; reserve_space_3: U",
         .infer_shape = batch_norm_shape,
         .kernels = KERNELS(NULL, init_state_ex, gpu_init_ex, .tails = "Add, Relu")},
        {0}}};
