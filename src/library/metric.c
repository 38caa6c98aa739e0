// metric.c — Means over many steps: accuracy, errors, precision and recall.
#include "weir/metric.h"

#include "metric_sum.h"
#include "nodes.h"

typedef weir_metric_options_t options_t;

static const weir_metric_t NO_METRIC = {0};

// ---- sums ----

weir_metric_sum_t weir_metric_sum(weir_scope_t* scope, const char* name, int64_t size,
                                  weir_edge_t addend) {
  weir_metric_sum_t sum = {0};
  weir_scope_t* apart = weir_scope_lift(scope);
  weir_edge_t zero = weir_const_float(apart, 0);
  weir_edge_t start = size ? weir_fill(apart, weir_lib_vector(apart, size), zero) : zero;
  sum.value = weir_state_variable(scope, name, start);
  if (weir_scope_status(scope)) return sum;
  sum.reset = weir_scope_variable_at(scope, weir_scope_variable_count(scope) - 1).initializer;
  weir_edge_t handle = weir_variable_handle(sum.value);
  weir_node_t* add = weir_assign_add_variable_op(scope, handle, addend);
  sum.updated = weir_read_variable_op(weir_scope_after(scope, &add, 1), handle, WEIR_DTYPE_FLOAT);
  return sum;
}

weir_edge_t weir_metric_weights(weir_scope_t* scope, weir_edge_t weights, weir_edge_t values) {
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  const int rank = weir_lib_rank(values), own = weir_lib_rank(weights);
  if (rank >= 0 && own > 0 && own != rank) {
    weir_lib_fail(scope, "metric: weights '%s' of rank %d do not fit values of rank %d",
                  weir_node_name(weights.node), own, rank);
    return WEIR_LIB_NONE;
  }
  return weir_mul(scope, weir_ones_like(scope, values),
                  weir_lib_cast(scope, weights, WEIR_DTYPE_FLOAT));
}

static weir_metric_t metric(weir_scope_t* s, weir_edge_t value, weir_edge_t updated,
                            weir_node_t* const* resets, int count) {
  if (weir_scope_status(s)) return NO_METRIC;
  return (weir_metric_t){value, updated, updated.node, weir_group(s, "reset", resets, count)};
}

// ---- means ----

// |values| in float. With |is_root| the root of the mean.
static weir_metric_t mean(weir_scope_t* s, weir_edge_t values, const options_t* options,
                          bool is_root) {
  if (weir_scope_status(s)) return NO_METRIC;
  weir_edge_t number = weir_cast(s, weir_size(s, values), WEIR_DTYPE_FLOAT);
  if (options->weights.node) {
    weir_edge_t weights = weir_metric_weights(s, options->weights, values);
    values = weir_mul(s, values, weights);
    number = weir_lib_sum(s, weights);
  }
  weir_metric_sum_t total = weir_metric_sum(s, "total", 0, weir_lib_sum(s, values));
  weir_metric_sum_t count = weir_metric_sum(s, "count", 0, number);
  weir_edge_t value = weir_div_no_nan(s, total.value, count.value);
  weir_edge_t updated = weir_div_no_nan(s, total.updated, count.updated);
  if (is_root) {
    value = weir_sqrt(s, value);
    updated = weir_sqrt(s, updated);
  }
  weir_node_t* resets[] = {total.reset, count.reset};
  return metric(s, value, updated, resets, 2);
}

static weir_scope_t* enter(weir_scope_t* scope, const options_t* options, const char* kind) {
  return weir_scope_in(scope, options->name ? options->name : kind);
}

// Whether |a| and |b| may have one shape; an error sticks.
static bool check_shapes(weir_scope_t* scope, const char* what, weir_edge_t a, weir_edge_t b) {
  if (!weir_lib_ready(scope, what, a, b)) return false;
  const bool is_same = weir_lib_is_same_shape(a, b);
  if (!is_same)
    weir_lib_fail(scope, "%s metric: labels '%s' and predictions '%s' differ in shape", what,
                  weir_node_name(a.node), weir_node_name(b.node));
  return is_same;
}

weir_metric_t weir_metric_mean_with(weir_scope_t* scope, weir_edge_t values,
                                    const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!weir_lib_ready(scope, "mean", values)) return NO_METRIC;
  weir_scope_t* s = enter(scope, options, "mean");
  return mean(s, weir_lib_cast(s, values, WEIR_DTYPE_FLOAT), options, false);
}

weir_metric_t weir_metric_accuracy_with(weir_scope_t* scope, weir_edge_t labels,
                                        weir_edge_t predictions,
                                        const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!check_shapes(scope, "accuracy", labels, predictions)) return NO_METRIC;
  weir_scope_t* s = enter(scope, options, "accuracy");
  labels = weir_lib_cast(s, labels, weir_edge_type(predictions));
  weir_edge_t is_right = weir_equal(s, predictions, labels);
  return mean(s, weir_cast(s, is_right, WEIR_DTYPE_FLOAT), options, false);
}

weir_metric_t weir_metric_top_k_accuracy_with(weir_scope_t* scope, weir_edge_t labels,
                                              weir_edge_t scores, int k,
                                              const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!weir_lib_ready(scope, "top_k_accuracy", labels, scores)) return NO_METRIC;
  if (k <= 0) weir_lib_fail(scope, "top_k_accuracy metric: k must be positive, got %d", k);
  weir_scope_t* s = enter(scope, options, "top_k_accuracy");
  weir_edge_t classes = weir_lib_cast(s, labels, WEIR_DTYPE_INT64);
  weir_edge_t places = weir_lib_number(s, WEIR_DTYPE_INT64, k);
  weir_edge_t is_right = weir_in_top_kv2(s, scores, classes, places);
  return mean(s, weir_cast(s, is_right, WEIR_DTYPE_FLOAT), options, false);
}

// The scope and predictions - labels in float.
static weir_edge_t difference(weir_scope_t* s, weir_edge_t labels, weir_edge_t predictions) {
  return weir_sub(s, weir_lib_cast(s, predictions, WEIR_DTYPE_FLOAT),
                  weir_lib_cast(s, labels, WEIR_DTYPE_FLOAT));
}

weir_metric_t weir_metric_mean_squared_error_with(weir_scope_t* scope, weir_edge_t labels,
                                                  weir_edge_t predictions,
                                                  const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!check_shapes(scope, "mean_squared_error", labels, predictions)) return NO_METRIC;
  weir_scope_t* s = enter(scope, options, "mean_squared_error");
  return mean(s, weir_square(s, difference(s, labels, predictions)), options, false);
}

weir_metric_t weir_metric_root_mean_squared_error_with(weir_scope_t* scope, weir_edge_t labels,
                                                       weir_edge_t predictions,
                                                       const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!check_shapes(scope, "root_mean_squared_error", labels, predictions)) return NO_METRIC;
  weir_scope_t* s = enter(scope, options, "root_mean_squared_error");
  return mean(s, weir_square(s, difference(s, labels, predictions)), options, true);
}

weir_metric_t weir_metric_mean_absolute_error_with(weir_scope_t* scope, weir_edge_t labels,
                                                   weir_edge_t predictions,
                                                   const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!check_shapes(scope, "mean_absolute_error", labels, predictions)) return NO_METRIC;
  weir_scope_t* s = enter(scope, options, "mean_absolute_error");
  return mean(s, weir_abs(s, difference(s, labels, predictions)), options, false);
}

// ---- precision and recall ----

static weir_metric_sum_t count_where(weir_scope_t* s, const char* name, weir_edge_t condition,
                                     weir_edge_t weights) {
  weir_edge_t ones = weir_lib_cast(s, condition, WEIR_DTYPE_FLOAT);
  if (weights.node) ones = weir_mul(s, ones, weir_metric_weights(s, weights, ones));
  return weir_metric_sum(s, name, 0, weir_lib_sum(s, ones));
}

// True positives over themselves and those where only |other| holds.
static weir_metric_t share(weir_scope_t* s, weir_edge_t one, weir_edge_t other, const char* name,
                           weir_edge_t weights) {
  weir_edge_t first = weir_lib_cast(s, one, WEIR_DTYPE_BOOL);
  weir_edge_t second = weir_lib_cast(s, other, WEIR_DTYPE_BOOL);
  weir_metric_sum_t right =
      count_where(s, "true_positives", weir_logical_and(s, first, second), weights);
  weir_metric_sum_t wrong =
      count_where(s, name, weir_logical_and(s, weir_logical_not(s, first), second), weights);
  weir_edge_t value = weir_div_no_nan(s, right.value, weir_add_v2(s, right.value, wrong.value));
  weir_edge_t updated =
      weir_div_no_nan(s, right.updated, weir_add_v2(s, right.updated, wrong.updated));
  weir_node_t* resets[] = {right.reset, wrong.reset};
  return metric(s, value, updated, resets, 2);
}

weir_metric_t weir_metric_precision_with(weir_scope_t* scope, weir_edge_t labels,
                                         weir_edge_t predictions,
                                         const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!check_shapes(scope, "precision", labels, predictions)) return NO_METRIC;
  weir_scope_t* s = enter(scope, options, "precision");
  return share(s, labels, predictions, "false_positives", options->weights);
}

weir_metric_t weir_metric_recall_with(weir_scope_t* scope, weir_edge_t labels,
                                      weir_edge_t predictions,
                                      const weir_metric_options_t* options) {
  options = options ? options : &(const weir_metric_options_t){0};
  if (!check_shapes(scope, "recall", labels, predictions)) return NO_METRIC;
  weir_scope_t* s = enter(scope, options, "recall");
  return share(s, predictions, labels, "false_negatives", options->weights);
}
