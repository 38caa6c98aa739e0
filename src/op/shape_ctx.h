// shape_ctx.h — What a shape function sees and says, and the shape functions many ops share.
// Thread-confined.
#ifndef WEIR_OP_SHAPE_CTX_H_
#define WEIR_OP_SHAPE_CTX_H_

#include "op/op.h"

// What a resource handle (or a TensorList) is known to hold.
typedef struct weir_handle_info_t {
  weir_dtype_t dtype;
  const weir_shape_t* shape;
} weir_handle_info_t;

struct weir_shape_ctx_t {
  const weir_node_def_t* node;
  weir_arena_t* arena;
  // One a tensor input. Shapes are never NULL.
  const weir_shape_t* const* input_shapes;
  const weir_tensor_t* const* input_values;  // the constant value, or NULL where not known
  const weir_shape_t* const*
      input_values_as_shape;  // the value read as a shape, maybe in part (Shape, Pack …), or NULL
  const weir_handle_info_t* const* input_handles;  // NULL where not known
  // Results; unset outputs stay unknown.
  const weir_shape_t** output_shapes;
  const weir_shape_t**
      output_values_as_shape;  // optional: the output's value, where it is a partly known shape
  const weir_handle_info_t** output_handles;
  int64_t
      producer;  // the version of TensorFlow's graphs that the node was written by; 0: not known
};

WEIR_INLINE const weir_shape_t* weir_shape_input(const weir_shape_ctx_t* ctx, int i) {
  return ctx->input_shapes[i];
}
WEIR_INLINE const weir_tensor_t* weir_shape_value(const weir_shape_ctx_t* ctx, int i) {
  return ctx->input_values[i];
}
WEIR_INLINE weir_attrs_t weir_shape_attrs(const weir_shape_ctx_t* ctx) { return ctx->node->attrs; }

WEIR_MUST_USE weir_status_t* weir_shape_set(weir_shape_ctx_t* ctx, int output,
                                            const weir_shape_t* shape);  // NULL: OOM
WEIR_MUST_USE weir_status_t* weir_shape_set_dims(weir_shape_ctx_t* ctx, int output, int rank,
                                                 const int64_t* dims);
WEIR_MUST_USE weir_status_t* weir_shape_set_scalar(weir_shape_ctx_t* ctx, int output);
WEIR_MUST_USE weir_status_t* weir_shape_set_vector(weir_shape_ctx_t* ctx, int output,
                                                   int64_t size);  // -1: unknown
WEIR_MUST_USE weir_status_t* weir_shape_set_handle(weir_shape_ctx_t* ctx, int output,
                                                   weir_dtype_t dtype, const weir_shape_t* shape);

// Checks, in TensorFlow's words: "Shape must be rank 1 but is rank 2". out_shape may be NULL.
WEIR_MUST_USE weir_status_t* weir_shape_with_rank(weir_shape_ctx_t* ctx, const weir_shape_t* shape,
                                                  int rank, const weir_shape_t** out_shape);
WEIR_MUST_USE weir_status_t* weir_shape_at_least(weir_shape_ctx_t* ctx, const weir_shape_t* shape,
                                                 int rank);
WEIR_MUST_USE weir_status_t* weir_shape_at_most(weir_shape_ctx_t* ctx, const weir_shape_t* shape,
                                                int rank);
// Merges or fails with INVALID_ARGUMENT "Shapes must be equal …" / "Dimensions must be equal, but
// are 2 and 3". A shape that is NULL is one that there was no memory for.
WEIR_MUST_USE weir_status_t* weir_shape_join(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                             const weir_shape_t* b, const weir_shape_t** out_shape);
WEIR_MUST_USE weir_status_t* weir_dim_join(weir_shape_ctx_t* ctx, int64_t a, int64_t b,
                                           int64_t* out_dim);
WEIR_MUST_USE weir_status_t* weir_shape_broadcast(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                                  const weir_shape_t* b,
                                                  const weir_shape_t** out_shape);
// The shape that input |i|'s value spells; unknown (of known rank, where the input's length is
// known) when it is not constant.
WEIR_MUST_USE weir_status_t* weir_shape_from_value(weir_shape_ctx_t* ctx, int i,
                                                   const weir_shape_t** out_shape);
// As that, where the scalar -1 spells a shape of which nothing is known.
WEIR_MUST_USE weir_status_t* weir_shape_from_value_or_scalar(weir_shape_ctx_t* ctx, int i,
                                                             const weir_shape_t** out_shape);
// Dimension |axis| (negative counts from the end) or -1 when unknown.
int64_t weir_shape_dim(const weir_shape_t* shape, int axis);
// NULL when out of memory, also where |a| or |b| is, for want of it.
const weir_shape_t* weir_shape_concat(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                      const weir_shape_t* b);
// Dimensions [begin, end) of |shape|; unknown rank stays unknown. NULL when out of memory.
const weir_shape_t* weir_shape_sub(weir_shape_ctx_t* ctx, const weir_shape_t* shape, int begin,
                                   int end);

// ---- shape functions to use as they are ----
weir_status_t* weir_shape_fn_unknown(weir_shape_ctx_t* ctx);  // nothing can be said
weir_status_t* weir_shape_fn_none(weir_shape_ctx_t* ctx);     // no outputs
weir_status_t* weir_shape_fn_scalar(weir_shape_ctx_t* ctx);   // every output is a scalar
weir_status_t* weir_shape_fn_unchanged(
    weir_shape_ctx_t* ctx);  // output 0 as input 0, handle information too
weir_status_t* weir_shape_fn_broadcast(
    weir_shape_ctx_t* ctx);  // output 0: inputs 0 and 1 broadcast
weir_status_t* weir_shape_fn_merge_all(weir_shape_ctx_t* ctx);  // output 0: all inputs must agree
// Output 0: a row of input 0 for each of input 2's segments; input 1 says which element is whose.
weir_status_t* weir_shape_fn_unsorted_segment(weir_shape_ctx_t* ctx);

#endif  // WEIR_OP_SHAPE_CTX_H_
