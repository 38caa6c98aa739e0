// subnormal.h — Kernels take numbers too small to be normal for zero, and give zero instead of
// them, as TensorFlow's do: arithmetic with such numbers is a hundred times slower on many CPUs.
//
// A setting of the thread. Our own threads that run kernels keep it; on those of the program it
// holds while they work on a step. A loop that a pool splits has its caller's on every thread.
#ifndef WEIR_BASE_SUBNORMAL_H_
#define WEIR_BASE_SUBNORMAL_H_

#include "base/base.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef uint64_t weir_float_mode_t;

#if defined(__x86_64__)
#define WEIR_FLUSH_SUBNORMALS_ 0x8040u  // MXCSR: results to zero, and arguments
WEIR_INLINE weir_float_mode_t weir_float_mode(void) { return _mm_getcsr(); }
WEIR_INLINE void weir_float_mode_restore(weir_float_mode_t mode) { _mm_setcsr((uint32_t)mode); }
#elif defined(__aarch64__)
#define WEIR_FLUSH_SUBNORMALS_ (1u << 24)  // FPCR.FZ: both
WEIR_INLINE weir_float_mode_t weir_float_mode(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
WEIR_INLINE void weir_float_mode_restore(weir_float_mode_t mode) {
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
#define WEIR_FLUSH_SUBNORMALS_ 0u
WEIR_INLINE weir_float_mode_t weir_float_mode(void) { return 0; }
WEIR_INLINE void weir_float_mode_restore(weir_float_mode_t mode) { (void)mode; }
#endif

// What held before: give it back to weir_float_mode_restore.
WEIR_INLINE weir_float_mode_t weir_flush_subnormals(void) {
  weir_float_mode_t before = weir_float_mode();
  if ((before & WEIR_FLUSH_SUBNORMALS_) != WEIR_FLUSH_SUBNORMALS_)
    weir_float_mode_restore(before | WEIR_FLUSH_SUBNORMALS_);
  return before;
}

#endif  // WEIR_BASE_SUBNORMAL_H_
