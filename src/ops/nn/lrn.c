// lrn.c — LRN and LRNGrad: local response normalisation.
#include "kernel/nn/lrn.h"

#include "kernel/cuda/source.h"
#include "kernel/move/staging.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

#define LRN_ATTRS                                                                     \
  "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; " \
  "T: {half, bfloat16, float} = DT_FLOAT"
#define LRN_TYPES "T: half, float"

static weir_status_t* lrn_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  return weir_shape_set(ctx, 0, in);
}

static weir_status_t* lrn_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_shape_input(ctx, 0);
  for (int i = 1; i < 3; ++i)
    WEIR_TRY(weir_shape_join(ctx, shape, weir_shape_input(ctx, i), &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 4, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* lrn_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 0), weir_grad_output(g, 0));
  return weir_grad_set(g, 0,
                       weir_grad_node_like(g, "LRNGrad", inputs,
                                           WEIR_NAMES("depth_radius", "bias", "alpha", "beta")));
}

static weir_status_t* lrn_init(const weir_kernel_init_t* init, void* state) {
  weir_attrs_t attrs = init->node->attrs;
  weir_lrn_t* lrn = state;
  *lrn = (weir_lrn_t){.radius = weir_attrs_int(attrs, "depth_radius"),
                      .bias = weir_attrs_float(attrs, "bias"),
                      .alpha = weir_attrs_float(attrs, "alpha"),
                      .beta = weir_attrs_float(attrs, "beta")};
  if (lrn->radius >= 0 && lrn->radius < INT32_MAX) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "depth_radius = %lld larger than int max",
                     (long long)lrn->radius);
}

static weir_lrn_t make_lrn(const weir_kernel_ctx_t* ctx, const weir_tensor_t* x) {
  weir_lrn_t lrn = *(const weir_lrn_t*)ctx->state;
  lrn.channels = x->dims[3];
  lrn.rows = lrn.channels > 0 ? x->count / lrn.channels : 0;
  return lrn;
}

static weir_status_t* lrn_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_staged_t x = {0}, y = {0};
  weir_tensor_t* out;
  if (in->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "in must be 4-dimensional");
  weir_lrn_t lrn = make_lrn(ctx, in);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  weir_status_t* status = weir_stage_input(ctx, in, false, &x);
  if (!status) status = weir_stage_output(ctx, out, false, &y);
  if (!status) status = weir_lrn(weir_kernel_pool(ctx), &lrn, x.data, y.data);
  if (!status) status = weir_stage_finish(ctx, out, false, &y);
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* check_grad(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 1);
  if (in->rank != 4 || weir_kernel_input(ctx, 0)->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "inputs must be 4-dimensional");
  }
  if (!weir_tensor_same_shape(in, weir_kernel_input(ctx, 0)) ||
      !weir_tensor_same_shape(in, weir_kernel_input(ctx, 2))) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input_grads, input_image, and out_image should have the same shape");
  }
  return NULL;
}

static weir_status_t* lrn_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 1);
  weir_staged_t dy = {0}, x = {0}, y = {0}, dx = {0};
  weir_tensor_t* out;
  WEIR_TRY(check_grad(ctx));
  weir_lrn_t lrn = make_lrn(ctx, in);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  weir_status_t* status = weir_stage_input(ctx, weir_kernel_input(ctx, 0), false, &dy);
  if (!status) status = weir_stage_input(ctx, in, false, &x);
  if (!status) status = weir_stage_input(ctx, weir_kernel_input(ctx, 2), false, &y);
  if (!status) status = weir_stage_output(ctx, out, false, &dx);
  if (!status)
    status = weir_lrn_grad(weir_kernel_pool(ctx), &lrn, dy.data, x.data, y.data, dx.data);
  if (!status) status = weir_stage_finish(ctx, out, false, &dx);
  weir_staged_release(&dy);
  weir_staged_release(&x);
  weir_staged_release(&y);
  weir_staged_release(&dx);
  return status;
}

// ---- GPU ----

WEIR_CUDA_SOURCE(lrn);

typedef struct gpu_state_t {
  weir_lrn_t lrn;  // first: make_lrn reads it
  weir_cuda_function_t function;
} gpu_state_t;

static weir_status_t* find(const weir_kernel_init_t* init, const char* name, gpu_state_t* s) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n", weir_cuda_type_name(init->node->output_types[0]));
  return weir_cuda_build(init->device, &text, weir_cuda_source_lrn, name, &s->function);
}

static weir_status_t* lrn_gpu_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(lrn_init(init, state));
  return find(init, "lrn", state);
}

static weir_status_t* lrn_grad_gpu_init(const weir_kernel_init_t* init, void* state) {
  enum { MAX_SHARED_RADIUS = 64 };
  const gpu_state_t* s = state;
  WEIR_TRY(lrn_init(init, state));
  return find(init, s->lrn.radius > MAX_SHARED_RADIUS ? "lrn_grad_far" : "lrn_grad", state);
}

static weir_status_t* lrn_gpu(weir_kernel_ctx_t* ctx) {
  const gpu_state_t* s = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out;
  if (in->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "in must be 4-dimensional");
  weir_lrn_t lrn = make_lrn(ctx, in);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  if (in->count == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, in->count);
  return weir_cuda_launch(ctx->device, s->function, &size,
                          WEIR_CUDA_ARGS(&lrn, (void*)&in->data, &out->data));
}

static weir_status_t* lrn_grad_gpu(weir_kernel_ctx_t* ctx) {
  const gpu_state_t* s = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 1);
  void *dy = weir_kernel_input(ctx, 0)->data, *y = weir_kernel_input(ctx, 2)->data;
  weir_tensor_t* out;
  WEIR_TRY(check_grad(ctx));
  weir_lrn_t lrn = make_lrn(ctx, in);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  if (in->count == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, in->count);
  return weir_cuda_launch(ctx->device, s->function, &size,
                          WEIR_CUDA_ARGS(&lrn, &dy, (void*)&in->data, &y, &out->data));
}

#define KERNEL(NAME)                                                               \
  (const weir_kernel_def_t[]) {                                                    \
    {WEIR_DEVICE_CPU, .types = LRN_TYPES, .compute = NAME##_cpu, .init = lrn_init, \
     .state_size = sizeof(weir_lrn_t)},                                            \
        {WEIR_DEVICE_GPU, .types = LRN_TYPES ", bfloat16", .compute = NAME##_gpu,  \
         .init = NAME##_gpu_init, .state_size = sizeof(gpu_state_t)},              \
    {                                                                              \
      0                                                                            \
    }                                                                              \
  }

const weir_op_module_t weir_ops_nn_lrn = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "LRN",
         .mixed = WEIR_MIXED_INFER,
         .summary =
             "Divides each channel by the squares of its neighbours: local response normalisation",
         .attrs = LRN_ATTRS,
         .inputs = "input: T",
         .outputs = "output: T",
         .infer_shape = lrn_shape,
         .build_grad = lrn_grad,
         .kernels = KERNEL(lrn)},
        {.name = "LRNGrad",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of LRN",
         .attrs = LRN_ATTRS,
         .inputs = "input_grads: T; input_image: T; output_image: T",
         .outputs = "output: T",
         .infer_shape = lrn_grad_shape,
         .kernels = KERNEL(lrn_grad)},
        {0}}};
