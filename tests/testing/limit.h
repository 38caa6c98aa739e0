// limit.h — A test that does not end is named and ends the program. Included by cmocka.h.
#ifndef WEIR_TESTING_LIMIT_H_
#define WEIR_TESTING_LIMIT_H_

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Seconds one test may take, many times what any does; more with sanitizers.
#ifndef WEIR_TEST_LIMIT
#define WEIR_TEST_LIMIT 60
#endif

static const struct CMUnitTest* limited_tests;  // of the group that runs
static size_t limited_next;                     // the one to begin

static inline void limit_write(const char* text) {  // what a signal handler may call
  if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(1);
}

static inline void limit_exceeded(int signal_number) {
  (void)signal_number;
  limit_write("\nDOES NOT END: ");
  limit_write(limited_next > 0 ? limited_tests[limited_next - 1].name : "the set-up of the group");
  limit_write(" (" __FILE__ " has the limit)\n");
  abort();
}

// Stands in for each test's set-up: cmocka runs the tests of a group in order.
static inline int limit_begin(void** state) {
  const struct CMUnitTest* test = &limited_tests[limited_next++];
  alarm(WEIR_TEST_LIMIT);
  return test->setup_func ? test->setup_func(state) : 0;
}

static inline int limit_run(const char* name, const struct CMUnitTest* tests, size_t count,
                            CMFixtureFunction setup, CMFixtureFunction teardown) {
  struct CMUnitTest* limited = malloc(count * sizeof(*limited));
  if (!limited) return 1;
  for (size_t i = 0; i < count; ++i) {
    limited[i] = tests[i];
    limited[i].setup_func = limit_begin;
  }
  limited_tests = tests;
  limited_next = 0;
  signal(SIGALRM, limit_exceeded);
  alarm(WEIR_TEST_LIMIT);
  int failures = _cmocka_run_group_tests(name, limited, count, setup, teardown);
  alarm(0);
  free(limited);
  return failures;
}

#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown) \
  limit_run(#tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

#endif  // WEIR_TESTING_LIMIT_H_
