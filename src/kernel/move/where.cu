// where.cu — Places of elements that are not zero, for pick.cu. Before this text come the
// definitions of
//
//   T      the type of the elements, or of their parts
//   PARTS  of an element: 2 of a complex number
//   RANK   the most dimensions
struct choice_t {
  const T* x;
  int64_t* places;  // a row for each element that is chosen
  int64_t most;     // rows there are
  int rank;
  int64_t dims[RANK];
};

__device__ __forceinline__ bool is_chosen(const choice_t& choice, int64_t i) {
  bool is_one = false;
#pragma unroll
  for (int k = 0; k < PARTS; ++k) is_one |= element_t<T>::load(choice.x[i * PARTS + k]) != 0;
  return is_one;
}

// What is in a variable may be another than when it was counted.
__device__ __forceinline__ void put(const choice_t& choice, int64_t i, int64_t number) {
  if (number >= choice.most) return;
  int64_t* place = choice.places + number * choice.rank;
  for (int k = choice.rank - 1; k > 0; --k) {
    int64_t rest = quotient_of(i, choice.dims[k]);
    place[k] = i - rest * choice.dims[k];
    i = rest;
  }
  place[0] = i;
}
