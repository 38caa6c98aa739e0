// vmath.c — Array forms of the vectorisable float functions.
#include "kernel/elementwise/vmath.h"

#include "kernel/elementwise/vmath_erf.h"
#include "kernel/elementwise/vmath_trig.h"

#define ARRAY(head, f)                                    \
  WEIR_CLONES head(const float* x, float* y, int64_t n) { \
    WEIR_IVDEP                                            \
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);       \
  }

// The same for the functions that programs spend time in. Cores with short queues see little of the
// next elements while they wait for a polynomial: four quarters side by side take a third less.
#if defined(__aarch64__)
#define BUSY_ARRAY(head, f)                                                         \
  WEIR_CLONES head(const float* x, float* y, int64_t n) {                           \
    int64_t m = n / 16 * 4;                                                         \
    WEIR_IVDEP                                                                      \
    for (int64_t i = 0; i < m; ++i) {                                               \
      float a = f(x[i]), b = f(x[i + m]), c = f(x[i + 2 * m]), d = f(x[i + 3 * m]); \
      y[i] = a;                                                                     \
      y[i + m] = b;                                                                 \
      y[i + 2 * m] = c;                                                             \
      y[i + 3 * m] = d;                                                             \
    }                                                                               \
    for (int64_t i = 4 * m; i < n; ++i) y[i] = f(x[i]);                             \
  }
#else
#define BUSY_ARRAY ARRAY
#endif

typedef void (*array_fn_t)(const float* x, float* y, int64_t n);

enum { BLOCK = 256 };

// Whether no |x| is above |limit| in magnitude, or NaN: by bits, whose order is that of magnitudes.
WEIR_CLONES static bool all_within(const float* x, int64_t n, float limit) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t magnitude = weir_float_bits(x[i]) & 0x7fffffffu;
    largest = WEIR_MAX(largest, magnitude);
  }
  return largest <= weir_float_bits(limit);
}

// |calm| for blocks whose arguments allow it, |any| for others, and where looking does not pay.
static void calmly(const float* x, float* y, int64_t n, float limit, array_fn_t calm,
                   array_fn_t any) {
  enum { FEW = 16 };
  if (n < FEW) {
    any(x, y, n);
    return;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t count = WEIR_MIN(n - i, (int64_t)BLOCK);
    (all_within(x + i, count, limit) ? calm : any)(x + i, y + i, count);
  }
}

BUSY_ARRAY(static void calm_exp, weir_vm_exp_calm)
BUSY_ARRAY(static void calm_tanh, weir_vm_tanh_calm)
BUSY_ARRAY(static void calm_sigmoid, weir_vm_sigmoid_calm)
ARRAY(static void any_exp, weir_vm_exp)
ARRAY(static void any_exp_down, weir_vm_exp_down)
ARRAY(static void any_tanh, weir_vm_tanh)
ARRAY(static void any_sigmoid, weir_vm_sigmoid)

void weir_vexp(const float* x, float* y, int64_t n) {
  calmly(x, y, n, WEIR_EXP_CALM, calm_exp, any_exp);
}

void weir_vexp_down(const float* x, float* y, int64_t n) {
  calmly(x, y, n, WEIR_EXP_CALM, calm_exp, any_exp_down);
}

void weir_vtanh(const float* x, float* y, int64_t n) {
  calmly(x, y, n, WEIR_TANH_CALM, calm_tanh, any_tanh);
}

void weir_vsigmoid(const float* x, float* y, int64_t n) {
  calmly(x, y, n, WEIR_SIGMOID_CALM, calm_sigmoid, any_sigmoid);
}

BUSY_ARRAY(void weir_vlog, weir_vm_log)
ARRAY(void weir_vexpm1, weir_vm_expm1)
ARRAY(void weir_vlog1p, weir_vm_log1p)
ARRAY(void weir_vasin, weir_vm_asin)
ARRAY(void weir_vacos, weir_vm_acos)
ARRAY(void weir_vatan, weir_vm_atan)
ARRAY(void weir_vsinh, weir_vm_sinh)
ARRAY(void weir_vcosh, weir_vm_cosh)
ARRAY(void weir_vatanh, weir_vm_atanh)
ARRAY(void weir_verf, weir_vm_erf)
ARRAY(void weir_verfc, weir_vm_erfc)
ARRAY(void weir_verfinv, weir_vm_erfinv)
ARRAY(void weir_vndtri, weir_vm_ndtri)

// ---- functions with a limit ----
ARRAY(static void small_sin, weir_vm_sin)
ARRAY(static void small_cos, weir_vm_cos)
ARRAY(static void small_tan, weir_vm_tan)

// |small| where it is good, libm's |any| for the other elements: neighbours make no difference, or
// results would depend on how work is split.
static void by_blocks(const float* x, float* y, int64_t n, array_fn_t small, float (*any)(float)) {
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t count = WEIR_MIN(n - i, (int64_t)BLOCK);
    if (all_within(x + i, count, WEIR_TRIG_LIMIT)) {
      small(x + i, y + i, count);
      continue;
    }
    float kept[BLOCK];  // |y| may be |x|
    memcpy(kept, x + i, (size_t)count * sizeof(*kept));
    small(kept, y + i, count);
    for (int64_t j = 0; j < count; ++j) {
      if (!(fabsf(kept[j]) <= WEIR_TRIG_LIMIT)) y[i + j] = any(kept[j]);
    }
  }
}

void weir_vsin(const float* x, float* y, int64_t n) { by_blocks(x, y, n, small_sin, sinf); }
void weir_vcos(const float* x, float* y, int64_t n) { by_blocks(x, y, n, small_cos, cosf); }
void weir_vtan(const float* x, float* y, int64_t n) { by_blocks(x, y, n, small_tan, tanf); }
