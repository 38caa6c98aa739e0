// philox_test.c — Known answers of Philox 4x32-10, skipping, and seeding.

#include "base/philox.h"

#include "testing/cmocka.h"

static void expect_group(weir_philox_t philox, const uint32_t expected[4]) {
  uint32_t group[4];
  weir_philox_next(&philox, group);
  for (int i = 0; i < 4; ++i) assert_int_equal(group[i], expected[i]);
}

static void test_known_answers(void** state) {
  (void)state;
  weir_philox_t zero = {{0, 0, 0, 0}, {0, 0}};
  expect_group(zero, (const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  weir_philox_t ones = {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}};
  expect_group(ones, (const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  weir_philox_t pi = {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}};
  expect_group(pi, (const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void test_skip_is_next(void** state) {
  (void)state;
  weir_philox_t a = weir_philox_seed(87654321, 12345);
  weir_philox_t b = a;
  uint32_t group[4];
  for (int i = 0; i < 1000; ++i) weir_philox_next(&a, group);
  weir_philox_skip(&b, 1000);
  assert_memory_equal(&a, &b, sizeof(a));
}

static void test_skip_carries(void** state) {
  (void)state;
  weir_philox_t philox = {{~0u, ~0u, ~0u, 4}, {1, 2}};
  weir_philox_skip(&philox, 1);
  assert_memory_equal(philox.counter, ((const uint32_t[]){0, 0, 0, 5}), 16);
  weir_philox_skip(&philox, (uint64_t)3 << 32 | 9);
  assert_memory_equal(philox.counter, ((const uint32_t[]){9, 3, 0, 5}), 16);
  weir_philox_t end = {{~0u, ~0u, ~0u, ~0u}, {0, 0}};
  uint32_t group[4];
  weir_philox_next(&end, group);
  assert_memory_equal(end.counter, ((const uint32_t[]){0, 0, 0, 0}), 16);
}

static void test_seeds(void** state) {
  (void)state;
  weir_philox_t philox = weir_philox_from_seeds(0x100000002, -1);
  assert_memory_equal(philox.key, ((const uint32_t[]){2, 1}), 8);
  assert_memory_equal(philox.counter, ((const uint32_t[]){0, 0, ~0u, ~0u}), 16);
  philox = weir_philox_from_seeds(0, 7);
  assert_memory_equal(philox.key, ((const uint32_t[]){0, 0}), 8);
  assert_int_equal(philox.counter[2], 7);
  weir_philox_t a = weir_philox_from_seeds(0, 0);
  weir_philox_t b = weir_philox_from_seeds(0, 0);
  assert_memory_not_equal(&a, &b, sizeof(a));  // fails once in 2^128 runs
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers), cmocka_unit_test(test_skip_is_next),
      cmocka_unit_test(test_skip_carries), cmocka_unit_test(test_seeds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
