// round_trip.h — Floats quantised and made floats again (QuantizeAndDequantize). Float and double.
// Thread-safe.
#ifndef WEIR_KERNEL_QUANTIZED_ROUND_TRIP_H_
#define WEIR_KERNEL_QUANTIZED_ROUND_TRIP_H_

#include "base/thread.h"
#include "weir/dtype.h"

typedef struct weir_round_trip_t {
  int64_t outer, channels, inner;  // the elements; each channel has a range of its own
  int bits;                        // at most 62
  bool is_signed, is_narrow;
  bool rounds_up;   // halves; otherwise to even
  const void* low;  // one a channel: the range. NULL: that of the elements
  const void* high;
} weir_round_trip_t;

// RESOURCE_EXHAUSTED without memory for the scales. |y| may be |x|.
WEIR_MUST_USE weir_status_t* weir_round_trip(weir_pool_t* pool, weir_dtype_t dtype,
                                             const weir_round_trip_t* trip, const void* x, void* y);
// dx = dy where x is within the given range, 0 * dy elsewhere.
void weir_round_trip_grad(weir_pool_t* pool, weir_dtype_t dtype, const weir_round_trip_t* trip,
                          const void* dy, const void* x, void* dx);

#endif  // WEIR_KERNEL_QUANTIZED_ROUND_TRIP_H_
