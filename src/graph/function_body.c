// function_body.c — Instantiating a function: its FunctionDef under given attributes becomes a
// graph with arguments and results.
#include <stdio.h>

#include "graph/function.h"
#include "graph/graph_internal.h"
#include "graph/node_def.h"
#include "op/misspelt.h"
#include "wire/wire.h"

enum { FUNCTION_NODE = 3, FUNCTION_RET = 4, FUNCTION_CONTROL_RET = 6 };

typedef struct maker_t {
  const weir_function_t* function;
  weir_attrs_t attrs;  // complete
  weir_graph_t* graph;
  weir_arena_t scratch;
  weir_function_body_t* body;
  weir_parsed_node_t* parsed;  // by order of appearance
  weir_node_t** nodes;
  size_t count, parsed_capacity, node_capacity;
} maker_t;

// ---- attributes ----

static weir_status_t* substitute(maker_t* m, weir_attr_t* value);

static weir_status_t* substitute_func(maker_t* m, const weir_func_t* func, weir_func_t* out) {
  weir_named_attr_t* items = weir_arena_array(&m->graph->arena, func->attrs.count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (size_t i = 0; i < func->attrs.count; ++i) {
    items[i] = func->attrs.items[i];
    WEIR_TRY(substitute(m, &items[i].value));
  }
  *out = (weir_func_t){.name = func->name, .attrs = {.items = items, .count = func->attrs.count}};
  return NULL;
}

// Replaces a placeholder by the function's attribute of that name, within function values too.
static weir_status_t* substitute(maker_t* m, weir_attr_t* value) {
  if (value->kind == WEIR_ATTR_FUNC && !value->is_list) {
    weir_func_t* func = weir_arena_alloc(&m->graph->arena, sizeof(*func));
    if (!func) return weir_out_of_memory();
    WEIR_TRY(substitute_func(m, value->u.func, func));
    value->u.func = func;
    value->raw = (weir_view_t){0};
  }
  if (value->kind != WEIR_ATTR_PLACEHOLDER) return NULL;
  for (size_t i = 0; i < m->attrs.count; ++i) {
    if (!weir_view_is(value->u.s, m->attrs.items[i].name)) continue;
    return weir_attr_clone(&m->attrs.items[i].value, &m->graph->arena, &m->graph->tensors, value);
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "function '%s' has no attr '%.*s', which its body uses",
                     m->function->name, WEIR_VIEW_ARG(value->u.s));
}

// ---- arguments ----

// An argument that is a reference is called with one, and is its value within: what would write to
// it is refused.
static weir_status_t* add_arg(maker_t* m, const char* name, weir_dtype_t dtype, int index) {
  weir_named_attr_t attrs[] = {weir_attr_type("T", weir_dtype_base(dtype)),
                               weir_attr_int("index", index)};
  weir_node_params_t params = {.op = "_Arg",
                               .name = name,
                               .unique_name = true,
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  return weir_graph_add(m->graph, &params, &m->body->args[index]);
}

static weir_status_t* add_args(maker_t* m) {
  const weir_op_t* signature = m->function->signature;
  const weir_dtype_t* types = NULL;
  int count = 0;
  WEIR_TRY(weir_op_arg_types(signature, m->function->name, m->attrs, false, &m->graph->arena,
                             &types, &count));
  m->body->args = weir_arena_array(&m->graph->arena, (size_t)count, sizeof(weir_node_t*));
  if (!m->body->args) return weir_out_of_memory();
  weir_node_def_t def = {.name = m->function->name, .op = signature, .attrs = m->attrs};
  for (int arg = 0; arg < signature->input_count; ++arg) {
    int first, size;
    weir_node_input_range(&def, arg, &first, &size);
    for (int i = first; i < first + size; ++i)
      WEIR_TRY(add_arg(m, signature->inputs[arg].name, types[i], i));
  }
  m->body->arg_count = count;
  return NULL;
}

// ---- nodes ----

static weir_status_t* declare_node(maker_t* m, weir_view_t message) {
  weir_graph_t* graph = m->graph;
  if (!WEIR_GROW(m->parsed, m->parsed_capacity, m->count + 1) ||
      !WEIR_GROW(m->nodes, m->node_capacity, m->count + 1)) {
    return weir_out_of_memory();
  }
  weir_parsed_node_t* parsed = &m->parsed[m->count];
  WEIR_TRY(weir_node_def_parse(message, &graph->arena, &graph->tensors, parsed));
  weir_named_attr_t* attrs =
      (weir_named_attr_t*)parsed->attrs.items;  // in our own arena, just made
  for (size_t i = 0; i < parsed->attrs.count; ++i) WEIR_TRY(substitute(m, &attrs[i].value));
  weir_node_t* node = weir_node_make(graph, parsed->name, parsed->device);
  char* op = weir_arena_strndup(&graph->arena, parsed->op.data, parsed->op.size);
  if (!node || !op) return weir_out_of_memory();
  WEIR_TRY(weir_node_define(node, op, parsed->attrs, NULL, 0));
  if (!node->def.op) {
    return weir_registry_suggest(
        graph->registry, op,
        WEIR_STATUS(NOT_FOUND, "Op type not registered '%s' (node '%s' in function '%s')", op,
                    node->def.name, m->function->name));
  }
  m->nodes[m->count++] = node;
  WEIR_TRY(weir_node_alloc_shapes(node));
  return weir_graph_register(graph, node);
}

// What a name within a function stands for: one tensor, or all of a list.
typedef struct values_t {
  weir_node_t* const* args;  // list of arguments; NULL: outputs of |node| from |index| on
  weir_node_t* node;
  int index, count;
} values_t;

static weir_edge_t value_at(const values_t* values, int i) {
  if (values->args) return (weir_edge_t){.node = values->args[i], .index = 0};
  return (weir_edge_t){.node = values->node, .index = values->index + i};
}

// The elements [*out_first, *out_first + *out_count) that "index" names of a list of |size|; all of
// it where there is no index. False for an index that is none.
static bool select_elements(weir_view_t text, int size, int* out_first, int* out_count) {
  int64_t index = 0;
  *out_first = 0;
  *out_count = size;
  if (text.size == 0) return true;
  if (!weir_parse_int64(text, &index) || index < 0 || index >= size) return false;
  *out_first = (int)index;
  *out_count = 1;
  return true;
}

// Output |rest| = "out_name:index" of |node|; "out_name" alone is all of it.
static weir_status_t* find_output(weir_node_t* node, weir_view_t rest, values_t* out_values) {
  weir_view_t out_name = {0};
  weir_view_next(&rest, ':', &out_name);
  const weir_op_t* op = node->def.op;
  for (int arg = 0; arg < op->output_count; ++arg) {
    if (!weir_view_is(out_name, op->outputs[arg].name)) continue;
    int first, size;
    weir_node_output_range(&node->def, arg, &first, &size);
    *out_values = (values_t){.node = node};
    if (!select_elements(rest, size, &out_values->index, &out_values->count)) break;
    out_values->index += first;
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "node '%s' (%s) has no output '%.*s:%.*s'", node->def.name,
                     node->def.op_name, WEIR_VIEW_ARG(out_name), WEIR_VIEW_ARG(rest));
}

// Values by their name within a function: "arg", "arg:1" of a list, "node:out_name:index".
static weir_status_t* find_values(maker_t* m, weir_view_t text, values_t* out_values) {
  weir_view_t rest = text;
  weir_view_t name = {0};
  weir_view_next(&rest, ':', &name);
  const weir_op_t* signature = m->function->signature;
  weir_node_def_t def = {.name = m->function->name, .op = signature, .attrs = m->attrs};
  for (int arg = 0; arg < signature->input_count; ++arg) {
    if (!weir_view_is(name, signature->inputs[arg].name)) continue;
    int first, size, element;
    weir_node_input_range(&def, arg, &first, &size);
    if (!select_elements(rest, size, &element, &out_values->count)) break;
    out_values->args = m->body->args + first + element;
    return NULL;
  }
  weir_node_t* node = weir_graph_find(m->graph, name);
  if (!node) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "function '%s': '%.*s' names neither an argument nor a node",
                       m->function->name, WEIR_VIEW_ARG(text));
  }
  return find_output(node, rest, out_values);
}

// Appends what |input| stands for to the inputs of |node|.
static weir_status_t* link_input(maker_t* m, weir_node_t* node, weir_view_t input, int* data) {
  values_t values = {.args = NULL};
  WEIR_TRY(find_values(m, input, &values));
  for (int i = 0; i < values.count; ++i) {
    if (*data == node->def.input_count) {
      return WEIR_STATUS(INVALID_ARGUMENT, "function '%s': node '%s' (%s) takes only %d inputs",
                         m->function->name, node->def.name, node->def.op_name,
                         node->def.input_count);
    }
    node->inputs[*data] = value_at(&values, i);
    WEIR_TRY(weir_node_check_input(node, *data, node->inputs[*data]));
    ++*data;
  }
  return NULL;
}

static weir_status_t* link_node(maker_t* m, weir_node_t* node, const weir_parsed_node_t* parsed) {
  weir_arena_t* arena = &m->graph->arena;
  node->inputs = weir_arena_array(arena, (size_t)node->def.input_count, sizeof(*node->inputs));
  node->control_inputs =
      weir_arena_array(arena, (size_t)parsed->input_count, sizeof(*node->control_inputs));
  if (!node->inputs || !node->control_inputs) return weir_out_of_memory();
  int data = 0;
  for (int i = 0; i < parsed->input_count; ++i) {
    weir_view_t input = parsed->inputs[i];
    if (input.size > 0 && input.data[0] == '^') {
      weir_node_t* source = weir_graph_find(m->graph, weir_view(input.data + 1, input.size - 1));
      if (source) node->control_inputs[node->control_count++] = source;  // "^arg" orders nothing
      continue;
    }
    WEIR_TRY(link_input(m, node, input, &data));
  }
  if (data == node->def.input_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "function '%s': node '%s' (%s) needs %d inputs",
                     m->function->name, node->def.name, node->def.op_name, node->def.input_count);
}

static weir_status_t* add_nodes(maker_t* m) {
  weir_wire_reader_t r = weir_wire_reader(m->function->def);
  while (weir_wire_next(&r)) {
    if (r.field == FUNCTION_NODE && r.type == WEIR_WIRE_BYTES) WEIR_TRY(declare_node(m, r.bytes));
  }
  WEIR_TRY(weir_wire_check(&r, "FunctionDef"));
  for (size_t i = 0; i < m->count; ++i) WEIR_TRY(link_node(m, m->nodes[i], &m->parsed[i]));
  weir_node_t** order = NULL;
  WEIR_TRY(weir_graph_order(m->graph, &m->scratch, &order));
  for (size_t i = 0; i < m->graph->node_count; ++i) WEIR_TRY(weir_graph_infer(order[i]));
  return NULL;
}

// ---- results ----

static weir_status_t* find_entry(const maker_t* m, uint32_t field, const char* key,
                                 weir_view_t* out_value) {
  weir_wire_reader_t r = weir_wire_reader(m->function->def);
  while (weir_wire_next(&r)) {
    if (r.field != field || r.type != WEIR_WIRE_BYTES) continue;
    weir_view_t name = {0};
    weir_view_t value = {0};
    weir_wire_reader_t entry = weir_wire_reader(r.bytes);
    while (weir_wire_next(&entry)) {
      if (entry.type != WEIR_WIRE_BYTES) continue;
      if (entry.field == 1) name = entry.bytes;
      if (entry.field == 2) value = entry.bytes;
    }
    WEIR_TRY(weir_wire_check(&entry, "FunctionDef"));
    if (!weir_view_is(name, key)) continue;
    *out_value = value;
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "function '%s' has no value for its result '%s'",
                     m->function->name, key);
}

static weir_status_t* add_ret(maker_t* m, weir_edge_t value, int index, weir_dtype_t dtype) {
  bool is_output = value.index < value.node->def.output_count;
  if (weir_dtype_is_ref(dtype)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "function '%s': result %d is declared %s: functions give values, not references",
        m->function->name, index, weir_dtype_name(dtype));
  }
  if (!is_output || weir_dtype_base(weir_edge_dtype(value)) != dtype) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "function '%s': result %d is declared %s, but '%s:%d' is %s",
        m->function->name, index, weir_dtype_name(dtype), value.node->def.name, value.index,
        is_output ? weir_dtype_name(weir_edge_dtype(value)) : "no output");
  }
  weir_named_attr_t attrs[] = {weir_attr_int("index", index)};
  char name[48];
  snprintf(name, sizeof(name), "ret%d_RetVal", index);
  weir_node_params_t params = {.op = "_Retval",
                               .name = name,
                               .unique_name = true,
                               .inputs = WEIR_EDGES(value),
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  return weir_graph_add(m->graph, &params, &m->body->rets[index]);
}

static weir_status_t* add_rets(maker_t* m) {
  const weir_op_t* signature = m->function->signature;
  const weir_dtype_t* types = NULL;
  int count = 0;
  WEIR_TRY(weir_op_arg_types(signature, m->function->name, m->attrs, true, &m->graph->arena, &types,
                             &count));
  m->body->rets = weir_arena_array(&m->graph->arena, (size_t)count, sizeof(weir_node_t*));
  if (!m->body->rets) return weir_out_of_memory();
  weir_node_def_t def = {.name = m->function->name, .op = signature, .attrs = m->attrs};
  for (int arg = 0; arg < signature->output_count; ++arg) {
    int first, size;
    weir_view_t source;
    values_t values = {.args = NULL};
    weir_node_output_range(&def, arg, &first, &size);
    WEIR_TRY(find_entry(m, FUNCTION_RET, signature->outputs[arg].name, &source));
    WEIR_TRY(find_values(m, source, &values));
    if (values.count < size) {
      return WEIR_STATUS(INVALID_ARGUMENT, "function '%s': result '%s' has %d values, not %d",
                         m->function->name, signature->outputs[arg].name, values.count, size);
    }
    for (int i = 0; i < size; ++i) {
      WEIR_TRY(add_ret(m, value_at(&values, i), first + i, types[first + i]));
    }
  }
  m->body->ret_count = count;
  return NULL;
}

static void add_control(maker_t* m, bool* is_added, weir_node_t* node) {
  if (!is_added[node->id]) m->body->controls[m->body->control_count++] = node;
  is_added[node->id] = true;
}

static void add_promised(maker_t* m, bool* is_added, weir_wire_reader_t entry) {
  while (weir_wire_next(&entry)) {
    if (entry.field != 2 || entry.type != WEIR_WIRE_BYTES) continue;
    weir_node_t* node = weir_graph_find(m->graph, entry.bytes);
    if (node) add_control(m, is_added, node);
  }
}

// Nodes with side effects run even if nothing reads them, as do those that control_ret names.
static weir_status_t* add_controls(maker_t* m) {
  size_t count = m->graph->node_count;
  bool* is_added = weir_arena_array(&m->scratch, count, sizeof(*is_added));
  m->body->controls = weir_arena_array(&m->graph->arena, count, sizeof(weir_node_t*));
  if (!is_added || !m->body->controls) return weir_out_of_memory();
  weir_wire_reader_t r = weir_wire_reader(m->function->def);
  while (weir_wire_next(&r)) {
    if (r.field == FUNCTION_CONTROL_RET && r.type == WEIR_WIRE_BYTES)
      add_promised(m, is_added, weir_wire_reader(r.bytes));
  }
  m->body->promised_count = m->body->control_count;
  for (size_t i = 0; i < m->count; ++i) {
    if (weir_node_has(m->nodes[i], WEIR_OP_STATEFUL)) add_control(m, is_added, m->nodes[i]);
  }
  return NULL;
}

weir_status_t* weir_function_instantiate(weir_function_library_t* library,
                                         const weir_registry_t* registry,
                                         const weir_function_t* function, weir_attrs_t attrs,
                                         weir_function_body_t* out_body) {
  weir_function_body_t body = {0};
  WEIR_TRY(weir_graph_new(registry, &body.graph));
  weir_function_library_release(body.graph->library);
  body.graph->library = weir_function_library_retain(library);
  maker_t m = {.function = function, .graph = body.graph, .body = &body};
  weir_status_t* status = weir_op_resolve(function->signature, function->name, attrs, NULL, 0,
                                          &body.graph->arena, &m.attrs);
  if (!status) status = add_args(&m);
  if (!status) status = add_nodes(&m);
  if (!status) status = add_rets(&m);
  if (!status) status = add_controls(&m);
  weir_free(m.parsed);
  weir_free(m.nodes);
  weir_arena_free(&m.scratch);
  if (status) {
    weir_function_body_free(&body);
    return weir_status_prefix(status, "Function '%s': ", function->name);
  }
  *out_body = body;
  return NULL;
}

void weir_function_body_free(weir_function_body_t* body) {
  weir_graph_unref(body->graph);
  *body = (weir_function_body_t){0};
}
