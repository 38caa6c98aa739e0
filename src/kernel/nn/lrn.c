// lrn.c — Local response normalisation.
#include "kernel/nn/lrn.h"

#include "base/alloc.h"
#include "kernel/elementwise/vmath.h"

typedef struct job_t {
  const weir_lrn_t* lrn;
  const float *dy, *x, *y;
  float* out;
  atomic_bool is_out_of_memory;
} job_t;

// out[c] = sum of in over channels [c - radius, c + radius]: shifted rows are added, so that the
// loops are vectors.
static void sum_neighbours(const weir_lrn_t* l, const float* restrict in, float* restrict out) {
  const int64_t n = l->channels, radius = WEIR_MIN(l->radius, n - 1);
  for (int64_t c = 0; c < n; ++c) out[c] = in[c];
  for (int64_t shift = 1; shift <= radius; ++shift) {
    for (int64_t c = 0; c < n - shift; ++c) out[c] += in[c + shift];
    for (int64_t c = shift; c < n; ++c) out[c] += in[c - shift];
  }
}

// norm[c] = bias + alpha * neighbouring squares; |scratch| holds the squares.
static void norms(const weir_lrn_t* l, const float* restrict x, float* restrict scratch,
                  float* restrict norm) {
  for (int64_t c = 0; c < l->channels; ++c) scratch[c] = x[c] * x[c];
  sum_neighbours(l, scratch, norm);
  for (int64_t c = 0; c < l->channels; ++c) norm[c] = l->bias + l->alpha * norm[c];
}

// out = norm^-beta, with the exponents users choose done exactly.
static void powers(const weir_lrn_t* l, const float* restrict norm, float* restrict out) {
  const int64_t n = l->channels;
  if (l->beta == 1.0f) {
    for (int64_t c = 0; c < n; ++c) out[c] = 1.0f / norm[c];
  } else if (l->beta == 0.5f) {
    for (int64_t c = 0; c < n; ++c) out[c] = 1.0f / sqrtf(norm[c]);
  } else if (l->beta == 0.75f) {
    for (int64_t c = 0; c < n; ++c) out[c] = 1.0f / (sqrtf(norm[c]) * sqrtf(sqrtf(norm[c])));
  } else {
    for (int64_t c = 0; c < n; ++c) out[c] = weir_vm_exp(-l->beta * weir_vm_log(norm[c]));
  }
}

static float* rows_alloc(job_t* job, int64_t count) {
  float* rows = weir_alloc_array((size_t)(count * job->lrn->channels), sizeof(float));
  if (!rows) atomic_store(&job->is_out_of_memory, true);
  return rows;
}

static void forward_rows(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  const weir_lrn_t* l = job->lrn;
  const int64_t n = l->channels;
  float* memory = rows_alloc(job, 3);
  if (!memory) return;
  float *scratch = memory, *norm = scratch + n, *power = norm + n;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = job->x + row * n;
    norms(l, x, scratch, norm);
    powers(l, norm, power);
    for (int64_t c = 0; c < n; ++c) job->out[row * n + c] = x[c] * power[c];
  }
  weir_free(memory);
}

// dx[k] = dy[k] norm[k]^-beta - 2 alpha beta x[k] * sum over the neighbours j of dy[j] y[j] /
// norm[j].
static void backward_rows(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  const weir_lrn_t* l = job->lrn;
  const int64_t n = l->channels;
  const float factor = -2.0f * l->alpha * l->beta;
  float* memory = rows_alloc(job, 3);
  if (!memory) return;
  float *scratch = memory, *norm = scratch + n, *power = norm + n;
  for (int64_t row = begin; row < end; ++row) {
    const float *x = job->x + row * n, *y = job->y + row * n, *dy = job->dy + row * n;
    norms(l, x, scratch, norm);
    powers(l, norm, power);
    for (int64_t c = 0; c < n; ++c) scratch[c] = dy[c] * y[c] / norm[c];
    sum_neighbours(l, scratch, norm);
    for (int64_t c = 0; c < n; ++c)
      job->out[row * n + c] = dy[c] * power[c] + factor * x[c] * norm[c];
  }
  weir_free(memory);
}

static weir_status_t* run(weir_pool_t* pool, weir_range_fn_t fn, job_t* job) {
  const weir_lrn_t* l = job->lrn;
  if (l->rows * l->channels == 0) return NULL;
  weir_pool_for(pool, l->rows,
                (double)l->channels * (2.0 + 0.5 * (double)WEIR_MIN(l->radius, l->channels)), fn,
                job);
  return atomic_load(&job->is_out_of_memory) ? weir_out_of_memory() : NULL;
}

weir_status_t* weir_lrn(weir_pool_t* pool, const weir_lrn_t* lrn, const float* x, float* y) {
  job_t job = {.lrn = lrn, .x = x, .out = y};
  return run(pool, forward_rows, &job);
}

weir_status_t* weir_lrn_grad(weir_pool_t* pool, const weir_lrn_t* lrn, const float* dy,
                             const float* x, const float* y, float* dx) {
  job_t job = {.lrn = lrn, .dy = dy, .x = x, .y = y, .out = dx};
  return run(pool, backward_rows, &job);
}
