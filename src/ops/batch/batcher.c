// batcher.c — Batches and their time: when one is closed, and which is run next.
//
// Only dispatch takes batches out of queues, on one thread at a time. It is called when a job came,
// a batch ended or the alarm went off, without the mutex.
#include "ops/batch/batcher.h"

#include "base/alloc.h"
#include "ops/batch/batcher_internal.h"

enum { MEMORY_WAIT_NS = 10000000 };

// ---- sizes ----

static int64_t padded_size(const weir_step_batcher_t* b, int64_t size) {
  for (size_t i = 0; i < b->config.allowed_count; ++i) {
    if (b->config.allowed_sizes[i] >= size) return b->config.allowed_sizes[i];
  }
  return size;
}

// The largest size up to |size| that needs no padding; 0: none.
static int64_t size_without_padding(const weir_step_batcher_t* b, int64_t size) {
  int64_t largest = b->config.allowed_count ? 0 : size;
  for (size_t i = 0; i < b->config.allowed_count && b->config.allowed_sizes[i] <= size; ++i) {
    largest = b->config.allowed_sizes[i];
  }
  return largest;
}

// ---- coming in and leaving; |mu| held ----

// Lets the newest request in, if it is not yet.
static void flush(weir_resource_t* owner, weir_waiters_t* completed) {
  weir_step_batcher_t* b = (weir_step_batcher_t*)owner;
  batch_request_t* request = (batch_request_t*)b->requests.tail;
  if (!request || request->job->is_admitted) return;
  request->job->is_admitted = true;
  weir_status_t* status = weir_batch_job_admit(b, request->job);
  if (!status) return;
  request->job->request = NULL;
  weir_waiter_complete(&request->base, status, completed);
}

static void abandon(weir_waiter_t* waiter) {
  batch_job_t* job = ((batch_request_t*)waiter)->job;
  job->request = NULL;
  weir_batch_job_take_back(job);
}

// ---- going out; |mu| held ----

static bool is_due(const weir_step_batcher_t* b, const batch_queue_t* q, int64_t now) {
  if (!q->open->first) return false;
  return q->open->size >= b->max_size || b->has_no_alarm || now - q->open_ns >= b->timeout_ns;
}

// Leaves to the next batch what this one would need padding for, if that is whole pieces.
static void trim(const weir_step_batcher_t* b, batch_queue_t* q, step_batch_t* batch) {
  const int64_t size = size_without_padding(b, batch->size);
  int64_t rows = 0;
  batch_piece_t* last = batch->first;
  if (size == 0 || size == batch->size) return;
  for (rows = last->end - last->begin; rows < size && last->next; rows += last->end - last->begin) {
    last = last->next;
  }
  if (rows != size) return;
  batch_piece_t* rest = last->next;
  last->next = NULL;
  batch->last = last;
  q->open_ns = weir_clock_ns();
  for (batch_piece_t* next; rest; rest = next) {
    next = rest->next;
    batch->size -= rest->end - rest->begin;
    --batch->piece_count;
    weir_batch_append(q->open, rest);
  }
}

static step_batch_t* take_first(batch_queue_t* q) {
  step_batch_t* batch = q->first;
  q->first = batch->next;
  batch->next = NULL;
  --q->count;
  return batch;
}

// The next batch of |q| to be run; NULL: none. Without memory for another, one that is due
// waits for it.
static step_batch_t* take_from(weir_step_batcher_t* b, batch_queue_t* q, int64_t now) {
  if (q->count == 1) {
    if (!is_due(b, q, now)) return NULL;
    weir_status_t* status = weir_batch_queue_open(q);
    if (status) {
      weir_status_destroy(status);
      return NULL;
    }
    if (b->config.batches_down) trim(b, q, q->first);
  }
  return take_first(q);
}

// Queues take turns.
static step_batch_t* take_next(weir_step_batcher_t* b, int64_t now) {
  batch_queue_t* begin = b->turn ? b->turn : b->queues;
  batch_queue_t* q = begin;
  step_batch_t* batch = NULL;
  while (q && !batch) {
    batch = take_from(b, q, now);
    q = q->next ? q->next : b->queues;
    if (q == begin) break;
  }
  if (batch) b->turn = q;
  return batch;
}

// Chooses the step that carries |batch|: the last whose step goes on.
static void begin_batch(weir_step_batcher_t* b, step_batch_t* batch) {
  for (const batch_piece_t* p = batch->first; p; p = p->next) {
    weir_kernel_ctx_t* ctx = p->job->request->base.ctx;
    if (!batch->carrier || !weir_cancel_is_cancelled(ctx->step->cancel)) batch->carrier = p->job;
  }
  weir_waiter_t* waiter = &batch->carrier->request->base;
  if (waiter->list) weir_waiter_hold(waiter);
  batch->owner = b;
  batch->padding = padded_size(b, batch->size) - batch->size;
  weir_resource_retain(&b->base);
  ++b->running_count;
}

// A batch that is due already waits for another to end, not for the alarm; but where none has to,
// it waits for memory.
static void set_alarm(weir_step_batcher_t* b, int64_t now) {
  const bool lacks_memory = b->running_count < b->config.thread_count;
  int64_t earliest = INT64_MAX;
  bool is_new = false;
  for (const batch_queue_t* q = b->queues; q; q = q->next) {
    if (!q->open->first) continue;
    if (!is_due(b, q, now)) {
      earliest = WEIR_MIN(earliest, q->open_ns + b->timeout_ns);
    } else if (lacks_memory) {
      earliest = WEIR_MIN(earliest, now + MEMORY_WAIT_NS);
    }
  }
  if (earliest == INT64_MAX) {
    if (weir_alarm_clear(&b->alarm)) weir_resource_release(&b->base);
    return;
  }
  if (!weir_alarm_set(&b->alarm, earliest, &is_new)) {
    b->dispatches_again = !b->has_no_alarm;
    b->has_no_alarm = true;
  }
  if (is_new) weir_resource_retain(&b->base);
}

static void run_task(void* arg) { weir_step_batcher_run(arg); }

void weir_step_batcher_dispatch(weir_step_batcher_t* b) {
  weir_mutex_lock(&b->mu);
  b->dispatches_again = true;
  if (b->is_dispatching) {
    weir_mutex_unlock(&b->mu);
    return;
  }
  b->is_dispatching = true;
  while (b->dispatches_again) {
    b->dispatches_again = false;
    const int64_t now = weir_clock_ns();
    step_batch_t* batch = b->running_count < b->config.thread_count ? take_next(b, now) : NULL;
    if (!batch) {
      set_alarm(b, now);
      continue;
    }
    b->dispatches_again = true;
    begin_batch(b, batch);
    weir_pool_t* pool = batch->carrier->request->base.ctx->step->inter_pool;
    weir_mutex_unlock(&b->mu);
    if (pool) {
      weir_pool_submit(pool, run_task, batch);
    } else {
      weir_step_batcher_run(batch);
    }
    weir_mutex_lock(&b->mu);
  }
  b->is_dispatching = false;
  weir_mutex_unlock(&b->mu);
}

static void on_alarm(weir_alarm_t* alarm) {
  weir_step_batcher_t* b =
      (weir_step_batcher_t*)((char*)alarm - offsetof(weir_step_batcher_t, alarm));
  weir_step_batcher_dispatch(b);
  weir_resource_release(&b->base);
}

// ---- life ----

static void batcher_destroy(weir_resource_t* resource) {
  weir_step_batcher_t* b = (weir_step_batcher_t*)resource;
  for (batch_queue_t *q = b->queues, *next; q; q = next) {
    next = q->next;
    weir_batch_queue_destroy(q);
  }
  weir_mutex_destroy(&b->mu);
  weir_free((int64_t*)b->config.allowed_sizes);
  weir_free(b);
}

static void batcher_close(weir_resource_t* resource) {
  weir_step_batcher_t* b = (weir_step_batcher_t*)resource;
  weir_waiters_t completed = {0};
  weir_mutex_lock(&b->mu);
  while (b->requests.head) {
    weir_waiter_t* waiter = b->requests.head;
    abandon(waiter);
    weir_waiter_complete(waiter, WEIR_STATUS(CANCELLED, "The batch queue is gone"), &completed);
  }
  const bool was_set = weir_alarm_clear(&b->alarm);
  weir_mutex_unlock(&b->mu);
  weir_waiters_answer(&completed);
  if (was_set) weir_resource_release(resource);
}

const weir_resource_type_t weir_step_batcher_type = {
    .name = "BatchResource", .destroy = batcher_destroy, .close = batcher_close};

weir_status_t* weir_step_batcher_create(void* config, weir_resource_t** out_resource) {
  const weir_step_batcher_config_t* c = config;
  const int64_t unlimited_us = INT64_MAX / 4000;
  if (c->thread_count <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_batch_threads must be positive; was %lld",
                       (long long)c->thread_count);
  }
  weir_step_batcher_t* b = weir_calloc(1, sizeof(*b));
  int64_t* sizes = weir_calloc(c->allowed_count + 1, sizeof(*sizes));
  if (!b || !sizes) {
    weir_free(b);
    weir_free(sizes);
    return weir_out_of_memory();
  }
  for (size_t i = 0; i < c->allowed_count; ++i) sizes[i] = c->allowed_sizes[i];
  weir_resource_init(&b->base, &weir_step_batcher_type);
  weir_mutex_init(&b->mu);
  weir_waiters_init(&b->requests, &b->mu, flush);
  b->config = *c;
  b->config.allowed_sizes = sizes;
  if (c->max_batch_size < 0) b->config.max_batch_size = INT64_MAX;
  b->config.max_enqueued_count = WEIR_MAX(c->max_enqueued_count, 1);
  b->max_size =
      c->splits && c->allowed_count ? sizes[c->allowed_count - 1] : b->config.max_batch_size;
  b->timeout_ns = 1000 * WEIR_MIN(c->timeout_us, unlimited_us);
  b->alarm.fire = on_alarm;
  *out_resource = &b->base;
  return NULL;
}

bool weir_step_batcher_is_function(const weir_step_batcher_t* b) { return b->config.is_function; }

void weir_step_batcher_submit(weir_step_batcher_t* b, const weir_batch_call_t* call,
                              weir_kernel_ctx_t* ctx, weir_done_t done) {
  batch_request_t* request = NULL;
  weir_status_t* status = weir_batch_job_create(ctx, call, &request);
  if (!status) {
    weir_mutex_lock(&b->mu);
    status = weir_batch_queue_find(b, call->queue, &request->job->queue);
    weir_mutex_unlock(&b->mu);
  }
  if (status) {
    if (request) weir_batch_job_release(request->job);
    weir_free(request);
    weir_done_call(done, status);
    return;
  }
  request->base.abandon = abandon;
  weir_waiter_submit(&b->requests, &request->base, &b->base, ctx, done);
  weir_step_batcher_dispatch(b);
}
