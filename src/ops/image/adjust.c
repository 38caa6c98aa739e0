// adjust.c — AdjustContrastv2, AdjustHue and AdjustSaturation: colours of images.
#include <math.h>

#include "kernel/simd.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// ---- shapes and checks ----
static weir_status_t* adjust_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), 3));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

// Images of rank 3 or more and a scalar; three channels for those that mix colours.
static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, const char* scalar_name,
                                   bool is_rgb) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *scalar = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (images->rank < 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least 3-D, got shape%s",
                       weir_tensor_shape_text(images, text));
  }
  if (scalar->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be scalar: %s", scalar_name,
                       weir_tensor_shape_text(scalar, text));
  }
  if (is_rgb && images->dims[images->rank - 1] != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input must have 3 channels but instead has %lld channels.",
                       (long long)images->dims[images->rank - 1]);
  }
  return NULL;
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
  WEIR_TRY(check_inputs(ctx, "contrast_factor", false));
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

// ---- hue ----
// One pixel; |delta| in sixths of the circle. The hue is a sector (0 to 5) and a place in it; the
// largest and smallest colour stay.
static void turn_hue(const float* in, float delta, float* out) {
  // For each sector: the channels with the largest, the middle and the smallest colour.
  static const uint8_t order[6][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0},
                                      {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};
  const float r = in[0], g = in[1], b = in[2];
  int sector = r < g ? (b < r ? 1 : b > g ? 3 : 2) : (b < g ? 0 : b > r ? 4 : 5);
  const float high = in[order[sector][0]], mid = in[order[sector][1]], low = in[order[sector][2]];
  float hue = 0;
  if (high != low) {
    float place = (mid - low) / (high - low);
    hue = (float)sector + (sector % 2 == 0 ? place : 1 - place);
  }
  hue += delta;
  if (hue < 0 || hue >= 6) {
    hue = fmodf(hue, 6.0f);
    if (hue < 0) hue += 6.0f;
    if (hue >= 6) hue -= 6.0f;
  }
  sector = hue >= 0 && hue < 6 ? (int)hue : 5;  // 5 for a NaN too
  float place = hue - (float)sector;
  if (sector % 2 != 0) place = 1 - place;
  out[order[sector][0]] = high;
  out[order[sector][1]] = low + place * (high - low);
  out[order[sector][2]] = low;
}

// ---- saturation ----
static void scale_saturation(const float* in, float scale, float* out) {
  const float r = in[0], g = in[1], b = in[2];
  const float high = fmaxf(r, fmaxf(g, b)), low = fminf(r, fminf(g, b)), range = high - low;
  float saturation = high > 0 ? range / high : 0.0f;
  float hue = 0;
  if (range > 0) {
    const float norm = 1.0f / (6.0f * range);
    hue = r == high   ? norm * (g - b)
          : g == high ? norm * (b - r) + 2.0f / 6.0f
                      : norm * (r - g) + 4.0f / 6.0f;
    if (hue < 0) hue += 1.0f;
  }
  saturation = fminf(1.0f, fmaxf(0.0f, saturation * scale));
  // Back: the chroma |c|, and |x| for the colour between.
  const float c = saturation * high, base = high - c, turn = hue * 6.0f;
  const int sector = turn >= 0 && turn < 6 ? (int)turn : 6;
  const float x = c * (1.0f - fabsf(fmodf(turn, 2.0f) - 1.0f));
  const float parts[3] = {c, x, 0};
  // For each sector: which part each channel takes. Past the last: the base alone.
  static const uint8_t parts_of[7][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0},
                                         {1, 2, 0}, {0, 2, 1}, {2, 2, 2}};
  for (int i = 0; i < 3; ++i) out[i] = parts[parts_of[sector][i]] + base;
}

// ---- kernels over pixels ----
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
  WEIR_TRY(check_inputs(ctx, "delta", true));
  return run_pixels(ctx, *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), float) * 6.0f, hue_pixels);
}

static weir_status_t* saturation_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_inputs(ctx, "scale", true));
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
