// table.h — Lookup tables: from scalar keys (int32, int64, string) to values of any type, scalars
// or tensors of one shape. Thread-safe.
//
// A table is filled once (HashTable: InitializeTable) or changes as it goes (MutableHashTable). Of
// the latter there is one whose places are seen from outside (MutableDenseHashTable,
// dense_table.h). Errors are TensorFlow's: FAILED_PRECONDITION "Table not initialized.",
// INVALID_ARGUMENT on types and shapes, UNIMPLEMENTED for a change of a table that is filled once.
#ifndef WEIR_OPS_TABLE_TABLE_H_
#define WEIR_OPS_TABLE_TABLE_H_

#include "op/resource.h"

typedef struct weir_lookup_table_t weir_lookup_table_t;
extern const weir_resource_type_t weir_lookup_table_type;
#define WEIR_LOOKUP_TABLE_TYPE_NAME "N10tensorflow6lookup15LookupInterfaceE"

// What a table is. A value type.
typedef struct weir_lookup_table_config_t {
  weir_dtype_t key_dtype;  // INT32, INT64 or STRING; INVALID_ARGUMENT for others
  weir_dtype_t value_dtype;
  bool is_mutable;
  int value_rank;             // of every value; 0: scalars
  const int64_t* value_dims;  // borrowed where it is given, the table's own in what it returns
  const struct weir_dense_table_config_t* dense;  // for a dense table; NULL in what it returns
} weir_lookup_table_config_t;

WEIR_MUST_USE weir_status_t* weir_lookup_table_create(const weir_lookup_table_config_t* config,
                                                      weir_lookup_table_t** out_table);
// Immutable after create.
const weir_lookup_table_config_t* weir_lookup_table_config(const weir_lookup_table_t* table);

bool weir_lookup_table_is_dense(const weir_lookup_table_t* table);

// The shape of the values of |keys|; |dims| has room for WEIR_MAX_RANK. INVALID_ARGUMENT when
// |keys| does not end with the shape of a key.
WEIR_MUST_USE weir_status_t* weir_lookup_table_values_shape(const weir_lookup_table_t* table,
                                                            const weir_tensor_t* keys,
                                                            int* out_rank, int64_t* dims);

int64_t weir_lookup_table_size(weir_lookup_table_t* table);  // 0 while not initialised

// INVALID_ARGUMENT of a table that is filled by inserting only.
WEIR_MUST_USE weir_status_t* weir_lookup_table_check_initializable(
    const weir_lookup_table_t* table);
// Fills a table that is filled once. A table that is filled already and has as many entries stays
// as it is; FAILED_PRECONDITION otherwise, and when a key has two values.
WEIR_MUST_USE weir_status_t* weir_lookup_table_initialize(weir_lookup_table_t* table,
                                                          const weir_tensor_t* keys,
                                                          const weir_tensor_t* values);
// Sets every element of |out_values|, a tensor of the table's value type and the shape of |keys|
// with that of a value behind it. |default_value| is a value, or of the shape of |out_values|.
WEIR_MUST_USE weir_status_t* weir_lookup_table_find(weir_lookup_table_t* table,
                                                    const weir_tensor_t* keys,
                                                    const weir_tensor_t* default_value,
                                                    weir_tensor_t* out_values);
// Adds or replaces; |values| has the shape of |keys| with that of a value behind it.
WEIR_MUST_USE weir_status_t* weir_lookup_table_insert(weir_lookup_table_t* table,
                                                      const weir_tensor_t* keys,
                                                      const weir_tensor_t* values);
// The table holds |keys| and nothing else afterwards. Initialises a table that is filled once. A
// dense table takes what one exports.
WEIR_MUST_USE weir_status_t* weir_lookup_table_import(weir_lookup_table_t* table,
                                                      const weir_tensor_t* keys,
                                                      const weir_tensor_t* values);
// Keys that are not there are passed over.
WEIR_MUST_USE weir_status_t* weir_lookup_table_remove(weir_lookup_table_t* table,
                                                      const weir_tensor_t* keys);
// All entries, in no particular order, as a vector of keys and a tensor of values; of a dense table
// all places, also those without an entry, as matrices. The caller owns both.
WEIR_MUST_USE weir_status_t* weir_lookup_table_export(weir_lookup_table_t* table,
                                                      weir_tensor_t** out_keys,
                                                      weir_tensor_t** out_values);

#endif  // WEIR_OPS_TABLE_TABLE_H_
