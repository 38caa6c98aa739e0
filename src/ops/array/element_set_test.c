// element_set_test.c — Sets of rows: where a row is depends on the key of the process.
#include "ops/array/element_set.h"

#include "testing/cmocka.h"

static uint64_t hash_of(weir_dtype_t dtype, const void* row) {
  const element_set_t set = {.dtype = dtype, .size = weir_dtype_size(dtype), .row = 1};
  uint64_t hash = 0;
  assert_true(element_row_hash(&set, row, &hash));
  return hash;
}

// Nobody outside can choose rows that collide.
static void test_hash_is_keyed(void** state) {
  (void)state;
  const uint64_t own = weir_hash_key[0];
  const int64_t number = 7;
  weir_string_t text;
  weir_string_init(&text);
  assert_null(weir_string_set(&text, "seven", 5));
  const uint64_t numbers = hash_of(WEIR_DTYPE_INT64, &number);
  const uint64_t texts = hash_of(WEIR_DTYPE_STRING, &text);
  weir_hash_key[0] = ~own;
  const uint64_t other_numbers = hash_of(WEIR_DTYPE_INT64, &number);
  const uint64_t other_texts = hash_of(WEIR_DTYPE_STRING, &text);
  weir_hash_key[0] = own;
  assert_true(other_numbers != numbers);
  assert_true(other_texts != texts);
  weir_string_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_hash_is_keyed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
