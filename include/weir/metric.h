// metric.h — Metrics that are accumulated over many steps, equal to tf.compat.v1.metrics.
//
//   weir_metric_t accuracy = weir_metric_accuracy(s, labels, predictions);
//   … run accuracy.update with every batch, fetch accuracy.value, run accuracy.reset …
//
// Sums are kept in float state variables ("accuracy/total"), which weir_initializer also sets to 0.
// Fetched in the step that updates, |value| may be that of before or after: fetch |updated|
// instead. Threading: as the scope's.
#ifndef WEIR_METRIC_H_
#define WEIR_METRIC_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_metric_t {
  weir_edge_t value;    // over all updates so far; 0 before the first
  weir_edge_t updated;  // takes this step into account and returns the new value
  weir_node_t* update;  // the node of |updated|
  weir_node_t* reset;   // back to nothing
} weir_metric_t;

typedef struct weir_metric_options_t {
  int reserved;
  const char* name;     // of the scope; default: the metric's own
  weir_edge_t weights;  // a scalar, or of the values' rank with sizes equal or 1; none: 1
} weir_metric_options_t;
#define WEIR_METRIC_OPTIONS_(...) (&(const weir_metric_options_t){0, __VA_ARGS__})

// The weighted mean of all elements.
WEIR_API weir_metric_t weir_metric_mean_with(weir_scope_t* scope, weir_edge_t values,
                                             const weir_metric_options_t* options);
// How many predictions equal their labels.
WEIR_API weir_metric_t weir_metric_accuracy_with(weir_scope_t* scope, weir_edge_t labels,
                                                 weir_edge_t predictions,
                                                 const weir_metric_options_t* options);
// How many labels [n] are among the |k| largest of |scores| [n, classes] (float).
WEIR_API weir_metric_t weir_metric_top_k_accuracy_with(weir_scope_t* scope, weir_edge_t labels,
                                                       weir_edge_t scores, int k,
                                                       const weir_metric_options_t* options);
WEIR_API weir_metric_t weir_metric_mean_squared_error_with(weir_scope_t* scope, weir_edge_t labels,
                                                           weir_edge_t predictions,
                                                           const weir_metric_options_t* options);
WEIR_API weir_metric_t weir_metric_root_mean_squared_error_with(
    weir_scope_t* scope, weir_edge_t labels, weir_edge_t predictions,
    const weir_metric_options_t* options);
WEIR_API weir_metric_t weir_metric_mean_absolute_error_with(weir_scope_t* scope, weir_edge_t labels,
                                                            weir_edge_t predictions,
                                                            const weir_metric_options_t* options);
// True positives among all that are predicted, or among all that are labelled so; both are read as
// booleans.
WEIR_API weir_metric_t weir_metric_precision_with(weir_scope_t* scope, weir_edge_t labels,
                                                  weir_edge_t predictions,
                                                  const weir_metric_options_t* options);
WEIR_API weir_metric_t weir_metric_recall_with(weir_scope_t* scope, weir_edge_t labels,
                                               weir_edge_t predictions,
                                               const weir_metric_options_t* options);
#define weir_metric_mean(scope, values, ...) \
  weir_metric_mean_with(scope, values, WEIR_METRIC_OPTIONS_(__VA_ARGS__))
#define weir_metric_accuracy(scope, labels, predictions, ...) \
  weir_metric_accuracy_with(scope, labels, predictions, WEIR_METRIC_OPTIONS_(__VA_ARGS__))
#define weir_metric_top_k_accuracy(scope, labels, scores, k, ...) \
  weir_metric_top_k_accuracy_with(scope, labels, scores, k, WEIR_METRIC_OPTIONS_(__VA_ARGS__))
#define weir_metric_mean_squared_error(scope, labels, predictions, ...) \
  weir_metric_mean_squared_error_with(scope, labels, predictions, WEIR_METRIC_OPTIONS_(__VA_ARGS__))
#define weir_metric_root_mean_squared_error(scope, labels, predictions, ...) \
  weir_metric_root_mean_squared_error_with(scope, labels, predictions,       \
                                           WEIR_METRIC_OPTIONS_(__VA_ARGS__))
#define weir_metric_mean_absolute_error(scope, labels, predictions, ...) \
  weir_metric_mean_absolute_error_with(scope, labels, predictions,       \
                                       WEIR_METRIC_OPTIONS_(__VA_ARGS__))
#define weir_metric_precision(scope, labels, predictions, ...) \
  weir_metric_precision_with(scope, labels, predictions, WEIR_METRIC_OPTIONS_(__VA_ARGS__))
#define weir_metric_recall(scope, labels, predictions, ...) \
  weir_metric_recall_with(scope, labels, predictions, WEIR_METRIC_OPTIONS_(__VA_ARGS__))

// ---- the area under a curve ----

typedef enum weir_auc_curve_t {
  WEIR_AUC_ROC = 0,  // recall over the rate of false positives
  WEIR_AUC_PR,       // precision over recall
} weir_auc_curve_t;
typedef enum weir_auc_sum_t {
  WEIR_AUC_TRAPEZOIDAL = 0,
  WEIR_AUC_MINORING,
  WEIR_AUC_MAJORING,
  WEIR_AUC_INTERPOLATED,  // TensorFlow's careful_interpolation: the right one for WEIR_AUC_PR
} weir_auc_sum_t;

typedef struct weir_metric_auc_options_t {
  int reserved;
  const char* name;  // default: "auc"
  weir_edge_t weights;
  int threshold_count;  // default: 200; at least 2
  weir_auc_curve_t curve;
  weir_auc_sum_t sum;
} weir_metric_auc_options_t;
// |labels| are read as booleans; |predictions| must be in [0, 1], or the update fails.
WEIR_API weir_metric_t weir_metric_auc_with(weir_scope_t* scope, weir_edge_t labels,
                                            weir_edge_t predictions,
                                            const weir_metric_auc_options_t* options);
#define weir_metric_auc(scope, labels, predictions, ...) \
  weir_metric_auc_with(scope, labels, predictions,       \
                       &(const weir_metric_auc_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_METRIC_H_
