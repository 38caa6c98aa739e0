// resize_bilinear.c — ResizeBilinear and ResizeBilinearGrad: images resized by interpolating
// between four pixels.
#include <math.h>

#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/cast.h"

// Between which two elements of an axis one element of the resized axis lies.
typedef struct spot_t {
  int64_t lower, upper;
  float weight;  // of |upper|; the rest is that of |lower|
} spot_t;

typedef struct resize_t {
  bool is_aligned;       // align_corners
  bool has_half_pixels;  // half_pixel_centers
  int64_t batch, channels;
  int64_t image_h, image_w;      // the original
  int64_t out_h, out_w;          // the resized
  spot_t *rows, *columns;        // owned: of |out_h| and |out_w| elements
  int64_t *row_begin, *row_end;  // owned; gradient: the resized rows that touch each original one
  const float* src;
  void* dst;
} resize_t;

// ---- shapes and gradient ----
static weir_status_t* resize_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *images, *size, *sizes;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &images));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &size));
  if (weir_shape_dim(size, 0) >= 0 && weir_shape_dim(size, 0) != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension must be 2 but is %lld",
                       (long long)weir_shape_dim(size, 0));
  }
  int64_t dims[4] = {weir_shape_dim(images, 0), -1, -1, weir_shape_dim(images, 3)};
  WEIR_TRY(weir_shape_from_value(ctx, 1, &sizes));
  if (sizes->rank == 2) {
    dims[1] = weir_shape_dim(sizes, 0);
    dims[2] = weir_shape_dim(sizes, 1);
  }
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

static weir_status_t* resize_grad_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 1));
}

static weir_status_t* resize_grad(weir_grad_ctx_t* g) {
  weir_edge_t images = weir_grad_input(g, 0);
  weir_dtype_t dtype = weir_grad_dtype(g, images);
  if (!weir_dtype_is_floating(dtype)) return weir_grad_set(g, 0, WEIR_NO_EDGE);
  weir_attrs_t attrs = weir_grad_attrs(g);
  return weir_grad_set(
      g, 0,
      weir_grad_node_with(
          g, "ResizeBilinearGrad", WEIR_EDGES(weir_grad_dy(g, 0), images),
          WEIR_ATTRS(
              weir_attr_bool("align_corners", weir_attrs_bool(attrs, "align_corners")),
              weir_attr_bool("half_pixel_centers", weir_attrs_bool(attrs, "half_pixel_centers")))));
}

// ---- geometry ----
typedef struct options_t {
  bool is_aligned, has_half_pixels;
} options_t;

static weir_status_t* resize_init(const weir_kernel_init_t* init, void* state) {
  options_t* options = state;
  options->is_aligned = weir_attrs_bool(init->node->attrs, "align_corners");
  options->has_half_pixels = weir_attrs_bool(init->node->attrs, "half_pixel_centers");
  if (!options->is_aligned || !options->has_half_pixels) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "If half_pixel_centers is True, align_corners must be False.");
}

static float axis_scale(const resize_t* r, int64_t in, int64_t out) {
  return r->is_aligned && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

static void fill_spots(const resize_t* r, int64_t in, int64_t out, spot_t* spots) {
  const float scale = axis_scale(r, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float at = r->has_half_pixels ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
    float floor_at = floorf(at);
    spots[i].upper = WEIR_MIN((int64_t)ceilf(at), in - 1);
    spots[i].lower = WEIR_MIN(WEIR_MAX((int64_t)floor_at, 0), spots[i].upper);
    spots[i].weight = at - floor_at;
  }
}

// The last element read must be an int32, as in TensorFlow.
static weir_status_t* check_sizes(const resize_t* r) {
  float last_h = ceilf((float)(r->out_h - 1) * axis_scale(r, r->image_h, r->out_h));
  float last_w = ceilf((float)(r->out_w - 1) * axis_scale(r, r->image_w, r->out_w));
  if (last_h <= 2147483647.0f && last_w <= 2147483647.0f) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "input image scales would be too large for resizer");
}

static weir_status_t* make_spots(resize_t* r) {
  r->rows = weir_alloc_array((size_t)r->out_h, sizeof(spot_t));
  r->columns = weir_alloc_array((size_t)r->out_w, sizeof(spot_t));
  if (!r->rows || !r->columns) return weir_out_of_memory();
  fill_spots(r, r->image_h, r->out_h, r->rows);
  fill_spots(r, r->image_w, r->out_w, r->columns);
  return NULL;
}

static void resize_free(resize_t* r) {
  weir_free(r->rows);
  weir_free(r->columns);
  weir_free(r->row_begin);
  weir_free(r->row_end);
}

static resize_t make_resize(const weir_kernel_ctx_t* ctx) {
  const options_t* options = ctx->state;
  return (resize_t){.is_aligned = options->is_aligned, .has_half_pixels = options->has_half_pixels};
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

static void cast_to_floats(weir_pool_t* pool, const weir_tensor_t* t, float* dst) {
  cast_t c = {.from = weir_tensor_type(t),
              .size = weir_dtype_size(weir_tensor_type(t)),
              .src = t->data,
              .dst = dst};
  weir_pool_for(pool, t->count, 0.5, cast_range, &c);
}

// The elements of |t| as floats; |*out_scratch| owns them when they are not |t|'s own.
static weir_status_t* as_floats(weir_kernel_ctx_t* ctx, const weir_tensor_t* t,
                                weir_tensor_t** out_scratch, const float** out_data) {
  if (t->dtype == WEIR_DTYPE_FLOAT) {
    *out_data = t->data;
    return NULL;
  }
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, t->count, out_scratch));
  cast_to_floats(weir_kernel_pool(ctx), t, (*out_scratch)->data);
  *out_data = (*out_scratch)->data;
  return NULL;
}

// ---- ResizeBilinear ----
static void blend_row(const resize_t* r, const float* top, const float* bottom, float weight,
                      float* restrict out) {
  const int64_t channels = r->channels;
  for (int64_t x = 0; x < r->out_w; ++x, out += channels) {
    const float wx = r->columns[x].weight;
    const int64_t left = r->columns[x].lower * channels, right = r->columns[x].upper * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float above = top[left + c] + (top[right + c] - top[left + c]) * wx;
      float below = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * wx;
      out[c] = above + (below - above) * weight;
    }
  }
}

static void resize_rows(void* arg, int64_t begin, int64_t end) {
  const resize_t* r = arg;
  const int64_t in_row = r->image_w * r->channels;
  for (int64_t i = begin; i < end; ++i) {
    const spot_t* spot = &r->rows[i % r->out_h];
    const float* image = r->src + i / r->out_h * r->image_h * in_row;
    blend_row(r, image + spot->lower * in_row, image + spot->upper * in_row, spot->weight,
              (float*)r->dst + i * r->out_w * r->channels);
  }
}

static weir_status_t* read_sizes(const weir_kernel_ctx_t* ctx, resize_t* r) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *size = weir_kernel_input(ctx, 1);
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
  r->batch = images->dims[0], r->channels = images->dims[3];
  r->image_h = images->dims[1], r->image_w = images->dims[2];
  r->out_h = weir_tensor_int_at(size, 0), r->out_w = weir_tensor_int_at(size, 1);
  if (r->out_h <= 0 || r->out_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "output dimensions must be positive");
  if (r->channels <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "image must have at least one channel");
  if (r->image_h <= 0 || r->image_w <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "input image must be of non-zero size");
  if (r->image_h > INT32_MAX || r->image_w > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "input sizes must be between 0 and max int32");
  return check_sizes(r);
}

static weir_status_t* resize_cpu(weir_kernel_ctx_t* ctx) {
  resize_t r = make_resize(ctx);
  weir_tensor_t *out, *scratch = NULL;
  WEIR_TRY(read_sizes(ctx, &r));
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, (int64_t[]){r.batch, r.out_h, r.out_w, r.channels}, &out));
  if (out->count == 0) return NULL;
  if (r.image_h == r.out_h && r.image_w == r.out_w) {  // a conversion, at any alignment
    cast_to_floats(weir_kernel_pool(ctx), images, out->data);
    return NULL;
  }
  weir_status_t* status = make_spots(&r);
  if (!status) status = as_floats(ctx, images, &scratch, &r.src);
  if (status) goto done;
  r.dst = out->data;
  weir_pool_for(weir_kernel_pool(ctx), r.batch * r.out_h, (double)(r.out_w * r.channels) * 1.5,
                resize_rows, &r);
done:
  weir_tensor_release(scratch);
  resize_free(&r);
  return status;
}

// ---- ResizeBilinearGrad ----
// The resized rows whose lower or upper row is |i| are neighbours, since spots never decrease. A
// task owns original rows, so that nobody else adds to them and the order of sums is fixed.
static weir_status_t* make_row_ranges(resize_t* r) {
  r->row_begin = weir_alloc_array((size_t)r->image_h, sizeof(int64_t));
  r->row_end = weir_alloc_array((size_t)r->image_h, sizeof(int64_t));
  if (!r->row_begin || !r->row_end) return weir_out_of_memory();
  int64_t begin = 0, end = 0;
  for (int64_t i = 0; i < r->image_h; ++i) {
    while (begin < r->out_h && r->rows[begin].upper < i) ++begin;
    while (end < r->out_h && r->rows[end].lower <= i) ++end;
    r->row_begin[i] = begin;
    r->row_end[i] = WEIR_MAX(end, begin);
  }
  return NULL;
}

#define T float
#define NAME(x) x##_float
#include "ops/image/resize_bilinear_grad.inc"
#define T double
#define NAME(x) x##_double
#include "ops/image/resize_bilinear_grad.inc"

static weir_status_t* read_grad_sizes(const weir_kernel_ctx_t* ctx, resize_t* r) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *image = weir_kernel_input(ctx, 1);
  if (dy->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "input_grad must be 4-dimensional");
  if (image->rank != 4)
    return WEIR_STATUS(INVALID_ARGUMENT, "original_image must be 4-dimensional");
  r->batch = dy->dims[0], r->channels = dy->dims[3];
  r->out_h = dy->dims[1], r->out_w = dy->dims[2];
  r->image_h = image->dims[1], r->image_w = image->dims[2];
  if (r->image_h > INT32_MAX || r->image_w > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "original sizes must be between 0 and max int32");
  if (r->out_h <= 0 || r->out_w <= 0 || r->image_h <= 0 || r->image_w <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "resized and original images must be of non-zero size");
  }
  return NULL;
}

// Sums in float for the narrow types, as TensorFlow.
static weir_status_t* sum_rows(weir_kernel_ctx_t* ctx, resize_t* r, weir_tensor_t* out) {
  weir_dtype_t dtype = weir_tensor_type(out);
  const bool is_narrow = dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16;
  weir_tensor_t* scratch = NULL;
  if (is_narrow) WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, out->count, &scratch));
  r->dst = is_narrow ? scratch->data : out->data;
  double resized_rows = (double)r->out_h / (double)r->image_h;
  double cost_ns = (double)(r->out_w * r->channels) * 2.0 * (resized_rows + 1.0);
  weir_pool_for(weir_kernel_pool(ctx), r->batch * r->image_h, cost_ns,
                dtype == WEIR_DTYPE_DOUBLE ? grad_rows_double : grad_rows_float, r);
  weir_status_t* status =
      is_narrow ? weir_cast_elements(dtype, out->data, WEIR_DTYPE_FLOAT, scratch->data, out->count)
                : NULL;
  weir_tensor_release(scratch);
  return status;
}

static weir_status_t* resize_grad_cpu(weir_kernel_ctx_t* ctx) {
  resize_t r = make_resize(ctx);
  weir_tensor_t* out;
  WEIR_TRY(read_grad_sizes(ctx, &r));
  WEIR_TRY(
      weir_kernel_output(ctx, 0, 4, (int64_t[]){r.batch, r.image_h, r.image_w, r.channels}, &out));
  if (out->count == 0) return NULL;
  r.src = weir_kernel_input(ctx, 0)->data;
  weir_status_t* status = make_spots(&r);
  if (!status) status = make_row_ranges(&r);
  if (!status) status = sum_rows(ctx, &r, out);
  resize_free(&r);
  return status;
}

#define RESIZE_ATTRS "align_corners: bool = false; half_pixel_centers: bool = false"

const weir_op_module_t weir_ops_image_resize_bilinear = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ResizeBilinear",
         .summary = "Resizes images by interpolating between neighbouring pixels",
         .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, "
                  "bfloat16}; " RESIZE_ATTRS,
         .inputs = "images: T; size: int32",
         .outputs = "resized_images: float",
         .infer_shape = resize_shape,
         .build_grad = resize_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = resize_cpu, .init = resize_init,
                                    .state_size = sizeof(options_t), .host_inputs = "size")},
        {.name = "ResizeBilinearGrad",
         .summary = "Gradient of ResizeBilinear by its images",
         .attrs = "T: {float, bfloat16, half, double}; " RESIZE_ATTRS,
         .inputs = "grads: float; original_image: T",
         .outputs = "output: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = resize_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = resize_grad_cpu, .init = resize_init,
                                    .state_size = sizeof(options_t))},
        {0}}};
