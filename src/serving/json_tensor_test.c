// json_tensor_test.c — Numbers to and from JSON, tensors to and from JSON, and what is refused.
#include "serving/json_tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

static weir_status_t* read_tensor(const char* text, weir_dtype_t dtype, weir_tensor_t** out) {
  weir_arena_t arena = {0};
  weir_scan_t scan = weir_scan(weir_view_of(text), &arena);
  weir_tensor_maker_t maker;
  weir_tensor_maker_init(&maker, dtype, "x");
  weir_status_t* status = weir_tensor_maker_read(&maker, &scan, 0);
  if (!status) status = weir_scan_end(&scan);
  if (!status) status = weir_tensor_maker_finish(&maker, -1, NULL, out);
  weir_tensor_maker_free(&maker);
  weir_arena_free(&arena);
  return status;
}

// Reads |text| and expects it, written, to be |written|.
static void expect(const char* text, weir_dtype_t dtype, const char* written) {
  weir_tensor_t* tensor = NULL;
  weir_strbuf_t out = {0};
  assert_null(read_tensor(text, dtype, &tensor));
  assert_null(weir_json_put_tensor(tensor, false, &out));
  assert_string_equal(out.data, written);
  weir_strbuf_free(&out);
  weir_tensor_release(tensor);
}

static void expect_refused(const char* text, weir_dtype_t dtype, const char* words) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = read_tensor(text, dtype, &tensor);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  if (!strstr(weir_status_message(status), words)) fail_msg("%s", weir_status_message(status));
  weir_status_destroy(status);
}

static void test_tensors(void** state) {
  (void)state;
  expect("[[1, 2.5], [-3e1, 0.1]]", WEIR_DTYPE_FLOAT, "[[1.0,2.5],[-30.0,0.1]]");
  expect(" 7 ", WEIR_DTYPE_INT32, "7");
  expect("[]", WEIR_DTYPE_FLOAT, "[]");
  expect("[NaN,Infinity,-Infinity,-Inf]", WEIR_DTYPE_DOUBLE, "[NaN,Infinity,-Infinity,-Infinity]");
  expect("[18446744073709551615,0]", WEIR_DTYPE_UINT64, "[18446744073709551615,0]");
  expect("[-9223372036854775808]", WEIR_DTYPE_INT64, "[-9223372036854775808]");
  expect("[[true],[false]]", WEIR_DTYPE_BOOL, "[[true],[false]]");
  expect("[\"a\\u00e9\\n\",{\"b64\":\"/w==\"}]", WEIR_DTYPE_STRING,
         "[\"a\xc3\xa9\\u000a\",{\"b64\":\"/w==\"}]");
  expect("[65504, 0.1]", WEIR_DTYPE_HALF, "[65504.0,0.099975586]");
}

static void test_refusals(void** state) {
  (void)state;
  expect_refused("[1, [2]]", WEIR_DTYPE_FLOAT, "differ in length or depth");
  expect_refused("[[1, 2], [3]]", WEIR_DTYPE_FLOAT, "differ in length or depth");
  expect_refused("[[], [3]]", WEIR_DTYPE_FLOAT, "differ in length or depth");
  expect_refused("128", WEIR_DTYPE_INT8, "expected type: int8");
  expect_refused("-1", WEIR_DTYPE_UINT8, "expected type: uint8");
  expect_refused("1.0", WEIR_DTYPE_INT64, "expected type: int64");
  expect_refused("9223372036854775808", WEIR_DTYPE_INT64, "expected type: int64");
  expect_refused("\"a\"", WEIR_DTYPE_FLOAT, "expected type: float");
  expect_refused("1", WEIR_DTYPE_BOOL, "expected type: bool");
  expect_refused("1", WEIR_DTYPE_STRING, "expected type: string");
  expect_refused("01", WEIR_DTYPE_FLOAT, "a number");
  expect_refused("1.", WEIR_DTYPE_FLOAT, "a number");
  expect_refused("[1,]", WEIR_DTYPE_FLOAT, "another member");
  expect_refused("[1", WEIR_DTYPE_FLOAT, "the end");
  expect_refused("\"a", WEIR_DTYPE_STRING, "'\"'");
  expect_refused("{\"b64\": \"a\"}", WEIR_DTYPE_STRING, "base64");
  expect_refused("{\"b64\": \"aGk=\", \"x\": 1}", WEIR_DTYPE_STRING, "'}'");
  expect_refused("1e999", WEIR_DTYPE_DOUBLE, "a number");
}

static void test_depth(void** state) {
  (void)state;
  char text[1000];
  memset(text, '[', sizeof(text) - 1);
  text[sizeof(text) - 1] = 0;
  expect_refused(text, WEIR_DTYPE_FLOAT, "nested more than 64 deep");
}

// Whatever the bits, what is written reads back as the same float, with no more than nine digits.
static void test_floats_round_trip(void** state) {
  (void)state;
  uint64_t seed = 1;
  for (int i = 0; i < 200000; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint32_t bits = (uint32_t)(seed >> 32);
    if (i % 2) bits = (bits & 0x007fffffu) | (0x38000000u + ((bits >> 24 & 31) << 23));  // 1e-5…1e5
    float value, back;
    memcpy(&value, &bits, sizeof(value));
    if (!isfinite(value)) continue;
    weir_strbuf_t out = {0};
    weir_json_put_float(value, &out);
    back = strtof(out.data, NULL);
    if (memcmp(&back, &value, sizeof(value)) != 0) fail_msg("%a is written as %s", value, out.data);
    int digits = 0;
    for (const char* c = out.data + strspn(out.data, "-0."); *c && *c != 'e'; ++c)
      digits += *c != '.';
    if (strchr(out.data, 'e') == NULL && value < 1e8f) assert_true(digits <= 10);
    weir_strbuf_free(&out);
  }
}

// The shortcut gives what the C library gives.
static void test_doubles_round_trip(void** state) {
  (void)state;
  uint64_t seed = 7;
  for (int i = 0; i < 100000; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    char text[64];
    int digits = 1 + (int)(seed >> 60), exponent = (int)(seed >> 50 & 63) - 32;
    snprintf(text, sizeof(text), "%.*llu.%llue%d", digits, (unsigned long long)(seed >> 40),
             (unsigned long long)(seed & 0xfffff), exponent);
    weir_json_number_t number;
    size_t size = 0;
    if (!weir_json_read_number(weir_view_of(text), &number, &size)) continue;  // leading zeros
    assert_int_equal(size, strlen(text));
    assert_true(number.value == strtod(text, NULL));
    weir_strbuf_t out = {0};
    weir_json_put_double(number.value, &out);
    assert_true(strtod(out.data, NULL) == number.value);
    weir_strbuf_free(&out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tensors), cmocka_unit_test(test_refusals), cmocka_unit_test(test_depth),
      cmocka_unit_test(test_floats_round_trip), cmocka_unit_test(test_doubles_round_trip)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
