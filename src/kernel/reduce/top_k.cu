// top_k.cu — The largest elements of rows, the largest first; of equal ones that come first. Before
// this text come the definitions of
//
//   T      the elements' type
//   KIND   0: unsigned integers, 1: signed ones, 2: floating-point numbers
//   KEY    an unsigned type, as large as elements are, of 4 bytes at least
//   INDEX  the type of the places
//
// A block has a row. Where that is too long to be sorted as a whole, the least of the entries to be
// taken is found digit by digit, and those from it on are sorted. Entries are all different, as
// each has another place: so nothing depends on who comes when.
enum { DIGITS = 256, COPIES = 8, PLACE_BYTES = 4, EACH = 8 };

struct entry_t {
  KEY key;         // larger for larger elements; the largest for NaN
  uint32_t place;  // larger for those that come first
};

struct top_k_t {
  int64_t rows;
  uint32_t columns, k;
  uint32_t capacity;  // of what is sorted, a power of two: all columns, or at least k
};

__device__ __forceinline__ uint32_t bits_of(float v) { return (uint32_t)__float_as_int(v); }
__device__ __forceinline__ uint64_t bits_of(double v) { return (uint64_t)__double_as_longlong(v); }

__device__ __forceinline__ KEY key_of(T v) {
  const KEY sign = (KEY)1 << (sizeof(KEY) * 8 - 1);
#if KIND == 2
  typename element_t<T>::acc_t value = element_t<T>::load(v);
  if (value != value) return ~(KEY)0;
  if (value == 0) return sign;
  KEY bits = bits_of(value);
  return bits & sign ? ~bits : bits | sign;
#elif KIND == 1
  return (KEY)v ^ sign;
#else
  return (KEY)v;
#endif
}

// Calls |fn| with every entry of a row and its index. A thread reads several at once.
template <typename F>
__device__ __forceinline__ void for_each(const T* row, uint32_t columns, F fn) {
  for (uint32_t first = threadIdx.x; first < columns; first += blockDim.x * EACH) {
    T v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      uint32_t i = first + k * blockDim.x;
      if (i < columns) v[k] = row[i];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      uint32_t i = first + k * blockDim.x;
      if (i >= columns) break;
      entry_t entry = {key_of(v[k]), ~i};
      fn(entry, i);
    }
  }
}

__device__ __forceinline__ bool is_before(const entry_t& a, const entry_t& b) {
  return a.key != b.key ? a.key > b.key : a.place > b.place;
}

// Where the byte of number |digit| is, counted from the highest of the key on.
__device__ __forceinline__ bool is_in_key(int digit) { return digit < (int)sizeof(KEY); }
__device__ __forceinline__ int shift_of(int digit) {
  return (is_in_key(digit) ? (int)sizeof(KEY) - 1 - digit
                           : (int)sizeof(KEY) + PLACE_BYTES - 1 - digit) *
         8;
}
__device__ __forceinline__ void put_byte(entry_t* entry, int digit, uint32_t byte) {
  if (is_in_key(digit)) entry->key |= (KEY)byte << shift_of(digit);
  else entry->place |= byte << shift_of(digit);
}

// What a digit's values are counted in, and what follows from it.
struct choice_t {
  uint32_t counts[DIGITS * COPIES], totals[DIGITS];
  uint32_t byte, left;  // of the least entry; how many are to be taken that have it
  int is_all;           // these are all that have it
};

// Counts the entries that begin with |prefix|, as far as |mask| goes, by their next byte. Threads
// that are neighbours count apart.
__device__ __forceinline__ void count_bytes(const T* row, uint32_t columns, const entry_t& prefix,
                                            const entry_t& mask, int digit, choice_t* c) {
  for (uint32_t i = threadIdx.x; i < DIGITS * COPIES; i += blockDim.x) c->counts[i] = 0;
  __syncthreads();
  for_each(row, columns, [&](const entry_t& e, uint32_t) {
    if ((e.key ^ prefix.key) & mask.key || (e.place ^ prefix.place) & mask.place) return;
    uint32_t byte = (uint32_t)((is_in_key(digit) ? e.key : (KEY)e.place) >> shift_of(digit)) & 255;
    atomicAdd(&c->counts[byte * COPIES + threadIdx.x % COPIES], 1u);
  });
  __syncthreads();
  for (uint32_t byte = threadIdx.x; byte < DIGITS; byte += blockDim.x) {
    uint32_t total = 0;
    for (int i = 0; i < COPIES; ++i) total += c->counts[byte * COPIES + i];
    c->totals[byte] = total;
  }
  __syncthreads();
}

// The byte at which |left| entries, the largest first, are full.
__device__ __forceinline__ void choose_byte(uint32_t left, choice_t* c) {
  for (uint32_t byte = threadIdx.x; byte < DIGITS; byte += blockDim.x) {
    uint32_t above = 0;
    for (uint32_t i = DIGITS - 1; i > byte; --i) above += c->totals[i];
    if (above >= left || left - above > c->totals[byte]) continue;
    c->byte = byte;
    c->left = left - above;
    c->is_all = c->left == c->totals[byte];
  }
  __syncthreads();
}

// The least of the first |k| entries of a row, or what is between it and the next one.
__device__ __forceinline__ entry_t least_of(const T* row, uint32_t columns, uint32_t k,
                                            choice_t* c) {
  entry_t prefix = {0, 0}, mask = {0, 0};
  uint32_t left = k;
  for (int digit = 0; digit < (int)sizeof(KEY) + PLACE_BYTES; ++digit) {
    count_bytes(row, columns, prefix, mask, digit, c);
    choose_byte(left, c);
    put_byte(&prefix, digit, c->byte);
    put_byte(&mask, digit, 255);
    left = c->left;
    bool is_all = c->is_all;
    __syncthreads();
    if (is_all) break;
  }
  return prefix;
}

// Sorts |n| entries, a power of two: pairs that are ever closer, in runs that are ever longer.
__device__ __forceinline__ void sort(entry_t* entries, uint32_t n) {
  for (uint32_t size = 2; size <= n; size *= 2) {
    for (uint32_t step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (uint32_t i = threadIdx.x; i < n / 2; i += blockDim.x) {
        uint32_t low = 2 * i - (i & (step - 1)), high = low + step;
        bool is_reverse = (low & size) != 0;
        entry_t a = entries[low], b = entries[high];
        if (is_before(b, a) == is_reverse) continue;
        entries[low] = b;
        entries[high] = a;
      }
    }
  }
  __syncthreads();
}

// Entries of a row that are to be sorted, and after them such as come last.
__device__ __forceinline__ void collect(const T* row, const top_k_t& t, choice_t* c,
                                        uint32_t* taken, entry_t* entries) {
  entry_t least = {0, 0};
  bool is_whole = t.columns <= t.capacity;
  uint32_t count = is_whole ? t.columns : t.k;
  if (!is_whole) least = least_of(row, t.columns, t.k, c);
  if (threadIdx.x == 0) *taken = 0;
  __syncthreads();
  for_each(row, t.columns, [&](const entry_t& e, uint32_t i) {
    if (is_before(least, e)) return;
    uint32_t at = is_whole ? i : atomicAdd(taken, 1u);
    if (at < count) entries[at] = e;
  });
  for (uint32_t i = count + threadIdx.x; i < t.capacity; i += blockDim.x) {
    entry_t last = {0, 0};
    entries[i] = last;
  }
}

// |memory| has room for a block's entries each; NULL: shared memory does.
extern "C" __global__ void __launch_bounds__(1024)
    top_k(const T* __restrict__ x, T* __restrict__ values, INDEX* __restrict__ indices,
          entry_t* memory, top_k_t t) {
  extern __shared__ uint64_t shared[];
  __shared__ choice_t choice;
  __shared__ uint32_t taken;
  entry_t* entries = memory ? memory + (int64_t)blockIdx.x * t.capacity : (entry_t*)shared;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x) {
    const T* from = x + row * t.columns;
    collect(from, t, &choice, &taken, entries);
    sort(entries, t.capacity);
    for (uint32_t i = threadIdx.x; i < t.k; i += blockDim.x) {
      uint32_t index = ~entries[i].place;
      values[row * t.k + i] = from[index];
      indices[row * t.k + i] = (INDEX)index;
    }
    __syncthreads();
  }
}
