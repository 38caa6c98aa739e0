// alloc.c — The process allocator, with overflow checks and fault injection for tests.
#include "base/alloc.h"

#include <stdlib.h>

#include "base/alloc_internal.h"
#include "base/memory.h"

atomic_bool weir_alloc_faults_active = false;
static _Atomic(int64_t) fault_countdown = 0;
static atomic_bool fault_is_sticky = false;

bool weir_alloc_count_fault(void) {
  int64_t left = atomic_fetch_sub_explicit(&fault_countdown, 1, memory_order_relaxed);
  if (left == 1) return true;
  return left < 1 && atomic_load_explicit(&fault_is_sticky, memory_order_relaxed);
}

void weir_alloc_fail_at(int64_t n, bool sticky) {
  atomic_store(&weir_alloc_faults_active, false);
  atomic_store(&fault_countdown, n);
  atomic_store(&fault_is_sticky, sticky);
  atomic_store(&weir_alloc_faults_active, n > 0);
}

// Whether a block of |size| bytes must not be asked for.
WEIR_INLINE bool is_refused(size_t size) {
  if (weir_alloc_must_fail()) return true;
  return WEIR_UNLIKELY(size >= WEIR_LARGE_BLOCK) && weir_memory_lacks(size);
}

void* weir_malloc(size_t size) {
  if (is_refused(size)) return NULL;
  return malloc(size ? size : 1);
}

void* weir_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  if (is_refused(bytes)) return NULL;
  return calloc(1, bytes ? bytes : 1);
}

void* weir_alloc_array(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return weir_malloc(bytes);
}

void* weir_realloc_array(void* pointer, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  if (is_refused(bytes)) return NULL;
  return realloc(pointer, bytes ? bytes : 1);  // realloc to 0 would free |pointer|
}

void* weir_aligned_malloc(size_t size, size_t alignment) {
  if (is_refused(size)) return NULL;
  void* pointer = NULL;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  return posix_memalign(&pointer, alignment, size ? size : 1) == 0 ? pointer : NULL;
}

void weir_free(void* pointer) { free(pointer); }

char* weir_strndup(const char* text, size_t size) {
  if (size == SIZE_MAX) return NULL;
  char* copy = weir_malloc(size + 1);
  if (!copy) return NULL;
  if (size > 0) memcpy(copy, text, size);
  copy[size] = '\0';
  return copy;
}

char* weir_strdup(const char* text) { return weir_strndup(text, strlen(text)); }

bool weir_grow_(void** array, size_t* capacity, size_t needed, size_t size) {
  if (needed <= *capacity) return true;
  size_t grown = *capacity <= SIZE_MAX / 2 ? *capacity * 2 : needed;
  grown = WEIR_MAX(WEIR_MAX(grown, needed), (size_t)8);
  // |array| points to a T*, not a void*: copying its bytes keeps within the aliasing rules.
  void* old;
  memcpy(&old, (const void*)array, sizeof(old));
  void* fresh = weir_realloc_array(old, grown, size);
  if (!fresh) return false;
  memcpy((void*)array, &fresh, sizeof(fresh));
  *capacity = grown;
  return true;
}
