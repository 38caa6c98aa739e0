// node_run.c — What both executors do around a kernel, the colder part.
#include "exec/node_run.h"

#include "base/details.h"

// Of nodes that were joined to one, input |i| is of that whose number it has in a repeated
// argument.
static weir_status_t* at_joined_node(const weir_node_def_t* node, int i, weir_status_t* status) {
  for (int arg = 0; node->op->flags & WEIR_OP_COMPOSITE && arg < node->op->input_count; ++arg) {
    int first = 0, count = 0;
    weir_node_input_range(node, arg, &first, &count);
    if (i < first || i >= first + count || !node->op->inputs[arg].number_attr) continue;
    return weir_composite_at_node(node, i - first, status);
  }
  return status;
}

static weir_status_t* uninitialized(const weir_plan_node_t* node, int32_t i) {
  const weir_node_t* reader =
      (const weir_node_t*)node->def;  // the definition is a node's first member
  return at_joined_node(node->def, i,
                        WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized value %s",
                                    reader->inputs[i].node->def.name));
}

static weir_status_t* read_refs(const weir_plan_node_t* node, weir_value_t* inputs) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (!inputs[i].ref || weir_dtype_is_ref(node->def->input_types[i])) continue;
    weir_tensor_t* value = weir_variable_read(inputs[i].ref);
    bool may_be_empty = node->def->op->flags & WEIR_OP_UNINITIALIZED_INPUT;
    weir_value_release(&inputs[i]);
    inputs[i].tensor = value;
    if (!value && !may_be_empty) return uninitialized(node, i);
  }
  return NULL;
}

// Kernels that write through a reference do not know the variable's name: they are not run.
static weir_status_t* check_set(const weir_plan_node_t* node, const weir_value_t* inputs) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (!inputs[i].ref || !weir_dtype_is_ref(node->def->input_types[i])) continue;
    weir_mutex_lock(&inputs[i].ref->mu);
    bool is_set = inputs[i].ref->tensor != NULL;
    weir_mutex_unlock(&inputs[i].ref->mu);
    if (!is_set) return uninitialized(node, i);
  }
  return NULL;
}

static weir_status_t* renew(const weir_plan_node_t* node, weir_value_t* inputs) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (inputs[i].tensor && weir_tensor_is_outdated(inputs[i].tensor))
      WEIR_TRY(weir_tensor_renew(&inputs[i].tensor));
  }
  return NULL;
}

weir_status_t* weir_node_prepare_inputs(const weir_plan_node_t* node, weir_value_t* inputs) {
  if (node->input_work & WEIR_INPUTS_SET) WEIR_TRY(check_set(node, inputs));
  if (node->input_work & WEIR_INPUTS_READ) WEIR_TRY(read_refs(node, inputs));
  return node->input_work & WEIR_INPUTS_RENEW ? renew(node, inputs) : NULL;
}

weir_status_t* weir_node_error_(const weir_plan_node_t* node, weir_status_t* take_status) {
  // What failed in another task has a name already.
  if (node->role == WEIR_ROLE_RECV && weir_status_has_origin(take_status)) return take_status;
  bool is_composite = node->def->op && node->def->op->flags & WEIR_OP_COMPOSITE;
  bool is_extended = weir_node_is_extended(node->def);
  if ((is_composite || is_extended) && weir_status_has_node(take_status)) return take_status;
  if (is_extended)
    return weir_extended_at_node(node->def, (int)weir_attrs_int(node->def->attrs, "_base"),
                                 take_status);
  return weir_status_at_node(take_status, node->def->name, node->def->op_name);
}

int64_t weir_node_bytes(const weir_value_t* values, int32_t count) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (values[i].tensor) bytes += (int64_t)weir_tensor_byte_size(values[i].tensor);
  }
  return bytes;
}

weir_status_t* weir_step_check(const weir_step_t* step, int64_t deadline_ns) {
  if (weir_cancel_is_cancelled(step->cancel)) return WEIR_STATUS(CANCELLED, "Step was cancelled");
  if (deadline_ns && weir_clock_ns() > deadline_ns)
    return WEIR_STATUS(DEADLINE_EXCEEDED, "Timed out while running the step");
  return NULL;
}

static bool may_change_state(const weir_node_def_t* node) {
  for (int i = 0; i < node->input_count; ++i) {
    weir_dtype_t type = node->input_types[i];
    if (weir_dtype_is_ref(type) || type == WEIR_DTYPE_RESOURCE) return true;
  }
  return false;
}

bool weir_node_interrupt_is_due(weir_interrupt_t* base) {
  const weir_node_interrupt_t* self = (const weir_node_interrupt_t*)base;
  bool is_over = weir_cancel_is_cancelled(self->ctx->step->cancel) ||
                 (self->deadline_ns && weir_clock_ns() > self->deadline_ns);
  return is_over && !may_change_state(self->ctx->node);
}

weir_status_t* weir_node_check_arg(const weir_plan_node_t* node, int32_t index,
                                   const weir_tensor_t* arg) {
  if (!arg)
    return WEIR_STATUS(INVALID_ARGUMENT, "argument %d ('%s') has no value", (int)index,
                       node->def->name);
  weir_dtype_t want = weir_dtype_base(node->def->output_types[0]);
  if (weir_tensor_type(arg) == want) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "argument %d ('%s') expects %s but a tensor of %s was given",
                     (int)index, node->def->name, weir_dtype_name(want),
                     weir_dtype_name(weir_tensor_type(arg)));
}
