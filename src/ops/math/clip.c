// clip.c — ClipByValue: elements brought into a range.
#include "kernel/elementwise/cuda_ternary.h"
#include "ops/math/common.h"

// z = limit(z, bound), where the bound is one element or as many as z.
static weir_status_t* apply_bound(weir_kernel_ctx_t* ctx, weir_binary_op_t op, const void* x,
                                  const weir_tensor_t* bound, weir_tensor_t* z) {
  weir_dtype_t dtype = weir_tensor_type(z);
  weir_binary_run_t run = {.fn = weir_binary_find(op, dtype),
                           .x = x,
                           .y = bound->data,
                           .z = z->data,
                           .size = weir_dtype_size(dtype),
                           .out_size = weir_dtype_size(dtype),
                           .cost = weir_binary_cost(op)};
  if (!run.fn) return WEIR_STATUS(UNIMPLEMENTED, "ClipByValue of type %s", weir_dtype_name(dtype));
  weir_binary_apply(weir_kernel_pool(ctx), &run, z->count,
                    bound->rank == 0 ? WEIR_SPAN_X : WEIR_SPAN_BOTH);
  return NULL;
}

// NaN stays.
static float clip_float(float x, float low, float high) {
  if (high < x) x = high;
  return x < low ? low : x;
}
static double clip_double(double x, double low, double high) {
  if (high < x) x = high;
  return x < low ? low : x;
}

static weir_status_t* check_bounds(const weir_tensor_t* t, const weir_tensor_t* low,
                                   const weir_tensor_t* high) {
  bool low_fits = low->rank == 0 || weir_tensor_same_shape(low, t);
  bool high_fits = high->rank == 0 || weir_tensor_same_shape(high, t);
  if (low_fits && high_fits) return NULL;
  char a[WEIR_SHAPE_TEXT_SIZE];
  char b[WEIR_SHAPE_TEXT_SIZE];
  char c[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
      "input shape: %s clip_value_min shape: %s clip_value_max shape: %s",
      weir_tensor_shape_text(t, a), weir_tensor_shape_text(low, b),
      weir_tensor_shape_text(high, c));
}

static weir_status_t* clip_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 0);
  const weir_tensor_t* low = weir_kernel_input(ctx, 1);
  const weir_tensor_t* high = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_bounds(t, low, high));
  const void* x = t->data;
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, t->rank, t->dims, &y));
  WEIR_TRY(apply_bound(ctx, WEIR_BINARY_MINIMUM, x, high, y));
  return apply_bound(ctx, WEIR_BINARY_MAXIMUM, y->data, low, y);
}

static weir_status_t* clip_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_clamp_find(init->device, weir_dtype_base(init->node->input_types[0]), state);
}

static weir_status_t* clip_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 0);
  const weir_tensor_t* low = weir_kernel_input(ctx, 1);
  const weir_tensor_t* high = weir_kernel_input(ctx, 2);
  const int64_t one = 1, zero = 0, count = t->count;
  WEIR_TRY(check_bounds(t, low, high));
  weir_ternary_t operands = {
      .x = t->data,
      .a = low->data,
      .b = high->data,
      .rank = 1,
      .dims = &count,
      .strides = {&one, low->rank == 0 ? &zero : &one, high->rank == 0 ? &zero : &one}};
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, t->rank, t->dims, &y));
  operands.y = y->data;
  return weir_cuda_ternary_run(ctx->device, ctx->state, &operands);
}

// A complex number is clipped by its parts.
static weir_status_t* clip_complex_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 0);
  const weir_tensor_t* low = weir_kernel_input(ctx, 1);
  const weir_tensor_t* high = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_bounds(t, low, high));
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, t->rank, t->dims, &y));
  for (int64_t i = 0; i < 2 * t->count; ++i) {
    const int64_t l = low->rank == 0 ? i % 2 : i, h = high->rank == 0 ? i % 2 : i;
    if (t->dtype == WEIR_DTYPE_COMPLEX64) {
      WEIR_TENSOR_DATA(y, float)
      [i] = clip_float(WEIR_TENSOR_DATA(t, float)[i], WEIR_TENSOR_DATA(low, float)[l],
                       WEIR_TENSOR_DATA(high, float)[h]);
    } else {
      WEIR_TENSOR_DATA(y, double)
      [i] = clip_double(WEIR_TENSOR_DATA(t, double)[i], WEIR_TENSOR_DATA(low, double)[l],
                        WEIR_TENSOR_DATA(high, double)[h]);
    }
  }
  return NULL;
}

static weir_status_t* clip_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t zero = weir_grad_scalar(g, dy, 0);
  weir_edge_t below = node2(g, "Less", x, weir_grad_input(g, 1));
  weir_edge_t above = node2(g, "Greater", x, weir_grad_input(g, 2));
  WEIR_TRY(
      weir_grad_set(g, 0, node3(g, "SelectV2", node2(g, "LogicalOr", below, above), zero, dy)));
  WEIR_TRY(
      weir_grad_set(g, 1, weir_grad_unbroadcast(g, node3(g, "SelectV2", below, dy, zero), 1, 0)));
  return weir_grad_set(g, 2, weir_grad_unbroadcast(g, node3(g, "SelectV2", above, dy, zero), 2, 0));
}

const weir_op_module_t weir_ops_math_clip = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ClipByValue",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: numbertype",
         .inputs = "t: T; clip_value_min: T; clip_value_max: T",
         .outputs = "output: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "Elements brought into the range [min, max]",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = clip_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU,
                  .types =
                      "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16",
                  .compute = clip_cpu},
                 {WEIR_DEVICE_CPU, .types = "T: complex64, complex128",
                  .compute = clip_complex_cpu},
                 {WEIR_DEVICE_GPU,
                  .types = "T: float, double, half, bfloat16, int8, int16, int64, uint8, uint16",
                  .compute = clip_gpu, .init = clip_gpu_init,
                  .state_size = sizeof(weir_cuda_ternary_t)},
                 {WEIR_DEVICE_GPU, .types = "T: int32", .compute = clip_cpu,
                  .host_inputs = "t, clip_value_min, clip_value_max", .host_outputs = "output"},
                 {0}}},
        {0}}};
