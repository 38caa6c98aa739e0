// tight_memory.c — The process's memory, counted: what would go over the limit is refused.
//
// Bytes are counted as they are asked for, without alignment, so that a test can say beforehand
// what fits.
#include "tight_memory.h"

typedef struct tight_memory_t {
  device_memory_t base;  // first
  char* name;
  size_t limit;
  weir_mutex_t mu;
  size_t in_use;  // bytes; guarded by mu, as |peak|
  size_t peak;
} tight_memory_t;

static void destroy(device_memory_t* base) {
  tight_memory_t* memory = (tight_memory_t*)base;
  weir_mutex_destroy(&memory->mu);
  weir_free(memory->name);
  weir_free(memory);
}

// ---- blocks ----

static void* tight_alloc(weir_allocator_t* self, size_t size, size_t alignment) {
  tight_memory_t* memory = (tight_memory_t*)self;
  void* block = NULL;
  weir_mutex_lock(&memory->mu);
  if (size <= memory->limit - memory->in_use) block = weir_aligned_malloc(size, alignment);
  if (block) memory->in_use += size;
  memory->peak = WEIR_MAX(memory->peak, memory->in_use);
  weir_mutex_unlock(&memory->mu);
  return weir_device_memory_give(&memory->base, block, size);
}

static void tight_free(weir_allocator_t* self, void* pointer, size_t size) {
  tight_memory_t* memory = (tight_memory_t*)self;
  weir_free(pointer);
  weir_mutex_lock(&memory->mu);
  memory->in_use -= size;
  weir_mutex_unlock(&memory->mu);
  weir_device_memory_take(&memory->base, size);
}

static void tight_get_use(weir_allocator_t* self, weir_allocator_use_t* out_use) {
  tight_memory_t* memory = (tight_memory_t*)self;
  weir_mutex_lock(&memory->mu);
  *out_use = (weir_allocator_use_t){.name = memory->name,
                                    .limit = (int64_t)memory->limit,
                                    .in_use = (int64_t)memory->in_use,
                                    .peak = (int64_t)memory->peak};
  weir_mutex_unlock(&memory->mu);
}

static const weir_allocator_vtable_t tight_vtable = {
    .alloc = tight_alloc, .free = tight_free, .get_use = tight_get_use};

// ---- the whole ----

weir_status_t* weir_tight_memory_create(struct weir_device_t* device, const char* name,
                                        size_t limit, device_memory_t** out_memory) {
  tight_memory_t* memory = weir_calloc(1, sizeof(*memory));
  if (!memory) return weir_out_of_memory();
  memory->name = weir_strdup(name);
  if (!memory->name) {
    weir_free(memory);
    return weir_out_of_memory();
  }
  memory->limit = limit;
  weir_mutex_init(&memory->mu);
  weir_device_memory_init(&memory->base, &tight_vtable, device, destroy);
  *out_memory = &memory->base;
  return NULL;
}
