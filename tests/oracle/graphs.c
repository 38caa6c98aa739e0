// graphs.c — Runs whole graphs, passes included, for test drivers that speak protobuf
// (compile_kernels.py, fused_graphs.py).
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "weir/session.h"

#define EXPORT __attribute__((visibility("default")))

enum { MAX_FEEDS = 16 };

typedef struct graph_step_t {
  weir_graph_t* graph;
  weir_edge_t fetch;
  weir_feed_t feeds[MAX_FEEDS];
  int feed_count;
} graph_step_t;

// ---- what is fed ----

// Bytes that make small numbers of either sign in every floating type, and any integer.
static void fill(weir_tensor_t* t, uint32_t seed) {
  size_t size = weir_dtype_size(weir_tensor_type(t));
  unsigned char* bytes = t->data;
  for (size_t i = 0; i < weir_tensor_byte_size(t); ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(seed >> 24);
    if (t->dtype == WEIR_DTYPE_BOOL) bytes[i] &= 1;
    else if (weir_dtype_is_floating(t->dtype) && i % size == size - 1)
      bytes[i] = (unsigned char)((bytes[i] & 0x80) | (0x3c + (bytes[i] & 3)));
  }
}

// Numbers for all placeholders, in their shapes.
static weir_status_t* make_feeds(graph_step_t* step) {
  for (size_t i = 0; i < step->graph->node_count && step->feed_count < MAX_FEEDS; ++i) {
    weir_node_t* node = step->graph->nodes[i];
    if (strcmp(node->def.op_name, "Placeholder") != 0) continue;
    const weir_shape_t* shape = weir_attrs_shape(node->def.attrs, "shape");
    weir_tensor_t* t = NULL;
    WEIR_TRY(weir_tensor_create(node->def.output_types[0], shape->rank, shape->dims, &t));
    fill(t, (uint32_t)i + 1);
    step->feeds[step->feed_count++] =
        (weir_feed_t){.edge = (weir_edge_t){.node = node, .index = 0}, .tensor = t};
  }
  return NULL;
}

// ---- runs ----

static weir_status_t* run(const graph_step_t* step, const char* devices, const char* disabled,
                          weir_tensor_t** out_result, size_t* out_nodes) {
  weir_session_options_t options = {.threads = 1, .devices = devices, .disabled_passes = disabled};
  weir_step_spec_t spec = {.feeds = step->feeds,
                           .feed_count = step->feed_count,
                           .fetches = &step->fetch,
                           .fetch_count = 1};
  weir_session_t* session = NULL;
  weir_callable_t* callable = NULL;
  weir_status_t* status = weir_session_create(step->graph, &options, &session);
  if (!status) status = weir_callable_create(session, &spec, &callable);
  if (!status) *out_nodes = weir_callable_node_count(callable);
  if (!status) status = weir_session_run(session, &spec, out_result);
  weir_callable_destroy(callable);
  weir_session_destroy(session);
  return status;
}

// As they are in memory, or as numbers where both are none.
static bool is_same(const weir_tensor_t* a, const weir_tensor_t* b, int64_t i) {
  size_t size = weir_dtype_size(weir_tensor_type(a));
  const char* x = (const char*)a->data + (size_t)i * size;
  const char* y = (const char*)b->data + (size_t)i * size;
  if (memcmp(x, y, size) == 0) return true;
  switch (weir_tensor_type(a)) {
    case WEIR_DTYPE_FLOAT:
      return ((const float*)a->data)[i] != ((const float*)a->data)[i] &&
             ((const float*)b->data)[i] != ((const float*)b->data)[i];
    case WEIR_DTYPE_DOUBLE:
      return ((const double*)a->data)[i] != ((const double*)a->data)[i] &&
             ((const double*)b->data)[i] != ((const double*)b->data)[i];
    default: return false;
  }
}

static weir_status_t* compare(const weir_tensor_t* a, const weir_tensor_t* b) {
  if (!weir_tensor_same_shape(a, b)) return WEIR_STATUS(INTERNAL, "the shapes differ");
  for (int64_t i = 0; i < a->count; ++i) {
    if (!is_same(a, b, i)) return WEIR_STATUS(INTERNAL, "element %lld differs", (long long)i);
  }
  return NULL;
}

static weir_status_t* run_all(graph_step_t* step, const char* fetch, const char* devices,
                              const char* without, size_t* out_nodes) {
  weir_tensor_t *result = NULL, *other = NULL;
  size_t more = 0;
  weir_status_t* status = weir_graph_find_output(step->graph, fetch, &step->fetch);
  if (!status) status = make_feeds(step);
  if (!status) status = run(step, devices, NULL, &result, out_nodes);
  if (!status && without) status = run(step, devices, without, &other, &more);
  if (!status && without) status = compare(result, other);
  for (int i = 0; i < step->feed_count; ++i) weir_tensor_release(step->feeds[i].tensor);
  weir_tensor_release(result);
  weir_tensor_release(other);
  return status;
}

// Runs a step of |def|, a GraphDef, that fetches |fetch|. |without| (or NULL): and again without
// these passes, which must not make a difference of one bit. NULL, or what went wrong, until the
// next call. |out_nodes|: of the step as it ran.
EXPORT const char* weir_probe_graph(const char* def, size_t size, const char* fetch,
                                    const char* devices, const char* without, size_t* out_nodes);
EXPORT const char* weir_probe_graph(const char* def, size_t size, const char* fetch,
                                    const char* devices, const char* without, size_t* out_nodes) {
  static char message[4096];
  graph_step_t step = {.graph = NULL};
  weir_status_t* status = weir_graph_create(&step.graph);
  if (!status) status = weir_graph_import_def(step.graph, def, size, NULL);
  if (!status) status = run_all(&step, fetch, devices, without, out_nodes);
  weir_graph_release(step.graph);
  if (!status) return NULL;
  snprintf(message, sizeof(message), "%s", weir_status_message(status));
  weir_status_destroy(status);
  return message;
}
