// dtype.c — The table of element types: sizes, spellings and classes.
#include "weir/dtype.h"

#include <string.h>

#include "base/base.h"
#include "weir/argument.h"

typedef struct dtype_row_t {
  const char* name;       // "float"
  const char* ref_name;   // "float_ref"
  const char* enum_name;  // "FLOAT", what follows DT_
  size_t size;
} dtype_row_t;

static const dtype_row_t rows[WEIR_DTYPE_COUNT] = {
#define X(name, number, spelling, size) [number] = {spelling, spelling "_ref", #name, size},
    WEIR_DTYPE_LIST(X)
#undef X
};

static const struct {
  const char* name;
  weir_dtype_t dtype;
} aliases[] = {
    {"float32", WEIR_DTYPE_FLOAT}, {"float64", WEIR_DTYPE_DOUBLE}, {"float16", WEIR_DTYPE_HALF}};

bool weir_dtype_is_valid(weir_dtype_t dtype) {
  return (size_t)dtype < WEIR_DTYPE_COUNT && rows[dtype].name;
}

size_t weir_dtype_size(weir_dtype_t dtype) {
  return weir_dtype_is_valid(dtype) ? rows[dtype].size : 0;
}

const char* weir_dtype_name(weir_dtype_t dtype) {
  weir_dtype_t base = weir_dtype_base(dtype);
  if (!weir_dtype_is_valid(base)) return "invalid";
  return weir_dtype_is_ref(dtype) ? rows[base].ref_name : rows[base].name;
}

static weir_dtype_t find_spelling(weir_view_t name) {
  for (int i = 0; i < WEIR_DTYPE_COUNT; ++i) {
    if (rows[i].name && weir_view_is(name, rows[i].name)) return (weir_dtype_t)i;
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(aliases); ++i) {
    if (weir_view_is(name, aliases[i].name)) return aliases[i].dtype;
  }
  return WEIR_DTYPE_INVALID;
}

static weir_dtype_t find_enum_name(weir_view_t name) {
  for (int i = 0; i < WEIR_DTYPE_COUNT; ++i) {
    if (rows[i].name && weir_view_is(name, rows[i].enum_name)) return (weir_dtype_t)i;
  }
  return WEIR_DTYPE_INVALID;
}

// Cuts |suffix| off the end of *|name|; false when it does not end so.
static bool cut_suffix(weir_view_t* name, const char* suffix) {
  size_t size = strlen(suffix);
  if (name->size < size || memcmp(name->data + name->size - size, suffix, size) != 0) return false;
  name->size -= size;
  return true;
}

bool weir_dtype_from_name(const char* name, size_t size, weir_dtype_t* out_dtype) {
  WEIR_ASSERT_ARG(name);
  WEIR_ASSERT_ARG(out_dtype);
  weir_view_t view = weir_view(name, size);
  bool is_enum = size > 3 && memcmp(name, "DT_", 3) == 0;
  if (is_enum) view = weir_view(name + 3, size - 3);
  bool is_ref = cut_suffix(&view, is_enum ? "_REF" : "_ref");
  weir_dtype_t base = is_enum ? find_enum_name(view) : find_spelling(view);
  if (base == WEIR_DTYPE_INVALID) return false;
  *out_dtype = is_ref ? weir_dtype_ref(base) : base;
  return true;
}

bool weir_dtype_is_floating(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_HALF:
    case WEIR_DTYPE_BFLOAT16:
    case WEIR_DTYPE_FLOAT:
    case WEIR_DTYPE_DOUBLE:
    case WEIR_DTYPE_FLOAT8_E5M2:
    case WEIR_DTYPE_FLOAT8_E4M3FN:
    case WEIR_DTYPE_FLOAT8_E4M3FNUZ:
    case WEIR_DTYPE_FLOAT8_E4M3B11FNUZ:
    case WEIR_DTYPE_FLOAT8_E5M2FNUZ:
    case WEIR_DTYPE_FLOAT4_E2M1FN: return true;
    default: return false;
  }
}

bool weir_dtype_is_complex(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_COMPLEX64 || dtype == WEIR_DTYPE_COMPLEX128;
}

bool weir_dtype_is_integer(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_INT2:
    case WEIR_DTYPE_INT4:
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_INT64:
    case WEIR_DTYPE_UINT2:
    case WEIR_DTYPE_UINT4:
    case WEIR_DTYPE_UINT8:
    case WEIR_DTYPE_UINT16:
    case WEIR_DTYPE_UINT32:
    case WEIR_DTYPE_UINT64: return true;
    default: return false;
  }
}

bool weir_dtype_is_plain(weir_dtype_t dtype) {
  return weir_dtype_is_valid(dtype) && dtype != WEIR_DTYPE_STRING && dtype != WEIR_DTYPE_RESOURCE &&
         dtype != WEIR_DTYPE_VARIANT;
}
