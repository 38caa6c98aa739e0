// batcher_internal.h — A batcher's queues (batcher.c) and its batches under way (batch_run.c).
#ifndef WEIR_OPS_BATCH_BATCHER_INTERNAL_H_
#define WEIR_OPS_BATCH_BATCHER_INTERNAL_H_

#include "ops/batch/batch_job.h"

// Pieces in order of arrival. In a queue it is guarded by the batcher's mutex; under way it is its
// runner's.
typedef struct step_batch_t {
  struct step_batch_t* next;   // of the queue, towards the open one
  weir_step_batcher_t* owner;  // retained while it is under way
  batch_piece_t* first;
  batch_piece_t* last;
  int64_t size;  // rows
  int piece_count;
  // Under way:
  batch_job_t* carrier;  // one of the pieces' jobs; its request is held
  int64_t padding;
  weir_call_t call;
  weir_tensor_t** tensors;  // the arguments of the batch, then the results; references
  int joined_count;         // of the arguments: those that are the batch's own
} step_batch_t;

struct batch_queue_t {
  batch_queue_t* next;
  char* name;
  step_batch_t* first;  // waiting ones; the last is open, the others are not
  step_batch_t* open;   // never NULL
  int64_t count;        // of them, at least 1
  int64_t open_ns;      // when the open batch got its first piece
};

struct weir_step_batcher_t {
  weir_resource_t base;
  weir_mutex_t mu;
  weir_step_batcher_config_t config;  // immutable, as |max_size|; |allowed_sizes| is owned
  int64_t max_size;                   // rows of a batch
  int64_t timeout_ns;
  batch_queue_t* queues;  // guarded by mu, as all below
  batch_queue_t* turn;    // the queue that is looked at first
  int64_t running_count;
  bool is_dispatching, dispatches_again;
  bool has_no_alarm;  // there was no thread for one: nothing waits for its time
  weir_waiters_t requests;
  weir_alarm_t alarm;  // a set one holds a reference on the batcher
};

// Runs whatever batches may be run. No mutex held; the caller holds a reference.
void weir_step_batcher_dispatch(weir_step_batcher_t* b);

// ---- queues; |mu| held ----

// The queue of that name, created if need be.
WEIR_MUST_USE weir_status_t* weir_batch_queue_find(weir_step_batcher_t* b, weir_view_t name,
                                                   batch_queue_t** out_queue);
void weir_batch_queue_destroy(batch_queue_t* q);
// Closes the open batch and opens another.
WEIR_MUST_USE weir_status_t* weir_batch_queue_open(batch_queue_t* q);
void weir_batch_append(step_batch_t* batch, batch_piece_t* take_piece);
// Puts |job| into batches of its queue. UNAVAILABLE when there are too many of them.
WEIR_MUST_USE weir_status_t* weir_batch_job_admit(weir_step_batcher_t* b, batch_job_t* job);
// Takes what is not run yet of |job| out of its queue.
void weir_batch_job_take_back(batch_job_t* job);

// ---- batches ----

// Creates an empty batch; NULL when out of memory.
step_batch_t* weir_batch_create(void);
void weir_batch_destroy(step_batch_t* batch);
// Runs |take_batch|, which has a carrier and a reference on its owner.
void weir_step_batcher_run(step_batch_t* take_batch);

#endif  // WEIR_OPS_BATCH_BATCHER_INTERNAL_H_
