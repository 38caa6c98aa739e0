// adadelta.c — Adadelta.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/adadelta.inc"
#define REAL_ONLY 0
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(adadelta);

static const weir_optimizer_family_t adadelta_family = {.scalars = {"lr", "rho", "epsilon"},
                                                        .cost_ns = 3.0,
                                                        .cuda_source = weir_cuda_source_adadelta,
                                                        .cuda_loop = "adadelta",
                                                        .run_float = adadelta_float,
                                                        .run_double = adadelta_double,
                                                        .run_complex64 = adadelta_complex64,
                                                        .run_complex128 = adadelta_complex128};
static weir_status_t* adadelta_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &adadelta_family, state);
}

const weir_op_module_t weir_ops_train_adadelta = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyAdadelta",
         .summary =
             "Updates a variable: steps scaled by running means of past steps over gradients",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs =
             "var: Ref(T); accum: Ref(T); accum_update: Ref(T); lr: T; rho: T; epsilon: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adadelta_init)},
        {.name = "ResourceApplyAdadelta",
         .summary =
             "Updates a variable: steps scaled by running means of past steps over gradients",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; accum: resource; accum_update: resource; lr: T; rho: T; "
                   "epsilon: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adadelta_init)},
        {.name = "SparseApplyAdadelta",
         .summary = "Updates rows of a variable: steps scaled by running means of past steps over "
                    "gradients",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); accum_update: Ref(T); lr: T; rho: T; epsilon: T; "
                   "grad: T; indices: Tindices",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adadelta_init)},
        {.name = "ResourceSparseApplyAdadelta",
         .summary = "Updates rows of a variable: steps scaled by running means of past steps over "
                    "gradients",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: resource; accum: resource; accum_update: resource; lr: T; rho: T; "
                   "epsilon: T; grad: T; indices: Tindices",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, adadelta_init)},
        {0}}};
