// crop.h — Boxes of images that are cut out and resized: where their elements lie, and the checks
// of inputs. Private to ops/image/crop*.c.
#ifndef WEIR_OPS_IMAGE_CROP_H_
#define WEIR_OPS_IMAGE_CROP_H_

#include "ops/image/resize.h"

// The state of the kernels.
typedef struct weir_crop_options_t {
  bool is_nearest;
  float outside;  // extrapolation_value
} weir_crop_options_t;

weir_status_t* weir_crop_init(const weir_kernel_init_t* init, void* state);

typedef struct weir_crops_t {
  weir_crop_options_t options;
  int64_t batch, image_h, image_w, channels;
  int64_t count, crop_h, crop_w;  // crops
  const float* boxes;             // y1, x1, y2, x2, in parts of the image
  const int32_t* images;          // which one each box is of
  const float* src;               // images
  const float* dy;                // of crops
  float* dst;                     // crops, or the gradients of boxes
} weir_crops_t;

// Where an element of a crop's axis lies in the image.
typedef struct weir_crop_place_t {
  bool is_inside;
  int64_t low, high;
  float weight;  // of |high|
  int64_t nearest;
} weir_crop_place_t;

// A box from |a| to |b| of an axis of |size| elements; |step| is the distance of |crop| elements.
weir_crop_place_t weir_crop_place(float a, float b, float step, int64_t size, int64_t crop,
                                  int64_t i);
// Of row |y| and column |x| of the crop of |box|.
weir_crop_place_t weir_crop_row(const weir_crops_t* c, const float* box, int64_t y);
weir_crop_place_t weir_crop_column(const weir_crops_t* c, const float* box, int64_t x);

WEIR_INLINE const float* weir_crop_pixel(const weir_crops_t* c, int64_t box, int64_t y, int64_t x) {
  return c->src + ((c->images[box] * c->image_h + y) * c->image_w + x) * c->channels;
}

// Checks, in TensorFlow's words, that set what they are about.
WEIR_MUST_USE weir_status_t* weir_crop_check_boxes(const weir_tensor_t* boxes,
                                                   const weir_tensor_t* indices, weir_crops_t* c);
WEIR_MUST_USE weir_status_t* weir_crop_check_indices(const weir_crops_t* c);
WEIR_MUST_USE weir_status_t* weir_crop_check_image(const weir_tensor_t* image, weir_crops_t* c);
WEIR_MUST_USE weir_status_t* weir_crop_check_grads(const weir_tensor_t* dy, weir_crops_t* c);

#endif  // WEIR_OPS_IMAGE_CROP_H_
