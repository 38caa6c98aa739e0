// lbfgs.c — L-BFGS on a graph: nodes by which all variables are one vector, and its gradient, too.
#include "weir/lbfgs.h"

#include <stdlib.h>
#include <string.h>

#include "lbfgs_method.h"
#include "nodes.h"
#include "weir/argument.h"

struct weir_lbfgs_t {
  lbfgs_limits_t limits;
  weir_edge_t now;              // the values of all variables, double[n]
  weir_edge_t next;             // fed: what they become
  weir_node_t* set;             // makes it so
  weir_edge_t value, gradient;  // of the loss, double
};

// ---- nodes ----

static weir_edge_t flat(weir_scope_t* s, weir_edge_t x) {
  return weir_lib_cast(s, weir_reshape(s, x, weir_lib_vector(s, -1)), WEIR_DTYPE_DOUBLE);
}

// The gradient as a tensor of the variable's shape: rows that do not occur are zero.
static weir_edge_t dense(weir_scope_t* s, const weir_variable_gradient_t* g) {
  if (!g->gradient.indices.node) return g->gradient.values;
  weir_edge_t rows = weir_lib_element(s, weir_shape(s, g->variable.value), 0);
  return weir_unsorted_segment_sum(s, g->gradient.values, g->gradient.indices, rows);
}

// How many elements a variable has; an error sticks when that is not known.
static int64_t count_of(weir_scope_t* s, const weir_variable_info_t* variable) {
  int rank = weir_lib_rank(variable->value);
  int64_t count = rank < 0 ? -1 : 1;
  for (int i = 0; i < rank && count >= 0; ++i) {
    int64_t dim = weir_lib_dim(variable->value, i);
    count = dim < 0 ? -1 : count * dim;
  }
  if (count < 0)
    weir_lib_fail(s, "L-BFGS: the shape of variable '%s' is not known",
                  weir_node_name(variable->handle.node));
  return count;
}

// A node that gives |variable| its part of |next|, from |begin| on.
static weir_node_t* set_one(weir_scope_t* s, weir_edge_t next, const weir_variable_info_t* variable,
                            int64_t begin, int64_t count) {
  weir_edge_t part = weir_slice(s, next, weir_lib_vector(s, begin), weir_lib_vector(s, count));
  weir_edge_t shaped = weir_reshape(s, part, weir_shape(s, variable->value));
  return weir_assign_variable_op(s, variable->handle,
                                 weir_lib_cast(s, shaped, weir_edge_type(variable->value)));
}

static void add_nodes(weir_lbfgs_t* lbfgs, weir_scope_t* s,
                      const weir_variable_gradient_t* gradients, int count) {
  weir_edge_t* values = weir_scope_alloc(s, (size_t)count, sizeof(*values));
  weir_edge_t* slopes = weir_scope_alloc(s, (size_t)count, sizeof(*slopes));
  weir_node_t** sets = weir_scope_alloc(s, (size_t)count, sizeof(*sets));
  int used = 0;
  int64_t size = 0;
  lbfgs->next = weir_placeholder(s, WEIR_DTYPE_DOUBLE);
  for (int i = 0; i < count && !weir_scope_status(s); ++i) {
    if (!gradients[i].gradient.values.node) continue;  // the loss does not depend on it
    int64_t elements = count_of(s, &gradients[i].variable);
    values[used] = flat(s, gradients[i].variable.value);
    slopes[used] = flat(s, dense(s, &gradients[i]));
    sets[used++] = set_one(s, lbfgs->next, &gradients[i].variable, size, elements);
    size += elements;
  }
  if (used == 0) weir_lib_fail(s, "L-BFGS: the loss depends on none of the variables");
  if (weir_scope_status(s)) return;
  lbfgs->limits.size = (size_t)size;
  lbfgs->now = used > 1 ? weir_concat_v2(s, values, used, weir_const_int(s, 0)) : values[0];
  lbfgs->gradient = used > 1 ? weir_concat_v2(s, slopes, used, weir_const_int(s, 0)) : slopes[0];
  lbfgs->set = weir_group(s, "set", sets, used);
}

static lbfgs_limits_t limits_of(const weir_lbfgs_options_t* options) {
  lbfgs_limits_t limits = {.memory = options->memory,
                           .max_iterations = options->max_iterations,
                           .max_evaluations = options->max_evaluations,
                           .gradient_tolerance = options->gradient_tolerance,
                           .value_tolerance = options->loss_tolerance};
  if (limits.memory <= 0) limits.memory = 10;
  if (limits.max_iterations <= 0) limits.max_iterations = 200;
  if (limits.max_evaluations <= 0)
    limits.max_evaluations =
        limits.max_iterations < INT32_MAX / 10 ? 10 * limits.max_iterations : INT32_MAX;
  if (!(limits.gradient_tolerance > 0)) limits.gradient_tolerance = 1e-5;
  if (!(limits.value_tolerance > 0)) limits.value_tolerance = 1e-10;
  return limits;
}

weir_lbfgs_t* weir_lbfgs_create_with(weir_scope_t* scope, weir_edge_t loss,
                                     const weir_lbfgs_options_t* options) {
  if (!WEIR_HAS_ARG(scope, options)) return NULL;
  if (!weir_lib_ready(scope, "weir_lbfgs_create", loss)) return NULL;
  weir_variable_gradient_t* gradients = NULL;
  weir_lbfgs_t* lbfgs = calloc(1, sizeof(*lbfgs));
  if (!lbfgs) weir_scope_fail(scope, WEIR_STATUS(RESOURCE_EXHAUSTED, "out of memory"));
  if (!lbfgs) return NULL;
  weir_scope_t* s = weir_scope_in(scope, "lbfgs");
  int count = weir_compute_gradients(s, loss, &gradients, .variables = options->variables,
                                     .variable_count = options->variable_count);
  lbfgs->limits = limits_of(options);
  lbfgs->value = weir_lib_cast(s, loss, WEIR_DTYPE_DOUBLE);
  if (!weir_scope_status(s)) add_nodes(lbfgs, s, gradients, count);
  if (!weir_scope_status(s)) return lbfgs;
  free(lbfgs);
  return NULL;
}

void weir_lbfgs_destroy(weir_lbfgs_t* lbfgs) { free(lbfgs); }

// ---- running ----

typedef struct descent_t {
  const weir_lbfgs_t* lbfgs;
  weir_session_t* session;
  const weir_feed_t* feeds;
  int feed_count;
} descent_t;

static weir_status_t* set_variables(const descent_t* d, const double* x) {
  weir_tensor_t* next = NULL;
  int64_t size = (int64_t)d->lbfgs->limits.size;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_DOUBLE, 1, &size, x, &next);
  weir_step_spec_t spec = {WEIR_FEEDS({d->lbfgs->next, next}), WEIR_TARGETS(d->lbfgs->set)};
  if (!status) status = weir_session_run(d->session, &spec, NULL);
  weir_tensor_release(next);
  return status;
}

static weir_status_t* check_size(const weir_tensor_t* tensor, int64_t size, const char* what) {
  if (weir_tensor_count(tensor) == size) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "L-BFGS: %s has %lld elements, not %lld", what,
                     (long long)weir_tensor_count(tensor), (long long)size);
}

// An lbfgs_fn_t.
static weir_status_t* evaluate(void* arg, const double* x, double* out_value,
                               double* out_gradient) {
  const descent_t* d = arg;
  size_t size = d->lbfgs->limits.size;
  weir_tensor_t* results[2] = {NULL, NULL};
  weir_status_t* status = set_variables(d, x);
  weir_step_spec_t spec = {.feeds = d->feeds,
                           .feed_count = d->feed_count,
                           WEIR_FETCHES(d->lbfgs->value, d->lbfgs->gradient)};
  if (!status) status = weir_session_run(d->session, &spec, results);
  if (!status) status = check_size(results[0], 1, "the loss");
  if (!status) status = check_size(results[1], (int64_t)size, "the gradient");
  if (!status) *out_value = *(const double*)weir_tensor_data(results[0]);
  if (!status) memcpy(out_gradient, weir_tensor_data(results[1]), size * sizeof(double));
  for (int i = 0; i < 2; ++i) weir_tensor_release(results[i]);
  return status;
}

static weir_status_t* read_variables(const descent_t* d, double* x) {
  weir_tensor_t* now = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(d->lbfgs->now)};
  size_t size = d->lbfgs->limits.size;
  weir_status_t* status = weir_session_run(d->session, &spec, &now);
  if (!status) status = check_size(now, (int64_t)size, "what is to be minimised");
  if (!status) memcpy(x, weir_tensor_data(now), size * sizeof(double));
  weir_tensor_release(now);
  return status;
}

weir_status_t* weir_lbfgs_minimize(weir_lbfgs_t* lbfgs, weir_session_t* session,
                                   const weir_feed_t* feeds, int feed_count,
                                   weir_lbfgs_result_t* out_result) {
  WEIR_REQUIRE_ARG(lbfgs);
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_COUNT(feed_count);
  if (feed_count > 0) WEIR_REQUIRE_ARG(feeds);
  descent_t descent = {lbfgs, session, feeds, feed_count};
  weir_lbfgs_result_t result = {.end = WEIR_LBFGS_STUCK};
  double* x = calloc(lbfgs->limits.size + 1, sizeof(*x));
  weir_status_t* status = x ? NULL : WEIR_STATUS(RESOURCE_EXHAUSTED, "out of memory");
  if (!status) status = read_variables(&descent, x);
  if (!status) {
    status = weir_library_lbfgs(evaluate, &descent, &lbfgs->limits, x, &result);
    weir_status_t* last = set_variables(&descent, x);  // the last evaluation was elsewhere
    if (status) weir_status_destroy(last);
    else status = last;
  }
  free(x);
  if (!status && out_result) *out_result = result;
  return status;
}
