// hashed.c — Embeddings of any ids, over the op that gives them rows.
#include "weir/hashed.h"

#include <stdio.h>
#include <string.h>

#include "nodes.h"
#include "weir/mapped.h"
#include "weir/node.h"

enum { WAYS = 8 };

// ---- the table ----

typedef struct maker_t {
  weir_scope_t* scope;
  const char* path;  // NULL: in memory
} maker_t;

static weir_edge_t make(const maker_t* maker, const char* name, weir_dtype_t dtype,
                        weir_dims_t shape, bool is_state) {
  weir_scope_t* s = maker->scope;
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  if (!maker->path) {
    weir_edge_t zeros =
        weir_fill(s, weir_lib_ints(s, shape.dims, shape.rank), weir_lib_number(s, dtype, 0));
    return is_state ? weir_state_variable(s, name, zeros) : weir_variable(s, name, zeros);
  }
  const size_t size = strlen(maker->path) + strlen(name) + 2;
  char* path = weir_scope_alloc(s, size, 1);
  if (!path) return WEIR_LIB_NONE;
  snprintf(path, size, "%s.%s", maker->path, name);
  return weir_mapped_variable(s, name, path, shape, .dtype = dtype, .is_state = is_state);
}

weir_hashed_t weir_hashed_table_with(weir_scope_t* scope, const char* name, int64_t capacity,
                                     int64_t size, const weir_hashed_table_options_t* options) {
  options = options ? options : &(const weir_hashed_table_options_t){0};
  const weir_hashed_t none = {.rows = WEIR_LIB_NONE};
  const weir_dtype_t dtype = options->dtype ? options->dtype : WEIR_DTYPE_FLOAT;
  if (!WEIR_HAS_ARG(scope, name) || weir_scope_status(scope)) return none;
  if (capacity <= 0 || size <= 0 || capacity > INT64_MAX / 64)
    weir_lib_fail(scope, "hashed table '%s': needs positive sizes, got %lld rows of %lld", name,
                  (long long)capacity, (long long)size);
  else if (dtype != WEIR_DTYPE_FLOAT && dtype != WEIR_DTYPE_DOUBLE)
    weir_lib_fail(scope, "hashed table '%s': rows are float or double, not %s", name,
                  weir_dtype_name(dtype));
  if (weir_scope_status(scope)) return none;
  const int64_t rows = (capacity + WAYS - 1) / WAYS * WAYS;
  const maker_t maker = {weir_scope_in(scope, name), options->path};
  weir_hashed_t table = none;
  table.rows = make(&maker, "rows", dtype, WEIR_SHAPE(rows, size), false);
  table.keys = make(&maker, "keys", WEIR_DTYPE_INT64, WEIR_SHAPE(rows), true);
  table.used = make(&maker, "used", WEIR_DTYPE_INT64, WEIR_SHAPE(rows + 1), true);
  return weir_scope_status(scope) ? none : table;
}

// ---- lookups ----

static weir_node_t* find_rows(weir_scope_t* s, const weir_hashed_t* table, weir_edge_t ids,
                              bool is_frozen) {
  const weir_edge_t inputs[] = {weir_variable_handle(table->keys),
                                weir_variable_handle(table->used), ids};
  weir_node_builder_t* builder = weir_node_begin(s, "_FindRows");
  weir_node_inputs(builder, inputs, 3);
  weir_node_set_bool(builder, "insert", !is_frozen);
  return weir_node_end(builder);
}

// Gives new rows what they start with.
static weir_node_t* reset(weir_scope_t* s, const weir_hashed_t* table, weir_edge_t fresh,
                          const weir_hashed_lookup_options_t* options) {
  const weir_dtype_t dtype = weir_edge_type(table->rows);
  weir_edge_t size = weir_lib_vector(s, weir_lib_dim(table->rows, 1));
  weir_edge_t shape = weir_lib_concat(s, weir_shape(s, fresh), size, 0);
  weir_edge_t values = weir_fill(s, shape, weir_lib_number(s, dtype, 0));
  if (options->range > 0) {
    const weir_lib_seeds_t seeds = weir_lib_seeds(s, options->seed, 0);
    weir_edge_t draw =
        weir_random_uniform(s, shape, dtype, .seed = seeds.seed, .seed2 = seeds.seed2);
    weir_edge_t range = weir_lib_number(s, dtype, (double)options->range);
    weir_edge_t width = weir_lib_number(s, dtype, 2 * (double)options->range);
    values = weir_sub(s, weir_mul(s, draw, width), range);
  }
  return weir_resource_scatter_update(s, weir_variable_handle(table->rows), fresh, values);
}

weir_edge_t weir_hashed_lookup_with(weir_scope_t* scope, const weir_hashed_t* table,
                                    weir_edge_t ids, const weir_hashed_lookup_options_t* options) {
  options = options ? options : &(const weir_hashed_lookup_options_t){0};
  if (!WEIR_HAS_ARG(scope, table) ||
      !weir_lib_ready(scope, "hashed_lookup", table->rows, table->keys, table->used, ids))
    return WEIR_LIB_NONE;
  const weir_dtype_t type = weir_edge_type(ids);
  if (type != WEIR_DTYPE_INT32 && type != WEIR_DTYPE_INT64) {
    weir_lib_fail(scope, "hashed_lookup: ids '%s' must be int32 or int64, got %s",
                  weir_node_name(ids.node), weir_dtype_name(type));
    return WEIR_LIB_NONE;
  }
  weir_scope_t* s = weir_lib_beside(weir_scope_in(scope, "hashed_lookup"), table->rows);
  weir_node_t* found =
      find_rows(s, table, weir_lib_cast(s, ids, WEIR_DTYPE_INT64), options->is_frozen);
  if (!found) return WEIR_LIB_NONE;
  weir_edge_t rows = {found, 0}, zero = weir_lib_number(s, WEIR_DTYPE_INT64, 0);
  weir_scope_t* after = s;
  if (!options->is_frozen) {
    weir_node_t* fresh = reset(s, table, (weir_edge_t){found, 1}, options);
    if (!fresh) return WEIR_LIB_NONE;
    after = weir_scope_after(s, &fresh, 1);
  }
  const weir_dtype_t dtype = weir_edge_type(table->rows);
  weir_edge_t values = weir_resource_gather(after, weir_variable_handle(table->rows),
                                            weir_maximum(s, rows, zero), dtype);
  weir_edge_t is_there = weir_cast(s, weir_greater_equal(s, rows, zero), dtype);
  return weir_mul(s, values, weir_expand_dims(s, is_there, weir_const_int(s, -1)));
}
