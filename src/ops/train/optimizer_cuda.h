// optimizer_cuda.h — Updates on GPUs: the families' loops, compiled as CUDA.
#ifndef WEIR_OPS_TRAIN_OPTIMIZER_CUDA_H_
#define WEIR_OPS_TRAIN_OPTIMIZER_CUDA_H_

#include "ops/train/optimizer.h"

// Finds the functions of |state|, which is complete but for them.
WEIR_MUST_USE weir_status_t* weir_optimizer_cuda_init(const weir_kernel_init_t* init,
                                                      weir_optimizer_state_t* state);
// Does |updates|, whose variables are locked and have their memory for themselves, in one launch if
// they are dense. Their shapes and the inputs' are right; what is in device memory nobody has
// looked at.
WEIR_MUST_USE weir_status_t* weir_optimizer_cuda_run(weir_kernel_ctx_t* ctx,
                                                     const weir_optimizer_update_t* updates,
                                                     int count);

#endif  // WEIR_OPS_TRAIN_OPTIMIZER_CUDA_H_
