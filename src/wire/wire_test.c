// wire_test.c — Tests of the wire format's reader and writer.
// cmocka.h needs the headers before it.

#include "wire/wire.h"

#include "base/alloc.h"
#include "testing/cmocka.h"

#define BYTES(text) weir_view(text, sizeof(text) - 1)

static void test_round_trip(void** state) {
  (void)state;
  weir_strbuf_t out = {0};
  weir_wire_put_int(&out, 1, -1);
  weir_wire_put_bool(&out, 2, true);
  weir_wire_put_float(&out, 3, 1.5f);
  weir_wire_put_double(&out, 4, -2.25);
  weir_wire_put_fixed32(&out, 5, 0xdeadbeef);
  weir_wire_put_fixed64(&out, 6, UINT64_MAX);
  weir_wire_put_string(&out, 7, "seven");
  weir_wire_put_bytes(&out, 536870911, NULL, 0);  // the largest field number

  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&out));
  assert_true(weir_wire_next(&r));
  assert_int_equal(r.field, 1);
  assert_int_equal(weir_wire_int(&r), -1);
  assert_int_equal(r.raw.size, 11);
  assert_true(weir_wire_next(&r));
  assert_true(weir_wire_bool(&r));
  assert_true(weir_wire_next(&r));
  assert_true(weir_wire_float(&r) == 1.5f);
  assert_true(weir_wire_next(&r));
  assert_true(weir_wire_double(&r) == -2.25);
  assert_true(weir_wire_next(&r));
  assert_int_equal(r.type, WEIR_WIRE_FIXED32);
  assert_int_equal(r.value, 0xdeadbeef);
  assert_true(weir_wire_next(&r));
  assert_true(r.value == UINT64_MAX);
  assert_true(weir_wire_next(&r));
  assert_true(weir_view_is(r.bytes, "seven"));
  assert_true(weir_wire_next(&r));
  assert_int_equal(r.field, 536870911);
  assert_int_equal(r.bytes.size, 0);
  assert_false(weir_wire_next(&r));
  assert_null(weir_wire_check(&r, "message"));
  weir_strbuf_free(&out);
}

static void test_varint_sizes(void** state) {
  (void)state;
  weir_strbuf_t out = {0};
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (int less = 0; less < 2; ++less) {
      uint64_t value = ((uint64_t)1 << bit) - (uint64_t)less;
      out.size = 0;
      weir_wire_put_int(&out, 1, (int64_t)value);
      weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&out));
      assert_true(weir_wire_next(&r));
      assert_true(r.value == value);
      // Every proper prefix is an error, apart from the empty one.
      for (size_t size = 1; size < out.size; ++size) {
        r = weir_wire_reader(weir_view(out.data, size));
        assert_false(weir_wire_next(&r));
        assert_non_null(r.error);
      }
    }
  }
  weir_strbuf_free(&out);
}

static void expect_error(weir_view_t data, const char* text) {
  weir_wire_reader_t r = weir_wire_reader(data);
  while (weir_wire_next(&r)) {
  }
  assert_false(weir_wire_next(&r));  // the error stays
  weir_status_t* status = weir_wire_check(&r, "GraphDef");
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "malformed GraphDef: "));
  assert_non_null(strstr(weir_status_message(status), text));
  weir_status_destroy(status);
}

static void test_malformed(void** state) {
  (void)state;
  expect_error(BYTES("\x00\x01"), "field number is 0");
  expect_error(BYTES("\x80"), "cut short");
  expect_error(BYTES("\x08"), "cut short");
  expect_error(BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "does not fit 64 bits");
  expect_error(BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), "does not fit 64 bits");
  expect_error(BYTES("\xf8\xff\xff\xff\xff\x01\x00"), "field number is too large");
  expect_error(BYTES("\x0e\x00"), "unknown wire type");
  expect_error(BYTES("\x0f\x00"), "unknown wire type");
  expect_error(BYTES("\x0a\x02x"), "length runs past the end");
  expect_error(BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"), "length runs past the end");
  expect_error(BYTES("\x0d\x01\x02\x03"), "cut short");
  expect_error(BYTES("\x09\x01\x02\x03\x04\x05\x06\x07"), "cut short");
  expect_error(BYTES("\x08\x01\x0c"), "end of a group");
  expect_error(BYTES("\x0b"), "group is not closed");
  expect_error(BYTES("\x0b\x08\x01"), "group is not closed");
  expect_error(BYTES("\x0b\x14"), "closed by another field");
  expect_error(BYTES("\x0b\x13\x0c\x14"), "closed by another field");
}

static void test_groups(void** state) {
  (void)state;
  // 1 { 2: 5, 3 { 1: "x" } } then 4: 7
  weir_wire_reader_t r = weir_wire_reader(BYTES("\x0b\x10\x05\x1b\x0a\x01x\x1c\x0c\x20\x07"));
  assert_true(weir_wire_next(&r));
  assert_int_equal(r.type, WEIR_WIRE_GROUP);
  assert_int_equal(r.raw.size, 9);
  assert_int_equal(r.bytes.size, 7);
  assert_true(weir_wire_next(&r));
  assert_int_equal(r.field, 4);
  assert_int_equal(weir_wire_int(&r), 7);
  assert_false(weir_wire_next(&r));
  assert_null(r.error);

  char deep[202];
  for (int depth = 100; depth <= 101; ++depth) {
    memset(deep, 0x0b, (size_t)depth);
    memset(deep + depth, 0x0c, (size_t)depth);
    r = weir_wire_reader(weir_view(deep, (size_t)(2 * depth)));
    assert_int_equal(weir_wire_next(&r), depth == 100);
  }
  assert_string_equal(r.error, "groups are nested too deep");
}

static void test_empty(void** state) {
  (void)state;
  weir_wire_reader_t r = weir_wire_reader(weir_view(NULL, 0));
  assert_false(weir_wire_next(&r));
  assert_null(weir_wire_check(&r, "message"));
}

static void test_packed(void** state) {
  (void)state;
  uint64_t v = 0;
  uint64_t count = 0;
  weir_wire_reader_t r = weir_wire_reader(BYTES("\x0a\x04\x01\x80\x01\x03\x08\x05"));
  assert_true(weir_wire_next(&r));
  weir_wire_packed_t p = weir_wire_packed(&r, WEIR_WIRE_VARINT);
  assert_true(weir_wire_packed_count(p, &count));
  assert_int_equal(count, 3);
  assert_true(weir_wire_packed_next(&p, &v));
  assert_int_equal(v, 1);
  assert_true(weir_wire_packed_next(&p, &v));
  assert_int_equal(v, 128);
  assert_true(weir_wire_packed_next(&p, &v));
  assert_int_equal(v, 3);
  assert_false(weir_wire_packed_next(&p, &v));
  assert_false(p.failed);

  assert_true(weir_wire_next(&r));  // the same field, not packed
  p = weir_wire_packed(&r, WEIR_WIRE_VARINT);
  assert_true(weir_wire_packed_count(p, &count));
  assert_int_equal(count, 1);
  assert_true(weir_wire_packed_next(&p, &v));
  assert_int_equal(v, 5);
  assert_false(weir_wire_packed_next(&p, &v));
}

static void test_packed_malformed(void** state) {
  (void)state;
  uint64_t v = 0;
  uint64_t count = 0;
  weir_wire_reader_t r = weir_wire_reader(BYTES("\x0a\x05\x01\x02\x03\x04\x85\x08\x01"));
  assert_true(weir_wire_next(&r));
  weir_wire_packed_t p = weir_wire_packed(&r, WEIR_WIRE_FIXED32);
  assert_false(weir_wire_packed_count(p, &count));
  assert_true(weir_wire_packed_next(&p, &v));
  assert_int_equal(v, 0x04030201);
  assert_false(weir_wire_packed_next(&p, &v));
  assert_true(p.failed);
  assert_false(weir_wire_packed_count(weir_wire_packed(&r, WEIR_WIRE_VARINT), &count));
  assert_false(weir_wire_packed_count(weir_wire_packed(&r, WEIR_WIRE_FIXED64), &count));

  assert_true(weir_wire_next(&r));  // a varint where floats should be
  p = weir_wire_packed(&r, WEIR_WIRE_FIXED32);
  assert_false(weir_wire_packed_next(&p, &v));
  assert_true(p.failed);
}

static void test_nested_sizes(void** state) {
  (void)state;
  static const size_t kSizes[] = {0, 1, 127, 128, 16383, 16384, 2097151, 2097152};
  for (size_t i = 0; i < WEIR_COUNT_OF(kSizes); ++i) {
    weir_strbuf_t out = {0};
    size_t outer = weir_wire_begin(&out, 1);
    size_t inner = weir_wire_begin(&out, 2);
    for (size_t k = 0; k < kSizes[i]; ++k) weir_strbuf_putc(&out, (char)('a' + k % 26));
    weir_wire_end(&out, inner);
    weir_wire_put_int(&out, 3, 9);
    weir_wire_end(&out, outer);
    assert_int_equal(out.data[out.size], 0);

    weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&out));
    assert_true(weir_wire_next(&r));
    assert_int_equal(r.field, 1);
    assert_int_equal(r.raw.size, out.size);
    weir_wire_reader_t in = weir_wire_reader(r.bytes);
    assert_true(weir_wire_next(&in));
    assert_int_equal(in.bytes.size, kSizes[i]);
    for (size_t k = 0; k < kSizes[i]; ++k) assert_true(in.bytes.data[k] == (char)('a' + k % 26));
    assert_true(weir_wire_next(&in));
    assert_int_equal(weir_wire_int(&in), 9);
    assert_false(weir_wire_next(&in));
    weir_strbuf_free(&out);
  }
}

// Every allocation that fails must leave a buffer that reports it and can be freed.
static void test_out_of_memory(void** state) {
  (void)state;
  bool was_whole = false;
  for (int64_t n = 1; !was_whole; ++n) {
    weir_strbuf_t out = {0};
    weir_alloc_fail_at(n, true);
    size_t begin = weir_wire_begin(&out, 1);
    for (int i = 0; i < 100; ++i) weir_wire_put_double(&out, 2, i);
    weir_wire_end(&out, begin);
    weir_alloc_fail_at(0, false);
    weir_status_t* status = weir_strbuf_finish(&out);
    was_whole = status == NULL;
    if (!was_whole) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    weir_strbuf_free(&out);
    assert_true(n < 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_varint_sizes),
      cmocka_unit_test(test_malformed),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_empty),
      cmocka_unit_test(test_packed),
      cmocka_unit_test(test_packed_malformed),
      cmocka_unit_test(test_nested_sizes),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
