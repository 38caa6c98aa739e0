// segment_grad.cu — Rows of the gradients of segments, for all rows that went into them. Before
// this text come the definitions of T, the elements' type, and ID, that of the ids.
enum { MEAN = 1, SQRT = 2 };

// How many rows each of the segments has.
extern "C" __global__ void count_ids(const ID* __restrict__ ids, int64_t count, int64_t segments,
                                     uint32_t* counts) {
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t id = ids[i];
    if ((uint64_t)id < (uint64_t)segments) atomicAdd(&counts[id], 1u);
  }
}

// The gradient of a sum that was divided by the number of its rows, or by the root of that. 0 where
// there is no such segment.
extern "C" __global__ void spread_rows(const T* __restrict__ x, const ID* __restrict__ ids,
                                       const uint32_t* __restrict__ counts, T* __restrict__ y,
                                       int64_t count, int64_t segments, int64_t inner, int norm) {
  for (int64_t i = thread_of_grid(); i < count * inner; i += threads_of_grid()) {
    int64_t row = quotient_of(i, inner), id = ids[row];
    bool is_there = (uint64_t)id < (uint64_t)segments;
    T value = is_there ? x[id * inner + i - row * inner] : element_t<T>::store(0);
    uint32_t rows = is_there && norm ? counts[id] : 1;
    if (rows > 1) {
      double scale = norm == MEAN ? 1.0 / rows : 1.0 / sqrt((double)rows);
      typedef element_t<T>::acc_t acc_t;
      acc_t rounded = element_t<T>::load(element_t<T>::store((acc_t)scale));
      value = element_t<T>::store(element_t<T>::load(value) * rounded);
    }
    y[i] = value;
  }
}
