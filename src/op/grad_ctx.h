// grad_ctx.h — What a gradient function sees: the forward node's inputs and outputs as edges, the
// gradients of its outputs, and a builder. Errors are sticky in the builder: a gradient reads like
// the formula. Thread-confined.
#ifndef WEIR_OP_GRAD_CTX_H_
#define WEIR_OP_GRAD_CTX_H_

#include "op/builder.h"

// A gradient: dense, or the rows |indices| of a tensor of shape |dense_shape| (IndexedSlices).
typedef struct weir_grad_value_t {
  weir_edge_t values;
  weir_edge_t indices;      // WEIR_NO_EDGE when dense
  weir_edge_t dense_shape;  // int32 or int64 vector; WEIR_NO_EDGE when dense
} weir_grad_value_t;

struct weir_grad_ctx_t {
  weir_builder_t* builder;
  const weir_node_def_t* node;
  weir_edge_t self;              // output 0 of the forward node
  const weir_edge_t* inputs;     // forward inputs, one a tensor
  const weir_grad_value_t* dys;  // one an output; values.node NULL where nothing flows back
  weir_grad_value_t* dxs;        // results, one an input; unset: no gradient
  struct weir_function_library_t*
      library;  // for gradients of functions (graph/function.h); may be NULL
};

WEIR_INLINE weir_edge_t weir_grad_input(const weir_grad_ctx_t* g, int i) { return g->inputs[i]; }
WEIR_INLINE weir_edge_t weir_grad_output(const weir_grad_ctx_t* g, int i) {
  return (weir_edge_t){.node = g->self.node, .index = i};
}
WEIR_INLINE bool weir_grad_has_dy(const weir_grad_ctx_t* g, int i) {
  return g->dys[i].values.node != NULL;
}
WEIR_INLINE weir_attrs_t weir_grad_attrs(const weir_grad_ctx_t* g) { return g->node->attrs; }
weir_edge_t weir_grad_dy(weir_grad_ctx_t* g,
                         int i);  // dense: slices are summed up, a missing one becomes zeros
WEIR_INLINE weir_grad_value_t weir_grad_dy_value(const weir_grad_ctx_t* g, int i) {
  return g->dys[i];
}  // as it is

// Adds a node: weir_grad_node(g, "Mul", WEIR_EDGES(a, b)); with attributes weir_grad_node_with.
weir_edge_t weir_grad_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs);
weir_edge_t weir_grad_node_with(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs,
                                weir_attrs_t attrs);
// With those of the forward node's attributes that are among |names|, which ends with NULL:
// weir_grad_node_like(g, "AvgPoolGrad", inputs, WEIR_NAMES("ksize", "strides")).
#define WEIR_NAMES(...) ((const char* const[]){__VA_ARGS__, NULL})
weir_edge_t weir_grad_node_like(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs,
                                const char* const* names);

// Sets the gradient of input |i| and returns the sticky error, so that it can be the last line.
// WEIR_NO_EDGE: none.
WEIR_MUST_USE weir_status_t* weir_grad_set(weir_grad_ctx_t* g, int i, weir_edge_t dx);
WEIR_MUST_USE weir_status_t* weir_grad_set_value(weir_grad_ctx_t* g, int i, weir_grad_value_t dx);
WEIR_MUST_USE weir_status_t* weir_grad_set_slices(weir_grad_ctx_t* g, int i, weir_edge_t values,
                                                  weir_edge_t indices, weir_edge_t dense_shape);
WEIR_INLINE weir_dtype_t weir_grad_dtype(weir_grad_ctx_t* g, weir_edge_t e) {
  return weir_build_dtype(g->builder, e);
}
WEIR_INLINE const weir_shape_t* weir_grad_shape(weir_grad_ctx_t* g, weir_edge_t e) {
  return weir_build_shape(g->builder, e);
}

// ---- formulas many gradients share ----
// Sum |dx| over the dimensions along which input |i| was broadcast against input |other|, and
// reshape to input |i|'s shape.
weir_edge_t weir_grad_unbroadcast(weir_grad_ctx_t* g, weir_edge_t dx, int i, int other);
weir_edge_t weir_grad_mul(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b);
weir_edge_t weir_grad_neg(weir_grad_ctx_t* g, weir_edge_t a);
weir_edge_t weir_grad_conj(weir_grad_ctx_t* g,
                           weir_edge_t a);  // Conj for complex types, |a| itself otherwise
weir_edge_t weir_grad_scalar(weir_grad_ctx_t* g, weir_edge_t like,
                             double value);  // Const of |like|'s type
weir_edge_t weir_grad_shape_of(weir_grad_ctx_t* g,
                               weir_edge_t a);  // Shape as int32; a Const where fully known
weir_edge_t weir_grad_batch_shape(weir_grad_ctx_t* g,
                                  weir_edge_t shape);  // of matrices: all but the last two

weir_status_t* weir_grad_fn_none(weir_grad_ctx_t* g);  // differentiable nowhere, without an error

#endif  // WEIR_OP_GRAD_CTX_H_
