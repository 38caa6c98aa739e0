// update.c — In-place updates of flat elements.
#include "kernel/elementwise/update.h"

#include "tensor/numeric.h"

// Wide enough that no sum, difference or product of two int64 overflows: results wrap when stored.
__extension__ typedef __int128 weir_wide_t;

#define LOAD(x) (x)
#define STORE(x) ((T)(x))

#define NAME int8
#define T int8_t
#define C int
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME uint8
#define T uint8_t
#define C int
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME int16
#define T int16_t
#define C int
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME uint16
#define T uint16_t
#define C unsigned
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME int32
#define T int32_t
#define C int64_t
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME uint32
#define T uint32_t
#define C uint32_t
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME int64
#define T int64_t
#define C weir_wide_t
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME uint64
#define T uint64_t
#define C uint64_t
#define ZERO_FAILS 1
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME float
#define T float
#define C float
#define ZERO_FAILS 0
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME double
#define T double
#define C double
#define ZERO_FAILS 0
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#define NAME complex64
#define T weir_complex64_t
#define C weir_complex64_t
#define ZERO_FAILS 0
#define ORDERED 0
#include "kernel/elementwise/update.inc"

#define NAME complex128
#define T weir_complex128_t
#define C weir_complex128_t
#define ZERO_FAILS 0
#define ORDERED 0
#include "kernel/elementwise/update.inc"

#undef LOAD
#undef STORE
#define LOAD(x) weir_half_to_float(x)
#define STORE(x) weir_half_from_float(x)
#define NAME half
#define T weir_half_t
#define C float
#define ZERO_FAILS 0
#define ORDERED 1
#include "kernel/elementwise/update.inc"

#undef LOAD
#undef STORE
#define LOAD(x) weir_bfloat16_to_float(x)
#define STORE(x) weir_bfloat16_from_float(x)
#define NAME bfloat16
#define T weir_bfloat16_t
#define C float
#define ZERO_FAILS 0
#define ORDERED 1
#include "kernel/elementwise/update.inc"

static const weir_update_fn_t update_table[WEIR_UPDATE_COUNT][WEIR_DTYPE_COUNT] = {
    [WEIR_UPDATE_ADD] = {[WEIR_DTYPE_INT8] = int8_add,
                         [WEIR_DTYPE_UINT8] = uint8_add,
                         [WEIR_DTYPE_INT16] = int16_add,
                         [WEIR_DTYPE_UINT16] = uint16_add,
                         [WEIR_DTYPE_INT32] = int32_add,
                         [WEIR_DTYPE_UINT32] = uint32_add,
                         [WEIR_DTYPE_INT64] = int64_add,
                         [WEIR_DTYPE_UINT64] = uint64_add,
                         [WEIR_DTYPE_FLOAT] = float_add,
                         [WEIR_DTYPE_DOUBLE] = double_add,
                         [WEIR_DTYPE_HALF] = half_add,
                         [WEIR_DTYPE_BFLOAT16] = bfloat16_add,
                         [WEIR_DTYPE_COMPLEX64] = complex64_add,
                         [WEIR_DTYPE_COMPLEX128] = complex128_add},
    [WEIR_UPDATE_SUB] = {[WEIR_DTYPE_INT8] = int8_sub,
                         [WEIR_DTYPE_UINT8] = uint8_sub,
                         [WEIR_DTYPE_INT16] = int16_sub,
                         [WEIR_DTYPE_UINT16] = uint16_sub,
                         [WEIR_DTYPE_INT32] = int32_sub,
                         [WEIR_DTYPE_UINT32] = uint32_sub,
                         [WEIR_DTYPE_INT64] = int64_sub,
                         [WEIR_DTYPE_UINT64] = uint64_sub,
                         [WEIR_DTYPE_FLOAT] = float_sub,
                         [WEIR_DTYPE_DOUBLE] = double_sub,
                         [WEIR_DTYPE_HALF] = half_sub,
                         [WEIR_DTYPE_BFLOAT16] = bfloat16_sub,
                         [WEIR_DTYPE_COMPLEX64] = complex64_sub,
                         [WEIR_DTYPE_COMPLEX128] = complex128_sub},
    [WEIR_UPDATE_MUL] = {[WEIR_DTYPE_INT8] = int8_mul,
                         [WEIR_DTYPE_UINT8] = uint8_mul,
                         [WEIR_DTYPE_INT16] = int16_mul,
                         [WEIR_DTYPE_UINT16] = uint16_mul,
                         [WEIR_DTYPE_INT32] = int32_mul,
                         [WEIR_DTYPE_UINT32] = uint32_mul,
                         [WEIR_DTYPE_INT64] = int64_mul,
                         [WEIR_DTYPE_UINT64] = uint64_mul,
                         [WEIR_DTYPE_FLOAT] = float_mul,
                         [WEIR_DTYPE_DOUBLE] = double_mul,
                         [WEIR_DTYPE_HALF] = half_mul,
                         [WEIR_DTYPE_BFLOAT16] = bfloat16_mul,
                         [WEIR_DTYPE_COMPLEX64] = complex64_mul,
                         [WEIR_DTYPE_COMPLEX128] = complex128_mul},
    [WEIR_UPDATE_DIV] = {[WEIR_DTYPE_INT8] = int8_div,
                         [WEIR_DTYPE_UINT8] = uint8_div,
                         [WEIR_DTYPE_INT16] = int16_div,
                         [WEIR_DTYPE_UINT16] = uint16_div,
                         [WEIR_DTYPE_INT32] = int32_div,
                         [WEIR_DTYPE_UINT32] = uint32_div,
                         [WEIR_DTYPE_INT64] = int64_div,
                         [WEIR_DTYPE_UINT64] = uint64_div,
                         [WEIR_DTYPE_FLOAT] = float_div,
                         [WEIR_DTYPE_DOUBLE] = double_div,
                         [WEIR_DTYPE_HALF] = half_div,
                         [WEIR_DTYPE_BFLOAT16] = bfloat16_div,
                         [WEIR_DTYPE_COMPLEX64] = complex64_div,
                         [WEIR_DTYPE_COMPLEX128] = complex128_div},
    [WEIR_UPDATE_MIN] = {[WEIR_DTYPE_INT8] = int8_min,
                         [WEIR_DTYPE_UINT8] = uint8_min,
                         [WEIR_DTYPE_INT16] = int16_min,
                         [WEIR_DTYPE_UINT16] = uint16_min,
                         [WEIR_DTYPE_INT32] = int32_min,
                         [WEIR_DTYPE_UINT32] = uint32_min,
                         [WEIR_DTYPE_INT64] = int64_min,
                         [WEIR_DTYPE_UINT64] = uint64_min,
                         [WEIR_DTYPE_FLOAT] = float_min,
                         [WEIR_DTYPE_DOUBLE] = double_min,
                         [WEIR_DTYPE_HALF] = half_min,
                         [WEIR_DTYPE_BFLOAT16] = bfloat16_min},
    [WEIR_UPDATE_MAX] = {[WEIR_DTYPE_INT8] = int8_max,
                         [WEIR_DTYPE_UINT8] = uint8_max,
                         [WEIR_DTYPE_INT16] = int16_max,
                         [WEIR_DTYPE_UINT16] = uint16_max,
                         [WEIR_DTYPE_INT32] = int32_max,
                         [WEIR_DTYPE_UINT32] = uint32_max,
                         [WEIR_DTYPE_INT64] = int64_max,
                         [WEIR_DTYPE_UINT64] = uint64_max,
                         [WEIR_DTYPE_FLOAT] = float_max,
                         [WEIR_DTYPE_DOUBLE] = double_max,
                         [WEIR_DTYPE_HALF] = half_max,
                         [WEIR_DTYPE_BFLOAT16] = bfloat16_max},
};

weir_update_fn_t weir_update_find(weir_update_op_t update, weir_dtype_t dtype) {
  return (unsigned)dtype < WEIR_DTYPE_COUNT ? update_table[update][dtype] : NULL;
}

typedef struct update_job_t {
  weir_update_fn_t fn;
  char* dst;
  const char* src;
  int64_t size;  // bytes an element
} update_job_t;

static void update_range(void* arg, int64_t begin, int64_t end) {
  update_job_t* job = arg;
  (void)job->fn(job->dst + begin * job->size, job->src + begin * job->size, end - begin, false);
}

void weir_update_parallel(weir_pool_t* pool, weir_update_fn_t fn, weir_dtype_t dtype, void* dst,
                          const void* src, int64_t count) {
  update_job_t job = {.fn = fn, .dst = dst, .src = src, .size = (int64_t)weir_dtype_size(dtype)};
  weir_pool_for(pool, count, 0.5, update_range, &job);
}
