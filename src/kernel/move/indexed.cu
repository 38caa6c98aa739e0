// indexed.cu — Moving elements by indices. Before this text come the definitions of INDEX, their
// type, and of E, a type as large as an element. Where an index is out of range there is nothing: a
// GPU has no way to complain.

// As weir_move_gather_t, rows of |inner| elements.
struct gather_t {
  int64_t batch, outer, rows, index_count, inner;
};

template <typename B>
__device__ __forceinline__ void gather_rows(const B* __restrict__ src,
                                            const INDEX* __restrict__ indices, B* __restrict__ dst,
                                            const gather_t& g) {
  int64_t count = g.batch * g.outer * g.index_count * g.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, g.inner), slab = quotient_of(row, g.index_count);
    int64_t batch = g.outer == 1 ? slab : quotient_of(slab, g.outer);
    int64_t index = indices[batch * g.index_count + row - slab * g.index_count];
    B value = {};
    if ((uint64_t)index < (uint64_t)g.rows)
      value = src[(slab * g.rows + index) * g.inner + i - row * g.inner];
    dst[i] = value;
  }
}

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
    if ((uint64_t)index >= (uint64_t)p.dims[k]) return -1;
    at = at * p.dims[k] + index;
  }
  return at;
}

template <typename B>
__device__ __forceinline__ void gather_slices(const B* __restrict__ src,
                                              const INDEX* __restrict__ indices,
                                              B* __restrict__ dst, const places_t& p) {
  int64_t count = p.count * p.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, p.inner), at = place_of(indices, p, row);
    B value = {};
    if (at >= 0) value = src[at * p.inner + i - row * p.inner];
    dst[i] = value;
  }
}

// dst[pre][d][post] = indices[pre][post] == d ? *on : *off.
template <typename B>
__device__ __forceinline__ void fill_one_hot(const INDEX* __restrict__ indices,
                                             B* __restrict__ dst, const B* on, const B* off,
                                             int64_t count, int64_t depth, int64_t suffix) {
  B values[2] = {*off, *on};
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, suffix), pre = quotient_of(row, depth);
    int64_t index = indices[pre * suffix + i - row * suffix];
    dst[i] = values[index == row - pre * depth];
  }
}

// Dimensions of |batch| entries and of places in a sequence, each |..._stride| elements apart. Of each
// entry the first places are reversed, as many as the indices say.
struct sequences_t {
  int64_t count, batch, batch_stride, places, place_stride;
};

template <typename B>
__device__ __forceinline__ void reverse_sequences(const B* __restrict__ src,
                                                  const INDEX* __restrict__ lengths,
                                                  B* __restrict__ dst, const sequences_t& s) {
  for (int64_t i = thread_of_grid(); i < s.count; i += threads_of_grid()) {
    int64_t entry = quotient_of(i, s.batch_stride), place = quotient_of(i, s.place_stride);
    entry -= quotient_of(entry, s.batch) * s.batch;
    place -= quotient_of(place, s.places) * s.places;
    int64_t length = lengths[entry];
    if (length > s.places) length = s.places;
    dst[i] = src[place < length ? i + (length - 1 - 2 * place) * s.place_stride : i];
  }
}

extern "C" __global__ void gather(const E* src, const INDEX* indices, E* dst, gather_t gather) {
  gather_rows(src, indices, dst, gather);
}
extern "C" __global__ void slices(const E* src, const INDEX* indices, E* dst, places_t places) {
  gather_slices(src, indices, dst, places);
}
extern "C" __global__ void one_hot(const INDEX* indices, E* dst, const E* on, const E* off,
                                   int64_t count, int64_t depth, int64_t suffix) {
  fill_one_hot(indices, dst, on, off, count, depth, suffix);
}
extern "C" __global__ void sequences(const E* src, const INDEX* lengths, E* dst,
                                     sequences_t sequences) {
  reverse_sequences(src, lengths, dst, sequences);
}
