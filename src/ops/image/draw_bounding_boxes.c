// draw_bounding_boxes.c — DrawBoundingBoxes and DrawBoundingBoxesV2: frames drawn over images.
#include "kernel/move/move.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/cast.h"

enum { kMostChannels = 4 };

typedef struct canvas_t {
  int64_t height, width, channels;
  int64_t boxes;         // an image
  const float* corners;  // y1, x1, y2, x2 in parts of the image
  int64_t color_count;
  size_t element;      // bytes
  const char* colors;  // of the images' type, |channels| each
  char* pixels;
} canvas_t;

// Of a frame, in pixels. A line beyond the image is not drawn.
typedef struct frame_t {
  int64_t top, left, bottom, right;
} frame_t;

// Truncated, as TensorFlow; what is far away stays so.
static int64_t to_pixel(float part, int64_t size) {
  const float at = part * (float)(size - 1);
  if (!(at > -1e9f)) return -1000000000;
  return at < 1e9f ? (int64_t)at : 1000000000;
}

static void draw_line(const canvas_t* c, char* image, const char* color, const frame_t* f) {
  const size_t size = (size_t)c->channels * c->element;
  for (int64_t y = WEIR_MAX(f->top, 0); y <= WEIR_MIN(f->bottom, c->height - 1); ++y) {
    for (int64_t x = WEIR_MAX(f->left, 0); x <= WEIR_MIN(f->right, c->width - 1); ++x) {
      memcpy(image + (size_t)(y * c->width + x) * size, color, size);
    }
  }
}

static void draw_frame(const canvas_t* c, char* image, const char* color, const frame_t* f) {
  if (f->top > f->bottom || f->left > f->right) return;
  draw_line(c, image, color, &(frame_t){f->top, f->left, f->top, f->right});
  draw_line(c, image, color, &(frame_t){f->bottom, f->left, f->bottom, f->right});
  draw_line(c, image, color, &(frame_t){f->top, f->left, f->bottom, f->left});
  draw_line(c, image, color, &(frame_t){f->top, f->right, f->bottom, f->right});
}

static void draw_images(void* arg, int64_t begin, int64_t end) {
  const canvas_t* c = arg;
  const size_t color_size = (size_t)c->channels * c->element;
  for (int64_t i = begin; i < end; ++i) {
    char* image = c->pixels + (size_t)(i * c->height * c->width) * color_size;
    for (int64_t k = 0; k < c->boxes; ++k) {
      const float* box = c->corners + 4 * (i * c->boxes + k);
      const frame_t frame = {.top = to_pixel(box[0], c->height),
                             .left = to_pixel(box[1], c->width),
                             .bottom = to_pixel(box[2], c->height),
                             .right = to_pixel(box[3], c->width)};
      draw_frame(c, image, c->colors + (size_t)(k % c->color_count) * color_size, &frame);
    }
  }
}

// ---- colors ----
// Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
static const float kColors[10][kMostChannels] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

// Converts |count| colors of |stride| floats each.
static weir_status_t* convert_colors(weir_kernel_ctx_t* ctx, canvas_t* c, const float* colors,
                                     int64_t stride, weir_tensor_t** out_scratch) {
  const weir_dtype_t dtype = weir_tensor_type(weir_kernel_input(ctx, 0));
  WEIR_TRY(weir_kernel_scratch(ctx, dtype, c->color_count * c->channels, out_scratch));
  char* data = (*out_scratch)->data;
  c->colors = data;
  for (int64_t i = 0; i < c->color_count; ++i) {
    WEIR_TRY(weir_cast_elements(dtype, data + (size_t)(i * c->channels) * c->element,
                                WEIR_DTYPE_FLOAT, colors + i * stride, c->channels));
  }
  return NULL;
}

static weir_status_t* usual_colors(weir_kernel_ctx_t* ctx, canvas_t* c,
                                   weir_tensor_t** out_scratch) {
  const float white[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  c->color_count = 10;
  return c->channels == 1 ? convert_colors(ctx, c, white, 1, out_scratch)
                          : convert_colors(ctx, c, kColors[0], kMostChannels, out_scratch);
}

static weir_status_t* make_colors(weir_kernel_ctx_t* ctx, canvas_t* c,
                                  weir_tensor_t** out_scratch) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (ctx->input_count < 3) return usual_colors(ctx, c, out_scratch);
  const weir_tensor_t* colors = weir_kernel_input(ctx, 2);
  if (colors->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "colors must be a 2-D matrix%s",
                       weir_tensor_shape_text(colors, text));
  }
  if (colors->dims[1] < c->channels) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "colors must have equal or more channels than the image provided: %s",
                       weir_tensor_shape_text(colors, text));
  }
  if (colors->count == 0) return usual_colors(ctx, c, out_scratch);
  c->color_count = colors->dims[0];
  return convert_colors(ctx, c, colors->data, colors->dims[1], out_scratch);
}

// ---- kernel ----
static weir_status_t* check_inputs(const weir_tensor_t* images, const weir_tensor_t* boxes) {
  if (images->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "The rank of the images should be 4");
  if (boxes->rank != 3)
    return WEIR_STATUS(INVALID_ARGUMENT, "The rank of the boxes tensor should be 3");
  if (images->dims[0] != boxes->dims[0])
    return WEIR_STATUS(INVALID_ARGUMENT, "The batch sizes should be the same");
  if (images->dims[3] != 1 && images->dims[3] != 3 && images->dims[3] != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
  }
  if (boxes->dims[2] == 4) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The size of the third dimension of the box must be 4. Received: %lld",
                     (long long)boxes->dims[2]);
}

static weir_status_t* draw_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *boxes = weir_kernel_input(ctx, 1);
  weir_tensor_t *out = NULL, *scratch = NULL;
  WEIR_TRY(check_inputs(images, boxes));
  const int64_t batch = images->dims[0], count = images->count;
  const weir_dtype_t dtype = weir_tensor_type(images);
  canvas_t c = {.height = images->dims[1],
                .width = images->dims[2],
                .channels = images->dims[3],
                .boxes = boxes->dims[1],
                .corners = boxes->data,
                .element = weir_dtype_size(dtype)};
  weir_status_t* status = make_colors(ctx, &c, &scratch);
  const void* src = images->data;
  if (!status) status = weir_kernel_forward(ctx, 0, 0, 4, images->dims, &out);
  if (!status && src != out->data)
    status = weir_move_copy(weir_kernel_pool(ctx), dtype, src, out->data, count);
  if (!status && count > 0) {
    c.pixels = out->data;
    weir_pool_for(weir_kernel_pool(ctx), batch,
                  (double)(c.boxes * (c.height + c.width)) * 5.0 + 1.0, draw_images, &c);
  }
  weir_tensor_release(scratch);
  return status;
}

// Of the first version, TensorFlow checks more.
static weir_status_t* draw_v1_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *images, *boxes;
  int64_t columns;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &images));
  const int64_t channels = weir_shape_dim(images, 3);
  if (channels >= 0 && channels != 1 && channels != 3 && channels != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
  }
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 3, &boxes));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 2), 4, &columns));
  return weir_shape_set(ctx, 0, images);
}

static weir_status_t* draw_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), 3));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

#define DRAW_ATTRS "T: {float, half} = DT_FLOAT"

const weir_op_module_t weir_ops_image_draw_bounding_boxes = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "DrawBoundingBoxes",
                                    .summary = "Draws frames over images",
                                    .attrs = DRAW_ATTRS,
                                    .inputs = "images: T; boxes: float",
                                    .outputs = "output: T",
                                    .flags = WEIR_OP_NO_GRADIENT,
                                    .infer_shape = draw_v1_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = draw_cpu)},
                                   {.name = "DrawBoundingBoxesV2",
                                    .summary = "Draws frames over images, in colours of choice",
                                    .attrs = DRAW_ATTRS,
                                    .inputs = "images: T; boxes: float; colors: float",
                                    .outputs = "output: T",
                                    .infer_shape = draw_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = draw_cpu)},
                                   {0}}};
