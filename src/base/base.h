// base.h — What every file of Weir may assume: fixed-width types, checks, array sizes, slices of
// bytes.
#ifndef WEIR_BASE_BASE_H_
#define WEIR_BASE_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "weir/status.h"

#define WEIR_CAT2_(a, b) a##_##b
#define WEIR_CAT2(a, b) WEIR_CAT2_(a, b)
#define WEIR_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define WEIR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define WEIR_MAX(a, b) ((a) > (b) ? (a) : (b))
#define WEIR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WEIR_INLINE static inline __attribute__((always_inline))

// Aborts with file and line when an invariant of our own is broken. Never for user input.
#define WEIR_CHECK(condition) \
  ((condition) ? (void)0 : weir_check_failed(#condition, __FILE__, __LINE__))
void weir_check_failed(const char* condition, const char* file, int line) __attribute__((noreturn));

// A borrowed run of bytes, not terminated.
typedef struct weir_view_t {
  const char* data;
  size_t size;
} weir_view_t;

WEIR_INLINE weir_view_t weir_view(const void* data, size_t size) {
  return (weir_view_t){.data = (const char*)data, .size = size};
}
WEIR_INLINE weir_view_t weir_view_of(const char* text) {
  return weir_view(text, text ? strlen(text) : 0);
}
WEIR_INLINE bool weir_view_equal(weir_view_t a, weir_view_t b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
WEIR_INLINE bool weir_view_is(weir_view_t a, const char* text) {
  return weir_view_equal(a, weir_view_of(text));
}
// For printf("%.*s", WEIR_VIEW_ARG(v)).
#define WEIR_VIEW_ARG(v) (int)WEIR_MIN((v).size, (size_t)1 << 20), ((v).data ? (v).data : "")

#endif  // WEIR_BASE_BASE_H_
