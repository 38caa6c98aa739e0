// adagrad_da.c — Adagrad with dual averaging: the variable follows from the sums of the gradients.
#include <math.h>

#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/adagrad_da.inc"
#define REAL_ONLY 1
#include "ops/train/each_type.inc"

static const weir_optimizer_family_t adagrad_da_family = {
    .scalars = {"lr", "l1", "l2", "global_step"},
    .cost_ns = 2.0,
    .run_float = adagrad_da_float,
    .run_double = adagrad_da_double};
static weir_status_t* adagrad_da_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &adagrad_da_family, state);
}

static const weir_optimizer_family_t adagrad_da_row_family = {
    .scalars = {"lr", "l1", "l2", "global_step"},
    .refuses_empty_rows = true,
    .cost_ns = 2.5,
    .run_float = adagrad_da_row_float,
    .run_double = adagrad_da_row_double};
static weir_status_t* adagrad_da_row_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &adagrad_da_row_family, state);
}

const weir_op_module_t weir_ops_train_adagrad_da = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyAdagradDA",
         .summary = "Updates a variable: Adagrad by the sums of all gradients and of their squares",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: Ref(T); gradient_accumulator: Ref(T); gradient_squared_accumulator: "
                   "Ref(T); grad: T; lr: T; l1: T; l2: T; global_step: int64",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_CPU_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, adagrad_da_init)},
        {.name = "ResourceApplyAdagradDA",
         .summary = "Updates a variable: Adagrad by the sums of all gradients and of their squares",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "var: resource; gradient_accumulator: resource; gradient_squared_accumulator: "
                   "resource; grad: T; lr: T; l1: T; l2: T; global_step: int64",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_CPU_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, adagrad_da_init)},
        {.name = "SparseApplyAdagradDA",
         .summary = "Updates rows of a variable: Adagrad by the sums of all gradients and of their "
                    "squares",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: Ref(T); gradient_accumulator: Ref(T); gradient_squared_accumulator: "
                   "Ref(T); grad: T; indices: Tindices; lr: T; l1: T; l2: T; global_step: int64",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_CPU_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, adagrad_da_row_init)},
        {.name = "ResourceSparseApplyAdagradDA",
         .summary = "Updates rows of a variable: Adagrad by the sums of all gradients and of their "
                    "squares",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
         .inputs = "var: resource; gradient_accumulator: resource; gradient_squared_accumulator: "
                   "resource; grad: T; indices: Tindices; lr: T; l1: T; l2: T; global_step: int64",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_CPU_KERNELS(WEIR_OPTIMIZER_WIDE_TYPES, adagrad_da_row_init)},
        {0}}};
