// max_pool.c — MaxPool, MaxPoolGrad, MaxPoolGradGrad, and their V2 forms that take window and
// strides as inputs.
#include "kernel/conv/window.h"
#include "kernel/move/staging.h"
#include "kernel/pool/cuda_pool.h"
#include "op/grad_ctx.h"

#define REAL_TYPES \
  "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
#define INPUT_TYPES "half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8"
#define KERNEL_TYPES "T: half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16"
#define WINDOW_ATTRS "ksize: list(int) >= 4; strides: list(int) >= 4; "
#define FORMAT_ATTR "data_format: {'NHWC','NCHW'} = 'NHWC'"
#define INPUT_FORMAT_ATTR "data_format: {'NHWC','NCHW','NCHW_VECT_C'} = 'NHWC'"

// ---- shapes ----
typedef weir_status_t* (*shape_fn_t)(weir_shape_ctx_t* ctx, const weir_window_t* w);

static weir_status_t* attrs_shape(weir_shape_ctx_t* ctx, shape_fn_t fn) {
  weir_window_t w;
  WEIR_TRY(weir_window_read_pool_shape(weir_shape_attrs(ctx), "MaxPool", &w));
  return fn(ctx, &w);
}

static weir_status_t* max_pool_shape(weir_shape_ctx_t* ctx) {
  return attrs_shape(ctx, weir_window_pool_shape);
}

// Window and strides are inputs |first| and |first| + 1; nothing but the rank is known unless they
// are constant.
static weir_status_t* v2_shape(weir_shape_ctx_t* ctx, int first, shape_fn_t fn) {
  const weir_tensor_t *ksize = weir_shape_value(ctx, first),
                      *strides = weir_shape_value(ctx, first + 1);
  int64_t values[2][4];
  weir_window_t w;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, NULL));
  for (int i = first; i < first + 2; ++i) {
    const weir_shape_t* sizes = NULL;
    int64_t four = 0;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &sizes));
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(sizes, 0), 4, &four));
  }
  if (!ksize || !strides) {
    return weir_shape_set_dims(
        ctx, 0, 4, (const int64_t[]){weir_shape_dim(weir_shape_input(ctx, 0), 0), -1, -1, -1});
  }
  for (int i = 0; i < 4; ++i) {
    values[0][i] = weir_tensor_int_at(ksize, i);
    values[1][i] = weir_tensor_int_at(strides, i);
  }
  WEIR_TRY(weir_window_read_pool(weir_shape_attrs(ctx), values[0], values[1], &w));
  return fn(ctx, &w);
}

static weir_status_t* max_pool_v2_shape(weir_shape_ctx_t* ctx) {
  return v2_shape(ctx, 1, weir_window_pool_shape);
}

// The gradient is as large as what was pooled, ...
static weir_status_t* check_pooled(weir_shape_ctx_t* ctx) {
  const weir_shape_t* joined = NULL;
  return weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 2), &joined);
}

// ... the result as what came of it.
static weir_status_t* check_result(weir_shape_ctx_t* ctx) {
  const weir_shape_t* joined = NULL;
  return weir_shape_join(ctx, weir_shape_input(ctx, 1), ctx->output_shapes[0], &joined);
}

static weir_status_t* grad_grad_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(attrs_shape(ctx, weir_window_pool_grad_shape));
  WEIR_TRY(check_pooled(ctx));
  return check_result(ctx);
}

// TensorFlow finds what is wrong without the window before it asks for the window.
static weir_status_t* grad_grad_v2_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_pooled(ctx));
  WEIR_TRY(v2_shape(ctx, 3, weir_window_pool_grad_shape));
  return check_result(ctx);
}

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  return weir_shape_set(ctx, 0, in);
}

// ---- gradients ----
// The V2 forms have neither ksize nor strides to hand on.
static weir_edge_t pool_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  const char* last = strcmp(op, "MaxPoolGrad") == 0 ? "explicit_paddings" : NULL;
  return weir_grad_node_like(g, op, inputs,
                             WEIR_NAMES("padding", "data_format", "ksize", "strides", last));
}

static weir_status_t* max_pool_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_output(g, 0), weir_grad_dy(g, 0));
  return weir_grad_set(g, 0, pool_node(g, "MaxPoolGrad", inputs));
}

static weir_status_t* max_pool_v2_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_output(g, 0), weir_grad_dy(g, 0),
                 weir_grad_input(g, 1), weir_grad_input(g, 2));
  return weir_grad_set(g, 0, pool_node(g, "MaxPoolGradV2", inputs));
}

// Both gradients are linear in their third input and flat almost everywhere in the others.
static weir_status_t* set_linear(weir_grad_ctx_t* g, weir_edge_t by_grad) {
  for (int i = 0; i < 2; ++i) {
    WEIR_TRY(
        weir_grad_set(g, i, weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_input(g, i)))));
  }
  return weir_grad_set(g, 2, by_grad);
}

static weir_status_t* max_pool_grad_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_input(g, 1), weir_grad_dy(g, 0));
  return set_linear(g, pool_node(g, "MaxPoolGradGrad", inputs));
}

static weir_status_t* max_pool_grad_grad_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_input(g, 1), weir_grad_dy(g, 0));
  return set_linear(g, pool_node(g, "MaxPoolGrad", inputs));
}

static weir_status_t* max_pool_grad_v2_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs = WEIR_EDGES(weir_grad_input(g, 0), weir_grad_input(g, 1), weir_grad_dy(g, 0),
                                   weir_grad_input(g, 3), weir_grad_input(g, 4));
  return set_linear(g, pool_node(g, "MaxPoolGradGradV2", inputs));
}

// ---- kernels ----
typedef struct pool_state_t {
  bool has_window;  // not of the V2 forms
  weir_window_t window;
  weir_cuda_pool_t gpu;  // of a GPU's kernel
} pool_state_t;

static weir_status_t* pool_init(const weir_kernel_init_t* init, void* state) {
  pool_state_t* s = state;
  s->has_window = true;
  return weir_window_read_pool_attrs(init->node->attrs, &s->window);
}

static weir_status_t* pool_v2_init(const weir_kernel_init_t* init, void* state) {
  (void)init;
  ((pool_state_t*)state)->has_window = false;
  return NULL;
}

// The window: from the attributes, or from inputs |first| and |first| + 1.
static weir_status_t* get_window(weir_kernel_ctx_t* ctx, int first, weir_window_t* out_window) {
  int64_t ksize[4], strides[4];
  const pool_state_t* s = ctx->state;
  if (s->has_window) {
    *out_window = s->window;
    return NULL;
  }
  for (int i = first; i < first + 2; ++i) {
    if (weir_kernel_input(ctx, i)->count != 4) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Sliding window %s field must specify 4 dimensions",
                         i == first ? "ksize" : "stride");
    }
  }
  for (int i = 0; i < 4; ++i) {
    ksize[i] = weir_tensor_int_at(weir_kernel_input(ctx, first), i);
    strides[i] = weir_tensor_int_at(weir_kernel_input(ctx, first + 1), i);
  }
  return weir_window_read_pool(weir_kernel_attrs(ctx), ksize, strides, out_window);
}

static weir_status_t* check_rank4(const weir_tensor_t* t, const char* name) {
  if (t->rank == 4) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 4-dimensional", name);
}

// A window along the channels: the channels become a line of pixels.
static void depth_pool(const weir_window_t* w, weir_pool2d_t* pool) {
  *pool = (weir_pool2d_t){.batch = pool->batch * pool->in_h * pool->in_w,
                          .in_h = 1,
                          .in_w = pool->channels,
                          .channels = 1,
                          .out_h = 1,
                          .out_w = pool->channels / w->depth_size,
                          .window_h = 1,
                          .window_w = w->depth_size,
                          .stride_h = 1,
                          .stride_w = w->depth_size};
}

// Window, geometry and output of MaxPool and MaxPoolV2.
static weir_status_t* prepare(weir_kernel_ctx_t* ctx, weir_window_t* w, weir_pool2d_t* p,
                              weir_tensor_t** out) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[4];
  WEIR_TRY(get_window(ctx, 1, w));
  WEIR_TRY(weir_window_check_pool_sizes(w));
  WEIR_TRY(weir_window_check_pool_batch(w));
  WEIR_TRY(weir_window_check_pool_stride(w));
  WEIR_TRY(weir_window_check_pool_input(in));
  WEIR_TRY(weir_window_check_pool_depth(w, in->dims[weir_window_channels(w)]));
  WEIR_TRY(weir_window_pool2d(w, in->dims, p));
  weir_window_dims(w, p->batch, (const int64_t[]){p->out_h, p->out_w}, p->channels / w->depth_size,
                   dims);
  if (w->depth_size > 1) depth_pool(w, p);
  return weir_kernel_output(ctx, 0, 4, dims, out);
}

static weir_status_t* max_pool_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_staged_t x = {0}, y = {0};
  weir_tensor_t* out;
  weir_window_t w;
  weir_pool2d_t p;
  WEIR_TRY(prepare(ctx, &w, &p, &out));
  weir_status_t* status = weir_stage_input(ctx, in, w.is_nchw, &x);
  if (!status) status = weir_stage_output(ctx, out, w.is_nchw, &y);
  if (status) goto done;
  weir_max_pool2d(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)), &p, x.data,
                  y.data);
  status = weir_stage_finish(ctx, out, w.is_nchw, &y);
done:
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

// Checks the inputs orig_input, orig_output and grad of both gradients; |grad_is_output| says which
// shape grad has.
static weir_status_t* check_grad(weir_kernel_ctx_t* ctx, const weir_window_t* w,
                                 bool grad_is_output, weir_pool2d_t* out_pool) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const bool is_by_attrs = !grad_is_output && ((const pool_state_t*)ctx->state)->has_window;
  int64_t dims[4];
  WEIR_TRY(weir_window_check_pool_batch(w));
  if (is_by_attrs) WEIR_TRY(weir_window_check_pool_stride(w));
  if (w->depth_size != 1 || w->depth_stride != 1) {
    return WEIR_STATUS(UNIMPLEMENTED, "%s is not yet supported on the depth dimension.",
                       is_by_attrs ? "MaxPoolingGradGrad" : "MaxPoolingGrad");
  }
  WEIR_TRY(check_rank4(in, "tensor_in"));
  WEIR_TRY(check_rank4(weir_kernel_input(ctx, 1), "tensor_out"));
  WEIR_TRY(check_rank4(weir_kernel_input(ctx, 2), "out_backprop"));
  WEIR_TRY(weir_window_pool2d(w, in->dims, out_pool));
  weir_window_dims(w, in->dims[0], (const int64_t[]){out_pool->out_h, out_pool->out_w},
                   out_pool->channels, dims);
  WEIR_TRY(weir_window_expect_pooled(weir_kernel_input(ctx, 1), dims, "orig_output"));
  WEIR_TRY(weir_window_expect_pooled(weir_kernel_input(ctx, 2), grad_is_output ? dims : in->dims,
                                     "grad"));
  return weir_window_check_pool_sizes(w);
}

static weir_status_t* max_pool_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *grad = weir_kernel_input(ctx, 2);
  weir_staged_t x = {0}, dy = {0}, dx = {0};
  weir_tensor_t* out;
  weir_window_t w;
  weir_pool2d_t p;
  WEIR_TRY(get_window(ctx, 3, &w));
  WEIR_TRY(check_grad(ctx, &w, true, &p));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  weir_status_t* status = weir_stage_input(ctx, in, w.is_nchw, &x);
  if (!status) status = weir_stage_input(ctx, grad, w.is_nchw, &dy);
  if (!status) status = weir_stage_output(ctx, out, w.is_nchw, &dx);
  if (status) goto done;
  status = weir_max_pool2d_grad(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)), &p,
                                x.data, dy.data, dx.data);
  if (!status) status = weir_stage_finish(ctx, out, w.is_nchw, &dx);
done:
  weir_staged_release(&x);
  weir_staged_release(&dy);
  weir_staged_release(&dx);
  return status;
}

static weir_status_t* max_pool_grad_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *top = weir_kernel_input(ctx, 1);
  weir_staged_t x = {0}, y = {0}, grad = {0}, ddy = {0};
  weir_tensor_t* out;
  weir_window_t w;
  weir_pool2d_t p;
  WEIR_TRY(get_window(ctx, 3, &w));
  WEIR_TRY(check_grad(ctx, &w, false, &p));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, top->dims, &out));
  weir_status_t* status = weir_stage_input(ctx, in, w.is_nchw, &x);
  if (!status) status = weir_stage_input(ctx, top, w.is_nchw, &y);
  if (!status) status = weir_stage_input(ctx, weir_kernel_input(ctx, 2), w.is_nchw, &grad);
  if (!status) status = weir_stage_output(ctx, out, w.is_nchw, &ddy);
  if (status) goto done;
  weir_max_pool2d_grad_grad(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)), &p,
                            x.data, y.data, grad.data, ddy.data);
  status = weir_stage_finish(ctx, out, w.is_nchw, &ddy);
done:
  weir_staged_release(&x);
  weir_staged_release(&y);
  weir_staged_release(&grad);
  weir_staged_release(&ddy);
  return status;
}

// ---- GPU ----

static weir_status_t* find_gpu(const weir_kernel_init_t* init, pool_state_t* s) {
  weir_dtype_t dtype = weir_dtype_base(init->node->output_types[0]);
  return weir_cuda_pool_find(init->device, dtype, s->has_window ? &s->window : NULL, &s->gpu);
}

static weir_status_t* gpu_v2_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(pool_v2_init(init, state));
  return find_gpu(init, state);
}

static weir_status_t* gpu_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(pool_init(init, state));
  return find_gpu(init, state);
}

static weir_status_t* max_pool_gpu(weir_kernel_ctx_t* ctx) {
  const pool_state_t* s = ctx->state;
  weir_tensor_t* out;
  weir_window_t w;
  weir_pool2d_t p;
  WEIR_TRY(prepare(ctx, &w, &p, &out));
  if (w.is_nchw && w.depth_size > 1)
    return WEIR_STATUS(UNIMPLEMENTED, "Depthwise max pooling of NCHW on GPUs is not supported");
  if (w.is_nchw) p = weir_pool2d_of_planes(&p);
  return weir_cuda_max_pool(ctx, &s->gpu, &p, weir_kernel_input(ctx, 0)->data, out->data);
}

static weir_status_t* max_pool_grad_gpu(weir_kernel_ctx_t* ctx) {
  const pool_state_t* s = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *grad = weir_kernel_input(ctx, 2);
  weir_tensor_t* out;
  weir_window_t w;
  weir_pool2d_t p;
  WEIR_TRY(get_window(ctx, 3, &w));
  WEIR_TRY(check_grad(ctx, &w, true, &p));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  if (w.is_nchw) p = weir_pool2d_of_planes(&p);
  return weir_cuda_max_pool_grad(ctx, &s->gpu, &p, in->data, grad->data, out->data);
}

static weir_status_t* max_pool_grad_grad_gpu(weir_kernel_ctx_t* ctx) {
  const pool_state_t* s = ctx->state;
  const weir_tensor_t* top = weir_kernel_input(ctx, 1);
  weir_tensor_t* out;
  weir_window_t w;
  weir_pool2d_t p;
  WEIR_TRY(get_window(ctx, 3, &w));
  WEIR_TRY(check_grad(ctx, &w, false, &p));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, top->dims, &out));
  if (w.is_nchw) p = weir_pool2d_of_planes(&p);
  return weir_cuda_max_pool_grad_grad(ctx, &s->gpu, &p, weir_kernel_input(ctx, 0)->data, top->data,
                                      weir_kernel_input(ctx, 2)->data, out->data);
}

#define GPU_TYPES "T: half, bfloat16, float, double"
#define KERNEL(NAME, TYPES)                                                            \
  (const weir_kernel_def_t[]) {                                                        \
    {WEIR_DEVICE_CPU, .types = TYPES, .compute = NAME##_cpu, .init = pool_init,        \
     .state_size = sizeof(pool_state_t)},                                              \
        {WEIR_DEVICE_GPU, .types = GPU_TYPES, .compute = NAME##_gpu, .init = gpu_init, \
         .state_size = sizeof(pool_state_t)},                                          \
    {                                                                                  \
      0                                                                                \
    }                                                                                  \
  }
#define KERNEL_V2(NAME, TYPES)               \
  (const weir_kernel_def_t[]) {              \
    {WEIR_DEVICE_CPU,                        \
     .types = TYPES,                         \
     .compute = NAME##_cpu,                  \
     .init = pool_v2_init,                   \
     .state_size = sizeof(pool_state_t),     \
     .host_inputs = "ksize, strides"},       \
        {WEIR_DEVICE_GPU,                    \
         .types = GPU_TYPES,                 \
         .compute = NAME##_gpu,              \
         .init = gpu_v2_init,                \
         .state_size = sizeof(pool_state_t), \
         .host_inputs = "ksize, strides"},   \
    {                                        \
      0                                      \
    }                                        \
  }

const weir_op_module_t weir_ops_nn_max_pool = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MaxPool",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Maxima of sliding windows",
         .attrs = "T: {" INPUT_TYPES "} = DT_FLOAT; " WINDOW_ATTRS
                  "padding: {'SAME','VALID','EXPLICIT'}; explicit_paddings: list(int) = "
                  "[]; " INPUT_FORMAT_ATTR,
         .inputs = "input: T",
         .outputs = "output: T",
         .infer_shape = max_pool_shape,
         .build_grad = max_pool_grad,
         .kernels = KERNEL(max_pool, KERNEL_TYPES)},
        {.name = "MaxPoolV2",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Maxima of sliding windows",
         .attrs = "T: {" INPUT_TYPES "} = DT_FLOAT; padding: {'SAME','VALID'}; " INPUT_FORMAT_ATTR,
         .inputs = "input: T; ksize: int32; strides: int32",
         .outputs = "output: T",
         .infer_shape = max_pool_v2_shape,
         .build_grad = max_pool_v2_grad,
         .kernels = KERNEL_V2(max_pool, KERNEL_TYPES)},
        {.name = "MaxPoolGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Gradient of MaxPool",
         .attrs = WINDOW_ATTRS
         "padding: {'SAME','VALID','EXPLICIT'}; explicit_paddings: list(int) = []; " FORMAT_ATTR
         "; T: {" REAL_TYPES "} = DT_FLOAT",
         .inputs = "orig_input: T; orig_output: T; grad: T",
         .outputs = "output: T",
         .infer_shape = grad_shape,
         .build_grad = max_pool_grad_grad,
         .kernels = KERNEL(max_pool_grad, NULL)},
        {.name = "MaxPoolGradV2",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Gradient of MaxPoolV2",
         .attrs = "padding: {'SAME','VALID'}; " FORMAT_ATTR "; T: {" REAL_TYPES "} = DT_FLOAT",
         .inputs = "orig_input: T; orig_output: T; grad: T; ksize: int32; strides: int32",
         .outputs = "output: T",
         .infer_shape = grad_shape,
         .build_grad = max_pool_grad_v2_grad,
         .kernels = KERNEL_V2(max_pool_grad, NULL)},
        {.name = "MaxPoolGradGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Second-order gradient of MaxPool",
         .attrs = WINDOW_ATTRS "padding: {'SAME','VALID'}; " FORMAT_ATTR "; T: {" REAL_TYPES "}",
         .inputs = "orig_input: T; orig_output: T; grad: T",
         .outputs = "output: T",
         .infer_shape = grad_grad_shape,
         .build_grad = max_pool_grad_grad_grad,
         .kernels = KERNEL(max_pool_grad_grad, NULL)},
        {.name = "MaxPoolGradGradV2",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Second-order gradient of MaxPoolV2",
         .attrs = "padding: {'SAME','VALID'}; " FORMAT_ATTR "; T: {" REAL_TYPES "}",
         .inputs = "orig_input: T; orig_output: T; grad: T; ksize: int32; strides: int32",
         .outputs = "output: T",
         .infer_shape = grad_grad_v2_shape,
         .kernels = KERNEL_V2(max_pool_grad_grad, NULL)},
        {0}}};
