// cast.c — Conversion between all plain types: direct loops between the core types, the rest
// through chunks of one of them.
#include "tensor/cast.h"

#include "tensor/narrow.h"
#include "tensor/numeric.h"

// The types that have direct loops. Every other plain type is unpacked into one of them, or packed
// from it.
typedef enum core_t {
  CORE_FLOAT,
  CORE_DOUBLE,
  CORE_BOOL,
  CORE_INT8,
  CORE_INT16,
  CORE_INT32,
  CORE_INT64,
  CORE_UINT8,
  CORE_UINT16,
  CORE_UINT32,
  CORE_UINT64,
  CORE_COUNT
} core_t;

typedef void (*cast_fn_t)(void* dst, const void* src, int64_t count);

#define S float
#define S_NAME float
#define S_IS_FLOAT 1
#include "tensor/cast_source.inc"
#define S double
#define S_NAME double
#define S_IS_FLOAT 1
#include "tensor/cast_source.inc"
#define S int8_t
#define S_NAME int8
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"
#define S int16_t
#define S_NAME int16
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"
#define S int32_t
#define S_NAME int32
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"
#define S int64_t
#define S_NAME int64
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"
#define S uint8_t
#define S_NAME uint8
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"
#define S uint16_t
#define S_NAME uint16
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"
#define S uint32_t
#define S_NAME uint32
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"
#define S uint64_t
#define S_NAME uint64
#define S_IS_FLOAT 0
#include "tensor/cast_source.inc"

static const cast_fn_t* const core_casts[CORE_COUNT] = {
    [CORE_FLOAT] = cast_from_float,   [CORE_DOUBLE] = cast_from_double,
    [CORE_BOOL] = cast_from_uint8,  // a byte of 0 or 1
    [CORE_INT8] = cast_from_int8,     [CORE_INT16] = cast_from_int16,
    [CORE_INT32] = cast_from_int32,   [CORE_INT64] = cast_from_int64,
    [CORE_UINT8] = cast_from_uint8,   [CORE_UINT16] = cast_from_uint16,
    [CORE_UINT32] = cast_from_uint32, [CORE_UINT64] = cast_from_uint64,
};

// ---- types that are not core: unpack reads their elements into a core type's, pack writes them
// ----

static void unpack_half(void* dst, const void* src, int64_t count) {
  const weir_half_t* x = src;
  float* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_half_to_float(x[i]);
}
static void pack_half(void* dst, const void* src, int64_t count) {
  const float* x = src;
  weir_half_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_half_from_float(x[i]);
}

static void unpack_bfloat16(void* dst, const void* src, int64_t count) {
  const weir_bfloat16_t* x = src;
  float* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_bfloat16_to_float(x[i]);
}
static void pack_bfloat16(void* dst, const void* src, int64_t count) {
  const float* x = src;
  weir_bfloat16_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_bfloat16_from_float(x[i]);
}

static void unpack_float8_e5m2(void* dst, const void* src, int64_t count) {
  const weir_float8_e5m2_t* x = src;
  float* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_float8_e5m2_to_float(x[i]);
}
static void pack_float8_e5m2(void* dst, const void* src, int64_t count) {
  const float* x = src;
  weir_float8_e5m2_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_float8_e5m2_from_float(x[i]);
}

static void unpack_float8_e4m3fn(void* dst, const void* src, int64_t count) {
  const weir_float8_e4m3fn_t* x = src;
  float* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_float8_e4m3fn_to_float(x[i]);
}
static void pack_float8_e4m3fn(void* dst, const void* src, int64_t count) {
  const float* x = src;
  weir_float8_e4m3fn_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_float8_e4m3fn_from_float(x[i]);
}

static void unpack_complex64(void* dst, const void* src, int64_t count) {
  const float* x = src;
  float* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = x[2 * i];
}
static void pack_complex64(void* dst, const void* src, int64_t count) {
  const float* x = src;
  float* y = dst;
  for (int64_t i = 0; i < count; ++i) {
    y[2 * i] = x[i];
    y[2 * i + 1] = 0;
  }
}

static void unpack_complex128(void* dst, const void* src, int64_t count) {
  const double* x = src;
  double* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = x[2 * i];
}
static void pack_complex128(void* dst, const void* src, int64_t count) {
  const double* x = src;
  double* y = dst;
  for (int64_t i = 0; i < count; ++i) {
    y[2 * i] = x[i];
    y[2 * i + 1] = 0;
  }
}

static void wrap_int4(void* dst, const void* src, int64_t count) {
  const int8_t* x = src;
  int8_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_int4_wrap(x[i]);
}

static void wrap_uint4(void* dst, const void* src, int64_t count) {
  const uint8_t* x = src;
  uint8_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = weir_uint4_wrap(x[i]);
}

static void wrap_int2(void* dst, const void* src, int64_t count) {
  const uint8_t* x = src;
  int8_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = (int8_t)(((x[i] & 3u) ^ 2u) - 2u);
}

static void wrap_uint2(void* dst, const void* src, int64_t count) {
  const uint8_t* x = src;
  uint8_t* y = dst;
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] & 3u;
}

static void unpack_narrow(const weir_narrow_t* format, float* y, const uint8_t* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = weir_narrow_to_float(format, x[i]);
}
static void pack_narrow(const weir_narrow_t* format, uint8_t* y, const float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = weir_narrow_from_float(format, x[i]);
}
#define NARROW(format)                                                     \
  static void unpack_##format(void* dst, const void* src, int64_t count) { \
    unpack_narrow(&weir_##format, dst, src, count);                        \
  }                                                                        \
  static void pack_##format(void* dst, const void* src, int64_t count) {   \
    pack_narrow(&weir_##format, dst, src, count);                          \
  }
NARROW(float8_e4m3fnuz)
NARROW(float8_e4m3b11fnuz)
NARROW(float8_e5m2fnuz)
NARROW(float4_e2m1fn)
#undef NARROW

typedef struct storage_t {
  core_t core;
  cast_fn_t unpack;  // NULL when the elements are the core type's
  cast_fn_t pack;    // NULL when |unpack| is
} storage_t;

static const storage_t storages[WEIR_DTYPE_COUNT] = {
    [WEIR_DTYPE_FLOAT] = {.core = CORE_FLOAT},
    [WEIR_DTYPE_DOUBLE] = {.core = CORE_DOUBLE},
    [WEIR_DTYPE_BOOL] = {.core = CORE_BOOL},
    [WEIR_DTYPE_INT8] = {.core = CORE_INT8},
    [WEIR_DTYPE_QINT8] = {.core = CORE_INT8},
    [WEIR_DTYPE_INT16] = {.core = CORE_INT16},
    [WEIR_DTYPE_QINT16] = {.core = CORE_INT16},
    [WEIR_DTYPE_INT32] = {.core = CORE_INT32},
    [WEIR_DTYPE_QINT32] = {.core = CORE_INT32},
    [WEIR_DTYPE_INT64] = {.core = CORE_INT64},
    [WEIR_DTYPE_UINT8] = {.core = CORE_UINT8},
    [WEIR_DTYPE_QUINT8] = {.core = CORE_UINT8},
    [WEIR_DTYPE_UINT16] = {.core = CORE_UINT16},
    [WEIR_DTYPE_QUINT16] = {.core = CORE_UINT16},
    [WEIR_DTYPE_UINT32] = {.core = CORE_UINT32},
    [WEIR_DTYPE_UINT64] = {.core = CORE_UINT64},
    [WEIR_DTYPE_HALF] = {CORE_FLOAT, unpack_half, pack_half},
    [WEIR_DTYPE_BFLOAT16] = {CORE_FLOAT, unpack_bfloat16, pack_bfloat16},
    [WEIR_DTYPE_FLOAT8_E5M2] = {CORE_FLOAT, unpack_float8_e5m2, pack_float8_e5m2},
    [WEIR_DTYPE_FLOAT8_E4M3FN] = {CORE_FLOAT, unpack_float8_e4m3fn, pack_float8_e4m3fn},
    [WEIR_DTYPE_COMPLEX64] = {CORE_FLOAT, unpack_complex64, pack_complex64},
    [WEIR_DTYPE_COMPLEX128] = {CORE_DOUBLE, unpack_complex128, pack_complex128},
    [WEIR_DTYPE_INT4] = {CORE_INT8, wrap_int4, wrap_int4},
    [WEIR_DTYPE_UINT4] = {CORE_UINT8, wrap_uint4, wrap_uint4},
    [WEIR_DTYPE_INT2] = {CORE_INT8, wrap_int2, wrap_int2},
    [WEIR_DTYPE_UINT2] = {CORE_UINT8, wrap_uint2, wrap_uint2},
    [WEIR_DTYPE_FLOAT8_E4M3FNUZ] = {CORE_FLOAT, unpack_float8_e4m3fnuz, pack_float8_e4m3fnuz},
    [WEIR_DTYPE_FLOAT8_E4M3B11FNUZ] = {CORE_FLOAT, unpack_float8_e4m3b11fnuz,
                                       pack_float8_e4m3b11fnuz},
    [WEIR_DTYPE_FLOAT8_E5M2FNUZ] = {CORE_FLOAT, unpack_float8_e5m2fnuz, pack_float8_e5m2fnuz},
    [WEIR_DTYPE_FLOAT4_E2M1FN] = {CORE_FLOAT, unpack_float4_e2m1fn, pack_float4_e2m1fn},
};

enum { CHUNK = 256 };  // elements: two buffers of 2 kB stay in the first-level cache

// Converts by chunks, so that the unpacked elements need no memory.
static void cast_chunks(const storage_t* to, char* dst, size_t dst_size, const storage_t* from,
                        const char* src, size_t src_size, int64_t count) {
  uint64_t unpacked[CHUNK];
  uint64_t converted[CHUNK];
  cast_fn_t cast = core_casts[from->core][to->core];
  while (count > 0) {
    int64_t n = WEIR_MIN(count, CHUNK);
    if (from->unpack) from->unpack(unpacked, src, n);
    cast(to->pack ? (void*)converted : dst, from->unpack ? (const void*)unpacked : src, n);
    if (to->pack) to->pack(dst, converted, n);
    src += (size_t)n * src_size;
    dst += (size_t)n * dst_size;
    count -= n;
  }
}

weir_status_t* weir_cast_elements(weir_dtype_t dst_dtype, void* dst, weir_dtype_t src_dtype,
                                  const void* src, int64_t count) {
  if (!weir_dtype_is_valid(dst_dtype) || !weir_dtype_is_plain(dst_dtype) ||
      !weir_dtype_is_valid(src_dtype) || !weir_dtype_is_plain(src_dtype)) {
    return WEIR_STATUS(UNIMPLEMENTED, "Cast %s to %s is not supported", weir_dtype_name(src_dtype),
                       weir_dtype_name(dst_dtype));
  }
  if (count <= 0) return NULL;
  const storage_t* to = &storages[dst_dtype];
  const storage_t* from = &storages[src_dtype];
  if (src_dtype == WEIR_DTYPE_FLOAT && (to->core == CORE_INT64 || to->core == CORE_UINT64)) {
    static const storage_t as_double = {.core = CORE_DOUBLE, .unpack = cast_float_double};
    from = &as_double;  // as wide as the integer, so that there is vector code
  }
  if (dst_dtype == src_dtype) {
    memcpy(dst, src, (size_t)count * weir_dtype_size(dst_dtype));
  } else if (weir_dtype_is_complex(dst_dtype) && weir_dtype_is_complex(src_dtype)) {
    core_casts[from->core][to->core](dst, src, 2 * count);
  } else if (!from->unpack && !to->pack) {
    core_casts[from->core][to->core](dst, src, count);
  } else if (from->core == to->core && !from->unpack) {
    to->pack(dst, src, count);
  } else if (from->core == to->core && !to->pack) {
    from->unpack(dst, src, count);
  } else {
    cast_chunks(to, dst, weir_dtype_size(dst_dtype), from, src, weir_dtype_size(src_dtype), count);
  }
  return NULL;
}

bool weir_element_to_double(weir_dtype_t dtype, const void* element, double* out_value) {
  weir_status_t* status = weir_cast_elements(WEIR_DTYPE_DOUBLE, out_value, dtype, element, 1);
  weir_status_destroy(status);
  return status == NULL;
}
