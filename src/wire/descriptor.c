// descriptor.c — FileDescriptorSets: which messages and enums they name.
#include "wire/descriptor.h"

#include "wire/descriptor_internal.h"

enum { kMaxDepth = 32 };  // of messages within messages

// Field numbers of descriptor.proto.
enum { SET_FILE = 1 };
enum {
  FILE_NAME = 1,
  FILE_PACKAGE = 2,
  FILE_DEPENDENCY = 3,
  FILE_MESSAGE = 4,
  FILE_ENUM = 5,
  FILE_EXTENSION = 7,
  FILE_SYNTAX = 12
};
enum {
  MESSAGE_NAME = 1,
  MESSAGE_FIELD = 2,
  MESSAGE_NESTED = 3,
  MESSAGE_ENUM = 4,
  MESSAGE_EXTENSION = 6
};
enum { ENUM_NAME = 1, ENUM_VALUE = 2 };
enum { VALUE_NAME = 1, VALUE_NUMBER = 2 };
enum { FIELD_EXTENDEE = 2 };

#define BAD(...) WEIR_STATUS(INVALID_ARGUMENT, "Failed to load FileDescriptorProto: " __VA_ARGS__)

// What is being read.
typedef struct loader_t {
  weir_descriptors_t* all;
  const char* file;
  bool is_proto3;
  weir_field_source_t* extensions;  // of all files
} loader_t;

// The last value of a string field of a message, or an empty one.
static weir_view_t string_of(weir_view_t message, uint32_t field) {
  weir_wire_reader_t r = weir_wire_reader(message);
  weir_view_t text = weir_view("", 0);
  while (weir_wire_next(&r)) {
    if (r.field == field && r.type == WEIR_WIRE_BYTES) text = r.bytes;
  }
  return text;
}

static const char* join(loader_t* l, const char* scope, weir_view_t name) {
  weir_arena_t* arena = &l->all->arena;
  return *scope ? weir_arena_printf(arena, "%s.%.*s", scope, WEIR_VIEW_ARG(name))
                : weir_arena_strndup(arena, name.data, name.size);
}

// A new type of a name that no other has.
static weir_status_t* add_type(loader_t* l, const char* scope, weir_view_t name,
                               weir_proto_type_t** out_type) {
  weir_proto_type_t* type = weir_arena_alloc(&l->all->arena, sizeof *type);
  const char* full = join(l, scope, name);
  if (!type || !full) return weir_out_of_memory();
  if (name.size == 0) return BAD("%s has a type without a name", l->file);
  if (weir_map_find(&l->all->types, weir_view_of(full)))
    return BAD("\"%s\" is already defined in file \"%s\"", full, l->file);
  type->message.name = full;
  type->is_proto3 = l->is_proto3;
  type->last = &type->first;
  *out_type = type;
  return weir_map_put(&l->all->types, weir_view_of(full), type);
}

// ---- enums ----

static weir_status_t* read_value(loader_t* l, weir_view_t bytes, weir_enum_value_t* out_value) {
  weir_wire_reader_t r = weir_wire_reader(bytes);
  const weir_view_t name = string_of(bytes, VALUE_NAME);
  out_value->name = weir_arena_strndup(&l->all->arena, name.data, name.size);
  while (weir_wire_next(&r)) {
    if (r.field == VALUE_NUMBER && r.type == WEIR_WIRE_VARINT)
      out_value->number = (int32_t)(uint32_t)r.value;
  }
  if (!out_value->name) return weir_out_of_memory();
  return weir_wire_check(&r, "EnumValueDescriptorProto");
}

static weir_status_t* read_enum(loader_t* l, const char* scope, weir_view_t bytes) {
  weir_proto_type_t* type = NULL;
  size_t count = 0;
  WEIR_TRY(add_type(l, scope, string_of(bytes, ENUM_NAME), &type));
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) count += r.field == ENUM_VALUE && r.type == WEIR_WIRE_BYTES;
  WEIR_TRY(weir_wire_check(&r, "EnumDescriptorProto"));
  if (count == 0) return BAD("enum %s has no values", type->message.name);
  weir_enum_value_t* values = weir_arena_array(&l->all->arena, count + 1, sizeof *values);
  if (!values) return weir_out_of_memory();
  type->is_enum = true;
  type->values = values;
  r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.field == ENUM_VALUE && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(read_value(l, r.bytes, values++));
  }
  return NULL;
}

// ---- messages ----

static weir_status_t* new_source(loader_t* l, const char* scope, weir_view_t bytes,
                                 weir_field_source_t** out_source) {
  weir_field_source_t* source = weir_arena_alloc(&l->all->arena, sizeof *source);
  if (!source) return weir_out_of_memory();
  *source = (weir_field_source_t){.bytes = bytes, .scope = scope, .is_proto3 = l->is_proto3};
  *out_source = source;
  return NULL;
}

static void append_source(weir_proto_type_t* type, weir_field_source_t* source) {
  *type->last = source;
  type->last = &source->next;
  ++type->source_count;
}

static weir_status_t* read_extension(loader_t* l, const char* scope, weir_view_t bytes) {
  weir_field_source_t* source = NULL;
  WEIR_TRY(new_source(l, scope, bytes, &source));
  source->is_extension = true;
  source->next = l->extensions;
  l->extensions = source;
  return NULL;
}

static weir_status_t* read_message(loader_t* l, const char* scope, weir_view_t bytes, int depth) {
  weir_proto_type_t* type = NULL;
  weir_field_source_t* source = NULL;
  if (depth == kMaxDepth) return BAD("%s has messages nested too deep", l->file);
  WEIR_TRY(add_type(l, scope, string_of(bytes, MESSAGE_NAME), &type));
  const char* name = type->message.name;
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    switch (r.field) {
      case MESSAGE_FIELD:
        WEIR_TRY(new_source(l, name, r.bytes, &source));
        append_source(type, source);
        break;
      case MESSAGE_NESTED: WEIR_TRY(read_message(l, name, r.bytes, depth + 1)); break;
      case MESSAGE_ENUM: WEIR_TRY(read_enum(l, name, r.bytes)); break;
      case MESSAGE_EXTENSION: WEIR_TRY(read_extension(l, name, r.bytes)); break;
      default: break;
    }
  }
  return weir_wire_check(&r, "DescriptorProto");
}

// ---- files ----

static weir_status_t* read_syntax(loader_t* l, weir_view_t bytes) {
  const weir_view_t syntax = string_of(bytes, FILE_SYNTAX);
  l->is_proto3 = weir_view_is(syntax, "proto3");
  if (l->is_proto3 || syntax.size == 0 || weir_view_is(syntax, "proto2")) return NULL;
  if (!weir_view_is(syntax, "editions"))
    return BAD("%s has syntax \"%.*s\"", l->file, WEIR_VIEW_ARG(syntax));
  return WEIR_STATUS(UNIMPLEMENTED, "descriptors of editions: %s is neither proto2 nor proto3",
                     l->file);
}

static weir_status_t* read_file(loader_t* l, weir_view_t bytes) {
  const weir_view_t name = string_of(bytes, FILE_NAME), package = string_of(bytes, FILE_PACKAGE);
  l->file = weir_arena_strndup(&l->all->arena, name.data, name.size);
  const char* scope = weir_arena_strndup(&l->all->arena, package.data, package.size);
  if (!l->file || !scope) return weir_out_of_memory();
  WEIR_TRY(read_syntax(l, bytes));
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    switch (r.field) {
      case FILE_DEPENDENCY:
        if (weir_map_find(&l->all->files, r.bytes)) break;
        return BAD("%s imports \"%.*s\", which has not been loaded", l->file,
                   WEIR_VIEW_ARG(r.bytes));
      case FILE_MESSAGE: WEIR_TRY(read_message(l, scope, r.bytes, 0)); break;
      case FILE_ENUM: WEIR_TRY(read_enum(l, scope, r.bytes)); break;
      case FILE_EXTENSION: WEIR_TRY(read_extension(l, scope, r.bytes)); break;
      default: break;
    }
  }
  WEIR_TRY(weir_wire_check(&r, "FileDescriptorProto"));
  return weir_map_put(&l->all->files, weir_view_of(l->file), l->all);
}

// Extensions go to the messages that they extend.
static weir_status_t* attach_extensions(loader_t* l) {
  weir_field_source_t* source = l->extensions;
  while (source) {
    weir_field_source_t* next = source->next;
    const weir_view_t name = string_of(source->bytes, FIELD_EXTENDEE);
    weir_proto_type_t* type = NULL;
    WEIR_TRY(weir_descriptors_resolve(l->all, source->scope, name, &type));
    if (!type || type->is_enum)
      return BAD("\"%.*s\", which is to be extended, is no message", WEIR_VIEW_ARG(name));
    source->next = NULL;
    append_source(type, source);
    source = next;
  }
  return NULL;
}

static weir_status_t* load(weir_descriptors_t* all, weir_view_t set) {
  loader_t l = {.all = all};
  weir_wire_reader_t r = weir_wire_reader(set);
  const weir_map_entry_t* entry;
  while (weir_wire_next(&r)) {
    if (r.field == SET_FILE && r.type == WEIR_WIRE_BYTES) WEIR_TRY(read_file(&l, r.bytes));
  }
  WEIR_TRY(weir_wire_check(&r, "FileDescriptorSet"));
  WEIR_TRY(attach_extensions(&l));
  for (size_t i = 0; (entry = weir_map_next(&all->types, &i));)
    WEIR_TRY(weir_descriptors_build(all, entry->value));
  return NULL;
}

weir_status_t* weir_descriptors_create(weir_view_t set, weir_descriptors_t** out_descriptors) {
  weir_descriptors_t* all = weir_calloc(1, sizeof *all);
  if (!all) return weir_out_of_memory();
  const char* copy = weir_arena_strndup(&all->arena, set.data ? set.data : "", set.size);
  weir_status_t* status = copy ? load(all, weir_view(copy, set.size)) : weir_out_of_memory();
  if (status) weir_descriptors_destroy(all);
  else *out_descriptors = all;
  return status;
}

void weir_descriptors_destroy(weir_descriptors_t* descriptors) {
  if (!descriptors) return;
  weir_map_free(&descriptors->types);
  weir_map_free(&descriptors->files);
  weir_arena_free(&descriptors->arena);
  weir_free(descriptors);
}

const weir_proto_message_t* weir_descriptors_find(const weir_descriptors_t* descriptors,
                                                  weir_view_t name) {
  const weir_proto_type_t* type = weir_map_find(&descriptors->types, name);
  return type && !type->is_enum ? &type->message : NULL;
}
