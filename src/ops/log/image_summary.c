// image_summary.c — ImageSummary, WriteImageSummary: a Summary of images as PNG files.
#include <math.h>

#include "base/alloc.h"
#include "image/png.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/log/summary_writer.h"
#include "tensor/cast.h"
#include "wire/wire.h"

typedef struct images_t {
  const weir_tensor_t* tensor;
  int64_t pixels;  // of one image
  int depth;
  const uint8_t* bad_color;  // |depth| values: stands for pixels that are not finite
  float* values;             // room for an image, as floats
  uint8_t* bytes;            // and as what is shown
} images_t;

static bool is_finite_pixel(const images_t* s, int64_t pixel) {
  for (int i = 0; i < s->depth; ++i) {
    if (!isfinite(s->values[pixel * s->depth + i])) return false;
  }
  return true;
}

// A value of T: halves are rounded after each step, as TensorFlow computes in T.
static double round_to(weir_dtype_t dtype, double x) {
  if (dtype == WEIR_DTYPE_DOUBLE) return x;
  float narrow = (float)x;
  if (dtype == WEIR_DTYPE_HALF) {
    uint16_t half;
    weir_status_destroy(weir_cast_elements(WEIR_DTYPE_HALF, &half, WEIR_DTYPE_FLOAT, &narrow, 1));
    weir_status_destroy(weir_cast_elements(WEIR_DTYPE_FLOAT, &narrow, WEIR_DTYPE_HALF, &half, 1));
  }
  return (double)narrow;
}

// The scale that fills 0 to 255; around 128 if there are negative values.
static void find_scale(const images_t* s, double* out_scale, double* out_offset) {
  const weir_dtype_t dtype = weir_tensor_type(s->tensor);
  float low = INFINITY, high = -INFINITY;
  for (int64_t p = 0; p < s->pixels; ++p) {
    if (!is_finite_pixel(s, p)) continue;
    for (int i = 0; i < s->depth; ++i) {
      low = fminf(low, s->values[p * s->depth + i]);
      high = fmaxf(high, s->values[p * s->depth + i]);
    }
  }
  const float top = low < 0 ? fmaxf(fabsf(low), fabsf(high)) : high;
  const float span = low < 0 ? 127.0f : 255.0f;
  *out_scale = round_to(dtype, top < 1e-6f ? 0.0 : (double)(span / top));
  *out_offset = low < 0 ? 128.0 : 0.0;
}

static weir_status_t* scale_image(images_t* s, int64_t index) {
  const weir_dtype_t dtype = weir_tensor_type(s->tensor);
  const int64_t count = s->pixels * s->depth;
  const char* from =
      (const char*)s->tensor->data + (size_t)(index * count) * weir_dtype_size(dtype);
  double scale = 0, offset = 0;
  WEIR_TRY(weir_cast_elements(WEIR_DTYPE_FLOAT, s->values, dtype, from, count));
  // A double beyond the floats is finite all the same; such images show nothing of use anyway.
  find_scale(s, &scale, &offset);
  for (int64_t p = 0; p < s->pixels; ++p) {
    const bool is_finite = is_finite_pixel(s, p);
    for (int i = 0; i < s->depth; ++i) {
      const int64_t at = p * s->depth + i;
      double value = (double)s->values[at];
      if (dtype == WEIR_DTYPE_DOUBLE) value = ((const double*)(const void*)from)[at];
      value = round_to(dtype, round_to(dtype, value * scale) + offset);
      s->bytes[at] = is_finite ? (uint8_t)value : s->bad_color[i];
    }
  }
  return NULL;
}

static weir_status_t* put_image(images_t* s, int64_t index, weir_strbuf_t* out) {
  const int64_t height = s->tensor->dims[1], width = s->tensor->dims[2];
  weir_png_source_t source = {.pixels = s->bytes,
                              .width = (uint32_t)width,
                              .height = (uint32_t)height,
                              .channels = s->depth,
                              .bits = 8};
  if (s->pixels == 0) return WEIR_STATUS(INTERNAL, "PNG encoding failed: there are no pixels");
  if (weir_tensor_type(s->tensor) == WEIR_DTYPE_UINT8) {
    source.pixels = (const uint8_t*)s->tensor->data + index * s->pixels * s->depth;
  } else {
    WEIR_TRY(scale_image(s, index));
  }
  const size_t image = weir_wire_begin(out, 4);
  weir_wire_put_int(out, 1, height);
  weir_wire_put_int(out, 2, width);
  weir_wire_put_int(out, 3, s->depth);
  const size_t file = weir_wire_begin(out, 4);
  WEIR_TRY(weir_png_encode(&source, -1, out));
  weir_wire_end(out, file);
  weir_wire_end(out, image);
  return NULL;
}

static weir_status_t* put_images(images_t* s, weir_view_t tag, int64_t most, weir_strbuf_t* out) {
  const int64_t count = WEIR_MIN(most, s->tensor->dims[0]);
  for (int64_t i = 0; i < count; ++i) {
    const size_t value = weir_wire_begin(out, 1);
    const size_t name = weir_wire_begin(out, 1);
    weir_strbuf_append(out, tag.data, tag.size);
    weir_strbuf_puts(out, "/image");
    if (most > 1) weir_strbuf_printf(out, "/%lld", (long long)i);
    weir_wire_end(out, name);
    WEIR_TRY(put_image(s, i, out));
    weir_wire_end(out, value);
  }
  return weir_strbuf_finish(out);
}

static weir_status_t* check_inputs(const weir_tensor_t* tag, const weir_tensor_t* tensor) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tag->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "Tags must be a scalar");
  const int64_t depth = tensor->rank == 4 ? tensor->dims[3] : 0;
  if (depth != 1 && depth != 3 && depth != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor must be 4-D with last dim 1, 3, or 4, not %s",
                       weir_tensor_shape_text(tensor, text));
  }
  if (tensor->dims[0] > INT32_MAX || tensor->dims[1] > INT32_MAX || tensor->dims[2] > INT32_MAX ||
      tensor->dims[1] * tensor->dims[2] >= 1 << 29) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor too large for summary %s",
                       weir_tensor_shape_text(tensor, text));
  }
  return NULL;
}

// Attributes: checked once.
static weir_status_t* image_init(const weir_kernel_init_t* init, void* state) {
  (void)state;
  const weir_tensor_t* color = weir_attrs_tensor(init->node->attrs, "bad_color");
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (weir_attrs_int(init->node->attrs, "max_images") > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "max_images must be < 2^31");
  }
  if (weir_tensor_type(color) != WEIR_DTYPE_UINT8) {
    return WEIR_STATUS(INVALID_ARGUMENT, "bad_color must be uint8, got %s",
                       weir_dtype_name(weir_tensor_type(color)));
  }
  if (color->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "bad_color must be a vector, got shape %s",
                       weir_tensor_shape_text(color, text));
  }
  return NULL;
}

// Appends the Summary of the images at input |first| + 1, whose tag is at |first|.
static weir_status_t* put_summary(weir_kernel_ctx_t* ctx, int first, const weir_tensor_t* color,
                                  weir_strbuf_t* summary) {
  const weir_tensor_t* tag = weir_kernel_input(ctx, first);
  const weir_tensor_t* tensor = weir_kernel_input(ctx, first + 1);
  WEIR_TRY(check_inputs(tag, tensor));
  if (first == 0 && (tensor->dims[1] == 0 || tensor->dims[2] == 0)) {  // of ImageSummary
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input tensor must have non-zero dims. Found: [%lld, %lld, %lld, %lld].",
                       (long long)tensor->dims[0], (long long)tensor->dims[1],
                       (long long)tensor->dims[2], (long long)tensor->dims[3]);
  }
  images_t s = {.tensor = tensor,
                .pixels = tensor->dims[1] * tensor->dims[2],
                .depth = (int)tensor->dims[3],
                .bad_color = color->data};
  if (weir_tensor_type(tensor) != WEIR_DTYPE_UINT8 && color->count < s.depth) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "expected depth <= bad_color.size, got depth = %d, bad_color.size = %lld",
                       s.depth, (long long)color->count);
  }
  s.values = weir_alloc_array((size_t)(s.pixels * s.depth), sizeof *s.values);
  s.bytes = weir_malloc((size_t)(s.pixels * s.depth));
  weir_status_t* status = s.values && s.bytes ? NULL : weir_out_of_memory();
  if (!status) {
    status = put_images(&s, weir_string_view(WEIR_TENSOR_DATA(tag, weir_string_t)),
                        weir_attrs_int(weir_kernel_attrs(ctx), "max_images"), summary);
  }
  weir_free(s.values);
  weir_free(s.bytes);
  return status;
}

static weir_status_t* image_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* color = weir_attrs_tensor(weir_kernel_attrs(ctx), "bad_color");
  weir_strbuf_t summary = {0};
  weir_tensor_t* out = NULL;
  weir_status_t* status = put_summary(ctx, 0, color, &summary);
  if (!status) status = weir_kernel_output(ctx, 0, 0, NULL, &out);
  if (!status) status = weir_tensor_set_string(out, 0, summary.data, summary.size);
  weir_strbuf_free(&summary);
  return status;
}

static weir_status_t* write_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* color = weir_kernel_input(ctx, 4);
  weir_strbuf_t summary = {0};
  if (color->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "bad_color must be a vector, got shape %s",
                       weir_tensor_shape_text(color, text));
  }
  weir_status_t* status = put_summary(ctx, 2, color, &summary);
  if (!status) return weir_summary_write(ctx, &summary);
  weir_strbuf_free(&summary);
  return status;
}

const weir_op_module_t weir_ops_log_image_summary = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ImageSummary",
         .summary = "A Summary of images",
         .attrs = "max_images: int >= 1 = 3; T: {uint8, float, half, double} = DT_FLOAT; "
                  "bad_color: tensor = { dtype: DT_UINT8 tensor_shape { dim { size: 4 } } "
                  "int_val: 255 int_val: 0 int_val: 0 int_val: 255 }",
         .inputs = "tag: string; tensor: T",
         .outputs = "summary: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = weir_shape_fn_scalar,
         .kernels =
             WEIR_CPU_KERNEL(.compute = image_cpu, .state_size = sizeof(int), .init = image_init)},
        {.name = "WriteImageSummary",
         .summary = "Writes images to an event file",
         .attrs = "max_images: int >= 1 = 3; T: {uint8, double, float, half} = DT_FLOAT",
         .inputs = "writer: resource; step: int64; tag: string; tensor: T; bad_color: uint8",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = write_cpu)},
        {0}}};
