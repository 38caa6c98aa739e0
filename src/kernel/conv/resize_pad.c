// resize_pad.c — Bilinear resizing and mirrored borders in one go: rows and columns are found
// first.
#include "kernel/conv/resize_pad.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// Between which two rows (or columns) of the input one of the output is, and how near the second.
typedef struct tap_t {
  int64_t low, high;
  float weight;
} tap_t;

typedef struct job_t {
  const weir_resize_pad_t* p;
  const tap_t* taps[2];
  const void* in;
  void* out;
} job_t;

#define T float
#define NAME(x) x##_float
#include "kernel/conv/resize_pad.inc"
#define T double
#define NAME(x) x##_double
#include "kernel/conv/resize_pad.inc"

static int64_t mirror(int64_t i, int64_t size, int64_t offset) {
  if (i < 0) return -i - 1 + offset;
  return i < size ? i : 2 * size - 1 - offset - i;
}

static void find_taps(const weir_resize_pad_t* p, int axis, tap_t* taps) {
  const int64_t in = p->in[axis], resized = p->resized[axis];
  const float scale = p->is_align_corners && resized > 1 ? (float)(in - 1) / (float)(resized - 1)
                                                         : (float)in / (float)resized;
  for (int64_t i = 0; i < p->out[axis]; ++i) {
    const int64_t at = mirror(i - p->before[axis], resized, p->offset);
    const float place = (float)at * scale;
    tap_t* tap = &taps[i];
    if (in == resized) {
      *tap = (tap_t){.low = at, .high = at};
      continue;
    }
    tap->low = WEIR_MIN((int64_t)floorf(place), in - 1);
    tap->high = WEIR_MIN(tap->low + 1, in - 1);
    tap->weight = place - floorf(place);
  }
}

weir_status_t* weir_resize_pad(weir_pool_t* pool, weir_dtype_t dtype, const weir_resize_pad_t* p,
                               const void* in, void* out) {
  const bool is_double = dtype == WEIR_DTYPE_DOUBLE;
  const bool is_copy = p->in[0] == p->resized[0] && p->in[1] == p->resized[1];
  tap_t* taps = weir_alloc_array((size_t)(p->out[0] + p->out[1]), sizeof(*taps));
  if (!taps) return weir_out_of_memory();
  job_t job = {.p = p, .taps = {taps, taps + p->out[0]}, .in = in, .out = out};
  find_taps(p, 0, taps);
  find_taps(p, 1, taps + p->out[0]);
  weir_range_fn_t fn = is_copy ? (is_double ? copy_rows_double : copy_rows_float)
                               : (is_double ? make_rows_double : make_rows_float);
  weir_pool_for(pool, p->batch * p->out[0], (double)(p->out[1] * p->channels), fn, &job);
  weir_free(taps);
  return NULL;
}
