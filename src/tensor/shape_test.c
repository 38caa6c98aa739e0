// shape_test.c — Tests of partially known shapes.

#include "tensor/shape.h"

#include "testing/cmocka.h"
#include "wire/wire.h"

static weir_arena_t arena;

static const weir_shape_t* make2(int64_t a, int64_t b) {
  return weir_shape_make(&arena, 2, (int64_t[]){a, b});
}

static void expect_text(const weir_shape_t* shape, const char* text) {
  weir_strbuf_t out = {0};
  weir_shape_append(shape, &out);
  assert_string_equal(out.data, text);
  weir_strbuf_free(&out);
}

static void test_text(void** state) {
  (void)state;
  expect_text(&weir_shape_unknown, "<unknown>");
  expect_text(&weir_shape_scalar, "[]");
  expect_text(make2(2, -1), "[2,?]");
  assert_ptr_equal(weir_shape_make(&arena, -1, NULL), &weir_shape_unknown);
}

static void test_compare(void** state) {
  (void)state;
  assert_true(weir_shape_is_full(&weir_shape_scalar));
  assert_false(weir_shape_is_full(&weir_shape_unknown));
  assert_false(weir_shape_is_full(make2(2, -1)));
  assert_true(weir_shape_equal(make2(2, -1), make2(2, -1)));
  assert_false(weir_shape_equal(make2(2, -1), make2(2, 3)));
  assert_false(weir_shape_equal(&weir_shape_scalar, &weir_shape_unknown));
  assert_true(weir_shape_accepts(&weir_shape_unknown, 2, (int64_t[]){1, 2}));
  assert_true(weir_shape_accepts(make2(-1, 2), 2, (int64_t[]){1, 2}));
  assert_false(weir_shape_accepts(make2(-1, 2), 2, (int64_t[]){1, 3}));
  assert_false(weir_shape_accepts(make2(-1, 2), 0, NULL));
  weir_shape_t* clone = weir_shape_clone(make2(4, -1));
  expect_text(clone, "[4,?]");
  weir_free(clone);
}

static void test_merge(void** state) {
  (void)state;
  const weir_shape_t* out = NULL;
  assert_true(weir_shape_merge(&arena, make2(2, -1), make2(-1, 3), &out));
  expect_text(out, "[2,3]");
  assert_true(weir_shape_merge(&arena, &weir_shape_unknown, make2(-1, 3), &out));
  expect_text(out, "[?,3]");
  const weir_shape_t* full = make2(2, 3);
  assert_true(weir_shape_merge(&arena, make2(-1, 3), full, &out));
  assert_ptr_equal(out, full);
  assert_true(weir_shape_merge(&arena, full, make2(-1, -1), &out));
  assert_ptr_equal(out, full);
  assert_false(weir_shape_merge(&arena, full, make2(-1, 4), &out));
  assert_false(weir_shape_merge(&arena, full, &weir_shape_scalar, &out));
}

static void expect_round_trip(const weir_shape_t* shape) {
  weir_strbuf_t out = {0};
  const weir_shape_t* back = NULL;
  weir_shape_write(shape, &out);
  assert_null(weir_shape_parse(weir_strbuf_view(&out), &arena, &back));
  assert_true(weir_shape_equal(shape, back));
  weir_strbuf_free(&out);
}

static void expect_refused(weir_view_t proto, const char* text) {
  const weir_shape_t* shape = NULL;
  weir_status_t* status = weir_shape_parse(proto, &arena, &shape);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), text));
  weir_status_destroy(status);
}

static void test_proto(void** state) {
  (void)state;
  expect_round_trip(&weir_shape_unknown);
  expect_round_trip(&weir_shape_scalar);
  expect_round_trip(make2(0, -1));
  expect_round_trip(make2(INT64_MAX, 7));
  weir_strbuf_t out = {0};
  weir_shape_write_dims(1, (int64_t[]){-2}, &out);
  expect_refused(weir_strbuf_view(&out), "-2");
  out.size = 0;
  weir_shape_write(make2(1, 2), &out);
  weir_shape_write(&weir_shape_unknown, &out);
  expect_refused(weir_strbuf_view(&out), "unknown rank");
  out.size = 0;
  int64_t dims[255] = {0};
  weir_shape_write_dims(255, dims, &out);
  expect_refused(weir_strbuf_view(&out), "254");
  expect_refused(weir_view("\x12\x7f", 2), "malformed");
  weir_strbuf_free(&out);
}

static int teardown(void** state) {
  (void)state;
  weir_arena_free(&arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_compare),
      cmocka_unit_test(test_merge),
      cmocka_unit_test(test_proto),
  };
  return cmocka_run_group_tests(tests, NULL, teardown);
}
