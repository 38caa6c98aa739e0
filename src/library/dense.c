// dense.c — Dense layers, flattening, and activations that are no ops of their own.
#include "nodes.h"
#include "weights.h"
#include "weir/layer.h"

weir_edge_t weir_gelu(weir_scope_t* scope, weir_edge_t x) {
  if (!weir_lib_ready(scope, "gelu", x)) return WEIR_LIB_NONE;
  const weir_dtype_t dtype = weir_edge_type(x);
  weir_scope_t* own = weir_scope_in(scope, "gelu");
  weir_edge_t half = weir_lib_number(own, dtype, 0.5);
  weir_edge_t root = weir_lib_number(own, dtype, 1.4142135623730951);
  weir_edge_t erf = weir_erf(own, weir_real_div(own, x, root));
  weir_edge_t twice = weir_add_v2(own, weir_lib_number(own, dtype, 1), erf);
  return weir_mul(own, weir_mul(own, half, x), twice);
}

weir_edge_t weir_silu(weir_scope_t* scope, weir_edge_t x) {
  if (!weir_lib_ready(scope, "silu", x)) return WEIR_LIB_NONE;
  return weir_mul(scope, x, weir_sigmoid(scope, x));
}

weir_edge_t weir_layer_flatten(weir_scope_t* scope, weir_edge_t x) {
  if (!weir_lib_ready(scope, "flatten", x)) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "flatten");
  int64_t dims[WEIR_MAX_RANK];
  const int rank = weir_edge_dims(x, dims, WEIR_MAX_RANK);
  if (rank == 0) {
    weir_lib_fail(s, "flatten: '%s' is a scalar, which has no batch", weir_node_name(x.node));
    return WEIR_LIB_NONE;
  }
  int64_t size = 1;
  for (int i = 1; i < rank && size >= 0; ++i) size = dims[i] < 0 ? -1 : size * dims[i];
  // With the features known the batch may be what is inferred; else the other way round.
  if (rank > 0 && size > 0) return weir_reshape(s, x, weir_lib_vector(s, -1, size));
  if (rank > 0 && dims[0] > 0) return weir_reshape(s, x, weir_lib_vector(s, dims[0], -1));
  weir_edge_t shape = weir_shape(s, x);
  weir_edge_t features =
      weir_prod(s, weir_lib_part(s, shape, 1, 0), weir_const_int(s, 0), .keep_dims = true);
  return weir_reshape(s, x, weir_lib_concat(s, weir_lib_part(s, shape, 0, 1), features, 0));
}

// x * kernel over the last dimension; a matrix product whatever the rank.
static weir_edge_t multiply(weir_scope_t* s, weir_edge_t x, weir_edge_t kernel, int64_t inputs,
                            int64_t units) {
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  if (weir_lib_rank(x) == 2) return weir_mat_mul(s, x, kernel);
  weir_edge_t rows = weir_reshape(s, x, weir_lib_vector(s, -1, inputs));
  weir_edge_t product = weir_mat_mul(s, rows, kernel);
  int64_t dims[WEIR_MAX_RANK];
  const int rank = weir_edge_dims(x, dims, WEIR_MAX_RANK);
  int unknown = 0;
  for (int i = 0; i < rank - 1; ++i) unknown += dims[i] < 0;
  if (unknown <= 1) {
    dims[rank - 1] = units;
    return weir_reshape(s, product, weir_lib_ints(s, dims, rank));
  }
  weir_edge_t outer = weir_lib_part(s, weir_shape(s, x), 0, -1);
  return weir_reshape(s, product, weir_lib_concat(s, outer, weir_lib_vector(s, units), 0));
}

weir_edge_t weir_layer_dense_with(weir_scope_t* scope, weir_edge_t x, int units,
                                  const weir_layer_dense_options_t* options) {
  options = options ? options : &(const weir_layer_dense_options_t){0};
  if (!weir_lib_ready(scope, "dense", x)) return WEIR_LIB_NONE;
  const int64_t inputs = weir_lib_dim(x, -1);
  if (units <= 0 || inputs < 0 || weir_lib_rank(x) < 2) {
    weir_lib_fail(scope,
                  "dense layer on '%s': needs units > 0, got %d, and an input of rank 2 or more "
                  "whose last dimension is known, got rank %d and size %lld",
                  weir_node_name(x.node), units, weir_lib_rank(x), (long long)inputs);
    return WEIR_LIB_NONE;
  }
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : "dense");
  weir_edge_t kernel =
      weir_lib_weight(s, "kernel", options->kernel, options->kernel_init,
                      weir_init_glorot_uniform(0), weir_edge_type(x), WEIR_SHAPE(inputs, units));
  weir_lib_regularize(s, kernel, options->kernel_l1, options->kernel_l2);
  const weir_lib_finish_t how = {options->no_bias, options->bias, options->bias_init,
                                 options->activation};
  return weir_lib_finish(s, multiply(s, x, kernel, inputs, units), units, &how);
}
