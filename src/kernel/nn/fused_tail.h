// fused_tail.h — What follows a product or convolution within one fused op: a bias or a
// normalisation, an addend, an activation. Thread-safe.
#ifndef WEIR_KERNEL_NN_FUSED_TAIL_H_
#define WEIR_KERNEL_NN_FUSED_TAIL_H_

#include "kernel/elementwise/elementwise.h"
#include "kernel/nn/activation.h"
#include "op/kernel.h"

typedef enum weir_tail_function_t {
  WEIR_TAIL_NONE = 0,
  WEIR_TAIL_RELU,
  WEIR_TAIL_RELU6,
  WEIR_TAIL_ELU,
  WEIR_TAIL_LEAKY_RELU,
  WEIR_TAIL_TANH,
  WEIR_TAIL_SIGMOID,
  WEIR_TAIL_GELU_APPROXIMATE,
  WEIR_TAIL_GELU_EXACT,
} weir_tail_function_t;

// Immutable after init.
typedef struct weir_fused_tail_t {
  bool is_batch_norm;  // arguments: scale, offset, mean, variance; else one: the bias
  bool has_add;        // one argument more, of the shape of the output
  weir_tail_function_t function;
  float alpha;    // of LEAKY_RELU
  float epsilon;  // of the batch normalisation
} weir_fused_tail_t;

// Reads the attributes fused_ops, epsilon and leakyrelu_alpha. INVALID_ARGUMENT when there is none
// or |arg_count| is not what it takes, UNIMPLEMENTED for a combination without code.
WEIR_MUST_USE weir_status_t* weir_fused_tail_init(const weir_kernel_init_t* init, int arg_count,
                                                  weir_fused_tail_t* out_tail);

// Whether GPUs compute it: a bias, and Relu or nothing after it.
bool weir_fused_tail_is_on_gpu(const weir_fused_tail_t* tail);
// The same of the attribute fused_ops: for whoever makes a node.
bool weir_fused_ops_are_on_gpu(const weir_view_t* names, size_t count);

// INVALID_ARGUMENT when the vectors among the arguments are none of |channels| elements.
WEIR_MUST_USE weir_status_t* weir_fused_tail_check(weir_kernel_ctx_t* ctx,
                                                   const weir_fused_tail_t* tail, int first_arg,
                                                   int64_t channels);

typedef struct weir_tail_run_t {
  int first_arg;       // input of the op where the tail's arguments begin
  weir_dtype_t dtype;  // of |y|: float or double
  int64_t rows, channels;
  bool is_nchw;  // the addend's format; |y| has channels last
  void* y;       // changed in place
} weir_tail_run_t;
WEIR_MUST_USE weir_status_t* weir_fused_tail_apply(weir_kernel_ctx_t* ctx,
                                                   const weir_fused_tail_t* tail,
                                                   const weir_tail_run_t* run);

#endif  // WEIR_KERNEL_NN_FUSED_TAIL_H_
