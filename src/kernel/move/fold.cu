// fold.cu — A border that mirrors a tensor, folded back onto it by addition. T, the elements' type,
// is defined before this text. Sums are rounded in the order in which a CPU folds: dimension after
// dimension, the first one first.
enum { MAX_RANK = 16 };
typedef element_t<T>::acc_t ACC;

// A tensor of |inner| lies within x, which has a border of |before| and |after| around it.
struct fold_t {
  int rank;
  int64_t offset;  // 1: the edge is not repeated in the border
  int64_t count;   // of the tensor within
  int64_t inner[MAX_RANK], before[MAX_RANK], after[MAX_RANK], strides[MAX_RANK];  // strides of x
};

// The dimensions in which an element has images in the border, the last one first: how far from it
// these are, itself first; which is next, and what those before add up to.
struct images_t {
  int rank;
  int counts[MAX_RANK], at[MAX_RANK];
  int64_t steps[MAX_RANK][3];
  ACC sums[MAX_RANK];
};

__device__ __forceinline__ void find_images(const fold_t& f, int d, int64_t place,
                                            images_t* images) {
  int n = 1;
  int64_t* steps = images->steps[images->rank];
  int64_t low = f.offset - 1 - place, high = 2 * f.inner[d] - 1 - f.offset - place;
  steps[0] = 0;
  if (low < 0 && low >= -f.before[d]) steps[n++] = (low - place) * f.strides[d];
  if (high >= f.inner[d] && high < f.inner[d] + f.after[d])
    steps[n++] = (high - place) * f.strides[d];
  if (n == 1) return;
  images->at[images->rank] = 0;
  images->counts[images->rank++] = n;
}

// Adds |value|, that of the image at |*at|, and goes on to the next. False after the last: then
// |*value| is the sum.
__device__ __forceinline__ bool add_image(images_t* images, int64_t* at, ACC* value) {
  for (int d = images->rank - 1; d >= 0; --d) {
    int now = images->at[d]++;
    if (now > 0) *value = element_t<T>::load(element_t<T>::store(images->sums[d] + *value));
    images->sums[d] = *value;
    *at -= images->steps[d][now];
    if (now + 1 < images->counts[d]) {
      *at += images->steps[d][now + 1];
      return true;
    }
    images->at[d] = 0;
  }
  return false;
}

extern "C" __global__ void fold_border(const T* __restrict__ x, T* __restrict__ y, fold_t f) {
  for (int64_t i = thread_of_grid(); i < f.count; i += threads_of_grid()) {
    images_t images;
    images.rank = 0;
    int64_t at = 0, rest = i;
#pragma unroll 1
    for (int d = f.rank - 1; d >= 0; --d) {
      int64_t next = quotient_of(rest, f.inner[d]), place = rest - next * f.inner[d];
      at += (place + f.before[d]) * f.strides[d];
      find_images(f, d, place, &images);
      rest = next;
    }
    ACC value;
    do value = element_t<T>::load(x[at]);
    while (add_image(&images, &at, &value));
    y[i] = element_t<T>::store(value);
  }
}
