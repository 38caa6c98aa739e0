// variable.c — Reference variables: VariableV2, Variable, TemporaryVariable, and the ops that write
// through a reference.
#include "kernel/elementwise/update_op.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "op/shared_handle.h"

#define NUMBER_TYPES                                                                             \
  "T: complex128, complex64, double, float, bfloat16, half, int32, int8, uint8, int16, uint16, " \
  "uint32, int64, uint64"

// int32 is the type of shapes and counters, which stay on the host.
#define GPU_TYPES \
  "T: double, float, bfloat16, half, int8, uint8, int16, uint16, uint32, int64, uint64"
#define UPDATE_KERNELS(fn)                                                             \
  ((const weir_kernel_def_t[]){                                                        \
      {WEIR_DEVICE_CPU, .types = NUMBER_TYPES, .compute = assign_##fn},                \
      {WEIR_DEVICE_GPU, .types = GPU_TYPES, .compute = assign_##fn,                    \
       .init = weir_update_##fn##_gpu, .state_size = sizeof(weir_cuda_elementwise_t)}, \
      {0}})

// ---- VariableV2, Variable ----
typedef struct variable_state_t {
  char* container;
  char* name;
  weir_dtype_t dtype;
  const weir_shape_t* shape;  // of the node's attribute
} variable_state_t;

static weir_status_t* variable_init(const weir_kernel_init_t* init, void* state) {
  variable_state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  weir_view_t name = weir_attrs_string(attrs, "shared_name");
  weir_view_t container = weir_attrs_string(attrs, "container");
  if (name.size == 0) name = weir_view_of(init->node->name);
  s->container = weir_strndup(container.data, container.size);
  s->name = weir_strndup(name.data, name.size);
  s->dtype = weir_attrs_type(attrs, "dtype");
  s->shape = weir_attrs_shape(attrs, "shape");
  return s->container && s->name ? NULL : weir_out_of_memory();
}

static void variable_deinit(void* state) {
  variable_state_t* s = state;
  weir_free(s->container);
  weir_free(s->name);
}

static weir_status_t* variable_make(void* arg, weir_resource_t** out_resource) {
  const variable_state_t* s = arg;
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_variable_create_ref(s->dtype, s->shape, &variable));
  *out_resource = &variable->base;
  return NULL;
}

static weir_status_t* variable_cpu(weir_kernel_ctx_t* ctx) {
  variable_state_t* s = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_resources_find_or_create(weir_kernel_resources(ctx), weir_view_of(s->container),
                                         weir_view_of(s->name), &weir_variable_type, variable_make,
                                         s, &resource));
  weir_kernel_set_ref(ctx, 0, (weir_variable_t*)resource);
  weir_resource_release(resource);
  return NULL;
}

static weir_status_t* variable_v2_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(weir_shape_attrs(ctx), "shape"));
}

// The older op spells an unknown shape as a scalar.
static weir_status_t* variable_v1_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_shape_attrs(ctx), "shape");
  return weir_shape_set(ctx, 0, shape->rank <= 0 ? &weir_shape_unknown : shape);
}

// ---- TemporaryVariable, DestroyTemporaryVariable: a variable that dies with the step ----
static weir_status_t* temporary_name(weir_kernel_ctx_t* ctx, weir_strbuf_t* name) {
  weir_view_t given = weir_attrs_string(weir_kernel_attrs(ctx), "var_name");
  if (given.size == 0) given = weir_view_of(ctx->node->name);
  weir_strbuf_printf(name, "tmp_var/%lld/%lld/%.*s", (long long)ctx->frame_id,
                     (long long)ctx->iteration, WEIR_VIEW_ARG(given));
  return weir_strbuf_finish(name);
}

static weir_status_t* temporary_cpu(weir_kernel_ctx_t* ctx) {
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_shape_t* shape = weir_attrs_shape(attrs, "shape");
  weir_dtype_t dtype = weir_attrs_type(attrs, "dtype");
  weir_strbuf_t name = {0};
  weir_variable_t* variable = NULL;
  weir_tensor_t* tensor = NULL;
  weir_resources_t* manager = NULL;
  weir_status_t* status = temporary_name(ctx, &name);
  if (status) goto done;
  status = weir_variable_create_ref(dtype, shape, &variable);
  if (status) goto done;
  if (weir_shape_is_full(shape)) {
    status = weir_tensor_create(dtype, shape->rank, shape->dims, &tensor);
    if (!status) status = weir_variable_assign(variable, tensor);
    if (status) goto done;
  }
  status = weir_kernel_step_resources(ctx, &manager);
  if (status) goto done;
  status = weir_resources_add(manager, weir_view_of(WEIR_STEP_CONTAINER), weir_strbuf_view(&name),
                              weir_resource_retain(&variable->base));
  if (!status) weir_kernel_set_ref(ctx, 0, variable);
done:
  if (variable) weir_resource_release(&variable->base);
  weir_strbuf_free(&name);
  return status;
}

static weir_status_t* destroy_temporary_cpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = weir_kernel_input_ref(ctx, 0);
  weir_strbuf_t name = {0};
  weir_tensor_t* value = weir_variable_read(variable);
  weir_status_t* status = temporary_name(ctx, &name);
  if (!status && !value) {
    status = WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized value %s",
                         ctx->node->name);
  }
  weir_resources_t* manager = NULL;
  if (!status) status = weir_kernel_step_resources(ctx, &manager);
  if (!status) {
    status = weir_resources_remove(manager, weir_view_of(WEIR_STEP_CONTAINER),
                                   weir_strbuf_view(&name), &weir_variable_type);
  }
  if (status) {
    weir_tensor_release(value);
  } else {
    weir_kernel_set(ctx, 0, value);
  }
  weir_strbuf_free(&name);
  return status;
}

// ---- Assign ----
static weir_status_t* assign_cpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = weir_kernel_input_ref(ctx, 0);
  const weir_tensor_t* value = weir_kernel_input(ctx, 1);
  if (!value) {  // read of another variable, or of this one
    return WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized value %s",
                       ctx->node->name);
  }
  if (weir_attrs_bool(weir_kernel_attrs(ctx), "validate_shape")) {
    char rhs[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_t lhs = {0};
    weir_tensor_t* old = weir_variable_read(variable);
    bool fits =
        old ? weir_tensor_same_shape(old, value)
            : !variable->shape || weir_shape_accepts(variable->shape, value->rank, value->dims);
    weir_status_t* status = NULL;
    if (!fits) {
      if (old) {
        weir_strbuf_puts(&lhs, weir_tensor_shape_text(old, rhs));
      } else {
        weir_shape_append(variable->shape, &lhs);
      }
      status = WEIR_STATUS(
          INVALID_ARGUMENT,
          "Assign requires shapes of both tensors to match. lhs shape= %.*s rhs shape= %s",
          WEIR_VIEW_ARG(weir_strbuf_view(&lhs)), weir_tensor_shape_text(value, rhs));
    }
    weir_strbuf_free(&lhs);
    weir_tensor_release(old);
    if (status) return status;
  }
  WEIR_TRY(weir_variable_assign(variable, weir_kernel_take_input(ctx, 1)));
  weir_kernel_set_ref(ctx, 0, variable);
  return NULL;
}

static weir_status_t* assign_shape(weir_shape_ctx_t* ctx) {
  if (!weir_attrs_bool(weir_shape_attrs(ctx), "validate_shape"))
    return weir_shape_set(ctx, 0, weir_shape_input(ctx, 1));
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), &shape));
  return weir_shape_set(ctx, 0, shape);
}

// ---- AssignAdd, AssignSub ----
static weir_status_t* update_locked(weir_kernel_ctx_t* ctx, weir_variable_t* variable,
                                    weir_update_op_t update) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 1);
  WEIR_TRY(weir_variable_make_sole_locked(variable, ctx->node->name));
  if (!weir_tensor_same_shape(variable->tensor, value)) {
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Params and update must be the same shape: %s vs. %s",
                       weir_tensor_shape_text(variable->tensor, a),
                       weir_tensor_shape_text(value, b));
  }
  return weir_kernel_update(ctx, update, variable->tensor, value);
}

static weir_status_t* update_variable(weir_kernel_ctx_t* ctx, weir_update_op_t update) {
  weir_variable_t* variable = weir_kernel_input_ref(ctx, 0);
  weir_mutex_lock(&variable->mu);
  weir_status_t* status = update_locked(ctx, variable, update);
  weir_mutex_unlock(&variable->mu);
  if (!status) weir_kernel_set_ref(ctx, 0, variable);
  return status;
}

static weir_status_t* assign_add(weir_kernel_ctx_t* ctx) {
  return update_variable(ctx, WEIR_UPDATE_ADD);
}
static weir_status_t* assign_sub(weir_kernel_ctx_t* ctx) {
  return update_variable(ctx, WEIR_UPDATE_SUB);
}

// ---- IsVariableInitialized, CountUpTo ----
static weir_status_t* is_initialized_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* value = weir_variable_read(weir_kernel_input_ref(ctx, 0));
  bool is_initialized = value != NULL;
  weir_tensor_release(value);
  return weir_kernel_output_bool(ctx, 0, is_initialized);
}

static weir_status_t* count_locked(weir_kernel_ctx_t* ctx, weir_variable_t* variable, int64_t limit,
                                   int64_t* out_before) {
  WEIR_TRY(weir_variable_make_sole_locked(variable, ctx->node->name));
  weir_tensor_t* t = variable->tensor;
  if (t->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "input is not a scalar: %s",
                       weir_tensor_shape_text(t, text));
  }
  *out_before = weir_tensor_int_at(t, 0);
  if (*out_before >= limit)
    return WEIR_STATUS(OUT_OF_RANGE, "Reached limit of %lld", (long long)limit);
  if (t->dtype == WEIR_DTYPE_INT32) {
    WEIR_TENSOR_DATA(t, int32_t)[0] = (int32_t)(*out_before + 1);
  } else {
    WEIR_TENSOR_DATA(t, int64_t)[0] = *out_before + 1;
  }
  return NULL;
}

static weir_status_t* count_up_to_cpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = weir_kernel_input_ref(ctx, 0);
  int64_t before = 0;
  weir_mutex_lock(&variable->mu);
  weir_status_t* status =
      count_locked(ctx, variable, weir_attrs_int(weir_kernel_attrs(ctx), "limit"), &before);
  weir_mutex_unlock(&variable->mu);
  return status ? status : weir_kernel_output_int(ctx, 0, before);
}

static weir_status_t* resource_count_cpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = NULL;
  int64_t before = 0;
  WEIR_TRY(weir_kernel_live_variable(ctx, 0, &variable));
  weir_mutex_lock(&variable->mu);
  weir_status_t* status = NULL;
  if (variable->dtype != weir_attrs_type(weir_kernel_attrs(ctx), "T")) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "The variable is of type %s",
                         weir_dtype_name(variable->dtype));
  } else {
    status = count_locked(ctx, variable, weir_attrs_int(weir_kernel_attrs(ctx), "limit"), &before);
  }
  weir_mutex_unlock(&variable->mu);
  weir_resource_release(&variable->base);
  return status ? status : weir_kernel_output_int(ctx, 0, before);
}

static weir_status_t* resource_count_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles ? ctx->input_handles[0] : NULL;
  const weir_dtype_t dtype = weir_attrs_type(weir_shape_attrs(ctx), "T");
  if (info && info->dtype != WEIR_DTYPE_INVALID && info->dtype != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Data types do not match: %s and %s",
                       weir_dtype_name(dtype), weir_dtype_name(info->dtype));
  }
  if (info && info->shape) WEIR_TRY(weir_shape_with_rank(ctx, info->shape, 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* count_up_to_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

static const weir_kernel_def_t variable_kernels[] =
    WEIR_VARIABLE_KERNELS(.compute = variable_cpu, .state_size = sizeof(variable_state_t),
                          .init = variable_init, .deinit = variable_deinit);

const weir_op_module_t weir_ops_state_variable = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "VariableV2",
         .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
         .outputs = "ref: Ref(dtype)",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .role = WEIR_ROLE_VARIABLE,
         .summary = "A variable handed out by reference",
         .infer_shape = variable_v2_shape,
         .kernels = variable_kernels},
        {.name = "Variable",
         .summary = "A variable handed out by reference, of old graphs",
         .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
         .outputs = "ref: Ref(dtype)",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .role = WEIR_ROLE_VARIABLE,
         .infer_shape = variable_v1_shape,
         .kernels = variable_kernels},
        {.name = "TemporaryVariable",
         .summary = "A variable for a single step, which DestroyTemporaryVariable ends",
         .attrs = "shape: shape; dtype: type; var_name: string = ''",
         .outputs = "ref: Ref(dtype)",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .infer_shape = variable_v2_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = temporary_cpu)},
        {.name = "DestroyTemporaryVariable",
         .summary = "The last value of a temporary variable, which ends",
         .attrs = "T: type; var_name: string",
         .inputs = "ref: Ref(T)",
         .outputs = "value: T",
         .flags = WEIR_OP_CHEAP,
         .infer_shape = weir_shape_fn_unchanged,
         .kernels =
             WEIR_PORTABLE_KERNEL(.compute = destroy_temporary_cpu, .has_device_int32 = true)},
        {.name = "Assign",
         .summary = "Sets a variable handed out by reference",
         .attrs = "T: type; validate_shape: bool = true; use_locking: bool = true",
         .inputs = "ref: Ref(T); value: T",
         .outputs = "output_ref: Ref(T)",
         .flags = WEIR_OP_UNINITIALIZED_INPUT | WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .infer_shape = assign_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = assign_cpu, .has_device_int32 = true)},
        {.name = "AssignAdd",
         .summary = "Adds to a variable handed out by reference",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "ref: Ref(T); value: T",
         .outputs = "output_ref: Ref(T)",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = weir_shape_fn_merge_all,
         .kernels = UPDATE_KERNELS(add)},
        {.name = "AssignSub",
         .summary = "Subtracts from a variable handed out by reference",
         .attrs = "T: numbertype; use_locking: bool = false",
         .inputs = "ref: Ref(T); value: T",
         .outputs = "output_ref: Ref(T)",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = weir_shape_fn_merge_all,
         .kernels = UPDATE_KERNELS(sub)},
        {.name = "IsVariableInitialized",
         .summary = "Whether a variable handed out by reference has a value",
         .attrs = "dtype: type",
         .inputs = "ref: Ref(dtype)",
         .outputs = "is_initialized: bool",
         .flags = WEIR_OP_UNINITIALIZED_INPUT | WEIR_OP_CHEAP | WEIR_OP_READ_ONLY,
         .infer_shape = weir_shape_fn_scalar,
         .kernels =
             WEIR_PORTABLE_KERNEL(.compute = is_initialized_cpu, .host_outputs = "is_initialized")},
        {.name = "CountUpTo",
         .summary = "Adds 1 to a variable and gives what it was; OUT_OF_RANGE at the limit",
         .attrs = "limit: int; T: {int32, int64}",
         .inputs = "ref: Ref(T)",
         .outputs = "output: T",
         .flags = WEIR_OP_CHEAP,
         .infer_shape = count_up_to_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = count_up_to_cpu)},
        {.name = "ResourceCountUpTo",
         .summary = "Adds 1 to a variable and gives what it was; OUT_OF_RANGE at the limit",
         .attrs = "limit: int; T: {int32, int64}",
         .inputs = "resource: resource",
         .outputs = "output: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .infer_shape = resource_count_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = resource_count_cpu)},
        {0}}};
