// descriptor_fields.c — What descriptors say of fields: types, defaults, how they are written.
#include <stdlib.h>

#include "wire/descriptor.h"
#include "wire/descriptor_internal.h"
#include "wire/text.h"

// Field numbers of descriptor.proto.
enum {
  FIELD_NAME = 1,
  FIELD_NUMBER = 3,
  FIELD_LABEL = 4,
  FIELD_TYPE = 5,
  FIELD_TYPE_NAME = 6,
  FIELD_DEFAULT = 7,
  FIELD_OPTIONS = 8,
  FIELD_ONEOF = 9,
  FIELD_PROTO3_OPTIONAL = 17
};
enum { OPTIONS_PACKED = 2 };
enum { LABEL_OPTIONAL = 1, LABEL_REQUIRED = 2, LABEL_REPEATED = 3 };
enum { kMaxNumber = 536870911, kMaxOneofs = 250 };

#define BAD(...) WEIR_STATUS(INVALID_ARGUMENT, "Failed to load FileDescriptorProto: " __VA_ARGS__)

// By FieldDescriptorProto.Type, from 1 on.
static const struct {
  const char* name;
  weir_field_type_t type;
} kTypes[] = {{"", WEIR_FIELD_INT64},
              {"double", WEIR_FIELD_DOUBLE},
              {"float", WEIR_FIELD_FLOAT},
              {"int64", WEIR_FIELD_INT64},
              {"uint64", WEIR_FIELD_UINT64},
              {"int32", WEIR_FIELD_INT32},
              {"fixed64", WEIR_FIELD_FIXED64},
              {"fixed32", WEIR_FIELD_FIXED32},
              {"bool", WEIR_FIELD_BOOL},
              {"string", WEIR_FIELD_STRING},
              {"group", WEIR_FIELD_GROUP},
              {"message", WEIR_FIELD_MESSAGE},
              {"bytes", WEIR_FIELD_BYTES},
              {"uint32", WEIR_FIELD_UINT32},
              {"enum", WEIR_FIELD_ENUM},
              {"sfixed32", WEIR_FIELD_SFIXED32},
              {"sfixed64", WEIR_FIELD_SFIXED64},
              {"sint32", WEIR_FIELD_SINT32},
              {"sint64", WEIR_FIELD_SINT64}};

const char* weir_proto_type_name(const weir_proto_field_t* field) {
  for (size_t i = 1; i < WEIR_COUNT_OF(kTypes); ++i) {
    if (kTypes[i].type == field->type) return kTypes[i].name;
  }
  return "";
}

// One FieldDescriptorProto.
typedef struct parts_t {
  weir_view_t name, type_name, default_value;
  uint64_t number, label, type, oneof;
  bool has_default, has_oneof, is_optional;  // the last of proto3
  int packed;                                // -1: nothing is said
} parts_t;

static weir_status_t* read_options(weir_view_t bytes, parts_t* parts) {
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.field == OPTIONS_PACKED && r.type == WEIR_WIRE_VARINT) parts->packed = r.value != 0;
  }
  return weir_wire_check(&r, "FieldOptions");
}

static weir_status_t* read_parts(weir_view_t bytes, parts_t* parts) {
  *parts = (parts_t){.name = weir_view("", 0), .type_name = weir_view("", 0), .packed = -1};
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    const bool is_bytes = r.type == WEIR_WIRE_BYTES, is_number = r.type == WEIR_WIRE_VARINT;
    if (is_bytes && r.field == FIELD_NAME) parts->name = r.bytes;
    if (is_bytes && r.field == FIELD_TYPE_NAME) parts->type_name = r.bytes;
    if (is_bytes && r.field == FIELD_DEFAULT) parts->default_value = r.bytes;
    if (is_bytes && r.field == FIELD_DEFAULT) parts->has_default = true;
    if (is_bytes && r.field == FIELD_OPTIONS) WEIR_TRY(read_options(r.bytes, parts));
    if (is_number && r.field == FIELD_NUMBER) parts->number = r.value;
    if (is_number && r.field == FIELD_LABEL) parts->label = r.value;
    if (is_number && r.field == FIELD_TYPE) parts->type = r.value;
    if (is_number && r.field == FIELD_ONEOF) parts->oneof = r.value, parts->has_oneof = true;
    if (is_number && r.field == FIELD_PROTO3_OPTIONAL) parts->is_optional = r.value != 0;
  }
  return weir_wire_check(&r, "FieldDescriptorProto");
}

weir_status_t* weir_descriptors_resolve(const weir_descriptors_t* all, const char* scope,
                                        weir_view_t name, weir_proto_type_t** out_type) {
  weir_strbuf_t full = {0};
  if (name.size > 0 && name.data[0] == '.') {
    *out_type = weir_map_find(&all->types, weir_view(name.data + 1, name.size - 1));
    return NULL;
  }
  for (size_t size = strlen(scope);; --size) {  // outwards, a part of the scope at a time
    if (size > 0 && scope[size] != '.' && scope[size] != '\0') continue;
    full.size = 0;
    weir_strbuf_append(&full, scope, size);
    if (size > 0) weir_strbuf_putc(&full, '.');
    weir_strbuf_append(&full, name.data, name.size);
    *out_type = full.failed ? NULL : weir_map_find(&all->types, weir_strbuf_view(&full));
    if (*out_type || size == 0) break;
  }
  weir_status_t* status = weir_strbuf_finish(&full);
  weir_strbuf_free(&full);
  return status;
}

// ---- defaults: they are written as in text format, strings but for their quotes ----

static weir_status_t* read_default(weir_descriptors_t* all, const weir_field_t* row,
                                   weir_view_t text, weir_proto_field_t* field) {
  const bool is_bytes = field->type == WEIR_FIELD_BYTES;
  const weir_field_t rows[] = {
      {.number = 1, .name = "default", .type = field->type, .enum_values = row->enum_values}, {0}};
  const weir_message_t table = {.name = row->name, .fields = rows};
  weir_strbuf_t line = {0}, wire = {0};
  weir_strbuf_printf(&line, is_bytes ? "default: \"" : "default: ");
  weir_strbuf_append(&line, text.data, text.size);
  if (is_bytes) weir_strbuf_putc(&line, '"');
  weir_status_t* status = weir_strbuf_finish(&line);
  if (!status) status = weir_text_parse(&table, weir_strbuf_view(&line), &wire);
  if (!status) {
    weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&wire));
    if (weir_wire_next(&r)) field->default_bits = r.value;
    const char* copy =
        weir_arena_strndup(&all->arena, r.bytes.data ? r.bytes.data : "", r.bytes.size);
    field->default_bytes = weir_view(copy, r.bytes.size);
    if (!copy) status = weir_out_of_memory();
  } else if (weir_status_code(status) == WEIR_INVALID_ARGUMENT) {
    weir_status_destroy(status);
    status = BAD("field \"%s\" cannot have the default \"%.*s\"", row->name, WEIR_VIEW_ARG(text));
  }
  weir_strbuf_free(&line);
  weir_strbuf_free(&wire);
  return status;
}

static weir_status_t* set_default(weir_descriptors_t* all, const weir_field_t* row,
                                  const parts_t* parts, weir_proto_field_t* field) {
  field->default_bytes = weir_view("", 0);
  if (field->type == WEIR_FIELD_ENUM) field->default_bits = (uint64_t)row->enum_values[0].number;
  if (!parts->has_default) return NULL;
  if (field->message || row->is_repeated)
    return BAD("field \"%s\" cannot have a default", row->name);
  if (field->type == WEIR_FIELD_STRING) {
    field->default_bytes = parts->default_value;
    return NULL;
  }
  return read_default(all, row, parts->default_value, field);
}

// ---- fields ----

static weir_status_t* find_type(const weir_descriptors_t* all, const weir_field_source_t* source,
                                parts_t* parts, weir_field_t* row, weir_proto_field_t* field) {
  const bool needs_message = parts->type == 10 || parts->type == 11;
  if (parts->type > 0 && !needs_message && parts->type != 14) return NULL;
  weir_proto_type_t* type = NULL;
  WEIR_TRY(weir_descriptors_resolve(all, source->scope, parts->type_name, &type));
  if (!type || (parts->type == 14 && !type->is_enum) || (needs_message && type->is_enum)) {
    return BAD("\"%.*s\", the type of \"%.*s\", is not defined", WEIR_VIEW_ARG(parts->type_name),
               WEIR_VIEW_ARG(parts->name));
  }
  if (parts->type == 0) parts->type = type->is_enum ? 14 : 11;
  row->enum_values = type->values;
  row->message = type->is_enum ? NULL : &type->message.table;
  field->message = type->is_enum ? NULL : &type->message;
  field->is_closed = type->is_enum && !type->is_proto3;
  return NULL;
}

static void set_kind(const weir_field_source_t* source, const parts_t* parts, weir_field_t* row,
                     weir_proto_field_t* field) {
  row->is_repeated = parts->label == LABEL_REPEATED;
  row->oneof = parts->has_oneof ? (uint8_t)(parts->oneof + 1) : 0;
  field->is_extension = source->is_extension;
  field->is_required = parts->label == LABEL_REQUIRED;
  field->is_packed = row->is_repeated && weir_field_is_packable(field->type) &&
                     (parts->packed < 0 ? source->is_proto3 : parts->packed);
  field->has_presence = !source->is_proto3 || parts->has_oneof || parts->is_optional ||
                        source->is_extension || field->message != NULL;
  field->is_utf8 = field->type == WEIR_FIELD_STRING && source->is_proto3;
  row->type = field->type == WEIR_FIELD_STRING && !field->is_utf8 ? WEIR_FIELD_BYTES : field->type;
}

static weir_status_t* build_field(weir_descriptors_t* all, const weir_field_source_t* source,
                                  weir_field_t* row, weir_proto_field_t* field) {
  parts_t parts;
  WEIR_TRY(read_parts(source->bytes, &parts));
  if (parts.name.size == 0) return BAD("a field of %s has no name", source->scope);
  if (parts.number < 1 || parts.number > kMaxNumber || parts.type >= WEIR_COUNT_OF(kTypes) ||
      parts.label > LABEL_REPEATED || (parts.has_oneof && parts.oneof >= kMaxOneofs)) {
    return BAD("field \"%.*s\" of %s has a number, type, label or oneof that cannot be",
               WEIR_VIEW_ARG(parts.name), source->scope);
  }
  if (parts.has_oneof && parts.label > LABEL_OPTIONAL) {
    return BAD("field \"%.*s\" of %s is in a oneof and not optional", WEIR_VIEW_ARG(parts.name),
               source->scope);
  }
  WEIR_TRY(find_type(all, source, &parts, row, field));
  row->number = (uint32_t)parts.number;
  field->type = kTypes[parts.type].type;
  row->name =
      source->is_extension && *source->scope
          ? weir_arena_printf(&all->arena, "%s.%.*s", source->scope, WEIR_VIEW_ARG(parts.name))
          : weir_arena_strndup(&all->arena, parts.name.data, parts.name.size);
  if (!row->name) return weir_out_of_memory();
  set_kind(source, &parts, row, field);
  return set_default(all, row, &parts, field);
}

typedef struct built_t {
  weir_field_t row;
  weir_proto_field_t field;
} built_t;

static int by_number(const void* a, const void* b) {
  const uint32_t x = ((const built_t*)a)->row.number, y = ((const built_t*)b)->row.number;
  return x < y ? -1 : x > y;
}

weir_status_t* weir_descriptors_build(weir_descriptors_t* all, weir_proto_type_t* type) {
  const size_t count = type->source_count;
  weir_proto_message_t* message = &type->message;
  if (type->is_enum) return NULL;
  weir_field_t* rows = weir_arena_array(&all->arena, count + 1, sizeof *rows);
  weir_proto_field_t* fields = weir_arena_array(&all->arena, count + 1, sizeof *fields);
  built_t* built = weir_arena_array(&all->arena, count + 1, sizeof *built);
  if (!rows || !fields || !built) return weir_out_of_memory();
  size_t i = 0;
  for (const weir_field_source_t* s = type->first; s; s = s->next, ++i)
    WEIR_TRY(build_field(all, s, &built[i].row, &built[i].field));
  if (count > 1) qsort(built, count, sizeof *built, by_number);
  for (i = 0; i < count; ++i) {
    if (i > 0 && built[i].row.number == built[i - 1].row.number)
      return BAD("two fields of %s have number %u", message->name, built[i].row.number);
    rows[i] = built[i].row;
    fields[i] = built[i].field;
    fields[i].row = &rows[i];
  }
  message->table = (weir_message_t){.name = message->name, .fields = rows};
  message->fields = fields;
  message->field_count = count;
  return NULL;
}

// ---- lookups ----

const weir_proto_field_t* weir_proto_field(const weir_proto_message_t* message, uint32_t number) {
  size_t low = 0, high = message->field_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (message->fields[middle].row->number < number) low = middle + 1;
    else high = middle;
  }
  const bool is_there = low < message->field_count && message->fields[low].row->number == number;
  return is_there ? &message->fields[low] : NULL;
}

const weir_proto_field_t* weir_proto_field_named(const weir_proto_message_t* message,
                                                 weir_view_t name) {
  for (size_t i = 0; i < message->field_count; ++i) {
    if (weir_view_is(name, message->fields[i].row->name)) return &message->fields[i];
  }
  return NULL;
}
