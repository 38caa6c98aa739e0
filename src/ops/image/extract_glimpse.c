// extract_glimpse.c — ExtractGlimpse and ExtractGlimpseV2: a window of each image, with noise where
// it is outside.
#include <math.h>

#include "kernel/random/random.h"
#include "ops/image/resize.h"

typedef enum noise_t { NOISE_UNIFORM, NOISE_GAUSSIAN, NOISE_ZERO } noise_t;

typedef struct options_t {
  bool is_normalized, is_centered;
  bool is_first;  // ExtractGlimpse, which always takes the offset for the window's centre
  noise_t noise;
} options_t;

typedef struct glimpse_t {
  options_t options;
  int64_t batch, channels, image_h, image_w, out_h, out_w;
  const float *src, *offsets;
  float* dst;
  weir_philox_t philox;
} glimpse_t;

static weir_status_t* check_noise(weir_attrs_t attrs) {
  const weir_view_t noise = weir_attrs_string(attrs, "noise");
  const bool is_uniform = weir_attrs_bool(attrs, "uniform_noise");
  if (!is_uniform || noise.size == 0 || weir_view_is(noise, "uniform")) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The uniform_noise should not be True when noise is not uniform");
}

static weir_status_t* glimpse_init(const weir_kernel_init_t* init, void* state) {
  options_t* options = state;
  const weir_attrs_t attrs = init->node->attrs;
  const weir_view_t noise = weir_attrs_string(attrs, "noise");
  const bool is_uniform = weir_attrs_bool(attrs, "uniform_noise");
  options->is_normalized = weir_attrs_bool(attrs, "normalized");
  options->is_centered = weir_attrs_bool(attrs, "centered");
  options->is_first = strcmp(init->node->op->name, "ExtractGlimpse") == 0;
  WEIR_TRY(check_noise(attrs));
  options->noise = NOISE_UNIFORM;
  if (noise.size == 0 && !is_uniform) options->noise = NOISE_GAUSSIAN;
  if (noise.size == 0 || weir_view_is(noise, "uniform")) return NULL;
  options->noise = weir_view_is(noise, "zero") ? NOISE_ZERO : NOISE_GAUSSIAN;
  if (options->noise == NOISE_ZERO || weir_view_is(noise, "gaussian")) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The noise could only be uniform, gaussian, or zero, got%.*s",
                     WEIR_VIEW_ARG(noise));
}

// ---- geometry ----
// The part of an axis that is both in the window and in the image.
typedef struct part_t {
  int64_t from, to;  // its first element in the image and in the window
  int64_t size;
  bool is_whole;  // the window is inside; at the far end it must not even touch, as in TensorFlow
} part_t;

static float window_begin(const options_t* o, float offset, int64_t image, int64_t window) {
  const float size = (float)image, half = (float)window / 2.0f;
  if (o->is_normalized) offset *= size;
  if (o->is_first) return (o->is_centered ? offset / 2.0f + size / 2.0f : offset) - half;
  if (!o->is_centered) return offset;
  return o->is_normalized ? offset / 2.0f + size / 2.0f - half : offset + size / 2.0f;
}

static part_t part_of(const options_t* o, float offset, int64_t image, int64_t window) {
  const float at = window_begin(o, offset, image, window);
  const int64_t begin = (int64_t)(at > -1e12f ? fminf(at, 1e12f) : -1e12f);
  part_t part = {.from = begin, .size = window, .is_whole = true};
  if (begin < 0) {
    part.size = WEIR_MAX(0, window + begin);
    part.from = 0;
    part.to = window - part.size;
    part.is_whole = false;
  } else if (begin + window >= image) {
    part.size = WEIR_MAX(0, image - begin);
    part.is_whole = false;
  }
  part.size = WEIR_MIN(part.size, image);
  return part;
}

// ---- noise ----
// Of one channel of an image.
typedef struct stats_t {
  float least, most, mean, deviation;
} stats_t;

static stats_t stats_of(const glimpse_t* g, const float* image, int64_t channel) {
  const int64_t pixels = g->image_h * g->image_w;
  stats_t s = {.least = INFINITY, .most = -INFINITY};
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < pixels; ++i) {
    const float x = image[i * g->channels + channel];
    s.least = WEIR_MIN(s.least, x), s.most = WEIR_MAX(s.most, x);
    sum += (double)x;
  }
  const double mean = sum / (double)pixels;
  for (int64_t i = 0; i < pixels; ++i) {
    const double away = (double)image[i * g->channels + channel] - mean;
    squares += away * away;
  }
  s.mean = (float)mean;
  s.deviation = (float)sqrt(squares / (double)pixels);
  return s;
}

// Between the least and the most of all channels, or around the mean of each.
static void add_noise(const glimpse_t* g, const float* image, weir_philox_t philox, float* out) {
  const bool is_uniform = g->options.noise == NOISE_UNIFORM;
  const weir_random_spec_t spec = {.kind = is_uniform ? WEIR_RANDOM_UNIFORM : WEIR_RANDOM_NORMAL,
                                   .dtype = WEIR_DTYPE_FLOAT};
  const int64_t count = g->out_h * g->out_w * g->channels;
  float least = INFINITY, most = -INFINITY;
  weir_random_fill(NULL, &spec, philox, out, count);
  for (int64_t c = 0; c < g->channels; ++c) {
    const stats_t s = stats_of(g, image, c);
    least = WEIR_MIN(least, s.least), most = WEIR_MAX(most, s.most);
    for (int64_t i = c; !is_uniform && i < count; i += g->channels) {
      out[i] = WEIR_MIN(WEIR_MAX(s.mean + out[i] * s.deviation, s.least), s.most);
    }
  }
  for (int64_t i = 0; is_uniform && i < count; ++i) out[i] = least + out[i] * (most - least);
}

// ---- kernel ----
static void glimpse_images(void* arg, int64_t begin, int64_t end) {
  const glimpse_t* g = arg;
  const int64_t image_row = g->image_w * g->channels, out_row = g->out_w * g->channels;
  for (int64_t i = begin; i < end; ++i) {
    const float* image = g->src + i * g->image_h * image_row;
    float* out = g->dst + i * g->out_h * out_row;
    const part_t y = part_of(&g->options, g->offsets[2 * i], g->image_h, g->out_h);
    const part_t x = part_of(&g->options, g->offsets[2 * i + 1], g->image_w, g->out_w);
    if (!y.is_whole || !x.is_whole) {
      weir_philox_t philox = g->philox;
      weir_philox_skip(&philox, (uint64_t)(i * g->out_h * out_row));
      if (g->options.noise == NOISE_ZERO) {
        memset(out, 0, (size_t)(g->out_h * out_row) * sizeof(float));
      } else {
        add_noise(g, image, philox, out);
      }
    }
    for (int64_t row = 0; row < y.size && x.size > 0; ++row) {
      memcpy(out + (y.to + row) * out_row + x.to * g->channels,
             image + (y.from + row) * image_row + x.from * g->channels,
             (size_t)(x.size * g->channels) * sizeof(float));
    }
  }
}

static weir_status_t* read_inputs(const weir_kernel_ctx_t* ctx, glimpse_t* g) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *size = weir_kernel_input(ctx, 1),
                      *offsets = weir_kernel_input(ctx, 2);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (images->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input must be 4-dimensional (batch_size, height, width, depth)%s",
                       weir_tensor_shape_text(images, text));
  }
  if (size->rank != 1 || size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be a vector of size 2 (height, width)%s",
                       weir_tensor_shape_text(size, text));
  }
  g->batch = images->dims[0], g->channels = images->dims[3];
  g->image_h = images->dims[1], g->image_w = images->dims[2];
  g->out_h = weir_tensor_int_at(size, 0), g->out_w = weir_tensor_int_at(size, 1);
  g->src = images->data, g->offsets = offsets->data;
  if (g->out_h < 0 || g->out_w < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected a non-negative size, got %lld",
                       (long long)WEIR_MIN(g->out_h, g->out_w));
  if (offsets->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be a matrix%s",
                       weir_tensor_shape_text(offsets, text));
  }
  if (offsets->dims[0] == g->batch && offsets->dims[1] == 2) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s%s",
                     offsets->dims[0] != g->batch ? "first dimension should be batch"
                                                  : "second dimension should be of size 2 (y,x)",
                     weir_tensor_shape_text(offsets, text));
}

static weir_status_t* glimpse_cpu(weir_kernel_ctx_t* ctx) {
  const options_t* options = ctx->state;
  glimpse_t g = {.options = *options};
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_inputs(ctx, &g));
  const int64_t dims[4] = {g.batch, g.out_h, g.out_w, g.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (out->count == 0) return NULL;
  if (options->noise != NOISE_ZERO) g.philox = weir_philox_from_seeds(0, 0);
  g.dst = out->data;
  const double pixels = (double)(g.out_h * g.out_w) +
                        (options->noise == NOISE_ZERO ? 0 : 4.0 * (double)(g.image_h * g.image_w));
  weir_pool_for(weir_kernel_pool(ctx), g.batch, pixels * (double)g.channels, glimpse_images, &g);
  return NULL;
}

static weir_status_t* glimpse_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *images, *offsets;
  int64_t batch, joined;
  WEIR_TRY(check_noise(weir_shape_attrs(ctx)));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &images));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 2, &offsets));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(images, 0), weir_shape_dim(offsets, 0), &batch));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(offsets, 1), 2, &joined));
  return weir_resize_set_shape(ctx, batch, 1, weir_shape_dim(images, 3));
}

#define GLIMPSE_ATTRS                                                            \
  "centered: bool = true; normalized: bool = true; uniform_noise: bool = true; " \
  "noise: string = 'uniform'"

const weir_op_module_t weir_ops_image_extract_glimpse = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ExtractGlimpse",
         .summary = "A window of each image around a point, noise where it is outside",
         .attrs = GLIMPSE_ATTRS,
         .inputs = "input: float; size: int32; offsets: float",
         .outputs = "glimpse: float",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = glimpse_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = glimpse_cpu, .init = glimpse_init,
                                    .state_size = sizeof(options_t), .host_inputs = "size")},
        {.name = "ExtractGlimpseV2",
         .summary = "A window of each image around a point, noise where it is outside",
         .attrs = GLIMPSE_ATTRS,
         .inputs = "input: float; size: int32; offsets: float",
         .outputs = "glimpse: float",
         .infer_shape = glimpse_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = glimpse_cpu, .init = glimpse_init,
                                    .state_size = sizeof(options_t), .host_inputs = "size")},
        {0}}};
