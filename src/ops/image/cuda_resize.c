// cuda_resize.c — Launches of resize.cu.
#include "ops/image/cuda_resize.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(resize);

weir_status_t* weir_cuda_resize_find(const weir_kernel_init_t* init, const char* name,
                                     weir_dtype_t dtype, void* state) {
  weir_cuda_resize_t* s = state;
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n", weir_cuda_type_name(weir_dtype_base(dtype)));
  return weir_cuda_build(init->device, &text, weir_cuda_source_resize, name, &s->function);
}

// As the kernels have them.
typedef struct axis_t {
  int64_t in, out;
  float scale;
} axis_t;
typedef struct resize_t {
  axis_t y, x;
  int64_t channels, count;
  int is_aligned, has_half_pixels;
} resize_t;

static axis_t make_axis(const weir_resize_options_t* options, int64_t in, int64_t out) {
  return (axis_t){.in = in, .out = out, .scale = weir_resize_scale(options, in, out)};
}

weir_status_t* weir_cuda_resize_run(const weir_kernel_ctx_t* ctx, const weir_resize_sizes_t* sizes,
                                    const weir_tensor_t* in, weir_tensor_t* out) {
  const weir_cuda_resize_t* s = ctx->state;
  const weir_resize_options_t* options = &sizes->options;
  if (out->count == 0) return NULL;
  resize_t r = {.y = make_axis(options, sizes->image_h, sizes->out_h),
                .x = make_axis(options, sizes->image_w, sizes->out_w),
                .channels = sizes->channels,
                .count = out->count,
                .is_aligned = options->is_aligned,
                .has_half_pixels = options->has_half_pixels};
  const void* src = in->data;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, out->count);
  return weir_cuda_launch(ctx->device, s->function, &size, WEIR_CUDA_ARGS(&r, &src, &out->data));
}
