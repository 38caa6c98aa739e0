// attrs.h — Types of attributes in the generated functions of weir/ops.h.
//
// Attributes that TensorFlow gives a default come last, as designated initialisers: weir_mat_mul(s,
// a, b, .transpose_b = true). What is left out has its default. Where the default is not zero, a
// value is given by WEIR_SET: .axis = WEIR_SET(0).
#ifndef WEIR_ATTRS_H_
#define WEIR_ATTRS_H_

#include <stdbool.h>
#include <stdint.h>

#include "weir/dtype.h"

typedef struct weir_opt_int_t {
  int64_t value;
  bool is_set;
} weir_opt_int_t;
typedef struct weir_opt_float_t {
  float value;
  bool is_set;
} weir_opt_float_t;
typedef struct weir_opt_bool_t {
  bool value;
  bool is_set;
} weir_opt_bool_t;
#define WEIR_SET(x) \
  { (x), true }

// Lists and shapes: borrowed for the call.
typedef struct weir_ints_t {
  const int64_t* items;
  int count;
} weir_ints_t;
typedef struct weir_floats_t {
  const float* items;
  int count;
} weir_floats_t;
typedef struct weir_types_t {
  const weir_dtype_t* items;
  int count;
} weir_types_t;
typedef struct weir_strings_t {
  const char* const* items;
  int count;
} weir_strings_t;
typedef struct weir_dims_t {
  const int64_t* dims;
  int rank;
  bool is_set;
} weir_dims_t;  // rank -1: unknown
typedef struct weir_shapes_t {
  const weir_dims_t* items;
  int count;
} weir_shapes_t;

#define WEIR_LIST_(list, type, ...) \
  ((list){(const type[]){__VA_ARGS__}, (int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type))})
#define WEIR_INTS(...) WEIR_LIST_(weir_ints_t, int64_t, __VA_ARGS__)
#define WEIR_FLOATS(...) WEIR_LIST_(weir_floats_t, float, __VA_ARGS__)
#define WEIR_TYPES(...) WEIR_LIST_(weir_types_t, weir_dtype_t, __VA_ARGS__)
#define WEIR_STRINGS(...) WEIR_LIST_(weir_strings_t, char* const, __VA_ARGS__)
#define WEIR_SHAPES(...) WEIR_LIST_(weir_shapes_t, weir_dims_t, __VA_ARGS__)
// A shape; -1 is an unknown dimension.
#define WEIR_SHAPE(...)                          \
  ((weir_dims_t){(const int64_t[]){__VA_ARGS__}, \
                 (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), true})
#define WEIR_SCALAR_SHAPE ((weir_dims_t){NULL, 0, true})

#endif  // WEIR_ATTRS_H_
