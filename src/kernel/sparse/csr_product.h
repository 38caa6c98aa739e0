// csr_product.h — C = A * B of a sparse matrix A in compressed rows and dense matrices B and C in
// row-major order.
#ifndef WEIR_KERNEL_SPARSE_CSR_PRODUCT_H_
#define WEIR_KERNEL_SPARSE_CSR_PRODUCT_H_

#include "base/thread.h"
#include "weir/dtype.h"

typedef struct weir_csr_product_t {
  weir_dtype_t dtype;
  bool conjugates;         // the values of A
  int64_t rows;            // of A and C
  int64_t width;           // of B and C
  const int64_t* starts;   // rows + 1: row r has entries [starts[r], starts[r + 1])
  const int64_t* columns;  // of the entries
  const int64_t* places;   // of their values in |values|; NULL: they are in order
  const void* values;
  const void* b;
  void* c;
} weir_csr_product_t;

// For float, double, half, bfloat16 (both summed in float), int32 and complex types; others are
// UNIMPLEMENTED. An element's terms are added in the order of the entries, however rows are split.
WEIR_MUST_USE weir_status_t* weir_csr_multiply(weir_pool_t* pool,
                                               const weir_csr_product_t* product);

// Writes where the entries of each row begin, of entries that are in the order of their |rows|.
void weir_csr_count_rows(const int64_t* rows, int64_t count, int64_t row_count, int64_t* starts);
// Groups |count| entries by their |rows|, each below |row_count|: writes |starts| (row_count + 1)
// and |order|, the entries' numbers row by row, in the order they are in.
void weir_csr_group(const int64_t* rows, int64_t count, int64_t row_count, int64_t* starts,
                    int64_t* order);

#endif  // WEIR_KERNEL_SPARSE_CSR_PRODUCT_H_
