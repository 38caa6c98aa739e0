// kernel_builder.c — kernels.h: kernels that programs register, made rows of the process's
// registry.
#include <pthread.h>
#include <stdio.h>

#include "ops/builtin_ops.h"
#include "tensorflow/kernel.h"

// Kernels whose op nobody has registered yet: libraries may do it in any order.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static TF_KernelBuilder* waiting;  // guarded by mu

static TF_KernelBuilder* new_builder(const char* op_name, const char* device_name) {
  TF_KernelBuilder* builder = weir_calloc(1, sizeof(*builder));
  if (!builder) return NULL;
  builder->ops[0].name = weir_arena_printf(&builder->arena, "%s", op_name);
  builder->rows[0] =
      (weir_kernel_def_t){.device = weir_arena_printf(&builder->arena, "%s", device_name),
                          .state_size = sizeof(tf_instance_t),
                          .init = tf_kernel_init,
                          .deinit = tf_kernel_deinit,
                          .foreign = builder};
  builder->is_exhausted = !builder->ops[0].name || !builder->rows[0].device;
  return builder;
}

TF_KernelBuilder* TF_NewKernelBuilder(const char* op_name, const char* device_name,
                                      void* (*create_func)(TF_OpKernelConstruction*),
                                      void (*compute_func)(void*, TF_OpKernelContext*),
                                      void (*delete_func)(void*)) {
  TF_KernelBuilder* builder = new_builder(op_name, device_name);
  if (!builder) return NULL;
  builder->create = create_func;
  builder->compute = compute_func;
  builder->destroy = delete_func;
  builder->rows[0].compute = tf_kernel_compute;
  return builder;
}

TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*)) {
  TF_KernelBuilder* builder = new_builder(op_name, device_name);
  if (!builder) return NULL;
  builder->create = create_func;
  builder->compute_async = compute_async_func;
  builder->destroy = delete_func;
  builder->rows[0].compute_async = tf_kernel_compute_async;
  return builder;
}

void TF_DeleteKernelBuilder(TF_KernelBuilder* builder) {
  if (!builder) return;
  weir_arena_free(&builder->arena);
  weir_free(builder);
}

// ---- filling ----

// Appends to a list of |separator|s.
static void append(TF_KernelBuilder* builder, const char** list, const char* separator,
                   const char* text) {
  const char* joined = weir_arena_printf(&builder->arena, "%s%s%s", *list ? *list : "",
                                         *list ? separator : "", text);
  if (joined) *list = joined;
  else builder->is_exhausted = true;
}

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder, const char* attr_name,
                                     TF_DataType type, TF_Status* status) {
  const weir_dtype_t dtype = (weir_dtype_t)type;
  if (dtype <= WEIR_DTYPE_INVALID || dtype >= WEIR_DTYPE_COUNT) {
    tf_status_take(status, WEIR_STATUS(UNIMPLEMENTED, "Unexpected type %d for attribute '%s'",
                                       (int)type, attr_name));
    return;
  }
  char constraint[256];
  snprintf(constraint, sizeof(constraint), "%s: %s", attr_name, weir_dtype_name(dtype));
  append(kernel_builder, &kernel_builder->rows[0].types, "; ", constraint);
  tf_status_clear(status);
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder, const char* arg_name) {
  append(kernel_builder, &kernel_builder->host_args, ",", arg_name);
}

void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder, int32_t priority_number) {
  kernel_builder->rows[0].priority = priority_number;
}

void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label) {
  kernel_builder->rows[0].label = NULL;
  append(kernel_builder, &kernel_builder->rows[0].label, "", label);
}

// ---- registering ----

static bool has_arg(const weir_arg_t* args, int count, const char* name) {
  for (int i = 0; i < count; ++i) {
    if (!strcmp(args[i].name, name)) return true;
  }
  return false;
}

// Says which of the arguments in host memory are inputs and which are outputs.
static weir_status_t* sort_host_args(TF_KernelBuilder* builder, const weir_op_t* op) {
  weir_view_t rest = weir_view_of(builder->host_args);
  weir_view_t part;
  while (rest.size && weir_view_next(&rest, ',', &part)) {
    const char* name = weir_arena_strndup(&builder->arena, part.data, part.size);
    if (!name) return weir_out_of_memory();
    const bool is_input = has_arg(op->inputs, op->input_count, name);
    const bool is_output = has_arg(op->outputs, op->output_count, name);
    if (!is_input && !is_output)
      return WEIR_STATUS(INVALID_ARGUMENT, "HostMemory args '%s' not found in op %s", name,
                         op->name);
    if (is_input) append(builder, &builder->rows[0].host_inputs, ",", name);
    if (is_output) append(builder, &builder->rows[0].host_outputs, ",", name);
  }
  return NULL;
}

static weir_status_t* add_to(const weir_op_t* op, TF_KernelBuilder* builder) {
  WEIR_TRY(sort_host_args(builder, op));
  if (builder->is_exhausted) return weir_out_of_memory();
  builder->ops[0].kernels = builder->rows;
  builder->module = (weir_op_module_t){.file = "TF_RegisterKernelBuilder", .ops = builder->ops};
  const weir_op_module_t* const modules[] = {&builder->module, NULL};
  return weir_registry_builtin_add(modules);
}

static weir_status_t* find_op(const char* name, const weir_op_t** out_op) {
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  *out_op = weir_registry_find(registry, weir_view_of(name));
  return NULL;
}

static weir_status_t* check(const TF_KernelBuilder* builder) {
  if (builder->is_exhausted) return weir_out_of_memory();
  if (builder->compute || builder->compute_async) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "it has no function that computes");
}

void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* builder,
                              TF_Status* status) {
  const weir_op_t* op = NULL;
  weir_status_t* failure = check(builder);
  pthread_mutex_lock(&mu);
  if (!failure) failure = find_op(builder->ops[0].name, &op);
  if (op) failure = add_to(op, builder);
  if (!op && !failure) {
    builder->next = waiting;
    waiting = builder;
  }
  pthread_mutex_unlock(&mu);
  if (failure) {
    TF_DeleteKernelBuilder(builder);
    failure = weir_status_prefix(failure, "kernel %s: ", kernel_name ? kernel_name : "");
  }
  tf_status_take(status, failure);
}

static weir_status_t* add_waiting_locked(const weir_op_t* op) {
  for (TF_KernelBuilder** at = &waiting; *at;) {
    TF_KernelBuilder* builder = *at;
    if (strcmp(builder->ops[0].name, op->name) != 0) {
      at = &builder->next;
      continue;
    }
    *at = builder->next;
    weir_status_t* status = add_to(op, builder);
    if (!status) continue;
    TF_DeleteKernelBuilder(builder);
    return status;
  }
  return NULL;
}

weir_status_t* tf_kernels_of_new_op(const char* name) {
  const weir_op_t* op = NULL;
  pthread_mutex_lock(&mu);
  weir_status_t* status = find_op(name, &op);
  if (op) status = add_waiting_locked(op);
  pthread_mutex_unlock(&mu);
  return status;
}
