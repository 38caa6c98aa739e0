// crop_and_resize.c — CropAndResize: boxes cut out of images and resized.
#include <math.h>

#include "ops/image/crop.h"

// ---- kernel ----
static void crop_pixel(const weir_crops_t* c, int64_t box, const weir_crop_place_t* y,
                       const weir_crop_place_t* x, float* restrict out) {
  if (!y->is_inside || !x->is_inside) {
    for (int64_t d = 0; d < c->channels; ++d) out[d] = c->options.outside;
    return;
  }
  if (c->options.is_nearest) {
    memcpy(out, weir_crop_pixel(c, box, y->nearest, x->nearest),
           (size_t)c->channels * sizeof(float));
    return;
  }
  const float *top_left = weir_crop_pixel(c, box, y->low, x->low),
              *top_right = weir_crop_pixel(c, box, y->low, x->high),
              *bottom_left = weir_crop_pixel(c, box, y->high, x->low),
              *bottom_right = weir_crop_pixel(c, box, y->high, x->high);
  for (int64_t d = 0; d < c->channels; ++d) {
    const float top = top_left[d] + (top_right[d] - top_left[d]) * x->weight;
    const float bottom = bottom_left[d] + (bottom_right[d] - bottom_left[d]) * x->weight;
    out[d] = top + (bottom - top) * y->weight;
  }
}

static void crop_rows(void* arg, int64_t begin, int64_t end) {
  const weir_crops_t* c = arg;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t box = i / c->crop_h;
    const weir_crop_place_t y = weir_crop_row(c, c->boxes + 4 * box, i % c->crop_h);
    for (int64_t column = 0; column < c->crop_w; ++column) {
      const weir_crop_place_t x = weir_crop_column(c, c->boxes + 4 * box, column);
      crop_pixel(c, box, &y, &x, c->dst + (i * c->crop_w + column) * c->channels);
    }
  }
}

static weir_status_t* read_crop_size(const weir_tensor_t* size, weir_crops_t* c) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (size->rank != 1 || size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "crop_size must %s%s",
                       size->rank != 1 ? "be 1-D" : "have two elements",
                       weir_tensor_shape_text(size, text));
  }
  c->crop_h = weir_tensor_int_at(size, 0), c->crop_w = weir_tensor_int_at(size, 1);
  if (c->crop_h > 0 && c->crop_w > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "crop dimensions must be positive");
}

static weir_status_t* read_crops(const weir_kernel_ctx_t* ctx, weir_crops_t* c) {
  const weir_tensor_t *boxes = weir_kernel_input(ctx, 1), *indices = weir_kernel_input(ctx, 2);
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(weir_crop_check_image(weir_kernel_input(ctx, 0), c));
  if (boxes->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "boxes must be 2-D, got: %s",
                       weir_tensor_shape_text(boxes, text));
  }
  if (indices->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "box_indices must be rank 1 but is shape %s",
                       weir_tensor_shape_text(indices, text));
  }
  WEIR_TRY(weir_crop_check_boxes(boxes, indices, c));
  WEIR_TRY(read_crop_size(weir_kernel_input(ctx, 3), c));
  WEIR_TRY(weir_crop_check_indices(c));
  for (int64_t i = 0; i < 4 * c->count; ++i) {
    if (!isfinite(c->boxes[i])) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Boxes contains at least one element that is not finite");
    }
  }
  return NULL;
}

static weir_status_t* crop_cpu(weir_kernel_ctx_t* ctx) {
  const weir_crop_options_t* options = ctx->state;
  weir_crops_t c = {.options = *options};
  weir_tensor_t *out = NULL, *scratch = NULL;
  WEIR_TRY(read_crops(ctx, &c));
  const int64_t dims[4] = {c.count, c.crop_h, c.crop_w, c.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_resize_as_floats(ctx, weir_kernel_input(ctx, 0), &scratch, &c.src));
  c.dst = out->data;
  weir_pool_for(weir_kernel_pool(ctx), c.count * c.crop_h,
                (double)c.crop_w * (10.0 + 2.0 * (double)c.channels), crop_rows, &c);
  weir_tensor_release(scratch);
  return NULL;
}

// ---- shapes and gradient ----
static weir_status_t* crop_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *image, *boxes, *indices;
  int64_t count, columns;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &image));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &boxes));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &indices));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 0), weir_shape_dim(indices, 0), &count));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 1), 4, &columns));
  return weir_resize_set_shape(ctx, count, 3, weir_shape_dim(image, 3));
}

// To the image, where it has fractions, and to the boxes.
static weir_status_t* crop_grad(weir_grad_ctx_t* g) {
  weir_edge_t image = weir_grad_input(g, 0), boxes = weir_grad_input(g, 1),
              indices = weir_grad_input(g, 2), dy = weir_grad_dy(g, 0);
  const weir_dtype_t dtype = weir_grad_dtype(g, image);
  if (dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE) {
    weir_edges_t inputs = WEIR_EDGES(dy, boxes, indices, weir_grad_shape_of(g, image));
    weir_edge_t dx =
        weir_grad_node_like(g, "CropAndResizeGradImage", inputs, WEIR_NAMES("T", "method"));
    WEIR_TRY(weir_grad_set(g, 0, dx));
  }
  // Of the nearest pixel, too, as if it had been interpolated.
  return weir_grad_set(
      g, 1, weir_grad_node(g, "CropAndResizeGradBoxes", WEIR_EDGES(dy, image, boxes, indices)));
}

const weir_op_module_t weir_ops_image_crop_and_resize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CropAndResize",
         .summary = "Cuts boxes out of images and resizes them",
         .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; "
                  "method: {'bilinear', 'nearest'} = 'bilinear'; extrapolation_value: float = 0.0",
         .inputs = "image: T; boxes: float; box_ind: int32; crop_size: int32",
         .outputs = "crops: float",
         .infer_shape = crop_shape,
         .build_grad = crop_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = crop_cpu, .init = weir_crop_init,
                                    .state_size = sizeof(weir_crop_options_t),
                                    .host_inputs = "crop_size")},
        {0}}};
