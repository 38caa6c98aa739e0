// cuda_batch_norm.c — Launches of batch_norm.cu.
#include "kernel/nn/cuda_batch_norm.h"

#include <stdio.h>

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(batch_norm);

enum { BLOCK = 256, WARP = 32, BLOCKS_EACH = 8, SUMS_FLOATS = 3, VECTORS = 4 };

weir_status_t* weir_cuda_norm_find(weir_device_t* device, weir_dtype_t dtype, bool is_grad,
                                   weir_cuda_norm_t* out) {
  static const char* const names[] = {"columns", "columns_packs", "rows",  "rows_packs",
                                      "apply",   "apply_packs",   "finish"};
  weir_cuda_function_t* const functions[] = {&out->sums[0], &out->sums[1],  &out->sums[2],
                                             &out->sums[3], &out->apply[0], &out->apply[1],
                                             &out->finish};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    weir_strbuf_t text = {0};
    char name[64];
    snprintf(name, sizeof(name), "norm_%s%s", is_grad ? "grad_" : "", names[i]);
    weir_strbuf_printf(&text, "#define T %s\n", weir_cuda_type_name(dtype));
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_batch_norm, name, functions[i]));
  }
  return NULL;
}

// ---- launches ----

typedef struct job_t {
  weir_kernel_ctx_t* ctx;
  const weir_cuda_norm_t* f;
  weir_norm_t norm;
  const void* x;
  const void* other;  // dy, or what is added
  void* y;
  bool is_packed;
  int64_t width;
} job_t;

static job_t make_job(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f, const weir_norm_t* norm,
                      const void* x, const void* other, void* y) {
  job_t j = {.ctx = ctx, .f = f, .norm = *norm, .x = x, .other = other, .y = y};
  uintptr_t all = (uintptr_t)x | (uintptr_t)other | (uintptr_t)y;
  j.width = 16 / (int64_t)weir_dtype_size(weir_dtype_base(ctx->node->output_types[0]));
  j.is_packed = (all & 15) == 0 && (norm->inner == 1 ? norm->channels : norm->inner) % j.width == 0;
  if (!j.is_packed) j.width = 1;
  return j;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// |length| steps of each of |items| blocks are cut into pieces, of |least| steps at least and
// multiples of |unit|, where there are not blocks enough.
static void cut(job_t* j, int64_t items, int64_t length, int64_t least, int64_t unit) {
  int64_t most = (int64_t)weir_cuda_core(j->ctx->device)->multiprocessors * BLOCKS_EACH;
  int64_t pieces = WEIR_MAX(WEIR_MIN(most / items, length / least), 1);
  j->norm.per_piece = ceil_div(ceil_div(length, unit), pieces) * unit;
  j->norm.pieces = ceil_div(length, j->norm.per_piece);
}

static int power_of_two(int64_t n, int most) {
  int power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

// Decides on the pieces; how many blocks there are, and threads across of channels that come last.
static int64_t plan_sums(job_t* j, int* out_across) {
  const weir_norm_t* n = &j->norm;
  if (n->inner > 1) {
    *out_across = 0;
    cut(j, n->channels, n->outer * n->inner, 4 * BLOCK * j->width, j->width);
    return n->channels * n->pieces;
  }
  int64_t columns = n->channels / j->width;
  int down = power_of_two(n->outer, BLOCK / power_of_two(columns, WARP));
  *out_across = BLOCK / down;
  int64_t tiles = ceil_div(columns, *out_across);
  cut(j, tiles, n->outer, 4 * down, 1);
  return tiles * n->pieces;
}

// Sums of all pieces into new |out_partials|.
static weir_status_t* run_sums(job_t* j, const float* mean, weir_tensor_t** out_partials) {
  int across;
  int64_t items = WEIR_MIN(plan_sums(j, &across), INT32_MAX);
  WEIR_TRY(weir_kernel_scratch(j->ctx, WEIR_DTYPE_FLOAT,
                               SUMS_FLOATS * j->norm.channels * j->norm.pieces, out_partials));
  weir_cuda_size_t size = {.grid = {(unsigned)items, 1, 1}, .block = {BLOCK, 1, 1}};
  void* partials = (*out_partials)->data;
  return weir_cuda_launch(j->ctx->device, j->f->sums[(j->norm.inner > 1 ? 2 : 0) + j->is_packed],
                          &size,
                          WEIR_CUDA_ARGS(&j->norm, &j->x, &j->other, &mean, &partials, &across));
}

// Launches the end of sums with |passed|, the addresses they go to, then the pixels.
static weir_status_t* run_pixels(job_t* j, weir_tensor_t* partials, void* passed) {
  weir_tensor_t* by = NULL;
  void* sums = partials ? partials->data : NULL;
  int64_t count = j->norm.outer * j->norm.channels * j->norm.inner;
  WEIR_TRY(weir_kernel_scratch(j->ctx, WEIR_DTYPE_FLOAT, VECTORS * j->norm.channels, &by));
  weir_cuda_size_t size = weir_cuda_size_for(j->ctx->device, j->norm.channels * WARP);
  weir_status_t* status = weir_cuda_launch(j->ctx->device, j->f->finish, &size,
                                           WEIR_CUDA_ARGS(&j->norm, passed, &sums, &by->data));
  size = weir_cuda_size_for(j->ctx->device, count / j->width);
  if (!status)
    status = weir_cuda_launch(j->ctx->device, j->f->apply[j->is_packed], &size,
                              WEIR_CUDA_ARGS(&j->norm, &j->x, &j->other, &j->y, &by->data));
  weir_tensor_release(by);
  return status;
}

weir_status_t* weir_cuda_norm(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f,
                              const weir_norm_t* norm, const void* x, const void* side,
                              const weir_norm_moments_t* moments, void* y) {
  job_t j = make_job(ctx, f, norm, x, side, y);
  weir_norm_moments_t passed = *moments;
  weir_tensor_t* partials = NULL;
  weir_status_t* status = norm->is_training ? run_sums(&j, NULL, &partials) : NULL;
  if (!status) status = run_pixels(&j, partials, &passed);
  if (partials) weir_tensor_release(partials);
  return status;
}

weir_status_t* weir_cuda_norm_grad(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f,
                                   const weir_norm_t* norm, const void* x, const void* dy,
                                   const weir_norm_grads_t* grads, void* dx) {
  job_t j = make_job(ctx, f, norm, x, dy, dx);
  weir_norm_grads_t passed = *grads;
  weir_tensor_t* partials = NULL;
  weir_status_t* status = run_sums(&j, grads->mean, &partials);
  if (!status) status = run_pixels(&j, partials, &passed);
  if (partials) weir_tensor_release(partials);
  return status;
}
