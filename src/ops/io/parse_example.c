// parse_example.c — ParseExampleV2: Example messages become dense, sparse and ragged tensors.
#include <stdio.h>

#include "base/map.h"
#include "file/example.h"
#include "ops/io/common.h"

enum { SERIALIZED, NAMES, SPARSE_KEYS, DENSE_KEYS, RAGGED_KEYS, DENSE_DEFAULTS };

typedef struct parse_t {
  weir_kernel_ctx_t* ctx;
  const weir_tensor_t* serialized;
  bool is_batch;  // a vector of examples
  int64_t batch;  // 1 for a scalar
  int64_t sparse_count, dense_count, ragged_count, key_count;
  weir_map_t keys;           // key → its number plus one; sparse ones first, then dense, ragged
  weir_feature_t* features;  // |batch| times |key_count|
  weir_feature_t* row;       // of the example that is being read
} parse_t;

static const weir_attr_t* list_attr(const parse_t* p, const char* name) {
  return weir_attrs_list(weir_kernel_attrs(p->ctx), name);
}

static weir_feature_t* feature_at(const parse_t* p, int64_t example, int64_t key) {
  return &p->features[example * p->key_count + key];
}

// ---- what is asked for ----

static weir_status_t* check_vector(const parse_t* p, int input, const char* name, int64_t expected,
                                   const char* types) {
  const weir_tensor_t* keys = weir_kernel_input(p->ctx, input);
  if (keys->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s to be a vector, got shape: %s", name,
                       weir_tensor_shape_text(keys, text));
  }
  if (keys->count == expected) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected len(%s) == len(%s), got: %lld vs. %lld", name,
                     types, (long long)keys->count, (long long)expected);
}

static bool is_variable(const weir_shape_t* shape) { return shape->rank > 0 && shape->dims[0] < 0; }

// Elements of one step along the first dimension of a variable shape; of the whole of another.
static int64_t stride_of(const weir_shape_t* shape) {
  int64_t stride = 1;
  for (int i = is_variable(shape) ? 1 : 0; i < shape->rank; ++i) stride *= shape->dims[i];
  return stride;
}

static weir_status_t* check_default(const parse_t* p, int64_t d, const weir_shape_t* shape) {
  const weir_tensor_t* value = weir_kernel_input(p->ctx, DENSE_DEFAULTS + (int)d);
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

static weir_status_t* check_inputs(parse_t* p) {
  char text[WEIR_SHAPE_TEXT_SIZE], other[WEIR_SHAPE_TEXT_SIZE];
  if (p->serialized->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected serialized to be a scalar or vector, got shape: %s",
                       weir_tensor_shape_text(p->serialized, text));
  }
  const weir_tensor_t* names = weir_kernel_input(p->ctx, NAMES);
  if (names->count > 0 && !weir_tensor_same_shape(names, p->serialized)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected names have the same shape as serialized: name.shape=%s, "
                       "serialized.shape=%s",
                       weir_tensor_shape_text(names, text),
                       weir_tensor_shape_text(p->serialized, other));
  }
  WEIR_TRY(check_vector(p, SPARSE_KEYS, "sparse_keys", p->sparse_count, "sparse_types"));
  WEIR_TRY(check_vector(p, DENSE_KEYS, "dense_keys", p->dense_count, "dense_types"));
  WEIR_TRY(check_vector(p, RAGGED_KEYS, "ragged_keys", p->ragged_count, "ragged_value_types"));
  const weir_attr_t* shapes = list_attr(p, "dense_shapes");
  for (int64_t d = 0; d < p->dense_count; ++d) WEIR_TRY(check_default(p, d, shapes->u.shapes[d]));
  return NULL;
}

static weir_status_t* check_dense_shapes(const weir_attr_t* shapes) {
  for (size_t i = 0; i < shapes->count; ++i) {
    const weir_shape_t* shape = shapes->u.shapes[i];
    bool is_known = shape->rank >= 0;
    for (int k = 1; k < shape->rank; ++k) is_known &= shape->dims[k] >= 0;
    if (!is_known) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "dense_shapes[%zu] has unknown rank or unknown inner dimensions", i);
    }
  }
  return NULL;
}

static weir_status_t* parse_init(const weir_kernel_init_t* init, void* state) {
  (void)state;
  const weir_attrs_t attrs = init->node->attrs;
  const weir_attr_t* shapes = weir_attrs_list(attrs, "dense_shapes");
  if ((size_t)weir_attrs_int(attrs, "num_sparse") !=
      weir_attrs_list(attrs, "sparse_types")->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "len(sparse_keys) != len(sparse_types)");
  }
  if (weir_attrs_list(attrs, "Tdense")->count != shapes->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "len(dense_keys) != len(dense_shapes)");
  }
  if (weir_attrs_list(attrs, "ragged_value_types")->count !=
      weir_attrs_list(attrs, "ragged_split_types")->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "len(ragged_value_types) != len(ragged_split_types)");
  }
  return check_dense_shapes(shapes);
}

// ---- reading ----

static weir_status_t* add_keys(parse_t* p, int input, int64_t first) {
  const weir_tensor_t* keys = weir_kernel_input(p->ctx, input);
  for (int64_t i = 0; i < keys->count; ++i) {
    const weir_view_t key = io_string(keys, i);
    if (weir_map_find(&p->keys, key)) {
      return WEIR_STATUS(INTERNAL, "Key '%.*s' is asked for more than once", WEIR_VIEW_ARG(key));
    }
    WEIR_TRY(weir_map_put(&p->keys, key, (void*)(uintptr_t)(first + i + 1)));
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
  const weir_tensor_t* names = weir_kernel_input(p->ctx, NAMES);
  return names->count > 0 ? io_string(names, example) : weir_view_of("<unknown>");
}

// Says before |take_status| which example and key it is about. A single example has no index.
static weir_status_t* at_key(const parse_t* p, int64_t example, weir_view_t key,
                             weir_status_t* take_status) {
  if (!p->is_batch) return weir_status_prefix(take_status, "Key: %.*s.  ", WEIR_VIEW_ARG(key));
  return weir_status_prefix(take_status, "Name: %.*s, Key: %.*s, Index: %lld.  ",
                            WEIR_VIEW_ARG(example_name(p, example)), WEIR_VIEW_ARG(key),
                            (long long)example);
}

static weir_status_t* check_type(const parse_t* p, int64_t example, int64_t key, weir_dtype_t dtype,
                                 weir_view_t name) {
  const weir_feature_t* feature = feature_at(p, example, key);
  if (feature->dtype == WEIR_DTYPE_INVALID || feature->dtype == dtype) return NULL;
  return at_key(
      p, example, name,
      WEIR_STATUS(INVALID_ARGUMENT, "Data types don't match. Data type: %s but expected type: %s",
                  weir_dtype_name(feature->dtype), weir_dtype_name(dtype)));
}

static weir_status_t* check_types(const parse_t* p, int input, int64_t first,
                                  const char* types_attr) {
  const weir_attr_t* types = list_attr(p, types_attr);
  const weir_tensor_t* keys = weir_kernel_input(p->ctx, input);
  for (int64_t key = 0; key < keys->count; ++key) {
    for (int64_t i = 0; i < p->batch; ++i)
      WEIR_TRY(check_type(p, i, first + key, types->u.types[key], io_string(keys, key)));
  }
  return NULL;
}

static weir_status_t* read_examples(parse_t* p) {
  WEIR_TRY(add_keys(p, SPARSE_KEYS, 0));
  WEIR_TRY(add_keys(p, DENSE_KEYS, p->sparse_count));
  WEIR_TRY(add_keys(p, RAGGED_KEYS, p->sparse_count + p->dense_count));
  p->features = weir_calloc((size_t)(p->batch * p->key_count + 1), sizeof(*p->features));
  if (!p->features) return weir_out_of_memory();
  for (int64_t i = 0; i < p->batch; ++i) {
    p->row = feature_at(p, i, 0);
    weir_status_t* status = weir_example_parse(io_string(p->serialized, i), keep_feature, p);
    WEIR_TRY(weir_status_prefix(status, "Could not parse example input %lld: ", (long long)i));
  }
  WEIR_TRY(check_types(p, SPARSE_KEYS, 0, "sparse_types"));
  WEIR_TRY(check_types(p, DENSE_KEYS, p->sparse_count, "Tdense"));
  return check_types(p, RAGGED_KEYS, p->sparse_count + p->dense_count, "ragged_value_types");
}

// Writes the values of |feature| to |out| from element |at| on.
static weir_status_t* put_values(const weir_feature_t* feature, weir_tensor_t* out, int64_t at) {
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
static weir_status_t* put_flat(const parse_t* p, int i, int64_t key) {
  int64_t total = 0;
  for (int64_t e = 0; e < p->batch; ++e) total += feature_at(p, e, key)->count;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(p->ctx, i, 1, &total, &out));
  int64_t at = 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    WEIR_TRY(put_values(feature_at(p, e, key), out, at));
    at += feature_at(p, e, key)->count;
  }
  return NULL;
}

static weir_status_t* put_sparse(const parse_t* p, int64_t key) {
  const int width = p->is_batch ? 2 : 1;
  const int count = (int)p->sparse_count;
  int64_t total = 0, longest = 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    total += feature_at(p, e, key)->count;
    longest = WEIR_MAX(longest, feature_at(p, e, key)->count);
  }
  weir_tensor_t* indices = NULL;
  weir_tensor_t* shape = NULL;
  WEIR_TRY(weir_kernel_output(p->ctx, (int)key, 2, (const int64_t[]){total, width}, &indices));
  WEIR_TRY(weir_kernel_output(p->ctx, 2 * count + (int)key, 1, (const int64_t[]){width}, &shape));
  int64_t* index = WEIR_TENSOR_DATA(indices, int64_t);
  for (int64_t e = 0; e < p->batch; ++e) {
    for (int64_t i = 0; i < feature_at(p, e, key)->count; ++i) {
      if (p->is_batch) *index++ = e;
      *index++ = i;
    }
  }
  if (p->is_batch) WEIR_TENSOR_DATA(shape, int64_t)[0] = p->batch;
  WEIR_TENSOR_DATA(shape, int64_t)[width - 1] = longest;
  return put_flat(p, count + (int)key, key);
}

static weir_status_t* put_ragged(const parse_t* p, int64_t r) {
  const int first = (int)(3 * p->sparse_count + p->dense_count);
  const int64_t key = p->sparse_count + p->dense_count + r;
  WEIR_TRY(put_flat(p, first + (int)r, key));
  const int64_t split_count = p->is_batch ? p->batch + 1 : 0;  // one row needs no splits
  weir_tensor_t* splits = NULL;
  WEIR_TRY(
      weir_kernel_output(p->ctx, first + (int)(p->ragged_count + r), 1, &split_count, &splits));
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

static weir_status_t* bad_dense(const parse_t* p, int64_t example, int64_t d, int64_t count,
                                const weir_shape_t* shape) {
  const weir_view_t key = io_string(weir_kernel_input(p->ctx, DENSE_KEYS), d);
  const weir_dtype_t dtype = weir_tensor_type(weir_kernel_input(p->ctx, DENSE_DEFAULTS + (int)d));
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
  const weir_view_t key = io_string(weir_kernel_input(p->ctx, DENSE_KEYS), d);
  const weir_tensor_t* given = weir_kernel_input(p->ctx, DENSE_DEFAULTS + (int)d);
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT, "Feature: %.*s (data type: %s) is required but could not be found.",
      WEIR_VIEW_ARG(key), weir_dtype_name(weir_tensor_type(given)));
  if (!p->is_batch) return status;
  return weir_status_prefix(status, "Name: %.*s, ", WEIR_VIEW_ARG(example_name(p, example)));
}

// Checks the values of dense key |d| in all examples; sets the largest number of strides.
static weir_status_t* measure_dense(const parse_t* p, int64_t d, const weir_shape_t* shape,
                                    int64_t* out_strides) {
  const weir_tensor_t* given = weir_kernel_input(p->ctx, DENSE_DEFAULTS + (int)d);
  const int64_t stride = stride_of(shape);
  *out_strides = 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_feature_t* feature = feature_at(p, e, p->sparse_count + d);
    if (is_variable(shape)) {
      if (stride > 0 ? feature->count % stride != 0 : feature->count != 0) {
        return bad_dense(p, e, d, feature->count, shape);
      }
      if (stride > 0) *out_strides = WEIR_MAX(*out_strides, feature->count / stride);
    } else if (feature->dtype == WEIR_DTYPE_INVALID) {
      if (given->count > 0 || stride == 0) continue;
      return missing(p, e, d);
    } else if (feature->count != stride) {
      return bad_dense(p, e, d, feature->count, shape);
    }
  }
  return NULL;
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
  const weir_shape_t* shape = list_attr(p, "dense_shapes")->u.shapes[d];
  const weir_tensor_t* given = weir_kernel_input(p->ctx, DENSE_DEFAULTS + (int)d);
  int64_t strides = 0;
  WEIR_TRY(measure_dense(p, d, shape, &strides));
  int64_t dims[WEIR_MAX_RANK + 1];
  int rank = 0;
  if (p->is_batch) dims[rank++] = p->batch;
  for (int i = 0; i < shape->rank; ++i)
    dims[rank++] = shape->dims[i] < 0 ? strides : shape->dims[i];
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(p->ctx, (int)(3 * p->sparse_count + d), rank, dims, &out));
  const int64_t row = p->batch > 0 ? out->count / p->batch : 0;
  for (int64_t e = 0; e < p->batch; ++e) {
    const weir_feature_t* feature = feature_at(p, e, p->sparse_count + d);
    WEIR_TRY(put_values(feature, out, e * row));
    WEIR_TRY(put_default(given, out, e * row + feature->count, (e + 1) * row));
  }
  return NULL;
}

static weir_status_t* parse_all(parse_t* p) {
  WEIR_TRY(check_inputs(p));
  WEIR_TRY(read_examples(p));
  for (int64_t d = 0; d < p->dense_count; ++d) WEIR_TRY(put_dense(p, d));
  for (int64_t s = 0; s < p->sparse_count; ++s) WEIR_TRY(put_sparse(p, s));
  for (int64_t r = 0; r < p->ragged_count; ++r) WEIR_TRY(put_ragged(p, r));
  return NULL;
}

static weir_status_t* parse_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* serialized = weir_kernel_input(ctx, SERIALIZED);
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  parse_t p = {.ctx = ctx,
               .serialized = serialized,
               .is_batch = serialized->rank == 1,
               .batch = serialized->count,
               .sparse_count = weir_attrs_int(attrs, "num_sparse"),
               .dense_count = (int64_t)weir_attrs_list(attrs, "Tdense")->count,
               .ragged_count = (int64_t)weir_attrs_list(attrs, "ragged_value_types")->count};
  p.key_count = p.sparse_count + p.dense_count + p.ragged_count;
  weir_status_t* status = parse_all(&p);
  weir_map_free(&p.keys);
  weir_free(p.features);
  return status;
}

// ---- shapes ----

static weir_status_t* set_dense_shape(weir_shape_ctx_t* ctx, int output,
                                      const weir_shape_t* shape) {
  const weir_shape_t* prefix = weir_shape_input(ctx, SERIALIZED);
  if (prefix->rank < 0) return NULL;
  return weir_shape_set(ctx, output, weir_shape_concat(ctx, prefix, shape));
}

static weir_status_t* parse_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* serialized = weir_shape_input(ctx, SERIALIZED);
  WEIR_TRY(weir_shape_at_most(ctx, serialized, 1));
  for (int i = SPARSE_KEYS; i <= RAGGED_KEYS; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, NULL));
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  const int sparse = (int)weir_attrs_int(attrs, "num_sparse");
  const weir_attr_t* shapes = weir_attrs_list(attrs, "dense_shapes");
  const int dense = (int)weir_attrs_list(attrs, "Tdense")->count;
  const int ragged = (int)weir_attrs_list(attrs, "ragged_value_types")->count;
  if ((size_t)dense != shapes->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "len(dense_keys) != len(dense_shapes)");
  }
  WEIR_TRY(check_dense_shapes(shapes));
  const int64_t width = serialized->rank < 0 ? -1 : serialized->rank + 1;
  for (int i = 0; i < sparse; ++i) {
    WEIR_TRY(weir_shape_set_dims(ctx, i, 2, (const int64_t[]){-1, width}));
    WEIR_TRY(weir_shape_set_vector(ctx, sparse + i, -1));
    WEIR_TRY(weir_shape_set_vector(ctx, 2 * sparse + i, width));
  }
  for (int i = 0; i < dense; ++i)
    WEIR_TRY(set_dense_shape(ctx, 3 * sparse + i, shapes->u.shapes[i]));
  const int first = 3 * sparse + dense;
  int64_t splits = -1;
  if (serialized->rank == 0) splits = 0;
  if (serialized->rank == 1 && serialized->dims[0] >= 0) splits = serialized->dims[0] + 1;
  for (int i = 0; i < ragged; ++i) {
    WEIR_TRY(weir_shape_set_vector(ctx, first + i, -1));
    WEIR_TRY(weir_shape_set_vector(ctx, first + ragged + i, splits));
  }
  return NULL;
}

const weir_op_module_t weir_ops_io_parse_example = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ParseExampleV2",
         .attrs = "Tdense: list({float, int64, string}) >= 0; num_sparse: int >= 0; "
                  "sparse_types: list({float, int64, string}) >= 0; "
                  "ragged_value_types: list({float, int64, string}) >= 0; "
                  "ragged_split_types: list({int32, int64}) >= 0; dense_shapes: list(shape) >= 0",
         .inputs = "serialized: string; names: string; sparse_keys: string; dense_keys: string; "
                   "ragged_keys: string; dense_defaults: Tdense",
         .outputs = "sparse_indices: num_sparse * int64; sparse_values: sparse_types; "
                    "sparse_shapes: num_sparse * int64; dense_values: Tdense; "
                    "ragged_values: ragged_value_types; ragged_row_splits: ragged_split_types",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads Example messages into tensors",
         .infer_shape = parse_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = parse_cpu, .state_size = 1, .init = parse_init)},
        {0}}};
