// batch_norm.c — Normalisation of channels over a batch, and its gradient.
#include "kernel/nn/batch_norm.h"

#include <math.h>

#include "base/alloc.h"
#include "kernel/simd.h"

enum {
  STRETCH = 64,               // rows summed before the sum is added to the whole
  BLOCKS = 16,                // at most so many partial sums
  BLOCK_ELEMENTS = 16 << 10,  // at least so many elements each
};

// Adds what one row contributes to sums |s| (and |t|).
typedef struct sums_t sums_t;
typedef void (*row_fn_t)(const sums_t* sums, int64_t row, float* restrict s, float* restrict t);
struct sums_t {
  int64_t rows, channels, blocks;
  row_fn_t add_row;
  const float* x;
  const float* dy;
  const float* mean;
  float* partial;  // per block: two sums, and two of the stretch at hand
};

static void add_plain(const sums_t* sums, int64_t row, float* restrict s, float* restrict t) {
  const float* restrict x = sums->x + row * sums->channels;
  (void)t;
  for (int64_t c = 0; c < sums->channels; ++c) s[c] += x[c];
}

static void add_deviation(const sums_t* sums, int64_t row, float* restrict s, float* restrict t) {
  const float* restrict x = sums->x + row * sums->channels;
  const float* restrict mean = sums->mean;
  (void)t;
  for (int64_t c = 0; c < sums->channels; ++c) s[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
}

static void add_grad(const sums_t* sums, int64_t row, float* restrict s, float* restrict t) {
  const float* restrict x = sums->x + row * sums->channels;
  const float* restrict dy = sums->dy + row * sums->channels;
  const float* restrict mean = sums->mean;
  for (int64_t c = 0; c < sums->channels; ++c) {
    s[c] += dy[c];
    t[c] += dy[c] * (x[c] - mean[c]);
  }
}

static void sum_blocks(void* arg, int64_t begin, int64_t end) {
  const sums_t* sums = arg;
  const int64_t channels = sums->channels;
  const int64_t width = 2 * channels;
  const size_t bytes = (size_t)width * sizeof(float);
  for (int64_t block = begin; block < end; ++block) {
    float* whole = sums->partial + 4 * block * channels;
    float* part = whole + 2 * channels;
    int64_t row = block * sums->rows / sums->blocks, last = (block + 1) * sums->rows / sums->blocks;
    memset(whole, 0, bytes);
    while (row < last) {
      int64_t stop = WEIR_MIN(row + STRETCH, last);
      memset(part, 0, bytes);
      for (; row < stop; ++row) sums->add_row(sums, row, part, part + channels);
      for (int64_t i = 0; i < width; ++i) whole[i] += part[i];
    }
  }
}

// Sums over all rows into |first| and, unless NULL, |second|.
static weir_status_t* sum_rows(weir_pool_t* pool, sums_t* sums, float* first, float* second) {
  const int64_t channels = sums->channels;
  sums->blocks =
      WEIR_MAX(WEIR_MIN(WEIR_MIN(BLOCKS, sums->rows * channels / BLOCK_ELEMENTS), sums->rows), 1);
  sums->partial = weir_alloc_array((size_t)(4 * sums->blocks * channels), sizeof(float));
  if (!sums->partial) return weir_out_of_memory();
  weir_pool_for(pool, sums->blocks, 0.5 * (double)(sums->rows * channels) / (double)sums->blocks,
                sum_blocks, sums);
  for (int64_t c = 0; c < channels; ++c) {
    float a = 0, b = 0;
    for (int64_t block = 0; block < sums->blocks; ++block) {
      a += sums->partial[4 * block * channels + c];
      b += sums->partial[(4 * block + 1) * channels + c];
    }
    first[c] = a;
    if (second) second[c] = b;
  }
  weir_free(sums->partial);
  return NULL;
}

weir_status_t* weir_batch_norm_moments(weir_pool_t* pool, const weir_batch_norm_t* bn,
                                       const float* x, float* mean, float* variance) {
  sums_t sums = {.rows = bn->rows, .channels = bn->channels, .add_row = add_plain, .x = x};
  const float inverse = 1.0f / (float)bn->rows;
  WEIR_TRY(sum_rows(pool, &sums, mean, NULL));
  for (int64_t c = 0; c < bn->channels; ++c) mean[c] *= inverse;
  sums.add_row = add_deviation;
  sums.mean = mean;
  WEIR_TRY(sum_rows(pool, &sums, variance, NULL));
  for (int64_t c = 0; c < bn->channels; ++c) variance[c] *= inverse;
  return NULL;
}

// out = a[c] * x + b[c] * z + d[c], row by row.
typedef struct affine_t {
  int64_t channels;
  const float *x, *z;  // z may be NULL
  const float *a, *b, *d, *mean;
  float* out;
} affine_t;

static void apply_rows(void* arg, int64_t begin, int64_t end) {
  const affine_t* f = arg;
  const float* restrict a = f->a, * restrict d = f->d, * restrict mean = f->mean;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = f->x + row * f->channels;
    float* out = f->out + row * f->channels;
    WEIR_IVDEP
    for (int64_t c = 0; c < f->channels; ++c) out[c] = (x[c] - mean[c]) * a[c] + d[c];
  }
}

weir_status_t* weir_batch_norm_apply(weir_pool_t* pool, const weir_batch_norm_t* bn, const float* x,
                                     const float* mean, const float* variance, float* y) {
  float* factor = weir_alloc_array((size_t)bn->channels, sizeof(float));
  if (!factor) return weir_out_of_memory();
  for (int64_t c = 0; c < bn->channels; ++c)
    factor[c] = bn->scale[c] / sqrtf(variance[c] + bn->epsilon);
  affine_t f = {
      .channels = bn->channels, .x = x, .a = factor, .d = bn->offset, .mean = mean, .out = y};
  if (bn->rows > 0) weir_pool_for(pool, bn->rows, 0.5 * (double)bn->channels, apply_rows, &f);
  weir_free(factor);
  return NULL;
}

// dx = (dy - mean(dy) - (x - mean) * mean(dy * (x - mean)) / (variance + epsilon)) * scale /
// sqrt(variance + epsilon)
static void grad_rows(void* arg, int64_t begin, int64_t end) {
  const affine_t* f = arg;
  const float* restrict a = f->a, * restrict b = f->b, * restrict d = f->d, * restrict mean = f->mean;
  for (int64_t row = begin; row < end; ++row) {
    const float *dy = f->x + row * f->channels, *x = f->z + row * f->channels;
    float* dx = f->out + row * f->channels;
    WEIR_IVDEP
    for (int64_t c = 0; c < f->channels; ++c)
      dx[c] = (dy[c] - d[c] - (x[c] - mean[c]) * b[c]) * a[c];
  }
}

weir_status_t* weir_batch_norm_grad(weir_pool_t* pool, const weir_batch_norm_t* bn,
                                    const weir_batch_norm_grad_t* g) {
  const int64_t channels = bn->channels;
  sums_t sums = {.rows = bn->rows,
                 .channels = channels,
                 .add_row = add_grad,
                 .x = g->x,
                 .dy = g->dy,
                 .mean = g->mean};
  float* factors = weir_alloc_array((size_t)(3 * channels), sizeof(float));
  if (!factors) return weir_out_of_memory();
  float *a = factors, *b = a + channels, *d = b + channels;
  weir_status_t* status = sum_rows(pool, &sums, g->doffset, g->dscale);
  if (status) goto done;
  for (int64_t c = 0; c < channels; ++c) {
    float inverse_variance = 1.0f / (g->variance[c] + bn->epsilon),
          inverse_rows = 1.0f / (float)bn->rows;
    a[c] = bn->scale[c] * sqrtf(inverse_variance);
    b[c] = g->is_training ? g->dscale[c] * inverse_variance * inverse_rows : 0;
    d[c] = g->is_training ? g->doffset[c] * inverse_rows : 0;
    g->dscale[c] *= sqrtf(inverse_variance);
  }
  affine_t f = {.channels = channels,
                .x = g->dy,
                .z = g->x,
                .a = a,
                .b = b,
                .d = d,
                .mean = g->mean,
                .out = g->dx};
  if (bn->rows > 0) weir_pool_for(pool, bn->rows, 0.8 * (double)channels, grad_rows, &f);
done:
  weir_free(factors);
  return status;
}
