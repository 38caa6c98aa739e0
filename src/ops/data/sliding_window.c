// sliding_window.c — SlidingWindowDataset: elements of windows, stacked.
#include "ops/data/rows.h"
#include "ops/data/state.h"

typedef struct sliding_t {
  weir_data_t base;
  int64_t size, shift, stride;
  bool drops_remainder;
} sliding_t;

typedef struct sliding_iterator_t {
  weir_iterator_t base;
  weir_tensor_t*** buffer;
  int64_t count;
  size_t capacity;
  int64_t to_skip;  // elements before the next window that were not pulled yet
} sliding_iterator_t;

static weir_status_t* sliding_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  sliding_t* self = (sliding_t*)dataset;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  self->drops_remainder = weir_attrs_bool(weir_kernel_attrs(ctx), "drop_remainder");
  WEIR_TRY(weir_dataset_int(ctx, 1, "window_size", &self->size));
  WEIR_TRY(weir_dataset_int(ctx, 2, "window_shift", &self->shift));
  WEIR_TRY(weir_dataset_int(ctx, 3, "window_stride", &self->stride));
  if (self->size <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Window size must be greater than zero.");
  if (self->shift <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Window shift must be greater than zero.");
  if (self->stride <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "window_stride must be greater than zero.");
  if (self->size > INT64_MAX / self->stride)
    return WEIR_STATUS(INVALID_ARGUMENT, "a window of %lld elements is too large",
                       (long long)self->size);
  for (int i = 0; i < dataset->count; ++i)
    WEIR_TRY(weir_rows_set_shape(dataset, i, -1, dataset->inputs[0]->shapes[i]));
  return NULL;
}

// As TensorFlow counts: not by how far a window reaches.
static int64_t sliding_cardinality(const weir_data_t* dataset) {
  const sliding_t* self = (const sliding_t*)dataset;
  return weir_rows_cardinality(weir_dataset_cardinality(dataset->inputs[0]), self->shift,
                               self->drops_remainder);
}

static weir_status_t* pull_into(sliding_iterator_t* self, weir_cancel_t* cancel, bool* out_is_end) {
  int width = self->base.dataset->count;
  weir_tensor_t** element = weir_element_create(width);
  bool has_place = element && WEIR_GROW(self->buffer, self->capacity, (size_t)self->count + 1);
  weir_status_t* status = has_place
                              ? weir_iterator_pull(&self->base, 0, cancel, element, out_is_end)
                              : weir_out_of_memory();
  if (status || *out_is_end || self->to_skip > 0) weir_element_free(element, width);
  else self->buffer[self->count++] = element;
  if (!status && self->to_skip > 0) --self->to_skip;
  return status;
}

// Forgets what comes before the next window.
static void advance(sliding_iterator_t* self) {
  int64_t shift = ((const sliding_t*)self->base.dataset)->shift;
  int64_t dropped = WEIR_MIN(shift, self->count);
  for (int64_t i = 0; i < dropped; ++i)
    weir_element_free(self->buffer[i], self->base.dataset->count);
  self->count -= dropped;
  self->to_skip = shift - dropped;
  memmove(self->buffer, self->buffer + dropped, (size_t)self->count * sizeof(*self->buffer));
}

static weir_status_t* stack_window(sliding_iterator_t* self, weir_tensor_t** out) {
  const sliding_t* sliding = (const sliding_t*)self->base.dataset;
  int64_t count = 1 + (self->count - 1) / sliding->stride;
  weir_tensor_t*** chosen = weir_alloc_array((size_t)count, sizeof(*chosen));
  if (!chosen) return weir_out_of_memory();
  for (int64_t i = 0; i < count; ++i) chosen[i] = self->buffer[i * sliding->stride];
  weir_status_t* status = weir_rows_stack(chosen, count, self->base.dataset->count, out);
  weir_free(chosen);
  return status;
}

static weir_status_t* sliding_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                   weir_tensor_t** out, bool* out_is_end) {
  sliding_iterator_t* self = (sliding_iterator_t*)iterator;
  const sliding_t* sliding = (const sliding_t*)iterator->dataset;
  int64_t wanted = (sliding->size - 1) * sliding->stride + 1;
  bool is_over = false;
  while ((self->to_skip > 0 || self->count < wanted) && !is_over)
    WEIR_TRY(pull_into(self, cancel, &is_over));
  *out_is_end = self->count == 0 || (self->count < wanted && sliding->drops_remainder);
  if (*out_is_end) return NULL;
  weir_status_t* status = stack_window(self, out);
  advance(self);
  return status;
}

static void sliding_stop(weir_iterator_t* iterator) {
  sliding_iterator_t* self = (sliding_iterator_t*)iterator;
  weir_rows_free(self->buffer, self->count, iterator->dataset->count);
}

static void sliding_state(weir_iterator_t* iterator, weir_state_t* state) {
  sliding_iterator_t* self = (sliding_iterator_t*)iterator;
  size_t count = (size_t)self->count;
  weir_state_elements(state, "buffer", weir_element_types_of(iterator->dataset->inputs[0]),
                      &self->buffer, &count, &self->capacity);
  self->count = (int64_t)count;
  weir_state_int(state, "to_skip", &self->to_skip, 0, INT64_MAX);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t sliding_iterator = {.size = sizeof(sliding_iterator_t),
                                                        .start = weir_iterator_start_input,
                                                        .next = sliding_next,
                                                        .stop = sliding_stop,
                                                        .state = sliding_state};
static const weir_dataset_vtable_t sliding_dataset = {.name = "SlidingWindow",
                                                      .size = sizeof(sliding_t),
                                                      .init = sliding_init,
                                                      .cardinality = sliding_cardinality,
                                                      .iterator = &sliding_iterator};

static weir_status_t* sliding_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &sliding_dataset);
}

const weir_op_module_t weir_ops_data_sliding_window = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SlidingWindowDataset",
         .attrs = "drop_remainder: bool = true; " WEIR_DATASET_SPEC,
         .inputs = "input_dataset: variant; window_size: int64; window_shift: int64; "
                   "window_stride: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The elements of windows, stacked",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(sliding_cpu)},
        {0}}};
