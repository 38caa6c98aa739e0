// ada_max.c — AdaMax: Adam with the infinity norm.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/ada_max.inc"
#define REAL_ONLY 1
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(ada_max);

static const weir_optimizer_family_t ada_max_family = {
    .scalars = {"beta1_power", "lr", "beta1", "beta2", "epsilon"},
    .cost_ns = 1.5,
    .cuda_source = weir_cuda_source_ada_max,
    .cuda_loop = "ada_max",
    .run_float = ada_max_float,
    .run_double = ada_max_double};
static weir_status_t* ada_max_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &ada_max_family, state);
}

const weir_op_module_t weir_ops_train_ada_max = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyAdaMax",
         .summary = "Updates a variable: Adam with the largest gradient of late in place of the "
                    "mean of squares",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); m: Ref(T); v: Ref(T); beta1_power: T; lr: T; beta1: T; beta2: T; "
                   "epsilon: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS("T: double, float, half", ada_max_init)},
        {.name = "ResourceApplyAdaMax",
         .summary = "Updates a variable: Adam with the largest gradient of late in place of the "
                    "mean of squares",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; m: resource; v: resource; beta1_power: T; lr: T; beta1: T; "
                   "beta2: T; epsilon: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS("T: double, float, half", ada_max_init)},
        {0}}};
