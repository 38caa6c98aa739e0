// batch_queue.c — A batcher's queues: who is let in, and into which batches.
#include "base/alloc.h"
#include "ops/batch/batcher_internal.h"

// ---- queues ----

void weir_batch_append(step_batch_t* batch, batch_piece_t* piece) {
  piece->next = NULL;
  if (batch->last) {
    batch->last->next = piece;
  } else {
    batch->first = piece;
  }
  batch->last = piece;
  batch->size += piece->end - piece->begin;
  ++batch->piece_count;
}

weir_status_t* weir_batch_queue_open(batch_queue_t* q) {
  step_batch_t* fresh = weir_batch_create();
  if (!fresh) return weir_out_of_memory();
  if (q->open) {
    q->open->next = fresh;
  } else {
    q->first = fresh;
  }
  q->open = fresh;
  ++q->count;
  return NULL;
}

void weir_batch_queue_destroy(batch_queue_t* q) {
  for (step_batch_t *batch = q->first, *next; batch; batch = next) {
    next = batch->next;
    weir_batch_destroy(batch);
  }
  weir_free(q->name);
  weir_free(q);
}

static weir_status_t* check_config(const weir_step_batcher_t* b) {
  const weir_step_batcher_config_t* c = &b->config;
  if (c->max_batch_size == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input_batch_size_limit must be positive; was 0");
  }
  if (c->timeout_us < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_timeout_micros must be non-negative; was %lld",
                       (long long)c->timeout_us);
  }
  if (b->max_size <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "max_execution_batch_size must be positive; was %lld",
                       (long long)b->max_size);
  }
  if (c->splits && !c->is_adaptive && b->max_size > c->max_batch_size) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "When enable_large_batch_splitting is true, input_batch_size_limit must be "
                       "greater than or equal to max_execution_batch_size.1%lld%lld",
                       (long long)c->max_batch_size, (long long)b->max_size);
  }
  return NULL;
}

weir_status_t* weir_batch_queue_find(weir_step_batcher_t* b, weir_view_t name,
                                     batch_queue_t** out_queue) {
  for (batch_queue_t* q = b->queues; q; q = q->next) {
    if (!weir_view_is(name, q->name)) continue;
    *out_queue = q;
    return NULL;
  }
  WEIR_TRY(check_config(b));
  batch_queue_t* fresh = weir_calloc(1, sizeof(*fresh));
  weir_status_t* status = fresh ? weir_batch_queue_open(fresh) : weir_out_of_memory();
  if (!status) {
    fresh->name = weir_strndup(name.size ? name.data : "", name.size);
    if (!fresh->name) status = weir_out_of_memory();
  }
  if (status) {
    if (fresh) weir_batch_queue_destroy(fresh);
    return status;
  }
  fresh->next = b->queues;
  b->queues = *out_queue = fresh;
  return NULL;
}

void weir_batch_job_take_back(batch_job_t* job) {
  batch_queue_t* q = job->queue;
  step_batch_t** link = &q->first;
  while (*link) {
    step_batch_t* batch = *link;
    batch_piece_t* pieces = batch->first;
    batch->first = batch->last = NULL;
    batch->size = batch->piece_count = 0;
    for (batch_piece_t* next; pieces; pieces = next) {
      next = pieces->next;
      if (pieces->job != job) {
        weir_batch_append(batch, pieces);
        continue;
      }
      weir_batch_job_release(pieces->job);
      weir_free(pieces);
    }
    if (batch->first || batch == q->open) {
      link = &batch->next;
      continue;
    }
    *link = batch->next;
    --q->count;
    weir_batch_destroy(batch);
  }
}

// ---- coming in ----

static weir_status_t* add_piece(weir_step_batcher_t* b, batch_job_t* job, int64_t begin,
                                int64_t end) {
  batch_queue_t* q = job->queue;
  if (q->open->size >= b->max_size || (q->open->size + end - begin) > b->max_size) {
    WEIR_TRY(weir_batch_queue_open(q));
  }
  batch_piece_t* piece = weir_calloc(1, sizeof(*piece));
  if (!piece) return weir_out_of_memory();
  piece->job = weir_batch_job_retain(job);
  piece->index = job->piece_count++;
  piece->begin = begin;
  piece->end = end;
  ++job->pieces_left;
  if (!q->open->first) q->open_ns = weir_clock_ns();
  weir_batch_append(q->open, piece);
  return NULL;
}

static weir_status_t* check_room(const weir_step_batcher_t* b, const batch_job_t* job) {
  const batch_queue_t* q = job->queue;
  const weir_step_batcher_config_t* c = &b->config;
  const int64_t free_rows = b->max_size - q->open->size;
  if (job->size > c->max_batch_size) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Task size %lld is larger than %s %lld",
                       (long long)job->size,
                       c->is_adaptive ? "max input task size" : "maximum input batch size",
                       (long long)c->max_batch_size);
  }
  if (job->size <= free_rows) return NULL;
  const int64_t free_batches = c->max_enqueued_count - q->count;
  if (!c->splits) {
    if (free_batches > 0) return NULL;
    return WEIR_STATUS(UNAVAILABLE,
                       "The batch scheduling queue to which this task was submitted is full; "
                       "currently %lld batches enqueued and max_enqueued_batches is %lld",
                       (long long)q->count, (long long)c->max_enqueued_count);
  }
  if (free_batches > 0 && (job->size - free_rows - 1) / b->max_size < free_batches) return NULL;
  return WEIR_STATUS(
      UNAVAILABLE,
      "The batch scheduling queue to which this task was submitted is full; task "
      "size is %lld but scheduling capacity is only %lld (num_enqueued_batches=%lld, "
      "max_enqueued_batches=%lld, open_batch_size=%lld, "
      "max_execution_batch_size=%lld)",
      (long long)job->size, (long long)(free_batches * b->max_size + free_rows),
      (long long)q->count, (long long)c->max_enqueued_count, (long long)q->open->size,
      (long long)b->max_size);
}

static weir_status_t* add_pieces(weir_step_batcher_t* b, batch_job_t* job) {
  if (!b->config.splits) return add_piece(b, job, 0, job->size);
  for (int64_t row = 0, end; row < job->size; row = end) {
    const int64_t free_rows = b->max_size - job->queue->open->size;
    end = row + WEIR_MIN(job->size - row, free_rows > 0 ? free_rows : b->max_size);
    WEIR_TRY(add_piece(b, job, row, end));
  }
  return NULL;
}

weir_status_t* weir_batch_job_admit(weir_step_batcher_t* b, batch_job_t* job) {
  WEIR_TRY(check_room(b, job));
  weir_status_t* status = add_pieces(b, job);
  if (!status && job->is_function) {
    job->outputs =
        weir_calloc((size_t)job->piece_count * (size_t)job->output_count, sizeof(*job->outputs));
    if (!job->outputs) status = weir_out_of_memory();
  }
  if (status) weir_batch_job_take_back(job);
  return status;
}
