// mod.c — FloorMod, Mod, TruncateMod: remainders with broadcasting. Integers by zero are an error.
#include "ops/math/common.h"

// x - y floor(x / y): dx = dy, dy' = -dy floor(x / y).
static weir_status_t* floor_mod_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t quotient = node2(g, "FloorDiv", weir_grad_input(g, 0), weir_grad_input(g, 1));
  return set_broadcast(g, dy, weir_grad_mul(g, dy, weir_grad_neg(g, quotient)));
}

WEIR_BINARY_INIT(floor_mod_init, FLOOR_MOD)
WEIR_BINARY_INIT(truncate_mod_init, TRUNCATE_MOD)

const weir_op_module_t weir_ops_math_mod = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FloorMod",
         .attrs =
             "T: {int8,int16,int32,int64,uint8,uint16,uint32,uint64,bfloat16,half,float,double}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The remainder of x / y with the sign of y",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = floor_mod_grad,
         .kernels = WEIR_BINARY_KERNELS(floor_mod_init, NULL)},
        {.name = "Mod",
         .attrs = "T: {int32,int64,half,half,bfloat16,float,double}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The remainder of x / y with the sign of x",
         .infer_shape = weir_shape_fn_broadcast,
         .kernels = WEIR_BINARY_KERNELS(truncate_mod_init, "T: int32, int64, float, double")},
        {.name = "TruncateMod",
         .attrs = "T: {int32,int64,bfloat16,half,float,double}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The remainder of x / y with the sign of x",
         .infer_shape = weir_shape_fn_broadcast,
         .kernels = WEIR_BINARY_KERNELS(truncate_mod_init, "T: int32, int64, float, double")},
        {0}}};
