// cross_entropy.c — Cross entropies, one an example.
#include "nodes.h"
#include "weir/loss.h"

// [outer…, classes] → [n, classes].
static weir_edge_t to_matrix(weir_scope_t* s, weir_edge_t x) {
  if (weir_scope_status(s) || weir_lib_rank(x) == 2) return x;
  const int64_t classes = weir_lib_dim(x, -1);
  if (classes > 0) return weir_reshape(s, x, weir_lib_vector(s, -1, classes));
  weir_edge_t last = weir_lib_part(s, weir_shape(s, x), -1, 0);
  return weir_reshape(s, x, weir_lib_concat(s, weir_lib_vector(s, -1), last, 0));
}

// [n] → the shape of |like| without its last dimension.
static weir_edge_t to_outer(weir_scope_t* s, weir_edge_t losses, weir_edge_t like) {
  if (weir_scope_status(s) || weir_lib_rank(like) == 2) return losses;
  int64_t dims[WEIR_MAX_RANK];
  const int rank = weir_edge_dims(like, dims, WEIR_MAX_RANK);
  int unknown = 0;
  for (int i = 0; i < rank - 1; ++i) unknown += dims[i] < 0;
  if (rank >= 1 && unknown <= 1) return weir_reshape(s, losses, weir_lib_ints(s, dims, rank - 1));
  return weir_reshape(s, losses, weir_lib_part(s, weir_shape(s, like), 0, -1));
}

static bool check_logits(weir_scope_t* scope, const char* what, weir_edge_t labels,
                         weir_edge_t logits) {
  if (!weir_lib_ready(scope, what, labels, logits)) return false;
  if (weir_lib_rank(logits) == 0)
    weir_lib_fail(scope, "%s: logits '%s' are a scalar", what, weir_node_name(logits.node));
  return !weir_scope_status(scope);
}

weir_edge_t weir_softmax_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                       weir_edge_t logits) {
  if (!check_logits(scope, "softmax_cross_entropy", labels, logits)) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "softmax_cross_entropy");
  labels = weir_lib_cast(s, labels, weir_edge_type(logits));
  weir_edge_t losses =
      weir_softmax_cross_entropy_with_logits(s, to_matrix(s, logits), to_matrix(s, labels)).loss;
  return to_outer(s, losses, logits);
}

weir_edge_t weir_sparse_softmax_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                              weir_edge_t logits) {
  const char* what = "sparse_softmax_cross_entropy";
  if (!check_logits(scope, what, labels, logits)) return WEIR_LIB_NONE;
  const int rank = weir_lib_rank(logits), label_rank = weir_lib_rank(labels);
  if (rank >= 0 && label_rank >= 0 && label_rank != rank - 1) {
    weir_lib_fail(scope, "%s: labels '%s' must have one dimension less than logits, got %d and %d",
                  what, weir_node_name(labels.node), label_rank, rank);
    return WEIR_LIB_NONE;
  }
  weir_scope_t* s = weir_scope_in(scope, what);
  weir_edge_t classes = label_rank == 1 ? labels : weir_reshape(s, labels, weir_lib_vector(s, -1));
  weir_edge_t losses =
      weir_sparse_softmax_cross_entropy_with_logits(s, to_matrix(s, logits), classes).loss;
  return to_outer(s, losses, logits);
}

// max(x, 0) and -|x|, by selections that have the right gradients at 0.
typedef struct halves_t {
  weir_edge_t positive, below;
} halves_t;

static halves_t split_sign(weir_scope_t* s, weir_edge_t x) {
  weir_edge_t zeros = weir_zeros_like(s, x);
  weir_edge_t is_positive = weir_greater_equal(s, x, zeros);
  return (halves_t){weir_select_v2(s, is_positive, x, zeros),
                    weir_select_v2(s, is_positive, weir_neg(s, x), x)};
}

static weir_edge_t log1p_exp(weir_scope_t* s, weir_edge_t x) {
  return weir_log1p(s, weir_exp(s, x));
}

// max(x, 0) - x z + log(1 + e^-|x|), which neither overflows nor cancels.
weir_edge_t weir_sigmoid_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                       weir_edge_t logits) {
  if (!weir_lib_ready(scope, "sigmoid_cross_entropy", labels, logits)) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "sigmoid_cross_entropy");
  labels = weir_lib_cast(s, labels, weir_edge_type(logits));
  halves_t x = split_sign(s, logits);
  weir_edge_t linear = weir_sub(s, x.positive, weir_mul(s, logits, labels));
  return weir_add_v2(s, linear, log1p_exp(s, x.below));
}

// (1 - z) x + (1 + (q - 1) z) (log(1 + e^-|x|) + max(-x, 0)).
weir_edge_t weir_weighted_sigmoid_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                                weir_edge_t logits, weir_edge_t positive_weight) {
  if (!weir_lib_ready(scope, "weighted_sigmoid_cross_entropy", labels, logits, positive_weight))
    return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "weighted_sigmoid_cross_entropy");
  weir_edge_t one = weir_lib_number(s, weir_edge_type(logits), 1);
  labels = weir_lib_cast(s, labels, weir_edge_type(logits));
  weir_edge_t factor = weir_add_v2(s, one, weir_mul(s, weir_sub(s, positive_weight, one), labels));
  weir_edge_t tail = weir_add_v2(s, log1p_exp(s, weir_neg(s, weir_abs(s, logits))),
                                 weir_relu(s, weir_neg(s, logits)));
  return weir_add_v2(s, weir_mul(s, weir_sub(s, one, labels), logits), weir_mul(s, factor, tail));
}
