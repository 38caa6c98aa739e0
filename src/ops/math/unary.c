// unary.c — Elementwise ops of one input, from the rows of kernel/elementwise/unary_ops.inc:
// kernel, gradient and definition of each.
#include "kernel/elementwise/types.h"
#include "ops/math/common.h"

// ---- kernels: looked up by operation and type ----
#define UNARY(Op, NAME, ...) WEIR_UNARY_INIT(Op##_init, NAME)
#define FUNCTION(...)
#include "kernel/elementwise/unary_ops.inc"

// ---- gradients: the words their formulas are written in ----
#define X conj_input(g, 0)
#define Y conj_output(g)
#define DY weir_grad_dy(g, 0)
#define NODE(Op, ...) weir_grad_node(g, #Op, WEIR_EDGES(__VA_ARGS__))
#define NEG(a) weir_grad_neg(g, a)
#define MUL(a, b) weir_grad_mul(g, a, b)
#define CONST(value) weir_grad_scalar(g, weir_grad_input(g, 0), value)

#define GRAD_SCALE(Op, factor) \
  static weir_status_t* Op##_grad(weir_grad_ctx_t* g) { return set_scaled(g, factor); }
#define GRAD_DX(Op, dx) \
  static weir_status_t* Op##_grad(weir_grad_ctx_t* g) { return weir_grad_set(g, 0, dx); }
#define GRAD_NO_SLOPE(...)
#define GRAD_NO_GRADIENT(...)
#define UNARY(Op, NAME, name_, loops, form, result, ns, real, integer, complex, types_, mixed_, \
              text, slope, ...)                                                                 \
  GRAD_##slope(Op, __VA_ARGS__)
#define FUNCTION(...)
#include "kernel/elementwise/unary_ops.inc"

// ---- definitions ----
#define BUILDER_SCALE(Op) Op##_grad
#define BUILDER_DX(Op) Op##_grad
#define BUILDER_NO_SLOPE(Op) weir_grad_fn_none
#define BUILDER_NO_GRADIENT(Op) NULL
#define FLAGS_SCALE 0
#define FLAGS_DX 0
#define FLAGS_NO_SLOPE 0
#define FLAGS_NO_GRADIENT WEIR_OP_NO_GRADIENT
#define OUTPUT_SAME "y: T"
#define OUTPUT_BOOL "y: bool"
#define OUTPUT_BYTE "y: uint8"
#define UNARY(Op, NAME, name_, loops, form, result, ns, real, integer, complex, types_, mixed_, \
              text, slope, ...)                                                                 \
  {.name = #Op,                                                                                 \
   .attrs = "T: {" NAMES_##types_ "}",                                                          \
   .inputs = "x: T",                                                                            \
   .outputs = OUTPUT_##result,                                                                  \
   .flags = WEIR_OP_POINTWISE | FLAGS_##slope,                                                  \
   .mixed = WEIR_MIXED_##mixed_,                                                                \
   .summary = text,                                                                             \
   .infer_shape = weir_shape_fn_unchanged,                                                      \
   .cost = (ns) >= 2 ? weir_cost_fn_many : NULL,                                                \
   .build_grad = BUILDER_##slope(Op),                                                           \
   .kernels = WEIR_UNARY_KERNELS(Op##_init, "T: " NAMES_##loops)},
#define FUNCTION(...)

const weir_op_module_t weir_ops_math_unary = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
#include "kernel/elementwise/unary_ops.inc"
        {.name = "Inv",
         .mixed = WEIR_MIXED_INFER,  // Reciprocal's old name
         .attrs = "T: {" NAMES_SIGNED_COMPLEX "}",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "1 / x",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = Reciprocal_grad,
         .kernels = WEIR_UNARY_KERNELS(Reciprocal_init, "T: " NAMES_FLOATING_COMPLEX)},
        {0}}};
