// window.c — WindowDataset: windows over elements, each component of one a dataset of its own.
#include "ops/data/graph_out.h"

// ---- a component of a window ----

typedef struct piece_t {
  weir_data_t base;
  weir_tensor_t** items;  // one an element
  int64_t size;
} piece_t;

typedef struct piece_iterator_t {
  weir_iterator_t base;
  int64_t next;
} piece_iterator_t;

static void piece_deinit(weir_data_t* dataset) {
  piece_t* self = (piece_t*)dataset;
  weir_element_free(self->items, (int)self->size);
}

static int64_t piece_cardinality(const weir_data_t* dataset) {
  return ((const piece_t*)dataset)->size;
}

static weir_status_t* piece_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  piece_iterator_t* self = (piece_iterator_t*)iterator;
  const piece_t* piece = (const piece_t*)iterator->dataset;
  *out_is_end = self->next >= piece->size;
  if (!*out_is_end) out[0] = weir_tensor_retain(piece->items[self->next++]);
  return NULL;
}

static void piece_state(weir_iterator_t* iterator, weir_state_t* state) {
  piece_iterator_t* self = (piece_iterator_t*)iterator;
  weir_state_int(state, "next", &self->next, 0, INT64_MAX);
}

static weir_status_t* piece_write(weir_data_t* dataset, weir_graph_out_t* out,
                                  const char** out_name) {
  const piece_t* self = (const piece_t*)dataset;
  return weir_graph_out_window(out, dataset, self->items, (int)self->size, out_name);
}

static const weir_iterator_vtable_t piece_iterator = {
    .size = sizeof(piece_iterator_t), .next = piece_next, .state = piece_state};
static const weir_dataset_vtable_t piece_dataset = {.name = "Window",
                                                    .size = sizeof(piece_t),
                                                    .deinit = piece_deinit,
                                                    .cardinality = piece_cardinality,
                                                    .write = piece_write,
                                                    .iterator = &piece_iterator};

// ---- windows ----

typedef struct window_t {
  weir_data_t base;
  int64_t size, shift, stride;
  bool drops_remainder;
} window_t;

typedef struct place_t {  // what one pull gave
  weir_tensor_t** element;
  weir_status_t* status;
} place_t;

typedef struct window_iterator_t {
  weir_iterator_t base;
  place_t* places;
  int64_t count;
  size_t capacity;
  bool is_input_ended;
} window_iterator_t;

static weir_status_t* window_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  window_t* self = (window_t*)dataset;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  WEIR_TRY(weir_dataset_int(ctx, 1, "size", &self->size));
  WEIR_TRY(weir_dataset_int(ctx, 2, "shift", &self->shift));
  WEIR_TRY(weir_dataset_int(ctx, 3, "stride", &self->stride));
  WEIR_TRY(weir_dataset_bool(ctx, 4, "drop_remainder", &self->drops_remainder));
  if (self->size <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Window size must be greater than zero.");
  if (self->shift <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Window shift must be greater than zero.");
  if (self->stride <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Window stride must be greater than zero.");
  for (int i = 0; i < dataset->count; ++i) {
    dataset->types[i] = WEIR_DTYPE_VARIANT;
    WEIR_TRY(weir_dataset_set_shape(dataset, i, 0, NULL));
  }
  return NULL;
}

// Elements that a whole window reaches over.
static int64_t reach(const window_t* self) { return (self->size - 1) * self->stride + 1; }

static int64_t window_cardinality(const weir_data_t* dataset) {
  const window_t* self = (const window_t*)dataset;
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  if (n < 0) return n;
  if (!self->drops_remainder) return n / self->shift + (n % self->shift ? 1 : 0);
  int64_t rest = n - reach(self);
  return rest < 0 ? 0 : rest / self->shift + 1;
}

static void place_free(place_t* place, int width) {
  weir_element_free(place->element, width);
  weir_status_destroy(place->status);
}

static weir_status_t* fill(window_iterator_t* self, weir_cancel_t* cancel) {
  int width = self->base.dataset->count;
  int64_t wanted = reach((const window_t*)self->base.dataset);
  while (self->count < wanted && !self->is_input_ended) {
    place_t place = {.element = weir_element_create(width)};
    if (!place.element || !WEIR_GROW(self->places, self->capacity, (size_t)self->count + 1)) {
      weir_free(place.element);
      return weir_out_of_memory();
    }
    place.status = weir_iterator_pull(&self->base, 0, cancel, place.element, &self->is_input_ended);
    if (self->is_input_ended) place_free(&place, width);  // with an error that came at the end
    else self->places[self->count++] = place;
    if (weir_cancel_is_cancelled(cancel)) return WEIR_STATUS(CANCELLED, "Iterator was cancelled");
  }
  return NULL;
}

// Leaves |shift| elements behind, also ones that were not pulled yet.
static void advance(window_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** scratch) {
  int width = self->base.dataset->count;
  int64_t shift = ((const window_t*)self->base.dataset)->shift;
  int64_t dropped = WEIR_MIN(shift, self->count);
  for (int64_t i = 0; i < dropped; ++i) place_free(&self->places[i], width);
  self->count -= dropped;
  memmove(self->places, self->places + dropped, (size_t)self->count * sizeof(*self->places));
  for (int64_t i = dropped; i < shift && !self->is_input_ended; ++i) {
    weir_status_t* status =
        weir_iterator_pull(&self->base, 0, cancel, scratch, &self->is_input_ended);
    weir_status_destroy(status);  // of an element that nobody sees
    weir_element_clear(scratch, width);
    if (weir_cancel_is_cancelled(cancel)) return;
  }
}

static weir_status_t* create_piece(const window_iterator_t* self, int component, int64_t size,
                                   weir_tensor_t** out) {
  const window_t* window = (const window_t*)self->base.dataset;
  const weir_data_t* input = window->base.inputs[0];
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_create(&piece_dataset, &dataset));
  piece_t* piece = (piece_t*)dataset;
  const weir_shape_t* shape = input->shapes[component];
  weir_status_t* status = weir_dataset_set_components(1, &input->types[component], dataset);
  if (!status) status = weir_dataset_set_shape(dataset, 0, shape->rank, shape->dims);
  if (!status) piece->items = weir_element_create((int)size);
  if (!status && !piece->items) status = weir_out_of_memory();
  if (status) {
    weir_dataset_release(dataset);
    return status;
  }
  piece->size = size;
  for (int64_t i = 0; i < size; ++i)
    piece->items[i] = weir_tensor_retain(self->places[i * window->stride].element[component]);
  return weir_tensor_create_variant(&dataset->base, out);
}

static weir_status_t* create_window(const window_iterator_t* self, weir_tensor_t** out) {
  const window_t* window = (const window_t*)self->base.dataset;
  int64_t size = 1 + (self->count - 1) / window->stride;
  for (int64_t i = 0; i < size; ++i) {
    const weir_status_t* status = self->places[i * window->stride].status;
    if (status) return weir_status_copy(status);
  }
  for (int i = 0; i < window->base.count; ++i) WEIR_TRY(create_piece(self, i, size, &out[i]));
  return NULL;
}

static weir_status_t* window_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  window_iterator_t* self = (window_iterator_t*)iterator;
  const window_t* window = (const window_t*)iterator->dataset;
  WEIR_TRY(fill(self, cancel));
  *out_is_end = self->count == 0 || (window->drops_remainder && self->count < reach(window));
  if (*out_is_end) return NULL;
  weir_tensor_t** scratch = weir_element_create(iterator->dataset->count);
  if (!scratch) return weir_out_of_memory();
  weir_status_t* status = create_window(self, out);
  advance(self, cancel, scratch);
  weir_element_free(scratch, iterator->dataset->count);
  return status;
}

static void window_stop(weir_iterator_t* iterator) {
  window_iterator_t* self = (window_iterator_t*)iterator;
  for (int64_t i = 0; i < self->count; ++i) place_free(&self->places[i], iterator->dataset->count);
  weir_free(self->places);
}

static void places_state(window_iterator_t* self, weir_state_t* state) {
  weir_element_types_t components = weir_element_types_of(self->base.dataset->inputs[0]);
  size_t count = (size_t)self->count;
  weir_state_count(state, "places", &count);
  for (size_t i = 0; i < count && weir_state_is_good(state); ++i) {
    if (state->is_restoring) {
      place_t place = {.element = weir_element_create(components.count)};
      if (!place.element || !WEIR_GROW(self->places, self->capacity, i + 1)) {
        weir_free(place.element);
        weir_state_fail(state, weir_out_of_memory());
        return;
      }
      self->places[self->count++] = place;
    }
    weir_state_status(state, "status", &self->places[i].status);
    weir_state_maybe_element(state, "element", components, self->places[i].element);
    weir_state_require(state, self->places[i].status || self->places[i].element[0]);
  }
}

static void window_state(weir_iterator_t* iterator, weir_state_t* state) {
  window_iterator_t* self = (window_iterator_t*)iterator;
  places_state(self, state);
  weir_state_bool(state, "is_input_ended", &self->is_input_ended);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t window_iterator = {.size = sizeof(window_iterator_t),
                                                       .start = weir_iterator_start_input,
                                                       .next = window_next,
                                                       .stop = window_stop,
                                                       .state = window_state};
static const weir_dataset_vtable_t window_dataset = {.name = "Window",
                                                     .size = sizeof(window_t),
                                                     .init = window_init,
                                                     .cardinality = window_cardinality,
                                                     .iterator = &window_iterator};

static weir_status_t* window_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &window_dataset);
}

const weir_op_module_t weir_ops_data_window = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "WindowDataset",
         .attrs = WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; size: int64; shift: int64; stride: int64; "
                   "drop_remainder: bool",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Windows over elements, each a dataset",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(window_cpu)},
        {0}}};
