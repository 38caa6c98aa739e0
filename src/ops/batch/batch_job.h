// batch_job.h — A kernel call that waits for its batches, and what it holds. See batcher.h.
#ifndef WEIR_OPS_BATCH_BATCH_JOB_H_
#define WEIR_OPS_BATCH_BATCH_JOB_H_

#include "ops/batch/batcher.h"

typedef struct batch_queue_t batch_queue_t;
typedef struct batch_job_t batch_job_t;

// The waiter of a job. It is gone when the kernel is answered, maybe before the job.
typedef struct batch_request_t {
  weir_waiter_t base;
  batch_job_t* job;  // a reference
} batch_request_t;

// Shared by its request and its pieces. What is not said to be guarded by the batcher's mutex is
// immutable once it is in a queue.
struct batch_job_t {
  weir_ref_t ref;
  batch_request_t* request;  // guarded; NULL once it is answered
  batch_queue_t* queue;
  bool is_admitted;  // guarded
  bool is_function;
  int64_t id;    // a random number
  int64_t size;  // rows
  weir_function_handle_t function;
  int input_count, capture_count, output_count;
  int piece_count, pieces_left;  // guarded
  weir_status_t* status;         // guarded: the first error of a piece
  weir_tensor_t** outputs;       // guarded: those of piece 0, of piece 1, ...; NULL: empty ones
  weir_tensor_t* tensors[];      // the inputs, then the captured ones; references
};

// Rows [begin, end) of a job, in a batch.
typedef struct batch_piece_t {
  struct batch_piece_t* next;
  batch_job_t* job;  // a reference
  int index;
  int64_t begin, end;
} batch_piece_t;

// Creates a job of |ctx| and its request, which is its only reference.
WEIR_MUST_USE weir_status_t* weir_batch_job_create(const weir_kernel_ctx_t* ctx,
                                                   const weir_batch_call_t* call,
                                                   batch_request_t** out_request);
batch_job_t* weir_batch_job_retain(batch_job_t* job);
void weir_batch_job_release(batch_job_t* job);

#endif  // WEIR_OPS_BATCH_BATCH_JOB_H_
