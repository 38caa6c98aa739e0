// proto_source.c — Messages and fields that nodes name: from the program's own descriptors, from a
// file, or from bytes in the attribute itself.
#include "ops/io/proto_source.h"

#include "base/alloc.h"
#include "file/fs.h"

static weir_status_t* refuse(weir_view_t source) {
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Source does not represent serialized file descriptor set proto. This may be "
                     "due to a missing dependency on the file containing "
                     "REGISTER_DESCRIPTOR_POOL(\"%.*s\", ...);",
                     WEIR_VIEW_ARG(source));
}

static weir_status_t* load_file(weir_view_t source, weir_descriptors_t** out) {
  weir_strbuf_t bytes = {0};
  if (memchr(source.data, '\0', source.size)) return refuse(source);
  char* path = weir_strndup(source.data, source.size);
  if (!path) return weir_out_of_memory();
  weir_status_t* status = weir_fs_read_all(path, &bytes);
  if (!status) {
    status = weir_descriptors_create(weir_strbuf_view(&bytes), out);
  } else if (weir_status_code(status) != WEIR_RESOURCE_EXHAUSTED) {
    weir_status_destroy(status);
    status = refuse(source);
  }
  weir_strbuf_free(&bytes);
  weir_free(path);
  return status;
}

static weir_status_t* load(weir_view_t source, weir_descriptors_t** out) {
  static const char kBytes[] = "bytes://";
  weir_status_t* status = NULL;
  if (source.size == 0 || weir_view_is(source, "local://"))
    return weir_descriptors_create_local(out);
  const bool has_bytes = weir_view_starts_with(source, kBytes);
  if (has_bytes) {
    const size_t skip = sizeof kBytes - 1;
    status = weir_descriptors_create(weir_view(source.data + skip, source.size - skip), out);
  } else {
    status = load_file(source, out);
  }
  const weir_code_t code = weir_status_code(status);
  if (!status || code == WEIR_RESOURCE_EXHAUSTED || code == WEIR_UNIMPLEMENTED) return status;
  // As in TensorFlow, only of bytes is it said what is wrong with their files.
  if (has_bytes && strncmp(weir_status_message(status), "Failed to load", 14) == 0) return status;
  weir_status_destroy(status);
  return refuse(source);
}

bool proto_source_fits(const weir_proto_field_t* field, weir_dtype_t dtype) {
  switch (field->type) {
    case WEIR_FIELD_DOUBLE: return dtype == WEIR_DTYPE_DOUBLE;
    case WEIR_FIELD_FLOAT: return dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE;
    case WEIR_FIELD_INT64:
    case WEIR_FIELD_SFIXED64:
    case WEIR_FIELD_SINT64: return dtype == WEIR_DTYPE_INT64;
    case WEIR_FIELD_UINT64:
    case WEIR_FIELD_FIXED64: return dtype == WEIR_DTYPE_UINT64;
    case WEIR_FIELD_INT32:
    case WEIR_FIELD_SFIXED32:
    case WEIR_FIELD_SINT32: return dtype == WEIR_DTYPE_INT32 || dtype == WEIR_DTYPE_INT64;
    case WEIR_FIELD_UINT32:
    case WEIR_FIELD_FIXED32: return dtype == WEIR_DTYPE_UINT32 || dtype == WEIR_DTYPE_UINT64;
    case WEIR_FIELD_BOOL: return dtype == WEIR_DTYPE_BOOL;
    case WEIR_FIELD_ENUM: return dtype == WEIR_DTYPE_INT32;
    default: return dtype == WEIR_DTYPE_STRING;
  }
}

// Stable: fields that are named twice stay in the order of their names.
static void sort_fields(proto_source_t* source) {
  for (size_t i = 0; i < source->count; ++i) {
    size_t at = i;
    for (; at > 0; --at) {
      const size_t before = source->order[at - 1];
      if (source->fields[before]->row->number <= source->fields[i]->row->number) break;
      source->order[at] = before;
    }
    source->order[at] = i;
  }
}

static weir_status_t* find_fields(weir_attrs_t attrs, bool with_extensions, proto_source_t* s) {
  const weir_attr_t* names = weir_attrs_list(attrs, "field_names");
  s->count = names->count;
  s->fields = weir_alloc_array(s->count + 1, sizeof *s->fields);
  s->order = weir_alloc_array(s->count + 1, sizeof *s->order);
  if (!s->fields || !s->order) return weir_out_of_memory();
  for (size_t i = 0; i < s->count; ++i) {
    const weir_proto_field_t* field = weir_proto_field_named(s->message, names->u.strings[i]);
    if (!field || (field->is_extension && !with_extensions)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Unknown field: %.*s in message type %s",
                         WEIR_VIEW_ARG(names->u.strings[i]), s->message->name);
    }
    s->fields[i] = field;
  }
  sort_fields(s);
  return NULL;
}

weir_status_t* proto_source_init(weir_attrs_t attrs, bool with_extensions, proto_source_t* source) {
  const weir_view_t type = weir_attrs_string(attrs, "message_type");
  WEIR_TRY(load(weir_attrs_string(attrs, "descriptor_source"), &source->descriptors));
  source->message = weir_descriptors_find(source->descriptors, type);
  if (!source->message) {
    return WEIR_STATUS(INVALID_ARGUMENT, "No descriptor found for message type %.*s",
                       WEIR_VIEW_ARG(type));
  }
  return find_fields(attrs, with_extensions, source);
}

void proto_source_deinit(proto_source_t* source) {
  weir_descriptors_destroy(source->descriptors);
  weir_free(source->fields);
  weir_free(source->order);
}
