// inspect_graph.c — What is in GraphDefs, MetaGraphDefs and SavedModels, read off the wire: so a
// graph with ops that this build lacks is described like any other.
#include <stdlib.h>

#include "api/inspect.h"
#include "base/map.h"
#include "graph/graph.h"
#include "ops/builtin_ops.h"
#include "wire/message.h"
#include "wire/text.h"

enum { MODEL_GRAPHS = 2, META_INFO = 1, META_GRAPH = 2, META_SIGNATURES = 5, META_ASSETS = 6 };
enum { INFO_TAGS = 4, INFO_VERSION = 5, GRAPH_NODE = 1, GRAPH_LIBRARY = 2 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5, MAX_SHOWN = 50 };

// ---- types and shapes ----

typedef struct port_t {
  weir_view_t name, tensor;
  weir_dtype_t dtype;
  const weir_shape_t* shape;  // NULL: not given
} port_t;

static weir_dtype_t dtype_of(const weir_wire_reader_t* r) {
  return r->value < WEIR_DTYPE_COUNT ? (weir_dtype_t)r->value : WEIR_DTYPE_INVALID;
}

static void report_port(weir_report_t* report, const port_t* port) {
  weir_strbuf_t shape = {0};
  int rank = port->shape ? port->shape->rank : -1;
  const int64_t* dims = port->shape ? port->shape->dims : NULL;
  weir_report_line(report, "    %-24.*s %-8s %-14s %.*s\n", WEIR_VIEW_ARG(port->name),
                   weir_dtype_name(port->dtype), weir_report_shape(rank, dims, &shape),
                   WEIR_VIEW_ARG(port->tensor));
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "name", port->name);
  weir_report_type(report, port->dtype, rank, dims);
  if (port->tensor.size) weir_report_string(report, "tensor", port->tensor);
  weir_report_close(report, '}');
  weir_strbuf_free(&shape);
}

// ---- the graph: ops, inputs, outputs ----

typedef struct op_count_t {
  const char* name;
  int64_t count;
} op_count_t;

typedef struct survey_t {
  weir_arena_t arena;
  weir_map_t ops;        // → op_count_t
  weir_map_t functions;  // names of the library
  weir_map_t read;       // names of nodes that others read
  int64_t node_count, function_count;
} survey_t;

static void survey_free(survey_t* survey) {
  weir_map_free(&survey->ops);
  weir_map_free(&survey->functions);
  weir_map_free(&survey->read);
  weir_arena_free(&survey->arena);
}

static weir_status_t* count_op(survey_t* survey, weir_view_t op) {
  op_count_t* count = weir_map_find(&survey->ops, op);
  if (!count) {
    count = weir_arena_array(&survey->arena, 1, sizeof(*count));
    char* name = weir_arena_strndup(&survey->arena, op.data, op.size);
    if (!count || !name) return weir_out_of_memory();
    *count = (op_count_t){.name = name};
    WEIR_TRY(weir_map_put(&survey->ops, weir_view_of(name), count));
  }
  ++count->count;
  return NULL;
}

// "^node", "node:1" → "node".
static weir_view_t node_of(weir_view_t input) {
  if (input.size && input.data[0] == '^') input = weir_view(input.data + 1, input.size - 1);
  for (size_t i = 0; i < input.size; ++i) {
    if (input.data[i] == ':') return weir_view(input.data, i);
  }
  return input;
}

static weir_status_t* survey_node(survey_t* survey, weir_view_t node, bool is_top) {
  weir_wire_reader_t r = weir_wire_reader(node);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == NODE_OP) WEIR_TRY(count_op(survey, r.bytes));
    if (r.field == NODE_INPUT && is_top)
      WEIR_TRY(weir_map_put(&survey->read, node_of(r.bytes), survey));
  }
  survey->node_count += is_top;
  return weir_wire_check(&r, "NodeDef");
}

static weir_status_t* survey_function(survey_t* survey, weir_view_t function) {
  enum { SIGNATURE = 1, BODY = 3, OP_NAME = 1 };
  weir_wire_reader_t r = weir_wire_reader(function);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == BODY) WEIR_TRY(survey_node(survey, r.bytes, false));
    if (r.field != SIGNATURE) continue;
    weir_wire_reader_t s = weir_wire_reader(r.bytes);
    while (weir_wire_next(&s)) {
      if (s.field == OP_NAME && s.type == WEIR_WIRE_BYTES)
        WEIR_TRY(weir_map_put(&survey->functions, s.bytes, survey));
    }
    WEIR_TRY(weir_wire_check(&s, "OpDef"));
  }
  ++survey->function_count;
  return weir_wire_check(&r, "FunctionDef");
}

static weir_status_t* survey_library(survey_t* survey, weir_view_t library) {
  weir_wire_reader_t r = weir_wire_reader(library);
  while (weir_wire_next(&r)) {
    if (r.field == 1 && r.type == WEIR_WIRE_BYTES) WEIR_TRY(survey_function(survey, r.bytes));
  }
  return weir_wire_check(&r, "FunctionDefLibrary");
}

static weir_status_t* survey_graph(survey_t* survey, weir_view_t graph) {
  weir_wire_reader_t r = weir_wire_reader(graph);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == GRAPH_NODE) WEIR_TRY(survey_node(survey, r.bytes, true));
    if (r.field == GRAPH_LIBRARY) WEIR_TRY(survey_library(survey, r.bytes));
  }
  return weir_wire_check(&r, "GraphDef");
}

static int by_count(const void* a, const void* b) {
  const op_count_t* x = *(op_count_t* const*)a;
  const op_count_t* y = *(op_count_t* const*)b;
  return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                              : strcmp(x->name, y->name);
}

static const op_count_t** sort_ops(survey_t* survey) {
  const op_count_t** sorted =
      weir_arena_array(&survey->arena, survey->ops.count + 1, sizeof(*sorted));
  weir_map_entry_t* e;
  size_t count = 0;
  for (size_t i = 0; sorted && (e = weir_map_next(&survey->ops, &i));) sorted[count++] = e->value;
  if (sorted) qsort(sorted, count, sizeof(*sorted), by_count);
  return sorted;
}

static weir_status_t* report_ops(weir_report_t* report, survey_t* survey, bool is_long) {
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  const op_count_t** sorted = sort_ops(survey);
  if (!sorted) return weir_out_of_memory();
  weir_report_open(report, "ops", '{');
  if (is_long) weir_report_line(report, "ops:\n");
  for (size_t i = 0; i < survey->ops.count; ++i) {
    weir_report_number(report, sorted[i]->name, sorted[i]->count);
    if (is_long)
      weir_report_line(report, "  %6lld %s\n", (long long)sorted[i]->count, sorted[i]->name);
  }
  weir_report_close(report, '}');
  int missing = 0;
  weir_report_open(report, "missing_ops", '[');
  for (size_t i = 0; i < survey->ops.count; ++i) {
    weir_view_t name = weir_view_of(sorted[i]->name);
    if (weir_registry_find(registry, name) || weir_map_find(&survey->functions, name)) continue;
    weir_report_string(report, NULL, name);
    weir_report_line(report, "%s%s",
                     missing++ ? ", " : "ops that this build lacks: ", sorted[i]->name);
  }
  weir_report_close(report, ']');
  weir_report_line(report, missing ? "\n" : "ops that this build lacks: none\n");
  return NULL;
}

static weir_status_t* parse_node_attr(survey_t* survey, weir_view_t entry, port_t* port) {
  weir_view_t key = {0}, value = {0};
  weir_wire_reader_t r = weir_wire_reader(entry);
  while (weir_wire_next(&r)) {
    if (r.field == 1 && r.type == WEIR_WIRE_BYTES) key = r.bytes;
    if (r.field == 2 && r.type == WEIR_WIRE_BYTES) value = r.bytes;
  }
  if (!weir_view_is(key, "dtype") && !weir_view_is(key, "shape")) return NULL;
  weir_wire_reader_t v = weir_wire_reader(value);
  while (weir_wire_next(&v)) {
    if (v.field == 6 && v.type == WEIR_WIRE_VARINT) port->dtype = dtype_of(&v);
    if (v.field == 7 && v.type == WEIR_WIRE_BYTES)
      WEIR_TRY(weir_shape_parse(v.bytes, &survey->arena, &port->shape));
  }
  return weir_wire_check(&v, "AttrValue");
}

// A node as an input, or as something that one would fetch or run.
static weir_status_t* parse_end(survey_t* survey, weir_view_t node, port_t* out, weir_view_t* op) {
  *out = (port_t){0};
  *op = weir_view("", 0);
  weir_wire_reader_t r = weir_wire_reader(node);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == NODE_NAME) out->name = r.bytes;
    if (r.field == NODE_OP) *op = r.bytes;
    if (r.field == NODE_ATTR) WEIR_TRY(parse_node_attr(survey, r.bytes, out));
  }
  return NULL;
}

static weir_status_t* report_ends(weir_report_t* report, survey_t* survey, weir_view_t graph,
                                  bool is_input) {
  int shown = 0;
  weir_report_open(report, is_input ? "inputs" : "outputs", '[');
  weir_report_line(report, is_input ? "inputs:\n" : "outputs:\n");
  weir_wire_reader_t r = weir_wire_reader(graph);
  while (weir_wire_next(&r)) {
    port_t port;
    weir_view_t op;
    if (r.field != GRAPH_NODE || r.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(parse_end(survey, r.bytes, &port, &op));
    bool is_end = is_input ? weir_view_starts_with(op, "Placeholder")
                           : !weir_map_find(&survey->read, port.name);
    if (!is_end) continue;
    if (++shown > MAX_SHOWN && !report->is_json) continue;
    if (is_input) report_port(report, &port);
    else weir_report_string(report, NULL, port.name);
    if (!is_input)
      weir_report_line(report, "    %-24.*s %.*s\n", WEIR_VIEW_ARG(port.name), WEIR_VIEW_ARG(op));
  }
  weir_report_close(report, ']');
  if (shown > MAX_SHOWN) weir_report_line(report, "    and %d more\n", shown - MAX_SHOWN);
  return NULL;
}

static void report_counts(weir_report_t* report, const survey_t* survey) {
  weir_report_number(report, "nodes", survey->node_count);
  weir_report_number(report, "functions", survey->function_count);
  weir_report_line(report, "%lld nodes, %zu ops", (long long)survey->node_count, survey->ops.count);
  if (survey->function_count)
    weir_report_line(report, ", %lld functions", (long long)survey->function_count);
  weir_report_line(report, "\n");
}

static weir_status_t* report_graph(weir_report_t* report, weir_view_t graph, bool with_ends) {
  survey_t survey = {.functions = {.owns_keys = true}, .read = {.owns_keys = true}};
  weir_status_t* status = survey_graph(&survey, graph);
  if (status) goto done;
  report_counts(report, &survey);
  status = report_ops(report, &survey, with_ends);
  if (!status && with_ends) status = report_ends(report, &survey, graph, true);
  if (!status && with_ends) status = report_ends(report, &survey, graph, false);
done:
  survey_free(&survey);
  return status;
}

weir_status_t* weir_inspect_graph(weir_report_t* report, weir_view_t bytes, bool is_text) {
  weir_strbuf_t wire = {0};
  weir_status_t* status = is_text ? weir_text_parse(&weir_message_graph_def, bytes, &wire) : NULL;
  if (is_text) bytes = weir_strbuf_view(&wire);
  weir_report_begin(report, "graph", is_text ? "GraphDef in text form" : "GraphDef");
  if (!status) status = report_graph(report, bytes, true);
  weir_report_close(report, '}');
  weir_strbuf_free(&wire);
  return status;
}

// ---- signatures ----

typedef struct entry_t {
  weir_view_t key, value;
} entry_t;

static int by_key(const void* a, const void* b) {
  weir_view_t x = ((const entry_t*)a)->key, y = ((const entry_t*)b)->key;
  int order = memcmp(x.size ? x.data : "", y.size ? y.data : "", WEIR_MIN(x.size, y.size));
  return order ? order : (x.size > y.size) - (x.size < y.size);
}

// The entries of a map field, by name.
static weir_status_t* sort_map(weir_view_t message, uint32_t field, weir_arena_t* arena,
                               entry_t** out_entries, size_t* out_count) {
  size_t count = 0;
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) count += r.field == field && r.type == WEIR_WIRE_BYTES;
  WEIR_TRY(weir_wire_check(&r, "map"));
  entry_t* entries = weir_arena_array(arena, count + 1, sizeof(*entries));
  if (!entries) return weir_out_of_memory();
  *out_count = 0;
  r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field != field || r.type != WEIR_WIRE_BYTES) continue;
    entry_t* entry = &entries[(*out_count)++];
    *entry = (entry_t){.key = weir_view("", 0), .value = weir_view("", 0)};
    weir_wire_reader_t e = weir_wire_reader(r.bytes);
    while (weir_wire_next(&e)) {
      if (e.type != WEIR_WIRE_BYTES) continue;
      if (e.field == 1) entry->key = e.bytes;
      if (e.field == 2) entry->value = e.bytes;
    }
    WEIR_TRY(weir_wire_check(&e, "map"));
  }
  qsort(entries, count, sizeof(*entries), by_key);
  *out_entries = entries;
  return NULL;
}

static weir_status_t* parse_tensor_info(weir_view_t info, weir_arena_t* arena, port_t* port) {
  weir_wire_reader_t r = weir_wire_reader(info);
  while (weir_wire_next(&r)) {
    if (r.field == 1 && r.type == WEIR_WIRE_BYTES) port->tensor = r.bytes;
    if (r.field == 2 && r.type == WEIR_WIRE_VARINT) port->dtype = dtype_of(&r);
    if (r.field == 3 && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(weir_shape_parse(r.bytes, arena, &port->shape));
  }
  return weir_wire_check(&r, "TensorInfo");
}

static weir_status_t* report_ports(weir_report_t* report, weir_view_t signature, bool is_input,
                                   weir_arena_t* arena) {
  entry_t* entries = NULL;
  size_t count = 0;
  WEIR_TRY(sort_map(signature, is_input ? 1 : 2, arena, &entries, &count));
  weir_report_open(report, is_input ? "inputs" : "outputs", '[');
  if (count) weir_report_line(report, is_input ? "  inputs:\n" : "  outputs:\n");
  for (size_t i = 0; i < count; ++i) {
    port_t port = {.name = entries[i].key};
    WEIR_TRY(parse_tensor_info(entries[i].value, arena, &port));
    report_port(report, &port);
  }
  weir_report_close(report, ']');
  return NULL;
}

static weir_status_t* report_signature(weir_report_t* report, const entry_t* entry,
                                       weir_arena_t* arena) {
  weir_view_t method = weir_view("", 0);
  weir_wire_reader_t r = weir_wire_reader(entry->value);
  while (weir_wire_next(&r)) {
    if (r.field == 3 && r.type == WEIR_WIRE_BYTES) method = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "SignatureDef"));
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "name", entry->key);
  weir_report_string(report, "method", method);
  weir_report_line(report, "signature '%.*s'", WEIR_VIEW_ARG(entry->key));
  if (method.size) weir_report_line(report, " (%.*s)", WEIR_VIEW_ARG(method));
  weir_report_line(report, ":\n");
  WEIR_TRY(report_ports(report, entry->value, true, arena));
  WEIR_TRY(report_ports(report, entry->value, false, arena));
  weir_report_close(report, '}');
  return NULL;
}

static weir_status_t* report_signatures(weir_report_t* report, weir_view_t meta) {
  weir_arena_t arena = {0};
  entry_t* entries = NULL;
  size_t count = 0;
  weir_status_t* status = sort_map(meta, META_SIGNATURES, &arena, &entries, &count);
  weir_report_open(report, "signatures", '[');
  size_t shown = 0;
  for (size_t i = 0; i < count && !status; ++i) {
    // Names that TensorFlow keeps for itself: the initialiser, the operation that trains.
    if (weir_view_starts_with(entries[i].key, "__saved_model_")) continue;
    status = report_signature(report, &entries[i], &arena);
    ++shown;
  }
  weir_report_close(report, ']');
  if (!status && shown == 0) weir_report_line(report, "no signatures\n");
  weir_arena_free(&arena);
  return status;
}

// ---- MetaGraphDefs and SavedModels ----

static weir_status_t* report_info(weir_report_t* report, weir_view_t info) {
  weir_view_t version = weir_view("", 0);
  int tags = 0;
  weir_report_open(report, "tags", '[');
  weir_wire_reader_t r = weir_wire_reader(info);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == INFO_VERSION) version = r.bytes;
    if (r.field != INFO_TAGS) continue;
    weir_report_string(report, NULL, r.bytes);
    weir_report_line(report, "%s%.*s", tags++ ? ", " : "tags: ", WEIR_VIEW_ARG(r.bytes));
  }
  weir_report_close(report, ']');
  weir_report_string(report, "tensorflow_version", version);
  if (tags) weir_report_line(report, "\n");
  if (version.size)
    weir_report_line(report, "written by TensorFlow %.*s\n", WEIR_VIEW_ARG(version));
  return weir_wire_check(&r, "MetaInfoDef");
}

static weir_status_t* report_meta(weir_report_t* report, weir_view_t meta, bool with_ends) {
  weir_view_t info = weir_view("", 0), graph = weir_view("", 0);
  weir_wire_reader_t r = weir_wire_reader(meta);
  while (weir_wire_next(&r)) {
    if (r.field == META_INFO && r.type == WEIR_WIRE_BYTES) info = r.bytes;
    if (r.field == META_GRAPH && r.type == WEIR_WIRE_BYTES) graph = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "MetaGraphDef"));
  WEIR_TRY(report_info(report, info));
  WEIR_TRY(report_signatures(report, meta));
  return report_graph(report, graph, with_ends);
}

weir_status_t* weir_inspect_meta_graph(weir_report_t* report, weir_view_t bytes) {
  weir_report_begin(report, "meta_graph", "MetaGraphDef, a graph and what goes with it");
  WEIR_TRY(report_meta(report, bytes, true));
  weir_report_close(report, '}');
  return NULL;
}

weir_status_t* weir_inspect_saved_model(weir_report_t* report, weir_view_t bytes,
                                        const char* directory) {
  weir_strbuf_t variables = {0};
  weir_report_begin(report, "saved_model", "SavedModel");
  weir_report_open(report, "graphs", '[');
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (r.field != MODEL_GRAPHS || r.type != WEIR_WIRE_BYTES) continue;
    weir_report_open(report, NULL, '{');
    WEIR_TRY(report_meta(report, r.bytes, false));
    weir_report_close(report, '}');
  }
  weir_report_close(report, ']');
  WEIR_TRY(weir_wire_check(&r, "SavedModel"));
  weir_strbuf_printf(&variables, "%s/variables/variables", directory);
  weir_status_t* status = weir_strbuf_finish(&variables);
  if (!status) status = weir_inspect_variables(report, variables.data);
  weir_strbuf_free(&variables);
  weir_report_close(report, '}');
  return status;
}
