// descriptor_test.c — Descriptors: what they say of messages, what is refused, and memory that
// ends.
#include "wire/descriptor.h"

#include "base/alloc.h"
#include "testing/tensors.h"
#include "wire/wire.h"

enum { INT32 = 5, MESSAGE = 11, ENUM = 14 };                   // FieldDescriptorProto.Type
enum { OPTIONAL = 1, REPEATED = 3 };                           // and its Label
enum { NESTED = 3, IN_ENUM = 4, EXTENSION = 6 };               // DescriptorProto
enum { FILE_MESSAGE = 4, FILE_ENUM = 5, FILE_EXTENSION = 7 };  // FileDescriptorProto
enum { MANY = 6000 };  // more than the largest block of an arena holds

typedef struct field_t {
  const char* name;
  int64_t number;
  int64_t type;
  const char* type_name;
  const char* value;     // the default
  const char* extendee;  // of an extension
} field_t;

static void put_field(weir_strbuf_t* out, uint32_t place, field_t field) {
  size_t begin = weir_wire_begin(out, place);
  weir_wire_put_string(out, 1, field.name);
  if (field.extendee) weir_wire_put_string(out, 2, field.extendee);
  weir_wire_put_int(out, 3, field.number);
  weir_wire_put_int(out, 4, OPTIONAL);
  weir_wire_put_int(out, 5, field.type);
  if (field.type_name) weir_wire_put_string(out, 6, field.type_name);
  if (field.value) weir_wire_put_string(out, 7, field.value);
  weir_wire_end(out, begin);
}

static void put_enum(weir_strbuf_t* out, uint32_t place, const char* name) {
  size_t begin = weir_wire_begin(out, place);
  weir_wire_put_string(out, 1, name);
  for (int i = 0; i < 2; ++i) {
    size_t value = weir_wire_begin(out, 2);
    weir_wire_put_string(out, 1, i == 0 ? "NONE" : "SOME");
    weir_wire_put_int(out, 2, 4 * i + 1);
    weir_wire_end(out, value);
  }
  weir_wire_end(out, begin);
}

static size_t begin_file(weir_strbuf_t* out, const char* name, const char* syntax) {
  size_t file = weir_wire_begin(out, 1);
  weir_wire_put_string(out, 1, name);
  weir_wire_put_string(out, 2, "p");
  if (syntax) weir_wire_put_string(out, 12, syntax);
  return file;
}

static weir_status_t* create(weir_strbuf_t* set, weir_descriptors_t** out_all) {
  assert_false(set->failed);
  return weir_descriptors_create(weir_strbuf_view(set), out_all);
}

// message M { fields x, e, n; message N; enum E; |count| extensions of M }, and extensions,
// messages and an enum beside it.
static void put_set(weir_strbuf_t* out, int count) {
  char name[16];
  size_t file = begin_file(out, "a.proto", NULL);
  size_t message = weir_wire_begin(out, FILE_MESSAGE);
  weir_wire_put_string(out, 1, "M");
  put_field(out, 2, (field_t){"x", 1, INT32, NULL, "-7", NULL});
  put_field(out, 2, (field_t){"n", 3, MESSAGE, "N", NULL, NULL});
  put_field(out, 2, (field_t){"e", 2, ENUM, ".p.M.E", "SOME", NULL});
  size_t nested = weir_wire_begin(out, NESTED);
  weir_wire_put_string(out, 1, "N");
  weir_wire_end(out, nested);
  put_enum(out, IN_ENUM, "E");
  for (int i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "i%d", i);
    put_field(out, EXTENSION, (field_t){name, 10000 + i, INT32, NULL, NULL, i ? ".p.M" : "M"});
  }
  weir_wire_end(out, message);
  for (int i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "o%d", i);
    put_field(out, FILE_EXTENSION, (field_t){name, 20000 + i, INT32, NULL, NULL, ".p.M"});
    size_t other = weir_wire_begin(out, FILE_MESSAGE);
    weir_wire_put_string(out, 1, name);
    weir_wire_end(out, other);
    snprintf(name, sizeof name, "E%d", i);
    put_enum(out, FILE_ENUM, name);
  }
  weir_wire_end(out, file);
}

// That nothing of put_set's is missing.
static void check_set(const weir_descriptors_t* all, int count) {
  const weir_proto_message_t* m = weir_descriptors_find(all, weir_view_of("p.M"));
  assert_non_null(m);
  assert_int_equal(m->field_count, 3 + 2 * count);
  const weir_proto_field_t* x = weir_proto_field(m, 1);
  assert_string_equal(x->row->name, "x");
  assert_string_equal(weir_proto_type_name(x), "int32");
  assert_int_equal((int64_t)x->default_bits, -7);
  const weir_proto_field_t* e = weir_proto_field_named(m, weir_view_of("e"));
  assert_int_equal(e->row->number, 2);
  assert_int_equal(e->default_bits, 5);
  assert_true(e->is_closed && !e->is_extension);
  const weir_proto_field_t* n = weir_proto_field(m, 3);
  assert_ptr_equal(n->message, weir_descriptors_find(all, weir_view_of("p.M.N")));
  char name[16];
  for (int i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "p.M.i%d", i);
    assert_string_equal(weir_proto_field(m, 10000 + (uint32_t)i)->row->name, name);
    assert_true(weir_proto_field(m, 10000 + (uint32_t)i)->is_extension);
    snprintf(name, sizeof name, "p.o%d", i);
    assert_string_equal(weir_proto_field(m, 20000 + (uint32_t)i)->row->name, name);
    assert_non_null(weir_descriptors_find(all, weir_view_of(name)));
  }
  assert_null(weir_proto_field(m, 4));
  assert_null(weir_proto_field_named(m, weir_view_of("y")));
  assert_null(weir_descriptors_find(all, weir_view_of("p.M.E")));  // no message
}

static void test_described(void** state) {
  (void)state;
  for (int count = 0; count < 3; ++count) {
    weir_strbuf_t set = {0};
    weir_descriptors_t* all = NULL;
    put_set(&set, count);
    check_ok(create(&set, &all));
    weir_strbuf_free(&set);  // they have a copy
    check_set(all, count);
    weir_descriptors_destroy(all);
  }
}

// Every message has its fields, and each field of a message the message, |depth| levels down.
static void check_complete(const weir_proto_message_t* message, int depth) {
  assert_non_null(message);
  for (size_t i = 0; i < message->field_count; ++i) {
    const weir_proto_field_t* field = &message->fields[i];
    assert_non_null(field->row);
    if (depth > 0 && field->row->message) check_complete(field->message, depth - 1);
  }
}

// Whatever allocation fails, it is said; what is created lacks nothing.
static void test_out_of_memory(void** state) {
  (void)state;
  static const char* const kLocal[] = {
      "tensorflow.GraphDef",          "tensorflow.OpList",
      "tensorflow.RunMetadata",       "tensorflow.Event",
      "tensorflow.BundleHeaderProto", "tensorflow.BundleEntryProto",
      "tensorflow.SaverDef",          "tensorflow.CheckpointState",
      "tensorflow.SequenceExample"};
  weir_strbuf_t set = {0};
  put_set(&set, MANY);
  for (int64_t n = 1;; ++n) {
    weir_descriptors_t* all = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = create(&set, &all);
    weir_alloc_fail_at(0, false);
    if (!status) {
      check_set(all, MANY);
      weir_descriptors_destroy(all);
      assert_true(n > 10);
      break;
    }
    check_error(status, WEIR_RESOURCE_EXHAUSTED, "");
  }
  weir_strbuf_free(&set);
  for (int64_t n = 1;; ++n) {
    weir_descriptors_t* all = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_descriptors_create_local(&all);
    weir_alloc_fail_at(0, false);
    if (!status) {
      for (size_t i = 0; i < WEIR_COUNT_OF(kLocal); ++i)
        check_complete(weir_descriptors_find(all, weir_view_of(kLocal[i])), 5);
      weir_descriptors_destroy(all);
      break;
    }
    check_error(status, WEIR_RESOURCE_EXHAUSTED, "");
  }
}

// Consumes |take_set|.
static void check_refused(weir_strbuf_t* take_set, weir_code_t code, const char* text) {
  weir_descriptors_t* all = NULL;
  check_error(create(take_set, &all), code, text);
  weir_strbuf_free(take_set);
  *take_set = (weir_strbuf_t){0};
}

// A file whose message M has one field, and an extension if |extension| has a name.
static void refuse_field(field_t field, field_t extension, const char* text) {
  weir_strbuf_t set = {0};
  size_t file = begin_file(&set, "a.proto", NULL);
  size_t message = weir_wire_begin(&set, FILE_MESSAGE);
  weir_wire_put_string(&set, 1, "M");
  put_enum(&set, IN_ENUM, "E");
  put_field(&set, 2, field);
  weir_wire_end(&set, message);
  if (extension.name) put_field(&set, FILE_EXTENSION, extension);
  weir_wire_end(&set, file);
  check_refused(&set, WEIR_INVALID_ARGUMENT, text);
}

static void test_bad_fields(void** state) {
  (void)state;
  const field_t none = {0}, good = {"x", 1, INT32, NULL, NULL, NULL};
  refuse_field((field_t){"", 1, INT32, NULL, NULL, NULL}, none, "a field of p.M has no name");
  refuse_field((field_t){"x", 0, INT32, NULL, NULL, NULL}, none, "that cannot be");
  refuse_field((field_t){"x", 1 << 29, INT32, NULL, NULL, NULL}, none, "that cannot be");
  refuse_field((field_t){"x", 1, 19, NULL, NULL, NULL}, none, "that cannot be");
  refuse_field((field_t){"x", 1, MESSAGE, "Q", NULL, NULL}, none, "the type of \"x\"");
  refuse_field((field_t){"x", 1, MESSAGE, "E", NULL, NULL}, none, "is not defined");
  refuse_field((field_t){"x", 1, ENUM, "M", NULL, NULL}, none, "is not defined");
  refuse_field((field_t){"x", 1, INT32, NULL, "seven", NULL}, none, "cannot have the default");
  refuse_field((field_t){"x", 1, MESSAGE, "M", "1", NULL}, none, "cannot have a default");
  refuse_field(good, (field_t){"y", 1, INT32, NULL, NULL, ".p.M"}, "have number 1");
  refuse_field(good, (field_t){"y", 2, INT32, NULL, NULL, ".p.Q"},
               "\".p.Q\", which is to be extended");
  refuse_field(good, (field_t){"y", 2, INT32, NULL, NULL, "M.E"}, "is no message");
}

// Of a oneof at most one member is there.
static void test_repeated_fields_in_a_oneof(void** state) {
  (void)state;
  enum { LABEL = 4, TYPE = 5, ONEOF = 9, REQUIRED = 2 };
  for (int label = REQUIRED; label <= REPEATED; ++label) {
    weir_strbuf_t set = {0};
    size_t file = begin_file(&set, "a.proto", NULL);
    size_t message = weir_wire_begin(&set, FILE_MESSAGE);
    weir_wire_put_string(&set, 1, "M");
    size_t field = weir_wire_begin(&set, 2);
    weir_wire_put_string(&set, 1, "x");
    weir_wire_put_int(&set, 3, 1);
    weir_wire_put_int(&set, LABEL, label);
    weir_wire_put_int(&set, TYPE, INT32);
    weir_wire_put_int(&set, ONEOF, 0);
    weir_wire_end(&set, field);
    weir_wire_end(&set, message);
    weir_wire_end(&set, file);
    check_refused(&set, WEIR_INVALID_ARGUMENT, "\"x\" of p.M is in a oneof and not optional");
  }
}

static void test_bad_files(void** state) {
  (void)state;
  weir_strbuf_t set = {0};
  for (int i = 0; i < 2; ++i) {  // the same type in two files
    char name[16];
    snprintf(name, sizeof name, "%d.proto", i);
    size_t file = begin_file(&set, name, "proto2");
    put_enum(&set, FILE_ENUM, "E");
    weir_wire_end(&set, file);
  }
  check_refused(&set, WEIR_INVALID_ARGUMENT, "\"p.E\" is already defined in file \"1.proto\"");
  weir_wire_end(&set, begin_file(&set, "a.proto", "proto9"));
  check_refused(&set, WEIR_INVALID_ARGUMENT, "a.proto has syntax \"proto9\"");
  weir_wire_end(&set, begin_file(&set, "a.proto", "editions"));
  check_refused(&set, WEIR_UNIMPLEMENTED, "editions");
  size_t file = begin_file(&set, "a.proto", "proto3");
  weir_wire_put_string(&set, 3, "b.proto");
  weir_wire_end(&set, file);
  check_refused(&set, WEIR_INVALID_ARGUMENT, "imports \"b.proto\", which has not been loaded");
  file = begin_file(&set, "a.proto", NULL);
  put_enum(&set, FILE_ENUM, "");
  weir_wire_end(&set, file);
  check_refused(&set, WEIR_INVALID_ARGUMENT, "a type without a name");
  file = begin_file(&set, "a.proto", NULL);
  weir_wire_put_bytes(&set, FILE_ENUM,
                      "\x0a\x01"
                      "E",
                      3);
  weir_wire_end(&set, file);
  check_refused(&set, WEIR_INVALID_ARGUMENT, "enum p.E has no values");
}

// Messages within messages: |depth| of them.
static void put_nested(weir_strbuf_t* out, int depth) {
  size_t begins[64];
  size_t file = begin_file(out, "a.proto", NULL);
  for (int i = 0; i < depth; ++i) {
    begins[i] = weir_wire_begin(out, i == 0 ? FILE_MESSAGE : NESTED);
    weir_wire_put_string(out, 1, "N");
  }
  for (int i = depth; i-- > 0;) weir_wire_end(out, begins[i]);
  weir_wire_end(out, file);
}

static void test_depth(void** state) {
  (void)state;
  weir_strbuf_t set = {0};
  weir_descriptors_t* all = NULL;
  put_nested(&set, 32);
  check_ok(create(&set, &all));
  weir_descriptors_destroy(all);
  weir_strbuf_free(&set);
  set = (weir_strbuf_t){0};
  put_nested(&set, 33);
  check_refused(&set, WEIR_INVALID_ARGUMENT, "nested too deep");
}

// Bytes that end early are refused at every level.
static void test_malformed(void** state) {
  (void)state;
  static const struct {
    uint32_t path[4];  // the fields that lead to the message
    const char* name;
  } kLevels[] = {{{0}, "FileDescriptorSet"},
                 {{1}, "FileDescriptorProto"},
                 {{1, FILE_MESSAGE}, "DescriptorProto"},
                 {{1, FILE_MESSAGE, NESTED}, "DescriptorProto"},
                 {{1, FILE_MESSAGE, 2}, "FieldDescriptorProto"},
                 {{1, FILE_MESSAGE, 2, 8}, "FieldOptions"},
                 {{1, FILE_MESSAGE, IN_ENUM}, "EnumDescriptorProto"},
                 {{1, FILE_ENUM}, "EnumDescriptorProto"},
                 {{1, FILE_ENUM, 2}, "EnumValueDescriptorProto"}};
  for (size_t i = 0; i < WEIR_COUNT_OF(kLevels); ++i) {
    size_t begins[4], depth = 0;
    weir_strbuf_t set = {0};
    char text[64];
    for (; depth < 4 && kLevels[i].path[depth]; ++depth) {
      begins[depth] = weir_wire_begin(&set, kLevels[i].path[depth]);
      weir_wire_put_string(&set, 1, "N");
    }
    weir_strbuf_append(&set, "\x0a\x05", 2);  // five bytes that are not there
    while (depth > 0) weir_wire_end(&set, begins[--depth]);
    snprintf(text, sizeof text, "malformed %s", kLevels[i].name);
    check_refused(&set, WEIR_INVALID_ARGUMENT, text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_described),  cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_bad_fields), cmocka_unit_test(test_repeated_fields_in_a_oneof),
      cmocka_unit_test(test_bad_fields), cmocka_unit_test(test_bad_files),
      cmocka_unit_test(test_depth),      cmocka_unit_test(test_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
