// prelude.cu — What every kernel's source begins with: types of fixed size, half and bfloat16 with
// their conversions, and the words in which formulas of elementwise operations are written.
//
// NVRTC has no header of the C library, and those of CUDA may not be installed.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

struct half_t {
  uint16_t bits;
};
struct bfloat16_t {
  uint16_t bits;
};
template <typename R>
struct alignas(2 * sizeof(R)) complex_t {
  R real, imag;
};

// What is computed in, and how elements come there and back.
template <typename T>
struct element_t {
  typedef T acc_t;
  static __device__ __forceinline__ T load(T v) { return v; }
  template <typename V>
  static __device__ __forceinline__ T store(V v) {
    return (T)v;
  }
};
template <>
struct element_t<half_t> {
  typedef float acc_t;
  static __device__ __forceinline__ float load(half_t v) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(v.bits));
    return value;
  }
  static __device__ __forceinline__ half_t store(float value) {
    half_t v;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v.bits) : "f"(value));
    return v;
  }
};
template <>
struct element_t<bfloat16_t> {
  typedef float acc_t;
  static __device__ __forceinline__ float load(bfloat16_t v) {
    return __int_as_float((int)v.bits << 16);
  }
  static __device__ __forceinline__ bfloat16_t store(float value) {
    bfloat16_t v;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v.bits) : "f"(value));
    return v;
  }
};

// Sixteen bytes of elements, moved at once.
template <typename T, int N>
struct alignas(sizeof(T) * N) pack_t {
  T at[N];
};

// Stores one whole. Left to itself the compiler stores element by element where they come by
// different ways, and that takes memory several times as long.
template <typename T, int N>
__device__ __forceinline__ void store_whole(pack_t<T, N>* to, const pack_t<T, N>& pack) {
  constexpr int size = sizeof(T) * N;
  const uint32_t* words = (const uint32_t*)&pack;
  if constexpr (size % 16 == 0) {
#pragma unroll
    for (int i = 0; i < size / 4; i += 4)
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"((uint32_t*)to + i),
                   "r"(words[i]), "r"(words[i + 1]), "r"(words[i + 2]), "r"(words[i + 3]));
  } else if constexpr (size == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]), "r"(words[1]));
  } else {
    *to = pack;
  }
}

// A number to divide by, 32 bits wide: |n| / size is (n * multiplier / 2^32 + n) >> shift, for n
// below 2^31.
struct divisor_t {
  uint32_t size, multiplier, shift;
};
__device__ __forceinline__ uint32_t quotient_of(uint32_t n, const divisor_t& by) {
  return (__umulhi(n, by.multiplier) + n) >> by.shift;
}

// Of numbers that are not negative: by 32 bits where they fit, which takes a fraction of the time.
__device__ __forceinline__ int64_t quotient_of(int64_t n, int64_t by) {
  return ((uint64_t)n | (uint64_t)by) <= 0xffffffff ? (int64_t)((uint32_t)n / (uint32_t)by)
                                                    : n / by;
}

// Threads of a grid in one row: this one, and how many there are.
__device__ __forceinline__ int64_t thread_of_grid() {
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t threads_of_grid() { return (int64_t)gridDim.x * blockDim.x; }
