// random.cu — Random numbers by Philox, the CPU's (random.c) to the bit, or, where sines and
// logarithms are in them, to the last few. Before this text come philox.cu and the definitions of
//
//   T     the type of the numbers
//   KIND  as in weir_random_t: UNIFORM, NORMAL, TRUNCATED_NORMAL, UNIFORM_INT or FULL_INT
enum { UNIFORM, NORMAL, TRUNCATED_NORMAL, UNIFORM_INT, FULL_INT };
enum {
  IS_WIDE = sizeof(T) == 8,
  GROUP = IS_WIDE ? 2 : 4
};  // numbers that one call of Philox gives

template <typename V>
__device__ __forceinline__ V integer_of(const uint32_t* words) {
  return IS_WIDE ? (V)(words[0] | (uint64_t)words[1] << 32) : (V)words[0];
}

typedef pack_t<T, GROUP> group_t;

#if KIND == 0
__device__ __forceinline__ group_t group_of(words_t words, uint64_t low, uint64_t range) {
  group_t group;
#pragma unroll
  for (int i = 0; i < GROUP; ++i) uniform_of(words.at + i * (4 / GROUP), &group.at[i]);
  return group;
}
#elif KIND == 1
__device__ __forceinline__ group_t group_of(words_t words, uint64_t low, uint64_t range) {
  group_t group;
#pragma unroll
  for (int i = 0; i < GROUP; i += 2) {
    element_t<T>::acc_t pair[2];
    normals_of(words.at + i * (4 / GROUP), pair);
    group.at[i] = element_t<T>::store(pair[0]);
    group.at[i + 1] = element_t<T>::store(pair[1]);
  }
  return group;
}
#elif KIND >= 3
__device__ __forceinline__ group_t group_of(words_t words, uint64_t low, uint64_t range) {
  group_t group;
#pragma unroll
  for (int i = 0; i < GROUP; ++i) {
#if KIND == 4
    group.at[i] = integer_of<T>(words.at + i * (4 / GROUP));
#else
    if (IS_WIDE) group.at[i] = (T)(low + integer_of<uint64_t>(words.at + 2 * i) % range);
    else group.at[i] = (T)((uint32_t)low + words.at[i] % (uint32_t)range);
#endif
  }
  return group;
}
#endif

#if KIND == 2
// Each group has 256 calls an output of its own to reject from.
extern "C" __global__ void fill(T* dst, int64_t count, philox_t philox, const philox_t* anew,
                                uint64_t low, uint64_t range, int is_aligned) {
  enum { A_PAIR = IS_WIDE ? 4 : 2 };  // words
  if (anew) philox = *anew;
  int64_t groups = (count + GROUP - 1) / GROUP;
  for (int64_t g = thread_of_grid(); g < groups; g += threads_of_grid()) {
    int64_t at = g * GROUP, last = at + GROUP < count ? at + GROUP : count;
    words_t words;
    for (uint64_t call = (uint64_t)g * GROUP * 256 / 4, used = 4; at < last; used += A_PAIR) {
      if (used == 4) {
        words = words_of(philox, call++);
        used = 0;
      }
      element_t<T>::acc_t pair[2];
      normals_of(words.at + (A_PAIR == 4 ? 0 : used), pair);
      if (fabs(pair[0]) < 2) dst[at++] = element_t<T>::store(pair[0]);
      if (at < last && fabs(pair[1]) < 2) dst[at++] = element_t<T>::store(pair[1]);
    }
  }
}
#else
extern "C" __global__ void fill(T* dst, int64_t count, philox_t philox, const philox_t* anew,
                                uint64_t low, uint64_t range, int is_aligned) {
  if (anew) philox = *anew;
  int64_t groups = (count + GROUP - 1) / GROUP;
  for (int64_t g = thread_of_grid(); g < groups; g += threads_of_grid()) {
    group_t group = group_of(words_of(philox, (uint64_t)g), low, range);
    if (is_aligned && (g + 1) * GROUP <= count) {
      store_whole((group_t*)dst + g, group);
    } else {
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        if (g * GROUP + i < count) dst[g * GROUP + i] = group.at[i];
      }
    }
  }
}
#endif
