// cuda_activation.h — Activations and their gradients as CUDA text, in the words of
// kernel/elementwise/formula.cu. Thread-safe.
#ifndef WEIR_KERNEL_NN_CUDA_ACTIVATION_H_
#define WEIR_KERNEL_NN_CUDA_ACTIVATION_H_

#include "base/string.h"
#include "kernel/nn/activation.h"

// Appends the value at x, |a| in the text; of the gradient the value at dy and x (for ELU and SELU
// the activation's output), |a| and |b|.
void weir_cuda_activation_formula(weir_activation_t activation, bool is_gradient, float alpha,
                                  weir_strbuf_t* out);

#endif  // WEIR_KERNEL_NN_CUDA_ACTIVATION_H_
