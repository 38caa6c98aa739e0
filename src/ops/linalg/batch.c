// batch.c — Walks over batches of matrices.
#include "ops/linalg/batch.h"

#include <stdatomic.h>

weir_status_t* weir_batch_check(const weir_kernel_ctx_t* ctx, int count) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 0);
  for (int i = 0; i < count; ++i) {
    const weir_tensor_t* x = weir_kernel_input(ctx, i);
    if (i == 0) WEIR_TRY(check_matrices(ctx, i));
    if (x->rank != first->rank) {
      return WEIR_STATUS(INVALID_ARGUMENT, "All input tensors must have the same rank.");
    }
    for (int d = 0; d < x->rank - 2; ++d) {
      if (x->dims[d] == first->dims[d]) continue;
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All input tensors must have the same outer dimensions.");
    }
  }
  return NULL;
}

weir_status_t* weir_batch_output(weir_kernel_ctx_t* ctx, batch_t* batch, int i, int rank,
                                 const int64_t* dims) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 0);
  const int outer = first->rank - 2;
  int64_t all[WEIR_MAX_RANK];
  for (int d = 0; d < outer; ++d) all[d] = first->dims[d];
  for (int d = 0; d < rank; ++d) all[outer + d] = dims[d];
  return weir_kernel_output(ctx, i, outer + rank, all, &batch->outputs[i]);
}

typedef struct run_t {
  const batch_t* batch;
  batch_item_t first;
  size_t input_bytes[BATCH_INPUTS];
  size_t output_bytes[BATCH_OUTPUTS];
  int64_t scratch_bytes;  // so many that each item's is aligned as the first one's
  atomic_bool has_failed;
} run_t;

static void run_range(void* arg, int64_t begin, int64_t end) {
  run_t* run = arg;
  for (int64_t i = begin; i < end; ++i) {
    batch_item_t item = run->first;
    for (int k = 0; k < BATCH_INPUTS; ++k) {
      if (item.inputs[k])
        item.inputs[k] = (const char*)item.inputs[k] + (size_t)i * run->input_bytes[k];
    }
    for (int k = 0; k < BATCH_OUTPUTS; ++k) {
      if (item.outputs[k])
        item.outputs[k] = (char*)item.outputs[k] + (size_t)i * run->output_bytes[k];
    }
    if (item.scratch) item.scratch += i * run->scratch_bytes;
    // Nobody reads it before all items are through, which orders it.
    if (!run->batch->fn(&item)) {
      atomic_store_explicit(&run->has_failed, true, memory_order_relaxed);
    }
  }
}

weir_status_t* weir_batch_run(weir_kernel_ctx_t* ctx, const batch_t* batch) {
  run_t run = {.batch = batch, .first = {.arg = batch->arg}};
  weir_tensor_t* scratch = NULL;
  if (batch->count == 0) return NULL;
  for (int i = 0; i < batch->input_count; ++i) {
    const weir_tensor_t* x = weir_kernel_input(ctx, i);
    run.first.inputs[i] = x->data;
    run.input_bytes[i] = (size_t)(x->count / batch->count) * weir_dtype_size(weir_tensor_type(x));
  }
  for (int i = 0; i < BATCH_OUTPUTS; ++i) {
    const weir_tensor_t* y = batch->outputs[i];
    if (!y) continue;
    run.first.outputs[i] = y->data;
    run.output_bytes[i] = (size_t)(y->count / batch->count) * weir_dtype_size(weir_tensor_type(y));
  }
  if (batch->scratch_size > 0) {
    run.scratch_bytes = (batch->scratch_size + 15) / 16 * 16;
    WEIR_TRY(
        weir_kernel_scratch(ctx, WEIR_DTYPE_UINT8, batch->count * run.scratch_bytes, &scratch));
    run.first.scratch = scratch->data;
  }
  if (batch->count == 1) {
    run.first.pool = weir_kernel_pool(ctx);
    run_range(&run, 0, 1);
  } else {
    weir_pool_for(weir_kernel_pool(ctx), batch->count, batch->ns, run_range, &run);
  }
  weir_tensor_release(scratch);
  if (!atomic_load(&run.has_failed)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s", batch->failure);
}

// ---- shapes ----

weir_status_t* weir_batch_shape(weir_shape_ctx_t* ctx, int i, const weir_shape_t* batch, int rank,
                                const int64_t* dims) {
  if (!batch) return weir_out_of_memory();
  if (batch->rank < 0) return NULL;
  const weir_shape_t* tail = weir_shape_make(ctx->arena, rank, dims);
  if (!tail) return weir_out_of_memory();
  return weir_shape_set(ctx, i, weir_shape_concat(ctx, batch, tail));
}

weir_status_t* weir_shape_fn_square(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(square_shape(ctx, weir_shape_input(ctx, 0), &shape));
  return weir_shape_set(ctx, 0, shape);
}

static const weir_shape_t* outer(weir_shape_ctx_t* ctx, const weir_shape_t* a) {
  return a->rank < 0 ? &weir_shape_unknown : weir_shape_sub(ctx, a, 0, a->rank - 2);
}

weir_status_t* weir_shape_solution(weir_shape_ctx_t* ctx, bool is_square) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  const weir_shape_t* b = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, a, 2));
  WEIR_TRY(weir_shape_at_least(ctx, b, 2));
  if (is_square) WEIR_TRY(square_shape(ctx, a, &a));
  const weir_shape_t* batch = NULL;
  WEIR_TRY(weir_shape_join(ctx, outer(ctx, a), outer(ctx, b), &batch));
  int64_t rows = -1;
  WEIR_TRY(weir_dim_join(ctx, a->rank < 0 ? -1 : weir_shape_dim(a, -2),
                         b->rank < 0 ? -1 : weir_shape_dim(b, -2), &rows));
  const int64_t dims[2] = {is_square     ? rows
                           : a->rank < 0 ? -1
                                         : weir_shape_dim(a, -1),
                           b->rank < 0 ? -1 : weir_shape_dim(b, -1)};
  return weir_batch_shape(ctx, 0, batch, 2, dims);
}
