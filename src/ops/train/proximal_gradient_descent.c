// proximal_gradient_descent.c — Gradient descent followed by a proximal step for l1 and l2 (FOBOS).
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/proximal_gradient_descent.inc"
#define REAL_ONLY 1
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(proximal_gradient_descent);

static const weir_optimizer_family_t proximal_descend_family = {
    .scalars = {"alpha", "l1", "l2"},
    .refuses_empty_rows = true,
    .cost_ns = 1.5,
    .cuda_source = weir_cuda_source_proximal_gradient_descent,
    .cuda_loop = "proximal_descend",
    .run_float = proximal_descend_float,
    .run_double = proximal_descend_double};
static weir_status_t* proximal_descend_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &proximal_descend_family, state);
}

const weir_op_module_t weir_ops_train_proximal_gradient_descent = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyProximalGradientDescent",
         .summary = "Updates a variable: a step of gradient descent, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); alpha: T; l1: T; l2: T; delta: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_descend_init)},
        {.name = "ResourceApplyProximalGradientDescent",
         .summary = "Updates a variable: a step of gradient descent, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; alpha: T; l1: T; l2: T; delta: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_descend_init)},
        {.name = "SparseApplyProximalGradientDescent",
         .summary =
             "Updates rows of a variable: a step of gradient descent, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: Ref(T); alpha: T; l1: T; l2: T; grad: T; indices: Tindices",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_descend_init)},
        {.name = "ResourceSparseApplyProximalGradientDescent",
         .summary =
             "Updates rows of a variable: a step of gradient descent, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: resource; alpha: T; l1: T; l2: T; grad: T; indices: Tindices",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_descend_init)},
        {0}}};
