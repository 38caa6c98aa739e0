// string_element.h — One element of a string tensor: 24 bytes, short strings inside, laid out as
// TensorFlow's TString.
//
// The first byte's low two bits are the kind; the same layout serves the drop-in C API without a
// copy.
#ifndef WEIR_TENSOR_STRING_ELEMENT_H_
#define WEIR_TENSOR_STRING_ELEMENT_H_

#include "base/base.h"

typedef struct weir_string_t {
  union {
    struct {
      uint8_t size_and_kind;  // size << 2 | SMALL
      char text[23];          // up to 22 bytes and a terminator
    } small;
    struct {
      size_t size_and_kind;  // size << 2 | kind
      size_t capacity;       // LARGE: allocated bytes without the terminator
      char* data;            // LARGE: owned; VIEW: borrowed
    } large;
  } u;
} weir_string_t;

enum { WEIR_STRING_SMALL = 0, WEIR_STRING_LARGE = 1, WEIR_STRING_OFFSET = 2, WEIR_STRING_VIEW = 3 };

void weir_string_init(weir_string_t* string);
void weir_string_free(weir_string_t* string);  // leaves it empty
WEIR_MUST_USE weir_status_t* weir_string_set(weir_string_t* string, const void* data, size_t size);
// Sets the size, keeping what fits, and returns the bytes to write into; NULL when out of memory.
char* weir_string_resize(weir_string_t* string, size_t size);
weir_view_t weir_string_view(const weir_string_t* string);

#endif  // WEIR_TENSOR_STRING_ELEMENT_H_
