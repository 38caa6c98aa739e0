// einsum.h — Sums of products over labelled axes: the equation, and its value for one or two
// tensors.
#ifndef WEIR_KERNEL_GEMM_EINSUM_H_
#define WEIR_KERNEL_GEMM_EINSUM_H_

#include "kernel/elementwise/cuda_elementwise.h"
#include "kernel/move/move_op.h"
#include "kernel/reduce/cuda_reduce.h"
#include "op/kernel.h"

// Subscripts of one tensor; the ellipsis is told by its place.
typedef struct weir_einsum_subscripts_t {
  char text[WEIR_MAX_RANK + 1];  // labels, without the ellipsis
  int count;
  int ellipsis;  // labels before it; -1 without one
} weir_einsum_subscripts_t;

typedef struct weir_einsum_equation_t {
  weir_einsum_subscripts_t inputs[2];
  int input_count;
  weir_einsum_subscripts_t output;
} weir_einsum_equation_t;

// Reads the "equation" of |node|. INVALID_ARGUMENT when it is malformed, or names another number of
// inputs than |node| has.
WEIR_MUST_USE weir_status_t* weir_einsum_parse(const weir_node_def_t* node,
                                               weir_einsum_equation_t* out);

// The state of kernels.
typedef struct weir_einsum_t {
  weir_move_state_t move;  // of a GPU, as the next two; first: move_op.h looks for it there
  weir_cuda_reduce_t sum;
  weir_cuda_elementwise_t mul;
  weir_einsum_equation_t equation;
} weir_einsum_t;
// Reads the equation, and finds a GPU's functions.
weir_status_t* weir_einsum_init(const weir_kernel_init_t* init, void* state);
// Sets output 0 to the value of the equation for the inputs. INVALID_ARGUMENT when ranks or
// dimensions do not fit.
weir_status_t* weir_einsum_run(weir_kernel_ctx_t* ctx);

#endif  // WEIR_KERNEL_GEMM_EINSUM_H_
