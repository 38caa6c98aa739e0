// attr_test.c — Attribute values: lookup, round trips through AttrValue, copies, equality, text.
// cmocka.h needs the headers before it.

#include "op/attr.h"

#include "testing/cmocka.h"
#include "wire/wire.h"

typedef struct fixture_t {
  weir_arena_t arena;
  weir_tensor_list_t tensors;
  weir_strbuf_t bytes;
} fixture_t;

static void fixture_free(fixture_t* f) {
  weir_tensor_list_free(&f->tensors);
  weir_arena_free(&f->arena);
  weir_strbuf_free(&f->bytes);
}

// Writes, parses, compares, clones, compares.
static void round_trip(const weir_attr_t* value) {
  fixture_t f = {.bytes = {0}};
  weir_attr_t parsed;
  weir_attr_t cloned;
  assert_null(weir_attr_write(value, &f.bytes));
  assert_null(weir_attr_parse(weir_strbuf_view(&f.bytes), &f.arena, &f.tensors, &parsed));
  assert_true(weir_attr_equal(value, &parsed));
  assert_int_equal(weir_attr_hash(value), weir_attr_hash(&parsed));
  assert_null(weir_attr_clone(&parsed, &f.arena, &f.tensors, &cloned));
  assert_true(weir_attr_equal(value, &cloned));
  weir_strbuf_t again = {0};
  assert_null(weir_attr_write(&cloned, &again));
  assert_true(weir_view_equal(weir_strbuf_view(&f.bytes), weir_strbuf_view(&again)));
  weir_strbuf_free(&again);
  fixture_free(&f);
}

static void expect_text(const weir_attr_t* value, const char* text) {
  weir_strbuf_t out = {0};
  weir_attr_append_text(value, &out);
  assert_string_equal(out.data, text);
  weir_strbuf_free(&out);
}

static void test_scalars(void** state) {
  (void)state;
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_int("i", -7), weir_attr_float("f", 1.5f), weir_attr_bool("b", true),
                 weir_attr_string("s", "SAME"), weir_attr_type("T", WEIR_DTYPE_FLOAT));
  assert_int_equal(weir_attrs_int(attrs, "i"), -7);
  assert_true(weir_attrs_float(attrs, "f") == 1.5f);
  assert_true(weir_attrs_bool(attrs, "b"));
  assert_true(weir_view_is(weir_attrs_string(attrs, "s"), "SAME"));
  assert_int_equal(weir_attrs_type(attrs, "T"), WEIR_DTYPE_FLOAT);
  assert_null(weir_attrs_find(attrs, "nope"));
  for (size_t i = 0; i < attrs.count; ++i) round_trip(&attrs.items[i].value);
  expect_text(weir_attrs_find(attrs, "i"), "-7");
  expect_text(weir_attrs_find(attrs, "f"), "1.5");
  expect_text(weir_attrs_find(attrs, "b"), "true");
  expect_text(weir_attrs_find(attrs, "s"), "\"SAME\"");
  expect_text(weir_attrs_find(attrs, "T"), "float");
}

static void test_lists(void** state) {
  (void)state;
  const int64_t ints[] = {1, -2, INT64_MAX};
  const float floats[] = {0.5f, -1.0f};
  const weir_dtype_t types[] = {WEIR_DTYPE_HALF, WEIR_DTYPE_STRING};
  const weir_view_t strings[] = {{"a", 1}, {"", 0}, {"b\0c", 3}};
  weir_arena_t arena = {0};
  const int64_t dims[] = {2, -1};
  const weir_shape_t* shapes[] = {weir_shape_make(&arena, 2, dims), &weir_shape_unknown,
                                  &weir_shape_scalar};
  weir_named_attr_t lists[] = {weir_attr_ints("i", ints, 3),     weir_attr_floats("f", floats, 2),
                               weir_attr_types("t", types, 2),   weir_attr_strings("s", strings, 3),
                               weir_attr_shapes("h", shapes, 3), weir_attr_ints("e", NULL, 0)};
  for (size_t i = 0; i < WEIR_COUNT_OF(lists); ++i) round_trip(&lists[i].value);
  expect_text(&lists[0].value, "[1, -2, 9223372036854775807]");
  expect_text(&lists[2].value, "[half, string]");
  weir_arena_free(&arena);
}

static void test_tensor_shape_func(void** state) {
  (void)state;
  const int64_t dims[] = {3};
  const float data[] = {1, 2, 3};
  weir_tensor_t* tensor = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, dims, data, &tensor));
  weir_named_attr_t value = weir_attr_tensor("value", tensor);
  round_trip(&value.value);
  weir_named_attr_t shape = weir_attr_shape("shape", &weir_shape_unknown);
  round_trip(&shape.value);
  weir_named_attr_t inner[] = {weir_attr_type("T", WEIR_DTYPE_INT32), value};
  weir_func_t func = {.name = weir_view_of("body"), .attrs = {inner, 2}};
  weir_named_attr_t f = weir_attr_func("f", &func);
  round_trip(&f.value);
  weir_named_attr_t swapped[] = {inner[1], inner[0]};
  weir_func_t same = {.name = weir_view_of("body"), .attrs = {swapped, 2}};
  weir_named_attr_t g = weir_attr_func("f", &same);
  assert_true(weir_attr_equal(&f.value, &g.value));
  assert_int_equal(weir_attr_hash(&f.value), weir_attr_hash(&g.value));
  weir_tensor_release(tensor);
}

static void test_differences(void** state) {
  (void)state;
  weir_attr_t i = weir_attr_int("", 1).value;
  weir_attr_t f = weir_attr_float("", 0.0f).value;
  weir_attr_t negative = weir_attr_float("", -0.0f).value;
  weir_attr_t none = {.kind = WEIR_ATTR_NONE};
  assert_false(weir_attr_equal(&i, &f));
  assert_false(weir_attr_equal(&f, &negative));
  assert_false(weir_attr_equal(&i, &none));
  round_trip(&none);
}

static void expect_parse_error(const void* data, size_t size, const char* text) {
  fixture_t f = {.bytes = {0}};
  weir_attr_t value;
  weir_status_t* status = weir_attr_parse(weir_view(data, size), &f.arena, &f.tensors, &value);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  if (!strstr(weir_status_message(status), text)) fail_msg("%s", weir_status_message(status));
  weir_status_destroy(status);
  fixture_free(&f);
}

static void test_malformed(void** state) {
  (void)state;
  expect_parse_error(
      "\x12\x05"
      "a",
      3, "malformed");                                         // truncated string
  expect_parse_error("\x1d\x00\x00\x00\x00", 5, "wire type");  // an int as fixed32
  expect_parse_error("\x0a\x05\x18\x01\x28\x01\x18", 7, "");   // a list with a cut-off varint
  expect_parse_error("\x0a\x04\x18\x01\x28\x01", 6, "several types");
}

// list { shape { dim { size: -14 } dim { size: 3 } } }, as TensorFlow's optimiser notes it.
static void test_symbolic_shape(void** state) {
  (void)state;
  fixture_t f = {.bytes = {0}};
  const int64_t dims[] = {-14, 3};
  size_t list = weir_wire_begin(&f.bytes, 1);
  size_t shape = weir_wire_begin(&f.bytes, 7);
  weir_shape_write_dims(2, dims, &f.bytes);
  weir_wire_end(&f.bytes, shape);
  weir_wire_end(&f.bytes, list);
  weir_view_t proto = weir_strbuf_view(&f.bytes);
  weir_attr_t value;
  assert_null(weir_attr_parse_named("_input_shapes", proto, &f.arena, &f.tensors, &value));
  weir_strbuf_t again = {0};
  assert_null(weir_attr_write(&value, &again));
  assert_true(weir_view_equal(proto, weir_strbuf_view(&again)));
  weir_status_t* status = weir_attr_parse_named("shapes", proto, &f.arena, &f.tensors, &value);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(
      strstr(weir_status_message(status), "attr 'shapes': shape has the dimension -14"));
  weir_status_destroy(status);
  weir_strbuf_free(&again);
  fixture_free(&f);
}

static void test_deep_functions(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  weir_strbuf_t outer = {0};
  for (int i = 0; i < 200; ++i) {  // func { attr { key: "", value: <previous> } }
    outer.size = 0;
    size_t func = weir_wire_begin(&outer, 10);
    size_t entry = weir_wire_begin(&outer, 2);
    weir_wire_put_bytes(&outer, 2, bytes.data, bytes.size);
    weir_wire_end(&outer, entry);
    weir_wire_end(&outer, func);
    weir_strbuf_t swap = bytes;
    bytes = outer;
    outer = swap;
  }
  expect_parse_error(bytes.data, bytes.size, "deep");
  weir_strbuf_free(&bytes);
  weir_strbuf_free(&outer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scalars),           cmocka_unit_test(test_lists),
      cmocka_unit_test(test_tensor_shape_func), cmocka_unit_test(test_differences),
      cmocka_unit_test(test_malformed),         cmocka_unit_test(test_symbolic_shape),
      cmocka_unit_test(test_deep_functions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
