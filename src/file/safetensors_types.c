// safetensors_types.c — The element types of safetensors files.
#include "file/safetensors_types.h"

static const weir_safetensors_type_t kTypes[] = {
    {"F32", 32, WEIR_DTYPE_FLOAT},
    {"F16", 16, WEIR_DTYPE_HALF},
    {"BF16", 16, WEIR_DTYPE_BFLOAT16},
    {"F64", 64, WEIR_DTYPE_DOUBLE},
    {"I64", 64, WEIR_DTYPE_INT64},
    {"I32", 32, WEIR_DTYPE_INT32},
    {"I16", 16, WEIR_DTYPE_INT16},
    {"I8", 8, WEIR_DTYPE_INT8},
    {"U64", 64, WEIR_DTYPE_UINT64},
    {"U32", 32, WEIR_DTYPE_UINT32},
    {"U16", 16, WEIR_DTYPE_UINT16},
    {"U8", 8, WEIR_DTYPE_UINT8},
    {"BOOL", 8, WEIR_DTYPE_BOOL},
    {"C64", 64, WEIR_DTYPE_COMPLEX64},
    {"F8_E4M3", 8, WEIR_DTYPE_FLOAT8_E4M3FN},
    {"F8_E5M2", 8, WEIR_DTYPE_FLOAT8_E5M2},
    {"F8_E8M0", 8, WEIR_DTYPE_INVALID},
    {"F4", 4, WEIR_DTYPE_INVALID},
    {"F6_E2M3", 6, WEIR_DTYPE_INVALID},
    {"F6_E3M2", 6, WEIR_DTYPE_INVALID},
};

const weir_safetensors_type_t* weir_safetensors_type_named(weir_view_t name) {
  for (size_t i = 0; i < WEIR_COUNT_OF(kTypes); ++i) {
    if (weir_view_is(name, kTypes[i].name)) return &kTypes[i];
  }
  return NULL;
}

const weir_safetensors_type_t* weir_safetensors_type_of(weir_dtype_t dtype) {
  for (size_t i = 0; i < WEIR_COUNT_OF(kTypes); ++i) {
    if (kTypes[i].dtype == dtype && dtype != WEIR_DTYPE_INVALID) return &kTypes[i];
  }
  return NULL;
}
