// activation_op.c — Kernels of activation ops over the runs of activation.h.
#include "kernel/nn/activation_op.h"

typedef struct job_t {
  const weir_activation_op_t* op;
  size_t size;  // of an element
  const char* dy;
  const char* x;
  char* out;
} job_t;

static void forward_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  size_t at = (size_t)begin * job->size;
  job->op->forward(job->x + at, job->out + at, end - begin, job->op->alpha);
}

static void backward_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  size_t at = (size_t)begin * job->size;
  job->op->backward(job->dy + at, job->x + at, job->out + at, end - begin, job->op->alpha);
}

weir_status_t* weir_activation_op_init(const weir_kernel_init_t* init, weir_activation_t activation,
                                       float alpha, weir_activation_op_t* out_op) {
  weir_dtype_t dtype = weir_attrs_type(init->node->attrs, "T");
  *out_op = (weir_activation_op_t){.activation = activation,
                                   .alpha = alpha,
                                   .forward = weir_activation_find(activation, dtype),
                                   .backward = weir_activation_grad_find(activation, dtype)};
  if (out_op->forward) return NULL;
  return WEIR_STATUS(INTERNAL, "%s has no function for %s", init->node->op_name,
                     weir_dtype_name(dtype));
}

weir_status_t* weir_activation_op_forward(weir_kernel_ctx_t* ctx) {
  const weir_activation_op_t* op = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  job_t job = {.op = op, .size = weir_dtype_size(weir_tensor_type(x)), .x = x->data};
  int64_t count = x->count;
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  job.out = out->data;
  if (count > 0)
    weir_pool_for(weir_kernel_pool(ctx), count, weir_activation_cost(op->activation), forward_range,
                  &job);
  return NULL;
}

weir_status_t* weir_activation_shape_error(const char* name, const char* op, const char* dy,
                                           const char* x) {
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Inputs to operation %s of type %s must have the same size and shape.  "
                     "Input 0: %s != input 1: %s",
                     name, op, dy, x);
}

weir_status_t* weir_activation_op_check(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *x = weir_kernel_input(ctx, 1);
  if (weir_tensor_same_shape(dy, x)) return NULL;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  return weir_activation_shape_error(ctx->node->name, ctx->node->op_name,
                                     weir_tensor_shape_text(dy, a), weir_tensor_shape_text(x, b));
}

weir_status_t* weir_activation_op_backward(weir_kernel_ctx_t* ctx) {
  const weir_activation_op_t* op = ctx->state;
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *x = weir_kernel_input(ctx, 1);
  WEIR_TRY(weir_activation_op_check(ctx));
  job_t job = {
      .op = op, .size = weir_dtype_size(weir_tensor_type(x)), .dy = dy->data, .x = x->data};
  int64_t count = x->count;
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, dy->rank, dy->dims, &out));
  job.out = out->data;
  if (count > 0)
    weir_pool_for(weir_kernel_pool(ctx), count, weir_activation_cost(op->activation),
                  backward_range, &job);
  return NULL;
}
