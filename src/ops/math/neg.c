// neg.c — Neg: a row of unary_ops.inc with an algebra of its own.
#include "ops/math/common.h"

static weir_status_t* neg_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_neg(g, weir_grad_dy(g, 0)));
}

// -(-x) = x
static weir_status_t* neg_simplify(weir_simplify_ctx_t* ctx) {
  weir_builder_t* b = ctx->builder;
  const weir_node_def_t* producer = b->vtable->node(b, ctx->inputs[0]);
  if (producer && producer->op == ctx->node->op)
    ctx->replacement = b->vtable->input(b, ctx->inputs[0], 0);
  return NULL;
}

WEIR_UNARY_INIT(neg_init, NEG)

const weir_op_module_t weir_ops_math_neg = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Neg",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: {bfloat16,half,float,double,int8,int16,int32,int64,complex64,complex128}",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "-x",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = neg_grad,
         .simplify = neg_simplify,
         .kernels = WEIR_UNARY_KERNELS(neg_init, NULL)},
        {0}}};
