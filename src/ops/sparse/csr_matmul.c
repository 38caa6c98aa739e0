// csr_matmul.c — SparseMatrixTranspose, SparseMatrixMatMul, SparseMatrixSparseMatMul: products of
// sparse matrices with dense and with sparse ones.
#include <complex.h>

#include "base/interrupt.h"
#include "kernel/sparse/csr_product.h"
#include "kernel/sparse/sort.h"
#include "ops/math/common.h"
#include "ops/sparse/csr.h"
#include "tensor/numeric.h"

static weir_status_t* scalar_inputs_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

// ---- transposition ----

static weir_status_t* transpose_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t want = weir_attrs_type(weir_kernel_attrs(ctx), "type");
  weir_csr_t m, out;
  weir_parcel_t* parcel = NULL;
  WEIR_TRY(weir_csr_read(ctx, 0, &m));
  if (m.dtype != want) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dtype of input is not equal to 'type': %s vs. %s",
                       weir_dtype_name(m.dtype), weir_dtype_name(want));
  }
  WEIR_TRY(
      weir_csr_transpose(&m, weir_attrs_bool(weir_kernel_attrs(ctx), "conjugate"), &parcel, &out));
  return weir_csr_output(ctx, 0, parcel);
}

static weir_status_t* transpose_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0,
      weir_grad_node_like(g, "SparseMatrixTranspose", WEIR_EDGES(weir_grad_dy(g, 0)),
                          WEIR_NAMES("type", "conjugate")));
}

// ---- what both products share ----

typedef struct flags_t {
  bool transpose_a, transpose_b, adjoint_a, adjoint_b;
  bool transpose_output, conjugate_output;
} flags_t;

static weir_status_t* flags_init(const weir_kernel_init_t* init, void* state) {
  flags_t* f = state;
  const weir_attrs_t attrs = init->node->attrs;
  f->transpose_a = weir_attrs_bool(attrs, "transpose_a");
  f->transpose_b = weir_attrs_bool(attrs, "transpose_b");
  f->adjoint_a = weir_attrs_bool(attrs, "adjoint_a");
  f->adjoint_b = weir_attrs_bool(attrs, "adjoint_b");
  if (weir_attrs_find(attrs, "transpose_output")) {
    f->transpose_output = weir_attrs_bool(attrs, "transpose_output");
    f->conjugate_output = weir_attrs_bool(attrs, "conjugate_output");
  }
  if (f->adjoint_a && f->transpose_a) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Only one of adjoint_a and transpose_a may be true.");
  }
  if (f->adjoint_b && f->transpose_b) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Only one of adjoint_b and transpose_b may be true.");
  }
  return NULL;
}

// |m| itself, or what its flags make of it, which *|out_made| then owns.
static weir_status_t* apply_flags(const weir_csr_t* m, bool transpose, bool adjoint,
                                  weir_parcel_t** out_made, weir_csr_t* out) {
  *out = *m;
  return transpose || adjoint ? weir_csr_transpose(m, adjoint, out_made, out) : NULL;
}

// ---- with dense matrices ----

static weir_status_t* matmul_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* b = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  WEIR_TRY(weir_shape_at_least(ctx, b, 2));
  WEIR_TRY(weir_shape_at_most(ctx, b, 3));
  if (b->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  const bool flipped = weir_attrs_bool(attrs, "transpose_b") || weir_attrs_bool(attrs, "adjoint_b");
  int64_t dims[3] = {b->dims[0], -1, -1};
  int64_t width = b->dims[b->rank - (flipped ? 2 : 1)];
  const bool is_flat = weir_attrs_bool(attrs, "transpose_output");
  dims[b->rank - 2] = is_flat ? width : -1;
  dims[b->rank - 1] = is_flat ? -1 : width;
  if (b->rank == 3) dims[0] = -1;
  return weir_shape_set_dims(ctx, 0, b->rank, dims);
}

static weir_status_t* check_dense(const weir_csr_t* a, const weir_tensor_t* b, bool flipped,
                                  const weir_csr_t* original) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (weir_tensor_type(b) != a->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input types don't match: a.dtype == %s vs. b.dtype == %s",
                       weir_dtype_name(a->dtype), weir_dtype_name(weir_tensor_type(b)));
  }
  if (b->rank != a->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Ranks of a and b must match, saw: %d vs. %d.", a->rank,
                       b->rank);
  }
  if (a->rank == 3 && a->batches != b->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Batch sizes of a and b must match, saw: %" PRId64 " vs. %" PRId64 ".",
                       a->batches, b->dims[0]);
  }
  if (a->columns != b->dims[b->rank - (flipped ? 1 : 2)]) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "Inner product dimensions of A and B do not agree. Shapes are: %s vs. %s",
        weir_shape_text(original->rank, original->dims, x), weir_tensor_shape_text(b, y));
  }
  return NULL;
}

// Copies |count| matrices of rows x columns transposed.
static weir_status_t* flip(weir_pool_t* pool, weir_dtype_t dtype, int64_t count, int64_t rows,
                           int64_t columns, const void* src, void* dst) {
  weir_move_dim_t box[] = {
      {count, rows * columns, rows * columns}, {rows, columns, 1}, {columns, 1, rows}};
  return weir_move_box(pool, dtype, 3, box, src, dst);
}

static void conjugate(weir_dtype_t dtype, void* data, int64_t count) {
  if (weir_dtype_is_complex(dtype)) weir_unary_find(WEIR_UNARY_CONJ, dtype)(data, data, count);
}

// c = a * b of one matrix of the batch. |work| holds starts and columns as 64-bit numbers.
static weir_status_t* multiply_batch(weir_pool_t* pool, const weir_csr_t* a, int64_t batch,
                                     const char* b, int64_t width, char* c, int64_t* work) {
  const size_t size = weir_dtype_size(a->dtype);
  const int32_t* starts = weir_csr_row_starts(a, batch);
  const int64_t first = a->batch_starts[batch], count = weir_csr_count(a, batch);
  int64_t* columns = work + a->rows + 1;
  for (int64_t r = 0; r <= a->rows; ++r) work[r] = starts[r];
  for (int64_t e = 0; e < count; ++e) columns[e] = a->column_indices[first + e];
  return weir_csr_multiply(
      pool, &(weir_csr_product_t){.dtype = a->dtype,
                                  .rows = a->rows,
                                  .width = width,
                                  .starts = work,
                                  .columns = columns,
                                  .values = (const char*)a->values->data + (size_t)first * size,
                                  .b = b + (size_t)(batch * a->columns * width) * size,
                                  .c = c + (size_t)(batch * a->rows * width) * size});
}

// The product, in |c|, which has room for it.
static weir_status_t* multiply_dense(weir_kernel_ctx_t* ctx, const weir_csr_t* a,
                                     const weir_tensor_t* b, int64_t width, void* c) {
  const flags_t* f = ctx->state;
  weir_pool_t* pool = weir_kernel_pool(ctx);
  weir_tensor_t* flipped = NULL;
  weir_status_t* status = NULL;
  int64_t most = 0;
  for (int64_t i = 0; i < a->batches; ++i) most = WEIR_MAX(most, weir_csr_count(a, i));
  int64_t* work = weir_alloc_array((size_t)(a->rows + 1 + most), sizeof(*work));
  if (!work) return weir_out_of_memory();
  const char* data = b->data;
  if (f->transpose_b || f->adjoint_b) {
    status = weir_kernel_scratch(ctx, a->dtype, b->count, &flipped);
    if (!status)
      status = flip(pool, a->dtype, a->batches, width, a->columns, b->data, flipped->data);
    if (!status && f->adjoint_b) conjugate(a->dtype, flipped->data, flipped->count);
    if (!status) data = flipped->data;
  }
  for (int64_t i = 0; i < a->batches && !status; ++i)
    status = multiply_batch(pool, a, i, data, width, c, work);
  weir_tensor_release(flipped);
  weir_free(work);
  return status;
}

static weir_status_t* write_product(weir_kernel_ctx_t* ctx, const weir_csr_t* a,
                                    const weir_tensor_t* b) {
  const flags_t* f = ctx->state;
  const bool flipped_b = f->transpose_b || f->adjoint_b;
  const int64_t width = b->dims[b->rank - (flipped_b ? 2 : 1)];
  int64_t dims[3] = {a->batches, a->rows, width};
  if (f->transpose_output) dims[1] = width, dims[2] = a->rows;
  weir_tensor_t* out = NULL;
  weir_tensor_t* scratch = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, a->rank, dims + (3 - a->rank), &out));
  if (f->transpose_output) WEIR_TRY(weir_kernel_scratch(ctx, a->dtype, out->count, &scratch));
  weir_status_t* status = multiply_dense(ctx, a, b, width, scratch ? scratch->data : out->data);
  if (!status && scratch) {
    status =
        flip(weir_kernel_pool(ctx), a->dtype, a->batches, a->rows, width, scratch->data, out->data);
  }
  if (!status && f->conjugate_output) conjugate(a->dtype, out->data, out->count);
  weir_tensor_release(scratch);
  return status;
}

static weir_status_t* matmul_cpu(weir_kernel_ctx_t* ctx) {
  const flags_t* f = ctx->state;
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  weir_csr_t given, a;
  weir_parcel_t* made = NULL;
  WEIR_TRY(weir_csr_read(ctx, 0, &given));
  WEIR_TRY(apply_flags(&given, f->transpose_a, f->adjoint_a, &made, &a));
  weir_status_t* status = check_dense(&a, b, f->transpose_b || f->adjoint_b, &given);
  if (!status) status = write_product(ctx, &a, b);
  if (made) weir_variant_release(&made->base);
  return status;
}

// ---- with sparse matrices ----

// A row of the product: which columns there are, and their sums.
typedef struct row_t {
  char* sums;         // one a column
  int64_t* seen;      // the last row that touched each column, plus 1
  uint64_t* touched;  // columns
  int64_t* order;
  int64_t count;
} row_t;

static void add_product(weir_dtype_t dtype, const void* a, const void* b, void* sum, bool is_new) {
#define ADD_PRODUCT(T)                                              \
  *(T*)sum = (is_new ? 0 : *(T*)sum) + *(const T*)a * *(const T*)b; \
  break
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: ADD_PRODUCT(float);
    case WEIR_DTYPE_DOUBLE: ADD_PRODUCT(double);
    case WEIR_DTYPE_COMPLEX64: ADD_PRODUCT(weir_complex64_t);
    default: ADD_PRODUCT(weir_complex128_t);
  }
#undef ADD_PRODUCT
}

// Row |r| of the product of one matrix of the batch; |with_sums|: not only which columns.
static void multiply_row(const weir_csr_t* a, const weir_csr_t* b, int64_t batch, int64_t r,
                         bool with_sums, row_t* row) {
  const int64_t a_first = a->batch_starts[batch], b_first = b->batch_starts[batch];
  const int32_t* a_starts = weir_csr_row_starts(a, batch);
  const int32_t* b_starts = weir_csr_row_starts(b, batch);
  const size_t size = weir_dtype_size(a->dtype);
  const int64_t mark = batch * a->rows + r + 1;
  row->count = 0;
  for (int64_t e = a_first + a_starts[r]; e < a_first + a_starts[r + 1]; ++e) {
    const int64_t inner = a->column_indices[e];
    for (int64_t k = b_first + b_starts[inner]; k < b_first + b_starts[inner + 1]; ++k) {
      const int64_t column = b->column_indices[k];
      const bool is_new = row->seen[column] != mark;
      if (is_new) {
        row->seen[column] = mark;
        row->touched[row->count++] = (uint64_t)column;
      }
      if (with_sums) {
        add_product(a->dtype, weir_sparse_at(a->values, e), weir_sparse_at(b->values, k),
                    row->sums + (size_t)column * size, is_new);
      }
    }
  }
}

static weir_status_t* count_products(const weir_csr_t* a, const weir_csr_t* b, row_t* row,
                                     int64_t* out_count) {
  int64_t count = 0;
  memset(row->seen, 0, sizeof(int64_t) * (size_t)b->columns);
  for (int64_t i = 0; i < a->batches * a->rows; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    multiply_row(a, b, i / a->rows, i % a->rows, false, row);
    count += row->count;
  }
  *out_count = count;
  return NULL;
}

static weir_status_t* fill_products(const weir_csr_t* a, const weir_csr_t* b, row_t* row,
                                    weir_csr_t* out) {
  const size_t size = weir_dtype_size(a->dtype);
  int64_t at = 0;
  memset(row->seen, 0, sizeof(int64_t) * (size_t)b->columns);
  out->batch_starts[0] = 0;
  for (int64_t batch = 0; batch < a->batches; ++batch) {
    int32_t* starts = out->row_starts + batch * (out->rows + 1);
    starts[0] = 0;
    for (int64_t r = 0; r < a->rows; ++r) {
      multiply_row(a, b, batch, r, true, row);
      WEIR_TRY(weir_sort_keys(NULL, row->touched, row->order, row->count));
      for (int64_t i = 0; i < row->count; ++i, ++at) {
        out->column_indices[at] = (int32_t)row->touched[i];
        memcpy(weir_sparse_at(out->values, at), row->sums + (size_t)row->touched[i] * size, size);
      }
      starts[r + 1] = (int32_t)(at - out->batch_starts[batch]);
    }
    out->batch_starts[batch + 1] = (int32_t)at;
  }
  return NULL;
}

static weir_status_t* multiply_sparse(const weir_csr_t* a, const weir_csr_t* b,
                                      weir_parcel_t** out_parcel) {
  const size_t columns = (size_t)b->columns;
  row_t row = {.sums = weir_alloc_array(columns + 1, weir_dtype_size(a->dtype)),
               .seen = weir_alloc_array(columns, sizeof(int64_t)),
               .touched = weir_alloc_array(columns, sizeof(uint64_t)),
               .order = weir_calloc(columns, sizeof(int64_t))};
  weir_status_t* status =
      row.sums && row.seen && row.touched && row.order ? NULL : weir_out_of_memory();
  int64_t count = 0;
  weir_csr_t out;
  int64_t dims[3] = {a->batches, a->rows, b->columns};
  if (!status) status = count_products(a, b, &row, &count);
  if (!status)
    status = weir_csr_create(a->dtype, a->rank, dims + (3 - a->rank), count, out_parcel, &out);
  if (!status) status = fill_products(a, b, &row, &out);
  weir_free(row.sums);
  weir_free(row.seen);
  weir_free(row.touched);
  weir_free(row.order);
  return status;
}

static weir_status_t* check_sparse(const weir_csr_t* a, const weir_csr_t* b, weir_dtype_t want) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (a->dtype != want || b->dtype != want) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dtype of %s is not equal to 'type': %s vs. %s",
                       a->dtype != want ? "a" : "b",
                       weir_dtype_name(a->dtype != want ? a->dtype : b->dtype),
                       weir_dtype_name(want));
  }
  if (a->columns != b->rows || a->rank != b->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inner product dimensions of A and B do not agree.  Shapes are: %s vs. %s",
                       weir_shape_text(a->rank, a->dims, x), weir_shape_text(b->rank, b->dims, y));
  }
  if (a->batches != b->batches) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Batch sizes of A and B do not agree.  Batch sizes are: "
                       "%" PRId64 " vs. %" PRId64,
                       a->batches, b->batches);
  }
  return NULL;
}

static weir_status_t* sparse_matmul_cpu(weir_kernel_ctx_t* ctx) {
  const flags_t* f = ctx->state;
  weir_csr_t given_a, given_b, a, b;
  weir_parcel_t* made[3] = {NULL, NULL, NULL};
  WEIR_TRY(weir_csr_read(ctx, 0, &given_a));
  WEIR_TRY(weir_csr_read(ctx, 1, &given_b));
  weir_status_t* status = apply_flags(&given_a, f->transpose_a, f->adjoint_a, &made[0], &a);
  if (!status) status = apply_flags(&given_b, f->transpose_b, f->adjoint_b, &made[1], &b);
  if (!status) status = check_sparse(&a, &b, weir_attrs_type(weir_kernel_attrs(ctx), "type"));
  if (!status) status = multiply_sparse(&a, &b, &made[2]);
  for (int i = 0; i < 2; ++i) {
    if (made[i]) weir_variant_release(&made[i]->base);
  }
  if (!status) return weir_csr_output(ctx, 0, made[2]);
  if (made[2]) weir_variant_release(&made[2]->base);
  return status;
}

const weir_op_module_t weir_ops_sparse_csr_matmul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseMatrixTranspose",
         .attrs = "conjugate: bool = false; type: " CSR_TYPES,
         .inputs = "input: variant",
         .outputs = "output: variant",
         .summary = "A sparse matrix transposed.",
         .infer_shape = scalar_inputs_shape,
         .build_grad = transpose_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = transpose_cpu)},
        {.name = "SparseMatrixMatMul",
         .attrs =
             "T: type; transpose_a: bool = false; transpose_b: bool = false; adjoint_a: bool = "
             "false; adjoint_b: bool = false; transpose_output: bool = false; "
             "conjugate_output: bool = false",
         .inputs = "a: variant; b: T",
         .outputs = "output: T",
         .summary = "The product of a sparse and a dense matrix.",
         .infer_shape = matmul_shape,
         .build_grad = weir_csr_matmul_grad,
         .kernels = WEIR_CPU_KERNEL(.types = "T" CSR_KERNEL_TYPES, .compute = matmul_cpu,
                                    .init = flags_init, .state_size = sizeof(flags_t))},
        {.name = "SparseMatrixSparseMatMul",
         .attrs = "type: " CSR_TYPES "; transpose_a: bool = false; transpose_b: bool = false; "
                  "adjoint_a: bool = false; adjoint_b: bool = false",
         .inputs = "a: variant; b: variant",
         .outputs = "c: variant",
         .summary = "The product of two sparse matrices.",
         .infer_shape = scalar_inputs_shape,
         .build_grad = weir_csr_sparse_matmul_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = sparse_matmul_cpu, .init = flags_init,
                                    .state_size = sizeof(flags_t))},
        {0}}};
