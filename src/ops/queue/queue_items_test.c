// queue_items_test.c — In which order items come out, also those that were given back.
#include "ops/queue/queue_items.h"

#include "testing/cmocka.h"

static weir_queue_item_t item_of(int64_t number) {
  weir_queue_item_t item = {.parts = weir_alloc_array(1, sizeof(weir_tensor_t*))};
  assert_non_null(item.parts);
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &number, &item.parts[0]));
  return item;
}

static int64_t number_of(const weir_queue_item_t* item) {
  return weir_tensor_int_at(item->parts[0], 0);
}

// Puts in 0, 1 and so on downward for half of them, takes some out and gives them back, the last
// one first; then what comes out is what was in.
static void check_given_back(weir_queue_policy_t policy) {
  enum { COUNT = 20, TAKEN = 7 };
  weir_queue_items_t items;
  weir_queue_item_t taken[TAKEN];
  bool seen[COUNT] = {false};
  weir_queue_items_init(&items, policy, 1, 2);
  for (int i = 0; i < COUNT; ++i)
    assert_true(weir_queue_items_push(&items, item_of(i % 2 ? i : COUNT - 2 - i)));
  for (int i = 0; i < TAKEN; ++i) taken[i] = weir_queue_items_pop(&items);
  for (int i = TAKEN; i-- > 0;) weir_queue_items_push_front(&items, taken[i]);
  assert_int_equal(items.size, COUNT);
  for (int i = 0; i < COUNT; ++i) {
    weir_queue_item_t item = weir_queue_items_pop(&items);
    int64_t number = number_of(&item);
    if (policy == WEIR_QUEUE_PRIORITY) assert_int_equal(number, i);
    if (policy == WEIR_QUEUE_FIFO) assert_int_equal(number, i % 2 ? i : COUNT - 2 - i);
    assert_in_range(number, 0, COUNT - 1);
    assert_false(seen[number]);
    seen[number] = true;
    weir_queue_item_free(&item, 1);
  }
  weir_queue_items_free(&items, 1);
}

static void test_given_back(void** state) {
  (void)state;
  check_given_back(WEIR_QUEUE_FIFO);
  check_given_back(WEIR_QUEUE_PADDING);
  check_given_back(WEIR_QUEUE_SHUFFLE);
  check_given_back(WEIR_QUEUE_PRIORITY);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_given_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
