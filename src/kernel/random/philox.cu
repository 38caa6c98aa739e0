// philox.cu — The generator of all random numbers, base/philox.h, for CUDA, and uniform and normal
// numbers of its words.
struct philox_t {
  uint32_t counter[4], key[2];
};
struct words_t {
  uint32_t at[4];
};

// The group |skip| calls on.
__device__ __forceinline__ words_t words_of(const philox_t& p, uint64_t skip) {
  uint64_t from = p.counter[0] | (uint64_t)p.counter[1] << 32, low = from + skip;
  uint64_t high = (p.counter[2] | (uint64_t)p.counter[3] << 32) + (low < from);
  uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32);
  uint32_t c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
  uint32_t k0 = p.key[0], k1 = p.key[1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    uint32_t a = 0xd2511f53u * c0, a_high = __umulhi(0xd2511f53u, c0);
    uint32_t b = 0xcd9e8d57u * c2, b_high = __umulhi(0xcd9e8d57u, c2);
    c0 = b_high ^ c1 ^ k0;
    c1 = b;
    c2 = a_high ^ c3 ^ k1;
    c3 = a;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {c0, c1, c2, c3};
}

__device__ __forceinline__ double unit_double(uint32_t high, uint32_t low) {
  uint64_t bits = (uint64_t)1023 << 52 | (uint64_t)(high & 0xfffffu) << 32 | low;
  return __longlong_as_double((long long)bits) - 1.0;
}
__device__ __forceinline__ float unit_float(uint32_t word) {
  return __uint_as_float(127u << 23 | (word & 0x7fffffu)) - 1.0f;
}
__device__ __forceinline__ void uniform_of(const uint32_t* words, float* value) {
  *value = unit_float(words[0]);
}
__device__ __forceinline__ void uniform_of(const uint32_t* words, double* value) {
  *value = unit_double(words[0], words[1]);
}
__device__ __forceinline__ void uniform_of(const uint32_t* words, half_t* value) {
  *value = element_t<half_t>::store((float)(words[0] & 0x3ffu) / 1024.0f);
}
__device__ __forceinline__ void uniform_of(const uint32_t* words, bfloat16_t* value) {
  *value = element_t<bfloat16_t>::store((float)(words[0] & 0x7fu) / 128.0f);
}

#define TWO_PI 6.283185307179586476925286766559

// Rounded from double, as the C library does, which the CPU calls.
__device__ __forceinline__ void normals_of(const uint32_t* words, float* pair) {
  float u = fmaxf(unit_float(words[0]), 1.0e-7f);
  float angle = (float)(TWO_PI * (double)unit_float(words[1]));
  float radius = sqrtf(-2.0f * (float)log((double)u));
  double sine, cosine;
  sincos((double)angle, &sine, &cosine);
  pair[0] = (float)sine * radius;
  pair[1] = (float)cosine * radius;
}
__device__ __forceinline__ void normals_of(const uint32_t* words, double* pair) {
  double u = fmax(unit_double(words[0], words[1]), 1.0e-7);
  double angle = TWO_PI * unit_double(words[2], words[3]);
  double radius = sqrt(-2.0 * log(u));
  sincos(angle, &pair[0], &pair[1]);
  pair[0] *= radius;
  pair[1] *= radius;
}
