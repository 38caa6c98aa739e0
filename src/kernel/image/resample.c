// resample.c — Resampling of images, an axis at a time.
#include "kernel/image/resample.h"

#include <stdatomic.h>

#include "base/alloc.h"

// ---- taps ----
weir_status_t* weir_taps_init(weir_taps_t* taps, int64_t in, int64_t out) {
  *taps = (weir_taps_t){.in = in, .out = out};
  taps->begins = weir_alloc_array((size_t)out + 1, sizeof(int64_t));
  if (!taps->begins) return weir_out_of_memory();
  taps->begins[0] = 0;
  return NULL;
}

void weir_taps_free(weir_taps_t* taps) {
  weir_free(taps->begins);
  weir_free(taps->indices);
  weir_free(taps->weights);
  *taps = (weir_taps_t){0};
}

static weir_status_t* grow(weir_taps_t* taps) {
  const int64_t capacity = taps->capacity ? taps->capacity * 2 : 4 * (taps->out + 1);
  int64_t* indices = weir_alloc_array((size_t)capacity, sizeof(int64_t));
  float* weights = weir_alloc_array((size_t)capacity, sizeof(float));
  if (!indices || !weights) {
    weir_free(indices);
    weir_free(weights);
    return weir_out_of_memory();
  }
  if (taps->capacity) {
    memcpy(indices, taps->indices, (size_t)taps->capacity * sizeof(int64_t));
    memcpy(weights, taps->weights, (size_t)taps->capacity * sizeof(float));
  }
  weir_free(taps->indices);
  weir_free(taps->weights);
  taps->indices = indices;
  taps->weights = weights;
  taps->capacity = capacity;
  return NULL;
}

weir_status_t* weir_taps_add(weir_taps_t* taps, int64_t index, float weight) {
  if (taps->count == taps->capacity) WEIR_TRY(grow(taps));
  taps->indices[taps->count] = index;
  taps->weights[taps->count++] = weight;
  return NULL;
}

// Sorts the taps of |from| by what they read, each list in the order of the results.
static void sort_taps(const weir_taps_t* from, weir_taps_t* to) {
  memset(to->begins, 0, (size_t)(to->out + 1) * sizeof(int64_t));
  for (int64_t t = 0; t < from->count; ++t) {
    if (from->weights[t] != 0) ++to->begins[from->indices[t] + 1];
  }
  for (int64_t i = 0; i < to->out; ++i) to->begins[i + 1] += to->begins[i];
  to->count = to->begins[to->out];
  for (int64_t i = 0; i < from->out; ++i) {
    for (int64_t t = from->begins[i]; t < from->begins[i + 1]; ++t) {
      if (from->weights[t] == 0) continue;
      const int64_t at = to->begins[from->indices[t]]++;
      to->indices[at] = i;
      to->weights[at] = from->weights[t];
    }
  }
  // Each begin has moved to its list's end, which is the begin of the next.
  for (int64_t i = to->out; i > 0; --i) to->begins[i] = to->begins[i - 1];
  to->begins[0] = 0;
}

weir_status_t* weir_taps_transpose(weir_taps_t* taps) {
  weir_taps_t back = {0};
  weir_status_t* status = weir_taps_init(&back, taps->out, taps->in);
  if (!status && taps->count > 0) {
    back.indices = weir_alloc_array((size_t)taps->count, sizeof(int64_t));
    back.weights = weir_alloc_array((size_t)taps->count, sizeof(float));
    if (!back.indices || !back.weights) status = weir_out_of_memory();
  }
  if (status) {
    weir_taps_free(&back);
    return status;
  }
  back.capacity = taps->count;
  back.filled = back.out;
  sort_taps(taps, &back);
  weir_taps_free(taps);
  *taps = back;
  return NULL;
}

// ---- sums ----
typedef struct job_t {
  const weir_resample_t* resample;
  atomic_bool is_out_of_memory;
} job_t;

#define T float
#define NAME(x) x##_float
#include "kernel/image/resample.inc"
#define T double
#define NAME(x) x##_double
#include "kernel/image/resample.inc"

weir_status_t* weir_resample(weir_pool_t* pool, const weir_resample_t* resample) {
  const weir_taps_t *rows = resample->rows, *columns = resample->columns;
  if (rows->out == 0 || columns->out == 0) return NULL;
  job_t job = {.resample = resample};
  const double taps = (double)columns->in * (double)rows->count / (double)rows->out +
                      (double)(columns->count + columns->out);
  weir_pool_for(pool, resample->batch * rows->out, taps * (double)resample->channels * 0.5,
                resample->dtype == WEIR_DTYPE_DOUBLE ? resample_rows_double : resample_rows_float,
                &job);
  return atomic_load(&job.is_out_of_memory) ? weir_out_of_memory() : NULL;
}
