// arena.c — Bump allocation from blocks that double in size, freed together.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"

#define ARENA_ALIGNMENT ((size_t)16)
#define ARENA_FIRST_BLOCK ((size_t)4096)
#define ARENA_MAX_BLOCK ((size_t)1 << 18)

static atomic_bool is_split;

struct weir_arena_block_t {
  _Alignas(16) weir_arena_block_t* next;
  size_t size;  // of the whole block
};

_Static_assert(sizeof(weir_arena_block_t) % 16 == 0, "what follows the header is aligned");

void weir_arena_split(bool is_on) { atomic_store(&is_split, is_on); }

static weir_arena_block_t* block_create(size_t size) {
  weir_arena_block_t* block = weir_calloc(1, size);  // zeroed here once: bytes are handed out once
  if (block) block->size = size;
  return block;
}

// A request that would waste much of a block gets one of its own, behind the current one.
static void* alloc_own_block(weir_arena_t* arena, size_t size) {
  weir_arena_block_t* block = block_create(sizeof(*block) + size);
  if (!block) return NULL;
  if (arena->head) {
    block->next = arena->head->next;
    arena->head->next = block;
  } else {
    arena->head = block;  // |next| == |end| == NULL: the block counts as full
  }
  return block + 1;
}

static void* alloc_slow(weir_arena_t* arena, size_t size) {
  size_t block_size = ARENA_FIRST_BLOCK;
  if (arena->head) block_size = WEIR_MIN(arena->head->size * 2, ARENA_MAX_BLOCK);
  block_size = WEIR_MAX(block_size, ARENA_FIRST_BLOCK);
  if (size > block_size / 4 || atomic_load_explicit(&is_split, memory_order_relaxed))
    return alloc_own_block(arena, size);
  weir_arena_block_t* block = block_create(block_size);
  if (!block) return NULL;
  block->next = arena->head;
  arena->head = block;
  char* result = (char*)(block + 1);
  arena->next = result + size;
  arena->end = (char*)block + block_size;
  return result;
}

void* weir_arena_alloc(weir_arena_t* arena, size_t size) {
  if (size > SIZE_MAX / 2) return NULL;
  size = size ? (size + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1) : ARENA_ALIGNMENT;
  if (WEIR_UNLIKELY((size_t)(arena->end - arena->next) < size)) return alloc_slow(arena, size);
  char* result = arena->next;
  arena->next += size;
  return result;
}

void* weir_arena_array(weir_arena_t* arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return weir_arena_alloc(arena, bytes);
}

char* weir_arena_strndup(weir_arena_t* arena, const char* text, size_t size) {
  if (size == SIZE_MAX) return NULL;
  char* copy = weir_arena_alloc(arena, size + 1);
  if (copy && size > 0) memcpy(copy, text, size);
  return copy;
}

char* weir_arena_printf(weir_arena_t* arena, const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list measure;
  va_copy(measure, args);
  int size = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  char* text = size < 0 ? NULL : weir_arena_alloc(arena, (size_t)size + 1);
  if (text) vsnprintf(text, (size_t)size + 1, format, args);
  va_end(args);
  return text;
}

void weir_arena_free(weir_arena_t* arena) {
  for (weir_arena_block_t* block = arena->head; block;) {
    weir_arena_block_t* next = block->next;
    weir_free(block);
    block = next;
  }
  *arena = (weir_arena_t){0};
}
