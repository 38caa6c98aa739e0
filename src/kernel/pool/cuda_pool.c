// cuda_pool.c — Launches of pool2d.cu.
#include "kernel/pool/cuda_pool.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(pool2d);

// Each but the last is followed by the same for packs of channels, and those that know a pixel of a
// window by its number by the same for windows of more than a byte counts.
enum {
  MAX = 0,
  AVG = 2,
  AVG_GRAD = 4,
  SPOTS = 6,
  MAX_GRAD = 9,
  MAX_GRAD_GRAD = 12,
  PACKS = 1,
  WIDE
};
static const char* const names[WEIR_CUDA_POOL_FUNCTIONS] = {
    "max_pool",          "max_pool_packs",       "avg_pool",
    "avg_pool_packs",    "avg_pool_grad",        "avg_pool_grad_packs",
    "max_pool_spots",    "max_pool_spots_packs", "max_pool_spots_wide",
    "max_pool_grad",     "max_pool_grad_packs",  "max_pool_grad_wide",
    "max_pool_grad_grad"};

weir_status_t* weir_cuda_pool_find(weir_device_t* device, weir_dtype_t dtype,
                                   weir_cuda_pool_t* out) {
  for (int i = 0; i < WEIR_CUDA_POOL_FUNCTIONS; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define T %s\n", weir_cuda_type_name(dtype));
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_pool2d, names[i], &out->at[i]));
  }
  return NULL;
}

// Channels that a thread takes at once: all that fit 16 bytes, where memory allows.
static int64_t channels_at_once(const weir_kernel_ctx_t* ctx, const weir_pool2d_t* p, const void* x,
                                const void* y) {
  int64_t width = 16 / (int64_t)weir_dtype_size(weir_dtype_base(ctx->node->output_types[0]));
  bool is_aligned = (((uintptr_t)x | (uintptr_t)y) & 15) == 0;
  return is_aligned && p->channels % width == 0 ? width : 1;
}

static int64_t inputs_of(const weir_pool2d_t* p) {
  return p->batch * p->in_h * p->in_w * p->channels;
}
static int64_t outputs_of(const weir_pool2d_t* p) {
  return p->batch * p->out_h * p->out_w * p->channels;
}

// Function |which| from |x| to |y|, of |count| elements.
static weir_status_t* run(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f, int which,
                          const weir_pool2d_t* p, const void* x, void* y, int64_t count) {
  weir_pool2d_t pool = *p;
  int64_t each = channels_at_once(ctx, p, x, y);
  if (count == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count / each);
  return weir_cuda_launch(ctx->device, f->at[each > 1 ? which + PACKS : which], &size,
                          WEIR_CUDA_ARGS(&pool, &x, &y));
}

weir_status_t* weir_cuda_max_pool(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                  const weir_pool2d_t* p, const void* x, void* y) {
  return run(ctx, f, MAX, p, x, y, outputs_of(p));
}

weir_status_t* weir_cuda_avg_pool(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                  const weir_pool2d_t* p, const void* x, void* y) {
  return run(ctx, f, AVG, p, x, y, outputs_of(p));
}

weir_status_t* weir_cuda_avg_pool_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                       const weir_pool2d_t* p, const void* dy, void* dx) {
  return run(ctx, f, AVG_GRAD, p, dy, dx, inputs_of(p));
}

static weir_status_t* launch_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                  const weir_pool2d_t* p, const void* x, void* spots,
                                  const void* dy, void* dx, bool is_wide) {
  weir_pool2d_t pool = *p;
  int64_t each =
      is_wide ? 1 : WEIR_MIN(channels_at_once(ctx, p, x, spots), channels_at_once(ctx, p, dy, dx));
  int which = is_wide ? WIDE : each > 1 ? PACKS : 0;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, outputs_of(p) / each);
  if (outputs_of(p) > 0)
    WEIR_TRY(weir_cuda_launch(ctx->device, f->at[SPOTS + which], &size,
                              WEIR_CUDA_ARGS(&pool, &x, &spots)));
  size = weir_cuda_size_for(ctx->device, inputs_of(p) / each);
  return weir_cuda_launch(ctx->device, f->at[MAX_GRAD + which], &size,
                          WEIR_CUDA_ARGS(&pool, &spots, &dy, &dx));
}

weir_status_t* weir_cuda_max_pool_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                       const weir_pool2d_t* p, const void* x, const void* dy,
                                       void* dx) {
  if (inputs_of(p) == 0) return NULL;
  bool is_wide = p->window_h * p->window_w > UINT8_MAX - 1;
  weir_tensor_t* spots = NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, is_wide ? WEIR_DTYPE_INT32 : WEIR_DTYPE_UINT8, outputs_of(p),
                               &spots));
  weir_status_t* status = launch_grad(ctx, f, p, x, spots->data, dy, dx, is_wide);
  weir_tensor_release(spots);
  return status;
}

weir_status_t* weir_cuda_max_pool_grad_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                            const weir_pool2d_t* p, const void* x, const void* y,
                                            const void* grad, void* ddy) {
  weir_pool2d_t pool = *p;
  if (outputs_of(p) == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, outputs_of(p));
  return weir_cuda_launch(ctx->device, f->at[MAX_GRAD_GRAD], &size,
                          WEIR_CUDA_ARGS(&pool, &x, &y, &grad, &ddy));
}
