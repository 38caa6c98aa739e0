// helpers.c — Small things that translations are put together from.
#include <stdio.h>

#include "graph/graph.h"
#include "onnx/import.h"

// ---- nodes ----

weir_edge_t onnx_add(onnx_call_t* call, const char* op, weir_edges_t inputs, weir_attrs_t attrs) {
  if (onnx_failed(call)) return WEIR_NO_EDGE;
  for (int i = 0; i < inputs.count; ++i) {
    if (inputs.items[i].node) continue;
    onnx_fail(call, "an input that it needs is left out");
    return WEIR_NO_EDGE;
  }
  return weir_scope_first(weir_scope_add(call->scope, op, NULL, inputs, attrs));
}

weir_edge_t onnx_const(onnx_call_t* call, weir_tensor_t* take_tensor) {
  weir_edge_t edge = onnx_failed(call) ? WEIR_NO_EDGE : weir_const(call->scope, take_tensor);
  weir_tensor_release(take_tensor);
  return edge;
}

static weir_edge_t const_from(onnx_call_t* call, weir_dtype_t dtype, int rank, const int64_t* dims,
                              const void* data) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create_from(dtype, rank, dims, data, &tensor);
  if (!status) return onnx_const(call, tensor);
  weir_scope_fail(call->scope, status);
  return WEIR_NO_EDGE;
}

weir_edge_t onnx_ints(onnx_call_t* call, const int64_t* values, int count) {
  return const_from(call, WEIR_DTYPE_INT64, 1, (const int64_t[]){count}, values);
}
weir_edge_t onnx_int(onnx_call_t* call, int64_t value) {
  return const_from(call, WEIR_DTYPE_INT64, 0, NULL, &value);
}
weir_edge_t onnx_bool(onnx_call_t* call, bool value) {
  return const_from(call, WEIR_DTYPE_BOOL, 0, NULL, &value);
}

weir_edge_t onnx_number(onnx_call_t* call, weir_dtype_t dtype, double value) {
  bool is_integer = weir_dtype_is_integer(dtype);
  int64_t whole = is_integer ? (int64_t)value : 0;
  weir_edge_t wide =
      is_integer ? onnx_int(call, whole) : const_from(call, WEIR_DTYPE_DOUBLE, 0, NULL, &value);
  return onnx_cast(call, wide, dtype);
}
weir_edge_t onnx_like(onnx_call_t* call, weir_edge_t x, double value) {
  return onnx_number(call, onnx_dtype_of(x), value);
}

weir_edge_t onnx_cast(onnx_call_t* call, weir_edge_t x, weir_dtype_t dtype) {
  if (onnx_failed(call) || onnx_dtype_of(x) == dtype) return x;
  return ADD_WITH(call, "Cast", WEIR_ATTRS(weir_attr_type("DstT", dtype)), x);
}

// ---- what is known of values ----

weir_dtype_t onnx_dtype_of(weir_edge_t x) {
  return x.node ? weir_dtype_base(weir_edge_dtype(x)) : WEIR_DTYPE_INVALID;
}
int onnx_rank(weir_edge_t x) { return x.node ? weir_edge_shape(x)->rank : -1; }

int64_t onnx_dim(weir_edge_t x, int index) {
  int rank = onnx_rank(x);
  if (index < 0) index += rank;
  return index >= 0 && index < rank ? weir_edge_shape(x)->dims[index] : -1;
}

int onnx_need_rank(onnx_call_t* call, weir_edge_t x) {
  int rank = onnx_rank(x);
  if (rank < 0) onnx_refuse(call, "of a value whose rank is not known");
  return WEIR_MAX(rank, 0);
}

const weir_tensor_t* onnx_constant(weir_edge_t x) {
  if (!x.node || strcmp(weir_node_op(x.node), "Const") != 0) return NULL;
  return weir_attrs_tensor(x.node->def.attrs, "value");
}

bool onnx_constant_ints(onnx_call_t* call, weir_edge_t x, const int64_t** out_values,
                        int* out_count) {
  const weir_tensor_t* tensor = onnx_constant(x);
  bool is_whole =
      tensor && (tensor->dtype == WEIR_DTYPE_INT64 || tensor->dtype == WEIR_DTYPE_INT32);
  if (!is_whole || tensor->count > INT32_MAX) return false;
  int64_t* values = weir_scope_alloc(call->scope, (size_t)tensor->count + 1, sizeof(*values));
  if (!values) return false;
  for (int64_t i = 0; i < tensor->count; ++i) values[i] = weir_tensor_int_at(tensor, i);
  *out_values = values;
  *out_count = (int)tensor->count;
  return true;
}

// ---- inputs, outputs, attributes ----

weir_edge_t onnx_in(const onnx_call_t* call, int index) {
  return index < call->input_count ? call->inputs[index] : WEIR_NO_EDGE;
}
bool onnx_has_in(const onnx_call_t* call, int index) { return onnx_in(call, index).node != NULL; }
void onnx_out(onnx_call_t* call, int index, weir_edge_t edge) {
  if (index < call->output_count) call->outputs[index] = edge;
}
bool onnx_wants_out(const onnx_call_t* call, int index) {
  return index < call->output_count && call->node->outputs.items[index].size > 0;
}

const onnx_attr_t* onnx_attr(const onnx_call_t* call, const char* name) {
  for (int i = 0; i < call->attr_count; ++i) {
    if (weir_view_is(call->attrs[i].name, name)) return &call->attrs[i];
  }
  return NULL;
}
int64_t onnx_attr_int(const onnx_call_t* call, const char* name, int64_t otherwise) {
  const onnx_attr_t* attr = onnx_attr(call, name);
  return attr && attr->type == ONNX_ATTR_INT ? attr->i : otherwise;
}
float onnx_attr_float(const onnx_call_t* call, const char* name, float otherwise) {
  const onnx_attr_t* attr = onnx_attr(call, name);
  return attr && attr->type == ONNX_ATTR_FLOAT ? attr->f : otherwise;
}
weir_view_t onnx_attr_string(const onnx_call_t* call, const char* name, const char* otherwise) {
  const onnx_attr_t* attr = onnx_attr(call, name);
  return attr && attr->type == ONNX_ATTR_STRING ? attr->s : weir_view_of(otherwise);
}
const int64_t* onnx_attr_ints(const onnx_call_t* call, const char* name, int* out_count) {
  const onnx_attr_t* attr = onnx_attr(call, name);
  bool is_list = attr && attr->type == ONNX_ATTR_INTS && attr->ints;
  *out_count = is_list ? attr->count : 0;
  return is_list ? attr->ints : NULL;
}

// ---- errors ----

static void fail(onnx_call_t* call, weir_code_t code, const char* format, va_list args) {
  char text[512];
  if (onnx_failed(call)) return;
  vsnprintf(text, sizeof text, format, args);
  weir_scope_fail(call->scope, weir_status_create(code, __FILE__, __LINE__, "%.*s %s",
                                                  WEIR_VIEW_ARG(call->node->op), text));
}
void onnx_refuse(onnx_call_t* call, const char* format, ...) {
  va_list args;
  va_start(args, format);
  fail(call, WEIR_UNIMPLEMENTED, format, args);
  va_end(args);
}
void onnx_fail(onnx_call_t* call, const char* format, ...) {
  va_list args;
  va_start(args, format);
  fail(call, WEIR_INVALID_ARGUMENT, format, args);
  va_end(args);
}
bool onnx_failed(const onnx_call_t* call) { return weir_scope_status(call->scope) != NULL; }

// ---- shapes ----

weir_edge_t onnx_shape(onnx_call_t* call, weir_edge_t x) {
  int rank = onnx_rank(x);
  if (rank >= 0 && weir_shape_is_full(weir_edge_shape(x)))
    return onnx_ints(call, weir_edge_shape(x)->dims, rank);
  return ADD_WITH(call, "Shape", WEIR_ATTRS(weir_attr_type("out_type", WEIR_DTYPE_INT64)), x);
}

weir_edge_t onnx_part(onnx_call_t* call, weir_edge_t vector, int64_t begin, int64_t end) {
  bool is_open = end == INT64_MAX;
  return ADD_WITH(call, "StridedSlice", WEIR_ATTRS(weir_attr_int("end_mask", is_open)), vector,
                  INTS(call, begin), INTS(call, is_open ? 0 : end), INTS(call, 1));
}

weir_edge_t onnx_join(onnx_call_t* call, const weir_edge_t* parts, int count, int64_t axis) {
  if (count == 1) return parts[0];
  weir_edge_t* all = weir_scope_alloc(call->scope, (size_t)count + 1, sizeof(*all));
  if (!all) return WEIR_NO_EDGE;
  for (int i = 0; i < count; ++i) all[i] = parts[i];
  all[count] = onnx_int(call, axis);
  return onnx_add(call, "ConcatV2", (weir_edges_t){all, count + 1},
                  WEIR_ATTRS(weir_attr_int("N", count)));
}

weir_edge_t onnx_reshape(onnx_call_t* call, weir_edge_t x, weir_edge_t shape) {
  return ADD(call, "Reshape", x, shape);
}
weir_edge_t onnx_transpose(onnx_call_t* call, weir_edge_t x, const int64_t* perm, int rank) {
  return ADD(call, "Transpose", x, onnx_ints(call, perm, rank));
}
weir_edge_t onnx_expand(onnx_call_t* call, weir_edge_t x, int64_t axis) {
  return ADD(call, "ExpandDims", x, onnx_int(call, axis));
}
weir_edge_t onnx_squeeze(onnx_call_t* call, weir_edge_t x, int64_t axis) {
  return ADD_WITH(call, "Squeeze", WEIR_ATTRS(weir_attr_ints("squeeze_dims", &axis, 1)), x);
}
weir_edge_t onnx_reduce(onnx_call_t* call, const char* op, weir_edge_t x, weir_edge_t axes,
                        bool keeps) {
  return ADD_WITH(call, op, WEIR_ATTRS(weir_attr_bool("keep_dims", keeps)), x, axes);
}
