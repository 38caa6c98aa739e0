// elementwise.h — Elementwise arithmetic by operation and type: loops over runs of elements, and
// broadcasting over them.
//
// A function is looked up once, when a plan is made, and called on runs; the fuser and the
// elementwise ops share them. Everything here is immutable: thread-safe.
#ifndef WEIR_KERNEL_ELEMENTWISE_ELEMENTWISE_H_
#define WEIR_KERNEL_ELEMENTWISE_ELEMENTWISE_H_

#include "base/thread.h"
#include "weir/dtype.h"

// The operations are the rows of unary_ops.inc and binary_ops.inc.
typedef enum weir_unary_op_t {
#define FUNCTION(NAME, ...) WEIR_UNARY_##NAME,
#include "kernel/elementwise/unary_ops.inc"
  WEIR_UNARY_COUNT
} weir_unary_op_t;

// LOGICAL_AND and LOGICAL_OR of bool tensors are the bitwise rows of bool.
typedef enum weir_binary_op_t {
#define FUNCTION(NAME, ...) WEIR_BINARY_##NAME,
#include "kernel/elementwise/binary_ops.inc"
  WEIR_BINARY_COUNT
} weir_binary_op_t;

// Which operand of a run advances.
typedef enum weir_span_t {
  WEIR_SPAN_BOTH = 0,
  WEIR_SPAN_X,  // y is one element
  WEIR_SPAN_Y,  // x is one element
} weir_span_t;

// y[i] = f(x[i]) for i < n; y may be x when the element sizes agree.
typedef void (*weir_unary_fn_t)(const void* x, void* y, int64_t n);
// z[i] = f(x[i], y[i]); z may be an operand that advances. False when an element has no result (see
// weir_binary_error); the others are set all the same.
typedef bool (*weir_binary_fn_t)(const void* x, const void* y, void* z, int64_t n,
                                 weir_span_t span);

weir_unary_fn_t weir_unary_find(weir_unary_op_t op, weir_dtype_t dtype);  // NULL: not for this type
weir_binary_fn_t weir_binary_find(weir_binary_op_t op,
                                  weir_dtype_t dtype);                   // |dtype| of the operands
weir_dtype_t weir_unary_result(weir_unary_op_t op, weir_dtype_t dtype);  // the result's type
weir_dtype_t weir_binary_result(weir_binary_op_t op, weir_dtype_t dtype);
bool weir_binary_may_fail(weir_binary_op_t op, weir_dtype_t dtype);  // see weir_binary_error
double weir_unary_cost(weir_unary_op_t op);                          // ns an element, roughly
double weir_binary_cost(weir_binary_op_t op);
// The INVALID_ARGUMENT of an operation whose function returned false: division by zero, or a
// negative exponent.
WEIR_MUST_USE weir_status_t* weir_binary_error(weir_binary_op_t op);

// What a row says of its result's type.
typedef enum weir_result_t {
  WEIR_RESULT_SAME,
  WEIR_RESULT_BOOL,
  WEIR_RESULT_BYTE,
  WEIR_RESULT_PART,
  WEIR_RESULT_PAIR,
} weir_result_t;
weir_dtype_t weir_result_type(weir_result_t result, weir_dtype_t dtype);

// ---- broadcasting ----
#define WEIR_BROADCAST_MAX 8  // dimensions left after merging; more are an error, as in TensorFlow

// How two shapes broadcast: dimensions that behave alike are merged, those of size 1 dropped.
// Strides are in elements, 0 where the operand is repeated.
typedef struct weir_broadcast_t {
  int rank;
  int64_t dims[WEIR_BROADCAST_MAX];
  int64_t x_strides[WEIR_BROADCAST_MAX];
  int64_t y_strides[WEIR_BROADCAST_MAX];
  int64_t count;  // elements of the result
  int out_rank;   // of the result before merging
  int64_t out_dims[254];
} weir_broadcast_t;

typedef struct weir_shape_view_t {
  int rank;
  const int64_t* dims;
} weir_shape_view_t;

// False when the shapes do not broadcast. |out_plan->rank| is -1 when too many dimensions are left.
bool weir_broadcast_plan(weir_shape_view_t x, weir_shape_view_t y, weir_broadcast_t* out_plan);

// The operands' elements behind element |position| of the result.
void weir_broadcast_at(const weir_broadcast_t* plan, int64_t position, int64_t* out_x,
                       int64_t* out_y);

// Copies what the second operand, |y| with elements of |size| bytes, is in the |n| elements of the
// result from |position| on.
void weir_broadcast_gather(const weir_broadcast_t* plan, int64_t position, int64_t n, const void* y,
                           size_t size, void* out);

typedef struct weir_binary_run_t {
  weir_binary_fn_t fn;
  const void* x;
  const void* y;
  void* z;
  size_t size;      // bytes of an operand's element
  size_t out_size;  // bytes of a result's element
  double cost;      // ns an element
} weir_binary_run_t;
// Applies |run| over |plan|; false when some element had no result. |pool| may be NULL.
bool weir_broadcast_apply(weir_pool_t* pool, const weir_broadcast_t* plan,
                          const weir_binary_run_t* run);
// The same for equal shapes, or one operand of one element.
bool weir_binary_apply(weir_pool_t* pool, const weir_binary_run_t* run, int64_t n,
                       weir_span_t span);
void weir_unary_apply(weir_pool_t* pool, weir_unary_fn_t fn, const void* x, size_t size, void* y,
                      size_t out_size, int64_t n, double cost);

#endif  // WEIR_KERNEL_ELEMENTWISE_ELEMENTWISE_H_
