// shadow.c — Stand-ins for variables, in the same memory.
#include "exec/shadow.h"

// ---- memory that is lent ----

// The allocator of a tensor in the memory of another, which it holds: so that the stand-in's tensor
// has one reference, as the variable's has, and may be written in place. Copies of it are in memory
// of the device.
typedef struct loan_t {
  weir_allocator_t allocator;  // first
  weir_ref_t ref;              // one a tensor
  weir_allocator_t* inner;
  weir_tensor_t* lent;  // retained
  bool is_given;        // to its tensor; before anyone else sees it
} loan_t;

static void* loan_alloc(weir_allocator_t* self, size_t size, size_t alignment) {
  loan_t* loan = (loan_t*)self;
  if (!loan->is_given) {
    loan->is_given = true;
    return loan->lent->data;
  }
  void* memory = loan->inner->vtable->alloc(loan->inner, size, alignment);
  if (memory) weir_ref_inc(&loan->ref, 1);
  return memory;
}

static void loan_free(weir_allocator_t* self, void* pointer, size_t size) {
  loan_t* loan = (loan_t*)self;
  if (loan->lent && pointer == loan->lent->data) {
    weir_tensor_release(loan->lent);
    loan->lent = NULL;
  } else {
    loan->inner->vtable->free(loan->inner, pointer, size);
  }
  if (weir_ref_dec(&loan->ref)) weir_free(loan);
}

static weir_status_t* loan_copy(weir_allocator_t* self, void* dst, const void* src, size_t size) {
  weir_allocator_t* inner = ((loan_t*)self)->inner;
  return inner->vtable->copy(inner, dst, src, size);
}

static const weir_allocator_vtable_t loan_vtable = {
    .alloc = loan_alloc, .free = loan_free, .copy = loan_copy};

static weir_status_t* lend(weir_device_t* device, weir_tensor_t* tensor, weir_tensor_t** out_loan) {
  loan_t* loan = weir_calloc(1, sizeof(*loan));
  if (!loan) return weir_out_of_memory();
  loan->inner = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  loan->allocator = (weir_allocator_t){.vtable = &loan_vtable, .space = loan->inner->space};
  loan->lent = weir_tensor_retain(tensor);
  weir_ref_init(&loan->ref);
  weir_status_t* status = weir_tensor_create_in(&loan->allocator, weir_tensor_type(tensor),
                                                tensor->rank, tensor->dims, out_loan);
  if (status) {
    weir_tensor_release(loan->lent);
    weir_free(loan);
    return status;
  }
  (*out_loan)->is_variable = weir_tensor_is_variable(tensor);
  return NULL;
}

// ---- finding variables ----

static weir_step_t step_of(const weir_run_params_t* params, weir_resources_t* resources) {
  weir_step_t step = {.session_resources = resources,
                      .devices = params->devices,
                      .device_count = params->device_count};
  atomic_init(&step.next_id, 0);
  return step;
}

// What a variable's node gives its readers. The caller releases it.
static weir_status_t* call_node(const weir_plan_node_t* node, weir_step_t* step,
                                weir_value_t* out_value) {
  weir_kernel_ctx_t ctx = {.node = node->def,
                           .kernel = node->kernel,
                           .state = node->state,
                           .outputs = out_value,
                           .device = node->device,
                           .host_outputs = node->host_outputs,
                           .step = step,
                           .output_count = 1};
  return node->compute(&ctx);
}

static weir_status_t* find(const weir_plan_node_t* node, weir_step_t* step, weir_value_t* value,
                           weir_variable_t** out_variable) {
  weir_kernel_ctx_t ctx = {.node = node->def,
                           .kernel = node->kernel,
                           .inputs = value,
                           .device = node->device,
                           .step = step,
                           .input_count = 1};
  return weir_kernel_variable(&ctx, 0, out_variable);
}

static weir_status_t* find_of(const weir_plan_node_t* node, weir_step_t* step,
                              weir_variable_t** out_variable) {
  weir_value_t value = {.tensor = NULL};
  WEIR_TRY(call_node(node, step, &value));
  weir_status_t* status = find(node, step, &value, out_variable);
  weir_value_release(&value);
  return status;
}

// ---- stand-ins ----

// Under the name that |value|, a handle, has for it.
static weir_status_t* add_stand_in(const weir_plan_node_t* node, weir_step_t* step,
                                   const weir_value_t* value, const weir_variable_t* variable) {
  const weir_handle_t* handle = weir_tensor_handle(value->tensor);
  weir_kernel_ctx_t ctx = {.node = node->def, .device = node->device, .step = step};
  weir_resources_t* manager = NULL;
  weir_variable_t* made = NULL;
  WEIR_TRY(weir_kernel_manager(&ctx, handle, &manager));
  WEIR_TRY(weir_variable_create(variable->dtype, variable->shape, &made));
  return weir_resources_add(manager, weir_view_of(handle->container), weir_view_of(handle->name),
                            &made->base);
}

// A reference variable's node makes it itself.
static weir_status_t* make_stand_in(const weir_plan_node_t* node, weir_step_t* step,
                                    const weir_variable_t* variable,
                                    weir_variable_t** out_stand_in) {
  weir_value_t value = {.tensor = NULL};
  WEIR_TRY(call_node(node, step, &value));
  weir_status_t* status = find(node, step, &value, out_stand_in);
  if (weir_status_code(status) == WEIR_FAILED_PRECONDITION && value.tensor) {
    weir_status_destroy(status);
    status = add_stand_in(node, step, &value, variable);
    if (!status) status = find(node, step, &value, out_stand_in);
  }
  weir_value_release(&value);
  return status;
}

static bool has_shape(const weir_shadow_t* shadow, const weir_tensor_t* tensor) {
  return tensor && tensor->rank == shadow->rank &&
         memcmp(tensor->dims, shadow->dims, sizeof(*tensor->dims) * (size_t)tensor->rank) == 0;
}

static weir_status_t* lend_locked(weir_shadows_t* shadows, weir_shadow_t* shadow)
    WEIR_REQUIRES(shadow->variable->mu) {
  weir_tensor_t* tensor = shadow->variable->tensor;
  const char* name = shadow->node->def->name;
  weir_device_t* device = shadow->is_host ? shadow->node->device : shadows->device;
  const weir_space_t* space = weir_device_allocator(device, WEIR_MEMORY_DEVICE)->space;
  if (!tensor || tensor->count == 0 || weir_tensor_space(tensor) != space)
    return WEIR_STATUS(FAILED_PRECONDITION, "variable %s has nothing on its device", name);
  shadow->is_shared = shadow->is_host || shadow->is_read || !weir_tensor_is_sole(tensor);
  shadow->data = tensor->data;
  shadow->rank = tensor->rank;
  memcpy(shadow->dims, tensor->dims, sizeof(*tensor->dims) * (size_t)tensor->rank);
  if (!shadow->is_shared) return lend(shadows->device, tensor, &shadow->stand_in->tensor);
  shadow->stand_in->tensor = weir_tensor_retain(tensor);
  return NULL;
}

// A variable that several nodes name is one.
static weir_status_t* add(weir_shadows_t* shadows, weir_shadow_t shadow) {
  for (int i = 0; i < shadows->count; ++i) {
    weir_shadow_t* other = &shadows->items[i];
    bool is_same = other->variable == shadow.variable;
    if (is_same != (other->stand_in == shadow.stand_in))
      return WEIR_STATUS(FAILED_PRECONDITION, "variable %s has two names", shadow.node->def->name);
    if (!is_same) continue;
    other->is_read &= shadow.is_read;
    return NULL;
  }
  if (!WEIR_GROW(shadows->items, shadows->capacity, (size_t)shadows->count + 1))
    return weir_out_of_memory();
  shadows->items[shadows->count++] = shadow;
  weir_resource_retain(&shadow.variable->base);
  weir_resource_retain(&shadow.stand_in->base);
  return NULL;
}

static bool is_only_read(const weir_plan_t* plan, const weir_plan_node_t* node) {
  for (int32_t i = 0; i < node->data_edge_count; ++i) {
    const weir_node_def_t* reader = plan->nodes[plan->edges[node->first_edge + i].node].def;
    if (!(reader->op->flags & WEIR_OP_SNAPSHOT)) return false;
  }
  return true;
}

static weir_status_t* add_node(weir_shadows_t* shadows, const weir_run_params_t* params,
                               const weir_plan_node_t* node) {
  weir_step_t session = step_of(params, params->session_resources);
  weir_step_t recorded = step_of(params, shadows->resources);
  weir_shadow_t shadow = {.node = node,
                          .is_host = weir_device_is_host(node->device),
                          .is_read = is_only_read(params->plan, node)};
  WEIR_TRY(find_of(node, &session, &shadow.variable));
  weir_status_t* status = make_stand_in(node, &recorded, shadow.variable, &shadow.stand_in);
  if (!status) status = add(shadows, shadow);
  weir_resource_release(&shadow.variable->base);
  if (shadow.stand_in) weir_resource_release(&shadow.stand_in->base);
  return status;
}

weir_status_t* weir_shadows_create(const weir_run_params_t* params, weir_device_t* device,
                                   weir_shadows_t* out_shadows) {
  const weir_plan_t* plan = params->plan;
  *out_shadows = (weir_shadows_t){.device = device};
  weir_status_t* status = weir_resources_create("recorded", &out_shadows->resources);
  if (!status) status = weir_resources_reserve(out_shadows->resources, params->device_count);
  for (int32_t i = 0; i < plan->node_count && !status; ++i) {
    if (plan->nodes[i].role == WEIR_ROLE_VARIABLE)
      status = add_node(out_shadows, params, &plan->nodes[i]);
  }
  for (int i = 0; i < out_shadows->count && !status; ++i) {
    weir_shadow_t* shadow = &out_shadows->items[i];
    weir_mutex_lock(&shadow->variable->mu);
    status = lend_locked(out_shadows, shadow);
    weir_mutex_unlock(&shadow->variable->mu);
  }
  if (status) weir_shadows_free(out_shadows);
  return status;
}

static void drop_stand_ins(weir_shadows_t* shadows) {
  for (int i = 0; i < shadows->count; ++i) {
    if (shadows->items[i].stand_in) weir_resource_release(&shadows->items[i].stand_in->base);
    shadows->items[i].stand_in = NULL;
  }
  if (shadows->resources) weir_resources_destroy(shadows->resources);
  shadows->resources = NULL;
}

void weir_shadows_free(weir_shadows_t* shadows) {
  drop_stand_ins(shadows);
  for (int i = 0; i < shadows->count; ++i) {
    weir_resource_release(&shadows->items[i].variable->base);
  }
  weir_free(shadows->items);
  *shadows = (weir_shadows_t){.device = shadows->device};
}

// ---- what the step left ----

static bool is_found(const weir_shadow_t* shadow, weir_step_t* step,
                     const weir_variable_t* expected) {
  weir_variable_t* variable = NULL;
  weir_status_t* status = find_of(shadow->node, step, &variable);
  bool is_same = !status && variable == expected;
  weir_status_destroy(status);
  if (variable) weir_resource_release(&variable->base);
  return is_same;
}

static weir_status_t* check(const weir_shadow_t* shadow, weir_step_t* step) {
  const weir_tensor_t* left = shadow->stand_in->tensor;
  const char* name = shadow->node->def->name;
  if (!is_found(shadow, step, shadow->stand_in))
    return WEIR_STATUS(FAILED_PRECONDITION, "the step destroys variable %s", name);
  if (!has_shape(shadow, left))
    return WEIR_STATUS(FAILED_PRECONDITION, "the step changes the shape of variable %s", name);
  if (left->data != shadow->data && shadow->is_shared)
    return WEIR_STATUS(FAILED_PRECONDITION, "others hold what variable %s held", name);
  return NULL;
}

// What is in the memory of another variable is copied before that is written.
static weir_status_t* move_away(const weir_shadows_t* shadows, weir_shadow_t* shadow) {
  weir_tensor_t *left = shadow->stand_in->tensor, *copy = NULL;
  const weir_tensor_t* root = left->root ? left->root : left;
  for (int i = 0; left->data != shadow->data && i < shadows->count; ++i) {
    const weir_shadow_t* other = &shadows->items[i];
    if (other == shadow || other->data != root->data) continue;
    WEIR_TRY(weir_tensor_copy(left, &copy));
    weir_tensor_release(left);
    shadow->stand_in->tensor = copy;
    return NULL;
  }
  return NULL;
}

static weir_status_t* move_back(const weir_shadows_t* shadows, const weir_shadow_t* shadow) {
  weir_allocator_t* allocator = weir_device_allocator(shadows->device, WEIR_MEMORY_DEVICE);
  const weir_tensor_t* left = shadow->stand_in->tensor;
  if (left->data == shadow->data) return NULL;
  return allocator->vtable->copy(allocator, shadow->data, left->data, weir_tensor_byte_size(left));
}

weir_status_t* weir_shadows_settle(weir_shadows_t* shadows, const weir_run_params_t* params) {
  weir_step_t step = step_of(params, shadows->resources);
  weir_status_t* status = NULL;
  for (int i = 0; i < shadows->count && !status; ++i) status = check(&shadows->items[i], &step);
  for (int i = 0; i < shadows->count && !status; ++i)
    status = move_away(shadows, &shadows->items[i]);
  for (int i = 0; i < shadows->count && !status; ++i)
    status = move_back(shadows, &shadows->items[i]);
  drop_stand_ins(shadows);
  return status;
}

// ---- running what was recorded ----

weir_tensor_t* weir_shadow_read(const weir_shadow_t* shadow) {
  weir_tensor_t* tensor = weir_variable_read(shadow->variable);
  if (has_shape(shadow, tensor)) return tensor;
  weir_tensor_release(tensor);
  return NULL;
}

static bool has_shape_now(const weir_shadow_t* shadow) {
  weir_tensor_t* tensor = weir_shadow_read(shadow);
  weir_tensor_release(tensor);
  return tensor != NULL;
}

static weir_shadow_state_t look(const weir_shadow_t* shadow) WEIR_REQUIRES(shadow->variable->mu) {
  weir_tensor_t* tensor = shadow->variable->tensor;
  if (!has_shape(shadow, tensor) || tensor->data != shadow->data) return WEIR_SHADOW_CHANGED;
  return shadow->is_shared || weir_tensor_is_sole(tensor) ? WEIR_SHADOW_FIT : WEIR_SHADOW_BUSY;
}

static void unlock_first(weir_shadows_t* shadows, int count) WEIR_NO_THREAD_SAFETY {
  for (int i = count - 1; i >= 0; --i) {
    if (!shadows->items[i].is_host) weir_mutex_unlock(&shadows->items[i].variable->mu);
  }
}

// Nobody waits for a lock here, so the order in which others take theirs does not matter.
weir_shadow_state_t weir_shadows_lock(weir_shadows_t* shadows) WEIR_NO_THREAD_SAFETY {
  for (int i = 0; i < shadows->count; ++i) {
    weir_shadow_t* shadow = &shadows->items[i];
    if (shadow->is_host) {
      if (has_shape_now(shadow)) continue;
      unlock_first(shadows, i);
      return WEIR_SHADOW_CHANGED;
    }
    if (!weir_mutex_try_lock(&shadow->variable->mu)) {
      unlock_first(shadows, i);
      return WEIR_SHADOW_BUSY;
    }
    weir_shadow_state_t state = look(shadow);
    if (state == WEIR_SHADOW_FIT) continue;
    unlock_first(shadows, i + 1);
    return state;
  }
  return WEIR_SHADOW_FIT;
}

void weir_shadows_unlock(weir_shadows_t* shadows) { unlock_first(shadows, shadows->count); }

bool weir_shadows_match(const weir_shadows_t* shadows, const weir_run_params_t* params) {
  weir_step_t step = step_of(params, params->session_resources);
  for (int i = 0; i < shadows->count; ++i) {
    if (!is_found(&shadows->items[i], &step, shadows->items[i].variable)) return false;
  }
  return true;
}
