// batch_norm.c — QuantizedBatchNormWithGlobalNormalization: quantised images normalised by given
// means and variances, in fixed point.
#include "kernel/quantized/range.h"
#include "ops/quantized/common.h"

// The result's range: ten bits for fractions.
#define RANGE 1048576.0f

static weir_status_t* norm_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  int64_t depth = weir_shape_dim(in, 3);
  for (int i = 3; i < 15; i += 3) {
    const weir_shape_t* vector;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &vector));
    WEIR_TRY(weir_dim_join(ctx, depth, weir_shape_dim(vector, 0), &depth));
  }
  const int64_t dims[4] = {weir_shape_dim(in, 0), weir_shape_dim(in, 1), weir_shape_dim(in, 2),
                           depth};
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 4, dims));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_scalar(ctx, 2);
}

// Tensor |i| of five, and its bounds.
static const char* const names[] = {"input", "mean", "var", "beta", "gamma"};

static weir_status_t* check_ranks(const weir_kernel_ctx_t* ctx) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < 5; ++i) {
    for (int k = 1; k < 3; ++k) {
      if (weir_kernel_input(ctx, 3 * i + k)->count == 1) continue;
      return WEIR_STATUS(INVALID_ARGUMENT, "%s_%s must have 1 element", names[i],
                         k == 1 ? "min" : "max");
    }
  }
  for (int i = 0; i < 5; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, 3 * i);
    if (t->rank == (i ? 1 : 4)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be %d-dimensional%s", names[i], i ? 1 : 4,
                       weir_tensor_shape_text(t, text));
  }
  return NULL;
}

static weir_status_t* check_sizes(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *mean = weir_kernel_input(ctx, 3);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (mean->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Must have at least a mean value");
  for (int i = 2; i < 5; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, 3 * i);
    if (t->count == mean->count) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Mean and %s tensors must have the same shape: %s vs. %s",
                       names[i], weir_tensor_shape_text(mean, a), weir_tensor_shape_text(t, b));
  }
  if (in->dims[3] != mean->count) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Must provide as many means as the last dimension of the input tensor: %s vs. %s",
        weir_tensor_shape_text(mean, a), weir_tensor_shape_text(in, b));
  }
  if (mean->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Must have at least a mean value%s",
                     weir_tensor_shape_text(mean, a));
}

static float bound(const weir_kernel_ctx_t* ctx, int i) {
  return *WEIR_TENSOR_DATA(weir_kernel_input(ctx, i), float);
}

// The float of element |c| of tensor |i|.
static float value_at(const weir_kernel_ctx_t* ctx, int i, int64_t c) {
  const uint8_t value = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 3 * i), uint8_t)[c];
  return weir_quantized_to_float(WEIR_DTYPE_QUINT8, value, bound(ctx, 3 * i + 1),
                                 bound(ctx, 3 * i + 2));
}

static int32_t fixed(float x) {
  return (int32_t)weir_float_to_quantized(WEIR_DTYPE_QINT32, x, -RANGE, RANGE);
}

typedef struct job_t {
  int64_t depth;
  int32_t table[256];  // elements in fixed point
  const int32_t *scales, *offsets;
  int32_t one;
  const uint8_t* x;
  int32_t* y;
} job_t;

// Products and sums wrap.
static void run_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t row = begin; row < end; ++row) {
    const uint8_t* x = job->x + row * job->depth;
    int32_t* y = job->y + row * job->depth;
    for (int64_t c = 0; c < job->depth; ++c) {
      const uint32_t product = (uint32_t)job->table[x[c]] * (uint32_t)job->scales[c];
      y[c] = (int32_t)((uint32_t)((int32_t)product / job->one) + (uint32_t)job->offsets[c]);
    }
  }
}

static void fill_channels(const weir_kernel_ctx_t* ctx, int64_t depth, int32_t* scales,
                          int32_t* offsets) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const float epsilon = weir_attrs_float(attrs, "variance_epsilon");
  const bool is_scaled = weir_attrs_bool(attrs, "scale_after_normalization");
  for (int64_t c = 0; c < depth; ++c) {
    const float inverse = 1.0f / sqrtf(value_at(ctx, 2, c) + epsilon);
    const float scale = is_scaled ? inverse * value_at(ctx, 4, c) : inverse;
    scales[c] = fixed(scale);
    offsets[c] = fixed(-value_at(ctx, 1, c) * scale + value_at(ctx, 3, c));
  }
}

static weir_status_t* norm_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t *out = NULL, *factors = NULL;
  WEIR_TRY(check_ranks(ctx));
  WEIR_TRY(check_sizes(ctx));
  const int64_t depth = in->dims[3];
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT32, 2 * depth, &factors));
  int32_t* scales = factors->data;
  fill_channels(ctx, depth, scales, scales + depth);
  job_t job = {.depth = depth,
               .scales = scales,
               .offsets = scales + depth,
               .one = fixed(1),
               .x = in->data,
               .y = out->data};
  for (int i = 0; i < 256; ++i) {
    job.table[i] =
        fixed(weir_quantized_to_float(WEIR_DTYPE_QUINT8, i, bound(ctx, 1), bound(ctx, 2)));
  }
  weir_pool_for(weir_kernel_pool(ctx), in->count / depth, 2.0 * (double)depth, run_rows, &job);
  weir_tensor_release(factors);
  return quantized_set_bounds(ctx, -RANGE, RANGE);
}

#define TENSOR(NAME) NAME ": Tinput; " NAME "_min: float; " NAME "_max: float"

const weir_op_module_t weir_ops_quantized_batch_norm = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedBatchNormWithGlobalNormalization",
         .summary = "Quantised images normalised by means and variances",
         .attrs = "Tinput: quantizedtype; out_type: quantizedtype; variance_epsilon: float; "
                  "scale_after_normalization: bool",
         .inputs =
             TENSOR("t") "; " TENSOR("m") "; " TENSOR("v") "; " TENSOR("beta") "; " TENSOR("gamma"),
         .outputs = "result: out_type; result_min: float; result_max: float",
         .infer_shape = norm_shape,
         .kernels =
             WEIR_CPU_KERNEL(.types = "Tinput: quint8; out_type: qint32", .compute = norm_cpu)},
        {0}}};
