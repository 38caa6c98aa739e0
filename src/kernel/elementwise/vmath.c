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
// next elements while they wait for a polynomial: two halves side by side take a fifth less.
#if defined(__aarch64__)
#define BUSY_ARRAY(head, f)                                \
  WEIR_CLONES head(const float* x, float* y, int64_t n) {  \
    int64_t half = n / 8 * 4;                              \
    WEIR_IVDEP                                             \
    for (int64_t i = 0; i < half; ++i) {                   \
      float a = f(x[i]), b = f(x[i + half]);               \
      y[i] = a;                                            \
      y[i + half] = b;                                     \
    }                                                      \
    for (int64_t i = 2 * half; i < n; ++i) y[i] = f(x[i]); \
  }
#else
#define BUSY_ARRAY ARRAY
#endif

BUSY_ARRAY(void weir_vexp, weir_vm_exp)
BUSY_ARRAY(void weir_vexp_down, weir_vm_exp_down)
BUSY_ARRAY(void weir_vlog, weir_vm_log)
BUSY_ARRAY(void weir_vtanh, weir_vm_tanh)
BUSY_ARRAY(void weir_vsigmoid, weir_vm_sigmoid)
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

#define TRIG_BLOCK 256

typedef void (*array_fn_t)(const float* x, float* y, int64_t n);

WEIR_CLONES static bool all_small(const float* x, int64_t n) {
  int large = 0;
  for (int64_t i = 0; i < n; ++i) large |= !(fabsf(x[i]) <= WEIR_TRIG_LIMIT);
  return large == 0;
}

// |small| where it is good, libm's |any| for the other elements: neighbours make no difference, or
// results would depend on how work is split.
static void by_blocks(const float* x, float* y, int64_t n, array_fn_t small, float (*any)(float)) {
  for (int64_t i = 0; i < n; i += TRIG_BLOCK) {
    int64_t count = WEIR_MIN(n - i, TRIG_BLOCK);
    if (all_small(x + i, count)) {
      small(x + i, y + i, count);
      continue;
    }
    float kept[TRIG_BLOCK];  // |y| may be |x|
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
