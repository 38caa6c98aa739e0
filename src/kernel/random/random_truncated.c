// random_truncated.c — Normal draws cut off at both ends, in the precision of their type.
#include "kernel/random/random_draw.h"
#include "tensor/numeric.h"

static void load_half(const weir_philox_t* philox, const weir_random_spec_t* spec,
                      float values[4]) {
  weir_half_t narrow[4];
  weir_random_fill(NULL, spec, *philox, narrow, 4);
  for (int i = 0; i < 4; ++i) values[i] = weir_half_to_float(narrow[i]);
}
static float round_half(float value) { return weir_half_to_float(weir_half_from_float(value)); }

static float mul_add_half(float a, float b, float c) { return round_half(round_half(a * b) + c); }

#define SAME(a) (a)

#define SUFFIX half
#define T float
#define ROUND round_half
#define MUL_ADD mul_add_half
#define PER_CALL 4
#define LOG logf
#define EXP expf
#define SQRT sqrtf
#define DTYPE WEIR_DTYPE_HALF
#define STORE(out, i, value) (((weir_half_t*)(out))[i] = weir_half_from_float(value))
#define LOAD load_half
#include "kernel/random/random_truncated.inc"

#define SUFFIX float
#define T float
#define ROUND SAME
#define MUL_ADD WEIR_MUL_ADD_FLOAT
#define PER_CALL 4
#define LOG logf
#define EXP expf
#define SQRT sqrtf
#define DTYPE WEIR_DTYPE_FLOAT
#define STORE(out, i, value) (((float*)(out))[i] = (value))
#define LOAD(philox, spec, values) weir_random_fill(NULL, spec, *(philox), values, PER_CALL)
#include "kernel/random/random_truncated.inc"

#define SUFFIX double
#define T double
#define ROUND SAME
#define MUL_ADD WEIR_MUL_ADD
#define PER_CALL 2
#define LOG log
#define EXP exp
#define SQRT sqrt
#define DTYPE WEIR_DTYPE_DOUBLE
#define STORE(out, i, value) (((double*)(out))[i] = (value))
#define LOAD(philox, spec, values) weir_random_fill(NULL, spec, *(philox), values, PER_CALL)
#include "kernel/random/random_truncated.inc"

weir_status_t* weir_random_truncated(weir_philox_t* philox, weir_dtype_t dtype,
                                     const weir_truncated_t* parameters, void* out, int64_t begin,
                                     int64_t end) {
  if (begin >= end) return NULL;
  switch (dtype) {
    case WEIR_DTYPE_HALF: return truncated_half(philox, parameters, out, begin, end);
    case WEIR_DTYPE_FLOAT: return truncated_float(philox, parameters, out, begin, end);
    default: return truncated_double(philox, parameters, out, begin, end);
  }
}
