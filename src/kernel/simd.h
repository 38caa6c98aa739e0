// simd.h — How hot loops ask the compiler for vector code without assuming more than the baseline
// instruction set.
//
// Loops are plain C. WEIR_CLONES compiles a function several times on x86-64 and picks at load
// time; elsewhere the baseline (SSE2, NEON) is what there is. Results do not depend on the choice:
// no clone enables contraction.
#ifndef WEIR_KERNEL_SIMD_H_
#define WEIR_KERNEL_SIMD_H_

#include <math.h>

#include "base/base.h"

// Of the C libraries glibc alone runs the resolvers (musl would call an address never set).
// Sanitizers instrument them, though they run before their runtime is up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WEIR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WEIR_CLONES
#endif

// Before a loop whose iteration i touches only elements i: an output may be the same memory as an
// input, which the compiler's own overlap check would send to scalar code.
#if defined(__clang__)
#define WEIR_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define WEIR_IVDEP _Pragma("GCC ivdep")
#else
#define WEIR_IVDEP
#endif

// Before a short inner loop over lanes: the vectoriser wants it whole, not laid out in scalars.
#if defined(__clang__)
#define WEIR_NO_UNROLL _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__)
#define WEIR_NO_UNROLL _Pragma("GCC unroll 1")
#else
#define WEIR_NO_UNROLL
#endif

// The larger and the smaller of two numbers in one instruction; |a| where |b| is NaN, and either of
// unlike zeros.
#if defined(__aarch64__)
#define WEIR_LARGER(a, b) _Generic((a), float : fmaxf, double : fmax)(a, b)
#define WEIR_SMALLER(a, b) _Generic((a), float : fminf, double : fmin)(a, b)
#else
#define WEIR_LARGER(a, b) ((b) > (a) ? (b) : (a))
#define WEIR_SMALLER(a, b) ((b) < (a) ? (b) : (a))
#endif

// a * b + c, fused where that is one instruction of the baseline.
#if defined(__FP_FAST_FMAF)
#define WEIR_FMAF(a, b, c) __builtin_fmaf((a), (b), (c))
#else
#define WEIR_FMAF(a, b, c) ((a) * (b) + (c))
#endif

#endif  // WEIR_KERNEL_SIMD_H_
