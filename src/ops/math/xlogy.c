// xlogy.c — Xlogy, Xlog1py, Xdivy: products that are 0 where x is, whatever the other factor.
#include "ops/math/common.h"

// 1 where x is not 0, in x's type.
static weir_edge_t non_zero(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0);
  return cast_to(g, node2(g, "NotEqual", x, weir_grad_scalar(g, x, 0)), weir_grad_dtype(g, x));
}

static weir_status_t* set_partials(weir_grad_ctx_t* g, weir_edge_t by_x, weir_edge_t by_y) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  return set_broadcast(g, weir_grad_mul(g, by_x, dz), weir_grad_mul(g, by_y, dz));
}

static weir_status_t* xlogy_grad(weir_grad_ctx_t* g) {
  weir_edge_t y = weir_grad_input(g, 1);
  return set_partials(g, node2(g, "Xlogy", non_zero(g), y),
                      node2(g, "Xdivy", weir_grad_input(g, 0), y));
}

static weir_status_t* xlog1py_grad(weir_grad_ctx_t* g) {
  weir_edge_t y = weir_grad_input(g, 1);
  weir_edge_t next = node2(g, "AddV2", y, weir_grad_scalar(g, y, 1));
  return set_partials(g, node2(g, "Xlog1py", non_zero(g), y),
                      node2(g, "Xdivy", weir_grad_input(g, 0), next));
}

static weir_status_t* xdivy_grad(weir_grad_ctx_t* g) {
  weir_edge_t y = weir_grad_input(g, 1);
  weir_edge_t by_y =
      node2(g, "Xdivy", weir_grad_neg(g, weir_grad_input(g, 0)), node1(g, "Square", y));
  return set_partials(g, node2(g, "Xdivy", non_zero(g), y), by_y);
}

WEIR_BINARY_INIT(xlogy_init, XLOGY)
WEIR_BINARY_INIT(xlog1py_init, XLOG1PY)
WEIR_BINARY_INIT(xdivy_init, XDIVY)
WEIR_BINARY_INIT(next_after_init, NEXT_AFTER)

// nextafter(x1, x2) moves with x1.
static weir_status_t* next_after_grad(weir_grad_ctx_t* g) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t zeros = node1(g, "ZerosLike", dz);
  return set_broadcast(g, dz, zeros);
}

#define XLOGY_TYPES "{half,bfloat16,float,double,complex64,complex128}"

const weir_op_module_t weir_ops_math_xlogy = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        BINARY_OP("Xlogy", XLOGY_TYPES, NONE, "x log(y), and 0 where x is 0", 0, xlogy_grad,
                  xlogy_init, NULL),
        BINARY_OP("Xlog1py", XLOGY_TYPES, NONE, "x log(1 + y), and 0 where x is 0", 0, xlog1py_grad,
                  xlog1py_init, NULL),
        BINARY_OP("Xdivy", XLOGY_TYPES, NONE, "x / y, and 0 where x is 0", 0, xdivy_grad,
                  xdivy_init, NULL),
        {.name = "NextAfter",
         .attrs = "T: {double,float} = DT_FLOAT",
         .inputs = "x1: T; x2: T",
         .outputs = "output: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The number after x1 towards x2",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = next_after_grad,
         .kernels = WEIR_BINARY_KERNELS(next_after_init, NULL)},
        {0}}};
