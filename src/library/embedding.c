// embedding.c — Lookups in tables of one or several parts, plain and combined.
#include "weir/embedding.h"

#include <string.h>

#include "nodes.h"
#include "parts.h"
#include "weights.h"

// ---- one part ----

// Scales rows down to |max_norm|. Dimensions from |first| on belong to a row.
static weir_edge_t clip(weir_scope_t* s, weir_edge_t rows, int first, float max_norm) {
  if (weir_scope_status(s) || !(max_norm > 0)) return rows;
  const weir_dtype_t dtype = weir_edge_type(rows);
  const int rank = weir_lib_rank(rows);
  if (rank < 0 || first < 0) {
    weir_lib_fail(s, "embedding lookup: max_norm needs tables and ids of known rank");
    return WEIR_LIB_NONE;
  }
  int64_t axes[WEIR_MAX_RANK];
  for (int i = first; i < rank; ++i) axes[i - first] = i;
  weir_edge_t zero = weir_lib_number(s, dtype, 0),
              limit = weir_lib_number(s, dtype, (double)max_norm);
  weir_edge_t square =
      weir_sum(s, weir_mul(s, rows, rows), weir_lib_ints(s, axes, rank - first), .keep_dims = true);
  // The root of 0 has no gradient: take it of 1 instead.
  weir_edge_t is_positive = weir_greater(s, square, zero);
  weir_edge_t safe = weir_select_v2(s, is_positive, square, weir_ones_like(s, square));
  weir_edge_t norm = weir_select_v2(s, is_positive, weir_sqrt(s, safe), square);
  return weir_real_div(s, weir_mul(s, rows, limit), weir_maximum(s, norm, limit));
}

weir_edge_t weir_lib_gather(weir_scope_t* s, weir_edge_t table, weir_edge_t ids, float max_norm) {
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  s = weir_lib_beside(s, table);
  const bool is_variable = !strcmp(weir_node_op(table.node), "ReadVariableOp");
  weir_edge_t rows =
      is_variable ? weir_resource_gather(s, weir_variable_handle(table), ids, weir_edge_type(table))
                  : weir_gather_v2(s, table, ids, weir_const_int(s, 0));
  return clip(s, rows, weir_lib_rank(ids), max_norm);
}

// ---- several parts ----

static weir_lib_place_t place_mod(weir_scope_t* s, weir_edge_t ids, int count) {
  weir_edge_t parts = weir_lib_number(s, weir_edge_type(ids), count);
  return (weir_lib_place_t){weir_floor_mod(s, ids, parts), weir_floor_div(s, ids, parts)};
}

// The number of rows of all parts together, of |dtype|.
static weir_edge_t total_rows(weir_scope_t* s, weir_tables_t tables, weir_dtype_t dtype) {
  int64_t known = 0;
  for (int i = 0; i < tables.count && known >= 0; ++i) {
    int64_t rows = weir_lib_dim(tables.items[i], 0);
    known = rows < 0 ? -1 : known + rows;
  }
  if (known >= 0) return weir_lib_number(s, dtype, (double)known);
  weir_edge_t* rows = weir_scope_alloc(s, (size_t)tables.count, sizeof(*rows));
  if (!rows) return WEIR_LIB_NONE;
  for (int i = 0; i < tables.count; ++i)
    rows[i] = weir_lib_element(s, weir_shape(s, tables.items[i], .out_type = dtype), 0);
  return weir_add_n(s, rows, tables.count);
}

// The first |extra| parts have one row more than the |least| of the others.
static weir_lib_place_t place_div(weir_scope_t* s, weir_tables_t tables, weir_edge_t ids) {
  const weir_dtype_t dtype = weir_edge_type(ids);
  weir_edge_t parts = weir_lib_number(s, dtype, tables.count);
  weir_edge_t total = total_rows(s, tables, dtype);
  weir_edge_t least = weir_floor_div(s, total, parts), extra = weir_floor_mod(s, total, parts);
  weir_edge_t most = weir_add_v2(s, least, weir_lib_number(s, dtype, 1));
  weir_edge_t beyond = weir_sub(s, ids, extra);
  weir_edge_t part =
      weir_maximum(s, weir_floor_div(s, ids, most), weir_floor_div(s, beyond, least));
  weir_edge_t row = weir_select_v2(s, weir_less(s, part, extra), weir_floor_mod(s, ids, most),
                                   weir_floor_mod(s, beyond, least));
  return (weir_lib_place_t){part, row};
}

weir_lib_deal_t weir_lib_deal(weir_scope_t* s, weir_tables_t tables, weir_edge_t flat,
                              weir_partition_t partition) {
  const int count = tables.count;
  if (weir_scope_status(s)) return (weir_lib_deal_t){0};
  weir_lib_place_t place = weir_lib_place(s, tables, flat, partition);
  weir_edge_t part = weir_lib_cast(s, place.part, WEIR_DTYPE_INT32);
  weir_edge_t order = weir_range(s, weir_const_int(s, 0), weir_size(s, flat), weir_const_int(s, 1));
  weir_lib_deal_t deal = {.rows = weir_dynamic_partition(s, place.row, part, count),
                          .orders = weir_dynamic_partition(s, order, part, count)};
  return weir_scope_status(s) ? (weir_lib_deal_t){0} : deal;
}

weir_lib_place_t weir_lib_place(weir_scope_t* s, weir_tables_t tables, weir_edge_t ids,
                                weir_partition_t partition) {
  return partition == WEIR_PARTITION_DIV ? place_div(s, tables, ids)
                                         : place_mod(s, ids, tables.count);
}

// Back from [n, row…] to [ids…, row…].
static weir_edge_t unflatten(weir_scope_t* s, weir_edge_t rows, weir_edge_t ids) {
  if (weir_scope_status(s) || weir_lib_rank(ids) == 1) return rows;
  weir_edge_t row_shape = weir_lib_part(s, weir_shape(s, rows), 1, 0);
  return weir_reshape(s, rows, weir_lib_concat(s, weir_shape(s, ids), row_shape, 0));
}

static weir_edge_t gather_parts(weir_scope_t* s, weir_tables_t tables, weir_edge_t ids,
                                const weir_embedding_options_t* options) {
  const int count = tables.count;
  weir_edge_t flat = weir_reshape(s, ids, weir_lib_vector(s, -1));
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  weir_lib_deal_t deal = weir_lib_deal(s, tables, flat, options->partition);
  weir_edge_t* edges = weir_scope_alloc(s, 2 * (size_t)count, sizeof(*edges));
  if (!edges || weir_scope_status(s)) return WEIR_LIB_NONE;
  for (int i = 0; i < count; ++i) {
    edges[i] = (weir_edge_t){deal.orders.node, i};
    edges[count + i] =
        weir_lib_gather(s, tables.items[i], (weir_edge_t){deal.rows.node, i}, options->max_norm);
  }
  return unflatten(s, weir_parallel_dynamic_stitch(s, edges, count, edges + count, count), ids);
}

static bool check_tables(weir_scope_t* scope, const char* what, weir_tables_t tables,
                         weir_edge_t ids) {
  if (!weir_scope_status(scope) && tables.count <= 0)
    weir_lib_fail(scope, "%s: needs at least one table, got %d", what, tables.count);
  if (!weir_lib_is_ready(scope, what, tables.items, tables.count) ||
      !weir_lib_ready(scope, what, ids))
    return false;
  const weir_dtype_t dtype = weir_edge_type(ids);
  if (dtype == WEIR_DTYPE_INT32 || dtype == WEIR_DTYPE_INT64) return true;
  weir_lib_fail(scope, "%s: ids '%s' must be int32 or int64, got %s", what,
                weir_node_name(ids.node), weir_dtype_name(dtype));
  return false;
}

weir_edge_t weir_embedding_lookup_with(weir_scope_t* scope, weir_tables_t tables, weir_edge_t ids,
                                       const weir_embedding_options_t* options) {
  options = options ? options : &(const weir_embedding_options_t){0};
  if (!check_tables(scope, "embedding_lookup", tables, ids)) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, "embedding_lookup");
  if (tables.count == 1) return weir_lib_gather(s, tables.items[0], ids, options->max_norm);
  return gather_parts(s, tables, ids, options);
}

// ---- combined ----

static weir_edge_t combine(weir_scope_t* s, weir_edge_t rows, weir_edge_t places,
                           weir_edge_t examples, weir_combiner_t combiner) {
  switch (combiner) {
    case WEIR_COMBINE_SUM: return weir_sparse_segment_sum(s, rows, places, examples);
    case WEIR_COMBINE_SQRTN: return weir_sparse_segment_sqrt_n(s, rows, places, examples);
    default: return weir_sparse_segment_mean(s, rows, places, examples);
  }
}

// [n] → [n, 1, 1 …] of the rank of |rows|.
static weir_edge_t stretch(weir_scope_t* s, weir_edge_t weights, weir_edge_t rows) {
  weir_edge_t more = weir_lib_part(s, weir_shape(s, rows), 1, 0);
  return weir_reshape(s, weights,
                      weir_lib_concat(s, weir_shape(s, weights), weir_ones_like(s, more), 0));
}

static weir_edge_t combine_weighted(weir_scope_t* s, weir_edge_t rows, weir_edge_t examples,
                                    weir_edge_t weights, weir_combiner_t combiner) {
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  const weir_dtype_t dtype = weir_edge_type(rows);
  const bool is_low = dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16;
  const weir_dtype_t wide = is_low ? WEIR_DTYPE_FLOAT : dtype;
  rows = weir_lib_cast(s, rows, wide);
  weights = stretch(s, weir_lib_cast(s, weights, wide), rows);
  weir_edge_t sum = weir_segment_sum(s, weir_mul(s, rows, weights), examples);
  if (combiner == WEIR_COMBINE_MEAN) {
    sum = weir_div_no_nan(s, sum, weir_segment_sum(s, weights, examples));
  } else if (combiner == WEIR_COMBINE_SQRTN) {
    weir_edge_t squares = weir_segment_sum(s, weir_square(s, weights), examples);
    sum = weir_div_no_nan(s, sum, weir_sqrt(s, squares));
  }
  return weir_lib_cast(s, sum, dtype);
}

weir_edge_t weir_embedding_lookup_sparse_with(weir_scope_t* scope, weir_tables_t tables,
                                              weir_edge_t indices, weir_edge_t ids,
                                              const weir_embedding_sparse_options_t* options) {
  options = options ? options : &(const weir_embedding_sparse_options_t){0};
  const char* what = "embedding_lookup_sparse";
  if (!check_tables(scope, what, tables, ids) || !weir_lib_ready(scope, what, indices))
    return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, what);
  weir_edge_t begin = weir_lib_vector(s, 0, 0), end = weir_lib_vector(s, 0, 1);
  weir_edge_t examples = weir_strided_slice(s, indices, begin, end, weir_lib_vector(s, 1, 1),
                                            .begin_mask = 1, .end_mask = 1, .shrink_axis_mask = 2);
  examples = weir_lib_cast(s, examples, WEIR_DTYPE_INT32);
  // Each row is read once, however often it occurs.
  weir_unique_result_t unique = weir_unique(s, ids);
  weir_edge_t rows = weir_embedding_lookup(s, tables, unique.y, .partition = options->partition,
                                           .max_norm = options->max_norm);
  if (!options->weights.node) return combine(s, rows, unique.idx, examples, options->combiner);
  weir_edge_t each = weir_gather_v2(s, rows, unique.idx, weir_const_int(s, 0));
  return combine_weighted(s, each, examples, options->weights, options->combiner);
}

// ---- a layer ----

weir_edge_t weir_layer_embedding_with(weir_scope_t* scope, weir_edge_t ids, int64_t rows,
                                      int64_t size, const weir_layer_embedding_options_t* options) {
  options = options ? options : &(const weir_layer_embedding_options_t){0};
  if (!weir_lib_ready(scope, "embedding", ids)) return WEIR_LIB_NONE;
  if (rows <= 0 || size <= 0) {
    weir_lib_fail(scope, "embedding layer: needs positive sizes, got %lld rows of %lld",
                  (long long)rows, (long long)size);
    return WEIR_LIB_NONE;
  }
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : "embedding");
  const weir_dtype_t dtype = options->dtype ? options->dtype : WEIR_DTYPE_FLOAT;
  weir_edge_t table =
      weir_lib_weight(s, "embeddings", WEIR_LIB_NONE, options->init,
                      weir_init_uniform(-0.05, 0.05, 0), dtype, WEIR_SHAPE(rows, size));
  return weir_embedding_lookup(s, WEIR_TABLES(table), ids);
}
