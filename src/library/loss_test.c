// loss_test.c — Losses and metrics: types, streaming state, errors. Values and gradients are
// compared with TensorFlow's in tests/layers_test.py.
#include "weir/loss.h"

#include "testing/bench.h"
#include "weir/metric.h"

// ---- losses ----

static void test_losses_are_scalars_of_their_type(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, DOUBLE, -1, 3), labels = FED(b, DOUBLE, -1, 3);
  weir_edge_t loss = weir_loss_softmax_cross_entropy(b->s, labels, x);
  assert_int_equal(weir_edge_type(loss), WEIR_DTYPE_DOUBLE);
  assert_int_equal(weir_edge_dims(loss, NULL, 0), 0);
  loss = weir_loss_mean_squared(b->s, labels, x);  // as TensorFlow: in float
  assert_int_equal(weir_edge_type(loss), WEIR_DTYPE_FLOAT);
  loss = weir_loss_absolute(b->s, labels, x, .reduction = WEIR_REDUCE_NONE);
  assert_int_equal(weir_edge_dims(loss, NULL, 0), 2);
}

static void test_errors_of_losses(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, FLOAT, 4, 3), y = FED(b, FLOAT, 4, 2), w = FED(b, FLOAT, 4);
  weir_edge_t classes = FED(b, INT32, 4, 2), number = weir_const_float(b->s, 1);
  const weir_edge_t none = {0};
  check_fails(b, weir_loss_mean_squared(b->s, y, x), "differ in shape");
  check_fails(b, weir_loss_huber(b->s, number, x), "differ in shape");
  check_fails(b, weir_loss_mean_squared(b->s, x, x, .weights = w), "can not be broadcast");
  check_fails(b, weir_loss_mean_squared(b->s, x, x, .weights = y), "can not be broadcast");
  check_fails(b, weir_loss_hinge(b->s, none, x), "without a node");
  check_fails(b, weir_loss_sparse_softmax_cross_entropy(b->s, classes, x), "one dimension less");
  check_fails(b, weir_softmax_cross_entropy(b->s, number, number), "scalar");
  check_fails(b, weir_loss_softmax_cross_entropy(b->s, y, x), "");
}

// ---- metrics ----

static float fetch(weir_session_t* session, weir_edge_t edge) {
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(edge)}, &result));
  float value = float_of(result);
  weir_tensor_release(result);
  return value;
}

static void test_metrics_stream(void** state) {
  bench_t* b = *state;
  weir_edge_t labels = weir_const_ints(b->s, (int[]){1, 0, 1, 1}, 4);
  weir_edge_t guesses = weir_const_ints(b->s, (int[]){1, 1, 1, 0}, 4);
  weir_metric_t accuracy = weir_metric_accuracy(b->s, labels, guesses);
  weir_metric_t recall = weir_metric_recall(b->s, labels, guesses);
  assert_string_equal(weir_node_name(weir_scope_variable_at(b->s, 0).handle.node),
                      "accuracy/total");
  assert_false(weir_scope_variable_at(b->s, 0).is_trainable);
  weir_session_t* session = NULL;
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_run_target(session, weir_initializer(b->s)));
  assert_float_equal(fetch(session, accuracy.value), 0, 0);
  check_ok(weir_session_run_target(session, accuracy.update));
  assert_float_equal(fetch(session, accuracy.value), 0.5, 0);
  assert_float_equal(fetch(session, recall.value), 0, 0);  // its own state
  assert_float_equal(fetch(session, recall.updated), 2.0 / 3, 1e-6);
  check_ok(weir_session_run_target(session, accuracy.reset));
  assert_float_equal(fetch(session, accuracy.value), 0, 0);
  assert_float_equal(fetch(session, recall.value), 2.0 / 3, 1e-6);
  weir_session_destroy(session);
}

static void test_errors_of_metrics(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, FLOAT, 4), y = FED(b, FLOAT, 3), w = FED(b, FLOAT, 4, 1);
  weir_edge_t scores = FED(b, FLOAT, 4, 5), classes = FED(b, INT32, 4);
  check_fails(b, weir_metric_accuracy(b->s, y, x).value, "differ in shape");
  check_fails(b, weir_metric_precision(b->s, y, x).value, "differ in shape");
  check_fails(b, weir_metric_mean(b->s, x, .weights = w).value, "do not fit");
  check_fails(b, weir_metric_mean(b->s, (weir_edge_t){0}).value, "without a node");
  check_fails(b, weir_metric_auc(b->s, x, x, .threshold_count = 1).value, "at least 2, got 1");
  check_fails(b, weir_metric_top_k_accuracy(b->s, classes, scores, 0).value, "positive, got 0");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_losses_are_scalars_of_their_type),
      TEST(test_errors_of_losses),
      TEST(test_metrics_stream),
      TEST(test_errors_of_metrics),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
