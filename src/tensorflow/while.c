// while.c — TF_NewWhile: a condition and a body, built as graphs of their own, become a loop.
#include <stdio.h>

#include "graph/graph_internal.h"
#include "tensorflow/import.h"
#include "tensorflow/internal.h"

typedef struct loop_t {
  const TF_WhileParams* params;
  weir_graph_t* graph;  // the caller's
  weir_arena_t arena;
  weir_edge_t* initial;  // in |graph|
  weir_edge_t* merges;
  weir_edge_t* switches;
  weir_edge_t* state;  // in the body's frame, then what the body makes of it
} loop_t;

// The loop's inputs are kept beside the placeholders of the condition's graph: its own handle has
// no place for them.
typedef struct loop_graph_t {
  TF_Graph base;  // first: the condition's graph
  weir_graph_t* parent;
  weir_edge_t* initial;
} loop_graph_t;

static weir_status_t* add_placeholder(weir_graph_t* graph, const char* kind, int index,
                                      weir_edge_t like, TF_Output* out_input) {
  char name[32];
  weir_node_t* node = NULL;
  snprintf(name, sizeof(name), "%s_input%d", kind, index);
  const weir_node_params_t params = {
      .op = "Placeholder",
      .name = name,
      .attrs = WEIR_ATTRS(weir_attr_type("dtype", weir_dtype_base(weir_edge_dtype(like))))};
  WEIR_TRY(weir_graph_add(graph, &params, &node));
  *out_input = tf_output((weir_edge_t){.node = node, .index = 0});
  return NULL;
}

static weir_status_t* make_graphs(TF_Graph* g, const TF_Output* inputs, int count,
                                  loop_graph_t* cond, TF_Graph* body, TF_Output* cond_inputs,
                                  TF_Output* body_inputs) {
  WEIR_TRY(weir_graph_new(g->graph->registry, &cond->base.graph));
  WEIR_TRY(weir_graph_new(g->graph->registry, &body->graph));
  for (int i = 0; i < count; ++i) {
    WEIR_TRY(tf_check_output(g->graph, inputs[i]));
    cond->initial[i] = tf_edge(inputs[i]);
    WEIR_TRY(add_placeholder(cond->base.graph, "cond", i, cond->initial[i], &cond_inputs[i]));
    WEIR_TRY(add_placeholder(body->graph, "body", i, cond->initial[i], &body_inputs[i]));
  }
  return NULL;
}

static void free_params(const TF_WhileParams* params) {
  loop_graph_t* cond = (loop_graph_t*)params->cond_graph;
  if (cond) {
    weir_graph_unref(cond->parent);
    weir_free(cond->initial);
  }
  TF_DeleteGraph(params->cond_graph);
  TF_DeleteGraph(params->body_graph);
  weir_free((void*)(uintptr_t)params->cond_inputs);
  weir_free((void*)(uintptr_t)params->body_inputs);
  weir_free(params->body_outputs);
}

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status) {
  const size_t count = (size_t)WEIR_MAX(ninputs, 0);
  loop_graph_t* cond = weir_calloc(1, sizeof(*cond));
  TF_Graph* body = weir_calloc(1, sizeof(*body));
  TF_Output* cond_inputs = weir_calloc(count, sizeof(*cond_inputs));
  TF_Output* body_inputs = weir_calloc(count, sizeof(*body_inputs));
  TF_Output* body_outputs = weir_calloc(count, sizeof(*body_outputs));
  if (cond) {
    cond->parent = weir_graph_ref(g->graph);
    cond->initial = weir_calloc(count, sizeof(*cond->initial));
  }
  const bool has_memory =
      cond && cond->initial && body && cond_inputs && body_inputs && body_outputs;
  weir_status_t* result = has_memory ? NULL : weir_out_of_memory();
  if (!result && ninputs <= 0)
    result = WEIR_STATUS(INVALID_ARGUMENT, "TF_NewWhile() must be passed at least one input");
  if (!result) result = make_graphs(g, inputs, ninputs, cond, body, cond_inputs, body_inputs);
  const TF_WhileParams params = {.ninputs = ninputs,
                                 .cond_graph = (TF_Graph*)cond,
                                 .cond_inputs = cond_inputs,
                                 .body_graph = body,
                                 .body_inputs = body_inputs,
                                 .body_outputs = body_outputs};
  if (tf_status_take(status, result)) return params;
  free_params(&params);
  return (TF_WhileParams){.ninputs = 0};
}

void TF_AbortWhile(const TF_WhileParams* params) { free_params(params); }

// ---- the loop ----

static weir_status_t* add(loop_t* loop, const char* op, weir_edges_t inputs, weir_attrs_t attrs,
                          weir_edge_t* out_first) {
  const char* name = weir_arena_printf(&loop->arena, "%s/%s", loop->params->name, op);
  if (!name) return weir_out_of_memory();
  weir_node_t* node = NULL;
  const weir_node_params_t params = {
      .op = op, .name = name, .unique_name = true, .inputs = inputs, .attrs = attrs};
  WEIR_TRY(weir_graph_add(loop->graph, &params, &node));
  *out_first = (weir_edge_t){.node = node, .index = 0};
  return NULL;
}

static weir_status_t* enter(loop_t* loop) {
  const weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_string("frame_name", loop->params->name),
                 weir_attr_bool("is_constant", false), weir_attr_int("parallel_iterations", 32));
  for (int i = 0; i < loop->params->ninputs; ++i) {
    weir_edge_t first = WEIR_NO_EDGE;
    WEIR_TRY(add(loop, "Enter", WEIR_EDGES(loop->initial[i]), attrs, &first));
    // The second input becomes the NextIteration once there is one.
    WEIR_TRY(add(loop, "Merge", WEIR_EDGES(first, first), WEIR_NO_ATTRS, &loop->merges[i]));
    // What an iteration makes of it need not have the shape that it enters with.
    weir_node_forget_shapes(loop->merges[i].node);
  }
  return NULL;
}

// Copies |from|, whose placeholders |inputs| are |values| here, and finds |outputs| in the copy.
// All that needs none of them runs once |pivot| has: then it is in the loop.
static weir_status_t* copy_in(loop_t* loop, const char* kind, weir_graph_t* from,
                              const TF_Output* inputs, const weir_edge_t* values,
                              weir_node_t* pivot, const TF_Output* outputs, weir_edge_t* out_edges,
                              int output_count) {
  weir_strbuf_t def = {0};
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefResults results = {0};
  const char* prefix = weir_arena_printf(&loop->arena, "%s/%s", loop->params->name, kind);
  results.outputs = weir_arena_array(&loop->arena, (size_t)output_count, sizeof(*results.outputs));
  results.missing_names = weir_arena_array(&loop->arena, (size_t)loop->params->ninputs + 1,
                                           sizeof(*results.missing_names));
  results.missing_indexes = weir_arena_array(&loop->arena, (size_t)loop->params->ninputs + 1,
                                             sizeof(*results.missing_indexes));
  const bool has_memory =
      options && prefix && results.outputs && results.missing_names && results.missing_indexes;
  weir_status_t* status =
      has_memory ? weir_graph_write_portable(from, 0, &def) : weir_out_of_memory();
  if (!status) {
    TF_ImportGraphDefOptionsSetPrefix(options, prefix);
    if (pivot) TF_ImportGraphDefOptionsAddControlDependency(options, tf_operation(pivot));
    for (int i = 0; i < loop->params->ninputs; ++i)
      TF_ImportGraphDefOptionsAddInputMapping(options, tf_node(inputs[i].oper)->def.name, 0,
                                              tf_output(values[i]));
    for (int i = 0; i < output_count; ++i)
      TF_ImportGraphDefOptionsAddReturnOutput(options, tf_node(outputs[i].oper)->def.name,
                                              outputs[i].index);
    status = tf_graph_import_locked(loop->graph, weir_strbuf_view(&def), options, &results);
  }
  for (int i = 0; i < output_count && !status; ++i) out_edges[i] = tf_edge(results.outputs[i]);
  TF_DeleteImportGraphDefOptions(options);
  weir_arena_free(&results.arena);
  weir_strbuf_free(&def);
  return status;
}

static weir_status_t* decide(loop_t* loop) {
  const TF_WhileParams* params = loop->params;
  weir_edge_t goes_on = WEIR_NO_EDGE, decides = WEIR_NO_EDGE;
  WEIR_TRY(copy_in(loop, "cond", params->cond_graph->graph, params->cond_inputs, loop->merges,
                   loop->merges[0].node, &params->cond_output, &goes_on, 1));
  if (weir_dtype_base(weir_edge_dtype(goes_on)) != WEIR_DTYPE_BOOL)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "BuildWhileLoop: 'cond' argument must return a boolean "
                       "output, but returned %s",
                       weir_dtype_name(weir_edge_dtype(goes_on)));
  WEIR_TRY(add(loop, "LoopCond", WEIR_EDGES(goes_on), WEIR_NO_ATTRS, &decides));
  for (int i = 0; i < params->ninputs; ++i) {
    WEIR_TRY(add(loop, "Switch", WEIR_EDGES(loop->merges[i], decides), WEIR_NO_ATTRS,
                 &loop->switches[i]));
    const weir_edge_t alive = {.node = loop->switches[i].node, .index = 1};
    WEIR_TRY(add(loop, "Identity", WEIR_EDGES(alive), WEIR_NO_ATTRS, &loop->state[i]));
  }
  return NULL;
}

static weir_status_t* go_round(loop_t* loop, TF_Output* outputs) {
  const TF_WhileParams* params = loop->params;
  WEIR_TRY(copy_in(loop, "body", params->body_graph->graph, params->body_inputs, loop->state,
                   loop->state[0].node, params->body_outputs, loop->state, params->ninputs));
  for (int i = 0; i < params->ninputs; ++i) {
    weir_edge_t next = WEIR_NO_EDGE, after = WEIR_NO_EDGE;
    WEIR_TRY(add(loop, "NextIteration", WEIR_EDGES(loop->state[i]), WEIR_NO_ATTRS, &next));
    WEIR_TRY(weir_graph_set_input(loop->merges[i].node, 1, next));
    WEIR_TRY(add(loop, "Exit", WEIR_EDGES(loop->switches[i]), WEIR_NO_ATTRS, &after));
    outputs[i] = tf_output(after);
  }
  return NULL;
}

static weir_status_t* check_params(const TF_WhileParams* params) {
  if (!params->name) return WEIR_STATUS(INVALID_ARGUMENT, "TF_WhileParams `name` field is null");
  if (!params->cond_output.oper)
    return WEIR_STATUS(INVALID_ARGUMENT, "TF_WhileParams `cond_output` field isn't set");
  WEIR_TRY(tf_check_output(params->cond_graph->graph, params->cond_output));
  for (int i = 0; i < params->ninputs; ++i) {
    if (!params->body_outputs[i].oper)
      return WEIR_STATUS(INVALID_ARGUMENT, "TF_WhileParams `body_outputs[%d]` field isn't set", i);
    WEIR_TRY(tf_check_output(params->body_graph->graph, params->body_outputs[i]));
  }
  return NULL;
}

static weir_status_t* build(loop_t* loop, TF_Output* outputs) {
  const size_t count = (size_t)loop->params->ninputs;
  loop->merges = weir_arena_array(&loop->arena, count, sizeof(weir_edge_t));
  loop->switches = weir_arena_array(&loop->arena, count, sizeof(weir_edge_t));
  loop->state = weir_arena_array(&loop->arena, count, sizeof(weir_edge_t));
  if (!loop->merges || !loop->switches || !loop->state) return weir_out_of_memory();
  WEIR_TRY(check_params(loop->params));
  WEIR_TRY(enter(loop));
  WEIR_TRY(decide(loop));
  return go_round(loop, outputs);
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  const loop_graph_t* cond = (const loop_graph_t*)params->cond_graph;
  loop_t loop = {.params = params, .graph = cond->parent, .initial = cond->initial};
  weir_mutex_lock(&loop.graph->mu);
  const size_t first = loop.graph->node_count;
  weir_status_t* result = build(&loop, outputs);
  if (result) weir_graph_unregister_from(loop.graph, first);
  weir_mutex_unlock(&loop.graph->mu);
  weir_arena_free(&loop.arena);
  free_params(params);
  tf_status_take(status, result);
}
