// batch.h — Functions of single matrices over the matrices of a kernel's inputs and outputs, on the
// threads of its pool.
#ifndef WEIR_OPS_LINALG_BATCH_H_
#define WEIR_OPS_LINALG_BATCH_H_

#include "ops/linalg/common.h"

enum { BATCH_INPUTS = 4, BATCH_OUTPUTS = 3 };

// What a function sees: the matrices (or vectors) of one place in the batch.
typedef struct batch_item_t {
  const void* inputs[BATCH_INPUTS];
  void* outputs[BATCH_OUTPUTS];
  char* scratch;
  weir_pool_t* pool;  // NULL where the threads are busy with other items
  const void* arg;
} batch_item_t;

typedef struct batch_t {
  bool (*fn)(const batch_item_t* item);  // false: it failed
  const char* failure;                   // the message then
  const void* arg;                       // for |fn|
  int64_t count;                         // items
  double ns;                             // of an item, roughly
  int input_count;                       // of the kernel's inputs, those that are in the batch
  weir_tensor_t* outputs[BATCH_OUTPUTS];
  int64_t scratch_size;  // bytes for an item
} batch_t;

// INVALID_ARGUMENT unless the first |count| inputs are matrices of the same batch.
weir_status_t* weir_batch_check(const weir_kernel_ctx_t* ctx, int count);

// Allocates output |i|: the batch of input 0, then |rank| dimensions.
weir_status_t* weir_batch_output(weir_kernel_ctx_t* ctx, batch_t* batch, int i, int rank,
                                 const int64_t* dims);

// Runs it. INVALID_ARGUMENT with |failure| where an item failed.
weir_status_t* weir_batch_run(weir_kernel_ctx_t* ctx, const batch_t* batch);

// ---- shapes ----
// Output |i|: |batch| and then |rank| dimensions.
weir_status_t* weir_batch_shape(weir_shape_ctx_t* ctx, int i, const weir_shape_t* batch, int rank,
                                const int64_t* dims);
// Output 0: that of input 0, whose matrices are square.
weir_status_t* weir_shape_fn_square(weir_shape_ctx_t* ctx);
// The solution of a system: inputs 0 and 1 are matrices of the same batch and of as many rows.
// |is_square|: the first ones must be.
weir_status_t* weir_shape_solution(weir_shape_ctx_t* ctx, bool is_square);

#endif  // WEIR_OPS_LINALG_BATCH_H_
