// sequences.c — SequenceExample messages as tensors.
//
// A feature of the context is treated as a list of one row: both are rows of values by example and
// key, and differ only in the dimensions that come out.
#include "ops/io/sequences.h"

#include "kernel/move/move.h"
#include "ops/io/examples.h"
#include "ops/io/sequences_read.h"

// ---- sparse and ragged ----

// |out|: the values of |key| in all examples, one after the other.
static weir_status_t* put_flat(const weir_seq_parse_t* p, const weir_seq_part_t* part, int64_t key,
                               weir_tensor_t** out) {
  int64_t total = 0, at = 0;
  for (int64_t e = 0; e < p->batch; ++e)
    total += weir_seq_value_count(p, weir_seq_rows_at(part, e, key));
  WEIR_TRY(weir_tensor_create(weir_seq_type_of(part->set, key), 1, &total, out));
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_seq_rows_t* rows = weir_seq_rows_at(part, e, key);
    for (int64_t i = 0; i < rows->count; ++i) {
      const weir_feature_t* feature = &p->all[rows->first + (size_t)i];
      WEIR_TRY(weir_feature_put(feature, *out, at));
      at += feature->count;
    }
  }
  return NULL;
}

static weir_status_t* put_sparse(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                                 int64_t key, weir_tensor_t** out) {
  const int64_t step = part->set->sparse_count;
  const int width = 1 + (p->is_batch ? 1 : 0) + (part->is_lists ? 1 : 0);
  int64_t most_rows = 0, longest = 0;
  WEIR_TRY(put_flat(p, part, key, &out[step]));
  WEIR_TRY(
      weir_tensor_create(WEIR_DTYPE_INT64, 2, (const int64_t[]){out[step]->count, width}, &out[0]));
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, 1, (const int64_t[]){width}, &out[2 * step]));
  int64_t* index = WEIR_TENSOR_DATA(out[0], int64_t);
  int64_t* shape = WEIR_TENSOR_DATA(out[2 * step], int64_t);
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_seq_rows_t* rows = weir_seq_rows_at(part, e, key);
    most_rows = WEIR_MAX(most_rows, rows->count);
    for (int64_t i = 0; i < rows->count; ++i) {
      const int64_t count = p->all[rows->first + (size_t)i].count;
      longest = WEIR_MAX(longest, count);
      for (int64_t k = 0; k < count; ++k) {
        if (p->is_batch) *index++ = e;
        if (part->is_lists) *index++ = i;
        *index++ = k;
      }
    }
  }
  if (p->is_batch) *shape++ = p->batch;
  if (part->is_lists) *shape++ = most_rows;
  *shape = longest;
  return NULL;
}

static void set_split(weir_tensor_t* splits, int64_t i, int64_t value) {
  if (splits->dtype == WEIR_DTYPE_INT32) WEIR_TENSOR_DATA(splits, int32_t)[i] = (int32_t)value;
  else WEIR_TENSOR_DATA(splits, int64_t)[i] = value;
}

// Where examples begin among values, or among rows. Of one example there is nothing to say:
// TensorFlow gives a scalar there that it does not write.
static weir_status_t* put_outer_splits(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                                       int64_t key, weir_dtype_t dtype, weir_tensor_t** out) {
  const int64_t count = p->batch + 1;
  int64_t end = 0;
  WEIR_TRY(weir_tensor_create(dtype, p->is_batch ? 1 : 0, &count, out));
  set_split(*out, 0, 0);
  for (int64_t e = 0; e < p->batch && p->is_batch; ++e) {
    const weir_seq_rows_t* rows = weir_seq_rows_at(part, e, key);
    end += part->is_lists ? rows->count : weir_seq_value_count(p, rows);
    set_split(*out, e + 1, end);
  }
  return NULL;
}

static weir_status_t* put_inner_splits(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                                       int64_t key, weir_dtype_t dtype, weir_tensor_t** out) {
  int64_t count = 1, at = 0, end = 0;
  for (int64_t e = 0; e < p->batch; ++e) count += weir_seq_rows_at(part, e, key)->count;
  WEIR_TRY(weir_tensor_create(dtype, 1, &count, out));
  set_split(*out, 0, 0);
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_seq_rows_t* rows = weir_seq_rows_at(part, e, key);
    for (int64_t i = 0; i < rows->count; ++i) {
      end += p->all[rows->first + (size_t)i].count;
      set_split(*out, ++at, end);
    }
  }
  return NULL;
}

static weir_status_t* put_ragged(const weir_seq_parse_t* p, const weir_seq_part_t* part, int64_t r,
                                 weir_tensor_t** out) {
  const weir_feature_set_t* set = part->set;
  const int64_t key = set->sparse_count + set->dense_count + r, step = set->ragged_count;
  WEIR_TRY(put_flat(p, part, key, &out[0]));
  WEIR_TRY(put_outer_splits(p, part, key, set->split_types[r], &out[step]));
  if (!part->is_lists) return NULL;
  return put_inner_splits(p, part, key, set->split_types[r], &out[2 * step]);
}

// ---- dense ----

static int64_t element_count(const weir_shape_t* shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->rank; ++i) count *= shape->dims[i];
  return count;
}

// Creates the tensor of dense feature |d|, with |rows| rows an example.
static weir_status_t* create_dense(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                                   int64_t d, int64_t rows, weir_tensor_t** out) {
  const weir_shape_t* shape = part->set->dense_shapes[d];
  int64_t dims[WEIR_MAX_RANK + 2];
  int rank = 0;
  if (shape->rank + 2 > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "a feature of rank %d is too deep", shape->rank);
  if (p->is_batch) dims[rank++] = p->batch;
  if (part->is_lists) dims[rank++] = rows;
  for (int i = 0; i < shape->rank; ++i) dims[rank++] = shape->dims[i];
  return weir_tensor_create(part->set->dense_types[d], rank, dims, out);
}

static weir_status_t* put_values(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                                 int64_t example, int64_t d, weir_tensor_t* out, int64_t at) {
  const weir_feature_set_t* set = part->set;
  const int64_t key = set->sparse_count + d, size = element_count(set->dense_shapes[d]);
  const weir_seq_rows_t* rows = weir_seq_rows_at(part, example, key);
  for (int64_t i = 0; i < rows->count; ++i) {
    const weir_feature_t* feature = &p->all[rows->first + (size_t)i];
    if (feature->count != size)
      return weir_seq_bad_count(p, example, set->keys[key], i, feature->count,
                                set->dense_shapes[d]);
    WEIR_TRY(weir_feature_put(feature, out, at + i * size));
  }
  return NULL;
}

static weir_status_t* put_default(const weir_tensor_t* given, weir_tensor_t* out, int64_t at,
                                  int64_t count) {
  const weir_dtype_t dtype = weir_tensor_type(out);
  char* to = (char*)out->data + (size_t)at * weir_dtype_size(dtype);
  return count > 0 ? weir_move_copy(NULL, dtype, given->data, to, count) : NULL;
}

static weir_status_t* put_context_dense(const weir_seq_parse_t* p, int64_t d, weir_tensor_t** out) {
  const weir_seq_part_t* part = &p->context;
  const weir_feature_set_t* set = part->set;
  const weir_tensor_t* given = p->plan->defaults[d];
  const int64_t size = element_count(set->dense_shapes[d]);
  int64_t most = given->count;
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_seq_rows_t* rows = weir_seq_rows_at(part, e, set->sparse_count + d);
    if (!rows->is_there && given->count == 0) return weir_seq_is_missing(p, part, e, d);
    most = WEIR_MAX(most, weir_seq_value_count(p, rows));
  }
  if (most != size && !p->plan->is_single)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inconsistent max number of elements for feature %.*s: expected %lld, but "
                       "found %lld",
                       WEIR_VIEW_ARG(set->keys[set->sparse_count + d]), (long long)size,
                       (long long)most);
  WEIR_TRY(create_dense(p, part, d, 0, out));
  for (int64_t e = 0; e < p->batch; ++e) {
    if (weir_seq_rows_at(part, e, set->sparse_count + d)->is_there)
      WEIR_TRY(put_values(p, part, e, d, *out, e * size));
    else WEIR_TRY(put_default(given, *out, e * size, size));
  }
  return NULL;
}

static weir_status_t* bad_total(const weir_seq_part_t* part, int64_t d, int64_t total) {
  const weir_feature_set_t* set = part->set;
  weir_strbuf_t text = {0};
  weir_shape_append(set->dense_shapes[d], &text);
  const weir_view_t shape = weir_strbuf_view(&text);
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT,
      "Feature list '%.*s' has an unexpected number of values.  Total values size: %lld is not "
      "consistent with rows of shape: %.*s",
      WEIR_VIEW_ARG(set->keys[set->sparse_count + d]), (long long)total, WEIR_VIEW_ARG(shape));
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* put_list_dense(const weir_seq_parse_t* p, int64_t d, weir_tensor_t** out) {
  const weir_seq_part_t* part = &p->lists;
  const weir_feature_set_t* set = part->set;
  const int64_t size = element_count(set->dense_shapes[d]), key = set->sparse_count + d;
  int64_t most = 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_seq_rows_t* rows = weir_seq_rows_at(part, e, key);
    if (!rows->is_there && !p->plan->may_miss[d]) return weir_seq_is_missing(p, part, e, d);
    const int64_t total = weir_seq_value_count(p, rows);
    if (size > 0 ? total % size != 0 : total != 0) return bad_total(part, d, total);
    // TensorFlow counts values, of which rows without any have none.
    if (size > 0 || p->plan->is_single) most = WEIR_MAX(most, rows->count);
  }
  WEIR_TRY(create_dense(p, part, d, most, &out[0]));
  if (weir_dtype_is_plain(weir_tensor_type(out[0])))
    memset(out[0]->data, 0, weir_tensor_byte_size(out[0]));
  const int64_t stride = p->batch > 0 ? out[0]->count / p->batch : 0;
  for (int64_t e = 0; e < p->batch; ++e) WEIR_TRY(put_values(p, part, e, d, out[0], e * stride));
  if (p->plan->is_single) return NULL;
  weir_tensor_t** lengths = &out[set->dense_count];
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, p->is_batch ? 1 : 0, &p->batch, lengths));
  for (int64_t e = 0; e < p->batch; ++e)
    WEIR_TENSOR_DATA(*lengths, int64_t)[e] = weir_seq_rows_at(part, e, key)->count;
  return NULL;
}

// ---- all ----

static weir_status_t* put_part(const weir_seq_parse_t* p, const weir_seq_part_t* part,
                               weir_tensor_t** out) {
  const weir_feature_set_t* set = part->set;
  for (int64_t key = 0; key < part->key_count; ++key) WEIR_TRY(weir_seq_check_types(p, part, key));
  for (int64_t i = 0; i < set->sparse_count; ++i) WEIR_TRY(put_sparse(p, part, i, out + i));
  out += 3 * set->sparse_count;
  for (int64_t i = 0; i < set->dense_count; ++i)
    WEIR_TRY(part->is_lists ? put_list_dense(p, i, out + i) : put_context_dense(p, i, out + i));
  out += (part->is_lists && !p->plan->is_single ? 2 : 1) * set->dense_count;
  for (int64_t i = 0; i < set->ragged_count; ++i) WEIR_TRY(put_ragged(p, part, i, out + i));
  return NULL;
}

static int64_t context_output_count(const weir_sequences_plan_t* plan) {
  const weir_feature_set_t* set = &plan->context;
  return 3 * set->sparse_count + set->dense_count + 2 * set->ragged_count;
}

int64_t weir_sequences_output_count(const weir_sequences_plan_t* plan) {
  const weir_feature_set_t* set = &plan->lists;
  return context_output_count(plan) + 3 * set->sparse_count +
         (plan->is_single ? 1 : 2) * set->dense_count + 3 * set->ragged_count;
}

weir_status_t* weir_sequences_check_defaults(const weir_sequences_plan_t* plan) {
  for (int64_t d = 0; d < plan->context.dense_count; ++d) {
    const weir_tensor_t* value = plan->defaults[d];
    const weir_shape_t* shape = plan->context.dense_shapes[d];
    char text[WEIR_SHAPE_TEXT_SIZE];
    if (value->count == 0 || weir_shape_accepts(shape, value->rank, value->dims)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "default_value[%lld].shape() == %s != context_dense_shapes[%lld]",
                       (long long)d, weir_tensor_shape_text(value, text), (long long)d);
  }
  return NULL;
}

static weir_status_t* parse_all(weir_seq_parse_t* p, weir_tensor_t** out) {
  WEIR_TRY(weir_seq_part_init(p, &p->context));
  WEIR_TRY(weir_seq_part_init(p, &p->lists));
  for (int64_t e = 0; e < p->batch; ++e) WEIR_TRY(weir_seq_read_example(p, e));
  WEIR_TRY(put_part(p, &p->context, out));
  return put_part(p, &p->lists, out + context_output_count(p->plan));
}

weir_status_t* weir_sequences_parse(const weir_sequences_plan_t* plan,
                                    const weir_tensor_t* serialized, const weir_tensor_t* names,
                                    weir_tensor_t** out) {
  const int64_t count = weir_sequences_output_count(plan);
  weir_seq_parse_t p = {.plan = plan,
                        .serialized = serialized,
                        .names = names,
                        .is_batch = serialized->rank == 1,
                        .batch = serialized->count,
                        .context = {.set = &plan->context},
                        .lists = {.set = &plan->lists, .is_lists = true}};
  for (int64_t i = 0; i < count; ++i) out[i] = NULL;
  weir_status_t* status = parse_all(&p, out);
  for (int64_t i = 0; i < count && status; ++i) {
    weir_tensor_release(out[i]);
    out[i] = NULL;
  }
  weir_seq_part_deinit(&p.context);
  weir_seq_part_deinit(&p.lists);
  weir_free(p.all);
  return status;
}
