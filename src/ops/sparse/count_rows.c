// count_rows.c — Counting by sorting the values of each row.
#include "ops/sparse/count_rows.h"

#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/sparse/sort.h"
#include "tensor/cast.h"

static int64_t row_of(const weir_count_rows_t* count, int64_t i) {
  if (count->rows) return count->rows[i];
  return count->width > 0 ? i / count->width : 0;
}

// What a value adds to its count.
typedef struct adder_t {
  weir_binary_fn_t add;
  size_t size;
  char one[16];
  bool is_binary;
  const weir_tensor_t* weights;
} adder_t;

static weir_status_t* make_adder(const weir_kernel_ctx_t* ctx, const weir_count_rows_t* count,
                                 adder_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(count->weights);
  const double one = 1;
  *out = (adder_t){.add = weir_binary_find(WEIR_BINARY_ADD, dtype),
                   .size = weir_dtype_size(dtype),
                   .is_binary = weir_attrs_bool(weir_kernel_attrs(ctx), "binary_output"),
                   .weights = count->weights};
  return weir_cast_elements(dtype, out->one, WEIR_DTYPE_DOUBLE, &one, 1);
}

static void add_value(const adder_t* adder, int64_t i, void* sum) {
  if (adder->is_binary) {
    memcpy(sum, adder->one, adder->size);
  } else {
    adder->add(sum, adder->weights->count > 0 ? weir_sparse_at(adder->weights, i) : adder->one, sum,
               1, WEIR_SPAN_BOTH);
  }
}

// ---- sparse results ----

// The numbers of the values that count, by row and value, in |order|; returns how many.
static weir_status_t* sort_values(weir_pool_t* pool, const weir_count_rows_t* count,
                                  int64_t max_length, uint64_t* keys, int64_t* order,
                                  int64_t* out_kept, int64_t* out_most) {
  int64_t kept = 0;
  for (int64_t i = 0; i < count->values->count; ++i) {
    int64_t value = weir_tensor_int_at(count->values, i);
    if (value < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Input values must all be non-negative");
    if (max_length >= 0 && value >= max_length) continue;
    *out_most = WEIR_MAX(*out_most, value);
    keys[kept] = (uint64_t)value;
    order[kept++] = i;
  }
  *out_kept = kept;
  WEIR_TRY(weir_sort_keys(pool, keys, order, kept));
  for (int64_t i = 0; i < kept; ++i) keys[i] = (uint64_t)row_of(count, order[i]);
  return weir_sort_keys(pool, keys, order, kept);
}

static bool is_new(const weir_count_rows_t* count, const int64_t* order, int64_t i) {
  return i == 0 || row_of(count, order[i]) != row_of(count, order[i - 1]) ||
         weir_tensor_int_at(count->values, order[i]) !=
             weir_tensor_int_at(count->values, order[i - 1]);
}

static weir_status_t* write_counts(weir_kernel_ctx_t* ctx, const weir_count_rows_t* count,
                                   const int64_t* order, int64_t kept, int64_t width) {
  const int rank = count->is_vector ? 1 : 2;
  const int64_t dims[] = {count->row_count, width};
  adder_t adder;
  int64_t distinct = 0;
  weir_tensor_t* indices = NULL;
  weir_tensor_t* sums = NULL;
  for (int64_t i = 0; i < kept; ++i) distinct += is_new(count, order, i);
  WEIR_TRY(make_adder(ctx, count, &adder));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){distinct, rank}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &distinct, &sums));
  WEIR_TRY(weir_sparse_output_vector(ctx, 2, count->is_vector ? dims + 1 : dims, rank));
  weir_move_zero(weir_tensor_type(sums), sums->data, sums->count);
  int64_t at = -1;
  for (int64_t i = 0; i < kept; ++i) {
    if (is_new(count, order, i)) {
      int64_t* row = WEIR_TENSOR_DATA(indices, int64_t) + ++at * rank;
      if (rank == 2) row[0] = row_of(count, order[i]);
      row[rank - 1] = weir_tensor_int_at(count->values, order[i]);
    }
    add_value(&adder, order[i], weir_sparse_at(sums, at));
  }
  return NULL;
}

weir_status_t* weir_count_to_sparse(weir_kernel_ctx_t* ctx, const weir_count_rows_t* count) {
  const int64_t min_length = weir_attrs_int(weir_kernel_attrs(ctx), "minlength");
  const int64_t max_length = weir_attrs_int(weir_kernel_attrs(ctx), "maxlength");
  const size_t n = (size_t)count->values->count;
  int64_t kept = 0, most = 0;
  uint64_t* keys = weir_alloc_array(n, sizeof(*keys));
  int64_t* order = weir_alloc_array(n, sizeof(*order));
  weir_status_t* status = keys && order ? NULL : weir_out_of_memory();
  if (!status) {
    status = sort_values(weir_kernel_pool(ctx), count, max_length, keys, order, &kept, &most);
  }
  if (!status) {
    int64_t width = max_length >= 0 ? max_length : WEIR_MAX(most + 1, min_length);
    status = write_counts(ctx, count, order, kept, width);
  }
  weir_free(keys);
  weir_free(order);
  return status;
}

// ---- dense results ----

weir_status_t* weir_count_size(const weir_tensor_t* size, int64_t* out_size) {
  if (size->rank != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank 0 but is rank %d", size->rank);
  *out_size = weir_tensor_int_at(size, 0);
  if (*out_size < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "size (%" PRId64 ") must be non-negative", *out_size);
  return NULL;
}

weir_status_t* weir_count_to_bins(weir_kernel_ctx_t* ctx, const weir_count_rows_t* count,
                                  int64_t size) {
  const int64_t dims[] = {count->row_count, size};
  adder_t adder;
  weir_tensor_t* bins = NULL;
  WEIR_TRY(make_adder(ctx, count, &adder));
  WEIR_TRY(weir_kernel_output(ctx, 0, count->is_vector ? 1 : 2, count->is_vector ? dims + 1 : dims,
                              &bins));
  weir_move_zero(weir_tensor_type(bins), bins->data, bins->count);
  for (int64_t i = 0; i < count->values->count; ++i) {
    int64_t value = weir_tensor_int_at(count->values, i);
    if (value < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Input must be non-negative");
    if (value >= size) continue;
    add_value(&adder, i, weir_sparse_at(bins, row_of(count, i) * size + value));
  }
  return NULL;
}
