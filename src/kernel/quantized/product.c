// product.c — See product.h. Numbers become int32 without their offsets, images rows of windows:
// the rest is a product of int32 matrices.
#include "kernel/quantized/product.h"

#include "base/alloc.h"
#include "kernel/gemm/gemm.h"

WEIR_INLINE int32_t number_at(const weir_eight_bits_t* e, int64_t i) {
  const int32_t v = e->is_signed ? ((const int8_t*)e->data)[i] : ((const uint8_t*)e->data)[i];
  return (int32_t)((uint32_t)v - (uint32_t)e->offset);
}

typedef struct widen_t {
  const weir_eight_bits_t* from;
  int32_t* to;
} widen_t;

static void widen_range(void* arg, int64_t begin, int64_t end) {
  const widen_t* job = arg;
  const weir_eight_bits_t from = *job->from;
  for (int64_t i = begin; i < end; ++i) job->to[i] = number_at(&from, i);
}

static weir_status_t* create_wide(weir_pool_t* pool, const weir_eight_bits_t* from, int64_t count,
                                  int32_t** out) {
  *out = weir_alloc_array((size_t)count, sizeof(int32_t));
  if (count && !*out) return weir_out_of_memory();
  widen_t job = {.from = from, .to = *out};
  weir_pool_for(pool, count, 0.3, widen_range, &job);
  return NULL;
}

weir_status_t* weir_quantized_matmul(weir_pool_t* pool, const weir_quantized_matmul_t* args,
                                     int32_t* c) {
  int32_t *a = NULL, *b = NULL;
  if (args->k == 0) {
    if (args->m > 0 && args->n > 0) memset(c, 0, (size_t)(args->m * args->n) * sizeof(*c));
    return NULL;
  }
  weir_status_t* status = create_wide(pool, &args->a, args->m * args->k, &a);
  if (!status) status = create_wide(pool, &args->b, args->k * args->n, &b);
  if (!status && args->m && args->n) {
    weir_gemm_args_t gemm = {.dtype_a = WEIR_DTYPE_INT32,
                             .dtype_b = WEIR_DTYPE_INT32,
                             .dtype_c = WEIR_DTYPE_INT32,
                             .trans_a = args->transpose_a ? WEIR_TRANS : WEIR_NO_TRANS,
                             .trans_b = args->transpose_b ? WEIR_TRANS : WEIR_NO_TRANS,
                             .m = args->m,
                             .n = args->n,
                             .k = args->k,
                             .a = a,
                             .b = b,
                             .c = c};
    status = weir_gemm_any(pool, &gemm);
  }
  weir_free(a);
  weir_free(b);
  return status;
}

// ---- convolutions ----

typedef struct windows_t {
  const weir_quantized_conv_t* conv;
  int64_t first;  // of the rows
  int32_t* rows;
} windows_t;

// The pixels under one row of a window at (y, x).
static void copy_line(const weir_quantized_conv_t* c, int64_t image, int64_t y, int64_t x,
                      int32_t* out) {
  for (int64_t fx = 0; fx < c->filter_w; ++fx) {
    const bool is_within = y >= 0 && y < c->in_h && x + fx >= 0 && x + fx < c->in_w;
    const int64_t from = ((image * c->in_h + y) * c->in_w + x + fx) * c->in_depth;
    int32_t* pixel = out + fx * c->in_depth;
    for (int64_t d = 0; d < c->in_depth; ++d)
      pixel[d] = is_within ? number_at(&c->input, from + d) : 0;
  }
}

static void copy_windows(void* arg, int64_t begin, int64_t end) {
  const windows_t* job = arg;
  const weir_quantized_conv_t* c = job->conv;
  const int64_t line = c->filter_w * c->in_depth;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = job->first + i, image = at / (c->out_h * c->out_w);
    const int64_t y = at / c->out_w % c->out_h * c->stride - c->top;
    const int64_t x = at % c->out_w * c->stride - c->left;
    int32_t* row = job->rows + i * c->filter_h * line;
    for (int64_t fy = 0; fy < c->filter_h; ++fy) copy_line(c, image, y + fy, x, row + fy * line);
  }
}

static weir_status_t* multiply_block(weir_pool_t* pool, windows_t* job, int64_t count,
                                     const int32_t* filter, int32_t* out) {
  const weir_quantized_conv_t* c = job->conv;
  const int64_t size = c->filter_h * c->filter_w * c->in_depth;
  weir_pool_for(pool, count, 0.5 * (double)size, copy_windows, job);
  weir_gemm_args_t gemm = {.dtype_a = WEIR_DTYPE_INT32,
                           .dtype_b = WEIR_DTYPE_INT32,
                           .dtype_c = WEIR_DTYPE_INT32,
                           .m = count,
                           .n = c->out_depth,
                           .k = size,
                           .a = job->rows,
                           .b = filter,
                           .c = out + job->first * c->out_depth};
  return weir_gemm_any(pool, &gemm);
}

// Rows of windows that are in memory at a time: about a million numbers.
static int64_t block_rows(int64_t rows, int64_t size) {
  const int64_t fitting = (1 << 20) / size + 1;
  return rows < fitting ? rows : fitting;
}

weir_status_t* weir_quantized_conv(weir_pool_t* pool, const weir_quantized_conv_t* args,
                                   int32_t* out) {
  const int64_t size = args->filter_h * args->filter_w * args->in_depth;
  const int64_t rows = args->batch * args->out_h * args->out_w;
  if (rows == 0 || size == 0 || args->out_depth == 0) return NULL;
  const int64_t block = block_rows(rows, size);
  int32_t* filter = NULL;
  windows_t job = {.conv = args};
  weir_status_t* status = create_wide(pool, &args->filter, size * args->out_depth, &filter);
  if (status) return status;
  job.rows = weir_alloc_array((size_t)(block * size), sizeof(int32_t));
  if (!job.rows) status = weir_out_of_memory();
  for (; !status && job.first < rows; job.first += block)
    status = multiply_block(pool, &job, WEIR_MIN(block, rows - job.first), filter, out);
  weir_free(job.rows);
  weir_free(filter);
  return status;
}
