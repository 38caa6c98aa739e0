// cost.c — How much nodes compute and touch, where their ops do not say it better.
#include "op/cost.h"

#include <math.h>

double weir_cost_dim(const weir_shape_t* shape, int i) {
  int at = i < 0 ? shape->rank + i : i;
  bool is_known = at >= 0 && at < shape->rank && shape->dims[at] >= 0;
  return is_known ? (double)shape->dims[at] : WEIR_COST_UNKNOWN_DIM;
}

double weir_cost_count(const weir_shape_t* shape) {
  double count = shape->rank < 0 ? WEIR_COST_UNKNOWN_DIM : 1;
  for (int i = 0; i < shape->rank; ++i) count *= weir_cost_dim(shape, i);
  return count;
}

double weir_cost_bytes(const weir_shape_t* shape, weir_dtype_t type) {
  weir_dtype_t base = weir_dtype_base(type);
  return weir_dtype_is_plain(base) ? weir_cost_count(shape) * (double)weir_dtype_size(base) : 0;
}

// Handing on what is there, or nothing at all.
static bool is_free(const weir_op_t* op) {
  return !op || op->role != WEIR_ROLE_NONE ||
         (op->flags & (WEIR_OP_CHEAP | WEIR_OP_PASS_THROUGH | WEIR_OP_SHAPE_ONLY));
}

static double sum(const weir_shape_t* const* shapes, const weir_dtype_t* types, int first,
                  int count) {
  double bytes = 0;
  for (int i = first; i < count; ++i) bytes += weir_cost_bytes(shapes[i], types[i]);
  return bytes;
}

static double largest(const weir_cost_ctx_t* ctx) {
  double most = 0;
  for (int i = 0; i < ctx->node->input_count; ++i)
    most = WEIR_MAX(most, weir_cost_count(ctx->inputs[i]));
  for (int i = 0; i < ctx->node->output_count; ++i)
    most = WEIR_MAX(most, weir_cost_count(ctx->outputs[i]));
  return most;
}

weir_cost_t weir_cost_of(const weir_cost_ctx_t* ctx) {
  const weir_node_def_t* node = ctx->node;
  weir_cost_t cost = {0};
  if (is_free(node->op)) return cost;
  cost.flops = largest(ctx);
  cost.bytes = sum(ctx->inputs, node->input_types, 0, node->input_count) +
               sum(ctx->outputs, node->output_types, 0, node->output_count);
  if (node->op->def && node->op->def->cost) node->op->def->cost(ctx, &cost);
  return cost;
}

void weir_cost_fn_outputs(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  const weir_node_def_t* node = ctx->node;
  cost->flops = 0;
  for (int i = 0; i < node->output_count; ++i) cost->flops += weir_cost_count(ctx->outputs[i]);
  cost->bytes = 2 * sum(ctx->outputs, node->output_types, 0, node->output_count);
}

void weir_cost_fn_updates(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  const weir_node_def_t* node = ctx->node;
  cost->flops = 0;
  for (int i = 1; i < node->input_count; ++i) cost->flops += weir_cost_count(ctx->inputs[i]);
  cost->bytes = 3 * sum(ctx->inputs, node->input_types, 1, node->input_count);
}

void weir_cost_fn_many(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  enum { OPERATIONS = 30 };
  (void)ctx;
  cost->flops *= OPERATIONS;
}

// Every product is one of a row with a column: k = sqrt(|a| |b| / |c|) in every batch, however the
// two are transposed.
void weir_cost_fn_matmul(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  double batches = 1;
  for (int i = 0; i + 2 < ctx->outputs[0]->rank; ++i) batches *= weir_cost_dim(ctx->outputs[0], i);
  double a = weir_cost_dim(ctx->inputs[0], -1) * weir_cost_dim(ctx->inputs[0], -2);
  double b = weir_cost_dim(ctx->inputs[1], -1) * weir_cost_dim(ctx->inputs[1], -2);
  double c = weir_cost_dim(ctx->outputs[0], -1) * weir_cost_dim(ctx->outputs[0], -2);
  cost->flops = 2 * batches * sqrt(a * b * c);
}
