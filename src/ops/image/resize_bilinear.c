// resize_bilinear.c — ResizeBilinear and ResizeBilinearGrad: images resized by interpolating
// between four pixels.
#include <math.h>

#include "ops/image/cuda_resize.h"
#include "tensor/cast.h"

// Between which two elements of an axis one element of the resized axis lies.
typedef struct spot_t {
  int64_t lower, upper;
  float weight;  // of |upper|; the rest is that of |lower|
} spot_t;

typedef struct resize_t {
  weir_resize_sizes_t s;
  spot_t *rows, *columns;        // owned: of |out_h| and |out_w| elements
  int64_t *row_begin, *row_end;  // owned; gradient: the resized rows that touch each original one
  const float* src;
  void* dst;
} resize_t;

static weir_status_t* resize_grad(weir_grad_ctx_t* g) {
  weir_dtype_t dtype = weir_grad_dtype(g, weir_grad_input(g, 0));
  if (!weir_dtype_is_floating(dtype)) return weir_grad_set(g, 0, WEIR_NO_EDGE);
  return weir_resize_grad(g, "ResizeBilinearGrad");
}

// ---- geometry ----
static void fill_spots(const resize_t* r, int64_t in, int64_t out, spot_t* spots) {
  const float scale = weir_resize_scale(&r->s.options, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float at = r->s.options.has_half_pixels ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
    float floor_at = floorf(at);
    spots[i].upper = WEIR_MIN((int64_t)ceilf(at), in - 1);
    spots[i].lower = WEIR_MIN(WEIR_MAX((int64_t)floor_at, 0), spots[i].upper);
    spots[i].weight = at - floor_at;
  }
}

static weir_status_t* make_spots(resize_t* r) {
  r->rows = weir_alloc_array((size_t)r->s.out_h, sizeof(spot_t));
  r->columns = weir_alloc_array((size_t)r->s.out_w, sizeof(spot_t));
  if (!r->rows || !r->columns) return weir_out_of_memory();
  fill_spots(r, r->s.image_h, r->s.out_h, r->rows);
  fill_spots(r, r->s.image_w, r->s.out_w, r->columns);
  return NULL;
}

static void resize_free(resize_t* r) {
  weir_free(r->rows);
  weir_free(r->columns);
  weir_free(r->row_begin);
  weir_free(r->row_end);
}

// ---- ResizeBilinear ----
// The pixels of a row from |first| on.
static void blend_row(const resize_t* r, const float* top, const float* bottom, float weight,
                      int64_t first, float* restrict out) {
  const int64_t channels = r->s.channels;
  out += first * channels;
  for (int64_t x = first; x < r->s.out_w; ++x, out += channels) {
    const float wx = r->columns[x].weight;
    const int64_t left = r->columns[x].lower * channels, right = r->columns[x].upper * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float above = top[left + c] + (top[right + c] - top[left + c]) * wx;
      float below = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * wx;
      out[c] = above + (below - above) * weight;
    }
  }
}

// Pixels of three channels, as four numbers each: the fourth is the next pixel's first, and is
// written over by it. The last ones, which nothing follows, are left to others. Returns how many
// were made.
typedef float four_t __attribute__((vector_size(16)));
WEIR_INLINE four_t load_four(const float* from) {
  four_t value;
  memcpy(&value, from, sizeof(value));
  return value;
}

static int64_t blend_colours(const resize_t* r, const float* top, const float* bottom, float weight,
                             float* restrict out) {
  const int64_t limit = (r->s.image_w - 1) * 3;  // of what is read as four
  int64_t x = 0;
  for (; x < r->s.out_w - 1; ++x) {
    const float wx = r->columns[x].weight;
    const int64_t left = r->columns[x].lower * 3, right = r->columns[x].upper * 3;
    if (right >= limit) break;
    const four_t above_left = load_four(top + left), below_left = load_four(bottom + left);
    const four_t above = above_left + (load_four(top + right) - above_left) * wx;
    const four_t below = below_left + (load_four(bottom + right) - below_left) * wx;
    const four_t value = above + (below - above) * weight;
    memcpy(out + x * 3, &value, sizeof(value));
  }
  return x;
}

static void resize_row(const resize_t* r, const float* top, const float* bottom, float weight,
                       float* restrict out) {
  const int64_t done = r->s.channels == 3 ? blend_colours(r, top, bottom, weight, out) : 0;
  blend_row(r, top, bottom, weight, done, out);
}

static void resize_rows(void* arg, int64_t begin, int64_t end) {
  const resize_t* r = arg;
  const int64_t in_row = r->s.image_w * r->s.channels;
  for (int64_t i = begin; i < end; ++i) {
    const spot_t* spot = &r->rows[i % r->s.out_h];
    const float* image = r->src + i / r->s.out_h * r->s.image_h * in_row;
    resize_row(r, image + spot->lower * in_row, image + spot->upper * in_row, spot->weight,
               (float*)r->dst + i * r->s.out_w * r->s.channels);
  }
}

static weir_status_t* resize_cpu(weir_kernel_ctx_t* ctx) {
  resize_t r = {0};
  weir_tensor_t *out, *scratch = NULL;
  WEIR_TRY(weir_resize_read(ctx, &r.s));
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, (int64_t[]){r.s.batch, r.s.out_h, r.s.out_w, r.s.channels},
                              &out));
  if (out->count == 0) return NULL;
  if (r.s.image_h == r.s.out_h && r.s.image_w == r.s.out_w) {  // a conversion, at any alignment
    weir_resize_to_floats(weir_kernel_pool(ctx), images, out->data);
    return NULL;
  }
  weir_status_t* status = make_spots(&r);
  if (!status) status = weir_resize_as_floats(ctx, images, &scratch, &r.src);
  if (status) goto done;
  r.dst = out->data;
  weir_pool_for(weir_kernel_pool(ctx), r.s.batch * r.s.out_h,
                (double)(r.s.out_w * r.s.channels) * 1.5, resize_rows, &r);
done:
  weir_tensor_release(scratch);
  resize_free(&r);
  return status;
}

// ---- ResizeBilinearGrad ----
// The resized rows whose lower or upper row is |i| are neighbours, since spots never decrease. A
// task owns original rows, so that nobody else adds to them and the order of sums is fixed.
static weir_status_t* make_row_ranges(resize_t* r) {
  r->row_begin = weir_alloc_array((size_t)r->s.image_h, sizeof(int64_t));
  r->row_end = weir_alloc_array((size_t)r->s.image_h, sizeof(int64_t));
  if (!r->row_begin || !r->row_end) return weir_out_of_memory();
  int64_t begin = 0, end = 0;
  for (int64_t i = 0; i < r->s.image_h; ++i) {
    while (begin < r->s.out_h && r->rows[begin].upper < i) ++begin;
    while (end < r->s.out_h && r->rows[end].lower <= i) ++end;
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

// Sums in float for the narrow types, as TensorFlow.
static weir_status_t* sum_rows(weir_kernel_ctx_t* ctx, resize_t* r, weir_tensor_t* out) {
  weir_dtype_t dtype = weir_tensor_type(out);
  const bool is_narrow = dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16;
  weir_tensor_t* scratch = NULL;
  if (is_narrow) WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, out->count, &scratch));
  r->dst = is_narrow ? scratch->data : out->data;
  double resized_rows = (double)r->s.out_h / (double)r->s.image_h;
  double cost_ns = (double)(r->s.out_w * r->s.channels) * 2.0 * (resized_rows + 1.0);
  weir_pool_for(weir_kernel_pool(ctx), r->s.batch * r->s.image_h, cost_ns,
                dtype == WEIR_DTYPE_DOUBLE ? grad_rows_double : grad_rows_float, r);
  weir_status_t* status =
      is_narrow ? weir_cast_elements(dtype, out->data, WEIR_DTYPE_FLOAT, scratch->data, out->count)
                : NULL;
  weir_tensor_release(scratch);
  return status;
}

static weir_status_t* resize_grad_cpu(weir_kernel_ctx_t* ctx) {
  resize_t r = {0};
  weir_tensor_t* out;
  WEIR_TRY(weir_resize_read_grad(ctx, &r.s));
  WEIR_TRY(weir_kernel_output(
      ctx, 0, 4, (int64_t[]){r.s.batch, r.s.image_h, r.s.image_w, r.s.channels}, &out));
  if (out->count == 0) return NULL;
  r.src = weir_kernel_input(ctx, 0)->data;
  weir_status_t* status = make_spots(&r);
  if (!status) status = make_row_ranges(&r);
  if (!status) status = sum_rows(ctx, &r, out);
  resize_free(&r);
  return status;
}

// ---- GPU ----
static weir_status_t* resize_gpu_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(weir_resize_init(init, state));
  return weir_cuda_resize_find(init, "bilinear", init->node->input_types[0], state);
}

static weir_status_t* resize_grad_gpu_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(weir_resize_init(init, state));
  return weir_cuda_resize_find(init, "bilinear_grad", init->node->output_types[0], state);
}

static weir_status_t* resize_gpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s;
  weir_tensor_t* out;
  WEIR_TRY(weir_resize_read(ctx, &s));
  const int64_t dims[4] = {s.batch, s.out_h, s.out_w, s.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  return weir_cuda_resize_run(ctx, &s, weir_kernel_input(ctx, 0), out);
}

static weir_status_t* resize_grad_gpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s;
  weir_tensor_t* out;
  WEIR_TRY(weir_resize_read_grad(ctx, &s));
  const int64_t dims[4] = {s.batch, s.image_h, s.image_w, s.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  return weir_cuda_resize_run(ctx, &s, weir_kernel_input(ctx, 0), out);
}

#define KERNELS(NAME, host)                                             \
  (const weir_kernel_def_t[]) {                                         \
    {WEIR_DEVICE_CPU, .compute = NAME##_cpu, .init = weir_resize_init,  \
     .state_size = sizeof(weir_resize_options_t), .host_inputs = host}, \
        {WEIR_DEVICE_GPU,                                               \
         .types = "T: bfloat16, half, float, double",                   \
         .compute = NAME##_gpu,                                         \
         .init = NAME##_gpu_init,                                       \
         .state_size = sizeof(weir_cuda_resize_t),                      \
         .host_inputs = host},                                          \
    {                                                                   \
      0                                                                 \
    }                                                                   \
  }

const weir_op_module_t weir_ops_image_resize_bilinear = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ResizeBilinear",
         .summary = "Resizes images by interpolating between neighbouring pixels",
         .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, "
                  "bfloat16}; " WEIR_RESIZE_ATTRS,
         .inputs = "images: T; size: int32",
         .outputs = "resized_images: float",
         .infer_shape = weir_resize_shape,
         .build_grad = resize_grad,
         .kernels = KERNELS(resize, "size")},
        {.name = "ResizeBilinearGrad",
         .summary = "Gradient of ResizeBilinear by its images",
         .attrs = "T: {float, bfloat16, half, double}; " WEIR_RESIZE_ATTRS,
         .inputs = "grads: float; original_image: T",
         .outputs = "output: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = weir_resize_grad_shape,
         .kernels = KERNELS(resize_grad, NULL)},
        {0}}};
