// attention.c — Scaled dot-product attention, and the encoding of positions.
#include "weir/attention.h"

#include <math.h>

#include "attention.h"
#include "nodes.h"
#include "weir/layer.h"

// ---- masks ----

// Small enough to vanish in a softmax, and finite: a row of nothing else must not become NaN.
static double large_negative(weir_dtype_t dtype) { return dtype == WEIR_DTYPE_HALF ? -3e4 : -1e9; }

weir_edge_t weir_lib_mask_scores(weir_scope_t* s, weir_edge_t scores, weir_edge_t mask) {
  if (weir_scope_status(s) || !mask.node) return scores;
  if (weir_edge_type(mask) != WEIR_DTYPE_BOOL) {
    weir_lib_fail(s, "attention: the mask '%s' must be bool, but is %s", weir_node_name(mask.node),
                  weir_dtype_name(weir_edge_type(mask)));
    return WEIR_LIB_NONE;
  }
  const weir_dtype_t dtype = weir_edge_type(scores);
  return weir_select_v2(s, mask, scores, weir_lib_number(s, dtype, large_negative(dtype)));
}

static weir_edge_t positions(weir_scope_t* s, weir_edge_t count, int axis) {
  weir_edge_t range = weir_range(s, weir_const_int(s, 0), count, weir_const_int(s, 1));
  return weir_expand_dims(s, range, weir_const_int(s, axis));
}

// [queries, keys]: whether the key is not after the query.
static weir_edge_t causal_mask(weir_scope_t* s, weir_edge_t scores) {
  weir_edge_t shape = weir_shape(s, scores);
  weir_edge_t query = positions(s, weir_lib_element(s, shape, -2), 1);
  weir_edge_t key = positions(s, weir_lib_element(s, shape, -1), 0);
  return weir_greater_equal(s, query, key);
}

// ---- attention ----

weir_attention_result_t weir_attention_with(weir_scope_t* scope, weir_edge_t query, weir_edge_t key,
                                            weir_edge_t value,
                                            const weir_attention_options_t* options) {
  options = options ? options : &(const weir_attention_options_t){0};
  weir_attention_result_t none = {WEIR_LIB_NONE, WEIR_LIB_NONE};
  if (!weir_lib_ready(scope, "attention", query, key, value)) return none;
  const int64_t depth = weir_lib_dim(query, -1);
  if (!options->scale.is_set && depth < 1) {
    weir_lib_fail(scope, "attention: the last dimension of the query '%s' must be known",
                  weir_node_name(query.node));
    return none;
  }
  weir_scope_t* s = weir_scope_in(scope, "attention");
  const double scale =
      options->scale.is_set ? (double)options->scale.value : 1 / sqrt((double)depth);
  query = weir_mul(s, query, weir_lib_number(s, weir_edge_type(query), scale));
  weir_edge_t scores = weir_batch_mat_mul_v2(s, query, key, .adj_y = true);
  scores = weir_lib_mask_scores(s, scores, options->mask);
  if (options->is_causal) scores = weir_lib_mask_scores(s, scores, causal_mask(s, scores));
  weir_attention_result_t result = {.weights = weir_softmax(s, scores)};
  weir_edge_t used = result.weights;
  if (options->dropout_rate != 0) {
    used = weir_layer_dropout(s, used, options->dropout_rate, .training = options->training,
                              .is_training = options->is_training, .seed = options->seed);
  }
  result.output = weir_batch_mat_mul_v2(s, used, value);
  return weir_scope_status(s) ? none : result;
}

// ---- positions ----

weir_edge_t weir_positional_encoding(weir_scope_t* scope, int length, int depth) {
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  if (length < 1 || depth < 1) {
    weir_lib_fail(scope, "positional encoding needs positive sizes, got [%d, %d]", length, depth);
    return WEIR_LIB_NONE;
  }
  float* values = weir_scope_alloc(scope, (size_t)length * (size_t)depth, sizeof(*values));
  if (!values) return WEIR_LIB_NONE;
  for (int i = 0; i < length; ++i) {
    for (int k = 0; k < depth; ++k) {
      const double angle = i / pow(10000, (double)(k - k % 2) / depth);
      values[(size_t)i * (size_t)depth + (size_t)k] = (float)(k % 2 ? cos(angle) : sin(angle));
    }
  }
  return weir_const_floats(scope, WEIR_DIMS(length, depth), values);
}
