// debug_summary.c — DebugNanCount, DebugNumericSummary, DebugNumericSummaryV2: numbers about the
// numbers of a tensor.
#include <math.h>

#include "base/interrupt.h"
#include "ops/array/common.h"
#include "tensor/cast.h"

// Watching from elsewhere by debug URLs is refused.
static weir_status_t* check_urls(const weir_kernel_ctx_t* ctx) {
  if (weir_attrs_list(weir_kernel_attrs(ctx), "debug_urls")->count == 0) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "%s: debug_urls are not supported", ctx->node->name);
}

static double element_at(const weir_tensor_t* t, int64_t i) {
  const weir_dtype_t dtype = weir_tensor_type(t);
  double value = 0;
  (void)weir_element_to_double(dtype, (const char*)t->data + (size_t)i * weir_dtype_size(dtype),
                               &value);
  return value;
}

typedef struct tally_t {
  int64_t nan, low, negative, zero, positive, high;
  int64_t finite;
  double min, max, sum;
} tally_t;

// Counts by where elements are: at or beyond a bound, or between. NaN and infinities are in no sum.
static weir_status_t* tally(const weir_tensor_t* t, double lower, double upper, tally_t* out) {
  *out = (tally_t){.min = (double)INFINITY, .max = -(double)INFINITY};
  for (int64_t i = 0; i < t->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    const double x = element_at(t, i);
    if (isnan(x)) {
      ++out->nan;
      continue;
    }
    if (isinf(x)) {
      ++*(x > 0 ? &out->high : &out->low);
      continue;
    }
    ++*(x <= lower   ? &out->low
        : x >= upper ? &out->high
        : x < 0      ? &out->negative
        : x == 0     ? &out->zero
                     : &out->positive);
    ++out->finite;
    out->sum += x;
    out->min = x < out->min ? x : out->min;
    out->max = x > out->max ? x : out->max;
  }
  return NULL;
}

static weir_status_t* nan_count_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  tally_t t;
  WEIR_TRY(check_urls(ctx));
  WEIR_TRY(array_check_tensor_name(weir_attrs_string(weir_kernel_attrs(ctx), "tensor_name")));
  if (array_is_gated_off(weir_kernel_attrs(ctx))) return array_gated_off(ctx);
  WEIR_TRY(tally(in, 0, 0, &t));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){1}, &out));
  WEIR_TENSOR_DATA(out, int64_t)[0] = t.nan;
  return NULL;
}

static weir_status_t* variance(const weir_tensor_t* in, double mean, int64_t count, double* out) {
  double sum = 0;
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    const double x = element_at(in, i);
    if (isfinite(x)) sum += (x - mean) * (x - mean);
  }
  *out = sum / (double)count;
  return NULL;
}

static weir_status_t* summary_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  tally_t t;
  WEIR_TRY(check_urls(ctx));
  WEIR_TRY(array_check_tensor_name(weir_attrs_string(attrs, "tensor_name")));
  if (array_is_gated_off(attrs)) return array_gated_off(ctx);
  WEIR_TRY(tally(in, (double)weir_attrs_float(attrs, "lower_bound"),
                 (double)weir_attrs_float(attrs, "upper_bound"), &t));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){14 + in->rank}, &out));
  double mean = (double)NAN, deviation = (double)NAN;
  if (t.finite > 0) {
    mean = t.sum / (double)t.finite;
    WEIR_TRY(variance(in, mean, t.finite, &deviation));
  }
  const double facts[14] = {1,
                            (double)in->count,
                            (double)t.nan,
                            (double)t.low,
                            (double)t.negative,
                            (double)t.zero,
                            (double)t.positive,
                            (double)t.high,
                            t.min,
                            t.max,
                            mean,
                            deviation,
                            (double)in->dtype,
                            (double)in->rank};
  memcpy(out->data, facts, sizeof(facts));
  for (int i = 0; i < in->rank; ++i) WEIR_TENSOR_DATA(out, double)[14 + i] = (double)in->dims[i];
  return NULL;
}

// TensorFlow's says a scalar, which its kernel does not give.
static weir_status_t* nan_count_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set_vector(ctx, 0, array_is_gated_off(weir_shape_attrs(ctx)) ? 0 : 1);
}

// ---- DebugNumericSummaryV2 ----

enum {
  MODE_CURT_HEALTH = 2,
  MODE_CONCISE_HEALTH = 3,
  MODE_FULL_HEALTH = 4,
  MODE_SHAPE = 5,
  MODE_THREE_SLOTS = 8,
  SHAPE_DIMS = 6,
  MAX_FACTS = 11,
};

static int fact_count(int64_t mode) {
  switch (mode) {
    case MODE_CURT_HEALTH: return 2;
    case MODE_CONCISE_HEALTH: return 5;
    case MODE_FULL_HEALTH: return 11;
    case MODE_SHAPE: return 4 + SHAPE_DIMS;
    case MODE_THREE_SLOTS: return 3;
    default: return -1;
  }
}

// The last dimensions of a tensor that has more of them.
static void put_shape(const weir_tensor_t* in, double* facts) {
  facts[1] = (double)in->dtype;
  facts[2] = (double)in->rank;
  facts[3] = (double)in->count;
  const int first = WEIR_MAX(0, in->rank - SHAPE_DIMS);
  for (int i = first; i < in->rank; ++i) facts[4 + i - first] = (double)in->dims[i];
}

static void put_facts(int64_t mode, const weir_tensor_t* in, const tally_t* t, double* facts) {
  switch (mode) {
    case MODE_CURT_HEALTH: facts[1] = t->low + t->high + t->nan > 0; break;
    case MODE_CONCISE_HEALTH:
      facts[1] = (double)in->count;
      facts[2] = (double)t->low;
      facts[3] = (double)t->high;
      facts[4] = (double)t->nan;
      break;
    case MODE_FULL_HEALTH:
      facts[1] = -1;  // the device's number, which nobody has given
      facts[2] = (double)in->dtype;
      facts[3] = (double)in->rank;
      facts[4] = (double)in->count;
      facts[5] = (double)t->low;
      facts[6] = (double)t->high;
      facts[7] = (double)t->nan;
      facts[8] = (double)t->negative;
      facts[9] = (double)t->zero;
      facts[10] = (double)t->positive;
      break;
    case MODE_SHAPE: put_shape(in, facts); break;
    default:
      facts[0] = t->low > 0 ? -(double)INFINITY : 0;
      facts[1] = t->high > 0 ? (double)INFINITY : 0;
      facts[2] = t->nan > 0 ? (double)NAN : 0;
  }
}

static weir_status_t* check_id(int64_t mode, int64_t id, weir_dtype_t dtype) {
  const int bits = dtype == WEIR_DTYPE_FLOAT ? 24 : 53;
  if (mode == MODE_THREE_SLOTS || id <= INT64_C(1) << bits) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "DebugNumericSummaryV2Op requires tensor_id to be less than or equal to "
                     "(2^%d). Given tensor_id:%lld",
                     bits, (long long)id);
}

static weir_status_t* summary_v2_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_attrs_type(attrs, "output_dtype");
  const int64_t mode = weir_attrs_int(attrs, "tensor_debug_mode");
  const int64_t id = weir_attrs_int(attrs, "tensor_id");
  const int count = fact_count(mode);
  double facts[MAX_FACTS] = {(double)id};
  weir_tensor_t* out = NULL;
  tally_t t;
  if (count < 0) {
    return WEIR_STATUS(UNIMPLEMENTED, "Unimplemented tensor debug mode: %lld", (long long)mode);
  }
  WEIR_TRY(check_id(mode, id, dtype));
  WEIR_TRY(tally(in, -(double)INFINITY, (double)INFINITY, &t));
  put_facts(mode, in, &t, facts);
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){count}, &out));
  return weir_cast_elements(dtype, out->data, WEIR_DTYPE_DOUBLE, facts, count);
}

#define DEBUG_ATTRS \
  "T: type; device_name: string = ''; tensor_name: string = ''; debug_urls: list(string) = []; "

const weir_op_module_t weir_ops_array_debug_summary = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DebugNanCount",
         .attrs = DEBUG_ATTRS "gated_grpc: bool = false",
         .inputs = "input: T",
         .outputs = "output: int64",
         .flags = WEIR_OP_UNINITIALIZED_INPUT,
         .summary = "How many elements are not a number.",
         .infer_shape = nan_count_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nan_count_cpu,
                                    .types = "T: bfloat16, double, float, half, int16, int32, "
                                             "int64, int8, uint16, uint32, uint64, uint8")},
        {.name = "DebugNumericSummary",
         .attrs = DEBUG_ATTRS "lower_bound: float = -inf; upper_bound: float = inf; "
                              "mute_if_healthy: bool = false; gated_grpc: bool = false",
         .inputs = "input: T",
         .outputs = "output: double",
         .flags = WEIR_OP_UNINITIALIZED_INPUT,
         .summary = "Counts, extremes, mean and variance of the elements.",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute = summary_cpu,
                                    .types = "T: bool, double, float, int16, int32, int64, int8, "
                                             "uint16, uint32, uint64, uint8")},
        {.name = "DebugNumericSummaryV2",
         .attrs = "output_dtype: {float, double} = DT_FLOAT; T: type; tensor_debug_mode: int = -1; "
                  "tensor_id: int = -1",
         .inputs = "input: T",
         .outputs = "output: output_dtype",
         .summary = "Counts of the elements, or the shape, by a mode.",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute = summary_v2_cpu,
                                    .types = "T: bfloat16, bool, double, float, half, int16, "
                                             "int32, int64, int8, uint16, uint32, uint64, uint8")},
        {0}}};
