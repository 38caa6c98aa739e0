// objects_save.c — The variables and tables of a session as a checkpoint of objects.
#include "api/tables.h"
#include "api/variables.h"
#include "file/object_graph.h"
#include "tensor/tensor.h"
#include "weir/argument.h"
#include "weir/checkpoint.h"
#include "weir/objects.h"

typedef struct saving_t {
  weir_variables_t variables;
  weir_arena_t arena;
  weir_object_source_t* sources;
  size_t* places;  // of their variables
  size_t count;
  weir_node_t** tables;     // of those sources that are tables, in their order
  weir_tensor_t** entries;  // keys and values of each
  int table_count;
} saving_t;

// ---- what is saved ----

// The path of a variable that is named as paths are: "dense/kernel", but dots are spelt.
static weir_status_t* path_of_name(weir_arena_t* arena, const char* name, const char** out_path) {
  weir_strbuf_t path = {0};
  for (const char* at = name; *at; ++at)
    weir_strbuf_puts(&path, *at == '.' ? ".." : (char[]){*at, 0});
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) *out_path = weir_arena_strndup(arena, path.data, path.size);
  if (!status && !*out_path) status = weir_out_of_memory();
  weir_strbuf_free(&path);
  return status;
}

static weir_status_t* add_source(saving_t* s, const char* name, const char* path) {
  if (!name || !path)
    return WEIR_STATUS(INVALID_ARGUMENT, "variable %zu has no %s", s->count,
                       name ? "path" : "name");
  weir_node_t* table = weir_tables_find(s->variables.session, name);
  if (table) s->tables[s->table_count++] = table;
  else WEIR_TRY(weir_variables_find(&s->variables, name, &s->places[s->count]));
  s->sources[s->count++] =
      (weir_object_source_t){.path = path, .name = name, .is_table = table != NULL};
  return NULL;
}

static weir_status_t* make_room(saving_t* s, size_t count) {
  s->sources = weir_arena_array(&s->arena, count, sizeof(*s->sources));
  s->places = weir_arena_array(&s->arena, count, sizeof(*s->places));
  s->tables = weir_arena_array(&s->arena, count, sizeof(*s->tables));
  s->entries = weir_arena_array(&s->arena, 2 * count, sizeof(*s->entries));
  return s->sources && s->places && s->tables && s->entries ? NULL : weir_out_of_memory();
}

static weir_status_t* list_sources(saving_t* s, weir_session_t* session,
                                   const weir_object_variable_t* pairs, size_t count) {
  WEIR_TRY(weir_variables_list(session, &s->variables));
  if (!pairs) count = s->variables.count;
  WEIR_TRY(make_room(s, count));
  for (size_t i = 0; i < count; ++i) {
    const char* name = pairs ? pairs[i].variable : s->variables.nodes[i]->def.name;
    const char* path = pairs ? pairs[i].path : NULL;
    if (!pairs) WEIR_TRY(path_of_name(&s->arena, name, &path));
    WEIR_TRY(add_source(s, name, path));
  }
  return NULL;
}

// ---- writing ----

static weir_status_t* add_value(const saving_t* s, size_t i, weir_checkpoint_writer_t* writer) {
  weir_tensor_t* value = NULL;
  weir_strbuf_t key = {0};
  WEIR_TRY(weir_variables_read(&s->variables, s->places[i], &value));
  if (!value)
    return WEIR_STATUS(FAILED_PRECONDITION, "variable '%s' is not initialised", s->sources[i].name);
  weir_object_append_key(&s->sources[i], &key);
  weir_status_t* status = weir_strbuf_finish(&key);
  if (!status) status = weir_checkpoint_add(writer, key.data, value);
  weir_strbuf_free(&key);
  weir_tensor_release(value);
  return status;
}

static weir_status_t* add_table(const weir_object_source_t* source, weir_tensor_t* const* entries,
                                weir_checkpoint_writer_t* writer) {
  const char* ends[] = {WEIR_OBJECT_TABLE_KEYS, WEIR_OBJECT_TABLE_VALUES};
  weir_strbuf_t key = {0};
  weir_status_t* status = NULL;
  for (int i = 0; i < 2 && !status; ++i) {
    key.size = 0;
    weir_object_append_key(source, &key);
    weir_strbuf_puts(&key, ends[i]);
    status = weir_strbuf_finish(&key);
    if (!status) status = weir_checkpoint_add(writer, key.data, entries[i]);
  }
  weir_strbuf_free(&key);
  return status;
}

static weir_status_t* add_values(const saving_t* s, weir_checkpoint_writer_t* writer) {
  weir_tensor_t* const* entries = s->entries;
  for (size_t i = 0; i < s->count; ++i) {
    if (s->sources[i].is_table) WEIR_TRY(add_table(&s->sources[i], entries, writer));
    else WEIR_TRY(add_value(s, i, writer));
    if (s->sources[i].is_table) entries += 2;
  }
  return NULL;
}

static weir_status_t* add_graph(const saving_t* s, weir_checkpoint_writer_t* writer) {
  weir_strbuf_t message = {0};
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_object_graph_write(s->sources, s->count, &message);
  if (!status)
    status = weir_tensor_create_strings(0, NULL, (const char* const[]){message.data},
                                        (const size_t[]){message.size}, &tensor);
  if (!status) status = weir_checkpoint_add(writer, WEIR_OBJECT_GRAPH_KEY, tensor);
  weir_tensor_release(tensor);
  weir_strbuf_free(&message);
  return status;
}

static weir_status_t* write_all(const saving_t* s, const char* prefix) {
  weir_checkpoint_writer_t* writer = NULL;
  WEIR_TRY(weir_checkpoint_writer_create(prefix, 0, &writer));
  weir_status_t* status = add_graph(s, writer);
  if (!status) status = add_values(s, writer);
  if (!status) status = weir_checkpoint_finish(writer);
  weir_checkpoint_writer_destroy(writer);
  return status;
}

weir_status_t* weir_objects_save(weir_session_t* session, const char* prefix,
                                 const weir_object_variable_t* variables, int count) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  WEIR_REQUIRE_COUNT(count);
  saving_t saving = {.count = 0};
  weir_status_t* status = list_sources(&saving, session, variables, (size_t)count);
  if (!status && saving.count == 0)
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: a checkpoint of no variables", prefix);
  if (!status)
    status = weir_tables_read(session, saving.tables, saving.table_count, saving.entries);
  if (!status) status = write_all(&saving, prefix);
  for (int i = 0; i < 2 * saving.table_count; ++i) weir_tensor_release(saving.entries[i]);
  weir_variables_free(&saving.variables);
  weir_arena_free(&saving.arena);
  return status;
}
