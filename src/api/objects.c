// objects.c — Checkpoints of objects: values by path, and into the variables of a session.
#include "weir/objects.h"

#include <stdlib.h>

#include "api/tables.h"
#include "api/variables.h"
#include "base/suggest.h"
#include "file/object_graph.h"
#include "tensor/tensor.h"
#include "weir/argument.h"
#include "weir/checkpoint.h"
#include "weir/variables.h"

struct weir_objects_t {
  weir_checkpoint_t* checkpoint;
  weir_tensor_t* message;  // which the graph points into
  weir_object_graph_t graph;
  weir_object_value_t* values;  // sorted by path
  size_t count;
};

// ---- opening ----

static weir_status_t* read_graph(weir_objects_t* objects) {
  const char* prefix = weir_checkpoint_prefix(objects->checkpoint);
  if (!weir_checkpoint_find(objects->checkpoint, WEIR_OBJECT_GRAPH_KEY))
    return WEIR_STATUS(FAILED_PRECONDITION, "%s: a checkpoint, but none of objects: it has no '%s'",
                       prefix, WEIR_OBJECT_GRAPH_KEY);
  WEIR_TRY(weir_checkpoint_read(objects->checkpoint, WEIR_OBJECT_GRAPH_KEY, &objects->message));
  const weir_tensor_t* message = objects->message;
  if (weir_tensor_type(message) != WEIR_DTYPE_STRING || message->count != 1)
    return WEIR_STATUS(DATA_LOSS, "%s: '%s' is no string", prefix, WEIR_OBJECT_GRAPH_KEY);
  weir_status_t* status = weir_object_graph_parse(
      weir_string_view(WEIR_TENSOR_DATA(message, weir_string_t)), &objects->graph);
  return weir_status_prefix(status, "%s: '%s': ", prefix, WEIR_OBJECT_GRAPH_KEY);
}

// The path of what no names lead to: its key without the attribute.
static const char* path_in_key(weir_arena_t* arena, const char* key) {
  const char* end = strstr(key, "/.ATTRIBUTES/");
  return weir_arena_strndup(arena, key, end ? (size_t)(end - key) : strlen(key));
}

static int by_path(const void* a, const void* b) {
  const weir_object_value_t* x = a;
  const weir_object_value_t* y = b;
  int order = strcmp(x->path, y->path);
  if (!order) order = strcmp(x->attribute, y->attribute);
  return order || !x->key || !y->key ? order : strcmp(x->key, y->key);
}

// The first tensor whose name is not before |name|.
static size_t lower_bound(const weir_checkpoint_t* checkpoint, const char* name) {
  size_t begin = 0, end = weir_checkpoint_count(checkpoint);
  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (strcmp(weir_checkpoint_at(checkpoint, middle)->name, name) < 0) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

static weir_status_t* add_value(weir_objects_t* objects, const weir_object_attribute_t* from,
                                const char* key, size_t limit) {
  const char* path = objects->graph.objects[from->object].path;
  if (!path) path = path_in_key(&objects->graph.arena, from->key);
  if (!path) return weir_out_of_memory();
  if (objects->count == limit)
    return WEIR_STATUS(DATA_LOSS, "'%s' has tensors that are other objects' as well", path);
  objects->values[objects->count++] = (weir_object_value_t){
      .path = path, .attribute = from->attribute, .name = from->name, .key = key};
  return NULL;
}

// What was not written, such as the configuration of a layer, has no tensor; a table has several,
// whose names begin with its key ("…/table-keys").
static weir_status_t* add_values(weir_objects_t* objects, const weir_object_attribute_t* from,
                                 size_t limit) {
  size_t size = strlen(from->key), count = weir_checkpoint_count(objects->checkpoint);
  for (size_t i = lower_bound(objects->checkpoint, from->key); i < count; ++i) {
    const char* name = weir_checkpoint_at(objects->checkpoint, i)->name;
    if (strncmp(name, from->key, size) != 0) break;
    if (name[size] == '\0' || name[size] == '-') WEIR_TRY(add_value(objects, from, name, limit));
    if (name[size] == '\0') break;
  }
  return NULL;
}

static weir_status_t* list_values(weir_objects_t* objects) {
  weir_object_graph_t* graph = &objects->graph;
  size_t limit = graph->attribute_count + weir_checkpoint_count(objects->checkpoint);
  objects->values = weir_arena_array(&graph->arena, limit, sizeof(*objects->values));
  if (!objects->values) return weir_out_of_memory();
  for (size_t i = 0; i < graph->attribute_count; ++i)
    WEIR_TRY(add_values(objects, &graph->attributes[i], limit));
  if (objects->count > 1) qsort(objects->values, objects->count, sizeof(*objects->values), by_path);
  return NULL;
}

weir_status_t* weir_objects_open(const char* path, weir_objects_t** out_objects) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_objects);
  weir_objects_t* objects = weir_calloc(1, sizeof(*objects));
  if (!objects) return weir_out_of_memory();
  weir_status_t* status = weir_checkpoint_open(path, &objects->checkpoint);
  if (!status) status = read_graph(objects);
  if (!status) status = list_values(objects);
  if (status) weir_objects_close(objects);
  else *out_objects = objects;
  return status;
}

void weir_objects_close(weir_objects_t* objects) {
  if (!objects) return;
  weir_object_graph_free(&objects->graph);
  weir_tensor_release(objects->message);
  weir_checkpoint_close(objects->checkpoint);
  weir_free(objects);
}

// ---- reading ----

size_t weir_objects_count(const weir_objects_t* objects) {
  WEIR_ASSERT_ARG(objects);
  return objects->count;
}

const weir_object_value_t* weir_objects_at(const weir_objects_t* objects, size_t index) {
  WEIR_ASSERT_ARG(objects);
  return index < objects->count ? &objects->values[index] : NULL;
}

static const weir_object_value_t* find_value(const weir_objects_t* objects, const char* path) {
  const weir_object_value_t wanted = {.path = path, .attribute = WEIR_OBJECT_VALUE};
  if (objects->count == 0) return NULL;
  return bsearch(&wanted, objects->values, objects->count, sizeof(wanted), by_path);
}

const weir_object_value_t* weir_objects_find(const weir_objects_t* objects, const char* path) {
  WEIR_ASSERT_ARG(objects);
  WEIR_ASSERT_ARG(path);
  const weir_object_t* object = weir_object_graph_find(&objects->graph, weir_view_of(path));
  return find_value(objects, object && object->path ? object->path : path);
}

static weir_status_t* no_object(const weir_objects_t* objects, const char* path) {
  weir_suggestion_t suggestion = weir_suggestion(weir_view_of(path));
  for (size_t i = 0; i < objects->count; ++i)
    weir_suggestion_offer(&suggestion, weir_view_of(objects->values[i].path));
  return weir_suggestion_add(&suggestion,
                             WEIR_STATUS(NOT_FOUND, "%s: '%s' leads to no variable",
                                         weir_checkpoint_prefix(objects->checkpoint), path));
}

weir_status_t* weir_objects_read(const weir_objects_t* objects, const char* path,
                                 weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(objects);
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_tensor);
  const weir_object_value_t* value = weir_objects_find(objects, path);
  if (!value) return no_object(objects, path);
  return weir_checkpoint_read(objects->checkpoint, value->key, out_tensor);
}

// ---- restoring ----

// The path of the one variable that was called |name|.
static weir_status_t* find_named(const weir_objects_t* objects, const char* name,
                                 const char** out_path) {
  const weir_object_value_t* found = NULL;
  for (size_t i = 0; i < objects->count; ++i) {
    const weir_object_value_t* value = &objects->values[i];
    if (strcmp(value->attribute, WEIR_OBJECT_VALUE) != 0 || strcmp(value->name, name) != 0)
      continue;
    if (found)
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' and '%s' were both called '%s': say which by path",
                         found->path, value->path, name);
    found = value;
  }
  if (!found)
    return WEIR_STATUS(NOT_FOUND, "%s: no object was called '%s'",
                       weir_checkpoint_prefix(objects->checkpoint), name);
  *out_path = found->path;
  return NULL;
}

// What restoring gives to whom.
typedef struct restoring_t {
  weir_arena_t arena;
  const char** names;  // of variables
  weir_tensor_t** values;
  int count;
  weir_node_t** tables;
  weir_tensor_t** entries;  // keys and values of each
  int table_count;
} restoring_t;

static weir_status_t* read_half(const weir_objects_t* objects, const char* key, const char* end,
                                weir_tensor_t** out_tensor) {
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "%s%s", key, end);
  weir_status_t* status = weir_strbuf_finish(&name);
  if (!status) status = weir_checkpoint_read(objects->checkpoint, name.data, out_tensor);
  weir_strbuf_free(&name);
  return status;
}

// The entries of the table that |path| leads to.
static weir_status_t* read_table(const weir_objects_t* objects, const char* path,
                                 weir_tensor_t** out_entries) {
  const weir_object_graph_t* graph = &objects->graph;
  const weir_object_t* object = weir_object_graph_find(graph, weir_view_of(path));
  for (size_t i = 0; object && i < object->attribute_count; ++i) {
    const weir_object_attribute_t* from = &graph->attributes[object->first_attribute + i];
    if (strcmp(from->attribute, WEIR_OBJECT_TABLE) != 0) continue;
    WEIR_TRY(read_half(objects, from->key, WEIR_OBJECT_TABLE_KEYS, &out_entries[0]));
    return read_half(objects, from->key, WEIR_OBJECT_TABLE_VALUES, &out_entries[1]);
  }
  return WEIR_STATUS(NOT_FOUND, "%s: '%s' leads to no table",
                     weir_checkpoint_prefix(objects->checkpoint), path);
}

static weir_status_t* read_pair(const weir_objects_t* objects, weir_session_t* session,
                                const weir_object_variable_t* pair, restoring_t* r) {
  weir_node_t* table = pair->variable ? weir_tables_find(session, pair->variable) : NULL;
  if (!table) {
    r->names[r->count] = pair->variable;
    return weir_objects_read(objects, pair->path, &r->values[r->count++]);
  }
  weir_tensor_t** entries = &r->entries[2 * r->table_count];
  r->tables[r->table_count++] = table;
  WEIR_TRY(read_table(objects, pair->path, entries));
  return weir_table_check(table, entries[0], entries[1]);
}

static weir_status_t* read_pairs(const weir_objects_t* objects, weir_session_t* session,
                                 const weir_object_variable_t* pairs, size_t count,
                                 restoring_t* r) {
  r->names = weir_arena_array(&r->arena, count, sizeof(*r->names));
  r->values = weir_arena_array(&r->arena, count, sizeof(*r->values));
  r->tables = weir_arena_array(&r->arena, count, sizeof(*r->tables));
  r->entries = weir_arena_array(&r->arena, 2 * count, sizeof(*r->entries));
  if (!r->names || !r->values || !r->tables || !r->entries) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    if (!pairs[i].path) return WEIR_STATUS(INVALID_ARGUMENT, "variable %zu has no path", i);
    WEIR_TRY(read_pair(objects, session, &pairs[i], r));
  }
  return NULL;
}

static weir_status_t* restore_pairs(const weir_objects_t* objects, weir_session_t* session,
                                    const weir_object_variable_t* pairs, size_t count) {
  restoring_t r = {.count = 0};
  weir_status_t* status = read_pairs(objects, session, pairs, count, &r);
  if (!status) status = weir_session_set_variables(session, r.names, r.values, r.count);
  if (!status) status = weir_tables_fill(session, r.tables, r.table_count, r.entries);
  for (int i = 0; i < r.count; ++i) weir_tensor_release(r.values[i]);
  for (int i = 0; i < 2 * r.table_count; ++i) weir_tensor_release(r.entries[i]);
  weir_arena_free(&r.arena);
  return status;
}

static weir_status_t* restore_named(const weir_objects_t* objects, weir_session_t* session) {
  weir_variables_t variables = {.session = NULL};
  WEIR_TRY(weir_variables_list(session, &variables));
  weir_object_variable_t* pairs = weir_calloc(variables.count, sizeof(*pairs));
  weir_status_t* status = pairs ? NULL : weir_out_of_memory();
  for (size_t i = 0; i < variables.count && !status; ++i) {
    pairs[i].variable = variables.nodes[i]->def.name;
    status = find_named(objects, pairs[i].variable, &pairs[i].path);
  }
  if (!status) status = restore_pairs(objects, session, pairs, variables.count);
  weir_free(pairs);
  weir_variables_free(&variables);
  return status;
}

weir_status_t* weir_objects_restore(const weir_objects_t* objects, weir_session_t* session,
                                    const weir_object_variable_t* variables, int count) {
  WEIR_REQUIRE_ARG(objects);
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_COUNT(count);
  if (!variables) return restore_named(objects, session);
  return restore_pairs(objects, session, variables, (size_t)count);
}
