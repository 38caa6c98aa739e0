// cuda_batch_norm.c — Launches of batch_norm.cu.
#include "kernel/nn/cuda_batch_norm.h"

#include <stdio.h>

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(batch_norm);

enum { BLOCK = 256, WARP = 32, FINISH = 128, SUMS_FLOATS = 3, VECTORS = 5 };

static weir_status_t* find(weir_device_t* device, weir_dtype_t dtype, bool is_grad,
                           weir_norm_mask_t mask, weir_cuda_norm_t* out) {
  static const char* const names[] = {"columns", "columns_packs", "rows", "rows_packs"};
  char name[64];
  for (int i = 0; i < 9; ++i) {
    weir_strbuf_t text = {0};
    const char* kind = i < 4 ? "" : "apply_";
    snprintf(name, sizeof(name), "norm_%s%s", kind, names[i % 4]);
    weir_strbuf_printf(&text, "#define T %s\n#define GRAD %d\n#define MASK %d\n",
                       weir_cuda_type_name(dtype), is_grad, (int)mask);
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_batch_norm,
                             i == 8 ? "norm_finish" : name,
                             i == 8  ? &out->finish
                             : i < 4 ? &out->sums[i]
                                     : &out->apply[i - 4]));
  }
  return NULL;
}

weir_status_t* weir_cuda_norm_find(weir_device_t* device, weir_dtype_t dtype,
                                   weir_cuda_norm_t* out) {
  return find(device, dtype, false, WEIR_NORM_NO_MASK, out);
}

weir_status_t* weir_cuda_norm_grad_find(weir_device_t* device, weir_dtype_t dtype,
                                        weir_norm_mask_t mask, weir_cuda_norm_t* out) {
  return find(device, dtype, true, mask, out);
}

// ---- launches ----

typedef struct job_t {
  weir_kernel_ctx_t* ctx;
  const weir_cuda_norm_t* f;
  weir_norm_t norm;
  weir_norm_tensors_t tensors;
  bool is_packed;
  int64_t width;
  int across;      // threads, of channels that come last
  int64_t blocks;  // for the sums, and for pixels of channels that come last
} job_t;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// |length| steps of each of |items| blocks are cut into pieces, of |least| steps at least and
// multiples of |unit|, where there are not blocks enough. All are there at once: 4 on a
// multiprocessor, or 3 of 16 bits, where threads need more registers.
static void cut(job_t* j, int64_t items, int64_t length, int64_t least, int64_t unit) {
  int each = weir_dtype_size(weir_dtype_base(j->ctx->node->output_types[0])) == 4 ? 4 : 3;
  int64_t most = (int64_t)weir_cuda_core(j->ctx->device)->multiprocessors * each;
  int64_t pieces = WEIR_MAX(WEIR_MIN(most / items, length / least), 1);
  j->norm.per_piece = ceil_div(ceil_div(length, unit), pieces) * unit;
  j->norm.pieces = ceil_div(length, j->norm.per_piece);
  j->blocks = WEIR_MIN(items * j->norm.pieces, INT32_MAX);
}

static int power_of_two(int64_t n, int most) {
  int power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

// Decides on packs and pieces.
static job_t plan(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f, const weir_norm_t* norm,
                  const weir_norm_tensors_t* t) {
  job_t j = {.ctx = ctx, .f = f, .norm = *norm, .tensors = *t, .width = 1};
  uintptr_t all = (uintptr_t)t->x | (uintptr_t)t->other | (uintptr_t)t->y | (uintptr_t)t->out |
                  (uintptr_t)t->masked;
  int64_t width = 16 / (int64_t)weir_dtype_size(weir_dtype_base(ctx->node->output_types[0]));
  j.is_packed = (all & 15) == 0 && (norm->inner == 1 ? norm->channels : norm->inner) % width == 0;
  if (j.is_packed) j.width = width;
  if (norm->inner > 1) {
    cut(&j, norm->channels, norm->outer * norm->inner, 4 * BLOCK * j.width, j.width);
    return j;
  }
  int64_t columns = norm->channels / j.width;
  int down = power_of_two(norm->outer, BLOCK / power_of_two(columns, WARP));
  j.across = BLOCK / down;
  cut(&j, ceil_div(columns, j.across), norm->outer, 4 * down, 1);
  return j;
}

// Which of four functions: channels last, the same in packs, channels first, in packs.
static int form_of(const job_t* j) { return (j->norm.inner > 1 ? 2 : 0) + j->is_packed; }

// Sums of all pieces into new |out_partials|.
static weir_status_t* run_sums(job_t* j, const weir_norm_grads_t* grads,
                               weir_tensor_t** out_partials) {
  weir_norm_grads_t passed = *grads;
  WEIR_TRY(weir_kernel_scratch(j->ctx, WEIR_DTYPE_FLOAT,
                               SUMS_FLOATS * j->norm.channels * j->norm.pieces, out_partials));
  weir_cuda_size_t size = {.grid = {(unsigned)j->blocks, 1, 1}, .block = {BLOCK, 1, 1}};
  void* partials = (*out_partials)->data;
  return weir_cuda_launch(j->ctx->device, j->f->sums[form_of(j)], &size,
                          WEIR_CUDA_ARGS(&j->norm, &j->tensors, &passed, &partials, &j->across));
}

// Launches the end of sums with |passed|, the addresses they go to, then the pixels.
static weir_status_t* run_pixels(job_t* j, weir_tensor_t* partials, void* passed) {
  weir_tensor_t* by = NULL;
  void* sums = partials ? partials->data : NULL;
  int64_t count = j->norm.outer * j->norm.channels * j->norm.inner;
  WEIR_TRY(weir_kernel_scratch(j->ctx, WEIR_DTYPE_FLOAT, VECTORS * j->norm.channels, &by));
  weir_cuda_size_t size = {.grid = {(unsigned)WEIR_MIN(j->norm.channels, 65535), 1, 1},
                           .block = {FINISH, 1, 1}};
  weir_status_t* status = weir_cuda_launch(j->ctx->device, j->f->finish, &size,
                                           WEIR_CUDA_ARGS(&j->norm, passed, &sums, &by->data));
  if (j->norm.inner > 1) size = weir_cuda_size_for(j->ctx->device, count / j->width);
  else size = (weir_cuda_size_t){.grid = {(unsigned)j->blocks, 1, 1}, .block = {BLOCK, 1, 1}};
  if (!status)
    status = weir_cuda_launch(j->ctx->device, j->f->apply[form_of(j)], &size,
                              WEIR_CUDA_ARGS(&j->norm, &j->tensors, &by->data, &j->across));
  weir_tensor_release(by);
  return status;
}

weir_status_t* weir_cuda_norm(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f,
                              const weir_norm_t* norm, const weir_norm_tensors_t* tensors,
                              const weir_norm_moments_t* moments) {
  job_t j = plan(ctx, f, norm, tensors);
  weir_norm_moments_t passed = *moments;
  weir_tensor_t* partials = NULL;
  weir_status_t* status =
      norm->is_training ? run_sums(&j, &(weir_norm_grads_t){.mean = NULL}, &partials) : NULL;
  if (!status) status = run_pixels(&j, partials, &passed);
  if (partials) weir_tensor_release(partials);
  return status;
}

weir_status_t* weir_cuda_norm_grad(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f,
                                   const weir_norm_t* norm, const weir_norm_tensors_t* tensors,
                                   const weir_norm_grads_t* grads) {
  job_t j = plan(ctx, f, norm, tensors);
  weir_norm_grads_t passed = *grads;
  weir_tensor_t* partials = NULL;
  weir_status_t* status = run_sums(&j, grads, &partials);
  if (!status) status = run_pixels(&j, partials, &passed);
  if (partials) weir_tensor_release(partials);
  return status;
}
