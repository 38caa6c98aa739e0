// text_test.c — Tests of the text format and of the message tables.
// cmocka.h needs the headers before it.

#include "wire/text.h"

#include <stdio.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

// |text| must parse, and print as |canonical|, which must parse to the same bytes.
static void expect_print(const weir_message_t* message, const char* text, const char* canonical) {
  weir_strbuf_t wire = {0};
  weir_strbuf_t again = {0};
  weir_strbuf_t printed = {0};
  if (weir_status_report(weir_text_parse(message, weir_view_of(text), &wire))) fail();
  if (weir_status_report(weir_text_print(message, weir_strbuf_view(&wire), &printed))) fail();
  assert_string_equal(printed.data ? printed.data : "", canonical);
  if (weir_status_report(weir_text_parse(message, weir_strbuf_view(&printed), &again))) fail();
  printed.size = 0;
  if (weir_status_report(weir_text_print(message, weir_strbuf_view(&again), &printed))) fail();
  assert_true(weir_view_is(weir_strbuf_view(&printed), canonical));
  weir_strbuf_free(&wire);
  weir_strbuf_free(&again);
  weir_strbuf_free(&printed);
}

static void expect_error(const weir_message_t* message, const char* text, const char* error) {
  weir_strbuf_t out = {0};
  weir_strbuf_puts(&out, "kept");
  weir_status_t* status = weir_text_parse(message, weir_view_of(text), &out);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  if (!strstr(weir_status_message(status), error)) {
    fail_msg("'%s' lacks '%s'", weir_status_message(status), error);
  }
  assert_string_equal(out.data, "kept");
  weir_status_destroy(status);
  weir_strbuf_free(&out);
}

static void test_graph(void** state) {
  (void)state;
  expect_print(&weir_message_graph_def,
               "# a comment\n"
               "versions < producer: 22; min_consumer: 0 >,\n"
               "node { name: 'x' op: \"Const\"\n"
               "  attr { value { type: DT_FLOAT } key: \"dtype\" };\n"
               "  attr: { key: \"a\" value: { list { i: [1, -2, 0x10, 010] } } }\n"
               "  input: [\"a\", 'b'] input: '^c' }\n"
               "node{}",
               "node {\n"
               "  name: \"x\"\n"
               "  op: \"Const\"\n"
               "  input: \"a\"\n"
               "  input: \"b\"\n"
               "  input: \"^c\"\n"
               "  attr {\n"
               "    key: \"a\"\n"
               "    value {\n"
               "      list {\n"
               "        i: 1\n"
               "        i: -2\n"
               "        i: 16\n"
               "        i: 8\n"
               "      }\n"
               "    }\n"
               "  }\n"
               "  attr {\n"
               "    key: \"dtype\"\n"
               "    value {\n"
               "      type: DT_FLOAT\n"
               "    }\n"
               "  }\n"
               "}\n"
               "node {\n"
               "}\n"
               "versions {\n"
               "  producer: 22\n"
               "}\n");
}

static void test_lists_of_messages(void** state) {
  (void)state;
  expect_print(&weir_message_tensor_shape, "dim [{size: 1}, <size: -1>] dim: [] dim: [{}]",
               "dim {\n  size: 1\n}\ndim {\n  size: -1\n}\ndim {\n}\n");
}

static void test_presence(void** state) {
  (void)state;
  expect_print(&weir_message_attr_value, "i: 0", "i: 0\n");  // in a oneof: set is shown
  expect_print(&weir_message_attr_value, "s: ''", "s: \"\"\n");
  expect_print(&weir_message_attr_value, "b: f", "b: false\n");
  expect_print(&weir_message_tensor, "version_number: 0", "");  // else zero is not
  expect_print(&weir_message_tensor, "dtype: 0 tensor_content: ''", "");
  expect_print(&weir_message_node_def, "attr {}", "attr {\n  value {\n  }\n}\n");
}

static void test_scalars(void** state) {
  (void)state;
  expect_print(&weir_message_attr_value, "b: t", "b: true\n");
  expect_print(&weir_message_attr_value, "b: 1", "b: true\n");
  expect_print(&weir_message_attr_value, "b: True", "b: true\n");
  expect_print(&weir_message_attr_value, "type: 119", "type: DT_HALF_REF\n");
  expect_print(&weir_message_attr_value, "type: 77", "type: 77\n");
  expect_print(&weir_message_attr_value, "type: -1", "type: -1\n");
  expect_print(&weir_message_attr_value, "i: - 0x8000000000000000", "i: -9223372036854775808\n");
  expect_print(&weir_message_tensor, "uint64_val: [18446744073709551615, 0]",
               "uint64_val: 18446744073709551615\nuint64_val: 0\n");
  expect_print(&weir_message_tensor, "int_val: -1 int_val: 2147483647 bool_val: [true, f]",
               "int_val: -1\nint_val: 2147483647\nbool_val: true\nbool_val: false\n");
  expect_print(&weir_message_bundle_entry, "crc32c: 4294967295", "crc32c: 4294967295\n");
}

static void test_reals(void** state) {
  (void)state;
  static const char* const kFloats[][2] = {{"0", "0.0"},
                                           {"-0.0", "-0.0"},
                                           {"1.5f", "1.5"},
                                           {".5", "0.5"},
                                           {"1.", "1.0"},
                                           {"0.1", "0.1"},
                                           {"16777216", "16777216.0"},
                                           {"3.4028235e38", "3.4028235e+38"},
                                           {"1e-45", "1.4013e-45"},
                                           {"1e-5", "1e-05"},
                                           {"0.0001", "0.0001"},
                                           {"1e16", "1e+16"},
                                           {"1e15", "1000000000000000.0"},
                                           {"123456789", "123456790.0"},
                                           {"inf", "inf"},
                                           {"-Infinity", "-inf"},
                                           {"NaN", "nan"},
                                           {"-nan", "nan"},
                                           {"1e39", "inf"},
                                           {"-1e999", "-inf"},
                                           {"1e-999", "0.0"},
                                           {"0.333333333", "0.33333334"}};
  for (size_t i = 0; i < WEIR_COUNT_OF(kFloats); ++i) {
    char text[64];
    char canonical[64];
    snprintf(text, sizeof text, "f: %s", kFloats[i][0]);
    snprintf(canonical, sizeof canonical, "f: %s\n", kFloats[i][1]);
    expect_print(&weir_message_attr_value, text, canonical);
  }
  static const char* const kDoubles[][2] = {{"0.1", "0.1"},
                                            {"0.30000000000000004", "0.30000000000000004"},
                                            {"5e-324", "5e-324"},
                                            {"1.7976931348623157e308", "1.7976931348623157e+308"},
                                            {"1e22", "1e+22"},
                                            {"7.174648137343064e-43", "7.174648137343064e-43"},
                                            {"123456789.125", "123456789.125"}};
  for (size_t i = 0; i < WEIR_COUNT_OF(kDoubles); ++i) {
    char text[64];
    char canonical[64];
    snprintf(text, sizeof text, "wall_time: %s", kDoubles[i][0]);
    snprintf(canonical, sizeof canonical, "wall_time: %s\n", kDoubles[i][1]);
    expect_print(&weir_message_event, text, canonical);
  }
}

static void test_strings(void** state) {
  (void)state;
  expect_print(&weir_message_attr_value, "s: 'a' \"b\"\n  'c'", "s: \"abc\"\n");
  expect_print(&weir_message_attr_value, "s: '\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"'",
               "s: \"\\007\\010\\014\\n\\r\\t\\013\\\\?\\'\\\"\"\n");
  expect_print(&weir_message_attr_value, "s: '\\0\\18\\377\\x4\\x41G'",
               "s: \"\\000\\0018\\377\\004AG\"\n");
  // Bytes are escaped, strings keep their characters.
  expect_print(&weir_message_attr_value, "s: '\\u00e9\\U0001F600'",
               "s: \"\\303\\251\\360\\237\\230\\200\"\n");
  expect_print(&weir_message_attr_value, "placeholder: '\\u00e9\\ud83d\\ude00\\177'",
               "placeholder: \"\xc3\xa9\xf0\x9f\x98\x80\\177\"\n");
  expect_print(&weir_message_attr_value, "s: '# no comment'", "s: \"# no comment\"\n");
}

static void test_errors(void** state) {
  (void)state;
  const weir_message_t* node = &weir_message_node_def;
  const weir_message_t* attr = &weir_message_attr_value;
  expect_error(node, "name: 'x'\n  opp: 'y'", "2:3: NodeDef has no field named 'opp'");
  expect_error(node, "name 'x'", "1:6: expected ':'");
  expect_error(node, "name: x", "1:7: expected a string, not 'x'");
  expect_error(node, "name: 'x", "string is not closed");
  expect_error(node, "name: 'x\n'", "string is not closed");
  expect_error(node, "name: 'a' 'x", "string is not closed");
  expect_error(node, "name: 'x\\", "string is not closed");
  expect_error(node, "name: '\\q'", "bad escape");
  expect_error(node, "name: '\\400'", "bad escape");
  expect_error(node, "name: '\\ud800'", "bad escape");
  expect_error(node, "name: '\\x'", "bad escape");
  expect_error(node, "name: '\\377'", "'name' before here is not valid UTF-8");
  expect_error(node, "name: 'x' name: 'y'", "NodeDef may have 'name' once");
  expect_error(attr, "i: 1 f: 2", "AttrValue may have 'i' once, not also 'f'");
  expect_error(attr, "list { }\nshape { } }", "2:1: AttrValue may have 'list' once");
  expect_error(node, "attr { key: 'x'", "expected '}', not the end of the text");
  expect_error(node, "attr { key: 'x' >", "expected a field name, not '>'");
  expect_error(node, "attr: 5", "expected '{', not '5'");
  expect_error(node, "}", "expected a field name, not '}'");
  expect_error(node, "[tensorflow.x]: 1", "has no field named 'tensorflow.x'");
  expect_error(node, "name: ['x']", "expected a string, not '['");
  expect_error(node, "input: ['x' 'y', ]", "expected a string, not ']'");
  expect_error(node, "input: ['x'; 'y']", "expected ',' or ']'");
  expect_error(node, "3: 'x'", "expected a field name, not '3'");
  expect_error(attr, "type: DT_FLAOT", "field 'type' has no value named 'DT_FLAOT'");
  expect_error(attr, "type: 2147483648", "out of range");
  expect_error(attr, "i: 9223372036854775808", "9223372036854775808 is out of range for field 'i'");
  expect_error(attr, "i: 18446744073709551616", "expected an integer");
  expect_error(attr, "i: 1.0", "expected an integer");
  expect_error(attr, "i: 08", "expected an integer");
  expect_error(attr, "i: 0x", "expected an integer");
  expect_error(attr, "i: 12ab", "expected an integer, not '12ab'");
  expect_error(attr, "f: 0x10", "expected a number");
  expect_error(attr, "f: 010", "expected a number");
  expect_error(attr, "f: 1e", "expected a number");
  expect_error(attr, "f: 1..5", "expected a number");
  expect_error(attr, "f: 1..5e400", "expected a number");
  expect_error(attr, "f: high", "expected a number");
  expect_error(attr, "f: --1", "expected a number");
  expect_error(attr, "b: 2", "out of range");
  expect_error(attr, "b: yes", "expected true or false");
  expect_error(&weir_message_tensor, "uint32_val: -1", "out of range");
  expect_error(&weir_message_tensor, "uint32_val: 4294967296", "out of range");
}

static void test_depth(void** state) {
  (void)state;
  for (int depth = 100; depth <= 101; ++depth) {
    weir_strbuf_t text = {0};
    weir_strbuf_t out = {0};
    weir_strbuf_puts(&text, "experimental_type {");
    for (int i = 1; i < depth; ++i) weir_strbuf_puts(&text, "args{");
    for (int i = 0; i < depth; ++i) weir_strbuf_putc(&text, '}');
    weir_status_t* status = weir_text_parse(&weir_message_node_def, weir_strbuf_view(&text), &out);
    assert_int_equal(weir_status_code(status), depth == 100 ? WEIR_OK : WEIR_INVALID_ARGUMENT);
    weir_status_destroy(status);
    weir_strbuf_free(&text);
    weir_strbuf_free(&out);
  }
  weir_strbuf_t wire = {0};
  for (int i = 0; i < 101; ++i) {
    weir_strbuf_t outer = {0};
    weir_wire_put_bytes(&outer, i == 100 ? 7 : 2, wire.data, wire.size);
    weir_strbuf_free(&wire);
    wire = outer;
  }
  weir_strbuf_t out = {0};
  weir_status_t* status = weir_text_print(&weir_message_node_def, weir_strbuf_view(&wire), &out);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "nested deeper than 100"));
  weir_status_destroy(status);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&out);
}

static void expect_wire(const weir_message_t* message, weir_view_t wire, const char* text) {
  weir_strbuf_t out = {0};
  if (weir_status_report(weir_text_print(message, wire, &out))) fail();
  assert_string_equal(out.data ? out.data : "", text);
  weir_strbuf_free(&out);
}
#define WIRE(text) weir_view(text, sizeof(text) - 1)

static void test_print_merges(void** state) {
  (void)state;
  // The last of a singular field and of a oneof counts; messages merge; fields print by number.
  expect_wire(&weir_message_attr_value, WIRE("\x18\x01\x18\x02"), "i: 2\n");
  expect_wire(&weir_message_attr_value, WIRE("\x18\x01\x28\x00"), "b: false\n");
  expect_wire(&weir_message_attr_value, WIRE("\x0a\x02\x18\x01\x0a\x02\x18\x02"),
              "list {\n  i: 1\n  i: 2\n}\n");
  expect_wire(&weir_message_attr_value, WIRE("\x0a\x02\x18\x01\x18\x05\x0a\x02\x18\x02"),
              "list {\n  i: 2\n}\n");
  // Of equal map keys the last counts, and its value alone.
  expect_wire(&weir_message_node_def,
              WIRE("\x2a\x07\x0a\x01k\x12\x02\x18\x01\x12\x01o\x2a\x07\x0a\x01k\x12\x02\x18\x02"),
              "op: \"o\"\nattr {\n  key: \"k\"\n  value {\n    i: 2\n  }\n}\n");
  // Packed and single values of one field.
  expect_wire(&weir_message_tensor, WIRE("\x3a\x02\x01\x02\x08\x03\x38\x03"),
              "dtype: DT_INT32\nint_val: 1\nint_val: 2\nint_val: 3\n");
  // A string with bytes that are no UTF-8.
  expect_wire(&weir_message_node_def, WIRE("\x0a\x03\xc3\xa9\xff"), "name: \"\xc3\xa9\\377\"\n");
}

static void test_print_unknown(void** state) {
  (void)state;
  expect_wire(&weir_message_tensor_shape,
              WIRE("\xa0\x06\x05"  // 100: varint
                   "\x18\x01"      // unknown_rank
                   "\xa5\x06\x01\x00\x00\x00"
                   "\xa1\x06\x02\x00\x00\x00\x00\x00\x00\x00"
                   "\xa2\x06\x02\x08\x01"  // looks like a message
                   "\xa2\x06\x02\xff\xff"  // does not
                   "\xa2\x06\x00"
                   "\xa3\x06\x08\x07\xa4\x06"  // a group
                   "\x1d\x01\x00\x00\x00"),    // unknown_rank as fixed32 is none of ours
              "unknown_rank: true\n"
              "100: 5\n"
              "100: 0x00000001\n"
              "100: 0x0000000000000002\n"
              "100 {\n  1: 1\n}\n"
              "100: \"\\377\\377\"\n"
              "100: \"\"\n"
              "100 {\n  1: 7\n}\n"
              "3: 0x00000001\n");
}

static void test_print_malformed(void** state) {
  (void)state;
  static const char* const kBad[] = {"\x0a\x7f", "\x0a\x02\x0a\x05", "\x0a\x04\x2a\x02\x0a\x05"};
  static const size_t kSizes[] = {2, 4, 6};
  for (size_t i = 0; i < WEIR_COUNT_OF(kBad); ++i) {
    weir_strbuf_t out = {0};
    weir_strbuf_puts(&out, "kept");
    weir_status_t* status =
        weir_text_print(&weir_message_graph_def, weir_view(kBad[i], kSizes[i]), &out);
    assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
    assert_string_equal(out.data, "kept");
    weir_status_destroy(status);
    weir_strbuf_free(&out);
  }
  weir_strbuf_t out = {0};
  weir_status_t* status = weir_text_print(&weir_message_tensor, WIRE("\x2a\x03xyz"), &out);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "malformed packed field 'float_val'"));
  weir_status_destroy(status);
  weir_strbuf_free(&out);
}

static void test_out_of_memory(void** state) {
  (void)state;
  static const char kText[] =
      "node { name: 'abc' attr { key: 'b' value { list { i: [1, 2, 3] s: ['x', 'y'] } } }\n"
      "  attr { key: 'a' value { tensor { dtype: DT_FLOAT float_val: 1 } } } }";
  bool was_whole = false;
  for (int64_t n = 1; !was_whole; ++n) {
    weir_strbuf_t wire = {0};
    weir_strbuf_t out = {0};
    weir_alloc_fail_at(n, true);
    weir_status_t* status = weir_text_parse(&weir_message_graph_def, weir_view_of(kText), &wire);
    if (!status) status = weir_text_print(&weir_message_graph_def, weir_strbuf_view(&wire), &out);
    weir_alloc_fail_at(0, false);
    was_whole = status == NULL;
    if (!was_whole) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    weir_strbuf_free(&wire);
    weir_strbuf_free(&out);
    assert_true(n < 1000);
  }
}

// ---- the tables ----

typedef struct visited_t {
  const weir_message_t* messages[128];
  size_t count;
} visited_t;

// The printer walks tables in order, and parser and printer keep a bit a field.
static void check_table(visited_t* visited, const weir_message_t* message) {
  for (size_t i = 0; i < visited->count; ++i) {
    if (visited->messages[i] == message) return;
  }
  assert_true(visited->count < WEIR_COUNT_OF(visited->messages));
  visited->messages[visited->count++] = message;
  uint32_t before = 0;
  size_t count = 0;
  for (const weir_field_t* field = message->fields; field->number != 0; ++field, ++count) {
    assert_true(field->number > before);
    before = field->number;
    assert_non_null(field->name);
    assert_int_equal(field->message != NULL, field->type == WEIR_FIELD_MESSAGE);
    assert_int_equal(field->enum_values != NULL, field->type == WEIR_FIELD_ENUM);
    assert_false(field->is_repeated && field->oneof != 0);
    assert_ptr_equal(weir_message_field(message, field->number), field);
    assert_ptr_equal(weir_message_field_named(message, weir_view_of(field->name)), field);
    if (field->is_map) {
      assert_true(field->is_repeated);
      assert_string_equal(field->message->fields[0].name, "key");
      assert_string_equal(field->message->fields[1].name, "value");
    }
    if (field->message) check_table(visited, field->message);
  }
  assert_true(count <= 64);
}

static void test_tables(void** state) {
  (void)state;
  static const weir_message_t* const kRoots[] = {
      &weir_message_graph_def, &weir_message_node_def,        &weir_message_attr_value,
      &weir_message_tensor,    &weir_message_tensor_shape,    &weir_message_op_def,
      &weir_message_op_list,   &weir_message_function_def,    &weir_message_run_metadata,
      &weir_message_event,     &weir_message_bundle_header,   &weir_message_bundle_entry,
      &weir_message_saver_def, &weir_message_checkpoint_state};
  visited_t visited = {.count = 0};
  for (size_t i = 0; i < WEIR_COUNT_OF(kRoots); ++i) check_table(&visited, kRoots[i]);
  assert_true(visited.count > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_graph),           cmocka_unit_test(test_lists_of_messages),
      cmocka_unit_test(test_presence),        cmocka_unit_test(test_scalars),
      cmocka_unit_test(test_reals),           cmocka_unit_test(test_strings),
      cmocka_unit_test(test_errors),          cmocka_unit_test(test_depth),
      cmocka_unit_test(test_print_merges),    cmocka_unit_test(test_print_unknown),
      cmocka_unit_test(test_print_malformed), cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_tables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
