// metric_auc.c — The area under a ROC or precision-recall curve, from counts at many thresholds.
#include "metric_sum.h"
#include "nodes.h"

typedef weir_metric_auc_options_t options_t;

// Counts at each threshold: true and false positives and negatives.
typedef struct counts_t {
  weir_edge_t tp, fn, tn, fp;
} counts_t;

// ---- from counts to an area ----

static weir_edge_t high(weir_scope_t* s, weir_edge_t v) { return weir_lib_part(s, v, 0, -1); }
static weir_edge_t low(weir_scope_t* s, weir_edge_t v) { return weir_lib_part(s, v, 1, 0); }
static weir_edge_t step(weir_scope_t* s, weir_edge_t v) {
  return weir_sub(s, high(s, v), low(s, v));
}
static weir_edge_t at_least_zero(weir_scope_t* s, weir_edge_t v) {
  return weir_maximum(s, v, weir_const_float(s, 0));
}

// Between two thresholds true and false positives vary linearly, which makes precision a hyperbola:
// its integral is slope * (dTP + intercept * log(P_high / P_low)) / positives.
static weir_edge_t interpolate(weir_scope_t* s, counts_t c) {
  weir_edge_t zero = weir_const_float(s, 0);
  weir_edge_t p = weir_add_v2(s, c.tp, c.fp), p_high = high(s, p), p_low = low(s, p);
  weir_edge_t slope =
      weir_div_no_nan(s, step(s, c.tp), at_least_zero(s, weir_sub(s, p_high, p_low)));
  weir_edge_t intercept = weir_sub(s, low(s, c.tp), weir_mul(s, slope, p_low));
  weir_edge_t is_positive =
      weir_logical_and(s, weir_greater(s, p_high, zero), weir_greater(s, p_low, zero));
  weir_edge_t ratio = weir_select_v2(
      s, is_positive, weir_div_no_nan(s, p_high, at_least_zero(s, p_low)), weir_const_float(s, 1));
  weir_edge_t area =
      weir_mul(s, slope, weir_add_v2(s, step(s, c.tp), weir_mul(s, intercept, weir_log(s, ratio))));
  weir_edge_t positives = at_least_zero(s, weir_add_v2(s, low(s, c.tp), low(s, c.fn)));
  return weir_lib_sum(s, weir_div_no_nan(s, area, positives));
}

// (a + epsilon) / (a + b + epsilon), or without the first epsilon.
static weir_edge_t rate(weir_scope_t* s, weir_edge_t a, weir_edge_t b, bool is_lifted) {
  weir_edge_t epsilon = weir_const_float(s, 1e-6f);
  weir_edge_t all = weir_add_v2(s, weir_add_v2(s, a, b), epsilon);
  return weir_real_div(s, is_lifted ? weir_add_v2(s, a, epsilon) : a, all);
}

static weir_edge_t height(weir_scope_t* s, weir_edge_t y, weir_auc_sum_t sum) {
  if (sum == WEIR_AUC_MINORING) return weir_minimum(s, high(s, y), low(s, y));
  if (sum == WEIR_AUC_MAJORING) return weir_maximum(s, high(s, y), low(s, y));
  return weir_real_div(s, weir_add_v2(s, high(s, y), low(s, y)), weir_const_float(s, 2));
}

static weir_edge_t area(weir_scope_t* s, counts_t c, const options_t* o) {
  if (o->curve == WEIR_AUC_PR && o->sum == WEIR_AUC_INTERPOLATED) return interpolate(s, c);
  weir_edge_t recall = rate(s, c.tp, c.fn, true);
  const bool is_roc = o->curve == WEIR_AUC_ROC;
  weir_edge_t x = is_roc ? rate(s, c.fp, c.tn, false) : recall;
  weir_edge_t y = is_roc ? recall : rate(s, c.tp, c.fp, true);
  return weir_lib_sum(s, weir_mul(s, step(s, x), height(s, y, o->sum)));
}

// ---- counting ----

// Evenly from just below 0 to just above 1, as a column.
static weir_edge_t make_thresholds(weir_scope_t* s, int count) {
  float* values = weir_scope_alloc(s, (size_t)count, sizeof(*values));
  if (!values) return WEIR_LIB_NONE;
  for (int i = 1; i < count - 1; ++i) values[i] = (float)((double)i / (count - 1));
  values[0] = -1e-7f;
  values[count - 1] = (float)(1 + 1e-7);
  return weir_const_floats(s, WEIR_DIMS(count, 1), values);
}

static weir_edge_t check_range(weir_scope_t* s, weir_edge_t predictions) {
  weir_edge_t is_above = weir_greater_equal(s, predictions, weir_const_float(s, 0));
  weir_edge_t is_below = weir_less_equal(s, predictions, weir_const_float(s, 1));
  weir_edge_t each = weir_logical_and(s, is_above, is_below);
  weir_edge_t all = weir_all(s, each, weir_lib_axes(s, each, 0));
  weir_edge_t data[] = {weir_const_string(s, "predictions must be in [0, 1]"), predictions};
  weir_node_t* check = weir_assert(s, all, data, 2);
  return weir_identity(weir_scope_after(s, &check, 1), predictions);
}

typedef struct counter_t {
  weir_scope_t* scope;
  int size;
  weir_edge_t weights;  // [1, n], or none
} counter_t;

// Sums over the examples where both hold, for each threshold.
static weir_metric_sum_t count_both(const counter_t* c, const char* name, weir_edge_t labels,
                                    weir_edge_t predictions) {
  weir_edge_t both = weir_logical_and(c->scope, labels, predictions);
  weir_edge_t ones = weir_cast(c->scope, both, WEIR_DTYPE_FLOAT);
  if (c->weights.node) ones = weir_mul(c->scope, ones, c->weights);
  return weir_metric_sum(c->scope, name, c->size,
                         weir_sum(c->scope, ones, weir_lib_vector(c->scope, 1)));
}

static weir_metric_t count_all(const counter_t* c, weir_edge_t labels, weir_edge_t predictions,
                               const options_t* options) {
  weir_scope_t* s = c->scope;
  weir_edge_t is_positive = weir_greater(s, predictions, make_thresholds(s, c->size));
  weir_edge_t is_negative = weir_logical_not(s, is_positive);
  weir_edge_t unlabelled = weir_logical_not(s, labels);
  weir_metric_sum_t tp = count_both(c, "true_positives", labels, is_positive);
  weir_metric_sum_t fn = count_both(c, "false_negatives", labels, is_negative);
  weir_metric_sum_t tn = count_both(c, "true_negatives", unlabelled, is_negative);
  weir_metric_sum_t fp = count_both(c, "false_positives", unlabelled, is_positive);
  weir_metric_t metric = {0};
  metric.value = area(s, (counts_t){tp.value, fn.value, tn.value, fp.value}, options);
  metric.updated = area(s, (counts_t){tp.updated, fn.updated, tn.updated, fp.updated}, options);
  metric.update = metric.updated.node;
  weir_node_t* resets[] = {tp.reset, fn.reset, tn.reset, fp.reset};
  metric.reset = weir_group(s, "reset", resets, 4);
  return weir_scope_status(s) ? (weir_metric_t){0} : metric;
}

weir_metric_t weir_metric_auc_with(weir_scope_t* scope, weir_edge_t labels, weir_edge_t predictions,
                                   const weir_metric_auc_options_t* options) {
  options = options ? options : &(const weir_metric_auc_options_t){0};
  if (!weir_lib_ready(scope, "auc", labels, predictions)) return (weir_metric_t){0};
  const int count = options->threshold_count ? options->threshold_count : 200;
  if (count < 2) {
    weir_lib_fail(scope, "auc metric: threshold_count must be at least 2, got %d", count);
    return (weir_metric_t){0};
  }
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : "auc");
  counter_t counter = {.scope = s, .size = count};
  predictions = check_range(s, weir_lib_cast(s, predictions, WEIR_DTYPE_FLOAT));
  weir_edge_t row = weir_lib_vector(s, 1, -1);
  if (options->weights.node)
    counter.weights = weir_reshape(s, weir_metric_weights(s, options->weights, predictions), row);
  weir_edge_t is_labelled = weir_reshape(s, weir_lib_cast(s, labels, WEIR_DTYPE_BOOL), row);
  return count_all(&counter, is_labelled, weir_reshape(s, predictions, row), options);
}
