// loss.c — Losses that are weighed and reduced, and the sum of penalties.
#include "weir/loss.h"

#include "nodes.h"

typedef weir_loss_options_t options_t;

// ---- weights and reductions ----

// Weights are scalars, or have the losses' rank with sizes equal or 1.
static bool check_weights(weir_scope_t* scope, weir_edge_t losses, weir_edge_t weights) {
  const int rank = weir_lib_rank(losses), own = weir_lib_rank(weights);
  if (rank < 0 || own <= 0) return true;
  bool is_fit = rank == own;
  for (int i = 0; is_fit && i < rank; ++i) {
    const int64_t size = weir_lib_dim(losses, i), weight_size = weir_lib_dim(weights, i);
    is_fit = size < 0 || weight_size < 0 || weight_size == 1 || weight_size == size;
  }
  if (!is_fit)
    weir_lib_fail(scope,
                  "loss: weights '%s' can not be broadcast to losses '%s': neither a scalar nor "
                  "of rank %d with sizes equal or 1",
                  weir_node_name(weights.node), weir_node_name(losses.node), rank);
  return is_fit;
}

// What the sum is divided by; all in float.
static weir_edge_t divisor(weir_scope_t* s, weir_edge_t losses, weir_edge_t weights,
                           weir_reduction_t reduction) {
  if (!weights.node || reduction == WEIR_REDUCE_OVER_BATCH_SIZE)
    return weir_cast(s, weir_size(s, losses), WEIR_DTYPE_FLOAT);
  weir_edge_t counted = weights;
  if (reduction == WEIR_REDUCE_BY_NONZERO_WEIGHTS) {
    weir_edge_t is_present = weir_not_equal(s, weights, weir_const_float(s, 0));
    counted = weir_cast(s, is_present, WEIR_DTYPE_FLOAT);
  }
  return weir_lib_sum(s, weir_mul(s, weir_ones_like(s, losses), counted));
}

static weir_edge_t reduce(weir_scope_t* s, weir_edge_t losses, const options_t* options) {
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  if (options->weights.node && !check_weights(s, losses, options->weights)) return WEIR_LIB_NONE;
  const weir_dtype_t dtype = weir_edge_type(losses);
  losses = weir_lib_cast(s, losses, WEIR_DTYPE_FLOAT);
  weir_edge_t weights = options->weights;
  weir_edge_t loss = losses;
  if (weights.node) {
    weights = weir_lib_cast(s, weights, WEIR_DTYPE_FLOAT);
    loss = weir_mul(s, losses, weights);
  }
  if (options->reduction != WEIR_REDUCE_NONE) loss = weir_lib_sum(s, loss);
  if (options->reduction != WEIR_REDUCE_NONE && options->reduction != WEIR_REDUCE_SUM)
    loss = weir_div_no_nan(s, loss, divisor(s, losses, weights, options->reduction));
  return weir_lib_cast(s, loss, dtype);
}

weir_edge_t weir_loss_weighted_with(weir_scope_t* scope, weir_edge_t losses,
                                    const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!weir_lib_ready(scope, "weighted loss", losses)) return WEIR_LIB_NONE;
  return reduce(weir_scope_in(scope, "weighted_loss"), losses, options);
}

// ---- cross entropies ----

// labels * (1 - smoothing) + |rest|.
static weir_edge_t smooth(weir_scope_t* s, weir_edge_t labels, float smoothing, weir_edge_t rest) {
  weir_edge_t kept = weir_lib_number(s, weir_edge_type(labels), 1 - (double)smoothing);
  return weir_add_v2(s, weir_mul(s, labels, kept), rest);
}

static weir_edge_t smooth_classes(weir_scope_t* s, weir_edge_t labels, float smoothing) {
  const weir_dtype_t dtype = weir_edge_type(labels);
  weir_edge_t count = weir_cast(s, weir_lib_element(s, weir_shape(s, labels), -1), dtype);
  weir_edge_t share = weir_real_div(s, weir_lib_number(s, dtype, (double)smoothing), count);
  return smooth(s, labels, smoothing, share);
}

weir_edge_t weir_loss_softmax_cross_entropy_with(weir_scope_t* scope, weir_edge_t labels,
                                                 weir_edge_t logits,
                                                 const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!weir_lib_ready(scope, "softmax cross entropy loss", labels, logits)) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "softmax_cross_entropy_loss");
  labels = weir_lib_cast(s, labels, weir_edge_type(logits));
  if (options->label_smoothing > 0) labels = smooth_classes(s, labels, options->label_smoothing);
  labels = weir_stop_gradient(s, labels);
  return reduce(s, weir_softmax_cross_entropy(s, labels, logits), options);
}

// Without the last dimension, of size 1, of labels and weights that have one too many.
static weir_edge_t without_last(weir_scope_t* s, weir_edge_t x, int rank) {
  if (!x.node || rank < 1 || weir_lib_rank(x) != rank || weir_lib_dim(x, -1) != 1) return x;
  return weir_squeeze(s, x, .squeeze_dims = WEIR_INTS(-1));
}

weir_edge_t weir_loss_sparse_softmax_cross_entropy_with(weir_scope_t* scope, weir_edge_t labels,
                                                        weir_edge_t logits,
                                                        const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!weir_lib_ready(scope, "sparse softmax cross entropy loss", labels, logits))
    return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "sparse_softmax_cross_entropy_loss");
  const int rank = weir_lib_rank(logits);
  options_t squeezed = *options;
  squeezed.weights = without_last(s, options->weights, rank);
  weir_edge_t losses = weir_sparse_softmax_cross_entropy(s, without_last(s, labels, rank), logits);
  return reduce(s, losses, &squeezed);
}

weir_edge_t weir_loss_sigmoid_cross_entropy_with(weir_scope_t* scope, weir_edge_t labels,
                                                 weir_edge_t logits,
                                                 const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!weir_lib_ready(scope, "sigmoid cross entropy loss", labels, logits)) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "sigmoid_cross_entropy_loss");
  const weir_dtype_t dtype = weir_edge_type(logits);
  labels = weir_lib_cast(s, labels, dtype);
  const float smoothing = options->label_smoothing;
  if (smoothing > 0)
    labels = smooth(s, labels, smoothing, weir_lib_number(s, dtype, 0.5 * (double)smoothing));
  return reduce(s, weir_sigmoid_cross_entropy(s, labels, logits), options);
}

// ---- distances ----

// Enters a scope and brings both to float; false after an error.
static bool enter(weir_scope_t** scope, const char* what, weir_edge_t* labels,
                  weir_edge_t* predictions) {
  if (!weir_lib_ready(*scope, what, *labels, *predictions)) return false;
  *scope = weir_scope_in(*scope, what);
  *labels = weir_lib_cast(*scope, *labels, WEIR_DTYPE_FLOAT);
  *predictions = weir_lib_cast(*scope, *predictions, WEIR_DTYPE_FLOAT);
  if (weir_scope_status(*scope)) return false;
  const bool is_same = weir_lib_is_same_shape(*labels, *predictions);
  if (!is_same)
    weir_lib_fail(*scope, "%s: labels '%s' and predictions '%s' differ in shape", what,
                  weir_node_name(labels->node), weir_node_name(predictions->node));
  return is_same;
}

weir_edge_t weir_loss_mean_squared_with(weir_scope_t* scope, weir_edge_t labels,
                                        weir_edge_t predictions,
                                        const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!enter(&scope, "mean_squared_error", &labels, &predictions)) return WEIR_LIB_NONE;
  return reduce(scope, weir_squared_difference(scope, predictions, labels), options);
}

weir_edge_t weir_loss_absolute_with(weir_scope_t* scope, weir_edge_t labels,
                                    weir_edge_t predictions, const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!enter(&scope, "absolute_difference", &labels, &predictions)) return WEIR_LIB_NONE;
  return reduce(scope, weir_abs(scope, weir_sub(scope, predictions, labels)), options);
}

weir_edge_t weir_loss_huber_with(weir_scope_t* scope, weir_edge_t labels, weir_edge_t predictions,
                                 const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!enter(&scope, "huber_loss", &labels, &predictions)) return WEIR_LIB_NONE;
  weir_scope_t* s = scope;
  weir_edge_t delta = weir_const_float(s, options->delta.is_set ? options->delta.value : 1);
  weir_edge_t error = weir_abs(s, weir_sub(s, predictions, labels));
  weir_edge_t inner = weir_minimum(s, error, delta), outer = weir_sub(s, error, inner);
  weir_edge_t square = weir_mul(s, weir_const_float(s, 0.5f), weir_mul(s, inner, inner));
  return reduce(s, weir_add_v2(s, square, weir_mul(s, delta, outer)), options);
}

weir_edge_t weir_loss_hinge_with(weir_scope_t* scope, weir_edge_t labels, weir_edge_t logits,
                                 const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!enter(&scope, "hinge_loss", &labels, &logits)) return WEIR_LIB_NONE;
  weir_scope_t* s = scope;
  weir_edge_t ones = weir_ones_like(s, labels);
  weir_edge_t signs = weir_sub(s, weir_mul(s, weir_const_float(s, 2), labels), ones);
  return reduce(s, weir_relu(s, weir_sub(s, ones, weir_mul(s, signs, logits))), options);
}

weir_edge_t weir_loss_log_with(weir_scope_t* scope, weir_edge_t labels, weir_edge_t predictions,
                               const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!enter(&scope, "log_loss", &labels, &predictions)) return WEIR_LIB_NONE;
  weir_scope_t* s = scope;
  weir_edge_t one = weir_const_float(s, 1);
  weir_edge_t epsilon =
      weir_const_float(s, options->epsilon.is_set ? options->epsilon.value : 1e-7f);
  weir_edge_t hit = weir_log(s, weir_add_v2(s, predictions, epsilon));
  weir_edge_t miss = weir_log(s, weir_add_v2(s, weir_sub(s, one, predictions), epsilon));
  weir_edge_t left = weir_mul(s, weir_neg(s, labels), hit);
  return reduce(s, weir_sub(s, left, weir_mul(s, weir_sub(s, one, labels), miss)), options);
}

weir_edge_t weir_loss_cosine_distance_with(weir_scope_t* scope, weir_edge_t labels,
                                           weir_edge_t predictions,
                                           const weir_loss_options_t* options) {
  options = options ? options : &(const weir_loss_options_t){0};
  if (!enter(&scope, "cosine_distance", &labels, &predictions)) return WEIR_LIB_NONE;
  weir_edge_t axis = weir_lib_vector(scope, options->axis.is_set ? options->axis.value : -1);
  weir_edge_t dots = weir_sum(scope, weir_mul(scope, predictions, labels), axis, .keep_dims = true);
  return reduce(scope, weir_sub(scope, weir_const_float(scope, 1), dots), options);
}

// ---- penalties ----

weir_edge_t weir_loss_regularization(weir_scope_t* scope) {
  const weir_edge_t* penalties = NULL;
  const int count = weir_scope_collected(scope, WEIR_LOSSES, &penalties);
  if (count == 0) return weir_const_float(scope, 0);
  return count == 1 ? penalties[0] : weir_add_n(scope, penalties, count);
}

weir_edge_t weir_loss_total(weir_scope_t* scope, weir_edge_t loss) {
  const weir_edge_t* penalties = NULL;
  if (!weir_lib_ready(scope, "total loss", loss)) return WEIR_LIB_NONE;
  if (!weir_scope_collected(scope, WEIR_LOSSES, &penalties)) return loss;
  return weir_add_v2(scope, loss, weir_loss_regularization(scope));
}
