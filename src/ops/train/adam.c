// adam.c — Adam, plain and Nesterov.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/adam.inc"
#define REAL_ONLY 0
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(adam);

static const weir_optimizer_family_t adam_family = {
    .scalars = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
    .flag = "use_nesterov",
    .cost_ns = 2.0,
    .cuda_source = weir_cuda_source_adam,
    .cuda_loop = "adam",
    .run_float = adam_float,
    .run_double = adam_double,
    .run_complex64 = adam_complex64,
    .run_complex128 = adam_complex128};
static weir_status_t* adam_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &adam_family, state);
}

const weir_op_module_t weir_ops_train_adam = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyAdam",
         .summary = "Updates a variable: Adam, by running means of gradients and of their squares",
         .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
         .inputs = "var: Ref(T); m: Ref(T); v: Ref(T); beta1_power: T; beta2_power: T; lr: T; "
                   "beta1: T; beta2: T; epsilon: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ApplyAdamAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adam_init)},
        {.name = "ResourceApplyAdam",
         .summary = "Updates a variable: Adam, by running means of gradients and of their squares",
         .attrs = "T: numbertype; use_locking: bool = false; use_nesterov: bool = false",
         .inputs = "var: resource; m: resource; v: resource; beta1_power: T; beta2_power: T; lr: "
                   "T; beta1: T; beta2: T; epsilon: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ResourceApplyAdamAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adam_init)},
        WEIR_OPTIMIZER_JOINED(
            "_ApplyAdamAll", "use_nesterov: bool = false; ",
            "var: N * Ref(T); m: N * Ref(T); v: N * Ref(T); beta1_power: N * T; beta2_power: N * "
            "T; lr: N * T; beta1: N * T; beta2: N * T; epsilon: N * T; grad: N * T",
            "out: N * Ref(T)", adam_init),
        WEIR_OPTIMIZER_JOINED(
            "_ResourceApplyAdamAll", "use_nesterov: bool = false; ",
            "var: N * resource; m: N * resource; v: N * resource; beta1_power: N * T; beta2_power: "
            "N * T; lr: N * T; beta1: N * T; beta2: N * T; epsilon: N * T; grad: N * T",
            NULL, adam_init),
        {0}}};
