// fused_tail.cu — What follows a product, where a library has no epilogue for it: a bias, an addend,
// an activation, in place. Defined before this text: T; ACC, which it computes in; and RESULT(a),
// the activation.
//
// y is [rows, channels]; |side| is NULL or as large.
extern "C" __global__ void fused_tail(T* y, const T* bias, const T* side, int64_t n,
                                      int64_t channels) {
  int64_t step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t c = n < 0x7fffffff ? (int64_t)((uint32_t)i % (uint32_t)channels) : i % channels;
    ACC a = element_t<T>::load(y[i]) + element_t<T>::load(bias[c]);
    if (side) a += element_t<T>::load(side[i]);
    y[i] = element_t<T>::store(RESULT(a));
  }
}
