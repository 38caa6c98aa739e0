// op_call.c — A kernel, its state, and the context of one call.
#include "runtime/op_call.h"

#include "base/outcome.h"
#include "base/subnormal.h"
#include "device/builds.h"
#include "op/promise.h"

struct weir_op_call_t {
  const weir_node_def_t* node;
  const weir_kernel_def_t* kernel;
  weir_device_t* device;
  void* state;
  bool is_initialized;  // its init was called, successful or not
};

static weir_status_t* init(weir_op_call_t* call) {
  call->state = call->kernel->state_size ? weir_calloc(1, call->kernel->state_size) : NULL;
  if (call->kernel->state_size && !call->state) return weir_out_of_memory();
  call->is_initialized = true;
  weir_kernel_init_t init = {.node = call->node, .kernel = call->kernel, .device = call->device};
  if (!call->kernel->init) return NULL;
  weir_builds_t builds = {0}, *outer = weir_builds_gather(&builds);
  weir_status_t* status = call->kernel->init(&init, call->state);
  weir_builds_gather(outer);
  int32_t owner = 0;
  if (!status) status = weir_builds_finish(&builds, &owner);
  weir_builds_free(&builds);
  return status;
}

weir_status_t* weir_op_call_create(const weir_node_def_t* node, weir_device_t* device,
                                   weir_op_call_t** out_call) {
  const weir_kernel_def_t* kernel = NULL;
  WEIR_TRY(weir_op_find_kernel(node, device->kernel_type, &kernel));
  weir_op_call_t* call = weir_calloc(1, sizeof(*call));
  if (!call) return weir_out_of_memory();
  *call = (weir_op_call_t){.node = node, .kernel = kernel, .device = device};
  weir_status_t* status = init(call);
  if (status) weir_op_call_destroy(call);
  else *out_call = call;
  return status;
}

void weir_op_call_destroy(weir_op_call_t* call) {
  if (!call) return;
  if (call->is_initialized && call->kernel->deinit) call->kernel->deinit(call->state);
  weir_free(call->state);
  weir_free(call);
}

bool weir_op_call_may_wait(const weir_op_call_t* call) { return !call->kernel->compute; }

// ---- calls that end later ----

static weir_status_t* run_and_wait(const weir_op_call_t* call, weir_kernel_ctx_t* ctx) {
  weir_outcome_t outcome;
  weir_done_t done = {.fn = weir_outcome_set, .arg = &outcome};
  weir_outcome_init(&outcome);
  if (call->kernel->compute) weir_kernel_submit(ctx, NULL, NULL, done);
  else call->kernel->compute_async(ctx, done);
  return weir_outcome_wait(&outcome);
}

// What only hands values on runs where it is called, as in a plan.
static bool runs_here(const weir_op_call_t* call) {
  const weir_op_t* op = call->node->op;
  if (!call->kernel->compute) return false;
  return !call->device->vtable->submit || op->flags & WEIR_OP_PASS_THROUGH ||
         op->role == WEIR_ROLE_NO_OP || op->role == WEIR_ROLE_VARIABLE ||
         (op->role >= WEIR_ROLE_SWITCH && op->role <= WEIR_ROLE_LOOP_COND);
}

weir_status_t* weir_op_call_run(weir_op_call_t* call, weir_step_t* step, weir_value_t* inputs,
                                weir_value_t* outputs) {
  const weir_node_def_t* node = call->node;
  weir_kernel_ctx_t ctx = {.node = node,
                           .kernel = call->kernel,
                           .state = call->state,
                           .inputs = inputs,
                           .outputs = outputs,
                           .device = call->device,
                           .host_outputs = weir_kernel_host_args(node, call->kernel, true),
                           .step = step,
                           .input_count = node->input_count,
                           .output_count = node->output_count};
  const weir_float_mode_t before = weir_flush_subnormals();
  weir_status_t* status = runs_here(call) ? call->kernel->compute(&ctx) : run_and_wait(call, &ctx);
  weir_float_mode_restore(before);
  return status;
}
