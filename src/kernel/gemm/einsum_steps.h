// einsum_steps.h — What Einsum is made of, on the device of a kernel whose state is a
// weir_einsum_t: strided copies, sums of rows and batches of products. Private to kernel/gemm/.
#ifndef WEIR_KERNEL_GEMM_EINSUM_STEPS_H_
#define WEIR_KERNEL_GEMM_EINSUM_STEPS_H_

#include "kernel/gemm/einsum.h"
#include "kernel/gemm/gemm.h"

// As weir_move_box and weir_move_zero.
WEIR_MUST_USE weir_status_t* weir_einsum_move(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, int rank,
                                              weir_move_dim_t* dims, const void* src, void* dst);
WEIR_MUST_USE weir_status_t* weir_einsum_zero(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, void* dst,
                                              int64_t count);
// The sums of |m| rows of |k| elements.
WEIR_MUST_USE weir_status_t* weir_einsum_sum(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, int64_t m,
                                             int64_t k, const void* src, void* dst);
// |count| products, whose matrices lie one after the other.
WEIR_MUST_USE weir_status_t* weir_einsum_multiply(weir_kernel_ctx_t* ctx,
                                                  const weir_gemm_args_t* args, int64_t count);

#endif  // WEIR_KERNEL_GEMM_EINSUM_STEPS_H_
