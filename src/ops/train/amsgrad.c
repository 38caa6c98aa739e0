// amsgrad.c — Adam with AMSGrad: divided by the largest second moment so far.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/amsgrad.inc"
#define REAL_ONLY 1
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(amsgrad);

static const weir_optimizer_family_t amsgrad_family = {
    .scalars = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
    .cost_ns = 2.0,
    .cuda_source = weir_cuda_source_amsgrad,
    .cuda_loop = "amsgrad",
    .run_float = amsgrad_float,
    .run_double = amsgrad_double};
static weir_status_t* amsgrad_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &amsgrad_family, state);
}

const weir_op_module_t weir_ops_train_amsgrad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ResourceApplyAdamWithAmsgrad",
         .summary = "Updates a variable: Adam, by the largest mean of squares so far",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; m: resource; v: resource; vhat: resource; beta1_power: T; "
                   "beta2_power: T; lr: T; beta1: T; beta2: T; epsilon: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, amsgrad_init)},
        {0}}};
