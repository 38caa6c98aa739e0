// adjust.c — AdjustContrastv2, AdjustHue and AdjustSaturation: colours of images.
#include "ops/image/adjust.h"

#include <math.h>

#include "kernel/simd.h"
#include "op/shape_ctx.h"

// ---- shapes ----
static weir_status_t* adjust_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), 3));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

// ---- contrast ----
typedef struct contrast_t {
  int64_t pixels, channels;  // of one image
  float factor;
  const float* src;
  float* dst;
  double* means;  // room for one image's channels each image
} contrast_t;

// So many elements make whole pixels of 1, 2, 3, 4, 6, 8, 12 or 24 channels: loops over them are
// vector code. Others go pixel by pixel.
enum { LANES = 24 };

// Adds up each channel, in double: an image has millions of pixels.
static void sum_channels(const float* restrict src, int64_t pixels, int64_t channels,
                         double* restrict sums) {
  const int64_t count = pixels * channels;
  int64_t i = 0;
  for (int64_t c = 0; c < channels; ++c) sums[c] = 0;
  if (LANES % channels == 0) {
    double lanes[LANES] = {0};
    for (; i + LANES <= count; i += LANES) {
      for (int k = 0; k < LANES; ++k) lanes[k] += (double)src[i + k];
    }
    for (int k = 0; k < LANES; ++k) sums[k % channels] += lanes[k];
  }
  for (; i < count; i += channels) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += (double)src[i + c];
  }
}

// dst = offsets + src * factor; |dst| may be |src|.
static void scale_channels(const float* src, int64_t pixels, int64_t channels, float factor,
                           const double* offsets, float* dst) {
  const int64_t count = pixels * channels;
  int64_t i = 0;
  if (LANES % channels == 0) {
    float lanes[LANES];
    for (int k = 0; k < LANES; ++k) lanes[k] = (float)offsets[k % channels];
    for (; i + LANES <= count; i += LANES) {
      WEIR_IVDEP
      for (int k = 0; k < LANES; ++k) dst[i + k] = lanes[k] + src[i + k] * factor;
    }
  }
  for (; i < count; i += channels) {
    for (int64_t c = 0; c < channels; ++c) dst[i + c] = (float)offsets[c] + src[i + c] * factor;
  }
}

static void contrast_images(void* arg, int64_t begin, int64_t end) {
  const contrast_t* a = arg;
  const int64_t channels = a->channels;
  for (int64_t image = begin; image < end; ++image) {
    const float* src = a->src + image * a->pixels * channels;
    float* dst = a->dst + image * a->pixels * channels;
    double* mean = a->means + image * channels;
    sum_channels(src, a->pixels, channels, mean);
    for (int64_t c = 0; c < channels; ++c) {
      mean[c] = (double)((float)(mean[c] / (double)a->pixels) * (1.0f - a->factor));
    }
    scale_channels(src, a->pixels, channels, a->factor, mean, dst);
  }
}

static weir_status_t* contrast_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_adjusted(ctx, "contrast_factor", false));
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  const int rank = images->rank;
  contrast_t a = {.pixels = images->dims[rank - 3] * images->dims[rank - 2],
                  .channels = images->dims[rank - 1],
                  .factor = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), float),
                  .src = images->data};
  const int64_t count = images->count;
  weir_tensor_t *out, *means;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, rank, images->dims, &out));
  if (count == 0) return NULL;
  const int64_t image_count = count / (a.pixels * a.channels);
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_DOUBLE, image_count * a.channels, &means));
  a.dst = out->data;
  a.means = means->data;
  weir_pool_for(weir_kernel_pool(ctx), image_count, (double)(a.pixels * a.channels),
                contrast_images, &a);
  weir_tensor_release(means);
  return NULL;
}

// ---- kernels over pixels ----
#include "ops/image/colour.inc"

typedef struct pixels_t {
  const float* src;
  float* dst;
  float amount;
} pixels_t;

static void hue_pixels(void* arg, int64_t begin, int64_t end) {
  const pixels_t* p = arg;
  for (int64_t i = begin * 3; i < end * 3; i += 3) turn_hue(p->src + i, p->amount, p->dst + i);
}

static void saturation_pixels(void* arg, int64_t begin, int64_t end) {
  const pixels_t* p = arg;
  for (int64_t i = begin * 3; i < end * 3; i += 3) {
    scale_saturation(p->src + i, p->amount, p->dst + i);
  }
}

static weir_status_t* run_pixels(weir_kernel_ctx_t* ctx, float amount, weir_range_fn_t fn) {
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  const int64_t count = images->count;
  pixels_t p = {.src = images->data, .amount = amount};
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, images->rank, images->dims, &out));
  p.dst = out->data;
  weir_pool_for(weir_kernel_pool(ctx), count / 3, 15.0, fn, &p);
  return NULL;
}

static weir_status_t* hue_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_adjusted(ctx, "delta", true));
  return run_pixels(ctx, *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), float) * 6.0f, hue_pixels);
}

static weir_status_t* saturation_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_adjusted(ctx, "scale", true));
  return run_pixels(ctx, *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), float), saturation_pixels);
}

#define ADJUST_ATTRS "T: {half, float} = DT_FLOAT"

const weir_op_module_t weir_ops_image_adjust = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AdjustContrastv2",
         .summary = "Moves pixels away from the mean of their image and channel",
         .attrs = ADJUST_ATTRS,
         .inputs = "images: T; contrast_factor: float",
         .outputs = "output: T",
         .infer_shape = adjust_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: float", .compute = contrast_cpu,
                                    .host_inputs = "contrast_factor")},
        {.name = "AdjustHue",
         .summary = "Turns the hue of RGB images",
         .attrs = ADJUST_ATTRS,
         .inputs = "images: T; delta: float",
         .outputs = "output: T",
         .infer_shape = adjust_shape,
         .kernels =
             WEIR_CPU_KERNEL(.types = "T: float", .compute = hue_cpu, .host_inputs = "delta")},
        {.name = "AdjustSaturation",
         .summary = "Scales the saturation of RGB images",
         .attrs = ADJUST_ATTRS,
         .inputs = "images: T; scale: float",
         .outputs = "output: T",
         .infer_shape = adjust_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: float", .compute = saturation_cpu,
                                    .host_inputs = "scale")},
        {0}}};
