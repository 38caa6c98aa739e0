// cuda_formula.h — Formulas of elementwise operations as CUDA text, from the rows of unary_ops.inc
// and binary_ops.inc. Thread-safe.
//
// A formula is the value at |a|, or at |a| and |b|, which are of type ACC: the operands' type, or
// float for half and bfloat16. Before it come the words it is written in.
#ifndef WEIR_KERNEL_ELEMENTWISE_CUDA_FORMULA_H_
#define WEIR_KERNEL_ELEMENTWISE_CUDA_FORMULA_H_

#include "base/string.h"
#include "kernel/elementwise/elementwise.h"

// Appends the words: formula.cu, and the special functions.
void weir_cuda_put_words(weir_strbuf_t* out);
// NULL: no formula for operands of |dtype|.
const char* weir_cuda_unary_formula(weir_unary_op_t op, weir_dtype_t dtype);
const char* weir_cuda_binary_formula(weir_binary_op_t op, weir_dtype_t dtype);
// Of a cast that rounds to the nearest.
const char* weir_cuda_cast_formula(weir_dtype_t from, weir_dtype_t to);
// U of a formula on operands of |dtype|: an unsigned type in which integers of it wrap.
const char* weir_cuda_wrapping_name(weir_dtype_t dtype);

#endif  // WEIR_KERNEL_ELEMENTWISE_CUDA_FORMULA_H_
