// adagrad.c — Adagrad: each element has a rate of its own, by the sum of its squared gradients.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/adagrad.inc"
#define REAL_ONLY 0
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(adagrad);

static const weir_optimizer_family_t adagrad_family = {.scalars = {"lr"},
                                                       .flag = "update_slots",
                                                       .compares_ranks = true,
                                                       .refuses_empty_rows = true,
                                                       .needs_same_rank = true,
                                                       .cost_ns = 1.5,
                                                       .cuda_source = weir_cuda_source_adagrad,
                                                       .cuda_loop = "adagrad",
                                                       .run_float = adagrad_float,
                                                       .run_double = adagrad_double,
                                                       .run_complex64 = adagrad_complex64,
                                                       .run_complex128 = adagrad_complex128};
static weir_status_t* adagrad_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &adagrad_family, state);
}

static const weir_optimizer_family_t adagrad_v2_family = {.scalars = {"lr", "epsilon"},
                                                          .flag = "update_slots",
                                                          .compares_ranks = true,
                                                          .refuses_empty_rows = true,
                                                          .needs_same_rank = true,
                                                          .cost_ns = 1.5,
                                                          .cuda_source = weir_cuda_source_adagrad,
                                                          .cuda_loop = "adagrad_v2",
                                                          .run_float = adagrad_v2_float,
                                                          .run_double = adagrad_v2_double,
                                                          .run_complex64 = adagrad_v2_complex64,
                                                          .run_complex128 = adagrad_v2_complex128};
static weir_status_t* adagrad_v2_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &adagrad_v2_family, state);
}

const weir_op_module_t weir_ops_train_adagrad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyAdagrad",
         .summary = "Updates a variable: accum += grad^2, var -= lr * grad / sqrt(accum)",
         .attrs = "T: numbertype; use_locking: bool = false; update_slots: bool = true",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_init)},
        {.name = "ResourceApplyAdagrad",
         .summary = "Updates a variable: accum += grad^2, var -= lr * grad / sqrt(accum)",
         .attrs = "T: numbertype; use_locking: bool = false; update_slots: bool = true",
         .inputs = "var: resource; accum: resource; lr: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_init)},
        {.name = "SparseApplyAdagrad",
         .summary = "Updates rows of a variable: accum += grad^2, var -= lr * grad / sqrt(accum)",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "update_slots: bool = true",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; grad: T; indices: Tindices",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_init)},
        {.name = "ResourceSparseApplyAdagrad",
         .summary = "Updates rows of a variable: accum += grad^2, var -= lr * grad / sqrt(accum)",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "update_slots: bool = true",
         .inputs = "var: resource; accum: resource; lr: T; grad: T; indices: Tindices",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_init)},
        {.name = "ApplyAdagradV2",
         .summary =
             "Updates a variable: accum += grad^2, var -= lr * grad / (sqrt(accum) + epsilon)",
         .attrs = "T: numbertype; use_locking: bool = false; update_slots: bool = true",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; epsilon: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_v2_init)},
        {.name = "ResourceApplyAdagradV2",
         .summary =
             "Updates a variable: accum += grad^2, var -= lr * grad / (sqrt(accum) + epsilon)",
         .attrs = "T: numbertype; use_locking: bool = false; update_slots: bool = true",
         .inputs = "var: resource; accum: resource; lr: T; epsilon: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_v2_init)},
        {.name = "SparseApplyAdagradV2",
         .summary = "Updates rows of a variable: accum += grad^2, var -= lr * grad / (sqrt(accum) "
                    "+ epsilon)",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "update_slots: bool = true",
         .inputs = "var: Ref(T); accum: Ref(T); lr: T; epsilon: T; grad: T; indices: Tindices",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_v2_init)},
        {.name = "ResourceSparseApplyAdagradV2",
         .summary = "Updates rows of a variable: accum += grad^2, var -= lr * grad / (sqrt(accum) "
                    "+ epsilon)",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "update_slots: bool = true",
         .inputs = "var: resource; accum: resource; lr: T; epsilon: T; grad: T; indices: Tindices",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adagrad_v2_init)},
        {0}}};
