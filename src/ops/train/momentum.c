// momentum.c — Momentum: var moves by a decaying sum of gradients; two conventions of where the
// rate enters.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/momentum.inc"
#define REAL_ONLY 0
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(momentum);

static const weir_optimizer_family_t momentum_family = {.scalars = {"lr", "momentum"},
                                                        .flag = "use_nesterov",
                                                        .cost_ns = 1.0,
                                                        .cuda_source = weir_cuda_source_momentum,
                                                        .cuda_loop = "momentum",
                                                        .run_float = momentum_float,
                                                        .run_double = momentum_double,
                                                        .run_complex64 = momentum_complex64,
                                                        .run_complex128 = momentum_complex128};
static weir_status_t* momentum_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &momentum_family, state);
}

static const weir_optimizer_family_t keras_momentum_family = {
    .scalars = {"lr", "momentum"},
    .flag = "use_nesterov",
    .cost_ns = 1.0,
    .cuda_source = weir_cuda_source_momentum,
    .cuda_loop = "keras_momentum",
    .run_float = keras_momentum_float,
    .run_double = keras_momentum_double,
    .run_complex64 = keras_momentum_complex64,
    .run_complex128 = keras_momentum_complex128};
static weir_status_t* keras_momentum_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &keras_momentum_family, state);
}

const weir_op_module_t weir_ops_train_momentum = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyMomentum",
         .summary = "Updates a variable: accum = momentum * accum + grad, var -= lr * accum",
         .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; grad: T; momentum: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ApplyMomentumAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, momentum_init)},
        {.name = "ResourceApplyMomentum",
         .summary = "Updates a variable: accum = momentum * accum + grad, var -= lr * accum",
         .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
         .inputs = "var: resource; accum: resource; lr: T; grad: T; momentum: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ResourceApplyMomentumAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, momentum_init)},
        {.name = "SparseApplyMomentum",
         .summary =
             "Updates rows of a variable: accum = momentum * accum + grad, var -= lr * accum",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "use_nesterov: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; grad: T; indices: Tindices; momentum: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, momentum_init)},
        {.name = "ResourceSparseApplyMomentum",
         .summary =
             "Updates rows of a variable: accum = momentum * accum + grad, var -= lr * accum",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "use_nesterov: bool = false",
         .inputs = "var: resource; accum: resource; lr: T; grad: T; indices: Tindices; momentum: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, momentum_init)},
        {.name = "ResourceApplyKerasMomentum",
         .summary = "Updates a variable: accum = momentum * accum - lr * grad, var += accum",
         .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
         .inputs = "var: resource; accum: resource; lr: T; grad: T; momentum: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ResourceApplyKerasMomentumAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, keras_momentum_init)},
        {.name = "ResourceSparseApplyKerasMomentum",
         .summary =
             "Updates rows of a variable: accum = momentum * accum - lr * grad, var += accum",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "use_nesterov: bool = false",
         .inputs = "var: resource; accum: resource; lr: T; grad: T; indices: Tindices; momentum: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, keras_momentum_init)},
        WEIR_OPTIMIZER_JOINED(
            "_ApplyMomentumAll", "use_nesterov: bool = false; ",
            "var: N * Ref(T); accum: N * Ref(T); lr: N * T; grad: N * T; momentum: N * T",
            "out: N * Ref(T)", momentum_init),
        WEIR_OPTIMIZER_JOINED(
            "_ResourceApplyMomentumAll", "use_nesterov: bool = false; ",
            "var: N * resource; accum: N * resource; lr: N * T; grad: N * T; momentum: N * T", NULL,
            momentum_init),
        WEIR_OPTIMIZER_JOINED(
            "_ResourceApplyKerasMomentumAll", "use_nesterov: bool = false; ",
            "var: N * resource; accum: N * resource; lr: N * T; grad: N * T; momentum: N * T", NULL,
            keras_momentum_init),
        {0}}};
