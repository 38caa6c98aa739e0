// narrow_test.c — Formats that are only stored: every code, and the numbers between them.
#include "tensor/narrow.h"

#include <math.h>

#include "testing/cmocka.h"

static const weir_narrow_t* const formats[] = {&weir_float8_e4m3fnuz, &weir_float8_e4m3b11fnuz,
                                               &weir_float8_e5m2fnuz, &weir_float4_e2m1fn};

static void test_every_code_comes_back(void** state) {
  (void)state;
  for (size_t f = 0; f < WEIR_COUNT_OF(formats); ++f) {
    for (unsigned code = 0; code < 1u << formats[f]->bits; ++code) {
      float value = weir_narrow_to_float(formats[f], (uint8_t)code);
      assert_int_equal(weir_narrow_from_float(formats[f], value), code);
    }
  }
}

// What lies between two neighbours goes to the nearer one, and from the middle to the even one.
static void test_rounding(void** state) {
  (void)state;
  for (size_t f = 0; f < WEIR_COUNT_OF(formats); ++f) {
    unsigned largest = (1u << (formats[f]->bits - 1)) - 1;
    for (unsigned code = 0; code < largest; ++code) {
      float low = weir_narrow_to_float(formats[f], (uint8_t)code);
      float high = weir_narrow_to_float(formats[f], (uint8_t)(code + 1));
      float middle = low + (high - low) / 2;
      assert_true(low < middle && middle < high);
      assert_int_equal(weir_narrow_from_float(formats[f], middle), code + code % 2);
      assert_int_equal(weir_narrow_from_float(formats[f], nextafterf(middle, low)), code);
      assert_int_equal(weir_narrow_from_float(formats[f], nextafterf(middle, high)), code + 1);
    }
  }
}

static void test_values(void** state) {
  (void)state;
  const struct {
    const weir_narrow_t* format;
    uint8_t code;
    float value;
  } rows[] = {
      {&weir_float8_e4m3fnuz, 0x7f, 240},
      {&weir_float8_e4m3fnuz, 0x40, 1},
      {&weir_float8_e4m3fnuz, 0x01, 0x1p-10f},
      {&weir_float8_e4m3fnuz, 0xc0, -1},
      {&weir_float8_e4m3b11fnuz, 0x7f, 30},
      {&weir_float8_e4m3b11fnuz, 0x58, 1},
      {&weir_float8_e4m3b11fnuz, 1, 0x1p-13f},
      {&weir_float8_e5m2fnuz, 0x7f, 57344},
      {&weir_float8_e5m2fnuz, 0x40, 1},
      {&weir_float8_e5m2fnuz, 0x01, 0x1p-17f},
      {&weir_float4_e2m1fn, 7, 6},
      {&weir_float4_e2m1fn, 1, 0.5f},
      {&weir_float4_e2m1fn, 2, 1},
      {&weir_float4_e2m1fn, 0xf, -6},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(rows); ++i) {
    assert_true(weir_narrow_to_float(rows[i].format, rows[i].code) == rows[i].value);
    assert_int_equal(weir_narrow_from_float(rows[i].format, rows[i].value), rows[i].code);
  }
}

static void test_no_numbers(void** state) {
  (void)state;
  const float too_large[] = {INFINITY, -INFINITY, 1e30f, -1e30f};
  for (size_t f = 0; f < 3; ++f) {
    assert_true(isnan(weir_narrow_to_float(formats[f], 0x80)));
    assert_int_equal(weir_narrow_from_float(formats[f], NAN), 0x80);
    assert_int_equal(weir_narrow_from_float(formats[f], -0.f), 0);
    assert_int_equal(weir_narrow_from_float(formats[f], -1e-30f), 0);
    for (size_t i = 0; i < WEIR_COUNT_OF(too_large); ++i)
      assert_int_equal(weir_narrow_from_float(formats[f], too_large[i]), 0x80);
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(too_large); ++i)
    assert_int_equal(weir_narrow_from_float(&weir_float4_e2m1fn, too_large[i]), i % 2 ? 15 : 7);
  assert_int_equal(weir_narrow_from_float(&weir_float4_e2m1fn, NAN), 8);
  assert_int_equal(weir_narrow_from_float(&weir_float4_e2m1fn, -0.1f), 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_code_comes_back),
                                     cmocka_unit_test(test_rounding), cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_no_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
