// optimizer_loop.cu — What optimizers' loops (the .inc files beside) need to be CUDA: before this
// text come the definitions of E (an element) and T (what is computed in), after it the loop's.
struct update_args_t {
  T* slots[4];
  const T* grad;
  const T* scalars;
  bool flag;
};
#define weir_optimizer_args_t update_args_t
#define LOOP(name) name
#define SQRT sqrt
#define ABS fabs
#define POW pow
#define restrict __restrict__
#define static static __device__ __forceinline__
