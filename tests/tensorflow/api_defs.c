// api_defs.c — How ops are presented: maps of ApiDefs, their texts, what comes out, byte by byte.
#include "check.h"

// ---- an OpList, written by hand ----

typedef struct bytes_t {
  char data[512];
  size_t size;
} bytes_t;

// A field of less than 128 bytes.
static void put(bytes_t* out, int field, const void* data, size_t size) {
  out->data[out->size++] = (char)(field << 3 | 2);
  out->data[out->size++] = (char)size;
  memcpy(out->data + out->size, data, size);
  out->size += size;
}
static void put_text(bytes_t* out, int field, const char* text) {
  put(out, field, text, strlen(text));
}
static void put_arg(bytes_t* out, int field, const char* name, const char* description) {
  bytes_t arg = {"", 0};
  put_text(&arg, 1, name);
  if (description) put_text(&arg, 2, description);
  put(out, field, arg.data, arg.size);
}

static TF_Buffer* op_list(void) {
  bytes_t op = {"", 0};
  put_text(&op, 1, "Mix");
  put_arg(&op, 2, "a", "one of `a` and `b`");
  put_arg(&op, 2, "b", NULL);
  put_arg(&op, 3, "c", "not `d`");
  bytes_t attr = {"", 0};
  put_text(&attr, 1, "N");
  put_text(&attr, 2, "int");
  put(&attr, 3, "\x18\x05", 2);  // AttrValue {i: 5}
  put_text(&attr, 4, "how many");
  put(&op, 4, attr.data, attr.size);
  bytes_t list = {"", 0};
  list.data[list.size++] = 1 << 3 | 2;
  list.data[list.size++] = (char)op.size;
  memcpy(list.data + list.size, op.data, op.size);
  list.size += op.size;
  bytes_t other = {"", 0};
  put_text(&other, 1, "Other");
  put_text(&other, 5, "a summary of `N`");
  put_text(&other, 6, "a description");
  put(&list, 1, other.data, other.size);
  return TF_NewBufferFromString(list.data, list.size);
}

// ---- what is asked ----

static void get(TF_ApiDefMap* map, const char* name, TF_Status* s) {
  TF_Buffer* def = TF_ApiDefMapGet(map, name, strlen(name), s);
  printf("%s: %d", name, TF_GetCode(s));
  for (size_t i = 0; def && i < def->length; ++i) {
    const unsigned char c = ((const unsigned char*)def->data)[i];
    if (c >= ' ' && c < 0x7f && c != '\\') printf("%c", c);
    else printf("\\%02x", c);
  }
  printf("%s\n", def ? "" : " nothing");
  TF_DeleteBuffer(def);
}

static void put_def(TF_ApiDefMap* map, const char* what, const char* text, TF_Status* s) {
  TF_ApiDefMapPut(map, text, strlen(text), s);
  say(what, s, 0);
}

static TF_ApiDefMap* new_map(TF_Status* s) {
  TF_Buffer* ops = op_list();
  TF_ApiDefMap* map = TF_NewApiDefMap(ops, s);
  TF_DeleteBuffer(ops);
  OK(s);
  return map;
}

static void as_defined(TF_Status* s) {
  TF_ApiDefMap* map = new_map(s);
  get(map, "Mix", s);
  get(map, "Other", s);
  get(map, "None", s);
  put_def(map, "too late", "op { graph_op_name: 'Mix' visibility: HIDDEN }", s);
  TF_DeleteApiDefMap(map);
}

static void changed(TF_Status* s) {
  TF_ApiDefMap* map = new_map(s);
  put_def(
      map, "names",
      "op {\n  graph_op_name: \"Mix\"\n  endpoint { name: \"mix\" }\n"
      "  endpoint { name: \"old.mix\" deprecated: true deprecation_version: 3 }\n"
      "  in_arg { name: \"a\" rename_to: \"first\" }\n  out_arg { name: \"c\" description: \"`c`\" "
      "}\n  attr { name: \"N\" rename_to: \"count\" default_value { i: 7 } }\n"
      "  arg_order: \"b\"\n  arg_order: \"a\"\n  visibility: HIDDEN\n}\n",
      s);
  put_def(map, "lines",
          "op {\n  graph_op_name: \"Mix\"\n  summary: \"mixes `a`\"\n  description: <<END\n"
          "Two lines with \"quotes\" of `N`,\n  and \\ more.\nEND\n"
          "  description_prefix: \"before\"\n}\n",
          s);
  put_def(map, "no marker",
          "op { graph_op_name: 'Other' summary: 'x << y'\n description: 'and: <<END' }\n", s);
  put_def(map, "again", "op { graph_op_name: 'Mix' description_suffix: 'after' }", s);
  put_def(map, "another op", "op { graph_op_name: 'None' summary: 'nothing' }", s);
  get(map, "Mix", s);
  get(map, "Other", s);
  TF_DeleteApiDefMap(map);
}

static void refused(TF_Status* s) {
  TF_ApiDefMap* map = new_map(s);
  put_def(map, "no text", "op { graph_op_name: ", s);
  put_def(map, "no field", "op { name: 'Mix' }", s);
  put_def(map, "no argument", "op { graph_op_name: 'Mix' in_arg { name: 'z' summary: '' } }", s);
  put_def(map, "no input", "op { graph_op_name: 'Mix' in_arg { name: 'c' } }", s);
  put_def(map, "no attribute", "op { graph_op_name: 'Mix' attr { name: 'M' } }", s);
  put_def(map, "order too short", "op { graph_op_name: 'Mix' arg_order: 'a' }", s);
  put_def(map, "order of others", "op { graph_op_name: 'Mix' arg_order: 'a' arg_order: 'a' }", s);
  put_def(map, "nothing", "", s);
  get(map, "Mix", s);
  TF_DeleteApiDefMap(map);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  as_defined(s);
  changed(s);
  refused(s);
  TF_Buffer* bad = TF_NewBufferFromString("\x0a\x7f", 2);
  TF_ApiDefMap* map = TF_NewApiDefMap(bad, s);
  printf("a list that is none: %d", map != NULL);
  say("", s, 0);
  TF_DeleteApiDefMap(map);
  TF_DeleteBuffer(bad);
  TF_DeleteStatus(s);
  return 0;
}
