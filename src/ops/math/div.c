// div.c — RealDiv, Div, FloorDiv, TruncateDiv, DivNoNan: quotients with broadcasting. Integers by
// zero are an error.
#include "ops/math/common.h"

// dx = dy / y, dy' = dy * ((-x / y) / y), by the op's own division.
static weir_status_t* grad_by(weir_grad_ctx_t* g, const char* division) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t x = conj_input(g, 0);
  weir_edge_t y = conj_input(g, 1);
  weir_edge_t ratio = node2(g, division, node2(g, division, weir_grad_neg(g, x), y), y);
  return set_broadcast(g, node2(g, division, dy, y), weir_grad_mul(g, dy, ratio));
}

static weir_status_t* real_div_grad(weir_grad_ctx_t* g) { return grad_by(g, "RealDiv"); }
static weir_status_t* div_no_nan_grad(weir_grad_ctx_t* g) { return grad_by(g, "DivNoNan"); }
static weir_status_t* div_grad(weir_grad_ctx_t* g) {
  return grad_by(
      g, weir_dtype_is_integer(weir_attrs_type(weir_grad_attrs(g), "T")) ? "Div" : "RealDiv");
}

static weir_status_t* div_simplify(weir_simplify_ctx_t* ctx) {
  return weir_simplify_is_all(ctx, 1, 1) ? weir_simplify_to_input(ctx, 0) : NULL;
}

WEIR_BINARY_INIT(div_init, DIV)
WEIR_BINARY_INIT(floor_div_init, FLOOR_DIV)
WEIR_BINARY_INIT(truncate_div_init, TRUNCATE_DIV)
WEIR_BINARY_INIT(div_no_nan_init, DIV_NO_NAN)

#define DIV_TYPES                                                                            \
  "T: "                                                                                      \
  "{bfloat16,half,float,double,uint8,int8,uint16,int16,int32,uint32,uint64,int64,complex64," \
  "complex128}"

const weir_op_module_t weir_ops_math_div = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RealDiv",
         .mixed = WEIR_MIXED_INFER,
         .attrs = DIV_TYPES,
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "x / y of real or complex numbers",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = real_div_grad,
         .simplify = div_simplify,
         .kernels = WEIR_BINARY_KERNELS(div_init,
                                        "T: bfloat16, half, float, double, complex64, complex128")},
        {.name = "Div",
         .mixed = WEIR_MIXED_INFER,
         .attrs = DIV_TYPES,
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "x / y; integers are truncated",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = div_grad,
         .simplify = div_simplify,
         .kernels = WEIR_BINARY_KERNELS(div_init, NULL)},
        {.name = "FloorDiv",
         .mixed = WEIR_MIXED_INFER,
         .attrs = DIV_TYPES,
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "floor(x / y)",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = weir_grad_fn_none,
         .kernels = WEIR_BINARY_KERNELS(floor_div_init, CPU_REAL_NUMBER)},
        {.name = "TruncateDiv",
         .attrs = DIV_TYPES,
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "x / y rounded towards zero",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = weir_grad_fn_none,
         .kernels = WEIR_BINARY_KERNELS(truncate_div_init, CPU_REAL_NUMBER)},
        {.name = "DivNoNan",
         .attrs = "T: {half,float,bfloat16,double,complex64,complex128}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "x / y, and 0 where y is 0",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = div_no_nan_grad,
         .kernels = WEIR_BINARY_KERNELS(div_no_nan_init, NULL)},
        {0}}};
