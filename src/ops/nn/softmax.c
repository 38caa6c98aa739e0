// softmax.c — Softmax and LogSoftmax.
#include "kernel/nn/softmax.h"

#include "kernel/move/staging.h"
#include "kernel/nn/cuda_softmax.h"
#include "op/cost.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

static weir_status_t* softmax_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), 1));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

static weir_edge_t sum_rows(weir_grad_ctx_t* g, weir_edge_t x) {
  weir_edge_t axis = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  return weir_grad_node_with(g, "Sum", WEIR_EDGES(x, axis),
                             WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
}

static weir_status_t* softmax_grad(weir_grad_ctx_t* g) {  // (dy - sum(dy * y)) * y
  weir_edge_t y = weir_grad_output(g, 0), dy = weir_grad_dy(g, 0);
  weir_edge_t mean = sum_rows(g, weir_grad_mul(g, dy, y));
  return weir_grad_set(g, 0, weir_grad_mul(g, weir_grad_node(g, "Sub", WEIR_EDGES(dy, mean)), y));
}

static weir_status_t* log_softmax_grad(weir_grad_ctx_t* g) {  // dy - sum(dy) * exp(y)
  weir_edge_t dy = weir_grad_dy(g, 0),
              p = weir_grad_node(g, "Exp", WEIR_EDGES(weir_grad_output(g, 0)));
  return weir_grad_set(
      g, 0, weir_grad_node(g, "Sub", WEIR_EDGES(dy, weir_grad_mul(g, sum_rows(g, dy), p))));
}

static weir_status_t* compute(weir_kernel_ctx_t* ctx, bool is_log) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_staged_t x = {0}, y = {0};
  weir_tensor_t* out;
  if (in->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "logits must have >= 1 dimension, got []");
  int64_t columns = in->dims[in->rank - 1], rows = columns > 0 ? in->count / columns : 0;
  weir_dtype_t type = weir_compute_type(weir_tensor_type(in));
  weir_status_t* status = weir_stage_input(ctx, in, false, &x);
  if (!status) status = weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out);
  if (!status) status = weir_stage_output(ctx, out, false, &y);
  if (status) goto done;
  weir_softmax(weir_kernel_pool(ctx), type, rows, columns, x.data, y.data, is_log);
  status = weir_stage_finish(ctx, out, false, &y);
done:
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* softmax_cpu(weir_kernel_ctx_t* ctx) { return compute(ctx, false); }
static weir_status_t* log_softmax_cpu(weir_kernel_ctx_t* ctx) { return compute(ctx, true); }

// ---- GPU ----

static weir_status_t* find(const weir_kernel_init_t* init, weir_softmax_kind_t kind, void* state) {
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  return weir_cuda_softmax_find(init->device, kind, dtype, WEIR_DTYPE_INT32, state);
}
static weir_status_t* softmax_gpu_init(const weir_kernel_init_t* init, void* state) {
  return find(init, WEIR_SOFTMAX, state);
}
static weir_status_t* log_softmax_gpu_init(const weir_kernel_init_t* init, void* state) {
  return find(init, WEIR_LOG_SOFTMAX, state);
}

static weir_status_t* softmax_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out;
  if (in->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "logits must have >= 1 dimension, got []");
  int64_t columns = in->dims[in->rank - 1];
  weir_softmax_rows_t rows = {.x = in->data,
                              .rows = columns > 0 ? in->count / columns : 0,
                              .columns = columns,
                              .x_row = columns,
                              .x_column = 1};
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  rows.y = out->data;
  return weir_cuda_softmax(ctx->device, ctx->state, &rows);
}

#define KERNELS(name)                                                      \
  (const weir_kernel_def_t[]) {                                            \
    {WEIR_DEVICE_CPU, .compute = name##_cpu},                              \
        {WEIR_DEVICE_GPU, .compute = softmax_gpu, .init = name##_gpu_init, \
         .state_size = sizeof(weir_cuda_softmax_t)},                       \
    {                                                                      \
      0                                                                    \
    }                                                                      \
  }

const weir_op_module_t weir_ops_nn_softmax = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "Softmax",
                                    .mixed = WEIR_MIXED_DENY,
                                    .summary = "exp(logits) normalised along the last dimension",
                                    .attrs = "T: {half, bfloat16, float, double}",
                                    .inputs = "logits: T",
                                    .outputs = "softmax: T",
                                    .infer_shape = softmax_shape,
                                    .cost = weir_cost_fn_many,
                                    .build_grad = softmax_grad,
                                    .kernels = KERNELS(softmax)},
                                   {.name = "LogSoftmax",
                                    .mixed = WEIR_MIXED_DENY,
                                    .summary = "Logarithm of Softmax",
                                    .attrs = "T: {half, bfloat16, float, double}",
                                    .inputs = "logits: T",
                                    .outputs = "logsoftmax: T",
                                    .infer_shape = softmax_shape,
                                    .cost = weir_cost_fn_many,
                                    .build_grad = log_softmax_grad,
                                    .kernels = KERNELS(log_softmax)},
                                   {0}}};
