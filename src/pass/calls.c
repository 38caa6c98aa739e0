// calls.c — Functions of the library used as ops become calls: the runtime knows one way to run a
// function.
#include "graph/function.h"
#include "pass/rewrite.h"

static bool is_extra(const weir_named_attr_t* attr) { return attr->name[0] == '_'; }

// Attributes of the function go with its name; those that are not part of any definition stay on
// the node.
static weir_status_t* split_attrs(weir_arena_t* arena, weir_attrs_t attrs, weir_attrs_t* out_own,
                                  weir_named_attr_t** out_rest, size_t* out_rest_count) {
  weir_named_attr_t* own = weir_arena_array(arena, attrs.count, sizeof(*own));
  weir_named_attr_t* rest = weir_arena_array(arena, attrs.count + 3, sizeof(*rest));
  if (!own || !rest) return weir_out_of_memory();
  size_t own_count = 0;
  size_t rest_count = 0;
  for (size_t i = 0; i < attrs.count; ++i) {
    if (is_extra(&attrs.items[i])) {
      rest[rest_count++] = attrs.items[i];
    } else {
      own[own_count++] = attrs.items[i];
    }
  }
  *out_own = (weir_attrs_t){.items = own, .count = own_count};
  *out_rest = rest;
  *out_rest_count = rest_count;
  return NULL;
}

// A function gets the values of references.
static weir_status_t* input_types(weir_arena_t* arena, const weir_node_def_t* def,
                                  const weir_dtype_t** out_types) {
  weir_dtype_t* types = weir_arena_array(arena, (size_t)def->input_count, sizeof(*types));
  if (!types) return weir_out_of_memory();
  for (int i = 0; i < def->input_count; ++i) types[i] = weir_dtype_base(def->input_types[i]);
  *out_types = types;
  return NULL;
}

static weir_status_t* add_call(weir_rewrite_t* rewrite, weir_node_t* node,
                               const weir_function_t* function, weir_node_t** out_call) {
  const weir_node_def_t* def = &node->def;
  weir_func_t func = {.name = weir_view_of(function->name)};
  weir_named_attr_t* attrs = NULL;
  size_t count = 0;
  const weir_dtype_t* types = NULL;
  WEIR_TRY(input_types(&rewrite->arena, def, &types));
  WEIR_TRY(split_attrs(&rewrite->arena, def->attrs, &func.attrs, &attrs, &count));
  attrs[count++] = weir_attr_types("Tin", types, (size_t)def->input_count);
  attrs[count++] = weir_attr_types("Tout", def->output_types, (size_t)def->output_count);
  attrs[count++] = weir_attr_func("f", &func);
  const char* name = weir_arena_printf(&node->graph->arena, "%s_call", def->name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {
      .op = function->is_stateful ? "StatefulPartitionedCall" : "PartitionedCall",
      .name = name,
      .unique_name = true,
      .device = def->device,
      .inputs = {.items = node->inputs, .count = def->input_count},
      .control_inputs = node->control_inputs,
      .control_count = node->control_count,
      .attrs = {.items = attrs, .count = count}};
  return weir_graph_add(node->graph, &params, out_call);
}

static weir_status_t* visit(weir_rewrite_t* rewrite, weir_node_t* node) {
  WEIR_TRY(weir_rewrite_inputs(rewrite, node, NULL));
  if (!node->def.op || node->def.op->def) return NULL;
  const weir_function_t* function =
      weir_function_find(node->graph->library, weir_view_of(node->def.op_name));
  if (!function) return NULL;
  weir_node_t* call = NULL;
  WEIR_TRY(add_call(rewrite, node, function, &call));
  for (int i = 0; i < node->def.output_count; ++i) {
    call->shapes[i] = node->shapes[i];
    call->handles[i] = node->handles[i];
    weir_edge_t from = {.node = node, .index = i};
    weir_edge_t to = {.node = call, .index = i};
    WEIR_TRY(weir_rewrite_replace_edge(rewrite, from, to));
  }
  weir_rewrite_replace_node(rewrite, node, call);
  return NULL;
}

weir_status_t* weir_pass_calls(weir_pass_ctx_t* ctx) {
  weir_rewrite_t rewrite;
  weir_status_t* status = weir_rewrite_init(&rewrite, ctx->graph);
  for (size_t i = 0; i < rewrite.count && !status; ++i) status = visit(&rewrite, rewrite.order[i]);
  if (!status) status = weir_rewrite_finish(&rewrite, ctx);
  weir_rewrite_free(&rewrite);
  return status;
}
