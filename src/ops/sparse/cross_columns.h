// cross_columns.h — Crossed features: every combination of one feature of each column of a row, as
// a joined text or as a hash. Shared by the ops of sparse and of ragged tensors.
#ifndef WEIR_OPS_SPARSE_CROSS_COLUMNS_H_
#define WEIR_OPS_SPARSE_CROSS_COLUMNS_H_

#include "ops/sparse/sparse.h"

// Row r has features [starts[r], starts[r + 1]) of |values|, int64 or string; all rows |width| of
// them where |starts| is NULL.
typedef struct weir_cross_column_t {
  const weir_tensor_t* values;
  int64_t* starts;  // owned
  int64_t width;
} weir_cross_column_t;

typedef enum weir_cross_kind_t {
  WEIR_CROSS_TEXT,         // features with |separator| between
  WEIR_CROSS_HASH,         // fingerprints, mixed into |key|
  WEIR_CROSS_HASH_PLAIN,   // fingerprints, mixed with each other
  WEIR_CROSS_HASH_STRONG,  // the same of texts hashed with |salt|
} weir_cross_kind_t;

typedef struct weir_cross_t {
  weir_cross_column_t* columns;
  int count;
  int64_t rows;
  weir_cross_kind_t kind;
  weir_view_t separator;
  uint64_t key;
  uint64_t salt[2];
  int64_t buckets;  // 0 or less: hashes keep 63 bits
} weir_cross_t;

WEIR_INLINE int64_t weir_cross_begin(const weir_cross_column_t* column, int64_t row) {
  return column->starts ? column->starts[row] : row * column->width;
}
WEIR_INLINE int64_t weir_cross_width(const weir_cross_column_t* column, int64_t row) {
  return column->starts ? column->starts[row + 1] - column->starts[row] : column->width;
}
// How many combinations |row| has. INVALID_ARGUMENT when they are more than can be counted.
WEIR_MUST_USE weir_status_t* weir_cross_size(const weir_cross_t* cross, int64_t row,
                                             int64_t* out_size);
// Writes the combinations of |row| to the elements of |out|, int64 or string, from |at| on: the
// last column's features change fastest.
WEIR_MUST_USE weir_status_t* weir_cross_row(const weir_cross_t* cross, int64_t row, int64_t size,
                                            weir_tensor_t* out, int64_t at);
void weir_cross_free(weir_cross_t* cross);  // its columns

#endif  // WEIR_OPS_SPARSE_CROSS_COLUMNS_H_
