// staging.c — Buffers, and transfers that take turns at them.
#include "device/staging.h"

#include "device/span.h"
#include "device/thread_stream.h"

enum { BUFFERS = 4, BUFFERS_EACH = 2 };  // in all, and of one transfer
static const size_t kBufferSize = 1 << 20;
static const size_t kAtOnce = 1 << 14;  // bytes that are moved sooner than another thread wakes

typedef struct transfer_t {
  weir_staging_t* staging;
  weir_stream_t stream;
  weir_stream_span_t* span;  // of whoever wants to know how long it takes; NULL: nobody
  const char* src;
  char* dst;
  size_t size;
  size_t begun;  // bytes; guarded by the staging's mu, as what follows
  int under_way;
  weir_status_t* status;    // of the first piece that failed; none begins afterwards
  struct transfer_t* next;  // of those that have pieces left to begin
  weir_copy_done_fn_t done;
  void* arg;
} transfer_t;

// A buffer, and the piece of a transfer that is in it.
typedef struct piece_t {
  weir_work_t work;  // first: moves between tensor and buffer
  char* buffer;
  transfer_t* transfer;  // NULL: it is free
  size_t offset, size;
} piece_t;

struct weir_staging_t {
  weir_device_t* device;  // whose part it is
  weir_allocator_t* allocator;
  thread_stream_t* mover;
  weir_mutex_t mu;  // guards all below
  piece_t pieces[BUFFERS];
  transfer_t* waiting;
  int callers;  // within weir_staging_copy, whose copies may be over already
  weir_cond_t left;
};

// ---- turns ----

static bool has_all_begun(const transfer_t* transfer) {
  return transfer->status || transfer->begun == transfer->size;
}

static piece_t* find_free_locked(weir_staging_t* staging) WEIR_REQUIRES(staging->mu) {
  for (int i = 0; i < BUFFERS; ++i) {
    if (!staging->pieces[i].transfer) return &staging->pieces[i];
  }
  return NULL;
}

// The next piece of the first transfer that may have one more; NULL: none, or no buffer.
static piece_t* take_piece(weir_staging_t* staging) {
  weir_mutex_lock(&staging->mu);
  piece_t* piece = find_free_locked(staging);
  transfer_t** at = &staging->waiting;
  while (*at && (*at)->under_way == BUFFERS_EACH) at = &(*at)->next;
  transfer_t* transfer = *at;
  if (piece && transfer) {
    piece->transfer = transfer;
    piece->offset = transfer->begun;
    piece->size = WEIR_MIN(transfer->size - transfer->begun, kBufferSize);
    transfer->begun += piece->size;
    ++transfer->under_way;
    if (has_all_begun(transfer)) *at = transfer->next;
  }
  weir_mutex_unlock(&staging->mu);
  return transfer ? piece : NULL;
}

// ---- pieces: moved, then copied, to the device; copied, then moved, from it ----

static void move(piece_t* piece);
static void copy(piece_t* piece);

static bool is_upload(const piece_t* piece) {
  return piece->transfer->stream == WEIR_STREAM_UPLOAD;
}

static void begin(weir_staging_t* staging) {
  for (piece_t* piece; (piece = take_piece(staging));) {
    if (is_upload(piece)) move(piece);
    else copy(piece);
  }
}

static void unlink_locked(weir_staging_t* staging, const transfer_t* transfer)
    WEIR_REQUIRES(staging->mu) {
  transfer_t** at = &staging->waiting;
  while (*at && *at != transfer) at = &(*at)->next;
  if (*at) *at = transfer->next;
}

static void end(piece_t* piece, weir_status_t* take_status) {
  transfer_t* transfer = piece->transfer;
  weir_staging_t* staging = transfer->staging;
  weir_mutex_lock(&staging->mu);
  if (take_status) unlink_locked(staging, transfer);
  if (!transfer->status) transfer->status = take_status;
  else weir_status_destroy(take_status);
  piece->transfer = NULL;
  bool is_last = --transfer->under_way == 0 && has_all_begun(transfer);
  weir_mutex_unlock(&staging->mu);
  begin(staging);
  if (!is_last) return;
  transfer_t over = *transfer;
  weir_free(transfer);
  over.done(over.arg, over.status);  // the staging may be gone afterwards
}

static void run_move(weir_work_t* work) {
  const piece_t* piece = (const piece_t*)work;
  const transfer_t* transfer = piece->transfer;
  if (is_upload(piece)) memcpy(piece->buffer, transfer->src + piece->offset, piece->size);
  else memcpy(transfer->dst + piece->offset, piece->buffer, piece->size);
}

static void on_moved(weir_work_t* work) {
  piece_t* piece = (piece_t*)work;
  if (is_upload(piece)) copy(piece);
  else end(piece, NULL);
}

static void move(piece_t* piece) {
  piece->work = (weir_work_t){.run = run_move, .done = on_moved};
  if (piece->size > kAtOnce) {
    weir_thread_stream_submit(piece->transfer->staging->mover, &piece->work);
  } else {
    run_move(&piece->work);
    on_moved(&piece->work);
  }
}

static void on_copied(void* arg, weir_status_t* take_status) {
  piece_t* piece = arg;
  if (take_status || is_upload(piece)) end(piece, take_status);
  else move(piece);
}

static void copy(piece_t* piece) {
  const transfer_t* transfer = piece->transfer;
  bool is_up = is_upload(piece);
  weir_device_t* device = transfer->staging->device;
  weir_stream_span_t* outer = weir_span_set(transfer->span);
  device->vtable->copy(
      device, transfer->stream, is_up ? piece->buffer : transfer->src + piece->offset,
      is_up ? transfer->dst + piece->offset : piece->buffer, piece->size, on_copied, piece);
  weir_span_set(outer);
}

void weir_staging_copy(weir_staging_t* staging, weir_stream_t stream, const void* src, void* dst,
                       size_t size, weir_copy_done_fn_t done, void* arg) {
  transfer_t* transfer = weir_calloc(1, sizeof(*transfer));
  if (!transfer) {
    done(arg, weir_out_of_memory());
    return;
  }
  *transfer = (transfer_t){.staging = staging,
                           .stream = stream,
                           .span = weir_span_current(),
                           .src = src,
                           .dst = dst,
                           .size = size,
                           .done = done,
                           .arg = arg};
  weir_mutex_lock(&staging->mu);
  transfer_t** at = &staging->waiting;
  while (*at) at = &(*at)->next;
  *at = transfer;
  ++staging->callers;
  weir_mutex_unlock(&staging->mu);
  begin(staging);
  weir_mutex_lock(&staging->mu);
  if (--staging->callers == 0) weir_cond_signal(&staging->left);
  weir_mutex_unlock(&staging->mu);
}

// ---- the whole ----

static void run_work(void* arg, weir_work_t* work) {
  (void)arg;
  work->run(work);
}

static weir_status_t* init(weir_staging_t* staging) {
  for (int i = 0; i < BUFFERS; ++i) {
    weir_allocator_t* allocator = staging->allocator;
    staging->pieces[i].buffer =
        allocator->vtable->alloc(allocator, kBufferSize, WEIR_TENSOR_ALIGNMENT);
    if (!staging->pieces[i].buffer)
      return WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: no host memory for copies",
                         staging->device->name);
  }
  return weir_thread_stream_create(run_work, NULL, &staging->mover);
}

weir_status_t* weir_staging_create(weir_device_t* device, weir_allocator_t* allocator,
                                   weir_staging_t** out_staging) {
  weir_staging_t* staging = weir_calloc(1, sizeof(*staging));
  if (!staging) return weir_out_of_memory();
  staging->device = device;
  staging->allocator = allocator;
  weir_mutex_init(&staging->mu);
  weir_cond_init(&staging->left);
  weir_status_t* status = init(staging);
  if (status) weir_staging_destroy(staging);
  else *out_staging = staging;
  return status;
}

void weir_staging_destroy(weir_staging_t* staging) {
  if (!staging) return;
  weir_mutex_lock(&staging->mu);
  while (staging->callers > 0) weir_cond_wait(&staging->left, &staging->mu);
  weir_mutex_unlock(&staging->mu);
  weir_thread_stream_destroy(staging->mover);
  weir_allocator_t* allocator = staging->allocator;
  for (int i = 0; i < BUFFERS; ++i) {
    char* buffer = staging->pieces[i].buffer;
    if (buffer) allocator->vtable->free(allocator, buffer, kBufferSize);
  }
  weir_cond_destroy(&staging->left);
  weir_mutex_destroy(&staging->mu);
  weir_free(staging);
}
