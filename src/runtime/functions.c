// functions.c — Instantiating functions of the graph's library into plans, and calling them within
// a step.
#include "runtime/functions.h"

#include "graph/function.h"
#include "graph/function_gradient.h"
#include "runtime/program.h"

typedef struct instance_t {
  weir_plan_t* plan;  // owned
  char* name;         // of the function; owned
} instance_t;

struct weir_function_plans_t {
  weir_functions_t base;  // first
  weir_program_t* program;
  weir_mutex_t mu;        // guards all below
  weir_map_t handles;     // name and attributes → handle, as a pointer-sized number
  instance_t* instances;  // by handle - 1
  size_t count;
  size_t capacity;
};

static void append_key(const weir_func_t* func, weir_strbuf_t* key) {
  weir_strbuf_append(key, func->name.data, func->name.size);
  for (size_t i = 0; i < func->attrs.count; ++i) {
    weir_strbuf_printf(key, ";%s=", func->attrs.items[i].name);
    weir_attr_append_text(&func->attrs.items[i].value, key);
  }
}

// A function of the library; or, for a call by the name of the op SymbolicGradient, the gradient of
// the one that its attribute f names.
static weir_status_t* instantiate(weir_program_t* program, const weir_func_t* func,
                                  weir_function_body_t* out_body) {
  weir_function_library_t* library = program->graph->library;
  const weir_registry_t* registry = program->graph->registry;
  const weir_function_t* function = weir_function_find(library, func->name);
  if (function)
    return weir_function_instantiate(library, registry, function, func->attrs, out_body);
  const weir_attr_t* of = weir_attrs_find(func->attrs, "f");
  if (of && of->kind == WEIR_ATTR_FUNC && weir_view_is(func->name, "SymbolicGradient"))
    return weir_function_instantiate_gradient(library, registry, of->u.func, out_body);
  return WEIR_STATUS(NOT_FOUND, "Function '%.*s' is not defined", WEIR_VIEW_ARG(func->name));
}

static weir_status_t* build_plan(weir_program_t* program, const weir_func_t* func,
                                 weir_plan_t** out_plan) {
  weir_function_body_t body = {0};
  WEIR_TRY(instantiate(program, func, &body));
  weir_source_t source = {.graph = body.graph,
                          .targets = body.controls,
                          .target_count = body.control_count,
                          .arg_count = body.arg_count,
                          .ret_count = body.ret_count,
                          .is_function = true};
  return weir_program_compile(program, &source, out_plan);
}

static weir_status_t* add_plan_locked(weir_function_plans_t* self, weir_view_t key,
                                      weir_view_t name, weir_plan_t* plan,
                                      weir_function_handle_t* out_handle) {
  if (!WEIR_GROW(self->instances, self->capacity, self->count + 1)) return weir_out_of_memory();
  char* copy = weir_strndup(name.data, name.size);
  if (!copy) return weir_out_of_memory();
  weir_status_t* status = weir_map_put(&self->handles, key, (void*)(uintptr_t)(self->count + 1));
  if (status) {
    weir_free(copy);
    return status;
  }
  self->instances[self->count++] = (instance_t){.plan = plan, .name = copy};
  *out_handle = self->count;
  return NULL;
}

static weir_status_t* functions_instantiate(weir_functions_t* base, const weir_func_t* func,
                                            weir_function_handle_t* out_handle) {
  weir_function_plans_t* self = (weir_function_plans_t*)base;
  weir_strbuf_t key = {0};
  append_key(func, &key);
  weir_status_t* status = weir_strbuf_finish(&key);
  weir_plan_t* plan = NULL;
  // Building holds the lock: two steps that call the same function first at once must not build it
  // twice. Kernels do not instantiate in their init, so this does not recurse.
  weir_mutex_lock(&self->mu);
  if (!status) {
    *out_handle = (uintptr_t)weir_map_find(&self->handles, weir_strbuf_view(&key));
    if (!*out_handle) {
      status = build_plan(self->program, func, &plan);
      if (!status)
        status = add_plan_locked(self, weir_strbuf_view(&key), func->name, plan, out_handle);
      if (status) weir_plan_release(plan);
    }
  }
  weir_mutex_unlock(&self->mu);
  weir_strbuf_free(&key);
  return status;
}

static void functions_call(weir_functions_t* base, weir_kernel_ctx_t* ctx, weir_call_t* call,
                           weir_done_t done) {
  weir_function_plans_t* self = (weir_function_plans_t*)base;
  weir_mutex_lock(&self->mu);
  bool is_known = call->function > 0 && call->function <= self->count;
  instance_t instance = is_known ? self->instances[call->function - 1] : (instance_t){.plan = NULL};
  weir_mutex_unlock(&self->mu);
  weir_plan_t* plan = instance.plan;
  if (!plan) {
    weir_done_call(done, WEIR_STATUS(NOT_FOUND, "no function has handle %llu",
                                     (unsigned long long)call->function));
  } else if (plan->arg_count != call->arg_count || plan->ret_count != call->ret_count) {
    weir_done_call(
        done,
        WEIR_STATUS(INVALID_ARGUMENT,
                    "a function of %d arguments and %d results was called with %d and %d",
                    (int)plan->arg_count, (int)plan->ret_count, call->arg_count, call->ret_count));
  } else {
    weir_run_call(plan, instance.name, ctx, call->args, call->rets, done);
  }
}

static const weir_functions_vtable_t functions_vtable = {.instantiate = functions_instantiate,
                                                         .call = functions_call};

weir_status_t* weir_function_plans_create(weir_program_t* program,
                                          weir_function_plans_t** out_functions) {
  weir_function_plans_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  self->base.vtable = &functions_vtable;
  self->program = program;
  self->handles.owns_keys = true;
  weir_mutex_init(&self->mu);
  *out_functions = self;
  return NULL;
}

void weir_function_plans_destroy(weir_function_plans_t* self) {
  if (!self) return;
  for (size_t i = 0; i < self->count; ++i) {
    weir_plan_release(self->instances[i].plan);
    weir_free(self->instances[i].name);
  }
  weir_free(self->instances);
  weir_map_free(&self->handles);
  weir_mutex_destroy(&self->mu);
  weir_free(self);
}

weir_functions_t* weir_function_plans_base(weir_function_plans_t* self) { return &self->base; }
