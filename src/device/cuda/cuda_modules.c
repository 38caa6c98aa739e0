// cuda_modules.c — Modules by source, functions by name.
#include "device/cuda/cuda_modules.h"

#include "base/alloc.h"
#include "base/map.h"
#include "device/builds.h"
#include "device/cuda/cuda_unit.h"

typedef struct module_t {
  cuda_modules_t* all;
  char* source;
  cuda_unit_t* unit;           // on its way; NULL: loaded, or failed. Guarded by all->mu
  cu_module_t loaded;          // NULL: not yet. Guarded by all->mu
  cuda_function_t* functions;  // guarded by all->mu
} module_t;

struct cuda_function_t {
  weir_build_t build;  // first
  module_t* module;
  char* name;
  _Atomic(cu_function_t) handle;  // NULL: not yet
  cuda_function_t* next;
};

struct cuda_modules_t {
  cuda_core_t* core;
  weir_pool_t* pool;
  weir_mutex_t mu;
  weir_map_t by_source;  // module_t; guarded by mu
};

weir_status_t* weir_cuda_modules_create(cuda_core_t* core, weir_pool_t* pool,
                                        cuda_modules_t** out_modules) {
  cuda_modules_t* modules = weir_calloc(1, sizeof(*modules));
  if (!modules) return weir_out_of_memory();
  modules->core = weir_cuda_core_retain(core);
  modules->pool = pool;
  weir_mutex_init(&modules->mu);
  *out_modules = modules;
  return NULL;
}

static void destroy_function(cuda_function_t* function) {
  weir_free(function->name);
  weir_free(function);
}

static void destroy_module(module_t* module) {
  weir_cuda_unit_abandon(module->unit);
  if (module->loaded) module->all->core->driver->module_unload(module->loaded);
  while (module->functions) {
    cuda_function_t* function = module->functions;
    module->functions = function->next;
    destroy_function(function);
  }
  weir_free(module->source);
  weir_free(module);
}

void weir_cuda_modules_destroy(cuda_modules_t* modules) {
  if (!modules) return;
  weir_cuda_core_enter(modules->core);
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&modules->by_source, &i));)
    destroy_module(entry->value);
  weir_map_free(&modules->by_source);
  weir_mutex_destroy(&modules->mu);
  weir_cuda_core_release(modules->core);
  weir_free(modules);
}

// ---- asking ----

static weir_status_t* add_module_locked(cuda_modules_t* all, const char* source,
                                        module_t** out_module) WEIR_REQUIRES(all->mu) {
  module_t* module = weir_calloc(1, sizeof(*module));
  if (!module) return weir_out_of_memory();
  module->all = all;
  module->source = weir_strdup(source);
  weir_status_t* status = module->source
                              ? weir_map_put(&all->by_source, weir_view_of(module->source), module)
                              : weir_out_of_memory();
  if (status) destroy_module(module);
  else *out_module = module;
  return status;
}

static void assist_build(weir_build_t* build) {
  const module_t* module = ((cuda_function_t*)build)->module;
  weir_mutex_lock(&module->all->mu);
  cuda_unit_t* unit = module->unit ? weir_cuda_unit_retain(module->unit) : NULL;
  weir_mutex_unlock(&module->all->mu);
  if (unit) weir_cuda_unit_assist(unit);
  weir_cuda_unit_release(unit);
}

static weir_status_t* finish_build(weir_build_t* build) {
  cu_function_t handle = NULL;
  return weir_cuda_function_get((cuda_function_t*)build, &handle);
}

static weir_status_t* add_function_locked(module_t* module, const char* name,
                                          cuda_function_t** out_function)
    WEIR_REQUIRES(module->all->mu) {
  cuda_function_t* function = weir_calloc(1, sizeof(*function));
  char* copy = weir_strdup(name);
  if (!function || !copy) {
    weir_free(function);
    weir_free(copy);
    return weir_out_of_memory();
  }
  *function = (cuda_function_t){.build = {.assist = assist_build, .finish = finish_build},
                                .module = module,
                                .name = copy,
                                .next = module->functions};
  module->functions = function;
  *out_function = function;
  return NULL;
}

static weir_status_t* find_locked(cuda_modules_t* all, const char* source, const char* name,
                                  cuda_function_t** out_function) WEIR_REQUIRES(all->mu) {
  module_t* module = weir_map_find(&all->by_source, weir_view_of(source));
  if (!module) WEIR_TRY(add_module_locked(all, source, &module));
  cuda_function_t* function = module->functions;
  while (function && strcmp(function->name, name) != 0) function = function->next;
  if (!function) WEIR_TRY(add_function_locked(module, name, &function));
  *out_function = function;
  return NULL;
}

// The module's unit, retained; NULL: it is loaded. |is_new|: it is to be started.
static weir_status_t* unit_locked(module_t* module, const char* name, cuda_unit_t** out_unit,
                                  bool* is_new) WEIR_REQUIRES(module->all->mu) {
  *out_unit = NULL;
  *is_new = false;
  if (module->loaded) return NULL;
  if (!module->unit) {
    WEIR_TRY(weir_cuda_unit_create(name, module->source, module->all->core->architecture,
                                   &module->unit));
    *is_new = true;
  }
  *out_unit = weir_cuda_unit_retain(module->unit);
  return NULL;
}

weir_status_t* weir_cuda_modules_find(cuda_modules_t* all, const char* source, const char* name,
                                      cuda_function_t** out_function) {
  cuda_function_t* function = NULL;
  cuda_unit_t* unit = NULL;
  bool is_new = false;
  weir_mutex_lock(&all->mu);
  weir_status_t* status = find_locked(all, source, name, &function);
  if (!status) status = unit_locked(function->module, name, &unit, &is_new);
  weir_mutex_unlock(&all->mu);
  if (is_new && all->pool) weir_cuda_unit_start(unit, all->pool);
  weir_cuda_unit_release(unit);
  if (!status && !atomic_load(&function->handle)) status = weir_builds_add(&function->build);
  if (!status) *out_function = function;
  return status;
}

// ---- having ----

// It has done its work, or will never do it.
static void forget_locked(module_t* module, cuda_unit_t* unit) WEIR_REQUIRES(module->all->mu) {
  if (module->unit != unit) return;
  module->unit = NULL;
  weir_cuda_unit_release(unit);
}

static weir_status_t* load(module_t* module, const char* name, cu_module_t* out_module) {
  cuda_unit_t* unit = NULL;
  const char* code = NULL;
  bool is_new = false;
  weir_mutex_lock(&module->all->mu);
  weir_status_t* status = unit_locked(module, name, &unit, &is_new);
  weir_mutex_unlock(&module->all->mu);
  if (unit) status = weir_cuda_unit_finish(unit, &code);
  weir_mutex_lock(&module->all->mu);
  const cuda_driver_t* driver = module->all->core->driver;
  if (unit && !status && !module->loaded)
    status = weir_cuda_check(driver, driver->module_load(&module->loaded, code), name);
  if (unit) forget_locked(module, unit);
  *out_module = module->loaded;
  weir_mutex_unlock(&module->all->mu);
  weir_cuda_unit_release(unit);
  return status;
}

static weir_status_t* resolve(cuda_function_t* function, cu_function_t* out_function) {
  cuda_core_t* core = function->module->all->core;
  cu_module_t module = NULL;
  weir_cuda_core_enter(core);
  WEIR_TRY(load(function->module, function->name, &module));
  WEIR_TRY(weir_cuda_check(core->driver,
                           core->driver->module_function(out_function, module, function->name),
                           function->name));
  atomic_store(&function->handle, *out_function);
  return NULL;
}

weir_status_t* weir_cuda_function_get(cuda_function_t* function, cu_function_t* out_function) {
  // Acquire pairs with the store above: whoever sees the handle may launch it.
  *out_function = atomic_load_explicit(&function->handle, memory_order_acquire);
  return WEIR_LIKELY(*out_function) ? NULL : resolve(function, out_function);
}
