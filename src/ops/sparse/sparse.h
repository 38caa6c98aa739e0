// sparse.h — What ops of sparse tensors share: three inputs, indices (a matrix), values and shape,
// read and checked in TensorFlow's words, of which there are two sets; the order of rows; shapes.
#ifndef WEIR_OPS_SPARSE_SPARSE_H_
#define WEIR_OPS_SPARSE_SPARSE_H_

#include <inttypes.h>

#include "kernel/move/move.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// Types of elements that TensorFlow's kernels move about, quantised ones left out, and compute
// with.
#define SPARSE_REAL \
  "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64"
#define SPARSE_NUMBER SPARSE_REAL ", complex64, complex128"
#define SPARSE_ANY SPARSE_NUMBER ", bool, string, resource, variant"

// A sparse tensor; everything is borrowed.
typedef struct weir_sparse_t {
  const weir_tensor_t* indices;
  const weir_tensor_t* values;
  const weir_tensor_t* shape;
  const int64_t* rows;  // |count| of |rank| indices each
  const int64_t* dims;  // |rank|
  int64_t count;
  int rank;
} weir_sparse_t;

// The three inputs as they are, nothing checked: only what a check below lets through may be read.
void weir_sparse_get(const weir_tensor_t* indices, const weir_tensor_t* values,
                     const weir_tensor_t* shape, weir_sparse_t* out);
// The inputs from |first| on, checked: "Sparse indices must be rank 2 but is rank 1" and so on.
WEIR_MUST_USE weir_status_t* weir_sparse_read(const weir_kernel_ctx_t* ctx, int first,
                                              weir_sparse_t* out);
WEIR_MUST_USE weir_status_t* weir_sparse_check(const weir_sparse_t* s);
// Ranks and counts alone, in the other words: "indices must be a matrix, but got: [3]".
WEIR_MUST_USE weir_status_t* weir_sparse_check_parts(const weir_sparse_t* s);
// "Sparse index tuple indices[5, :] = [2, 5] is out of bounds".
WEIR_MUST_USE weir_status_t* weir_sparse_check_bounds(const weir_sparse_t* s);
// "indices[5] = [1,5] is out of bounds: need 0 <= index < [4,5]", or out of order, or repeated.
WEIR_MUST_USE weir_status_t* weir_sparse_check_order(const weir_sparse_t* s);
// "Expected shape dimensions to be non-negative, got -4", or an overflow of their product.
WEIR_MUST_USE weir_status_t* weir_sparse_check_dims(const int64_t* dims, int64_t rank,
                                                    int64_t* out_product);

// Whether every index is within its dimension.
bool weir_sparse_is_within(const weir_sparse_t* s);
// Less than, equal to or greater than 0 as row |a| comes before, is or comes after |b|.
WEIR_INLINE int weir_sparse_compare(const int64_t* a, const int64_t* b, int rank) {
  for (int i = 0; i < rank; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}
WEIR_INLINE const int64_t* weir_sparse_row(const weir_sparse_t* s, int64_t i) {
  return s->rows + i * s->rank;
}

// Writes the numbers of the rows in the order of |by|, |by_count| of the dimensions, most important
// first; rows that are equal there stay in the order they are in. |order| has |count| places.
WEIR_MUST_USE weir_status_t* weir_sparse_order_by(const weir_sparse_t* s, weir_pool_t* pool,
                                                  const int* by, int by_count, int64_t* order);
// In the order of all dimensions.
WEIR_MUST_USE weir_status_t* weir_sparse_order(const weir_sparse_t* s, weir_pool_t* pool,
                                               int64_t* order);

// Output |i| is the rows |order|[0 … count) of |src|, a tensor of at least one dimension.
WEIR_MUST_USE weir_status_t* weir_sparse_gather(weir_kernel_ctx_t* ctx, int i,
                                                const weir_tensor_t* src, const int64_t* order,
                                                int64_t count);
// Output |i| is a vector of int64.
WEIR_MUST_USE weir_status_t* weir_sparse_output_vector(weir_kernel_ctx_t* ctx, int i,
                                                       const int64_t* values, int64_t count);
WEIR_INLINE void* weir_sparse_at(const weir_tensor_t* t, int64_t i) {
  return (char*)t->data + (size_t)i * weir_dtype_size(weir_tensor_type(t));
}
// "4 5": dimensions as some messages have them.
const char* weir_sparse_dims_text(const int64_t* dims, int64_t rank,
                                  char text[WEIR_SHAPE_TEXT_SIZE]);

// ---- shape functions ----
// Checks the ranks of three inputs from |first| on.
WEIR_MUST_USE weir_status_t* weir_sparse_shape_check(weir_shape_ctx_t* ctx, int first);
// The same, and that numbers of elements agree.
WEIR_MUST_USE weir_status_t* weir_sparse_shape_validate(weir_shape_ctx_t* ctx, int first);
// The number of elements, -1: unknown.
int64_t weir_sparse_shape_elements(const weir_shape_t* shape);
// Outputs from |first| on are a sparse tensor of |count| values and |rank| dimensions, -1: unknown.
WEIR_MUST_USE weir_status_t* weir_sparse_shape_set(weir_shape_ctx_t* ctx, int first, int64_t count,
                                                   int64_t rank);

#endif  // WEIR_OPS_SPARSE_SPARSE_H_
