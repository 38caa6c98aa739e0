// crop.c — Boxes of images that are cut out and resized: where their elements lie, and the checks
// of inputs.
#include "ops/image/crop.h"

#include <math.h>

weir_status_t* weir_crop_init(const weir_kernel_init_t* init, void* state) {
  weir_crop_options_t* options = state;
  const weir_attrs_t attrs = init->node->attrs;
  options->is_nearest = weir_view_is(weir_attrs_string(attrs, "method"), "nearest");
  if (weir_attrs_find(attrs, "extrapolation_value"))
    options->outside = weir_attrs_float(attrs, "extrapolation_value");
  return NULL;
}

// ---- geometry ----
weir_crop_place_t weir_crop_place(float a, float b, float step, int64_t size, int64_t crop,
                                  int64_t i) {
  const float last = (float)(size - 1);
  const float at =
      crop > 1 ? a * last + (float)i * step : (float)(0.5 * (double)(a + b) * (double)(size - 1));
  if (!(at >= 0 && at <= last)) return (weir_crop_place_t){0};
  const int64_t low = (int64_t)floorf(at);
  return (weir_crop_place_t){.is_inside = true,
                             .low = low,
                             .high = (int64_t)ceilf(at),
                             .weight = at - (float)low,
                             .nearest = (int64_t)roundf(at)};
}

static float step_of(float a, float b, int64_t size, int64_t crop) {
  return crop > 1 ? (b - a) * (float)(size - 1) / (float)(crop - 1) : 0;
}

weir_crop_place_t weir_crop_row(const weir_crops_t* c, const float* box, int64_t y) {
  const float step = step_of(box[0], box[2], c->image_h, c->crop_h);
  return weir_crop_place(box[0], box[2], step, c->image_h, c->crop_h, y);
}

weir_crop_place_t weir_crop_column(const weir_crops_t* c, const float* box, int64_t x) {
  const float step = step_of(box[1], box[3], c->image_w, c->crop_w);
  return weir_crop_place(box[1], box[3], step, c->image_w, c->crop_w, x);
}

// ---- checks ----
weir_status_t* weir_crop_check_boxes(const weir_tensor_t* boxes, const weir_tensor_t* indices,
                                     weir_crops_t* c) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  c->boxes = boxes->data;
  c->images = indices->data;
  if (boxes->count == 0 && indices->count == 0) return NULL;
  if (boxes->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "boxes must be 2-D%s",
                       weir_tensor_shape_text(boxes, text));
  }
  if (boxes->dims[1] != 4) return WEIR_STATUS(INVALID_ARGUMENT, "boxes must have 4 columns");
  if (indices->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "box_index must be 1-D%s",
                       weir_tensor_shape_text(indices, text));
  }
  if (indices->dims[0] != boxes->dims[0])
    return WEIR_STATUS(INVALID_ARGUMENT, "box_index has incompatible shape");
  c->count = boxes->dims[0];
  return NULL;
}

weir_status_t* weir_crop_check_indices(const weir_crops_t* c) {
  for (int64_t i = 0; i < c->count; ++i) {
    if (c->images[i] < 0 || c->images[i] >= c->batch)
      return WEIR_STATUS(OUT_OF_RANGE, "box_index has values outside [0, batch_size)");
  }
  return NULL;
}

weir_status_t* weir_crop_check_image(const weir_tensor_t* image, weir_crops_t* c) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (image->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input image must be 4-D%s",
                       weir_tensor_shape_text(image, text));
  }
  c->batch = image->dims[0], c->channels = image->dims[3];
  c->image_h = image->dims[1], c->image_w = image->dims[2];
  if (c->image_h > 0 && c->image_w > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "image dimensions must be positive");
}

weir_status_t* weir_crop_check_grads(const weir_tensor_t* dy, weir_crops_t* c) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (dy->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "grads image must be 4-D%s",
                       weir_tensor_shape_text(dy, text));
  }
  c->dy = dy->data;
  c->crop_h = dy->dims[1], c->crop_w = dy->dims[2];
  if (c->crop_h > 0 && c->crop_w > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "grads dimensions must be positive");
}
