// alloc.h — Host memory: the process allocator, overflow-checked arrays, arenas, and the allocator
// interface of devices.
//
// Host bookkeeping memory comes from weir_malloc and its kin. They are the only callers of the C
// library's malloc, so that a test can make the n-th allocation fail. Tensor memory comes from a
// weir_allocator_t, which a device implements.
#ifndef WEIR_BASE_ALLOC_H_
#define WEIR_BASE_ALLOC_H_

#include "base/base.h"

// ---- process memory. Thread-safe. All return NULL when memory is exhausted; size 0 gives a valid
// pointer. ----
void* weir_malloc(size_t size);
void* weir_calloc(size_t count, size_t size);       // zeroed; NULL on overflow of count * size
void* weir_alloc_array(size_t count, size_t size);  // NULL on overflow of count * size
void* weir_realloc_array(void* pointer, size_t count,
                         size_t size);  // |pointer| stays valid on failure
void* weir_aligned_malloc(size_t size,
                          size_t alignment);  // alignment: a power of two; free with weir_free
void weir_free(void* pointer);
char* weir_strdup(const char* text);
char* weir_strndup(const char* text, size_t size);  // copies exactly |size| bytes and terminates

// Returns the status every failed allocation reports; static, so it needs no memory itself.
WEIR_MUST_USE weir_status_t* weir_out_of_memory(void);

// Makes the |n|-th allocation from now on (1 = the next) and, if |sticky|, all later ones fail; 0
// ends this. Tests only.
void weir_alloc_fail_at(int64_t n, bool sticky);

// Grows *|array| (element |size|) so that it holds at least |needed| elements; capacity doubles.
// False when out of memory.
bool weir_grow_(void** array, size_t* capacity, size_t needed, size_t size);
#define WEIR_GROW(array, capacity, needed) \
  weir_grow_((void**)&(array), &(capacity), (needed), sizeof(*(array)))

// ---- arena: many small allocations freed together. Thread-confined to its owner. ----
typedef struct weir_arena_block_t weir_arena_block_t;
typedef struct weir_arena_t {
  weir_arena_block_t* head;  // current block; blocks form a list
  char* next;                // first free byte of |head|
  char* end;
} weir_arena_t;

void* weir_arena_alloc(weir_arena_t* arena,
                       size_t size);  // 16-byte aligned, zeroed; NULL when exhausted
void* weir_arena_array(weir_arena_t* arena, size_t count, size_t size);
char* weir_arena_strndup(weir_arena_t* arena, const char* text, size_t size);
char* weir_arena_printf(weir_arena_t* arena, const char* format, ...) WEIR_PRINTF(2, 3);
void weir_arena_free(weir_arena_t* arena);  // frees all; the arena may be used again
// While on, arenas that are new ask for memory each time that they are asked, so that each can be
// the time that fails. Tests only.
void weir_arena_split(bool is_on);

// ---- memory spaces: which processor reaches what ----
// A tensor is in the space of its allocator. Only kernels and copies of the device that a space
// belongs to touch memory of it; the host's belongs to all. A space lives as long as its memory,
// which may be longer than the device does.
typedef struct weir_space_t {
  struct weir_device_t* device;  // borrowed; NULL: the host's, or of one that is gone
} weir_space_t;
extern const weir_space_t weir_host_space;

// ---- allocator interface: memory of tensors. Thread-safe. ----
typedef struct weir_allocator_t weir_allocator_t;
typedef struct weir_allocator_use_t {
  const char* name;  // whose memory it is: a device's name; the allocator's
  int64_t limit;     // bytes
  int64_t in_use;    // bytes of it
  int64_t peak;      // the most that was in use
} weir_allocator_use_t;
typedef struct weir_allocator_vtable_t {
  void* (*alloc)(weir_allocator_t* self, size_t size,
                 size_t alignment);  // required; NULL when exhausted
  void (*free)(weir_allocator_t* self, void* pointer,
               size_t size);  // required; |size| as allocated
  // Optional, default: by the host. Copies within its memory, in the order in which the memory is
  // used.
  weir_status_t* (*copy)(weir_allocator_t* self, void* dst, const void* src, size_t size);
  // Optional: how full it is, so that a failed allocation and a server's metrics can say so.
  void (*get_use)(weir_allocator_t* self, weir_allocator_use_t* out_use);
} weir_allocator_vtable_t;
struct weir_allocator_t {
  const weir_allocator_vtable_t* vtable;
  const weir_space_t* space;  // of what it returns
};
WEIR_INLINE bool weir_allocator_is_host(const weir_allocator_t* allocator) {
  return allocator->space == &weir_host_space;
}

// The host's tensor allocator: per-thread lists of recently freed blocks by size class before the
// process allocator.
extern weir_allocator_t weir_host_memory;
WEIR_INLINE weir_allocator_t* weir_host_allocator(void) { return &weir_host_memory; }

// Bytes of tensor memory in use by the host allocator now, and the highest value since the last
// reset.
int64_t weir_host_allocator_bytes(void);
int64_t weir_host_allocator_peak(void);
void weir_host_allocator_reset_peak(void);

// Bytes that one thread takes of memory for tensors between begin and end, for traces. Meters nest,
// and an inner one's bytes are not the outer one's. Blocks that were there before may be freed in
// between: so |live| can be negative.
typedef struct weir_alloc_count_t {
  int64_t total;  // allocated
  int64_t live;   // allocated less freed
  int64_t peak;   // highest |live|
} weir_alloc_count_t;
typedef struct weir_alloc_meter_t {
  weir_alloc_count_t host;
  weir_alloc_count_t device;  // of memory that is a device's own
  struct weir_alloc_meter_t* outer;
} weir_alloc_meter_t;
void weir_alloc_meter_begin(weir_alloc_meter_t* meter);
// After an end: goes on counting, maybe on another thread.
void weir_alloc_meter_resume(weir_alloc_meter_t* meter);
void weir_alloc_meter_end(weir_alloc_meter_t* meter);  // on the same thread
// For allocators: |size| bytes were allocated, or freed where it is negative.
void weir_alloc_meter_note(const weir_space_t* space, int64_t size);

#endif  // WEIR_BASE_ALLOC_H_
