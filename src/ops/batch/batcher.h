// batcher.h — What puts kernels of several steps together: the resource behind Batch and
// BatchFunction. Thread-safe.
//
// A kernel call is a job of so many rows. Jobs of one queue come into a batch that is open, until
// it is full or its oldest job has waited long enough; then it is run, as soon as fewer batches
// than |thread_count| are. A job of a splitting batcher may be cut into pieces of several batches.
//
// Nobody waits on a thread. A batch runs on behalf of one of its steps, the carrier, in which the
// function is called: that step's cancellation cancels the call, and its batch with it, as in
// TensorFlow. Any other step that is cancelled leaves at once: its rows leave a batch that is not
// run yet, and are dropped from the results of one that is.
#ifndef WEIR_OPS_BATCH_BATCHER_H_
#define WEIR_OPS_BATCH_BATCHER_H_

#include "base/alarm.h"
#include "ops/queue/waiter.h"

// A value type. Numbers are as in the ops' attributes.
typedef struct weir_step_batcher_config_t {
  bool is_function;            // BatchFunction: batches are arguments of a function
  bool is_adaptive;            // no number of threads was given
  bool splits;                 // large jobs go into several batches
  bool batches_down;           // rather a smaller batch than padding
  int64_t thread_count;        // batches that run at a time
  int64_t max_batch_size;      // rows of a job, and of a batch where nothing smaller is allowed
  int64_t max_enqueued_count;  // batches that wait
  int64_t timeout_us;
  const int64_t* allowed_sizes;  // ascending; batches are padded to one of them
  size_t allowed_count;
} weir_step_batcher_config_t;

typedef struct weir_step_batcher_t weir_step_batcher_t;
extern const weir_resource_type_t weir_step_batcher_type;
// Creates one by the weir_step_batcher_config_t |config|.
WEIR_MUST_USE weir_status_t* weir_step_batcher_create(void* config, weir_resource_t** out_resource);
bool weir_step_batcher_is_function(const weir_step_batcher_t* b);

// An asynchronous kernel's body: puts the first |input_count| inputs of |ctx| into queue |queue|,
// and completes with the kernel's part of the results. |function| is called with the inputs of all
// steps and the other inputs of one; 0 for Batch, whose results are the batch itself for one step.
// |queue| is borrowed for the call.
typedef struct weir_batch_call_t {
  weir_view_t queue;
  weir_function_handle_t function;
  int input_count;
} weir_batch_call_t;
void weir_step_batcher_submit(weir_step_batcher_t* b, const weir_batch_call_t* call,
                              weir_kernel_ctx_t* ctx, weir_done_t done);

#endif  // WEIR_OPS_BATCH_BATCHER_H_
