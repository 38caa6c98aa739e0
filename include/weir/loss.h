// loss.h — Losses, equal to tf.compat.v1.losses, and the cross entropies they are made of.
//
//   weir_edge_t loss = weir_loss_sparse_softmax_cross_entropy(s, labels, logits);
//
// Labels come first, predictions second. Unless said otherwise losses are computed in float.
// Threading: as the scope's.
#ifndef WEIR_LOSS_H_
#define WEIR_LOSS_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// How many losses become one.
typedef enum weir_reduction_t {
  WEIR_REDUCE_BY_NONZERO_WEIGHTS = 0,  // the sum over the number of weights that are not 0
  WEIR_REDUCE_NONE,                    // each loss times its weight
  WEIR_REDUCE_SUM,
  WEIR_REDUCE_MEAN,             // the sum over the sum of weights
  WEIR_REDUCE_OVER_BATCH_SIZE,  // the sum over the number of losses
} weir_reduction_t;

typedef struct weir_loss_options_t {
  int reserved;
  weir_edge_t weights;  // a scalar, or of the losses' rank with sizes equal or 1; none: 1
  weir_reduction_t reduction;
  float label_smoothing;     // cross entropies of dense labels only
  weir_opt_float_t delta;    // huber: where squares end; default: 1
  weir_opt_float_t epsilon;  // log loss: added before logarithms; default: 1e-7
  weir_opt_int_t axis;       // cosine distance; default: -1
} weir_loss_options_t;
#define WEIR_LOSS_OPTIONS_(...) (&(const weir_loss_options_t){0, __VA_ARGS__})

// Weighs and reduces any losses.
WEIR_API weir_edge_t weir_loss_weighted_with(weir_scope_t* scope, weir_edge_t losses,
                                             const weir_loss_options_t* options);
// |labels|: a distribution over the last dimension. Computed in the type of |logits|.
WEIR_API weir_edge_t weir_loss_softmax_cross_entropy_with(weir_scope_t* scope, weir_edge_t labels,
                                                          weir_edge_t logits,
                                                          const weir_loss_options_t* options);
// |labels|: classes, int32 or int64, of the shape of |logits| without its last dimension (or with
// 1 for it).
WEIR_API weir_edge_t
weir_loss_sparse_softmax_cross_entropy_with(weir_scope_t* scope, weir_edge_t labels,
                                            weir_edge_t logits, const weir_loss_options_t* options);
// |labels|: independent probabilities.
WEIR_API weir_edge_t weir_loss_sigmoid_cross_entropy_with(weir_scope_t* scope, weir_edge_t labels,
                                                          weir_edge_t logits,
                                                          const weir_loss_options_t* options);
WEIR_API weir_edge_t weir_loss_mean_squared_with(weir_scope_t* scope, weir_edge_t labels,
                                                 weir_edge_t predictions,
                                                 const weir_loss_options_t* options);
WEIR_API weir_edge_t weir_loss_absolute_with(weir_scope_t* scope, weir_edge_t labels,
                                             weir_edge_t predictions,
                                             const weir_loss_options_t* options);
WEIR_API weir_edge_t weir_loss_huber_with(weir_scope_t* scope, weir_edge_t labels,
                                          weir_edge_t predictions,
                                          const weir_loss_options_t* options);
// |labels|: 0 or 1.
WEIR_API weir_edge_t weir_loss_hinge_with(weir_scope_t* scope, weir_edge_t labels,
                                          weir_edge_t logits, const weir_loss_options_t* options);
WEIR_API weir_edge_t weir_loss_log_with(weir_scope_t* scope, weir_edge_t labels,
                                        weir_edge_t predictions,
                                        const weir_loss_options_t* options);
// 1 - labels · predictions, both of length 1 along |axis|.
WEIR_API weir_edge_t weir_loss_cosine_distance_with(weir_scope_t* scope, weir_edge_t labels,
                                                    weir_edge_t predictions,
                                                    const weir_loss_options_t* options);
#define weir_loss_weighted(scope, losses, ...) \
  weir_loss_weighted_with(scope, losses, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_softmax_cross_entropy(scope, labels, logits, ...) \
  weir_loss_softmax_cross_entropy_with(scope, labels, logits, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_sparse_softmax_cross_entropy(scope, labels, logits, ...) \
  weir_loss_sparse_softmax_cross_entropy_with(scope, labels, logits,       \
                                              WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_sigmoid_cross_entropy(scope, labels, logits, ...) \
  weir_loss_sigmoid_cross_entropy_with(scope, labels, logits, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_mean_squared(scope, labels, predictions, ...) \
  weir_loss_mean_squared_with(scope, labels, predictions, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_absolute(scope, labels, predictions, ...) \
  weir_loss_absolute_with(scope, labels, predictions, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_huber(scope, labels, predictions, ...) \
  weir_loss_huber_with(scope, labels, predictions, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_hinge(scope, labels, logits, ...) \
  weir_loss_hinge_with(scope, labels, logits, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_log(scope, labels, predictions, ...) \
  weir_loss_log_with(scope, labels, predictions, WEIR_LOSS_OPTIONS_(__VA_ARGS__))
#define weir_loss_cosine_distance(scope, labels, predictions, ...) \
  weir_loss_cosine_distance_with(scope, labels, predictions, WEIR_LOSS_OPTIONS_(__VA_ARGS__))

// The sum of what layers have put under WEIR_LOSSES; 0 (a float) when there is nothing.
WEIR_API weir_edge_t weir_loss_regularization(weir_scope_t* scope);
// |loss| plus what is under WEIR_LOSSES.
WEIR_API weir_edge_t weir_loss_total(weir_scope_t* scope, weir_edge_t loss);

// ---- one loss an example, in the type of the logits ----

// Over the last dimension; any rank.
WEIR_API weir_edge_t weir_softmax_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                                weir_edge_t logits);
WEIR_API weir_edge_t weir_sparse_softmax_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                                       weir_edge_t logits);
// Element by element.
WEIR_API weir_edge_t weir_sigmoid_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                                weir_edge_t logits);
// The same, where a missed positive counts |positive_weight| (a scalar or of the labels' shape).
WEIR_API weir_edge_t weir_weighted_sigmoid_cross_entropy(weir_scope_t* scope, weir_edge_t labels,
                                                         weir_edge_t logits,
                                                         weir_edge_t positive_weight);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_LOSS_H_
