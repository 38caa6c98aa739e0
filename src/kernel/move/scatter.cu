// scatter.cu — Putting slices into a tensor by rows of indices. Before this text come the
// definitions of
//
//   T      the type of the elements; where they replace others, one of their size
//   INDEX  that of the indices
//   MODE   as in weir_scatter_t: ASSIGN, ADD, SUB, MUL, DIV, MIN or MAX
//   WRAPS  whether indices go round: -1 is the last one, and so is twice the size less one
//
// Where an index is out of range nothing is put. Of several slices for one place that are to
// replace it, the last one does. A few rows are added up in their order, as on the CPU; sums of
// many floating-point numbers depend on who comes when, as in TensorFlow.
typedef pack_t<uint32_t, 4> uint128_t;

// A row of |depth| indices names one of the slices, which have |inner| elements.
struct places_t {
  int depth;
  int64_t count, inner;
  int64_t dims[8];
};

__device__ __forceinline__ int64_t place_of(const INDEX* indices, const places_t& p, int64_t row) {
  int64_t at = 0;
  for (int k = 0; k < p.depth; ++k) {
    int64_t index = indices[row * p.depth + k];
#if WRAPS
    index %= p.dims[k];
    if (index < 0) index += p.dims[k];
#endif
    if ((uint64_t)index >= (uint64_t)p.dims[k]) return -1;
    at = at * p.dims[k] + index;
  }
  return at;
}

#if MODE == 0
// One more than the last row that names a place.
extern "C" __global__ void find_last(const INDEX* indices, places_t p, unsigned long long* last) {
  for (int64_t i = thread_of_grid(); i < p.count; i += threads_of_grid()) {
    int64_t at = place_of(indices, p, i);
    if (at >= 0) atomicMax(&last[at], (unsigned long long)i + 1);
  }
}

extern "C" __global__ void scatter(T* dst, const INDEX* indices, const T* updates, places_t p,
                                   int is_scalar, const unsigned long long* last) {
  int64_t count = p.count * p.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, p.inner), at = place_of(indices, p, row);
    if (at >= 0 && last[at] == (unsigned long long)row + 1)
      dst[at * p.inner + i - row * p.inner] = updates[is_scalar ? 0 : i];
  }
}
#else
__device__ __forceinline__ T joined(T x, T y) {
  typedef element_t<T>::acc_t acc_t;
  acc_t a = element_t<T>::load(x), b = element_t<T>::load(y);
#if MODE == 1
  return element_t<T>::store(a + b);
#elif MODE == 2
  return element_t<T>::store(a - b);
#elif MODE == 3
  return element_t<T>::store(a * b);
#elif MODE == 4
  return IS_FLOATING || b != 0 ? element_t<T>::store(a / b) : element_t<T>::store(0);
#elif MODE == 5
  return b < a ? y : x;
#else
  return a < b ? y : x;
#endif
}

template <typename V, typename B>
__device__ __forceinline__ V bits_as(B bits) {
  union both_t {
    B bits;
    V value;
    __device__ both_t() {}
  } both;
  both.bits = bits;
  return both.value;
}

// Compares and swaps until nobody came between.
template <typename B>
__device__ __forceinline__ void swap_in(T* at, T value) {
  B old = *(volatile B*)at, seen;
  do {
    seen = old;
    B next = bits_as<B>(joined(bits_as<T>(seen), value));
    if (next == seen) return;
    old = atomicCAS((B*)at, seen, next);
  } while (old != seen);
}
// The same of a byte, within its word.
__device__ __forceinline__ void swap_in_byte(T* at, T value) {
  uint32_t* word = (uint32_t*)((uint64_t)at & ~3ull);
  int shift = (int)((uint64_t)at & 3) * 8;
  uint32_t old = *(volatile uint32_t*)word, seen;
  do {
    seen = old;
    uint8_t next = bits_as<uint8_t>(joined(bits_as<T>((uint8_t)(seen >> shift)), value));
    old = atomicCAS(word, seen, (seen & ~(0xffu << shift)) | (uint32_t)next << shift);
  } while (old != seen);
}

template <int SIZE>
struct joiner_t;
template <>
struct joiner_t<1> {
  static __device__ void join(T* at, T value) { swap_in_byte(at, value); }
};
template <>
struct joiner_t<2> {
  static __device__ void join(T* at, T value) { swap_in<unsigned short>(at, value); }
};
template <>
struct joiner_t<4> {
  static __device__ void join(T* at, T value) { swap_in<unsigned int>(at, value); }
};
template <>
struct joiner_t<8> {
  static __device__ void join(T* at, T value) { swap_in<unsigned long long>(at, value); }
};

__device__ __forceinline__ void join(T* at, T value) {
#if MODE <= 2 && HAS_ATOMIC_ADD
  atomicAdd((ADDED*)at, (ADDED)(MODE == 1 ? value : (T)(0 - value)));
#else
  joiner_t<sizeof(T)>::join(at, value);
#endif
}

extern "C" __global__ void scatter(T* dst, const INDEX* indices, const T* updates, places_t p,
                                   int is_scalar, const void* unused) {
  int64_t count = p.count * p.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, p.inner), at = place_of(indices, p, row);
    if (at >= 0) join(&dst[at * p.inner + i - row * p.inner], updates[is_scalar ? 0 : i]);
  }
}

// Whoever is the first with its place takes all that follow.
extern "C" __global__ void scatter_few(T* dst, const INDEX* indices, const T* updates, places_t p,
                                       int is_scalar, const void* unused) {
  int64_t count = p.count * p.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, p.inner), column = i - row * p.inner;
    int64_t at = place_of(indices, p, row), before = 0;
    if (at < 0) continue;
    while (before < row && place_of(indices, p, before) != at) ++before;
    if (before < row) continue;
    T sum = joined(dst[at * p.inner + column], updates[is_scalar ? 0 : i]);
    for (int64_t next = row + 1; next < p.count; ++next) {
      if (place_of(indices, p, next) == at)
        sum = joined(sum, updates[is_scalar ? 0 : next * p.inner + column]);
    }
    dst[at * p.inner + column] = sum;
  }
}

extern "C" __global__ void fill(T* dst, int64_t count, T value) {
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) dst[i] = value;
}
#endif
