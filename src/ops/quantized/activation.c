// activation.c — QuantizedRelu, QuantizedRelu6, QuantizedReluX: quantised elements within bounds.
#include "kernel/quantized/range.h"
#include "ops/quantized/common.h"

static weir_status_t* relu_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  return quantized_bounds_shape(ctx, 1, 2);
}

static weir_status_t* relu_x_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  return quantized_bounds_shape(ctx, 2, 3);
}

typedef struct job_t {
  bool is_bytes;
  const void* x;
  void* y;
  int32_t low, high;
} job_t;

static void clamp_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const int32_t low = job->low, high = job->high;
  if (job->is_bytes) {
    const uint8_t* x = job->x;
    uint8_t* y = job->y;
    for (int64_t i = begin; i < end; ++i) {
      const int32_t v = x[i] < low ? low : x[i];
      y[i] = (uint8_t)(v > high ? high : v);
    }
  } else {
    const int32_t* x = job->x;
    int32_t* y = job->y;
    for (int64_t i = begin; i < end; ++i) {
      const int32_t v = x[i] < low ? low : x[i];
      y[i] = v > high ? high : v;
    }
  }
}

static weir_status_t* relu(weir_kernel_ctx_t* ctx, bool has_top, float top) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  float min = 0, max = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(quantized_scalar(ctx, 1, "min_input", &min));
  WEIR_TRY(quantized_scalar(ctx, 2, "max_input", &max));
  job_t job = {.is_bytes = dtype == WEIR_DTYPE_QUINT8,
               .x = in->data,
               .low = (int32_t)weir_float_to_quantized(dtype, 0, min, max),
               .high = (int32_t)(has_top ? weir_float_to_quantized(dtype, top, min, max)
                                         : weir_quantized_highest(dtype))};
  const int64_t count = in->count;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  job.y = out->data;
  weir_pool_for(weir_kernel_pool(ctx), count, 0.3, clamp_range, &job);
  return quantized_set_bounds(ctx, min, max);
}

static weir_status_t* relu_cpu(weir_kernel_ctx_t* ctx) { return relu(ctx, false, 0); }
static weir_status_t* relu6_cpu(weir_kernel_ctx_t* ctx) { return relu(ctx, true, 6); }

#define ATTRS "Tinput: quantizedtype; out_type: quantizedtype = DT_QUINT8"
#define OUTPUTS "activations: out_type; min_activations: float; max_activations: float"
#define KERNELS(COMPUTE)                                                                    \
  ((const weir_kernel_def_t[]){                                                             \
      {WEIR_DEVICE_CPU, .types = "Tinput: qint32; out_type: qint32", .compute = (COMPUTE)}, \
      {WEIR_DEVICE_CPU, .types = "Tinput: quint8; out_type: quint8", .compute = (COMPUTE)}, \
      {0}})

const weir_op_module_t weir_ops_quantized_activation = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedRelu",
         .summary = "Quantised elements, at least 0",
         .attrs = ATTRS,
         .inputs = "features: Tinput; min_features: float; max_features: float",
         .outputs = OUTPUTS,
         .infer_shape = relu_shape,
         .kernels = KERNELS(relu_cpu)},
        {.name = "QuantizedRelu6",
         .summary = "Quantised elements between 0 and 6",
         .attrs = ATTRS,
         .inputs = "features: Tinput; min_features: float; max_features: float",
         .outputs = OUTPUTS,
         .infer_shape = relu_shape,
         .kernels = KERNELS(relu6_cpu)},
        {.name = "QuantizedReluX",
         .summary = "Quantised elements between 0 and a maximum: no kernel, as in TensorFlow",
         .attrs = ATTRS,
         .inputs = "features: Tinput; max_value: float; min_features: float; max_features: float",
         .outputs = OUTPUTS,
         .infer_shape = relu_x_shape},
        {0}}};
