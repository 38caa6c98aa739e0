// import.c — Walks a model's graph and has each node translated.
#include "onnx/import.h"

#include "base/alloc.h"
#include "file/fs.h"
#include "onnx/import_api.h"

enum {
  kMaxDepth = 64,       // of functions and graphs within each other
  kMaxNodes = 1 << 20,  // that functions may come to
  kNamesShown = 4,      // of nodes with the same unknown op
  kMaxNodeInputs = 1 << 16
};

// ---- tables ----

static const onnx_row_t* const kTables[] = {
#define X(family) onnx_##family##_rows,
    ONNX_FAMILIES(X)
#undef X
};

const onnx_row_t* onnx_row_at(int index) {
  for (size_t t = 0; t < WEIR_COUNT_OF(kTables); ++t) {
    for (const onnx_row_t* row = kTables[t]; row->op; ++row) {
      if (index-- == 0) return row;
    }
  }
  return NULL;
}

const onnx_row_t* onnx_row_find(weir_view_t domain, weir_view_t op) {
  const onnx_row_t* row = NULL;
  for (int i = 0; (row = onnx_row_at(i)); ++i) {
    bool is_domain =
        row->domain ? weir_view_is(domain, row->domain) : onnx_domain_is_default(domain);
    if (is_domain && weir_view_is(op, row->op)) return row;
  }
  return NULL;
}

// ---- functions ----

static const char* function_key(onnx_importer_t* importer, weir_view_t domain, weir_view_t name) {
  return weir_arena_printf(&importer->arena, "%.*s:%.*s", WEIR_VIEW_ARG(domain),
                           WEIR_VIEW_ARG(name));
}

static const onnx_function_t* find_function(onnx_importer_t* importer, const onnx_node_t* node) {
  if (importer->functions.count == 0) return NULL;
  const char* key = function_key(importer, node->domain, node->op);
  return key ? weir_map_find(&importer->functions, weir_view_of(key)) : NULL;
}

static weir_status_t* index_functions(onnx_importer_t* importer) {
  for (int i = 0; i < importer->model.function_count; ++i) {
    const onnx_function_t* function = &importer->model.functions[i];
    const char* key = function_key(importer, function->domain, function->name);
    if (!key) return weir_out_of_memory();
    WEIR_TRY(weir_map_put(&importer->functions, weir_view_of(key), (void*)function));
  }
  return NULL;
}

// ---- which ops are not known: all of them at once ----

typedef struct unknown_t {
  weir_view_t domain, op;
  weir_strbuf_t names;
  int count;
} unknown_t;
typedef struct unknowns_t {
  unknown_t* items;
  size_t count, capacity;
} unknowns_t;

static weir_status_t* note_unknown(unknowns_t* all, const onnx_node_t* node) {
  unknown_t* item = NULL;
  for (size_t i = 0; i < all->count && !item; ++i) {
    bool is_same = weir_view_equal(all->items[i].op, node->op) &&
                   weir_view_equal(all->items[i].domain, node->domain);
    if (is_same) item = &all->items[i];
  }
  if (!item) {
    if (!WEIR_GROW(all->items, all->capacity, all->count + 1)) return weir_out_of_memory();
    item = &all->items[all->count++];
    *item = (unknown_t){.domain = node->domain, .op = node->op};
  }
  weir_view_t name = node->name;
  if (name.size == 0 && node->outputs.count > 0) name = node->outputs.items[0];
  if (item->count++ < kNamesShown)
    weir_strbuf_printf(&item->names, "%s'%.*s'", item->count > 1 ? ", " : "", WEIR_VIEW_ARG(name));
  return NULL;
}

static weir_status_t* find_unknown(onnx_importer_t* importer, const onnx_node_t* nodes, int count,
                                   unknowns_t* all) {
  for (int i = 0; i < count; ++i) {
    const onnx_node_t* node = &nodes[i];
    if (!onnx_row_find(node->domain, node->op) && !find_function(importer, node))
      WEIR_TRY(note_unknown(all, node));
    for (int k = 0; k < node->attr_count; ++k) {
      const onnx_graph_t* graph = node->attrs[k].graph;
      if (graph) WEIR_TRY(find_unknown(importer, graph->nodes, graph->node_count, all));
    }
  }
  return NULL;
}

static weir_status_t* describe_unknown(const unknowns_t* all) {
  weir_strbuf_t text = {0};
  for (size_t i = 0; i < all->count; ++i) {
    const unknown_t* item = &all->items[i];
    bool is_default = onnx_domain_is_default(item->domain);
    weir_strbuf_printf(&text, "%s%.*s%s%.*s (%s", i ? "; " : "",
                       WEIR_VIEW_ARG(is_default ? weir_view("", 0) : item->domain),
                       is_default ? "" : ".", WEIR_VIEW_ARG(item->op),
                       item->names.data ? item->names.data : "");
    if (item->count > kNamesShown)
      weir_strbuf_printf(&text, " and %d more", item->count - kNamesShown);
    weir_strbuf_putc(&text, ')');
  }
  weir_status_t* status =
      WEIR_STATUS(UNIMPLEMENTED, "ops that Weir cannot import: %s", text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* check_ops(onnx_importer_t* importer) {
  unknowns_t all = {0};
  const onnx_graph_t* graph = importer->model.graph;
  weir_status_t* status = find_unknown(importer, graph->nodes, graph->node_count, &all);
  for (int i = 0; i < importer->model.function_count && !status; ++i) {
    const onnx_function_t* function = &importer->model.functions[i];
    status = find_unknown(importer, function->nodes, function->node_count, &all);
  }
  if (!status && all.count > 0) status = describe_unknown(&all);
  for (size_t i = 0; i < all.count; ++i) weir_strbuf_free(&all.items[i].names);
  weir_free(all.items);
  return status;
}

// ---- values ----

static void set_value(onnx_importer_t* importer, weir_scope_t* scope, onnx_values_t* values,
                      weir_view_t name, weir_edge_t edge) {
  weir_edge_t* kept = weir_arena_alloc(&importer->arena, sizeof(*kept));
  weir_status_t* status = kept ? NULL : weir_out_of_memory();
  if (kept) *kept = edge;
  if (!status) status = weir_map_put(&values->edges, name, kept);
  if (status) weir_scope_fail(scope, status);
}

static weir_edge_t find_value(const onnx_values_t* values, weir_view_t name) {
  for (; values; values = values->outer) {
    weir_edge_t* edge = weir_map_find(&values->edges, name);
    if (edge) return *edge;
  }
  return WEIR_NO_EDGE;
}

// ---- nodes ----

// What nodes of one graph or function are translated with.
typedef struct body_t {
  onnx_importer_t* importer;
  weir_scope_t* scope;
  onnx_values_t values;
  onnx_opsets_t opsets;
  const onnx_call_t* caller;        // of a function's body; NULL: a graph's
  const onnx_function_t* function;  // NULL: a graph's
} body_t;

// Our names have fewer characters than ONNX's.
static weir_scope_t* scope_of(const body_t* body, const onnx_node_t* node) {
  weir_view_t name = node->name.size ? node->name : node->op;
  while (name.size > 0 && (name.data[0] == '/' || name.data[0] == '_'))
    name = weir_view(name.data + 1, name.size - 1);
  char text[128] = "node";
  size_t size = WEIR_MIN(name.size, sizeof(text) - 1);
  for (size_t i = 0; i < size; ++i) {
    char c = name.data[i];
    bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   (i > 0 && (c == '_' || c == '-' || c == '.'));
    text[i] = is_good ? c : i > 0 ? '_' : 'x';
    text[i + 1] = '\0';
  }
  return weir_scope_in(body->scope, text);
}

static bool gather_inputs(const body_t* body, onnx_call_t* call) {
  onnx_names_t names = call->node->inputs;
  weir_edge_t* inputs = weir_scope_alloc(body->scope, (size_t)names.count + 1, sizeof(*inputs));
  if (!inputs) return false;
  for (int i = 0; i < names.count; ++i) {
    if (names.items[i].size == 0) continue;
    inputs[i] = find_value(&body->values, names.items[i]);
    if (inputs[i].node) continue;
    // Within a function an input may be one that its caller left out.
    bool is_optional = false;
    for (int k = 0; body->function && k < body->function->inputs.count; ++k)
      is_optional |= weir_view_equal(body->function->inputs.items[k], names.items[i]);
    if (is_optional) continue;
    onnx_fail(call, "reads '%.*s', which nothing before it computes",
              WEIR_VIEW_ARG(names.items[i]));
    return false;
  }
  call->inputs = inputs;
  call->input_count = names.count;
  call->outputs =
      weir_scope_alloc(body->scope, (size_t)call->node->outputs.count + 1, sizeof(*call->outputs));
  call->output_count = call->node->outputs.count;
  return call->outputs != NULL;
}

// The value that an attribute of a node in a function has in this call.
static const onnx_attr_t* source_of(const body_t* body, weir_view_t name) {
  for (int i = 0; body->caller && i < body->caller->attr_count; ++i) {
    if (weir_view_equal(body->caller->attrs[i].name, name)) return &body->caller->attrs[i];
  }
  for (int i = 0; body->function && i < body->function->default_count; ++i) {
    if (weir_view_equal(body->function->defaults[i].name, name))
      return &body->function->defaults[i];
  }
  return NULL;
}

static bool gather_attrs(const body_t* body, onnx_call_t* call) {
  const onnx_node_t* node = call->node;
  bool has_sources = false;
  for (int i = 0; i < node->attr_count; ++i) has_sources |= node->attrs[i].source.size > 0;
  call->attrs = node->attrs;
  call->attr_count = node->attr_count;
  if (!has_sources) return true;
  onnx_attr_t* attrs = weir_scope_alloc(body->scope, (size_t)node->attr_count, sizeof(*attrs));
  if (!attrs) return false;
  call->attrs = attrs;
  call->attr_count = 0;
  for (int i = 0; i < node->attr_count; ++i) {
    const onnx_attr_t* attr = &node->attrs[i];
    if (attr->source.size) attr = source_of(body, attr->source);
    if (!attr) continue;  // neither given nor with a default: left out
    attrs[call->attr_count] = *attr;
    attrs[call->attr_count++].name = node->attrs[i].name;
  }
  return true;
}

static void translate_function(onnx_call_t* call, const onnx_function_t* function);

static void translate_row(onnx_call_t* call) {
  if (call->version < call->row->since)
    onnx_refuse(call, "of opset %d; Weir imports it from %d on", call->version, call->row->since);
  else call->row->translate(call);
  for (int i = 0; i < call->output_count && !onnx_failed(call); ++i) {
    if (onnx_wants_out(call, i) && !call->outputs[i].node)
      onnx_refuse(call, "with output %d, '%.*s'", i, WEIR_VIEW_ARG(call->node->outputs.items[i]));
  }
}

// Puts the node before the message of an error that it caused.
static void blame(const body_t* body, const onnx_node_t* node) {
  weir_scope_root_t* root = body->scope->root;
  weir_view_t name = node->name;
  if (name.size == 0 && node->outputs.count > 0) name = node->outputs.items[0];
  root->status = weir_status_prefix(root->status, "node '%.*s': ", WEIR_VIEW_ARG(name));
}

static void translate_node(body_t* body, const onnx_node_t* node) {
  onnx_importer_t* importer = body->importer;
  const onnx_function_t* function = find_function(importer, node);
  onnx_call_t call = {.importer = importer,
                      .scope = scope_of(body, node),
                      .node = node,
                      .values = &body->values,
                      .caller = body->caller,
                      .function = body->function,
                      .opsets = body->opsets,
                      .row = onnx_row_find(node->domain, node->op),
                      .version = (int)onnx_opset_version(body->opsets, node->domain)};
  if (!call.scope) return;
  if (++importer->node_count > kMaxNodes) {
    weir_scope_fail(body->scope, WEIR_STATUS(RESOURCE_EXHAUSTED, "more than %d nodes", kMaxNodes));
    return;
  }
  if (gather_inputs(body, &call) && gather_attrs(body, &call)) {
    if (function) translate_function(&call, function);
    else translate_row(&call);
  }
  if (onnx_failed(&call)) {
    blame(body, node);
    return;
  }
  for (int i = 0; i < call.output_count; ++i) {
    if (node->outputs.items[i].size && call.outputs[i].node)
      set_value(importer, body->scope, &body->values, node->outputs.items[i], call.outputs[i]);
  }
}

static void translate_nodes(body_t* body, const onnx_node_t* nodes, int count) {
  if (body->importer->depth == kMaxDepth) {
    weir_scope_fail(body->scope, WEIR_STATUS(INVALID_ARGUMENT,
                                             "functions and graphs, more than %d deep", kMaxDepth));
    return;
  }
  body->importer->depth += 1;
  for (int i = 0; i < count && !weir_scope_status(body->scope); ++i)
    translate_node(body, &nodes[i]);
  body->importer->depth -= 1;
}

static void translate_function(onnx_call_t* call, const onnx_function_t* function) {
  body_t body = {.importer = call->importer,
                 .scope = call->scope,
                 .opsets = function->opsets,
                 .caller = call,
                 .function = function};
  for (int i = 0; i < function->inputs.count; ++i) {
    if (onnx_has_in(call, i))
      set_value(call->importer, call->scope, &body.values, function->inputs.items[i],
                onnx_in(call, i));
  }
  translate_nodes(&body, function->nodes, function->node_count);
  for (int i = 0; i < function->outputs.count && i < call->output_count; ++i)
    call->outputs[i] = find_value(&body.values, function->outputs.items[i]);
  weir_map_free(&body.values.edges);
}

// ---- graphs ----

static void add_initializers(body_t* body, const onnx_graph_t* graph) {
  if (graph->has_sparse_initializers)
    weir_scope_fail(body->scope, WEIR_STATUS(UNIMPLEMENTED, "sparse initializers"));
  for (int i = 0; i < graph->initializer_count && !weir_scope_status(body->scope); ++i) {
    weir_tensor_t* tensor = NULL;
    weir_status_t* status =
        onnx_tensor_parse(graph->initializers[i].tensor, &body->importer->files, &tensor);
    if (status) {
      weir_scope_fail(body->scope, status);
      return;
    }
    weir_edge_t edge = weir_const(weir_scope_name(body->scope, "weight"), tensor);
    weir_tensor_release(tensor);
    set_value(body->importer, body->scope, &body->values, graph->initializers[i].name, edge);
  }
}

static void read_outputs(body_t* body, const onnx_graph_t* graph, weir_edge_t* results) {
  for (int i = 0; i < graph->output_count && !weir_scope_status(body->scope); ++i) {
    results[i] = find_value(&body->values, graph->outputs[i].name);
    if (!results[i].node)
      weir_scope_fail(body->scope,
                      WEIR_STATUS(INVALID_ARGUMENT, "nothing computes the output '%.*s'",
                                  WEIR_VIEW_ARG(graph->outputs[i].name)));
  }
}

void onnx_translate_graph(onnx_call_t* call, weir_scope_t* scope, const onnx_graph_t* graph,
                          const weir_edge_t* args, int arg_count, weir_edge_t* results) {
  body_t body = {.importer = call->importer,
                 .scope = scope,
                 .values = {.outer = call->values},
                 .caller = call->caller,
                 .function = call->function,
                 .opsets = call->opsets};
  for (int i = 0; i < arg_count && i < graph->input_count; ++i)
    set_value(call->importer, scope, &body.values, graph->inputs[i].name, args[i]);
  add_initializers(&body, graph);
  translate_nodes(&body, graph->nodes, graph->node_count);
  read_outputs(&body, graph, results);
  weir_map_free(&body.values.edges);
}

// ---- the model ----

static weir_edge_t add_placeholder(body_t* body, const onnx_port_t* port, onnx_import_t* import) {
  weir_dtype_t dtype = port->dtype;
  if (!port->is_tensor || dtype == WEIR_DTYPE_INVALID) {
    weir_scope_fail(body->scope,
                    WEIR_STATUS(UNIMPLEMENTED, "input '%.*s' is %s%s", WEIR_VIEW_ARG(port->name),
                                port->is_tensor ? "of type " : "no tensor",
                                port->is_tensor ? onnx_type_name(port->type) : ""));
    return WEIR_NO_EDGE;
  }
  const weir_shape_t* shape = weir_shape_make(&body->importer->arena, port->rank, port->dims);
  if (!shape) {
    weir_scope_fail(body->scope, weir_out_of_memory());
    return WEIR_NO_EDGE;
  }
  weir_edge_t edge = weir_scope_first(
      weir_scope_add(body->scope, "Placeholder", "input", WEIR_NO_EDGES,
                     WEIR_ATTRS(weir_attr_type("dtype", dtype), weir_attr_shape("shape", shape))));
  onnx_import_add(import, true, port->name, edge);
  return edge;
}

static void add_inputs(body_t* body, onnx_import_t* import) {
  const onnx_graph_t* graph = body->importer->model.graph;
  for (int i = 0; i < graph->input_count && !weir_scope_status(body->scope); ++i) {
    const onnx_port_t* port = &graph->inputs[i];
    if (weir_map_find(&body->values.edges, port->name)) continue;  // old models list weights, too
    set_value(body->importer, body->scope, &body->values, port->name,
              add_placeholder(body, port, import));
  }
}

static void add_outputs(body_t* body, onnx_import_t* import) {
  const onnx_graph_t* graph = body->importer->model.graph;
  weir_edge_t* results =
      weir_scope_alloc(body->scope, (size_t)graph->output_count + 1, sizeof(*results));
  if (!results) return;
  read_outputs(body, graph, results);
  for (int i = 0; i < graph->output_count && !weir_scope_status(body->scope); ++i) {
    weir_edge_t edge = weir_scope_first(
        weir_scope_add(body->scope, "Identity", "output", WEIR_EDGES(results[i]), WEIR_NO_ATTRS));
    onnx_import_add(import, false, graph->outputs[i].name, edge);
  }
}

weir_status_t* onnx_import_model(weir_view_t bytes, const char* folder, weir_graph_t* graph,
                                 onnx_import_t* import) {
  onnx_importer_t importer = {.files = {.folder = folder}};
  body_t body = {.importer = &importer};
  weir_status_t* status = onnx_model_parse(bytes, &importer.arena, &importer.model);
  if (!status) status = index_functions(&importer);
  if (!status) status = check_ops(&importer);
  if (status) goto done;
  body.opsets = importer.model.opsets;
  body.scope = weir_scope_create(graph);
  if (body.scope) {
    add_initializers(&body, importer.model.graph);
    add_inputs(&body, import);
    translate_nodes(&body, importer.model.graph->nodes, importer.model.graph->node_count);
    add_outputs(&body, import);
  }
  status = weir_scope_finish(body.scope);
done:
  weir_map_free(&body.values.edges);
  weir_map_free(&importer.functions);
  onnx_files_free(&importer.files);
  weir_arena_free(&importer.arena);
  return status;
}
