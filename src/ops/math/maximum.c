// maximum.c — Maximum, Minimum.
#include "ops/math/common.h"

// The gradient goes to the operand chosen; to x where both are equal.
static weir_status_t* chosen_grad(weir_grad_ctx_t* g, const char* comparison) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t zero = weir_grad_scalar(g, dz, 0);
  weir_edge_t mask = node2(g, comparison, weir_grad_input(g, 0), weir_grad_input(g, 1));
  return set_broadcast(g, node3(g, "SelectV2", mask, dz, zero),
                       node3(g, "SelectV2", mask, zero, dz));
}

static weir_status_t* maximum_grad(weir_grad_ctx_t* g) { return chosen_grad(g, "GreaterEqual"); }
static weir_status_t* minimum_grad(weir_grad_ctx_t* g) { return chosen_grad(g, "LessEqual"); }

WEIR_BINARY_INIT(maximum_init, MAXIMUM)
WEIR_BINARY_INIT(minimum_init, MINIMUM)

#define ORDERED_TYPES \
  "{bfloat16,half,float,double,int8,uint8,int16,uint16,int32,uint32,int64,uint64}"

const weir_op_module_t weir_ops_math_maximum = {
    .file = __FILE__,
    .ops =
        (const weir_op_def_t[]){BINARY_OP("Maximum", ORDERED_TYPES, CLEAR, "The larger of x and y",
                                          0, maximum_grad, maximum_init, NULL),
                                BINARY_OP("Minimum", ORDERED_TYPES, CLEAR, "The smaller of x and y",
                                          0, minimum_grad, minimum_init, NULL),
                                {0}}};
