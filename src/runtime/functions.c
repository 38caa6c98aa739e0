// functions.c — Instantiating functions of the graph's library into plans, and calling them, within
// a step or as one.
#include "runtime/functions.h"

#include "graph/function.h"
#include "graph/function_gradient.h"
#include "runtime/loaded.h"
#include "runtime/program.h"
#include "wire/wire.h"

typedef struct instance_t {
  weir_plan_t* plan;  // owned
  char* name;         // of the function; owned
} instance_t;

struct weir_function_plans_t {
  weir_functions_t base;  // first
  weir_program_t* program;
  atomic_llong next_step_id;  // of steps that no kernel called
  weir_mutex_t mu;            // guards all below
  weir_map_t handles;         // name and attributes → handle, as a pointer-sized number
  instance_t* instances;      // by handle - 1
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

static weir_status_t* build_plan(weir_program_t* program, const weir_func_t* func, bool is_on_host,
                                 weir_plan_t** out_plan) {
  weir_function_body_t body = {0};
  WEIR_TRY(instantiate(program, func, &body));
  weir_source_t source = {.graph = body.graph,
                          .targets = body.controls,
                          .target_count = body.control_count,
                          .arg_count = body.arg_count,
                          .ret_count = body.ret_count,
                          .is_function = true,
                          .is_on_host = is_on_host};
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

static weir_status_t* find_or_build(weir_function_plans_t* self, const weir_func_t* func,
                                    bool is_on_host, weir_function_handle_t* out_handle) {
  weir_strbuf_t key = {0};
  if (is_on_host) weir_strbuf_puts(&key, "host:");
  append_key(func, &key);
  weir_status_t* status = weir_strbuf_finish(&key);
  weir_plan_t* plan = NULL;
  // Building holds the lock: two steps that call the same function first at once must not build it
  // twice. Kernels do not instantiate in their init, so this does not recurse.
  weir_mutex_lock(&self->mu);
  if (!status) {
    *out_handle = (uintptr_t)weir_map_find(&self->handles, weir_strbuf_view(&key));
    if (!*out_handle) {
      status = build_plan(self->program, func, is_on_host, &plan);
      if (!status)
        status = add_plan_locked(self, weir_strbuf_view(&key), func->name, plan, out_handle);
      if (status) weir_plan_release(plan);
    }
  }
  weir_mutex_unlock(&self->mu);
  weir_strbuf_free(&key);
  return status;
}

static weir_status_t* functions_instantiate(weir_functions_t* base, const weir_func_t* func,
                                            weir_function_handle_t* out_handle) {
  return find_or_build((weir_function_plans_t*)base, func, false, out_handle);
}

static weir_status_t* functions_instantiate_on_host(weir_functions_t* base, const weir_func_t* func,
                                                    weir_function_handle_t* out_handle) {
  return find_or_build((weir_function_plans_t*)base, func, true, out_handle);
}

// The function that |call| is of, which takes and gives as many tensors as it says.
static weir_status_t* find_instance(weir_function_plans_t* self, const weir_call_t* call,
                                    instance_t* out_instance) {
  weir_mutex_lock(&self->mu);
  bool is_known = call->function > 0 && call->function <= self->count;
  if (is_known) *out_instance = self->instances[call->function - 1];
  weir_mutex_unlock(&self->mu);
  if (!is_known)
    return WEIR_STATUS(NOT_FOUND, "no function has handle %llu",
                       (unsigned long long)call->function);
  const weir_plan_t* plan = out_instance->plan;
  if (plan->arg_count == call->arg_count && plan->ret_count == call->ret_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "a function of %d arguments and %d results was called with %d and %d",
                     (int)plan->arg_count, (int)plan->ret_count, call->arg_count, call->ret_count);
}

static int functions_result_count(weir_functions_t* base, weir_function_handle_t handle) {
  weir_function_plans_t* self = (weir_function_plans_t*)base;
  weir_mutex_lock(&self->mu);
  bool is_known = handle > 0 && handle <= self->count;
  int count = is_known ? (int)self->instances[handle - 1].plan->ret_count : -1;
  weir_mutex_unlock(&self->mu);
  return count;
}

static void functions_call(weir_functions_t* base, weir_kernel_ctx_t* ctx, weir_call_t* call,
                           weir_done_t done) {
  instance_t instance;
  weir_status_t* status = find_instance((weir_function_plans_t*)base, call, &instance);
  if (status) weir_done_call(done, status);
  else weir_run_call(instance.plan, instance.name, ctx, call->args, call->rets, done);
}

static void functions_start(weir_functions_t* base, weir_cancel_t* cancel, weir_call_t* call,
                            weir_done_t done) {
  weir_function_plans_t* self = (weir_function_plans_t*)base;
  instance_t instance;
  weir_status_t* status = find_instance(self, call, &instance);
  if (status) {
    weir_done_call(done, status);
    return;
  }
  weir_run_params_t params = weir_program_step(self->program, instance.plan);
  params.args = call->args;
  params.rets = call->rets;
  params.cancel = cancel;
  // Counted down, so that no session's step has the same.
  params.step_id = atomic_fetch_sub_explicit(&self->next_step_id, 1, memory_order_relaxed);
  weir_run_start(&params, done);
}

static weir_status_t* visit_node(const weir_registry_t* registry, weir_view_t node,
                                 weir_function_visit_fn_t fn, void* arg) {
  enum { NODE_OP = 2 };
  weir_view_t name = {0};
  weir_wire_reader_t reader = weir_wire_reader(node);
  while (weir_wire_next(&reader)) {
    if (reader.field == NODE_OP && reader.type == WEIR_WIRE_BYTES) name = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "NodeDef"));
  return fn(arg, weir_registry_find(registry, name), node);
}

static weir_status_t* functions_visit(weir_functions_t* base, weir_view_t name,
                                      weir_function_visit_fn_t fn, void* arg) {
  enum { FUNCTION_NODE = 3 };
  const weir_graph_t* graph = ((weir_function_plans_t*)base)->program->graph;
  const weir_function_t* function = weir_function_find(graph->library, name);
  if (!function)
    return WEIR_STATUS(NOT_FOUND, "Function '%.*s' is not defined", WEIR_VIEW_ARG(name));
  weir_wire_reader_t reader = weir_wire_reader(function->def);
  while (weir_wire_next(&reader)) {
    if (reader.field != FUNCTION_NODE || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(visit_node(graph->registry, reader.bytes, fn, arg));
  }
  return weir_wire_check(&reader, "FunctionDef");
}

typedef struct needed_t {
  weir_function_text_fn_t fn;
  void* arg;
} needed_t;

static weir_status_t* hand_over(void* arg, const weir_function_t* function) {
  const needed_t* needed = arg;
  weir_function_text_t text = {.name = weir_view_of(function->name), .def = function->def};
  if (function->gradient) text.gradient = weir_view_of(function->gradient);
  return needed->fn(needed->arg, &text);
}

static weir_status_t* functions_visit_needed(weir_functions_t* base, weir_view_t name,
                                             weir_function_text_fn_t fn, void* arg) {
  needed_t needed = {.fn = fn, .arg = arg};
  const weir_graph_t* graph = ((weir_function_plans_t*)base)->program->graph;
  return weir_function_visit_needed(graph->library, name, hand_over, &needed);
}

// ---- graphs that kernels bring ----

static weir_status_t* functions_run_graph(weir_functions_t* base, weir_cancel_t* cancel,
                                          weir_view_t graph_def, weir_view_t fetch,
                                          weir_tensor_t** out_tensor) {
  weir_function_plans_t* self = (weir_function_plans_t*)base;
  int64_t id = atomic_fetch_sub_explicit(&self->next_step_id, 1, memory_order_relaxed);
  weir_loaded_t loaded = {.graph_def = graph_def, .fetch = fetch, .cancel = cancel, .step_id = id};
  return weir_loaded_run(self->program, &loaded, out_tensor);
}

static weir_status_t* functions_clone_with(weir_functions_t* base, weir_view_t library,
                                           weir_functions_t** out_functions) {
  weir_program_t* clone = NULL;
  WEIR_TRY(weir_loaded_program(((weir_function_plans_t*)base)->program, library, &clone));
  *out_functions = weir_function_plans_base(clone->functions);
  return NULL;
}

static weir_status_t* functions_clone(weir_functions_t* base, weir_functions_t** out_functions) {
  weir_program_t* clone = NULL;
  WEIR_TRY(weir_program_clone(((weir_function_plans_t*)base)->program, &clone));
  *out_functions = weir_function_plans_base(clone->functions);
  return NULL;
}

static void functions_destroy(weir_functions_t* base) {
  weir_program_destroy(((weir_function_plans_t*)base)->program);
}

static weir_view_t functions_definition(weir_functions_t* base, weir_view_t name) {
  weir_function_library_t* library = ((weir_function_plans_t*)base)->program->graph->library;
  const weir_function_t* function = weir_function_find(library, name);
  return function ? function->def : weir_view("", 0);
}

static const weir_functions_vtable_t functions_vtable = {
    .instantiate = functions_instantiate,
    .instantiate_on_host = functions_instantiate_on_host,
    .definition = functions_definition,
    .result_count = functions_result_count,
    .call = functions_call,
    .start = functions_start,
    .visit = functions_visit,
    .visit_needed = functions_visit_needed,
    .run_graph = functions_run_graph,
    .clone = functions_clone,
    .clone_with = functions_clone_with,
    .destroy = functions_destroy};

weir_status_t* weir_function_plans_create(weir_program_t* program,
                                          weir_function_plans_t** out_functions) {
  weir_function_plans_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  self->base.vtable = &functions_vtable;
  self->program = program;
  self->handles.owns_keys = true;
  atomic_init(&self->next_step_id, -1);
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

void weir_function_plans_forget(weir_function_plans_t* self) {
  weir_mutex_lock(&self->mu);
  weir_map_free(&self->handles);
  weir_mutex_unlock(&self->mu);
}

weir_functions_t* weir_function_plans_base(weir_function_plans_t* self) { return &self->base; }
