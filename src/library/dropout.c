// dropout.c — Dropout.
#include "nodes.h"
#include "weir/layer.h"

static weir_edge_t drop(weir_scope_t* s, weir_edge_t x, double rate,
                        const weir_layer_dropout_options_t* options) {
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  const weir_dtype_t dtype = weir_edge_type(x);
  const weir_lib_seeds_t seeds = weir_lib_seeds(s, options->seed, options->graph_seed);
  weir_edge_t scaled = weir_mul(s, x, weir_lib_number(s, dtype, 1 / (1 - rate)));
  weir_edge_t draw =
      weir_random_uniform(s, weir_shape(s, x), dtype, .seed = seeds.seed, .seed2 = seeds.seed2);
  weir_edge_t is_kept = weir_greater_equal(s, draw, weir_lib_number(s, dtype, rate));
  return weir_select_v2(s, is_kept, scaled, weir_lib_number(s, dtype, 0));
}

weir_edge_t weir_layer_dropout_with(weir_scope_t* scope, weir_edge_t x, float rate,
                                    const weir_layer_dropout_options_t* options) {
  options = options ? options : &(const weir_layer_dropout_options_t){0};
  if (!weir_lib_ready(scope, "dropout", x)) return WEIR_LIB_NONE;
  if (!(rate >= 0 && rate < 1)) {
    weir_lib_fail(scope, "dropout layer on '%s': rate must be in [0, 1), got %g",
                  weir_node_name(x.node), (double)rate);
    return WEIR_LIB_NONE;
  }
  weir_scope_t* s = weir_scope_in(scope, "dropout");
  if (rate == 0 || (!options->training.node && !options->is_training)) return weir_identity(s, x);
  if (!options->training.node) return drop(s, x, (double)rate, options);
  weir_switch_result_t branch = weir_switch(s, x, options->training);
  return weir_lib_merge(s, weir_identity(s, branch.output_false),
                        drop(s, branch.output_true, (double)rate, options));
}
