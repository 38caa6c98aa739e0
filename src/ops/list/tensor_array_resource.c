// tensor_array_resource.c — TensorArrays and their gradient arrays.
#include "ops/list/tensor_array_resource.h"

#include "tensor/accumulate.h"

typedef struct weir_tensor_array_grad_t {
  struct weir_tensor_array_grad_t* next;
  weir_tensor_array_t* array;  // one reference
  weir_tensor_t* handle;       // refers to |array|; NULL until somebody keeps one
  weir_view_t source;          // in the arena of the array it belongs to
} weir_tensor_array_grad_t;

// ---- lifetime ----

static void drop_items(weir_tensor_array_t* array) {
  for (size_t i = 0; i < array->count; ++i) weir_tensor_release(array->items[i].tensor);
  weir_free(array->items);
  array->items = NULL;
  array->count = array->capacity = 0;
}

static void array_destroy(weir_resource_t* resource) {
  weir_tensor_array_t* array = (weir_tensor_array_t*)resource;
  for (weir_tensor_array_grad_t* grad = array->grads; grad; grad = grad->next) {
    weir_tensor_release(grad->handle);
    weir_resource_release(&grad->array->base);
  }
  drop_items(array);
  weir_mutex_destroy(&array->mu);
  weir_arena_free(&array->arena);
  weir_free(array->name);
  weir_free(array);
}

const weir_resource_type_t weir_tensor_array_type = {.name = "TensorArray",
                                                     .destroy = array_destroy};

static weir_status_t* resize_locked(weir_tensor_array_t* array, size_t count) {
  if (!WEIR_GROW(array->items, array->capacity, count)) return weir_out_of_memory();
  for (size_t i = array->count; i < count; ++i)
    array->items[i] = (weir_tensor_array_item_t){.tensor = NULL};
  array->count = count;
  return NULL;
}

// |dims| as a shape in the array's arena.
static const weir_shape_t* intern_locked(weir_tensor_array_t* array, int rank,
                                         const int64_t* dims) {
  const weir_shape_t* last = array->last_shape;
  size_t size = (size_t)rank * sizeof(*dims);
  if (last && last->rank == rank && (rank == 0 || memcmp(last->dims, dims, size) == 0)) return last;
  return array->last_shape = weir_shape_make(&array->arena, rank, dims);
}

weir_status_t* weir_tensor_array_create(const weir_tensor_array_params_t* params,
                                        weir_tensor_array_t** out_array) {
  weir_tensor_array_t* array = weir_calloc(1, sizeof(*array));
  if (!array) return weir_out_of_memory();
  weir_resource_init(&array->base, &weir_tensor_array_type);
  weir_mutex_init(&array->mu);
  array->name = weir_strdup(params->name);
  array->dtype = params->dtype;
  array->is_dynamic = params->is_dynamic;
  array->clears_after_read = params->clears_after_read;
  array->has_identical_shapes = params->has_identical_shapes;
  const weir_shape_t* shape = params->element_shape;
  array->element_shape = shape->rank < 0 ? &weir_shape_unknown
                                         : weir_shape_make(&array->arena, shape->rank, shape->dims);
  weir_status_t* status = array->name && array->element_shape ? NULL : weir_out_of_memory();
  if (!status) status = resize_locked(array, (size_t)params->size);
  if (status) {
    weir_resource_release(&array->base);
    return status;
  }
  *out_array = array;
  return NULL;
}

void weir_tensor_array_close(weir_tensor_array_t* array) {
  weir_mutex_lock(&array->mu);
  drop_items(array);
  array->is_closed = true;
  weir_mutex_unlock(&array->mu);
}

static weir_status_t* check_open_locked(const weir_tensor_array_t* array) {
  if (WEIR_LIKELY(!array->is_closed)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "TensorArray %s has already been closed.", array->name);
}

// ---- messages ----

static weir_status_t* bad_write(const weir_tensor_array_t* array, int64_t index, const char* why) {
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "TensorArray %s: Could not write to TensorArray index %lld because %s",
                     array->name, (long long)index, why);
}

static weir_status_t* bad_shape(const weir_tensor_array_t* array, int64_t index,
                                const weir_tensor_t* value) {
  weir_strbuf_t text = {0};
  char got[WEIR_SHAPE_TEXT_SIZE];
  weir_shape_append(array->element_shape, &text);
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT,
      "TensorArray %s: Could not write to TensorArray index %lld because the value shape is %s "
      "which is incompatible with "
      "the TensorArray's inferred element shape: %s (consider setting infer_shape=False).",
      array->name, (long long)index, weir_tensor_shape_text(value, got),
      text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

// ---- writing ----

static weir_status_t* check_write_locked(weir_tensor_array_t* array, int64_t index,
                                         const weir_tensor_t* value) {
  WEIR_TRY(check_open_locked(array));
  if (index < 0 || (!array->is_dynamic && index >= (int64_t)array->count)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "TensorArray %s: Tried to write to index %lld but array is not resizeable and size is: %zu",
        array->name, (long long)index, array->count);
  }
  if (value->dtype != array->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorArray %s: Could not write to TensorArray index %lld because the "
                       "value dtype is %s but "
                       "TensorArray dtype is %s.",
                       array->name, (long long)index, weir_dtype_name(weir_tensor_type(value)),
                       weir_dtype_name(array->dtype));
  }
  if (!weir_shape_accepts(array->element_shape, value->rank, value->dims))
    return bad_shape(array, index, value);
  return NULL;
}

static weir_status_t* aggregate(weir_tensor_array_t* array, int64_t index,
                                weir_tensor_array_item_t* item, weir_tensor_t** value,
                                const weir_tensor_array_memory_t* memory) {
  const weir_shape_t* shape = item->shape;
  if (!weir_shape_accepts(shape, (*value)->rank, (*value)->dims)) {
    char old[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorArray %s: Could not aggregate to TensorArray index %lld because the "
                       "existing shape is %s "
                       "but the new input shape is %s.",
                       array->name, (long long)index,
                       weir_shape_text(shape->rank, shape->dims, old),
                       weir_tensor_shape_text(*value, got));
  }
  if (item->tensor)
    return memory ? memory->accumulate(memory->arg, &item->tensor, *value)
                  : weir_tensor_accumulate(&item->tensor, *value);
  item->tensor = *value;  // what stood there was zeros
  *value = NULL;
  return NULL;
}

static weir_status_t* write_locked(weir_tensor_array_t* array, int64_t index, weir_tensor_t** value,
                                   const weir_tensor_array_memory_t* memory) {
  WEIR_TRY(check_write_locked(array, index, *value));
  if (index >= (int64_t)array->count) WEIR_TRY(resize_locked(array, (size_t)index + 1));
  weir_tensor_array_item_t* item = &array->items[index];
  if (item->is_read) return bad_write(array, index, "it has already been read.");
  if (item->shape && !array->is_grad)
    return bad_write(array, index, "it has already been written to.");
  if (item->shape) return aggregate(array, index, item, value, memory);
  item->shape = intern_locked(array, (*value)->rank, (*value)->dims);
  if (!item->shape) return weir_out_of_memory();
  if (array->has_identical_shapes && !weir_shape_is_full(array->element_shape))
    array->element_shape = item->shape;
  item->tensor = *value;
  *value = NULL;
  return NULL;
}

weir_status_t* weir_tensor_array_write(weir_tensor_array_t* array, int64_t index,
                                       weir_tensor_t* take_value,
                                       const weir_tensor_array_memory_t* memory) {
  weir_mutex_lock(&array->mu);
  weir_status_t* status = write_locked(array, index, &take_value, memory);
  weir_mutex_unlock(&array->mu);
  weir_tensor_release(take_value);
  return status;
}

// ---- reading ----

// What nobody wrote, a gradient that nothing flowed into above all, reads as zeros where the shape
// of the elements is known.
static weir_status_t* zero_unwritten_locked(weir_tensor_array_t* array, int64_t index) {
  if (!weir_shape_is_full(array->element_shape)) {
    weir_strbuf_t text = {0};
    weir_shape_append(array->element_shape, &text);
    weir_status_t* status =
        WEIR_STATUS(INVALID_ARGUMENT,
                    "TensorArray %s: Could not read from %sTensorArray index %lld.  Furthermore, "
                    "the element shape is not fully "
                    "defined: %s.  It is possible you are working with a resizeable TensorArray "
                    "and stop_gradients is not allowing the "
                    "gradients to be written.  If you set the full element_shape property on the "
                    "forward TensorArray, the proper "
                    "all-zeros tensor will be returned instead of incurring this error.",
                    array->name, array->is_grad ? "gradient " : "", (long long)index,
                    text.data ? text.data : "");
    weir_strbuf_free(&text);
    return status;
  }
  size_t first = WEIR_MIN((size_t)index, array->count);
  if ((size_t)index >= array->count) WEIR_TRY(resize_locked(array, (size_t)index + 1));
  for (size_t i = first; i <= (size_t)index; ++i) array->items[i].shape = array->element_shape;
  return NULL;
}

static weir_status_t* read_locked(weir_tensor_array_t* array, int64_t index,
                                  const weir_tensor_array_memory_t* memory,
                                  weir_tensor_t** out_value) {
  WEIR_TRY(check_open_locked(array));
  bool is_inside = index >= 0 && index < (int64_t)array->count;
  if (index < 0 || (!is_inside && !array->is_grad)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Tried to read from index %lld but array size is: %zu",
                       (long long)index, array->count);
  }
  if (!is_inside || !array->items[index].shape) WEIR_TRY(zero_unwritten_locked(array, index));
  weir_tensor_array_item_t* item = &array->items[index];
  if (item->is_cleared) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorArray %s: Could not read index %lld twice because it was cleared "
                       "after a previous read "
                       "(perhaps try setting clear_after_read = false?).",
                       array->name, (long long)index);
  }
  if (!item->tensor) {
    const weir_shape_t* shape = item->shape;
    WEIR_TRY(memory
                 ? memory->create_zeros(memory->arg, array->dtype, shape->rank, shape->dims,
                                        &item->tensor)
                 : weir_tensor_create_zeros(array->dtype, shape->rank, shape->dims, &item->tensor));
  }
  item->is_read = true;
  *out_value = item->tensor;
  if (array->clears_after_read) {
    item->tensor = NULL;
    item->is_cleared = true;
  } else {
    weir_tensor_retain_inline(item->tensor);
  }
  return NULL;
}

weir_status_t* weir_tensor_array_read(weir_tensor_array_t* array, int64_t index,
                                      const weir_tensor_array_memory_t* memory,
                                      weir_tensor_t** out_value) {
  weir_mutex_lock(&array->mu);
  weir_status_t* status = read_locked(array, index, memory, out_value);
  weir_mutex_unlock(&array->mu);
  return status;
}

// ---- sizes and shapes ----

weir_status_t* weir_tensor_array_size(weir_tensor_array_t* array, int64_t* out_size) {
  weir_mutex_lock(&array->mu);
  weir_status_t* status = check_open_locked(array);
  *out_size = (int64_t)array->count;
  weir_mutex_unlock(&array->mu);
  return status;
}

weir_status_t* weir_tensor_array_concat_size(weir_tensor_array_t* array, int64_t* out_size) {
  weir_mutex_lock(&array->mu);
  weir_status_t* status = check_open_locked(array);
  *out_size = array->is_grad ? array->marked_size : (int64_t)array->count;
  weir_mutex_unlock(&array->mu);
  return status;
}

weir_status_t* weir_tensor_array_mark_size(weir_tensor_array_t* array, int64_t needed,
                                           int64_t* out_size) {
  weir_mutex_lock(&array->mu);
  weir_status_t* status = check_open_locked(array);
  int64_t size = (int64_t)array->count;
  if (array->is_dynamic && size < needed) size = needed;
  if (!array->is_grad) array->marked_size = size;
  *out_size = size;
  weir_mutex_unlock(&array->mu);
  return status;
}

weir_status_t* weir_tensor_array_merge_shape(weir_tensor_array_t* array,
                                             const weir_shape_t* shape) {
  if (shape->rank < 0) return NULL;
  weir_mutex_lock(&array->mu);
  const weir_shape_t* merged = NULL;
  weir_status_t* status = NULL;
  if (weir_shape_is_full(array->element_shape) && weir_shape_equal(array->element_shape, shape)) {
    merged = array->element_shape;
  } else if (!weir_shape_merge(&array->arena, array->element_shape, shape, &merged)) {
    weir_strbuf_t text = {0};
    weir_shape_append(array->element_shape, &text);
    weir_strbuf_puts(&text, " vs. ");
    weir_shape_append(shape, &text);
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "PartialTensorShape: Incompatible shapes during merge: %s",
                    text.data ? text.data : "");
    weir_strbuf_free(&text);
  } else if (merged == shape) {  // the caller's memory
    merged = weir_shape_make(&array->arena, shape->rank, shape->dims);
    if (!merged) status = weir_out_of_memory();
  }
  if (!status) array->element_shape = merged;
  weir_mutex_unlock(&array->mu);
  return status;
}

bool weir_tensor_array_has_full_shape(weir_tensor_array_t* array) {
  weir_mutex_lock(&array->mu);
  bool is_full = weir_shape_is_full(array->element_shape);
  weir_mutex_unlock(&array->mu);
  return is_full;
}

// ---- gradients ----

// |prefix| and then |shape|, in |arena|.
static const weir_shape_t* prefixed(weir_arena_t* arena, const weir_shape_t* prefix,
                                    const weir_shape_t* shape) {
  int64_t dims[2 * WEIR_MAX_RANK];
  if (shape->rank < 0) return &weir_shape_unknown;
  int rank = prefix ? prefix->rank : 0;
  if (rank + shape->rank > WEIR_MAX_RANK) return NULL;
  for (int i = 0; i < rank; ++i) dims[i] = prefix->dims[i];
  for (int i = 0; i < shape->rank; ++i) dims[rank + i] = shape->dims[i];
  return weir_shape_make(arena, rank + shape->rank, dims);
}

// Every element that was written reads as zeros of its shape, until gradients flow into it.
static weir_status_t* copy_shapes(const weir_tensor_array_t* array, const weir_shape_t* prefix,
                                  weir_tensor_array_t* grad) {
  const weir_shape_t* last_from = NULL;
  const weir_shape_t* last_to = NULL;
  for (size_t i = 0; i < array->count; ++i) {
    const weir_shape_t* shape = array->items[i].shape;
    if (!shape) continue;
    if (shape != last_from) {
      last_from = shape;
      last_to = prefixed(&grad->arena, prefix, shape);
      if (!last_to) return weir_out_of_memory();
    }
    grad->items[i].shape = last_to;
  }
  return NULL;
}

static weir_status_t* create_grad_locked(weir_tensor_array_t* array,
                                         const weir_tensor_array_grad_params_t* params,
                                         weir_tensor_array_t** out_grad) {
  weir_tensor_array_t* grad = NULL;
  const weir_shape_t* shape = prefixed(&array->arena, params->prefix, array->element_shape);
  weir_tensor_array_grad_t* entry = weir_arena_alloc(&array->arena, sizeof(*entry));
  char* source = weir_arena_strndup(&array->arena, params->source.data, params->source.size);
  if (!shape || !entry || !source) return weir_out_of_memory();
  WEIR_TRY(weir_tensor_array_create(
      &(weir_tensor_array_params_t){.name = params->name,
                                    .dtype = array->dtype,
                                    .size = (int64_t)array->count,
                                    .element_shape = shape,
                                    .clears_after_read = true,
                                    .has_identical_shapes = array->has_identical_shapes},
      &grad));
  grad->is_grad = true;
  grad->marked_size = array->marked_size;
  weir_status_t* status = copy_shapes(array, params->prefix, grad);
  if (status) {
    weir_resource_release(&grad->base);
    return status;
  }
  *entry = (weir_tensor_array_grad_t){
      .next = array->grads, .array = grad, .source = weir_view(source, params->source.size)};
  array->grads = entry;
  *out_grad = grad;
  return NULL;
}

static weir_tensor_array_grad_t* find_grad_locked(const weir_tensor_array_t* array,
                                                  weir_view_t source) {
  weir_tensor_array_grad_t* grad = array->grads;
  while (grad && !weir_view_equal(grad->source, source)) grad = grad->next;
  return grad;
}

static weir_status_t* grad_locked(weir_tensor_array_t* array,
                                  const weir_tensor_array_grad_params_t* params,
                                  weir_tensor_array_t** out_grad) {
  WEIR_TRY(check_open_locked(array));
  if (array->is_grad) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorArray %s is a gradient: gradients of gradients are not supported",
                       array->name);
  }
  array->is_dynamic = false;
  const weir_tensor_array_grad_t* grad = find_grad_locked(array, params->source);
  if (!grad) return create_grad_locked(array, params, out_grad);
  *out_grad = grad->array;
  return NULL;
}

weir_status_t* weir_tensor_array_grad(weir_tensor_array_t* array,
                                      const weir_tensor_array_grad_params_t* params,
                                      weir_tensor_array_t** out_grad) {
  weir_tensor_array_t* grad = NULL;
  weir_mutex_lock(&array->mu);
  weir_status_t* status = grad_locked(array, params, &grad);
  weir_mutex_unlock(&array->mu);
  if (status) return status;
  weir_resource_retain(&grad->base);
  *out_grad = grad;
  return NULL;
}

weir_tensor_t* weir_tensor_array_grad_handle(weir_tensor_array_t* array, weir_view_t source) {
  weir_mutex_lock(&array->mu);
  const weir_tensor_array_grad_t* grad = array->is_closed ? NULL : find_grad_locked(array, source);
  weir_tensor_t* handle = grad ? weir_tensor_retain(grad->handle) : NULL;
  weir_mutex_unlock(&array->mu);
  return handle;
}

void weir_tensor_array_keep_grad_handle(weir_tensor_array_t* array, weir_view_t source,
                                        weir_tensor_t* handle) {
  weir_mutex_lock(&array->mu);
  weir_tensor_array_grad_t* grad = find_grad_locked(array, source);
  if (grad && !grad->handle) grad->handle = weir_tensor_retain(handle);
  weir_mutex_unlock(&array->mu);
}
