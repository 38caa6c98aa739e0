// lru_test.c — What stays in a full table, and what goes.
#include "base/lru.h"

#include "testing/tensors.h"

typedef struct value_t {
  weir_lru_item_t item;
  char key[2];
} value_t;

static void* put(weir_lru_t* lru, value_t* value) {
  void* evicted = value;
  check_ok(weir_lru_put(lru, weir_view_of(value->key), value, &evicted));
  return evicted;
}

static void test_oldest_goes(void** state) {
  (void)state;
  value_t a = {.key = "a"}, b = {.key = "b"}, c = {.key = "c"}, d = {.key = "d"};
  weir_lru_t lru;
  weir_lru_init(&lru, 2);
  assert_null(weir_lru_find(&lru, weir_view_of("a")));
  assert_null(put(&lru, &a));
  assert_null(put(&lru, &b));
  assert_ptr_equal(put(&lru, &c), &a);
  assert_null(weir_lru_find(&lru, weir_view_of("a")));
  assert_ptr_equal(weir_lru_find(&lru, weir_view_of("b")), &b);  // a use: c is older now
  assert_ptr_equal(put(&lru, &d), &c);
  assert_ptr_equal(weir_lru_find(&lru, weir_view_of("b")), &b);
  assert_ptr_equal(put(&lru, &a), &d);  // what went may come again
  assert_int_equal(lru.items.count, 2);
  weir_lru_free(&lru);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_oldest_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
