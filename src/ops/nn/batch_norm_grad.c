// batch_norm_grad.c — FusedBatchNormGrad, FusedBatchNormGradV2, FusedBatchNormGradV3 and their own
// gradient; _FusedBatchNormGradEx, which is the last with the gradient of a ReLU before it.
#include "kernel/move/staging.h"
#include "kernel/nn/batch_norm.h"
#include "kernel/nn/cuda_batch_norm.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

#define TAIL_ATTRS "is_training: bool = true"

static bool is_channels_first(weir_attrs_t attrs) {
  return weir_view_starts_with(weir_attrs_string(attrs, "data_format"), "NC");
}

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *x, *dy = weir_shape_input(ctx, 0), *vector;
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  WEIR_TRY(weir_shape_join(ctx, dy, weir_shape_input(ctx, 1), &x));
  if (x->rank != 5) WEIR_TRY(weir_shape_with_rank(ctx, x, 4, &x));
  int64_t channels = weir_shape_dim(x, is_channels_first(attrs) ? 1 : x->rank - 1);
  for (int i = 2; i < 5; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &vector));
    WEIR_TRY(weir_dim_join(ctx, channels, weir_shape_dim(vector, 0), &channels));
  }
  WEIR_TRY(weir_shape_set(ctx, 0, x));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, channels));
  WEIR_TRY(weir_shape_set_vector(ctx, 2, channels));
  WEIR_TRY(weir_shape_set_vector(ctx, 3, 0));
  WEIR_TRY(weir_shape_set_vector(ctx, 4, 0));
  return ctx->node->output_count > 5 ? weir_shape_set(ctx, 5, x) : NULL;
}

// ---- second-order gradient ----
// Everything in float, channel vectors reshaped so that they broadcast against x. With r =
// 1/sqrt(variance + epsilon), M(a) the mean over all but the channels, u = x - mean:
//   dx = scale r (dy - M(dy) - u r^2 M(dy u)),  dscale = sum(dy u r),  doffset = sum(dy).
// In training the moments are computed anew from x, so that derivatives of the third order see them
// as functions of x.
typedef struct second_t {
  weir_grad_ctx_t* g;
  weir_edge_t axes;      // all but the channels
  weir_edge_t shape;     // [1, …, C, …]: -1 at the channels
  weir_edge_t dy, u, r;  // r and scale are reshaped
  weir_edge_t scale;
  bool is_training;
} second_t;

static weir_edge_t add(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, "AddV2", WEIR_EDGES(a, b));
}
static weir_edge_t sub(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, "Sub", WEIR_EDGES(a, b));
}
static weir_edge_t spread(const second_t* s, weir_edge_t vector) {
  return weir_grad_node(s->g, "Reshape", WEIR_EDGES(vector, s->shape));
}
static weir_edge_t mean(const second_t* s, weir_edge_t a) {
  return weir_grad_node_with(s->g, "Mean", WEIR_EDGES(a, s->axes),
                             WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
}
static weir_edge_t sum(const second_t* s, weir_edge_t a) {
  return weir_grad_node(s->g, "Sum", WEIR_EDGES(a, s->axes));
}
static weir_edge_t to_type(weir_grad_ctx_t* g, weir_edge_t a, weir_dtype_t dtype) {
  if (weir_grad_dtype(g, a) == dtype) return a;
  return weir_grad_node_with(g, "Cast", WEIR_EDGES(a), WEIR_ATTRS(weir_attr_type("DstT", dtype)));
}

// r (a - M(a) - u r^2 M(a u)): the forward map of dy to dx for a scale of 1, which is its own
// transpose.
static weir_edge_t project(const second_t* s, weir_edge_t a) {
  weir_grad_ctx_t* g = s->g;
  if (!s->is_training) return weir_grad_mul(g, a, s->r);
  weir_edge_t r2 = weir_grad_node(g, "Square", WEIR_EDGES(s->r));
  weir_edge_t along =
      weir_grad_mul(g, s->u, weir_grad_mul(g, r2, mean(s, weir_grad_mul(g, a, s->u))));
  return weir_grad_mul(g, s->r, sub(g, sub(g, a, mean(s, a)), along));
}

// What flows from |grad| of dx into x through u and r: the terms of the product rule over r^3
// scale.
static weir_edge_t curvature(const second_t* s, weir_edge_t grad) {
  weir_grad_ctx_t* g = s->g;
  weir_edge_t r2 = weir_grad_node(g, "Square", WEIR_EDGES(s->r)), r3 = weir_grad_mul(g, r2, s->r);
  weir_edge_t mean_dy = mean(s, s->dy), mean_grad = mean(s, grad);
  weir_edge_t dy_u = mean(s, weir_grad_mul(g, s->dy, s->u)),
              grad_u = mean(s, weir_grad_mul(g, grad, s->u));
  weir_edge_t three = weir_grad_mul(g, weir_grad_scalar(g, s->u, 3),
                                    weir_grad_mul(g, r2, weir_grad_mul(g, dy_u, grad_u)));
  weir_edge_t all = sub(g, add(g, weir_grad_mul(g, mean_dy, mean_grad), three),
                        mean(s, weir_grad_mul(g, s->dy, grad)));
  weir_edge_t total = weir_grad_mul(g, s->u, all);
  total = add(g, total, weir_grad_mul(g, grad_u, sub(g, mean_dy, s->dy)));
  total = add(g, total, weir_grad_mul(g, dy_u, sub(g, mean_grad, grad)));
  return weir_grad_mul(g, weir_grad_mul(g, s->scale, r3), total);
}

static second_t second_make(weir_grad_ctx_t* g, int rank) {
  weir_attrs_t attrs = weir_grad_attrs(g);
  int channel = is_channels_first(attrs) ? 1 : rank - 1, count = 0;
  int32_t axes[5], shape[5];
  for (int i = 0; i < rank; ++i) {
    shape[i] = i == channel ? -1 : 1;
    if (i != channel) axes[count++] = i;
  }
  second_t s = {.g = g,
                .axes = weir_build_int32s(g->builder, axes, count),
                .shape = weir_build_int32s(g->builder, shape, rank),
                .dy = to_type(g, weir_grad_input(g, 0), WEIR_DTYPE_FLOAT),
                .is_training = weir_attrs_bool(attrs, "is_training")};
  weir_edge_t x = to_type(g, weir_grad_input(g, 1), WEIR_DTYPE_FLOAT);
  weir_edge_t epsilon = weir_grad_scalar(g, x, (double)weir_attrs_float(attrs, "epsilon"));
  s.u = sub(g, x, s.is_training ? mean(&s, x) : spread(&s, weir_grad_input(g, 3)));
  weir_edge_t variance = s.is_training ? mean(&s, weir_grad_node(g, "Square", WEIR_EDGES(s.u)))
                                       : spread(&s, weir_grad_input(g, 4));
  s.r = weir_grad_node(g, "Rsqrt", WEIR_EDGES(add(g, variance, epsilon)));
  s.scale = spread(&s, weir_grad_input(g, 2));
  return s;
}

static weir_status_t* grad_grad(weir_grad_ctx_t* g) {
  int rank = weir_grad_shape(g, weir_grad_input(g, 1))->rank;
  weir_dtype_t dtype = weir_grad_dtype(g, weir_grad_input(g, 1));
  second_t s = second_make(
      g, rank == 5 || weir_attrs_string(weir_grad_attrs(g), "data_format").size == 5 ? 5 : 4);
  weir_edge_t grad = to_type(g, weir_grad_dy(g, 0), WEIR_DTYPE_FLOAT);
  weir_edge_t by_dy = weir_grad_mul(g, s.scale, project(&s, grad)), by_x = WEIR_NO_EDGE;
  if (s.is_training) by_x = curvature(&s, grad);
  if (weir_grad_has_dy(g, 1)) {  // dscale = sum(dy u r)
    weir_edge_t dscale = spread(&s, weir_grad_dy(g, 1));
    by_dy = add(g, by_dy, weir_grad_mul(g, dscale, weir_grad_mul(g, s.u, s.r)));
    weir_edge_t more = weir_grad_mul(g, dscale, project(&s, s.dy));
    by_x = s.is_training ? add(g, by_x, more) : more;
  }
  if (weir_grad_has_dy(g, 2)) by_dy = add(g, by_dy, spread(&s, weir_grad_dy(g, 2)));
  if (weir_edge_is_none(by_x)) by_x = weir_grad_node(g, "ZerosLike", WEIR_EDGES(s.u));
  WEIR_TRY(weir_grad_set(g, 0, to_type(g, by_dy, dtype)));
  WEIR_TRY(weir_grad_set(g, 1, to_type(g, by_x, dtype)));
  return weir_grad_set(g, 2, sum(&s, weir_grad_mul(g, grad, project(&s, s.dy))));
}

// ---- kernel ----
static weir_status_t* check_inputs(weir_kernel_ctx_t* ctx, int64_t channels) {
  static const char* const names[] = {"y_backprop", "x", "scale", "reserve_space_1",
                                      "reserve_space_2"};
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *x = weir_kernel_input(ctx, 1);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < 2; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (t->rank == 4 || t->rank == 5) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 4 or 5-dimensional%s",
                       weir_tensor_shape_text(t, a));
  }
  if (!weir_tensor_same_shape(dy, x)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "x and y_backprop must have same shape, but x has shape %s and y_backprop has shape %s",
        weir_tensor_shape_text(x, a), weir_tensor_shape_text(dy, b));
  }
  for (int i = 2; i < 5; ++i) {
    const weir_tensor_t* v = weir_kernel_input(ctx, i);
    if (v->rank != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 1-dimensional %s", names[i],
                         weir_tensor_shape_text(v, a));
    }
    if (v->count != channels) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "%s must have the same number of elements as the channels of x, got %lld and %lld",
          names[i], (long long)v->count, (long long)channels);
    }
  }
  return NULL;
}

static weir_status_t* make_outputs(weir_kernel_ctx_t* ctx, int64_t* out_channels,
                                   weir_tensor_t** out, weir_tensor_t** dscale,
                                   weir_tensor_t** doffset) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 1);
  int axis = is_channels_first(weir_kernel_attrs(ctx)) ? 1 : in->rank - 1;
  int64_t channels = in->rank < 2 ? 0 : in->dims[axis];
  weir_tensor_t* none;
  WEIR_TRY(check_inputs(ctx, channels));
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, out));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &channels, dscale));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &channels, doffset));
  for (int i = 3; i < 5; ++i) WEIR_TRY(weir_kernel_output(ctx, i, 1, (const int64_t[]){0}, &none));
  *out_channels = channels;
  return NULL;
}

static weir_status_t* grad_cpu(weir_kernel_ctx_t* ctx) {
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *in = weir_kernel_input(ctx, 1);
  weir_staged_t grad = {0}, x = {0}, dx = {0};
  weir_tensor_t *out, *dscale, *doffset;
  bool is_nchw = is_channels_first(attrs);
  int64_t channels;
  WEIR_TRY(make_outputs(ctx, &channels, &out, &dscale, &doffset));
  if (in->count == 0) {
    memset(dscale->data, 0, (size_t)channels * sizeof(float));
    memset(doffset->data, 0, (size_t)channels * sizeof(float));
    return NULL;
  }
  weir_status_t* status = weir_stage_input(ctx, dy, is_nchw, &grad);
  if (!status) status = weir_stage_input(ctx, in, is_nchw, &x);
  if (!status) status = weir_stage_output(ctx, out, is_nchw, &dx);
  if (status) goto done;
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): without channels there are no elements
  weir_batch_norm_t bn = {.rows = in->count / channels,
                          .channels = channels,
                          .epsilon = weir_attrs_float(attrs, "epsilon"),
                          .scale = weir_kernel_input(ctx, 2)->data};
  weir_batch_norm_grad_t g = {.dy = grad.data,
                              .x = x.data,
                              .mean = weir_kernel_input(ctx, 3)->data,
                              .variance = weir_kernel_input(ctx, 4)->data,
                              .is_training = weir_attrs_bool(attrs, "is_training"),
                              .dx = dx.data,
                              .dscale = dscale->data,
                              .doffset = doffset->data};
  status = weir_batch_norm_grad(weir_kernel_pool(ctx), &bn, &g);
  if (!status) status = weir_stage_finish(ctx, out, is_nchw, &dx);
done:
  weir_staged_release(&grad);
  weir_staged_release(&x);
  weir_staged_release(&dx);
  return status;
}

// ---- GPU ----

typedef struct gpu_state_t {
  bool is_relu;  // _FusedBatchNormGradEx
  weir_cuda_norm_t f;
} gpu_state_t;

static weir_status_t* gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_norm_grad_find(init->device, init->node->input_types[0], WEIR_NORM_NO_MASK,
                                  &((gpu_state_t*)state)->f);
}

static weir_status_t* gpu_init_ex(const weir_kernel_init_t* init, void* state) {
  gpu_state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  weir_view_t mode = weir_attrs_string(attrs, "activation_mode");
  int64_t sides = weir_attrs_int(attrs, "num_side_inputs");
  s->is_relu = weir_view_is(mode, "Relu");
  if (!s->is_relu && !weir_view_is(mode, "Identity"))
    return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported activation mode: %.*s", WEIR_VIEW_ARG(mode));
  if (sides > (s->is_relu ? 1 : 0))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "FusedBatchNormGrad accepts at most one side input, before a Relu.");
  return weir_cuda_norm_grad_find(init->device, init->node->input_types[0],
                                  !s->is_relu  ? WEIR_NORM_NO_MASK
                                  : sides == 0 ? WEIR_NORM_MASK_BY_X
                                               : WEIR_NORM_MASK_BY_Y,
                                  &s->f);
}

// Of _FusedBatchNormGradEx: 'offset' and 'y'. The latter is what _FusedBatchNormEx made of x, and
// so is read only where a side input is in it, too.
static weir_status_t* take_more(weir_kernel_ctx_t* ctx, int64_t channels,
                                weir_norm_tensors_t* tensors, weir_norm_grads_t* grads) {
  const weir_tensor_t *x = weir_kernel_input(ctx, 1), *offset = weir_kernel_input(ctx, 6);
  const weir_tensor_t* y = weir_kernel_input(ctx, 7);
  weir_tensor_t* masked;
  char texts[2][WEIR_SHAPE_TEXT_SIZE];
  if (offset->rank != 1 || offset->count != channels)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "offset must be a vector of the %lld channels of x, not %s",
                       (long long)channels, weir_tensor_shape_text(offset, texts[0]));
  if (!weir_tensor_same_shape(x, y))
    return WEIR_STATUS(INVALID_ARGUMENT, "y must have the shape of x: %s != %s",
                       weir_tensor_shape_text(y, texts[0]), weir_tensor_shape_text(x, texts[1]));
  grads->offset = offset->data;
  if (ctx->output_count <= 5) return NULL;
  WEIR_TRY(weir_kernel_output(ctx, 5, x->rank, x->dims, &masked));
  tensors->y = y->data;
  tensors->masked = masked->data;
  return NULL;
}

static weir_status_t* grad_gpu(weir_kernel_ctx_t* ctx) {
  const gpu_state_t* s = ctx->state;
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *in = weir_kernel_input(ctx, 1);
  weir_tensor_t *out, *dscale, *doffset;
  bool is_nchw = is_channels_first(attrs);
  int64_t channels;
  WEIR_TRY(make_outputs(ctx, &channels, &out, &dscale, &doffset));
  weir_norm_tensors_t tensors = {.x = in->data, .other = dy->data, .out = out->data};
  weir_norm_grads_t grads = {.mean = weir_kernel_input(ctx, 3)->data,
                             .variance = weir_kernel_input(ctx, 4)->data,
                             .scale = weir_kernel_input(ctx, 2)->data,
                             .dscale = dscale->data,
                             .doffset = doffset->data};
  if (s->is_relu) WEIR_TRY(take_more(ctx, channels, &tensors, &grads));
  size_t size = (size_t)channels * sizeof(float);
  if (channels == 0) return NULL;
  if (in->count == 0) {
    WEIR_TRY(weir_cuda_zero(ctx->device, dscale->data, size));
    return weir_cuda_zero(ctx->device, doffset->data, size);
  }
  weir_norm_t norm = {.outer = is_nchw ? in->dims[0] : in->count / channels,
                      .channels = channels,
                      .inner = is_nchw ? in->count / in->dims[0] / channels : 1,
                      .epsilon = weir_attrs_float(attrs, "epsilon"),
                      .is_training = weir_attrs_bool(attrs, "is_training")};
  return weir_cuda_norm_grad(ctx, &s->f, &norm, &tensors, &grads);
}

#define KERNELS                                                  \
  (const weir_kernel_def_t[]) {                                  \
    {WEIR_DEVICE_CPU, .compute = grad_cpu},                      \
        {WEIR_DEVICE_GPU, .compute = grad_gpu, .init = gpu_init, \
         .state_size = sizeof(gpu_state_t)},                     \
    {                                                            \
      0                                                          \
    }                                                            \
  }

const weir_op_module_t weir_ops_nn_batch_norm_grad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FusedBatchNormGrad",
         .summary = "Gradient of FusedBatchNorm",
         .attrs = "T: {float}; epsilon: float = 0.0001; data_format: {'NHWC','NCHW'} = "
                  "'NHWC'; " TAIL_ATTRS,
         .inputs = "y_backprop: T; x: T; scale: T; reserve_space_1: T; reserve_space_2: T",
         .outputs = "x_backprop: T; scale_backprop: T; offset_backprop: T; reserve_space_3: T; "
                    "reserve_space_4: T",
         .infer_shape = grad_shape,
         .build_grad = grad_grad,
         .kernels = KERNELS},
        {.name = "FusedBatchNormGradV2",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of FusedBatchNormV2",
         .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; "
                  "data_format: {'NHWC','NCHW'} = 'NHWC'; " TAIL_ATTRS,
         .inputs = "y_backprop: T; x: T; scale: float; reserve_space_1: U; reserve_space_2: U",
         .outputs = "x_backprop: T; scale_backprop: U; offset_backprop: U; reserve_space_3: U; "
                    "reserve_space_4: U",
         .infer_shape = grad_shape,
         .build_grad = grad_grad,
         .kernels = KERNELS},
        {.name = "FusedBatchNormGradV3",
         .mixed = WEIR_MIXED_INFER,
         .extended = {"_FusedBatchNormGradEx", WEIR_EXTENDED_GRAD, .of = "_FusedBatchNormEx"},
         .summary = "Gradient of FusedBatchNormV3",
         .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; "
                  "data_format: {'NHWC','NCHW','NDHWC','NCDHW'} = 'NHWC'; " TAIL_ATTRS,
         .inputs = "y_backprop: T; x: T; scale: float; reserve_space_1: U; reserve_space_2: U; "
                   "reserve_space_3: U",
         .outputs = "x_backprop: T; scale_backprop: U; offset_backprop: U; reserve_space_4: U; "
                    "reserve_space_5: U",
         .infer_shape = grad_shape,
         .build_grad = grad_grad,
         .kernels = KERNELS},
        {.name = "_FusedBatchNormGradEx",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of _FusedBatchNormEx",
         .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; "
                  "num_side_inputs: int >= 0 = 0; activation_mode: string = 'Identity'; "
                  "data_format: {'NHWC','NCHW','NDHWC','NCDHW'} = 'NHWC'; " TAIL_ATTRS,
         .inputs = "y_backprop: T; x: T; scale: float; reserve_space_1: U; reserve_space_2: U; "
                   "reserve_space_3: U; offset: float; y: T",
         .outputs = "x_backprop: T; scale_backprop: U; offset_backprop: U; reserve_space_4: U; "
                    "reserve_space_5: U; side_input_backprop: num_side_inputs * T",
         .infer_shape = grad_shape,
         .kernels =
             (const weir_kernel_def_t[]){{WEIR_DEVICE_GPU, .compute = grad_gpu, .init = gpu_init_ex,
                                          .tails = "Relu", .state_size = sizeof(gpu_state_t)},
                                         {0}}},
        {0}}};
