// resize.c — What the ops that resize images share: attributes, sizes and conversion of pixels.
#include "ops/image/resize.h"

#include <math.h>

#include "tensor/cast.h"

weir_status_t* weir_resize_init(const weir_kernel_init_t* init, void* state) {
  weir_resize_options_t* options = state;
  const weir_attrs_t attrs = init->node->attrs;
  options->is_aligned = weir_attrs_bool(attrs, "align_corners");
  options->has_half_pixels =
      weir_attrs_find(attrs, "half_pixel_centers") && weir_attrs_bool(attrs, "half_pixel_centers");
  if (!options->is_aligned || !options->has_half_pixels) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "If half_pixel_centers is True, align_corners must be False.");
}

// ---- shapes and gradient ----
weir_status_t* weir_resize_set_shape(weir_shape_ctx_t* ctx, int64_t batch, int size_input,
                                     int64_t channels) {
  const weir_shape_t *size, *sizes;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, size_input), 1, &size));
  if (weir_shape_dim(size, 0) >= 0 && weir_shape_dim(size, 0) != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension must be 2 but is %lld",
                       (long long)weir_shape_dim(size, 0));
  }
  int64_t dims[4] = {batch, -1, -1, channels};
  WEIR_TRY(weir_shape_from_value(ctx, size_input, &sizes));
  if (sizes->rank == 2) {
    dims[1] = weir_shape_dim(sizes, 0);
    dims[2] = weir_shape_dim(sizes, 1);
  }
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

weir_status_t* weir_resize_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* images;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &images));
  return weir_resize_set_shape(ctx, weir_shape_dim(images, 0), 1, weir_shape_dim(images, 3));
}

weir_status_t* weir_resize_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *dy = weir_shape_input(ctx, 0), *image = weir_shape_input(ctx, 1);
  if (dy->rank != 4 || image->rank != 4) return weir_shape_set(ctx, 0, image);
  int64_t dims[4];
  for (int i = 0; i < 4; ++i) dims[i] = image->dims[i];
  // Kernels make as many images and channels as |dy| has, where the original image has others.
  for (int i = 0; i < 4; i += 3) {
    if (dy->dims[i] >= 0 && dims[i] >= 0 && dy->dims[i] != dims[i]) dims[i] = -1;
  }
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

weir_status_t* weir_resize_grad(weir_grad_ctx_t* g, const char* op) {
  weir_edges_t inputs = WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 0));
  return weir_grad_set(
      g, 0, weir_grad_node_like(g, op, inputs, WEIR_NAMES("align_corners", "half_pixel_centers")));
}

// ---- sizes ----
float weir_resize_scale(const weir_resize_options_t* options, int64_t in, int64_t out) {
  return options->is_aligned && out > 1 ? (float)(in - 1) / (float)(out - 1)
                                        : (float)in / (float)out;
}

// The last element read must be an int32, as in TensorFlow.
static weir_status_t* check_last(const weir_resize_sizes_t* s) {
  float scale_h = weir_resize_scale(&s->options, s->image_h, s->out_h);
  float scale_w = weir_resize_scale(&s->options, s->image_w, s->out_w);
  if (ceilf((float)(s->out_h - 1) * scale_h) <= 2147483647.0f &&
      ceilf((float)(s->out_w - 1) * scale_w) <= 2147483647.0f) {
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "input image scales would be too large for resizer");
}

static weir_status_t* check_sizes(const weir_resize_sizes_t* s) {
  if (s->out_h <= 0 || s->out_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "output dimensions must be positive");
  if (s->channels <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "image must have at least one channel");
  if (s->image_h <= 0 || s->image_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "input image must be of non-zero size");
  if (s->image_h > INT32_MAX || s->image_w > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "input sizes must be between 0 and max int32");
  return check_last(s);
}

weir_status_t* weir_resize_check_ranks(const weir_tensor_t* images, const weir_tensor_t* size) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (images->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 4-dimensional%s",
                       weir_tensor_shape_text(images, text));
  }
  if (size->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                       weir_tensor_shape_text(size, text));
  }
  if (size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape_t must have two elements%s",
                       weir_tensor_shape_text(size, text));
  }
  return NULL;
}

weir_status_t* weir_resize_read(const weir_kernel_ctx_t* ctx, weir_resize_sizes_t* out_sizes) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *size = weir_kernel_input(ctx, 1);
  const weir_resize_options_t* options = ctx->state;
  WEIR_TRY(weir_resize_check_ranks(images, size));
  *out_sizes = (weir_resize_sizes_t){.options = *options,
                                     .batch = images->dims[0],
                                     .channels = images->dims[3],
                                     .image_h = images->dims[1],
                                     .image_w = images->dims[2],
                                     .out_h = weir_tensor_int_at(size, 0),
                                     .out_w = weir_tensor_int_at(size, 1)};
  return check_sizes(out_sizes);
}

weir_status_t* weir_resize_read_grad(const weir_kernel_ctx_t* ctx, weir_resize_sizes_t* out_sizes) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *image = weir_kernel_input(ctx, 1);
  const weir_resize_options_t* options = ctx->state;
  if (dy->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "input_grad must be 4-dimensional");
  if (image->rank != 4)
    return WEIR_STATUS(INVALID_ARGUMENT, "original_image must be 4-dimensional");
  *out_sizes = (weir_resize_sizes_t){.options = *options,
                                     .batch = dy->dims[0],
                                     .channels = dy->dims[3],
                                     .image_h = image->dims[1],
                                     .image_w = image->dims[2],
                                     .out_h = dy->dims[1],
                                     .out_w = dy->dims[2]};
  if (image->dims[1] > INT32_MAX || image->dims[2] > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "original sizes must be between 0 and max int32");
  if (dy->dims[1] <= 0 || dy->dims[2] <= 0 || image->dims[1] <= 0 || image->dims[2] <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "resized and original images must be of non-zero size");
  }
  return NULL;
}

// ---- conversion ----
typedef struct cast_t {
  weir_dtype_t from;
  size_t size;  // of an element of |from|
  const char* src;
  float* dst;
} cast_t;

// Every allowed type is plain, so the conversion cannot fail.
static void cast_range(void* arg, int64_t begin, int64_t end) {
  const cast_t* c = arg;
  weir_status_destroy(weir_cast_elements(WEIR_DTYPE_FLOAT, c->dst + begin, c->from,
                                         c->src + (size_t)begin * c->size, end - begin));
}

void weir_resize_to_floats(weir_pool_t* pool, const weir_tensor_t* t, float* dst) {
  cast_t c = {.from = weir_tensor_type(t),
              .size = weir_dtype_size(weir_tensor_type(t)),
              .src = t->data,
              .dst = dst};
  weir_pool_for(pool, t->count, 0.5, cast_range, &c);
}

weir_status_t* weir_resize_as_floats(weir_kernel_ctx_t* ctx, const weir_tensor_t* t,
                                     weir_tensor_t** out_scratch, const float** out_data) {
  if (t->dtype == WEIR_DTYPE_FLOAT) {
    *out_data = t->data;
    return NULL;
  }
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, t->count, out_scratch));
  weir_resize_to_floats(weir_kernel_pool(ctx), t, (*out_scratch)->data);
  *out_data = (*out_scratch)->data;
  return NULL;
}
