// span.h — How long a stream was at what a thread put into it, by the device's own clock. For
// traces: a thread that has put up no span pays for a look at a thread-local variable.
//
// Whoever wants to know puts up a span on its thread. The first thing that this thread then puts in
// a stream leaves a mark before it; a mark after the last is left when the span is closed, or, by
// copies, whose pieces other threads may start and which are waited for, after each. Marks become
// times when the stream is past them.
#ifndef WEIR_DEVICE_SPAN_H_
#define WEIR_DEVICE_SPAN_H_

#include "device/device.h"

// Marks in the streams of a device that can tell when it passed them.
typedef struct weir_timer_vtable_t {
  void* (*mark)(weir_device_t* device, weir_stream_t stream);  // NULL: there can be none
  void (*drop)(weir_device_t* device, void* mark);
  // A mark that was passed just now, and weir_clock_ns of then; NULL likewise.
  void* (*anchor)(weir_device_t* device, int64_t* out_ns);
  // Nanoseconds between two marks, |later| an anchor; waits for |mark|. False: it cannot tell.
  bool (*before)(weir_device_t* device, void* mark, void* later, int64_t* out_ns);
} weir_timer_vtable_t;

// One stream's, the first that was put to use. All zeros: of none.
typedef struct weir_stream_span_t {
  weir_device_t* device;  // borrowed; NULL: nothing was put in a stream
  weir_stream_t stream;
  void *first, *last;        // marks; NULL once they are times
  int64_t start_ns, end_ns;  // weir_clock_ns's; both 0: not known
} weir_stream_span_t;

// Puts |span| up, NULL for none, and returns what was up before: for the caller to put back.
weir_stream_span_t* weir_span_set(weir_stream_span_t* span);
// |span| is no longer up on this thread, if it was.
void weir_span_forget(const weir_stream_span_t* span);
weir_stream_span_t* weir_span_current(void);
// Something is put into |stream| next.
void weir_span_enter(weir_device_t* device, weir_stream_t stream);
// Nothing more is; for kernels: copies have left their mark.
void weir_span_close(weir_stream_span_t* span);
// A copy was put into |stream|, after weir_span_enter.
void weir_span_extend(weir_device_t* device, weir_stream_t stream);
// Makes times of the marks of those of |spans|, |stride| bytes from each other, that are
// |device|'s.
void weir_spans_resolve(weir_device_t* device, weir_stream_span_t* spans, size_t count,
                        size_t stride);

#endif  // WEIR_DEVICE_SPAN_H_
