// resize.h — What the ops that resize images share: attributes, sizes and conversion of pixels.
// Private to ops/image/.
#ifndef WEIR_OPS_IMAGE_RESIZE_H_
#define WEIR_OPS_IMAGE_RESIZE_H_

#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

#define WEIR_RESIZE_ATTRS "align_corners: bool = false; half_pixel_centers: bool = false"

// The state of their kernels.
typedef struct weir_resize_options_t {
  bool is_aligned;       // align_corners
  bool has_half_pixels;  // half_pixel_centers
} weir_resize_options_t;

typedef struct weir_resize_sizes_t {
  weir_resize_options_t options;
  int64_t batch, channels;
  int64_t image_h, image_w;  // the original
  int64_t out_h, out_w;      // the resized
} weir_resize_sizes_t;

// Reads the attributes, half_pixel_centers where there is one; both at a time are refused.
weir_status_t* weir_resize_init(const weir_kernel_init_t* init, void* state);

// Output 0 is of images of the height and width that input |size_input| says.
WEIR_MUST_USE weir_status_t* weir_resize_set_shape(weir_shape_ctx_t* ctx, int64_t batch,
                                                   int size_input, int64_t channels);
// The shape of images: T and size: int32.
weir_status_t* weir_resize_shape(weir_shape_ctx_t* ctx);
// The shape of a gradient is that of input 1, the original.
weir_status_t* weir_resize_grad_shape(weir_shape_ctx_t* ctx);

// That |images| have four dimensions and |size| two elements, in TensorFlow's words.
WEIR_MUST_USE weir_status_t* weir_resize_check_ranks(const weir_tensor_t* images,
                                                     const weir_tensor_t* size);
// Checks inputs images and size whole.
WEIR_MUST_USE weir_status_t* weir_resize_read(const weir_kernel_ctx_t* ctx,
                                              weir_resize_sizes_t* out_sizes);
// The same of a gradient's inputs: those of the resized and the original images.
WEIR_MUST_USE weir_status_t* weir_resize_read_grad(const weir_kernel_ctx_t* ctx,
                                                   weir_resize_sizes_t* out_sizes);

// How many elements of an axis of |in| there are for one of |out|.
float weir_resize_scale(const weir_resize_options_t* options, int64_t in, int64_t out);

// Converts elements of any allowed type.
void weir_resize_to_floats(weir_pool_t* pool, const weir_tensor_t* t, float* dst);
// The elements of |t| as floats; |*out_scratch| owns them when they are not |t|'s own.
WEIR_MUST_USE weir_status_t* weir_resize_as_floats(weir_kernel_ctx_t* ctx, const weir_tensor_t* t,
                                                   weir_tensor_t** out_scratch,
                                                   const float** out_data);

// dx = |op|(dy, images) with both attributes.
WEIR_MUST_USE weir_status_t* weir_resize_grad(weir_grad_ctx_t* g, const char* op);

#endif  // WEIR_OPS_IMAGE_RESIZE_H_
