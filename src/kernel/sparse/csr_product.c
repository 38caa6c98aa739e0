// csr_product.c — Rows of the product on all threads; each is summed up a chunk of columns at a
// time, which stays in registers and the nearest cache.
#include "kernel/sparse/csr_product.h"

#include <complex.h>
#include <string.h>

#include "tensor/numeric.h"

#define CHUNK 128
#define SAME(x) (x)

#define NAME float
#define T float
#define ACC float
#define LOAD SAME
#define STORE SAME
#define CONJ SAME
#include "kernel/sparse/csr_product.inc"

#define NAME double
#define T double
#define ACC double
#define LOAD SAME
#define STORE SAME
#define CONJ SAME
#include "kernel/sparse/csr_product.inc"

#define NAME half
#define T weir_half_t
#define ACC float
#define LOAD weir_half_to_float
#define STORE weir_half_from_float
#define CONJ SAME
#include "kernel/sparse/csr_product.inc"

#define NAME bfloat16
#define T weir_bfloat16_t
#define ACC float
#define LOAD weir_bfloat16_to_float
#define STORE weir_bfloat16_from_float
#define CONJ SAME
#include "kernel/sparse/csr_product.inc"

#define NAME int32
#define T uint32_t  // overflow wraps
#define ACC uint32_t
#define LOAD SAME
#define STORE SAME
#define CONJ SAME
#include "kernel/sparse/csr_product.inc"

#define NAME complex64
#define T weir_complex64_t
#define ACC weir_complex64_t
#define LOAD SAME
#define STORE SAME
#define CONJ conjf
#include "kernel/sparse/csr_product.inc"

#define NAME complex128
#define T weir_complex128_t
#define ACC weir_complex128_t
#define LOAD SAME
#define STORE SAME
#define CONJ conj
#include "kernel/sparse/csr_product.inc"

static const struct {
  weir_range_fn_t rows;
  weir_range_fn_t vector;
} loops[WEIR_DTYPE_COUNT] = {
    [WEIR_DTYPE_FLOAT] = {multiply_rows_float, multiply_vector_float},
    [WEIR_DTYPE_DOUBLE] = {multiply_rows_double, multiply_vector_double},
    [WEIR_DTYPE_HALF] = {multiply_rows_half, multiply_vector_half},
    [WEIR_DTYPE_BFLOAT16] = {multiply_rows_bfloat16, multiply_vector_bfloat16},
    [WEIR_DTYPE_INT32] = {multiply_rows_int32, multiply_vector_int32},
    [WEIR_DTYPE_COMPLEX64] = {multiply_rows_complex64, multiply_vector_complex64},
    [WEIR_DTYPE_COMPLEX128] = {multiply_rows_complex128, multiply_vector_complex128},
};

weir_status_t* weir_csr_multiply(weir_pool_t* pool, const weir_csr_product_t* product) {
  if (!loops[product->dtype].rows) {
    return WEIR_STATUS(UNIMPLEMENTED, "no product of sparse matrices of %s",
                       weir_dtype_name(product->dtype));
  }
  if (product->rows == 0 || product->width == 0) return NULL;
  weir_csr_product_t p = *product;
  const double terms = (double)p.starts[p.rows] / (double)p.rows;
  const double ns = 5 + (double)p.width * (0.3 + 0.3 * terms);
  weir_pool_for(pool, p.rows, ns, p.width == 1 ? loops[p.dtype].vector : loops[p.dtype].rows, &p);
  return NULL;
}

void weir_csr_count_rows(const int64_t* rows, int64_t count, int64_t row_count, int64_t* starts) {
  memset(starts, 0, sizeof(*starts) * (size_t)(row_count + 1));
  for (int64_t i = 0; i < count; ++i) ++starts[rows[i] + 1];
  for (int64_t r = 0; r < row_count; ++r) starts[r + 1] += starts[r];
}

void weir_csr_group(const int64_t* rows, int64_t count, int64_t row_count, int64_t* starts,
                    int64_t* order) {
  weir_csr_count_rows(rows, count, row_count, starts);
  for (int64_t i = 0; i < count; ++i) order[starts[rows[i]]++] = i;
  for (int64_t r = row_count; r > 0; --r) starts[r] = starts[r - 1];
  starts[0] = 0;
}
