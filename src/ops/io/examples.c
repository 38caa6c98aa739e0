// examples.c — Reading Example messages into tensors.
#include "ops/io/examples.h"

#include "base/map.h"
#include "file/example.h"
#include "ops/io/common.h"

typedef struct parse_t {
  const weir_examples_plan_t* plan;
  const weir_tensor_t* serialized;
  const weir_tensor_t* names;  // NULL: none
  weir_tensor_t** out;
  bool is_batch;  // a vector of examples
  int64_t batch;  // 1 for a scalar
  int64_t key_count;
  weir_map_t keys;           // key → its number plus one
  weir_feature_t* features;  // |batch| times |key_count|
  weir_feature_t* row;       // of the example that is being read
} parse_t;

static weir_feature_t* feature_at(const parse_t* p, int64_t example, int64_t key) {
  return &p->features[example * p->key_count + key];
}

// ---- what is asked for ----

static bool is_variable(const weir_shape_t* shape) { return shape->rank > 0 && shape->dims[0] < 0; }

// Elements of one step along the first dimension of a variable shape; of the whole of another.
static int64_t stride_of(const weir_shape_t* shape) {
  int64_t stride = 1;
  for (int i = is_variable(shape) ? 1 : 0; i < shape->rank; ++i) stride *= shape->dims[i];
  return stride;
}

static weir_status_t* check_default(int64_t d, const weir_shape_t* shape,
                                    const weir_tensor_t* value) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (is_variable(shape)) {
    if (value->count == 1) return NULL;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "dense_shape[%lld] is a variable length shape, therefore def_value[%lld] "
                       "must contain a single element (the padding element). But its shape is: %s",
                       (long long)d, (long long)d, weir_tensor_shape_text(value, text));
  }
  if (value->count == 0 || weir_shape_accepts(shape, value->rank, value->dims)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "def_value[%lld].shape() == %s is not compatible with dense_shapes[%lld]",
                     (long long)d, weir_tensor_shape_text(value, text), (long long)d);
}

weir_status_t* weir_examples_check_defaults(const weir_examples_plan_t* plan) {
  for (int64_t d = 0; d < plan->dense_count; ++d)
    WEIR_TRY(check_default(d, plan->dense_shapes[d], plan->defaults[d]));
  return NULL;
}

weir_status_t* weir_examples_check_shapes(size_t count, const weir_shape_t* const* shapes) {
  for (size_t i = 0; i < count; ++i) {
    bool is_known = shapes[i]->rank >= 0;
    for (int k = 1; k < shapes[i]->rank; ++k) is_known &= shapes[i]->dims[k] >= 0;
    if (!is_known)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "dense_shapes[%zu] has unknown rank or unknown inner dimensions", i);
  }
  return NULL;
}

// ---- reading ----

static weir_status_t* add_keys(parse_t* p) {
  for (int64_t i = 0; i < p->key_count; ++i) {
    const weir_view_t key = p->plan->keys[i];
    if (weir_map_find(&p->keys, key))
      return WEIR_STATUS(INTERNAL, "Key '%.*s' is asked for more than once", WEIR_VIEW_ARG(key));
    WEIR_TRY(weir_map_put(&p->keys, key, (void*)(uintptr_t)(i + 1)));
  }
  return NULL;
}

static void keep_feature(void* arg, weir_view_t name, const weir_feature_t* feature) {
  parse_t* p = arg;
  const uintptr_t number = (uintptr_t)weir_map_find(&p->keys, name);
  if (number > 0) p->row[number - 1] = *feature;
}

// The name that the caller gave the example, for messages.
static weir_view_t example_name(const parse_t* p, int64_t example) {
  bool has_name = p->names && p->names->count > 0;
  return has_name ? io_string(p->names, example) : weir_view_of("<unknown>");
}

// Says before |take_status| which example and key it is about. A single example has no index.
static weir_status_t* at_key(const parse_t* p, int64_t example, weir_view_t key,
                             weir_status_t* take_status) {
  if (!p->is_batch) return weir_status_prefix(take_status, "Key: %.*s.  ", WEIR_VIEW_ARG(key));
  return weir_status_prefix(take_status, "Name: %.*s, Key: %.*s, Index: %lld.  ",
                            WEIR_VIEW_ARG(example_name(p, example)), WEIR_VIEW_ARG(key),
                            (long long)example);
}

static weir_dtype_t type_of(const weir_examples_plan_t* plan, int64_t key) {
  if (key < plan->sparse_count) return plan->sparse_types[key];
  key -= plan->sparse_count;
  return key < plan->dense_count ? plan->dense_types[key]
                                 : plan->ragged_types[key - plan->dense_count];
}

// ---- what is wrong with an example ----

static weir_status_t* bad_type(const parse_t* p, int64_t example, int64_t key) {
  return at_key(
      p, example, p->plan->keys[key],
      WEIR_STATUS(INVALID_ARGUMENT, "Data types don't match. Data type: %s but expected type: %s",
                  weir_dtype_name(feature_at(p, example, key)->dtype),
                  weir_dtype_name(type_of(p->plan, key))));
}

static weir_status_t* bad_dense(const parse_t* p, int64_t example, int64_t d, int64_t count,
                                const weir_shape_t* shape) {
  const weir_view_t key = p->plan->keys[p->plan->sparse_count + d];
  const weir_dtype_t dtype = p->plan->dense_types[d];
  const char* type = dtype == WEIR_DTYPE_STRING ? "bytes" : weir_dtype_name(dtype);
  weir_strbuf_t text = {0};
  weir_shape_append(shape, &text);
  const weir_view_t expected = weir_strbuf_view(&text);
  weir_status_t* status =
      is_variable(shape)
          ? WEIR_STATUS(INVALID_ARGUMENT,
                        "Number of %s values is not a multiple of stride length. Saw %lld values "
                        "but output shape is: %.*s",
                        type, (long long)count, WEIR_VIEW_ARG(expected))
          : WEIR_STATUS(INVALID_ARGUMENT,
                        "Number of %s values != expected.  Values size: %lld but output shape: "
                        "%.*s",
                        type, (long long)count, WEIR_VIEW_ARG(expected));
  weir_strbuf_free(&text);
  return at_key(p, example, key, status);
}

static weir_status_t* missing(const parse_t* p, int64_t example, int64_t d) {
  const weir_view_t key = p->plan->keys[p->plan->sparse_count + d];
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT, "Feature: %.*s (data type: %s) is required but could not be found.",
      WEIR_VIEW_ARG(key), weir_dtype_name(p->plan->dense_types[d]));
  if (!p->is_batch) return status;
  return weir_status_prefix(status, "Name: %.*s, ", WEIR_VIEW_ARG(example_name(p, example)));
}

static bool is_count_right(const weir_shape_t* shape, int64_t count) {
  const int64_t stride = stride_of(shape);
  if (!is_variable(shape)) return count == stride;
  return stride > 0 ? count % stride == 0 : count == 0;
}

// The first fault of an example that is read: in what it has, before what it lacks.
static weir_status_t* check_example(const parse_t* p, int64_t e) {
  const weir_examples_plan_t* plan = p->plan;
  for (int64_t key = 0; key < p->key_count; ++key) {
    const weir_feature_t* feature = feature_at(p, e, key);
    const int64_t d = key - plan->sparse_count;
    if (feature->dtype == WEIR_DTYPE_INVALID) continue;
    if (feature->dtype != type_of(plan, key)) return bad_type(p, e, key);
    bool is_dense = d >= 0 && d < plan->dense_count;
    if (is_dense && !is_count_right(plan->dense_shapes[d], feature->count))
      return bad_dense(p, e, d, feature->count, plan->dense_shapes[d]);
  }
  for (int64_t d = 0; d < plan->dense_count; ++d) {
    const weir_shape_t* shape = plan->dense_shapes[d];
    if (feature_at(p, e, plan->sparse_count + d)->dtype != WEIR_DTYPE_INVALID) continue;
    bool is_needed = !is_variable(shape) && stride_of(shape) > 0 && plan->defaults[d]->count == 0;
    if (is_needed) return missing(p, e, d);
  }
  return NULL;
}

static weir_status_t* read_examples(parse_t* p) {
  WEIR_TRY(add_keys(p));
  p->features = weir_calloc((size_t)(p->batch * p->key_count + 1), sizeof(*p->features));
  if (!p->features) return weir_out_of_memory();
  for (int64_t i = 0; i < p->batch; ++i) {
    p->row = feature_at(p, i, 0);
    weir_status_t* status = weir_example_parse(io_string(p->serialized, i), keep_feature, p);
    WEIR_TRY(weir_status_prefix(status, "Could not parse example input %lld: ", (long long)i));
    WEIR_TRY(check_example(p, i));
  }
  return NULL;
}

weir_status_t* weir_feature_put(const weir_feature_t* feature, weir_tensor_t* out, int64_t at) {
  if (feature->dtype == WEIR_DTYPE_INVALID || feature->count == 0) return NULL;
  if (feature->dtype != WEIR_DTYPE_STRING) {
    weir_feature_read(feature,
                      (char*)out->data + (size_t)at * weir_dtype_size(weir_tensor_type(out)));
    return NULL;
  }
  weir_wire_reader_t r = weir_wire_reader(feature->list);
  weir_view_t text;
  while (weir_feature_next_string(&r, &text))
    WEIR_TRY(weir_tensor_set_string(out, at++, text.data, text.size));
  return NULL;
}

// ---- sparse and ragged ----

// Output |i|: the values of |key| in all examples, one after the other.
static weir_status_t* put_flat(const parse_t* p, int64_t i, int64_t key) {
  int64_t total = 0;
  for (int64_t e = 0; e < p->batch; ++e) total += feature_at(p, e, key)->count;
  WEIR_TRY(weir_tensor_create(type_of(p->plan, key), 1, &total, &p->out[i]));
  weir_tensor_t* out = p->out[i];
  int64_t at = 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    WEIR_TRY(weir_feature_put(feature_at(p, e, key), out, at));
    at += feature_at(p, e, key)->count;
  }
  return NULL;
}

static weir_status_t* put_sparse(const parse_t* p, int64_t key) {
  const int width = p->is_batch ? 2 : 1;
  const int64_t count = p->plan->sparse_count;
  int64_t total = 0, longest = 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    total += feature_at(p, e, key)->count;
    longest = WEIR_MAX(longest, feature_at(p, e, key)->count);
  }
  weir_tensor_t** out = &p->out[key];
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, 2, (const int64_t[]){total, width}, &out[0]));
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, 1, (const int64_t[]){width}, &out[2 * count]));
  int64_t* index = WEIR_TENSOR_DATA(out[0], int64_t);
  int64_t* shape = WEIR_TENSOR_DATA(out[2 * count], int64_t);
  for (int64_t e = 0; e < p->batch; ++e) {
    for (int64_t i = 0; i < feature_at(p, e, key)->count; ++i) {
      if (p->is_batch) *index++ = e;
      *index++ = i;
    }
  }
  if (p->is_batch) shape[0] = p->batch;
  shape[width - 1] = longest;
  return put_flat(p, count + key, key);
}

static weir_status_t* put_ragged(const parse_t* p, int64_t r) {
  const weir_examples_plan_t* plan = p->plan;
  const int64_t first = 3 * plan->sparse_count + plan->dense_count;
  const int64_t key = plan->sparse_count + plan->dense_count + r;
  WEIR_TRY(put_flat(p, first + r, key));
  const int64_t split_count = p->is_batch ? p->batch + 1 : 0;  // one row needs no splits
  weir_tensor_t** out = &p->out[first + plan->ragged_count + r];
  WEIR_TRY(weir_tensor_create(plan->split_types[r], 1, &split_count, out));
  weir_tensor_t* splits = *out;
  int64_t end = 0;
  for (int64_t e = 0; e < split_count; ++e) {
    if (splits->dtype == WEIR_DTYPE_INT32) {
      WEIR_TENSOR_DATA(splits, int32_t)[e] = (int32_t)end;
    } else {
      WEIR_TENSOR_DATA(splits, int64_t)[e] = end;
    }
    if (e < p->batch) end += feature_at(p, e, key)->count;
  }
  return NULL;
}

// ---- dense ----

// The largest number of strides that an example has of dense key |d|.
static int64_t longest_dense(const parse_t* p, int64_t d) {
  const int64_t stride = stride_of(p->plan->dense_shapes[d]);
  int64_t strides = 0;
  for (int64_t e = 0; stride > 0 && e < p->batch; ++e)
    strides = WEIR_MAX(strides, feature_at(p, e, p->plan->sparse_count + d)->count / stride);
  return strides;
}

// Elements [begin, end) of |out| are the default: all of it, or its one element again and again.
static weir_status_t* put_default(const weir_tensor_t* given, weir_tensor_t* out, int64_t begin,
                                  int64_t end) {
  const size_t size = weir_dtype_size(weir_tensor_type(out));
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = given->count == 1 ? 0 : i - begin;
    if (out->dtype == WEIR_DTYPE_STRING) {
      const weir_view_t text = io_string(given, from);
      WEIR_TRY(weir_tensor_set_string(out, i, text.data, text.size));
    } else {
      memcpy((char*)out->data + (size_t)i * size, (const char*)given->data + (size_t)from * size,
             size);
    }
  }
  return NULL;
}

static weir_status_t* put_dense(const parse_t* p, int64_t d) {
  const weir_examples_plan_t* plan = p->plan;
  const weir_shape_t* shape = plan->dense_shapes[d];
  const weir_tensor_t* given = p->plan->defaults[d];
  const int64_t strides = longest_dense(p, d);
  int64_t dims[WEIR_MAX_RANK + 1];
  int rank = 0;
  if (p->is_batch) dims[rank++] = p->batch;
  for (int i = 0; i < shape->rank; ++i)
    dims[rank++] = shape->dims[i] < 0 ? strides : shape->dims[i];
  weir_tensor_t** place = &p->out[3 * plan->sparse_count + d];
  WEIR_TRY(weir_tensor_create(plan->dense_types[d], rank, dims, place));
  weir_tensor_t* out = *place;
  const int64_t row = p->batch > 0 ? out->count / p->batch : 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_feature_t* feature = feature_at(p, e, p->plan->sparse_count + d);
    WEIR_TRY(weir_feature_put(feature, out, e * row));
    WEIR_TRY(put_default(given, out, e * row + feature->count, (e + 1) * row));
  }
  return NULL;
}

static weir_status_t* parse_all(parse_t* p) {
  WEIR_TRY(read_examples(p));
  for (int64_t d = 0; d < p->plan->dense_count; ++d) WEIR_TRY(put_dense(p, d));
  for (int64_t s = 0; s < p->plan->sparse_count; ++s) WEIR_TRY(put_sparse(p, s));
  for (int64_t r = 0; r < p->plan->ragged_count; ++r) WEIR_TRY(put_ragged(p, r));
  return NULL;
}

weir_status_t* weir_examples_parse(const weir_examples_plan_t* plan,
                                   const weir_tensor_t* serialized, const weir_tensor_t* names,
                                   weir_tensor_t** out) {
  const int64_t count = weir_examples_output_count(plan);
  parse_t p = {.plan = plan,
               .serialized = serialized,
               .names = names,
               .out = out,
               .is_batch = serialized->rank == 1,
               .batch = serialized->count,
               .key_count = plan->sparse_count + plan->dense_count + plan->ragged_count};
  for (int64_t i = 0; i < count; ++i) out[i] = NULL;
  weir_status_t* status = parse_all(&p);
  for (int64_t i = 0; i < count && status; ++i) {
    weir_tensor_release(out[i]);
    out[i] = NULL;
  }
  weir_map_free(&p.keys);
  weir_free(p.features);
  return status;
}
