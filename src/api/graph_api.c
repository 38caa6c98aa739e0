// graph_api.c — The public functions on graphs and nodes.
#include <stdio.h>

#include "base/live.h"
#include "graph/graph.h"
#include "ops/builtin_ops.h"
#include "weir/argument.h"
#include "weir/graph.h"
#include "wire/text.h"

weir_status_t* weir_graph_create(weir_graph_t** out_graph) {
  WEIR_REQUIRE_ARG(out_graph);
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  return weir_graph_new(registry, out_graph);
}

weir_graph_t* weir_graph_retain(weir_graph_t* graph) { return weir_graph_ref(graph); }
void weir_graph_release(weir_graph_t* graph) { weir_graph_unref(graph); }
void weir_buffer_free(char* data) { weir_free(data); }

weir_status_t* weir_graph_import_def(weir_graph_t* graph, const void* data, size_t size,
                                     const char* prefix) {
  if (size > 0) WEIR_REQUIRE_ARG(data);
  WEIR_REQUIRE_ARG(graph);
  if (graph->adder)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "%s: the graph is an eager scope's: nodes are run as they are added",
                       __func__);
  weir_import_params_t params = {.prefix = prefix};
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = weir_graph_import(graph, weir_view(data, size), &params);
  weir_mutex_unlock(&graph->mu);
  return status;
}

weir_status_t* weir_graph_import_text(weir_graph_t* graph, const char* text, size_t size,
                                      const char* prefix) {
  if (size > 0) WEIR_REQUIRE_ARG(text);
  WEIR_REQUIRE_ARG(graph);
  weir_strbuf_t binary = {0};
  weir_status_t* status = weir_text_parse(&weir_message_graph_def, weir_view(text, size), &binary);
  if (!status) status = weir_graph_import_def(graph, binary.data, binary.size, prefix);
  weir_strbuf_free(&binary);
  return status;
}

static weir_status_t* hand_out(weir_strbuf_t* buffer, weir_status_t* status, char** out_data,
                               size_t* out_size) {
  if (!status) status = weir_strbuf_finish(buffer);
  if (!status && !buffer->data) weir_strbuf_append(buffer, "", 0);
  if (status) {
    weir_strbuf_free(buffer);
    return status;
  }
  *out_data = buffer->data;
  *out_size = buffer->size;
  return NULL;
}

weir_status_t* weir_graph_to_def(weir_graph_t* graph, char** out_data, size_t* out_size) {
  WEIR_REQUIRE_ARG(graph);
  WEIR_REQUIRE_ARG(out_data);
  WEIR_REQUIRE_ARG(out_size);
  if (graph->adder)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "%s: the graph is an eager scope's: a record of what ran", __func__);
  weir_strbuf_t binary = {0};
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = weir_graph_write_portable(graph, 0, &binary);
  weir_mutex_unlock(&graph->mu);
  return hand_out(&binary, status, out_data, out_size);
}

weir_status_t* weir_graph_to_text(weir_graph_t* graph, char** out_text, size_t* out_size) {
  WEIR_REQUIRE_ARG(graph);
  WEIR_REQUIRE_ARG(out_text);
  WEIR_REQUIRE_ARG(out_size);
  char* data = NULL;
  size_t size = 0;
  WEIR_TRY(weir_graph_to_def(graph, &data, &size));
  weir_strbuf_t text = {0};
  weir_status_t* status = weir_text_print(&weir_message_graph_def, weir_view(data, size), &text);
  weir_free(data);
  return hand_out(&text, status, out_text, out_size);
}

size_t weir_graph_node_count(weir_graph_t* graph) {
  WEIR_ASSERT_ARG(graph);
  weir_mutex_lock(&graph->mu);
  size_t count = graph->node_count;
  weir_mutex_unlock(&graph->mu);
  return count;
}

weir_node_t* weir_graph_node_at(weir_graph_t* graph, size_t index) {
  WEIR_ASSERT_ARG(graph);
  weir_mutex_lock(&graph->mu);
  weir_node_t* node = index < graph->node_count ? graph->nodes[index] : NULL;
  weir_mutex_unlock(&graph->mu);
  return node;
}

weir_node_t* weir_graph_find_node(weir_graph_t* graph, const char* name) {
  WEIR_ASSERT_ARG(graph);
  WEIR_ASSERT_ARG(name);
  weir_mutex_lock(&graph->mu);
  weir_node_t* node = weir_graph_find(graph, weir_view_of(name));
  weir_mutex_unlock(&graph->mu);
  return node;
}

weir_status_t* weir_graph_find_output(weir_graph_t* graph, const char* name,
                                      weir_edge_t* out_edge) {
  WEIR_REQUIRE_ARG(graph);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(out_edge);
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = weir_graph_find_edge(graph, weir_view_of(name), out_edge);
  weir_mutex_unlock(&graph->mu);
  return status;
}

const char* weir_node_name(const weir_node_t* node) {
  WEIR_ASSERT_ARG(node);
  return node->def.name;
}
const char* weir_node_op(const weir_node_t* node) {
  WEIR_ASSERT_ARG(node);
  return node->def.op_name;
}
const char* weir_node_device(const weir_node_t* node) {
  WEIR_ASSERT_ARG(node);
  return node->def.device;
}
int weir_node_input_count(const weir_node_t* node) {
  WEIR_ASSERT_ARG(node);
  return node->def.input_count;
}
weir_edge_t weir_node_input(const weir_node_t* node, int index) {
  WEIR_ASSERT_ARG(node);
  return node->inputs[index];
}
int weir_node_control_count(const weir_node_t* node) {
  WEIR_ASSERT_ARG(node);
  return node->control_count;
}
weir_node_t* weir_node_control(const weir_node_t* node, int index) {
  WEIR_ASSERT_ARG(node);
  return node->control_inputs[index];
}
int weir_node_output_count(const weir_node_t* node) {
  WEIR_ASSERT_ARG(node);
  return node->def.output_count;
}
static void assert_output(weir_edge_t edge, const char* function) {
  if (!edge.node) weir_abort_null(function, "edge.node");
  if (edge.index < 0 || edge.index >= edge.node->def.output_count)
    weir_abort_on(function, "edge.index", "is not that of an output of the node");
}

weir_dtype_t weir_edge_type(weir_edge_t edge) {
  assert_output(edge, __func__);
  return weir_edge_dtype(edge);
}

int weir_edge_dims(weir_edge_t edge, int64_t* dims, int capacity) {
  assert_output(edge, __func__);
  const weir_shape_t* shape = weir_edge_shape(edge);
  for (int i = 0; i < shape->rank && i < capacity; ++i) dims[i] = shape->dims[i];
  return shape->rank;
}
