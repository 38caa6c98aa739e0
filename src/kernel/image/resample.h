// resample.h — Resampling of images, an axis at a time: each element of the result is a weighted
// sum of a few of the original. What ResizeBicubic, ResizeArea and ScaleAndTranslate differ in is
// the weights; a gradient is the same with the weights transposed.
//
// Taps are thread-compatible; weir_resample is thread-safe.
#ifndef WEIR_KERNEL_IMAGE_RESAMPLE_H_
#define WEIR_KERNEL_IMAGE_RESAMPLE_H_

#include "base/thread.h"
#include "weir/dtype.h"

// The taps of an axis: element i of the result is the sum of those in [begins[i], begins[i + 1]).
typedef struct weir_taps_t {
  int64_t in, out;          // elements of the axis, before and after
  int64_t filled;           // elements of the result that are complete
  int64_t* begins;          // owned: out + 1
  int64_t* indices;         // owned: which element each tap reads
  float* weights;           // owned: and how much of it
  int64_t count, capacity;  // of |indices| and |weights|
} weir_taps_t;

// Allocates for |out| elements; to be filled in order by add and next.
WEIR_MUST_USE weir_status_t* weir_taps_init(weir_taps_t* taps, int64_t in, int64_t out);
void weir_taps_free(weir_taps_t* taps);
// Adds a tap to the element under way.
WEIR_MUST_USE weir_status_t* weir_taps_add(weir_taps_t* taps, int64_t index, float weight);
// That element is complete.
WEIR_INLINE void weir_taps_next(weir_taps_t* taps) { taps->begins[++taps->filled] = taps->count; }
// Swaps in and out, and so makes the taps of a gradient: in the order of the elements that they
// read. Taps that weigh nothing are left out.
WEIR_MUST_USE weir_status_t* weir_taps_transpose(weir_taps_t* taps);

typedef struct weir_resample_t {
  const weir_taps_t *rows, *columns;
  int64_t batch, channels;
  const float* src;    // batch, rows->in, columns->in, channels
  void* dst;           // batch, rows->out, columns->out, channels
  weir_dtype_t dtype;  // float or double: of |dst| and of the sums
} weir_resample_t;

WEIR_MUST_USE weir_status_t* weir_resample(weir_pool_t* pool, const weir_resample_t* resample);

#endif  // WEIR_KERNEL_IMAGE_RESAMPLE_H_
