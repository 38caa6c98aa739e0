// crop_and_resize_grad.c — CropAndResizeGradBoxes and CropAndResizeGradImage.
#include "base/alloc.h"
#include "ops/image/crop.h"
#include "tensor/cast.h"

// ---- CropAndResizeGradBoxes ----
// What of a pixel's gradient goes to the two ends of a box's axis.
static void pull_ends(float slope, int64_t size, int64_t crop, int64_t i, float* first,
                      float* second) {
  const float last = (float)(size - 1);
  const float ratio = crop > 1 ? last / (float)(crop - 1) : 0;
  *first += crop > 1 ? slope * (last - (float)i * ratio) : slope * 0.5f * last;
  *second += crop > 1 ? slope * ((float)i * ratio) : slope * 0.5f * last;
}

static void pull_box(const weir_crops_t* c, int64_t box, const weir_crop_place_t* y,
                     const weir_crop_place_t* x, const float* dy, float* slopes) {
  const float *top_left = weir_crop_pixel(c, box, y->low, x->low),
              *top_right = weir_crop_pixel(c, box, y->low, x->high),
              *bottom_left = weir_crop_pixel(c, box, y->high, x->low),
              *bottom_right = weir_crop_pixel(c, box, y->high, x->high);
  for (int64_t d = 0; d < c->channels; ++d) {
    slopes[0] += dy[d] * ((1 - x->weight) * (bottom_left[d] - top_left[d]) +
                          x->weight * (bottom_right[d] - top_right[d]));
    slopes[1] += dy[d] * ((1 - y->weight) * (top_right[d] - top_left[d]) +
                          y->weight * (bottom_right[d] - bottom_left[d]));
  }
}

// As TensorFlow steps here, which is a rounding away from how it crops.
static float ratio_step(float a, float b, int64_t size, int64_t crop) {
  return crop > 1 ? (b - a) * ((float)(size - 1) / (float)(crop - 1)) : 0;
}

static void grad_boxes(void* arg, int64_t begin, int64_t end) {
  const weir_crops_t* c = arg;
  for (int64_t i = begin; i < end; ++i) {
    const float* box = c->boxes + 4 * i;
    float* out = c->dst + 4 * i;
    const float step_y = ratio_step(box[0], box[2], c->image_h, c->crop_h);
    const float step_x = ratio_step(box[1], box[3], c->image_w, c->crop_w);
    memset(out, 0, 4 * sizeof(float));
    for (int64_t row = 0; row < c->crop_h; ++row) {
      const weir_crop_place_t y =
          weir_crop_place(box[0], box[2], step_y, c->image_h, c->crop_h, row);
      for (int64_t column = 0; y.is_inside && column < c->crop_w; ++column) {
        const weir_crop_place_t x =
            weir_crop_place(box[1], box[3], step_x, c->image_w, c->crop_w, column);
        const float* dy = c->dy + ((i * c->crop_h + row) * c->crop_w + column) * c->channels;
        float slopes[2] = {0, 0};
        if (!x.is_inside) continue;
        pull_box(c, i, &y, &x, dy, slopes);
        pull_ends(slopes[0], c->image_h, c->crop_h, row, &out[0], &out[2]);
        pull_ends(slopes[1], c->image_w, c->crop_w, column, &out[1], &out[3]);
      }
    }
  }
}

static weir_status_t* grad_boxes_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *image = weir_kernel_input(ctx, 1);
  weir_crops_t c = {0};
  weir_tensor_t *out = NULL, *scratch = NULL;
  WEIR_TRY(weir_crop_check_grads(dy, &c));
  WEIR_TRY(weir_crop_check_image(image, &c));
  if (dy->dims[3] != c.channels) return WEIR_STATUS(INVALID_ARGUMENT, "image, grads depth differ");
  WEIR_TRY(weir_crop_check_boxes(weir_kernel_input(ctx, 2), weir_kernel_input(ctx, 3), &c));
  if (dy->dims[0] != c.count)
    return WEIR_STATUS(INVALID_ARGUMENT, "boxes and grads have incompatible shape");
  WEIR_TRY(weir_crop_check_indices(&c));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (int64_t[]){c.count, 4}, &out));
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_resize_as_floats(ctx, image, &scratch, &c.src));
  c.dst = out->data;
  weir_pool_for(weir_kernel_pool(ctx), c.count,
                (double)(c.crop_h * c.crop_w) * (15.0 + 3.0 * (double)c.channels), grad_boxes, &c);
  weir_tensor_release(scratch);
  return NULL;
}

// ---- CropAndResizeGradImage ----
typedef struct spread_t {
  weir_crops_t c;
  void* sums;       // the gradients of images
  int64_t* begins;  // owned: where in |order| the boxes of each image begin, and where all end
  int64_t* order;   // owned: boxes by image
} spread_t;

#define T float
#define NAME(x) x##_float
#include "ops/image/crop_grad_image.inc"
#define T double
#define NAME(x) x##_double
#include "ops/image/crop_grad_image.inc"

// A task owns images, so that nobody else adds to them.
static weir_status_t* order_boxes(spread_t* s) {
  const weir_crops_t* c = &s->c;
  s->begins = weir_calloc((size_t)c->batch + 2, sizeof(int64_t));
  s->order = weir_alloc_array((size_t)c->count + 1, sizeof(int64_t));
  if (!s->begins || !s->order) return weir_out_of_memory();
  for (int64_t i = 0; i < c->count; ++i) ++s->begins[c->images[i] + 2];
  for (int64_t i = 1; i <= c->batch; ++i) s->begins[i + 1] += s->begins[i];
  for (int64_t i = 0; i < c->count; ++i) s->order[s->begins[c->images[i] + 1]++] = i;
  return NULL;
}

static weir_status_t* read_image_size(const weir_tensor_t* size, const weir_tensor_t* dy,
                                      weir_crops_t* c) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (size->rank != 1 || size->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "image_size must %s%s",
                       size->rank != 1 ? "be 1-D" : "have 4 elements",
                       weir_tensor_shape_text(size, text));
  }
  c->batch = weir_tensor_int_at(size, 0), c->channels = weir_tensor_int_at(size, 3);
  c->image_h = weir_tensor_int_at(size, 1), c->image_w = weir_tensor_int_at(size, 2);
  if (c->image_h <= 0 || c->image_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "image dimensions must be positive");
  if (dy->dims[3] != c->channels)
    return WEIR_STATUS(INVALID_ARGUMENT, "image_size and grads are incompatible");
  if (c->batch >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)c->batch);
}

// Sums of halves are floats until the end.
static weir_status_t* spread(weir_kernel_ctx_t* ctx, spread_t* s, weir_tensor_t* out) {
  const weir_crops_t* c = &s->c;
  const weir_dtype_t dtype = weir_tensor_type(out);
  weir_tensor_t* scratch = NULL;
  if (dtype == WEIR_DTYPE_HALF)
    WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, out->count, &scratch));
  s->sums = scratch ? scratch->data : out->data;
  const double crops = (double)c->count / (double)c->batch * (double)(c->crop_h * c->crop_w);
  weir_pool_for(weir_kernel_pool(ctx), c->batch,
                crops * (15.0 + 4.0 * (double)c->channels) + (double)(c->image_h * c->image_w),
                dtype == WEIR_DTYPE_DOUBLE ? spread_images_double : spread_images_float, s);
  weir_status_t* status = NULL;
  if (scratch) {
    status = weir_cast_elements(dtype, out->data, WEIR_DTYPE_FLOAT, scratch->data, out->count);
  }
  weir_tensor_release(scratch);
  return status;
}

static weir_status_t* grad_image_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* dy = weir_kernel_input(ctx, 0);
  const weir_crop_options_t* options = ctx->state;
  spread_t s = {.c = {.options = *options}};
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_crop_check_grads(dy, &s.c));
  WEIR_TRY(weir_crop_check_boxes(weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2), &s.c));
  if (dy->dims[0] != s.c.count)
    return WEIR_STATUS(INVALID_ARGUMENT, "boxes and grads have incompatible shape");
  WEIR_TRY(read_image_size(weir_kernel_input(ctx, 3), dy, &s.c));
  WEIR_TRY(weir_crop_check_indices(&s.c));
  const int64_t dims[4] = {s.c.batch, s.c.image_h, s.c.image_w, s.c.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (out->count == 0) return NULL;
  weir_status_t* status = order_boxes(&s);
  if (!status) status = spread(ctx, &s, out);
  weir_free(s.begins);
  weir_free(s.order);
  return status;
}

static weir_status_t* grad_image_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, 3, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 4, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* grad_boxes_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 2));
}

const weir_op_module_t weir_ops_image_crop_and_resize_grad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CropAndResizeGradBoxes",
         .summary = "Gradient of CropAndResize by its boxes",
         .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; "
                  "method: {'bilinear'} = 'bilinear'",
         .inputs = "grads: float; image: T; boxes: float; box_ind: int32",
         .outputs = "output: float",
         .infer_shape = grad_boxes_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = grad_boxes_cpu)},
        {.name = "CropAndResizeGradImage",
         .summary = "Gradient of CropAndResize by its images",
         .attrs = "T: {float, half, double}; method: {'bilinear', 'nearest'} = 'bilinear'",
         .inputs = "grads: float; boxes: float; box_ind: int32; image_size: int32",
         .outputs = "output: T",
         .infer_shape = grad_image_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = grad_image_cpu, .init = weir_crop_init,
                                    .state_size = sizeof(weir_crop_options_t),
                                    .host_inputs = "image_size")},
        {0}}};
