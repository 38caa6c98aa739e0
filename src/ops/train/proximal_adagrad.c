// proximal_adagrad.c — Adagrad followed by a proximal step for l1 and l2 (FOBOS).
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/proximal_adagrad.inc"
#define REAL_ONLY 1
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(proximal_adagrad);

static const weir_optimizer_family_t proximal_adagrad_family = {
    .scalars = {"lr", "l1", "l2"},
    .ranges = "+00",
    .refuses_empty_rows = true,
    .cost_ns = 2.5,
    .cuda_source = weir_cuda_source_proximal_adagrad,
    .cuda_loop = "proximal_adagrad",
    .run_float = proximal_adagrad_float,
    .run_double = proximal_adagrad_double};
static weir_status_t* proximal_adagrad_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &proximal_adagrad_family, state);
}

const weir_op_module_t weir_ops_train_proximal_adagrad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyProximalAdagrad",
         .summary = "Updates a variable: a step of Adagrad, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; l1: T; l2: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_adagrad_init)},
        {.name = "ResourceApplyProximalAdagrad",
         .summary = "Updates a variable: a step of Adagrad, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; accum: resource; lr: T; l1: T; l2: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_adagrad_init)},
        {.name = "SparseApplyProximalAdagrad",
         .summary = "Updates rows of a variable: a step of Adagrad, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; l1: T; l2: T; grad: T; indices: Tindices",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_adagrad_init)},
        {.name = "ResourceSparseApplyProximalAdagrad",
         .summary = "Updates rows of a variable: a step of Adagrad, then shrinkage by l1 and l2",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs =
             "var: resource; accum: resource; lr: T; l1: T; l2: T; grad: T; indices: Tindices",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, proximal_adagrad_init)},
        {0}}};
