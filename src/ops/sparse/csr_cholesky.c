// csr_cholesky.c — SparseMatrixSparseCholesky: the Cholesky factor of a sparse matrix.
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "base/interrupt.h"
#include "kernel/sparse/sort.h"
#include "ops/sparse/csr.h"
#include "tensor/cast.h"
#include "tensor/numeric.h"

// ---- factorisation, row by row ----

typedef double _Complex number_t;

// The lower half of the matrix after the permutation: rows of columns and values.
typedef struct lower_t {
  int64_t* starts;  // rows + 1
  int64_t* columns;
  number_t* values;
} lower_t;

// The factor as it grows.
typedef struct factor_t {
  int64_t* starts;  // rows + 1
  int64_t* columns;
  number_t* values;
  size_t count, column_capacity, value_capacity;
  int64_t* parents;   // of the elimination tree; -1: none yet
  int64_t* marks;     // the row that last met a column
  uint64_t* pattern;  // columns of the row at hand
  int64_t* unused;    // numbers that are sorted along
  number_t* work;     // the row at hand, by column
} factor_t;

static number_t value_of(const weir_csr_t* m, int64_t e) {
  switch (m->dtype) {
    case WEIR_DTYPE_FLOAT: return WEIR_TENSOR_DATA(m->values, float)[e];
    case WEIR_DTYPE_DOUBLE: return WEIR_TENSOR_DATA(m->values, double)[e];
    case WEIR_DTYPE_COMPLEX64: return WEIR_TENSOR_DATA(m->values, weir_complex64_t)[e];
    default: return WEIR_TENSOR_DATA(m->values, weir_complex128_t)[e];
  }
}

// Where entry |e| of row |r| of one matrix goes; false: it is in the upper half, which is not read.
static bool place_entry(const weir_csr_t* m, int64_t r, int64_t e, const int64_t* places,
                        int64_t* out_row, int64_t* out_column, number_t* out_value) {
  const int64_t column = m->column_indices[e];
  if (column > r) return false;
  int64_t a = places[r], b = places[column];
  *out_row = WEIR_MAX(a, b);
  *out_column = WEIR_MIN(a, b);
  *out_value = a >= b ? value_of(m, e) : conj(value_of(m, e));
  return true;
}

static void permute(const weir_csr_t* m, int64_t batch, const int64_t* places, lower_t* out) {
  const int32_t* starts = weir_csr_row_starts(m, batch);
  const int64_t first = m->batch_starts[batch];
  int64_t row = 0, column = 0;
  number_t value = 0;
  memset(out->starts, 0, sizeof(int64_t) * (size_t)(m->rows + 1));
  for (int64_t r = 0; r < m->rows; ++r) {
    for (int64_t e = first + starts[r]; e < first + starts[r + 1]; ++e) {
      if (place_entry(m, r, e, places, &row, &column, &value)) ++out->starts[row + 1];
    }
  }
  for (int64_t r = 0; r < m->rows; ++r) out->starts[r + 1] += out->starts[r];
  for (int64_t r = 0; r < m->rows; ++r) {
    for (int64_t e = first + starts[r]; e < first + starts[r + 1]; ++e) {
      if (!place_entry(m, r, e, places, &row, &column, &value)) continue;
      int64_t at = out->starts[row]++;
      out->columns[at] = column;
      out->values[at] = value;
    }
  }
  for (int64_t r = m->rows; r > 0; --r) out->starts[r] = out->starts[r - 1];
  out->starts[0] = 0;
}

// Columns of row |i| of the factor: those of the matrix, and what the tree leads to from there.
static int64_t find_pattern(const lower_t* a, int64_t i, factor_t* f) {
  int64_t count = 0;
  f->marks[i] = i;
  for (int64_t e = a->starts[i]; e < a->starts[i + 1]; ++e) {
    for (int64_t k = a->columns[e]; k >= 0 && f->marks[k] != i; k = f->parents[k]) {
      if (f->parents[k] < 0) f->parents[k] = i;
      f->marks[k] = i;
      f->work[k] = 0;
      f->pattern[count++] = (uint64_t)k;
    }
  }
  return count;
}

static bool append(factor_t* f, int64_t column, number_t value) {
  if (!WEIR_GROW(f->columns, f->column_capacity, f->count + 1)) return false;
  if (!WEIR_GROW(f->values, f->value_capacity, f->count + 1)) return false;
  f->columns[f->count] = column;
  f->values[f->count++] = value;
  return true;
}

// The row's element in column |k|, whose row of the factor is complete.
static number_t solve(const factor_t* f, int64_t i, int64_t k) {
  number_t sum = f->work[k];
  const int64_t last = f->starts[k + 1] - 1;  // the diagonal
  for (int64_t e = f->starts[k]; e < last; ++e) {
    if (f->marks[f->columns[e]] == i) sum -= f->work[f->columns[e]] * conj(f->values[e]);
  }
  return sum / f->values[last];
}

static weir_status_t* factor_row(const lower_t* a, int64_t i, int64_t batch, factor_t* f) {
  int64_t count = find_pattern(a, i, f);
  double diagonal = 0;
  WEIR_TRY(weir_sort_keys(NULL, f->pattern, f->unused, count));
  for (int64_t e = a->starts[i]; e < a->starts[i + 1]; ++e) {
    if (a->columns[e] == i) diagonal += creal(a->values[e]);
    else f->work[a->columns[e]] += a->values[e];
  }
  for (int64_t p = 0; p < count; ++p) {
    const int64_t k = (int64_t)f->pattern[p];
    f->work[k] = solve(f, i, k);
    diagonal -= creal(f->work[k]) * creal(f->work[k]) + cimag(f->work[k]) * cimag(f->work[k]);
    if (!append(f, k, f->work[k])) return weir_out_of_memory();
  }
  if (!(diagonal > 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Sparse Cholesky factorization failed for batch index %" PRId64
                       ". The input might not be valid.",
                       batch);
  }
  if (!append(f, i, sqrt(diagonal))) return weir_out_of_memory();
  f->starts[i + 1] = (int64_t)f->count;
  return NULL;
}

// ---- the kernel ----

static weir_status_t* check_permutation(const weir_csr_t* m, const weir_tensor_t* permutation) {
  if (permutation->rank + 1 != m->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "permutation must have rank one less than the sparse matrix; got: %d and %d",
                       permutation->rank, m->rank);
  }
  if (permutation->dims[permutation->rank - 1] != m->rows) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "permutation must have the same number of elements in each batch as the "
                       "number of rows in sparse matrix; got: %" PRId64 " != %" PRId64,
                       permutation->dims[permutation->rank - 1], m->rows);
  }
  if (m->rank == 3 && permutation->dims[0] != m->batches) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "permutation must have the same batch size as sparse matrix; got: %" PRId64
                       " != %" PRId64,
                       permutation->dims[0], m->batches);
  }
  return NULL;
}

// Where each row goes: row permutation[i] of the matrix becomes row i.
static weir_status_t* invert(const int32_t* permutation, int64_t rows, int64_t* places) {
  for (int64_t i = 0; i < rows; ++i) places[i] = -1;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t row = permutation[i];
    if (row < 0 || row >= rows || places[row] >= 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "permutation is not a permutation of the rows");
    places[row] = i;
  }
  return NULL;
}

static weir_status_t* factor_batch(const weir_csr_t* m, int64_t batch, const int32_t* permutation,
                                   int64_t* places, lower_t* a, factor_t* f) {
  WEIR_TRY(invert(permutation, m->rows, places));
  permute(m, batch, places, a);
  f->count = 0;
  f->starts[0] = 0;
  for (int64_t r = 0; r < m->rows; ++r) f->parents[r] = f->marks[r] = -1;
  for (int64_t r = 0; r < m->rows; ++r) {
    WEIR_TRY(weir_interrupt_poll(r));
    WEIR_TRY(factor_row(a, r, batch, f));
  }
  return NULL;
}

// All factors, one after the other, as the parts of a matrix.
typedef struct result_t {
  int64_t* rows;  // batch, row and column of each entry
  number_t* values;
  size_t count, row_capacity, value_capacity;
} result_t;

static weir_status_t* keep_batch(const factor_t* f, int64_t rows, int64_t batch, result_t* out) {
  if (!WEIR_GROW(out->rows, out->row_capacity, 3 * (out->count + f->count)) ||
      !WEIR_GROW(out->values, out->value_capacity, out->count + f->count))
    return weir_out_of_memory();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t e = f->starts[r]; e < f->starts[r + 1]; ++e, ++out->count) {
      memcpy(out->rows + 3 * out->count, (const int64_t[]){batch, r, f->columns[e]},
             3 * sizeof(int64_t));
      out->values[out->count] = f->values[e];
    }
  }
  return NULL;
}

static weir_status_t* write_result(weir_kernel_ctx_t* ctx, const weir_csr_t* m,
                                   const result_t* result) {
  weir_csr_t out;
  weir_parcel_t* parcel = NULL;
  const int64_t count = (int64_t)result->count;
  WEIR_TRY(weir_csr_create(m->dtype, m->rank, m->dims, count, &parcel, &out));
  memset(out.batch_starts, 0, sizeof(int32_t) * (size_t)(out.batches + 1));
  memset(out.row_starts, 0, sizeof(int32_t) * (size_t)(out.batches * (out.rows + 1)));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* row = result->rows + 3 * i;
    ++out.batch_starts[row[0] + 1];
    ++out.row_starts[row[0] * (out.rows + 1) + row[1] + 1];
    out.column_indices[i] = (int32_t)row[2];
  }
  for (int64_t b = 0; b < out.batches; ++b) {
    int32_t* starts = out.row_starts + b * (out.rows + 1);
    out.batch_starts[b + 1] += out.batch_starts[b];
    for (int64_t r = 0; r < out.rows; ++r) starts[r + 1] += starts[r];
  }
  weir_status_t* status =
      weir_cast_elements(m->dtype, out.values->data, WEIR_DTYPE_COMPLEX128, result->values, count);
  if (!status) return weir_csr_output(ctx, 0, parcel);
  weir_variant_release(&parcel->base);
  return status;
}

static weir_status_t* factor_all(weir_kernel_ctx_t* ctx, const weir_csr_t* m) {
  const weir_tensor_t* permutation = weir_kernel_input(ctx, 1);
  const size_t rows = (size_t)m->rows, entries = (size_t)m->values->count;
  int64_t* places = weir_alloc_array(rows, sizeof(int64_t));
  lower_t a = {.starts = weir_alloc_array(rows + 1, sizeof(int64_t)),
               .columns = weir_alloc_array(entries, sizeof(int64_t)),
               .values = weir_alloc_array(entries, sizeof(number_t))};
  factor_t f = {.starts = weir_alloc_array(rows + 1, sizeof(int64_t)),
                .parents = weir_alloc_array(rows, sizeof(int64_t)),
                .marks = weir_alloc_array(rows, sizeof(int64_t)),
                .pattern = weir_alloc_array(rows, sizeof(uint64_t)),
                .unused = weir_calloc(rows, sizeof(int64_t)),
                .work = weir_alloc_array(rows, sizeof(number_t))};
  result_t result = {0};
  weir_status_t* status = places && a.starts && a.columns && a.values && f.starts && f.parents &&
                                  f.marks && f.pattern && f.unused && f.work
                              ? NULL
                              : weir_out_of_memory();
  for (int64_t b = 0; b < m->batches && !status; ++b) {
    const int32_t* own = WEIR_TENSOR_DATA(permutation, int32_t) + b * m->rows;
    status = factor_batch(m, b, own, places, &a, &f);
    if (!status) status = keep_batch(&f, m->rows, b, &result);
  }
  if (!status) status = write_result(ctx, m, &result);
  void* const owned[] = {places,    a.starts, a.columns,   a.values,     f.starts,
                         f.columns, f.values, f.parents,   f.marks,      f.pattern,
                         f.unused,  f.work,   result.rows, result.values};
  for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); ++i) weir_free(owned[i]);
  return status;
}

static weir_status_t* cholesky_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t want = weir_attrs_type(weir_kernel_attrs(ctx), "type");
  weir_csr_t m;
  WEIR_TRY(weir_csr_read(ctx, 0, &m));
  if (m.dtype != want) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dtype of input is not equal to 'type': %s vs. %s",
                       weir_dtype_name(m.dtype), weir_dtype_name(want));
  }
  WEIR_TRY(weir_csr_check_square(&m));
  WEIR_TRY(check_permutation(&m, weir_kernel_input(ctx, 1)));
  return factor_all(ctx, &m);
}

static weir_status_t* cholesky_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 1), 1));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 2));
  return weir_shape_set_scalar(ctx, 0);
}

const weir_op_module_t weir_ops_sparse_csr_cholesky = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseMatrixSparseCholesky",
         .attrs = "type: " CSR_TYPES,
         .inputs = "input: variant; permutation: int32",
         .outputs = "output: variant",
         .summary = "The Cholesky factor of a sparse matrix whose rows are reordered.",
         .infer_shape = cholesky_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cholesky_cpu)},
        {0}}};
