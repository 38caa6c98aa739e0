// program.c — From a graph to a plan: place, optimise, copy between memories, freeze.
#include "runtime/program.h"

#include "base/string.h"
#include "graph/flatten.h"
#include "graph/function.h"
#include "pass/pass.h"
#include "runtime/copies.h"
#include "runtime/op_call.h"
#include "runtime/placing.h"

// ---- making and ending ----

static weir_status_t* init(weir_program_t* program, const weir_program_options_t* options) {
  program->runtime = weir_runtime_retain(options->runtime);
  program->graph = weir_graph_ref(options->graph);
  program->resources = options->resources ? options->resources : options->runtime->resources;
  WEIR_TRY(weir_resources_reserve(program->resources, options->runtime->device_count));
  program->kernels = options->kernels ? options->kernels : &program->own_kernels;
  // What a master has placed is not placed again, but for functions, which it does not look into.
  program->allow_soft_placement = options->allow_soft_placement || options->is_placed;
  program->is_placed = options->is_placed;
  WEIR_TRY(weir_place_policy_parse(options->place, &program->place));
  if (program->place.kind == WEIR_PLACE_COST) program->homes = options->homes;
  WEIR_TRY(weir_placing_create(program, options->rates, &program->placing));
  program->place.trace = NULL;  // read, and not the program's
  WEIR_TRY(weir_mixed_parse(options->mixed_precision, &program->mixed));
  if (options->disabled_passes) {
    program->disabled_passes = weir_strdup(options->disabled_passes);
    if (!program->disabled_passes) return weir_out_of_memory();
  }
  return weir_function_plans_create(program, &program->functions);
}

weir_status_t* weir_program_create(const weir_program_options_t* options,
                                   weir_program_t** out_program) {
  weir_program_t* program = weir_calloc(1, sizeof(*program));
  if (!program) return weir_out_of_memory();
  weir_kernel_cache_init(&program->own_kernels);
  weir_status_t* status = init(program, options);
  if (status) weir_program_destroy(program);
  else *out_program = program;
  return status;
}

void weir_program_destroy(weir_program_t* program) {
  if (!program) return;
  weir_function_plans_destroy(program->functions);
  weir_kernel_cache_free(&program->own_kernels);
  weir_placing_destroy(program->placing);
  weir_free(program->disabled_passes);
  weir_graph_unref(program->graph);
  if (!program->is_lent_runtime) weir_runtime_release(program->runtime);
  weir_free(program);
}

// A graph that has the functions of |graph|, and no nodes.
static weir_status_t* copy_library(const weir_graph_t* graph, weir_graph_t** out_graph) {
  weir_graph_t* copy = NULL;
  WEIR_TRY(weir_graph_new(graph->registry, &copy));
  weir_function_library_release(copy->library);
  copy->library = weir_function_library_retain(graph->library);
  copy->producer = graph->producer;
  *out_graph = copy;
  return NULL;
}

weir_status_t* weir_program_clone_for(const weir_program_t* program, weir_graph_t* graph,
                                      weir_program_t** out_clone) {
  weir_program_options_t options = {.runtime = program->runtime,
                                    .graph = graph,
                                    .resources = program->resources,
                                    .disabled_passes = program->disabled_passes,
                                    .allow_soft_placement = program->allow_soft_placement,
                                    .is_placed = program->is_placed};
  weir_program_t* clone = NULL;
  WEIR_TRY(weir_program_create(&options, &clone));
  clone->mixed = program->mixed;
  clone->depth = program->depth;
  clone->is_lent_runtime = program->is_lent_runtime || program->runtime->owns_resources;
  if (clone->is_lent_runtime) weir_runtime_release(clone->runtime);
  *out_clone = clone;
  return NULL;
}

weir_status_t* weir_program_clone(const weir_program_t* program, weir_program_t** out_clone) {
  weir_graph_t* graph = NULL;
  WEIR_TRY(copy_library(program->graph, &graph));
  weir_status_t* status = weir_program_clone_for(program, graph, out_clone);
  weir_graph_unref(graph);
  return status;
}

// ---- compiling ----

static weir_status_t* call_once(weir_program_t* program, const weir_node_def_t* node,
                                weir_tensor_t* const* inputs, weir_tensor_t** outputs) {
  weir_op_call_t* call = NULL;
  weir_step_t step = {.session_resources = program->resources,
                      .inter_pool = program->runtime->pool};
  size_t count = (size_t)node->input_count + (size_t)node->output_count;
  weir_value_t* values = weir_calloc(count, sizeof(*values));
  if (!values) return weir_out_of_memory();
  weir_value_t* results = values + node->input_count;
  for (int i = 0; i < node->input_count; ++i) values[i].tensor = weir_tensor_retain(inputs[i]);
  weir_status_t* status = weir_op_call_create(node, program->runtime->devices[0], &call);
  if (!status && weir_op_call_may_wait(call))
    status = WEIR_STATUS(UNIMPLEMENTED, "'%s' is asynchronous", node->name);
  if (!status) status = weir_op_call_run(call, &step, values, results);
  for (int i = 0; i < node->output_count && !status; ++i) {
    outputs[i] = results[i].tensor;
    results[i].tensor = NULL;
  }
  for (size_t i = 0; i < count; ++i) weir_value_release(&values[i]);
  weir_free(values);
  weir_op_call_destroy(call);
  return status;
}

// Folding's evaluator. A node that fails here is left in the graph: it fails, or does not, when it
// is run.
static weir_status_t* evaluate(void* self, const weir_node_t* node, weir_tensor_t* const* inputs,
                               weir_tensor_t** outputs) {
  weir_status_t* status = call_once(self, &node->def, inputs, outputs);
  if (!status) return NULL;
  weir_status_destroy(status);
  return WEIR_STATUS(UNIMPLEMENTED, "node '%s' cannot be folded", node->def.name);
}

static weir_pass_ctx_t pass_ctx(weir_program_t* program, const weir_source_t* source) {
  return (weir_pass_ctx_t){.graph = source->graph,
                           .targets = source->targets,
                           .target_count = source->target_count,
                           .has_moving_args = source->is_function,
                           .is_part = source->is_part,
                           .mixed = program->mixed,
                           .evaluator = {.evaluate = evaluate, .self = program}};
}

weir_status_t* weir_program_optimize(weir_program_t* program, const weir_source_t* source) {
  weir_pass_ctx_t ctx = pass_ctx(program, source);
  return weir_passes_run(&ctx, program->disabled_passes);
}

// ---- devices ----

static bool asks_for_device(const weir_graph_t* graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (*graph->nodes[i]->def.device) return true;
  }
  return false;
}

static weir_status_t* find_device(const weir_runtime_t* runtime, const weir_node_t* node,
                                  int* out_ordinal) {
  weir_device_name_t name;
  WEIR_TRY(weir_device_name_parse(weir_view_of(node->def.device), &name));
  *out_ordinal = weir_runtime_find(runtime, &name);
  if (*out_ordinal >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Node '%s' is placed on %s, which is not there: %s unknown device.",
                     node->def.name, node->def.device, node->def.device);
}

static weir_status_t* find_devices(const weir_runtime_t* runtime, const weir_graph_t* graph,
                                   weir_arena_t* arena, int** out_device_of) {
  int* device_of = weir_arena_array(arena, graph->node_count + 1, sizeof(*device_of));
  if (!device_of) return weir_out_of_memory();
  const char* last = NULL;  // most nodes have the device of the one before
  int found = 0;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    if (!last || strcmp(node->def.device, last)) WEIR_TRY(find_device(runtime, node, &found));
    last = node->def.device;
    device_of[i] = found;
  }
  *out_device_of = device_of;
  return NULL;
}

// ---- what a master has placed ----

// Its functions are placed here, by kinds of devices: a body may name tasks, but runs where it is
// called.
static weir_status_t* forget_tasks(weir_graph_t* graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = graph->nodes[i];
    const char* at = strstr(node->def.device, "/device:");
    node->def.device = weir_arena_strndup(&graph->arena, at ? at : "", at ? strlen(at) : 0);
    if (!node->def.device) return weir_out_of_memory();
  }
  return NULL;
}

// Whether a reference or a handle that |device| made leads to memory that |reader| reaches.
static bool can_share(const weir_device_t* device, const weir_device_t* reader) {
  return device == reader || (weir_device_is_host(device) && weir_device_is_host(reader));
}

// A master may be mistaken, or lie; kernels take it for granted that state is in reach and that
// what waits for others does not do so in the queue of a device.
static weir_status_t* check_node(const weir_runtime_t* runtime, const weir_node_t* node,
                                 const int* device_of) {
  weir_device_t* const* devices = runtime->devices;
  const weir_device_t* device = devices[device_of[node->id]];
  weir_placement_t placement = weir_placement_of(device);
  weir_role_t role = weir_node_role(node);
  bool is_transfer = role == WEIR_ROLE_SEND || role == WEIR_ROLE_RECV;
  if (!is_transfer && !weir_place_can_run(&placement, node))
    return WEIR_STATUS(INVALID_ARGUMENT, "Node '%s' is placed on %s, which cannot run it",
                       node->def.name, node->def.device);
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_dtype_t type = node->def.input_types[i];
    const weir_device_t* source = devices[device_of[node->inputs[i].node->id]];
    bool is_state = weir_dtype_is_ref(type) || weir_dtype_base(type) == WEIR_DTYPE_RESOURCE;
    if (is_state && !can_share(source, device))
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "Node '%s' on %s: trying to access state of node '%s' located in device %s",
          node->def.name, device->name, node->inputs[i].node->def.name, source->name);
  }
  return NULL;
}

static weir_status_t* check_placed(const weir_runtime_t* runtime, const weir_graph_t* graph,
                                   const int* device_of) {
  for (size_t i = 0; i < graph->node_count; ++i)
    WEIR_TRY(check_node(runtime, graph->nodes[i], device_of));
  return NULL;
}

weir_status_t* weir_program_prepare(weir_program_t* program, const weir_source_t* source,
                                    weir_arena_t* arena, int** out_device_of) {
  weir_graph_t* graph = source->graph;
  bool is_split = program->runtime->device_count > 1;
  if (source->is_on_host) {
    if (is_split) WEIR_TRY(weir_flatten(graph, WEIR_FLATTEN_ALL));  // bodies of calls as well
    return weir_program_optimize(program, source);
  }
  bool is_placed = program->is_placed && !(is_split && source->is_function);
  weir_flatten_t what = is_placed ? WEIR_FLATTEN_AND_CALLS : WEIR_FLATTEN_ALL;
  if (is_split && !source->is_function) WEIR_TRY(weir_flatten(graph, what));
  if (program->is_placed && !is_placed) WEIR_TRY(forget_tasks(graph));
  // What costs are compared for is the graph as it will run.
  bool is_by_cost = is_split && program->place.kind == WEIR_PLACE_COST && !source->is_function;
  if (is_by_cost) WEIR_TRY(weir_program_optimize(program, source));
  if (!is_placed && (is_split || asks_for_device(graph)))
    WEIR_TRY(weir_program_place(program, source, arena));
  if (!is_by_cost) WEIR_TRY(weir_program_optimize(program, source));
  if (!is_split) return NULL;
  WEIR_TRY(find_devices(program->runtime, graph, arena, out_device_of));
  return is_placed ? check_placed(program->runtime, graph, *out_device_of) : NULL;
}

// What is done only to a graph that runs here: others need not know the ops it adds.
static weir_status_t* specialize(weir_program_t* program, const weir_source_t* source,
                                 weir_arena_t* arena, int** device_of) {
  weir_pass_ctx_t ctx = pass_ctx(program, source);
  WEIR_TRY(weir_passes_run_local(&ctx, program->disabled_passes));
  if (!*device_of) return NULL;
  WEIR_TRY(find_devices(program->runtime, source->graph, arena, device_of));
  return weir_add_copies(program->runtime, source->graph, arena, device_of);
}

weir_status_t* weir_program_compile(weir_program_t* program, const weir_source_t* take_source,
                                    weir_plan_t** out_plan) {
  const weir_source_t* source = take_source;
  weir_arena_t arena = {0};
  int* device_of = NULL;
  weir_status_t* status = weir_program_prepare(program, source, &arena, &device_of);
  if (!status) status = specialize(program, source, &arena, &device_of);
  weir_plan_params_t params = {.graph = source->graph,
                               .targets = source->targets,
                               .target_count = source->target_count,
                               .arg_count = source->arg_count,
                               .ret_count = source->ret_count,
                               .has_moving_args = source->is_function,
                               .devices = program->runtime->devices,
                               .device_count = program->runtime->device_count,
                               .device_of = device_of,
                               .functions = weir_function_plans_base(program->functions),
                               .kernels = source->is_function ? NULL : program->kernels};
  if (status) weir_graph_unref(source->graph);
  else status = weir_plan_create(&params, out_plan);
  weir_arena_free(&arena);
  return status;
}

weir_run_params_t weir_program_step(weir_program_t* program, weir_plan_t* plan) {
  return (weir_run_params_t){.plan = plan,
                             .session_resources = program->resources,
                             .devices = program->runtime->devices,
                             .device_count = program->runtime->device_count,
                             .functions = weir_function_plans_base(program->functions),
                             .inter_pool = program->runtime->pool,
                             .hub = program->runtime->hub};
}
