// example_test.c — Example messages: values packed or not, and messages that are cut or damaged.
#include "file/example.h"

#include "testing/cmocka.h"

typedef struct seen_t {
  int count;
  weir_feature_t last;
} seen_t;

static void see(void* arg, weir_view_t name, const weir_feature_t* feature) {
  seen_t* seen = arg;
  (void)name;
  ++seen->count;
  seen->last = *feature;
}

// features { feature { key: "a" value { int64_list { value: 5 value: 6 } } } }
static const char packed[] =
    "\x0a\x0d\x0a\x0b\x0a\x01"
    "a\x12\x06\x1a\x04\x0a\x02\x05\x06";
static const char unpacked[] =
    "\x0a\x0d\x0a\x0b\x0a\x01"
    "a\x12\x06\x1a\x04\x08\x05\x08\x06";

static void check_values(weir_view_t message) {
  seen_t seen = {0};
  int64_t values[2] = {0, 0};
  assert_null(weir_example_parse(message, see, &seen));
  assert_int_equal(seen.count, 1);
  assert_int_equal(seen.last.dtype, WEIR_DTYPE_INT64);
  assert_int_equal(seen.last.count, 2);
  weir_feature_read(&seen.last, values);
  assert_int_equal(values[0], 5);
  assert_int_equal(values[1], 6);
}

static void test_values(void** state) {
  (void)state;
  check_values(weir_view(packed, sizeof(packed) - 1));
  check_values(weir_view(unpacked, sizeof(unpacked) - 1));
}

// Fields of later versions stand beside those that are known, at every level and of every type.
static void test_unknown_fields(void** state) {
  (void)state;
  static const char known[] =
      "\x18\x07\x0a!\x18\x07\x12\x01z\x0a\x1a\x18\x07\x22\x01z\x0a\x01"
      "a\x12\x10\x20\x07*\x01z\x1a\x09\x10\x07\x0a\x02\x05\x06\x1a\x01z\x22\x01z";
  check_values(weir_view(known, sizeof(known) - 1));
}

static void test_damaged(void** state) {
  (void)state;
  for (size_t size = 1; size < sizeof(packed) - 1; ++size) {
    seen_t seen = {0};
    weir_status_t* status = weir_example_parse(weir_view(packed, size), see, &seen);
    assert_non_null(status);
    weir_status_destroy(status);
  }
  for (size_t at = 0; at < sizeof(packed) - 1; ++at) {
    char damaged[sizeof(packed)];
    seen_t seen = {0};
    int64_t values[64];
    memcpy(damaged, packed, sizeof(packed));
    damaged[at] = (char)(damaged[at] ^ 0x5b);
    weir_status_destroy(weir_example_parse(weir_view(damaged, sizeof(packed) - 1), see, &seen));
    if (seen.count && seen.last.count <= 64 && seen.last.dtype == WEIR_DTYPE_INT64)
      weir_feature_read(&seen.last, values);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_unknown_fields),
                                     cmocka_unit_test(test_damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
