// runtime.c — Making and ending a runtime.
#include "runtime/runtime.h"

#include "ops/collective/hub.h"

static void destroy(weir_runtime_t* runtime) {
  if (runtime->owns_resources) weir_resources_destroy(runtime->resources);
  weir_hub_destroy(runtime->hub);
  weir_devices_release(runtime->devices, runtime->device_count);
  if (runtime->owns_pool) weir_pool_destroy(runtime->pool);
  weir_free(runtime);
}

static weir_status_t* init(weir_runtime_t* runtime, const weir_runtime_options_t* options) {
  runtime->pool = options->pool;
  runtime->owns_pool = !options->pool;
  if (!options->pool) WEIR_TRY(weir_pool_create(options->threads, &runtime->pool));
  WEIR_TRY(weir_hub_create(runtime->pool, &runtime->hub));
  runtime->resources = options->resources;
  runtime->owns_resources = !options->resources;
  if (!options->resources) WEIR_TRY(weir_resources_create(options->container, &runtime->resources));
  WEIR_TRY(weir_devices_create(options->devices, options->task, runtime->pool, &runtime->devices,
                               &runtime->device_count));
  return weir_resources_reserve(runtime->resources, runtime->device_count);
}

weir_status_t* weir_runtime_create(const weir_runtime_options_t* options,
                                   weir_runtime_t** out_runtime) {
  weir_runtime_t* runtime = weir_calloc(1, sizeof(*runtime));
  if (!runtime) return weir_out_of_memory();
  weir_ref_init(&runtime->ref);
  weir_status_t* status = init(runtime, options);
  if (status) destroy(runtime);
  else *out_runtime = runtime;
  return status;
}

weir_runtime_t* weir_runtime_retain(weir_runtime_t* runtime) {
  weir_ref_inc(&runtime->ref, 1);
  return runtime;
}

void weir_runtime_release(weir_runtime_t* runtime) {
  if (runtime && weir_ref_dec(&runtime->ref)) destroy(runtime);
}

const char* weir_device_short_name(const char* name) {
  const char* at = strstr(name, "/device:");
  return at ? at + strlen("/device:") : name;
}

int64_t weir_runtime_device_peak_bytes(const weir_runtime_t* runtime) {
  int64_t sum = 0;
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_allocator_t* memory = weir_device_allocator(runtime->devices[i], WEIR_MEMORY_DEVICE);
    weir_allocator_use_t use;
    if (weir_allocator_is_host(memory) || !memory->vtable->get_use) continue;
    memory->vtable->get_use(memory, &use);
    sum += (int64_t)use.peak;
  }
  return sum;
}

double weir_runtime_device_busy(const weir_runtime_t* runtime) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_device_t* device = runtime->devices[i];
    double busy = device->vtable->busy ? device->vtable->busy(device) : -1;
    if (busy < 0) continue;
    sum += busy;
    ++count;
  }
  return count ? sum / count : -1;
}

int weir_runtime_find(const weir_runtime_t* runtime, const weir_device_name_t* name) {
  weir_device_name_t wanted = *name, have;
  wanted.job[0] = 0;
  wanted.replica = wanted.task = -1;
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_status_t* status = weir_device_name_parse(weir_view_of(runtime->devices[i]->name), &have);
    bool is_found = !status && weir_device_name_matches(&wanted, &have);
    weir_status_destroy(status);
    if (is_found) return i;
  }
  return -1;
}
