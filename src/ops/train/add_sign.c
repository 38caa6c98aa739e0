// add_sign.c — AddSign: a larger step where the gradient and its moving mean agree in sign.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/add_sign.inc"
#define REAL_ONLY 1
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(add_sign);

static const weir_optimizer_family_t add_sign_family = {
    .scalars = {"lr", "alpha", "sign_decay", "beta"},
    .cost_ns = 1.0,
    .cuda_source = weir_cuda_source_add_sign,
    .cuda_loop = "add_sign",
    .run_float = add_sign_float,
    .run_double = add_sign_double};
static weir_status_t* add_sign_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &add_sign_family, state);
}

const weir_op_module_t weir_ops_train_add_sign = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyAddSign",
         .summary =
             "Updates a variable: steps grow by a sum where a gradient has the sign of its mean",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); m: Ref(T); lr: T; alpha: T; sign_decay: T; beta: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, add_sign_init)},
        {.name = "ResourceApplyAddSign",
         .summary =
             "Updates a variable: steps grow by a sum where a gradient has the sign of its mean",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; m: resource; lr: T; alpha: T; sign_decay: T; beta: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, add_sign_init)},
        {0}}};
