// elementwise.cu — One unary or binary operation. Before this text come the definitions of
//
//   T OUT    the operands' type and the result's
//   R U      as formulas use them: T, and an unsigned type at least as wide as an integer
//   FORMULA  the value at |a|, or at |a| and |b|, from unary_ops.inc or binary_ops.inc, in the words of
//            formula.cu
//   UNARY    1 or 0
typedef element_t<T>::acc_t ACC;

#if UNARY
__device__ __forceinline__ OUT value_of(T x) {
  ACC a = element_t<T>::load(x);
  return element_t<OUT>::store(FORMULA);
}

enum { WIDTH = 16 / (sizeof(T) > sizeof(OUT) ? sizeof(T) : sizeof(OUT)) };

extern "C" __global__ void unary(const T* x, OUT* y, int64_t n, int is_aligned) {
  int64_t first = thread_of_grid(), step = threads_of_grid();
  int64_t packs = is_aligned ? n / WIDTH : 0;
  for (int64_t i = first; i < packs; i += step) {
    pack_t<T, WIDTH> in = ((const pack_t<T, WIDTH>*)x)[i];
    pack_t<OUT, WIDTH> out;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) out.at[k] = value_of(in.at[k]);
    store_whole((pack_t<OUT, WIDTH>*)y + i, out);
  }
  for (int64_t i = packs * WIDTH + first; i < n; i += step) y[i] = value_of(x[i]);
}
#else
__device__ __forceinline__ OUT value_of(T x, T y) {
  ACC a = element_t<T>::load(x);
  ACC b = element_t<T>::load(y);
  return element_t<OUT>::store(FORMULA);
}

enum { WIDTH = 16 / (sizeof(T) > sizeof(OUT) ? sizeof(T) : sizeof(OUT)) };

// |x_step| and |y_step|: 1, or 0 of an operand that is one element.
extern "C" __global__ void binary(const T* x, const T* y, OUT* z, int64_t n, int x_step, int y_step,
                                  int is_aligned) {
  int64_t first = thread_of_grid(), step = threads_of_grid();
  int64_t packs = is_aligned ? n / WIDTH : 0;
  for (int64_t i = first; i < packs; i += step) {
    pack_t<T, WIDTH> left, right;
    pack_t<OUT, WIDTH> out;
    if (x_step) left = ((const pack_t<T, WIDTH>*)x)[i];
    if (y_step) right = ((const pack_t<T, WIDTH>*)y)[i];
#pragma unroll
    for (int k = 0; k < WIDTH; ++k)
      out.at[k] = value_of(x_step ? left.at[k] : *x, y_step ? right.at[k] : *y);
    store_whole((pack_t<OUT, WIDTH>*)z + i, out);
  }
  for (int64_t i = packs * WIDTH + first; i < n; i += step)
    z[i] = value_of(x[i * x_step], y[i * y_step]);
}

// As weir_broadcast_t, innermost dimension last.
struct broadcast_t {
  int64_t dims[8], x_strides[8], y_strides[8];
  int rank;
};

extern "C" __global__ void broadcast(const T* x, const T* y, OUT* z, int64_t n, broadcast_t plan) {
  int64_t step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t rest = i, at_x = 0, at_y = 0;
    for (int d = plan.rank - 1; d >= 0; --d) {
      int64_t dim = plan.dims[d];
      int64_t quotient = rest <= 0xffffffff && dim <= 0xffffffff
                             ? (int64_t)((uint32_t)rest / (uint32_t)dim)
                             : rest / dim;
      int64_t position = rest - quotient * dim;
      at_x += position * plan.x_strides[d];
      at_y += position * plan.y_strides[d];
      rest = quotient;
    }
    z[i] = value_of(x[at_x], y[at_y]);
  }
}
#endif
