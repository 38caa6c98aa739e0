// fixed_norm.c — Normalisation by given moments: a factor and an addend for each channel.
#include "kernel/nn/fixed_norm.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

typedef struct job_t {
  int64_t channels;
  const void *x, *factor, *addend;
  void* y;
} job_t;

#define T float
#define NAME(x) x##_float
#include "kernel/nn/fixed_norm.inc"
#define T double
#define NAME(x) x##_double
#include "kernel/nn/fixed_norm.inc"

// |x|, times each channel's factor, plus |offset| and what the mean makes of it (none of NULL).
static weir_status_t* scale(weir_pool_t* pool, weir_dtype_t dtype, const weir_fixed_norm_t* n,
                            const void* x, const void* offset, void* y) {
  const bool is_double = dtype == WEIR_DTYPE_DOUBLE;
  double* memory = weir_alloc_array((size_t)n->channels, 2 * sizeof(double));
  if (!memory) return weir_out_of_memory();
  job_t job = {
      .channels = n->channels, .x = x, .factor = memory, .addend = memory + n->channels, .y = y};
  if (is_double) factors_double(n, offset, memory, memory + n->channels);
  else factors_float(n, offset, (float*)memory, (float*)(memory + n->channels));
  weir_pool_for(pool, n->rows, 0.5 * (double)n->channels,
                is_double ? scale_rows_double : scale_rows_float, &job);
  weir_free(memory);
  return NULL;
}

weir_status_t* weir_fixed_norm(weir_pool_t* pool, weir_dtype_t dtype, const weir_fixed_norm_t* n,
                               const void* x, const void* offset, void* y) {
  if (n->rows == 0 || n->channels == 0) return NULL;
  return scale(pool, dtype, n, x, offset, y);
}

weir_status_t* weir_fixed_norm_grad(weir_pool_t* pool, weir_dtype_t dtype,
                                    const weir_fixed_norm_t* n,
                                    const weir_fixed_norm_grad_t* grad) {
  if (n->channels == 0) return NULL;
  double* sums = weir_alloc_array((size_t)n->channels, 2 * sizeof(double));
  if (!sums) return weir_out_of_memory();
  double* products = sums + n->channels;
  if (dtype == WEIR_DTYPE_DOUBLE) {
    sum_rows_double(n, grad, sums, products);
    finish_double(n, grad, sums, products);
  } else {
    sum_rows_float(n, grad, sums, products);
    finish_float(n, grad, sums, products);
  }
  weir_free(sums);
  return n->rows == 0 ? NULL : scale(pool, dtype, n, grad->dy, NULL, grad->dx);
}
