// ftrl.c — FTRL-proximal, with and without shrinkage.
#include <math.h>

#include "kernel/cuda/source.h"
#include "ops/train/optimizer.h"
#include "tensor/numeric.h"

#define BODY "ops/train/ftrl.inc"
#define REAL_ONLY 1
#include "ops/train/each_type.inc"
WEIR_CUDA_SOURCE(ftrl);

static const weir_optimizer_family_t ftrl_family = {
    .scalars = {"lr", "l1", "l2", "lr_power", "l2_shrinkage"},
    .sparse_ranges = "z00-0",
    .refuses_empty_rows = true,
    .flag = "multiply_linear_by_lr",
    .cost_ns = 6.0,
    .cuda_source = weir_cuda_source_ftrl,
    .cuda_loop = "ftrl",
    .run_float = ftrl_float,
    .run_double = ftrl_double};
static weir_status_t* ftrl_init(const weir_kernel_init_t* init, void* state) {
  return weir_optimizer_init(init, &ftrl_family, state);
}

const weir_op_module_t weir_ops_train_ftrl = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ApplyFtrl",
         .summary = "Updates a variable: follows the regularised leader, with penalties l1 and l2",
         .attrs = "T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); linear: Ref(T); grad: T; lr: T; l1: T; l2: T; "
                   "lr_power: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {.name = "ResourceApplyFtrl",
         .summary = "Updates a variable: follows the regularised leader, with penalties l1 and l2",
         .attrs = "T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool = false",
         .inputs = "var: resource; accum: resource; linear: resource; grad: T; lr: T; l1: T; l2: "
                   "T; lr_power: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {.name = "SparseApplyFtrl",
         .summary =
             "Updates rows of a variable: follows the regularised leader, with penalties l1 and l2",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "multiply_linear_by_lr: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); linear: Ref(T); grad: T; indices: Tindices; lr: T; "
                   "l1: T; l2: T; lr_power: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {.name = "ResourceSparseApplyFtrl",
         .summary =
             "Updates rows of a variable: follows the regularised leader, with penalties l1 and l2",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "multiply_linear_by_lr: bool = false",
         .inputs = "var: resource; accum: resource; linear: resource; grad: T; indices: Tindices; "
                   "lr: T; l1: T; l2: T; lr_power: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {.name = "ApplyFtrlV2",
         .summary =
             "Updates a variable: follows the regularised leader, with l1, l2 and l2 shrinkage",
         .attrs = "T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); linear: Ref(T); grad: T; lr: T; l1: T; l2: T; "
                   "l2_shrinkage: T; lr_power: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {.name = "ResourceApplyFtrlV2",
         .summary =
             "Updates a variable: follows the regularised leader, with l1, l2 and l2 shrinkage",
         .attrs = "T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool = false",
         .inputs = "var: resource; accum: resource; linear: resource; grad: T; lr: T; l1: T; l2: "
                   "T; l2_shrinkage: T; lr_power: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {.name = "SparseApplyFtrlV2",
         .summary = "Updates rows of a variable: follows the regularised leader, with l1, l2 and "
                    "l2 shrinkage",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "multiply_linear_by_lr: bool = false",
         .inputs = "var: Ref(T); accum: Ref(T); linear: Ref(T); grad: T; indices: Tindices; lr: T; "
                   "l1: T; l2: T; l2_shrinkage: T; lr_power: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {.name = "ResourceSparseApplyFtrlV2",
         .summary = "Updates rows of a variable: follows the regularised leader, with l1, l2 and "
                    "l2 shrinkage",
         .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; "
                  "multiply_linear_by_lr: bool = false",
         .inputs = "var: resource; accum: resource; linear: resource; grad: T; indices: Tindices; "
                   "lr: T; l1: T; l2: T; l2_shrinkage: T; lr_power: T",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_optimizer_shape,
         .cost = weir_optimizer_cost,
         .kernels = WEIR_OPTIMIZER_KERNELS(WEIR_OPTIMIZER_REAL_TYPES, ftrl_init)},
        {0}}};
