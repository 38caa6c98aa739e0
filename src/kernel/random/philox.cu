// philox.cu — The generator of all random numbers: base/philox.h, for CUDA.
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
