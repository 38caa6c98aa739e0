// reduce_internal.h — The loops of one reduction of one type, as the driver of reduce.c sees them.
#ifndef WEIR_KERNEL_REDUCE_REDUCE_INTERNAL_H_
#define WEIR_KERNEL_REDUCE_REDUCE_INTERNAL_H_

#include "kernel/reduce/reduce.h"

typedef struct reducer_t {
  size_t acc_size;                                   // bytes of an accumulator
  void (*init)(void* acc, int64_t n);                // n accumulators to the identity
  void (*run)(const void* x, int64_t n, void* acc);  // n contiguous elements into one accumulator
  void (*rows)(const void* x, int64_t stride, int64_t rows, int64_t cols,
               void* acc);                                // rows into |cols| accumulators
  void (*merge)(void* acc, const void* part, int64_t n);  // accumulators into accumulators
  void (*finish)(const void* acc, int64_t n, int64_t reduced,
                 void* output);  // results of |reduced| elements each
} reducer_t;

const reducer_t* weir_reducer_find(weir_reduce_op_t op, weir_dtype_t dtype);  // NULL: none

#endif  // WEIR_KERNEL_REDUCE_REDUCE_INTERNAL_H_
