// execute.c — Running one op at once.
#include "eager/execute.h"

#include "base/details.h"
#include "exec/run.h"
#include "tensor/handle.h"

enum { FEW = 8 };  // inputs for which no memory is asked

// ---- copies between memories ----

static int memory_of(const weir_tensor_t* tensor) {
  const weir_space_t* space = weir_tensor_space(tensor);
  return space == &weir_host_space || !space->device ? WEIR_EAGER_HOST : space->device->ordinal;
}

static weir_status_t* move_plain(weir_eager_t* eager, weir_tensor_t* tensor, int to,
                                 weir_tensor_t** out_tensor) {
  weir_device_t* const* devices = eager->runtime->devices;
  int from = memory_of(tensor);
  if (from == to) {
    *out_tensor = weir_tensor_retain(tensor);
    return NULL;
  }
  bool is_direct =
      from == WEIR_EAGER_HOST || weir_device_is_peer(devices[to < 0 ? from : to], devices[from]);
  if (to >= 0 && is_direct)
    return weir_device_fetch(devices[to], WEIR_MEMORY_DEVICE, tensor, out_tensor);
  weir_tensor_t* host = NULL;
  WEIR_TRY(weir_device_fetch(devices[from], WEIR_MEMORY_HOST, tensor, &host));
  if (to < 0) {
    *out_tensor = host;
    return NULL;
  }
  weir_status_t* status = weir_device_fetch(devices[to], WEIR_MEMORY_DEVICE, host, out_tensor);
  weir_tensor_release(host);
  return status;
}

typedef struct held_t {
  weir_eager_t* eager;
  int to;
} held_t;

// What a variant holds goes along with it.
static weir_status_t* move_held(void* arg, weir_tensor_t* tensor, weir_tensor_t** out_tensor) {
  const held_t* held = arg;
  weir_dtype_t dtype = weir_tensor_type(tensor);
  if (dtype == WEIR_DTYPE_VARIANT)
    return weir_variants_map(tensor, (weir_tensor_map_t){move_held, arg}, out_tensor);
  if (weir_dtype_is_plain(dtype)) return move_plain(held->eager, tensor, held->to, out_tensor);
  *out_tensor = weir_tensor_retain(tensor);
  return NULL;
}

weir_status_t* weir_eager_move(weir_eager_t* eager, weir_tensor_t* tensor, int from, int to,
                               weir_tensor_t** out_tensor) {
  weir_device_t* const* devices = eager->runtime->devices;
  if (to >= 0 && weir_device_is_host(devices[to])) to = WEIR_EAGER_HOST;
  if (from >= 0 && weir_device_is_host(devices[from])) from = WEIR_EAGER_HOST;
  held_t held = {.eager = eager, .to = to};
  bool is_variant = weir_tensor_type(tensor) == WEIR_DTYPE_VARIANT;
  if (is_variant && from == to) {
    *out_tensor = weir_tensor_retain(tensor);
    return NULL;
  }
  return move_held(&held, tensor, out_tensor);
}

// ---- where it runs ----

static bool can_run(const weir_device_t* device, const weir_node_def_t* def) {
  const weir_kernel_def_t* kernel = weir_op_kernel(def, device->kernel_type);
  if (!kernel) return false;
  // What it borrows and waits for others would hold its stream up.
  bool is_own = !strcmp(kernel->device, device->type);
  return kernel->compute || is_own || !weir_device_has_streams(device);
}

// The first of those preferred most that can run it; the first one, which then says what is amiss.
static int find_home(const weir_eager_t* eager, weir_eager_op_t* op) {
  int best = atomic_load_explicit(&op->home, memory_order_relaxed);  // the same for whoever asks
  weir_device_t* const* devices = eager->runtime->devices;
  if (best >= 0) return best;
  for (int i = 0; i < eager->runtime->device_count; ++i) {
    if (!can_run(devices[i], &op->def)) continue;
    if (best < 0 || devices[i]->preference > devices[best]->preference) best = i;
  }
  best = WEIR_MAX(best, 0);
  atomic_store_explicit(&op->home, best, memory_order_relaxed);
  return best;
}

// The device of the state that an input is a handle of; -1: it is none.
static int device_of_state(const weir_eager_t* eager, const weir_eager_value_t* input) {
  const weir_tensor_t* tensor = input->value.tensor;
  if (input->value.ref) return input->device;
  const weir_handle_t* handle = tensor ? weir_tensor_handle(tensor) : NULL;
  for (int i = 0; handle && i < eager->runtime->device_count; ++i) {
    if (!strcmp(eager->runtime->devices[i]->name, handle->device)) return i;
  }
  return -1;
}

// State is where it is; what was asked for goes before where the inputs are.
static int choose_device(const weir_eager_t* eager, weir_eager_op_t* op,
                         const weir_eager_value_t* inputs) {
  if (op->kind != WEIR_EAGER_KERNEL || eager->runtime->device_count == 1) return 0;
  for (int i = 0; i < op->def.input_count; ++i) {
    int device = device_of_state(eager, &inputs[i]);
    if (device >= 0) return device;
  }
  weir_device_t* const* devices = eager->runtime->devices;
  bool is_open =
      op->asked < 0 || (eager->allow_soft_placement && !can_run(devices[op->asked], &op->def));
  if (!is_open) return op->asked;
  for (int i = 0; i < op->def.input_count; ++i) {
    const weir_tensor_t* tensor = inputs[i].value.tensor;
    int device = tensor && op->def.input_types[i] == WEIR_DTYPE_VARIANT ? inputs[i].device
                 : tensor                                               ? memory_of(tensor)
                                                                        : -1;
    bool is_away = device >= 0 && !weir_device_is_host(devices[device]);
    if (is_away && can_run(devices[device], &op->def)) return device;
  }
  return find_home(eager, op);
}

// ---- inputs ----

static weir_status_t* read_ref(const weir_eager_op_t* op, weir_value_t* value) {
  weir_tensor_t* tensor = weir_variable_read(value->ref);
  bool may_be_empty = op->def.op->flags & WEIR_OP_UNINITIALIZED_INPUT;
  weir_value_release(value);
  value->tensor = tensor;
  if (tensor || may_be_empty) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized value");
}

// One input as the kernel wants it. |out_value| is owned.
static weir_status_t* take_input(weir_eager_t* eager, const weir_eager_op_t* op,
                                 const weir_eager_value_t* input, int i, int memory,
                                 weir_value_t* out_value) {
  const weir_value_t* value = &input->value;
  if (!value->tensor && !value->ref)
    return WEIR_STATUS(INVALID_ARGUMENT, "input %d is dead: the op that makes it did not run", i);
  *out_value = (weir_value_t){.tensor = weir_tensor_retain(value->tensor), .ref = value->ref};
  if (value->ref) weir_resource_retain(&value->ref->base);
  if (value->ref && !weir_dtype_is_ref(op->def.input_types[i])) {
    WEIR_TRY(read_ref(op, out_value));
  } else if (value->tensor && weir_tensor_is_outdated(value->tensor)) {
    WEIR_TRY(weir_tensor_renew(&out_value->tensor));
  }
  if (!out_value->tensor || eager->runtime->device_count == 1) return NULL;
  weir_tensor_t* moved = NULL;
  WEIR_TRY(weir_eager_move(eager, out_value->tensor, input->device, memory, &moved));
  weir_tensor_release(out_value->tensor);
  out_value->tensor = moved;
  return NULL;
}

static int memory_for(const weir_eager_op_t* op, int i, int device) {
  const weir_eager_kernel_t* kernel = &op->kernels[device];
  if (op->kind == WEIR_EAGER_PLAN) return WEIR_EAGER_HOST;
  bool is_host =
      i < 64 ? kernel->host_inputs >> i & 1 : weir_kernel_is_host_input(&op->def, kernel->def, i);
  bool holds_tensors = weir_dtype_base(op->def.input_types[i]) == WEIR_DTYPE_VARIANT;
  return is_host && !holds_tensors ? WEIR_EAGER_HOST : device;
}

static weir_status_t* take_inputs(weir_eager_t* eager, const weir_eager_op_t* op,
                                  const weir_eager_value_t* inputs, int device,
                                  weir_value_t* values) {
  for (int i = 0; i < op->def.input_count; ++i)
    WEIR_TRY(take_input(eager, op, &inputs[i], i, memory_for(op, i, device), &values[i]));
  return NULL;
}

// ---- running ----

static weir_status_t* run_plan(weir_eager_t* eager, weir_eager_op_t* op, weir_plan_t* plan,
                               const weir_step_t* step, const weir_value_t* values,
                               weir_value_t* outputs) {
  size_t count = (size_t)op->def.input_count + (size_t)op->def.output_count;
  weir_tensor_t** tensors = weir_calloc(count + 1, sizeof(*tensors));
  if (!tensors) return weir_out_of_memory();
  for (int i = 0; i < op->def.input_count; ++i) tensors[i] = values[i].tensor;
  weir_run_params_t params = weir_program_step(eager->program, plan);
  params.args = tensors;
  params.rets = tensors + op->def.input_count;
  params.cancel = step->cancel;
  // Relaxed: only distinctness matters.
  params.step_id = atomic_fetch_add_explicit(&eager->next_id, 1, memory_order_relaxed);
  weir_status_t* status = weir_run(&params);
  for (int i = 0; i < op->def.output_count && !status; ++i) outputs[i].tensor = params.rets[i];
  weir_free(tensors);
  return status;
}

static weir_status_t* run(weir_eager_t* eager, weir_eager_op_t* op, weir_step_t* step, int device,
                          const weir_eager_value_t* inputs, weir_value_t* values,
                          weir_value_t* outputs) {
  weir_op_call_t* call = NULL;
  weir_plan_t* plan = NULL;
  if (op->kind == WEIR_EAGER_PLAN) {
    WEIR_TRY(weir_eager_op_plan(eager, op, &plan));
    WEIR_TRY(take_inputs(eager, op, inputs, device, values));
    return run_plan(eager, op, plan, step, values, outputs);
  }
  WEIR_TRY(weir_eager_op_call(eager, op, device, &call));
  WEIR_TRY(take_inputs(eager, op, inputs, device, values));
  return weir_op_call_run(call, step, values, outputs);
}

weir_status_t* weir_eager_execute(weir_eager_t* eager, weir_eager_op_t* op, weir_step_t* step,
                                  const char* name, const weir_eager_value_t* inputs,
                                  weir_value_t* outputs, int* out_device) {
  weir_value_t few[FEW];
  size_t count = (size_t)op->def.input_count;
  weir_value_t* values = count > FEW ? weir_alloc_array(count, sizeof(*values)) : few;
  if (!values) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) values[i] = (weir_value_t){.tensor = NULL};
  *out_device = choose_device(eager, op, inputs);
  weir_status_t* status = weir_cancel_is_cancelled(step->cancel)
                              ? WEIR_STATUS(CANCELLED, "the step was cancelled")
                              : run(eager, op, step, *out_device, inputs, values, outputs);
  for (size_t i = 0; i < count; ++i) weir_value_release(&values[i]);
  if (values != few) weir_free(values);
  if (WEIR_LIKELY(!status) || weir_status_has_node(status)) return status;
  return weir_status_at_node(status, name, op->def.op_name);
}
