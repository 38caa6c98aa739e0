// tight_memory.c — The process's memory, counted: what would go over the limit is refused.
//
// Bytes are counted as they are asked for, without alignment, so that a test can say beforehand
// what fits.
#include "tight_memory.h"

#include "base/thread.h"

struct tight_memory_t {
  weir_allocator_t allocator;  // first
  char* name;
  size_t limit;
  weir_mutex_t mu;   // guards all below
  size_t in_use;     // bytes
  size_t live;       // blocks
  bool is_released;  // only live blocks hold it
};

static void destroy(tight_memory_t* memory) {
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
  if (block) {
    memory->in_use += size;
    ++memory->live;
  }
  weir_mutex_unlock(&memory->mu);
  return block;
}

static void tight_free(weir_allocator_t* self, void* pointer, size_t size) {
  tight_memory_t* memory = (tight_memory_t*)self;
  weir_free(pointer);
  weir_mutex_lock(&memory->mu);
  memory->in_use -= size;
  bool is_last = --memory->live == 0 && memory->is_released;
  weir_mutex_unlock(&memory->mu);
  if (is_last) destroy(memory);
}

static void tight_get_use(weir_allocator_t* self, weir_allocator_use_t* out_use) {
  tight_memory_t* memory = (tight_memory_t*)self;
  weir_mutex_lock(&memory->mu);
  *out_use = (weir_allocator_use_t){
      .name = memory->name, .limit = (int64_t)memory->limit, .in_use = (int64_t)memory->in_use};
  weir_mutex_unlock(&memory->mu);
}

static const weir_allocator_vtable_t tight_vtable = {
    .alloc = tight_alloc, .free = tight_free, .get_use = tight_get_use};

// ---- the whole ----

weir_status_t* weir_tight_memory_create(const weir_space_t* space, const char* name, size_t limit,
                                        tight_memory_t** out_memory) {
  tight_memory_t* memory = weir_calloc(1, sizeof(*memory));
  if (!memory) return weir_out_of_memory();
  memory->name = weir_strdup(name);
  if (!memory->name) {
    weir_free(memory);
    return weir_out_of_memory();
  }
  memory->allocator = (weir_allocator_t){.vtable = &tight_vtable, .space = space};
  memory->limit = limit;
  weir_mutex_init(&memory->mu);
  *out_memory = memory;
  return NULL;
}

void weir_tight_memory_release(tight_memory_t* memory) {
  if (!memory) return;
  weir_mutex_lock(&memory->mu);
  memory->is_released = true;
  bool is_last = memory->live == 0;
  weir_mutex_unlock(&memory->mu);
  if (is_last) destroy(memory);
}

weir_allocator_t* weir_tight_memory_allocator(tight_memory_t* memory) { return &memory->allocator; }
