// bias.c — BiasAdd, BiasAddV1 and BiasAddGrad.
#include "kernel/nn/bias.h"

#include "kernel/nn/cuda_bias.h"
#include "kernel/reduce/cuda_reduce.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

#define NUMBER_TYPES                                                                          \
  "complex64, complex128, double, float, bfloat16, half, int32, int8, uint8, int16, uint16, " \
  "uint32, int64, uint64"
#define FORMAT_ATTR "data_format: {'NHWC','NCHW'} = 'NHWC'"

// BiasAddV1 has no data format: channels come last.
static bool is_nchw(weir_attrs_t attrs) {
  const weir_attr_t* format = weir_attrs_find(attrs, "data_format");
  return format && weir_view_is(format->u.s, "NCHW");
}

static weir_status_t* bias_add_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *x = weir_shape_input(ctx, 0), *bias;
  bool nchw = is_nchw(weir_shape_attrs(ctx));
  WEIR_TRY(weir_shape_at_least(ctx, x, nchw ? 3 : 2));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &bias));
  if (x->rank < 0) return weir_shape_set(ctx, 0, x);
  int64_t channels;
  int axis = nchw ? 1 : x->rank - 1;
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(x, axis), weir_shape_dim(bias, 0), &channels));
  const weir_shape_t* out = weir_shape_concat(ctx, weir_shape_sub(ctx, x, 0, axis),
                                              weir_shape_make(ctx->arena, 1, &channels));
  if (axis + 1 < x->rank)
    out = weir_shape_concat(ctx, out, weir_shape_sub(ctx, x, axis + 1, x->rank));
  return weir_shape_set(ctx, 0, out);
}

static weir_status_t* bias_add_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, x, is_nchw(weir_shape_attrs(ctx)) ? 3 : 2));
  if (x->rank < 0) return weir_shape_set_vector(ctx, 0, -1);
  return weir_shape_set_vector(ctx, 0, weir_shape_dim(x, is_nchw(weir_shape_attrs(ctx)) ? 1 : -1));
}

static weir_attrs_t format_attrs(const weir_grad_ctx_t* g, weir_named_attr_t* storage) {
  *storage = weir_attr_string("data_format", is_nchw(weir_grad_attrs(g)) ? "NCHW" : "NHWC");
  return (weir_attrs_t){.items = storage, .count = 1};
}

static weir_status_t* bias_add_grad(weir_grad_ctx_t* g) {
  weir_named_attr_t format;
  weir_edge_t dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, dy));
  return weir_grad_set(
      g, 1, weir_grad_node_with(g, "BiasAddGrad", WEIR_EDGES(dy), format_attrs(g, &format)));
}

// The gradient of a sum spreads out: zeros of the summed tensor's shape plus the bias.
static weir_status_t* bias_add_grad_grad(weir_grad_ctx_t* g) {
  weir_named_attr_t format;
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_input(g, 0)));
  weir_edge_t dx = weir_grad_node_with(g, "BiasAdd", WEIR_EDGES(zeros, weir_grad_dy(g, 0)),
                                       format_attrs(g, &format));
  return weir_grad_set(g, 0, dx);
}

static weir_bias_t bias_shape(const weir_tensor_t* x, bool nchw) {
  weir_bias_t shape = {.outer = 1, .channels = x->dims[nchw ? 1 : x->rank - 1], .inner = 1};
  for (int i = 0; i < x->rank; ++i) {
    if (i == (nchw ? 1 : x->rank - 1)) continue;
    if (nchw && i > 1) {
      shape.inner *= x->dims[i];
    } else {
      shape.outer *= x->dims[i];
    }
  }
  return shape;
}

static weir_status_t* check_bias(const weir_kernel_ctx_t* ctx, weir_bias_t* out_shape) {
  const weir_tensor_t *x = weir_kernel_input(ctx, 0), *bias = weir_kernel_input(ctx, 1);
  bool nchw = is_nchw(weir_kernel_attrs(ctx));
  WEIR_TRY(weir_bias_check((weir_shape_view_t){x->rank, x->dims},
                           (weir_shape_view_t){bias->rank, bias->dims}, nchw ? 1 : -1));
  *out_shape = bias_shape(x, nchw);
  return NULL;
}

static weir_status_t* bias_add_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *x = weir_kernel_input(ctx, 0), *bias = weir_kernel_input(ctx, 1);
  weir_bias_t shape;
  WEIR_TRY(check_bias(ctx, &shape));
  const void* data = x->data;
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  weir_bias_add(weir_kernel_pool(ctx), weir_tensor_type(out), &shape, data, bias->data, out->data);
  return NULL;
}

// ---- GPU ----

static weir_status_t* bias_add_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_bias_find(init->device, init->node->input_types[0], false, state);
}

static weir_status_t* bias_add_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *x = weir_kernel_input(ctx, 0), *bias = weir_kernel_input(ctx, 1);
  weir_bias_t shape;
  WEIR_TRY(check_bias(ctx, &shape));
  const void* from = x->data;
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  return weir_cuda_bias_add(ctx->device, *(const weir_cuda_function_t*)ctx->state,
                            weir_tensor_type(out), &shape, from, bias->data, out->data);
}

// The channels' count, and output 0 of that many elements.
static weir_status_t* prepare_sum(weir_kernel_ctx_t* ctx, weir_bias_t* out_shape,
                                  weir_tensor_t** out) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  if (x->rank < 2) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                       weir_tensor_shape_text(x, text));
  }
  *out_shape = bias_shape(x, is_nchw(weir_kernel_attrs(ctx)));
  return weir_kernel_output(ctx, 0, 1, &out_shape->channels, out);
}

static weir_status_t* bias_add_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_bias_t shape;
  weir_tensor_t* out;
  WEIR_TRY(prepare_sum(ctx, &shape, &out));
  return weir_bias_sum(weir_kernel_pool(ctx), weir_tensor_type(x), &shape, x->data, out->data);
}

static weir_status_t* bias_add_grad_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_reduce_find(init->device, WEIR_REDUCE_SUM, init->node->input_types[0], state);
}

static weir_status_t* bias_add_grad_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_bias_t shape;
  weir_tensor_t* out;
  WEIR_TRY(prepare_sum(ctx, &shape, &out));
  const int64_t dims[] = {shape.outer, shape.channels, shape.inner};
  return weir_cuda_reduce(ctx, ctx->state, weir_tensor_type(x), 3, dims,
                          (const bool[]){true, false, true}, x->data, out->data);
}

#define GPU_TYPES "T: bfloat16, half, float, double, int32"
#define BIAS_ADD_KERNELS                                                                          \
  (const weir_kernel_def_t[]) {                                                                   \
    {WEIR_DEVICE_CPU, .types = "T: " NUMBER_TYPES, .compute = bias_add_cpu},                      \
        {WEIR_DEVICE_GPU, .types = GPU_TYPES, .compute = bias_add_gpu, .init = bias_add_gpu_init, \
         .state_size = sizeof(weir_cuda_function_t)},                                             \
    {                                                                                             \
      0                                                                                           \
    }                                                                                             \
  }

const weir_op_module_t weir_ops_nn_bias = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "BiasAdd",
         .mixed = WEIR_MIXED_INFER,
         .scalar = {WEIR_SCALAR_BIAS, WEIR_BINARY_ADD},
         .summary = "Adds a vector along the channels",
         .attrs = "T: numbertype; " FORMAT_ATTR,
         .inputs = "value: T; bias: T",
         .outputs = "output: T",
         .infer_shape = bias_add_shape,
         .build_grad = bias_add_grad,
         .kernels = BIAS_ADD_KERNELS},
        {.name = "BiasAddV1",
         .mixed = WEIR_MIXED_INFER,
         .scalar = {WEIR_SCALAR_BIAS, WEIR_BINARY_ADD},
         .summary = "Adds a vector along the last dimension",
         .attrs = "T: numbertype",
         .inputs = "value: T; bias: T",
         .outputs = "output: T",
         .infer_shape = bias_add_shape,
         .build_grad = bias_add_grad,
         .kernels = BIAS_ADD_KERNELS},
        {.name = "BiasAddGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .scalar = {WEIR_SCALAR_REDUCE_CHANNELS, WEIR_REDUCE_SUM},
         .summary = "Sums over all dimensions but the channels",
         .attrs = "T: numbertype; " FORMAT_ATTR,
         .inputs = "out_backprop: T",
         .outputs = "output: T",
         .infer_shape = bias_add_grad_shape,
         .build_grad = bias_add_grad_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .types = "T: " NUMBER_TYPES, .compute = bias_add_grad_cpu},
                 {WEIR_DEVICE_GPU, .types = GPU_TYPES, .compute = bias_add_grad_gpu,
                  .init = bias_add_grad_gpu_init, .state_size = sizeof(weir_cuda_reduce_t)},
                 {0}}},
        {0}}};
