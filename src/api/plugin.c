// plugin.c — Loading plug-ins: a shared object's ops become ops of the process's registry.
#include "weir/plugin.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/library.h"
#include "base/thread.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/builtin_ops.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;  // held while one is registered

// ---- the internal form of a plug-in's definitions ----

// Everything made from one plug-in; never freed once it is registered.
typedef struct converted_t {
  weir_arena_t arena;
  weir_op_module_t module;
} converted_t;

typedef struct loaded_t {
  const weir_plugin_t* plugin;
  converted_t* converted;
} loaded_t;

static loaded_t* loaded;        // guarded by mu; kept to the end of the process
static size_t loaded_count;     // guarded by mu
static size_t loaded_capacity;  // guarded by mu

static weir_op_flags_t flags_of(unsigned flags) {
  weir_op_flags_t result = 0;
  if (flags & WEIR_PLUGIN_STATEFUL) result |= WEIR_OP_STATEFUL;
  if (flags & WEIR_PLUGIN_COMMUTATIVE) result |= WEIR_OP_COMMUTATIVE;
  if (flags & WEIR_PLUGIN_NO_GRADIENT) result |= WEIR_OP_NO_GRADIENT;
  return result;
}

// ---- kernels of a plug-in, which are not trusted to set what they should ----

static weir_status_t* compute(weir_kernel_ctx_t* ctx) {
  const weir_plugin_kernel_t* row = ctx->kernel->foreign;
  WEIR_TRY(row->compute(ctx));
  return weir_kernel_check_outputs(ctx);
}

typedef struct waiting_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
} waiting_t;

static void computed(void* arg, weir_status_t* take_status) {
  waiting_t* waiting = arg;
  weir_done_t done = waiting->done;
  weir_status_t* status = take_status ? take_status : weir_kernel_check_outputs(waiting->ctx);
  weir_free(waiting);
  weir_done_call(done, status);
}

static void compute_async(weir_kernel_ctx_t* ctx, weir_done_t done) {
  waiting_t* waiting = weir_malloc(sizeof(*waiting));
  if (!waiting) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  *waiting = (waiting_t){ctx, done};
  const weir_plugin_kernel_t* row = ctx->kernel->foreign;
  row->compute_async(ctx, (weir_done_t){computed, waiting});
}

static weir_status_t* convert_kernels(const weir_plugin_kernel_t* rows, weir_arena_t* arena,
                                      const weir_kernel_def_t** out_kernels) {
  size_t count = 0;
  while (rows && rows[count].device) ++count;
  weir_kernel_def_t* kernels = weir_arena_array(arena, count + 1, sizeof(*kernels));
  if (!kernels) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].state_size > UINT32_MAX)
      return WEIR_STATUS(INVALID_ARGUMENT, "a kernel's state has %zu bytes, more than %u",
                         rows[i].state_size, UINT32_MAX);
    kernels[i] = (weir_kernel_def_t){.device = rows[i].device,
                                     .types = rows[i].types,
                                     .compute = rows[i].compute ? compute : NULL,
                                     .compute_async = rows[i].compute_async ? compute_async : NULL,
                                     .state_size = (uint32_t)rows[i].state_size,
                                     .init = rows[i].init,
                                     .deinit = rows[i].deinit,
                                     .host_inputs = rows[i].host_inputs,
                                     .host_outputs = rows[i].host_outputs,
                                     .foreign = &rows[i]};
  }
  kernels[count] = (weir_kernel_def_t){.device = NULL};
  *out_kernels = kernels;
  return NULL;
}

static weir_status_t* convert(const weir_plugin_t* plugin, converted_t* out) {
  size_t count = 0;
  while (plugin->ops && plugin->ops[count].name) ++count;
  if (!count) return WEIR_STATUS(INVALID_ARGUMENT, "it defines no op");
  weir_op_def_t* ops = weir_arena_array(&out->arena, count + 1, sizeof(*ops));
  if (!ops) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    const weir_plugin_op_t* op = &plugin->ops[i];
    ops[i] =
        (weir_op_def_t){.name = op->name,
                        .attrs = op->attrs,
                        .inputs = op->inputs,
                        .outputs = op->outputs,
                        .summary = op->summary,
                        .flags = flags_of(op->flags),
                        .infer_shape = op->infer_shape ? op->infer_shape : weir_shape_fn_unknown,
                        .build_grad = op->build_grad};
    WEIR_TRY(convert_kernels(op->kernels, &out->arena, &ops[i].kernels));
  }
  ops[count] = (weir_op_def_t){.name = NULL};
  out->module = (weir_op_module_t){.file = plugin->name ? plugin->name : "plug-in", .ops = ops};
  return NULL;
}

// ---- registering ----

static weir_status_t* register_new(const weir_plugin_t* plugin) {
  if (plugin->abi != WEIR_PLUGIN_ABI) {
    return WEIR_STATUS(FAILED_PRECONDITION, "it was made for plug-in ABI %d, this is %d",
                       plugin->abi, WEIR_PLUGIN_ABI);
  }
  if (!WEIR_GROW(loaded, loaded_capacity, loaded_count + 1)) return weir_out_of_memory();
  converted_t* converted = weir_calloc(1, sizeof(*converted));
  if (!converted) return weir_out_of_memory();
  weir_status_t* status = convert(plugin, converted);
  if (!status) {
    const weir_op_module_t* const modules[] = {&converted->module, NULL};
    status = weir_registry_builtin_add(modules);
  }
  if (!status) {
    loaded[loaded_count++] = (loaded_t){.plugin = plugin, .converted = converted};
    return NULL;  // the registry points into |converted| from now on
  }
  weir_arena_free(&converted->arena);
  weir_free(converted);
  return status;
}

weir_status_t* weir_plugin_register(const weir_plugin_t* plugin) {
  WEIR_REQUIRE_ARG(plugin);
  pthread_mutex_lock(&mu);
  bool is_loaded = false;
  for (size_t i = 0; i < loaded_count && !is_loaded; ++i) is_loaded = loaded[i].plugin == plugin;
  weir_status_t* status = is_loaded ? NULL : register_new(plugin);
  pthread_mutex_unlock(&mu);
  return status;
}

// A name without a '/' is a file here, not one that the system shall look for.
static weir_status_t* open_object(const char* path, void** out_object) {
  char* here = NULL;
  if (!strchr(path, '/')) {
    here = weir_alloc_array(strlen(path) + 3, 1);
    if (!here) return weir_out_of_memory();
    snprintf(here, strlen(path) + 3, "./%s", path);
  }
  *out_object = dlopen(here ? here : path, RTLD_NOW | RTLD_LOCAL);
  weir_free(here);
  if (*out_object) return NULL;
  const char* reason = dlerror();
  return WEIR_STATUS(NOT_FOUND, "plug-in '%s' cannot be opened: %s", path,
                     reason ? reason : "no reason given");
}

weir_status_t* weir_plugin_load(const char* path) {
  WEIR_REQUIRE_ARG(path);
  typedef const weir_plugin_t* (*modules_fn_t)(void);
  void* object = NULL;
  WEIR_TRY(open_object(path, &object));
  modules_fn_t modules = NULL;
  const bool is_found = weir_library_find(object, "weir_plugin_modules", &modules);
  const weir_plugin_t* plugin = is_found ? modules() : NULL;
  weir_status_t* status =
      plugin ? weir_plugin_register(plugin)
             : WEIR_STATUS(NOT_FOUND, "it exports no weir_plugin_modules() or that gives nothing");
  if (!status) return NULL;  // the registry points into the object: it stays open
  dlclose(object);
  return weir_status_prefix(status, "plug-in '%s': ", path);
}
