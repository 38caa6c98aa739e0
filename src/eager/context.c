// context.c — Making and ending a context, and the steps in it.
#include "eager/context.h"

#include "eager/prepared.h"
#include "graph/function.h"

#define LOCAL_TASK "/job:localhost/replica:0/task:0"
#define DEFAULT_CONTAINER "localhost"

static void destroy(weir_eager_t* eager) {
  weir_eager_free_ops(eager);
  weir_program_destroy(eager->program);
  weir_runtime_release(eager->runtime);
  weir_graph_unref(eager->graph);
  weir_cancel_destroy(eager->cancel);
  weir_mutex_destroy(&eager->make_mu);
  weir_mutex_destroy(&eager->mu);
  weir_free(eager);
}

static weir_status_t* init(weir_eager_t* eager, const weir_eager_params_t* params) {
  weir_runtime_options_t runtime = {.task = params->task ? params->task : LOCAL_TASK,
                                    .container = DEFAULT_CONTAINER,
                                    .threads = params->threads,
                                    .devices = params->devices};
  WEIR_TRY(weir_cancel_create(NULL, &eager->cancel));
  WEIR_TRY(weir_graph_new(params->registry, &eager->graph));
  WEIR_TRY(weir_runtime_create(&runtime, &eager->runtime));
  weir_program_options_t program = {.runtime = eager->runtime,
                                    .graph = eager->graph,
                                    .disabled_passes = params->disabled_passes,
                                    .allow_soft_placement = params->allow_soft_placement};
  return weir_program_create(&program, &eager->program);
}

weir_status_t* weir_eager_new(const weir_eager_params_t* params, weir_eager_t** out_eager) {
  weir_eager_t* eager = weir_calloc(1, sizeof(*eager));
  if (!eager) return weir_out_of_memory();
  weir_ref_init(&eager->ref);
  weir_mutex_init(&eager->make_mu);
  weir_mutex_init(&eager->mu);
  atomic_init(&eager->next_id, 0);
  eager->allow_soft_placement = params->allow_soft_placement;
  weir_status_t* status = init(eager, params);
  if (status) destroy(eager);
  else *out_eager = eager;
  return status;
}

weir_eager_t* weir_eager_ref(weir_eager_t* eager) {
  weir_ref_inc(&eager->ref, 1);
  return eager;
}

void weir_eager_unref(weir_eager_t* eager) {
  if (eager && weir_ref_dec(&eager->ref)) destroy(eager);
}

weir_status_t* weir_eager_step_init(weir_eager_t* eager, weir_step_t* step) {
  weir_runtime_t* runtime = eager->runtime;
  // Relaxed: only distinctness matters.
  int64_t id = atomic_fetch_add_explicit(&eager->next_id, 1, memory_order_relaxed);
  *step = (weir_step_t){.id = id,
                        .session_resources = eager->program->resources,
                        .devices = runtime->devices,
                        .device_count = runtime->device_count,
                        .functions = weir_function_plans_base(eager->program->functions),
                        .inter_pool = runtime->pool,
                        .hub = runtime->hub};
  atomic_init(&step->next_id, 0);
  return weir_cancel_create(eager->cancel, &step->cancel);
}

void weir_eager_step_deinit(weir_step_t* step) {
  weir_resources_destroy(step->resources);
  weir_cancel_destroy(step->cancel);
}
