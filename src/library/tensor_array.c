// tensor_array.c — Arrays of tensors over the TensorArray ops.
#include "weir/tensor_array.h"

#include "nodes.h"

static weir_dims_t element_shape(const weir_array_t* array) {
  return (weir_dims_t){array->element_dims, array->element_rank, true};
}

weir_array_t weir_array_with(weir_scope_t* scope, weir_edge_t size, weir_dtype_t dtype,
                             const weir_array_options_t* options) {
  options = options ? options : &(const weir_array_options_t){0};
  weir_array_t array = {.dtype = dtype, .element_rank = -1};
  weir_dims_t shape = options->element_shape;
  if (!weir_lib_ready(scope, "array", size)) return array;
  const bool is_known = shape.is_set && shape.rank >= 0 && shape.rank <= WEIR_ARRAY_MAX_RANK;
  if (is_known) {
    array.element_rank = shape.rank;
    for (int i = 0; i < shape.rank; ++i) array.element_dims[i] = shape.dims[i];
  }
  weir_scope_t* s = weir_scope_name(scope, options->name ? options->name : "TensorArray");
  weir_tensor_array_v3_result_t made = weir_tensor_array_v3(
      s, size, dtype, .element_shape = element_shape(&array), .dynamic_size = options->dynamic_size,
      .clear_after_read = {!options->keeps_read, true}, .identical_element_shapes = is_known);
  array.handle = made.handle;
  array.flow = made.flow;
  return array;
}

static weir_edge_t indices_of(weir_scope_t* s, weir_edge_t size) {
  return weir_range(s, weir_const_int(s, 0), size, weir_const_int(s, 1));
}

weir_array_t weir_array_unstack(weir_scope_t* scope, weir_edge_t value) {
  weir_array_t none = {.element_rank = -1};
  if (!weir_lib_ready(scope, "array unstack", value)) return none;
  weir_scope_t* s = weir_scope_in(scope, "TensorArrayUnstack");
  int64_t dims[WEIR_ARRAY_MAX_RANK + 1];
  const int rank = weir_edge_dims(value, dims, WEIR_ARRAY_MAX_RANK + 1);
  if (rank == 0) {
    weir_lib_fail(scope, "array: '%s' is a scalar and has no slices", weir_node_name(value.node));
    return none;
  }
  const bool is_known = rank > 0 && rank <= WEIR_ARRAY_MAX_RANK + 1;
  weir_dims_t shape = {is_known ? dims + 1 : NULL, is_known ? rank - 1 : -1, true};
  weir_edge_t size = weir_lib_element(s, weir_shape(s, value), 0);
  weir_array_t array = weir_array(s, size, weir_edge_type(value), .element_shape = shape);
  array.flow =
      weir_tensor_array_scatter_v3(s, array.handle, indices_of(s, size), value, array.flow);
  return array;
}

weir_edge_t weir_array_size(weir_scope_t* scope, weir_array_t array) {
  WEIR_ASSERT_ARG(scope);
  return weir_tensor_array_size_v3(scope, array.handle, array.flow);
}

weir_edge_t weir_array_stack(weir_scope_t* scope, weir_array_t array) {
  weir_scope_t* s = weir_scope_in(scope, "TensorArrayStack");
  weir_edge_t indices = indices_of(s, weir_array_size(s, array));
  return weir_tensor_array_gather_v3(s, array.handle, indices, array.flow, array.dtype,
                                     .element_shape = element_shape(&array));
}

weir_edge_t weir_array_read(weir_scope_t* scope, weir_array_t array, weir_edge_t index) {
  WEIR_ASSERT_ARG(scope);
  return weir_tensor_array_read_v3(scope, array.handle, index, array.flow, array.dtype);
}

weir_array_t weir_array_write(weir_scope_t* scope, weir_array_t array, weir_edge_t index,
                              weir_edge_t value) {
  array.flow = weir_tensor_array_write_v3(scope, array.handle, index, value, array.flow);
  return array;
}

weir_array_t weir_array_at(weir_array_t array, weir_edge_t flow) {
  array.flow = flow;
  return array;
}
