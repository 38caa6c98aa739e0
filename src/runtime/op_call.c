// op_call.c — A kernel, its state, and the context of one call.
#include "runtime/op_call.h"

struct weir_op_call_t {
  const weir_node_def_t* node;
  const weir_kernel_def_t* kernel;
  weir_device_t* device;
  void* state;
  bool is_initialized;  // its init was called, successful or not
};

static weir_status_t* init(weir_op_call_t* call) {
  if (!call->kernel->compute)
    return WEIR_STATUS(UNIMPLEMENTED, "'%s' is asynchronous", call->node->name);
  call->state = call->kernel->state_size ? weir_calloc(1, call->kernel->state_size) : NULL;
  if (call->kernel->state_size && !call->state) return weir_out_of_memory();
  call->is_initialized = true;
  weir_kernel_init_t init = {.node = call->node, .device = call->device};
  return call->kernel->init ? call->kernel->init(&init, call->state) : NULL;
}

weir_status_t* weir_op_call_create(const weir_node_def_t* node, weir_device_t* device,
                                   weir_op_call_t** out_call) {
  const weir_kernel_def_t* kernel = NULL;
  WEIR_TRY(weir_op_find_kernel(node, device->type, &kernel));
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

weir_status_t* weir_op_call_run(weir_op_call_t* call, weir_step_t* step,
                                weir_tensor_t* const* inputs, weir_tensor_t** outputs) {
  const weir_node_def_t* node = call->node;
  size_t count = (size_t)node->input_count + (size_t)node->output_count;
  weir_value_t* values = weir_calloc(count, sizeof(*values));
  if (!values) return weir_out_of_memory();
  weir_value_t* results = values + node->input_count;
  for (int i = 0; i < node->input_count; ++i) values[i].tensor = weir_tensor_retain(inputs[i]);
  weir_kernel_ctx_t ctx = {.node = node,
                           .kernel = call->kernel,
                           .state = call->state,
                           .inputs = values,
                           .outputs = results,
                           .device = call->device,
                           .step = step,
                           .input_count = node->input_count,
                           .output_count = node->output_count};
  weir_status_t* status = call->kernel->compute(&ctx);
  for (int i = 0; i < node->output_count && !status; ++i) {
    outputs[i] = results[i].tensor;
    results[i].tensor = NULL;
  }
  for (size_t i = 0; i < count; ++i) weir_value_release(&values[i]);
  weir_free(values);
  return status;
}
