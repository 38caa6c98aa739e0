// tables.c — Reads and fills lookup tables by steps of a session.
#include "api/tables.h"

#include "op/attr.h"
#include "session/session.h"
#include "tensor/tensor.h"

bool weir_table_can_change(const weir_node_t* node) {
  const char* op = node->def.op_name;
  return strcmp(op, "MutableHashTableV2") == 0 || strcmp(op, "MutableHashTableOfTensorsV2") == 0 ||
         strcmp(op, "MutableDenseHashTableV2") == 0;
}

weir_node_t* weir_tables_find(weir_session_t* session, const char* name) {
  weir_mutex_lock(&session->graph->mu);
  weir_node_t* node = weir_graph_find(session->graph, weir_view_of(name));
  weir_mutex_unlock(&session->graph->mu);
  return node && weir_table_can_change(node) ? node : NULL;
}

// ---- reading ----

static weir_status_t* export_edges(weir_node_t* table, weir_edge_t* out_edges) {
  weir_node_t* node = weir_graph_find_reader(table, "LookupTableExportV2");
  weir_attrs_t attrs = table->def.attrs;
  weir_node_params_t params = {
      .op = "LookupTableExportV2",
      .name = "table_to_save",
      .unique_name = true,
      .device = table->def.device,
      .inputs = WEIR_EDGES((weir_edge_t){.node = table, .index = 0}),
      .attrs = WEIR_ATTRS(weir_attr_type("Tkeys", weir_attrs_type(attrs, "key_dtype")),
                          weir_attr_type("Tvalues", weir_attrs_type(attrs, "value_dtype")))};
  if (!node) WEIR_TRY(weir_graph_add(table->graph, &params, &node));
  for (int i = 0; i < 2; ++i) out_edges[i] = (weir_edge_t){.node = node, .index = i};
  return NULL;
}

weir_status_t* weir_tables_read(weir_session_t* session, weir_node_t* const* tables, int count,
                                weir_tensor_t** out_entries) {
  if (count == 0) return NULL;
  weir_edge_t* edges = weir_alloc_array(2 * (size_t)count, sizeof(*edges));
  weir_status_t* status = edges ? NULL : weir_out_of_memory();
  weir_mutex_lock(&session->graph->mu);
  for (int i = 0; !status && i < count; ++i) status = export_edges(tables[i], &edges[2 * i]);
  weir_mutex_unlock(&session->graph->mu);
  weir_step_spec_t spec = {.fetches = edges, .fetch_count = 2 * count};
  if (!status) status = weir_session_run(session, &spec, out_entries);
  weir_free(edges);
  return status;
}

// ---- filling ----

// Whether each of as many |values| as there are |keys| has the shape that |table| wants.
static bool are_alike(const weir_node_t* table, const weir_tensor_t* keys,
                      const weir_tensor_t* values) {
  const weir_attr_t* shape = weir_attrs_find(table->def.attrs, "value_shape");
  if (keys->rank < 1 || values->rank < 1 || keys->dims[0] != values->dims[0]) return false;
  if (!shape) return keys->rank == 1 && values->rank == 1;
  return weir_shape_accepts(shape->u.shape, values->rank - 1, values->dims + 1);
}

weir_status_t* weir_table_check(const weir_node_t* table, const weir_tensor_t* keys,
                                const weir_tensor_t* values) {
  weir_dtype_t key = weir_attrs_type(table->def.attrs, "key_dtype");
  weir_dtype_t value = weir_attrs_type(table->def.attrs, "value_dtype");
  if (weir_tensor_type(keys) != key || weir_tensor_type(values) != value)
    return WEIR_STATUS(
        INVALID_ARGUMENT, "table '%s' is from %s to %s, and takes none from %s to %s",
        table->def.name, weir_dtype_name(key), weir_dtype_name(value),
        weir_dtype_name(weir_tensor_type(keys)), weir_dtype_name(weir_tensor_type(values)));
  if (are_alike(table, keys, values)) return NULL;
  char k[WEIR_SHAPE_TEXT_SIZE], v[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "table '%s' takes no keys of shape %s with values of %s",
                     table->def.name, weir_tensor_shape_text(keys, k),
                     weir_tensor_shape_text(values, v));
}

static weir_status_t* add_node(weir_node_t* table, weir_node_params_t params,
                               weir_node_t** out_node) {
  params.name = "table_to_fill";
  params.unique_name = true;
  params.device = table->def.device;
  return weir_graph_add(table->graph, &params, out_node);
}

static weir_status_t* add_placeholder(weir_node_t* table, const char* type, weir_edge_t* out_edge) {
  weir_dtype_t dtype = weir_attrs_type(table->def.attrs, type);
  out_edge->index = 0;
  return add_node(table,
                  (weir_node_params_t){.op = "Placeholder",
                                       .attrs = WEIR_ATTRS(weir_attr_type("dtype", dtype))},
                  &out_edge->node);
}

// That was added before: it is fed both.
static weir_node_t* find_import(const weir_node_t* table) {
  const weir_graph_t* graph = table->graph;
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = graph->nodes[i];
    if (strcmp(node->def.op_name, "LookupTableImportV2") == 0 && node->control_count == 0 &&
        node->inputs[0].node == table &&
        strcmp(node->inputs[1].node->def.op_name, "Placeholder") == 0 &&
        strcmp(node->inputs[2].node->def.op_name, "Placeholder") == 0)
      return node;
  }
  return NULL;
}

static weir_status_t* import_node(weir_node_t* table, weir_node_t** out_node) {
  weir_edge_t keys, values, handle = {.node = table, .index = 0};
  *out_node = find_import(table);
  if (*out_node) return NULL;
  WEIR_TRY(add_placeholder(table, "key_dtype", &keys));
  WEIR_TRY(add_placeholder(table, "value_dtype", &values));
  return add_node(
      table,
      (weir_node_params_t){
          .op = "LookupTableImportV2",
          .inputs = WEIR_EDGES(handle, keys, values),
          .attrs =
              WEIR_ATTRS(weir_attr_type("Tin", weir_attrs_type(table->def.attrs, "key_dtype")),
                         weir_attr_type("Tout", weir_attrs_type(table->def.attrs, "value_dtype")))},
      out_node);
}

weir_status_t* weir_tables_fill(weir_session_t* session, weir_node_t* const* tables, int count,
                                weir_tensor_t* const* entries) {
  if (count == 0) return NULL;
  weir_node_t** targets = weir_alloc_array((size_t)count, sizeof(*targets));
  weir_feed_t* feeds = weir_alloc_array(2 * (size_t)count, sizeof(*feeds));
  weir_status_t* status = targets && feeds ? NULL : weir_out_of_memory();
  weir_mutex_lock(&session->graph->mu);
  for (int i = 0; !status && i < count; ++i) {
    status = import_node(tables[i], &targets[i]);
    for (int k = 0; !status && k < 2; ++k)
      feeds[2 * i + k] =
          (weir_feed_t){.edge = targets[i]->inputs[1 + k], .tensor = entries[2 * i + k]};
  }
  weir_mutex_unlock(&session->graph->mu);
  weir_step_spec_t spec = {
      .feeds = feeds, .feed_count = 2 * count, .targets = targets, .target_count = count};
  if (!status) status = weir_session_run(session, &spec, NULL);
  weir_free(feeds);
  weir_free(targets);
  return status;
}
