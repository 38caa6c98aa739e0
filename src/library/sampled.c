// sampled.c — Sampled softmax and noise-contrastive estimation.
#include "weir/sampled.h"

#include "nodes.h"
#include "parts.h"
#include "weir/loss.h"

// Logits [batch, num_true + num_sampled], and the distribution that they should have.
typedef struct sampled_t {
  weir_edge_t logits, labels;
} sampled_t;

// A table's rows of the labels and of the sample.
typedef struct rows_t {
  weir_edge_t of_labels, of_sample;
} rows_t;

static weir_candidates_t sample(const weir_lib_classes_t* p) {
  weir_candidates_t c = p->options->sampled;
  if (!c.candidates.node) {
    const weir_lib_seeds_t seeds =
        weir_lib_seeds(p->scope, p->options->seed, p->options->graph_seed);
    weir_log_uniform_candidate_sampler_result_t drawn = weir_log_uniform_candidate_sampler(
        p->scope, p->labels, p->num_true, p->num_sampled, true, p->num_classes, .seed = seeds.seed,
        .seed2 = seeds.seed2);
    c = (weir_candidates_t){drawn.sampled_candidates, drawn.true_expected_count,
                            drawn.sampled_expected_count};
  }
  return (weir_candidates_t){weir_stop_gradient(p->scope, c.candidates),
                             weir_stop_gradient(p->scope, c.true_expected),
                             weir_stop_gradient(p->scope, c.sampled_expected)};
}

// One lookup for both: where labels and sample share a row, it is sent once a part.
static rows_t look_up(const weir_lib_classes_t* p, weir_tables_t tables, weir_edge_t flat_labels,
                      weir_edge_t candidates) {
  weir_scope_t* s = p->scope;
  weir_edge_t ids = weir_lib_concat(s, flat_labels, candidates, 0);
  weir_edge_t rows = weir_embedding_lookup(s, tables, ids, .partition = p->options->partition);
  weir_edge_t cut = weir_shape(s, flat_labels), one = weir_lib_vector(s, 1);
  weir_edge_t zero = weir_lib_vector(s, 0);
  return (rows_t){weir_strided_slice(s, rows, zero, cut, one),
                  weir_strided_slice(s, rows, cut, zero, one, .end_mask = 1)};
}

// inputs · weights of their own labels: [batch, num_true].
static weir_edge_t true_logits(const weir_lib_classes_t* p, weir_edge_t rows) {
  weir_scope_t* s = p->scope;
  weir_edge_t column = weir_expand_dims(s, p->inputs, weir_const_int(s, 1));
  weir_edge_t own = weir_reshape(s, rows, weir_lib_vector(s, -1, p->num_true, p->size));
  return weir_sum(s, weir_mul(s, column, own), weir_lib_vector(s, 2));
}

// Labels that happen to be in the sample get a logit of about -infinity.
static weir_edge_t remove_hits(const weir_lib_classes_t* p, weir_edge_t logits,
                               weir_edge_t candidates) {
  weir_scope_t* s = p->scope;
  weir_compute_accidental_hits_result_t hits =
      weir_compute_accidental_hits(s, p->labels, candidates, p->num_true);
  weir_edge_t pair[] = {hits.indices, weir_cast(s, hits.ids, WEIR_DTYPE_INT32)};
  weir_edge_t places = weir_pack(s, pair, 2, .axis = 1);
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  weir_edge_t shape = weir_lib_concat(s, weir_lib_part(s, weir_shape(s, p->labels), 0, 1),
                                      weir_lib_vector(s, p->num_sampled), 0);
  const weir_dtype_t dtype = weir_edge_type(logits);
  weir_edge_t removed =
      weir_sparse_to_dense(s, places, shape, weir_lib_cast(s, hits.weights, dtype),
                           weir_lib_number(s, dtype, 0), .validate_indices = WEIR_SET(false));
  return weir_add_v2(s, logits, removed);
}

static weir_edge_t subtract_log(weir_scope_t* s, weir_edge_t logits, weir_edge_t expected) {
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  expected = weir_lib_cast(s, expected, weir_edge_type(logits));
  return weir_sub(s, logits, weir_log(s, expected));
}

// Computed on the scope, from rows that come from where the weights are.
static weir_lib_scores_t scores_of_rows(const weir_lib_classes_t* p, weir_edge_t flat,
                                        weir_edge_t candidates) {
  weir_scope_t* s = p->scope;
  rows_t weights = look_up(p, p->weights, flat, candidates);
  rows_t biases = look_up(p, p->biases, flat, candidates);
  weir_edge_t sampled = weir_mat_mul(s, p->inputs, weights.of_sample, .transpose_b = true);
  weir_edge_t own_bias = weir_reshape(s, biases.of_labels, weir_lib_vector(s, -1, p->num_true));
  weir_edge_t own = weir_add_v2(s, true_logits(p, weights.of_labels), own_bias);
  return (weir_lib_scores_t){own, weir_add_v2(s, sampled, biases.of_sample)};
}

static sampled_t compute_logits(const weir_lib_classes_t* p) {
  weir_scope_t* s = p->scope;
  weir_edge_t flat = weir_reshape(s, p->labels, weir_lib_vector(s, -1));
  weir_candidates_t c = sample(p);
  weir_lib_scores_t scores = p->options->on_parts ? weir_lib_scores_on_parts(p, flat, c.candidates)
                                                  : scores_of_rows(p, flat, c.candidates);
  weir_edge_t own = scores.own, sampled = scores.sampled;
  if (weir_scope_status(s)) return (sampled_t){0};
  if (p->is_removing_hits) sampled = remove_hits(p, sampled, c.candidates);
  own = subtract_log(s, own, c.true_expected);
  sampled = subtract_log(s, sampled, c.sampled_expected);
  if (weir_scope_status(s)) return (sampled_t){0};
  weir_edge_t share = weir_lib_number(s, weir_edge_type(own), p->num_true);
  weir_edge_t shares = weir_real_div(s, weir_ones_like(s, own), share);
  return (sampled_t){weir_lib_concat(s, own, sampled, 1),
                     weir_lib_concat(s, shares, weir_zeros_like(s, sampled), 1)};
}

// Checks arguments and fills defaults in; false after an error.
static bool prepare(weir_lib_classes_t* p, const char* what, bool default_removing) {
  weir_scope_t* scope = p->scope;
  if (!weir_lib_is_ready(scope, what, p->weights.items, p->weights.count) ||
      !weir_lib_is_ready(scope, what, p->biases.items, p->biases.count) ||
      !weir_lib_ready(scope, what, p->labels, p->inputs))
    return false;
  const weir_sampled_options_t* o = p->options;
  p->num_true = o->num_true ? o->num_true : 1;
  p->size = weir_lib_dim(p->inputs, -1);
  p->is_removing_hits = o->remove_hits.is_set ? o->remove_hits.value : default_removing;
  if (p->weights.count <= 0 || p->biases.count <= 0)
    weir_lib_fail(scope, "%s: needs weights and biases, got %d and %d tables", what,
                  p->weights.count, p->biases.count);
  else if (o->on_parts && p->weights.count != p->biases.count)
    weir_lib_fail(scope, "%s: on parts there are as many biases as weights, got %d and %d", what,
                  p->biases.count, p->weights.count);
  else if (p->num_true <= 0 || p->num_sampled <= 0 || p->num_classes <= 0)
    weir_lib_fail(scope,
                  "%s: counts must be positive, got num_true %d, num_sampled %d, "
                  "num_classes %lld",
                  what, p->num_true, p->num_sampled, (long long)p->num_classes);
  else if (weir_lib_rank(p->inputs) != 2 || p->size <= 0 || weir_lib_rank(p->labels) != 2)
    weir_lib_fail(scope,
                  "%s: inputs '%s' and labels '%s' must be matrices, the inputs of known "
                  "width",
                  what, weir_node_name(p->inputs.node), weir_node_name(p->labels.node));
  if (weir_scope_status(scope)) return false;
  p->scope = weir_scope_in(scope, what);
  p->labels = weir_lib_cast(p->scope, p->labels, WEIR_DTYPE_INT64);
  return true;
}

weir_edge_t weir_sampled_softmax_loss_with(weir_scope_t* scope, weir_tables_t weights,
                                           weir_tables_t biases, weir_edge_t labels,
                                           weir_edge_t inputs, int num_sampled, int64_t num_classes,
                                           const weir_sampled_options_t* options) {
  options = options ? options : &(const weir_sampled_options_t){0};
  weir_lib_classes_t p = {.scope = scope,
                          .weights = weights,
                          .biases = biases,
                          .labels = labels,
                          .inputs = inputs,
                          .num_sampled = num_sampled,
                          .num_classes = num_classes,
                          .options = options};
  if (!prepare(&p, "sampled_softmax_loss", true)) return WEIR_LIB_NONE;
  sampled_t sampled = compute_logits(&p);
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  weir_edge_t fixed = weir_stop_gradient(p.scope, sampled.labels);
  return weir_softmax_cross_entropy(p.scope, fixed, sampled.logits);
}

weir_edge_t weir_nce_loss_with(weir_scope_t* scope, weir_tables_t weights, weir_tables_t biases,
                               weir_edge_t labels, weir_edge_t inputs, int num_sampled,
                               int64_t num_classes, const weir_sampled_options_t* options) {
  options = options ? options : &(const weir_sampled_options_t){0};
  weir_lib_classes_t p = {.scope = scope,
                          .weights = weights,
                          .biases = biases,
                          .labels = labels,
                          .inputs = inputs,
                          .num_sampled = num_sampled,
                          .num_classes = num_classes,
                          .options = options};
  if (!prepare(&p, "nce_loss", false)) return WEIR_LIB_NONE;
  sampled_t sampled = compute_logits(&p);
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  weir_edge_t losses = weir_sigmoid_cross_entropy(p.scope, sampled.labels, sampled.logits);
  return weir_sum(p.scope, losses, weir_lib_vector(p.scope, 1));
}
