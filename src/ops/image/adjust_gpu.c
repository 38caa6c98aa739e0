// adjust_gpu.c — AdjustContrastv2, AdjustHue and AdjustSaturation on GPUs. How much is adjusted
// stays in the device's memory.
#include "kernel/cuda/source.h"
#include "ops/image/adjust.h"

WEIR_CUDA_SOURCE(adjust);
WEIR_CUDA_SOURCE(colour);

static weir_status_t* find(const weir_kernel_init_t* init, const char* name,
                           weir_cuda_function_t* out_function) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n#define static static __device__\n%s",
                     weir_cuda_type_name(weir_dtype_base(init->node->output_types[0])),
                     weir_cuda_source_colour);
  return weir_cuda_build(init->device, &text, weir_cuda_source_adjust, name, out_function);
}

// ---- contrast ----
typedef struct functions_t {
  weir_cuda_function_t sums, offsets, contrast;
} functions_t;

static weir_status_t* contrast_init(const weir_kernel_init_t* init, void* state) {
  functions_t* s = state;
  WEIR_TRY(find(init, "sums", &s->sums));
  WEIR_TRY(find(init, "offsets", &s->offsets));
  return find(init, "contrast", &s->contrast);
}

// As the kernels have it.
typedef struct contrast_t {
  int64_t images, pixels, channels;
  int64_t chunks, chunk_size;
} contrast_t;

static contrast_t make_contrast(const weir_tensor_t* images) {
  enum { BLOCK = 256, CHUNK = 64 * BLOCK };
  const int64_t* dims = images->dims + images->rank - 3;
  contrast_t c = {.pixels = dims[0] * dims[1], .channels = dims[2], .chunk_size = CHUNK};
  c.images = images->count / (c.pixels * c.channels);
  c.chunks = (c.pixels + CHUNK - 1) / CHUNK;
  return c;
}

// |parts| and |by| are scratch, as the kernels fill it.
static weir_status_t* launch_contrast(weir_kernel_ctx_t* ctx, contrast_t c, const void* src,
                                      void* parts, void* by, void* dst) {
  const functions_t* s = ctx->state;
  const void* factor = weir_kernel_input(ctx, 1)->data;
  int64_t rows = c.images * c.channels;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, rows * c.chunks * 256);
  WEIR_TRY(weir_cuda_launch(ctx->device, s->sums, &size, WEIR_CUDA_ARGS(&c, &src, &parts)));
  size = weir_cuda_size_for(ctx->device, rows);
  WEIR_TRY(
      weir_cuda_launch(ctx->device, s->offsets, &size, WEIR_CUDA_ARGS(&c, &parts, &factor, &by)));
  size = weir_cuda_size_for(ctx->device, rows * c.pixels);
  return weir_cuda_launch(ctx->device, s->contrast, &size,
                          WEIR_CUDA_ARGS(&c, &src, &by, &factor, &dst));
}

static weir_status_t* contrast_gpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t *out = NULL, *parts = NULL, *by = NULL;
  WEIR_TRY(check_adjusted(ctx, "contrast_factor", false));
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  const void* src = images->data;
  if (images->count == 0) return weir_kernel_output(ctx, 0, images->rank, images->dims, &out);
  contrast_t c = make_contrast(images);
  int64_t rows = c.images * c.channels;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, images->rank, images->dims, &out));
  weir_status_t* status = weir_kernel_scratch(ctx, WEIR_DTYPE_DOUBLE, rows * c.chunks, &parts);
  if (!status) status = weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, rows, &by);
  if (!status) status = launch_contrast(ctx, c, src, parts->data, by->data, out->data);
  weir_tensor_release(parts);
  weir_tensor_release(by);
  return status;
}

// ---- hue and saturation ----
static weir_status_t* hue_init(const weir_kernel_init_t* init, void* state) {
  return find(init, "hue", state);
}
static weir_status_t* saturation_init(const weir_kernel_init_t* init, void* state) {
  return find(init, "saturation", state);
}

static weir_status_t* run_pixels(weir_kernel_ctx_t* ctx, const char* scalar_name) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_adjusted(ctx, scalar_name, true));
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  const void *src = images->data, *amount = weir_kernel_input(ctx, 1)->data;
  int64_t pixels = images->count / 3;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, images->rank, images->dims, &out));
  if (pixels == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, pixels);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS(&src, &amount, &out->data, &pixels));
}
static weir_status_t* hue_gpu(weir_kernel_ctx_t* ctx) { return run_pixels(ctx, "delta"); }
static weir_status_t* saturation_gpu(weir_kernel_ctx_t* ctx) { return run_pixels(ctx, "scale"); }

#define GPU_OP(Name, fn, state_)                                                           \
  {                                                                                        \
    .name = Name, .kernels = (const weir_kernel_def_t[]) {                                 \
      {WEIR_DEVICE_GPU, .types = "T: half, float", .compute = fn##_gpu, .init = fn##_init, \
       .state_size = sizeof(state_)},                                                      \
      {                                                                                    \
        0                                                                                  \
      }                                                                                    \
    }                                                                                      \
  }

const weir_op_module_t weir_ops_image_adjust_gpu = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){GPU_OP("AdjustContrastv2", contrast, functions_t),
                                   GPU_OP("AdjustHue", hue, weir_cuda_function_t),
                                   GPU_OP("AdjustSaturation", saturation, weir_cuda_function_t),
                                   {0}}};
