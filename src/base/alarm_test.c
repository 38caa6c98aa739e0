// alarm_test.c — Alarms: calls that come, in order, and calls that do not.

#include "base/alarm.h"

#include "base/outcome.h"
#include "testing/cmocka.h"

typedef struct bell_t {
  weir_alarm_t alarm;
  weir_outcome_t outcome;
  int64_t rang_ns;
} bell_t;

static void ring(weir_alarm_t* alarm) {
  bell_t* bell = (bell_t*)alarm;
  bell->rang_ns = weir_clock_ns();
  weir_outcome_set(&bell->outcome, NULL);
}

static void make(bell_t* bell) {
  *bell = (bell_t){.alarm = {.fire = ring}};
  weir_outcome_init(&bell->outcome);
}

static bool set(bell_t* bell, int64_t deadline_ns) {
  bool is_new = false;
  assert_true(weir_alarm_set(&bell->alarm, deadline_ns, &is_new));
  return is_new;
}

static void test_rings_in_time(void** state) {
  bell_t early, late;
  const int64_t now = weir_clock_ns();
  (void)state;
  make(&early);
  make(&late);
  assert_true(set(&late, now + (int64_t)3600 * 1000000000));
  assert_true(set(&early, now + 2000000));
  assert_null(weir_outcome_wait(&early.outcome));
  assert_true(early.rang_ns >= now + 2000000);
  assert_false(weir_alarm_clear(&early.alarm));
  assert_false(set(&late, now));  // moved
  assert_null(weir_outcome_wait(&late.outcome));
}

static void test_cleared_ones_stay_silent(void** state) {
  bell_t silent, loud;
  (void)state;
  make(&silent);
  make(&loud);
  assert_true(set(&silent, weir_clock_ns() + (int64_t)3600 * 1000000000));
  assert_true(weir_alarm_clear(&silent.alarm));
  assert_false(weir_alarm_clear(&silent.alarm));
  assert_true(set(&loud, 0));
  assert_null(weir_outcome_wait(&loud.outcome));
  assert_true(set(&silent, 0));  // again
  assert_null(weir_outcome_wait(&silent.outcome));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rings_in_time),
                                     cmocka_unit_test(test_cleared_ones_stay_silent)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
