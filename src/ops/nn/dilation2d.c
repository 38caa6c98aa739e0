// dilation2d.c — Dilation2D and its gradients: greyscale morphology.
#include "kernel/pool/dilation2d.h"

#include "kernel/conv/window.h"
#include "kernel/cuda/source.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"

#define DILATION_ATTRS                                                                             \
  "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; " \
  "strides: list(int) >= 4; rates: list(int) >= 4; padding: {'SAME','VALID'}"

// ---- geometry ----
static weir_status_t* read_rates(weir_attrs_t attrs, const char* name, const char* word,
                                 int64_t least, int64_t out_rates[2]) {
  const weir_attr_t* list = weir_attrs_list(attrs, name);
  if (list->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s field must specify 4 dimensions, but got %zu", name,
                       list->count);
  }
  if (list->u.ints[0] != 1 || list->u.ints[3] != 1) {
    return WEIR_STATUS(UNIMPLEMENTED, "%s is only supported across spatial dimensions.", word);
  }
  for (int axis = 0; axis < 2; ++axis) {
    out_rates[axis] = list->u.ints[axis + 1];
    if (out_rates[axis] < least) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be %s 0, but got %lld", word,
                         least > 0 ? ">" : ">=", (long long)out_rates[axis]);
    }
  }
  return NULL;
}

static weir_status_t* read_window(weir_attrs_t attrs, weir_window_t* out) {
  *out = (weir_window_t){.padding = weir_view_is(weir_attrs_string(attrs, "padding"), "SAME")
                                        ? WEIR_PADDING_SAME
                                        : WEIR_PADDING_VALID};
  WEIR_TRY(read_rates(attrs, "strides", "Stride", 1, out->stride));
  // A rate of 0 is what TensorFlow takes too: all taps on one pixel.
  return read_rates(attrs, "rates", "Rate", 0, out->dilation);
}

static weir_status_t* make_geometry(const weir_window_t* w, const weir_tensor_t* in,
                                    const weir_tensor_t* filter, weir_dilation2d_t* out) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 4-dimensional %s",
                       weir_tensor_shape_text(in, text));
  }
  if (filter->rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "filter must be 3-dimensional: %s",
                       weir_tensor_shape_text(filter, text));
  }
  if (in->dims[3] != filter->dims[2]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input and filter must have the same depth: %lld vs %lld",
                       (long long)in->dims[3], (long long)filter->dims[2]);
  }
  weir_dilation2d_t g = {.batch = in->dims[0],
                         .in_h = in->dims[1],
                         .in_w = in->dims[2],
                         .depth = in->dims[3],
                         .filter_h = filter->dims[0],
                         .filter_w = filter->dims[1],
                         .stride_h = w->stride[0],
                         .stride_w = w->stride[1],
                         .rate_h = w->dilation[0],
                         .rate_w = w->dilation[1]};
  WEIR_TRY(weir_window_output(w, 0, g.in_h, g.filter_h, &g.out_h, &g.pad_top));
  WEIR_TRY(weir_window_output(w, 1, g.in_w, g.filter_w, &g.out_w, &g.pad_left));
  *out = g;
  return NULL;
}

// ---- shapes ----
static weir_status_t* dilation2d_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  const weir_shape_t *in, *filter;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 3, &filter));
  WEIR_TRY(read_window(weir_shape_attrs(ctx), &w));
  int64_t dims[4] = {weir_shape_dim(in, 0), -1, -1, -1};
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(in, 3), weir_shape_dim(filter, 2), &dims[3]));
  for (int axis = 0; axis < 2; ++axis) {
    WEIR_TRY(weir_window_output_if_known(&w, axis, weir_shape_dim(in, axis + 1),
                                         weir_shape_dim(filter, axis), &dims[axis + 1]));
  }
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

static weir_status_t* backprop_filter_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 1));
}

// ---- gradient ----
static weir_edge_t backprop_node(weir_grad_ctx_t* g, const char* op) {
  return weir_grad_node_like(
      g, op, WEIR_EDGES(weir_grad_input(g, 0), weir_grad_input(g, 1), weir_grad_dy(g, 0)),
      WEIR_NAMES("strides", "rates", "padding"));
}

static weir_status_t* dilation2d_grad(weir_grad_ctx_t* g) {
  WEIR_TRY(weir_grad_set(g, 0, backprop_node(g, "Dilation2DBackpropInput")));
  return weir_grad_set(g, 1, backprop_node(g, "Dilation2DBackpropFilter"));
}

// ---- kernels ----
static weir_status_t* dilation_init(const weir_kernel_init_t* init, void* state) {
  return read_window(init->node->attrs, state);
}

static weir_status_t* dilation2d_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  weir_dilation2d_t g;
  weir_tensor_t* out;
  WEIR_TRY(make_geometry(ctx->state, in, filter, &g));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, (int64_t[]){g.batch, g.out_h, g.out_w, g.depth}, &out));
  if (out->count == 0) return NULL;
  weir_dilation2d_forward(weir_kernel_pool(ctx), weir_tensor_type(in), &g, in->data, filter->data,
                          out->data);
  return NULL;
}

static weir_status_t* check_dy(const weir_dilation2d_t* g, const weir_tensor_t* dy) {
  const int64_t dims[4] = {g->batch, g->out_h, g->out_w, g->depth};
  char actual[WEIR_SHAPE_TEXT_SIZE], expected[WEIR_SHAPE_TEXT_SIZE];
  if (dy->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "out_backprop must be 4-dimensional%s",
                       weir_tensor_shape_text(dy, actual));
  }
  if (memcmp(dims, dy->dims, sizeof(dims)) == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "out_backprop has incompatible size: %s instead of %s",
                     weir_tensor_shape_text(dy, actual), weir_shape_text(4, dims, expected));
}

typedef void (*backprop_fn_t)(weir_pool_t* pool, weir_dtype_t dtype, const weir_dilation2d_t* geo,
                              const void* in, const void* filter, const void* dy, void* out);

// Checks all, and makes the gradient by input |of|, in its shape. |*out_is_zero|: nothing wins.
static weir_status_t* prepare_backprop(weir_kernel_ctx_t* ctx, int of, weir_dilation2d_t* g,
                                       weir_tensor_t** out, bool* out_is_zero) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  const weir_tensor_t *dy = weir_kernel_input(ctx, 2), *like = weir_kernel_input(ctx, of);
  WEIR_TRY(make_geometry(ctx->state, in, filter, g));
  WEIR_TRY(check_dy(g, dy));
  *out_is_zero = dy->count == 0 || in->count == 0 || filter->count == 0;
  return weir_kernel_output(ctx, 0, like->rank, like->dims, out);
}

static weir_status_t* backprop(weir_kernel_ctx_t* ctx, int of, backprop_fn_t fn) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  weir_dilation2d_t g;
  weir_tensor_t* out;
  bool is_zero;
  WEIR_TRY(prepare_backprop(ctx, of, &g, &out, &is_zero));
  if (out->count == 0) return NULL;
  if (is_zero) {
    memset(out->data, 0, weir_tensor_byte_size(out));
    return NULL;
  }
  fn(weir_kernel_pool(ctx), weir_tensor_type(in), &g, in->data, filter->data,
     weir_kernel_input(ctx, 2)->data, out->data);
  return NULL;
}

static weir_status_t* backprop_input_cpu(weir_kernel_ctx_t* ctx) {
  return backprop(ctx, 0, weir_dilation2d_backprop_input);
}

static weir_status_t* backprop_filter_cpu(weir_kernel_ctx_t* ctx) {
  return backprop(ctx, 1, weir_dilation2d_backprop_filter);
}

// ---- GPU ----
WEIR_CUDA_SOURCE(dilation2d);

typedef struct gpu_state_t {
  weir_window_t window;             // first: make_geometry reads it
  weir_cuda_function_t find, sums;  // the values, or those who win; and what those are given
} gpu_state_t;

static const char* lowest_text(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: return "-65504.0f";
    case WEIR_DTYPE_BFLOAT16: return "-0x1.fep127f";
    case WEIR_DTYPE_FLOAT: return "-0x1.fffffep127f";
    default: return "-0x1.fffffffffffffp1023";
  }
}

static weir_status_t* find_function(const weir_kernel_init_t* init, const char* name,
                                    weir_cuda_function_t* out_function) {
  weir_dtype_t dtype = weir_dtype_base(init->node->output_types[0]);
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n#define LOWEST %s\n", weir_cuda_type_name(dtype),
                     lowest_text(dtype));
  return weir_cuda_build(init->device, &text, weir_cuda_source_dilation2d, name, out_function);
}

static weir_status_t* dilation2d_gpu_init(const weir_kernel_init_t* init, void* state) {
  gpu_state_t* s = state;
  WEIR_TRY(read_window(init->node->attrs, &s->window));
  return find_function(init, "forward", &s->find);
}

static weir_status_t* backprop_gpu_init(const weir_kernel_init_t* init, void* state,
                                        const char* name) {
  gpu_state_t* s = state;
  WEIR_TRY(read_window(init->node->attrs, &s->window));
  WEIR_TRY(find_function(init, "winners", &s->find));
  return find_function(init, name, &s->sums);
}
static weir_status_t* backprop_input_gpu_init(const weir_kernel_init_t* init, void* state) {
  return backprop_gpu_init(init, state, "input_grad");
}
static weir_status_t* backprop_filter_gpu_init(const weir_kernel_init_t* init, void* state) {
  return backprop_gpu_init(init, state, "filter_grad");
}

// |out|: the values of a dilation, or the taps that win.
static weir_status_t* launch_find(weir_kernel_ctx_t* ctx, weir_dilation2d_t* g, void* out) {
  const gpu_state_t* s = ctx->state;
  const void *in = weir_kernel_input(ctx, 0)->data, *filter = weir_kernel_input(ctx, 1)->data;
  weir_cuda_size_t size =
      weir_cuda_size_for(ctx->device, g->batch * g->out_h * g->out_w * g->depth);
  return weir_cuda_launch(ctx->device, s->find, &size, WEIR_CUDA_ARGS(g, &in, &filter, &out));
}

static weir_status_t* dilation2d_gpu(weir_kernel_ctx_t* ctx) {
  weir_dilation2d_t g;
  weir_tensor_t* out;
  WEIR_TRY(make_geometry(ctx->state, weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), &g));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, (int64_t[]){g.batch, g.out_h, g.out_w, g.depth}, &out));
  return out->count == 0 ? NULL : launch_find(ctx, &g, out->data);
}

// |threads|: for each element of the result.
static weir_status_t* backprop_gpu(weir_kernel_ctx_t* ctx, int of, int64_t threads) {
  const gpu_state_t* s = ctx->state;
  const weir_tensor_t* dy = weir_kernel_input(ctx, 2);
  const void* dy_data = dy->data;
  weir_dilation2d_t g;
  weir_tensor_t *out, *taps = NULL;
  bool is_zero;
  WEIR_TRY(prepare_backprop(ctx, of, &g, &out, &is_zero));
  if (out->count == 0) return NULL;
  if (is_zero) return weir_cuda_zero(ctx->device, out->data, weir_tensor_byte_size(out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT32, dy->count, &taps));
  weir_status_t* status = launch_find(ctx, &g, taps->data);
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, out->count * threads);
  if (!status)
    status = weir_cuda_launch(ctx->device, s->sums, &size,
                              WEIR_CUDA_ARGS(&g, &taps->data, &dy_data, &out->data));
  weir_tensor_release(taps);
  return status;
}
static weir_status_t* backprop_input_gpu(weir_kernel_ctx_t* ctx) { return backprop_gpu(ctx, 0, 1); }
static weir_status_t* backprop_filter_gpu(weir_kernel_ctx_t* ctx) {
  return backprop_gpu(ctx, 1, 256);
}

#define KERNELS(NAME)                                                                         \
  (const weir_kernel_def_t[]) {                                                               \
    {WEIR_DEVICE_CPU, .compute = NAME##_cpu, .init = dilation_init,                           \
     .state_size = sizeof(weir_window_t)},                                                    \
        {WEIR_DEVICE_GPU, .types = "T: bfloat16, half, float, double", .compute = NAME##_gpu, \
         .init = NAME##_gpu_init, .state_size = sizeof(gpu_state_t)},                         \
    {                                                                                         \
      0                                                                                       \
    }                                                                                         \
  }

const weir_op_module_t weir_ops_nn_dilation2d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "Dilation2D",
                                    .summary = "Largest sum of image and filter under a window",
                                    .attrs = DILATION_ATTRS,
                                    .inputs = "input: T; filter: T",
                                    .outputs = "output: T",
                                    .infer_shape = dilation2d_shape,
                                    .build_grad = dilation2d_grad,
                                    .kernels = KERNELS(dilation2d)},
                                   {.name = "Dilation2DBackpropInput",
                                    .summary = "Gradient of Dilation2D by its input",
                                    .attrs = DILATION_ATTRS,
                                    .inputs = "input: T; filter: T; out_backprop: T",
                                    .outputs = "in_backprop: T",
                                    .infer_shape = weir_shape_fn_unchanged,
                                    .kernels = KERNELS(backprop_input)},
                                   {.name = "Dilation2DBackpropFilter",
                                    .summary = "Gradient of Dilation2D by its filter",
                                    .attrs = DILATION_ATTRS,
                                    .inputs = "input: T; filter: T; out_backprop: T",
                                    .outputs = "filter_backprop: T",
                                    .infer_shape = backprop_filter_shape,
                                    .kernels = KERNELS(backprop_filter)},
                                   {0}}};
