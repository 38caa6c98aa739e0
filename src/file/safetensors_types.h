// safetensors_types.h — The element types of safetensors files. Private to src/file.
#ifndef WEIR_FILE_SAFETENSORS_TYPES_H_
#define WEIR_FILE_SAFETENSORS_TYPES_H_

#include "base/base.h"
#include "weir/safetensors.h"

typedef struct weir_safetensors_type_t {
  const char* name;
  int bits;
  weir_dtype_t dtype;  // INVALID: Weir has none
} weir_safetensors_type_t;

// Both return NULL when there is none.
const weir_safetensors_type_t* weir_safetensors_type_named(weir_view_t name);
const weir_safetensors_type_t* weir_safetensors_type_of(weir_dtype_t dtype);

#endif  // WEIR_FILE_SAFETENSORS_TYPES_H_
