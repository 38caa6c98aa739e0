// diagonals.h — Diagonals and bands of matrices on a GPU. Kernels that call these have a
// weir_cuda_function_t as state.
#ifndef WEIR_KERNEL_MOVE_DIAGONALS_H_
#define WEIR_KERNEL_MOVE_DIAGONALS_H_

#include "device/cuda/cuda.h"
#include "op/kernel.h"

// Matrices of |rows| x |columns|, whose diagonals |upper| down to |lower| are packed as rows of
// |length| elements. As diagonals.cu has it.
typedef struct weir_diagonals_t {
  int64_t lower, upper, rows, columns, length;
  int left_above, left_below;  // where short ones stand in their rows, else right
} weir_diagonals_t;

// The inits of the three, for elements of the type of the first output.
weir_status_t* weir_gpu_put_diagonals_init(const weir_kernel_init_t* init, void* state);
weir_status_t* weir_gpu_take_diagonals_init(const weir_kernel_init_t* init, void* state);
weir_status_t* weir_gpu_keep_band_init(const weir_kernel_init_t* init, void* state);

// |y| has the diagonals of |packed|, and elsewhere what |background| has, which may be |y|, or else
// the element of the host at |padding|.
WEIR_MUST_USE weir_status_t* weir_gpu_put_diagonals(const weir_kernel_ctx_t* ctx,
                                                    weir_diagonals_t diagonals,
                                                    const weir_tensor_t* packed,
                                                    const void* background, const void* padding,
                                                    const weir_tensor_t* y);
// |y| has the diagonals of |x|, packed, and |padding| where they are short.
WEIR_MUST_USE weir_status_t* weir_gpu_take_diagonals(const weir_kernel_ctx_t* ctx,
                                                     weir_diagonals_t diagonals,
                                                     const weir_tensor_t* x, const void* padding,
                                                     const weir_tensor_t* y);
// |y| has the diagonals |lower| to |upper| of what is at |x|, which may be |y|'s, and zeros.
WEIR_MUST_USE weir_status_t* weir_gpu_keep_band(const weir_kernel_ctx_t* ctx,
                                                weir_diagonals_t diagonals, const void* x,
                                                const weir_tensor_t* y);

#endif  // WEIR_KERNEL_MOVE_DIAGONALS_H_
