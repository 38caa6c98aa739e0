// run.c — One step: its cancellation, its resources, and the choice of executor.
#include "exec/run.h"

#include "base/perturb.h"
#include "exec/dynamic.h"
#include "exec/linear.h"
#include "exec/node_run.h"
#include "exec/recorded.h"
#include "op/gate.h"

// Whether the step runs in the order of the plan's nodes. A perturbed one does not: it shows who
// relies on an order that no edge asks for.
static bool is_linear(const weir_run_params_t* params) {
  return params->plan->is_linear && !weir_perturb_is_on();
}

static void init_step(const weir_run_params_t* params, weir_step_t* step) {
  *step = (weir_step_t){.id = params->step_id,
                        .rendezvous = params->rendezvous,
                        .session_resources = params->session_resources,
                        .devices = params->devices,
                        .device_count = params->device_count,
                        .functions = params->functions,
                        .inter_pool = params->inter_pool,
                        .hub = params->hub,
                        .scope = params->scope};
  weir_rendezvous_retain(params->rendezvous);
  atomic_init(&step->next_id, 0);
  for (int32_t i = 0; i < params->plan->ret_count; ++i) params->rets[i] = NULL;
}

// A step that sends to itself, and that nobody gave a rendezvous, has one of its own.
static weir_status_t* give_rendezvous(const weir_run_params_t* params, weir_step_t* step) {
  if (step->rendezvous || !params->plan->has_transfers) return NULL;
  return weir_local_rendezvous_create(&step->rendezvous);
}

static void free_step(weir_step_t* step) {
  weir_resources_destroy(step->resources);
  weir_rendezvous_release(step->rendezvous);
}

static void drop_results(const weir_run_params_t* params) {
  for (int32_t i = 0; i < params->plan->ret_count; ++i) {
    weir_tensor_release(params->rets[i]);
    params->rets[i] = NULL;
  }
}

// ---- devices whose kernels launch: a step is over when they are through ----

static const weir_device_t* launcher(const weir_run_params_t* params, int i) {
  const weir_device_t* device = params->plan->has_streams ? params->devices[i] : NULL;
  return device && device->vtable->settle ? device : NULL;
}

// In a trace the wait and the copies go by the first result's name.
static weir_status_t* collect_traced(const weir_run_params_t* params, weir_device_t* device) {
  const weir_plan_t* plan = params->plan;
  const weir_plan_node_t* node = plan->nodes;
  while (node < plan->nodes + plan->node_count && node->ret != 0) ++node;
  weir_trace_event_t event;
  bool is_shown = node < plan->nodes + plan->node_count;  // a step may have no results
  if (is_shown) weir_trace_begin(&event, node->def, device, weir_clock_ns());
  weir_status_t* status = device->vtable->collect(device, params->rets, plan->ret_count);
  if (is_shown) weir_trace_end(params->trace, &event, NULL, 0);
  return status;
}

// Waits, and brings their results to the host.
static weir_status_t* collect(const weir_run_params_t* params) {
  weir_status_t* first = NULL;
  for (int i = 0; i < params->device_count; ++i) {
    if (!launcher(params, i)) continue;
    weir_device_t* device = params->devices[i];
    weir_status_t* status =
        WEIR_UNLIKELY(params->trace != NULL)
            ? collect_traced(params, device)
            : device->vtable->collect(device, params->rets, params->plan->ret_count);
    if (first) weir_status_destroy(status);
    else first = status;
  }
  if (first) drop_results(params);
  return first;
}

// The step is through: results that are memory of a reference variable show what it holds now, and
// no later write changes them.
static weir_status_t* settle_results(const weir_run_params_t* params) {
  weir_status_t* status = NULL;
  for (int32_t i = 0; i < params->plan->ret_count && !status; ++i) {
    weir_tensor_t** result = &params->rets[i];
    status = weir_tensor_renew(result);
    if (!status && !weir_tensor_is_sole(*result)) status = weir_tensor_freeze(result);
  }
  if (status) drop_results(params);
  return status;
}

// Nothing in a linear plan can block or outlive the step: it needs no cancellation of its own, and
// resources of its own only if a kernel asks for them.
static weir_status_t* launch_linear(const weir_run_params_t* params) {
  weir_step_t step;
  init_step(params, &step);
  step.cancel = params->cancel;
  weir_status_t* status = give_rendezvous(params, &step);
  if (!status)
    status = weir_linear_run(params->plan, &step, params->args, params->rets, params->trace,
                             params->deadline_ns);
  free_step(&step);
  return status;
}

static weir_status_t* bring_results(const weir_run_params_t* params) {
  weir_status_t* status = params->plan->has_streams ? collect(params) : NULL;
  return !status && params->plan->has_moving_rets ? settle_results(params) : status;
}

static weir_status_t* run_linear(const weir_run_params_t* params) {
  weir_status_t* status = launch_linear(params);
  return status ? status : bring_results(params);
}

// A step with a cancellation and resources of its own.
static weir_status_t* make_step(const weir_run_params_t* params, weir_step_t* step) {
  init_step(params, step);
  weir_status_t* status = weir_cancel_create(params->cancel, &step->cancel);
  if (!status) status = give_rendezvous(params, step);
  if (!status) status = weir_resources_create(WEIR_STEP_CONTAINER, &step->resources);
  return status;
}

static void free_own_step(weir_step_t* step) {
  free_step(step);
  weir_cancel_destroy(step->cancel);
}

weir_status_t* weir_run_launch(const weir_run_params_t* params) {
  if (is_linear(params)) return launch_linear(params);
  weir_step_t step;
  weir_status_t* status = make_step(params, &step);
  if (!status) status = weir_dynamic_run(params, &step);
  free_own_step(&step);
  return status;
}

weir_status_t* weir_run(const weir_run_params_t* params) {
  weir_status_t* status = NULL;
  if (params->plan->recorded && weir_recorded_run(params, &status)) return status;
  status = weir_run_launch(params);
  return status ? status : bring_results(params);
}

// ---- steps nobody waits for ----

typedef struct unattended_t {
  weir_step_t step;  // what the run's own copy of it borrows
  weir_run_params_t params;
  weir_done_t done;
  int settled;  // devices that are through
} unattended_t;

// Comes back for each device whose kernels launch.
static void finish(void* arg, weir_status_t* take_status) {
  unattended_t* unattended = arg;
  weir_done_t done = unattended->done;
  while (!take_status && unattended->settled < unattended->params.device_count) {
    int at = unattended->settled++;
    if (!launcher(&unattended->params, at)) continue;
    weir_device_t* device = unattended->params.devices[at];
    device->vtable->settle(device, finish, unattended);
    return;
  }
  if (!take_status) take_status = collect(&unattended->params);
  else drop_results(&unattended->params);
  if (!take_status && unattended->params.plan->has_moving_rets)
    take_status = settle_results(&unattended->params);
  free_own_step(&unattended->step);
  weir_free(unattended);
  weir_done_call(done, take_status);
}

// A step on its way to a pool thread: a linear one that is not known to be short, or one that a
// device may repeat.
typedef struct away_t {
  weir_run_params_t params;
  weir_done_t done;
} away_t;

static int64_t arg_bytes(const weir_run_params_t* params) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < params->plan->arg_count; ++i) {
    if (params->args[i]) bytes += (int64_t)weir_tensor_byte_size(params->args[i]);
  }
  return bytes;
}

static void run_measured(const weir_run_params_t* params, weir_done_t done) {
  int64_t bytes = arg_bytes(params);
  int64_t start = weir_clock_ns();
  weir_status_t* status = run_linear(params);
  // Statistics: whichever of two steps at once wins.
  atomic_store_explicit(&params->plan->brief_ns, weir_clock_ns() - start, memory_order_relaxed);
  atomic_store_explicit(&params->plan->brief_bytes, bytes, memory_order_relaxed);
  weir_done_call(done, status);
}

static void run_linear_task(void* arg) {
  away_t linear = *(away_t*)arg;
  weir_free(arg);
  run_measured(&linear.params, linear.done);
}

// Whether the step is short, as far as the last one of the plan and what it is given can tell.
static bool is_known_brief(const weir_run_params_t* params) {
  enum { BRIEF_NS = 30000 };
  weir_plan_t* plan = params->plan;
  int64_t last = atomic_load_explicit(&plan->brief_ns, memory_order_relaxed);
  int64_t bytes = atomic_load_explicit(&plan->brief_bytes, memory_order_relaxed);
  return last > 0 && last < BRIEF_NS && !plan->is_unbounded &&
         arg_bytes(params) <= WEIR_MAX(bytes, WEIR_FEW_BYTES);
}

static void start_linear(const weir_run_params_t* params, weir_done_t done) {
  bool is_here = !params->is_brief || is_known_brief(params);
  away_t* linear = is_here ? NULL : weir_malloc(sizeof(*linear));
  if (!linear) {
    run_measured(params, done);
    return;
  }
  *linear = (away_t){.params = *params, .done = done};
  weir_pool_submit(params->inter_pool, run_linear_task, linear);
}

static void start_plain(const weir_run_params_t* params, weir_done_t done) {
  if (is_linear(params)) {
    start_linear(params, done);
    return;
  }
  unattended_t* unattended = weir_calloc(1, sizeof(*unattended));
  if (!unattended) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  unattended->done = done;
  unattended->params = *params;
  weir_status_t* status = make_step(params, &unattended->step);
  if (status) finish(unattended, status);
  else
    weir_dynamic_start(params, &unattended->step, (weir_done_t){.fn = finish, .arg = unattended});
}

// Records, launches and waits: as long as the device computes, the thread does nothing else.
static void run_repeated_task(void* arg) {
  away_t step = *(away_t*)arg;
  weir_status_t* status = NULL;
  weir_free(arg);
  if (weir_recorded_run(&step.params, &status)) weir_done_call(step.done, status);
  else start_plain(&step.params, step.done);
}

static bool may_repeat(const weir_run_params_t* params) {
  return params->plan->recorded && !params->trace && !params->is_plain;
}

static void start_passed(const weir_run_params_t* params, weir_done_t done) {
  away_t* step = may_repeat(params) ? weir_malloc(sizeof(*step)) : NULL;
  if (!step) {
    start_plain(params, done);
    return;
  }
  *step = (away_t){.params = *params, .done = done};
  weir_pool_submit(params->inter_pool, run_repeated_task, step);
}

// ---- at the gate ----

static void passed(void* arg, weir_status_t* take_status) {
  away_t step = *(away_t*)arg;
  weir_free(arg);
  if (take_status) weir_done_call(step.done, take_status);
  else start_passed(&step.params, step.done);
}

static void pass_and_start(const weir_run_params_t* params, weir_done_t done) {
  away_t* step = weir_malloc(sizeof(*step));
  if (!step) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  *step = (away_t){.params = *params, .done = done};
  weir_gate_pass(params->gate, params->step_id, params->cancel,
                 (weir_done_t){.fn = passed, .arg = step});
}

void weir_run_start(const weir_run_params_t* params, weir_done_t done) {
  // Linear steps and those that a device repeats do not wait in between: they pass before they
  // begin. Others do when they come to write (exec/dynamic.c).
  bool passes_first =
      params->gate && params->plan->has_writes && (is_linear(params) || may_repeat(params));
  if (passes_first && !weir_gate_try_pass(params->gate, params->step_id))
    pass_and_start(params, done);
  else start_passed(params, done);
}
