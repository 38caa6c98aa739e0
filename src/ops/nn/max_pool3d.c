// max_pool3d.c — MaxPool3D and its first and second gradients.
#include "kernel/move/staging.h"
#include "kernel/pool/pool3d_op.h"
#include "op/grad_ctx.h"

#define POOL_ATTRS                                                              \
  "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME','VALID'}; " \
  "data_format: {'NDHWC','NCDHW'} = 'NDHWC'; "

// ---- shapes ----

static weir_status_t* find_shape(weir_shape_ctx_t* ctx, bool is_grad) {
  int64_t dims[5];
  WEIR_TRY(weir_pool3d_shape(ctx, is_grad, dims));
  return weir_shape_set_dims(ctx, 0, 5, dims);
}
static weir_status_t* pool_shape(weir_shape_ctx_t* ctx) { return find_shape(ctx, false); }

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 5, &in));
  return weir_shape_set(ctx, 0, in);
}

static weir_status_t* grad_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* joined;
  WEIR_TRY(find_shape(ctx, true));
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 2), &joined));
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 1), ctx->output_shapes[0], &joined));
  return weir_shape_set(ctx, 0, joined);
}

// ---- gradients ----

static weir_edge_t pool_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  return weir_grad_node_like(g, op, inputs,
                             WEIR_NAMES("ksize", "strides", "padding", "data_format"));
}

static weir_status_t* pool_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0,
      pool_node(g, "MaxPool3DGrad",
                WEIR_EDGES(weir_grad_input(g, 0), weir_grad_output(g, 0), weir_grad_dy(g, 0))));
}

// Both gradients are linear in their third input and flat almost everywhere in the others.
static weir_status_t* linear_grad(weir_grad_ctx_t* g, const char* op) {
  for (int i = 0; i < 2; ++i) {
    WEIR_TRY(
        weir_grad_set(g, i, weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_input(g, i)))));
  }
  return weir_grad_set(
      g, 2,
      pool_node(g, op,
                WEIR_EDGES(weir_grad_input(g, 0), weir_grad_input(g, 1), weir_grad_dy(g, 0))));
}
static weir_status_t* grad_grad(weir_grad_ctx_t* g) { return linear_grad(g, "MaxPool3DGradGrad"); }
static weir_status_t* grad_grad_grad(weir_grad_ctx_t* g) { return linear_grad(g, "MaxPool3DGrad"); }

// ---- kernels ----

static weir_status_t* pool_init(const weir_kernel_init_t* init, void* state) {
  return weir_pool3d_read(init->node->attrs, "Pooling", state);
}

static weir_status_t* grad_init(const weir_kernel_init_t* init, void* state) {
  return weir_pool3d_read_grad(init->node->attrs, "Pooling", state);
}

static weir_status_t* grad_grad_init(const weir_kernel_init_t* init, void* state) {
  return weir_pool3d_read_grad(init->node->attrs, "MaxPooling3dGradGrad", state);
}

static weir_status_t* expect_rank(const weir_tensor_t* t, const char* name) {
  if (t->rank == 5) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 5-dimensional", name);
}

static weir_status_t* expect_dims(const weir_tensor_t* t, const int64_t dims[5], const char* name) {
  char actual[WEIR_SHAPE_TEXT_SIZE], wanted[WEIR_SHAPE_TEXT_SIZE];
  if (memcmp(t->dims, dims, 5 * sizeof(*dims)) == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s shape to be %s, but got %s", name,
                     weir_shape_text(5, dims, wanted), weir_tensor_shape_text(t, actual));
}

static weir_status_t* max_pool3d_cpu(weir_kernel_ctx_t* ctx) {
  const weir_pool3d_window_t* w = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const bool is_nchw = w->window.is_nchw;
  weir_staged_t x = {0}, y = {0};
  weir_tensor_t* out;
  weir_pool3d_t p;
  int64_t dims[5];
  WEIR_TRY(expect_rank(in, "tensor_in"));
  WEIR_TRY(weir_pool3d_sizes(w, in->dims, &p, dims));
  weir_pool3d_skip(w, &p);
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, dims, &out));
  weir_status_t* status = weir_stage_input(ctx, in, is_nchw, &x);
  if (!status) status = weir_stage_output(ctx, out, is_nchw, &y);
  if (!status) {
    weir_max_pool3d(weir_kernel_pool(ctx), &p, x.data, y.data);
    status = weir_stage_finish(ctx, out, is_nchw, &y);
  }
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

typedef void (*grad_fn_t)(weir_pool_t* pool, const weir_pool3d_t* p, const float* in,
                          const float* out, const float* grad, float* result);

// Of the three inputs, all of right shapes by now, into |out|.
static weir_status_t* run_grad(weir_kernel_ctx_t* ctx, const weir_pool3d_t* p, grad_fn_t fn,
                               weir_tensor_t* out) {
  const bool is_nchw = ((const weir_pool3d_window_t*)ctx->state)->window.is_nchw;
  weir_staged_t in[3] = {{0}}, y = {0};
  weir_status_t* status = weir_stage_output(ctx, out, is_nchw, &y);
  for (int i = 0; !status && i < 3; ++i)
    status = weir_stage_input(ctx, weir_kernel_input(ctx, i), is_nchw, &in[i]);
  if (!status) {
    fn(weir_kernel_pool(ctx), p, in[0].data, in[1].data, in[2].data, y.data);
    status = weir_stage_finish(ctx, out, is_nchw, &y);
  }
  for (int i = 0; i < 3; ++i) weir_staged_release(&in[i]);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* max_pool3d_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *top = weir_kernel_input(ctx, 1);
  const weir_tensor_t* dy = weir_kernel_input(ctx, 2);
  weir_pool3d_t p;
  weir_tensor_t* out;
  int64_t dims[5];
  WEIR_TRY(expect_rank(in, "tensor_in"));
  WEIR_TRY(expect_rank(top, "tensor_out"));
  WEIR_TRY(expect_rank(dy, "out_backprop"));
  WEIR_TRY(weir_pool3d_sizes(ctx->state, in->dims, &p, dims));
  WEIR_TRY(expect_dims(top, dims, "orig_output"));
  WEIR_TRY(expect_dims(dy, dims, "grad"));
  WEIR_TRY(weir_pool3d_check_window(ctx->state));
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, in->dims, &out));
  return run_grad(ctx, &p, weir_max_pool3d_grad, out);
}

static weir_status_t* max_pool3d_grad_grad_cpu(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"tensor_in", "tensor_out", "out_grad_backprop"};
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *top = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_pool3d_t p;
  weir_tensor_t* out;
  int64_t dims[5];
  for (int i = 0; i < 3; ++i) WEIR_TRY(expect_rank(weir_kernel_input(ctx, i), names[i]));
  WEIR_TRY(weir_pool3d_sizes(ctx->state, in->dims, &p, dims));
  WEIR_TRY(expect_dims(top, dims, "orig_output"));
  WEIR_TRY(expect_dims(weir_kernel_input(ctx, 2), in->dims, "grad"));
  WEIR_TRY(weir_pool3d_check_window(ctx->state));
  for (int i = 0; i < 3; ++i) {
    if (weir_kernel_input(ctx, i)->count > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "received empty tensor %s of shape %s", names[i],
                       weir_tensor_shape_text(weir_kernel_input(ctx, i), text));
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, dims, &out));
  return run_grad(ctx, &p, weir_max_pool3d_grad_grad, out);
}

#define KERNEL(...) WEIR_CPU_KERNEL(.state_size = sizeof(weir_pool3d_window_t), __VA_ARGS__)

const weir_op_module_t weir_ops_nn_max_pool3d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MaxPool3D",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Maxima of windows that slide over volumes",
         .attrs = POOL_ATTRS "T: {half, bfloat16, float}",
         .inputs = "input: T",
         .outputs = "output: T",
         .infer_shape = pool_shape,
         .build_grad = pool_grad,
         .kernels =
             KERNEL(.types = "T: bfloat16, float", .compute = max_pool3d_cpu, .init = pool_init)},
        {.name = "MaxPool3DGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Gradient of MaxPool3D",
         .attrs = POOL_ATTRS
         "T: {half, bfloat16, float} = DT_FLOAT; TInput: {half, bfloat16, float} = DT_FLOAT",
         .inputs = "orig_input: TInput; orig_output: TInput; grad: T",
         .outputs = "output: T",
         .infer_shape = grad_shape,
         .build_grad = grad_grad,
         .kernels =
             (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .types = "T: float; TInput: float",
                                          .compute = max_pool3d_grad_cpu, .init = grad_init,
                                          .state_size = sizeof(weir_pool3d_window_t)},
                                         {WEIR_DEVICE_CPU, .types = "T: bfloat16; TInput: bfloat16",
                                          .compute = max_pool3d_grad_cpu, .init = grad_init,
                                          .state_size = sizeof(weir_pool3d_window_t)},
                                         {0}}},
        {.name = "MaxPool3DGradGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Gradient of MaxPool3DGrad",
         .attrs = POOL_ATTRS "T: realnumbertype",
         .inputs = "orig_input: T; orig_output: T; grad: T",
         .outputs = "output: T",
         .infer_shape = grad_grad_shape,
         .build_grad = grad_grad_grad,
         .kernels = KERNEL(.types = "T: bfloat16, float", .compute = max_pool3d_grad_grad_cpu,
                           .init = grad_grad_init)},
        {0}}};
