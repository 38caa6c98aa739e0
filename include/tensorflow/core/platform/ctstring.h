// ctstring.h — TF_TString: one element of a string tensor, 24 bytes, with the functions on it.
//
// The two lowest bits of the first byte are the kind. SMALL: up to 22 bytes are in the element.
// LARGE: a block of malloc's. OFFSET: the bytes stand some way behind the element (never written by
// these functions). VIEW: the bytes are somebody else's.
#ifndef TENSORFLOW_CORE_PLATFORM_CTSTRING_H_
#define TENSORFLOW_CORE_PLATFORM_CTSTRING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "strings of tensors are laid out for little-endian machines"
#endif

typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0,
  TF_TSTR_LARGE = 1,
  TF_TSTR_OFFSET = 2,
  TF_TSTR_VIEW = 3,
  TF_TSTR_TYPE_MASK = 3,
} TF_TString_Type;

// Who owns the bytes of a view, counted; NULL: nobody who needs to know.
typedef struct TStringOwnerCApi TStringOwnerCApi;
typedef void (*tstring_owner_ref_t)(TStringOwnerCApi* self);
typedef bool (*tstring_owner_unref_t)(TStringOwnerCApi* self);
struct TStringOwnerCApi {
  tstring_owner_ref_t ref;
  tstring_owner_unref_t unref;
  void* obj;
};

typedef struct TF_TString_Large {
  size_t size;  // << 2 | kind, as in all of these
  size_t cap;   // without the terminating zero
  char* ptr;
} TF_TString_Large;
typedef struct TF_TString_Offset {
  uint32_t size;
  uint32_t offset;  // from the element on
  uint32_t count;
} TF_TString_Offset;
typedef struct TF_TString_View {
  size_t size;
  const char* ptr;
  TStringOwnerCApi* owner_ref;
} TF_TString_View;
typedef struct TF_TString_Raw {
  uint8_t raw[24];
} TF_TString_Raw;
typedef union TF_TString_Union {
  TF_TString_Large large;
  TF_TString_Offset offset;
  TF_TString_View view;
  TF_TString_Raw raw;
} TF_TString_Union;
enum { TF_TString_SmallCapacity = 22 };
typedef struct TF_TString_Small {
  uint8_t size;
  char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;

typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
    TF_TString_Raw raw;
  } u;
} TF_TString;

static inline TF_TString_Type TF_TString_GetType(const TF_TString* str) {
  return (TF_TString_Type)(str->u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}
static inline size_t TF_TString_ToActualSizeT(size_t size) { return size >> 2; }
static inline size_t TF_TString_ToInternalSizeT(size_t size, TF_TString_Type type) {
  return size << 2 | (size_t)type;
}

static inline void TF_TString_Init(TF_TString* str) { memset(str, 0, sizeof(*str)); }

static inline void TF_TString_Dealloc(TF_TString* str) {
  const TF_TString_Type type = TF_TString_GetType(str);
  if (type == TF_TSTR_LARGE && str->u.large.ptr) {
    free(str->u.large.ptr);
    TF_TString_Init(str);
  } else if (type == TF_TSTR_VIEW && str->u.view.owner_ref) {
    (void)str->u.view.owner_ref->unref(str->u.view.owner_ref);
    TF_TString_Init(str);
  }
}

static inline size_t TF_TString_GetSize(const TF_TString* str) {
  const TF_TString_Type type = TF_TString_GetType(str);
  if (type == TF_TSTR_SMALL) return str->u.smll.size >> 2;
  if (type == TF_TSTR_OFFSET) return str->u.offset.size >> 2;
  return str->u.large.size >> 2;  // a view's is in the same place
}

// What fits without another block; 0 for kinds that must not be written to.
static inline size_t TF_TString_GetCapacity(const TF_TString* str) {
  const TF_TString_Type type = TF_TString_GetType(str);
  if (type == TF_TSTR_SMALL) return TF_TString_SmallCapacity;
  return type == TF_TSTR_LARGE ? str->u.large.cap : 0;
}

static inline const char* TF_TString_GetDataPointer(const TF_TString* str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL: return str->u.smll.str;
    case TF_TSTR_LARGE: return str->u.large.ptr;
    case TF_TSTR_OFFSET: return (const char*)str + str->u.offset.offset;
    default: return str->u.view.ptr;
  }
}

// Moves the first |keep| bytes to a block of |cap| and its terminator, and owns that.
static inline void TF_TString_MoveToLarge_(TF_TString* str, size_t keep, size_t cap) {
  const size_t size = TF_TString_GetSize(str);
  const TF_TString_Type type = TF_TString_GetType(str);
  char* grown = NULL;
  if (type == TF_TSTR_LARGE) {
    grown = (char*)realloc(str->u.large.ptr, cap + 1);
  } else {
    grown = (char*)malloc(cap + 1);
    if (grown && keep) memcpy(grown, TF_TString_GetDataPointer(str), keep);
    if (type == TF_TSTR_VIEW) TF_TString_Dealloc(str);
  }
  if (!grown) abort();  // as there is no way to say so
  str->u.large.size = TF_TString_ToInternalSizeT(size, TF_TSTR_LARGE);
  str->u.large.cap = cap;
  str->u.large.ptr = grown;
}

static inline void TF_TString_MoveToSmall_(TF_TString* str, size_t keep) {
  TF_TString old = *str;
  char bytes[TF_TString_SmallCapacity];
  if (keep) memcpy(bytes, TF_TString_GetDataPointer(str), keep);
  TF_TString_Dealloc(&old);
  if (keep) memcpy(str->u.smll.str, bytes, keep);
}

// With its terminator a block is a multiple of 16 bytes.
static inline size_t TF_TString_RoundCapacity_(size_t size) { return size | 15; }

// Sets the size, keeps what fits, and returns the bytes; new ones are not set. Blocks never shrink,
// so that a string that is used again and again asks for memory once.
static inline char* TF_TString_ResizeUninitialized(TF_TString* str, size_t new_size) {
  const size_t size = TF_TString_GetSize(str);
  const size_t keep = size < new_size ? size : new_size;
  if (new_size <= TF_TString_SmallCapacity) {
    TF_TString_MoveToSmall_(str, keep);
    str->u.smll.size = (uint8_t)(new_size << 2 | TF_TSTR_SMALL);
    str->u.smll.str[new_size] = '\0';
    return str->u.smll.str;
  }
  if (TF_TString_GetType(str) != TF_TSTR_LARGE || new_size > str->u.large.cap)
    TF_TString_MoveToLarge_(str, keep, TF_TString_RoundCapacity_(new_size));
  str->u.large.size = TF_TString_ToInternalSizeT(new_size, TF_TSTR_LARGE);
  str->u.large.ptr[new_size] = '\0';
  return str->u.large.ptr;
}

// The bytes to write to: a view becomes a copy of its own.
static inline char* TF_TString_GetMutableDataPointer(TF_TString* str) {
  const TF_TString_Type type = TF_TString_GetType(str);
  if (type == TF_TSTR_OFFSET || type == TF_TSTR_VIEW)
    return TF_TString_ResizeUninitialized(str, TF_TString_GetSize(str));
  return type == TF_TSTR_SMALL ? str->u.smll.str : str->u.large.ptr;
}

// Room for |new_cap| bytes.
static inline void TF_TString_Reserve(TF_TString* str, size_t new_cap) {
  const size_t size = TF_TString_GetSize(str);
  const size_t wanted = size > new_cap ? size : new_cap;
  if (new_cap <= TF_TString_SmallCapacity || wanted <= TF_TString_GetCapacity(str)) return;
  TF_TString_MoveToLarge_(str, size, TF_TString_RoundCapacity_(wanted));
  str->u.large.ptr[size] = '\0';
}
// The same, and at least twice of what there is, so that appending takes few blocks.
static inline void TF_TString_ReserveAmortized(TF_TString* str, size_t new_cap) {
  const size_t cap = TF_TString_GetCapacity(str);
  if (new_cap > cap) TF_TString_Reserve(str, new_cap > 2 * cap ? new_cap : 2 * cap);
}

static inline char* TF_TString_Resize(TF_TString* str, size_t new_size, char c) {
  const size_t size = TF_TString_GetSize(str);
  char* data = TF_TString_ResizeUninitialized(str, new_size);
  if (new_size > size) memset(data + size, c, new_size - size);
  return data;
}

// Makes |dst| a view of bytes that |owner_ref|, which is counted, or the caller keeps.
static inline void TF_TString_AssignViewWithOwner(TF_TString* dst, const char* src, size_t size,
                                                  TStringOwnerCApi* owner_ref) {
  if (owner_ref) owner_ref->ref(owner_ref);
  TF_TString_Dealloc(dst);
  dst->u.view.size = TF_TString_ToInternalSizeT(size, TF_TSTR_VIEW);
  dst->u.view.ptr = src;
  dst->u.view.owner_ref = owner_ref;
}
static inline void TF_TString_AssignView(TF_TString* dst, const char* src, size_t size) {
  TF_TString_AssignViewWithOwner(dst, src, size, NULL);
}

static inline void TF_TString_AppendN(TF_TString* dst, const char* src, size_t size) {
  if (!size) return;
  const size_t before = TF_TString_GetSize(dst);
  TF_TString_ReserveAmortized(dst, before + size);
  char* data = TF_TString_ResizeUninitialized(dst, before + size);
  memcpy(data + before, src, size);
}
static inline void TF_TString_Append(TF_TString* dst, const TF_TString* src) {
  TF_TString_AppendN(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}

static inline void TF_TString_Copy(TF_TString* dst, const char* src, size_t size) {
  char* data = TF_TString_ResizeUninitialized(dst, size);
  if (size) memcpy(data, src, size);
}

// A view stays a view of the same bytes; all else is copied.
static inline void TF_TString_Assign(TF_TString* dst, const TF_TString* src) {
  if (dst == src) return;
  const TF_TString_Type type = TF_TString_GetType(src);
  const char* data = TF_TString_GetDataPointer(src);
  const size_t size = TF_TString_GetSize(src);
  if (type == TF_TSTR_VIEW) TF_TString_AssignViewWithOwner(dst, data, size, src->u.view.owner_ref);
  else if (type == TF_TSTR_OFFSET) TF_TString_AssignView(dst, data, size);
  else TF_TString_Copy(dst, data, size);
}

// Leaves |src| empty.
static inline void TF_TString_Move(TF_TString* dst, TF_TString* src) {
  if (dst == src) return;
  TF_TString_Dealloc(dst);
  if (TF_TString_GetType(src) == TF_TSTR_OFFSET)
    TF_TString_AssignView(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
  else *dst = *src;
  TF_TString_Init(src);
}

#endif  // TENSORFLOW_CORE_PLATFORM_CTSTRING_H_
