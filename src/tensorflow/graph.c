// graph.c — TF_Graph: creation, nodes by name and in order, shapes, and messages of it.
#include "graph/graph.h"

#include "graph/function.h"
#include "graph/graph_internal.h"
#include "graph/node_def.h"
#include "ops/builtin_ops.h"
#include "tensorflow/internal.h"
#include "wire/wire.h"

const char* TF_Version(void) { return "2.21.0"; }

// ---- creation ----

weir_status_t* tf_graph_create(TF_Graph** out_graph) {
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  TF_Graph* graph = weir_calloc(1, sizeof(*graph));
  if (!graph) return weir_out_of_memory();
  weir_status_t* status = weir_graph_new(registry, &graph->graph);
  if (status) {
    weir_free(graph);
    return status;
  }
  graph->graph->producer = TF_GRAPH_VERSION;
  *out_graph = graph;
  return NULL;
}

TF_Graph* TF_NewGraph(void) {
  TF_Graph* graph = NULL;
  return weir_status_report(tf_graph_create(&graph)) ? NULL : graph;
}

void TF_DeleteGraph(TF_Graph* graph) {
  if (!graph) return;
  weir_graph_unref(graph->graph);
  weir_free(graph);
}

// ---- nodes ----

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name) {
  weir_mutex_lock(&graph->graph->mu);
  weir_node_t* node = weir_graph_find(graph->graph, weir_view_of(oper_name));
  weir_mutex_unlock(&graph->graph->mu);
  return tf_operation(node);
}

// Programs print positions: TensorFlow's first operation leaves 2, after nodes that nobody sees.
TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos) {
  const size_t next = *pos < 2 ? 0 : *pos - 1;
  weir_mutex_lock(&graph->graph->mu);
  weir_node_t* node = next < graph->graph->node_count ? graph->graph->nodes[next] : NULL;
  weir_mutex_unlock(&graph->graph->mu);
  if (node) *pos = next + 2;
  return tf_operation(node);
}

weir_status_t* tf_check_output(const weir_graph_t* graph, TF_Output output) {
  const weir_node_t* node = tf_node(output.oper);
  if (!node) return WEIR_STATUS(INVALID_ARGUMENT, "an output is of no operation");
  if (node->graph != graph)
    return WEIR_STATUS(INVALID_ARGUMENT, "Node %s was not found in the graph", node->def.name);
  if (output.index >= 0 && output.index < node->def.output_count) return NULL;
  return WEIR_STATUS(OUT_OF_RANGE,
                     "Node '%s' (type: '%s', num of outputs: %d) does not have output %d",
                     node->def.name, node->def.op_name, node->def.output_count, output.index);
}

// Whether |prefix| is a node, or any is below it.
static bool is_prefix_taken(const weir_graph_t* graph, const char* prefix) {
  const size_t size = strlen(prefix);
  if (weir_graph_find(graph, weir_view(prefix, size))) return true;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const char* name = graph->nodes[i]->def.name;
    if (strncmp(name, prefix, size) == 0 && name[size] == '/') return true;
  }
  return false;
}

char* tf_graph_unique_prefix(const weir_graph_t* graph, const char* name) {
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text, name);
  for (int i = 1; text.data && is_prefix_taken(graph, text.data); ++i) {
    text.size = 0;
    weir_strbuf_printf(&text, "%s_%d", name, i);
  }
  if (text.failed) weir_strbuf_free(&text);
  return text.data;
}

// ---- shapes ----

static const weir_shape_t* shape_at(const weir_node_t* node, int index) {
  return node->shapes && node->shapes[index] ? node->shapes[index] : &weir_shape_unknown;
}

static weir_status_t* set_shape(weir_graph_t* graph, TF_Output output, const int64_t* dims,
                                int num_dims) {
  WEIR_TRY(tf_check_output(graph, output));
  if (num_dims < 0) return NULL;
  weir_node_t* node = tf_node(output.oper);
  const weir_shape_t* given = weir_shape_make(&graph->arena, num_dims, dims);
  if (!given) return weir_out_of_memory();
  const weir_shape_t* before = shape_at(node, output.index);
  const weir_shape_t* merged = NULL;
  weir_shape_ctx_t ctx = {.node = &node->def, .arena = &graph->arena};
  WEIR_TRY(weir_shape_join(&ctx, before, given, &merged));
  node->shapes[output.index] = merged;
  ++graph->version;
  return NULL;
}

void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims,
                            const int num_dims, TF_Status* status) {
  weir_mutex_lock(&graph->graph->mu);
  tf_status_take(status, set_shape(graph->graph, output, dims, num_dims));
  weir_mutex_unlock(&graph->graph->mu);
}

int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status) {
  int rank = -1;
  weir_mutex_lock(&graph->graph->mu);
  if (tf_status_take(status, tf_check_output(graph->graph, output)))
    rank = shape_at(tf_node(output.oper), output.index)->rank;
  weir_mutex_unlock(&graph->graph->mu);
  return rank;
}

static weir_status_t* get_shape(const weir_graph_t* graph, TF_Output output, int64_t* dims,
                                int num_dims) {
  WEIR_TRY(tf_check_output(graph, output));
  const weir_shape_t* shape = shape_at(tf_node(output.oper), output.index);
  const int rank = shape->rank < 0 ? -1 : shape->rank;
  if (rank != num_dims)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected rank is %d but actual rank is %d", num_dims,
                       rank);
  for (int i = 0; i < rank; ++i) dims[i] = shape->dims[i] < 0 ? -1 : shape->dims[i];
  return NULL;
}

void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims,
                            TF_Status* status) {
  weir_mutex_lock(&graph->graph->mu);
  tf_status_take(status, get_shape(graph->graph, output, dims, num_dims));
  weir_mutex_unlock(&graph->graph->mu);
}

// ---- messages ----

weir_status_t* tf_graph_to_def(weir_graph_t* graph, weir_strbuf_t* out_def) {
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = weir_graph_write_portable(graph, 0, out_def);
  weir_mutex_unlock(&graph->mu);
  return status;
}

// Gives |bytes| to |out| or says why not.
static void hand_out(weir_status_t* take_status, weir_strbuf_t* take_bytes, TF_Buffer* out,
                     TF_Status* status) {
  weir_status_t* result = take_status ? take_status : tf_buffer_take(out, take_bytes);
  weir_strbuf_free(take_bytes);
  tf_status_take(status, result);
}

void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def, TF_Status* status) {
  weir_strbuf_t bytes = {0};
  hand_out(tf_graph_to_def(graph->graph, &bytes), &bytes, output_graph_def, status);
}

void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def, TF_Status* status) {
  const weir_node_t* node = tf_node(oper);
  weir_strbuf_t bytes = {0};
  weir_mutex_lock(&node->graph->mu);
  weir_status_t* result = weir_node_def_write(node, &bytes);
  weir_mutex_unlock(&node->graph->mu);
  hand_out(result, &bytes, output_node_def, status);
}

void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def, TF_Status* status) {
  enum { PRODUCER = 1, MIN_CONSUMER = 2 };
  weir_strbuf_t bytes = {0};
  weir_mutex_lock(&graph->graph->mu);
  weir_wire_put_int(&bytes, PRODUCER, graph->graph->producer);
  if (graph->graph->min_consumer)
    weir_wire_put_int(&bytes, MIN_CONSUMER, graph->graph->min_consumer);
  weir_mutex_unlock(&graph->graph->mu);
  hand_out(NULL, &bytes, output_version_def, status);
}

static weir_status_t* write_op(const weir_graph_t* graph, const char* name, weir_strbuf_t* out) {
  const weir_op_t* op = weir_registry_find(graph->registry, weir_view_of(name));
  const weir_function_t* function =
      op ? NULL : weir_function_find(graph->library, weir_view_of(name));
  if (!op && function) op = function->signature;
  if (!op) return WEIR_STATUS(NOT_FOUND, "Op type not registered '%s'", name);
  return weir_op_write(op, out);
}

void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def,
                      TF_Status* status) {
  weir_strbuf_t bytes = {0};
  weir_mutex_lock(&graph->graph->mu);
  weir_status_t* result = write_op(graph->graph, op_name, &bytes);
  weir_mutex_unlock(&graph->graph->mu);
  hand_out(result, &bytes, output_op_def, status);
}
