// sort_test.c — weir_sort_keys: order, stability, sizes that are split between threads.
#include "kernel/sparse/sort.h"

#include "base/alloc.h"
#include "testing/cmocka.h"

static void ok(weir_status_t* status) { assert_false(weir_status_report(status)); }

static void check_sorted(weir_pool_t* pool, int64_t count, uint64_t mask) {
  uint64_t* keys = weir_alloc_array((size_t)count, sizeof(*keys));
  uint64_t* sorted = weir_alloc_array((size_t)count, sizeof(*keys));
  int64_t* numbers = weir_alloc_array((size_t)count, sizeof(*numbers));
  uint64_t state = 88172645463325252u;
  for (int64_t i = 0; i < count; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    keys[i] = sorted[i] = state & mask;
    numbers[i] = i;
  }
  ok(weir_sort_keys(pool, sorted, numbers, count));
  for (int64_t i = 0; i < count; ++i) {
    assert_true(sorted[i] == keys[numbers[i]]);
    if (i == 0) continue;
    assert_true(sorted[i - 1] <= sorted[i]);
    if (sorted[i - 1] == sorted[i]) assert_true(numbers[i - 1] < numbers[i]);
  }
  weir_free(keys);
  weir_free(sorted);
  weir_free(numbers);
}

static void test_sorts(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  ok(weir_pool_create(3, &pool));
  const int64_t counts[] = {0, 1, 2, 100, 70000, 200003};
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    check_sorted(NULL, counts[i], UINT64_MAX);
    check_sorted(pool, counts[i], UINT64_MAX);
    check_sorted(pool, counts[i], 0xff00);
    check_sorted(pool, counts[i], 7);
  }
  weir_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sorts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
