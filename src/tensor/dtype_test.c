// dtype_test.c — Names, sizes and classes of element types.

#include "weir/dtype.h"

#include <string.h>

#include "testing/cmocka.h"

static bool parse(const char* name, weir_dtype_t* out_dtype) {
  return weir_dtype_from_name(name, strlen(name), out_dtype);
}

static void test_names_round_trip(void** state) {
  (void)state;
  int valid = 0;
  for (int i = 0; i < WEIR_DTYPE_COUNT; ++i) {
    weir_dtype_t dtype = (weir_dtype_t)i;
    if (!weir_dtype_is_valid(dtype)) continue;
    ++valid;
    weir_dtype_t found = WEIR_DTYPE_INVALID;
    assert_true(parse(weir_dtype_name(dtype), &found));
    assert_int_equal(found, dtype);
    assert_true(parse(weir_dtype_name(weir_dtype_ref(dtype)), &found));
    assert_int_equal(found, weir_dtype_ref(dtype));
    assert_true(weir_dtype_size(dtype) > 0);
  }
  assert_int_equal(valid, 33);
}

static void test_spellings(void** state) {
  (void)state;
  static const struct {
    const char* name;
    weir_dtype_t dtype;
  } cases[] = {{"float32", WEIR_DTYPE_FLOAT}, {"float64", WEIR_DTYPE_DOUBLE},
               {"float16", WEIR_DTYPE_HALF},  {"DT_FLOAT", WEIR_DTYPE_FLOAT},
               {"DT_HALF", WEIR_DTYPE_HALF},  {"DT_FLOAT8_E5M2", WEIR_DTYPE_FLOAT8_E5M2},
               {"DT_INT64_REF", 109},         {"float32_ref", 101}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    weir_dtype_t found = WEIR_DTYPE_INVALID;
    assert_true(parse(cases[i].name, &found));
    assert_int_equal(found, cases[i].dtype);
  }
  static const char* const bad[] = {"",        "DT_",        "DT_float", "FLOAT",       "float ",
                                    "invalid", "DT_INVALID", "_ref",     "DT_FLOAT_ref"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    weir_dtype_t found = WEIR_DTYPE_BOOL;
    assert_false(parse(bad[i], &found));
    assert_int_equal(found, WEIR_DTYPE_BOOL);
  }
}

static void test_sizes(void** state) {
  (void)state;
  assert_int_equal(weir_dtype_size(WEIR_DTYPE_FLOAT), 4);
  assert_int_equal(weir_dtype_size(WEIR_DTYPE_COMPLEX128), 16);
  assert_int_equal(weir_dtype_size(WEIR_DTYPE_STRING), 24);
  assert_int_equal(weir_dtype_size(WEIR_DTYPE_INVALID), 0);
  assert_int_equal(weir_dtype_size((weir_dtype_t)34), 0);
  assert_int_equal(weir_dtype_size((weir_dtype_t)-1), 0);
  assert_int_equal(weir_dtype_size((weir_dtype_t)101), 0);
  assert_string_equal(weir_dtype_name(WEIR_DTYPE_INVALID), "invalid");
  assert_string_equal(weir_dtype_name((weir_dtype_t)500), "invalid");
}

static void test_classes(void** state) {
  (void)state;
  assert_true(weir_dtype_is_floating(WEIR_DTYPE_BFLOAT16));
  assert_true(weir_dtype_is_floating(WEIR_DTYPE_FLOAT4_E2M1FN));
  assert_true(weir_dtype_is_integer(WEIR_DTYPE_INT2));
  assert_false(weir_dtype_is_floating(WEIR_DTYPE_COMPLEX64));
  assert_true(weir_dtype_is_complex(WEIR_DTYPE_COMPLEX64));
  assert_true(weir_dtype_is_integer(WEIR_DTYPE_UINT64));
  assert_false(weir_dtype_is_integer(WEIR_DTYPE_BOOL));
  assert_false(weir_dtype_is_integer(WEIR_DTYPE_QINT8));
  assert_true(weir_dtype_is_plain(WEIR_DTYPE_BOOL));
  assert_false(weir_dtype_is_plain(WEIR_DTYPE_STRING));
  assert_false(weir_dtype_is_plain(WEIR_DTYPE_RESOURCE));
  weir_dtype_t ref = weir_dtype_ref(WEIR_DTYPE_FLOAT);
  assert_true(weir_dtype_is_ref(ref));
  assert_int_equal(weir_dtype_base(ref), WEIR_DTYPE_FLOAT);
  assert_false(weir_dtype_is_valid(ref) || weir_dtype_is_floating(ref) || weir_dtype_is_plain(ref));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_round_trip),
                                     cmocka_unit_test(test_spellings), cmocka_unit_test(test_sizes),
                                     cmocka_unit_test(test_classes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
