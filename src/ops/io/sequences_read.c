// sequences_read.c — Reading SequenceExample messages.
#include "ops/io/sequences_read.h"

#include "ops/io/common.h"

// ---- messages ----

static weir_view_t example_name(const weir_seq_parse_t* p, int64_t example) {
  if (p->names && p->names->count > 0) return io_string(p->names, example);
  return weir_view_of(p->plan->is_single ? "" : "<unknown>");
}

weir_status_t* weir_seq_bad_count(const weir_seq_parse_t* p, int64_t example, weir_view_t key,
                                  int64_t row, int64_t count, const weir_shape_t* shape) {
  weir_strbuf_t text = {0};
  weir_shape_append(shape, &text);
  const weir_view_t name = example_name(p, example), expected = weir_strbuf_view(&text);
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT,
      "Name: %.*s, Key: %.*s, Index: %lld.  Number of values != expected.  values size: %lld but "
      "output shape: %.*s",
      WEIR_VIEW_ARG(name), WEIR_VIEW_ARG(key), (long long)row, (long long)count,
      WEIR_VIEW_ARG(expected));
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* bad_type(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                               int64_t example, weir_view_t key, int64_t row, weir_dtype_t dtype) {
  const weir_view_t name = example_name(p, example);
  if (!part->is_lists)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Name: %.*s, Context feature: %.*s.  Data types don't match. Expected type: "
                       "%s",
                       WEIR_VIEW_ARG(name), WEIR_VIEW_ARG(key), weir_dtype_name(dtype));
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Name: %.*s, Feature list: %.*s, Index: %lld.  Data types don't match. "
                     "Expected type: %s",
                     WEIR_VIEW_ARG(name), WEIR_VIEW_ARG(key), (long long)row,
                     weir_dtype_name(dtype));
}

weir_status_t* weir_seq_is_missing(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                                   int64_t example, int64_t d) {
  const weir_view_t name = example_name(p, example);
  const weir_view_t key = part->set->keys[part->set->sparse_count + d];
  if (part->is_lists)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Name: %.*s, Feature list '%.*s' is required but could not be found.  Did "
                       "you mean to include it in feature_list_dense_missing_assumed_empty or "
                       "feature_list_dense_defaults?",
                       WEIR_VIEW_ARG(name), WEIR_VIEW_ARG(key));
  if (p->plan->is_single)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Name: %.*s, Context feature '%.*s' is required but could not be found.",
                       WEIR_VIEW_ARG(name), WEIR_VIEW_ARG(key));
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Feature: %.*s (data type: %s) is required but could not be found.",
                     WEIR_VIEW_ARG(key), weir_dtype_name(part->set->dense_types[d]));
}

// ---- keys ----

// 0: sparse, 1: dense, 2: ragged.
static int weir_seq_kind_of(const weir_feature_set_t* set, int64_t key) {
  if (key < set->sparse_count) return 0;
  return key < set->sparse_count + set->dense_count ? 1 : 2;
}

weir_dtype_t weir_seq_type_of(const weir_feature_set_t* set, int64_t key) {
  switch (weir_seq_kind_of(set, key)) {
    case 0: return set->sparse_types[key];
    case 1: return set->dense_types[key - set->sparse_count];
    default: return set->ragged_types[key - set->sparse_count - set->dense_count];
  }
}

weir_status_t* weir_seq_part_init(const weir_seq_parse_t* p, weir_seq_part_t* part) {
  const weir_feature_set_t* set = part->set;
  part->key_count = set->sparse_count + set->dense_count + set->ragged_count;
  part->rows = weir_calloc((size_t)(p->batch * part->key_count + 1), sizeof(*part->rows));
  if (!part->rows) return weir_out_of_memory();
  for (int64_t i = 0; i < part->key_count; ++i) {
    const uintptr_t first = (uintptr_t)weir_map_find(&part->keys, set->keys[i]);
    if (!first) WEIR_TRY(weir_map_put(&part->keys, set->keys[i], (void*)(uintptr_t)(i + 1)));
    if (!first || p->plan->is_single) continue;
    const int kind = weir_seq_kind_of(set, i), other = weir_seq_kind_of(set, (int64_t)first - 1);
    if (kind != other)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s feature %.*s cannot be both %s and sparse",
                         part->is_lists ? "Sequence" : "Context", WEIR_VIEW_ARG(set->keys[i]),
                         kind == 1 || other == 1 ? "dense" : "ragged");
  }
  return NULL;
}

void weir_seq_part_deinit(weir_seq_part_t* part) {
  weir_map_free(&part->keys);
  weir_free(part->rows);
}

const weir_seq_rows_t* weir_seq_rows_at(const weir_seq_part_t* part, int64_t example, int64_t key) {
  const uintptr_t first = (uintptr_t)weir_map_find(&part->keys, part->set->keys[key]);
  return &part->rows[example * part->key_count + (int64_t)first - 1];
}

int64_t weir_seq_value_count(const weir_seq_parse_t* p, const weir_seq_rows_t* rows) {
  int64_t total = 0;
  for (int64_t i = 0; i < rows->count; ++i) total += p->all[rows->first + (size_t)i].count;
  return total;
}

// ---- reading ----

static weir_status_t* add_row(weir_seq_parse_t* p, weir_seq_rows_t* rows,
                              const weir_feature_t* feature) {
  if (!WEIR_GROW(p->all, p->all_capacity, p->all_count + 1)) return weir_out_of_memory();
  p->all[p->all_count++] = *feature;
  ++rows->count;
  return NULL;
}

// Where the rows of |name| go, empty so far; NULL: nobody asks for it.
static weir_seq_rows_t* begin_rows(weir_seq_parse_t* p, weir_seq_part_t* part, weir_view_t name) {
  const uintptr_t first = (uintptr_t)weir_map_find(&part->keys, name);
  if (!first || p->status) return NULL;
  weir_seq_rows_t* rows = &part->rows[p->example * part->key_count + (int64_t)first - 1];
  *rows = (weir_seq_rows_t){.first = p->all_count, .is_there = true};
  return rows;
}

static void keep_feature(void* arg, weir_view_t name, const weir_feature_t* feature) {
  weir_seq_parse_t* p = arg;
  weir_seq_rows_t* rows = begin_rows(p, &p->context, name);
  if (rows) p->status = add_row(p, rows, feature);
}

static void keep_list(void* arg, weir_view_t name, weir_view_t list) {
  weir_seq_parse_t* p = arg;
  weir_seq_rows_t* rows = begin_rows(p, &p->lists, name);
  weir_wire_reader_t r = weir_wire_reader(list);
  bool is_end = false;
  while (rows && !is_end && !p->status) {
    weir_feature_t feature;
    p->status = weir_feature_list_next(&r, &feature, &is_end);
    if (!is_end && !p->status) p->status = add_row(p, rows, &feature);
  }
}

weir_status_t* weir_seq_read_example(weir_seq_parse_t* p, int64_t example) {
  p->example = example;
  weir_status_t* status =
      weir_sequence_example_parse(io_string(p->serialized, example), keep_feature, keep_list, p);
  if (status) weir_status_destroy(p->status);
  else status = p->status;
  p->status = NULL;
  if (weir_status_code(status) != WEIR_INVALID_ARGUMENT) return status;
  weir_status_destroy(status);
  const weir_view_t name = example_name(p, example);
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid protocol message input, example id: %.*s",
                     WEIR_VIEW_ARG(name));
}

weir_status_t* weir_seq_check_types(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                                    int64_t key) {
  const weir_dtype_t dtype = weir_seq_type_of(part->set, key);
  const bool needs_type = p->plan->is_single && weir_seq_kind_of(part->set, key) == 1;
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_seq_rows_t* rows = weir_seq_rows_at(part, e, key);
    for (int64_t i = 0; i < rows->count; ++i) {
      const weir_dtype_t got = p->all[rows->first + (size_t)i].dtype;
      if (got == dtype || (got == WEIR_DTYPE_INVALID && !needs_type)) continue;
      return bad_type(p, part, e, part->set->keys[key], i, dtype);
    }
  }
  return NULL;
}
