// round_trip.c — See round_trip.h.
#include "kernel/quantized/round_trip.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/base.h"

typedef struct job_t {
  const weir_round_trip_t* trip;
  const void *x, *dy;
  void* y;
  void* scales;
} job_t;

#define T float
#define T_MAX FLT_MAX
#define RINT rintf
#define FLOOR floorf
#define N(name) name##_float
#include "kernel/quantized/round_trip.inc"

#define T double
#define T_MAX DBL_MAX
#define RINT rint
#define FLOOR floor
#define N(name) name##_double
#include "kernel/quantized/round_trip.inc"

weir_status_t* weir_round_trip(weir_pool_t* pool, weir_dtype_t dtype, const weir_round_trip_t* trip,
                               const void* x, void* y) {
  const bool is_float = dtype == WEIR_DTYPE_FLOAT;
  const int64_t count = trip->outer * trip->channels * trip->inner;
  if (count == 0) return NULL;
  job_t job = {.trip = trip, .x = x, .y = y};
  job.scales = weir_alloc_array((size_t)trip->channels,
                                is_float ? sizeof(scale_t_float) : sizeof(scale_t_double));
  if (!job.scales) return weir_out_of_memory();
  const double cost = trip->low ? 5 : (double)(trip->outer * trip->inner);
  weir_pool_for(pool, trip->channels, cost, is_float ? find_scales_float : find_scales_double,
                &job);
  weir_pool_for(pool, count, 1, is_float ? round_range_float : round_range_double, &job);
  weir_free(job.scales);
  return NULL;
}

void weir_round_trip_grad(weir_pool_t* pool, weir_dtype_t dtype, const weir_round_trip_t* trip,
                          const void* dy, const void* x, void* dx) {
  job_t job = {.trip = trip, .x = x, .dy = dy, .y = dx};
  weir_pool_for(pool, trip->outer * trip->channels * trip->inner, 1,
                dtype == WEIR_DTYPE_FLOAT ? grad_range_float : grad_range_double, &job);
}
