// program.c — From a graph to a plan: check devices, optimise, freeze.
#include "runtime/program.h"

#include "base/string.h"
#include "pass/pass.h"
#include "runtime/op_call.h"

// ---- making and ending ----

static weir_status_t* init(weir_program_t* program, const weir_program_options_t* options) {
  program->runtime = weir_runtime_retain(options->runtime);
  program->graph = weir_graph_ref(options->graph);
  program->resources = options->resources;
  program->kernels = options->kernels ? options->kernels : &program->own_kernels;
  program->allow_soft_placement = options->allow_soft_placement;
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
  weir_free(program->disabled_passes);
  weir_graph_unref(program->graph);
  weir_runtime_release(program->runtime);
  weir_free(program);
}

// ---- compiling ----

// Folding's evaluator. A node that fails here is left in the graph: it fails, or does not, when it
// is run.
static weir_status_t* evaluate(void* self, const weir_node_t* node, weir_tensor_t* const* inputs,
                               weir_tensor_t** outputs) {
  const weir_program_t* program = self;
  weir_op_call_t* call = NULL;
  weir_step_t step = {.session_resources = program->resources,
                      .inter_pool = program->runtime->pool};
  weir_status_t* status = weir_op_call_create(&node->def, program->runtime->devices[0], &call);
  if (!status) status = weir_op_call_run(call, &step, inputs, outputs);
  weir_op_call_destroy(call);
  if (!status) return NULL;
  weir_status_destroy(status);
  return WEIR_STATUS(UNIMPLEMENTED, "node '%s' cannot be folded", node->def.name);
}

weir_status_t* weir_program_optimize(weir_program_t* program, const weir_source_t* source) {
  weir_pass_ctx_t ctx = {.graph = source->graph,
                         .targets = source->targets,
                         .target_count = source->target_count,
                         .has_moving_args = source->is_function,
                         .evaluator = {.evaluate = evaluate, .self = program}};
  return weir_passes_run(&ctx, program->disabled_passes);
}

// One device so far: every node must allow it.
static weir_status_t* check_device(const weir_program_t* program, const weir_node_t* node) {
  if (!*node->def.device) return NULL;
  const weir_device_t* device = program->runtime->devices[0];
  weir_device_name_t want, have;
  WEIR_TRY(weir_status_prefix(weir_device_name_parse(weir_view_of(node->def.device), &want),
                              "Node '%s': ", node->def.name));
  WEIR_TRY(weir_device_name_parse(weir_view_of(device->name), &have));
  if (weir_device_name_matches(&want, &have) || program->allow_soft_placement) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Cannot assign a device for operation %s: it asks for '%s', and this process has only '%s'",
      node->def.name, node->def.device, device->name);
}

static weir_status_t* prepare(weir_program_t* program, const weir_source_t* source) {
  for (size_t i = 0; i < source->graph->node_count; ++i)
    WEIR_TRY(check_device(program, source->graph->nodes[i]));
  return weir_program_optimize(program, source);
}

weir_status_t* weir_program_compile(weir_program_t* program, const weir_source_t* take_source,
                                    weir_plan_t** out_plan) {
  const weir_source_t* source = take_source;
  weir_status_t* status = prepare(program, source);
  if (status) {
    weir_graph_unref(source->graph);
    return status;
  }
  weir_plan_params_t params = {.graph = source->graph,
                               .targets = source->targets,
                               .target_count = source->target_count,
                               .arg_count = source->arg_count,
                               .ret_count = source->ret_count,
                               .has_moving_args = source->is_function,
                               .device = program->runtime->devices[0],
                               .functions = weir_function_plans_base(program->functions),
                               .kernels = source->is_function ? NULL : program->kernels};
  return weir_plan_create(&params, out_plan);
}

weir_run_params_t weir_program_step(weir_program_t* program, weir_plan_t* plan) {
  return (weir_run_params_t){.plan = plan,
                             .session_resources = program->resources,
                             .functions = weir_function_plans_base(program->functions),
                             .inter_pool = program->runtime->pool};
}
