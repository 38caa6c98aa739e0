// resize_bicubic.c — ResizeBicubic and ResizeBicubicGrad: images resized by cubic convolution over
// sixteen pixels.
#include <float.h>
#include <math.h>

#include "kernel/image/resample.h"
#include "ops/image/resize.h"

// ---- weights ----
// Of a pixel at a distance of up to 1 and of up to 2. TensorFlow computes both for 1024 distances
// and takes the nearest; so what it calls half a pixel is exact and a third is not.
enum { kSteps = 1024 };

static float near_weight(double a, int64_t step) {
  const double x = (double)((float)step / kSteps);
  return (float)(((a + 2) * x - (a + 3)) * x * x + 1);
}

static float far_weight(double a, int64_t step) {
  const double x = (double)((float)step / kSteps + 1.0f);
  return (float)(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

static void four_weights(double a, int64_t step, float* weights) {
  weights[0] = far_weight(a, step);
  weights[1] = near_weight(a, step);
  weights[2] = near_weight(a, kSteps - step);
  weights[3] = far_weight(a, kSteps - step);
}

// What lies outside of the image weighs nothing, the rest so much more.
static void drop_outside(int64_t first, int64_t in, float* weights) {
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    if (first + k < 0 || first + k >= in) weights[k] = 0;
    sum += weights[k];
  }
  if (fabsf(sum) < 1000.0f * FLT_MIN) return;
  for (int k = 0; k < 4; ++k) weights[k] *= 1.0f / sum;
}

static weir_status_t* add_taps(const weir_resize_options_t* options, weir_taps_t* taps) {
  const float scale = weir_resize_scale(options, taps->in, taps->out);
  const double a = options->has_half_pixels ? -0.5 : -0.75;
  for (int64_t i = 0; i < taps->out; ++i) {
    const float at = options->has_half_pixels ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
    const float floor_at = floorf(at);
    const int64_t first = (int64_t)floor_at - 1;
    float weights[4];
    four_weights(a, lrintf((at - floor_at) * kSteps), weights);
    if (options->has_half_pixels) drop_outside(first, taps->in, weights);
    for (int k = 0; k < 4; ++k) {
      const int64_t index = WEIR_MIN(WEIR_MAX(first + k, 0), taps->in - 1);
      WEIR_TRY(weir_taps_add(taps, index, weights[k]));
    }
    weir_taps_next(taps);
  }
  return NULL;
}

typedef struct axes_t {
  weir_taps_t rows, columns;
} axes_t;

static void axes_free(axes_t* axes) {
  weir_taps_free(&axes->rows);
  weir_taps_free(&axes->columns);
}

static weir_status_t* axes_init(const weir_resize_sizes_t* s, axes_t* axes) {
  WEIR_TRY(weir_taps_init(&axes->rows, s->image_h, s->out_h));
  WEIR_TRY(weir_taps_init(&axes->columns, s->image_w, s->out_w));
  WEIR_TRY(add_taps(&s->options, &axes->rows));
  return add_taps(&s->options, &axes->columns);
}

// ---- kernels ----
static weir_status_t* bicubic_cpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s = {0};
  weir_tensor_t *out = NULL, *scratch = NULL;
  axes_t axes = {0};
  WEIR_TRY(weir_resize_read(ctx, &s));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, (int64_t[]){s.batch, s.out_h, s.out_w, s.channels}, &out));
  if (out->count == 0) return NULL;
  weir_resample_t r = {.rows = &axes.rows,
                       .columns = &axes.columns,
                       .batch = s.batch,
                       .channels = s.channels,
                       .dst = out->data,
                       .dtype = WEIR_DTYPE_FLOAT};
  weir_status_t* status = axes_init(&s, &axes);
  if (!status) status = weir_resize_as_floats(ctx, weir_kernel_input(ctx, 0), &scratch, &r.src);
  if (!status) status = weir_resample(weir_kernel_pool(ctx), &r);
  weir_tensor_release(scratch);
  axes_free(&axes);
  return status;
}

static weir_status_t* bicubic_grad_cpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s = {0};
  weir_tensor_t* out = NULL;
  axes_t axes = {0};
  WEIR_TRY(weir_resize_read_grad(ctx, &s));
  const int64_t dims[4] = {s.batch, s.image_h, s.image_w, s.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (out->count == 0) return NULL;
  const weir_resample_t r = {.rows = &axes.rows,
                             .columns = &axes.columns,
                             .batch = s.batch,
                             .channels = s.channels,
                             .src = weir_kernel_input(ctx, 0)->data,
                             .dst = out->data,
                             .dtype = weir_tensor_type(out)};
  weir_status_t* status = axes_init(&s, &axes);
  if (!status) status = weir_taps_transpose(&axes.rows);
  if (!status) status = weir_taps_transpose(&axes.columns);
  if (!status) status = weir_resample(weir_kernel_pool(ctx), &r);
  axes_free(&axes);
  return status;
}

static weir_status_t* bicubic_grad(weir_grad_ctx_t* g) {
  const weir_dtype_t dtype = weir_grad_dtype(g, weir_grad_input(g, 0));
  if (dtype != WEIR_DTYPE_FLOAT && dtype != WEIR_DTYPE_DOUBLE)
    return weir_grad_set(g, 0, WEIR_NO_EDGE);
  return weir_resize_grad(g, "ResizeBicubicGrad");
}

const weir_op_module_t weir_ops_image_resize_bicubic = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ResizeBicubic",
         .summary = "Resizes images by cubic convolution",
         .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "
                  "bfloat16}; " WEIR_RESIZE_ATTRS,
         .inputs = "images: T; size: int32",
         .outputs = "resized_images: float",
         .infer_shape = weir_resize_shape,
         .build_grad = bicubic_grad,
         .kernels =
             WEIR_CPU_KERNEL(.compute = bicubic_cpu, .init = weir_resize_init,
                             .state_size = sizeof(weir_resize_options_t), .host_inputs = "size")},
        {.name = "ResizeBicubicGrad",
         .summary = "Gradient of ResizeBicubic by its images",
         .attrs = "T: {float, double}; " WEIR_RESIZE_ATTRS,
         .inputs = "grads: float; original_image: T",
         .outputs = "output: T",
         .infer_shape = weir_resize_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = bicubic_grad_cpu, .init = weir_resize_init,
                                    .state_size = sizeof(weir_resize_options_t))},
        {0}}};
