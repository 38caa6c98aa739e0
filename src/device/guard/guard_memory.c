// guard_memory.c — A reserved range of addresses, given out by size class; what is in use has no
// access rights while closed.
//
// Lists of free blocks are kept outside: nothing may be written into the memory itself.
#include "guard_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALLEST_SHIFT = 6, CLASS_COUNT = 40, STEP_SHIFT = 21 };
static const size_t kLeast = (size_t)1 << 28;  // addresses reserved, unless fewer were asked for
static const size_t kStep = (size_t)1 << STEP_SHIFT;  // rights change in such steps: a huge page

typedef struct free_list_t {
  void** blocks;
  size_t count;
  size_t capacity;
} free_list_t;

struct guard_memory_t {
  device_memory_t base;  // first
  char* name;
  char* start;
  size_t reserved;  // bytes from |start| on
  weir_mutex_t mu;  // guards all below
  size_t used;      // bytes given out at least once
  size_t extent;    // |used| in whole steps: what opens and closes
  int openers;      // it is closed when there are none
  size_t in_use;    // bytes of blocks, as they were asked for
  size_t peak;      // the most of it
  free_list_t free[CLASS_COUNT];
};

static size_t class_of(size_t size) {
  size_t class = 0;
  while (((size_t)1 << (class + SMALLEST_SHIFT)) < size) ++class;
  return class;
}

static void destroy(device_memory_t* base) {
  guard_memory_t* memory = (guard_memory_t*)base;
  munmap(memory->start, memory->reserved);
  for (size_t i = 0; i < CLASS_COUNT; ++i) weir_free(memory->free[i].blocks);
  weir_mutex_destroy(&memory->mu);
  weir_free(memory->name);
  weir_free(memory);
}

// ---- blocks ----

static void* take_fresh(guard_memory_t* memory, size_t size) WEIR_REQUIRES(memory->mu) {
  if (size > memory->reserved - memory->used) return NULL;
  void* block = memory->start + memory->used;
  memory->used += size;
  size_t extent = (memory->used + kStep - 1) / kStep * kStep;
  if (extent > memory->extent) {
    if (memory->openers > 0 &&
        mprotect(memory->start + memory->extent, extent - memory->extent, PROT_READ | PROT_WRITE))
      return NULL;
    memory->extent = extent;
  }
  return block;
}

static void* guard_alloc(weir_allocator_t* self, size_t size, size_t alignment) {
  guard_memory_t* memory = (guard_memory_t*)self;
  size_t class = class_of(size);
  (void)alignment;  // a power of two is aligned to itself, and the smallest to a tensor's 64
  if (class >= CLASS_COUNT) return NULL;
  weir_mutex_lock(&memory->mu);
  free_list_t* list = &memory->free[class];
  // Room for every block of the class to come back: freeing cannot fail.
  void* block = NULL;
  if (list->count) block = list->blocks[--list->count];
  else block = take_fresh(memory, (size_t)1 << (class + SMALLEST_SHIFT));
  if (block) memory->in_use += size;
  memory->peak = WEIR_MAX(memory->peak, memory->in_use);
  weir_mutex_unlock(&memory->mu);
  return weir_device_memory_give(&memory->base, block, size);
}

static void guard_free(weir_allocator_t* self, void* pointer, size_t size) {
  guard_memory_t* memory = (guard_memory_t*)self;
  weir_mutex_lock(&memory->mu);
  free_list_t* list = &memory->free[class_of(size)];
  // Without memory for the list the block is lost; it is only addresses.
  if (WEIR_GROW(list->blocks, list->capacity, list->count + 1))
    list->blocks[list->count++] = pointer;
  memory->in_use -= size;
  weir_mutex_unlock(&memory->mu);
  weir_device_memory_take(&memory->base, size);
}

static void guard_get_use(weir_allocator_t* self, weir_allocator_use_t* out_use) {
  guard_memory_t* memory = (guard_memory_t*)self;
  weir_mutex_lock(&memory->mu);
  *out_use = (weir_allocator_use_t){.name = memory->name,
                                    .limit = (int64_t)memory->reserved,
                                    .in_use = (int64_t)memory->in_use,
                                    .peak = (int64_t)memory->peak};
  weir_mutex_unlock(&memory->mu);
}

static const weir_allocator_vtable_t guard_vtable = {
    .alloc = guard_alloc, .free = guard_free, .get_use = guard_get_use};

// ---- the whole ----

weir_status_t* weir_guard_memory_create(struct weir_device_t* device, const char* name, size_t most,
                                        guard_memory_t** out_memory) {
  guard_memory_t* memory = weir_calloc(1, sizeof(*memory));
  if (!memory) return weir_out_of_memory();
  memory->name = weir_strdup(name);
  if (!memory->name) {
    weir_free(memory);
    return weir_out_of_memory();
  }
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  // Limits and sanitizers leave a process fewer addresses than it might have.
  for (memory->reserved = most;; memory->reserved /= 2) {
    memory->start = mmap(NULL, memory->reserved, PROT_NONE, flags, -1, 0);
    if (memory->start != MAP_FAILED || memory->reserved <= kLeast) break;
  }
  if (memory->start == MAP_FAILED) {
    int error = errno;
    weir_free(memory->name);
    weir_free(memory);
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "no addresses for a guard device's memory: %s",
                       strerror(error));
  }
  // Rights change twice for each kernel: the fewer pages, the sooner. Where there are no huge ones
  // it is slow, not wrong.
  (void)madvise(memory->start, memory->reserved, MADV_HUGEPAGE);
  weir_mutex_init(&memory->mu);
  weir_device_memory_init(&memory->base, &guard_vtable, device, destroy);
  *out_memory = memory;
  return NULL;
}

device_memory_t* weir_guard_memory_base(guard_memory_t* memory) { return &memory->base; }
size_t weir_guard_memory_size(const guard_memory_t* memory) { return memory->reserved; }

bool weir_guard_memory_holds(const guard_memory_t* memory, const void* data, size_t size) {
  uintptr_t start = (uintptr_t)memory->start, at = (uintptr_t)data;
  return at >= start && size <= memory->reserved && at - start <= memory->reserved - size;
}

// It fails only where the kernel is out of memory; then the next access would say so.
static void set_rights(guard_memory_t* memory, int rights) WEIR_REQUIRES(memory->mu) {
  if (memory->extent) WEIR_CHECK(mprotect(memory->start, memory->extent, rights) == 0);
}

void weir_guard_memory_open(guard_memory_t* memory) {
  weir_mutex_lock(&memory->mu);
  if (memory->openers++ == 0) set_rights(memory, PROT_READ | PROT_WRITE);
  weir_mutex_unlock(&memory->mu);
}

void weir_guard_memory_close(guard_memory_t* memory) {
  weir_mutex_lock(&memory->mu);
  if (--memory->openers == 0) set_rights(memory, PROT_NONE);
  weir_mutex_unlock(&memory->mu);
}
