// collective_test.c — Collectives between the CPUs of one process: values, errors, timeouts, and
// steps at once.
#include <pthread.h>

#include "testing/bench.h"

enum { CPUS = 3 };

static weir_scope_t* on(bench_t* b, int i) {
  static const char* const names[] = {"/cpu:0", "/cpu:1", "/cpu:2"};
  return weir_scope_on(b->s, names[i]);
}

static weir_edge_t floats(weir_scope_t* s, int64_t count, const float* values) {
  return weir_const_floats(s, 1, &count, values);
}

static weir_session_t* open_session(bench_t* b) {
  weir_session_t* session = NULL;
  weir_session_options_t options = {.devices = "cpu:3"};
  check_built(b);
  check_ok(weir_session_create(b->graph, &options, &session));
  return session;
}

static weir_status_t* run_all(weir_session_t* session, const weir_edge_t* edges, int64_t timeout_ms,
                              weir_tensor_t** results) {
  weir_step_spec_t spec = {.fetches = edges, .fetch_count = CPUS};
  weir_run_options_t options = {.timeout_ms = timeout_ms};
  return weir_session_run_with(session, &spec, &options, results, NULL, NULL);
}

static void expect_all(weir_session_t* session, const weir_edge_t* edges, int64_t count,
                       const float* expected) {
  weir_tensor_t* results[CPUS] = {NULL};
  check_ok(run_all(session, edges, 0, results));
  for (int i = 0; i < CPUS; ++i) {
    check_floats_at(results[i], count, expected, 0, __FILE__, __LINE__);
    weir_tensor_release(results[i]);
  }
}

static weir_edge_t reduce(bench_t* b, int i, weir_edge_t x, int size, float timeout) {
  return weir_collective_reduce(on(b, i), x, size, 1, 1, "Add", "Div", WEIR_INTS(0),
                                .timeout_seconds = timeout);
}

static void test_means_and_broadcasts(void** state) {
  bench_t* b = *state;
  weir_edge_t means[CPUS], sent[CPUS], gathered[CPUS];
  for (int i = 0; i < CPUS; ++i) {
    weir_scope_t* s = on(b, i);
    weir_edge_t x = weir_const_float(s, (float)(3 * i));
    weir_edge_t rows = floats(s, 2, (const float[]){(float)i, 1});
    means[i] = reduce(b, i, x, CPUS, 0);
    gathered[i] = weir_collective_gather(s, rows, CPUS, 1, 2, WEIR_SHAPE(6));
    sent[i] = i == 1 ? weir_collective_bcast_send(s, rows, CPUS, 1, 3, WEIR_SHAPE(2))
                     : weir_collective_bcast_recv(s, WEIR_DTYPE_FLOAT, CPUS, 1, 3, WEIR_SHAPE(2));
  }
  weir_session_t* session = open_session(b);
  for (int step = 0; step < 20; ++step) {
    expect_all(session, means, 1, (const float[]){3});
    expect_all(session, gathered, 6, (const float[]){0, 1, 1, 1, 2, 1});
    expect_all(session, sent, 2, (const float[]){1, 1});
  }
  weir_session_destroy(session);
}

static void test_keys_that_are_values(void** state) {
  bench_t* b = *state;
  weir_edge_t sums[CPUS], parts[CPUS], rows[CPUS], called[CPUS];
  weir_edge_t size = weir_const_int(b->s, CPUS), key = weir_const_int(b->s, 5);
  weir_edge_t none = weir_const_ints(b->s, (const int[]){0}, 0);
  for (int i = 0; i < CPUS; ++i) {
    weir_scope_t* s = on(b, i);
    weir_edge_t x = floats(s, 3, (const float[]){(float)i, 10, 20});
    sums[i] =
        weir_collective_reduce_v2(s, x, size, key, weir_const_int(s, 1), NULL, 0, "Max", "Id");
    parts[i] = weir_collective_reduce_scatter_v2(s, x, size, key, weir_const_int(s, 2), NULL, 0,
                                                 "Add", "Id");
    rows[i] = weir_collective_all_to_all_v2(s, x, size, key, weir_const_int(s, 3), NULL, 0);
    weir_edge_t group = weir_collective_initialize_communicator(
        s, weir_const_int(s, 9), weir_const_int(s, CPUS - 1 - i), size);
    called[i] = weir_collective_all_to_all_v3(s, x, group, none);
  }
  weir_session_t* session = open_session(b);
  expect_all(session, sums, 3, (const float[]){2, 10, 20});
  const float of_part[] = {3, 30, 60};
  const float of_row[][CPUS] = {{0, 1, 2}, {10, 10, 10}, {20, 20, 20}};
  const float of_call[][CPUS] = {{20, 20, 20}, {10, 10, 10}, {2, 1, 0}};
  weir_tensor_t* results[CPUS] = {NULL};
  for (int k = 0; k < 3; ++k) {
    check_ok(run_all(session, k == 0 ? parts : k == 1 ? rows : called, 0, results));
    for (int i = 0; i < CPUS; ++i) {
      const float* expected = k == 0 ? &of_part[i] : k == 1 ? of_row[i] : of_call[i];
      check_floats_at(results[i], k == 0 ? 1 : CPUS, expected, 0, __FILE__, __LINE__);
      weir_tensor_release(results[i]);
    }
  }
  weir_session_destroy(session);
}

static void test_errors_and_timeouts(void** state) {
  bench_t* b = *state;
  weir_edge_t shapes[CPUS], late[CPUS], endless[CPUS];
  for (int i = 0; i < CPUS; ++i) {
    weir_scope_t* s = on(b, i);
    weir_edge_t x = weir_const_float(s, 1), wide = floats(s, 2, (const float[]){1, 2});
    shapes[i] = reduce(b, i, i == 2 ? wide : x, CPUS, 0);
    late[i] = weir_collective_reduce(s, x, CPUS + 1, 2, 1, "Add", "Id", WEIR_INTS(0),
                                     .timeout_seconds = 0.01f);
    endless[i] = weir_collective_reduce(s, x, CPUS + 1, 3, 1, "Add", "Id", WEIR_INTS(0));
  }
  weir_session_t* session = open_session(b);
  weir_tensor_t* results[CPUS] = {NULL};
  for (int step = 0; step < 3; ++step) {
    check_error(run_all(session, shapes, 0, results), WEIR_INVALID_ARGUMENT,
                "Shape mismatch in the collective instance 1");
    check_error(run_all(session, late, 0, results), WEIR_DEADLINE_EXCEEDED,
                "Collective has timed out waiting for other workers.");
    check_error(run_all(session, endless, 20, results), WEIR_DEADLINE_EXCEEDED, "");
  }
  weir_session_destroy(session);
}

typedef struct stepper_t {
  weir_session_t* session;
  const weir_edge_t* sums;
  weir_edge_t x;
  float value;
} stepper_t;

static void* run_steps(void* arg) {
  const stepper_t* stepper = arg;
  for (int i = 0; i < 100; ++i) {
    weir_tensor_t* results[CPUS] = {NULL};
    weir_tensor_t* fed = make_float(stepper->value);
    weir_step_spec_t spec = {.feeds = (weir_feed_t[]){{stepper->x, fed}},
                             .feed_count = 1,
                             .fetches = stepper->sums,
                             .fetch_count = CPUS};
    check_ok(weir_session_run(stepper->session, &spec, results));
    for (int k = 0; k < CPUS; ++k) {
      check_floats_at(results[k], 1, &stepper->value, 0, __FILE__, __LINE__);
      weir_tensor_release(results[k]);
    }
    weir_tensor_release(fed);
  }
  return NULL;
}

// Steps of several threads, all of the same keys: none meets members of another.
static void test_steps_at_once(void** state) {
  enum { THREADS = 4 };
  bench_t* b = *state;
  weir_edge_t x = weir_placeholder(b->s, WEIR_DTYPE_FLOAT, .shape = WEIR_SCALAR_SHAPE), sums[CPUS];
  pthread_t threads[THREADS];
  stepper_t steppers[THREADS];
  for (int i = 0; i < CPUS; ++i) sums[i] = reduce(b, i, x, CPUS, 60);
  weir_session_t* session = open_session(b);
  for (int i = 0; i < THREADS; ++i) {
    steppers[i] = (stepper_t){session, sums, x, (float)i};
    assert_int_equal(pthread_create(&threads[i], NULL, run_steps, &steppers[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  weir_session_destroy(session);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_means_and_broadcasts),
                                     TEST(test_keys_that_are_values),
                                     TEST(test_errors_and_timeouts), TEST(test_steps_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
