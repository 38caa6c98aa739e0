// accumulator_resource.h — Conditional accumulators: gradients are summed until enough have come;
// stale ones are dropped. Thread-safe.
#ifndef WEIR_OPS_QUEUE_ACCUMULATOR_RESOURCE_H_
#define WEIR_OPS_QUEUE_ACCUMULATOR_RESOURCE_H_

#include "op/shared_handle.h"
#include "ops/queue/waiter.h"

typedef struct weir_accumulator_t weir_accumulator_t;

// What the kinds, dense and sparse, do with their sums.
typedef struct weir_accumulator_vtable_t {
  // Adds the gradient of |ctx|'s inputs from |first| on to *|sum| (NULL at first). The
  // accumulator's mutex is held.
  weir_status_t* (*add)(weir_accumulator_t* accumulator, weir_kernel_ctx_t* ctx, int first,
                        void** sum);
  // Puts the sum of |count| gradients, or their mean, out of |ctx|. No mutex.
  weir_status_t* (*emit)(const weir_accumulator_t* accumulator, weir_kernel_ctx_t* ctx, void* sum,
                         int64_t count);
  void (*free_sum)(void* sum);
} weir_accumulator_vtable_t;

struct weir_accumulator_t {
  weir_resource_t base;
  const weir_accumulator_vtable_t* vtable;
  char* name;
  weir_dtype_t dtype;
  weir_shape_t* shape;  // declared; may be unknown
  bool is_mean;
  weir_mutex_t mu;
  int64_t global_step;  // guarded by mu, as all below
  int64_t count;        // gradients in |sum|
  void* sum;
  weir_waiters_t takers;
};
extern const weir_resource_type_t weir_accumulator_type;
#define WEIR_ACCUMULATOR_TYPE_NAME "N10tensorflow26ConditionalAccumulatorBaseE"

// ---- kernels that kinds share ----
typedef struct weir_accumulator_state_t {
  weir_shared_handle_t handle;
  const weir_accumulator_vtable_t* vtable;
  weir_dtype_t dtype;
  const weir_shape_t* shape;
  bool is_mean;
} weir_accumulator_state_t;
WEIR_MUST_USE weir_status_t* weir_accumulator_init(const weir_kernel_init_t* init,
                                                   const weir_accumulator_vtable_t* vtable,
                                                   void* state);
void weir_accumulator_deinit(void* state);
weir_status_t* weir_accumulator_cpu(weir_kernel_ctx_t* ctx);  // names it and makes it
weir_status_t* weir_accumulator_apply_cpu(
    weir_kernel_ctx_t* ctx);  // inputs: handle, local_step, the gradient
void weir_accumulator_take_cpu(weir_kernel_ctx_t* ctx,
                               weir_done_t done);  // inputs: handle, num_required
weir_status_t* weir_accumulator_count_cpu(weir_kernel_ctx_t* ctx);
weir_status_t* weir_accumulator_set_step_cpu(
    weir_kernel_ctx_t* ctx);  // inputs: handle, new_global_step

#endif  // WEIR_OPS_QUEUE_ACCUMULATOR_RESOURCE_H_
