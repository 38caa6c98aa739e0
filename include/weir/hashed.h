// hashed.h — Embeddings of ids that nobody has numbered: rows are given as ids come, and taken back
// from those that were not used for longest.
//
//   weir_hashed_t table = weir_hashed_table(s, "words", 1 << 20, 64);
//   weir_edge_t x = weir_hashed_lookup(s, &table, ids, .range = 0.1f);
//
// A table of fixed capacity, cut into sets of eight rows. An id may be in the set only that its
// hash names; when that is full, the row that was looked up least recently goes to the new id, and
// starts anew. So a lookup costs the same however large the table is. With a |path| the table lies
// in sparse files (weir/mapped.h): the disk that it takes grows with the ids that come.
//
// Whose a row is, and when it was used, are variables "words/keys" and "words/used" beside
// "words/rows", and are saved with them. What optimizers keep of a row stays when it changes hands.
// Workers that train at once share rows as they share variables: one may read a row just as another
// gives it to another id. Threading: as the scope's.
#ifndef WEIR_HASHED_H_
#define WEIR_HASHED_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// A table's variables; a value.
typedef struct weir_hashed_t {
  weir_edge_t rows;  // [capacity, size]; trained
  weir_edge_t keys;  // int64 [capacity]: id + 1, 0 where nobody has a row
  weir_edge_t used;  // int64 [capacity + 1]: the lookup that asked last; at the end, how many were
} weir_hashed_t;

typedef struct weir_hashed_table_options_t {
  int reserved;
  weir_dtype_t dtype;  // float or double; default: float
  const char* path;    // in the files "<path>.rows", ".keys", ".used"; NULL: in memory. Borrowed
} weir_hashed_table_options_t;
// A table for at least |capacity| ids, of |size| numbers each.
WEIR_API weir_hashed_t weir_hashed_table_with(weir_scope_t* scope, const char* name,
                                              int64_t capacity, int64_t size,
                                              const weir_hashed_table_options_t* options);
#define weir_hashed_table(scope, name, capacity, size, ...) \
  weir_hashed_table_with(scope, name, capacity, size,       \
                         &(const weir_hashed_table_options_t){0, __VA_ARGS__})

typedef struct weir_hashed_lookup_options_t {
  int reserved;
  float range;     // new rows are drawn from ±range; 0: they are zeros
  int64_t seed;    // of that; 0: from the machine
  bool is_frozen;  // nothing is given or taken: for evaluation
} weir_hashed_lookup_options_t;
// The rows of |ids|, int32 or int64 of any shape: [ids…, size]. Zeros for ids that have none: when
// frozen, and when one step asks for more than eight ids of one set. INVALID_ARGUMENT for the ids
// -1 and INT64_MAX.
WEIR_API weir_edge_t weir_hashed_lookup_with(weir_scope_t* scope, const weir_hashed_t* table,
                                             weir_edge_t ids,
                                             const weir_hashed_lookup_options_t* options);
#define weir_hashed_lookup(scope, table, ids, ...) \
  weir_hashed_lookup_with(scope, table, ids, &(const weir_hashed_lookup_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_HASHED_H_
