// graphs.c — Runs a whole graph, passes included, for a test driver that speaks protobuf
// (compile_kernels.py).
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "weir/session.h"

#define EXPORT __attribute__((visibility("default")))

enum { MAX_FEEDS = 16 };

// Zeros for all placeholders, in their shapes.
static weir_status_t* make_feeds(weir_graph_t* graph, weir_feed_t* feeds, int* count) {
  for (size_t i = 0; i < graph->node_count && *count < MAX_FEEDS; ++i) {
    weir_node_t* node = graph->nodes[i];
    if (strcmp(node->def.op_name, "Placeholder") != 0) continue;
    const weir_shape_t* shape = weir_attrs_shape(node->def.attrs, "shape");
    weir_tensor_t* zeros = NULL;
    WEIR_TRY(weir_tensor_create(node->def.output_types[0], shape->rank, shape->dims, &zeros));
    memset(zeros->data, 0, weir_tensor_byte_size(zeros));
    feeds[(*count)++] =
        (weir_feed_t){.edge = (weir_edge_t){.node = node, .index = 0}, .tensor = zeros};
  }
  return NULL;
}

static weir_status_t* run(weir_graph_t* graph, const char* fetch, const char* devices,
                          size_t* out_nodes) {
  weir_session_options_t options = {.threads = 1, .devices = devices};
  weir_feed_t feeds[MAX_FEEDS];
  weir_session_t* session = NULL;
  weir_callable_t* callable = NULL;
  weir_tensor_t* result = NULL;
  weir_edge_t edge;
  weir_step_spec_t spec = {.feeds = feeds, .fetches = &edge, .fetch_count = 1};
  weir_status_t* status = weir_graph_find_output(graph, fetch, &edge);
  if (!status) status = make_feeds(graph, feeds, &spec.feed_count);
  if (!status) status = weir_session_create(graph, &options, &session);
  if (!status) status = weir_callable_create(session, &spec, &callable);
  if (!status) *out_nodes = weir_callable_node_count(callable);
  if (!status) status = weir_session_run(session, &spec, &result);
  for (int i = 0; i < spec.feed_count; ++i) weir_tensor_release(feeds[i].tensor);
  weir_tensor_release(result);
  weir_callable_destroy(callable);
  weir_session_destroy(session);
  return status;
}

// Runs a step of |def|, a GraphDef, that fetches |fetch|. NULL, or what went wrong, until the next
// call. |out_nodes|: of the step as it ran.
EXPORT const char* weir_probe_graph(const char* def, size_t size, const char* fetch,
                                    const char* devices, size_t* out_nodes);
EXPORT const char* weir_probe_graph(const char* def, size_t size, const char* fetch,
                                    const char* devices, size_t* out_nodes) {
  static char message[4096];
  weir_graph_t* graph = NULL;
  weir_status_t* status = weir_graph_create(&graph);
  if (!status) status = weir_graph_import_def(graph, def, size, NULL);
  if (!status) status = run(graph, fetch, devices, out_nodes);
  weir_graph_release(graph);
  if (!status) return NULL;
  snprintf(message, sizeof(message), "%s", weir_status_message(status));
  weir_status_destroy(status);
  return message;
}
