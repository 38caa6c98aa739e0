// update.h — dst = dst OP src on flat elements of any number type: what assignments, scatters and
// accumulators do in place.
#ifndef WEIR_KERNEL_ELEMENTWISE_UPDATE_H_
#define WEIR_KERNEL_ELEMENTWISE_UPDATE_H_

#include "base/thread.h"
#include "weir/dtype.h"

typedef enum weir_update_op_t {
  WEIR_UPDATE_ADD,
  WEIR_UPDATE_SUB,
  WEIR_UPDATE_MUL,
  WEIR_UPDATE_DIV,
  WEIR_UPDATE_MIN,
  WEIR_UPDATE_MAX,
  WEIR_UPDATE_COUNT,
} weir_update_op_t;

// Updates |count| elements; |src| has as many, or one that serves all when |is_scalar|. False, with
// nothing promised about |dst|, on a division of integers by zero.
typedef bool (*weir_update_fn_t)(void* dst, const void* src, int64_t count, bool is_scalar);

// NULL when |dtype| has no such update (strings; minima of complex numbers).
weir_update_fn_t weir_update_find(weir_update_op_t update, weir_dtype_t dtype);

// The same over |pool|, for what cannot fail: |fn| from weir_update_find, and no division.
void weir_update_parallel(weir_pool_t* pool, weir_update_fn_t fn, weir_dtype_t dtype, void* dst,
                          const void* src, int64_t count);

#endif  // WEIR_KERNEL_ELEMENTWISE_UPDATE_H_
