// arithmetic.c — QuantizedAdd, QuantizedMul, QuantizedBiasAdd: sums and products of eight-bit
// numbers, in 32 bits.
#include "kernel/quantized/range.h"
#include "ops/quantized/common.h"

typedef struct bounds_t {
  float min_x, max_x, min_y, max_y;
} bounds_t;

// ---- shapes ----

static weir_status_t* add_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_fn_broadcast(ctx));
  return quantized_bounds_shape(ctx, 2, 5);
}

static weir_status_t* mul_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_fn_broadcast(ctx));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_scalar(ctx, 2);
}

static weir_status_t* bias_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *in = weir_shape_input(ctx, 0), *bias;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_at_least(ctx, in, 2));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &bias));
  WEIR_TRY(quantized_bounds_shape(ctx, 2, 5));
  if (in->rank < 0) return weir_shape_set(ctx, 0, in);
  const int last = in->rank - 1;
  for (int i = 0; i < last; ++i) dims[i] = in->dims[i];
  WEIR_TRY(weir_dim_join(ctx, in->dims[last], weir_shape_dim(bias, 0), &dims[last]));
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

// ---- what an eight-bit number is in 32 bits ----

// By its number, read as unsigned; what is added or multiplied.
typedef struct table_t {
  int32_t values[256];
} table_t;

// The steps from 0 to 1 of the type decide: all others are multiples.
static void fill_by_step(table_t* t, float min, float max, float out_min, float out_max) {
  int64_t codes[2];
  for (int i = 0; i < 2; ++i) {
    const float x = weir_quantized_to_float(WEIR_DTYPE_QUINT8, i, min, max);
    codes[i] = weir_float_to_quantized_free(WEIR_DTYPE_QINT32, x, out_min, out_max);
  }
  const int64_t step = (int32_t)(codes[1] - codes[0]);
  for (int i = 0; i < 256; ++i) {
    const int64_t v = codes[0] + i * step;
    t->values[i] = (int32_t)(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
  }
}

// Each by itself, as TensorFlow does with a single number.
static void fill_exactly(table_t* t, float min, float max, float out_min, float out_max) {
  for (int i = 0; i < 256; ++i) {
    const float x = weir_quantized_to_float(WEIR_DTYPE_QUINT8, i, min, max);
    t->values[i] = (int32_t)weir_float_to_quantized(WEIR_DTYPE_QINT32, x, out_min, out_max);
  }
}

static void fill_offsets(table_t* t, float min, float max) {
  const int32_t zero = (int32_t)weir_float_to_quantized_free(WEIR_DTYPE_QUINT8, 0, min, max);
  for (int i = 0; i < 256; ++i) t->values[i] = (int32_t)((uint32_t)i - (uint32_t)zero);
}

static void fill_floats(table_t* t, weir_dtype_t dtype, float min, float max,
                        const weir_quantize_t* to) {
  const weir_dequantize_t from = weir_dequantize_in(dtype, min, max);
  for (int i = 0; i < 256; ++i) {
    const int32_t value = dtype == WEIR_DTYPE_QINT8 ? (int8_t)i : i;
    t->values[i] = weir_requantize_value(&from, to, WEIR_DTYPE_QINT32, value);
  }
}

// ---- broadcasting ----

// A matrix of results; a stride of 0 repeats.
typedef struct job_t {
  int64_t columns;
  const uint8_t *x, *y;
  int64_t x_row, x_column, y_row, y_column;
  const table_t *of_x, *of_y;
  int32_t bias;
  bool multiplies;
  int32_t* z;
} job_t;

// Sums and products wrap.
static void run_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t row = begin; row < end; ++row) {
    const uint8_t *x = job->x + row * job->x_row, *y = job->y + row * job->y_row;
    int32_t* z = job->z + row * job->columns;
    for (int64_t i = 0; i < job->columns; ++i) {
      const uint32_t a = (uint32_t)job->of_x->values[x[i * job->x_column]];
      const uint32_t b = (uint32_t)job->of_y->values[y[i * job->y_column]];
      z[i] = (int32_t)(job->multiplies ? a * b : a + b + (uint32_t)job->bias);
    }
  }
}

static void run(weir_kernel_ctx_t* ctx, job_t* job, int64_t rows) {
  weir_pool_for(weir_kernel_pool(ctx), rows, 2.0 * (double)job->columns, run_rows, job);
}

// One of the dimensions in which two shapes differ alike.
typedef struct group_t {
  int64_t size;
  bool repeats_x, repeats_y;
} group_t;

static weir_status_t* incompatible(const weir_tensor_t* x, const weir_tensor_t* y) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                     weir_tensor_shape_text(x, a), weir_tensor_shape_text(y, b));
}

// The result's shape, and its dimensions in groups, at most three of which are told apart.
static weir_status_t* find_groups(const weir_tensor_t* x, const weir_tensor_t* y, int64_t* dims,
                                  int* out_rank, group_t* groups, int* out_count) {
  const int rank = WEIR_MAX(x->rank, y->rank);
  int count = 0;
  for (int i = 0; i < rank; ++i) {
    const int in_x = i - (rank - x->rank), in_y = i - (rank - y->rank);
    const int64_t a = in_x < 0 ? 1 : x->dims[in_x], b = in_y < 0 ? 1 : y->dims[in_y];
    if (a != b && a != 1 && b != 1) return incompatible(x, y);
    dims[i] = a == 1 ? b : a;
    const bool repeats_x = a != b && a == 1, repeats_y = a != b && b == 1;
    if (dims[i] == 1 && a == b) continue;
    if (count && groups[count - 1].repeats_x == repeats_x &&
        groups[count - 1].repeats_y == repeats_y) {
      groups[count - 1].size *= dims[i];
      continue;
    }
    if (count < 3)
      groups[count] = (group_t){.size = dims[i], .repeats_x = repeats_x, .repeats_y = repeats_y};
    ++count;
    if (count > 3) count = 3;
  }
  *out_rank = rank;
  *out_count = count;
  return NULL;
}

static weir_status_t* check_groups(const weir_tensor_t* x, const weir_tensor_t* y, int count) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (count <= 2) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "Broadcast between %s and %s is not supported yet.",
                     weir_tensor_shape_text(x, a), weir_tensor_shape_text(y, b));
}

// Where TensorFlow's kernels repeat the smaller of two tensors along the wrong dimension, or leave
// elements unset, this is the sum or product that was asked for.
static void run_groups(weir_kernel_ctx_t* ctx, job_t* job, const group_t* groups, int count) {
  const group_t none = {.size = 1};
  const group_t outer = count == 2 ? groups[0] : none;
  const group_t inner = count ? groups[count - 1] : none;
  job->columns = inner.size;
  job->x_column = inner.repeats_x ? 0 : 1;
  job->y_column = inner.repeats_y ? 0 : 1;
  job->x_row = outer.repeats_x ? 0 : inner.repeats_x ? 1 : inner.size;
  job->y_row = outer.repeats_y ? 0 : inner.repeats_y ? 1 : inner.size;
  run(ctx, job, outer.size);
}

// ---- QuantizedAdd, QuantizedMul ----

static void fill_sums(const weir_tensor_t* x, const weir_tensor_t* y, const bounds_t* b,
                      float range, table_t* of_x, table_t* of_y) {
  const bool is_x_single = x->count == 1;
  const bool is_y_single = y->count == 1 && !is_x_single;
  (is_x_single ? fill_exactly : fill_by_step)(of_x, b->min_x, b->max_x, -range, range);
  (is_y_single ? fill_exactly : fill_by_step)(of_y, b->min_y, b->max_y, -range, range);
}

static weir_status_t* start(weir_kernel_ctx_t* ctx, const char* empty, group_t* groups,
                            int* out_count, weir_tensor_t** out) {
  const weir_tensor_t *x = weir_kernel_input(ctx, 0), *y = weir_kernel_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(find_groups(x, y, dims, &rank, groups, out_count));
  WEIR_TRY(check_groups(x, y, *out_count));
  if (*out_count == 2 && (x->count == 0 || y->count == 0))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s", empty);
  return weir_kernel_output(ctx, 0, rank, dims, out);
}

static weir_status_t* add_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *x = weir_kernel_input(ctx, 0), *y = weir_kernel_input(ctx, 1);
  bounds_t b = {0};
  group_t groups[3];
  int count = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(quantized_scalar(ctx, 2, "min_x", &b.min_x));
  WEIR_TRY(quantized_scalar(ctx, 3, "max_x", &b.max_x));
  WEIR_TRY(quantized_scalar(ctx, 4, "min_y", &b.min_y));
  WEIR_TRY(quantized_scalar(ctx, 5, "max_y", &b.max_y));
  if (!(b.max_x > b.min_x))
    return WEIR_STATUS(INVALID_ARGUMENT, "max_x must be larger than min_x.");
  if (!(b.max_y > b.min_y))
    return WEIR_STATUS(INVALID_ARGUMENT, "max_y must be larger than min_y.");
  WEIR_TRY(start(ctx, "Must have some elements to add", groups, &count, &out));
  const float least = fabsf(fminf(b.min_x, b.min_y)), most = fabsf(fmaxf(b.max_x, b.max_y));
  const float range = (least < most ? most : least) * 16384.0f;
  table_t of_x, of_y;
  fill_sums(x, y, &b, range, &of_x, &of_y);
  job_t job = {.x = x->data, .y = y->data, .of_x = &of_x, .of_y = &of_y, .z = out->data};
  if (out->count) run_groups(ctx, &job, groups, count);
  return quantized_set_bounds(ctx, -range, range);
}

static weir_status_t* mul_cpu(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"min_x", "max_x", "min_y", "max_y"};
  const weir_tensor_t *x = weir_kernel_input(ctx, 0), *y = weir_kernel_input(ctx, 1);
  float b[4], min = 0, max = 0;
  group_t groups[3];
  int count = 0;
  weir_tensor_t* out = NULL;
  for (int i = 0; i < 4; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, i + 2);
    if (bound->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar", names[i]);
    b[i] = *WEIR_TENSOR_DATA(bound, float);
  }
  if (!(b[1] > b[0])) return WEIR_STATUS(INVALID_ARGUMENT, "max_x must be larger than min_a.");
  if (!(b[3] > b[2])) return WEIR_STATUS(INVALID_ARGUMENT, "max_x must be larger than min_b.");
  WEIR_TRY(start(ctx, "vector must have at least 1 element", groups, &count, &out));
  table_t of_x, of_y;
  fill_offsets(&of_x, b[0], b[1]);
  fill_offsets(&of_y, b[2], b[3]);
  job_t job = {
      .x = x->data, .y = y->data, .of_x = &of_x, .of_y = &of_y, .multiplies = true, .z = out->data};
  if (out->count) run_groups(ctx, &job, groups, count);
  weir_quantized_product_range(WEIR_DTYPE_QUINT8, b[0], b[1], WEIR_DTYPE_QUINT8, b[2], b[3],
                               WEIR_DTYPE_QINT32, &min, &max);
  return quantized_set_bounds(ctx, min, max);
}

// ---- QuantizedBiasAdd ----

static weir_status_t* check_bias(const weir_tensor_t* in, const weir_tensor_t* bias) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                       weir_tensor_shape_text(in, a));
  }
  if (bias->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Biases must be 1D: %s", weir_tensor_shape_text(bias, a));
  }
  if (bias->count != in->dims[in->rank - 1]) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
        weir_tensor_shape_text(bias, a), weir_tensor_shape_text(in, b));
  }
  if (bias->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Must provide at least 1 bias");
}

// Room for sums: the widest of the bounds, 2^17 times.
static float sum_range(const bounds_t* b) {
  const float of_y = -b->min_y > b->max_y ? -b->min_y : b->max_y;
  const float low = of_y > -b->min_x ? of_y : -b->min_x;
  return (low > b->max_x ? low : b->max_x) * 131072.0f;
}

static weir_status_t* bias_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *bias = weir_kernel_input(ctx, 1);
  bounds_t b = {0};
  weir_tensor_t* out = NULL;
  WEIR_TRY(quantized_scalar(ctx, 2, "min_input", &b.min_x));
  WEIR_TRY(quantized_scalar(ctx, 3, "max_input", &b.max_x));
  WEIR_TRY(quantized_scalar(ctx, 4, "min_bias", &b.min_y));
  WEIR_TRY(quantized_scalar(ctx, 5, "max_bias", &b.max_y));
  WEIR_TRY(check_bias(in, bias));
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  const float range = sum_range(&b);
  const weir_quantize_t to = weir_quantize_in(WEIR_DTYPE_QINT32, -range, range);
  table_t of_x, of_y;
  fill_floats(&of_x, weir_tensor_type(in), b.min_x, b.max_x, &to);
  fill_floats(&of_y, weir_tensor_type(bias), b.min_y, b.max_y, &to);
  job_t job = {.columns = bias->count,
               .x = in->data,
               .y = bias->data,
               .x_row = bias->count,
               .x_column = 1,
               .y_column = 1,
               .of_x = &of_x,
               .of_y = &of_y,
               .bias = (int32_t)weir_float_to_quantized(WEIR_DTYPE_QINT32, 0, -range, range),
               .z = out->data};
  run(ctx, &job, in->count / bias->count);
  return quantized_set_bounds(ctx, -range, range);
}

#define TYPES "T1: quantizedtype; T2: quantizedtype; "
#define BOUNDS "min_x: float; max_x: float; min_y: float; max_y: float"
#define KERNEL(COMPUTE) \
  WEIR_CPU_KERNEL(.types = "T1: quint8; T2: quint8; Toutput: qint32", .compute = (COMPUTE))
#define BIAS_KERNEL(TYPE) \
  { WEIR_DEVICE_CPU, .types = "T1: " TYPE "; T2: " TYPE "; out_type: qint32", .compute = bias_cpu }

const weir_op_module_t weir_ops_quantized_arithmetic = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedAdd",
         .summary = "Sums of quantised elements, with broadcasting",
         .attrs = TYPES "Toutput: quantizedtype = DT_QINT32",
         .inputs = "x: T1; y: T2; " BOUNDS,
         .outputs = "z: Toutput; min_z: float; max_z: float",
         .infer_shape = add_shape,
         .kernels = KERNEL(add_cpu)},
        {.name = "QuantizedMul",
         .summary = "Products of quantised elements, with broadcasting",
         .attrs = TYPES "Toutput: quantizedtype = DT_QINT32",
         .inputs = "x: T1; y: T2; " BOUNDS,
         .outputs = "z: Toutput; min_z: float; max_z: float",
         .infer_shape = mul_shape,
         .kernels = KERNEL(mul_cpu)},
        {.name = "QuantizedBiasAdd",
         .summary = "Adds a number for each index of the last dimension to quantised elements",
         .attrs = TYPES "out_type: quantizedtype",
         .inputs = "input: T1; bias: T2; min_input: float; max_input: float; min_bias: float; "
                   "max_bias: float",
         .outputs = "output: out_type; min_out: float; max_out: float",
         .infer_shape = bias_shape,
         .kernels = (const weir_kernel_def_t[]){BIAS_KERNEL("quint8"), BIAS_KERNEL("qint8"), {0}}},
        {0}}};
