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

// Some of the dimensions, outermost first.
enum { WEIR_REDUCE_MAX_AXES = 254 };
typedef struct reduce_axes_t {
  int count;
  int64_t dims[WEIR_REDUCE_MAX_AXES];
  int64_t strides[WEIR_REDUCE_MAX_AXES];  // in elements
  int64_t total;                          // product of |dims|
} reduce_axes_t;

// What is reduced, seen with as few dimensions as possible.
typedef struct reduce_shape_t {
  reduce_axes_t kept;     // without the innermost run
  reduce_axes_t reduced;  // without the innermost run
  int64_t inner;          // contiguous elements of the innermost run of like dimensions
  bool inner_reduced;
  int64_t reduced_count;  // elements an output stands for
} reduce_shape_t;

// Sorts dimensions into kept and reduced, takes the innermost run of like ones out and merges
// others with their neighbours.
void weir_reduce_analyse(int rank, const int64_t* dims, const bool* is_reduced,
                         reduce_shape_t* out_shape);

const reducer_t* weir_reducer_find(weir_reduce_op_t op, weir_dtype_t dtype);  // NULL: none

#endif  // WEIR_KERNEL_REDUCE_REDUCE_INTERNAL_H_
