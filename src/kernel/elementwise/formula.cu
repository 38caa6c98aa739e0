// formula.cu — The words in which formulas of elementwise operations are written (unary_ops.inc,
// binary_ops.inc), for CUDA. Where a formula is used, T, R, U and ACC are types, as those files say.
//
// A formula rounds after each operation, as on a CPU: a product is not contracted with the sum it is
// in. So it gives the same bits wherever it stands, alone or among the steps of a fused program.
#define NO_CONTRACTION

#define M(f) f
#define V(f) f
#define ROUNDED(v) (element_t<T>::load(element_t<T>::store(v)))
#define QUOTIENT(a, b) ((b) == (T)-1 ? (T)((U)0 - (U)(a)) : (T)((a) / (b)))
#define REMAINDER(a, b) ((b) == (T)-1 ? (T)0 : (T)((a) % (b)))
// An integer has no quotient by 0; a GPU cannot say so, and answers 0.
#define UNLESS(bad, value) ((bad) ? (T)0 : (T)(value))
#define SHIFT(b) ((b) < 0 ? 0 : (b) >= (int)(8 * sizeof(T)) ? (int)(8 * sizeof(T)) - 1 : (int)(b))
#define POPCOUNT(a) __popcll((uint64_t)(a) & (~0ull >> (64 - 8 * sizeof(T))))
#define WEIR_CAT2(a, b) a##_##b
#define floor_mod_of_ACC floor_mod_of

template <typename A>
__device__ __forceinline__ A sigmoid(A a) {
  return (A)1 / ((A)1 + exp(-a));
}
template <typename A>
__device__ __forceinline__ A ndtri(A a) {
  return normcdfinv(a);
}
template <typename A>
__device__ __forceinline__ A floor_mod_of(A a, A b) {
  A rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <typename A>
__device__ __forceinline__ A real_power(A a, A b) {
  return pow(a, b);
}
__device__ __forceinline__ uint64_t power_of(uint64_t base, uint64_t exponent) {
  uint64_t power = 1;
  for (; exponent; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}
// ---- complex numbers ----
#define __builtin_complex(a, b) complex_of(a, b)
template <typename A>
__device__ __forceinline__ complex_t<A> complex_of(A real, A imag) {
  return {real, imag};
}
template <typename A>
__device__ __forceinline__ complex_t<A> conj(complex_t<A> z) {
  return {z.real, -z.imag};
}
template <typename A>
__device__ __forceinline__ A creal(complex_t<A> z) {
  return z.real;
}
template <typename A>
__device__ __forceinline__ A cimag(complex_t<A> z) {
  return z.imag;
}
template <typename A>
__device__ __forceinline__ A cabs(complex_t<A> z) {
  return hypot(z.real, z.imag);
}
template <typename A>
__device__ __forceinline__ A carg(complex_t<A> z) {
  return atan2(z.imag, z.real);
}

#define weir_lgamma(v) lgamma((ACC)(v))
#define SPECIAL static __device__
