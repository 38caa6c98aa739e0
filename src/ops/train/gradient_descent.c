// gradient_descent.c — Gradient descent: var -= alpha * delta.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/gradient_descent.inc"
#define REAL_ONLY 0
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(gradient_descent);

static const weir_optimizer_family_t descend_family = {
    .scalars = {"alpha"},
    .cost_ns = 0.5,
    .cuda_source = weir_cuda_source_gradient_descent,
    .cuda_loop = "descend",
    .run_float = descend_float,
    .run_double = descend_double,
    .run_complex64 = descend_complex64,
    .run_complex128 = descend_complex128};
static weir_status_t* descend_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &descend_family, state);
}

const weir_op_module_t weir_ops_train_gradient_descent = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyGradientDescent",
         .summary = "Updates a variable: var -= alpha * delta",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); alpha: T; delta: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ApplyGradientDescentAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, descend_init)},
        {.name = "ResourceApplyGradientDescent",
         .summary = "Updates a variable: var -= alpha * delta",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; alpha: T; delta: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ResourceApplyGradientDescentAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, descend_init)},
        WEIR_OPTIMIZER_JOINED("_ApplyGradientDescentAll", "",
                              "var: N * Ref(T); alpha: N * T; delta: N * T", "out: N * Ref(T)",
                              descend_init),
        WEIR_OPTIMIZER_JOINED("_ResourceApplyGradientDescentAll", "",
                              "var: N * resource; alpha: N * T; delta: N * T", NULL, descend_init),
        {0}}};
