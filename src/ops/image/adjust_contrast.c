// adjust_contrast.c — AdjustContrast: as AdjustContrastv2, of any type to floats, kept within
// bounds.
#include <math.h>

#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/image/removed.h"

static weir_status_t* contrast_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_removed(ctx, 2, "Use AdjustContrastv2 instead"));
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), 3));
  for (int i = 1; i < 4; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

typedef struct contrast_t {
  int64_t pixels, channels;  // of one image
  float factor, low, high;
  weir_dtype_t dtype;
  const void* src;
  float* dst;
  double* means;  // of the channels of one image each image
} contrast_t;

// |count| elements from |first| on, as floats.
static void to_floats(const contrast_t* a, int64_t first, int64_t count, float* out) {
#define COPY(TYPE)                                    \
  for (int64_t i = 0; i < count; ++i) {               \
    out[i] = (float)((const TYPE*)a->src)[first + i]; \
  }                                                   \
  break
  switch (a->dtype) {
    case WEIR_DTYPE_UINT8: COPY(uint8_t);
    case WEIR_DTYPE_INT8: COPY(int8_t);
    case WEIR_DTYPE_INT16: COPY(int16_t);
    case WEIR_DTYPE_INT32: COPY(int32_t);
    case WEIR_DTYPE_DOUBLE: COPY(double);
    default: COPY(float);
  }
#undef COPY
}

// NaNs, of bounds too, stay.
static float keep_within(float value, float low, float high) {
  if (isnan(value)) return value;
  if (!(value <= high)) value = high;
  return !isnan(value) && !(value >= low) ? low : value;
}

static void contrast_images(void* arg, int64_t begin, int64_t end) {
  const contrast_t* a = arg;
  const int64_t size = a->pixels * a->channels;
  for (int64_t image = begin; image < end; ++image) {
    float* dst = a->dst + image * size;
    double* mean = a->means + image * a->channels;
    to_floats(a, image * size, size, dst);
    for (int64_t c = 0; c < a->channels; ++c) mean[c] = 0;
    for (int64_t p = 0; p < a->pixels; ++p) {
      for (int64_t c = 0; c < a->channels; ++c) mean[c] += (double)dst[p * a->channels + c];
    }
    for (int64_t c = 0; c < a->channels; ++c) mean[c] /= (double)a->pixels;
    for (int64_t p = 0; p < a->pixels; ++p) {
      for (int64_t c = 0; c < a->channels; ++c) {
        const float middle = (float)mean[c];
        const float value = (dst[p * a->channels + c] - middle) * a->factor + middle;
        dst[p * a->channels + c] = keep_within(value, a->low, a->high);
      }
    }
  }
}

static weir_status_t* read_scalar(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                  float* out_value) {
  const weir_tensor_t* input = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (input->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be scalar: %s", name,
                       weir_tensor_shape_text(input, text));
  }
  *out_value = *WEIR_TENSOR_DATA(input, float);
  return NULL;
}

static weir_status_t* contrast_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  const int rank = images->rank;
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_tensor_t *out = NULL, *means = NULL;
  if (rank < 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least 3-D, got shape%s",
                       weir_tensor_shape_text(images, text));
  }
  contrast_t a = {.pixels = images->dims[rank - 3] * images->dims[rank - 2],
                  .channels = images->dims[rank - 1],
                  .dtype = weir_tensor_type(images),
                  .src = images->data};
  WEIR_TRY(read_scalar(ctx, 1, "contrast_factor", &a.factor));
  WEIR_TRY(read_scalar(ctx, 2, "min_value", &a.low));
  WEIR_TRY(read_scalar(ctx, 3, "max_value", &a.high));
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, images->dims, &out));
  if (out->count == 0) return NULL;
  const int64_t image_count = out->count / (a.pixels * a.channels);
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_DOUBLE, image_count * a.channels, &means));
  a.dst = out->data;
  a.means = means->data;
  weir_pool_for(weir_kernel_pool(ctx), image_count, 2.0 * (double)(a.pixels * a.channels),
                contrast_images, &a);
  weir_tensor_release(means);
  return NULL;
}

const weir_op_module_t weir_ops_image_adjust_contrast = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AdjustContrast",
         .summary = "Moves pixels away from the mean of their image and channel, within bounds; of "
                    "old graphs",
         .attrs = "T: {uint8, int8, int16, int32, int64, float, double}",
         .inputs = "images: T; contrast_factor: float; min_value: float; max_value: float",
         .outputs = "output: float",
         .infer_shape = contrast_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: uint8, int8, int16, int32, float, double",
                                    .compute = contrast_cpu,
                                    .host_inputs = "contrast_factor, min_value, max_value")},
        {0}}};
