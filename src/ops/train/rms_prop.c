// rms_prop.c — RMSProp, plain and centered.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/rms_prop.inc"
#define REAL_ONLY 0
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(rms_prop);

static const weir_optimizer_family_t rms_prop_family = {
    .scalars = {"lr", "rho", "momentum", "epsilon"},
    .cost_ns = 2.0,
    .cuda_source = weir_cuda_source_rms_prop,
    .cuda_loop = "rms_prop",
    .run_float = rms_prop_float,
    .run_double = rms_prop_double,
    .run_complex64 = rms_prop_complex64,
    .run_complex128 = rms_prop_complex128};
static weir_status_t* rms_prop_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &rms_prop_family, state);
}

static const weir_optimizer_family_t centered_family = {
    .scalars = {"lr", "rho", "momentum", "epsilon"},
    .cost_ns = 2.5,
    .cuda_source = weir_cuda_source_rms_prop,
    .cuda_loop = "centered",
    .run_float = centered_float,
    .run_double = centered_double,
    .run_complex64 = centered_complex64,
    .run_complex128 = centered_complex128};
static weir_status_t* centered_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &centered_family, state);
}

const weir_op_module_t weir_ops_train_rms_prop = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyRMSProp",
         .summary =
             "Updates a variable: gradients over the root of their mean square, with momentum",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); ms: Ref(T); mom: Ref(T); lr: T; rho: T; momentum: T; epsilon: T; "
                   "grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ApplyRMSPropAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, rms_prop_init)},
        {.name = "ResourceApplyRMSProp",
         .summary =
             "Updates a variable: gradients over the root of their mean square, with momentum",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; ms: resource; mom: resource; lr: T; rho: T; momentum: T; "
                   "epsilon: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .joined = "_ResourceApplyRMSPropAll",
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, rms_prop_init)},
        {.name = "SparseApplyRMSProp",
         .summary = "Updates rows of a variable: gradients over the root of their mean square, "
                    "with momentum",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: Ref(T); ms: Ref(T); mom: Ref(T); lr: T; rho: T; momentum: T; epsilon: T; "
                   "grad: T; indices: Tindices",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS("T: complex128, complex64, double, float, half",
                                           rms_prop_init)},
        {.name = "ResourceSparseApplyRMSProp",
         .summary = "Updates rows of a variable: gradients over the root of their mean square, "
                    "with momentum",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: resource; ms: resource; mom: resource; lr: T; rho: T; momentum: T; "
                   "epsilon: T; grad: T; indices: Tindices",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS("T: complex128, complex64, double, float, half",
                                           rms_prop_init)},
        {.name = "ApplyCenteredRMSProp",
         .summary =
             "Updates a variable: gradients over their running standard deviation, with momentum",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); mg: Ref(T); ms: Ref(T); mom: Ref(T); lr: T; rho: T; momentum: T; "
                   "epsilon: T; grad: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, centered_init)},
        {.name = "ResourceApplyCenteredRMSProp",
         .summary =
             "Updates a variable: gradients over their running standard deviation, with momentum",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; mg: resource; ms: resource; mom: resource; lr: T; rho: T; "
                   "momentum: T; epsilon: T; grad: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_ALL_TYPES, centered_init)},
        {.name = "SparseApplyCenteredRMSProp",
         .summary = "Updates rows of a variable: gradients over their running standard deviation, "
                    "with momentum",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: Ref(T); mg: Ref(T); ms: Ref(T); mom: Ref(T); lr: T; rho: T; momentum: T; "
                   "epsilon: T; grad: T; indices: Tindices",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS("T: complex128, complex64, double, float, half",
                                           centered_init)},
        {.name = "ResourceSparseApplyCenteredRMSProp",
         .summary = "Updates rows of a variable: gradients over their running standard deviation, "
                    "with momentum",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: resource; mg: resource; ms: resource; mom: resource; lr: T; rho: T; "
                   "momentum: T; epsilon: T; grad: T; indices: Tindices",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS("T: complex128, complex64, double, float, half",
                                           centered_init)},
        WEIR_OPTIMIZER_JOINED("_ApplyRMSPropAll", "",
                              "var: N * Ref(T); ms: N * Ref(T); mom: N * Ref(T); lr: N * T; rho: N "
                              "* T; momentum: N * T; epsilon: N * T; grad: N * T",
                              "out: N * Ref(T)", rms_prop_init),
        WEIR_OPTIMIZER_JOINED("_ResourceApplyRMSPropAll", "",
                              "var: N * resource; ms: N * resource; mom: N * resource; lr: N * T; "
                              "rho: N * T; momentum: N * T; epsilon: N * T; grad: N * T",
                              NULL, rms_prop_init),
        {0}}};
