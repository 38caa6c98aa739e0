// matrix.cu — What kernels of matrices share: arithmetic of real and complex elements, and blocks of
// threads that have a matrix each. T, the elements' type, is defined before this text.
#define NO_CONTRACTION

// ---- numbers ----

template <typename V>
struct parts_t {
  typedef V real_t;
};
template <typename V>
struct parts_t<complex_t<V>> {
  typedef V real_t;
};
typedef parts_t<T>::real_t R;

__device__ __forceinline__ float real_of(float a) { return a; }
__device__ __forceinline__ double real_of(double a) { return a; }
__device__ __forceinline__ float conj_of(float a) { return a; }
__device__ __forceinline__ double conj_of(double a) { return a; }
__device__ __forceinline__ float square_of(float a) { return a * a; }
__device__ __forceinline__ double square_of(double a) { return a * a; }
__device__ __forceinline__ void set_real(float* a, float value) { *a = value; }
__device__ __forceinline__ void set_real(double* a, double value) { *a = value; }

#define COMPLEX template <typename V> __device__ __forceinline__
COMPLEX V real_of(complex_t<V> a) { return a.real; }
COMPLEX complex_t<V> conj_of(complex_t<V> a) { return {a.real, -a.imag}; }
COMPLEX V square_of(complex_t<V> a) { return a.real * a.real + a.imag * a.imag; }
COMPLEX void set_real(complex_t<V>* a, V value) { *a = {value, 0}; }
COMPLEX complex_t<V> operator+(complex_t<V> a, complex_t<V> b) {
  return {a.real + b.real, a.imag + b.imag};
}
COMPLEX complex_t<V> operator-(complex_t<V> a, complex_t<V> b) {
  return {a.real - b.real, a.imag - b.imag};
}
COMPLEX complex_t<V> operator*(complex_t<V> a, complex_t<V> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
COMPLEX complex_t<V> operator/(complex_t<V> a, V b) { return {a.real / b, a.imag / b}; }
// By the larger part first, so that squares neither overflow nor vanish.
COMPLEX complex_t<V> operator/(complex_t<V> a, complex_t<V> b) {
  if (fabs(b.real) >= fabs(b.imag)) {
    V ratio = b.imag / b.real, by = b.real + ratio * b.imag;
    return {(a.real + a.imag * ratio) / by, (a.imag - a.real * ratio) / by};
  }
  V ratio = b.real / b.imag, by = b.imag + ratio * b.real;
  return {(a.real * ratio + a.imag) / by, (a.imag * ratio - a.real) / by};
}

__device__ __forceinline__ T number_of(R value) {
  T number;
  set_real(&number, value);
  return number;
}

// ---- blocks ----

enum { COLUMNS = 32, STRIPES = 16, THREADS = COLUMNS * STRIPES };
__device__ __forceinline__ int thread_of_block() { return threadIdx.y * COLUMNS + threadIdx.x; }
