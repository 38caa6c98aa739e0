// lbfgs_test.c — L-BFGS on functions whose minima are known, from graphs and without.
#include "weir/lbfgs.h"

#include <math.h>

#include "testing/tensors.h"
#include "weir/weir.h"

typedef struct world_t {
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;
  weir_lbfgs_t* lbfgs;
} world_t;

static int setup(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_graph_create(&w->graph));
  w->scope = weir_scope_create(w->graph);
  *state = w;
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  weir_lbfgs_destroy(w->lbfgs);
  weir_session_destroy(w->session);
  weir_status_destroy(weir_scope_finish(w->scope));
  weir_graph_release(w->graph);
  free(w);
  return 0;
}

static void open_session(world_t* w) {
  weir_node_t* init = weir_initializer(w->scope);
  check_ok(weir_status_copy(weir_scope_status(w->scope)));
  check_ok(weir_session_create(w->graph, NULL, &w->session));
  check_ok(weir_session_run_target(w->session, init));
}

static weir_lbfgs_result_t minimize(world_t* w) {
  weir_lbfgs_result_t result;
  check_ok(weir_lbfgs_minimize(w->lbfgs, w->session, NULL, 0, &result));
  return result;
}

static weir_edge_t number(weir_scope_t* s, weir_dtype_t dtype, float value) {
  weir_edge_t edge = weir_const_float(s, value);
  return dtype == WEIR_DTYPE_FLOAT ? edge : weir_cast(s, edge, dtype);
}

static weir_edge_t vector(weir_scope_t* s, weir_dtype_t dtype, const float* values, int count) {
  weir_edge_t edge = weir_const_floats(s, 1, (const int64_t[]){count}, values);
  return dtype == WEIR_DTYPE_FLOAT ? edge : weir_cast(s, edge, dtype);
}

// Elements [begin, begin + count).
static weir_edge_t part(weir_scope_t* s, weir_edge_t x, int begin, int count) {
  return weir_slice(s, x, weir_const_ints(s, &begin, 1), weir_const_ints(s, &count, 1));
}

static weir_edge_t sum(weir_scope_t* s, weir_edge_t x) {
  return weir_sum(s, x, weir_const_ints(s, (const int[]){0}, 1));
}

// Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])², whose minimum is 0 at ones, at the end of a bent valley.
static weir_edge_t rosenbrock(weir_scope_t* s, weir_edge_t x, int count) {
  weir_dtype_t dtype = weir_edge_type(x);
  weir_edge_t first = part(s, x, 0, count - 1), second = part(s, x, 1, count - 1);
  weir_edge_t bend = weir_square(s, weir_sub(s, second, weir_square(s, first)));
  weir_edge_t slope = weir_square(s, weir_sub(s, number(s, dtype, 1), first));
  return sum(s, weir_add_v2(s, weir_mul(s, number(s, dtype, 100), bend), slope));
}

static void check_ones(world_t* w, const char* name, double tolerance) {
  weir_tensor_t* x = NULL;
  check_ok(weir_session_read_variable(w->session, name, &x));
  for (int64_t i = 0; i < weir_tensor_count(x); ++i) {
    const void* data = weir_tensor_data(x);
    bool is_float = weir_tensor_dtype(x) == WEIR_DTYPE_FLOAT;
    double value = is_float ? (double)((const float*)data)[i] : ((const double*)data)[i];
    if (fabs(value - 1) > tolerance) fail_msg("%s[%d] is %.9g", name, (int)i, value);
  }
  weir_tensor_release(x);
}

static void test_rosenbrock(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = weir_variable(s, "x", vector(s, WEIR_DTYPE_DOUBLE, (const float[]){-1.2f, 1}, 2));
  w->lbfgs = weir_lbfgs_create(s, rosenbrock(s, x, 2), .gradient_tolerance = 1e-9,
                               .loss_tolerance = 1e-30);
  open_session(w);
  weir_lbfgs_result_t result = minimize(w);
  assert_int_equal(result.end, WEIR_LBFGS_GRADIENT);
  assert_true(result.loss < 1e-18 && result.max_gradient <= 1e-9);
  assert_true(result.iterations < 60 && result.evaluations < 100);
  check_ones(w, "x", 1e-8);
  result = minimize(w);  // it is there
  assert_int_equal(result.end, WEIR_LBFGS_GRADIENT);
  assert_int_equal(result.iterations, 0);
  assert_int_equal(result.evaluations, 1);
}

// In many dimensions, remembering little; from a place that gradient descent does not leave.
static void test_remembers_little(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  float start[20];
  for (int i = 0; i < 20; ++i) start[i] = i % 2 ? 1 : -1.2f;
  weir_edge_t x = weir_variable(s, "x", vector(s, WEIR_DTYPE_DOUBLE, start, 20));
  w->lbfgs = weir_lbfgs_create(s, rosenbrock(s, x, 20), .memory = 3, .max_iterations = 1000,
                               .loss_tolerance = 1e-30);
  open_session(w);
  weir_lbfgs_result_t result = minimize(w);
  assert_int_equal(result.end, WEIR_LBFGS_GRADIENT);
  assert_true(result.loss < 1e-9 || fabs(result.loss - 3.98) < 0.02);  // it has another minimum
}

// As precise as floats allow, whatever is said to be the end.
static void test_floats(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = weir_variable(s, "x", vector(s, WEIR_DTYPE_FLOAT, (const float[]){-1.2f, 1}, 2));
  w->lbfgs = weir_lbfgs_create(s, rosenbrock(s, x, 2));
  open_session(w);
  weir_lbfgs_result_t result = minimize(w);
  assert_true(result.loss < 1e-6);
  check_ones(w, "x", 1e-2);
}

// Variables of several shapes and types; one that is looked up, whose gradient has few rows; one
// that the loss does not depend on.
static void test_variables(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t a =
      weir_variable(s, "a", weir_const_floats(s, WEIR_DIMS(2, 2), (const float[]){9, 8, 7, 6}));
  weir_edge_t b = weir_variable(s, "b", number(s, WEIR_DTYPE_DOUBLE, -3));
  weir_edge_t table =
      weir_variable(s, "table", weir_const_floats(s, WEIR_DIMS(3, 1), (const float[]){5, 1, 5}));
  weir_edge_t other = weir_variable(s, "other", weir_const_float(s, 4));
  weir_edge_t one = weir_const_float(s, 1);
  weir_edge_t rows = weir_resource_gather(
      s, weir_variable_handle(table), weir_const_ints(s, (const int[]){0, 2}, 2), WEIR_DTYPE_FLOAT);
  weir_edge_t flat = weir_reshape(s, a, weir_const_ints(s, (const int[]){-1}, 1));
  weir_edge_t from_b = weir_square(s, weir_sub(s, weir_cast(s, b, WEIR_DTYPE_FLOAT), one));
  weir_edge_t from_rows = sum(s, sum(s, weir_square(s, weir_sub(s, rows, one))));
  weir_edge_t loss = weir_add_v2(s, sum(s, weir_square(s, weir_sub(s, flat, one))),
                                 weir_add_v2(s, from_b, from_rows));
  w->lbfgs = weir_lbfgs_create(s, loss);
  open_session(w);
  assert_true(minimize(w).loss < 1e-9);
  check_ones(w, "a", 1e-4);
  check_ones(w, "b", 1e-4);
  check_ones(w, "table", 1e-4);
  float value = 0;
  check_ok(weir_session_fetch_float(w->session, other, &value));
  assert_true(value == 4);
}

// (x - fed)² + c, from as far as asked.
static weir_edge_t parabola(world_t* w, weir_edge_t* out_fed) {
  weir_scope_t* s = w->scope;
  *out_fed = weir_placeholder(s, WEIR_DTYPE_FLOAT);
  weir_edge_t x = weir_variable(s, "x", weir_const_float(s, 1000));
  return weir_square(s, weir_sub(s, x, *out_fed));
}

static void test_feeds(void** state) {
  world_t* w = *state;
  weir_edge_t fed;
  weir_lbfgs_result_t result;
  weir_tensor_t* one = NULL;
  w->lbfgs = weir_lbfgs_create(w->scope, parabola(w, &fed));
  open_session(w);
  check_error(weir_lbfgs_minimize(w->lbfgs, w->session, NULL, 0, &result), WEIR_INVALID_ARGUMENT,
              "Placeholder");
  check_ok(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, &(float){1}, &one));
  const weir_feed_t feed = {fed, one};
  check_ok(weir_lbfgs_minimize(w->lbfgs, w->session, &feed, 1, &result));
  weir_tensor_release(one);
  assert_int_equal(result.end, WEIR_LBFGS_GRADIENT);
  check_ones(w, "x", 1e-4);
}

// log(x) has no minimum: it goes towards 0, and not beyond, where it is no number.
static void test_stays_where_numbers_are(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = weir_variable(s, "x", weir_const_float(s, 2));
  w->lbfgs = weir_lbfgs_create(s, weir_log(s, x), .max_iterations = 5);
  open_session(w);
  weir_lbfgs_result_t result = minimize(w);
  float value = 0;
  check_ok(weir_session_fetch_float(w->session, x, &value));
  assert_true(value > 0 && value < 2 && isfinite(result.loss));
  assert_float_equal(result.loss, logf(value), 1e-4);
}

static void test_limits(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = weir_variable(s, "x", vector(s, WEIR_DTYPE_DOUBLE, (const float[]){-1.2f, 1}, 2));
  weir_edge_t loss = rosenbrock(s, x, 2);
  weir_lbfgs_t* few = weir_lbfgs_create(s, loss, .max_evaluations = 4);
  w->lbfgs = weir_lbfgs_create(s, loss, .max_iterations = 3);
  open_session(w);
  weir_lbfgs_result_t result = minimize(w);
  assert_int_equal(result.end, WEIR_LBFGS_ITERATIONS);
  assert_int_equal(result.iterations, 3);
  double before = result.loss;
  check_ok(weir_lbfgs_minimize(few, w->session, NULL, 0, &result));
  assert_int_equal(result.end, WEIR_LBFGS_EVALUATIONS);
  assert_true(result.evaluations >= 4 && result.evaluations <= 5 && result.loss <= before);
  weir_lbfgs_destroy(few);
}

static void test_refused(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = weir_variable(s, "x", weir_const_float(s, -1));
  w->lbfgs = weir_lbfgs_create(s, weir_log(s, x));
  open_session(w);
  check_error(weir_lbfgs_minimize(w->lbfgs, w->session, NULL, 0, NULL), WEIR_INVALID_ARGUMENT,
              "no finite numbers");
  assert_null(weir_lbfgs_create(s, weir_const_float(s, 1)));
  check_error(weir_status_copy(weir_scope_status(s)), WEIR_INVALID_ARGUMENT, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_rosenbrock, setup, teardown),
      cmocka_unit_test_setup_teardown(test_remembers_little, setup, teardown),
      cmocka_unit_test_setup_teardown(test_floats, setup, teardown),
      cmocka_unit_test_setup_teardown(test_variables, setup, teardown),
      cmocka_unit_test_setup_teardown(test_feeds, setup, teardown),
      cmocka_unit_test_setup_teardown(test_stays_where_numbers_are, setup, teardown),
      cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refused, setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
