// image_projective_transform.c — ImageProjectiveTransformV2 and V3: images seen through a
// projection.
#include <math.h>

#include "ops/image/resize.h"
#include "tensor/cast.h"

typedef enum fill_t { MODE_CONSTANT, MODE_NEAREST, MODE_REFLECT, MODE_WRAP, MODE_COUNT } fill_t;

typedef struct options_t {
  bool is_bilinear;
  fill_t mode;
} options_t;

typedef struct projection_t {
  options_t options;
  int64_t batch, channels, image_h, image_w, out_h, out_w;
  const float* transforms;   // eight numbers each
  int64_t transform_stride;  // from image to image: 8, or 0 where all share one
  size_t pixel_size;         // bytes of a pixel of the images' type
  const char* src;           // of that type
  char* dst;
  const char* fill;     // a pixel of it
  const float* floats;  // bilinear: the images
  float* blended;       // and the result
  float fill_value;     // as a number of that type
} projection_t;

static weir_status_t* options_init(const weir_kernel_init_t* init, void* state) {
  static const char* const kModes[MODE_COUNT] = {"CONSTANT", "NEAREST", "REFLECT", "WRAP"};
  options_t* options = state;
  const weir_view_t interpolation = weir_attrs_string(init->node->attrs, "interpolation");
  const weir_view_t mode = weir_attrs_string(init->node->attrs, "fill_mode");
  options->is_bilinear = weir_view_is(interpolation, "BILINEAR");
  if (!options->is_bilinear && !weir_view_is(interpolation, "NEAREST")) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid interpolation %.*s. Supported types: NEAREST, BILINEAR",
                       WEIR_VIEW_ARG(interpolation));
  }
  for (int i = 0; i < MODE_COUNT; ++i) {
    if (!weir_view_is(mode, kModes[i])) continue;
    options->mode = (fill_t)i;
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Invalid mode %.*s. Supported types: REFLECT, WRAP, CONSTANT, NEAREST",
                     WEIR_VIEW_ARG(mode));
}

// ---- geometry ----
static float clamp(float at, int64_t size) { return fminf(fmaxf(at, 0), (float)(size - 1)); }

// [abcd] goes on as [dcba|abcd|dcba].
static float reflect(float at, int64_t size) {
  const int64_t twice = 2 * size;
  if (at < 0) {
    at = (float)(twice * (int64_t)(-at / (float)twice)) + at;
    at = at < (float)-size ? at + (float)twice : -at - 1;
  } else if (at > (float)(size - 1)) {
    at -= (float)(twice * (int64_t)(at / (float)twice));
    if (at >= (float)size) at = (float)twice - at - 1;
  }
  return clamp(at, size);
}

// [abcd] goes on as [abcd|abcd|abcd].
static float wrap(float at, int64_t size) {
  const float steps = (float)(size - 1);
  if (at < 0) {
    at += (float)(size * ((int64_t)(-at / steps) + 1));
  } else if (at > steps) {
    at -= (float)(size * (int64_t)(at / steps));
  }
  return clamp(at, size);
}

// A place on an axis of |size| elements for any place, which is inside but for CONSTANT.
static float map_place(fill_t mode, float at, int64_t size) {
  if (mode == MODE_CONSTANT) return at;
  if (mode == MODE_NEAREST) return clamp(at, size);
  if (size <= 1) return 0;
  return mode == MODE_REFLECT ? reflect(at, size) : wrap(at, size);
}

// Where output pixel (x, y) is seen from; false: so far away that there is nothing.
static bool find_place(const projection_t* p, const float* t, int64_t x, int64_t y, float* out_x,
                       float* out_y) {
  const float fx = (float)x, fy = (float)y, limit = 1e15f;
  const float depth = t[6] * fx + t[7] * fy + 1.0f;
  const float at_x = (t[0] * fx + t[1] * fy + t[2]) / depth;
  const float at_y = (t[3] * fx + t[4] * fy + t[5]) / depth;
  if (depth == 0 || !(fabsf(at_x) < limit && fabsf(at_y) < limit)) return false;
  *out_x = map_place(p->options.mode, at_x, p->image_w);
  *out_y = map_place(p->options.mode, at_y, p->image_h);
  return true;
}

static bool is_inside(const projection_t* p, int64_t y, int64_t x) {
  return y >= 0 && y < p->image_h && x >= 0 && x < p->image_w;
}

// ---- pixels ----
static void nearest_rows(void* arg, int64_t begin, int64_t end) {
  const projection_t* p = arg;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t image = i / p->out_h, y = i % p->out_h;
    const float* transform = p->transforms + image * p->transform_stride;
    char* dst = p->dst + (size_t)(i * p->out_w) * p->pixel_size;
    for (int64_t x = 0; x < p->out_w; ++x, dst += p->pixel_size) {
      const char* src = p->fill;
      float at_x = -1, at_y = -1;
      const bool is_near = find_place(p, transform, x, y, &at_x, &at_y);
      const int64_t row = (int64_t)roundf(at_y), column = (int64_t)roundf(at_x);
      if (is_near && is_inside(p, row, column)) {
        const int64_t pixel = (image * p->image_h + row) * p->image_w + column;
        src = p->src + (size_t)pixel * p->pixel_size;
      }
      memcpy(dst, src, p->pixel_size);
    }
  }
}

// The value of channel |c| at a pixel that may be outside.
static float value_at(const projection_t* p, int64_t image, int64_t y, int64_t x, int64_t c) {
  if (!is_inside(p, y, x)) return p->fill_value;
  return p->floats[((image * p->image_h + y) * p->image_w + x) * p->channels + c];
}

static void blend_pixel(const projection_t* p, int64_t image, float at_y, float at_x, float* out) {
  const float low_y = floorf(at_y), low_x = floorf(at_x);
  const int64_t y = (int64_t)low_y, x = (int64_t)low_x;
  const float right = at_x - low_x, left = low_x + 1 - at_x;
  const float below = at_y - low_y, above = low_y + 1 - at_y;
  for (int64_t c = 0; c < p->channels; ++c) {
    const float upper =
        left * value_at(p, image, y, x, c) + right * value_at(p, image, y, x + 1, c);
    const float lower =
        left * value_at(p, image, y + 1, x, c) + right * value_at(p, image, y + 1, x + 1, c);
    out[c] = above * upper + below * lower;
  }
}

static void bilinear_rows(void* arg, int64_t begin, int64_t end) {
  const projection_t* p = arg;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t image = i / p->out_h, y = i % p->out_h;
    const float* transform = p->transforms + image * p->transform_stride;
    float* out = p->blended + i * p->out_w * p->channels;
    for (int64_t x = 0; x < p->out_w; ++x, out += p->channels) {
      float at_x, at_y;
      if (find_place(p, transform, x, y, &at_x, &at_y)) {
        blend_pixel(p, image, at_y, at_x, out);
      } else {
        for (int64_t c = 0; c < p->channels; ++c) out[c] = p->fill_value;
      }
    }
  }
}

// ---- kernel ----
static weir_status_t* read_inputs(const weir_kernel_ctx_t* ctx, projection_t* p) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *transforms = weir_kernel_input(ctx, 1),
                      *size = weir_kernel_input(ctx, 2);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (images->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "Input images must have rank 4");
  p->batch = images->dims[0], p->channels = images->dims[3];
  p->image_h = images->dims[1], p->image_w = images->dims[2];
  if (transforms->rank != 2 || transforms->dims[1] != 8 ||
      (transforms->dims[0] != p->batch && transforms->dims[0] != 1)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input transform should be num_images x 8 or 1 x 8");
  }
  p->transforms = transforms->data;
  p->transform_stride = transforms->dims[0] == 1 ? 0 : 8;
  if (size->rank != 1 || size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "output shape must %s%s",
                       size->rank != 1 ? "be 1-dimensional" : "have two elements",
                       weir_tensor_shape_text(size, text));
  }
  p->out_h = weir_tensor_int_at(size, 0), p->out_w = weir_tensor_int_at(size, 1);
  if (p->out_h <= 0 || p->out_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "output dimensions must be positive");
  if (ctx->input_count > 3 && weir_kernel_input(ctx, 3)->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "fill_value must be a scalar%s",
                       weir_tensor_shape_text(weir_kernel_input(ctx, 3), text));
  }
  return NULL;
}

// |fill| as a pixel of the images' type, and as the number that it is there.
static weir_status_t* make_fill(weir_kernel_ctx_t* ctx, projection_t* p, weir_tensor_t** out_fill) {
  const weir_dtype_t dtype = weir_tensor_type(weir_kernel_input(ctx, 0));
  const float fill = ctx->input_count > 3 ? *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 3), float) : 0;
  const size_t size = weir_dtype_size(dtype);
  WEIR_TRY(weir_kernel_scratch(ctx, dtype, p->channels, out_fill));
  char* data = (*out_fill)->data;
  for (int64_t c = 0; c < p->channels; ++c) {
    WEIR_TRY(weir_cast_elements(dtype, data + (size_t)c * size, WEIR_DTYPE_FLOAT, &fill, 1));
  }
  p->fill = data;
  p->pixel_size = (size_t)p->channels * size;
  return weir_cast_elements(WEIR_DTYPE_FLOAT, &p->fill_value, dtype, data, 1);
}

static weir_status_t* blend(weir_kernel_ctx_t* ctx, projection_t* p, weir_tensor_t* out) {
  weir_tensor_t *images = NULL, *blended = NULL;
  const weir_dtype_t dtype = weir_tensor_type(out);
  weir_status_t* status =
      weir_resize_as_floats(ctx, weir_kernel_input(ctx, 0), &images, &p->floats);
  if (!status && dtype != WEIR_DTYPE_FLOAT)
    status = weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, out->count, &blended);
  if (!status) {
    p->blended = blended ? blended->data : out->data;
    weir_pool_for(weir_kernel_pool(ctx), p->batch * p->out_h,
                  (double)p->out_w * (10.0 + 6.0 * (double)p->channels), bilinear_rows, p);
  }
  if (!status && blended)
    status = weir_cast_elements(dtype, out->data, WEIR_DTYPE_FLOAT, p->blended, out->count);
  weir_tensor_release(images);
  weir_tensor_release(blended);
  return status;
}

static weir_status_t* project_cpu(weir_kernel_ctx_t* ctx) {
  const options_t* options = ctx->state;
  projection_t p = {.options = *options};
  weir_tensor_t *out = NULL, *fill = NULL;
  WEIR_TRY(read_inputs(ctx, &p));
  const int64_t dims[4] = {p.batch, p.out_h, p.out_w, p.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (out->count == 0) return NULL;
  weir_status_t* status = make_fill(ctx, &p, &fill);
  if (!status && options->is_bilinear) {
    status = blend(ctx, &p, out);
  } else if (!status) {
    p.src = weir_kernel_input(ctx, 0)->data;
    p.dst = out->data;
    weir_pool_for(weir_kernel_pool(ctx), p.batch * p.out_h, (double)p.out_w * 10.0, nearest_rows,
                  &p);
  }
  weir_tensor_release(fill);
  return status;
}

// ---- shape and gradient ----
static weir_status_t* project_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* images;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &images));
  return weir_resize_set_shape(ctx, weir_shape_dim(images, 0), 2, weir_shape_dim(images, 3));
}

static weir_edge_t slice(weir_grad_ctx_t* g, weir_edge_t t, const int32_t* begin,
                         const int32_t* size, int rank) {
  return weir_grad_node(g, "Slice",
                        WEIR_EDGES(t, weir_build_int32s(g->builder, begin, rank),
                                   weir_build_int32s(g->builder, size, rank)));
}

static weir_edge_t reshape(weir_grad_ctx_t* g, weir_edge_t t, const int32_t* dims, int rank) {
  return weir_grad_node(g, "Reshape", WEIR_EDGES(t, weir_build_int32s(g->builder, dims, rank)));
}

// The eight numbers of the way back: those of the inverse matrix, whose ninth is made 1.
static weir_edge_t invert(weir_grad_ctx_t* g, weir_edge_t transforms) {
  weir_edge_t sides = weir_build_int32s(g->builder, (int32_t[]){0, 0, 0, 1}, 4);
  weir_edge_t nine = weir_grad_node(g, "PadV2",
                                    WEIR_EDGES(transforms, reshape(g, sides, (int32_t[]){2, 2}, 2),
                                               weir_grad_scalar(g, transforms, 1)));
  weir_edge_t matrices = reshape(g, nine, (int32_t[]){-1, 3, 3}, 3);
  weir_edge_t back =
      reshape(g, weir_grad_node(g, "MatrixInverse", WEIR_EDGES(matrices)), (int32_t[]){-1, 9}, 2);
  weir_edge_t last = slice(g, back, (int32_t[]){0, 8}, (int32_t[]){-1, 1}, 2);
  weir_edge_t scaled = weir_grad_node(g, "RealDiv", WEIR_EDGES(back, last));
  return slice(g, scaled, (int32_t[]){0, 0}, (int32_t[]){-1, 8}, 2);
}

// TensorFlow's, which sends the gradient back through the inverse projection.
static weir_status_t* project_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  weir_edge_t size = slice(g, shape, (int32_t[]){1}, (int32_t[]){2}, 1);
  weir_edge_t back = invert(g, weir_grad_input(g, 1)), dy = weir_grad_dy(g, 0), dx;
  const char* const* names = WEIR_NAMES("interpolation", "fill_mode");
  if (g->node->input_count > 3) {
    weir_edge_t zero = weir_grad_scalar(g, weir_grad_input(g, 1), 0);
    dx = weir_grad_node_like(g, "ImageProjectiveTransformV3", WEIR_EDGES(dy, back, size, zero),
                             names);
  } else {
    dx = weir_grad_node_like(g, "ImageProjectiveTransformV2", WEIR_EDGES(dy, back, size), names);
  }
  return weir_grad_set(g, 0, dx);
}

#define PROJECT_ATTRS                                             \
  "dtype: {uint8, int32, int64, half, bfloat16, float, double}; " \
  "interpolation: string; fill_mode: string = 'CONSTANT'"

const weir_op_module_t weir_ops_image_image_projective_transform = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ImageProjectiveTransformV2",
         .summary = "Images seen through a projection",
         .attrs = PROJECT_ATTRS,
         .inputs = "images: dtype; transforms: float; output_shape: int32",
         .outputs = "transformed_images: dtype",
         .infer_shape = project_shape,
         .build_grad = project_grad,
         .kernels =
             WEIR_CPU_KERNEL(.compute = project_cpu, .init = options_init,
                             .state_size = sizeof(options_t), .host_inputs = "output_shape")},
        {.name = "ImageProjectiveTransformV3",
         .summary = "Images seen through a projection, with a colour around them",
         .attrs = PROJECT_ATTRS,
         .inputs = "images: dtype; transforms: float; output_shape: int32; fill_value: float",
         .outputs = "transformed_images: dtype",
         .infer_shape = project_shape,
         .build_grad = project_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = project_cpu, .init = options_init,
                                    .state_size = sizeof(options_t),
                                    .host_inputs = "output_shape, fill_value")},
        {0}}};
