// boxes.h — Boxes in images, and how much two of them overlap.
#ifndef WEIR_KERNEL_IMAGE_BOXES_H_
#define WEIR_KERNEL_IMAGE_BOXES_H_

#include "base/base.h"

typedef struct weir_box_t {
  float top, left, bottom, right;
  float area;
} weir_box_t;

// |corners|: y and x of any corner and of the one opposite.
WEIR_INLINE weir_box_t weir_box_of(const float* corners) {
  weir_box_t box = {.top = WEIR_MIN(corners[0], corners[2]),
                    .left = WEIR_MIN(corners[1], corners[3]),
                    .bottom = WEIR_MAX(corners[0], corners[2]),
                    .right = WEIR_MAX(corners[1], corners[3])};
  box.area = (box.bottom - box.top) * (box.right - box.left);
  return box;
}

// The area of both over that of either; 0 where one has none.
WEIR_INLINE float weir_box_overlap(const weir_box_t* a, const weir_box_t* b) {
  if (a->area <= 0 || b->area <= 0) return 0;
  const float height = WEIR_MIN(a->bottom, b->bottom) - WEIR_MAX(a->top, b->top);
  const float width = WEIR_MIN(a->right, b->right) - WEIR_MAX(a->left, b->left);
  const float both = WEIR_MAX(height, 0.0f) * WEIR_MAX(width, 0.0f);
  return both / (a->area + b->area - both);
}

#endif  // WEIR_KERNEL_IMAGE_BOXES_H_
