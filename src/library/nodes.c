// nodes.c — Small things that layers, losses and metrics are put together from.
#include "nodes.h"

#include <strings.h>

enum { DEFAULT_GRAPH_SEED = 87654321 };

bool weir_lib_is_ready(weir_scope_t* scope, const char* what, const weir_edge_t* inputs,
                       int count) {
  if (weir_scope_status(scope)) return false;
  for (int i = 0; i < count; ++i) {
    const weir_node_t* node = inputs[i].node;
    if (!node) {
      weir_lib_fail(scope, "%s: input %d is an edge without a node", what, i);
      return false;
    }
    int outputs = weir_node_output_count(node);
    if (inputs[i].index >= 0 && inputs[i].index < outputs) continue;
    weir_lib_fail(scope, "%s: input %d is '%s:%d', but the node has %d outputs", what, i,
                  weir_node_name(node), inputs[i].index, outputs);
    return false;
  }
  return true;
}

weir_edge_t weir_lib_number(weir_scope_t* scope, weir_dtype_t dtype, double value) {
  if (dtype == WEIR_DTYPE_FLOAT) return weir_const_float(scope, (float)value);
  if (dtype == WEIR_DTYPE_INT32) return weir_const_int(scope, (int)value);
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_DOUBLE, 0, NULL, &value, &tensor);
  if (status) weir_scope_fail(scope, status);
  weir_edge_t number = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return weir_lib_cast(scope, number, dtype);
}

weir_edge_t weir_lib_ints(weir_scope_t* scope, const int64_t* values, int count) {
  int* narrow = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*narrow));
  if (!narrow) return WEIR_LIB_NONE;
  for (int i = 0; i < count; ++i) {
    if (values[i] > INT32_MAX) {
      weir_lib_fail(scope, "a size of %lld is more than an int32 holds", (long long)values[i]);
      return WEIR_LIB_NONE;
    }
    narrow[i] = (int)values[i];
  }
  return weir_const_ints(scope, narrow, count);
}

weir_edge_t weir_lib_cast(weir_scope_t* scope, weir_edge_t x, weir_dtype_t dtype) {
  if (weir_scope_status(scope) || !x.node) return WEIR_LIB_NONE;
  return weir_edge_type(x) == dtype ? x : weir_cast(scope, x, dtype);
}

int weir_lib_rank(weir_edge_t x) { return weir_edge_dims(x, NULL, 0); }

int64_t weir_lib_dim(weir_edge_t x, int index) {
  int64_t dims[WEIR_MAX_RANK];
  const int rank = weir_edge_dims(x, dims, WEIR_MAX_RANK);
  if (index < 0) index += rank;
  return rank >= 0 && index >= 0 && index < rank ? dims[index] : -1;
}

bool weir_lib_is_same_shape(weir_edge_t a, weir_edge_t b) {
  const int rank = weir_lib_rank(a), other_rank = weir_lib_rank(b);
  if (rank < 0 || other_rank < 0) return true;
  bool is_same = rank == other_rank;
  for (int i = 0; is_same && i < rank; ++i) {
    const int64_t size = weir_lib_dim(a, i), other = weir_lib_dim(b, i);
    is_same = size < 0 || other < 0 || size == other;
  }
  return is_same;
}

const char* weir_lib_padding(const char* text) {
  if (!text || !strcasecmp(text, "VALID")) return "VALID";
  return strcasecmp(text, "SAME") ? NULL : "SAME";
}

weir_edge_t weir_lib_element(weir_scope_t* scope, weir_edge_t vector, int index) {
  const int end = index + 1;  // 0 after the last one: masked
  return weir_strided_slice(scope, vector, weir_lib_vector(scope, index),
                            weir_lib_vector(scope, end), weir_lib_vector(scope, 1),
                            .end_mask = end == 0, .shrink_axis_mask = 1);
}

weir_edge_t weir_lib_part(weir_scope_t* scope, weir_edge_t vector, int begin, int end) {
  return weir_strided_slice(scope, vector, weir_lib_vector(scope, begin),
                            weir_lib_vector(scope, end), weir_lib_vector(scope, 1),
                            .end_mask = end == 0);
}

weir_edge_t weir_lib_axes(weir_scope_t* scope, weir_edge_t x, int left_out) {
  if (weir_scope_status(scope) || !x.node) return WEIR_LIB_NONE;
  const int rank = weir_lib_rank(x);
  if (rank < 0) {
    weir_edge_t limit = weir_sub(scope, weir_rank(scope, x), weir_const_int(scope, left_out));
    return weir_range(scope, weir_const_int(scope, 0), limit, weir_const_int(scope, 1));
  }
  int64_t axes[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) axes[i] = i;
  return weir_lib_ints(scope, axes, rank > left_out ? rank - left_out : 0);
}

weir_edge_t weir_lib_sum(weir_scope_t* scope, weir_edge_t x) {
  return weir_sum(scope, x, weir_lib_axes(scope, x, 0));
}

weir_edge_t weir_lib_concat(weir_scope_t* scope, weir_edge_t a, weir_edge_t b, int axis) {
  weir_edge_t both[] = {a, b};
  return weir_concat_v2(scope, both, 2, weir_const_int(scope, axis));
}

weir_edge_t weir_lib_merge(weir_scope_t* scope, weir_edge_t when_false, weir_edge_t when_true) {
  weir_edge_t both[] = {when_false, when_true};
  return weir_merge(scope, both, 2).output;
}

weir_lib_seeds_t weir_lib_seeds(weir_scope_t* scope, int64_t seed, int64_t graph_seed) {
  if (!graph_seed) graph_seed = weir_scope_get_seed(scope);
  if (seed) return (weir_lib_seeds_t){graph_seed ? graph_seed : DEFAULT_GRAPH_SEED, seed};
  if (!graph_seed) return (weir_lib_seeds_t){0, 0};
  // Any number that differs from op to op and is the same in every run.
  return (weir_lib_seeds_t){graph_seed, (int64_t)weir_graph_node_count(weir_scope_graph(scope))};
}

weir_scope_t* weir_lib_beside(weir_scope_t* scope, weir_edge_t edge) {
  const char* device = edge.node ? weir_node_device(edge.node) : "";
  return *device ? weir_scope_on(scope, device) : scope;
}
