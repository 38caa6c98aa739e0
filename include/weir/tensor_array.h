// tensor_array.h — Arrays of tensors that live as long as a step: what loops read from and write
// to, one element an iteration.
//
//   weir_array_t rows = weir_array_unstack(s, x);             // x[0], x[1] …
//   … in a loop:  weir_edge_t row = weir_array_read(s, rows, i);
//                 weir_array_t out = weir_array_write(s, weir_array_at(out, state[1]), i, y);
//                 state[1] = out.flow;
//   weir_edge_t y = weir_array_stack(s, weir_array_at(out, result[1]));
//
// A weir_array_t is a value. Writing gives a new one, whose |flow| orders what is done with it
// after the write; in a loop the flow, a float scalar, is the state. Gradients go through. Errors
// stick in the scope.
#ifndef WEIR_TENSOR_ARRAY_H_
#define WEIR_TENSOR_ARRAY_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_ARRAY_MAX_RANK = 8 };

typedef struct weir_array_t {
  weir_edge_t handle;
  weir_edge_t flow;
  weir_dtype_t dtype;
  int element_rank;  // -1: unknown
  int64_t element_dims[WEIR_ARRAY_MAX_RANK];
} weir_array_t;

typedef struct weir_array_options_t {
  int reserved;
  weir_dims_t element_shape;  // default: unknown; elements may then differ
  bool dynamic_size;          // grows when written beyond its end
  bool keeps_read;            // elements may be read more than once
  const char* name;           // default: "TensorArray"
} weir_array_options_t;
// An array of |size| (an int32 scalar) elements.
WEIR_API weir_array_t weir_array_with(weir_scope_t* scope, weir_edge_t size, weir_dtype_t dtype,
                                      const weir_array_options_t* options);
#define weir_array(scope, size, dtype, ...) \
  weir_array_with((scope), (size), (dtype), &(const weir_array_options_t){0, __VA_ARGS__})
// An array of the slices of |value| along its first dimension. Each may be read once.
WEIR_API weir_array_t weir_array_unstack(weir_scope_t* scope, weir_edge_t value);
// All elements as one tensor, along a new first dimension.
WEIR_API weir_edge_t weir_array_stack(weir_scope_t* scope, weir_array_t array);
WEIR_API weir_edge_t weir_array_read(weir_scope_t* scope, weir_array_t array, weir_edge_t index);
WEIR_API weir_array_t weir_array_write(weir_scope_t* scope, weir_array_t array, weir_edge_t index,
                                       weir_edge_t value);
WEIR_API weir_edge_t weir_array_size(weir_scope_t* scope, weir_array_t array);
// |array| as of |flow|: after a loop, or within.
WEIR_API weir_array_t weir_array_at(weir_array_t array, weir_edge_t flow);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_TENSOR_ARRAY_H_
