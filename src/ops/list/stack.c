// stack.c — Stacks: what forward loops leave for backward ones. They die with the step.
#include "op/shape_ctx.h"
#include "op/step_resource.h"
#include "ops/list/rows.h"

typedef struct value_stack_t {
  weir_resource_t base;
  char* name;  // for messages
  weir_dtype_t dtype;
  int64_t max_size;  // -1: no limit
  weir_mutex_t mu;
  weir_tensor_t** items;  // guarded by mu, as all below
  size_t count;
  size_t capacity;
  bool is_closed;
} value_stack_t;

static void drop_items(value_stack_t* stack) {
  for (size_t i = 0; i < stack->count; ++i) weir_tensor_release(stack->items[i]);
  weir_free(stack->items);
  stack->items = NULL;
  stack->count = stack->capacity = 0;
}

static void stack_destroy(weir_resource_t* resource) {
  value_stack_t* stack = (value_stack_t*)resource;
  drop_items(stack);
  weir_mutex_destroy(&stack->mu);
  weir_free(stack->name);
  weir_free(stack);
}

static const weir_resource_type_t stack_type = {.name = "Stack", .destroy = stack_destroy};

static weir_status_t* stack_of(weir_kernel_ctx_t* ctx, value_stack_t** out_stack) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_step_resource_get(ctx, 0, &stack_type, &resource));
  *out_stack = (value_stack_t*)resource;
  return NULL;
}

static weir_status_t* check_open(const value_stack_t* stack) {
  if (WEIR_LIKELY(!stack->is_closed)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Stack[%s] has already been closed.", stack->name);
}

// ---- create ----

static weir_status_t* max_size_of(weir_kernel_ctx_t* ctx, int64_t* out_size) {
  *out_size = -1;
  if (ctx->input_count == 0) return NULL;
  const weir_tensor_t* size = weir_kernel_input(ctx, 0);
  if (size->rank != 0) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Stack size must be a scalar, but had shape: %s",
                       weir_tensor_shape_text(size, shape));
  }
  int64_t value = weir_tensor_int_at(size, 0);
  if (value >= 0) *out_size = value;
  return NULL;
}

static weir_status_t* stack_cpu(weir_kernel_ctx_t* ctx) {
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  weir_view_t given = weir_attrs_string(attrs, "stack_name");
  char prefix[192], name[256];
  int64_t max_size = 0;
  WEIR_TRY(max_size_of(ctx, &max_size));
  if (given.size == 0) given = weir_view_of(ctx->node->name);
  size_t size = WEIR_MIN(given.size, sizeof(prefix) - 1);
  memcpy(prefix, given.data, size);
  prefix[size] = '\0';
  WEIR_TRY(weir_kernel_unique_name(ctx, prefix, name, sizeof(name)));
  value_stack_t* stack = weir_calloc(1, sizeof(*stack));
  if (!stack) return weir_out_of_memory();
  weir_resource_init(&stack->base, &stack_type);
  weir_mutex_init(&stack->mu);
  stack->name = weir_strdup(name);
  stack->dtype = weir_attrs_type(attrs, "elem_type");
  stack->max_size = max_size;
  if (!stack->name) {
    weir_resource_release(&stack->base);
    return weir_out_of_memory();
  }
  return weir_step_resource_publish(ctx, 0, &stack->base, name, "N10tensorflow5StackE");
}

// ---- push, pop, close ----

static weir_status_t* push_locked(value_stack_t* stack, weir_tensor_t* item) {
  WEIR_TRY(check_open(stack));
  if (stack->max_size >= 0 && (int64_t)stack->count >= stack->max_size) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Stack[%s] overflowed its max_size (%lld)", stack->name,
                       (long long)stack->max_size);
  }
  if (!WEIR_GROW(stack->items, stack->capacity, stack->count + 1)) return weir_out_of_memory();
  stack->items[stack->count++] = weir_tensor_retain_inline(item);
  return NULL;
}

static weir_status_t* push_cpu(weir_kernel_ctx_t* ctx) {
  value_stack_t* stack = NULL;
  WEIR_TRY(stack_of(ctx, &stack));
  weir_tensor_t* item = ctx->inputs[1].tensor;
  if (item->dtype != stack->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Must have type %s but got %s",
                       weir_dtype_name(stack->dtype), weir_dtype_name(weir_tensor_type(item)));
  }
  weir_mutex_lock(&stack->mu);
  weir_status_t* status = push_locked(stack, item);
  weir_mutex_unlock(&stack->mu);
  if (!status) weir_kernel_pass(ctx, 1, 0);
  return status;
}

static weir_status_t* pop_locked(value_stack_t* stack, weir_tensor_t** out_item) {
  WEIR_TRY(check_open(stack));
  if (stack->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Stack[%s] is empty when calling Pop().", stack->name);
  }
  *out_item = stack->items[--stack->count];
  return NULL;
}

static weir_status_t* pop_cpu(weir_kernel_ctx_t* ctx) {
  value_stack_t* stack = NULL;
  weir_tensor_t* item = NULL;
  WEIR_TRY(stack_of(ctx, &stack));
  weir_mutex_lock(&stack->mu);
  weir_status_t* status = pop_locked(stack, &item);
  weir_mutex_unlock(&stack->mu);
  if (status) return status;
  if (item->dtype != weir_dtype_base(ctx->node->output_types[0])) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "Must have type %s but got %s",
                         weir_dtype_name(ctx->node->output_types[0]),
                         weir_dtype_name(weir_tensor_type(item)));
    weir_tensor_release(item);
    return status;
  }
  weir_kernel_set(ctx, 0, item);
  return NULL;
}

static weir_status_t* close_cpu(weir_kernel_ctx_t* ctx) {
  value_stack_t* stack = NULL;
  WEIR_TRY(stack_of(ctx, &stack));
  weir_mutex_lock(&stack->mu);
  drop_items(stack);
  stack->is_closed = true;
  weir_mutex_unlock(&stack->mu);
  return NULL;
}

// ---- shapes ----

static weir_status_t* stack_shape(weir_shape_ctx_t* ctx) {
  if (weir_dtype_is_ref(ctx->node->output_types[0])) return weir_shape_set_vector(ctx, 0, 2);
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* push_shape(weir_shape_ctx_t* ctx) {
  if (ctx->output_handles) ctx->output_handles[0] = ctx->input_handles[1];
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 1));
}

#define STACK_OP(op_name, input_spec, output_spec, op_attrs, op_flags, shape_fn, text, ...) \
  {                                                                                         \
    .name = op_name, .attrs = op_attrs, .inputs = input_spec, .outputs = output_spec,       \
    .flags = op_flags, .summary = text, .infer_shape = shape_fn,                            \
    .kernels = WEIR_PORTABLE_KERNEL(__VA_ARGS__)                                            \
  }
#define STATEFUL (WEIR_OP_STATEFUL | WEIR_OP_STEP_STATE | WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT)
#define STATELESS (WEIR_OP_CHEAP | WEIR_OP_NO_FOLD | WEIR_OP_NO_GRADIENT)
#define STACK_ATTRS "elem_type: type; stack_name: string = ''"
#define PUSH_ATTRS "T: type; swap_memory: bool = false"

const weir_op_module_t weir_ops_list_stack = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        STACK_OP("StackV2", "max_size: int32", "handle: resource", STACK_ATTRS, STATEFUL,
                 stack_shape, "Makes a stack for tensors of one step.", .compute = stack_cpu,
                 .host_inputs = "max_size", .host_outputs = "handle"),
        STACK_OP("StackPushV2", "handle: resource; elem: T", "output: T", PUSH_ATTRS, STATEFUL,
                 push_shape, "Puts a tensor on a stack and returns it.", .compute = push_cpu,
                 .host_inputs = "handle"),
        STACK_OP("StackPopV2", "handle: resource", "elem: elem_type", "elem_type: type", STATEFUL,
                 weir_shape_fn_unknown, "Takes the last tensor off a stack.", .compute = pop_cpu,
                 .host_inputs = "handle"),
        STACK_OP("StackCloseV2", "handle: resource", NULL, NULL, STATEFUL, weir_shape_fn_none,
                 "Drops what a stack holds before the step ends.", .compute = close_cpu,
                 .host_inputs = "handle"),
        STACK_OP("Stack", NULL, "handle: Ref(string)", STACK_ATTRS, STATEFUL, stack_shape,
                 "Makes a stack for tensors of one step, of old graphs.", .compute = stack_cpu),
        STACK_OP("StackPush", "handle: Ref(string); elem: T", "output: T", PUSH_ATTRS, STATELESS,
                 push_shape, "Puts a tensor on a stack and returns it.", .compute = push_cpu),
        STACK_OP("StackPop", "handle: Ref(string)", "elem: elem_type", "elem_type: type", STATELESS,
                 weir_shape_fn_unknown, "Takes the last tensor off a stack.", .compute = pop_cpu),
        STACK_OP("StackClose", "handle: Ref(string)", NULL, NULL, STATELESS, weir_shape_fn_none,
                 "Drops what a stack holds before the step ends.", .compute = close_cpu),
        {0}}};
