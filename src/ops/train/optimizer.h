// optimizer.h — What optimizer ops share: finding their variables, scalars and gradient, locking,
// copy-on-write, and running one fused loop over them, dense or by rows. A family writes the loop;
// one kernel serves Apply, ResourceApply and SparseApply.
#ifndef WEIR_OPS_TRAIN_OPTIMIZER_H_
#define WEIR_OPS_TRAIN_OPTIMIZER_H_

#include "device/cuda/cuda.h"
#include "op/cost.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

#define WEIR_OPTIMIZER_MAX_SLOTS 4
#define WEIR_OPTIMIZER_MAX_SCALARS 8

// What a loop works on: |count| elements of each slot and of the gradient. None overlap.
typedef struct weir_optimizer_args_t {
  void* slots[WEIR_OPTIMIZER_MAX_SLOTS];  // the variable first
  const void* grad;
  const void* scalars;  // of the loop's type, in the order of the family's names
  bool flag;            // the family's boolean attribute
} weir_optimizer_args_t;
typedef void (*weir_optimizer_fn_t)(const weir_optimizer_args_t* args, int64_t count);

// A family. half and bfloat16 run through the float loop, converted in blocks.
typedef struct weir_optimizer_family_t {
  const char* scalars[WEIR_OPTIMIZER_MAX_SCALARS];  // names of the inputs, ended by NULL
  const char* ranges;  // a character a scalar: '+' positive, '0' not negative, else any; NULL: any
  // The same for sparse updates, where they have rules of their own; also '-' not positive, 'z'
  // positive, or zero when the flag is set. NULL: |ranges|.
  const char* sparse_ranges;
  const char* flag;         // name of a boolean attribute; NULL: none
  bool compares_ranks;      // of variable and gradient, before all else
  bool refuses_empty_rows;  // sparse updates of rows without elements are an error
  bool needs_same_rank;     // of a sparse update's gradient and the variable
  double cost_ns;           // of one element
  weir_optimizer_fn_t run_float, run_double, run_complex64,
      run_complex128;  // NULL: not for the type
  // The text of the loops and the name of this one: they are CUDA's, too (optimizer.cu).
  const char* cuda_source;
  const char* cuda_loop;
} weir_optimizer_family_t;

// The kernel's state, filled by weir_optimizer_init from the family's own init function. A node
// that was joined of several does an update for each: inputs and output of update i are i further
// than those of the first.
typedef struct weir_optimizer_state_t {
  const weir_optimizer_family_t* family;
  int update_count;
  int most_updates;  // at a time
  int slot_count;
  int slots[WEIR_OPTIMIZER_MAX_SLOTS];  // inputs of the first update
  int grad;                             // likewise
  int indices;                          // input, or -1: dense
  int scalar_count;
  int scalars[WEIR_OPTIMIZER_MAX_SCALARS];  // inputs of the first update; 0: none, read as zero
  bool flag;
  bool is_cuda;
  weir_cuda_function_t update, find_uses;  // of a GPU
} weir_optimizer_state_t;

// Variables that are locked at a time, for a launch: ThreadSanitizer follows no more than 64.
#define WEIR_OPTIMIZER_MAX_LOCKED 48
// What a launch says of all its updates: kernels of every GPU take as much.
#define WEIR_OPTIMIZER_TABLE_WORDS 500

// One update of a run, and its variables, the slots.
typedef struct weir_optimizer_update_t {
  int number;
  weir_variable_t* variables[WEIR_OPTIMIZER_MAX_SLOTS];
} weir_optimizer_update_t;
WEIR_INLINE const weir_tensor_t* weir_optimizer_grad(const weir_kernel_ctx_t* ctx,
                                                     const weir_optimizer_update_t* update) {
  const weir_optimizer_state_t* s = (const weir_optimizer_state_t*)ctx->state;
  return weir_kernel_input(ctx, s->grad + update->number);
}
// NULL: the op has none.
WEIR_INLINE const weir_tensor_t* weir_optimizer_scalar(const weir_kernel_ctx_t* ctx,
                                                       const weir_optimizer_update_t* update,
                                                       int i) {
  const weir_optimizer_state_t* s = (const weir_optimizer_state_t*)ctx->state;
  return s->scalars[i] ? weir_kernel_input(ctx, s->scalars[i] + update->number) : NULL;
}

WEIR_MUST_USE weir_status_t* weir_optimizer_init(const weir_kernel_init_t* init,
                                                 const weir_optimizer_family_t* family,
                                                 weir_optimizer_state_t* state);
// The kernel of every family, on CPUs and GPUs.
weir_status_t* weir_optimizer_compute(weir_kernel_ctx_t* ctx);
// The shape function: slots and gradient agree, the rest are scalars.
weir_status_t* weir_optimizer_shape(weir_shape_ctx_t* ctx);
// The cost function: of each slot, as much as there is of the gradient is read and written.
void weir_optimizer_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost);

#define WEIR_OPTIMIZER_ROW(device_, types_, init_fn)                       \
  {                                                                        \
    device_, .types = types_, .compute = weir_optimizer_compute,           \
             .state_size = sizeof(weir_optimizer_state_t), .init = init_fn \
  }
#define WEIR_OPTIMIZER_CPU_KERNELS(row_types, init_fn) \
  ((const weir_kernel_def_t[]){WEIR_OPTIMIZER_ROW(WEIR_DEVICE_CPU, row_types, init_fn), {0}})
#define WEIR_OPTIMIZER_KERNELS(row_types, init_fn)                             \
  ((const weir_kernel_def_t[]){                                                \
      WEIR_OPTIMIZER_ROW(WEIR_DEVICE_CPU, row_types, init_fn),                 \
      WEIR_OPTIMIZER_ROW(WEIR_DEVICE_GPU, WEIR_OPTIMIZER_REAL_TYPES, init_fn), \
      {0}})
// The definition of an op that does the updates of several nodes (weir_op_def_t.joined). Attributes
// are those that the family has besides T.
#define WEIR_OPTIMIZER_JOINED(name_, attrs_, inputs_, outputs_, init_fn)                   \
  {                                                                                        \
    .name = name_, .summary = "The updates of several variables, in one go",               \
    .attrs = attrs_                                                                        \
        "T: numbertype; N: int >= 1; names: list(string); ops: list(string); "             \
        "outputs: list(int)",                                                              \
    .inputs = inputs_, .outputs = outputs_, .flags = WEIR_OP_STATEFUL | WEIR_OP_COMPOSITE, \
    .infer_shape = weir_shape_fn_unknown, .kernels = (const weir_kernel_def_t[]) {         \
      WEIR_OPTIMIZER_ROW(WEIR_DEVICE_GPU, WEIR_OPTIMIZER_REAL_TYPES, init_fn), { 0 }       \
    }                                                                                      \
  }
#define WEIR_OPTIMIZER_ALL_TYPES "T: complex128, complex64, double, float, bfloat16, half"
#define WEIR_OPTIMIZER_REAL_TYPES "T: double, float, bfloat16, half"
#define WEIR_OPTIMIZER_WIDE_TYPES "T: double, float"

#endif  // WEIR_OPS_TRAIN_OPTIMIZER_H_
