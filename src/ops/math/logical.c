// logical.c — LogicalAnd, LogicalOr, LogicalNot.
#include "ops/math/common.h"

// not not x = x
static weir_status_t* not_simplify(weir_simplify_ctx_t* ctx) {
  weir_builder_t* b = ctx->builder;
  const weir_node_def_t* producer = b->vtable->node(b, ctx->inputs[0]);
  if (producer && producer->op == ctx->node->op)
    ctx->replacement = b->vtable->input(b, ctx->inputs[0], 0);
  return NULL;
}

static weir_status_t* and_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_simplify_is_all(ctx, 1, 1)) return weir_simplify_to_input(ctx, 0);
  return weir_simplify_is_all(ctx, 0, 1) ? weir_simplify_to_input(ctx, 1) : NULL;
}

static weir_status_t* or_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_simplify_is_all(ctx, 1, 0)) return weir_simplify_to_input(ctx, 0);
  return weir_simplify_is_all(ctx, 0, 0) ? weir_simplify_to_input(ctx, 1) : NULL;
}

WEIR_BINARY_INIT(and_init, BITWISE_AND)
WEIR_BINARY_INIT(or_init, BITWISE_OR)
WEIR_UNARY_INIT(not_init, NOT)

#define LOGICAL_FLAGS (WEIR_OP_POINTWISE | WEIR_OP_NO_GRADIENT)

const weir_op_module_t weir_ops_math_logical = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "LogicalAnd",
                                    .inputs = "x: bool; y: bool",
                                    .outputs = "z: bool",
                                    .flags = LOGICAL_FLAGS | WEIR_OP_COMMUTATIVE,
                                    .summary = "Whether both are true",
                                    .infer_shape = weir_shape_fn_broadcast,
                                    .simplify = and_simplify,
                                    .kernels = WEIR_BINARY_KERNELS(and_init, NULL)},
                                   {.name = "LogicalOr",
                                    .inputs = "x: bool; y: bool",
                                    .outputs = "z: bool",
                                    .flags = LOGICAL_FLAGS | WEIR_OP_COMMUTATIVE,
                                    .summary = "Whether one is true",
                                    .infer_shape = weir_shape_fn_broadcast,
                                    .simplify = or_simplify,
                                    .kernels = WEIR_BINARY_KERNELS(or_init, NULL)},
                                   {.name = "LogicalNot",
                                    .inputs = "x: bool",
                                    .outputs = "y: bool",
                                    .flags = LOGICAL_FLAGS,
                                    .summary = "Whether x is false",
                                    .infer_shape = weir_shape_fn_unchanged,
                                    .simplify = not_simplify,
                                    .kernels = WEIR_UNARY_KERNELS(not_init, NULL)},
                                   {0}}};
