// to_tensor_grad.c — The gradient of RaggedTensorToTensor.
#include "ops/math/common.h"
#include "ops/ragged/ragged.h"

// Rows of |x| where |mask|, of its first dimensions, is true.
static weir_edge_t masked(weir_grad_ctx_t* g, weir_edge_t rows, weir_edge_t flat_mask) {
  weir_edge_t where = node1(g, "Where", flat_mask);
  const int64_t last[] = {1};
  where = weir_grad_node_with(g, "Squeeze", WEIR_EDGES(where),
                              WEIR_ATTRS(weir_attr_ints("squeeze_dims", last, 1)));
  return node3(g, "GatherV2", rows, where, weir_build_int32(g->builder, 0));
}

static weir_edge_t ints1(weir_grad_ctx_t* g, int32_t value) {
  return weir_build_int32s(g->builder, &value, 1);
}

// The gradient of the default is what reached no value, summed over what it was repeated along: all
// but its dimensions from the first that is not 1 on.
static weir_edge_t default_grad(weir_grad_ctx_t* g, weir_edge_t rest) {
  weir_edge_t one = weir_build_int32(g->builder, 1), zero = weir_build_int32(g->builder, 0);
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 2));
  weir_edge_t is_long = cast_to(g, node2(g, "NotEqual", shape, one), WEIR_DTYPE_INT32);
  weir_edge_t from_there = node2(g, "Minimum", node2(g, "Cumsum", is_long, zero), one);
  weir_edge_t own = node2(g, "Sum", from_there, ints1(g, 0));
  weir_edge_t rank = weir_grad_node(g, "Rank", WEIR_EDGES(rest));
  weir_edge_t axes = node3(g, "Range", zero, node2(g, "Sub", rank, own), one);
  return node2(g, "Reshape", node2(g, "Sum", rest, axes), shape);
}

// Which value each row of the result came from, found by sending their numbers the same way.
static weir_edge_t sources(weir_grad_ctx_t* g, weir_edge_t prefix, weir_edge_t count) {
  weir_edge_t zero = weir_build_int32(g->builder, 0), one = weir_build_int32(g->builder, 1);
  const int partitions = g->node->input_count - 3;
  weir_edge_t* edges = weir_alloc_array((size_t)partitions + 3, sizeof(*edges));
  if (!edges) {
    if (!g->builder->status) g->builder->status = weir_out_of_memory();
    return WEIR_NO_EDGE;
  }
  edges[0] = prefix;
  edges[1] = node3(g, "Range", zero, count, one);
  edges[2] = weir_build_int32(g->builder, -1);
  for (int i = 0; i < partitions; ++i) edges[3 + i] = weir_grad_input(g, 3 + i);
  weir_edge_t out = weir_grad_node_like(
      g, "RaggedTensorToTensor", (weir_edges_t){.items = edges, .count = partitions + 3},
      WEIR_NAMES("row_partition_types", "num_row_partition_tensors"));
  weir_free(edges);
  return out;
}

weir_status_t* weir_ragged_to_tensor_grad(weir_grad_ctx_t* g) {
  const weir_attr_t* list = weir_attrs_list(weir_grad_attrs(g), "row_partition_types");
  int32_t levels = (int32_t)list->count;
  if (levels > 0 && weir_view_equal(list->u.strings[0], weir_view_of("FIRST_DIM_SIZE"))) --levels;
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t values_shape = weir_grad_shape_of(g, weir_grad_input(g, 1));
  weir_edge_t zero = weir_build_int32(g->builder, 0);
  weir_edge_t count = node3(g, "GatherV2", values_shape, zero, zero);
  weir_edge_t shape = weir_grad_shape_of(g, dy);
  weir_edge_t prefix = node3(g, "Slice", shape, ints1(g, 0), ints1(g, 1 + levels));
  weir_edge_t inner = node3(g, "Slice", shape, ints1(g, 1 + levels), ints1(g, -1));
  weir_edge_t rows =
      node2(g, "Reshape", dy, weir_grad_node(g, "ConcatV2", WEIR_EDGES(ints1(g, -1), inner, zero)));
  weir_edge_t from = node2(g, "Reshape", sources(g, prefix, count), ints1(g, -1));
  weir_edge_t mask = node2(g, "NotEqual", from, weir_build_int32(g->builder, -1));
  WEIR_TRY(weir_grad_set_slices(g, 1, masked(g, rows, mask), masked(g, from, mask), values_shape));
  weir_edge_t rest = masked(g, rows, node1(g, "LogicalNot", mask));
  return weir_grad_set(g, 2, default_grad(g, rest));
}
