// string_element.c — Elements of string tensors, in TensorFlow's TString layout.
#include "tensor/string_element.h"

#include "base/alloc.h"
#include "base/interrupt.h"
#include "base/memory.h"

#define KIND_MASK 3u
#define SMALL_MAX (sizeof(((weir_string_t*)0)->u.small.text) - 1)

_Static_assert(sizeof(weir_string_t) == 24, "the dtype table and the C API rely on 24 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the kind must be in the first byte of both layouts");

// TString's OFFSET kind: the bytes stand |offset| bytes after the element itself.
typedef struct offset_string_t {
  uint32_t size_and_kind;
  uint32_t offset;
  uint32_t count;
} offset_string_t;

// TString's VIEW kind: somebody else's bytes.
typedef struct view_string_t {
  size_t size_and_kind;
  const char* data;
  void* owner;  // not looked at: whoever makes such a string keeps it
} view_string_t;

static unsigned kind_of(const weir_string_t* string) {
  return string->u.small.size_and_kind & KIND_MASK;
}

static void set_small_size(weir_string_t* string, size_t size) {
  string->u.small.size_and_kind = (uint8_t)(size << 2 | WEIR_STRING_SMALL);
  string->u.small.text[size] = '\0';
}

void weir_string_init(weir_string_t* string) { memset(string, 0, sizeof(*string)); }

void weir_string_free(weir_string_t* string) {
  if (kind_of(string) == WEIR_STRING_LARGE) weir_free(string->u.large.data);
  weir_string_init(string);
}

// Makes |string| short with the first |keep| of its bytes; they may lie in the block that is freed
// here.
static char* become_small(weir_string_t* string, size_t size, size_t keep) {
  weir_view_t old = weir_string_view(string);
  char text[SMALL_MAX];
  if (keep) memcpy(text, old.data, keep);
  weir_string_free(string);
  memcpy(string->u.small.text, text, keep);
  set_small_size(string, size);
  return string->u.small.text;
}

// Whether the memory of this thread's strings has grown beyond what there is, or the work that they
// are for is to end: looked at now and then, since one string says little about a tensor of them.
static bool is_refused(size_t size) {
  static _Thread_local size_t unseen;
  const size_t look_every = (size_t)64 << 20;
  if (WEIR_LIKELY(unseen + size < look_every)) {
    unseen += size;
    return false;
  }
  unseen = 0;
  return weir_is_interrupted() || weir_memory_lacks(WEIR_MAX(size, look_every));
}

// Returns a block for |size| bytes and a terminator; NULL when that cannot be had.
static char* alloc_large(size_t size) {
  if (size > (SIZE_MAX >> 2) - 1) return NULL;  // the size is stored shifted by the kind's two bits
  return is_refused(size) ? NULL : weir_malloc(size + 1);
}

static void become_large(weir_string_t* string, char* take_data, size_t size) {
  weir_string_free(string);
  take_data[size] = '\0';
  string->u.large.size_and_kind = size << 2 | WEIR_STRING_LARGE;
  string->u.large.capacity = size;
  string->u.large.data = take_data;
}

static bool fits_in_place(const weir_string_t* string, size_t size) {
  return kind_of(string) == WEIR_STRING_LARGE && size <= string->u.large.capacity;
}

char* weir_string_resize(weir_string_t* string, size_t size) {
  weir_view_t old = weir_string_view(string);
  size_t keep = WEIR_MIN(old.size, size);
  if (size <= SMALL_MAX) return become_small(string, size, keep);
  if (fits_in_place(string, size)) {
    string->u.large.size_and_kind = size << 2 | WEIR_STRING_LARGE;
    string->u.large.data[size] = '\0';
    return string->u.large.data;
  }
  char* data = alloc_large(size);
  if (!data) return NULL;
  if (keep) memcpy(data, old.data, keep);
  become_large(string, data, size);
  return data;
}

weir_status_t* weir_string_set(weir_string_t* string, const void* data, size_t size) {
  // |data| may be part of |string| itself, so the old bytes are freed only after the copy.
  if (size <= SMALL_MAX) {
    char text[SMALL_MAX];
    if (size) memcpy(text, data, size);
    weir_string_free(string);
    memcpy(string->u.small.text, text, size);
    set_small_size(string, size);
    return NULL;
  }
  if (fits_in_place(string, size)) {
    memmove(string->u.large.data, data, size);
    string->u.large.data[size] = '\0';
    string->u.large.size_and_kind = size << 2 | WEIR_STRING_LARGE;
    return NULL;
  }
  char* copy = alloc_large(size);
  if (!copy) return weir_out_of_memory();
  memcpy(copy, data, size);
  become_large(string, copy, size);
  return NULL;
}

weir_view_t weir_string_view(const weir_string_t* string) {
  switch (kind_of(string)) {
    case WEIR_STRING_SMALL:
      return weir_view(string->u.small.text, string->u.small.size_and_kind >> 2);
    case WEIR_STRING_OFFSET: {
      offset_string_t at;
      memcpy(&at, string, sizeof(at));
      return weir_view((const char*)string + at.offset, at.size_and_kind >> 2);
    }
    case WEIR_STRING_VIEW: {
      view_string_t view;
      memcpy(&view, string, sizeof(view));
      return weir_view(view.data, view.size_and_kind >> 2);
    }
    default: return weir_view(string->u.large.data, string->u.large.size_and_kind >> 2);
  }
}
