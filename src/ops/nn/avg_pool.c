// avg_pool.c — AvgPool and AvgPoolGrad.
#include "kernel/conv/window.h"
#include "kernel/move/staging.h"
#include "kernel/pool/cuda_pool.h"
#include "op/grad_ctx.h"

#define POOL_ATTRS                                                              \
  "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME','VALID'}; " \
  "data_format: {'NHWC','NCHW'} = 'NHWC'; T: {half, bfloat16, float, double}"

static weir_status_t* avg_pool_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  WEIR_TRY(weir_window_read_pool_shape(weir_shape_attrs(ctx), "AvgPool", &w));
  w.depth_size = w.depth_stride = 1;
  return weir_window_pool_shape(ctx, &w);
}

static weir_status_t* avg_pool_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 4, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_edge_t pool_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  return weir_grad_node_like(g, op, inputs,
                             WEIR_NAMES("ksize", "strides", "padding", "data_format"));
}

static weir_status_t* avg_pool_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  return weir_grad_set(g, 0, pool_node(g, "AvgPoolGrad", WEIR_EDGES(shape, weir_grad_dy(g, 0))));
}

static weir_status_t* avg_pool_grad_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 1, pool_node(g, "AvgPool", WEIR_EDGES(weir_grad_dy(g, 0))));
}

typedef struct pool_state_t {
  weir_window_t window;
  weir_cuda_pool_t gpu;  // of a GPU's kernel
} pool_state_t;

static weir_status_t* pool_init(const weir_kernel_init_t* init, void* state) {
  weir_window_t* w = &((pool_state_t*)state)->window;
  WEIR_TRY(weir_window_read_pool_attrs(init->node->attrs, w));
  return weir_window_check_pool_batch(w);
}

static weir_status_t* check_spatial(const weir_window_t* w) {
  if (w->depth_size == 1) return NULL;  // whatever the stride
  return WEIR_STATUS(UNIMPLEMENTED, "Non-spatial pooling is not yet supported. Volunteers? :)");
}

static weir_status_t* prepare(weir_kernel_ctx_t* ctx, weir_pool2d_t* p, weir_tensor_t** out) {
  const weir_window_t* w = &((const pool_state_t*)ctx->state)->window;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[4];
  WEIR_TRY(weir_window_check_pool_sizes(w));
  WEIR_TRY(weir_window_check_pool_input(in));
  WEIR_TRY(weir_window_check_pool_depth(w, in->dims[weir_window_channels(w)]));
  WEIR_TRY(check_spatial(w));
  WEIR_TRY(weir_window_pool2d(w, in->dims, p));
  weir_window_dims(w, p->batch, (const int64_t[]){p->out_h, p->out_w}, p->channels, dims);
  return weir_kernel_output(ctx, 0, 4, dims, out);
}

static weir_status_t* avg_pool_cpu(weir_kernel_ctx_t* ctx) {
  bool is_nchw = ((const pool_state_t*)ctx->state)->window.is_nchw;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_staged_t x = {0}, y = {0};
  weir_tensor_t* out;
  weir_pool2d_t p;
  WEIR_TRY(prepare(ctx, &p, &out));
  weir_status_t* status = weir_stage_input(ctx, in, is_nchw, &x);
  if (!status) status = weir_stage_output(ctx, out, is_nchw, &y);
  if (status) goto done;
  weir_avg_pool2d(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)), &p, x.data,
                  y.data);
  status = weir_stage_finish(ctx, out, is_nchw, &y);
done:
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* prepare_grad(weir_kernel_ctx_t* ctx, weir_pool2d_t* p, weir_tensor_t** out) {
  const weir_window_t* w = &((const pool_state_t*)ctx->state)->window;
  const weir_tensor_t *shape = weir_kernel_input(ctx, 0), *grad = weir_kernel_input(ctx, 1);
  int64_t in_dims[4], dims[4];
  int count;
  WEIR_TRY(check_spatial(w));
  if (shape->rank != 1 || shape->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "out_backprop: orig_input_shape must be 1-dimensional and 4 elements");
  }
  if (grad->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "out_backprop must be 4-dimensional");
  WEIR_TRY(weir_kernel_ints(ctx, 0, in_dims, 4, &count));
  WEIR_TRY(weir_shape_check_sizes(4, in_dims));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in_dims, out));
  WEIR_TRY(weir_window_pool2d(w, in_dims, p));
  weir_window_dims(w, p->batch, (const int64_t[]){p->out_h, p->out_w}, p->channels, dims);
  WEIR_TRY(weir_window_expect(grad, 4, dims, "out_backprop"));
  return weir_window_check_pool_sizes(w);
}

static weir_status_t* avg_pool_grad_cpu(weir_kernel_ctx_t* ctx) {
  bool is_nchw = ((const pool_state_t*)ctx->state)->window.is_nchw;
  const weir_tensor_t* grad = weir_kernel_input(ctx, 1);
  weir_staged_t dy = {0}, dx = {0};
  weir_tensor_t* out;
  weir_pool2d_t p;
  WEIR_TRY(prepare_grad(ctx, &p, &out));
  weir_status_t* status = weir_stage_input(ctx, grad, is_nchw, &dy);
  if (!status) status = weir_stage_output(ctx, out, is_nchw, &dx);
  if (status) goto done;
  weir_avg_pool2d_grad(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(grad)), &p,
                       dy.data, dx.data);
  status = weir_stage_finish(ctx, out, is_nchw, &dx);
done:
  weir_staged_release(&dy);
  weir_staged_release(&dx);
  return status;
}

// ---- GPU ----

static weir_status_t* gpu_init(const weir_kernel_init_t* init, void* state) {
  pool_state_t* s = state;
  WEIR_TRY(pool_init(init, state));
  return weir_cuda_pool_find(init->device, init->node->output_types[0], &s->window, &s->gpu);
}

static weir_status_t* avg_pool_gpu(weir_kernel_ctx_t* ctx) {
  const pool_state_t* s = ctx->state;
  weir_tensor_t* out;
  weir_pool2d_t p;
  WEIR_TRY(prepare(ctx, &p, &out));
  if (s->window.is_nchw) p = weir_pool2d_of_planes(&p);
  return weir_cuda_avg_pool(ctx, &s->gpu, &p, weir_kernel_input(ctx, 0)->data, out->data);
}

static weir_status_t* avg_pool_grad_gpu(weir_kernel_ctx_t* ctx) {
  const pool_state_t* s = ctx->state;
  weir_tensor_t* out;
  weir_pool2d_t p;
  WEIR_TRY(prepare_grad(ctx, &p, &out));
  if (s->window.is_nchw) p = weir_pool2d_of_planes(&p);
  return weir_cuda_avg_pool_grad(ctx, &s->gpu, &p, weir_kernel_input(ctx, 1)->data, out->data);
}

#define KERNELS(name, host)                                        \
  (const weir_kernel_def_t[]) {                                    \
    {WEIR_DEVICE_CPU, .compute = name##_cpu, .init = pool_init,    \
     .state_size = sizeof(pool_state_t), .host_inputs = host},     \
        {WEIR_DEVICE_GPU, .compute = name##_gpu, .init = gpu_init, \
         .state_size = sizeof(pool_state_t), .host_inputs = host}, \
    {                                                              \
      0                                                            \
    }                                                              \
  }

const weir_op_module_t weir_ops_nn_avg_pool = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "AvgPool",
                                    .mixed = WEIR_MIXED_INFER,
                                    .summary = "Averages of sliding windows",
                                    .attrs = POOL_ATTRS,
                                    .inputs = "value: T",
                                    .outputs = "output: T",
                                    .infer_shape = avg_pool_shape,
                                    .build_grad = avg_pool_grad,
                                    .kernels = KERNELS(avg_pool, NULL)},
                                   {.name = "AvgPoolGrad",
                                    .mixed = WEIR_MIXED_INFER,
                                    .summary = "Gradient of AvgPool",
                                    .attrs = POOL_ATTRS,
                                    .inputs = "orig_input_shape: int32; grad: T",
                                    .outputs = "output: T",
                                    .infer_shape = avg_pool_grad_shape,
                                    .build_grad = avg_pool_grad_grad,
                                    .kernels = KERNELS(avg_pool_grad, "orig_input_shape")},
                                   {0}}};
