// element_add.c — Adds runs of elements of any number type in place, for scatters and folds.
#include "kernel/elementwise/element_add.h"

#include "tensor/numeric.h"

// Two's complement: signed integers are added as unsigned ones of their size.
#define NAME u8
#define T uint8_t
#define LOAD(x) (unsigned)(x)
#define STORE(x) (uint8_t)(x)
#include "kernel/elementwise/element_add.inc"
#define NAME u16
#define T uint16_t
#define LOAD(x) (unsigned)(x)
#define STORE(x) (uint16_t)(x)
#include "kernel/elementwise/element_add.inc"
#define NAME u32
#define T uint32_t
#define LOAD(x) (x)
#define STORE(x) (x)
#include "kernel/elementwise/element_add.inc"
#define NAME u64
#define T uint64_t
#define LOAD(x) (x)
#define STORE(x) (x)
#include "kernel/elementwise/element_add.inc"
#define NAME float
#define T float
#define LOAD(x) (x)
#define STORE(x) (x)
#include "kernel/elementwise/element_add.inc"
#define NAME double
#define T double
#define LOAD(x) (x)
#define STORE(x) (x)
#include "kernel/elementwise/element_add.inc"
#define NAME complex64
#define T weir_complex64_t
#define LOAD(x) (x)
#define STORE(x) (x)
#include "kernel/elementwise/element_add.inc"
#define NAME complex128
#define T weir_complex128_t
#define LOAD(x) (x)
#define STORE(x) (x)
#include "kernel/elementwise/element_add.inc"
#define NAME half
#define T weir_half_t
#define LOAD(x) weir_half_to_float(x)
#define STORE(x) weir_half_from_float(x)
#include "kernel/elementwise/element_add.inc"
#define NAME bfloat16
#define T weir_bfloat16_t
#define LOAD(x) weir_bfloat16_to_float(x)
#define STORE(x) weir_bfloat16_from_float(x)
#include "kernel/elementwise/element_add.inc"

static void add_bool(void* dst, const void* src, int64_t count) {
  bool* y = dst;
  const bool* x = src;
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] || x[i];
}
static void sub_bool(void* dst, const void* src, int64_t count) {
  bool* y = dst;
  const bool* x = src;
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] && !x[i];
}

typedef struct pair_t {
  weir_element_add_fn_t add, sub;
} pair_t;

static const pair_t table[WEIR_DTYPE_COUNT] = {
    [WEIR_DTYPE_FLOAT] = {add_float, sub_float},
    [WEIR_DTYPE_DOUBLE] = {add_double, sub_double},
    [WEIR_DTYPE_HALF] = {add_half, sub_half},
    [WEIR_DTYPE_BFLOAT16] = {add_bfloat16, sub_bfloat16},
    [WEIR_DTYPE_COMPLEX64] = {add_complex64, sub_complex64},
    [WEIR_DTYPE_COMPLEX128] = {add_complex128, sub_complex128},
    [WEIR_DTYPE_BOOL] = {add_bool, sub_bool},
    [WEIR_DTYPE_INT8] = {add_u8, sub_u8},
    [WEIR_DTYPE_UINT8] = {add_u8, sub_u8},
    [WEIR_DTYPE_INT16] = {add_u16, sub_u16},
    [WEIR_DTYPE_UINT16] = {add_u16, sub_u16},
    [WEIR_DTYPE_INT32] = {add_u32, sub_u32},
    [WEIR_DTYPE_UINT32] = {add_u32, sub_u32},
    [WEIR_DTYPE_INT64] = {add_u64, sub_u64},
    [WEIR_DTYPE_UINT64] = {add_u64, sub_u64},
};

weir_element_add_fn_t weir_element_add_fn(weir_dtype_t dtype) {
  return (unsigned)dtype < WEIR_DTYPE_COUNT ? table[dtype].add : NULL;
}
weir_element_add_fn_t weir_element_sub_fn(weir_dtype_t dtype) {
  return (unsigned)dtype < WEIR_DTYPE_COUNT ? table[dtype].sub : NULL;
}
