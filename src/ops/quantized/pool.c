// pool.c — QuantizedMaxPool, QuantizedAvgPool: windows of quantised images.
#include "kernel/conv/window.h"
#include "ops/quantized/common.h"

static weir_status_t* max_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  WEIR_TRY(weir_window_read_pool_shape(weir_shape_attrs(ctx), "MaxPool", &w));
  WEIR_TRY(weir_window_pool_shape(ctx, &w));
  return quantized_bounds_shape(ctx, 1, 2);
}

static weir_status_t* average_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  WEIR_TRY(weir_window_read_pool_shape(weir_shape_attrs(ctx), "AvgPool", &w));
  w.depth_size = w.depth_stride = 1;
  WEIR_TRY(weir_window_pool_shape(ctx, &w));
  return quantized_bounds_shape(ctx, 1, 2);
}

static weir_status_t* average_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(weir_window_read_pool_attrs(init->node->attrs, state));
  return weir_window_check_pool_batch(state);
}

static weir_status_t* max_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(weir_window_read_pool_attrs(init->node->attrs, state));
  WEIR_TRY(weir_window_check_pool_sizes(state));
  WEIR_TRY(weir_window_check_pool_stride(state));
  return weir_window_check_pool_batch(state);
}

static weir_status_t* read_bound(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                 float* out) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s shape must be rank 0 but is rank %d, received shape: %s", name, t->rank,
                       weir_tensor_shape_text(t, text));
  }
  *out = *WEIR_TENSOR_DATA(t, float);
  return NULL;
}

static weir_status_t* check_depth(const weir_window_t* w, int64_t channels, bool allows_depth) {
  WEIR_TRY(weir_window_check_pool_depth(w, channels));
  if (w->depth_size == 1 || allows_depth) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "Non-spatial pooling is not yet supported. Volunteers? :)");
}

// Bounds pass through; the geometry and output 0 are made ready. A window along the channels makes
// these a line of pixels.
static weir_status_t* prepare(weir_kernel_ctx_t* ctx, bool allows_depth, weir_pool2d_t* pool,
                              weir_tensor_t** out) {
  const weir_window_t* w = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  float min = 0, max = 0;
  int64_t dims[4];
  WEIR_TRY(read_bound(ctx, 1, "min_input", &min));
  WEIR_TRY(read_bound(ctx, 2, "max_input", &max));
  WEIR_TRY(weir_window_check_pool_input(in));
  WEIR_TRY(check_depth(w, in->dims[3], allows_depth));
  WEIR_TRY(weir_window_pool2d(w, in->dims, pool));
  weir_window_dims(w, pool->batch, (const int64_t[]){pool->out_h, pool->out_w},
                   pool->channels / w->depth_size, dims);
  if (w->depth_size > 1) {
    *pool = (weir_pool2d_t){.batch = pool->batch * pool->in_h * pool->in_w,
                            .in_h = 1,
                            .in_w = pool->channels,
                            .channels = 1,
                            .out_h = 1,
                            .out_w = pool->channels / w->depth_size,
                            .window_h = 1,
                            .window_w = w->depth_size,
                            .stride_h = 1,
                            .stride_w = w->depth_size};
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, out));
  return quantized_set_bounds(ctx, min, max);
}

static weir_status_t* max_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const bool is_signed = weir_tensor_type(in) == WEIR_DTYPE_QINT8;
  weir_pool2d_t pool;
  weir_tensor_t* out = NULL;
  WEIR_TRY(prepare(ctx, true, &pool, &out));
  weir_max_pool2d(weir_kernel_pool(ctx), is_signed ? WEIR_DTYPE_INT8 : WEIR_DTYPE_UINT8, &pool,
                  in->data, out->data);
  return NULL;
}

typedef struct average_t {
  const weir_pool2d_t* pool;
  bool is_signed;
  const void* in;
  void* out;
} average_t;

// Averages within the image, rounded to zero.
static void average_pixel(const average_t* job, int64_t at) {
  const weir_pool2d_t* p = job->pool;
  const int64_t image = at / (p->out_h * p->out_w);
  const int64_t top = at / p->out_w % p->out_h * p->stride_h - p->pad_top;
  const int64_t left = at % p->out_w * p->stride_w - p->pad_left;
  const int64_t bottom = WEIR_MIN(top + p->window_h, p->in_h);
  const int64_t right = WEIR_MIN(left + p->window_w, p->in_w);
  const int64_t first = WEIR_MAX(top, 0), from = WEIR_MAX(left, 0);
  const int64_t count = WEIR_MAX(bottom - first, 0) * WEIR_MAX(right - from, 0);
  for (int64_t c = 0; c < p->channels; ++c) {
    int64_t sum = 0;
    for (int64_t y = first; y < bottom; ++y) {
      for (int64_t x = from; x < right; ++x) {
        const int64_t i = ((image * p->in_h + y) * p->in_w + x) * p->channels + c;
        sum += job->is_signed ? ((const int8_t*)job->in)[i] : ((const uint8_t*)job->in)[i];
      }
    }
    ((uint8_t*)job->out)[at * p->channels + c] = (uint8_t)(count ? sum / count : 0);
  }
}

static void average_range(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) average_pixel(arg, i);
}

static weir_status_t* average_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_pool2d_t pool;
  weir_tensor_t* out = NULL;
  WEIR_TRY(prepare(ctx, false, &pool, &out));
  average_t job = {.pool = &pool,
                   .is_signed = weir_tensor_type(in) == WEIR_DTYPE_QINT8,
                   .in = in->data,
                   .out = out->data};
  weir_pool_for(weir_kernel_pool(ctx), pool.batch * pool.out_h * pool.out_w,
                (double)(pool.window_h * pool.window_w * pool.channels), average_range, &job);
  return NULL;
}

#define ATTRS "T: quantizedtype; ksize: list(int); strides: list(int); padding: {'SAME','VALID'}"
#define INPUTS "input: T; min_input: float; max_input: float"
#define OUTPUTS "output: T; min_output: float; max_output: float"
#define KERNEL(COMPUTE, INIT)                                                        \
  WEIR_CPU_KERNEL(.types = "T: quint8, qint8", .compute = (COMPUTE), .init = (INIT), \
                  .state_size = sizeof(weir_window_t))

const weir_op_module_t weir_ops_quantized_pool = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "QuantizedMaxPool",
                                    .summary = "Maxima of sliding windows of quantised images",
                                    .attrs = ATTRS,
                                    .inputs = INPUTS,
                                    .outputs = OUTPUTS,
                                    .infer_shape = max_shape,
                                    .kernels = KERNEL(max_cpu, max_init)},
                                   {.name = "QuantizedAvgPool",
                                    .summary = "Averages of sliding windows of quantised images",
                                    .attrs = ATTRS,
                                    .inputs = INPUTS,
                                    .outputs = OUTPUTS,
                                    .infer_shape = average_shape,
                                    .kernels = KERNEL(average_cpu, average_init)},
                                   {0}}};
