// vmath.c — Array forms of the vectorisable float functions.
#include "kernel/vmath.h"

WEIR_CLONES void weir_vexp(const float* x, float* y, int64_t n) {
  WEIR_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = weir_vm_exp(x[i]);
}

WEIR_CLONES void weir_vexp_down(const float* x, float* y, int64_t n) {
  WEIR_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = weir_vm_exp_down(x[i]);
}

WEIR_CLONES void weir_vlog(const float* x, float* y, int64_t n) {
  WEIR_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = weir_vm_log(x[i]);
}

WEIR_CLONES void weir_vtanh(const float* x, float* y, int64_t n) {
  WEIR_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = weir_vm_tanh(x[i]);
}

WEIR_CLONES void weir_vsigmoid(const float* x, float* y, int64_t n) {
  WEIR_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = weir_vm_sigmoid(x[i]);
}

WEIR_CLONES void weir_verf(const float* x, float* y, int64_t n) {
  WEIR_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = weir_vm_erf(x[i]);
}

// Beyond it, reduction by pi/2 in two doubles loses bits; libm takes over.
#define TRIG_LIMIT 1.0e6f
#define TRIG_BLOCK 256

// sin(x + quadrant * pi/2) for |x| <= TRIG_LIMIT.
WEIR_INLINE float trig(float x, uint32_t quadrant) {
  const double magic = 0x1.8p52;
  double shifted = (double)x * 0x1.45f306dc9c883p-1 + magic;
  double n = shifted - magic;
  // pi/2 in two parts; the first has 33 bits, so that its product with n is exact.
  float r = (float)(((double)x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof(bits));
  quadrant += (uint32_t)bits;
  float r2 = r * r;
  float s = WEIR_FMAF(2.717366608e-06f, r2, -1.983923265e-04f);
  s = WEIR_FMAF(s, r2, 8.333329056e-03f);
  s = WEIR_FMAF(s, r2, -1.666666664e-01f);
  s = WEIR_FMAF(s * r2, r, r);
  float c = WEIR_FMAF(2.442567968e-05f, r2, -1.388725147e-03f);
  c = WEIR_FMAF(c, r2, 4.166664437e-02f);
  c = WEIR_FMAF(c * r2, r2, WEIR_FMAF(-0.5f, r2, 1.0f));
  float y = quadrant & 1u ? c : s;
  // A negative zero keeps its sign: 0 - 0 above would lose it.
  y = x == 0.0f && !(quadrant & 1u) ? x : y;
  return quadrant & 2u ? -y : y;
}

WEIR_CLONES static bool all_small(const float* x, int64_t n) {
  int large = 0;
  for (int64_t i = 0; i < n; ++i) large |= !(fabsf(x[i]) <= TRIG_LIMIT);
  return large == 0;
}

WEIR_CLONES static void trig_block(const float* x, float* y, int64_t n, uint32_t quadrant) {
  WEIR_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = trig(x[i], quadrant);
}

void weir_vsin(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += TRIG_BLOCK) {
    int64_t count = WEIR_MIN(n - i, TRIG_BLOCK);
    if (all_small(x + i, count)) {
      trig_block(x + i, y + i, count, 0);
    } else {
      for (int64_t j = i; j < i + count; ++j) y[j] = sinf(x[j]);
    }
  }
}

void weir_vcos(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += TRIG_BLOCK) {
    int64_t count = WEIR_MIN(n - i, TRIG_BLOCK);
    if (all_small(x + i, count)) {
      trig_block(x + i, y + i, count, 1);
    } else {
      for (int64_t j = i; j < i + count; ++j) y[j] = cosf(x[j]);
    }
  }
}
