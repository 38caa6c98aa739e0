// descriptor_local.c — Descriptors of the messages that Weir speaks itself, of their tables.
#include "wire/descriptor_internal.h"

// Examples are read and written by hand elsewhere: these tables are for descriptors alone.
#define ONE(number, name, type, message) \
  { number, name, WEIR_FIELD_##type, 0, 0, 0, message, NULL }
#define MANY(number, name, type, message) \
  { number, name, WEIR_FIELD_##type, 1, 0, 0, message, NULL }
#define CHOICE(number, name, message) \
  { number, name, WEIR_FIELD_MESSAGE, 0, 0, 1, message, NULL }
#define MAP(number, name, message) \
  { number, name, WEIR_FIELD_MESSAGE, 1, 1, 0, message, NULL }
#define TABLE(variable, name, ...)                                    \
  static const weir_field_t variable##_fields[] = {__VA_ARGS__, {0}}; \
  static const weir_message_t variable = {name, variable##_fields}

TABLE(bytes_list, "BytesList", MANY(1, "value", BYTES, NULL));
TABLE(float_list, "FloatList", MANY(1, "value", FLOAT, NULL));
TABLE(int64_list, "Int64List", MANY(1, "value", INT64, NULL));
TABLE(feature, "Feature", CHOICE(1, "bytes_list", &bytes_list),
      CHOICE(2, "float_list", &float_list), CHOICE(3, "int64_list", &int64_list));
TABLE(feature_entry, "map entry", ONE(1, "key", STRING, NULL), ONE(2, "value", MESSAGE, &feature));
TABLE(features, "Features", MAP(1, "feature", &feature_entry));
TABLE(example, "Example", ONE(1, "features", MESSAGE, &features));
TABLE(feature_list, "FeatureList", MANY(1, "feature", MESSAGE, &feature));
TABLE(feature_list_entry, "map entry", ONE(1, "key", STRING, NULL),
      ONE(2, "value", MESSAGE, &feature_list));
TABLE(feature_lists, "FeatureLists", MAP(1, "feature_list", &feature_list_entry));
TABLE(sequence_example, "SequenceExample", ONE(1, "context", MESSAGE, &features),
      ONE(2, "feature_lists", MESSAGE, &feature_lists));

static weir_status_t* add_message(weir_descriptors_t* all, const weir_message_t* table,
                                  const weir_proto_message_t** out_message);

static weir_status_t* fill_field(weir_descriptors_t* all, const weir_field_t* row,
                                 weir_proto_field_t* field) {
  *field = (weir_proto_field_t){
      .row = row,
      .type = row->type,
      .is_packed = row->is_repeated && weir_field_is_packable(row->type),
      .has_presence = row->oneof != 0 || row->type == WEIR_FIELD_MESSAGE,
      .is_utf8 = row->type == WEIR_FIELD_STRING,
      .default_bytes = weir_view("", 0),
  };
  return row->message ? add_message(all, row->message, &field->message) : NULL;
}

// Entries of maps have no name of their own: their key is the table's address.
static const char* key_of(weir_descriptors_t* all, const weir_message_t* table) {
  if (strcmp(table->name, "map entry") != 0)
    return weir_arena_printf(&all->arena, "tensorflow.%s", table->name);
  return weir_arena_printf(&all->arena, "map entry %p", (const void*)table);
}

static weir_status_t* add_message(weir_descriptors_t* all, const weir_message_t* table,
                                  const weir_proto_message_t** out_message) {
  const char* name = key_of(all, table);
  if (!name) return weir_out_of_memory();
  weir_proto_type_t* type = weir_map_find(&all->types, weir_view_of(name));
  *out_message = type ? &type->message : NULL;
  if (type) return NULL;
  type = weir_arena_alloc(&all->arena, sizeof *type);
  if (!type) return weir_out_of_memory();
  size_t count = 0;
  while (table->fields[count].number != 0) ++count;
  weir_proto_field_t* fields = weir_arena_array(&all->arena, count + 1, sizeof *fields);
  if (!fields) return weir_out_of_memory();
  type->message =
      (weir_proto_message_t){.name = name, .table = *table, .fields = fields, .field_count = count};
  *out_message = &type->message;
  WEIR_TRY(weir_map_put(&all->types, weir_view_of(name), type));
  for (size_t i = 0; i < count; ++i) WEIR_TRY(fill_field(all, &table->fields[i], &fields[i]));
  return NULL;
}

weir_status_t* weir_descriptors_create_local(weir_descriptors_t** out_descriptors) {
  static const weir_message_t* const kTables[] = {
      &weir_message_graph_def, &weir_message_node_def,         &weir_message_attr_value,
      &weir_message_tensor,    &weir_message_tensor_shape,     &weir_message_op_def,
      &weir_message_op_list,   &weir_message_function_def,     &weir_message_run_metadata,
      &weir_message_event,     &weir_message_bundle_header,    &weir_message_bundle_entry,
      &weir_message_saver_def, &weir_message_checkpoint_state, &example,
      &sequence_example};
  weir_descriptors_t* all = weir_calloc(1, sizeof *all);
  weir_status_t* status = all ? NULL : weir_out_of_memory();
  for (size_t i = 0; !status && i < WEIR_COUNT_OF(kTables); ++i) {
    const weir_proto_message_t* message;
    status = add_message(all, kTables[i], &message);
  }
  if (status) weir_descriptors_destroy(all);
  else *out_descriptors = all;
  return status;
}
