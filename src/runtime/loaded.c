// loaded.c — Running graphs that kernels bring.
#include "runtime/loaded.h"

#include "graph/function.h"
#include "pass/pass.h"

enum { MAX_DEPTH = 32 };  // each is a thread that waits

static weir_status_t* create_program(const weir_program_t* program, weir_graph_t* graph,
                                     weir_program_t** out_program) {
  if (program->depth >= MAX_DEPTH)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "graphs within graphs are more than %d deep", MAX_DEPTH);
  WEIR_TRY(weir_program_clone_for(program, graph, out_program));
  ++(*out_program)->depth;
  return NULL;
}

weir_status_t* weir_loaded_program(const weir_program_t* program, weir_view_t library,
                                   weir_program_t** out_program) {
  weir_graph_t* graph = NULL;
  WEIR_TRY(weir_graph_new(program->graph->registry, &graph));
  weir_status_t* status = weir_function_library_import(graph->library, library);
  if (!status) status = create_program(program, graph, out_program);
  weir_graph_unref(graph);
  return status;
}

static weir_status_t* compile(weir_program_t* program, weir_view_t fetch, weir_plan_t** out_plan) {
  weir_edge_t edge;
  weir_node_t** targets = NULL;
  if (fetch.size == 0) return WEIR_STATUS(NOT_FOUND, "FetchOutputs node : not found");
  WEIR_TRY(weir_graph_find_edge(program->graph, fetch, &edge));
  weir_prune_params_t params = {.graph = program->graph, .fetches = WEIR_EDGES(edge)};
  weir_source_t source = {.ret_count = 1, .is_function = true, .is_on_host = true};
  WEIR_TRY(weir_prune(&params, &source.graph, &targets));
  return weir_program_compile(program, &source, out_plan);
}

static weir_status_t* run(weir_program_t* program, const weir_loaded_t* loaded,
                          weir_tensor_t** out_tensor) {
  weir_plan_t* plan = NULL;
  WEIR_TRY(compile(program, loaded->fetch, &plan));
  weir_tensor_t* result = NULL;
  weir_run_params_t params = weir_program_step(program, plan);
  params.rets = &result;
  params.cancel = loaded->cancel;
  params.step_id = loaded->step_id;
  weir_status_t* status = weir_run(&params);
  weir_plan_release(plan);
  if (!status) *out_tensor = result;
  return status;
}

weir_status_t* weir_loaded_run(const weir_program_t* program, const weir_loaded_t* loaded,
                               weir_tensor_t** out_tensor) {
  weir_graph_t* graph = NULL;
  weir_program_t* own = NULL;
  WEIR_TRY(weir_graph_new(program->graph->registry, &graph));
  weir_status_t* status = weir_graph_import(graph, loaded->graph_def, NULL);
  if (!status) status = create_program(program, graph, &own);
  if (!status) status = run(own, loaded, out_tensor);
  weir_program_destroy(own);
  weir_graph_unref(graph);
  return status;
}
