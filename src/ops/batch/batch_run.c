// batch_run.c — A batch under way: its pieces' rows as one, the call, and the results' rows back to
// the pieces.
#include "base/alloc.h"
#include "ops/batch/batch_rows.h"
#include "ops/batch/batcher_internal.h"

step_batch_t* weir_batch_create(void) { return weir_calloc(1, sizeof(step_batch_t)); }

static void release_tensors(const step_batch_t* batch) {
  for (int i = 0; i < batch->joined_count; ++i) weir_tensor_release(batch->tensors[i]);
  for (int i = 0; i < batch->call.ret_count; ++i)
    weir_tensor_release(batch->tensors[batch->call.arg_count + i]);
}

void weir_batch_destroy(step_batch_t* batch) {
  for (batch_piece_t *piece = batch->first, *next; piece; piece = next) {
    next = piece->next;
    weir_batch_job_release(piece->job);
    weir_free(piece);
  }
  if (batch->tensors) release_tensors(batch);
  weir_free(batch->tensors);
  weir_free(batch);
}

// ---- arguments ----

// Creates input |i| of all pieces as one.
static weir_status_t* join_input(const step_batch_t* batch, weir_tensor_t** parts, int i,
                                 weir_tensor_t** out) {
  weir_status_t* status = NULL;
  int count = 0;
  for (const batch_piece_t* p = batch->first; p && !status; p = p->next) {
    if (p->job->input_count <= i) {
      status = WEIR_STATUS(INVALID_ARGUMENT, "Batching inputs must have equal number of edges");
    } else {
      status = weir_tensor_slice(p->job->tensors[i], p->begin, p->end, &parts[count]);
    }
    if (!status) ++count;
  }
  weir_pool_t* pool = weir_kernel_pool(batch->carrier->request->base.ctx);
  if (!status) status = weir_batch_rows_join(pool, parts, count, batch->padding, out);
  for (int k = 0; k < count; ++k) weir_tensor_release(parts[k]);
  return status;
}

static weir_status_t* join_inputs(step_batch_t* batch) {
  weir_tensor_t** parts = weir_alloc_array((size_t)batch->piece_count, sizeof(*parts));
  weir_status_t* status = parts ? NULL : weir_out_of_memory();
  for (int i = 0; i < batch->carrier->input_count && !status; ++i) {
    status = join_input(batch, parts, i, &batch->tensors[i]);
    if (!status) batch->joined_count = i + 1;
  }
  weir_free(parts);
  return status;
}

static weir_status_t* make_arguments(step_batch_t* batch) {
  const batch_job_t* job = batch->carrier;
  const int arg_count = job->input_count + job->capture_count;
  const int ret_count = job->output_count;
  batch->tensors = weir_calloc((size_t)(arg_count + ret_count), sizeof(*batch->tensors));
  if (!batch->tensors) return weir_out_of_memory();
  batch->call = (weir_call_t){.function = job->function,
                              .args = batch->tensors,
                              .arg_count = arg_count,
                              .rets = batch->tensors + arg_count,
                              .ret_count = ret_count};
  for (int i = job->input_count; i < arg_count; ++i) batch->tensors[i] = job->tensors[i];
  return join_inputs(batch);
}

// ---- the end ----

static void add_error(batch_job_t* job, const weir_status_t* status) {
  if (status && !job->status) job->status = weir_status_copy(status);
}

// One piece is through; its outputs, if any, are |take_outputs|.
static void end_piece(const batch_piece_t* piece, weir_tensor_t** take_outputs,
                      const weir_status_t* status, weir_waiters_t* completed) {
  batch_job_t* job = piece->job;
  add_error(job, status);
  for (int i = 0; take_outputs && i < job->output_count; ++i) {
    job->outputs[piece->index * job->output_count + i] = take_outputs[i];
    take_outputs[i] = NULL;
  }
  if (--job->pieces_left > 0 || !job->request) return;
  batch_request_t* request = job->request;
  job->request = NULL;
  weir_waiter_complete(&request->base, job->status, completed);
  job->status = NULL;
}

// Ends all pieces: with the outputs of |outputs|, one piece's after the other's, where there are
// any.
static void end_batch(step_batch_t* take_batch, weir_tensor_t** outputs,
                      weir_status_t* take_status) {
  weir_step_batcher_t* b = take_batch->owner;
  const int output_count = take_batch->carrier->output_count;
  weir_waiters_t completed = {0};
  int at = 0;
  weir_mutex_lock(&b->mu);
  for (const batch_piece_t* p = take_batch->first; p; p = p->next, ++at) {
    // A step that shares the batcher by name, but asks for other results than the carrier's.
    const bool fits = outputs && p->job->output_count == output_count;
    weir_status_t* failure =
        outputs && !fits ? WEIR_STATUS(INTERNAL, "Wrong number of batched output tensors") : NULL;
    end_piece(p, fits ? outputs + (size_t)at * (size_t)output_count : NULL,
              failure ? failure : take_status, &completed);
    weir_status_destroy(failure);
  }
  --b->running_count;
  weir_mutex_unlock(&b->mu);
  weir_batch_destroy(take_batch);
  weir_status_destroy(take_status);
  weir_waiters_answer(&completed);
  weir_step_batcher_dispatch(b);
  weir_resource_release(&b->base);
}

// ---- BatchFunction ----

static weir_status_t* check_result(const step_batch_t* batch, const weir_tensor_t* result) {
  if (result->rank == 0) {
    return WEIR_STATUS(FAILED_PRECONDITION, "Batched output tensor has 0 dimensions");
  }
  if (result->dims[0] == batch->size + batch->padding) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION,
                     "Batched output tensor's 0th dimension does not equal the sum of the 0th "
                     "dimension sizes of the input tensors. 0th dimension size: %lld; batch size: "
                     "%lld; unbatched tasks size: 0; padding size: %lld",
                     (long long)result->dims[0], (long long)batch->size, (long long)batch->padding);
}

// Cuts result |i| up into rows of |outputs|.
static weir_status_t* split_result(const step_batch_t* batch, int i, weir_tensor_t** outputs) {
  weir_tensor_t* result = batch->call.rets[i];
  int64_t row = 0;
  WEIR_TRY(check_result(batch, result));
  if (batch->piece_count == 1 && batch->padding == 0) {
    outputs[i] = weir_tensor_retain(result);
    return NULL;
  }
  for (const batch_piece_t* p = batch->first; p; p = p->next) {
    const int64_t end = row + p->end - p->begin;
    WEIR_TRY(weir_tensor_slice(result, row, end, &outputs[i]));
    outputs += batch->call.ret_count;
    row = end;
  }
  return NULL;
}

static void on_called(void* arg, weir_status_t* take_status) {
  step_batch_t* batch = arg;
  weir_status_t* status = take_status;
  const size_t count = (size_t)batch->piece_count * (size_t)batch->call.ret_count;
  weir_tensor_t** outputs = NULL;
  if (!status) {
    outputs = weir_calloc(count, sizeof(*outputs));
    if (!outputs) status = weir_out_of_memory();
  }
  for (int i = 0; i < batch->call.ret_count && !status; ++i) {
    status = split_result(batch, i, outputs);
  }
  end_batch(batch, status ? NULL : outputs, status);
  for (size_t i = 0; outputs && i < count; ++i) weir_tensor_release(outputs[i]);
  weir_free(outputs);
}

static void call_function(step_batch_t* batch) {
  weir_kernel_ctx_t* ctx = batch->carrier->request->base.ctx;
  weir_functions_t* functions = ctx->step->functions;
  if (functions->vtable->result_count(functions, batch->call.function) != batch->call.ret_count) {
    end_batch(batch, NULL, WEIR_STATUS(INTERNAL, "Wrong number of batched output tensors"));
    return;
  }
  functions->vtable->call(functions, ctx, &batch->call,
                          (weir_done_t){.fn = on_called, .arg = batch});
}

// ---- Batch ----

// [id, first row, end of rows] of each piece.
static weir_status_t* make_index(const step_batch_t* batch, weir_tensor_t** out_index) {
  int64_t row = 0;
  weir_tensor_t* index = NULL;
  WEIR_TRY(
      weir_tensor_create(WEIR_DTYPE_INT64, 2, (const int64_t[]){batch->piece_count, 3}, &index));
  int64_t* to = WEIR_TENSOR_DATA(index, int64_t);
  for (const batch_piece_t* p = batch->first; p; p = p->next, to += 3) {
    to[0] = p->job->id;
    to[1] = row;
    to[2] = row += p->job->size;
  }
  *out_index = index;
  return NULL;
}

// The carrier's outputs are the batch and its index; the others' are empty. The carrier's request
// is held: nobody else looks at its outputs.
static void hand_over(step_batch_t* batch) {
  batch_job_t* job = batch->carrier;
  weir_tensor_t* index = NULL;
  weir_status_t* status = make_index(batch, &index);
  weir_tensor_t** outputs =
      status ? NULL : weir_calloc((size_t)job->output_count, sizeof(*outputs));
  if (!status && !outputs) status = weir_out_of_memory();
  if (status) {
    weir_tensor_release(index);
  } else {
    for (int i = 0; i < batch->joined_count; ++i) outputs[i] = batch->tensors[i];
    outputs[batch->joined_count] = index;
    batch->joined_count = 0;
    job->outputs = outputs;
  }
  end_batch(batch, NULL, status);
}

void weir_step_batcher_run(step_batch_t* take_batch) {
  weir_status_t* status = make_arguments(take_batch);
  if (status) {
    end_batch(take_batch, NULL, status);
  } else if (take_batch->carrier->is_function) {
    call_function(take_batch);
  } else {
    hand_over(take_batch);
  }
}
