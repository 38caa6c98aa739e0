// softmax.h — Softmax over rows and the cross entropies built on it. Float and double. Thread-safe.
#ifndef WEIR_KERNEL_NN_SOFTMAX_H_
#define WEIR_KERNEL_NN_SOFTMAX_H_

#include "base/thread.h"
#include "weir/dtype.h"

// y = softmax(x), or its logarithm, of each row; y may be x.
void weir_softmax(weir_pool_t* pool, weir_dtype_t dtype, int64_t rows, int64_t columns,
                  const void* x, void* y, bool is_log);
// loss[r] = -sum(labels * log softmax(x)), backprop = softmax(x) - labels. |backprop| may be |x|.
void weir_softmax_loss(weir_pool_t* pool, weir_dtype_t dtype, int64_t rows, int64_t columns,
                       const void* x, const void* labels, void* loss, void* backprop);
// The same for labels that are classes, all of them in [0, columns).
void weir_sparse_softmax_loss(weir_pool_t* pool, weir_dtype_t dtype, int64_t rows, int64_t columns,
                              const void* x, const int64_t* labels, void* loss, void* backprop);

#endif  // WEIR_KERNEL_NN_SOFTMAX_H_
