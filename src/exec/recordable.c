// recordable.c — Following what is fed through what the host computes.
//
// Kernels of a device compute with elements that are in its memory, whatever they are: those may
// change from step to step. All else that a launch depends on is the host's: shapes, and elements
// in host memory. Shapes follow from shapes, of arguments and of variables, and from elements in
// host memory. So it is enough to know which of those follow from constants and shapes alone; they
// are found by following all others, round loops too. Kernels never wait for the device, so what
// they tell the host does not depend on elements there; with those that do, such as Where, nothing
// is recorded. A recording is refused, too, where a node that the host runs does more than compute:
// it will not be run again.
#include "exec/recordable.h"

bool weir_plan_node_uploads(const weir_plan_node_t* node) {
  return node->is_copy && node->input_count == 1 && node->output_count == 1 &&
         weir_kernel_is_host_arg(node->def, node->kernel, false, 0) &&
         !weir_kernel_is_host_arg(node->def, node->kernel, true, 0);
}

static bool has(const weir_plan_node_t* node, weir_op_flags_t flag) {
  return node->def->op && node->def->op->flags & flag;
}

static bool is_in_host(const weir_plan_node_t* node, bool outputs, int i) {
  if (!node->kernel || weir_device_is_host(node->device)) return true;
  return weir_kernel_is_host_arg(node->def, node->kernel, outputs, i);
}

static bool has_device_output(const weir_plan_node_t* node) {
  for (int i = 0; i < node->output_count; ++i) {
    if (!is_in_host(node, true, i)) return true;
  }
  return false;
}

static bool hands_on(const weir_plan_node_t* node) {
  bool is_flow = node->role >= WEIR_ROLE_SWITCH && node->role <= WEIR_ROLE_NEXT_ITERATION;
  return is_flow || has(node, WEIR_OP_PASS_THROUGH | WEIR_OP_VIEW);
}

static bool has_handle_input(const weir_plan_node_t* node) {
  for (int i = 0; i < node->def->input_count; ++i) {
    weir_dtype_t type = node->def->input_types[i];
    if (type == WEIR_DTYPE_RESOURCE || weir_dtype_is_ref(type)) return true;
  }
  return false;
}

// What such a node gives is as good as fed.
static bool reads_host_variable(const weir_plan_node_t* node) {
  return node->kernel && weir_device_is_host(node->device) && has(node, WEIR_OP_SNAPSHOT) &&
         has_handle_input(node);
}

// What outputs of |node| in host memory vary by, where its inputs do by |inputs|.
static weir_varies_t varies_of(const weir_plan_node_t* node, weir_varies_t inputs) {
  if (node->role == WEIR_ROLE_ARG || reads_host_variable(node)) return WEIR_VARIES_FED;
  if (has(node, WEIR_OP_SHAPE_ONLY)) return WEIR_VARIES_NOT;
  if (inputs == WEIR_VARIES_FED) return hands_on(node) ? WEIR_VARIES_FED : WEIR_VARIES_ANY;
  return inputs;
}

// Tells the readers of the node at |at|. True: some did not know.
static bool spread(const weir_plan_t* plan, int32_t at, weir_varies_t varies, uint8_t* inputs) {
  const weir_plan_node_t* node = &plan->nodes[at];
  bool has_changed = false;
  for (int32_t i = 0; i < node->data_edge_count; ++i) {
    const weir_plan_edge_t* edge = &plan->edges[node->first_edge + i];
    const weir_plan_node_t* reader = &plan->nodes[edge->node];
    if (!is_in_host(node, true, edge->output)) continue;
    // What decides where the step goes is no value that is handed on.
    bool decides = (reader->role == WEIR_ROLE_SWITCH && edge->slot > reader->first_slot) ||
                   reader->role == WEIR_ROLE_LOOP_COND;
    uint8_t known = (uint8_t)(decides && varies ? WEIR_VARIES_ANY : varies);
    if (inputs[edge->node] >= known) continue;
    inputs[edge->node] = known;
    has_changed = true;
  }
  return has_changed;
}

// Whether a node's state is not in variables or in what dies with the step.
static bool has_own_state(const weir_plan_node_t* node) {
  if (has(node, WEIR_OP_STEP_STATE) || node->role == WEIR_ROLE_VARIABLE) return false;
  if (node->kernel->is_recordable) return false;
  // What writes through a handle changes what that leads to: a variable of the node's device.
  bool is_host = weir_device_is_host(node->device);
  if (has_handle_input(node)) return is_host && !has(node, WEIR_OP_SNAPSHOT);
  return has(node, WEIR_OP_STATEFUL);
}

static const char* objection(const weir_plan_node_t* node, const weir_device_t* device,
                             weir_varies_t inputs) {
  if (!node->kernel)
    return node->ret >= 0 && inputs ? "what is fetched is the host's, and varies" : NULL;
  bool is_elsewhere = weir_device_has_streams(node->device) && node->device != device;
  if (is_elsewhere) return "it is on another device";
  if (has_own_state(node)) return "it has state, or an effect, of its own";
  if (has(node, WEIR_OP_UNBOUNDED)) return "it depends on more than its inputs";
  bool is_ref = node->role == WEIR_ROLE_VARIABLE && weir_dtype_is_ref(node->def->output_types[0]);
  if (is_ref && node->device != device) return "the variable is in host memory";
  if (weir_plan_node_uploads(node))
    return inputs == WEIR_VARIES_ANY ? "what it uploads is computed of what is fed" : NULL;
  if (!node->compute) return "the host waits for it";
  if (!inputs || has(node, WEIR_OP_SHAPE_ONLY)) return NULL;
  if (has_device_output(node)) return "the host tells it what is fed";
  if (has(node, WEIR_OP_STATEFUL)) return "it keeps what is fed";
  if ((node->role == WEIR_ROLE_SWITCH || node->role == WEIR_ROLE_LOOP_COND) &&
      inputs == WEIR_VARIES_ANY)
    return "what is fed decides";
  bool is_guard = has(node, WEIR_OP_NO_FOLD) && !hands_on(node);
  return is_guard ? "it checks what is fed" : NULL;
}

// The one that records, of those of the plan; NULL: none.
static weir_device_t* find_recorder(const weir_plan_t* plan) {
  for (int32_t i = 0; i < plan->node_count; ++i) {
    const weir_plan_node_t* node = &plan->nodes[i];
    if (node->kernel && node->device->recorder) return node->device;
  }
  return NULL;
}

weir_status_t* weir_plan_is_recordable(const weir_plan_t* plan, weir_arena_t* arena,
                                       weir_recordable_t* out_recordable) {
  *out_recordable = (weir_recordable_t){.why = "no device of it records"};
  weir_device_t* device = find_recorder(plan);
  if (!device) return NULL;
  uint8_t* inputs = weir_arena_array(arena, (size_t)plan->node_count + 1, sizeof(*inputs));
  if (!inputs) return weir_out_of_memory();
  out_recordable->varies = inputs;
  out_recordable->why = "it sends to others";
  if (plan->has_transfers) return NULL;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (int32_t i = 0; i < plan->node_count; ++i) {
      weir_varies_t varies = varies_of(&plan->nodes[i], (weir_varies_t)inputs[i]);
      has_changed |= spread(plan, i, varies, inputs);
    }
  }
  for (int32_t i = 0; i < plan->node_count; ++i) {
    out_recordable->node = &plan->nodes[i];
    out_recordable->why = objection(&plan->nodes[i], device, (weir_varies_t)inputs[i]);
    if (out_recordable->why) return NULL;
  }
  out_recordable->device = device;
  return NULL;
}
