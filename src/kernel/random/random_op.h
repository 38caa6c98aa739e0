// random_op.h — Random numbers for kernels, on CPUs and GPUs.
#ifndef WEIR_KERNEL_RANDOM_RANDOM_OP_H_
#define WEIR_KERNEL_RANDOM_RANDOM_OP_H_

#include "device/cuda/cuda.h"
#include "kernel/random/random.h"
#include "op/kernel.h"

// The function that fills output 0 of a GPU's node; nothing for other devices.
WEIR_MUST_USE weir_status_t* weir_random_find(const weir_kernel_init_t* init, weir_random_t kind,
                                              weir_cuda_function_t* out_function);
// Fills |out|. |function|, of weir_random_find, is read on a GPU only.
WEIR_MUST_USE weir_status_t* weir_kernel_random_fill(const weir_kernel_ctx_t* ctx,
                                                     const weir_cuda_function_t* function,
                                                     const weir_random_spec_t* spec,
                                                     weir_philox_t philox, weir_tensor_t* out);
// The same with the next numbers of |generator|, which lives as long as a recording that this may
// be part of; that draws anew each time that it runs.
WEIR_MUST_USE weir_status_t* weir_kernel_random_draw(const weir_kernel_ctx_t* ctx,
                                                     const weir_cuda_function_t* function,
                                                     const weir_random_spec_t* spec,
                                                     weir_random_state_t* generator,
                                                     weir_tensor_t* out);

// The next |groups| groups of |generator|, for a kernel of its own: from |*out_philox| on, or,
// where
// |*out_anew| is not NULL, from what a recorded kernel finds there, in the device's memory.
WEIR_MUST_USE weir_status_t* weir_kernel_random_reserve(const weir_kernel_ctx_t* ctx,
                                                        weir_random_state_t* generator,
                                                        uint64_t groups, weir_philox_t* out_philox,
                                                        void** out_anew);

#endif  // WEIR_KERNEL_RANDOM_RANDOM_OP_H_
