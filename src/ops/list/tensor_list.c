// tensor_list.c — TensorLists: made, pushed, popped, set and read one element at a time.
#include <stdio.h>

#include "ops/list/list_common.h"

static weir_dtype_t element_dtype(const weir_kernel_ctx_t* ctx) {
  return weir_attrs_type(weir_kernel_attrs(ctx), "element_dtype");
}

// ---- EmptyTensorList, TensorListReserve ----

static weir_status_t* create_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = NULL;
  WEIR_TRY(weir_shape_from_value_or_scalar(ctx, 0, &element));
  return list_set_handle(ctx, 0, element);
}

static weir_status_t* create_list(weir_kernel_ctx_t* ctx, size_t count, int64_t max_count) {
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_list_t* list = NULL;
  weir_status_t* status = list_shape_input(ctx, 0, &arena, &shape);
  if (!status) status = weir_list_create(element_dtype(ctx), shape, count, &list);
  weir_arena_free(&arena);
  if (status) return status;
  list->max_count = max_count;
  return weir_list_output(ctx, 0, list);
}

static weir_status_t* empty_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* limit = weir_kernel_input(ctx, 1);
  if (limit->rank != 0) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "max_num_elements expected to be a scalar but got shape: %s",
                       weir_tensor_shape_text(limit, shape));
  }
  return create_list(ctx, 0, weir_tensor_int_at(limit, 0));
}

static weir_status_t* reserve_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* size = weir_kernel_input(ctx, 1);
  if (size->count != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The num_elements to reserve must be a tensor size 1, but got %lld",
                       (long long)size->count);
  }
  int64_t count = weir_tensor_int_at(size, 0);
  if (count < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The num_elements to reserve must be a non negative number, but got %lld",
                       (long long)count);
  }
  return create_list(ctx, (size_t)count, -1);
}

// ---- push ----

static weir_status_t* push_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = NULL;
  WEIR_TRY(list_check_type(ctx, 0, "push to"));
  WEIR_TRY(weir_shape_join(ctx, list_known_shape(ctx, 0), weir_shape_input(ctx, 1), &element));
  return list_set_handle(ctx, 0, list_known_shape(ctx, 0));
}

static weir_status_t* check_item(const weir_list_t* list, const weir_tensor_t* item,
                                 const char* doing) {
  if (weir_shape_accepts(list->shape, item->rank, item->dims)) return NULL;
  char shape[WEIR_SHAPE_TEXT_SIZE], text[WEIR_SHAPE_TEXT_SIZE + 160];
  snprintf(text, sizeof(text), "%s%s list shape: ", doing, weir_tensor_shape_text(item, shape));
  return list_shape_error(text, list->shape, "");
}

static weir_status_t* push_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_list_t* out = NULL;
  WEIR_TRY(weir_list_input(ctx, 0, &list));
  WEIR_TRY(
      check_item(list, weir_kernel_input(ctx, 1),
                 "Tried to append a tensor with incompatible shape to a list. Op element shape: "));
  WEIR_TRY(weir_list_input_typed(ctx, 0, element_dtype(ctx), &list));
  if (list->max_count != -1 && (int64_t)list->count >= list->max_count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Tried to push item into a full list list size: %zu max_num_elements: %lld",
                       list->count, (long long)list->max_count);
  }
  WEIR_TRY(weir_list_forward(ctx, 0, 0, &out));
  return weir_list_push(out, weir_kernel_take_input(ctx, 1));
}

static weir_status_t* push_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 1));
  weir_edge_t popped =
      weir_grad_node_with(g, "TensorListPopBack", WEIR_EDGES(weir_grad_dy(g, 0), shape),
                          WEIR_ATTRS(list_grad_dtype(g)));
  WEIR_TRY(weir_grad_set(g, 0, popped));
  return weir_grad_set(g, 1, weir_build_output(popped, 1));
}

// ---- pop, get ----

// Creates the zeros that an element which is not set stands for; other elements may tell its shape.
static weir_status_t* create_unset(weir_kernel_ctx_t* ctx, int shape_input, const weir_list_t* list,
                                   weir_tensor_t** out_item) {
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_status_t* status = list_element_shape(ctx, shape_input, list, &arena, &shape);
  if (!status && !weir_shape_is_full(shape)) {
    for (size_t i = 0; i < list->count && !status; ++i)
      status = list_merge_item(&arena, list->items[i], &shape);
  }
  if (!status && !weir_shape_is_full(shape)) {
    status = list_shape_error(
        "Trying to read an uninitialized tensor but element_shape is not fully defined: ", shape,
        " and no list element is set.");
  }
  if (!status) status = rows_create_zeros(ctx, list->dtype, shape->rank, shape->dims, out_item);
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* pop_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = NULL;
  WEIR_TRY(list_check_type(ctx, 0, "read from"));
  WEIR_TRY(list_infer_element(ctx, 0, 1, &element));
  WEIR_TRY(weir_shape_set(ctx, 1, element));
  return list_set_handle(ctx, 0, list_known_shape(ctx, 0));
}

static weir_status_t* pop_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_list_t* out = NULL;
  weir_tensor_t* zeros = NULL;
  WEIR_TRY(weir_list_input_typed(ctx, 0, element_dtype(ctx), &list));
  if (list->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Trying to pop from an empty list.");
  if (!list->items[list->count - 1]) {
    WEIR_TRY(create_unset(ctx, 1, list, &zeros));
    weir_kernel_set(ctx, 1, zeros);
  }
  WEIR_TRY(weir_list_forward(ctx, 0, 0, &out));
  weir_tensor_t* last = out->items[--out->count];
  if (last) weir_kernel_set(ctx, 1, last);
  return NULL;
}

static weir_status_t* pop_grad(weir_grad_ctx_t* g) {
  weir_edge_t dlist;
  if (weir_grad_has_dy(g, 0)) {
    dlist = weir_grad_dy(g, 0);
  } else {
    weir_edge_t shape = list_grad_element_shape(g, weir_grad_output(g, 0));
    dlist = weir_grad_node_with(g, "EmptyTensorList",
                                WEIR_EDGES(shape, weir_build_int32(g->builder, -1)),
                                WEIR_ATTRS(list_grad_dtype(g)));
  }
  weir_edge_t ditem = weir_grad_has_dy(g, 1)
                          ? weir_grad_dy(g, 1)
                          : weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_output(g, 1)));
  return weir_grad_set(g, 0, weir_grad_node(g, "TensorListPushBack", WEIR_EDGES(dlist, ditem)));
}

static weir_status_t* get_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = NULL;
  WEIR_TRY(list_check_type(ctx, 0, "read from"));
  WEIR_TRY(list_infer_element(ctx, 0, 2, &element));
  return weir_shape_set(ctx, 0, element);
}

static weir_status_t* get_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_tensor_t* item = NULL;
  int64_t index = 0;
  WEIR_TRY(weir_list_input_typed(ctx, 0, element_dtype(ctx), &list));
  WEIR_TRY(weir_kernel_int(ctx, 1, &index));
  WEIR_TRY(list_check_index("access", index, list->count));
  item = weir_tensor_retain(list->items[index]);
  if (!item) WEIR_TRY(create_unset(ctx, 2, list, &item));
  weir_kernel_set(ctx, 0, item);
  return NULL;
}

static weir_status_t* get_grad(weir_grad_ctx_t* g) {
  weir_edge_t empty = list_grad_empty(g, weir_grad_input(g, 0));
  return weir_grad_set(
      g, 0,
      weir_grad_node(g, "TensorListSetItem",
                     WEIR_EDGES(empty, weir_grad_input(g, 1), weir_grad_dy(g, 0))));
}

// ---- set ----

static weir_status_t* set_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = NULL;
  WEIR_TRY(list_check_type(ctx, 0, "write to"));
  WEIR_TRY(weir_shape_join(ctx, list_known_shape(ctx, 0), weir_shape_input(ctx, 2), &element));
  return list_set_handle(ctx, 0, list_known_shape(ctx, 0));
}

static weir_status_t* set_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_list_t* out = NULL;
  int64_t index = 0;
  bool grows = weir_attrs_bool(weir_kernel_attrs(ctx), "resize_if_index_out_of_bounds");
  WEIR_TRY(weir_list_input_typed(ctx, 0, element_dtype(ctx), &list));
  WEIR_TRY(weir_kernel_int(ctx, 1, &index));
  WEIR_TRY(check_item(
      list, weir_kernel_input(ctx, 2),
      "Tried to set a tensor with incompatible shape at a list index. Item element shape: "));
  if (!grows || index < 0) WEIR_TRY(list_check_index("modify", index, list->count));
  WEIR_TRY(weir_list_forward(ctx, 0, 0, &out));
  if (index >= (int64_t)out->count) WEIR_TRY(weir_list_resize(out, (size_t)index + 1));
  weir_tensor_release(out->items[index]);
  out->items[index] = weir_kernel_take_input(ctx, 2);
  return NULL;
}

static weir_status_t* set_grad(weir_grad_ctx_t* g) {
  weir_edge_t dlist = weir_grad_dy(g, 0);
  weir_edge_t index = weir_grad_input(g, 1);
  weir_edge_t item = weir_grad_input(g, 2);
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(item));
  WEIR_TRY(
      weir_grad_set(g, 0, weir_grad_node(g, "TensorListSetItem", WEIR_EDGES(dlist, index, zeros))));
  weir_edge_t ditem = weir_grad_node_with(g, "TensorListGetItem",
                                          WEIR_EDGES(dlist, index, weir_grad_shape_of(g, item)),
                                          WEIR_ATTRS(list_grad_dtype(g)));
  return weir_grad_set(g, 2, ditem);
}

// ---- length, resize, element shape ----

static weir_status_t* length_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  WEIR_TRY(weir_list_input(ctx, 0, &list));
  return weir_kernel_output_int(ctx, 0, (int64_t)list->count);
}

static weir_status_t* resize_shape(weir_shape_ctx_t* ctx) {
  if (ctx->output_handles) ctx->output_handles[0] = ctx->input_handles[0];
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* resize_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_list_t* out = NULL;
  int64_t size = 0;
  WEIR_TRY(weir_list_input(ctx, 0, &list));
  WEIR_TRY(weir_kernel_int(ctx, 1, &size));
  if (size < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorListSlice expects size to be non-negative. Got: %lld",
                       (long long)size);
  }
  WEIR_TRY(weir_list_forward(ctx, 0, 0, &out));
  return weir_list_resize(out, (size_t)size);
}

static weir_status_t* resize_grad(weir_grad_ctx_t* g) {
  weir_edge_t length = list_grad_length(g, weir_grad_input(g, 0));
  return weir_grad_set(
      g, 0, weir_grad_node(g, "TensorListResize", WEIR_EDGES(weir_grad_dy(g, 0), length)));
}

static weir_status_t* element_shape_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* element = list_known_shape(ctx, 0);
  if (element->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (ctx->output_values_as_shape) ctx->output_values_as_shape[0] = element;
  return weir_shape_set_vector(ctx, 0, element->rank);
}

static weir_status_t* element_shape_cpu(weir_kernel_ctx_t* ctx) {
  const weir_list_t* list = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_list_input(ctx, 0, &list));
  if (list->shape->rank < 0) return weir_kernel_output_int(ctx, 0, -1);
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){list->shape->rank}, &out));
  for (int i = 0; i < list->shape->rank; ++i) {
    if (out->dtype == WEIR_DTYPE_INT64) {
      WEIR_TENSOR_DATA(out, int64_t)[i] = list->shape->dims[i];
    } else {
      WEIR_TENSOR_DATA(out, int32_t)[i] = (int32_t)list->shape->dims[i];
    }
  }
  return NULL;
}

#define LIST_OP(op_name, op_attrs, input_spec, output_spec, shape_fn, grad_fn, op_flags, text, \
                ...)                                                                           \
  {                                                                                            \
    .name = op_name, .attrs = op_attrs, .inputs = input_spec, .outputs = output_spec,          \
    .flags = WEIR_OP_CHEAP | WEIR_OP_NO_FOLD | (op_flags), .summary = text,                    \
    .infer_shape = shape_fn, .build_grad = grad_fn, .kernels = LIST_KERNELS(__VA_ARGS__)       \
  }
#define DTYPE_AND_SHAPE "element_dtype: type; shape_type: {int32, int64}"

const weir_op_module_t weir_ops_list_tensor_list = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        LIST_OP("EmptyTensorList", DTYPE_AND_SHAPE,
                "element_shape: shape_type; max_num_elements: int32", "handle: variant",
                create_shape, NULL, WEIR_OP_NO_GRADIENT, "Makes an empty list.",
                .compute = empty_cpu, .host_inputs = "element_shape, max_num_elements",
                .host_outputs = "handle"),
        LIST_OP("TensorListReserve", DTYPE_AND_SHAPE,
                "element_shape: shape_type; num_elements: int32", "handle: variant", create_shape,
                NULL, WEIR_OP_NO_GRADIENT, "Makes a list of elements that are not set.",
                .compute = reserve_cpu, .host_inputs = "element_shape, num_elements",
                .host_outputs = "handle"),
        LIST_OP("TensorListPushBack", "element_dtype: type",
                "input_handle: variant; tensor: element_dtype", "output_handle: variant",
                push_shape, push_grad, 0, "Appends an element.", .compute = push_cpu,
                .host_inputs = "input_handle", .host_outputs = "output_handle"),
        LIST_OP("TensorListPopBack", "element_dtype: type",
                "input_handle: variant; element_shape: int32",
                "output_handle: variant; tensor: element_dtype", pop_shape, pop_grad, 0,
                "Takes the last element off.", .types = ROWS_LIST_TYPES, .compute = pop_cpu,
                .host_inputs = "input_handle, element_shape", .host_outputs = "output_handle"),
        LIST_OP(
            "TensorListSetItem", "element_dtype: type; resize_if_index_out_of_bounds: bool = false",
            "input_handle: variant; index: int32; item: element_dtype", "output_handle: variant",
            set_shape, set_grad, 0, "Sets an element.", .compute = set_cpu,
            .host_inputs = "input_handle, index", .host_outputs = "output_handle"),
        LIST_OP("TensorListGetItem", "element_dtype: type; Tshape: {int32, int64} = DT_INT32",
                "input_handle: variant; index: int32; element_shape: Tshape", "item: element_dtype",
                get_shape, get_grad, 0, "Returns an element.", .types = ROWS_LIST_TYPES,
                .compute = get_cpu, .host_inputs = "input_handle, index, element_shape"),
        LIST_OP("TensorListLength", NULL, "input_handle: variant", "length: int32",
                weir_shape_fn_scalar, NULL, WEIR_OP_NO_GRADIENT, "Returns the number of elements.",
                .compute = length_cpu, .host_inputs = "input_handle", .host_outputs = "length"),
        LIST_OP("TensorListResize", NULL, "input_handle: variant; size: int32",
                "output_handle: variant", resize_shape, resize_grad, 0,
                "Makes a list longer or shorter.", .compute = resize_cpu,
                .host_inputs = "input_handle, size", .host_outputs = "output_handle"),
        LIST_OP("TensorListElementShape", "shape_type: {int32, int64}", "input_handle: variant",
                "element_shape: shape_type", element_shape_shape, NULL, WEIR_OP_NO_GRADIENT,
                "Returns what is known of the elements' shape.", .compute = element_shape_cpu,
                .host_inputs = "input_handle", .host_outputs = "element_shape"),
        {0}}};
