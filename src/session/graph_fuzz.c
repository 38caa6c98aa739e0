// graph_fuzz.c — Fuzz target: any bytes as a GraphDef; what imports is run. Statuses, never
// crashes, hangs or huge allocations.
#include "graph/graph.h"
#include "weir/session.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
const char* __asan_default_options(void);

enum { MAX_NODES = 64, MAX_STEPS = 8, TIMEOUT_MS = 100 };

// A graph may ask for tensors of any size: beyond 64 MB the allocator says no, and so must the
// step.
const char* __asan_default_options(void) {
  return "allocator_may_return_null=1:max_allocation_size_mb=64";
}

// Ops that act on the world outside: files, the terminal, the process itself.
static bool is_harmless(const weir_node_t* node) {
  static const char* const denied[] = {"File",    "Save",  "Restore", "Checkpoint",
                                       "Summary", "Print", "Abort"};
  for (size_t i = 0; i < WEIR_COUNT_OF(denied); ++i) {
    if (strstr(node->def.op_name, denied[i])) return false;
  }
  return true;
}

// Functions may hold them too: their names would be in the bytes.
static bool is_safe(const weir_graph_t* graph, const uint8_t* data, size_t size) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (!is_harmless(graph->nodes[i])) return false;
  }
  return !memmem(data, size, "File", 4) && !memmem(data, size, "Abort", 5) &&
         !memmem(data, size, "Print", 5) && !memmem(data, size, "Save", 4) &&
         !memmem(data, size, "Checkpoint", 10);
}

static void run_node(weir_session_t* session, weir_node_t* node) {
  weir_edge_t edge = {.node = node, .index = 0};
  weir_tensor_t* result = NULL;
  bool is_fetch = node->def.output_count > 0;
  weir_step_spec_t spec = {.fetches = &edge,
                           .fetch_count = is_fetch ? 1 : 0,
                           .targets = &node,
                           .target_count = is_fetch ? 0 : 1};
  weir_run_options_t options = {.timeout_ms = TIMEOUT_MS};
  weir_status_destroy(weir_session_run_with(session, &spec, &options, &result, NULL, NULL));
  weir_tensor_release(result);
}

// The last nodes depend on most of the others.
static void run_some(weir_graph_t* graph) {
  weir_session_t* session = NULL;
  weir_session_options_t options = {.threads = 1, .allow_soft_placement = true};
  weir_status_t* status = weir_session_create(graph, &options, &session);
  for (size_t i = 0; !status && i < graph->node_count && i < MAX_STEPS; ++i) {
    run_node(session, graph->nodes[graph->node_count - 1 - i]);
  }
  weir_session_destroy(session);
  weir_status_destroy(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_graph_t* graph = NULL;
  weir_status_t* status = weir_graph_create(&graph);
  if (!status) status = weir_graph_import_def(graph, data, size, NULL);
  if (!status && graph->node_count <= MAX_NODES && is_safe(graph, data, size)) {
    run_some(graph);
    char* bytes = NULL;
    size_t byte_count = 0;
    status = weir_graph_to_def(graph, &bytes, &byte_count);
    weir_buffer_free(bytes);
  }
  weir_status_destroy(status);
  weir_graph_release(graph);
  return 0;
}
