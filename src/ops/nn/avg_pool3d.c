// avg_pool3d.c — AvgPool3D and AvgPool3DGrad.
#include "kernel/move/staging.h"
#include "kernel/pool/pool3d_op.h"
#include "op/grad_ctx.h"

#define POOL_ATTRS                                                              \
  "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME','VALID'}; " \
  "data_format: {'NDHWC','NCDHW'} = 'NDHWC'; T: {half, bfloat16, float, double}"

// ---- shapes ----

static weir_status_t* pool_shape(weir_shape_ctx_t* ctx) {
  int64_t dims[5];
  WEIR_TRY(weir_pool3d_shape(ctx, false, dims));
  return weir_shape_set_dims(ctx, 0, 5, dims);
}

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 5, &shape));
  return weir_shape_set(ctx, 0, shape);
}

// ---- gradients ----

static weir_edge_t pool_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  return weir_grad_node_like(g, op, inputs,
                             WEIR_NAMES("ksize", "strides", "padding", "data_format"));
}

static weir_status_t* pool_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  return weir_grad_set(g, 0, pool_node(g, "AvgPool3DGrad", WEIR_EDGES(shape, weir_grad_dy(g, 0))));
}

static weir_status_t* grad_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 1, pool_node(g, "AvgPool3D", WEIR_EDGES(weir_grad_dy(g, 0))));
}

// ---- kernels ----

static weir_status_t* pool_init(const weir_kernel_init_t* init, void* state) {
  return weir_pool3d_read(init->node->attrs, "Pooling", state);
}

// Runs |fn| from |in| into |out|, both in the type and the order computed in.
static weir_status_t* run(weir_kernel_ctx_t* ctx, const weir_pool3d_t* p, const weir_tensor_t* in,
                          weir_tensor_t* out,
                          void (*fn)(weir_pool_t*, const weir_pool3d_t*, const float*, float*)) {
  const bool is_nchw = ((const weir_pool3d_window_t*)ctx->state)->window.is_nchw;
  weir_staged_t x = {0}, y = {0};
  weir_status_t* status = weir_stage_input(ctx, in, is_nchw, &x);
  if (!status) status = weir_stage_output(ctx, out, is_nchw, &y);
  if (!status) {
    fn(weir_kernel_pool(ctx), p, x.data, y.data);
    status = weir_stage_finish(ctx, out, is_nchw, &y);
  }
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* avg_pool3d_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out;
  weir_pool3d_t p;
  int64_t dims[5];
  if (in->rank != 5) return WEIR_STATUS(INVALID_ARGUMENT, "tensor_in must be 5-dimensional");
  WEIR_TRY(weir_pool3d_sizes(ctx->state, in->dims, &p, dims));
  weir_pool3d_skip(ctx->state, &p);
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, dims, &out));
  return run(ctx, &p, in, out, weir_avg_pool3d);
}

// TensorFlow takes the number of windows from the gradient, not from the sizes: a gradient of fewer
// or more windows is none of an error, as long as they begin within the volume.
static weir_status_t* take_windows(const weir_pool3d_window_t* w, const weir_tensor_t* grad,
                                   weir_pool3d_t* p) {
  const int64_t channels = grad->dims[weir_window_channels(&w->window)];
  if (p->channels != channels) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected last dimension of tensor_in_shape and out_backprop to match, got "
                       "%lld and %lld",
                       (long long)p->channels, (long long)channels);
  }
  if (p->batch != grad->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected first dimension of tensor_in_shape and out_backprop to match, got "
                       "%lld and %lld",
                       (long long)p->batch, (long long)grad->dims[0]);
  }
  for (int axis = 0; axis < 3; ++axis) {
    p->out[axis] = grad->dims[weir_window_axis(&w->window, axis)];
    if (p->out[axis] == 0 || p->out[axis] - 1 <= p->in[axis] / p->stride[axis]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "index * stride must be less than or equal to input size");
  }
  return NULL;
}

static weir_status_t* avg_pool3d_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *shape = weir_kernel_input(ctx, 0), *grad = weir_kernel_input(ctx, 1);
  weir_tensor_t* out;
  weir_pool3d_t p;
  int64_t in_dims[5], dims[5];
  int count;
  if (shape->rank != 1 || shape->count != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT, "tensor_in must be 1-dimensional and 5 elements");
  }
  if (grad->rank != 5) return WEIR_STATUS(INVALID_ARGUMENT, "out_backprop must be 5-dimensional");
  WEIR_TRY(weir_kernel_ints(ctx, 0, in_dims, 5, &count));
  WEIR_TRY(weir_shape_check_sizes(5, in_dims));
  WEIR_TRY(weir_pool3d_sizes(ctx->state, in_dims, &p, dims));
  WEIR_TRY(take_windows(ctx->state, grad, &p));
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, in_dims, &out));
  return run(ctx, &p, grad, out, weir_avg_pool3d_grad);
}

#define KERNEL(...)                                                 \
  WEIR_CPU_KERNEL(.types = "T: bfloat16, float", .init = pool_init, \
                  .state_size = sizeof(weir_pool3d_window_t), __VA_ARGS__)

const weir_op_module_t weir_ops_nn_avg_pool3d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AvgPool3D",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Averages of windows that slide over volumes",
         .attrs = POOL_ATTRS,
         .inputs = "input: T",
         .outputs = "output: T",
         .infer_shape = pool_shape,
         .build_grad = pool_grad,
         .kernels = KERNEL(.compute = avg_pool3d_cpu)},
        {.name = "AvgPool3DGrad",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of AvgPool3D",
         .attrs = POOL_ATTRS,
         .inputs = "orig_input_shape: int32; grad: T",
         .outputs = "output: T",
         .infer_shape = grad_shape,
         .build_grad = grad_grad,
         .kernels = KERNEL(.compute = avg_pool3d_grad_cpu, .host_inputs = "orig_input_shape")},
        {0}}};
