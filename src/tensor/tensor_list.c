// tensor_list.c — TensorLists: the value in a variant tensor that is a list of tensors.
#include "tensor/tensor_list.h"

#include "tensor/accumulate.h"

// ---- lifetime ----

static void list_destroy(void* object) {
  weir_list_t* list = object;
  for (size_t i = 0; i < list->count; ++i) weir_tensor_release(list->items[i]);
  weir_free(list->items);
  weir_free(list->shape);
  weir_free(list);
}

weir_status_t* weir_list_create(weir_dtype_t dtype, const weir_shape_t* shape, size_t count,
                                weir_list_t** out_list) {
  weir_list_t* list = weir_calloc(1, sizeof(*list));
  if (!list) return weir_out_of_memory();
  list->base.type = &weir_list_type;
  weir_ref_init(&list->base.ref);
  list->dtype = dtype;
  list->max_count = -1;
  list->shape = weir_shape_clone(shape);
  weir_status_t* status = list->shape ? weir_list_resize(list, count) : weir_out_of_memory();
  if (status) {
    list_destroy(list);
    return status;
  }
  *out_list = list;
  return NULL;
}

weir_status_t* weir_list_copy(const weir_list_t* list, weir_list_t** out_copy) {
  WEIR_TRY(weir_list_create(list->dtype, list->shape, list->count, out_copy));
  (*out_copy)->max_count = list->max_count;
  for (size_t i = 0; i < list->count; ++i)
    (*out_copy)->items[i] = weir_tensor_retain(list->items[i]);
  return NULL;
}

void weir_list_release(weir_list_t* list) {
  if (list) weir_variant_release(&list->base);
}

weir_status_t* weir_list_resize(weir_list_t* list, size_t count) {
  if (count > list->count) {
    if (!WEIR_GROW(list->items, list->capacity, count)) return weir_out_of_memory();
    memset(list->items + list->count, 0, (count - list->count) * sizeof(*list->items));
  }
  for (size_t i = count; i < list->count; ++i) weir_tensor_release(list->items[i]);
  list->count = count;
  return NULL;
}

weir_status_t* weir_list_push(weir_list_t* list, weir_tensor_t* take_item) {
  if (!WEIR_GROW(list->items, list->capacity, list->count + 1)) {
    weir_tensor_release(take_item);
    return weir_out_of_memory();
  }
  list->items[list->count++] = take_item;
  return NULL;
}

// ---- sums and zeros ----

static weir_status_t* shapes_differ(const weir_list_t* a, const weir_list_t* b) {
  weir_strbuf_t text = {0};
  weir_shape_append(a->shape, &text);
  weir_strbuf_puts(&text, " and the other is ");
  weir_shape_append(b->shape, &text);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT,
                  "Trying to add two lists of tensors with incompatible element shapes. One is %s",
                  text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* check_addable(const weir_list_t* a, const weir_list_t* b) {
  if (a->dtype != b->dtype) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Trying to add two lists of tensors of different dtypes. One is %s and the other is %s",
        weir_dtype_name(a->dtype), weir_dtype_name(b->dtype));
  }
  if (a->count != b->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Trying to add two lists of tensors with different lengths. One is %zu and "
                       "the other is %zu",
                       a->count, b->count);
  }
  return NULL;
}

static weir_status_t* add_items(const weir_list_t* a, const weir_list_t* b, weir_list_t* sum) {
  for (size_t i = 0; i < a->count; ++i) {
    const weir_tensor_t* x = a->items[i];
    const weir_tensor_t* y = b->items[i];
    sum->items[i] = weir_tensor_retain(x ? a->items[i] : b->items[i]);
    if (!x || !y) continue;
    if (!weir_tensor_same_shape(x, y)) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Trying to add two tensors with incompatible element shapes at index %zu",
                         i);
    }
    WEIR_TRY(weir_tensor_accumulate(&sum->items[i], y));
  }
  return NULL;
}

static weir_status_t* list_add(const void* a, const void* b, void** out_sum) {
  const weir_list_t* x = a;
  const weir_list_t* y = b;
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_list_t* sum = NULL;
  WEIR_TRY(check_addable(x, y));
  weir_status_t* status = NULL;
  if (!weir_shape_merge(&arena, x->shape, y->shape, &shape)) status = shapes_differ(x, y);
  if (!status) status = weir_list_create(x->dtype, shape, x->count, &sum);
  if (!status) status = add_items(x, y, sum);
  weir_arena_free(&arena);
  if (status) {
    weir_list_release(sum);
    return status;
  }
  *out_sum = sum;
  return NULL;
}

static weir_status_t* item_zeros(const weir_tensor_t* item, weir_tensor_t** out_zeros) {
  WEIR_TRY(weir_tensor_create_zeros(weir_tensor_type(item), item->rank, item->dims, out_zeros));
  if (item->dtype != WEIR_DTYPE_VARIANT) return NULL;
  for (int64_t i = 0; i < item->count; ++i) {
    const weir_variant_object_t* object = WEIR_TENSOR_DATA(item, const weir_variant_t)[i].object;
    void* zeros = NULL;
    if (!object) continue;
    weir_status_t* status = object->type->zeros_like
                                ? object->type->zeros_like(object, &zeros)
                                : WEIR_STATUS(UNIMPLEMENTED, "No zeros of variants of type %s",
                                              object->type->type_name);
    if (status) {
      weir_tensor_release(*out_zeros);
      return status;
    }
    WEIR_TENSOR_DATA(*out_zeros, weir_variant_t)[i].object = zeros;
  }
  return NULL;
}

static weir_status_t* list_zeros_like(const void* object, void** out_zeros) {
  const weir_list_t* list = object;
  weir_list_t* zeros = NULL;
  WEIR_TRY(weir_list_create(list->dtype, list->shape, list->count, &zeros));
  for (size_t i = 0; i < list->count; ++i) {
    weir_tensor_t* item = NULL;
    weir_status_t* status = list->items[i] ? item_zeros(list->items[i], &item) : NULL;
    if (status) {
      weir_list_release(zeros);
      return status;
    }
    zeros->items[i] = item;
  }
  *out_zeros = zeros;
  return NULL;
}

static weir_status_t* list_map(const void* object, weir_tensor_map_t map, void** out_object) {
  const weir_list_t* list = object;
  weir_list_t* copy = NULL;
  WEIR_TRY(weir_list_create(list->dtype, list->shape, list->count, &copy));
  copy->max_count = list->max_count;
  weir_status_t* status = NULL;
  for (size_t i = 0; i < list->count && !status; ++i) {
    if (list->items[i]) status = map.fn(map.arg, list->items[i], &copy->items[i]);
  }
  if (status) weir_list_release(copy);
  else *out_object = copy;
  return status;
}

static void list_describe(const void* object, weir_strbuf_t* out) {
  (void)object;
  weir_strbuf_puts(out, "TensorList");
}

const weir_variant_type_t weir_list_type = {.type_name = "tensorflow::TensorList",
                                            .describe = list_describe,
                                            .destroy = list_destroy,
                                            .add = list_add,
                                            .zeros_like = list_zeros_like,
                                            .map = list_map};
