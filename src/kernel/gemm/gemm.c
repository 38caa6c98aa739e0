// gemm.c — Matrix products: fixed blocks over the pool, each by a kernel of our own, by the BLAS,
// or by plain loops.
#include "kernel/gemm/gemm.h"

#include "base/alloc.h"
#include "kernel/gemm/blas.h"
#include "kernel/gemm/gemm_packed.h"
#include "tensor/cast.h"

// A panel of B that stays in the cache, for the loops.
#define GEMM_DEPTH 64
#define GEMM_WIDTH 64
// Products below this many multiplications are not worth a call into a BLAS.
#define TINY_PRODUCT 512
// Blocks of the parallel split: few and large, as each packs its operands anew.
#define MIN_BLOCK 128
#define MAX_BLOCKS 32
#define MIN_BLOCK_WORK (1 << 20)
// More work than this, a fraction of a second, is not to be done without a look at an interrupt.
#define MAX_BLOCK_WORK 2147483648.0

typedef struct gemm_split_t {
  int64_t row_block;
  int64_t col_block;
  int64_t row_blocks;
  int64_t col_blocks;
} gemm_split_t;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A function of the sizes only, so that results do not depend on the number of threads.
static gemm_split_t split_product(int64_t m, int64_t n, int64_t k) {
  gemm_split_t s = {.row_block = m, .col_block = n, .row_blocks = 1, .col_blocks = 1};
  double work = (double)m * (double)n * (double)WEIR_MAX(k, 1);
  if (work < 2.0 * MIN_BLOCK_WORK) return s;
  double few = WEIR_MIN(work / MIN_BLOCK_WORK, (double)MAX_BLOCKS);
  int64_t wanted = (int64_t)WEIR_MIN(WEIR_MAX(few, work / MAX_BLOCK_WORK), 1e9);
  bool rows_first = m >= n;
  int64_t first = WEIR_MIN(wanted, ceil_div(rows_first ? m : n, MIN_BLOCK));
  int64_t second = WEIR_MIN(WEIR_MAX(wanted / first, 1), ceil_div(rows_first ? n : m, MIN_BLOCK));
  // Multiples of 16 keep the micro-kernels of a BLAS whole.
  s.row_block = ceil_div(ceil_div(m, rows_first ? first : second), 16) * 16;
  s.col_block = ceil_div(ceil_div(n, rows_first ? second : first), 16) * 16;
  s.row_blocks = ceil_div(m, s.row_block);
  s.col_blocks = ceil_div(n, s.col_block);
  return s;
}

// The BLAS counts in int, and leaves C alone where k is 0.
static bool fits_blas(int64_t a, int64_t b, int64_t c) {
  return a > 0 && b > 0 && c > 0 && a <= INT32_MAX && b <= INT32_MAX && c <= INT32_MAX;
}

static weir_blas_trans_t blas_trans(weir_trans_t trans) {
  return trans == WEIR_NO_TRANS ? WEIR_BLAS_NO_TRANS
         : trans == WEIR_TRANS  ? WEIR_BLAS_TRANS
                                : WEIR_BLAS_CONJ_TRANS;
}

#define T float
#define SUFFIX float
#define ACC float
#define CONJ(v) (v)
#define BLAS_GEMM sgemm
#define BLAS_GEMV sgemv
#define SCALAR(v) (v)
#define PACKED_GEMM
#include "kernel/gemm/gemm_type.inc"

#define T double
#define SUFFIX double
#define ACC double
#define CONJ(v) (v)
#define BLAS_GEMM dgemm
#define BLAS_GEMV dgemv
#define SCALAR(v) (v)
#include "kernel/gemm/gemm_type.inc"

#define T weir_complex64_t
#define SUFFIX complex64
#define ACC weir_complex64_t
#define CONJ(v) conjf(v)
#define BLAS_GEMM cgemm
#define SCALAR(v) (&(v))
#include "kernel/gemm/gemm_type.inc"

#define T weir_complex128_t
#define SUFFIX complex128
#define ACC weir_complex128_t
#define CONJ(v) conj(v)
#define BLAS_GEMM zgemm
#define SCALAR(v) (&(v))
#include "kernel/gemm/gemm_type.inc"

#define T int16_t
#define SUFFIX int16
#define ACC uint32_t
#define CONJ(v) (v)
#include "kernel/gemm/gemm_type.inc"

#define T int32_t
#define SUFFIX int32
#define ACC uint32_t
#define CONJ(v) (v)
#include "kernel/gemm/gemm_type.inc"

#define T int64_t
#define SUFFIX int64
#define ACC uint64_t
#define CONJ(v) (v)
#include "kernel/gemm/gemm_type.inc"

#define GEMM_JOB(type)                                                                      \
  {                                                                                         \
    .trans_a = trans_a, .trans_b = trans_b, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, \
    .ldc = ldc, .a = a, .b = b, .c = c, .alpha = alpha, .beta = beta                        \
  }

void weir_gemm(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m, int64_t n,
               int64_t k, float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
               float beta, float* c, int64_t ldc) {
  gemm_job_float job = GEMM_JOB(float);
  gemm_run_float(pool, &job);
}

void weir_gemm_double(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m,
                      int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
                      const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  gemm_job_double job = GEMM_JOB(double);
  gemm_run_double(pool, &job);
}

void weir_gemm_complex64(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m,
                         int64_t n, int64_t k, weir_complex64_t alpha, const weir_complex64_t* a,
                         int64_t lda, const weir_complex64_t* b, int64_t ldb, weir_complex64_t beta,
                         weir_complex64_t* c, int64_t ldc) {
  gemm_job_complex64 job = GEMM_JOB(complex64);
  gemm_run_complex64(pool, &job);
}

void weir_gemm_complex128(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m,
                          int64_t n, int64_t k, weir_complex128_t alpha, const weir_complex128_t* a,
                          int64_t lda, const weir_complex128_t* b, int64_t ldb,
                          weir_complex128_t beta, weir_complex128_t* c, int64_t ldc) {
  gemm_job_complex128 job = GEMM_JOB(complex128);
  gemm_run_complex128(pool, &job);
}

// ---- any type ----

// The type to compute in; INVALID when the combination has no code.
static weir_dtype_t compute_type(const weir_gemm_args_t* args) {
  switch (args->dtype_c) {
    case WEIR_DTYPE_HALF:
    case WEIR_DTYPE_BFLOAT16: return WEIR_DTYPE_FLOAT;
    case WEIR_DTYPE_FLOAT:
    case WEIR_DTYPE_DOUBLE:
    case WEIR_DTYPE_COMPLEX64:
    case WEIR_DTYPE_COMPLEX128:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_INT64: return args->dtype_c;
    default: return WEIR_DTYPE_INVALID;
  }
}

// Points *|out_data| at the elements as |to|: the original, or a copy in *|out_copy|.
static weir_status_t* as_type(weir_dtype_t from, const void* data, int64_t count, weir_dtype_t to,
                              void** out_copy, const void** out_data) {
  *out_data = data;
  if (from == to) return NULL;
  *out_copy = weir_alloc_array((size_t)count, weir_dtype_size(to));
  if (!*out_copy) return weir_out_of_memory();
  *out_data = *out_copy;
  return weir_cast_elements(to, *out_copy, from, data, count);
}

static void gemm_same(weir_pool_t* pool, weir_dtype_t dtype, const weir_gemm_args_t* p,
                      const void* a, const void* b, void* c) {
  int64_t lda = p->trans_a == WEIR_NO_TRANS ? p->k : p->m;
  int64_t ldb = p->trans_b == WEIR_NO_TRANS ? p->n : p->k;
#define JOB_OF(suffix)                               \
  gemm_job_##suffix job = {.trans_a = p->trans_a,    \
                           .trans_b = p->trans_b,    \
                           .m = p->m,                \
                           .n = p->n,                \
                           .k = p->k,                \
                           .lda = WEIR_MAX(lda, 1),  \
                           .ldb = WEIR_MAX(ldb, 1),  \
                           .ldc = WEIR_MAX(p->n, 1), \
                           .a = a,                   \
                           .b = b,                   \
                           .c = c,                   \
                           .alpha = 1,               \
                           .beta = 0};               \
  gemm_run_##suffix(pool, &job);                     \
  break
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: {
      JOB_OF(float);
    }
    case WEIR_DTYPE_DOUBLE: {
      JOB_OF(double);
    }
    case WEIR_DTYPE_COMPLEX64: {
      JOB_OF(complex64);
    }
    case WEIR_DTYPE_COMPLEX128: {
      JOB_OF(complex128);
    }
    case WEIR_DTYPE_INT16: {
      JOB_OF(int16);
    }
    case WEIR_DTYPE_INT32: {
      JOB_OF(int32);
    }
    default: {
      JOB_OF(int64);
    }
  }
#undef JOB_OF
}

weir_status_t* weir_gemm_any(weir_pool_t* pool, const weir_gemm_args_t* args) {
  weir_dtype_t dtype = compute_type(args);
  if (dtype == WEIR_DTYPE_INVALID) {
    return WEIR_STATUS(UNIMPLEMENTED, "No matrix product of %s and %s into %s",
                       weir_dtype_name(args->dtype_a), weir_dtype_name(args->dtype_b),
                       weir_dtype_name(args->dtype_c));
  }
  void* a_copy = NULL;
  void* b_copy = NULL;
  void* c_copy = NULL;
  const void* a;
  const void* b;
  weir_status_t* status = as_type(args->dtype_a, args->a, args->m * args->k, dtype, &a_copy, &a);
  if (status) goto done;
  status = as_type(args->dtype_b, args->b, args->k * args->n, dtype, &b_copy, &b);
  if (status) goto done;
  if (args->dtype_c == dtype) {
    gemm_same(pool, dtype, args, a, b, args->c);
    goto done;
  }
  c_copy = weir_alloc_array((size_t)(args->m * args->n), weir_dtype_size(dtype));
  if (!c_copy) {
    status = weir_out_of_memory();
    goto done;
  }
  gemm_same(pool, dtype, args, a, b, c_copy);
  status = weir_cast_elements(args->dtype_c, args->c, dtype, c_copy, args->m * args->n);
done:
  weir_free(a_copy);
  weir_free(b_copy);
  weir_free(c_copy);
  return status;
}
