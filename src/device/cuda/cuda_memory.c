// cuda_memory.c — Blocks cut from segments that the driver gave: best fit, neighbours joined.
//
// The driver's own allocation waits for the GPU and takes longer than most kernels, so what is
// freed is kept. A free block may be given out at once, though kernels that use it may not have run
// yet: whoever gets it works in the same stream, after them.
//
// Segments are a few sizes: small requests share segments of 2 MB, others get 32 MB or, above that,
// just what they need. Blocks of a segment form a list by address; free ones are in bins by powers
// of two besides, and the smallest that fits in the first bin that has one is taken. When the
// driver has no more, segments that are wholly free go back to it, and it is asked once more.
//
// What a recording (cuda_graph.c) uses is baked into it, so it has segments of its own, a pool:
// what is freed there is given out again while the recording is made, in the order of its work, and
// to nobody afterwards, until the pool goes and the rest of the memory gets it.
#include "device/cuda/cuda_memory.h"

#include <string.h>

#include "base/map.h"
#include "device/cuda/cuda.h"

enum { GRAIN_SHIFT = 9, BINS = 40 };
static const size_t kGrain = (size_t)1 << GRAIN_SHIFT;  // sizes are multiples of it
static const size_t kSmall = (size_t)1 << 20;           // below: from segments of the first size
static const size_t kSmallSegment = (size_t)2 << 20, kSegment = (size_t)32 << 20;

typedef struct block_t {
  uintptr_t address;
  size_t size;
  bool is_free;
  bool is_small;             // of a segment for small requests
  cuda_pool_t* pool;         // whose segment it is in
  struct block_t* previous;  // in its segment, by address; NULL: the first
  struct block_t* next;      // likewise
  struct block_t* bin_previous;
  struct block_t* bin_next;
  struct block_t* same_hash;  // of the table of blocks in use
} block_t;

struct cuda_pool_t {
  cuda_memory_t* memory;
  block_t* bins[2][BINS];  // free blocks: for large requests, for small ones; guarded by its mu
};

struct cuda_memory_t {
  device_memory_t base;  // first
  cuda_core_t* core;
  char* name;
  bool is_pinned;
  size_t limit;
  weir_mutex_t mu;  // guards all below
  size_t taken;     // bytes from the driver
  size_t in_use;    // bytes of blocks given out
  size_t peak;
  cuda_pool_t common;    // everybody's
  cuda_pool_t recorded;  // of recordings
  int recordings;
  block_t** used;  // a hash table by address
  size_t used_slots, used_count;
};

// Where this thread's memory comes from; NULL: from what is everybody's.
static _Thread_local cuda_pool_t* current;
static _Thread_local int64_t foreign_frees;  // of memory of others, within a pool

static cuda_pool_t* pool_of(cuda_memory_t* memory) {
  return WEIR_UNLIKELY(current != NULL) && current->memory == memory ? current : &memory->common;
}

// ---- blocks in use, by address ----

static block_t** slot_of(cuda_memory_t* memory, uintptr_t address) {
  return &memory->used[weir_hash_mix(address) & (memory->used_slots - 1)];
}

static bool grow_used(cuda_memory_t* memory) {
  size_t old_slots = memory->used_slots;
  block_t** old = memory->used;
  size_t slots = old_slots ? 2 * old_slots : 1024;
  block_t** made = weir_calloc(slots, sizeof(*made));
  if (!made) return old != NULL;  // fuller, and slower
  memory->used = made;
  memory->used_slots = slots;
  for (size_t i = 0; i < old_slots; ++i) {
    for (block_t *block = old[i], *next; block; block = next) {
      next = block->same_hash;
      block_t** slot = slot_of(memory, block->address);
      block->same_hash = *slot;
      *slot = block;
    }
  }
  weir_free(old);
  return true;
}

static void put_used(cuda_memory_t* memory, block_t* block) {
  block_t** slot = slot_of(memory, block->address);
  block->same_hash = *slot;
  *slot = block;
  ++memory->used_count;
}

static block_t* take_used(cuda_memory_t* memory, uintptr_t address) {
  block_t** at = slot_of(memory, address);
  while (*at && (*at)->address != address) at = &(*at)->same_hash;
  block_t* block = *at;
  WEIR_CHECK(block && "memory that is freed was given out");
  *at = block->same_hash;
  --memory->used_count;
  return block;
}

// ---- free blocks, by size ----

static int bin_of(size_t size) {
  int bin = 0;
  for (size >>= GRAIN_SHIFT; size > 1 && bin < BINS - 1; size >>= 1) ++bin;
  return bin;
}

static void put_free(block_t* block) {
  block_t** head = &block->pool->bins[block->is_small][bin_of(block->size)];
  block->is_free = true;
  block->bin_previous = NULL;
  block->bin_next = *head;
  if (*head) (*head)->bin_previous = block;
  *head = block;
}

static void take_free(block_t* block) {
  if (block->bin_previous) block->bin_previous->bin_next = block->bin_next;
  else block->pool->bins[block->is_small][bin_of(block->size)] = block->bin_next;
  if (block->bin_next) block->bin_next->bin_previous = block->bin_previous;
  block->is_free = false;
}

static block_t* find_free(const cuda_pool_t* pool, size_t size, bool is_small) {
  for (int bin = bin_of(size); bin < BINS; ++bin) {
    block_t* best = NULL;
    for (block_t* block = pool->bins[is_small][bin]; block; block = block->bin_next) {
      if (block->size >= size && (!best || block->size < best->size)) best = block;
    }
    if (best) return best;
  }
  return NULL;
}

// ---- neighbours ----

// Cuts what |block| has beyond |size| off, where that is worth a block.
static void split(block_t* block, size_t size) {
  size_t rest = block->size - size;
  if (rest < (block->is_small ? kGrain : kSmall)) return;
  block_t* other = weir_calloc(1, sizeof(*other));
  if (!other) return;  // the request gets more than it wanted
  *other = (block_t){.address = block->address + size,
                     .size = rest,
                     .is_small = block->is_small,
                     .pool = block->pool,
                     .previous = block,
                     .next = block->next};
  if (other->next) other->next->previous = other;
  block->next = other;
  block->size = size;
  put_free(other);
}

// Appends the free neighbour |next| of |block| to it.
static void join(block_t* block, block_t* next) {
  take_free(next);
  block->size += next->size;
  block->next = next->next;
  if (block->next) block->next->previous = block;
  weir_free(next);
}

// ---- segments ----

static bool driver_alloc(cuda_memory_t* memory, size_t size, uintptr_t* out_address) {
  const cuda_driver_t* driver = memory->core->driver;
  weir_cuda_core_enter(memory->core);
  if (memory->is_pinned) {
    void* pointer = NULL;
    bool is_given = driver->host_alloc(&pointer, size, CU_HOST_PORTABLE) == 0;
    *out_address = (uintptr_t)pointer;
    return is_given;
  }
  cu_pointer_t pointer = 0;
  bool is_given = driver->alloc(&pointer, size) == 0;
  *out_address = (uintptr_t)pointer;
  return is_given;
}

static void driver_free(cuda_memory_t* memory, uintptr_t address) {
  const cuda_driver_t* driver = memory->core->driver;
  weir_cuda_core_enter(memory->core);
  if (memory->is_pinned) driver->host_free((void*)address);
  else driver->free(address);
}

static size_t trim_locked(cuda_memory_t* memory) WEIR_REQUIRES(memory->mu) {
  size_t before = memory->taken;
  for (int is_small = 0; is_small < 2; ++is_small) {
    for (int bin = 0; bin < BINS; ++bin) {
      for (block_t *block = memory->common.bins[is_small][bin], *next; block; block = next) {
        next = block->bin_next;
        if (block->previous || block->next) continue;  // not the whole of its segment
        take_free(block);
        driver_free(memory, block->address);
        memory->taken -= block->size;
        weir_free(block);
      }
    }
  }
  return before - memory->taken;
}

static block_t* take_segment(cuda_memory_t* memory, cuda_pool_t* pool, size_t size, bool is_small)
    WEIR_REQUIRES(memory->mu) {
  size_t whole = is_small ? kSmallSegment : WEIR_MAX(size, kSegment);
  whole = (whole + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
  block_t* block = weir_calloc(1, sizeof(*block));
  if (!block) return NULL;
  bool is_given = false;
  for (int attempt = 0; attempt < 2 && !is_given; ++attempt) {
    bool fits = memory->taken <= memory->limit && whole <= memory->limit - memory->taken;
    is_given = fits && driver_alloc(memory, whole, &block->address);
    if (!is_given && attempt == 0 && trim_locked(memory) == 0) break;
  }
  if (!is_given) {
    weir_free(block);
    return NULL;
  }
  block->size = whole;
  block->is_small = is_small;
  block->pool = pool;
  memory->taken += whole;
  put_free(block);
  return block;
}

// ---- the allocator ----

static void* cuda_alloc(weir_allocator_t* self, size_t size, size_t alignment) {
  cuda_memory_t* memory = (cuda_memory_t*)self;
  (void)alignment;  // blocks begin at multiples of the grain, which is more
  if (size > SIZE_MAX - kSegment) return NULL;
  size = (size + kGrain - 1) / kGrain * kGrain;
  bool is_small = size < kSmall;
  cuda_pool_t* pool = pool_of(memory);
  weir_mutex_lock(&memory->mu);
  bool has_room = memory->used_count < memory->used_slots || grow_used(memory);
  block_t* block = has_room ? find_free(pool, size, is_small) : NULL;
  if (!block && has_room) block = take_segment(memory, pool, size, is_small);
  if (block) {
    take_free(block);
    split(block, size);
    put_used(memory, block);
    size = block->size;
    memory->in_use += size;
    memory->peak = WEIR_MAX(memory->peak, memory->in_use);
  }
  weir_mutex_unlock(&memory->mu);
  return weir_device_memory_give(&memory->base, block ? (void*)block->address : NULL, size);
}

static void cuda_free(weir_allocator_t* self, void* pointer, size_t size) {
  cuda_memory_t* memory = (cuda_memory_t*)self;
  weir_mutex_lock(&memory->mu);
  block_t* block = take_used(memory, (uintptr_t)pointer);
  size = block->size;
  memory->in_use -= size;
  if (WEIR_UNLIKELY(current != NULL) && current->memory == memory && block->pool != current)
    ++foreign_frees;
  if (block->next && block->next->is_free) join(block, block->next);
  block_t* before = block->previous;
  if (before && before->is_free) {
    take_free(before);
    put_free(block);  // join takes it out again
    join(before, block);
    block = before;
  }
  put_free(block);
  weir_mutex_unlock(&memory->mu);
  weir_device_memory_take(&memory->base, size);
}

static void cuda_get_use(weir_allocator_t* self, weir_allocator_use_t* out_use) {
  cuda_memory_t* memory = (cuda_memory_t*)self;
  weir_mutex_lock(&memory->mu);
  *out_use = (weir_allocator_use_t){.name = memory->name,
                                    .limit = (int64_t)memory->limit,
                                    .in_use = (int64_t)memory->in_use,
                                    .peak = (int64_t)memory->peak};
  weir_mutex_unlock(&memory->mu);
}

// Memory is copied to while its device lives: whoever wants that holds a tensor in a step.
static weir_status_t* cuda_copy(weir_allocator_t* self, void* dst, const void* src, size_t size) {
  return weir_cuda_copy(((cuda_memory_t*)self)->base.space.device, dst, src, size);
}

static const weir_allocator_vtable_t memory_vtable = {
    .alloc = cuda_alloc, .free = cuda_free, .copy = cuda_copy, .get_use = cuda_get_use};
static const weir_allocator_vtable_t pinned_vtable = {
    .alloc = cuda_alloc, .free = cuda_free, .get_use = cuda_get_use};

size_t weir_cuda_memory_trim(cuda_memory_t* memory) {
  weir_mutex_lock(&memory->mu);
  size_t freed = trim_locked(memory);
  weir_mutex_unlock(&memory->mu);
  return freed;
}

// ---- the pool of recordings ----

cuda_pool_t* weir_cuda_pool_retain(cuda_memory_t* memory) {
  weir_mutex_lock(&memory->mu);
  ++memory->recordings;
  weir_mutex_unlock(&memory->mu);
  return &memory->recorded;
}

// Segments, whatever of them is in use, become everybody's.
static void share_segments_locked(cuda_memory_t* memory, cuda_pool_t* pool)
    WEIR_REQUIRES(memory->mu) {
  for (size_t i = 0; i < memory->used_slots; ++i) {
    for (block_t* block = memory->used[i]; block; block = block->same_hash) {
      if (block->pool == pool) block->pool = &memory->common;
    }
  }
  for (int i = 0; i < 2 * BINS; ++i) {
    for (block_t* block; (block = pool->bins[i / BINS][i % BINS]);) {
      take_free(block);
      block->pool = &memory->common;
      put_free(block);
    }
  }
}

void weir_cuda_pool_release(cuda_pool_t* pool) {
  if (!pool) return;
  cuda_memory_t* memory = pool->memory;
  weir_mutex_lock(&memory->mu);
  if (--memory->recordings == 0) share_segments_locked(memory, pool);
  weir_mutex_unlock(&memory->mu);
}

cuda_pool_t* weir_cuda_pool_enter(cuda_pool_t* pool) {
  cuda_pool_t* before = current;
  current = pool;
  return before;
}

int64_t weir_cuda_pool_foreign_frees(void) { return foreign_frees; }

bool weir_cuda_memory_is_tight(cuda_memory_t* memory) {
  weir_mutex_lock(&memory->mu);
  bool is_tight = memory->limit - WEIR_MIN(memory->taken, memory->limit) < memory->limit / 8;
  weir_mutex_unlock(&memory->mu);
  return is_tight;
}

// ---- the whole ----

static void destroy(device_memory_t* base) {
  cuda_memory_t* memory = (cuda_memory_t*)base;
  weir_cuda_memory_trim(memory);
  weir_cuda_core_release(memory->core);
  weir_mutex_destroy(&memory->mu);
  weir_free(memory->used);
  weir_free(memory->name);
  weir_free(memory);
}

weir_status_t* weir_cuda_memory_create(cuda_core_t* core, struct weir_device_t* device,
                                       const char* name, size_t limit, cuda_memory_t** out_memory) {
  cuda_memory_t* memory = weir_calloc(1, sizeof(*memory));
  if (!memory) return weir_out_of_memory();
  memory->name = weir_strdup(name);
  if (!memory->name) {
    weir_free(memory);
    return weir_out_of_memory();
  }
  memory->core = weir_cuda_core_retain(core);
  memory->is_pinned = device == NULL;
  memory->limit = limit;
  memory->common.memory = memory->recorded.memory = memory;
  weir_mutex_init(&memory->mu);
  weir_device_memory_init(&memory->base, device ? &memory_vtable : &pinned_vtable, device, destroy);
  *out_memory = memory;
  return NULL;
}

device_memory_t* weir_cuda_memory_base(cuda_memory_t* memory) { return &memory->base; }
