// pow.c — Pow: x to the power of y, with broadcasting.
#include "ops/math/common.h"

// conj(z) log(x), and 0 where the logarithm has no sensible value: x <= 0, or 0 for complex
// numbers.
static weir_edge_t log_part(weir_grad_ctx_t* g, weir_edge_t x) {
  bool is_complex = weir_dtype_is_complex(weir_grad_dtype(g, x));
  weir_edge_t mask = node2(g, is_complex ? "NotEqual" : "Greater", x, weir_grad_scalar(g, x, 0));
  weir_edge_t safe = node3(g, "Select", mask, x, node1(g, "OnesLike", x));
  return node3(g, "Select", mask, node1(g, "Log", safe), node1(g, "ZerosLike", x));
}

static weir_status_t* pow_grad(weir_grad_ctx_t* g) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t x = conj_input(g, 0);
  weir_edge_t y = conj_input(g, 1);
  weir_edge_t power = node2(g, "Pow", x, node2(g, "Sub", y, weir_grad_scalar(g, y, 1)));
  weir_edge_t dx = weir_grad_mul(g, weir_grad_mul(g, dz, y), power);
  weir_edge_t dy = weir_grad_mul(g, weir_grad_mul(g, dz, conj_output(g)), log_part(g, x));
  return set_broadcast(g, dx, dy);
}

// x^1 = x, x^2 = Square(x) where the exponent does not broadcast x.
static weir_status_t* pow_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_simplify_is_all(ctx, 1, 1)) return weir_simplify_to_input(ctx, 0);
  if (!weir_simplify_is_all(ctx, 1, 2)) return NULL;
  const weir_shape_t* base = weir_build_shape(ctx->builder, ctx->inputs[0]);
  const weir_shape_t* exponent = weir_build_shape(ctx->builder, ctx->inputs[1]);
  bool is_plain =
      exponent->rank == 0 || (weir_shape_is_full(base) && weir_shape_equal(base, exponent));
  if (is_plain)
    ctx->replacement =
        weir_build(ctx->builder, "Square", WEIR_EDGES(ctx->inputs[0]), WEIR_NO_ATTRS);
  return NULL;
}

WEIR_BINARY_INIT(pow_init, POW)

const weir_op_module_t weir_ops_math_pow = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Pow",
         .mixed = WEIR_MIXED_DENY,
         .attrs = "T: {bfloat16,float,half,double,int8,int16,int32,int64,complex64,complex128}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "x to the power of y; a negative integer power of integers is an error",
         .infer_shape = weir_shape_fn_broadcast,
         .cost = weir_cost_fn_many,
         .build_grad = pow_grad,
         .simplify = pow_simplify,
         .kernels = WEIR_BINARY_KERNELS(pow_init, NULL)},
        {0}}};
