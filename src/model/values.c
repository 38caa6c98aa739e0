// values.c — Reads variables of a session, by nodes that the graph has or gains for it.
#include "model/values.h"

weir_status_t* weir_model_value_edge(weir_node_t* variable, weir_edge_t* out_edge) {
  *out_edge = (weir_edge_t){.node = variable, .index = 0};
  if (weir_dtype_is_ref(variable->def.output_types[0])) return NULL;
  weir_node_t* reader = weir_graph_find_reader(variable, "ReadVariableOp");
  weir_dtype_t dtype = weir_attrs_type(variable->def.attrs, "dtype");
  weir_node_params_t params = {.op = "ReadVariableOp",
                               .name = "read_to_save",
                               .unique_name = true,
                               .device = variable->def.device,
                               .inputs = WEIR_EDGES(*out_edge),
                               .attrs = WEIR_ATTRS(weir_attr_type("dtype", dtype))};
  if (!reader) WEIR_TRY(weir_graph_add(variable->graph, &params, &reader));
  out_edge->node = reader;
  return NULL;
}

weir_status_t* weir_model_read_values(weir_session_t* session, weir_graph_t* graph,
                                      weir_node_t* const* variables, int count,
                                      weir_tensor_t** out_values) {
  weir_arena_t arena = {0};
  if (count == 0) return NULL;
  weir_edge_t* edges = weir_arena_array(&arena, (size_t)count, sizeof(*edges));
  weir_status_t* status = edges ? NULL : weir_out_of_memory();
  weir_mutex_lock(&graph->mu);
  for (int i = 0; !status && i < count; ++i)
    status = weir_model_value_edge(variables[i], &edges[i]);
  weir_mutex_unlock(&graph->mu);
  weir_step_spec_t spec = {.fetches = edges, .fetch_count = count};
  if (!status) status = weir_session_run(session, &spec, out_values);
  weir_arena_free(&arena);
  return status;
}
