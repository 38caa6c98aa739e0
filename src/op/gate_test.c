// gate_test.c — The gate before variables: who passes, who waits, and what opens it.
#include "op/gate.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "testing/tensors.h"

enum { LONG_MS = 60000, SHORT_MS = 20 };

// What came of a call that may wait.
typedef struct outcome_t {
  weir_mutex_t mu;
  weir_cond_t changed;
  bool is_told;
  weir_code_t code;
} outcome_t;

typedef struct world_t {
  weir_gate_t* gate;
  weir_cancel_t* cancel;
  outcome_t outcomes[4];
} world_t;

static void tell(void* arg, weir_status_t* take_status) {
  outcome_t* outcome = arg;
  weir_mutex_lock(&outcome->mu);
  assert_false(outcome->is_told);
  outcome->is_told = true;
  outcome->code = weir_status_code(take_status);
  weir_cond_broadcast(&outcome->changed);
  weir_mutex_unlock(&outcome->mu);
  weir_status_destroy(take_status);
}

static weir_done_t to(world_t* w, int i) {
  return (weir_done_t){.fn = tell, .arg = &w->outcomes[i]};
}

static bool is_told(world_t* w, int i) {
  weir_mutex_lock(&w->outcomes[i].mu);
  const bool result = w->outcomes[i].is_told;
  weir_mutex_unlock(&w->outcomes[i].mu);
  return result;
}

static weir_code_t wait_for(world_t* w, int i) {
  outcome_t* outcome = &w->outcomes[i];
  weir_mutex_lock(&outcome->mu);
  while (!outcome->is_told) weir_cond_wait(&outcome->changed, &outcome->mu);
  weir_mutex_unlock(&outcome->mu);
  return outcome->code;
}

static world_t* open_world(int limit_ms) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_gate_create(limit_ms * INT64_C(1000000), &w->gate));
  check_ok(weir_cancel_create(NULL, &w->cancel));
  for (int i = 0; i < 4; ++i) {
    weir_mutex_init(&w->outcomes[i].mu);
    weir_cond_init(&w->outcomes[i].changed);
  }
  return w;
}

static void close_world(world_t* w) {
  weir_gate_destroy(w->gate);
  weir_cancel_destroy(w->cancel);
  for (int i = 0; i < 4; ++i) {
    weir_mutex_destroy(&w->outcomes[i].mu);
    weir_cond_destroy(&w->outcomes[i].changed);
  }
  free(w);
}

static void hold(world_t* w, int64_t step, int outcome) {
  weir_gate_hold(w->gate, step, w->cancel, to(w, outcome));
  assert_int_equal(wait_for(w, outcome), WEIR_OK);
}

static void check_listed(world_t* w, const int64_t* expected, size_t expected_count) {
  int64_t* steps = NULL;
  size_t count = 0;
  check_ok(weir_gate_list(w->gate, &steps, &count));
  assert_int_equal(count, expected_count);
  if (count) assert_memory_equal(steps, expected, count * sizeof(*steps));
  weir_free(steps);
}

// ---- the course of a snapshot ----

static void test_rounds(void** state) {
  (void)state;
  world_t* w = open_world(LONG_MS);
  const int64_t begun[] = {7, 8};
  assert_true(weir_gate_try_pass(w->gate, 7));
  assert_true(weir_gate_try_pass(w->gate, 7));  // once and for all
  hold(w, 100, 0);
  check_listed(w, begun, 1);
  assert_true(weir_gate_try_pass(w->gate, 7));
  assert_false(weir_gate_try_pass(w->gate, 8));
  weir_gate_pass(w->gate, 8, w->cancel, to(w, 1));
  weir_gate_await(w->gate, 100, begun, 2, w->cancel, to(w, 2));  // 8 has written elsewhere
  assert_int_equal(wait_for(w, 1), WEIR_OK);
  weir_gate_leave(w->gate, 7);
  assert_false(is_told(w, 2));
  weir_gate_leave(w->gate, 8);
  assert_int_equal(wait_for(w, 2), WEIR_OK);
  weir_gate_pass(w->gate, 9, w->cancel, to(w, 3));
  assert_false(is_told(w, 3));
  check_ok(weir_gate_open(w->gate, 100));
  assert_int_equal(wait_for(w, 3), WEIR_OK);
  check_listed(w, (const int64_t[]){9}, 1);
  close_world(w);
}

static void test_nobody_writes(void** state) {
  (void)state;
  world_t* w = open_world(LONG_MS);
  hold(w, 100, 0);
  check_listed(w, NULL, 0);
  weir_gate_await(w->gate, 100, NULL, 0, w->cancel, to(w, 1));
  assert_int_equal(wait_for(w, 1), WEIR_OK);
  assert_true(weir_gate_try_pass(w->gate, 100));  // its own writes
  check_ok(weir_gate_open(w->gate, 100));
  close_world(w);
}

// ---- what opens it ----

static void test_limit(void** state) {
  (void)state;
  world_t* w = open_world(SHORT_MS);
  assert_true(weir_gate_try_pass(w->gate, 7));
  hold(w, 100, 0);
  weir_gate_pass(w->gate, 8, w->cancel, to(w, 1));
  weir_gate_await(w->gate, 100, NULL, 0, w->cancel, to(w, 2));
  assert_int_equal(wait_for(w, 1), WEIR_OK);
  assert_int_equal(wait_for(w, 2), WEIR_DEADLINE_EXCEEDED);
  weir_status_t* status = weir_gate_open(w->gate, 100);
  assert_int_equal(weir_status_code(status), WEIR_DEADLINE_EXCEEDED);
  weir_status_destroy(status);
  weir_gate_await(w->gate, 100, NULL, 0, w->cancel, to(w, 3));
  assert_int_equal(wait_for(w, 3), WEIR_DEADLINE_EXCEEDED);
  close_world(w);
}

static void test_holder_ends(void** state) {
  (void)state;
  world_t* w = open_world(LONG_MS);
  hold(w, 100, 0);
  weir_gate_pass(w->gate, 8, w->cancel, to(w, 1));
  weir_gate_hold(w->gate, 200, w->cancel, to(w, 2));
  assert_false(is_told(w, 2));
  weir_gate_leave(w->gate, 100);
  assert_int_equal(wait_for(w, 1), WEIR_OK);  // before the next that holds it
  assert_int_equal(wait_for(w, 2), WEIR_OK);
  check_listed(w, (const int64_t[]){8}, 1);
  assert_false(weir_gate_try_pass(w->gate, 9));
  close_world(w);
}

static void test_connection_ends(void** state) {
  (void)state;
  world_t* w = open_world(LONG_MS);
  for (int64_t step = 1; step < 5; ++step) assert_true(weir_gate_try_pass(w->gate, step));
  weir_gate_tie(w->gate, 1, 11);
  weir_gate_tie(w->gate, 2, 12);
  weir_gate_tie(w->gate, 4, 11);
  weir_gate_tie(w->gate, 5, 11);  // never passed
  weir_gate_disconnect(w->gate, 11);
  check_listed(w, (const int64_t[]){2, 3}, 2);
  close_world(w);
}

static void test_cancelled(void** state) {
  (void)state;
  world_t* w = open_world(LONG_MS);
  assert_true(weir_gate_try_pass(w->gate, 7));
  hold(w, 100, 0);
  weir_gate_pass(w->gate, 8, w->cancel, to(w, 1));
  weir_gate_await(w->gate, 100, NULL, 0, w->cancel, to(w, 2));
  weir_cancel_start(w->cancel);
  assert_int_equal(wait_for(w, 1), WEIR_CANCELLED);
  assert_int_equal(wait_for(w, 2), WEIR_CANCELLED);
  weir_gate_hold(w->gate, 200, w->cancel, to(w, 3));
  assert_int_equal(wait_for(w, 3), WEIR_CANCELLED);
  weir_gate_leave(w->gate, 100);
  close_world(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rounds),          cmocka_unit_test(test_nobody_writes),
      cmocka_unit_test(test_limit),           cmocka_unit_test(test_holder_ends),
      cmocka_unit_test(test_connection_ends), cmocka_unit_test(test_cancelled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
