// fractional.h — Pooling over windows of changing sizes: where they begin is drawn at random, once
// for rows and once for columns. NHWC memory; float, double, int32 and int64. Thread-safe.
#ifndef WEIR_KERNEL_POOL_FRACTIONAL_H_
#define WEIR_KERNEL_POOL_FRACTIONAL_H_

#include "base/philox.h"
#include "base/thread.h"
#include "weir/dtype.h"

typedef struct weir_fractional_t {
  int64_t batch, in_h, in_w, channels;
  int64_t out_h, out_w;
  const int64_t *rows, *columns;  // where windows begin: out_h + 1 and out_w + 1 numbers
  bool is_overlapping;            // a window has the first row of the next one, too
} weir_fractional_t;

// Rows (or columns) [begin, end) of window |i| of |starts| in an input of |size| rows. Empty where
// they are out of order; never beyond |size|, and not before 0 unless |starts| has such numbers.
WEIR_INLINE void weir_fractional_span(const weir_fractional_t* f, const int64_t* starts, int64_t i,
                                      int64_t size, int64_t* begin, int64_t* end) {
  *begin = starts[i];
  *end = starts[i + 1];
  if (f->is_overlapping && *end < size) ++*end;
  if (*end > size) *end = size;
}

// Draws |out| + 1 starts, of 0 to |in|, as TensorFlow does from the same generator, which is moved
// on. in >= out >= 1.
void weir_fractional_draw(weir_philox_t* philox, int64_t in, int64_t out, bool is_pseudo_random,
                          int64_t* starts);

void weir_fractional_max(weir_pool_t* pool, weir_dtype_t dtype, const weir_fractional_t* f,
                         const void* in, void* out);
// Integers are divided as such.
void weir_fractional_avg(weir_pool_t* pool, weir_dtype_t dtype, const weir_fractional_t* f,
                         const void* in, void* out);
// Where the first maximum of each window is, as an offset into |in|, -1 of none. Returns whether
// all maxima are those of |out|.
bool weir_fractional_argmax(weir_dtype_t dtype, const weir_fractional_t* f, const void* in,
                            const void* out, int64_t* argmax);
// dx[argmax[i]] += dy[i]; |dx| is of zeros.
void weir_fractional_scatter(weir_dtype_t dtype, const int64_t* argmax, int64_t count,
                             const void* dy, void* dx);
// Spreads |dy|, of |batch| images and |channels| of dtype |dtype|, evenly over the windows of
// |sums|, which has f->batch images of f->channels and is of zeros; then makes numbers of |dtype|
// of them.
void weir_fractional_spread(weir_dtype_t dtype, const weir_fractional_t* f, int64_t batch,
                            int64_t channels, const void* dy, double* sums);
void weir_fractional_convert(weir_dtype_t dtype, const double* sums, int64_t count, void* dx);

#endif  // WEIR_KERNEL_POOL_FRACTIONAL_H_
