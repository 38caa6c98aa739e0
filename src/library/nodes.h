// nodes.h — Small things that layers, losses and metrics are put together from. Not public.
//
// All of them do nothing after an error of the scope, as the functions of weir/ops.h do.
#ifndef WEIR_LIBRARY_NODES_H_
#define WEIR_LIBRARY_NODES_H_

#include "weir/ops.h"
#include "weir/scope.h"

#define WEIR_LIB_NONE ((weir_edge_t){NULL, 0})

// Whether |scope| is without error and all of |inputs| are there; a missing one sticks as
// INVALID_ARGUMENT, |what| being the function's name.
bool weir_lib_is_ready(weir_scope_t* scope, const char* what, const weir_edge_t* inputs, int count);
#define weir_lib_ready(scope, what, ...)                           \
  weir_lib_is_ready((scope), (what), (weir_edge_t[]){__VA_ARGS__}, \
                    (int)(sizeof((weir_edge_t[]){__VA_ARGS__}) / sizeof(weir_edge_t)))
// INVALID_ARGUMENT with a printf-formatted message.
#define weir_lib_fail(scope, ...) \
  weir_scope_fail((scope), WEIR_STATUS(INVALID_ARGUMENT, __VA_ARGS__))

// A scalar of any floating or integer type.
weir_edge_t weir_lib_number(weir_scope_t* scope, weir_dtype_t dtype, double value);
// An int32 vector.
weir_edge_t weir_lib_ints(weir_scope_t* scope, const int64_t* values, int count);
#define weir_lib_vector(scope, ...)                      \
  weir_lib_ints((scope), (const int64_t[]){__VA_ARGS__}, \
                (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
// |x| itself when it has the type already.
weir_edge_t weir_lib_cast(weir_scope_t* scope, weir_edge_t x, weir_dtype_t dtype);

int weir_lib_rank(weir_edge_t x);  // -1: unknown
// Size of a dimension, counted from the end when negative; -1: unknown.
int64_t weir_lib_dim(weir_edge_t x, int index);
// Whether two shapes may be equal, as far as they are known.
bool weir_lib_is_same_shape(weir_edge_t a, weir_edge_t b);
// "SAME" or "VALID" (also for NULL), in any case of letters; NULL: something else.
const char* weir_lib_padding(const char* text);
// Element |index| of a vector, counted from the end when negative, as a scalar.
weir_edge_t weir_lib_element(weir_scope_t* scope, weir_edge_t vector, int index);
// Elements [begin, end) of a vector; |end| 0 means all that follow.
weir_edge_t weir_lib_part(weir_scope_t* scope, weir_edge_t vector, int begin, int end);
// The numbers of all dimensions of |x|, or of all but the last |left_out|.
weir_edge_t weir_lib_axes(weir_scope_t* scope, weir_edge_t x, int left_out);
weir_edge_t weir_lib_sum(weir_scope_t* scope, weir_edge_t x);  // of all elements
weir_edge_t weir_lib_concat(weir_scope_t* scope, weir_edge_t a, weir_edge_t b, int axis);

// One of two values by a scalar predicate; only the branch that is taken runs.
weir_edge_t weir_lib_merge(weir_scope_t* scope, weir_edge_t when_false, weir_edge_t when_true);

// |scope| on the device of |edge|, where that has one.
weir_scope_t* weir_lib_beside(weir_scope_t* scope, weir_edge_t edge);

// The two seeds of a random op, as TensorFlow derives them from an op's and a graph's.
typedef struct weir_lib_seeds_t {
  int64_t seed, seed2;
} weir_lib_seeds_t;
weir_lib_seeds_t weir_lib_seeds(weir_scope_t* scope, int64_t seed, int64_t graph_seed);

#endif  // WEIR_LIBRARY_NODES_H_
