// reduce_grad.h — Gradients of the reductions of reduce.c, split off for size. Where shape and axes
// are known they take constants, else nodes that compute them.
#ifndef WEIR_OPS_MATH_REDUCE_GRAD_H_
#define WEIR_OPS_MATH_REDUCE_GRAD_H_

#include "ops/math/common.h"

// What is known of a reduction while the graph is built.
typedef struct known_t {
  const weir_shape_t* shape;  // of the input
  bool has_axes;              // rank and axes are known: |is_reduced| holds
  bool is_reduced[WEIR_MAX_RANK];
} known_t;

static known_t what_is_known(weir_grad_ctx_t* g) {
  weir_builder_t* b = g->builder;
  known_t known = {.shape = weir_grad_shape(g, weir_grad_input(g, 0))};
  const weir_tensor_t* axes = b->status ? NULL : b->vtable->constant(b, weir_grad_input(g, 1));
  if (!axes || known.shape->rank < 0) return known;
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = weir_tensor_int_at(axes, i);
    if (axis < -(int64_t)known.shape->rank || axis >= known.shape->rank) return known;
    known.is_reduced[axis < 0 ? axis + known.shape->rank : axis] = true;
  }
  known.has_axes = true;
  return known;
}

// The axes as non-negative int32: (axes + rank) mod rank.
static weir_edge_t normal_axes(weir_grad_ctx_t* g, weir_edge_t rank) {
  weir_edge_t axes = weir_grad_input(g, 1);
  if (weir_grad_dtype(g, axes) != WEIR_DTYPE_INT32) axes = cast_to(g, axes, WEIR_DTYPE_INT32);
  return node2(g, "FloorMod", node2(g, "AddV2", axes, rank), rank);
}

// The input's shape with 1 for every reduced dimension. One unknown dimension may be left to
// Reshape as -1.
static weir_edge_t kept_shape(weir_grad_ctx_t* g, const known_t* known) {
  int32_t dims[WEIR_MAX_RANK];
  int unknown_count = 0;
  for (int i = 0; known->has_axes && i < known->shape->rank; ++i) {
    dims[i] = known->is_reduced[i] ? 1 : (int32_t)known->shape->dims[i];
    if (dims[i] < 0) ++unknown_count;
  }
  if (known->has_axes && unknown_count <= 1)
    return weir_build_int32s(g->builder, dims, known->shape->rank);
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  weir_edge_t rank = node1(g, "Size", shape);
  weir_edge_t axes = normal_axes(g, rank);
  weir_edge_t all =
      node3(g, "Range", weir_build_int32(g->builder, 0), rank, weir_build_int32(g->builder, 1));
  weir_edge_t ones = node2(g, "Fill", node1(g, "Shape", axes), weir_build_int32(g->builder, 1));
  return weir_grad_node_with(g, "DynamicStitch", WEIR_EDGES(all, axes, shape, ones),
                             WEIR_ATTRS(weir_attr_int("N", 2)));
}

// |a|, of the output's shape, with the reduced dimensions put back as 1.
static weir_edge_t with_kept_dims(weir_grad_ctx_t* g, const known_t* known, weir_edge_t a) {
  if (weir_attrs_bool(weir_grad_attrs(g), "keep_dims")) return a;
  const weir_shape_t* output = weir_grad_shape(g, weir_grad_output(g, 0));
  if (known->has_axes && output->rank == known->shape->rank) return a;  // nothing was reduced
  return node2(g, "Reshape", a, kept_shape(g, known));
}

static weir_edge_t spread(weir_grad_ctx_t* g, const known_t* known) {
  weir_edge_t dy = with_kept_dims(g, known, weir_grad_dy(g, 0));
  return node2(g, "BroadcastTo", dy, weir_grad_shape_of(g, weir_grad_input(g, 0)));
}

static weir_status_t* sum_grad(weir_grad_ctx_t* g) {
  known_t known = what_is_known(g);
  return weir_grad_set(g, 0, spread(g, &known));
}

// The number of elements a mean is taken of, in the gradient's type.
static weir_edge_t mean_count(weir_grad_ctx_t* g, const known_t* known, weir_edge_t like) {
  double count = 1;
  bool is_known = known->has_axes;
  for (int i = 0; is_known && i < known->shape->rank; ++i) {
    if (!known->is_reduced[i]) continue;
    is_known = known->shape->dims[i] >= 0;
    count *= (double)known->shape->dims[i];
  }
  if (is_known) return weir_grad_scalar(g, like, count);
  weir_edge_t outputs = node2(g, "Maximum", node1(g, "Size", weir_grad_output(g, 0)),
                              weir_build_int32(g->builder, 1));
  weir_edge_t ratio = node2(g, "FloorDiv", node1(g, "Size", weir_grad_input(g, 0)), outputs);
  return cast_to(g, ratio, weir_grad_dtype(g, like));
}

static weir_status_t* mean_grad(weir_grad_ctx_t* g) {
  known_t known = what_is_known(g);
  weir_edge_t dx = spread(g, &known);
  return weir_grad_set(g, 0, node2(g, "RealDiv", dx, mean_count(g, &known, weir_grad_dy(g, 0))));
}

// Elements that reach the extreme share the gradient evenly.
static weir_status_t* extreme_grad(weir_grad_ctx_t* g) {
  known_t known = what_is_known(g);
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t dy = with_kept_dims(g, &known, weir_grad_dy(g, 0));
  weir_edge_t y = with_kept_dims(g, &known, weir_grad_output(g, 0));
  weir_edge_t chosen = cast_to(g, node2(g, "Equal", y, x), weir_grad_dtype(g, dy));
  weir_edge_t count = weir_grad_node_with(g, "Sum", WEIR_EDGES(chosen, weir_grad_input(g, 1)),
                                          WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
  return weir_grad_set(g, 0, weir_grad_mul(g, node2(g, "RealDiv", chosen, count), dy));
}

static weir_status_t* norm_grad(weir_grad_ctx_t* g) {
  known_t known = what_is_known(g);
  weir_edge_t dy = with_kept_dims(g, &known, weir_grad_dy(g, 0));
  weir_edge_t y = with_kept_dims(g, &known, weir_grad_output(g, 0));
  return weir_grad_set(g, 0,
                       node2(g, "RealDiv", weir_grad_input(g, 0), node2(g, "RealDiv", y, dy)));
}

// ---- Prod: the product of all other elements, by exclusive products from both ends, so that zeros
// do no harm ----

// Transposes that bring the reduced dimensions to the front and back, and the matrix shape
// [reduced, others].
typedef struct prod_layout_t {
  weir_edge_t perm;
  weir_edge_t inverse;
  weir_edge_t matrix;
} prod_layout_t;

static prod_layout_t static_layout(weir_grad_ctx_t* g, const known_t* known) {
  int32_t perm[WEIR_MAX_RANK];
  int32_t inverse[WEIR_MAX_RANK];
  int32_t matrix[2] = {1, 1};
  int count = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < known->shape->rank; ++i) {
      if (known->is_reduced[i] != (pass == 0)) continue;
      inverse[i] = count;
      perm[count++] = i;
      matrix[pass] *= (int32_t)known->shape->dims[i];
    }
  }
  return (prod_layout_t){.perm = weir_build_int32s(g->builder, perm, count),
                         .inverse = weir_build_int32s(g->builder, inverse, count),
                         .matrix = weir_build_int32s(g->builder, matrix, 2)};
}

static weir_edge_t count_of(weir_grad_ctx_t* g, weir_edge_t shape, weir_edge_t axes) {
  weir_edge_t dims = node3(g, "GatherV2", shape, axes, weir_build_int32(g->builder, 0));
  return node2(g, "Prod", dims, weir_build_int32s(g->builder, (const int32_t[]){0}, 1));
}

static prod_layout_t dynamic_layout(weir_grad_ctx_t* g, weir_edge_t shape) {
  weir_edge_t rank = node1(g, "Size", shape);
  weir_edge_t flat = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  weir_edge_t reduced = node2(g, "Reshape", normal_axes(g, rank), flat);
  weir_edge_t all =
      node3(g, "Range", weir_build_int32(g->builder, 0), rank, weir_build_int32(g->builder, 1));
  weir_edge_t others = node2(g, "ListDiff", all, reduced);
  weir_edge_t perm = node3(g, "ConcatV2", reduced, others, weir_build_int32(g->builder, 0));
  weir_edge_t matrix = node2(g, "Pack", count_of(g, shape, reduced), count_of(g, shape, others));
  return (prod_layout_t){
      .perm = perm, .inverse = node1(g, "InvertPermutation", perm), .matrix = matrix};
}

static weir_edge_t exclusive_product(weir_grad_ctx_t* g, weir_edge_t x, bool is_reverse) {
  weir_edge_t y = weir_grad_node_with(
      g, "Cumprod", WEIR_EDGES(x, weir_build_int32(g->builder, 0)),
      WEIR_ATTRS(weir_attr_bool("exclusive", true), weir_attr_bool("reverse", is_reverse)));
  return weir_grad_conj(g, y);
}

static weir_status_t* prod_grad(weir_grad_ctx_t* g) {
  known_t known = what_is_known(g);
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t dy = spread(g, &known);
  weir_edge_t shape = weir_grad_shape_of(g, x);
  bool is_static = known.has_axes && weir_shape_is_full(known.shape);
  prod_layout_t layout = is_static ? static_layout(g, &known) : dynamic_layout(g, shape);
  weir_edge_t permuted = node2(g, "Transpose", x, layout.perm);
  weir_edge_t matrix = node2(g, "Reshape", permuted, layout.matrix);
  weir_edge_t rest =
      weir_grad_mul(g, exclusive_product(g, matrix, false), exclusive_product(g, matrix, true));
  rest = node2(g, "Reshape", rest, weir_grad_shape_of(g, permuted));
  weir_edge_t dx = weir_grad_mul(g, dy, node2(g, "Transpose", rest, layout.inverse));
  return weir_grad_set(g, 0, node2(g, "Reshape", dx, shape));
}

#endif  // WEIR_OPS_MATH_REDUCE_GRAD_H_
