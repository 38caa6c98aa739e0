// scatter_op.h — Scatters of kernels on GPUs: into variables, tensors and segments.
#ifndef WEIR_KERNEL_MOVE_SCATTER_OP_H_
#define WEIR_KERNEL_MOVE_SCATTER_OP_H_

#include "kernel/move/move_op.h"

typedef enum weir_scatter_t {
  WEIR_SCATTER_ASSIGN,
  WEIR_SCATTER_ADD,
  WEIR_SCATTER_SUB,
  WEIR_SCATTER_MUL,
  WEIR_SCATTER_DIV,
  WEIR_SCATTER_MIN,
  WEIR_SCATTER_MAX,
} weir_scatter_t;

// Immutable after init.
typedef struct weir_scatter_state_t {
  weir_scatter_t mode;
  weir_cuda_function_t scatter;
  weir_cuda_function_t scatter_few;  // of floating-point numbers that are added up or multiplied
  bool depends_on_order;             // those
  weir_cuda_function_t find_last;    // of ASSIGN
  weir_cuda_function_t fill;         // of all others
} weir_scatter_state_t;

// Finds the functions for elements and indices of the types of two inputs.
WEIR_MUST_USE weir_status_t* weir_scatter_find(const weir_kernel_init_t* init, weir_scatter_t mode,
                                               int updates, int indices,
                                               weir_scatter_state_t* out_state);
// The same for indices that go round: -1 is the last one, and so is twice the size less one.
WEIR_MUST_USE weir_status_t* weir_scatter_find_wrapping(const weir_kernel_init_t* init,
                                                        weir_scatter_t mode, int updates,
                                                        int indices,
                                                        weir_scatter_state_t* out_state);
// Puts |updates|, a slice of |dst| for each of |places|, or one element for all, into |dst|, which
// has |slices| of them. What has no place is left out.
WEIR_MUST_USE weir_status_t* weir_gpu_scatter(weir_kernel_ctx_t* ctx,
                                              const weir_scatter_state_t* state,
                                              const weir_move_places_t* places,
                                              const weir_tensor_t* updates, bool is_scalar,
                                              weir_tensor_t* dst);
// Sets all elements of |dst| to that of the host at |value|.
WEIR_MUST_USE weir_status_t* weir_gpu_scatter_fill(const weir_kernel_ctx_t* ctx,
                                                   const weir_scatter_state_t* state,
                                                   const void* value, weir_tensor_t* dst);

// What GPUs scatter.
#define WEIR_SCATTERED_NUMBERS \
  "double, float, bfloat16, half, int8, uint8, int16, uint16, uint32, int64, uint64"

// The init of a GPU's row whose inputs are (target, indices, updates).
#define WEIR_SCATTER_INIT(name, MODE)                                       \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    return weir_scatter_find(init, WEIR_SCATTER_##MODE, 2, 1, state);       \
  }

#endif  // WEIR_KERNEL_MOVE_SCATTER_OP_H_
