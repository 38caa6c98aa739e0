// fused.cu — What the text of a fused program's kernel is written in. Before this come the words of
// formula.cu and
//
//   INDEX  a type in which the elements are counted
//   WIDTH  elements that a thread takes at a time
//
// After it come the steps and the kernel (cuda_text.c).
typedef INDEX I;

// Dimensions, innermost last, and how far an operand's elements are apart in each.
struct dims_t {
  int64_t at[8];
  int rank;
};
struct strides_t {
  int64_t at[8];
};

template <typename T>
using pack = pack_t<T, WIDTH>;

// Pack |i| of what lies as the results do.
template <typename T>
__device__ __forceinline__ pack<T> pack_at(const T* x, I i) {
  return ((const pack<T>*)x)[i];
}
template <typename T>
__device__ __forceinline__ void store_pack(T* x, I i, pack<T> value) {
  store_whole((pack<T>*)x + i, value);
}
