// cwise.c — Kernels of elementwise ops: function lookup at init, forwarding and broadcasting at run
// time.
#include "kernel/elementwise/cwise.h"

weir_status_t* weir_unary_init(const weir_kernel_init_t* init, void* state, weir_unary_op_t op) {
  weir_unary_state_t* s = state;
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  s->fn = weir_unary_find(op, dtype);
  s->cost = weir_unary_cost(op);
  s->size = weir_dtype_size(dtype);
  s->out_size = weir_dtype_size(weir_dtype_base(init->node->output_types[0]));
  if (s->fn) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "%s of type %s has no CPU kernel", init->node->op_name,
                     weir_dtype_name(dtype));
}

weir_status_t* weir_binary_init(const weir_kernel_init_t* init, void* state, weir_binary_op_t op) {
  weir_binary_state_t* s = state;
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  s->fn = weir_binary_find(op, dtype);
  s->op = op;
  s->cost = weir_binary_cost(op);
  s->size = weir_dtype_size(dtype);
  s->out_size = weir_dtype_size(weir_dtype_base(init->node->output_types[0]));
  if (s->fn) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "%s of type %s has no CPU kernel", init->node->op_name,
                     weir_dtype_name(dtype));
}

weir_status_t* weir_unary_compute(weir_kernel_ctx_t* ctx) {
  const weir_unary_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const void* data = x->data;
  int64_t n = x->count;
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &y));
  weir_unary_apply(weir_kernel_pool(ctx), s->fn, data, s->size, y->data, s->out_size, n, s->cost);
  return NULL;
}

weir_status_t* weir_cwise_broadcast(weir_shape_view_t x, weir_shape_view_t y,
                                    weir_broadcast_t* out_plan) {
  char x_text[WEIR_SHAPE_TEXT_SIZE];
  char y_text[WEIR_SHAPE_TEXT_SIZE];
  if (!weir_broadcast_plan(x, y, out_plan)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                       weir_shape_text(x.rank, x.dims, x_text),
                       weir_shape_text(y.rank, y.dims, y_text));
  }
  if (out_plan->rank < 0) {
    return WEIR_STATUS(UNIMPLEMENTED, "Broadcast between %s and %s is not supported yet.",
                       weir_shape_text(x.rank, x.dims, x_text),
                       weir_shape_text(y.rank, y.dims, y_text));
  }
  return NULL;
}

weir_status_t* weir_kernel_broadcast(const weir_kernel_ctx_t* ctx, int i, int j,
                                     weir_broadcast_t* out_plan) {
  return weir_cwise_broadcast(weir_shape_view_of(weir_kernel_input(ctx, i)),
                              weir_shape_view_of(weir_kernel_input(ctx, j)), out_plan);
}

weir_status_t* weir_cwise_flat_error(weir_shape_view_t x, weir_shape_view_t y) {
  int64_t counts[2] = {1, 1};
  for (int i = 0; i < x.rank; ++i) counts[0] *= x.dims[i];
  for (int i = 0; i < y.rank; ++i) counts[1] *= y.dims[i];
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "The two arguments to a cwise op must have same number of elements, got %lld and %lld",
      (long long)counts[0], (long long)counts[1]);
}

weir_status_t* weir_cwise_select_error(weir_shape_view_t condition, weir_shape_view_t t,
                                       weir_shape_view_t e) {
  char x[WEIR_SHAPE_TEXT_SIZE];
  char y[WEIR_SHAPE_TEXT_SIZE];
  char z[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "condition %s, then %s, and else %s must be broadcastable",
                     weir_shape_text(condition.rank, condition.dims, x),
                     weir_shape_text(t.rank, t.dims, y), weir_shape_text(e.rank, e.dims, z));
}

// Runs over |n| elements in the shape of input |like|, in the memory of an input that has that
// shape and is free.
static weir_status_t* compute_run(weir_kernel_ctx_t* ctx, int like, int64_t n, weir_span_t span) {
  const weir_binary_state_t* s = ctx->state;
  const weir_tensor_t* shape = weir_kernel_input(ctx, like);
  const void* x = weir_kernel_input(ctx, 0)->data;
  const void* y = weir_kernel_input(ctx, 1)->data;
  int from = like;
  if (span == WEIR_SPAN_BOTH && !weir_tensor_is_sole(ctx->inputs[like].tensor)) from = 1 - like;
  weir_tensor_t* z = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, from, 0, shape->rank, shape->dims, &z));
  weir_binary_run_t run = {.fn = s->fn,
                           .x = x,
                           .y = y,
                           .z = z->data,
                           .size = s->size,
                           .out_size = s->out_size,
                           .cost = s->cost};
  bool is_good = weir_binary_apply(weir_kernel_pool(ctx), &run, n, span);
  return WEIR_LIKELY(is_good) ? NULL : weir_binary_error(s->op);
}

static weir_status_t* compute_broadcast(weir_kernel_ctx_t* ctx) {
  const weir_binary_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  weir_broadcast_t plan;
  WEIR_TRY(weir_kernel_broadcast(ctx, 0, 1, &plan));
  weir_binary_run_t run = {.fn = s->fn,
                           .x = x->data,
                           .y = y->data,
                           .size = s->size,
                           .out_size = s->out_size,
                           .cost = s->cost};
  weir_tensor_t* z = NULL;
  // An operand that repeats is read again after its elements would have been overwritten.
  if (x->count == plan.count) {
    WEIR_TRY(weir_kernel_forward(ctx, 0, 0, plan.out_rank, plan.out_dims, &z));
  } else if (y->count == plan.count) {
    WEIR_TRY(weir_kernel_forward(ctx, 1, 0, plan.out_rank, plan.out_dims, &z));
  } else {
    WEIR_TRY(weir_kernel_output(ctx, 0, plan.out_rank, plan.out_dims, &z));
  }
  run.z = z->data;
  bool is_good = weir_broadcast_apply(weir_kernel_pool(ctx), &plan, &run);
  return is_good ? NULL : weir_binary_error(s->op);
}

weir_status_t* weir_binary_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  if (weir_tensor_same_shape(x, y)) return compute_run(ctx, 0, x->count, WEIR_SPAN_BOTH);
  if (y->rank == 0) return compute_run(ctx, 0, x->count, WEIR_SPAN_X);
  if (x->rank == 0) return compute_run(ctx, 1, y->count, WEIR_SPAN_Y);
  return compute_broadcast(ctx);
}

weir_status_t* weir_binary_flat_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  if (WEIR_UNLIKELY(x->count != y->count))
    return weir_cwise_flat_error(weir_shape_view_of(x), weir_shape_view_of(y));
  return compute_run(ctx, 0, x->count, WEIR_SPAN_BOTH);
}
