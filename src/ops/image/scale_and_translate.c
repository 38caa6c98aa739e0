// scale_and_translate.c — ScaleAndTranslate and ScaleAndTranslateGrad: images scaled and moved,
// sampled by a kernel of choice.
#include <float.h>
#include <math.h>
#include <strings.h>

#include "kernel/image/resample.h"
#include "ops/image/resize.h"

// ---- sampling kernels ----
typedef struct sampler_t {
  const char* name;
  float radius;
  float (*weight)(float x, float radius);  // at a distance of |x|
} sampler_t;

static float lanczos(float x, float radius) {
  const float pi = 3.14159265359f;
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x, float radius) {
  const float sigma = radius / 3.0f;
  if (x >= radius) return 0;
  return (float)exp((double)(-x * x) / (2.0 * (double)sigma * (double)sigma));
}

static float box(float x, float radius) {
  (void)radius;
  return x < 0.5f ? 1.0f : x == 0.5f ? 0.5f : 0.0f;
}

static float triangle(float x, float radius) { return x < radius ? radius - x : 0.0f; }

static float keys_cubic(float x, float radius) {
  if (x >= radius) return 0;
  return x >= 1.0f ? ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f : (1.5f * x - 2.5f) * x * x + 1.0f;
}

static float mitchell_cubic(float x, float radius) {
  if (x >= radius) return 0;
  return x >= 1.0f ? ((-7.0f / 18.0f * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f
                   : (7.0f / 6.0f * x - 2.0f) * x * x + 8.0f / 9.0f;
}

static const sampler_t kSamplers[] = {{"lanczos1", 1.0f, lanczos},
                                      {"lanczos3", 3.0f, lanczos},
                                      {"lanczos5", 5.0f, lanczos},
                                      {"gaussian", 1.5f, gaussian},
                                      {"box", 1.0f, box},
                                      {"triangle", 1.0f, triangle},
                                      {"keyscubic", 2.0f, keys_cubic},
                                      {"mitchellcubic", 2.0f, mitchell_cubic}};

typedef struct options_t {
  const sampler_t* sampler;
  bool antialias;
} options_t;

static bool has_name(const sampler_t* sampler, weir_view_t name) {
  return name.size == strlen(sampler->name) &&
         strncasecmp(name.data, sampler->name, name.size) == 0;
}

static weir_status_t* options_init(const weir_kernel_init_t* init, void* state) {
  options_t* options = state;
  const weir_view_t name = weir_attrs_string(init->node->attrs, "kernel_type");
  options->antialias = weir_attrs_bool(init->node->attrs, "antialias");
  for (size_t i = 0; i < sizeof kSamplers / sizeof *kSamplers; ++i) {
    if (has_name(&kSamplers[i], name)) options->sampler = &kSamplers[i];
  }
  if (options->sampler) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Unrecognized kernel type: %.*s", WEIR_VIEW_ARG(name));
}

// ---- taps ----
typedef struct mapping_t {
  float scale, translation;
} mapping_t;

// Those around the place |at| of the axis. |stretch| widens the sampler where the image shrinks.
static weir_status_t* add_span(const sampler_t* sampler, float at, float stretch,
                               weir_taps_t* taps) {
  const float last = (float)(taps->in - 1), reach = sampler->radius * stretch;
  const int64_t begin = (int64_t)fminf(fmaxf(ceilf(at - reach - 0.5f), 0), last);
  const int64_t end = (int64_t)fminf(fmaxf(floorf(at + reach - 0.5f), 0), last);
  const int64_t first = taps->count;
  const float shrink = 1.0f / stretch;
  float sum = 0;
  for (int64_t i = begin; i <= WEIR_MIN(end, taps->in - 1); ++i) {
    const float weight = sampler->weight(fabsf(((float)i + 0.5f - at) * shrink), sampler->radius);
    sum += weight;
    WEIR_TRY(weir_taps_add(taps, i, weight));
  }
  const float all = fabsf(sum) >= 1000.0f * FLT_MIN ? 1.0f / sum : 0.0f;
  for (int64_t t = first; t < taps->count; ++t) taps->weights[t] *= all;
  return NULL;
}

static weir_status_t* add_taps(const options_t* options, mapping_t mapping, weir_taps_t* taps) {
  const float inverse = 1.0f / mapping.scale, shift = -inverse * mapping.translation;
  const float stretch = options->antialias ? fmaxf(inverse, 1.0f) : 1.0f;
  for (int64_t i = 0; i < taps->out; ++i) {
    const float at = ((float)i + 0.5f) * inverse + shift;
    // Outside of the image there is nothing to sample.
    if (at >= 0 && at <= (float)taps->in) {
      WEIR_TRY(add_span(options->sampler, at, stretch, taps));
    }
    weir_taps_next(taps);
  }
  return NULL;
}

static weir_status_t* make_taps(const options_t* options, const mapping_t* mappings,
                                const weir_resize_sizes_t* s, weir_taps_t* rows,
                                weir_taps_t* columns) {
  WEIR_TRY(weir_taps_init(rows, s->image_h, s->out_h));
  WEIR_TRY(weir_taps_init(columns, s->image_w, s->out_w));
  WEIR_TRY(add_taps(options, mappings[0], rows));
  return add_taps(options, mappings[1], columns);
}

// ---- inputs ----
static weir_status_t* read_pair(const weir_kernel_ctx_t* ctx, int i, const float** out_pair) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank != 1 || t->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "t must %s%s",
                       t->rank != 1 ? "be 1-dimensional" : "have two elements",
                       weir_tensor_shape_text(t, text));
  }
  *out_pair = t->data;
  return NULL;
}

// Of rows and columns.
static weir_status_t* read_mappings(const weir_kernel_ctx_t* ctx, mapping_t* mappings) {
  const float *scale, *translation;
  WEIR_TRY(read_pair(ctx, 2, &scale));
  if (!(scale[0] > 0 && scale[1] > 0))
    return WEIR_STATUS(INVALID_ARGUMENT, "Scale must be greater than zero.");
  WEIR_TRY(read_pair(ctx, 3, &translation));
  for (int i = 0; i < 2; ++i) {
    mappings[i] = (mapping_t){.scale = scale[i], .translation = translation[i]};
  }
  return NULL;
}

static weir_status_t* read_sizes(const weir_kernel_ctx_t* ctx, weir_resize_sizes_t* s) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *size = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (images->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 4-dimensional%s",
                       weir_tensor_shape_text(images, text));
  }
  if (size->rank != 1 || size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "output_shape_t must %s%s",
                       size->rank != 1 ? "be 1-dimensional" : "have two elements",
                       weir_tensor_shape_text(size, text));
  }
  *s = (weir_resize_sizes_t){.batch = images->dims[0],
                             .channels = images->dims[3],
                             .image_h = images->dims[1],
                             .image_w = images->dims[2],
                             .out_h = weir_tensor_int_at(size, 0),
                             .out_w = weir_tensor_int_at(size, 1)};
  if (s->image_h >= INT32_MAX || s->image_w >= INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "input sizes must be between 0 and max int32");
  if (s->out_h <= 0 || s->out_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "output dimensions must be positive");
  if (s->channels <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "image must have at least one channel");
  if (s->image_h <= 0 || s->image_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "input image must be of non-zero size");
  return NULL;
}

static weir_status_t* read_grad_sizes(const weir_kernel_ctx_t* ctx, weir_resize_sizes_t* s) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *image = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (dy->rank != 4 || image->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 4-dimensional%s",
                       dy->rank != 4 ? "input_grad" : "original_image",
                       weir_tensor_shape_text(dy->rank != 4 ? dy : image, text));
  }
  *s = (weir_resize_sizes_t){.batch = dy->dims[0],
                             .channels = dy->dims[3],
                             .image_h = image->dims[1],
                             .image_w = image->dims[2],
                             .out_h = dy->dims[1],
                             .out_w = dy->dims[2]};
  if (s->image_h < INT32_MAX && s->image_w < INT32_MAX) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "original sizes must be between 0 and max int32");
}

// ---- kernels ----
static weir_status_t* scale_cpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s = {0};
  mapping_t mappings[2] = {0};
  weir_tensor_t *out = NULL, *scratch = NULL;
  weir_taps_t rows = {0}, columns = {0};
  WEIR_TRY(read_sizes(ctx, &s));
  WEIR_TRY(read_mappings(ctx, mappings));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, (int64_t[]){s.batch, s.out_h, s.out_w, s.channels}, &out));
  if (out->count == 0) return NULL;
  weir_resample_t r = {.rows = &rows,
                       .columns = &columns,
                       .batch = s.batch,
                       .channels = s.channels,
                       .dst = out->data,
                       .dtype = WEIR_DTYPE_FLOAT};
  weir_status_t* status = make_taps(ctx->state, mappings, &s, &rows, &columns);
  if (!status) status = weir_resize_as_floats(ctx, weir_kernel_input(ctx, 0), &scratch, &r.src);
  if (!status) status = weir_resample(weir_kernel_pool(ctx), &r);
  weir_tensor_release(scratch);
  weir_taps_free(&rows);
  weir_taps_free(&columns);
  return status;
}

static weir_status_t* scale_grad_cpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s = {0};
  mapping_t mappings[2] = {0};
  weir_tensor_t* out = NULL;
  weir_taps_t rows = {0}, columns = {0};
  WEIR_TRY(read_grad_sizes(ctx, &s));
  const int64_t dims[4] = {s.batch, s.image_h, s.image_w, s.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  WEIR_TRY(read_mappings(ctx, mappings));
  if (out->count == 0) return NULL;
  const weir_resample_t r = {.rows = &rows,
                             .columns = &columns,
                             .batch = s.batch,
                             .channels = s.channels,
                             .src = weir_kernel_input(ctx, 0)->data,
                             .dst = out->data,
                             .dtype = WEIR_DTYPE_FLOAT};
  weir_status_t* status = make_taps(ctx->state, mappings, &s, &rows, &columns);
  if (!status) status = weir_taps_transpose(&rows);
  if (!status) status = weir_taps_transpose(&columns);
  if (!status) status = weir_resample(weir_kernel_pool(ctx), &r);
  weir_taps_free(&rows);
  weir_taps_free(&columns);
  return status;
}

// dx = ScaleAndTranslateGrad(dy, images, scale, translation)
static weir_status_t* scale_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs = WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 0), weir_grad_input(g, 2),
                                   weir_grad_input(g, 3));
  return weir_grad_set(g, 0,
                       weir_grad_node_like(g, "ScaleAndTranslateGrad", inputs,
                                           WEIR_NAMES("kernel_type", "antialias")));
}

#define SCALE_ATTRS "kernel_type: string = 'lanczos3'; antialias: bool = true"

const weir_op_module_t weir_ops_image_scale_and_translate = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ScaleAndTranslate",
         .summary = "Scales and moves images",
         .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, "
                  "double}; " SCALE_ATTRS,
         .inputs = "images: T; size: int32; scale: float; translation: float",
         .outputs = "resized_images: float",
         .infer_shape = weir_resize_shape,
         .build_grad = scale_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = scale_cpu, .init = options_init,
                                    .state_size = sizeof(options_t),
                                    .host_inputs = "size, scale, translation")},
        {.name = "ScaleAndTranslateGrad",
         .summary = "Gradient of ScaleAndTranslate by its images",
         .attrs = "T: {float}; " SCALE_ATTRS,
         .inputs = "grads: T; original_image: T; scale: float; translation: float",
         .outputs = "output: T",
         .infer_shape = weir_resize_grad_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = scale_grad_cpu, .init = options_init,
                             .state_size = sizeof(options_t), .host_inputs = "scale, translation")},
        {0}}};
