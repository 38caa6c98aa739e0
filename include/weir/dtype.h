// dtype.h — Element types, numbered as TensorFlow's DataType numbers them.
#ifndef WEIR_DTYPE_H_
#define WEIR_DTYPE_H_

#include <stdbool.h>
#include <stddef.h>

#include "weir/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// One row a type: X(NAME, number, "tensorflow spelling", bytes an element).
#define WEIR_DTYPE_LIST(X)                           \
  X(FLOAT, 1, "float", 4)                            \
  X(DOUBLE, 2, "double", 8)                          \
  X(INT32, 3, "int32", 4)                            \
  X(UINT8, 4, "uint8", 1)                            \
  X(INT16, 5, "int16", 2)                            \
  X(INT8, 6, "int8", 1)                              \
  X(STRING, 7, "string", 24)                         \
  X(COMPLEX64, 8, "complex64", 8)                    \
  X(INT64, 9, "int64", 8)                            \
  X(BOOL, 10, "bool", 1)                             \
  X(QINT8, 11, "qint8", 1)                           \
  X(QUINT8, 12, "quint8", 1)                         \
  X(QINT32, 13, "qint32", 4)                         \
  X(BFLOAT16, 14, "bfloat16", 2)                     \
  X(QINT16, 15, "qint16", 2)                         \
  X(QUINT16, 16, "quint16", 2)                       \
  X(UINT16, 17, "uint16", 2)                         \
  X(COMPLEX128, 18, "complex128", 16)                \
  X(HALF, 19, "half", 2)                             \
  X(RESOURCE, 20, "resource", 8)                     \
  X(VARIANT, 21, "variant", 16)                      \
  X(UINT32, 22, "uint32", 4)                         \
  X(UINT64, 23, "uint64", 8)                         \
  X(FLOAT8_E5M2, 24, "float8_e5m2", 1)               \
  X(FLOAT8_E4M3FN, 25, "float8_e4m3fn", 1)           \
  X(FLOAT8_E4M3FNUZ, 26, "float8_e4m3fnuz", 1)       \
  X(FLOAT8_E4M3B11FNUZ, 27, "float8_e4m3b11fnuz", 1) \
  X(FLOAT8_E5M2FNUZ, 28, "float8_e5m2fnuz", 1)       \
  X(INT4, 29, "int4", 1)                             \
  X(UINT4, 30, "uint4", 1)                           \
  X(INT2, 31, "int2", 1)                             \
  X(UINT2, 32, "uint2", 1)                           \
  X(FLOAT4_E2M1FN, 33, "float4_e2m1fn", 1)

typedef enum weir_dtype_t {
  WEIR_DTYPE_INVALID = 0,
#define X(name, number, spelling, size) WEIR_DTYPE_##name = number,
  WEIR_DTYPE_LIST(X)
#undef X
      WEIR_DTYPE_COUNT = 34,   // one past the last base type: tables are indexed by dtype
  WEIR_DTYPE_REF_OFFSET = 100  // a reference to a variable of type T is T + 100
} weir_dtype_t;

WEIR_API size_t weir_dtype_size(weir_dtype_t dtype);  // bytes an element; 0 for INVALID or unknown
WEIR_API const char* weir_dtype_name(
    weir_dtype_t dtype);  // "float", "float_ref", "invalid"; static
WEIR_API bool weir_dtype_from_name(const char* name, size_t size,
                                   weir_dtype_t* out_dtype);  // takes "float32", "DT_FLOAT" too

// Classes of types. Each is false for references.
WEIR_API bool weir_dtype_is_valid(weir_dtype_t dtype);  // a base type of the list
WEIR_API bool weir_dtype_is_floating(
    weir_dtype_t dtype);  // half, bfloat16, float, double, float8, float4
WEIR_API bool weir_dtype_is_complex(weir_dtype_t dtype);
WEIR_API bool weir_dtype_is_integer(
    weir_dtype_t dtype);  // signed and unsigned, without quantised and bool
WEIR_API bool weir_dtype_is_plain(
    weir_dtype_t dtype);  // elements are bytes: not string, resource, variant

static inline bool weir_dtype_is_ref(weir_dtype_t dtype) { return dtype > WEIR_DTYPE_REF_OFFSET; }
static inline weir_dtype_t weir_dtype_base(weir_dtype_t dtype) {
  return weir_dtype_is_ref(dtype) ? (weir_dtype_t)(dtype - WEIR_DTYPE_REF_OFFSET) : dtype;
}
static inline weir_dtype_t weir_dtype_ref(weir_dtype_t dtype) {
  return (weir_dtype_t)(dtype + WEIR_DTYPE_REF_OFFSET);
}

#ifdef __cplusplus
}
#endif
#endif  // WEIR_DTYPE_H_
