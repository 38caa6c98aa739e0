// api_def_text.c — ApiDefs messages in text format, with texts of several lines as they are.
#include "tensorflow/api_def.h"
#include "wire/text.h"

#define TEXT(NUMBER, NAME) \
  { .number = (NUMBER), .name = (NAME), .type = WEIR_FIELD_STRING }
#define PARTS(NUMBER, NAME, MESSAGE)                                                  \
  {                                                                                   \
    .number = (NUMBER), .name = (NAME), .type = WEIR_FIELD_MESSAGE, .is_repeated = 1, \
    .message = &(MESSAGE)                                                             \
  }
#define END \
  { .number = 0 }

static const weir_enum_value_t visibilities[] = {
    {"DEFAULT_VISIBILITY", 0}, {"VISIBLE", 1}, {"SKIP", 2}, {"HIDDEN", 3}, {NULL, 0}};

static const weir_field_t endpoint_fields[] = {
    TEXT(1, "name"),
    {.number = 3, .name = "deprecated", .type = WEIR_FIELD_BOOL},
    {.number = 4, .name = "deprecation_version", .type = WEIR_FIELD_INT32},
    END};
static const weir_message_t endpoint = {"ApiDef.Endpoint", endpoint_fields};

static const weir_field_t arg_fields[] = {TEXT(1, "name"), TEXT(2, "rename_to"),
                                          TEXT(3, "description"), END};
static const weir_message_t arg = {"ApiDef.Arg", arg_fields};

static const weir_field_t attr_fields[] = {TEXT(1, "name"),
                                           TEXT(2, "rename_to"),
                                           {.number = 3,
                                            .name = "default_value",
                                            .type = WEIR_FIELD_MESSAGE,
                                            .message = &weir_message_attr_value},
                                           TEXT(4, "description"),
                                           END};
static const weir_message_t attr = {"ApiDef.Attr", attr_fields};

static const weir_field_t api_def_fields[] = {
    TEXT(1, "graph_op_name"),
    {.number = 2, .name = "visibility", .type = WEIR_FIELD_ENUM, .enum_values = visibilities},
    PARTS(3, "endpoint", endpoint),
    PARTS(4, "in_arg", arg),
    PARTS(5, "out_arg", arg),
    PARTS(6, "attr", attr),
    TEXT(7, "summary"),
    TEXT(8, "description"),
    TEXT(9, "description_prefix"),
    TEXT(10, "description_suffix"),
    {.number = 11, .name = "arg_order", .type = WEIR_FIELD_STRING, .is_repeated = 1},
    TEXT(12, "deprecation_message"),
    {.number = 13, .name = "deprecation_version", .type = WEIR_FIELD_INT32},
    END};
static const weir_message_t api_def = {"ApiDef", api_def_fields};

static const weir_field_t api_defs_fields[] = {PARTS(1, "op", api_def), END};
static const weir_message_t api_defs = {"ApiDefs", api_defs_fields};

// ---- texts of several lines ----

static void put_escaped(weir_strbuf_t* out, weir_view_t line) {
  for (size_t i = 0; i < line.size; ++i) {
    const unsigned char c = (unsigned char)line.data[i];
    if (c == '"' || c == '\\') weir_strbuf_putc(out, '\\');
    if (c >= ' ' && c < 0x7f) weir_strbuf_putc(out, (char)c);
    else weir_strbuf_printf(out, "\\%03o", c);
  }
}

// The word of "field: <<word", before which |line| is cut off; empty: it is no such line.
static weir_view_t cut_marker(weir_view_t* line) {
  weir_view_t rest = *line;
  weir_view_t field;
  if (!memchr(line->data, ':', line->size)) return weir_view("", 0);
  weir_view_next(&rest, ':', &field);
  rest = weir_view_trim(rest);
  if (!weir_view_starts_with(rest, "<<")) return weir_view("", 0);
  line->size = field.size + 1;
  return weir_view_trim(weir_view(rest.data + 2, rest.size - 2));
}

// Puts the lines up to |marker| as one string; what follows that in its line stays.
static weir_status_t* put_lines(weir_view_t* rest, weir_view_t marker, weir_strbuf_t* out) {
  weir_view_t line;
  bool is_first = true;
  weir_strbuf_putc(out, '"');
  while (rest->size && weir_view_next(rest, '\n', &line)) {
    if (line.size >= marker.size && !memcmp(line.data, marker.data, marker.size)) {
      weir_strbuf_putc(out, '"');
      weir_strbuf_append(out, line.data + marker.size, line.size - marker.size);
      weir_strbuf_putc(out, '\n');
      return NULL;
    }
    if (!is_first) weir_strbuf_puts(out, "\\n");
    is_first = false;
    put_escaped(out, line);
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "a text of several lines does not end by '%.*s'",
                     WEIR_VIEW_ARG(marker));
}

weir_status_t* tf_api_defs_from_text(weir_view_t text, weir_strbuf_t* out) {
  weir_strbuf_t plain = {0};
  weir_view_t rest = text;
  weir_view_t line;
  weir_status_t* status = NULL;
  while (!status && rest.size && weir_view_next(&rest, '\n', &line)) {
    const weir_view_t marker = cut_marker(&line);
    weir_strbuf_append(&plain, line.data, line.size);
    if (marker.size) status = put_lines(&rest, marker, &plain);
    else weir_strbuf_putc(&plain, '\n');
  }
  if (!status) status = weir_strbuf_finish(&plain);
  if (!status) status = weir_text_parse(&api_defs, weir_strbuf_view(&plain), out);
  weir_strbuf_free(&plain);
  return status;
}
