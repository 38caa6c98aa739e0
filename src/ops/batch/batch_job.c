// batch_job.c — Jobs of a batcher: from a kernel's inputs, and to its outputs.
#include "ops/batch/batch_job.h"

#include "base/alloc.h"
#include "base/philox.h"
#include "op/call.h"
#include "ops/batch/batch_rows.h"

batch_job_t* weir_batch_job_retain(batch_job_t* job) {
  weir_ref_inc(&job->ref, 1);
  return job;
}

void weir_batch_job_release(batch_job_t* job) {
  if (!job || !weir_ref_dec(&job->ref)) return;
  const int output_count = job->outputs ? job->piece_count * job->output_count : 0;
  for (int i = 0; i < job->input_count + job->capture_count; ++i) {
    weir_tensor_release(job->tensors[i]);
  }
  for (int i = 0; i < output_count; ++i) weir_tensor_release(job->outputs[i]);
  weir_free(job->outputs);
  weir_status_destroy(job->status);
  weir_free(job);
}

// ---- outputs of Batch ----

// What a step gets whose rows are in a batch that another one got.
static weir_status_t* set_empty(weir_kernel_ctx_t* ctx, const batch_job_t* job) {
  weir_tensor_t* out = NULL;
  for (int i = 0; i < job->input_count; ++i) {
    int64_t dims[WEIR_MAX_RANK] = {0};
    for (int axis = 1; axis < job->tensors[i]->rank; ++axis)
      dims[axis] = job->tensors[i]->dims[axis];
    WEIR_TRY(weir_kernel_output(ctx, i, job->tensors[i]->rank, dims, &out));
  }
  return weir_kernel_output(ctx, job->input_count, 2, (const int64_t[]){0, 3}, &out);
}

static weir_status_t* finish_batch(weir_kernel_ctx_t* ctx, batch_job_t* job) {
  weir_tensor_t* id = NULL;
  if (job->outputs) {
    for (int i = 0; i <= job->input_count; ++i) {
      weir_kernel_set(ctx, i, job->outputs[i]);
      job->outputs[i] = NULL;
    }
  } else {
    WEIR_TRY(set_empty(ctx, job));
  }
  WEIR_TRY(weir_kernel_output(ctx, job->input_count + 1, 0, NULL, &id));
  WEIR_TENSOR_DATA(id, int64_t)[0] = job->id;
  return NULL;
}

// ---- outputs of BatchFunction ----

// Joins output |i| of all pieces of a job.
static weir_status_t* join_pieces(weir_kernel_ctx_t* ctx, batch_job_t* job, int i,
                                  weir_tensor_t** out) {
  weir_tensor_t** parts = weir_alloc_array((size_t)job->piece_count, sizeof(*parts));
  if (!parts) return weir_out_of_memory();
  for (int p = 0; p < job->piece_count; ++p) parts[p] = job->outputs[p * job->output_count + i];
  weir_status_t* status =
      weir_batch_rows_join(weir_kernel_pool(ctx), parts, job->piece_count, 0, out);
  weir_free(parts);
  return status;
}

static weir_status_t* finish_function(weir_kernel_ctx_t* ctx, batch_job_t* job) {
  weir_status_t* status = NULL;
  if (job->piece_count == 1) return weir_kernel_set_results(ctx, job->outputs);
  weir_tensor_t** joined = weir_calloc((size_t)job->output_count, sizeof(*joined));
  if (!joined) return weir_out_of_memory();
  for (int i = 0; i < job->output_count && !status; ++i) {
    status = join_pieces(ctx, job, i, &joined[i]);
  }
  if (!status) status = weir_kernel_set_results(ctx, joined);
  for (int i = 0; i < job->output_count; ++i) weir_tensor_release(joined[i]);
  weir_free(joined);
  return status;
}

static weir_status_t* request_finish(weir_waiter_t* waiter) {
  batch_job_t* job = ((batch_request_t*)waiter)->job;
  return (job->is_function ? finish_function : finish_batch)(waiter->ctx, job);
}

static void request_destroy(weir_waiter_t* waiter) {
  weir_batch_job_release(((batch_request_t*)waiter)->job);
}

// ---- creation ----

weir_status_t* weir_batch_job_create(const weir_kernel_ctx_t* ctx, const weir_batch_call_t* call,
                                     batch_request_t** out_request) {
  const size_t tensor_count = (size_t)ctx->input_count;
  batch_request_t* request = weir_calloc(1, sizeof(*request));
  batch_job_t* job = weir_calloc(1, sizeof(*job) + tensor_count * sizeof(job->tensors[0]));
  if (!request || !job) {
    weir_free(request);
    weir_free(job);
    return weir_out_of_memory();
  }
  weir_ref_init(&job->ref);
  job->request = request;
  job->is_function = call->function != 0;
  job->id = (int64_t)weir_random_entropy();
  job->size = ctx->inputs[0].tensor->dims[0];
  job->function = call->function;
  job->input_count = call->input_count;
  job->capture_count = ctx->input_count - call->input_count;
  job->output_count = ctx->output_count;
  for (int i = 0; i < ctx->input_count; ++i) {
    job->tensors[i] = weir_tensor_retain(ctx->inputs[i].tensor);
  }
  request->job = job;
  request->base = (weir_waiter_t){.finish = request_finish,
                                  .destroy = request_destroy,
                                  .cancel_message = "Batch operation was cancelled"};
  *out_request = request;
  return NULL;
}
