// graph_def.c — GraphDef messages in and out: all nodes are parsed and named first, then linked,
// then inferred in order.
#include "base/details.h"
#include "base/log.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "graph/graph_internal.h"
#include "graph/node_def.h"
#include "wire/wire.h"

enum { GRAPH_NODE = 1, GRAPH_LIBRARY = 2, GRAPH_VERSIONS = 4 };
enum { VERSIONS_PRODUCER = 1, VERSIONS_MIN_CONSUMER = 2, VERSIONS_BAD_CONSUMERS = 3 };

typedef struct import_t {
  weir_graph_t* graph;
  const weir_import_params_t* params;
  weir_arena_t scratch;
  size_t first;                // id of the first new node
  weir_parsed_node_t* parsed;  // by id - first
  size_t parsed_capacity;
  bool has_told;  // of an attribute that its op lacks
} import_t;

static weir_view_t prefixed(import_t* import, weir_view_t name) {
  const char* prefix = import->params ? import->params->prefix : NULL;
  if (!prefix || !*prefix) return name;
  return weir_view_of(weir_arena_printf(&import->scratch, "%s/%.*s", prefix, WEIR_VIEW_ARG(name)));
}

// A newer TensorFlow may have written the graph: as there, what its ops have in addition is told
// of, once, and ignored.
static void tell_of_unknown_attrs(import_t* import, const weir_node_t* node) {
  if (import->has_told || !node->def.op) return;
  weir_status_t* status = weir_op_check_attr_names(node->def.op, node->def.name, node->def.attrs);
  if (!status) return;
  WEIR_LOG(ERROR, "%s. Unknown attributes are ignored", weir_status_message(status));
  weir_status_destroy(status);
  import->has_told = true;
}

static weir_status_t* declare_node(import_t* import, weir_view_t message) {
  weir_graph_t* graph = import->graph;
  size_t index = graph->node_count - import->first;
  if (!WEIR_GROW(import->parsed, import->parsed_capacity, index + 1)) return weir_out_of_memory();
  weir_parsed_node_t* parsed = &import->parsed[index];
  WEIR_TRY(weir_node_def_parse(message, &graph->arena, &graph->tensors, parsed));
  if (parsed->name.size == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "GraphDef has a node without a name");
  if (memchr(parsed->name.data, 0, parsed->name.size)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "node name '%.*s' holds a zero byte",
                       WEIR_VIEW_ARG(parsed->name));
  }
  weir_view_t name = prefixed(import, parsed->name);
  weir_node_t* node = name.size > 0 ? weir_node_make(graph, name, parsed->device) : NULL;
  if (!node) return weir_out_of_memory();
  if (!weir_node_name_is_valid(node->def.name))
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is not a valid node name", node->def.name);
  node->unknown_fields = parsed->unknown_fields;
  char* op = weir_arena_strndup(&graph->arena, parsed->op.data, parsed->op.size);
  if (!op) return weir_out_of_memory();
  WEIR_TRY(weir_node_define(node, op, parsed->attrs, NULL, 0));
  tell_of_unknown_attrs(import, node);
  return weir_graph_register(graph, node);
}

// Splits "^name", "name:3", "name" and finds the node.
typedef struct input_ref_t {
  weir_node_t* node;
  int index;
  bool is_control;
} input_ref_t;

static weir_status_t* find_input(import_t* import, const weir_node_t* node, weir_view_t text,
                                 input_ref_t* out_ref) {
  weir_view_t name = text;
  input_ref_t ref = {0};
  if (name.size > 0 && name.data[0] == '^') {
    ref.is_control = true;
    name = weir_view(name.data + 1, name.size - 1);
  }
  const weir_import_params_t* params = import->params;
  for (int i = 0; params && i < params->input_map_to.count; ++i) {
    weir_view_t from = weir_view_of(params->input_map_from[i]);
    bool is_output_0 = weir_view_ends_with(from, ":0") &&
                       weir_view_equal(weir_view(from.data, from.size - 2), name);
    if (!weir_view_equal(from, name) && !is_output_0) continue;
    *out_ref = (input_ref_t){params->input_map_to.items[i].node,
                             params->input_map_to.items[i].index, ref.is_control};
    return NULL;
  }
  size_t colon = name.size;
  while (colon > 0 && name.data[colon - 1] != ':') --colon;
  int64_t index = 0;
  if (colon > 0 && !ref.is_control) {
    if (!weir_parse_int64(weir_view(name.data + colon, name.size - colon), &index) || index < 0 ||
        index > INT32_MAX) {
      return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                              "input '%.*s' is not \"node:index\"", WEIR_VIEW_ARG(text));
    }
    name.size = colon - 1;
  }
  ref.node = weir_graph_find(import->graph, prefixed(import, name));
  ref.index = (int)index;
  if (!ref.node) {
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name, "Unknown input node '%.*s'",
                            WEIR_VIEW_ARG(text));
  }
  *out_ref = ref;
  return NULL;
}

// An op nobody registered has as many outputs as its consumers name, of types nobody knows.
static weir_status_t* widen_unknown(weir_node_t* node, int index) {
  enum { MAX_OUTPUTS = 1 << 16 };  // a number in a file must not cost gigabytes
  if (node->def.op || index < node->def.output_count) return NULL;
  if (index >= MAX_OUTPUTS) {
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                            "output %d of an op nobody registered is too many", index);
  }
  weir_dtype_t* types = weir_arena_array(&node->graph->arena, (size_t)index + 1, sizeof(*types));
  if (!types) return weir_out_of_memory();
  node->def.output_types = types;
  node->def.output_count = index + 1;
  return weir_node_alloc_shapes(node);
}

static weir_status_t* link_node(import_t* import, weir_node_t* node,
                                const weir_parsed_node_t* parsed) {
  weir_arena_t* arena = &import->graph->arena;
  node->inputs = weir_arena_array(arena, (size_t)parsed->input_count, sizeof(*node->inputs));
  node->control_inputs =
      weir_arena_array(arena, (size_t)parsed->input_count, sizeof(*node->control_inputs));
  if (!node->inputs || !node->control_inputs) return weir_out_of_memory();
  int data = 0;
  for (int i = 0; i < parsed->input_count; ++i) {
    input_ref_t ref = {0};
    WEIR_TRY(find_input(import, node, parsed->inputs[i], &ref));
    if (ref.is_control) {
      node->control_inputs[node->control_count++] = ref.node;
      continue;
    }
    if (node->control_count > 0) {
      return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                              "data input '%.*s' after a control input",
                              WEIR_VIEW_ARG(parsed->inputs[i]));
    }
    WEIR_TRY(widen_unknown(ref.node, ref.index));
    node->inputs[data++] = (weir_edge_t){.node = ref.node, .index = ref.index};
  }
  if (!node->def.op) {
    node->def.input_count = data;
    weir_dtype_t* types = weir_arena_array(arena, (size_t)data, sizeof(*types));
    if (!types) return weir_out_of_memory();
    node->def.input_types = types;
  } else if (data != node->def.input_count) {
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                            "expects %d inputs for op %s, but has %d", node->def.input_count,
                            node->def.op_name, data);
  }
  return NULL;
}

static weir_status_t* check_types(const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i)
    WEIR_TRY(weir_node_check_input(node, i, node->inputs[i]));
  return NULL;
}

enum { GRAPH_VERSION = 2474 };  // of TensorFlow 2.21, whose ops these are

// Versions of readers that the writer of the graph shuts out.
static weir_status_t* check_bad_consumers(const weir_wire_reader_t* field) {
  uint64_t version = 0;
  weir_wire_packed_t versions = weir_wire_packed(field, WEIR_WIRE_VARINT);
  while (weir_wire_packed_next(&versions, &version)) {
    if (version == GRAPH_VERSION)
      return WEIR_STATUS(INVALID_ARGUMENT, "GraphDef disallows consumer version %d", GRAPH_VERSION);
  }
  return NULL;
}

static weir_status_t* parse_versions(weir_graph_t* graph, weir_view_t message) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == VERSIONS_PRODUCER) graph->producer = weir_wire_int(&r);
    if (r.field == VERSIONS_MIN_CONSUMER) graph->min_consumer = weir_wire_int(&r);
    if (r.field == VERSIONS_BAD_CONSUMERS) WEIR_TRY(check_bad_consumers(&r));
  }
  WEIR_TRY(weir_wire_check(&r, "GraphDef.versions"));
  if (graph->min_consumer <= GRAPH_VERSION) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "GraphDef min consumer version %lld above current version %d for graph",
                     (long long)graph->min_consumer, GRAPH_VERSION);
}

// Functions first: a node may be a call of one, wherever the library stands in the message.
static weir_status_t* import_functions(import_t* import, weir_view_t bytes) {
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.field == GRAPH_LIBRARY && r.type == WEIR_WIRE_BYTES) {
      WEIR_TRY(weir_function_library_import(import->graph->library, r.bytes));
    }
  }
  return weir_wire_check(&r, "GraphDef");
}

static weir_status_t* import_nodes(import_t* import, weir_view_t bytes) {
  weir_graph_t* graph = import->graph;
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.type == WEIR_WIRE_BYTES && r.field == GRAPH_NODE) {
      WEIR_TRY(declare_node(import, r.bytes));
    } else if (r.type == WEIR_WIRE_BYTES && r.field == GRAPH_VERSIONS) {
      WEIR_TRY(parse_versions(graph, r.bytes));
    } else if (r.field != GRAPH_LIBRARY || r.type != WEIR_WIRE_BYTES) {
      weir_strbuf_append(&graph->unknown_fields, r.raw.data, r.raw.size);
    }
  }
  WEIR_TRY(weir_wire_check(&r, "GraphDef"));
  for (size_t i = import->first; i < graph->node_count; ++i)
    WEIR_TRY(weir_node_alloc_shapes(graph->nodes[i]));
  for (size_t i = import->first; i < graph->node_count; ++i) {
    WEIR_TRY(link_node(import, graph->nodes[i], &import->parsed[i - import->first]));
  }
  for (size_t i = import->first; i < graph->node_count; ++i) WEIR_TRY(check_types(graph->nodes[i]));
  weir_node_t** order = NULL;
  WEIR_TRY(weir_graph_order(graph, &import->scratch, &order));
  for (size_t i = 0; i < graph->node_count; ++i) {
    if ((size_t)order[i]->id >= import->first) WEIR_TRY(weir_graph_infer(order[i]));
  }
  return weir_strbuf_finish(&graph->unknown_fields);
}

// Keeps a copy of the message: names, strings and raw attributes point into it.
static weir_status_t* keep_bytes(weir_graph_t* graph, weir_view_t message, weir_view_t* out_bytes) {
  if (!WEIR_GROW(graph->imports, graph->import_capacity, graph->import_count + 1))
    return weir_out_of_memory();
  weir_strbuf_t* kept = &graph->imports[graph->import_count++];
  *kept = (weir_strbuf_t){0};
  if (message.size) weir_strbuf_append(kept, message.data, message.size);
  *out_bytes = weir_strbuf_view(kept);
  return weir_strbuf_finish(kept);
}

weir_status_t* weir_graph_import(weir_graph_t* graph, weir_view_t graph_def,
                                 const weir_import_params_t* params) {
  import_t import = {.graph = graph, .params = params, .first = graph->node_count};
  size_t functions = weir_function_library_mark(graph->library);
  size_t unknown_size = graph->unknown_fields.size;
  int64_t producer = graph->producer;
  int64_t min_consumer = graph->min_consumer;
  weir_view_t bytes = {0};
  weir_status_t* status = keep_bytes(graph, graph_def, &bytes);
  if (!status) status = import_functions(&import, bytes);
  if (!status) status = import_nodes(&import, bytes);
  if (status) {
    weir_graph_unregister_from(graph, import.first);
    weir_function_library_rollback(graph->library, functions);
    graph->unknown_fields.size = unknown_size;
    graph->unknown_fields.failed = false;
    graph->producer = producer;
    graph->min_consumer = min_consumer;
  }
  weir_free(import.parsed);
  weir_arena_free(&import.scratch);
  return status;
}

weir_status_t* weir_graph_write(const weir_graph_t* graph, weir_strbuf_t* out) {
  return weir_graph_write_from(graph, 0, out);
}

weir_status_t* weir_graph_write_from(const weir_graph_t* graph, size_t first, weir_strbuf_t* out) {
  for (size_t i = first; i < graph->node_count; ++i) {
    size_t begin = weir_wire_begin(out, GRAPH_NODE);
    WEIR_TRY(weir_node_def_write(graph->nodes[i], out));
    weir_wire_end(out, begin);
  }
  weir_strbuf_t library = {0};
  weir_status_t* status = weir_function_library_write(graph->library, &library);
  if (!status && library.size > 0)
    weir_wire_put_bytes(out, GRAPH_LIBRARY, library.data, library.size);
  weir_strbuf_free(&library);
  if (status) return status;
  if (graph->producer || graph->min_consumer) {
    size_t begin = weir_wire_begin(out, GRAPH_VERSIONS);
    if (graph->producer) weir_wire_put_int(out, VERSIONS_PRODUCER, graph->producer);
    if (graph->min_consumer) weir_wire_put_int(out, VERSIONS_MIN_CONSUMER, graph->min_consumer);
    weir_wire_end(out, begin);
  }
  weir_strbuf_append(out, graph->unknown_fields.data, graph->unknown_fields.size);
  return weir_strbuf_finish(out);
}
