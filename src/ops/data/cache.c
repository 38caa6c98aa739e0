// cache.c — CacheDataset, V2, AnonymousMemoryCache, DummyMemoryCache, DeleteMemoryCache: elements
// kept by the first walk that sees the end, for all that begin after it; in files see cache_file.c.
#include "ops/data/cache_file.h"
#include "ops/data/resources.h"
#include "ops/data/state.h"

// Elements, complete or none.
typedef struct cache_resource_t {
  weir_resource_t base;
  weir_mutex_t mu;
  bool is_complete;        // guarded by mu
  weir_tensor_t*** items;  // guarded by mu until complete, immutable then
  size_t count;
  int width;
} cache_resource_t;

static void cache_clear(weir_tensor_t*** items, size_t count, int width) {
  for (size_t i = 0; i < count; ++i) weir_element_free(items[i], width);
  weir_free(items);
}

static void cache_destroy(weir_resource_t* resource) {
  cache_resource_t* self = (cache_resource_t*)resource;
  cache_clear(self->items, self->count, self->width);
  weir_mutex_destroy(&self->mu);
  weir_free(self);
}

static const weir_resource_type_t cache_type = {.name = "tensorflow::data::MemoryCacheManager",
                                                .destroy = cache_destroy};

static weir_status_t* cache_create(void* arg, weir_resource_t** out_resource) {
  (void)arg;
  cache_resource_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  weir_resource_init(&self->base, &cache_type);
  weir_mutex_init(&self->mu);
  *out_resource = &self->base;
  return NULL;
}

static bool is_complete(cache_resource_t* self) {
  weir_mutex_lock(&self->mu);
  bool is_it = self->is_complete;
  weir_mutex_unlock(&self->mu);
  return is_it;
}

// ---- the dataset ----

typedef struct cache_t {
  weir_data_t base;
  cache_resource_t* cache;  // retained
} cache_t;

typedef struct cache_iterator_t {
  weir_iterator_t base;
  bool reads;
  size_t next;             // to read
  weir_tensor_t*** items;  // written so far
  size_t count;
  size_t capacity;
} cache_iterator_t;

static weir_status_t* find_cache(weir_kernel_ctx_t* ctx, weir_resource_t** out_cache) {
  if (ctx->input_count > 2) {
    const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 2));
    if (handle && handle->object) return weir_kernel_resource(ctx, 2, &cache_type, out_cache);
  }
  return cache_create(NULL, out_cache);
}

static weir_status_t* cache_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  weir_view_t filename;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  WEIR_TRY(weir_dataset_string(ctx, 1, "filename", &filename));
  weir_resource_t* cache = NULL;
  WEIR_TRY(find_cache(ctx, &cache));
  ((cache_t*)dataset)->cache = (cache_resource_t*)cache;
  return NULL;
}

static void cache_deinit(weir_data_t* dataset) {
  cache_t* self = (cache_t*)dataset;
  if (self->cache) weir_resource_release(&self->cache->base);
}

static weir_status_t* cache_start(weir_iterator_t* iterator) {
  cache_iterator_t* self = (cache_iterator_t*)iterator;
  cache_resource_t* cache = ((cache_t*)iterator->dataset)->cache;
  self->reads = is_complete(cache);
  if (self->reads && cache->width != iterator->dataset->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "the cache holds elements of %d components, not %d",
                       cache->width, iterator->dataset->count);
  return self->reads ? NULL : weir_iterator_open(iterator, 0);
}

// The first to see the end fills the cache; what others gathered is dropped.
static void complete(cache_iterator_t* self) {
  cache_resource_t* cache = ((cache_t*)self->base.dataset)->cache;
  weir_mutex_lock(&cache->mu);
  if (!cache->is_complete) {
    cache->is_complete = true;
    cache->items = self->items;
    cache->count = self->count;
    cache->width = self->base.dataset->count;
    self->items = NULL;
    self->count = 0;
  }
  weir_mutex_unlock(&cache->mu);
}

static weir_status_t* keep(cache_iterator_t* self, weir_tensor_t* const* element) {
  int width = self->base.dataset->count;
  weir_tensor_t** copy = weir_element_create(width);
  if (!copy || !WEIR_GROW(self->items, self->capacity, self->count + 1)) {
    weir_free(copy);
    return weir_out_of_memory();
  }
  weir_element_share(element, copy, width);
  self->items[self->count++] = copy;
  return NULL;
}

static weir_status_t* cache_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  cache_iterator_t* self = (cache_iterator_t*)iterator;
  const cache_resource_t* cache = ((const cache_t*)iterator->dataset)->cache;
  if (self->reads) {
    *out_is_end = self->next >= cache->count;
    if (!*out_is_end) weir_element_share(cache->items[self->next++], out, iterator->dataset->count);
    return NULL;
  }
  WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
  if (!*out_is_end) return keep(self, out);
  complete(self);
  return NULL;
}

static void cache_stop(weir_iterator_t* iterator) {
  cache_iterator_t* self = (cache_iterator_t*)iterator;
  cache_clear(self->items, self->count, iterator->dataset->count);
}

// What the first walk over it gives. Where that ends for sure, it fills the cache.
static weir_status_t* walk_to(weir_iterator_t* iterator, int64_t index, weir_tensor_t** out) {
  int width = iterator->dataset->count;
  weir_cancel_t* cancel = iterator->walk->cancel;
  bool is_end = false;
  for (int64_t i = 0; i <= index; ++i) {
    weir_element_clear(out, width);
    WEIR_TRY(weir_iterator_next(iterator, cancel, out, &is_end));
    if (is_end)
      return WEIR_STATUS(OUT_OF_RANGE, "Index out of range [0, %lld):%lld", (long long)i,
                         (long long)index);
  }
  if (weir_dataset_cardinality(iterator->dataset) < 0) return NULL;
  weir_tensor_t** scratch = weir_element_create(width);
  weir_status_t* status = scratch ? NULL : weir_out_of_memory();
  while (!status && !is_end) {
    status = weir_iterator_next(iterator, cancel, scratch, &is_end);
    if (!status) weir_element_clear(scratch, width);
  }
  weir_element_free(scratch, width);
  weir_status_destroy(status);  // it is another element's
  return NULL;
}

static weir_status_t* cache_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                weir_tensor_t** out) {
  cache_resource_t* cache = ((cache_t*)dataset)->cache;
  if (index >= 0 && is_complete(cache) && cache->width == dataset->count &&
      (uint64_t)index < cache->count) {
    weir_element_share(cache->items[index], out, dataset->count);
    return NULL;
  }
  if (index < 0)
    return WEIR_STATUS(OUT_OF_RANGE, "Index out of range [0, inf):%lld", (long long)index);
  weir_iterator_t* iterator = NULL;
  WEIR_TRY(weir_iterator_create(dataset, walk, &iterator));
  weir_status_t* status = walk_to(iterator, index, out);
  weir_iterator_destroy(iterator);
  return status;
}

// What is in the cache, where it is complete, goes with the state: the next process has none.
static void cache_state(weir_iterator_t* iterator, weir_state_t* state) {
  cache_iterator_t* self = (cache_iterator_t*)iterator;
  cache_resource_t* cache = ((cache_t*)iterator->dataset)->cache;
  weir_element_types_t components = weir_element_types_of(iterator->dataset);
  weir_state_bool(state, "reads", &self->reads);
  weir_state_size(state, "next", &self->next, SIZE_MAX);
  if (self->reads && !state->is_restoring)
    weir_state_elements(state, "items", components, &cache->items, &cache->count, NULL);
  else weir_state_elements(state, "items", components, &self->items, &self->count, &self->capacity);
  if (weir_state_is_good(state) && state->is_restoring && self->reads) complete(self);
  weir_state_input(iterator, state, 0);
  weir_state_require(state, self->reads || iterator->inputs[0]);
  if (self->reads) weir_state_require(state, cache->width == components.count);
}

static const weir_iterator_vtable_t cache_iterator = {.size = sizeof(cache_iterator_t),
                                                      .start = cache_start,
                                                      .next = cache_next,
                                                      .stop = cache_stop,
                                                      .state = cache_state};
static const weir_dataset_vtable_t cache_dataset = {.name = "Cache",
                                                    .size = sizeof(cache_t),
                                                    .init = cache_init,
                                                    .deinit = cache_deinit,
                                                    .get = cache_get,
                                                    .iterator = &cache_iterator};

static weir_status_t* cache_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* name = weir_kernel_input(ctx, 1);
  bool has_files = name->rank == 0 && weir_string_view(name->data).size > 0;
  return weir_dataset_output(ctx, has_files ? &weir_file_cache_dataset : &cache_dataset);
}

// ---- caches by handle ----

static weir_status_t* anonymous_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* cache = NULL;
  WEIR_TRY(cache_create(NULL, &cache));
  return weir_data_output_handle(ctx, cache, "AnonymousMemoryCache",
                                 "N10tensorflow4data18MemoryCacheManagerE");
}

static weir_status_t* dummy_cpu(weir_kernel_ctx_t* ctx) {
  return weir_data_output_handle(ctx, NULL, "DummyMemoryCache",
                                 "N10tensorflow4data21DummyMemoryCacheOpE");
}

const weir_op_module_t weir_ops_data_cache = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CacheDataset",
         .attrs = WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; filename: string",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The same elements, made once and kept in memory or a file",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(cache_cpu)},
        {.name = "CacheDatasetV2",
         .attrs = WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; filename: string; cache: resource",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The same elements, made once and kept in memory or a file",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(cache_cpu)},
        {.name = "AnonymousMemoryCache",
         .outputs = "handle: resource; deleter: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "An empty cache that lives as long as its handle",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = anonymous_cpu)},
        {.name = "DummyMemoryCache",
         .outputs = "handle: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A handle for no cache: the dataset has one of its own",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = dummy_cpu)},
        {.name = "DeleteMemoryCache",
         .inputs = "handle: resource; deleter: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Nothing: the cache goes with its handle",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = weir_data_delete_handle)},
        {0}}};
