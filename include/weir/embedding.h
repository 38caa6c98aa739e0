// embedding.h — Rows of tables by number: word embeddings and other large, sparsely used weights.
//
// A table may be spread over several variables, on as many devices. Gradients of a lookup stay
// sparse: they name the rows that were used. Threading: as the scope's.
#ifndef WEIR_EMBEDDING_H_
#define WEIR_EMBEDDING_H_

#include "weir/attrs.h"
#include "weir/initializer.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// The parts of one table: values that weir_variable returned, or any other edges. Borrowed for the
// call.
typedef struct weir_tables_t {
  const weir_edge_t* items;
  int count;
} weir_tables_t;
#define WEIR_TABLES(...)                               \
  ((weir_tables_t){(const weir_edge_t[]){__VA_ARGS__}, \
                   (int)(sizeof((const weir_edge_t[]){__VA_ARGS__}) / sizeof(weir_edge_t))})

// Where row |id| of a table of |count| parts is.
typedef enum weir_partition_t {
  WEIR_PARTITION_MOD = 0,  // row id / count of part id % count
  WEIR_PARTITION_DIV,      // parts hold consecutive rows; the first ones may have one more
} weir_partition_t;

typedef struct weir_embedding_options_t {
  int reserved;
  weir_partition_t partition;
  float max_norm;  // longer rows are scaled down to this length; 0: none are
} weir_embedding_options_t;

// The rows |ids| (int32 or int64, any shape), as tf.nn.embedding_lookup: shape [ids…, row…].
WEIR_API weir_edge_t weir_embedding_lookup_with(weir_scope_t* scope, weir_tables_t tables,
                                                weir_edge_t ids,
                                                const weir_embedding_options_t* options);
#define weir_embedding_lookup(scope, tables, ids, ...) \
  weir_embedding_lookup_with(scope, tables, ids, &(const weir_embedding_options_t){0, __VA_ARGS__})

typedef enum weir_combiner_t {
  WEIR_COMBINE_MEAN = 0,  // the weighted sum over the sum of weights
  WEIR_COMBINE_SUM,
  WEIR_COMBINE_SQRTN,  // the weighted sum over the root of the sum of squared weights
} weir_combiner_t;

typedef struct weir_embedding_sparse_options_t {
  int reserved;
  weir_combiner_t combiner;
  weir_edge_t weights;  // one for each id; none: all 1
  weir_partition_t partition;
  float max_norm;
} weir_embedding_sparse_options_t;

// Combines the rows of each example, as tf.nn.embedding_lookup_sparse. The ids are a sparse matrix:
// |indices| [n, 2] int64, sorted by row, and |ids| [n]. The result has one row for each example up
// to the last that has ids.
WEIR_API weir_edge_t
weir_embedding_lookup_sparse_with(weir_scope_t* scope, weir_tables_t tables, weir_edge_t indices,
                                  weir_edge_t ids, const weir_embedding_sparse_options_t* options);
#define weir_embedding_lookup_sparse(scope, tables, indices, ids, ...) \
  weir_embedding_lookup_sparse_with(scope, tables, indices, ids,       \
                                    &(const weir_embedding_sparse_options_t){0, __VA_ARGS__})

typedef struct weir_layer_embedding_options_t {
  int reserved;
  const char* name;    // default: "embedding"
  weir_init_t init;    // default: uniform in ±0.05
  weir_dtype_t dtype;  // default: float
} weir_layer_embedding_options_t;
// A table "embeddings" of |rows| rows of |size| numbers, and the rows |ids| of it.
WEIR_API weir_edge_t weir_layer_embedding_with(weir_scope_t* scope, weir_edge_t ids, int64_t rows,
                                               int64_t size,
                                               const weir_layer_embedding_options_t* options);
#define weir_layer_embedding(scope, ids, rows, size, ...) \
  weir_layer_embedding_with(scope, ids, rows, size,       \
                            &(const weir_layer_embedding_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_EMBEDDING_H_
