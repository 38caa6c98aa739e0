// batch_norm_global.c — BatchNormWithGlobalNormalization and its gradient: normalisation by moments
// that are inputs.
#include "kernel/move/staging.h"
#include "kernel/nn/fixed_norm.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

// ---- shapes ----

// Inputs [first, end) are vectors of as many elements as input 0 has channels.
static weir_status_t* join_channels(weir_shape_ctx_t* ctx, const weir_shape_t* in, int end,
                                    int64_t* out_channels) {
  *out_channels = weir_shape_dim(in, 3);
  for (int i = 1; i < end; ++i) {
    const weir_shape_t* vector;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &vector));
    WEIR_TRY(weir_dim_join(ctx, *out_channels, weir_shape_dim(vector, 0), out_channels));
  }
  return NULL;
}

static weir_status_t* set_image(weir_shape_ctx_t* ctx, const weir_shape_t* in, int64_t channels) {
  const int64_t dims[] = {weir_shape_dim(in, 0), weir_shape_dim(in, 1), weir_shape_dim(in, 2),
                          channels};
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

static weir_status_t* norm_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  int64_t channels;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  WEIR_TRY(join_channels(ctx, in, 5, &channels));
  return set_image(ctx, in, channels);
}

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *in, *dy;
  int64_t channels;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 4), 4, &dy));
  WEIR_TRY(weir_shape_join(ctx, in, dy, &in));
  WEIR_TRY(join_channels(ctx, in, 4, &channels));
  for (int i = 1; i < 5; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, channels));
  return set_image(ctx, in, channels);
}

// ---- gradient ----

static weir_status_t* norm_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_input(g, 1), weir_grad_input(g, 2),
                 weir_grad_input(g, 4), weir_grad_dy(g, 0));
  weir_edge_t first =
      weir_grad_node_like(g, "BatchNormWithGlobalNormalizationGrad", inputs,
                          WEIR_NAMES("variance_epsilon", "scale_after_normalization"));
  for (int i = 0; i < 4; ++i) WEIR_TRY(weir_grad_set(g, i, weir_build_output(first, i)));
  return weir_grad_set(g, 4, weir_build_output(first, 4));
}

// ---- kernels ----

static weir_status_t* check_rank(const weir_tensor_t* t, int rank, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank == rank) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be %d-dimensional%s", name, rank,
                     weir_tensor_shape_text(t, text));
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, const char* const names[4]) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  WEIR_TRY(check_rank(in, 4, "input"));
  for (int i = 1; i < 5; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (!names[i - 1]) continue;
    WEIR_TRY(check_rank(t, 1, names[i - 1]));
    if (t->count == in->dims[3]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must have %lld elements, one a channel, not %lld",
                       names[i - 1], (long long)in->dims[3], (long long)t->count);
  }
  return NULL;
}

static weir_fixed_norm_t norm_of(const weir_kernel_ctx_t* ctx, const weir_staged_t staged[5],
                                 int scale) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  bool has_scale = weir_attrs_bool(attrs, "scale_after_normalization");
  return (weir_fixed_norm_t){.rows = in->dims[0] * in->dims[1] * in->dims[2],
                             .channels = in->dims[3],
                             .epsilon = weir_attrs_float(attrs, "variance_epsilon"),
                             .mean = staged[1].data,
                             .variance = staged[2].data,
                             .scale = has_scale ? staged[scale].data : NULL};
}

static weir_status_t* stage_inputs(weir_kernel_ctx_t* ctx, weir_staged_t staged[5]) {
  weir_status_t* status = NULL;
  for (int i = 0; !status && i < 5; ++i)
    status = weir_stage_input(ctx, weir_kernel_input(ctx, i), false, &staged[i]);
  return status;
}

static weir_status_t* norm_cpu(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"mean", "var", "beta", "gamma"};
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_staged_t staged[5] = {{0}}, y = {0};
  weir_tensor_t* out;
  WEIR_TRY(check_inputs(ctx, names));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  weir_status_t* status = stage_inputs(ctx, staged);
  if (!status) status = weir_stage_output(ctx, out, false, &y);
  if (!status) {
    weir_fixed_norm_t n = norm_of(ctx, staged, 4);
    status = weir_fixed_norm(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)), &n,
                             staged[0].data, staged[3].data, y.data);
  }
  if (!status) status = weir_stage_finish(ctx, out, false, &y);
  for (int i = 0; i < 5; ++i) weir_staged_release(&staged[i]);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* make_outputs(weir_kernel_ctx_t* ctx, weir_tensor_t* outs[5],
                                   weir_staged_t staged[5]) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_status_t* status = NULL;
  for (int i = 0; !status && i < 5; ++i) {
    status = weir_kernel_output(ctx, i, i == 0 ? 4 : 1, i == 0 ? in->dims : in->dims + 3, &outs[i]);
    if (!status) status = weir_stage_output(ctx, outs[i], false, &staged[i]);
  }
  return status;
}

static weir_status_t* check_dy(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *dy = weir_kernel_input(ctx, 4);
  WEIR_TRY(check_rank(dy, 4, "out_backprop"));
  if (memcmp(in->dims, dy->dims, 4 * sizeof(*in->dims)) == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "out_backprop must have the shape of the input");
}

static weir_status_t* grad_cpu(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"mean", "var", "gamma", NULL};
  weir_staged_t staged[5] = {{0}}, y[5] = {{0}};
  weir_tensor_t* outs[5];
  WEIR_TRY(check_inputs(ctx, names));
  WEIR_TRY(check_dy(ctx));
  const weir_dtype_t dtype = weir_compute_type(weir_tensor_type(weir_kernel_input(ctx, 0)));
  weir_status_t* status = stage_inputs(ctx, staged);
  if (!status) status = make_outputs(ctx, outs, y);
  if (!status) {
    weir_fixed_norm_t n = norm_of(ctx, staged, 3);
    weir_fixed_norm_grad_t grad = {.x = staged[0].data,
                                   .dy = staged[4].data,
                                   .dx = y[0].data,
                                   .dmean = y[1].data,
                                   .dvariance = y[2].data,
                                   .doffset = y[3].data,
                                   .dscale = y[4].data};
    status = weir_fixed_norm_grad(weir_kernel_pool(ctx), dtype, &n, &grad);
  }
  for (int i = 0; !status && i < 5; ++i) status = weir_stage_finish(ctx, outs[i], false, &y[i]);
  for (int i = 0; i < 5; ++i) {
    weir_staged_release(&staged[i]);
    weir_staged_release(&y[i]);
  }
  return status;
}

#define NORM_ATTRS "T: numbertype; variance_epsilon: float; scale_after_normalization: bool"

const weir_op_module_t weir_ops_nn_batch_norm_global = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "BatchNormWithGlobalNormalization",
         .summary = "Normalises channels by given moments",
         .attrs = NORM_ATTRS,
         .inputs = "t: T; m: T; v: T; beta: T; gamma: T",
         .outputs = "result: T",
         .infer_shape = norm_shape,
         .build_grad = norm_grad,
         .kernels = WEIR_CPU_KERNEL(.types = "T: half, float, double", .compute = norm_cpu)},
        {.name = "BatchNormWithGlobalNormalizationGrad",
         .summary = "Gradient of BatchNormWithGlobalNormalization",
         .attrs = NORM_ATTRS,
         .inputs = "t: T; m: T; v: T; gamma: T; backprop: T",
         .outputs = "dx: T; dm: T; dv: T; db: T; dg: T",
         .infer_shape = grad_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: half, float, double", .compute = grad_cpu)},
        {0}}};
