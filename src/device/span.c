// span.c — Marks around what is in a stream, and what they become.
#include "device/span.h"

static _Thread_local weir_stream_span_t* current __attribute__((tls_model("initial-exec")));

// Pieces of one copy are started by several threads. Only traced steps come here.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

weir_stream_span_t* weir_span_set(weir_stream_span_t* span) {
  weir_stream_span_t* before = current;
  current = span;
  return before;
}

void weir_span_forget(const weir_stream_span_t* span) {
  if (current == span) current = NULL;
}

weir_stream_span_t* weir_span_current(void) { return current; }

void weir_span_enter(weir_device_t* device, weir_stream_t stream) {
  weir_stream_span_t* span = current;
  if (WEIR_LIKELY(!span) || !device->vtable->timer) return;
  pthread_mutex_lock(&mu);
  if (!span->device) {
    span->first = device->vtable->timer->mark(device, stream);
    span->device = span->first ? device : NULL;
    span->stream = stream;
  }
  pthread_mutex_unlock(&mu);
}

static void mark_last(weir_stream_span_t* span) {
  weir_device_t* device = span->device;
  void* mark = device->vtable->timer->mark(device, span->stream);
  if (mark && span->last) device->vtable->timer->drop(device, span->last);
  if (mark) span->last = mark;
}

void weir_span_close(weir_stream_span_t* span) {
  if (span->device && !span->last) mark_last(span);
}

void weir_span_extend(weir_device_t* device, weir_stream_t stream) {
  weir_stream_span_t* span = current;
  if (WEIR_LIKELY(!span)) return;
  pthread_mutex_lock(&mu);
  if (span->device == device && span->stream == stream) mark_last(span);
  pthread_mutex_unlock(&mu);
}

// ---- times ----

// |anchor| is NULL where there is none: the marks are dropped, the times not known.
static void resolve(weir_stream_span_t* span, void* anchor, int64_t anchor_ns) {
  weir_device_t* device = span->device;
  const weir_timer_vtable_t* timer = device->vtable->timer;
  int64_t first = 0, last = 0;
  bool is_known = anchor && span->first && span->last &&
                  timer->before(device, span->first, anchor, &first) &&
                  timer->before(device, span->last, anchor, &last);
  if (is_known) {
    span->start_ns = anchor_ns - first;
    span->end_ns = anchor_ns - last;
  }
  if (span->first) timer->drop(device, span->first);
  if (span->last) timer->drop(device, span->last);
  span->first = span->last = NULL;
}

void weir_spans_resolve(weir_device_t* device, weir_stream_span_t* spans, size_t count,
                        size_t stride) {
  void* anchor = NULL;
  int64_t anchor_ns = 0;
  for (size_t i = 0; i < count; ++i) {
    weir_stream_span_t* span = (weir_stream_span_t*)((char*)spans + i * stride);
    if (span->device != device || !span->first) continue;
    if (!anchor) anchor = device->vtable->timer->anchor(device, &anchor_ns);
    resolve(span, anchor, anchor_ns);
  }
  if (anchor) device->vtable->timer->drop(device, anchor);
}
