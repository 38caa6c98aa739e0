// tensor_list_concat.c — TensorLists joined along dimension 0, split, joined end to end, and pushed
// to in batches.
#include "ops/list/list_common.h"

// ---- concat ----

typedef struct concat_t {
  const weir_list_t* list;
  const weir_shape_t* rest;           // of elements without dimension 0; unknown at first
  int64_t first_dim;                  // of elements that are not set; -1: not known
  const weir_tensor_t* leading_dims;  // NULL: none
  weir_arena_t arena;
} concat_t;

// Takes an element shape apart.
static weir_status_t* concat_split_shape(concat_t* c, const weir_shape_t* element) {
  c->first_dim = -1;
  c->rest = &weir_shape_unknown;
  if (element->rank < 0) return NULL;
  if (element->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Concat requires elements to be at least vectors, found scalars instead.");
  }
  c->first_dim = element->dims[0];
  c->rest = weir_shape_make(&c->arena, element->rank - 1, element->dims + 1);
  return c->rest ? NULL : weir_out_of_memory();
}

static weir_status_t* concat_check_item(concat_t* c, size_t i) {
  const weir_tensor_t* item = c->list->items[i];
  if (!item) return NULL;
  if (item->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Concat saw a scalar shape at index %zu but requires at least vectors.", i);
  }
  if (c->first_dim >= 0 && c->first_dim != item->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "First entry of element_shape input does not match the first dim of list "
                       "element at index: %zu "
                       "Expected: %lld Actual: %lld",
                       i, (long long)c->first_dim, (long long)item->dims[0]);
  }
  const weir_shape_t* rest = weir_shape_make(&c->arena, item->rank - 1, item->dims + 1);
  return rest ? list_merge(&c->arena, c->rest, rest, &c->rest) : weir_out_of_memory();
}

static weir_status_t* concat_check(concat_t* c, const weir_shape_t* element) {
  if (c->list->count == 0 && !weir_shape_is_full(c->rest)) {
    return list_shape_error(
        "All except the first dimension must be fully defined when concating an empty tensor list. "
        "element_shape: ",
        element, "");
  }
  for (size_t i = 0; i < c->list->count; ++i) WEIR_TRY(concat_check_item(c, i));
  if (weir_shape_is_full(c->rest)) return NULL;
  return list_shape_error(
      "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is "
      "not fully defined: ",
      c->rest, "");
}

// The length that all elements that are set have along dimension 0, or element_shape's; -1 when
// they differ.
static int64_t common_length(const concat_t* c) {
  int64_t common = c->first_dim;
  for (size_t i = 0; i < c->list->count; ++i) {
    const weir_tensor_t* item = c->list->items[i];
    if (item && common >= 0 && item->dims[0] != common) return -1;
    if (item) common = item->dims[0];
  }
  return common;
}

// The length of element |i| along dimension 0. One that is not set takes leading_dims' word for it,
// or has that of all others.
static weir_status_t* concat_length(const concat_t* c, size_t i, int64_t common,
                                    int64_t* out_length) {
  const weir_tensor_t* item = c->list->items[i];
  if (item) {
    *out_length = item->dims[0];
    return NULL;
  }
  if (c->leading_dims && (int64_t)i < c->leading_dims->count) {
    *out_length = WEIR_TENSOR_DATA(c->leading_dims, const int64_t)[i];
    if (*out_length >= 0) return NULL;
    return WEIR_STATUS(INVALID_ARGUMENT, "leading_dims[%zu] is negative: %lld", i,
                       (long long)*out_length);
  }
  *out_length = common;
  if (common >= 0) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "List contains uninitialized tensor at index %zu but leading_dims has only %lld elements.", i,
      (long long)(c->leading_dims ? c->leading_dims->count : 0));
}

static weir_status_t* concat_lengths(weir_kernel_ctx_t* ctx, const concat_t* c,
                                     int64_t* out_total) {
  weir_tensor_t* lengths = NULL;
  const int64_t common = common_length(c);
  *out_total = 0;
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, (const int64_t[]){(int64_t)c->list->count}, &lengths));
  for (size_t i = 0; i < c->list->count; ++i) {
    int64_t* length = &WEIR_TENSOR_DATA(lengths, int64_t)[i];
    WEIR_TRY(concat_length(c, i, common, length));
    if (__builtin_add_overflow(*out_total, *length, out_total)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "the lengths of the list's elements overflow");
    }
  }
  return NULL;
}

static weir_status_t* concat_run(weir_kernel_ctx_t* ctx, concat_t* c, const weir_shape_t* element) {
  int64_t dims[WEIR_MAX_RANK + 1];
  int64_t row_count = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(concat_split_shape(c, element));
  WEIR_TRY(concat_check(c, element));
  WEIR_TRY(concat_lengths(ctx, c, &dims[0]));
  WEIR_TRY(weir_shape_count(c->list->dtype, c->rest->rank, c->rest->dims, &row_count));
  for (int i = 0; i < c->rest->rank; ++i) dims[i + 1] = c->rest->dims[i];
  WEIR_TRY(weir_kernel_output(ctx, 0, c->rest->rank + 1, dims, &out));
  const int64_t* lengths = WEIR_TENSOR_DATA(ctx->outputs[1].tensor, const int64_t);
  rows_t rows = rows_of(ctx, out);
  for (size_t i = 0; i < c->list->count; ++i)
    WEIR_TRY(rows_append(&rows, c->list->items[i], lengths[i] * row_count));
  return rows_finish(&rows);
}

static weir_status_t* concat_cpu(weir_kernel_ctx_t* ctx) {
  concat_t c = {.list = NULL};
  const weir_shape_t* element = NULL;
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  WEIR_TRY(weir_list_input_typed(ctx, 0, weir_attrs_type(attrs, "element_dtype"), &c.list));
  weir_status_t* status = NULL;
  if (ctx->input_count == 1) {
    element = weir_attrs_shape(attrs, "element_shape");
  } else {
    status = list_shape_input(ctx, 1, &c.arena, &element);
    c.leading_dims = weir_kernel_input(ctx, 2);
  }
  if (!status) status = concat_run(ctx, &c, element);
  weir_arena_free(&c.arena);
  return status;
}

static weir_status_t* concat_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* given = NULL;
  const weir_shape_t* element = NULL;
  WEIR_TRY(list_check_type(ctx, 0, "read from"));
  if (ctx->node->input_count == 1) {
    given = weir_attrs_shape(weir_shape_attrs(ctx), "element_shape");
  } else {
    WEIR_TRY(weir_shape_from_value_or_scalar(ctx, 1, &given));
  }
  WEIR_TRY(weir_shape_join(ctx, given, list_known_shape(ctx, 0), &element));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  if (element->rank <= 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int64_t dims[WEIR_MAX_RANK] = {-1};
  for (int i = 1; i < element->rank; ++i) dims[i] = element->dims[i];
  return weir_shape_set_dims(ctx, 0, element->rank, dims);
}

static weir_status_t* concat_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = list_grad_element_shape(g, weir_grad_input(g, 0));
  return weir_grad_set(
      g, 0,
      weir_grad_node(g, "TensorListSplit",
                     WEIR_EDGES(weir_grad_dy(g, 0), shape, weir_grad_output(g, 1))));
}

// ---- split ----

static weir_status_t* split_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *element = NULL, *joined = NULL;
  const weir_shape_t* tensor = weir_shape_input(ctx, 0);
  int64_t piece[WEIR_MAX_RANK] = {-1};
  WEIR_TRY(weir_shape_at_least(ctx, tensor, 1));
  WEIR_TRY(weir_shape_from_value_or_scalar(ctx, 1, &element));
  for (int i = 1; i < tensor->rank; ++i) piece[i] = tensor->dims[i];
  WEIR_TRY(
      weir_shape_join(ctx, weir_shape_make(ctx->arena, tensor->rank, piece), element, &joined));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  return list_set_handle(ctx, 0, element);
}

static weir_status_t* check_split(const weir_tensor_t* tensor, const weir_tensor_t* lengths,
                                  const weir_shape_t* shape) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(list_check_rows(tensor));
  if (lengths->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected lengths to be a vector, received shape: %s",
                       weir_tensor_shape_text(lengths, text));
  }
  if (shape->rank == 0) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "TensorListSplit requires element_shape to be at least of rank 1, but saw: []");
  }
  bool fits = shape->rank < 0 || shape->rank == tensor->rank;
  for (int i = 1; fits && i < shape->rank; ++i)
    fits = shape->dims[i] < 0 || shape->dims[i] == tensor->dims[i];
  if (fits) return NULL;
  weir_strbuf_t message = {0};
  weir_strbuf_printf(&message, "tensor shape %s is not compatible with element_shape ",
                     weir_tensor_shape_text(tensor, text));
  weir_status_t* status = list_shape_error(message.data ? message.data : "", shape, "");
  weir_strbuf_free(&message);
  return status;
}

static weir_status_t* split_rows(const weir_kernel_ctx_t* ctx, weir_tensor_t* tensor,
                                 const weir_tensor_t* lengths, weir_list_t* list) {
  int64_t at = 0;
  for (int64_t i = 0; i < lengths->count; ++i) {
    int64_t length = WEIR_TENSOR_DATA(lengths, const int64_t)[i];
    if (length < 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "Invalid value in lengths: %lld", (long long)length);
    if (length > tensor->dims[0] - at) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Attempting to slice [%lld, %llu] from tensor with length %lld",
                         (long long)at, (unsigned long long)at + (unsigned long long)length,
                         (long long)tensor->dims[0]);
    }
    WEIR_TRY(rows_create(ctx, tensor, at, at + length, false, &list->items[i]));
    at += length;
  }
  if (at == tensor->dims[0]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Unused values in tensor. Length of tensor: %lld Values used: %lld",
                     (long long)tensor->dims[0], (long long)at);
}

static weir_status_t* split_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* tensor = ctx->inputs[0].tensor;
  const weir_tensor_t* lengths = weir_kernel_input(ctx, 2);
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_list_t* list = NULL;
  weir_status_t* status = list_shape_input(ctx, 1, &arena, &shape);
  if (!status) status = check_split(tensor, lengths, shape);
  if (!status)
    status = weir_list_create(weir_tensor_type(tensor), shape, (size_t)lengths->count, &list);
  if (!status) status = split_rows(ctx, tensor, lengths, list);
  weir_arena_free(&arena);
  if (status) {
    weir_list_release(list);
    return status;
  }
  return weir_list_output(ctx, 0, list);
}

static weir_status_t* split_grad(weir_grad_ctx_t* g) {
  weir_edge_t row = list_grad_row_shape(g, weir_grad_input(g, 0));
  weir_edge_t any = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  weir_edge_t shape =
      weir_grad_node(g, "ConcatV2", WEIR_EDGES(any, row, weir_build_int32(g->builder, 0)));
  weir_edge_t dx = weir_grad_node_with(g, "TensorListConcatV2",
                                       WEIR_EDGES(weir_grad_dy(g, 0), shape, weir_grad_input(g, 2)),
                                       WEIR_ATTRS(list_grad_dtype(g)));
  return weir_grad_set(g, 0, dx);
}

// ---- many lists at once: TensorListConcatLists, TensorListPushBackBatch ----

// The list in element |i| of a variant tensor.
static weir_status_t* list_at(const weir_tensor_t* lists, int64_t i, const char* what,
                              const weir_list_t** out_list) {
  const weir_variant_object_t* object = WEIR_TENSOR_DATA(lists, const weir_variant_t)[i].object;
  if (!object || object->type != &weir_list_type) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s[%lld] is not a TensorList. Saw: '%s'", what,
                       (long long)i, object ? object->type->type_name : "<empty>");
  }
  *out_list = (const weir_list_t*)object;
  return NULL;
}

static weir_status_t* check_pair(const weir_list_t* a, const weir_list_t* b, weir_dtype_t dtype,
                                 int64_t i) {
  if (a->dtype != dtype || b->dtype != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input_%c[%lld].dtype != element_dtype.  Saw: %s vs. %s",
                       a->dtype != dtype ? 'a' : 'b', (long long)i,
                       weir_dtype_name(a->dtype != dtype ? a->dtype : b->dtype),
                       weir_dtype_name(dtype));
  }
  if (weir_shape_equal(a->shape, b->shape)) return NULL;
  weir_strbuf_t text = {0};
  weir_strbuf_printf(
      &text, "input_a and input_b TensorList element shapes are not identical at index %lld.  Saw ",
      (long long)i);
  weir_status_t* status =
      list_shapes_error(text.data ? text.data : "", a->shape, " vs. ", b->shape);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* join_pair(const weir_list_t* a, const weir_list_t* b,
                                weir_list_t** out_list) {
  weir_list_t* joined = NULL;
  WEIR_TRY(weir_list_copy(a, &joined));
  weir_status_t* status = weir_list_resize(joined, a->count + b->count);
  if (status) {
    weir_list_release(joined);
    return status;
  }
  for (size_t i = 0; i < b->count; ++i)
    joined->items[a->count + i] = weir_tensor_retain(b->items[i]);
  *out_list = joined;
  return NULL;
}

static weir_status_t* concat_lists_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  weir_dtype_t dtype = weir_attrs_type(weir_kernel_attrs(ctx), "element_dtype");
  weir_tensor_t* out = NULL;
  char text_a[WEIR_SHAPE_TEXT_SIZE], text_b[WEIR_SHAPE_TEXT_SIZE];
  if (!weir_tensor_same_shape(a, b)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Incompatible input TensorList tensor shapes: %s vs. %s",
                       weir_tensor_shape_text(a, text_a), weir_tensor_shape_text(b, text_b));
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, a->rank, a->dims, &out));
  for (int64_t i = 0; i < a->count; ++i) {
    const weir_list_t* x = NULL;
    const weir_list_t* y = NULL;
    weir_list_t* joined = NULL;
    WEIR_TRY(list_at(a, i, "input_a", &x));
    WEIR_TRY(list_at(b, i, "input_b", &y));
    WEIR_TRY(check_pair(x, y, dtype, i));
    WEIR_TRY(join_pair(x, y, &joined));
    WEIR_TENSOR_DATA(out, weir_variant_t)[i].object = &joined->base;
  }
  return NULL;
}

static weir_status_t* concat_lists_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), &shape));
  if (ctx->output_handles) ctx->output_handles[0] = ctx->input_handles[0];
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* check_batch(const weir_list_t* list, weir_tensor_t* tensor,
                                  weir_dtype_t dtype, int64_t i) {
  if (list->dtype != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid data type at index %lld; op elements %s but list elements %s",
                       (long long)i, weir_dtype_name(dtype), weir_dtype_name(list->dtype));
  }
  if (weir_shape_accepts(list->shape, tensor->rank - 1, tensor->dims + 1)) return NULL;
  char shape[WEIR_SHAPE_TEXT_SIZE];
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text,
                     "Tried to append a tensor with incompatible shape to a list at index %lld. Op "
                     "element shape: %s list "
                     "shape: ",
                     (long long)i, weir_shape_text(tensor->rank - 1, tensor->dims + 1, shape));
  weir_status_t* status = list_shape_error(text.data ? text.data : "", list->shape, "");
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* push_batch_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* lists = weir_kernel_input(ctx, 0);
  weir_tensor_t* tensor = ctx->inputs[1].tensor;
  weir_tensor_t* out = NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected tensor to be at least a vector, but saw shape: %s",
                       weir_tensor_shape_text(tensor, text));
  }
  if (tensor->dims[0] != lists->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected tensor.shape[0] == input_handles.size, but saw %lld vs. %lld",
                       (long long)tensor->dims[0], (long long)lists->count);
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, lists->rank, lists->dims, &out));
  for (int64_t i = 0; i < lists->count; ++i) {
    const weir_list_t* list = NULL;
    weir_list_t* copy = NULL;
    weir_tensor_t* row = NULL;
    WEIR_TRY(list_at(lists, i, "input_handles", &list));
    WEIR_TRY(
        check_batch(list, tensor, weir_attrs_type(weir_kernel_attrs(ctx), "element_dtype"), i));
    WEIR_TRY(weir_list_copy(list, &copy));
    WEIR_TENSOR_DATA(out, weir_variant_t)[i].object = &copy->base;
    WEIR_TRY(rows_create(ctx, tensor, i, i + 1, true, &row));
    WEIR_TRY(weir_list_push(copy, row));
  }
  return NULL;
}

static weir_status_t* push_batch_shape(weir_shape_ctx_t* ctx) {
  if (ctx->output_handles) ctx->output_handles[0] = ctx->input_handles[0];
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

const weir_op_module_t weir_ops_list_tensor_list_concat = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TensorListConcat",
         .attrs = "element_dtype: type; element_shape: shape = <unknown>",
         .inputs = "input_handle: variant",
         .outputs = "tensor: element_dtype; lengths: int64",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "Joins the elements along dimension 0.",
         .infer_shape = concat_shape,
         .build_grad = concat_grad,
         .kernels = LIST_KERNELS(.types = ROWS_LIST_TYPES, .compute = concat_cpu, ROWS_JOINER,
                                 .host_inputs = "input_handle", .host_outputs = "lengths")},
        {.name = "TensorListConcatV2",
         .attrs = "element_dtype: type; shape_type: {int32, int64}",
         .inputs = "input_handle: variant; element_shape: shape_type; leading_dims: int64",
         .outputs = "tensor: element_dtype; lengths: int64",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "Joins the elements along dimension 0.",
         .infer_shape = concat_shape,
         .build_grad = concat_grad,
         .kernels = LIST_KERNELS(.types = ROWS_LIST_TYPES, .compute = concat_cpu, ROWS_JOINER,
                                 .host_inputs = "input_handle, element_shape, leading_dims",
                                 .host_outputs = "lengths")},
        {.name = "TensorListSplit",
         .attrs = "element_dtype: type; shape_type: {int32, int64}",
         .inputs = "tensor: element_dtype; element_shape: shape_type; lengths: int64",
         .outputs = "output_handle: variant",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "Makes a list of pieces cut along dimension 0.",
         .infer_shape = split_shape,
         .build_grad = split_grad,
         .kernels = LIST_KERNELS(.types = ROWS_LIST_TYPES, .compute = split_cpu,
                                 .host_inputs = "element_shape, lengths",
                                 .host_outputs = "output_handle")},
        {.name = "TensorListConcatLists",
         .attrs = "element_dtype: type",
         .inputs = "input_a: variant; input_b: variant",
         .outputs = "output: variant",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_NO_GRADIENT,
         .summary = "Joins lists end to end, pair by pair.",
         .infer_shape = concat_lists_shape,
         .kernels = LIST_KERNELS(.compute = concat_lists_cpu)},
        {.name = "TensorListPushBackBatch",
         .attrs = "element_dtype: type",
         .inputs = "input_handles: variant; tensor: element_dtype",
         .outputs = "output_handles: variant",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_NO_GRADIENT,
         .summary = "Appends a row to each of several lists.",
         .infer_shape = push_batch_shape,
         .kernels = LIST_KERNELS(.types = ROWS_LIST_TYPES, .compute = push_batch_cpu)},
        {0}}};
