// parts.c — Classes in parts: products with inputs, and the whole softmax, computed where the
// weights are.
#include "parts.h"

#include "nodes.h"

static weir_edge_t of_part(weir_edge_t node, int part) { return (weir_edge_t){node.node, part}; }

// ---- a sample ----

// Of one part's |rows|: [n, batch].
static weir_edge_t sampled_part(const weir_lib_classes_t* p, int part, weir_edge_t rows) {
  weir_scope_t* there = weir_lib_beside(p->scope, p->weights.items[part]);
  weir_edge_t weights = weir_lib_gather(p->scope, p->weights.items[part], rows, 0);
  weir_edge_t biases = weir_lib_gather(p->scope, p->biases.items[part], rows, 0);
  weir_edge_t products = weir_mat_mul(there, weights, p->inputs, .transpose_b = true);
  return weir_add_v2(there, products, weir_expand_dims(there, biases, weir_const_int(there, 1)));
}

// Of one part's labels, each with the input of its example: [n].
static weir_edge_t own_part(const weir_lib_classes_t* p, int part, weir_edge_t rows,
                            weir_edge_t orders) {
  weir_scope_t* there = weir_lib_beside(p->scope, p->weights.items[part]);
  weir_edge_t weights = weir_lib_gather(p->scope, p->weights.items[part], rows, 0);
  weir_edge_t biases = weir_lib_gather(p->scope, p->biases.items[part], rows, 0);
  weir_edge_t examples = weir_floor_div(there, orders, weir_const_int(there, p->num_true));
  weir_edge_t inputs = weir_gather_v2(there, p->inputs, examples, weir_const_int(there, 0));
  weir_edge_t products = weir_mul(there, weights, inputs);
  return weir_add_v2(there, weir_sum(there, products, weir_lib_vector(there, 1)), biases);
}

// Of all |ids|, in their order: labels or the sample.
static weir_edge_t all_parts(const weir_lib_classes_t* p, weir_edge_t ids, bool is_own) {
  const int count = p->weights.count;
  weir_scope_t* s = p->scope;
  weir_lib_deal_t deal = weir_lib_deal(s, p->weights, ids, p->options->partition);
  weir_edge_t* edges = weir_scope_alloc(s, 2 * (size_t)count, sizeof(*edges));
  if (!edges || weir_scope_status(s)) return WEIR_LIB_NONE;
  for (int i = 0; i < count; ++i) {
    edges[i] = of_part(deal.orders, i);
    edges[count + i] = is_own ? own_part(p, i, of_part(deal.rows, i), edges[i])
                              : sampled_part(p, i, of_part(deal.rows, i));
  }
  return weir_parallel_dynamic_stitch(s, edges, count, edges + count, count);
}

weir_lib_scores_t weir_lib_scores_on_parts(const weir_lib_classes_t* p, weir_edge_t flat_labels,
                                           weir_edge_t candidates) {
  weir_scope_t* s = p->scope;
  weir_edge_t own = all_parts(p, flat_labels, true), sampled = all_parts(p, candidates, false);
  return (weir_lib_scores_t){weir_reshape(s, own, weir_lib_vector(s, -1, p->num_true)),
                             weir_transpose(s, sampled, weir_lib_vector(s, 1, 0))};
}

// ---- all classes ----

// What is known of one part's logits: of each example the greatest, the sum of their exponentials
// below that, and its label's, 0 where that is in another part. This crosses, logits do not.
typedef struct summary_t {
  weir_edge_t most, sum, own;
} summary_t;

static summary_t summarize(const weir_lib_classes_t* p, int part, weir_lib_place_t place) {
  weir_edge_t weights = p->weights.items[part];
  weir_scope_t* there = weir_lib_beside(p->scope, weights);
  weir_edge_t last = weir_lib_vector(there, 1);
  weir_edge_t logits = weir_mat_mul(there, p->inputs, weights, .transpose_b = true);
  logits = weir_add_v2(there, logits, p->biases.items[part]);
  if (weir_scope_status(there)) return (summary_t){0};
  const weir_dtype_t dtype = weir_edge_type(logits);
  weir_edge_t here = weir_equal(there, place.part, weir_lib_number(there, WEIR_DTYPE_INT64, part));
  weir_edge_t nowhere = weir_lib_number(there, WEIR_DTYPE_INT64, -1);
  weir_edge_t row = weir_select_v2(there, here, place.row, nowhere);
  weir_edge_t width = weir_lib_element(there, weir_shape(there, logits), 1);
  weir_edge_t label = weir_one_hot(there, row, width, weir_lib_number(there, dtype, 1),
                                   weir_lib_number(there, dtype, 0));
  weir_edge_t most = weir_stop_gradient(there, weir_max(there, logits, last));
  weir_edge_t below =
      weir_sub(there, logits, weir_expand_dims(there, most, weir_const_int(there, 1)));
  return (summary_t){.most = most,
                     .sum = weir_sum(there, weir_exp(there, below), last),
                     .own = weir_sum(there, weir_mul(there, logits, label), last)};
}

// The logarithm of the sum of all exponentials, less the labels' logits.
static weir_edge_t join(weir_scope_t* s, const summary_t* parts, int count) {
  weir_edge_t most = parts[0].most, own = parts[0].own;
  for (int i = 1; i < count; ++i) {
    most = weir_maximum(s, most, parts[i].most);
    own = weir_add_v2(s, own, parts[i].own);
  }
  weir_edge_t total = WEIR_LIB_NONE;
  for (int i = 0; i < count; ++i) {
    weir_edge_t scale = weir_exp(s, weir_sub(s, parts[i].most, most));
    weir_edge_t sum = weir_mul(s, parts[i].sum, scale);
    total = i ? weir_add_v2(s, total, sum) : sum;
  }
  return weir_sub(s, weir_add_v2(s, weir_log(s, total), most), own);
}

static bool check(weir_scope_t* scope, weir_tables_t weights, weir_tables_t biases,
                  weir_edge_t labels, weir_edge_t inputs) {
  const char* what = "partitioned_softmax_loss";
  if (!weir_lib_is_ready(scope, what, weights.items, weights.count) ||
      !weir_lib_is_ready(scope, what, biases.items, biases.count) ||
      !weir_lib_ready(scope, what, labels, inputs))
    return false;
  if (weights.count <= 0 || weights.count != biases.count)
    weir_lib_fail(scope, "%s: needs as many biases as weights, got %d and %d", what, biases.count,
                  weights.count);
  else if (weir_lib_rank(inputs) != 2 || weir_lib_rank(labels) != 1)
    weir_lib_fail(scope, "%s: inputs '%s' must be a matrix and labels '%s' a vector", what,
                  weir_node_name(inputs.node), weir_node_name(labels.node));
  return !weir_scope_status(scope);
}

weir_edge_t weir_partitioned_softmax_loss(weir_scope_t* scope, weir_tables_t weights,
                                          weir_tables_t biases, weir_edge_t labels,
                                          weir_edge_t inputs, weir_partition_t partition) {
  if (!check(scope, weights, biases, labels, inputs)) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "partitioned_softmax_loss");
  const weir_lib_classes_t p = {.scope = s, .weights = weights, .biases = biases, .inputs = inputs};
  weir_edge_t classes = weir_lib_cast(s, labels, WEIR_DTYPE_INT64);
  weir_lib_place_t place = weir_lib_place(s, weights, classes, partition);
  summary_t* parts = weir_scope_alloc(s, (size_t)weights.count, sizeof(*parts));
  if (!parts) return WEIR_LIB_NONE;
  for (int i = 0; i < weights.count && !weir_scope_status(s); ++i)
    parts[i] = summarize(&p, i, place);
  return weir_scope_status(s) ? WEIR_LIB_NONE : join(s, parts, weights.count);
}
