// tensor_array_bulk.c — TensorArrayGather, Scatter, Concat, Split of all three generations, and
// Pack and Unpack of the first: many elements at once, as rows of one tensor.
#include "ops/list/array_common.h"
#include "ops/list/rows.h"

static weir_status_t* not_vector(const char* what, const weir_tensor_t* t) {
  char shape[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s received shape: %s", what,
                     weir_tensor_shape_text(t, shape));
}

static weir_status_t* no_static_shape(const char* what, const weir_shape_t* shape,
                                      const char* doing) {
  weir_strbuf_t text = {0};
  weir_shape_append(shape, &text);
  weir_status_t* status = WEIR_STATUS(
      UNIMPLEMENTED,
      "TensorArray has size zero, but %s %s is not fully defined. Currently only static "
      "shapes are supported when %s zero-size TensorArrays.",
      what, text.data ? text.data : "", doing);
  weir_strbuf_free(&text);
  return status;
}

static void release_items(weir_tensor_t** items, int64_t count) {
  for (int64_t i = 0; i < count; ++i) weir_tensor_release(items[i]);
  weir_free(items);
}

// Reads elements |indices| (NULL: 0, 1, 2 …). The caller releases them.
static weir_status_t* read_many(const weir_kernel_ctx_t* ctx, weir_tensor_array_t* array,
                                const int32_t* indices, int64_t count, weir_tensor_t*** out_items) {
  weir_tensor_t** items = weir_calloc((size_t)count, sizeof(*items));
  weir_status_t* status = items ? NULL : weir_out_of_memory();
  for (int64_t i = 0; i < count && !status; ++i) {
    status = weir_tensor_array_read(array, indices ? indices[i] : i, ARRAY_MEMORY(ctx), &items[i]);
  }
  if (status) {
    release_items(items, items ? count : 0);
    return status;
  }
  *out_items = items;
  return NULL;
}

// Copies |items|, which agree but for dimension 0, into output 0.
static weir_status_t* join_items(weir_kernel_ctx_t* ctx, weir_tensor_t** items, int64_t count,
                                 int rank, const int64_t* dims) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  rows_t rows = rows_of(ctx, out);
  for (int64_t i = 0; i < count; ++i) WEIR_TRY(rows_append(&rows, items[i], 0));
  return rows_finish(&rows);
}

// ---- gather ----

static weir_status_t* gather_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 2));
  const weir_shape_t* indices = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &indices));
  const weir_shape_t* element = weir_attrs_shape(weir_shape_attrs(ctx), "element_shape");
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, indices, element));
}

static weir_status_t* gather_nothing(weir_kernel_ctx_t* ctx, weir_tensor_array_t* array,
                                     const weir_shape_t* element) {
  int64_t dims[WEIR_MAX_RANK + 1] = {0};
  weir_tensor_t* out = NULL;
  weir_mutex_lock(&array->mu);
  const weir_shape_t* known = array->element_shape;  // the arena keeps it when another replaces it
  weir_mutex_unlock(&array->mu);
  if (!weir_shape_is_full(known)) return no_static_shape("element shape", known, "packing");
  if (weir_shape_is_full(element)) known = element;
  for (int i = 0; i < known->rank; ++i) dims[i + 1] = known->dims[i];
  return weir_kernel_output(ctx, 0, known->rank + 1, dims, &out);
}

static weir_status_t* check_alike(weir_tensor_t** items, int64_t count,
                                  const weir_shape_t* element) {
  char first[WEIR_SHAPE_TEXT_SIZE], other[WEIR_SHAPE_TEXT_SIZE];
  if (!weir_shape_accepts(element, items[0]->rank, items[0]->dims)) {
    weir_strbuf_t text = {0};
    weir_shape_append(element, &text);
    weir_status_t* status = WEIR_STATUS(
        INVALID_ARGUMENT,
        "TensorArray was passed element_shape %s which does not match the Tensor at index 0: %s",
        text.data ? text.data : "", weir_tensor_shape_text(items[0], first));
    weir_strbuf_free(&text);
    return status;
  }
  for (int64_t i = 1; i < count; ++i) {
    if (weir_tensor_same_shape(items[0], items[i])) continue;
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "TensorArray has inconsistent shapes.  Index 0 has shape: %s but index %lld has shape: %s",
        weir_tensor_shape_text(items[0], first), (long long)i,
        weir_tensor_shape_text(items[i], other));
  }
  return NULL;
}

// Elements |indices|, or all |count| of them where that is NULL.
static weir_status_t* gather_items(weir_kernel_ctx_t* ctx, weir_tensor_array_t* array,
                                   const int32_t* indices, int64_t count) {
  const weir_shape_t* element = weir_attrs_shape(weir_kernel_attrs(ctx), "element_shape");
  weir_tensor_t** items = NULL;
  int64_t dims[WEIR_MAX_RANK + 1];
  if (count == 0) return gather_nothing(ctx, array, element);
  WEIR_TRY(read_many(ctx, array, indices, count, &items));
  weir_status_t* status = check_alike(items, count, element);
  if (!status) {
    dims[0] = count;
    for (int i = 0; i < items[0]->rank; ++i) dims[i + 1] = items[0]->dims[i];
    status = join_items(ctx, items, count, items[0]->rank + 1, dims);
  }
  release_items(items, count);
  return status;
}

// Without an input of indices, in TensorArrayPack, all elements.
static weir_status_t* gather_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = ctx->input_count > 2 ? weir_kernel_input(ctx, 1) : NULL;
  weir_tensor_array_t* array = NULL;
  int64_t count = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(array_check_read(array, ctx->node->output_types[0]));
  WEIR_TRY(weir_tensor_array_merge_shape(
      array, weir_attrs_shape(weir_kernel_attrs(ctx), "element_shape")));
  if (!indices) {
    WEIR_TRY(weir_tensor_array_size(array, &count));
    return gather_items(ctx, array, NULL, count);
  }
  if (indices->rank != 1) return not_vector("indices to be a vector, but", indices);
  return gather_items(ctx, array, indices->data, indices->count);
}

static weir_status_t* gather_grad(weir_grad_ctx_t* g) {
  array_grad_t grad = array_grad_of(g, weir_grad_input(g, 2));
  weir_edge_t flow =
      weir_grad_node(g, "TensorArrayScatterV3",
                     WEIR_EDGES(grad.handle, weir_grad_input(g, 1), weir_grad_dy(g, 0), grad.flow));
  return weir_grad_set(g, 2, flow);
}

// ---- scatter ----

static weir_status_t* scatter_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 3));
  const weir_shape_t* indices = NULL;
  const weir_shape_t* joined = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &indices));
  const weir_shape_t* value = weir_shape_input(ctx, 2);
  if (value->rank > 0)
    WEIR_TRY(weir_shape_join(ctx, indices, weir_shape_sub(ctx, value, 0, 1), &joined));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* check_scatter(const weir_tensor_t* indices, const weir_tensor_t* value) {
  if (value->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input value for unpack must be at least a vector but received shape: []");
  }
  if (indices->rank != 1) return not_vector("indices to be a vector, but", indices);
  if (indices->count != value->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected len(indices) == values.shape[0], but saw: %lld vs. %lld",
                       (long long)indices->count, (long long)value->dims[0]);
  }
  return NULL;
}

static weir_status_t* scatter_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  weir_tensor_t* value = ctx->inputs[2].tensor;
  weir_tensor_array_t* array = NULL;
  int64_t size = 0, needed = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(array_check_write(array, value));
  WEIR_TRY(check_scatter(indices, value));
  const int32_t* at = WEIR_TENSOR_DATA(indices, const int32_t);
  for (int64_t i = 0; i < indices->count; ++i) needed = WEIR_MAX(needed, (int64_t)at[i] + 1);
  WEIR_TRY(weir_tensor_array_mark_size(array, needed, &size));
  for (int64_t i = 0; i < indices->count; ++i) {
    weir_tensor_t* row = NULL;
    WEIR_TRY(rows_create(ctx, value, i, i + 1, true, &row));
    WEIR_TRY(weir_tensor_array_write(array, at[i], row, ARRAY_MEMORY(ctx)));
  }
  weir_kernel_pass(ctx, 3, 0);
  return NULL;
}

// TensorArrayUnpack: rows to elements of the same numbers.
static weir_status_t* unpack_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* value = ctx->inputs[1].tensor;
  weir_tensor_array_t* array = NULL;
  int64_t size = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(array_check_write(array, value));
  if (value->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input value for unpack must be at least a vector but received shape: []");
  }
  WEIR_TRY(weir_tensor_array_mark_size(array, value->dims[0], &size));
  if (size != value->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input value must have first dimension equal to the array size (%lld vs. "
                       "%lld)",
                       (long long)value->dims[0], (long long)size);
  }
  for (int64_t i = 0; i < size; ++i) {
    weir_tensor_t* row = NULL;
    WEIR_TRY(rows_create(ctx, value, i, i + 1, true, &row));
    WEIR_TRY(weir_tensor_array_write(array, i, row, ARRAY_MEMORY(ctx)));
  }
  weir_kernel_pass(ctx, 2, 0);
  return NULL;
}

static weir_status_t* scatter_grad(weir_grad_ctx_t* g) {
  weir_edge_t flow = array_grad_barrier(g);
  array_grad_t grad = array_grad_of(g, flow);
  weir_dtype_t dtype = weir_attrs_type(weir_grad_attrs(g), "T");
  weir_edge_t dx = weir_grad_node_with(
      g, "TensorArrayGatherV3", WEIR_EDGES(grad.handle, weir_grad_input(g, 1), grad.flow),
      WEIR_ATTRS(weir_attr_type("dtype", dtype),
                 weir_attr_shape("element_shape", &weir_shape_unknown)));
  WEIR_TRY(weir_grad_set(g, 2, dx));
  return weir_grad_set(g, 3, flow);
}

// ---- concat ----

static weir_status_t* concat_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 1));
  const weir_shape_t* first = weir_shape_make(ctx->arena, 1, (const int64_t[]){-1});
  const weir_shape_t* rest = weir_attrs_shape(weir_shape_attrs(ctx), "element_shape_except0");
  if (!first) return weir_out_of_memory();
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_concat(ctx, first, rest)));
  return weir_shape_set_vector(ctx, 1, -1);
}

static weir_status_t* concat_nothing(weir_kernel_ctx_t* ctx, const weir_shape_t* rest) {
  int64_t dims[WEIR_MAX_RANK + 1] = {0};
  weir_tensor_t* out = NULL;
  if (!weir_shape_is_full(rest))
    return no_static_shape("element_shape_except0", rest, "concatenating");
  for (int i = 0; i < rest->rank; ++i) dims[i + 1] = rest->dims[i];
  WEIR_TRY(weir_kernel_output(ctx, 0, rest->rank + 1, dims, &out));
  return weir_kernel_output(ctx, 1, 1, (const int64_t[]){0}, &out);
}

static weir_status_t* concat_mismatch(weir_tensor_t** items, int64_t i, const weir_shape_t* rest) {
  char first[WEIR_SHAPE_TEXT_SIZE], other[WEIR_SHAPE_TEXT_SIZE];
  weir_shape_text(items[0]->rank - 1, items[0]->dims + 1, first);
  if (i > 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) "
                       "shape: %s but index %lld "
                       "has (excepting dimension 0) shape: %s",
                       first, (long long)i,
                       weir_shape_text(items[i]->rank - 1, items[i]->dims + 1, other));
  }
  weir_strbuf_t text = {0};
  weir_shape_append(rest, &text);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT,
                  "TensorArray was passed element_shape_except0 %s but index 0 has (excepting "
                  "dimension 0) shape: %s which does not match.",
                  text.data ? text.data : "", first);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* check_concat(weir_tensor_t** items, int64_t count, const weir_shape_t* rest,
                                   int64_t* out_total) {
  *out_total = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (items[i]->rank == 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Concat saw a scalar shape at index %lld but requires at least vectors.  "
                         "Did you mean to call "
                         "pack?",
                         (long long)i);
    }
    bool fits = items[i]->rank == items[0]->rank;
    for (int d = 1; fits && d < items[0]->rank; ++d) fits = items[i]->dims[d] == items[0]->dims[d];
    if (i == 0) fits = weir_shape_accepts(rest, items[0]->rank - 1, items[0]->dims + 1);
    if (!fits) return concat_mismatch(items, i, rest);
    *out_total += items[i]->dims[0];
  }
  return NULL;
}

static weir_status_t* concat_items(weir_kernel_ctx_t* ctx, weir_tensor_t** items, int64_t count,
                                   const weir_shape_t* rest) {
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t* lengths = NULL;
  int64_t total = 0;
  WEIR_TRY(check_concat(items, count, rest, &total));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &lengths));
  for (int64_t i = 0; i < count; ++i) WEIR_TENSOR_DATA(lengths, int64_t)[i] = items[i]->dims[0];
  for (int d = 0; d < items[0]->rank; ++d) dims[d] = items[0]->dims[d];
  dims[0] = total;
  return join_items(ctx, items, count, items[0]->rank, dims);
}

static weir_status_t* concat_cpu(weir_kernel_ctx_t* ctx) {
  const weir_shape_t* rest = weir_attrs_shape(weir_kernel_attrs(ctx), "element_shape_except0");
  weir_tensor_array_t* array = NULL;
  weir_tensor_t** items = NULL;
  int64_t count = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(array_check_read(array, ctx->node->output_types[0]));
  WEIR_TRY(weir_tensor_array_concat_size(array, &count));
  if (count == 0) return concat_nothing(ctx, rest);
  WEIR_TRY(read_many(ctx, array, NULL, count, &items));
  weir_status_t* status = concat_items(ctx, items, count, rest);
  release_items(items, count);
  return status;
}

static weir_status_t* concat_grad(weir_grad_ctx_t* g) {
  array_grad_t grad = array_grad_of(g, weir_grad_input(g, 1));
  weir_edge_t flow = weir_grad_node(
      g, "TensorArraySplitV3",
      WEIR_EDGES(grad.handle, weir_grad_dy(g, 0), weir_grad_output(g, 1), grad.flow));
  return weir_grad_set(g, 1, flow);
}

// ---- split ----

static weir_status_t* split_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 3));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* check_split(const weir_tensor_t* value, const weir_tensor_t* lengths) {
  char shape[WEIR_SHAPE_TEXT_SIZE];
  int64_t total = 0;
  if (lengths->rank != 1) return not_vector("lengths to be a vector,", lengths);
  if (value->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected value to be at least a vector, but received shape: []");
  }
  int64_t least = 0;
  for (int64_t i = 0; i < lengths->count; ++i) {
    int64_t length = WEIR_TENSOR_DATA(lengths, const int64_t)[i];
    least = WEIR_MIN(least, length);
    if (__builtin_add_overflow(total, length, &total)) total = INT64_MAX;
  }
  if (total != value->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected sum of lengths to be equal to values.shape[0], but sum of lengths "
                       "is %lld and value's shape is: %s",
                       (long long)total, weir_tensor_shape_text(value, shape));
  }
  if (least < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid value in lengths: %lld", (long long)least);
  return NULL;
}

static weir_status_t* split_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* value = ctx->inputs[1].tensor;
  const weir_tensor_t* lengths = weir_kernel_input(ctx, 2);
  weir_tensor_array_t* array = NULL;
  int64_t size = 0, at = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(array_check_write(array, value));
  WEIR_TRY(check_split(value, lengths));
  WEIR_TRY(weir_tensor_array_mark_size(array, lengths->count, &size));
  if (size != lengths->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorArray's size is not equal to the size of lengths (%lld vs. %lld), "
                       "and the TensorArray is not "
                       "marked as dynamically resizeable",
                       (long long)size, (long long)lengths->count);
  }
  for (int64_t i = 0; i < lengths->count; ++i) {
    int64_t length = WEIR_TENSOR_DATA(lengths, const int64_t)[i];
    weir_tensor_t* rows = NULL;
    WEIR_TRY(rows_create(ctx, value, at, at + length, false, &rows));
    WEIR_TRY(weir_tensor_array_write(array, i, rows, ARRAY_MEMORY(ctx)));
    at += length;
  }
  weir_kernel_pass(ctx, 3, 0);
  return NULL;
}

static weir_status_t* split_grad(weir_grad_ctx_t* g) {
  weir_edge_t flow = array_grad_barrier(g);
  array_grad_t grad = array_grad_of(g, flow);
  weir_dtype_t dtype = weir_attrs_type(weir_grad_attrs(g), "T");
  weir_edge_t dx = weir_grad_node_with(
      g, "TensorArrayConcatV3", WEIR_EDGES(grad.handle, grad.flow),
      WEIR_ATTRS(weir_attr_type("dtype", dtype),
                 weir_attr_shape("element_shape_except0", &weir_shape_unknown)));
  WEIR_TRY(weir_grad_set(g, 1, dx));
  return weir_grad_set(g, 3, flow);
}

#define JOIN_TYPES                                                                              \
  "quint8, qint8, qint32, string, bool, complex128, complex64, double, float, bfloat16, half, " \
  "int32, int8, uint8, "                                                                        \
  "int16, uint16, uint32, int64, uint64"

// ---- the generations before: handles are strings, by reference (first) or by value ----

// Of the first one nothing is known, and of what the second reads not much.
static weir_status_t* old_values_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, ctx->node->input_count - 1));
  if (weir_dtype_is_ref(ctx->node->input_types[0])) return NULL;
  if (ctx->node->input_count > 2) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  }
  return ctx->node->output_count > 1 ? weir_shape_set_vector(ctx, 1, -1) : NULL;
}
static weir_status_t* old_scatter_shape(weir_shape_ctx_t* ctx) {
  if (weir_dtype_is_ref(ctx->node->input_types[0])) return NULL;
  WEIR_TRY(array_check_shapes(ctx, 3));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  return weir_shape_set_scalar(ctx, 0);
}
static weir_status_t* old_split_shape(weir_shape_ctx_t* ctx) {
  return weir_dtype_is_ref(ctx->node->input_types[0]) ? NULL : split_shape(ctx);
}

#define ARRAY_OP(op, specs, ins, outs, text, shape, ...)                                  \
  {                                                                                       \
    .name = op, .attrs = specs, .inputs = ins, .outputs = outs, .flags = WEIR_OP_NO_FOLD, \
    .summary = text, .infer_shape = shape, .kernels = WEIR_CPU_KERNEL(__VA_ARGS__)        \
  }
#define OLD_OPS(v, handle)                                                                        \
  ARRAY_OP("TensorArrayGather" v, "dtype: type; element_shape: shape = <unknown>",                \
           "handle: " handle "; indices: int32; flow_in: float", "value: dtype",                  \
           "Reads several elements into the rows of a tensor.", old_values_shape,                 \
           .types = "dtype: variant, " JOIN_TYPES, .compute = gather_cpu, ROWS_JOINER),           \
      ARRAY_OP("TensorArrayScatter" v, "T: type",                                                 \
               "handle: " handle "; indices: int32; value: T; flow_in: float", "flow_out: float", \
               "Writes the rows of a tensor to several elements.", old_scatter_shape,             \
               ARRAY_WRITER, .compute = scatter_cpu),                                             \
      ARRAY_OP("TensorArrayConcat" v, "dtype: type; element_shape_except0: shape = <unknown>",    \
               "handle: " handle "; flow_in: float", "value: dtype; lengths: int64",              \
               "Joins all elements along dimension 0.", old_values_shape,                         \
               .types = "dtype: " JOIN_TYPES, .compute = concat_cpu, ROWS_JOINER),                \
      ARRAY_OP("TensorArraySplit" v, "T: type",                                                   \
               "handle: " handle "; value: T; lengths: int64; flow_in: float", "flow_out: float", \
               "Writes pieces of a tensor, cut along dimension 0, to all elements.",              \
               old_split_shape, ARRAY_WRITER, .compute = split_cpu)

const weir_op_module_t weir_ops_list_tensor_array_bulk = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TensorArrayGatherV3",
         .attrs = "dtype: type; element_shape: shape = <unknown>",
         .inputs = "handle: resource; indices: int32; flow_in: float",
         .outputs = "value: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_STEP_STATE,
         .summary = "Reads several elements into the rows of a tensor.",
         .infer_shape = gather_shape,
         .build_grad = gather_grad,
         .kernels = LIST_KERNELS(.types = "dtype: variant, " JOIN_TYPES, .compute = gather_cpu,
                                 ROWS_JOINER, .host_inputs = "handle, indices")},
        {.name = "TensorArrayScatterV3",
         .attrs = "T: type",
         .inputs = "handle: resource; indices: int32; value: T; flow_in: float",
         .outputs = "flow_out: float",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_STEP_STATE,
         .summary = "Writes the rows of a tensor to several elements.",
         .infer_shape = scatter_shape,
         .build_grad = scatter_grad,
         .kernels =
             LIST_KERNELS(ARRAY_WRITER, .compute = scatter_cpu, .host_inputs = "handle, indices")},
        {.name = "TensorArrayConcatV3",
         .attrs = "dtype: type; element_shape_except0: shape = <unknown>",
         .inputs = "handle: resource; flow_in: float",
         .outputs = "value: dtype; lengths: int64",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_STEP_STATE,
         .summary = "Joins all elements along dimension 0.",
         .infer_shape = concat_shape,
         .build_grad = concat_grad,
         .kernels = LIST_KERNELS(.types = "dtype: " JOIN_TYPES, .compute = concat_cpu, ROWS_JOINER,
                                 .host_inputs = "handle", .host_outputs = "lengths")},
        {.name = "TensorArraySplitV3",
         .attrs = "T: type",
         .inputs = "handle: resource; value: T; lengths: int64; flow_in: float",
         .outputs = "flow_out: float",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_STEP_STATE,
         .summary = "Writes pieces of a tensor, cut along dimension 0, to all elements.",
         .infer_shape = split_shape,
         .build_grad = split_grad,
         .kernels =
             LIST_KERNELS(ARRAY_WRITER, .compute = split_cpu, .host_inputs = "handle, lengths")},
        OLD_OPS("", "Ref(string)"),
        OLD_OPS("V2", "string"),
        ARRAY_OP("TensorArrayPack", "dtype: type; element_shape: shape = <unknown>",
                 "handle: Ref(string); flow_in: float", "value: dtype",
                 "Reads all elements into the rows of a tensor.", old_values_shape,
                 .types = "dtype: variant, " JOIN_TYPES, .compute = gather_cpu, ROWS_JOINER),
        ARRAY_OP("TensorArrayUnpack", "T: type", "handle: Ref(string); value: T; flow_in: float",
                 "flow_out: float", "Writes the rows of a tensor to all elements.",
                 weir_shape_fn_unknown, ARRAY_WRITER, .compute = unpack_cpu),
        {0}}};
