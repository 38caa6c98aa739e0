// builder.c — Adding nodes through the abstract builder, with sticky errors.
#include "op/builder.h"

#include "tensor/cast.h"

weir_edge_t weir_build(weir_builder_t* b, const char* op, weir_edges_t inputs, weir_attrs_t attrs) {
  if (b->status) return WEIR_NO_EDGE;
  for (int i = 0; i < inputs.count; ++i) {
    if (inputs.items[i].node) continue;
    b->status = WEIR_STATUS(INTERNAL, "input %d of a new %s node is missing", i, op);
    return WEIR_NO_EDGE;
  }
  weir_edge_t first = WEIR_NO_EDGE;
  b->status = b->vtable->add(b, op, inputs, attrs, op, &first);
  return b->status ? WEIR_NO_EDGE : first;
}

weir_edge_t weir_build_output(weir_edge_t first, int index) {
  return first.node ? (weir_edge_t){.node = first.node, .index = index} : WEIR_NO_EDGE;
}

weir_edge_t weir_build_const(weir_builder_t* b, weir_tensor_t* take_tensor) {
  weir_edge_t edge = weir_build(b, "Const", WEIR_NO_EDGES,
                                WEIR_ATTRS(weir_attr_type("dtype", weir_tensor_type(take_tensor)),
                                           weir_attr_tensor("value", take_tensor)));
  weir_tensor_release(take_tensor);
  return edge;
}

// A Const of |count| elements at |data|; a scalar when |rank| is 0.
static weir_edge_t build_from(weir_builder_t* b, weir_dtype_t dtype, int rank, int64_t count,
                              const void* data) {
  if (b->status) return WEIR_NO_EDGE;
  weir_tensor_t* tensor = NULL;
  b->status = weir_tensor_create_from(dtype, rank, &count, data, &tensor);
  return b->status ? WEIR_NO_EDGE : weir_build_const(b, tensor);
}

weir_edge_t weir_build_int32(weir_builder_t* b, int32_t value) {
  return build_from(b, WEIR_DTYPE_INT32, 0, 1, &value);
}

weir_edge_t weir_build_int32s(weir_builder_t* b, const int32_t* values, int count) {
  return build_from(b, WEIR_DTYPE_INT32, 1, count, values);
}

weir_edge_t weir_build_int64s(weir_builder_t* b, const int64_t* values, int count) {
  return build_from(b, WEIR_DTYPE_INT64, 1, count, values);
}

weir_edge_t weir_build_scalar(weir_builder_t* b, weir_dtype_t dtype, double value) {
  if (b->status) return WEIR_NO_EDGE;
  weir_tensor_t* tensor = NULL;
  b->status = weir_tensor_create(dtype, 0, NULL, &tensor);
  if (b->status) return WEIR_NO_EDGE;
  b->status = weir_cast_elements(dtype, tensor->data, WEIR_DTYPE_DOUBLE, &value, 1);
  return weir_build_const(b, tensor);  // none after an error
}

weir_edge_t weir_build_bool(weir_builder_t* b, bool value) {
  return build_from(b, WEIR_DTYPE_BOOL, 0, 1, &value);
}
