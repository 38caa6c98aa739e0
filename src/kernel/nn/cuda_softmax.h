// cuda_softmax.h — Softmax over rows and the cross entropies built on it, on GPUs.
#ifndef WEIR_KERNEL_NN_CUDA_SOFTMAX_H_
#define WEIR_KERNEL_NN_CUDA_SOFTMAX_H_

#include "device/cuda/cuda.h"
#include "weir/dtype.h"

typedef enum weir_softmax_kind_t {
  WEIR_SOFTMAX,
  WEIR_LOG_SOFTMAX,
  WEIR_SOFTMAX_DENSE_LOSS,   // labels are rows of probabilities
  WEIR_SOFTMAX_SPARSE_LOSS,  // labels are classes; where one is none, results are NaN
} weir_softmax_kind_t;

// Functions of one kind and type; immutable after they were found.
typedef struct weir_cuda_softmax_t {
  weir_cuda_function_t few, some, many;  // columns
} weir_cuda_softmax_t;

// Rows of x, and what is made of them. |y|, the result or the gradient of the loss, may be |x|
// where that is not repeated.
typedef struct weir_softmax_rows_t {
  const void* x;
  const void* labels;   // of a dense loss
  const void* classes;  // of a sparse loss
  void* loss;
  void* y;
  int64_t rows, columns;
  // Elements from one row, or column, to the next in x and labels; 0 where they repeat.
  int64_t x_row, x_column, label_row, label_column;
} weir_softmax_rows_t;

// |label_dtype| is that of classes, any other's but a sparse loss's.
WEIR_MUST_USE weir_status_t* weir_cuda_softmax_find(weir_device_t* device, weir_softmax_kind_t kind,
                                                    weir_dtype_t dtype, weir_dtype_t label_dtype,
                                                    weir_cuda_softmax_t* out_functions);
WEIR_MUST_USE weir_status_t* weir_cuda_softmax(weir_device_t* device,
                                               const weir_cuda_softmax_t* functions,
                                               const weir_softmax_rows_t* rows);

#endif  // WEIR_KERNEL_NN_CUDA_SOFTMAX_H_
