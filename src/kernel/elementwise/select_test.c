// select_test.c — Every size of element with every way to step, in place too, against a plain loop.
#include "kernel/elementwise/select.h"

#include <string.h>

#include "testing/cmocka.h"

enum { COUNT = 37, MAX_SIZE = 16 };  // vectors and a rest

typedef char values_t[COUNT * MAX_SIZE];

static void expect(const weir_select_run_t* run, size_t size, values_t out_want) {
  for (size_t i = 0; i < COUNT; ++i) {
    const char* t = (const char*)run->t + i * (size_t)run->t_step * size;
    const char* e = (const char*)run->e + i * (size_t)run->e_step * size;
    bool is_t = run->condition[i * (size_t)run->condition_step];
    memcpy(out_want + i * size, is_t ? t : e, size);
  }
}

static void check(size_t size, int steps) {
  bool condition[COUNT];
  _Alignas(MAX_SIZE) values_t t;
  _Alignas(MAX_SIZE) values_t e;
  _Alignas(MAX_SIZE) values_t y;
  values_t want;
  for (int i = 0; i < COUNT; ++i) condition[i] = i * 7 % 5 < 2;
  for (int i = 0; i < COUNT * MAX_SIZE; ++i) {
    t[i] = (char)(i % 127);
    e[i] = (char)-t[i];
  }
  weir_select_run_t run = {.count = COUNT,
                           .condition = condition,
                           .t = t,
                           .e = e,
                           .y = y,
                           .condition_step = steps & 1,
                           .t_step = steps >> 1 & 1,
                           .e_step = steps >> 2 & 1};
  expect(&run, size, want);
  weir_select_run(&run, size);
  assert_memory_equal(y, want, COUNT * size);
  run.y = run.t_step ? t : run.e_step ? e : y;
  weir_select_run(&run, size);
  assert_memory_equal(run.y, want, COUNT * size);
}

static void test_runs(void** state) {
  (void)state;
  const size_t sizes[] = {1, 2, 4, 8, 16};
  for (size_t i = 0; i < WEIR_COUNT_OF(sizes); ++i) {
    for (int steps = 0; steps < 8; ++steps) check(sizes[i], steps);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
