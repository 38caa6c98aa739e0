// rows.c — Cutting tensors into rows and stacking elements.
#include "ops/data/rows.h"

#include "kernel/move/move.h"

// Rows of fewer bytes are copied: a tensor of their own is cheaper than two views, and does not
// keep the whole alive.
#define COPY_SIZE 1024

weir_status_t* weir_row_create(weir_tensor_t* tensor, int64_t i, weir_tensor_t** out_row) {
  weir_dtype_t type = weir_tensor_type(tensor);
  int64_t count = tensor->count / tensor->dims[0];
  size_t size = (size_t)count * weir_dtype_size(type);
  int rank = tensor->rank - 1;
  if (weir_dtype_is_plain(type) && size < COPY_SIZE)
    return weir_tensor_create_from(type, rank, tensor->dims + 1,
                                   (const char*)tensor->data + (size_t)i * size, out_row);
  weir_tensor_t* slice = NULL;
  WEIR_TRY(weir_tensor_slice(tensor, i, i + 1, &slice));
  weir_status_t* status = weir_tensor_reshape(slice, rank, tensor->dims + 1, out_row);
  weir_tensor_release(slice);
  return status;
}

// ---- stacking ----

// Of several errors the one of the first component counts, as in TensorFlow, which stacks one
// component after another.
static void stack_fail(weir_stack_t* stack, int component, weir_status_t* take_status) {
  if (!take_status) return;
  weir_status_destroy(stack->status);
  stack->status = take_status;
  stack->sound = component;
}

static weir_status_t* create_part(weir_stack_t* stack, int i, const weir_tensor_t* first) {
  int64_t dims[WEIR_MAX_RANK + 1] = {stack->rows};
  if (first->rank == WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot batch tensors of rank %d", first->rank);
  for (int k = 0; k < first->rank; ++k) dims[k + 1] = first->dims[k];
  return weir_tensor_create(weir_tensor_type(first), first->rank + 1, dims, &stack->parts[i]);
}

static bool is_row_of(const weir_tensor_t* part, const weir_tensor_t* item) {
  if (item->dtype != part->dtype || item->rank != part->rank - 1) return false;
  for (int k = 0; k < item->rank; ++k) {
    if (item->dims[k] != part->dims[k + 1]) return false;
  }
  return true;
}

static weir_status_t* add_row(weir_stack_t* stack, int i, const weir_tensor_t* item) {
  weir_tensor_t* part = stack->parts[i];
  if (!is_row_of(part, item)) {
    char want[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Cannot batch tensors with different shapes in component %d. First "
                       "element had shape %s and element %lld had shape %s.",
                       i, weir_shape_text(part->rank - 1, part->dims + 1, want),
                       (long long)stack->count, weir_tensor_shape_text(item, got));
  }
  if (item->count == 0) return NULL;
  weir_dtype_t type = weir_tensor_type(part);
  size_t size = (size_t)item->count * weir_dtype_size(type);
  return weir_move_copy(NULL, type, item->data, (char*)part->data + (size_t)stack->count * size,
                        item->count);
}

weir_status_t* weir_stack_init(weir_stack_t* stack, int64_t rows, int width) {
  *stack = (weir_stack_t){.rows = rows, .width = width, .sound = width};
  stack->parts = weir_element_create(width);
  return stack->parts ? NULL : weir_out_of_memory();
}

void weir_stack_free(weir_stack_t* stack) {
  weir_element_free(stack->parts, stack->width);
  weir_status_destroy(stack->status);
}

void weir_stack_add(weir_stack_t* stack, weir_tensor_t* const* element) {
  WEIR_CHECK(stack->count < stack->rows);
  for (int i = 0; i < stack->sound && stack->count == 0; ++i)
    stack_fail(stack, i, create_part(stack, i, element[i]));
  for (int i = 0; i < stack->sound; ++i) stack_fail(stack, i, add_row(stack, i, element[i]));
  ++stack->count;
}

// The rows that came, where those are fewer than there is room for, in memory of their own.
static weir_status_t* trim(weir_tensor_t* part, int64_t count, weir_tensor_t** out) {
  int64_t dims[WEIR_MAX_RANK] = {count};
  weir_dtype_t type = weir_tensor_type(part);
  for (int k = 1; k < part->rank; ++k) dims[k] = part->dims[k];
  WEIR_TRY(weir_tensor_create(type, part->rank, dims, out));
  if ((*out)->count == 0) return NULL;
  return weir_move_copy(NULL, type, part->data, (*out)->data, (*out)->count);
}

weir_status_t* weir_stack_finish(weir_stack_t* stack, weir_tensor_t** out) {
  weir_status_t* status = stack->status;
  stack->status = NULL;
  if (!status && stack->count == stack->rows) {
    weir_element_move(stack->parts, out, stack->width);
    return NULL;
  }
  for (int i = 0; i < stack->width && !status; ++i)
    status = trim(stack->parts[i], stack->count, &out[i]);
  if (status) weir_element_clear(out, stack->width);
  return status;
}

weir_status_t* weir_rows_stack(weir_tensor_t** const* elements, int64_t count, int width,
                               weir_tensor_t** out) {
  weir_stack_t stack;
  WEIR_TRY(weir_stack_init(&stack, count, width));
  for (int64_t k = 0; k < count; ++k) weir_stack_add(&stack, elements[k]);
  weir_status_t* status = weir_stack_finish(&stack, out);
  weir_stack_free(&stack);
  return status;
}

// ---- pulling ----

weir_status_t* weir_rows_set_shape(weir_data_t* self, int i, int64_t size,
                                   const weir_shape_t* shape) {
  int64_t dims[WEIR_MAX_RANK + 1] = {size};
  if (shape->rank < 0 || shape->rank >= WEIR_MAX_RANK)
    return weir_dataset_set_shape(self, i, -1, NULL);
  for (int k = 0; k < shape->rank; ++k) dims[k + 1] = shape->dims[k];
  return weir_dataset_set_shape(self, i, shape->rank + 1, dims);
}

weir_status_t* weir_rows_pull(weir_iterator_t* self, weir_cancel_t* cancel, weir_rows_limit_t limit,
                              weir_tensor_t**** out_elements, int64_t* out_count,
                              bool* out_is_end) {
  int width = self->dataset->inputs[0]->count;
  weir_tensor_t*** elements = NULL;
  size_t capacity = 0;
  int64_t count = 0;
  bool is_end = false;
  weir_status_t* first = NULL;
  for (int64_t i = 0; i < limit.count && !is_end; ++i) {
    weir_tensor_t** element = weir_element_create(width);
    bool has_place = element && (limit.stack || WEIR_GROW(elements, capacity, (size_t)count + 1));
    weir_status_t* status =
        has_place ? weir_iterator_pull(self, 0, cancel, element, &is_end) : weir_out_of_memory();
    bool is_there = !status && !is_end;
    if (is_there && limit.stack) weir_stack_add(limit.stack, element);
    if (is_there && !limit.stack) elements[count] = element;
    else weir_element_free(element, width);
    count += is_there;
    // Without memory nothing was taken: that is what is said, whatever failed before.
    bool is_exhausted = weir_status_code(status) == WEIR_RESOURCE_EXHAUSTED;
    weir_status_destroy(is_exhausted ? first : first ? status : NULL);
    if (is_exhausted || !first) first = status;
    if (is_exhausted) break;
    if (first && (!limit.takes_all || weir_cancel_is_cancelled(cancel) ||
                  weir_cancel_is_cancelled(self->walk->cancel)))
      break;
  }
  if (first) {
    *out_is_end = is_end && !limit.takes_all;
    weir_rows_free(elements, limit.stack ? 0 : count, width);
    return first;
  }
  *out_elements = elements;
  *out_count = count;
  return NULL;
}

void weir_rows_free(weir_tensor_t*** elements, int64_t count, int width) {
  for (int64_t i = 0; i < count; ++i) weir_element_free(elements[i], width);
  weir_free(elements);
}

int64_t weir_rows_cardinality(int64_t n, int64_t batch_size, bool drops_remainder) {
  if (n < 0) return n;
  return n / batch_size + (n % batch_size == 0 || drops_remainder ? 0 : 1);
}
