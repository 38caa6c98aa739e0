// unique.cu — Distinct rows in the order of first appearance, by a table of them; with pick.cu.
// Before this text come the definitions of
//
//   T            an unsigned type of the elements' size
//   IS_FLOATING  whether they are floating-point numbers: 0 equals -0, and a NaN equals nothing
//   INFINITE     the bits of infinity then
//   INDEX        the type of the numbers of rows
//
// Slots of the table are taken by the first who comes, whichever row that is, and end up with the
// first of the rows that are equal.
enum : uint32_t { NONE = 0xffffffff };

// [outer, count, inner], of which row r is [:, r, :].
struct rows_t {
  const T* x;
  int64_t count, outer, inner;
};

__device__ __forceinline__ uint64_t bits_at(const rows_t& rows, int64_t row, int64_t o, int64_t k) {
  T bits = rows.x[(o * rows.count + row) * rows.inner + k];
#if IS_FLOATING
  if ((T)(bits << 1) == 0) bits = 0;
#endif
  return bits;
}

__device__ __forceinline__ bool is_nan(uint64_t bits) {
#if IS_FLOATING
  return (T)((T)bits << 1) > (T)((T)INFINITE << 1);
#else
  return false;
#endif
}

__device__ __forceinline__ uint64_t mixed(uint64_t hash) {
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
  return hash ^ hash >> 32;
}

// False: the row equals nothing, not even itself.
__device__ bool hash_of(const rows_t& rows, int64_t row, uint64_t* out_hash) {
  uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t k = 0; k < rows.inner; ++k) {
      uint64_t bits = bits_at(rows, row, o, k);
      if (is_nan(bits)) return false;
      hash = mixed(hash + bits);
    }
  }
  *out_hash = hash;
  return true;
}

__device__ bool are_equal(const rows_t& rows, int64_t a, int64_t b) {
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t k = 0; k < rows.inner; ++k) {
      if (bits_at(rows, a, o, k) != bits_at(rows, b, o, k)) return false;
    }
  }
  return true;
}

// Whether |slot| is that of |row| now. What it holds, once it does, is one of equal rows.
__device__ __forceinline__ bool take(const rows_t& rows, uint32_t row, uint32_t* slot) {
  uint32_t held = *(volatile uint32_t*)slot;
  if (held == NONE) held = atomicCAS(slot, NONE, row);
  if (held == NONE) return true;
  if (!are_equal(rows, held, row)) return false;
  if (row < held) atomicMin(slot, row);
  return true;
}

// |mask| + 1 slots, all NONE, more than there are rows.
extern "C" __global__ void unique_insert(rows_t rows, uint32_t* slots, uint32_t mask,
                                         uint32_t* slot_of) {
  for (int64_t i = thread_of_grid(); i < rows.count; i += threads_of_grid()) {
    uint64_t hash = 0;
    uint32_t at = NONE;
    if (hash_of(rows, i, &hash)) {
      at = (uint32_t)hash & mask;
      while (!take(rows, (uint32_t)i, &slots[at])) at = (at + 1) & mask;
    }
    slot_of[i] = at;
  }
}

// The first row equal to row i.
struct choice_t {
  const uint32_t* slots;
  const uint32_t* slot_of;
  uint32_t* firsts;   // by number
  uint32_t* numbers;  // of those that are first
};
__device__ __forceinline__ uint32_t first_of(const choice_t& choice, int64_t i) {
  uint32_t slot = choice.slot_of[i];
  return slot == NONE ? (uint32_t)i : choice.slots[slot];
}
__device__ __forceinline__ bool is_chosen(const choice_t& choice, int64_t i) {
  return first_of(choice, i) == i;
}
__device__ __forceinline__ void put(const choice_t& choice, int64_t i, int64_t number) {
  choice.firsts[number] = (uint32_t)i;
  choice.numbers[i] = (uint32_t)number;
}

__device__ __forceinline__ void add_one(int32_t* at) { atomicAdd(at, 1); }
__device__ __forceinline__ void add_one(int64_t* at) { atomicAdd((unsigned long long*)at, 1ull); }

// |counts|: NULL where nobody wants them.
extern "C" __global__ void unique_index(choice_t choice, int64_t count, INDEX* __restrict__ index,
                                        INDEX* counts) {
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    uint32_t number = choice.numbers[first_of(choice, i)];
    index[i] = (INDEX)number;
    if (counts) add_one(&counts[number]);
  }
}

extern "C" __global__ void unique_rows(rows_t rows, const uint32_t* __restrict__ firsts,
                                       int64_t distinct, T* __restrict__ y) {
  int64_t count = rows.outer * distinct * rows.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t run = quotient_of(i, rows.inner), o = quotient_of(run, distinct);
    int64_t row = firsts[run - o * distinct];
    y[i] = rows.x[(o * rows.count + row) * rows.inner + i - run * rows.inner];
  }
}
