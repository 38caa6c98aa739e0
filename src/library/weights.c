// weights.c — Variables of a layer: how they start, their penalties, biases and activations.
#include "weights.h"

#include "nodes.h"

weir_init_t weir_lib_init(weir_init_t init, weir_init_t fallback) {
  if (init.kind != WEIR_INIT_DEFAULT) return init;
  fallback.seed = init.seed;
  fallback.graph_seed = init.graph_seed;
  return fallback;
}

weir_edge_t weir_lib_weight(weir_scope_t* scope, const char* name, weir_edge_t shared,
                            weir_init_t init, weir_init_t fallback, weir_dtype_t dtype,
                            weir_dims_t shape) {
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  if (shared.node) return shared;
  weir_scope_t* apart = weir_scope_in(weir_scope_lift(scope), "initializer");
  return weir_variable(scope, name,
                       weir_init_edge(apart, weir_lib_init(init, fallback), dtype, shape));
}

void weir_lib_regularize(weir_scope_t* scope, weir_edge_t weight, float l1, float l2) {
  if (weir_scope_status(scope) || !weight.node || (l1 == 0 && l2 == 0)) return;
  const weir_dtype_t dtype = weir_edge_type(weight);
  weir_scope_t* own = weir_scope_in(scope, "regularizer");
  weir_edge_t penalties[2] = {{0}};
  int count = 0;
  if (l1 != 0) {
    weir_edge_t sum = weir_lib_sum(own, weir_abs(own, weight));
    penalties[count++] = weir_mul(own, weir_lib_number(own, dtype, (double)l1), sum);
  }
  if (l2 != 0) {
    weir_edge_t sum = weir_lib_sum(own, weir_square(own, weight));
    penalties[count++] = weir_mul(own, weir_lib_number(own, dtype, (double)l2), sum);
  }
  weir_scope_collect(scope, WEIR_LOSSES,
                     count == 1 ? penalties[0] : weir_add_v2(own, penalties[0], penalties[1]));
}

weir_edge_t weir_lib_finish(weir_scope_t* scope, weir_edge_t x, int64_t units,
                            const weir_lib_finish_t* how) {
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  if (!how->no_bias) {
    weir_edge_t bias = weir_lib_weight(scope, "bias", how->bias, how->bias_init, weir_init_zeros(),
                                       weir_edge_type(x), WEIR_SHAPE(units));
    x = weir_bias_add(scope, x, bias);
  }
  return how->activation && !weir_scope_status(scope) ? how->activation(scope, x) : x;
}
