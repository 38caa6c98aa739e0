// resize_nearest_neighbor.c — ResizeNearestNeighbor and its gradient: images resized by repeating
// or leaving out pixels.
#include <math.h>

#include "kernel/elementwise/element_add.h"
#include "kernel/move/move.h"
#include "ops/image/cuda_resize.h"

typedef struct nearest_t {
  weir_resize_sizes_t s;
  int64_t *rows, *columns;    // owned: which original one each resized one is
  int64_t* row_begins;        // owned; gradient: the first resized row of each original one
  int64_t pixel_size;         // in bytes
  weir_element_add_fn_t add;  // gradient
  const char* src;
  char* dst;
} nearest_t;

// ---- geometry ----
static void fill_axis(const weir_resize_options_t* options, int64_t in, int64_t out,
                      int64_t* indices) {
  const float scale = weir_resize_scale(options, in, out);
  for (int64_t i = 0; i < out; ++i) {
    const float at = (options->has_half_pixels ? (float)i + 0.5f : (float)i) * scale;
    indices[i] = WEIR_MIN((int64_t)(options->is_aligned ? roundf(at) : floorf(at)), in - 1);
  }
}

static weir_status_t* make_axes(nearest_t* n) {
  n->rows = weir_alloc_array((size_t)n->s.out_h, sizeof(int64_t));
  n->columns = weir_alloc_array((size_t)n->s.out_w, sizeof(int64_t));
  if (!n->rows || !n->columns) return weir_out_of_memory();
  fill_axis(&n->s.options, n->s.image_h, n->s.out_h, n->rows);
  fill_axis(&n->s.options, n->s.image_w, n->s.out_w, n->columns);
  return NULL;
}

static void nearest_free(nearest_t* n) {
  weir_free(n->rows);
  weir_free(n->columns);
  weir_free(n->row_begins);
}

// ---- ResizeNearestNeighbor ----
static void nearest_rows(void* arg, int64_t begin, int64_t end) {
  const nearest_t* n = arg;
  const int64_t size = n->pixel_size;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = i / n->s.out_h * n->s.image_h + n->rows[i % n->s.out_h];
    const char* src = n->src + row * n->s.image_w * size;
    char* dst = n->dst + i * n->s.out_w * size;
    for (int64_t x = 0; x < n->s.out_w; ++x) {
      memcpy(dst + x * size, src + n->columns[x] * size, (size_t)size);
    }
  }
}

static weir_status_t* make_output(weir_kernel_ctx_t* ctx, weir_resize_sizes_t* s,
                                  weir_tensor_t** out) {
  WEIR_TRY(weir_resize_read(ctx, s));
  if (s->image_h >= 1 << 24 || s->image_w >= 1 << 24) {
    return WEIR_STATUS(INVALID_ARGUMENT, "nearest neighbor requires max height & width of 2^24");
  }
  const int64_t dims[4] = {s->batch, s->out_h, s->out_w, s->channels};
  return weir_kernel_output(ctx, 0, 4, dims, out);
}

static weir_status_t* nearest_cpu(weir_kernel_ctx_t* ctx) {
  nearest_t n = {0};
  weir_tensor_t* out = NULL;
  WEIR_TRY(make_output(ctx, &n.s, &out));
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  const weir_resize_sizes_t* s = &n.s;
  if (out->count == 0) return NULL;
  n.pixel_size = s->channels * (int64_t)weir_dtype_size(weir_tensor_type(images));
  n.src = images->data;
  n.dst = out->data;
  weir_status_t* status = make_axes(&n);
  if (!status) {
    weir_pool_for(weir_kernel_pool(ctx), s->batch * s->out_h,
                  (double)s->out_w * (2.0 + (double)n.pixel_size * 0.1), nearest_rows, &n);
  }
  nearest_free(&n);
  return status;
}

// ---- ResizeNearestNeighborGrad ----
// A task owns original rows; the resized ones of each are neighbours, in whose order all is added.
static weir_status_t* make_row_begins(nearest_t* n) {
  n->row_begins = weir_alloc_array((size_t)n->s.image_h + 1, sizeof(int64_t));
  if (!n->row_begins) return weir_out_of_memory();
  int64_t row = 0;
  for (int64_t i = 0; i <= n->s.image_h; ++i) {
    while (row < n->s.out_h && n->rows[row] < i) ++row;
    n->row_begins[i] = row;
  }
  return NULL;
}

static void nearest_grad_rows(void* arg, int64_t begin, int64_t end) {
  const nearest_t* n = arg;
  const int64_t size = n->pixel_size;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t y = i % n->s.image_h, first = i / n->s.image_h * n->s.out_h;
    char* dst = n->dst + i * n->s.image_w * size;
    memset(dst, 0, (size_t)(n->s.image_w * size));
    for (int64_t row = n->row_begins[y]; row < n->row_begins[y + 1]; ++row) {
      const char* src = n->src + (first + row) * n->s.out_w * size;
      for (int64_t x = 0; x < n->s.out_w; ++x) {
        n->add(dst + n->columns[x] * size, src + x * size, n->s.channels);
      }
    }
  }
}

// As TensorFlow, which refuses both at a time for the resizing alone.
static weir_status_t* nearest_grad_init(const weir_kernel_init_t* init, void* state) {
  weir_resize_options_t* options = state;
  options->is_aligned = weir_attrs_bool(init->node->attrs, "align_corners");
  options->has_half_pixels = weir_attrs_bool(init->node->attrs, "half_pixel_centers");
  return NULL;
}

static weir_status_t* read_grad_sizes(const weir_kernel_ctx_t* ctx, weir_resize_sizes_t* s) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *size = weir_kernel_input(ctx, 1);
  const weir_resize_options_t* options = ctx->state;
  WEIR_TRY(weir_resize_check_ranks(dy, size));
  *s = (weir_resize_sizes_t){.options = *options,
                             .batch = dy->dims[0],
                             .channels = dy->dims[3],
                             .image_h = weir_tensor_int_at(size, 0),
                             .image_w = weir_tensor_int_at(size, 1),
                             .out_h = dy->dims[1],
                             .out_w = dy->dims[2]};
  if (s->image_h > 0 && s->image_w > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "shape_t's elements must be positive");
}

static weir_status_t* make_grad_output(weir_kernel_ctx_t* ctx, weir_resize_sizes_t* s,
                                       weir_tensor_t** out) {
  WEIR_TRY(read_grad_sizes(ctx, s));
  const int64_t dims[4] = {s->batch, s->image_h, s->image_w, s->channels};
  return weir_kernel_output(ctx, 0, 4, dims, out);
}

static weir_status_t* nearest_grad_cpu(weir_kernel_ctx_t* ctx) {
  nearest_t n = {0};
  weir_tensor_t* out = NULL;
  WEIR_TRY(make_grad_output(ctx, &n.s, &out));
  const weir_tensor_t* dy = weir_kernel_input(ctx, 0);
  const weir_resize_sizes_t* s = &n.s;
  if (out->count == 0) return NULL;
  n.pixel_size = s->channels * (int64_t)weir_dtype_size(weir_tensor_type(dy));
  n.add = weir_element_add_fn(weir_tensor_type(dy));
  n.src = dy->data;
  n.dst = out->data;
  weir_status_t* status = make_axes(&n);
  if (!status) status = make_row_begins(&n);
  if (!status) {
    const double pixels =
        (double)s->image_w + (double)s->out_w * (double)s->out_h / (double)s->image_h;
    weir_pool_for(weir_kernel_pool(ctx), s->batch * s->image_h,
                  pixels * (3.0 + (double)s->channels * 0.5), nearest_grad_rows, &n);
  }
  nearest_free(&n);
  return status;
}

// ---- GPU ----
static weir_status_t* nearest_gpu_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(weir_resize_init(init, state));
  return weir_cuda_resize_find(init, "nearest", init->node->output_types[0], state);
}

static weir_status_t* nearest_grad_gpu_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(nearest_grad_init(init, state));
  return weir_cuda_resize_find(init, "nearest_grad", init->node->output_types[0], state);
}

static weir_status_t* nearest_gpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s;
  weir_tensor_t* out = NULL;
  WEIR_TRY(make_output(ctx, &s, &out));
  return weir_cuda_resize_run(ctx, &s, weir_kernel_input(ctx, 0), out);
}

static weir_status_t* nearest_grad_gpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s;
  weir_tensor_t* out = NULL;
  WEIR_TRY(make_grad_output(ctx, &s, &out));
  return weir_cuda_resize_run(ctx, &s, weir_kernel_input(ctx, 0), out);
}

#define KERNELS(NAME, init_)                                              \
  (const weir_kernel_def_t[]) {                                           \
    {WEIR_DEVICE_CPU, .compute = NAME##_cpu, .init = init_,               \
     .state_size = sizeof(weir_resize_options_t), .host_inputs = "size"}, \
        {WEIR_DEVICE_GPU,                                                 \
         .types = "T: bfloat16, half, float, double",                     \
         .compute = NAME##_gpu,                                           \
         .init = NAME##_gpu_init,                                         \
         .state_size = sizeof(weir_cuda_resize_t),                        \
         .host_inputs = "size"},                                          \
    {                                                                     \
      0                                                                   \
    }                                                                     \
  }

// dx = ResizeNearestNeighborGrad(dy, height and width of the images)
static weir_status_t* nearest_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  weir_edge_t size =
      weir_grad_node(g, "Slice",
                     WEIR_EDGES(shape, weir_build_int32s(g->builder, (int32_t[]){1}, 1),
                                weir_build_int32s(g->builder, (int32_t[]){2}, 1)));
  return weir_grad_set(
      g, 0,
      weir_grad_node_like(g, "ResizeNearestNeighborGrad", WEIR_EDGES(weir_grad_dy(g, 0), size),
                          WEIR_NAMES("align_corners", "half_pixel_centers")));
}

const weir_op_module_t weir_ops_image_resize_nearest_neighbor = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ResizeNearestNeighbor",
         .summary = "Resizes images by repeating or leaving out pixels",
         .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "
                  "bfloat16}; " WEIR_RESIZE_ATTRS,
         .inputs = "images: T; size: int32",
         .outputs = "resized_images: T",
         .infer_shape = weir_resize_shape,
         .build_grad = nearest_grad,
         .kernels = KERNELS(nearest, weir_resize_init)},
        {.name = "ResizeNearestNeighborGrad",
         .summary = "Gradient of ResizeNearestNeighbor by its images",
         .attrs = "T: {uint8, int8, int32, half, float, double, bfloat16}; " WEIR_RESIZE_ATTRS,
         .inputs = "grads: T; size: int32",
         .outputs = "output: T",
         .infer_shape = weir_resize_shape,
         .kernels = KERNELS(nearest_grad, nearest_grad_init)},
        {0}}};
