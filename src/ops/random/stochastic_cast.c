// stochastic_cast.c — StochasticCastToInt: numbers to one of the two integers next to them, the
// nearer the likelier.
//
// One stream of groups of random words serves all elements in turn, as in TensorFlow's kernel for
// processors with vectors of 16 bytes: of float and double, a vector of results takes a group for
// each vector of numbers; all that is left, and 16-bit numbers, take a group each, unless they are
// integers already.
#include <math.h>

#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"
#include "tensor/numeric.h"

static weir_status_t* cast_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* key = NULL;
  int64_t one;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &key));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(key, 0), 1, &one));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

// What the elements' type makes of numbers: all are computed as doubles that are rounded to it.
static double to_type(weir_dtype_t dtype, double value) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: return (double)weir_half_to_float(weir_half_from_float((float)value));
    case WEIR_DTYPE_BFLOAT16:
      return (double)weir_bfloat16_to_float(weir_bfloat16_from_float((float)value));
    case WEIR_DTYPE_FLOAT: return (double)(float)value;
    default: return value;
  }
}

static double element_at(const weir_tensor_t* t, int64_t i) {
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_HALF: return (double)weir_half_to_float(WEIR_TENSOR_DATA(t, weir_half_t)[i]);
    case WEIR_DTYPE_BFLOAT16:
      return (double)weir_bfloat16_to_float(WEIR_TENSOR_DATA(t, weir_bfloat16_t)[i]);
    case WEIR_DTYPE_FLOAT: return (double)WEIR_TENSOR_DATA(t, float)[i];
    default: return WEIR_TENSOR_DATA(t, double)[i];
  }
}

// Number |i| in [0, 1) of a group: as many bits as the type has.
static double uniform(weir_dtype_t dtype, const uint32_t group[4], int i) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: return (double)(group[i] & 0x3ff) * 0x1p-10;
    case WEIR_DTYPE_BFLOAT16: return (double)(group[i] & 0x7f) * 0x1p-7;
    case WEIR_DTYPE_FLOAT: return (double)(group[i] & 0x7fffff) * 0x1p-23;
    default: return weir_random_to_double(group[2 * i], group[2 * i + 1]);
  }
}

typedef struct cast_t {
  weir_dtype_t from;
  double low, high;  // of the integers, in the elements' type
  weir_philox_t philox;
} cast_t;

static double bounded(const cast_t* c, double value, double rounded) {
  if (isnan(value)) return 0;
  return value >= c->high ? c->high : value <= c->low ? c->low : rounded;
}

static double round_alone(cast_t* c, double value) {
  uint32_t group[4];
  if (isnan(value) || value >= c->high || value <= c->low || floor(value) == value)
    return bounded(c, value, value);
  weir_philox_next(&c->philox, group);
  const double random = uniform(c->from, group, 0);
  if (value < 0) return floor(to_type(c->from, value + random));
  return floor(to_type(c->from, to_type(c->from, value + 1) - random));
}

static double round_in_vector(const cast_t* c, double value, double random) {
  if (floor(value) == value) return bounded(c, value, value);
  const double shift = value < 0 ? random : 1 - random;  // exact
  return bounded(c, value, floor(to_type(c->from, value + shift)));
}

static void put(weir_tensor_t* out, int64_t i, double value) {
  const int32_t wide = value >= 0x1p31 ? INT32_MAX : value <= -0x1p31 ? INT32_MIN : (int32_t)value;
  switch (weir_tensor_type(out)) {
    case WEIR_DTYPE_INT8: WEIR_TENSOR_DATA(out, int8_t)[i] = (int8_t)wide; break;
    case WEIR_DTYPE_INT16: WEIR_TENSOR_DATA(out, int16_t)[i] = (int16_t)wide; break;
    default: WEIR_TENSOR_DATA(out, int32_t)[i] = wide; break;
  }
}

static void cast_all(cast_t* c, const weir_tensor_t* in, weir_tensor_t* out) {
  const bool is_wide = c->from == WEIR_DTYPE_FLOAT || c->from == WEIR_DTYPE_DOUBLE;
  const int of_vector = c->from == WEIR_DTYPE_FLOAT ? 4 : 2;
  const int64_t results = 16 / (int64_t)weir_dtype_size(weir_tensor_type(out));
  const int64_t vectors_end = is_wide ? out->count / results * results : 0;
  for (int64_t i = 0; i < vectors_end; i += of_vector) {
    uint32_t group[4];
    weir_philox_next(&c->philox, group);
    for (int k = 0; k < of_vector; ++k)
      put(out, i + k, round_in_vector(c, element_at(in, i + k), uniform(c->from, group, k)));
  }
  for (int64_t i = vectors_end; i < out->count; ++i) put(out, i, round_alone(c, element_at(in, i)));
}

static weir_status_t* cast_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_philox_t checked;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_philox_of_key(ctx, &checked));
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  const int bits = 8 * (int)weir_dtype_size(weir_tensor_type(out)) - 1;
  cast_t c = {.from = weir_tensor_type(in),
              .low = -ldexp(1, bits),
              .high = to_type(weir_tensor_type(in), ldexp(1, bits) - 1),
              .philox = weir_philox_seed(*WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), uint64_t),
                                         *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), uint64_t))};
  if (c.from == WEIR_DTYPE_HALF && bits == 31) c.low = -INFINITY;
  cast_all(&c, in, out);
  return NULL;
}

const weir_op_module_t weir_ops_random_stochastic_cast = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StochasticCastToInt",
         .attrs = "Tin: {half, bfloat16, float, double}; Tout: {int8, int16, int32}",
         .inputs = "input: Tin; key: uint64; counter: uint64; alg: int32",
         .outputs = "output: Tout",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "One of the two integers next to each number, the nearer the likelier",
         .infer_shape = cast_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cast_cpu, .host_inputs = "alg")},
        {0}}};
