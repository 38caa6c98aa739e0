// tables.c — Lookup tables with their entries as constants of the graph. InitializeTableV2 leaves a
// table that has as many entries as it is, so each step may run it: a graph without an initialiser
// stays one.
#include "model/tables.h"

#include "api/tables.h"
#include "op/attr.h"

typedef struct frozen_table_t {
  weir_node_t* node;    // of the graph that is frozen
  weir_node_t* source;  // of the graph that has the entries
  weir_tensor_t* keys;  // owned, as values
  weir_tensor_t* values;
} frozen_table_t;

typedef struct tables_t {
  weir_graph_t* graph;
  weir_graph_t* source;
  weir_session_t* session;
  frozen_table_t* items;
  int count;
  weir_arena_t arena;
} tables_t;

bool weir_model_is_table(const weir_node_t* node) {
  return strcmp(node->def.op_name, "HashTableV2") == 0 ||
         strcmp(node->def.op_name, "MutableHashTableV2") == 0;
}

// ---- which there are ----

static bool begins(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_reader(const char* op) {
  return begins(op, "LookupTableFind") || begins(op, "LookupTableSize") ||
         begins(op, "LookupTableExport");
}

static weir_status_t* check_use(const weir_node_t* node) {
  const char* op = node->def.op_name;
  if ((begins(op, "LookupTable") && !is_reader(op)) || begins(op, "InitializeTable"))
    return WEIR_STATUS(FAILED_PRECONDITION, "'%s' (%s) changes a table", node->def.name, op);
  bool is_kept = strstr(op, "HashTable") && node->def.output_count == 1;
  if (!is_kept || weir_model_is_table(node)) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION,
                     "table '%s' (%s) is none of scalars by a resource: it cannot be frozen",
                     node->def.name, op);
}

static weir_status_t* list_tables(tables_t* tables, const bool* is_needed) {
  size_t count = tables->graph->node_count;
  tables->items = weir_arena_array(&tables->arena, count, sizeof(*tables->items));
  if (!tables->items) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = tables->graph->nodes[i];
    if (!is_needed[i]) continue;
    WEIR_TRY(check_use(node));
    if (!weir_model_is_table(node)) continue;
    weir_node_t* source = weir_graph_find(tables->source, weir_view_of(node->def.name));
    if (!source || !weir_model_is_table(source))
      return WEIR_STATUS(UNIMPLEMENTED, "table '%s' is made by a function", node->def.name);
    tables->items[tables->count++] = (frozen_table_t){.node = node, .source = source};
  }
  return NULL;
}

// ---- what is in them ----

static weir_status_t* read_entries(tables_t* tables) {
  size_t count = (size_t)tables->count;
  weir_node_t** sources = weir_arena_array(&tables->arena, count, sizeof(*sources));
  weir_tensor_t** entries = weir_arena_array(&tables->arena, 2 * count, sizeof(*entries));
  if (!sources || !entries) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) sources[i] = tables->items[i].source;
  WEIR_TRY(weir_tables_read(tables->session, sources, tables->count, entries));
  for (size_t i = 0; i < count; ++i) {
    tables->items[i].keys = entries[2 * i];
    tables->items[i].values = entries[2 * i + 1];
  }
  return NULL;
}

// ---- what becomes of them ----

static weir_status_t* add_node(tables_t* tables, const weir_node_t* table, const char* suffix,
                               weir_node_params_t params, weir_node_t** out_node) {
  params.name = weir_arena_printf(&tables->arena, "%s/%s", table->def.name, suffix);
  params.unique_name = true;
  params.device = table->def.device;
  if (!params.name) return weir_out_of_memory();
  return weir_graph_add(tables->graph, &params, out_node);
}

static weir_status_t* add_constant(tables_t* tables, const weir_node_t* table, const char* suffix,
                                   weir_tensor_t* value, weir_edge_t* out_edge) {
  weir_node_params_t params = {
      .op = "Const",
      .attrs = WEIR_ATTRS(weir_attr_tensor("value", value),
                          weir_attr_type("dtype", weir_tensor_type(value)))};
  out_edge->index = 0;
  return add_node(tables, table, suffix, params, &out_edge->node);
}

// Adds what fills |table|, and its handle once that is done.
static weir_status_t* add_filling(tables_t* tables, const frozen_table_t* table,
                                  weir_node_t** out_handle) {
  weir_edge_t keys, values, handle = {.node = table->node, .index = 0};
  weir_node_t* filled = NULL;
  weir_dtype_t key = weir_tensor_type(table->keys), value = weir_tensor_type(table->values);
  WEIR_TRY(add_constant(tables, table->node, "keys", table->keys, &keys));
  WEIR_TRY(add_constant(tables, table->node, "values", table->values, &values));
  weir_node_params_t fill = {
      .op = "InitializeTableV2",
      .inputs = WEIR_EDGES(handle, keys, values),
      .attrs = WEIR_ATTRS(weir_attr_type("Tkey", key), weir_attr_type("Tval", value))};
  WEIR_TRY(add_node(tables, table->node, "fill", fill, &filled));
  weir_node_params_t hand_on = {.op = "Identity",
                                .inputs = WEIR_EDGES(handle),
                                .control_inputs = &filled,
                                .control_count = 1,
                                .attrs = WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_RESOURCE))};
  return add_node(tables, table->node, "filled", hand_on, out_handle);
}

// |old_count|: nodes from there on are those that were added.
static weir_status_t* redirect(tables_t* tables, size_t old_count, const weir_node_t* table,
                               weir_node_t* handle) {
  for (size_t i = 0; i < old_count; ++i) {
    weir_node_t* node = tables->graph->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) {
      if (node->inputs[k].node == table)
        WEIR_TRY(weir_graph_set_input(node, k, (weir_edge_t){.node = handle, .index = 0}));
    }
  }
  return NULL;
}

static weir_status_t* become_filled(tables_t* tables, const frozen_table_t* table) {
  size_t old_count = tables->graph->node_count;
  weir_node_t* handle = NULL;
  weir_attrs_t attrs = table->node->def.attrs;
  // No shared name: tables of two frozen graphs have nothing to do with each other.
  WEIR_TRY(weir_graph_redefine(
      table->node, "HashTableV2", (weir_edges_t){0},
      WEIR_ATTRS(weir_attr_type("key_dtype", weir_attrs_type(attrs, "key_dtype")),
                 weir_attr_type("value_dtype", weir_attrs_type(attrs, "value_dtype")))));
  WEIR_TRY(add_filling(tables, table, &handle));
  return redirect(tables, old_count, table->node, handle);
}

static weir_status_t* freeze_all(tables_t* tables, const bool* is_needed) {
  WEIR_TRY(list_tables(tables, is_needed));
  if (tables->count == 0) return NULL;
  WEIR_TRY(read_entries(tables));
  for (int i = 0; i < tables->count; ++i) WEIR_TRY(become_filled(tables, &tables->items[i]));
  return NULL;
}

weir_status_t* weir_model_freeze_tables(weir_graph_t* graph, const bool* is_needed,
                                        weir_graph_t* source, weir_session_t* session) {
  tables_t tables = {.graph = graph, .source = source, .session = session};
  weir_status_t* status = freeze_all(&tables, is_needed);
  for (int i = 0; i < tables.count; ++i) {
    weir_tensor_release(tables.items[i].keys);
    weir_tensor_release(tables.items[i].values);
  }
  weir_arena_free(&tables.arena);
  return status;
}
