// run.c — One step: its cancellation, its resources, and the choice of executor.
#include "exec/run.h"

#include "exec/dynamic.h"
#include "exec/linear.h"

weir_status_t* weir_run(const weir_run_params_t* params) {
  weir_step_t step = {.id = params->step_id,
                      .rendezvous = params->rendezvous,
                      .session_resources = params->session_resources,
                      .functions = params->functions,
                      .inter_pool = params->inter_pool};
  atomic_init(&step.next_id, 0);
  memset(params->rets, 0, sizeof(*params->rets) * (size_t)params->plan->ret_count);
  weir_status_t* status = NULL;
  if (params->plan->is_linear) {
    // Nothing here can block or outlive the step, except stacks and TensorArrays, which need the
    // step's own resources.
    step.cancel = params->cancel;
    status = weir_resources_create(WEIR_STEP_CONTAINER, &step.resources);
    if (!status) {
      status = weir_linear_run(params->plan, &step, params->args, params->rets, params->trace,
                               params->deadline_ns);
    }
    weir_resources_destroy(step.resources);
    return status;
  }
  status = weir_cancel_create(params->cancel, &step.cancel);
  if (!status) status = weir_resources_create(WEIR_STEP_CONTAINER, &step.resources);
  if (!status) status = weir_dynamic_run(params, &step);
  weir_resources_destroy(step.resources);
  weir_cancel_destroy(step.cancel);
  return status;
}
