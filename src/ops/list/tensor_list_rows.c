// tensor_list_rows.c — TensorLists to and from the rows of a tensor: stack, gather, scatter.
#include "ops/list/list_common.h"

// ---- rows out of lists ----

// Output 0: elements |indices| (NULL: all, in order), |count| of them, as rows of shape |shape|.
static weir_status_t* join_rows(weir_kernel_ctx_t* ctx, const weir_list_t* list,
                                const int32_t* indices, int64_t count, const weir_shape_t* shape) {
  int64_t dims[WEIR_MAX_RANK + 1];
  weir_tensor_t* out = NULL;
  int64_t row_count = 0;
  WEIR_TRY(weir_shape_count(list->dtype, shape->rank, shape->dims, &row_count));
  dims[0] = count;
  for (int i = 0; i < shape->rank; ++i) dims[i + 1] = shape->dims[i];
  WEIR_TRY(weir_kernel_output(ctx, 0, shape->rank + 1, dims, &out));
  rows_t rows = rows_of(ctx, out);
  for (int64_t i = 0; i < count; ++i)
    WEIR_TRY(rows_append(&rows, list->items[indices ? indices[i] : i], row_count));
  return rows_finish(&rows);
}

// ---- stack ----

static weir_status_t* stack_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = NULL;
  int64_t count = weir_attrs_int(weir_shape_attrs(ctx), "num_elements");
  WEIR_TRY(list_check_type(ctx, 0, "read from"));
  WEIR_TRY(list_infer_element(ctx, 0, 1, &element));
  const weir_shape_t* first = weir_shape_make(ctx->arena, 1, &count);
  if (!first) return weir_out_of_memory();
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, first, element));
}

static weir_status_t* check_stack(const weir_list_t* list, const weir_shape_t* shape,
                                  int64_t expected) {
  if (expected != -1 && (int64_t)list->count != expected) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Operation expected a list with %lld elements but got a list with %zu elements.",
        (long long)expected, list->count);
  }
  if (list->count == 0 && !weir_shape_is_full(shape)) {
    return list_shape_error(
        "Tried to stack elements of an empty list with non-fully-defined element_shape: ", shape,
        "");
  }
  return NULL;
}

static weir_status_t* stack_list(weir_kernel_ctx_t* ctx, const weir_list_t* list,
                                 weir_arena_t* arena) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(list_element_shape(ctx, 1, list, arena, &shape));
  WEIR_TRY(check_stack(list, shape, weir_attrs_int(weir_kernel_attrs(ctx), "num_elements")));
  for (size_t i = 0; i < list->count; ++i) WEIR_TRY(list_merge_item(arena, list->items[i], &shape));
  if (!weir_shape_is_full(shape)) {
    return list_shape_error(
        "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined "
        "element_shape: ",
        shape, "");
  }
  return join_rows(ctx, list, NULL, (int64_t)list->count, shape);
}

static weir_status_t* stack_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_arena_t arena = {0};
  WEIR_TRY(weir_list_input_typed(ctx, 0, weir_attrs_type(weir_kernel_attrs(ctx), "element_dtype"),
                                 &list));
  weir_status_t* status = stack_list(ctx, list, &arena);
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* stack_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t shape = list_grad_row_shape(g, dy);
  return weir_grad_set(g, 0, weir_grad_node(g, "TensorListFromTensor", WEIR_EDGES(dy, shape)));
}

// ---- gather ----

static weir_status_t* gather_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = NULL;
  WEIR_TRY(list_check_type(ctx, 0, "read from"));
  WEIR_TRY(list_infer_element(ctx, 0, 2, &element));
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, weir_shape_input(ctx, 1), element));
}

static weir_status_t* gather_list(weir_kernel_ctx_t* ctx, const weir_list_t* list,
                                  weir_arena_t* arena) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const int32_t* at = WEIR_TENSOR_DATA(indices, const int32_t);
  const weir_shape_t* shape = NULL;
  WEIR_TRY(list_element_shape(ctx, 2, list, arena, &shape));
  if (indices->count == 0 && !weir_shape_is_full(shape)) {
    return list_shape_error(
        "Tried to gather 0-elements from a list with non-fully-defined shape: ", shape, "");
  }
  for (int64_t i = 0; i < indices->count; ++i) {
    if (!weir_shape_is_full(shape)) WEIR_TRY(list_check_index("gather", at[i], list->count));
    if (at[i] < 0 || at[i] >= (int64_t)list->count) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Index %d out o range; list only has %zu elements.",
                         at[i], list->count);
    }
    WEIR_TRY(list_merge_item(arena, list->items[at[i]], &shape));
  }
  if (!weir_shape_is_full(shape)) {
    return list_shape_error(
        "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: ",
        shape, "");
  }
  return join_rows(ctx, list, at, indices->count, shape);
}

static weir_status_t* gather_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_arena_t arena = {0};
  WEIR_TRY(weir_list_input_typed(ctx, 0, weir_attrs_type(weir_kernel_attrs(ctx), "element_dtype"),
                                 &list));
  weir_status_t* status = gather_list(ctx, list, &arena);
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* gather_grad(weir_grad_ctx_t* g) {
  weir_edge_t empty = list_grad_empty(g, weir_grad_input(g, 0));
  return weir_grad_set(
      g, 0,
      weir_grad_node(g, "TensorListScatterIntoExistingList",
                     WEIR_EDGES(empty, weir_grad_dy(g, 0), weir_grad_input(g, 1))));
}

// ---- lists out of rows ----

static weir_status_t* from_rows_shape(weir_shape_ctx_t* ctx, int shape_input) {
  const weir_shape_t* given = NULL;
  const weir_shape_t* element = NULL;
  const weir_shape_t* tensor = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, tensor, 1));
  WEIR_TRY(weir_shape_from_value_or_scalar(ctx, shape_input, &given));
  const weir_shape_t* row =
      tensor->rank > 0 ? weir_shape_sub(ctx, tensor, 1, tensor->rank) : &weir_shape_unknown;
  if (!row) return weir_out_of_memory();
  WEIR_TRY(weir_shape_join(ctx, given, row, &element));
  return list_set_handle(ctx, 0, given);
}

static weir_status_t* from_tensor_shape(weir_shape_ctx_t* ctx) { return from_rows_shape(ctx, 1); }
static weir_status_t* scatter_shape(weir_shape_ctx_t* ctx) { return from_rows_shape(ctx, 2); }

// A list of |count| elements that are not set, whose element shape input |shape_input| gives and
// the rows of input 0 fit.
static weir_status_t* create_for_rows(weir_kernel_ctx_t* ctx, int shape_input, size_t count,
                                      weir_list_t** out_list) {
  const weir_tensor_t* tensor = weir_kernel_input(ctx, 0);
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_status_t* status = list_shape_input(ctx, shape_input, &arena, &shape);
  if (!status && !weir_shape_accepts(shape, tensor->rank - 1, tensor->dims + 1)) {
    const weir_shape_t* row = weir_shape_make(&arena, tensor->rank - 1, tensor->dims + 1);
    status = row ? list_shapes_error("Specified a list with shape ", shape,
                                     " from a tensor with shape ", row)
                 : weir_out_of_memory();
  }
  if (!status) status = weir_list_create(weir_tensor_type(tensor), shape, count, out_list);
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* set_rows(const weir_kernel_ctx_t* ctx, weir_tensor_t* tensor,
                               const int32_t* indices, weir_list_t* list) {
  for (int64_t i = 0; i < tensor->dims[0]; ++i) {
    weir_tensor_t* row = NULL;
    WEIR_TRY(rows_create(ctx, tensor, i, i + 1, true, &row));
    int64_t at = indices ? indices[i] : i;
    weir_tensor_release(list->items[at]);
    list->items[at] = row;
  }
  return NULL;
}

static weir_status_t* output_rows(weir_kernel_ctx_t* ctx, const int32_t* indices,
                                  weir_list_t* take_list) {
  weir_status_t* status = set_rows(ctx, ctx->inputs[0].tensor, indices, take_list);
  if (status) {
    weir_list_release(take_list);
    return status;
  }
  return weir_list_output(ctx, 0, take_list);
}

static weir_status_t* from_tensor_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* tensor = weir_kernel_input(ctx, 0);
  weir_list_t* list = NULL;
  WEIR_TRY(list_check_rows(tensor));
  WEIR_TRY(create_for_rows(ctx, 1, (size_t)tensor->dims[0], &list));
  return output_rows(ctx, NULL, list);
}

static weir_status_t* from_tensor_grad(weir_grad_ctx_t* g) {
  weir_edge_t tensor = weir_grad_input(g, 0);
  int64_t count = weir_grad_shape(g, tensor)->rank > 0 ? weir_grad_shape(g, tensor)->dims[0] : -1;
  weir_edge_t dx = weir_grad_node_with(
      g, "TensorListStack", WEIR_EDGES(weir_grad_dy(g, 0), list_grad_row_shape(g, tensor)),
      WEIR_ATTRS(list_grad_dtype(g), weir_attr_int("num_elements", count)));
  return weir_grad_set(g, 0, dx);
}

// ---- scatter ----

static weir_status_t* check_scatter(const weir_tensor_t* tensor, const weir_tensor_t* indices,
                                    int64_t* out_highest) {
  const int32_t* at = WEIR_TENSOR_DATA(indices, const int32_t);
  WEIR_TRY(list_check_rows(tensor));
  if (indices->count != tensor->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid number of rows in input tensor. Expected: %lld Actual: %lld",
                       (long long)indices->count, (long long)tensor->dims[0]);
  }
  *out_highest = -1;
  for (int64_t i = 0; i < indices->count; ++i) {
    if (at[i] < 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Indices in TensorListScatter must all be non-negative.");
    *out_highest = WEIR_MAX(*out_highest, (int64_t)at[i]);
  }
  return NULL;
}

static weir_status_t* scatter_size(weir_kernel_ctx_t* ctx, int64_t highest, int64_t* out_size) {
  *out_size = highest + 1;
  if (ctx->input_count < 4) return NULL;
  int64_t size = 0;
  WEIR_TRY(weir_kernel_int(ctx, 3, &size));
  if (size < -1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorListScatter expects num_elements >= -1, found: %lld",
                       (long long)size);
  }
  if (size >= 0 && highest >= size) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorListScatter: Trying to scatter at index %lld in list with size %lld",
                       (long long)highest, (long long)size);
  }
  if (size >= 0) *out_size = size;
  return NULL;
}

static weir_status_t* scatter_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  weir_list_t* list = NULL;
  int64_t highest = -1, size = 0;
  WEIR_TRY(check_scatter(weir_kernel_input(ctx, 0), indices, &highest));
  WEIR_TRY(scatter_size(ctx, highest, &size));
  WEIR_TRY(create_for_rows(ctx, 2, (size_t)size, &list));
  return output_rows(ctx, indices->data, list);
}

static weir_edge_t gather_from(weir_grad_ctx_t* g, weir_edge_t dlist, weir_edge_t indices,
                               weir_edge_t tensor) {
  return weir_grad_node_with(g, "TensorListGather",
                             WEIR_EDGES(dlist, indices, list_grad_row_shape(g, tensor)),
                             WEIR_ATTRS(list_grad_dtype(g)));
}

static weir_status_t* scatter_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0, gather_from(g, weir_grad_dy(g, 0), weir_grad_input(g, 1), weir_grad_input(g, 0)));
}

// ---- TensorListScatterIntoExistingList ----

static weir_status_t* scatter_into_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = list_known_shape(ctx, 0);
  const weir_shape_t* tensor = weir_shape_input(ctx, 1);
  const weir_shape_t* joined = NULL;
  WEIR_TRY(list_check_type(ctx, 0, "write to"));
  WEIR_TRY(weir_shape_at_least(ctx, tensor, 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  const weir_shape_t* row =
      tensor->rank > 0 ? weir_shape_sub(ctx, tensor, 1, tensor->rank) : &weir_shape_unknown;
  if (!row) return weir_out_of_memory();
  WEIR_TRY(weir_shape_join(ctx, element, row, &joined));
  return list_set_handle(ctx, 0, element);
}

static weir_status_t* check_scatter_into(const weir_list_t* list, const weir_tensor_t* tensor,
                                         const weir_tensor_t* indices, int64_t* out_highest) {
  if (list->dtype != tensor->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid data types; input tensor type: %s list element_type: %s",
                       weir_dtype_name(weir_tensor_type(tensor)), weir_dtype_name(list->dtype));
  }
  if (tensor->rank > 0 && indices->count != tensor->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected len(indices) == tensor.shape[0], but saw: %lld vs. %lld",
                       (long long)indices->count, (long long)tensor->dims[0]);
  }
  return check_scatter(tensor, indices, out_highest);
}

static weir_status_t* scatter_into_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 2);
  const weir_list_t* list = NULL;
  weir_list_t* out = NULL;
  int64_t highest = -1;
  WEIR_TRY(weir_list_input(ctx, 0, &list));
  WEIR_TRY(check_scatter_into(list, weir_kernel_input(ctx, 1), indices, &highest));
  WEIR_TRY(weir_list_forward(ctx, 0, 0, &out));
  if (highest >= (int64_t)out->count) WEIR_TRY(weir_list_resize(out, (size_t)highest + 1));
  return set_rows(ctx, ctx->inputs[1].tensor, indices->data, out);
}

static weir_status_t* scatter_into_grad(weir_grad_ctx_t* g) {
  weir_edge_t dlist = weir_grad_dy(g, 0);
  weir_edge_t tensor = weir_grad_input(g, 1);
  weir_edge_t indices = weir_grad_input(g, 2);
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(tensor));
  WEIR_TRY(weir_grad_set(g, 1, gather_from(g, dlist, indices, tensor)));
  return weir_grad_set(
      g, 0,
      weir_grad_node(g, "TensorListScatterIntoExistingList", WEIR_EDGES(dlist, zeros, indices)));
}

#define ROW_OP(op_name, op_attrs, input_spec, output_spec, shape_fn, grad_fn, text, ...)       \
  {                                                                                            \
    .name = op_name, .attrs = op_attrs, .inputs = input_spec, .outputs = output_spec,          \
    .flags = WEIR_OP_NO_FOLD, .summary = text, .infer_shape = shape_fn, .build_grad = grad_fn, \
    .kernels = LIST_KERNELS(.types = ROWS_LIST_TYPES, __VA_ARGS__)                             \
  }
#define DTYPE_AND_SHAPE "element_dtype: type; shape_type: {int32, int64}"

const weir_op_module_t weir_ops_list_tensor_list_rows = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        ROW_OP("TensorListStack", "element_dtype: type; num_elements: int = -1",
               "input_handle: variant; element_shape: int32", "tensor: element_dtype", stack_shape,
               stack_grad, "Returns all elements as rows.", .compute = stack_cpu, ROWS_JOINER,
               .host_inputs = "input_handle, element_shape"),
        ROW_OP("TensorListGather", "element_dtype: type",
               "input_handle: variant; indices: int32; element_shape: int32",
               "values: element_dtype", gather_shape, gather_grad, "Returns some elements as rows.",
               .compute = gather_cpu, ROWS_JOINER,
               .host_inputs = "input_handle, indices, element_shape"),
        ROW_OP("TensorListFromTensor", DTYPE_AND_SHAPE,
               "tensor: element_dtype; element_shape: shape_type", "output_handle: variant",
               from_tensor_shape, from_tensor_grad, "Makes a list of a tensor's rows.",
               .compute = from_tensor_cpu, .host_inputs = "element_shape",
               .host_outputs = "output_handle"),
        ROW_OP("TensorListScatter", DTYPE_AND_SHAPE,
               "tensor: element_dtype; indices: int32; element_shape: shape_type",
               "output_handle: variant", scatter_shape, scatter_grad,
               "Makes a list with rows at given places.", .compute = scatter_cpu,
               .host_inputs = "indices, element_shape", .host_outputs = "output_handle"),
        ROW_OP(
            "TensorListScatterV2", DTYPE_AND_SHAPE,
            "tensor: element_dtype; indices: int32; element_shape: shape_type; num_elements: int32",
            "output_handle: variant", scatter_shape, scatter_grad,
            "Makes a list of a given length with rows at given places.", .compute = scatter_cpu,
            .host_inputs = "indices, element_shape, num_elements", .host_outputs = "output_handle"),
        ROW_OP("TensorListScatterIntoExistingList", "element_dtype: type",
               "input_handle: variant; tensor: element_dtype; indices: int32",
               "output_handle: variant", scatter_into_shape, scatter_into_grad,
               "Sets rows at given places of a list.", .compute = scatter_into_cpu,
               .host_inputs = "input_handle, indices", .host_outputs = "output_handle"),
        {0}}};
