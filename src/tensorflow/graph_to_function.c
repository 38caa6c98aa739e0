// graph_to_function.c — TF_GraphToFunction: some operations of a graph become a FunctionDef.
#include <ctype.h>

#include "graph/function.h"
#include "tensorflow/function.h"
#include "tensorflow/internal.h"

typedef struct make_t {
  weir_arena_t arena;
  const weir_graph_t* source;
  const TF_Output* inputs;
  int input_count;
  const TF_Output* outputs;
  int output_count;
  const char* const* output_names;
  const TF_Operation* const* operations;  // |operation_count| -1: all but inputs
  int operation_count;
  const TF_Operation* const* controls;
  int control_count;
  const char* const* control_names;
  bool* keep;           // by id
  weir_graph_t* graph;  // the copy; owned
  weir_node_t** map;
  weir_function_body_t body;
  weir_function_naming_t naming;
} make_t;

static weir_status_t* check(const make_t* make) {
  for (int i = 0; i < make->input_count; ++i) {
    WEIR_TRY(tf_check_output(make->source, make->inputs[i]));
    for (int k = 0; k < i; ++k) {
      if (!weir_edge_equal(tf_edge(make->inputs[i]), tf_edge(make->inputs[k]))) continue;
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "TF_Output %s:%d appears more than once in the input list",
                         tf_node(make->inputs[i].oper)->def.name, make->inputs[i].index);
    }
  }
  for (int i = 0; i < make->output_count; ++i)
    WEIR_TRY(tf_check_output(make->source, make->outputs[i]));
  return NULL;
}

static weir_status_t* choose_nodes(make_t* make) {
  make->keep = weir_arena_array(&make->arena, make->source->node_count + 1, sizeof(bool));
  if (!make->keep) return weir_out_of_memory();
  for (size_t i = 0; i < make->source->node_count; ++i) make->keep[i] = make->operation_count < 0;
  for (int i = 0; i < make->operation_count; ++i) {
    const weir_node_t* node = tf_node(make->operations[i]);
    if (make->keep[node->id])
      return WEIR_STATUS(INVALID_ARGUMENT, "Duplicate node '%s' in the operations", node->def.name);
    make->keep[node->id] = true;
  }
  for (int i = 0; i < make->input_count && make->operation_count < 0; ++i)
    make->keep[tf_node(make->inputs[i].oper)->id] = false;
  return NULL;
}

// Lower case, letters, digits and '_' only, as names of arguments are; unique in the copy.
static const char* argument_name(make_t* make, const char* name) {
  char* text = weir_arena_strndup(&make->arena, name, strlen(name));
  if (!text) return NULL;
  for (char* c = text; *c; ++c) *c = isalnum((unsigned char)*c) ? (char)tolower(*c) : '_';
  const char* chosen = text;
  for (int i = 0; chosen && weir_graph_find(make->graph, weir_view_of(chosen)); ++i)
    chosen = weir_arena_printf(&make->arena, "%s_%d", text, i);
  return chosen;
}

static weir_status_t* add_argument(make_t* make, int index) {
  const weir_edge_t edge = tf_edge(make->inputs[index]);
  const char* name = argument_name(make, edge.node->def.name);
  if (!name) return weir_out_of_memory();
  const weir_node_params_t params = {
      .op = "_Arg",
      .name = name,
      .attrs = WEIR_ATTRS(weir_attr_type("T", weir_dtype_base(weir_edge_dtype(edge))),
                          weir_attr_int("index", index))};
  WEIR_TRY(weir_graph_add(make->graph, &params, &make->body.args[index]));
  make->body.arg_count = index + 1;
  return NULL;
}

// What |edge| of the source is in the body.
static weir_status_t* translate(const make_t* make, weir_edge_t edge, const char* reader, int input,
                                weir_edge_t* out_edge) {
  for (int i = 0; i < make->input_count; ++i) {
    if (!weir_edge_equal(edge, tf_edge(make->inputs[i]))) continue;
    *out_edge = (weir_edge_t){.node = make->body.args[i], .index = 0};
    return NULL;
  }
  *out_edge = (weir_edge_t){.node = make->map[edge.node->id], .index = edge.index};
  if (out_edge->node) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Input %d, '%s:%d', of node '%s' in function is not available. You might need "
                     "to include it in inputs or include its source node in the body",
                     input, edge.node->def.name, edge.index, reader);
}

static weir_status_t* link_body(make_t* make) {
  for (size_t i = 0; i < make->source->node_count; ++i) {
    const weir_node_t* node = make->source->nodes[i];
    if (!make->map[i]) continue;
    for (int k = 0; k < node->def.input_count; ++k) {
      weir_edge_t edge = WEIR_NO_EDGE;
      WEIR_TRY(translate(make, node->inputs[k], node->def.name, k, &edge));
      make->map[i]->inputs[k] = edge;
    }
  }
  return NULL;
}

static weir_status_t* name_results(make_t* make) {
  const char** names = weir_arena_array(&make->arena, (size_t)make->output_count, sizeof(*names));
  if (!names) return weir_out_of_memory();
  for (int i = 0; i < make->output_count; ++i) {
    const char* own = make->output_names
                          ? make->output_names[i]
                          : argument_name(make, tf_node(make->outputs[i].oper)->def.name);
    for (int k = 0; own && make->output_names && k < i; ++k) {
      if (strcmp(own, names[k]) == 0)
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "Cannot have duplicate output names. Name '%s' appears more than once "
                           "in 'output_names' array.",
                           own);
    }
    if (!own) return weir_out_of_memory();
    names[i] = own;
  }
  make->naming.results = names;
  return NULL;
}

static weir_status_t* add_results(make_t* make) {
  for (int i = 0; i < make->output_count; ++i) {
    weir_edge_t edge = WEIR_NO_EDGE;
    WEIR_TRY(translate(make, tf_edge(make->outputs[i]), "return", i, &edge));
    const weir_node_params_t params = {.op = "_Retval",
                                       .name = "_retval",
                                       .unique_name = true,
                                       .inputs = WEIR_EDGES(edge),
                                       .attrs = WEIR_ATTRS(weir_attr_int("index", i))};
    WEIR_TRY(weir_graph_add(make->graph, &params, &make->body.rets[i]));
    make->body.ret_count = i + 1;
  }
  return NULL;
}

static weir_status_t* name_controls(make_t* make) {
  const size_t count = (size_t)make->control_count;
  weir_node_t** nodes = weir_arena_array(&make->arena, count, sizeof(*nodes));
  const char** names = weir_arena_array(&make->arena, count, sizeof(*names));
  if (!nodes || !names) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    const weir_node_t* node = tf_node(make->controls[i]);
    nodes[i] = make->map[node->id];
    names[i] = make->control_names ? make->control_names[i] : node->def.name;
    if (!nodes[i])
      return WEIR_STATUS(INVALID_ARGUMENT, "control output '%s' is not in the function's body",
                         node->def.name);
  }
  make->naming.controls = nodes;
  make->naming.control_names = names;
  make->naming.control_count = make->control_count;
  return NULL;
}

static weir_status_t* build(make_t* make, const char* name, weir_strbuf_t* out_def) {
  WEIR_TRY(check(make));
  WEIR_TRY(choose_nodes(make));
  WEIR_TRY(weir_graph_copy(make->source, make->keep, &make->arena, &make->graph, &make->map));
  make->body.graph = make->graph;
  make->body.args = weir_arena_array(&make->arena, (size_t)make->input_count, sizeof(weir_node_t*));
  make->body.rets =
      weir_arena_array(&make->arena, (size_t)make->output_count, sizeof(weir_node_t*));
  if (!make->body.args || !make->body.rets) return weir_out_of_memory();
  for (int i = 0; i < make->input_count; ++i) WEIR_TRY(add_argument(make, i));
  WEIR_TRY(link_body(make));
  WEIR_TRY(name_results(make));
  WEIR_TRY(name_controls(make));
  WEIR_TRY(add_results(make));
  return weir_function_write_body(name, &make->body, &make->naming, out_def);
}

// Names with a hash differ where functions do.
static weir_status_t* make_function(make_t* make, const char* name, bool has_hash,
                                    TF_Function** out_function) {
  weir_strbuf_t def = {0}, library = {0};
  weir_status_t* status = build(make, name, &def);
  if (!status && has_hash) {
    const char* hashed =
        weir_arena_printf(&make->arena, "%s_%016llx", name,
                          (unsigned long long)weir_hash_bytes(def.data, def.size, 0));
    def.size = 0;
    status = hashed ? weir_function_write_body(hashed, &make->body, &make->naming, &def)
                    : weir_out_of_memory();
  }
  if (!status) status = weir_function_library_write(make->source->library, &library);
  if (!status)
    status = tf_function_create(weir_strbuf_view(&def), weir_strbuf_view(&library), out_function);
  weir_strbuf_free(&def);
  weir_strbuf_free(&library);
  return status;
}

TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names, int ncontrol_outputs,
    const TF_Operation* const* control_outputs, const char* const* control_output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status) {
  (void)opts;  // nobody can make any
  make_t make = {.source = fn_body->graph,
                 .inputs = inputs,
                 .input_count = ninputs,
                 .outputs = outputs,
                 .output_count = noutputs,
                 .output_names = output_names,
                 .operations = opers,
                 .operation_count = num_opers,
                 .controls = control_outputs,
                 .control_count = ncontrol_outputs,
                 .control_names = control_output_names,
                 .naming = {.description = description}};
  TF_Function* function = NULL;
  weir_mutex_lock(&fn_body->graph->mu);
  weir_status_t* result = make_function(&make, fn_name, append_hash_to_fn_name != 0, &function);
  weir_mutex_unlock(&fn_body->graph->mu);
  weir_graph_unref(make.graph);
  weir_arena_free(&make.arena);
  tf_status_take(status, result);
  return function;
}

TF_Function* TF_GraphToFunction(const TF_Graph* fn_body, const char* fn_name,
                                unsigned char append_hash_to_fn_name, int num_opers,
                                const TF_Operation* const* opers, int ninputs,
                                const TF_Output* inputs, int noutputs, const TF_Output* outputs,
                                const char* const* output_names, const TF_FunctionOptions* opts,
                                const char* description, TF_Status* status) {
  return TF_GraphToFunctionWithControlOutputs(
      fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs, inputs, noutputs,
      outputs, output_names, 0, NULL, NULL, opts, description, status);
}
