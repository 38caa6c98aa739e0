// grad_ctx.c — The formulas that gradients share: dense gradients, undoing a broadcast, shapes and
// scalars.
#include "op/grad_ctx.h"

weir_edge_t weir_grad_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  return weir_build(g->builder, op, inputs, WEIR_NO_ATTRS);
}

weir_edge_t weir_grad_node_with(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs,
                                weir_attrs_t attrs) {
  return weir_build(g->builder, op, inputs, attrs);
}

weir_edge_t weir_grad_node_like(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs,
                                const char* const* names) {
  weir_named_attr_t items[8];
  size_t count = 0;
  for (; *names; ++names) {
    const weir_attr_t* attr = weir_attrs_find(weir_grad_attrs(g), *names);
    if (!attr) continue;
    WEIR_CHECK(count < WEIR_COUNT_OF(items));
    items[count++] = weir_attr_copy(*names, attr);
  }
  return weir_grad_node_with(g, op, inputs, (weir_attrs_t){.items = items, .count = count});
}

// A copy of the sticky error: the gradient function returns it while the builder keeps its own.
static weir_status_t* copy_error(weir_grad_ctx_t* g) {
  weir_status_t* status = g->builder->status;
  return status ? weir_status_copy(status) : NULL;
}

weir_status_t* weir_grad_set(weir_grad_ctx_t* g, int i, weir_edge_t dx) {
  weir_grad_value_t value = {.values = dx};
  return weir_grad_set_value(g, i, value);
}

weir_status_t* weir_grad_set_value(weir_grad_ctx_t* g, int i, weir_grad_value_t dx) {
  if (!g->builder->status) g->dxs[i] = dx;
  return copy_error(g);
}

weir_status_t* weir_grad_set_slices(weir_grad_ctx_t* g, int i, weir_edge_t values,
                                    weir_edge_t indices, weir_edge_t dense_shape) {
  weir_grad_value_t value = {.values = values, .indices = indices, .dense_shape = dense_shape};
  return weir_grad_set_value(g, i, value);
}

// ---- dense gradients ----

// The first dimension of what |dense_shape| spells, as a scalar.
static weir_edge_t row_count(weir_grad_ctx_t* g, weir_edge_t dense_shape) {
  weir_builder_t* b = g->builder;
  if (b->status || !dense_shape.node) return WEIR_NO_EDGE;
  const weir_tensor_t* value = b->vtable->constant(b, dense_shape);
  if (value && value->count > 0) {
    return weir_build_scalar(b, weir_tensor_type(value), (double)weir_tensor_int_at(value, 0));
  }
  const int32_t zero = 0;
  const int32_t one = 1;
  weir_edge_t begin = weir_build_int32s(b, &zero, 1);
  weir_edge_t step = weir_build_int32s(b, &one, 1);
  return weir_build(b, "StridedSlice", WEIR_EDGES(dense_shape, begin, step, step),
                    WEIR_ATTRS(weir_attr_int("shrink_axis_mask", 1)));
}

static weir_edge_t zeros_for(weir_grad_ctx_t* g, weir_edge_t output) {
  weir_dtype_t dtype = weir_grad_dtype(g, output);
  const weir_shape_t* shape = weir_grad_shape(g, output);
  if (!weir_dtype_is_plain(dtype) || !weir_shape_is_full(shape)) {
    return weir_grad_node(g, "ZerosLike", WEIR_EDGES(output));
  }
  weir_edge_t zero = weir_build_scalar(g->builder, dtype, 0);
  if (shape->rank == 0) return zero;
  return weir_grad_node(g, "Fill", WEIR_EDGES(weir_grad_shape_of(g, output), zero));
}

weir_edge_t weir_grad_dy(weir_grad_ctx_t* g, int i) {
  weir_grad_value_t dy = g->dys[i];
  if (!dy.values.node) return zeros_for(g, weir_grad_output(g, i));
  if (!dy.indices.node) return dy.values;
  return weir_grad_node(g, "UnsortedSegmentSum",
                        WEIR_EDGES(dy.values, dy.indices, row_count(g, dy.dense_shape)));
}

// ---- undoing a broadcast ----

// The axes of the result to sum over, and how: those that |x| lacks, and those where it has 1.
typedef struct reduction_t {
  int32_t missing[WEIR_MAX_RANK];  // leading dimensions, dropped
  int missing_count;
  int32_t ones[WEIR_MAX_RANK];  // kept with size 1; counted after the missing ones are gone
  int one_count;
} reduction_t;

// False when it takes the shapes at run time to decide.
static bool find_reduction(const weir_shape_t* x, const weir_shape_t* y, reduction_t* out) {
  out->missing_count = 0;
  out->one_count = 0;
  if (x->rank < 0 || y->rank < 0) return false;
  int rank = WEIR_MAX(x->rank, y->rank);
  for (int i = 0; i < rank; ++i) {
    int at_x = i - (rank - x->rank);
    int at_y = i - (rank - y->rank);
    if (at_x < 0) {
      out->missing[out->missing_count++] = i;
      continue;
    }
    int64_t dim = x->dims[at_x];
    int64_t other = at_y < 0 ? 1 : y->dims[at_y];
    if (dim < 0 && other != 1) return false;  // |dim| may turn out to be 1
    if (dim == 1 && other != 1) out->ones[out->one_count++] = at_x;
  }
  return true;
}

static weir_edge_t sum_axes(weir_grad_ctx_t* g, weir_edge_t dx, const int32_t* axes, int count,
                            bool keep_dims) {
  if (count == 0) return dx;
  weir_edge_t axis = weir_build_int32s(g->builder, axes, count);
  return weir_grad_node_with(g, "Sum", WEIR_EDGES(dx, axis),
                             WEIR_ATTRS(weir_attr_bool("keep_dims", keep_dims)));
}

weir_edge_t weir_grad_unbroadcast(weir_grad_ctx_t* g, weir_edge_t dx, int i, int other) {
  weir_edge_t x = g->inputs[i];
  weir_edge_t y = g->inputs[other];
  if (weir_edge_equal(x, y)) return dx;
  reduction_t reduction;
  if (find_reduction(weir_grad_shape(g, x), weir_grad_shape(g, y), &reduction)) {
    dx = sum_axes(g, dx, reduction.missing, reduction.missing_count, false);
    return sum_axes(g, dx, reduction.ones, reduction.one_count, true);
  }
  weir_edge_t shape = weir_grad_shape_of(g, x);
  weir_edge_t axes =
      weir_grad_node(g, "BroadcastGradientArgs", WEIR_EDGES(shape, weir_grad_shape_of(g, y)));
  weir_edge_t sum = weir_grad_node(g, "Sum", WEIR_EDGES(dx, axes));
  return weir_grad_node(g, "Reshape", WEIR_EDGES(sum, shape));
}

// ---- small things ----

weir_edge_t weir_grad_mul(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, "Mul", WEIR_EDGES(a, b));
}

weir_edge_t weir_grad_neg(weir_grad_ctx_t* g, weir_edge_t a) {
  return weir_grad_node(g, "Neg", WEIR_EDGES(a));
}

weir_edge_t weir_grad_conj(weir_grad_ctx_t* g, weir_edge_t a) {
  if (!weir_dtype_is_complex(weir_grad_dtype(g, a))) return a;
  return weir_grad_node(g, "Conj", WEIR_EDGES(a));
}

weir_edge_t weir_grad_scalar(weir_grad_ctx_t* g, weir_edge_t like, double value) {
  if (g->builder->status) return WEIR_NO_EDGE;
  return weir_build_scalar(g->builder, weir_grad_dtype(g, like), value);
}

weir_edge_t weir_grad_shape_of(weir_grad_ctx_t* g, weir_edge_t a) {
  const weir_shape_t* shape = weir_grad_shape(g, a);
  bool is_static = weir_shape_is_full(shape) && shape->rank <= WEIR_MAX_RANK;
  int32_t dims[WEIR_MAX_RANK];
  for (int i = 0; is_static && i < shape->rank; ++i) {
    dims[i] = (int32_t)shape->dims[i];
    is_static = dims[i] == shape->dims[i];
  }
  if (is_static) return weir_build_int32s(g->builder, dims, shape->rank);
  return weir_grad_node(g, "Shape", WEIR_EDGES(a));
}

weir_edge_t weir_grad_batch_shape(weir_grad_ctx_t* g, weir_edge_t shape) {
  weir_edge_t begin = weir_build_int32s(g->builder, (const int32_t[]){0}, 1);
  weir_edge_t end = weir_build_int32s(g->builder, (const int32_t[]){-2}, 1);
  weir_edge_t step = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  return weir_grad_node_with(g, "StridedSlice", WEIR_EDGES(shape, begin, end, step),
                             WEIR_ATTRS(weir_attr_int("begin_mask", 1)));
}

weir_status_t* weir_grad_fn_none(weir_grad_ctx_t* g) {
  (void)g;
  return NULL;
}
