// csr.c — Sparse matrices in compressed rows: making, reading, transposing.
#include "ops/sparse/csr.h"

#include <string.h>

#include "kernel/elementwise/elementwise.h"

enum { SHAPE, BATCH_STARTS, ROW_STARTS, COLUMNS, VALUES, PART_COUNT };

static void view_parcel(const weir_parcel_t* parcel, weir_csr_t* out) {
  const weir_tensor_t* shape = parcel->items[SHAPE];
  *out = (weir_csr_t){.dtype = weir_tensor_type(parcel->items[VALUES]),
                      .rank = (int)shape->count,
                      .batches = 1,
                      .batch_starts = parcel->items[BATCH_STARTS]->data,
                      .row_starts = parcel->items[ROW_STARTS]->data,
                      .column_indices = parcel->items[COLUMNS]->data,
                      .values = parcel->items[VALUES]};
  memcpy(out->dims, shape->data, sizeof(int64_t) * (size_t)shape->count);
  if (out->rank == 3) out->batches = out->dims[0];
  out->rows = out->dims[out->rank - 2];
  out->columns = out->dims[out->rank - 1];
}

static weir_status_t* csr_conj(const void* object, void** out_object) {
  const weir_parcel_t* from = object;
  weir_parcel_t* made = NULL;
  WEIR_TRY(weir_parcel_create(&weir_csr_type, PART_COUNT, &made));
  for (int i = 0; i < VALUES; ++i) made->items[i] = weir_tensor_retain(from->items[i]);
  weir_status_t* status = weir_tensor_copy(from->items[VALUES], &made->items[VALUES]);
  if (status) {
    weir_variant_release(&made->base);
    return status;
  }
  weir_tensor_t* values = made->items[VALUES];
  const weir_dtype_t dtype = weir_tensor_type(values);
  if (weir_dtype_is_complex(dtype))
    weir_unary_find(WEIR_UNARY_CONJ, dtype)(values->data, values->data, values->count);
  *out_object = made;
  return NULL;
}

const weir_variant_type_t weir_csr_type = {.type_name = "tensorflow::CSRSparseMatrix",
                                           .destroy = weir_parcel_destroy,
                                           .map = weir_parcel_map,
                                           .conj = csr_conj};

weir_status_t* weir_csr_read(const weir_kernel_ctx_t* ctx, int i, weir_csr_t* out) {
  const weir_tensor_t* in = weir_kernel_input(ctx, i);
  const weir_parcel_t* parcel = in->count == 1 ? weir_parcel_at(in, 0, &weir_csr_type) : NULL;
  if (!parcel) return WEIR_STATUS(INVALID_ARGUMENT, "Could not retrieve Variant input %d", i);
  view_parcel(parcel, out);
  return NULL;
}

weir_status_t* weir_csr_check_square(const weir_csr_t* m) {
  if (m->rows == m->columns) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "sparse matrix must be square; got: %" PRId64 " != %" PRId64,
                     m->rows, m->columns);
}

weir_status_t* weir_csr_create(weir_dtype_t dtype, int rank, const int64_t* dims, int64_t count,
                               weir_parcel_t** out_parcel, weir_csr_t* out) {
  const int64_t rank64 = rank, batches = rank == 3 ? dims[0] : 1, rows = dims[rank - 2];
  int64_t starts = 0;
  weir_parcel_t* parcel = NULL;
  for (int d = 0; d < rank; ++d) {
    if (dims[d] > INT32_MAX || count > INT32_MAX)
      return WEIR_STATUS(INVALID_ARGUMENT, "The sparse matrix is too large for 32-bit indices");
  }
  starts = batches * (rows + 1);
  WEIR_TRY(weir_parcel_create(&weir_csr_type, PART_COUNT, &parcel));
  weir_status_t* status =
      weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &rank64, dims, &parcel->items[SHAPE]);
  const int64_t ends = batches + 1;
  if (!status)
    status = weir_tensor_create(WEIR_DTYPE_INT32, 1, &ends, &parcel->items[BATCH_STARTS]);
  if (!status)
    status = weir_tensor_create(WEIR_DTYPE_INT32, 1, &starts, &parcel->items[ROW_STARTS]);
  if (!status) status = weir_tensor_create(WEIR_DTYPE_INT32, 1, &count, &parcel->items[COLUMNS]);
  if (!status) status = weir_tensor_create(dtype, 1, &count, &parcel->items[VALUES]);
  if (status) {
    weir_variant_release(&parcel->base);
    return status;
  }
  view_parcel(parcel, out);
  *out_parcel = parcel;
  return NULL;
}

weir_status_t* weir_csr_output(weir_kernel_ctx_t* ctx, int i, weir_parcel_t* take_parcel) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_tensor_create_variant(&take_parcel->base, &out));
  weir_kernel_set(ctx, i, out);
  return NULL;
}

static void transpose_batch(const weir_csr_t* m, int64_t batch, weir_csr_t* out) {
  const int32_t* starts = weir_csr_row_starts(m, batch);
  int32_t* to = out->row_starts + batch * (out->rows + 1);
  const int64_t first = m->batch_starts[batch];
  const size_t size = weir_dtype_size(m->dtype);
  memset(to, 0, sizeof(*to) * (size_t)(out->rows + 1));
  for (int64_t e = 0; e < weir_csr_count(m, batch); ++e) ++to[m->column_indices[first + e] + 1];
  for (int64_t r = 0; r < out->rows; ++r) to[r + 1] += to[r];
  for (int64_t r = 0; r < m->rows; ++r) {
    for (int64_t e = starts[r]; e < starts[r + 1]; ++e) {
      int64_t at = first + to[m->column_indices[first + e]]++;
      out->column_indices[at] = (int32_t)r;
      memcpy((char*)out->values->data + (size_t)at * size,
             (const char*)m->values->data + (size_t)(first + e) * size, size);
    }
  }
  for (int64_t r = out->rows; r > 0; --r) to[r] = to[r - 1];
  to[0] = 0;
}

weir_status_t* weir_csr_transpose(const weir_csr_t* m, bool conjugates, weir_parcel_t** out_parcel,
                                  weir_csr_t* out) {
  int64_t dims[3];
  memcpy(dims, m->dims, sizeof(dims));
  dims[m->rank - 2] = m->columns;
  dims[m->rank - 1] = m->rows;
  WEIR_TRY(weir_csr_create(m->dtype, m->rank, dims, m->values->count, out_parcel, out));
  memcpy(out->batch_starts, m->batch_starts, sizeof(int32_t) * (size_t)(m->batches + 1));
  for (int64_t b = 0; b < m->batches; ++b) transpose_batch(m, b, out);
  if (conjugates && weir_dtype_is_complex(m->dtype))
    weir_unary_find(WEIR_UNARY_CONJ, m->dtype)(out->values->data, out->values->data,
                                               out->values->count);
  return NULL;
}
