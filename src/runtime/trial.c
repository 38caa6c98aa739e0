// trial.c — A chain of nodes, made, run a few times, and dropped.
#include "runtime/trial.h"

#include "base/outcome.h"

enum { ATTEMPTS = 3 };

// ---- the chain ----

static weir_status_t* add_const(weir_graph_t* graph, const char* device, weir_dtype_t dtype,
                                const void* value, weir_edge_t* out_edge) {
  weir_tensor_t* tensor = NULL;
  weir_node_t* node = NULL;
  WEIR_TRY(weir_tensor_create_from(dtype, 0, NULL, value, &tensor));
  weir_node_params_t params = {
      .op = "Const",
      .name = "one",
      .unique_name = true,
      .device = device,
      .attrs = WEIR_ATTRS(weir_attr_type("dtype", dtype), weir_attr_tensor("value", tensor))};
  weir_status_t* status = weir_graph_add(graph, &params, &node);
  weir_tensor_release(tensor);
  *out_edge = (weir_edge_t){.node = node, .index = 0};
  return status;
}

// Behind a condition, where |is_conditional|: then the executor asks of every node whether it is
// alive, and does not just go through them in order.
static weir_status_t* add_start(weir_graph_t* graph, const char* device, bool is_conditional,
                                weir_edge_t* out_edge) {
  const float one = 1;
  const bool yes = true;
  weir_edge_t inputs[2];
  weir_node_t* node = NULL;
  WEIR_TRY(add_const(graph, device, WEIR_DTYPE_FLOAT, &one, out_edge));
  if (!is_conditional) return NULL;
  inputs[0] = *out_edge;
  WEIR_TRY(add_const(graph, device, WEIR_DTYPE_BOOL, &yes, &inputs[1]));
  weir_node_params_t params = {.op = "Switch",
                               .name = "condition",
                               .device = device,
                               .inputs = {.items = inputs, .count = 2}};
  WEIR_TRY(weir_graph_add(graph, &params, &node));
  *out_edge = (weir_edge_t){.node = node, .index = 1};
  return NULL;
}

static weir_status_t* add_chain(weir_graph_t* graph, const char* const* devices,
                                bool is_conditional, int length, weir_node_t** out_last) {
  weir_edge_t value;
  WEIR_TRY(add_start(graph, devices[0], is_conditional, &value));
  for (int i = 0; i < length; ++i) {
    weir_node_params_t params = {.op = "Square",
                                 .name = "square",
                                 .unique_name = true,
                                 .device = devices[i % 2],
                                 .inputs = {.items = &value, .count = 1}};
    WEIR_TRY(weir_graph_add(graph, &params, out_last));
    value = (weir_edge_t){.node = *out_last, .index = 0};
  }
  return NULL;
}

// ---- its steps ----

// How long it takes until a step has all that it can be given at once.
static weir_status_t* time_start(const weir_run_params_t* params, int64_t* out_ns) {
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  int64_t start = weir_clock_ns();
  weir_run_start(params, (weir_done_t){.fn = weir_outcome_set, .arg = &outcome});
  *out_ns = weir_clock_ns() - start;
  return weir_outcome_wait(&outcome);
}

static weir_status_t* time_plan(weir_program_t* program, weir_plan_t* plan, weir_trial_t* trial) {
  weir_run_params_t params = weir_program_step(program, plan);
  params.is_plain = true;
  int64_t step = INT64_MAX, submit = INT64_MAX;
  for (int i = 0; i < ATTEMPTS; ++i) {
    int64_t given = 0, start = weir_clock_ns();
    WEIR_TRY(weir_run(&params));
    step = WEIR_MIN(step, weir_clock_ns() - start);
    WEIR_TRY(time_start(&params, &given));
    submit = WEIR_MIN(submit, given);
  }
  *trial = (weir_trial_t){.step_ns = (double)step, .submit_ns = (double)submit};
  return NULL;
}

static weir_status_t* time_graph(weir_program_t* program, weir_graph_t* graph, weir_node_t* last,
                                 weir_trial_t* trial) {
  weir_plan_t* plan = NULL;
  weir_source_t source = {.graph = weir_graph_ref(graph), .targets = &last, .target_count = 1};
  WEIR_TRY(weir_program_compile(program, &source, &plan));
  weir_status_t* status = time_plan(program, plan, trial);
  weir_plan_release(plan);
  return status;
}

weir_status_t* weir_trial_run(weir_runtime_t* runtime, const weir_registry_t* registry, int a,
                              int b, int length, weir_trial_t* out_trial) {
  const char* devices[] = {runtime->devices[a]->name, runtime->devices[b]->name};
  weir_graph_t* graph = NULL;
  weir_node_t* last = NULL;
  weir_program_t* program = NULL;
  const bool is_conditional = !weir_device_has_streams(runtime->devices[a]);
  weir_status_t* status = weir_graph_new(registry, &graph);
  if (!status) status = add_chain(graph, devices, is_conditional, length, &last);
  weir_program_options_t options = {
      .runtime = runtime, .graph = graph, .disabled_passes = "all", .is_placed = true};
  if (!status) status = weir_program_create(&options, &program);
  if (!status) status = time_graph(program, graph, last, out_trial);
  weir_program_destroy(program);
  weir_graph_unref(graph);
  return status;
}
