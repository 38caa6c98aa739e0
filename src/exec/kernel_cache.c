// kernel_cache.c — State of stateful kernels, by node name.
#include "exec/kernel_cache.h"

typedef struct entry_t {
  const weir_kernel_def_t* kernel;
  max_align_t state[];
} entry_t;

void weir_kernel_cache_init(weir_kernel_cache_t* cache) {
  *cache = (weir_kernel_cache_t){.entries = {.owns_keys = true}};
  weir_mutex_init(&cache->mu);
}

static void destroy_entry(entry_t* entry) {
  if (entry->kernel->deinit) entry->kernel->deinit(entry->state);
  weir_free(entry);
}

void weir_kernel_cache_free(weir_kernel_cache_t* cache) {
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&cache->entries, &i));) destroy_entry(entry->value);
  weir_map_free(&cache->entries);
  weir_mutex_destroy(&cache->mu);
}

static weir_status_t* get_locked(weir_kernel_cache_t* cache, const weir_kernel_init_t* init,
                                 const weir_kernel_def_t* kernel, void** out_state) {
  weir_view_t name = weir_view_of(init->node->name);
  entry_t* entry = weir_map_find(&cache->entries, name);
  if (!entry) {
    entry = weir_calloc(1, sizeof(*entry) + kernel->state_size);
    if (!entry) return weir_out_of_memory();
    entry->kernel = kernel;
    weir_status_t* status = kernel->init ? kernel->init(init, entry->state) : NULL;
    if (!status) status = weir_map_put(&cache->entries, name, entry);
    if (status) {
      destroy_entry(entry);
      return status;
    }
  }
  // A node keeps its types and its device; but graphs also come from other machines.
  if (entry->kernel != kernel) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "there was another node '%s', of another op or other types",
                       init->node->name);
  }
  *out_state = entry->state;
  return NULL;
}

weir_status_t* weir_kernel_cache_get(weir_kernel_cache_t* cache, const weir_kernel_init_t* init,
                                     const weir_kernel_def_t* kernel, void** out_state) {
  weir_mutex_lock(&cache->mu);
  weir_status_t* status = get_locked(cache, init, kernel, out_state);
  weir_mutex_unlock(&cache->mu);
  return status;
}
