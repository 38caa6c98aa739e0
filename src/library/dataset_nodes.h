// dataset_nodes.h — What the files of datasets share. Not public.
#ifndef WEIR_LIBRARY_DATASET_NODES_H_
#define WEIR_LIBRARY_DATASET_NODES_H_

#include "nodes.h"
#include "weir/dataset.h"

#define WEIR_LIB_NO_DATASET ((weir_dataset_t){0})

// Whether |scope| is without error and |dataset| is one; if not, INVALID_ARGUMENT sticks, |what|
// being the function's name.
bool weir_lib_has_dataset(weir_scope_t* scope, const char* what, weir_dataset_t dataset);
// The dataset that |variant| is, with elements as |element| says; none after an error.
weir_dataset_t weir_lib_dataset(weir_scope_t* scope, weir_edge_t variant, weir_spec_t element);
// An int64 scalar.
weir_edge_t weir_lib_int64(weir_scope_t* scope, int64_t value);
// What types and shapes of |count| tensors are kept in; both NULL after an error.
typedef struct weir_lib_element_t {
  weir_dtype_t* types;
  weir_dims_t* shapes;
  int count;
} weir_lib_element_t;
weir_lib_element_t weir_lib_element_alloc(weir_scope_t* scope, int count);
weir_spec_t weir_lib_element_spec(weir_lib_element_t element);
// The shape [first, rest…]. An unknown rank stays so.
weir_dims_t weir_lib_stacked(weir_scope_t* scope, int64_t first, weir_dims_t rest);
// |spec| in the memory of |scope|, for what came from another.
weir_spec_t weir_lib_spec_copy(weir_scope_t* scope, weir_spec_t spec);

#endif  // WEIR_LIBRARY_DATASET_NODES_H_
