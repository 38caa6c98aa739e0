// dense_table.h — Lookup tables as two matrices, of keys and of values, whose rows are the places
// of open addressing: what is exported, imported and saved. Two keys that nobody may use mark
// places that are empty and places whose entry was removed. A key's place is TensorFlow's.
// Thread-safe.
//
// Types and the shapes of values are checked by the caller, a weir_lookup_table_t.
#ifndef WEIR_OPS_TABLE_DENSE_TABLE_H_
#define WEIR_OPS_TABLE_DENSE_TABLE_H_

#include "ops/table/table.h"

typedef struct weir_dense_table_config_t {
  const weir_tensor_t* empty_key;    // a scalar or a vector; borrowed, as the next
  const weir_tensor_t* deleted_key;  // of the same shape
  int64_t bucket_count;              // at first: a power of two, 4 at least
  float max_load;                    // above this share of entries the places are doubled
} weir_dense_table_config_t;

typedef struct weir_dense_table_t weir_dense_table_t;

// INVALID_ARGUMENT in TensorFlow's words.
WEIR_MUST_USE weir_status_t* weir_dense_table_create(const weir_lookup_table_config_t* config,
                                                     weir_dense_table_t** out_table);
void weir_dense_table_destroy(weir_dense_table_t* table);  // NULL-safe

// The rank of |keys| without the dimensions of a key. INVALID_ARGUMENT when they do not end with
// it.
WEIR_MUST_USE weir_status_t* weir_dense_table_batch_rank(const weir_dense_table_t* table,
                                                         const weir_tensor_t* keys, int* out_rank);
int64_t weir_dense_table_size(weir_dense_table_t* table);
WEIR_MUST_USE weir_status_t* weir_dense_table_find(weir_dense_table_t* table,
                                                   const weir_tensor_t* keys,
                                                   const weir_tensor_t* default_value,
                                                   weir_tensor_t* out_values);
WEIR_MUST_USE weir_status_t* weir_dense_table_insert(weir_dense_table_t* table,
                                                     const weir_tensor_t* keys,
                                                     const weir_tensor_t* values);
WEIR_MUST_USE weir_status_t* weir_dense_table_remove(weir_dense_table_t* table,
                                                     const weir_tensor_t* keys);
WEIR_MUST_USE weir_status_t* weir_dense_table_import(weir_dense_table_t* table,
                                                     const weir_tensor_t* keys,
                                                     const weir_tensor_t* values);
WEIR_MUST_USE weir_status_t* weir_dense_table_export(weir_dense_table_t* table,
                                                     weir_tensor_t** out_keys,
                                                     weir_tensor_t** out_values);

#endif  // WEIR_OPS_TABLE_DENSE_TABLE_H_
