// bitwise.c — BitwiseAnd, BitwiseOr, BitwiseXor, LeftShift, RightShift.
#include "ops/math/common.h"

WEIR_BINARY_INIT(and_init, BITWISE_AND)
WEIR_BINARY_INIT(or_init, BITWISE_OR)
WEIR_BINARY_INIT(xor_init, BITWISE_XOR)
WEIR_BINARY_INIT(left_shift_init, LEFT_SHIFT)
WEIR_BINARY_INIT(right_shift_init, RIGHT_SHIFT)

const weir_op_module_t weir_ops_math_bitwise = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        BINARY_OP("BitwiseAnd", INTEGER_TYPES, NONE, "x & y",
                  WEIR_OP_COMMUTATIVE | WEIR_OP_NO_GRADIENT, NULL, and_init, NULL),
        BINARY_OP("BitwiseOr", INTEGER_TYPES, NONE, "x | y",
                  WEIR_OP_COMMUTATIVE | WEIR_OP_NO_GRADIENT, NULL, or_init, NULL),
        BINARY_OP("BitwiseXor", INTEGER_TYPES, NONE, "x ^ y",
                  WEIR_OP_COMMUTATIVE | WEIR_OP_NO_GRADIENT, NULL, xor_init, NULL),
        BINARY_OP("LeftShift", INTEGER_TYPES, NONE, "x << y", WEIR_OP_NO_GRADIENT, NULL,
                  left_shift_init, NULL),
        BINARY_OP("RightShift", INTEGER_TYPES, NONE, "x >> y, with x's sign", WEIR_OP_NO_GRADIENT,
                  NULL, right_shift_init, NULL),
        {0}}};
