// common.h — What the array ops share: integer arguments as constants, values that are shapes,
// constant vectors in gradients.
#ifndef WEIR_OPS_ARRAY_COMMON_H_
#define WEIR_OPS_ARRAY_COMMON_H_

#include "kernel/move/move_op.h"
#include "op/cost.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "op/simplify.h"

// ---- kernels ----

// Whether |count| rows of the first dimension, from |begin| on, had better be a view than a copy: a
// large one pays. Of a reference variable, whose reads change with it, programs can tell the two
// apart. There it is as in TensorFlow: all rows, or such as begin and end at multiples of 64 bytes.
static inline bool array_rows_are_view(const weir_tensor_t* in, int64_t begin, int64_t count) {
  enum { VIEW_SIZE = 4096, ALIGNMENT = 64 };
  if (in->rank == 0 || in->count == 0 || count == 0) return false;
  const int64_t row = in->count / in->dims[0] * (int64_t)weir_dtype_size(weir_tensor_type(in));
  if (!weir_tensor_is_variable(in)) return row * count >= VIEW_SIZE;
  if (count == in->dims[0]) return true;
  if (in->rank > 1) return row % ALIGNMENT == 0;
  return begin * row % ALIGNMENT == 0 && count * row % ALIGNMENT == 0;
}

// ---- shape functions ----

// What is known of the integers that an input or output of a node will hold.
typedef struct array_ints_t {
  bool is_known;  // count and values are; a value may still be unknown
  bool is_exact;  // every value is; a -1 is the number -1 then
  int count;
  int64_t values[WEIR_MAX_RANK];  // -1: not known, unless is_exact
} array_ints_t;

static inline void array_ints_from_tensor(const weir_tensor_t* tensor, array_ints_t* out) {
  out->is_known = out->is_exact = tensor->count <= WEIR_MAX_RANK;
  out->count = out->is_known ? (int)tensor->count : 0;
  for (int i = 0; i < out->count; ++i) out->values[i] = weir_move_int_at(tensor, i);
}

// Reads input |i|: a constant, or a value known in part.
static inline void array_input_ints(const weir_shape_ctx_t* ctx, int i, array_ints_t* out) {
  const weir_tensor_t* value = ctx->input_values[i];
  const weir_shape_t* partial = ctx->input_values_as_shape ? ctx->input_values_as_shape[i] : NULL;
  *out = (array_ints_t){.is_known = false};
  if (value && weir_dtype_is_integer(weir_tensor_type(value))) {
    array_ints_from_tensor(value, out);
  } else if (partial && partial->rank >= 0) {
    out->is_known = true;
    out->is_exact = weir_shape_is_full(partial);
    out->count = partial->rank;
    for (int k = 0; k < partial->rank; ++k) out->values[k] = partial->dims[k];
  }
}

// Notes that output |i|, an integer scalar or vector, holds |values| (-1 where not known), for ops
// that read it as a shape.
static inline weir_status_t* array_set_value(weir_shape_ctx_t* ctx, int i, int count,
                                             const int64_t* values) {
  if (!ctx->output_values_as_shape) return NULL;
  for (int k = 0; k < count; ++k) {
    if (values[k] < -1) return NULL;
  }
  ctx->output_values_as_shape[i] = weir_shape_make(ctx->arena, count, values);
  return ctx->output_values_as_shape[i] ? NULL : weir_out_of_memory();
}

static inline bool array_is_index_type(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_INT32 || dtype == WEIR_DTYPE_INT64;
}

// Output |out| holds what input |in| holds, where that is known to be a shape.
static inline weir_status_t* array_pass_value(weir_shape_ctx_t* ctx, int in, int out) {
  array_ints_t ints;
  if (!array_is_index_type(weir_dtype_base(ctx->node->input_types[in]))) return NULL;
  array_input_ints(ctx, in, &ints);
  return ints.is_known ? array_set_value(ctx, out, ints.count, ints.values) : NULL;
}

// An axis attribute or constant against |rank| places: [-rank, rank).
static inline weir_status_t* array_axis(int64_t axis, int rank, int* out_axis) {
  if (axis < -rank || axis >= rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "axis = %lld not in [%d, %d)", (long long)axis, -rank,
                       rank);
  }
  *out_axis = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

// "[1,2]": the place of element |flat| in |tensor|, for messages; "" in a scalar.
static inline const char* array_place_text(const weir_tensor_t* tensor, int64_t flat,
                                           char buffer[WEIR_SHAPE_TEXT_SIZE]) {
  int64_t index[WEIR_MAX_RANK];
  for (int i = tensor->rank - 1; i >= 0; --i) {
    index[i] = flat % tensor->dims[i];
    flat /= tensor->dims[i];
  }
  buffer[0] = 0;
  return tensor->rank == 0 ? buffer : weir_shape_text(tensor->rank, index, buffer);
}

// ---- simplifications ----

// For ops whose output equals input 0 whenever both have the same shape. Where the shape follows
// from values that are not constant, these may still be wrong, which the kernel says.
static inline weir_status_t* array_simplify_same(weir_simplify_ctx_t* ctx) {
  bool is_known =
      ctx->node->input_count == 1 || ctx->builder->vtable->constant(ctx->builder, ctx->inputs[1]);
  if (!is_known) return NULL;
  return weir_simplify_to_input(ctx, 0);
}

// ---- gradients ----

static inline const weir_tensor_t* array_grad_constant(weir_grad_ctx_t* g, weir_edge_t edge) {
  if (g->builder->status || !edge.node) return NULL;
  return g->builder->vtable->constant(g->builder, edge);
}

// A vector Const of int32 or int64.
static inline weir_edge_t array_grad_ints(weir_grad_ctx_t* g, weir_dtype_t dtype,
                                          const int64_t* values, int count) {
  int32_t narrow[2 * WEIR_MAX_RANK];
  if (dtype == WEIR_DTYPE_INT64) return weir_build_int64s(g->builder, values, count);
  for (int i = 0; i < count; ++i) narrow[i] = (int32_t)values[i];
  return weir_build_int32s(g->builder, narrow, count);
}

// The shape of |edge| as a vector of |dtype| (int32 or int64): a Const where fully known.
static inline weir_edge_t array_grad_shape(weir_grad_ctx_t* g, weir_edge_t edge,
                                           weir_dtype_t dtype) {
  const weir_shape_t* shape = weir_grad_shape(g, edge);
  if (weir_shape_is_full(shape)) return array_grad_ints(g, dtype, shape->dims, shape->rank);
  return weir_grad_node_with(g, "Shape", WEIR_EDGES(edge),
                             WEIR_ATTRS(weir_attr_type("out_type", dtype)));
}

// The axes 0 … rank - 1 of |edge|.
static inline weir_edge_t array_grad_all_axes(weir_grad_ctx_t* g, weir_edge_t edge) {
  const weir_shape_t* shape = weir_grad_shape(g, edge);
  if (shape->rank < 0) {
    weir_edge_t rank = weir_grad_node(g, "Rank", WEIR_EDGES(edge));
    return weir_grad_node(
        g, "Range",
        WEIR_EDGES(weir_build_int32(g->builder, 0), rank, weir_build_int32(g->builder, 1)));
  }
  int64_t axes[WEIR_MAX_RANK];
  for (int i = 0; i < shape->rank; ++i) axes[i] = i;
  return array_grad_ints(g, WEIR_DTYPE_INT32, axes, shape->rank);
}

// dx = Reshape(dy, Shape(x)).
static inline weir_status_t* array_grad_reshape(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t dx =
      weir_grad_node(g, "Reshape", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_shape_of(g, x)));
  return weir_grad_set(g, 0, dx);
}

// A vector of one element from a scalar edge.
static inline weir_edge_t array_grad_vector(weir_grad_ctx_t* g, weir_edge_t scalar) {
  const int64_t one[] = {1};
  return weir_grad_node(g, "Reshape",
                        WEIR_EDGES(scalar, array_grad_ints(g, WEIR_DTYPE_INT32, one, 1)));
}

// What debug ops call a tensor: "node" or "node:slot".
static inline weir_status_t* array_check_tensor_name(weir_view_t name) {
  const char* colon = name.size ? memchr(name.data, ':', name.size) : NULL;
  if (name.size == 0 ||
      (colon && memchr(colon + 1, ':', name.size - 1 - (size_t)(colon - name.data)))) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Failed to parse tensor name: \"%.*s\"",
                       WEIR_VIEW_ARG(name));
  }
  const char* end = name.data + name.size;
  bool is_slot = !colon || colon + 1 < end;
  for (const char* c = colon ? colon + 1 : end; c < end; ++c) is_slot &= *c >= '0' && *c <= '9';
  if (is_slot) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid string value for output_slot: \"%.*s\"",
                     (int)(end - colon - 1), colon + 1);
}

// Whether a debug op gives a vector without elements: its gates are at its debug URLs, and it has
// none of those.
static inline bool array_is_gated_off(weir_attrs_t attrs) {
  return weir_attrs_bool(attrs, "gated_grpc");
}

static inline weir_status_t* array_gated_off(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  return weir_kernel_output(ctx, 0, 1, (const int64_t[]){0}, &out);
}

#endif  // WEIR_OPS_ARRAY_COMMON_H_
