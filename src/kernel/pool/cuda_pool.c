// cuda_pool.c — Launches of pool2d.cu.
#include "kernel/pool/cuda_pool.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(pool2d);

// ---- functions ----

// Each but the last is followed by the same for packs of channels.
enum {
  MAX = 0,
  AVG = 2,
  AVG_GRAD = 4,
  SPOTS = 6,
  MAX_GRAD = 8,
  SEPARATE = 10,
  MAX_GRAD_GRAD = 12,
  SPOTS_WIDE,
  MAX_GRAD_WIDE,
  PACKS = 1
};
static const char* const names[WEIR_CUDA_POOL_FUNCTIONS] = {"max_pool",
                                                            "max_pool_packs",
                                                            "avg_pool",
                                                            "avg_pool_packs",
                                                            "avg_pool_grad",
                                                            "avg_pool_grad_packs",
                                                            "max_pool_spots",
                                                            "max_pool_spots_packs",
                                                            "max_pool_grad",
                                                            "max_pool_grad_packs",
                                                            "max_pool_grad_separate",
                                                            "max_pool_grad_separate_packs",
                                                            "max_pool_grad_grad",
                                                            "max_pool_spots_wide",
                                                            "max_pool_grad_wide"};

// Functions for windows of one kind are longer: those of a few pixels are worth it.
static bool is_small_square(const weir_window_t* w) {
  enum { MOST = 3 };
  return w->depth_size == 1 && w->size[0] == w->size[1] && w->stride[0] == w->stride[1] &&
         w->size[0] > 0 && w->size[0] <= MOST && w->stride[0] > 0;
}

static bool has_function(const weir_cuda_pool_t* f, int which) {
  if (which == SEPARATE || which == SEPARATE + PACKS) return f->is_separate;
  return which < SPOTS_WIDE || !f->is_fixed;
}

weir_status_t* weir_cuda_pool_find(weir_device_t* device, weir_dtype_t dtype,
                                   const weir_window_t* window, weir_cuda_pool_t* out) {
  bool is_fixed = window && is_small_square(window);
  out->is_fixed = is_fixed;
  out->is_separate = is_fixed && window->stride[0] >= window->size[0];
  for (int i = 0; i < WEIR_CUDA_POOL_FUNCTIONS; ++i) {
    weir_strbuf_t text = {0};
    if (!has_function(out, i)) continue;
    weir_strbuf_printf(&text, "#define T %s\n", weir_cuda_type_name(dtype));
    if (is_fixed)
      weir_strbuf_printf(&text, "#define WINDOW %d\n#define STRIDE %d\n", (int)window->size[0],
                         (int)window->stride[0]);
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_pool2d, names[i], &out->at[i]));
  }
  return NULL;
}

// ---- launches ----

// As the kernels have it.
typedef struct passed_t {
  int in_h, in_w, out_h, out_w;
  int window_h, window_w;
  int stride_h, stride_w;
  int pad_top, pad_left;
  int channels;
  uint32_t count;
  weir_cuda_divisor_t by_packs, by_w, by_h;
} passed_t;

// An argument: elements of |size| bytes, as many as the input has, or the output.
typedef struct array_t {
  const void* data;
  size_t size;
  bool is_input;
} array_t;
enum { MOST_ARRAYS = 4 };

// A launch of function |which| over the pixels of the input, or of the output.
typedef struct launch_t {
  weir_kernel_ctx_t* ctx;
  const weir_cuda_pool_t* functions;
  const weir_pool2d_t* pool;
  int which;
  bool has_packs;
  bool is_by_input;
  array_t arrays[MOST_ARRAYS + 1];  // up to the first of size 0
} launch_t;

static int64_t inputs_of(const weir_pool2d_t* p) {
  return p->batch * p->in_h * p->in_w * p->channels;
}
static int64_t outputs_of(const weir_pool2d_t* p) {
  return p->batch * p->out_h * p->out_w * p->channels;
}

// Channels that a thread takes at once: all that fit 16 bytes, where memory allows.
static int64_t channels_at_once(const launch_t* l) {
  int64_t width = 16 / (int64_t)weir_dtype_size(weir_dtype_base(l->ctx->node->output_types[0]));
  bool is_aligned = l->has_packs && l->pool->channels % width == 0;
  for (const array_t* a = l->arrays; a->size; ++a)
    is_aligned = is_aligned && (uintptr_t)a->data % ((size_t)width * a->size) == 0;
  return is_aligned ? width : 1;
}

static passed_t pass(const weir_pool2d_t* p, int64_t each, bool is_by_input) {
  int64_t threads = (is_by_input ? inputs_of(p) : outputs_of(p)) / each;
  return (passed_t){.in_h = (int)p->in_h,
                    .in_w = (int)p->in_w,
                    .out_h = (int)p->out_h,
                    .out_w = (int)p->out_w,
                    .window_h = (int)p->window_h,
                    .window_w = (int)p->window_w,
                    .stride_h = (int)p->stride_h,
                    .stride_w = (int)p->stride_w,
                    .pad_top = (int)p->pad_top,
                    .pad_left = (int)p->pad_left,
                    .channels = (int)p->channels,
                    .count = (uint32_t)threads,
                    .by_packs = weir_cuda_divisor(p->channels / each),
                    .by_w = weir_cuda_divisor(is_by_input ? p->in_w : p->out_w),
                    .by_h = weir_cuda_divisor(is_by_input ? p->in_h : p->out_h)};
}

// Images [first, first + part->batch).
static weir_status_t* launch_part(const launch_t* l, const weir_pool2d_t* part, int64_t first) {
  int64_t each = channels_at_once(l);
  passed_t passed = pass(part, each, l->is_by_input);
  weir_pool2d_t before = *part;
  before.batch = first;
  const void* pointers[MOST_ARRAYS];
  void* args[MOST_ARRAYS + 1] = {&passed};
  for (int i = 0; l->arrays[i].size; ++i) {
    const array_t* a = &l->arrays[i];
    int64_t skipped = a->is_input ? inputs_of(&before) : outputs_of(&before);
    pointers[i] = (const char*)a->data + skipped * (int64_t)a->size;
    args[1 + i] = &pointers[i];
  }
  weir_cuda_size_t size = weir_cuda_size_for(l->ctx->device, (int64_t)passed.count);
  return weir_cuda_launch(l->ctx->device, l->functions->at[each > 1 ? l->which + PACKS : l->which],
                          &size, args);
}

// As many images at once as 31 bits count the elements of.
static weir_status_t* launch(const launch_t* l) {
  weir_pool2d_t part = *l->pool;
  int64_t batch = part.batch;
  part.batch = 1;
  int64_t largest = WEIR_MAX(inputs_of(&part), outputs_of(&part));
  if (batch == 0 || (l->is_by_input ? inputs_of(&part) : outputs_of(&part)) == 0) return NULL;
  if (largest > INT32_MAX)
    return WEIR_STATUS(UNIMPLEMENTED, "Pooling of images of %lld elements on a GPU",
                       (long long)largest);
  for (int64_t first = 0; first < batch; first += part.batch) {
    part.batch = WEIR_MIN(INT32_MAX / largest, batch - first);
    WEIR_TRY(launch_part(l, &part, first));
  }
  return NULL;
}

// ---- poolings ----

static size_t size_of(const weir_kernel_ctx_t* ctx) {
  return weir_dtype_size(weir_dtype_base(ctx->node->output_types[0]));
}

weir_status_t* weir_cuda_max_pool(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                  const weir_pool2d_t* p, const void* x, void* y) {
  size_t size = size_of(ctx);
  return launch(&(launch_t){ctx, f, p, MAX, true, false, {{x, size, true}, {y, size, false}}});
}

weir_status_t* weir_cuda_avg_pool(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                  const weir_pool2d_t* p, const void* x, void* y) {
  size_t size = size_of(ctx);
  return launch(&(launch_t){ctx, f, p, AVG, true, false, {{x, size, true}, {y, size, false}}});
}

weir_status_t* weir_cuda_avg_pool_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                       const weir_pool2d_t* p, const void* dy, void* dx) {
  size_t size = size_of(ctx);
  if (outputs_of(p) == 0) return weir_cuda_zero(ctx->device, dx, (size_t)inputs_of(p) * size);
  return launch(
      &(launch_t){ctx, f, p, AVG_GRAD, true, true, {{dy, size, false}, {dx, size, true}}});
}

// Whether every pixel of the input is in a window.
static bool is_covered(const weir_pool2d_t* p) {
  return p->stride_h <= p->window_h && p->stride_w <= p->window_w &&
         (p->out_h - 1) * p->stride_h - p->pad_top + p->window_h >= p->in_h &&
         (p->out_w - 1) * p->stride_w - p->pad_left + p->window_w >= p->in_w;
}

static weir_status_t* separate_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                    const weir_pool2d_t* p, const void* x, const void* dy,
                                    void* dx) {
  size_t size = size_of(ctx);
  if (!is_covered(p)) WEIR_TRY(weir_cuda_zero(ctx->device, dx, (size_t)inputs_of(p) * size));
  return launch(&(launch_t){
      ctx, f, p, SEPARATE, true, false, {{x, size, true}, {dy, size, false}, {dx, size, true}}});
}

weir_status_t* weir_cuda_max_pool_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                       const weir_pool2d_t* p, const void* x, const void* dy,
                                       void* dx) {
  size_t size = size_of(ctx);
  if (inputs_of(p) == 0) return NULL;
  if (outputs_of(p) == 0) return weir_cuda_zero(ctx->device, dx, (size_t)inputs_of(p) * size);
  if (f->is_separate) return separate_grad(ctx, f, p, x, dy, dx);
  bool is_wide = p->window_h * p->window_w > UINT8_MAX - 1;
  weir_dtype_t type = is_wide ? WEIR_DTYPE_INT32 : WEIR_DTYPE_UINT8;
  weir_tensor_t* made = NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, type, outputs_of(p), &made));
  array_t spots = {made->data, weir_dtype_size(type), false};
  launch_t find = {
      ctx, f, p, is_wide ? SPOTS_WIDE : SPOTS, !is_wide, false, {{x, size, true}, spots}};
  launch_t gather = {ctx,
                     f,
                     p,
                     is_wide ? MAX_GRAD_WIDE : MAX_GRAD,
                     !is_wide,
                     true,
                     {spots, {dy, size, false}, {dx, size, true}}};
  weir_status_t* status = launch(&find);
  if (!status) status = launch(&gather);
  weir_tensor_release(made);
  return status;
}

weir_status_t* weir_cuda_max_pool_grad_grad(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                            const weir_pool2d_t* p, const void* x, const void* y,
                                            const void* grad, void* ddy) {
  size_t size = size_of(ctx);
  return launch(
      &(launch_t){ctx,
                  f,
                  p,
                  MAX_GRAD_GRAD,
                  false,
                  false,
                  {{x, size, true}, {y, size, false}, {grad, size, true}, {ddy, size, false}}});
}
