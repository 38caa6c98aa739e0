// activation.h — Activation functions of neural networks and their gradients, over runs of
// elements. Thread-safe.
#ifndef WEIR_KERNEL_NN_ACTIVATION_H_
#define WEIR_KERNEL_NN_ACTIVATION_H_

#include "base/thread.h"
#include "weir/dtype.h"

typedef enum weir_activation_t {
  WEIR_ACTIVATION_RELU,  // also for integers, as RELU6; the others for floating types
  WEIR_ACTIVATION_RELU6,
  WEIR_ACTIVATION_LEAKY_RELU,  // by alpha below 0
  WEIR_ACTIVATION_ELU,
  WEIR_ACTIVATION_SELU,
  WEIR_ACTIVATION_SOFTPLUS,
  WEIR_ACTIVATION_SOFTSIGN,
  WEIR_ACTIVATION_COUNT
} weir_activation_t;

// y[i] = f(x[i]); y may be x.
typedef void (*weir_activation_loop_fn_t)(const void* x, void* y, int64_t n, float alpha);
// dx[i] = dy[i] * f'(x[i]), where x is the input of the activation, or its output for ELU and SELU
// (RELU, RELU6: either); dx may be dy or x.
typedef void (*weir_activation_grad_fn_t)(const void* dy, const void* x, void* dx, int64_t n,
                                          float alpha);

weir_activation_loop_fn_t weir_activation_find(weir_activation_t activation,
                                               weir_dtype_t dtype);  // NULL: no such
weir_activation_grad_fn_t weir_activation_grad_find(weir_activation_t activation,
                                                    weir_dtype_t dtype);  // NULL: no such
// |alpha| as |dtype| has it: TensorFlow multiplies elements by a number of their type.
float weir_activation_alpha(weir_dtype_t dtype, float alpha);
double weir_activation_cost(weir_activation_t activation);  // ns an element, roughly

#endif  // WEIR_KERNEL_NN_ACTIVATION_H_
